//! One moment of a program: where it stands, why, and how it ended.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Variable;

/// The state of a session, as `status` shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    Starting,
    Held,
    Running,
    Stopped,
    Exited,
    Lost,
}

impl SessionState {
    /// Whether there is still something under the debugger.
    #[must_use]
    pub const fn is_live(self) -> bool {
        !matches!(self, Self::Exited | Self::Lost)
    }
}

impl fmt::Display for SessionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Held => "held",
            Self::Running => "running",
            Self::Stopped => "stopped",
            Self::Exited => "exited",
            Self::Lost => "lost",
        })
    }
}

/// Why the program stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Wishes by id with the number of the hit; none when the adapter stopped at one that is not ours.
    Breakpoint {
        ids: Vec<u32>,
        hit: u64,
    },
    Step,
    Pause,
    Entry,
    Attached,
    /// A place `until` or `jump` was asked to reach.
    Reached,
    Exception {
        text: String,
    },
    /// A data breakpoint, with what it watches and how that changed.
    Watch {
        id: u32,
        expression: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        old: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        new: Option<String>,
    },
    Signal {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// The adapter's own word.
    Other {
        text: String,
    },
}

/// A frame of a stack. Names and paths are debuggee text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frame {
    /// 0 is the innermost.
    pub index: u32,
    pub function: String,
    /// Absolute where the adapter gives it so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Part of the language's runtime, not of the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub runtime: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locals: Option<Vec<Variable>>,
}

/// A full snapshot of one stop, cut to a view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// Counts the stops of a session from 1.
    pub number: u64,
    pub reason: Reason,
    pub thread: ThreadInfo,
    /// The selected frame's index.
    pub frame: u32,
    pub frames: Vec<Frame>,
    /// There are more frames than shown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more_frames: bool,
    /// Locals of the selected frame, with what changed since the last stop in the same function.
    #[serde(default)]
    pub locals: Vec<Variable>,
    /// The stop is in the same function as the one before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_function: bool,
    /// A breakpoint's condition could not be evaluated: the program stopped as if it were true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition_failed: Option<String>,
    /// What could not be read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadInfo {
    pub id: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ending {
    Exited {
        /// None where the adapter can't tell.
        code: Option<i64>,
    },
    Signalled {
        signal: String,
    },
    /// Let go by `detach`.
    Detached,
    /// Ended by `stop`.
    Stopped,
    Lost {
        adapter_exit: Option<String>,
        stderr_tail: String,
    },
}
