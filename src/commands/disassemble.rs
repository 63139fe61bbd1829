//! `disassemble`: machine code.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::looking::At;
use super::memory::{address_of, native};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::View;
use crate::render::{Page, Render, quoted_lines};
use crate::session::{Answer, Op};

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
    const PAST: Past = Past::Reads;
    type Output = Listing;

    async fn run(self, cx: Context) -> Result<Listing, Failure> {
        let live = cx.session()?;
        let (address, count) = match &self.address {
            Some(text) => {
                let address = address_of(&cx, &live, text, &self.at).await?;
                (Some(format!("{address:#x}")), Some(self.count.unwrap_or(20)))
            }
            None => (None, self.count),
        };
        let Some(disassemble) = live.adapter.natives.disassemble else {
            return by_request(&cx, address, count.unwrap_or(20).clamp(1, 2000), self.source, &self.at).await;
        };
        let command = disassemble(address.as_deref(), count.map(|count| count.clamp(1, 2000)), self.source);
        let text = native(&cx, command, self.at.look(View::default())).await?;
        let all: Vec<String> = text.lines().map(|line| line.trim_end().to_string()).collect();
        let limit = if self.count.is_some() { usize::MAX } else { 120 };
        let left_out = all.len().saturating_sub(limit);
        Ok(Listing { lines: all.into_iter().take(limit).collect(), left_out })
    }
}

/// By the protocol's own request; without an address, from the current instruction.
async fn by_request(
    cx: &Context,
    address: Option<String>,
    count: u32,
    with_source: bool,
    at: &At,
) -> Result<Listing, Failure> {
    let look = at.look(View::default());
    let here = address.is_none();
    let body = match cx.ask(Op::Disassemble { address, count, look }).await? {
        Answer::Body(body) => body,
        other => return Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
    };
    Ok(Listing { lines: instructions(&body, here, with_source), left_out: 0 })
}

/// A line for each instruction, and where wanted one for the source it is of.
fn instructions(body: &Value, here: bool, with_source: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default().to_string();
    let list = body.get("instructions").and_then(Value::as_array).cloned().unwrap_or_default();
    for (index, instruction) in list.iter().enumerate() {
        let code = text(instruction, "instruction");
        if code == "invalid instruction" {
            continue;
        }
        let line = instruction.get("line").and_then(Value::as_u64);
        let file = instruction.pointer("/location/path").and_then(Value::as_str);
        if let (true, Some(file), Some(line)) = (with_source, file, line) {
            lines.push(format!("{file}:{line}"));
        }
        let mark = if here && index == 0 { "->" } else { "  " };
        lines.push(format!("{mark} {}: {code}", text(instruction, "address")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::instructions;

    #[test]
    fn instructions_are_lines() {
        let body = json!({ "instructions": [
            { "address": "0x10", "instruction": "MOVQ AX, BX", "location": { "path": "/a.go" }, "line": 3 },
            { "address": "0x13", "instruction": "RET" },
            { "address": "0xffff", "instruction": "invalid instruction" },
        ]});
        assert_eq!(instructions(&body, true, true), ["/a.go:3", "-> 0x10: MOVQ AX, BX", "   0x13: RET"]);
        assert_eq!(instructions(&body, false, false), ["   0x10: MOVQ AX, BX", "   0x13: RET"]);
    }
}
