//! Source files as they were when the program was looked at.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use serde::Deserialize;

use super::blobs;
use super::read::Head;
use crate::failure::Failure;
use crate::model::Event;

/// A file larger than this is not read.
const LARGEST: u64 = 64 * 1024 * 1024;

/// A file that the record has, or had a look at.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Kept {
    file: String,
    sha256: String,
    /// Milliseconds since 1970.
    mtime: u64,
}

/// The source files of a record, up to some moment of it.
#[derive(Debug)]
pub struct Sources {
    folder: PathBuf,
    /// The record was made elsewhere: files of here are not those it is about.
    elsewhere: bool,
    kept: HashMap<String, Kept>,
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub text: String,
    /// That it may not be what it was.
    pub note: Option<String>,
}

impl Sources {
    #[must_use]
    pub fn new(head: &Head) -> Self {
        Self { folder: head.folder.clone(), elsewhere: head.imported.is_some(), kept: HashMap::new() }
    }

    /// Takes a `source` event.
    pub fn take(&mut self, event: &Event) {
        if let Ok(kept) = Kept::deserialize(&event.data) {
            self.kept.insert(kept.file.clone(), kept);
        }
    }

    /// A file as it was, where the record has it; else as it is, with a word about it where it has changed since `ts`.
    pub fn text(&self, file: &str, ts: u64) -> Result<Text, Failure> {
        let kept = self.kept.get(file);
        if let Some(bytes) = kept.and_then(|kept| blobs::load(&self.folder, &kept.sha256).ok()) {
            return Ok(Text { text: String::from_utf8_lossy(&bytes).into_owned(), note: None });
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                Failure::not_found(format!("there is no file {file}")).hint("the record has no copy of it")
            }
            _ => Failure::io(format!("read {file}"), &error),
        };
        let about = std::fs::metadata(file).map_err(failed)?;
        if !about.is_file() || about.len() > LARGEST {
            return Err(Failure::refused(format!("{file} is no source file")));
        }
        let bytes = std::fs::read(file).map_err(failed)?;
        let since = about.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = since.map_or(u64::MAX, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        let changed = match kept.map(|kept| kept.mtime).filter(|mtime| *mtime > 0) {
            Some(mtime) => modified != mtime,
            None => modified > ts,
        };
        let note = match changed {
            _ if self.elsewhere => {
                Some("this is the file of here: the record is from elsewhere, and has no copy of it")
            }
            true => Some("the file has changed since, and the record has no copy of it"),
            false => None,
        };
        let note = note.map(Into::into);
        Ok(Text { text: String::from_utf8_lossy(&bytes).into_owned(), note })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::store::read::Imported;

    fn event(data: Value) -> Event {
        Event { v: 1, seq: 1, ts: 0, session: "x".into(), thread: None, kind: "source".into(), data }
    }

    #[test]
    fn a_file_is_shown_as_it_was_or_with_a_word_about_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        let file = path.to_str().unwrap();
        std::fs::write(&path, "now").unwrap();
        let mut head = Head { folder: folder.path().to_path_buf(), ..Head::default() };
        let mut sources = Sources::new(&head);
        assert_eq!(sources.text(file, u64::MAX).unwrap(), Text { text: "now".into(), note: None });
        assert!(sources.text(file, 0).unwrap().note.unwrap().contains("changed since"));
        let (blob, _) = blobs::store(folder.path(), b"then").unwrap();
        sources.take(&event(json!({ "file": file, "sha256": blob.sha256, "mtime": 7 })));
        assert_eq!(sources.text(file, 0).unwrap(), Text { text: "then".into(), note: None });
        std::fs::remove_file(blobs::path(folder.path(), &blob.sha256)).unwrap();
        assert!(sources.text(file, u64::MAX).unwrap().note.is_some(), "by its time");
        sources.take(&event(json!({ "file": "/nowhere/b.py", "left_out": "too large" })));
        assert!(sources.text("/nowhere/b.py", 0).unwrap_err().message.contains("no file"));
        assert!(sources.text(folder.path().to_str().unwrap(), 0).unwrap_err().message.contains("no source file"));
        head.imported = Some(Imported::default());
        let here = Sources::new(&head).text(file, u64::MAX).unwrap();
        assert!(here.note.unwrap().contains("from elsewhere"), "a path says nothing of another machine");
    }
}
