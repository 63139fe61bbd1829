//! The process that stays: it keeps debug sessions alive between commands.
//!
//! `bugeye daemon run` ends up in [`main`]. Whether a daemon lives is decided by a lock, never by a process number in a
//! file; the socket only exists below that lock. One thread runs everything: the accept loop here, one task per
//! connection ([`connection`]), one per session that reads commands from a file ([`inbox`]), and the tasks that sessions own. The accept loop blocks on nothing but its own
//! `select!`; it ends on SIGTERM, on `shutdown`, or when there has been nothing to do for long enough, and it ends every
//! other task by ending the runtime.

mod claim;
mod connection;
mod inbox;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::commands::{self, Entry};
use crate::config::Config;
use crate::failure::Failure;
use crate::hub::Hub;
use crate::log;
use crate::paths::Paths;
use claim::{Claim, Socket};

/// The longest the daemon waits for its sessions to end. Each is bound to end within five seconds.
const END_LIMIT: Duration = Duration::from_secs(6);
/// The longest it then waits for the last answers to be written.
const FAREWELL: Duration = Duration::from_millis(500);

/// What every connection shares.
#[derive(Debug)]
struct Server {
    hub: Arc<Hub>,
    find: fn(&str) -> Option<&'static Entry>,
    connections: AtomicUsize,
    requests: AtomicUsize,
    endings: mpsc::Sender<Ending>,
}

/// Somebody asked the daemon to end.
#[derive(Debug)]
struct Ending {
    /// Told how many sessions were ended, once they are.
    ended: oneshot::Sender<usize>,
    /// Resolves when the one who asked has been answered.
    answered: oneshot::Receiver<()>,
}

/// Counts for as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs the daemon until it has a reason to end; answers the exit code.
#[must_use]
pub fn main() -> u8 {
    match run() {
        Ok(()) => 0,
        Err(failure) => {
            let advice: String = failure.hints.iter().map(|hint| format!("; {hint}")).collect();
            log::warn(format!("not started: {failure}{advice}"));
            if is_watched() {
                eprintln!("bugeye daemon: {failure}{advice}");
            }
            failure.kind.exit_code()
        }
    }
}

fn run() -> Result<(), Failure> {
    let paths = Paths::locate()?;
    detach();
    paths.prepare()?;
    paths.prepare_state()?;
    log::open(&paths.log());
    log_panics();
    let config = Config::load(&paths)?;
    config.register_adapters();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start the daemon's runtime", &error))?;
    let outcome = runtime.block_on(stay(paths, config));
    runtime.shutdown_timeout(Duration::from_millis(200));
    outcome
}

/// Leaves the caller's terminal, directory and file mask behind.
fn detach() {
    // Refused to the leader of a process group, which is what a daemon run by hand in a terminal is: it may stay there.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

fn log_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        log::warn(format!("panic: {panic}"));
        if is_watched() {
            print(panic);
        }
    }));
}

/// Whether somebody would see what is written to standard error and not to the log. A client that starts a daemon
/// points the one at the other.
fn is_watched() -> bool {
    !log::is_open() || std::io::stderr().is_terminal()
}

/// What must be in place before the first client can connect.
fn prepare(paths: &Paths) {
    // What an earlier daemon's clients left for programs that are gone.
    let _ = std::fs::remove_dir_all(paths.spool());
    crate::process::become_subreaper();
    crate::process::sweep(&paths.runtime);
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

async fn stay(paths: Paths, config: Config) -> Result<(), Failure> {
    // Before the claim: from then on another process may ask, by SIGHUP, for a look at the socket.
    let mut signals = Signals::new().map_err(|error| Failure::io("listen for signals", &error))?;
    let Claim::Ours(_lock) = claim::claim(&paths)? else {
        return Ok(());
    };
    prepare(&paths);
    let Some(mut socket) = Socket::bind(&paths.socket())? else {
        return Ok(());
    };
    log::info(format!("started: version {}, pid {}", env!("CARGO_PKG_VERSION"), std::process::id()));
    let (endings, mut asked) = mpsc::channel(1);
    let server = Arc::new(Server {
        hub: Hub::new(paths, config),
        find: commands::find,
        connections: AtomicUsize::new(0),
        requests: AtomicUsize::new(0),
        endings,
    });
    tokio::spawn(Arc::clone(&server.hub).look_after_records());
    tokio::spawn(inbox::serve_all(Arc::clone(&server)));
    let ending = accept(&server, &mut socket, &mut signals, &mut asked).await;
    // The socket goes first: whoever comes now starts a successor, which waits for the lock.
    drop(socket);
    end(&server, ending).await;
    log::info("ended");
    Ok(())
}

/// Takes connections until there is a reason to end; answers who asked for it.
async fn accept(
    server: &Arc<Server>,
    socket: &mut Socket,
    signals: &mut Signals,
    asked: &mut mpsc::Receiver<Ending>,
) -> Option<Ending> {
    let mut busy_at = Instant::now();
    loop {
        let idle_limit = server.hub.config.idle_timeout();
        let tick = idle_limit
            .unwrap_or(Duration::from_secs(30))
            .div_f64(4.0)
            .clamp(Duration::from_millis(10), Duration::from_secs(30));
        tokio::select! {
            accepted = socket.listener.accept() => match accepted {
                Ok((stream, _)) => {
                    busy_at = Instant::now();
                    tokio::spawn(connection::serve(Arc::clone(server), stream));
                }
                Err(error) => {
                    // Out of descriptors, most likely: those in use come back when connections end.
                    log::warn(format!("accept: {error}"));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            ending = asked.recv() => {
                log::info("asked to end");
                return ending;
            }
            _ = signals.terminate.recv() => {
                log::info("ended by SIGTERM");
                return None;
            }
            _ = signals.interrupt.recv() => {
                log::info("ended by SIGINT");
                return None;
            }
            _ = signals.hangup.recv() => match socket.repair() {
                Ok(true) => log::warn("the socket was gone; it is back"),
                Ok(false) => {}
                Err(failure) => log::warn(format!("the socket is gone: {failure}")),
            },
            () = tokio::time::sleep(tick) => {
                let busy = server.connections.load(Ordering::Relaxed) > 0 || server.hub.live_sessions() > 0;
                if busy {
                    busy_at = Instant::now();
                } else if idle_limit.is_some_and(|limit| busy_at.elapsed() >= limit) {
                    log::info("nothing to do for long enough");
                    return None;
                }
            }
        }
    }
}

/// Ends the sessions, lets the commands that waited for them answer, and answers the one who asked.
async fn end(server: &Server, ending: Option<Ending>) {
    let sessions = server.hub.live_sessions();
    if tokio::time::timeout(END_LIMIT, server.hub.end_all()).await.is_err() {
        log::warn("some sessions did not end in time");
    }
    let mut expected = 0;
    let mut answered = None;
    if let Some(ending) = ending {
        expected = 1;
        let _ = ending.ended.send(sessions);
        answered = Some(ending.answered);
    }
    let farewell = async {
        if let Some(answered) = answered {
            let _ = answered.await;
            expected = 0;
        }
        while server.requests.load(Ordering::Relaxed) > expected {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
    if tokio::time::timeout(FAREWELL, server.hub.flush()).await.is_err() {
        log::warn("not everything was recorded in time");
    }
}
