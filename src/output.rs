//! What a program printed, kept within limits: its first megabyte and its newest, and an exact count of what was
//! dropped between them.

use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::session::Stream;

/// What a program says first is what people look for, so this much of it stays.
const HEAD: usize = 1024 * 1024;
/// Small writes to one stream are kept together up to this size.
const CHUNK: usize = 4096;

/// A piece of output, numbered by the byte it begins at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chunk {
    pub at: u64,
    pub stream: Stream,
    /// Debuggee text.
    pub text: String,
}

/// All the output that is kept of one session.
#[derive(Debug)]
pub struct Ring {
    head: Vec<Chunk>,
    head_bytes: usize,
    tail: VecDeque<Chunk>,
    tail_bytes: usize,
    max_chunks: usize,
    max_bytes: usize,
    /// Bytes ever written; the number of the next chunk.
    end: u64,
}

/// Output from some point on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    pub chunks: Vec<Chunk>,
    /// Bytes in the range that are no longer kept.
    pub dropped: u64,
    /// Where to go on.
    pub end: u64,
}

impl Ring {
    #[must_use]
    pub const fn new(max_chunks: usize, max_bytes: usize) -> Self {
        Self { head: Vec::new(), head_bytes: 0, tail: VecDeque::new(), tail_bytes: 0, max_chunks, max_bytes, end: 0 }
    }

    pub fn push(&mut self, stream: Stream, text: &str) {
        if text.is_empty() {
            return;
        }
        let at = self.end;
        self.end += text.len() as u64;
        let head_limit = HEAD.min(self.max_bytes / 2);
        if self.tail.is_empty() && self.head_bytes + text.len() <= head_limit {
            self.head_bytes += text.len();
            return append(&mut self.head, at, stream, text);
        }
        self.tail_bytes += text.len();
        match self.tail.back_mut() {
            Some(last) if last.stream == stream && last.text.len() + text.len() <= CHUNK => last.text.push_str(text),
            _ => self.tail.push_back(Chunk { at, stream, text: text.into() }),
        }
        let chunks = self.max_chunks.saturating_sub(self.head.len()).max(1);
        let bytes = self.max_bytes.saturating_sub(self.head_bytes);
        while (self.tail.len() > chunks || self.tail_bytes > bytes) && self.tail.len() > 1 {
            if let Some(oldest) = self.tail.pop_front() {
                self.tail_bytes -= oldest.text.len();
            }
        }
    }

    /// Everything kept from byte `from` on.
    #[must_use]
    pub fn since(&self, from: u64) -> Part {
        let mut part = Part { chunks: Vec::new(), dropped: 0, end: self.end };
        let mut expected = from.min(self.end);
        for chunk in self.head.iter().chain(&self.tail) {
            let end = chunk.at + chunk.text.len() as u64;
            if end <= expected {
                continue;
            }
            if chunk.at > expected {
                part.dropped += chunk.at - expected;
            }
            let skip = usize::try_from(expected.saturating_sub(chunk.at)).unwrap_or(0);
            let text = chunk.text.get(skip..).unwrap_or(&chunk.text);
            part.chunks.push(Chunk { at: end - text.len() as u64, stream: chunk.stream, text: text.into() });
            expected = end;
        }
        part
    }

    /// Forgets everything; numbers go on.
    pub fn clear(&mut self) {
        *self = Self { end: self.end, ..Self::new(self.max_chunks, self.max_bytes) };
    }

    /// Bytes ever written.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }
}

fn append(chunks: &mut Vec<Chunk>, at: u64, stream: Stream, text: &str) {
    match chunks.last_mut() {
        Some(last) if last.stream == stream && last.text.len() + text.len() <= CHUNK => last.text.push_str(text),
        _ => chunks.push(Chunk { at, stream, text: text.into() }),
    }
}

/// Turns bytes into text across the borders of reads. Bytes that are no text become U+FFFD.
#[derive(Debug, Default)]
pub struct Decoder {
    left: Vec<u8>,
}

impl Decoder {
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        self.left.extend_from_slice(bytes);
        let mut out = String::with_capacity(self.left.len());
        let mut rest = self.left.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(text) => {
                    out.push_str(text);
                    rest = &[];
                    break;
                }
                Err(error) => {
                    let (good, bad) = rest.split_at(error.valid_up_to());
                    out.push_str(std::str::from_utf8(good).unwrap_or_default());
                    match error.error_len() {
                        Some(length) => {
                            out.push(char::REPLACEMENT_CHARACTER);
                            rest = &bad[length..];
                        }
                        None => {
                            rest = bad;
                            break;
                        }
                    }
                }
            }
        }
        self.left = rest.to_vec();
        out
    }

    /// What is left when nothing more comes.
    pub fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.left)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(part: &Part) -> String {
        part.chunks.iter().map(|chunk| chunk.text.as_str()).collect()
    }

    #[test]
    fn each_reader_goes_on_where_it_was() {
        let mut ring = Ring::new(100, 1000);
        ring.push(Stream::Stdout, "one\n");
        let first = ring.since(0);
        assert_eq!((text(&first).as_str(), first.end), ("one\n", 4));
        ring.push(Stream::Stderr, "two\n");
        assert_eq!(text(&ring.since(first.end)), "two\n");
        assert_eq!(text(&ring.since(2)), "e\ntwo\n");
        assert_eq!(text(&ring.since(99)), "");
    }

    #[test]
    fn the_first_and_the_newest_stay_and_the_rest_is_counted() {
        let mut ring = Ring::new(10_000, 1000);
        for n in 0..1000 {
            ring.push(Stream::Stdout, &format!("{n:04}\n"));
        }
        let part = ring.since(0);
        let kept: u64 = part.chunks.iter().map(|chunk| chunk.text.len() as u64).sum();
        assert_eq!(part.dropped + kept, 5000);
        assert!(kept <= 1000, "{kept}");
        assert!(text(&part).starts_with("0000\n") && text(&part).ends_with("0999\n"));
    }

    #[test]
    fn clearing_keeps_the_numbers() {
        let mut ring = Ring::new(10, 100);
        ring.push(Stream::Stdout, "abc");
        ring.clear();
        ring.push(Stream::Stdout, "def");
        assert_eq!(ring.since(0).chunks, [Chunk { at: 3, stream: Stream::Stdout, text: "def".into() }]);
    }

    #[test]
    fn characters_survive_the_border_of_a_read() {
        let bytes = "aé漢😀".as_bytes();
        for cut in 0..=bytes.len() {
            let mut decoder = Decoder::default();
            let text = decoder.decode(&bytes[..cut]) + &decoder.decode(&bytes[cut..]);
            assert_eq!(text, "aé漢😀", "cut at {cut}");
        }
        let mut decoder = Decoder::default();
        assert_eq!(decoder.decode(b"a\xffb\xc3"), "a\u{fffd}b");
        assert_eq!(decoder.finish(), "\u{fffd}");
    }
}
