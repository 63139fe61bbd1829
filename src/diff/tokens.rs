//! A value's text in pieces: what stands for itself, and what is different in every run of a program.

/// One piece of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Token<'a> {
    Text(&'a str),
    /// A number in decimal, as it is written.
    Number(&'a str),
    /// `0x…`, beyond what small numbers are.
    Address(u64),
    /// `object at 0x…`, which says no more than that there is one.
    Object(&'a str),
    Uuid(&'a str),
    /// A date with its time, or a time of day.
    Time(&'a str),
    /// A path below a folder for temporary files.
    Temporary(&'a str),
}

/// Folders for temporary files.
pub const TEMPORARY: [&str; 5] = ["/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/dev/shm/"];
/// Hexadecimal numbers below are no addresses.
const LEAST_ADDRESS: u64 = 0x1_0000;
const LEAST_DIGITS: usize = 6;

/// Takes a text apart.
#[must_use]
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let bytes = text.as_bytes();
    let (mut from, mut at) = (0, 0);
    while at < bytes.len() {
        let inside =
            at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_' || bytes[at - 1] >= 0x80);
        let piece = if inside && bytes[at] != b'/' { None } else { piece(text, at) };
        match piece {
            Some((token, end)) => {
                if from < at {
                    found.push(Token::Text(&text[from..at]));
                }
                found.push(token);
                (from, at) = (end, end);
            }
            None => at += 1,
        }
    }
    if from < text.len() {
        found.push(Token::Text(&text[from..]));
    }
    found
}

/// The token that begins at a byte, and its end.
fn piece(text: &str, at: usize) -> Option<(Token<'_>, usize)> {
    let rest = text.get(at..)?;
    let bytes = rest.as_bytes();
    match bytes.first()? {
        b'/' => {
            let root = TEMPORARY.iter().find(|root| rest.starts_with(**root))?;
            let ends = |c: char| c.is_whitespace() || "'\"`()[]{}<>,;:|…".contains(c);
            let length = rest.find(ends).unwrap_or(rest.len());
            (length > root.len()).then(|| (Token::Temporary(&rest[..length]), at + length))
        }
        b'0' if bytes.len() > 2 && (bytes[1] | 0x20) == b'x' => {
            let digits = run(&bytes[2..], u8::is_ascii_hexdigit);
            let number = u64::from_str_radix(&rest[2..2 + digits], 16).ok()?;
            let end = at + 2 + digits;
            if digits < LEAST_DIGITS || number < LEAST_ADDRESS {
                // It stays a text; what follows is no number of its own.
                return (digits > 0).then(|| (Token::Text(&rest[..2 + digits]), end));
            }
            let object = text[..at].ends_with("object at ") || text[..at].ends_with("> at ");
            Some((if object { Token::Object(&rest[..2 + digits]) } else { Token::Address(number) }, end))
        }
        first if first.is_ascii_hexdigit() && is_uuid(bytes) => Some((Token::Uuid(&rest[..36]), at + 36)),
        first if first.is_ascii_digit() => {
            if let Some(length) = time(bytes) {
                return Some((Token::Time(&rest[..length]), at + length));
            }
            let length = number(bytes);
            Some((Token::Number(&rest[..length]), at + length))
        }
        _ => None,
    }
}

fn run(bytes: &[u8], is: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !is(byte)).unwrap_or(bytes.len())
}

/// How long the number is that stands here: digits, with a fraction and an exponent where they follow.
fn number(bytes: &[u8]) -> usize {
    let mut end = run(bytes, u8::is_ascii_digit);
    if bytes.get(end) == Some(&b'.') {
        let fraction = run(&bytes[end + 1..], u8::is_ascii_digit);
        end += if fraction > 0 { 1 + fraction } else { 0 };
    }
    if bytes.get(end).is_some_and(|byte| (byte | 0x20) == b'e') {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let digits = run(bytes.get(end + 1 + sign..).unwrap_or_default(), u8::is_ascii_digit);
        end += if digits > 0 { 1 + sign + digits } else { 0 };
    }
    end
}

/// Whether the bytes begin as a pattern says, in which `9` stands for a digit.
fn is_shaped(bytes: &[u8], shape: &str) -> bool {
    let fits = |(byte, wanted): (&u8, u8)| if wanted == b'9' { byte.is_ascii_digit() } else { *byte == wanted };
    bytes.len() >= shape.len() && bytes.iter().zip(shape.bytes()).all(fits)
}

/// The length of a date with its time, or of a time of day.
fn time(bytes: &[u8]) -> Option<usize> {
    let dated = is_shaped(bytes, "9999-99-99T99:99:99") || is_shaped(bytes, "9999-99-99 99:99:99");
    let mut end = match dated {
        true => 19,
        false if is_shaped(bytes, "99:99:99") => 8,
        false => return None,
    };
    if matches!(bytes.get(end), Some(b'.' | b',')) {
        let fraction = run(&bytes[end + 1..], u8::is_ascii_digit);
        end += if fraction > 0 { 1 + fraction } else { 0 };
    }
    match bytes.get(end) {
        Some(b'Z') => end += 1,
        Some(b'+' | b'-') if dated && is_shaped(&bytes[end + 1..], "99:99") => end += 6,
        Some(b'+' | b'-') if dated && is_shaped(&bytes[end + 1..], "9999") => end += 5,
        // A longer row of numbers is something else.
        Some(byte) if byte.is_ascii_alphanumeric() => return None,
        _ => {}
    }
    Some(end)
}

fn is_uuid(bytes: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.len() >= 36
        && bytes[..36].iter().enumerate().all(fits)
        && !bytes.get(36).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_apart_at_what_varies() {
        use Token::{Address, Number, Object, Temporary, Text, Time, Uuid};
        let cases: [(&str, &[Token<'_>]); 12] = [
            ("", &[]),
            ("abc", &[Text("abc")]),
            ("n=12, x3", &[Text("n="), Number("12"), Text(", x3")]),
            ("-1.5e-3", &[Text("-"), Number("1.5e-3")]),
            ("0x00007ffe12345678 \"a\"", &[Address(0x7ffe_1234_5678), Text(" \"a\"")]),
            ("0xff", &[Text("0xff")]),
            ("<A object at 0x7f0000001234>", &[Text("<A object at "), Object("0x7f0000001234"), Text(">")]),
            ("123e4567-e89b-12d3-a456-426614174000!", &[Uuid("123e4567-e89b-12d3-a456-426614174000"), Text("!")]),
            ("2026-11-15T21:41:31.5Z x", &[Time("2026-11-15T21:41:31.5Z"), Text(" x")]),
            ("at 21:41:31", &[Text("at "), Time("21:41:31")]),
            ("'/tmp/tmpab12/x.txt'", &[Text("'"), Temporary("/tmp/tmpab12/x.txt"), Text("'")]),
            ("v1.2.3 /tmp/ é7", &[Text("v1."), Number("2.3"), Text(" /tmp/ é7")]),
        ];
        for (text, expected) in cases {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn pieces_make_up_the_text_whatever_it_is() {
        for text in
            ["0x", "0xg", "1e", "1.", "1e+", "2026-11-15T21:41:3", "99:99:99.", "/tmp/é/1", "é0x123456é", "…12…"]
        {
            let joined: String = tokens(text)
                .iter()
                .map(|token| match token {
                    Token::Address(number) => format!("0x{number:x}"),
                    Token::Text(part)
                    | Token::Number(part)
                    | Token::Object(part)
                    | Token::Uuid(part)
                    | Token::Time(part)
                    | Token::Temporary(part) => (*part).to_string(),
                })
                .collect();
            assert_eq!(joined, text);
        }
    }
}
