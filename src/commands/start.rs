//! `start`: a program under the debugger, held before it begins.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::Report;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::hub::attach::Aim;
use crate::hub::launch::{Blueprint, variable};
use crate::model::View;
use crate::session::{Answer, Wait};

/// Start a program under the debugger and hold it before it begins
///
/// The program is checked first, then held at the earliest point its debugger allows; breakpoints are set, and each is
/// answered as verified, moved or pending. `bugeye continue` lets it go.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Start {
    #[command(flatten)]
    #[serde(flatten)]
    pub launch: LaunchArgs,
}

/// What to start, and how.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct LaunchArgs {
    /// The program; its arguments follow after `--`.
    #[arg(value_name = "PROGRAM")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The program's arguments, or a whole command line (`-- python app.py 3`).
    #[arg(last = true, value_name = "ARGS")]
    #[serde(default)]
    pub args: Vec<String>,
    /// The debug adapter to use (lldb-dap, debugpy).
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
    #[serde(default)]
    pub env: Vec<String>,
    /// Set a breakpoint for this session alone (file:line, function).
    #[arg(long = "break", short = 'b', value_name = "PLACE")]
    #[serde(default)]
    pub breaks: Vec<String>,
    /// Look at what is left of a program that crashed: PROGRAM is the one it is of, if the file does not tell.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["args", "stdin", "cwd", "env", "stop_on_entry"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core: Option<String>,
    /// Stop at the program's beginning (main, or the first line).
    #[arg(long)]
    #[serde(default)]
    pub stop_on_entry: bool,
    /// Record it from its beginning, to go back with `back` and `reverse-continue` (gdb; thousands of times slower).
    #[arg(long)]
    #[serde(default)]
    pub record: bool,
    /// A name for the session.
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl LaunchArgs {
    pub fn blueprint(self, cx: &Context) -> Result<Blueprint, Failure> {
        let base = &cx.caller.cwd;
        let cwd = self.cwd.map_or_else(|| base.clone(), |cwd| base.join(cwd));
        let mut env = cx.caller.env.clone().unwrap_or_default();
        for setting in self.env {
            let Some((name, value)) = setting.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(Failure::usage(format!("`{setting}` is no variable; write --env NAME=VALUE")));
            };
            env.retain(|(known, _)| known != name);
            env.push((name.into(), value.into()));
        }
        if variable(&env, "PWD").is_some() {
            env.retain(|(name, _)| name != "PWD");
            env.push(("PWD".into(), cwd.to_string_lossy().into_owned()));
        }
        // A program is named from where the caller stands, wherever it is to run.
        let program = self.program.map(|program| match base.join(&program) {
            path if program.contains('/') || path.is_file() => path.to_string_lossy().into_owned(),
            _ => program,
        });
        if let Some(core) = self.core {
            let core = std::path::absolute(base.join(&core)).unwrap_or_else(|_| PathBuf::from(core));
            let words = program.iter().cloned().chain(["--core".into(), core.to_string_lossy().into_owned()]);
            return Ok(Blueprint {
                words: words.collect(),
                aim: Aim::Core(core),
                symbols: program.map(PathBuf::from),
                adapter: self.adapter,
                cwd,
                env,
                umask: cx.caller.umask,
                name: self.name,
                breaks: self.breaks,
                ..Blueprint::default()
            });
        }
        let mut words: Vec<String> = program.into_iter().collect();
        words.extend(self.args);
        Ok(Blueprint {
            words,
            adapter: self.adapter,
            stdin: self.stdin.map(|file| std::path::absolute(base.join(&file)).unwrap_or_else(|_| PathBuf::from(file))),
            cwd,
            env,
            umask: cx.caller.umask,
            name: self.name,
            stop_on_entry: self.stop_on_entry,
            record: self.record,
            breaks: self.breaks,
            ..Blueprint::default()
        })
    }
}

/// Starts what the blueprint says and tells where it is.
pub async fn launch(cx: &Context, blueprint: Blueprint, run: Option<Wait>, view: View) -> Result<Report, Failure> {
    let hub = cx.hub.clone();
    let (live, answer) = hub.launch(cx, blueprint, run).await?;
    let table = hub.wishes(&live.project);
    let wishes = table.for_session(&live.alias);
    let mut report = match answer {
        Answer::Outcome(outcome) => Report::from_outcome(cx, &live, outcome, view),
        _ => Report::held(&live),
    };
    let bindings = live.handle.snapshot.borrow().hits.clone();
    let bound = |id: &u32| bindings.get(id).cloned();
    report.breakpoints =
        wishes.into_iter().map(|wish| crate::model::BreakpointReport { binding: bound(&wish.id), wish }).collect();
    if run.is_some() {
        // The stop says where the program is; only what will not stop it is news.
        report.breakpoints.retain(|report| {
            report.binding.as_ref().is_some_and(|binding| {
                matches!(binding.state, crate::model::BindingState::Pending | crate::model::BindingState::Moved)
            })
        });
    }
    report.notes.extend(live.notes.iter().cloned());
    Ok(report)
}

impl Command for Start {
    const NAME: &'static str = "start";
    const GROUP: Group = Group::Sessions;
    const SPAWNS: bool = true;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let blueprint = self.launch.blueprint(&cx)?;
        launch(&cx, blueprint, None, View::default()).await
    }
}
