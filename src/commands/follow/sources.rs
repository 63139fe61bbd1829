//! Which record is followed: one that was named, or the session from here, or the next that starts.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cli::LocalContext;
use crate::commands::events::{chosen, known};
use crate::failure::Failure;
use crate::model::Event;
use crate::store::read::{self, Head, Tail};

/// How long a session that has ended is listened to: what its program said last may still be on its way.
const QUIET: Duration = Duration::from_millis(500);

/// Events with their lines, and whose they are.
pub type News = (Head, Vec<(Event, String)>);

/// Where events come from.
#[derive(Debug)]
pub struct Source {
    state: PathBuf,
    /// Records that were there before.
    seen: HashSet<PathBuf>,
    named: bool,
    followed: Option<Followed>,
}

#[derive(Debug)]
struct Followed {
    head: Head,
    tail: Tail,
    ended: bool,
    /// Where it stands, and has not gone on from.
    stopped: Option<(Event, String)>,
    /// Somebody may still write to it.
    written: bool,
    grown: Instant,
}

impl Followed {
    fn new(head: Head) -> Self {
        let tail = Tail::new(&head.folder);
        Self { head, tail, ended: false, stopped: None, written: true, grown: Instant::now() }
    }

    /// The next events; none at the end of what is written.
    fn read(&mut self) -> io::Result<Option<Vec<(Event, String)>>> {
        // Asked before it is read: what nobody writes to any more can't grow after that.
        self.written = self.head.is_written();
        let events = self.tail.read()?;
        if let Some(events) = &events {
            for (event, line) in events {
                match event.kind.as_str() {
                    "stopped" => self.stopped = Some((event.clone(), line.clone())),
                    "continued" => self.stopped = None,
                    "session.end" => (self.ended, self.stopped) = (true, None),
                    _ => {}
                }
            }
            self.grown = Instant::now();
        }
        Ok(events)
    }
}

impl Source {
    /// Finds what to follow, from now on.
    pub fn find(cx: &LocalContext) -> Result<Self, Failure> {
        // In this order: what comes between is new, and seen as such.
        let mut seen = read::folders(&cx.paths.state);
        let failed = |error: io::Error| Failure::io("read the record", &error);
        if cx.session.is_some() {
            let mut followed = Followed::new(chosen(cx)?);
            while followed.read().map_err(failed)?.is_some() {}
            return Ok(Self { state: PathBuf::new(), seen: HashSet::new(), named: true, followed: Some(followed) });
        }
        let known = known(cx);
        let state = known.state(&cx.paths).to_path_buf();
        if state != cx.paths.state {
            seen = read::folders(&state);
        }
        let head = known.meant.as_ref().and_then(|id| Head::load(&read::root(&state).join(id)));
        let mut followed = head.map(Followed::new);
        if let Some(found) = &mut followed {
            while found.read().map_err(failed)?.is_some() {}
            if found.ended || !found.written {
                followed = None;
            } else if !seen.contains(&found.head.folder) {
                // All of it is new.
                *found = Followed::new(found.head.clone());
            }
        }
        let seen = seen.into_iter().chain(followed.iter().map(|found| found.head.folder.clone())).collect();
        Ok(Self { state, seen, named: false, followed })
    }

    pub fn is_named(&self) -> bool {
        self.named
    }

    pub fn head(&self) -> Option<&Head> {
        self.followed.as_ref().map(|followed| &followed.head)
    }

    /// Where the session stands, unless it runs.
    pub fn stopped(&self) -> Option<&(Event, String)> {
        self.followed.as_ref()?.stopped.as_ref()
    }

    /// Looks whether a session has started meanwhile.
    pub fn look(&mut self) -> bool {
        let fresh = read::folders(&self.state).into_iter().filter(|folder| !self.seen.contains(folder));
        // Until its head is written it is looked for again.
        let Some(head) = fresh.into_iter().find_map(|folder| Head::load(&folder)).filter(Head::is_written) else {
            return false;
        };
        self.seen.insert(head.folder.clone());
        self.followed = Some(Followed::new(head));
        true
    }

    pub fn read(&mut self) -> io::Result<Option<News>> {
        let Some(followed) = &mut self.followed else { return Ok(None) };
        Ok(followed.read()?.map(|events| (followed.head.clone(), events)))
    }

    /// What to say when the session has ended and nothing more is to come.
    pub fn is_over(&self, idle: bool) -> Option<String> {
        let followed = self.followed.as_ref().filter(|followed| idle && followed.grown.elapsed() > QUIET)?;
        let id = &followed.head.id;
        match (followed.ended, followed.written) {
            (true, _) => Some(format!("{} has ended; its events: bugeye events -s {id}", followed.head.label())),
            (false, false) => Some(format!("{id} ends here: its daemon is gone")),
            (false, true) => None,
        }
    }

    pub fn wait_for_next(&mut self) {
        self.followed = None;
    }
}
