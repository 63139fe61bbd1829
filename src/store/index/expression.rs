//! What `--where` says, as SQL: names of values and of a hit's columns, comparisons, and functions that only compute.
//!
//! It is taken apart word by word, and every word is either known or refused. So what comes out is an expression over
//! the hits that are asked for, whatever was typed.

use crate::failure::Failure;
use crate::nearest::nearest;

/// Words of an expression.
const WORDS: [&str; 22] = [
    "and", "or", "not", "in", "like", "glob", "between", "is", "null", "isnull", "notnull", "case", "when", "then",
    "else", "end", "escape", "cast", "as", "true", "false", "collate",
];
const TYPES: [&str; 4] = ["integer", "real", "text", "nocase"];
const FUNCTIONS: [&str; 18] = [
    "abs", "coalesce", "glob", "hex", "ifnull", "iif", "instr", "length", "like", "lower", "ltrim", "max", "min",
    "nullif", "replace", "round", "substr", "upper",
];
const OPERATORS: [&str; 21] =
    ["<=", ">=", "<>", "==", "!=", "<<", ">>", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ",", "&", "|", "~"];

/// What a name stands for.
pub trait Names {
    /// As SQL.
    fn sql(&self, name: &str) -> Option<String>;
    /// The same, null where it is no number.
    fn number(&self, name: &str) -> Option<String>;
    /// All of them, those with the most letters first.
    fn all(&self) -> Vec<&str>;
}

/// A word of an expression.
#[derive(Debug, PartialEq)]
enum Word {
    Name(String),
    Number(String),
    /// A comparison that puts in order, where SQLite has every text behind every number.
    Order(String),
    /// Computes with numbers, and takes a text for 0.
    Sum(String),
    Other(String),
}

/// An expression over known names, as SQL.
pub fn translate(text: &str, names: &dyn Names) -> Result<String, Failure> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    let mut depth = 0_usize;
    while !rest.is_empty() {
        let (word, length) = word(rest, names)?;
        match &word {
            Word::Other(sql) if sql == "(" => depth += 1,
            Word::Other(sql) if sql == ")" => {
                depth = depth.checked_sub(1).ok_or_else(|| Failure::usage(format!("`{text}` has a `)` too many")))?;
            }
            _ => {}
        }
        words.push(word);
        rest = rest[length..].trim_start();
    }
    match depth {
        _ if words.is_empty() => return Err(Failure::usage("there is no expression")),
        0 => {}
        _ => return Err(Failure::usage(format!("`{text}` has a `(` too many"))),
    }
    let sql = (0..words.len()).filter_map(|at| match &words[at] {
        Word::Name(name) if meets_number(&words, at) => names.number(name),
        Word::Name(name) => names.sql(name),
        Word::Number(sql) | Word::Order(sql) | Word::Sum(sql) | Word::Other(sql) => Some(sql.clone()),
    });
    Ok(sql.collect::<Vec<_>>().join(" "))
}

/// Whether what a name stands for is computed with, or put in order with what is a number. A text there is an answer of no
/// hit.
fn meets_number(words: &[Word], at: usize) -> bool {
    let (before, after) = words.split_at(at);
    let after = &after[1..];
    let sums = |word: Option<&Word>| matches!(word, Some(Word::Sum(_)));
    let numeric = |words: &mut dyn Iterator<Item = &Word>| {
        let mut words = words.skip_while(|word| is_passed(word));
        match words.next() {
            Some(Word::Number(_)) => true,
            Some(Word::Name(_)) => sums(words.next()),
            _ => false,
        }
    };
    let ordered = |word: Option<&Word>| matches!(word, Some(Word::Order(_)));
    sums(before.last())
        || sums(after.first())
        || (ordered(after.first()) && numeric(&mut after[1..].iter()))
        || (ordered(before.last()) && numeric(&mut before.iter().rev().skip(1)))
}

/// Signs and parentheses before a number.
fn is_passed(word: &Word) -> bool {
    matches!(word, Word::Sum(sign) | Word::Other(sign) if ["(", ")", "+", "-"].contains(&sign.as_str()))
}

/// The next word, and how long it was.
fn word(rest: &str, names: &dyn Names) -> Result<(Word, usize), Failure> {
    // An expression that was traced is a name as it is: `self.total`, `d['k']`.
    for name in names.all() {
        let Some(after) = rest.strip_prefix(name) else { continue };
        let goes_on = name.ends_with(is_letter) && after.starts_with(is_letter);
        let is_function = name.chars().all(is_letter) && is_called(after);
        if !goes_on && !is_function && !name.starts_with(['"', '\'']) && !name.is_empty() {
            return Ok((Word::Name(name.into()), name.len()));
        }
    }
    let first = rest.chars().next().unwrap_or_default();
    match first {
        '\'' => {
            let length = closed(rest, '\'')?;
            Ok((Word::Other(rest[..length].into()), length))
        }
        '"' | '`' | '[' => {
            let close = if first == '[' { ']' } else { first };
            let length = closed(rest, close)?;
            let name = rest[1..length - 1].replace(&format!("{close}{close}"), &close.to_string());
            if names.sql(&name).is_some() { Ok((Word::Name(name), length)) } else { Err(unknown(&name, names)) }
        }
        '0'..='9' | '.' => number(rest),
        c if is_letter(c) => {
            let length = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
            let name = &rest[..length];
            let lower = name.to_ascii_lowercase();
            let known = if is_called(&rest[length..]) {
                FUNCTIONS.contains(&lower.as_str())
                    || ["in", "and", "or", "not", "when", "then", "else", "cast", "between"].contains(&lower.as_str())
            } else {
                WORDS.contains(&lower.as_str()) || TYPES.contains(&lower.as_str())
            };
            match known {
                true if lower == "between" => Ok((Word::Order(lower), length)),
                true => Ok((Word::Other(lower), length)),
                false => Err(unknown(name, names)),
            }
        }
        _ if rest.starts_with("&&") => Ok((Word::Other("and".into()), 2)),
        _ if rest.starts_with("||") => Err(Failure::usage("`||` joins texts in SQL").hint("write OR")),
        _ if rest.starts_with("--") || rest.starts_with("/*") => {
            Err(Failure::usage("a comment is no part of an expression").hint("leave a space between two minus signs"))
        }
        '!' if !rest.starts_with("!=") => Err(Failure::usage("`!` is not SQL").hint("write NOT")),
        other => {
            let known = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
            let operator = known.ok_or_else(|| Failure::usage(format!("`{other}` is no part of an expression")))?;
            let sql = (*operator).to_string();
            let word = match *operator {
                "<" | ">" | "<=" | ">=" => Word::Order(sql),
                "+" | "-" | "*" | "/" | "%" | "&" | "|" | "~" | "<<" | ">>" => Word::Sum(sql),
                _ => Word::Other(sql),
            };
            Ok((word, operator.len()))
        }
    }
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_called(rest: &str) -> bool {
    rest.trim_start().starts_with('(')
}

/// The length of what begins with a quote, to the one that closes it.
fn closed(rest: &str, close: char) -> Result<usize, Failure> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c != close {
            continue;
        }
        match chars.peek() {
            Some((_, next)) if *next == close && close != ']' => drop(chars.next()),
            _ => return Ok(at + 1),
        }
    }
    Err(Failure::usage(format!("a `{close}` is missing in `{rest}`")))
}

fn number(rest: &str) -> Result<(Word, usize), Failure> {
    let hex = rest.starts_with("0x") || rest.starts_with("0X");
    let mut length = if hex { 2 } else { 0 };
    for c in rest[length..].chars() {
        let sign = matches!(c, '+' | '-') && !hex && rest[..length].ends_with(['e', 'E']);
        if !(c.is_ascii_alphanumeric() || c == '.' || sign) {
            break;
        }
        length += 1;
    }
    let text = &rest[..length];
    let whole = if hex { i64::from_str_radix(&text[2..], 16).is_ok() } else { text.parse::<f64>().is_ok() };
    if whole { Ok((Word::Number(text.into()), length)) } else { Err(Failure::usage(format!("`{text}` is no number"))) }
}

fn unknown(name: &str, names: &dyn Names) -> Failure {
    let mut known = names.all();
    known.sort_unstable();
    let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`?"));
    let failure = Failure::not_found(format!("there is no `{name}` at this place"));
    let failure = near.into_iter().fold(failure, Failure::hint);
    known.truncate(40);
    failure.hint(format!("names: {}", known.join(", "))).hint("a text stands in single quotes: 'text'")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Known;

    impl Names for Known {
        fn sql(&self, name: &str) -> Option<String> {
            let columns =
                [("i", "v1"), ("sum", "v2"), ("self.total", "v3"), ("d['k']", "v4"), ("min", "v5"), ("thread", "th")];
            columns.iter().find(|(known, _)| *known == name).map(|(_, sql)| (*sql).to_string())
        }

        fn number(&self, name: &str) -> Option<String> {
            self.sql(name).map(|sql| format!("n{sql}"))
        }

        fn all(&self) -> Vec<&str> {
            vec!["self.total", "d['k']", "thread", "sum", "min", "i"]
        }
    }

    #[test]
    fn names_become_columns() {
        let cases = [
            ("sum > 10", "nv2 > 10"),
            ("i in (1, 2) AND sum >= 0x10", "v1 in ( 1 , 2 ) and nv2 >= 0x10"),
            ("self.total - -1.5e-3 < \"sum\"", "nv3 - - 1.5e-3 < nv2"),
            ("-(5) < i and (sum) between 1 and 3", "- ( 5 ) < nv1 and ( v2 ) between 1 and 3"),
            ("sum between (1) and 3", "nv2 between ( 1 ) and 3"),
            ("i > sum + 1 and sum < 'x'", "nv1 > nv2 + 1 and v2 < 'x'"),
            ("i > sum or i = 3", "v1 > v2 or v1 = 3"),
            ("d['k'] = 'it''s' && not thread", "v4 = 'it''s' and not th"),
            ("min(i, sum) = min", "min ( v1 , v2 ) = v5"),
            ("sum is not null or i like '%x%'", "v2 is not null or v1 like '%x%'"),
            ("[self.total] = `i`", "v3 = v1"),
        ];
        for (text, sql) in cases {
            assert_eq!(translate(text, &Known).unwrap(), sql, "{text}");
        }
    }

    #[test]
    fn whatever_is_not_known_is_refused() {
        let cases = [
            "1); DELETE FROM _hit; --",
            "(SELECT 1)",
            "i = 1; DROP TABLE x",
            "load_extension('x')",
            "i > 1 -- comment",
            "i /* x */ > 1",
            "i = ?1",
            "i = :x",
            "i = @x",
            "i = $x",
            "nothing > 1",
            "i > 'open",
            "\"open",
            "(i",
            "i)",
            "i || sum",
            "!i",
            "1x",
            "randomblob(9)",
            "",
            "i = 1 union select 2",
            "exists(select 1)",
            "sqlite_version()",
        ];
        for text in cases {
            assert!(translate(text, &Known).is_err(), "{text}");
        }
        let failure = translate("suum > 1", &Known).unwrap_err();
        assert!(failure.hints.iter().any(|hint| hint.contains("did you mean `sum`?")), "{failure:?}");
    }
}
