//! Writing the record, off the path of commands: one thread writes for all sessions, one `write` a line.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::log;

/// Output beyond this is not recorded, only counted: the record is for looking back, not for storage.
const MAX_OUTPUT: u64 = 4 * 1024 * 1024;

/// The thread that writes. It blocks on its channel and on the disk, and ends when every journal and the recorder are
/// dropped.
#[derive(Debug, Clone)]
pub struct Recorder {
    root: PathBuf,
    lines: mpsc::Sender<Job>,
}

#[derive(Debug)]
enum Job {
    Open { session: String, events: File },
    Line { session: String, line: String, sync: bool },
    Close { session: String },
}

impl Recorder {
    /// Starts the writing thread; recordings go below `state`/sessions.
    pub fn start(state: &Path) -> Result<Self, Failure> {
        let (lines, jobs) = mpsc::channel();
        std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || write_all(&jobs))
            .map_err(|error| Failure::io("start the recorder", &error))?;
        Ok(Self { root: state.join("sessions"), lines })
    }

    /// A new recording. Its id is the time and a word, so that ids sort by age and can be said aloud.
    pub fn create(&self, about: &Value) -> Result<Journal, Failure> {
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
                Ok(()) => return self.open(id, &folder, about, now),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Err(Failure::refused("no free name for a recording"))
    }

    fn open(&self, id: String, folder: &Path, about: &Value, now: u64) -> Result<Journal, Failure> {
        let failed = |error| Failure::io(format!("record in {}", folder.display()), &error);
        let mut options = OpenOptions::new();
        options.create(true).append(true).mode(0o600);
        let mut head = about.clone();
        head["v"] = json!(1);
        head["id"] = json!(id);
        head["started"] = json!(now);
        options.open(folder.join("session.json")).and_then(|mut file| writeln!(file, "{head}")).map_err(failed)?;
        let events = options.open(folder.join("events.jsonl")).map_err(failed)?;
        let _ = self.lines.send(Job::Open { session: id.clone(), events });
        Ok(Journal { id, next: 1, output: 0, lines: self.lines.clone() })
    }
}

/// One session's line into the recorder.
#[derive(Debug)]
pub struct Journal {
    pub id: String,
    next: u64,
    output: u64,
    lines: mpsc::Sender<Job>,
}

impl Journal {
    /// Appends an event in the frozen envelope.
    pub fn append(&mut self, kind: &str, thread: Option<i64>, data: &Value) {
        let event = json!({
            "v": 1, "seq": self.next, "ts": now_ms(), "session": self.id, "thread": thread, "type": kind, "data": data,
        });
        self.next += 1;
        let sync = matches!(kind, "stopped" | "session.end");
        let _ = self.lines.send(Job::Line { session: self.id.clone(), line: format!("{event}\n"), sync });
    }

    /// Appends output, up to a limit that is said once.
    pub fn output(&mut self, stream: crate::session::Stream, text: &str) {
        let before = self.output;
        self.output += text.len() as u64;
        if self.output <= MAX_OUTPUT {
            self.append("output", None, &json!({ "stream": stream, "text": text }));
        } else if before <= MAX_OUTPUT {
            self.append("log", None, &json!({ "message": "more output was printed than is recorded" }));
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.lines.send(Job::Close { session: std::mem::take(&mut self.id) });
    }
}

fn write_all(jobs: &mpsc::Receiver<Job>) {
    let mut open: std::collections::HashMap<String, File> = std::collections::HashMap::new();
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Open { session, events } => {
                open.insert(session, events);
            }
            Job::Line { session, line, sync } => {
                let Some(file) = open.get_mut(&session) else { continue };
                let written =
                    file.write_all(line.as_bytes()).and_then(|()| if sync { file.sync_data() } else { Ok(()) });
                if let Err(error) = written {
                    // Said once: debugging goes on without a record.
                    log::warn(format!("recording {session} ends here: {error}"));
                    open.remove(&session);
                }
            }
            Job::Close { session } => {
                open.remove(&session);
            }
        }
    }
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
        let mut journal = recorder.create(&json!({ "adapter": "x" })).unwrap();
        let path = folder.path().join("sessions").join(&journal.id);
        journal.append("stopped", Some(1), &json!({ "a": 1 }));
        journal.append("session.end", None, &Value::Null);
        drop(journal);
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
        let lines = loop {
            let text = std::fs::read_to_string(path.join("events.jsonl")).unwrap();
            let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            if lines.len() == 2 || std::time::Instant::now() > deadline {
                break lines;
            }
        };
        let keys: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
        assert_eq!(keys, ["v", "seq", "ts", "session", "thread", "type", "data"]);
        assert_eq!((lines[0]["seq"].as_u64(), lines[1]["seq"].as_u64()), (Some(1), Some(2)));
        assert_eq!(lines[1]["type"], "session.end");
    }
}
