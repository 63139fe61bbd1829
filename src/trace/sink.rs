//! What hooks write: one JSON array a line, as compact as a line can be that every language can write.
//!
//! - `["t",ID,"name"]`: a thread, before its first hit.
//! - `["s",ID,[["function","file",LINE],…]]`: a way to a hit, innermost first, before the first hit that has it.
//! - `[POINT,MICROS,THREAD,WAY,["value",…]]`: a hit. A way of 0 is none. A value that can't be read is `["why"]`,
//!   one in the debugger's own words, with its type, `["value","type"]`, and with its parts, where the words say little
//!   without them, `["value","type",TOTAL,[["name",value],…]]`; a total that is not known is `null`.
//!   Texts may be cut beyond what is shown, and parts beyond one more.
//! - `["w",POINT,"why"]`: a condition that could not be evaluated, at a pass that is no hit.
//! - `["o",…]`: a note of the hook to itself.
//! - `["c",CALL,MICROS,THREAD,DEPTH,["function","file",LINE],[["name",value],…]]`: a function was entered, with its
//!   arguments as the values of hits are written. CALL is its number in the trace, DEPTH counts told calls around it.
//! - `["r",CALL,MICROS,value]`: it was left; the value is `null` where there is none, `["raised E: text"]` after an
//!   exception.
//!
//! Numbers of threads, ways and calls are the hook's own, and each is told once: a process that was forked from one with
//! a hook counts from somewhere else.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::adapters::Quirks;
use crate::model::{Crossing, Hit, HitFrame, Reading};
use crate::render::quoted;
use crate::session::{Told, first_lines};

/// Texts up to this length are shown whole.
const SHORT: usize = 200;
/// No hook writes a longer line; what is longer is passed over.
const LONGEST_LINE: usize = 16 * 1024 * 1024;

/// One thing that a hook has told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Hit(Hit),
    Crossing(Crossing),
    /// The condition of a point could not be evaluated.
    Failed {
        point: u32,
        why: String,
    },
}

/// Reads what a hook wrote, as it grows.
#[derive(Debug)]
pub struct Reader {
    quirks: &'static Quirks,
    /// A line that is not complete yet.
    rest: Vec<u8>,
    /// The line is too long, and is passed over to its end.
    skipping: bool,
    threads: HashMap<i64, String>,
    ways: HashMap<u64, Arc<[HitFrame]>>,
    /// Lines that could not be read.
    pub unreadable: u64,
}

impl Reader {
    /// For hooks of the adapter that has these quirks.
    #[must_use]
    pub fn new(quirks: &'static Quirks) -> Self {
        Self { quirks, rest: Vec::new(), skipping: false, threads: HashMap::new(), ways: HashMap::new(), unreadable: 0 }
    }

    /// The name of a thread, as far as it was told.
    #[must_use]
    pub fn thread(&self, number: i64) -> Option<&str> {
        self.threads.get(&number).map(String::as_str)
    }

    /// Takes more bytes; each record in them is told.
    pub fn feed(&mut self, bytes: &[u8], mut tell: impl FnMut(Record)) {
        let mut from = 0;
        for end in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at) {
            let line = &bytes[from..end];
            from = end + 1;
            if std::mem::take(&mut self.skipping) {
                self.unreadable += 1;
            } else if self.rest.is_empty() {
                self.line(line, &mut tell);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, &mut tell);
            }
        }
        if !self.skipping {
            self.rest.extend_from_slice(&bytes[from..]);
        }
        if self.rest.len() > LONGEST_LINE {
            self.rest = Vec::new();
            self.skipping = true;
        }
    }

    fn line(&mut self, line: &[u8], tell: &mut impl FnMut(Record)) {
        if let Some(hit) = self.plain_hit(line) {
            return tell(Record::Hit(hit));
        }
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
                tell(Record::Hit(Hit {
                    point: point.as_u64().and_then(|point| u32::try_from(point).ok()).unwrap_or_default(),
                    thread,
                    thread_name: self.threads.get(&thread).cloned(),
                    micros: micros.as_u64().unwrap_or_default(),
                    values: values.iter().map(|record| reading(record, quirks)).collect(),
                    frames: way.as_u64().and_then(|way| self.ways.get(&way)).cloned().unwrap_or_default(),
                }));
            }
            Some([Value::String(kind), call, micros, thread, depth, function, Value::Array(arguments)])
                if kind == "c" =>
            {
                let argument = |pair: &Value| {
                    let name = pair.get(0).and_then(Value::as_str)?;
                    Some((name.to_string(), reading(pair.get(1)?, quirks)))
                };
                tell(Record::Crossing(Crossing::Entered {
                    call: call.as_u64().unwrap_or_default(),
                    micros: micros.as_u64().unwrap_or_default(),
                    thread: thread.as_i64().unwrap_or_default(),
                    depth: depth.as_u64().and_then(|depth| u32::try_from(depth).ok()).unwrap_or_default(),
                    function: named(function, quirks),
                    arguments: arguments.iter().filter_map(argument).collect(),
                }));
            }
            Some([Value::String(kind), call, micros, value]) if kind == "r" => {
                tell(Record::Crossing(Crossing::Left {
                    call: call.as_u64().unwrap_or_default(),
                    micros: micros.as_u64().unwrap_or_default(),
                    value: (!value.is_null()).then(|| reading(value, quirks)),
                }));
            }
            Some([Value::String(kind), point, Value::String(why)]) if kind == "w" => {
                let point = point.as_u64().and_then(|point| u32::try_from(point).ok()).unwrap_or_default();
                tell(Record::Failed { point, why: (quirks.error_text)(&first_lines(why)) });
            }
            Some([Value::String(kind), ..]) if kind == "o" => {}
            // What was torn is ended by an empty line.
            None if line.is_empty() => {}
            _ => self.unreadable += 1,
        }
    }
}

impl Reader {
    /// Most lines are hits with plain values: read without a tree of values, since there may be millions.
    fn plain_hit(&self, line: &[u8]) -> Option<Hit> {
        let mut line = Plain(line);
        line.skip(b'[')?;
        let (point, micros, thread, way) = (line.number()?, line.number()?, line.number()?, line.number()?);
        line.skip(b'[')?;
        let mut values = Vec::with_capacity(2);
        while line.0.first() == Some(&b'"') {
            values.push(Reading { text: line.text()?.to_string(), why: None });
            if line.0.first() == Some(&b',') {
                line.skip(b',')?;
            }
        }
        let thread = i64::try_from(thread).ok()?;
        (line.0 == b"]]").then(|| Hit {
            point: u32::try_from(point).unwrap_or_default(),
            thread,
            thread_name: self.threads.get(&thread).cloned(),
            micros,
            values,
            frames: self.ways.get(&way).cloned().unwrap_or_default(),
        })
    }
}

/// The numbers and texts of a line that is as plain as most are.
struct Plain<'a>(&'a [u8]);

impl<'a> Plain<'a> {
    fn skip(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        (*first == byte).then_some(())
    }

    /// A whole number, and the comma after it.
    fn number(&mut self) -> Option<u64> {
        let end = self.0.iter().position(|byte| !byte.is_ascii_digit()).filter(|end| (1..19).contains(end))?;
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        self.skip(b',')?;
        Some(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
    }

    /// A short text without anything to escape or to hide.
    fn text(&mut self) -> Option<&'a str> {
        self.skip(b'"')?;
        let end = self.0.iter().position(|byte| *byte == b'"').filter(|end| *end <= SHORT)?;
        let (text, rest) = self.0.split_at(end);
        self.0 = rest;
        self.skip(b'"')?;
        let plain = text.iter().all(|byte| (0x20..0x7f).contains(byte) && *byte != b'\\');
        std::str::from_utf8(text).ok().filter(|_| plain)
    }
}

/// None for a frame of the language's runtime.
fn frame(record: &Value, quirks: &Quirks) -> Option<HitFrame> {
    let text = |index: usize| record.get(index).and_then(Value::as_str);
    (!(quirks.is_runtime)(text(0).unwrap_or_default(), text(1))).then(|| named(record, quirks))
}

fn named(record: &Value, quirks: &Quirks) -> HitFrame {
    let text = |index: usize| record.get(index).and_then(Value::as_str).filter(|text| !text.is_empty());
    HitFrame {
        function: quoted(&(quirks.function_name)(text(0).unwrap_or_default())),
        file: text(1).map(Into::into),
        line: record.get(2).and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok()),
    }
}

/// Writes hits that no hook has written, in the same form.
#[derive(Debug, Default)]
pub struct Writer {
    threads: HashMap<i64, Option<String>>,
    ways: HashMap<Arc<[HitFrame]>, usize>,
}

impl Writer {
    /// The lines of one hit.
    #[must_use]
    pub fn lines(&mut self, hit: &Hit) -> String {
        let mut out = String::new();
        let mut push = |line: Value| {
            out.push_str(&line.to_string());
            out.push('\n');
        };
        if self.threads.get(&hit.thread) != Some(&hit.thread_name) {
            self.threads.insert(hit.thread, hit.thread_name.clone());
            push(json!(["t", hit.thread, hit.thread_name.as_deref().unwrap_or_default()]));
        }
        let way = match self.ways.get(&hit.frames) {
            _ if hit.frames.is_empty() => 0,
            Some(way) => *way,
            None => {
                let way = self.ways.len() + 1;
                self.ways.insert(hit.frames.clone(), way);
                let frame = |frame: &HitFrame| json!([frame.function, frame.file, frame.line]);
                push(json!(["s", way, hit.frames.iter().map(frame).collect::<Vec<_>>()]));
                way
            }
        };
        let value = |reading: &Reading| reading.why.as_ref().map_or_else(|| json!(reading.text), |why| json!([why]));
        let values: Vec<Value> = hit.values.iter().map(value).collect();
        push(json!([hit.point, hit.micros, hit.thread, way, values]));
        out
    }
}

/// As `print` would show it.
fn reading(record: &Value, quirks: &Quirks) -> Reading {
    match record {
        Value::String(text) => Reading { text: shown(text), why: None },
        Value::Array(parts) if parts.len() < 2 => {
            let why = parts.first().and_then(Value::as_str).unwrap_or_default();
            Reading::unavailable((quirks.error_text)(&first_lines(why)))
        }
        Value::Array(_) => Reading { text: told(record).value(quirks).flat(), why: None },
        other => Reading { text: other.to_string(), why: None },
    }
}

/// A text that is short and harmless stays as it is.
fn shown(text: &str) -> String {
    if text.len() <= SHORT && text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text.to_string();
    }
    Told { text: text.into(), ..Told::default() }.value(&Quirks::PLAIN).flat()
}

fn told(record: &Value) -> Told {
    let Value::Array(fields) = record else {
        return Told { text: record.as_str().unwrap_or_default().into(), ..Told::default() };
    };
    let part = |part: &Value| Some((part.get(0)?.as_str()?.to_string(), told(part.get(1)?)));
    let text = |index: usize| fields.get(index).and_then(Value::as_str).map(ToString::to_string);
    Told {
        text: text(0).unwrap_or_default(),
        kind: text(1),
        total: fields.get(2).and_then(Value::as_u64),
        parts: fields.get(3).and_then(Value::as_array).map(|parts| parts.iter().filter_map(part).collect()),
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
                reader.feed(piece, |record| match record {
                    Record::Hit(hit) => hits.push(hit),
                    other => panic!("{other:?}"),
                });
            }
            assert_eq!(hits.len(), 2);
            assert_eq!(hits[0].thread_name.as_deref(), Some("main"));
            assert_eq!(hits[0].values, [Reading { text: "0".into(), why: None }, Reading::unavailable("no such name")]);
            assert_eq!(hits[0].frames[1].function, "main");
            assert_eq!((hits[1].point, hits[1].micros, hits[1].frames.len()), (2, 300, 0));
            assert_eq!(reader.unreadable, 1);
        }
    }

    #[test]
    fn a_line_without_end_is_not_kept_for_ever() {
        let mut reader = Reader::new(&Quirks::PLAIN);
        let mut hits = 0;
        for _ in 0..20 {
            reader.feed(&[b'x'; 1 << 20], |_| hits += 1);
            assert!(reader.rest.len() <= LONGEST_LINE);
        }
        reader.feed(b"y\n[2,300,8,0,[]]\n", |_| hits += 1);
        assert_eq!((hits, reader.unreadable), (1, 1));
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let frames: Arc<[HitFrame]> =
            Arc::from([HitFrame { function: "work".into(), file: Some("/p/a.c".into()), line: Some(6) }]);
        let hit = |micros, values: &[&str]| Hit {
            point: 1,
            thread: 7,
            thread_name: Some("main".into()),
            micros,
            values: values.iter().map(|text| Reading { text: (*text).into(), why: None }).collect(),
            frames: frames.clone(),
        };
        let unread = Hit { values: vec![Reading::unavailable("gone")], frames: Arc::default(), ..hit(9, &[]) };
        let hits = [hit(5, &["0", "\"a b\""]), hit(8, &["1", ""]), unread];
        let mut writer = Writer::default();
        let text: String = hits.iter().map(|hit| writer.lines(hit)).collect();
        assert_eq!(text.lines().count(), 5);
        let mut read = Vec::new();
        Reader::new(&Quirks::PLAIN).feed(text.as_bytes(), |record| read.push(record));
        assert_eq!(read, hits.map(Record::Hit));
    }

    #[test]
    fn calls_are_read() {
        let text = concat!(
            "[\"c\",1,10,7,0,[\"m.work\",\"/p/a.py\",2],[[\"n\",\"5\"],[\"gone\",[\"no value\"]]]]\n",
            "[\"r\",1,30,[\"raised E: no\"]]\n[\"r\",2,31,null]\n"
        );
        let mut read = Vec::new();
        Reader::new(&Quirks::PLAIN).feed(text.as_bytes(), |record| read.push(record));
        let function = HitFrame { function: "m.work".into(), file: Some("/p/a.py".into()), line: Some(2) };
        let arguments = vec![
            ("n".into(), Reading { text: "5".into(), why: None }),
            ("gone".into(), Reading::unavailable("no value")),
        ];
        assert_eq!(
            read,
            [
                Record::Crossing(Crossing::Entered { call: 1, micros: 10, thread: 7, depth: 0, function, arguments }),
                Record::Crossing(Crossing::Left {
                    call: 1,
                    micros: 30,
                    value: Some(Reading::unavailable("raised E: no"))
                }),
                Record::Crossing(Crossing::Left { call: 2, micros: 31, value: None }),
            ]
        );
    }
}
