//! What differs between operating systems about processes: who descends from whom, how one ended, what it waits for.
//!
//! Apart, so that the supervisor and the daemon's side of it read the same everywhere, and so that the few unsafe calls
//! have one home. A system without an implementation answers "unsupported" before anything is started.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub use linux::*;
#[cfg(not(target_os = "linux"))]
pub use other::*;

use std::collections::{HashMap, HashSet};

use rustix::process::Signal;

/// Opens a program's input for it: a FIFO whose writers are gone already must not block.
///
/// # Errors
/// What the system says.
pub fn open_stdin(path: &std::path::Path) -> std::io::Result<std::os::fd::OwnedFd> {
    let stdin = rustix::fs::open(
        path,
        rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    )?;
    rustix::fs::fcntl_setfl(&stdin, rustix::fs::OFlags::empty())?;
    Ok(stdin)
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// One process as the system showed it. Its identity is `(pid, start)`: a pid alone may by now belong to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: u32,
    /// When it started, in the system's own ticks.
    pub start: u64,
    pub parent: u32,
    pub group: u32,
    pub session: u32,
    pub state: char,
}

impl Process {
    /// It has ended and only waits to be reaped.
    #[must_use]
    pub const fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// Every process at one moment.
#[derive(Debug, Clone)]
pub struct Table(HashMap<u32, Process>);

impl Table {
    #[must_use]
    pub fn read() -> Self {
        Self(processes().into_iter().map(|process| (process.pid, process)).collect())
    }

    #[must_use]
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.0.get(&pid)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Process> {
        self.0.values()
    }

    /// What descends from `pid`, without `pid` itself and without the dead.
    #[must_use]
    pub fn below(&self, pid: u32) -> Vec<Process> {
        let mut children: HashMap<u32, Vec<&Process>> = HashMap::new();
        for process in self.0.values() {
            children.entry(process.parent).or_default().push(process);
        }
        let mut found = Vec::new();
        let mut seen = HashSet::from([pid]);
        let mut next = vec![pid];
        while let Some(parent) = next.pop() {
            for child in children.get(&parent).into_iter().flatten() {
                if seen.insert(child.pid) {
                    next.push(child.pid);
                    found.push(**child);
                }
            }
        }
        found.retain(|process| !process.is_dead());
        found
    }

    /// `pid`'s parent, its parent, and so on to the top.
    #[must_use]
    pub fn above(&self, pid: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut current = pid;
        while let Some(process) = self.0.get(&current) {
            if process.parent == 0 || found.contains(&process.parent) {
                break;
            }
            found.push(process.parent);
            current = process.parent;
        }
        found
    }
}

/// A process, its parent, that one's parent and so on, as they are now.
#[must_use]
pub fn lineage(pid: u32) -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut next = pid;
    // A table that changes while it is read could lead round in a circle.
    while next > 0 && found.len() < 100 && !found.iter().any(|known| known.pid == next) {
        let Some(process) = process(next) else { break };
        next = process.parent;
        found.push(process);
    }
    found
}

/// The living descendants of `pid`.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    Table::read().below(pid).into_iter().map(|process| process.pid).collect()
}

/// How many times a growing family is frozen before it is killed as far as it is known.
const FREEZES: usize = 20;

/// Kills everything `list` shows. It is frozen first, until `list` shows nothing new: a family that forks faster than it
/// is killed would otherwise refill the places it loses.
pub fn kill_all(list: impl Fn() -> Vec<Process>) {
    let mut frozen: HashMap<(u32, u64), Process> = HashMap::new();
    for _ in 0..FREEZES {
        let new: Vec<_> =
            list().into_iter().filter(|process| !frozen.contains_key(&(process.pid, process.start))).collect();
        if new.is_empty() {
            break;
        }
        for process in new {
            send(&process, Signal::STOP);
            frozen.insert((process.pid, process.start), process);
        }
    }
    for process in frozen.values() {
        send(process, Signal::KILL);
    }
}
