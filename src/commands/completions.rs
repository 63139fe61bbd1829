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
    #[value(alias = "nu")]
    Nushell,
}

impl Shell {
    fn script(self) -> String {
        fn written(generator: impl clap_complete::Generator) -> String {
            let mut bytes = Vec::new();
            clap_complete::generate(generator, &mut cli::command(), "bugeye", &mut bytes);
            String::from_utf8_lossy(&bytes).into_owned()
        }
        match self {
            Self::Bash => written(clap_complete::Shell::Bash),
            Self::Zsh => written(clap_complete::Shell::Zsh),
            Self::Fish => written(clap_complete::Shell::Fish),
            Self::PowerShell => written(clap_complete::Shell::PowerShell),
            Self::Elvish => written(clap_complete::Shell::Elvish),
            Self::Nushell => written(clap_complete_nushell::Nushell),
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
        Ok(Script { shell: self.shell, script: self.shell.script() })
    }
}

impl Render for Script {
    fn render(&self, page: &mut Page) {
        page.line(self.script.trim_end());
    }
}
