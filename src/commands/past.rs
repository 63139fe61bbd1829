//! Answers from a record: the recorded answer of the very same command, or one put together from what is known of that
//! moment, and what is said where there is none.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::lines::{Source, around};
use super::looking::At;
use super::{Command, Past, read_args, to_value};
use crate::adapters::{self, Quirks};
use crate::cli::typed;
use crate::failure::Failure;
use crate::hub::asked::bound;
use crate::model::{Frame, SessionState, Stop, ThreadInfo, Variable};
use crate::render::{cut, quoted};
use crate::session::check_thread;
use crate::store::blobs;
use crate::store::read::Head;
use crate::store::replay::{self, Answered, Moment};
use crate::store::sources::Text;

/// Recorded commands that a complaint names.
const NAMED: usize = 8;

/// Answers a command from a record.
pub(super) fn recall<C: Command>(args: Value, moment: &Moment) -> Result<Value, Failure> {
    let command: C = read_args(args)?;
    let mut asked = to_value(&command)?;
    bound(&mut asked);
    let same = |answer: &&Answered| {
        let args = || read_args::<C>(answer.args.clone()).ok().and_then(|known| to_value(known).ok());
        answer.name == C::NAME && args().as_ref() == Some(&asked)
    };
    let past = command.past();
    let recorded = moment.answers.iter().rev().find(same).filter(|_| matches!(past, Past::Reads | Past::Selects));
    match recorded.map(|answer| &answer.outcome) {
        Some(Ok(result)) => {
            let mut whole = json!({ "result": result });
            blobs::restore(&moment.head.folder, &mut whole);
            let result = whole["result"].take();
            if fits::<C::Output>(&result) {
                return Ok(result);
            }
        }
        Some(Err(failure)) => return Err(failure.clone()),
        None => {}
    }
    to_value(command.recorded(moment)?)
}

/// Whether a result reads as one; a record may have been written by anybody.
fn fits<O: DeserializeOwned>(result: &Value) -> bool {
    serde_json::from_value::<O>(result.clone()).is_ok()
}

/// What is said to a command that the record has no answer to.
pub fn unanswered(moment: &Moment, name: &str, past: Past) -> Failure {
    match past {
        Past::Reads | Past::Told | Past::Selects => missing(moment, name),
        Past::Apart | Past::Changes | Past::Beside => refused(moment, name),
    }
}

fn refused(moment: &Moment, name: &str) -> Failure {
    let head = &moment.head;
    let message = format!("{} is a record: it can't be continued, and `{name}` has nothing to act on", head.id);
    instead(head, Failure::refused(message))
}

/// What is said to a command for a session that is over, where no moment of its record was named.
#[must_use]
pub fn over(head: &Head, name: &str) -> Failure {
    let session = match head.alias.as_str() {
        "" => head.id.clone(),
        alias => format!("`{alias}`"),
    };
    let message = format!("there is no session {session} any more, only its record: `{name}` has nothing to act on");
    instead(head, Failure::not_found(message))
}

fn instead(head: &Head, failure: Failure) -> Failure {
    let words = if adapters::by_name(&head.adapter).is_some_and(|adapter| adapter.quirks.agents) {
        typed(&["rerun", &head.id])
    } else {
        let words: Vec<&str> = ["run", "--"].into_iter().chain(head.words.iter().map(String::as_str)).collect();
        typed(&words)
    };
    failure
        .hint(format!("start it again: {}", quoted(cut(&words, 500).0)))
        .hint(format!("look at it: bugeye -s {} --at last context", head.id))
}

/// What the record does not have at this moment, and what it has.
pub fn missing(moment: &Moment, what: &str) -> Failure {
    if moment.stood.is_none() {
        return not_standing(moment);
    }
    let failure = Failure::not_found(format!("{} has no `{what}` at {}", moment.head.id, place(moment)));
    let mut asked: Vec<String> = Vec::new();
    for answer in moment.answers.iter().filter(|answer| answer.outcome.is_ok()) {
        let name = words(answer);
        if !asked.contains(&name) && asked.len() < NAMED {
            asked.push(name);
        }
    }
    let derived = "context, source, backtrace, locals, print NAME, output, status, breaks";
    let failure = failure.hint(format!("recorded at every stop: {derived}"));
    if asked.is_empty() {
        return failure.hint("nothing else was asked there");
    }
    failure.hint(format!("asked there: {}", asked.join("; ")))
}

/// A command of the record in a few words.
fn words(answer: &Answered) -> String {
    let text = |value: &Value| value.as_str().map(Into::into);
    let list = |name: &str| answer.args.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(text);
    let what = answer.args.get("what").and_then(text);
    let words: Vec<String> =
        std::iter::once(answer.name.clone()).chain(what).chain(list("words")).chain(list("expressions")).collect();
    let words = words.join(" ");
    quoted(cut(&words, 60).0)
}

/// `45 (stop 3)`
fn place(moment: &Moment) -> String {
    match &moment.stood {
        Some(stood) => format!("{} (stop {})", moment.seq, stood.stop.number),
        None => moment.seq.to_string(),
    }
}

fn not_standing(moment: &Moment) -> Failure {
    let was = match moment.state {
        SessionState::Starting => "was being started",
        SessionState::Held => "was held before its beginning",
        SessionState::Running | SessionState::Stopped => "was running",
        SessionState::Exited => "had ended",
        SessionState::Lost => "was lost",
    };
    let failure = Failure::wrong_state(format!("at {} of {} the program {was}", moment.seq, moment.head.id));
    match replay::extent(&moment.head) {
        Ok(extent) if extent.stops > 0 => {
            failure.hint(format!("its stops: --at stop:1 to --at stop:{} (--at first, --at last)", extent.stops))
        }
        _ => failure.hint("it never stopped"),
    }
}

/// The stop that the program stands at.
pub fn standing(moment: &Moment) -> Result<&Stop, Failure> {
    moment.stood.as_ref().map(|stood| &stood.stop).ok_or_else(|| not_standing(moment))
}

/// Values of a stop are only told while nothing has changed them.
pub fn unchanged(moment: &Moment, what: &str) -> Result<(), Failure> {
    let Some((seq, name)) = &moment.changed else { return Ok(()) };
    let seq = *seq;
    let id = &moment.head.id;
    Err(Failure::not_found(format!(
        "{id} has no `{what}` at {}: `{}` at {seq} may have changed it",
        place(moment),
        quoted(name)
    ))
    .hint(format!("as it was before: bugeye -s {id} --at {} {what}", seq.saturating_sub(1))))
}

/// A frame that a look from the record is about.
#[derive(Debug)]
pub struct Spot<'a> {
    pub stop: &'a Stop,
    pub thread: &'a ThreadInfo,
    pub frame: &'a Frame,
    /// None where they were not read.
    locals: Option<&'a [Variable]>,
    pub gaps: &'a [String],
}

impl<'a> Spot<'a> {
    /// Finds it, as a look at a live program would.
    pub fn of(moment: &'a Moment, at: &At) -> Result<Self, Failure> {
        let stop = standing(moment)?;
        let (selected, frame) = moment.selection().unwrap_or((stop.thread.id, stop.frame));
        let thread = at.thread.unwrap_or(selected);
        let frame = at.frame.unwrap_or(if thread == selected { frame } else { 0 });
        Self::at(moment, stop, thread, frame)
    }

    /// A frame by its number.
    pub fn at(moment: &'a Moment, stop: &'a Stop, thread: i64, number: u32) -> Result<Self, Failure> {
        let own = stop.frames.iter().find(|frame| frame.index == number).filter(|_| thread == stop.thread.id);
        if let Some(frame) = own.filter(|_| number == stop.frame) {
            let (locals, gaps) = (Some(stop.locals.as_slice()), stop.gaps.as_slice());
            return Ok(Self { stop, thread: &stop.thread, frame, locals, gaps });
        }
        let looked = |looked: &&replay::Looked| looked.thread.id == thread && looked.frame.index == number;
        if let Some(looked) = moment.looked.iter().rev().find(looked) {
            let (locals, gaps) = (Some(looked.locals.as_slice()), looked.gaps.as_slice());
            return Ok(Self { stop, thread: &looked.thread, frame: &looked.frame, locals, gaps });
        }
        if let Some(frame) = own {
            return Ok(Self { stop, thread: &stop.thread, frame, locals: None, gaps: &[] });
        }
        if thread != stop.thread.id {
            check_thread(moment.stood.iter().flat_map(|stood| &stood.threads).map(|known| known.id), thread)?;
            return Err(missing(moment, &format!("thread {thread}")));
        }
        if stop.more_frames {
            return Err(missing(moment, &format!("frame {number}")));
        }
        let depth = stop.frames.len();
        Err(Failure::not_found(format!("there is no frame {number}: the stack has {depth}"))
            .hint("list them: bugeye backtrace"))
    }

    /// Its variables, if they were read and nothing has changed them since.
    pub fn locals(&self, moment: &Moment, what: &str) -> Result<Vec<Variable>, Failure> {
        unchanged(moment, what)?;
        let locals = self.locals.ok_or_else(|| missing(moment, &format!("{what} of frame {}", self.frame.index)))?;
        // What a function returned is shown where it was left, and not among the variables later.
        let tells = quirks(moment).is_some_and(|quirks| quirks.returned.is_some());
        let kept = locals.iter().filter(|variable| !tells || !variable.name.starts_with("(return) "));
        Ok(kept.map(|variable| Variable { change: None, ..variable.clone() }).collect())
    }

    /// The lines around it, as they were.
    #[must_use]
    pub fn source(&self, moment: &Moment, context: u32) -> Option<Source> {
        let (file, line) = (self.frame.file.as_ref()?, self.frame.line?);
        let text = source_text(moment, file).ok()?;
        let mut source = around(file, &text.text, line, context)?;
        source.note = text.note;
        Some(source)
    }
}

/// The ways of the adapter that the session ran under.
pub fn quirks(moment: &Moment) -> Option<&'static Quirks> {
    adapters::by_name(&moment.head.adapter).map(|adapter| &adapter.quirks)
}

/// A source file as it was.
pub fn source_text(moment: &Moment, file: &str) -> Result<Text, Failure> {
    moment.sources.text(file, moment.ts)
}
