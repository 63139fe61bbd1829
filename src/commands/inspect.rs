//! `inspect`: a bounded picture of an agent.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::SessionState;
use crate::render::{Page, Render, cut, quoted};
use crate::session::{Answer, Op};

/// Show what an agent has before it: messages, context, tools, usage, system or all
///
/// Long texts are cut, and what was left out is counted; the last lines say how to see it.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Inspect {
    /// messages, context, tools, usage, system or all.
    #[arg(value_name = "WHAT", default_value = "all")]
    #[serde(default = "all")]
    pub what: String,
    /// How many of the last messages to show.
    #[arg(long, value_name = "N", default_value = "3")]
    #[serde(default = "three")]
    pub last: u32,
    /// Of this thread (a sub-agent).
    #[arg(long, value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i64>,
}

fn all() -> String {
    "all".into()
}

const fn three() -> u32 {
    3
}

/// The longest text that is shown of what a gate is about.
const MAX_VALUE: usize = 300;

/// The picture. All texts are debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Inspected {
    pub what: String,
    /// The session's id, and the id of its recording.
    pub session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// Milliseconds since 1970.
    pub at: u64,
    /// Whether the agent is held.
    pub paused: bool,
    pub value: Value,
    /// How to see what was left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<String>,
}

impl Render for Inspected {
    fn render(&self, page: &mut Page) {
        if self.what == "all" {
            let recording = self.recording.as_ref().map(|id| format!(", recorded as {id}")).unwrap_or_default();
            let state = if self.paused { "held" } else { "running" };
            page.line(format!("session: {}, {state}{recording}", quoted(&self.session)));
        }
        show(&self.value, 0, page);
        for more in &self.more {
            page.line(quoted(more));
        }
    }
}

/// How to see what a picture leaves out.
fn more(what: &str, value: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    let (messages, tools) = match what {
        "messages" => (value, &Value::Null),
        "tools" => (&Value::Null, value),
        _ => (&value["messages"], &value["tools"]),
    };
    let is_cut = |value: &Value| value.as_str().is_some_and(|text| text.ends_with(" bytes)"));
    let recent = messages["recent"].as_array().map_or(&[][..], Vec::as_slice);
    let count = messages["count"].as_u64().unwrap_or(0);
    if count > recent.len() as u64 {
        lines.push(format!("all {count} messages: bugeye inspect messages --last {count}"));
    }
    if let Some(message) = recent.iter().rev().find(|message| is_cut(&message["text"])) {
        lines.push(format!("more of a message: bugeye print --full messages[{}].content", message["index"]));
    }
    let gate = &value["gate"];
    if is_cut(&gate["value"]) || brief(&gate["value"]).1 {
        let name = match gate["point"].as_str().unwrap_or_default() {
            "before_tool" => "tool_input",
            "after_tool" => "tool_output",
            "before_model" => "request",
            "before_prompt" => "prompt",
            _ => "last_message",
        };
        lines.push(format!("more of what it is held at: bugeye print --full {name}"));
    }
    if tools["count"].as_u64().is_some_and(|count| count > 0) {
        lines.push("more of a tool: bugeye print --full tools[0]".into());
    }
    if what == "system" && is_cut(value) {
        lines.push("more of it: bugeye print --full system".into());
    }
    lines
}

/// What a gate is about, in a line, and whether that is not all of it.
fn brief(value: &Value) -> (String, bool) {
    let text = if let Value::String(text) = value { text.clone() } else { value.to_string() };
    match cut(&text, MAX_VALUE) {
        (_, 0) => (quoted(&text), false),
        (kept, left) => (format!("{}… ({left} characters more)", quoted(kept)), true),
    }
}

/// One line a part; what is short stays on its line.
fn show(value: &Value, depth: usize, page: &mut Page) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            let is_empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
            for (name, value) in map.iter().filter(|(_, value)| !is_empty(value)) {
                if depth == 1 && name == "value" {
                    page.line(format!("{indent}value: {}", brief(value).0));
                } else if is_small(value) {
                    page.line(format!("{indent}{}: {}", quoted(name), flat(value)));
                } else {
                    page.line(format!("{indent}{}:", quoted(name)));
                    show(value, depth + 1, page);
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| match item {
            Value::Object(map) if map.contains_key("text") => {
                let part = |name: &str| map.get(name).map(flat).unwrap_or_default();
                page.line(format!("{indent}[{}] {}: {}", part("index"), part("role"), part("text")));
            }
            item => page.line(format!("{indent}- {}", flat(item))),
        }),
        other => page.line(format!("{indent}{}", flat(other))),
    }
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.values().all(|value| !value.is_object() && !value.is_array()) && flat(value).len() < 100
        }
        Value::Array(items) => items.iter().all(|item| item.is_string() || item.is_number()),
        _ => true,
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let parts = map.iter().filter(|(_, value)| !value.is_null());
            parts.map(|(name, value)| format!("{} {}", quoted(name), flat(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Asks an agent's broker, and nobody else.
pub(super) async fn ask(cx: &Context, command: &'static str, arguments: Value) -> Result<Value, Failure> {
    let live = cx.session()?;
    if !live.adapter.quirks.agents {
        return Err(Failure::unsupported("this is a program, not an agent")
            .hint("an agent is started with: bugeye start --agent -- COMMAND"));
    }
    let op = Op::Request { command, arguments, capability: "bugeyeAgent", what: "not done" };
    match cx.ask(op).await? {
        Answer::Body(body) => Ok(body),
        other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
    }
}

impl Command for Inspect {
    const NAME: &'static str = "inspect";
    const GROUP: Group = Group::Agents;
    const PAST: Past = Past::Reads;
    type Output = Inspected;

    async fn run(self, cx: Context) -> Result<Inspected, Failure> {
        let arguments = json!({ "what": self.what, "last": self.last, "thread": self.thread });
        let value = ask(&cx, "bugeye/inspect", arguments).await?;
        let live = cx.session()?;
        Ok(Inspected {
            more: more(&self.what, &value),
            session: live.alias.clone(),
            recording: live.record.clone(),
            at: crate::store::write::now_ms(),
            paused: live.state() == SessionState::Stopped,
            value,
            what: self.what,
        })
    }
}
