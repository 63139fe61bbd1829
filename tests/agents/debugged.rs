//! Real agents under the real debugger, by its command line: held, looked at, changed, spoken to, ended, run again.
//!
//! What an agent did is measured at what its tools left behind and at what the model was asked.
//!
//! `BUGEYE_REAL_AGENT_RUNS` is the number of deaths of all agents together (one each); `scripts/torture real-agents N` sets it
//! and shows the figures.

mod terminal;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::drivers::{Agent, CLAUDE, CODEX, COPILOT, GEMINI, OPENCODE};
use crate::model::{Model, Request, Turn};
use crate::support::{agents, has, lacks, until};
use crate::{World, went};

/// Long enough to see that nothing happens.
const A_WHILE: Duration = Duration::from_secs(2);

/// An agent with a model and a world of its own, under the debugger.
struct Desk {
    agent: &'static Agent,
    world: World,
    model: Model,
    env: BTreeMap<String, String>,
    /// What the user has in the home and in the project, by path.
    theirs: BTreeMap<PathBuf, Vec<u8>>,
}

/// The files below a folder.
fn files(folder: &Path, into: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => files(&path, into),
            kind if kind.is_file() => drop(into.insert(path.clone(), fs::read(path).unwrap())),
            _ => {}
        }
    }
}

impl Desk {
    /// The model calls the shell with each of the commands, and is done.
    fn new(agent: &'static Agent, commands: &[&str]) -> Self {
        let calls = commands.iter().map(|command| Turn::call(agent.shell, (agent.input)(command)));
        Self::played(agent, calls.chain([Turn::text("All done.")]).collect())
    }

    /// With a model that answers so, one after the other.
    fn played(agent: &'static Agent, turns: Vec<Turn>) -> Self {
        let world = World::new();
        let model = Model::scripted(turns);
        (agent.settings)(&world, &model);
        let base = world.agent(agent.name, &model);
        let pairs = base.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
        let mut env: BTreeMap<String, String> =
            pairs.chain(agent.env.iter().copied()).map(|(name, value)| (name.into(), value.into())).collect();
        env.insert("ANTHROPIC_BASE_URL".into(), model.url());
        env.insert("GOOGLE_GEMINI_BASE_URL".into(), model.url());
        env.insert("COPILOT_PROVIDER_BASE_URL".into(), model.url());
        let mut theirs = BTreeMap::new();
        files(&world.home, &mut theirs);
        files(&world.project, &mut theirs);
        Self { agent, world, model, env, theirs }
    }

    /// The same project and home, with another model.
    fn with(mut self, commands: &[&str]) -> Self {
        let calls = commands.iter().map(|command| Turn::call(self.agent.shell, (self.agent.input)(command)));
        self.model = Model::scripted(calls.chain([Turn::text("All done.")]).collect::<Vec<_>>());
        (self.agent.settings)(&self.world, &self.model);
        for (name, value) in &mut self.env {
            if name.ends_with("_BASE_URL") || name.to_ascii_lowercase().ends_with("_proxy") && name != "NO_PROXY" {
                *value = self.model.url();
            }
        }
        self
    }

    /// Gives a command, with nothing of the caller's environment.
    fn ask(&self, words: &[&str]) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.args(words).current_dir(&self.world.project).env_clear().envs(&self.env);
        let went = went(command);
        eprintln!("$ bugeye {}\n{}  ({:?})", words.join(" "), went.output, went.took);
        (went.code.unwrap_or(-1), went.output)
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let (code, text) = self.ask(words);
        assert_eq!(code, 0, "bugeye {}\n{text}", words.join(" "));
        text
    }

    /// The data of an answer.
    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        let text = self.ok(&[&["--json"], words].concat());
        serde_json::from_str::<Value>(&text).unwrap()["result"].take()
    }

    /// Runs the agent to where `more` stops it, or to its end.
    #[track_caller]
    fn run(&self, more: &[&str]) -> String {
        self.begin(&[&["run", "--wait", "80s"], more].concat())
    }

    /// Starts the agent as these words want it.
    #[track_caller]
    fn begin(&self, words: &[&str]) -> String {
        let program = agents::program(self.agent.name).display().to_string();
        let words = words.iter().chain(&["--agent", "--"]).copied();
        let words: Vec<&str> = words.chain([program.as_str()]).chain(self.agent.words.iter().copied()).collect();
        self.ok(&words)
    }

    /// A command by file.
    fn write_line(&self, line: &str) {
        let path = self.world.bug.home().join("state/sessions/current/commands.jsonl");
        let mut file = fs::OpenOptions::new().append(true).create(true).open(path).unwrap();
        std::io::Write::write_all(&mut file, format!("{line}\n").as_bytes()).unwrap();
    }

    /// What a message of the conversation says, and what came of its tools.
    fn said(&self, at: u64) -> Vec<String> {
        let print = |path: &str| -> Option<Value> {
            let (code, text) = self.ask(&["--json", "print", "--full", "--", path]);
            let told = serde_json::from_str::<Value>(&text).ok().filter(|_| code == 0);
            Some(told?["result"]["values"][0]["value"].take()).filter(|value| value["text"].is_string())
        };
        let text = |value: Value| serde_json::from_str::<String>(value["text"].as_str()?).ok();
        let content = print(&format!("messages[{at}].content")).unwrap();
        if content["type"] == "text" {
            return text(content).into_iter().collect();
        }
        let count = content["children"].as_array().map_or(0, Vec::len);
        let paths =
            (0..count).flat_map(|part| ["text", "output"].map(|of| format!("messages[{at}].content[{part}].{of}")));
        paths.filter_map(|path| text(print(&path)?)).collect()
    }

    /// Requests of the loop itself: they offer tools.
    fn requests(&self) -> Vec<Request> {
        self.model.requests().into_iter().filter(|request| !request.tools().is_empty()).collect()
    }

    fn left_behind(&self, name: &str) -> bool {
        self.world.project.join(name).exists()
    }

    /// What the user had is there as it was, and nothing of the agent runs.
    fn is_as_before(&self) {
        self.world.nothing_is_left();
        for (path, before) in &self.theirs {
            assert_eq!(fs::read(path).ok().as_ref(), Some(before), "{} has changed", path.display());
        }
    }

    /// The record's events of a type.
    fn events(&self, kind: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.world.bug.home().join("state/sessions/current/events.jsonl")).unwrap();
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["type"] == kind).map(|mut event| event["data"].take()).collect()
    }
}

/// The tool's name as the agent's hooks have it.
fn tool(agent: &Agent) -> &'static str {
    if agent.name == "codex" { "Bash" } else { agent.shell }
}

fn count(request: &Request, text: &str) -> usize {
    request.text().matches(text).count()
}

/// One run: an edit, a step, a look, a message, a cancelled tool.
fn steered(agent: &'static Agent) {
    let desk = Desk::new(agent, &["echo one > one.txt", "echo two > two.txt"]);
    let place = format!("tool:{}", tool(agent));
    let stop = desk.run(&["--break", &place]);
    has(&stop, &["stopped: breakpoint 1 (hit 1)", &format!("before tool {}", tool(agent)), "echo one > one.txt"]);
    assert!(!desk.left_behind("one.txt"), "the tool has run");
    assert_eq!(desk.requests().len(), 1);
    // Another command runs.
    desk.ok(&["set", "tool_input.command", "echo edited > edited.txt; printf 'edited-%d' 42"]);
    let stop = desk.ok(&["step", "--wait", "80s"]);
    has(&stop, &["stopped: step", "before model call", "iteration 2"]);
    assert!(desk.left_behind("edited.txt") && !desk.left_behind("one.txt"));
    // No file lets it go on, which it could write itself.
    desk.write_line(r#"{"id":"1","cmd":"continue"}"#);
    // The model is not asked while the agent is held, and what it is going to be asked is shown.
    std::thread::sleep(A_WHILE);
    assert_eq!(desk.requests().len(), 1, "the model was asked");
    has(&desk.ok(&["print", "messages[-1]"]), &["edited-42"]);
    let known = desk.json(&["inspect", "messages"])["value"].clone();
    assert_eq!(known["exact"], true, "{known}");
    let shown: Vec<String> = (0..known["count"].as_u64().unwrap()).flat_map(|at| desk.said(at)).collect();
    has(&desk.ok(&["inject", "user", "mind", "the", "gap"]), &["it is put in"]);
    let stop = desk.ok(&["continue", "--wait", "80s"]);
    has(&stop, &["stopped: breakpoint 1 (hit 2)", "echo two > two.txt"]);
    let requests = desk.requests();
    assert_eq!(requests.len(), 2);
    has(&requests[1].answers()[0].text, &["edited-42"]);
    // What was shown of the conversation is what the model has read of it.
    let read = requests[1].text();
    assert!(
        shown.iter().any(|text| text.contains("Say hello.")) && shown.iter().any(|text| text.contains("edited-42"))
    );
    for text in shown {
        assert!(read.contains(&text), "{text:?} is shown, and was not sent:\n{read}");
    }
    assert_eq!(count(&requests[1], "[debugger] mind the gap"), 1, "{}", requests[1].body);
    // The tool does not run, and the model reads why.
    let end = desk.ok(&["cancel", "--reason", "not that one", "--wait", "80s"]);
    has(&end, &["cancelled: ", "exited: code 0", "All done."]);
    let requests = desk.requests();
    assert_eq!(requests.len(), 3);
    has(&requests[2].answers()[1].text, &["[debugger] not that one"]);
    assert_eq!(count(&requests[2], "[debugger] mind the gap"), 1, "it lasts: {}", requests[2].body);
    assert!(!desk.left_behind("two.txt"), "the tool has run");
    desk.is_as_before();
    // All of it is in the record.
    let calls = desk.events("tool.call");
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert_eq!(calls[1]["input"]["command"], "echo two > two.txt");
    assert_eq!(desk.events("tool.end").len(), 1);
    assert_eq!(desk.events("tool.denied").len(), 1);
    assert_eq!(desk.events("injected").len(), 1);
    let (asked, said) = (desk.events("model.request"), desk.events("model.response"));
    assert_eq!((asked.len(), said.len()), (desk.model.requests().len(), asked.len()));
    assert!(said.iter().all(|said| said["usage"]["output"].as_u64().is_some_and(|n| n > 0)), "{said:?}");
}

/// A run again from its record asks no model and does the same; one that goes another way is told apart.
fn again(agent: &'static Agent) {
    let desk = Desk::new(agent, &["echo one > one.txt", "echo two > two.txt"]);
    // Paused on its way, before it has come to anything, and let go on.
    has(&desk.begin(&["start", "--name", "first", "--inbox"]), &["held"]);
    has(&desk.ok(&["continue", "--wait", "0"]), &["running"]);
    desk.ok(&["pause"]);
    has(&desk.ok(&["await", "--wait", "80s"]), &["stopped: pause", "in before "]);
    std::thread::sleep(A_WHILE);
    assert_eq!(desk.requests().len(), 0, "the model was asked");
    // By file, where that was asked for.
    desk.write_line(r#"{"id":"1","type":"resume"}"#);
    until("it goes on", || if desk.requests().is_empty() { Err("not yet".into()) } else { Ok(()) });
    has(&desk.ok(&["await", "--wait", "80s"]), &["exited: code 0", "All done."]);
    assert!(desk.left_behind("one.txt") && desk.left_behind("two.txt"));
    // What it did can be seen again.
    let call = format!("tool.call: {} ", tool(agent));
    let replayed = desk.ok(&["replay", "first", "--timed", "--speed", "1000", "--max-gap", "1s"]);
    has(
        &replayed,
        &["stopped: pause", &call, "echo one > one.txt", "echo two > two.txt", "session.end: exited: code 0"],
    );
    let asked = desk.model.requests().len();
    for name in ["one.txt", "two.txt"] {
        fs::remove_file(desk.world.project.join(name)).unwrap();
    }
    let end = desk.ok(&["rerun", "first", "--name", "second", "--wait", "80s"]);
    has(&end, &["exited: code 0", "All done."]);
    assert_eq!(desk.model.requests().len(), asked, "the model was asked");
    assert!(desk.left_behind("one.txt") && desk.left_behind("two.txt"), "its tools are run");
    assert_eq!(desk.events("rerun.diverged"), Vec::<Value>::new());
    // What an agent prints about its own start-up differs from time to time; what it did does not.
    let same = desk.ok(&["diff", "first", "second"]);
    has(&same, &[" steps each"]);
    lacks(&same, &["first different value", "first different path"]);
    let desk = desk.with(&["echo one > one.txt", "echo three > three.txt"]);
    has(&desk.run(&["--name", "third"]), &["exited: code 0"]);
    assert!(desk.left_behind("three.txt"));
    let (_, other) = desk.ask(&["diff", "first", "third"]);
    // The model tap sees it in the model's answer, before the tool is called.
    has(
        &other,
        &[
            "first different value: hit 2 of ",
            "= echo two > two.txt and echo three > three.txt",
            "last equal: hit 1 of after tool ",
        ],
    );
}

/// Held before its first model call; then the debugger answers in the model's place. Held before a tool; then it ends.
fn ended(agent: &'static Agent) {
    let desk = Desk::new(agent, &["echo one > one.txt"]);
    has(&desk.run(&["--break", "model"]), &["stopped: breakpoint 1 (hit 1)", "before model call", "iteration 1"]);
    std::thread::sleep(A_WHILE);
    assert_eq!(desk.requests().len(), 0, "the model was asked");
    let end = desk.ok(&["answer", "Said by the debugger.", "--wait", "80s"]);
    has(&end, &["exited: code 0", "Said by the debugger."]);
    assert_eq!(desk.requests().len(), 0, "the model was asked");
    desk.is_as_before();
    // Before a tool.
    let place = format!("tool:{}", tool(agent));
    has(&desk.run(&["--break", &place]), &["stopped: breakpoint ", "echo one > one.txt"]);
    let (code, text) = desk.ask(&["cancel", "--run", "--reason", "enough", "--wait", "80s"]);
    if ["codex", "copilot"].contains(&agent.name) {
        assert_ne!(code, 0);
        // As the table in docs/agents.md has it.
        has(
            &text,
            &[
                "not done: this agent can't be told before tool to end its run",
                "hint: end it with the session: bugeye stop",
            ],
        );
        has(include_str!("../../docs/agents.md"), &["| end the run | anywhere | before a prompt ⁶ |"]);
        desk.ok(&["stop"]);
    } else {
        assert_eq!(code, 0);
        has(&text, &["exited: code "]);
    }
    assert_eq!(desk.requests().len(), 1);
    assert!(!desk.left_behind("one.txt"), "the tool has run");
    desk.is_as_before();
    until("the session is over", || {
        let text = desk.ok(&["sessions"]);
        if text.contains("stopped") || text.contains("running") { Err(text) } else { Ok(()) }
    });
    lacks(&json!(desk.events("tool.end")).to_string(), &["echo one"]);
}

/// The daemon is killed while the agent is held: what was held happens, and the agent comes to its end by itself. Answers how
/// long it took until it happened.
fn outlived(agent: &'static Agent) -> Duration {
    let desk = Desk::new(agent, &["echo one > one.txt", "echo two > two.txt"]);
    // By the name that its model has for the tool; hooks may have another.
    let place = format!("tool:{}", agent.shell);
    has(&desk.run(&["--break", &place]), &["stopped: breakpoint 1 (hit 1)", "echo one > one.txt"]);
    let daemon = desk.json(&["daemon", "status"])["pid"].as_i64().unwrap();
    let daemon = rustix::process::Pid::from_raw(i32::try_from(daemon).unwrap()).unwrap();
    assert!(!desk.left_behind("one.txt"), "the tool has run");
    let died = Instant::now();
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).unwrap();
    until("the agent goes on", || if desk.left_behind("one.txt") { Ok(()) } else { Err("no one.txt".into()) });
    let took = died.elapsed();
    until("the agent comes to its end", || {
        let left = desk.world.bug.processes();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    assert!(desk.left_behind("two.txt"));
    assert_eq!(desk.requests().len(), 3);
    // The next daemon ends the record.
    desk.ok(&["daemon", "start"]);
    until("its record ends", || {
        let end = desk.ok(&["events", "-s", "last", "-f", "session.end"]);
        if end.contains("session.end: lost") { Ok(()) } else { Err(end) }
    });
    // It opens, and is whole from its first event to its last.
    let text = desk.ok(&["events", "-s", "last", "--json"]);
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{text}");
    assert_eq!(events.iter().filter(|event| event["type"] == "session.end").count(), 1, "{text}");
    desk.is_as_before();
    took
}

/// Each of `all` agents has its share of the deaths, one after the other.
fn outlives(agent: &'static Agent, all: usize) {
    let wanted = std::env::var("BUGEYE_REAL_AGENT_RUNS").ok().and_then(|text| text.parse().ok());
    let count: usize = wanted.map_or(1, |count: usize| count.div_ceil(all).max(1));
    let mut took: Vec<u128> = (0..count).map(|_| outlived(agent).as_millis()).collect();
    took.sort_unstable();
    let (name, median, longest) = (agent.name, took[count / 2], took[count - 1]);
    // Past what the test runner keeps to itself: the commands stay there.
    let said = format!("{name}: {count} deaths; it went on after {median} ms (median), {longest} ms (longest)");
    let _ = writeln!(std::io::stderr(), "{said}");
}

macro_rules! for_each_agent {
    ($($module:ident $agent:ident)*) => {$(
        mod $module {
            #[test]
            fn is_held_changed_and_spoken_to() {
                super::steered(&super::$agent);
            }
            #[test]
            fn is_run_again_from_its_record() {
                super::again(&super::$agent);
            }
            #[test]
            fn is_answered_and_ended() {
                super::ended(&super::$agent);
            }
            #[test]
            fn outlives_its_debugger() {
                super::outlives(&super::$agent, super::ALL);
            }
        }
    )*
        const ALL: usize = [$(&$agent),*].len();
    };
}

for_each_agent! { claude_code CLAUDE codex CODEX copilot COPILOT gemini_cli GEMINI opencode OPENCODE }
