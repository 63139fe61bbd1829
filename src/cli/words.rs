//! Which command the typed words mean, before clap reads the rest.
//!
//! Apart from clap because an alias may be two words (`breakpoint add`), with flags before, between and after them.

use std::ffi::OsString;

use crate::commands::Entry;
use crate::failure::Failure;
use crate::nearest::nearest;

/// What the words come to.
#[derive(Debug)]
pub enum Meaning {
    /// A command, and the words with its own name in place of an alias.
    Command(&'static Entry, Vec<OsString>),
    /// Only flags.
    Flags,
}

/// Finds the command in what was typed.
pub fn understand(typed: &[OsString], catalogue: &'static [Entry]) -> Result<Meaning, Failure> {
    let mut words = typed.to_vec();
    let mut first = skip_flags(&words, 0);
    let asks_help = words.get(first).is_some_and(|word| word == "help");
    if asks_help {
        words.remove(first);
        first = skip_flags(&words, first);
    }
    let Some(word) = words.get(first).and_then(|word| word.to_str()).filter(|word| !word.starts_with('-')) else {
        return match words.get(first) {
            Some(word) if word.to_str().is_none() => Err(unknown(&word.to_string_lossy(), catalogue)),
            _ => Ok(Meaning::Flags),
        };
    };
    let second = skip_flags(&words, first + 1);
    let pair = words.get(second).and_then(|other| other.to_str()).map(|other| format!("{word} {other}"));
    let by_pair = pair.and_then(|pair| catalogue.iter().find(|entry| entry.aliases.contains(&pair.as_str())));
    let entry = match by_pair {
        Some(entry) => {
            words.remove(second);
            entry
        }
        None => catalogue
            .iter()
            .find(|entry| entry.name == word || entry.aliases.contains(&word))
            .ok_or_else(|| half(word, catalogue).unwrap_or_else(|| unknown(word, catalogue)))?,
    };
    words[first] = OsString::from(entry.name);
    if asks_help {
        words.insert(first + 1, OsString::from("--help"));
    }
    move_moment(&mut words, first);
    Ok(Meaning::Command(entry, words))
}

/// Puts `--at MOMENT` after the command where it stands before it: only commands that a record answers take it.
fn move_moment(words: &mut Vec<OsString>, first: usize) {
    let is_moment = |word: &OsString| word == "--at" || word.as_encoded_bytes().starts_with(b"--at=");
    let Some(at) = words[..first].iter().position(is_moment) else { return };
    let moved: Vec<OsString> = words.drain(at..at + if words[at] == "--at" { 2 } else { 1 }).collect();
    let after = first + 1 - moved.len();
    words.splice(after..after, moved);
}

/// Whether `flag` is among the words that are Bugeye's own, not those of a program to start.
pub fn has_flag(typed: &[OsString], flag: &str) -> bool {
    typed.iter().take_while(|word| *word != "--").any(|word| word == flag)
}

/// The first position from `at` on that is not a global flag or its value.
fn skip_flags(words: &[OsString], mut at: usize) -> usize {
    while let Some(word) = words.get(at) {
        at += match word.as_encoded_bytes() {
            b"--json" => 1,
            b"-s" | b"--session" | b"--color" | b"--at" => 2,
            bytes if [&b"--session="[..], b"--color=", b"--at="].iter().any(|flag| bytes.starts_with(flag)) => 1,
            bytes if bytes.starts_with(b"-s") && !bytes.starts_with(b"--") => 1,
            _ => break,
        };
    }
    at
}

/// The first word of an alias of two, without the second.
fn half(word: &str, catalogue: &[Entry]) -> Option<Failure> {
    let seconds: Vec<&str> = catalogue
        .iter()
        .flat_map(|entry| entry.aliases)
        .filter_map(|alias| alias.split_once(' '))
        .filter(|(first, _)| *first == word)
        .map(|(_, second)| second)
        .collect();
    (!seconds.is_empty()).then(|| {
        Failure::usage(format!("`{word}` needs a second word"))
            .hint(format!("`bugeye {word} {}`", seconds.join(&format!("`, `bugeye {word} "))))
    })
}

fn unknown(word: &str, catalogue: &'static [Entry]) -> Failure {
    let names = catalogue.iter().flat_map(|entry| std::iter::once(entry.name).chain(entry.aliases.iter().copied()));
    let failure = Failure::usage(format!("no command is called \"{}\"", crate::render::quoted(word)));
    match nearest(word, names) {
        Some(near) => failure.hint(format!("did you mean `bugeye {near}`?")),
        None => failure.hint("`bugeye --help` lists the commands"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{CATALOGUE, Group};

    /// The shape of a real entry under other names.
    const fn named(name: &'static str, aliases: &'static [&'static str]) -> Entry {
        Entry { name, aliases, group: Group::Breakpoints, ..CATALOGUE[0] }
    }

    const TABLE: &[Entry] = &[
        named("break", &["b", "breakpoint add"]),
        named("breakpoints", &["breakpoint list"]),
        named("status", &["sessions"]),
    ];

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn meaning(words: &[&str]) -> Result<Vec<String>, Failure> {
        match understand(&os(words), TABLE)? {
            Meaning::Command(_, words) => Ok(words.into_iter().map(|word| word.into_string().unwrap()).collect()),
            Meaning::Flags => Ok(vec![]),
        }
    }

    #[test]
    fn two_words_become_one_wherever_flags_stand() {
        for (typed, meant) in [
            (&["breakpoint", "add", "x.c:3"][..], &["break", "x.c:3"][..]),
            (&["--json", "breakpoint", "add", "f"], &["--json", "break", "f"]),
            (&["-s", "s1", "breakpoint", "--json", "add", "f"], &["-s", "s1", "break", "--json", "f"]),
            (&["-ss1", "--color=never", "breakpoint", "list"], &["-ss1", "--color=never", "breakpoints"]),
            (&["b", "add"], &["break", "add"]),
            (&["sessions", "--session", "x"], &["status", "--session", "x"]),
            (&["help", "breakpoint", "add"], &["break", "--help"]),
            (&["-s", "r", "--at", "7", "b", "f"], &["-s", "r", "break", "--at", "7", "f"]),
            (&["--at=7", "--json", "breakpoint", "list"], &["--json", "breakpoints", "--at=7"]),
            (&["b", "--at", "7"], &["break", "--at", "7"]),
        ] {
            assert_eq!(meaning(typed).unwrap(), meant, "{typed:?}");
        }
    }

    #[test]
    fn flags_alone_are_no_command() {
        for typed in [&["--json"][..], &["--help"], &["-V"], &["--bogus"], &["help"], &[]] {
            assert!(meaning(typed).unwrap().is_empty(), "{typed:?}");
        }
    }

    #[test]
    fn a_wrong_word_gets_advice() {
        let hint = |typed: &[&str]| meaning(typed).unwrap_err().hints.join(" ");
        assert_eq!(hint(&["statsu"]), "did you mean `bugeye status`?");
        assert_eq!(hint(&["breakpoint"]), "`bugeye breakpoint add`, `bugeye breakpoint list`");
        assert_eq!(hint(&["breakpoint", "fly"]), "`bugeye breakpoint add`, `bugeye breakpoint list`");
        assert_eq!(hint(&["zzz"]), "`bugeye --help` lists the commands");
    }

    #[test]
    fn a_programs_own_flags_are_not_ours() {
        assert!(has_flag(&os(&["run", "--json", "--", "x"]), "--json"));
        assert!(!has_flag(&os(&["run", "--", "x", "--json"]), "--json"));
    }
}
