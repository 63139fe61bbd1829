//! `--terminal`: this terminal is lent to an agent for its run, and taken back as it was.
//!
//! The agent is started by the daemon and so is no job of this terminal's shell: what the terminal says to jobs is said to this
//! process, which stays in the foreground, and is passed on.

use std::io::{self, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use rustix::termios::{OptionalActions, Termios};
use serde_json::Value as Json;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::platform::{self, Process};
use crate::wire::Answer;

/// How often it is looked whether the agent has suspended itself, or has ended.
const LOOK: Duration = Duration::from_millis(100);

/// Modes that a screen is left in by what was killed: another page, no cursor, marked pastes, reports of mouse, focus and keys.
const PLAIN: &str =
    "\x1b[?1049l\x1b[?25h\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[<u\x1b[0m\r\n";

/// This process's terminal, on loan.
pub struct Lent {
    device: String,
    modes: Termios,
    agent: Arc<Mutex<Option<Process>>>,
}

impl Lent {
    pub fn new() -> Result<Self, Failure> {
        let none = |_| {
            Failure::usage("--terminal lends the agent your terminal, and standard input is none")
                .hint("without a terminal, give the agent its prompt by its own flag: bugeye run --agent -- claude -p 'fix the test'")
        };
        if rustix::termios::tcgetpgrp(io::stdin()).is_ok_and(|group| group != rustix::process::getpgrp()) {
            return Err(
                Failure::usage("a command in the background has no terminal to lend").hint("start it without `&`")
            );
        }
        let modes = rustix::termios::tcgetattr(io::stdin()).map_err(none)?;
        let device = rustix::termios::ttyname(io::stdin(), Vec::new()).map_err(none)?;
        let device = device.into_string().map_err(|_| Failure::usage("the name of this terminal can't be read"))?;
        let _ = writeln!(
            io::stderr(),
            "this terminal is the agent's until it ends; debug it from another one: bugeye follow"
        );
        Ok(Self { device, modes, agent: Arc::default() })
    }

    pub fn device(&self) -> &str {
        &self.device
    }

    /// The agent has begun.
    pub fn take(&self, pid: &Json) {
        let pid = pid.as_u64().and_then(|pid| u32::try_from(pid).ok());
        *lock(&self.agent) = pid.and_then(platform::process);
    }

    pub fn is_taken(&self) -> bool {
        lock(&self.agent).is_some()
    }

    /// Passes on what the terminal says, from a thread of its own; an interrupt before the agent has begun is `cancel`.
    pub fn pass_on(&self, cancel: impl Fn() + Send + 'static) {
        let agent = self.agent.clone();
        std::thread::spawn(move || {
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            let _ = runtime.block_on(passed_on(&agent, &cancel));
        });
    }

    /// Waits for the agent's end, which may come after its session's, and makes the terminal what it was.
    pub fn take_back(self, answer: &Result<Answer, Failure>) {
        while now(&self.agent).is_some() {
            std::thread::sleep(LOOK);
        }
        let _ = rustix::termios::tcsetattr(io::stdin(), OptionalActions::Drain, &self.modes);
        if self.is_taken() {
            let result = answer.as_ref().ok().and_then(|answer| answer.result.as_ref());
            let ending = result.and_then(|result| result.get("ending"));
            // One that has ended by itself has tidied up.
            let killed = ending.is_some_and(|ending| ending == "stopped" || ending.get("signalled").is_some());
            let _ = write!(io::stderr(), "{}\r\x1b[J", if killed { PLAIN } else { "" });
        }
    }
}

fn lock(agent: &Mutex<Option<Process>>) -> std::sync::MutexGuard<'_, Option<Process>> {
    agent.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The agent as it is now, if it still is.
fn now(agent: &Mutex<Option<Process>>) -> Option<Process> {
    let known = (*lock(agent))?;
    platform::process(known.pid).filter(|now| now.start == known.start && now.state != 'Z')
}

async fn passed_on(agent: &Mutex<Option<Process>>, cancel: &dyn Fn()) -> io::Result<()> {
    let (mut resized, mut interrupted) = (signal(SignalKind::window_change())?, signal(SignalKind::interrupt())?);
    let (mut quit, mut ended) = (signal(SignalKind::quit())?, signal(SignalKind::terminate())?);
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut suspended = signal(SignalKind::from_raw(Signal::TSTP.as_raw()))?;
    let send = |signal| match now(agent).and_then(|agent| Pid::from_raw(i32::try_from(agent.pid).ok()?)) {
        Some(group) => drop(rustix::process::kill_process_group(group, signal)),
        None if signal != Signal::WINCH && lock(agent).is_none() => cancel(),
        None => {}
    };
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = resized.recv() => send(Signal::WINCH),
            _ = interrupted.recv() => send(Signal::INT),
            _ = quit.recv() => send(Signal::QUIT),
            _ = ended.recv() => send(Signal::TERM),
            _ = suspended.recv() => send(Signal::TSTP),
            _ = hung_up.recv() => {
                send(Signal::HUP);
                std::process::exit(129);
            }
            _ = look.tick() => {
                if now(agent).is_some_and(|agent| agent.state == 'T') {
                    // The shell takes over here, until it brings this process back to the foreground.
                    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
                    // It need not reach this thread first.
                    std::thread::sleep(LOOK);
                    send(Signal::CONT);
                    send(Signal::WINCH);
                }
            }
        }
    }
}
