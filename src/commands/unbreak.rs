//! `unbreak`, `enable` and `disable`: change what there is.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::breaks::BreakList;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::hub::wishes::Table;

/// Remove breakpoints
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Unbreak {
    /// Ids, as `breaks` shows them.
    #[arg(value_name = "ID", required_unless_present = "all")]
    #[serde(default)]
    pub ids: Vec<u32>,
    /// Remove all.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
}

/// Enable breakpoints
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Enable {
    /// Ids, as `breaks` shows them.
    #[arg(value_name = "ID", required = true)]
    #[serde(default)]
    pub ids: Vec<u32>,
}

/// Disable breakpoints, keeping them for later
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Disable {
    /// Ids, as `breaks` shows them.
    #[arg(value_name = "ID", required = true)]
    #[serde(default)]
    pub ids: Vec<u32>,
}

/// Changes the table, tells the sessions, and answers with what is there now. Nothing changes if an id is unknown.
async fn change(cx: &Context, ids: &[u32], edit: impl FnOnce(&mut Table)) -> Result<BreakList, Failure> {
    let project = cx.project();
    let table = cx.hub.wishes(&project);
    if let Some(unknown) = ids.iter().find(|id| !table.breakpoints.iter().any(|wish| wish.id == **id)) {
        return Err(Failure::not_found(format!("there is no breakpoint {unknown}")).hint("list them: bugeye breaks"));
    }
    cx.hub.edit_wishes(&project, edit)?;
    cx.hub.send_wishes(&project, None).await?;
    Ok(BreakList::of(cx))
}

impl Command for Unbreak {
    const NAME: &'static str = "unbreak";
    const ALIASES: &'static [&'static str] = &["breakpoint remove", "breakpoint delete"];
    const GROUP: Group = Group::Breakpoints;
    type Output = BreakList;

    async fn run(self, cx: Context) -> Result<BreakList, Failure> {
        let (all, ids) = (self.all, self.ids.clone());
        change(&cx, &self.ids, |table| table.breakpoints.retain(|wish| !all && !ids.contains(&wish.id))).await
    }
}

impl Command for Enable {
    const NAME: &'static str = "enable";
    const ALIASES: &'static [&'static str] = &["breakpoint enable"];
    const GROUP: Group = Group::Breakpoints;
    type Output = BreakList;

    async fn run(self, cx: Context) -> Result<BreakList, Failure> {
        let ids = self.ids.clone();
        change(&cx, &self.ids, |table| set_enabled(table, &ids, true)).await
    }
}

impl Command for Disable {
    const NAME: &'static str = "disable";
    const ALIASES: &'static [&'static str] = &["breakpoint disable"];
    const GROUP: Group = Group::Breakpoints;
    type Output = BreakList;

    async fn run(self, cx: Context) -> Result<BreakList, Failure> {
        let ids = self.ids.clone();
        change(&cx, &self.ids, |table| set_enabled(table, &ids, false)).await
    }
}

fn set_enabled(table: &mut Table, ids: &[u32], enabled: bool) {
    for wish in table.breakpoints.iter_mut().filter(|wish| ids.contains(&wish.id)) {
        wish.enabled = enabled;
    }
}
