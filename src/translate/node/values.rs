//! Values as text, in the words of the language, and their parts.
//!
//! The inspector gives a glimpse of a value: a few of its parts, one level deep. Where that leaves something out that
//! fits, the parts are asked for, all at once. Nothing of the program is run: getters are named, not called.

use std::cell::Cell;

use serde_json::{Value, json};

use super::inspector::Wire;

/// Parts of one value that its text names.
const MOST_PARTS: usize = 50;
/// A text is not made longer than this by further parts.
const LONG: usize = 4000;

/// One variable, property or item.
#[derive(Debug, Clone)]
pub struct Part {
    pub name: String,
    /// What the inspector calls a remote object.
    pub value: Value,
}

/// The words of a value's type.
pub fn kind(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    match (text("type"), text("subtype"), text("className")) {
        (_, Some("null"), _) => "null".into(),
        (Some("object" | "function"), _, Some(class)) if !class.is_empty() => class.into(),
        (Some(kind), ..) => kind.into(),
        _ => String::new(),
    }
}

/// How many items a list has.
pub fn length(object: &Value) -> Option<u64> {
    let subtype = object.get("subtype")?.as_str()?;
    if !matches!(subtype, "array" | "typedarray") {
        return None;
    }
    let (_, count) = object.get("description")?.as_str()?.rsplit_once('(')?;
    count.strip_suffix(')')?.parse().ok()
}

/// The text of a value, from what the inspector said of it.
pub fn glimpse(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let plain = object.get("unserializableValue").and_then(Value::as_str);
    match text("type") {
        "undefined" => "undefined".into(),
        "string" => quoted(text("value")),
        // As the language writes it: `1e+21`.
        "number" | "bigint" => plain.unwrap_or_else(|| text("description")).into(),
        "boolean" => object.get("value").map(ToString::to_string).unwrap_or_default(),
        "function" => function(text("description")),
        "object" if text("subtype") == "null" => "null".into(),
        "object" => {
            let empty = Value::Null;
            let preview = object.get("preview").unwrap_or(&empty);
            let list = |name: &str| preview.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let parts = list("properties").iter().map(|part| {
                let name = part.get("name").and_then(Value::as_str).unwrap_or_default();
                (name.to_string(), preview_text(part))
            });
            let entries = list("entries").iter().map(|entry| {
                let value = entry.get("value").map(preview_text).unwrap_or_default();
                match entry.get("key") {
                    Some(key) => format!("{} => {value}", preview_text(key)),
                    None => value,
                }
            });
            let more = preview.get("overflow").and_then(Value::as_bool).unwrap_or_default();
            compose(object, parts.collect(), entries.collect(), more)
        }
        _ => text("description").into(),
    }
}

/// The text of a value with what the inspector's glimpse leaves out, for as many requests as there are left.
pub async fn describe(wire: &Wire, object: &Value, requests: &Cell<u32>) -> String {
    let glimpsed = glimpse(object);
    let Some(id) = object.get("objectId").and_then(Value::as_str) else { return glimpsed };
    if requests.get() == 0 || !leaves_out(object) {
        return glimpsed;
    }
    requests.set(requests.get() - 1);
    let Ok(parts) = parts(wire, id).await else { return glimpsed };
    let named: Vec<&Part> = parts.iter().filter(|part| !part.name.starts_with("[[")).collect();
    let texts = named.iter().take(MOST_PARTS).map(|part| (part.name.clone(), glimpse(&part.value))).collect();
    let text = compose(object, texts, Vec::new(), named.len() > MOST_PARTS);
    if text.len() > LONG { glimpsed } else { text }
}

/// Whether a glimpse of this value says less than its parts would.
fn leaves_out(object: &Value) -> bool {
    let Some(preview) = object.get("preview") else { return false };
    let special = object.get("subtype").and_then(Value::as_str).is_some_and(|subtype| subtype != "array");
    if special || length(object).is_some_and(|length| length > 100) {
        return false;
    }
    let more = preview.get("overflow").and_then(Value::as_bool).unwrap_or_default();
    let nested = |part: &Value| {
        part.get("type").and_then(Value::as_str) == Some("object")
            && part.get("subtype").and_then(Value::as_str) != Some("null")
    };
    more || preview.get("properties").and_then(Value::as_array).is_some_and(|parts| parts.iter().any(nested))
}

/// Puts a value's parts together as the language would write them.
fn compose(object: &Value, parts: Vec<(String, String)>, entries: Vec<String>, more: bool) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (class, description) = (text("className"), text("description"));
    let closed = |open: &str, mut items: Vec<String>, close: &str| {
        if more {
            items.push("…".into());
        }
        format!("{open}{}{close}", items.join(", "))
    };
    let pairs = |parts: Vec<(String, String)>| -> Vec<String> {
        parts.into_iter().map(|(name, value)| format!("{}: {value}", key(&name))).collect()
    };
    match text("subtype") {
        "error" => description.lines().next().unwrap_or(class).into(),
        "date" | "regexp" | "weakmap" | "weakset" | "generator" | "iterator" | "arraybuffer" | "dataview" => {
            description.into()
        }
        "promise" => {
            let of =
                |name: &str| parts.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim_matches('\''));
            match (of("[[PromiseState]]"), of("[[PromiseResult]]")) {
                (Some("pending") | None, _) => "Promise {<pending>}".into(),
                (Some("rejected"), Some(why)) => format!("Promise {{<rejected> {why}}}"),
                (_, value) => format!("Promise {{{}}}", value.unwrap_or_default()),
            }
        }
        kind @ ("array" | "typedarray") => {
            let items = parts.into_iter().map(|(name, value)| match name.parse::<u64>() {
                Ok(_) => value,
                Err(_) => format!("{}: {value}", key(&name)),
            });
            let head = if kind == "array" && class == "Array" { String::new() } else { format!("{description} ") };
            format!("{head}{}", closed("[", items.collect(), "]"))
        }
        "map" | "set" => format!("{description} {}", closed("{", entries, "}")),
        "proxy" => format!("{description} {}", closed("{", pairs(parts), "}")),
        _ => {
            let head = if class == "Object" { String::new() } else { format!("{class} ") };
            format!("{head}{}", closed("{", pairs(parts), "}"))
        }
    }
}

/// A part of a glimpse.
fn preview_text(part: &Value) -> String {
    let text = |name: &str| part.get(name).and_then(Value::as_str).unwrap_or_default();
    // An entry of a map has a description where a property has a value.
    let value = if part.get("value").is_some() { text("value") } else { text("description") };
    match (text("type"), text("subtype")) {
        ("string", _) => quoted(value),
        ("function", _) => "[Function]".into(),
        ("accessor", _) => "[getter]".into(),
        (_, "null") => "null".into(),
        ("undefined", _) => "undefined".into(),
        ("object", _) if value == "Object" => "{…}".into(),
        ("object", "array") if value.starts_with("Array(") => {
            if value == "Array(0)" {
                "[]".into()
            } else {
                "[…]".into()
            }
        }
        _ => value.into(),
    }
}

fn function(description: &str) -> String {
    let head = description.split(['{', '\n']).next().unwrap_or_default().trim();
    let word = |prefix: &str| head.strip_prefix(prefix).map(|rest| rest.split(['(', ' ']).next().unwrap_or_default());
    if let Some(name) = word("class ") {
        return format!("[class {name}]");
    }
    let name = word("async function ").or_else(|| word("function* ")).or_else(|| word("function "));
    match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("[Function: {name}]"),
        None => match head.split_once("=>") {
            Some((parameters, _)) => format!("[Function: {} =>]", parameters.trim()),
            None => "[Function]".into(),
        },
    }
}

/// A name as an object's text has it.
fn key(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    if !name.is_empty() && name.chars().all(plain) || name.starts_with(['#', '[']) { name.into() } else { quoted(name) }
}

/// A string as the language writes it.
pub fn quoted(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// The parts of an object, its own ones; private fields and what the engine keeps for it come last.
pub async fn parts(wire: &Wire, object_id: &str) -> Result<Vec<Part>, String> {
    let params = json!({ "objectId": object_id, "ownProperties": true, "generatePreview": true });
    let answer = wire.call("Runtime.getProperties", params).await?;
    let list = |name: &str| answer.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut parts: Vec<Part> = list("result").iter().filter_map(property).collect();
    parts.extend(list("privateProperties").iter().filter_map(property));
    parts.extend(list("internalProperties").iter().filter_map(property));
    Ok(parts)
}

fn property(property: &Value) -> Option<Part> {
    let name = property.get("name")?.as_str()?.to_string();
    if name == "[[Prototype]]" || name == "__proto__" {
        return None;
    }
    let listed = property.get("enumerable").and_then(Value::as_bool).unwrap_or(true);
    // An error's own words are not listed by the language, and are what matters.
    if !listed && !matches!(name.as_str(), "message" | "cause" | "errors") {
        return None;
    }
    let getter = json!({ "type": "function", "description": "get" });
    let value = match property.get("value") {
        Some(value) => value.clone(),
        None if property.get("get").is_some() => json!({ "type": "symbol", "description": "[getter]" }),
        None => getter,
    };
    Some(Part { name, value })
}

/// Items of a list, from one on, without asking for all of them.
pub async fn items(wire: &Wire, object_id: &str, start: u64, count: u64) -> Result<Vec<Part>, String> {
    let function = "function(start, count) { const part = {}; \
                    for (let i = start; i < Math.min(this.length, start + count); i++) part[i] = this[i]; return part; }";
    let params = json!({
        "objectId": object_id,
        "functionDeclaration": function,
        "arguments": [{ "value": start }, { "value": count }],
        "objectGroup": super::GROUP,
    });
    let answer = wire.call("Runtime.callFunctionOn", params).await?;
    match answer.pointer("/result/objectId").and_then(Value::as_str) {
        Some(id) => parts(wire, id).await,
        None => Err("the items can't be read".into()),
    }
}

/// The entries of a map or a set: each with its key as its name.
pub async fn entries(wire: &Wire, parts: &[Part], start: usize, count: usize) -> Result<Vec<Part>, String> {
    let id = |part: &Part| part.value.get("objectId").and_then(Value::as_str).map(ToString::to_string);
    let Some(all) = parts.iter().find(|part| part.name == "[[Entries]]").and_then(id) else { return Ok(Vec::new()) };
    let entries = self::parts(wire, &all).await?;
    let asked: Vec<_> = entries
        .iter()
        .filter(|entry| entry.name.parse::<u64>().is_ok())
        .skip(start)
        .take(count)
        .filter_map(|entry| Some((entry.name.clone(), id(entry)?)))
        .map(|(name, id)| async move { (name, self::parts(wire, &id).await) })
        .collect();
    let mut found = Vec::new();
    for entry in asked {
        let (name, parts) = entry.await;
        let parts = parts?;
        let part = |name: &str| parts.iter().find(|part| part.name == name).map(|part| part.value.clone());
        let name = part("key").map_or(name, |key| glimpse(&key));
        found.push(Part { name, value: part("value").unwrap_or_default() });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_the_language_writes_them() {
        let property = |name: &str, kind: &str, value: &str| json!({ "name": name, "type": kind, "value": value });
        let preview = json!({ "overflow": true, "properties": [property("a b", "number", "1"), property("s", "string", "it's")] });
        let object = json!({ "type": "object", "className": "Point", "preview": preview });
        assert_eq!(glimpse(&object), r"Point {'a b': 1, s: 'it\'s', …}");
        assert_eq!(glimpse(&json!({ "type": "number", "unserializableValue": "-0" })), "-0");
        assert_eq!(glimpse(&json!({ "type": "object", "subtype": "null", "value": null })), "null");
        let list = json!({ "properties": [property("0", "number", "1"), property("1", "number", "2")] });
        let list = json!({ "type": "object", "subtype": "array", "className": "Array", "description": "Array(2)", "preview": list });
        assert_eq!((glimpse(&list).as_str(), length(&list), kind(&list).as_str()), ("[1, 2]", Some(2), "Array"));
        assert_eq!(function("async function go(a) { }"), "[Function: go]");
        assert_eq!(function("class A extends B {"), "[class A]");
        assert_eq!(function("(a, b) => a"), "[Function: (a, b) =>]");
    }
}
