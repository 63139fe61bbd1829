//! Why the program stopped: what the event says, and what is asked where it does not say enough.

use serde_json::{Value as Json, json};

use super::breakpoints::UNTIL_ID;
use super::{Pending, Session};
use crate::dap::types::{self, StoppedBody, read};
use crate::model::{Reason, Target};

impl Session {
    pub(super) fn reason(&self, body: &StoppedBody, ids: &[u32]) -> Reason {
        let text = body.description.clone().or_else(|| body.text.clone());
        let signal = text.as_deref().and_then(|text| text.strip_prefix("signal ")).map(|rest| {
            let (name, detail) = rest.split_once(':').unwrap_or((rest, ""));
            (name.trim().to_string(), Some(detail.trim().to_string()).filter(|detail| !detail.is_empty()))
        });
        if ids.contains(&UNTIL_ID) {
            return Reason::Reached;
        }
        if let Some(word) = self.caught_word(ids) {
            return Reason::Exception { text: word.to_string() };
        }
        if let Some(reason) = self.watch_reason(body, ids) {
            return reason;
        }
        if self.target.is_attached() && self.stops == 0 && ids.is_empty() {
            return Reason::Attached;
        }
        // A pause may be told as a signal, or as the end of a step of the adapter's own.
        let own_step = body.reason == "step" && !self.stepping;
        let told_apart = self.adapter.natives.why.is_some() && body.reason != "pause";
        if self.asked_to_pause
            && ids.is_empty()
            && !told_apart
            && (own_step || ["pause", "exception", "signal"].contains(&body.reason.as_str()))
        {
            let is_stop = signal.as_ref().is_none_or(|(name, _)| name == "SIGSTOP");
            if is_stop {
                return Reason::Pause;
            }
        }
        if let Some((name, detail)) = signal {
            return Reason::Signal { name, detail };
        }
        // A marker: the report asks.
        let unsaid = matches!(body.reason.as_str(), "signal" | "stopped") || self.is_caught(body);
        if unsaid && self.adapter.natives.why.is_some() {
            return Reason::Exception { text: String::new() };
        }
        if self.adapter.quirks.throws_as_breakpoints && self.is_caught(body) {
            return Reason::Exception { text: "C++ Throw".into() };
        }
        match body.reason.as_str() {
            "breakpoint" | "function breakpoint" | "instruction breakpoint" => {
                Reason::Breakpoint { ids: Vec::new(), hit: 0 }
            }
            "step" | "goto" => Reason::Step,
            "pause" => Reason::Pause,
            "entry" if matches!(self.target, Target::Core { .. }) => {
                Reason::Other { text: "its core file was made".into() }
            }
            "entry" => Reason::Entry,
            "exception" => {
                if let Some(text) = (self.adapter.quirks.exception_text)(body) {
                    return Reason::Exception { text };
                }
                let (kind, detail) = (exception_name(body), body.description.as_deref());
                let text = match detail {
                    Some(detail) if !kind.is_empty() && detail != kind => format!("{kind}: {detail}"),
                    Some(detail) => detail.to_string(),
                    None => kind.to_string(),
                };
                Reason::Exception { text }
            }
            other => Reason::Other { text: text.unwrap_or_else(|| other.to_string()) },
        }
    }

    /// Whether a breakpoint that `catch` made was hit.
    pub(super) fn is_caught(&self, body: &StoppedBody) -> bool {
        let unknown = self.adapter.quirks.throws_as_breakpoints
            && body.reason == "breakpoint"
            && !body.hit_breakpoint_ids.is_empty()
            && self.hit_wishes(body).is_empty();
        unknown || body.hit_breakpoint_ids.iter().any(|id| self.exception_ids.contains(id))
    }

    pub(super) fn is_thrown(&self, body: &StoppedBody) -> bool {
        // A throw that a filter caught may be told as a breakpoint of the adapter's own.
        body.reason == "breakpoint" && self.hit_wishes(body).is_empty() && !self.wanted_types().is_empty()
    }

    /// The types named with `catch throw TYPE`; other throws are no stop.
    pub(super) fn wanted_types(&self) -> Vec<&str> {
        self.catch.iter().filter_map(|word| word.split_once(' ')).map(|(_, kind)| kind.trim()).collect()
    }

    /// Asks in the frame of an exception whether it is one to stop at.
    pub(super) fn ask_thrown(&mut self, body: StoppedBody, expression: &str) {
        let thread = body.thread_id.unwrap_or(1);
        self.thrown = Some((body, expression.to_string()));
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": 1 });
        self.request("stackTrace", arguments, Pending::Thrown, self.limits.inspect);
    }

    /// The frame came, or then the answer: the wanted ones are a stop.
    pub(super) fn on_thrown(&mut self, result: Result<Json, String>) {
        let Some((body, expression)) = self.thrown.take() else { return };
        if !expression.is_empty() {
            let stack: types::StackTraceBody = result.map(|body| read(&body)).unwrap_or_default();
            let frame = stack.stack_frames.first().map(|frame| frame.id);
            let context = self.adapter.quirks.print_contexts.last().copied().unwrap_or("watch");
            let arguments = json!({ "expression": expression, "frameId": frame, "context": context });
            self.thrown = Some((body, String::new()));
            self.request("evaluate", arguments, Pending::Thrown, self.limits.inspect);
            return;
        }
        let value: types::EvaluateBody = result.map(|body| read(&body)).unwrap_or_default();
        let text = (self.adapter.quirks.tidy)(&value.result, value.kind.as_deref());
        let wanted = self.wanted_types();
        if wanted.is_empty() {
            return if text == "True" { self.go_on(body.thread_id) } else { self.stand(&body, &[]) };
        }
        let matches = self.adapter.natives.thrown_type.is_none_or(|(_, is)| wanted.iter().any(|kind| is(&text, kind)));
        // What can't be told is shown rather than missed.
        if matches || text.is_empty() {
            self.stand(&body, &[]);
        } else {
            self.go_on(body.thread_id);
        }
    }

    /// The event did not say what was thrown; the adapter was asked.
    pub(super) fn on_reason(&mut self, epoch: u64, result: Result<Json, String>) {
        if epoch != self.epoch {
            return;
        }
        let info: types::ExceptionInfoBody = result.map(|body| read(&body)).unwrap_or_default();
        let body = StoppedBody {
            reason: "exception".into(),
            description: info.description.or(Some(info.exception_id)),
            ..StoppedBody::default()
        };
        let reason = self.reason(&body, &[]);
        if let Reason::Signal { name, .. } = &reason {
            self.last_signal = Some(name.clone());
        }
        if let Some(standing) = &mut self.standing {
            standing.reason = reason;
        }
    }

    /// As [`Session::on_reason`], by the debugger's own words.
    pub(super) fn on_why(&mut self, epoch: u64, result: Result<Json, String>) {
        let (true, Ok(body), Some((_, read_why))) = (epoch == self.epoch, result, self.adapter.natives.why) else {
            return;
        };
        let reason = read_why(&read::<types::EvaluateBody>(&body).result);
        if let Some(Reason::Signal { name, .. }) = &reason {
            self.last_signal = Some(name.clone());
        }
        if let (Some(standing), Some(reason)) = (&mut self.standing, reason) {
            standing.reason = reason;
        }
    }
}

/// The exception's type, without what debugpy writes behind it.
pub(super) fn exception_name(body: &StoppedBody) -> &str {
    without_note(body.text.as_deref().unwrap_or_default())
}

pub(super) fn without_note(name: &str) -> &str {
    name.split_once("(note:").map_or(name, |(name, _)| name).trim()
}
