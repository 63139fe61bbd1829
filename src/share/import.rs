//! Taking in a record that somebody gave: all of it, or nothing.

use std::collections::HashSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::tar::{self, BLOCK, Entry};
use super::{LABEL, VERSION, is_known};
use crate::failure::Failure;
use crate::render::quoted;
use crate::store::read::{self, Head};
use crate::store::write::now_ms;

/// The most files, the largest description, and the largest of all other files.
const MAX_FILES: usize = 20_000;
const MAX_JSON: u64 = 1024 * 1024;
const MAX_FILE: u64 = tar::MAX_SIZE;
const MAX_ALL: u64 = 4 * tar::MAX_SIZE;
/// How many names are tried.
const NAMES: u32 = 1000;
/// What was being taken in so long ago was given up.
const GIVEN_UP: Duration = Duration::from_secs(24 * 60 * 60);
/// What folders are called that are not whole yet.
const DRAFT: &str = ".import-";

/// A folder that is removed unless it became a record.
struct Draft(PathBuf);

impl Draft {
    fn new(state: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::io(format!("write below {}", state.display()), &error);
        let mut builder = DirBuilder::new();
        builder.mode(0o700).recursive(true).create(read::root(state)).map_err(failed)?;
        forget_given_up(state);
        let folder = state.join(format!("{DRAFT}{}-{}", std::process::id(), now_ms()));
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        Ok(Self(folder))
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let path = self.0.join(name);
        if name.contains('/')
            && let Some(parent) = path.parent()
        {
            DirBuilder::new().mode(0o700).recursive(true).create(parent)?;
        }
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes what was killed while it was taken in.
fn forget_given_up(state: &Path) {
    for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
        let old = || entry.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
        if entry.file_name().to_string_lossy().starts_with(DRAFT) && old().is_some_and(|age| age > GIVEN_UP) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn refused(why: impl std::fmt::Display) -> Failure {
    Failure::refused(format!("this is no record to take in: {why}"))
        .hint("a record is given away with: bugeye export ID --output FILE")
}

/// Takes in a record; answers what it is, under the name it has here.
pub fn import(input: &mut dyn Read, state: &Path) -> Result<Head, Failure> {
    let draft = Draft::new(state)?;
    let label = label(input)?;
    let mut seen: HashSet<String> = HashSet::new();
    let mut about = None;
    let mut all = 0;
    while let Some(entry) = next(input)? {
        if !is_known(&entry.name) {
            return Err(refused(format!("it has a file `{}`, which no record has", quoted(&entry.name))));
        }
        all += entry.size;
        if seen.len() >= MAX_FILES || all > MAX_ALL || entry.size > MAX_FILE {
            return Err(refused("it is too large"));
        }
        if !seen.insert(entry.name.clone()) {
            return Err(refused(format!("it has {} twice", entry.name)));
        }
        if entry.name == "session.json" {
            about = Some(object(input, &entry)?);
        } else {
            copy(input, &entry, &draft)?;
        }
    }
    let about = about.ok_or_else(|| refused("it has no session.json"))?;
    if !seen.contains("events.jsonl") {
        return Err(refused("it has no events.jsonl"));
    }
    if about["v"] != json!(1) {
        return Err(refused(format!("it is of version {}; this is read: 1", quoted(&about["v"].to_string()))));
    }
    keep(&draft, &label, about, state)
}

/// The first file, which says what all of it is.
fn label(input: &mut dyn Read) -> Result<Value, Failure> {
    let entry = next(input)?.filter(|entry| entry.name == LABEL).ok_or_else(|| refused(format!("no {LABEL}")))?;
    let label = object(input, &entry)?;
    if label["bugeye"] != "record" {
        return Err(refused(format!("its {LABEL} says something else")));
    }
    if label["v"] != json!(VERSION) {
        let version = quoted(&label["v"].to_string());
        return Err(refused(format!("the archive is of version {version}; this is read: {VERSION}")));
    }
    Ok(label)
}

/// The next file; none at the end, which must be there.
fn next(input: &mut dyn Read) -> Result<Option<Entry>, Failure> {
    let mut block = [0; BLOCK];
    fill(input, &mut block)?;
    match tar::read(&block).map_err(refused)? {
        Some(entry) => Ok(Some(entry)),
        None => {
            fill(input, &mut block)?;
            if block.iter().any(|byte| *byte != 0) {
                return Err(refused("it goes on after its end"));
            }
            Ok(None)
        }
    }
}

fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> Result<(), Failure> {
    input.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => refused("its end is missing"),
        _ => Failure::io("read the record", &error),
    })
}

/// A small file that is one object.
fn object(input: &mut dyn Read, entry: &Entry) -> Result<Value, Failure> {
    if entry.size > MAX_JSON {
        return Err(refused(format!("its {} is too large", entry.name)));
    }
    let mut bytes = vec![0; usize::try_from(entry.size).unwrap_or_default()];
    fill(input, &mut bytes)?;
    fill(input, &mut [0; BLOCK][..tar::padding(entry.size)])?;
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|error| refused(format!("its {} is no JSON: {error}", entry.name)))?;
    if value.is_object() { Ok(value) } else { Err(refused(format!("its {} is no object", entry.name))) }
}

fn copy(input: &mut dyn Read, entry: &Entry, draft: &Draft) -> Result<(), Failure> {
    let failed = |error| Failure::io(format!("write {}", entry.name), &error);
    let mut file = draft.create(&entry.name).map_err(failed)?;
    let copied = io::copy(&mut input.take(entry.size), &mut file).map_err(failed)?;
    if copied != entry.size {
        return Err(refused("its end is missing"));
    }
    fill(input, &mut [0; BLOCK][..tar::padding(entry.size)])
}

/// Gives it its name: the one it had, where that is free.
fn keep(draft: &Draft, label: &Value, mut about: Value, state: &Path) -> Result<Head, Failure> {
    let was = [&label["id"], &about["id"]].into_iter().find_map(Value::as_str).unwrap_or_default().to_string();
    if let Some(about) = about.as_object_mut() {
        // Nobody writes to it any more, whoever has that number here.
        about.remove("daemon");
        // Nor is it the `s1` of this machine.
        about.remove("alias");
        about.insert("imported".into(), json!({ "at": now_ms(), "from": was }));
    }
    let base = if is_name(&was) { was } else { "imported".to_string() };
    for number in 1..NAMES {
        let id = if number == 1 { base.clone() } else { format!("{base}-{number}") };
        let folder = read::root(state).join(&id);
        if folder.symlink_metadata().is_ok() {
            continue;
        }
        about["id"] = json!(id);
        let failed = |error| Failure::io("keep the record", &error);
        let _ = std::fs::remove_file(draft.0.join("session.json"));
        let mut file = draft.create("session.json").map_err(failed)?;
        file.write_all(format!("{about}\n").as_bytes()).map_err(failed)?;
        match std::fs::rename(&draft.0, &folder) {
            Ok(()) => {
                return Head::load(&folder).ok_or_else(|| {
                    let _ = std::fs::remove_dir_all(&folder);
                    refused("its session.json can't be read")
                });
            }
            // Somebody else has just taken that name.
            Err(error) if folder.symlink_metadata().is_ok() => drop(error),
            Err(error) => return Err(failed(error)),
        }
    }
    Err(Failure::refused(format!("no free name for {}", quoted(&base))))
}

/// Whether this may be the name of a record.
fn is_name(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (3..=64).contains(&id.len()) && id.starts_with(|c: char| c.is_ascii_alphanumeric()) && id.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    type File<'a> = (&'a str, &'a [u8]);

    const LABELLED: File<'_> = (LABEL, br#"{"bugeye":"record","v":1,"id":"20261115-214131-otter"}"#);
    const SESSION: File<'_> = ("session.json", br#"{"v":1,"id":"x","alias":"s1","words":["./a"],"daemon":{"pid":1}}"#);
    const EVENTS: File<'_> = ("events.jsonl", b"{}\n");

    fn archive(files: &[File]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, content) in files {
            let entry = Entry { name: (*name).into(), size: content.len() as u64 };
            bytes.extend_from_slice(&tar::header(&entry, 0).unwrap());
            bytes.extend_from_slice(content);
            bytes.extend_from_slice(&tar::END[..tar::padding(entry.size)]);
        }
        bytes.extend_from_slice(&tar::END);
        bytes
    }

    fn left(state: &Path) -> Vec<String> {
        let names = |folder: &Path| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        let mut all = names(state);
        all.extend(names(&state.join("sessions")));
        all.sort();
        all
    }

    #[test]
    fn a_record_keeps_its_name_where_it_is_free() {
        let state = tempfile::tempdir().unwrap();
        let bytes = archive(&[LABELLED, SESSION, EVENTS, ("hits-2.jsonl", b"[]\n")]);
        let names = ["20261115-214131-otter", "20261115-214131-otter-2", "20261115-214131-otter-3"];
        for name in names {
            let head = import(&mut bytes.as_slice(), state.path()).unwrap();
            assert_eq!((head.id.as_str(), head.alias.as_str()), (name, ""));
            assert!(!head.is_written());
            let about: Value =
                serde_json::from_slice(&std::fs::read(head.folder.join("session.json")).unwrap()).unwrap();
            assert_eq!((&about["id"], &about["imported"]["from"]), (&json!(name), &json!(names[0])));
            assert!(about["daemon"].is_null());
            assert_eq!(std::fs::read(head.folder.join("hits-2.jsonl")).unwrap(), b"[]\n");
        }
        assert_eq!(left(state.path()).len(), 4);
    }

    #[test]
    fn a_hostile_file_is_refused_and_nothing_is_left_of_it() {
        let state = tempfile::tempdir().unwrap();
        let good = archive(&[LABELLED, SESSION, EVENTS]);
        let mut more = good.clone();
        let end = more.len() - 1;
        more[end] = 1;
        let up = "../../../../x";
        let cases: Vec<(Vec<u8>, &str)> = vec![
            (Vec::new(), "its end is missing"),
            (b"PK\x03\x04".repeat(200), "no tar archive"),
            (good[..good.len() - 600].to_vec(), "its end is missing"),
            (good[..700].to_vec(), "its end is missing"),
            (more, "it goes on after its end"),
            (archive(&[SESSION, EVENTS]), "no bugeye.json"),
            (archive(&[(LABEL, b"{}"), SESSION, EVENTS]), "says something else"),
            (archive(&[(LABEL, br#"{"bugeye":"record","v":2}"#), SESSION, EVENTS]), "of version 2"),
            (archive(&[LABELLED, SESSION]), "no events.jsonl"),
            (archive(&[LABELLED, EVENTS]), "no session.json"),
            (archive(&[LABELLED, SESSION, SESSION, EVENTS]), "session.json twice"),
            (archive(&[LABELLED, ("session.json", b"nonsense"), EVENTS]), "is no JSON"),
            (archive(&[LABELLED, ("session.json", b"[]"), EVENTS]), "is no object"),
            (archive(&[LABELLED, ("session.json", br#"{"v":7}"#), EVENTS]), "version 7"),
            (archive(&[LABELLED, ("session.json", br#"{"v":1,"words":3}"#), EVENTS]), "can't be read"),
            (archive(&[LABELLED, SESSION, EVENTS, (up, b"x")]), "a file `../../../../x`"),
            (archive(&[LABELLED, SESSION, EVENTS, ("/etc/x", b"x")]), "a file `/etc/x`"),
            (archive(&[LABELLED, SESSION, EVENTS, ("commands.jsonl", b"x")]), "a file `commands.jsonl`"),
            (archive(&[LABELLED, SESSION, EVENTS, ("blobs/../../x", b"x")]), "a file `blobs/../../x`"),
            (archive(&[LABELLED, SESSION, EVENTS, ("\u{1b}[2J", b"x")]), "a file `\\u{1b}[2J`"),
        ];
        for (bytes, words) in cases {
            let failure = import(&mut bytes.as_slice(), state.path()).unwrap_err();
            assert!(failure.message.contains(words), "{words}: {failure}");
            assert_eq!(left(state.path()), ["sessions"], "{words}");
        }
        let mut large = tar::header(&Entry { name: LABEL.into(), size: MAX_JSON + 1 }, 0).unwrap().to_vec();
        large.resize(4096, b' ');
        assert!(import(&mut large.as_slice(), state.path()).unwrap_err().message.contains("too large"));
    }

    #[test]
    fn a_name_is_no_way_out() {
        let state = tempfile::tempdir().unwrap();
        for id in ["../x", "", ".", "..", "/etc", "a b", "A", "x/y"] {
            let label = json!({ "bugeye": "record", "v": 1, "id": id }).to_string();
            let bytes = archive(&[(LABEL, label.as_bytes()), SESSION, EVENTS]);
            let head = import(&mut bytes.as_slice(), state.path()).unwrap();
            assert!(head.id.starts_with("imported"), "{}", head.id);
            assert_eq!(head.folder.parent().unwrap(), state.path().join("sessions"));
        }
    }
}
