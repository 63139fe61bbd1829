//! Adapters that don't speak the protocol on their standard streams, made to.
//!
//! `bugeye adapter NAME -- COMMAND` is a process of its own below a session's supervisor: it speaks the protocol on its
//! standard streams and something else on its other side, so that a session never knows the difference, and what goes
//! wrong in it ends one session and not the daemon. It does not know sessions, and works for any client.

mod bridge;
pub(crate) mod child;
mod cmake;
mod dbgp;
mod java;
mod mux;
mod node;
mod relay;
pub mod startup;

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use bytes::BytesMut;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::codec::{Decoder, Encoder};

use crate::adapters::{Found, Reach, Stdio, Way};
use crate::dap::{Codec, Message};
use crate::model::Target;

pub(crate) use dbgp::base64;
pub(crate) use node::unescaped;

/// The translators, by the name that [`Way::Translated`] has.
const TRANSLATORS: &[(&str, fn(&Asked) -> u8)] = &[
    ("dials", relay::dials),
    ("listens", relay::listens),
    ("connects", relay::connects),
    ("bridges", bridge::bridges),
    ("cmake", cmake::cmake),
    ("php", dbgp::php),
    ("ruby", dbgp::ruby),
    ("perl", dbgp::perl),
    ("mux", mux::mux),
    ("node", node::node),
    ("startup", startup::prepare),
    ("java", java::java),
    ("agent", crate::agent::translator::agent),
];

/// What a translator is started with.
#[derive(Debug, Default)]
pub struct Asked {
    /// The adapter's own command line.
    pub command: Vec<String>,
    /// The program's streams, where it is ours to start.
    pub streams: Option<Streams>,
}

/// Paths of the program's three streams. They are opened where the program is started.
#[derive(Debug, Clone)]
pub struct Streams {
    pub stdin: PathBuf,
    pub stdout: PathBuf,
    pub stderr: PathBuf,
}

impl Streams {
    /// Gives these streams to a process that is about to be started.
    pub fn give_to(&self, command: &mut std::process::Command) -> std::io::Result<()> {
        let write = |path: &Path| std::fs::OpenOptions::new().append(true).open(path);
        command
            .stdin(crate::platform::open_stdin(&self.stdin)?)
            .stdout(write(&self.stdout)?)
            .stderr(write(&self.stderr)?);
        Ok(())
    }
}

/// The command line under which an adapter speaks the protocol on its standard streams.
#[must_use]
pub fn command_line(found: &Found, target: &Target, streams: Option<&Stdio>, exe: &Path) -> Vec<String> {
    let command = (found.adapter.command)(found);
    if let Target::Remote(remote) = target {
        let address = remote.address();
        match found.adapter.remote {
            Some(Reach::Direct(_)) => return between("connects", None, exe, vec![address]),
            Some(Reach::Bridged(_)) => {
                let words = [remote.socket.to_string_lossy().into_owned(), address];
                return between("bridges", None, exe, words.into_iter().chain(command).collect());
            }
            _ => {}
        }
    }
    match found.adapter.way {
        Way::Streams => command,
        Way::Dials => between("dials", streams, exe, command),
        Way::Listens => between("listens", streams, exe, command),
        Way::Translated(name) => between(name, streams, exe, command),
    }
}

/// As [`command_line`], for an adapter that is only greeted.
#[must_use]
pub fn plain_command_line(found: &Found, exe: &Path) -> Vec<String> {
    command_line(found, &Target::Core { core: PathBuf::new(), program: None }, None, exe)
}

fn between(name: &str, streams: Option<&Stdio>, exe: &Path, command: Vec<String>) -> Vec<String> {
    let mut words = vec![exe.to_string_lossy().into_owned(), "adapter".into(), name.into()];
    if let Some(streams) = streams {
        words.extend(["--streams".into(), streams.stdin.clone(), streams.stdout.clone(), streams.stderr.clone()]);
    }
    words.push("--".into());
    words.extend(command);
    words
}

/// The process itself: `adapter NAME [--streams IN OUT ERR] -- COMMAND`; answers its exit code.
#[must_use]
pub fn main(words: &[OsString]) -> u8 {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut asked = Asked::default();
    let (name, rest) = match words.split_first() {
        Some((name, [flag, stdin, stdout, stderr, rest @ ..])) if flag == "--streams" => {
            asked.streams = Some(Streams { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() });
            (name.as_str(), rest)
        }
        Some((name, rest)) => (name.as_str(), rest),
        None => ("", &[][..]),
    };
    let rest = rest.strip_prefix(&["--".to_string()]).unwrap_or(rest);
    asked.command = rest.to_vec();
    match TRANSLATORS.iter().find(|(known, _)| *known == name) {
        Some((_, run)) => run(&asked),
        None => {
            let known: Vec<&str> = TRANSLATORS.iter().map(|(name, _)| *name).collect();
            eprintln!("bugeye adapter: there is no `{name}`; known: {}", known.join(", "));
            2
        }
    }
}

/// The client's side of a translator: what it asks comes from the receiver, which ends with its stream.
#[derive(Debug)]
pub struct Client {
    codec: Codec,
}

impl Client {
    /// Takes over this process's standard streams.
    #[must_use]
    pub fn on_standard_streams() -> (Self, mpsc::UnboundedReceiver<Message>) {
        let (asks, asked) = mpsc::unbounded_channel();
        std::thread::spawn(move || {
            let (mut codec, mut bytes) = (Codec::default(), BytesMut::new());
            let mut buffer = [0u8; 64 * 1024];
            let mut stdin = std::io::stdin().lock();
            loop {
                match codec.decode(&mut bytes) {
                    Ok(Some(message)) => {
                        if asks.send(message).is_err() {
                            return;
                        }
                    }
                    Ok(None) => match stdin.read(&mut buffer) {
                        Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
                        _ => return,
                    },
                    Err(error) => return eprintln!("{error}"),
                }
            }
        });
        (Self { codec: Codec::default() }, asked)
    }

    /// The same, where what is asked is one of several things that may happen; the client's leaving is another.
    pub fn among<T: Send + 'static>(happen: std::sync::mpsc::Sender<T>, asked: fn(Message) -> T, left: T) -> Self {
        let (client, mut asks) = Self::on_standard_streams();
        std::thread::spawn(move || {
            while let Some(message) = asks.blocking_recv() {
                if happen.send(asked(message)).is_err() {
                    return;
                }
            }
            let _ = happen.send(left);
        });
        client
    }

    /// Answers a request.
    pub fn answer(&mut self, request_seq: i64, command: &str, result: Result<Value, String>) {
        let (success, message, body) = match result {
            Ok(body) => (true, None, body),
            Err(message) => (false, Some(message), Value::Null),
        };
        self.send(Message::Response { request_seq, command: command.into(), success, message, body });
    }

    pub fn event(&mut self, event: &str, body: Value) {
        self.send(Message::Event { event: event.into(), body });
    }

    /// In one write. A client that is gone is noticed by the end of what it asks.
    pub fn send(&mut self, message: Message) {
        let mut bytes = BytesMut::new();
        if let Err(error) = self.codec.encode(message, &mut bytes) {
            return eprintln!("a message was not sent: {error}");
        }
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(&bytes).and_then(|()| stdout.flush());
    }
}
