//! The broker in the words of the debug protocol: threads, frames, scopes, values, breakpoints and steps.

use std::collections::VecDeque;

use serde_json::{Value as Json, json};

use super::breaks::{Break, On, condition_of, no_lines};
use super::broker::Broker;
use super::gate::Point;
use super::path::{Condition, Path, literal};
use super::state::{ROOTS, preview};
use crate::render::{cut, cut_json};

/// Bytes of a value's text in a list of values.
const TEXT: usize = 400;
/// Bytes of the text of a value that was asked for.
const WHOLE: usize = 1_000_000;
/// Frames of a thread have numbers from this times its own.
const FRAMES: usize = 16;

/// What a frame of an agent's stack is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// What is held: a tool, a model call, a prompt, the end of a turn.
    Gate,
    Iteration,
    Turn,
    /// The thread that started this one.
    Parent,
}

/// What this adapter can do.
#[must_use]
pub fn capabilities() -> Json {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsSetExpression": true,
        "supportsSetVariable": true,
        "supportsTerminateRequest": false,
        "supportTerminateDebuggee": true,
        "exceptionBreakpointFilters": [
            { "filter": "error", "label": "a tool or a model call fails" },
            { "filter": "denied", "label": "something is not let happen" },
        ],
        "bugeyeAgent": true,
    })
}

fn text<'a>(arguments: &'a Json, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Json::as_str)
}

fn number(arguments: &Json, name: &str) -> Option<usize> {
    arguments.get(name).and_then(Json::as_u64).and_then(|number| usize::try_from(number).ok())
}

impl Broker {
    /// Answers a request; what it sets in motion is among the effects. None: it is not the broker's to answer.
    pub fn serve(&mut self, command: &str, arguments: &Json) -> Option<Result<Json, String>> {
        let thread = || number(arguments, "threadId").unwrap_or(1).saturating_sub(1);
        Some(match command {
            "setBreakpoints" => {
                let asked = arguments.get("breakpoints").and_then(Json::as_array).map_or(0, Vec::len);
                let no = json!({ "verified": false, "message": no_lines() });
                Ok(json!({ "breakpoints": vec![no; asked] }))
            }
            "setFunctionBreakpoints" => Ok(self.set_breaks(arguments)),
            "setExceptionBreakpoints" => {
                let filters = arguments.get("filters").and_then(Json::as_array).into_iter().flatten();
                self.catch = filters.filter_map(Json::as_str).map(Into::into).collect();
                Ok(json!({}))
            }
            "threads" => Ok(self.threads()),
            "stackTrace" => Ok(self.stack(thread(), arguments)),
            "scopes" => {
                let (thread, level) = self.frame(number(arguments, "frameId").unwrap_or(FRAMES));
                let locals = self.locals(thread, level);
                let reference = self.shown.push(locals, TEXT);
                Ok(json!({ "scopes": [{
                    "name": "Locals", "presentationHint": "locals", "variablesReference": reference, "expensive": false,
                }] }))
            }
            "variables" => self.variables(arguments),
            "evaluate" => self.evaluate(arguments),
            "setExpression" => {
                let (expression, value) = (text(arguments, "expression"), text(arguments, "value"));
                self.change(expression.unwrap_or_default(), value.unwrap_or_default())
            }
            "setVariable" => {
                let (name, value) = (text(arguments, "name"), text(arguments, "value"));
                self.change(name.unwrap_or_default(), value.unwrap_or_default())
            }
            "continue" => {
                match arguments.get("silent").and_then(Json::as_bool) {
                    Some(true) => self.pass(),
                    _ => self.resume(),
                }
                Ok(json!({ "allThreadsContinued": true }))
            }
            "next" | "stepIn" => {
                self.step(thread());
                Ok(json!({}))
            }
            "stepOut" => {
                self.finish(thread());
                Ok(json!({}))
            }
            "pause" => {
                self.pause();
                Ok(json!({}))
            }
            "bugeye/inspect" => {
                let what = text(arguments, "what").unwrap_or("all");
                let last = number(arguments, "last").unwrap_or(3);
                let (thread, ask) = self.shown_at(number(arguments, "thread"));
                self.state.snapshot(what, thread, ask, last)
            }
            "bugeye/inject" => {
                let role = text(arguments, "role").unwrap_or("user");
                let actor = text(arguments, "actor").unwrap_or("somebody");
                self.inject(role, text(arguments, "text").unwrap_or_default(), actor)
            }
            "bugeye/cancel" => {
                let reason = text(arguments, "reason").unwrap_or("cancelled by the user");
                let whole = arguments.get("whole").and_then(Json::as_bool).unwrap_or(false);
                self.cancel(text(arguments, "id"), reason, whole)
            }
            "bugeye/answer" => {
                let value = arguments.get("value").cloned().unwrap_or_default();
                self.synthesize(value).map(|()| json!({}))
            }
            _ => return None,
        })
    }

    fn set_breaks(&mut self, arguments: &Json) -> Json {
        let asked = arguments.get("breakpoints").and_then(Json::as_array).cloned().unwrap_or_default();
        let mut before = std::mem::take(&mut self.breaks);
        let mut next = before.iter().map(|one| one.id).max().unwrap_or(0);
        let mut told = Vec::new();
        let without_price = self.without_price();
        for one in &asked {
            let name = text(one, "name").unwrap_or_default();
            let condition = text(one, "condition").map(condition_of).transpose();
            let made = On::parse(name).and_then(|on| Ok((on, condition?)));
            let from = text(one, "hitCondition").and_then(|text| text.trim_start_matches(['>', '=', ' ']).parse().ok());
            match made {
                Ok((on, condition)) => {
                    let said_of = without_price.as_ref().filter(|_| matches!(on, On::Cost(_)));
                    self.told_unpriced |= said_of.is_some();
                    // One that was there keeps its count.
                    let same = before.iter().position(|old| old.name == name);
                    let (id, hits, said) = match same.map(|at| before.remove(at)) {
                        Some(old) => (old.id, old.hits, old.said),
                        None => {
                            next += 1;
                            (next, 0, false)
                        }
                    };
                    self.breaks.push(Break {
                        id,
                        name: name.into(),
                        on,
                        condition,
                        from: from.unwrap_or(1),
                        hits,
                        said,
                    });
                    told.push(json!({ "verified": true, "id": id, "message": said_of }));
                }
                Err(message) => told.push(json!({ "verified": false, "message": message })),
            }
        }
        json!({ "breakpoints": told })
    }

    fn threads(&self) -> Json {
        let alive = self.state.threads.iter().enumerate().filter(|(at, thread)| *at == 0 || !thread.ended);
        let threads: Vec<Json> = alive.map(|(at, thread)| json!({ "id": at + 1, "name": thread.label() })).collect();
        json!({ "threads": threads })
    }

    /// The thread and what it is held at: of the one asked for, else of the one that is shown.
    fn shown_at(&self, thread: Option<usize>) -> (usize, Option<&super::gate::Ask>) {
        let gate = self.gate();
        let thread = thread.map_or_else(|| gate.map_or(0, |gate| gate.thread), |thread| thread.saturating_sub(1));
        let ask = gate.filter(|gate| gate.thread == thread).map(|gate| &gate.ask);
        (thread, ask.or_else(|| self.waiting().find(|gate| gate.thread == thread).map(|gate| &gate.ask)))
    }

    fn levels(&self, thread: usize) -> Vec<Level> {
        let (_, ask) = self.shown_at(Some(thread + 1));
        let Some(about) = self.state.threads.get(thread) else { return Vec::new() };
        let mut levels = Vec::new();
        if ask.is_some() || !about.calls.is_empty() {
            levels.push(Level::Gate);
        }
        if about.iteration > 0 {
            levels.push(Level::Iteration);
        }
        levels.push(Level::Turn);
        if about.parent.is_some() {
            levels.push(Level::Parent);
        }
        levels
    }

    fn stack(&self, thread: usize, arguments: &Json) -> Json {
        let levels = self.levels(thread);
        let frames: Vec<Json> = levels
            .iter()
            .enumerate()
            .map(|(at, level)| {
                let name = self.frame_name(thread, *level);
                json!({ "id": (thread + 1) * FRAMES + at, "name": name, "line": 0, "column": 0 })
            })
            .collect();
        let from = number(arguments, "startFrame").unwrap_or(0).min(frames.len());
        let total = frames.len();
        json!({ "stackFrames": frames[from..], "totalFrames": total })
    }

    fn frame_name(&self, thread: usize, level: Level) -> String {
        let Some(about) = self.state.threads.get(thread) else { return String::new() };
        match level {
            Level::Gate => match self.shown_at(Some(thread + 1)).1 {
                Some(ask) => {
                    let name = ask.name.as_deref().unwrap_or("?");
                    match ask.point {
                        Point::BeforeTool => format!("before tool {name}"),
                        Point::AfterTool => format!("after tool {name}"),
                        Point::BeforeModel => "before model call".into(),
                        Point::BeforePrompt => "before prompt".into(),
                        Point::BeforeStop => "before the turn ends".into(),
                    }
                }
                None => about.calls.last().map_or_else(|| "between gates".into(), |call| format!("in tool {}", call.1)),
            },
            Level::Iteration => format!("iteration {}", about.iteration),
            Level::Turn => match &about.prompt {
                Some(prompt) => format!("turn {}: {}", about.turn, one_line(prompt, 60)),
                None => format!("turn {}", about.turn),
            },
            Level::Parent => format!("started by {}", about.parent.as_deref().unwrap_or("main")),
        }
    }

    /// The thread and the level that a frame's number stands for.
    fn frame(&self, id: usize) -> (usize, Level) {
        let thread = (id / FRAMES).saturating_sub(1);
        let level = self.levels(thread).get(id % FRAMES).copied().unwrap_or(Level::Turn);
        (thread, level)
    }

    /// What there is to see at a level.
    fn locals(&self, thread: usize, level: Level) -> Json {
        let ask = self.shown_at(Some(thread + 1)).1;
        let names: &[&str] = match (level, ask.map(|ask| ask.point)) {
            (Level::Gate, Some(Point::BeforeTool)) => &["tool_name", "tool_input"],
            (Level::Gate, Some(Point::AfterTool)) => &["tool_name", "tool_input", "tool_output", "ok", "ms"],
            (Level::Gate, Some(Point::BeforeModel)) => &["model", "last_message", "context"],
            (Level::Gate, Some(Point::BeforePrompt)) => &["prompt"],
            (Level::Gate, Some(Point::BeforeStop)) => &["last_message"],
            (Level::Gate, None) => &["tool_input"],
            (Level::Iteration, _) => &["iteration", "model", "last_message", "usage"],
            (Level::Turn, _) => &["turn", "prompt", "agent"],
            (Level::Parent, _) => &["thread"],
        };
        let mut locals = serde_json::Map::new();
        for name in names {
            if let Ok(value) = self.state.root(name, thread, ask)
                && !value.is_null()
            {
                let value = match *name {
                    "last_message" => preview(&value),
                    "context" => ["messages", "tools", "tokens_estimated"]
                        .iter()
                        .map(|part| (*part, value[*part].clone()))
                        .collect(),
                    _ => value,
                };
                locals.insert((*name).into(), value);
            }
        }
        if level == Level::Gate {
            let others: Vec<Json> = self
                .waiting()
                .map(|gate| {
                    let name = gate.ask.name.as_deref().unwrap_or(gate.ask.point.name());
                    json!(gate.ask.span.as_ref().map_or(name.into(), |id| format!("{name} {id}")))
                })
                .collect();
            if !others.is_empty() {
                locals.insert("waiting_too".into(), json!(others));
            }
        }
        Json::Object(locals)
    }

    fn variables(&mut self, arguments: &Json) -> Result<Json, String> {
        let reference = number(arguments, "variablesReference").unwrap_or(0);
        let value = self.shown.get(reference).cloned().ok_or("that value is gone; ask for it again")?;
        let (start, count) = (number(arguments, "start").unwrap_or(0), number(arguments, "count").filter(|n| *n > 0));
        let parts: Vec<(String, Json)> = match value {
            Json::Object(map) => map.into_iter().collect(),
            Json::Array(items) => items.into_iter().enumerate().map(|(at, item)| (format!("[{at}]"), item)).collect(),
            _ => Vec::new(),
        };
        // A few are told whole, as far as their reader wants them.
        let most = if parts.len() <= 20 { TEXT * 100 } else { TEXT };
        let parts = parts.into_iter().skip(start).take(count.unwrap_or(1000));
        let variables: Vec<Json> = parts
            .map(|(name, value)| {
                let mut variable = self.described(value, "value", most);
                variable["name"] = json!(name);
                variable
            })
            .collect();
        Ok(json!({ "variables": variables }))
    }

    /// A value as the protocol tells it; `field` is what its text is called.
    fn described(&mut self, value: Json, field: &str, most: usize) -> Json {
        // A text is told whole, as far as its reader wants it; so is what was asked for.
        let (text, left_out) = match &value {
            Json::String(text) => {
                let (kept, left_out) = cut_json(text, most.max(TEXT * 100));
                (json!(kept).to_string(), left_out)
            }
            other => (other.to_string(), 0),
        };
        let (kind, named, indexed) = match &value {
            Json::Object(map) => ("object", map.len(), 0),
            Json::Array(items) => ("list", 0, items.len()),
            Json::String(_) => ("text", 0, 0),
            Json::Number(_) => ("number", 0, 0),
            Json::Bool(_) => ("bool", 0, 0),
            Json::Null => ("null", 0, 0),
        };
        let reference = if named + indexed > 0 { self.shown.push(value, text.len()) } else { 0 };
        let (shown, more) = if reference > 0 { cut(&text, most) } else { (text.as_str(), 0) };
        json!({
            field: shown, "cut": left_out + more, "type": kind, "variablesReference": reference, "namedVariables": named,
            "indexedVariables": indexed,
        })
    }

    fn evaluate(&mut self, arguments: &Json) -> Result<Json, String> {
        let expression = text(arguments, "expression").unwrap_or_default().trim().to_string();
        if let Some((left, right)) = expression.split_once('=')
            && text(arguments, "context") == Some("repl")
            && !left.ends_with(['=', '!', '<', '>'])
            && !right.starts_with(['=', '~'])
        {
            let changed = self.change(left, right)?;
            return Ok(json!({ "result": changed["value"], "variablesReference": 0 }));
        }
        let (thread, ask) = match number(arguments, "frameId") {
            Some(frame) => self.shown_at(Some(self.frame(frame).0 + 1)),
            None => self.shown_at(None),
        };
        let value = match Path::parse(&expression).and_then(|path| self.state.value(&path, thread, ask)) {
            Ok(value) => value,
            // A condition is an expression too.
            Err(message) => match Condition::parse(&expression) {
                Ok(condition) if Path::parse(&expression).is_err() => {
                    json!(condition.holds(|path: &Path| self.state.value(path, thread, ask)))
                }
                _ => return Err(message),
            },
        };
        Ok(self.described(value, "result", WHOLE))
    }

    fn change(&mut self, expression: &str, value: &str) -> Result<Json, String> {
        let path = Path::parse(expression)?;
        if !ROOTS.contains(&path.root.as_str()) && !matches!(path.root.as_str(), "input" | "output") {
            return Err(format!("there is no `{}`; there are: {}", path.root, ROOTS.join(", ")));
        }
        // What is a text stays one: `set tool_input.command true` is a command.
        let (thread, ask) = self.shown_at(None);
        let is_text = self.state.value(&path, thread, ask).is_ok_and(|old| old.is_string());
        let new = match literal(value) {
            new if is_text && !new.is_string() => json!(value.trim()),
            new => new,
        };
        let value = self.set(&path, new)?;
        Ok(self.described(value, "value", TEXT))
    }
}

/// Values that were shown, by their references. Of many the oldest are forgotten.
#[derive(Debug, Default)]
pub struct Shown {
    values: VecDeque<(Json, usize)>,
    /// How many were forgotten: a reference is never given twice.
    gone: usize,
    bytes: usize,
}

impl Shown {
    const MOST: usize = 10_000;
    const MOST_BYTES: usize = 64 << 20;

    /// The reference to a value of about so many bytes.
    fn push(&mut self, value: Json, bytes: usize) -> usize {
        while self.values.len() >= Self::MOST || (self.bytes > Self::MOST_BYTES && !self.values.is_empty()) {
            self.bytes -= self.values.pop_front().map_or(0, |(_, bytes)| bytes);
            self.gone += 1;
        }
        self.bytes += bytes;
        self.values.push_back((value, bytes));
        self.gone + self.values.len()
    }

    fn get(&self, reference: usize) -> Option<&Json> {
        Some(&self.values.get(reference.checked_sub(self.gone + 1)?)?.0)
    }

    pub fn clear(&mut self) {
        self.gone += self.values.len();
        self.values.clear();
        self.bytes = 0;
    }
}

/// A text in one line, of so many characters.
fn one_line(text: &str, most: usize) -> String {
    let mut line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > most {
        line = line.chars().take(most).chain(['…']).collect();
    }
    line
}
