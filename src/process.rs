//! The daemon's side of supervision: start a session's adapter under a supervisor, speak to it, end the whole tree.
//!
//! Apart from `supervise.rs`, which is the other process. Whatever happens to that one, what it owned is ended here: the
//! daemon is a subreaper too, so that orphans of a lost supervisor fall to it, and a sweep at its start ends what an
//! earlier daemon left behind.

use std::collections::{BTreeSet, VecDeque};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, WaitOptions};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use crate::Failure;
use crate::platform::{self, Process, Table};
use crate::supervise::{self, Launch, Order, Report};

/// The variable that marks whatever a session starts: `<runtime dir>:<session>:<daemon's pid>:<daemon's start time>`.
pub const MARK: &str = "BUGEYE_SUPERVISED";

/// How long a supervisor may take to start an adapter or a further child.
const STARTING: Duration = Duration::from_secs(10);
/// What a supervisor may take on top of the grace it was given.
const ANSWERING: Duration = Duration::from_secs(1);
/// How long leftovers are pursued.
const PURSUIT: Duration = Duration::from_secs(2);

/// What to start for one session, and around what.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The product's own executable, which is the supervisor too.
    pub exe: PathBuf,
    /// The daemon's runtime directory; part of the mark.
    pub runtime: PathBuf,
    pub session: String,
    pub argv: Vec<String>,
    /// The adapter's whole environment; the mark is added to it.
    pub env: Vec<(String, String)>,
    pub cwd: PathBuf,
    pub umask: Option<u32>,
    /// Created with mode 0700 if it is missing; the FIFOs `stdin`, `stdout`, `stderr` are made in it.
    pub stdio_dir: PathBuf,
    pub fifos: bool,
    /// The debuggee's input; there is no FIFO for it then.
    pub stdin_file: Option<PathBuf>,
    /// The debuggee is somebody else's process, which must survive the session.
    pub attached: bool,
    /// The adapter itself outlives the daemon and the session, as long as what it started: it lets go by itself.
    pub stays: bool,
}

/// The session's pipes as the daemon holds them.
#[derive(Debug)]
pub struct Streams {
    pub adapter_in: Sender,
    pub adapter_out: Receiver,
    pub adapter_err: Receiver,
    /// The debuggee's FIFOs. They are open for both directions, so they neither end nor break while the debuggee has
    /// not opened them yet or has closed them.
    pub stdin: Option<Sender>,
    pub stdout: Option<Receiver>,
    pub stderr: Option<Receiver>,
}

/// A session's supervisor and all that is below it. Dropping it has the same effect as the daemon's death: what was
/// launched is killed, what was attached to is detached from.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Process,
    /// Tells the supervisor's end before its task has noticed.
    watched: Option<platform::Watched>,
    adapter: u32,
    mark: String,
    asks: mpsc::UnboundedSender<Ask>,
    state: watch::Receiver<State>,
}

#[derive(Debug)]
struct Ask {
    order: Order,
    /// Who waits for the pid of a spawned child.
    answer: Option<oneshot::Sender<Result<u32, Failure>>>,
}

#[derive(Debug, Clone, Default)]
struct State {
    /// How the adapter ended; the inner `None` when nobody saw it.
    adapter: Option<Option<String>>,
    let_go: bool,
    /// The supervisor and all it owned.
    gone: bool,
}

impl Supervised {
    /// Starts a supervisor and, below it, the adapter.
    pub async fn spawn(plan: &Plan) -> Result<(Self, Streams), Failure> {
        platform::supported()?;
        let mark = mark(&plan.runtime, &plan.session)?;
        make_stdio(plan).map_err(|error| Failure::io(format!("prepare {}", plan.stdio_dir.display()), &error))?;
        let launch = Launch {
            argv: plan.argv.clone(),
            env: marked(plan.env.clone(), &mark),
            cwd: plan.cwd.clone(),
            umask: plan.umask,
            stdio_dir: plan.stdio_dir.clone(),
            attached: plan.attached,
            stays: plan.stays,
            fifos: plan.fifos,
            stdin_file: plan.stdin_file.clone(),
        };
        let failed = |error: io::Error| Failure::io("start the supervisor", &error);
        let (mut child, known, control, streams) = start(plan, &mark).map_err(failed)?;
        let (reader, mut writer) = control.into_split();
        let mut reader = BufReader::new(reader).lines();
        write(&mut writer, &launch).await.map_err(failed)?;
        let answer = timeout(STARTING, reader.next_line()).await;
        let report = match answer {
            Ok(Ok(Some(line))) => serde_json::from_str(&line).ok(),
            _ => None,
        };
        let supervisor = child.id().and_then(platform::process);
        let (Some(Report::Started { pid: adapter }), Some(supervisor)) = (&report, supervisor) else {
            drop(writer);
            if timeout(ANSWERING, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
            return Err(match report {
                Some(Report::Failed { message }) => Failure::refused(message),
                _ => Failure::lost("the supervisor did not start the adapter."),
            });
        };
        let adapter = *adapter;
        let (asks, orders) = mpsc::unbounded_channel();
        let (publish, state) = watch::channel(State::default());
        let keeper = Keeper {
            child,
            _known: known,
            supervisor,
            mark: mark.clone(),
            stdio_dir: plan.stdio_dir.clone(),
            state: publish,
            waiting: VecDeque::new(),
            let_go: false,
        };
        tokio::spawn(keeper.run(reader, writer, orders));
        let watched = platform::watch(supervisor.pid);
        Ok((Self { supervisor, watched, adapter, mark, asks, state }, streams))
    }

    /// Starts one more child with the debuggee's streams: the adapter's `runInTerminal`. `env` is its whole environment.
    pub async fn spawn_child(
        &self,
        argv: Vec<String>,
        env: Vec<(String, String)>,
        cwd: PathBuf,
    ) -> Result<u32, Failure> {
        let (answer, answered) = oneshot::channel();
        let order = Order::Spawn { argv, env: marked(env, &self.mark), cwd };
        let lost = || Failure::lost("the supervisor of this session is gone.");
        self.asks.send(Ask { order, answer: Some(answer) }).map_err(|_| lost())?;
        match timeout(STARTING, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(lost()),
            Err(_) => Err(Failure::timed_out("the supervisor did not start the program in time.")),
        }
    }

    /// The debuggee's input is over, once the caller has dropped [`Streams::stdin`] too.
    pub fn close_stdin(&self) {
        self.order(Order::CloseStdin {});
    }

    /// Ends everything below the supervisor and the supervisor itself; by force after `grace`. When it returns nothing
    /// is left. A session that was let go has nothing to end.
    pub async fn end(&self, grace: Duration) {
        self.order(Order::End { grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX) });
        let mut state = self.state.clone();
        let over = |state: &State| state.gone || state.let_go;
        if timeout(grace + ANSWERING, state.wait_for(over)).await.is_ok() {
            return;
        }
        let supervisor = self.supervisor;
        let mut pause = Duration::from_millis(1);
        let give_up = Instant::now() + PURSUIT;
        while Instant::now() < give_up {
            platform::kill_all(|| {
                let table = Table::read();
                let itself = table.get(supervisor.pid).filter(|found| found.start == supervisor.start);
                itself.map_or_else(Vec::new, |itself| {
                    let mut all = table.below(itself.pid);
                    all.push(*itself);
                    all
                })
            });
            if timeout(pause, state.wait_for(over)).await.is_ok() {
                return;
            }
            pause = (pause * 2).min(Duration::from_millis(100));
        }
    }

    /// Spares the debuggee `pid` and what it started, and ends the adapter: the program goes on without a debugger, even
    /// beyond the daemon's end.
    pub async fn let_go(&self, pid: u32) {
        self.order(Order::LetGo { pid });
        let _ = timeout(PURSUIT, self.state.clone().wait_for(|state| state.gone || state.let_go)).await;
    }

    /// Waits until the adapter has ended: `exit code 1`, `killed by SIGKILL`. `None` when the supervisor was lost before
    /// it could tell; what it owned has been ended then.
    pub async fn adapter_exit(&self) -> Option<String> {
        let mut state = self.state.clone();
        let state = state.wait_for(|state| state.adapter.is_some()).await.ok()?;
        state.adapter.clone().flatten()
    }

    /// The supervisor has ended: what it owned still answers, and is about to be ended.
    #[must_use]
    pub fn has_died(&self) -> bool {
        self.watched.as_ref().is_some_and(platform::Watched::has_ended)
    }

    /// The supervisor's pid.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.supervisor.pid
    }

    /// The adapter's pid.
    #[must_use]
    pub fn adapter_pid(&self) -> u32 {
        self.adapter
    }

    /// A supervisor that is gone needs no orders, so a closed channel is no failure.
    fn order(&self, order: Order) {
        let _ = self.asks.send(Ask { order, answer: None });
    }
}

/// The task that owns one supervisor. It blocks on the control socket, on orders and on the supervisor's end, and ends
/// with the latter.
struct Keeper {
    child: Child,
    _known: Known,
    supervisor: Process,
    mark: String,
    stdio_dir: PathBuf,
    state: watch::Sender<State>,
    waiting: VecDeque<oneshot::Sender<Result<u32, Failure>>>,
    let_go: bool,
}

impl Keeper {
    async fn run(
        mut self,
        mut reader: Lines<BufReader<OwnedReadHalf>>,
        writer: OwnedWriteHalf,
        mut orders: mpsc::UnboundedReceiver<Ask>,
    ) {
        let mut writer = Some(writer);
        let mut listening = true;
        loop {
            tokio::select! {
                line = reader.next_line(), if listening => match line {
                    Ok(Some(line)) => self.hear(&line),
                    _ => listening = false,
                },
                ask = orders.recv(), if writer.is_some() => match ask {
                    Some(Ask { order, answer }) => {
                        self.let_go |= matches!(order, Order::LetGo { .. });
                        self.waiting.extend(answer);
                        if let Some(writer) = &mut writer {
                            // A supervisor that is gone is noticed below.
                            let _ = write(writer, &order).await;
                        }
                    }
                    // Nobody holds the session any longer: the closed socket tells the supervisor.
                    None => writer = None,
                },
                _ = self.child.wait() => break,
            }
        }
        while let Ok(Some(line)) = reader.next_line().await {
            self.hear(&line);
        }
        if !self.let_go {
            end_orphans(&self.mark, self.supervisor.pid).await;
        }
        tidy(&self.stdio_dir);
        self.waiting.clear();
        self.state.send_modify(|state| {
            state.adapter.get_or_insert(None);
            state.gone = true;
        });
    }

    fn hear(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(Report::Spawned { pid }) => self.answer(Ok(pid)),
            Ok(Report::Failed { message }) => self.answer(Err(Failure::refused(message))),
            Ok(Report::AdapterExited { code, signal }) => {
                let text = match (code, signal) {
                    (Some(code), _) => format!("exit code {code}"),
                    (None, Some(signal)) => format!("killed by {signal}"),
                    (None, None) => "ended".to_owned(),
                };
                self.state.send_modify(|state| state.adapter = Some(Some(text)));
            }
            Ok(Report::LetGo {}) => self.state.send_modify(|state| state.let_go = true),
            Ok(Report::Started { .. } | Report::Ended {}) | Err(_) => {}
        }
    }

    fn answer(&mut self, result: Result<u32, Failure>) {
        if let Some(waiting) = self.waiting.pop_front() {
            let _ = waiting.send(result);
        }
    }
}

/// Called once by the daemon: orphans of a lost supervisor fall to it.
pub fn become_subreaper() {
    // Where it fails, a lost supervisor's orphans are still found by their mark.
    let _ = platform::become_subreaper();
}

/// Removes the folders of translators that were killed before they could do it.
fn tidy(stdio_dir: &Path) {
    for entry in std::fs::read_dir(stdio_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix("engine-")?.parse().ok());
        if pid.is_some_and(|pid| platform::process(pid).is_none_or(|process| process.is_dead())) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Ends what daemons that are gone left behind in this runtime directory. Blocks for at most two seconds; for the
/// daemon's start, before it serves anyone.
pub fn sweep(runtime: &Path) {
    let sessions = std::fs::read_dir(runtime.join("sessions")).into_iter().flatten().flatten();
    sessions.for_each(|session| tidy(&session.path()));
    let give_up = Instant::now() + PURSUIT;
    while Instant::now() < give_up {
        if left_over(runtime).is_empty() {
            return;
        }
        platform::kill_all(|| left_over(runtime));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Processes with a dead daemon's mark, and what descends from them. What is below a supervisor is that one's business:
/// it is about to end it, or it was told to let it go.
fn left_over(runtime: &Path) -> Vec<Process> {
    let table = Table::read();
    let mut found: Vec<Process> = Vec::new();
    for process in table.iter().filter(|process| !process.is_dead()) {
        let stale = platform::variable(process.pid, MARK).is_some_and(|mark| is_stale(&mark, runtime));
        let guarded = || std::iter::once(process.pid).chain(table.above(process.pid)).any(|pid| guards(&table, pid));
        if stale && !guarded() {
            found.push(*process);
            found.extend(table.below(process.pid));
        }
    }
    // A daemon that was started from within an old session has inherited its mark.
    let me = std::process::id();
    let line = table.above(me);
    found.retain(|process| process.pid != me && !line.contains(&process.pid));
    found
}

fn guards(table: &Table, pid: u32) -> bool {
    match platform::name(pid).as_deref() {
        Some(supervise::NAME_LET_GO) => true,
        // One that is stopped will never do its work.
        Some(supervise::NAME) => table.get(pid).is_some_and(|process| !matches!(process.state, 'T' | 't')),
        _ => false,
    }
}

fn is_stale(mark: &str, runtime: &Path) -> bool {
    let mut parts = mark.rsplitn(4, ':');
    let (Some(start), Some(pid), Some(_), Some(directory)) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    let (Ok(start), Ok(pid)) = (start.parse::<u64>(), pid.parse::<u32>()) else { return false };
    let lives = platform::process(pid).is_some_and(|daemon| daemon.start == start && !daemon.is_dead());
    Path::new(directory) == runtime && !lives
}

fn mark(runtime: &Path, session: &str) -> Result<String, Failure> {
    let pid = std::process::id();
    let start =
        platform::start_time(pid).ok_or_else(|| Failure::internal("the daemon's start time is not to be had."))?;
    Ok(format!("{}:{session}:{pid}:{start}", runtime.display()))
}

fn marked(mut env: Vec<(String, String)>, mark: &str) -> Vec<(String, String)> {
    env.retain(|(name, _)| name != MARK);
    env.push((MARK.to_owned(), mark.to_owned()));
    env
}

/// The environment of a build, with a mark: one that a lost daemon leaves is ended by the next.
pub fn marked_build(runtime: &Path, env: Vec<(String, String)>) -> Result<Vec<(String, String)>, Failure> {
    Ok(marked(env, &mark(runtime, "build")?))
}

/// Supervisors that somebody here waits for: neither orphans nor to be reaped by anyone else.
static SUPERVISORS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Registered for as long as this lives.
#[derive(Debug)]
struct Known(u32);

impl Drop for Known {
    fn drop(&mut self) {
        supervisors().remove(&self.0);
    }
}

fn supervisors() -> MutexGuard<'static, BTreeSet<u32>> {
    SUPERVISORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a lost supervisor left, the living and the fallen: processes with its session's mark, those of its login session,
/// and children that fell to this process with another session than its own and without any mark. A child the daemon
/// started itself has the daemon's session, and a program that was let go has a mark of its own.
fn orphans(mark: &str, supervisor: u32) -> (Vec<Process>, Vec<u32>) {
    let table = Table::read();
    let known = supervisors();
    let me = std::process::id();
    let session = table.get(me).map(|process| process.session);
    let mut living = Vec::new();
    let mut fallen = Vec::new();
    for process in table.iter().filter(|process| process.pid != me && !known.contains(&process.pid)) {
        let adopted = process.parent == me && Some(process.session) != session;
        if process.is_dead() {
            fallen.extend(adopted.then_some(process.pid));
            continue;
        }
        let ours = match platform::variable(process.pid, MARK) {
            Some(found) => found == mark,
            None => adopted,
        };
        if ours || process.session == supervisor {
            living.push(*process);
            living.extend(table.below(process.pid));
        }
    }
    (living, fallen)
}

async fn end_orphans(mark: &str, supervisor: u32) {
    let give_up = Instant::now() + PURSUIT;
    let mut pause = Duration::from_millis(1);
    while Instant::now() < give_up {
        let (living, fallen) = orphans(mark, supervisor);
        if living.is_empty() && fallen.is_empty() {
            return;
        }
        platform::kill_all(|| orphans(mark, supervisor).0);
        // One by one: a wait for any child would take the status of children that others wait for.
        for pid in fallen.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

fn make_stdio(plan: &Plan) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(&plan.stdio_dir)?;
    if plan.fifos {
        for name in ["stdin", "stdout", "stderr"] {
            if name != "stdin" || plan.stdin_file.is_none() {
                platform::make_fifo(&plan.stdio_dir.join(name))?;
            }
        }
    }
    Ok(())
}

/// Starts the supervisor process and gives it its descriptors.
///
/// The control socket is its standard input, the rest travels through that socket. All of them stay close-on-exec here
/// at all times, so a child that is started elsewhere at the same moment can't inherit one: no lock, no unsafe code.
fn start(plan: &Plan, mark: &str) -> io::Result<(Child, Known, UnixStream, Streams)> {
    let (stdin, adapter_in) = io::pipe()?;
    let (adapter_out, stdout) = io::pipe()?;
    let (adapter_err, stderr) = io::pipe()?;
    let (ours, theirs) = StdUnixStream::pair()?;
    let mut known = supervisors();
    let child = Command::new(&plan.exe)
        .arg("supervise")
        .env_clear()
        .env(MARK, mark)
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    known.extend(child.id());
    drop(known);
    let known = Known(child.id().unwrap_or_default());
    platform::send_fds(
        &ours,
        &[stdin.as_fd(), stdout.as_fd(), stderr.as_fd(), adapter_in.as_fd(), adapter_out.as_fd(), adapter_err.as_fd()],
    )?;
    ours.set_nonblocking(true)?;
    let fifo = |name: &str| {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        rustix::fs::open(plan.stdio_dir.join(name), flags, Mode::empty()).map_err(io::Error::from)
    };
    let input = plan.fifos && plan.stdin_file.is_none();
    let streams = Streams {
        adapter_in: Sender::from_owned_fd(adapter_in.into())?,
        adapter_out: Receiver::from_owned_fd(adapter_out.into())?,
        adapter_err: Receiver::from_owned_fd(adapter_err.into())?,
        stdin: input.then(|| Sender::from_owned_fd(fifo("stdin")?)).transpose()?,
        stdout: plan.fifos.then(|| Receiver::from_owned_fd(fifo("stdout")?)).transpose()?,
        stderr: plan.fifos.then(|| Receiver::from_owned_fd(fifo("stderr")?)).transpose()?,
    };
    Ok((child, known, UnixStream::from_std(ours)?, streams))
}

async fn write(writer: &mut OwnedWriteHalf, message: &impl serde::Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    writer.write_all(&line).await
}
