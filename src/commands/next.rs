//! `next`: run to the next line, over calls.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, StepArgs};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::session::Resume;

/// Run to the next line, over calls
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Next {
    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,
}

impl Command for Next {
    const NAME: &'static str = "next";
    const ALIASES: &'static [&'static str] = &["n"];
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        Report::repeated(&cx, Resume::Next, &self.steps).await
    }
}
