//! An agent that speaks the bridge, under the real debugger: every way there is to watch it, hold it and steer it, by the
//! command line and by lines that any program can append to its record.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::scripted::{LANGUAGES, Language, program};
use support::{Bug, has, lacks, signal, until};

fn tool(name: &str, input: &Value) -> Value {
    json!({ "name": name, "input": input })
}

fn bash(command: &str) -> Value {
    tool("bash", &json!({ "command": command }))
}

/// A turn whose model answers so, call by call.
fn script(steps: &[Value]) -> String {
    json!({ "turns": [{ "prompt": "do the work", "steps": steps }] }).to_string()
}

/// Three model calls with a tool each; the first waits until a file `go` is there.
fn three() -> String {
    script(&[
        json!({ "text": "I wait", "tools": [tool("wait_for", &json!({ "path": "go" }))] }),
        json!({ "text": "I run", "tools": [bash("echo ran > ran; echo from the tool")] }),
        json!({ "text": "I write", "tools": [tool("write_file", &json!({ "path": "written", "content": "x" }))] }),
        json!({ "text": "all done" }),
    ])
}

/// A test's surroundings: commands are given from a folder of its own, where the agent's tools work too.
struct Agents {
    bug: Bug,
    work: tempfile::TempDir,
}

impl Agents {
    fn new() -> Self {
        let work = tempfile::tempdir().unwrap();
        let mut bug = Bug::new("python");
        bug.cwd = work.path().to_path_buf();
        Self { bug, work }
    }

    /// The words that run the agent; `more` are options of `run`.
    fn words(language: Language, more: &[&str], script: &str, transport: &str) -> Vec<String> {
        let agent = program(language);
        let options = ["--transport", transport, "--requests", "requests.jsonl"];
        let words = ["run", "--agent"].iter().chain(more).chain(&["--"]).map(ToString::to_string);
        words.chain(agent).chain([script.to_string()]).chain(options.map(ToString::to_string)).collect()
    }

    /// Runs the agent in Python to where `more` stops it.
    fn run(&self, more: &[&str], script: &str) -> String {
        let words = Self::words(Language::Python, more, script, "auto");
        self.bug.ok(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn ok(&self, line: &str) -> String {
        self.bug.ok(&support::words(line))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    fn file(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok()
    }

    /// Lets a tool that waits for this file go on.
    fn touch(&self, name: &str) {
        fs::write(self.path(name), "").unwrap();
    }

    fn records(&self) -> PathBuf {
        self.bug.home().join("state/sessions")
    }

    /// The folder of the newest session, by its link.
    fn current(&self) -> PathBuf {
        self.records().join("current")
    }

    /// As anybody would.
    fn echo(&self, line: &str) {
        let mut shell = Command::new("sh");
        let done = shell.args(["-c", r#"echo "$1" >> "$0/commands.jsonl""#]).arg(self.current()).arg(line).status();
        assert!(done.unwrap().success());
    }

    fn events(&self) -> Vec<Value> {
        events(&self.current())
    }

    /// The answer to a line.
    #[track_caller]
    fn answer(&self, id: &str) -> Value {
        let mut found = None;
        until(&format!("{id} is answered"), || {
            let mut results = self.events().into_iter().filter(|event| event["type"] == "command.result");
            found = results.find(|event| event["data"]["id"] == id).map(|mut event| event["data"].take());
            if found.is_some() { Ok(()) } else { Err(format!("{:?}", self.kinds())) }
        });
        found.unwrap()
    }

    /// A line, and the text of its answer.
    #[track_caller]
    fn say(&self, id: &str, line: &Value) -> String {
        let mut line = line.clone();
        line["id"] = json!(id);
        self.echo(&line.to_string());
        let answer = self.answer(id);
        assert_eq!(answer["ok"], true, "{answer}");
        answer["text"].as_str().unwrap().to_string()
    }

    fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|event| event["type"].as_str().unwrap().to_string()).collect()
    }

    /// Waits until the record has an event of this type.
    #[track_caller]
    fn waits_for(&self, kind: &str) {
        until(&format!("there is {kind}"), || {
            let kinds = self.kinds();
            if kinds.iter().any(|known| known == kind) { Ok(()) } else { Err(kinds.join(" ")) }
        });
    }

    /// What the model was given at each call.
    fn requests(&self) -> Vec<Value> {
        let text = self.file("requests.jsonl").unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn pid(&self, session: &str) -> i32 {
        i32::try_from(self.bug.json(&["-s", session, "status"])["pid"].as_i64().unwrap()).unwrap()
    }
}

fn events(record: &Path) -> Vec<Value> {
    let text = fs::read_to_string(record.join("events.jsonl")).unwrap();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn two_at_once_have_records_of_their_own_and_current_is_the_newest() {
    let agents = Agents::new();
    agents.run(&["--wait", "0"], &three());
    let first = fs::read_link(agents.current()).unwrap();
    agents.run(&["--wait", "0"], &three());
    let second = fs::read_link(agents.current()).unwrap();
    assert_ne!(first, second);
    has(&agents.ok("sessions"), &["s1: running", "s2: running", "scripted_agent", "[via agent]"]);
    for record in [&first, &second] {
        until("it is in its tool", || {
            let events = events(&agents.records().join(record));
            let found = events.iter().any(|event| event["type"] == "tool.call");
            if found { Ok(()) } else { Err(format!("{} events", events.len())) }
        });
    }
    // One is killed: that is said, its record stays, and the other goes on.
    let pid = agents.pid("s1");
    signal(pid, Signal::KILL);
    until("the end is known", || {
        let text = agents.ok("sessions --all");
        if text.contains("s1: ended by SIGKILL") { Ok(()) } else { Err(text) }
    });
    lacks(&agents.ok("sessions"), &["s1"]);
    let kept = events(&agents.records().join(&first));
    assert_eq!(kept.last().unwrap()["type"], "session.end");
    assert!(kept.iter().any(|event| event["type"] == "input.user"), "{kept:?}");
    has(&agents.ok("-s s1 events --filter session_end"), &["ended by SIGKILL"]);
    has(&agents.ok("-s s2 status"), &["s2: running"]);
    agents.touch("go");
    has(&agents.ok("-s s2 await"), &["exited: code 0"]);
}

#[test]
fn a_line_pauses_it_and_a_line_lets_it_go_on() {
    let agents = Agents::new();
    agents.run(&["--wait", "0"], &three());
    agents.waits_for("tool.call");
    agents.echo(r#"{"type":"pause","id":"test1","data":{}}"#);
    // A tool that runs can't be held: it takes hold at the next gate.
    has(agents.answer("test1")["text"].as_str().unwrap(), &["running", "held when its tool is done"]);
    lacks(&agents.kinds().join(" "), &["stopped"]);
    agents.touch("go");
    agents.waits_for("stopped");
    has(&agents.ok("events --filter paused"), &["stopped: pause in after tool wait_for"]);
    assert_eq!(agents.file("ran"), None);
    agents.echo(r#"{"type":"resume","id":"test2","data":{}}"#);
    has(agents.answer("test2")["text"].as_str().unwrap(), &["exited: code 0"]);
    has(&agents.ok("events --filter resumed"), &["continued: continue"]);
    assert_eq!((agents.file("ran").as_deref(), agents.file("written").as_deref()), (Some("ran\n"), Some("x")));
    has(&agents.ok("output"), &["main: all done"]);
}

#[test]
fn commands_pause_step_and_resume_it() {
    let agents = Agents::new();
    agents.run(&["--wait", "0"], &three());
    agents.waits_for("tool.call");
    has(&agents.ok("pause"), &["running", "held when its tool is done"]);
    agents.touch("go");
    has(&agents.ok("await"), &["stopped: pause in after tool wait_for"]);
    has(&agents.ok("step"), &["stopped: step in before model call", "iteration 2"]);
    assert_eq!(agents.requests().len(), 1, "the model was asked");
    has(&agents.ok("step"), &["stopped: step in before model call", "iteration 3"]);
    assert_eq!((agents.file("ran").is_some(), agents.file("written")), (true, None));
    has(&agents.say("1", &json!({ "type": "step" })), &["stopped: step in before model call", "iteration 4"]);
    has(&agents.ok("finish"), &["stopped: step in before the turn ends"]);
    let steps = agents.ok("events --filter step_complete");
    has(&steps, &["stopped: step", "before the turn ends"]);
    lacks(&steps, &["stopped: pause"]);
    has(&agents.ok("continue"), &["exited: code 0"]);
}

/// Each unit a step can have, by a line.
#[test]
fn it_is_stepped_by_any_unit() {
    let agents = Agents::new();
    agents.run(&["--break", "iteration:1"], &three().replace("wait_for", "read_file"));
    let step = |id: &str, unit: &str| agents.say(id, &json!({ "type": "step", "data": { "unit": unit } }));
    has(&step("1", "tool"), &["before tool read_file", "iteration 1"]);
    // There is no other in this iteration: it ends there.
    has(&step("2", "tool"), &["before model call", "iteration 2"]);
    has(&step("3", "tool"), &["before tool bash", "iteration 2"]);
    assert_eq!(agents.file("ran"), None);
    has(&step("4", "model"), &["before model call", "iteration 3"]);
    has(&step("5", "iteration"), &["before model call", "iteration 4"]);
    assert_eq!(agents.file("written").as_deref(), Some("x"));
    has(&step("6", "turn"), &["before the turn ends"]);
    has(&agents.ok("continue"), &["exited: code 0"]);
}

/// Of two that are held, the one that is named goes on, by a word and by a line.
#[test]
fn commands_go_to_the_session_that_is_meant() {
    let agents = Agents::new();
    let steps = |name: &str| script(&[json!({ "tools": [bash(&format!("echo > {name}"))] })]);
    for name in ["one", "two", "three"] {
        has(&agents.run(&["--break", "tool:bash"], &steps(name)), &["before tool bash"]);
    }
    has(&agents.ok("-s s1 print tool_input.command"), &["echo > one"]);
    has(&agents.ok("-s s2 continue"), &["exited: code 0 [s2"]);
    let made = || ["one", "two", "three"].map(|name| agents.file(name).is_some());
    assert_eq!(made(), [false, true, false]);
    // The link is to the third.
    has(&agents.say("r", &json!({ "type": "resume" })), &["exited: code 0 [s3"]);
    assert_eq!(made(), [false, true, true]);
    let index = || -> Value {
        serde_json::from_str(&fs::read_to_string(agents.records().join("index.json")).unwrap()).unwrap()
    };
    until("the list is up to date", || {
        let index = index();
        let state = |alias: &str| {
            let sessions = index["sessions"].as_array().unwrap();
            sessions.iter().find(|one| one["alias"] == alias).map(|one| one["state"].clone())
        };
        let states = ["s1", "s2", "s3"].map(state);
        if states == [Some(json!("live")), Some(json!("ended")), Some(json!("ended"))] {
            Ok(())
        } else {
            Err(format!("{states:?}"))
        }
    });
    has(&agents.ok("-s s1 continue"), &["exited: code 0 [s1"]);
    assert_eq!(made(), [true; 3]);
}

/// A line is carried out once, and what came of it is an event that can be found by its id.
#[test]
fn each_line_is_answered_once() {
    let agents = Agents::new();
    agents.run(&["--break", "tool:bash"], &script(&[json!({ "tools": [bash("echo x >> x")] })]));
    for id in ["a", "b"] {
        has(&agents.say(id, &json!({ "type": "inspect", "data": { "what": "usage" } })), &["tokens: 15"]);
    }
    let answer = agents.answer("a");
    assert_eq!(answer["result"]["value"]["tokens"], 15, "{answer}");
    assert_eq!((&answer["result"]["paused"], &answer["result"]["session"]), (&json!(true), &json!("s1")));
    has(&agents.say("c", &json!({ "type": "resume" })), &["exited: code 0"]);
    let results = agents.events().into_iter().filter(|event| event["type"] == "command.result");
    let ids: Vec<String> = results.filter_map(|event| Some(event["data"]["id"].as_str()?.to_string())).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    for filter in ["command_response", "command_executed"] {
        let text = agents.ok(&format!("-s s1 events --filter {filter}"));
        has(&text, &["inbox:a inspect: ok", "inbox:b inspect: ok", "inbox:c continue: ok"]);
        lacks(&text, &["tool.call", "stopped"]);
    }
    assert_eq!(agents.file("x").as_deref(), Some("x\n"));
}

/// What is left out of a picture is said, with the command that shows it.
#[test]
fn a_picture_is_bounded_and_says_how_to_see_more() {
    let agents = Agents::new();
    let long = "x".repeat(50_000);
    let command = format!("echo {long}");
    let steps = [json!({ "text": long, "tools": [bash("true")] }), json!({ "tools": [bash(&command)] })];
    agents.run(&["--break", "pattern:echo"], &script(&steps));
    let all = agents.ok("inspect all");
    assert!(all.len() < 5000, "{} bytes", all.len());
    has(
        &all,
        &[
            "session: s1, held, recorded as ",
            "characters more)",
            "more of what it is held at: bugeye print --full tool_input",
        ],
    );
    let messages = agents.ok("inspect messages --last 1");
    has(&messages, &["count: 3", "all 3 messages: bugeye inspect messages --last 3"]);
    has(&agents.ok("inspect messages"), &["more of a message: bugeye print --full messages[1].content"]);
    let whole = agents.bug.json(&["print", "--full", "messages[1].content[0].text"]);
    assert!(whole.to_string().len() > 10_000, "{} bytes", whole.to_string().len());
}

#[test]
fn what_it_has_before_it_is_shown() {
    let agents = Agents::new();
    agents.run(&["--break", "tool:bash"], &three().replace("wait_for", "read_file"));
    let all = agents.ok("inspect all");
    has(&all, &["agent: agent scripted", "iteration: 2", "prompt: do the work", "point: before_tool"]);
    has(&all, &["messages:", "context:", "usage:", "names: bash, write_file, read_file, wait_for, task"]);
    has(&agents.ok("inspect messages"), &["count: 3", "roles: user 2, assistant 1", "[0] user: do the work"]);
    has(&agents.ok("inspect context"), &["model: scripted-1", "tools: 5", "exact: true"]);
    has(&agents.ok("inspect tools"), &["count: 5"]);
    has(&agents.ok("inspect system"), &["You follow a script."]);
    let picture = agents.bug.json(&["inspect", "all"]);
    assert_eq!((&picture["value"]["iteration"], &picture["value"]["gate"]["tool"]), (&json!(2), &json!("bash")));
    for line in [
        json!({ "type": "inspect", "data": { "what": "all" } }),
        json!({ "type": "inspect", "what": "all", "timestamp": "2026-01-23T13:10:00Z" }),
        json!({ "cmd": "inspect", "args": ["all"] }),
    ] {
        has(&agents.say(&format!("i{}", agents.events().len()), &line), &["prompt: do the work", "iteration: 2"]);
    }
    let pictures = agents.ok("events --filter state_snapshot");
    has(&pictures, &["inspect: ok"]);
    lacks(&pictures, &[" run: ok"]);
    has(&agents.ok("print tool_input.command"), &["echo ran > ran; echo from the tool"]);
    has(&agents.ok("print messages[0].content"), &["do the work"]);
    has(&agents.ok("backtrace"), &["before tool bash", "iteration 2", "turn 1: do the work"]);
}

/// Each kind, set by a line in each form: what it stops before has not happened.
#[test]
fn breakpoints_hold_what_they_are_on() {
    let agents = Agents::new();
    let started = agents.run(&["--wait", "0"], &three());
    has(&started, &["running"]);
    agents.waits_for("tool.call");
    let add = |id: &str, data: Value| {
        let mut nested = json!({ "type": "breakpoint", "data": data });
        nested["data"]["action"] = json!("add");
        agents.say(id, &nested)
    };
    has(&add("1", json!({ "on": "iteration", "count": 2 })), &["breakpoint 1 iteration:2: verified"]);
    has(&add("2", json!({ "on": "tool", "name": "write_file" })), &["breakpoint 2 tool:write_file: verified"]);
    let flat = json!({ "type": "breakpoint", "action": "add", "on": "pattern", "regex": "ra[n] > ran" });
    has(&agents.say("3", &flat), &["breakpoint 3 pattern:ra[n] > ran: verified"]);
    // One that is for another input holds nothing.
    let other = add("other", json!({ "on": "tool", "name": "*", "input": "never [m]et", "thread": "main" }));
    has(&other, &["breakpoint 4 tool:*", "tool_input ~ \"never [m]et\" && thread == \"main\""]);
    let bad = json!({ "type": "breakpoint", "id": "bad", "data": { "action": "add", "on": "pattern", "regex": "(" } });
    agents.echo(&bad.to_string());
    has(&agents.answer("bad").to_string(), &["regular expression"]);
    let list = agents.say("4", &json!({ "type": "breakpoint", "data": { "action": "list" } }));
    has(&list, &["breakpoint 1 iteration:2", "breakpoint 2 tool:write_file", "breakpoint 3 pattern:ra[n] > ran"]);
    agents.touch("go");
    has(&agents.ok("await"), &["stopped: breakpoint 1 (hit 1) in before model call"]);
    assert_eq!(agents.requests().len(), 1, "the model was asked");
    has(&agents.ok("continue"), &["stopped: breakpoint 3 (hit 1) in before tool bash"]);
    assert_eq!(agents.file("ran"), None, "the tool has run");
    has(&agents.ok("continue"), &["stopped: breakpoint 2 (hit 1) in before tool write_file"]);
    assert_eq!((agents.file("ran").is_some(), agents.file("written")), (true, None));
    let hits = agents.ok("events --filter breakpoint_hit");
    has(&hits, &["breakpoint 1 (hit 1)", "breakpoint 2 (hit 1)", "breakpoint 3 (hit 1)"]);
    agents.say("5", &json!({ "type": "breakpoint", "data": { "action": "clear", "id": 2 } }));
    let list = agents.ok("breaks");
    has(&list, &["iteration:2", "pattern:"]);
    lacks(&list, &["write_file"]);
    agents.say("6", &json!({ "type": "breakpoint", "data": { "action": "clear-all" } }));
    lacks(&agents.ok("breaks"), &["iteration:2", "pattern:"]);
    has(&agents.ok("continue"), &["exited: code 0"]);
    assert_eq!(agents.file("written").as_deref(), Some("x"));
}

#[test]
fn it_is_changed_cancelled_and_spoken_to_by_lines() {
    let agents = Agents::new();
    let steps = script(&[
        json!({ "tools": [bash("echo one > one")] }),
        json!({ "tools": [bash("echo two > two")] }),
        json!({ "text": "all done" }),
    ]);
    has(&agents.run(&["--break", "tool:bash"], &steps), &["breakpoint 1 (hit 1) in before tool bash"]);
    let set = json!({ "type": "set_variable", "data": { "key": "tool_input.command", "value": "echo changed > one" } });
    has(&agents.say("1", &set), &["echo changed > one"]);
    has(&agents.say("2", &json!({ "type": "resume" })), &["breakpoint 1 (hit 2) in before tool bash"]);
    assert_eq!(agents.file("one").as_deref(), Some("changed\n"));
    let inject = json!({ "type": "inject_message", "data": { "role": "user", "content": "--mind the gap" } });
    has(&agents.say("3", &inject), &["it is put in"]);
    let id = agents.bug.json(&["inspect", "all"])["value"]["gate"]["id"].clone();
    let cancel = json!({ "type": "cancel_tool", "data": { "toolId": id, "reason": "not that one" } });
    has(&agents.say("4", &cancel), &["cancelled: bash", "exited: code 0"]);
    assert_eq!(agents.file("two"), None);
    let last = agents.requests().pop().unwrap()["messages"].to_string();
    has(&last, &["[debugger] not that one", "[debugger] --mind the gap"]);
    has(
        &agents.ok("events --filter injected,edited,tool.denied"),
        &["as user, by inbox:3", "not that one", "tool_input"],
    );
}

#[test]
fn events_stream_as_they_come_and_are_chosen() {
    let agents = Agents::new();
    agents.run(&["--wait", "0"], &three());
    agents.waits_for("tool.call");
    let filter = "tool_call_start,tool_call_end,session_end";
    let watching = agents.bug.spawn(&["-s", "s1", "events", "--follow", "--from-start", "--filter", filter]);
    agents.touch("go");
    let run = watching.wait();
    assert_eq!(run.code, 0, "{run}");
    has(&run.stdout, &["tool.call: wait_for", "tool.end: wait_for ok", "tool.call: bash", "tool.end: write_file ok"]);
    has(&run.stdout, &["session.end: exited: code 0"]);
    lacks(&run.stdout, &["model.request", " command:", "stopped"]);
    let all = agents.ok("-s s1 events");
    has(
        &all,
        &[
            "tap.attached: sdk, scripted",
            "input.user",
            "model.request: iteration 1",
            "model.response: \"I wait\", 10 + 5 tokens",
        ],
    );
    // The record again: by its id, by its file, in its pace.
    let file = agents.current().join("events.jsonl");
    let file = file.to_str().unwrap();
    for words in [&["replay", "s1"][..], &["replay", file], &["replay", "--speed", "1000x", file]] {
        let text = agents.bug.ok(&[words, &["--filter", "tool_call_start,session_end"]].concat());
        has(&text, &["tool.call: wait_for", "tool.call: bash", "session.end: exited: code 0"]);
        lacks(&text, &["tool.end"]);
    }
}

#[test]
fn sub_agents_are_threads_and_errors_are_told() {
    let agents = Agents::new();
    let part = json!({ "prompt": "the part", "steps": [{ "tools": [bash("echo part > part")] }] });
    let steps = script(&[
        json!({ "error": "overloaded" }),
        json!({ "tools": [tool("task", &part), tool("format_disk", &json!({})), bash("exit 7")] }),
    ]);
    has(&agents.run(&["--break", "tool:bash"], &steps), &["before tool bash", "task-"]);
    let threads = agents.ok("threads");
    has(&threads, &["main", "task-"]);
    has(&agents.ok("backtrace"), &["before tool bash", "turn 1: the part", "started by main"]);
    assert_eq!(agents.file("part"), None);
    has(&agents.ok("events --filter error"), &["model.error", "overloaded"]);
    agents.ok("catch error");
    has(&agents.ok("continue"), &["breakpoint 1 (hit 2) in before tool bash"]);
    assert!(agents.file("part").is_some());
    has(&agents.ok("events --filter tool.denied,agent.*"), &["agent.spawn", "agent.exit", "format_disk"]);
    has(&agents.ok("continue"), &["exception", "after tool bash"]);
    has(&agents.ok("continue"), &["exited: code 0"]);
}

/// In every language and by every transport: held before the tool, edited, let go.
#[test]
fn every_client_is_held_and_edited() {
    let steps = script(&[json!({ "tools": [bash("echo x > x")] })]);
    for language in LANGUAGES {
        for transport in ["socket", "files"] {
            println!("{language:?} by {transport}");
            let agents = Agents::new();
            let words = Agents::words(language, &["--break", "tool:bash"], &steps, transport);
            let text = agents.bug.ok(&words.iter().map(String::as_str).collect::<Vec<_>>());
            has(&text, &["stopped: breakpoint 1 (hit 1) in before tool bash", "echo x > x"]);
            assert_eq!(agents.file("x"), None);
            agents.ok("set tool_input.command = 'echo edited > x'");
            has(&agents.ok("continue"), &["exited: code 0"]);
            assert_eq!(agents.file("x").as_deref(), Some("edited\n"));
        }
    }
}

/// Whoever held it is gone: it goes on by itself, and what was recorded is kept and said to be cut short.
#[test]
fn when_the_daemon_is_killed_the_agent_goes_on() {
    let steps = script(&[json!({ "tools": [bash("echo x > x")] })]);
    for transport in ["socket", "files"] {
        let agents = Agents::new();
        let words = Agents::words(Language::Python, &["--break", "tool:bash"], &steps, transport);
        agents.bug.ok(&words.iter().map(String::as_str).collect::<Vec<_>>());
        let record = fs::canonicalize(agents.current()).unwrap();
        assert_eq!(agents.file("x"), None);
        let daemon = agents.bug.json(&["daemon", "status"])["pid"].as_i64().unwrap();
        signal(i32::try_from(daemon).unwrap(), Signal::KILL);
        until("the tool has run", || if agents.file("x").is_some() { Ok(()) } else { Err("not yet".into()) });
        agents.bug.no_process_left();
        assert!(events(&record).iter().any(|event| event["type"] == "stopped"));
        // The next daemon lists it as what it is, and keeps what was recorded.
        has(&agents.ok("sessions --all"), &["crashed"]);
        lacks(&agents.ok("sessions"), &["s1"]);
        let id = record.file_name().unwrap().to_str().unwrap();
        has(&agents.bug.ok(&["replay", id]), &["tool.call: bash", "stopped: breakpoint"]);
    }
}

/// A half line waits, and nonsense is answered.
#[test]
fn what_is_no_command_changes_nothing() {
    let agents = Agents::new();
    agents.run(&["--break", "tool:bash"], &script(&[json!({ "tools": [bash("echo x > x")] })]));
    for (id, line, words) in [
        ("at-0", "nonsense", "no JSON"),
        ("a", r#"{"id":"a","type":"inject_message","data":{}}"#, "needs a `content`"),
        ("b", r#"{"id":"b","type":"inspect","data":{"what":"soul"}}"#, "can't be inspected"),
        ("c", r#"{"id":"c","type":"cancel_tool","data":{"toolId":"none"}}"#, "no tool call none is held"),
        ("d", r#"{"id":"d","type":"breakpoint","data":{"action":"add","on":"moon"}}"#, "no breakpoint on moon"),
    ] {
        agents.echo(line);
        let answer = agents.answer(id);
        assert_eq!(answer["ok"], false, "{answer}");
        has(answer["error"]["message"].as_str().unwrap(), &[words]);
    }
    let mut file = OpenOptions::new().append(true).open(agents.current().join("commands.jsonl")).unwrap();
    file.write_all(b"{\"type\":\"resume\",\"id\":\"half\"").unwrap();
    agents.ok("inspect usage");
    has(&agents.ok("status"), &["stopped (breakpoint 1"]);
    file.write_all(b"}\n").unwrap();
    has(agents.answer("half")["text"].as_str().unwrap(), &["exited: code 0"]);
    assert_eq!(agents.file("x").as_deref(), Some("x\n"));
}
