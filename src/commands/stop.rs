//! `stop`: end the program, its debugger and everything they started.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Done, Group};
use crate::failure::Failure;
use crate::hub::attach::Foreign;
use crate::hub::{Context, Live};

/// End the program, its debugger and everything they started
///
/// A process that was attached to is let go instead, unless `--kill` is given.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Stop {
    /// End every session; of an MCP client, those that it started.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// End a process that was attached to, too.
    #[arg(long)]
    #[serde(default)]
    pub kill: bool,
}

impl Command for Stop {
    const NAME: &'static str = "stop";
    const ALIASES: &'static [&'static str] = &["kill"];
    const GROUP: Group = Group::Sessions;
    type Output = Done;

    async fn run(self, cx: Context) -> Result<Done, Failure> {
        if self.all {
            let sessions = cx.hub.sessions();
            let mine = |live: &Live| cx.caller.client().is_none_or(|client| live.owner == client);
            let live: Vec<_> =
                sessions.into_iter().filter(|live| !*live.handle.finished.borrow() && mine(live)).collect();
            let count = live.iter().filter(|live| live.state().is_live()).count();
            live.iter().for_each(|live| cx.concerns(live));
            let ends: Vec<_> = live
                .iter()
                .cloned()
                .map(|live| {
                    let hub = cx.hub.clone();
                    tokio::spawn(async move { hub.end(&live, self.kill).await })
                })
                .collect();
            for end in ends {
                let _ = end.await;
            }
            return Ok(Done::new(format!("ended {count} session{}", if count == 1 { "" } else { "s" })));
        }
        let live = cx.session()?;
        let was_live = live.state().is_live();
        let ends_too = self.kill || live.handle.snapshot.borrow().ends_with_us;
        let foreign = live.held_of.clone().filter(|_| !ends_too);
        cx.hub.end(&live, self.kill).await;
        Ok(Done::new(match foreign {
            _ if !was_live => format!("{} had ended already; it is forgotten now", live.alias),
            // Some servers end with their client, and their program with them.
            Some(Foreign::Address(address)) => {
                format!("{} ended; the program is left to the server at {address}", live.alias)
            }
            Some(Foreign::Process(pid)) => format!("{} ended; process {pid} goes on", live.alias),
            None => format!("{} ended", live.alias),
        }))
    }
}
