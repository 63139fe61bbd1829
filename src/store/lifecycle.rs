//! The life of a record: who writes it, which is the newest, and what becomes of one whose writer died.
//!
//! Whoever writes holds a lock on the file `lock` of its folder for as long as it may write. A lock ends with its holder,
//! however that ends; nothing has to be cleaned up, and no process number is believed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::read::{self, Head, Tail};
use super::{done, occurrences};
use crate::failure::Kind;
use crate::model::{Ending, Event};

const LOCK: &str = "lock";
/// How much of a record's end is read to find how it ended.
const REACH: u64 = 256 * 1024;
/// How often a lock is tried that only readers hold, for a moment each.
const TRIES: u32 = 50;

/// Locks a record that was just made. The lock appears in the folder as a held one.
pub fn hold(folder: &Path) -> io::Result<File> {
    let draft = folder.join("lock.new");
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    std::fs::rename(&draft, folder.join(LOCK))?;
    Ok(file)
}

/// Whether somebody writes to the record; None where there is no lock to tell.
#[must_use]
pub fn is_held(folder: &Path) -> Option<bool> {
    let file = open(OpenOptions::new().read(true), folder).ok()?;
    // Shared, so that readers don't take each other for writers.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Some(false),
        Err(Errno::WOULDBLOCK) => Some(true),
        Err(_) => None,
    }
}

/// Takes the lock of a record that nobody writes; None where somebody does.
pub fn take(folder: &Path) -> io::Result<Option<File>> {
    let file = open(OpenOptions::new().create(true).truncate(false).write(true).mode(0o600), folder)?;
    for _ in 0..TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK) if is_held(folder) == Some(true) => return Ok(None),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

/// A plain file, never what a link leads to.
fn open(options: &mut OpenOptions, folder: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed()).open(folder.join(LOCK))
}

/// Makes `current` lead to a record. At no moment is there none.
pub fn point_at(root: &Path, id: &str) -> io::Result<()> {
    let draft = root.join(format!(".current-{}", std::process::id()));
    let _ = std::fs::remove_file(&draft);
    std::os::unix::fs::symlink(id, &draft)?;
    std::fs::rename(&draft, root.join("current"))
}

/// Makes `current` lead to the newest record that is left, or nowhere.
pub fn point_at_newest(state: &Path) -> io::Result<()> {
    let root = read::root(state);
    match read::folders(state).last().and_then(|newest| newest.file_name()) {
        Some(newest) => point_at(&root, &newest.to_string_lossy()),
        None => std::fs::remove_file(root.join("current")),
    }
}

/// What the end of a record tells.
#[derive(Debug, Default)]
pub struct Ends {
    /// The last `session.end`.
    pub end: Option<Event>,
    /// The last event's number and time.
    pub seq: u64,
    pub ts: u64,
    /// Bytes of whole lines, and of all.
    pub whole: u64,
    pub length: u64,
    /// Where the program stood last.
    pub place: Option<String>,
    pub pid: Option<u32>,
}

impl Ends {
    /// Reads the last part of a record, and all of it if that does not tell how it ended.
    pub fn of(head: &Head) -> io::Result<Self> {
        let length = std::fs::metadata(head.folder.join("events.jsonl")).map_or(0, |found| found.len());
        let found = Self::since(head, length.saturating_sub(REACH))?;
        if found.end.is_some() || length <= REACH { Ok(found) } else { Self::since(head, 0) }
    }

    fn since(head: &Head, from: u64) -> io::Result<Self> {
        let mut tail = Tail::since(&head.folder, from);
        let mut ends = Self::default();
        let mut stop = None;
        while let Some(events) = tail.read()? {
            for (event, _) in events {
                (ends.seq, ends.ts) = (event.seq, event.ts);
                match event.kind.as_str() {
                    "session.end" => ends.end = Some(event),
                    "stopped" => stop = Some(event),
                    "state" => {
                        let pid = event.data.get("pid").and_then(Value::as_u64);
                        ends.pid = pid.and_then(|pid| u32::try_from(pid).ok()).or(ends.pid);
                    }
                    _ => {}
                }
            }
        }
        (ends.whole, ends.length) = tail.position();
        ends.place = stop.and_then(|event| occurrences::stop(head, &event)).map(|stop| stop.place.to_string());
        Ok(ends)
    }

    /// How the session ended, as far as the record can be read.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        serde_json::from_value(self.end.as_ref()?.data.get("ending")?.clone()).ok()
    }

    /// Its end was written by whoever found it without one.
    #[must_use]
    pub fn has_crashed(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.data["crashed"] == Value::Bool(true))
    }
}

/// Ends a record whose writer died: the torn line goes, and it says how it came to an end. Answers how many bytes went;
/// None where there was nothing to do.
pub fn recover(head: &Head) -> io::Result<Option<u64>> {
    // What was given away before its end has none.
    if head.is_written() || head.imported.is_some() {
        return Ok(None);
    }
    // Whoever else finds it waits, or comes too late.
    let Some(_lock) = take(&head.folder)? else { return Ok(None) };
    let ends = Ends::of(head)?;
    if ends.end.is_some() {
        return Ok(None);
    }
    let path = head.folder.join("events.jsonl");
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
    let dropped = ends.length - ends.whole;
    file.set_len(ends.whole)?;
    let message = "the daemon died in the middle of this session";
    let log = json!({ "message": message, "recovered": true, "dropped_bytes": dropped });
    let why = "the daemon that kept it died".to_string();
    let ending = Ending::Lost { adapter_exit: Some(why), stderr_tail: String::new() };
    let end = json!({ "ending": ending, "crashed": true });
    // When it died is not known; it was not before its last event.
    let event = |more: u64, kind: &str, data: Value| Event {
        v: 1,
        seq: ends.seq.saturating_add(more),
        ts: ends.ts,
        session: head.id.clone(),
        thread: None,
        kind: kind.into(),
        data,
    };
    let unknown = "whether it was carried out is not known: the daemon died meanwhile";
    let doubt = |id: String| {
        let error = json!({ "kind": Kind::Lost, "message": unknown });
        let who = format!("inbox:{id}");
        ("command.result", json!({ "id": id, "name": "unknown", "who": who, "ok": false, "error": error, "ms": 0 }))
    };
    let doubts = done::unanswered(head).into_iter().map(doubt);
    let told = std::iter::once(("log", log)).chain(doubts).chain([("session.end", end)]);
    let lines = (1..).zip(told).map(|(more, (kind, data))| serde_json::to_string(&event(more, kind, data)));
    let lines: Vec<String> = lines.collect::<Result<_, _>>()?;
    let text = format!("{}\n", lines.join("\n"));
    if let Err(error) = file.write_all(text.as_bytes()) {
        // Next time, perhaps.
        let _ = file.set_len(ends.whole);
        return Err(error);
    }
    file.sync_data()?;
    Ok(Some(dropped))
}

/// Ends every record whose writer died; answers their ids.
#[must_use]
pub fn recover_all(state: &Path, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for head in read::heads(state).into_iter().filter(|head| wanted(&head.id)) {
        match recover(&head) {
            Ok(Some(dropped)) => {
                crate::log::info(format!("recording {} was left by a daemon that died; {dropped} bytes torn", head.id));
                found.push(head.id);
            }
            Ok(None) => {}
            Err(error) => crate::log::warn(format!("recording {} can't be ended: {error}", head.id)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(state: &Path, id: &str, events: &str) -> Head {
        let folder = read::root(state).join(id);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("session.json"), "{\"v\":1}\n").unwrap();
        std::fs::write(folder.join("events.jsonl"), events).unwrap();
        Head::load(&folder).unwrap()
    }

    fn line(seq: u64, kind: &str) -> String {
        format!(
            "{}\n",
            json!({ "v": 1, "seq": seq, "ts": 9, "session": "x", "thread": null, "type": kind, "data": {} })
        )
    }

    #[test]
    fn a_lock_tells_who_writes() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(is_held(folder.path()), None);
        let held = hold(folder.path()).unwrap();
        assert_eq!(is_held(folder.path()), Some(true));
        assert!(take(folder.path()).unwrap().is_none());
        drop(held);
        assert_eq!(is_held(folder.path()), Some(false));
        let reader = open(OpenOptions::new().read(true), folder.path()).unwrap();
        flock(&reader, FlockOperation::LockShared).unwrap();
        assert_eq!(is_held(folder.path()), Some(false), "a reader is no writer");
        let taking = std::thread::spawn({
            let folder = folder.path().to_path_buf();
            move || take(&folder).unwrap()
        });
        std::thread::sleep(Duration::from_millis(10));
        drop(reader);
        assert!(taking.join().unwrap().is_some(), "readers are waited for");
    }

    #[test]
    fn a_record_whose_writer_died_is_ended_once() {
        let state = tempfile::tempdir().unwrap();
        let torn = &line(3, "output")[..40];
        let head =
            record(state.path(), "20260101-000000-otter", &format!("{}{}{torn}", line(1, "x"), line(2, "state")));
        let held = hold(&head.folder).unwrap();
        assert_eq!(recover(&head).unwrap(), None, "it is written");
        drop(held);
        assert_eq!(recover(&head).unwrap(), Some(40));
        assert_eq!(recover(&head).unwrap(), None);
        let ends = Ends::of(&head).unwrap();
        assert!(ends.has_crashed());
        assert_eq!((ends.seq, ends.ts, ends.length - ends.whole), (4, 9, 0));
        assert!(matches!(ends.ending(), Some(Ending::Lost { .. })));
        let text = std::fs::read_to_string(head.folder.join("events.jsonl")).unwrap();
        assert!(text.starts_with(&format!("{}{}{{", line(1, "x"), line(2, "state"))), "{text}");
        let third: Event = serde_json::from_str(text.lines().nth(2).unwrap()).unwrap();
        assert_eq!((third.seq, third.kind.as_str(), &third.data["dropped_bytes"]), (3, "log", &json!(40)));
    }

    #[test]
    fn a_record_that_counts_as_far_as_can_be_is_ended_too() {
        let state = tempfile::tempdir().unwrap();
        let head = record(state.path(), "20260101-000000-otter", &line(u64::MAX, "state"));
        assert_eq!(recover(&head).unwrap(), Some(0));
        assert!(Ends::of(&head).unwrap().has_crashed());
    }

    #[test]
    fn many_may_find_a_dead_record_and_one_ends_it() {
        let state = tempfile::tempdir().unwrap();
        let head = record(state.path(), "20260101-000000-otter", &line(1, "x"));
        let all: Vec<_> = (0..8)
            .map(|_| {
                let head = head.clone();
                std::thread::spawn(move || recover(&head).unwrap())
            })
            .collect();
        let ended = all.into_iter().filter_map(|one| one.join().unwrap()).count();
        assert_eq!(ended, 1);
        let text = std::fs::read_to_string(head.folder.join("events.jsonl")).unwrap();
        assert_eq!(text.matches("session.end").count(), 1);
    }

    #[test]
    fn an_end_is_found_far_from_the_end() {
        let state = tempfile::tempdir().unwrap();
        let mut events = format!("{}{}", line(1, "x"), line(2, "session.end"));
        while (events.len() as u64) < REACH + 1000 {
            events.push_str(&line(3, "command"));
        }
        let head = record(state.path(), "20260101-000000-otter", &events);
        let ends = Ends::of(&head).unwrap();
        assert_eq!(ends.end.as_ref().map(|end| end.seq), Some(2));
        assert_eq!((ends.whole, ends.length), (events.len() as u64, events.len() as u64));
        assert_eq!(recover(&head).unwrap(), None);
    }

    #[test]
    fn current_leads_to_the_newest_and_is_never_missing() {
        let state = tempfile::tempdir().unwrap();
        let root = read::root(state.path());
        for id in ["20260101-000000-otter", "20260102-000000-heron"] {
            record(state.path(), id, "");
            point_at(&root, id).unwrap();
        }
        let target = || std::fs::read_link(root.join("current")).unwrap();
        assert_eq!(target().to_str(), Some("20260102-000000-heron"));
        assert_eq!(read::folders(state.path()).len(), 2, "a link is no record");
        let moving = std::thread::spawn({
            let root = root.clone();
            move || (0..2000).for_each(|number| point_at(&root, &format!("x{number}")).unwrap())
        });
        while !moving.is_finished() {
            target();
        }
        moving.join().unwrap();
        std::fs::remove_dir_all(root.join("20260102-000000-heron")).unwrap();
        point_at_newest(state.path()).unwrap();
        assert_eq!(target().to_str(), Some("20260101-000000-otter"));
    }
}
