//! Whether what an agent says now is what it said when it was recorded, but for what is different in every run: ids, dates,
//! temporary folders, durations. All of this is data in, data out.

use serde::Serialize;
use serde_json::Value as Json;

use super::parts::Kind;
use crate::diff::{Rules, Run, Wishes};

/// Members that are made up for each run, or say nothing.
const MADE_UP: [&str; 9] = [
    "id",
    "call_id",
    "tool_use_id",
    "tool_call_id",
    "signature",
    "encrypted_content",
    "thoughtSignature",
    "cache_control",
    "prompt_cache_key",
];
const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// Characters of a line that differs.
const SHOWN: usize = 300;

/// The first place where two requests differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// `message[3]`, counted from 0.
    pub what: String,
    pub recorded: Option<String>,
    pub now: Option<String>,
}

/// How two parts differ, if they do.
#[must_use]
pub fn differ(kind: Kind, at: usize, recorded: Option<&[u8]>, now: Option<&[u8]>) -> Option<Difference> {
    let lines = |part: Option<&[u8]>| {
        let mut lines = Vec::new();
        if let Some(bytes) = part {
            gather(&serde_json::from_slice(bytes).unwrap_or_default(), &mut lines);
        }
        lines
    };
    let (then, here) = (lines(recorded), lines(now));
    let mut rules = Rules::new(Run::default(), Run::default(), Wishes::default());
    let mut same = |a: &String, b: &String| rules.are_equal_lines(&without_dates(a), &without_dates(b));
    let found = (0..then.len().max(here.len()))
        .find(|at| !matches!((then.get(*at), here.get(*at)), (Some(a), Some(b)) if same(a, b)))?;
    // Of its instructions an agent lists some as it comes upon them: its skills, as the disk has them.
    let sorted = |lines: &[String]| {
        let mut lines: Vec<String> = lines.iter().map(|line| without_dates(line)).collect();
        lines.sort_unstable();
        lines
    };
    let listed = kind == Kind::System && then.len() == here.len();
    if listed && sorted(&then).iter().zip(&sorted(&here)).all(|(a, b)| same(a, b)) {
        return None;
    }
    let shown = |lines: &[String]| lines.get(found).map(|line| crate::render::cut(line, SHOWN).0.to_string());
    Some(Difference { what: format!("{}[{at}]", kind.name()), recorded: shown(&then), now: shown(&here) })
}

/// All that a value says, line by line.
fn gather(value: &Json, lines: &mut Vec<String>) {
    match value {
        Json::Object(members) => {
            for (name, member) in members.iter().filter(|(name, _)| !MADE_UP.contains(&name.as_str())) {
                // A text stands for itself; what else there is goes by its name.
                if !member.is_string() {
                    lines.push(format!("{name}:"));
                }
                gather(member, lines);
            }
        }
        Json::Array(items) => items.iter().for_each(|item| gather(item, lines)),
        Json::String(text) => lines.extend(text.lines().map(str::to_string)),
        Json::Null => {}
        plain => lines.push(plain.to_string()),
    }
}

/// Whether a word is one that was made up, by the word before it: `Chunk ID: 2af53c`.
fn is_id(before: &str, word: &str) -> bool {
    let made_up = word.len() >= 6 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    made_up && ["ID:", "id:", "Id:", "ID", "id"].contains(&before)
}

/// A line with a mark in the place of each date, and of each id that is called so.
fn without_dates(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_ascii_lowercase();
    let is_name = |word: &str, names: &[&str]| {
        let word = bare(word);
        word.len() >= 3 && word.is_char_boundary(3) && names.contains(&&word[..3])
    };
    let is_day = |word: &str| {
        bare(word)
            .trim_end_matches(|c: char| c.is_ascii_alphabetic())
            .parse()
            .is_ok_and(|day: u32| (1..=31).contains(&day))
    };
    let is_year = |word: &str| bare(word).parse().is_ok_and(|year: u32| (1970..2200).contains(&year));
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let word = |offset: usize| words.get(at + offset).copied().unwrap_or_default();
        let lead = usize::from(is_name(word(0), &DAYS));
        // `Nov 16, 2026`, `16 November 2026`, with or without the day of the week.
        let american = is_name(word(lead), &MONTHS) && is_day(word(lead + 1)) && is_year(word(lead + 2));
        let european = is_day(word(lead)) && is_name(word(lead + 1), &MONTHS) && is_year(word(lead + 2));
        if american || european {
            out.push("<date>".into());
            at += lead + 3;
        } else if at > 0 && is_id(words[at - 1], word(0)) {
            out.push("<id>".into());
            at += 1;
        } else {
            out.push(plain_dates(word(0)));
            at += 1;
        }
    }
    out.join(" ")
}

/// `2026-11-16`, with a time or without, and `11/16/2026`.
fn plain_dates(word: &str) -> String {
    let bytes = word.as_bytes();
    let digits = |from: usize, count: usize| {
        bytes.get(from..from + count).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let mut out = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let inside = at > 0 && bytes[at - 1].is_ascii_digit();
        let iso =
            |sign: u8| digits(at, 4) && is(at + 4, sign) && digits(at + 5, 2) && is(at + 7, sign) && digits(at + 8, 2);
        let length = if inside {
            0
        } else if iso(b'-') || iso(b'/') {
            10 + time(&bytes[at + 10..])
        } else {
            slashed(&bytes[at..])
        };
        if length > 0 {
            out.push_str("<date>");
            at += length;
        } else {
            let next = word[at..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&word[at..at + next]);
            at += next;
        }
    }
    out
}

/// The length of the time of a date, as in `2026-11-16T17:16:19.718+00:00`, that begins here.
fn time(bytes: &[u8]) -> usize {
    let follows = bytes.first() == Some(&b'T') && bytes.get(1).is_some_and(u8::is_ascii_digit);
    let is_of_it = |byte: &&u8| byte.is_ascii_digit() || b"T:.+-Z".contains(byte);
    if follows { bytes.iter().take_while(is_of_it).count() } else { 0 }
}

/// The length of a date such as `11/16/2026` that begins here.
fn slashed(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let month = digits(0);
    let day = digits(month + 1);
    let year = digits(month + day + 2);
    let signs = bytes.get(month) == Some(&b'/') && bytes.get(month + day + 1) == Some(&b'/');
    let fits = (1..=2).contains(&month) && (1..=2).contains(&day) && year == 4;
    if signs && fits { month + day + year + 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(a: &Json, b: &Json) -> Option<(Option<String>, Option<String>)> {
        let (a, b) = (a.to_string(), b.to_string());
        let found = differ(Kind::Message, 2, Some(a.as_bytes()), Some(b.as_bytes()))?;
        assert_eq!(found.what, "message[2]");
        Some((found.recorded, found.now))
    }

    #[test]
    fn instructions_may_come_in_another_order_and_messages_may_not() {
        let part = |text: &str| serde_json::to_vec(text).unwrap();
        let (one, other) = (part("skills:\na\nb\non 11/16/2026"), part("skills:\nb\na\non 11/17/2026"));
        assert_eq!(differ(Kind::System, 0, Some(&one), Some(&other)), None);
        assert!(differ(Kind::Message, 0, Some(&one), Some(&other)).is_some());
        let found = differ(Kind::System, 0, Some(&one), Some(&part("skills:\nb\nc\non 11/16/2026")));
        assert_eq!(found.and_then(|found| found.now), Some("b".into()));
    }

    #[test]
    fn what_is_new_in_every_run_is_no_difference() {
        let a = json!({"role": "user", "content": [{"type": "text", "tool_use_id": "toolu_1",
            "text": "Today's date: 2026-11-16\nin /tmp/agent-x1B2c3/project, took 1.25s\nProcess Group PGID: 7543\nMonday, November 16, 2026"}]});
        let b = json!({"role": "user", "content": [{"type": "text", "tool_use_id": "toolu_2", "cache_control": {"type": "ephemeral"},
            "text": "Today's date: 2027-01-02\nin /tmp/agent-q9Zk31/project, took 0.5s\nProcess Group PGID: 10768\nSaturday, January 2, 2027"}]});
        assert_eq!(told(&a, &b), None);
    }

    #[test]
    fn what_was_said_otherwise_is_told() {
        let a = json!({"role": "user", "content": "one\ntwo 3"});
        assert_eq!(told(&a, &a), None);
        let b = json!({"role": "user", "content": "one\ntwo 4"});
        assert_eq!(told(&a, &b), Some((Some("two 3".into()), Some("two 4".into()))));
        let longer = json!({"role": "user", "content": "one\ntwo 3\nthree"});
        assert_eq!(told(&a, &longer), Some((None, Some("three".into()))));
        let dates = |text: &str| without_dates(text);
        assert_eq!(dates("on 11/16/2026."), "on <date>.");
        assert_eq!(dates("<now>2026-11-16T17:16:19.718+00:00</now>"), "<now><date></now>");
        assert_eq!(dates("2026-11-16Tx"), "<date>Tx");
        assert_eq!(dates("may 3 of them"), "may 3 of them");
        assert_eq!(dates("Chunk ID: 2af53c and commit 2af53c"), "Chunk ID: <id> and commit 2af53c");
        assert_eq!(dates("12026-11-16 v1/2/3"), "12026-11-16 v1/2/3");
    }
}
