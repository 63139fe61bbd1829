//! What an agent did, as occurrences: a tool it called, what came of it, what its model said.

use std::sync::Arc;

use serde_json::Value as Json;

use super::occurrences::Occurrence;
use crate::model::{Event, HitFrame};

/// The most parts of a value that are told apart, and how deep.
const PARTS: usize = 50;
const DEPTH: usize = 4;

/// An event of an agent's record as an occurrence; None where it is none of what it did, or beside its loop.
#[must_use]
pub fn doing(event: &Event) -> Option<Occurrence> {
    let data = &event.data;
    if data.get("aside").and_then(Json::as_bool) == Some(true) {
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
        if let Some(value) = data.get(*field).filter(|value| !value.is_null()) {
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
