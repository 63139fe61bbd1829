//! Looking commands, in one session each.

use super::{NATIVE, PYTHON, Side};
use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, lacks, until};

/// Commands that leave the program where it is.
const LOOKING: &[(&str, i32, &[&str])] = &[
    (
        "context",
        0,
        &["stopped: breakpoint 1 (hit 1) in {function} {body}", "i=0", "{total}=0", "stack: {function} < main"],
    ),
    ("where --context 1", 0, &["stopped: breakpoint 1"]),
    ("source", 0, &[">", "BREAK:body", "BREAK:after"]),
    ("list", 0, &["BREAK:body"]),
    ("source --function", 0, &["{function}", "BREAK:body", "BREAK:after"]),
    ("source {end} --context 0", 0, &["BREAK:end"]),
    ("source {file}:99999", 1, &["no line 99999"]),
    ("source no_such.c:1", 3, &["no_such.c"]),
    ("backtrace", 0, &[">0 {function} {body}", " 1 main {file}:"]),
    ("bt", 0, &[">0 {function}"]),
    ("stack 1", 0, &[">0 {function}", "more"]),
    ("backtrace --limit 1", 0, &["more"]),
    ("backtrace --locals", 0, &["    i = 0", "    {total} = 0", "    n = 5"]),
    ("backtrace --all", 0, &["{function}"]),
    ("up", 0, &["frame 1 main {file}:"]),
    ("context", 0, &["main {file}:"]),
    ("down", 0, &["frame 0 {function} {body}", "i=0"]),
    ("down", 1, &["innermost"]),
    ("frame 1", 0, &["frame 1 main"]),
    ("frame", 0, &["frame 1 main"]),
    ("frame 0", 0, &["frame 0 {function}"]),
    ("frame 1000", 3, &["there is no frame 1000"]),
    ("threads", 0, &[">", "stopped {function} {body}"]),
    ("thread", 0, &["frame 0 {function} {body}, thread"]),
    ("thread 999999", 3, &["there is no thread 999999", "bugeye threads"]),
    ("locals", 0, &["i: int = 0", "{total}: int = 0", "n: int = 5"]),
    ("locals --frame 1 --depth 2", 0, &[]),
    ("args", 0, &["n: int = 5"]),
    ("print i", 0, &["i = 0\n"]),
    ("p n + 1", 0, &["n + 1 = 6\n"]),
    ("p -e i -e n", 0, &["i = 0\nn = 5\n"]),
    ("print n -e i", 0, &["n = 5\ni = 0\n"]),
    ("print n --type", 0, &["n: int = 5\n"]),
    ("print n --format hex", 0, &["n = 0x5\n"]),
    ("print n --format bin", 0, &["n = 0b101\n"]),
    ("print n --format binary", 0, &["n = 0b101\n"]),
    ("print n --format dec", 0, &["n = 5\n"]),
    ("print i --format address", 0, &["i = 0x"]),
    ("print no_such_name", 1, &["no_such_name", "bugeye locals"]),
    ("print n --format roman", 2, &["roman"]),
    ("print", 2, &["Usage: bugeye print"]),
    ("exception", 3, &["did not stop on an exception"]),
    ("output", 0, &["nothing new"]),
];

fn looks(side: &Side) {
    let bug = side.at_body();
    side.table(&bug, LOOKING);
    // The same in JSON, with its envelope.
    let run = bug.run(&["--json", "print", "n"]);
    let envelope = run.json();
    assert_eq!(envelope["result"]["values"][0]["value"]["text"], "5");
    assert_eq!(envelope["session"], "s1");
    assert!(envelope["via"].as_str().unwrap().starts_with(side.adapter), "{envelope}");
    let failed = bug.run(&["--json", "print", "no_such_name"]);
    assert_eq!(failed.code, 1, "{failed}");
    assert_eq!(failed.json()["ok"], false);
    has(failed.json()["error"]["message"].as_str().unwrap(), &["no_such_name"]);
    assert_eq!(bug.json(&["args"])["variables"].as_array().unwrap().len(), 1);
    // A small window really is one.
    assert_eq!(bug.json(&["context", "--context", "1"])["source"]["lines"].as_array().unwrap().len(), 3);
    assert_eq!(bug.json(&["source", "--context", "2"])["lines"].as_array().unwrap().len(), 5);
}

#[test]
fn looking_under_lldb() {
    looks(&NATIVE);
}

#[test]
fn looking_under_debugpy() {
    looks(&PYTHON);
}

/// Reading does not change the program; `eval` and `set` may, and do.
fn changes(side: &Side) {
    let bug = side.at_body();
    let total = side.total;
    side.table(
        &bug,
        &[
            ("eval n * 2", 0, &["n * 2 = 10"]),
            ("set {total} 100", 0, &["{total} = 100"]),
            ("print {total}", 0, &["{total} = 100"]),
            ("set '{total} = 200'", 0, &["{total} = 200"]),
            ("set {total}", 2, &["no new value"]),
            ("eval no_such_name", 1, &["no_such_name"]),
            ("print {total}", 0, &["{total} = 200"]),
        ],
    );
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["sum=210", "exited: code 0"]);
    bug.run(&["print", total]).fails(3, "the program has exited with code 0");
}

#[test]
fn changing_under_lldb() {
    let bug = NATIVE.at_body();
    bug.run(&["print", "sum = 7"]).fails(1, "bugeye eval");
    bug.run(&["print", "i++"]).fails(1, "may change the program");
    bug.run(&["print", "`shell id"]).fails(1, "");
    // Python would make a new variable of it, as the language does.
    bug.run(&["set", "no_such_name", "3"]).fails(1, "no_such_name");
    has(&bug.ok(&["print", "sum"]), &["sum = 0"]);
    has(&bug.ok(&["eval", "sum = 7"]), &["= 7"]);
    has(&bug.ok(&["print", "sum"]), &["sum = 7"]);
    drop(bug);
    changes(&NATIVE);
}

#[test]
fn changing_under_debugpy() {
    changes(&PYTHON);
}

#[test]
fn raw_is_the_debuggers_own_language() {
    let bug = NATIVE.at_body();
    has(&bug.ok(&["raw", "frame", "variable", "n"]), &["(int) n = 5"]);
    has(&bug.ok(&["raw", "version"]), &["lldb version 19"]);
    drop(bug);
    let bug = PYTHON.at_body();
    has(&bug.ok(&["raw", "n * 100"]), &["500"]);
    bug.ok(&["raw", "total = 31"]);
    has(&bug.ok(&["print", "total"]), &["total = 31"]);
}

/// What the program prints, by stream and by reader.
#[test]
fn output_is_kept_and_read_once() {
    let bug = Bug::new("c");
    let fixture = "c/stderr.c";
    let program = program(fixture);
    let turn = at(fixture, "turn");
    has(&bug.ok(&["run", &program, "--break", &turn]), &["output: out 0"]);
    has(&bug.ok(&["output"]), &["nothing new"]);
    has(&bug.ok(&["continue"]), &["output: out 1", "stderr: err 0"]);
    let all = bug.ok(&["output", "--all"]);
    has(&all, &["out 0\n", "out 1\n", "err 0\n"]);
    assert_eq!(bug.ok(&["output", "--stderr", "--all"]), "err 0\n");
    assert_eq!(bug.ok(&["output", "--tail", "1"]).lines().count(), 1);
    has(&bug.ok(&["output", "--clear"]), &["forgotten"]);
    lacks(&bug.ok(&["output", "--all"]), &["out"]);
    // A follower sees what is new, as it comes, and ends with the program.
    let follower = bug.spawn(&["output", "--follow"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    let followed = follower.wait();
    assert_eq!(followed.code, 0, "{followed}");
    has(&followed.stdout, &["out 2", "err 2"]);
    lacks(&followed.stdout, &["out 0"]);
    until("the end is told", || {
        let status = bug.ok(&["status"]);
        if status.contains("exited") { Ok(()) } else { Err(status) }
    });
}
