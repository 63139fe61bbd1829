//! `input`: write to the program's standard input.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Done, Group};
use crate::failure::Failure;
use crate::hub::Context;

/// Write to the program's standard input
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Input {
    /// The text; a newline is added. One that begins with a dash comes after `--`.
    #[arg(value_name = "TEXT", required_unless_present = "eof", allow_negative_numbers = true)]
    #[serde(default)]
    pub words: Vec<String>,
    /// End the input, after the text if there is any.
    #[arg(long)]
    #[serde(default)]
    pub eof: bool,
    /// Send the text without a newline.
    #[arg(long, short = 'n')]
    #[serde(default)]
    pub no_newline: bool,
}

impl Command for Input {
    const NAME: &'static str = "input";
    const GROUP: Group = Group::Looking;
    type Output = Done;

    async fn run(self, cx: Context) -> Result<Done, Failure> {
        let live = cx.session()?;
        if !live.state().is_live() {
            return Err(Failure::wrong_state("the program has ended").hint("run it again: bugeye restart"));
        }
        let mut sent = 0;
        if !self.words.is_empty() {
            let mut text = self.words.join(" ");
            if !self.no_newline {
                text.push('\n');
            }
            sent = text.len();
            live.handle.input(text.into_bytes()).await?;
        }
        if self.eof {
            live.handle.end_input().await?;
        }
        Ok(Done::new(match (sent, self.eof) {
            (0, true) => "ended the program's input".to_string(),
            (sent, true) => format!("sent {sent} bytes and ended the program's input"),
            (sent, false) => format!("sent {sent} bytes"),
        }))
    }
}
