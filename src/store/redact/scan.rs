//! Finds secrets in a text, in one pass: by the shapes of keys and tokens, and by the names before `=` and `:`.

use std::ops::Range;

use super::names::{self, Secret};

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub span: Range<usize>,
    /// A private key whose end is not in this text.
    pub open_key: bool,
}

/// What may be part of a token after its beginning.
type Letters = fn(u8) -> bool;

/// Beginnings of tokens, what follows them, and how much of that at least; with `digit`, one must be among it.
struct Shape {
    start: &'static str,
    letters: Letters,
    least: usize,
    digit: bool,
}

const fn shape(start: &'static str, letters: Letters, least: usize, digit: bool) -> Shape {
    Shape { start, letters, least, digit }
}

const SHAPES: [Shape; 16] = [
    shape("sk-", dashed, 16, true),
    shape("sk_live_", plain, 16, false),
    shape("sk_test_", plain, 16, false),
    shape("ghp_", plain, 20, false),
    shape("gho_", plain, 20, false),
    shape("ghu_", plain, 20, false),
    shape("ghs_", plain, 20, false),
    shape("ghr_", plain, 20, false),
    shape("github_pat_", dashed, 20, false),
    shape("glpat-", dashed, 16, false),
    shape("AKIA", upper, 16, false),
    shape("ASIA", upper, 16, false),
    shape("AIza", dashed, 30, false),
    shape("npm_", plain, 30, false),
    shape("Bearer ", bearer, 12, true),
    shape("bearer ", bearer, 12, true),
];

/// The longest secret without an end that is looked for.
const LONGEST: usize = 16 * 1024;
/// The longest name before a `=`.
const NAME: usize = 64;

fn plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn dashed(byte: u8) -> bool {
    plain(byte) || byte == b'-'
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn bearer(byte: u8) -> bool {
    dashed(byte) || b".~+/=".contains(&byte)
}

/// Bytes at which something may begin: 1 for the first letter of a token, 2 for what stands after a name.
const BEGINS: [u8; 256] = {
    let mut table = [0; 256];
    let letters = b"sgAnBbxe-";
    let mut at = 0;
    while at < letters.len() {
        table[letters[at] as usize] = 1;
        at += 1;
    }
    table[b'=' as usize] = 2;
    table[b':' as usize] = 2;
    table
};

/// All secrets of a text, in order.
pub fn secrets(text: &str) -> Vec<Found> {
    find(text, true)
}

/// Those that are secret by their shape alone.
pub fn shapes(text: &str) -> Vec<Found> {
    find(text, false)
}

fn find(text: &str, names: bool) -> Vec<Found> {
    let bytes = text.as_bytes();
    let mut found: Vec<Found> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let secret = match BEGINS[usize::from(bytes[at])] {
            1 => token(bytes, at),
            2 if names => named(bytes, at),
            _ => None,
        };
        at += 1;
        if let Some(secret) = secret.filter(|secret| !secret.span.is_empty()) {
            // Ends of spans are ends of characters: a token is ASCII, and a value ends before an ASCII byte or the end.
            at = secret.span.end.max(at);
            found.push(secret);
        }
    }
    found.retain(|found| text.is_char_boundary(found.span.start) && text.is_char_boundary(found.span.end));
    found
}

fn closed(span: Range<usize>) -> Option<Found> {
    Some(Found { span, open_key: false })
}

/// How many bytes from `at` on are such letters.
fn run(bytes: &[u8], at: usize, letters: Letters) -> usize {
    bytes[at..].iter().take(LONGEST).position(|byte| !letters(*byte)).unwrap_or((bytes.len() - at).min(LONGEST))
}

/// A key or token that begins here.
fn token(bytes: &[u8], at: usize) -> Option<Found> {
    if bytes[at] == b'-' {
        return private_key(bytes, at);
    }
    let inside = at > 0 && plain(bytes[at - 1]);
    let escaped = at > 1 && bytes[at - 2] == b'\\' && b"nrt".contains(&bytes[at - 1]);
    if inside && !escaped {
        return None;
    }
    let here = &bytes[at..];
    if here.starts_with(b"eyJ") {
        return web_token(bytes, at);
    }
    if here.len() > 5 && here.starts_with(b"xox") && b"abeprs".contains(&here[3]) && here[4] == b'-' {
        let length = run(bytes, at + 5, dashed);
        return if length >= 10 { closed(at..at + 5 + length) } else { None };
    }
    let shape = SHAPES.iter().find(|shape| here.starts_with(shape.start.as_bytes()))?;
    let from = at + shape.start.len();
    let length = run(bytes, from, shape.letters);
    let body = &bytes[from..from + length];
    let enough = length >= shape.least && (!shape.digit || body.iter().any(u8::is_ascii_digit));
    // The word before a bearer's token is no secret.
    let start = if shape.start.ends_with(' ') { from } else { at };
    if enough { closed(start..from + length) } else { None }
}

/// `eyJ….eyJ….…`
fn web_token(bytes: &[u8], at: usize) -> Option<Found> {
    let first = run(bytes, at, dashed);
    let dot = at + first;
    if first < 13 || bytes.get(dot) != Some(&b'.') {
        return None;
    }
    let second = run(bytes, dot + 1, dashed);
    let mut end = dot + 1 + second;
    if second < 5 {
        return None;
    }
    if bytes.get(end) == Some(&b'.') {
        end += 1 + run(bytes, end + 1, dashed);
    }
    closed(at..end)
}

/// `-----BEGIN … PRIVATE KEY-----` up to `-----END`.
fn private_key(bytes: &[u8], at: usize) -> Option<Found> {
    let head = b"-----BEGIN ";
    let here = &bytes[at..];
    if !here.starts_with(head) {
        return None;
    }
    let mark = b"PRIVATE KEY-----";
    let from = at + head.len();
    let limit = bytes.len().min(from + 60);
    let start = from + position(&bytes[from..limit], mark)? + mark.len();
    let end = position(&bytes[start..], b"-----END").map(|end| start + end);
    Some(Found { span: start..end.unwrap_or(bytes.len()), open_key: end.is_none() })
}

fn position(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

/// The value after a `=` or `:`, if the name before it is a secret's.
fn named(bytes: &[u8], at: usize) -> Option<Found> {
    if bytes[at] == b':' && bytes[at..].starts_with(b"://") {
        return in_address(bytes, at + 3);
    }
    let (name, quoted) = name_before(bytes, at)?;
    let name = std::str::from_utf8(name).ok()?;
    let secret = names::of(name)?;
    let mut from = at + 1;
    if bytes[at] == b'=' && bytes.get(from) == Some(&b'=') {
        from += 1;
    }
    let spaces = bytes[from..].iter().take(4).take_while(|byte| **byte == b' ').count();
    from += spaces;
    let header = bytes[at] == b':' && is_header(name);
    let span = match opening(bytes, from) {
        Some((start, quote, escaped)) => start..closing(bytes, start, quote, escaped),
        // The rest of the line, or of the text that it stands in.
        None if header => from..from + until(&bytes[from..], b"\r\n\"'"),
        // In prose a colon follows many a word.
        None if bytes[at] == b':' && !quoted && (secret != Secret::Surely || spaces != 1) => return None,
        None => {
            let end = from + until(&bytes[from..], b" \t\r\n,;&)]}\"'\\");
            let address = bytes[from..end].starts_with(b"0x") && bytes.get(end) == Some(&b' ');
            match opening(bytes, end + 1).filter(|_| address) {
                // An address, and what is there: `0x4010 "text"`.
                Some((start, quote, escaped)) => start..closing(bytes, start, quote, escaped),
                None => from..end,
            }
        }
    };
    let text = String::from_utf8_lossy(bytes.get(span.clone())?);
    if secret.is_harmless(&text) { None } else { closed(span) }
}

/// The name that ends before `at`, and whether it is quoted.
fn name_before(bytes: &[u8], at: usize) -> Option<(&[u8], bool)> {
    let mut end = at;
    while end > 0 && at - end < 3 && bytes[end - 1] == b' ' {
        end -= 1;
    }
    let mut quoted = false;
    if end > 0 && b"\"']".contains(&bytes[end - 1]) {
        // `env["KEY"] = …` too.
        while end > 0 && b"\"'\\]".contains(&bytes[end - 1]) {
            end -= 1;
        }
        quoted = true;
    }
    let length = bytes[..end].iter().rev().take(NAME + 1).take_while(|byte| dashed(**byte)).count();
    (length > 0 && length <= NAME).then(|| (&bytes[end - length..end], quoted))
}

fn is_header(name: &str) -> bool {
    let known = ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "x-auth-token"];
    known.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// A quoted text that begins at `at`: where its content does, its quote, and whether the quote is itself escaped.
fn opening(bytes: &[u8], at: usize) -> Option<(usize, u8, bool)> {
    let mut at = at;
    // `b'…'`, `f"…"`
    if bytes.get(at).is_some_and(|byte| b"bBrRuUfFL".contains(byte)) {
        at += 1;
    }
    let escaped = bytes.get(at) == Some(&b'\\');
    at += usize::from(escaped);
    let quote = *bytes.get(at)?;
    b"\"'`".contains(&quote).then_some((at + 1, quote, escaped))
}

/// Where a quoted text ends: before its closing quote, or at the end of all.
fn closing(bytes: &[u8], from: usize, quote: u8, escaped: bool) -> usize {
    let mut at = from;
    while at < bytes.len() && at - from < LONGEST {
        match bytes[at] {
            b'\\' if escaped && bytes.get(at + 1) == Some(&quote) => return at,
            b'\\' => at += 2,
            byte if byte == quote => return at,
            _ => at += 1,
        }
    }
    let mut end = at.min(bytes.len());
    // Not in the middle of a character.
    while end < bytes.len() && bytes[end] & 0xc0 == 0x80 {
        end += 1;
    }
    end
}

fn until(bytes: &[u8], ends: &[u8]) -> usize {
    bytes.iter().position(|byte| ends.contains(byte)).unwrap_or(bytes.len())
}

/// `user:password@host`
fn in_address(bytes: &[u8], from: usize) -> Option<Found> {
    let end = from + until(&bytes[from..bytes.len().min(from + 256)], b"/ \t\r\n\"'<>");
    let user = &bytes[from..end];
    let host = user.iter().rposition(|byte| *byte == b'@')?;
    let colon = user[..host].iter().position(|byte| *byte == b':')?;
    closed(from + colon + 1..from + host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redact::{REDACTED, text};

    #[test]
    fn tokens_are_known_by_their_shapes() {
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
        let tokens = [
            "sk-abcdefghij0123456789",
            "sk-proj-abc_def-0123456789abcdef",
            "ghp_0123456789abcdefghijABCDEFGHIJ",
            "github_pat_11ABCDEFG0123456789_abcdef",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abcdef",
            jwt,
        ];
        for token in tokens {
            for (before, after) in [("", ""), ("a ", " b"), ("'", "'"), ("x=\\n", "\\n"), ("(", ")")] {
                let whole = format!("{before}{token}{after}");
                assert_eq!(text(&whole), format!("{before}{REDACTED}{after}"), "{whole}");
            }
        }
        assert_eq!(text("Bearer abc.def-0123456"), "Bearer <redacted>");
        assert_eq!(
            text("-----BEGIN PRIVATE KEY-----\nab\n-----END PRIVATE KEY-----"),
            "-----BEGIN PRIVATE KEY-----<redacted>-----END PRIVATE KEY-----"
        );
    }

    #[test]
    fn what_only_resembles_a_token_stays() {
        for plain in [
            "task-force-of-one-hundred",
            "sk-spinner-fading-circle",
            "bearer of bad news",
            "ghp_short",
            "AKIA",
            "eyJ",
            "eyJhbGciOiJIUzI1NiJ9",
            "desk-0123456789abcdefgh",
            "-----BEGIN CERTIFICATE-----\nab\n",
            "xoxb-",
            "assert x == 1",
            "http://localhost:8080/a@b",
            "std::string",
            "a::token::b",
            "i = 1, sum=3",
            "",
            "ü=ü:ü",
        ] {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn values_go_by_the_name_before_them() {
        let cases = [
            ("password=hunter2 x=1", "password=<redacted> x=1"),
            ("DB_PASSWORD=hunter2", "DB_PASSWORD=<redacted>"),
            ("a&api_key=abc&b", "a&api_key=<redacted>&b"),
            ("{\"password\": \"hun\\\"ter2\", \"n\": 1}", "{\"password\": \"<redacted>\", \"n\": 1}"),
            ("{'secret': 'x y', 'n': 1}", "{'secret': '<redacted>', 'n': 1}"),
            ("{\\\"password\\\": \\\"hunter2\\\"}", "{\\\"password\\\": \\\"<redacted>\\\"}"),
            ("{password: 'x1'}", "{password: '<redacted>'}"),
            ("password: hunter2", "password: <redacted>"),
            ("{user = 0x1 \"bob\", password = 0x2 \"x1\"}", "{user = 0x1 \"bob\", password = 0x2 \"<redacted>\"}"),
            ("if password == \"x1\":", "if password == \"<redacted>\":"),
            ("env['API_KEY'] = b'x1'", "env['API_KEY'] = b'<redacted>'"),
            ("Authorization: Basic YWJj", "Authorization: <redacted>"),
            ("Cookie: a=b; c=d\r\nHost: x", "Cookie: <redacted>\r\nHost: x"),
            ("postgres://bob:hunter2@host/db", "postgres://bob:<redacted>@host/db"),
            ("passwort=x, password='ü", "passwort=x, password='<redacted>"),
        ];
        for (whole, kept) in cases {
            assert_eq!(text(whole), kept);
        }
        for plain in [
            "Enter password: ",
            "unexpected token: foo",
            "token=42",
            "max_tokens=4096",
            "def f(password=None):",
            "password = ''",
            "PWD=/home/x",
            "http://host:80/x",
            "\"tokens\": 12",
        ] {
            assert_eq!(text(plain), plain);
        }
    }

    #[test]
    fn any_text_can_be_scanned() {
        let pieces = [
            "password",
            "=",
            "\"",
            "'",
            "\\",
            "ü",
            ":",
            "0x",
            " ",
            "-----BEGIN PRIVATE KEY-----",
            "eyJ",
            "@",
            "://",
            "]",
        ];
        // Every sequence of four.
        for number in 0..pieces.len().pow(4) {
            let text: String = (0..4).map(|place| pieces[number / pieces.len().pow(place) % pieces.len()]).collect();
            let mut from = 0;
            for found in secrets(&text) {
                assert!(found.span.start >= from && found.span.end <= text.len(), "{text}");
                assert!(text.is_char_boundary(found.span.start) && text.is_char_boundary(found.span.end), "{text}");
                from = found.span.end;
            }
        }
    }
}
