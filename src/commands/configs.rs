//! `configs`: the launch configurations of the editor's files.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Group, Local};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::launch_config::Needs;
use crate::render::{Page, Render, quoted};
use crate::workspace::{Files, Standing, Trust};

/// List the launch configurations of `.vscode/launch.json` and `.zed/debug.json`
///
/// `bugeye start --config NAME` starts one. What one would run beside its program needs `bugeye trust` first.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Configs {}

/// The launch configurations of a workspace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConfigList {
    pub folder: String,
    /// `trusted`, `changed` since it was, or `unknown`.
    pub trust: String,
    pub configs: Vec<ConfigLine>,
}

/// One configuration, or a compound of several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ConfigLine {
    pub name: String,
    /// The editor's word for the debugger.
    #[serde(rename = "type")]
    pub kind: String,
    pub request: String,
    /// The program, module or address, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The parts of a compound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<String>,
    /// What it does only where it is trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs_trust: Vec<String>,
}

/// What needs trust, in words.
#[must_use]
pub fn told(needs: &Needs) -> Vec<String> {
    let commands = needs.commands.iter().map(|command| format!("runs: {command}"));
    let file = needs.env_file.iter().map(|file| format!("reads: {file}"));
    let fields = (!needs.fields.is_empty()).then(|| format!("tells the debugger: {}", needs.fields.join(", ")));
    commands.chain(file).chain(fields).collect()
}

/// The configurations of a workspace, one line each.
pub fn lines(files: &Files) -> Result<Vec<ConfigLine>, Failure> {
    let workspace = files.workspace()?;
    let field = |config: &crate::launch_config::Config| {
        let names = ["program", "module", "mainClass", "script", "processId", "connect", "port", "runtimeExecutable"];
        let found = names.iter().find_map(|name| config.fields.get(*name))?;
        Some(found.as_str().map_or_else(|| found.to_string(), Into::into))
    };
    let configs = workspace.configs.iter().map(|config| ConfigLine {
        name: config.name.clone(),
        kind: config.kind.clone(),
        request: config.request.clone(),
        program: field(config),
        parts: Vec::new(),
        needs_trust: told(&workspace.needs(config)),
    });
    let compounds = workspace.compounds.iter().map(|compound| ConfigLine {
        name: compound.name.clone(),
        kind: "compound".into(),
        request: "launch".into(),
        program: None,
        parts: compound.configs.clone(),
        needs_trust: compound.task.iter().map(|task| format!("runs: the task `{task}`")).collect(),
    });
    Ok(configs.chain(compounds).collect())
}

impl Render for ConfigList {
    fn render(&self, page: &mut Page) {
        if self.configs.is_empty() {
            page.line(format!("no launch configurations in {}", quoted(&self.folder)));
        }
        for config in &self.configs {
            let what = match &config.program {
                Some(program) => format!(" {}", quoted(program)),
                None if config.parts.is_empty() => String::new(),
                None => format!(" {}", quoted(&config.parts.join(", "))),
            };
            let kind = quoted(&config.kind);
            page.line(format!("{}: {kind} {}{what}", quoted(&config.name), quoted(&config.request)));
            for need in &config.needs_trust {
                page.line(format!("  needs trust: {}", quoted(need)));
            }
        }
        let needed = self.configs.iter().any(|config| !config.needs_trust.is_empty());
        match self.trust.as_str() {
            "trusted" => page.line("this workspace is trusted"),
            "changed" if needed => page.line("changed since it was trusted; look again: bugeye trust"),
            _ if needed => page.line("not trusted; look at it and allow it: bugeye trust"),
            _ => {}
        }
    }
}

impl Local for Configs {
    const NAME: &'static str = "configs";
    const GROUP: Group = Group::Sessions;
    type Output = ConfigList;

    fn run(self, cx: &LocalContext) -> Result<ConfigList, Failure> {
        let cwd = std::env::current_dir().map_err(|error| Failure::io("find the current directory", &error))?;
        let files = Files::find(&cwd)?;
        let trust = match Trust::load(&cx.paths).standing(&files) {
            Standing::Trusted => "trusted",
            Standing::Changed => "changed",
            Standing::Unknown => "unknown",
        };
        let configs = lines(&files)?;
        Ok(ConfigList { folder: files.folder.to_string_lossy().into_owned(), trust: trust.into(), configs })
    }
}
