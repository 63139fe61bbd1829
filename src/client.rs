//! The way from a command to the daemon: connect, start one if there is none, ask.
//!
//! Plain blocking calls and no runtime, because what a command costs is mostly what its client costs to start.

pub mod records;

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, Kind};
use crate::log;
use crate::paths::Paths;
use crate::wire::{Answer, Caller, Line, MAX_LINE, PROTOCOL, Request};

const CONNECT_LIMIT: Duration = Duration::from_secs(2);
const START_LIMIT: Duration = Duration::from_secs(5);
/// A daemon that has been silent this long is asked whether it still lives. It may well: some commands wait.
const SILENCE: Duration = Duration::from_secs(5);
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a daemon says about itself.
#[derive(Debug, Clone, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    pub pid: u32,
    pub sessions: usize,
    /// Its state directory, which may not be that of the asking process.
    #[serde(default)]
    pub state: Option<PathBuf>,
}

/// A daemon of ours that has said hello.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
    unread: Vec<u8>,
    socket: PathBuf,
    pub daemon: Hello,
}

/// Connects to a Unix socket within `limit`. The standard library's `connect` waits for ever when the listener is stuck.
pub fn reach(socket: &Path, limit: Duration) -> io::Result<UnixStream> {
    let deadline = Instant::now() + limit;
    let address = SocketAddrUnix::new(socket)?;
    loop {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let descriptor = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&descriptor, &address) {
            Ok(()) => {
                let stream = UnixStream::from(descriptor);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            // The queue of connections not yet accepted is full.
            Err(rustix::io::Errno::AGAIN) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(rustix::io::Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Connects to the daemon if there is one, whatever protocol it speaks.
pub fn connect(paths: &Paths) -> Result<Option<Connection>, Failure> {
    paths.prepare()?;
    open(paths)
}

/// As [`connect`], but a daemon that lives and can't be reached (its socket is not there yet, or no more) counts.
pub fn find(paths: &Paths) -> Result<Option<Connection>, Failure> {
    match connect(paths)? {
        None if is_claimed(paths) => connect_or_start(paths).map(Some),
        found => Ok(found),
    }
}

/// Connects to the daemon; starts one if there is none, and replaces an idle one of another version.
pub fn connect_or_start(paths: &Paths) -> Result<Connection, Failure> {
    paths.prepare()?;
    let deadline = Instant::now() + START_LIMIT;
    let mut starting: Option<Starting> = None;
    loop {
        if let Some(mut connection) = open(paths)? {
            if let Some(starting) = starting.take() {
                starting.let_go(connection.daemon.pid);
            }
            let daemon = &connection.daemon;
            if daemon.protocol == PROTOCOL && (daemon.version == VERSION || daemon.sessions > 0) {
                return Ok(connection);
            }
            if daemon.sessions > 0 || !connection.end_if_idle()? {
                return Err(mismatch(&connection.daemon));
            }
        } else {
            match &mut starting {
                None => starting = Some(Starting::new(paths)?),
                Some(started) => {
                    if started.is_over(paths)? {
                        starting = None;
                    }
                }
            }
        }
        if Instant::now() > deadline {
            let failure = Failure::timed_out(format!("the daemon did not start within {START_LIMIT:?}"));
            return Err(match starting {
                Some(starting) => starting.with_log(paths, failure),
                None => failure,
            });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether some process is the daemon, or is about to be.
#[must_use]
pub fn is_claimed(paths: &Paths) -> bool {
    std::fs::File::open(paths.lock())
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK))
}

fn open(paths: &Paths) -> Result<Option<Connection>, Failure> {
    let socket = paths.socket();
    let stream = match reach(&socket, CONNECT_LIMIT) {
        Ok(stream) => stream,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(silent(None)),
        Err(error) => return Err(Failure::io(format!("connect to {}", socket.display()), &error)),
    };
    let peer = rustix::net::sockopt::socket_peercred(&stream)
        .map_err(|error| Failure::io("identify the daemon", &error.into()))?;
    let own = rustix::process::geteuid();
    if peer.uid != own {
        return Err(Failure::refused(format!(
            "{} is served by user {}, not {}",
            socket.display(),
            peer.uid.as_raw(),
            own.as_raw()
        )));
    }
    let pid = peer.pid.as_raw_nonzero().get().unsigned_abs();
    let daemon = Hello { protocol: PROTOCOL, version: String::new(), pid, sessions: 0, state: None };
    let mut connection = Connection { stream, unread: Vec::new(), socket, daemon };
    let question = request(0, "hello", Value::Null);
    match connection.exchange(&question, Some(CONNECT_LIMIT), &mut |_| {}) {
        Ok(answer) => {
            connection.daemon =
                answer.result.and_then(|hello| serde_json::from_value(hello).ok()).ok_or_else(|| {
                    Failure::refused(format!("{} answers, but not as a daemon", connection.socket.display()))
                })?;
            Ok(Some(connection))
        }
        // It ended between our connection and its answer. Nothing was asked of it yet, so the next one may be asked.
        Err(Trouble::Lost) => Ok(None),
        Err(Trouble::Silent) => Err(silent(Some(pid))),
        Err(Trouble::Other(failure)) => Err(failure),
    }
}

fn request(id: u64, cmd: &str, args: Value) -> Request {
    Request {
        v: PROTOCOL,
        id,
        cmd: cmd.to_string(),
        args,
        ctx: Caller { who: "client".to_string(), ..Caller::default() },
    }
}

fn silent(pid: Option<u32>) -> Failure {
    let failure = Failure::timed_out("the daemon does not answer");
    match pid {
        Some(pid) => failure.hint(format!("if it is stopped, `kill -CONT {pid}`; `kill -9 {pid}` ends it")),
        None => failure.hint("`bugeye daemon log` shows what it last did"),
    }
}

fn mismatch(daemon: &Hello) -> Failure {
    Failure::refused(format!(
        "the running daemon (version {}, pid {}) speaks protocol {}, this client {PROTOCOL} (version {VERSION}), and it has {} live sessions",
        daemon.version, daemon.pid, daemon.protocol, daemon.sessions
    ))
    .hint("`bugeye daemon stop` ends the daemon and its sessions; the next command starts one that fits")
}

enum Trouble {
    Lost,
    Silent,
    Other(Failure),
}

impl Connection {
    /// Asks one question; parts that come before the answer go to `on_part`.
    pub fn ask(&mut self, request: &Request, on_part: &mut dyn FnMut(Line)) -> Result<Answer, Failure> {
        self.exchange(request, None, on_part).map_err(|trouble| match trouble {
            Trouble::Lost => Failure::lost(format!("the daemon (pid {}) ended before it answered", self.daemon.pid))
                .hint("`bugeye daemon log` shows why; sessions it held are gone: start again"),
            Trouble::Silent => silent(Some(self.daemon.pid)),
            Trouble::Other(failure) => failure,
        })
    }

    /// What has the question of number `id` answered with what there is; it may be called from another thread.
    pub fn canceller(&self, id: u64) -> io::Result<impl Fn() + Send + use<>> {
        let stream = self.stream.try_clone()?;
        let line = serde_json::to_string(&request(0, "interrupt", json!({ "id": id })))?;
        Ok(move || {
            // A daemon that is gone is noticed by whoever reads.
            let _ = (&stream).write_all(format!("{line}\n").as_bytes());
        })
    }

    /// What closes this connection, from another thread.
    pub fn closer(&self) -> Result<impl Fn() + Send + use<>, Failure> {
        let stream = self.stream.try_clone().map_err(|error| Failure::io("share the connection", &error))?;
        Ok(move || drop(stream.shutdown(std::net::Shutdown::Both)))
    }

    /// Keeps the sessions that `who` starts only as long as this connection lives, and the configured time after it.
    pub fn lease(mut self, who: &str) -> Result<Self, Failure> {
        let request = request(1, "lease", json!({ "who": who }));
        let line = serde_json::to_string(&request).map_err(|error| Failure::internal(error.to_string()))?;
        self.stream
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|error| Failure::io("speak to the daemon", &error))?;
        Ok(self)
    }

    /// Whether the daemon is still at the other end of a lease, on which it says nothing.
    #[must_use]
    pub fn holds(&self) -> bool {
        let peeked = rustix::net::recv(&self.stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
        matches!(peeked, Err(rustix::io::Errno::AGAIN))
    }

    /// Ends the daemon and its sessions; answers how many there were.
    pub fn shut_down(&mut self) -> Result<usize, Failure> {
        let answer = self.ask(&request(1, "shutdown", Value::Null), &mut |_| {})?;
        match answer.error {
            Some(failure) => Err(failure),
            None => Ok(answer.result.and_then(|result| result["sessions"].as_u64()).unwrap_or(0) as usize),
        }
    }

    /// Ends a daemon without sessions; answers whether it went.
    pub fn end_if_idle(&mut self) -> Result<bool, Failure> {
        match self.exchange(&request(1, "shutdown", json!({ "if_idle": true })), Some(CONNECT_LIMIT), &mut |_| {}) {
            Ok(answer) => Ok(answer.ok),
            Err(Trouble::Lost) => Ok(true),
            Err(Trouble::Silent) => Err(silent(Some(self.daemon.pid))),
            Err(Trouble::Other(failure)) => Err(failure),
        }
    }

    fn exchange(
        &mut self,
        request: &Request,
        limit: Option<Duration>,
        on_part: &mut dyn FnMut(Line),
    ) -> Result<Answer, Trouble> {
        let other = |failure| Trouble::Other(failure);
        let mut line = serde_json::to_vec(request)
            .map_err(|error| other(Failure::internal(format!("a request can't be written: {error}"))))?;
        if line.len() > MAX_LINE {
            return Err(other(Failure::usage("the request is too long")));
        }
        line.push(b'\n');
        let timeouts = self
            .stream
            .set_write_timeout(Some(SILENCE))
            .and_then(|()| self.stream.set_read_timeout(Some(limit.unwrap_or(SILENCE))));
        timeouts.map_err(|error| other(Failure::io("set a limit", &error)))?;
        if let Err(error) = self.stream.write_all(&line)
            && is_timeout(&error)
        {
            return Err(Trouble::Silent);
        }
        // Any other failure to write may have left an answer that says why.
        loop {
            let line = self.read_line(limit)?;
            let line: Line = serde_json::from_slice(&line)
                .map_err(|error| other(Failure::internal("the daemon's answer can't be read").cause(error)))?;
            match line {
                // Number 0 answers a line whose number could not be read.
                Line::Final(last) if last.id == request.id || last.id == 0 => return Ok(last.answer),
                Line::Final(_) => {}
                part => on_part(part),
            }
        }
    }

    fn read_line(&mut self, limit: Option<Duration>) -> Result<Vec<u8>, Trouble> {
        let mut searched = 0;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            if let Some(at) = self.unread[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.unread.split_off(searched + at + 1);
                return Ok(std::mem::replace(&mut self.unread, rest));
            }
            searched = self.unread.len();
            if searched > MAX_LINE {
                return Err(Trouble::Other(Failure::internal("the daemon's answer is longer than it may be")));
            }
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(Trouble::Lost),
                Ok(count) => self.unread.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_timeout(&error) => {
                    if limit.is_some() || !self.lives() {
                        return Err(Trouble::Silent);
                    }
                }
                Err(_) => return Err(Trouble::Lost),
            }
        }
    }

    /// Whether the daemon still answers others, while it keeps this one waiting. One that was replaced or removed its
    /// socket on its way out will close this connection by itself.
    fn lives(&self) -> bool {
        let Ok(stream) = reach(&self.socket, CONNECT_LIMIT) else {
            return !matches!(reach(&self.socket, CONNECT_LIMIT), Err(error) if error.kind() == io::ErrorKind::TimedOut);
        };
        let mut second = Self { stream, unread: Vec::new(), socket: self.socket.clone(), daemon: self.daemon.clone() };
        !matches!(
            second.exchange(&request(0, "hello", Value::Null), Some(CONNECT_LIMIT), &mut |_| {}),
            Err(Trouble::Silent)
        )
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A daemon that was started and does not answer yet.
struct Starting {
    child: Child,
    /// When its process ended in peace: it found another daemon, which should answer soon.
    ended: Option<Instant>,
    /// How long the log was before.
    logged: u64,
}

impl Starting {
    fn new(paths: &Paths) -> Result<Self, Failure> {
        paths.prepare_state()?;
        let program = std::env::current_exe().map_err(|error| Failure::io("find this program", &error))?;
        let logged = std::fs::metadata(paths.log()).map_or(0, |found| found.len());
        let errors = log::append_to(&paths.log()).map_or_else(|_| Stdio::null(), Stdio::from);
        // Nothing of the caller's may stay open: whoever reads this command's output would wait for the daemon's end.
        let mut command = match inherited_descriptors().as_str() {
            "" => Command::new(&program),
            closing => {
                let mut shell = Command::new("/bin/sh");
                shell.args(["-c", &format!("exec {closing}; exec \"$0\" \"$@\"")]).arg(&program);
                shell
            }
        };
        // Its working directory is another, so what is relative here would mean another place there.
        for name in ["BUGEYE_HOME", "BUGEYE_STATE_DIR"] {
            if let Some(path) = std::env::var_os(name).and_then(|path| std::path::absolute(path).ok()) {
                command.env(name, path);
            }
        }
        let child = command
            .args(["daemon", "run"])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|error| Failure::io(format!("start the daemon ({})", program.display()), &error))?;
        Ok(Self { child, ended: None, logged })
    }

    /// Whether it is time to start another: this one ended in peace and nobody answers.
    fn is_over(&mut self, paths: &Paths) -> Result<bool, Failure> {
        if let Some(ended) = self.ended {
            return Ok(ended.elapsed() > Duration::from_millis(250));
        }
        match self.child.try_wait() {
            Ok(Some(status)) if status.success() => self.ended = Some(Instant::now()),
            Ok(Some(status)) => {
                let kind = match status.code() {
                    Some(1) => Kind::Refused,
                    Some(2) => Kind::Usage,
                    Some(4) => Kind::TimedOut,
                    _ => Kind::Lost,
                };
                return Err(self.with_log(paths, Failure::new(kind, format!("the daemon could not start ({status})"))));
            }
            Ok(None) => {}
            Err(error) => return Err(Failure::io("watch the daemon start", &error)),
        }
        Ok(false)
    }

    /// Adds what the daemon said about itself since it was started.
    fn with_log(&self, paths: &Paths, failure: Failure) -> Failure {
        let log = std::fs::read(paths.log()).unwrap_or_default();
        let from = usize::try_from(self.logged).unwrap_or(usize::MAX);
        let news = String::from_utf8_lossy(log.get(from..).unwrap_or(&log)).into_owned();
        let lines: Vec<&str> = news.lines().collect();
        let failure = lines.iter().skip(lines.len().saturating_sub(5)).fold(failure, Failure::cause);
        failure.hint(format!("the log is {}", paths.log().display()))
    }

    /// Leaves the daemon to itself. A process of ours that another daemon came before is ended: still waiting for the
    /// lock, it would become the daemon at the very moment that one is stopped.
    fn let_go(mut self, daemon: u32) {
        if self.child.id() != daemon {
            let _ = self.child.kill();
            let _ = self.child.wait();
        } else {
            // A client that stays must not keep the daemon's process as its zombie.
            let _ = std::thread::Builder::new().name("daemon".to_string()).spawn(move || self.child.wait());
        }
    }
}

/// The redirections with which a shell closes what this process was handed besides its standard streams (a build tool's
/// token pipe, a test runner's channel): those without close-on-exec, as far as a shell can name them.
fn inherited_descriptors() -> String {
    const CLOSE_ON_EXEC: u32 = 0o2_000_000;
    let stays_open = |number: &u32| {
        let Ok(text) = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")) else { return false };
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        flags
            .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
            .is_some_and(|flags| flags & CLOSE_ON_EXEC == 0)
    };
    (3..=9).filter(stays_open).map(|number| format!("{number}>&-")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::os::unix::net::UnixListener;

    use super::*;

    fn paths(dir: &Path) -> Paths {
        let paths = Paths {
            runtime: dir.join("runtime"),
            state: dir.join("state"),
            data: dir.join("data"),
            config: dir.join("config"),
        };
        paths.prepare().unwrap();
        paths
    }

    /// Answers one connection with these lines, each after one line read, then closes it.
    fn fake(paths: &Paths, lines: &'static [&'static str]) {
        let listener = UnixListener::bind(paths.socket()).unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            for line in lines {
                reader.read_line(&mut String::new()).unwrap();
                (&stream).write_all(line.as_bytes()).unwrap();
            }
            reader.read_line(&mut String::new()).unwrap();
        });
    }

    const HELLO: &str =
        "{\"final\":{\"id\":0,\"ok\":true,\"result\":{\"protocol\":1,\"version\":\"0\",\"pid\":7,\"sessions\":1}}}\n";

    #[test]
    fn a_daemon_that_dies_over_a_question_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        fake(&paths, &[HELLO]);
        let mut connection = connect(&paths).unwrap().unwrap();
        assert_eq!(connection.daemon.sessions, 1);
        let failure = connection.ask(&request(4, "wait", Value::Null), &mut |_| {}).unwrap_err();
        assert_eq!(failure.kind, Kind::Lost);
        assert!(failure.message.contains("pid 7"), "{failure}");
        assert!(!failure.hints.is_empty());
    }

    #[test]
    fn parts_are_handed_on_and_other_answers_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        fake(
            &paths,
            &[
                HELLO,
                "{\"progress\":{\"id\":4,\"text\":\"a\"}}\n{\"final\":{\"id\":3,\"ok\":true}}\n{\"event\":{\"id\":4,\"data\":1}}\n{\"final\":{\"id\":4,\"ok\":true,\"result\":2}}\n",
            ],
        );
        let mut connection = connect(&paths).unwrap().unwrap();
        let mut parts = Vec::new();
        let answer =
            connection.ask(&request(4, "x", Value::Null), &mut |part| parts.push(format!("{part:?}"))).unwrap();
        assert_eq!(answer.result, Some(json!(2)));
        assert_eq!(parts.len(), 2, "{parts:?}");
    }

    #[test]
    fn a_daemon_that_leaves_before_hello_is_no_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        fake(&paths, &[]);
        assert!(connect(&paths).unwrap().is_none());
    }

    #[test]
    fn a_stuck_listener_does_not_hold_us_up() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("sock");
        let address = SocketAddrUnix::new(&socket).unwrap();
        let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        rustix::net::bind(&listener, &address).unwrap();
        rustix::net::listen(&listener, 0).unwrap();
        let mut held = Vec::new();
        let error = loop {
            match reach(&socket, Duration::from_millis(50)) {
                Ok(stream) => held.push(stream),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
