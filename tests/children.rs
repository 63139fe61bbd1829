//! Programs that start other Pythons: breakpoints reach the children, their stops are shown one at a time, and the whole
//! family is one session.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use support::fixtures::at;
use support::{Bug, has, until};

const FAMILY: &str = "python/family.py";

fn run(bug: &Bug, mark: &str, how: &[&str]) -> String {
    let place = at(FAMILY, mark);
    let words: Vec<&str> = ["run", "family.py", "--break", &place, "--"].iter().chain(how).copied().collect();
    bug.ok(&words)
}

/// One child, started in some way: its breakpoint is hit, and everything can be done there.
fn one_child(how: &[&str], number: &str, after: &str) {
    let bug = Bug::new("python");
    let text = run(&bug, "child", how);
    has(&text, &["stopped: breakpoint 1", "in child family.py:", "MainThread (pid "]);
    has(&bug.ok(&["print", "number"]), &[&format!("number = {number}")]);
    has(&bug.ok(&["print", "result * 2"]), &["result * 2 = "]);
    has(&bug.ok(&["set", "result", "99"]), &["99"]);
    has(&bug.ok(&["backtrace"]), &["child family.py:"]);
    let threads = bug.ok(&["threads"]);
    let child = threads.lines().find(|line| line.starts_with('>')).unwrap();
    has(child, &["MainThread (pid ", "stopped", "child family.py:"]);
    assert!(threads.lines().any(|line| line.starts_with(" 1 MainThread running")), "{threads}");
    has(&bug.ok(&["continue"]), &["exited: code 0", &format!("child {number} has 99"), after]);
}

#[test]
fn a_forked_child_is_debugged() {
    one_child(&["fork"], "7", "parent saw 3");
}

#[test]
fn a_subprocess_is_debugged() {
    one_child(&["subprocess"], "5", "parent saw 0");
}

#[test]
fn a_process_of_multiprocessing_is_debugged_forked() {
    one_child(&["processes", "fork", "1"], "1", "parent saw [0]");
}

#[test]
fn a_process_of_multiprocessing_is_debugged_spawned() {
    one_child(&["processes", "spawn", "1"], "1", "parent saw [0]");
}

#[test]
fn steps_stay_in_the_child_and_breakpoints_come_later() {
    let bug = Bug::new("python");
    run(&bug, "work", &["subprocess"]);
    has(&bug.ok(&["next"]), &["stopped: step in work"]);
    // Set while the child stands, and hit in the parent afterwards.
    bug.ok(&["break", &at(FAMILY, "parent")]);
    bug.ok(&["breakpoint", "remove", "1"]);
    has(&bug.ok(&["finish"]), &["in child family.py:", "(return) work=15"]);
    let text = bug.ok(&["continue"]);
    has(&text, &["stopped: breakpoint 2", "in main family.py:", "thread 1 MainThread", "child 5 has 15"]);
    has(&bug.ok(&["print", "codes"]), &["codes = 0"]);
    let threads = bug.ok(&["threads"]);
    assert!(!threads.contains("pid "), "the child has ended: {threads}");
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn each_of_several_children_is_shown_once() {
    let bug = Bug::new("python");
    let mut text = run(&bug, "child", &["processes", "fork", "3"]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        has(&text, &["stopped: breakpoint 1", "in child family.py:"]);
        seen.push(bug.ok(&["print", "number"]));
        text = bug.ok(&["continue"]);
    }
    has(&text, &["exited: code 0", "parent saw [0, 0, 0]"]);
    seen.sort();
    assert_eq!(seen, ["number = 1\n", "number = 2\n", "number = 3\n"]);
}

#[test]
fn a_grandchild_and_a_replaced_process_are_debugged() {
    let bug = Bug::new("python");
    has(&run(&bug, "child", &["nested"]), &["stopped: breakpoint 1", "in child family.py:"]);
    assert_eq!(bug.ok(&["threads"]).lines().count(), 3);
    has(&bug.ok(&["continue"]), &["exited: code 0", "child 5 has 15", "parent saw 0"]);
    has(&run(&bug, "child", &["exec"]), &["stopped: breakpoint 2", "in child family.py:"]);
    has(&bug.ok(&["print", "number"]), &["number = 9"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "child 9 has 27"]);
}

#[test]
fn a_child_that_is_killed_while_it_is_looked_at_ends_alone() {
    let bug = Bug::new("python");
    let text = run(&bug, "child", &["started"]);
    let pid = text.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()).and_then(|pid| pid.parse().ok());
    support::signal(pid.unwrap_or_else(|| panic!("{text}")), rustix::process::Signal::KILL);
    until("the program runs without it", || {
        let status = bug.ok(&["status"]);
        if status.contains("stopped") { Err(status) } else { Ok(()) }
    });
    has(&bug.ok(&["await"]), &["exited: code 0", "parent saw -9"]);
}

#[test]
fn a_pause_stops_the_whole_family_once() {
    let bug = Bug::new("python");
    has(&bug.ok(&["run", "family.py", "--wait", "0.2s", "--", "loops"]), &["running"]);
    until("the child is there", || {
        let threads = bug.ok(&["threads"]);
        if threads.contains("pid ") { Ok(()) } else { Err(threads) }
    });
    has(&bug.ok(&["pause"]), &["stopped: pause"]);
    until("both stand", || {
        let threads = bug.ok(&["threads"]);
        if threads.contains("running") { Err(threads) } else { Ok(()) }
    });
    has(&bug.ok(&["continue", "--wait", "0.3s"]), &["running"]);
    let threads = bug.ok(&["threads"]);
    assert!(!threads.contains("stopped"), "{threads}");
    has(&bug.ok(&["stop"]), &["ended"]);
}

#[test]
fn letting_go_lets_everybody_go() {
    let bug = Bug::new("python");
    let done = bug.path("done");
    run(&bug, "child", &["subprocess", &done]);
    has(&bug.ok(&["detach"]), &["let go"]);
    until("the program ends by itself", || std::fs::read_to_string(&done).map(drop).map_err(|error| error.to_string()));
    assert_eq!(std::fs::read_to_string(&done).unwrap(), "0\n");
}

#[test]
fn an_exception_in_a_child_is_shown() {
    let bug = Bug::new("python");
    bug.ok(&["catch", "uncaught"]);
    let text = bug.ok(&["run", "family.py", "--", "raises"]);
    has(&text, &["stopped: exception", "boom", "(pid "]);
    has(&bug.ok(&["exception"]), &["ValueError", "boom"]);
    bug.ok(&["continue"]);
}

/// Killed before, while and after they are taken up, or gone by themselves.
#[test]
fn children_that_come_and_go_disturb_nobody() {
    let bug = Bug::new("python");
    has(&bug.ok(&["run", "family.py", "--wait", "50s", "--", "many"]), &["exited: code 0", "parent saw 6"]);
}
