//! Commands by file: what any program of the same user appends to a live session's `commands.jsonl` is carried out, in
//! order and once, and answered by an event of its record.
//!
//! One task per session, which blocks on the bell, on the session's end and on its own commands, and ends with the
//! session: what is appended later is not carried out.

mod lines;
mod reader;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::{guarded, refresh};
use super::{Counted, Server};
use crate::agent::launch;
use crate::bell::Bell;
use crate::commands::{Entry, Run};
use crate::failure::Failure;
use crate::hub::asked::Asked;
use crate::hub::{Context, Live, Part};
use crate::log;
use crate::model::SessionState;
use crate::render::{Page, cut};
use crate::store::read;
use crate::wire::{Answer, Caller, PROTOCOL, Request};
use lines::{Asking, Command};
use reader::{Inbox, Next};

/// The longest text of an answer in the record.
const MAX_TEXT: usize = 16 * 1024;
/// The most commands of one session that are under way at once.
const MOST: usize = 8;
/// Parts of a stream that wait to be put into the text.
const PARTS: usize = 64;

/// Serves the files of all sessions, those to come too; ends with the daemon.
pub async fn serve_all(server: Arc<Server>) {
    let bell = Arc::new(Bell::start());
    let mut begun = server.hub.begun();
    let mut served: HashSet<String> = HashSet::new();
    loop {
        begun.borrow_and_update();
        let sessions = server.hub.sessions();
        served.retain(|alias| sessions.iter().any(|live| live.alias == *alias));
        for live in sessions {
            if served.insert(live.alias.clone()) {
                tokio::spawn(serve(Arc::clone(&server), Arc::clone(&bell), live));
            }
        }
        if begun.changed().await.is_err() {
            return;
        }
    }
}

/// One session's file, and what of it is under way.
struct Served {
    server: Arc<Server>,
    live: Arc<Live>,
    inbox: Inbox,
    running: JoinSet<String>,
}

async fn serve(server: Arc<Server>, bell: Arc<Bell>, live: Arc<Live>) {
    let Some(record) = &live.record else { return };
    let blueprint = &live.blueprint;
    // An agent that somebody else wrote could let itself go on. One that speaks our protocol is meant to.
    let agent = live.adapter.quirks.agents && launch::is_known(&blueprint.words);
    if agent && !blueprint.inbox && !blueprint.allow_self {
        return;
    }
    let mut finished = live.handle.finished.clone();
    // Whatever is asked of a session before it can answer would be answered with that.
    let mut state = live.handle.snapshot.clone();
    tokio::select! {
        _ = state.wait_for(|now| now.state != SessionState::Starting) => {}
        _ = finished.wait_for(|done| *done) => {}
    }
    let (inbox, doubts) = Inbox::open(&read::root(&server.hub.paths.state).join(record));
    let path = inbox.path();
    let mut served = Served { server, live, inbox, running: JoinSet::new() };
    for id in doubts {
        let failure = Failure::lost("whether it was carried out is not known: its reader ended meanwhile");
        served.tell(&id, "unknown", &failure);
    }
    let mut wait = bell.wait();
    let mut ended = false;
    loop {
        let rings = bell.add(&path);
        served.take().await;
        if ended && served.running.is_empty() {
            break;
        }
        tokio::select! {
            Some(id) = served.running.join_next() => served.over(id),
            _ = finished.wait_for(|done| *done), if !ended => ended = true,
            () = wait.rung(rings), if !ended => {}
        }
    }
    bell.remove(&path);
}

impl Served {
    /// Carries out what there is, as far as it can begin.
    async fn take(&mut self) {
        loop {
            let line = match self.inbox.next() {
                Next::Line(line) => line,
                Next::Note(note) => {
                    log::warn(format!("{}: {note}", self.live.alias));
                    self.live.note(&note);
                    continue;
                }
                Next::Nothing => return,
            };
            if line.text.as_ref().is_some_and(|text| text.trim_ascii().is_empty()) {
                continue;
            }
            let asking = lines::understand(&line, self.live.adapter.quirks.agents);
            let most = if asking.waits_for_none() { MOST } else { 1 };
            while self.running.len() >= most {
                let Some(id) = self.running.join_next().await else { break };
                self.over(id);
            }
            match self.inbox.begin(&line, &asking.id) {
                Ok(true) => {}
                Ok(false) => {
                    self.live.note(&format!("the command {} was taken by another reader", asking.id));
                    continue;
                }
                Err(error) => {
                    let failure = Failure::refused(format!("not carried out: commands.done can't be written: {error}"));
                    self.tell(&asking.id, &asking.name, &failure);
                    continue;
                }
            }
            let Asking { id, name, command } = asking;
            match command {
                Ok(command) => {
                    let (server, live) = (Arc::clone(&self.server), Arc::clone(&self.live));
                    self.running.spawn(async move {
                        carry_out(&server, &live, &id, command).await;
                        // Before it counts as answered, its answer can be read.
                        server.hub.flush().await;
                        id
                    });
                }
                Err(failure) => {
                    self.tell(&id, &name, &failure);
                    self.server.hub.flush().await;
                    self.inbox.end(&id);
                }
            }
        }
    }

    fn over(&mut self, id: Result<String, tokio::task::JoinError>) {
        if let Ok(id) = id {
            self.inbox.end(&id);
        }
    }

    /// Answers a line that is not carried out.
    fn tell(&self, id: &str, name: &str, failure: &Failure) {
        let Some(journal) = &self.live.journal else { return };
        let failure = failure.clone().bounded();
        let data = json!({
            "id": id, "name": name, "who": format!("inbox:{id}"), "ok": false,
            "error": { "kind": failure.kind, "message": failure.message, "hints": failure.hints },
            "ms": 0,
        });
        log::info(format!("inbox:{id} {name}: {:?}", failure.kind));
        journal.append("command.result", None, data);
    }
}

/// Carries out one command, as if it came from a client, with this session fixed.
async fn carry_out(server: &Server, live: &Live, id: &str, command: Command) {
    let _counted = Counted::new(&server.requests);
    let Command { entry, args, typed } = command;
    let Run::Daemon(run) = entry.run else { return };
    refresh(server);
    let ctx = Caller {
        cwd: live.blueprint.cwd.clone(),
        session: live.record.clone(),
        who: format!("inbox:{id}"),
        typed,
        ..Caller::default()
    };
    let request = Request { v: PROTOCOL, id: 0, cmd: entry.name.to_string(), args, ctx };
    let asked = Arc::new(Asked::new(&request).identified(id));
    if let Some(journal) = &live.journal {
        asked.tell(journal, live.handle.snapshot.borrow().stops);
    }
    let (stream, mut parts) = mpsc::channel(PARTS);
    let about = Arc::default();
    let context = Context {
        hub: Arc::clone(&server.hub),
        caller: request.ctx,
        stream,
        about: Arc::clone(&about),
        cancelled: CancellationToken::new(),
        asked: Arc::clone(&asked),
    };
    let mut page = Page::new(live.blueprint.cwd.clone());
    let mut running = std::pin::pin!(guarded(run(request.args, context)));
    let mut open = true;
    let result = loop {
        tokio::select! {
            biased;
            part = parts.recv(), if open => match part {
                Some(part) => show(entry, part, &mut page),
                None => open = false,
            },
            result = &mut running => break result,
        }
    };
    while let Ok(part) = parts.try_recv() {
        show(entry, part, &mut page);
    }
    (page.session, page.via) = crate::hub::lock(&about).clone();
    let kept = result.as_ref().ok().filter(|_| asked.reads()).cloned();
    let result = result.and_then(|result| (entry.render)(result, &mut page));
    let outcome = result.as_ref().map_or_else(|failure| format!("{:?}", failure.kind), |_| "ok".into());
    log::info(format!("inbox:{id} {}: {outcome}", entry.name));
    match result {
        Ok(_) => asked.answered_with(kept, &bounded(page.text())),
        Err(failure) => asked.answered(Answer::new(Err(failure))),
    }
}

fn show(entry: &Entry, part: Part, page: &mut Page) {
    // What is beyond the limit is not kept only to be cut.
    if let Part::Event(data) = part
        && page.text().len() <= MAX_TEXT
    {
        (entry.render_event)(&data, page);
    }
}

fn bounded(text: &str) -> String {
    match cut(text, MAX_TEXT) {
        (text, 0) => text.to_string(),
        (kept, left) => format!("{kept}… ({left} characters more)\n"),
    }
}
