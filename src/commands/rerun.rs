//! `rerun`: an agent once more, its model's answers from a record.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::report::{Report, WaitArgs};
use super::start::{LaunchArgs, launch};
use super::{Command, Group, Past};
use crate::adapters;
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::store::named::named;

/// Run a recorded agent again, with its model's answers from the record
///
/// No model is asked, and no tokens are spent; tools are really run. Where what the agent asks its model differs from what
/// it asked then, it stops there. `--fork-at N` asks the model again from its Nth call on.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Rerun {
    /// The record, by its id or name.
    #[arg(value_name = "ID")]
    #[serde(default)]
    pub id: String,
    /// From this model call on, ask the model itself.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_at: Option<u32>,
    /// Another command line than the recorded one.
    #[arg(last = true, value_name = "COMMAND")]
    #[serde(default)]
    pub command: Vec<String>,
    /// Where it is to run, if not where it was recorded: its tools change what is there.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Set a breakpoint for this session alone.
    #[arg(long = "break", short = 'b', value_name = "PLACE")]
    #[serde(default)]
    pub breaks: Vec<String>,
    /// A name for the session.
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

impl Command for Rerun {
    const NAME: &'static str = "rerun";
    const GROUP: Group = Group::Agents;
    const PAST: Past = Past::Apart;
    const SPAWNS: bool = true;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let head = named(&cx.hub.paths.state, &self.id, &cx.caller.cwd)?;
        if !adapters::by_name(&head.adapter).is_some_and(|adapter| adapter.quirks.agents) {
            return Err(Failure::unsupported(format!("{} is the record of a program, not of an agent", head.id))
                .hint("start the program again: bugeye run -- COMMAND"));
        }
        // What is still under way is in memory too.
        cx.hub.flush().await;
        let words = if self.command.is_empty() { head.words.clone() } else { self.command };
        let cwd = self.cwd.map_or_else(|| head.cwd.clone(), PathBuf::from);
        let args = LaunchArgs {
            args: words,
            agent: true,
            cwd: Some(cwd.to_string_lossy().into_owned()),
            breaks: self.breaks,
            name: self.name,
            ..LaunchArgs::default()
        };
        let mut blueprint = args.blueprint(&cx)?;
        blueprint.extra.insert("rerun".into(), json!({ "folder": head.folder, "fork_at": self.fork_at }));
        let view = View::default();
        let mut report = launch(&cx, blueprint, Some(self.wait.to_wait(view)), view).await?;
        report.notes.extend(self.wait.note());
        Ok(report)
    }
}
