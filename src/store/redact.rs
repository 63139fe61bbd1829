//! Keeps secrets out of the record: what looks like one is replaced before it is written.
//!
//! Two signs tell a secret: the name it goes by (`password`, `API_KEY`), and a shape that only keys and tokens have
//! (`ghp_…`, a private key). [`names`] knows the first, [`scan`] finds both in a text. Neither can know them all.

mod names;
mod scan;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};

use crate::model::Event;
use names::Secret;

/// What stands where a secret was.
pub const REDACTED: &str = "<redacted>";
/// How much of a line of output is remembered: a secret may come in two pieces.
const REMEMBERED: usize = 256;
/// Fields that tell what something is, and never what it holds.
const TELLING: [&str; 7] = ["name", "type", "kind", "expression", "stream", "id", "why"];
/// Fields that hold the value of what a `name` or an `expression` beside them names.
const HOLDING: [&str; 6] = ["text", "value", "set", "old", "new", "error"];

/// Redacts the events of one record, in their order.
#[derive(Debug, Default)]
pub struct Redactor {
    streams: HashMap<String, Stream>,
}

/// One stream of output, which may be cut anywhere.
#[derive(Debug, Default)]
struct Stream {
    /// What the last line began with.
    line: String,
    /// A private key has begun, and not ended.
    in_key: bool,
}

impl Redactor {
    /// Takes the secrets out of an event.
    pub fn event(&mut self, event: &mut Event) {
        if event.kind == "output"
            && let Some(stream) = event.data.get("stream").map(|stream| stream.as_str().unwrap_or_default().to_string())
            && let Some(Value::String(text)) = event.data.get_mut("text")
        {
            if let Some(clean) = self.streams.entry(stream).or_default().clean(text) {
                *text = clean;
            }
            return;
        }
        value(&mut event.data);
    }
}

impl Stream {
    /// The text without secrets; None where it has none.
    fn clean(&mut self, text: &str) -> Option<String> {
        let mut spans = Vec::new();
        let mut from = 0;
        if self.in_key {
            from = text.find("-----END").unwrap_or(text.len());
            self.in_key = from == text.len();
            spans.push(0..from);
        }
        let before = self.line.len();
        let joined = format!("{}{}", self.line, &text[from..]);
        for found in scan::secrets(&joined) {
            self.in_key |= found.open_key;
            if found.span.end > before {
                spans.push(found.span.start.max(before) - before + from..found.span.end - before + from);
            }
        }
        let line = joined.rfind('\n').map_or(joined.as_str(), |end| &joined[end + 1..]);
        let start = line.len().saturating_sub(REMEMBERED);
        let start = (start..=line.len()).find(|at| line.is_char_boundary(*at)).unwrap_or(line.len());
        self.line = line[start..].to_string();
        (!spans.is_empty()).then(|| without(text, &spans, false))
    }
}

/// Takes the secrets out of data of any shape.
pub fn value(data: &mut Value) {
    match data {
        Value::String(text) => {
            if let Cow::Owned(clean) = self::text(text) {
                *text = clean;
            }
        }
        Value::Array(items) if items.iter().all(Value::is_string) => words(items),
        Value::Array(items) => items.iter_mut().for_each(value),
        Value::Object(fields) => object(fields),
        _ => {}
    }
}

fn object(fields: &mut Map<String, Value>) {
    let owner = || ["name", "expression", "target"].iter().find_map(|key| fields.get(*key)?.as_str());
    let holds = HOLDING.iter().any(|key| fields.contains_key(*key));
    let secret = if holds { owner().and_then(names::of_expression) } else { None };
    for (key, field) in fields {
        match secret.filter(|_| !TELLING.contains(&key.as_str())).or_else(|| names::of(key)) {
            Some(secret) => hide(field, secret),
            None => value(field),
        }
    }
}

/// Hides all texts of a value that is secret as a whole.
fn hide(data: &mut Value, secret: Secret) {
    match data {
        Value::String(text) if !secret.is_harmless(text) => *text = REDACTED.into(),
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, secret)),
        Value::Object(fields) => {
            let fields = fields.iter_mut().filter(|(key, _)| !TELLING.contains(&key.as_str()));
            fields.for_each(|(_, field)| hide(field, secret));
        }
        _ => {}
    }
}

/// The words of a command line: what follows `--password` is one, and what `set password` puts there.
fn words(items: &mut [Value]) {
    let mut next: Option<Secret> = None;
    let mut before = String::new();
    let mut rest = None;
    for item in items {
        let Value::String(word) = item else { continue };
        let typed = word.clone();
        match next.take().or(rest) {
            Some(_) if typed == "=" => next = names::of_expression(&before),
            Some(secret) if !typed.starts_with('-') && !secret.is_harmless(&typed) => *word = REDACTED.into(),
            _ => {
                if let Cow::Owned(clean) = text(&typed) {
                    *word = clean;
                }
            }
        }
        if before == "set" {
            rest = names::of_expression(&typed);
        } else if typed.starts_with('-') {
            next = names::of(typed.trim_start_matches('-'));
        }
        before = typed;
    }
}

/// A text without the secrets in it.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    cleaned(text, scan::secrets(text), false)
}

/// A source file without the keys and tokens in it. Names alone are no sign there: code is full of them. Its lines keep
/// their numbers.
#[must_use]
pub fn source(text: &str) -> Cow<'_, str> {
    cleaned(text, scan::shapes(text), true)
}

fn cleaned(text: &str, found: Vec<scan::Found>, lines: bool) -> Cow<'_, str> {
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let spans: Vec<Range<usize>> = found.into_iter().map(|found| found.span).collect();
    Cow::Owned(without(text, &spans, lines))
}

/// Replaces spans, which are in order; with `lines`, as many lines remain.
fn without(text: &str, spans: &[Range<usize>], lines: bool) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut from = 0;
    for span in spans.iter().filter(|span| !span.is_empty()) {
        clean.push_str(&text[from..span.start]);
        clean.push_str(REDACTED);
        if lines {
            clean.extend(text[span.clone()].chars().filter(|found| *found == '\n'));
        }
        from = span.end;
    }
    clean.push_str(&text[from..]);
    clean
}

/// Whether what this expression holds is secret by its name.
#[must_use]
pub fn is_secret(expression: &str) -> bool {
    names::of_expression(expression).is_some()
}

/// The text of a value of that expression as the record may have it.
#[must_use]
pub fn held<'a>(expression: &str, text: &'a str) -> Cow<'a, str> {
    match names::of_expression(expression) {
        Some(secret) if !secret.is_harmless(text) => Cow::Borrowed(REDACTED),
        Some(_) => Cow::Borrowed(text),
        None => self::text(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, data: Value) -> Event {
        Event { v: 1, seq: 1, ts: 0, session: "s".into(), thread: None, kind: kind.into(), data }
    }

    fn clean(mut data: Value) -> Value {
        value(&mut data);
        data
    }

    #[test]
    fn variables_go_by_their_names() {
        let locals = json!({ "locals": [
            { "name": "password", "text": "'hunter2'", "type": "str", "change": { "from": "'old'" } },
            { "name": "user", "text": "'bob'" },
            { "name": "self", "text": "", "children": [{ "name": "api_key", "text": "'abcdef'" }, { "name": "n", "text": "1" }] },
            { "name": "token", "text": "42" },
            { "name": "secret", "text": "None" },
        ] });
        let kept = json!({ "locals": [
            { "name": "password", "text": REDACTED, "type": "str", "change": { "from": REDACTED } },
            { "name": "user", "text": "'bob'" },
            { "name": "self", "text": "", "children": [{ "name": "api_key", "text": REDACTED }, { "name": "n", "text": "1" }] },
            { "name": "token", "text": "42" },
            { "name": "secret", "text": "None" },
        ] });
        assert_eq!(clean(locals), kept);
        let eval = json!({ "expression": "cfg['db_password']", "value": { "text": "'x1'", "hidden": 2 } });
        let kept = json!({ "expression": "cfg['db_password']", "value": { "text": REDACTED, "hidden": 2 } });
        assert_eq!(clean(eval), kept);
        let set = json!({ "expression": "user.passwd", "set": "'x1'" });
        assert_eq!(clean(set), json!({ "expression": "user.passwd", "set": REDACTED }));
        let start = json!({ "name": "token", "words": ["./a"], "target": { "program": "/a" } });
        assert_eq!(clean(start.clone()), start);
    }

    #[test]
    fn words_of_a_command_line_go_by_what_stands_before() {
        let typed = json!(["run", "--", "./a", "--token", "abcdef", "--password=x", "-v", "DB_PASSWORD=y"]);
        let kept =
            json!(["run", "--", "./a", "--token", REDACTED, "--password=<redacted>", "-v", "DB_PASSWORD=<redacted>"]);
        assert_eq!(clean(typed), kept);
        assert_eq!(clean(json!(["set", "password", "abc"])), json!(["set", "password", REDACTED]));
        assert_eq!(clean(json!(["set", "password", "=", "abc"])), json!(["set", "password", "=", REDACTED]));
        assert_eq!(clean(json!(["print", "password"])), json!(["print", "password"]));
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_found() {
        let mut redactor = Redactor::default();
        let mut print = |text: &str| {
            let mut event = event("output", json!({ "stream": "stdout", "text": text }));
            redactor.event(&mut event);
            event.data["text"].as_str().unwrap().to_string()
        };
        assert_eq!(print("hello\nkey ghp_0123456"), "hello\nkey ghp_0123456");
        assert_eq!(print("789abcdefghijklmnopqrstuvwxyz\nbye"), "<redacted>\nbye");
        assert_eq!(print(" password=hun"), " password=<redacted>");
        assert_eq!(print("ter2 ok\n"), "<redacted> ok\n");
        assert_eq!(print("-----BEGIN RSA PRIVATE KEY-----\n"), "-----BEGIN RSA PRIVATE KEY-----<redacted>");
        assert_eq!(print("MIIEow\n"), "<redacted>");
        assert_eq!(
            print("abcd\n-----END RSA PRIVATE KEY-----\nplain"),
            "<redacted>-----END RSA PRIVATE KEY-----\nplain"
        );
        assert_eq!(print("plain\n"), "plain\n");
    }

    #[test]
    fn a_source_keeps_its_code_and_its_lines() {
        let code = "password = ask()\nKEY = 'ghp_0123456789abcdefghijklmnopqrstuvwxyz'\nPEM = '''-----BEGIN PRIVATE KEY-----\na\nb\n-----END PRIVATE KEY-----'''\n";
        let kept = source(code);
        assert!(kept.contains("password = ask()") && !kept.contains("ghp_"), "{kept}");
        assert_eq!(kept.lines().count(), code.lines().count());
        assert!(!kept.contains("\na\n"), "{kept}");
    }
}
