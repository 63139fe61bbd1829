//! Sub-agents are threads; what is called at once is shown one after another.

use serde_json::{Value, json};

use crate::support::{Bug, functions, has, until, variable};
use crate::{agent, bash, bug, fixture, read, script, words};

#[test]
fn a_sub_agent_is_a_thread_with_a_stack_of_its_own() {
    let bug = bug();
    let inner = json!({ "prompt": "look\naround", "steps": [{ "text": "i", "tools": [{ "name": "bash", "input": { "command": "echo two" } }] }] });
    let agent = agent(&script("p", &[("t", &[bash("echo one"), ("task", inner)])]));
    bug.ok(&words(&["run", "--break", "pattern:echo two"], &agent));
    // The tool that starts it names the pattern too.
    let said = bug.ok(&["continue"]);
    has(&said, &["stopped: breakpoint 1 (hit 2) in before tool bash, thread 2 task task-"]);
    let threads = bug.json(&["threads"]);
    let names: Vec<&str> =
        threads["threads"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names[0] == "main" && names[1].starts_with("task task-") && names.len() == 2, "{threads}");
    let stack = bug.json(&["backtrace"]);
    assert_eq!(
        functions(&stack["stacks"][0]["frames"]),
        ["before tool bash", "iteration 1", "turn 1: look around", "started by main"]
    );
    bug.ok(&["thread", "1"]);
    let stack = bug.json(&["backtrace"]);
    assert_eq!(functions(&stack["stacks"][0]["frames"]), ["in tool task", "iteration 1", "turn 1: p"]);
    has(&bug.ok(&["print", "turn"]), &["turn = 1"]);
    bug.ok(&["thread", "2"]);
    has(&bug.ok(&["print", "tool_input.command"]), &["\"echo two\""]);
    has(&bug.ok(&["inspect", "--thread", "2"]), &["prompt: look\\naround"]);
    // A step beyond the end of a sub-agent is one of whoever started it.
    has(&bug.ok(&["step"]), &["stopped: step in before model call, thread 2"]);
    has(&bug.ok(&["step"]), &["stopped: step in before the turn ends, thread 2"]);
    has(&bug.ok(&["step"]), &["stopped: step in before model call, thread 1"]);
    assert_eq!(bug.json(&["threads"])["threads"].as_array().unwrap().len(), 1);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

fn shown(bug: &Bug) -> String {
    let told = bug.json(&["inspect", "all"]);
    told["value"]["gate"]["id"].as_str().unwrap_or_else(|| panic!("{told}")).to_string()
}

fn waiting(bug: &Bug) -> Value {
    variable(&bug.json(&["locals"])["variables"], "waiting_too")["text"].clone()
}

#[test]
fn what_is_called_at_once_is_answered_one_by_one() {
    let bug = bug();
    let agent = ["python3".to_string(), fixture("parallel_agent.py"), "results".into()];
    bug.ok(&words(&["run", "--break", "tool:bash"], &agent));
    until("all three wait", || {
        let told = bug.json(&["locals"]).to_string();
        if told.contains(r#"\",\"bash "#) { Ok(()) } else { Err(told) }
    });
    let first = shown(&bug);
    let others: Vec<&str> = ["one", "two", "three"].into_iter().filter(|id| *id != first).collect();
    // Each with the id that it can be cancelled by.
    let waiting: Vec<String> = serde_json::from_str(waiting(&bug).as_str().unwrap()).unwrap();
    assert!(others.iter().all(|id| waiting.contains(&format!("bash {id}"))), "{waiting:?}");
    let said = bug.ok(&["cancel", others[0], "--reason", "not now"]);
    has(&said, &["stopped: ", "cancelled: bash"]);
    assert_eq!(shown(&bug), first, "the one that is shown stays");
    until("it was told", || {
        let told = read(&bug, "results").unwrap_or_default();
        let line = format!("{} deny [debugger] not now\n", others[0]);
        if told == line { Ok(()) } else { Err(told) }
    });
    bug.run(&["cancel", "nine"]).fails(1, "no tool call nine is held");
    bug.ok(&["continue"]);
    assert_eq!(shown(&bug), others[1]);
    has(&bug.ok(&["cancel"]), &["exited: code 0", "cancelled: bash"]);
    let mut told: Vec<String> = read(&bug, "results").unwrap().lines().map(String::from).collect();
    told.sort();
    let mut wanted = [
        format!("{} deny [debugger] not now", others[0]),
        format!("{first} proceed "),
        format!("{} deny [debugger] cancelled by the user", others[1]),
    ];
    wanted.sort();
    assert_eq!(told, wanted);
}

#[test]
fn counts_logs_and_breakpoints_for_once() {
    let bug = bug();
    let tools = [bash("echo 1"), bash("echo 2"), bash("echo 3"), bash("echo 4")];
    let agent = agent(&script("p", &[("t", &tools)]));
    bug.ok(&words(&["start"], &agent));
    has(&bug.ok(&["break", "tool:bash", "--log", "runs {tool_input.command}"]), &["verified"]);
    has(&bug.ok(&["break", "after:bash", "--hits", "2", "--once"]), &["verified"]);
    bug.ok(&["break", "pattern:echo 4", "--if", "iteration == 1"]);
    let said = bug.ok(&["continue"]);
    has(&said, &["in after tool bash", "runs \"echo 1\"", "runs \"echo 2\""]);
    assert_eq!(bug.json(&["locals"])["variables"][2]["text"], r#""2\n""#);
    let said = bug.ok(&["continue"]);
    has(&said, &["in before tool bash", "runs \"echo 3\""]);
    has(&bug.ok(&["print", "tool_input.command"]), &["echo 4"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn a_breakpoint_that_only_logs_ends_no_step() {
    let bug = bug();
    let agent = agent(&script("p", &[("t", &[bash("echo 1")]), ("u", &[bash("echo 2")])]));
    bug.ok(&words(&["run", "--break", "prompt"], &agent));
    bug.ok(&["break", "model", "--log", "asks {iteration}"]);
    bug.ok(&["break", "tool:bash", "--log", "runs {tool_input.command}"]);
    has(&bug.ok(&["step"]), &["stopped: step in before model call", "iteration 1", "log: asks 1"]);
    has(&bug.ok(&["step"]), &["stopped: step in before model call", "iteration 2", "runs \"echo 1\"", "asks 2"]);
    has(&bug.ok(&["finish"]), &["stopped: step in before the turn ends", "runs \"echo 2\"", "asks 3"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn an_agent_is_meant_from_where_it_was_started_or_by_its_name() {
    let bug = bug();
    let agent = agent(&script("p", &[("t", &[bash("echo > ran")])]));
    bug.ok(&words(&["run", "--break", "tool:bash"], &agent));
    let elsewhere = tempfile::tempdir().unwrap();
    let from_there = |words: &[&str]| {
        let output = bug.command(words).current_dir(elsewhere.path()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for word in ["continue", "cancel", "stop", "status"] {
        let (code, said) = from_there(&[word]);
        assert_eq!(code, Some(3), "{word}: {said}");
        has(&said, &["no session from this directory", "s1"]);
    }
    assert!(read(&bug, "ran").is_none());
    assert_eq!(from_there(&["-s", "s1", "continue"]).0, Some(0));
    assert!(read(&bug, "ran").is_some());
}

#[test]
fn what_never_asks_is_said_to() {
    let bug = bug();
    let said = bug.ok(&["run", "--agent", "--break", "tool:bash", "--", "true"]);
    has(&said, &["exited: code 0", "nothing in it has asked the debugger, so no breakpoint could count"]);
}

#[test]
fn what_an_agent_does_is_told_while_it_runs_and_what_it_took_at_its_end() {
    let bug = bug();
    let agent = agent(&script("p", &[("t", &[("wait_for", json!({ "path": "go" }))])]));
    has(&bug.ok(&words(&["run", "--wait", "0"], &agent)), &["running"]);
    until("it is in its tool", || {
        let said = bug.ok(&["status"]);
        if said.contains("running, in tool wait_for") { Ok(()) } else { Err(said) }
    });
    std::fs::write(bug.cwd.join("go"), "").unwrap();
    has(&bug.ok(&["await"]), &["exited: code 0", "2 model calls: 20 + 10 tokens"]);
}
