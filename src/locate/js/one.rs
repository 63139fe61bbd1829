//! One test of a package, by its name.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Asked, RUNNERS, manifest};
use crate::failure::Failure;

/// Node runs tests without another's help.
const BY_ITSELF: &str = "node";

/// The one test of this name, with the runner that the project's `package.json` names. `FILE::NAME` names the file, too.
pub fn test(project: &Path, name: &str, _: &Asked) -> Result<Option<Vec<String>>, Failure> {
    let Some((folder, manifest)) = manifest(project) else { return Ok(None) };
    let Some(runner) = runner_of(&manifest) else { return Ok(None) };
    let (file, title) = match name.split_once("::") {
        Some((file, title)) => (Some(folder.join(file)), Some(title)),
        None if folder.join(name).is_file() => (Some(folder.join(name)), None),
        None => (None, Some(name)),
    };
    let file = match (file, title) {
        (Some(file), _) => Some(file),
        (None, Some(title)) => {
            let files = test_files(&folder);
            let texts: Vec<(PathBuf, String)> = files
                .into_iter()
                .filter_map(|file| std::fs::read_to_string(&file).ok().map(|text| (file, text)))
                .collect();
            // Titles may be put together at run time, of words of their own or those of the groups around them.
            let last = texts.iter().find(|(_, text)| text.contains(title));
            let made = texts.iter().any(|(_, text)| text.contains(".each") || text.contains("${"));
            match last {
                Some((file, _)) => Some(file.clone()),
                None if made || title.contains(' ') => None,
                None => return Err(Failure::not_found(format!("no test of {} is called `{title}`", folder.display()))),
            }
        }
        (None, None) => None,
    };
    let file = file.map(|file| file.strip_prefix(&folder).unwrap_or(&file).to_string_lossy().into_owned());
    let pattern = title.map(|title| format!("(^| ){}$", escaped(title)));
    let mut words: Vec<String> = match runner {
        BY_ITSELF => vec![BY_ITSELF.into()],
        "vitest" => vec!["npx".into(), "vitest".into(), "run".into()],
        other => vec!["npx".into(), other.into()],
    };
    let flag = match runner {
        BY_ITSELF => "--test-name-pattern",
        "mocha" => "-g",
        _ => "-t",
    };
    if let Some(pattern) = pattern {
        words.extend([flag.to_string(), pattern]);
    }
    match (runner, &file) {
        (BY_ITSELF, None) => words.insert(1, "--test".into()),
        (_, Some(file)) => words.push(file.clone()),
        _ => {}
    }
    Ok(Some(words))
}

/// What runs a package's tests, by what it depends on and what its script says.
fn runner_of(manifest: &Value) -> Option<&'static str> {
    let depends = |name: &str| {
        ["devDependencies", "dependencies"]
            .iter()
            .any(|list| manifest.get(list).is_some_and(|list| list.get(name).is_some()))
    };
    let script = manifest.pointer("/scripts/test").and_then(Value::as_str).unwrap_or_default();
    let said = script.split_whitespace().find_map(|word| RUNNERS.iter().find(|(name, _)| *name == word));
    if let Some((name, _)) = said {
        return Some(name);
    }
    let found = RUNNERS.iter().rev().map(|(name, _)| *name).find(|name| depends(name));
    found.or_else(|| script.contains("node --test").then_some(BY_ITSELF))
}

/// Files that look like tests, some thousands at most.
fn test_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_path_buf(), false)];
    let mut looked = 0;
    while let Some((folder, among_tests)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            looked += 1;
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_folder
                && !name.starts_with('.')
                && !matches!(name.as_str(), "node_modules" | "dist" | "build" | "coverage")
            {
                folders.push((path, among_tests || matches!(name.as_str(), "test" | "tests" | "__tests__" | "spec")));
            } else if !is_folder {
                let is_code = name
                    .rsplit('.')
                    .next()
                    .is_some_and(|end| matches!(end, "js" | "cjs" | "mjs" | "jsx" | "ts" | "mts" | "cts" | "tsx"));
                let is_named = name.contains(".test.")
                    || name.contains(".spec.")
                    || name.starts_with("test-")
                    || name.starts_with("test.");
                if is_code && (is_named || among_tests) {
                    found.push(path);
                }
            }
            if looked > 20_000 {
                return found;
            }
        }
    }
    found.sort();
    found
}

/// A pattern that matches just this text.
fn escaped(text: &str) -> String {
    text.chars().flat_map(|c| "\\^$.*+?()[]{}|/".contains(c).then_some('\\').into_iter().chain([c])).collect()
}
