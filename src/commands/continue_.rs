//! `continue`: let the program run to its next stop.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, StepArgs};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{Reason, View};
use crate::session::{Op, Resume};

/// Let the program run to its next stop
///
/// Answers with the stop itself: reason, place, source, locals, what changed, the stack and what was printed; or with
/// the end; or with `running` when the wait is over.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Continue {
    /// Let only the selected thread run.
    #[arg(long)]
    #[serde(default)]
    pub thread: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub steps: StepArgs,
    /// Exit with the program's own code, if it ended.
    #[arg(long)]
    #[serde(default)]
    pub propagate: bool,
}

impl Command for Continue {
    const NAME: &'static str = "continue";
    const ALIASES: &'static [&'static str] = &["c", "resume"];
    const GROUP: Group = Group::Running;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let thread = if self.thread { cx.session()?.handle.snapshot.borrow().thread } else { None };
        let mut left = self.steps.count.unwrap_or(1);
        let mut printed = None;
        loop {
            left -= 1;
            let op = Op::Resume { how: Resume::Continue, thread, wait: self.steps.wait.to_wait(view) };
            let mut report = Report::of(&cx, op, view).await?;
            report.printed_before(printed.take());
            let at_breakpoint = matches!(&report.stop, Some(stop) if matches!(stop.reason, Reason::Breakpoint { .. }));
            if left > 0 && at_breakpoint {
                printed = report.output;
                continue;
            }
            report.notes.extend(self.steps.wait.note());
            if self.propagate {
                report.propagate();
            }
            return Ok(report);
        }
    }
}
