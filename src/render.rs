//! Text for readers: where it is written, how foreign text is quoted, and the one trait that turns results into it.

use std::fmt::{self, Write as _};

/// Where text is written, and within which limits.
#[derive(Debug, Clone)]
pub struct Page {
    out: String,
    pub width: usize,
    pub colour: bool,
    /// The directory that paths are shown relative to.
    pub cwd: std::path::PathBuf,
    /// The session and adapter the reply came from.
    pub session: Option<String>,
    pub via: Option<String>,
}

impl Page {
    #[must_use]
    pub fn new(cwd: std::path::PathBuf) -> Self {
        Self { out: String::new(), width: 100, colour: false, cwd, session: None, via: None }
    }

    /// Writes a line of our own words.
    pub fn line(&mut self, text: impl fmt::Display) {
        let _ = writeln!(self.out, "{text}");
    }

    /// A path as a reader in `cwd` would type it.
    #[must_use]
    pub fn path(&self, path: &str) -> String {
        let path = std::path::Path::new(path);
        let shown = path.strip_prefix(&self.cwd).unwrap_or(path);
        quoted(&shown.to_string_lossy())
    }

    #[must_use]
    pub fn into_text(self) -> String {
        self.out
    }

    #[must_use]
    pub fn text(&self) -> &str {
        &self.out
    }
}

/// A result that can be read by people and models.
pub trait Render {
    fn render(&self, page: &mut Page);

    /// The exit code of a command that succeeded with this result.
    fn exit_code(&self) -> u8 {
        0
    }
}

/// Debuggee text made harmless: control characters, direction marks, invisible and tag code points become escapes.
/// Tabs and newlines become `\t` and `\n`.
#[must_use]
pub fn quoted(text: &str) -> String {
    escape(text, false)
}

/// As [`quoted`], for text of several lines: tabs and newlines stay.
#[must_use]
pub fn quoted_lines(text: &str) -> String {
    escape(text, true)
}

fn escape(text: &str, keep_lines: bool) -> String {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text.to_string();
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\n' | '\t' if keep_lines => out.push(c),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_unsafe(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// A line of JSON that says the same and is harmless to show: such characters stand only inside its strings, where an
/// escape means the same character.
#[must_use]
pub fn quoted_json(line: &str) -> String {
    if line.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return line.to_string();
    }
    let mut out = String::with_capacity(line.len() + 8);
    for c in line.chars() {
        if is_unsafe(c) && c != '\n' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Characters that act on a terminal or hide from a reader.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(u32::from(c),
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x200b..=0x200f
            | 0x2028..=0x202e | 0x2060..=0x206f | 0x3164 | 0xfe00..=0xfe0f | 0xfeff | 0xffa0 | 0xfff0..=0xfffb
            | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff)
}

/// The head of `text` that takes at most `limit` bytes as a JSON string, and how many characters were left out.
#[must_use]
pub fn cut_json(text: &str, limit: usize) -> (&str, usize) {
    let mut left = limit;
    for (at, c) in text.char_indices() {
        let size = match c {
            '"' | '\\' | '\n' | '\t' | '\r' => 2,
            c if is_unsafe(c) => 6 * c.len_utf16(),
            c => c.len_utf8(),
        };
        if size > left {
            return (&text[..at], text[at..].chars().count());
        }
        left -= size;
    }
    (text, 0)
}

/// `text` with at most `limit` characters, and how many were left out.
#[must_use]
pub fn cut(text: &str, limit: usize) -> (&str, usize) {
    match text.char_indices().nth(limit) {
        Some((at, _)) => (&text[..at], text[at..].chars().count()),
        None => (text, 0),
    }
}

/// So much of a command stands in a line about it.
pub const MAX_COMMAND: usize = 60;

/// A command in a line about it.
#[must_use]
pub fn command(words: &[String]) -> String {
    beginning(&command_within(words, MAX_COMMAND).join(" "), MAX_COMMAND)
}

/// The text, or its beginning and `…`.
#[must_use]
pub fn beginning(text: &str, limit: usize) -> String {
    match cut(text, limit) {
        (whole, 0) => whole.to_string(),
        (kept, _) => format!("{kept}…"),
    }
}

/// The words of a command; where they take more than `limit` characters, files lose their folders, the first ones
/// first: what was run is said by its name.
#[must_use]
pub fn command_within(words: &[String], limit: usize) -> Vec<String> {
    let mut words = words.to_vec();
    let mut length = words.iter().map(|word| word.chars().count() + 1).sum::<usize>().saturating_sub(1);
    for word in &mut words {
        if length <= limit {
            break;
        }
        let is_path = word.starts_with('/') && !word.contains(char::is_whitespace);
        let name = word.trim_end_matches('/').rsplit_once('/').map(|(_, name)| format!("…/{name}"));
        if let Some(name) = name.filter(|name| is_path && name.len() < word.len()) {
            length -= word.chars().count().saturating_sub(name.chars().count());
            *word = name;
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_command_keeps_the_names_of_its_files() {
        let words = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>();
        let within = |text: &str, limit| command_within(&words(text), limit).join(" ");
        assert_eq!(within("python3 /home/me/a.py /tmp/b", 28), "python3 /home/me/a.py /tmp/b");
        assert_eq!(within("python3 /home/me/a.py /tmp/b", 27), "python3 …/a.py /tmp/b");
        assert_eq!(within("python3 /home/me/a.py /tmp/b", 20), "python3 …/a.py …/b");
        assert_eq!(within("cat a/b/c.txt and/or /x", 3), "cat a/b/c.txt and/or /x");
        assert_eq!(within("ls /srv/app/data/", 3), "ls …/data");
        let prompt = words("claude -p").into_iter().chain(["/review src/a.rs of mine".into()]).collect::<Vec<_>>();
        assert_eq!(command_within(&prompt, 3), prompt);
        assert_eq!((beginning("abc", 3), beginning("abcd", 3)), ("abc".into(), "abc…".into()));
    }

    #[test]
    fn a_text_is_cut_by_what_it_takes_in_json() {
        assert_eq!(cut_json("abc", 3), ("abc", 0));
        assert_eq!(cut_json("ab\u{1b}c", 7), ("ab", 2));
        assert_eq!(cut_json("é漢", 4), ("é", 1));
        assert_eq!(cut_json("\"x", 1), ("", 2));
    }

    #[test]
    fn json_is_harmless_and_says_the_same() {
        let value = serde_json::json!({ "a\u{202e}": "\u{1b}[31m\u{9b}é\u{e0041}\u{7f}漢\n" });
        let line = quoted_json(&value.to_string());
        assert!(!line.chars().any(is_unsafe), "{line:?}");
        assert!(line.contains("é") && line.contains('漢'), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    }

    #[test]
    fn hostile_text_is_shown_as_escapes() {
        assert_eq!(quoted("a\x1b[31mb"), "a\\u{1b}[31mb");
        assert_eq!(quoted("x\u{202e}y\u{200b}z\u{e0041}"), "x\\u{202e}y\\u{200b}z\\u{e0041}");
        assert_eq!(quoted("a\nb\tc\r"), "a\\nb\\tc\\r");
        assert_eq!(quoted_lines("a\nb\tc\x07"), "a\nb\tc\\u{7}");
        assert_eq!(quoted("grün 漢字 😀"), "grün 漢字 😀");
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut("grün", 3), ("grü", 1));
        assert_eq!(cut("abc", 3), ("abc", 0));
    }
}
