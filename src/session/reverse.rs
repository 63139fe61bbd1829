//! Recordings, and native commands that let the program run: backwards, or forwards where the request would hide a failure.

use serde_json::{Value as Json, json};

use super::{Pending, Resume, Session};
use crate::adapters::Reverse;
use crate::dap::types::StoppedBody;
use crate::failure::Failure;
use crate::model::Reason;

impl Reverse {
    pub(super) const fn command(&self, how: &Resume) -> &'static str {
        match how {
            Resume::Back => self.back,
            _ => self.to_breakpoint,
        }
    }
}

impl Session {
    pub(super) fn native_request(&self, command: &str) -> (&'static str, Json) {
        ("evaluate", json!({ "expression": (self.adapter.quirks.raw)(command), "context": "repl" }))
    }

    /// The request that lets all threads go.
    pub(super) fn plain_continue(&self, thread: i64) -> (&'static str, Json) {
        match self.adapter.natives.go {
            Some(command) => self.native_request(command),
            None => ("continue", json!({ "threadId": thread })),
        }
    }

    pub(super) fn begin_recording(&mut self, body: StoppedBody) {
        self.to_record = false;
        let (command, arguments) =
            self.native_request(self.adapter.natives.reverse.map_or("", |reverse| reverse.record));
        self.recording_at = Some(body);
        self.request(command, arguments, Pending::Record, self.limits.request);
    }

    /// The recording has begun: the stop it began at is looked at as any other.
    pub(super) fn on_recording(&mut self, result: Result<Json, String>) {
        let Some(body) = self.recording_at.take() else { return };
        match result {
            Ok(_) => self.arrive(body),
            Err(message) => {
                self.entered();
                let text = format!("the recording could not begin: {}", super::first_lines(&message));
                self.make_standing(body.thread_id, Reason::Other { text });
            }
        }
    }

    /// The failure of a step back in a program that is not recorded.
    pub(super) fn nothing_recorded(&self, message: &str) -> Option<Failure> {
        let reverse = self.adapter.natives.reverse.filter(|reverse| message.contains(reverse.not_recorded))?;
        let failure = Failure::wrong_state("nothing was recorded to go back in")
            .hint("record from the beginning: bugeye restart --record")
            .hint(format!("or from here on: bugeye raw '{}'", reverse.record));
        Some(failure)
    }
}
