//! Writing the record, off the path of commands: what commands and sessions call.
//!
//! [`Recorder`] makes records and [`Journal`] is the way into one. Both only hand over; [`super::writer`] writes.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::sync::Notify;

use super::keeper::Keeper;
use super::list::{self, Entry};
use super::read::{self, Head};
use super::writer::{self, Job, Open};
use super::{lifecycle, redact};
use crate::failure::Failure;
use crate::log;
use crate::model::Event;

/// Output beyond this is not recorded, only counted: the record is for looking back, not for storage.
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;
/// The longest text of one event of output.
const MAX_TEXT: usize = 16 * 1024;
/// What output may wait for a slow disk. What comes beyond it is dropped, and counted.
const MAX_QUEUED: usize = 64 * 1024 * 1024;
/// Roughly what an event takes in memory beside its text.
const EVENT: usize = 512;
/// Source files that are kept of one session.
const MAX_SOURCES: usize = 500;
/// How long a reply waits for its events to be written. A disk that takes longer holds up nobody.
const WRITING: Duration = Duration::from_millis(250);

/// The thread that writes, which ends when every journal and the recorder are dropped.
#[derive(Debug, Clone)]
pub struct Recorder {
    state: PathBuf,
    jobs: mpsc::Sender<Job>,
    next: Arc<AtomicU64>,
    queued: Arc<AtomicUsize>,
    redacts: Arc<AtomicBool>,
    keeper: Keeper,
    /// Held by the one who ends what other daemons left.
    recovering: Arc<Mutex<()>>,
}

impl Recorder {
    /// Starts the writing threads; recordings go below `state`/sessions.
    pub fn start(state: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::io("start the recorder", &error);
        let keeper = Keeper::start(state.to_path_buf()).map_err(failed)?;
        let (sender, jobs) = mpsc::channel();
        let queued: Arc<AtomicUsize> = Arc::default();
        let (counted, own) = (Arc::clone(&queued), keeper.clone());
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || writer::run(&jobs, &counted, &own))
            .map_err(failed)?;
        let redacts = Arc::new(AtomicBool::new(true));
        Ok(Self {
            state: state.to_path_buf(),
            jobs: sender,
            next: Arc::default(),
            queued,
            redacts,
            keeper,
            recovering: Arc::default(),
        })
    }

    /// Whether secrets are left out of records that are made from now on.
    pub fn set_redacts(&self, redacts: bool) {
        self.redacts.store(redacts, Ordering::Relaxed);
    }

    #[must_use]
    pub fn redacts(&self) -> bool {
        self.redacts.load(Ordering::Relaxed)
    }

    /// A new recording. Its id is the time and a word, so that it can be said aloud. Ids sort by age, those of one second
    /// too: the words stand in their order, and each is for a part of it.
    pub fn create(&self, about: &Value, logged: bool) -> Result<Journal, Failure> {
        let root = read::root(&self.state);
        let failed = |error| Failure::io(format!("record in {}", root.display()), &error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&root).map_err(failed)?;
        let now = part(now_ms());
        for attempt in 0..100 {
            let folder = root.join(name(now + attempt));
            match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => {
                    return self.open(&folder, about, logged).map_err(|error| {
                        // It holds nothing, and nobody knows of it.
                        let _ = std::fs::remove_dir_all(&folder);
                        failed(error)
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Failure::refused("no free name for a recording"))
    }

    fn open(&self, folder: &Path, about: &Value, logged: bool) -> std::io::Result<Journal> {
        // Whoever can read the head finds the lock held.
        let lock = lifecycle::hold(folder)?;
        let id = folder.file_name().map(|id| id.to_string_lossy().into_owned()).unwrap_or_default();
        let redacts = self.redacts();
        let mut head = about.clone();
        if redacts {
            redact::value(&mut head);
        }
        head["v"] = json!(1);
        head["id"] = json!(id);
        head["started"] = json!(now_ms());
        let mut options = OpenOptions::new();
        options.create_new(true).append(true).mode(0o600);
        let draft = folder.join("session.new");
        options.open(&draft).and_then(|mut file| writeln!(file, "{head}"))?;
        let events = options.open(folder.join("events.jsonl"))?;
        options.open(folder.join("commands.jsonl"))?;
        std::fs::rename(&draft, folder.join("session.json"))?;
        let head =
            Head::load(folder).unwrap_or_else(|| Head { id: id.clone(), folder: folder.into(), ..Head::default() });
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let progress: Arc<Progress> = Arc::default();
        let record = Open::new(head, events, lock, Arc::clone(&progress)).logged(logged).redacted(redacts);
        let _ = self.jobs.send(Job::Open { key, record: Box::new(record) });
        let counts = Mutex::new(Counts { next: 1, ..Counts::default() });
        let queued = Arc::clone(&self.queued);
        Ok(Journal(Arc::new(Shared { id, key, jobs: self.jobs.clone(), queued, counts, progress })))
    }

    /// Waits until everything that was recorded so far can be read by others.
    pub async fn flush(&self) {
        let (written, wait) = tokio::sync::oneshot::channel();
        if self.jobs.send(Job::Flush(written)).is_ok() {
            let _ = wait.await;
        }
    }

    /// Every session there is, newest first. Reads files: not for the daemon's own thread.
    #[must_use]
    pub fn sessions(&self) -> Vec<Entry> {
        list::load(&self.state, &self.keeper.entries())
    }

    /// Ends the records of daemons that died, once each. Reads files, as [`Recorder::sessions`].
    pub fn recover(&self) {
        // One at a time: to whoever looks meanwhile, a record that is being ended seems to be written.
        let _recovering = lock(&self.recovering);
        let known = self.keeper.entries();
        let unsettled = list::load(&self.state, &known).into_iter();
        let unsettled: Vec<Entry> =
            unsettled.filter(|entry| entry.may_need_its_end() && !known.contains_key(&entry.id)).collect();
        let found = lifecycle::recover_all(&self.state, |id| unsettled.iter().any(|entry| entry.id == id));
        if !found.is_empty() {
            self.keeper.list_again();
        }
    }

    /// The folders have changed: the list of them is written anew.
    pub fn list_again(&self) {
        self.keeper.list_again();
    }

    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }
}

/// How far a record is written, and what is wrong with it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    written: AtomicU64,
    news: Notify,
    trouble: Mutex<Trouble>,
}

#[derive(Debug, Default)]
struct Trouble {
    text: Option<String>,
    told: bool,
}

impl Progress {
    /// All events up to this number are written, or can't be.
    pub(super) fn written(&self, seq: u64) {
        self.written.store(seq, Ordering::Release);
        self.news.notify_waiters();
    }

    pub(super) fn is_written(&self, seq: u64) -> bool {
        self.written.load(Ordering::Acquire) >= seq
    }

    pub(super) fn trouble(&self, text: String) {
        lock(&self.trouble).text = Some(text);
    }

    /// What is wrong, if nobody was told yet.
    pub(super) fn take_trouble(&self) -> Option<String> {
        let mut trouble = lock(&self.trouble);
        let text = trouble.text.clone().filter(|_| !trouble.told);
        trouble.told |= text.is_some();
        text
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One session's line into the recorder. Copies write the same record, which is closed with the last of them.
#[derive(Debug, Clone)]
pub struct Journal(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    id: String,
    key: u64,
    jobs: mpsc::Sender<Job>,
    queued: Arc<AtomicUsize>,
    counts: Mutex<Counts>,
    progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct Counts {
    next: u64,
    output: u64,
    /// Output that found the queue full: how often, and how many bytes.
    dropped: (u64, u64),
    /// Source files that are recorded, as they were then.
    sources: HashMap<PathBuf, Option<(SystemTime, u64)>>,
}

impl Shared {
    fn send(&self, counts: &mut Counts, kind: &str, thread: Option<i64>, data: Value) -> u64 {
        self.weighed(counts, kind, thread, data, 0)
    }

    /// Hands over an event that counts for so much in the queue.
    fn weighed(&self, counts: &mut Counts, kind: &str, thread: Option<i64>, data: Value, weight: usize) -> u64 {
        let seq = counts.next;
        counts.next += 1;
        self.queued.fetch_add(weight, Ordering::Relaxed);
        let event = Event { v: 1, seq, ts: now_ms(), session: self.id.clone(), thread, kind: kind.into(), data };
        if self.jobs.send(Job::Event { key: self.key, event: Box::new(event), weight }).is_err() {
            self.queued.fetch_sub(weight, Ordering::Relaxed);
            self.progress.written(seq);
        }
        seq
    }

    /// Says what was dropped since the last time.
    fn say_dropped(&self, counts: &mut Counts) {
        let (events, bytes) = std::mem::take(&mut counts.dropped);
        if events > 0 {
            let message = format!("{bytes} bytes of output are not recorded: the disk was too slow");
            let data = json!({ "message": message, "dropped_events": events, "dropped_bytes": bytes });
            self.send(counts, "log", None, data);
        }
    }
}

impl Journal {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Appends an event in the frozen envelope; answers its number.
    pub fn append(&self, kind: &str, thread: Option<i64>, data: Value) -> u64 {
        // Numbers must come to the writer in their order.
        let mut counts = lock(&self.0.counts);
        self.0.say_dropped(&mut counts);
        self.0.send(&mut counts, kind, thread, data)
    }

    /// Appends output, up to a limit that is said once.
    pub fn output(&self, stream: crate::session::Stream, text: &str) {
        let shared = &self.0;
        let mut counts = lock(&shared.counts);
        let before = counts.output;
        counts.output += text.len() as u64;
        if counts.output > MAX_OUTPUT {
            if before <= MAX_OUTPUT {
                let data = json!({ "message": "more output was printed than is recorded" });
                shared.send(&mut counts, "log", None, data);
            }
            return;
        }
        for piece in pieces(text) {
            if shared.queued.load(Ordering::Relaxed) > MAX_QUEUED {
                counts.dropped.0 += 1;
                counts.dropped.1 += piece.len() as u64;
            } else {
                shared.say_dropped(&mut counts);
                let data = json!({ "stream": stream, "text": piece });
                shared.weighed(&mut counts, "output", None, data, EVENT + piece.len());
            }
        }
    }

    /// Keeps a source file as it is now, for whoever looks back: once, and again when it has changed. It is read on the
    /// recorder's thread.
    pub fn source(&self, file: &Path) {
        let stamp = std::fs::metadata(file).ok().and_then(|found| Some((found.modified().ok()?, found.len())));
        let shared = &self.0;
        let mut counts = lock(&shared.counts);
        if counts.sources.get(file) == Some(&stamp) || counts.sources.len() >= MAX_SOURCES {
            return;
        }
        counts.sources.insert(file.to_path_buf(), stamp);
        let seq = counts.next;
        counts.next += 1;
        let _ = shared.jobs.send(Job::Source { key: shared.key, seq, file: file.to_path_buf() });
    }

    /// Waits until an event is written, so that it is there even if this process dies. Not for a disk that takes long.
    pub async fn written(&self, seq: u64) {
        let progress = &self.0.progress;
        let wait = async {
            loop {
                let news = progress.news.notified();
                if progress.is_written(seq) {
                    return;
                }
                news.await;
            }
        };
        if !progress.is_written(seq) && tokio::time::timeout(WRITING, wait).await.is_err() {
            log::warn(format!("recording {} is behind: a reply did not wait for it", self.id()));
        }
    }

    /// What is wrong with the record, once.
    #[must_use]
    pub fn take_trouble(&self) -> Option<String> {
        self.0.progress.take_trouble()
    }

    /// What is wrong with the record, if anything is.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        lock(&self.0.progress.trouble).text.clone()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let mut counts = std::mem::take(&mut *lock(&self.counts));
        self.say_dropped(&mut counts);
        let _ = self.jobs.send(Job::Close { key: self.key });
    }
}

/// A text in pieces that are not too long.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = rest.len().min(MAX_TEXT);
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// The time in parts of a second, of which each has its word.
fn part(ms: u64) -> u64 {
    ms / 1000 * WORDS.len() as u64 + ms % 1000 * WORDS.len() as u64 / 1000
}

/// `20261115-214131-otter`, in UTC.
fn name(part: u64) -> String {
    let (seconds, word) = (part / WORDS.len() as u64, part % WORDS.len() as u64);
    let word = usize::try_from(word).ok().and_then(|word| WORDS.get(word)).unwrap_or(&"yak");
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = log::date(days);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}-{word}", rest / 3600, rest / 60 % 60, rest % 60)
}

const WORDS: [&str; 32] = [
    "adder", "badger", "bison", "cobra", "crane", "dingo", "egret", "ferret", "finch", "gecko", "gull", "hare",
    "heron", "ibis", "jackal", "koala", "lemur", "lynx", "mole", "newt", "okapi", "otter", "puma", "quail", "raven",
    "seal", "tapir", "urchin", "viper", "wren", "yak", "zebra",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::blobs;

    #[test]
    fn a_name_is_the_time_in_words_that_sort() {
        assert_eq!(name(part(0)), "19700101-000000-adder");
        assert_eq!(name(part(1_794_778_891_670)), "20261115-214131-otter");
        assert_eq!(name(part(1_709_208_000_999)), "20240229-120000-zebra");
        let names: Vec<String> = (0..100).map(|more| name(part(1_709_207_999_500) + more)).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn records_of_one_moment_sort_by_their_age() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journals: Vec<Journal> = (0..20).map(|_| recorder.create(&json!({}), false).unwrap()).collect();
        assert!(journals.windows(2).all(|pair| pair[0].id() < pair[1].id()), "{journals:?}");
    }

    #[test]
    fn events_are_lines_of_the_frozen_envelope() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journal = recorder.create(&json!({ "adapter": "x" }), false).unwrap();
        let path = folder.path().join("sessions").join(journal.id());
        assert_eq!(journal.append("stopped", Some(1), json!({ "a": 1 })), 1);
        assert_eq!(journal.clone().append("session.end", None, Value::Null), 2);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(recorder.flush());
        let text = std::fs::read_to_string(path.join("events.jsonl")).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["v", "seq", "ts", "session", "thread", "type", "data"]);
        assert_eq!((lines[0]["seq"].as_u64(), lines[1]["seq"].as_u64()), (Some(1), Some(2)));
        assert_eq!(lines[1]["type"], "session.end");
        let head: Value = serde_json::from_slice(&std::fs::read(path.join("session.json")).unwrap()).unwrap();
        assert_eq!((&head["adapter"], &head["id"]), (&json!("x"), &json!(journal.id())));
    }

    #[test]
    fn a_source_is_kept_as_it_was_once_per_content() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journal = recorder.create(&json!({}), false).unwrap();
        let record = folder.path().join("sessions").join(journal.id());
        let file = folder.path().join("a.py");
        let flush = || tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(recorder.flush());
        std::fs::write(&file, "one").unwrap();
        journal.source(&file);
        journal.source(&file);
        flush();
        std::fs::write(&file, "three").unwrap();
        journal.source(&file);
        journal.source(Path::new("/nowhere.py"));
        assert_eq!(journal.append("log", None, Value::Null), 4);
        flush();
        let text = std::fs::read_to_string(record.join("events.jsonl")).unwrap();
        let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(events.iter().map(|event| event["seq"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2, 3, 4]);
        let content = |at: usize| blobs::load(&record, events[at]["data"]["sha256"].as_str().unwrap()).unwrap();
        assert_eq!((content(0), content(1)), (b"one".to_vec(), b"three".to_vec()));
        assert!(events[2]["data"]["left_out"].as_str().unwrap().contains("No such file"), "{text}");
    }

    #[test]
    fn what_a_slow_disk_can_t_take_is_counted_and_stops_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journal = recorder.create(&json!({}), false).unwrap();
        let (stalled, until) = mpsc::channel();
        recorder.jobs.send(Job::Stall(until)).unwrap();
        // As much as others have left there.
        recorder.queued.fetch_add(MAX_QUEUED, Ordering::Relaxed);
        let text = "x".repeat(1000);
        for _ in 0..10 {
            journal.output(crate::session::Stream::Stdout, &text);
        }
        assert!(recorder.queued.load(Ordering::Relaxed) < MAX_QUEUED + 10_000);
        assert_eq!(journal.append("stopped", Some(1), json!({})), 3);
        recorder.queued.fetch_sub(MAX_QUEUED, Ordering::Relaxed);
        journal.output(crate::session::Stream::Stdout, &text);
        drop(stalled);
        let lines = lines(&recorder, folder.path(), journal.id());
        let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["output", "log", "stopped", "output"]);
        assert_eq!(lines[1]["data"]["dropped_events"], 9);
        assert_eq!(lines[1]["data"]["dropped_bytes"], 9000);
        assert_eq!(recorder.queued.load(Ordering::Relaxed), 0);
    }

    fn lines(recorder: &Recorder, state: &Path, id: &str) -> Vec<Value> {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(recorder.flush());
        let text = std::fs::read_to_string(state.join("sessions").join(id).join("events.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn what_is_large_is_apart_and_comes_back_whole() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journal = recorder.create(&json!({}), false).unwrap();
        let value = "v".repeat(100_000);
        journal.append("eval", None, json!({ "expression": "e", "value": value }));
        journal.output(crate::session::Stream::Stdout, &"ü".repeat(MAX_TEXT));
        let lines = lines(&recorder, folder.path(), journal.id());
        assert_eq!(lines[0]["data"]["value"]["ref"]["bytes"], 100_002);
        assert_eq!(lines.len(), 3, "output comes in pieces");
        let mut tail = crate::store::read::Tail::new(&folder.path().join("sessions").join(journal.id()));
        let (event, line) = tail.read().unwrap().unwrap().remove(0);
        assert!(event.data["value"] == value.as_str() && line.len() < 500);
    }

    #[test]
    fn secrets_are_left_out_unless_that_is_not_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        for redacts in [true, false] {
            recorder.set_redacts(redacts);
            let journal = recorder.create(&json!({ "words": ["./a", "--password", "hunter2"] }), false).unwrap();
            journal.append("stopped", None, json!({ "locals": [{ "name": "password", "text": "'hunter2'" }] }));
            journal.output(crate::session::Stream::Stdout, "PASSWORD=hunter2\n");
            let record = folder.path().join("sessions").join(journal.id());
            lines(&recorder, folder.path(), journal.id());
            let files =
                ["events.jsonl", "session.json"].map(|name| std::fs::read_to_string(record.join(name)).unwrap());
            let count: usize = files.iter().map(|text| text.matches("hunter2").count()).sum();
            assert_eq!(count, if redacts { 0 } else { 3 }, "{files:?}");
        }
    }

    #[test]
    fn a_record_is_locked_while_it_is_open_and_current_leads_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journals = [(); 2].map(|()| recorder.create(&json!({ "words": ["./a"] }), false).unwrap());
        let [first, second] = &journals;
        assert_ne!(first.id(), second.id());
        first.append("session.start", None, json!({}));
        lines(&recorder, folder.path(), first.id());
        let root = read::root(folder.path());
        assert_eq!(std::fs::read_link(root.join("current")).unwrap().to_str(), Some(second.id()));
        let head = Head::load(&root.join(second.id())).unwrap();
        assert!(head.is_written());
        drop(journals);
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(recorder.flush());
        assert!(!head.is_written());
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        let listed = || {
            let text = std::fs::read_to_string(root.join("index.json")).unwrap_or_default();
            text.contains("./a") && text.contains("crashed")
        };
        while !listed() {
            assert!(std::time::Instant::now() < deadline, "the list is never written");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn an_event_that_was_waited_for_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journal = recorder.create(&json!({}), false).unwrap();
        let path = folder.path().join("sessions").join(journal.id()).join("events.jsonl");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for _ in 0..1000 {
            let seq = journal.append("log", None, Value::Null);
            runtime.block_on(journal.written(seq));
            let text = std::fs::read_to_string(&path).unwrap();
            assert_eq!(text.lines().count() as u64, seq);
        }
    }

    #[test]
    fn output_beyond_the_limit_is_said_once() {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::start(folder.path()).unwrap();
        let journal = recorder.create(&json!({}), false).unwrap();
        let path = folder.path().join("sessions").join(journal.id()).join("events.jsonl");
        let much = "x".repeat(usize::try_from(MAX_OUTPUT).unwrap());
        for text in [much.as_str(), "y", "z"] {
            journal.output(crate::session::Stream::Stdout, text);
        }
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(recorder.flush());
        let text = std::fs::read_to_string(path).unwrap();
        let kinds: Vec<String> = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].as_str().unwrap().to_string())
            .collect();
        let (last, pieces) = kinds.split_last().unwrap();
        assert_eq!(last, "log");
        assert!(pieces.len() == 256 && pieces.iter().all(|kind| kind == "output"), "{pieces:?}");
    }
}
