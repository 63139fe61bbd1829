//! DBGp on a socket: commands are lines that end in a zero byte, answers are XML behind its length.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use super::xml::{self, Element};

/// An answer longer than this is no answer.
const LONGEST: usize = 64 * 1024 * 1024;

/// The side that commands are written to.
#[derive(Debug)]
pub struct Commands {
    socket: UnixStream,
    sent: u64,
}

impl Commands {
    pub const fn new(socket: UnixStream) -> Self {
        Self { socket, sent: 0 }
    }

    /// Sends a command, its options and its data; answers the number that its response will have.
    pub fn send(&mut self, command: &str, options: &[(char, &str)], data: Option<&str>) -> io::Result<String> {
        self.sent += 1;
        let mut line = format!("{command} -i {}", self.sent);
        for (name, value) in options {
            // Names of variables have spaces, quotes and backslashes of their own.
            let _ = write!(line, " -{name} \"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
        }
        if let Some(data) = data {
            let _ = write!(line, " -- {}", base64(data.as_bytes()));
        }
        line.push('\0');
        self.socket.write_all(line.as_bytes())?;
        Ok(self.sent.to_string())
    }

    pub fn close(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }
}

/// The side that answers come from.
#[derive(Debug)]
pub struct Answers {
    socket: UnixStream,
    bytes: Vec<u8>,
}

impl Answers {
    pub const fn new(socket: UnixStream) -> Self {
        Self { socket, bytes: Vec::new() }
    }

    /// The next answer; None when there are no more.
    pub fn next(&mut self) -> Option<Element> {
        let length: usize = std::str::from_utf8(&self.until_zero()?).ok()?.trim().parse().ok()?;
        if length > LONGEST {
            return None;
        }
        let text = self.until_zero()?;
        xml::parse(&String::from_utf8_lossy(&text))
    }

    fn until_zero(&mut self) -> Option<Vec<u8>> {
        let mut searched = 0;
        let mut buffer = [0u8; 64 * 1024];
        loop {
            if let Some(at) = self.bytes[searched..].iter().position(|byte| *byte == 0) {
                let rest = self.bytes.split_off(searched + at + 1);
                let mut piece = std::mem::replace(&mut self.bytes, rest);
                piece.pop();
                return Some(piece);
            }
            searched = self.bytes.len();
            match self.socket.read(&mut buffer) {
                Ok(read) if read > 0 && searched < LONGEST => self.bytes.extend_from_slice(&buffer[..read]),
                _ => return None,
            }
        }
    }
}

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for piece in bytes.chunks(3) {
        let byte = |index: usize| u32::from(piece.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let letter = usize::try_from(bits >> (18 - 6 * index) & 63).unwrap_or(0);
            out.push(if usize::try_from(index).unwrap_or(0) > piece.len() { '=' } else { char::from(LETTERS[letter]) });
        }
    }
    out
}

/// What is no letter of it is passed over.
pub fn from_base64(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes() {
        let Some(value) = LETTERS.iter().position(|letter| *letter == byte) else { continue };
        bits = bits << 6 | u32::try_from(value).unwrap_or(0);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 255).unwrap_or(0));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_base64() {
        for (plain, coded) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("thing", "dGhpbmc=")] {
            assert_eq!(base64(plain.as_bytes()), coded);
            assert_eq!(from_base64(coded), plain.as_bytes());
        }
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(from_base64(&base64(&bytes)), bytes);
    }

    #[test]
    fn commands_and_answers_are_cut_at_zero_bytes() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut commands = Commands::new(here.try_clone().unwrap());
        commands.send("eval", &[('d', "1"), ('n', "$a[\"b\"]")], Some("x")).unwrap();
        let mut said = [0u8; 64];
        let read = there.read(&mut said).unwrap();
        assert_eq!(&said[..read], b"eval -i 1 -d \"1\" -n \"$a[\\\"b\\\"]\" -- eA==\0");
        there.write_all(b"4\0<a/>\x004\0<b/>\0bad").unwrap();
        drop(there);
        let mut answers = Answers::new(here);
        let names: Vec<String> = std::iter::from_fn(|| answers.next()).map(|element| element.name).collect();
        assert_eq!(names, ["a", "b"]);
    }
}
