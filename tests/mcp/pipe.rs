//! A client that is a plain pipe: lines out, lines in, nothing made nicer on the way.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::Bug;

/// Longer than any wait that is asked for here.
const LIMIT: Duration = Duration::from_secs(60);
pub const NEW_ERA: &str = "2026-07-28";

/// A `bugeye mcp` and its two ends.
pub struct Pipe {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    id: u64,
    /// What every request carries beside its parameters: the version, in the era that has no `initialize`.
    meta: Option<Value>,
    /// Notifications that came, with when.
    pub told: Vec<(Instant, Value)>,
}

impl Pipe {
    /// The server alone, before any word.
    pub fn bare(bug: &Bug, cwd: &Path) -> Self {
        Self::of(bug.command(&["mcp"]), cwd)
    }

    pub fn of(mut command: Command, cwd: &Path) -> Self {
        let mut child = command
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self { child, stdin, lines, id: 0, meta: None, told: Vec::new() }
    }

    /// A client that begins with `initialize`, in the folder that commands are given from.
    pub fn new(bug: &Bug) -> Self {
        Self::within(bug, &bug.cwd)
    }

    /// A client that begins with `initialize`, in a folder of its own.
    pub fn within(bug: &Bug, cwd: &Path) -> Self {
        let mut pipe = Self::bare(bug, cwd);
        pipe.greet();
        pipe
    }

    pub fn greet(&mut self) {
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "pipe", "version": "1" }
        });
        let answer = self.ask("initialize", hello);
        assert_eq!(answer["result"]["protocolVersion"], "2025-06-18", "{answer}");
        assert_eq!(answer["result"]["serverInfo"]["name"], "bugeye", "{answer}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// A client without a handshake: each request says which version it speaks.
    pub fn stateless(bug: &Bug) -> Self {
        let mut pipe = Self::bare(bug, &bug.cwd);
        pipe.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": NEW_ERA,
            "io.modelcontextprotocol/clientInfo": { "name": "pipe", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        pipe
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes)?;
        stdin.flush()
    }

    pub fn send(&mut self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).unwrap();
    }

    /// Sends a request and does not wait for its answer.
    pub fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.id += 1;
        if let Some(meta) = &self.meta {
            let own = params["_meta"].take();
            params["_meta"] = meta.clone();
            for (name, value) in own.as_object().into_iter().flatten() {
                params["_meta"][name] = value.clone();
            }
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }));
        self.id
    }

    /// The next line; `None` when the server has closed its end.
    pub fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(LIMIT) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no line in {LIMIT:?}"),
        }
    }

    /// The answer to a request; what is told meanwhile is kept.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let line = self.line().expect("the server ended without an answer");
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if message.get("method").is_some() {
                assert!(message.get("id").is_none(), "the server asks the client: {message}");
                self.told.push((Instant::now(), message));
            } else if message["id"] == id {
                return message;
            } else {
                panic!("an answer to nobody, while {id} waits: {message}");
            }
        }
    }

    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub fn begin_call(&mut self, tool: &str, arguments: Value) -> u64 {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        self.begin("tools/call", params)
    }

    /// A call's text, and whether it is a mistake. Anything but one text is a failed test.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> (String, bool) {
        let id = self.begin_call(tool, arguments);
        let answer = self.answer(id);
        text_of(&answer)
    }

    /// The text of a call that succeeds.
    #[track_caller]
    pub fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let (text, mistake) = self.call(tool, arguments);
        assert!(!mistake, "{tool}: {text}");
        text
    }

    /// Closes its input and says how long it took to end, with what code and what it complained of.
    pub fn leave(mut self) -> (Duration, Option<i32>, String) {
        let since = Instant::now();
        drop(self.stdin.take());
        self.ended(since)
    }

    /// Waits for the server's end.
    pub fn ended(mut self, since: Instant) -> (Duration, Option<i32>, String) {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(since.elapsed() < LIMIT, "`bugeye mcp` does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let took = since.elapsed();
        let complaint = std::io::read_to_string(self.child.stderr.take().unwrap()).unwrap();
        (took, status.code(), complaint)
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub fn text_of(answer: &Value) -> (String, bool) {
    let result = answer.get("result").unwrap_or_else(|| panic!("a protocol error: {answer}"));
    let content = result["content"].as_array().unwrap_or_else(|| panic!("no content: {answer}"));
    let [only] = content.as_slice() else { panic!("not one part: {answer}") };
    assert_eq!(only["type"], "text", "{answer}");
    (only["text"].as_str().unwrap().to_string(), result["isError"] == true)
}

/// The session that a stop names: `[s3 via …]`.
#[track_caller]
pub fn session_of(text: &str) -> String {
    let named = text.split('[').nth(1).and_then(|rest| rest.split([' ', ']']).next());
    named.unwrap_or_else(|| panic!("no session in: {text}")).to_string()
}
