//! What is different in every run and means nothing: addresses, process ids, times, temporary files. Each rule that lets
//! two texts pass for equal is counted, so that a reader sees what was not told.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::tokens::{TEMPORARY, Token, tokens};
use crate::glob::is_like;

/// Addresses whose counterparts are kept; beyond, every pair counts as equal.
const MOST_ADDRESSES: usize = 100_000;
/// The first port of those that a system gives out by itself.
const EPHEMERAL: f64 = 32_768.0;
/// How long a run may take for a number to count as a time of it, in milliseconds, and how long before it.
const AFTER: f64 = 86_400_000.0;
const BEFORE: f64 = 3_600_000.0;
/// Names that are told of those that only one run has.
const MOST_UNCOMPARED: usize = 20;
/// Characters of an example.
const EXAMPLE: usize = 60;

/// What is known about one of the two runs.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Milliseconds since 1970.
    pub started: u64,
    pub pids: Vec<i64>,
    /// A text in braces is a set or a dictionary here.
    pub braces: bool,
}

/// What the reader asked for.
#[derive(Debug, Clone, Default)]
pub struct Wishes {
    /// Variables (`name`, globs) and functions (`name()`) that are not compared.
    pub ignore: Vec<String>,
    /// Numbers that differ by less are equal: absolute for those below 1, else in proportion.
    pub tolerance: Option<f64>,
    /// No rule but those asked for.
    pub exact: bool,
}

/// A rule that made texts equal, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fired {
    pub rule: String,
    pub times: u64,
    /// The first pair it was used on. Debuggee text.
    pub example: (String, String),
}

/// Compares texts of two runs.
#[derive(Debug, Default)]
pub struct Rules {
    a: Run,
    b: Run,
    wishes: Wishes,
    /// Addresses that stand for each other.
    there: HashMap<u64, u64>,
    back: HashMap<u64, u64>,
    fired: BTreeMap<String, Fired>,
    uncompared: BTreeSet<String>,
}

impl Rules {
    #[must_use]
    pub fn new(a: Run, b: Run, wishes: Wishes) -> Self {
        Self { a, b, wishes, ..Self::default() }
    }

    /// The rules that were used, the most frequent first.
    #[must_use]
    pub fn fired(&self) -> Vec<Fired> {
        let mut fired: Vec<Fired> = self.fired.values().cloned().collect();
        fired.sort_by(|one, other| other.times.cmp(&one.times).then_with(|| one.rule.cmp(&other.rule)));
        fired
    }

    /// Patterns of functions whose steps are left out.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.wishes.ignore.iter().filter_map(|glob| glob.strip_suffix("()"))
    }

    /// Steps of a function were left out.
    pub fn left_out(&mut self, glob: &str, example: &str, times: u64) {
        if times > 0 {
            let rule = format!("ignore {glob}()");
            self.fire(&rule, example, example);
            if let Some(fired) = self.fired.get_mut(&rule) {
                fired.times += times - 1;
            }
        }
    }

    /// Only one of the runs was asked for it at a place that both came to.
    pub fn leave_uncompared(&mut self, name: &str) {
        if self.uncompared.len() < MOST_UNCOMPARED && !self.uncompared.contains(name) {
            self.uncompared.insert(name.to_string());
        }
    }

    #[must_use]
    pub const fn uncompared(&self) -> &BTreeSet<String> {
        &self.uncompared
    }

    /// Whether a variable is not compared.
    pub fn ignores(&mut self, name: &str) -> bool {
        let Some(glob) = self.wishes.ignore.iter().find(|glob| is_like(glob, name)).cloned() else { return false };
        self.fire(&format!("ignore {glob}"), name, name);
        true
    }

    /// Whether the values of a variable are the same, or pass for it.
    pub fn are_equal(&mut self, name: &str, a: &str, b: &str) -> bool {
        // Most are. An address that is the same by chance still stands for itself.
        if a == b && (self.wishes.exact || !a.contains("0x")) {
            return true;
        }
        let ignored = |glob: &&String| is_like(glob, name);
        if let Some(glob) = self.wishes.ignore.iter().find(ignored).cloned() {
            if a != b {
                self.fire(&format!("ignore {glob}"), a, b);
            }
            return true;
        }
        let mut used = Vec::new();
        if self.match_texts(name, a, b, &mut used) {
            for rule in used {
                self.fire(rule, a, b);
            }
            return true;
        }
        if !self.wishes.exact && self.a.braces && self.b.braces && is_reordered(a, b) {
            self.fire("order", a, b);
            return true;
        }
        false
    }

    /// Whether two lines of output pass for the same: as values, and durations are left out.
    pub fn are_equal_lines(&mut self, a: &str, b: &str) -> bool {
        if a == b {
            return true;
        }
        let mut used = Vec::new();
        let (one, other) = (tokens(a), tokens(b));
        let mut equal = one.len() == other.len();
        for at in 0..one.len().min(other.len()) {
            let unit = |list: &[Token<'_>]| matches!(list.get(at + 1), Some(Token::Text(text)) if is_duration(text));
            let numbers = matches!((one[at], other[at]), (Token::Number(_), Token::Number(_)));
            if !self.wishes.exact && numbers && one[at] != other[at] && unit(&one) && unit(&other) {
                used.push("time");
            } else if !self.match_pair("", (&one, &other), at, &mut used) {
                equal = false;
                break;
            }
        }
        if equal {
            used.sort_unstable();
            used.dedup();
            for rule in used {
                self.fire(rule, a, b);
            }
        }
        equal
    }

    fn fire(&mut self, rule: &str, a: &str, b: &str) {
        if let Some(known) = self.fired.get_mut(rule) {
            known.times += 1;
            return;
        }
        let cut = |text: &str| crate::render::cut(text, EXAMPLE).0.to_string();
        let fired = Fired { rule: rule.to_string(), times: 1, example: (cut(a), cut(b)) };
        self.fired.insert(rule.to_string(), fired);
    }

    fn match_texts(&mut self, name: &str, a: &str, b: &str, used: &mut Vec<&'static str>) -> bool {
        let (one, other) = (tokens(a), tokens(b));
        if one.len() != other.len() {
            return false;
        }
        let mut addresses = Vec::new();
        for at in 0..one.len() {
            if let (Token::Address(a), Token::Address(b)) = (one[at], other[at])
                && !self.wishes.exact
            {
                addresses.push((a, b));
            } else if !self.match_pair(name, (&one, &other), at, used) {
                return false;
            }
        }
        // Only what is the same otherwise tells which address stands for which.
        if !addresses.iter().all(|(a, b)| self.stand_for_each_other(*a, *b)) {
            return false;
        }
        if addresses.iter().any(|(a, b)| a != b) {
            used.push("address");
        }
        used.sort_unstable();
        used.dedup();
        true
    }

    /// An address is the other run's if each was met first together with the other.
    fn stand_for_each_other(&mut self, a: u64, b: u64) -> bool {
        match (self.there.get(&a), self.back.get(&b)) {
            (Some(known), Some(other)) => *known == b && *other == a,
            (None, None) => {
                if self.there.len() < MOST_ADDRESSES {
                    self.there.insert(a, b);
                    self.back.insert(b, a);
                }
                true
            }
            // Beyond what is kept nobody knows.
            _ => self.there.len() >= MOST_ADDRESSES,
        }
    }

    /// Whether the tokens at one place of two texts pass for equal.
    fn match_pair(
        &self,
        name: &str,
        lists: (&[Token<'_>], &[Token<'_>]),
        at: usize,
        used: &mut Vec<&'static str>,
    ) -> bool {
        let pair = (lists.0[at], lists.1[at]);
        if pair.0 == pair.1 {
            return true;
        }
        let rule = match pair {
            (Token::Number(a), Token::Number(b)) => {
                let (said, other) = (said(name, lists.0, at), said(name, lists.1, at));
                let said = if said == other { said } else { Said::Nothing };
                let Some(rule) = self.match_numbers(a, b, said) else { return false };
                rule
            }
            _ if self.wishes.exact => return false,
            (Token::Object(_), Token::Object(_)) => "object",
            (Token::Address(_), Token::Address(_)) => "address",
            (Token::Uuid(_), Token::Uuid(_)) => "uuid",
            (Token::Time(a), Token::Time(b)) if (a.len() >= 19) == (b.len() >= 19) => "time",
            (Token::Temporary(a), Token::Temporary(b)) if are_like_paths(a, b) => "temporary",
            _ => return false,
        };
        used.push(rule);
        true
    }

    fn match_numbers(&self, a: &str, b: &str, said: Said) -> Option<&'static str> {
        let (one, other) = (a.parse::<f64>().ok()?, b.parse::<f64>().ok()?);
        if let Some(tolerance) = self.wishes.tolerance
            && (one - other).abs() <= tolerance * one.abs().max(other.abs()).max(1.0)
        {
            return Some("tolerance");
        }
        if self.wishes.exact {
            return None;
        }
        let is_pid = |run: &Run, text: &str| text.parse().is_ok_and(|number: i64| run.pids.contains(&number));
        let whole = !a.contains('.') && !b.contains('.');
        if whole && ((is_pid(&self.a, a) && is_pid(&self.b, b)) || said == Said::Pid) {
            return Some("pid");
        }
        if whole && said == Said::Port && one.min(other) >= EPHEMERAL && one.max(other) < 65_536.0 {
            return Some("port");
        }
        let unit = |run: &Run, number: f64| {
            let started = run.started as f64;
            let scales = [1000.0, 1.0, 0.001, 0.000_001];
            scales.into_iter().position(|scale| {
                let at = number * scale;
                run.started > 0 && at >= started - BEFORE && at <= started + AFTER
            })
        };
        (unit(&self.a, one).is_some() && unit(&self.a, one) == unit(&self.b, other)).then_some("time")
    }
}

/// What a number is, as far as that can be told from what stands before it, or from its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Pid,
    Port,
    Nothing,
}

fn said(name: &str, list: &[Token<'_>], at: usize) -> Said {
    let before = match at.checked_sub(1).map(|before| list[before]) {
        Some(Token::Text(text)) => text,
        Some(_) => "",
        None => name,
    };
    let host = before == ":"
        && matches!(at.checked_sub(2).map(|at| list[at]), Some(Token::Number(part)) if part.contains('.'));
    if ["pid", "tid", "pgid"].iter().any(|word| names(before, word)) {
        Said::Pid
    } else if host || names(before, "port") || before.ends_with("localhost:") {
        Said::Port
    } else {
        Said::Nothing
    }
}

/// Whether the last word of a text is this, or a name that ends in it: `getpid()`, `child_pid`, but not `rapid`.
fn names(text: &str, word: &str) -> bool {
    let text = text.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_').to_ascii_lowercase();
    text.strip_suffix(word).is_some_and(|rest| {
        ["", "p"].contains(&rest) || rest.ends_with("get") || rest.ends_with(|c: char| !c.is_alphanumeric())
    })
}

/// Whether what follows a number makes a duration of it.
fn is_duration(after: &str) -> bool {
    let word: String = after.trim_start().chars().take_while(|c| c.is_alphabetic()).collect();
    ["s", "ms", "us", "µs", "ns", "sec", "secs", "second", "seconds", "milliseconds"].contains(&word.as_str())
}

/// Whether two temporary paths are the same but for what was made up for each run.
fn are_like_paths(a: &str, b: &str) -> bool {
    let root = TEMPORARY.iter().find(|root| a.starts_with(**root) && b.starts_with(**root));
    let Some(root) = root else { return false };
    let (one, other): (Vec<&str>, Vec<&str>) =
        (a[root.len()..].split('/').collect(), b[root.len()..].split('/').collect());
    one.len() == other.len() && one.iter().zip(&other).all(|(a, b)| a == b || are_made_up(a, b))
}

/// Whether two names differ only by their numbers, or by as many characters as such names have at random.
fn are_made_up(a: &str, b: &str) -> bool {
    let is_uuid = |text: &str| matches!(tokens(text)[..], [Token::Uuid(_)]);
    if is_uuid(a) && is_uuid(b) {
        return true;
    }
    let without = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    if without(a) == without(b) {
        return true;
    }
    let same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    let (Some(a_rest), Some(b_rest)) = (a.get(same..), b.get(same..)) else { return false };
    let random = |text: &str| {
        let letters = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        letters && text.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase() || byte == b'_')
    };
    let known = a[..same].ends_with("tmp") || a[..same].ends_with(['.', '-', '_']);
    a.len() == b.len() && a_rest.len() >= 4 && (known || (random(a_rest) && random(b_rest)))
}

/// Whether both are sets, or dictionaries, of the same items in another order. Where one was cut, nobody knows.
fn is_reordered(a: &str, b: &str) -> bool {
    let (Some(mut one), Some(mut other)) = (items(a), items(b)) else { return false };
    one.sort();
    other.sort();
    one.len() > 1 && one == other
}

/// The items of a set or a dictionary, each without what is different in every run.
fn items(text: &str) -> Option<Vec<String>> {
    let text = text.strip_prefix("frozenset(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    if text.contains('…') || text.contains("...") {
        return None;
    }
    let mut items = vec![String::new()];
    let (mut depth, mut quote, mut escaped) = (0_i32, None, false);
    for c in inner.chars() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(' | '[' | '{' | '<', None) => depth += 1,
            (')' | ']' | '}' | '>', None) => depth -= 1,
            (',', None) if depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = items.last_mut() {
            last.push(c);
        }
    }
    Some(items.iter().map(|item| plain(item.trim())).collect())
}

fn plain(text: &str) -> String {
    let part = |token: &Token<'_>| match token {
        Token::Text(text) | Token::Number(text) | Token::Time(text) | Token::Temporary(text) => (*text).to_string(),
        Token::Address(_) | Token::Object(_) => "ptr".into(),
        Token::Uuid(_) => "uuid".into(),
    };
    tokens(text).iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(wishes: Wishes) -> Rules {
        let run = |pid, started| Run { started, pids: vec![pid], braces: true };
        Rules::new(run(4001, 1_794_778_891_000), run(4002, 1_794_778_955_000), wishes)
    }

    fn fired(rules: &Rules) -> Vec<(String, u64)> {
        rules.fired().into_iter().map(|fired| (fired.rule, fired.times)).collect()
    }

    #[test]
    fn what_varies_from_run_to_run_passes_for_equal_and_is_counted() {
        let equal = [
            ("p", "0x0000555555551000 \"a\"", "0x0000565555551000 \"a\"", "address"),
            ("x", "<A object at 0x7f0000001234>", "<A object at 0x7f0000009999>", "object"),
            ("x", "run 4001 now", "run 4002 now", "pid"),
            ("child_pid", "77", "99", "pid"),
            ("os.getpid()", "123", "456", "pid"),
            ("x", "(pid 77)", "(pid 78)", "pid"),
            ("now", "1794778891.25", "1794778955.75", "time"),
            ("now", "1794778891250", "1794778955750", "time"),
            ("x", "'2026-11-15T21:41:31Z'", "'2026-11-15T21:42:35Z'", "time"),
            ("x", "'123e4567-e89b-12d3-a456-426614174000'", "'00000000-e89b-12d3-a456-426614174000'", "uuid"),
            ("x", "'/tmp/tmpk3x9a_b2/out.txt'", "'/tmp/tmpzzqwe1ab/out.txt'", "temporary"),
            (
                "x",
                "'/tmp/u/123e4567-e89b-12d3-a456-426614174000/t0'",
                "'/tmp/u/f0e0d0c0-a1b2-12d3-a456-426614174000/t0'",
                "temporary",
            ),
            ("x", "'/tmp/pytest-of-u/pytest-12/t0'", "'/tmp/pytest-of-u/pytest-13/t0'", "temporary"),
            ("port", "45678", "51234", "port"),
            ("x", "http://127.0.0.1:45678/a", "http://127.0.0.1:51234/a", "port"),
            ("s", "{3, 1, 2}", "{1, 2, 3}", "order"),
            ("d", "{'a': [1, 2], 'b': 2}", "{'b': 2, 'a': [1, 2]}", "order"),
        ];
        for (name, a, b, rule) in equal {
            let mut rules = rules(Wishes::default());
            assert!(rules.are_equal(name, a, b), "{a} {b}");
            assert_eq!(fired(&rules), [(rule.to_string(), 1)], "{a} {b}");
            let mut exact = super::tests::rules(Wishes { exact: true, ..Wishes::default() });
            assert!(!exact.are_equal(name, a, b) && exact.fired().is_empty(), "{a} {b}");
        }
    }

    #[test]
    fn what_means_something_stays_different() {
        let different = [
            ("n", "21", "22"),
            ("x", "1.5", "1.6"),
            ("p", "0x0", "0x555555551000"),
            ("flags", "0x10", "0x11"),
            ("x", "'/tmp/alpha.txt'", "'/tmp/gamma.txt'"),
            ("x", "'/tmp/a/out.txt'", "'/tmp/a/in.txt'"),
            ("port", "80", "443"),
            ("rapid", "1", "2"),
            ("xs", "[3, 1, 2]", "[1, 2, 3]"),
            ("s", "{1, 2, …}", "{2, 1, …}"),
            ("s", "{1, 2}", "{1, 3}"),
            ("year", "1794778891", "3794778955"),
            ("s", "'a'", "'b'"),
        ];
        for (name, a, b) in different {
            let mut rules = rules(Wishes::default());
            assert!(!rules.are_equal(name, a, b), "{name} {a} {b}");
            assert!(rules.fired().is_empty());
        }
        // Braces of an array are in an order that means something.
        let mut arrays = Rules::default();
        assert!(!arrays.are_equal("xs", "{3, 1, 2}", "{1, 2, 3}"));
    }

    #[test]
    fn addresses_are_known_again_by_their_first_appearance() {
        let mut rules = rules(Wishes::default());
        assert!(rules.are_equal("p", "0x100000", "0x200000"));
        assert!(rules.are_equal("q", "0x100008", "0x200008"));
        assert!(rules.are_equal("r", "0x100000", "0x200000"));
        // Here r is p in one run, and q in the other.
        assert!(!rules.are_equal("r", "0x100000", "0x200008"));
        // The same by chance: it stands for itself from then on.
        assert!(rules.are_equal("s", "0x300000", "0x300000"));
        assert!(!rules.are_equal("t", "0x300000", "0x400000"));
        assert_eq!(fired(&rules), [("address".to_string(), 3)]);
    }

    #[test]
    fn wishes_come_first() {
        let wishes = Wishes { ignore: vec!["tmp_*".into(), "log*()".into()], tolerance: Some(1e-3), exact: false };
        let mut rules = rules(wishes);
        assert!(rules.are_equal("tmp_a", "1", "200"));
        assert!(rules.are_equal("x", "1.0000", "1.0001"));
        assert!(rules.are_equal("x", "[1000.0, 2]", "[1000.5, 2]"));
        assert!(!rules.are_equal("x", "1.0", "1.1"));
        assert_eq!(rules.functions().collect::<Vec<_>>(), ["log*"]);
        assert_eq!(fired(&rules)[0], ("tolerance".to_string(), 2));
    }

    #[test]
    fn durations_in_output_do_not_count() {
        let mut rules = rules(Wishes::default());
        assert!(rules.are_equal_lines("1 passed in 0.05s", "1 passed in 0.06s"));
        assert!(!rules.are_equal_lines("1 passed in 0.05s", "2 passed in 0.05s"));
        assert!(!rules.are_equal("x", "'0.05s'", "'0.06s'"));
    }
}
