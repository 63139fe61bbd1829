//! An agent's side of Bugeye: ask before you act, tell what happened, and a debugger can hold, change or stop you.
//!
//! One file for any project, with `std` and `serde_json` alone: copy it. Without a debugger every call returns at once
//! and changes nothing, so an agent can always make them. `docs/agent-bridge.md` in Bugeye's repository is the contract.
//!
//! ```ignore
//! let bug = bugeye_agent::connect("my-agent", "1.0", Transport::Auto);
//! let answer = bug.gate("before_tool", json!({ "name": "bash", "value": { "command": "ls" }, "span": "call_1" }));
//! if answer.verdict == "deny" { … }
//! ```

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

pub const VERSION: u64 = 1;
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// What is to become of what was asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// `proceed`, `edit`, `deny`, `synthesize` or `abort`.
    pub verdict: String,
    /// Of `edit` and `synthesize`.
    pub value: Value,
    /// Of `deny` and `abort`: what the model is to be told.
    pub reason: String,
    /// Messages for the conversation: role and text.
    pub inject: Vec<(String, String)>,
}

/// How to reach the debugger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// What the environment names, the socket first.
    Auto,
    Socket,
    Files,
}

type Waiting = Mutex<HashMap<String, mpsc::Sender<Answer>>>;

/// The way to the debugger. Any thread may ask; each waits for its own answer.
#[derive(Debug)]
pub struct Debugger {
    writer: Mutex<Option<Writer>>,
    waiting: Arc<Waiting>,
    gone: Arc<AtomicBool>,
    closed: bool,
    prefix: String,
    count: AtomicU64,
}

#[derive(Debug)]
enum Writer {
    Socket(UnixStream),
    Files(File),
}

/// Finds the debugger that started this agent; without one, everything proceeds.
pub fn connect(agent: &str, version: &str, transport: Transport) -> Debugger {
    let variable = |name: &str| std::env::var(format!("BUGEYE_AGENT_{name}")).ok().filter(|value| !value.is_empty());
    let socket = variable("SOCKET").zip(variable("TOKEN")).filter(|_| transport != Transport::Files);
    let folder = variable("DIR").filter(|_| transport != Transport::Socket).map(PathBuf::from);
    let wanted = socket.is_some() || folder.is_some();
    let moment = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let debugger = Debugger {
        writer: Mutex::new(None),
        waiting: Arc::default(),
        gone: Arc::new(AtomicBool::new(true)),
        closed: wanted && variable("FAIL").as_deref() == Some("closed"),
        prefix: format!("{}-{moment:x}-", std::process::id()),
        count: AtomicU64::new(0),
    };
    let mut hello = json!({ "v": VERSION, "type": "hello", "tap": "sdk", "agent": agent, "version": version });
    if let Ok(cwd) = std::env::current_dir() {
        hello["cwd"] = json!(cwd);
    }
    let _ = match (socket, folder) {
        (Some((path, token)), _) => {
            hello["token"] = json!(token);
            debugger.by_socket(&path)
        }
        (None, Some(folder)) => debugger.by_files(&folder),
        (None, None) => return debugger,
    };
    debugger.send(hello);
    debugger
}

impl Debugger {
    /// Whether a debugger is there.
    pub fn attached(&self) -> bool {
        !self.gone.load(Ordering::SeqCst)
    }

    /// Asks whether to go on, and waits for the answer, however long that takes. `ask` has the fields of the gate:
    /// `name`, `value`, `span`, `thread`, …; without `powers` it can do all.
    pub fn gate(&self, point: &str, mut ask: Value) -> Answer {
        let id = format!("{}{}", self.prefix, self.count.fetch_add(1, Ordering::Relaxed));
        ask["type"] = json!("gate");
        ask["id"] = json!(id);
        ask["point"] = json!(point);
        if ask.get("powers").is_none() {
            let all = ["hold", "edit", "deny", "synthesize", "abort", "inject"];
            ask["powers"] = all.iter().map(|power| ((*power).to_string(), json!(true))).collect();
        }
        let (answered, answer) = mpsc::channel();
        locked(&self.waiting).insert(id.clone(), answered);
        let sent = self.send(ask);
        // Whoever reads drops all that wait when the debugger goes; one that was put in later is dropped here.
        if !sent || !self.attached() {
            locked(&self.waiting).remove(&id);
        }
        answer.recv().unwrap_or_else(|_| {
            let denied = self.closed && matches!(point, "before_tool" | "before_prompt");
            let reason = if denied { "the debugger is gone, and BUGEYE_AGENT_FAIL is closed" } else { "" };
            let verdict = if denied { "deny" } else { "proceed" };
            Answer { verdict: verdict.into(), value: Value::Null, reason: reason.into(), inject: Vec::new() }
        })
    }

    /// Tells what has happened: `model.response`, `agent.spawn`, … `more` may have `thread` and `span`.
    pub fn event(&self, event: &str, data: Value, more: Value) {
        let mut line = if more.is_object() { more } else { json!({}) };
        line["type"] = json!("event");
        line["event"] = json!(event);
        line["data"] = data;
        self.send(line);
    }

    fn send(&self, mut line: Value) -> bool {
        let mut writer = locked(&self.writer);
        let Some(to) = writer.as_mut() else { return false };
        line["pid"] = json!(std::process::id());
        let mut text = format!("{line}\n");
        let fits = text.len() <= MAX_LINE;
        if !fits {
            let what = line["point"].as_str().or(line["type"].as_str()).unwrap_or_default();
            let said = json!({ "message": format!("a {what} of more than {MAX_LINE} bytes was not told") });
            text = format!("{}\n", json!({ "type": "event", "event": "log", "data": said, "pid": line["pid"] }));
        }
        let sent = match to {
            Writer::Socket(socket) => socket.write_all(text.as_bytes()),
            Writer::Files(file) => file.write_all(text.as_bytes()),
        };
        if sent.is_err() {
            *writer = None;
            self.gone.store(true, Ordering::SeqCst);
        }
        sent.is_ok() && fits
    }

    fn by_socket(&self, path: &str) -> io::Result<()> {
        let socket = UnixStream::connect(path)?;
        let reader = BufReader::new(socket.try_clone()?);
        *locked(&self.writer) = Some(Writer::Socket(socket));
        self.read(move |take| reader.lines().map_while(Result::ok).for_each(|line| take(&line)));
        Ok(())
    }

    /// By two files in a folder: we append to `events.jsonl`, and are answered in `commands.jsonl`.
    fn by_files(&self, folder: &Path) -> io::Result<()> {
        let debugger = here(folder).ok_or(io::ErrorKind::NotFound)?;
        let path = folder.join("events.jsonl");
        let mut events = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
        let size = events.metadata()?.len();
        let mut last = [b'\n'];
        if size > 0 && events.read_at(&mut last, size - 1).is_ok() && last != *b"\n" {
            // An earlier agent ended in the middle of a line.
            events.write_all(b"\n")?;
        }
        let mut commands = File::open(folder.join("commands.jsonl"))?;
        commands.seek(SeekFrom::End(0))?;
        *locked(&self.writer) = Some(Writer::Files(events));
        let (folder, gone) = (folder.to_path_buf(), Arc::clone(&self.gone));
        self.read(move |take| {
            let (mut held, mut pause, mut looked) = (Vec::new(), Duration::from_millis(1), Instant::now());
            while !gone.load(Ordering::SeqCst) {
                if commands.read_to_end(&mut held).is_ok_and(|read| read > 0) {
                    pause = Duration::from_millis(1);
                }
                while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = held.drain(..=end).collect();
                    take(&String::from_utf8_lossy(&line));
                }
                if looked.elapsed() > Duration::from_millis(200) {
                    looked = Instant::now();
                    if here(&folder) != Some(debugger) {
                        return;
                    }
                }
                std::thread::sleep(pause);
                pause = (pause * 3 / 2).min(Duration::from_millis(50));
            }
        });
        Ok(())
    }

    /// Gives each line to whoever waits for it; when there are no more, nobody waits any more.
    fn read(&self, lines: impl FnOnce(&dyn Fn(&str)) + Send + 'static) {
        let (waiting, gone) = (Arc::clone(&self.waiting), Arc::clone(&self.gone));
        gone.store(false, Ordering::SeqCst);
        std::thread::spawn(move || {
            lines(&|text| {
                let line: Value = serde_json::from_str(text).unwrap_or_default();
                let id = line["id"].as_str().unwrap_or_default();
                if matches!(line["type"].as_str(), Some("answer" | "error"))
                    && let Some(waits) = locked(&waiting).remove(id)
                {
                    let _ = waits.send(Answer::of(&line));
                }
            });
            gone.store(true, Ordering::SeqCst);
            locked(&waiting).clear();
        });
    }
}

impl Answer {
    fn of(line: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let messages = line["inject"].as_array().into_iter().flatten();
        Self {
            verdict: line["verdict"].as_str().unwrap_or("proceed").into(),
            value: line["value"].clone(),
            reason: text(&line["reason"]),
            inject: messages.map(|message| (text(&message["role"]), text(&message["text"]))).collect(),
        }
    }
}

/// The debugger's process and when it began, if it lives.
fn here(folder: &Path) -> Option<(u64, Option<u64>)> {
    let said: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("debugger.json")).ok()?).ok()?;
    let (pid, start) = (said["pid"].as_u64()?, said["start"].as_u64());
    let mut stat = String::new();
    File::open(format!("/proc/{pid}/stat")).ok()?.read_to_string(&mut stat).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let same = start.is_none() || fields.get(19)?.parse().ok() == start;
    (same && !matches!(*fields.first()?, "Z" | "X")).then_some((pid, start))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
