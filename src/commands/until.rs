//! `until`: run to a place.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, WaitArgs};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::{Context, places};
use crate::model::{Breakpoint, View};
use crate::session::{Op, Resume, UNTIL_ID};

/// Run to a place, another breakpoint, or the current function's return, whichever is first
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Until {
    /// file:line, a line of the current file, or a function.
    #[arg(value_name = "PLACE")]
    pub place: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

impl Command for Until {
    const NAME: &'static str = "until";
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let live = cx.session()?;
        let file = live.handle.snapshot.borrow().file.clone();
        let asked = match (self.place.parse::<u32>(), file) {
            (Ok(line), Some(file)) => format!("{file}:{line}"),
            _ => self.place,
        };
        let resolved = places::resolve(&asked, &cx.caller.cwd)?;
        if live.adapter.quirks.agents {
            places::for_agent(&resolved.place, None)?;
        }
        let place = Breakpoint::new(UNTIL_ID, resolved.place, asked);
        let op = Op::Resume { how: Resume::Until(place), thread: None, wait: self.wait.to_wait(view) };
        let mut report = Report::of(&cx, op, view).await?;
        report.notes.extend(self.wait.note());
        report.notes.extend(resolved.note);
        Ok(report)
    }
}
