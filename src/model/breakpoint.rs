//! A breakpoint as it was wished for, and what one adapter made of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Place;

/// The wish. It outlives sessions; its id is unique within a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breakpoint {
    pub id: u32,
    /// The place with its file resolved to an absolute path where it was found.
    pub place: Place,
    /// The place as the user typed it.
    pub asked: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Stop at this pass and every later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u32>,
    /// Write this message instead of stopping; `{expr}` is replaced by its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Removed when it has stopped the program once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    pub enabled: bool,
    /// Stops only in this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i64>,
    /// Belongs to this session alone and is not kept (`--break` of `start`, `--once`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The text of the line when it was set, to find it again after an edit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line_text: Option<String>,
}

impl Breakpoint {
    /// A plain breakpoint at a place.
    #[must_use]
    pub fn new(id: u32, place: Place, asked: impl Into<String>) -> Self {
        Self {
            id,
            place,
            asked: asked.into(),
            condition: None,
            hits: None,
            log: None,
            once: false,
            enabled: true,
            thread: None,
            session: None,
            line_text: None,
        }
    }
}

/// What an adapter made of a wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Binding {
    pub state: BindingState,
    /// Where it really stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Why it is pending or failed, or may not stop the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Times it was reached in this session, as seen here.
    pub hits: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BindingState {
    /// It will stop the program where it was asked for.
    Verified,
    /// It will stop the program, on another line.
    Moved,
    /// It may bind later; `why` says what is known.
    Pending,
    Disabled,
}

/// A wish with its binding in one session, as `break`, `breaks` and `start` answer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BreakpointReport {
    #[serde(flatten)]
    pub wish: Breakpoint,
    /// None while no session is live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
}
