//! What the protocol's plain requests do not cover: native commands, data breakpoints, jumps.

use serde_json::{Value as Json, json};

use super::gather::Purpose;
use super::inspect::Purposeful;
use super::look::Look;
use super::{Answer, OpId, Pending, Session, WatchLine};
use crate::adapters::{Access, Watching};
use crate::dap::types::{EvaluateBody, StoppedBody, read};
use crate::failure::Failure;
use crate::model::{Reason, SessionState, View};

/// A data breakpoint of this session.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    pub line: WatchLine,
    /// The debugger's own number.
    pub number: u32,
    /// Where requests have set it.
    data: super::data::Data,
}

impl Watched {
    pub const fn by_request(line: WatchLine, data: super::data::Data) -> Self {
        Self { line, number: 0, data }
    }

    pub const fn data(&self) -> &super::data::Data {
        &self.data
    }

    pub const fn data_mut(&mut self) -> &mut super::data::Data {
        &mut self.data
    }
}

/// Where the making of a data breakpoint is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Set {
        expression: String,
        access: Access,
        condition: Option<String>,
    },
    Condition,
    Remove {
        id: u32,
    },
    /// By requests: whether it can be, that it was, its value and its address.
    Info {
        expression: String,
        access: Access,
        condition: Option<String>,
        frame: i64,
        function: String,
    },
    Placed {
        frame: i64,
    },
    Value {
        frame: i64,
    },
    Address,
}

/// Where a jump is: what was asked for, and the view of the answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Jump {
    Targets { line: u32, view: View },
    Done { view: View },
}

impl Session {
    pub(super) fn native(&mut self, op: OpId, command: String, look: &Look) {
        match self.check_stopped(look.thread) {
            Ok(()) => self.with_frame(op, look, Purposeful::Native(command)),
            Err(failure) => self.answer(op, Err(failure)),
        }
    }

    /// The text of a native command, or why it failed: a failure may come as a success with an error in its text.
    fn native_text(&self, result: Result<Json, String>, what: &str) -> Result<String, Failure> {
        let text = match result {
            Ok(body) => read::<EvaluateBody>(&body).result,
            Err(message) => return Err(self.adapter_failure(what, &message)),
        };
        match (self.adapter.natives.failure)(&text) {
            Some(message) => Err(Failure::refused(format!("{what}: {message}"))),
            None => Ok((self.adapter.quirks.raw_answer)(&text)),
        }
    }

    /// Sends a native command that needs no frame.
    fn send_native(&mut self, command: &str, why: Pending) {
        let arguments = json!({ "expression": (self.adapter.quirks.raw)(command), "context": "repl" });
        self.request("evaluate", arguments, why, self.limits.inspect);
    }

    pub(super) fn on_native(&mut self, op: OpId, result: Result<Json, String>) {
        let answer = self.native_text(result, "the debugger refused").map(Answer::Text);
        self.answer(op, answer);
    }

    pub(super) fn plain_request(
        &mut self,
        op: OpId,
        command: &'static str,
        arguments: Json,
        needs: (&str, &'static str),
    ) {
        let (capability, what) = needs;
        if self.state == SessionState::Starting {
            let failure = self.wrong_state();
            return self.answer(op, Err(failure));
        }
        if !self.capabilities.has(capability) {
            let failure = self.unsupported(what, "what it can do: bugeye doctor");
            return self.answer(op, Err(failure));
        }
        self.request(command, arguments, Pending::Request(op, what), self.limits.inspect);
    }

    pub(super) fn on_plain_request(&mut self, op: OpId, what: &str, result: Result<Json, String>) {
        let answer = result.map(Answer::Body).map_err(|message| self.adapter_failure(what, &message));
        self.answer(op, answer);
    }

    fn watching(&self) -> Result<Watching, Failure> {
        self.adapter.natives.watch.ok_or_else(|| {
            self.unsupported("data breakpoints", "stop where it may change: bugeye break PLACE --if 'EXPR'")
        })
    }

    pub(super) fn watch(&mut self, op: OpId, step: Step, look: &Look) {
        if self.watches_by_request() {
            return match self.check_stopped(look.thread) {
                Ok(()) => self.with_frame(op, look, Purposeful::Data(step)),
                Err(failure) => self.answer(op, Err(failure)),
            };
        }
        let watching = match self.watching().and_then(|watching| self.check_stopped(look.thread).map(|()| watching)) {
            Ok(watching) => watching,
            Err(failure) => return self.answer(op, Err(failure)),
        };
        if let Step::Set { expression, access, .. } = &step {
            let command = (watching.set)(expression, *access);
            self.with_frame(op, look, Purposeful::Watch(command, step));
        }
    }

    pub(super) fn unwatch(&mut self, op: OpId, id: u32) {
        let found = self.watches.iter().find(|watch| watch.line.id == id).map(|watch| watch.number);
        if found.is_some() && self.watches_by_request() {
            return self.send_data(op, Step::Remove { id });
        }
        match (found, self.watching()) {
            (Some(number), Ok(watching)) => {
                self.send_native(&(watching.remove)(number), Pending::Watch(op, Step::Remove { id }));
            }
            (_, Err(failure)) => self.answer(op, Err(failure)),
            (None, _) => {
                let failure =
                    Failure::not_found(format!("there is no watch {id}")).hint("list them: bugeye watch list");
                self.answer(op, Err(failure));
            }
        }
    }

    pub(super) fn list_watches(&mut self, op: OpId) {
        let lines = self.watches.iter().map(|watch| watch.line.clone()).collect();
        self.answer(op, Ok(Answer::Watches(lines)));
    }

    pub(super) fn on_watch(&mut self, op: OpId, step: Step, result: Result<Json, String>) {
        if self.watches_by_request() {
            return self.on_data_step(op, step, result);
        }
        let text = match self.native_text(result, "it can't be watched") {
            Ok(text) => text,
            Err(failure) => {
                // A watch whose condition was refused must not stay behind without it.
                if step == Step::Condition
                    && let (Some(watch), Some(watching)) = (self.watches.pop(), self.adapter.natives.watch)
                {
                    self.send_native(&(watching.remove)(watch.number), Pending::Quiet);
                }
                return self.answer(op, Err(failure));
            }
        };
        match step {
            Step::Set { expression, access, condition } => {
                let Ok(watching) = self.watching() else { return };
                let Some(number) = (watching.number)(&text) else {
                    let failure = Failure::refused(format!("it can't be watched: {}", super::first_lines(&text)));
                    return self.answer(op, Err(failure));
                };
                let id = self.next_watch;
                self.next_watch += 1;
                let value = (watching.values)(&text).pop().and_then(|(_, _, new)| new);
                let line = WatchLine { id, expression, access, condition: condition.clone(), hits: 0, value };
                self.watches.push(Watched { line, number, data: super::data::Data::default() });
                match condition {
                    Some(condition) => {
                        self.send_native(
                            &(watching.condition)(number, &condition),
                            Pending::Watch(op, Step::Condition),
                        );
                    }
                    None => self.list_watches(op),
                }
            }
            Step::Condition | Step::Info { .. } | Step::Placed { .. } | Step::Value { .. } | Step::Address => {
                self.list_watches(op);
            }
            Step::Remove { id } => {
                self.watches.retain(|watch| watch.line.id != id);
                self.list_watches(op);
            }
        }
    }

    /// The reason of a stop that a data breakpoint made. Its values are asked for when the report is made.
    pub(super) fn watch_reason(&self, body: &StoppedBody, ids: &[u32]) -> Option<Reason> {
        if self.watches_by_request() {
            return self.data_reason(body);
        }
        let watching = self.adapter.natives.watch.filter(|_| !self.watches.is_empty())?;
        let number = (watching.stopped)(body);
        let unnamed = body.reason == "breakpoint" && ids.is_empty() && body.description.is_none();
        if number.is_none() && !unnamed && body.reason != "data breakpoint" {
            return None;
        }
        let watch = self.watches.iter().find(|watch| Some(watch.number) == number);
        let (id, expression) = watch.map_or((0, String::new()), |watch| (watch.line.id, watch.line.expression.clone()));
        Some(Reason::Watch { id, expression, old: None, new: None })
    }

    pub(super) fn ask_watch_values(&mut self) {
        if self.watches_by_request() {
            return self.ask_data_values();
        }
        if let Some(watching) = self.adapter.natives.watch {
            self.send_native(watching.list, Pending::WatchValues);
        }
    }

    pub(super) fn on_watch_values(&mut self, result: Result<Json, String>) {
        let (Some(watching), Ok(body)) = (self.adapter.natives.watch, result) else { return };
        let text = read::<EvaluateBody>(&body).result;
        let values = (watching.values)(&text);
        let Some(standing) = &mut self.standing else { return };
        let gone = (watching.gone)(&text);
        let (over, left) = std::mem::take(&mut self.watches).into_iter().partition(|w| gone.contains(&w.number));
        self.watches = left;
        if !over.is_empty() {
            let over: Vec<Watched> = over;
            let names: Vec<String> = over.iter().map(|w| format!("{} {}", w.line.id, w.line.expression)).collect();
            let text = format!("watch {} is over: its function has returned", names.join(", "));
            standing.reason = Reason::Other { text };
            return;
        }
        let Reason::Watch { id, expression, old, new } = &mut standing.reason else { return };
        for watch in &mut self.watches {
            let Some((_, before, now)) = values.iter().find(|(number, ..)| *number == watch.number) else { continue };
            let changed = watch.line.value != *now;
            // Without a number in the event, the one whose value changed is the one.
            if *id == watch.line.id || (*id == 0 && (changed || values.len() == 1)) {
                watch.line.hits += 1;
                *id = watch.line.id;
                expression.clone_from(&watch.line.expression);
                old.clone_from(before);
                new.clone_from(now);
            }
            watch.line.value.clone_from(now);
        }
    }

    pub(super) fn jump(&mut self, op: OpId, file: &str, line: u32, view: View) {
        if let Err(failure) = self.check_stopped(None) {
            return self.answer(op, Err(failure));
        }
        if let Some(jump) = self.adapter.natives.jump {
            let command = jump(file, line);
            return self.with_frame(op, &Look { view, ..Look::default() }, Purposeful::Jump(command, view));
        }
        if !self.capabilities.has("supportsGotoTargetsRequest") {
            let failure = self.unsupported("going on from another line", "run to it: bugeye until PLACE");
            return self.answer(op, Err(failure));
        }
        let arguments = json!({ "source": { "path": file }, "line": line });
        self.request("gotoTargets", arguments, Pending::Goto(op, Jump::Targets { line, view }), self.limits.inspect);
    }

    pub(super) fn on_goto(&mut self, op: OpId, jump: &Jump, result: Result<Json, String>) {
        let body = match result {
            Ok(body) => body,
            Err(message) => {
                let failure = self.adapter_failure("the program can't go on from there", &message);
                return self.answer(op, Err(failure));
            }
        };
        match *jump {
            Jump::Targets { line, view } => {
                let target = body.pointer("/targets/0/id").and_then(Json::as_i64);
                let (Some(target), Some(standing)) = (target, &self.standing) else {
                    let failure = Failure::refused(format!("the program can't go on from line {line}"))
                        .hint("the line must be in the current function");
                    return self.answer(op, Err(failure));
                };
                let arguments = json!({ "threadId": standing.thread, "targetId": target });
                self.request("goto", arguments, Pending::Goto(op, Jump::Done { view }), self.limits.inspect);
            }
            Jump::Done { view } => {
                let text = read::<EvaluateBody>(&body).result;
                if let Some(message) = (self.adapter.natives.failure)(&text) {
                    let failure = Failure::refused(format!("the program can't go on from there: {message}"));
                    return self.answer(op, Err(failure));
                }
                self.stand_elsewhere(op, view);
            }
        }
    }

    /// The program stands at another place without having run: the report is made anew.
    fn stand_elsewhere(&mut self, op: OpId, view: View) {
        self.epoch += 1;
        self.stops += 1;
        self.end_gathers();
        if let Some(standing) = &mut self.standing {
            standing.number = self.stops;
            standing.reason = Reason::Reached;
            standing.frame = 0;
            standing.report = None;
        }
        self.waiters.push(super::Waiter { op, view, late: false });
        let look = Look { frames: view.frames, locals: super::Locals::Selected, view, ..Look::default() };
        self.gather(Purpose::Stop, look);
    }
}
