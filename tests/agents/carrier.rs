//! `bugeye hook` by itself: one event to the socket, one answer back, and what it does where nobody answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::has;

const EVENT: &str = "{\n  \"hook_event_name\": \"PreToolUse\",\n  \"tool_name\": \"Bash\"\n}\n";

/// A socket, and a hook that is to reach it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    fn listen(&self) -> UnixListener {
        UnixListener::bind(self.socket()).unwrap()
    }

    fn hook(&self, words: &[&str], env: &[(&str, &str)]) -> Child {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.arg("hook").args(words).env_clear().envs(env.iter().copied());
        command
            .env("BUGEYE_AGENT_SOCKET", self.socket())
            .env("BUGEYE_AGENT_TOKEN", "t")
            .env("HOME", self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(EVENT.as_bytes()).unwrap();
        child
    }
}

/// The line that a hook sends, and its connection.
fn accepted(listener: &UnixListener) -> (Value, UnixStream) {
    let (client, _) = listener.accept().unwrap();
    let mut line = String::new();
    BufReader::new(&client).read_line(&mut line).unwrap();
    (serde_json::from_str(&line).unwrap(), client)
}

fn said(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_hook_says_what_it_is_told_to() {
    let place = Place::new();
    let listener = place.listen();
    let child = place.hook(&["claude"], &[]);
    let (line, mut client) = accepted(&listener);
    let input = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"});
    assert_eq!(line, json!({"v": 1, "token": "t", "type": "hook", "agent": "claude", "input": input}));
    client.write_all(b"{\"type\":\"hook\",\"stdout\":\"out\",\"stderr\":\"err\",\"code\":2}\n").unwrap();
    assert_eq!(said(&child.wait_with_output().unwrap()), (Some(2), "out".into(), "err".into()));
}

#[test]
fn without_a_debugger_everything_passes_or_nothing() {
    let closed = [("BUGEYE_AGENT_FAIL", "closed")];
    let passes = (Some(0), "{}".to_string(), String::new());
    let refuses = |output: Output| {
        let (code, out, err) = said(&output);
        assert_eq!((code, out.as_str()), (Some(2), ""));
        has(&err, &["the debugger does not answer"]);
    };
    // No socket.
    let place = Place::new();
    assert_eq!(said(&place.hook(&["claude"], &[]).wait_with_output().unwrap()), passes);
    refuses(place.hook(&["claude"], &closed).wait_with_output().unwrap());
    // Copilot refuses a prompt for what it reads, not for an exit code.
    let (code, out, err) = said(&place.hook(&["copilot", "userPromptSubmitted"], &closed).wait_with_output().unwrap());
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, err.as_str(), &answer["decision"]), (Some(0), "", &json!("block")));
    has(answer["reason"].as_str().unwrap(), &["the debugger does not answer"]);
    refuses(place.hook(&["copilot", "preToolUse"], &closed).wait_with_output().unwrap());
    // One that nobody listens at.
    drop(place.listen());
    assert_eq!(said(&place.hook(&["codex"], &[]).wait_with_output().unwrap()), passes);
    // One that goes in mid-hold, or says what is no answer.
    for answer in [&b""[..], b"no\n"] {
        for env in [&[][..], &closed] {
            let place = Place::new();
            let listener = place.listen();
            let child = place.hook(&["gemini"], env);
            let (_, mut client) = accepted(&listener);
            client.write_all(answer).unwrap();
            drop(client);
            let output = child.wait_with_output().unwrap();
            if env.is_empty() { assert_eq!(said(&output), passes) } else { refuses(output) }
        }
    }
}

/// A socket whose queue is full would hold a plain connect for ever.
#[test]
fn a_debugger_that_accepts_nobody_holds_nobody() {
    let place = Place::new();
    let listener = place.listen();
    rustix::net::listen(&listener, 0).unwrap();
    let first = UnixStream::connect(place.socket()).unwrap();
    let started = Instant::now();
    let output = place.hook(&["claude"], &[]).wait_with_output().unwrap();
    assert_eq!(said(&output).1, "{}");
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    drop(first);
}

/// The agent ends a hook that it no longer waits for; who holds it sees that.
#[test]
fn a_hook_that_is_ended_hangs_up() {
    let place = Place::new();
    let listener = place.listen();
    let mut child = place.hook(&["claude"], &[]);
    let (_, mut client) = accepted(&listener);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
}

/// The event may be told by the word after the agent's name.
#[test]
fn an_event_is_named_on_the_command_line() {
    let place = Place::new();
    let listener = place.listen();
    let child = place.hook(&["copilot", "preToolUse"], &[]);
    let (line, mut client) = accepted(&listener);
    assert_eq!(line["input"]["hook_event_name"], "PreToolUse", "the event's own name counts");
    client.write_all(b"{\"type\":\"hook\",\"stdout\":\"{}\"}\n").unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
    let output = place.hook(&["none"], &[]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    has(&said(&output).2, &["no hooks of `none` are known"]);
}
