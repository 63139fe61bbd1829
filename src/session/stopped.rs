//! What a `stopped` event means: which of our breakpoints, whether anyone needs to know, and the report.

use serde_json::{Value as Json, json};

use super::breakpoints::{ENTRY_ID, is_internal, is_trace};
use super::frames::LIBRARY_FRAMES;
use super::gather::Purpose;
use super::logpoints::pieces;
use super::look::{Locals, Look, Seen};
use super::reasons::exception_name;
use super::{Answer, Effect, Outcome, Pending, Session, Standing, Timer};
use crate::dap::types::{self, StoppedBody, read};
use crate::model::{Breakpoint, Change, Reason, SessionState, Stop, Target, ThreadInfo, View};

/// How long a `continued` event may lag behind the answer to the resume it announces.
const SETTLING: std::time::Duration = std::time::Duration::from_millis(150);
/// Threads that a stop is recorded with; with more there are none.
const RECORDED_THREADS: usize = 64;

impl Session {
    pub(super) fn on_stopped(&mut self, body: &Json) {
        let body: StoppedBody = read(body);
        match self.state {
            _ if self.exiting => {}
            SessionState::Running if self.detaching.is_some() && self.is_left_abruptly() => self.let_run(),
            SessionState::Running if self.adapter.quirks.call_reason == Some(body.reason.as_str()) => self.called(),
            SessionState::Running if self.resuming => self.early_stop(body),
            SessionState::Running if self.logging.is_some() || self.is_collecting() => self.queue_stop(body),
            SessionState::Running => self.arrive(body),
            SessionState::Stopped if self.is_calling() => self.arrive(body),
            SessionState::Stopped => self.queue_stop(body),
            _ => {}
        }
    }

    /// An expression called a function of the program: it stands where it stood.
    fn called(&mut self) {
        if let Some(stood) = self.stood.take() {
            self.epoch += 1;
            self.standing = Some(stood);
            self.set_state(SessionState::Stopped);
        }
    }

    /// A stop that comes before the resume is answered or announced: the new one, from an adapter that is quick, or one
    /// more telling of the stop before, once for each of its threads. What comes next tells.
    fn early_stop(&mut self, body: StoppedBody) {
        self.early.get_or_insert(body);
    }

    /// The resume was answered. An adapter that announces resumes will do so at once; what does not, has stopped.
    pub(super) fn on_resume_answered(&mut self) {
        if self.early.is_none() {
            self.resuming = false;
        } else if self.announces {
            self.out.push(Effect::Arm(Timer::Settle, SETTLING));
        } else {
            self.settle();
        }
    }

    /// The early stop was the new one.
    pub(super) fn settle(&mut self) {
        self.resuming = false;
        if let Some(body) = self.early.take()
            && self.state == SessionState::Running
        {
            self.arrive(body);
        }
    }

    /// Another thread has something to tell of its own: it is next. What only repeats the stop is dropped.
    fn queue_stop(&mut self, body: StoppedBody) {
        let known = |other: &StoppedBody| other.thread_id == body.thread_id;
        let alone = body.all_threads_stopped == Some(false);
        let news = alone || !self.hit_wishes(&body).is_empty();
        let current = self.logging.as_ref().map(|logging| logging.thread).or_else(|| self.collecting_thread());
        if news && !self.stands_in(body.thread_id) && current != body.thread_id && !self.queue.iter().any(known) {
            self.queue.push_back(body);
        }
    }

    /// Other threads stopped too, and nobody would tell of them: theirs are next.
    pub(super) fn on_also_stopped(&mut self, epoch: u64, result: Result<Json, String>) {
        let (true, Ok(answer), Some((_, read_stops))) =
            (epoch == self.epoch, result, self.adapter.natives.also_stopped)
        else {
            return;
        };
        for body in read_stops(&read::<types::EvaluateBody>(&answer).result) {
            self.queue_stop(body);
        }
    }

    /// Shows the next thread's stop instead of resuming, where one is left of the same moment.
    pub(super) fn next_queued(&mut self) -> bool {
        self.forget_removed();
        let Some(body) = self.queue.pop_front() else { return false };
        self.arrive_now(body);
        true
    }

    /// A breakpoint that was removed since stops nobody any more.
    pub(super) fn forget_removed(&mut self) {
        let mut queue = std::mem::take(&mut self.queue);
        queue.retain(|body| body.all_threads_stopped == Some(false) || !self.hit_wishes(body).is_empty());
        self.queue = queue;
    }

    fn stands_in(&self, thread: Option<i64>) -> bool {
        self.standing.as_ref().is_some_and(|standing| Some(standing.thread) == thread)
    }

    /// The program stands still. Decides whether that is news.
    pub(super) fn arrive(&mut self, body: StoppedBody) {
        self.resuming = false;
        if let (Some((command, _)), "breakpoint") = (self.adapter.natives.also_stopped, body.reason.as_str()) {
            let arguments = json!({ "expression": command, "context": "repl" });
            // Answered at the stop that is about to be made.
            self.request("evaluate", arguments, Pending::Also(self.epoch + 1), self.limits.inspect);
        }
        if !self.look_for_others(&body) {
            self.arrive_now(body);
        }
    }

    /// All that happened at this moment is known.
    pub(super) fn arrive_now(&mut self, body: StoppedBody) {
        self.epoch += 1;
        self.resuming = false;
        self.stood = None;
        if let Some(op) = self.detaching.filter(|_| self.adapter.quirks.disconnect_kills) {
            return self.let_go(op);
        }
        self.send_unsent();
        let mut ids = self.hit_wishes(&body);
        if self.to_record && ids.contains(&ENTRY_ID) {
            return self.begin_recording(body);
        }
        if self.entering && !self.enter(&ids, &body) {
            return;
        }
        if !self.entering && ids.contains(&ENTRY_ID) {
            self.entered();
            ids.retain(|id| *id != ENTRY_ID);
            if ids.is_empty() {
                return self.go_on(body.thread_id);
            }
        }
        if let Some(until) = self.until.take() {
            self.bound.remove(&until.id);
            self.refresh_breakpoints();
        }
        if self.unfinished && body.reason == "step" && !self.stepping {
            // The end of a step that is over for whoever asked for it.
            self.unfinished = false;
            return self.go_on(body.thread_id);
        }
        let exception = exception_name(&body);
        if body.reason == "exception" && self.is_ignored(exception) {
            return self.go_on(body.thread_id);
        }
        if self.take_for_trace(&body, &ids) {
            return;
        }
        self.arrive_at(body, ids);
    }

    /// As [`Session::arrive`], where these wishes are what the stop may be for.
    pub(super) fn arrive_at(&mut self, body: StoppedBody, ids: Vec<u32>) {
        let ids: Vec<u32> = ids.into_iter().filter(|id| self.is_for_thread(*id, body.thread_id)).collect();
        let returned = self.steps_in(body.thread_id) && std::mem::take(&mut self.returning);
        if returned && ids.is_empty() && body.reason == "step" {
            return self.log(body, Vec::new(), false);
        }
        if (ids.is_empty() && !self.hit_wishes(&body).is_empty()) || self.is_early(&ids) {
            return match self.is_stepping() {
                true => self.log(body, Vec::new(), false),
                false => self.go_on(body.thread_id),
            };
        }
        if body.reason == "exception" || self.is_thrown(&body) {
            let wanted = self.wanted_types();
            if let (false, Some((expression, _))) = (wanted.is_empty(), self.adapter.natives.thrown_type) {
                return self.ask_thrown(body, expression);
            }
            if let (true, Some(expression)) = (self.wants_failures(), self.adapter.quirks.handled) {
                return self.ask_thrown(body, expression);
            }
        }
        let logs: Vec<&Breakpoint> =
            self.wishes.iter().filter(|wish| wish.log.is_some() && ids.contains(&wish.id)).collect();
        if !logs.is_empty() {
            let lines = logs.iter().map(|wish| (wish.id, pieces(wish.log.as_deref().unwrap_or_default()))).collect();
            let stops_too = ids.len() > logs.len();
            return self.log(body, lines, stops_too);
        }
        self.stand(&body, &ids);
    }

    fn is_for_thread(&self, id: u32, thread: Option<i64>) -> bool {
        let wish = self.wishes.iter().find(|wish| wish.id == id);
        wish.and_then(|wish| wish.thread).is_none_or(|wanted| thread.is_none_or(|thread| thread == wanted))
    }

    /// The first stop of a program that is to stop at its beginning. False when it was let go on to there.
    fn enter(&mut self, ids: &[u32], body: &StoppedBody) -> bool {
        let at_breakpoint = ids.iter().any(|id| *id != ENTRY_ID);
        let has_entry = self.bound.get(&ENTRY_ID).is_some_and(|bound| bound.binding.why.is_none());
        if !ids.contains(&ENTRY_ID) && !at_breakpoint && has_entry && !is_fatal(body) {
            self.go_on(body.thread_id);
            return false;
        }
        if !at_breakpoint && ids.contains(&ENTRY_ID) && self.entry_in_source() {
            let thread = body.thread_id.unwrap_or(1);
            let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": 1 });
            self.request("stackTrace", arguments, Pending::Entry(thread), self.limits.inspect);
            return false;
        }
        self.entered();
        let entry = !at_breakpoint && !is_fatal(body);
        if entry {
            self.make_standing(body.thread_id, Reason::Entry);
        }
        !entry
    }

    pub(super) fn entered(&mut self) {
        self.entering = false;
        if self.bound.remove(&ENTRY_ID).is_some() {
            self.refresh_breakpoints();
        }
    }

    /// The language's runtime may have a function of the same name before the program's own, without source lines.
    fn entry_in_source(&self) -> bool {
        matches!(&self.target, Target::Launch(launch) if launch.entry_in_source)
    }

    pub(super) fn on_entry_frame(&mut self, thread: i64, result: Result<Json, String>) {
        let stack: types::StackTraceBody = result.map(|body| read(&body)).unwrap_or_default();
        let in_source = |frame: &types::StackFrame| {
            frame.line.is_some_and(|line| line > 0) && frame.source.as_ref().is_some_and(|source| source.path.is_some())
        };
        if stack.stack_frames.first().is_some_and(in_source) {
            self.entered();
            self.make_standing(Some(thread), Reason::Entry);
        } else {
            self.go_on(Some(thread));
        }
    }

    pub(super) fn stand(&mut self, body: &StoppedBody, ids: &[u32]) {
        let condition_error = (self.adapter.quirks.condition_error)(body);
        let reason = match condition_error {
            Some(_) => Reason::Breakpoint { ids: Vec::new(), hit: 0 },
            None => self.reason(body, ids),
        };
        let stepping = std::mem::take(&mut self.stepping);
        if self.adapter.quirks.keeps_step && reason != Reason::Pause {
            let elsewhere = body.thread_id != self.step_thread;
            self.unfinished = elsewhere && (self.unfinished || (stepping && reason != Reason::Step));
        }
        if stepping && reason != Reason::Step {
            self.forget_step();
        }
        let mut hit = 0;
        for id in ids.iter().filter(|id| !is_internal(**id)) {
            hit = hit.max(self.count_hit(*id));
        }
        let reason = match reason {
            Reason::Breakpoint { .. } => {
                Reason::Breakpoint { ids: ids.iter().copied().filter(|id| !is_internal(*id)).collect(), hit }
            }
            other => other,
        };
        if let Reason::Signal { name, .. } = &reason {
            self.last_signal = Some(name.clone());
        }
        self.make_standing(body.thread_id, reason);
        if let Some(standing) = &mut self.standing {
            standing.condition_failed = condition_error;
        }
        self.after_hits(ids);
    }

    /// An adapter may take a step up again that something has interrupted.
    pub(super) fn forget_step(&mut self) {
        if let Some(command) = self.adapter.quirks.forget_step {
            let arguments = json!({ "expression": command, "context": "repl" });
            self.request("evaluate", arguments, Pending::Quiet, self.limits.inspect);
        }
    }

    pub(super) fn make_standing(&mut self, thread: Option<i64>, reason: Reason) {
        self.asked_to_pause = false;
        self.stops += 1;
        let thread = thread.or_else(|| self.threads.first().map(|thread| thread.id)).unwrap_or(1);
        let standing = Standing {
            number: self.stops,
            reason,
            thread,
            frame: 0,
            condition_failed: None,
            stood: None,
            report: None,
        };
        self.standing = Some(standing);
        self.set_state(SessionState::Stopped);
        self.report();
    }

    /// Removes what was to stop once, and looks whether conditions could be evaluated.
    fn after_hits(&mut self, ids: &[u32]) {
        let mut spent = Vec::new();
        let mut doubtful = Vec::new();
        for wish in self.wishes.iter().filter(|wish| ids.contains(&wish.id)) {
            if wish.once {
                spent.push(wish.id);
            }
            let told = self.adapter.quirks.tells_condition_errors;
            let checked = told || self.bound.get(&wish.id).is_none_or(|bound| bound.condition_checked);
            if let (Some(condition), false) = (&wish.condition, checked) {
                doubtful.push((wish.id, condition.clone()));
            }
        }
        for id in &spent {
            self.wishes.retain(|wish| wish.id != *id);
            self.out.push(Effect::Spent(*id));
        }
        if !spent.is_empty() {
            self.refresh_breakpoints();
        }
        // Asked before the report's own questions are answered, so the report can carry the verdict.
        for (id, condition) in doubtful {
            self.check_condition_here(id, condition);
        }
    }

    /// Lets the program go on without telling anyone that it stopped.
    pub(super) fn go_on(&mut self, thread: Option<i64>) {
        let thread = thread.or_else(|| self.threads.first().map(|thread| thread.id)).unwrap_or(1);
        let (command, mut arguments) = self.plain_continue(thread);
        if self.adapter.quirks.agents {
            // A step or a pause that is under way goes on too.
            arguments["silent"] = Json::Bool(true);
        }
        self.go_on_with(command, arguments, thread);
    }

    /// The same by a step of this thread.
    pub(super) fn go_on_by(&mut self, command: &str, thread: i64) {
        self.go_on_with(command, json!({ "threadId": thread }), thread);
    }

    fn go_on_with(&mut self, command: &str, arguments: Json, thread: i64) {
        self.epoch += 1;
        self.standing = None;
        if self.next_queued() {
            return;
        }
        self.resuming = true;
        self.early = None;
        self.set_state(SessionState::Running);
        self.request(command, arguments, Pending::GoOn(thread), self.limits.request);
    }

    /// A program that can't be let go on has stopped after all.
    pub(super) fn on_gone_on(&mut self, thread: i64, result: Result<Json, String>) {
        match result {
            Ok(_) => self.on_resume_answered(),
            Err(message) if message == super::SILENT => self.settle(),
            Err(message) => {
                self.early = None;
                if std::mem::take(&mut self.resuming) {
                    let text = format!("the program could not be let go on: {}", super::first_lines(&message));
                    self.make_standing(Some(thread), Reason::Other { text });
                }
            }
        }
    }

    /// Collects the report of the stop just made.
    pub(super) fn report(&mut self) {
        let view = self.waiters.first().map_or_else(View::default, |waiter| waiter.view);
        if let Some(Standing { reason: Reason::Exception { text }, thread, .. }) = &self.standing
            && text.is_empty()
        {
            if let Some((command, _)) = self.adapter.natives.why {
                let arguments = json!({ "expression": (self.adapter.quirks.raw)(command), "context": "repl" });
                self.request("evaluate", arguments, Pending::Why(self.epoch), self.limits.inspect);
            } else if self.capabilities.has("supportsExceptionInfoRequest") {
                let arguments = json!({ "threadId": thread });
                self.request("exceptionInfo", arguments, Pending::Reason(self.epoch), self.limits.inspect);
            }
        }
        if let Some(Standing { reason, .. }) = &self.standing {
            let unknown = matches!(reason, Reason::Exception { text } if text.is_empty()) && !self.watches.is_empty();
            if unknown || matches!(reason, Reason::Watch { .. }) {
                self.ask_watch_values();
            }
        }
        let frames = if self.may_be_elsewhere() { view.frames.max(LIBRARY_FRAMES) } else { view.frames };
        let look = Look { frames, locals: Locals::Selected, view, ..Look::default() };
        self.gather(Purpose::Stop, look);
    }

    pub(super) fn check_condition_here(&mut self, id: u32, condition: String) {
        if let Some(bound) = self.bound.get_mut(&id) {
            bound.condition_checked = true;
        }
        // Its frame is not known yet: the report's stack is asked first, and answered first.
        if let Some(gather) = self.gathers.values_mut().find(|gather| gather.is_stop()) {
            gather.also_check.push((id, condition));
        }
    }

    pub(super) fn on_condition(&mut self, id: u32, result: Result<Json, String>) {
        if let (Err(message), Some(standing)) = (result, &mut self.standing) {
            let message = (self.adapter.quirks.error_text)(&super::first_lines(&message));
            if is_trace(id) {
                standing.reason = Reason::Breakpoint { ids: Vec::new(), hit: 0 };
            }
            let text = if is_trace(id) { message } else { format!("breakpoint {id}: {message}") };
            standing.condition_failed = Some(text.clone());
            if let Some(report) = &mut standing.report {
                report.condition_failed = Some(text);
            }
        }
    }

    /// The report is complete: it is kept, recorded, and told to those who wait.
    pub(super) fn finish_report(&mut self, seen: Seen) {
        let Some(standing) = &self.standing else { return };
        let mut reason = standing.reason.clone();
        let is_aside = match &reason {
            Reason::Exception { .. } => self.is_foreign(&seen) || self.is_retold(&reason, &seen),
            // A step out of the program's last line: what comes now is its runtime's.
            Reason::Step => self.is_foreign(&seen),
            _ => false,
        };
        if is_aside {
            self.stops -= 1;
            self.set_state(SessionState::Running);
            return self.go_on(Some(seen.thread.id));
        }
        if let (Reason::Breakpoint { ids, .. }, Some(top)) = (&reason, seen.frames.first())
            && ids.is_empty()
        {
            let found: Vec<u32> = self
                .wishes_at(top.file.as_deref(), top.line, &top.function)
                .into_iter()
                .filter(|id| !is_internal(*id))
                .collect();
            let hit = found.iter().map(|id| self.count_hit(*id)).max().unwrap_or(0);
            if !found.is_empty() {
                self.after_hits(&found);
                reason = Reason::Breakpoint { ids: found, hit };
            }
        }
        let shown = self.waiters.first().map_or_else(View::default, |waiter| waiter.view).frames;
        let shown = usize::try_from(shown).unwrap_or(usize::MAX);
        let Some(standing) = &mut self.standing else { return };
        standing.reason = reason.clone();
        standing.frame = seen.frame;
        let at = usize::try_from(seen.frame).unwrap_or(0);
        let function = seen.frames.get(at).map(|frame| frame.function.clone()).unwrap_or_default();
        let mut locals = seen.locals;
        let same_function = self.before.as_ref().is_some_and(|(before, _)| *before == function);
        if let Some((_, before)) = self.before.as_ref().filter(|_| same_function) {
            for variable in &mut locals {
                variable.change = match before.get(&variable.name) {
                    None => Some(Change::New),
                    Some(text) if *text != variable.value.flat() => Some(Change::From(text.clone())),
                    Some(_) => None,
                };
            }
        }
        self.before = Some((function, super::texts(&locals)));
        let mut stop = Stop {
            number: standing.number,
            reason,
            thread: seen.thread,
            frame: seen.frame,
            more_frames: seen.more_frames,
            frames: seen.frames,
            locals,
            same_function,
            condition_failed: standing.condition_failed.clone(),
            gaps: seen.gaps,
        };
        self.record_stop(&stop);
        stop.more_frames |= stop.frames.len() > at + shown;
        stop.frames.truncate(at + shown);
        if let Some(standing) = &mut self.standing {
            standing.report = Some(Box::new(stop.clone()));
        }
        self.out.push(Effect::Drain);
        for waiter in std::mem::take(&mut self.waiters) {
            self.out.push(Effect::Disarm(Timer::Wait(waiter.op)));
            self.answer(waiter.op, Ok(Answer::Outcome(Outcome::Stopped(Box::new(stop.clone())))));
        }
    }
}

impl Session {
    /// The record has what was read for the stop, shown or not: all frames, and the threads by name.
    fn record_stop(&mut self, stop: &Stop) {
        let mut data = json!(stop);
        let named = |thread: &types::Thread| ThreadInfo { id: thread.id, name: self.thread_name(thread.id) };
        let threads: Vec<ThreadInfo> = self.threads.iter().take(RECORDED_THREADS).map(named).collect();
        if self.threads.len() <= RECORDED_THREADS {
            data["threads"] = json!(threads);
        }
        // By now its version is known.
        data["via"] = json!(self.via());
        self.record("stopped", Some(stop.thread.id), data);
    }
}

/// A crash on the way to the beginning, told from the loader's own stop.
fn is_fatal(body: &StoppedBody) -> bool {
    if body.reason == "signal" {
        return true;
    }
    let signal = body.description.as_deref().and_then(|text| text.strip_prefix("signal "));
    signal.is_some_and(|signal| !signal.starts_with("SIGSTOP") && !signal.starts_with("SIGTRAP"))
}
