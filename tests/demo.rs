//! The first command of the README: it works with either debugger, from nothing, and leaves nothing behind.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use bugeye::paths::Paths;
use serde_json::Value;

fn bugeye(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
    // What a caller has set must not lead the demo astray.
    command.args(arguments).env("BUGEYE_HOME", home).env("BUGEYE_ADAPTER", "nonsense").env("TMPDIR", home.join("tmp"));
    command.stdin(Stdio::null()).output().unwrap()
}

/// A home with the user's own adapters.
fn home() -> tempfile::TempDir {
    let setup = Command::new(env!("CARGO_BIN_EXE_bugeye")).args(["setup", "debugpy"]).output().unwrap();
    assert!(setup.status.success(), "{setup:?}");
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("data")).unwrap();
    fs::create_dir(home.path().join("tmp")).unwrap();
    let adapters = Paths::locate().unwrap().data.join("adapters");
    std::os::unix::fs::symlink(adapters, home.path().join("data/adapters")).unwrap();
    home
}

fn is_running(home: &Path) -> bool {
    let status = bugeye(home, &["daemon", "status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    status["result"]["running"] == true
}

#[test]
fn the_demo_finds_the_bug_and_leaves_nothing() {
    let home = home();
    let home = home.path();
    for adapter in [&["demo"][..], &["demo", "--adapter", "lldb-dap"]] {
        let demo = bugeye(home, adapter);
        let text = String::from_utf8(demo.stdout).unwrap();
        assert!(demo.status.success(), "{text}{}", String::from_utf8_lossy(&demo.stderr));
        for part in ["$ bugeye run --break average.", "\ntotal = 12\n", "average: 3.0", "The bug: "] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
        assert!(!is_running(home), "the daemon it started is ended again");
        assert_eq!(fs::read_dir(home.join("tmp")).unwrap().count(), 0);
    }
}

#[test]
fn a_daemon_that_was_there_stays_and_json_has_every_step() {
    let home = home();
    let home = home.path();
    bugeye(home, &["daemon", "start"]);
    let demo = bugeye(home, &["demo", "--json"]);
    let answer: Value = serde_json::from_slice(&demo.stdout).unwrap();
    assert_eq!(answer["result"]["steps"].as_array().map(Vec::len), Some(3), "{answer}");
    assert!(is_running(home));
    let sessions = bugeye(home, &["sessions", "--json"]);
    assert!(!String::from_utf8_lossy(&sessions.stdout).contains("average"), "{sessions:?}");
    bugeye(home, &["daemon", "stop"]);
}

#[test]
fn an_adapter_nobody_knows_is_a_mistake_of_usage() {
    let home = tempfile::tempdir().unwrap();
    let demo = bugeye(home.path(), &["demo", "--adapter", "nonsense"]);
    assert_eq!(demo.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&demo.stderr).contains("known: lldb-dap"), "{demo:?}");
}
