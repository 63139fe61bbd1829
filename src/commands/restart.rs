//! `restart`: the same program from its beginning.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, WaitArgs};
use super::start::launch;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;

/// Start the same program again, with the same arguments and breakpoints
///
/// Holds it as `start` does; with `--run` goes on to the first stop.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Restart {
    /// Run to the first stop.
    #[arg(long)]
    #[serde(default)]
    pub run: bool,
    /// Record it this time, to go back with `back` and `reverse-continue`.
    #[arg(long)]
    #[serde(default)]
    pub record: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

impl Command for Restart {
    const NAME: &'static str = "restart";
    const GROUP: Group = Group::Sessions;
    type Output = Report;

    async fn run(self, mut cx: Context) -> Result<Report, Failure> {
        let live = cx.session()?;
        if live.blueprint.lent {
            return Err(Failure::refused(
                "it has the terminal that it was started from, and can only be started there",
            )
            .hint("type the command there again: bugeye run --agent --terminal -- AGENT"));
        }
        cx.caller.on_behalf = Some(live.owner.clone());
        let mut blueprint = live.blueprint.clone();
        blueprint.record |= self.record;
        cx.hub.end(&live, false).await;
        let view = View::default();
        let run = self.run.then(|| self.wait.to_wait(view));
        launch(&cx, blueprint, run, view).await
    }
}
