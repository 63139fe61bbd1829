//! `use`: make a session the one that commands from here are about.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Done, Group, Past};
use crate::failure::Failure;
use crate::hub::{Context, Live};

/// Make a session the one that commands from here are about
///
/// An agent's session is controlled by one at a time: a person takes it by using it, an agent from another with `--take`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Use {
    /// A session's id or name.
    #[arg(value_name = "ID", required_unless_present_any = ["take", "release"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Take the control of an agent's session from another agent.
    #[arg(long)]
    #[serde(default)]
    pub take: bool,
    /// Give the control of an agent's session up.
    #[arg(long, conflicts_with = "take")]
    #[serde(default)]
    pub release: bool,
}

impl Use {
    fn control(&self, cx: &Context, live: &Live) -> Result<Done, Failure> {
        if !live.adapter.quirks.agents {
            return Err(Failure::unsupported(format!("{} is a program: anybody may control it", live.alias)));
        }
        if !live.state().is_live() {
            return Err(Failure::wrong_state(format!("{} has ended", live.alias)));
        }
        live.spares(&cx.caller)?;
        if self.release {
            live.release(&cx.caller)?;
            return Ok(Done::new(format!("{} is anybody's to control now", live.alias)));
        }
        live.take(&cx.caller, true)?;
        cx.hub.choose(&cx.caller, &live.alias);
        Ok(Done::new(format!("{} is controlled from here now", live.alias)))
    }
}

impl Command for Use {
    const NAME: &'static str = "use";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Apart;
    type Output = Done;

    async fn run(self, cx: Context) -> Result<Done, Failure> {
        let live = match &self.id {
            Some(id) => cx.hub.named(id)?,
            None => cx.session()?,
        };
        cx.about(&live);
        if self.take || self.release {
            return self.control(&cx, &live);
        }
        cx.hub.choose(&cx.caller, &live.alias);
        Ok(Done::new(format!("commands from here are about {} now", live.alias)))
    }
}
