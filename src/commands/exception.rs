//! `exception`: what was thrown.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Group, Past, past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::render::{Page, Render, quoted_lines};
use crate::session::{Answer, Op, check_thrown};
use crate::store::replay::Moment;

/// Show the exception or signal the program stopped on: type, message, stack, cause
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Exception {}

/// An exception. All texts are debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Thrown {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cause: Vec<String>,
}

impl Render for Thrown {
    fn render(&self, page: &mut Page) {
        match &self.message {
            Some(message) if *message != self.kind => page.line(format!("{}: {message}", self.kind)),
            _ => page.line(&self.kind),
        }
        for cause in &self.cause {
            page.line(format!("caused by {cause}"));
        }
        if let Some(stack) = &self.stack {
            page.line(quoted_lines(stack.trim_end()));
        }
    }
}

impl Command for Exception {
    const NAME: &'static str = "exception";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = Thrown;

    async fn run(self, cx: Context) -> Result<Thrown, Failure> {
        match cx.ask(Op::Exception).await? {
            Answer::Exception(report) => {
                Ok(Thrown { kind: report.kind, message: report.message, stack: report.stack, cause: report.cause })
            }
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }

    fn recorded(self, moment: &Moment) -> Result<Thrown, Failure> {
        check_thrown(&past::standing(moment)?.reason)?;
        Err(past::missing(moment, Self::NAME))
    }
}
