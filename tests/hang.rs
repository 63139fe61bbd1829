//! The hang matrix: an adapter with one fault, and every command given to it. Whatever the adapter does, each command
//! answers by its deadline, in a form a caller can act on, and `stop` leaves nothing behind.
//!
//! The short form gives all commands to one session per fault. `BUGEYE_HANG_ROUNDS` (set by `scripts/torture hang N`)
//! starts a session for each command, that many times over.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use support::fixtures::program;
use support::{Bug, Run};

/// What the product promises beyond a command's own deadline.
const LATE: Duration = Duration::from_millis(500);
/// What a busy test machine may add to it.
const SLACK: Duration = Duration::from_millis(2500);
const THREADS: usize = 4;

const KINDS: [&str; 7] = ["usage", "not_found", "wrong_state", "refused", "unsupported", "timed_out", "lost"];

/// A fault by name, and the script that makes the fake adapter have it.
fn faults() -> Vec<(&'static str, Value)> {
    let always = |at: &str, what: &str| json!({ "stops": 20, "faults": [{ "at": at, "nth": 0, "do": what }] });
    let nth = |at: &str, nth: u32, what: &str| json!({ "stops": 20, "faults": [{ "at": at, "nth": nth, "do": what }] });
    vec![
        ("silent from the start", always("initialize", "silent")),
        ("silent after initialize", always("launch", "silent")),
        ("silent after launch", always("setFunctionBreakpoints", "silent")),
        ("silent when stopped", nth("stackTrace", 2, "silent")),
        ("never stackTrace", always("stackTrace", "never")),
        ("never scopes", always("scopes", "never")),
        ("never variables", always("variables", "never")),
        ("never evaluate", always("evaluate", "never")),
        ("never threads", always("threads", "never")),
        ("never continue", always("continue", "never")),
        ("never pause", json!({ "runs": true, "faults": [{ "at": "pause", "nth": 0, "do": "never" }] })),
        ("never setFunctionBreakpoints", nth("setFunctionBreakpoints", 2, "never")),
        ("never configurationDone", always("configurationDone", "never")),
        ("never disconnect", always("disconnect", "never")),
        ("dies at stackTrace", nth("stackTrace", 2, "exit")),
        ("dies at evaluate", always("evaluate", "signal")),
        ("closes at variables", nth("variables", 2, "close")),
        ("garbage at scopes", nth("scopes", 2, "garbage")),
        ("half a frame at stackTrace", nth("stackTrace", 2, "half")),
        ("a giant frame at evaluate", always("evaluate", "huge")),
        ("slow", json!({ "stops": 20, "faults": [{ "at": "*", "nth": 0, "do": "slow", "ms": 300 }] })),
        ("duplicate answers", always("*", "duplicate")),
        ("orphan answers", always("*", "orphan")),
        ("wrong types", always("*", "types")),
        ("reverse order", always("threads", "reverse")),
        ("floods", json!({ "stops": 20, "faults": [{ "at": "*", "nth": 0, "do": "flood", "count": 2000 }] })),
        (
            "refuses",
            json!({ "stops": 20, "faults": [
                { "at": "evaluate", "nth": 0, "do": "refuse" }, { "at": "stackTrace", "nth": 0, "do": "refuse" },
                { "at": "continue", "nth": 0, "do": "refuse" }, { "at": "next", "nth": 0, "do": "refuse" },
            ] }),
        ),
        ("stops twice", always("*", "twice")),
        ("stops before the answer to continue", always("continue", "early")),
        ("ignores disconnect", always("disconnect", "stay")),
    ]
}

/// A command, and the milliseconds it has: what it was told to wait, and the adapter's own limit where it asks it.
const COMMANDS: [(&[&str], u64); 24] = [
    (&["status"], 0),
    (&["sessions"], 0),
    (&["output"], 0),
    (&["context"], 1000),
    (&["backtrace"], 1000),
    (&["locals"], 1000),
    // Names first, then values: two questions.
    (&["args"], 2000),
    (&["print", "i"], 1000),
    (&["eval", "i"], 1000),
    (&["set", "i", "1"], 1000),
    (&["threads"], 1000),
    (&["frame", "0"], 1000),
    (&["exception"], 1000),
    (&["registers"], 1000),
    (&["memory", "read", "0x1000"], 1000),
    (&["raw", "x"], 1000),
    (&["break", "other"], 1000),
    (&["continue", "--wait", "1s"], 2000),
    (&["next", "--wait", "1s"], 2000),
    (&["step", "--wait", "1s"], 2000),
    (&["finish", "--wait", "1s"], 2000),
    (&["pause"], 2000),
    (&["await", "--timeout", "1"], 2000),
    (&["stop", "--all"], 4500),
];

fn fake(script: &Value) -> Bug {
    let mut bug = Bug::new("c");
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/adapter.py");
    fs::create_dir_all(bug.home().join("config")).unwrap();
    let limits = "initialize_secs = 1\nlaunch_secs = 2\nrequest_secs = 1\ninspect_secs = 1\n";
    bug.write(
        "config/config.toml",
        &format!("[adapters.lldb-dap]\npath = \"{}\"\n[timeouts]\n{limits}", adapter.display()),
    );
    let script = bug.write("script.json", &script.to_string());
    bug.env.push(("FAKE_SCRIPT".into(), script));
    bug.env.push(("FAKE_SPY".into(), bug.path("spy.log")));
    bug
}

/// What is wrong with an answer.
fn complaint(run: &Run, deadline: Duration) -> Option<String> {
    if run.took > deadline + LATE + SLACK {
        return Some(format!("took {:?} of {deadline:?}", run.took));
    }
    let Ok(envelope) = serde_json::from_str::<Value>(&run.stdout) else {
        return Some("no envelope".into());
    };
    if envelope["ok"] == true {
        return (run.code != 0 || envelope["result"].is_null()).then(|| "no result".into());
    }
    let error = &envelope["error"];
    let kind = error["kind"].as_str().unwrap_or_default();
    if !KINDS.contains(&kind) {
        return Some(format!("kind {kind:?}"));
    }
    if error["message"].as_str().unwrap_or_default().is_empty() {
        return Some("no message".into());
    }
    // What an adapter refused is told in its own words; everything else has a next step.
    let advised = error["hints"].as_array().is_some_and(|hints| !hints.is_empty());
    (!advised && kind != "refused").then(|| "no hint".into())
}

#[derive(Default)]
struct Figures {
    cells: usize,
    /// What is over a deadline, in milliseconds, and whose it is.
    late: Vec<(u128, String)>,
    complaints: Vec<String>,
}

fn give(bug: &Bug, fault: &str, words: &[&str], limit: u64, figures: &Mutex<Figures>) {
    let deadline = Duration::from_millis(limit);
    let run = bug.run(&[&["--json"], words].concat());
    let mut figures = figures.lock().unwrap();
    figures.cells += 1;
    figures.late.push((run.took.saturating_sub(deadline).as_millis(), format!("{} when {fault}", words.join(" "))));
    if let Some(complaint) = complaint(&run, deadline) {
        figures.complaints.push(format!("{fault}: {complaint}: {run}"));
    }
}

/// To the fake program's stop, or to whatever the fault makes of it: two seconds of launch, one of everything else.
fn start(bug: &Bug, fault: &str, figures: &Mutex<Figures>) {
    let binary = program("c/exit_code.c");
    give(bug, fault, &["run", "--wait", "1s", "--break", "main", &binary], 4000, figures);
}

fn stopped(bug: &Bug, fault: &str, figures: &Mutex<Figures>) {
    give(bug, fault, &["stop", "--all"], 4500, figures);
    let left: Vec<_> = bug.processes().into_iter().filter(|(_, line)| line.contains("adapter.py")).collect();
    if !left.is_empty() {
        figures.lock().unwrap().complaints.push(format!("{fault}: left after stop: {left:?}"));
    }
}

/// All commands to one session; one that was lost on the way answers the rest as a lost one.
fn shared(fault: &str, script: &Value, figures: &Mutex<Figures>) {
    let bug = fake(script);
    start(&bug, fault, figures);
    for (words, limit) in &COMMANDS[..COMMANDS.len() - 1] {
        give(&bug, fault, words, *limit, figures);
    }
    stopped(&bug, fault, figures);
}

/// A session for each command.
fn fresh(fault: &str, script: &Value, figures: &Mutex<Figures>) {
    let bug = fake(script);
    for (words, limit) in COMMANDS {
        start(&bug, fault, figures);
        give(&bug, fault, words, limit, figures);
        stopped(&bug, fault, figures);
    }
}

#[test]
fn every_command_answers_in_time_whatever_the_adapter_does() {
    let rounds: Option<usize> = std::env::var("BUGEYE_HANG_ROUNDS").ok().and_then(|text| text.parse().ok());
    let only = std::env::var("BUGEYE_HANG_FAULT").unwrap_or_default();
    let faults: Vec<_> = faults().into_iter().filter(|(name, _)| name.contains(&only)).collect();
    program("c/exit_code.c");
    let figures = Mutex::new(Figures::default());
    for _ in 0..rounds.unwrap_or(1) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    while let Some((name, script)) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if rounds.is_some() {
                            fresh(name, script, &figures);
                        } else {
                            shared(name, script, &figures);
                        }
                    }
                });
            }
        });
    }
    let mut figures = figures.into_inner().unwrap();
    figures.late.sort();
    let in_time = figures.late.iter().filter(|(late, _)| *late <= LATE.as_millis()).count();
    eprintln!(
        "hang: {} faults, {in_time} of {} answers by deadline + {LATE:?}; the latest:",
        faults.len(),
        figures.cells
    );
    for (late, what) in figures.late.iter().rev().take(10) {
        eprintln!("  {late} ms over: {what}");
    }
    let complaints = &figures.complaints;
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}
