//! Log breakpoints of Delve: how values are written into a message, and read from it.
//!
//! Delve writes `> [Go 1]: MESSAGE`, with a text in quotes and escaped: the characters that part the values are in none.

use crate::model::{Point, Reading};

/// Before a message of ours, and between what is in it.
const MARK: char = '\u{1e}';
const COMMA: char = '\u{1f}';

pub fn message(point: &Point) -> String {
    let mut text = format!("{MARK}{}", point.id);
    for expression in &point.expressions {
        text.push(COMMA);
        text.push_str(&format!("{{{expression}}}"));
    }
    text
}

pub fn read(output: &str) -> Option<(i64, u32, Vec<Reading>)> {
    let (thread, rest) = output.strip_prefix("> [Go ")?.split_once("]: ")?;
    let mut parts = rest.strip_prefix(MARK)?.strip_suffix('\n')?.split(COMMA);
    let point = parts.next()?.parse().ok()?;
    Some((thread.parse().ok()?, point, parts.map(reading).collect()))
}

/// What could not be read is written as `{eval err: &{%!e(string=WHY)}}`, or in another form of Go's own.
fn reading(text: &str) -> Reading {
    let Some(error) = text.strip_prefix("{eval err: ") else { return Reading { text: text.into(), why: None } };
    let why = error.split_once("string=").map_or(error, |(_, why)| why);
    Reading::unavailable(why.trim_end_matches(['}', ')']))
}

/// Numbers, truth values and texts, by the names that Go has for them: those of other names may be shown by a name.
pub fn is_plain(kind: &str) -> bool {
    let digits = kind.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let word = &kind[..kind.len() - digits.len()];
    let sized = matches!(digits, "" | "8" | "16" | "32" | "64");
    sized && matches!(word, "int" | "uint" | "float" | "bool" | "string" | "uintptr")
}

/// Braces end an expression in a message, wherever they stand; a call may not be made, and what is set is no value.
pub fn reads(expression: &str) -> bool {
    !expression.contains(['{', '}', '\n', '%']) && !super::is_command(expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back() {
        let text = "> [Go 7]: \u{1e}3\u{1f}5\u{1f}\"a, b\"\u{1f}{eval err: &{%!e(string=could not find symbol value for x)}}\n";
        let told = |text: &str| Reading { text: text.into(), why: None };
        let values = vec![told("5"), told("\"a, b\""), Reading::unavailable("could not find symbol value for x")];
        assert_eq!(read(text), Some((7, 3, values)));
        assert_eq!(read("> [Go 7]: something else\n"), None);
        assert_eq!(read("hello\n"), None);
    }

    #[test]
    fn only_plain_types_are_plain() {
        assert!(["int", "int64", "uint8", "float64", "bool", "string", "uintptr"].into_iter().all(is_plain));
        assert!(
            !["main.Color", "[]int", "*int", "interface {}", "error", "complex128", "map[int]int", ""]
                .into_iter()
                .any(is_plain)
        );
    }
}
