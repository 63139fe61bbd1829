//! A traced place, and one time that it was reached.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Place;

/// What a value that can't be read is called.
pub const UNAVAILABLE: &str = "<unavailable>";

/// A place to be traced, and what is to be seen there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// Counts the points of a trace from 1.
    pub id: u32,
    /// The place with its file resolved to an absolute path.
    pub place: Place,
    /// The place as it was typed.
    pub asked: String,
    pub expressions: Vec<String>,
    /// Only passes where this is true are hits.
    pub when: Option<String>,
    /// Only every Nth of those.
    pub every: u32,
}

/// One time that a place was reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hit {
    /// The point's id.
    pub point: u32,
    pub thread: i64,
    pub thread_name: Option<String>,
    /// Microseconds, on a clock of whoever collected it.
    pub micros: u64,
    /// In the order of the point's expressions.
    pub values: Vec<Reading>,
    /// Innermost first; hits that came the same way share it.
    pub frames: Arc<[HitFrame]>,
}

/// What an expression was, or why it can't be told. Debuggee text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Reading {
    #[must_use]
    pub fn unavailable(why: impl Into<String>) -> Self {
        Self { text: UNAVAILABLE.into(), why: Some(why.into()) }
    }
}

/// A frame on the way to a hit. Debuggee text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct HitFrame {
    pub function: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// A call of a function, or a return from one. Debuggee text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Crossing {
    Entered {
        call: u64,
        micros: u64,
        thread: i64,
        depth: u32,
        function: HitFrame,
        arguments: Vec<(String, Reading)>,
    },
    /// None where the function has no value to return, or was left by an exception that is told instead.
    Left {
        call: u64,
        micros: u64,
        value: Option<Reading>,
    },
}
