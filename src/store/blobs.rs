//! Payloads that are too large for a line: files named by their content, beside the events that refer to them.
//!
//! A blob is there before the event that names it. It is written once per content and never changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::wire::MAX_LINE;

/// A field of an event that is larger than this is kept apart.
pub const LARGE: usize = 32 * 1024;
/// What the line of an event that refers to one has in it.
pub const MARK: &str = "\"ref\":{\"sha256\":";
/// How deep references are looked for.
const DEPTH: usize = 4;

/// A blob as events name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub sha256: String,
    pub bytes: u64,
}

/// Writes a content below a record's folder, unless it is there; answers its name, and the file where it is new.
pub fn store(folder: &Path, content: &[u8]) -> io::Result<(Blob, Option<File>)> {
    let blob = Blob { sha256: name(content), bytes: content.len() as u64 };
    let blobs = folder.join("blobs");
    let path = blobs.join(&blob.sha256);
    if std::fs::metadata(&path).is_ok_and(|found| found.len() == blob.bytes) {
        return Ok((blob, None));
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&blobs)?;
    // A record may have more than one writer: each has a draft of its own.
    let draft = blobs.join(format!(".draft-{}", std::process::id()));
    let _ = std::fs::remove_file(&draft);
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft)?;
    let written = file.write_all(content).and_then(|()| std::fs::rename(&draft, &path));
    if let Err(error) = written {
        let _ = std::fs::remove_file(&draft);
        return Err(error);
    }
    Ok((blob, Some(file)))
}

fn name(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The content of a blob; a failure where it is missing, too large for us or not what its name says.
pub fn load(folder: &Path, sha256: &str) -> io::Result<Vec<u8>> {
    load_up_to(folder, sha256, MAX_LINE)
}

fn load_up_to(folder: &Path, sha256: &str, most: usize) -> io::Result<Vec<u8>> {
    let bad = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_string());
    // A name, not a way out of the folder.
    if sha256.len() != 64 || !sha256.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(bad("not the name of a blob"));
    }
    let mut content = Vec::new();
    File::open(path(folder, sha256))?.take(most as u64 + 1).read_to_end(&mut content)?;
    if content.len() > most {
        return Err(bad("the blob is too large"));
    }
    if name(&content) != sha256.to_ascii_lowercase() {
        return Err(bad("the blob is not what was recorded"));
    }
    Ok(content)
}

/// Where a blob is.
#[must_use]
pub fn path(folder: &Path, sha256: &str) -> PathBuf {
    folder.join("blobs").join(sha256)
}

/// Moves the large fields of an event's data into blobs; answers the new files.
pub fn set_apart(folder: &Path, data: &mut Value) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for field in data.as_object_mut().into_iter().flat_map(|fields| fields.values_mut()) {
        if !matches!(field, Value::String(_) | Value::Array(_) | Value::Object(_)) {
            continue;
        }
        let content = serde_json::to_vec(field)?;
        if content.len() > LARGE {
            let (blob, file) = store(folder, &content)?;
            files.extend(file);
            *field = json!({ "ref": { "sha256": blob.sha256, "bytes": blob.bytes } });
        }
    }
    Ok(files)
}

/// Puts back what [`set_apart`] took out; answers how many bytes that were. What can't be read stays a reference, and so
/// does what would make an event larger than any of ours.
pub fn restore(folder: &Path, data: &mut Value) -> usize {
    let mut room = MAX_LINE;
    put_back(folder, data, DEPTH, &mut room);
    MAX_LINE - room
}

fn put_back(folder: &Path, value: &mut Value, depth: usize, room: &mut usize) {
    if let Some(content) = referred(value).and_then(|sha256| load_up_to(folder, sha256, *room).ok())
        && let Ok(whole) = serde_json::from_slice(&content)
    {
        *room -= content.len();
        *value = whole;
        return;
    }
    if depth > 0
        && let Value::Object(fields) = value
    {
        fields.values_mut().for_each(|field| put_back(folder, field, depth - 1, room));
    }
}

/// The name of the blob that stands here instead of a value.
fn referred(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get("ref")?.get("sha256")?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_field_goes_into_a_blob_and_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let whole = json!({ "text": "x".repeat(LARGE), "small": "y", "list": vec!["z".repeat(100); 500] });
        let mut data = whole.clone();
        assert_eq!(set_apart(folder.path(), &mut data).unwrap().len(), 2);
        assert_eq!(data["text"]["ref"]["bytes"], LARGE + 2);
        assert_eq!(data["small"], "y");
        assert!(data.to_string().len() < 400, "{data}");
        let again = set_apart(folder.path(), &mut whole.clone()).unwrap();
        assert!(again.is_empty(), "a content is written once");
        restore(folder.path(), &mut data);
        assert_eq!(data, whole);
    }

    #[test]
    fn one_blob_that_is_named_many_times_fills_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let (blob, _) = store(folder.path(), json!("x".repeat(MAX_LINE / 4)).to_string().as_bytes()).unwrap();
        let reference = json!({ "ref": { "sha256": blob.sha256, "bytes": blob.bytes } });
        let mut data: Value = (0..100).map(|at| (format!("f{at}"), reference.clone())).collect();
        assert_eq!(restore(folder.path(), &mut data), 3 * (MAX_LINE / 4 + 2));
        assert_eq!(data.as_object().unwrap().values().filter(|field| field.is_string()).count(), 3);
    }

    #[test]
    fn a_blob_that_is_gone_or_changed_stays_a_reference() {
        let folder = tempfile::tempdir().unwrap();
        let mut data = json!({ "text": "x".repeat(LARGE) });
        set_apart(folder.path(), &mut data).unwrap();
        let sha256 = data["text"]["ref"]["sha256"].as_str().unwrap().to_string();
        std::fs::write(path(folder.path(), &sha256), "\"other\"").unwrap();
        let reference = data.clone();
        restore(folder.path(), &mut data);
        assert_eq!(data, reference);
        assert_eq!(load(folder.path(), &sha256).unwrap_err().kind(), io::ErrorKind::InvalidData);
        for name in ["../session.json", "", "ABC"] {
            assert_eq!(load(folder.path(), name).unwrap_err().kind(), io::ErrorKind::InvalidData, "{name}");
        }
        assert_eq!(load(folder.path(), &"0".repeat(64)).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
