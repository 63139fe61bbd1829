//! Breakpoints: every way to set one, and what becomes of it.

use super::{NATIVE, PYTHON, Side};
use crate::support::{Bug, has, lacks, local};

/// What `i` was at each stop until the end.
fn stops(bug: &Bug, first: &[&str]) -> Vec<String> {
    let mut report = bug.json(first);
    let mut seen = Vec::new();
    while report["state"] == "stopped" {
        seen.push(local(&report, "i"));
        report = bug.json(&["continue"]);
    }
    assert_eq!(report["ending"]["code"], 0, "{report}");
    seen
}

/// One breakpoint with these words, run to the end: where it stopped.
fn with(side: &Side, bug: &Bug, words: &[&str]) -> Vec<String> {
    let body = side.at("body");
    let words: Vec<&str> = ["break", &body].iter().copied().chain(words.iter().copied()).collect();
    bug.ok(&words);
    let seen = stops(bug, &["run", &side.program()]);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["stop", "--all"]);
    seen
}

fn kinds(side: &Side) {
    let bug = side.bug();
    assert_eq!(with(side, &bug, &["--if", "i == 3"]), ["3"]);
    assert_eq!(with(side, &bug, &["--condition", "i > 2"]), ["3", "4"]);
    assert_eq!(with(side, &bug, &["--hits", "3"]), ["2", "3", "4"]);
    assert_eq!(with(side, &bug, &["--hit-count", "5"]), ["4"]);
    assert_eq!(with(side, &bug, &["--once"]), ["0"]);
    assert_eq!(with(side, &bug, &["--if", "i > 0", "--hits", "2"]).first().map(String::as_str), Some("2"));

    // A log breakpoint does not stop, loses nothing, and may have a condition.
    let (body, total) = (side.at("body"), side.total);
    bug.ok(&["break", &body, "--log", &format!("i={{i}} sum={{{total}}}")]);
    let end = bug.ok(&["run", &side.program()]);
    has(&end, &["exited: code 0", "i=0 sum=0", "i=1 sum=0", "i=2 sum=1", "i=3 sum=3", "i=4 sum=6"]);
    bug.ok(&["break", &body, "--log", "pass {i}", "--if", "i == 2"]);
    let end = bug.ok(&["run", &side.program()]);
    has(&end, &["pass 2"]);
    lacks(&end, &["pass 1", "pass 3"]);
}

#[test]
fn kinds_of_breakpoints_under_lldb() {
    kinds(&NATIVE);
}

#[test]
fn kinds_of_breakpoints_under_debugpy() {
    kinds(&PYTHON);
}

/// A step out of, or over, a function that calls itself is as deep as it began, whatever is logged on the way.
#[test]
fn a_step_in_a_recursion_ends_where_it_began() {
    let bug = Bug::new("python");
    let text =
        "def fact(n):\n    if n < 2:\n        return 1\n    m = fact(n - 1)\n    return n * m\n\nprint(fact(12))\n";
    let file = bug.write("fact.py", text);
    let at = |line: u32| format!("{file}:{line}");
    for (step, n) in [("next", "4"), ("finish", "5")] {
        bug.ok(&["break", &at(4), "--if", "n == 4"]);
        assert_eq!(local(&bug.json(&["run", "--", "python3", &file]), "n"), "4");
        bug.ok(&["unbreak", "--all"]);
        bug.ok(&["break", &at(2), "--log", "n is {n}"]);
        bug.ok(&["break", &at(3), "--hits", "9"]);
        let report = bug.json(&[step]);
        assert_eq!((report["stop"]["reason"].as_str(), local(&report, "n")), (Some("step"), n.into()), "{report}");
        assert_eq!(report["output"]["log"], "n is 3\nn is 2\nn is 1\n", "{report}");
        has(&bug.ok(&["continue"]), &["479001600", "exited: code 0"]);
        bug.ok(&["unbreak", "--all"]);
    }
}

fn words(side: &Side) {
    let bug = side.bug();
    side.table(
        &bug,
        &[
            ("breaks", 0, &["no breakpoints"]),
            ("break {body}", 0, &["breakpoint 1 {body}: pending (no session is live)"]),
            ("b {after}", 0, &["breakpoint 2 {after}"]),
            ("breakpoint add {end}", 0, &["breakpoint 3 {end}"]),
            ("breakpoint add -f {function}", 0, &["breakpoint 4 {function}"]),
            ("break {body} --if 'i == 1'", 0, &["breakpoint 1 {body}", "if i == 1", "it was changed"]),
            ("breakpoint list", 0, &["breakpoint 1", "breakpoint 2", "breakpoint 3", "breakpoint 4"]),
            ("breaks", 0, &["if i == 1"]),
            ("unbreak 2 3", 0, &["breakpoint 1", "breakpoint 4"]),
            ("breakpoint remove 77", 3, &["there is no breakpoint 77"]),
            ("disable 1", 0, &["breakpoint 1 {body}: disabled"]),
            ("break", 2, &["Usage: bugeye break"]),
            ("break {file}:0", 2, &["counted from 1"]),
            ("break no_such_file.xyz:3", 0, &["pending (", "no file no_such_file.xyz from here"]),
            ("unbreak 5", 0, &["breakpoint 4"]),
        ],
    );
    bug.ok(&["start", &side.program()]);
    side.table(
        &bug,
        &[
            ("breaks", 0, &["breakpoint 1 {body}: disabled", "breakpoint 4 {function}: {bound}"]),
            ("continue", 0, &["stopped: breakpoint 4 (hit 1) in {function}"]),
            ("breakpoint enable 1", 0, &["breakpoint 1 {body}: verified"]),
            ("continue", 0, &["stopped: breakpoint 1 (hit 1)", "i=1"]),
            ("breaks", 0, &["hits 1"]),
            ("breakpoint disable 1", 0, &["disabled"]),
            ("break {end} --once", 0, &["verified", "once"]),
            ("continue", 0, &["stopped: breakpoint"]),
            ("breakpoint remove 1", 0, &["breakpoint 4"]),
            ("unbreak --all", 0, &["no breakpoints"]),
            ("continue", 0, &["exited: code 0"]),
        ],
    );
}

#[test]
fn words_for_breakpoints_under_lldb() {
    words(&NATIVE);
}

#[test]
fn words_for_breakpoints_under_debugpy() {
    words(&PYTHON);
}

/// Lines without code, functions that are not there, conditions that can't be read: said, never silent.
fn honest(side: &Side) {
    let bug = side.bug();
    bug.ok(&["start", &side.program()]);
    let first = bug.ok(&["break", &format!("{}:1", side.file())]);
    // A docstring is code to Python; an `#include` is none to C.
    has(&first, &[if side.adapter == NATIVE.adapter { "pending (no code" } else { "verified" }]);
    bug.run(&["break", &format!("{}:9999", side.file())]).fails(1, "there is no line 9999");
    has(&bug.ok(&["break", "no_such_function_anywhere"]), &["pending ("]);
    bug.ok(&["unbreak", "--all"]);
    let bad = bug.run(&["break", &side.at("body"), "--if", "i ==="]);
    if bad.code == 0 {
        // Found out at the first hit, where the adapter has no parser in reach before it.
        has(&bug.ok(&["continue"]), &["condition failed", "stopped: breakpoint"]);
    } else {
        bad.fails(1, "can't be parsed");
        has(&bug.ok(&["breaks"]), &["no breakpoints"]);
    }
    bug.ok(&["stop"]);
    // A name that does not exist parses, and is told at the hit.
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["break", &side.at("body"), "--if", "no_such_name > 1"]);
    has(&bug.ok(&["run", &side.program()]), &["condition failed", "no_such_name"]);
}

#[test]
fn honest_about_breakpoints_under_lldb() {
    honest(&NATIVE);
}

#[test]
fn honest_about_breakpoints_under_debugpy() {
    honest(&PYTHON);
}

/// Those of `break` are the project's; those of `start --break` and `--once` are the session's.
#[test]
fn breakpoints_are_kept_across_sessions_and_daemons() {
    for side in [&NATIVE, &PYTHON] {
        let bug = side.bug();
        let (body, after) = (side.at("body"), side.at("after"));
        bug.ok(&["break", &body, "--if", "i == 2"]);
        has(&bug.ok(&["run", &side.program(), "--break", &after]), &["stopped: breakpoint 2"]);
        bug.ok(&["stop"]);
        let kept = bug.ok(&["breaks"]);
        has(&kept, &["breakpoint 1", "if i == 2"]);
        lacks(&kept, &["breakpoint 2", &after]);
        bug.close();
        has(&bug.ok(&["breaks"]), &["breakpoint 1", "if i == 2"]);
        has(&bug.ok(&["run", &side.program()]), &["stopped: breakpoint 1 (hit 1)", "i=2"]);
        has(&bug.ok(&["continue"]), &["exited"]);
    }
}

#[test]
fn what_is_caught_is_listed_and_removed() {
    for side in [&NATIVE, &PYTHON] {
        let bug = side.bug();
        side.table(
            &bug,
            &[
                ("catch", 0, &["catching what the adapter does by itself"]),
                ("catch throw uncaught", 0, &["catch 1: throw", "catch 2: uncaught"]),
                ("catch list", 0, &["catch 1: throw"]),
                ("catch remove 1", 0, &["catch 1: uncaught"]),
                ("catch remove 9", 3, &["there is no catch 9"]),
                ("catch none", 0, &["catching nothing"]),
                ("catch default", 0, &["by itself"]),
            ],
        );
        bug.ok(&["start", &side.program()]);
        // With a program to ask, a word that means nothing to its adapter is refused with those that do.
        let unknown = bug.run(&["catch", "no_such_filter"]);
        assert_ne!(unknown.code, 0, "{unknown}");
        has(&unknown.stderr, &["no_such_filter", "hint: "]);
        has(&bug.ok(&["catch", "list"]), &["by itself"]);
    }
}

#[test]
fn a_breakpoint_follows_its_line_through_an_edit() {
    let mut bug = NATIVE.bug();
    bug.cwd = bug.home().to_path_buf();
    let text = "def f(n):\n    total = n\n    return total + 1\n\n\nf(3)\n";
    let file = bug.write("edited.py", text);
    bug.write("pyproject.toml", "");
    has(&bug.ok(&["break", "edited.py:3"]), &["breakpoint 1 edited.py:3"]);
    has(&bug.ok(&["run", &file]), &["in f edited.py:3"]);
    bug.ok(&["stop"]);
    bug.write("edited.py", &format!("# one\n# two\n{text}"));
    has(&bug.ok(&["run", &file]), &["in f edited.py:5", "total=3"]);
    has(&bug.ok(&["breaks"]), &["breakpoint 1 edited.py:3 (now line 5)", "verified"]);
}
