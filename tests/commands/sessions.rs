//! Sessions: several at once, taken hold of, let go, and ended.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use super::{NATIVE, PYTHON};
use crate::support::fixtures::{at, folder, program};
use crate::support::{Bug, has, signal, until};

#[test]
fn several_sessions_at_once() {
    let bug = Bug::new("c");
    let place = NATIVE.at("body");
    let loop_py = folder("python").join("loop.py").to_str().unwrap().to_string();
    let python_place = format!("{loop_py}:{}", PYTHON.line("body"));
    has(&bug.ok(&["run", &NATIVE.program(), "--break", &place]), &["[s1 via lldb-dap"]);
    has(&bug.ok(&["run", &loop_py, "--break", &python_place, "--name", "snake"]), &["[s2 via debugpy"]);
    let list = bug.ok(&["sessions"]);
    has(&list, &["s1: stopped", "s2: stopped", "\"snake\""]);
    // The last one started is meant, unless another is named.
    has(&bug.ok(&["status"]), &["s2: stopped"]);
    has(&bug.ok(&["-s", "s1", "print", "sum"]), &["sum = 0"]);
    has(&bug.ok(&["print", "total", "--session", "snake"]), &["total = 0"]);
    has(&bug.ok(&["use", "s1"]), &["s1"]);
    has(&bug.ok(&["status"]), &["s1: stopped"]);
    has(&bug.ok(&["continue"]), &["i=1"]);
    has(&bug.ok(&["status", "-s", "s2"]), &["hit 1"]);
    bug.run(&["use", "s9"]).fails(3, "s9");
    bug.run(&["status", "-s", "nobody"]).fails(3, "nobody");
    bug.run(&["start", &NATIVE.program(), "--name", "snake"]).fails(1, "snake");
    has(&bug.ok(&["stop", "-s", "snake"]), &["s2 ended"]);
    has(&bug.ok(&["stop"]), &["s1 ended"]);
    has(&bug.ok(&["sessions"]), &["no sessions"]);
    bug.ok(&["start", &NATIVE.program()]);
    bug.ok(&["start", &NATIVE.program()]);
    has(&bug.ok(&["stop", "--all"]), &["ended 2 sessions"]);
}

#[test]
fn a_program_is_checked_before_it_is_started() {
    let bug = Bug::new("c");
    bug.run(&["start", "./no-such-program"]).fails(3, "no-such-program");
    let text = bug.write("notes.txt", "not a program\n");
    let refused = bug.run(&["start", &text]);
    assert!(refused.code == 1 || refused.code == 3, "{refused}");
    bug.run(&["start"]).fails(2, "");
    bug.run(&["run", &NATIVE.program(), "--adapter", "nonesuch"]).fails(2, "nonesuch");
    bug.run(&["start", &NATIVE.program(), "--env", "NOVALUE"]).fails(2, "NOVALUE");
    bug.run(&["start", &NATIVE.program(), "--cwd", "no-such-folder"]).fails(3, "no-such-folder");
    for command in ["continue", "status", "locals", "stop", "detach", "restart", "output"] {
        bug.run(&[command]).fails(3, "there is no session");
    }
    has(&bug.ok(&["start", &NATIVE.program(), "--adapter", "lldb"]), &["held", "via lldb-dap 19"]);
    has(&bug.ok(&["status"]), &[": held"]);
    has(&bug.ok(&["status", "--json"]), &["\"state\":\"held\""]);
}

/// Writes a growing number into a file, so that it is seen to live.
const COUNTER: &str = r#"
import os, sys, time
count = 0
while True:
    count += 1  # here
    os.write(1, b"line %d\n" % count)
    with open(sys.argv[1], "w") as file:
        file.write(str(count))
    time.sleep(0.02)
"#;

fn count(file: &str) -> u64 {
    fs::read_to_string(file).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn until_it_counts(file: &str) {
    let before = count(file);
    until("it counts on", || {
        let now = count(file);
        if now > before + 2 { Ok(()) } else { Err(format!("{before}, {now}")) }
    });
}

fn tracer(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("TracerPid:")).unwrap_or("gone").trim().to_string()
}

/// A process of the test itself, ended with it.
struct Own(Child);

impl Own {
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new(program);
        Self(command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn attach_to_c_and_let_go() {
    let bug = Bug::new("c");
    let own = Own::start(&program("c/hang.c"), &[]);
    let pid = own.pid();
    has(&bug.ok(&["attach", &pid]), &["stopped: attached", "hang.c:"]);
    has(&bug.ok(&["print", "counter"]), &["counter = "]);
    has(&bug.ok(&["backtrace"]), &["spin", "main"]);
    has(&bug.ok(&["break", &at("c/hang.c", "spin")]), &["verified"]);
    has(&bug.ok(&["continue"]), &["stopped: breakpoint"]);
    has(&bug.ok(&["detach"]), &["runs on"]);
    assert_eq!(tracer(own.0.id()), "0");
    bug.run(&["continue"]).fails(3, "let go");
    bug.ok(&["unbreak", "--all"]);
    // `stop` lets it live as well; `stop --kill` does not.
    has(&bug.ok(&["attach", &pid, "--continue"]), &["running"]);
    has(&bug.ok(&["stop"]), &["goes on"]);
    assert_eq!(tracer(own.0.id()), "0");
    bug.ok(&["attach", &pid]);
    bug.ok(&["stop", "--kill"]);
    until("it is killed", || {
        let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if state.is_empty() || state.contains(") Z") { Ok(()) } else { Err(state) }
    });
    bug.run(&["attach", "999999"]).fails(3, "999999");
}

#[test]
fn attach_to_python_and_let_go() {
    let bug = Bug::new("python");
    let (script, file) = (bug.write("counter.py", COUNTER), bug.path("count"));
    let own = Own::start("python3", &[&script, &file]);
    until_it_counts(&file);
    has(&bug.ok(&["attach", &own.pid()]), &["stopped: "]);
    let here = COUNTER.lines().position(|line| line.contains("# here")).unwrap() + 1;
    has(&bug.ok(&["break", &format!("{script}:{here}")]), &["verified"]);
    has(&bug.ok(&["continue"]), &["stopped: breakpoint 1"]);
    has(&bug.ok(&["print", "count > 1"]), &["True"]);
    has(&bug.ok(&["detach"]), &["runs on"]);
    until_it_counts(&file);
}

/// A program that was started here and let go has lost its reader, and must not notice.
#[test]
fn a_detached_program_prints_on_and_lives() {
    let bug = Bug::new("python");
    let (script, file) = (bug.write("counter.py", COUNTER), bug.path("count"));
    has(&bug.ok(&["run", &script, "--wait", "1s", "--", &file]), &["running"]);
    until_it_counts(&file);
    let pid = bug.json(&["status"])["pid"].as_i64().unwrap();
    has(&bug.ok(&["detach"]), &["runs on"]);
    until_it_counts(&file);
    has(&bug.ok(&["status"]), &["let go"]);
    bug.run(&["daemon", "stop"]);
    until_it_counts(&file);
    signal(i32::try_from(pid).unwrap(), Signal::KILL);
}

#[test]
fn a_detached_program_of_c_lives() {
    let bug = Bug::new("c");
    has(&bug.ok(&["run", &program("c/hang.c"), "--wait", "0.3s"]), &["running"]);
    let pid = bug.json(&["status"])["pid"].as_i64().unwrap();
    let detached = bug.run(&["detach"]);
    assert!(detached.code == 0 && detached.took < Duration::from_secs(8), "{detached} {:?}", detached.took);
    assert_eq!(tracer(u32::try_from(pid).unwrap()), "0");
    bug.run(&["daemon", "stop"]);
    assert_eq!(tracer(u32::try_from(pid).unwrap()), "0");
    signal(i32::try_from(pid).unwrap(), Signal::KILL);
}

#[test]
fn the_daemon_by_hand() {
    let bug = Bug::new("c");
    has(&bug.ok(&["daemon", "status"]), &["no daemon is running"]);
    has(&bug.ok(&["daemon", "start"]), &["started"]);
    has(&bug.ok(&["daemon", "status"]), &["running", "no sessions", "socket ", "log "]);
    bug.ok(&["start", &NATIVE.program()]);
    has(&bug.ok(&["daemon", "status"]), &["1 session"]);
    has(&bug.ok(&["daemon", "log"]), &["start: ok"]);
    has(&bug.ok(&["daemon", "stop"]), &["stopped; 1 session ended"]);
    bug.no_process_left();
    has(&bug.ok(&["daemon", "stop"]), &["was not running"]);
    bug.run(&["daemon", "dance"]).fails(2, "dance");
}

#[test]
fn completions_name_every_command() {
    let bug = Bug::new("c");
    for shell in ["bash", "zsh", "fish"] {
        let script = bug.ok(&["completions", shell]);
        has(&script, &["bugeye", "backtrace", "breaks", "continue"]);
    }
    bug.run(&["completions", "teletype"]).fails(2, "teletype");
    has(&bug.ok(&["--help"]), &["backtrace"]);
    bug.run(&["contineu"]).fails(2, "did you mean `bugeye continue`");
}
