//! A line that is typed while other things are shown: keys in, whole lines out, and how it looks meanwhile.
//!
//! Apart from the terminal: it does no I/O, so that every key can be tried without one.

/// Lines that are remembered.
const HISTORY: usize = 500;
/// The longest line; what is typed beyond is left out.
const MAX_LINE: usize = 8000;

/// What was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typed {
    Line(String),
    /// Enough of it.
    End,
}

/// Between the bytes of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    /// After an escape.
    Escape,
    /// After `ESC [` or `ESC O`, with the number so far.
    Sequence(u32),
}

/// The line being typed.
#[derive(Debug)]
pub struct Editor {
    line: Vec<char>,
    cursor: usize,
    history: Vec<Vec<char>>,
    /// Which line of the history is shown; its length for none.
    shown: usize,
    /// What was being typed before the history was looked at.
    draft: Vec<char>,
    within: Within,
    /// Bytes of a character that is not whole yet.
    bytes: Vec<u8>,
}

impl Default for Editor {
    fn default() -> Self {
        Self {
            line: Vec::new(),
            cursor: 0,
            history: Vec::new(),
            shown: 0,
            draft: Vec::new(),
            within: Within::Nothing,
            bytes: Vec::new(),
        }
    }
}

impl Editor {
    /// Takes keys as a terminal in raw mode sends them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Typed> {
        let mut typed = Vec::new();
        for byte in bytes {
            match self.within {
                Within::Escape if matches!(byte, b'[' | b'O') => self.within = Within::Sequence(0),
                Within::Escape => self.within = Within::Nothing,
                Within::Sequence(number) => self.sequence(number, *byte),
                Within::Nothing => typed.extend(self.key(*byte)),
            }
        }
        typed
    }

    fn key(&mut self, byte: u8) -> Option<Typed> {
        if byte < 0x80 {
            self.bytes.clear();
        }
        match byte {
            b'\r' | b'\n' => return self.enter(),
            0x03 => return Some(Typed::End),
            0x04 if self.line.is_empty() => return Some(Typed::End),
            0x04 => self.delete(),
            0x01 => self.cursor = 0,
            0x05 => self.cursor = self.line.len(),
            0x02 => self.cursor = self.cursor.saturating_sub(1),
            0x06 => self.cursor = (self.cursor + 1).min(self.line.len()),
            0x10 => self.look_back(true),
            0x0e => self.look_back(false),
            0x08 | 0x7f => {
                if self.cursor > 0 {
                    self.cursor -= 1;
                    self.delete();
                }
            }
            0x0b => self.line.truncate(self.cursor),
            0x15 => drop(self.line.drain(..std::mem::take(&mut self.cursor))),
            0x17 => self.rub_out_word(),
            0x1b => self.within = Within::Escape,
            b'\t' => self.insert(' '),
            0x00..=0x1f => {}
            0x20..=0x7e => self.insert(char::from(byte)),
            _ => self.part(byte),
        }
        None
    }

    /// One byte of a character that has several.
    fn part(&mut self, byte: u8) {
        self.bytes.push(byte);
        match std::str::from_utf8(&self.bytes) {
            Ok(text) => {
                let c = text.chars().next();
                self.bytes.clear();
                // What acts on a terminal is not typed by anybody.
                if let Some(c) = c.filter(|c| crate::render::quoted(&c.to_string()) == c.to_string()) {
                    self.insert(c);
                }
            }
            Err(error) if error.error_len().is_some() => self.bytes.clear(),
            Err(_) => {}
        }
    }

    fn sequence(&mut self, number: u32, byte: u8) {
        self.within = Within::Nothing;
        match (byte, number) {
            (b'0'..=b'9', _) => self.within = Within::Sequence((number * 10 + u32::from(byte - b'0')).min(1000)),
            (b';', _) => self.within = Within::Sequence(0),
            (b'A', _) => self.look_back(true),
            (b'B', _) => self.look_back(false),
            (b'C', _) => self.cursor = (self.cursor + 1).min(self.line.len()),
            (b'D', _) => self.cursor = self.cursor.saturating_sub(1),
            (b'H', _) | (b'~', 1 | 7) => self.cursor = 0,
            (b'F', _) | (b'~', 4 | 8) => self.cursor = self.line.len(),
            (b'~', 3) => self.delete(),
            _ => {}
        }
    }

    fn insert(&mut self, c: char) {
        if self.line.len() < MAX_LINE {
            self.line.insert(self.cursor, c);
            self.cursor += 1;
        }
    }

    fn delete(&mut self) {
        if self.cursor < self.line.len() {
            self.line.remove(self.cursor);
        }
    }

    fn rub_out_word(&mut self) {
        let is_space = |at: usize| self.line.get(at).is_some_and(|c| c.is_whitespace());
        let mut start = self.cursor;
        while start > 0 && is_space(start - 1) {
            start -= 1;
        }
        while start > 0 && !is_space(start - 1) {
            start -= 1;
        }
        self.line.drain(start..self.cursor);
        self.cursor = start;
    }

    fn enter(&mut self) -> Option<Typed> {
        let line = std::mem::take(&mut self.line);
        self.cursor = 0;
        let text: String = line.iter().collect();
        if !text.trim().is_empty() && self.history.last() != Some(&line) {
            self.history.push(line);
            if self.history.len() > HISTORY {
                self.history.remove(0);
            }
        }
        self.shown = self.history.len();
        Some(Typed::Line(text))
    }

    fn look_back(&mut self, older: bool) {
        let to = if older { self.shown.checked_sub(1) } else { Some(self.shown + 1) };
        let Some(to) = to.filter(|to| *to <= self.history.len()) else { return };
        if self.shown == self.history.len() {
            self.draft = std::mem::take(&mut self.line);
        }
        self.line = self.history.get(to).cloned().unwrap_or_else(|| std::mem::take(&mut self.draft));
        self.shown = to;
        self.cursor = self.line.len();
    }

    /// Draws the line anew in its one row, `width` columns wide, with the cursor where it is.
    #[must_use]
    pub fn draw(&self, label: &str, width: usize) -> String {
        let columns = |c: char| if c.is_ascii() { 1 } else { 2 };
        let room = width.saturating_sub(label.chars().count() + 1).max(8);
        // What is before the cursor is seen as far as there is room, then what is after it.
        let (mut from, mut used) = (self.cursor, 0);
        while from > 0 && used + columns(self.line[from - 1]) < room {
            from -= 1;
            used += columns(self.line[from]);
        }
        let mut to = self.cursor;
        while to < self.line.len() && used + columns(self.line[to]) < room {
            used += columns(self.line[to]);
            to += 1;
        }
        let text = |range: &[char]| range.iter().collect::<String>();
        let (before, after) = (text(&self.line[from..self.cursor]), text(&self.line[self.cursor..to]));
        if after.is_empty() {
            return format!("\r\x1b[K{label}{before}");
        }
        format!("\r\x1b[K{label}{before}\x1b7{after}\x1b8")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(keys: &str) -> Vec<String> {
        let typed = Editor::default().feed(keys.as_bytes());
        typed.into_iter().map(|typed| if let Typed::Line(line) = typed { line } else { "END".into() }).collect()
    }

    #[test]
    fn keys_edit_the_line() {
        for (keys, line) in [
            ("print i\r", "print i"),
            ("prinz\x7ft\r", "print"),
            ("rint\x01p\x05 i\r", "print i"),
            ("ac\x1b[Db\r", "abc"),
            ("xabc\x1b[H\x1b[3~\r", "abc"),
            ("abx\x1b[D\x04c\r", "abc"),
            ("one two\x17three\r", "one three"),
            ("gone\x15new\r", "new"),
            ("keep gone\x1b[1~\x06\x06\x06\x06\x0b\r", "keep"),
            ("grün 漢\x7f\r", "grün "),
            ("a\x1b[1;5Cb\x1b[200~c\x07\x1bxd\r", "abcd"),
            ("a\u{202e}b\u{9b}c\r", "abc"),
        ] {
            assert_eq!(lines(keys), [line], "{keys:?}");
        }
        assert_eq!(lines("a\x03"), ["END"]);
        assert_eq!(lines("a\x04\x7f\x04"), ["END"]);
    }

    #[test]
    fn a_character_in_pieces_is_one() {
        let mut editor = Editor::default();
        for byte in "ü\u{1b}[D漢".bytes() {
            assert_eq!(editor.feed(&[byte]), []);
        }
        assert_eq!(editor.feed(b"\xff\r"), [Typed::Line("漢ü".into())]);
    }

    #[test]
    fn earlier_lines_come_back() {
        let up = "\x1b[A";
        let down = "\x1b[B";
        assert_eq!(lines(&format!("one\rtwo\r{up}\r"))[2], "two");
        assert_eq!(lines(&format!("one\rtwo\r{up}{up}{up}\r"))[2], "one");
        assert_eq!(lines(&format!("one\rtwo\rdra{up}{up}{down}{down}{down}ft\r"))[2], "draft");
        assert_eq!(lines(&format!("one\rone\r{up}{up}\r"))[2], "one");
    }

    #[test]
    fn a_long_line_stays_in_its_row() {
        let mut editor = Editor::default();
        editor.feed("0123456789abcdefghij".as_bytes());
        assert_eq!(editor.draw("> ", 13), "\r\x1b[K> bcdefghij");
        editor.feed(b"\x01");
        assert_eq!(editor.draw("> ", 13), "\r\x1b[K> \x1b7012345678\x1b8");
        assert_eq!(Editor::default().draw("> ", 80), "\r\x1b[K> ");
    }
}
