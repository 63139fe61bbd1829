//! What a trace answers, and how it reads: the first hits, the last, and what stands out between them.

use std::path::Path;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::report::{Printed, ending_line, printed, reason_line};
use crate::failure::Failure;
use crate::hub::trace::{Course as Run, End};
use crate::hub::{Context, Live};
use crate::model::{BindingState, Ending, HitFrame, Reason, SessionState, Stop};
use crate::render::{Page, Render, cut, quoted, quoted_json};
use crate::session::Outcome;
use crate::trace::calls::{Branch, Call, tree};
use crate::trace::shape;
use crate::trace::told::{HitLine, PlaceLine};

/// Lines of hits in the text form; of many the first, those that stand out, and the last.
const LINES: usize = 24;
const FIRST: usize = 8;
const NOTABLE: usize = 8;
const LAST: usize = 6;
/// Lines of a tree of calls.
const BRANCHES: usize = 60;
/// Bytes of hits in a reply, well below what the wire carries.
const REPLY: usize = 8 * 1024 * 1024;
/// Characters of a value in a line.
const VALUE: usize = 80;

/// The form that was asked for. Those other than text are bare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    #[default]
    Text,
    Feedback,
    Csv,
    Jsonl,
}

/// What was seen.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Traced {
    pub hits: Vec<HitLine>,
    /// All hits, also those that are not told here.
    pub total: u64,
    pub places: Vec<PlaceLine>,
    /// Where calls were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<Vec<Call>>,
    /// How the program ended; none where it stands or runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Ending>,
    pub state: SessionState,
    /// What stopped it otherwise: a crash, an exception, a breakpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<StopLine>,
    /// What ended the trace before the program's end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Printed>,
    /// How hits were collected.
    pub way: String,
    pub seconds: f64,
    /// Where all hits are, one JSON array a line, when they are not all told here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The record of the session, for `diff` and `events`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    #[serde(default)]
    pub form: Form,
    /// A limit of time ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

/// Where something other than a hit stopped the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopLine {
    pub reason: Reason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Why a place's condition could not be evaluated: such a pass is no hit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_failed: Option<String>,
}

impl StopLine {
    fn new(stop: &Stop) -> Self {
        let frame = stop.frames.iter().find(|frame| frame.index == stop.frame);
        Self {
            reason: stop.reason.clone(),
            function: frame.map(|frame| frame.function.clone()),
            file: frame.and_then(|frame| frame.file.clone()),
            line: frame.and_then(|frame| frame.line),
            condition_failed: stop.condition_failed.clone(),
        }
    }
}

impl Traced {
    #[must_use]
    pub fn new(cx: &Context, live: &Arc<Live>, run: Run, mut notes: Vec<String>, form: Form) -> Self {
        let collector = &run.collector;
        let points = collector.points();
        // What was streamed is told already.
        let kept = if matches!(form, Form::Csv | Form::Jsonl) { Vec::new() } else { collector.kept() };
        let streamed = matches!(form, Form::Csv | Form::Jsonl);
        let hits: Vec<HitLine> = kept.into_iter().map(|(seen, note)| HitLine::new(seen, points, note)).collect();
        let hits = within(hits);
        let whole = streamed || hits.len() as u64 == collector.total;
        let file = file_of(&run.file, whole);
        if !whole {
            let dots = file.as_ref().map(|file| format!("; all are in {file}")).unwrap_or_default();
            notes.push(format!("{} of {} hits are told here{dots}", hits.len(), collector.total));
        }
        if run.unreadable > 0 {
            notes.push(format!("{} of the hook could not be read", counted(run.unreadable, "record")));
        }
        for (id, why) in &run.failed {
            let place = points.iter().find(|point| point.id == *id).map_or("?", |point| point.asked.as_str());
            notes.push(format!("the condition at {place} could not be evaluated, which is no hit: {why}"));
        }
        let places = points.iter().map(|point| {
            let (hits, courses) = collector.courses.get(&point.id).cloned().unwrap_or_default();
            let binding = run.bindings.get(&point.id);
            let of = |state: BindingState| binding.filter(|binding| binding.state == state);
            PlaceLine {
                point: point.id,
                place: point.asked.clone(),
                hits,
                moved_to: of(BindingState::Moved).and_then(|binding| binding.line),
                // Where any name is taken for a function, one that was not called is no mistake.
                why: of(BindingState::Pending)
                    .filter(|binding| hits == 0 && binding.why.as_deref() != live.adapter.quirks.any_function)
                    .and_then(|binding| binding.why.clone()),
                courses,
            }
        });
        let mut stops: Vec<StopLine> = run.stops.iter().map(StopLine::new).collect();
        let (exit, state) = match &run.outcome {
            Outcome::Ended(ending) => (Some(ending.clone()), SessionState::Exited),
            Outcome::Stopped(stop) if !run.alone || run.end.is_none() => {
                stops.push(StopLine::new(stop));
                (None, SessionState::Stopped)
            }
            _ if run.alone => (None, SessionState::Exited),
            Outcome::Stopped(_) => (None, SessionState::Stopped),
            Outcome::Running => (None, SessionState::Running),
        };
        let limit = run.end.as_ref().map(|end| match end {
            End::Enough(text) | End::Time(text) => text.clone(),
            End::Interrupted => "interrupted".into(),
        });
        Self {
            places: places.collect(),
            total: collector.total,
            hits,
            calls: run.called.then(|| within(run.calls.list)),
            exit,
            state,
            stops,
            limit,
            output: printed(&live.unread(&cx.caller)),
            way: run.way.into(),
            seconds: run.took.as_secs_f64(),
            file,
            record: live.record.clone(),
            notes,
            form,
            timed_out: matches!(run.end, Some(End::Time(_))),
        }
    }

    /// A trace whose places could not be set at all has failed.
    pub fn check(&self) -> Result<(), Failure> {
        let unset = |place: &PlaceLine| place.hits == 0 && place.why.is_some();
        match self.places.first() {
            Some(place) if self.total == 0 && self.calls.is_none() && self.places.iter().all(unset) => {
                let why = place.why.as_deref().unwrap_or_default();
                Err(Failure::refused(format!("{} can't be traced: {why}", place.place))
                    .hint(format!("look at the lines: bugeye source {}", place.place)))
            }
            _ => Ok(()),
        }
    }

    fn text(&self, page: &mut Page) {
        self.head(page);
        for place in &self.places {
            let moved = place.moved_to.map(|line| format!(", moved to line {line}")).unwrap_or_default();
            let why = place.why.as_deref().map(|why| format!(", never set: {}", quoted(why))).unwrap_or_default();
            if self.places.len() > 1 || place.hits != self.total || !moved.is_empty() || !why.is_empty() {
                page.line(format!("{}: {}{moved}{why}", quoted(&place.place), counted(place.hits, "hit")));
            }
            for course in &place.courses {
                let spark = shape::spark(course, 40);
                let name = quoted(&course.expression);
                if let (Some(least), Some(most), false) = (course.least, course.most, spark.is_empty()) {
                    page.line(format!("  {name} {spark} {least}..{most}"));
                } else if place.hits as usize > LINES && course.numbers == 0 {
                    page.line(format!("  {name}: {}", counted(course.changes, "change")));
                }
            }
        }
        self.table(page);
        self.tree(page);
        for stop in &self.stops {
            let at = match (&stop.file, stop.line) {
                (Some(file), Some(line)) => format!(" {}:{line}", page.path(file)),
                _ => String::new(),
            };
            let function = stop.function.as_deref().map(|name| format!(" in {}", quoted(name))).unwrap_or_default();
            let failed = stop.condition_failed.as_deref().map(|why| format!(", condition failed: {}", quoted(why)));
            let failed = failed.unwrap_or_default();
            page.line(format!("stopped: {}{function}{at}{failed}", reason_line(&stop.reason)));
        }
        match (&self.exit, &self.limit) {
            (Some(ending), limit) => {
                if let Some(limit) = limit {
                    page.line(limit);
                }
                page.line(ending_line(ending));
            }
            (None, Some(limit)) if self.state == SessionState::Exited => page.line(format!("ended early: {limit}")),
            (None, Some(limit)) => page.line(limit),
            (None, None) if self.stops.is_empty() => page.line(self.state),
            (None, None) => {}
        }
        if let Some(output) = &self.output {
            output.render(page);
        }
        for note in &self.notes {
            page.line(format!("note: {note}"));
        }
    }

    fn head(&self, page: &mut Page) {
        let mut seen = Vec::new();
        if !self.places.is_empty() || self.calls.is_none() {
            seen.push(counted(self.total, "hit"));
        }
        if let Some(calls) = &self.calls {
            seen.push(counted(calls.len() as u64, "call"));
        }
        let via = page.via.clone().map(|via| format!(", {via}")).unwrap_or_default();
        page.line(format!("{} in {:.2} s ({}{via})", seen.join(", "), self.seconds, self.way));
    }

    fn table(&self, page: &mut Page) {
        let several = self.places.len() > 1;
        let threads = self.hits.iter().any(|hit| hit.thread.id != self.hits[0].thread.id);
        let mut before: Option<(u64, &[HitFrame])> = None;
        for hit in chosen(&self.hits) {
            if let Some((seq, _)) = before
                && hit.seq > seq + 1
            {
                page.line(format!("  … {} more", hit.seq - seq - 1));
            }
            let mut text = format!("{:>5}", hit.seq);
            if several {
                text.push_str(&format!(" {}", quoted(&hit.place)));
            }
            if threads {
                let name = hit.thread.name.clone().unwrap_or_else(|| hit.thread.id.to_string());
                text.push_str(&format!(" [{}]", quoted(&name)));
            }
            let place = self.places.iter().find(|place| place.point == hit.point);
            for course in place.map(|place| place.courses.as_slice()).unwrap_or_default() {
                let value = hit.values.get(&course.expression).map(String::as_str).unwrap_or_default();
                text.push_str(&format!(" {}={}", quoted(&course.expression), shortened(value)));
            }
            if before.is_none_or(|(_, frames)| frames != hit.frames.as_slice()) && !hit.frames.is_empty() {
                let names: Vec<String> = hit.frames.iter().take(4).map(|frame| quoted(&frame.function)).collect();
                text.push_str(&format!("  ({})", names.join(" < ")));
            }
            if let Some(notable) = hit.notable.as_deref().filter(|_| self.hits.len() > LINES) {
                text.push_str(&format!("  {}", quoted(notable)));
            }
            page.line(text);
            before = Some((hit.seq, &hit.frames));
        }
        // Why something can't be read is said once.
        let mut said: Vec<(&str, &str)> = Vec::new();
        for (name, why) in self.hits.iter().flat_map(|hit| &hit.unavailable) {
            if !said.iter().any(|(known, _)| known == name) && said.len() < 5 {
                said.push((name, why));
                page.line(format!("  {}: {}", quoted(name), cut(&quoted(why), 200).0));
            }
        }
    }

    fn tree(&self, page: &mut Page) {
        let calls = self.calls.as_deref().unwrap_or_default();
        let threads = calls.iter().any(|call| call.thread != calls[0].thread);
        for branch in tree(calls, BRANCHES) {
            match branch {
                Branch::Call(call) => {
                    let thread = if threads { format!("[{}] ", call.thread) } else { String::new() };
                    page.line(format!("{}{thread}{}", indent(call.depth), call_line(call)));
                }
                Branch::More { depth, count, functions } => {
                    let name = |(name, count): &(&str, usize)| format!("{count} {}", quoted(name));
                    let names: Vec<String> = functions.iter().map(name).collect();
                    let names = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
                    page.line(format!("{}… {}{names}", indent(depth), counted(count as u64, "more call")));
                }
            }
        }
    }
}

fn indent(depth: u32) -> String {
    "  ".repeat(depth.min(20) as usize + 1)
}

/// `work(n=5) -> 10`.
fn call_line(call: &Call) -> String {
    let argument = |(name, value): &(String, String)| format!("{}={}", quoted(name), shortened(value));
    let arguments: Vec<String> = call.arguments.iter().map(argument).collect();
    let mut text = format!("{}({})", quoted(&call.function.function), arguments.join(", "));
    match (&call.returned, &call.why) {
        (Some(value), _) => text.push_str(&format!(" -> {}", shortened(value))),
        (None, Some(why)) => text.push_str(&format!(" !! {}", shortened(why))),
        (None, None) if !call.left => text.push_str(" …"),
        (None, None) => {}
    }
    text
}

fn shortened(text: &str) -> String {
    let text = quoted(text);
    match cut(&text, VALUE) {
        (_, 0) => text,
        (head, _) => format!("{head}…"),
    }
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// As many as a reply can carry: of more, those at both ends.
fn within<T: Serialize>(mut list: Vec<T>) -> Vec<T> {
    let sizes: Vec<usize> = list.iter().map(|item| serde_json::to_string(item).map_or(0, |text| text.len())).collect();
    let fits = |sizes: &mut dyn Iterator<Item = &usize>| {
        let mut used = 0;
        sizes
            .take_while(|size| {
                used += **size;
                used <= REPLY / 2
            })
            .count()
    };
    let (first, last) = (fits(&mut sizes.iter()), fits(&mut sizes.iter().rev()));
    if first + last < list.len() {
        list.drain(first..list.len() - last);
    }
    list
}

/// The file, where it holds more than the reply does.
fn file_of(path: &Path, whole: bool) -> Option<String> {
    (!whole && path.is_file()).then(|| path.to_string_lossy().into_owned())
}

/// At most so many hits as are read.
fn chosen(hits: &[HitLine]) -> Vec<&HitLine> {
    if hits.len() <= LINES {
        return hits.iter().collect();
    }
    let last = hits.len() - LAST;
    let notable: Vec<&HitLine> = hits[FIRST..last].iter().filter(|hit| hit.notable.is_some()).take(NOTABLE).collect();
    hits[..FIRST].iter().chain(notable).chain(&hits[last..]).collect()
}

impl Render for Traced {
    fn render(&self, page: &mut Page) {
        match self.form {
            Form::Text => self.text(page),
            Form::Feedback => page.line(quoted_json(&shape::feedback(&self.places, &self.hits).to_string())),
            Form::Csv => {}
            Form::Jsonl => {
                let mut end = json!(self);
                if let Some(object) = end.as_object_mut() {
                    object.retain(|name, _| name != "hits" && name != "form");
                }
                let last: Map<String, Value> = [("end".to_string(), end)].into_iter().collect();
                page.line(quoted_json(&Value::Object(last).to_string()));
            }
        }
    }

    fn exit_code(&self) -> u8 {
        if self.timed_out { 4 } else { 0 }
    }
}
