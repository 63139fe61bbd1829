//! `man`: the manual page.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bare, Group};
use crate::cli::{self, LocalContext, print};
use crate::failure::Failure;

/// Print the manual page: `bugeye man | man -l -`
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Man {}

impl Bare for Man {
    const NAME: &'static str = "man";
    const GROUP: Group = Group::Around;

    fn run(self, _cx: &LocalContext) -> Result<u8, Failure> {
        let mut page = Vec::new();
        let failed = |error| Failure::io("write the manual page", &error);
        let command = cli::command().name("bugeye");
        clap_mangen::Man::new(command.clone()).render(&mut page).map_err(failed)?;
        for sub in command.get_subcommands() {
            let man = clap_mangen::Man::new(sub.clone().disable_help_subcommand(true));
            man.render_description_section(&mut page).map_err(failed)?;
            man.render_synopsis_section(&mut page).map_err(failed)?;
            man.render_options_section(&mut page).map_err(failed)?;
        }
        print(&String::from_utf8_lossy(&page))?;
        Ok(0)
    }

    fn prints() -> schemars::Schema {
        super::plain_text("the manual page, as roff")
    }
}
