//! What was seen where in a record: its stops, its traced hits and its traced calls, in order and in one form, for whoever
//! counts or compares.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Component, Path};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value as Json;

use super::doings::{Edits, InOrder};
use super::read::{Head, Tail};
use crate::adapters;
use crate::model::{Crossing, Event, Frame, Hit, HitFrame, Place, Point, Reading, Reason, Stop};
use crate::trace::sink::{self, Record};

/// How much of a file of hits is read at once.
const PIECE: usize = 256 * 1024;
/// The most functions on the way to a stop that are kept.
const FRAMES: usize = 20;
/// The most calls that are kept until they are left.
const OPEN: usize = 100_000;
/// What the value of a function is called.
pub const RETURNED: &str = "returned";

/// What a call was seen doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossed {
    /// Its values are the arguments.
    Entered { depth: u32 },
    /// Its value is what it returned, or how it was left otherwise.
    Left,
}

/// One time that a place was reached, by a stop or in a trace, or that a traced function was entered or left. Texts are
/// debuggee text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The number of the event that tells it: the stop, or the trace.
    pub seq: u64,
    /// Counts the hits of a trace, or its calls, from 1; 0 for a stop.
    pub hit: u64,
    /// Milliseconds since 1970, of the event.
    pub ts: u64,
    /// Microseconds of a hit, on a clock of its own.
    pub micros: u64,
    pub thread: i64,
    pub thread_name: Option<Arc<str>>,
    /// `file:line`, relative to the project where it lies in it; the function where there is no line.
    pub place: Arc<str>,
    /// The place as it was asked for.
    pub asked: Option<Arc<str>>,
    pub function: Arc<str>,
    /// Expressions, or locals, with what they were.
    pub values: Vec<(Arc<str>, String)>,
    /// Innermost first.
    pub frames: Arc<[HitFrame]>,
    /// Why it stopped there.
    pub reason: Option<Reason>,
    /// It is a call, at the line where the function begins.
    pub crossed: Option<Crossed>,
}

/// What a `trace` event says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Traced {
    file: String,
    points: Vec<Point>,
}

/// Tells every stop and every hit of a record in order; ends at once when `tell` answers false.
pub fn occurrences(head: &Head, tell: &mut dyn FnMut(Occurrence) -> bool) -> io::Result<()> {
    with_calls(head, &mut |seen| seen.crossed.is_some() || tell(seen))
}

/// As [`occurrences`], with the calls of traces, each as it is entered and as it is left.
pub fn with_calls(head: &Head, tell: &mut dyn FnMut(Occurrence) -> bool) -> io::Result<()> {
    let mut tail = Tail::new(&head.folder);
    let agents = adapters::by_name(&head.adapter).is_some_and(|adapter| adapter.quirks.agents);
    let mut edits = Edits::default();
    let mut first = Tail::new(&head.folder);
    while agents && let Some(events) = first.read()? {
        events.iter().for_each(|(event, _)| edits.note(event));
    }
    let mut order = InOrder::new(edits);
    while let Some(events) = tail.read()? {
        for (event, _) in events {
            let goes_on = match event.kind.as_str() {
                // Where an agent was held is its debugger's doing.
                _ if agents => order.next(&event).into_iter().all(&mut *tell),
                "stopped" => stop(head, &event).is_none_or(&mut *tell),
                "trace" => hits(head, &event, tell)?,
                _ => true,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }
    order.rest().into_iter().all(tell);
    Ok(())
}

/// A stop as an occurrence; None where the event can't be read.
#[must_use]
pub fn stop(head: &Head, event: &Event) -> Option<Occurrence> {
    let stop: Stop = serde_json::from_value(event.data.clone()).ok()?;
    let top = stop.frames.iter().find(|frame| frame.index == stop.frame).or(stop.frames.first());
    let asked = None;
    let values = stop.locals.iter().map(|local| (Arc::from(local.name.as_str()), local.value.flat())).collect();
    let frames: Vec<HitFrame> = stop.frames.iter().filter(|frame| !frame.runtime).take(FRAMES).map(way).collect();
    Some(Occurrence {
        seq: event.seq,
        hit: 0,
        ts: event.ts,
        micros: 0,
        thread: stop.thread.id,
        thread_name: stop.thread.name.as_deref().map(Arc::from),
        place: top.map_or_else(|| "?".into(), |frame| key(head, frame.file.as_deref(), frame.line, &frame.function)),
        asked,
        function: top.map_or_else(|| "?".into(), |frame| frame.function.as_str().into()),
        values,
        frames: frames.into(),
        reason: Some(stop.reason),
        crossed: None,
    })
}

fn way(frame: &Frame) -> HitFrame {
    HitFrame { function: frame.function.clone(), file: frame.file.clone(), line: frame.line }
}

/// `file:line`, relative to the project where it lies in it.
#[must_use]
pub fn key(head: &Head, file: Option<&str>, line: Option<u32>, function: &str) -> Arc<str> {
    let (Some(file), Some(line)) = (file, line) else { return function.into() };
    let path = Path::new(file);
    let short = path.strip_prefix(&head.project).unwrap_or(path);
    format!("{}:{line}", short.display()).into()
}

/// Ways to hits whose place is kept; beyond them it is found anew.
const WAYS: usize = 1000;

/// What all hits of a point share.
#[derive(Debug)]
struct Known {
    point: Point,
    asked: Arc<str>,
    names: Vec<Arc<str>>,
    /// The place and function of each way, by where it is kept in memory: hits that came the same way share it.
    ways: HashMap<usize, (Arc<[HitFrame]>, Arc<str>, Arc<str>)>,
}

impl Known {
    fn new(point: &Point) -> Self {
        // What was watched is its own expression.
        let names = match point.expressions.as_slice() {
            [] => std::slice::from_ref(&point.asked),
            expressions => expressions,
        };
        let names = names.iter().map(|name| Arc::from(name.as_str())).collect();
        Self { point: point.clone(), asked: point.asked.as_str().into(), names, ways: HashMap::new() }
    }

    fn placed(&mut self, head: &Head, frames: &Arc<[HitFrame]>) -> (Arc<str>, Arc<str>) {
        let at = frames.as_ptr() as usize;
        if let Some((known, place, function)) = self.ways.get(&at)
            && Arc::ptr_eq(known, frames)
        {
            return (Arc::clone(place), Arc::clone(function));
        }
        let top = frames.first();
        let function: Arc<str> = top.map_or("", |frame| frame.function.as_str()).into();
        let place = match (top, &self.point.place) {
            (Some(HitFrame { file: Some(file), line: Some(line), .. }), _) => key(head, Some(file), Some(*line), ""),
            (_, Place::Line { file, line }) => key(head, Some(file), Some(*line), ""),
            _ => Arc::clone(&self.asked),
        };
        if self.ways.len() == WAYS {
            self.ways.clear();
        }
        self.ways.insert(at, (Arc::clone(frames), Arc::clone(&place), Arc::clone(&function)));
        (place, function)
    }

    /// A hit, with the number and the time of its trace's event, and its own number.
    fn occurrence(
        &mut self,
        head: &Head,
        (seq, ts, number): (u64, u64, u64),
        names: &mut HashMap<i64, Arc<str>>,
        hit: Hit,
    ) -> Occurrence {
        let (place, function) = self.placed(head, &hit.frames);
        Occurrence {
            seq,
            hit: number,
            ts,
            micros: hit.micros,
            thread: hit.thread,
            thread_name: shared(names, hit.thread, hit.thread_name.as_deref()),
            place,
            asked: Some(Arc::clone(&self.asked)),
            function,
            values: self.names.iter().cloned().zip(hit.values.into_iter().map(|value| value.text)).collect(),
            frames: hit.frames,
            reason: None,
            crossed: None,
        }
    }
}

/// The hits of a trace, and its calls, read as its file grows.
#[derive(Debug)]
pub struct Hits {
    /// The number and the time of the event that tells the trace.
    seq: u64,
    ts: u64,
    known: Vec<Known>,
    reader: sink::Reader,
    /// Names of threads: one allocation each, however many hits have it.
    names: HashMap<i64, Arc<str>>,
    /// Calls that were not left yet, by the hook's number.
    open: HashMap<u64, Occurrence>,
    /// How many were read.
    pub count: u64,
    calls: u64,
}

impl Hits {
    /// Of the trace that an event tells, with the name of its file; None where there is none, or it is no such event.
    #[must_use]
    pub fn new(head: &Head, seq: u64, ts: u64, data: &Json) -> Option<(Self, String)> {
        let traced = Traced::deserialize(data).ok()?;
        // A name, not a way out of the folder.
        let is_name = Path::new(&traced.file).components().eq([Component::Normal(traced.file.as_ref())]);
        if !is_name {
            return None;
        }
        let quirks = adapters::by_name(&head.adapter).map_or(&adapters::ADAPTERS[0].quirks, |adapter| &adapter.quirks);
        let known = traced.points.iter().map(Known::new).collect();
        let hits = Self {
            seq,
            ts,
            known,
            reader: sink::Reader::new(quirks),
            names: HashMap::new(),
            open: HashMap::new(),
            count: 0,
            calls: 0,
        };
        Some((hits, traced.file))
    }

    /// Takes more bytes of the file and tells each hit in them; answers whether to go on.
    pub fn feed(&mut self, head: &Head, bytes: &[u8], tell: &mut dyn FnMut(Occurrence) -> bool) -> bool {
        let Self { seq, ts, known, reader, names, count, .. } = self;
        let mut goes_on = true;
        reader.feed(bytes, |record| {
            if let Record::Hit(hit) = record
                && goes_on
                && let Some(known) = known.iter_mut().find(|known| known.point.id == hit.point)
            {
                *count += 1;
                goes_on = tell(known.occurrence(head, (*seq, *ts, *count), names, hit));
            }
        });
        goes_on
    }

    /// As [`Hits::feed`], with each call as it is entered and as it is left.
    pub fn feed_all(&mut self, head: &Head, bytes: &[u8], tell: &mut dyn FnMut(Occurrence) -> bool) -> bool {
        let mut records = Vec::new();
        self.reader.feed(bytes, |record| records.push(record));
        for record in records {
            let seen = match record {
                Record::Hit(hit) => {
                    let known = self.known.iter_mut().find(|known| known.point.id == hit.point);
                    known.map(|known| {
                        self.count += 1;
                        known.occurrence(head, (self.seq, self.ts, self.count), &mut self.names, hit)
                    })
                }
                Record::Crossing(crossing) => self.crossing(head, crossing),
                Record::Failed { .. } => None,
            };
            if seen.is_some_and(|seen| !tell(seen)) {
                return false;
            }
        }
        true
    }

    fn crossing(&mut self, head: &Head, crossing: Crossing) -> Option<Occurrence> {
        match crossing {
            Crossing::Entered { call, micros, thread, depth, function, arguments } => {
                self.calls += 1;
                let entered = Occurrence {
                    seq: self.seq,
                    hit: self.calls,
                    ts: self.ts,
                    micros,
                    thread,
                    thread_name: shared(&mut self.names, thread, self.reader.thread(thread)),
                    place: key(head, function.file.as_deref(), function.line, &function.function),
                    asked: None,
                    function: function.function.as_str().into(),
                    values: arguments.into_iter().map(|(name, value)| (Arc::from(name), value.text)).collect(),
                    frames: Arc::default(),
                    reason: None,
                    crossed: Some(Crossed::Entered { depth }),
                };
                if self.open.len() < OPEN {
                    let left = Occurrence { values: Vec::new(), crossed: Some(Crossed::Left), ..entered.clone() };
                    self.open.insert(call, left);
                }
                Some(entered)
            }
            Crossing::Left { call, micros, value } => {
                let mut left = self.open.remove(&call)?;
                left.micros = micros;
                left.values = value.into_iter().map(|value| (RETURNED.into(), result(value))).collect();
                Some(left)
            }
        }
    }
}

/// The name of a thread, which many share.
fn shared(names: &mut HashMap<i64, Arc<str>>, thread: i64, name: Option<&str>) -> Option<Arc<str>> {
    let name = name.filter(|name| !name.is_empty())?;
    if let Some(known) = names.get(&thread).filter(|known| &***known == name) {
        return Some(Arc::clone(known));
    }
    let name: Arc<str> = name.into();
    names.insert(thread, Arc::clone(&name));
    Some(name)
}

/// What came of a call: its value, or why there is none.
fn result(value: Reading) -> String {
    value.why.unwrap_or(value.text)
}

/// Tells the hits and the calls of a trace; answers whether to go on.
fn hits(head: &Head, event: &Event, tell: &mut dyn FnMut(Occurrence) -> bool) -> io::Result<bool> {
    let Some((mut hits, name)) = Hits::new(head, event.seq, event.ts, &event.data) else { return Ok(true) };
    let mut file = match File::open(head.folder.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let mut piece = vec![0; PIECE];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok(true);
        }
        if !hits.feed_all(head, &piece[..read], tell) {
            return Ok(false);
        }
    }
}
