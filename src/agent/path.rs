//! Expressions over what is known of an agent: `messages[-1].content`, `tool_input.command ~ "rm"`.

use serde_json::{Value as Json, json};

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Name(String),
    /// Counted from the end where negative.
    Index(i64),
    /// From one index up to another.
    Slice(Option<i64>, Option<i64>),
}

/// A name and the way on from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub root: String,
    pub steps: Vec<Step>,
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '$')
}

impl Path {
    /// Reads `name.name[0]["any key"][-3:]`.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
        let (root, mut rest) = text.split_at(end);
        if root.is_empty() {
            return Err(format!("`{text}` is no expression: begin with a name, as in messages[-1].content"));
        }
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
                if end == 0 {
                    return Err(format!("a name is missing after `.` in `{text}`"));
                }
                steps.push(Step::Name(after[..end].into()));
                rest = &after[end..];
            } else if let Some(after) = rest.strip_prefix('[') {
                let (step, after) = bracket(after).ok_or_else(|| {
                    format!("what is in brackets in `{text}` is no index; write [0], [-1], [2:5] or [\"key\"]")
                })?;
                steps.push(step);
                rest = after;
            } else {
                return Err(format!("`{rest}` can't follow in `{text}`; write a.b, a[0] or a[\"key\"]"));
            }
        }
        Ok(Self { root: root.into(), steps })
    }
}

/// What stands in brackets, and what follows them.
fn bracket(text: &str) -> Option<(Step, &str)> {
    if text.starts_with(['"', '\'']) {
        let quote = text.chars().next()?;
        let mut escaped = false;
        let mut key = String::new();
        for (at, c) in text.char_indices().skip(1) {
            match c {
                _ if escaped => {
                    key.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                c if c == quote => return Some((Step::Name(key), text[at + 1..].strip_prefix(']')?)),
                c => key.push(c),
            }
        }
        return None;
    }
    let (inside, after) = text.split_once(']')?;
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    match inside.split_once(':') {
        Some((from, to)) => Some((Step::Slice(number(from)?, number(to)?), after)),
        None => Some((Step::Index(inside.trim().parse().ok()?), after)),
    }
}

/// The index from the beginning that one from either end means.
fn from_start(index: i64, length: usize) -> Option<usize> {
    match usize::try_from(index) {
        Ok(index) => Some(index),
        Err(_) => length.checked_sub(usize::try_from(index.unsigned_abs()).ok()?),
    }
}

/// The value at the end of the steps.
///
/// # Errors
/// Where there is nothing, and what there is instead.
pub fn walk(value: &Json, steps: &[Step]) -> Result<Json, String> {
    let mut value = value;
    for (at, step) in steps.iter().enumerate() {
        value = match (step, value) {
            (Step::Name(name), Json::Object(map)) => {
                map.get(name).ok_or_else(|| missing(name, map.keys().map(String::as_str)))?
            }
            (Step::Index(index), Json::Array(items)) => from_start(*index, items.len())
                .and_then(|index| items.get(index))
                .ok_or_else(|| format!("there is no [{index}]: it has {} items", items.len()))?,
            (Step::Slice(from, to), Json::Array(items)) => {
                let bound = |index: &Option<i64>, none| index.map_or(none, |i| from_start(i, items.len()).unwrap_or(0));
                let (from, to) = (bound(from, 0).min(items.len()), bound(to, items.len()).min(items.len()));
                let part = Json::Array(items.get(from..to.max(from)).unwrap_or_default().to_vec());
                return walk(&part, &steps[at + 1..]);
            }
            // Of a text, characters.
            (Step::Slice(from, to), Json::String(text)) => {
                let count = text.chars().count();
                let bound = |index: &Option<i64>, none| index.map_or(none, |i| from_start(i, count).unwrap_or(0));
                let (from, to) = (bound(from, 0), bound(to, count));
                let part: String = text.chars().skip(from).take(to.saturating_sub(from)).collect();
                return walk(&json!(part), &steps[at + 1..]);
            }
            (Step::Name(name), other) => return Err(format!("{} has no `{name}`", kind(other))),
            (_, other) => return Err(format!("{} has no items", kind(other))),
        };
    }
    Ok(value.clone())
}

/// Puts a value at the end of the steps, in an object or a list that is there.
///
/// # Errors
/// Where there is no such place.
pub fn put(value: &mut Json, steps: &[Step], new: Json) -> Result<(), String> {
    let Some((last, before)) = steps.split_last() else {
        *value = new;
        return Ok(());
    };
    let mut place = value;
    for step in before {
        place = match (step, place) {
            (Step::Name(name), Json::Object(map)) => {
                let names = map.keys().cloned().collect::<Vec<_>>();
                map.get_mut(name).ok_or_else(|| missing(name, names.iter().map(String::as_str)))?
            }
            (Step::Index(index), Json::Array(items)) => {
                let count = items.len();
                from_start(*index, count)
                    .and_then(|index| items.get_mut(index))
                    .ok_or_else(|| format!("there is no [{index}]: it has {count} items"))?
            }
            (_, other) => return Err(format!("there is no such part of {}", kind(other))),
        };
    }
    match (last, place) {
        (Step::Name(name), Json::Object(map)) => {
            map.insert(name.clone(), new);
        }
        (Step::Index(index), Json::Array(items)) => {
            let count = items.len();
            let place = from_start(*index, count).and_then(|index| items.get_mut(index));
            *place.ok_or_else(|| format!("there is no [{index}]: it has {count} items"))? = new;
        }
        (_, other) => return Err(format!("there is no such part of {}", kind(other))),
    }
    Ok(())
}

fn missing<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.take(20).collect();
    if known.is_empty() {
        return format!("there is no `{name}`: it is empty");
    }
    format!("there is no `{name}`; there are: {}", known.join(", "))
}

const fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a truth value",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// What a user writes as a value: JSON, else a text.
#[must_use]
pub fn literal(text: &str) -> Json {
    serde_json::from_str(text.trim()).unwrap_or_else(|_| {
        let text = text.trim();
        json!(unquoted(text, '\'').unwrap_or(text))
    })
}

/// What is between two quotes, if no other is between them.
fn unquoted(text: &str, quote: char) -> Option<&str> {
    text.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| !inner.contains(quote))
}

/// A condition: comparisons joined by `&&` and `||` (`and`, `or`), the latter last.
#[derive(Debug, Clone)]
pub struct Condition(Vec<Vec<Comparison>>);

#[derive(Debug, Clone)]
struct Comparison {
    path: Path,
    /// None: whether it is there, and neither false, 0 nor empty.
    with: Option<(Operator, Operand)>,
    not: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    Matches,
}

#[derive(Debug, Clone)]
enum Operand {
    Value(Json),
    Path(Path),
    Pattern(regex_lite::Regex),
}

const OPERATORS: [(&str, Operator); 9] = [
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("=~", Operator::Matches),
    ("~", Operator::Matches),
    ("<", Operator::Less),
    (">", Operator::Greater),
    (" contains ", Operator::Contains),
];

impl Condition {
    /// Reads `tool_input.command ~ "rm -rf" && iteration > 2`.
    ///
    /// # Errors
    /// What is wrong with it, in a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let either = split(text, &["||", " or "]);
        let all = |part: &str| split(part, &["&&", " and "]).into_iter().map(Comparison::parse).collect();
        either.into_iter().map(all).collect::<Result<_, _>>().map(Self)
    }

    /// The names that what it is about begins with.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().flat_map(|comparison| {
            let right = match &comparison.with {
                Some((_, Operand::Path(path))) => Some(path.root.as_str()),
                _ => None,
            };
            std::iter::once(comparison.path.root.as_str()).chain(right)
        })
    }

    /// Whether it holds; what is not there is not equal to anything.
    pub fn holds(&self, value: impl Fn(&Path) -> Result<Json, String> + Copy) -> bool {
        self.0.iter().any(|all| all.iter().all(|comparison| comparison.holds(value)))
    }
}

impl Comparison {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (not, text) = match text.strip_prefix('!').or_else(|| text.strip_prefix("not ")) {
            Some(rest) if !rest.starts_with('=') => (true, rest.trim()),
            _ => (false, text),
        };
        let found = outside(text).find_map(|at| {
            let here = &text[at..];
            OPERATORS
                .iter()
                .find(|(sign, _)| here.starts_with(sign))
                .map(|(sign, operator)| (at, sign.len(), *operator))
        });
        let Some((at, length, operator)) = found else {
            return Ok(Self { path: Path::parse(text)?, with: None, not });
        };
        let right = text[at + length..].trim();
        if right.is_empty() {
            return Err(format!("a value is missing at the end of `{text}`"));
        }
        let quoted = right.starts_with(['"', '\'']);
        let operand = match operator {
            Operator::Matches => {
                // As it stands: what a backslash means is the pattern's business.
                let inner = ['"', '\''].iter().find_map(|quote| right.strip_prefix(*quote)?.strip_suffix(*quote));
                Operand::Pattern(pattern_of(inner.unwrap_or(right))?)
            }
            _ if quoted || serde_json::from_str::<Json>(right).is_ok() => Operand::Value(literal(right)),
            _ => Operand::Path(Path::parse(right)?),
        };
        Ok(Self { path: Path::parse(&text[..at])?, with: Some((operator, operand)), not })
    }

    fn holds(&self, value: impl Fn(&Path) -> Result<Json, String>) -> bool {
        let left = value(&self.path).unwrap_or(Json::Null);
        let holds = match &self.with {
            None => {
                !matches!(&left, Json::Null | Json::Bool(false))
                    && left != json!(0)
                    && left.as_str() != Some("")
                    && left.as_array().is_none_or(|items| !items.is_empty())
            }
            Some((_, Operand::Pattern(pattern))) => !left.is_null() && pattern.is_match(&plain(&left)),
            Some((operator, Operand::Value(right))) => compare(*operator, &left, right),
            Some((operator, Operand::Path(path))) => compare(*operator, &left, &value(path).unwrap_or(Json::Null)),
        };
        holds != self.not
    }
}

fn compare(operator: Operator, left: &Json, right: &Json) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.partial_cmp(&right),
        _ if left.is_string() && right.is_string() => Some(plain(left).cmp(&plain(right))),
        _ => None,
    };
    match operator {
        Operator::Equal => left == right || order == Some(Equal),
        Operator::Unequal => left != right && order != Some(Equal),
        Operator::Less => order == Some(Less),
        Operator::LessOrEqual => matches!(order, Some(Less | Equal)),
        Operator::Greater => order == Some(Greater),
        Operator::GreaterOrEqual => matches!(order, Some(Greater | Equal)),
        Operator::Contains => match left {
            Json::Array(items) => items.contains(right),
            Json::Object(map) => right.as_str().is_some_and(|key| map.contains_key(key)),
            Json::Null => false,
            left => plain(left).contains(&plain(right)),
        },
        Operator::Matches => false,
    }
}

/// A text as it is; anything else as JSON.
#[must_use]
pub fn plain(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}

/// A regular expression; matching takes time in proportion to the text, whatever the pattern.
///
/// # Errors
/// What is wrong with it.
pub fn pattern_of(text: &str) -> Result<regex_lite::Regex, String> {
    if text.is_empty() {
        return Err("the pattern is empty".into());
    }
    regex_lite::RegexBuilder::new(text).size_limit(1 << 20).build().map_err(|error| {
        let error = error.to_string();
        format!("`{text}` is no regular expression: {}", error.lines().last().unwrap_or_default())
    })
}

/// The places in a text that are outside of quotes and brackets.
fn outside(text: &str) -> impl Iterator<Item = usize> {
    let mut quote = None;
    let mut depth = 0u32;
    let mut escaped = false;
    text.char_indices().filter_map(move |(at, c)| {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' => quote = Some(c),
                '[' => depth += 1,
                ']' => depth = depth.saturating_sub(1),
                _ if depth == 0 => return Some(at),
                _ => {}
            },
        }
        None
    })
}

fn split<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for at in outside(text) {
        if at < from {
            continue;
        }
        if let Some(word) = words.iter().find(|word| text[at..].starts_with(**word)) {
            parts.push(&text[from..at]);
            from = at + word.len();
        }
    }
    parts.push(&text[from..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(text: &str) -> Result<Json, String> {
        let value = json!({
            "messages": [{ "role": "user", "content": "hi" }, { "role": "assistant", "content": [{ "text": "yes" }] }],
            "tool_input": { "command": "rm -rf /x", "a b": 1 },
            "iteration": 3,
        });
        let path = Path::parse(text)?;
        walk(&value, &[vec![Step::Name(path.root)], path.steps].concat())
    }

    #[test]
    fn a_path_leads_into_a_value_from_either_end() {
        let cases = [
            ("messages[-1].content[0].text", json!("yes")),
            ("messages[0].role", json!("user")),
            ("messages[:1]", json!([{ "role": "user", "content": "hi" }])),
            ("messages[-1:][0].role", json!("assistant")),
            ("tool_input[\"a b\"]", json!(1)),
            ("iteration", json!(3)),
            ("tool_input.command[:2]", json!("rm")),
            ("tool_input.command[-2:][1:]", json!("x")),
            ("tool_input.command[-99:2]", json!("rm")),
            ("tool_input.command[5:3]", json!("")),
        ];
        for (text, value) in cases {
            assert_eq!(look(text).unwrap(), value, "{text}");
        }
        for (text, why) in [
            ("messages[7]", "it has 2 items"),
            ("messages[-3]", "it has 2 items"),
            ("tool_input.cmd", "there are: command, a b"),
            ("iteration.x", "a number has no `x`"),
            ("messages.", "a name is missing"),
            ("[0]", "begin with a name"),
            ("a b", "can't follow"),
        ] {
            let said = look(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
    }

    #[test]
    fn a_part_of_a_value_is_replaced_in_its_place() {
        let mut value = json!({ "command": "ls", "list": [1, 2] });
        let steps = |text: &str| Path::parse(&format!("x{text}")).unwrap().steps;
        put(&mut value, &steps(".command"), json!("pwd")).unwrap();
        put(&mut value, &steps(".list[-1]"), json!(5)).unwrap();
        put(&mut value, &steps(".new"), json!(true)).unwrap();
        assert_eq!(value, json!({ "command": "pwd", "list": [1, 5], "new": true }));
        assert!(put(&mut value, &steps(".list[9]"), json!(0)).is_err());
        assert!(put(&mut value, &steps(".none.x"), json!(0)).is_err());
    }

    #[test]
    fn conditions_compare_match_and_join() {
        let holds = |text: &str| {
            let condition = Condition::parse(text).unwrap();
            condition.holds(|path| {
                let value = json!({ "command": "rm -rf /x || true", "n": 3, "list": ["a"], "no": false });
                walk(&value, &[vec![Step::Name(path.root.clone())], path.steps.clone()].concat())
            })
        };
        for text in [
            "command ~ 'rm +-rf'",
            "command contains \"|| true\"",
            "n == 3 && list contains 'a'",
            "n > 5 || n >= 3",
            "n and not no",
            "!missing",
            "command != 'x'",
            r#"command ~ "\brm\s+-rf\b""#,
            r"command ~ ^rm\s",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in
            ["n < 3", "missing == 1", "no", "command ~ '^ls'", "n == '3'", "missing ~ 'ul'", "missing contains 'null'"]
        {
            assert!(!holds(text), "{text}");
        }
        for text in ["", "n ==", "command ~ '('", "&& n"] {
            assert!(Condition::parse(text).is_err(), "{text}");
        }
    }
}
