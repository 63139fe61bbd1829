//! Log breakpoints: the program stops, the values are asked for, the line is written, the program goes on.

use std::cmp::Ordering;

use serde_json::{Value as Json, json};

use super::{Effect, OpId, Pending, Resume, Session, Stream, Wait};
use crate::dap::types::{self, StoppedBody, read};
use crate::model::Breakpoint;
use crate::render::cut;

/// Characters of a value in a message.
const MAX_VALUE: usize = 40_000;

/// Frames that are looked at to tell how deep a step is.
pub(super) const DEEPEST: usize = 1000;

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
    /// What is left of the step under way.
    rest: Rest,
}

/// A step, and where it began.
#[derive(Debug)]
pub(super) struct Step {
    how: Resume,
    from: Stood,
}

/// A resume that waits for something to be known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resumed {
    pub op: OpId,
    pub how: Resume,
    pub thread: Option<i64>,
    /// The thread that is looked at.
    pub of: i64,
    pub wait: Wait,
}

/// Where a thread stands.
#[derive(Debug, Clone)]
pub(super) struct Stood {
    thread: i64,
    function: String,
    line: Option<i64>,
    /// How many functions deep, as far as was looked.
    depth: usize,
    /// It was looked far enough.
    whole: bool,
}

impl Stood {
    /// By the innermost frames of a thread, of which so many were asked for.
    pub(super) fn new(thread: i64, stack: &types::StackTraceBody, asked: usize) -> Option<Self> {
        let (top, depth) = (stack.stack_frames.first()?, stack.stack_frames.len());
        let whole = depth < asked || asked >= DEEPEST;
        Some(Self { thread, function: top.name.clone(), line: top.line, depth: depth.min(DEEPEST), whole })
    }
}

/// What is left of a step where the program stands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// Nothing.
    Over,
    /// All of it.
    Again,
    /// A function that it called is to return first.
    Return,
    /// It is not known.
    Unknown,
}

impl Step {
    fn rest(&self, now: &Stood) -> Rest {
        match now.depth.cmp(&self.from.depth) {
            _ if self.how == Resume::Step => Rest::Over,
            Ordering::Less => Rest::Over,
            Ordering::Equal if now.function == self.from.function => match self.how {
                Resume::Next if now.line != self.from.line => Rest::Over,
                _ => Rest::Again,
            },
            _ => Rest::Return,
        }
    }
}

/// A part of a log message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Value { expression: String, value: Option<String> },
}

impl Session {
    /// A step that is about to be made, where it is known how it ends.
    pub(super) fn step_from_here(&self, how: &Resume, thread: i64) -> Option<Step> {
        let from = self.standing.as_ref()?.stood.as_ref().filter(|stood| stood.thread == thread)?;
        // An agent's own adapter keeps the step by itself.
        let known = matches!(how, Resume::Next | Resume::Step | Resume::Finish) && !self.adapter.quirks.agents;
        (known && (from.whole || *how == Resume::Step)).then(|| Step { how: how.clone(), from: from.clone() })
    }

    /// Whether it is to be found out first how deep a step begins: something may interrupt it that stops nobody.
    pub(super) fn wants_depth(&self, how: &Resume, thread: i64) -> bool {
        let interrupts = |wish: &Breakpoint| wish.log.is_some() || wish.hits.is_some() || wish.thread.is_some();
        let stood = self.standing.as_ref().and_then(|standing| standing.stood.as_ref());
        matches!(how, Resume::Next | Resume::Finish)
            && stood.is_some_and(|stood| stood.thread == thread && !stood.whole)
            && self.wishes.iter().any(|wish| wish.enabled && interrupts(wish))
    }

    /// It is known, or never will be: the step is made.
    pub(super) fn on_depth(&mut self, resumed: Resumed, result: Result<Json, String>) {
        let Resumed { op, how, thread, of, wait } = resumed;
        let stack: types::StackTraceBody = result.map(|body| read(&body)).unwrap_or_default();
        if let Some(standing) = &mut self.standing {
            standing.stood = Stood::new(of, &stack, DEEPEST);
        }
        self.resume(op, how, thread, wait);
    }

    /// Whether this is the thread of a step under way, whose end may fall together with a stop that nobody is told of.
    pub(super) fn steps_in(&self, thread: Option<i64>) -> bool {
        self.is_stepping() && self.step.as_ref().is_some_and(|step| Some(step.from.thread) == thread)
    }

    /// Whether a step is under way that is to go on when something has interrupted it.
    pub(super) fn is_stepping(&self) -> bool {
        self.stepping && self.step.is_some()
    }

    /// Writes these lines, and goes on; also without any, where a step may end.
    pub(super) fn log(&mut self, body: StoppedBody, lines: Vec<(u32, Vec<Piece>)>, stops_too: bool) {
        let thread = body.thread_id.unwrap_or(1);
        let levels = if self.steps_in(Some(thread)) { DEEPEST } else { 1 };
        self.logging = Some(Logging { thread, frame: None, lines, open: 1, body, stops_too, rest: Rest::Unknown });
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": levels });
        self.request("stackTrace", arguments, Pending::Log(usize::MAX), self.limits.inspect);
    }

    pub(super) fn on_log_value(&mut self, index: usize, result: Result<Json, String>) {
        let stepping = self.stepping;
        let Some(logging) = &mut self.logging else { return };
        logging.open -= 1;
        if index == usize::MAX {
            let stack: types::StackTraceBody = result.map(|body| read(&body)).unwrap_or_default();
            logging.frame = stack.stack_frames.first().map(|frame| frame.id);
            let step = self.step.as_ref().filter(|step| stepping && step.from.thread == logging.thread);
            let rest = step.and_then(|step| Some(step.rest(&Stood::new(logging.thread, &stack, DEEPEST)?)));
            logging.rest = rest.unwrap_or(Rest::Unknown);
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
            self.go_on_stepping(logging.rest, logging.body, logging.thread);
        }
    }

    /// Lets the program go on without telling anyone that it stopped, and the step under way with it.
    fn go_on_stepping(&mut self, rest: Rest, body: StoppedBody, thread: i64) {
        let step = self.step.as_ref().filter(|_| self.stepping).map(|step| (step.from.thread, step.how.clone()));
        let quirks = &self.adapter.quirks;
        match (rest, step) {
            (Rest::Over, _) => {
                let of = StoppedBody { reason: "step".into(), thread_id: Some(thread), ..StoppedBody::default() };
                self.stand(&StoppedBody { all_threads_stopped: body.all_threads_stopped, ..of }, &[]);
                self.forget_step();
            }
            // It takes the step up again by itself.
            (_, Some(_)) if quirks.forget_step.is_some() => self.go_on(Some(thread)),
            (Rest::Again, Some((_, Resume::Next))) => self.go_on_by("next", thread),
            (Rest::Again, Some(_)) => self.go_on_by("stepOut", thread),
            (Rest::Return, Some(_)) => {
                self.returning = true;
                self.go_on_by("stepOut", thread);
            }
            (_, Some((stepper, _)))
                if stepper != thread && !quirks.keeps_step && body.all_threads_stopped != Some(false) =>
            {
                self.log(StoppedBody { thread_id: Some(stepper), ..body }, Vec::new(), false);
            }
            _ => self.go_on(Some(thread)),
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
