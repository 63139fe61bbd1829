//! `hook`: what a coding agent calls at each step of its loop while it is debugged.
//!
//! It carries one event to the session's socket and one answer back, and is done; what they mean is known at the other
//! end (`agent/hook.rs`). An agent waits for it before every tool, so it comes before everything else in `main`: no
//! configuration, no runtime, no parsing of more than it must.

use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use clap::Args;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bare, Group};
use crate::agent::hook::AGENTS;
use crate::cli::LocalContext;
use crate::failure::Failure;

/// An event is the tool's whole input or output; agents cut those at far less.
const LONGEST: u64 = 16 << 20;

/// How long a socket may take to have room for one more. How long the answer takes is the debugger's to say.
const CONNECT: Duration = Duration::from_secs(2);

/// Tell the debugger what an agent is about to do, and wait for leave; agents call it
///
/// `bugeye start --agent` registers it as a hook of the agent that it starts. The event comes on standard input. Without a
/// debugger that listens it lets everything pass; with BUGEYE_AGENT_FAIL=closed it lets nothing pass.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// The agent that calls: claude, codex, gemini, cursor, copilot or opencode.
    pub agent: String,
    /// The event, for agents that do not name it in what they say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
}

impl Bare for Hook {
    const NAME: &'static str = "hook";
    const GROUP: Group = Group::Around;

    fn run(self, _cx: &LocalContext) -> Result<u8, Failure> {
        if !AGENTS.contains(&self.agent.as_str()) {
            let known = AGENTS.join(", ");
            return Err(Failure::usage(format!("no hooks of `{}` are known", self.agent)).hint(known));
        }
        Ok(carry(&self.agent, self.event.as_deref()))
    }

    fn prints() -> schemars::Schema {
        super::plain_text("what the agent's contract for hooks asks for")
    }
}

/// The way past the catalogue, which takes milliseconds to build. Nothing, where something else was typed.
pub fn main(typed: &[OsString]) -> Option<u8> {
    let words: Vec<&str> = typed.iter().map(|word| word.to_str()).collect::<Option<_>>()?;
    match words[..] {
        ["hook", agent] if AGENTS.contains(&agent) => Some(carry(agent, None)),
        ["hook", agent, event] if AGENTS.contains(&agent) && !event.starts_with('-') => Some(carry(agent, Some(event))),
        _ => None,
    }
}

/// What came back.
#[derive(Debug, Default, Deserialize)]
struct Reply {
    #[serde(default, rename = "type")]
    kind: String,
    /// Of an error: what went wrong.
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    stdout: String,
    #[serde(default)]
    stderr: String,
    #[serde(default)]
    code: u8,
}

fn carry(agent: &str, event: Option<&str>) -> u8 {
    let reply = exchange(agent, event).unwrap_or_else(|error| unheard(agent, event, &error));
    let _ = io::stdout().write_all(reply.stdout.as_bytes());
    let _ = io::stderr().write_all(reply.stderr.as_bytes());
    reply.code
}

/// Nobody answered: the agent goes on, unless it was said that it may not.
fn unheard(agent: &str, event: Option<&str>, error: &io::Error) -> Reply {
    if std::env::var_os("BUGEYE_AGENT_FAIL").is_none_or(|how| how != "closed") {
        return Reply { stdout: "{}".into(), ..Reply::default() };
    }
    let why = format!("the debugger does not answer ({error}), and BUGEYE_AGENT_FAIL=closed lets nothing pass");
    if (agent, event) == ("copilot", Some("userPromptSubmitted")) {
        // Here an exit code refuses nothing.
        let stdout = serde_json::json!({"decision": "block", "reason": why}).to_string();
        return Reply { stdout, ..Reply::default() };
    }
    Reply { stderr: format!("{why}\n"), code: 2, ..Reply::default() }
}

fn exchange(agent: &str, event: Option<&str>) -> io::Result<Reply> {
    // Whatever comes of it, all is read: an agent that still writes is not to meet a pipe that is closed.
    let mut input = String::new();
    io::stdin().take(LONGEST + 1).read_to_string(&mut input)?;
    if input.len() as u64 > LONGEST {
        io::copy(&mut io::stdin(), &mut io::sink())?;
        return Err(io::Error::other("the event is too long"));
    }
    let variable = |name| std::env::var(name).map_err(|_| io::Error::other(format!("{name} is not set")));
    let (path, token) = (variable("BUGEYE_AGENT_SOCKET")?, variable("BUGEYE_AGENT_TOKEN")?);
    let mut socket = reach(&path)?;
    socket.write_all(request(agent, event, &token, &input)?.as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(socket).take(LONGEST).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Err(io::Error::other("it has gone"));
    }
    understood(&line)
}

/// What stands in the debugger's line. One that says what it could not do is no leave to go on.
fn understood(line: &[u8]) -> io::Result<Reply> {
    let reply: Reply = serde_json::from_slice(line).map_err(io::Error::other)?;
    match reply.message {
        Some(why) if reply.kind == "error" => Err(io::Error::other(why)),
        _ => Ok(reply),
    }
}

/// An event that says by itself which one it is.
#[derive(serde::Deserialize)]
struct Named {
    hook_event_name: Option<serde::de::IgnoredAny>,
}

/// One line. The event is checked and passed on as it is: JSON has no line ends that could not be spaces.
fn request(agent: &str, event: Option<&str>, token: &str, input: &str) -> io::Result<String> {
    let input = input.trim();
    serde_json::from_str::<serde::de::IgnoredAny>(input).map_err(io::Error::other)?;
    // What a tool is given may have such a member too.
    let is_named = || serde_json::from_str::<Named>(input).is_ok_and(|named| named.hook_event_name.is_some());
    let unnamed = event.filter(|_| input.starts_with('{') && !is_named());
    let mut input = input.replace(['\n', '\r'], " ");
    if let Some(event) = unnamed {
        let comma = if input[1..].trim_start().starts_with('}') { "" } else { "," };
        input.insert_str(1, &format!("\"hook_event_name\":{}{comma}", quoted(event)));
    }
    Ok(format!(
        "{{\"v\":1,\"token\":{},\"type\":\"hook\",\"agent\":{},\"input\":{input}}}\n",
        quoted(token),
        quoted(agent)
    ))
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Connects, or gives up in time: a plain connect waits for ever where nobody accepts.
fn reach(path: &str) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(path)?;
    let started = Instant::now();
    loop {
        let stream = UnixStream::from(socket(AddressFamily::UNIX, SocketType::STREAM, None)?);
        stream.set_nonblocking(true)?;
        match connect(&stream, &address) {
            Ok(()) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(Errno::AGAIN) if started.elapsed() < CONNECT => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_event_is_one_line_whatever_it_looked_like() {
        let line =
            request("copilot", Some("preToolUse"), "t\"1", "{\n  \"toolName\": \"bash\",\r\n \"a\": \"x\\ny\"}\n")
                .unwrap();
        assert_eq!(line.matches('\n').count(), 1);
        let read: Value = serde_json::from_str(&line).unwrap();
        let input = json!({"hook_event_name": "preToolUse", "toolName": "bash", "a": "x\ny"});
        assert_eq!(read, json!({"v": 1, "token": "t\"1", "type": "hook", "agent": "copilot", "input": input}));
    }

    #[test]
    fn a_named_event_keeps_its_name_and_what_is_no_json_is_not_sent() {
        let line = request("copilot", Some("a"), "t", r#"{"hook_event_name":"b"}"#).unwrap();
        assert!(line.contains(r#""input":{"hook_event_name":"b"}"#), "{line}");
        let inner = request("copilot", Some("a"), "t", r#"{"toolArgs":{"hook_event_name":"b"}}"#).unwrap();
        assert!(inner.contains(r#""input":{"hook_event_name":"a","toolArgs""#), "{inner}");
        assert!(request("copilot", Some("a"), "t", "{ }").unwrap().contains(r#"{"hook_event_name":"a" }"#));
        for bad in ["", "no", "{}}", "{},\"x\":{}"] {
            assert!(request("claude", None, "t", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_the_debugger_could_not_do_is_no_leave_to_go_on() {
        let reply = understood(br#"{"type":"hook","stdout":"{}","stderr":"","code":3}"#).unwrap();
        assert_eq!((reply.stdout.as_str(), reply.code), ("{}", 3));
        let error = understood(br#"{"type":"error","message":"the token is wrong"}"#).unwrap_err();
        assert_eq!(error.to_string(), "the token is wrong");
        assert!(understood(b"nonsense").is_err());
    }

    #[test]
    fn only_agents_that_are_known_go_the_short_way() {
        let typed = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<OsString>>();
        for words in [&["hook"][..], &["hook", "none"], &["hook", "claude", "--help"], &["run", "claude"]] {
            assert_eq!(main(&typed(words)), None, "{words:?}");
        }
    }
}
