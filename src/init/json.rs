//! Our entry in a JSON file of somebody else, put in and taken out as text.
//!
//! Nothing is written anew: comments, indentation and line ends stay as they are. No note is kept of what was there
//! before, so the inserted text itself tells it, by its blanks:
//!
//! | before | after |
//! |---|---|
//! | no file | the whole file on five lines, with a line end |
//! | a file of blanks | `{ "mcpServers": { "bugeye": … }}` and then the blanks |
//! | no `mcpServers`, on lines | `"mcpServers": {`, ours on its own line, `}` on its own line |
//! | no `mcpServers`, in one line | `"mcpServers": { "bugeye": … }`, a blank only after the brace |
//! | `{}` | `{"bugeye": …}` |
//! | `{ }`, `{⏎}`, only comments | `{ "bugeye": …` and then what was there |
//! | a first member | ours before it, then a comma and the same blanks again |
//!
//! No two of them give the same text, so taking out what is found in one of these forms gives back every byte. What an
//! agent has written in its own way meanwhile is taken out as well, but leaves the object that it was in.

use std::ops::Range;

use serde_json::{Value, json};

use super::{Edit, NAME};
use crate::launch_config::jsonc;

/// What JSON takes for blanks.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// How an agent wants the entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `{ "command": "bugeye", "args": ["mcp"] }`
    Plain,
    /// The same with `"type": "stdio"`.
    Stdio,
    /// The same with the tools that are allowed: all.
    Tools,
    /// `{ "type": "local", "command": ["bugeye", "mcp"], "enabled": true }`
    Local,
}

impl Shape {
    /// The entry as it is written, in one line.
    #[must_use]
    pub fn text(self, command: &str, nested: bool) -> String {
        let command = Value::from(command);
        match self {
            Self::Plain => format!(r#"{{ "command": {command}, "args": ["mcp"] }}"#),
            Self::Stdio => format!(r#"{{ "type": "stdio", "command": {command}, "args": ["mcp"] }}"#),
            Self::Tools => format!(r#"{{ "type": "stdio", "command": {command}, "args": ["mcp"], "tools": ["*"] }}"#),
            // The newer form has no such switch.
            Self::Local if nested => format!(r#"{{ "type": "local", "command": [{command}, "mcp"] }}"#),
            Self::Local => format!(r#"{{ "type": "local", "command": [{command}, "mcp"], "enabled": true }}"#),
        }
    }
}

/// Where in the file the entry belongs, and how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    pub key: &'static str,
    pub shape: Shape,
}

/// The command of an entry that says no more than ours would.
#[must_use]
pub fn command_of(entry: &Value) -> Option<&str> {
    let entry = entry.as_object()?;
    let mut words = match entry.get("command")? {
        Value::String(command) => vec![command.as_str()],
        Value::Array(words) => words.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    if let Some(args) = entry.get("args") {
        words.extend(args.as_array()?.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?);
    }
    // What agents add by themselves when they write their file anew.
    let means_nothing = |(key, value): (&String, &Value)| match key.as_str() {
        "command" | "args" => true,
        "type" => value == "stdio" || value == "local",
        "enabled" => value == true,
        "tools" => *value == json!(["*"]),
        "env" | "environment" => *value == json!({}),
        _ => false,
    };
    let [command, "mcp"] = words[..] else { return None };
    let is_ours = std::path::Path::new(command).file_name().is_some_and(|name| name == NAME);
    (is_ours && entry.iter().all(means_nothing)).then_some(command)
}

/// The file's text with our entry in it.
pub fn add(old: Option<&str>, format: Format, command: &str, force: bool) -> Result<Edit, String> {
    let Some(text) = old else { return Ok(Edit::Text(whole(format, command))) };
    let (mark, rest) = text.strip_prefix('\u{feff}').map_or(("", text), |rest| ("\u{feff}", rest));
    if is_blank(rest) {
        let member = member(&format.shape.text(command, false));
        let new = format!("{mark}{{ {}: {{ {member}}}}}{rest}", Value::from(format.key));
        return checked(text, &json!({}), new, format, command);
    }
    let file = File::read(text, format)?;
    let value = format.shape.text(command, file.is_nested);
    if let Some((_, member)) = file.entry() {
        let found = jsonc::parse(&text[member.value.clone()])?;
        let new = || splice(text, member.value.clone(), &value);
        return match command_of(&found) {
            Some(there) if there == command => Ok(Edit::Same),
            Some(_) => verified(text, &file.data, new(), format, command),
            None if force => verified(text, &file.data, new(), format, command),
            None => Ok(Edit::Kept),
        };
    }
    let member = member(&value);
    let new = match &file.container {
        Some(container) => put_first(text, container, &member),
        None => {
            let container = match file.root.members.first().map(|first| blanks_before(text, first.start)) {
                Some(blanks) if blanks.contains('\n') => {
                    let end = last_line(blanks);
                    let indent = end.trim_start_matches(['\r', '\n']);
                    let step = if indent.is_empty() { "  " } else { indent };
                    format!("{{{end}{step}{member}{end}}}")
                }
                _ => format!("{{ {member}}}"),
            };
            put_first(text, &file.root, &format!("{}: {container}", Value::from(format.key)))
        }
    };
    checked(text, &file.data, new, format, command)
}

/// The file's text without our entry.
pub fn remove(text: &str, format: Format, force: bool) -> Result<Edit, String> {
    if is_blank(text) {
        return Ok(Edit::Same);
    }
    let file = File::read(text, format)?;
    let Some((container, entry)) = file.entry() else { return Ok(Edit::Same) };
    let found = jsonc::parse(&text[entry.value.clone()])?;
    let Some(command) = command_of(&found) else {
        return if force { file.without_entry(text, format, container, entry) } else { Ok(Edit::Kept) };
    };
    if text == whole(format, command) {
        return Ok(Edit::Gone);
    }
    let is_exact = text[entry.value.clone()] == *format.shape.text(command, file.is_nested);
    let holder = file.root.members.iter().find(|member| member.key == format.key);
    let Some(holder) = holder.filter(|_| is_exact && !file.is_nested && is_made_by_us(text, container)) else {
        return file.without_entry(text, format, container, entry);
    };
    let around = [&text[..file.root.open], &text[file.root.close + 1..]].concat();
    let is_one_line = !text[file.root.open..file.root.close].contains('\n');
    if is_one_line && is_made_by_us(text, &file.root) && is_blank(&around) {
        return Ok(Edit::Text(around));
    }
    let mut wanted = file.data.clone();
    wanted.as_object_mut().map(|root| root.shift_remove(format.key));
    take_out(text, &file.root, holder, &wanted)
}

/// Nothing but blanks, and perhaps a byte order mark.
fn is_blank(text: &str) -> bool {
    text.strip_prefix('\u{feff}').unwrap_or(text).trim_start_matches(BLANKS).is_empty()
}

/// A file with nothing but our entry.
fn whole(format: Format, command: &str) -> String {
    format!("{{\n  {}: {{\n    {}\n  }}\n}}\n", Value::from(format.key), member(&format.shape.text(command, false)))
}

fn member(value: &str) -> String {
    format!("{}: {value}", Value::from(NAME))
}

/// A change that must hold the same data and one entry more, and that can be taken back.
fn checked(old: &str, data: &Value, new: String, format: Format, command: &str) -> Result<Edit, String> {
    if remove(&new, format, false)? != Edit::Text(old.to_string()) {
        return Err("the entry could not be taken out again without a trace".into());
    }
    verified(old, data, new, format, command)
}

/// A change that must hold the same data with our entry.
fn verified(old: &str, data: &Value, new: String, format: Format, command: &str) -> Result<Edit, String> {
    let is_nested = !is_blank(old) && File::read(old, format).is_ok_and(|file| file.is_nested);
    let mut wanted = data.clone();
    let mut container = &mut wanted[format.key];
    if is_nested {
        container = &mut container[NESTED];
    }
    container[NAME] =
        serde_json::from_str(&format.shape.text(command, is_nested)).map_err(|error| error.to_string())?;
    match jsonc::parse(&new) {
        Ok(there) if there == wanted => Ok(Edit::Text(new)),
        Ok(_) => Err("the entry would change other things in it (is a key there twice?)".into()),
        Err(error) => Err(format!("the entry would break it: {error}")),
    }
}

/// The newer form of one agent's file has its servers one level deeper.
const NESTED: &str = "servers";

/// A file, read: its data and where things are in its text.
struct File {
    data: Value,
    root: Object,
    /// The object that our entry belongs into.
    container: Option<Object>,
    /// The container is one level deeper.
    is_nested: bool,
}

impl File {
    fn read(text: &str, format: Format) -> Result<Self, String> {
        let data = jsonc::parse(text)?;
        if !data.is_object() {
            return Err("it is no object".into());
        }
        let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let mut scanner = Scanner { text, at: start };
        scanner.skip_blanks();
        let root = scanner.object()?;
        let mut container = root.inner(text, format.key)?;
        let mut is_nested = false;
        let servers = &data[format.key][NESTED];
        if let Some(outer) = &container
            && format.shape == Shape::Local
            && servers.is_object()
            && ["type", "command", "enabled"].iter().all(|key| servers.get(key).is_none_or(Value::is_object))
        {
            container = outer.inner(text, NESTED)?;
            is_nested = true;
        }
        Ok(Self { data, root, container, is_nested })
    }

    fn entry(&self) -> Option<(&Object, &Member)> {
        let container = self.container.as_ref()?;
        Some((container, container.members.iter().find(|member| member.key == NAME)?))
    }

    fn without_entry(&self, text: &str, format: Format, from: &Object, entry: &Member) -> Result<Edit, String> {
        let mut wanted = self.data.clone();
        let container = &mut wanted[format.key];
        let container = if self.is_nested { &mut container[NESTED] } else { container };
        container.as_object_mut().map(|container| container.shift_remove(NAME));
        take_out(text, from, entry, &wanted)
    }
}

/// An object in the text: where its braces are, and its members.
struct Object {
    open: usize,
    close: usize,
    members: Vec<Member>,
}

struct Member {
    key: String,
    /// Where its key begins, with the quote.
    start: usize,
    value: Range<usize>,
    /// Where the comma after it is.
    comma: Option<usize>,
}

impl Object {
    /// The object that a member is.
    fn inner(&self, text: &str, key: &str) -> Result<Option<Self>, String> {
        let mut found = self.members.iter().filter(|member| member.key == key);
        let Some(member) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(format!("it has `{key}` twice"));
        }
        if !text[member.value.clone()].starts_with('{') {
            return Err(format!("its `{key}` is no object"));
        }
        Scanner { text, at: member.value.start }.object().map(Some)
    }
}

/// The blanks just before a place.
fn blanks_before(text: &str, at: usize) -> &str {
    let before = &text[..at];
    &before[before.trim_end_matches(BLANKS).len()..]
}

/// The last line end of some blanks and what follows it.
fn last_line(blanks: &str) -> &str {
    let at = blanks.rfind('\n').unwrap_or(0);
    if blanks[..at].ends_with('\r') { &blanks[at - 1..] } else { &blanks[at..] }
}

fn splice(text: &str, range: Range<usize>, with: &str) -> String {
    [&text[..range.start], with, &text[range.end..]].concat()
}

/// The text with a member as the first of an object.
fn put_first(text: &str, object: &Object, member: &str) -> String {
    match object.members.first() {
        Some(first) => {
            let blanks = blanks_before(text, first.start);
            splice(text, first.start..first.start, &format!("{member},{blanks}"))
        }
        None => {
            let lead = if object.open + 1 == object.close { "" } else { " " };
            splice(text, object.open + 1..object.open + 1, &format!("{lead}{member}"))
        }
    }
}

/// Whether an object, whose only member is ours, has the blanks that say that we made it.
fn is_made_by_us(text: &str, object: &Object) -> bool {
    let [only] = &object.members[..] else { return false };
    let (lead, tail) = (&text[object.open + 1..only.start], &text[only.value.end..object.close]);
    let on_lines = || {
        let deeper = lead.strip_prefix(tail).unwrap_or_default();
        tail.contains('\n') && tail == last_line(tail) && !deeper.is_empty() && deeper.trim_matches(BLANKS).is_empty()
    };
    (lead == " " && tail.is_empty()) || on_lines()
}

/// The text without a member; it must hold this data then.
fn take_out(text: &str, object: &Object, member: &Member, wanted: &Value) -> Result<Edit, String> {
    let blanks = blanks_before(text, member.start);
    let lead = member.start - blanks.len();
    let mut ways = Vec::new();
    if let Some(comma) = member.comma {
        if object.members.len() > 1 && text[comma + 1..].starts_with(blanks) {
            ways.push(splice(text, member.start..comma + 1 + blanks.len(), ""));
        }
        ways.push(splice(text, lead..comma + 1, ""));
        ways.push(splice(text, member.start..comma + 1, ""));
    } else {
        // The last of several: the comma before it goes, too.
        let before = object.members.iter().rev().find_map(|other| other.comma.filter(|comma| *comma < member.start));
        for start in [lead, member.start] {
            let without = splice(text, start..member.value.end, "");
            ways.push(before.map_or_else(|| without.clone(), |comma| splice(&without, comma..comma + 1, "")));
        }
    }
    // The end of a comment before it may be what keeps the rest out of that comment.
    let found = ways.into_iter().find(|way| jsonc::parse(way).is_ok_and(|data| data == *wanted));
    found.map(Edit::Text).ok_or_else(|| "the entry can't be taken out without a change to something else".into())
}

/// Walks over text that is known to be JSON with comments.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn lost<T>(&self) -> Result<T, String> {
        let line = self.text.bytes().take(self.at).filter(|byte| *byte == b'\n').count() + 1;
        Err(format!("its form is not understood at line {line}"))
    }

    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.peek() != Some(byte) {
            return self.lost();
        }
        self.at += 1;
        Ok(())
    }

    /// Passes over blanks and comments.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                self.at += comment.find("*/").map_or(rest.len(), |end| end + 4);
            } else if rest.starts_with(BLANKS) {
                self.at += 1;
            } else {
                return;
            }
        }
    }

    fn string(&mut self) -> Result<(), String> {
        self.expect(b'"')?;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                return Ok(());
            }
        }
        self.lost()
    }

    fn value(&mut self) -> Result<(), String> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => {
                let mut depth = 0_usize;
                while let Some(byte) = self.peek() {
                    match byte {
                        b'"' => self.string()?,
                        b'/' => {
                            let before = self.at;
                            self.skip_blanks();
                            if self.at == before {
                                return self.lost();
                            }
                        }
                        b'{' | b'[' => {
                            depth += 1;
                            self.at += 1;
                        }
                        b'}' | b']' => {
                            depth -= 1;
                            self.at += 1;
                            if depth == 0 {
                                return Ok(());
                            }
                        }
                        _ => self.at += 1,
                    }
                }
                self.lost()
            }
            _ => {
                let rest = &self.text[self.at..];
                let length = rest.find([',', '}', ']', ' ', '\t', '\r', '\n', '/']).unwrap_or(rest.len());
                self.at += length;
                if length == 0 { self.lost() } else { Ok(()) }
            }
        }
    }

    fn object(&mut self) -> Result<Object, String> {
        let open = self.at;
        self.expect(b'{')?;
        let mut members = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek() == Some(b'}') {
                return Ok(Object { open, close: self.at, members });
            }
            let start = self.at;
            self.string()?;
            let key = serde_json::from_str(&self.text[start..self.at]).map_err(|error| error.to_string())?;
            self.skip_blanks();
            self.expect(b':')?;
            self.skip_blanks();
            let from = self.at;
            self.value()?;
            let value = from..self.at;
            self.skip_blanks();
            let comma = (self.peek() == Some(b',')).then_some(self.at);
            if comma.is_some() {
                self.at += 1;
            } else if self.peek() != Some(b'}') {
                return self.lost();
            }
            members.push(Member { key, start, value, comma });
        }
    }
}
