//! Programs whose values are made to hurt: huge, deep, endless, or full of bytes that a terminal obeys. Every reply is
//! quick, within its bounds, and holds nothing but printable text.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::time::Duration;

use support::fixtures::{at, program};
use support::{Bug, Run, has};

const QUICK: Duration = Duration::from_secs(10);
const USUAL: usize = 32 * 1024;
const FULL: usize = 100 * 1024;

/// What a terminal obeys, what turns text around, and what can't be seen.
fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{61c}' | '\u{e0000}'..='\u{e007f}')
}

/// A command in both forms; the text of the first.
#[track_caller]
fn ask(bug: &Bug, words: &[&str]) -> Run {
    // The debugger's own words have no shorter form.
    let limit = if words.contains(&"--full") || words[0] == "raw" { FULL } else { USUAL };
    let text = bug.run(words);
    let json = bug.run(&[&["--json"], words].concat());
    for run in [&json, &text] {
        let all = format!("{}{}", run.stdout, run.stderr);
        let shown: String = all.chars().take(2000).collect();
        assert!(run.took < QUICK, "took {:?}: `{}`: {shown}", run.took, run.words);
        assert!(all.len() <= limit, "{} bytes of {limit}: `{}`: {shown}", all.len(), run.words);
        let harmful = all.chars().find(|c| is_harmful(*c));
        assert_eq!(harmful, None, "in `{}`: {shown:?}", run.words);
    }
    eprintln!("{:>8?} {:>6} bytes  {}", text.took, text.stdout.len(), text.words);
    text
}

#[track_caller]
fn answered(bug: &Bug, words: &[&str]) -> String {
    let run = ask(bug, words);
    assert_eq!(run.code, 0, "{run}");
    run.stdout
}

fn stopped_at(name: &str, mark: &str) -> Bug {
    let bug = Bug::new(name.split('/').next().unwrap());
    let run = bug.run(&["run", "--wait", "50s", "--break", &at(name, mark), &program(name)]);
    assert_eq!(run.code, 0, "{run}");
    has(&run.stdout, &["stopped: "]);
    let harmful = run.stdout.chars().find(|c| is_harmful(*c));
    assert_eq!(harmful, None, "{:?}", run.stdout);
    assert!(run.stdout.len() <= USUAL, "{} bytes", run.stdout.len());
    bug
}

const EVERYTHING: [&[&str]; 11] = [
    &["context"],
    &["locals"],
    &["locals", "--full"],
    &["locals", "--depth", "8"],
    &["backtrace", "--locals"],
    &["output", "--all"],
    &["output", "--tail", "2"],
    &["status"],
    &["threads"],
    &["print", "giant"],
    &["print", "giant", "--full"],
];

#[test]
fn values_of_a_native_program() {
    let bug = stopped_at("c/hostile.c", "values");
    for words in EVERYTHING {
        answered(&bug, words);
    }
    has(&answered(&bug, &["print", "big", "--from", "5000"]), &["[5000]", "15000"]);
    has(&answered(&bug, &["print", "big", "--from", "9999"]), &["29997"]);
    answered(&bug, &["print", "big", "--from", "20000"]);
    answered(&bug, &["print", "big", "--full"]);
    for words in [&["print", "first", "--depth", "8"][..], &["print", "*first.next->next", "--depth", "8"]] {
        has(&answered(&bug, words), &["value"]);
    }
    answered(&bug, &["print", "first", "--depth", "1000", "--full"]);
    has(&answered(&bug, &["print", "invalid"]), &["ok ", " end"]);
    has(&answered(&bug, &["print", "escapes"]), &["red", "title"]);
    has(&answered(&bug, &["print", "bidi"]), &["user", "txt.exe"]);
    for words in [&["print", "raw"][..], &["eval", "escapes"], &["print", "-e", "giant", "-e", "bidi", "-e", "big"]] {
        answered(&bug, words);
    }
    ask(&bug, &["raw", "frame variable"]);
    ask(&bug, &["raw", "p giant"]);
    ask(&bug, &["memory", "read", "escapes"]);
    ask(&bug, &["memory", "read", "giant", "--count", "1000000"]);
    ask(&bug, &["memory", "read", "escapes", "--format", "str"]);
    // What was typed is quoted too.
    ask(&bug, &["print", "\u{1b}[31m\u{202e}"]);
    ask(&bug, &["break", "\u{1b}[31m\u{202e}"]);
    ask(&bug, &["print", &"x".repeat(100_000)]);
    bug.ok(&["stop"]);
}

#[test]
fn values_of_a_python_program() {
    let bug = stopped_at("python/hostile.py", "values");
    for words in EVERYTHING {
        answered(&bug, words);
    }
    has(&answered(&bug, &["print", "big", "--from", "5000"]), &["5000", "15000"]);
    has(&answered(&bug, &["print", "table", "--from", "5000"]), &["key5000"]);
    answered(&bug, &["print", "big", "--full"]);
    for value in ["first", "ring", "nested"] {
        answered(&bug, &["print", value, "--depth", "8"]);
        answered(&bug, &["print", value, "--depth", "1000", "--full"]);
    }
    has(&answered(&bug, &["print", "invalid"]), &["ok "]);
    has(&answered(&bug, &["print", "surrogate"]), &["lone "]);
    has(&answered(&bug, &["print", "escapes"]), &["red", "title"]);
    has(&answered(&bug, &["print", "bidi"]), &["user", "txt.exe"]);
    for value in ["rude", "failing", "globals()"] {
        ask(&bug, &["print", value]);
        ask(&bug, &["eval", value]);
    }
    ask(&bug, &["eval", "giant"]);
    ask(&bug, &["raw", "giant"]);
    ask(&bug, &["raw", "escapes + bidi"]);
    ask(&bug, &["print", "\u{1b}[31m\u{202e}"]);
    bug.ok(&["stop"]);
}

#[test]
fn ten_thousand_native_frames() {
    let bug = stopped_at("c/hostile.c", "bottom");
    has(&answered(&bug, &["backtrace", "--limit", "5"]), &["bottom", "down"]);
    answered(&bug, &["backtrace"]);
    answered(&bug, &["backtrace", "--limit", "100000"]);
    answered(&bug, &["backtrace", "--full"]);
    answered(&bug, &["backtrace", "--all"]);
    answered(&bug, &["frame", "5000"]);
    answered(&bug, &["up"]);
    ask(&bug, &["frame", "99999"]);
    bug.ok(&["stop"]);
}

#[test]
fn five_thousand_python_frames() {
    let bug = stopped_at("python/hostile.py", "bottom");
    has(&answered(&bug, &["backtrace", "--limit", "5"]), &["bottom", "down"]);
    answered(&bug, &["backtrace"]);
    answered(&bug, &["backtrace", "--limit", "100000"]);
    answered(&bug, &["backtrace", "--full"]);
    ask(&bug, &["frame", "3000"]);
    ask(&bug, &["frame", "99999"]);
    bug.ok(&["stop"]);
}
