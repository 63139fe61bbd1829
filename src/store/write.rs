//! Writing the record, off the path of commands: one thread writes for all sessions, one `write` a line.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::log;
use crate::model::Event;

/// Output beyond this is not recorded, only counted: the record is for looking back, not for storage.
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;

/// The thread that writes. It blocks on its channel and on the disk, and ends when every journal and the recorder are
/// dropped.
#[derive(Debug, Clone)]
pub struct Recorder {
    root: PathBuf,
    jobs: mpsc::Sender<Job>,
    next: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Job {
    Open {
        key: u64,
        record: Open,
    },
    Event {
        key: u64,
        event: Box<Event>,
    },
    Close {
        key: u64,
    },
    /// Everything before this is written.
    Flush(tokio::sync::oneshot::Sender<()>),
}

/// A record that is written to.
#[derive(Debug)]
struct Open {
    id: String,
    events: File,
    /// Its events go to the daemon's log too.
    logged: bool,
}

impl Recorder {
    /// Starts the writing thread; recordings go below `state`/sessions.
    pub fn start(state: &Path) -> Result<Self, Failure> {
        let (sender, jobs) = mpsc::channel();
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || write_all(&jobs))
            .map_err(|error| Failure::io("start the recorder", &error))?;
        Ok(Self { root: state.join("sessions"), jobs: sender, next: Arc::default() })
    }

    /// A new recording. Its id is the time and a word, so that ids sort by age and can be said aloud.
    pub fn create(&self, about: &Value, logged: bool) -> Result<Journal, Failure> {
        let mut builder = std::fs::DirBuilder::new();
        builder.mode(0o700);
        let failed = |error| Failure::io(format!("record in {}", self.root.display()), &error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.root).map_err(failed)?;
        let now = now_ms();
        for attempt in 0..100 {
            let id =
                format!("{}-{}", stamp(now), WORDS[(usize::try_from(now).unwrap_or(0) + attempt * 7) % WORDS.len()]);
            let folder = self.root.join(&id);
            match builder.create(&folder) {
                Ok(()) => return self.open(id, &folder, about, logged),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Failure::refused("no free name for a recording"))
    }

    fn open(&self, id: String, folder: &Path, about: &Value, logged: bool) -> Result<Journal, Failure> {
        let failed = |error| Failure::io(format!("record in {}", folder.display()), &error);
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let mut head = about.clone();
        head["v"] = json!(1);
        head["id"] = json!(id);
        head["started"] = json!(now_ms());
        options.open(folder.join("session.json")).and_then(|mut file| writeln!(file, "{head}")).map_err(failed)?;
        let events = options.open(folder.join("events.jsonl")).map_err(failed)?;
        let key = self.next.fetch_add(1, Ordering::Relaxed);
        let _ = self.jobs.send(Job::Open { key, record: Open { id: id.clone(), events, logged } });
        let counts = Mutex::new(Counts { next: 1, output: 0 });
        Ok(Journal(Arc::new(Shared { id, key, jobs: self.jobs.clone(), counts })))
    }

    /// Waits until everything that was recorded so far can be read by others.
    pub async fn flush(&self) {
        let (written, wait) = tokio::sync::oneshot::channel();
        if self.jobs.send(Job::Flush(written)).is_ok() {
            let _ = wait.await;
        }
    }
}

/// One session's line into the recorder. Copies write the same record, which is closed with the last of them.
#[derive(Debug, Clone)]
pub struct Journal(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    id: String,
    key: u64,
    jobs: mpsc::Sender<Job>,
    counts: Mutex<Counts>,
}

#[derive(Debug)]
struct Counts {
    next: u64,
    output: u64,
}

impl Journal {
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Appends an event in the frozen envelope; answers its number.
    pub fn append(&self, kind: &str, thread: Option<i64>, data: Value) -> u64 {
        let shared = &self.0;
        // Numbers must come to the writer in their order.
        let mut counts = shared.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = counts.next;
        counts.next += 1;
        let (session, kind) = (shared.id.clone(), kind.to_string());
        let event = Box::new(Event { v: 1, seq, ts: now_ms(), session, thread, kind, data });
        let _ = shared.jobs.send(Job::Event { key: shared.key, event });
        seq
    }

    /// Appends output, up to a limit that is said once.
    pub fn output(&self, stream: crate::session::Stream, text: &str) {
        let (before, now) = {
            let mut counts = self.0.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let before = counts.output;
            counts.output += text.len() as u64;
            (before, counts.output)
        };
        if now <= MAX_OUTPUT {
            self.append("output", None, json!({ "stream": stream, "text": text }));
        } else if before <= MAX_OUTPUT {
            self.append("log", None, json!({ "message": "more output was printed than is recorded" }));
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let _ = self.jobs.send(Job::Close { key: self.key });
    }
}

fn write_all(jobs: &mpsc::Receiver<Job>) {
    let mut open: HashMap<u64, Open> = HashMap::new();
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Open { key, record } => {
                open.insert(key, record);
            }
            Job::Event { key, event } => {
                let Some(record) = open.get_mut(&key) else { continue };
                if let Err(error) = write(record, &event) {
                    // Said once: debugging goes on without a record.
                    log::warn(format!("recording {} ends here: {error}", record.id));
                    open.remove(&key);
                }
            }
            Job::Close { key } => {
                open.remove(&key);
            }
            Job::Flush(written) => {
                let _ = written.send(());
            }
        }
    }
}

fn write(record: &mut Open, event: &Event) -> std::io::Result<()> {
    let mut line = serde_json::to_string(event)?;
    if record.logged {
        log::info(format!("event {line}"));
    }
    line.push('\n');
    record.events.write_all(line.as_bytes())?;
    if matches!(event.kind.as_str(), "stopped" | "session.end") {
        record.events.sync_data()?;
    }
    Ok(())
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// `20261115-214131` in UTC.
fn stamp(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = log::date(days);
    format!("{year:04}{month:02}{day:02}-{:02}{:02}{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

const WORDS: [&str; 32] = [
    "otter", "heron", "lynx", "finch", "badger", "crane", "gecko", "ibis", "koala", "lemur", "mole", "newt", "okapi",
    "puma", "quail", "raven", "seal", "tapir", "urchin", "viper", "wren", "yak", "zebra", "adder", "bison", "cobra",
    "dingo", "egret", "ferret", "gull", "hare", "jackal",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_time_in_words_that_sort() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(1_794_778_891_000), "20261115-214131");
        assert_eq!(stamp(1_709_208_000_000), "20240229-120000");
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
        assert_eq!(kinds, ["output", "log"]);
    }
}
