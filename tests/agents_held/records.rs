//! What a record of an agent tells, afterwards.

use std::time::Instant;

use serde_json::json;

use crate::support::{Bug, functions, has, lacks};
use crate::{agent, bash, bug, events, script, words};

fn run(bug: &Bug, name: &str, script: &str) {
    let agent = agent(script);
    has(&bug.ok(&words(&["run", "--name", name], &agent)), &["exited: code 0"]);
}

fn usual(prompt: &str, text: &str, tool: (&str, serde_json::Value)) -> String {
    script(prompt, &[(text, &[tool]), ("more", &[bash("echo end")])])
}

#[test]
fn the_first_difference_of_two_runs_has_a_name() {
    let bug = bug();
    run(&bug, "a", &usual("fix it", "I look.", bash("echo 1")));
    run(&bug, "same", &usual("fix it", "I look.", bash("echo 1")));
    run(&bug, "prompt", &usual("break it", "I look.", bash("echo 1")));
    run(&bug, "model", &usual("fix it", "I guess.", bash("echo 1")));
    run(&bug, "command", &usual("fix it", "I look.", bash("echo 2")));
    run(&bug, "tool", &usual("fix it", "I look.", ("read_file", json!({ "path": "nothing" }))));
    has(&bug.ok(&["diff", "a", "same"]), &["no difference", "both exited: code 0"]);
    has(&bug.ok(&["diff", "a", "prompt"]), &["first different value: hit 1 of prompt: text = fix it and break it"]);
    has(
        &bug.ok(&["diff", "a", "model"]),
        &["last equal: hit 1 of prompt", "hit 1 of model: text = I look. and I guess."],
    );
    let said = bug.ok(&["diff", "a", "command"]);
    has(&said, &["last equal: hit 1 of model", "hit 1 of tool bash: input.command = echo 1 and echo 2"]);
    let said = bug.ok(&["diff", "a", "tool"]);
    has(
        &said,
        &["first different path: after hit 1 of model A goes to hit 1 of tool bash, B to hit 1 of tool read_file"],
    );
    assert_eq!(bug.run(&["diff", "a", "same", "--exit-code"]).code, 0);
    assert_eq!(bug.run(&["diff", "a", "command", "--exit-code"]).code, 1);
    // Where it was held is the debugger's doing, not the agent's.
    let agent = agent(&usual("fix it", "I look.", bash("echo 1")));
    bug.ok(&words(&["run", "--name", "held", "--break", "tool"], &agent));
    bug.ok(&["continue"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    has(&bug.ok(&["diff", "a", "held"]), &["no difference"]);
    // What was changed there is.
    bug.ok(&words(&["run", "--name", "denied", "--break", "tool"], &agent));
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["cancel", "--reason", "no"]);
    has(&bug.ok(&["diff", "a", "denied"]), &["A goes to hit 1 of after tool bash, B to hit 1 of denied bash"]);
}

#[test]
fn what_agents_did_can_be_counted_and_asked() {
    let bug = bug();
    for (name, command) in [("one", "echo 1"), ("two", "echo 2")] {
        run(&bug, name, &usual("p", "t", bash(command)));
    }
    let said = bug.ok(&["hits"]);
    has(&said, &["tool bash", "after tool bash", "model", "prompt"]);
    lacks(&said, &["before tool"]);
    let said = bug.ok(&["hits", "tool:bash"]);
    has(&said, &["tool bash: 4 hits, 2 sessions", "input.command=echo 1", "input.command=echo 2"]);
    assert_eq!(said, bug.ok(&["hits", "tool bash"]));
    has(&bug.ok(&["hits", "after:bash"]), &["after tool bash: 4 hits", "ok=true"]);
    has(&bug.ok(&["hits", "tool:bash", "--where", "\"input.command\" = 'echo 2'"]), &["tool bash: 1 hit, 1 session"]);
    has(&bug.ok(&["hits", "tool:bash", "--count-by", "input.command"]), &["echo end"]);
    let rows = bug.json(&["query", "SELECT place, count(*) FROM hits GROUP BY place ORDER BY place"]);
    assert_eq!(rows["rows"], json!([["after tool bash", 4], ["model", 6], ["prompt", 2], ["tool bash", 4]]), "{rows}");
    let rows = bug.json(&["query", "SELECT json_extract(data, '$.name') FROM events WHERE type = 'tool.call'"]);
    assert_eq!(rows["rows"], json!([["bash"], ["bash"], ["bash"], ["bash"]]));
}

#[test]
fn a_record_answers_as_the_agent_did() {
    let bug = bug();
    let agent = agent(&usual("fix it", "t", bash("echo 1")));
    bug.ok(&words(&["run", "--name", "rec", "--break", "tool:bash"], &agent));
    let shown = [
        bug.ok(&["backtrace"]),
        bug.ok(&["locals"]),
        bug.ok(&["print", "tool_input.command"]),
        bug.ok(&["inspect", "messages"]),
        bug.ok(&["print", "iteration"]),
    ];
    let seq = events(&bug, "rec", "stopped")[0]["seq"].to_string();
    bug.ok(&["continue"]);
    bug.ok(&["set", "tool_input.command", "echo other"]);
    bug.ok(&["inject", "user", "hurry"]);
    bug.ok(&["continue"]);
    bug.ok(&["daemon", "stop"]);
    let asked: [&[&str]; 5] = [
        &["backtrace"],
        &["locals"],
        &["print", "tool_input.command"],
        &["inspect", "messages"],
        &["print", "iteration"],
    ];
    for (words, live) in asked.iter().zip(&shown) {
        for moment in [seq.as_str(), "stop:1", "first"] {
            let run = bug.run(&[&["-s", "rec", "--at", moment], *words].concat());
            assert_eq!((run.code, &run.stdout), (0, live), "{moment} {run}");
        }
    }
    let stack = bug.json(&["-s", "rec", "--at", "stop:2", "backtrace"]);
    assert_eq!(functions(&stack["stacks"][0]["frames"]), ["before tool bash", "iteration 2", "turn 1: fix it"]);
    let never = bug.run(&["-s", "rec", "--at", "stop:1", "inspect", "tools"]);
    never.fails(3, "has no `inspect`");
    has(&never.stderr, &["inspect messages"]);
    let refused = bug.run(&["-s", "rec", "--at", "stop:1", "cancel"]);
    refused.fails(1, "`cancel` has nothing to act on");
    has(&refused.stderr, &["bugeye rerun "]);
    // Every line of it reads.
    let text = bug.ok(&["replay", "rec"]);
    has(
        &text,
        &[
            "tool.call: bash command=\"echo 1\"",
            "tool.end: bash ok in ",
            "input.user: \"fix it\"",
            "model.request: iteration 1, scripted-1, 1 message\n",
        ],
    );
    has(
        &text,
        &[
            "edited: tool_input of bash is now command=\"echo other\", was command=\"echo end\"",
            "injected: \"[debugger] hurry\" as user, by cli:",
        ],
    );
    lacks(&text, &["tool.call: {", "tool.end: {", "model.request: {", "edited: {"]);
    let calm = bug.ok(&["replay", "rec", "-f", "tool.*"]);
    assert_eq!(calm.lines().count(), 4, "{calm}");
    let began = Instant::now();
    assert_eq!(bug.ok(&["replay", "rec", "--timed", "--speed", "1000x"]), text);
    assert!(began.elapsed().as_secs() < 10);
}

#[test]
fn what_was_changed_is_told_as_it_was_done() {
    let bug = bug();
    let two = |command: &str| script("p", &[("t", &[bash(command), bash("echo last")])]);
    let tool = agent(&two("echo asked"));
    bug.ok(&words(
        &["run", "--name", "edited", "--break", "prompt", "--break", "tool:bash", "--break", "after:bash"],
        &tool,
    ));
    bug.ok(&["set", "prompt", "q"]);
    bug.ok(&["continue"]);
    // What is held is told as the agent wants it, until it is changed; the last change counts.
    has(&bug.ok(&["hits", "tool:bash"]), &["input.command=echo asked"]);
    bug.ok(&["set", "tool_input.command", "echo tried"]);
    has(&bug.ok(&["hits", "tool:bash"]), &["tool bash: 1 hit", "input.command=echo tried"]);
    bug.ok(&["set", "input.command", "echo ran"]);
    bug.ok(&["continue"]);
    has(&bug.ok(&["print", "tool_output"]), &["ran"]);
    bug.ok(&["set", "tool_output", "shown"]);
    bug.ok(&["continue"]);
    // The whole, with other names.
    bug.ok(&["set", "tool_input", r#"{"command":"echo whole","timeout":3}"#]);
    has(&bug.ok(&["cancel"]), &["exited: code 0"]);
    let asked = |bug: &Bug| {
        let said = bug.ok(&["hits", "tool:bash"]);
        has(&said, &["tool bash: 2 hits, 1 session", "input.command=echo ran", "was.command=echo asked"]);
        has(&said, &["input.command=echo whole", "input.timeout=3", "was.command=echo last"]);
        lacks(&said, &["tried", "input.command=echo asked", "input.command=echo last"]);
        has(&bug.ok(&["hits", "after:bash"]), &["after tool bash: 1 hit", "ok=true", "output=shown", "was=ran"]);
        has(&bug.ok(&["hits", "prompt"]), &["text=q", "was=p"]);
        let rows = bug.json(&[
            "query",
            "SELECT place, hits FROM (SELECT place, count(*) AS hits FROM hits GROUP BY place) ORDER BY place",
        ]);
        assert_eq!(
            rows["rows"],
            json!([["after tool bash", 1], ["denied bash", 1], ["model", 2], ["prompt", 1], ["tool bash", 2]]),
        );
        let rows = bug.json(&["query", "SELECT hits FROM sessions WHERE name = 'edited'"]);
        assert_eq!(rows["rows"], json!([[7]]));
        let rows = bug.json(&["query", "SELECT value FROM \"values\" WHERE name = 'input.command' ORDER BY seq"]);
        assert_eq!(rows["rows"], json!([["echo ran"], ["echo whole"]]));
    };
    asked(&bug);
    // The same from an index that is made anew.
    bug.ok(&["daemon", "stop"]);
    std::fs::remove_file(bug.home().join("state/index.sqlite")).unwrap();
    asked(&bug);
    // Another run is compared with what this one did, not with what it wanted.
    run(&bug, "same", &script("q", &[("t", &[bash("echo ran"), bash("echo last")])]));
    let said = bug.ok(&["diff", "edited", "same"]);
    has(&said, &["last equal: hit 1 of tool bash", "hit 1 of after tool bash: output = shown and ran"]);
    run(&bug, "wanted", &two("echo asked"));
    has(&bug.ok(&["diff", "edited", "wanted"]), &["hit 1 of prompt: text = q and p"]);
}
