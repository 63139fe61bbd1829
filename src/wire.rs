//! What travels between a client and the daemon: one JSON line for a request, any number of progress or event lines
//! back, then exactly one final line.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;

/// The protocol's number, apart from the product's version. Raised when an older peer would misunderstand.
pub const PROTOCOL: u32 = 1;

/// The longest line either side reads.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// One question.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    pub v: u32,
    pub id: u64,
    /// A name from the catalogue, or one of the daemon's own: `hello`, `shutdown`, `lease`, `records`, `interrupt`. The
    /// last is about another request of the same connection, `{"id"}`, and is not answered: that one is, with what
    /// there is.
    pub cmd: String,
    #[serde(default)]
    pub args: Value,
    #[serde(default)]
    pub ctx: Caller,
}

/// Who asks, and from where.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Caller {
    #[serde(default)]
    pub cwd: PathBuf,
    /// The session asked for, by id or name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// A word for the asking program (`cli`, `mcp`), and what tells two callers apart (a terminal or parent process).
    #[serde(default)]
    pub who: String,
    /// The caller's environment; only sent with commands that start a program, never stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<(String, String)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// The words as they were typed, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed: Option<Vec<String>>,
    /// Somebody types it, at a terminal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub person: bool,
    /// For whom it starts a session, where that takes the place of another's; the daemon says it.
    #[serde(skip)]
    pub on_behalf: Option<String>,
    /// The process that asks, its parent and so on, as far as the system told the daemon, and that matters.
    #[serde(skip)]
    pub above: Vec<crate::platform::Process>,
}

impl Caller {
    /// Whose a session is that this caller starts.
    #[must_use]
    pub fn owner(&self) -> String {
        self.on_behalf.as_ref().unwrap_or(&self.who).clone()
    }

    /// The client that stays between commands, as an MCP server does; commands of a shell come each from a process of
    /// their own.
    #[must_use]
    pub fn client(&self) -> Option<&str> {
        lasting(&self.who).then_some(self.who.as_str())
    }
}

/// Whether this is a client that stays.
#[must_use]
pub fn lasting(who: &str) -> bool {
    who.starts_with("mcp:")
}

/// Whether a session is of this client, or of one of those that it speaks for (`mcp:7.2`).
#[must_use]
pub fn owns(who: &str, owner: &str) -> bool {
    owner.strip_prefix(who).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// One line of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// A sentence about what is going on, for a person who waits.
    Progress {
        id: u64,
        text: String,
        /// The next one takes its place.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        passing: bool,
    },
    /// A part of a stream (`--follow`).
    Event { id: u64, data: Value },
    /// The last line: the result, or why there is none.
    Final(Final),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Final {
    pub id: u64,
    #[serde(flatten)]
    pub answer: Answer,
}

/// The envelope of `--json`, and the end of every answer on the wire.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The session it was about, by its live name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The adapter and its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The record it comes from, where it is not about a live session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
}

/// A moment of a record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    pub record: String,
    /// The number of the event that it is after.
    pub at: u64,
    /// The stop that the program stood at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<u64>,
}

impl Origin {
    /// In words.
    #[must_use]
    pub fn line(&self) -> String {
        let stop = self.stop.map(|stop| format!(" (stop {stop})")).unwrap_or_default();
        format!("from the record {} at {}{stop}", self.record, self.at)
    }
}

impl Answer {
    #[must_use]
    pub fn new(result: Result<Value, Failure>) -> Self {
        match result {
            Ok(result) => Self { ok: true, result: Some(result), error: None, session: None, via: None, from: None },
            Err(error) => {
                Self { ok: false, result: None, error: Some(error.bounded()), session: None, via: None, from: None }
            }
        }
    }
}
