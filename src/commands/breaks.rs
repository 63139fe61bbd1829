//! `breaks`: the breakpoints there are.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::breakpoint_line;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::BreakpointReport;
use crate::render::{Page, Render};
use crate::store::replay::Moment;

/// List the breakpoints: id, place, binding, condition, hits
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Breaks {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BreakList {
    pub breakpoints: Vec<BreakpointReport>,
}

impl BreakList {
    /// The breakpoints that apply here now.
    #[must_use]
    pub fn of(cx: &Context) -> Self {
        let table = cx.hub.wishes(&cx.project());
        let wishes = match cx.session() {
            Ok(live) => table.for_session(&live.alias),
            Err(_) => table.for_session(""),
        };
        Self { breakpoints: cx.reports(wishes) }
    }
}

impl Render for BreakList {
    fn render(&self, page: &mut Page) {
        if self.breakpoints.is_empty() {
            page.line("no breakpoints; set one: bugeye break FILE:LINE; in an agent: bugeye break tool:NAME");
        }
        for report in &self.breakpoints {
            let line = breakpoint_line(report, page);
            page.line(line);
        }
    }
}

impl Command for Breaks {
    const NAME: &'static str = "breaks";
    const ALIASES: &'static [&'static str] = &["breakpoint list", "breakpoint", "breakpoints"];
    const GROUP: Group = Group::Breakpoints;
    const PAST: Past = Past::Reads;
    type Output = BreakList;

    async fn run(self, cx: Context) -> Result<BreakList, Failure> {
        // One that is named and not there has none.
        if cx.caller.session.is_some() {
            cx.session()?;
        }
        Ok(BreakList::of(&cx))
    }

    fn recorded(self, moment: &Moment) -> Result<BreakList, Failure> {
        Ok(BreakList { breakpoints: moment.breakpoints.values().cloned().collect() })
    }
}
