//! Tracing for programs that use Bugeye as a library: the `bugeye` command is run, and its answer read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::shape;
use crate::commands::traced::Traced;
use crate::failure::Failure;
use crate::wire::Answer;

/// What to see at a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchPoint {
    /// A variable or an expression; one with a comma that stands in no brackets is read as two.
    pub var: String,
    /// `file:line`, or a function.
    pub log_location: String,
}

impl WatchPoint {
    #[must_use]
    pub fn new(var: impl Into<String>, log_location: impl Into<String>) -> Self {
        Self { var: var.into(), log_location: log_location.into() }
    }
}

/// What an expression was at one hit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    pub var: String,
    pub value: String,
}

/// What was seen, by the places as they were asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeFeedback {
    /// An entry for each expression of each hit.
    pub watchpoints: BTreeMap<String, Vec<Observed>>,
    /// The way to each hit: `work() -> main() @ loop.c:6`.
    pub breakpoints: BTreeMap<String, Vec<String>>,
    /// What ended it before the program's own end, if anything did.
    #[serde(skip)]
    pub limit: Option<String>,
    /// What else is to be known: that there were more hits than are told, or that a condition failed.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// How to run the program. The times are those of `bugeye trace`.
#[derive(Debug, Clone, Default)]
pub struct Options {
    pub cwd: Option<PathBuf>,
    /// Variables on top of this process's own.
    pub env: Vec<(String, String)>,
    pub adapter: Option<String>,
    pub launch_timeout: Option<Duration>,
    pub first_timeout: Option<Duration>,
    pub exit_timeout: Option<Duration>,
    pub timeout: Option<Duration>,
    pub max_hits: Option<u64>,
    /// The `bugeye` to run; else the one beside this process's own file, or on the `PATH`.
    pub bugeye: Option<PathBuf>,
}

/// Runs `command` once under its debugger and tells what `watchpoints` were each time their places were reached, and the
/// way to each hit of those places and of `places`.
///
/// A place that was never reached has an empty list; a value that can't be read is `<unavailable>`. A limit of time ends
/// the program, and what was seen until then is told.
///
/// ```
/// use bugeye::trace::{Options, WatchPoint, runtime_feedback};
///
/// let folder = std::env::temp_dir().join(format!("bugeye-doc-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// std::fs::write(folder.join("loop.py"), "total = 0\nfor i in range(3):\n    total += i\n")?;
/// let options = Options { cwd: Some(folder.clone()), ..Options::default() };
/// # let target = option_env!("CARGO_TARGET_DIR").unwrap_or(concat!(env!("CARGO_MANIFEST_DIR"), "/target"));
/// # let options = Options { bugeye: Some(std::path::Path::new(target).join("debug/bugeye")), ..options };
/// # let paths = bugeye::paths::Paths::resolve()?;
/// # let was_running = bugeye::client::connect(&paths)?.is_some();
///
/// let watched = [WatchPoint::new("i", "loop.py:3"), WatchPoint::new("total", "loop.py:3")];
/// let seen = runtime_feedback(&["python3", "loop.py"], None, &watched, &["loop.py:1"], &options)?;
///
/// let values: Vec<&str> = seen.watchpoints["loop.py:3"].iter().map(|seen| seen.value.as_str()).collect();
/// assert_eq!(values, ["0", "0", "1", "0", "2", "1"]);
/// assert_eq!(seen.breakpoints["loop.py:1"], ["<module>() @ loop.py:1"]);
/// # std::fs::remove_dir_all(&folder)?;
/// # if !was_running && let Some(mut daemon) = bugeye::client::connect(&paths)? {
/// #     assert!(daemon.end_if_idle()?, "the daemon that was started for this has a session left");
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When the program can't be started, no place can be set, or no `bugeye` is found.
pub fn runtime_feedback<S: AsRef<OsStr>>(
    command: &[S],
    stdin: Option<&[u8]>,
    watchpoints: &[WatchPoint],
    places: &[&str],
    options: &Options,
) -> Result<RuntimeFeedback, Failure> {
    let mut child =
        options.prepared(command, stdin.is_some(), watchpoints, places).spawn().map_err(|error| not_run(&error))?;
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        // Should it end early, its answer says why.
        let _ = pipe.write_all(bytes);
    }
    read(&child.wait_with_output().map_err(|error| Failure::io("wait for bugeye", &error))?)
}

/// As [`runtime_feedback`], for a Tokio runtime.
///
/// # Errors
/// As [`runtime_feedback`].
pub async fn runtime_feedback_async<S: AsRef<OsStr>>(
    command: &[S],
    stdin: Option<&[u8]>,
    watchpoints: &[WatchPoint],
    places: &[&str],
    options: &Options,
) -> Result<RuntimeFeedback, Failure> {
    use tokio::io::AsyncWriteExt as _;
    let prepared = options.prepared(command, stdin.is_some(), watchpoints, places);
    let mut child =
        tokio::process::Command::from(prepared).kill_on_drop(true).spawn().map_err(|error| not_run(&error))?;
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        let _ = pipe.write_all(bytes).await;
    }
    read(&child.wait_with_output().await.map_err(|error| Failure::io("wait for bugeye", &error))?)
}

fn not_run(error: &std::io::Error) -> Failure {
    Failure::io("run bugeye", error).hint("is it installed, and on the PATH?")
}

impl Options {
    fn prepared<S: AsRef<OsStr>>(
        &self,
        command: &[S],
        stdin: bool,
        watchpoints: &[WatchPoint],
        places: &[&str],
    ) -> std::process::Command {
        let mut prepared = std::process::Command::new(self.found());
        prepared.args(["--json", "trace"]);
        for at in wanted(watchpoints, places) {
            prepared.arg("--at").arg(at);
        }
        let times = [
            ("--launch-timeout", self.launch_timeout),
            ("--first-timeout", self.first_timeout),
            ("--exit-timeout", self.exit_timeout),
            ("--timeout", self.timeout),
        ];
        for (flag, time) in times {
            if let Some(time) = time {
                prepared.arg(flag).arg(format!("{}ms", time.as_millis()));
            }
        }
        if let Some(most) = self.max_hits {
            prepared.arg("--max-hits").arg(most.to_string());
        }
        if let Some(adapter) = &self.adapter {
            prepared.arg("--adapter").arg(adapter);
        }
        if let Some(cwd) = &self.cwd {
            prepared.current_dir(cwd);
        }
        if stdin {
            prepared.args(["--stdin", "-"]);
        }
        prepared.envs(self.env.iter().map(|(name, value)| (name, value)));
        prepared.arg("--").args(command);
        prepared.stdin(if stdin { Stdio::piped() } else { Stdio::null() });
        prepared.stdout(Stdio::piped()).stderr(Stdio::piped());
        prepared
    }

    fn found(&self) -> OsString {
        let beside = || {
            let own = std::env::current_exe().ok()?;
            // A test of a Cargo project runs from a folder below its programs.
            own.ancestors().skip(1).take(2).map(|folder| folder.join("bugeye")).find(|file| file.is_file())
        };
        self.bugeye.clone().or_else(beside).map_or_else(|| "bugeye".into(), PathBuf::into_os_string)
    }
}

/// `PLACE: EXPR, EXPR` for each place, in the order they were first named.
fn wanted(watchpoints: &[WatchPoint], places: &[&str]) -> Vec<String> {
    let mut wanted: Vec<(&str, Vec<&str>)> = Vec::new();
    for point in watchpoints {
        match wanted.iter_mut().find(|(place, _)| *place == point.log_location) {
            Some((_, names)) => names.push(&point.var),
            None => wanted.push((&point.log_location, vec![&point.var])),
        }
    }
    for place in places {
        if !wanted.iter().any(|(known, _)| known == place) {
            wanted.push((place, Vec::new()));
        }
    }
    let text = |(place, names): (&str, Vec<&str>)| match names.is_empty() {
        true => place.to_string(),
        false => format!("{place}: {}", names.join(", ")),
    };
    wanted.into_iter().map(text).collect()
}

fn read(output: &Output) -> Result<RuntimeFeedback, Failure> {
    let garbled = |why: &dyn std::fmt::Display| {
        let words = String::from_utf8_lossy(&output.stderr);
        Failure::internal(format!("bugeye's answer can't be read: {why}")).cause(words.trim())
    };
    let answer: Answer = serde_json::from_slice(&output.stdout).map_err(|error| garbled(&error))?;
    if let Some(failure) = answer.error {
        return Err(failure);
    }
    let traced: Traced = serde_json::from_value(answer.result.unwrap_or_default()).map_err(|error| garbled(&error))?;
    let mut feedback: RuntimeFeedback =
        serde_json::from_value(shape::feedback(&traced.places, &traced.hits)).map_err(|error| garbled(&error))?;
    (feedback.limit, feedback.notes) = (traced.limit, traced.notes);
    Ok(feedback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_asked_for_once_and_in_order() {
        let points = [WatchPoint::new("i", "a.c:6"), WatchPoint::new("x", "f"), WatchPoint::new("sum", "a.c:6")];
        assert_eq!(wanted(&points, &["b.c:1", "f"]), ["a.c:6: i, sum", "f: x", "b.c:1"]);
    }

    #[test]
    fn what_is_no_answer_is_a_failure_with_its_words() {
        use std::os::unix::process::ExitStatusExt as _;
        let output = Output {
            status: std::process::ExitStatus::from_raw(256),
            stdout: b"oops".to_vec(),
            stderr: b"no such option".to_vec(),
        };
        let failure = read(&output).unwrap_err();
        assert!(failure.to_string().contains("can't be read"), "{failure}");
    }
}
