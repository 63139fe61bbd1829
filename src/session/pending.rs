//! Why each request was sent: what its answer is for.

use super::{OpId, effect, gather, together, trace, watch};

/// Why a request was sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pending {
    Initialize,
    Launch,
    /// Part of the configuration phase; the program is held when all are answered.
    Config(Config),
    ConfigurationDone,
    /// Breakpoints of a live session; `op` is told when the last of its batch is in.
    Update(Config, OpId),
    Resume(OpId),
    Pause(OpId),
    Gather(u64, gather::Step),
    Threads(OpId),
    ThreadPlace(OpId, usize),
    Evaluate(OpId),
    /// An expression of `eval`, and its frame, should it have to be asked in another way.
    Effect(OpId, String, i64),
    /// An assignment, what it was to, and its frame: where the answer does not tell the value, that is read.
    Assigned(OpId, String, i64),
    /// The scopes of a frame, one of whose variables is to be set; then the answer to that.
    SetIn(OpId, effect::SetIn),
    SetDone(OpId, effect::SetIn),
    Names(OpId),
    Native(OpId),
    Request(OpId, &'static str),
    Watch(OpId, watch::Step),
    /// The values of data breakpoints, at the stop one made.
    WatchValues,
    /// The frames, and then the values, of data breakpoints that requests have set.
    DataFrames(u64),
    DataValue(u32, u64, Option<i64>),
    /// Other threads that hit a breakpoint at the same moment.
    Together(together::Ask),
    /// The program runs, and is to be left to itself.
    LetRun(OpId),
    Goto(OpId, watch::Jump),
    Raw(OpId),
    Exception(OpId),
    /// Where a program that is to stop at its beginning stands.
    Entry(i64),
    /// How deep a step begins.
    Depth(super::logpoints::Resumed),
    /// Values of a log breakpoint, at the stop it made.
    Log(usize),
    /// The program is let go on from a stop that nobody is told of.
    GoOn(i64),
    /// The type of what was thrown, to see whether it is one that is wanted.
    Thrown,
    /// What was thrown, where the stop itself does not say.
    Reason(u64),
    /// As `Reason`, by a native command.
    Why(u64),
    /// Threads that stopped at the same moment.
    Also(u64),
    /// Whether the target is there, though the adapter says so.
    Settled,
    /// A recording begins; the program goes on after it.
    Record,
    /// Part of arming a trace.
    Trace(trace::Step),
    /// The hook of a trace is taken away; its breakpoints follow.
    Disarm(OpId),
    /// Its answer changes nothing.
    Quiet,
    /// The adapter's own command for it, then the request.
    DetachFast(OpId),
    Detach(OpId),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Config {
    Prelude,
    /// A native command without which there is nothing to debug.
    Prepare,
    Version,
    Source {
        file: String,
        ids: Vec<u32>,
    },
    Functions {
        ids: Vec<u32>,
    },
    Exceptions,
    /// A condition is parsed before the run; the wish is refused when it fails.
    Check {
        id: u32,
        condition: String,
    },
}
