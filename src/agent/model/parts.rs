//! A request to a model in its parts: each block of the system's instructions, each tool, each message.
//!
//! They are what the record keeps, once each; what tells a request put again from a new one; and what two runs are compared
//! by. Marks for the vendor's cache are left out: clients move them from call to call.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use super::dialect::Dialect;

pub type Hash = [u8; 32];

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    System,
    Tool,
    Message,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Message, Self::System, Self::Tool];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Tool => "tool",
            Self::Message => "message",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A part, and the hash of its bytes.
#[derive(Debug, Clone)]
pub struct Part {
    pub kind: Kind,
    pub hash: Hash,
    value: Arc<Json>,
}

impl Part {
    fn new(kind: Kind, value: &Json) -> Self {
        let hash = Sha256::digest(written(value)).into();
        Self { kind, hash, value: Arc::new(value.clone()) }
    }

    /// As it is hashed and kept.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        written(&self.value)
    }
}

/// A block of the system's instructions that is a header in truth, with a new sum in each request.
const HEADER: &str = "x-anthropic-billing-header";
/// The longest parameter that an event tells in full.
const LONG: usize = 512;

/// The parts of a request, in the order: system, tools, messages. A client sends its whole history each time: what was at
/// its place in the request `before` too is not written and hashed again.
#[must_use]
pub fn of(dialect: Dialect, body: &Json, before: &[Part]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut each = |kind: Kind, value: &Json| {
        let items = match value {
            Json::Null => &[],
            Json::Array(items) => &items[..],
            one => std::slice::from_ref(one),
        };
        let mut known = before.iter().filter(|part| part.kind == kind);
        parts.extend(items.iter().filter(|item| !is_header(item)).map(|item| match known.next() {
            Some(part) if is_same(&part.value, item) => part.clone(),
            _ => Part::new(kind, item),
        }));
    };
    if let Some(system) = dialect.system() {
        each(Kind::System, &body[system]);
    }
    each(Kind::Tool, &body["tools"]);
    each(Kind::Message, &body[dialect.history()]);
    parts
}

fn is_header(block: &Json) -> bool {
    block["text"].as_str().is_some_and(|text| text.starts_with(HEADER))
}

/// One hash of all that a model is to see. How it is to answer is no part of it: a client that asks again may ask for less,
/// with or without a stream.
#[must_use]
pub fn hash(parts: &[Part], model: Option<&str>) -> Hash {
    let mut whole = Sha256::new();
    whole.update(model.unwrap_or_default());
    for part in parts {
        whole.update(part.kind.name());
        whole.update(part.hash);
    }
    whole.finalize().into()
}

/// The members of a request that are no parts, long ones cut.
#[must_use]
pub fn params(dialect: Dialect, body: &Json) -> Map<String, Json> {
    let parts = [dialect.history(), "tools", dialect.system().unwrap_or_default()];
    // Who asks is nobody's business but the vendor's.
    let left_out = ["metadata", "user", "safety_identifier", "client_metadata"];
    let members = body.as_object().into_iter().flatten();
    let members = members.filter(|(name, _)| !parts.contains(&name.as_str()) && !left_out.contains(&name.as_str()));
    let short = |value: &Json| {
        let text = value.to_string();
        if text.len() <= LONG { value.clone() } else { Json::String(format!("{} bytes", text.len())) }
    };
    members.map(|(name, value)| (name.clone(), short(value))).collect()
}

/// The members of an object, without marks for caches.
fn members(object: &Map<String, Json>) -> impl Iterator<Item = (&String, &Json)> {
    object.iter().filter(|(name, _)| *name != "cache_control")
}

/// Whether both are written the same.
fn is_same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Object(one), Json::Object(other)) => {
            let (mut one, mut other) = (members(one), members(other));
            loop {
                match (one.next(), other.next()) {
                    (None, None) => return true,
                    (Some(a), Some(b)) if a.0 == b.0 && is_same(a.1, b.1) => {}
                    _ => return false,
                }
            }
        }
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        _ => one == other,
    }
}

fn written(value: &Json) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(256);
    write(value, &mut bytes);
    bytes
}

/// Writes a value without marks for caches.
fn write(value: &Json, out: &mut Vec<u8>) {
    match value {
        Json::Object(object) => {
            out.push(b'{');
            let mut first = true;
            for (name, member) in members(object) {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                text(name, out);
                out.push(b':');
                write(member, out);
            }
            out.push(b'}');
        }
        Json::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Json::String(said) => text(said, out),
        plain => out.extend_from_slice(plain.to_string().as_bytes()),
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    // Writing to memory does not fail.
    let _ = serde_json::to_writer(out, text);
}

#[must_use]
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hashed(body: &Json) -> Hash {
        hash(&of(Dialect::Messages, body, &[]), body["model"].as_str())
    }

    #[test]
    fn the_same_question_has_the_same_hash_however_it_is_to_be_answered() {
        let one = json!({"model": "m", "stream": true, "max_tokens": 9, "metadata": {"user_id": "a"},
            "system": [{"type": "text", "text": "x-anthropic-billing-header: cch=1"}, {"type": "text", "text": "Be good."}],
            "messages": [{"role": "user", "content": [{"type": "text", "text": "hi \"you\"", "cache_control": {"type": "ephemeral"}}]}]});
        let mut again = one.clone();
        again["stream"] = json!(false);
        again["thinking"] = json!({"type": "adaptive"});
        again["metadata"]["user_id"] = json!("b");
        again["system"][0]["text"] = json!("x-anthropic-billing-header: cch=2");
        again["messages"][0]["content"][0].as_object_mut().unwrap().remove("cache_control");
        assert_eq!(hashed(&one), hashed(&again));
        again["messages"][0]["content"][0]["text"] = json!("hi");
        assert_ne!(hashed(&one), hashed(&again));
        let mut other = one.clone();
        other["model"] = json!("n");
        assert_ne!(hashed(&one), hashed(&other));
    }

    #[test]
    fn a_part_is_the_json_it_was() {
        let message = json!({"role": "user", "content": [{"a": [1, 2.5, null, true, "ü\n\"\\"], "b": {}}, []]});
        let parts = of(Dialect::Chat, &json!({"messages": [message]}), &[]);
        assert_eq!(serde_json::from_slice::<Json>(&parts[0].bytes()).unwrap(), message);
    }

    #[test]
    fn what_was_known_before_makes_no_difference() {
        let request = |system: &str, tools: Json, messages: &str| {
            let messages: Json = serde_json::from_str(messages).unwrap();
            json!({"system": [{"text": "x-anthropic-billing-header: 1"}, {"text": system}], "tools": tools, "messages": messages})
        };
        let requests = [
            request("s", json!([{"name": "a"}, {"name": "b"}]), r#"[{"role": "user", "content": "1"}]"#),
            // Longer; a mark has moved.
            request(
                "s",
                json!([{"name": "a"}, {"name": "b"}]),
                r#"[{"role": "user", "content": "1", "cache_control": {}}, {"n": 1}]"#,
            ),
            // Another order is another text, and so are another number, fewer members, and none.
            request("s", json!([{"name": "b"}, {"name": "a"}]), r#"[{"content": "1", "role": "user"}, {"n": 1.0}]"#),
            request("t", json!([{"name": "b"}]), r#"[{"content": "1"}, {"n": 1.0, "m": []}, {"n": [1]}, [1, 2], []]"#),
            request("t", json!(null), "[]"),
            json!({"system": "t", "messages": [[1], [1, 2]]}),
        ];
        let plain = |parts: Vec<Part>| -> Vec<(Kind, Hash, Vec<u8>)> {
            parts.iter().map(|part| (part.kind, part.hash, part.bytes())).collect()
        };
        for one in &requests {
            for before in &requests {
                let known = of(Dialect::Messages, before, &[]);
                let (with, without) = (of(Dialect::Messages, one, &known), of(Dialect::Messages, one, &[]));
                assert_eq!(plain(with), plain(without), "{one} after {before}");
            }
        }
    }
}
