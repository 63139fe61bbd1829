//! What was seen where in a record: its stops and its traced hits, in order and in one form, for whoever counts or compares.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use super::read::{Head, Tail};
use crate::adapters;
use crate::model::{Event, Frame, Hit, HitFrame, Place, Point, Reason, Stop};
use crate::trace::sink::{self, Record};

/// How much of a file of hits is read at once.
const PIECE: usize = 256 * 1024;
/// The most functions on the way to a stop that are kept.
const FRAMES: usize = 20;

/// One time that a place was reached, by a stop or in a trace. Texts are debuggee text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// The number of the event that tells it: the stop, or the trace.
    pub seq: u64,
    /// Counts the hits of a trace from 1; 0 for a stop.
    pub hit: u64,
    /// Milliseconds since 1970, of the event.
    pub ts: u64,
    /// Microseconds of a hit, on a clock of its own.
    pub micros: u64,
    pub thread: i64,
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
    let mut tail = Tail::new(&head.folder);
    while let Some(events) = tail.read()? {
        for (event, _) in events {
            let goes_on = match event.kind.as_str() {
                "stopped" => stop(head, &event).is_none_or(&mut *tell),
                "trace" => match serde_json::from_value::<Traced>(event.data.clone()) {
                    Ok(traced) => hits(head, &event, &traced, tell)?,
                    Err(_) => true,
                },
                _ => true,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }
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
        place: top.map_or_else(|| "?".into(), |frame| key(head, frame.file.as_deref(), frame.line, &frame.function)),
        asked,
        function: top.map_or_else(|| "?".into(), |frame| frame.function.as_str().into()),
        values,
        frames: frames.into(),
        reason: Some(stop.reason),
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

/// What all hits of a point share.
struct Known {
    point: Point,
    asked: Arc<str>,
    names: Vec<Arc<str>>,
    /// The place and function of the frames seen last: hits mostly come the same way.
    last: Option<(Arc<[HitFrame]>, Arc<str>, Arc<str>)>,
}

impl Known {
    fn new(point: &Point) -> Self {
        // What was watched is its own expression.
        let names = match point.expressions.as_slice() {
            [] => std::slice::from_ref(&point.asked),
            expressions => expressions,
        };
        let names = names.iter().map(|name| Arc::from(name.as_str())).collect();
        Self { point: point.clone(), asked: point.asked.as_str().into(), names, last: None }
    }

    fn placed(&mut self, head: &Head, frames: &Arc<[HitFrame]>) -> (Arc<str>, Arc<str>) {
        if let Some((known, place, function)) = &self.last
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
        self.last = Some((Arc::clone(frames), Arc::clone(&place), Arc::clone(&function)));
        (place, function)
    }
}

/// Tells the hits of a trace; answers whether to go on.
fn hits(head: &Head, event: &Event, traced: &Traced, tell: &mut dyn FnMut(Occurrence) -> bool) -> io::Result<bool> {
    // A name, not a way out of the folder.
    if traced.file.is_empty() || traced.file.contains('/') {
        return Ok(true);
    }
    let mut file = match File::open(head.folder.join(&traced.file)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    let quirks = adapters::by_name(&head.adapter).map_or(&adapters::ADAPTERS[0].quirks, |adapter| &adapter.quirks);
    let mut reader = sink::Reader::new(quirks);
    let mut known: Vec<Known> = traced.points.iter().map(Known::new).collect();
    let (mut count, mut goes_on) = (0, true);
    let mut piece = vec![0; PIECE];
    while goes_on {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        reader.feed(&piece[..read], |record| {
            if let Record::Hit(hit) = record
                && goes_on
                && let Some(known) = known.iter_mut().find(|known| known.point.id == hit.point)
            {
                count += 1;
                goes_on = tell(occurrence(head, event, known, count, hit));
            }
        });
    }
    Ok(goes_on)
}

fn occurrence(head: &Head, event: &Event, known: &mut Known, number: u64, hit: Hit) -> Occurrence {
    let (place, function) = known.placed(head, &hit.frames);
    let values = known.names.iter().cloned().zip(hit.values.into_iter().map(|value| value.text)).collect();
    Occurrence {
        seq: event.seq,
        hit: number,
        ts: event.ts,
        micros: hit.micros,
        thread: hit.thread,
        place,
        asked: Some(Arc::clone(&known.asked)),
        function,
        values,
        frames: hit.frames,
        reason: None,
    }
}
