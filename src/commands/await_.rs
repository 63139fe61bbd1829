//! `await`: wait for the next stop.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, WaitArgs, parse_seconds};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::session::Op;

/// Wait for the next stop or the end
///
/// Answers at once when the program is stopped already. At the limit the answer is `running`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Await {
    /// Wait this long (60, 5s, 2m; default 300 s).
    #[arg(long, visible_alias = "wait", value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
}

impl Command for Await {
    const NAME: &'static str = "await";
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let default = cx.hub.config.await_limit().as_secs_f64();
        let wait = WaitArgs { wait: Some(self.timeout.unwrap_or(default)) };
        let mut report = Report::of(&cx, Op::Await(wait.to_wait(view)), view).await?;
        report.notes.extend(wait.note());
        Ok(report)
    }
}
