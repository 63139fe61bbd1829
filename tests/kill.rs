//! SIGKILL to each process of a session in turn, under real adapters: nothing is left, nobody waits in vain, and no
//! reply says anything but what happened.
//!
//! `BUGEYE_KILL_RUNS` is the number of kills in all (50); `scripts/torture kill N` sets it and shows the figures.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy.toml's leave for tests does not reach their helpers"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bugeye::paths::Paths;
use bugeye::platform::{self, Table};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How soon everything a session owned must be gone.
const GONE: Duration = Duration::from_secs(3);
/// How soon the next command must have answered.
const NEXT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Python,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    Stopped,
    Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Daemon,
    Adapter,
    Supervisor,
    Debuggee,
}

const CASES: [(Language, State); 6] = [
    (Language::C, State::Held),
    (Language::Python, State::Running),
    (Language::C, State::Stopped),
    (Language::Python, State::Held),
    (Language::C, State::Running),
    (Language::Python, State::Stopped),
];

/// One of the four tests' share of the kills.
fn runs(victim: Victim) -> usize {
    let all: usize = std::env::var("BUGEYE_KILL_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
    all / 4 + usize::from((victim as usize) < all % 4)
}

/// The directories of one test, and everything that was started with them.
struct Home {
    dir: tempfile::TempDir,
}

#[derive(Debug)]
struct Reply {
    code: i32,
    out: String,
    #[expect(dead_code, reason = "a failed assertion shows it")]
    err: String,
    took: Duration,
}

impl Reply {
    fn new(output: Output, began: Instant) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let code = output.status.code().unwrap_or(-1);
        Self { code, out: text(output.stdout), err: text(output.stderr), took: began.elapsed() }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("data")).unwrap();
        std::os::unix::fs::symlink(adapters(), dir.path().join("data/adapters")).unwrap();
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.args(arguments).env("BUGEYE_HOME", self.path()).env_remove("BUGEYE_LOG").env_remove("BUGEYE_ADAPTER");
        command.current_dir(self.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Reply {
        let began = Instant::now();
        Reply::new(self.command(arguments).output().unwrap(), began)
    }

    /// A command that is left waiting.
    fn wait_in(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn daemon(&self) -> u32 {
        number(&self.run(&["daemon", "status", "--json"]).ok().json()["result"]["pid"])
    }

    fn status(&self, session: &str) -> Value {
        self.run(&["-s", session, "status", "--json"]).ok().json()["result"].clone()
    }

    /// Every living process that has this home in its environment.
    fn processes(&self) -> BTreeSet<u32> {
        let mark = self.path().as_os_str().as_encoded_bytes().to_vec();
        let table = Table::read();
        let living = table.iter().filter(|process| !process.is_dead()).map(|process| process.pid);
        living
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.windows(mark.len()).any(|part| part == mark)
            })
            .collect()
    }

    /// Waits until only these are left; answers how long that took.
    #[track_caller]
    fn only(&self, kept: &BTreeSet<u32>, what: &str) -> Duration {
        let began = Instant::now();
        loop {
            let left: Vec<u32> = self.processes().difference(kept).copied().collect();
            if left.is_empty() {
                return began.elapsed();
            }
            let described: Vec<String> = left.iter().map(|pid| describe(*pid)).collect();
            assert!(began.elapsed() < GONE, "{what}: left after {GONE:?}: {described:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn close(self) {
        self.run(&["daemon", "stop"]);
        self.only(&BTreeSet::new(), "the end of the test");
    }
}

impl Drop for Home {
    /// A test that fails must not leave anything either.
    fn drop(&mut self) {
        for pid in self.processes() {
            signal(pid, Signal::KILL);
        }
    }
}

/// The folder of the user's own adapters, with debugpy in it.
fn adapters() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let setup = Command::new(env!("CARGO_BIN_EXE_bugeye")).args(["setup", "debugpy"]).output().unwrap();
        assert!(setup.status.success(), "debugpy can't be installed: {setup:?}");
        Paths::locate().unwrap().data.join("adapters")
    })
}

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(path)
}

/// The compiled program of a C fixture, made once.
fn program(name: &str) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let program = FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path().join(name);
    if !program.exists() {
        let source = fixture(&format!("c/{name}.c"));
        let status = Command::new("cc").args(["-O0", "-g", "-o"]).arg(&program).arg(source).status().unwrap();
        assert!(status.success());
    }
    program
}

/// `file:line` of a mark.
fn place(path: &str, mark: &str) -> String {
    let file = fixture(path);
    let text = fs::read_to_string(&file).unwrap();
    let line = text.lines().position(|line| line.contains(&format!("BREAK:{mark}"))).unwrap() + 1;
    format!("{}:{line}", file.display())
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))).unwrap()
}

fn signal(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal);
}

fn words(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

fn describe(pid: u32) -> String {
    format!("{:?} {:.100}", platform::process(pid), words(pid))
}

#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// debugpy's launcher is named by a path through the adapter's folder.
fn is_adapter(words: &str) -> bool {
    words.contains("lldb-dap") || (words.contains("debugpy/adapter") && !words.contains("debugpy/launcher"))
}

/// A session and the processes it is made of.
struct Subject {
    id: String,
    supervisor: u32,
    adapter: u32,
    debuggee: u32,
}

impl Home {
    fn subject(&self, language: Language, state: State) -> Subject {
        let before = self.processes();
        let c = program("family").display().to_string();
        let script = fixture("python/ignore_term.py").display().to_string();
        let (place, command) = match language {
            Language::C => (place("c/family.c", "ready"), vec![c.as_str()]),
            Language::Python => (place("python/ignore_term.py", "stay"), vec!["python3", script.as_str()]),
        };
        let mut arguments = match state {
            State::Held => vec!["start", "--json", "--"],
            State::Stopped => vec!["run", "--json", "--break", &place, "--"],
            State::Running => vec!["run", "--json", "--wait", "0", "--"],
        };
        arguments.extend(command);
        let reply = self.run(&arguments).ok().json();
        let id = reply["session"].as_str().unwrap().to_string();
        let expected = match state {
            State::Held => "held",
            State::Stopped => "stopped",
            State::Running => "running",
        };
        assert_eq!(reply["result"]["state"], expected, "{reply}");
        if state == State::Running {
            until("the program is up", || {
                let output = self.run(&["-s", &id, "output", "--all"]).out;
                output.contains("ready") || output.contains("child")
            });
        }
        let daemon = self.daemon();
        let table = Table::read();
        let below = |pid: u32, wanted: &dyn Fn(u32) -> bool| {
            let all = table.below(pid);
            all.iter().map(|process| process.pid).find(|pid| !before.contains(pid) && wanted(*pid))
        };
        let supervisor = below(daemon, &|pid| platform::name(pid).as_deref() == Some("bugeye-session"));
        let supervisor = supervisor.expect("a supervisor below the daemon");
        let adapter = below(supervisor, &|pid| is_adapter(&words(pid)));
        let debuggee = match self.status(&id)["pid"].as_u64() {
            Some(pid) => Some(u32::try_from(pid).unwrap()),
            // debugpy tells the pid only once the program was let go.
            None => below(supervisor, &|pid| words(pid).contains("--connect") && words(pid).contains(&script)),
        };
        let (adapter, debuggee) = (adapter.expect("an adapter"), debuggee.expect("a debuggee"));
        Subject { id, supervisor, adapter, debuggee }
    }

    /// One kill, and what every reply must say about it.
    fn kill(&self, victim: Victim, language: Language, state: State) -> Duration {
        let what = format!("{victim:?} of {language:?} {state:?}");
        let before = self.processes();
        let subject = self.subject(language, state);
        let waiting = (state == State::Running).then(|| {
            let waiting = self.wait_in(&["-s", &subject.id, "await", "--json"]);
            // It waits once the session has written down that it was asked.
            until("the client waits", || self.asked_to_wait(&subject.id));
            waiting
        });
        let pid = match victim {
            Victim::Daemon => self.daemon(),
            Victim::Adapter => subject.adapter,
            Victim::Supervisor => subject.supervisor,
            Victim::Debuggee => subject.debuggee,
        };
        let kept = if victim == Victim::Daemon { BTreeSet::new() } else { before };
        let began = Instant::now();
        signal(pid, Signal::KILL);
        let reply = match waiting {
            Some(waiting) => Reply::new(waiting.wait_with_output().unwrap(), began),
            // Nobody has noticed yet when this one comes, or everybody has.
            None => self.run(&["-s", &subject.id, "continue", "--json"]),
        };
        assert!(reply.took < NEXT, "{what}: {reply:?}");
        check(&what, victim, &reply);
        if victim == Victim::Daemon {
            // A successor may serve already.
            self.run(&["daemon", "stop"]).ok();
            let gone = self.only(&kept, &what);
            let reply = self.run(&["status", "--json"]);
            assert!(reply.took < NEXT, "{what}: {reply:?}");
            assert_eq!(reply.code, 3, "{what}: {reply:?}");
            assert_eq!(reply.json()["error"]["message"], "there is no session", "{what}: {reply:?}");
            self.run(&["daemon", "stop"]).ok();
            return gone;
        }
        let gone = self.only(&kept, &what);
        let state = self.status(&subject.id);
        let expected = if victim == Victim::Debuggee { "exited" } else { "lost" };
        assert_eq!(state["state"], expected, "{what}: {state}");
        if victim == Victim::Debuggee {
            assert_eq!(state["ending"]["kind"], "signalled", "{what}: {state}");
            assert_eq!(state["ending"]["signal"], "SIGKILL", "{what}: {state}");
        }
        let next = self.run(&["-s", &subject.id, "continue", "--json"]);
        assert!(next.took < NEXT, "{what}: {next:?}");
        let error = &next.json()["error"];
        let hints = error["hints"].as_array().is_some_and(|hints| !hints.is_empty());
        let (kind, code) = if victim == Victim::Debuggee { ("wrong_state", 3) } else { ("lost", 5) };
        assert_eq!((error["kind"].as_str(), next.code, hints), (Some(kind), code, true), "{what}: {next:?}");
        if victim == Victim::Debuggee {
            assert!(error["message"].as_str().unwrap().contains("SIGKILL"), "{what}: {next:?}");
        }
        gone
    }

    fn asked_to_wait(&self, id: &str) -> bool {
        let recording = self.status(id)["recording"].as_str().unwrap().to_string();
        let events = fs::read_to_string(self.path().join("state/sessions").join(recording).join("events.jsonl"));
        events.unwrap_or_default().contains("\"await\"")
    }
}

/// What the client that was there, or came at that moment, is told.
fn check(what: &str, victim: Victim, reply: &Reply) {
    let json = reply.json();
    if victim == Victim::Daemon && reply.code == 3 {
        // It came late: there is a new daemon.
        assert_eq!(json["error"]["kind"], "not_found", "{what}: {reply:?}");
        return;
    }
    if victim == Victim::Debuggee && reply.code == 3 {
        assert!(json["error"]["message"].as_str().unwrap().contains("SIGKILL"), "{what}: {reply:?}");
        return;
    }
    if victim == Victim::Debuggee {
        assert_eq!(reply.code, 0, "{what}: {reply:?}");
        let ending = &json["result"]["ending"];
        assert_eq!((&ending["kind"], &ending["signal"]), (&"signalled".into(), &"SIGKILL".into()), "{what}: {reply:?}");
        return;
    }
    assert_eq!((reply.code, json["error"]["kind"].as_str()), (5, Some("lost")), "{what}: {reply:?}");
    assert!(json["error"]["hints"].as_array().is_some_and(|hints| !hints.is_empty()), "{what}: {reply:?}");
}

/// Kills as often as asked, beside a session that must not notice.
fn torture(victim: Victim) {
    let count = runs(victim);
    let home = Home::new();
    let bystander = (victim != Victim::Daemon).then(|| {
        let place = place("c/loop_basic.c", "after");
        let loops = program("loop_basic").display().to_string();
        home.run(&["run", "--name", "bystander", "--break", &place, "--", &loops]).ok();
    });
    let mut took: Vec<Duration> = Vec::new();
    for index in 0..count {
        let (language, state) = CASES[index % CASES.len()];
        took.push(home.kill(victim, language, state));
    }
    if bystander.is_some() {
        let value = home.run(&["-s", "bystander", "print", "sum"]).ok();
        assert_eq!(value.out, "sum = 0\n");
        let report = home.run(&["-s", "bystander", "continue", "--json"]).ok().json();
        assert_eq!(report["result"]["state"], "stopped", "{report}");
    }
    home.close();
    took.sort();
    let figure = |at: usize| took.get(at).map_or(0, Duration::as_millis);
    eprintln!(
        "kill {victim:?}: {count} runs, all gone after {} ms (median), {} ms (longest)",
        figure(count / 2),
        figure(count.saturating_sub(1))
    );
}

#[test]
fn a_killed_daemon_takes_everything_with_it() {
    torture(Victim::Daemon);
}

#[test]
fn a_killed_adapter_is_lost_and_nothing_else_is() {
    torture(Victim::Adapter);
}

#[test]
fn a_killed_supervisor_is_a_lost_session() {
    torture(Victim::Supervisor);
}

#[test]
fn a_killed_program_was_ended_by_that_signal() {
    torture(Victim::Debuggee);
}

#[test]
fn a_client_that_dies_in_a_wait_takes_nothing_with_it() {
    let home = Home::new();
    let subject = home.subject(Language::C, State::Running);
    for _ in 0..5 {
        let mut waiting = home.wait_in(&["-s", &subject.id, "await"]);
        until("the client waits", || home.asked_to_wait(&subject.id));
        waiting.kill().unwrap();
        waiting.wait().unwrap();
        let status = home.run(&["-s", &subject.id, "status", "--json"]).ok();
        assert!(status.took < Duration::from_millis(500), "{status:?}");
        assert_eq!(status.json()["result"]["state"], "running");
    }
    home.run(&["-s", &subject.id, "pause"]).ok();
    home.run(&["-s", &subject.id, "continue", "--wait", "0"]).ok();
    home.close();
}

/// A program deaf to SIGTERM with children of every kind, and an adapter that does not answer: `stop` ends both in time.
#[test]
fn stop_ends_what_does_not_want_to_end() {
    let home = Home::new();
    home.run(&["daemon", "start"]).ok();
    let before = home.processes();
    for language in [Language::C, Language::Python] {
        for silent in [false, true] {
            for state in [State::Running, State::Stopped] {
                let what = format!("{language:?} {state:?}, silent adapter: {silent}");
                let subject = home.subject(language, state);
                if silent {
                    signal(subject.adapter, Signal::STOP);
                    let status = home.run(&["status"]).ok();
                    assert!(status.took < Duration::from_millis(500), "{what}: {status:?}");
                }
                let stop = home.run(&["stop"]).ok();
                assert!(stop.took < Duration::from_secs(5), "{what}: {stop:?}");
                let left: Vec<u32> = home.processes().difference(&before).copied().collect();
                assert!(left.is_empty(), "{what}: {:?}", left.iter().map(|pid| describe(*pid)).collect::<Vec<_>>());
            }
        }
    }
    home.close();
}
