//! The skill that goes with Bugeye, and the mark by which a file of it is known again.
//!
//! The last line of each file is a comment with a sum of the text before it: a file whose sum is right was not touched
//! and may be replaced or removed, whatever version wrote it. The mark of the first file also names the folders that
//! had to be made, so that they can go when they are empty again.

use std::path::{Path, PathBuf};

/// The files below the skill's folder; the first is the one that agents look for.
pub const FILES: [(&str, &str); 4] = [
    ("SKILL.md", include_str!("../../plugin/skills/bugeye/SKILL.md")),
    ("references/commands.md", include_str!("../../plugin/skills/bugeye/references/commands.md")),
    ("references/mcp.md", include_str!("../../plugin/skills/bugeye/references/mcp.md")),
    ("references/recipes.md", include_str!("../../plugin/skills/bugeye/references/recipes.md")),
];

const MARK: &str = "<!-- bugeye init ";

/// A file's text with its mark.
#[must_use]
pub fn marked(content: &str, made: &[String]) -> String {
    let made = if made.is_empty() { String::new() } else { format!(" made {}", serde_json::Value::from(made)) };
    format!("{content}{MARK}{:016x}{made} -->\n", sum(content))
}

/// What a file says before its mark, and the folders that the mark names.
#[must_use]
pub fn read(text: &str) -> Option<(&str, Vec<String>)> {
    let at = text.rfind(MARK)?;
    let (content, mark) = text.split_at(at);
    let mark = mark.strip_prefix(MARK)?.strip_suffix(" -->\n")?;
    let (number, made) = mark.split_once(" made ").unwrap_or((mark, "[]"));
    let is_right = u64::from_str_radix(number, 16) == Ok(sum(content));
    is_right.then(|| (content, serde_json::from_str(made).unwrap_or_default()))
}

/// FNV-1a: it tells an edited text from an untouched one, no more.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A folder as the mark names it.
#[must_use]
pub fn shown(folder: &Path, root: &Path) -> String {
    folder.strip_prefix(root).unwrap_or(folder).to_string_lossy().into_owned()
}

/// The files of the skill's folder: ours, and any other there is.
#[must_use]
pub fn present(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for below in [folder.to_path_buf(), folder.join("references")] {
        let Ok(entries) = std::fs::read_dir(below) else { continue };
        found.extend(entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()));
    }
    found.sort();
    found
}
