//! Commands that look at or change a stopped program.

use serde_json::{Value as Json, json};

use super::gather::Purpose;
use super::look::{Locals, Look};
use super::reasons::without_note;
use super::{Answer, ExceptionReport, FrameChoice, OpId, Pending, Session, ThreadLine};
use crate::dap::types::{self, ExceptionDetails, read};
use crate::failure::Failure;
use crate::model::{Reason, SessionState, ThreadInfo};
use crate::render::quoted;

/// Threads whose places are asked for one by one.
const MAX_PLACES: usize = 64;

/// A `threads` answer under way.
#[derive(Debug)]
pub(super) struct ThreadList {
    lines: Vec<ThreadLine>,
    open: usize,
}

/// A thread that is asked for must exist, where it is known which do.
pub fn check_thread(mut threads: impl Iterator<Item = i64> + Clone, id: i64) -> Result<(), Failure> {
    let mut known = threads.clone().take(20).map(|thread| thread.to_string()).peekable();
    if known.peek().is_none() || threads.any(|thread| thread == id) {
        return Ok(());
    }
    let known: Vec<String> = known.collect();
    Err(Failure::not_found(format!("there is no thread {id}"))
        .hint(format!("threads: {}", known.join(", ")))
        .hint("with their places: bugeye threads"))
}

/// An exception is only told where the program stopped for one.
pub fn check_thrown(reason: &Reason) -> Result<(), Failure> {
    if matches!(reason, Reason::Exception { .. } | Reason::Signal { .. }) {
        return Ok(());
    }
    Err(Failure::wrong_state("the program did not stop on an exception or a signal")
        .hint("stop where one is raised: bugeye catch"))
}

impl Session {
    pub(super) fn look(&mut self, op: OpId, look: Look) {
        let stack_alone = look.locals == Locals::No && look.expressions.is_empty();
        if self.state == SessionState::Running && self.adapter.quirks.stacks_while_running && stack_alone {
            return self.gather(Purpose::Op(op), look);
        }
        match self.check_stopped(look.thread) {
            Ok(()) => self.gather(Purpose::Op(op), look),
            Err(failure) => self.answer(op, Err(failure)),
        }
    }

    /// The program must stand still, and the thread must exist.
    pub(super) fn check_stopped(&self, thread: Option<i64>) -> Result<(), Failure> {
        if self.state != SessionState::Stopped || self.standing.is_none() {
            return Err(self.wrong_state());
        }
        thread.map_or(Ok(()), |id| check_thread(self.threads.iter().map(|thread| thread.id), id))
    }

    pub(super) fn select(&mut self, op: OpId, thread: Option<i64>, frame: Option<FrameChoice>, mut look: Look) {
        if let Err(failure) = self.check_stopped(thread) {
            return self.answer(op, Err(failure));
        }
        let Some(standing) = &self.standing else { return };
        let current = if thread.is_none_or(|id| id == standing.thread) { standing.frame } else { 0 };
        let number = match frame {
            Some(FrameChoice::Number(number)) => number,
            Some(FrameChoice::Up) => current.saturating_add(1),
            Some(FrameChoice::Down) if current == 0 => {
                let failure = Failure::refused("frame 0 is the innermost").hint("outwards: bugeye up");
                return self.answer(op, Err(failure));
            }
            Some(FrameChoice::Down) => current - 1,
            None => current,
        };
        // A frame beyond the stack is found out by the look; the selection stays where it was then.
        let depth = standing.report.as_ref().filter(|report| !report.more_frames).map(|report| report.frames.len());
        let same_thread = thread.is_none_or(|id| id == standing.thread);
        if let (Some(depth), true) = (depth, same_thread)
            && usize::try_from(number).is_ok_and(|number| number >= depth)
        {
            let failure = Failure::not_found(format!("there is no frame {number}: the stack has {depth}"))
                .hint("list them: bugeye backtrace");
            return self.answer(op, Err(failure));
        }
        look.thread = thread;
        look.frame = Some(number);
        let id = self.next_gather;
        self.gather(Purpose::Op(op), look);
        if let Some(gather) = self.gathers.get_mut(&id) {
            gather.selects = true;
        }
    }

    pub(super) fn list_threads(&mut self, op: OpId) {
        match self.state {
            SessionState::Stopped | SessionState::Running => {
                self.request("threads", Json::Null, Pending::Threads(op), self.limits.inspect);
            }
            _ => {
                let failure = self.wrong_state();
                self.answer(op, Err(failure));
            }
        }
    }

    pub(super) fn on_threads(&mut self, op: OpId, result: Result<Json, String>) {
        let threads = match result {
            Ok(body) => read::<types::ThreadsBody>(&body).threads,
            Err(message) if self.is_not_stopped(&message) => self.threads.clone(),
            Err(message) => {
                let failure = self.adapter_failure("the threads can't be listed", &message);
                return self.answer(op, Err(failure));
            }
        };
        self.threads.clone_from(&threads);
        let selected = self.standing.as_ref().map(|standing| standing.thread);
        let lines: Vec<ThreadLine> = threads
            .iter()
            .map(|thread| ThreadLine {
                thread: ThreadInfo {
                    id: thread.id,
                    name: Some(quoted(&(self.adapter.quirks.thread_name)(&thread.name)))
                        .filter(|name| !name.is_empty()),
                },
                state: if thread.running { SessionState::Running } else { self.state },
                function: None,
                file: None,
                line: None,
                selected: selected == Some(thread.id),
            })
            .collect();
        let has_places = self.state == SessionState::Stopped || self.adapter.quirks.stacks_while_running;
        if !has_places || lines.is_empty() {
            return self.answer(op, Ok(Answer::Threads(lines)));
        }
        let asked = lines.len().min(MAX_PLACES);
        self.thread_lists.insert(op, ThreadList { lines, open: asked });
        for (index, thread) in threads.iter().take(asked).enumerate() {
            let arguments = json!({ "threadId": thread.id, "startFrame": 0, "levels": 1 });
            self.request("stackTrace", arguments, Pending::ThreadPlace(op, index), self.limits.inspect);
        }
    }

    pub(super) fn on_thread_place(&mut self, op: OpId, index: usize, result: Result<Json, String>) {
        let Some(list) = self.thread_lists.get_mut(&op) else { return };
        list.open -= 1;
        // Where threads stop one by one, another may run on.
        if let (Err(message), Some(line)) = (&result, list.lines.get_mut(index))
            && message != super::SILENT
            && !line.selected
        {
            line.state = SessionState::Running;
        }
        let stack: types::StackTraceBody = result.map(|body| read(&body)).unwrap_or_default();
        if let (Some(line), Some(frame)) = (list.lines.get_mut(index), stack.stack_frames.first()) {
            line.function = Some(quoted(&(self.adapter.quirks.function_name)(&frame.name)));
            line.file = frame.source.as_ref().and_then(|source| source.path.clone());
            line.line = frame.line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0);
        }
        if list.open == 0
            && let Some(list) = self.thread_lists.remove(&op)
        {
            self.answer(op, Ok(Answer::Threads(list.lines)));
        }
    }

    pub(super) fn on_thread_event(&mut self, body: &Json) {
        let body: types::ThreadBody = read(body);
        if body.reason == "exited" {
            self.threads.retain(|thread| thread.id != body.thread_id);
        } else if !self.threads.iter().any(|thread| thread.id == body.thread_id) {
            self.threads.push(types::Thread { id: body.thread_id, ..types::Thread::default() });
        }
        self.record("thread", Some(body.thread_id), json!({ "what": body.reason }));
    }

    /// Evaluates for effect as well as for value.
    pub(super) fn evaluate(&mut self, op: OpId, expression: String, look: &Look) {
        if let Err(failure) = self.check_stopped(look.thread) {
            return self.answer(op, Err(failure));
        }
        self.with_frame(op, look, Purposeful::Evaluate(expression));
    }

    pub(super) fn set(&mut self, op: OpId, target: &str, value: &str, look: &Look) {
        if let Err(failure) = self.check_stopped(look.thread) {
            return self.answer(op, Err(failure));
        }
        let what = Purposeful::Set { target: target.into(), value: value.into() };
        self.with_frame(op, look, what);
    }

    pub(super) fn arguments(&mut self, op: OpId, look: &Look) {
        if let Err(failure) = self.check_stopped(look.thread) {
            return self.answer(op, Err(failure));
        }
        self.with_frame(op, look, Purposeful::Arguments);
    }

    /// Finds the frame's id, which changes with every stop, then asks.
    pub(super) fn with_frame(&mut self, op: OpId, look: &Look, what: Purposeful) {
        let Some(standing) = &self.standing else { return };
        let thread = look.thread.unwrap_or(standing.thread);
        let frame = look.frame.unwrap_or(if thread == standing.thread { standing.frame } else { 0 });
        self.framed.insert(op, (what, frame, self.epoch));
        let levels = frame.saturating_add(1);
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": levels });
        self.request("stackTrace", arguments, Pending::Evaluate(op), self.limits.inspect);
    }

    /// The stack came, or then the value.
    pub(super) fn on_evaluated(&mut self, op: OpId, result: Result<Json, String>) {
        let Some((what, frame, epoch)) = self.framed.remove(&op) else {
            return self.on_effect(op, result);
        };
        if epoch != self.epoch {
            let failure = Failure::wrong_state("the program went on while it was looked at").hint("bugeye status");
            return self.answer(op, Err(failure));
        }
        let stack = match result {
            Ok(body) => read::<types::StackTraceBody>(&body),
            Err(message) => {
                let failure = self.adapter_failure("the stack can't be read", &message);
                return self.answer(op, Err(failure));
            }
        };
        let index = usize::try_from(frame).unwrap_or(usize::MAX);
        let Some(top) = stack.stack_frames.get(index) else {
            let failure =
                Failure::not_found(format!("there is no frame {frame}: the stack has {}", stack.stack_frames.len()))
                    .hint("list them: bugeye backtrace");
            return self.answer(op, Err(failure));
        };
        let frame_id = top.id;
        let native = |command: &str| json!({ "expression": (self.adapter.quirks.raw)(command), "frameId": frame_id, "context": "repl" });
        if matches!(what, Purposeful::Raw(_) | Purposeful::Arguments | Purposeful::Native(_) | Purposeful::Watch(..)) {
            // lldb-dap gives native commands to the frame whose scopes were asked for last, whatever `frameId` says.
            self.request("scopes", json!({ "frameId": frame_id }), Pending::Quiet, self.limits.inspect);
        }
        let quirks = &self.adapter.quirks;
        match what {
            Purposeful::Evaluate(expression) => {
                let arguments =
                    json!({ "expression": expression, "frameId": frame_id, "context": quirks.eval_context });
                let why = Pending::Effect(op, expression, frame_id);
                self.request("evaluate", arguments, why, self.limits.request);
            }
            Purposeful::Set { target, value } if frame > 0 && quirks.assigns_in_top => {
                self.set_by_name(op, frame_id, target, value);
            }
            Purposeful::Raw(expression) => {
                let arguments = json!({ "expression": expression, "frameId": frame_id, "context": "repl" });
                self.request("evaluate", arguments, Pending::Raw(op), self.limits.request);
            }
            Purposeful::Set { target, value } => {
                let (command, arguments) = if self.capabilities.has("supportsSetExpression") {
                    ("setExpression", json!({ "expression": target, "value": value, "frameId": frame_id }))
                } else {
                    let expression = (quirks.assignment)(&target, &value);
                    (
                        "evaluate",
                        json!({ "expression": expression, "frameId": frame_id, "context": quirks.eval_context }),
                    )
                };
                self.request(command, arguments, Pending::Assigned(op, target, frame_id), self.limits.request);
            }
            Purposeful::Native(command) => {
                self.request("evaluate", native(&command), Pending::Native(op), self.limits.request);
            }
            Purposeful::Watch(command, step) => {
                self.request("evaluate", native(&command), Pending::Watch(op, step), self.limits.request);
            }
            Purposeful::Code { address, count } => {
                let from = address.or_else(|| top.instruction_pointer_reference.clone());
                self.ask_code(op, from, count);
            }
            Purposeful::Data(step) => self.ask_data(op, frame_id, top.name.clone(), &step),
            Purposeful::Jump(command, view) => {
                let jump = super::watch::Jump::Done { view };
                self.request("evaluate", native(&command), Pending::Goto(op, jump), self.limits.request);
            }
            Purposeful::Arguments => {
                let like = |frame: &types::StackFrame| (frame.name.clone(), frame.line);
                let above = stack.stack_frames[..index].iter().filter(|other| like(other) == like(top)).count();
                let frame = crate::model::Frame {
                    index: frame,
                    function: top.name.clone(),
                    file: top.source.as_ref().and_then(|source| source.path.clone()),
                    line: top.line.and_then(|line| u32::try_from(line).ok()),
                    module: None,
                    runtime: false,
                    locals: None,
                };
                let expression = (quirks.arguments.0)(&frame, above);
                let arguments = json!({ "expression": expression, "frameId": frame_id, "context": "repl" });
                self.request("evaluate", arguments, Pending::Names(op), self.limits.inspect);
            }
        }
    }

    pub(super) fn on_effect(&mut self, op: OpId, result: Result<Json, String>) {
        match result {
            Ok(body) => {
                let body: types::EvaluateBody = read(&body);
                let mut text = (self.adapter.quirks.tidy)(&body.result, body.kind.as_deref());
                if body.cut > 0 {
                    text.push_str(&format!("… (+{} characters)", body.cut));
                }
                self.answer(op, Ok(Answer::Text(text)));
            }
            Err(message) => {
                let failure =
                    self.adapter_failure("it can't be evaluated", &message).hint("what there is: bugeye locals");
                self.answer(op, Err(failure));
            }
        }
    }

    pub(super) fn on_names(&mut self, op: OpId, result: Result<Json, String>) {
        match result {
            Ok(body) => {
                let body: types::EvaluateBody = read(&body);
                let names = (self.adapter.quirks.arguments.1)(&body.result);
                self.answer(op, Ok(Answer::Names(names)));
            }
            Err(message) => {
                let failure = self.adapter_failure("the arguments can't be told", &message);
                self.answer(op, Err(failure));
            }
        }
    }

    pub(super) fn raw(&mut self, op: OpId, text: &str) {
        if self.state == SessionState::Starting {
            let failure = self.wrong_state();
            return self.answer(op, Err(failure));
        }
        let expression = (self.adapter.quirks.raw)(text);
        if self.check_stopped(None).is_ok() {
            return self.with_frame(op, &Look::default(), Purposeful::Raw(expression));
        }
        let arguments = json!({ "expression": expression, "context": "repl" });
        self.request("evaluate", arguments, Pending::Raw(op), self.limits.request);
    }

    pub(super) fn on_raw(&mut self, op: OpId, result: Result<Json, String>) {
        match result {
            Ok(body) => {
                let body: types::EvaluateBody = read(&body);
                let answer = match (self.adapter.natives.failure)(&body.result) {
                    Some(message) => Err(Failure::refused(format!("the debugger answered: {}", quoted(&message)))
                        .hint("its own help: bugeye raw help")),
                    None => Ok(Answer::Text((self.adapter.quirks.raw_answer)(&body.result))),
                };
                self.answer(op, answer);
            }
            Err(message) => {
                let mut failure = self.adapter_failure("the debugger answered", &message);
                if self.state == SessionState::Running {
                    failure = failure.hint("the program is running: bugeye pause");
                }
                self.answer(op, Err(failure));
            }
        }
    }

    pub(super) fn exception(&mut self, op: OpId) {
        if let Err(failure) = self.check_stopped(None) {
            return self.answer(op, Err(failure));
        }
        let Some(standing) = &self.standing else { return };
        if let Err(failure) = check_thrown(&standing.reason) {
            return self.answer(op, Err(failure));
        }
        if let Reason::Exception { text } = &standing.reason
            && self.adapter.quirks.catch_functions.iter().any(|(word, _)| word == text)
        {
            // Stopped by a function of the runtime, which has told the rest on standard error.
            let report = ExceptionReport { kind: text.clone(), message: None, stack: None, cause: Vec::new() };
            return self.answer(op, Ok(Answer::Exception(report)));
        }
        if self.adapter.natives.why.is_some() || self.adapter.quirks.throws_as_breakpoints {
            // All that can be known was told with the stop.
            let (kind, message) = match &standing.reason {
                Reason::Signal { name, detail } => (name.clone(), detail.clone()),
                Reason::Exception { text } => match text.split_once(": ") {
                    Some((kind, message)) => (kind.to_string(), Some(message.to_string())),
                    None => (text.clone(), None),
                },
                _ => (String::new(), None),
            };
            let report =
                ExceptionReport { kind: quoted(&kind), message: message.as_deref().map(quoted), ..Default::default() };
            return self.answer(op, Ok(Answer::Exception(report)));
        }
        if !self.capabilities.has("supportsExceptionInfoRequest") {
            let failure = self.unsupported("telling about exceptions", "where it happened: bugeye context");
            return self.answer(op, Err(failure));
        }
        let thread = standing.thread;
        self.request("exceptionInfo", json!({ "threadId": thread }), Pending::Exception(op), self.limits.inspect);
    }

    pub(super) fn on_exception_info(&mut self, op: OpId, result: Result<Json, String>) {
        match result {
            Ok(body) => {
                let body: types::ExceptionInfoBody = read(&body);
                let details = body.details.unwrap_or_default();
                let mut cause = Vec::new();
                let mut inner: Option<&ExceptionDetails> = details.inner_exception.first();
                while let Some(exception) = inner {
                    let name = exception.type_name.as_deref().unwrap_or("exception");
                    cause.push(quoted(&format!("{name}: {}", exception.message.as_deref().unwrap_or_default())));
                    inner = exception.inner_exception.first();
                }
                let report = ExceptionReport {
                    kind: quoted(without_note(details.type_name.as_deref().unwrap_or(&body.exception_id))),
                    message: body.description.or(details.message).as_deref().map(quoted),
                    stack: details.stack_trace,
                    cause,
                };
                self.answer(op, Ok(Answer::Exception(report)));
            }
            Err(message) => {
                let failure = self.adapter_failure("the exception can't be read", &message);
                self.answer(op, Err(failure));
            }
        }
    }
}

/// What an operation wants of a frame, once its id is known.
#[derive(Debug)]
pub(super) enum Purposeful {
    Evaluate(String),
    /// In the selected frame, where there is one.
    Raw(String),
    Set {
        target: String,
        value: String,
    },
    Arguments,
    Native(String),
    Watch(String, super::watch::Step),
    Data(super::watch::Step),
    Code {
        address: Option<String>,
        count: u32,
    },
    Jump(String, crate::model::View),
}

impl Look {
    /// A look at the selected frame's locals.
    #[must_use]
    pub fn locals() -> Self {
        Self { locals: Locals::Selected, ..Self::default() }
    }
}
