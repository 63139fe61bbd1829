//! The real binary and its daemon: who may start it, what it survives, and that it leaves nothing behind.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Directories of one test, and the daemon that may live in them.
struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    fn socket(&self) -> PathBuf {
        self.path("runtime/daemon.sock")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.args(arguments).env("BUGEYE_HOME", self.dir.path()).env_remove("BUGEYE_LOG").stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Reply {
        Reply::from(self.command(arguments).output().unwrap())
    }

    /// Starts the daemon; answers its process number.
    fn start(&self) -> i32 {
        let reply = self.run(&["daemon", "start", "--json"]);
        assert_eq!(reply.code, 0, "{reply:?}");
        i32::try_from(reply.json()["result"]["pid"].as_i64().unwrap()).unwrap()
    }

    fn write_config(&self, text: &str) {
        fs::create_dir_all(self.path("config")).unwrap();
        fs::write(self.path("config/config.toml"), text).unwrap();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("state/daemon.log")).unwrap_or_default()
    }

    /// Every process that was started with this home in its environment.
    fn processes(&self) -> Vec<String> {
        let mark = format!("BUGEYE_HOME={}", self.dir.path().display());
        let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        numbers
            .filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|number| {
                let environment = fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
            })
            .collect()
    }

    fn until_no_process_is_left(&self) {
        until("no process is left", || self.processes().is_empty());
    }

    /// Ends the daemon and proves that nothing is left.
    fn close(self) {
        self.run(&["daemon", "stop"]);
        self.until_no_process_is_left();
    }
}

/// A test that fails must not leave its daemon either.
impl Drop for Home {
    fn drop(&mut self) {
        for number in self.processes() {
            signal(number.parse().unwrap(), Signal::KILL);
        }
    }
}

#[derive(Debug)]
struct Reply {
    code: i32,
    out: String,
    err: String,
}

impl From<Output> for Reply {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Reply {
    fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: i32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn fifty_first_clients_share_one_daemon() {
    for _ in 0..3 {
        let home = Home::new();
        let clients: Vec<_> = (0..50)
            .map(|_| {
                home.command(&["daemon", "start", "--json"])
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut pids: Vec<i64> = clients
            .into_iter()
            .map(|client| {
                let reply = Reply::from(client.wait_with_output().unwrap());
                assert_eq!(reply.code, 0, "{reply:?}");
                reply.json()["result"]["pid"].as_i64().unwrap()
            })
            .collect();
        pids.dedup();
        assert_eq!(pids.len(), 1, "{pids:?}");
        until("only the daemon is left", || home.processes().len() == 1);
        assert_eq!(home.log().matches("started: version").count(), 1, "{}", home.log());
        home.close();
    }
}

#[test]
fn after_a_kill_the_next_command_works() {
    let home = Home::new();
    for _ in 0..3 {
        let pid = home.start();
        signal(pid, Signal::KILL);
        home.until_no_process_is_left();
        assert!(home.socket().exists(), "a dead socket is what the next daemon must cope with");
        let status = home.run(&["daemon", "status"]);
        assert!(status.out.starts_with("no daemon is running"), "{status:?}");
        let started = Instant::now();
        assert_ne!(home.start(), pid);
        assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    }
    home.close();
}

#[test]
fn stop_ends_it_and_leaves_no_socket() {
    let home = Home::new();
    let pid = home.start();
    assert_eq!(fs::metadata(home.socket()).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(home.path("runtime")).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(home.path("state/daemon.log")).unwrap().mode() & 0o777, 0o600);
    let reply = home.run(&["daemon", "stop"]);
    assert_eq!(reply.out, format!("daemon (pid {pid}) stopped\n"));
    assert!(!home.socket().exists());
    home.until_no_process_is_left();
    assert_eq!(home.run(&["daemon", "stop"]).out, "daemon was not running\n");
    home.close();
}

#[test]
fn a_home_named_relative_to_here_is_the_same_one_there() {
    let home = Home::new();
    let mut start = home.command(&["daemon", "start"]);
    start.current_dir(home.path("..")).env("BUGEYE_HOME", home.dir.path().file_name().unwrap());
    let reply = Reply::from(start.output().unwrap());
    assert_eq!(reply.code, 0, "{reply:?}");
    assert_eq!(home.processes().len(), 1);
    home.close();
}

#[test]
fn sigterm_ends_it_in_order() {
    let home = Home::new();
    signal(home.start(), Signal::TERM);
    home.until_no_process_is_left();
    assert!(!home.socket().exists());
    assert!(home.log().trim_end().ends_with("ended"), "{}", home.log());
    home.close();
}

#[test]
fn a_socket_that_is_not_its_own_is_not_removed() {
    let home = Home::new();
    let pid = home.start();
    fs::remove_file(home.socket()).unwrap();
    let other = UnixListener::bind(home.socket()).unwrap();
    signal(pid, Signal::TERM);
    home.until_no_process_is_left();
    assert!(home.socket().exists());
    drop(other);
    home.close();
}

#[test]
fn a_daemon_whose_socket_was_removed_is_found_again() {
    let home = Home::new();
    let pid = home.start();
    fs::remove_file(home.socket()).unwrap();
    let started = Instant::now();
    assert_eq!(home.start(), pid);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    fs::remove_file(home.socket()).unwrap();
    assert_eq!(home.run(&["daemon", "stop"]).out, format!("daemon (pid {pid}) stopped\n"));
    home.until_no_process_is_left();
    home.close();
}

#[test]
fn leftovers_of_every_kind_heal_or_are_named() {
    type Leave = fn(&Home);
    let cases: [(&str, Leave, i32); 5] = [
        ("a dead socket", |home| drop(UnixListener::bind(home.socket()).unwrap()), 0),
        ("a lock without holder", |home| fs::write(home.path("runtime/daemon.lock"), "12345").unwrap(), 0),
        ("a file for a socket", |home| fs::write(home.socket(), "").unwrap(), 1),
        ("a directory for a socket", |home| fs::create_dir(home.socket()).unwrap(), 1),
        ("a directory for a lock", |home| fs::create_dir(home.path("runtime/daemon.lock")).unwrap(), 1),
    ];
    for (what, leave, code) in cases {
        let home = Home::new();
        fs::create_dir(home.path("runtime")).unwrap();
        fs::set_permissions(home.path("runtime"), fs::Permissions::from_mode(0o700)).unwrap();
        leave(&home);
        let started = Instant::now();
        let reply = home.run(&["daemon", "start", "--json"]);
        assert_eq!(reply.code, code, "{what}: {reply:?}");
        assert_eq!(reply.json()["ok"], code == 0, "{what}");
        assert!(started.elapsed() < Duration::from_secs(1), "{what}: {:?}", started.elapsed());
        home.close();
    }
}

#[test]
fn a_runtime_directory_others_can_reach_is_refused() {
    type Layout = fn(&Path);
    let layouts: [(&str, Layout); 4] = [
        ("mode 0755", |at| fs::set_permissions(at, fs::Permissions::from_mode(0o755)).unwrap()),
        ("a symbolic link", |at| {
            fs::rename(at, at.with_extension("real")).unwrap();
            symlink(at.with_extension("real"), at).unwrap();
        }),
        ("not a directory", |at| {
            fs::remove_dir(at).unwrap();
            fs::write(at, "").unwrap();
        }),
        ("belongs to user 65534", |at| {
            if is_root() {
                std::os::unix::fs::chown(at, Some(65534), None).unwrap();
            }
        }),
    ];
    for (what, layout) in layouts {
        if what.contains("65534") && !is_root() {
            continue;
        }
        let home = Home::new();
        fs::create_dir(home.path("runtime")).unwrap();
        fs::set_permissions(home.path("runtime"), fs::Permissions::from_mode(0o700)).unwrap();
        layout(&home.path("runtime"));
        let reply = home.run(&["daemon", "start"]);
        assert_eq!(reply.code, 1, "{reply:?}");
        assert!(reply.err.contains(what) && reply.err.contains("  hint: "), "{what}: {}", reply.err);
        assert!(home.processes().is_empty());
        home.close();
    }
}

#[test]
fn another_user_is_not_heard() {
    if !is_root() {
        eprintln!("skipped: only root can act as another user");
        return;
    }
    let home = Home::new();
    home.start();
    for (path, mode) in [(home.path(""), 0o755), (home.path("runtime"), 0o755), (home.socket(), 0o777)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let script = "import os, socket, sys\nos.setgid(65534); os.setuid(65534)\ns = socket.socket(socket.AF_UNIX)\n\
                  s.connect(sys.argv[1])\ntry:\n  s.sendall(b'{\"v\":1,\"id\":1,\"cmd\":\"hello\"}\\n')\nexcept OSError: pass\n\
                  try:\n  print(len(s.recv(100)))\nexcept OSError: print(0)\n";
    let reply = Reply::from(Command::new("python3").args(["-c", script]).arg(home.socket()).output().unwrap());
    assert_eq!(reply.out, "0\n", "{reply:?}");
    until("it is logged", || home.log().contains("user 65534"));
    fs::set_permissions(home.path("runtime"), fs::Permissions::from_mode(0o700)).unwrap();
    home.close();
}

#[test]
fn what_is_no_request_is_answered() {
    let home = Home::new();
    home.start();
    let mut stream = UnixStream::connect(home.socket()).unwrap();
    stream.write_all(b"{\"v\":1\n{\"v\":1,\"id\":5,\"cmd\":\"hello\"}\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert!(lines.next().unwrap().unwrap().contains("\"kind\":\"usage\""));
    assert!(lines.next().unwrap().unwrap().contains("\"protocol\":1"));
    home.close();
}

/// Stands in for a daemon of another version: answers `hello` on so many connections, and goes when asked to.
fn old_daemon(home: &Home, sessions: usize, connections: usize) -> std::thread::JoinHandle<Vec<String>> {
    fs::create_dir(home.path("runtime")).unwrap();
    fs::set_permissions(home.path("runtime"), fs::Permissions::from_mode(0o700)).unwrap();
    let (socket, listener) = (home.socket(), UnixListener::bind(home.socket()).unwrap());
    std::thread::spawn(move || {
        let mut heard: Vec<String> = Vec::new();
        for _ in 0..connections {
            let (stream, _) = listener.accept().unwrap();
            for line in BufReader::new(stream.try_clone().unwrap()).lines() {
                let line = line.unwrap();
                let id = if line.contains("\"id\":1") { 1 } else { 0 };
                let result = format!(r#"{{"protocol":7,"version":"0.0.1","pid":1,"sessions":{sessions}}}"#);
                if line.contains("shutdown") {
                    fs::remove_file(&socket).unwrap();
                }
                heard.push(line);
                let _ = writeln!(&stream, r#"{{"final":{{"id":{id},"ok":true,"result":{result}}}}}"#);
            }
        }
        heard
    })
}

#[test]
fn an_idle_daemon_of_another_protocol_is_replaced() {
    let home = Home::new();
    let old = old_daemon(&home, 0, 3);
    let reply = home.run(&["daemon", "status", "--json"]);
    assert_eq!(reply.json()["result"]["protocol"], 7);
    home.start();
    let heard = old.join().unwrap();
    assert!(heard.last().unwrap().contains("\"if_idle\":true"), "{heard:?}");
    home.close();
}

#[test]
fn a_busy_daemon_of_another_protocol_is_left_alone() {
    let home = Home::new();
    let old = old_daemon(&home, 2, 2);
    let reply = home.run(&["daemon", "start"]);
    let heard = old.join().unwrap();
    assert!(heard.iter().all(|line| line.contains("hello")), "{heard:?}");
    assert_eq!(reply.code, 1, "{reply:?}");
    assert!(reply.err.contains("protocol 7") && reply.err.contains("client 1"), "{}", reply.err);
    assert!(reply.err.contains("`bugeye daemon stop`"), "{}", reply.err);
    home.close();
}

#[test]
fn it_ends_itself_when_idle() {
    let home = Home::new();
    home.write_config("[daemon]\nidle_timeout_minutes = 0.01\n");
    home.start();
    let held = UnixStream::connect(home.socket()).unwrap();
    std::thread::sleep(Duration::from_millis(1000));
    assert_eq!(home.processes().len(), 1, "a client is connected");
    drop(held);
    home.until_no_process_is_left();
    assert!(!home.socket().exists());
    home.close();
}

#[test]
fn a_mistake_in_the_settings_is_told_and_harms_nothing() {
    let home = Home::new();
    home.write_config("[timeouts]\nlanch_secs = 3\n");
    let reply = home.run(&["daemon", "start", "--json"]);
    assert_eq!(reply.code, 2, "{reply:?}");
    let error = &reply.json()["error"];
    assert!(error["message"].as_str().unwrap().contains("config.toml:2:"), "{error}");
    assert_eq!(error["hints"][0], "did you mean `launch_secs`?");
    home.write_config("");
    let pid = home.start();
    home.write_config("[timeouts\n");
    let reply = home.run(&["daemon", "status", "--json"]);
    assert_eq!(reply.json()["result"]["pid"], pid);
    assert!(reply.err.starts_with("warning: "), "{}", reply.err);
    home.close();
}

#[test]
fn a_stopped_daemon_is_reported_in_time() {
    let home = Home::new();
    let pid = home.start();
    signal(pid, Signal::STOP);
    let started = Instant::now();
    let reply = home.run(&["daemon", "status"]);
    assert_eq!(reply.code, 4, "{reply:?}");
    assert!(reply.err.contains(&format!("kill -CONT {pid}")), "{}", reply.err);
    assert!(started.elapsed() < Duration::from_millis(2500));
    signal(pid, Signal::CONT);
    home.close();
}

#[test]
fn nothing_of_the_callers_stays_open_in_the_daemon() {
    let home = Home::new();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut shell = Command::new("/bin/sh")
        .args(["-c", "exec 3>&1 4>&1; \"$0\" daemon start", env!("CARGO_BIN_EXE_bugeye")])
        .env("BUGEYE_HOME", home.dir.path())
        .stdout(writer)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        let _ = sender.send(text);
    });
    assert!(shell.wait().unwrap().success());
    let text = receiver.recv_timeout(Duration::from_secs(5)).expect("the daemon holds the caller's pipe");
    assert!(text.contains("started"), "{text}");
    let daemon = home.processes().remove(0);
    assert_eq!(fs::read_link(format!("/proc/{daemon}/cwd")).unwrap(), Path::new("/"));
    let session = rustix::process::getsid(Pid::from_raw(daemon.parse().unwrap())).unwrap();
    assert_eq!(session.as_raw_nonzero().get().to_string(), daemon);
    home.close();
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    let home = Home::new();
    for arguments in [&["completions", "bash"][..], &["--help"], &["daemon", "status", "--json"], &["--json", "fly"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = home.command(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let reply = Reply::from(output);
        assert!(reply.code == 0 || reply.code == 2, "{arguments:?}: {reply:?}");
        assert!(!reply.err.contains("panicked"), "{reply:?}");
    }
    home.close();
}

#[test]
fn every_shell_gets_its_completions() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let reply = home.run(&["completions", shell]);
        assert_eq!(reply.code, 0, "{reply:?}");
        assert!(reply.out.contains("bugeye") && reply.out.contains("completions"), "{shell}");
    }
    home.close();
}

#[test]
fn mistakes_of_usage_have_code_two_in_both_forms() {
    let home = Home::new();
    for arguments in [&["daemno"][..], &["daemon"], &["daemon", "fly"], &["--bogus"], &["daemon", "status", "extra"]] {
        let reply = home.run(arguments);
        assert_eq!((reply.code, reply.out.as_str()), (2, ""), "{arguments:?}");
        assert!(reply.err.starts_with("error: "), "{arguments:?}: {}", reply.err);
        let reply = home.run(&[&["--json"], arguments].concat());
        assert_eq!((reply.code, reply.err.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(reply.json()["error"]["kind"], "usage", "{arguments:?}");
    }
    assert!(home.run(&["daemno"]).err.contains("did you mean `bugeye daemon`?"));
    home.close();
}

#[test]
fn help_and_version_are_answers() {
    let home = Home::new();
    for arguments in [&[][..], &["--help"], &["help"], &["help", "daemon"], &["daemon", "--help"], &["--version"]] {
        let reply = home.run(arguments);
        assert_eq!((reply.code, reply.err.as_str()), (0, ""), "{arguments:?}");
        assert!(!reply.out.is_empty(), "{arguments:?}");
    }
    assert!(home.run(&["--help"]).out.contains("4  timed out"));
    home.close();
}
