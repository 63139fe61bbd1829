//! The editor's files of a workspace on disk, and whether the user trusts them.
//!
//! A launch configuration may have commands run before its program. That is allowed for a folder as its files were when
//! the user looked at them: what was seen is kept, and a file that differs in one byte is not trusted any more.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::launch_config::{FILES, Workspace};
use crate::paths::Paths;

/// A longer file is no launch configuration.
const LARGEST: u64 = 1 << 20;

/// The files of a workspace, as they are now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    pub folder: PathBuf,
    /// Paths below the folder, each with its text.
    pub texts: Vec<(String, String)>,
}

impl Files {
    /// The nearest folder with launch configurations, from `cwd` upwards.
    pub fn find(cwd: &Path) -> Result<Self, Failure> {
        // Tasks alone are no reason to look there.
        let is_launch = |name: &str| !name.ends_with("tasks.json");
        let has_some = |folder: &&Path| FILES.iter().any(|(name, _)| is_launch(name) && folder.join(name).is_file());
        let Some(folder) = cwd.ancestors().find(has_some) else {
            return Err(Failure::not_found("there are no launch configurations here")
                .hint("they are read from .vscode/launch.json and .zed/debug.json, here or above"));
        };
        let mut texts = Vec::new();
        for (name, _) in FILES {
            let path = folder.join(name);
            let Ok(data) = path.metadata() else { continue };
            if !data.is_file() {
                continue;
            }
            if data.len() > LARGEST {
                return Err(Failure::refused(format!("{} is too long", path.display())));
            }
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
            texts.push((name.to_string(), text));
        }
        Ok(Self { folder: folder.to_path_buf(), texts })
    }

    pub fn workspace(&self) -> Result<Workspace, Failure> {
        Workspace::read(&self.texts)
    }
}

/// What the user has looked at and allowed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Trust {
    pub entries: Vec<Trusted>,
}

/// One folder, as it was.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trusted {
    #[serde(flatten)]
    pub files: Files,
    /// When, in milliseconds since 1970.
    pub since: u64,
}

/// How a workspace stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Trusted,
    /// It was, and its files are others now.
    Changed,
    Unknown,
}

impl Trust {
    fn file(paths: &Paths) -> PathBuf {
        paths.state.join("trust.json")
    }

    /// Reads what was allowed. A file that can't be read allows nothing.
    #[must_use]
    pub fn load(paths: &Paths) -> Self {
        let text = std::fs::read_to_string(Self::file(paths)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub fn save(&self, paths: &Paths) -> Result<(), Failure> {
        paths.prepare_state()?;
        let file = Self::file(paths);
        let failed = |error: std::io::Error| Failure::io(format!("write {}", file.display()), &error);
        let new = file.with_extension(format!("{}.new", std::process::id()));
        let text = serde_json::to_string(self).map_err(|error| Failure::internal(error.to_string()))?;
        let mut options = std::fs::OpenOptions::new();
        let written = options.create(true).truncate(true).write(true).mode(0o600).open(&new);
        written.and_then(|mut to| to.write_all(text.as_bytes()).and_then(|()| to.sync_all())).map_err(failed)?;
        std::fs::rename(&new, &file).map_err(failed)
    }

    #[must_use]
    pub fn standing(&self, files: &Files) -> Standing {
        match self.entries.iter().find(|entry| entry.files.folder == files.folder) {
            Some(entry) if entry.files == *files => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }

    pub fn add(&mut self, files: Files, now: u64) {
        self.entries.retain(|entry| entry.files.folder != files.folder);
        self.entries.push(Trusted { files, since: now });
    }

    /// Forgets a folder; says whether it was there.
    pub fn remove(&mut self, folder: &Path) -> bool {
        let before = self.entries.len();
        self.entries.retain(|entry| entry.files.folder != folder);
        self.entries.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_ends_with_any_change() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths {
            runtime: folder.path().join("r"),
            state: folder.path().join("s"),
            data: folder.path().join("d"),
            config: folder.path().join("c"),
        };
        let project = folder.path().join("p");
        std::fs::create_dir_all(project.join(".vscode")).unwrap();
        std::fs::create_dir_all(project.join("a/b")).unwrap();
        assert!(Files::find(&project.join("a/b")).is_err());
        std::fs::write(project.join(".vscode/launch.json"), "{}").unwrap();
        let files = Files::find(&project.join("a/b")).unwrap();
        assert_eq!(files.folder, project);
        let mut trust = Trust::load(&paths);
        assert_eq!(trust.standing(&files), Standing::Unknown);
        trust.add(files.clone(), 1);
        trust.save(&paths).unwrap();
        assert_eq!(Trust::load(&paths).standing(&files), Standing::Trusted);
        // A task file that appears is a change, too.
        std::fs::write(project.join(".vscode/tasks.json"), "{}").unwrap();
        assert_eq!(Trust::load(&paths).standing(&Files::find(&project).unwrap()), Standing::Changed);
        assert!(trust.remove(&project) && !trust.remove(&project));
        std::fs::write(paths.state.join("trust.json"), "broken").unwrap();
        assert_eq!(Trust::load(&paths).standing(&files), Standing::Unknown);
    }
}
