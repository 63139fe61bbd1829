//! The agents that Bugeye can be set up for: where each has its configuration and its skills, and how it is found.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::json::{Format, Shape};
use crate::failure::Failure;
use crate::find::on_path;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    Claude,
    Codex,
    Gemini,
    Cursor,
    Copilot,
    Opencode,
    /// Any agent that reads AGENTS.md.
    AgentsMd,
}

/// For this project, or for all that the user does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    Project,
    User,
}

/// How our part of a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Json(Format),
    Toml,
    /// A block of text between two marks.
    Text,
}

/// A configuration file; the first of these that is there.
#[derive(Debug, Clone)]
pub struct Target {
    pub files: Vec<PathBuf>,
    pub kind: Kind,
}

/// What is written for an agent.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The project's folder, or the user's.
    pub root: PathBuf,
    pub targets: Vec<Target>,
    /// The folder of the skill.
    pub skill: Option<PathBuf>,
    /// What the user should know.
    pub note: Option<&'static str>,
}

/// The folders and variables that decide where things are.
#[derive(Debug, Clone)]
pub struct World {
    pub project: Option<PathBuf>,
    pub home: PathBuf,
    pub env_path: String,
    pub variable: fn(&str) -> Option<PathBuf>,
}

const SERVERS: Format = Format { key: "mcpServers", shape: Shape::Plain };
const COPILOT: Format = Format { key: "mcpServers", shape: Shape::Tools };
const EDITOR: Format = Format { key: "servers", shape: Shape::Stdio };
const OPENCODE: Format = Format { key: "mcp", shape: Shape::Local };

impl Agent {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
            Self::AgentsMd => "agents-md",
        }
    }

    /// What is written for it.
    ///
    /// # Errors
    /// Usage, where there is no such file.
    pub fn setting(self, scope: Scope, world: &World) -> Result<Setting, Failure> {
        match scope {
            Scope::Project => {
                let root = world.project.clone().ok_or_else(|| Failure::internal("no project's folder"))?;
                Ok(self.in_project(root))
            }
            Scope::User => self.for_user(world),
        }
    }

    fn in_project(self, root: PathBuf) -> Setting {
        let json = |name: &str, format| Target { files: vec![root.join(name)], kind: Kind::Json(format) };
        let (targets, skills, note) = match self {
            Self::Claude => (
                vec![json(".mcp.json", SERVERS)],
                ".claude",
                "Claude Code asks once whether the project's server may run",
            ),
            Self::Codex => {
                let config = Target { files: vec![root.join(".codex/config.toml")], kind: Kind::Toml };
                (vec![config], ".agents", "Codex reads .codex/config.toml only in a project that it trusts")
            }
            Self::Gemini => (
                vec![json(".gemini/settings.json", SERVERS)],
                ".gemini",
                "Gemini CLI runs it only in a folder that it trusts",
            ),
            Self::Cursor => (
                vec![json(".cursor/mcp.json", SERVERS)],
                ".cursor",
                "Cursor wants the server switched on in its settings",
            ),
            // The editor reads the first, the command line the second.
            Self::Copilot => (vec![json(".vscode/mcp.json", EDITOR), json(".github/mcp.json", COPILOT)], ".github", ""),
            Self::Opencode => {
                let names = ["opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"];
                let files = names.map(|name| root.join(name)).to_vec();
                (vec![Target { files, kind: Kind::Json(OPENCODE) }], ".opencode", "")
            }
            Self::AgentsMd => (vec![Target { files: vec![root.join("AGENTS.md")], kind: Kind::Text }], "", ""),
        };
        let skill = (!skills.is_empty()).then(|| root.join(skills).join("skills").join(super::NAME));
        Setting { targets, skill, note: (!note.is_empty()).then_some(note), root }
    }

    fn for_user(self, world: &World) -> Result<Setting, Failure> {
        let home = &world.home;
        let folder = |variable: &str, name: &str| (world.variable)(variable).unwrap_or_else(|| home.join(name));
        let one = |file: PathBuf, kind| vec![Target { files: vec![file], kind }];
        let (targets, skills) = match self {
            Self::Claude => {
                // With its folder elsewhere, the file is in it and not beside it.
                let file = (world.variable)("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.clone()).join(".claude.json");
                (one(file, Kind::Json(SERVERS)), folder("CLAUDE_CONFIG_DIR", ".claude"))
            }
            Self::Codex => (one(folder("CODEX_HOME", ".codex").join("config.toml"), Kind::Toml), home.join(".agents")),
            Self::Gemini => (one(home.join(".gemini/settings.json"), Kind::Json(SERVERS)), home.join(".gemini")),
            Self::Cursor => (one(home.join(".cursor/mcp.json"), Kind::Json(SERVERS)), home.join(".cursor")),
            Self::Copilot => {
                let folder = folder("COPILOT_HOME", ".copilot");
                (one(folder.join("mcp-config.json"), Kind::Json(COPILOT)), folder)
            }
            Self::Opencode => {
                let folder = folder("XDG_CONFIG_HOME", ".config").join("opencode");
                let files = ["opencode.json", "opencode.jsonc", "config.json"].map(|name| folder.join(name)).to_vec();
                (vec![Target { files, kind: Kind::Json(OPENCODE) }], folder)
            }
            Self::AgentsMd => {
                return Err(Failure::usage("AGENTS.md is a project's file: there is none for the user")
                    .hint("bugeye init agents-md --project"));
            }
        };
        let skill = Some(skills.join("skills").join(super::NAME));
        Ok(Setting { root: home.clone(), targets, skill, note: None })
    }

    /// Why this agent seems to be in use here.
    #[must_use]
    pub fn found(self, world: &World) -> Option<String> {
        let (project, home, commands): (&[&'static str], &[&'static str], &[&str]) = match self {
            Self::Claude => (&[".claude", ".mcp.json", "CLAUDE.md"], &[".claude"], &["claude"]),
            Self::Codex => (&[".codex"], &[".codex"], &["codex"]),
            Self::Gemini => (&[".gemini", "GEMINI.md"], &[".gemini"], &["gemini"]),
            Self::Cursor => (&[".cursor", ".cursorrules"], &[".cursor"], &["cursor", "cursor-agent"]),
            Self::Copilot => (
                &[".github/copilot-instructions.md", ".github/mcp.json", ".github/skills", ".vscode/mcp.json"],
                &[".copilot"],
                &["copilot"],
            ),
            Self::Opencode => (&["opencode.json", "opencode.jsonc", ".opencode"], &[".config/opencode"], &["opencode"]),
            Self::AgentsMd => (&["AGENTS.md"], &[], &[]),
        };
        let there = |root: &Path, names: &[&'static str]| names.iter().find(|name| root.join(name).exists()).copied();
        let in_project = world.project.as_deref().and_then(|root| there(root, project));
        in_project
            .map(|name| format!("{name} in this project"))
            .or_else(|| there(&world.home, home).map(|name| format!("~/{name}")))
            .or_else(|| {
                let moved = (world.variable)("XDG_CONFIG_HOME").filter(|_| self == Self::Opencode)?.join("opencode");
                moved.exists().then(|| moved.display().to_string())
            })
            .or_else(|| {
                commands.iter().find_map(|name| on_path(name, &world.env_path)).map(|path| path.display().to_string())
            })
    }
}

/// Marks of a repository: what is in one is one project, however many manifests it has.
const REPOSITORIES: [&str; 3] = [".git", ".hg", ".jj"];

/// The project that a folder is in, if it is in one. The user's own folder is none.
#[must_use]
pub fn project_of(cwd: &Path, home: &Path) -> Option<PathBuf> {
    let mut above = cwd.ancestors().take_while(|folder| *folder != home);
    if let Some(root) = above.find(|folder| REPOSITORIES.iter().any(|mark| folder.join(mark).exists())) {
        return Some(root.to_path_buf());
    }
    let root = crate::hub::places::project_of(cwd);
    let is_marked = crate::hub::places::is_project(&root);
    (is_marked && cwd.ancestors().take_while(|folder| *folder != home).any(|folder| folder == root)).then_some(root)
}
