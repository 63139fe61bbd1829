//! A request to a model in its parts: each block of the system's instructions, each tool, each message.
//!
//! They are what the record keeps, once each; what tells a request put again from a new one; and what two runs are compared
//! by. Marks for the vendor's cache are left out: clients move them from call to call.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use hyper::body::Bytes;
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use super::dialect::Dialect;
use super::skim::Skim;

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

/// A part, and the hash of its bytes as they are kept.
#[derive(Debug, Clone)]
pub struct Part {
    pub kind: Kind,
    pub hash: Hash,
    value: Arc<Json>,
    /// As the client wrote it.
    raw: Bytes,
}

impl Part {
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

/// Reads a request: its content and its parts, in the order: system, tools, messages. What was at its place in the request
/// `before` too is neither read nor hashed again. None: it is not the JSON of an object.
#[must_use]
pub fn read(dialect: Dialect, raw: &Bytes, before: &[Part]) -> Option<(Json, Vec<Part>)> {
    let mut lists = [
        (Kind::System, dialect.system(), Vec::new()),
        (Kind::Tool, Some("tools"), Vec::new()),
        (Kind::Message, Some(dialect.history()), Vec::new()),
    ];
    let mut skim = Skim::new(raw);
    let mut body = Map::new();
    let mut sign = skim.sign().filter(|sign| *sign == b'{')?;
    if skim.peek()? == b'}' {
        sign = skim.sign()?;
    }
    while sign != b'}' {
        let name: String = skim.value()?;
        skim.sign().filter(|sign| *sign == b':')?;
        let value = match lists.iter_mut().find(|(_, member, _)| *member == Some(name.as_str())) {
            Some((kind, _, parts)) => {
                // Where a member is there twice, the last one counts.
                parts.clear();
                list(&mut skim, *kind, before, parts)?
            }
            None => skim.value()?,
        };
        body.insert(name, value);
        sign = skim.sign().filter(|sign| [b',', b'}'].contains(sign))?;
    }
    let parts = lists.into_iter().flat_map(|(_, _, parts)| parts).collect();
    skim.peek().is_none().then_some((Json::Object(body), parts))
}

/// Reads a list of parts, or one that stands alone.
fn list(skim: &mut Skim<'_>, kind: Kind, before: &[Part], parts: &mut Vec<Part>) -> Option<Json> {
    let known: Vec<&Part> = before.iter().filter(|part| part.kind == kind).collect();
    if skim.peek()? != b'[' {
        let value = item(skim, kind, &known, parts)?;
        if value.is_null() {
            parts.clear();
        }
        return Some(value);
    }
    let mut items = Vec::new();
    let mut sign = skim.sign()?;
    if skim.peek()? == b']' {
        sign = skim.sign()?;
    }
    while sign != b']' {
        items.push(item(skim, kind, &known, parts)?);
        sign = skim.sign().filter(|sign| [b',', b']'].contains(sign))?;
    }
    Some(Json::Array(items))
}

fn item(skim: &mut Skim<'_>, kind: Kind, known: &[&Part], parts: &mut Vec<Part>) -> Option<Json> {
    let known = known.get(parts.len());
    if let Some((part, raw)) = known.and_then(|part| Some((*part, skim.passes(&part.raw)?))) {
        parts.push(Part { raw, ..part.clone() });
        return Some(Json::clone(&part.value));
    }
    let (value, raw) = skim.item()?;
    if !is_header(&value) {
        let same = known.filter(|part| is_same(&part.value, &value));
        let hash = same.map_or_else(|| hashed(&value), |part| part.hash);
        parts.push(Part { kind, hash, value: Arc::new(value.clone()), raw });
    }
    Some(value)
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
    // Writing to memory does not fail.
    let _ = write(value, &mut bytes);
    bytes
}

/// The hash of a value as it is written, which is never there as a whole.
fn hashed(value: &Json) -> Hash {
    let mut hash = Sha256::new();
    let mut out = BufWriter::new(&mut hash);
    // Nor does hashing.
    let _ = write(value, &mut out).and_then(|()| out.flush());
    drop(out);
    hash.finalize().into()
}

/// Writes a value without marks for caches.
fn write(value: &Json, out: &mut impl Write) -> io::Result<()> {
    match value {
        Json::Object(object) => {
            let mut sign: &[u8] = b"{";
            for (name, member) in members(object) {
                out.write_all(std::mem::replace(&mut sign, b","))?;
                serde_json::to_writer(&mut *out, name)?;
                out.write_all(b":")?;
                write(member, out)?;
            }
            out.write_all(if sign == b"{" { b"{}" } else { b"}" })
        }
        Json::Array(items) => {
            let mut sign: &[u8] = b"[";
            for item in items {
                out.write_all(std::mem::replace(&mut sign, b","))?;
                write(item, out)?;
            }
            out.write_all(if sign == b"[" { b"[]" } else { b"]" })
        }
        plain => Ok(serde_json::to_writer(out, plain)?),
    }
}

#[must_use]
pub fn hex(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The parts of a request, which is read as it is written.
    fn of(dialect: Dialect, body: &Json, before: &[Part]) -> Vec<Part> {
        let (read, parts) = read(dialect, &body.to_string().into(), before).unwrap();
        assert_eq!((&read, read.to_string()), (body, body.to_string()));
        parts
    }

    fn sum(body: &Json) -> Hash {
        hash(&of(Dialect::Messages, body, &[]), body["model"].as_str())
    }

    #[test]
    fn a_request_is_read_as_any_json() {
        let known =
            of(Dialect::Messages, &json!({"system": "s", "tools": [1, {"a": 1}], "messages": [{"n": 1}, "m"]}), &[]);
        for text in [
            "{}",
            " {\n} ",
            r#"{"messages": [], "tools": null, "system": "s"}"#,
            " { \"system\"\t:\r\n\"s\" , \"messages\" : [ {\"n\": 1} , \"m\", {\"n\":1} ] }\n",
            r#"{"tools":[12,{"a":1}],"messages":[{"n":1},"m"],"max":1.50,"stream":true}"#,
            r#"{"messages":[{"n":1},"mm"],"messages":[{"n":2}],"a":1,"a":2}"#,
            r#"{"messages":{"n":1},"system":[{"text":"x-anthropic-billing-header"},"s"],"\u0061\n":"\u00fc"}"#,
            "",
            "{",
            "[]",
            "1",
            "{}}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a" 1}"#,
            r#"{1:1}"#,
            r#"{"messages":[1,]}"#,
            r#"{"messages":[,1]}"#,
            r#"{"messages":[{"n":1}"#,
            r#"{"messages":[{"n":1}{"n":1}]}"#,
            r#"{"messages":[{"n":1}}"#,
            r#"{"messages":["m}"#,
            r#"{"tools":[1 2]}"#,
            r#"{"system":"s"x}"#,
            r#"{"a":1} 2"#,
        ] {
            let plain = serde_json::from_str::<Json>(text).ok().filter(Json::is_object);
            for before in [&[][..], &known] {
                let body = read(Dialect::Messages, &text.into(), before).map(|(body, _)| body);
                assert_eq!(body.as_ref().map(Json::to_string), plain.as_ref().map(Json::to_string), "{text}");
            }
        }
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
        assert_eq!(sum(&one), sum(&again));
        again["messages"][0]["content"][0]["text"] = json!("hi");
        assert_ne!(sum(&one), sum(&again));
        let mut other = one.clone();
        other["model"] = json!("n");
        assert_ne!(sum(&one), sum(&other));
    }

    #[test]
    fn a_part_is_the_json_it_was() {
        let message = json!({"role": "user", "content": [{"a": [1, 2.5, null, true, "ü\n\"\\"], "b": {}}, []]});
        let parts = of(Dialect::Chat, &json!({"messages": [message]}), &[]);
        assert_eq!(serde_json::from_slice::<Json>(&parts[0].bytes()).unwrap(), message);
        assert_eq!(parts[0].hash, Hash::from(Sha256::digest(message.to_string())));
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
