//! Places, conditions, threads, frames, breakpoints and expressions that do not exist.

use crate::refused;
use crate::support::fixtures::{at, line, program};
use crate::support::{Bug, has, lacks};

#[test]
fn places_that_are_none_are_refused_or_said_to_be_pending() {
    let bug = Bug::new("c");
    let program = program("c/loop_basic.c");
    refused(&bug, &["start", "--break", "loop_basic.c:999", &program], 1, "there is no line 999");
    // What to write is part of the complaint.
    bug.run(&["start", "--break", "*zz", &program]).fails(2, "write *0x401000");
    bug.run(&["start", "--break", "loop_basic.c:0", &program]).fails(2, "counted from 1");
    refused(&bug, &["break", "loop_basic.c:999"], 1, "there is no line 999");
    let text = bug.ok(&["start", "--break", "hang.c:8", "--break", "nosuch", "--break", "nosuch.c:3", &program]);
    has(&text, &["hang.c:8: pending (no code", "nosuch: pending (no function", "nosuch.c:3: pending"]);
    // A comment and a blank line are moved to the next code.
    let text = bug.ok(&["break", "loop_basic.c:2"]);
    has(&text, &["moved to line 4"]);
    has(&bug.ok(&["continue"]), &["loop_basic.c:4"]);
    bug.ok(&["stop"]);
}

#[test]
fn a_comment_in_python_moves_too() {
    let bug = Bug::new("python");
    let text = bug.ok(&["start", "--break", "loop.py:2", "loop.py"]);
    has(&text, &["loop.py:2: "]);
    lacks(&text, &["loop.py:2: verified"]);
    bug.ok(&["stop"]);
}

#[test]
fn a_condition_that_does_not_parse_is_refused_before_a_python_program_runs() {
    let bug = Bug::new("python");
    let place = at("python/loop.py", "body");
    bug.ok(&["break", &place, "--if", "i =="]);
    bug.ok(&["break", &at("python/loop.py", "end")]);
    let text = bug.ok(&["start", "loop.py"]);
    has(&text, &["the condition can't be parsed", "SyntaxError"]);
    // It is not set at all: the first stop is the other one.
    has(&bug.ok(&["continue"]), &[&format!("loop.py:{}", line("python/loop.py", "end"))]);
    // The same while the program stands.
    refused(&bug, &["break", &place, "--if", "i >>> 3"], 1, "the condition can't be parsed");
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    // One that parses and fails stops, and says so.
    bug.ok(&["break", &place, "--if", "nosuch > 3"]);
    let text = bug.ok(&["run", "loop.py"]);
    has(&text, &["condition failed", "nosuch"]);
    bug.ok(&["stop", "--all"]);
}

#[test]
fn a_condition_that_does_not_parse_stops_a_c_program_and_says_so() {
    for condition in ["i ==", "nosuch > 3"] {
        let bug = Bug::new("c");
        bug.ok(&["break", &at("c/loop_basic.c", "body"), "--if", condition]);
        let text = bug.ok(&["run", &program("c/loop_basic.c")]);
        has(&text, &["condition failed", "i=0"]);
        // Said once.
        let text = bug.ok(&["continue"]);
        has(&text, &["i=1"]);
        lacks(&text, &["condition failed"]);
        bug.ok(&["stop"]);
    }
}

#[test]
fn threads_frames_breakpoints_sessions_that_are_not_there() {
    let bug = Bug::new("c");
    refused(&bug, &["-s", "nosuch", "status"], 3, "there is no session `nosuch`");
    refused(&bug, &["use", "nosuch"], 3, "there is no session `nosuch`");
    refused(&bug, &["unbreak", "77"], 3, "there is no breakpoint 77");
    refused(&bug, &["disable", "77"], 3, "there is no breakpoint 77");
    bug.ok(&["run", "--break", &at("c/recursion.c", "bottom"), &program("c/recursion.c")]);
    refused(&bug, &["thread", "99"], 3, "there is no thread 99");
    refused(&bug, &["locals", "--thread", "99"], 3, "there is no thread 99");
    refused(&bug, &["frame", "99"], 3, "there is no frame 99");
    refused(&bug, &["frame", "4294967295"], 3, "there is no frame 4294967295");
    refused(&bug, &["locals", "--frame", "4294967295"], 3, "there is no frame");
    refused(&bug, &["print", "n", "--frame", "99"], 3, "there is no frame 99");
    refused(&bug, &["eval", "n", "--frame", "99"], 3, "there is no frame 99");
    refused(&bug, &["down"], 1, "innermost");
    assert_eq!(bug.run(&["frame", "-1"]).code, 2);
    assert_eq!(bug.run(&["frame", "x"]).code, 2);
    // None of that moved the selection.
    assert_eq!(bug.ok(&["print", "n"]), bug.ok(&["print", "n", "--frame", "0"]));
    refused(&bug, &["-s", "nosuch", "locals"], 3, "there is no session `nosuch`");
    bug.ok(&["stop"]);
}

#[test]
fn expressions_that_are_none() {
    let bug = Bug::new("c");
    bug.ok(&["run", "--break", &at("c/loop_basic.c", "body"), &program("c/loop_basic.c")]);
    for words in [&["print", "i sum"][..], &["print", "((("], &["print", "nosuch"], &["print", "i +"], &["print", ""]] {
        refused(&bug, words, 1, "can't be read");
    }
    for words in [&["print", "i = 3"][..], &["print", "i++"], &["print", "work_basic(1)"], &["print", "`quit"]] {
        refused(&bug, words, 1, "may change the program");
    }
    for words in [&["eval", "nosuch()"][..], &["set", "nosuch", "3"], &["set", "i", "((("]] {
        refused(&bug, words, 1, "can't be evaluated");
    }
    let long = "i + ".repeat(20_000) + "i";
    let run = bug.run(&["print", &long]);
    assert!(run.code == 0 || run.code == 1, "{}", run.code);
    refused(&bug, &["catch", "nonsense"], 6, "can't catch");
    let text = bug.ok(&["print", "i"]);
    has(&text, &["0"]);
    bug.ok(&["stop"]);
    let bug = Bug::new("python");
    bug.ok(&["run", "--break", &at("python/loop.py", "body"), "loop.py"]);
    for words in [&["print", "i total"][..], &["print", "((("], &["print", "nosuch"]] {
        refused(&bug, words, 1, "can't be read");
    }
    bug.ok(&["stop"]);
}
