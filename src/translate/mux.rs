//! A program that starts others: each is debugged in a session of its own, and all of them are one to the client.
//!
//! An adapter that follows children asks its client to open another session for each. This stands between: it opens
//! them itself and joins them. The decisions are in `mux/`, pure; here is what carries them out: a thread that reads each
//! stream, and one that does everything else. Without children every message passes as it came.

mod children;
mod ids;
mod joined;
mod stops;
#[cfg(test)]
mod tests;
mod wishes;

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio_util::codec::Decoder as _;

use super::Asked;
use super::relay::acknowledge_at_once;
use crate::dap::{Codec, Message};
use joined::{Act, Joined, ROOT, Timer};

/// How long an adapter may take to open its socket.
const OPENING: Duration = Duration::from_secs(10);
/// How long a child's connection may take.
const CONNECTING: Duration = Duration::from_secs(2);
/// How long an adapter may take to leave once nobody speaks to it.
const LEAVING: Duration = Duration::from_secs(5);

/// What the threads that read report.
enum Input {
    Client(Message),
    ClientGone,
    Process(usize, Message),
    Gone(usize),
}

/// Runs an adapter, and joins the sessions of the children that it tells of. It speaks on its standard streams, or on
/// the port that stands for `{port}` in its command line.
pub fn mux(asked: &Asked) -> u8 {
    let (root, mut adapter) = match start(asked) {
        Ok(started) => started,
        Err(error) => {
            eprintln!("could not start {}: {error}", asked.command.join(" "));
            return 1;
        }
    };
    let (sender, inputs) = mpsc::channel();
    let to_root = match root {
        Root::Streams(stdin, stdout) => {
            let of_root = sender.clone();
            std::thread::spawn(move || read_all(stdout, &of_root, ROOT));
            (Box::new(stdin) as Box<dyn Write>, None)
        }
        Root::Socket(socket) => match socket.try_clone() {
            Ok(reader) => {
                let address = socket.peer_addr().ok();
                let of_root = sender.clone();
                std::thread::spawn(move || read_all(Socket(reader), &of_root, ROOT));
                (Box::new(socket) as Box<dyn Write>, address)
            }
            Err(error) => {
                eprintln!("could not share the socket: {error}");
                return 1;
            }
        },
    };
    let of_client = sender.clone();
    std::thread::spawn(move || {
        let _ = read_messages(io::stdin().lock(), |message| of_client.send(Input::Client(message)).is_ok());
        let _ = of_client.send(Input::ClientGone);
    });
    let (to_root, address) = to_root;
    let listens = address.is_some();
    let hub = Hub {
        joined: Joined::new(),
        to_root: Some(to_root),
        address: address.map(|address| (address.ip().to_string(), address.port())),
        children: BTreeMap::new(),
        sender,
        timers: Vec::new(),
        sent: 0,
    };
    hub.run(&inputs);
    if listens {
        // One that listens waits for the next client, for ever.
        let _ = adapter.kill();
    }
    end_as(&mut adapter)
}

enum Root {
    Streams(std::process::ChildStdin, std::process::ChildStdout),
    Socket(TcpStream),
}

fn start(asked: &Asked) -> io::Result<(Root, Child)> {
    let listens = asked.command.iter().any(|word| word.contains("{port}"));
    let port = if listens { TcpListener::bind("127.0.0.1:0")?.local_addr()?.port() } else { 0 };
    let words: Vec<String> = asked.command.iter().map(|word| word.replace("{port}", &port.to_string())).collect();
    let Some((program, args)) = words.split_first() else {
        return Err(io::Error::other("no command was given"));
    };
    let mut command = Command::new(program);
    command.args(args);
    if !listens {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("it has no streams"));
        };
        return Ok((Root::Streams(stdin, stdout), child));
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(streams) = &asked.streams {
        streams.give_to(&mut command)?;
    }
    let mut child = command.spawn()?;
    let deadline = Instant::now() + OPENING;
    loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(socket) => return Ok((Root::Socket(socket), child)),
            Err(error) if child.try_wait()?.is_some() || Instant::now() > deadline => {
                let _ = child.kill();
                return Err(error);
            }
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Carries out what is decided.
struct Hub {
    joined: Joined,
    /// None once the client is gone.
    to_root: Option<Box<dyn Write>>,
    /// Where the program's own adapter listens, if it does.
    address: Option<(String, u16)>,
    children: BTreeMap<usize, TcpStream>,
    sender: mpsc::Sender<Input>,
    timers: Vec<(Instant, Timer)>,
    /// Numbers of outgoing messages that have none of their own.
    sent: i64,
}

impl Hub {
    /// Until the adapter's stream ends, or the client's has and the adapter does not leave.
    fn run(mut self, inputs: &mpsc::Receiver<Input>) {
        let mut leave_by = None;
        loop {
            let now = Instant::now();
            let due = self.timers.iter().map(|(due, _)| *due).chain(leave_by).min();
            let input = match due {
                Some(due) => inputs.recv_timeout(due.saturating_duration_since(now)),
                None => inputs.recv().map_err(RecvTimeoutError::from),
            };
            let acts = match input {
                Ok(Input::Client(message)) => self.joined.client_says(message),
                Ok(Input::Process(process, message)) => self.joined.process_says(process, message),
                Ok(Input::Gone(ROOT)) => return,
                Ok(Input::Gone(process)) => {
                    self.children.remove(&process);
                    self.joined.gone(process)
                }
                Ok(Input::ClientGone) => {
                    // The adapter ends its program, or lets it go, and leaves.
                    self.to_root = None;
                    self.children.values().for_each(close);
                    leave_by = Some(Instant::now() + LEAVING);
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if leave_by.is_some_and(|by| Instant::now() >= by) => return,
                Err(RecvTimeoutError::Timeout) => self.due_timer(),
            };
            self.carry_out(acts);
        }
    }

    fn due_timer(&mut self) -> Vec<Act> {
        let now = Instant::now();
        match self.timers.iter().position(|(due, _)| *due <= now) {
            Some(at) => {
                let (_, timer) = self.timers.swap_remove(at);
                self.joined.timer(timer)
            }
            None => Vec::new(),
        }
    }

    fn carry_out(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Client(message) => {
                    let bytes = self.encoded(&message);
                    let mut stdout = io::stdout().lock();
                    let _ = stdout.write_all(&bytes).and_then(|()| stdout.flush());
                }
                // A peer that is gone is noticed by the end of what it says.
                Act::Process(ROOT, message) => {
                    let bytes = self.encoded(&message);
                    if let Some(root) = &mut self.to_root {
                        let _ = root.write_all(&bytes).and_then(|()| root.flush());
                    }
                }
                Act::Process(process, message) => {
                    let bytes = self.encoded(&message);
                    if let Some(stream) = self.children.get_mut(&process) {
                        let _ = stream.write_all(&bytes);
                    }
                }
                Act::Connect(process, address) => self.connect(process, address),
                Act::Arm(timer, after) => self.timers.push((Instant::now() + after, timer)),
            }
        }
    }

    fn connect(&mut self, process: usize, address: Option<(String, u16)>) {
        let opened = address.or_else(|| self.address.clone()).and_then(|(host, port)| {
            let stream = (host.as_str(), port)
                .to_socket_addrs()
                .ok()?
                .find_map(|address| TcpStream::connect_timeout(&address, CONNECTING).ok())?;
            acknowledge_at_once(&stream);
            let reader = stream.try_clone().ok()?;
            Some((stream, reader))
        });
        let acts = match opened {
            Some((stream, reader)) => {
                self.children.insert(process, stream);
                let sender = self.sender.clone();
                std::thread::spawn(move || read_all(Socket(reader), &sender, process));
                self.joined.connected(process)
            }
            None => {
                eprintln!("a child's session could not be opened");
                self.joined.gone(process)
            }
        };
        self.carry_out(acts);
    }

    /// One frame, of whatever size: what the adapter may say, the client may hear.
    fn encoded(&mut self, message: &Message) -> Vec<u8> {
        self.sent += 1;
        let body = message.to_json(self.sent).to_string();
        let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
        bytes.extend_from_slice(body.as_bytes());
        bytes
    }
}

fn close(stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Both);
}

/// A socket that is acknowledged at every read, since the kernel forgets it.
struct Socket(TcpStream);

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        acknowledge_at_once(&self.0);
        self.0.read(buffer)
    }
}

/// Reads a process's messages to their end, which it reports.
fn read_all(stream: impl Read, sender: &mpsc::Sender<Input>, process: usize) {
    if let Err(error) = read_messages(stream, |message| sender.send(Input::Process(process, message)).is_ok()) {
        eprintln!("{error}");
    }
    let _ = sender.send(Input::Gone(process));
}

fn read_messages(mut stream: impl Read, mut take: impl FnMut(Message) -> bool) -> Result<(), crate::dap::FrameError> {
    let (mut codec, mut bytes) = (Codec::default(), BytesMut::new());
    let mut buffer = vec![0u8; 64 * 1024];
    loop {
        while let Some(message) = codec.decode(&mut bytes)? {
            if !take(message) {
                return Ok(());
            }
        }
        match stream.read(&mut buffer) {
            Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
            _ => return Ok(()),
        }
    }
}

/// Ends the way the adapter did, so that whoever started us sees that.
fn end_as(adapter: &mut Child) -> u8 {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match adapter.try_wait() {
            Ok(Some(status)) => {
                if let Some(signal) = status.signal().and_then(rustix::process::Signal::from_named_raw) {
                    let _ = rustix::process::kill_process(rustix::process::getpid(), signal);
                }
                return status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
            }
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            _ => return 0,
        }
    }
}
