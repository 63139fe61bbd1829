//! What a model answered, put together on the side while the answer passes through.
//!
//! All of it is bounded: an answer without end costs no more than its beginning.

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::dialect::Dialect;
use crate::agent::gate::Usage;

/// The longest text, thinking and input that are kept.
const LONGEST: usize = 1024 * 1024;
/// The most calls of tools in one answer.
const MOST_CALLS: usize = 256;
/// The longest event of a stream, and the longest answer in one piece, that are read.
const LONGEST_EVENT: usize = 16 * 1024 * 1024;

/// A call of a tool that the model asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub input: Json,
}

/// An answer in one form for all of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    pub model: Option<String>,
    pub text: String,
    pub thinking: String,
    pub tool_calls: Vec<Call>,
    pub stop_reason: Option<String>,
    pub usage: Usage,
    /// What went wrong, as the vendor says it.
    pub error: Option<String>,
    /// The model has said that it is done: what may follow says nothing, and some clients don't wait for it.
    pub ended: bool,
    /// Not all of it is here.
    pub cut: bool,
}

impl Reply {
    /// The answer that a value of `Synthesize` means: a text, or `{"text", "tool_calls": [{"name", "input", "id"}]}`.
    /// `id` makes the ids of calls that have none.
    #[must_use]
    pub fn made_of(value: &Json, model: Option<String>, id: &str) -> Self {
        let text = value.as_str().or_else(|| value["text"].as_str()).unwrap_or_default().to_string();
        let calls = value["tool_calls"].as_array().into_iter().flatten().enumerate().map(|(at, call)| Call {
            id: call["id"].as_str().map_or_else(|| format!("call_{id}_{at}"), str::to_string),
            name: call["name"].as_str().unwrap_or_default().to_string(),
            input: if call["input"].is_null() { json!({}) } else { call["input"].clone() },
        });
        Self { model, text, tool_calls: calls.collect(), ..Self::default() }
    }
}

/// An answer in the making.
#[derive(Debug, Default)]
pub struct Building {
    pub reply: Reply,
    /// Calls whose input comes in pieces: the index they go by, the call, and its input so far.
    open: Vec<(u64, usize, String)>,
}

impl Building {
    pub fn text(&mut self, text: Option<&str>) {
        add(&mut self.reply.text, text, &mut self.reply.cut);
    }

    pub fn thinking(&mut self, text: Option<&str>) {
        add(&mut self.reply.thinking, text, &mut self.reply.cut);
    }

    pub fn call(&mut self, call: Call) {
        if self.reply.tool_calls.len() < MOST_CALLS {
            self.reply.tool_calls.push(call);
        } else {
            self.reply.cut = true;
        }
    }

    /// A call begins; its input follows under this index.
    pub fn open(&mut self, index: u64, id: String, name: String) {
        if self.open.iter().any(|(known, ..)| *known == index) {
            return;
        }
        let at = self.reply.tool_calls.len();
        self.call(Call { id, name, input: Json::Null });
        if self.reply.tool_calls.len() > at {
            self.open.push((index, at, String::new()));
        }
    }

    pub fn input(&mut self, index: u64, piece: Option<&str>) {
        if let Some((_, _, input)) = self.open.iter_mut().find(|(known, ..)| *known == index) {
            add(input, piece, &mut self.reply.cut);
        }
    }

    fn done(mut self) -> Reply {
        for (_, at, input) in self.open {
            let read = if input.is_empty() { Ok(json!({})) } else { serde_json::from_str(&input) };
            self.reply.tool_calls[at].input = read.unwrap_or_else(|_| json!(input));
        }
        self.reply
    }
}

fn add(to: &mut String, text: Option<&str>, cut: &mut bool) {
    let Some(text) = text else { return };
    if to.len() + text.len() <= LONGEST {
        to.push_str(text);
    } else {
        *cut = true;
    }
}

/// Reads an answer as its pieces come, cut wherever they are.
#[derive(Debug)]
pub struct Reader {
    dialect: Dialect,
    building: Building,
    events: bool,
    /// The line that has not ended, or all of an answer in one piece.
    line: Vec<u8>,
    /// The data of the event that has not ended.
    data: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no second line.
    returned: bool,
}

impl Reader {
    /// `events`: it comes as a stream of them.
    #[must_use]
    pub fn new(dialect: Dialect, events: bool) -> Self {
        Self { dialect, building: Building::default(), events, line: Vec::new(), data: Vec::new(), returned: false }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        if !self.events {
            self.keep(bytes);
            return;
        }
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n' || *byte == b'\r') {
            let (begun, ended) = (&rest[..end], rest[end]);
            if !(self.returned && ended == b'\n' && end == 0 && self.line.is_empty()) {
                self.keep(begun);
                self.end_line();
            }
            self.returned = ended == b'\r';
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            self.returned = false;
            self.keep(rest);
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() <= LONGEST_EVENT {
            self.line.extend_from_slice(bytes);
        } else {
            self.building.reply.cut = true;
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            self.end_event();
        } else if let Some(data) = line.strip_prefix(b"data:") {
            let data = data.strip_prefix(b" ").unwrap_or(data);
            if self.data.len() + data.len() > LONGEST_EVENT {
                self.building.reply.cut = true;
                return;
            }
            if !self.data.is_empty() {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data);
        }
        // Names, ids and comments say nothing that the data does not.
    }

    fn end_event(&mut self) {
        let data = std::mem::take(&mut self.data);
        if let Ok(data) = serde_json::from_slice::<Json>(&data) {
            self.dialect.read_event(&mut self.building, &data);
        }
    }

    /// The calls of tools so far; their inputs may not be there yet.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.building.reply.tool_calls
    }

    /// What was answered. `whole`: there was nothing more to come.
    #[must_use]
    pub fn done(mut self, whole: bool) -> Reply {
        if self.events {
            self.end_line();
            self.end_event();
            self.building.reply.cut |= !whole && !self.building.reply.ended;
        } else {
            self.building.reply.ended = whole;
            self.building.reply.cut |= !whole;
            match serde_json::from_slice::<Json>(&self.line) {
                Ok(body) => self.dialect.read_whole(&mut self.building, &body),
                Err(_) => self.building.reply.cut = true,
            }
        }
        self.building.done()
    }
}
