//! `events`: what happens in sessions, as their records tell it.
//!
//! The client reads the files itself, so a slow reader slows no session. The daemon is only asked which record is meant.

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::doing_line::is_said_twice;
use super::{Bare, Group, event_line};
use crate::agent::alias;
use crate::cli::LocalContext;
use crate::client::records::Known;
use crate::failure::Failure;
use crate::glob::is_like;
use crate::model::{AGENT_EVENT_TYPES, EVENT_TYPES, Event};
use crate::nearest::nearest;
use crate::render::{Page, quoted_json};
use crate::store::read::{self, Head, Tail};

/// How often a record is looked at for news.
const LOOKING: Duration = Duration::from_millis(100);
/// How long a session that has ended is listened to: what its program said last may still be on its way.
const QUIET: Duration = Duration::from_millis(500);
/// The same when all sessions are followed: an ended one may be asked about.
const FORGETTING: Duration = Duration::from_secs(600);
/// How long an interrupt may take to end a reader that writes to somebody who does not read.
const LEAVING: Duration = Duration::from_millis(500);

/// Show what happened in a session, or what happens: who asked what, stops, output, the end
///
/// A session that is live, or the record of one that has ended, by its id or name. `--follow` alone shows all sessions
/// of yours as they come, those that others start too.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Events {
    /// Show what comes from now on: until the session ends, or with no session for ever.
    #[arg(long)]
    #[serde(default)]
    pub follow: bool,
    /// Only events of these types: a comma list, `*` and `?` stand for others (`stopped,out*`).
    #[arg(long, short = 'f', value_name = "TYPES", value_delimiter = ',')]
    #[serde(default)]
    pub filter: Vec<String>,
    /// Only events after this number.
    #[arg(long, value_name = "SEQ")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// With `--follow`: from the beginning of the session, not from now.
    #[arg(long)]
    #[serde(default)]
    pub from_start: bool,
}

impl Bare for Events {
    const NAME: &'static str = "events";
    const GROUP: Group = Group::Around;

    fn run(self, cx: &LocalContext) -> Result<u8, Failure> {
        let stopped = if self.follow { on_interrupt() } else { Arc::default() };
        let whole = self.from_start || self.since.is_some() || !self.follow;
        let out = Out {
            patterns: patterns(&self.filter)?,
            since: self.since.unwrap_or(0),
            json: cx.json,
            live: self.follow && !cx.json,
            cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
            who: None,
            stopped,
        };
        let shown = if self.follow && cx.session.is_none() {
            if self.since.is_some() {
                return Err(Failure::usage("--since counts the events of one session").hint("name it: -s ID"));
            }
            follow_all(cx, &out, whole)
        } else {
            let mut record = Followed::new(chosen(cx)?);
            if self.follow {
                follow(&mut record, &out, whole)
            } else {
                record.take(Some(&out)).map(|_| record.complain())
            }
        };
        match shown {
            // Whoever read has had enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("show the events", &error)),
            _ => Ok(0),
        }
    }

    fn prints() -> schemars::Schema {
        schemars::schema_for!(Event)
    }
}

/// What the daemon knows of records, asked from here.
pub(crate) fn known(cx: &LocalContext) -> Known {
    Known::ask(&cx.paths, cx.session.as_deref(), &here())
}

/// The folder of all records, once everything that has happened is written there.
pub(super) fn settled(cx: &LocalContext) -> Result<PathBuf, Failure> {
    let state = known(cx).state(&cx.paths).to_path_buf();
    if state == cx.paths.state {
        cx.paths.prepare_state()?;
    }
    Ok(state)
}

/// The record that is meant: of a live session, else the newest of that name, else the newest from this folder.
pub(crate) fn chosen(cx: &LocalContext) -> Result<Head, Failure> {
    known(cx).chosen(&cx.paths, cx.session.as_deref(), &here())
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| "/".into())
}

/// Reads what was asked for of types; none for all.
pub(crate) fn patterns(asked: &[String]) -> Result<Vec<String>, Failure> {
    let mut patterns = Vec::new();
    let types = || EVENT_TYPES.into_iter().chain(AGENT_EVENT_TYPES);
    for asked in asked.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
        // Agents have other names for some.
        if let Some(ours) = alias::recorded_as(asked) {
            patterns.push(ours.to_string());
            if !types().any(|kind| kind == asked) {
                continue;
            }
        }
        let word = asked.replace('_', ".");
        let meant = types().any(|kind| is_like(&word, kind));
        if !meant {
            let near = nearest(&word, types()).map(|near| format!("; did you mean `{near}`?"));
            return Err(Failure::usage(format!("no event is of type `{word}`{}", near.unwrap_or_default()))
                .hint(format!("types: {}", types().collect::<Vec<_>>().join(", "))));
        }
        patterns.push(word);
    }
    Ok(patterns)
}

/// Where events go, and which.
#[derive(Debug)]
struct Out {
    patterns: Vec<String>,
    since: u64,
    json: bool,
    /// Somebody reads along: what is said twice is said once.
    live: bool,
    cwd: PathBuf,
    /// To standard error, and only of the sessions that this client started.
    who: Option<String>,
    /// An interrupt has come.
    stopped: Arc<AtomicBool>,
}

impl Out {
    fn show(&self, head: &Head, event: &Event, line: &str, to: &mut String) {
        let wanted = match self.patterns.as_slice() {
            [] => !(self.live && is_said_twice(head, event)),
            patterns => patterns.iter().any(|pattern| alias::is_asked(pattern, event)),
        };
        if !wanted || event.seq <= self.since {
            return;
        }
        if self.json {
            to.push_str(&quoted_json(line));
            to.push('\n');
        } else {
            let mut page = Page::new(self.cwd.clone());
            event_line::render(event, head.label(), &mut page);
            to.push_str(page.text());
        }
    }

    fn write(&self, text: &str) -> io::Result<()> {
        if self.who.is_some() {
            return io::stderr().lock().write_all(text.as_bytes());
        }
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()
    }

    /// Whether a session is one of those to be shown.
    fn means(&self, head: &Head) -> bool {
        self.who.as_ref().is_none_or(|who| crate::wire::owns(who, &head.who))
    }

    /// Waits a moment; false when there is no sense in going on.
    fn wait(&self) -> bool {
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOKING.subsec_nanos()) };
        let (stdout, stderr) = (io::stdout(), io::stderr());
        let to = if self.who.is_some() { stderr.as_fd() } else { stdout.as_fd() };
        // Nothing is asked for: what is told all the same is that the other end has closed.
        let mut watched = [PollFd::from_borrowed_fd(to, PollFlags::empty())];
        let closed = poll(&mut watched, Some(&limit)).is_ok_and(|ready| ready > 0);
        !closed && !self.stopped.load(Ordering::Relaxed)
    }
}

/// A record that is read to its end, and on.
#[derive(Debug)]
struct Followed {
    head: Head,
    tail: Tail,
    /// Commands that are not answered yet, by their numbers.
    open: HashSet<u64>,
    ended: bool,
    grown: Instant,
}

impl Followed {
    fn new(head: Head) -> Self {
        let tail = Tail::new(&head.folder);
        Self { head, tail, open: HashSet::new(), ended: false, grown: Instant::now() }
    }

    /// Reads to the end of what is written and shows it; answers whether there was anything.
    fn take(&mut self, out: Option<&Out>) -> io::Result<bool> {
        let mut grown = false;
        while let Some(events) = self.tail.read()? {
            let mut text = String::new();
            for (event, line) in &events {
                match event.kind.as_str() {
                    "session.end" => self.ended = true,
                    "command" => drop(self.open.insert(event.seq)),
                    "command.result" => drop(event.data["command"].as_u64().map(|seq| self.open.remove(&seq))),
                    _ => {}
                }
                if let Some(out) = out {
                    out.show(&self.head, event, line, &mut text);
                }
            }
            grown = true;
            self.grown = Instant::now();
            if let Some(out) = out {
                out.write(&text)?;
                if out.stopped.load(Ordering::Relaxed) {
                    break;
                }
            }
        }
        Ok(grown)
    }

    /// Whether the session has ended, and has had nothing more to say for a while.
    fn is_over(&self, quiet: Duration) -> bool {
        self.ended && self.open.is_empty() && self.grown.elapsed() > quiet
    }

    fn complain(&self) {
        if self.tail.unreadable > 0 {
            let lines = if self.tail.unreadable == 1 { "line is no event" } else { "lines are no events" };
            let _ = writeln!(io::stderr(), "{} {lines} in {}", self.tail.unreadable, self.head.folder.display());
        }
    }
}

/// Shows one session until it ends.
fn follow(record: &mut Followed, out: &Out, whole: bool) -> io::Result<()> {
    record.take(whole.then_some(out))?;
    let _ = if record.ended && record.open.is_empty() {
        writeln!(io::stderr(), "{} has ended; its events: bugeye events -s {0}", record.head.id)
    } else {
        writeln!(io::stderr(), "following {} ({}) to its end", record.head.label(), record.head.id)
    };
    loop {
        // Asked before it is read: what nobody writes to any more can't grow after that.
        let written = record.head.is_written();
        let grown = record.take(Some(out))?;
        if !grown && !written && !record.ended {
            let _ = writeln!(io::stderr(), "{} ends here: its daemon is gone", record.head.id);
        }
        if record.is_over(QUIET) || (!grown && !written) || !out.wait() {
            record.complain();
            return Ok(());
        }
    }
}

/// Shows all sessions, those to come too.
fn follow_all(cx: &LocalContext, out: &Out, whole: bool) -> io::Result<()> {
    // In this order: what comes between is new, and seen as such.
    let mut seen: HashSet<PathBuf> = read::folders(&cx.paths.state).into_iter().collect();
    let known = known(cx);
    let state = known.state(&cx.paths).to_path_buf();
    if state != cx.paths.state {
        seen = read::folders(&state).into_iter().collect();
    }
    let mut records: Vec<Followed> = Vec::new();
    for folder in known.all.iter().map(|id| read::root(&state).join(id)).filter(|folder| seen.contains(folder)) {
        let Some(mut record) = Head::load(&folder).map(Followed::new) else { continue };
        record.take(whole.then_some(out))?;
        records.push(record);
    }
    let _ = writeln!(io::stderr(), "following all sessions until an interrupt");
    follow_new(&state, seen, records, out)
}

/// Writes what happens in the sessions of a client, from now on, to standard error.
pub(crate) fn tell(state: &Path, who: &str) {
    let seen = read::folders(state).into_iter().collect();
    let out = Out {
        patterns: Vec::new(),
        since: 0,
        json: false,
        live: true,
        cwd: std::env::current_dir().unwrap_or_else(|_| "/".into()),
        who: Some(who.into()),
        stopped: Arc::default(),
    };
    // Where it can't be written there is nobody to tell.
    let _ = follow_new(state, seen, Vec::new(), &out);
}

/// Shows these records, and those that are not among the seen ones.
fn follow_new(state: &Path, mut seen: HashSet<PathBuf>, mut records: Vec<Followed>, out: &Out) -> io::Result<()> {
    let mut looked = None;
    loop {
        let changed = std::fs::metadata(read::root(state)).and_then(|found| found.modified()).ok();
        // Two changes may bear the same time.
        let fresh = changed.is_some_and(|at| at > SystemTime::now() - Duration::from_secs(2));
        if changed != looked || fresh {
            looked = changed;
            for folder in read::folders(state) {
                if seen.contains(&folder) {
                    continue;
                }
                // Until its head is written it is looked for again.
                match Head::load(&folder) {
                    Some(head) if !out.means(&head) => {}
                    Some(head) => records.push(Followed::new(head)),
                    None if fresh => continue,
                    None => {}
                }
                seen.insert(folder);
            }
        }
        // Asked before they are read: what nobody writes to any more can't grow after that.
        let written: Vec<bool> = records.iter().map(|record| record.head.is_written()).collect();
        for record in &mut records {
            record.take(Some(out))?;
        }
        let mut written = written.into_iter();
        records.retain(|record| written.next() == Some(true) && !record.is_over(FORGETTING));
        if !out.wait() {
            return Ok(());
        }
    }
}

/// Has an interrupt end the command as it would end by itself. Told by the flag; one that waits for its reader is
/// ended a moment later.
pub(super) fn on_interrupt() -> Arc<AtomicBool> {
    let stopped = Arc::new(AtomicBool::new(false));
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_io().build() else { return stopped };
    let signal = {
        let _entered = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt())
    };
    let Ok(mut signal) = signal else { return stopped };
    let flag = Arc::clone(&stopped);
    // Ends with the process.
    std::thread::spawn(move || {
        runtime.block_on(signal.recv());
        flag.store(true, Ordering::Relaxed);
        std::thread::sleep(LEAVING);
        std::process::exit(0);
    });
    stopped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_chosen_by_lists_and_globs() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_string()).collect::<Vec<_>>();
        assert_eq!(patterns(&words(&["stopped", " out*", ""])).unwrap(), ["stopped", "out*"]);
        assert_eq!(patterns(&words(&["session_start"])).unwrap(), ["session.start"]);
        let theirs = words(&["paused", "tool_call_start", "tool_result", "error"]);
        assert_eq!(patterns(&theirs).unwrap(), ["stopped", "tool.call", "tool.end", "model.error", "error"]);
        let failure = patterns(&words(&["stoped"])).unwrap_err();
        assert!(failure.message.contains("did you mean `stopped`?"), "{failure}");
        assert!(patterns(&words(&["x*"])).is_err());
    }
}
