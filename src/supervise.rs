//! The supervisor: one small process per debug session that owns whatever the session starts.
//!
//! Apart from the daemon, because only a process that outlives the daemon can clean up after it. It has one thread and
//! no runtime: the adapter's death signal is bound to the thread that starts it, and 64 sessions should cost little.
//! Orphans below it fall to it, so "no children left" means that nothing is left at all.
//!
//! It blocks only in `poll`, on the control socket and on the processes it started. It ends when told to, or when the
//! control socket closes, which is how it learns that the daemon is gone.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, RawMode};
use rustix::io::Errno;
use rustix::process::{Signal, WaitOptions};
use serde::{Deserialize, Serialize};

use crate::platform::{self, Process, Table, Watched};

/// The name of a supervisor at work, and of one that only keeps the output of a program that was let go from blocking.
pub(crate) const NAME: &str = "bugeye-session";
pub(crate) const NAME_LET_GO: &str = "bugeye-let-go";

/// The first line on the control socket: what to start, and around what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Launch {
    pub argv: Vec<String>,
    /// The whole environment; nothing of the supervisor's own is added.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    pub umask: Option<u32>,
    pub stdio_dir: PathBuf,
    /// The debuggee is somebody else's process, which must survive the session.
    pub attached: bool,
    /// The adapter outlives the daemon, as long as what it started: told to let go, it does so by itself.
    #[serde(default)]
    pub stays: bool,
    /// `stdio_dir` holds the debuggee's FIFOs.
    pub fifos: bool,
    /// What a spawned child reads instead of the FIFO.
    pub stdin_file: Option<PathBuf>,
}

/// What the daemon may ask for, one JSON line each.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Starts one more child, with the debuggee's FIFOs as its standard streams.
    Spawn { argv: Vec<String>, env: Vec<(String, String)>, cwd: PathBuf },
    /// The debuggee's input is over: nothing here could write to it any longer.
    CloseStdin {},
    /// Ends everything: first politely, after `grace_ms` by force.
    End { grace_ms: u64 },
    /// Spares `pid` and what descends from it; ends the rest.
    LetGo { pid: u32 },
}

/// What the supervisor tells, one JSON line each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Report {
    /// The adapter runs; the answer to [`Launch`].
    Started {
        pid: u32,
    },
    Spawned {
        pid: u32,
    },
    Failed {
        message: String,
    },
    AdapterExited {
        code: Option<i32>,
        signal: Option<String>,
    },
    LetGo {},
    Ended {},
}

/// How long a poll lasts at most: an orphan that ends announces itself to nobody, so there is a look now and then.
const TICK: Duration = Duration::from_secs(1);
/// How long an adapter has to detach from somebody else's process, after which its input ends, and after which it is
/// killed. Together with the killing this stays below two seconds.
const DETACH_EOF: Duration = Duration::from_millis(1000);
const DETACH: Duration = Duration::from_millis(1700);
/// What helpers of an adapter that has gone by itself may still need.
const AFTERGLOW: Duration = Duration::from_millis(200);
/// How long an adapter that has detached may take to leave by itself.
const LEAVE: Duration = Duration::from_millis(500);
/// A process in the kernel's hands can't be killed; there is no use in trying for ever.
const GIVE_UP: Duration = Duration::from_secs(10);

const DISCONNECT: &str =
    r#"{"seq":1000000,"type":"request","command":"disconnect","arguments":{"terminateDebuggee":false}}"#;

/// The same for an adapter that stays: it was not let go, its debugger is lost.
const LOST: &str =
    r#"{"seq":1000000,"type":"request","command":"disconnect","arguments":{"terminateDebuggee":false,"lost":true}}"#;

/// Runs the hidden subcommand; the result is the exit code.
#[must_use]
pub fn main() -> u8 {
    match Supervisor::start() {
        Ok(Some(supervisor)) => {
            supervisor.run();
            0
        }
        Ok(None) | Err(_) => 1,
    }
}

/// The daemon's end of the conversation.
struct Control {
    socket: UnixStream,
    unread: Vec<u8>,
}

enum Heard {
    Line(Vec<u8>),
    Nothing,
    Closed,
}

impl Control {
    /// The next line, if one has come.
    fn next(&mut self) -> Heard {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let rest = self.unread.split_off(end + 1);
                return Heard::Line(std::mem::replace(&mut self.unread, rest));
            }
            let mut chunk = [0; 4096];
            match self.socket.read(&mut chunk) {
                Ok(0) => return Heard::Closed,
                Ok(length) => self.unread.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(_) => return Heard::Closed,
            }
        }
    }

    /// Says something. A daemon that is gone or does not listen is noticed elsewhere; it must not hold up the end.
    fn say(&mut self, report: &Report) {
        if let Ok(mut line) = serde_json::to_vec(report) {
            line.push(b'\n');
            let _ = self.socket.write_all(&line);
        }
    }
}

/// The debuggee's FIFOs, held open so that neither end of them ever sees the other one missing.
#[derive(Default)]
struct Fifos {
    stdin: Option<OwnedFd>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

/// The daemon's ends of the adapter's pipes, needed once the daemon is gone: to ask the adapter to detach, and so that
/// it is not killed by the first line it writes about that.
struct Wires {
    input: Option<OwnedFd>,
    output: OwnedFd,
    errors: OwnedFd,
}

struct Supervisor {
    control: Control,
    launch: Launch,
    fifos: Fifos,
    wires: Wires,
    adapter: u32,
    /// Until its end has been reported.
    adapter_alive: bool,
    watched: Vec<Watched>,
    me: u32,
}

impl Supervisor {
    /// Takes the plan and starts the adapter; `None` when that failed and has been reported.
    fn start() -> io::Result<Option<Self>> {
        platform::set_name(&name(NAME));
        platform::become_subreaper()?;
        // Fails only for a group leader, which is apart from the daemon's session already.
        let _ = rustix::process::setsid();
        // The control socket comes as standard input: descriptors that std passes on need no unsafe code and no window
        // in which a child of another session could inherit them. The rest comes through the socket.
        let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        let Ok([stdin, stdout, stderr, input, output, errors]) =
            <[OwnedFd; 6]>::try_from(platform::receive_fds(&socket)?)
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut control = Control { socket, unread: Vec::new() };
        let launch: Launch = match control.next() {
            Heard::Line(line) => serde_json::from_slice(&line)?,
            Heard::Nothing | Heard::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
        };
        control.socket.set_nonblocking(true)?;
        if let Some(mask) = launch.umask {
            rustix::process::umask(Mode::from_raw_mode((mask & 0o777) as RawMode));
        }
        let fifos = match Fifos::open(&launch) {
            Ok(fifos) => fifos,
            Err(error) => {
                control.say(&Report::Failed { message: format!("could not open the program's FIFOs: {error}") });
                return Ok(None);
            }
        };
        let streams = [stdin, stdout, stderr].map(Stdio::from);
        let started = command(&launch.argv, &launch.env, &launch.cwd, streams).and_then(|mut command| {
            platform::die_with_parent(&mut command);
            command.spawn()
        });
        let adapter = match started {
            Ok(child) => child.id(),
            Err(error) => {
                control.say(&Report::Failed { message: could_not_start(&launch.argv, &error) });
                return Ok(None);
            }
        };
        control.say(&Report::Started { pid: adapter });
        Ok(Some(Self {
            control,
            launch,
            fifos,
            wires: Wires { input: Some(input), output, errors },
            adapter,
            adapter_alive: true,
            watched: platform::watch(adapter).into_iter().collect(),
            me: std::process::id(),
        }))
    }

    fn run(mut self) {
        loop {
            self.wait(TICK);
            self.reap();
            loop {
                let line = match self.control.next() {
                    Heard::Line(line) => line,
                    Heard::Nothing => break,
                    Heard::Closed => return self.abandoned(),
                };
                match serde_json::from_slice(&line) {
                    Ok(Order::Spawn { argv, env, cwd }) => {
                        let report = match self.spawn(&argv, &env, &cwd) {
                            Ok(pid) => Report::Spawned { pid },
                            Err(error) => Report::Failed { message: could_not_start(&argv, &error) },
                        };
                        self.control.say(&report);
                    }
                    Ok(Order::CloseStdin {}) => self.fifos.end_stdin(&self.launch),
                    Ok(Order::End { grace_ms }) => return self.end(Duration::from_millis(grace_ms)),
                    Ok(Order::LetGo { pid }) => return self.let_go(pid),
                    Err(error) => self.control.say(&Report::Failed { message: format!("no such order: {error}") }),
                }
            }
        }
    }

    /// Waits until the daemon speaks, a process started here ends, or `most` has passed.
    fn wait(&mut self, most: Duration) {
        let before = self.watched.len();
        self.watched.retain(|watched| !watched.has_ended());
        // One that ended since the last look announces itself no more.
        if self.watched.len() < before {
            return;
        }
        let mut fds = vec![PollFd::new(&self.control.socket, PollFlags::IN)];
        fds.extend(self.watched.iter().map(|watched| PollFd::new(watched, PollFlags::IN)));
        let _ = poll(&mut fds, Some(&timespec(most)));
    }

    /// Takes the dead off the table and reports the adapter's end; false when nothing is left below.
    fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    if self.adapter_alive && u32::try_from(pid.as_raw_pid()) == Ok(self.adapter) {
                        self.adapter_alive = false;
                        self.control.say(&Report::AdapterExited {
                            code: status.exit_status(),
                            signal: status.terminating_signal().map(platform::signal_name),
                        });
                    }
                }
                Ok(None) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// The adapter's `runInTerminal`: a child with the debuggee's streams.
    fn spawn(&mut self, argv: &[String], env: &[(String, String)], cwd: &PathBuf) -> io::Result<u32> {
        let open = |name: &str, held: bool, flags: OFlags| -> io::Result<Stdio> {
            // Without a holder at its other end the FIFO would block in `open`.
            if !held {
                return Ok(Stdio::null());
            }
            let path = self.launch.stdio_dir.join(name);
            Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?.into())
        };
        let stdin = match &self.launch.stdin_file {
            Some(file) => std::fs::File::open(file)?.into(),
            None if self.fifos.stdin.is_none() => Stdio::null(),
            None => platform::open_stdin(&self.launch.stdio_dir.join("stdin"))?.into(),
        };
        let stdout = open("stdout", self.fifos.stdout.is_some(), OFlags::WRONLY)?;
        let stderr = open("stderr", self.fifos.stderr.is_some(), OFlags::WRONLY)?;
        let pid = command(argv, env, cwd, [stdin, stdout, stderr])?.spawn()?.id();
        self.watched.extend(platform::watch(pid));
        Ok(pid)
    }

    /// Everything below is asked to end, then killed; then the daemon is told and this process ends.
    fn end(mut self, grace: Duration) {
        let mut until = Instant::now() + grace;
        if !grace.is_zero() {
            for process in Table::read().below(self.me) {
                platform::send(&process, Signal::TERM);
            }
        }
        while self.reap() && Instant::now() < until {
            self.wait(Duration::from_millis(10));
            match self.control.next() {
                Heard::Closed => break,
                Heard::Line(line) => {
                    if let Ok(Order::End { grace_ms }) = serde_json::from_slice(&line) {
                        until = until.min(Instant::now() + Duration::from_millis(grace_ms));
                    }
                }
                Heard::Nothing => {}
            }
        }
        self.kill(None);
        self.control.say(&Report::Ended {});
    }

    /// Kills what is below, except for `spared` and its own, until it is gone.
    fn kill(&mut self, spared: Option<u32>) {
        let give_up = Instant::now() + GIVE_UP;
        let mut pause = Duration::from_millis(1);
        loop {
            let (me, adapter) = (self.me, self.adapter);
            platform::kill_all(|| rest(me, adapter, spared));
            // The spared stay, so then "no children" never comes; but the adapter's end must have been seen and told,
            // unless it is one of them.
            let below = self.reap();
            let told = !self.adapter_alive || spared == Some(adapter);
            let done = spared.is_some() && told && rest(me, adapter, spared).is_empty();
            if !below || done || Instant::now() > give_up {
                return;
            }
            // The control socket is of no interest here, and closed it would make every wait return at once.
            let _ = poll(&mut [], Some(&timespec(pause)));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// The daemon is gone. What it had launched goes too; a process it had attached to is left as it was found.
    fn abandoned(mut self) {
        if self.launch.stays && self.adapter_alive {
            return self.stay();
        }
        if self.launch.attached && self.adapter_alive {
            self.ask_to_detach();
        }
        self.kill(None);
    }

    /// A debugger that is killed leaves its breakpoints in the program, which would die of the next one it runs into.
    fn ask_to_detach(&mut self) {
        let frame = format!("Content-Length: {}\r\n\r\n{DISCONNECT}", DISCONNECT.len());
        let start = Instant::now();
        let mut unsent = frame.as_bytes();
        let mut left = None;
        while self.reap() {
            let elapsed = start.elapsed();
            if !self.adapter_alive {
                left.get_or_insert(elapsed);
            }
            if elapsed >= left.map_or(DETACH, |left| DETACH.min(left + AFTERGLOW)) {
                break;
            }
            if let Some(input) = &self.wires.input {
                if let Ok(sent) = rustix::io::write(input, unsent) {
                    unsent = &unsent[sent..];
                }
                // Some adapters only leave when their input ends; others take that for a reason to drop the request.
                if elapsed >= DETACH_EOF {
                    self.wires.input = None;
                }
            }
            let mut fds: Vec<_> = [&self.wires.output, &self.wires.errors]
                .into_iter()
                .map(|fd| PollFd::new(fd, PollFlags::IN))
                .chain(self.watched.iter().map(|watched| PollFd::new(watched, PollFlags::IN)))
                .collect();
            let _ = poll(&mut fds, Some(&timespec(Duration::from_millis(10))));
            discard(&self.wires.output);
            discard(&self.wires.errors);
            self.watched.retain(|watched| !watched.has_ended());
        }
    }

    /// The daemon is gone, and the adapter stays with what it started: it is told to let go, and what both of them print
    /// is read until they end.
    fn stay(self) {
        platform::set_name(&name(NAME_LET_GO));
        let Self { wires, fifos, adapter, .. } = self;
        let frame = format!("Content-Length: {}\r\n\r\n{LOST}", LOST.len());
        if let Some(input) = &wires.input {
            let _ = rustix::io::write(input, frame.as_bytes());
        }
        let Some(adapter) = platform::watch(adapter) else { return };
        let outputs = [fifos.stdout, fifos.stderr, Some(wires.output), Some(wires.errors)];
        keep_reading(&outputs, &adapter);
    }

    /// The program goes on without a debugger. Its output still needs a reader, or it would block or die of a write.
    fn let_go(mut self, pid: u32) {
        let pid = if self.launch.stays && self.adapter_alive { self.adapter } else { pid };
        let below = Table::read().below(self.me);
        let program = below.iter().find(|process| process.pid == pid).and_then(|_| platform::watch(pid));
        let Some(program) = program.filter(|_| !self.launch.attached) else {
            self.kill(None);
            self.control.say(&Report::LetGo {});
            return;
        };
        platform::set_name(&name(NAME_LET_GO));
        let leave = Instant::now() + LEAVE;
        while self.reap() && Instant::now() < leave && !rest(self.me, self.adapter, Some(pid)).is_empty() {
            let _ = poll(&mut [], Some(&timespec(Duration::from_millis(10))));
        }
        self.kill(Some(pid));
        self.control.say(&Report::LetGo {});
        let Self { mut control, wires, fifos, launch, .. } = self;
        let _ = control.socket.shutdown(std::net::Shutdown::Both);
        drop((control.socket, std::mem::take(&mut control.unread)));
        let (output, errors) = (Some(wires.output), Some(wires.errors));
        let adapter = if launch.stays { [output, errors] } else { [None, None] };
        drop(wires.input);
        let [output, errors] = adapter;
        keep_reading(&[fifos.stdout, fifos.stderr, output, errors], &program);
    }
}

/// Reads and drops a program's output until it and whatever it started are gone.
fn keep_reading(outputs: &[Option<OwnedFd>], program: &Watched) {
    let outputs: Vec<&OwnedFd> = outputs.iter().flatten().collect();
    loop {
        let mut fds: Vec<_> = outputs.iter().map(|fd| PollFd::new(*fd, PollFlags::IN)).collect();
        let ended = program.has_ended();
        if !ended {
            fds.push(PollFd::new(program, PollFlags::IN));
        }
        let _ = poll(&mut fds, Some(&timespec(TICK)));
        for fd in &outputs {
            discard(fd);
        }
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break,
                Err(_) if program.has_ended() => return,
                Err(_) => break,
            }
        }
    }
}

impl Fifos {
    fn open(launch: &Launch) -> io::Result<Self> {
        if !launch.fifos {
            return Ok(Self::default());
        }
        let open = |name: &str| {
            let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
            rustix::fs::open(launch.stdio_dir.join(name), flags, Mode::empty())
        };
        let stdin = if launch.stdin_file.is_none() { Some(open("stdin")?) } else { None };
        Ok(Self { stdin, stdout: Some(open("stdout")?), stderr: Some(open("stderr")?) })
    }

    /// Leaves a reader, so that what was written is kept for a program that has not opened its input yet.
    fn end_stdin(&mut self, launch: &Launch) {
        if self.stdin.is_some() {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            self.stdin = rustix::fs::open(launch.stdio_dir.join("stdin"), flags, Mode::empty()).ok();
        }
    }
}

/// What is below `me`, apart from `spared`, what descends from it, and what shares a session or a process group that it
/// does not share with the adapter: a child it has orphaned is known by nothing else.
fn rest(me: u32, adapter: u32, spared: Option<u32>) -> Vec<Process> {
    let table = Table::read();
    let mut found = table.below(me);
    let Some(spared) = spared else { return found };
    let own: Vec<u32> = table.below(spared).into_iter().map(|process| process.pid).collect();
    let program = table.get(spared).copied();
    found.retain(|process| {
        let mate = program.is_some_and(|program| {
            (process.session == program.session && program.session != me)
                || (process.group == program.group && program.group != adapter)
        });
        process.pid != spared && !own.contains(&process.pid) && (process.pid == adapter || !mate)
    });
    found
}

fn command(argv: &[String], env: &[(String, String)], cwd: &PathBuf, streams: [Stdio; 3]) -> io::Result<Command> {
    let [program, arguments @ ..] = argv else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the command is empty"));
    };
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::new(program);
    command.args(arguments).env_clear().envs(env.iter().map(|(name, value)| (name, value))).current_dir(cwd);
    command.process_group(0).stdin(stdin).stdout(stdout).stderr(stderr);
    Ok(command)
}

fn could_not_start(argv: &[String], error: &io::Error) -> String {
    format!("could not start {}: {error}", argv.first().map_or("nothing", String::as_str))
}

/// Empties a non-blocking pipe, a bounded number of times: a flood must not keep the caller from its other duties.
fn discard(fd: &OwnedFd) {
    let mut chunk = [0; 65536];
    for _ in 0..16 {
        if !matches!(rustix::io::read(fd, &mut chunk), Ok(1..)) {
            return;
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec::try_from(duration).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 })
}

fn name(text: &str) -> std::ffi::CString {
    std::ffi::CString::new(text).unwrap_or_default()
}
