//! An agent's run once more, with the model's answers from a record: nobody is asked, nothing is paid.
//!
//! Answers come in their order, each thread by itself; what the agent asks now is compared with what it asked then
//! (`compare.rs`). From a call of the user's choice on the model itself may be asked again.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::compare::{Difference, differ};
use super::parts::{Kind, Part};
use super::record::without_secrets;
use crate::store::blobs;
use crate::wire::MAX_LINE;

/// A run that is to be repeated.
#[derive(Debug, Clone)]
pub struct Rerun {
    /// The folder of its record.
    pub folder: PathBuf,
    /// The first call for which the model itself is asked again; calls count from 1.
    pub fork_at: Option<u32>,
}

/// A call of the record.
#[derive(Debug, Clone, Default)]
pub struct Recorded {
    pub call: u32,
    hash: String,
    parts: Vec<(Kind, String)>,
    pub answer: Option<Answered>,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answered {
    pub status: u16,
    pub content_type: String,
    /// The name of the blob with its bytes; None where they were not kept.
    sha256: Option<String>,
}

/// What the record says to a question.
#[derive(Debug)]
pub enum Found {
    /// This was answered.
    Call(Recorded),
    /// The record has no more for this thread; it had so many calls.
    Over(usize),
}

/// All model calls of a record.
#[derive(Debug, Default)]
pub struct Recording {
    folder: PathBuf,
    pub fork_at: Option<u32>,
    threads: Vec<Thread>,
    /// Questions aside, and what else was asked, by path.
    asides: HashMap<String, Vec<Recorded>>,
    /// Differences that were told and come again with every call.
    told: Vec<Difference>,
}

#[derive(Debug, Default)]
struct Thread {
    name: String,
    calls: Vec<Recorded>,
    /// The thread of this run that it answers.
    claimed: Option<String>,
    next: usize,
    /// The last question of this run: asked again, it is answered again.
    asked: Option<String>,
}

impl Recording {
    /// Reads a record; a failure where none of its model calls has its answer there.
    pub fn read(rerun: &Rerun) -> io::Result<Self> {
        let mut recording = Self { folder: rerun.folder.clone(), fork_at: rerun.fork_at, ..Self::default() };
        let mut reading = Reading::default();
        for_each_event(&rerun.folder, |kind, data| reading.event(kind, data))?;
        for (key, call) in reading.done() {
            match key {
                Key::Thread(name) => match recording.threads.iter_mut().find(|thread| thread.name == name) {
                    Some(thread) => thread.calls.push(call),
                    None => recording.threads.push(Thread { name, calls: vec![call], ..Thread::default() }),
                },
                Key::Path(path) => recording.asides.entry(path).or_default().push(call),
            }
        }
        let is_answered = |call: &Recorded| call.answer.as_ref().is_some_and(|answer| answer.sha256.is_some());
        if !recording.threads.iter().flat_map(|thread| &thread.calls).any(is_answered) {
            let why = format!("{}: this record has no model calls with their answers", rerun.folder.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(recording)
    }

    /// Whether this call is for the model itself.
    #[must_use]
    pub fn is_live(&self, call: u32) -> bool {
        self.fork_at.is_some_and(|fork| call >= fork)
    }

    /// What was answered to the next call of a thread.
    pub fn next(&mut self, thread: &str, hash: &str) -> Found {
        let Some(at) = self.thread(thread, hash) else { return Found::Over(0) };
        let thread = &mut self.threads[at];
        let again =
            thread.asked.as_deref() == Some(hash) && thread.calls.get(thread.next).is_none_or(|next| next.hash != hash);
        let at = if again && thread.next > 0 { thread.next - 1 } else { thread.next };
        let Some(call) = thread.calls.get(at).cloned() else { return Found::Over(thread.calls.len()) };
        thread.next = at + 1;
        thread.asked = Some(hash.to_string());
        Found::Call(call)
    }

    /// The recorded thread that answers one of this run. The names of sub-agents are new each time: theirs is the one that
    /// begins with the same question, else the next.
    fn thread(&mut self, name: &str, hash: &str) -> Option<usize> {
        if let Some(at) = self.threads.iter().position(|thread| thread.claimed.as_deref() == Some(name)) {
            return Some(at);
        }
        let free = |thread: &Thread| thread.claimed.is_none() && (thread.name == "main") == (name == "main");
        let same = |thread: &Thread| thread.calls.first().is_some_and(|call| call.hash == hash);
        let at = self.threads.iter().position(|thread| free(thread) && same(thread));
        let at = at.or_else(|| self.threads.iter().position(free))?;
        self.threads[at].claimed = Some(name.to_string());
        Some(at)
    }

    /// What was answered to a question aside: the same one, else the next at its path, else the last there.
    pub fn aside(&mut self, path: &str, hash: &str) -> Option<Recorded> {
        let known = self.asides.get_mut(path)?;
        let at = known.iter().position(|call| !hash.is_empty() && call.hash == hash).unwrap_or(0);
        if known.len() > 1 { Some(known.remove(at)) } else { known.first().cloned() }
    }

    /// The bytes of an answer.
    pub fn bytes(&self, answer: &Answered) -> io::Result<Vec<u8>> {
        match &answer.sha256 {
            Some(sha256) => blobs::load(&self.folder, sha256),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "its bytes were not kept")),
        }
    }

    /// How this request differs from the recorded one, if it does. What every call carries, the instructions and the
    /// tools, is told once.
    pub fn difference(&mut self, recorded: &Recorded, now: &[(&Part, String)]) -> Option<Difference> {
        let load = |sha256: &str| blobs::load(&self.folder, sha256).unwrap_or_default();
        for kind in Kind::ALL {
            let then: Vec<&str> =
                recorded.parts.iter().filter(|(of, _)| *of == kind).map(|(_, sha256)| sha256.as_str()).collect();
            let here: Vec<&(&Part, String)> = now.iter().filter(|(part, _)| part.kind == kind).collect();
            for at in 0..then.len().max(here.len()) {
                if then.get(at).copied() == here.get(at).map(|(_, sha256)| sha256.as_str()) {
                    continue;
                }
                let before = then.get(at).map(|sha256| load(sha256));
                let after = here.get(at).map(|(part, _)| without_secrets(&part.bytes()));
                let difference = differ(kind, at, before.as_deref(), after.as_deref());
                let Some(difference) = difference else { continue };
                if kind == Kind::Message {
                    return Some(difference);
                }
                if !self.told.contains(&difference) {
                    self.told.push(difference.clone());
                    return Some(difference);
                }
            }
        }
        None
    }
}

/// Where an answer is looked for.
enum Key {
    Thread(String),
    Path(String),
}

/// A record in the reading.
#[derive(Default)]
struct Reading {
    /// In the order of the questions: span, where it belongs, and the call.
    calls: Vec<(String, Key, Recorded)>,
    /// The parts of each request, by its span.
    parts: HashMap<String, Vec<(Kind, String)>>,
}

impl Reading {
    fn event(&mut self, kind: &str, data: &Json) {
        let word = |member: &str| data[member].as_str().unwrap_or_default().to_string();
        match kind {
            "model.request" | "model.retry" => {
                let span = word("span");
                // One that a hook told of, or the agent itself: what was said to it went another way.
                if span.is_empty() {
                    return;
                }
                let parts = self.parts_of(&data["parts"]);
                self.parts.insert(span.clone(), parts.clone());
                let key = if data["aside"] == true { Key::Path(word("path")) } else { Key::Thread(word("thread")) };
                let call = data["call"].as_u64().and_then(|call| u32::try_from(call).ok()).unwrap_or(0);
                self.calls.push((span, key, Recorded { call, hash: word("hash"), parts, answer: None }));
            }
            "model.response" | "model.error" | "model.other" => {
                let body = &data["body"];
                let answer = Answered {
                    status: data["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(502),
                    content_type: body["type"].as_str().unwrap_or(super::dialect::JSON).to_string(),
                    sha256: body["ref"]["sha256"].as_str().map(str::to_string),
                };
                if kind == "model.other" {
                    let call = Recorded { answer: Some(answer), ..Recorded::default() };
                    self.calls.push((String::new(), Key::Path(word("path")), call));
                } else if let Some((.., call)) = self.calls.iter_mut().find(|(span, ..)| *span == data["request"]) {
                    call.answer = Some(answer);
                }
            }
            _ => {}
        }
    }

    fn parts_of(&self, said: &Json) -> Vec<(Kind, String)> {
        let before = said["after"].as_str().and_then(|span| self.parts.get(span));
        let keep = said["keep"].as_u64().and_then(|keep| usize::try_from(keep).ok()).unwrap_or(0);
        let kept = before.into_iter().flatten().take(keep).cloned();
        let new = said["list"].as_array().into_iter().flatten().filter_map(|part| {
            let kind = Kind::named(part["part"].as_str()?)?;
            Some((kind, part["ref"]["sha256"].as_str()?.to_string()))
        });
        kept.chain(new).collect()
    }

    /// A call that failed and was put again is the one that was answered at last.
    fn done(self) -> Vec<(Key, Recorded)> {
        let mut calls: Vec<(Key, Recorded)> = Vec::new();
        for (_, key, call) in self.calls {
            let name = if let Key::Thread(name) = &key { Some(name.clone()) } else { None };
            if let Some(name) = name {
                let last = calls.iter().rposition(|(key, _)| matches!(key, Key::Thread(known) if *known == name));
                let failed = |call: &Recorded| {
                    call.answer.as_ref().is_none_or(|answer| answer.status >= 400 || answer.sha256.is_none())
                };
                if let Some(last) = last
                    && failed(&calls[last].1)
                    && calls[last].1.hash == call.hash
                {
                    calls[last].1 = call;
                    continue;
                }
            }
            calls.push((key, call));
        }
        calls.retain(|(key, call)| matches!(key, Key::Thread(_)) || call.answer.is_some());
        calls
    }
}

/// Calls for each event about the model: its type and its data.
fn for_each_event(folder: &Path, mut with: impl FnMut(&str, &Json)) -> io::Result<()> {
    let path = folder.join("events.jsonl");
    let file =
        File::open(&path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.by_ref().take(MAX_LINE as u64).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let Ok(event) = serde_json::from_slice::<Json>(&line) else { continue };
        // An event of the tap itself, or one that a session put into another.
        for found in [&event, &event["data"]] {
            let kind = found["type"].as_str().or_else(|| found["event"].as_str()).unwrap_or_default();
            if kind.starts_with("model.") {
                let mut data = found["data"].clone();
                blobs::restore(folder, &mut data);
                with(kind, &data);
                break;
            }
        }
    }
}
