//! A record as steps to compare: who its threads are, how it ended, and each thread's steps as they come from the disk.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::occurrences::{Crossed, Occurrence, with_calls};
use super::read::{Head, Tail};
use crate::adapters;
use crate::diff::{Kind, Run, Step};
use crate::model::{Ending, HitFrame, Reason};

/// Steps that are handed over at once, and how many such lots wait for a reader.
const LOT: usize = 256;
const WAITING: usize = 4;
/// Places and ways whose keys are kept.
const KNOWN: usize = 10_000;
/// Threads that are paired.
const THREADS: usize = 1000;
/// Process ids of one program, and bytes of each stream, that are kept. More than recordings have.
const PIDS: usize = 1000;
const OUTPUT: usize = 8 * 1024 * 1024;
/// The most that is read of a file for the text of its lines.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// What there is to know about a record before its steps are compared.
#[derive(Debug, Default)]
pub struct Survey {
    pub run: Run,
    pub ending: Option<Ending>,
    /// The newest version of its events.
    pub version: u32,
    /// Threads by number, with their names and steps.
    pub threads: BTreeMap<i64, (Option<Arc<str>>, u64)>,
    /// Steps of threads beyond those.
    more: u64,
    /// What the program printed, by stream.
    pub output: BTreeMap<String, String>,
}

impl Survey {
    /// Reads all of a record once.
    pub fn new(head: &Head) -> io::Result<Self> {
        let languages = adapters::by_name(&head.adapter).map(|adapter| adapter.languages).unwrap_or_default();
        let run = Run { started: head.started, pids: Vec::new(), braces: languages.contains(&"python") };
        let mut survey = Self { run, ..Self::default() };
        let mut tail = Tail::new(&head.folder);
        while let Some(events) = tail.read()? {
            for (event, _) in events {
                survey.version = survey.version.max(event.v);
                let text = |name: &str| event.data[name].as_str().unwrap_or_default();
                match event.kind.as_str() {
                    "session.end" => survey.ending = serde_json::from_value(event.data["ending"].clone()).ok(),
                    "output" if ["stdout", "stderr"].contains(&text("stream")) => {
                        let printed = survey.output.entry(text("stream").to_string()).or_default();
                        if printed.len() < OUTPUT {
                            printed.push_str(text("text"));
                        }
                    }
                    _ if survey.run.pids.len() < PIDS => {
                        let pid = event.data.get("pid").and_then(Value::as_i64).filter(|pid| *pid > 1);
                        survey.run.pids.extend(pid.filter(|pid| !survey.run.pids.contains(pid)));
                    }
                    _ => {}
                }
            }
        }
        with_calls(head, &mut |seen| {
            if survey.threads.len() >= THREADS && !survey.threads.contains_key(&seen.thread) {
                survey.more += 1;
                return true;
            }
            let (name, steps) = survey.threads.entry(seen.thread).or_default();
            *name = seen.thread_name.or(name.take());
            *steps += 1;
            true
        })?;
        Ok(survey)
    }

    #[must_use]
    pub fn steps(&self) -> u64 {
        self.threads.values().map(|(_, steps)| steps).sum::<u64>() + self.more
    }
}

/// Threads of two records that play the same part, and what that is called.
#[derive(Debug, PartialEq, Eq)]
pub struct Role {
    pub name: String,
    pub a: Option<i64>,
    pub b: Option<i64>,
}

/// Pairs the threads: those of the same name in the order of their numbers, then the rest in that order.
#[must_use]
pub fn roles(a: &Survey, b: &Survey) -> Vec<Role> {
    let list = |survey: &Survey| -> Vec<(i64, String)> {
        let name = |name: &Option<Arc<str>>| name.as_deref().map(part).unwrap_or_default().to_string();
        survey.threads.iter().map(|(id, (thread, _))| (*id, name(thread))).collect()
    };
    let (one, mut other) = (list(a), list(b));
    let mut roles: Vec<Role> = Vec::new();
    let mut left = Vec::new();
    for (id, name) in one {
        match other.iter().position(|(_, known)| *known == name) {
            Some(at) => roles.push(Role { name, a: Some(id), b: Some(other.remove(at).0) }),
            None => left.push((id, name)),
        }
    }
    let mut other = other.into_iter();
    for (id, name) in left {
        roles.push(Role { name, a: Some(id), b: other.next().map(|(id, _)| id) });
    }
    roles.extend(other.map(|(id, name)| Role { name, a: None, b: Some(id) }));
    let mut counts: HashMap<String, usize> = HashMap::new();
    for role in &mut roles {
        let count = counts.entry(role.name.clone()).or_default();
        *count += 1;
        let number = role.a.or(role.b).unwrap_or_default();
        role.name = match (role.name.as_str(), *count) {
            ("", _) => number.to_string(),
            (name, 1) => name.to_string(),
            (name, count) => format!("{name} #{count}"),
        };
    }
    roles
}

/// A thread's name without the number of its process.
fn part(name: &str) -> &str {
    name.rsplit_once(" (pid ").map_or(name, |(name, _)| name)
}

/// How steps are made of what was recorded.
#[derive(Debug, Clone, Copy, Default)]
pub struct Manner {
    /// Places are the same where function and text of the line are, wherever that is now.
    pub without_lines: bool,
}

/// The steps of one thread, read by a thread of their own, which ends with them.
#[derive(Debug)]
pub struct Steps {
    lots: Option<Receiver<io::Result<Vec<Step>>>>,
    now: std::vec::IntoIter<Step>,
    /// Why there are no more, where that is not the end of the record.
    pub failed: Option<io::Error>,
}

impl Steps {
    /// Of nobody, there are none.
    #[must_use]
    pub fn new(head: &Head, thread: Option<i64>, manner: Manner) -> Self {
        let lots = thread.map(|thread| {
            let (to, lots) = sync_channel(WAITING);
            let head = head.clone();
            std::thread::spawn(move || read(&head, thread, manner, &to));
            lots
        });
        Self { lots, now: Vec::new().into_iter(), failed: None }
    }
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(step) = self.now.next() {
                return Some(step);
            }
            match self.lots.as_ref()?.recv() {
                Ok(Ok(lot)) => self.now = lot.into_iter(),
                Ok(Err(error)) => {
                    self.failed = Some(error);
                    self.lots = None;
                }
                Err(_) => self.lots = None,
            }
        }
    }
}

fn read(head: &Head, thread: i64, manner: Manner, to: &SyncSender<io::Result<Vec<Step>>>) {
    let mut maker = Maker::new(head, manner);
    let mut lot = Vec::with_capacity(LOT);
    let done = with_calls(head, &mut |seen| {
        maker.order += 1;
        if seen.thread != thread {
            return true;
        }
        lot.push(maker.step(seen));
        lot.len() < LOT || to.send(Ok(std::mem::replace(&mut lot, Vec::with_capacity(LOT)))).is_ok()
    });
    // Whoever read may have had enough.
    let _ = to.send(done.map(|()| lot));
}

type Way = Arc<[HitFrame]>;

/// Makes steps of what was recorded.
#[derive(Debug)]
pub struct Maker<'a> {
    head: &'a Head,
    manner: Manner,
    /// Counts all that was recorded.
    pub order: u64,
    keys: HashMap<(Arc<str>, Arc<str>, u8), Arc<str>>,
    /// Ways as they were told, kept so that no other has the same address, and as they are compared.
    ways: HashMap<usize, (Way, Way)>,
    files: HashMap<String, Option<Vec<String>>>,
}

impl<'a> Maker<'a> {
    #[must_use]
    pub fn new(head: &'a Head, manner: Manner) -> Self {
        Self { head, manner, order: 0, keys: HashMap::new(), ways: HashMap::new(), files: HashMap::new() }
    }

    pub fn step(&mut self, seen: Occurrence) -> Step {
        let (kind, mark) = match (&seen.crossed, &seen.reason) {
            (Some(Crossed::Entered { .. }), _) => (Kind::Call, 1),
            (Some(Crossed::Left), _) => (Kind::Return, 2),
            (None, Some(Reason::Exception { .. })) => (Kind::Stop, 3),
            (None, Some(Reason::Signal { .. })) => (Kind::Stop, 4),
            _ => (Kind::Hit, 0),
        };
        let mut values = seen.values;
        match seen.reason {
            Some(Reason::Exception { text }) => values.insert(0, ("exception".into(), text)),
            Some(Reason::Signal { name, .. }) => values.insert(0, ("signal".into(), name)),
            _ => {}
        }
        Step {
            key: self.key(&seen.place, &seen.function, mark),
            kind,
            whole: seen.hit == 0 || seen.crossed.is_some(),
            frames: self.way(seen.frames),
            place: seen.place,
            function: seen.function,
            values,
            order: self.order,
            seq: seen.seq,
            hit: seen.hit,
        }
    }

    fn key(&mut self, place: &Arc<str>, function: &Arc<str>, mark: u8) -> Arc<str> {
        if mark == 0 && !self.manner.without_lines {
            return Arc::clone(place);
        }
        let known = (Arc::clone(place), Arc::clone(function), mark);
        if let Some(key) = self.keys.get(&known) {
            return Arc::clone(key);
        }
        let what = ["", "call ", "return ", "exception ", "signal "][usize::from(mark.min(4))];
        let key: Arc<str> = match (mark, self.manner.without_lines) {
            (1 | 2, true) => format!("{what}{function}").into(),
            (_, true) => format!("{what}{function}: {}", self.line(place)).into(),
            (1 | 2, false) => format!("{what}{function} {place}").into(),
            _ => format!("{what}{place}").into(),
        };
        if self.keys.len() < KNOWN {
            self.keys.insert(known, Arc::clone(&key));
        }
        key
    }

    /// The text of a line, if its file is as it was when the record was made.
    fn line(&mut self, place: &str) -> String {
        let Some((file, line)) = place.rsplit_once(':') else { return String::new() };
        let Some(index) = line.parse::<usize>().ok().and_then(|line| line.checked_sub(1)) else { return String::new() };
        if self.files.len() < KNOWN && !self.files.contains_key(file) {
            self.files.insert(file.to_string(), lines(&self.head.project.join(file), self.head.started));
        }
        let lines = self.files.get(file).and_then(Option::as_ref);
        lines.and_then(|lines| lines.get(index)).cloned().unwrap_or_default()
    }

    fn way(&mut self, frames: Way) -> Way {
        if frames.is_empty() {
            return frames;
        }
        let address = Arc::as_ptr(&frames).cast::<HitFrame>() as usize;
        if let Some((_, way)) = self.ways.get(&address) {
            return Arc::clone(way);
        }
        let short = |frame: &HitFrame| {
            if self.manner.without_lines {
                return HitFrame { function: frame.function.clone(), ..HitFrame::default() };
            }
            let short = |file: &String| {
                let path = Path::new(file);
                path.strip_prefix(&self.head.project).unwrap_or(path).display().to_string()
            };
            HitFrame { function: frame.function.clone(), file: frame.file.as_ref().map(short), line: frame.line }
        };
        let way: Way = frames.iter().map(short).collect();
        if self.ways.len() < KNOWN {
            self.ways.insert(address, (frames, Arc::clone(&way)));
        }
        way
    }
}

/// The lines of a file that nobody wrote to since.
fn lines(path: &Path, started: u64) -> Option<Vec<String>> {
    let found = fs::metadata(path).ok().filter(|found| found.is_file() && found.len() <= LONGEST_FILE)?;
    let written = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_millis();
    if written > u128::from(started) {
        return None;
    }
    let text = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&text).lines().map(|line| line.trim().to_string()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(threads: &[(i64, &str)]) -> Survey {
        let thread = |(id, name): &(i64, &str)| (*id, (Some(Arc::from(*name)).filter(|_| !name.is_empty()), 1));
        Survey { threads: threads.iter().map(thread).collect(), ..Survey::default() }
    }

    fn pairs(a: &[(i64, &str)], b: &[(i64, &str)]) -> Vec<(String, Option<i64>, Option<i64>)> {
        roles(&survey(a), &survey(b)).into_iter().map(|role| (role.name, role.a, role.b)).collect()
    }

    #[test]
    fn threads_are_paired_by_name_then_by_number() {
        let named = pairs(&[(1, "main"), (2, "reader"), (3, "writer")], &[(1, "main"), (7, "writer"), (9, "reader")]);
        let expected = [("main", 1, 1), ("reader", 2, 9), ("writer", 3, 7)];
        assert_eq!(named, expected.map(|(name, a, b)| (name.to_string(), Some(a), Some(b))));
        let same = pairs(&[(11, "pool"), (12, "pool")], &[(22, "pool"), (21, "pool")]);
        assert_eq!(same, [("pool".into(), Some(11), Some(21)), ("pool #2".into(), Some(12), Some(22))]);
        // Another program, or a process with another number.
        assert_eq!(pairs(&[(1, "good")], &[(5, "bad")]), [("good".into(), Some(1), Some(5))]);
        assert_eq!(pairs(&[(1, "w (pid 3)")], &[(2, "w (pid 4)")]), [("w".into(), Some(1), Some(2))]);
        let more = pairs(&[(1, "")], &[(1, ""), (2, "late")]);
        assert_eq!(more, [("1".into(), Some(1), Some(1)), ("late".into(), None, Some(2))]);
    }

    #[test]
    fn the_text_of_a_line_is_known_while_its_file_is_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.py"), "x\n  y = 1\n").unwrap();
        let written = fs::metadata(folder.path().join("a.py")).unwrap().modified().unwrap();
        let now = u64::try_from(written.duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap();
        let head = |started| Head { project: folder.path().to_path_buf(), started, ..Head::default() };
        let key = |head: &Head| {
            Maker::new(head, Manner { without_lines: true }).key(&"a.py:2".into(), &"f".into(), 0).to_string()
        };
        assert_eq!(key(&head(now + 1)), "f: y = 1");
        assert_eq!(key(&head(now - 10)), "f: ");
    }
}
