//! `finish`: run until the current function returns.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, StepArgs};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::session::Resume;

/// Run until the current function returns
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Finish {
    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,
}

impl Command for Finish {
    const NAME: &'static str = "finish";
    const ALIASES: &'static [&'static str] = &["out"];
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        Report::repeated(&cx, Resume::Finish, &self.steps).await
    }
}
