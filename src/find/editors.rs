//! What editors have brought: their folders of extensions hold adapters that package managers have not.

use std::path::{Path, PathBuf};

use super::expand_home;
use super::version::numbers;
use crate::adapters::Adapter;

/// Where editors keep extensions.
const FOLDERS: [&str; 8] = [
    "~/.vscode/extensions",
    "~/.vscode-server/extensions",
    "~/.vscode-insiders/extensions",
    "~/.vscode-oss/extensions",
    "~/.cursor/extensions",
    "~/.cursor-server/extensions",
    "~/.windsurf/extensions",
    "~/.local/share/code-server/extensions",
];

/// The files that an adapter's patterns match, highest versions first; whether they can be used is not looked at.
pub(super) fn kept(adapter: &Adapter) -> impl Iterator<Item = PathBuf> + use<> {
    let patterns = adapter.find.extensions;
    patterns.iter().flat_map(|pattern| {
        if pattern.starts_with("~/") {
            return matching(&expand_home(Path::new(pattern)));
        }
        FOLDERS.iter().flat_map(|folder| matching(&expand_home(Path::new(folder)).join(pattern))).collect()
    })
}

/// The paths that match, where `*` stands for any part of one name.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let Some((start, end)) = part.as_os_str().to_str().and_then(|name| name.split_once('*')) else {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        };
        found = found.iter().flat_map(|folder| named(folder, start, end)).collect();
    }
    found
}

/// What a folder has of names that begin and end so, the highest version first.
fn named(folder: &Path, start: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<(Vec<u32>, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let middle = name.strip_prefix(start)?.strip_suffix(end)?;
            Some((numbers(middle), entry.path()))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_goes_first() {
        let root = tempfile::tempdir().unwrap();
        for version in ["1.9.0", "1.10.0", "1.10.0-linux-x64"] {
            let folder = root.path().join(format!("someone.x-{version}/adapter"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("x"), "").unwrap();
        }
        std::fs::create_dir(root.path().join("someone.y-9.9.9")).unwrap();
        let found = matching(&root.path().join("someone.x-*/adapter/x"));
        let names: Vec<String> =
            found.iter().map(|path| path.strip_prefix(root.path()).unwrap().display().to_string()).collect();
        assert_eq!(names[2], "someone.x-1.9.0/adapter/x", "{names:?}");
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(matching(&root.path().join("none-*/x")).is_empty());
    }
}
