//! Live sessions, the breakpoint table and the recorder: what commands call.
//!
//! The daemon's state is here and nowhere else. Its one lock is held for look-ups only, never across a wait, so that
//! `status`, `sessions` and `stop` answer at once whatever the other commands do.

pub mod asked;
pub mod attach;
pub mod build;
pub mod configs;
pub mod control;
pub mod launch;
mod own;
pub mod places;
mod processes;
pub mod records;
pub mod trace;
pub mod wishes;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::adapters::Adapter;
use crate::config::Config;
use crate::failure::{Failure, Kind};
use crate::model::{Binding, BindingState, Breakpoint, BreakpointReport, Place, SessionState};
use crate::output;
use crate::paths::Paths;
use crate::runner::Handle;
use crate::session::{Answer, Op};
use crate::store::{Journal, Recorder};
use crate::wire::{Caller, lasting};
use asked::Asked;
use wishes::{Table, Wishes};

/// Ended sessions that are still answered for.
const KEEP_ENDED: usize = 16;

/// Everything the daemon keeps.
#[derive(Debug)]
pub struct Hub {
    pub paths: Paths,
    pub config: Config,
    pub(crate) recorder: Option<Recorder>,
    /// Counts the sessions that have begun.
    begun: watch::Sender<u64>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    sessions: Vec<Arc<Live>>,
    next: u32,
    wishes: Wishes,
    /// `use`: the session a project's commands are about.
    chosen: HashMap<PathBuf, String>,
    /// Names of sessions that are being started.
    naming: Vec<String>,
    /// Clients that stay, and how many connections each has for that.
    leases: HashMap<String, i32>,
}

/// A session and what it was started with.
#[derive(Debug)]
pub struct Live {
    /// `s1`; never reused in a daemon's life.
    pub alias: String,
    pub name: Option<String>,
    /// The recording's id, permanent.
    pub record: Option<String>,
    /// The way into it; none where it can't be written.
    pub journal: Option<Journal>,
    pub project: PathBuf,
    pub adapter: &'static Adapter,
    pub blueprint: launch::Blueprint,
    /// Who started it.
    pub owner: String,
    pub started: u64,
    pub handle: Handle,
    pub stdin: Option<PathBuf>,
    /// The user's own program that this session took hold of.
    pub held_of: Option<attach::Foreign>,
    pub notes: Vec<String>,
    /// How far each kind of caller has read the output.
    read: Mutex<HashMap<String, u64>>,
    /// Who has the control of an agent.
    holder: Mutex<Option<control::Holder>>,
}

/// A name that is kept while its session starts.
#[derive(Debug)]
pub(crate) struct Reserved<'a> {
    hub: &'a Hub,
    name: String,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        lock(&self.hub.inner).naming.retain(|name| *name != self.name);
    }
}

impl Live {
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.handle.snapshot.borrow().state
    }

    /// What became of a wish here.
    #[must_use]
    pub fn binding(&self, wish: &Breakpoint) -> Option<Binding> {
        let known = self.handle.snapshot.borrow().hits.get(&wish.id).cloned();
        let is_line = matches!(wish.place, Place::Line { .. } | Place::Address(_));
        let why = (self.adapter.quirks.agents && is_line).then(crate::agent::breaks::no_lines);
        let pending = |why| Binding { state: BindingState::Pending, line: None, file: None, why: Some(why), hits: 0 };
        known.or_else(|| why.map(pending))
    }

    /// The adapter with its version.
    #[must_use]
    pub fn via(&self) -> String {
        let version = self.handle.snapshot.borrow().version.clone();
        version.map_or_else(|| self.adapter.id.into(), |version| format!("{} {version}", self.adapter.id))
    }

    /// The output this kind of caller has not seen yet; it counts as seen from now on.
    #[must_use]
    pub fn unread(&self, caller: &Caller) -> output::Part {
        let mut read = lock(&self.read);
        let from = read.entry(reader(caller)).or_default();
        let part = lock(&self.handle.output).since(*from);
        *from = part.end;
        part
    }

    /// Says something in the session's record.
    pub fn note(&self, message: &str) {
        if let Some(journal) = &self.journal {
            journal.append("log", None, serde_json::json!({ "message": message }));
        }
    }

    /// Puts a caller's mark where it is now.
    pub fn mark_read(&self, caller: &Caller) {
        let end = lock(&self.handle.output).end();
        lock(&self.read).insert(reader(caller), end);
    }
}

/// Commands of the shell are one reader: each is a new process, and all are the same person or agent.
fn reader(caller: &Caller) -> String {
    caller.client().or_else(|| caller.who.split(':').next()).unwrap_or_default().to_string()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    #[must_use]
    pub fn new(paths: Paths, config: Config) -> Arc<Self> {
        let recorder = Recorder::start(&paths.state).map_err(|failure| crate::log::warn(failure.to_string())).ok();
        let wishes = Wishes::new(&paths.state);
        let inner = Inner {
            sessions: Vec::new(),
            next: 1,
            wishes,
            chosen: HashMap::new(),
            naming: Vec::new(),
            leases: HashMap::new(),
        };
        Arc::new(Self { paths, config, recorder, begun: watch::Sender::new(0), inner: Mutex::new(inner) })
    }

    /// Sessions with something under the debugger; the daemon stays while there are any.
    #[must_use]
    pub fn live_sessions(&self) -> usize {
        lock(&self.inner).sessions.iter().filter(|live| !*live.handle.finished.borrow()).count()
    }

    #[must_use]
    pub fn sessions(&self) -> Vec<Arc<Live>> {
        lock(&self.inner).sessions.clone()
    }

    /// Changes with each session that begins.
    #[must_use]
    pub fn begun(&self) -> watch::Receiver<u64> {
        self.begun.subscribe()
    }

    /// Ends every session; the daemon calls it before it goes.
    pub async fn end_all(&self) {
        let ends = self.sessions().into_iter().map(|live| {
            if live.state().is_live() {
                live.note("the daemon ends");
            }
            tokio::spawn(async move { live.end(false).await })
        });
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
    }

    /// Waits until everything that was recorded can be read by others.
    pub async fn flush(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.flush().await;
        }
    }

    /// The session a caller's command is about.
    pub fn meant(&self, caller: &Caller) -> Result<Arc<Live>, Failure> {
        match &caller.session {
            Some(name) => self.named(name),
            None => self.default_session(caller),
        }
    }

    /// Keeps a session's name for one who starts; another of that name, live or about to be, is in the way.
    pub(crate) fn reserve(&self, name: Option<&str>) -> Result<Option<Reserved<'_>>, Failure> {
        let Some(name) = name else { return Ok(None) };
        let mut inner = lock(&self.inner);
        let taken = inner.sessions.iter().any(|live| live.name.as_deref() == Some(name) && live.state().is_live());
        if taken || inner.naming.iter().any(|known| known == name) {
            return Err(Failure::refused(format!("a live session is called `{name}` already"))
                .hint(format!("end it: bugeye -s {name} stop")));
        }
        inner.naming.push(name.into());
        Ok(Some(Reserved { hub: self, name: name.into() }))
    }

    /// Finds a session by alias, name or recording id.
    pub fn named(&self, name: &str) -> Result<Arc<Live>, Failure> {
        let sessions = self.sessions();
        let found = sessions.iter().rev().find(|live| {
            live.alias == name || live.name.as_deref() == Some(name) || live.record.as_deref() == Some(name)
        });
        found.cloned().ok_or_else(|| {
            let failure = Failure::not_found(format!("there is no session `{name}`"));
            if sessions.is_empty() {
                return failure.hint("there are none; start one: bugeye start ./program");
            }
            list_hint(failure, &sessions)
        })
    }

    /// The session a command is about, when it names none: the one chosen, or the newest from there. For a client that
    /// stays, only those are meant that it started; for a shell those of such a client only where there is no other.
    fn default_session(&self, caller: &Caller) -> Result<Arc<Live>, Failure> {
        let inner = lock(&self.inner);
        // An agent that debugs a program means that, and not itself, where it names none.
        let others: Vec<Arc<Live>> = inner.sessions.iter().filter(|live| !live.is_of(caller)).cloned().collect();
        if others.len() < inner.sessions.len()
            && let Ok(other) = Self::default_among(&others, inner.chosen.get(&chooser(caller)), caller)
        {
            return Ok(other);
        }
        Self::default_among(&inner.sessions, inner.chosen.get(&chooser(caller)), caller)
    }

    fn default_among(sessions: &[Arc<Live>], chosen: Option<&String>, caller: &Caller) -> Result<Arc<Live>, Failure> {
        let (cwd, project) = (&caller.cwd, places::project_of(&caller.cwd));
        if let Some(chosen) = chosen
            && let Some(live) = sessions.iter().find(|live| live.alias == *chosen)
        {
            return Ok(live.clone());
        }
        if let Some(client) = caller.client() {
            let mine = || sessions.iter().rev().filter(|live| live.owner == client);
            let newest = mine().find(|live| live.state().is_live()).or_else(|| mine().next());
            return newest.cloned().ok_or_else(|| {
                let failure = Failure::not_found("you have started no session");
                list_hint(failure.hint("start one, or name one that is there"), sessions)
            });
        }
        let here = |live: &&Arc<Live>| {
            live.project == project || cwd.starts_with(&live.blueprint.cwd) || live.blueprint.cwd.starts_with(cwd)
        };
        let has_own = sessions.iter().any(|live| !lasting(&live.owner) && here(&live));
        // What is held of an agent can't be taken back once it is let go: from elsewhere it has to be named.
        let may = |live: &&Arc<Live>| !live.adapter.quirks.agents || here(live);
        let newest = |live: bool, near: bool| {
            let mut all = sessions.iter().rev().filter(may).filter(|session| session.state().is_live() == live);
            if near { all.find(|session| here(session) && (!lasting(&session.owner) || !has_own)) } else { all.next() }
        };
        let live_ones = sessions.iter().filter(may).filter(|live| live.state().is_live()).count();
        let found = newest(true, true)
            .or_else(|| newest(true, false).filter(|_| live_ones == 1))
            .or_else(|| newest(false, true).filter(|_| live_ones == 0));
        found.cloned().ok_or_else(|| {
            let failure = if sessions.is_empty() {
                Failure::not_found("there is no session")
                    .hint("start one: bugeye start ./program")
                    .hint("or run to the first stop: bugeye run --break FILE:LINE -- COMMAND")
            } else {
                let several = if sessions.len() > 1 { "several sessions, none of them" } else { "no session" };
                Failure::not_found(format!("{several} from this directory"))
            };
            list_hint(failure, sessions)
        })
    }

    pub fn choose(&self, caller: &Caller, alias: &str) {
        lock(&self.inner).chosen.insert(chooser(caller), alias.into());
    }

    /// Counts the connections by which a client stays; answers how many there are.
    pub fn lease(&self, who: &str, change: i32) -> i32 {
        let mut inner = lock(&self.inner);
        let count = inner.leases.get(who).copied().unwrap_or(0) + change;
        if count > 0 {
            inner.leases.insert(who.into(), count);
        } else {
            inner.leases.remove(who);
        }
        count
    }

    /// Works on a project's table and writes what is to be kept.
    pub fn edit_wishes<T>(&self, project: &Path, edit: impl FnOnce(&mut Table) -> T) -> Result<T, Failure> {
        let mut inner = lock(&self.inner);
        let result = edit(inner.wishes.table(project));
        inner.wishes.save(project)?;
        Ok(result)
    }

    /// A copy of a project's table.
    #[must_use]
    pub fn wishes(&self, project: &Path) -> Table {
        lock(&self.inner).wishes.table(project).clone()
    }

    /// Brings every live session of a project in line with its wishes; answers the bindings of the given session.
    pub async fn send_wishes(&self, project: &Path, about: Option<&Live>) -> Result<Vec<(u32, Binding)>, Failure> {
        let table = self.wishes(project);
        let mut answer = Vec::new();
        for live in self.sessions().iter().filter(|live| live.project == project && live.state().is_live()) {
            let bindings = live.handle.ask(Op::Breakpoints(table.for_session(&live.alias))).await;
            let wanted = about.is_none_or(|about| about.alias == live.alias);
            match bindings {
                Ok(Answer::Bindings(bindings)) if wanted => answer = bindings.into_iter().collect(),
                Err(failure) if wanted => return Err(failure),
                _ => {}
            }
        }
        Ok(answer)
    }

    fn add(&self, live: Arc<Live>, caller: &Caller) {
        let mut inner = lock(&self.inner);
        // Who starts something goes on with that.
        inner.chosen.remove(&chooser(caller));
        inner.sessions.push(live);
        self.begun.send_modify(|count| *count += 1);
        let ended = |live: &Arc<Live>| *live.handle.finished.borrow();
        while inner.sessions.iter().filter(|live| ended(live)).count() > KEEP_ENDED {
            if let Some(oldest) = inner.sessions.iter().position(ended) {
                inner.sessions.remove(oldest);
            }
        }
    }

    pub(crate) fn remove(&self, alias: &str) {
        lock(&self.inner).sessions.retain(|live| live.alias != alias);
    }

    /// Ends a session, forgets it and the breakpoints that were its own.
    pub async fn end(&self, live: &Live, kill: bool) {
        live.end(kill).await;
        self.remove(&live.alias);
        let own = |wish: &Breakpoint| wish.session.as_deref() == Some(live.alias.as_str());
        let _ = self.edit_wishes(&live.project, |table| table.breakpoints.retain(|wish| !own(wish)));
    }

    fn next_alias(&self) -> String {
        let mut inner = lock(&self.inner);
        let alias = format!("s{}", inner.next);
        inner.next += 1;
        alias
    }
}

impl Live {
    /// Ends the session and waits until nothing is left of it.
    pub async fn end(&self, kill: bool) {
        let _ = self.handle.ask(Op::Stop { kill }).await;
        self.gone().await;
    }

    /// Waits until nothing is left of what has ended.
    pub async fn gone(&self) {
        let mut finished = self.handle.finished.clone();
        let _ = tokio::time::timeout(Duration::from_secs(10), finished.wait_for(|done| *done)).await;
    }
}

/// Under which a choice of session is kept: the client that stays, or the project.
fn chooser(caller: &Caller) -> PathBuf {
    caller.client().map_or_else(|| places::project_of(&caller.cwd), PathBuf::from)
}

fn list_hint(failure: Failure, sessions: &[Arc<Live>]) -> Failure {
    sessions.iter().rev().take(8).fold(failure, |failure, live| {
        let program = live.blueprint.words.join(" ");
        failure.hint(format!("-s {}: {} ({})", live.alias, crate::render::quoted(&program), live.state()))
    })
}

/// One command's surroundings inside the daemon.
#[derive(Debug, Clone)]
pub struct Context {
    pub hub: Arc<Hub>,
    pub caller: Caller,
    /// Progress sentences and stream parts go out here.
    pub stream: mpsc::Sender<Part>,
    /// The session and adapter the answer is about, filled in when it is known.
    pub about: Arc<Mutex<(Option<String>, Option<String>)>>,
    /// Whoever asked wants an answer now, with what there is.
    pub cancelled: CancellationToken,
    /// What was asked, for the records.
    pub asked: Arc<Asked>,
}

/// Something sent before the final line.
#[derive(Debug, Clone)]
pub enum Part {
    Progress(String),
    /// How it goes: the next one takes its place.
    Passing(String),
    Event(Value),
}

impl Context {
    /// The session this command is about.
    pub fn session(&self) -> Result<Arc<Live>, Failure> {
        let live = self.hub.meant(&self.caller)?;
        self.about(&live);
        Ok(live)
    }

    /// The session, where a command can do without one.
    #[must_use]
    pub fn maybe_session(&self) -> Option<Arc<Live>> {
        self.session().ok().filter(|live| live.state().is_live())
    }

    /// Says which session the answer is about.
    pub fn about(&self, live: &Live) {
        self.concerns(live);
        *lock(&self.about) = (Some(live.alias.clone()), Some(live.via()));
    }

    /// Has the session's record tell of this command.
    pub fn concerns(&self, live: &Live) {
        if let Some(journal) = &live.journal {
            self.asked.tell(journal, live.handle.snapshot.borrow().stops);
        }
    }

    /// The project that breakpoints belong to: the session's, else the caller's.
    #[must_use]
    pub fn project(&self) -> PathBuf {
        self.maybe_session().map_or_else(|| places::project_of(&self.caller.cwd), |live| live.project.clone())
    }

    pub async fn ask(&self, op: Op) -> Result<Answer, Failure> {
        let live = self.session()?;
        let answer = live.handle.ask(op).await;
        // The version may have become known meanwhile.
        self.about(&live);
        answer.map_err(|failure| self.with_record(&live, failure))
    }

    /// A program that has ended is over for its session, and not for its record.
    fn with_record(&self, live: &Live, failure: Failure) -> Failure {
        let over = failure.kind == Kind::WrongState && !live.state().is_live();
        match &live.record {
            Some(record) if over && self.asked.reads() && live.handle.snapshot.borrow().stops > 0 => {
                // No stop has the whole of what an agent has before it.
                if self.asked.name() == "inspect" {
                    return failure
                        .hint(format!("what its model was asked and answered: bugeye events -s {record} -f 'model.*'"))
                        .hint(format!("as it was at its last stop: bugeye -s {record} --at last context"));
                }
                let words = self.asked.words();
                let words: Vec<&str> = ["-s", record, "--at", "last"].into_iter().chain(words).collect();
                failure.hint(format!("as it was at its last stop: {}", crate::cli::typed(&words)))
            }
            _ => failure,
        }
    }

    /// Wishes with what became of them in the current session.
    #[must_use]
    pub fn reports(&self, wishes: Vec<Breakpoint>) -> Vec<BreakpointReport> {
        let live = self.maybe_session();
        wishes
            .into_iter()
            .map(|wish| BreakpointReport { binding: live.as_ref().and_then(|live| live.binding(&wish)), wish })
            .collect()
    }
}
