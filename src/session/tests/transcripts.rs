//! Sessions of real adapters, as they were recorded: fed with the same commands and the same messages, the session must
//! send the same requests in the same order and come to the same answers.
//!
//! `tests/transcripts/record.py` makes them. Each line of one is a command (`op`, as in a script), a message that was
//! sent (`send`) or one that came (`recv`).

use serde_json::Value as Json;

use super::script::Play;
use super::show;
use crate::dap::Message;
use crate::session::{Effect, Input, KernelExit};

/// Plays a transcript; answers what the commands came to.
fn replay(options: &str, text: &str) -> Vec<String> {
    let mut play = Play::new(options);
    let mut answers = Vec::new();
    // What the session sent, and the transcript has not come to yet.
    let mut sent: std::collections::VecDeque<Json> = std::collections::VecDeque::new();
    for (number, line) in text.lines().enumerate() {
        let step: Json = serde_json::from_str(line).unwrap();
        let number = number + 1;
        let mut effects = if let Some(op) = step["op"].as_str() {
            play.line(">", op).unwrap()
        } else if step["recv"].is_object() {
            assert!(sent.is_empty(), "line {number}: sent and not in the transcript: {sent:?}");
            let message = Message::from_json(step["recv"].clone()).expect("a message");
            play.feed(Input::Adapter(message))
        } else {
            let expected = &step["send"];
            let mut effects = Vec::new();
            if expected["command"] == "runInTerminal" {
                let request = expected["request_seq"].as_i64().unwrap();
                let pid = Ok(u32::try_from(expected["body"]["processId"].as_u64().unwrap()).unwrap());
                effects = play.feed(Input::InTerminal { request, pid });
                take(&mut effects, &mut sent, &mut answers);
            }
            let actual = sent.pop_front().unwrap_or_else(|| panic!("line {number}: not sent: {expected}"));
            assert_eq!(&actual, expected, "line {number}");
            effects
        };
        if effects.contains(&Effect::AskExit) {
            effects.extend(play.feed(Input::Exit(Some(KernelExit::Code(0)))));
        }
        take(&mut effects, &mut sent, &mut answers);
    }
    assert!(sent.is_empty(), "sent and not in the transcript: {sent:?}");
    answers
}

fn take(effects: &mut Vec<Effect>, sent: &mut std::collections::VecDeque<Json>, answers: &mut Vec<String>) {
    for effect in effects.drain(..) {
        match &effect {
            Effect::Send(message) => sent.push_back(message.to_json(0)),
            Effect::Answer(..) => answers.extend(show::effect(&effect)),
            _ => {}
        }
    }
}

#[test]
fn lldb_dap_19() {
    let answers = replay("lldb", include_str!("../../../tests/transcripts/lldb-dap-19.jsonl"));
    let stack = "work_basic /p/loop_basic.c:6 < main /p/loop_basic.c:13 < __libc_start_call_main";
    assert_eq!(answers[0], "answer 1: held 1:verified");
    assert!(
        answers[1].starts_with(&format!("answer 2: stop 1 breakpoint [1] hit 1 thread 4321, {stack}")),
        "{}",
        answers[1]
    );
    assert!(answers[1].ends_with(" | n=5 sum=0 i=0"), "{}", answers[1]);
    assert!(
        answers[2].starts_with(&format!("answer 3: stop 2 breakpoint [1] hit 2 thread 4321, {stack}")),
        "{}",
        answers[2]
    );
    assert!(answers[2].ends_with(" | n=5 sum=0 i=1 (was 0)"), "{}", answers[2]);
    assert_eq!(answers[3], "answer 4: seen thread 4321 frame 0, work_basic /p/loop_basic.c:6 < … | n=5 sum=0 i=1");
    assert_eq!(answers[4..], ["answer 5: bindings", "answer 6: ended, code 0"]);
}

#[test]
fn debugpy_1_8() {
    let answers = replay("python", include_str!("../../../tests/transcripts/debugpy-1.8.jsonl"));
    let stack = "work /p/loop.py:7 < main /p/loop.py:13 < <module> /p/loop.py:17";
    assert!(
        answers[0].starts_with(&format!("answer 1: stop 1 breakpoint [1] hit 1 thread 1, {stack}")),
        "{}",
        answers[0]
    );
    assert!(answers[0].ends_with(" | i=0 n=5 total=0"), "{}", answers[0]);
    assert!(answers[1].ends_with(" | i=1 (was 0) n=5 seen=0 (new) total=0"), "{}", answers[1]);
    assert_eq!(answers[2], "answer 3: seen thread 1 frame 0, work /p/loop.py:7 < … | i=1 n=5 seen=0 total=0");
    assert_eq!(answers[3..], ["answer 4: bindings", "answer 5: ended, code 0"]);
}
