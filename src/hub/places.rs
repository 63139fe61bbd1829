//! Places as users type them become places an adapter can find.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::model::Place;

/// Files looked through for a name that is not where it was said to be.
const MAX_SEARCHED: usize = 20_000;

/// What marks the root of a project.
const MARKS: [&str; 12] = [
    ".git",
    ".hg",
    ".jj",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "CMakeLists.txt",
    ".bugeye.toml",
];

/// The nearest folder upwards with a repository or manifest, else the folder itself.
#[must_use]
pub fn project_of(cwd: &Path) -> PathBuf {
    cwd.ancestors().find(|folder| is_project(folder)).unwrap_or(cwd).to_path_buf()
}

/// Whether a folder is the root of a project.
#[must_use]
pub fn is_project(folder: &Path) -> bool {
    MARKS.iter().any(|mark| folder.join(mark).exists())
}

/// A place with its file found, and the text of its line where that can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    pub place: Place,
    pub line_text: Option<String>,
    /// What the user should know: the file is nowhere.
    pub note: Option<String>,
}

/// Finds the file a place names: from `cwd`, from the project's root, or by a suffix that is unique in the project.
pub fn resolve(text: &str, cwd: &Path) -> Result<Resolved, Failure> {
    let place = Place::parse(text).map_err(Failure::usage)?;
    let Place::Line { file, line } = &place else {
        return Ok(Resolved { place, line_text: None, note: None });
    };
    let Some(path) = find_file(file, cwd)? else {
        let note = format!("no file {file} from here; it binds if the program was built from one");
        return Ok(Resolved { place: place.clone(), line_text: None, note: Some(note) });
    };
    let source = std::fs::read(&path).map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    let source = String::from_utf8_lossy(&source);
    let count = source.lines().count();
    let number = usize::try_from(*line).unwrap_or(usize::MAX);
    if number > count {
        return Err(Failure::refused(format!("{} has {count} lines: there is no line {line}", path.display()))
            .hint(format!("the last ones: bugeye source {file}:{count}")));
    }
    let line_text = source.lines().nth(number - 1).map(Into::into);
    let file = path.to_string_lossy().into_owned();
    Ok(Resolved { place: Place::Line { file, line: *line }, line_text, note: None })
}

/// Refuses what an agent can't be stopped at.
///
/// # Errors
/// What is wrong with the place or the condition, and what there is.
pub fn for_agent(place: &Place, condition: Option<&str>) -> Result<(), Failure> {
    crate::agent::breaks::check(place, condition)
        .map_err(|why| Failure::usage(why).hint("a tool, a model call, a word in a command: bugeye break --help"))
}

/// The file a user means by `name`; None when there is none.
pub fn find_file(name: &str, cwd: &Path) -> Result<Option<PathBuf>, Failure> {
    let project = project_of(cwd);
    for base in [cwd, &project] {
        let path = std::path::absolute(base.join(name)).unwrap_or_else(|_| base.join(name));
        if path.is_dir() {
            return Err(Failure::refused(format!("{} is a directory", path.display())));
        }
        if path.is_file() {
            return Ok(Some(clean(&path)));
        }
    }
    let mut found = Vec::new();
    if !Path::new(name).is_absolute() && !name.contains("..") {
        search(&project, Path::new(name), &mut found);
    }
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => {
            let failure = Failure::refused(format!("`{name}` could be several files"));
            Err(several.iter().take(5).fold(failure, |failure, path| failure.hint(path.display().to_string())))
        }
    }
}

/// Takes `.` and `..` out of a path without following links, as compilers write it.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn search(root: &Path, suffix: &Path, found: &mut Vec<PathBuf>) {
    const SKIPPED: [&str; 6] = ["target", "node_modules", "__pycache__", "build", "dist", "venv"];
    let mut folders = vec![root.to_path_buf()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_SEARCHED {
                return;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_ref()) {
                folders.push(entry.path());
            } else if kind.is_file() && entry.path().ends_with(suffix) {
                found.push(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in
            [("Cargo.toml", ""), ("src/a.rs", "1\n2\n3\n"), ("src/deep/b.rs", "1\n"), ("x/c.rs", ""), ("y/c.rs", "")]
        {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn a_file_is_found_from_here_from_the_root_and_by_its_end() {
        let folder = tree();
        let (root, deep) = (folder.path(), folder.path().join("src/deep"));
        let file = |text: &str, cwd: &Path| match resolve(text, cwd).unwrap().place {
            Place::Line { file, .. } => PathBuf::from(file),
            other => panic!("{other:?}"),
        };
        assert_eq!(file("src/a.rs:2", root), root.join("src/a.rs"));
        assert_eq!(file("src/a.rs:2", &deep), root.join("src/a.rs"));
        assert_eq!(file("../a.rs:2", &deep), root.join("src/a.rs"));
        assert_eq!(file("b.rs:1", root), root.join("src/deep/b.rs"));
        assert_eq!(resolve("src/a.rs:2", root).unwrap().line_text.as_deref(), Some("2"));
    }

    #[test]
    fn what_can_not_be_meant_is_said() {
        let folder = tree();
        let root = folder.path();
        assert!(resolve("src/a.rs:9", root).unwrap_err().message.contains("has 3 lines"));
        assert_eq!(resolve("c.rs:1", root).unwrap_err().hints.len(), 2);
        assert!(resolve("nowhere.c:1", root).unwrap().note.is_some());
        assert!(resolve("src:1", root).unwrap_err().message.contains("directory"));
    }

    #[test]
    fn the_project_is_where_the_manifest_is() {
        let folder = tree();
        assert_eq!(project_of(&folder.path().join("src/deep")), folder.path());
    }
}
