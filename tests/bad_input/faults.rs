//! An adapter that follows a script of faults: whatever it does, every command is answered in time.

use std::fs;

use serde_json::{Value, json};

use crate::support::fixtures::program;
use crate::support::{Bug, Run, has, lacks};
use crate::within;

/// A home whose native adapter is the fake one, with short limits.
fn fake(script: &Value) -> Bug {
    let mut bug = Bug::new("c");
    let adapter = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/adapter.py");
    fs::create_dir_all(bug.home().join("config")).unwrap();
    bug.write(
        "config/config.toml",
        &format!(
            "[adapters.lldb-dap]\npath = \"{}\"\n[timeouts]\ninitialize_secs = 1\nlaunch_secs = 1\nrequest_secs = 1\ninspect_secs = 1\n",
            adapter.display()
        ),
    );
    let script = bug.write("script.json", &script.to_string());
    bug.env.push(("FAKE_SCRIPT".into(), script));
    bug.env.push(("FAKE_SPY".into(), bug.path("spy.log")));
    bug
}

fn fault(at: &str, what: &str) -> Value {
    json!({ "faults": [{ "at": at, "do": what }] })
}

fn spy(bug: &Bug) -> String {
    fs::read_to_string(bug.path("spy.log")).unwrap_or_default()
}

/// `run` to the fake program's stop.
fn run(bug: &Bug) -> Run {
    bug.run(&["run", "--wait", "3", "--break", "main", &program("c/exit_code.c")])
}

#[track_caller]
fn stopped(run: &Run) {
    assert_eq!(run.code, 0, "{run}");
    has(&run.stdout, &["stopped: "]);
}

#[test]
fn an_honest_one_is_driven_from_start_to_exit_in_every_order() {
    for order in ["lldb19", "lldb22", "gdb", "late"] {
        let bug = fake(&json!({ "order": order, "exit_code": 6 }));
        stopped(&run(&bug));
        has(&bug.ok(&["locals"]), &["i: int = 1"]);
        has(&bug.ok(&["print", "i + 1"]), &["2"]);
        has(&bug.ok(&["continue"]), &["exited: code 6"]);
        let spy = spy(&bug);
        let at = |word: &str| spy.find(word).unwrap_or_else(|| panic!("no {word} in {spy}"));
        assert!(at("< initialize") < at("< launch") && at("< launch") < at("< configurationDone"), "{order}: {spy}");
        assert!(at("< setFunctionBreakpoints") < at("< configurationDone"), "{order}: {spy}");
        lacks(&spy, &["readMemory", "setExpression", "dataBreakpointInfo"]);
    }
}

/// Faults before the program is held: the start fails with the code, and in time.
#[test]
fn a_start_that_meets_a_fault_fails_in_time() {
    for (at, what, code) in [
        ("initialize", "silent", 4),
        ("initialize", "never", 4),
        ("initialize", "exit", 5),
        ("initialize", "signal", 5),
        ("initialize", "close", 5),
        ("initialize", "garbage", 5),
        ("initialize", "huge", 5),
        ("initialize", "half", 4),
        ("initialize", "refuse", 1),
        ("launch", "silent", 4),
        ("launch", "exit", 5),
        ("launch", "garbage", 5),
        ("launch", "refuse", 1),
        ("setFunctionBreakpoints", "silent", 4),
        ("setFunctionBreakpoints", "signal", 5),
        ("setFunctionBreakpoints", "huge", 5),
    ] {
        let bug = fake(&fault(at, what));
        let start = bug.run(&["start", "--break", "main", &program("c/exit_code.c")]);
        assert_eq!(start.code, code, "{what} at {at}: {start}");
        has(&start.stderr, &["error: "]);
        if code != 1 {
            has(&start.stderr, &["hint: "]);
        }
        within(&start, 3000);
        // Nothing stays half-way: whatever is known of it is over.
        let status = bug.run(&["status"]);
        assert!(status.code == 3 || status.stdout.contains("lost"), "{what} at {at}: {status}");
        if what == "garbage" {
            has(&start.stderr, &["Segmentation fault"]);
        }
    }
}

/// Faults while the program is let go: the run ends in time, and the session can still be ended.
#[test]
fn a_run_that_meets_a_fault_ends_in_time() {
    for (at, what, expected) in [
        ("configurationDone", "silent", "running"),
        ("configurationDone", "exit", "5"),
        ("configurationDone", "refuse", "1"),
        ("stackTrace", "never", "stopped"),
        ("stackTrace", "silent", "stopped"),
        ("stackTrace", "types", "stopped"),
        ("stackTrace", "garbage", "5"),
        ("stackTrace", "half", "stopped"),
        ("stackTrace", "refuse", "stopped"),
        ("scopes", "never", "stopped"),
        ("scopes", "types", "stopped"),
        ("variables", "never", "stopped"),
        ("variables", "types", "stopped"),
        ("variables", "duplicate", "stopped"),
        ("variables", "signal", "5"),
        ("threads", "never", "stopped"),
        ("threads", "reverse", "stopped"),
        ("threads", "orphan", "stopped"),
        ("threads", "flood", "stopped"),
        ("configurationDone", "twice", "stopped"),
        ("initialize", "types", "stopped"),
        ("setFunctionBreakpoints", "types", "stopped"),
        ("launch", "duplicate", "stopped"),
        ("configurationDone", "slow", "stopped"),
    ] {
        let bug = fake(&fault(at, what));
        let run = run(&bug);
        match expected {
            "running" | "stopped" => {
                assert_eq!(run.code, 0, "{what} at {at}: {run}");
                assert!(run.stdout.contains(expected), "{what} at {at}: {run}");
            }
            code => assert_eq!(run.code.to_string(), code, "{what} at {at}: {run}"),
        }
        within(&run, 5000);
        let stop = bug.run(&["stop", "--all"]);
        assert_eq!(stop.code, 0, "{what} at {at}: {stop}");
        within(&stop, 5000);
    }
}

/// Faults under a command at a stop: the command fails, or the session is lost; never a hang.
#[test]
fn a_command_that_meets_a_fault_is_answered_in_time() {
    let cases: [(&str, u32, &str, &[&str], &[i32]); 15] = [
        ("evaluate", 1, "never", &["eval", "1"], &[4]),
        ("evaluate", 1, "refuse", &["eval", "1"], &[1]),
        ("evaluate", 1, "types", &["eval", "1"], &[0]),
        ("evaluate", 1, "exit", &["eval", "1"], &[5]),
        ("scopes", 2, "never", &["locals"], &[0]),
        ("scopes", 2, "half", &["locals"], &[0]),
        ("scopes", 2, "close", &["locals"], &[5]),
        ("threads", 2, "never", &["threads"], &[4]),
        ("setFunctionBreakpoints", 2, "never", &["break", "other"], &[0]),
        ("setFunctionBreakpoints", 2, "garbage", &["break", "other"], &[0, 5]),
        ("continue", 1, "never", &["continue", "--wait", "2"], &[0]),
        ("continue", 1, "refuse", &["continue"], &[1]),
        ("continue", 1, "signal", &["continue"], &[5]),
        ("continue", 1, "early", &["continue"], &[0]),
        ("continue", 1, "slow", &["continue"], &[0]),
    ];
    for (at, nth, what, words, codes) in cases {
        let bug = fake(&json!({ "stops": 3, "faults": [{ "at": at, "nth": nth, "do": what }] }));
        stopped(&run(&bug));
        let run = bug.run(words);
        assert!(codes.contains(&run.code), "{what} at {at} {nth}: {run}");
        within(&run, 4500);
        let status = bug.run(&["status"]);
        assert_eq!(status.code, 0, "{what} at {at}: {status}");
        within(&status, 500);
        if what == "refuse" || what == "types" {
            has(&bug.ok(&["locals"]), &["i: int = 1"]);
        }
        let stop = bug.run(&["stop", "--all"]);
        assert_eq!(stop.code, 0, "{what} at {at}: {stop}");
        within(&stop, 5000);
    }
}

#[test]
fn a_stop_before_the_answer_to_continue_is_seen() {
    let bug = fake(&json!({ "stops": 2, "faults": [{ "at": "continue", "do": "early" }] }));
    stopped(&run(&bug));
    let run = bug.run(&["continue"]);
    stopped(&run);
    within(&run, 1000);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn one_that_does_not_leave_is_ended() {
    for what in ["stay", "never", "silent", "half"] {
        let bug = fake(&fault("disconnect", what));
        stopped(&run(&bug));
        let stop = bug.run(&["stop"]);
        assert_eq!(stop.code, 0, "{what}: {stop}");
        within(&stop, 5000);
        let left = bug.processes().into_iter().filter(|(_, line)| line.contains("adapter.py")).count();
        assert_eq!(left, 0, "{what}");
    }
}

#[test]
fn text_from_an_adapter_never_reaches_the_terminal_as_it_is() {
    let hostile = "\u{1b}[31mred\u{1b}[0m \u{202e}evil\u{7}";
    let bug = fake(&json!({
        "stops": 2,
        "faults": [{ "at": "continue", "do": "refuse", "message": hostile }],
        "replies": {
            "threads": { "threads": [{ "id": 1, "name": hostile }] },
            "stackTrace": { "stackFrames": [{ "id": 1, "name": hostile, "line": 1, "source": { "path": format!("/{hostile}.c") } }] },
            "variables": { "variables": [{ "name": hostile, "value": hostile, "type": hostile, "variablesReference": 0 }] },
            "evaluate": { "result": hostile, "type": hostile, "variablesReference": 0 },
        },
    }));
    let texts = [
        run(&bug),
        bug.run(&["locals"]),
        bug.run(&["backtrace"]),
        bug.run(&["threads"]),
        bug.run(&["print", "x"]),
        bug.run(&["eval", "x"]),
        bug.run(&["raw", "x"]),
        bug.run(&["status"]),
        bug.run(&["continue"]),
    ];
    for run in texts {
        let all = format!("{}{}", run.stdout, run.stderr);
        assert!(!all.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{all:?}");
        assert!(all.contains("red") || run.words == "status", "{run}");
    }
    bug.ok(&["stop"]);
}

/// Silence after any number of requests: the run comes to an answer, and the session can be ended.
#[test]
fn one_that_falls_silent_anywhere_holds_nobody_up() {
    for after in 1..=9 {
        let bug = fake(&json!({ "faults": [{ "at": "*", "nth": after, "do": "silent" }] }));
        let run = run(&bug);
        assert!([0, 4].contains(&run.code), "after {after}: {run}");
        within(&run, 5500);
        let stop = bug.run(&["stop", "--all"]);
        assert_eq!(stop.code, 0, "after {after}: {stop}");
        within(&stop, 5000);
    }
}
