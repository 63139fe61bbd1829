//! Rust projects: `cargo run`, `cargo test`, `cargo nextest run`.
//!
//! Cargo builds and says what it has built; the program is then started as Cargo itself would start it, without Cargo
//! between it and the debugger.

mod built;
mod suite;

use std::path::Path;

use self::built::{Artifact, Built};
use super::{Asked, Build, Kept, Plan, Program};
use crate::failure::Failure;

/// Options that take the next word as their value.
const VALUED: [&str; 28] = [
    "-p",
    "--package",
    "--bin",
    "--example",
    "--test",
    "--bench",
    "--exclude",
    "-F",
    "--features",
    "--target",
    "--target-dir",
    "--manifest-path",
    "--lockfile-path",
    "--profile",
    "-j",
    "--jobs",
    "--message-format",
    "--color",
    "--config",
    "-Z",
    "-C",
    "--artifact-dir",
    "--cargo-profile",
    "-E",
    "--filterset",
    "--retries",
    "--run-ignored",
    "--partition",
];

/// Words that Cargo takes, in their three parts.
#[derive(Debug, Default)]
struct Line {
    /// `cargo`, a toolchain, and options before the subcommand.
    cargo: Vec<String>,
    subcommand: String,
    options: Vec<String>,
    /// Words that are no options: the name of a test, or the first argument of a program.
    plain: Vec<String>,
    /// What follows `--`.
    rest: Vec<String>,
}

impl Line {
    fn read(words: &[String]) -> Self {
        let mut line = Self::default();
        let mut words = words.iter();
        line.cargo.extend(words.next().cloned());
        while let Some(word) = words.next() {
            let is_option = word.starts_with('-') || (word.starts_with('+') && line.subcommand.is_empty());
            if word == "--" {
                line.rest = words.cloned().collect();
                break;
            }
            if line.subcommand.is_empty() {
                if is_option {
                    line.cargo.push(word.clone());
                    if VALUED.contains(&word.as_str()) {
                        line.cargo.extend(words.next().cloned());
                    }
                } else {
                    line.subcommand.clone_from(word);
                }
            } else if is_option {
                line.options.push(word.clone());
                if VALUED.contains(&word.as_str()) {
                    line.options.extend(words.next().cloned());
                }
            } else {
                line.plain.push(word.clone());
                if matches!(line.subcommand.as_str(), "run" | "r") {
                    // The program's arguments begin here.
                    line.plain.extend(words.by_ref().cloned());
                }
            }
        }
        line
    }

    /// Takes an option away, with its value; answers whether it was there.
    fn remove(&mut self, names: &[&str]) -> Option<String> {
        let at = self.options.iter().position(|word| {
            names.iter().any(|name| word == name || word.strip_prefix(name).is_some_and(|rest| rest.starts_with('=')))
        })?;
        let word = self.options.remove(at);
        match word.split_once('=') {
            Some((_, value)) => Some(value.to_string()),
            None if VALUED.contains(&word.as_str()) && at < self.options.len() => Some(self.options.remove(at)),
            None => Some(String::new()),
        }
    }

    /// A command line of Cargo with the same options before its subcommand.
    fn command(&self, words: &[&str], options: &[String]) -> Vec<String> {
        let words = words.iter().map(ToString::to_string);
        self.cargo.iter().cloned().chain(words).chain(options.iter().cloned()).collect()
    }
}

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    if asked.name() != "cargo" {
        return Ok(None);
    }
    let mut line = Line::read(asked.words);
    let kept = asked.keep();
    match line.subcommand.as_str() {
        "run" | "r" => Ok(Some(run(line, kept))),
        "test" | "t" => suite::plan(line, kept).map(Some),
        "nextest" if line.plain.first().is_some_and(|word| word == "run" || word == "r") => {
            line.plain.remove(0);
            suite::nextest(line, kept).map(Some)
        }
        "" => Err(Failure::usage("cargo without a subcommand starts nothing").hint("bugeye run -- cargo run")),
        other => Err(Failure::unsupported(format!("`cargo {other}` starts no program that could be debugged"))
            .hint("known: cargo run, cargo test NAME, cargo nextest run NAME")),
    }
}

pub fn test(project: &Path, name: &str, _: &Asked) -> Result<Option<Vec<String>>, Failure> {
    let manifest = project.join("Cargo.toml");
    let Ok(text) = std::fs::read_to_string(&manifest) else { return Ok(None) };
    let mut words: Vec<String> = ["cargo", "test", "--manifest-path"].map(Into::into).into();
    words.push(manifest.to_string_lossy().into_owned());
    if text.lines().any(|line| line.trim() == "[workspace]") {
        words.push("--workspace".into());
    }
    words.extend(["--", "--exact", "--include-ignored", name].map(Into::into));
    Ok(Some(words))
}

/// `cargo run`: everything is built as `cargo build` does, then the one program is chosen as `cargo run` does.
fn run(mut line: Line, kept: Kept) -> Plan {
    line.remove(&["--message-format"]);
    let argv = line.command(&["build", "--message-format=json-render-diagnostics"], &line.options);
    let cwd = kept.cwd.clone();
    let then = move |output: &str| {
        let built = Built::read(output);
        let programs: Vec<Artifact> = built.programs().cloned().collect();
        let Some(first) = programs.first() else {
            return Err(Failure::refused("cargo built no program").hint("tests are run by: cargo test NAME"));
        };
        let (cargo, first, about, place) = (line.cargo.clone(), first.clone(), built.clone(), kept.cwd.clone());
        Ok(built::describe(&cargo, &first, &about, &place, move |package| {
            let artifact = choose(&programs, package.default_run())?;
            Ok(Plan::Debug(Program {
                language: "rust",
                program: artifact.executable.clone(),
                args: line.plain.iter().chain(&line.rest).cloned().collect(),
                env: built.environment(artifact, package, &kept),
                catch: vec!["panic".into()],
                ..Program::default()
            }))
        }))
    };
    Plan::Build(Build { argv, cwd, env: Vec::new(), then: Box::new(then) })
}

/// The only program, or the one that the package runs by default.
fn choose<'a>(programs: &'a [Artifact], default: Option<&str>) -> Result<&'a Artifact, Failure> {
    if let [only] = programs {
        return Ok(only);
    }
    if let Some(found) = programs.iter().find(|program| Some(program.name.as_str()) == default) {
        return Ok(found);
    }
    let failure = Failure::usage("the project has several programs; say which one");
    Err(programs
        .iter()
        .take(7)
        .fold(failure, |failure, program| failure.hint(format!("cargo run {}", program.flags()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        Line::read(&text.split_whitespace().map(Into::into).collect::<Vec<_>>())
    }

    #[test]
    fn the_parts_of_a_command_line_are_told_apart() {
        let run = line("cargo +nightly -q run -p x --release -- c");
        assert_eq!((run.cargo.join(" "), run.options.join(" ")), ("cargo +nightly -q".into(), "-p x --release".into()));
        assert_eq!(run.rest, ["c"]);
        assert_eq!(line("cargo run a --b -- c").plain.join(" "), "a --b -- c", "they are the program's");
        let mut test = line("cargo test --test it --features=a name --message-format json -- --exact");
        assert_eq!(test.remove(&["--message-format"]).as_deref(), Some("json"));
        assert_eq!(test.remove(&["--features"]).as_deref(), Some("a"));
        assert_eq!((test.plain.join(" "), test.options.join(" ")), ("name".into(), "--test it".into()));
        assert_eq!(test.rest, ["--exact"]);
    }

    #[test]
    fn several_programs_need_a_word_about_which() {
        let program = |name: &str| Artifact { name: name.into(), kind: "bin".into(), ..Artifact::default() };
        let two = [program("a"), program("b")];
        assert_eq!(choose(&two, Some("b")).unwrap().name, "b");
        assert_eq!(choose(&two[..1], None).unwrap().name, "a");
        assert_eq!(choose(&two, None).unwrap_err().hints, ["cargo run --bin a", "cargo run --bin b"]);
    }
}
