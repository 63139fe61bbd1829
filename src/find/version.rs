//! Which version something is, told by its place where that is possible, and whether it is new enough.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

use super::{ASK_LIMIT, VERSION_FILE, ask};
use crate::adapters::Found;
use crate::failure::Failure;

/// A program's version by its place: `lldb-dap-19`, `/usr/lib/llvm-19/bin`, `Cellar/llvm/19.1.7/bin`, or what `setup` has
/// written down.
pub(super) fn of_program(path: &Path, private: &Path) -> Option<String> {
    recorded(path, private).or_else(|| by_place(path))
}

/// A file's version: what `setup` has written down, its name (`x-1.2.3.jar`), that of its extension's folder, or its
/// package's.
pub(super) fn of_file(path: &Path, private: &Path) -> Option<String> {
    recorded(path, private).or_else(|| {
        let stem = path.file_stem()?.to_str()?;
        let named = |text: &str| dotted(text.rsplit_once('-')?.1);
        let folders = || path.components().rev().skip(1).filter_map(|part| part.as_os_str().to_str());
        named(stem)
            .or_else(|| folders().find_map(|part| part.split('-').find_map(dotted)))
            .or_else(|| path.ancestors().skip(1).take(5).find_map(package_version))
    })
}

fn recorded(path: &Path, private: &Path) -> Option<String> {
    let text = path.starts_with(private).then(|| std::fs::read_to_string(private.join(VERSION_FILE)).ok())??;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// The version in a folder's `package.json`.
fn package_version(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
    let package: serde_json::Value = serde_json::from_str(&text).ok()?;
    package.get("version")?.as_str().map(Into::into)
}

pub(super) fn by_place(path: &Path) -> Option<String> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let name = path.file_name()?.to_str()?;
    let suffix = name.rsplit_once('-').and_then(|(_, version)| number(version));
    suffix.or_else(|| {
        // Only the folder that holds it, and `bin`'s: further up, a number is about something else.
        real.components().rev().skip(1).take(2).find_map(|part| {
            let part = part.as_os_str().to_str()?;
            let version = part.rsplit_once('-').map_or(part, |(_, version)| version);
            // A bare number is no version: too many folders have one for a name.
            number(version).filter(|_| version != part || version.contains('.'))
        })
    })
}

fn number(text: &str) -> Option<String> {
    let looks_right = text.starts_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    looks_right.then(|| text.to_string())
}

fn dotted(text: &str) -> Option<String> {
    number(text).filter(|text| text.contains('.'))
}

/// What a program answers to its adapter's question for the version. Asked once for each state of its file.
pub(crate) fn asked_version(found: &Found) -> Option<String> {
    type Known = HashMap<PathBuf, (Option<SystemTime>, Option<String>)>;
    static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
    let args = found.adapter.find.version_args;
    if args.is_empty() {
        return None;
    }
    let changed = std::fs::metadata(&found.program).and_then(|data| data.modified()).ok();
    let lock = || KNOWN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((then, version)) = lock().get_or_insert_default().get(&found.program)
        && *then == changed
    {
        return version.clone();
    }
    let mut command = Command::new(&found.program);
    command.args(args).current_dir("/");
    let version = ask(&mut command, ASK_LIMIT).and_then(|(_, text)| first_version(&text));
    lock().get_or_insert_default().insert(found.program.clone(), (changed, version.clone()));
    version
}

/// The first word of a text that is a version: digits with points between them.
fn first_version(text: &str) -> Option<String> {
    text.split(|c: char| c.is_whitespace() || "(),;".contains(c)).find_map(|word| {
        let word = word.trim_start_matches(['v', 'V']);
        let length = word.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        dotted(word[..length].trim_end_matches('.'))
    })
}

/// The numbers of a version.
pub(super) fn numbers(version: &str) -> Vec<u32> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// Why a program can't be used, where it is older than its adapter's file allows.
pub(crate) fn too_old(found: &Found) -> Option<Failure> {
    let least = found.adapter.find.least?;
    let version = found.version.clone().or_else(|| asked_version(found))?;
    if numbers(&version).as_slice() >= least.version {
        return None;
    }
    let wanted: Vec<String> = least.version.iter().map(ToString::to_string).collect();
    let failure = Failure::unsupported(format!(
        "{} {version} {} ({} or later does): {}",
        found.adapter.id,
        least.lacks,
        wanted.join("."),
        found.program.display()
    ));
    Some(found.adapter.install.instead.iter().fold(failure, |failure, hint| failure.hint(*hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_programs_print() {
        let cases = [
            ("GNU gdb (Debian 13.1-3) 13.1\nCopyright", Some("13.1")),
            ("Delve Debugger\nVersion: 1.27.1\nBuild: $Id$", Some("1.27.1")),
            ("v20.20.2", Some("20.20.2")),
            ("ruby 3.1.2p20 (2022-04-12 revision 4491bb740a)", Some("3.1.2")),
            ("PHP 8.2.35 (cli)", Some("8.2.35")),
            ("no number in 2026", None),
        ];
        for (text, expected) in cases {
            assert_eq!(first_version(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn files_tell_their_version_by_name_or_folder() {
        let nowhere = Path::new("/nonexistent");
        let of = |path: &str| of_file(Path::new(path), nowhere);
        assert_eq!(of("/a/debug.core-0.53.2.jar").as_deref(), Some("0.53.2"));
        assert_eq!(of("/e/ms.js-debug-1.112.0/src/x.js").as_deref(), Some("1.112.0"));
        assert_eq!(of("/e/v.lldb-1.11.8-linux-x64/adapter/x").as_deref(), Some("1.11.8"));
        assert_eq!(of("/a/main.js"), None);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(numbers("9.10") < numbers("10.1"));
        assert!(numbers("14.0.50") >= vec![14]);
        assert!(numbers("13.1") < vec![14]);
    }
}
