//! `jump`: go on from another line.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::Report;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::{Context, places};
use crate::model::{Place, View};
use crate::session::Op;

/// Move to another line of the current function without running what is between
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Jump {
    /// file:line, or a line of the current file.
    #[arg(value_name = "PLACE")]
    pub place: String,
}

impl Command for Jump {
    const NAME: &'static str = "jump";
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let file = cx.session()?.handle.snapshot.borrow().file.clone();
        let asked = match (self.place.parse::<u32>(), file) {
            (Ok(line), Some(file)) => format!("{file}:{line}"),
            _ => self.place,
        };
        let Place::Line { file, line } = places::resolve(&asked, &cx.caller.cwd)?.place else {
            return Err(Failure::usage(format!("`{asked}` names no line")).hint("bugeye jump FILE:LINE"));
        };
        Report::of(&cx, Op::Jump { file, line, view }, view).await
    }
}
