//! The first command of the README: it works with either debugger, from nothing, and leaves nothing behind.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;

use support::{Bug, has};

/// A home whose temporary folder is its own, for a caller whose settings must not lead the demo astray.
fn home() -> Bug {
    let mut bug = Bug::new("c");
    let folder = bug.path("tmp");
    fs::create_dir(&folder).unwrap();
    bug.env = vec![("TMPDIR".into(), folder), ("BUGEYE_ADAPTER".into(), "nonsense".into())];
    bug
}

/// `3 hits in 0.42 s` takes another time each time.
fn without_times(text: &str) -> String {
    let line =
        |line: &str| match line.split_once(" in ").and_then(|(hits, rest)| Some((hits, rest.split_once(" s (")?.1))) {
            Some((hits, rest)) => format!("{hits} in T s ({rest}"),
            None => line.to_string(),
        };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn is_running(bug: &Bug) -> bool {
    bug.json(&["daemon", "status"])["running"] == true
}

#[test]
fn the_demo_finds_the_bug_and_leaves_nothing() {
    let bug = home();
    for words in [&["demo"][..], &["demo", "--adapter", "lldb-dap"]] {
        let text = bug.ok(words);
        has(&text, &["$ bugeye trace --at 'average.", "3 hits in ", "    3 i=2 values[i]=6 total=6\n"]);
        has(&text, &["$ bugeye run --break average.", "\ntotal = 12\n", "average: 3.0", "The bug: "]);
        let readme = without_times(include_str!("../README.md"));
        for step in without_times(&text).split("\nThe bug: ").next().unwrap_or_default().split_inclusive("\n\n$ ") {
            let step = step.trim_end_matches("$ ").trim();
            assert!(words.len() > 1 || readme.contains(step), "README.md shows another run than this one:\n{step}");
        }
        assert!(!is_running(&bug), "the daemon it started is ended again");
        assert_eq!(fs::read_dir(bug.path("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn a_daemon_that_was_there_stays_and_json_has_every_step() {
    let bug = home();
    bug.ok(&["daemon", "start"]);
    let shown = bug.json(&["demo"]);
    assert_eq!(shown["steps"].as_array().map(Vec::len), Some(4), "{shown}");
    assert!(is_running(&bug));
    assert!(!bug.ok(&["sessions"]).contains("average"));
}

#[test]
fn an_adapter_nobody_knows_is_a_mistake_of_usage() {
    home().run(&["demo", "--adapter", "nonsense"]).fails(2, "known: lldb-dap");
}
