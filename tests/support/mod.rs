//! What every test of the real binary needs: a home of its own with its own daemon, fixtures compiled once, an adapter
//! installed once, a time limit on every command, and the proof that nothing is left running.

#![allow(dead_code, reason = "each test crate uses its own part")]

pub mod agents;
pub mod fixtures;
pub mod scripted;
pub mod sides;
#[cfg(target_os = "linux")]
pub mod terminal;

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// No command of a test may take longer, whatever it waits for.
const LIMIT: Duration = Duration::from_secs(60);

/// One test's surroundings. Dropping it stops the daemon and fails the test if any process is left.
pub struct Bug {
    home: tempfile::TempDir,
    /// Where commands are given from.
    pub cwd: PathBuf,
    /// Variables that every command is given.
    pub env: Vec<(String, String)>,
}

impl Bug {
    /// Commands are given from the folder of that language's fixtures.
    pub fn new(language: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let adapters = home.path().join("data/adapters");
        fs::create_dir_all(&adapters).unwrap();
        symlink(fixtures::debugpy(), adapters.join("debugpy")).unwrap();
        if language == "go" {
            symlink(fixtures::installed("delve", "bin/dlv"), adapters.join("delve")).unwrap();
        }
        // The same tests on another version: `BUGEYE_TEST_LLDB` is its path.
        if let Ok(path) = std::env::var("BUGEYE_TEST_LLDB") {
            fs::create_dir_all(home.path().join("config")).unwrap();
            let text = format!("[adapters.lldb-dap]\npath = \"{path}\"\n");
            fs::write(home.path().join("config/config.toml"), text).unwrap();
        }
        Self { home, cwd: fixtures::folder(language), env: Vec::new() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A path in this test's own folder.
    pub fn path(&self, name: &str) -> String {
        self.home.path().join(name).to_str().unwrap().to_string()
    }

    /// A file of this test's own.
    pub fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.home.path().join(name), text).unwrap();
        self.path(name)
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.args(words).current_dir(&self.cwd).env("BUGEYE_HOME", self.home.path()).stdin(Stdio::null());
        let ours =
            ["BUGEYE_LOG", "BUGEYE_LOG_EVENTS", "BUGEYE_ADAPTER", "BUGEYE_REQUEST_TIMEOUT_MS", "BUGEYE_STATE_DIR"];
        for name in ours.into_iter().chain(["RUST_BACKTRACE", "CODEX_STDIN_FILE"]) {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts a command and does not wait for it.
    pub fn spawn(&self, words: &[&str]) -> Asked {
        let child = self.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Asked::new(child, words)
    }

    /// Gives a command and waits for its answer, however it ends.
    pub fn run(&self, words: &[&str]) -> Run {
        self.spawn(words).wait()
    }

    /// The text of a command that succeeds.
    pub fn ok(&self, words: &[&str]) -> String {
        let run = self.run(words);
        assert_eq!(run.code, 0, "{run}");
        assert!(run.stderr.is_empty(), "{run}");
        run.stdout
    }

    /// The result of a command that succeeds, by `--json`.
    pub fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = std::iter::once("--json").chain(words.iter().copied()).collect();
        let run = self.run(&words);
        assert_eq!(run.code, 0, "{run}");
        let mut envelope = run.json();
        assert_eq!(envelope["ok"], true, "{run}");
        envelope["result"].take()
    }

    /// Sessions that ended, daemon gone, no process left.
    pub fn close(&self) {
        let run = self.run(&["daemon", "stop"]);
        assert_eq!(run.code, 0, "{run}");
        self.no_process_left();
    }

    pub fn no_process_left(&self) {
        until("no process is left", || {
            let left = self.processes();
            if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
        });
    }

    /// Every live process that has this home in its environment: daemon, adapters, programs and what they started.
    pub fn processes(&self) -> Vec<(i32, String)> {
        let mark = self.home.path().to_str().unwrap().as_bytes();
        let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        numbers
            .filter_map(|number| number.parse().ok())
            .filter(|pid: &i32| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| {
                    variable.starts_with(b"BUGEYE_") && variable.windows(mark.len()).any(|window| window == mark)
                })
            })
            .map(|pid| (pid, fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")))
            .collect()
    }
}

impl Drop for Bug {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return self.close();
        }
        eprintln!("--- daemon log\n{}", fs::read_to_string(self.path("state/daemon.log")).unwrap_or_default());
        for (pid, _) in self.processes() {
            signal(pid, Signal::KILL);
        }
    }
}

/// A command that may still be running. Its answer is read while it runs, so that it never waits for us.
pub struct Asked {
    child: Child,
    words: String,
    stdout: Option<std::thread::JoinHandle<String>>,
    stderr: Option<std::thread::JoinHandle<String>>,
    started: Instant,
}

impl Asked {
    fn new(mut child: Child, words: &[&str]) -> Self {
        fn reader(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).unwrap();
                String::from_utf8(bytes).expect("what the binary writes is text")
            })
        }
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let words = words.join(" ");
        Self { child, words, stdout: Some(reader(stdout)), stderr: Some(reader(stderr)), started: Instant::now() }
    }

    pub fn interrupt(&self) {
        signal(i32::try_from(self.child.id()).unwrap(), Signal::INT);
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn wait(mut self) -> Run {
        let deadline = self.started + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                let _ = self.child.kill();
                let _ = self.child.wait();
                panic!("`bugeye {}` took longer than {LIMIT:?}", self.words);
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Run {
            words: std::mem::take(&mut self.words),
            code: status.code().unwrap_or(-1),
            stdout: self.stdout.take().unwrap().join().unwrap(),
            stderr: self.stderr.take().unwrap().join().unwrap(),
            took: self.started.elapsed(),
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
pub struct Run {
    pub words: String,
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Run {
    /// The envelope of `--json`.
    pub fn json(&self) -> Value {
        assert_eq!(self.stdout.lines().count(), 1, "{self}");
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self}"))
    }

    /// A command that fails with this code and these words in its complaint.
    #[track_caller]
    pub fn fails(&self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self}");
        assert!(self.stdout.is_empty(), "a failure has nothing on stdout: {self}");
        assert!(self.stderr.contains(words), "no {words:?} in {self}");
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`bugeye {}` answered {}\n{}{}", self.words, self.code, self.stdout, self.stderr)
    }
}

/// Waits for a condition; what it last complained of is the failure.
#[track_caller]
pub fn until(what: &str, mut condition: impl FnMut() -> Result<(), String>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while let Err(complaint) = condition() {
        assert!(Instant::now() < deadline, "never: {what}; {complaint}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// All of these are in the text.
#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

/// None of these is in the text.
#[track_caller]
pub fn lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "{part:?} in:\n{text}");
    }
}

pub fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

/// Variables by name, as `{"name","text",…}` lists have them; a value's text with its children.
#[track_caller]
pub fn variable<'a>(list: &'a Value, name: &str) -> &'a Value {
    let list = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    list.iter().find(|variable| variable["name"] == name).unwrap_or_else(|| panic!("no {name} in {list:?}"))
}

/// The text of a variable of a stop.
#[track_caller]
pub fn local(report: &Value, name: &str) -> String {
    variable(&report["stop"]["locals"], name)["text"].as_str().unwrap().to_string()
}

/// Functions of a stop's or stack's frames, without those of the runtime.
pub fn functions(frames: &Value) -> Vec<&str> {
    let frames = frames.as_array().unwrap().iter();
    frames.filter(|frame| frame["runtime"] != true).map(|frame| frame["function"].as_str().unwrap()).collect()
}

/// Words as a shell would split them: at spaces, but not within single quotes.
pub fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (index, piece) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(piece);
        } else {
            words.extend(piece.split_whitespace());
        }
    }
    words
}
