//! A look never shows, asks or keeps more than its view allows, and says what it left out.

use serde_json::{Value as Json, json};

use super::script::Play;
use crate::dap::Message;
use crate::model::{Value, View};
use crate::session::{Answer, Effect, Input, Locals, Look, Op, Seen};

/// Answers requests from a made-up program until a look is answered; counts what was asked.
struct Program {
    /// Children of a reference: how many, and whether they have children themselves.
    children: fn(i64) -> Vec<Json>,
    asked: usize,
    /// The largest `count` that was asked for.
    counts: Vec<Json>,
}

impl Program {
    fn new(children: fn(i64) -> Vec<Json>) -> Self {
        Self { children, asked: 0, counts: Vec::new() }
    }

    fn look(&mut self, look: Look) -> Seen {
        let mut play = stopped();
        let mut effects = play.feed(Input::Op(50, Op::Look(look)));
        loop {
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Send(Message::Request { seq, command, arguments }) => {
                        self.asked += 1;
                        let body = self.body(&command, &arguments);
                        let response =
                            Message::Response { request_seq: seq, command, success: true, message: None, body };
                        next.extend(play.feed(Input::Adapter(response)));
                    }
                    Effect::Answer(50, answer) => match answer.unwrap() {
                        Answer::Seen(seen) => return seen,
                        other => panic!("{other:?}"),
                    },
                    _ => {}
                }
            }
            assert!(!next.is_empty(), "never answered");
            effects = next;
        }
    }

    fn body(&mut self, command: &str, arguments: &Json) -> Json {
        match command {
            "stackTrace" => json!({ "stackFrames": [{ "id": 1, "name": "f", "line": 1 }], "totalFrames": 1 }),
            "scopes" => json!({ "scopes": [{ "name": "Locals", "variablesReference": 1 }] }),
            "evaluate" => json!({ "result": "size=100000", "variablesReference": 2, "indexedVariables": 100_000 }),
            "variables" => {
                self.counts.push(arguments["count"].clone());
                let reference = arguments["variablesReference"].as_i64().unwrap();
                let all = (self.children)(reference);
                let start = arguments["start"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
                let count = arguments["count"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(all.len());
                json!({ "variables": all.into_iter().skip(start).take(count).collect::<Vec<_>>() })
            }
            other => panic!("{other}"),
        }
    }
}

fn stopped() -> Play {
    let mut play = Play::new("lldb");
    for (kind, line) in [
        (">", "1 start run"),
        ("<", "ok initialize @lldb"),
        ("<", "event initialized"),
        ("<", "ok setExceptionBreakpoints"),
        ("<", r#"event stopped {"reason":"breakpoint","threadId":1}"#),
        ("<", "show f a.c:1"),
    ] {
        play.line(kind, line).unwrap();
    }
    play
}

fn locals(view: View) -> Look {
    Look { locals: Locals::Selected, view, ..Look::default() }
}

fn print(view: View) -> Look {
    Look { expressions: vec!["xs".into()], view, ..Look::default() }
}

fn leaf(name: &str, value: &str) -> Json {
    json!({ "name": name, "value": value, "variablesReference": 0 })
}

fn only(seen: &Seen) -> Value {
    seen.values[0].1.clone().unwrap()
}

#[test]
fn items_are_counted_and_the_rest_is_told() {
    let mut program = Program::new(|_| (0..100_000).map(|i| leaf(&format!("[{i}]"), &i.to_string())).collect());
    let value = only(&program.look(print(View::default())));
    assert_eq!((value.children.len(), value.hidden), (20, 99_980));
    assert_eq!(value.children[19].value.text, "19");
    // One more than is shown tells whether there are more.
    assert_eq!(program.counts, [json!(21)]);
    let value = only(&program.look(print(View { from: 99_990, ..View::default() })));
    assert_eq!(value.children[0].value.text, "99990");
    assert_eq!(value.children.len(), 10);
}

#[test]
fn an_adapter_that_ignores_paging_is_cut_here() {
    let mut program = Program::new(|_| (0..10_000).map(|i| leaf(&format!("n{i}"), &i.to_string())).collect());
    let seen = program.look(locals(View { bytes: 1_000_000, ..View::default() }));
    // The locals of a frame are all shown; only a byte budget cuts them.
    assert_eq!(seen.locals.len(), 10_000);
}

#[test]
fn bytes_are_limited_and_what_was_left_out_is_counted() {
    let mut program = Program::new(|_| (0..10_000).map(|i| leaf(&format!("n{i}"), &"x".repeat(50))).collect());
    let seen = program.look(locals(View::default()));
    let bytes: usize = seen.locals.iter().map(|local| local.name.len() + local.value.text.len()).sum();
    assert!(bytes <= 8 * 1024 + 200, "{bytes}");
    let left = 10_000 - seen.locals.len();
    assert!(seen.gaps.iter().any(|gap| gap.starts_with(&format!("{left} more values"))), "{:?}", seen.gaps);
}

#[test]
fn characters_are_limited_and_counted() {
    let mut program = Program::new(|_| vec![leaf("s", &"ä".repeat(5000))]);
    let seen = program.look(locals(View::default()));
    let value = &seen.locals[0].value;
    assert_eq!((value.text.chars().count(), value.cut), (200, 4800));
}

#[test]
fn text_of_nothing_but_escapes_stays_within_its_limit() {
    let mut program = Program::new(|_| vec![leaf("s", &"\u{1b}".repeat(5000))]);
    let seen = program.look(locals(View::default()));
    assert!(seen.locals[0].value.text.chars().count() <= 210, "{}", seen.locals[0].value.text.len());
    assert!(seen.locals[0].value.cut > 0);
}

/// A value without end: each child has a child.
fn endless(reference: i64) -> Vec<Json> {
    vec![json!({ "name": "next", "value": "{...}", "variablesReference": reference + 1 })]
}

#[test]
fn depth_is_limited_in_a_value_without_end() {
    for depth in [1, 3, 10] {
        let mut program = Program::new(endless);
        let seen = program.look(print(View { depth, ..View::default() }));
        let mut value = only(&seen);
        let mut levels = 0;
        while let Some(child) = value.children.first().cloned() {
            value = child.value;
            levels += 1;
        }
        assert!(levels <= depth + 1, "{levels} levels at depth {depth}");
        assert!(value.deeper, "the end says that there is more");
        assert!(program.asked < 20, "{}", program.asked);
    }
}

#[test]
fn a_wide_and_deep_value_is_never_a_flood_of_requests() {
    let mut program = Program::new(|reference| {
        (0..1000)
            .map(|i| {
                json!({ "name": format!("[{i}]"), "value": "{...}", "variablesReference": reference + 1,
                             "indexedVariables": 1000 })
            })
            .collect()
    });
    let seen = program.look(locals(View::full()));
    assert!(program.asked <= 400, "{}", program.asked);
    assert!(!seen.locals.is_empty());
    let mut program = Program::new(program.children);
    program.look(locals(View::default()));
    assert!(program.asked <= 50, "{}", program.asked);
}
