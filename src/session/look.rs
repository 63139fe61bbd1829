//! What to look at in a stopped program, and what was seen.

use crate::dap::types;
use crate::model::{Frame, ThreadInfo, Value, Variable, View};

/// What to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The selected thread and frame, where none are named.
    pub thread: Option<i64>,
    pub frame: Option<u32>,
    /// Frames to show; 0 for no more than the frame that is looked at.
    pub frames: u32,
    pub locals: Locals,
    /// Which of the frame's scopes count as its locals.
    pub scope: Scope,
    pub expressions: Vec<String>,
    pub view: View,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locals {
    No,
    Selected,
    EveryFrame,
}

/// A kind of variables.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Locals,
    Globals,
    Statics,
    Closure,
    Registers,
    All,
}

impl Scope {
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Locals => "locals",
            Self::Globals => "globals",
            Self::Statics => "statics",
            Self::Closure => "closure",
            Self::Registers => "registers",
            Self::All => "all",
        }
    }

    /// Whether a scope of the adapter is of this kind, told by its hint or its name.
    pub(super) fn takes(self, scope: &types::Scope) -> bool {
        let hint = scope.presentation_hint.as_deref().unwrap_or_default();
        let name = scope.name.to_lowercase();
        let registers = hint == "registers" || name.contains("register");
        match self {
            Self::Locals => {
                matches!(hint, "locals" | "arguments") || matches!(name.as_str(), "locals" | "arguments" | "local")
            }
            Self::Globals | Self::Statics => name.contains("static") || name.contains("global"),
            Self::Closure => name.contains("closure"),
            Self::Registers => registers,
            Self::All => !registers,
        }
    }
}

impl Default for Look {
    fn default() -> Self {
        Self {
            thread: None,
            frame: None,
            frames: 0,
            locals: Locals::No,
            scope: Scope::Locals,
            expressions: Vec::new(),
            view: View::default(),
        }
    }
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub thread: ThreadInfo,
    pub frame: u32,
    pub frames: Vec<Frame>,
    pub more_frames: bool,
    pub locals: Vec<Variable>,
    /// Each expression with its value, or why there is none.
    pub values: Vec<(String, Result<Value, String>)>,
    pub gaps: Vec<String>,
}
