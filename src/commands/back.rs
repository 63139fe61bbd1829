//! `back` and `reverse-continue`: into the past, where the adapter can.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, StepArgs, WaitArgs};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::session::Resume;

/// Step back to the line before, where the debugger can
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Back {
    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,
}

/// Run backwards to the breakpoint before, where the debugger can
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct ReverseContinue {
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

impl Command for Back {
    const NAME: &'static str = "back";
    const ALIASES: &'static [&'static str] = &["reverse-next"];
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        Report::repeated(&cx, Resume::Back, &self.steps).await
    }
}

impl Command for ReverseContinue {
    const NAME: &'static str = "reverse-continue";
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        Report::repeated(&cx, Resume::ReverseContinue, &StepArgs { count: None, wait: self.wait }).await
    }
}
