//! Malformed frames by the thousand, from a seed: the codec never panics, answers the same wherever the stream is cut,
//! and never holds what a header only promised.
//!
//! `BUGEYE_FRAMES` is how many (10,000); `scripts/torture frames N` sets it and shows the figures.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

use std::fs;
use std::time::Instant;

use bugeye::dap::{Codec, FrameError, Message};
use bytes::{BufMut as _, BytesMut};
use tokio_util::codec::Decoder as _;

/// Small, fast, and the same everywhere (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

const NAMES: [&str; 9] = [
    "Content-Length",
    "content-length",
    "Content-Type",
    "Content-Length ",
    "",
    "Content",
    "Content-Length\0",
    "X",
    "Content-Length: 3\r\nContent-Length",
];
const NUMBERS: [&str; 12] =
    ["0", "-1", "1", "99999999999999999999", "16777216", "16777217", "0x10", " 7 ", "7;", "1e3", "\u{663}", ""];
const ENDS: [&str; 5] = ["\r\n\r\n", "\n\n", "\r\n", "", "\r\n\r\n\r\n"];
const BODIES: [&str; 10] = [
    "{}",
    "null",
    "[]",
    "{\"type\":\"event\",\"event\":\"x\"}",
    "{\"type\":\"event\",\"event\":7}",
    "{\"type\":\"response\",\"request_seq\":\"1\",\"success\":1}",
    "{\"type\":\"response\",\"request_seq\":-9223372036854775808,\"success\":true,\"command\":\"x\"}",
    "{\"type\":\"request\",\"seq\":1e400}",
    "{\"type\":\"event\",\"event\":\"\\ud800\"}",
    "{\"type\":\"event\",\"type\":\"request\"",
];

/// Some frames: a right header or a wrong one, a body of that length or another, and now and then a changed byte.
fn stream(random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=random.below(4) {
        let body = match random.below(12) {
            0 => format!("{}{}", "[".repeat(random.below(300)), "]".repeat(random.below(300))),
            1 => "\u{0}".repeat(random.below(50)),
            _ => random.pick(&BODIES).to_string(),
        };
        if random.below(3) > 0 {
            bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
        } else {
            let (name, number, end) = (random.pick(&NAMES), random.pick(&NUMBERS), random.pick(&ENDS));
            bytes.extend_from_slice(format!("{name}: {number}{end}").as_bytes());
        }
        bytes.extend_from_slice(body.as_bytes());
    }
    for _ in 0..random.below(3) {
        let at = random.below(bytes.len());
        bytes[at] = u8::try_from(random.below(256)).unwrap();
    }
    if random.below(4) == 0 {
        bytes.truncate(random.below(bytes.len()));
    }
    bytes
}

fn decode(chunks: &[&[u8]]) -> (Vec<Message>, Option<FrameError>) {
    let (mut codec, mut bytes, mut messages) = (Codec::default(), BytesMut::new(), Vec::new());
    for chunk in chunks {
        bytes.put_slice(chunk);
        loop {
            match codec.decode(&mut bytes) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    assert!(bytes.capacity() <= 64 * 1024, "{} bytes held", bytes.capacity());
    (messages, None)
}

/// The most memory this process has had, in kilobytes.
fn most() -> u64 {
    let page = fs::read_to_string("/proc/self/status").unwrap();
    let line = page.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_string();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn no_malformed_frame_does_harm() {
    let count = std::env::var("BUGEYE_FRAMES").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let mut random = Random(0x0b5e_55ed_0b5e_55ed);
    let (before, started) = (most(), Instant::now());
    let (mut messages, mut errors) = (0, 0);
    for case in 0..count {
        let bytes = stream(&mut random);
        let (whole, error) = decode(&[&bytes]);
        let (head, tail) = bytes.split_at(random.below(bytes.len() + 1));
        let (cut, _) = decode(&[head, tail]);
        assert_eq!(whole, cut, "case {case}, cut at {}: {:?}", head.len(), String::from_utf8_lossy(&bytes));
        messages += whole.len();
        errors += usize::from(error.is_some());
        if let Some(error) = error {
            assert!(error.to_string().len() < 1000, "case {case}: {error}");
        }
    }
    let grown = (most() - before) / 1024;
    let took = started.elapsed();
    eprintln!("malformed frames: {count} streams in {took:?}, {messages} messages, {errors} refused, +{grown} MB");
    assert!(messages > 0 && errors > 0 && grown <= 32, "+{grown} MB");
}
