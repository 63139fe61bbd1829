//! `inspect`: a bounded picture of an agent.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::render::{Page, Render, quoted};
use crate::session::{Answer, Op};

/// Show what an agent has before it: messages, context, tools, usage, system or all
///
/// Long texts are cut, and what was left out is counted; `print messages[-1].content` shows a whole one.
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

/// The picture. All texts are debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Inspected {
    pub what: String,
    pub value: Value,
}

impl Render for Inspected {
    fn render(&self, page: &mut Page) {
        show(&self.value, 0, page);
    }
}

/// One line a part; what is short stays on its line.
fn show(value: &Value, depth: usize, page: &mut Page) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                if is_small(value) {
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
        Ok(Inspected { value: ask(&cx, "bugeye/inspect", arguments).await?, what: self.what })
    }
}
