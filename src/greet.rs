//! A first word with an adapter: start it, send `initialize`, read the answer, end it again.
//!
//! Apart from sessions, which keep an adapter: this only proves that what was found really speaks the protocol, with
//! blocking reads and a limit, and leaves nothing behind.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use serde_json::{Value, json};
use tokio_util::codec::{Decoder, Encoder};

use crate::adapters::{Adapter, Found};
use crate::dap::{Codec, Message};
use crate::failure::Failure;
use crate::render::quoted;

/// An adapter that has not answered by then is taken for broken.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(20);
/// How long an adapter may take to answer `disconnect`.
const LEAVE_LIMIT: Duration = Duration::from_secs(1);
/// How long it may take to end by itself after that.
const END_LIMIT: Duration = Duration::from_millis(50);
/// How long the standard error of a failed adapter is read.
const LAST_WORDS_LIMIT: Duration = Duration::from_millis(300);
/// A home without a user's settings: what they do to an adapter is not looked at here.
const NO_HOME: &str = "/nonexistent";

/// What an adapter said about itself.
#[derive(Debug)]
pub struct Greeting {
    pub took: Duration,
    /// The version it gave, more exact than a file name's.
    pub version: Option<String>,
    pub capabilities: Value,
}

/// Starts an adapter, sends `initialize`, reads the answer and ends it again.
///
/// # Errors
/// Refused or lost, with the end of what it wrote to its standard error; timed out after twenty seconds.
pub fn greet(found: &Found, env_path: &str) -> Result<Greeting, Failure> {
    let exe = std::env::current_exe().map_err(|error| Failure::io("find its own executable", &error))?;
    let words = crate::translate::plain_command_line(found, &exe);
    let Some((program, args)) = words.split_first() else {
        return Err(Failure::internal(format!("{} has no command line", found.adapter.id)));
    };
    let mut command = Command::new(program);
    // Its own group, so that what it starts ends with it; a plain directory, so that it imports nobody's files.
    command.args(args).current_dir("/").process_group(0).env_clear().env("PATH", env_path);
    for name in ["LANG", "LC_ALL", "TMPDIR", "HOME", "BUGEYE_HOME", "XDG_DATA_HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    for (name, value) in (found.adapter.adapter_env)(found, NO_HOME) {
        if value.is_empty() {
            command.env_remove(name);
        } else {
            command.env(name, value);
        }
    }
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.map_err(|error| Failure::io(format!("start {program}"), &error))?;
    Conversation::with(child).hold(found.adapter)
}

/// A started adapter, which ends with this value.
struct Conversation {
    child: Child,
    codec: Codec,
    bytes: BytesMut,
    incoming: mpsc::Receiver<Vec<u8>>,
    errors: mpsc::Receiver<Vec<u8>>,
}

impl Conversation {
    fn with(mut child: Child) -> Self {
        let incoming = forward(child.stdout.take());
        let errors = forward(child.stderr.take());
        Self { child, codec: Codec::default(), bytes: BytesMut::new(), incoming, errors }
    }

    fn hold(mut self, adapter: &Adapter) -> Result<Greeting, Failure> {
        let began = Instant::now();
        let limit = HANDSHAKE_LIMIT.max(adapter.quirks.first_answer);
        let arguments = json!({
            "clientID": "bugeye", "adapterID": adapter.adapter_id, "pathFormat": "path", "linesStartAt1": true,
            "columnsStartAt1": true,
        });
        let answer = self
            .send(1, "initialize", arguments)
            .and_then(|()| self.answer_to(1, began + limit))
            .map_err(|failure| self.with_last_words(failure))?;
        let took = began.elapsed();
        self.leave();
        Ok(Greeting { took, version: version_in(&answer), capabilities: answer })
    }

    fn answer_to(&mut self, seq: i64, deadline: Instant) -> Result<Value, Failure> {
        loop {
            let broken = |error| Failure::lost("it does not speak the protocol").cause(error);
            while let Some(message) = self.codec.decode(&mut self.bytes).map_err(broken)? {
                match message {
                    Message::Response { request_seq, success: true, body, .. } if request_seq == seq => {
                        return Ok(body);
                    }
                    Message::Response { request_seq, message, body, .. } if request_seq == seq => {
                        let text = Message::error_text(message.as_deref(), &body);
                        return Err(Failure::refused("it refused the first request").cause(quoted(&text)));
                    }
                    _ => {}
                }
            }
            match self.incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(chunk) => self.bytes.extend_from_slice(&chunk),
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(Failure::timed_out(format!("no answer in {} s", HANDSHAKE_LIMIT.as_secs())));
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(Failure::lost("it ended without an answer")),
            }
        }
    }

    fn send(&mut self, seq: i64, command: &str, arguments: Value) -> Result<(), Failure> {
        let mut bytes = BytesMut::new();
        let message = Message::Request { seq, command: command.into(), arguments };
        self.codec.encode(message, &mut bytes).map_err(|error| Failure::internal(error.to_string()))?;
        let Some(stdin) = self.child.stdin.as_mut() else { return Ok(()) };
        // A broken pipe is told by the end of its output, which says more.
        match stdin.write_all(&bytes).and_then(|()| stdin.flush()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::io("write to it", &error)),
            _ => Ok(()),
        }
    }

    /// The failure with the last line of standard error, which may come a moment after the end.
    fn with_last_words(&self, failure: Failure) -> Failure {
        let deadline = Instant::now() + LAST_WORDS_LIMIT;
        let mut text = Vec::new();
        while let Ok(chunk) = self.errors.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            text.extend(chunk);
        }
        match String::from_utf8_lossy(&text).trim().lines().next_back() {
            Some(last) => failure.cause(quoted(last)),
            None => failure,
        }
    }

    /// Lets it go the polite way. lldb-dap 19 answers `disconnect` and then stays for ever when nothing was launched,
    /// and crashes at the end of its input: so the answer is waited for, and its end only for a moment.
    fn leave(&mut self) {
        let _ = self.send(2, "disconnect", json!({"terminateDebuggee": true}));
        let _ = self.answer_to(2, Instant::now() + LEAVE_LIMIT);
        let deadline = Instant::now() + END_LIMIT;
        while Instant::now() < deadline && !self.has_ended() {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether it has ended, without taking its number away: the group of that number is ended after this.
    fn has_ended(&self) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.pid().is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
    }

    fn pid(&self) -> Option<rustix::process::Pid> {
        i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        // Also when it has left: something it started may still be in its group.
        if let Some(group) = self.pid() {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// Reads a stream to its end in a thread of its own, which the stream's end ends.
fn forward(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    if let Some(mut stream) = stream {
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(size @ 1..) = stream.read(&mut buffer) {
                if sender.send(buffer[..size].to_vec()).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

/// The first version number in a field of the answer, at any depth, that is about a version.
fn version_in(answer: &Value) -> Option<String> {
    answer.as_object()?.iter().find_map(|(name, value)| match value.as_str() {
        Some(text) if name.to_lowercase().contains("version") => {
            let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
            let word = text.split_whitespace().find(is_version)?;
            Some(word.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect())
        }
        _ => version_in(value),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::failure::Kind;
    use crate::find::testing::{NATIVE, script};

    fn found_at(program: &Path) -> Found {
        Found::program(&NATIVE, program.to_path_buf())
    }

    fn greet_script(text: &str) -> Result<Greeting, Failure> {
        let root = tempfile::tempdir().unwrap();
        script(&root.path().join("adapter"), &format!("#!/bin/sh\n{text}\n"));
        greet(&found_at(&root.path().join("adapter")), "/usr/bin:/bin")
    }

    #[test]
    fn an_adapter_that_answers_is_asked_for_its_version_and_ended() {
        let body = r#"{"type":"response","request_seq":1,"command":"initialize","success":true,"body":{"$__x_version":"x version 19.1.7 (y)"}}"#;
        let greeting =
            greet_script(&format!("printf 'Content-Length: {}\\r\\n\\r\\n%s' '{body}'; sleep 60 & wait", body.len()));
        let began = Instant::now();
        assert_eq!(greeting.unwrap().version.as_deref(), Some("19.1.7"));
        assert!(began.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_broken_adapter_is_told_with_its_own_last_words() {
        let failure = greet_script("echo 'error while loading shared libraries' >&2; exit 127").unwrap_err();
        assert_eq!(failure.kind, Kind::Lost);
        assert_eq!(failure.causes, ["error while loading shared libraries"]);
        assert_eq!(greet_script("echo hello; sleep 60").unwrap_err().message, "it does not speak the protocol");
        let refusal = r#"{"type":"response","request_seq":1,"success":false,"message":"too old"}"#;
        let failure =
            greet_script(&format!("printf 'Content-Length: {}\\r\\n\\r\\n%s' '{refusal}'; sleep 60", refusal.len()));
        assert_eq!(failure.unwrap_err().causes, ["too old"]);
    }

    #[test]
    fn the_real_adapter_answers_and_leaves() {
        let root = tempfile::tempdir().unwrap();
        let env_path = std::env::var("PATH").unwrap();
        let found = crate::find::find(&NATIVE, &crate::find::testing::paths_in(root.path()), None, &env_path);
        let found = found.expect("`scripts/test` installs it");
        let greeting = greet(&found, &env_path).unwrap();
        assert_eq!(greeting.capabilities["supportsConfigurationDoneRequest"], true);
        assert!(greeting.version.is_some_and(|version| version.contains('.')));
    }
}
