//! Reading the record: which there are, and the events of one as they come.
//!
//! A reader only ever reads files, so however slow it is, it holds up no session.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{blobs, lifecycle};
use crate::model::Event;
use crate::platform;
use crate::wire::MAX_LINE;

/// How much of a record is read at once.
const PIECE: usize = 256 * 1024;

/// What a record is about: its `session.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The format's number.
    pub v: u32,
    pub id: String,
    /// The name it had while it was live (`s1`), which a later daemon gives anew.
    pub alias: String,
    pub name: Option<String>,
    pub words: Vec<String>,
    pub cwd: PathBuf,
    pub project: PathBuf,
    pub who: String,
    /// The adapter's id.
    pub adapter: String,
    /// Milliseconds since 1970.
    pub started: u64,
    pub daemon: Daemon,
    /// It was made elsewhere, and given.
    pub imported: Option<Imported>,
    #[serde(skip)]
    pub folder: PathBuf,
}

/// The process that writes a record. Its identity is both: a pid may by now belong to another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Daemon {
    pub pid: u32,
    pub start: Option<u64>,
}

/// Where a record came from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Imported {
    /// Milliseconds since 1970.
    pub at: u64,
    /// The id it had there.
    pub from: String,
}

impl Head {
    /// None while it is not written yet, or where it can't be read.
    #[must_use]
    pub fn load(folder: &Path) -> Option<Self> {
        let mut text = Vec::new();
        File::open(folder.join("session.json")).ok()?.take(MAX_LINE as u64).read_to_end(&mut text).ok()?;
        let mut head: Self = serde_json::from_slice(&text).ok()?;
        // The folder is what is asked for by that name, whatever the file says.
        head.id = folder.file_name()?.to_string_lossy().into_owned();
        head.folder = folder.to_path_buf();
        Some(head)
    }

    /// Whether anybody may still write to it: its lock tells. One without a lock was made by an earlier version.
    #[must_use]
    pub fn is_written(&self) -> bool {
        lifecycle::is_held(&self.folder).unwrap_or_else(|| self.is_daemon_alive())
    }

    fn is_daemon_alive(&self) -> bool {
        self.daemon.start.is_some() && platform::start_time(self.daemon.pid) == self.daemon.start
    }

    /// How it is called in a line about it.
    #[must_use]
    pub fn label(&self) -> &str {
        match &self.name {
            Some(name) => name,
            None if self.alias.is_empty() => &self.id,
            None => &self.alias,
        }
    }

    /// Whether it goes by this name: its id, or what it was called while it was live.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        !name.is_empty() && (self.id == name || self.alias == name || self.name.as_deref() == Some(name))
    }
}

/// The folder of all records.
#[must_use]
pub fn root(state: &Path) -> PathBuf {
    state.join("sessions")
}

/// The folders of all records, oldest first.
#[must_use]
pub fn folders(state: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root(state)).into_iter().flatten().flatten();
    // Not through a link: what is below it is somebody else's. With a dot before its name it is on its way out.
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let is_hidden = |entry: &std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b".");
    let mut folders: Vec<PathBuf> =
        entries.filter(|entry| is_folder(entry) && !is_hidden(entry)).map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// Every record, oldest first.
#[must_use]
pub fn heads(state: &Path) -> Vec<Head> {
    folders(state).iter().filter_map(|folder| Head::load(folder)).collect()
}

/// A record's events, read as they are written.
#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// How far it is read, and where the last whole line ends.
    at: u64,
    ended: u64,
    /// The beginning of a line whose end is not written yet.
    torn: Vec<u8>,
    /// The line is too long to be one of ours, and is passed over.
    skipping: bool,
    /// Whole lines are left for the next time.
    more: bool,
    /// Lines that are no events.
    pub unreadable: u64,
}

impl Tail {
    /// The events of a record, from its first.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self::since(folder, 0)
    }

    /// The events of one file.
    #[must_use]
    pub fn of_file(path: &Path) -> Self {
        Self { path: path.to_path_buf(), ..Self::since(path, 0) }
    }

    /// The events from the first that begins after this byte.
    #[must_use]
    pub fn since(folder: &Path, at: u64) -> Self {
        let path = folder.join("events.jsonl");
        Self { path, file: None, at, ended: at, torn: Vec::new(), skipping: at > 0, more: false, unreadable: 0 }
    }

    /// How many bytes of whole lines there are so far, and how many in all.
    #[must_use]
    pub fn position(&self) -> (u64, u64) {
        (self.ended, self.at)
    }

    /// The events of a record that come after so many bytes, which end with a line.
    #[must_use]
    pub fn beyond(folder: &Path, bytes: u64) -> Self {
        Self { skipping: false, ..Self::since(folder, bytes) }
    }

    /// How many bytes of whole lines were read, from the beginning.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.ended
    }

    /// The next events, each with its line; none at the end of what is written so far. A line that is not whole yet is
    /// left for later.
    pub fn read(&mut self) -> io::Result<Option<Vec<(Event, String)>>> {
        if self.file.is_none() {
            match File::open(&self.path) {
                Ok(mut file) => {
                    file.seek(SeekFrom::Start(self.at))?;
                    self.file = Some(file);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let Some(file) = &mut self.file else { return Ok(None) };
        let mut searched = 0;
        if !std::mem::take(&mut self.more) {
            searched = self.torn.len();
            let read = file.by_ref().take(PIECE as u64).read_to_end(&mut self.torn)?;
            self.at += read as u64;
            if read == 0 {
                return Ok(None);
            }
        }
        let mut events = Vec::new();
        let (mut from, mut restored) = (0, 0);
        while let Some(end) = self.torn[from.max(searched)..].iter().position(|byte| *byte == b'\n') {
            let end = from.max(searched) + end;
            let line = String::from_utf8_lossy(&self.torn[from..end]).into_owned();
            from = end + 1;
            match serde_json::from_str(&line) {
                _ if std::mem::take(&mut self.skipping) => self.unreadable += 1,
                Ok(mut event) => {
                    restored += self.complete(&mut event, &line);
                    events.push((event, line));
                }
                Err(_) => self.unreadable += 1,
            }
            // Short lines may stand for a lot.
            if restored > PIECE {
                self.more = true;
                break;
            }
        }
        if from > 0 {
            self.ended = self.at - self.torn.len() as u64 + from as u64;
        }
        self.torn.drain(..from);
        if self.torn.len() > MAX_LINE && !self.more {
            self.torn.clear();
            self.skipping = true;
        }
        Ok(Some(events))
    }

    /// Puts back what was set apart from an event; answers how many bytes that were.
    fn complete(&self, event: &mut Event, line: &str) -> usize {
        match self.path.parent() {
            Some(folder) if line.contains(blobs::MARK) => blobs::restore(folder, &mut event.data),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use serde_json::json;

    use super::*;

    fn line(seq: u64) -> String {
        let event = json!({ "v": 1, "seq": seq, "ts": 0, "session": "x", "thread": null, "type": "log", "data": {} });
        format!("{event}\n")
    }

    fn numbers(tail: &mut Tail) -> Option<Vec<u64>> {
        tail.read().unwrap().map(|events| events.into_iter().map(|(event, _)| event.seq).collect())
    }

    #[test]
    fn a_torn_line_waits_for_its_end_and_a_broken_one_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let mut tail = Tail::new(folder.path());
        assert_eq!(numbers(&mut tail), None);
        let mut file = File::create(folder.path().join("events.jsonl")).unwrap();
        let (second, rest) = (line(2), line(2).split_off(20));
        file.write_all(format!("{}{}", line(1), &second[..20]).as_bytes()).unwrap();
        assert_eq!(numbers(&mut tail), Some(vec![1]));
        assert_eq!(numbers(&mut tail), None);
        file.write_all(format!("{rest}nonsense\n{}", line(3)).as_bytes()).unwrap();
        assert_eq!(numbers(&mut tail), Some(vec![2, 3]));
        assert_eq!(tail.unreadable, 1);
        file.write_all(b"torn").unwrap();
        assert_eq!(numbers(&mut tail), Some(vec![]));
        let whole = 3 * line(1).len() + "nonsense\n".len();
        assert_eq!(tail.bytes(), whole as u64);
        assert_eq!(numbers(&mut Tail::beyond(folder.path(), line(1).len() as u64)), Some(vec![2, 3]));
    }

    #[test]
    fn large_values_come_a_few_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (blob, _) = blobs::store(folder.path(), json!("x".repeat(PIECE)).to_string().as_bytes()).unwrap();
        let lines = (1..=50).map(|seq| {
            let value = json!({ "ref": { "sha256": blob.sha256, "bytes": blob.bytes } });
            let event =
                json!({ "v": 1, "seq": seq, "ts": 0, "session": "x", "type": "eval", "data": { "value": value } });
            format!("{event}\n{}", line(seq + 100))
        });
        let text: String = lines.collect();
        std::fs::write(folder.path().join("events.jsonl"), format!("{text}torn")).unwrap();
        let mut tail = Tail::new(folder.path());
        let mut seen = Vec::new();
        while let Some(events) = tail.read().unwrap() {
            assert!(events.len() <= 3, "{}", events.len());
            assert!(events.iter().all(|(event, _)| event.kind == "log" || event.data["value"].is_string()));
            seen.extend(events.into_iter().map(|(event, _)| event.seq));
        }
        assert_eq!(seen, (1..=50).flat_map(|seq| [seq, seq + 100]).collect::<Vec<_>>());
        assert_eq!(tail.position(), (text.len() as u64, text.len() as u64 + 4));
    }

    #[test]
    fn a_line_without_end_is_not_kept_for_ever() {
        let folder = tempfile::tempdir().unwrap();
        let mut text = "x".repeat(MAX_LINE + PIECE);
        text.push_str(&format!("\n{}", line(7)));
        std::fs::write(folder.path().join("events.jsonl"), text).unwrap();
        let mut tail = Tail::new(folder.path());
        let mut seen = Vec::new();
        while let Some(events) = numbers(&mut tail) {
            assert!(tail.torn.len() <= MAX_LINE);
            seen.extend(events);
        }
        assert_eq!((seen, tail.unreadable), (vec![7], 1));
    }

    #[test]
    fn a_record_goes_by_its_id_and_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let at = root(folder.path()).join("20260101-000000-otter");
        std::fs::create_dir_all(&at).unwrap();
        assert!(heads(folder.path()).is_empty());
        let own = platform::start_time(std::process::id());
        let about = json!({ "alias": "s3", "name": "n", "id": "forged", "daemon": { "pid": std::process::id(), "start": own } });
        std::fs::write(at.join("session.json"), about.to_string()).unwrap();
        let mut heads = heads(folder.path());
        let head = heads.remove(0);
        assert!(["20260101-000000-otter", "s3", "n"].iter().all(|name| head.is_called(name)));
        assert!(!head.is_called("forged") && head.is_written());
        let other = Head { daemon: Daemon { start: own.map(|start| start + 1), ..head.daemon }, ..head };
        assert!(!other.is_written());
    }
}
