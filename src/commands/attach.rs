//! `attach`: take hold of a running process.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::Report;
use super::start::launch;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::hub::launch::Blueprint;
use crate::model::View;
use crate::session::{Op, Resume, Wait};

/// Take hold of a running process and stop it
///
/// The process stays the user's: `stop`, `detach` and the daemon's end let it go on.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Attach {
    /// The process id.
    #[arg(value_name = "PID")]
    pub pid: u32,
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
}

impl Command for Attach {
    const NAME: &'static str = "attach";
    const GROUP: Group = Group::Sessions;
    const SPAWNS: bool = true;
    type Output = Report;

    async fn run(self, cx: Context) -> Result<Report, Failure> {
        let view = View::default();
        let blueprint = Blueprint {
            words: vec!["attach".into(), self.pid.to_string()],
            attach: Some(self.pid),
            adapter: self.adapter,
            cwd: cx.caller.cwd.clone(),
            env: cx.caller.env.clone().unwrap_or_default(),
            umask: cx.caller.umask,
            stdin: None,
            name: self.name,
            stop_on_entry: false,
            record: false,
            breaks: Vec::new(),
        };
        let report = launch(&cx, blueprint, None, view).await?;
        if !self.go_on || report.stop.is_none() {
            return Ok(report);
        }
        let wait = Wait { limit: std::time::Duration::ZERO, view };
        Report::of(&cx, Op::Resume { how: Resume::Continue, thread: None, wait }, view).await
    }
}
