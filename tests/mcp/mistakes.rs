//! What a model gets wrong comes back as advice, what a client gets wrong as an error of the protocol; nothing hangs, and
//! nothing grows without a bound.

use std::fs;
use std::time::Instant;

use serde_json::{Value, json};

use crate::pipe::{Pipe, session_of};
use crate::sdks::NAMES;
use crate::support::fixtures::at;
use crate::support::{Bug, has};

const MEGABYTE: u64 = 1024 * 1024;

/// Arguments that are wrong, and the words that the advice must have: what is wrong, and what would be right.
#[test]
fn wrong_arguments_are_answered_with_advice() {
    let bug = Bug::new("python");
    let cases: &[(&str, Value, &[&str])] = &[
        ("debug_walk", json!({}), &["there is no tool debug_walk", "debug_run", "debug_setup"]),
        ("", json!({}), &["there is no tool", "debug_run"]),
        (
            "debug_run",
            json!({ "comand": ["python3", "loop.py"] }),
            &["no argument `comand`", "did you mean `command`?"],
        ),
        ("debug_inspect", json!({ "colour": "red" }), &["no argument `colour`", "what"]),
        ("debug_run", json!({}), &["nothing to debug was named", "hint: bugeye run -- "]),
        ("debug_run", json!({ "command": 7.5, "hold": "yes" }), &["`hold`", "true or false", "\"yes\""]),
        ("debug_run", json!({ "command": { "program": "loop.py" } }), &["`command`", "list", "program"]),
        ("debug_run", json!({ "command": [["loop.py"]] }), &["`command`", "list of texts"]),
        ("debug_run", json!({ "command": ["python3", "loop.py"], "wait": "soon" }), &["wait", "soon"]),
        ("debug_run", json!({ "command": ["no_such_program"] }), &["no_such_program", "hint"]),
        ("debug_continue", json!({ "how": "sideways" }), &["`how`", "sideways", "continue", "finish"]),
        ("debug_continue", json!({ "how": "until" }), &["`until` needs a `place`", "file:line"]),
        ("debug_continue", json!({ "how": "next", "count": "many" }), &["count", "many"]),
        ("debug_inspect", json!({ "what": "weather" }), &["`what`", "weather", "context", "backtrace"]),
        ("debug_inspect", json!({ "what": "locals", "frame": "top" }), &["frame", "top"]),
        ("debug_sessions", json!({ "action": "explode" }), &["`action`", "explode", "list", "stop"]),
        ("debug_eval", json!({}), &["`expressions`", "`set`"]),
        ("debug_input", json!({}), &["`text`", "`eof`"]),
        ("debug_trace", json!({}), &["at"]),
        ("debug_trace", json!({ "at": ["loop.py:7: i"], "max_hits": "all" }), &["max_hits", "all"]),
        ("debug_break", json!({ "remove": ["all of them"] }), &["all of them"]),
        ("debug_do", json!({}), &["`commands`"]),
        ("debug_do", json!({ "commands": ["brake loop.py:7"] }), &["brake", "break"]),
        ("debug_setup", json!({ "install": "cobol" }), &["cobol", "debugpy"]),
        ("debug_continue", json!({}), &["you have started no session", "hint"]),
        ("debug_inspect", json!({ "session": "s9" }), &["there is no session `s9`", "hint"]),
        ("debug_inspect", json!({ "session": 9 }), &["session"]),
    ];
    for mut client in [Pipe::new(&bug), Pipe::stateless(&bug)] {
        let mut wrong = Vec::new();
        for (tool, arguments, words) in cases {
            let since = Instant::now();
            let (text, mistake) = client.call(tool, arguments.clone());
            let missing: Vec<_> = words.iter().filter(|word| !text.contains(**word)).collect();
            if !mistake || !missing.is_empty() || text.contains("error: error:") || text.contains("--help") {
                wrong.push(format!("{tool} {arguments}: {mistake}, without {missing:?}: {text}"));
            }
            assert!(since.elapsed().as_secs() < 20, "{tool} {arguments} took {:?}", since.elapsed());
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // None of them did anything.
        has(&client.ok("debug_sessions", json!({})), &["no sessions"]);
    }
}

/// An id whose session has ended is a mistake that says what there is instead.
#[test]
fn a_session_that_is_over_is_advice_too() {
    let bug = Bug::new("python");
    let mut client = Pipe::stateless(&bug);
    let place = at("python/loop.py", "body");
    let stop = client.ok("debug_run", json!({ "command": ["python3", "loop.py"], "break": [place] }));
    let gone = session_of(&stop);
    client.ok("debug_sessions", json!({ "action": "stop", "session": gone }));
    let (text, mistake) = client.call("debug_continue", json!({ "session": gone }));
    assert!(mistake, "{text}");
    has(&text, &["there is no session `s1`", "hint: start it again"]);
    let stop = client.ok("debug_run", json!({ "command": ["python3", "loop.py"], "break": [place] }));
    assert_ne!(session_of(&stop), gone);
    // What was seen there is in its record.
    let text = client.ok("debug_print", json!({ "session": gone, "expressions": ["i"] }));
    has(&text, &["i = 0", "from the record"]);
    client.ok("debug_sessions", json!({ "action": "stop" }));
}

/// Lines that are no requests: each is answered with an error or passed over, and the next request has its answer.
#[test]
fn lines_that_are_no_requests() {
    let bug = Bug::new("c");
    let lines: [&[u8]; 13] = [
        b"this is not JSON",
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        b"",
        b"   ",
        b"[]",
        b"null",
        b"42",
        b"\xff\xfe\xfd",
        b"\0\0\0",
        br#"{"jsonrpc":"2.0","id":7001,"method":"tools/fly","params":{}}"#,
        br#"{"jsonrpc":"2.0","method":"notifications/unheard_of"}"#,
        br#"{"jsonrpc":"2.0","id":7002,"result":{}}"#,
        br#"{"jsonrpc":"2.0","id":7003,"method":"tools/call","params":[1]}"#,
    ];
    for line in lines {
        let mut client = Pipe::new(&bug);
        client.write(line).unwrap();
        client.write(b"\n").unwrap();
        let id = client.begin_call("debug_sessions", json!({}));
        let shown = String::from_utf8_lossy(line);
        loop {
            let answer = client.line().unwrap_or_else(|| panic!("the server ended at {shown:?}"));
            let answer: Value = serde_json::from_str(&answer).unwrap();
            if answer["id"] == id {
                break;
            }
            assert!(answer["error"]["message"].is_string(), "{shown:?}: {answer}");
        }
    }
    // A call that is none by its form is told so, in both eras.
    for mut client in [Pipe::new(&bug), Pipe::stateless(&bug)] {
        for params in [json!({}), json!({ "name": 7 }), json!({ "name": "debug_sessions", "arguments": "none" })] {
            let (text, mistake) = crate::pipe::text_of(&client.ask("tools/call", params));
            assert!(mistake, "{text}");
            has(&text, &["`name` of a tool", "`arguments`"]);
        }
        has(&client.ok("debug_sessions", json!({ "action": null })), &["no sessions"]);
    }
}

/// The most memory that a process has had.
fn peak(pid: i32) -> u64 {
    let page = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = page.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    line.split_whitespace().nth(1).map_or(0, |text| text.parse::<u64>().unwrap() * 1024)
}

/// A request of 64 MB is dropped with a word in the log, and never kept in memory; the next one is answered.
#[test]
fn a_line_without_end_does_not_fill_the_memory() {
    let bug = Bug::new("c");
    for handshake in [true, false] {
        let mut client = if handshake { Pipe::new(&bug) } else { Pipe::stateless(&bug) };
        let pid = client.pid();
        let chunk = vec![b'x'; 1024 * 1024];
        client.write(br#"{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":""#).unwrap();
        let mut most = 0;
        for _ in 0..64 {
            client.write(&chunk).unwrap();
            most = most.max(peak(pid));
        }
        client.write(b"\"}}\n").unwrap();
        has(&client.ok("debug_sessions", json!({})), &["no sessions"]);
        most = most.max(peak(pid));
        println!("a line of 64 MB: at most {} MB", most / MEGABYTE);
        assert!(most > 0 && most < 100 * MEGABYTE, "{} MB", most / MEGABYTE);
        let (_, code, complaint) = client.leave();
        assert_eq!(code, Some(0), "{complaint}");
        has(&complaint, &["warning: a message of more than 4194304 bytes was dropped"]);
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
}

/// The list is the same for everyone, at any time, in the same order, small, and says what each tool may do.
#[test]
fn the_list_of_tools_is_fixed_and_small() {
    let bug = Bug::new("python");
    let listed = |client: &mut Pipe| {
        let answer = client.ask("tools/list", json!({}));
        answer["result"]["tools"].clone()
    };
    let (mut one, mut two) = (Pipe::new(&bug), Pipe::stateless(&bug));
    let list = listed(&mut one);
    assert_eq!(list, listed(&mut two), "it differs between eras");
    let place = at("python/loop.py", "body");
    one.ok("debug_run", json!({ "command": ["python3", "loop.py"], "break": [place] }));
    assert_eq!(list, listed(&mut one), "it differs after a call");
    assert_eq!(list, listed(&mut Pipe::new(&bug)), "it differs on another connection");
    let bytes = list.to_string().len();
    println!("tools/list: {bytes} bytes, {} tokens", bytes / 4);
    assert!(bytes < 10_000, "{bytes} bytes");
    let tools = list.as_array().unwrap();
    assert_eq!(tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect::<Vec<_>>(), NAMES);
    for tool in tools {
        let notes = &tool["annotations"];
        assert!(notes["readOnlyHint"].is_boolean(), "{tool}");
        assert!(notes["readOnlyHint"] == true || notes["destructiveHint"].is_boolean(), "{tool}");
        assert_eq!(notes["openWorldHint"], false, "{tool}");
        assert!(tool["description"].as_str().is_some_and(|text| text.len() > 20), "{tool}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool.get("outputSchema").is_none(), "{tool}");
        for (name, schema) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(schema["type"].is_string(), "{name} of {tool}");
        }
    }
    one.ok("debug_sessions", json!({ "action": "stop" }));
}

#[test]
fn what_is_said_before_the_first_request_is_passed_over() {
    let bug = Bug::new("python");
    let mut client = Pipe::bare(&bug, &bug.cwd);
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 77, "result": {} }));
    let hello =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
    assert_eq!(client.ask("initialize", hello)["result"]["serverInfo"]["name"], "bugeye");
}

#[test]
fn the_token_of_the_server_is_not_the_program_s() {
    let bug = Bug::new("python");
    let program = bug.write("tell.py", "import os\nprint('it has', os.environ.get('BUGEYE_MCP_TOKEN'))\n");
    let mut command = bug.command(&["mcp"]);
    command.env("BUGEYE_MCP_TOKEN", "a-token-of-more-than-thirty-two-letters");
    let mut client = Pipe::of(command, &bug.cwd);
    client.greet();
    has(&client.ok("debug_run", json!({ "command": ["python3", program] })), &["it has None"]);
}

#[test]
fn what_is_the_user_s_to_say_is_not_said_by_an_agent() {
    let bug = Bug::new("python");
    let mut client = Pipe::new(&bug);
    for (command, told) in [
        ("trust", "bugeye trust"),
        ("daemon stop", "stop --all"),
        ("init claude", "bugeye init"),
        ("setup debugpy --yes", "`setup --yes` is for the command line alone"),
        ("--json setup debugpy --yes", "`setup --yes` is for the command line alone"),
    ] {
        let (text, mistake) = client.call("debug_do", json!({ "commands": [command] }));
        assert!(mistake, "{command}: {text}");
        has(&text, &["is for the command line alone", told]);
    }
}
