//! The copy of an answer: read on the side, and told when the answer has ended, however it ends.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value as Json, json};

use super::dialect::{Dialect, SSE};
use super::price;
use super::record::LONGEST;
use super::reply::{Reader, Reply};
use super::tap::Tap;
use crate::agent::gate::Note;

/// How much of an answer is kept to tell what went wrong.
const SAID: usize = 4096;

/// What an answer is to.
#[derive(Debug, Clone)]
pub struct About {
    pub provider: String,
    /// None where it is no question to a model.
    pub dialect: Option<Dialect>,
    pub span: String,
    pub thread: String,
    pub call: Option<u32>,
    pub aside: bool,
    pub model: Option<String>,
    /// `POST /v1/messages`, without what follows a `?`.
    pub path: String,
    /// Who answers: `upstream`, `recording` or `debugger`.
    pub by: &'static str,
    /// What was changed in the question: `edit`, `inject`.
    pub changed: Vec<&'static str>,
}

/// One of them.
pub struct Copy {
    tap: Arc<Tap>,
    about: About,
    started: Instant,
    status: Option<u16>,
    kind: String,
    reader: Option<Reader>,
    /// How many calls of tools were named.
    named: usize,
    raw: Vec<u8>,
    /// All that came, kept or not.
    bytes: u64,
    is_done: bool,
}

impl std::fmt::Debug for Copy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Copy").field("about", &self.about).finish_non_exhaustive()
    }
}

impl Copy {
    #[must_use]
    pub fn new(tap: Arc<Tap>, about: About) -> Box<Self> {
        let (started, kind) = (Instant::now(), String::new());
        Box::new(Self {
            tap,
            about,
            started,
            status: None,
            kind,
            reader: None,
            named: 0,
            raw: Vec::new(),
            bytes: 0,
            is_done: false,
        })
    }

    /// The head of the answer is there. `readable`: its bytes are what they seem.
    pub fn begin(&mut self, status: u16, kind: &str, readable: bool) {
        self.status = Some(status);
        self.kind = kind.to_string();
        let dialect = self.about.dialect.filter(|_| readable);
        self.reader = dialect.map(|dialect| Reader::new(dialect, kind.starts_with(SSE)));
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(reader) = &mut self.reader {
            reader.push(bytes);
            // Some agents run a tool before the answer has ended; by what name the model calls it is to be known by then.
            let new = &reader.calls()[self.named..];
            if !new.is_empty() && !self.about.aside {
                let calls: Vec<Json> = new.iter().map(|call| json!({"id": call.id, "name": call.name})).collect();
                self.tap.note("model.calls", &self.about.thread, &self.about.span, json!({"tool_calls": calls}));
            }
            self.named = reader.calls().len();
        }
        let room = if self.tap.keeps() { LONGEST } else { SAID };
        let fits = bytes.len().min(room.saturating_sub(self.raw.len()));
        self.raw.extend_from_slice(&bytes[..fits]);
    }

    /// The answer has ended. `whole`: with its end, not in the middle.
    pub fn done(mut self: Box<Self>, whole: bool) {
        self.tell(whole, None);
    }

    /// No answer came.
    pub fn failed(mut self: Box<Self>, status: u16, why: &str) {
        self.status = Some(status);
        self.tell(false, Some(why));
    }

    fn tell(&mut self, whole: bool, why: Option<&str>) {
        self.is_done = true;
        let reply = self.reader.take().map(|reader| reader.done(whole)).unwrap_or_default();
        let whole = whole || reply.ended;
        let (kind, data) =
            if self.about.dialect.is_none() { ("model.other", json!({})) } else { self.said(&reply, why) };
        let mut data = data;
        let about = &self.about;
        // The same question after its answer is a new one.
        if kind == "model.response" && whole {
            let mut state = self.tap.state();
            let last = state.last.get_mut(&about.thread).filter(|last| Some(last.number) == about.call);
            if let Some(last) = last {
                last.key.clear();
            }
        }
        data["provider"] = json!(about.provider);
        data["path"] = json!(about.path);
        data["status"] = json!(self.status);
        data["ms"] = json!(u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX));
        data["bytes"] = json!(self.bytes);
        data["request"] = json!(about.span);
        data["thread"] = json!(about.thread);
        data["by"] = json!(about.by);
        if let Some(call) = about.call {
            data["call"] = json!(call);
        }
        if about.aside {
            data["aside"] = json!(true);
        }
        if !about.changed.is_empty() {
            data["changed"] = json!(about.changed);
        }
        if !whole {
            data["cut"] = json!(true);
        }
        if whole && self.raw.len() as u64 == self.bytes {
            let body = self.tap.keep_answer(about.dialect, &self.kind, &self.raw, &reply);
            if !body.is_null() {
                data["body"] = body;
            }
        }
        let (thread, span) = (about.thread.clone(), Some(about.span.clone()));
        self.tap.line.note(Note { kind: kind.into(), thread, span, data });
    }

    fn said(&self, reply: &Reply, why: Option<&str>) -> (&'static str, Json) {
        let Some(status) = self.status else {
            return ("model.error", json!({"message": "the agent hung up before an answer came"}));
        };
        if let Some(why) = why {
            return ("model.error", json!({"message": why}));
        }
        let model = reply.model.clone().or_else(|| self.about.model.clone());
        if status >= 400 || reply.error.is_some() {
            let text = || String::from_utf8_lossy(&self.raw[..self.raw.len().min(SAID)]).into_owned();
            let message = reply.error.clone().unwrap_or_else(text);
            return ("model.error", json!({"model": model, "message": message}));
        }
        let mut data = json!({
            "model": model, "text": reply.text, "tool_calls": reply.tool_calls, "stop_reason": reply.stop_reason,
            "usage": reply.usage,
        });
        if !reply.thinking.is_empty() {
            data["thinking"] = json!(reply.thinking);
        }
        if self.about.by == "upstream" {
            let cost = model.as_deref().and_then(|model| price::cost(model, &reply.usage, &self.tap.prices));
            match cost {
                Some(cost) => data["usd"] = json!(cost),
                None => {
                    let name = model.as_deref().unwrap_or("this model");
                    data["unpriced"] = json!(format!("no price is known for {name}"));
                }
            }
            data["total"] = self.tap.sum(&reply.usage, cost);
        }
        ("model.response", data)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if !self.is_done {
            self.tell(false, None);
        }
    }
}
