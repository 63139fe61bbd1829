//! How hits are collected where they happen, without a stop for each.

use crate::model::{Point, Reading};

/// A hook inside the debugger or the program that writes down what is seen at a place. What it writes is in `trace/sink.rs`.
#[derive(Debug, Clone, Copy)]
pub struct Tracing {
    /// What this way is called in replies.
    pub name: &'static str,
    /// Commands that make the hook ready.
    pub prepare: fn(&Hook, &[Point]) -> Vec<String>,
    pub arm: Arm,
    /// Whether the hook reads an expression as `print` would.
    pub reads: fn(&str) -> bool,
    /// Where only one breakpoint of a line counts: the condition that is the hook's and that of another one, which always
    /// stops if it has none.
    pub beside: Option<fn(hook: &str, condition: Option<&str>) -> String>,
    /// Takes all of the hook away: its breakpoints, and what tells of calls.
    pub disarm: Option<&'static str>,
    /// Commands, given after those of `prepare`, that have the hook tell of calls too; none where it can't.
    pub calls: Option<fn(&Hook) -> Vec<String>>,
}

/// How a place gets a hook.
#[derive(Debug, Clone, Copy)]
pub enum Arm {
    /// As the condition of a breakpoint, which writes and is false until enough was seen.
    Condition(fn(&Point) -> String),
    /// By commands that set a breakpoint of the hook's own, whose line is read from the last one's answer.
    Command { set: fn(&Point) -> Vec<String>, read: fn(&str) -> Result<Option<u32>, String> },
    /// As a log breakpoint, once the first hit has shown that the values are as plain in its message as elsewhere.
    Log(Logs),
}

/// Log breakpoints whose messages are read back: for values alone, and where no hit has to be the last.
#[derive(Debug, Clone, Copy)]
pub struct Logs {
    pub message: fn(&Point) -> String,
    /// The thread, the point and the values of a message; None for what is none.
    pub read: fn(&str) -> Option<(i64, u32, Vec<Reading>)>,
    /// Whether values of this type are written as `print` shows them, and can't be mistaken for anything else.
    pub is_plain: fn(kind: &str) -> bool,
}

/// What a trace wants of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// A hook may be used at all.
    pub allowed: bool,
    /// The file that it writes to.
    pub sink: String,
    /// It stops the program when it has seen so many hits; 0 for never.
    pub most: u64,
    /// Frames of the way to each hit.
    pub frames: u32,
    /// Globs over the names of functions whose calls are told. One without a `.` or `::` is matched against the last part
    /// of a name too; one that begins with `*` or has none of these means the program's own code alone.
    pub calls: Vec<String>,
    /// It tells no more calls than this.
    pub most_calls: u64,
}
