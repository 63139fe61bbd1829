//! `memory`: bytes of the program.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{At, look};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::{Context, Live};
use crate::model::View;
use crate::render::{Page, Render, cut};
use crate::session::{Answer, Look, Op};

/// The most that is read at once: as lines of hex it fits a reply.
const MAX_READ: u32 = 4 * 1024;

/// Read or write memory: `memory read ADDR`, `memory write ADDR HEXBYTES`
///
/// An address is a number (0x7ffe…), `&variable`, or a pointer. Bytes are written as hex pairs (`0a ff` or `0aff`).
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// `read ADDR` or `write ADDR HEXBYTES`.
    #[arg(value_name = "WHAT", required = true, num_args = 2..)]
    #[serde(default)]
    pub words: Vec<String>,
    /// Bytes to read (default 64).
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// hex (with text beside it), dec or str.
    #[arg(long, value_name = "FORMAT", default_value = "hex")]
    #[serde(default)]
    pub format: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

/// Bytes as they are in the program.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Bytes {
    pub address: u64,
    /// Two hex digits a byte.
    pub hex: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub written: bool,
    #[serde(default)]
    pub format: String,
    /// Bytes asked for that one reply does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u32>,
}

impl Render for Bytes {
    fn render(&self, page: &mut Page) {
        let bytes = parse_hex(&self.hex).unwrap_or_default();
        if self.written {
            return page.line(format!("wrote {} bytes at {:#x}", bytes.len(), self.address));
        }
        if self.format.starts_with("str") {
            let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            return page.line(format!("{:#x}: \"{}\"", self.address, bytes[..end].escape_ascii()));
        }
        for (row, chunk) in bytes.chunks(16).enumerate() {
            let shown: Vec<String> = chunk
                .iter()
                .map(|byte| if self.format.starts_with("dec") { format!("{byte:3}") } else { format!("{byte:02x}") })
                .collect();
            let text: String =
                chunk.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' }).collect();
            page.line(format!("{:#x}: {:<47}  {text}", self.address.wrapping_add(row as u64 * 16), shown.join(" ")));
        }
        if let Some(left_out) = self.left_out {
            let next = self.address.wrapping_add(bytes.len() as u64);
            page.line(format!("… {left_out} bytes more: bugeye memory read {next:#x} --count {left_out}"));
        }
    }
}

impl Command for Memory {
    const NAME: &'static str = "memory";
    const ALIASES: &'static [&'static str] = &["mem"];
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = Bytes;

    fn past(&self) -> Past {
        if self.words.first().is_some_and(|word| word == "read") { Past::Reads } else { Past::Changes }
    }

    async fn run(self, cx: Context) -> Result<Bytes, Failure> {
        let live = cx.session()?;
        let natives = &live.adapter.natives;
        let known = ["hex", "dec", "decimal", "str", "string"];
        if !known.contains(&self.format.as_str()) {
            return Err(Failure::usage(format!("`{}` is no format", self.format)).hint("hex, dec or str"));
        }
        let look_at = self.at.look(View::default());
        match self.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["read", address @ ..] => {
                let Some(read) = natives.memory_read else { return Err(unsupported(&live)) };
                let wanted = self.count.unwrap_or(64).max(1);
                let count = wanted.min(MAX_READ);
                let address = address_of(&cx, &live, &address.join(" "), &self.at).await?;
                let text = native(&cx, read(&format!("{address:#x}"), count), look_at).await?;
                let (address, bytes) = (natives.memory_bytes)(&text).ok_or_else(|| no_bytes(&live, &text))?;
                let read = u32::try_from(bytes.len()).unwrap_or(wanted);
                let left_out = Some(wanted.saturating_sub(read)).filter(|bytes| *bytes > 0);
                Ok(Bytes { address, hex: to_hex(&bytes), written: false, format: self.format, left_out })
            }
            ["write", address, bytes @ ..] => {
                if natives.memory_write.is_none() && natives.memory_writes.is_none() {
                    return Err(unsupported(&live));
                }
                let text = bytes.concat();
                let bytes = parse_hex(&text)
                    .filter(|bytes| !bytes.is_empty())
                    .ok_or_else(|| Failure::usage(format!("`{text}` is no bytes; write pairs of hex digits: 0a ff")))?;
                let address = address_of(&cx, &live, address, &self.at).await?;
                let commands = match (natives.memory_write, natives.memory_writes) {
                    (Some(write), _) => vec![write(&format!("{address:#x}"), &bytes)],
                    (None, Some(writes)) => writes(address, &bytes),
                    (None, None) => return Err(unsupported(&live)),
                };
                for command in commands {
                    native(&cx, command, look_at.clone()).await?;
                }
                Ok(Bytes { address, hex: to_hex(&bytes), written: true, format: self.format, left_out: None })
            }
            _ => Err(Failure::usage("memory read ADDR, or memory write ADDR HEXBYTES")),
        }
    }
}

pub(super) fn unsupported(live: &Live) -> Failure {
    Failure::unsupported(format!("{} has no memory to show", live.via()))
        .hint("values: bugeye print EXPR")
        .hint("the debugger's own commands: bugeye raw 'COMMAND'")
}

/// The debugger's answer to a read holds no bytes.
fn no_bytes(live: &Live, text: &str) -> Failure {
    let (text, _) = cut(text.trim(), 200);
    Failure::refused(format!("{} answered without any bytes: {text}", live.via()))
        .hint("read an address that is mapped: `&variable`, or a pointer")
        .hint("the debugger's own words: bugeye raw 'memory read ADDR'")
}

/// A native command's text.
pub(super) async fn native(cx: &Context, command: String, look: Look) -> Result<String, Failure> {
    match cx.ask(Op::Native { command, look }).await? {
        Answer::Text(text) => Ok(text),
        other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
    }
}

/// A number, or what an expression says is one.
pub(super) async fn address_of(cx: &Context, live: &Live, text: &str, at: &At) -> Result<u64, Failure> {
    let plain = text.trim();
    let number = match plain.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => plain.parse().ok(),
    };
    if let Some(number) = number {
        return Ok(number);
    }
    let expression = (live.adapter.natives.address_of)(plain);
    let look_at = Look { expressions: vec![expression], ..at.look(View::default()) };
    let seen = look(cx, Op::Look(look_at)).await?;
    match seen.values.into_iter().next() {
        Some((_, Ok(value))) => value
            .text
            .parse()
            .map_err(|_| Failure::refused(format!("`{plain}` is no address: {}", value.text)).hint("write &NAME")),
        Some((_, Err(message))) => Err(Failure::refused(format!("`{plain}` is no address: {message}"))),
        None => Err(Failure::internal("no value came back")),
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.replace("0x", "").chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
    if !digits.len().is_multiple_of(2) || !digits.is_ascii() {
        return None;
    }
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        for text in ["0aff", "0a ff", "0x0a 0xff", "0a,ff"] {
            assert_eq!(parse_hex(text), Some(vec![10, 255]), "{text}");
        }
        assert_eq!(parse_hex("0af"), None);
        assert_eq!(parse_hex("zz"), None);
    }
}
