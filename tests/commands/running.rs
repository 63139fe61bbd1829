//! Running commands: each answers with the stop, the end, or `running`.

use std::time::Duration;

use super::{NATIVE, PYTHON, Side};
use crate::support::fixtures::{at, line, program};
use crate::support::{Bug, has, lacks};

fn runs(side: &Side) {
    let bug = side.at_body();
    side.table(
        &bug,
        &[
            ("next", 0, &["stopped: step in {function} {after}"]),
            ("n", 0, &["stopped: step in {function}"]),
            ("continue --thread", 0, &[]),
            ("resume", 0, &["stopped: breakpoint 1 (hit 2)", "i=1"]),
            ("step", 0, &["stopped: step in {function} {after}"]),
            ("c", 0, &["stopped: breakpoint 1 (hit 3)", "i=2"]),
            ("continue --count 2", 0, &["stopped: breakpoint 1 (hit 5)", "i=4"]),
            ("await", 0, &["stopped: breakpoint 1 (hit 5)"]),
            ("pause", 0, &["it was stopped already"]),
            ("unbreak --all", 0, &[]),
            ("finish", 0, &["stopped: step in main {file}:"]),
            ("continue", 0, &["exited: code 0", "sum=10"]),
            ("continue", 3, &["the program has exited with code 0", "bugeye restart"]),
            ("next", 3, &["the program has exited"]),
            ("await", 0, &["exited: code 0"]),
            ("restart", 0, &["held", "bugeye continue"]),
            ("step", 3, &["not started", "start --stop-on-entry"]),
            ("locals", 3, &["not started"]),
            ("await --timeout 1", 3, &["not started"]),
            ("break {function}", 0, &["{bound}"]),
            ("continue", 0, &["stopped: breakpoint", "in {function}"]),
            ("until {end}", 0, &["stopped: "]),
        ],
    );
}

#[test]
fn running_under_lldb() {
    runs(&NATIVE);
}

#[test]
fn running_under_debugpy() {
    runs(&PYTHON);
}

/// `until` ends at its place, at another breakpoint, or where the function returns.
#[test]
fn until_reaches_its_place() {
    let fixture = "c/loop_basic.c";
    let bug = Bug::new("c");
    bug.ok(&["run", &program(fixture), "--break", "work_basic"]);
    has(&bug.ok(&["until", &at(fixture, "end")]), &["stopped: reached in work_basic", &at(fixture, "end"), "sum=10"]);
    has(&bug.ok(&["until", &at(fixture, "body")]), &["main loop_basic.c:"]);
    bug.ok(&["stop"]);
    let fixture = "python/loop.py";
    let bug = Bug::new("python");
    bug.ok(&["run", "loop.py", "--break", &at(fixture, "body")]);
    bug.ok(&["unbreak", "--all"]);
    // A line alone is one of the current file.
    let number = (line(fixture, "after") + 1).to_string();
    has(&bug.ok(&["until", &number]), &["stopped: reached in work", "total=10"]);
}

/// `step` goes into a call, `next` over it, `out` and `finish` back.
fn into(language: &str, fixture: &str, outer: &str) {
    let bug = Bug::new(language);
    bug.ok(&["run", &program(fixture), "--break", &at(fixture, "call")]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["s"]), &["stopped: step in factorial", "n=5"]);
    has(&bug.ok(&["out"]), &[&format!("stopped: step in {outer}")]);
    bug.ok(&["restart"]);
    bug.ok(&["break", &at(fixture, "call")]);
    bug.ok(&["continue"]);
    has(&bug.ok(&["next"]), &[&format!("stopped: step in {outer}"), "result=120"]);
    has(&bug.ok(&["next", "--count", "50"]), &["exited: code 0", "factorial=120"]);
}

#[test]
fn steps_of_c() {
    into("c", "c/recursion.c", "main");
}

#[test]
fn steps_of_python() {
    into("python", "python/recursion.py", "<module>");
}

#[test]
fn stop_on_entry_is_the_programs_own_beginning() {
    for (language, fixture, function) in [("c", "c/loop_basic.c", "main"), ("python", "python/loop.py", "<module>")] {
        let bug = Bug::new(language);
        let text = bug.ok(&["run", &program(fixture), "--stop-on-entry"]);
        has(&text, &[&format!("stopped: entry in {function} ")]);
        has(&bug.ok(&["next"]), &["stopped: step in"]);
    }
}

/// A step over something long answers `running`, and `stop` still works.
#[test]
fn a_long_step_answers_running() {
    for (side, fixture) in [(&NATIVE, "c/fork.c"), (&PYTHON, "python/hang.py")] {
        let bug = side.bug();
        let mark = if side.language == "c" { "parent" } else { "spin" };
        bug.ok(&["run", &program(fixture), "--break", &at(fixture, mark), "--", "600000"]);
        bug.ok(&["unbreak", "--all"]);
        let how = if side.language == "c" { "next" } else { "continue" };
        let run = bug.run(&[how, "--wait", "500ms"]);
        assert_eq!(run.code, 0, "{run}");
        has(&run.stdout, &["running", "bugeye await"]);
        assert!(run.took < Duration::from_secs(2), "{:?}", run.took);
        let awaited = bug.run(&["await", "--timeout", "300ms"]);
        assert!(awaited.code == 0 && awaited.took < Duration::from_secs(2), "{awaited}");
        has(&awaited.stdout, &["running"]);
        let stopped = bug.run(&["stop"]);
        assert!(stopped.code == 0 && stopped.took < Duration::from_secs(5), "{stopped}");
    }
}

/// `status` never waits behind a client that waits; that client's end leaves the program as it is.
fn beside_a_waiting_client(side: &Side, fixture: &str) {
    let bug = side.bug();
    has(&bug.ok(&["run", &program(fixture), "--wait", "0.3s"]), &["running"]);
    let mut waiting = bug.spawn(&["await", "--timeout", "50"]);
    for _ in 0..5 {
        let status = bug.run(&["status"]);
        has(&status.stdout, &["running"]);
        assert!(status.took < Duration::from_secs(1), "{:?}", status.took);
    }
    has(&bug.ok(&["sessions"]), &["s1: running"]);
    assert!(waiting.is_running(), "the client does not wait");
    let pid = bug.json(&["status"])["pid"].clone();
    waiting.interrupt();
    let run = waiting.wait();
    assert_ne!(run.code, 0, "{run}");
    assert!(run.took < Duration::from_secs(30), "{:?}", run.took);
    // The program is where it was, and the next command works.
    let status = bug.json(&["status"]);
    assert_eq!((&status["state"], &status["pid"]), (&"running".into(), &pid));
    let paused = bug.run(&["pause"]);
    assert!(paused.code == 0 && paused.took < Duration::from_secs(5), "{paused}");
    // A client that waits is told of a stop that another one made.
    bug.ok(&["continue", "--wait", "0"]);
    let waiting = bug.spawn(&["await", "--timeout", "50"]);
    bug.ok(&["status"]);
    bug.ok(&["pause"]);
    let told = waiting.wait();
    has(&told.stdout, &["stopped: pause"]);
    lacks(&told.stderr, &["error"]);
}

#[test]
fn beside_a_waiting_client_under_lldb() {
    beside_a_waiting_client(&NATIVE, "c/hang.c");
}

#[test]
fn beside_a_waiting_client_under_debugpy() {
    beside_a_waiting_client(&PYTHON, "python/hang.py");
}
