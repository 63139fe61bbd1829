//! `demo`: a real bug found with real commands, to see that everything works here.
//!
//! Nothing in it is canned: the program is written and started, the commands go to the daemon as typed ones do, and the
//! closing sentence is made of the values that came back.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Group, Local};
use crate::adapters::{self, ADAPTERS, Adapter};
use crate::cli::{self, LocalContext, Typist};
use crate::client;
use crate::failure::Failure;
use crate::find;
use crate::render::{Page, Render, quoted_lines};
use crate::setup;

/// Find a bug in a small program, step by step, with the debugger that is here
///
/// Writes the program into a temporary folder, runs it under the debugger and shows each command with its reply. Installs
/// debugpy into a private folder if there is no debugger yet. Leaves nothing behind.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Demo {
    /// The debug adapter to show (debugpy, lldb-dap); the first that is there, or that needs no root to install.
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
}

/// What was done, and what it showed.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// The adapter and its version.
    pub adapter: String,
    /// The program, as it was written.
    pub program: String,
    pub steps: Vec<Step>,
    /// The bug, in one sentence.
    pub conclusion: String,
}

/// One command and its reply.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// As a user would type it.
    pub command: String,
    /// The reply as text.
    pub reply: String,
    /// The reply as data.
    pub result: Value,
}

/// A program with a bug: the last value is left out of the sum.
struct Sample {
    language: &'static str,
    file: &'static str,
    text: &'static str,
}

const SAMPLES: [Sample; 2] = [
    Sample {
        language: "python",
        file: "average.py",
        text: "\
def average(values, count):
    total = 0
    for i in range(count - 1):
        total += values[i]
    return total / count


print('average:', average([2, 4, 6, 8], 4))
",
    },
    Sample {
        language: "c",
        file: "average.c",
        text: "\
#include <stdio.h>

static double average(const int *values, int count) {
    int total = 0;
    for (int i = 0; i < count - 1; i++)
        total += values[i];
    return (double)total / count;
}

int main(void) {
    int values[] = {2, 4, 6, 8};
    printf(\"average: %.1f\\n\", average(values, 4));
    return 0;
}
",
    },
];

/// What the values add up to, the one thing known beforehand: a debugger that says otherwise has failed.
const SUM: i64 = 20;
const LAST: &str = "values[count - 1]";

impl Sample {
    /// The line where the sum is complete.
    fn line(&self) -> usize {
        self.line_of("return")
    }

    fn line_of(&self, beginning: &str) -> usize {
        self.text.lines().position(|line| line.trim_start().starts_with(beginning)).unwrap_or_default() + 1
    }
}

/// A folder that is gone when the demo is, however it ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, Failure> {
        let path = std::env::temp_dir().join(format!("bugeye-demo-{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::io(format!("create {}", path.display()), &error))?;
        // Debuggers name files by their real paths.
        Ok(Self(fs::canonicalize(&path).unwrap_or(path)))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Local for Demo {
    const NAME: &'static str = "demo";
    const GROUP: Group = Group::Around;
    type Output = Shown;

    fn run(self, cx: &LocalContext) -> Result<Shown, Failure> {
        let env_path = std::env::var("PATH").unwrap_or_default();
        let adapter = choose(self.adapter.as_deref(), cx, &env_path)?;
        let sample = sample_of(adapter)
            .ok_or_else(|| Failure::unsupported(format!("there is no demo for {}", adapter.languages.join(", "))))?;
        let folder = Folder::new()?;
        let program = prepare(sample, &folder.0, &env_path)?;
        let was_running = client::connect(&cx.paths)?.is_some();
        let mut typist = Typist::new(&cx.paths, &folder.0);
        let shown = show(&mut typist, adapter, sample, &program);
        // Whatever came of it, nothing of it stays.
        let stopped = typist.session.is_some().then(|| typist.ask(&["stop"]));
        if !was_running && let Ok(Some(mut connection)) = client::connect(&cx.paths) {
            let _ = connection.end_if_idle();
        }
        let shown = shown?;
        if let Some(stopped) = stopped {
            stopped?;
        }
        Ok(shown)
    }
}

fn sample_of(adapter: &Adapter) -> Option<&'static Sample> {
    SAMPLES.iter().find(|sample| adapter.languages.contains(&sample.language))
}

/// The adapter asked for, else one that is here or can be had without root, else one that is here and can be used.
fn choose(asked: Option<&str>, cx: &LocalContext, env_path: &str) -> Result<&'static Adapter, Failure> {
    let found = |adapter| find::find_with(adapter, &cx.paths, &cx.config, env_path);
    if let Some(name) = asked {
        let adapter = adapters::by_name(name).ok_or_else(|| {
            let known: Vec<&str> = ADAPTERS.iter().map(|adapter| adapter.id).collect();
            Failure::usage(format!("there is no adapter `{name}`")).hint(format!("known: {}", known.join(", ")))
        })?;
        return match found(adapter) {
            Ok(_) => Ok(adapter),
            Err(_) if adapter.install.pip.is_some() => install(adapter, cx).map(|()| adapter),
            Err(failure) => Err(failure),
        };
    }
    let mut failure = None;
    for adapter in
        ADAPTERS.iter().copied().filter(|adapter| adapter.install.pip.is_some() && sample_of(adapter).is_some())
    {
        match found(adapter).map(|_| ()).or_else(|_| install(adapter, cx)) {
            Ok(()) => return Ok(adapter),
            Err(why) => failure = failure.or(Some(why)),
        }
    }
    let compiles = find::on_path("cc", env_path).is_some();
    let other =
        ADAPTERS.iter().copied().find(|adapter| compiles && sample_of(adapter).is_some() && found(adapter).is_ok());
    other.ok_or_else(|| {
        failure
            .unwrap_or_else(|| Failure::refused("no debug adapter is here"))
            .hint("or use another debugger: `bugeye setup`, then `bugeye demo`")
    })
}

fn install(adapter: &'static Adapter, cx: &LocalContext) -> Result<(), Failure> {
    setup::install(adapter, &cx.paths, &mut |line| eprintln!("{}", quoted_lines(line))).map(|_| ())
}

/// Writes the program, compiles it where it must be; answers the words that start it.
fn prepare(sample: &Sample, folder: &Path, env_path: &str) -> Result<Vec<String>, Failure> {
    let source = folder.join(sample.file);
    fs::write(&source, sample.text).map_err(|error| Failure::io(format!("write {}", source.display()), &error))?;
    let Some(stem) = sample.file.strip_suffix(".c") else {
        let python = find::interpreter(env_path).ok_or_else(|| Failure::refused("PATH has no python3"))?;
        let name = python.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Ok(vec![name, sample.file.into()]);
    };
    let compiler = find::on_path("cc", env_path)
        .ok_or_else(|| Failure::refused("no C compiler is on the PATH").hint("bugeye demo --adapter debugpy"))?;
    let mut command = Process::new(compiler);
    command.args(["-g", "-O0", "-o", stem, sample.file]).current_dir(folder);
    let done = find::ask(&mut command, Duration::from_secs(30));
    match done {
        Some((status, _)) if status.success() => Ok(vec![format!("./{stem}")]),
        _ => Err(Failure::refused(format!("{} could not be compiled", sample.file))),
    }
}

fn show(typist: &mut Typist, adapter: &Adapter, sample: &Sample, program: &[String]) -> Result<Shown, Failure> {
    let place = format!("{}:{}", sample.file, sample.line());
    let body = format!("{}:{}: i, values[i], total", sample.file, sample.line_of("total +="));
    let with_program = |words: &[&'static str], place| {
        let mut words: Vec<&str> = words.to_vec();
        words.extend([place, "--"]);
        words.extend(program.iter().map(String::as_str));
        words
    };
    let (trace, run) = (with_program(&["trace", "--at"], &body), with_program(&["run", "--break"], &place));
    let mut steps = Vec::new();
    for words in [&trace[..], &run[..], &["print", "-e", "total", "-e", LAST], &["continue"]] {
        let (result, reply) = typist.ask(words).map_err(|failure| {
            let command = cli::typed(words);
            Failure { message: format!("`{command}` failed: {}", failure.message), ..failure }
        })?;
        steps.push(Step { command: cli::typed(words), reply, result });
    }
    let number = |index: usize| {
        let text = steps[2].result.pointer(&format!("/values/{index}/value/text")).and_then(Value::as_str);
        text.and_then(|text| text.parse::<i64>().ok())
    };
    let (Some(total), Some(last)) = (number(0), number(1)) else {
        return Err(Failure::internal(format!("{} gave no numbers: {}", adapter.id, steps[2].reply.trim_end())));
    };
    let hits = steps[0].result["total"].as_u64().unwrap_or_default();
    if total + last != SUM {
        return Err(Failure::internal(format!(
            "{} says that total is {total} and {LAST} is {last}, which can't be",
            adapter.id
        )));
    }
    let conclusion = format!(
        "The bug: four values, and {hits} passes of the loop. When `average` returns, `total` is {total} and the last value, \
         `{LAST}` = {last}, is not in it: the loop ends one step early, at `count - 1`."
    );
    let adapter = typist.via.clone().unwrap_or_else(|| adapter.id.to_string());
    Ok(Shown { adapter, program: sample.text.to_string(), steps, conclusion })
}

impl Render for Shown {
    fn render(&self, page: &mut Page) {
        for step in &self.steps {
            page.line(format!("$ {}", step.command));
            for line in step.reply.lines() {
                page.line(line);
            }
            page.line("");
        }
        page.line(&self.conclusion);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marked_line_is_where_the_sum_is_complete() {
        for sample in &SAMPLES {
            let line = sample.text.lines().nth(sample.line() - 1).unwrap();
            assert!(line.contains("total / count") || line.contains("(double)total"), "{line}");
        }
    }

    #[test]
    fn every_program_has_an_adapter_that_shows_it() {
        for sample in &SAMPLES {
            assert!(adapters::for_language(sample.language).is_some(), "{}", sample.language);
        }
    }
}
