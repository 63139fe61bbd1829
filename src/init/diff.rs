//! A change as people read it: a unified diff.
//!
//! A change of ours is one piece, so one hunk is enough. Of the lines around it, which are the user's, names are shown and
//! values are not: the diff goes to a screen, or to a model.

use std::fmt::Write as _;

/// Lines shown around a change.
const AROUND: usize = 3;

/// A longer line is shown only where it changes.
const LONGEST: usize = 160;

/// A diff of two texts; no text is no file.
#[must_use]
pub fn unified(path: &str, old: Option<&str>, new: Option<&str>) -> String {
    let before: Vec<&str> = old.unwrap_or_default().split_inclusive('\n').collect();
    let after: Vec<&str> = new.unwrap_or_default().split_inclusive('\n').collect();
    let same = |(one, other): &(&&str, &&str)| one == other;
    let head = before.iter().zip(&after).take_while(same).count();
    let tail = before[head..].iter().rev().zip(after[head..].iter().rev()).take_while(same).count();
    let (gone, come) = (&before[head..before.len() - tail], &after[head..after.len() - tail]);
    let from = head.saturating_sub(AROUND);
    let to = (before.len() - tail + AROUND).min(before.len());

    let name = |text: Option<&str>| if text.is_some() { path } else { "/dev/null" };
    let mut out = format!("--- {}\n+++ {}\n", name(old), name(new));
    let place = |start: usize, count: usize| format!("{},{count}", if count == 0 { start } else { start + 1 });
    let count = to - from;
    let _ = writeln!(out, "@@ -{} +{} @@", place(from, count), place(from, count - gone.len() + come.len()));
    let mut line = |sign: char, text: &str| {
        let _ = write!(out, "{sign}{text}");
        if !text.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    };
    before[from..head].iter().for_each(|text| line(' ', &masked(text)));
    let is_ours = |line: &str| line.trim_start().starts_with("\"bugeye\"");
    if let ([one], [other]) = (gone, come)
        && !(is_ours(one) && is_ours(other))
    {
        let (one, other) = elided(one, other);
        line('-', &one);
        line('+', &other);
    } else {
        gone.iter().for_each(|text| line('-', &if is_ours(text) { (*text).to_string() } else { masked(text) }));
        // What comes is ours; a line of the user's that we had to open up is not.
        let is_theirs = |text: &str| gone.iter().any(|old| text.contains(old.trim()) && !old.trim().is_empty());
        come.iter().for_each(|text| line('+', &if is_theirs(text) { masked(text) } else { (*text).to_string() }));
    }
    before[before.len() - tail..to].iter().for_each(|text| line(' ', &masked(text)));
    out
}

/// A line of the user's without what is in quotes behind a name, or in a list: it may be a secret. What it is called is
/// shown.
fn masked(line: &str) -> String {
    let end = &line[line.trim_end_matches(['\r', '\n']).len()..];
    let line = &line[..line.len() - end.len()];
    let mut shown = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(['"', '\'']) {
        let quote = &rest[at..=at];
        let (before, inner) = (&rest[..at], &rest[at + 1..]);
        let Some(close) = closing(inner, quote) else {
            shown.push_str(before);
            shown.push_str(quote);
            rest = "…";
            break;
        };
        let after = &inner[close + 1..];
        let is_name = after.trim_start().starts_with([':', '=']) || before.trim_start().starts_with('[');
        shown.push_str(before);
        shown.push_str(quote);
        shown.push_str(if is_name { &inner[..close] } else { "…" });
        shown.push_str(quote);
        rest = after;
    }
    shown.push_str(rest);
    match shown.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…{end}", &shown[..at]),
        None => shown + end,
    }
}

/// Where a quoted text ends.
fn closing(text: &str, quote: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let ends = !escaped && text[at..].starts_with(quote);
        escaped = !escaped && c == '\\';
        ends.then_some(at)
    })
}

/// Two lines, only where they differ.
fn elided(one: &str, other: &str) -> (String, String) {
    let same = |(left, right): &(char, char)| left == right;
    let head: usize = one.chars().zip(other.chars()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let (left, right) = (&one[head..], &other[head..]);
    let tail: usize = left.chars().rev().zip(right.chars().rev()).take_while(same).map(|(c, _)| c.len_utf8()).sum();
    let end = &one[one.trim_end_matches(['\r', '\n']).len()..];
    let show = |text: &str| format!("…{}…{end}", text[..text.len() - tail].trim_end_matches(['\r', '\n']));
    (show(left), show(right))
}
