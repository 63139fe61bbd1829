//! What is mistyped, or can't be done, is said before it is too late; what is shown is what matters.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Bug, has, lacks};
use crate::{agent, bash, bug, read, script, words};

#[test]
fn a_mistyped_breakpoint_starts_nothing() {
    let bug = bug();
    let agent = agent(&script("p", &[("t", &[bash("echo > ran")])]));
    for (place, why) in [
        ("tol:Bash", "an agent has no place `tol:Bash`; there are: tool:…"),
        ("pattern:[", "`[` is no regular expression"),
        ("iteration:abc", "`abc` is not the number of a model call"),
        ("tokens:abc", "`abc` is not a number of tokens"),
        ("app.py:3", "an agent has no lines; there are: tool:…"),
    ] {
        for word in ["run", "start"] {
            bug.run(&words(&[word, "--break", place], &agent)).fails(2, why);
        }
    }
    assert_eq!(read(&bug, "ran"), None);
    // What is kept for the project's programs is no mistake.
    for place in ["app.py:3", "main"] {
        bug.ok(&["break", place]);
    }
    has(&bug.ok(&words(&["run", "--break", "tool:bash"], &agent)), &["stopped: breakpoint 3 (hit 1)"]);
    for (place, why) in
        [("tol:Bash", "no place `tol:Bash`"), ("pattern:[", "no regular expression"), ("main2", "no place `main2`")]
    {
        bug.run(&["break", place]).fails(2, why);
    }
    for (condition, why) in [
        ("tool_inpt.command ~ \"rm\"", "there is no `tool_inpt`; there are: point, tool_name, tool_input"),
        ("command ~ \"rm\"", "there is no `command`; there are"),
        ("iteration >", "a value is missing"),
    ] {
        bug.run(&["break", "tool:bash", "--if", condition]).fails(2, why);
    }
    has(&bug.ok(&["break", "tool:bash", "--if", "input.command ~ \"rm\""]), &["verified"]);
    bug.ok(&["stop"]);
}

#[test]
fn a_mistyped_step_lets_nothing_go_on() {
    let bug = bug();
    let agent = agent(&script("p", &[("t", &[bash("echo > ran")])]));
    bug.ok(&words(&["run", "--break", "tool:bash"], &agent));
    for typed in [&["step", "--into", "tol"][..], &["until", "foo"], &["until", "tol:Bash"]] {
        bug.run(typed).fails(2, "an agent has no place `");
    }
    bug.write("work/x.py", "a\nb\nc\n");
    bug.run(&["until", "x.py:3"]).fails(2, "an agent has no lines; there are: tool:…");
    has(&bug.ok(&["status"]), &["s1: stopped"]);
    assert_eq!(read(&bug, "ran"), None);
    has(&bug.ok(&["until", "stop"]), &["in before the turn ends"]);
    assert!(read(&bug, "ran").is_some());
    bug.ok(&["stop"]);
}

/// An agent of one tool call, with these powers there.
fn gate(powers: &str) -> [String; 3] {
    let clients = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python");
    let code = format!(
        "import sys; sys.path.insert(0, {clients:?})\nimport bugeye_agent\nbug = bugeye_agent.connect('small')\n\
         bug.gate('before_tool', name='bash', value={{'command': 'ls'}}, powers={powers})"
    );
    ["python3".into(), "-c".into(), code]
}

#[test]
fn what_an_agent_cannot_do_is_said_in_a_sentence() {
    let bug = bug();
    bug.ok(&words(&["run", "--break", "tool"], &gate("dict(hold=True, deny=True)")));
    let refused = bug.run(&["answer", "no such file"]);
    refused.fails(6, "not done: this agent takes no answer in a tool's place");
    has(&refused.stderr, &["cancel it, and its model reads why: bugeye cancel --reason TEXT"]);
    let refused = bug.run(&["cancel", "--run"]);
    refused.fails(6, "not done: this agent can't be told before tool to end its run");
    has(&refused.stderr, &["end it with the session: bugeye stop"]);
    bug.run(&["set", "tool_input.command", "pwd"]).fails(6, "this agent lets nothing be changed before tool");
    bug.ok(&["stop"]);
}

#[test]
fn what_is_about_to_run_is_seen() {
    let bug = bug();
    let long = format!("echo {}; rm -rf ./precious", "a".repeat(300));
    let huge = format!("echo {}; rm -rf ./precious", "b".repeat(3000));
    let agent = agent(&script("p", &[("t", &[bash(&long), bash(&huge)])]));
    let said = bug.ok(&words(&["run", "--break", "pattern:rm +-rf"], &agent));
    has(&said, &["aaa; rm -rf ./precious"]);
    lacks(&said, &["characters more"]);
    has(&bug.ok(&["events", "-f", "stopped"]), &["aaa; rm -rf ./precious"]);
    let said = bug.ok(&["continue"]);
    // {"command":"echo bbb…; rm -rf ./precious"}
    let left = huge.len() + r#"{"command":""}"#.len() - 1000;
    has(&said, &[&format!("tool_input has {left} characters more: bugeye print --full tool_input")]);
    let more = format!("… ({left} characters more: bugeye print --full tool_input)");
    has(&bug.ok(&["events", "-f", "stopped"]), &[&more]);
    has(&bug.ok(&["print", "--full", "tool_input"]), &["bbb; rm -rf ./precious"]);
    bug.ok(&["stop"]);
}

#[test]
fn what_an_agent_has_not_is_said_of_it() {
    let bug = bug();
    bug.run(&["run", "--agent", "--", "no-such-agent", "-p", "x"]).fails(3, "no-such-agent is not on the PATH");
    bug.run(&["run", "--agent", "--", "./none"]).fails(3, "there is no ");
    let agent = agent(&script("Do it.", &[("t", &[bash("true")])]));
    bug.ok(&["break", "foo.py:3"]);
    let said = bug.ok(&words(&["run", "--break", "tool"], &agent));
    lacks(&said, &["foo.py"]);
    for typed in [&["break", "foo.py:3"][..], &["breaks"]] {
        has(&bug.ok(typed), &["breakpoint 1 foo.py:3: pending (an agent has no lines; there are: tool:…"]);
    }
    let refused = bug.run(&["args"]);
    refused.fails(6, "an agent has no arguments");
    has(&refused.stderr, &["what there is: bugeye locals"]);
    let picture = bug.ok(&["inspect"]);
    lacks(&picture, &["files:"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    let refused = bug.run(&["inspect", "usage"]);
    refused.fails(3, "has exited");
    has(&refused.stderr, &[" -f 'model.*'", "--at last context"]);
    let hint = refused.stderr.lines().find_map(|line| line.split_once("bugeye events ")).unwrap().1;
    let typed: Vec<&str> =
        std::iter::once("events").chain(hint.split(' ').map(|word| word.trim_matches('\''))).collect();
    has(&bug.ok(&typed), &["model.response: "]);
    let refused = bug.run(&["print", "tool_input.command"]);
    refused.fails(3, "has exited");
    has(&refused.stderr, &["--at last print tool_input.command"]);
}

/// What `debug_print` answers through MCP, of an expression in full.
fn by_mcp(bug: &Bug, expression: &str) -> Value {
    let mut child = bug.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let hello = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "pipe", "version": "1" },
    });
    let asked =
        json!({ "name": "debug_print", "arguments": { "session": "s1", "expressions": [expression], "full": true } });
    let mut stdin = child.stdin.take().unwrap();
    for message in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked }),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let answer = answers.find(|answer| answer["id"] == 2).unwrap();
    drop(stdin);
    child.wait().unwrap();
    answer
}

#[test]
fn a_long_text_is_shown_whole_or_in_parts_that_fit_together() {
    let bug = bug();
    let some = "line \"quoted\" \\ grün \u{202e} 🦀\n".repeat(15_000);
    let much = some.repeat(5);
    bug.write("work/some", &some);
    bug.write("work/much", &much);
    let read = |name: &str| ("read_file", json!({ "path": name }));
    let agent = agent(&script("p", &[("t", &[read("some"), read("much")])]));
    bug.ok(&words(&["run", "--break", "after:read_file"], &agent));
    // Unsafe characters are shown as what they are, not as they are.
    let plain = |text: &str| text.replace('\u{202e}', "\\u{202e}");
    let text = bug.ok(&["print", "--full", "tool_output"]);
    has(&text, &[&plain(&json!(some).to_string())]);
    lacks(&text, &["more"]);
    has(&bug.ok(&["print", "tool_output"]), &["characters more: --full"]);
    has(&bug.ok(&["print", "tool_output[5:13]"]), &[r#"= "\"quoted\"""#]);
    has(&bug.ok(&["print", "tool_output[-3:][:1]"]), &[r#"= " ""#]);
    // What is longer than a megabyte comes in parts, each with the words for the next.
    bug.ok(&["continue"]);
    let text = bug.ok(&["print", "--full", "tool_output"]);
    assert!(text.len() > 900_000 && text.len() < 1_100_000, "{}", text.len());
    let rest = text.lines().last().unwrap();
    let left: usize = rest.trim_start_matches("  … ").split(' ').next().unwrap().parse().unwrap();
    assert_eq!(rest, format!("  … {left} characters more: bugeye print --full 'tool_output[-{left}:]'"));
    let (mut expression, mut whole) = ("tool_output".to_string(), String::new());
    for part in 1.. {
        assert!(part < 10, "{expression}");
        let answer = bug.json(&["print", "--full", &expression])["values"][0].clone();
        let text = answer["value"]["text"].as_str().unwrap().replace("\\u{202e}", "\u{202e}");
        whole.push_str(&serde_json::from_str::<String>(&text).unwrap());
        match answer["rest"].as_str() {
            Some(rest) => expression = rest.to_string(),
            None => break,
        }
    }
    assert!(whole == much, "{} and {} bytes", whole.len(), much.len());
    // A model's context is not filled with it, and the rest can be had there too.
    let answer = by_mcp(&bug, "tool_output").to_string();
    assert!(answer.len() < 110_000, "{}", answer.len());
    has(&answer, &["characters more: bugeye print --full 'tool_output[-"]);
    // What it is told to ask for begins where that ends.
    let left: usize = answer.split("tool_output[-").nth(1).unwrap().split(':').next().unwrap().parse().unwrap();
    let shown: String = much.chars().take(much.chars().count() - left).collect();
    let shown = json!(plain(json!(shown).to_string().trim_end_matches('"'))).to_string();
    let shown = shown.trim_matches('"');
    let at = answer.find(shown).unwrap_or_else(|| panic!("{} characters are not there", shown.len()));
    assert!(shown.len() > 15_000 && answer[at + shown.len()..].find("characters more").unwrap() < 60);
    bug.ok(&["stop"]);
}
