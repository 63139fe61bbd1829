//! `completions`: the script with which a shell completes Bugeye's commands.

use clap::{Args, ValueEnum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Group, Local};
use crate::cli::{self, LocalContext};
use crate::failure::Failure;
use crate::render::{Page, Render};

/// Print a completion script for a shell: `source <(bugeye completions bash)`.
#[derive(Debug, Args, Serialize, Deserialize, JsonSchema)]
pub struct Completions {
    /// The shell that will read it.
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell")]
    PowerShell,
    Elvish,
}

impl From<Shell> for clap_complete::Shell {
    fn from(shell: Shell) -> Self {
        match shell {
            Shell::Bash => Self::Bash,
            Shell::Zsh => Self::Zsh,
            Shell::Fish => Self::Fish,
            Shell::PowerShell => Self::PowerShell,
            Shell::Elvish => Self::Elvish,
        }
    }
}

/// A script, to be read by a shell.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Script {
    pub shell: Shell,
    pub script: String,
}

impl Local for Completions {
    const NAME: &'static str = "completions";
    const GROUP: Group = Group::Around;
    type Output = Script;

    fn run(self, _cx: &LocalContext) -> Result<Script, Failure> {
        let mut bytes = Vec::new();
        clap_complete::generate(clap_complete::Shell::from(self.shell), &mut cli::command(), "bugeye", &mut bytes);
        Ok(Script { shell: self.shell, script: String::from_utf8_lossy(&bytes).into_owned() })
    }
}

impl Render for Script {
    fn render(&self, page: &mut Page) {
        page.line(self.script.trim_end());
    }
}
