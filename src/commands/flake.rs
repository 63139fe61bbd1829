//! `flake`: a command that now passes and now fails, run until both were seen, and where the two part.
//!
//! Every run is a `trace`, since what was not recorded can't be compared. The client repeats and compares; the daemon
//! runs.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compared::{Runs, runs};
use super::report::{ending_line, parse_seconds};
use super::{Group, Local};
use crate::cli::{LocalContext, Typist};
use crate::diff::Wishes;
use crate::failure::{Failure, Kind};
use crate::model::Ending;
use crate::render::{Page, Render, quoted};
use crate::session::NO_FUNCTION;
use crate::store::read::{self, Head};
use crate::store::steps::Manner;

/// Calls that are told of each run where nobody says what to see.
const CALLS: u64 = 10_000;
/// How often a reader that is no terminal is told how it goes, in runs.
const TELLING: u32 = 5;
/// How long all runs, and each, may take where nobody says so.
const WHOLE: f64 = 600.0;
const EACH: f64 = 60.0;

/// Run a command until it has passed once and failed once, and tell where the two runs part
///
/// Each run is a recorded trace: of the places named by `--at`, of the calls named by `--calls`, or of all calls of the
/// program's own functions. Exit code 0 is a pass; another, a signal or a run without end is a failure. The records stay.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Flake {
    /// The command: `-- pytest test_x.py`, `-- cargo test x`, `-- ./program`.
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub command: Vec<String>,
    /// Where, and what to see there: `FILE:LINE: EXPR, EXPR`; may be given several times.
    #[arg(long = "at", short = 'a', value_name = "PLACE[: EXPR, …]")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// Compare the calls of the functions whose names match (default: `*`, all of the program's own).
    #[arg(long, value_name = "GLOB")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The most calls that are recorded of a run (default 10000).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// The most runs.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(default = "most_runs")]
    pub runs: u32,
    /// The most time for all of them (default 10m).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// The most time for each; one that takes longer has failed (default 60s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<f64>,
    /// Set this variable to the number of the run, so that a run can be had again (`PYTHONHASHSEED`, `SEED`).
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_env: Option<String>,
    /// Don't compare these variables (`tmp_*`), or the steps of these functions (`'log_*()'`).
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The debug adapter to use.
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// Give the program this file as standard input.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<String>,
    /// The program's working directory.
    #[arg(long, value_name = "DIR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Set a variable of the program's environment (K=V).
    #[arg(long, value_name = "K=V")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
}

const fn most_runs() -> u32 {
    50
}

/// What was seen, and where a pass and a failure part.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Flaked {
    pub passed: u32,
    pub failed: u32,
    /// Every run, in order.
    pub runs: Vec<Ran>,
    /// What was recorded of each.
    pub seen: String,
    pub pass: Option<Ran>,
    pub fail: Option<Ran>,
    /// The pass is A, the failure B; none where not both were seen.
    pub diff: Option<Box<Runs>>,
    pub seconds: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What to try next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ran {
    /// Its record.
    pub record: String,
    pub passed: bool,
    /// None where it did not end in time, and was ended.
    pub ending: Option<Ending>,
    /// `NAME=VALUE` of the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// No more calls were recorded than were asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

impl Flake {
    /// The words of one run.
    fn words(&self, number: u32, each: f64) -> (Vec<String>, Option<String>) {
        let mut words = vec!["trace".to_string(), "--to-end".into()];
        let mut push = |flag: &str, value: String| words.extend([flag.to_string(), value]);
        for at in &self.at {
            push("--at", at.clone());
        }
        let calls = if self.takes_all() { vec!["*".to_string()] } else { self.calls.clone() };
        for glob in &calls {
            push("--calls", glob.clone());
        }
        if !calls.is_empty() {
            push("--max-calls", self.most_calls().to_string());
        }
        for flag in ["--timeout", "--first-timeout", "--exit-timeout"] {
            push(flag, format!("{each:.3}"));
        }
        for (flag, value) in [("--adapter", &self.adapter), ("--stdin", &self.stdin), ("--cwd", &self.cwd)] {
            if let Some(value) = value {
                push(flag, value.clone());
            }
        }
        for setting in &self.env {
            push("--env", setting.clone());
        }
        let seed = self.seed_env.as_ref().map(|name| format!("{name}={number}"));
        if let Some(seed) = &seed {
            push("--env", seed.clone());
        }
        words.push("--".into());
        words.extend(self.command.iter().cloned());
        (words, seed)
    }

    /// Nobody said what to see.
    const fn takes_all(&self) -> bool {
        self.at.is_empty() && self.calls.is_empty()
    }

    fn most_calls(&self) -> u64 {
        self.max_calls.unwrap_or(CALLS)
    }

    fn seen(&self) -> String {
        let mut seen: Vec<String> = self.at.clone();
        let calls = if self.takes_all() { &["*".to_string()] } else { &self.calls[..] };
        seen.extend(calls.iter().map(|glob| format!("calls of {glob}")));
        seen.join("; ")
    }

    /// One run, from start to end.
    fn run_once(&self, cx: &LocalContext, number: u32, each: f64) -> Result<Ran, Failure> {
        let (words, seed) = self.words(number, each);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let asked = Typist::new(&cx.paths, &cwd).obeying().ask(&words);
        let (result, _) = asked.map_err(|failure| match failure.kind {
            Kind::Unsupported if self.at.is_empty() && failure.message.contains("calls") => {
                failure.hint("say what to see instead: bugeye flake --at 'FILE:LINE: EXPR' -- COMMAND")
            }
            Kind::NotFound if self.takes_all() && failure.message.starts_with(NO_FUNCTION) => {
                Failure::new(Kind::NotFound, "nothing is known of this program's own functions, so there is nothing to compare")
                    .hint("build it with debug information (-g), or say what to see: bugeye flake --at 'FILE:LINE: EXPR' -- COMMAND")
            }
            _ => failure,
        })?;
        let ending: Option<Ending> = serde_json::from_value(result["exit"].clone()).ok();
        let record = result["record"].as_str().unwrap_or_default().to_string();
        if record.is_empty() {
            return Err(Failure::refused("the run was not recorded, so it can't be compared")
                .hint("see why: bugeye doctor, and the end of the daemon's log"));
        }
        match &ending {
            Some(Ending::Lost { .. }) => {
                let failure = Failure::lost(format!("the debugger was lost in run {number}"));
                return Err(failure.hint(format!("what happened: bugeye events -s {record}")));
            }
            Some(Ending::Exited { code: None }) => {
                return Err(Failure::unsupported("this debugger can't tell with which code a program exits"));
            }
            _ => {}
        }
        let calls = result["calls"].as_array().map_or(0, Vec::len) as u64;
        let passed = ending == Some(Ending::Exited { code: Some(0) });
        Ok(Ran { record, passed, ending, seed, cut: calls >= self.most_calls() })
    }

    /// Runs until both were seen.
    fn repeat(&self, cx: &LocalContext) -> Result<(Vec<Ran>, Option<String>), Failure> {
        let began = Instant::now();
        let whole = Duration::from_secs_f64(self.timeout.unwrap_or(WHOLE).clamp(0.0, 86_400.0));
        let mut ran: Vec<Ran> = Vec::new();
        let mut progress = Progress::default();
        for number in 1..=self.runs {
            let left = whole.saturating_sub(began.elapsed()).as_secs_f64();
            if left <= 0.0 && !ran.is_empty() {
                return Ok((ran, Some(format!("{} s were over", whole.as_secs_f64()))));
            }
            let each = self.run_timeout.unwrap_or(EACH);
            let one = self.run_once(cx, number, each.min(left.max(1.0)))?;
            // One that all time was too short for has not shown anything.
            if one.ending.is_none() && left < each {
                return Ok((ran, Some(format!("{} s were over", whole.as_secs_f64()))));
            }
            ran.push(one);
            let count = |passed| ran.iter().filter(|run| run.passed == passed).count();
            progress.tell(number, count(true), count(false));
            if count(true) > 0 && count(false) > 0 {
                break;
            }
        }
        Ok((ran, None))
    }
}

/// One line that says how it goes.
#[derive(Default)]
struct Progress {
    passing: bool,
}

impl Progress {
    fn tell(&mut self, number: u32, passed: usize, failed: usize) {
        let line = format!("run {number}: {passed} passed, {failed} failed");
        if io::stderr().is_terminal() {
            self.passing = true;
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        } else if number.is_multiple_of(TELLING) {
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.passing {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Local for Flake {
    const NAME: &'static str = "flake";
    const GROUP: Group = Group::Running;
    type Output = Flaked;

    fn run(self, cx: &LocalContext) -> Result<Flaked, Failure> {
        if self.stdin.as_deref() == Some("-") {
            return Err(Failure::usage("--stdin must be a file here: every run reads it from its beginning"));
        }
        let began = Instant::now();
        let (ran, limit) = self.repeat(cx)?;
        let last = |passed| ran.iter().rev().find(|run| run.passed == passed).cloned();
        let (pass, fail) = (last(true), last(false));
        let count = |passed| u32::try_from(ran.iter().filter(|run| run.passed == passed).count()).unwrap_or(u32::MAX);
        let (passed, failed) = (count(true), count(false));
        let mut flaked = Flaked {
            passed,
            failed,
            seen: self.seen(),
            runs: ran,
            pass,
            fail,
            diff: None,
            seconds: began.elapsed().as_secs_f64(),
            notes: limit.into_iter().collect(),
            next: Vec::new(),
        };
        flaked.explain(&self, cx)?;
        Ok(flaked)
    }
}

impl Flaked {
    fn explain(&mut self, flake: &Flake, cx: &LocalContext) -> Result<(), Failure> {
        let command = flake.command.join(" ");
        let (Some(pass), Some(fail)) = (&self.pass, &self.fail) else {
            self.next = match (&self.pass, &self.fail) {
                (None, Some(fail)) => vec![
                    format!("it fails every time, so look at one: bugeye run -- {command}"),
                    format!("what happened: bugeye events -s {}", fail.record),
                ],
                _ if !self.notes.is_empty() => vec![format!("more time: bugeye flake --timeout 1h -- {command}")],
                _ => vec![
                    format!("more runs: bugeye flake --runs {} -- {command}", flake.runs.saturating_mul(10)),
                    "what decides may be elsewhere: another seed (--seed-env PYTHONHASHSEED), other input, load on the \
                     machine"
                        .into(),
                ],
            };
            return Ok(());
        };
        let state = super::events::settled(cx)?;
        let load = |run: &Ran| {
            Head::load(&read::root(&state).join(&run.record))
                .ok_or_else(|| Failure::not_found(format!("the record {} is gone", run.record)))
        };
        let ignore = cx.config.diff_ignore().into_iter().chain(flake.ignore.iter().cloned()).collect();
        let wishes = Wishes { ignore, ..Wishes::default() };
        let diff = match runs(&load(pass)?, &load(fail)?, wishes, Manner::default()) {
            Ok(diff) => diff,
            // Both outcomes were seen, and that is worth telling.
            Err(failure) if failure.kind == Kind::NotFound => {
                self.notes.push(failure.message);
                self.next = failure.hints;
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        if pass.cut || fail.cut {
            let most = flake.most_calls();
            self.notes
                .push(format!("only the first {most} calls of a run are recorded: choose them with --calls GLOB"));
        }
        if diff.first_value_diff.is_none() && diff.first_path_diff.is_none() {
            self.next.push(format!(
                "what was recorded is the same; see more: bugeye flake --at 'FILE:LINE: EXPR' -- {command}"
            ));
        }
        self.next.push(format!("again: bugeye diff {} {}", pass.record, fail.record));
        if let Some(seed) = &fail.seed {
            self.next.push(format!("the failure: bugeye run --env {seed} -- {command}"));
        }
        self.diff = Some(Box::new(diff));
        Ok(())
    }
}

/// `A passed: 20261115-214131-otter (SEED=3), exited: code 0`
fn run_line(name: &str, run: &Ran) -> String {
    let seed = run.seed.as_deref().map(|seed| format!(" ({})", quoted(seed))).unwrap_or_default();
    let ending = run.ending.as_ref().map_or_else(|| "it did not end in time".into(), ending_line);
    format!("{name} {}: {}{seed}, {ending}", if run.passed { "passed" } else { "failed" }, run.record)
}

impl Render for Flaked {
    fn render(&self, page: &mut Page) {
        let count = self.runs.len();
        let runs = if count == 1 { "run" } else { "runs" };
        let (passed, failed) = (self.passed, self.failed);
        let seen = quoted(&self.seen);
        page.line(format!("{count} {runs}: {passed} passed, {failed} failed, in {:.1} s ({seen})", self.seconds));
        if let (Some(pass), Some(fail)) = (&self.pass, &self.fail) {
            page.line(run_line("A", pass));
            page.line(run_line("B", fail));
            if let Some(diff) = &self.diff {
                diff.explain(page);
            }
        } else if let Some(run) = self.pass.as_ref().or(self.fail.as_ref()) {
            page.line(run_line("the last", run));
        }
        for note in &self.notes {
            page.line(format!("note: {}", quoted(note)));
        }
        for next in &self.next {
            page.line(format!("next: {}", quoted(next)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_a_trace_of_what_was_asked_for() {
        let flake = Flake { command: vec!["./a".into(), "-x".into()], runs: 5, ..Flake::default() };
        let (words, seed) = flake.words(3, 60.0);
        assert!(
            words.join(" ").starts_with("trace --to-end --calls * --max-calls 10000 --timeout 60.000 "),
            "{words:?}"
        );
        assert_eq!(words[words.len() - 3..], ["--", "./a", "-x"]);
        assert_eq!((seed, flake.seen().as_str()), (None, "calls of *"));
        let flake = Flake { at: vec!["a.c:3: n".into()], seed_env: Some("SEED".into()), ..flake };
        let (words, seed) = flake.words(3, 60.0);
        assert!(words.join(" ").starts_with("trace --to-end --at a.c:3: n --timeout"), "{words:?}");
        assert_eq!((seed.as_deref(), flake.seen().as_str()), (Some("SEED=3"), "a.c:3: n"));
    }
}
