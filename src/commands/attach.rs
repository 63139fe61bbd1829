//! `attach`: take hold of a running process.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{Report, WaitArgs, parse_seconds};
use super::start::launch;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::hub::attach::Aim;
use crate::hub::launch::Blueprint;
use crate::model::View;
use crate::session::{Op, Resume, Wait};

/// Take hold of a running program and stop it
///
/// TARGET is a process id, the name of a process, or HOST:PORT where a debugger's server waits (gdbserver, lldb-server,
/// `python -m debugpy --listen`, `dlv --headless` and the like). The program stays the user's: `stop`, `detach` and the
/// daemon's end let it go on.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Attach {
    /// The process id, the process's name, or HOST:PORT.
    #[arg(value_name = "TARGET", required_unless_present = "wait_for")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Wait for a new process of this name instead.
    #[arg(long, value_name = "NAME", conflicts_with = "target")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_for: Option<String>,
    /// Read the symbols from this file.
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The debug adapter to use.
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// Do not stop it: let it run until a breakpoint.
    #[arg(long = "continue")]
    #[serde(default)]
    pub go_on: bool,
    /// A name for the session.
    #[arg(long)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How long to wait for the process (5s, 500ms, 2m; default 25s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds, requires = "wait_for")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<f64>,
}

impl Command for Attach {
    const NAME: &'static str = "attach";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Apart;
    const SPAWNS: bool = true;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let wait = WaitArgs { wait: self.wait };
        let aim = match (&self.wait_for, &self.target) {
            (Some(name), _) => Aim::WaitFor { name: name.clone(), limit: wait.to_wait(view).limit },
            (None, target) => Aim::parse(target.as_deref().unwrap_or_default())?,
        };
        let named = self.wait_for.or(self.target).unwrap_or_default();
        let symbols = self.program.map(|file| cx.caller.cwd.join(file));
        if let Some(file) = symbols.as_ref().filter(|file| !file.is_file()) {
            return Err(Failure::not_found(format!("there is no file {}", file.display())));
        }
        let blueprint = Blueprint {
            words: vec!["attach".into(), named],
            aim,
            symbols,
            adapter: self.adapter,
            cwd: cx.caller.cwd.clone(),
            env: cx.caller.env.clone().unwrap_or_default(),
            umask: cx.caller.umask,
            name: self.name,
            ..Blueprint::default()
        };
        let mut report = launch(&cx, blueprint, None, view).await?;
        report.notes.extend(wait.note());
        if !self.go_on || report.stop.is_none() {
            return Ok(report);
        }
        let wait = Wait { limit: std::time::Duration::ZERO, view };
        Report::of(&cx, Op::Resume { how: Resume::Continue, thread: None, wait }, view).await
    }
}
