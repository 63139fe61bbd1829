//! What is no program, and programs that misbehave.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::fixtures::program;
use crate::support::{Bug, has, lacks, until};
use crate::{next_command_works, refused, within};

#[test]
fn what_is_no_program_is_refused_with_advice() {
    let bug = Bug::new("c");
    refused(&bug, &["start", "./nosuch"], 3, "there is no");
    refused(&bug, &["start", "nosuch"], 3, "there is no");
    refused(&bug, &["run", "--", "pyton3", "x.py"], 3, "did you mean python3?");
    refused(&bug, &["start", bug.home().to_str().unwrap()], 1, "is a directory");
    let plain = bug.write("plain", "hello\n");
    refused(&bug, &["start", &plain], 1, "not executable");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o755)).unwrap();
    refused(&bug, &["start", &plain], 1, "neither a program nor a script");
    let source = refused(&bug, &["start", "loop_basic.c"], 1, "is source");
    lacks(&source.stderr, &["chmod"]);
    refused(&bug, &["start"], 2, "nothing to debug was named");
    refused(&bug, &["start", "/dev/null"], 1, "no regular file");
    refused(&bug, &["start", "--cwd", "./nosuch", &program("c/exit_code.c")], 3, "there is no directory");
    refused(&bug, &["start", "--stdin", "./nosuch", &program("c/exit_code.c")], 3, "there is no file");
    bug.run(&["start", "--env", "NOVALUE", &program("c/exit_code.c")]).fails(2, "write --env NAME=VALUE");
    refused(&bug, &["start", "--adapter", "nosuch", &program("c/exit_code.c")], 2, "there is no adapter");
    refused(&bug, &["attach", "999999999"], 3, "there is no process");
    refused(&bug, &["run", "nosuch.py"], 3, "there is no");
    next_command_works(&bug);
}

#[test]
fn a_program_for_another_machine_is_refused_by_name() {
    let bug = Bug::new("c");
    // An ELF file of a machine that this is not.
    let mut bytes = fs::read(program("c/exit_code.c")).unwrap();
    bytes[18] = 0x15;
    bytes[19] = 0x00;
    let path = bug.path("foreign");
    fs::write(&path, &bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let run = bug.run(&["run", &path]);
    assert_eq!(run.code, 1, "{run}");
    within(&run, 5000);
    // Half a program.
    fs::write(&path, &bytes[..200]).unwrap();
    let run = bug.run(&["run", &path]);
    assert_eq!(run.code, 1, "{run}");
    next_command_works(&bug);
}

#[test]
fn a_stripped_program_runs_and_the_note_says_why_nothing_is_seen() {
    let bug = Bug::new("c");
    let stripped = bug.path("stripped");
    fs::copy(program("c/loop_basic.c"), &stripped).unwrap();
    assert!(Command::new("strip").arg(&stripped).status().unwrap().success());
    let text = bug.ok(&["run", "--break", "loop_basic.c:6", &stripped]);
    has(&text, &["exited: code 0", "pending", "note: no debug information", "sum=10"]);
    next_command_works(&bug);
}

#[test]
fn endings_of_every_kind_are_told_apart() {
    let bug = Bug::new("c");
    has(&bug.ok(&["run", &program("c/exit_code.c")]), &["exited: code 0"]);
    has(&bug.ok(&["run", &program("c/exit_code.c"), "--", "11"]), &["exited: code 11"]);
    let text = bug.ok(&["run", &program("c/crash.c")]);
    has(&text, &["SIGSEGV", "third_value", "before"]);
    has(&bug.ok(&["continue"]), &["SIGSEGV"]);
    has(&bug.json(&["status"])["ending"].to_string(), &["signalled", "SIGSEGV"]);
    refused(&bug, &["locals"], 3, "was ended by SIGSEGV");
    let text = bug.ok(&["run", &program("c/abort.c")]);
    has(&text, &["SIGABRT", "balance is -20"]);
    has(&bug.ok(&["continue"]), &["SIGABRT"]);
    let text = bug.ok(&["run", &program("rust/panics.rs")]);
    has(&text, &["panic", "index out of bounds"]);
    has(&bug.ok(&["continue"]), &["exited: code 101"]);
    let text = bug.ok(&["run", &program("c/fork.c"), "--", "50"]);
    has(&text, &["exited: code 0", "child exited with 7"]);
    let run = bug.run(&["run", "--propagate", &program("c/exit_code.c"), "--", "9"]);
    assert_eq!(run.code, 9, "{run}");
}

#[test]
fn python_programs_end_in_as_many_ways() {
    let bug = Bug::new("python");
    has(&bug.ok(&["run", "exit.py", "--", "7"]), &["exited: code 7"]);
    has(&bug.ok(&["run", "crash.py"]), &["SIGSEGV"]);
    has(&bug.ok(&["run", "crash.py", "--", "abort"]), &["SIGABRT"]);
    let bad = bug.write("bad.py", "def f(:\n");
    let run = bug.run(&["run", &bad]);
    assert_eq!(run.code, 0, "{run}");
    has(&run.stdout, &["SyntaxError"]);
    bug.ok(&["stop", "--all"]);
}

#[test]
fn a_flood_of_output_is_counted_and_holds_nobody_up() {
    let bug = Bug::new("c");
    let flood = bug.spawn(&["run", "--wait", "50s", &program("c/flood.c"), "--", "50"]);
    until("the program prints", || {
        let status = bug.run(&["status"]);
        if status.stdout.contains("running") { Ok(()) } else { Err(status.stdout) }
    });
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        let status = bug.run(&["status"]);
        assert_eq!(status.code, 0, "{status}");
        slowest = slowest.max(status.took);
    }
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    let run = flood.wait();
    assert_eq!(run.code, 0, "{run}");
    has(&run.stdout, &["exited: code 0"]);
    assert!(run.stdout.len() < 32 * 1024, "a reply is bounded: {}", run.stdout.len());
    let output = bug.json(&["output", "--all", "--console"]);
    let count = |name: &str| output[name].as_u64().unwrap_or_else(|| panic!("no {name}: {output:.300}"));
    let chunks = output["chunks"].as_array().unwrap();
    let shown: usize = chunks.iter().map(|chunk| chunk["text"].as_str().unwrap().len()).sum();
    assert!(count("dropped") > 30 * 1024 * 1024, "{}", count("dropped"));
    assert_eq!(shown as u64 + count("dropped") + count("left_out"), count("end"), "every byte is accounted for");
    let lines = 50 * 1024 * 1024 / 64;
    assert!(count("end") >= lines * 64, "{}", count("end"));
    has(&bug.ok(&["output", "--tail", "1"]), &[&format!("flooded {lines}")]);
    next_command_works(&bug);
}

#[test]
fn a_program_that_ignores_sigterm_ends_in_time_with_its_child() {
    for (language, name) in [("c", "c/ignore_term.c"), ("python", "python/ignore_term.py")] {
        let bug = Bug::new(language);
        bug.ok(&["run", "--wait", "0", &program(name)]);
        until("its child is there", || {
            let output = bug.run(&["output", "--all"]);
            if output.stdout.contains("child ") { Ok(()) } else { Err(output.stdout) }
        });
        let started = Instant::now();
        bug.ok(&["stop"]);
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        refused(&bug, &["status"], 3, "there is no session");
        let left: Vec<_> = bug.processes().into_iter().filter(|(_, line)| line.contains("ignore_term")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_program_that_waits_for_input_answers_running_and_can_be_stopped() {
    let bug = Bug::new("c");
    let run = bug.run(&["run", "--wait", "1", &program("c/echo.c")]);
    assert_eq!(run.code, 0, "{run}");
    has(&run.stdout, &["running"]);
    within(&run, 3000);
    bug.ok(&["stop"]);
    next_command_works(&bug);
}
