//! Reads the source as text and fails on what the compiler lets pass: I/O in pure modules, files that grew too long,
//! adapter names compared outside the adapters' own files, leftovers.

#![expect(clippy::unwrap_used, reason = "a file that can't be read is a failed test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const LONGEST_FILE: usize = 600;

/// Modules of data and decisions: a prefix of the path under `src`.
const PURE: [&str; 7] = ["model", "failure", "dap", "session", "adapters", "launch_config", "diff"];

/// What a pure module may not name.
const IMPURE: [&str; 6] = ["tokio::", "std::fs", "std::process", "std::net", "Instant", "SystemTime"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of `src`: its path below `src`, and its text.
fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root().join("src")).unwrap().display().to_string();
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    assert!(!files.is_empty());
    files
}

/// The lines of code that are no test, numbered from 1, without comments.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut skipping_to: Option<String> = None;
    let mut is_test = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(end) = &skipping_to {
            if line == end {
                skipping_to = None;
            }
            continue;
        }
        let trimmed = line.trim_start();
        if trimmed.starts_with("#[cfg(test)]") {
            is_test = true;
            continue;
        }
        if is_test && !trimmed.starts_with("#[") {
            is_test = false;
            // rustfmt puts the closing brace where the item began.
            if line.trim_end().ends_with('{') {
                let indent = &line[..line.len() - trimmed.len()];
                skipping_to = Some(format!("{indent}}}"));
            }
            continue;
        }
        lines.push((number + 1, trimmed.split("//").next().unwrap_or_default()));
    }
    lines
}

/// Whether a line has this as a name of its own, not as the end of a longer one.
fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
    })
}

fn is_pure(name: &str) -> bool {
    PURE.iter().any(|module| name == format!("{module}.rs") || name.starts_with(&format!("{module}/")))
}

/// Names spelled with a gap, so that this file does not hold them.
fn join(parts: &[&str]) -> String {
    parts.concat()
}

/// Gathers complaints, and fails with all of them at once.
#[derive(Default)]
struct Complaints(String);

impl Complaints {
    fn add(&mut self, place: impl std::fmt::Display, what: &str) {
        let _ = writeln!(self.0, "{place}: {what}");
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        assert!(self.0.is_empty() || std::thread::panicking(), "\n{}", self.0);
    }
}

#[test]
fn pure_modules_do_no_io_and_read_no_clock() {
    let mut complaints = Complaints::default();
    for (name, text) in sources().iter().filter(|(name, _)| is_pure(name)) {
        for (number, line) in code(text) {
            if line.contains("std::{") {
                complaints.add(format!("src/{name}:{number}"), "name each module of std in a line of its own");
            }
            for word in IMPURE.iter().filter(|word| has_word(line, word)) {
                complaints.add(format!("src/{name}:{number}"), &format!("`{word}` in a pure module"));
            }
        }
    }
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let mut complaints = Complaints::default();
    for (name, text) in sources() {
        let lines = text.lines().count();
        if lines > LONGEST_FILE {
            complaints.add(format!("src/{name}"), &format!("{lines} lines, over {LONGEST_FILE}"));
        }
        if !text.starts_with("//!") && name != "main.rs" {
            complaints.add(format!("src/{name}"), "does not open with `//!`");
        }
    }
}

/// The ids and aliases that adapters' files give themselves.
fn adapter_names() -> Vec<String> {
    let named = bugeye::adapters::ADAPTERS.iter().flat_map(|adapter| {
        adapter.aliases.iter().copied().chain([adapter.id, adapter.adapter_id, adapter.install.setup_name])
    });
    // Also before they are registered.
    let mut names: Vec<String> = named.map(Into::into).chain(["lldb-dap".into(), join(&["debug", "py"])]).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn no_code_outside_their_files_asks_which_adapter_it_is() {
    let mut complaints = Complaints::default();
    let names = adapter_names();
    // A locator compares words of command lines: some adapters have the name of their language's command.
    let apart = |name: &str| name.starts_with("adapters") || name.starts_with("locate/");
    for (name, text) in sources().iter().filter(|(name, _)| !apart(name)) {
        for (number, line) in code(text) {
            // A closure without arguments is no pattern.
            let squeezed = line.replace(' ', "").replace("||", "");
            for adapter in &names {
                let compared = [format!("==\"{adapter}\""), format!("!=\"{adapter}\""), format!("\"{adapter}\"==")];
                let matched = [format!("\"{adapter}\"=>"), format!("\"{adapter}\"|"), format!("|\"{adapter}\"")];
                if compared.iter().chain(&matched).any(|form| squeezed.contains(form)) {
                    complaints.add(format!("src/{name}:{number}"), &format!("compares with the adapter \"{adapter}\""));
                }
            }
        }
    }
}

/// The files that are under version control; all files below the root where that can't be asked.
fn tracked() -> Vec<PathBuf> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    match listed {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
        }
        _ => ["src", "tests", "scripts", "docs"].iter().flat_map(|folder| below(Path::new(folder))).collect(),
    }
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root().join(folder)) else { return Vec::new() };
    let paths = entries.flatten().map(|entry| folder.join(entry.file_name()));
    paths.flat_map(|path| if root().join(&path).is_dir() { below(&path) } else { vec![path] }).collect()
}

#[test]
fn nothing_is_left_over() {
    let mut complaints = Complaints::default();
    let macros = ["todo", "dbg", "unimplemented"].map(|name| format!("{name}!("));
    let skipped = join(&["#[", "ignore"]);
    let machine_paths = [join(&["/wo", "rk/"]), join(&["/ro", "ot/"])];
    for path in tracked() {
        // A file that is listed and gone is being removed; one that is no text has no words.
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            for word in machine_paths.iter().filter(|word| names_absolute(line, word)) {
                complaints.add(&place, &format!("`{word}`, a path of one machine"));
            }
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            for word in macros.iter().filter(|word| line.contains(word.as_str())) {
                complaints.add(&place, &format!("`{word}`"));
            }
            if line.contains(&skipped) {
                complaints.add(&place, "a test that is not run");
            }
        }
    }
}

/// Whether a line has this as the start of a path, not in the middle of a longer one (as in a web address).
fn names_absolute(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !"._-~})".contains(c))
    })
}

/// Documentation and examples name these lines by number.
#[test]
fn the_loops_keep_their_lines() {
    for (name, line, body) in [("loop_basic.c", 6, "sum += i;"), ("loop_stdin.c", 21, "acc *= i;")] {
        let text = fs::read_to_string(root().join("tests/fixtures/c").join(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[line - 1].trim().starts_with(body) && lines[line - 1].contains("BREAK:body"), "{name}");
        assert!(lines[line].contains("BREAK:after"), "{name}");
    }
}

#[test]
fn tests_and_comments_are_told_from_code() {
    let text =
        "use a; // std::fs\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\nuse b;\n#[cfg(test)]\nuse c;\nuse d;\n";
    let lines: Vec<&str> = code(text).into_iter().map(|(_, line)| line.trim()).collect();
    assert_eq!(lines, ["use a;", "use b;", "use d;"]);
}
