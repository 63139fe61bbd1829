//! Letting the program run, waiting for it, and letting it go.

use serde_json::{Value as Json, json};

use super::{Answer, Effect, OpId, Outcome, Pending, Resume, Session, Timer, Wait, logpoints};
use crate::dap::Message;
use crate::failure::Failure;
use crate::model::{Ending, SessionState, Target};

/// What a wait may take beyond its limit, when the stop has come and only its report is missing.
const COMPLETING: std::time::Duration = std::time::Duration::from_millis(400);

impl Session {
    pub(super) fn resume(&mut self, op: OpId, how: Resume, thread: Option<i64>, wait: Wait) {
        match self.state {
            SessionState::Held if how == Resume::Continue => {
                self.add_waiter(op, wait);
                return self.release();
            }
            SessionState::Stopped => {}
            _ => {
                let failure = self.wrong_state();
                return self.answer(op, Err(failure));
            }
        }
        let single = thread.is_some();
        if single && !self.capabilities.has("supportsSingleThreadExecutionRequests") {
            let failure = self.unsupported("running one thread alone", "let all threads go: bugeye continue");
            return self.answer(op, Err(failure));
        }
        let reverse = matches!(how, Resume::Back | Resume::ReverseContinue);
        let native_reverse = self.adapter.natives.reverse.filter(|_| reverse);
        if reverse && native_reverse.is_none() && !self.capabilities.has("supportsStepBack") {
            let failure = self.unsupported("going back in time", "run it again to an earlier place: bugeye restart");
            return self.answer(op, Err(failure));
        }
        let steps = !matches!(how, Resume::Continue | Resume::ReverseContinue);
        let current = self.standing.as_ref().map_or(1, |standing| standing.thread);
        let of = thread.unwrap_or(current);
        if self.wants_depth(&how, of) {
            let arguments = json!({ "threadId": of, "startFrame": 0, "levels": logpoints::DEEPEST });
            let resumed = logpoints::Resumed { op, how, thread, of, wait };
            self.request("stackTrace", arguments, Pending::Depth(resumed), self.limits.inspect);
            return;
        }
        let mut arguments = json!({ "threadId": of });
        if single {
            arguments["singleThread"] = Json::Bool(true);
        }
        let top = self.standing.as_ref().and_then(|standing| standing.report.as_ref()?.frames.first());
        self.leaving = top.filter(|_| how == Resume::Finish).map(|frame| frame.function.clone());
        let step = self.step_from_here(&how, of);
        let native = native_reverse.map(|reverse| reverse.command(&how));
        let command = match how {
            _ if native.is_some() => "evaluate",
            Resume::Continue => "continue",
            Resume::Next => "next",
            Resume::Step => "stepIn",
            Resume::Finish => "stepOut",
            Resume::Back => "stepBack",
            Resume::ReverseContinue => "reverseContinue",
            Resume::Into(function) => {
                self.until = Some(function);
                self.refresh_breakpoints();
                "next"
            }
            Resume::Until(place) => {
                // Breakpoints interrupt a step out: whichever comes first, the place or the return, ends it.
                self.until = Some(place);
                self.refresh_breakpoints();
                if self.unfinished { "continue" } else { "stepOut" }
            }
        };
        if self.unfinished && command != "continue" {
            let failure = Failure::refused(format!(
                "{} can't step before the step of thread {} is over, which a breakpoint in this thread interrupted",
                self.via(),
                self.step_thread.unwrap_or(1)
            ))
            .hint("go on to a line instead: bugeye until FILE:LINE")
            .hint("or let all of them go: bugeye continue");
            if let Some(until) = self.until.take() {
                self.bound.remove(&until.id);
                self.refresh_breakpoints();
            }
            return self.answer(op, Err(failure));
        }
        self.epoch += 1;
        self.stood = self.standing.take();
        self.end_gathers();
        // Several threads may have hit breakpoints at one moment: each hit is shown once, before anything runs on.
        self.forget_removed();
        let together = self.queue.front().is_some_and(|body| body.all_threads_stopped != Some(false));
        if together && command == "continue" && thread.is_none() {
            self.add_waiter(op, wait);
            self.next_queued();
            return;
        }
        (self.stepping, self.step, self.returning) = (steps, step, false);
        if self.stepping {
            self.step_thread = Some(thread.unwrap_or(current));
        }
        self.resuming = true;
        self.early = None;
        self.set_state(SessionState::Running);
        self.record("continued", Some(current), json!({ "how": native.unwrap_or(command) }));
        self.add_waiter(op, wait);
        let (command, arguments) = match native {
            Some(native) => self.native_request(native),
            None if command == "continue" && !single => self.plain_continue(current),
            None => (command, arguments),
        };
        self.request(command, arguments, Pending::Resume(op), self.limits.request);
        if together {
            self.queue.clear();
        } else {
            // Another thread stopped on its own while this one was shown.
            self.next_queued();
        }
    }

    pub(super) fn on_resumed(&mut self, op: OpId, result: Result<Json, String>) {
        match result {
            Ok(_) => self.on_resume_answered(),
            // It may run all the same; a stop or the end will tell.
            Err(message) if message == super::SILENT => self.settle(),
            Err(message) => {
                self.resuming = false;
                self.early = None;
                let failure = self
                    .nothing_recorded(&message)
                    .unwrap_or_else(|| self.adapter_failure("the program could not be resumed", &message));
                self.fail_waiter(op, failure);
                if self.standing.is_none()
                    && let Some(stood) = self.stood.take()
                {
                    self.stand_again(stood);
                }
            }
        }
    }

    /// Tells one who waits for a stop that there will be none; nobody, if its time was over before.
    fn fail_waiter(&mut self, op: OpId, failure: Failure) {
        let before = self.waiters.len();
        self.waiters.retain(|waiter| waiter.op != op);
        if self.waiters.len() < before {
            self.out.push(Effect::Disarm(Timer::Wait(op)));
            self.answer(op, Err(failure));
        }
    }

    /// The program goes on: looks under way are over, and who asked is told.
    pub(super) fn end_gathers(&mut self) {
        for op in std::mem::take(&mut self.gathers).into_values().filter_map(|gather| gather.op()) {
            let failure = Failure::wrong_state("the program went on while it was looked at").hint("bugeye status");
            self.answer(op, Err(failure));
        }
    }

    /// The program did not move: it stands where it stood, and nothing of the resume is left.
    fn stand_again(&mut self, stood: super::Standing) {
        self.stepping = false;
        if let Some(until) = self.until.take() {
            self.bound.remove(&until.id);
            self.refresh_breakpoints();
        }
        let report = stood.report.clone();
        self.standing = Some(stood);
        self.set_state(SessionState::Stopped);
        match report {
            Some(report) => {
                for waiter in std::mem::take(&mut self.waiters) {
                    self.out.push(Effect::Disarm(Timer::Wait(waiter.op)));
                    self.answer(waiter.op, Ok(Answer::Outcome(Outcome::Stopped(report.clone()))));
                }
            }
            None => self.report(),
        }
    }

    pub(super) fn on_continued(&mut self) {
        self.announces = true;
        self.resuming = false;
        self.early = None;
        if self.state == SessionState::Stopped {
            // Something else resumed it: a native command, or the adapter.
            self.epoch += 1;
            self.stood = self.standing.take();
            self.end_gathers();
            self.set_state(SessionState::Running);
            self.record("continued", None, json!({ "how": "adapter" }));
        }
    }

    pub(super) fn pause(&mut self, op: OpId, wait: Wait) {
        match self.state {
            SessionState::Running => {
                self.add_waiter(op, wait);
                self.send_pause(op);
            }
            SessionState::Stopped => self.wait_for_stop(op, wait),
            _ => {
                let failure = self.wrong_state();
                self.answer(op, Err(failure));
            }
        }
    }

    pub(super) fn send_pause(&mut self, op: OpId) {
        self.asked_to_pause = true;
        let thread = self.threads.first().map_or(1, |thread| thread.id);
        self.request("pause", json!({ "threadId": thread }), Pending::Pause(op), self.limits.inspect);
    }

    pub(super) fn on_paused(&mut self, op: OpId, result: Result<Json, String>) {
        if let Err(message) = result {
            self.asked_to_pause = false;
            let failure = self.adapter_failure("the program could not be paused", &message);
            self.fail_waiter(op, failure);
        }
    }

    /// Answers at once when the program stands still, else at its next stop.
    pub(super) fn wait_for_stop(&mut self, op: OpId, wait: Wait) {
        match (self.state, &self.standing, &self.ending) {
            (SessionState::Stopped, Some(standing), _) => match &standing.report {
                Some(report) => {
                    let outcome = Outcome::Stopped(report.clone());
                    self.answer(op, Ok(Answer::Outcome(outcome)));
                }
                None => self.add_waiter(op, wait),
            },
            (SessionState::Exited, _, Some(ending)) => {
                let outcome = Outcome::Ended(ending.clone());
                self.answer(op, Ok(Answer::Outcome(outcome)));
            }
            (SessionState::Held, ..) => {
                let failure = self.wrong_state();
                self.answer(op, Err(failure));
            }
            _ => self.add_waiter(op, wait),
        }
    }

    pub(super) fn on_wait_over(&mut self, op: OpId) {
        if !self.waiters.iter().any(|waiter| waiter.op == op) {
            return;
        }
        if self.standing.is_some() && self.state == SessionState::Stopped {
            let waiter = self.waiters.iter_mut().find(|waiter| waiter.op == op);
            if let Some(waiter) = waiter.filter(|waiter| !waiter.late) {
                // It has stopped; a moment more completes the report.
                waiter.late = true;
                self.out.push(Effect::Arm(Timer::Wait(op), COMPLETING));
                return;
            }
            return self.finish_stop_early();
        }
        self.waiters.retain(|waiter| waiter.op != op);
        self.out.push(Effect::Drain);
        self.answer(op, Ok(Answer::Outcome(Outcome::Running)));
    }

    pub(super) fn forget(&mut self, op: OpId) {
        self.waiters.retain(|waiter| waiter.op != op);
        self.gathers.retain(|_, gather| gather.op() != Some(op));
        self.batches.remove(&op);
        self.thread_lists.remove(&op);
        self.out.push(Effect::Disarm(Timer::Wait(op)));
    }

    pub(super) fn detach(&mut self, op: OpId) {
        if self.detaching.is_some() {
            let failure =
                Failure::wrong_state("the program is being let go already").hint("look: bugeye sessions --all");
            return self.answer(op, Err(failure));
        }
        if self.state == SessionState::Starting || (self.state == SessionState::Held && self.adapter.quirks.starts_late)
        {
            let failure = self.wrong_state();
            return self.answer(op, Err(failure));
        }
        if self.ends_with_us() {
            let failure = Failure::unsupported("the server at that address ends its program when its client leaves")
                .hint("one that is started with --accept-multiclient does not")
                .hint("end both: bugeye stop");
            return self.answer(op, Err(failure));
        }
        self.detaching = Some(op);
        // No trap of ours may stay behind in a program that nobody watches.
        self.wishes.clear();
        self.catch = vec!["none".into()];
        self.until = None;
        if self.is_left_abruptly() {
            return self.detach_by_leaving(op);
        }
        self.refresh_breakpoints();
        self.out.push(Effect::Arm(Timer::Detach(op), self.adapter.quirks.detach_grace));
        if self.adapter.quirks.disconnect_kills && self.state == SessionState::Running {
            // Its stop leads on.
            return self.send_pause(op);
        }
        self.let_go(op);
    }

    /// Lets the program go by the adapter's own command where it has one.
    pub(super) fn let_go(&mut self, op: OpId) {
        let still =
            self.adapter.quirks.disconnect_kills || matches!(self.state, SessionState::Stopped | SessionState::Held);
        match self.adapter.quirks.detach_command.filter(|_| still) {
            Some(command) => {
                let arguments = json!({ "expression": command, "context": "repl" });
                self.request("evaluate", arguments, Pending::DetachFast(op), self.limits.request);
            }
            _ => self.send_disconnect(op),
        }
    }

    /// An adapter that sees its client leave would end the program with it: it must not see that.
    #[must_use]
    pub const fn is_left_abruptly(&self) -> bool {
        self.adapter.quirks.left_abruptly && !self.is_attached()
    }

    /// The adapter would end the program: it is left with no trap, running, and the adapter is ended behind its back.
    fn detach_by_leaving(&mut self, op: OpId) {
        self.out.push(Effect::Arm(Timer::Detach(op), self.limits.request));
        match self.state {
            // What is taken away while it runs halts it for a moment, of which nobody tells.
            SessionState::Running => self.send_pause(op),
            _ => self.let_run(),
        }
    }

    /// Lets a program that stands still run without us; it runs when the last question is answered.
    pub(super) fn let_run(&mut self) {
        let Some(op) = self.detaching else { return };
        for (command, arguments, config) in self.breakpoint_requests(true) {
            self.request(command, arguments, Pending::Update(config, 0), self.limits.request);
        }
        if !std::mem::take(&mut self.watches).is_empty() {
            self.request("setDataBreakpoints", json!({ "breakpoints": [] }), Pending::Quiet, self.limits.request);
        }
        let thread = self.threads.first().map_or(1, |thread| thread.id);
        match self.handshake.done_sent {
            true => self.request("continue", json!({ "threadId": thread }), Pending::Quiet, self.limits.request),
            false => self.request("configurationDone", json!({}), Pending::Quiet, self.limits.request),
        };
        self.request("threads", Json::Null, Pending::LetRun(op), self.limits.request);
    }

    /// Whether the program ends when we leave, though it is not ours.
    pub(super) fn ends_with_us(&self) -> bool {
        self.adapter.quirks.serves_many
            && matches!(self.target, Target::Remote(_))
            && !self.capabilities.has("supportTerminateDebuggee")
    }

    /// A server leaves its program as it stands: it is let run.
    fn run_on_before_leaving(&mut self) {
        if !self.adapter.quirks.serves_many || !matches!(self.target, Target::Remote(_)) {
            return;
        }
        // With no trap of ours, which nobody would be told of.
        self.wishes.clear();
        self.until = None;
        self.refresh_breakpoints();
        if self.state == SessionState::Stopped {
            let thread = self.standing.as_ref().map_or(1, |standing| standing.thread);
            self.request("continue", json!({ "threadId": thread }), Pending::Quiet, self.limits.request);
        }
    }

    fn send_disconnect(&mut self, op: OpId) {
        self.run_on_before_leaving();
        let arguments = json!({ "terminateDebuggee": false });
        self.request("disconnect", arguments, Pending::Detach(op), self.limits.request);
    }

    pub(super) fn on_detached_fast(&mut self, op: OpId, result: &Result<Json, String>) {
        match result {
            Ok(_) => self.finish_detach(op),
            Err(_) => self.send_disconnect(op),
        }
    }

    pub(super) fn on_detached(&mut self, op: OpId, result: Result<Json, String>) {
        match result {
            Err(message) if message != super::SILENT && self.detaching == Some(op) => {
                self.detaching = None;
                self.out.push(Effect::Disarm(Timer::Detach(op)));
                let failure = self.adapter_failure("the program could not be let go", &message).hint("bugeye status");
                self.answer(op, Err(failure));
            }
            _ => self.finish_detach(op),
        }
    }

    pub(super) fn finish_detach(&mut self, op: OpId) {
        if self.detaching != Some(op) {
            return;
        }
        self.detaching = None;
        self.ending = Some(Ending::Detached);
        self.answer(op, Ok(Answer::Done));
        let failure = self.ended_failure();
        self.out.push(Effect::Drain);
        self.fail_everyone(&failure);
        self.close();
        self.out.push(Effect::Disarm(Timer::Detach(op)));
        self.out.push(Effect::Finish { spare: true });
    }

    pub(super) fn stop(&mut self, op: OpId, kill: bool) {
        let spare = self.is_attached() && !kill;
        if spare && !self.ends_with_us() {
            self.run_on_before_leaving();
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        let arguments = json!({ "terminateDebuggee": !spare });
        self.out.push(Effect::Send(Message::Request { seq, command: "disconnect".into(), arguments }));
        self.ending = Some(Ending::Stopped);
        self.out.push(Effect::Drain);
        for waiter in std::mem::take(&mut self.waiters) {
            self.answer(waiter.op, Ok(Answer::Outcome(Outcome::Ended(Ending::Stopped))));
        }
        let failure = self.ended_failure();
        if let Some((start, _)) = self.start.take() {
            self.answer(start, Err(failure.clone()));
        }
        self.fail_everyone(&failure);
        self.close();
        self.answer(op, Ok(Answer::Done));
        self.out.push(Effect::Finish { spare });
    }

    /// Why this can't be done now, and the way out.
    pub(super) fn wrong_state(&self) -> Failure {
        match self.state {
            SessionState::Starting => {
                Failure::wrong_state("the program is still starting").hint("wait for it: bugeye await")
            }
            SessionState::Held => Failure::wrong_state("not started: the program is held before its first instruction")
                .hint("let it go: bugeye continue")
                .hint("or stop at its beginning: bugeye start --stop-on-entry"),
            SessionState::Running => Failure::wrong_state("the program is running")
                .hint("stop it where it is: bugeye pause")
                .hint("or wait for its next stop: bugeye await"),
            SessionState::Stopped => Failure::wrong_state("the program is stopped").hint("let it run: bugeye continue"),
            SessionState::Exited | SessionState::Lost => self.ended_failure(),
        }
    }

    /// Whether a process of this machine was attached to.
    #[must_use]
    pub const fn has_process(&self) -> bool {
        matches!(self.target, Target::Attach { .. })
    }

    /// Whether the program belongs to the user, who started it without us.
    #[must_use]
    pub const fn is_attached(&self) -> bool {
        self.target.is_attached()
    }
}
