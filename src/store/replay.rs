//! Standing at a moment of a record: its events up to there, folded into what was known then.
//!
//! A record is read from its beginning, a piece at a time; what is kept of it does not grow with it. While the program
//! stands still, what was asked a little later is as true as what was asked before: so the fold goes on beyond the
//! moment until something moves or changes.

use std::collections::{BTreeMap, VecDeque};
use std::str::FromStr;

use serde::Deserialize;
use serde_json::Value as Json;

use super::blobs;
use super::read::{Head, Tail};
use super::sources::Sources;
use crate::failure::Failure;
use crate::model::{BreakpointReport, Ending, Event, Frame, Reason, SessionState, Stop, ThreadInfo, Value, Variable};
use crate::output::Ring;
use crate::session::Stream;

/// The newest format of records that is read here.
pub const FORMAT: u32 = 1;
/// What is kept of a program's output, as a session keeps it.
const CHUNKS: usize = 10_000;
const OUTPUT: usize = 10 * 1024 * 1024;
/// What is kept of answers at one stop, and how many of values, frames and open commands.
const ANSWERS: usize = 32 * 1024 * 1024;
const MANY: usize = 1000;

/// What a command is to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    /// It is not about one session.
    Apart,
    /// It reads: its answers are recorded, and answer again.
    Reads,
    /// It reads what the record has in another form.
    Told,
    /// It reads, and what is read after it is of another frame or thread.
    Selects,
    /// It may change values, so that those read before it count no more.
    Changes,
    /// It does something else: the record can't do it, and its values don't hang on it.
    Beside,
}

/// Tells what a command of a record is, by its name and arguments.
pub type Classify = fn(&str, &Json) -> Past;

/// A moment, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// After the event of this number.
    Seq(u64),
    /// At the stop of this number.
    Stop(u64),
    First,
    Last,
    /// After all of it.
    End,
}

impl FromStr for When {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        let when = match text.strip_prefix("stop:") {
            Some(stop) => number(stop).map(Self::Stop),
            None => match text {
                "first" => Some(Self::First),
                "last" => Some(Self::Last),
                "end" => Some(Self::End),
                _ => number(text).map(Self::Seq),
            },
        };
        when.ok_or_else(|| {
            Failure::usage(format!("`{text}` is no moment of a record"))
                .hint("the number of an event (--at 120), a stop (--at stop:3), or first, last, end")
                .hint("the events with their numbers: bugeye replay ID")
        })
    }
}

/// Where the stops of a record are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// The number of the last event.
    pub end: u64,
    pub stops: u64,
    /// The numbers of their events.
    pub first: Option<u64>,
    pub last: Option<u64>,
}

/// A command with what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    pub name: String,
    pub args: Json,
    pub outcome: Result<Json, Failure>,
    /// Of the line that tells it.
    bytes: usize,
}

impl Answered {
    /// Whether it is about a frame that it names, whichever is selected.
    fn names_frame(&self) -> bool {
        ["frame", "number"].iter().any(|name| self.args.get(name).is_some_and(Json::is_number))
    }
}

/// An expression that was asked for, in a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub expression: String,
    pub thread: Option<i64>,
    pub frame: Option<u32>,
    /// What may change the program was carried out.
    pub effect: bool,
    pub found: Result<Value, String>,
}

/// A frame that was looked at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Looked {
    pub thread: ThreadInfo,
    pub frame: Frame,
    #[serde(default)]
    pub locals: Vec<Variable>,
    #[serde(default)]
    pub gaps: Vec<String>,
}

/// A stop as the record has it: with the threads there were.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Stood {
    #[serde(flatten)]
    pub stop: Stop,
    #[serde(default)]
    pub threads: Vec<ThreadInfo>,
}

/// What was known at a moment.
#[derive(Debug)]
pub struct Moment {
    pub head: Head,
    /// The number and time of the event it is after.
    pub seq: u64,
    pub ts: u64,
    pub via: Option<String>,
    pub state: SessionState,
    pub pid: Option<u32>,
    pub ending: Option<Ending>,
    /// Where the program stands, if it does.
    pub stood: Option<Stood>,
    /// Stops so far.
    pub stops: u64,
    pub breakpoints: BTreeMap<u32, BreakpointReport>,
    pub output: Ring,
    /// More was printed than is recorded.
    pub output_ends: bool,
    /// The thread and frame that are looked at, where they are not the stop's own.
    pub selected: Option<(i64, u32)>,
    /// Values were changed since the stop: by which command, and the number of that.
    pub changed: Option<(u64, String)>,
    pub answers: VecDeque<Answered>,
    pub asked: VecDeque<Asked>,
    pub looked: VecDeque<Looked>,
    pub sources: Sources,
}

impl Moment {
    /// Reads a record up to a moment.
    pub fn load(head: Head, when: When, classify: Classify) -> Result<Self, Failure> {
        if head.v > FORMAT {
            return Err(Failure::unsupported(format!(
                "{} is a record of format {}; this version reads {FORMAT}",
                head.id, head.v
            ))
            .hint("a newer bugeye reads it"));
        }
        let at = match when {
            When::Seq(seq) => seq,
            _ => placed(&head, when)?,
        };
        let mut fold = Fold::new(Self::new(head), at, classify);
        each(&fold.moment.head.clone(), &mut |event, bytes| fold.take(event, bytes))?;
        fold.read_stop();
        let moment = fold.moment;
        if moment.seq == 0 || (moment.seq < at && !matches!(when, When::End)) {
            return Err(none_there(&moment.head, at, moment.seq));
        }
        Ok(moment)
    }

    fn new(head: Head) -> Self {
        let sources = Sources::new(&head);
        Self {
            head,
            seq: 0,
            ts: 0,
            via: None,
            state: SessionState::Starting,
            pid: None,
            ending: None,
            stood: None,
            stops: 0,
            breakpoints: BTreeMap::new(),
            output: Ring::new(CHUNKS, OUTPUT),
            output_ends: false,
            selected: None,
            changed: None,
            answers: VecDeque::new(),
            asked: VecDeque::new(),
            looked: VecDeque::new(),
            sources,
        }
    }

    /// The thread and frame that a look is about which names none.
    #[must_use]
    pub fn selection(&self) -> Option<(i64, u32)> {
        self.selected.or_else(|| self.stood.as_ref().map(|stood| (stood.stop.thread.id, stood.stop.frame)))
    }

    /// What was known counts no more: the program goes on, or stands elsewhere.
    fn forget(&mut self) {
        self.stood = None;
        self.selected = None;
        self.changed = None;
        self.looked.clear();
        self.asked.clear();
        self.answers.clear();
    }

    fn keep(&mut self, answered: Answered) {
        self.answers.push_back(answered);
        while self.answers.len() > MANY || self.answers.iter().map(|answer| answer.bytes).sum::<usize>() > ANSWERS {
            self.answers.pop_front();
        }
    }
}

fn none_there(head: &Head, at: u64, end: u64) -> Failure {
    if end == 0 {
        return Failure::not_found(format!("the record {} has no events", head.id));
    }
    Failure::not_found(format!("the record {} has no event {at}: it ends at {end}", head.id))
        .hint(format!("its end: bugeye -s {} --at end status", head.id))
}

/// Tells each event with the bytes of its line, until that answers false.
fn each(head: &Head, tell: &mut dyn FnMut(Event, usize) -> bool) -> Result<(), Failure> {
    let failed = |error| Failure::io(format!("read the record {}", head.id), &error);
    let mut tail = Tail::new(&head.folder);
    while let Some(events) = tail.read().map_err(failed)? {
        for (event, line) in events {
            if !tell(event, line.len()) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Where a record's stops are.
pub fn extent(head: &Head) -> Result<Extent, Failure> {
    let mut extent = Extent::default();
    each(head, &mut |event, _| {
        extent.end = event.seq;
        if event.kind == "stopped" {
            extent.stops += 1;
            extent.first = extent.first.or(Some(event.seq));
            extent.last = Some(event.seq);
        }
        true
    })?;
    Ok(extent)
}

/// The number of the event that a moment is at.
fn placed(head: &Head, when: When) -> Result<u64, Failure> {
    if when == When::End {
        return Ok(u64::MAX);
    }
    let (mut stops, mut found) = (0, None);
    each(head, &mut |event, _| {
        if event.kind != "stopped" {
            return true;
        }
        stops += 1;
        let number = event.data.get("number").and_then(Json::as_u64).unwrap_or(stops);
        match when {
            When::Stop(wanted) if wanted == number => found = Some(event.seq),
            When::First | When::Last => found = Some(event.seq),
            _ => {}
        }
        when == When::Last || found.is_none()
    })?;
    found.ok_or_else(|| match (when, stops) {
        (_, 0) => Failure::not_found(format!("the program never stopped in {}", head.id))
            .hint(format!("what happened: bugeye replay {}", head.id))
            .hint(format!("what it printed: bugeye -s {} --at end output", head.id)),
        (When::Stop(wanted), _) => Failure::not_found(format!("{} has no stop {wanted}", head.id))
            .hint(format!("it has {stops}: --at stop:1 to --at stop:{stops}")),
        _ => Failure::internal("a stop was not found"),
    })
}

/// A fold under way.
struct Fold {
    moment: Moment,
    at: u64,
    classify: Classify,
    /// Commands that are not answered yet.
    open: BTreeMap<u64, (String, Json)>,
    /// The stop that the program stands at, as it is told: of many only the last is read.
    told: Option<Json>,
    /// Where the selection has gone after the moment.
    moved: Option<(i64, u32)>,
    /// After the moment a breakpoint was changed.
    rearranged: bool,
}

impl Fold {
    fn new(moment: Moment, at: u64, classify: Classify) -> Self {
        Self { moment, at, classify, open: BTreeMap::new(), told: None, moved: None, rearranged: false }
    }

    /// Takes an event; false when nothing after it can matter.
    fn take(&mut self, mut event: Event, bytes: usize) -> bool {
        if event.kind == "stopped" && (event.seq <= self.at || self.is_awaited()) {
            if event.seq <= self.at {
                (self.moment.seq, self.moment.ts) = (event.seq, event.ts);
            }
            self.arrive(event.data.take());
            return true;
        }
        if event.seq > self.at {
            return self.ahead(&event, bytes);
        }
        (self.moment.seq, self.moment.ts) = (event.seq, event.ts);
        self.apply(&event, bytes);
        true
    }

    fn apply(&mut self, event: &Event, bytes: usize) {
        let data = &event.data;
        if matches!(event.kind.as_str(), "state" | "continued" | "session.end") {
            self.told = None;
            self.moment.forget();
        }
        let moment = &mut self.moment;
        match event.kind.as_str() {
            "session.start" => moment.via = text(data, "via"),
            "state" => {
                if let Some(pid) = data.get("pid").and_then(Json::as_u64) {
                    moment.pid = u32::try_from(pid).ok();
                }
                if let Some(state) = data.get("state").and_then(read::<SessionState>) {
                    moment.state = state;
                }
            }
            "continued" => moment.state = SessionState::Running,
            "session.end" => {
                moment.ending = data.get("ending").and_then(read);
                let lost = matches!(moment.ending, Some(Ending::Lost { .. }));
                moment.state = if lost { SessionState::Lost } else { SessionState::Exited };
            }
            "breakpoint" => {
                if let (Some(id), Some(_)) = (data.get("id").and_then(Json::as_u64), data.get("removed")) {
                    moment.breakpoints.remove(&u32::try_from(id).unwrap_or(u32::MAX));
                } else if let Some(report) = read::<BreakpointReport>(data) {
                    moment.breakpoints.insert(report.wish.id, report);
                }
                moment.answers.retain(|answer| answer.name != "breaks");
            }
            "hit" => {
                let (id, hit) = (data.get("breakpoint").and_then(Json::as_u64), data.get("hit").and_then(Json::as_u64));
                if let (Some(id), Some(hit)) = (id.and_then(|id| u32::try_from(id).ok()), hit) {
                    self.counted(id, hit);
                }
            }
            "log" if text(data, "message").is_some_and(|said| said.starts_with("more output was printed")) => {
                moment.output_ends = true;
            }
            "command" => {
                self.opened(event);
                if let Some((name, args)) = self.open.get(&event.seq)
                    && (self.classify)(name, args) == Past::Changes
                    && (self.moment.stood.is_some() || self.told.is_some())
                {
                    self.moment.changed = Some((event.seq, name.clone()));
                    self.moment.asked.clear();
                    self.moment.looked.clear();
                    self.moment.answers.clear();
                }
            }
            "command.result" => self.answered(data, bytes, true),
            _ => self.seen(event),
        }
    }

    /// What is true before and after the moment alike.
    fn seen(&mut self, event: &Event) {
        let (data, moment) = (&event.data, &mut self.moment);
        match event.kind.as_str() {
            "output" => {
                if let (Some(stream), Some(text)) = (data.get("stream").and_then(read::<Stream>), text(data, "text")) {
                    moment.output.push(stream, &text);
                }
            }
            "eval" => {
                if let Some(asked) = asked(event) {
                    push(&mut moment.asked, asked);
                }
            }
            "source" => moment.sources.take(event),
            _ => {}
        }
    }

    /// Takes an event after the moment; false when the program moves or is changed.
    fn ahead(&mut self, event: &Event, bytes: usize) -> bool {
        match event.kind.as_str() {
            "state" | "continued" | "stopped" | "session.end" => return false,
            "breakpoint" => self.rearranged = true,
            "command" => {
                self.opened(event);
                let changes = |(name, args): &(String, Json)| (self.classify)(name, args) == Past::Changes;
                return !self.open.get(&event.seq).is_some_and(changes);
            }
            "command.result" => self.answered(&event.data, bytes, false),
            _ => self.seen(event),
        }
        true
    }

    /// Whether the program stands still, and where is not told yet.
    fn is_awaited(&self) -> bool {
        self.moment.state == SessionState::Stopped && self.moment.stood.is_none() && self.told.is_none()
    }

    fn arrive(&mut self, data: Json) {
        self.moment.forget();
        self.moment.state = SessionState::Stopped;
        self.moment.stops = data.get("number").and_then(Json::as_u64).unwrap_or(self.moment.stops.saturating_add(1));
        self.moment.via = text(&data, "via").or(self.moment.via.take());
        if let Some(Reason::Breakpoint { ids, hit }) = data.get("reason").and_then(read) {
            for id in &ids {
                let alone = ids.len() == 1;
                let known = self.moment.breakpoints.get(id).and_then(|report| report.binding.as_ref());
                let next = known.map_or(1, |binding| binding.hits.saturating_add(1));
                self.counted(*id, if alone { hit } else { next });
            }
        }
        self.told = Some(data);
    }

    /// Reads the stop that was told last.
    fn read_stop(&mut self) {
        if let Some(mut data) = self.told.take() {
            blobs::restore(&self.moment.head.folder, &mut data);
            self.moment.stood = read(&data);
        }
    }

    fn counted(&mut self, id: u32, hits: u64) {
        if let Some(binding) = self.moment.breakpoints.get_mut(&id).and_then(|report| report.binding.as_mut()) {
            binding.hits = hits;
        }
    }

    fn opened(&mut self, event: &Event) {
        let Some(name) = text(&event.data, "name") else { return };
        let args = event.data.get("args").cloned().unwrap_or_default();
        self.open.insert(event.seq, (name, args));
        while self.open.len() > MANY {
            self.open.pop_first();
        }
    }

    fn answered(&mut self, data: &Json, bytes: usize, before: bool) {
        let Some(of) = data.get("command").and_then(Json::as_u64) else { return };
        let Some((name, args)) = self.open.remove(&of) else { return };
        if let Some(via) = text(data, "via") {
            self.moment.via = Some(via);
        }
        let past = (self.classify)(&name, &args);
        let gone = data.get("gone").is_some();
        if gone || !matches!(past, Past::Reads | Past::Selects) || (self.rearranged && name == "breaks") {
            return;
        }
        let outcome = match (data.get("result"), data.get("error").and_then(read::<Failure>)) {
            (Some(result), _) => Ok(result.clone()),
            (None, Some(failure)) => Err(failure),
            (None, None) => return,
        };
        let selects = |_: &&Json| past == Past::Selects;
        let looked = outcome.as_ref().ok().filter(selects).and_then(read::<Looked>);
        self.read_stop();
        let here = self.moment.selection();
        let selected = looked.as_ref().map(|looked| (looked.thread.id, looked.frame.index));
        let answer = Answered { name, args, outcome, bytes };
        match selected.filter(|selected| Some(*selected) != here && before) {
            Some(to) => {
                // What was asked of the other selection counts only where it named its frame.
                let same_thread = here.is_some_and(|(thread, _)| thread == to.0);
                self.moment.answers.retain(|known| same_thread && known.names_frame());
                self.moment.selected = Some(to);
                if answer.names_frame() {
                    self.moment.keep(answer);
                }
            }
            None => {
                let same_thread = |to: (i64, u32)| here.is_some_and(|(thread, _)| thread == to.0);
                if self.moved.is_none_or(|to| Some(to) == here || (same_thread(to) && answer.names_frame())) {
                    self.moment.keep(answer);
                }
            }
        }
        if let Some(looked) = looked {
            self.moved = selected.filter(|_| !before).or(self.moved);
            push(&mut self.moment.looked, looked);
        }
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T) {
    list.push_back(item);
    if list.len() > MANY {
        list.pop_front();
    }
}

/// What an `eval` event says of a value; none for what is no expression.
fn asked(event: &Event) -> Option<Asked> {
    let data = &event.data;
    if data.get("set").is_some() || data.get("view").is_some() {
        return None;
    }
    let found = match (data.get("value").and_then(read::<Value>), text(data, "error")) {
        (Some(value), _) => Ok(value),
        (None, Some(error)) => Err(error),
        (None, None) => return None,
    };
    let frame = data.get("frame").and_then(Json::as_u64).and_then(|frame| u32::try_from(frame).ok());
    let expression = text(data, "expression")?;
    Some(Asked { expression, thread: event.thread, frame, effect: frame.is_none(), found })
}

fn read<T: for<'a> Deserialize<'a>>(data: &Json) -> Option<T> {
    T::deserialize(data).ok()
}

fn text(data: &Json, name: &str) -> Option<String> {
    data.get(name)?.as_str().map(Into::into)
}

#[cfg(test)]
mod tests;
