//! "Prefix your command": a project's own command line behind `bugeye run --`, or a test's name behind `bugeye test`, each in
//! one call on a small real project with the real tools.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use support::fixtures::{self, cargo_target, copy_project, line};
use support::{Bug, has, lacks, local, signal, until};

/// A test's surroundings with a copy of a project, from whose folder commands are given.
fn project(name: &str) -> Bug {
    let mut bug = Bug::new("c");
    let folder = PathBuf::from(bug.path("project"));
    copy_project(name, &folder);
    bug.cwd = folder;
    bug
}

fn cargo() -> Bug {
    let mut bug = project("cargo");
    bug.env.push(("CARGO_TARGET_DIR".into(), cargo_target().to_str().unwrap().into()));
    bug
}

fn pytest() -> Bug {
    let mut bug = project("pytest");
    let path = std::env::var("PATH").unwrap();
    bug.env.push(("PATH".into(), format!("{}:{path}", fixtures::pytest().join("bin").display())));
    bug.env.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
    bug
}

fn ctest() -> Bug {
    let bug = project("ctest");
    let mut command = Command::new("cmake");
    command.args(["-S", ".", "-B", "build", "-DCMAKE_BUILD_TYPE=Debug"]).current_dir(&bug.cwd);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    bug
}

/// The place of a mark in a file of a project, as it is typed.
fn at(project: &str, file: &str, mark: &str) -> String {
    format!("{file}:{}", line(&format!("projects/{project}/{file}"), mark))
}

/// The text of a command that succeeds; what it said about a build goes to standard error.
#[track_caller]
fn text(bug: &Bug, words: &[&str]) -> String {
    let run = bug.run(words);
    assert_eq!(run.code, 0, "{run}");
    run.stdout
}

/// The file and line that a report's selected frame stands at.
#[track_caller]
fn place(report: &Value) -> String {
    let stop = &report["stop"];
    let index = usize::try_from(stop["frame"].as_u64().unwrap_or(0)).unwrap();
    let frame = &stop["frames"][index];
    let file = frame["file"].as_str().unwrap_or_else(|| panic!("{report}"));
    format!("{}:{}", Path::new(file).file_name().unwrap().to_str().unwrap(), frame["line"])
}

fn name_of(place: &str) -> &str {
    place.rsplit('/').next().unwrap()
}

#[test]
fn cargo_run_is_built_and_debugged() {
    let bug = cargo();
    let sum = at("cargo", "src/lib.rs", "sum");
    let report = bug.json(&["run", "--break", &sum, "--", "cargo", "run", "-q", "--", "4", "5"]);
    assert_eq!(place(&report), name_of(&sum));
    assert_eq!(local(&report, "sum"), "0");
    bug.ok(&["unbreak", "--all"]);
    has(&text(&bug, &["continue"]), &["exited: code 0", "9"]);
}

#[test]
fn a_test_of_cargo_stops_where_it_fails() {
    let bug = cargo();
    let report = bug.json(&["run", "--", "cargo", "test", "is_wrong"]);
    assert_eq!(report["stop"]["reason"]["exception"]["text"], "panic");
    assert_eq!(place(&report), name_of(&at("cargo", "src/lib.rs", "assert")));
    assert_eq!((local(&report, "sum").as_str(), local(&report, "expected").as_str()), ("6", "7"));
    has(&text(&bug, &["continue"]), &["exited: code 101", "test result: FAILED. 0 passed; 1 failed"]);
    // By its name alone; what fails is called through the standard library.
    let report = bug.json(&["test", "finds_nothing"]);
    assert_eq!(place(&report), name_of(&at("cargo", "src/lib.rs", "unwrap")));
    has(report["notes"][0].as_str().unwrap(), &["tests::finds_nothing"]);
}

#[test]
fn the_tests_of_cargo_are_found_in_every_executable() {
    let bug = cargo();
    // The integration test runs in its package's folder, with what Cargo sets.
    let there = format!("place {} true 1.2.3", bug.cwd.canonicalize().unwrap().display());
    has(&text(&bug, &["test", "knows_its_place"]), &["exited: code 0", &there, "1 passed"]);
    // A member of the workspace, from the root and from a folder in it.
    let place_of = at("cargo", "parser/src/lib.rs", "parse");
    let report = bug.json(&["test", "parses_empty", "--break", &place_of]);
    assert_eq!(place(&report), name_of(&place_of));
    bug.ok(&["stop"]);
    bug.run(&["run", "--", "cargo", "test", "adds_up"]).fails(2, "`adds_up` is in several places");
    has(&text(&bug, &["run", "--", "cargo", "test", "--test", "till", "adds_up"]), &["exited: code 0", "1 passed"]);
    has(&text(&bug, &["run", "--", "cargo", "test", "--lib", "adds"]), &["exited: code 0", "1 passed"]);
    bug.run(&["test", "is_wron"]).fails(3, "did you mean tests::is_wrong?");
    bug.run(&["run", "--", "cargo", "test", "--doc"]).fails(6, "documentation tests can't be debugged");
}

#[test]
fn what_does_not_compile_is_told_by_the_compiler() {
    let bug = cargo();
    std::fs::write(bug.cwd.join("src/main.rs"), "fn main() { nothing }\n").unwrap();
    let run = bug.run(&["run", "--", "cargo", "run"]);
    run.fails(1, "error[E0425]: cannot find value `nothing` in this scope\n --> src/main.rs:1:13\n");
    has(&run.stderr, &["`cargo build --message-format=json-render-diagnostics` failed (exit status: 101)"]);
}

#[test]
fn a_test_of_pytest_stops_where_it_fails() {
    let bug = pytest();
    let report = bug.json(&["run", "--", "pytest", "-q", "-k", "is_wrong"]);
    has(report["stop"]["reason"]["exception"]["text"].as_str().unwrap(), &["AssertionError", "assert 6 == 7"]);
    assert_eq!(place(&report), name_of(&at("pytest", "tests/test_shop.py", "assert")));
    assert_eq!((local(&report, "prices").as_str(), local(&report, "expected").as_str()), ("[1, 2, 3]", "7"));
    let names: Vec<&str> =
        report["stop"]["locals"].as_array().unwrap().iter().map(|local| local["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["expected", "prices"], "pytest's own variables are not the test's");
    has(&text(&bug, &["continue"]), &["exited: code 1", "1 failed"]);
    // Deep in what is tested, past an exception that the test expects.
    let report = bug.json(&["run", "--", "python", "-m", "pytest", "-q", "-k", "refuses or deep"]);
    assert_eq!(place(&report), name_of(&at("pytest", "shop.py", "raise")));
    assert_eq!(support::functions(&report["stop"]["frames"])[..3], ["check", "total", "test_fails_deep"]);
    bug.ok(&["stop"]);
    let sum = at("pytest", "shop.py", "sum");
    let report = bug.json(&["run", "--break", &sum, "--", "pytest", "-q", "tests/test_shop.py::test_adds_up"]);
    assert_eq!(place(&report), name_of(&sum));
}

#[test]
fn a_test_of_python_is_found_by_its_name() {
    let mut bug = pytest();
    has(&text(&bug, &["test", "test_adds_up"]), &["exited: code 0", "1 passed"]);
    has(&text(&bug, &["test", "test_is_skipped"]), &["exited: code 0", "1 skipped"]);
    let report = bug.json(&["test", "test_each[2]"]);
    assert_eq!(local(&report, "price"), "2");
    bug.ok(&["stop"]);
    let run = bug.run(&["test", "test_same"]);
    run.fails(2, "`test_same` is in several places");
    has(&run.stderr, &["hint: bugeye test tests/test_till.py::Till::test_same"]);
    has(&text(&bug, &["test", "tests/test_till.py::Till::test_same"]), &["exited: code 0", "1 passed"]);
    // From a folder below, and one of unittest.
    bug.cwd.push("tests");
    let report = bug.json(&["test", "Till.test_counts"]);
    assert_eq!(place(&report), name_of(&at("pytest", "tests/test_till.py", "counts")));
    bug.run(&["test", "test_is_wrng"]).fails(3, "did you mean tests/test_shop.py::test_is_wrong?");
}

#[test]
fn a_test_of_unittest_stops_where_it_fails() {
    let bug = pytest();
    let report = bug.json(&["run", "--", "python", "-m", "unittest", "tests.test_till"]);
    assert_eq!(place(&report), name_of(&at("pytest", "tests/test_till.py", "counts")));
    assert_eq!(local(&report, "left"), "3");
    has(&text(&bug, &["continue"]), &["exited: code 1", "FAILED (failures=1)"]);
}

#[test]
fn the_program_of_a_makefile_is_built_and_debugged() {
    let bug = project("make");
    let sum = at("make", "src/shop.c", "sum");
    let report = bug.json(&["run", "--break", &sum, "--", "make", "run"]);
    assert_eq!(place(&report), name_of(&sum));
    assert_eq!((local(&report, "count").as_str(), local(&report, "sum").as_str()), ("3", "0"));
    bug.ok(&["stop"]);
    // What comes before the program is run; the program has its folder and its variables.
    let print = at("make", "src/shop.c", "print");
    let report = bug.json(&["run", "--break", &print, "--", "make", "check"]);
    assert_eq!(local(&report, "price"), "\"9\"");
    assert_eq!(report["notes"][0], "not run after it: echo done");
    bug.ok(&["stop"]);
    // A target that leads to another, which is called as a test would be.
    has(&text(&bug, &["test", "test"]), &["exited: code 0", "6 -"]);
    bug.run(&["run", "--", "make", "broken"]).fails(1, "error: \u{2018}nothing\u{2019} undeclared");
    bug.run(&["run", "--", "make", "script"]).fails(1, "`make script` starts no program of this project");
    bug.run(&["run", "--", "make", "none"]).fails(1, "No rule to make target 'none'");
}

#[test]
fn a_test_of_ctest_stops_where_it_fails() {
    let bug = ctest();
    let report = bug.json(&["test", "is_wrong"]);
    assert_eq!(report["stop"]["reason"]["signal"]["name"], "SIGABRT");
    assert_eq!(place(&report), name_of(&at("ctest", "shop_test.c", "assert")));
    assert_eq!((local(&report, "sum").as_str(), local(&report, "wanted").as_str()), ("2", "7"));
    bug.ok(&["stop"]);
    has(&text(&bug, &["run", "--", "ctest", "--test-dir", "build", "-R", "adds"]), &["exited: code 0", "sum 3"]);
    bug.run(&["run", "--", "ctest", "--test-dir", "build"]).fails(2, "ctest would run 2 tests; choose one");
    bug.run(&["test", "adds_upp"]).fails(3, "did you mean adds_up?");
}

/// A build that takes for ever, until it is seen at work.
fn building(bug: &Bug) -> support::Asked {
    let makefile = "run: slow\n\t./slow\n\nslow:\n\tsleep 987\n";
    std::fs::write(bug.cwd.join("Makefile"), makefile).unwrap();
    let asked = bug.spawn(&["run", "--", "make", "run"]);
    until("it is built", || {
        let at_work = bug.processes().iter().any(|(_, words)| words.starts_with("sleep 987"));
        if at_work { Ok(()) } else { Err(format!("{:?}", bug.processes())) }
    });
    asked
}

fn is_over(bug: &Bug) {
    until("nothing of the build is left", || {
        let left: Vec<_> = bug.processes().into_iter().filter(|(_, words)| words.contains("sleep 987")).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

#[test]
fn a_build_ends_with_whoever_wanted_it() {
    let bug = project("make");
    let asked = building(&bug);
    asked.interrupt();
    is_over(&bug);
    lacks(&text(&bug, &["sessions"]), &["s1"]);
    // Also when the daemon is lost: the next one looks for what is left.
    let _asked = building(&bug);
    let daemon = bug.json(&["daemon", "status"])["pid"].as_i64().unwrap();
    signal(i32::try_from(daemon).unwrap(), Signal::KILL);
    until("the next daemon has started", || {
        let run = bug.run(&["sessions"]);
        if run.code == 0 { Ok(()) } else { Err(run.to_string()) }
    });
    is_over(&bug);
}

#[test]
fn a_build_has_a_limit_and_tells_how_it_goes() {
    let bug = project("make");
    std::fs::create_dir_all(bug.path("config")).unwrap();
    bug.write("config/config.toml", "[timeouts]\nbuild_secs = 1.5\n");
    let run = building(&bug).wait();
    run.fails(4, "`make slow` did not end within 1 s and was ended");
    has(&run.stderr, &["building: make slow, 1 s\n"]);
    is_over(&bug);
}
