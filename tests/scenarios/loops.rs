//! A loop, seen at each pass, and a program that never comes back.

use std::time::Duration;

use serde_json::Value;

use crate::support::fixtures::{at, line, program};
use crate::support::{Bug, functions, has, local, until};

const PASSES: [(&str, &str); 5] = [("0", "0"), ("1", "0"), ("2", "1"), ("3", "3"), ("4", "6")];

/// Every pass through a loop body, in text and in JSON, then the end.
fn every_pass(language: &str, fixture: &str, function: &str, total: &str) {
    let bug = Bug::new(language);
    let (place, program) = (at(fixture, "body"), program(fixture));
    let held = bug.ok(&["start", &program, "--break", &place]);
    has(&held, &["held", &format!("breakpoint 1 {place}: verified"), "bugeye continue"]);
    for (pass, (i, sum)) in PASSES.iter().enumerate() {
        let text = bug.ok(&["continue"]);
        let hit = format!("stopped: breakpoint 1 (hit {}) in {function} {place}", pass + 1);
        has(&text, &[&hit, &format!("i={i}"), &format!("{total}={sum}")]);
        if pass > 0 {
            has(&text, &["changed: ", &format!("i={i} (was {})", PASSES[pass - 1].0)]);
            assert!(text.len() < 600, "{} bytes for a further stop in the same loop:\n{text}", text.len());
        }
    }
    let end = bug.ok(&["continue"]);
    has(&end, &["exited: code 0", "output: sum=10"]);
    has(&bug.ok(&["status"]), &["exited: code 0", "stops 5, hits 5"]);

    let mut report = bug.json(&["restart", "--run"]);
    for (pass, (i, sum)) in PASSES.iter().enumerate() {
        let stop = &report["stop"];
        assert_eq!(report["state"], "stopped");
        assert_eq!(stop["reason"]["breakpoint"]["hit"], pass + 1);
        assert_eq!((local(&report, "i"), local(&report, total)), ((*i).to_string(), (*sum).to_string()));
        assert_eq!(stop["frames"][0]["line"], line(fixture, "body"));
        assert_eq!(functions(&stop["frames"])[..2], [function, "main"]);
        assert_eq!(report["source"]["current"], line(fixture, "body"));
        report = bug.json(&["continue"]);
    }
    assert_eq!(report["state"], "exited");
    assert_eq!(report["ending"]["kind"], "exited");
    assert_eq!(report["ending"]["code"], 0);
    assert_eq!(report["output"]["stdout"], "sum=10\n");
}

#[test]
fn a_loop_in_c_is_seen_at_each_pass() {
    every_pass("c", "c/loop_basic.c", "work_basic", "sum");
}

#[test]
fn a_loop_in_python_is_seen_at_each_pass() {
    every_pass("python", "python/loop.py", "work", "total");
}

/// After the line has run the sums are one pass further.
#[test]
fn the_line_after_the_update_shows_what_it_did() {
    let bug = Bug::new("c");
    let fixture = "c/loop_basic.c";
    let mut report = bug.json(&["run", &program(fixture), "--break", &at(fixture, "after")]);
    let mut sums = Vec::new();
    while report["state"] == "stopped" {
        sums.push(local(&report, "sum"));
        report = bug.json(&["continue"]);
    }
    assert_eq!(sums, ["0", "1", "3", "6", "10"]);
}

/// A program that never ends: `running` is an answer, and it can be looked at.
fn a_hang(language: &str, fixture: &str, looks: impl Fn(&Bug) -> u64) {
    let bug = Bug::new(language);
    let begun = bug.run(&["run", &program(fixture), "--wait", "1s"]);
    assert_eq!(begun.code, 0, "{begun}");
    has(&begun.stdout, &["running (pid ", "bugeye pause"]);
    assert!(begun.took < Duration::from_secs(15), "{:?}", begun.took);
    until("it says that it spins", || {
        let text = bug.ok(&["output", "--all"]);
        if text.contains("spinning") { Ok(()) } else { Err(text) }
    });
    bug.run(&["locals"]).fails(3, "the program is running");
    bug.run(&["continue"]).fails(3, "the program is running");

    has(&bug.ok(&["pause"]), &["stopped: pause in ", &at(fixture, "spin").replace(|c: char| c.is_ascii_digit(), "")]);
    has(&bug.ok(&["pause"]), &["it was stopped already"]);
    let first = looks(&bug);

    let went_on = bug.run(&["continue", "--wait", "1s"]);
    assert_eq!(went_on.code, 0, "{went_on}");
    has(&went_on.stdout, &["running"]);
    assert!(went_on.took >= Duration::from_secs(1) && went_on.took < Duration::from_secs(3), "{:?}", went_on.took);
    assert_eq!(bug.json(&["await", "--timeout", "0"])["state"], "running");
    bug.ok(&["pause"]);
    assert!(looks(&bug) > first, "it did not go on");

    let stopped = bug.run(&["stop"]);
    assert_eq!(stopped.code, 0, "{stopped}");
    assert!(stopped.took < Duration::from_secs(5), "{:?}", stopped.took);
    bug.run(&["status"]).fails(3, "no session");
}

fn counter(value: &Value) -> u64 {
    value["text"].as_str().unwrap().parse().unwrap()
}

#[test]
fn a_hang_in_c_can_be_looked_at() {
    a_hang("c", "c/hang.c", |bug| counter(&bug.json(&["print", "counter"])["values"][0]["value"]));
}

#[test]
fn a_hang_in_python_can_be_looked_at() {
    a_hang("python", "python/hang.py", |bug| counter(&bug.json(&["locals"])["variables"][0]));
}
