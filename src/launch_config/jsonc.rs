//! JSON with comments and trailing commas, as editors write it.

use serde_json::Value;

/// Reads a text; an error names its line.
pub fn parse(text: &str) -> Result<Value, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(&plain(text)).map_err(|error| error.to_string())
}

/// The same text with blanks for all that JSON does not have: lines and columns stay.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    // Where the last comma is, while only blanks came after it.
    let mut comma = None;
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('"', _) => {
                comma = None;
                out.push(c);
                let mut escaped = false;
                for c in chars.by_ref() {
                    out.push(c);
                    if c == '"' && !escaped {
                        break;
                    }
                    escaped = c == '\\' && !escaped;
                }
            }
            ('/', Some('/')) => {
                out.push(' ');
                while let Some(c) = chars.next_if(|c| *c != '\n') {
                    out.push(if c == '\r' { c } else { ' ' });
                }
            }
            ('/', Some('*')) => {
                out.push_str("  ");
                chars.next();
                let mut star = false;
                for c in chars.by_ref() {
                    out.push(if c == '\n' { c } else { ' ' });
                    if c == '/' && star {
                        break;
                    }
                    star = c == '*';
                }
            }
            (',', _) => {
                comma = Some(out.len());
                out.push(c);
            }
            ('}' | ']', _) => {
                if let Some(at) = comma.take() {
                    out.replace_range(at..=at, " ");
                }
                out.push(c);
            }
            (c, _) => {
                if !c.is_whitespace() {
                    comma = None;
                }
                out.push(c);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_trailing_commas_are_passed_over() {
        let text = "\u{feff}// head\n{ /* a, } */ \"a\": [1, 2, /* x */ ], // tail, ]\n \"b\": \"// no \\\" , ] comment\", }\n";
        assert_eq!(parse(text).unwrap(), json!({ "a": [1, 2], "b": "// no \" , ] comment" }));
        assert_eq!(parse("[,]").unwrap(), json!([]), "more is taken than would be written");
    }

    #[test]
    fn a_mistake_is_told_with_its_line() {
        assert!(parse("{\n // x\n \"a\": \n}").unwrap_err().contains("line 4"));
        for broken in ["", "/*", "\"", "{\"a\": \"\\", "//", "[1,,2]"] {
            assert!(parse(broken).is_err(), "{broken}");
        }
    }
}
