//! What a session is told and what it answers: its operations, inputs and effects.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value as Json;

use super::look::{Look, Seen};
use crate::adapters::{Access, Hook};
use crate::dap::Message;
use crate::failure::Failure;
use crate::model::{Binding, Breakpoint, Ending, Hit, Point, Reason, SessionState, Stop, ThreadInfo, View};

/// Tells one operation of a command from another.
pub type OpId = u64;

/// What a command wants of the session.
#[derive(Debug, Clone)]
pub enum Op {
    /// The first operation: answered when the program is held, or at its first stop when it is to run.
    Start {
        wishes: Vec<Breakpoint>,
        catch: Vec<String>,
        run: Option<Wait>,
    },
    /// Replaces the wishes; answered with what became of them.
    Breakpoints(Vec<Breakpoint>),
    /// Replaces the exception filters.
    Catch(Vec<String>),
    Resume {
        how: Resume,
        thread: Option<i64>,
        wait: Wait,
    },
    Pause(Wait),
    Await(Wait),
    Look(Look),
    /// Moves the selection, then looks.
    Select {
        thread: Option<i64>,
        frame: Option<FrameChoice>,
        look: Look,
    },
    Threads,
    Evaluate {
        expression: String,
        look: Look,
    },
    Set {
        target: String,
        value: String,
        look: Look,
    },
    Arguments(Look),
    Raw(String),
    Exception,
    /// A native command of the debugger; answered with its text, or its failure.
    Native {
        command: String,
        look: Look,
    },
    /// A request of the protocol, sent only if the adapter has the capability; `what` names it for a refusal.
    Request {
        command: &'static str,
        arguments: Json,
        capability: &'static str,
        what: &'static str,
    },
    /// So many instructions from an address on, or from where the frame stands, by request.
    Disassemble {
        address: Option<String>,
        count: u32,
        look: Look,
    },
    Watch {
        expression: String,
        access: Access,
        condition: Option<String>,
        look: Look,
    },
    Unwatch(u32),
    Watches,
    /// Goes on from another line of the current function.
    Jump {
        file: String,
        line: u32,
        view: View,
    },
    /// Collects what is seen at places; answered when they are set.
    Trace {
        points: Vec<Point>,
        hook: Hook,
    },
    Untrace,
    /// Lets the program go on without us.
    Detach,
    /// Ends the program; one that was attached to is let go unless it is to be killed.
    Stop {
        kill: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameChoice {
    Number(u32),
    Up,
    Down,
}

/// How a stopped program goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    Continue,
    Next,
    Step,
    Finish,
    /// Into this function, if the current line calls it; else to the next line.
    Into(Breakpoint),
    Back,
    ReverseContinue,
    /// To a place in this function, another breakpoint, or the function's return.
    Until(Breakpoint),
}

/// How long to wait for a stop, and what to collect there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    pub limit: Duration,
    pub view: View,
}

/// What an operation came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Held {
        bindings: BTreeMap<u32, Binding>,
    },
    Bindings(BTreeMap<u32, Binding>),
    Outcome(Outcome),
    Seen(Seen),
    Threads(Vec<ThreadLine>),
    Text(String),
    Exception(ExceptionReport),
    Names(Vec<String>),
    Body(Json),
    Watches(Vec<WatchLine>),
    /// Where each point is set, by its id, and how hits are collected.
    Traced {
        bindings: BTreeMap<u32, Binding>,
        way: &'static str,
    },
    Done,
}

/// What a command that lets the program run ends with.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Stopped(Box<Stop>),
    Running,
    Ended(Ending),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadLine {
    pub thread: ThreadInfo,
    pub state: SessionState,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub selected: bool,
}

/// A data breakpoint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
pub struct WatchLine {
    pub id: u32,
    pub expression: String,
    pub access: Access,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    pub hits: u64,
    /// Debuggee text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExceptionReport {
    pub kind: String,
    pub message: Option<String>,
    pub stack: Option<String>,
    pub cause: Vec<String>,
}

impl Op {
    /// Whether it makes no sense without a process that runs or could.
    pub const fn needs_a_process(&self) -> bool {
        matches!(
            self,
            Self::Resume { .. }
                | Self::Pause(_)
                | Self::Watch { .. }
                | Self::Jump { .. }
                | Self::Catch(_)
                | Self::Detach
        )
    }
}

/// What the session is told.
#[derive(Debug)]
pub enum Input {
    Op(OpId, Op),
    /// Nobody waits for this operation any more.
    Forget(OpId),
    Adapter(Message),
    Timer(Timer),
    /// The kernel's word on how the program ended; None when it can't tell.
    Exit(Option<KernelExit>),
    /// The program ended a while ago, and the adapter has not said so.
    Unnoticed,
    /// `runInTerminal` was carried out.
    InTerminal {
        request: i64,
        pid: Result<u32, String>,
    },
    /// The adapter's streams closed.
    Gone {
        adapter_exit: Option<String>,
        stderr_tail: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelExit {
    Code(i64),
    Signal(String),
}

/// A deadline the session asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    Request(i64),
    Wait(OpId),
    /// A stop came early, and was not followed by the announcement of a resume.
    Settle,
    /// The adapter said the program exited, and should say that it is done.
    Ending,
    Detach(OpId),
}

/// What the session wants done, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Send(Message),
    Answer(OpId, Result<Answer, Failure>),
    /// Replaces an earlier deadline of the same name.
    Arm(Timer, Duration),
    Disarm(Timer),
    /// Read all the program has printed so far.
    Drain,
    Output {
        stream: Stream,
        text: String,
    },
    /// Keep hold of this process, so that its end can be told.
    Watch {
        pid: u32,
    },
    /// Ask the kernel how the program ended; answered by [`Input::Exit`].
    AskExit,
    RunInTerminal {
        request: i64,
        argv: Vec<String>,
        env: Vec<(String, Option<String>)>,
        cwd: String,
    },
    Record {
        kind: &'static str,
        thread: Option<i64>,
        data: Json,
    },
    /// A traced place was reached.
    Hit(Hit),
    /// A breakpoint that was to stop once has done so.
    Spent(u32),
    /// The program is gone or let go: end the adapter. True leaves the program running.
    Finish {
        spare: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
    /// What log breakpoints write.
    Log,
    /// The debugger's own chatter.
    Console,
}

/// Limits on what an adapter may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub initialize: Duration,
    pub launch: Duration,
    pub request: Duration,
    pub inspect: Duration,
}

/// What anyone may read of a session without asking it.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub state: SessionState,
    pub pid: Option<u32>,
    pub version: Option<String>,
    pub reason: Option<Reason>,
    pub thread: Option<i64>,
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub stops: u64,
    pub ending: Option<Ending>,
    /// A program that is not ours ends all the same when we leave: its server wants it so.
    pub ends_with_us: bool,
    pub hits: BTreeMap<u32, Binding>,
    /// Where traced points are set, by their ids.
    pub traced: BTreeMap<u32, Binding>,
    /// They are log breakpoints by now.
    pub logged: bool,
}
