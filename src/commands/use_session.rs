//! `use`: make a session the one that commands from here are about.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Done, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;

/// Make a session the one that commands from here are about
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Use {
    /// A session's id or name.
    #[arg(value_name = "ID")]
    pub id: String,
}

impl Command for Use {
    const NAME: &'static str = "use";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Apart;
    type Output = Done;

    async fn run(self, cx: Context) -> Result<Done, Failure> {
        let live = cx.hub.named(&self.id)?;
        cx.about(&live);
        cx.hub.choose(&cx.caller, &live.alias);
        Ok(Done::new(format!("commands from here are about {} now", live.alias)))
    }
}
