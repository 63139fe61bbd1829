//! Log breakpoints: the program stops, the values are asked for, the line is written, the program goes on.

use serde_json::{Value as Json, json};

use super::{Effect, Pending, Session, Stream};
use crate::dap::types::{self, StoppedBody, read};
use crate::render::cut;

/// Characters of a value in a message.
const MAX_VALUE: usize = 40_000;

/// A log breakpoint was hit: its values are on their way.
#[derive(Debug)]
pub(super) struct Logging {
    pub thread: i64,
    frame: Option<i64>,
    lines: Vec<(u32, Vec<Piece>)>,
    open: usize,
    /// The event it began with, for the case that something else wants to stop here too.
    body: StoppedBody,
    stops_too: bool,
}

/// A part of a log message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Value { expression: String, value: Option<String> },
}

impl Session {
    pub(super) fn log(&mut self, body: StoppedBody, lines: Vec<(u32, Vec<Piece>)>, stops_too: bool) {
        let thread = body.thread_id.unwrap_or(1);
        self.logging = Some(Logging { thread, frame: None, lines, open: 1, body, stops_too });
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": 1 });
        self.request("stackTrace", arguments, Pending::Log(usize::MAX), self.limits.inspect);
    }

    pub(super) fn on_log_value(&mut self, index: usize, result: Result<Json, String>) {
        let Some(logging) = &mut self.logging else { return };
        logging.open -= 1;
        if index == usize::MAX {
            let stack: types::StackTraceBody = result.map(|body| read(&body)).unwrap_or_default();
            logging.frame = stack.stack_frames.first().map(|frame| frame.id);
            let frame = logging.frame;
            let wanted: Vec<String> = values(&mut logging.lines).map(|(expression, _)| expression.clone()).collect();
            logging.open += wanted.len();
            let context = self.adapter.quirks.print_contexts.last().copied().unwrap_or("watch");
            for (index, expression) in wanted.into_iter().enumerate() {
                let arguments = json!({ "expression": expression, "frameId": frame, "context": context });
                self.request("evaluate", arguments, Pending::Log(index), self.limits.inspect);
            }
        } else {
            let tidy = self.adapter.quirks.tidy;
            let text = match result {
                Ok(body) => {
                    let body: types::EvaluateBody = read(&body);
                    let text = tidy(&body.result, body.kind.as_deref());
                    match cut(&text, MAX_VALUE) {
                        (_, 0) if body.cut == 0 => text,
                        (kept, left) => format!("{kept}… (+{} characters)", body.cut.saturating_add(left as u64)),
                    }
                }
                Err(message) => format!("<{}>", super::gather::explain(&message)),
            };
            if let Some((_, value)) = values(&mut logging.lines).nth(index) {
                *value = Some(text);
            }
        }
        if self.logging.as_ref().is_some_and(|logging| logging.open == 0) {
            self.write_log();
        }
    }

    fn write_log(&mut self) {
        let Some(logging) = self.logging.take() else { return };
        for (id, pieces) in &logging.lines {
            let hit = self.count_hit(*id);
            let text: String = pieces
                .iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.as_str(),
                    Piece::Value { value, .. } => value.as_deref().unwrap_or("<unavailable>"),
                })
                .collect();
            self.record("hit", Some(logging.thread), json!({ "breakpoint": id, "hit": hit, "log": text }));
            self.out.push(Effect::Output { stream: Stream::Log, text: format!("{text}\n") });
        }
        if logging.stops_too {
            let logged: Vec<u32> = logging.lines.iter().map(|(id, _)| *id).collect();
            let ids = self.hit_wishes(&logging.body);
            let ids: Vec<u32> = ids.into_iter().filter(|id| !logged.contains(id)).collect();
            self.stand(&logging.body, &ids);
        } else {
            self.go_on(Some(logging.thread));
        }
    }
}

fn values(lines: &mut [(u32, Vec<Piece>)]) -> impl Iterator<Item = (&mut String, &mut Option<String>)> {
    lines.iter_mut().flat_map(|(_, pieces)| pieces.iter_mut()).filter_map(|piece| match piece {
        Piece::Value { expression, value } => Some((expression, value)),
        Piece::Text(_) => None,
    })
}

/// Splits `i={i}` into text and expressions; `{{` and `}}` stand for braces.
pub(super) fn pieces(message: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    let mut text = String::new();
    let mut chars = message.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.peek() == Some(&'{') => {
                chars.next();
                text.push('{');
            }
            '}' if chars.peek() == Some(&'}') => {
                chars.next();
                text.push('}');
            }
            '{' => {
                let mut expression = String::new();
                let mut depth = 1;
                for c in chars.by_ref() {
                    match c {
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        _ => {}
                    }
                    if depth == 0 {
                        break;
                    }
                    expression.push(c);
                }
                out.push(Piece::Text(std::mem::take(&mut text)));
                out.push(Piece::Value { expression, value: None });
            }
            c => text.push(c),
        }
    }
    out.push(Piece::Text(text));
    out.retain(|piece| *piece != Piece::Text(String::new()));
    out
}
