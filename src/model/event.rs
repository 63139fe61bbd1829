//! What happened in a session: one line of its record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

/// One event of a record, in the envelope that stays as it is: a reader passes over types that it does not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The envelope's version, 1.
    pub v: u32,
    /// Counts the events of a record from 1, without a gap.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub ts: u64,
    /// The record's id.
    pub session: String,
    #[serde(default)]
    pub thread: Option<i64>,
    #[serde(rename = "type")]
    pub kind: String,
    /// What there is to say about it; its shape depends on the type. May hold debuggee text.
    #[serde(default)]
    pub data: Json,
}

/// Every type of event that the record of a program has.
pub const EVENT_TYPES: [&str; 16] = [
    "session.start",
    "session.end",
    "state",
    "stopped",
    "continued",
    "output",
    "breakpoint",
    "thread",
    "trace",
    "hit",
    "source",
    "eval",
    "command",
    "command.result",
    "error",
    "log",
];

/// Those that only the record of an agent has.
pub const AGENT_EVENT_TYPES: [&str; 22] = [
    "tap.attached",
    "input.user",
    "model.request",
    "model.response",
    "model.error",
    "model.retry",
    "model.unread",
    "model.unkept",
    "tool.call",
    "tool.end",
    "tool.denied",
    "turn.end",
    "permission.request",
    "agent.spawn",
    "agent.exit",
    "context.compact",
    "injected",
    "edited",
    "rerun.diverged",
    "agent.start",
    "agent.end",
    "note",
];
