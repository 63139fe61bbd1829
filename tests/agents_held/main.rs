//! Agents under the debugger, from a user's side: who may control one, what becomes of it when something dies, and what its
//! record tells. The agents are scripted; all else is real.
//!
//! `BUGEYE_AGENT_RUNS` is the number of deaths (50); `scripts/torture agents N` sets it.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod control;
mod deaths;
mod people;
mod prices;
mod records;
#[path = "../support/mod.rs"]
mod support;
mod threads;
mod words;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use serde_json::{Value, json};
use support::terminal::Terminal;
use support::{Bug, until};

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/agents").join(name).to_str().unwrap().to_string()
}

/// A home whose commands are given from an empty folder.
fn bug() -> Bug {
    let mut bug = Bug::new("python");
    bug.cwd = bug.home().join("work");
    fs::create_dir(&bug.cwd).unwrap();
    bug
}

/// A turn of one model answer per list of tools, then the end.
fn script(prompt: &str, steps: &[(&str, &[(&str, Value)])]) -> String {
    let step = |(text, tools): &(&str, &[(&str, Value)])| {
        let tools: Vec<Value> = tools.iter().map(|(name, input)| json!({ "name": name, "input": input })).collect();
        json!({ "text": text, "tools": tools })
    };
    let steps: Vec<Value> = steps.iter().map(step).chain([json!({ "text": "done" })]).collect();
    json!({ "turns": [{ "prompt": prompt, "steps": steps }] }).to_string()
}

fn bash(command: &str) -> (&'static str, Value) {
    ("bash", json!({ "command": command }))
}

/// The words that run the scripted agent.
fn agent(script: &str) -> [String; 3] {
    ["python3".into(), fixture("scripted_agent.py"), script.into()]
}

/// `run` (or `start`) with these flags, of the scripted agent.
fn words<'a>(flags: &[&'a str], agent: &'a [String]) -> Vec<&'a str> {
    flags.iter().copied().chain(["--agent", "--"]).chain(agent.iter().map(String::as_str)).collect()
}

fn read(bug: &Bug, name: &str) -> Option<String> {
    fs::read_to_string(bug.cwd.join(name)).ok()
}

/// Events of a session, of this type.
fn events(bug: &Bug, session: &str, kind: &str) -> Vec<Value> {
    let text = bug.run(&["events", "-s", session, "--json"]);
    assert_eq!(text.code, 0, "{text}");
    let all = text.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|event| event["type"] == kind).collect()
}

/// A command of a person: at a terminal.
#[track_caller]
fn person(bug: &Bug, words: &[&str]) -> String {
    let mut terminal = Terminal::new(bug.command(words), None);
    let code = terminal.ends();
    assert_eq!(code, Some(0), "{words:?}: {}", terminal.screen());
    // What was written last may still be on its way through the terminal.
    terminal.sees("\n");
    terminal.screen()
}

/// An agent of its own: a shell that lives, and is no child of another one.
struct Shell {
    child: Child,
    folder: PathBuf,
    count: u32,
}

impl Shell {
    pub fn new(bug: &Bug, name: &str) -> Self {
        let folder = bug.home().join(name);
        fs::create_dir(&folder).unwrap();
        let mut command = Command::new("sh");
        command.current_dir(&bug.cwd).env("BUGEYE_HOME", bug.home()).env("B", env!("CARGO_BIN_EXE_bugeye"));
        command.stdin(std::process::Stdio::piped());
        Self { child: command.spawn().unwrap(), folder, count: 0 }
    }

    /// Its answer, and its exit code.
    #[track_caller]
    pub fn runs(&mut self, words: &str) -> (i32, String) {
        self.count += 1;
        let (out, code) =
            (self.folder.join(format!("{}.out", self.count)), self.folder.join(format!("{}.code", self.count)));
        let line = format!("\"$B\" {words} > {} 2>&1 < /dev/null; echo $? > {}\n", out.display(), code.display());
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
        let mut found = String::new();
        until(words, || {
            found = fs::read_to_string(&code).unwrap_or_default();
            if found.ends_with('\n') { Ok(()) } else { Err(fs::read_to_string(&out).unwrap_or_default()) }
        });
        (found.trim().parse().unwrap(), fs::read_to_string(&out).unwrap())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
