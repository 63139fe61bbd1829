//! All sessions there are: a line about each, from its folder, or from `index.json` where that is already known.
//!
//! The folders are the truth. `index.json` beside them is a cache that only the daemon writes; what is in it and not there
//! is gone, and what is there and not in it is read. So whatever happens to the file, no session is lost.

use std::collections::HashMap;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::lifecycle::Ends;
use super::read::{self, Head};
use crate::model::Ending;

/// The form of the file; another one is not read.
const VERSION: u32 = 1;
/// Larger than any that we write.
const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// What is known of one session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    pub id: String,
    /// What it was called while it was live: `s1`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub alias: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Milliseconds since 1970.
    pub started: u64,
    pub cwd: String,
    pub adapter: String,
    pub command: Vec<String>,
    /// Where the program stood last: `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// Whether anything may still come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    #[default]
    Live,
    Ended,
    /// The daemon died in the middle of it.
    Crashed,
}

#[derive(Debug, Deserialize)]
struct Index {
    v: u32,
    sessions: Vec<Entry>,
}

impl Entry {
    /// What a record's head tells.
    #[must_use]
    pub fn new(head: &Head) -> Self {
        Self {
            id: head.id.clone(),
            alias: head.alias.clone(),
            name: head.name.clone(),
            state: State::Live,
            pid: None,
            started: head.started,
            cwd: head.cwd.to_string_lossy().into_owned(),
            adapter: head.adapter.clone(),
            command: head.words.clone(),
            place: None,
            ending: None,
        }
    }

    /// Reads a record's folder; None where it holds none.
    #[must_use]
    pub fn of(folder: &Path) -> Option<Self> {
        let head = Head::load(folder)?;
        let written = head.is_written();
        let ends = Ends::of(&head).unwrap_or_default();
        let state = match &ends.end {
            Some(_) if ends.has_crashed() => State::Crashed,
            Some(_) => State::Ended,
            None if written => State::Live,
            // It was given away before its end.
            None if head.imported.is_some() => State::Ended,
            None => State::Crashed,
        };
        let ending = ends.ending();
        Some(Self { state, pid: ends.pid, place: ends.place, ending, ..Self::new(&head) })
    }

    /// Its record has no end, and perhaps nobody who will write it.
    #[must_use]
    pub fn may_need_its_end(&self) -> bool {
        self.state == State::Live || (self.state == State::Crashed && self.ending.is_none())
    }
}

/// Every session, newest first. `known` are those whose entries need not be looked for.
#[must_use]
pub fn load(state: &Path, known: &HashMap<String, Entry>) -> Vec<Entry> {
    let mut cached = cached(state);
    let mut all: Vec<Entry> = Vec::new();
    for folder in read::folders(state) {
        let Some(id) = folder.file_name().map(|id| id.to_string_lossy().into_owned()) else { continue };
        // One that was live may be so no more.
        let cached = cached.remove(&id).filter(|entry| !entry.may_need_its_end());
        all.extend(known.get(&id).cloned().or(cached).or_else(|| Entry::of(&folder)));
    }
    all.reverse();
    all
}

fn path(state: &Path) -> PathBuf {
    read::root(state).join("index.json")
}

/// What the file has; nothing where it is missing or can't be read.
fn cached(state: &Path) -> HashMap<String, Entry> {
    let path = path(state);
    let fits = std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= MAX_INDEX);
    let text = if fits { std::fs::read(&path).unwrap_or_default() } else { Vec::new() };
    let index: Option<Index> = serde_json::from_slice(&text).ok();
    let sessions = index.filter(|index| index.v == VERSION).map(|index| index.sessions).unwrap_or_default();
    sessions.into_iter().map(|entry| (entry.id.clone(), entry)).collect()
}

/// Writes the file anew, in one step.
pub fn save(state: &Path, known: &HashMap<String, Entry>) -> std::io::Result<()> {
    if !read::root(state).is_dir() {
        return Ok(());
    }
    let all = load(state, known);
    let draft = read::root(state).join(format!(".index-{}", std::process::id()));
    let _ = std::fs::remove_file(&draft);
    let mut file = std::fs::OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft)?;
    let text = json!({ "v": VERSION, "sessions": all }).to_string();
    let saved = writeln!(file, "{text}").and_then(|()| std::fs::rename(&draft, path(state)));
    if saved.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    saved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lifecycle;

    fn record(state: &Path, id: &str, events: &str) -> PathBuf {
        let folder = read::root(state).join(id);
        std::fs::create_dir_all(&folder).unwrap();
        let head = json!({ "v": 1, "alias": "s1", "words": ["./a"], "cwd": "/c", "project": "/c", "started": 5 });
        std::fs::write(folder.join("session.json"), head.to_string()).unwrap();
        std::fs::write(folder.join("events.jsonl"), events).unwrap();
        folder
    }

    fn states(state: &Path) -> Vec<(String, State)> {
        load(state, &HashMap::new()).into_iter().map(|entry| (entry.id, entry.state)).collect()
    }

    #[test]
    fn the_folders_are_the_truth() {
        let state = tempfile::tempdir().unwrap();
        let end = json!({ "v": 1, "seq": 1, "ts": 0, "session": "", "type": "session.end",
            "data": { "ending": { "kind": "exited", "code": 3 } } });
        record(state.path(), "1-a", &format!("{end}\n"));
        let live = record(state.path(), "2-b", "");
        let lock = lifecycle::hold(&live).unwrap();
        let expected = [("2-b".to_string(), State::Live), ("1-a".to_string(), State::Ended)];
        assert_eq!(states(state.path()), expected);
        save(state.path(), &HashMap::new()).unwrap();
        assert_eq!(states(state.path()), expected);
        drop(lock);
        assert_eq!(states(state.path())[0].1, State::Crashed, "what was live is looked at again");
        // A third that the file does not know, and one that it knows and is gone.
        record(state.path(), "3-c", &format!("{end}\n"));
        std::fs::remove_dir_all(&live).unwrap();
        let expected = [("3-c".to_string(), State::Ended), ("1-a".to_string(), State::Ended)];
        assert_eq!(states(state.path()), expected);
        for broken in ["", "{", "{\"v\":9,\"sessions\":[]}", "{\"v\":1,\"sessions\":[{\"id\":\"1-a\"}]}"] {
            std::fs::write(path(state.path()), broken).unwrap();
            assert_eq!(states(state.path()), expected, "{broken}");
        }
        let entry = &load(state.path(), &HashMap::new())[1];
        assert_eq!(entry.ending, Some(Ending::Exited { code: Some(3) }));
        assert_eq!((entry.command[0].as_str(), entry.started), ("./a", 5));
    }
}
