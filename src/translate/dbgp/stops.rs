//! Going on and stopping: which breakpoint it was, and whether anyone needs to know.

use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::{Value as Json, json};

use super::xml::Element;
use super::{Happening, Translator};

/// How long a program may take to stop when it is asked to.
const STOPPING: Duration = Duration::from_secs(3);

/// The program is on its way.
#[derive(Debug)]
pub(super) struct Run {
    /// The number of the command whose answer is the next stop.
    transaction: String,
    how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    On,
    Step,
    Entry,
    /// To its end.
    End,
}

impl Translator<'_> {
    /// The program is configured: it goes, to its first line or further.
    pub(super) fn set_off(&mut self) {
        if self.stop_on_entry {
            self.go("step_into", None, How::Entry);
        } else {
            self.go("run", None, How::On);
        }
    }

    pub(super) fn resume(&mut self, seq: i64, command: &str, arguments: &Json) {
        if self.run.is_some() || self.commands.is_none() {
            let why = if self.run.is_some() { "the program is running" } else { "the program has ended" };
            return self.client.answer(seq, command, Err(why.into()));
        }
        let thread = arguments.get("threadId").and_then(Json::as_i64);
        self.client.answer(seq, command, Ok(json!({ "allThreadsContinued": true })));
        match command {
            "next" => self.go("step_over", thread, How::Step),
            "stepIn" => self.go("step_into", thread, How::Step),
            "stepOut" => self.go("step_out", thread, How::Step),
            _ => self.go("run", None, How::On),
        }
    }

    fn go(&mut self, command: &str, thread: Option<i64>, how: How) {
        self.frames.clear();
        self.kept.clear();
        self.thrown = None;
        let number = thread.unwrap_or(self.thread).to_string();
        let options: &[(char, &str)] = if self.dialect.threads { &[('t', &number)] } else { &[] };
        if let Some(commands) = &mut self.commands
            && let Ok(transaction) = commands.send(command, options, None)
        {
            self.run = Some(Run { transaction, how });
        }
    }

    pub(super) fn said(&mut self, element: &Element) {
        if element.name == "notify" {
            return self.notified(element);
        }
        let is_it = |run: &&Run| element.attribute("transaction_id") == Some(run.transaction.as_str());
        if self.run.as_ref().filter(is_it).is_none() {
            return;
        }
        let Some(run) = self.run.take() else { return };
        self.thread = element.number("thread").unwrap_or(1);
        match element.attribute("status") {
            Some("break") => self.stopped(element, run.how),
            // The program is over; its interpreter still has to clean up.
            Some("stopping") => self.go("run", None, How::End),
            _ => {}
        }
    }

    fn stopped(&mut self, element: &Element, how: How) {
        // A step that something else ended is still on Xdebug's mind: it stops where the step would have.
        let ended = element.first("breakpoint").is_some();
        self.stray |= how == How::Step && ended && self.dialect.simple;
        let message = element.first("message");
        if let Some(class) = message.and_then(|message| message.attribute("exception")) {
            let text = message.map(Element::content).unwrap_or_default();
            return self.thrown(element, class, &text);
        }
        let hit: Vec<String> =
            element.all("breakpoint").filter_map(|breakpoint| breakpoint.attribute("id").map(Into::into)).collect();
        if !hit.is_empty() {
            let ids = self.hit(&hit);
            if !ids.is_empty() {
                return self.tell("breakpoint", json!({ "hitBreakpointIds": ids }));
            }
            // None of them is wanted now; what it did before, it goes on with.
            if how == How::On && !self.pausing {
                return self.go("run", None, How::On);
            }
        }
        if how == How::On && !self.pausing && std::mem::take(&mut self.stray) {
            return self.go("run", None, How::On);
        }
        match how {
            How::Step => self.tell("step", json!({})),
            How::Entry => self.tell("entry", json!({})),
            How::On | How::End => self.tell("pause", json!({})),
        }
    }

    fn thrown(&mut self, element: &Element, class: &str, text: &str) {
        let hit = element.first("breakpoint");
        let raised = hit.and_then(|hit| hit.attribute("id")).is_some_and(|id| self.spots.is_raised(id));
        let named = hit.is_some_and(|hit| hit.attribute("exception") == Some(class));
        let is_error = element.first("message").is_some_and(|message| message.attribute("code").is_some());
        let wanted = match is_error {
            _ if named && raised => true,
            // PHP's warnings and notices come as exceptions, too; the end by one that was thrown was told then.
            true => class.to_lowercase().contains("error") && !text.starts_with("Uncaught "),
            false => raised || self.is_uncaught(element, class),
        };
        if !wanted {
            return self.go("run", None, How::On);
        }
        self.thrown = Some((class.to_string(), text.to_string()));
        self.tell("exception", json!({ "text": class, "description": text }));
    }

    /// Where the engine does not tell it, the stack and the sources do.
    fn is_uncaught(&mut self, element: &Element, class: &str) -> bool {
        let Some(code) = self.dialect.uncaught else {
            return element.first("message").and_then(|message| message.attribute("uncaught")) == Some("1");
        };
        let Ok(stack) = self.demand("stack_get", &[], None) else { return true };
        let place = |frame: &Element| {
            (
                super::values::path_of(frame.attribute("filename").unwrap_or_default()),
                frame.number("lineno").unwrap_or(0),
            )
        };
        let places: Vec<(String, i64)> = stack.all("stack").map(place).collect();
        let answer = self.demand("eval", &[], Some(&code(class, &places)));
        // What can't be told is shown rather than missed.
        answer.ok().and_then(|answer| answer.first("property").map(Element::content)).is_none_or(|said| said != "0")
    }

    fn tell(&mut self, reason: &str, mut body: Json) {
        self.pausing = false;
        body["reason"] = json!(reason);
        body["threadId"] = json!(self.thread);
        body["allThreadsStopped"] = json!(true);
        self.client.event("stopped", body);
    }

    pub(super) fn exception_info(&self) -> Result<Json, String> {
        let (class, text) = self.thrown.as_ref().ok_or("nothing was thrown")?;
        Ok(json!({
            "exceptionId": class,
            "description": text,
            "breakMode": "always",
            "details": { "typeName": class, "message": text },
        }))
    }

    pub(super) fn pause(&mut self) -> Result<Json, String> {
        if self.run.is_none() {
            return Err("the program stands still".into());
        }
        self.pausing = true;
        let asked = if self.dialect.hears { self.demand("break", &[], None).map(|_| ()) } else { self.signal() };
        if asked.is_err() {
            self.pausing = false;
        }
        asked.map(|()| json!({}))
    }

    fn signal(&self) -> Result<(), String> {
        let pid = self.pid.ok_or("the program has ended")?;
        kill_process(pid, Signal::URG).map_err(|error| error.to_string())
    }

    /// Does something that needs the engine's ear, stopping a program that runs for that moment.
    pub(super) fn while_still<T>(&mut self, act: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.run.is_none() || self.dialect.hears {
            return act(self);
        }
        let stopped = self.interrupt()?;
        let result = act(self);
        match stopped {
            // It had a reason of its own to stop; ours is still on its way.
            Some((element, run)) => {
                self.stray = true;
                self.run = Some(run);
                self.said(&element);
            }
            None => self.go("run", None, How::On),
        }
        result
    }

    /// Stops a program whose engine does not hear; answers the stop, if it was made for another reason.
    pub(super) fn interrupt(&mut self) -> Result<Option<(Element, Run)>, String> {
        let Some(run) = self.run.take() else { return Ok(None) };
        self.signal()?;
        let deadline = Instant::now() + STOPPING;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.happenings.recv_timeout(left) {
                Ok(Happening::Said(element)) if element.attribute("transaction_id") == Some(&run.transaction) => {
                    let own = element.first("breakpoint").is_some() || element.attribute("status") != Some("break");
                    return Ok(own.then_some((element, run)));
                }
                Ok(Happening::Said(element)) => self.notified(&element),
                Ok(end @ (Happening::Left | Happening::Silent | Happening::Ended(_))) => {
                    self.later.push_back(end);
                    return Err("the program has ended".into());
                }
                Ok(other) => self.later.push_back(other),
                Err(_) => {
                    self.run = Some(run);
                    return Err("the program did not stop for it; PHP needs its extension pcntl for that".into());
                }
            }
        }
    }
}
