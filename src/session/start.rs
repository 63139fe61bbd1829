//! From nothing to a held program, in whatever order the adapter speaks.
//!
//! The one order that is right everywhere: `initialize`; send `launch` and do not wait; at `initialized` send the
//! breakpoints; when those are answered the program is held; `configurationDone` lets it go.

use serde_json::{Value as Json, json};

use super::{Answer, Config, Effect, KernelExit, OpId, Outcome, Pending, Session, Stream, Timer, Wait, Waiter};
use crate::adapters::Reach;
use crate::dap::Message;
use crate::dap::types::{self, read};
use crate::failure::Failure;
use crate::model::{Breakpoint, Ending, SessionState, Target};

impl Session {
    pub(super) fn begin(&mut self, op: OpId, wishes: Vec<Breakpoint>, catch: Vec<String>, run: Option<Wait>) {
        self.start = Some((op, run));
        self.wishes = wishes;
        self.catch = catch;
        if let Target::Launch(launch) = &self.target {
            self.entering = launch.stop_on_entry;
            self.to_record = launch.record;
        }
        let arguments = json!({
            "clientID": "bugeye",
            "clientName": "Bugeye",
            "adapterID": self.adapter.adapter_id,
            "locale": "en",
            "linesStartAt1": true,
            "columnsStartAt1": true,
            "pathFormat": "path",
            "supportsVariableType": true,
            "supportsVariablePaging": true,
            "supportsRunInTerminalRequest": self.adapter.quirks.runs_in_terminal,
            "supportsMemoryReferences": true,
        });
        let limit = self.limits.initialize.max(self.adapter.quirks.first_answer);
        self.request("initialize", arguments, Pending::Initialize, limit);
    }

    /// What the record keeps of the target: never the environment.
    #[must_use]
    pub fn target_summary(&self) -> Json {
        match &self.target {
            Target::Launch(launch) => json!({ "program": launch.program, "args": launch.args, "cwd": launch.cwd }),
            Target::Attach { pid, program, .. } => json!({ "pid": pid, "program": program }),
            Target::Remote(remote) => json!({ "host": remote.host, "port": remote.port, "program": remote.program }),
            Target::Core { core, program } => json!({ "core": core, "program": program }),
        }
    }

    pub(super) fn on_initialize(&mut self, result: Result<Json, String>) {
        match result {
            Ok(body) => {
                self.capabilities.merge(&body);
                if let Some(version) =
                    body.pointer("/__lldb/version").or_else(|| body.get("$__lldb_version")).and_then(Json::as_str)
                {
                    let number = version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
                    self.version = number.map(Into::into);
                }
                match self.first_request() {
                    Ok((command, arguments)) => {
                        self.request(command, arguments, Pending::Launch, self.limits.launch);
                        self.configure_when_ready();
                    }
                    Err(failure) => self.fail_start(&failure),
                }
            }
            Err(message) => {
                let failure =
                    self.adapter_failure("the adapter would not start", &message).hint("check it: bugeye doctor");
                self.fail_start(&failure);
            }
        }
    }

    /// How this adapter is asked for the target.
    fn first_request(&self) -> Result<(&'static str, Json), Failure> {
        let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
        let overlaid = |mut arguments: Json, extra: &serde_json::Map<String, Json>| {
            for (name, value) in extra {
                match (arguments.get_mut(name), value) {
                    // Commands of the user's come after ours.
                    (Some(Json::Array(own)), Json::Array(more)) => own.extend(more.iter().cloned()),
                    _ => arguments[name] = value.clone(),
                }
            }
            arguments
        };
        match &self.target {
            Target::Launch(launch) => {
                Ok(("launch", overlaid((self.adapter.launch)(launch, &self.stdio), &launch.extra)))
            }
            Target::Attach { pid, program, extra } => {
                if let Some(why) = self.adapter.quirks.no_attach {
                    let failure = Failure::unsupported(format!("{} can't attach to a process: {why}", self.via()));
                    return Err(failure.hint("start it under the debugger: bugeye run -- COMMAND"));
                }
                let arguments = (self.adapter.attach)(*pid, program.as_ref().map(text).as_deref());
                Ok(("attach", overlaid(arguments, extra)))
            }
            Target::Remote(remote) => match self.adapter.remote {
                Some(Reach::Through(arguments) | Reach::Direct(arguments) | Reach::Bridged(arguments)) => {
                    Ok(("attach", overlaid(arguments(remote), &remote.extra)))
                }
                None => Err(Failure::unsupported(format!("{} can't reach a program at an address", self.via()))),
            },
            Target::Core { core, program } => match self.adapter.core {
                Some(request) => Ok(request(&text(core), program.as_ref().map(text).as_deref())),
                None => Err(Failure::unsupported(format!("{} can't open core files", self.via()))),
            },
        }
    }

    /// The version where `initialize` does not tell it.
    pub fn set_version(&mut self, version: Option<String>) {
        self.version = version;
    }

    pub(super) fn on_launch(&mut self, result: Result<Json, String>) {
        if let (Ok(_), Some(command)) = (&result, (self.adapter.natives.settled)(&self.target)) {
            let arguments = json!({ "expression": (self.adapter.quirks.raw)(&command), "context": "repl" });
            self.request("evaluate", arguments, Pending::Settled, self.limits.launch);
        }
        if let Err(message) = result {
            let what = match &self.target {
                Target::Launch(_) => "the program could not be started",
                Target::Attach { .. } => "the process could not be attached to",
                Target::Remote(_) => "the program at that address could not be attached to",
                Target::Core { .. } => "the core file could not be opened",
            };
            let mut failure = self.adapter_failure(what, &message);
            if matches!(self.target, Target::Launch(_)) {
                failure = failure.hint("does it run by itself? check the adapter, too: bugeye doctor");
            }
            self.fail_start(&failure);
        }
    }

    /// A target that is there may be on its way already, and can't be asked then.
    pub(super) fn on_settled(&mut self, result: Result<Json, String>) {
        match result {
            // Nothing tells of a stop that was long ago.
            Ok(_) if matches!(self.target, Target::Core { .. }) && self.state == SessionState::Running => {
                self.arrive(types::StoppedBody { reason: "signal".into(), ..types::StoppedBody::default() });
            }
            Err(message) if message != super::SILENT && !self.is_not_stopped(&message) => self.on_launch(Err(message)),
            _ => {}
        }
    }

    pub(super) fn on_initialized(&mut self) {
        self.handshake.initialized = true;
        self.configure_when_ready();
    }

    /// Sends the configuration once, when the adapter has both introduced itself and asked for it.
    fn configure_when_ready(&mut self) {
        let launched = self.next_seq > 2;
        if !self.handshake.initialized || !launched || self.handshake.configured {
            return;
        }
        self.handshake.configured = true;
        for (command, arguments) in self.adapter.quirks.prelude {
            let arguments = serde_json::from_str(arguments).unwrap_or(Json::Null);
            self.configure(command, arguments, Config::Prelude);
        }
        if let Some(command) = self.adapter.natives.version {
            let arguments = json!({ "expression": (self.adapter.quirks.raw)(command), "context": "repl" });
            self.configure("evaluate", arguments, Config::Version);
        }
        for command in (self.adapter.natives.prepare)(&self.target) {
            let arguments = json!({ "expression": (self.adapter.quirks.raw)(&command), "context": "repl" });
            self.configure("evaluate", arguments, Config::Prepare);
        }
        let mut checks = false;
        if let Some(check) = self.adapter.quirks.check_condition {
            let conditions: Vec<(u32, String)> = self
                .wishes
                .iter()
                .filter(|wish| wish.enabled)
                .filter_map(|wish| wish.condition.clone().map(|condition| (wish.id, condition)))
                .collect();
            for (id, condition) in conditions {
                let arguments = json!({ "expression": check(&condition), "context": "repl" });
                self.configure("evaluate", arguments, Config::Check { id, condition });
                checks = true;
            }
        }
        // A condition that can't be parsed is never sent: the breakpoints wait for the verdicts.
        if !checks {
            self.configure_breakpoints();
        }
    }

    fn configure_breakpoints(&mut self) {
        self.handshake.breakpoints_sent = true;
        for (command, arguments, config) in self.breakpoint_requests(true) {
            self.configure(command, arguments, config);
        }
        self.held_when_ready();
    }

    fn configure(&mut self, command: &str, arguments: Json, config: Config) {
        self.handshake.open += 1;
        self.request(command, arguments, Pending::Config(config), self.limits.launch);
    }

    pub(super) fn on_configured(&mut self, config: &Config, result: Result<Json, String>) {
        self.handshake.open = self.handshake.open.saturating_sub(1);
        match (config, result) {
            (Config::Prepare, Err(message)) if message != super::SILENT => return self.on_launch(Err(message)),
            (Config::Version, Ok(body)) => {
                let text = read::<types::EvaluateBody>(&body).result;
                let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
                let number = number.and_then(|number| number.split('-').next());
                self.version = number.map(Into::into).or_else(|| self.version.take());
            }
            (_, result) => self.take_bindings(config, result),
        }
        if let Some((command, arguments, config)) = self.functions_again(config) {
            return self.configure(command, arguments, config);
        }
        if self.handshake.open == 0 && !self.handshake.breakpoints_sent {
            return self.configure_breakpoints();
        }
        self.held_when_ready();
    }

    fn held_when_ready(&mut self) {
        if self.handshake.open > 0 || self.state != SessionState::Starting {
            return;
        }
        self.set_state(SessionState::Held);
        let Some((op, run)) = self.start.take() else { return };
        let attached = !matches!(self.target, Target::Launch(_));
        match run {
            Some(wait) => {
                self.add_waiter(op, wait);
                self.release();
            }
            None if attached || self.entering => {
                let wait = Wait { limit: self.limits.launch, view: crate::model::View::default() };
                self.add_waiter(op, wait);
                self.release();
                if self.is_attached() && self.adapter.quirks.attach_runs {
                    self.send_pause(op);
                }
            }
            None => {
                let bindings = self.bindings();
                self.answer(op, Ok(Answer::Held { bindings }));
            }
        }
    }

    /// Lets a held program go.
    pub(super) fn release(&mut self) {
        self.handshake.done_sent = true;
        self.epoch += 1;
        self.set_state(SessionState::Running);
        self.record("continued", None, json!({ "how": "start" }));
        self.request("configurationDone", json!({}), Pending::ConfigurationDone, self.limits.launch);
    }

    pub(super) fn on_configuration_done(&mut self, result: Result<Json, String>) {
        // Not every adapter tells which process it holds.
        if let (Target::Attach { pid, .. }, None) = (&self.target, self.pid) {
            let pid = *pid;
            self.pid = Some(pid);
            self.out.push(Effect::Watch { pid });
        }
        if let Err(message) = result {
            let failure = self.adapter_failure("the program could not be let go", &message);
            if self.state == SessionState::Running {
                self.set_state(SessionState::Held);
            }
            for waiter in std::mem::take(&mut self.waiters) {
                self.out.push(Effect::Disarm(Timer::Wait(waiter.op)));
                self.answer(waiter.op, Err(failure.clone()));
            }
            self.record("error", None, json!({ "message": failure.message }));
        }
    }

    /// The start failed: whoever waits is told the first error, and everything is ended.
    pub(super) fn fail_start(&mut self, failure: &Failure) {
        if !self.state.is_live() {
            return;
        }
        // What the program said may be the reason.
        self.out.push(Effect::Drain);
        if let Some((op, _)) = self.start.take() {
            self.answer(op, Err(failure.clone()));
        }
        self.fail_everyone(failure);
        self.record("error", None, json!({ "message": failure.message }));
        self.ending = Some(Ending::Stopped);
        self.close();
        self.out.push(Effect::Finish { spare: self.target.is_attached() });
    }

    /// Ends in the state `exited`, with nothing left waiting.
    pub(super) fn close(&mut self) {
        let state =
            if matches!(self.ending, Some(Ending::Lost { .. })) { SessionState::Lost } else { SessionState::Exited };
        self.standing = None;
        self.pending.clear();
        self.gathers.clear();
        self.set_state(state);
        self.record("session.end", None, json!({ "ending": self.ending }));
    }

    /// Every operation under way fails with this.
    pub(super) fn fail_everyone(&mut self, failure: &Failure) {
        let mut ops: Vec<OpId> = self.waiters.drain(..).map(|waiter| waiter.op).collect();
        ops.extend(self.batches.keys().copied());
        self.batches.clear();
        ops.extend(self.gathers.values().filter_map(super::gather::Gather::op));
        self.gathers.clear();
        self.checking.clear();
        for pending in self.pending.values() {
            match pending {
                Pending::Evaluate(op) | Pending::Names(op) | Pending::Raw(op) | Pending::Exception(op) => {
                    ops.push(*op);
                }
                Pending::Effect(op, ..)
                | Pending::Assigned(op, ..)
                | Pending::SetIn(op, ..)
                | Pending::SetDone(op, _) => ops.push(*op),
                Pending::Threads(op) | Pending::Native(op) | Pending::Request(op, _) => ops.push(*op),
                Pending::Watch(op, _) | Pending::Goto(op, _) => ops.push(*op),
                Pending::Depth(resumed) => ops.push(resumed.op),
                _ => {}
            }
        }
        self.framed.clear();
        ops.extend(self.thread_lists.keys().copied());
        self.thread_lists.clear();
        self.pending.clear();
        ops.extend(self.detaching.take());
        ops.sort_unstable();
        ops.dedup();
        for op in ops {
            self.out.push(Effect::Disarm(Timer::Wait(op)));
            self.answer(op, Err(failure.clone()));
        }
    }

    pub(super) fn add_waiter(&mut self, op: OpId, wait: Wait) {
        self.waiters.push(Waiter { op, view: wait.view, late: false });
        self.out.push(Effect::Arm(Timer::Wait(op), wait.limit));
    }

    pub(super) fn on_reverse_request(&mut self, seq: i64, command: &str, arguments: &Json) {
        if command != "runInTerminal" || !self.adapter.quirks.runs_in_terminal {
            return self.respond(seq, command, Err(format!("{command} is not done here")));
        }
        let argv: Vec<String> = read(arguments.get("args").unwrap_or(&Json::Null));
        let env = arguments.get("env").and_then(Json::as_object).map_or_else(Vec::new, |env| {
            env.iter().map(|(name, value)| (name.clone(), value.as_str().map(Into::into))).collect()
        });
        let cwd = arguments.get("cwd").and_then(Json::as_str).unwrap_or_default().to_string();
        self.out.push(Effect::RunInTerminal { request: seq, argv, env, cwd });
    }

    pub(super) fn on_in_terminal(&mut self, request: i64, pid: Result<u32, String>) {
        let result = pid.map(|pid| json!({ "processId": pid }));
        self.respond(request, "runInTerminal", result);
    }

    fn respond(&mut self, request_seq: i64, command: &str, result: Result<Json, String>) {
        let (success, message, body) = match result {
            Ok(body) => (true, None, body),
            Err(message) => (false, Some(message), Json::Null),
        };
        let response = Message::Response { request_seq, command: command.into(), success, message, body };
        self.out.push(Effect::Send(response));
    }

    pub(super) fn on_process(&mut self, body: &Json) {
        let body: types::ProcessBody = read(body);
        // The number is another machine's, or by now another process's.
        if matches!(self.target, Target::Remote(_) | Target::Core { .. }) {
            return;
        }
        if let Some(pid) = body.system_process_id.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0) {
            self.pid = Some(pid);
            self.out.push(Effect::Watch { pid });
        }
    }

    /// What an agent's adapter tells is recorded; types that nobody knows as notes.
    pub(super) fn on_told(&mut self, body: &Json) {
        if !self.adapter.quirks.agents {
            return;
        }
        let told = body.get("type").and_then(Json::as_str).unwrap_or_default();
        let thread = body.get("thread").and_then(Json::as_i64);
        let mut data = body.get("data").cloned().unwrap_or_default();
        if told == "log"
            && let (Some("debugger"), Some(message)) = (data["by"].as_str(), data["message"].as_str())
        {
            return self.out.push(Effect::Output { stream: Stream::Log, text: format!("{message}\n") });
        }
        match told {
            _ if data["aside"] == true => {}
            "tool.call" => self.doing = data["name"].as_str().map(|name| format!("in tool {name}")),
            "model.request" | "model.retry" => self.doing = Some("waiting for the model".into()),
            "model.response" | "model.error" | "tool.end" | "tool.denied" | "turn.end" => self.doing = None,
            _ => {}
        }
        let known = match told {
            // The session's own begin and end are its own.
            "session.start" => Some("agent.start"),
            "session.end" => Some("agent.end"),
            "error" => Some("error"),
            "log" => Some("log"),
            _ => crate::model::AGENT_EVENT_TYPES.into_iter().find(|known| *known == told),
        };
        if known.is_none() && data.is_object() {
            data["type"] = Json::String(told.chars().take(60).collect());
        }
        self.record(known.unwrap_or("note"), thread, data);
    }

    /// A field of the arguments of `launch` that is known late.
    pub fn add_argument(&mut self, name: &str, value: Json) {
        if let Target::Launch(launch) = &mut self.target {
            launch.extra.insert(name.into(), value);
        }
    }

    pub(super) fn on_output(&mut self, body: &Json) {
        let telemetry = body.get("category").and_then(Json::as_str) == Some("telemetry");
        if telemetry {
            let version = body.pointer("/data/packageVersion").and_then(Json::as_str);
            if self.version.is_none() {
                self.version = version.map(Into::into);
            }
            return;
        }
        let body: types::OutputBody = read(body);
        if self.take_logged(&body.output) {
            return;
        }
        if let (None, Some(pid)) = (self.pid, (self.adapter.quirks.pid_in_output)(&body.output)) {
            self.on_process(&json!({ "systemProcessId": pid }));
        }
        // Where the program's own streams come another way, what an adapter says is its own.
        let stream = match body.category.as_deref() {
            Some("stdout") if self.adapter.quirks.output_events => Stream::Stdout,
            Some("stderr") if self.adapter.quirks.output_events => Stream::Stderr,
            _ => Stream::Console,
        };
        self.out.push(Effect::Output { stream, text: body.output });
    }

    pub(super) fn on_exited(&mut self, body: &Json) {
        let body: types::ExitedBody = read(body);
        // No program exits with less than 0: an adapter that lost it says so, unless it means a signal by it.
        let is_known =
            |code: &i64| *code >= 0 || (self.adapter.quirks.exit_signal)(*code, self.last_signal.as_deref()).is_some();
        self.exit_code = body.exit_code.filter(is_known);
        if !self.exiting && self.state.is_live() {
            self.exiting = true;
            self.out.push(Effect::AskExit);
            self.out.push(Effect::Arm(Timer::Ending, std::time::Duration::from_millis(500)));
        }
    }

    pub(super) fn on_kernel_exit(&mut self, exit: Option<KernelExit>) {
        self.kernel_exit = exit;
    }

    /// An adapter may miss its program's end, as debugpy does when a child of the program holds its socket open.
    pub(super) fn on_unnoticed_end(&mut self) {
        if self.state.is_live() {
            self.exiting = true;
            self.out.push(Effect::AskExit);
            self.out.push(Effect::Arm(Timer::Ending, std::time::Duration::ZERO));
        }
    }

    pub(super) fn on_terminated(&mut self) {
        if !self.exiting && self.state.is_live() {
            self.exiting = true;
            self.out.push(Effect::AskExit);
            // `exited` may still follow; the deadline ends the wait for it.
            self.out.push(Effect::Arm(Timer::Ending, std::time::Duration::from_millis(150)));
            return;
        }
        self.on_ending_due();
    }

    /// Nobody has said yet how the program ended: a process that is not reaped yet will be.
    pub(super) fn on_ending_due(&mut self) {
        if self.kernel_exit.is_none() && self.exit_code.is_none() && self.exit_asked < 5 {
            self.exit_asked += 1;
            self.out.push(Effect::AskExit);
            self.out.push(Effect::Arm(Timer::Ending, std::time::Duration::from_millis(100)));
            return;
        }
        self.end_now();
    }

    /// The program is gone: everyone who waits is told how.
    pub(super) fn end_now(&mut self) {
        if !self.state.is_live() {
            return;
        }
        if let Some((op, _)) = self.start.take() {
            let failure = Failure::refused(format!("the program ended before it could be held ({})", self.via()))
                .hint("see what it printed: bugeye output");
            self.answer(op, Err(failure));
        }
        let ending = match (self.kernel_exit.take(), self.exit_code) {
            _ if self.detaching.is_some() => Ending::Detached,
            (Some(KernelExit::Signal(signal)), _) => Ending::Signalled { signal },
            (Some(KernelExit::Code(code)), _) => Ending::Exited { code: Some(code) },
            (None, Some(code)) => match (self.adapter.quirks.exit_signal)(code, self.last_signal.as_deref()) {
                Some(signal) => Ending::Signalled { signal },
                None => Ending::Exited { code: Some(code) },
            },
            (None, None) => Ending::Exited { code: None },
        };
        self.ending = Some(ending.clone());
        self.out.push(Effect::Drain);
        self.out.push(Effect::Disarm(Timer::Ending));
        for waiter in std::mem::take(&mut self.waiters) {
            self.out.push(Effect::Disarm(Timer::Wait(waiter.op)));
            self.answer(waiter.op, Ok(Answer::Outcome(Outcome::Ended(ending.clone()))));
        }
        if let Some(op) = self.detaching.take() {
            self.answer(op, Ok(Answer::Done));
        }
        let failure = self.ended_failure();
        self.fail_everyone(&failure);
        self.close();
        self.out.push(Effect::Finish { spare: matches!(ending, Ending::Detached) });
    }

    pub(super) fn on_gone(&mut self, adapter_exit: Option<String>, stderr_tail: String) {
        if !self.state.is_live() {
            return;
        }
        // The end was announced: that the adapter left first changes nothing.
        if self.exiting || self.detaching.is_some() {
            return self.end_now();
        }
        let starting = self.state == SessionState::Starting;
        // An agent is nobody's to end because its debugger fell: what it asks from now on is answered by nobody. How the
        // adapter ended is told by the supervisor; without one nobody could look after what goes on.
        let goes_on = self.adapter.quirks.agents && self.pid.is_some() && adapter_exit.is_some();
        self.ending = Some(Ending::Lost { adapter_exit, stderr_tail });
        let mut failure = self.ended_failure();
        if starting {
            failure = failure.hint("is it the right program? bugeye doctor");
        }
        self.out.push(Effect::Drain);
        if let Some((op, _)) = self.start.take() {
            self.answer(op, Err(failure.clone()));
        }
        self.fail_everyone(&failure);
        self.record("error", None, json!({ "message": failure.message }));
        self.close();
        self.out.push(Effect::Finish { spare: self.target.is_attached() || goes_on });
    }
}
