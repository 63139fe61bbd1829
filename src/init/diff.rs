//! A change as people read it: a unified diff.
//!
//! A change of ours is one piece, so one hunk is enough. What looks like a secret in the lines around it is not shown:
//! the diff goes to a screen, or to a model.

use std::fmt::Write as _;

/// Lines shown around a change.
const AROUND: usize = 3;

/// A longer line is shown only where it changes.
const LONGEST: usize = 160;

/// Words in the name of what should not be shown.
const SECRETS: [&str; 8] = ["key", "token", "secret", "password", "passwd", "auth", "credential", "cookie"];

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
    if let ([one], [other]) = (gone, come)
        && (hides(one) || one.len() > LONGEST)
    {
        let (one, other) = elided(one, other);
        line('-', &one);
        line('+', &other);
    } else {
        gone.iter().for_each(|text| line('-', &masked(text)));
        come.iter().for_each(|text| line('+', &if old.is_some() { masked(text) } else { (*text).to_string() }));
    }
    before[before.len() - tail..to].iter().for_each(|text| line(' ', &masked(text)));
    out
}

fn hides(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    SECRETS.iter().any(|word| line.contains(word))
}

/// A line without a value that should not be shown.
fn masked(line: &str) -> String {
    let end = &line[line.trim_end_matches(['\r', '\n']).len()..];
    if hides(line)
        && let Some(at) = line.find([':', '='])
    {
        return format!("{} …{end}", &line[..=at]);
    }
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…{end}", &line[..at]),
        None => line.to_string(),
    }
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
