//! Whether an expression can be evaluated without changing the program.

/// True when no call, assignment, increment or decrement is seen outside string and character literals. A `false` may
/// be wrong in the careful direction: a cast to a function type, for one, looks like a call.
#[must_use]
pub fn is_pure(expression: &str) -> bool {
    let bytes = expression.as_bytes();
    let mut i = 0;
    let mut after_name = false;
    while i < bytes.len() {
        let next = bytes.get(i + 1).copied();
        let previous = if i > 0 { Some(bytes[i - 1]) } else { None };
        match bytes[i] {
            quote @ (b'"' | b'\'') => {
                // A lone quote (a Rust lifetime) runs to the end, which reads as pure; there is nothing in it to run.
                i += 1;
                while i < bytes.len() && bytes[i] != quote {
                    i += if bytes[i] == b'\\' { 2 } else { 1 };
                }
                after_name = false;
            }
            b'(' if after_name && !follows_word(&bytes[..i], b"sizeof") => return false,
            b'+' | b'-' if next == Some(bytes[i]) => return false,
            b'=' if next == Some(b'=') => i += 1,
            b'=' if matches!(previous, Some(b'<' | b'>' | b'!')) && !is_shift(&bytes[..i]) => {}
            b'=' | b'`' | b';' => return false,
            byte if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b')' || byte == b']' || byte == b'>' => {
                after_name = byte != b'>' || previous != Some(b'-');
                // `)` before `(` is a cast or a call through a pointer: only the latter is a call, and rare.
                if byte == b')' {
                    after_name = false;
                }
            }
            b' ' | b'\t' => {}
            _ => after_name = false,
        }
        i += 1;
    }
    true
}

fn follows_word(before: &[u8], word: &[u8]) -> bool {
    before.trim_ascii_end().ends_with(word)
}

/// Whether the text ends in `<<` or `>>`, so that a following `=` assigns.
fn is_shift(before: &[u8]) -> bool {
    before.ends_with(b"<<") || before.ends_with(b">>")
}

#[cfg(test)]
mod tests {
    use super::is_pure;

    #[test]
    fn reads_are_told_from_writes_and_calls() {
        for pure in [
            "i",
            "p->x + 1",
            "a[i * 2]",
            "*ptr",
            "x == 3 && y != 4",
            "x <= 3",
            "y >= 2",
            "(int)x",
            "(a + b) * c",
            "\"f(x) = 3\"",
            "sizeof(int)",
            "a - -b",
            "&v",
            "x < (y)",
        ] {
            assert!(is_pure(pure), "{pure}");
        }
        for impure in
            ["f(x)", "x = 3", "x += 1", "i++", "--i", "v.push(3)", "x <<= 2", "y >>= 1", "`quit", "a; b", "f (x)"]
        {
            assert!(!is_pure(impure), "{impure}");
        }
    }
}
