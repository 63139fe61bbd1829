//! Writing a record as one file, up to where it is written now.

use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::Path;

use serde_json::json;

use super::tar::{self, Entry};
use super::{LABEL, VERSION, is_blob, is_known};
use crate::store::read::Head;
use crate::store::write::now_ms;

/// How much is copied at once.
const PIECE: usize = 64 * 1024;

/// Writes the whole record; what is added meanwhile is left out. Answers how many files it has.
pub fn write(head: &Head, out: &mut dyn Write) -> io::Result<usize> {
    let label = json!({
        "bugeye": "record", "v": VERSION, "id": head.id, "exported": now_ms(), "by": env!("CARGO_PKG_VERSION"),
    });
    let label = format!("{label}\n");
    put(out, LABEL, &mut label.as_bytes(), label.len() as u64)?;
    let mut count = 0;
    // In this order: what an event names is there before the event is.
    for name in ["session.json".to_string(), "events.jsonl".to_string()].into_iter().chain(hits(&head.folder)?) {
        let mut file = File::open(head.folder.join(&name))?;
        let size = whole(&mut file)?;
        put(out, &name, &mut file, size)?;
        count += 1;
    }
    for name in names(&head.folder.join("blobs"))?.into_iter().filter(|name| is_blob(name)) {
        let mut file = File::open(head.folder.join("blobs").join(&name))?;
        let size = file.metadata()?.len();
        put(out, &format!("blobs/{name}"), &mut file, size)?;
        count += 1;
    }
    out.write_all(&tar::END)?;
    out.flush()?;
    Ok(count)
}

/// The plain files of a folder, by name; none where it is not there.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // Not through a link: what it leads to is not of the record.
    let plain = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut names: Vec<String> = plain.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

fn hits(folder: &Path) -> io::Result<Vec<String>> {
    Ok(names(folder)?.into_iter().filter(|name| name.starts_with("hits") && is_known(name)).collect())
}

/// The size of a file of lines up to the last whole one; the file is at its beginning then.
fn whole(file: &mut File) -> io::Result<u64> {
    let mut end = file.metadata()?.len();
    let mut piece = vec![0; PIECE];
    while end > 0 {
        let size = usize::try_from(end).unwrap_or(PIECE).min(PIECE);
        file.seek(SeekFrom::Start(end - size as u64))?;
        file.read_exact(&mut piece[..size])?;
        if let Some(at) = piece[..size].iter().rposition(|byte| *byte == b'\n') {
            end = end - size as u64 + at as u64 + 1;
            break;
        }
        end -= size as u64;
    }
    file.rewind()?;
    Ok(end)
}

fn put(out: &mut dyn Write, name: &str, from: &mut dyn Read, size: u64) -> io::Result<()> {
    let entry = Entry { name: name.to_string(), size };
    let header =
        tar::header(&entry, now_ms() / 1000).ok_or_else(|| io::Error::other(format!("{name} is too large")))?;
    out.write_all(&header)?;
    let copied = io::copy(&mut from.take(size), out)?;
    if copied != size {
        return Err(io::Error::other(format!("{name} was cut meanwhile")));
    }
    out.write_all(&tar::END[..tar::padding(size)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_lines_ends_with_its_last_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let long = format!("a\n{}", "x".repeat(200_000));
        for (text, size) in [("", 0), ("a", 0), ("a\n", 2), ("a\nb", 2), ("a\nb\n", 4), (long.as_str(), 2)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(whole(&mut File::open(&path).unwrap()).unwrap(), size);
        }
    }
}
