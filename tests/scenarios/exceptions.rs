//! Exceptions where they are thrown: what, why, and in whose code.

use crate::support::fixtures::{at, program};
use crate::support::{Bug, functions, has, lacks, local};

#[test]
fn a_throw_of_cpp() {
    let bug = Bug::new("cpp");
    has(&bug.ok(&["catch", "throw"]), &["catch 1: throw"]);
    let report = bug.json(&["run", &program("cpp/throws.cpp"), "--", "uncaught"]);
    assert_eq!(report["state"], "stopped");
    has(report["stop"]["reason"]["exception"]["text"].as_str().unwrap(), &["C++"]);
    let frames = functions(&report["stop"]["frames"]);
    assert!(frames.iter().any(|name| name.contains("parse")), "{frames:?}");
    has(&bug.ok(&["context"]), &[&at("cpp/throws.cpp", "throw")]);
    assert_eq!(bug.json(&["exception"])["type"], "cpp_throw");
    // The first is caught by the program, the second by nobody.
    has(&bug.ok(&["continue"]), &["exception", "caught: nothing to parse"]);
    bug.ok(&["catch", "none"]);
    has(&bug.ok(&["continue"]), &["signal SIGABRT", "std::runtime_error"]);
    has(&bug.ok(&["continue"]), &["ended by SIGABRT"]);
}

#[test]
fn an_uncaught_exception_of_python_stops_where_it_was_raised() {
    let bug = Bug::new("python");
    let fixture = "python/raises.py";
    let report = bug.json(&["run", fixture.split_once('/').unwrap().1]);
    let stop = &report["stop"];
    has(
        stop["reason"]["exception"]["text"].as_str().unwrap(),
        &["ValueError", "invalid literal for int()", "'twelve'"],
    );
    assert_eq!(functions(&stop["frames"])[..4], ["parse", "read", "total", "<module>"]);
    assert_eq!(local(&report, "cleaned"), "'twelve'");
    assert_eq!(local(&report, "text"), "' twelve '");
    assert_eq!(report["output"]["stdout"], "caught: invalid literal for int() with base 10: 'not a number'\n");
    has(&bug.ok(&["context"]), &[&format!("in parse {}", at(fixture, "raise"))]);

    let thrown = bug.json(&["exception"]);
    assert_eq!(thrown["type"], "ValueError");
    assert_eq!(thrown["message"], "invalid literal for int() with base 10: 'twelve'");
    has(thrown["stack"].as_str().unwrap(), &["in parse", "in read", "in total", "return int(cleaned)"]);
    has(&bug.ok(&["exception"]), &["ValueError: invalid literal for int() with base 10: 'twelve'\n"]);
    // The frames of the caller can be looked at as at any stop.
    has(&bug.ok(&["print", "record", "--frame", "1"]), &["{'amount': ' twelve '}"]);
    has(&bug.ok(&["continue"]), &["exited: code 1", "ValueError"]);
}

/// `raised` is the program's own exceptions, also those that it catches, not those of Python's own library.
#[test]
fn a_raised_exception_of_python_stops_also_when_it_is_caught() {
    let bug = Bug::new("python");
    has(&bug.ok(&["catch", "raised"]), &["catch 1: raised"]);
    let text = bug.ok(&["run", "raises.py"]);
    has(&text, &["exception ValueError", "'not a number'", &at("python/raises.py", "raise")]);
    lacks(&text, &["caught:"]);
    has(&bug.ok(&["catch", "list"]), &["raised"]);
    has(&bug.ok(&["catch", "remove", "1"]), &["catching what the adapter does by itself"]);
    bug.run(&["catch", "remove", "1"]).fails(3, "there is no catch 1");
    has(&bug.ok(&["catch", "none"]), &["catching nothing"]);
    has(&bug.ok(&["continue"]), &["exited: code 1"]);
    has(&bug.ok(&["output", "--all"]), &["caught: invalid literal", "ValueError"]);
}

#[test]
fn a_panic_of_rust() {
    let bug = Bug::new("rust");
    has(&bug.ok(&["catch", "panic"]), &["catch 1: panic"]);
    let text = bug.ok(&["run", &program("rust/panics.rs")]);
    has(&text, &["panic", "index out of bounds: the len is 3 but the index is 4"]);
    has(&text, &["panics::pick", &at("rust/panics.rs", "panic"), "output: before"]);
    let frames = bug.json(&["backtrace"]);
    let names = functions(&frames["stacks"][0]["frames"]);
    let own: Vec<&&str> = names.iter().filter(|name| name.starts_with("panics::")).collect();
    assert_eq!(own, [&"panics::pick", &"panics::sum", &"panics::main"]);
    let thrown = bug.json(&["exception"]);
    assert_eq!(thrown["type"], "panic", "{thrown}");
    has(&bug.ok(&["continue"]), &["exited: code 101"]);
}

#[test]
fn one_type_of_exception_is_caught_and_others_are_not() {
    let bug = Bug::new("cpp");
    let program = program("cpp/throws.cpp");
    bug.ok(&["catch", "throw", "std::runtime_error"]);
    has(&bug.ok(&["run", &program]), &["stopped: exception", "throws.cpp"]);
    bug.ok(&["stop"]);
    bug.ok(&["catch", "default"]);
    bug.ok(&["catch", "throw", "std::logic_error"]);
    has(&bug.ok(&["run", &program]), &["exited: code 0", "caught: nothing to parse"]);
    bug.ok(&["catch", "default"]);
    bug.ok(&["catch", "raised", "KeyError"]);
    // Nothing stops at a ValueError then, not even where nobody catches it.
    has(&bug.ok(&["run", "../python/raises.py"]), &["exited: code 1"]);
    bug.ok(&["catch", "default"]);
    bug.ok(&["catch", "raised", "ValueError"]);
    has(&bug.ok(&["run", "../python/raises.py"]), &["stopped: exception ValueError", "raises.py"]);
}
