//! The state machine of one debuggee: told what happened, it says what to do.
//!
//! It does no I/O, reads no clock and holds no lock: one task owns it, feeds it [`Input`]s and carries out its
//! [`Effect`]s. So every order of messages and every fault an adapter can produce is a unit test. Requests under way are
//! [`Pending`] variants, looks at the program are [`gather::Gather`]s, commands that wait for a stop are `Waiter`s;
//! nothing is kept as a closure.

mod breakpoints;
mod data;
mod effect;
mod frames;
mod gather;
mod inspect;
mod logged;
mod logpoints;
mod look;
mod pending;
mod reasons;
mod reverse;
mod running;
mod start;
mod stopped;
#[cfg(test)]
mod tests;
mod together;
mod trace;
mod tree;
mod watch;
mod words;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use serde_json::{Value as Json, json};

pub use breakpoints::{MAX_POINTS, UNTIL_ID};
pub use gather::IMPURE;
pub use inspect::{check_thread, check_thrown};
pub use look::{Locals, Look, Scope, Seen};
use pending::{Config, Pending};
pub use trace::{FULL, NO_FUNCTION};
pub use tree::Told;
pub use words::{
    Answer, Effect, ExceptionReport, FrameChoice, Input, KernelExit, Limits, Op, OpId, Outcome, Resume, Snapshot,
    Stream, ThreadLine, Timer, Wait, WatchLine,
};

use crate::adapters::{Adapter, Stdio};
use crate::dap::Message;
use crate::dap::types::Capabilities;
use crate::failure::Failure;
use crate::model::{Breakpoint, Ending, SessionState, Stop, Target, Variable, View};

#[derive(Debug)]
struct Waiter {
    op: OpId,
    view: View,
    /// Its time is up, and was prolonged to complete the report of a stop.
    late: bool,
}

#[derive(Debug, Default)]
struct Handshake {
    initialized: bool,
    configured: bool,
    /// Configuration requests that are not answered yet.
    open: usize,
    breakpoints_sent: bool,
    done_sent: bool,
}

/// Where the program stands, while it is stopped.
#[derive(Debug)]
struct Standing {
    number: u64,
    reason: crate::model::Reason,
    thread: i64,
    frame: u32,
    condition_failed: Option<String>,
    /// Where the thread stands that stopped.
    stood: Option<logpoints::Stood>,
    /// The report is complete, for those who ask later.
    report: Option<Box<Stop>>,
}

/// One debuggee.
#[derive(Debug)]
pub struct Session {
    adapter: &'static Adapter,
    version: Option<String>,
    limits: Limits,
    target: Target,
    stdio: Stdio,
    state: SessionState,
    pid: Option<u32>,
    capabilities: Capabilities,
    handshake: Handshake,
    next_seq: i64,
    pending: BTreeMap<i64, Pending>,
    start: Option<(OpId, Option<Wait>)>,
    wishes: Vec<Breakpoint>,
    bound: BTreeMap<u32, breakpoints::Bound>,
    /// Files that have breakpoints at the adapter now.
    sent_files: Vec<String>,
    functions_sent: bool,
    /// Functions that the adapter knows by another name than the user wrote, and what it said to that one.
    renamed: BTreeMap<String, (String, String)>,
    /// Something was refused because the program ran: it is sent again at the next stop.
    unsent: bool,
    /// The adapter's ids of the breakpoints that `catch` made.
    exception_ids: Vec<i64>,
    catch: Vec<String>,
    waiters: Vec<Waiter>,
    /// Counts resumes and stops, so that what was asked at one stop is not answered at another.
    epoch: u64,
    /// A resume is under way and neither answered nor announced.
    resuming: bool,
    /// A stop that came while the resume was neither.
    early: Option<crate::dap::types::StoppedBody>,
    /// What an agent was last heard to do.
    doing: Option<String>,
    /// The adapter sends `continued` events.
    announces: bool,
    asked_to_pause: bool,
    /// The resume under way is a step, which something else may interrupt.
    stepping: bool,
    step: Option<logpoints::Step>,
    /// A function that the step called is run to its return.
    returning: bool,
    /// The function that the step under way leaves.
    leaving: Option<String>,
    /// Where `until` is to end.
    until: Option<Breakpoint>,
    /// The first stop is to be the program's beginning.
    entering: bool,
    /// A recording is to begin at the program's beginning; then, the stop at which it does.
    to_record: bool,
    recording_at: Option<crate::dap::types::StoppedBody>,
    standing: Option<Standing>,
    /// Where it stood before the resume under way, should the adapter refuse.
    stood: Option<Standing>,
    /// Stops of single threads that came while another thread's stop was shown.
    queue: VecDeque<crate::dap::types::StoppedBody>,
    stops: u64,
    gathers: BTreeMap<u64, gather::Gather>,
    stack: Option<gather::Stack>,
    next_gather: u64,
    logging: Option<logpoints::Logging>,
    together: Option<together::Together>,
    /// Where it is told whether there can be others, once they were asked for.
    addresses: Option<Vec<u64>>,
    /// The thread of the step under way, and whether another thread's breakpoint has interrupted one for good.
    step_thread: Option<i64>,
    unfinished: bool,
    /// A throw that is looked at: its event, and the expression that is still to be evaluated.
    thrown: Option<(crate::dap::types::StoppedBody, String)>,
    tracing: Option<trace::Tracing>,
    /// Operations that wait for traced points to be set.
    tracers: Vec<OpId>,
    watches: Vec<watch::Watched>,
    next_watch: u32,
    /// Locals at the last report, to see what changed: the function they belong to, and name → text.
    before: Option<(String, BTreeMap<String, String>)>,
    threads: Vec<crate::dap::types::Thread>,
    thread_lists: BTreeMap<OpId, inspect::ThreadList>,
    /// Operations that wait for a frame's id: what they want, which frame, at which stop.
    framed: BTreeMap<OpId, (inspect::Purposeful, u32, u64)>,
    batches: BTreeMap<OpId, usize>,
    /// Batches that only check conditions; the breakpoints themselves follow.
    checking: BTreeSet<OpId>,
    /// Conditions that were seen to parse.
    parsed: BTreeSet<String>,
    last_signal: Option<String>,
    exit_code: Option<i64>,
    kernel_exit: Option<KernelExit>,
    exiting: bool,
    /// Times the kernel was asked how the program ended, and could not tell yet.
    exit_asked: u32,
    detaching: Option<OpId>,
    ending: Option<Ending>,
    out: Vec<Effect>,
}

impl Session {
    /// A session that has not begun: hand it [`Op::Start`].
    #[must_use]
    pub fn new(adapter: &'static Adapter, target: Target, stdio: Stdio, limits: Limits) -> Self {
        Self {
            adapter,
            version: None,
            limits,
            target,
            stdio,
            state: SessionState::Starting,
            pid: None,
            capabilities: Capabilities::default(),
            handshake: Handshake::default(),
            next_seq: 1,
            pending: BTreeMap::new(),
            start: None,
            wishes: Vec::new(),
            bound: BTreeMap::new(),
            sent_files: Vec::new(),
            functions_sent: false,
            renamed: BTreeMap::new(),
            unsent: false,
            exception_ids: Vec::new(),
            catch: Vec::new(),
            waiters: Vec::new(),
            epoch: 0,
            resuming: false,
            early: None,
            doing: None,
            announces: false,
            asked_to_pause: false,
            stepping: false,
            step: None,
            returning: false,
            leaving: None,
            until: None,
            entering: false,
            to_record: false,
            recording_at: None,
            standing: None,
            stood: None,
            queue: VecDeque::new(),
            stops: 0,
            gathers: BTreeMap::new(),
            stack: None,
            next_gather: 0,
            logging: None,
            together: None,
            addresses: None,
            step_thread: None,
            unfinished: false,
            thrown: None,
            tracing: None,
            tracers: Vec::new(),
            watches: Vec::new(),
            next_watch: 1,
            before: None,
            threads: Vec::new(),
            thread_lists: BTreeMap::new(),
            framed: BTreeMap::new(),
            batches: BTreeMap::new(),
            checking: BTreeSet::new(),
            parsed: BTreeSet::new(),
            last_signal: None,
            exit_code: None,
            kernel_exit: None,
            exiting: false,
            exit_asked: 0,
            detaching: None,
            ending: None,
            out: Vec::new(),
        }
    }

    /// Takes one input; answers what to do about it.
    pub fn handle(&mut self, input: Input) -> Vec<Effect> {
        match input {
            Input::Op(id, op) => self.on_op(id, op),
            Input::Forget(id) => self.forget(id),
            Input::Adapter(message) => self.on_message(message),
            Input::Timer(timer) => self.on_timer(timer),
            Input::Exit(exit) => self.on_kernel_exit(exit),
            Input::Unnoticed => self.on_unnoticed_end(),
            Input::InTerminal { request, pid } => self.on_in_terminal(request, pid),
            Input::Gone { adapter_exit, stderr_tail } => self.on_gone(adapter_exit, stderr_tail),
        }
        std::mem::take(&mut self.out)
    }

    /// The adapter with its version, as replies name it.
    #[must_use]
    pub fn via(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.adapter.id),
            None => self.adapter.id.to_string(),
        }
    }

    #[must_use]
    pub const fn adapter(&self) -> &'static Adapter {
        self.adapter
    }

    /// The breakpoints that are wished for.
    #[must_use]
    pub fn wishes(&self) -> &[Breakpoint] {
        &self.wishes
    }

    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let top = self.standing.as_ref().and_then(|standing| {
            standing.report.as_ref().and_then(|stop| stop.frames.iter().find(|frame| frame.index == stop.frame))
        });
        Snapshot {
            state: self.state,
            pid: self.pid,
            version: self.version.clone(),
            reason: self.standing.as_ref().map(|standing| standing.reason.clone()),
            thread: self.standing.as_ref().map(|standing| standing.thread),
            function: match self.state {
                SessionState::Running => self.doing.clone(),
                _ => top.map(|frame| frame.function.clone()),
            },
            file: top.and_then(|frame| frame.file.clone()),
            line: top.and_then(|frame| frame.line),
            stops: self.stops,
            ending: self.ending.clone(),
            ends_with_us: self.ends_with_us(),
            hits: self.bindings(),
            traced: self.trace_bindings(),
            logged: self.is_logged(),
        }
    }

    fn on_op(&mut self, id: OpId, op: Op) {
        if self.state == SessionState::Lost || (self.state == SessionState::Exited && !matches!(op, Op::Await(_))) {
            let failure = self.ended_failure();
            return self.answer(id, Err(failure));
        }
        if matches!(self.target, Target::Core { .. }) && op.needs_a_process() {
            let failure = Failure::unsupported("a core file can't run: its program has ended")
                .hint("look at it: bugeye backtrace, bugeye locals, bugeye print EXPR")
                .hint("run the program itself: bugeye run PROGRAM");
            return self.answer(id, Err(failure));
        }
        if !matches!(op, Op::Look(_) | Op::Select { .. } | Op::Threads | Op::Arguments(_)) {
            // It may change what the stack was read for.
            self.stack = None;
        }
        match op {
            Op::Start { wishes, catch, run } => self.begin(id, wishes, catch, run),
            Op::Breakpoints(wishes) => self.update_breakpoints(id, wishes),
            Op::Catch(filters) => self.update_catch(id, filters),
            Op::Resume { how, thread, wait } => self.resume(id, how, thread, wait),
            Op::Pause(wait) => self.pause(id, wait),
            Op::Await(wait) => self.wait_for_stop(id, wait),
            Op::Look(look) => self.look(id, look),
            Op::Select { thread, frame, look } => self.select(id, thread, frame, look),
            Op::Threads => self.list_threads(id),
            Op::Evaluate { expression, look } => self.evaluate(id, expression, &look),
            Op::Set { target, value, look } => self.set(id, &target, &value, &look),
            Op::Arguments(look) => self.arguments(id, &look),
            Op::Raw(text) => self.raw(id, &text),
            Op::Exception => self.exception(id),
            Op::Native { command, look } => self.native(id, command, &look),
            Op::Request { command, arguments, capability, what } => {
                self.plain_request(id, command, arguments, (capability, what));
            }
            Op::Disassemble { address, count, look } => self.disassemble(id, address, count, &look),
            Op::Watch { expression, access, condition, look } => {
                self.watch(id, watch::Step::Set { expression, access, condition }, &look);
            }
            Op::Unwatch(number) => self.unwatch(id, number),
            Op::Watches => self.list_watches(id),
            Op::Jump { file, line, view } => self.jump(id, &file, line, view),
            Op::Trace { points, hook } => self.trace(id, points, &hook),
            Op::Untrace => self.untrace(id),
            Op::Detach => self.detach(id),
            Op::Stop { kill } => self.stop(id, kill),
        }
    }

    fn on_message(&mut self, message: Message) {
        if !self.state.is_live() {
            return;
        }
        match message {
            Message::Response { request_seq, success, message, body, .. } => {
                // An answer nobody asked for, or asked for and gave up on, is no reason to fail.
                let Some(pending) = self.pending.remove(&request_seq) else { return };
                self.out.push(Effect::Disarm(Timer::Request(request_seq)));
                let result = if success { Ok(body) } else { Err(Message::error_text(message.as_deref(), &body)) };
                self.on_response(pending, result);
            }
            Message::Event { event, body } => self.on_event(&event, &body),
            Message::Request { seq, command, arguments } => self.on_reverse_request(seq, &command, &arguments),
        }
    }

    fn on_response(&mut self, pending: Pending, result: Result<Json, String>) {
        match pending {
            Pending::Initialize => self.on_initialize(result),
            Pending::Launch => self.on_launch(result),
            Pending::Config(config) => self.on_configured(&config, result),
            Pending::ConfigurationDone => self.on_configuration_done(result),
            Pending::Update(config, op) => self.on_updated(&config, op, result),
            Pending::Resume(op) => self.on_resumed(op, result),
            Pending::Pause(op) => self.on_paused(op, result),
            Pending::Gather(id, step) => self.on_gathered(id, &step, result),
            Pending::Threads(op) => self.on_threads(op, result),
            Pending::ThreadPlace(op, index) => self.on_thread_place(op, index, result),
            Pending::Evaluate(op) => self.on_evaluated(op, result),
            Pending::Effect(op, expression, frame) => self.on_effect_of(op, &expression, frame, result),
            Pending::Assigned(op, target, frame) => self.on_assigned(op, &target, frame, result),
            Pending::SetIn(op, set) => self.on_set_scopes(op, set, result),
            Pending::SetDone(op, set) => self.on_set_done(op, set, result),
            Pending::Names(op) => self.on_names(op, result),
            Pending::Native(op) => self.on_native(op, result),
            Pending::Request(op, what) => self.on_plain_request(op, what, result),
            Pending::Watch(op, step) => self.on_watch(op, step, result),
            Pending::WatchValues => self.on_watch_values(result),
            Pending::DataFrames(epoch) => self.on_data_frames(epoch, result),
            Pending::DataValue(id, epoch, top) => self.on_data_value(id, epoch, top, result),
            Pending::Together(ask) => self.on_together(ask, result),
            Pending::LetRun(op) => self.finish_detach(op),
            Pending::Goto(op, jump) => self.on_goto(op, &jump, result),
            Pending::Raw(op) => self.on_raw(op, result),
            Pending::Exception(op) => self.on_exception_info(op, result),
            Pending::Entry(thread) => self.on_entry_frame(thread, result),
            Pending::Depth(resumed) => self.on_depth(resumed, result),
            Pending::Log(index) => self.on_log_value(index, result),
            Pending::GoOn(thread) => self.on_gone_on(thread, result),
            Pending::Reason(epoch) => self.on_reason(epoch, result),
            Pending::Why(epoch) => self.on_why(epoch, result),
            Pending::Also(epoch) => self.on_also_stopped(epoch, result),
            Pending::Settled => self.on_settled(result),
            Pending::Record => self.on_recording(result),
            Pending::Thrown => self.on_thrown(result),
            Pending::Trace(step) => self.on_trace_step(step, result),
            Pending::Disarm(op) => self.send_updates(op, false),
            Pending::Quiet => {}
            Pending::DetachFast(op) => self.on_detached_fast(op, &result),
            Pending::Detach(op) => self.on_detached(op, result),
        }
    }

    fn on_event(&mut self, event: &str, body: &Json) {
        match event {
            "initialized" => self.on_initialized(),
            "capabilities" => self.capabilities.merge(body.get("capabilities").unwrap_or(&Json::Null)),
            "stopped" => self.on_stopped(body),
            "continued" => self.on_continued(),
            "output" => self.on_output(body),
            "breakpoint" => self.on_breakpoint_event(body),
            "process" => self.on_process(body),
            "thread" => self.on_thread_event(body),
            "exited" => self.on_exited(body),
            "terminated" => self.on_terminated(),
            "bugeye/record" => self.on_told(body),
            _ => {}
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Request(seq) => {
                if let Some(pending) = self.pending.remove(&seq) {
                    self.on_silence(seq, pending);
                }
            }
            Timer::Wait(op) => self.on_wait_over(op),
            Timer::Settle => self.settle(),
            Timer::Ending => self.on_ending_due(),
            Timer::Detach(op) => self.finish_detach(op),
        }
    }

    /// The adapter did not answer in time: the request failed, the session goes on.
    fn on_silence(&mut self, seq: i64, pending: Pending) {
        match pending {
            // Some adapters answer `launch` only once the program was let go: a program may be held for as long as it
            // takes. A late refusal still counts.
            Pending::Launch if self.state != SessionState::Starting => {
                self.pending.insert(seq, pending);
            }
            Pending::Initialize | Pending::Launch | Pending::Config(_) => {
                let failure = Failure::timed_out(format!("{} did not get ready in time", self.adapter.id))
                    .hint("see what it said: bugeye daemon log")
                    .hint("check the adapter: bugeye doctor");
                self.fail_start(&failure);
            }
            // A program may keep its adapter busy while it runs; its stop will tell.
            Pending::ConfigurationDone => {}
            pending => self.on_response(pending, Err(SILENT.into())),
        }
    }

    /// Sends a request and remembers why. It fails by itself after `limit`.
    fn request(&mut self, command: &str, arguments: Json, why: Pending, limit: Duration) -> i64 {
        let seq = self.next_seq;
        self.next_seq += 1;
        self.pending.insert(seq, why);
        self.out.push(Effect::Send(Message::Request { seq, command: command.into(), arguments }));
        self.out.push(Effect::Arm(Timer::Request(seq), limit));
        seq
    }

    fn answer(&mut self, op: OpId, answer: Result<Answer, Failure>) {
        self.out.push(Effect::Answer(op, answer));
    }

    fn record(&mut self, kind: &'static str, thread: Option<i64>, data: Json) {
        self.out.push(Effect::Record { kind, thread, data });
    }

    fn set_state(&mut self, state: SessionState) {
        if self.state != state {
            self.state = state;
            let data = match self.pid {
                Some(pid) => json!({ "state": state, "pid": pid }),
                None => json!({ "state": state }),
            };
            self.record("state", None, data);
        }
    }

    /// A failure that an adapter's message caused.
    fn adapter_failure(&self, what: &str, message: &str) -> Failure {
        if message == SILENT {
            return Failure::timed_out(format!("{}: {} did not answer in time", what, self.via()))
                .hint("the program may be busy: try again, or `bugeye pause` first");
        }
        if self.is_not_stopped(message) {
            return Failure::wrong_state(format!("{what}: the program is running"))
                .hint("stop it where it is: bugeye pause");
        }
        if let Some((text, instead)) = unsupported(message) {
            return Failure::unsupported(format!("{what}: {text}")).hint(instead);
        }
        Failure::refused(format!("{what}: {}", (self.adapter.quirks.error_text)(&first_lines(message))))
    }

    /// Whether this is how the adapter refuses what it can't do while the program runs.
    fn is_not_stopped(&self, message: &str) -> bool {
        self.adapter.quirks.not_stopped == Some(message)
    }

    fn unsupported(&self, what: &str, instead: &str) -> Failure {
        Failure::unsupported(format!("{} does not support {what}", self.via()))
            .hint(instead.to_string())
            .hint("the debugger's own commands: bugeye raw 'COMMAND'")
    }

    fn ended_failure(&self) -> Failure {
        match &self.ending {
            Some(Ending::Lost { adapter_exit, stderr_tail }) => {
                let how = adapter_exit.as_deref().unwrap_or("its streams closed");
                let mut failure =
                    Failure::lost(format!("the session ended unexpectedly: {} is gone ({how})", self.via()))
                        .hint("start again: bugeye restart");
                if self.adapter.quirks.agents && self.pid.is_some() && adapter_exit.is_some() {
                    failure = failure.hint("the agent goes on without the debugger");
                }
                if !stderr_tail.trim().is_empty() {
                    failure = failure.cause(stderr_tail.trim());
                }
                failure
            }
            ending => {
                let how = match ending {
                    Some(Ending::Exited { code: Some(code) }) => format!("the program has exited with code {code}"),
                    Some(Ending::Signalled { signal }) => format!("the program was ended by {signal}"),
                    Some(Ending::Detached) => "the program was let go".into(),
                    Some(Ending::Stopped) => "the session was stopped".into(),
                    _ => "the program has exited".into(),
                };
                Failure::wrong_state(how).hint("run it again: bugeye restart").hint("what it printed: bugeye output")
            }
        }
    }
}

/// The text that stands for an adapter's missing answer.
const SILENT: &str = "\u{0}no answer";

/// Compilers' error texts are long; the first lines say it.
/// What an adapter of ours says it does not support, `unsupported: WHAT; INSTEAD`, and what works instead.
#[must_use]
pub fn unsupported(message: &str) -> Option<(&str, &str)> {
    let text = message.strip_prefix("unsupported: ")?;
    Some(text.split_once("; ").unwrap_or((text, "what it can do: bugeye doctor")))
}

pub(crate) fn first_lines(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(3);
    lines.map(crate::render::quoted).collect::<Vec<_>>().join("\n  ")
}

/// Locals by name, for the comparison with the next stop.
fn texts(locals: &[Variable]) -> BTreeMap<String, String> {
    locals.iter().map(|variable| (variable.name.clone(), variable.value.flat())).collect()
}
