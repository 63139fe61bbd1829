//! `print`: the value of an expression.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{At, Extent, look, render_part};
use super::past::{self, Spot};
use super::{Command, Group, Past};
use crate::cli::typed;
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::number::whole;
use crate::model::{Value, Variable, View};
use crate::render::{Page, Render, quoted};
use crate::session::{IMPURE, Look, Op, unsupported};
use crate::store::replay::{Asked, Moment};

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
    /// No more of a value can be had at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub full: bool,
}

/// One expression. Its value is debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Named {
    pub expression: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The expression of what was cut, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<String>,
}

impl Named {
    /// What to type for what was cut.
    fn more(&self, full: bool) -> String {
        match &self.rest {
            Some(rest) => quoted(&typed(&["print", "--full", rest])),
            None if full => "ask for a part of it".into(),
            None => "--full".into(),
        }
    }
}

impl Render for Values {
    fn render(&self, page: &mut Page) {
        for named in &self.values {
            match (&named.value, &named.error) {
                (Some(value), _) => {
                    render_part(&quoted(&named.expression), value, self.with_type, &named.more(self.full), page);
                }
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
    const PAST: Past = Past::Reads;
    type Output = Values;

    async fn run(self, cx: Context) -> Result<Values, Failure> {
        let expressions = self.all();
        let live = cx.session()?;
        let mut view = self.extent.view();
        // What goes into a model's context stays small.
        if live.adapter.quirks.agents && self.extent.full && !cx.caller.who.starts_with("mcp:") {
            view = View { depth: view.depth, ..View::whole() };
        }
        view.from = self.from.unwrap_or(0);
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
        let found = expressions.into_iter().zip(seen.values.into_iter().map(|(_, value)| value)).collect();
        let mut shown = self.shown(found)?;
        if live.adapter.quirks.agents && self.extent.full {
            for named in &mut shown.values {
                let value = named.value.as_ref().filter(|value| value.kind.as_deref() == Some("text") && value.cut > 0);
                named.rest = value.map(|value| format!("{}[-{}:]", named.expression, value.cut));
            }
        }
        Ok(shown)
    }

    fn recorded(self, moment: &Moment) -> Result<Values, Failure> {
        let spot = Spot::of(moment, &self.at)?;
        let mut found = Vec::new();
        for expression in self.all() {
            let value = self.known(moment, &spot, &expression)?;
            found.push((expression, value));
        }
        self.shown(found)
    }
}

impl Print {
    /// Every expression that is asked for.
    fn all(&self) -> Vec<String> {
        let words = (!self.words.is_empty()).then(|| self.words.join(" "));
        words.into_iter().chain(self.expressions.iter().cloned()).collect()
    }

    /// A value that the record has: one that was asked for in this frame, or a variable or a part of one.
    fn known(&self, moment: &Moment, spot: &Spot<'_>, expression: &str) -> Result<Result<Value, String>, Failure> {
        let missing = || past::missing(moment, &format!("print {expression}"));
        if self.format == Some(Format::Addr) || self.from.is_some() {
            return Err(missing());
        }
        let same = |asked: &&Asked| {
            let here = asked.thread == Some(spot.thread.id) && asked.frame == Some(spot.frame.index);
            here && asked.expression == expression
        };
        let deeper = self.extent.full || self.extent.depth.is_some();
        let fits = |value: &Value| !deeper || value.is_whole();
        match moment.asked.iter().rev().find(same).map(|asked| &asked.found) {
            Some(Ok(value)) if fits(value) => return Ok(Ok(value.clone())),
            Some(Err(message)) => return Ok(Err(message.clone())),
            _ => {}
        }
        past::unchanged(moment, &format!("print {expression}"))?;
        let locals = spot.locals(moment, "locals").map_err(|_| missing())?;
        match part_of(&locals, expression) {
            // A text of its own says what it is; without one it was not read.
            Some(value) if fits(value) && !(value.deeper && value.text.is_empty()) => Ok(Ok(value.clone())),
            _ => match root(&locals, expression) {
                Some(whole) => Err(missing().hint(format!("as it was read there: print {}", whole.name))),
                None => Err(missing()),
            },
        }
    }

    fn shown(&self, found: Vec<(String, Result<Value, String>)>) -> Result<Values, Failure> {
        let single = found.len() == 1;
        let mut values = Vec::new();
        for (expression, value) in found {
            let result = value.and_then(|value| match self.format {
                Some(format) => reformat(value, format),
                None => Ok(value),
            });
            match result {
                Ok(value) => values.push(Named { expression, value: Some(value), error: None, rest: None }),
                Err(message) if message == IMPURE => {
                    let failure = Failure::refused(format!("`{expression}` may change the program: print only reads"))
                        .hint(format!("to run it all the same: bugeye eval '{expression}'"));
                    if single {
                        return Err(failure);
                    }
                    values.push(Named { expression, value: None, error: Some(failure.message), rest: None });
                }
                Err(message) if single => {
                    if let Some((what, instead)) = unsupported(&message) {
                        return Err(Failure::unsupported(format!("`{expression}` can't be read: {what}")).hint(instead));
                    }
                    return Err(Failure::refused(format!("`{expression}` can't be read: {message}"))
                        .hint("what there is: bugeye locals"));
                }
                Err(message) => values.push(Named { expression, value: None, error: Some(message), rest: None }),
            }
        }
        Ok(Values { values, with_type: self.with_type, full: self.extent.full })
    }
}

/// A variable, or a part of one that was read with it: `p`, `p.x`, `p->x`, `xs[2]`, `d['a']`.
fn part_of<'a>(locals: &'a [Variable], expression: &str) -> Option<&'a Value> {
    let named = |variables: &'a [Variable], name: &str| variables.iter().find(|variable| variable.name == name);
    let whole = root(locals, expression)?;
    let (mut value, mut rest) = (&whole.value, &expression[whole.name.len()..]);
    while !rest.is_empty() {
        let (part, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => {
                let inner = rest.strip_prefix("->").or_else(|| rest.strip_prefix('.'))?;
                inner.split_at(inner.find(|c| !is_word(c)).unwrap_or(inner.len()))
            }
        };
        let child = named(&value.children, part).or_else(|| named(&value.children, &format!("[{part}]")))?;
        (value, rest) = (&child.value, after);
    }
    Some(value)
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// The variable that an expression begins with.
fn root<'a>(locals: &'a [Variable], expression: &str) -> Option<&'a Variable> {
    let end = expression.find(|c| !is_word(c)).unwrap_or(expression.len());
    locals.iter().find(|variable| variable.name == expression[..end])
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
    let Some(number) = whole(&value.text) else {
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
    fn a_part_of_a_variable_is_found_by_its_path() {
        let leaf = |name: &str, text: &str| Variable {
            name: name.into(),
            value: Value { text: text.into(), ..Value::default() },
            change: None,
        };
        let of = |name: &str, children: Vec<Variable>| Variable {
            name: name.into(),
            value: Value { children, ..Value::default() },
            change: None,
        };
        let locals = [
            leaf("i", "3"),
            of("p", vec![leaf("x", "1"), of("xs", vec![leaf("[0]", "7")])]),
            of("d", vec![leaf("'a'", "5")]),
        ];
        let text = |path: &str| part_of(&locals, path).map(|value| value.text.clone());
        for (path, found) in [("i", "3"), ("p.x", "1"), ("p->x", "1"), ("p.xs[0]", "7"), ("d['a']", "5")] {
            assert_eq!(text(path).as_deref(), Some(found), "{path}");
        }
        for path in ["j", "i + 1", "p.y", "p.xs[1]", "p.xs[0", "", "p.", "p x", "[0]"] {
            assert_eq!(text(path), None, "{path}");
        }
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
