//! Whatever commands and adapters do, in whatever order: nothing panics, and everyone is answered once.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::script::Play;
use crate::dap::Message;
use crate::session::{Effect, Input, KernelExit, OpId, Timer};

/// Operations and events that a random play is made of.
const OPS: [&str; 30] = [
    "break b=1@a.c:6 b=2@main",
    "break b=1@a.c:6,log:i={i} b=3@b.c:1,once",
    "break b=1@a.c:6,if:x",
    "break",
    "catch throw",
    "catch uncaught",
    "continue",
    "next",
    "finish",
    "until a.c:9",
    "pause",
    "await",
    "look locals : i",
    "look all frames=3",
    "select frame=up",
    "select thread=2 frame=3",
    "threads",
    "eval : f(1)",
    "set : a = 1",
    "args",
    "raw : bt",
    "exception",
    "into f",
    "back",
    "reverse",
    "jump a.c:9",
    "watch : x",
    "unwatch 1",
    "watches",
    "request",
];

const EVENTS: [&str; 14] = [
    r#"initialized {}"#,
    r#"stopped {"reason":"breakpoint","threadId":1,"hitBreakpointIds":[1],"allThreadsStopped":true}"#,
    r#"stopped {"reason":"breakpoint","threadId":2,"hitBreakpointIds":[2,3],"allThreadsStopped":false}"#,
    r#"stopped {"reason":"exception","description":"signal SIGSEGV: x","threadId":1}"#,
    r#"stopped {"reason":"exception","text":"SystemExit","threadId":1}"#,
    r#"stopped {"reason":"step"}"#,
    r#"stopped {"reason":null,"threadId":"x"}"#,
    r#"continued {}"#,
    r#"thread {"reason":"started","threadId":2}"#,
    r#"thread {"reason":"exited","threadId":1}"#,
    r#"breakpoint {"reason":"changed","breakpoint":{"id":1,"verified":true,"line":8}}"#,
    r#"process {"systemProcessId":-4}"#,
    r#"output {"category":"stdout","output":"x"}"#,
    r#"capabilities {"capabilities":{"supportsSingleThreadExecutionRequests":true}}"#,
];

#[derive(Debug, Clone)]
enum Move {
    Op(usize),
    Event(usize),
    /// Answers the n-th open request: rightly, with nonsense, or with a refusal.
    Answer(usize, u8),
    Silence(usize),
    Wait(usize),
    Forget(usize),
    End(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (0..OPS.len()).prop_map(Move::Op),
        4 => (0..EVENTS.len()).prop_map(Move::Event),
        10 => ((0..4usize), (0..8u8)).prop_map(|(at, how)| Move::Answer(at, how)),
        1 => (0..4usize).prop_map(Move::Silence),
        1 => (0..4usize).prop_map(Move::Wait),
        1 => (0..4usize).prop_map(Move::Forget),
    ];
    let end = (0..5u8).prop_map(Move::End);
    (proptest::collection::vec(one, 0..80), proptest::collection::vec(end, 0..3))
        .prop_map(|(moves, ends)| moves.into_iter().chain(ends).collect())
}

/// A body that fits the command, more or less.
fn body(command: &str) -> Json {
    match command {
        "initialize" => json!({ "supportsFunctionBreakpoints": true, "supportsExceptionInfoRequest": true,
            "supportsDataBreakpoints": true, "supportsGotoTargetsRequest": true, "supportsStepBack": true,
            "supportsModulesRequest": true, "supportsStepInTargetsRequest": true,
            "exceptionBreakpointFilters": [{ "filter": "uncaught" }, { "filter": "cpp_throw" }] }),
        "setBreakpoints" | "setFunctionBreakpoints" => {
            json!({ "breakpoints": [{ "id": 1, "verified": true, "line": 6 }, { "id": 2, "verified": false }] })
        }
        "threads" => json!({ "threads": [{ "id": 1, "name": "main" }, { "id": 2, "name": "b" }] }),
        "stackTrace" => json!({ "stackFrames": [{ "id": 1, "name": "f", "line": 6 }, { "id": 2, "name": "g" }] }),
        "scopes" => json!({ "scopes": [{ "name": "Locals", "variablesReference": 7 }] }),
        "variables" => json!({ "variables": [{ "name": "s", "value": "size=3", "variablesReference": 9,
            "indexedVariables": 3 }] }),
        "dataBreakpointInfo" => json!({ "dataId": "1,2,x", "description": "x" }),
        "gotoTargets" | "stepInTargets" => json!({ "targets": [{ "id": 4, "label": "f", "line": 9 }] }),
        "evaluate" => json!({ "result": "{...}", "variablesReference": 8 }),
        _ => Json::Null,
    }
}

#[derive(Default)]
struct Book {
    open: Vec<(i64, String)>,
    /// Answers per operation.
    answers: BTreeMap<OpId, usize>,
    forgotten: Vec<OpId>,
    waits: Vec<OpId>,
    finished: bool,
}

impl Book {
    fn keep(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(Message::Request { seq, command, .. }) => {
                    assert!(!self.finished, "{command} is sent after the end");
                    self.open.push((seq, command));
                }
                Effect::Answer(op, _) => *self.answers.entry(op).or_default() += 1,
                Effect::Arm(Timer::Wait(op), _) => self.waits.push(op),
                Effect::Finish { .. } => {
                    assert!(!self.finished, "finished twice");
                    self.finished = true;
                }
                _ => {}
            }
        }
    }
}

fn play(options: &str, moves: Vec<Move>) {
    let mut play = Play::new(options);
    let mut book = Book::default();
    book.keep(play.line(">", "1 start b=1@a.c:6,if:x run").unwrap());
    let mut next = 2;
    for step in moves {
        let effects = match step {
            Move::Op(at) => {
                next += 1;
                play.line(">", &format!("{} {}", next - 1, OPS[at])).unwrap()
            }
            Move::Event(at) => play.line("<", &format!("event {}", EVENTS[at])).unwrap(),
            Move::Answer(at, how) if !book.open.is_empty() => {
                let (seq, command) = book.open.remove(at % book.open.len());
                let body = match how {
                    0..=5 => body(&command),
                    6 => json!({ "breakpoints": 3, "threads": {}, "stackFrames": null, "result": [] }),
                    _ => Json::Null,
                };
                let message = (how == 7).then(|| "no".to_string());
                let response = Message::Response { request_seq: seq, command, success: how < 7, message, body };
                play.feed(Input::Adapter(response))
            }
            Move::Silence(at) if !book.open.is_empty() => {
                let (seq, _) = book.open.remove(at % book.open.len());
                play.feed(Input::Timer(Timer::Request(seq)))
            }
            Move::Wait(at) if !book.waits.is_empty() => {
                let op = book.waits[at % book.waits.len()];
                play.feed(Input::Timer(Timer::Wait(op)))
            }
            Move::Forget(at) => {
                let op = (u64::try_from(at).unwrap() % next).max(1);
                book.forgotten.push(op);
                play.feed(Input::Forget(op))
            }
            Move::End(0) => play.line(">", "9000 stop").unwrap(),
            Move::End(1) => play.line(">", "9001 detach").unwrap(),
            Move::End(2) => play.line("<", r#"event exited {"exitCode":3}"#).unwrap(),
            Move::End(3) => play.feed(Input::Exit(Some(KernelExit::Code(3)))),
            Move::End(_) => play.line("<", "event terminated").unwrap(),
            _ => Vec::new(),
        };
        book.keep(effects);
    }
    book.keep(play.feed(Input::Timer(Timer::Ending)));
    book.keep(play.feed(Input::Gone { adapter_exit: None, stderr_tail: String::new() }));
    assert!(book.finished, "never finished");
    for op in (1..next).filter(|op| !book.forgotten.contains(op)) {
        let count = book.answers.get(&op).copied().unwrap_or(0);
        assert_eq!(count, 1, "operation {op} was answered {count} times");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everyone_is_answered_once_with_lldb(moves in moves()) {
        play("lldb", moves);
    }

    #[test]
    fn everyone_is_answered_once_with_debugpy(moves in moves()) {
        play("python", moves);
    }

    #[test]
    fn everyone_is_answered_once_with_any_other(moves in moves()) {
        play("plain", moves);
    }

    #[test]
    fn everyone_is_answered_once_on_the_way_to_main(moves in moves()) {
        play("lldb entry", moves);
    }
}
