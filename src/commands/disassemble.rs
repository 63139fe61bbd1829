//! `disassemble`: machine code.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::At;
use super::memory::{address_of, native};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::render::{Page, Render, quoted_lines};

/// Show machine code: of the current function, from the current instruction, or at an address
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Disassemble {
    /// Where to begin; without it, the current function.
    #[arg(value_name = "ADDR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// Instructions to show.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Put the source lines between them.
    #[arg(long)]
    #[serde(default)]
    pub source: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

/// Lines as the debugger writes them, the current instruction marked `->`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    pub lines: Vec<String>,
    /// Lines that are not shown.
    pub left_out: usize,
}

impl Render for Listing {
    fn render(&self, page: &mut Page) {
        for line in &self.lines {
            page.line(quoted_lines(line));
        }
        if self.left_out > 0 {
            page.line(format!("… {} lines more: --count N", self.left_out));
        }
    }
}

impl Command for Disassemble {
    const NAME: &'static str = "disassemble";
    const ALIASES: &'static [&'static str] = &["disas"];
    const GROUP: Group = Group::Looking;
    type Output = Listing;

    async fn run(self, cx: Context) -> Result<Listing, Failure> {
        let live = cx.session()?;
        let Some(disassemble) = live.adapter.natives.disassemble else {
            return Err(Failure::unsupported(format!("{} has no machine code to show", live.via()))
                .hint("source: bugeye source --function")
                .hint("the debugger's own commands: bugeye raw 'COMMAND'"));
        };
        let (address, count) = match &self.address {
            Some(text) => {
                let address = address_of(&cx, &live, text, &self.at).await?;
                (Some(format!("{address:#x}")), Some(self.count.unwrap_or(20)))
            }
            None => (None, self.count),
        };
        let command = disassemble(address.as_deref(), count.map(|count| count.clamp(1, 2000)), self.source);
        let text = native(&cx, command, self.at.look(View::default())).await?;
        let all: Vec<String> = text.lines().map(|line| line.trim_end().to_string()).collect();
        let limit = if self.count.is_some() { usize::MAX } else { 120 };
        let left_out = all.len().saturating_sub(limit);
        Ok(Listing { lines: all.into_iter().take(limit).collect(), left_out })
    }
}
