//! `pause`: stop the program where it is.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::time::Duration;

use super::report::Report;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{SessionState, View};
use crate::session::{Op, Wait};

/// Stop the program where it is
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Pause {}

impl Command for Pause {
    const NAME: &'static str = "pause";
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let live = cx.session()?;
        let was_stopped = live.state() == SessionState::Stopped;
        // An agent can't be held while its model answers or a tool runs.
        let agents = live.adapter.quirks.agents;
        let wait = Wait { limit: Duration::from_secs(if agents { 2 } else { 10 }), view };
        let mut report = Report::of(&cx, Op::Pause(wait), view).await?;
        if was_stopped {
            report.notes.push("it was stopped already".into());
        }
        if report.state == SessionState::Running && agents {
            report.notes.push("it is held when its tool is done, or before its next model or tool call; to wait for that: bugeye await".into());
            return Ok(report);
        }
        if report.state == SessionState::Running {
            let failure = Failure::timed_out("the program did not stop within 10 s");
            let failure = if live.adapter.quirks.stacks_while_running {
                failure.hint("its threads may wait in calls that can't be interrupted; where: bugeye backtrace --all")
            } else {
                failure
            };
            return Err(failure.hint("try again, or end it: bugeye stop"));
        }
        Ok(report)
    }
}
