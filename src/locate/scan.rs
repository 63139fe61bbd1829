//! The files of a project, as far as a look for a test's name needs them. Apart, because every family of tools looks for
//! its tests this way.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::nearest::nearest;

/// Folders and files that are looked at, at most.
const MAX_SEEN: usize = 20_000;
/// A longer file holds data.
const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The files below a folder whose names `keep` wants, in the order of their paths; not those of tools and dependencies.
#[must_use]
pub fn files(root: &Path, keep: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    const SKIPPED: [&str; 9] =
        ["target", "node_modules", "__pycache__", "build", "dist", "venv", "vendor", "site-packages", "env"];
    let mut folders = vec![root.to_path_buf()];
    let mut found = Vec::new();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_SEEN {
                break;
            }
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else { continue };
            if kind.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name.as_str()) {
                folders.push(entry.path());
            } else if kind.is_file() && keep(&name) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

/// The text of a source file; empty where it is none.
#[must_use]
pub fn text(path: &Path) -> String {
    if path.metadata().is_ok_and(|data| data.len() <= MAX_BYTES) {
        std::fs::read_to_string(path).unwrap_or_default()
    } else {
        String::new()
    }
}

/// No test has this name: told with the nearest that there is.
pub fn no_such_test<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let count = known.clone().count();
    let mut failure = Failure::not_found(match count {
        0 => format!("no test is called `{name}`: the project has no tests"),
        1 => format!("no test is called `{name}`; there is one test"),
        _ => format!("no test is called `{name}`; there are {count} tests"),
    });
    let last = |test: &'a str| test.rsplit([':', '.', ' ', '/']).next().unwrap_or(test);
    let near = nearest(name, known.clone()).or_else(|| {
        let near = nearest(name, known.clone().map(last))?;
        known.clone().find(|test| last(test) == near)
    });
    if let Some(near) = near {
        failure = failure.hint(format!("did you mean {near}?"));
    } else if count > 0 {
        let some: Vec<&str> = known.take(5).collect();
        failure = failure.hint(format!("some of them: {}", some.join(", ")));
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_project_s_own_files_are_found() {
        let root = tempfile::tempdir().unwrap();
        for file in ["b.py", "a/c.py", "node_modules/d.py", ".venv/e.py", "a/f.txt"] {
            std::fs::create_dir_all(root.path().join(file).parent().unwrap()).unwrap();
            std::fs::write(root.path().join(file), "").unwrap();
        }
        let found = files(root.path(), |name| name.ends_with(".py"));
        assert_eq!(found, [root.path().join("a/c.py"), root.path().join("b.py")]);
    }

    #[test]
    fn the_nearest_name_is_told_with_what_is_around_it() {
        let known = ["test_a.py::test_adds", "test_a.py::Box::test_opens"];
        let said = |name| no_such_test(name, known.iter().copied());
        assert_eq!(said("test_open").hints, ["did you mean test_a.py::Box::test_opens?"]);
        assert_eq!(said("nothing").hints, ["some of them: test_a.py::test_adds, test_a.py::Box::test_opens"]);
        assert_eq!(said("x").message, "no test is called `x`; there are 2 tests");
    }
}
