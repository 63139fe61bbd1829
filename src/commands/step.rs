//! `step`: run to the next line, into calls.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, StepArgs};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::{Context, places};
use crate::model::{Breakpoint, Place};
use crate::session::{Resume, UNTIL_ID};

/// Run to the next line, into calls
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Step into this function, if the line calls it; over all others. Of an agent: tool, tool:NAME or model.
    #[arg(long, value_name = "NAME", conflicts_with = "count")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,
}

impl Command for Step {
    const NAME: &'static str = "step";
    const ALIASES: &'static [&'static str] = &["s"];
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let how = match self.into {
            Some(name) => {
                let place = Place::Function { module: None, name: name.clone() };
                if cx.session()?.adapter.quirks.agents {
                    places::for_agent(&place, None)?;
                }
                Resume::Into(Breakpoint::new(UNTIL_ID, place, name))
            }
            None => Resume::Step,
        };
        Report::repeated(&cx, how, &self.steps).await
    }
}
