//! `finish`: run until the current function returns.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, WaitArgs};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::session::Resume;

/// Run until the current function returns
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Finish {
    /// Do it this many times, as long as nothing else stops the program.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

impl Command for Finish {
    const NAME: &'static str = "finish";
    const ALIASES: &'static [&'static str] = &["out"];
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        Report::repeated(&cx, Resume::Finish, self.count.unwrap_or(1), &self.wait).await
    }
}
