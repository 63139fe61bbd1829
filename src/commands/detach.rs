//! `detach`: let the program go on without the debugger.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use std::time::Duration;

use super::{Command, Done, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::hub::attach::Foreign;
use crate::session::Op;

/// Let the program go on without the debugger
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Detach {}

impl Command for Detach {
    const NAME: &'static str = "detach";
    const GROUP: Group = Group::Sessions;
    type Output = Done;

    async fn run(self, cx: Context) -> Result<Done, Failure> {
        let live = cx.session()?;
        let pid = live.handle.snapshot.borrow().pid;
        cx.ask(Op::Detach).await?;
        let mut finished = live.handle.finished.clone();
        let _ = tokio::time::timeout(Duration::from_secs(8), finished.wait_for(|done| *done)).await;
        if let Some(Foreign::Address(address)) = &live.held_of {
            return Ok(Done::new(format!("let go: the program is left to the server at {address}")));
        }
        let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
        Ok(Done::new(format!("let go: the program{pid} runs on without the debugger")))
    }
}
