//! Variables: each that is read is in the table, and each counts where the table says, by the command line and by MCP.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

#[path = "mcp/pipe.rs"]
#[allow(dead_code, reason = "each test crate uses its own part")]
mod pipe;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use pipe::Pipe;
use support::fixtures::{at, program};
use support::{Bug, has, lacks};

/// Variables of Bugeye's own processes, which nobody is to set.
const INTERNAL: [(&str, &str); 3] = [
    ("BUGEYE_SUPERVISED", "marks the processes of a session, so that a later daemon can end what an earlier one left"),
    ("BUGEYE_NODE", "tells the preload script of Node where to report"),
    ("BUGEYE_STREAMS", "tells gdb where a program's streams are"),
];

/// Every name of a variable of ours in a text.
fn names(text: &str) -> BTreeSet<String> {
    let ends = |c: char| !c.is_ascii_uppercase() && c != '_';
    let found = text.match_indices("BUGEYE_").map(|(at, _)| text[at..].split(ends).next().unwrap_or_default());
    found.map(|name| name.trim_end_matches('_').to_string()).filter(|name| name != "BUGEYE").collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_variable_is_in_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read: BTreeSet<String> = files(&root.join("src"))
        .iter()
        .flat_map(|path| names(&String::from_utf8_lossy(&fs::read(path).unwrap())))
        .collect();
    let internal: BTreeSet<String> = INTERNAL.iter().map(|(name, _)| (*name).to_string()).collect();
    assert!(internal.is_subset(&read), "no longer read: {:?}", internal.difference(&read));
    let page = fs::read_to_string(root.join("docs/environment.md")).unwrap();
    let rows: String = page.lines().filter(|line| line.starts_with("| `")).collect();
    let heads: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .flat_map(|row| names(row.split(" | ").next().unwrap()))
        .collect();
    let told: BTreeSet<String> = read.difference(&internal).cloned().collect();
    assert_eq!(heads, told, "the table of docs/environment.md, and what src reads");
    has(&rows, &["`NO_COLOR`", "`XDG_STATE_HOME`"]);
}

#[test]
fn names_are_found_in_code_and_text() {
    let text = "env(\"BUGEYE_A_B\") $BUGEYE_C BUGEYE_ `BUGEYE_D`";
    assert_eq!(names(text).into_iter().collect::<Vec<_>>(), ["BUGEYE_A_B", "BUGEYE_C", "BUGEYE_D"]);
}

/// The limit of a session's requests is that of whoever started it.
#[test]
fn a_request_may_take_as_long_as_asked() {
    let mut bug = Bug::new("python");
    let body = at("python/loop.py", "body");
    bug.env.push(("BUGEYE_REQUEST_TIMEOUT_MS".into(), "soon".into()));
    bug.run(&["run", "loop.py", "--break", &body])
        .fails(2, "BUGEYE_REQUEST_TIMEOUT_MS is to be a number of milliseconds");
    bug.env[0].1 = "700".into();
    bug.ok(&["run", "loop.py", "--break", &body]);
    let run = bug.run(&["eval", "__import__('time').sleep(20)"]);
    run.fails(4, "did not answer in time");
    assert!(run.took.as_secs() < 10, "{run}");
    bug.ok(&["stop"]);

    let mut agent = Pipe::new(&bug);
    agent.ok("debug_run", json!({ "command": ["loop.py"], "break": [body] }));
    let (text, mistake) = agent.call("debug_eval", json!({ "expressions": ["__import__('time').sleep(20)"] }));
    assert!(mistake, "{text}");
    has(&text, &["did not answer in time"]);
    assert_eq!(agent.leave().1, Some(0));
}

/// The adapter that the environment asks for, of a command and of an MCP entry.
#[test]
fn the_adapter_of_the_environment_is_used() {
    let mut bug = Bug::new("c");
    bug.env.push(("BUGEYE_ADAPTER".into(), "no-such".into()));
    let fixture = program("c/loop_basic.c");
    bug.run(&["start", &fixture]).fails(2, "there is no adapter `no-such`");
    // What is asked for by name comes first.
    has(&bug.ok(&["start", &fixture, "--adapter", "lldb-dap"]), &["via lldb-dap"]);
    bug.ok(&["stop"]);
    let mut agent = Pipe::new(&bug);
    let (text, mistake) = agent.call("debug_run", json!({ "command": [fixture] }));
    assert!(mistake, "{text}");
    has(&text, &["there is no adapter `no-such`"]);
    assert_eq!(agent.leave().1, Some(0));
}

/// Events go to the log of the daemon where a session was started so, and to the standard error of an MCP server.
#[test]
fn events_are_logged_on_request() {
    let mut bug = Bug::new("python");
    let body = at("python/loop.py", "body");
    bug.ok(&["run", "loop.py", "--break", &body]);
    bug.ok(&["stop"]);
    lacks(&bug.ok(&["daemon", "log"]), &["info event"]);
    bug.env.push(("BUGEYE_LOG_EVENTS".into(), "true".into()));
    let mut agent = Pipe::new(&bug);
    bug.env.clear();
    agent.ok("debug_run", json!({ "command": ["loop.py"], "break": [body], "name": "mine" }));
    // Of others' sessions nothing.
    bug.ok(&["run", "loop.py", "--break", &body, "--name", "other"]);
    agent.ok("debug_sessions", json!({ "action": "stop" }));
    let log = bug.ok(&["daemon", "log", "-n", "500"]);
    has(&log, &[r#"info event {"v":1,"seq":1,"#, r#""type":"stopped","data":{"number":1,"#, r#""type":"session.end""#]);
    assert_eq!(log.matches(r#""type":"session.start""#).count(), 1, "{log}");
    let (_, code, said) = agent.leave();
    assert_eq!(code, Some(0));
    has(
        &said,
        &[
            "mine session.start: ",
            "mine stopped: breakpoint 2 (hit 1) in work loop.py:7",
            "mine session.end: ended by bugeye stop",
        ],
    );
    lacks(&said, &["other "]);
    bug.ok(&["-s", "other", "stop"]);
}

/// Recordings, breakpoints and the log are elsewhere, and nothing else is; the daemon's place counts.
#[test]
fn the_state_directory_can_be_elsewhere() {
    let mut bug = Bug::new("python");
    let elsewhere = tempfile::tempdir().unwrap();
    let state = elsewhere.path().join("state");
    bug.env.push(("BUGEYE_STATE_DIR".into(), state.to_str().unwrap().into()));
    bug.ok(&["break", &at("python/loop.py", "body")]);
    bug.ok(&["run", "loop.py"]);
    bug.ok(&["stop"]);
    for name in ["sessions", "breakpoints", "daemon.log"] {
        assert!(state.join(name).exists(), "{name} in {:?}", files(&state));
    }
    assert!(!bug.home().join("state").exists());
    assert!(bug.home().join("runtime/daemon.sock").exists());
    has(&bug.ok(&["config"]), &[state.to_str().unwrap()]);
    // Asked without it, while that daemon runs.
    let with = bug.env.pop().unwrap();
    has(&bug.ok(&["events", "-s", "s1", "-f", "stopped"]), &["breakpoint 1 (hit 1)"]);
    has(&bug.ok(&["daemon", "log"]), &["run: ok"]);
    has(&bug.ok(&["daemon", "status"]), &[&state.join("daemon.log").display().to_string()]);
    bug.env.push(with);
    bug.ok(&["unbreak", "--all"]);
    bug.close();
    has(&bug.ok(&["events", "-f", "stopped"]), &["breakpoint 1 (hit 1)"]);
}

/// Nothing colours what is no terminal's, and `NO_COLOR` is heard on one.
#[test]
fn no_colours_where_none_are_wanted() {
    let mut bug = Bug::new("python");
    let on_a_terminal = |bug: &Bug| {
        let mut words = std::process::Command::new("script");
        let line = format!("{} daemon stats", env!("CARGO_BIN_EXE_bugeye"));
        words.args(["-qec", &line, "/dev/null"]).env("BUGEYE_HOME", bug.home()).env("TERM", "xterm");
        words.env_remove("NO_COLOR").envs(bug.env.iter().map(|(name, value)| (name, value)));
        let done = words.stdin(std::process::Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    has(&on_a_terminal(&bug), &["\u{1b}[", "invalid value"]);
    bug.env.push(("NO_COLOR".into(), "1".into()));
    let plain = on_a_terminal(&bug);
    has(&plain, &["invalid value"]);
    lacks(&plain, &["\u{1b}["]);
    lacks(&bug.run(&["daemon", "stats"]).stderr, &["\u{1b}["]);
}
