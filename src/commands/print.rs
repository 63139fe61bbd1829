//! `print`: the value of an expression.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{At, Extent, look, render_value};
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::Value;
use crate::render::{Page, Render, quoted};
use crate::session::{IMPURE, Look, Op, unsupported};

/// Show the value of an expression, without side effects where the debugger can tell
///
/// Words are joined into one expression; `-e` gives several. What calls or assigns is left to `eval`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Print {
    /// The expression.
    #[arg(value_name = "EXPR", required_unless_present = "expressions")]
    #[serde(default)]
    pub words: Vec<String>,
    /// A further expression; may be given several times.
    #[arg(short = 'e', long = "expr", value_name = "EXPR")]
    #[serde(default)]
    pub expressions: Vec<String>,
    /// hex, bin (binary), dec, addr (address) or str.
    #[arg(long, value_name = "FORMAT")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<Format>,
    /// Show the type too.
    #[arg(long = "type")]
    #[serde(default, rename = "type")]
    pub with_type: bool,
    /// The first child to show.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    pub extent: Extent,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Hex,
    #[value(alias = "binary")]
    Bin,
    #[value(alias = "decimal")]
    Dec,
    #[value(alias = "address")]
    Addr,
    #[value(alias = "string")]
    Str,
}

/// Expressions with their values.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Values {
    pub values: Vec<Named>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_type: bool,
}

/// One expression. Its value is debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    pub expression: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Render for Values {
    fn render(&self, page: &mut Page) {
        for named in &self.values {
            match (&named.value, &named.error) {
                (Some(value), _) => render_value(&quoted(&named.expression), value, self.with_type, page),
                (None, error) => {
                    let error = error.as_deref().unwrap_or("unavailable");
                    page.line(format!("{}: {}", quoted(&named.expression), crate::render::quoted_lines(error)));
                }
            }
        }
    }
}

impl Command for Print {
    const NAME: &'static str = "print";
    const ALIASES: &'static [&'static str] = &["p"];
    const GROUP: Group = Group::Looking;
    type Output = Values;

    async fn run(self, cx: Context) -> Result<Values, Failure> {
        let mut expressions = self.expressions;
        if !self.words.is_empty() {
            expressions.insert(0, self.words.join(" "));
        }
        let mut view = self.extent.view();
        view.from = self.from.unwrap_or(0);
        let live = cx.session()?;
        if self.format == Some(Format::Addr) && !live.adapter.quirks.has_addresses {
            return Err(Failure::unsupported(format!("{} does not support addresses of values", live.via()))
                .hint("its value: bugeye print EXPR")
                .hint("the debugger's own commands: bugeye raw 'COMMAND'"));
        }
        // An address is asked for as such; what it is the address of is the reader's expression.
        let asked: Vec<String> = match self.format {
            Some(Format::Addr) => expressions.iter().map(|expression| address_of(expression)).collect(),
            None if view.from > 0 => {
                let slice = cx.session()?.adapter.quirks.slice;
                let part = |expression: &String| slice.map(|slice| slice(expression, view.from, view.items));
                let parts = expressions.iter().map(|expression| part(expression).unwrap_or_else(|| expression.clone()));
                let parts = parts.collect();
                if slice.is_some() {
                    view.from = 0;
                }
                parts
            }
            _ => expressions.clone(),
        };
        let look_at = Look { expressions: asked, ..self.at.look(view) };
        let mut seen = look(&cx, Op::Look(look_at)).await?;
        if self.format == Some(Format::Addr) {
            for (expression, value) in &mut seen.values {
                // Shown as what is there: its number is asked for.
                if value.as_ref().is_ok_and(|value| !value.text.starts_with("0x")) {
                    let address = super::memory::address_of(&cx, &live, expression, &self.at).await;
                    if let (Ok(value), Ok(address)) = (value, address) {
                        value.text = format!("{address:#x}");
                    }
                }
            }
        }
        let single = seen.values.len() == 1;
        let mut values = Vec::new();
        for (expression, (_, value)) in expressions.into_iter().zip(seen.values) {
            let result = value.and_then(|value| match self.format {
                Some(format) => reformat(value, format),
                None => Ok(value),
            });
            match result {
                Ok(value) => values.push(Named { expression, value: Some(value), error: None }),
                Err(message) if message == IMPURE => {
                    let failure = Failure::refused(format!("`{expression}` may change the program: print only reads"))
                        .hint(format!("to run it all the same: bugeye eval '{expression}'"));
                    if single {
                        return Err(failure);
                    }
                    values.push(Named { expression, value: None, error: Some(failure.message) });
                }
                Err(message) if single => {
                    if let Some((what, instead)) = unsupported(&message) {
                        return Err(Failure::unsupported(format!("`{expression}` can't be read: {what}")).hint(instead));
                    }
                    return Err(Failure::refused(format!("`{expression}` can't be read: {message}"))
                        .hint("what there is: bugeye locals"));
                }
                Err(message) => values.push(Named { expression, value: None, error: Some(message) }),
            }
        }
        Ok(Values { values, with_type: self.with_type })
    }
}

fn address_of(expression: &str) -> String {
    if expression.starts_with('&') { expression.to_string() } else { format!("&({expression})") }
}

/// Writes a number another way.
fn reformat(mut value: Value, format: Format) -> Result<Value, String> {
    let kind = value.kind.clone().unwrap_or_default();
    if format == Format::Str || format == Format::Addr {
        return Ok(value);
    }
    let Some(number) = number(&value.text) else {
        return Err(format!("{} is no whole number", value.text));
    };
    let bits = width(&kind, number);
    let unsigned = if number < 0 && bits < 128 { number + (1i128 << bits) } else { number };
    value.text = match format {
        Format::Hex => format!("{unsigned:#x}"),
        Format::Bin => format!("{unsigned:#b}"),
        _ => number.to_string(),
    };
    Ok(value)
}

/// The number at the beginning of a value's text: `42`, `-1`, `0x2a`, `97 'a'`, `'a'`, `True`.
fn number(text: &str) -> Option<i128> {
    match text {
        "true" | "True" => return Some(1),
        "false" | "False" => return Some(0),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let mut chars = rest.chars();
        return match (chars.next()?, chars.as_str()) {
            ('\\', "0'") => Some(0),
            ('\\', "n'") => Some(10),
            (c, "'") => Some(i128::from(u32::from(c))),
            _ => None,
        };
    }
    let word = text.split_whitespace().next()?;
    match word.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

/// The bits of a type, to write a negative number as the machine holds it.
fn width(kind: &str, number: i128) -> u32 {
    let kind = kind.trim_start_matches("const ").trim_start_matches("unsigned ").trim_start_matches("signed ");
    match kind {
        "char" | "i8" | "u8" | "int8_t" | "uint8_t" | "bool" => 8,
        "short" | "i16" | "u16" | "int16_t" | "uint16_t" => 16,
        "int" | "i32" | "u32" | "int32_t" | "uint32_t" if kind != "int" || number >= i128::from(i32::MIN) => 32,
        _ => 64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, kind: &str, format: Format) -> Result<String, String> {
        let value = Value { text: text.into(), kind: Some(kind.into()), ..Value::default() };
        reformat(value, format).map(|value| value.text)
    }

    #[test]
    fn numbers_are_written_as_asked() {
        assert_eq!(shown("42", "int", Format::Hex).unwrap(), "0x2a");
        assert_eq!(shown("5", "int", Format::Bin).unwrap(), "0b101");
        assert_eq!(shown("-1", "int", Format::Hex).unwrap(), "0xffffffff");
        assert_eq!(shown("-1", "short", Format::Hex).unwrap(), "0xffff");
        assert_eq!(shown("-1", "i64", Format::Hex).unwrap(), "0xffffffffffffffff");
        assert_eq!(shown("0x2a", "void *", Format::Dec).unwrap(), "42");
        assert_eq!(shown("'a'", "char", Format::Hex).unwrap(), "0x61");
        assert_eq!(shown("True", "bool", Format::Dec).unwrap(), "1");
        assert!(shown("\"text\"", "char *", Format::Hex).is_err());
    }
}
