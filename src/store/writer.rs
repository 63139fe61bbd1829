//! The recorder's thread: events of all sessions become lines of their records, without secrets, one `write` a line.
//!
//! It blocks on its channel and on `write`. What can't be written, since the disk is full, is counted and said; the
//! program goes on being debugged.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant, UNIX_EPOCH};

use serde_json::{Value, json};

use super::keeper::Keeper;
use super::list::{Entry, State};
use super::read::Head;
use super::redact::{self, Redactor};
use super::write::{Progress, now_ms};
use super::{blobs, lifecycle, occurrences};
use crate::log;
use crate::model::Event;

/// Source files beyond this size are not kept.
const MAX_SOURCE: u64 = 2 * 1024 * 1024;
/// How long a record that can't be written is left alone.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the thread is asked to do.
#[derive(Debug)]
pub(super) enum Job {
    Open {
        key: u64,
        record: Box<Open>,
    },
    Event {
        key: u64,
        event: Box<Event>,
        /// What it counts for in the queue.
        weight: usize,
    },
    /// A source file as it is now; its event has this number.
    Source {
        key: u64,
        seq: u64,
        file: PathBuf,
    },
    Close {
        key: u64,
    },
    /// Everything before this is written.
    Flush(tokio::sync::oneshot::Sender<()>),
    /// Waits until the other end is dropped, as a disk does that has stalled.
    #[cfg(test)]
    Stall(mpsc::Receiver<()>),
}

/// A record that is written to.
#[derive(Debug)]
pub(super) struct Open {
    head: Head,
    events: Arc<File>,
    /// Bytes of whole lines.
    length: u64,
    /// The last line has no end, and could not be taken back.
    torn: bool,
    /// Its events go to the daemon's log too.
    logged: bool,
    redactor: Option<Redactor>,
    lost: Option<Lost>,
    /// Events that are missing; that some are was said with the first.
    missing: u64,
    progress: Arc<Progress>,
    entry: Entry,
    /// Held while this is open.
    _lock: File,
}

/// Events that could not be written.
#[derive(Debug)]
struct Lost {
    from: u64,
    to: u64,
    count: u64,
    why: String,
    again: Instant,
}

impl Open {
    pub(super) fn new(head: Head, events: File, lock: File, progress: Arc<Progress>) -> Self {
        let entry = Entry::new(&head);
        Self {
            head,
            events: Arc::new(events),
            length: 0,
            torn: false,
            logged: false,
            redactor: None,
            lost: None,
            missing: 0,
            progress,
            entry,
            _lock: lock,
        }
    }

    pub(super) fn logged(mut self, logged: bool) -> Self {
        self.logged = logged;
        self
    }

    pub(super) fn redacted(mut self, redacted: bool) -> Self {
        self.redactor = redacted.then(Redactor::default);
        self
    }

    /// Writes an event, or counts it among the lost.
    fn put(&mut self, key: u64, event: Event, keeper: &Keeper) {
        self.put_with(key, event, None, keeper);
    }

    /// The same of an event that refers to a blob that was just written.
    fn put_with(&mut self, key: u64, mut event: Event, blob: Option<File>, keeper: &Keeper) {
        let seq = event.seq;
        if let Some(redactor) = &mut self.redactor {
            redactor.event(&mut event);
        }
        let matters = matches!(event.kind.as_str(), "stopped" | "session.end");
        self.note(&event, keeper);
        if self.say_lost(matters, keeper, key) {
            match self.write(&mut event) {
                Ok(blobs) => {
                    let blobs = blobs.into_iter().chain(blob).collect();
                    keeper.written(key, &self.events, blobs, matters);
                }
                Err(error) => self.lose(seq, &error.to_string()),
            }
        } else if let Some(lost) = &mut self.lost {
            lost.to = seq;
            lost.count += 1;
            self.missing += 1;
        }
        self.progress.written(seq);
    }

    /// Says that events are missing, if any are; answers whether there is room for more.
    fn say_lost(&mut self, matters: bool, keeper: &Keeper, key: u64) -> bool {
        let Some(lost) = &mut self.lost else { return true };
        if Instant::now() < lost.again && !matters {
            return false;
        }
        lost.again = Instant::now() + PATIENCE;
        let message = format!("{} events could not be recorded: {}", lost.count, lost.why);
        let data = json!({ "message": message, "truncated": true, "lost": lost.count, "from": lost.from });
        // In place of the last that is missing.
        let to = lost.to;
        let mut event = self.event(to, "log", data);
        let written = self.write(&mut event).map(|_| keeper.written(key, &self.events, Vec::new(), false)).is_ok();
        if written {
            self.progress.trouble(format!("not everything is recorded: {} events are missing", self.missing));
            self.lost = None;
        }
        written
    }

    /// Counts an event that could not be written. That is said once: debugging goes on.
    fn lose(&mut self, seq: u64, why: &str) {
        self.lost = Some(Lost { from: seq, to: seq, count: 1, why: why.into(), again: Instant::now() + PATIENCE });
        // Where not even this can be made, the numbers of events show a gap.
        let _ = File::create_new(self.head.folder.join("truncated"));
        if self.missing == 0 {
            log::warn(format!("recording {} is not complete: {why}; debugging goes on", self.head.id));
            self.progress.trouble(format!("not everything is recorded: {why}"));
        }
        self.missing += 1;
    }

    fn event(&self, seq: u64, kind: &str, data: Value) -> Event {
        let session = self.head.id.clone();
        Event { v: 1, seq, ts: now_ms(), session, thread: None, kind: kind.into(), data }
    }

    /// Writes a line, all of it or nothing; answers the blobs that were written for it.
    fn write(&mut self, event: &mut Event) -> io::Result<Vec<File>> {
        let mut line = serde_json::to_string(event)?;
        let mut blobs = Vec::new();
        if line.len() > blobs::LARGE {
            blobs = blobs::set_apart(&self.head.folder, &mut event.data)?;
            line = serde_json::to_string(event)?;
        }
        if self.logged {
            log::info(format!("event {line}"));
        }
        line.push('\n');
        if self.torn {
            line.insert(0, '\n');
        }
        match (&*self.events).write_all(line.as_bytes()) {
            Ok(()) => {
                self.length += line.len() as u64;
                if std::mem::take(&mut self.torn) {
                    // What could not be taken back counts too: nothing whole may be cut later.
                    self.length = self.events.metadata().map_or(self.length, |found| found.len());
                }
                Ok(blobs)
            }
            Err(error) => {
                // A part of it may be there.
                self.torn = self.events.set_len(self.length).is_err();
                Err(error)
            }
        }
    }

    /// Keeps what the list of sessions says about this one.
    fn note(&mut self, event: &Event, keeper: &Keeper) {
        let entry = &mut self.entry;
        let now = match event.kind.as_str() {
            "session.start" => true,
            "session.end" => {
                entry.state = State::Ended;
                entry.ending = event.data.get("ending").and_then(|ending| serde_json::from_value(ending.clone()).ok());
                true
            }
            "state" => {
                let pid = event.data.get("pid").and_then(Value::as_u64);
                entry.pid = pid.and_then(|pid| u32::try_from(pid).ok()).or(entry.pid);
                false
            }
            "stopped" => {
                let top = |field: &str| event.data.get("frames")?.get(0)?.get(field);
                let line = top("line").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
                let text = |field| top(field).and_then(Value::as_str);
                let function = text("function").unwrap_or("?");
                entry.place = Some(occurrences::key(&self.head, text("file"), line, function).to_string());
                false
            }
            _ => return,
        };
        keeper.list(entry, now);
    }

    /// Stores a source file; answers what its event says, the name of its content or why it is left out, and the blob.
    fn source(&self, file: &Path) -> (Value, Option<File>) {
        let mut data = json!({ "file": file });
        let mut stored = None;
        match self.store(file) {
            Ok(Some((sha256, mtime, blob))) => {
                data["sha256"] = json!(sha256);
                data["mtime"] = json!(mtime);
                stored = blob;
            }
            Ok(None) => data["left_out"] = json!("too large, or no plain file"),
            Err(error) => data["left_out"] = json!(error.to_string()),
        }
        (data, stored)
    }

    fn store(&self, file: &Path) -> io::Result<Option<(String, u64, Option<File>)>> {
        let found = std::fs::metadata(file)?;
        if !found.is_file() || found.len() > MAX_SOURCE {
            return Ok(None);
        }
        let mut content = Vec::new();
        File::open(file)?.take(MAX_SOURCE).read_to_end(&mut content)?;
        if self.redactor.is_some()
            && let Ok(text) = std::str::from_utf8(&content)
            && let std::borrow::Cow::Owned(clean) = redact::source(text)
        {
            content = clean.into_bytes();
        }
        let (blob, stored) = blobs::store(&self.head.folder, &content)?;
        let mtime = found.modified()?.duration_since(UNIX_EPOCH).map_or(0, |at| at.as_millis());
        Ok(Some((blob.sha256, u64::try_from(mtime).unwrap_or(0), stored)))
    }
}

/// Does jobs until nobody can ask for any more.
pub(super) fn run(jobs: &mpsc::Receiver<Job>, queued: &AtomicUsize, keeper: &Keeper) {
    let mut open: HashMap<u64, Box<Open>> = HashMap::new();
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Open { key, record } => {
                if let Some(root) = record.head.folder.parent()
                    && let Err(error) = lifecycle::point_at(root, &record.head.id)
                {
                    log::warn(format!("current does not lead to {}: {error}", record.head.id));
                }
                keeper.list(&record.entry, true);
                open.insert(key, record);
            }
            Job::Event { key, event, weight } => {
                if let Some(record) = open.get_mut(&key) {
                    record.put(key, *event, keeper);
                }
                queued.fetch_sub(weight, Ordering::Relaxed);
            }
            Job::Source { key, seq, file } => {
                if let Some(record) = open.get_mut(&key) {
                    let (data, blob) = record.source(&file);
                    record.put_with(key, record.event(seq, "source", data), blob, keeper);
                }
            }
            Job::Close { key } => {
                if let Some(mut record) = open.remove(&key) {
                    record.say_lost(true, keeper, key);
                    keeper.written(key, &record.events, Vec::new(), true);
                    keeper.forget(&record.head.id);
                }
            }
            Job::Flush(written) => {
                let _ = written.send(());
            }
            #[cfg(test)]
            Job::Stall(until) => {
                let _ = until.recv();
            }
        }
    }
    keeper.end();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, events: File) -> Open {
        let lock = lifecycle::hold(folder).unwrap();
        let head = Head { id: "x".into(), folder: folder.into(), ..Head::default() };
        Open::new(head, events, lock, Arc::default()).redacted(true)
    }

    fn event(seq: u64, kind: &str) -> Event {
        Event { v: 1, seq, ts: 0, session: "x".into(), thread: None, kind: kind.into(), data: json!({}) }
    }

    fn keeper(folder: &Path) -> Keeper {
        Keeper::start(folder.join("state")).unwrap()
    }

    #[test]
    fn a_full_disk_is_said_once_and_told_when_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = keeper(folder.path());
        let full = File::options().append(true).open("/dev/full").unwrap();
        let mut record = open(folder.path(), full);
        for seq in 1..=5 {
            record.put(0, event(seq, if seq == 3 { "stopped" } else { "output" }), &keeper);
        }
        let (said, lost) = (record.progress.take_trouble().unwrap(), record.lost.as_ref().unwrap());
        assert!(said.starts_with("not everything is recorded: No space left on device"), "{said}");
        assert_eq!((lost.from, lost.to, lost.count), (1, 5, 5));
        assert!(folder.path().join("truncated").exists());
        assert!(record.progress.is_written(5), "nobody waits for what can't be written");
        assert_eq!(record.progress.take_trouble(), None);
        let path = folder.path().join("events.jsonl");
        record.events = Arc::new(File::options().create(true).append(true).open(&path).unwrap());
        (record.torn, record.length) = (false, 0);
        record.put(0, event(6, "stopped"), &keeper);
        let text = std::fs::read_to_string(&path).unwrap();
        let events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [5, 6]);
        assert_eq!((&events[0].data["lost"], &events[0].data["from"]), (&json!(5), &json!(1)));
        assert_eq!(record.progress.take_trouble(), None, "it is said once");
        assert_eq!((record.missing, record.lost.is_none()), (5, true));
        keeper.end();
    }

    #[test]
    fn half_a_line_that_can_t_be_taken_back_costs_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let keeper = keeper(folder.path());
        let path = folder.path().join("events.jsonl");
        let file = File::options().create(true).append(true).open(&path).unwrap();
        let mut record = open(folder.path(), file.try_clone().unwrap());
        record.put(0, event(1, "log"), &keeper);
        let whole = std::fs::read_to_string(&path).unwrap();
        // What a write leaves that met the end of the disk half way.
        (&file).write_all(b"{\"v\":1,\"seq").unwrap();
        record.events = Arc::new(File::options().read(true).open(&path).unwrap());
        assert!(record.write(&mut event(2, "log")).is_err());
        assert!(record.torn, "a file that can't be written can't be cut");
        // It has a line of its own, and is never cut together with what comes after it.
        record.events = Arc::new(file);
        record.put(0, event(3, "stopped"), &keeper);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(&format!("{whole}{{\"v\":1,\"seq\n{{")), "{text}");
        assert_eq!((record.torn, record.length), (false, text.len() as u64));
        keeper.end();
    }
}
