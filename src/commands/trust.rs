//! `trust`: what a workspace's launch configurations may do beside starting a program.

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::configs::lines;
use super::{Group, Local};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::render::{Page, Render, quoted};
use crate::workspace::{Files, Standing, Trust as Store};

/// Show what the launch configurations here would run, and allow it
///
/// Tasks before a program, files of variables and commands of the debugger are left alone until the workspace is
/// trusted. Trust is for the files as they are: any change ends it.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// Allow what is shown.
    #[arg(long, short, conflicts_with_all = ["list", "remove"])]
    #[serde(default)]
    pub yes: bool,
    /// List the workspaces that are trusted.
    #[arg(long, conflicts_with = "remove")]
    #[serde(default)]
    pub list: bool,
    /// Trust this workspace no more.
    #[arg(long)]
    #[serde(default)]
    pub remove: bool,
    /// Another workspace's folder.
    #[arg(value_name = "FOLDER")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// What is allowed, or would be.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TrustReport {
    /// What happened, in a sentence.
    pub message: String,
    /// What configurations do beside starting a program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The workspaces that are trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
}

/// What one configuration does.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Need {
    pub config: String,
    pub what: Vec<String>,
}

impl Render for TrustReport {
    fn render(&self, page: &mut Page) {
        for need in &self.needs {
            page.line(format!("{}:", quoted(&need.config)));
            for what in &need.what {
                page.line(format!("  {}", quoted(what)));
            }
        }
        for folder in &self.trusted {
            page.line(quoted(folder));
        }
        page.line(&self.message);
    }
}

impl Local for Trust {
    const NAME: &'static str = "trust";
    const GROUP: Group = Group::Around;
    type Output = TrustReport;

    fn run(self, cx: &LocalContext) -> Result<TrustReport, Failure> {
        let report = |message: String| TrustReport { message, needs: Vec::new(), trusted: Vec::new() };
        let mut store = Store::load(&cx.paths);
        if self.list {
            let folders = store.entries.iter().map(|entry| entry.files.folder.to_string_lossy().into_owned());
            let trusted: Vec<String> = folders.collect();
            let message = if trusted.is_empty() { "no workspace is trusted" } else { "trusted as they were" };
            return Ok(TrustReport { trusted, ..report(message.into()) });
        }
        let cwd = std::env::current_dir().map_err(|error| Failure::io("find the current directory", &error))?;
        let from = self.folder.map_or_else(|| cwd.clone(), |folder| cwd.join(PathBuf::from(folder)));
        if self.remove {
            // A folder whose files are gone can still be forgotten.
            let known =
                from.ancestors().find(|folder| store.entries.iter().any(|entry| entry.files.folder == **folder));
            let Some(known) = known.map(std::path::Path::to_path_buf) else {
                return Err(
                    Failure::not_found(format!("{} is not trusted", from.display())).hint("bugeye trust --list")
                );
            };
            store.remove(&known);
            store.save(&cx.paths)?;
            return Ok(report(format!("{} is trusted no more", known.display())));
        }
        let files = Files::find(&from)?;
        let needs = lines(&files)?.into_iter().filter(|line| !line.needs_trust.is_empty());
        let needs: Vec<Need> = needs.map(|line| Need { config: line.name, what: line.needs_trust }).collect();
        let folder = quoted(&files.folder.to_string_lossy());
        let standing = store.standing(&files);
        let message = match (self.yes, needs.is_empty(), standing) {
            (_, true, _) => format!("{folder}: nothing needs trust"),
            (true, ..) => {
                store.add(files, crate::store::write::now_ms());
                store.save(&cx.paths)?;
                format!("{folder} is trusted with that, until its files change")
            }
            (false, _, Standing::Trusted) => format!("{folder} is trusted with that"),
            (false, _, Standing::Changed) => {
                format!("{folder} has changed since it was trusted; to allow what is shown: bugeye trust --yes")
            }
            (false, _, Standing::Unknown) => {
                format!("{folder} is not trusted; to allow what is shown: bugeye trust --yes")
            }
        };
        Ok(TrustReport { needs, ..report(message) })
    }
}
