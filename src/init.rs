//! Setting up Bugeye in an agent: an entry for its server in the agent's configuration, and the skill beside it.
//!
//! Everything is planned before anything is written: each file is read, changed in memory and checked, and a file that
//! is not understood refuses the whole agent. What was put in can be taken out without a trace, with no record kept of
//! what was there before; `json` and `append` say how.

pub mod agents;
pub mod append;
pub mod block;
pub mod diff;
pub mod files;
pub mod json;
pub mod skill;
pub mod toml;

use std::path::{Path, PathBuf};

pub use agents::{Agent, Scope, World};

use crate::failure::Failure;
use crate::find::on_path;
use agents::{Kind, Setting, Target};
use files::Found;

/// What our entry, our skill and our program are called.
pub const NAME: &str = "bugeye";

/// What becomes of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// It is as it should be.
    Same,
    /// Something of that name is there and was written by the user: it stays.
    Kept,
    Text(String),
    /// The whole file was ours.
    Gone,
}

/// What is wanted.
#[derive(Debug, Clone)]
pub struct Wish {
    pub uninstall: bool,
    /// Also what the user has written.
    pub force: bool,
    /// The program that the entry names.
    pub command: String,
}

/// One file and what is to become of it.
#[derive(Debug, Clone)]
pub struct Step {
    pub file: Found,
    pub edit: Edit,
    /// A file that has nothing but our own text.
    pub is_skill: bool,
}

/// All that is to be done for an agent.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Folders that go when they are empty, the innermost first.
    pub folders: Vec<PathBuf>,
    pub note: Option<&'static str>,
}

impl Plan {
    /// Finds out what is to be done; changes nothing.
    ///
    /// # Errors
    /// Refused, when a file can't be read, is not understood, or is out of bounds.
    pub fn make(agent: Agent, scope: Scope, world: &World, wish: &Wish) -> Result<Self, Failure> {
        let setting = agent.setting(scope, world)?;
        // Home folders are full of links, on purpose; a project's may come from anyone.
        let bounds = (scope == Scope::Project).then_some(setting.root.as_path());
        let mut plan = Self::default();
        for target in &setting.targets {
            for file in chosen(target, bounds, wish)? {
                let edit = edited(&file, target.kind, wish)?;
                plan.steps.push(Step { file, edit, is_skill: false });
            }
        }
        if wish.uninstall {
            plan.remove_skill(&setting, bounds, wish)?;
        } else {
            plan.note = setting.note;
            plan.add_skill(&setting, bounds, wish)?;
        }
        Ok(plan)
    }

    fn add_skill(&mut self, setting: &Setting, bounds: Option<&Path>, wish: &Wish) -> Result<(), Failure> {
        let Some(folder) = &setting.skill else { return Ok(()) };
        let mut wanted = Vec::new();
        for (name, content) in skill::FILES {
            wanted.push((files::read(&folder.join(name), bounds)?, content));
        }
        let mut made = wanted.first().and_then(|(file, _)| skill::read(file.text.as_deref()?)).unwrap_or_default().1;
        let config = self.steps.iter().map(|step| &step.file);
        for file in config.chain(wanted.iter().map(|(file, _)| file)).filter(|file| file.text.is_none()) {
            // What is within a folder that was made was made, too.
            if let Some(folder) = files::outermost_missing(&file.path) {
                let name = skill::shown(&folder, &setting.root);
                if !made.contains(&name) {
                    made.push(name);
                }
            }
        }
        for (index, (file, content)) in wanted.into_iter().enumerate() {
            let new = skill::marked(content, if index == 0 { &made } else { &[] });
            let edit = match file.text.as_deref() {
                Some(text) if text == new => Edit::Same,
                Some(text) if skill::read(text).is_none() && !wish.force => Edit::Kept,
                _ => Edit::Text(new),
            };
            self.steps.push(Step { file, edit, is_skill: true });
        }
        // What an older version had and this one has not.
        for path in skill::present(folder) {
            let file = files::read(&path, bounds)?;
            let is_known = self.steps.iter().any(|step| step.file.path == path);
            if !is_known && file.text.as_deref().is_some_and(|text| skill::read(text).is_some()) {
                self.steps.push(Step { file, edit: Edit::Gone, is_skill: true });
            }
        }
        Ok(())
    }

    fn remove_skill(&mut self, setting: &Setting, bounds: Option<&Path>, wish: &Wish) -> Result<(), Failure> {
        let Some(folder) = &setting.skill else { return Ok(()) };
        for path in skill::present(folder) {
            let file = files::read(&path, bounds)?;
            let is_ours = skill::FILES.iter().any(|(name, _)| folder.join(name) == path);
            let mark = file.text.as_deref().and_then(skill::read);
            if mark.is_none() && !is_ours {
                continue;
            }
            if path == folder.join(skill::FILES[0].0)
                && let Some((_, made)) = &mark
            {
                let above = |file: &PathBuf| file.ancestors().skip(1).map(Path::to_path_buf).collect::<Vec<_>>();
                let ours: Vec<PathBuf> = setting
                    .targets
                    .iter()
                    .flat_map(|target| target.files.iter().flat_map(above))
                    .chain(skill::FILES.iter().flat_map(|(name, _)| above(&folder.join(name))))
                    .collect();
                let made: Vec<PathBuf> = made.iter().map(|name| setting.root.join(name)).collect();
                // The mark is in a file that anyone may have written: only folders that we would make are looked at.
                let within = |folder: &PathBuf| {
                    !setting.root.starts_with(folder) && made.iter().any(|made| folder.starts_with(made))
                };
                self.folders = ours.into_iter().filter(within).collect();
                self.folders.sort();
                self.folders.dedup();
                self.folders.reverse();
            }
            let edit = if mark.is_some() || wish.force { Edit::Gone } else { Edit::Kept };
            self.steps.push(Step { file, edit, is_skill: true });
        }
        Ok(())
    }

    /// Whether anything would change.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.edit, Edit::Text(_) | Edit::Gone))
    }

    /// Carries it out.
    ///
    /// # Errors
    /// As [`files::write`].
    pub fn carry_out(&self) -> Result<(), Failure> {
        for step in &self.steps {
            match &step.edit {
                Edit::Text(text) => files::write(&step.file, text)?,
                Edit::Gone => files::remove(&step.file)?,
                Edit::Same | Edit::Kept => {}
            }
        }
        for folder in &self.folders {
            // One that has something else in it stays.
            let _ = std::fs::remove_dir(folder);
        }
        Ok(())
    }
}

/// The files of a target to look at: all there are to clean up, the one in use to set up.
fn chosen(target: &Target, bounds: Option<&Path>, wish: &Wish) -> Result<Vec<Found>, Failure> {
    let mut found = Vec::new();
    for path in &target.files {
        found.push(files::read(path, bounds)?);
    }
    if wish.uninstall {
        found.retain(|file| file.text.is_some());
        return Ok(found);
    }
    let has_entry = |file: &Found| {
        let Kind::Json(format) = target.kind else { return false };
        file.text.as_deref().is_some_and(|text| json::remove(text, format, false).is_ok_and(|edit| edit != Edit::Same))
    };
    let index = found.iter().position(has_entry).or_else(|| found.iter().position(|file| file.text.is_some()));
    Ok(vec![found.swap_remove(index.unwrap_or(0))])
}

fn edited(file: &Found, kind: Kind, wish: &Wish) -> Result<Edit, Failure> {
    let old = file.text.as_deref();
    let edit = match (kind, old) {
        (_, None) if wish.uninstall => Ok(Edit::Same),
        (Kind::Json(format), Some(text)) if wish.uninstall => json::remove(text, format, wish.force),
        (Kind::Toml, Some(text)) if wish.uninstall => toml::remove(text, wish.force),
        (Kind::Text, Some(text)) if wish.uninstall => block::remove(text),
        (Kind::Json(format), _) => json::add(old, format, &wish.command, wish.force),
        (Kind::Toml, _) => toml::add(old, &wish.command, wish.force),
        (Kind::Text, _) => block::add(old),
    };
    edit.map_err(|reason| {
        Failure::refused(format!("{} can't be changed: {reason}", file.path.display()))
            .hint("nothing was written; correct the file, then the same command again")
    })
}

/// The program that an entry should name, and what to say about it.
///
/// # Errors
/// Refused, when this program can't tell where it is.
pub fn command(env_path: &str) -> Result<(String, Option<String>), Failure> {
    let own = std::env::current_exe().map_err(|error| Failure::io("find this program", &error))?;
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let note = match on_path(NAME, env_path) {
        Some(there) if real(&there) == real(&own) => return Ok((NAME.into(), None)),
        Some(there) => format!("`{NAME}` on the PATH is another program, {}", there.display()),
        None => format!("`{NAME}` is not on the PATH"),
    };
    let Some(own) = own.to_str() else {
        return Err(Failure::refused(format!("the path of this program is no text: {}", own.display())));
    };
    Ok((own.into(), Some(format!("{note}: the entry names this one, {own}, which is right on this machine only"))))
}
