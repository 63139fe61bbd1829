//! What a disk may take its time for: syncing records, and writing the list of them.
//!
//! A thread of its own, so that whoever waits for an event to be written never waits for the disk. It blocks on its
//! condition and on the disk, and ends with the recorder.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::list::{self, Entry};
use crate::log;

/// The longest that something written is not on the disk.
const SYNCING: Duration = Duration::from_millis(200);
/// How often the list is written for what changes all the time.
const LISTING: Duration = Duration::from_secs(1);

/// The way to that thread.
#[derive(Debug, Clone)]
pub struct Keeper(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: PathBuf,
    work: Mutex<Work>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    /// Files to sync: of each record its events, after the blobs that they refer to.
    dirty: HashMap<u64, (Vec<File>, Arc<File>)>,
    sync_at: Option<Instant>,
    /// Sessions that this daemon has.
    entries: HashMap<String, Entry>,
    list_at: Option<Instant>,
    ended: bool,
}

impl Keeper {
    /// Starts the thread, for the records below `state`.
    pub fn start(state: PathBuf) -> std::io::Result<Self> {
        let keeper = Self(Arc::new(Shared { state, work: Mutex::default(), news: Condvar::new() }));
        let own = keeper.clone();
        std::thread::Builder::new().name("keeper".into()).spawn(move || own.run())?;
        Ok(keeper)
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.0.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was written to a record; `now` when it must not be lost even if the power goes.
    pub fn written(&self, key: u64, events: &Arc<File>, blobs: Vec<File>, now: bool) {
        let mut work = self.work();
        work.dirty.entry(key).or_insert_with(|| (Vec::new(), Arc::clone(events))).0.extend(blobs);
        let wakes = now || work.sync_at.is_none();
        let at = Instant::now() + if now { Duration::ZERO } else { SYNCING };
        work.sync_at = Some(work.sync_at.map_or(at, |known| known.min(at)));
        drop(work);
        if wakes {
            self.0.news.notify_one();
        }
    }

    /// What is known of a session has changed.
    pub fn list(&self, entry: &Entry, now: bool) {
        let mut work = self.work();
        work.entries.insert(entry.id.clone(), entry.clone());
        Self::list_soon(&mut work, now);
        drop(work);
        self.0.news.notify_one();
    }

    /// A session is no longer this daemon's: from now on its folder is asked.
    pub fn forget(&self, id: &str) {
        let mut work = self.work();
        work.entries.remove(id);
        Self::list_soon(&mut work, false);
        drop(work);
        self.0.news.notify_one();
    }

    /// The folders have changed.
    pub fn list_again(&self) {
        Self::list_soon(&mut self.work(), true);
        self.0.news.notify_one();
    }

    /// What is known of the sessions that this daemon has.
    #[must_use]
    pub fn entries(&self) -> HashMap<String, Entry> {
        self.work().entries.clone()
    }

    /// Everything is handed over: the thread does what is left and ends.
    pub fn end(&self) {
        self.work().ended = true;
        self.0.news.notify_one();
    }

    fn list_soon(work: &mut Work, now: bool) {
        let at = Instant::now() + if now { Duration::ZERO } else { LISTING };
        work.list_at = Some(work.list_at.map_or(at, |known| known.min(at)));
    }

    fn run(&self) {
        let mut complained = false;
        loop {
            let (files, entries) = {
                let mut work = self.work();
                loop {
                    let now = Instant::now();
                    let due = |at: Option<Instant>, ended: bool| at.is_some_and(|at| ended || at <= now);
                    if due(work.sync_at, work.ended) || due(work.list_at, work.ended) {
                        break;
                    }
                    if work.ended {
                        return;
                    }
                    let next = [work.sync_at, work.list_at].into_iter().flatten().min();
                    let limit = next.map_or(Duration::from_secs(3600), |at| at.saturating_duration_since(now));
                    work = self.0.news.wait_timeout(work, limit).map_or_else(|all| all.into_inner().0, |all| all.0);
                }
                let (now, ended) = (Instant::now(), work.ended);
                let due = |at: Option<Instant>| at.is_some_and(|at| ended || at <= now);
                let files = if due(work.sync_at) {
                    work.sync_at = None;
                    std::mem::take(&mut work.dirty)
                } else {
                    HashMap::new()
                };
                let entries = if due(work.list_at) {
                    work.list_at = None;
                    Some(work.entries.clone())
                } else {
                    None
                };
                (files, entries)
            };
            let mut outcome = Ok(());
            for (blobs, events) in files.values() {
                for file in blobs.iter().chain([&**events]) {
                    outcome = outcome.and(file.sync_data());
                }
            }
            if let Some(entries) = entries {
                outcome = outcome.and(list::save(&self.0.state, &entries));
            }
            if let Err(error) = outcome
                && !std::mem::replace(&mut complained, true)
            {
                log::warn(format!("records can't be synced or listed: {error}"));
            }
        }
    }
}
