//! `inject`, `cancel`, `answer`: what is said to an agent, and what is not let happen.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inspect::ask;
use super::report::{Report, WaitArgs};
use super::{Command, Done, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::session::{Op, Resume};

/// Put a message into an agent's conversation
///
/// It is put in at the next place where one may stand, marked as the debugger's, and recorded with who said it.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Inject {
    /// user or assistant.
    #[arg(value_name = "ROLE")]
    #[serde(default)]
    pub role: String,
    /// The message.
    #[arg(value_name = "TEXT", required = true, num_args = 1.., allow_hyphen_values = true)]
    #[serde(default)]
    pub text: Vec<String>,
}

impl Command for Inject {
    const NAME: &'static str = "inject";
    const GROUP: Group = Group::Agents;
    const PAST: Past = Past::Changes;
    type Output = Done;

    async fn run(self, cx: Context) -> Result<Done, Failure> {
        let text = self.text.join(" ");
        if text.trim().is_empty() {
            return Err(Failure::usage("the message is empty"));
        }
        let arguments = json!({ "role": self.role, "text": text, "actor": cx.caller.who });
        let told = ask(&cx, "bugeye/inject", arguments).await?;
        Ok(Done::new(format!("it is put in {}", told["when"].as_str().unwrap_or("later"))))
    }
}

/// Do not let an agent's tool call happen, with a reason that the agent sees, and go on
///
/// A call that waits behind the one that is shown is cancelled by its ID; the agent stays where it is.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Cancel {
    /// The tool call, where several are held; else the one that is shown.
    #[arg(value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What the agent is told.
    #[arg(long, value_name = "TEXT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// End the agent's whole run.
    #[arg(long)]
    #[serde(default)]
    pub run: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

impl Command for Cancel {
    const NAME: &'static str = "cancel";
    const GROUP: Group = Group::Agents;
    const PAST: Past = Past::Changes;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let arguments = json!({ "id": self.id, "reason": self.reason, "whole": self.run });
        let told = ask(&cx, "bugeye/cancel", arguments).await?;
        let what = if self.run { "the run" } else { told["tool"].as_str().unwrap_or("it") };
        let mut report = if told["stays"] == true {
            let view = View::default();
            Report::of(&cx, Op::Await(WaitArgs { wait: Some(0.0) }.to_wait(view)), view).await?
        } else {
            go_on(&cx, &self.wait).await?
        };
        report.notes.push(format!("cancelled: {}", crate::render::quoted(what)));
        Ok(report)
    }
}

/// Answer in a tool's or the model's place, and go on
///
/// The value is JSON, or a text. Before a model call it is what the model says; before a tool runs it is the tool's
/// output, where the agent can take that.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct AnswerFor {
    /// The value.
    #[arg(value_name = "VALUE")]
    #[serde(default)]
    pub value: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

impl Command for AnswerFor {
    const NAME: &'static str = "answer";
    const GROUP: Group = Group::Agents;
    const PAST: Past = Past::Changes;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let value: Value = serde_json::from_str(&self.value).unwrap_or_else(|_| json!(self.value));
        ask(&cx, "bugeye/answer", json!({ "value": value })).await?;
        go_on(&cx, &self.wait).await
    }
}

async fn go_on(cx: &Context, wait: &WaitArgs) -> Result<Report, Failure> {
    let view = View::default();
    let op = Op::Resume { how: Resume::Continue, thread: None, wait: wait.to_wait(view) };
    let mut report = Report::of(cx, op, view).await?;
    report.notes.extend(wait.note());
    Ok(report)
}
