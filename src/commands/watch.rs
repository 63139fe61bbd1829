//! `watch`: stop when data is written or read.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::At;
use super::{Command, Group};
use crate::adapters::Access;
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::render::{Page, Render, quoted};
use crate::session::{Answer, Op, WatchLine};

/// Stop when a variable is written, read, or either
///
/// `watch list` lists, `watch remove ID` removes; a variable of that name is `watch -- list`. A watch belongs to its
/// session.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Watch {
    /// A variable or a part of one; or `list`, `remove ID`.
    #[arg(value_name = "EXPR")]
    #[serde(default)]
    pub words: Vec<String>,
    /// A variable whose name would be taken for a word of this command.
    #[arg(last = true, value_name = "EXPR")]
    #[serde(default)]
    pub plain: Vec<String>,
    /// Stop when it is read.
    #[arg(long)]
    #[serde(default)]
    pub read: bool,
    /// Stop when it is read or written.
    #[arg(long, conflicts_with = "read")]
    #[serde(default)]
    pub access: bool,
    /// Stop only when this is true.
    #[arg(long = "if", visible_alias = "condition", value_name = "EXPR")]
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WatchList {
    pub watches: Vec<WatchLine>,
}

impl Render for WatchList {
    fn render(&self, page: &mut Page) {
        if self.watches.is_empty() {
            page.line("no watches; set one: bugeye watch NAME");
        }
        for watch in &self.watches {
            let access = match watch.access {
                Access::Write => "written",
                Access::Read => "read",
                Access::Either => "read or written",
            };
            let value = watch.value.as_deref().map(|value| format!(" = {}", quoted(value))).unwrap_or_default();
            let condition = watch.condition.as_deref().map(|text| format!(", if {}", quoted(text))).unwrap_or_default();
            page.line(format!(
                "watch {} {}{value}: when {access}{condition}, hits {}",
                watch.id,
                quoted(&watch.expression),
                watch.hits
            ));
        }
    }
}

impl Command for Watch {
    const NAME: &'static str = "watch";
    const GROUP: Group = Group::Breakpoints;
    type Output = WatchList;

    async fn run(self, cx: Context) -> Result<WatchList, Failure> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let op = match (words.as_slice(), self.plain.is_empty()) {
            ([], true) | (["list"], true) => Op::Watches,
            (["remove" | "delete", id], true) => {
                let id = id.parse().map_err(|_| Failure::usage(format!("`{id}` is no watch's number")))?;
                Op::Unwatch(id)
            }
            (words, _) => {
                let expression = if self.plain.is_empty() { words.join(" ") } else { self.plain.join(" ") };
                let access = match (self.read, self.access) {
                    (true, _) => Access::Read,
                    (_, true) => Access::Either,
                    _ => Access::Write,
                };
                Op::Watch { expression, access, condition: self.condition, look: self.at.look(View::default()) }
            }
        };
        match cx.ask(op).await? {
            Answer::Watches(watches) => Ok(WatchList { watches }),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }
}
