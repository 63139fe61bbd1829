//! One stop at a time. The client is shown each stop of each process once; a stop that comes while another is shown waits
//! for its turn. Letting the program go on lets every process go on whose stop was shown, so that none stands for ever
//! without anybody knowing.

use std::time::Duration;

use serde_json::{Value, json};

use super::joined::{Act, Joined, Timer, Why};

/// How long a step may take before the stop of another process is shown: it may wait for that one.
const STEP_GRACE: Duration = Duration::from_millis(400);

/// A resume that the client asked for and that is not answered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Resuming {
    seq: i64,
    process: usize,
    step: bool,
    /// The thread it stood in, should it be refused.
    stood: Option<i64>,
    /// The process that the client was looking at.
    standing: Option<usize>,
}

impl Joined {
    pub(super) fn on_stopped(&mut self, process: usize, mut body: Value) {
        let thread = body.get("threadId").and_then(Value::as_i64);
        if let Some(thread) = thread {
            body["threadId"] = Value::from(self.client_thread(process, thread));
        }
        if process != super::joined::ROOT {
            self.client_breakpoints(process, &mut body);
        }
        let pausing = self.pausing.contains(&process);
        self.pausing.retain(|other| *other != process);
        let Some(state) = self.processes.get_mut(&process) else { return };
        state.stop = thread.or(state.stop).or(Some(1));
        let by_pause = body.get("reason").and_then(Value::as_str) == Some("pause");
        match (self.standing, self.resuming) {
            // One more word on the stop that is shown.
            (Some(standing), _) if standing == process => self.tell("stopped", body),
            (None, None) => self.show(process, body),
            (None, Some(resuming)) if resuming.process == process => self.show(process, body),
            // A pause is one stop, of all of them.
            (Some(_), _) if pausing && by_pause => state.shown = true,
            _ if self.queue.iter().any(|(other, _)| *other == process) => {}
            _ => {
                state.shown = false;
                self.queue.push_back((process, body));
            }
        }
    }

    fn show(&mut self, process: usize, body: Value) {
        self.standing = Some(process);
        if let Some(state) = self.processes.get_mut(&process) {
            state.shown = true;
        }
        self.tell("stopped", body);
    }

    /// Shows the stop that waits longest, when none is shown.
    pub(super) fn show_next(&mut self) {
        if self.standing.is_none()
            && self.resuming.is_none()
            && let Some((process, body)) = self.queue.pop_front()
        {
            self.show(process, body);
        }
    }

    pub(super) fn on_continued(&mut self, process: usize, mut body: Value) {
        if let Some(thread) = body.get("threadId").and_then(Value::as_i64) {
            body["threadId"] = Value::from(self.client_thread(process, thread));
        }
        let shown = self.standing == Some(process);
        if shown && let Some(state) = self.processes.get_mut(&process) {
            state.stop = None;
            self.standing = None;
        }
        // While another process is shown, the client's program stands.
        if self.standing.is_none() {
            self.tell("continued", body);
        }
        if shown {
            self.show_next();
        }
    }

    /// The client lets the program go on, or takes a step in one thread.
    pub(super) fn resume(&mut self, seq: i64, command: String, mut arguments: Value) {
        let mut process = self.owner(&command, &mut arguments);
        let step = command != "continue" && command != "reverseContinue";
        let unseen = self.processes.get(&process).is_some_and(super::joined::Process::stands_unseen);
        if unseen && step {
            // It is seen now: the client steps in it.
            self.queue.retain(|(other, _)| *other != process);
        } else if unseen && let Some(standing) = self.standing {
            // Its own stop comes next. What goes on is what was shown.
            process = standing;
            let thread = self.processes.get(&process).and_then(|process| process.stop);
            arguments["threadId"] = Value::from(thread.unwrap_or(1));
        }
        let standing = self.standing.take();
        self.pausing.clear();
        self.grace += 1;
        let stood = self.processes.get_mut(&process).and_then(|process| process.stop.take());
        self.resuming = Some(Resuming { seq, process, step, stood, standing });
        self.ask_for_client(process, seq, command, arguments);
        self.continue_others(process);
    }

    /// Lets every other process go on whose stop the client has seen.
    fn continue_others(&mut self, except: usize) {
        let mut standing = Vec::new();
        for (number, process) in &mut self.processes {
            if *number != except
                && process.shown
                && let Some(thread) = process.stop.take()
            {
                process.shown = false;
                standing.push((*number, thread));
            }
        }
        for (process, thread) in standing {
            self.ask(process, "continue", json!({ "threadId": thread }), Why::Quiet);
        }
    }

    pub(super) fn on_resume_answered(&mut self, seq: i64, success: bool) {
        let Some(resuming) = self.resuming.filter(|resuming| resuming.seq == seq) else { return };
        self.resuming = None;
        if !success && self.standing.is_none() && self.processes.contains_key(&resuming.process) {
            self.standing = resuming.standing;
            if let Some(state) = self.processes.get_mut(&resuming.process) {
                state.stop = resuming.stood;
            }
            return;
        }
        if self.queue.is_empty() || self.standing.is_some() {
            return;
        }
        if resuming.step {
            self.out.push(Act::Arm(Timer::Grace(self.grace), STEP_GRACE));
        } else {
            self.show_next();
        }
    }

    /// Every process is asked to stop; the thread's own answers.
    pub(super) fn pause(&mut self, seq: i64, mut arguments: Value) {
        let process = self.owner("pause", &mut arguments);
        let running: Vec<usize> = self
            .processes
            .iter()
            .filter(|(_, process)| process.is_ready() && process.stop.is_none())
            .map(|(number, _)| *number)
            .collect();
        self.pausing.clone_from(&running);
        self.ask_for_client(process, seq, "pause".into(), arguments);
        for other in running.into_iter().filter(|other| *other != process) {
            self.ask(other, "pause", json!({ "threadId": 1 }), Why::Quiet);
        }
    }

    /// A process that the client was looking at is no more: the program runs, as far as the client can see.
    pub(super) fn leave_stop(&mut self, process: usize) {
        if self.standing == Some(process) {
            self.standing = None;
            self.tell("continued", json!({ "threadId": 1, "allThreadsContinued": true }));
        }
        self.show_next();
    }
}
