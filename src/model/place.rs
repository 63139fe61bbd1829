//! A location a user can name, parsed once at the edge.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where to stop or look: a line of a file, a function, or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    Line { file: String, line: u32 },
    Function { module: Option<String>, name: String },
    Address(u64),
}

impl Place {
    /// Reads what a user typed. In this order: `*ADDR`; `module!function`; `file:line` when all after the last colon is
    /// digits; else a function name (`foo::bar` and `!foo` are functions).
    ///
    /// # Errors
    /// When the text is empty, an address is no number, or a line is 0 or too large.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("a place is file:line, a function, module!function or *0xADDR".into());
        }
        if Self::is_doing(text) {
            return Ok(Self::Function { module: None, name: text.into() });
        }
        if let Some(address) = text.strip_prefix('*') {
            let digits = address.strip_prefix("0x").or_else(|| address.strip_prefix("0X"));
            return digits
                .map_or_else(|| address.parse(), |hex| u64::from_str_radix(hex, 16))
                .map(Self::Address)
                .map_err(|_| format!("`{address}` is not an address; write *0x401000"));
        }
        if let Some((module, name)) = text.split_once('!')
            && !module.is_empty()
            && !name.is_empty()
        {
            return Ok(Self::Function { module: Some(module.into()), name: name.into() });
        }
        if let Some((file, digits)) = text.rsplit_once(':')
            && !digits.is_empty()
            && !file.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
        {
            return match digits.parse() {
                Ok(0) => Err("lines are counted from 1".into()),
                Ok(line) => Ok(Self::Line { file: file.into(), line }),
                Err(_) => Err(format!("line {digits} is beyond any file")),
            };
        }
        Ok(Self::Function { module: None, name: text.into() })
    }
}

impl Place {
    /// Whether a text means something that an agent does (`tool:Bash`, `iteration:5`); a line of a file `tool` does not.
    fn is_doing(text: &str) -> bool {
        let Some((word, rest)) = text.split_once(':') else { return false };
        let counts = matches!(word, "iteration" | "tokens" | "cost");
        let names = matches!(word, "tool" | "after" | "pattern" | "file" | "model");
        let digits = || rest.bytes().all(|byte| byte.is_ascii_digit());
        !rest.starts_with(':') && (counts || (names && !digits()))
    }

    /// Whether it is on what an agent does, and means nothing to a program.
    #[must_use]
    pub fn is_for_agents(&self) -> bool {
        matches!(self, Self::Function { module: None, name } if Self::is_doing(name))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}"),
            Self::Function { module: Some(module), name } => write!(f, "{module}!{name}"),
            Self::Function { module: None, name } => f.write_str(name),
            Self::Address(address) => write!(f, "*{address:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(file: &str, line: u32) -> Place {
        Place::Line { file: file.into(), line }
    }

    fn function(module: Option<&str>, name: &str) -> Place {
        Place::Function { module: module.map(Into::into), name: name.into() }
    }

    #[test]
    fn every_form_is_read_in_the_documented_order() {
        let cases = [
            ("src/main.rs:42", line("src/main.rs", 42)),
            ("C:\\a\\b.c:7", line("C:\\a\\b.c", 7)),
            ("foo::bar::baz", function(None, "foo::bar::baz")),
            ("foo::bar", function(None, "foo::bar")),
            ("libfoo.so!bar", function(Some("libfoo.so"), "bar")),
            ("!foo", function(None, "!foo")),
            ("main", function(None, "main")),
            ("tool:Bash", function(None, "tool:Bash")),
            ("pattern:a!b:7", function(None, "pattern:a!b:7")),
            ("iteration:5", function(None, "iteration:5")),
            ("tool:5", line("tool", 5)),
            ("model::load", function(None, "model::load")),
            ("tokens::next", function(None, "tokens::next")),
            ("*0x401136", Place::Address(0x0040_1136)),
            ("*16", Place::Address(16)),
        ];
        for (text, expected) in cases {
            assert_eq!(Place::parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_path_of_names_is_a_programs() {
        for (text, agents) in [("tokens::next", false), ("model::load", false), ("tokens:5", true), ("tool:x", true)] {
            assert_eq!(Place::parse(text).unwrap().is_for_agents(), agents, "{text}");
        }
    }

    #[test]
    fn what_was_parsed_prints_as_it_was_typed() {
        for text in ["a.c:1", "m!f", "f", "*0x10"] {
            assert_eq!(Place::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for text in ["", "  ", "*zz", "a.c:0", "a.c:99999999999"] {
            assert!(Place::parse(text).is_err(), "{text}");
        }
    }
}
