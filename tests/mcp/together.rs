//! Two MCP clients and a shell on one daemon: each is about its own session, whether it names it or not.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::pipe::{Pipe, session_of, text_of};
use crate::support::fixtures::{at, folder, line};
use crate::support::{Bug, has, lacks};

/// A copy of the loop in a folder that is a project of its own.
fn project(bug: &Bug, name: &str) -> std::path::PathBuf {
    let own = bug.home().join(name);
    fs::create_dir_all(own.join(".git")).unwrap();
    fs::copy(folder("python").join("loop.py"), own.join("loop.py")).unwrap();
    own
}

fn run(client: &mut Pipe, place: &str) -> String {
    let stop = client.ok("debug_run", json!({ "command": ["python3", "loop.py"], "break": [place] }));
    has(&stop, &["stopped: breakpoint", "in work loop.py:7", "i=0  n=5  total=0"]);
    session_of(&stop)
}

/// What the caller takes for its own session: each has counted to another number.
fn expect(client: &mut Pipe, arguments: serde_json::Value, value: &str) {
    let mut arguments = arguments;
    arguments["expressions"] = json!(["i"]);
    assert_eq!(client.ok("debug_print", arguments), format!("i = {value}"));
}

fn undisturbed(bug: &mut Bug, folders: [&Path; 3]) {
    let place = at("python/loop.py", "body");
    let (mut one, mut two) = (Pipe::within(bug, folders[0]), Pipe::within(bug, folders[1]));
    bug.cwd = folders[2].to_path_buf();
    let first = run(&mut one, &place);
    let second = run(&mut two, &place);
    let third = bug.json(&["run", "--break", &place, "--", "python3", "loop.py"]);
    assert_eq!(third["stop"]["frames"][0]["line"], line("python/loop.py", "body"), "{third}");
    let third = "s3";
    assert_eq!((first.as_str(), second.as_str()), ("s1", "s2"));

    // Nobody names a session: each goes on with its own, though another's is newer.
    has(&one.ok("debug_continue", json!({})), &["(hit 2)", "[s1 via", "i=1 (was 0)"]);
    for _ in 0..2 {
        two.ok("debug_continue", json!({}));
    }
    expect(&mut one, json!({}), "1");
    expect(&mut two, json!({}), "2");
    has(&bug.ok(&["print", "i"]), &["i = 0"]);

    // Each by its name, from anywhere.
    expect(&mut one, json!({ "session": second }), "2");
    expect(&mut one, json!({ "session": third }), "0");
    expect(&mut two, json!({ "session": first }), "1");
    has(&bug.ok(&["-s", &first, "print", "i"]), &["i = 1"]);
    // Looking at another's session makes it nobody's default.
    expect(&mut one, json!({}), "1");
    expect(&mut two, json!({}), "2");
    has(&bug.ok(&["print", "i"]), &["i = 0"]);

    // Each goes on by its own steps.
    has(&bug.ok(&["next"]), &["[s3 via"]);
    has(&one.ok("debug_continue", json!({})), &["[s1 via", "i=2 (was 1)"]);

    // "All" are one's own: another's are not ended with them.
    assert_eq!(two.ok("debug_sessions", json!({ "action": "stop_all" })), "ended 1 session");
    let list = one.ok("debug_sessions", json!({}));
    has(&list, &["s1: stopped", "s3: stopped"]);
    lacks(&list, &["s2"]);
    expect(&mut one, json!({}), "2");
    has(&bug.ok(&["print", "i"]), &["i = 0"]);
    assert_eq!(one.ok("debug_sessions", json!({ "action": "stop" })), "s1 ended");
    has(&bug.ok(&["stop"]), &["s3 ended"]);
}

#[test]
fn three_in_one_folder() {
    let mut bug = Bug::new("python");
    let own = project(&bug, "one");
    undisturbed(&mut bug, [&own, &own, &own]);
}

#[test]
fn three_in_folders_of_their_own() {
    let mut bug = Bug::new("python");
    let folders = ["one", "two", "three"].map(|name| project(&bug, name));
    undisturbed(&mut bug, [&folders[0], &folders[1], &folders[2]]);
}

/// Breakpoints that are set belong to the project: who shares it, shares them, and who does not is not stopped by them.
#[test]
fn breakpoints_are_of_the_project() {
    let bug = Bug::new("python");
    let (here, there) = (project(&bug, "here"), project(&bug, "there"));
    let mut one = Pipe::within(&bug, &here);
    let mut beside = Pipe::within(&bug, &here);
    let mut elsewhere = Pipe::within(&bug, &there);
    let (body, after) = (at("python/loop.py", "body"), at("python/loop.py", "after"));
    for client in [&mut one, &mut beside, &mut elsewhere] {
        run(client, &body);
    }
    has(&one.ok("debug_break", json!({ "at": [after] })), &["loop.py:8: verified"]);
    has(&one.ok("debug_continue", json!({})), &["in work loop.py:8"]);
    has(&beside.ok("debug_continue", json!({})), &["in work loop.py:8"]);
    has(&elsewhere.ok("debug_continue", json!({})), &["in work loop.py:7", "(hit 2)"]);
    let list = beside.ok("debug_break", json!({}));
    has(&list, &["loop.py:8"]);
    lacks(&elsewhere.ok("debug_break", json!({})), &["loop.py:8"]);
    // The place that a run was given is that run's own, not even its neighbour's in the same folder.
    assert_eq!(list.matches("loop.py:7").count(), 1, "{list}");
    for client in [&mut one, &mut beside, &mut elsewhere] {
        has(&client.ok("debug_sessions", json!({ "action": "stop" })), &[" ended"]);
    }
}

/// A client that has started nothing sees what the shell of its folder has, and the shell sees a client's.
#[test]
fn a_person_and_an_agent_look_at_one_session() {
    let mut bug = Bug::new("python");
    bug.cwd = project(&bug, "one");
    let mut agent = Pipe::within(&bug, &bug.cwd.clone());
    bug.ok(&["run", "--break", &at("python/loop.py", "body"), "--", "python3", "loop.py"]);
    expect(&mut agent, json!({ "session": "s1" }), "0");
    bug.ok(&["stop"]);
    run(&mut agent, &at("python/loop.py", "body"));
    has(&bug.ok(&["print", "i"]), &["i = 0"]);
    has(&bug.ok(&["status"]), &["s2"]);
    agent.ok("debug_sessions", json!({ "action": "stop" }));
}

#[test]
fn a_client_without_a_session_does_not_touch_another_s() {
    let bug = Bug::new("python");
    let place = at("python/loop.py", "body");
    let (mut one, mut two) = (Pipe::new(&bug), Pipe::new(&bug));
    run(&mut one, &place);
    for (tool, arguments) in [
        ("debug_continue", json!({})),
        ("debug_sessions", json!({ "action": "stop" })),
        ("debug_eval", json!({ "set": "i = 9" })),
    ] {
        let (text, mistake) = two.call(tool, arguments);
        assert!(mistake, "{tool}: {text}");
        has(&text, &["you have started no session", "-s s1: "]);
    }
    has(&two.ok("debug_sessions", json!({ "action": "stop_all" })), &["ended 0 sessions"]);
    // Its own has ended: that is no reason to take another's.
    let ended = two.ok("debug_run", json!({ "command": ["python3", "loop.py"] }));
    has(&ended, &["exited: code 0"]);
    let (text, mistake) = two.call("debug_continue", json!({}));
    assert!(mistake, "{text}");
    has(&text, &["has exited"]);
    expect(&mut one, json!({}), "0");
}

#[test]
fn a_session_that_is_started_anew_is_still_whose_it_was() {
    let bug = Bug::new("python");
    let mut one = Pipe::new(&bug);
    run(&mut one, &at("python/loop.py", "body"));
    has(&bug.ok(&["-s", "s1", "restart", "--run"]), &["[s2 via"]);
    has(&one.ok("debug_sessions", json!({ "action": "stop_all" })), &["ended 1 session"]);
}

#[test]
fn calls_that_are_sent_at_once_are_carried_out_in_their_order() {
    let bug = Bug::new("python");
    let mut one = Pipe::new(&bug);
    run(&mut one, &at("python/loop.py", "body"));
    for round in 1..4 {
        let next = one.begin_call("debug_continue", json!({}));
        let print = one.begin_call("debug_print", json!({ "expressions": ["i"] }));
        has(&text_of(&one.answer(next)).0, &[&format!("i={round} (was {})", round - 1)]);
        assert_eq!(text_of(&one.answer(print)).0, format!("i = {round}"));
    }
}
