//! `source`: lines of a file.

use std::path::Path;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lines::{Source as Lines, window};
use super::looking::{At, look};
use super::past::{Spot, source_text};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::{Context, places};
use crate::model::{Frame, Place};
use crate::session::Op;
use crate::store::replay::Moment;

/// Show source lines: around a place, the current line, or the whole current function
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    /// file:line; without it, where the program is.
    #[arg(value_name = "PLACE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Show the whole current function.
    #[arg(long)]
    #[serde(default)]
    pub function: bool,
    /// Lines on each side (default 4).
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

impl Command for Source {
    const NAME: &'static str = "source";
    const ALIASES: &'static [&'static str] = &["list", "l"];
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = Lines;

    async fn run(self, cx: Context) -> Result<Lines, Failure> {
        let (file, line, current) = match &self.place {
            Some(text) => named(text, &cx.caller.cwd)?,
            None => {
                let seen = look(&cx, Op::Look(self.at.look(crate::model::View::default()))).await?;
                of_frame(seen.frames.first().ok_or_else(|| Failure::refused("the frame can't be read"))?)?
            }
        };
        let bytes = std::fs::read(&file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::not_found(format!("there is no file {file}")),
            _ => Failure::io(format!("read {file}"), &error),
        })?;
        self.lines(&file, &String::from_utf8_lossy(&bytes), line, current)
    }

    fn recorded(self, moment: &Moment) -> Result<Lines, Failure> {
        let (file, line, current) = match &self.place {
            Some(text) => named(text, &std::env::current_dir().unwrap_or_else(|_| "/".into()))?,
            None => of_frame(Spot::of(moment, &self.at)?.frame)?,
        };
        let text = source_text(moment, &file)?;
        Ok(Lines { note: text.note, ..self.lines(&file, &text.text, line, current)? })
    }
}

impl Source {
    fn lines(&self, file: &str, text: &str, line: u32, current: Option<u32>) -> Result<Lines, Failure> {
        let context = self.context.unwrap_or(4).min(500);
        let (first, last) = if self.function {
            extent(text, line)
        } else {
            (line.saturating_sub(context).max(1), line.saturating_add(context))
        };
        window(file, text, first, last, current).ok_or_else(|| Failure::not_found(format!("{file} has no line {line}")))
    }
}

/// The file and line of a place that was named.
fn named(text: &str, cwd: &Path) -> Result<(String, u32, Option<u32>), Failure> {
    match places::resolve(text, cwd)?.place {
        Place::Line { file, line } => Ok((file, line, None)),
        other => Err(Failure::usage(format!("`{other}` names no file")).hint("bugeye source FILE:LINE")),
    }
}

/// The file and line of a frame, which is the current one.
fn of_frame(frame: &Frame) -> Result<(String, u32, Option<u32>), Failure> {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => Ok((file.clone(), line, Some(line))),
        _ => {
            Err(Failure::refused(format!("{} has no source lines", frame.function))
                .hint("look at its caller: bugeye up"))
        }
    }
}

/// The lines of the function around `line`, told by indentation: from the nearest line above that is indented less and
/// begins a block, to the end of that block.
fn extent(text: &str, line: u32) -> (u32, u32) {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let at = usize::try_from(line).unwrap_or(1).clamp(1, lines.len().max(1)) - 1;
    let opens = |line: &str| {
        let line = line.trim();
        ["fn ", "def ", "function ", "func "]
            .iter()
            .any(|word| line.starts_with(word) || line.contains(&format!(" {word}")))
            || (line.ends_with('{') && line.contains('(') && !is_statement(line))
    };
    let first = (0..=at)
        .rev()
        .find(|index| opens(lines[*index]) && (*index == at || indent(lines[*index]) < indent(lines[at]).max(1)));
    let Some(first) = first else { return (line.saturating_sub(4).max(1), line + 4) };
    let margin = indent(lines[first]);
    let ends = |index: &usize| {
        let line = lines[*index];
        !line.trim().is_empty() && indent(line) <= margin && !line.trim_start().starts_with('{')
    };
    let after = (first + 1..lines.len()).find(ends).unwrap_or(lines.len());
    let closes = lines.get(after).is_some_and(|line| line.trim_start().starts_with('}'));
    let mut last = if closes { after } else { after - 1 };
    while last > at && lines[last].trim().is_empty() {
        last -= 1;
    }
    let number = |index: usize| u32::try_from(index + 1).unwrap_or(u32::MAX);
    (number(first), number(last.max(at)))
}

fn is_statement(line: &str) -> bool {
    ["if", "for", "while", "switch", "match", "else", "}"].iter().any(|word| line.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::extent;

    #[test]
    fn a_function_is_found_by_its_shape() {
        let c = "int x;\n\nint f(int n) {\n    for (;;) {\n        n++;\n    }\n    return n;\n}\n\nint g(void) {\n}\n";
        assert_eq!(extent(c, 5), (3, 8));
        let python = "import x\n\ndef f(n):\n    for i in n:\n        pass\n\n    return i\n\nf(3)\n";
        assert_eq!(extent(python, 5), (3, 7));
        let rust = "impl A {\n    pub fn f(&self) -> u8 {\n        1\n    }\n}\n";
        assert_eq!(extent(rust, 3), (2, 4));
    }
}
