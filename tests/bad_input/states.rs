//! The right words at the wrong time.

use std::fs;
use std::time::Duration;

use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, until};
use crate::{next_command_works, refused, within};

const LOOKS: [&[&str]; 9] = [
    &["locals"],
    &["print", "i"],
    &["backtrace"],
    &["frame", "1"],
    &["up"],
    &["args"],
    &["eval", "1"],
    &["set", "i", "1"],
    &["exception"],
];

const MOVES: [&[&str]; 4] = [&["next"], &["step"], &["finish"], &["until", "6"]];

#[test]
fn before_any_session() {
    let bug = Bug::new("c");
    let others: [&[&str]; 7] =
        [&["status"], &["continue"], &["pause"], &["await"], &["stop"], &["detach"], &["output"]];
    for words in LOOKS.iter().chain(&MOVES).chain(&others) {
        refused(&bug, words, 3, "there is no session");
    }
    refused(&bug, &["restart"], 3, "there is no session");
    refused(&bug, &["input", "x"], 3, "there is no session");
    assert_eq!(bug.ok(&["breaks"]).lines().count(), 1);
    next_command_works(&bug);
}

#[test]
fn while_held() {
    let bug = Bug::new("c");
    bug.ok(&["start", &program("c/hang.c")]);
    for words in LOOKS.iter().chain(&MOVES) {
        refused(&bug, words, 3, "not started");
    }
    refused(&bug, &["pause"], 3, "not started");
    refused(&bug, &["await"], 3, "not started");
    has(&bug.ok(&["status"]), &["held"]);
    bug.ok(&["break", &at("c/hang.c", "spin")]);
    has(&bug.ok(&["continue"]), &["stopped: breakpoint"]);
    bug.ok(&["stop"]);
}

#[test]
fn while_running() {
    for (language, name) in [("c", "c/hang.c"), ("python", "python/hang.py")] {
        let bug = Bug::new(language);
        let run = bug.run(&["run", "--wait", "0", &program(name)]);
        has(&run.stdout, &["running"]);
        // debugpy tells where threads are while they run.
        let tells = |words: &[&str]| language == "python" && words == ["backtrace"];
        for words in LOOKS.iter().chain(&MOVES).filter(|words| !tells(words)) {
            refused(&bug, words, 3, "the program is running");
        }
        refused(&bug, &["continue"], 3, "the program is running");
        let run = bug.run(&["await", "--timeout", "1"]);
        assert_eq!(run.code, 0, "{run}");
        has(&run.stdout, &["running"]);
        within(&run, 2500);
        until("it spins", || {
            let output = bug.run(&["output", "--all"]);
            if output.stdout.contains("spinning") { Ok(()) } else { Err(output.stdout) }
        });
        if language == "python" {
            has(&bug.ok(&["backtrace"]), &["hang.py:"]);
        }
        has(&bug.ok(&["pause"]), &["stopped: pause"]);
        has(&bug.ok(&["pause"]), &["stopped already"]);
        bug.ok(&["stop"]);
    }
}

#[test]
fn after_the_exit() {
    let bug = Bug::new("c");
    bug.ok(&["run", &program("c/exit_code.c"), "--", "4"]);
    for words in LOOKS.iter().chain(&MOVES) {
        refused(&bug, words, 3, "exited with code 4");
    }
    refused(&bug, &["continue"], 3, "exited with code 4");
    refused(&bug, &["pause"], 3, "exited with code 4");
    refused(&bug, &["detach"], 3, "exited with code 4");
    let run = bug.run(&["await"]);
    assert_eq!(run.code, 0, "{run}");
    has(&run.stdout, &["exited: code 4"]);
    has(&bug.ok(&["status"]), &["exited: code 4"]);
    bug.ok(&["output"]);
    has(&bug.ok(&["restart"]), &["held"]);
    bug.ok(&["stop", "--all"]);
}

#[test]
fn two_starts_at_once_are_two_sessions() {
    let bug = Bug::new("c");
    let program = program("c/hang.c");
    let one = bug.spawn(&["--json", "start", &program]);
    let two = bug.spawn(&["--json", "start", &program]);
    let (one, two) = (one.wait(), two.wait());
    let (first, second) = (one.json()["session"].clone(), two.json()["session"].clone());
    assert!(first.is_string() && second.is_string() && first != second, "{one}{two}");
    let sessions = bug.ok(&["sessions"]);
    has(&sessions, &[first.as_str().unwrap(), second.as_str().unwrap()]);
    bug.ok(&["stop", "--all"]);
    // Two of one name are not.
    let one = bug.spawn(&["start", "--name", "same", &program]);
    let two = bug.spawn(&["start", "--name", "same", &program]);
    let mut codes = [one.wait().code, two.wait().code];
    codes.sort_unstable();
    assert_eq!(codes, [0, 1]);
    bug.ok(&["stop", "--all"]);
}

#[test]
fn two_clients_at_one_session_are_both_answered() {
    let bug = Bug::new("c");
    bug.ok(&["run", "--break", &at("c/loop_basic.c", "body"), &program("c/loop_basic.c")]);
    let asked: Vec<_> = (0..6).map(|n| bug.spawn(if n % 2 == 0 { &["continue"] } else { &["locals"] })).collect();
    for one in asked {
        let run = one.wait();
        assert!([0, 3].contains(&run.code), "{run}");
        within(&run, 10_000);
    }
    bug.ok(&["stop"]);
}

#[test]
fn a_typing_mistake_in_the_configuration_is_named() {
    let bug = Bug::new("c");
    fs::create_dir_all(bug.home().join("config")).unwrap();
    for (text, complaint) in [
        ("[timeouts]\nlanch_secs = 3\n", "lanch_secs"),
        ("[timeouts]\nlaunch_secs = \"soon\"\n", "launch_secs"),
        ("[timeouts\n", "config.toml"),
        ("[adaptors.lldb]\npath = \"x\"\n", "adaptors"),
    ] {
        bug.write("config/config.toml", text);
        let run = bug.run(&["start", &program("c/exit_code.c")]);
        assert_ne!(run.code, 0, "{text}: {run}");
        has(&run.stderr, &[complaint]);
    }
    bug.write("config/config.toml", "[timeouts]\nlaunch_secs = 30\n");
    next_command_works(&bug);
}

#[test]
fn words_that_are_no_command() {
    let bug = Bug::new("c");
    refused(&bug, &["contineu"], 2, "contineu");
    for words in [&["--nosuch"][..], &["locals", "--nosuch"], &["run", "--wait", "soon", "x"], &["break"]] {
        let run = bug.run(words);
        assert_eq!(run.code, 2, "{run}");
        assert!(run.stdout.is_empty() && !run.stderr.is_empty(), "{run}");
    }
    let envelope = bug.run(&["--json", "locals"]);
    assert_eq!(envelope.code, 3, "{envelope}");
    assert_eq!(envelope.json()["ok"], false);
    assert_eq!(envelope.json()["error"]["kind"], "not_found");
    assert!(envelope.took < Duration::from_secs(2));
}
