//! What is Go's alone: its tool's commands in one call, goroutines that hit at one moment, calls, values, servers and core
//! files.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use support::fixtures::{copy_project, installed, line, program};
use support::sides::DELVE;
use support::{Bug, functions, has, lacks, local, until};

const MANY: &str = "go/many.go";

/// The place of a mark, as it is typed in the fixture's folder.
fn at(mark: &str) -> String {
    support::fixtures::at(MANY, mark)
}

/// A copy of the project, from whose folder commands are given.
fn project() -> Bug {
    let mut bug = DELVE.bug();
    let folder = PathBuf::from(bug.path("project"));
    copy_project("go", &folder);
    bug.cwd = folder;
    bug
}

/// The place of a mark in a file of the project, as it is typed.
fn in_project(file: &str, mark: &str) -> String {
    format!("{file}:{}", line(&format!("projects/go/{file}"), mark))
}

/// The function and the line of the frame that a report shows.
#[track_caller]
fn shown(report: &Value) -> (String, u64) {
    let stop = &report["stop"];
    let index = usize::try_from(stop["frame"].as_u64().unwrap_or_else(|| panic!("{report}"))).unwrap();
    let frame = &stop["frames"][index];
    (frame["function"].as_str().unwrap().into(), frame["line"].as_u64().unwrap())
}

#[test]
fn go_run_is_built_and_debugged() {
    let bug = project();
    let sum = in_project("calc/calc.go", "sum");
    let report = bug.json(&["run", "--break", &sum, "--", "go", "run", ".", "4", "5"]);
    assert_eq!(shown(&report).0, "calc.Sum");
    assert_eq!((local(&report, "total").as_str(), local(&report, "number").as_str()), ("0", "4"));
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "sum 9"]);
    // A file of a package is built with the others of it, and a breakpoint is set where it was named.
    let report = bug.json(&["run", "main.go", "--break", &in_project("parse.go", "parse"), "--", "1", "x", "2"]);
    assert_eq!(shown(&report).0, "main.parse");
    has(&bug.ok(&["locals"]), &["numbers: []int = [1,2]"]);
    bug.run(&["run", "--", "go", "vet"]).fails(2, "go vet runs no program of yours");
}

#[test]
fn a_test_of_go_stops_where_it_fails() {
    let bug = project();
    let fails = u64::from(line("projects/go/calc/calc_test.go", "fail"));
    let report = bug.json(&["run", "--", "go", "test", "./...", "-run", "^TestMean$", "-v"]);
    assert_eq!(shown(&report), ("calc.TestMean".into(), fails), "{report}");
    assert_eq!((local(&report, "got").as_str(), local(&report, "want").as_str()), ("1", "1.5"));
    has(report["output"]["stdout"].as_str().unwrap(), &["Mean is 1, want 1.5"]);
    has(&bug.ok(&["continue"]), &["exited: code 1", "--- FAIL: TestMean"]);
    // By its name alone.
    let report = bug.json(&["test", "TestMean"]);
    assert_eq!(shown(&report), ("calc.TestMean".into(), fails), "{report}");
    bug.ok(&["stop"]);
    // A panic is shown where it happened, once, with its text.
    let report = bug.json(&["test", "TestMeanOfNothing"]);
    has(report["stop"]["reason"]["exception"]["text"].as_str().unwrap(), &["panic: ", "divide by zero"]);
    assert_eq!(shown(&report), ("calc.Mean".into(), line("projects/go/calc/calc.go", "mean").into()));
    has(&bug.ok(&["continue"]), &["exited: code 2"]);
    // A subtest that fails marks the test around it, which is no news.
    let report = bug.json(&["test", "TestTable/two"]);
    assert_eq!(shown(&report).1, u64::from(line("projects/go/calc/calc_test.go", "table")), "{report}");
    has(&bug.ok(&["continue"]), &["exited: code 1"]);
    // What is said about a build goes to standard error.
    let passes = bug.run(&["test", "TestSum"]);
    has(&passes.stdout, &["exited: code 0", "--- PASS: TestSum"]);
    bug.run(&["test", "TestSun"]).fails(3, "did you mean TestSum?");
}

#[test]
fn a_breakpoint_in_a_test_of_go_is_one_call() {
    let bug = project();
    let sum = in_project("calc/calc.go", "sum");
    let report = bug.json(&["run", "--break", &sum, "--", "go", "test", "./...", "-run", "TestSum"]);
    assert_eq!(shown(&report).0, "calc.Sum");
    assert!(functions(&report["stop"]["frames"]).contains(&"calc.TestSum"), "{report}");
}

#[test]
fn what_does_not_compile_is_told_by_the_compiler() {
    let bug = project();
    fs::write(bug.cwd.join("parse.go"), "package main\n\nfunc parse(words []string) []int { return nothing }\n")
        .unwrap();
    bug.run(&["run", "--", "go", "run", "."]).fails(1, "undefined: nothing");
    bug.run(&["run", "--", "go", "test", "./nowhere"]).fails(1, "nowhere");
}

#[test]
fn every_hit_of_a_crowd_is_told_once() {
    let bug = DELVE.bug();
    bug.ok(&["break", &at("hit"), "--log", "hit {number}."]);
    has(&bug.ok(&["run", &program(MANY), "--wait", "60s", "--", "crowd"]), &["exited: code 0"]);
    let log = bug.ok(&["output", "--all"]);
    for number in 0..40 {
        let told = log.matches(&format!("hit {number}.")).count();
        assert_eq!(told, 1, "hit {number} in {log}");
    }
}

#[test]
fn a_step_that_another_goroutine_interrupts() {
    let bug = DELVE.bug();
    bug.ok(&["run", &program(MANY), "--break", &at("slow"), "--break", &at("other"), "--", "steps"]);
    let report = bug.json(&["next"]);
    assert_eq!(shown(&report).0, "main.other", "{report}");
    bug.run(&["next"]).fails(1, "can't step before the step of thread 1 is over");
    // The end of that step is over for whoever asked for it.
    has(&bug.ok(&["continue"]), &["exited: code 0", "steps 4"]);
}

#[test]
fn functions_are_called() {
    let bug = DELVE.bug();
    bug.ok(&["run", &program(MANY), "--break", &at("last"), "--", "steps"]);
    has(&bug.ok(&["eval", "double(a) + 1"]), &["= 5"]);
    has(&bug.ok(&["eval", "a = 10"]), &["done"]);
    bug.run(&["print", "double(a)"]).fails(1, "bugeye eval");
    bug.ok(&["break", &at("double")]);
    bug.run(&["eval", "double(a)"]).fails(1, "stopped on its way");
    has(&bug.ok(&["context"]), &["main.double", "n=10"]);
    bug.ok(&["unbreak", "--all"]);
    // The call comes back to where it was made.
    has(&bug.ok(&["continue"]), &["main.steps", "a=10"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "steps 20"]);
}

#[test]
fn values_are_told_without_their_types() {
    let bug = DELVE.bug();
    bug.ok(&["run", &program(MANY), "--break", &at("values"), "--", "values"]);
    let locals = bug.ok(&["locals"]);
    has(&locals, &["small: uint8 = 200\n", "nothing: []int = nil\n", "ages: map[string]int = [\"ann\": 30]\n"]);
    has(&locals, &["item: *main.box = &{width: 2, height: 3, inside:"]);
    lacks(&bug.ok(&["print", "small"]), &["0x"]);
    has(&bug.ok(&["print", "many", "--from", "400"]), &["[400] = 160000", "80 more"]);
    has(&bug.ok(&["print", "item", "--depth", "3"]), &["width = 2", "inside"]);
    has(&bug.ok(&["print", "err"]), &["went wrong"]);
    has(&bug.ok(&["locals", "--scope", "globals"]), &["count: int = 0"]);
    // A method by the names people use.
    for name in ["area", "box.area", "main.(*box).area"] {
        let set = bug.ok(&["break", "-f", name]);
        has(&set, &["verified"]);
        bug.ok(&["unbreak", "--all"]);
    }
    bug.ok(&["break", "-f", "box.area"]);
    let report = bug.json(&["continue"]);
    assert_eq!(shown(&report).0, "main.(*box).area");
    has(&bug.ok(&["args"]), &["b: *main.box"]);
    has(&bug.ok(&["set", "count", "7", "--frame", "1"]), &["7"]);
    has(&bug.ok(&["print", "count"]), &["= 7"]);
}

/// A process of the test itself, ended with it.
struct Own(Child);

impl Own {
    /// The program in a mode, once it has said its first word.
    fn spinning() -> Self {
        let mut child = Command::new(DELVE.program()).arg("spin").stdout(Stdio::piped()).spawn().unwrap();
        let mut word = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut word).unwrap();
        Self(child)
    }

    /// A server that has started the program and waits for a debugger.
    fn server(words: &[&str]) -> (Self, String) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(installed("delve", "bin/dlv").join("bin/dlv"));
        command.args(["exec", "--headless", &format!("--listen=127.0.0.1:{port}")]).args(words);
        command.arg(DELVE.program()).args(["--", "spin"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        out.read_line(&mut said).unwrap();
        assert!(said.contains("listening"), "{said}");
        // What the program prints needs a reader.
        std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
        (Self(child), format!("127.0.0.1:{port}"))
    }

    fn ends(&mut self) {
        until("it ends", || match self.0.try_wait().unwrap() {
            Some(_) => Ok(()),
            None => Err("it lives".into()),
        });
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        // A server ends its program when it is asked to end, not when it is killed.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        support::signal(i32::try_from(self.0.id()).unwrap(), rustix::process::Signal::TERM);
        while self.0.try_wait().is_ok_and(|end| end.is_none()) && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_server_for_many_keeps_its_program_running() {
    let bug = DELVE.bug();
    let (mut server, address) = Own::server(&["--accept-multiclient"]);
    has(&bug.ok(&["attach", &address, "--adapter", "delve"]), &["stopped: attached"]);
    bug.ok(&["break", &DELVE.at("spin")]);
    let counter = |report: &Value| local(report, "counter").parse::<u64>().unwrap();
    let first = counter(&bug.json(&["continue"]));
    has(&bug.ok(&["detach"]), &["let go", &address]);
    // It went on without us, past our breakpoint.
    bug.ok(&["unbreak", "--all"]);
    std::thread::sleep(std::time::Duration::from_millis(200));
    bug.ok(&["attach", &address, "--adapter", "delve"]);
    bug.ok(&["break", &DELVE.at("spin")]);
    let second = counter(&bug.json(&["continue"]));
    assert!(second > first + 1, "{first} {second}");
    has(&bug.ok(&["stop"]), &["left to the server"]);
    assert!(server.0.try_wait().unwrap().is_none(), "it ended with its client");
}

#[test]
fn a_server_for_one_ends_with_its_client() {
    let bug = DELVE.bug();
    let (mut server, address) = Own::server(&[]);
    bug.ok(&["attach", &address, "--adapter", "delve"]);
    bug.run(&["detach"]).fails(6, "ends its program when its client leaves");
    lacks(&bug.ok(&["stop"]), &["goes on", "left to the server"]);
    server.ends();
}

#[test]
fn an_attached_process_is_killed_if_wanted_and_only_then() {
    let bug = DELVE.bug();
    let mut spinning = Own::spinning();
    let pid = spinning.0.id().to_string();
    has(&bug.ok(&["attach", &pid]), &["stopped: attached", "main.spin", "via delve"]);
    has(&bug.ok(&["stop"]), &["goes on"]);
    assert!(spinning.0.try_wait().unwrap().is_none(), "it ended with the debugger");
    bug.ok(&["attach", &pid]);
    lacks(&bug.ok(&["stop", "--kill"]), &["goes on"]);
    spinning.ends();
}

#[test]
fn a_core_file_of_go_is_looked_at() {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !pattern.starts_with("core") {
        eprintln!("core files go elsewhere here: {pattern}");
        return;
    }
    let bug = DELVE.bug();
    let folder = bug.home().join("crash");
    fs::create_dir(&folder).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -c unlimited; exec \"$0\" throw", &DELVE.program()]).current_dir(&folder);
    command.env("GOTRACEBACK", "crash").stderr(Stdio::null()).status().unwrap();
    let core = fs::read_dir(&folder).unwrap().next().expect("a core file").unwrap().path().display().to_string();
    let report = bug.json(&["start", "--core", &core]);
    assert_eq!(shown(&report), ("main.fail".into(), DELVE.line("throw").into()), "{report}");
    has(&bug.ok(&["print", "why"]), &["\"boom\""]);
    bug.run(&["continue"]).fails(6, "a core file can't run");
}
