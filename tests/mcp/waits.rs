//! Calls that wait: told on the way to those who want to hear it, given up without harm.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::pipe::{Pipe, session_of, text_of};
use crate::support::fixtures::program;
use crate::support::{Bug, has, until};

/// A program that runs until it is told otherwise, and the client that started it.
fn running(bug: &Bug, mut client: Pipe) -> Pipe {
    let text = client.ok("debug_run", json!({ "command": [program("c/hang.c")], "stop_on_entry": true }));
    assert_eq!(session_of(&text), "s1");
    assert!(client.told.is_empty(), "{:?}", client.told);
    has(&bug.ok(&["status"]), &["s1"]);
    client
}

/// News every five seconds of a wait.
fn told_on_the_way(mut client: Pipe, wait: u64) {
    let began = Instant::now();
    let params =
        json!({ "name": "debug_continue", "arguments": { "wait": wait }, "_meta": { "progressToken": "mine" } });
    let id = client.begin("tools/call", params);
    let (text, mistake) = text_of(&client.answer(id));
    assert!(!mistake, "{text}");
    has(&text, &["running"]);
    let told = std::mem::take(&mut client.told);
    assert!(told.len() as u64 >= wait / 5, "{told:?}");
    let mut last = began;
    for (number, (when, news)) in told.iter().enumerate() {
        assert_eq!(news["method"], "notifications/progress", "{news}");
        assert_eq!(news["params"]["progressToken"], "mine", "{news}");
        assert_eq!(news["params"]["progress"].as_f64(), Some((number + 1) as f64), "{news}");
        assert!(news["params"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{news}");
        let silence = when.duration_since(last);
        assert!(silence < Duration::from_millis(6500), "silent for {silence:?}");
        last = *when;
    }
    client.ok("debug_sessions", json!({ "action": "stop" }));
}

#[test]
fn a_wait_is_told_of_after_a_handshake() {
    let bug = Bug::new("c");
    told_on_the_way(running(&bug, Pipe::new(&bug)), 11);
}

#[test]
fn a_wait_is_told_of_without_a_handshake() {
    let bug = Bug::new("c");
    told_on_the_way(running(&bug, Pipe::stateless(&bug)), 6);
}

#[test]
fn without_a_token_nothing_is_told() {
    let bug = Bug::new("c");
    let mut client = running(&bug, Pipe::new(&bug));
    has(&client.ok("debug_continue", json!({ "wait": 6 })), &["running"]);
    assert!(client.told.is_empty(), "{:?}", client.told);
    client.ok("debug_sessions", json!({ "action": "stop" }));
}

/// The wait is over at once; the program goes on, and so does the client.
#[test]
fn a_call_that_is_cancelled_leaves_the_program_alone() {
    let bug = Bug::new("c");
    let mut client = running(&bug, Pipe::new(&bug));
    let id = client.begin_call("debug_continue", json!({ "wait": 40 }));
    let state = || bug.json(&["sessions"])["sessions"][0].clone();
    until("it runs", || if state()["state"] == "running" { Ok(()) } else { Err(state().to_string()) });
    let pid = state()["pid"].clone();
    let since = Instant::now();
    client.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" }
    }));
    // A call that was cancelled has no answer, or says that it was cancelled; the next one has its own.
    let next = client.begin_call("debug_inspect", json!({ "what": "status" }));
    let text = loop {
        let line = client.line().expect("the server ended");
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        if message["id"] == next {
            break text_of(&message).0;
        }
        assert_eq!(message["id"], id, "{message}");
        has(&text_of(&message).0, &["cancelled"]);
    };
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    has(&text, &["running"]);
    assert_eq!(state()["pid"], pid);
    has(&client.ok("debug_continue", json!({ "how": "pause" })), &["stopped: pause"]);
    client.ok("debug_sessions", json!({ "action": "stop" }));
}

/// Two calls at once are two: a look is not behind a wait, and each answer finds its question.
#[test]
fn a_look_does_not_stand_behind_a_wait() {
    let bug = Bug::new("c");
    let mut client = running(&bug, Pipe::new(&bug));
    let wait = client.begin_call("debug_continue", json!({ "wait": 40 }));
    until("it runs", || {
        let list = bug.ok(&["sessions"]);
        if list.contains("running") { Ok(()) } else { Err(list) }
    });
    has(&client.ok("debug_sessions", json!({})), &["s1: running"]);
    let pause = client.begin_call("debug_continue", json!({ "how": "pause" }));
    // Either may come first.
    let mut texts = std::collections::HashMap::new();
    while texts.len() < 2 {
        let message: serde_json::Value = serde_json::from_str(&client.line().expect("the server ended")).unwrap();
        texts.insert(message["id"].as_u64().unwrap(), text_of(&message));
    }
    for id in [wait, pause] {
        let (text, mistake) = &texts[&id];
        assert!(!mistake, "{text}");
        has(text, &["stopped: pause", "[s1 via"]);
    }
    client.ok("debug_sessions", json!({ "action": "stop" }));
}
