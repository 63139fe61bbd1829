//! Standard input: from a file, and typed while the program waits for it.

use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, local, until};

#[test]
fn a_file_is_the_standard_input_of_c() {
    let bug = Bug::new("c");
    let fixture = "c/loop_stdin.c";
    let file = bug.write("four", "4\n");
    let mut report = bug.json(&["run", &program(fixture), "--stdin", &file, "--break", &at(fixture, "body")]);
    let mut seen = Vec::new();
    while report["state"] == "stopped" {
        seen.push((local(&report, "i"), local(&report, "acc")));
        report = bug.json(&["continue"]);
    }
    let expected = [("1", "1"), ("2", "1"), ("3", "2"), ("4", "6")];
    assert_eq!(seen, expected.map(|(i, acc)| (i.to_string(), acc.to_string())));
    assert_eq!(report["output"]["stdout"], "acc=24\n");
}

#[test]
fn a_file_is_the_standard_input_of_python() {
    let bug = Bug::new("python");
    let file = bug.write("lines", "one\ntwo\n");
    let report = bug.json(&["run", "stdin.py", "--stdin", &file]);
    assert_eq!(report["output"]["stdout"], "got: one\ngot: two\nend after 2\n");
    bug.run(&["run", "stdin.py", "--stdin", "no-such-file"]).fails(3, "no-such-file");
}

fn typed(language: &str, fixture: &str) {
    let bug = Bug::new(language);
    has(&bug.ok(&["run", &program(fixture), "--wait", "0.2s"]), &["running"]);
    let waits = || {
        until("it waits for input", || {
            let status = bug.json(&["status"]);
            if status["waiting_for_input"] == true { Ok(()) } else { Err(status.to_string()) }
        });
    };
    waits();
    has(&bug.ok(&["status"]), &["waiting for input"]);
    has(&bug.ok(&["input", "hello", "you"]), &["sent 10 bytes"]);
    until("it answers", || {
        let text = bug.ok(&["output", "--all"]);
        if text.contains("got: hello you\n") { Ok(()) } else { Err(text) }
    });
    waits();
    // Stopped in the middle of it, a look, and on.
    has(&bug.ok(&["break", &at(fixture, "answer")]), &["verified"]);
    bug.ok(&["input", "--no-newline", "-"]);
    bug.ok(&["input", "again"]);
    has(&bug.ok(&["await", "--timeout", "20"]), &["stopped: breakpoint", "-again"]);
    has(&bug.ok(&["input", "last", "--eof"]), &["ended the program's input"]);
    has(&bug.ok(&["continue"]), &["got: -again", "stopped: breakpoint"]);
    has(&bug.ok(&["continue"]), &["got: last", "end after 3", "exited: code 0"]);
    bug.run(&["input", "more"]).fails(3, "the program has ended");
}

#[test]
fn input_typed_to_c() {
    typed("c", "c/echo.c");
}

#[test]
fn input_typed_to_python() {
    typed("python", "python/stdin.py");
}
