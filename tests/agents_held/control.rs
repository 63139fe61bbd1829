//! Not from within, and one at a time.

use serde_json::json;

use crate::support::fixtures::{self, at};
use crate::support::{has, lacks};
use crate::{Shell, agent, bash, bug, events, person, read, script, words};

/// Bugeye in a command of an agent's tool, with its answer in a file.
fn tool(file: &str, words: &str) -> String {
    format!("{} {words} > {file} 2>&1; true", env!("CARGO_BIN_EXE_bugeye"))
}

#[test]
fn an_agent_does_not_control_itself() {
    let bug = bug();
    let commands = [
        "pause",
        "continue",
        "stop",
        "stop --all",
        "detach",
        "daemon stop",
        "break tool:bash",
        "inject user hi",
        "use s1 --take",
        "-s s1 pause",
    ];
    let mut tools: Vec<_> =
        commands.iter().enumerate().map(|(at, words)| bash(&tool(&format!("no{at}"), words))).collect();
    tools.push(bash(&tool("status", "status")));
    tools.push(bash(&tool("inspect", "-s s1 inspect context")));
    tools.push(bash(&tool("line", "break app.py:3")));
    // What has lost its parent falls to the supervisor.
    let orphan = tool("orphan.new", "-s s1 pause");
    tools.push(bash(&format!(
        "(setsid sh -c '{orphan}; mv orphan.new orphan' &) ; while [ ! -e orphan ]; do sleep 0.02; done"
    )));
    let agent = agent(&script("p", &[("t", &tools)]));
    let said = bug.ok(&words(&["run"], &agent));
    has(&said, &["exited: code 0"]);
    for (at, words) in commands.iter().enumerate() {
        let answer = read(&bug, &format!("no{at}")).unwrap();
        has(&answer, &["error: this would control s1 from within", "--allow-self", "looking is allowed"]);
        assert!(!answer.contains("ended"), "{words}: {answer}");
    }
    has(&read(&bug, "orphan").unwrap(), &["from within"]);
    has(&read(&bug, "status").unwrap(), &["s1: running"]);
    has(&read(&bug, "inspect").unwrap(), &["model: scripted-1"]);
    has(&read(&bug, "line").unwrap(), &["breakpoint 1 app.py:3: pending"]);
    let refused = events(&bug, "s1", "command.result");
    let refused: Vec<_> = refused.iter().filter(|event| event["data"]["ok"] == false).collect();
    assert!(refused.len() >= commands.len() - 1, "they are in the record: {refused:?}");
    assert!(refused.iter().all(|event| event["data"]["who"].as_str().unwrap().starts_with("cli:")));
}

#[test]
fn an_agent_controls_itself_where_it_may() {
    let bug = bug();
    let agent = agent(&script(
        "p",
        &[("t", &[bash(&tool("set", "break tool:read_file"))]), ("u", &[("read_file", json!({ "path": "set" }))])],
    ));
    let said = bug.ok(&words(&["run", "--allow-self"], &agent));
    has(&said, &["stopped: breakpoint 1 (hit 1) in before tool read_file"]);
    bug.ok(&["stop"]);
    bug.run(&["run", "--allow-self", "--", "true"]).fails(2, "--agent");
}

#[test]
fn an_agent_under_the_debugger_debugs_a_program_of_its_own() {
    let bug = bug();
    let path = fixtures::folder("python").join("loop.py");
    let (place, path) = (
        format!("{}/{}", fixtures::folder("python").display(), at("python/loop.py", "body")),
        path.display().to_string(),
    );
    let tools = [
        bash(&tool("run", &format!("run --break {place} -- python3 {path}"))),
        bash(&tool("next", "next")),
        bash(&tool("print", "print i")),
        bash(&tool("stop", "stop")),
    ];
    let agent = agent(&script("p", &[("t", &tools)]));
    has(&bug.ok(&words(&["run"], &agent)), &["exited: code 0"]);
    has(&read(&bug, "run").unwrap(), &["stopped: breakpoint", "[s2 via debugpy"]);
    has(&read(&bug, "next").unwrap(), &["stopped: step"]);
    has(&read(&bug, "print").unwrap(), &["i = "]);
    has(&read(&bug, "stop").unwrap(), &["s2 ended"]);
}

#[test]
fn a_person_comes_before_an_agent() {
    let bug = bug();
    let tools = [bash("echo 1"), bash("echo 2"), bash("echo 3"), bash("echo 4")];
    let agent = agent(&script("p", &[("t", &tools)]));
    bug.ok(&words(&["run", "--break", "tool:bash"], &agent));
    has(&bug.ok(&["status"]), &["controlled by an agent (cli:"]);
    has(&person(&bug, &["continue"]), &["stopped: breakpoint 1 (hit 2)"]);
    let status = bug.json(&["status"]);
    assert_eq!(status["controller"]["person"], true, "{status}");
    for words in [&["continue"][..], &["cancel"], &["set", "tool_input.command", "ls"], &["use", "s1", "--take"]] {
        let refused = bug.run(words);
        refused.fails(1, "s1 is controlled by a person (cli:");
        has(&refused.stderr, &["looking needs no control", "bugeye use s1 --release"]);
        lacks(&refused.stderr, &["--take"]);
    }
    for words in [
        &["status"][..],
        &["backtrace"],
        &["locals"],
        &["print", "tool_input"],
        &["inspect"],
        &["breaks"],
        &["sessions"],
    ] {
        assert_eq!(bug.run(words).code, 0, "looking needs none: {words:?}");
    }
    person(&bug, &["use", "s1", "--release"]);
    assert!(bug.json(&["status"]).get("controller").is_none());
    has(&bug.ok(&["continue"]), &["(hit 3)"]);
    let said = events(&bug, "s1", "log");
    assert!(
        said.iter().any(|log| log["data"]["message"].as_str().unwrap().starts_with("controlled by a person")),
        "{said:?}"
    );
    bug.ok(&["stop"]);
}

#[test]
fn an_agent_takes_it_from_another_only_in_so_many_words() {
    let bug = bug();
    let tools = [bash("echo 1"), bash("echo 2"), bash("echo 3")];
    let script = bug.write("script.json", &script("p", &[("t", &tools)]));
    let mut one = Shell::new(&bug, "one");
    let mut other = Shell::new(&bug, "other");
    let agent = format!("python3 {} {script}", crate::fixture("scripted_agent.py"));
    let (code, said) = one.runs(&format!("run --break tool:bash --agent -- {agent}"));
    assert_eq!(code, 0, "{said}");
    let (code, said) = other.runs("continue");
    assert_eq!(code, 1, "{said}");
    has(&said, &["s1 is controlled by an agent (cli:", "take it: bugeye use s1 --take"]);
    // A shell that only carries out a command is nobody of its own.
    let (code, said) = one.runs("status && sh -c '\"$B\" continue'");
    has(&said, &["(hit 2)"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = other.runs("use --take");
    assert_eq!(code, 0, "{said}");
    has(&said, &["s1 is controlled from here now"]);
    let (code, said) = one.runs("continue");
    assert_eq!(code, 1, "{said}");
    drop(other);
    let (code, said) = one.runs("continue");
    assert_eq!(code, 0, "whoever had it is gone: {said}");
    has(&said, &["(hit 3)"]);
    bug.run(&["detach"]).fails(1, "controlled by an agent");
    one.runs("stop");
}

#[test]
fn programs_are_anybodys() {
    let bug = bug();
    let path = fixtures::folder("python").join("loop.py").display().to_string();
    bug.ok(&["start", &path]);
    bug.run(&["use", "s1", "--take"]).fails(6, "anybody may control it");
    assert!(bug.json(&["status"]).get("controller").is_none());
    person(&bug, &["continue", "--wait", "0"]);
    bug.ok(&["stop"]);
}
