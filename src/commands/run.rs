//! `run`: one call from nothing to the first stop.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, WaitArgs};
use super::start::{LaunchArgs, launch_all};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;

/// Start a program and run it to its first stop, in one call
///
/// As `start` then `continue`: answers with the stop, the end, or `running`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    #[command(flatten)]
    #[serde(flatten)]
    pub launch: LaunchArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
    /// Exit with the program's own code, if it ended.
    #[arg(long)]
    #[serde(default)]
    pub propagate: bool,
}

impl Command for Run {
    const NAME: &'static str = "run";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Apart;
    const SPAWNS: bool = true;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let wait = self.wait.to_wait(view);
        let mut report = launch_all(&cx, self.launch, Some(wait), view).await?;
        report.notes.extend(self.wait.note());
        if self.propagate {
            report.propagate();
        }
        Ok(report)
    }
}
