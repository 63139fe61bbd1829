//! What an agent did, as occurrences: a tool it called, what came of it, what its model said.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value as Json;

use super::occurrences::Occurrence;
use crate::model::{Event, HitFrame};

/// The most parts of a value that are told apart, and how deep.
const PARTS: usize = 50;
const DEPTH: usize = 4;

/// An event of an agent's record as an occurrence; None where it is none of what it did, or beside its loop. `edited` is
/// what somebody at the debugger made of it: that is what the agent went on with, and so what is told.
#[must_use]
pub fn doing(event: &Event, edited: Option<&Json>) -> Option<Occurrence> {
    let data = &event.data;
    if is_aside(event) {
        return None;
    }
    let name = || data.get("name").and_then(Json::as_str).unwrap_or("?");
    let (place, fields): (String, &[&str]) = match event.kind.as_str() {
        "input.user" => ("prompt".into(), &["text"]),
        "model.response" => ("model".into(), &["text", "tool_calls", "stop_reason"]),
        "model.error" => ("model error".into(), &["message", "status"]),
        "tool.call" => (format!("tool {}", name()), &["input"]),
        "tool.end" => (format!("after tool {}", name()), &["ok", "output"]),
        "tool.denied" => (format!("denied {}", name()), &["reason"]),
        "agent.spawn" => ("sub-agent".into(), &["type", "prompt"]),
        "injected" => ("injected".into(), &["role", "text"]),
        _ => return None,
    };
    let mut values = Vec::new();
    for field in fields {
        let value = edited.filter(|_| editable(&event.kind) == Some(*field)).or_else(|| data.get(*field));
        if let Some(value) = value.filter(|value| !value.is_null()) {
            parts(field, value, 0, &mut values);
        }
    }
    let place: Arc<str> = place.into();
    let frame = HitFrame { function: place.to_string(), file: None, line: None };
    Some(Occurrence {
        seq: event.seq,
        hit: 0,
        ts: event.ts,
        micros: 0,
        thread: event.thread.unwrap_or(1),
        thread_name: None,
        asked: None,
        function: Arc::clone(&place),
        place,
        values,
        frames: Arc::from([frame]),
        reason: None,
        crossed: None,
    })
}

/// The field of an event that can be changed while the agent is held there.
fn editable(kind: &str) -> Option<&'static str> {
    match kind {
        "tool.call" => Some("input"),
        "tool.end" => Some("output"),
        "input.user" => Some("text"),
        _ => None,
    }
}

/// What was changed by somebody at the debugger.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// The type of the event that told it before, and the tool and the id of the call, where it is one.
    pub kind: &'static str,
    pub name: Option<&'a str>,
    pub id: Option<&'a str>,
    pub value: &'a Json,
    before: &'a Json,
}

impl<'a> Edit<'a> {
    /// None where the event tells of none, or of one that is not told of as something that the agent did.
    #[must_use]
    pub fn of(event: &'a Event) -> Option<Self> {
        let data = &event.data;
        let text = |name: &str| data.get(name).and_then(Json::as_str);
        if event.kind != "edited" {
            return None;
        }
        let kind = match text("target")? {
            "tool_input" => "tool.call",
            "tool_output" => "tool.end",
            "prompt" => "input.user",
            _ => return None,
        };
        Some(Self { kind, name: text("name"), id: text("id"), value: data.get("value")?, before: data.get("before")? })
    }

    /// Whether this is what it has changed; calls without ids are told apart by what they had.
    #[must_use]
    pub fn is_of(&self, data: &Json) -> bool {
        editable(self.kind).and_then(|field| data.get(field)) == Some(self.before)
    }

    /// What it was before, in the parts that are others now: `was.command`.
    #[must_use]
    pub fn was(&self) -> Vec<(Arc<str>, String)> {
        let all = |value: &Json| {
            let mut all = Vec::new();
            parts("was", value, 0, &mut all);
            all
        };
        let now = all(self.value);
        all(self.before).into_iter().filter(|part| !now.contains(part)).collect()
    }
}

/// What was changed in a record, by the numbers of the events that told it before.
#[derive(Debug, Default)]
pub struct Edits {
    /// The events that could still be changed, and what: by thread, type, tool and call.
    open: HashMap<(i64, &'static str, Option<String>, Option<String>), Vec<(u64, Json)>>,
    edited: HashMap<u64, Json>,
}

impl Edits {
    pub fn note(&mut self, event: &Event) {
        let thread = event.thread.unwrap_or(1);
        let own = |text: Option<&str>| text.map(ToString::to_string);
        if let Some(edit) = Edit::of(event) {
            let key = (thread, edit.kind, own(edit.name), own(edit.id));
            let open = self.open.get(&key).map(Vec::as_slice).unwrap_or_default();
            if let Some((seq, _)) = open.iter().rfind(|(_, had)| had == edit.before).or(open.last()) {
                self.edited.insert(*seq, edit.value.clone());
            }
        }
        let kind = match event.kind.as_str() {
            // Nothing of what was before it is held any more.
            "model.request" => return self.open.retain(|key, _| key.0 != thread),
            "tool.call" => "tool.call",
            "tool.end" => "tool.end",
            "input.user" => "input.user",
            _ => return,
        };
        let text = |name: &str| own(event.data.get(name).and_then(Json::as_str));
        let had = editable(kind).and_then(|field| event.data.get(field)).cloned().unwrap_or_default();
        self.open.entry((thread, kind, text("name"), text("id"))).or_default().push((event.seq, had));
    }
}

fn is_aside(event: &Event) -> bool {
    event.data.get("aside").and_then(Json::as_bool) == Some(true)
}

/// Puts what a model said before what was done because of it: agents call a tool while the rest of the answer still comes,
/// or after it, as it happens.
#[derive(Debug, Default)]
pub struct InOrder {
    edits: Edits,
    /// What each thread has done since it asked, and was not answered yet.
    open: HashMap<i64, Vec<Occurrence>>,
}

impl InOrder {
    /// With what was changed, which is told only after it.
    #[must_use]
    pub fn new(edits: Edits) -> Self {
        Self { edits, ..Self::default() }
    }

    /// What can be told after this event.
    pub fn next(&mut self, event: &Event) -> Vec<Occurrence> {
        let thread = event.thread.unwrap_or(1);
        let done = doing(event, self.edits.edited.get(&event.seq)).into_iter();
        match event.kind.as_str() {
            "model.request" if !is_aside(event) => self.open.insert(thread, Vec::new()).unwrap_or_default(),
            "model.response" | "model.error" if !is_aside(event) => {
                done.chain(self.open.remove(&thread).unwrap_or_default()).collect()
            }
            "injected" => done.collect(),
            _ => match self.open.get_mut(&thread) {
                Some(later) => {
                    later.extend(done);
                    Vec::new()
                }
                None => done.collect(),
            },
        }
    }

    /// What was still open at the end.
    #[must_use]
    pub fn rest(self) -> Vec<Occurrence> {
        let mut rest: Vec<Occurrence> = self.open.into_values().flatten().collect();
        rest.sort_by_key(|done| done.seq);
        rest
    }
}

/// The place as a breakpoint would have it.
#[must_use]
pub fn as_asked(event: &Event) -> Option<Arc<str>> {
    let name = event.data.get("name").and_then(Json::as_str);
    match event.kind.as_str() {
        "tool.call" => Some(format!("tool:{}", name?).into()),
        "tool.end" => Some(format!("after:{}", name?).into()),
        _ => None,
    }
}

/// The parts of a value, each with the way to it. Ids of calls are the model's own, and different in every run.
fn parts(name: &str, value: &Json, depth: usize, into: &mut Vec<(Arc<str>, String)>) {
    if into.len() >= PARTS {
        return;
    }
    match value {
        Json::Object(map) if depth < DEPTH => {
            for (key, value) in map.iter().filter(|(key, _)| *key != "id") {
                parts(&format!("{name}.{key}"), value, depth + 1, into);
            }
        }
        Json::Array(items) if depth < DEPTH => {
            for (at, value) in items.iter().enumerate() {
                parts(&format!("{name}[{at}]"), value, depth + 1, into);
            }
        }
        Json::String(text) => into.push((name.into(), text.clone())),
        other => into.push((name.into(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Two calls at once, of an agent that has no ids for them.
    #[test]
    fn a_call_without_an_id_is_known_by_what_it_had() {
        let event = |seq: u64, kind: &str, data: Json| Event {
            kind: kind.into(),
            seq,
            thread: Some(1),
            data,
            v: 1,
            ts: seq,
            session: String::new(),
        };
        let call = |seq, command: &str| event(seq, "tool.call", json!({ "name": "bash", "input": command }));
        let edit = |seq, before: &str, value: &str| {
            event(seq, "edited", json!({ "target": "tool_input", "name": "bash", "before": before, "value": value }))
        };
        let mut edits = Edits::default();
        let told = [call(1, "one"), call(2, "two"), edit(3, "one", "three"), edit(4, "one", "four")];
        told.iter().for_each(|event| edits.note(event));
        assert_eq!(edits.edited, HashMap::from([(1, json!("four"))]));
    }

    #[test]
    fn a_tool_comes_after_the_answer_that_calls_it_whichever_was_told_first() {
        let event = |(seq, kind, thread): (u64, &str, i64)| Event {
            kind: kind.into(),
            seq,
            thread: Some(thread),
            data: json!({ "name": "bash", "text": "x" }),
            v: 1,
            ts: seq,
            session: String::new(),
        };
        let told = |events: &[(u64, &str, i64)]| {
            let mut order = InOrder::default();
            let mut told: Vec<u64> =
                events.iter().flat_map(|one| order.next(&event(*one))).map(|done| done.seq).collect();
            told.extend(order.rest().iter().map(|done| done.seq));
            told
        };
        let early = [(1, "model.request", 1), (2, "tool.call", 1), (3, "tool.call", 2), (4, "model.response", 1)];
        assert_eq!(told(&early), [3, 4, 2]);
        assert_eq!(told(&[(1, "model.request", 1), (2, "model.response", 1), (3, "tool.call", 1)]), [2, 3]);
        // An answer that never came holds back nothing for ever.
        assert_eq!(
            told(&[(1, "model.request", 1), (2, "tool.call", 1), (3, "model.request", 1), (4, "tool.end", 1)]),
            [2, 4]
        );
    }
}
