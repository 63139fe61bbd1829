//! The number that a value's text stands for, as far as it stands for one.

/// A number as a value's text has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    Whole(i64),
    Real(f64),
}

impl Number {
    /// What a value as a whole is worth: `42`, `-1`, `0x2a`, `1.5`, `97 'a'`, `True`. Text that only begins with a number
    /// is none, and a letter alone may be a text of one letter.
    #[must_use]
    pub fn of(text: &str) -> Option<Self> {
        match text {
            "true" | "True" => return Some(Self::Whole(1)),
            "false" | "False" => return Some(Self::Whole(0)),
            _ => {}
        }
        let word = match text.split_once(' ') {
            Some((word, rest)) if rest.len() > 2 && rest.starts_with('\'') && rest.ends_with('\'') => word,
            Some(_) => return None,
            None => text,
        };
        let first = word.trim_start_matches('-').bytes().next()?;
        if !(first.is_ascii_digit() || first == b'.') {
            return None;
        }
        if let Some(hex) = word.strip_prefix("0x") {
            let number = u128::from_str_radix(hex, 16).ok()?;
            return Some(i64::try_from(number).map_or(Self::Real(number as f64), Self::Whole));
        }
        if let Ok(number) = word.parse() {
            return Some(Self::Whole(number));
        }
        word.parse().ok().filter(|number: &f64| number.is_finite()).map(Self::Real)
    }
}

/// The whole number at the beginning of a value's text: `42`, `-1`, `0x2a`, `97 'a'`, `'a'`, `True`.
#[must_use]
pub fn whole(text: &str) -> Option<i128> {
    match text {
        "true" | "True" => return Some(1),
        "false" | "False" => return Some(0),
        _ => {}
    }
    if let Some(rest) = text.strip_prefix('\'') {
        let mut chars = rest.chars();
        return match (chars.next()?, chars.as_str()) {
            ('\\', "0'") => Some(0),
            ('\\', "n'") => Some(10),
            (c, "'") => Some(i128::from(u32::from(c))),
            _ => None,
        };
    }
    let word = text.split_whitespace().next()?;
    match word.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_number_or_it_is_none() {
        let whole = [("42", 42), ("-1", -1), ("0x2a", 42), ("97 'a'", 97), ("0 '\\0'", 0), ("True", 1), ("false", 0)];
        for (text, number) in whole {
            assert_eq!(Number::of(text), Some(Number::Whole(number)), "{text}");
        }
        let real =
            [("1.5", 1.5), ("-.5", -0.5), ("1e3", 1000.0), ("18446744073709551616", 18_446_744_073_709_551_616.0)];
        for (text, number) in real {
            assert_eq!(Number::of(text), Some(Number::Real(number)), "{text}");
        }
        for text in ["", "-", "nan", "inf", "'a'", "5 apples", "0x", "0xzz", "[1, 2]", "1_000", "0x7f \"text\"", "2 ''"]
        {
            assert_eq!(Number::of(text), None, "{text}");
        }
    }
}
