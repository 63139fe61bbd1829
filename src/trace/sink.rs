//! What hooks write: one JSON array a line, as compact as a line can be that every language can write.
//!
//! - `["t",ID,"name"]`: a thread, before its first hit.
//! - `["s",ID,[["function","file",LINE],…]]`: a way to a hit, innermost first, before the first hit that has it.
//! - `[POINT,MICROS,THREAD,WAY,["value",…]]`: a hit. A way of 0 is none. A value that can't be read is `["why"]`,
//!   one in the debugger's own words, with its type, `["value","type"]`, and one whose text says little without its parts
//!   `{"value":"…","type":"…","parts":[["name",value],…],"count":ALL,"more":false}`. Texts may be cut beyond what is shown.
//! - `["o",…]`: a note of the hook to itself.
//! - `["c",CALL,MICROS,THREAD,DEPTH,["function","file",LINE],[["name",value],…]]`: a function was entered, with its
//!   arguments as the values of hits are written. CALL is its number in the trace, DEPTH counts told calls around it.
//! - `["r",CALL,MICROS,value]`: it was left; the value is `null` where there is none, `["raised E: text"]` after an
//!   exception.
//!
//! Numbers of threads, ways and calls are the hook's own, and each is told once: a process that was forked from one with
//! a hook counts from somewhere else.

use std::collections::HashMap;

use serde_json::Value;

use crate::adapters::Quirks;
use crate::model::{Hit, HitFrame, Reading, View};
use crate::render::{cut, quoted};
use crate::session::{first_lines, told};

/// Reads what a hook wrote, as it grows.
#[derive(Debug)]
pub struct Reader {
    quirks: &'static Quirks,
    /// A line that is not complete yet.
    rest: Vec<u8>,
    threads: HashMap<i64, String>,
    ways: HashMap<u64, Vec<HitFrame>>,
    /// Lines that could not be read.
    pub unreadable: u64,
}

impl Reader {
    /// For hooks of the adapter that has these quirks.
    #[must_use]
    pub fn new(quirks: &'static Quirks) -> Self {
        Self { quirks, rest: Vec::new(), threads: HashMap::new(), ways: HashMap::new(), unreadable: 0 }
    }

    /// Takes more bytes; each hit in them is told.
    pub fn feed(&mut self, bytes: &[u8], mut tell: impl FnMut(Hit)) {
        let mut from = 0;
        for end in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at) {
            let line = &bytes[from..end];
            from = end + 1;
            if self.rest.is_empty() {
                self.line(line, &mut tell);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, &mut tell);
            }
        }
        self.rest.extend_from_slice(&bytes[from..]);
    }

    fn line(&mut self, line: &[u8], tell: &mut impl FnMut(Hit)) {
        let quirks = self.quirks;
        let record: Option<Vec<Value>> = serde_json::from_slice(line).ok();
        match record.as_deref() {
            Some([Value::String(kind), id, Value::String(name)]) if kind == "t" => {
                self.threads.insert(id.as_i64().unwrap_or_default(), name.clone());
            }
            Some([Value::String(kind), id, Value::Array(frames)]) if kind == "s" => {
                self.ways.insert(
                    id.as_u64().unwrap_or_default(),
                    frames.iter().filter_map(|record| frame(record, quirks)).collect(),
                );
            }
            Some([point, micros, thread, way, Value::Array(values)]) => {
                let thread = thread.as_i64().unwrap_or_default();
                tell(Hit {
                    point: point.as_u64().and_then(|point| u32::try_from(point).ok()).unwrap_or_default(),
                    thread,
                    thread_name: self.threads.get(&thread).cloned(),
                    micros: micros.as_u64().unwrap_or_default(),
                    values: values.iter().map(|record| reading(record, quirks)).collect(),
                    frames: way.as_u64().and_then(|way| self.ways.get(&way)).cloned().unwrap_or_default(),
                });
            }
            Some([Value::String(kind), ..]) if kind == "o" => {}
            _ => self.unreadable += 1,
        }
    }
}

/// None for a frame of the language's runtime.
fn frame(record: &Value, quirks: &Quirks) -> Option<HitFrame> {
    let text = |index: usize| record.get(index).and_then(Value::as_str).filter(|text| !text.is_empty());
    let (function, file) = (text(0).unwrap_or_default(), text(1));
    (!(quirks.is_runtime)(function, file)).then(|| HitFrame {
        function: (quirks.function_name)(function),
        file: file.map(Into::into),
        line: record.get(2).and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok()),
    })
}

fn reading(record: &Value, quirks: &Quirks) -> Reading {
    match record {
        Value::String(text) => Reading { text: shown(text), why: None },
        Value::Array(parts) => match parts.as_slice() {
            [Value::String(text), Value::String(kind)] => {
                Reading { text: shown(&(quirks.tidy)(text, Some(kind))), why: None }
            }
            parts => {
                let why = parts.first().and_then(Value::as_str).unwrap_or_default();
                Reading::unavailable((quirks.error_text)(&first_lines(why)))
            }
        },
        Value::Object(_) => Reading { text: told(record).flat(), why: None },
        other => Reading { text: other.to_string(), why: None },
    }
}

/// A text as `print` has it: harmless, and no longer than a value may be.
fn shown(text: &str) -> String {
    let text = quoted(text);
    match cut(&text, View::default().chars as usize) {
        (_, 0) => text,
        (head, _) => format!("{head}…"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_read_however_the_bytes_are_cut() {
        let text = concat!(
            "[\"t\",7,\"main\"]\n[\"s\",1,[[\"work\",\"/p/a.c\",6],[\"main\",\"/p/a.c\",14]]]\n",
            "[1,250,7,1,[\"0\",[\"no such name\"]]]\nnot a record\n[2,300,8,0,[]]\n"
        );
        for size in [1, 3, 1000] {
            let mut reader = Reader::new(&Quirks::PLAIN);
            let mut hits = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                reader.feed(piece, |hit| hits.push(hit));
            }
            assert_eq!(hits.len(), 2);
            assert_eq!(hits[0].thread_name.as_deref(), Some("main"));
            assert_eq!(hits[0].values, [Reading { text: "0".into(), why: None }, Reading::unavailable("no such name")]);
            assert_eq!(hits[0].frames[1].function, "main");
            assert_eq!((hits[1].point, hits[1].micros, hits[1].frames.len()), (2, 300, 0));
            assert_eq!(reader.unreadable, 1);
        }
    }
}
