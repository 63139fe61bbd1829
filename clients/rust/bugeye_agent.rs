//! An agent's side of Bugeye: ask before you act, tell what happened, and a debugger can hold, change or stop you.
//!
//! One file for any project, with `std` and `serde_json` alone: copy it. Without a debugger every call returns at once
//! and changes nothing, so an agent can always make them. `docs/agent-bridge.md` in Bugeye's repository is the contract.
//!
//! ```ignore
//! let bug = bugeye_agent::connect("my-agent", "1.0");
//! let answer = bug.gate("before_tool", json!({ "name": "bash", "value": { "command": "ls" }, "span": "call_1" }));
//! if answer.verdict == "deny" { … }
//! ```

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

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

/// The way to the debugger. Any thread may ask; each waits for its own answer.
#[derive(Debug)]
pub struct Debugger {
    to: Arc<Mutex<Option<Writer>>>,
    waiting: Arc<Mutex<HashMap<String, mpsc::Sender<Value>>>>,
    fail_closed: bool,
    count: AtomicU64,
}

#[derive(Debug)]
enum Writer {
    Socket(UnixStream),
    Files(File),
}

/// Finds the debugger that started this agent, by a socket or by files; without one, everything proceeds.
pub fn connect(agent: &str, version: &str) -> Debugger {
    let variable = |name: &str| std::env::var(format!("BUGEYE_AGENT_{name}")).ok().filter(|value| !value.is_empty());
    let (socket, folder) = (variable("SOCKET").zip(variable("TOKEN")), variable("DIR"));
    let fail_closed = variable("FAIL").as_deref() == Some("closed") && (socket.is_some() || folder.is_some());
    let debugger = Debugger { to: Arc::default(), waiting: Arc::default(), fail_closed, count: AtomicU64::new(0) };
    let mut hello = json!({ "v": VERSION, "type": "hello", "tap": "sdk", "agent": agent, "version": version });
    hello["cwd"] = std::env::current_dir().map_or(Value::Null, |cwd| json!(cwd));
    let opened = match (socket, folder) {
        (Some((path, token)), _) => {
            hello["token"] = json!(token);
            debugger.by_socket(&path)
        }
        (None, Some(folder)) => debugger.by_files(PathBuf::from(folder)),
        (None, None) => return debugger,
    };
    if opened.is_ok() {
        debugger.send(hello);
    }
    debugger
}

impl Debugger {
    /// Whether a debugger is there.
    pub fn attached(&self) -> bool {
        locked(&self.to).is_some()
    }

    /// Asks whether to go on, and waits for the answer, however long that takes. `ask` has the fields of the gate:
    /// `name`, `value`, `span`, `thread`, …; without `powers` it can do all.
    pub fn gate(&self, point: &str, mut ask: Value) -> Answer {
        // Several processes may write to one folder.
        let id = format!("{}-{}", std::process::id(), self.count.fetch_add(1, Ordering::Relaxed));
        ask["type"] = json!("gate");
        ask["point"] = json!(point);
        ask["id"] = json!(id);
        if ask.get("powers").is_none() {
            let all = ["hold", "edit", "deny", "synthesize", "abort", "inject"];
            ask["powers"] = all.iter().map(|power| ((*power).to_string(), json!(true))).collect();
        }
        let (answered, answer) = mpsc::channel();
        locked(&self.waiting).insert(id.clone(), answered);
        // Whoever reads drops all that wait when the debugger goes; what can't be asked is dropped here.
        if !self.send(ask) {
            locked(&self.waiting).remove(&id);
        }
        Answer::of(&answer.recv().unwrap_or_else(|_| match point {
            "before_tool" | "before_prompt" if self.fail_closed => {
                json!({ "verdict": "deny", "reason": "the debugger is gone, and BUGEYE_AGENT_FAIL is closed" })
            }
            _ => Value::Null,
        }))
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
        line["pid"] = json!(std::process::id());
        let text = format!("{line}\n");
        if text.len() > MAX_LINE {
            let what = line["point"].as_str().or(line["type"].as_str()).unwrap_or_default();
            let message = format!("a {what} of {} bytes was not told", text.len());
            self.event("log", json!({ "message": message }), Value::Null);
            return false;
        }
        let mut to = locked(&self.to);
        let sent = match &mut *to {
            Some(Writer::Socket(socket)) => socket.write_all(text.as_bytes()),
            Some(Writer::Files(file)) => file.write_all(text.as_bytes()),
            None => return false,
        };
        if sent.is_err() {
            *to = None;
        }
        sent.is_ok()
    }

    fn by_socket(&self, path: &str) -> io::Result<()> {
        let socket = UnixStream::connect(path)?;
        let lines = BufReader::new(socket.try_clone()?).lines().map_while(Result::ok);
        self.read(Writer::Socket(socket), lines);
        Ok(())
    }

    /// By two files in a folder: we append to `events.jsonl`, and are answered in `commands.jsonl`.
    fn by_files(&self, folder: PathBuf) -> io::Result<()> {
        let debugger = alive(&folder).ok_or(io::ErrorKind::NotFound)?;
        let mut events = OpenOptions::new().append(true).create(true).open(folder.join("events.jsonl"))?;
        // Who wrote before us may have ended in the middle of a line; what there is to read was said to others.
        events.write_all(b"\n")?;
        let mut commands = BufReader::new(File::open(folder.join("commands.jsonl"))?);
        commands.seek(SeekFrom::End(0))?;
        let (mut line, mut looked) = (Vec::new(), Instant::now());
        let lines = std::iter::from_fn(move || {
            loop {
                if commands.read_until(b'\n', &mut line).is_ok() && line.ends_with(b"\n") {
                    return Some(String::from_utf8_lossy(&std::mem::take(&mut line)).into_owned());
                }
                if looked.elapsed() > Duration::from_millis(200) {
                    looked = Instant::now();
                    alive(&folder).filter(|found| *found == debugger)?;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        self.read(Writer::Files(events), lines);
        Ok(())
    }

    /// Gives each line to whoever waits for it; when there are no more, nobody waits any more.
    fn read(&self, to: Writer, lines: impl Iterator<Item = String> + Send + 'static) {
        *locked(&self.to) = Some(to);
        let (to, waiting) = (Arc::clone(&self.to), Arc::clone(&self.waiting));
        std::thread::spawn(move || {
            for line in lines {
                let line: Value = serde_json::from_str(&line).unwrap_or_default();
                let id = line["id"].as_str().unwrap_or_default();
                if matches!(line["type"].as_str(), Some("answer" | "error"))
                    && let Some(waits) = locked(&waiting).remove(id)
                {
                    let _ = waits.send(line);
                }
            }
            *locked(&to) = None;
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

/// What the debugger says of itself in the folder, if its process lives.
fn alive(folder: &Path) -> Option<Value> {
    let debugger: Value = serde_json::from_slice(&std::fs::read(folder.join("debugger.json")).ok()?).ok()?;
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", debugger["pid"].as_u64()?)).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let same = debugger["start"].is_null() || fields.get(19)?.parse().ok() == debugger["start"].as_u64();
    (same && !matches!(*fields.first()?, "Z" | "X")).then_some(debugger)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
