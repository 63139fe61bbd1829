//! `do`: several commands in one call.

use std::ffi::OsString;
use std::io::Read as _;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bare, Group};
use crate::cli::{self, LocalContext};
use crate::failure::Failure;

/// Carry out several commands in one call: `do 'break main.c:7; continue; print i'`, or `do -` from standard input
///
/// One reply each; it stops at the first failure.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Do {
    /// Commands, parted by `;` or line ends; `-` reads them from standard input.
    #[arg(value_name = "COMMANDS", required = true)]
    #[serde(default)]
    pub words: Vec<String>,
}

impl Bare for Do {
    const NAME: &'static str = "do";
    const GROUP: Group = Group::Around;

    fn run(self, cx: &LocalContext) -> Result<u8, Failure> {
        let mut text = self.words.join(" ");
        if text == "-" {
            text.clear();
            std::io::stdin().read_to_string(&mut text).map_err(|error| Failure::io("read standard input", &error))?;
        }
        let commands = split(&text)?;
        if commands.is_empty() {
            return Err(Failure::usage("no command was given").hint("bugeye do 'continue; print i'"));
        }
        for words in commands {
            let mut typed: Vec<OsString> = Vec::new();
            if cx.json {
                typed.push("--json".into());
            }
            if let Some(session) = &cx.session {
                typed.extend(["--session".into(), session.into()]);
            }
            typed.extend(words.into_iter().map(OsString::from));
            let code = cli::main(&typed);
            if code != 0 {
                return Ok(code);
            }
        }
        Ok(0)
    }

    fn prints() -> schemars::Schema {
        schemars::schema_for!(crate::wire::Answer)
    }
}

/// Words of each command, with quotes as a shell has them; `#` begins a comment at the start of a word.
pub(crate) fn split(text: &str) -> Result<Vec<Vec<String>>, Failure> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some(end) if end == c => break,
                        Some('\\') if c == '"' && matches!(chars.peek(), Some('"' | '\\')) => word.extend(chars.next()),
                        Some(inner) => word.push(inner),
                        None => return Err(Failure::usage(format!("a quote {c} is not closed in: {text}"))),
                    }
                }
            }
            '#' if word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            ';' | '\n' => {
                words.extend(word.take());
                if !words.is_empty() {
                    commands.push(std::mem::take(&mut words));
                }
            }
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word.take());
    if !words.is_empty() {
        commands.push(words);
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn commands_are_parted_as_in_a_shell() {
        let words = |text: &str| split(text).unwrap().iter().map(|words| words.join("|")).collect::<Vec<_>>();
        assert_eq!(words("break a.c:7; continue;; print i"), ["break|a.c:7", "continue", "print|i"]);
        assert_eq!(words("break a.c:7 --if 'x; y'\nprint \"a \\\"b\""), ["break|a.c:7|--if|x; y", "print|a \"b"]);
        assert_eq!(words("# nothing\ncontinue # go"), ["continue"]);
        assert!(split("print 'x").is_err());
    }
}
