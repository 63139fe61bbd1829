//! The breakpoints a project has, kept in the state directory across sessions.

use std::collections::HashMap;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::model::{Breakpoint, Place};

/// Everything wished for, by project.
#[derive(Debug)]
pub struct Wishes {
    folder: PathBuf,
    tables: HashMap<PathBuf, Table>,
}

/// One project's breakpoints and `catch` words. Only what is kept is written down.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Table {
    #[serde(default)]
    project: PathBuf,
    next: u32,
    pub breakpoints: Vec<Breakpoint>,
    #[serde(default)]
    pub catch: Vec<String>,
}

impl Wishes {
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self { folder: state.join("breakpoints"), tables: HashMap::new() }
    }

    /// The table of a project, read in when it is first needed. A file that can't be read counts as empty.
    pub fn table(&mut self, project: &Path) -> &mut Table {
        let file = self.file(project);
        self.tables.entry(project.to_path_buf()).or_insert_with(|| {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let mut table: Table = serde_json::from_str(&text).unwrap_or_default();
            table.project = project.to_path_buf();
            table.next = table.next.max(1);
            for wish in &mut table.breakpoints {
                reanchor(wish);
            }
            table
        })
    }

    /// Writes what is to be kept; a crash leaves the old file or the new one, never half of one.
    pub fn save(&mut self, project: &Path) -> Result<(), Failure> {
        let file = self.file(project);
        let mut table = self.table(project).clone();
        table.breakpoints.retain(|wish| wish.session.is_none() && !wish.once);
        let text = serde_json::to_string(&table).unwrap_or_default();
        let failed = |error| Failure::io(format!("keep breakpoints in {}", file.display()), &error);
        crate::paths::create_private(&self.folder)?;
        let draft = file.with_extension("new");
        let mut options = std::fs::OpenOptions::new();
        options.create(true).truncate(true).write(true).mode(0o600);
        options
            .open(&draft)
            .and_then(|mut out| std::io::Write::write_all(&mut out, text.as_bytes()))
            .and_then(|()| std::fs::rename(&draft, &file))
            .map_err(failed)
    }

    fn file(&self, project: &Path) -> PathBuf {
        let name = project.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned());
        self.folder.join(format!("{name}-{:016x}.json", hash(project.as_os_str().as_encoded_bytes())))
    }
}

impl Table {
    pub fn next_id(&mut self) -> u32 {
        let id = self.next.max(1);
        self.next = id + 1;
        id
    }

    /// What applies to a session: the project's own and its own.
    #[must_use]
    pub fn for_session(&self, alias: &str) -> Vec<Breakpoint> {
        self.breakpoints
            .iter()
            .filter(|wish| wish.session.as_deref().is_none_or(|session| session == alias))
            .cloned()
            .collect()
    }
}

/// A line that moved in an edited file is followed to where its text stands now, if that is one place nearby.
pub fn reanchor(wish: &mut Breakpoint) {
    let (Place::Line { file, line }, Some(text)) = (&mut wish.place, &wish.line_text) else { return };
    let Ok(source) = std::fs::read_to_string(&*file) else { return };
    let at = |number: usize| source.lines().nth(number - 1).map(str::trim);
    let wanted = text.trim();
    let current = usize::try_from(*line).unwrap_or(1).max(1);
    if at(current) == Some(wanted) || wanted.is_empty() {
        return;
    }
    let near = |number: &usize| number.abs_diff(current);
    let lines = source.lines().enumerate().filter(|(_, line)| line.trim() == wanted).map(|(index, _)| index + 1);
    let mut found: Vec<usize> = lines.collect();
    found.sort_by_key(near);
    if let Some(nearest) = found.first().and_then(|number| u32::try_from(*number).ok()) {
        *line = nearest;
    }
}

/// FNV-1a: file names that stay the same from one release to the next.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(table: &mut Table, file: &str, line: u32, text: &str) -> Breakpoint {
        let place = Place::Line { file: file.into(), line };
        Breakpoint { line_text: Some(text.into()), ..Breakpoint::new(table.next_id(), place, format!("{file}:{line}")) }
    }

    #[test]
    fn what_is_kept_comes_back_and_the_rest_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let project = Path::new("/some/project");
        let mut wishes = Wishes::new(folder.path());
        let table = wishes.table(project);
        let kept = wish(table, "a.c", 1, "x");
        let gone = Breakpoint { session: Some("s1".into()), ..wish(table, "a.c", 2, "y") };
        table.breakpoints = vec![kept.clone(), gone];
        wishes.save(project).unwrap();
        let mut again = Wishes::new(folder.path());
        assert_eq!(again.table(project).breakpoints, [kept]);
        assert_eq!(again.table(project).next_id(), 3);
        assert!(again.table(Path::new("/other")).breakpoints.is_empty());
    }

    #[test]
    fn a_damaged_file_is_an_empty_table() {
        let folder = tempfile::tempdir().unwrap();
        let mut wishes = Wishes::new(folder.path());
        wishes.save(Path::new("/p")).unwrap();
        let file = wishes.file(Path::new("/p"));
        std::fs::write(file, "{ half").unwrap();
        assert!(Wishes::new(folder.path()).table(Path::new("/p")).breakpoints.is_empty());
    }

    #[test]
    fn a_breakpoint_follows_its_line_through_an_edit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.c");
        std::fs::write(&file, "one\ntwo\nnew\nthree\n").unwrap();
        let mut table = Table::default();
        let mut moved = wish(&mut table, &file.to_string_lossy(), 3, "  three");
        reanchor(&mut moved);
        assert!(matches!(moved.place, Place::Line { line: 4, .. }));
        let mut same = wish(&mut table, &file.to_string_lossy(), 2, "two");
        reanchor(&mut same);
        assert!(matches!(same.place, Place::Line { line: 2, .. }));
    }
}
