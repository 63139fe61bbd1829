//! Programs that end by a signal: said as such, never as an exit code.

use crate::support::fixtures::{at, program};
use crate::support::{Bug, functions, has, lacks, local};

#[test]
fn a_crash_of_c_stops_first_and_then_ends_by_its_signal() {
    let bug = Bug::new("c");
    let fixture = "c/crash.c";
    let report = bug.json(&["run", &program(fixture)]);
    assert_eq!(report["stop"]["reason"]["signal"]["name"], "SIGSEGV");
    assert_eq!(functions(&report["stop"]["frames"]), ["third_value", "main"]);
    assert_eq!(local(&report, "third"), "NULL");
    assert_eq!(local(&report, "seen"), "3");
    assert_eq!(report["output"]["stdout"], "before\n");
    has(&bug.ok(&["context"]), &["stopped: signal SIGSEGV", &at(fixture, "crash")]);
    has(&bug.ok(&["exception"]), &["SIGSEGV"]);

    let end = bug.ok(&["continue"]);
    has(&end, &["ended by SIGSEGV"]);
    lacks(&end, &["code", "11"]);
    has(&bug.ok(&["status"]), &["ended by SIGSEGV"]);
    bug.run(&["continue"]).fails(3, "ended by SIGSEGV");
    let again = bug.json(&["restart", "--run"]);
    assert_eq!(again["state"], "stopped");
    let ending = &bug.json(&["continue"])["ending"];
    assert_eq!((&ending["kind"], &ending["signal"]), (&"signalled".into(), &"SIGSEGV".into()));
}

#[test]
fn an_abort_of_c_is_shown_in_the_programs_own_code() {
    let bug = Bug::new("c");
    let report = bug.json(&["run", &program("c/abort.c")]);
    assert_eq!(report["stop"]["reason"]["signal"]["name"], "SIGABRT");
    assert_eq!(report["output"]["stderr"], "balance is -20\n");
    let stack = bug.ok(&["backtrace"]);
    has(&stack, &[&format!("check {}", at("c/abort.c", "abort")), "main abort.c:"]);
    // What the library was doing is of no interest; whose fault it was is.
    let context = bug.ok(&["context"]);
    has(&context, &["balance=-20"]);
    lacks(&context, &["<error"]);
    has(&bug.ok(&["continue"]), &["ended by SIGABRT"]);
}

#[test]
fn an_exit_code_that_looks_like_a_signal_stays_one() {
    let bug = Bug::new("c");
    for (program, code) in [(program("c/exit_code.c"), "11"), (program("c/exit_code.c"), "6")] {
        has(&bug.ok(&["run", &program, "--", code]), &[&format!("exited: code {code}")]);
    }
    let run = bug.run(&["run", &program("c/exit_code.c"), "--propagate", "--", "7"]);
    assert_eq!(run.code, 7, "{run}");
    bug.ok(&["stop", "--all"]);
}

#[test]
fn crashes_of_python_end_by_their_signal() {
    let bug = Bug::new("python");
    for (words, signal) in [(&["run", "crash.py"][..], "SIGSEGV"), (&["run", "crash.py", "--", "abort"], "SIGABRT")] {
        let end = bug.ok(words);
        has(&end, &[&format!("ended by {signal}"), "output: before"]);
        lacks(&end, &["exited"]);
        let ending = &bug.json(&["status"])["ending"];
        assert_eq!((&ending["kind"], &ending["signal"]), (&"signalled".into(), &signal.into()));
    }
    has(&bug.ok(&["run", "exit.py", "--", "11"]), &["exited: code 11"]);
    // An exit on purpose is no exception.
    has(&bug.ok(&["run", "exit.py", "--", "42"]), &["exited: code 42"]);
}
