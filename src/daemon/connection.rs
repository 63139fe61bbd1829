//! One client: its requests in, its answers out.
//!
//! Each request is a task of its own, so that a wait holds up nobody, not even the same client. A connection's tasks
//! block on their command and on the client reading what it asked for; they are ended when the client closes its end.
//! A command must therefore bear being dropped at any `await`: what it set in motion goes on without it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::task::Poll;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Counted, Ending, Server};
use crate::commands::{Run, Running};
use crate::failure::Failure;
use crate::hub::asked::Asked;
use crate::hub::{Context, Hub, Part, control};
use crate::log;
use crate::wire::{Answer, Final, Line, MAX_LINE, PROTOCOL, Request, owns};

/// How many parts of a stream wait for a slow reader before its command does.
const PARTS: usize = 64;

type Writer = Arc<Mutex<OwnedWriteHalf>>;

/// Serves one client until it closes its end.
pub async fn serve(server: Arc<Server>, stream: UnixStream) {
    let own = rustix::process::geteuid().as_raw();
    let peer = match stream.peer_cred() {
        Ok(peer) if peer.uid() == own => peer.pid().and_then(|pid| u32::try_from(pid).ok()),
        Ok(peer) => {
            log::warn(format!("user {} (pid {}) was turned away", peer.uid(), peer.pid().unwrap_or(0)));
            return;
        }
        Err(error) => {
            log::warn(format!("a client that can't be identified was turned away: {error}"));
            return;
        }
    };
    let _counted = Counted::new(&server.connections);
    let (reader, writer) = stream.into_split();
    let mut reader = BufReader::new(reader);
    let writer = Arc::new(Mutex::new(writer));
    let mut tasks = JoinSet::new();
    let mut tokens: HashMap<u64, CancellationToken> = HashMap::new();
    while let Some(line) = read_line(&mut reader).await {
        while tasks.try_join_next().is_some() {}
        match line.and_then(|line| read_request(&line)) {
            Ok(request) if request.cmd == "interrupt" => {
                if let Some(token) = request.args["id"].as_u64().and_then(|id| tokens.remove(&id)) {
                    token.cancel();
                }
            }
            Ok(mut request) => {
                let starts = (server.find)(&request.cmd).is_some_and(|entry| entry.spawns);
                server.hub.identify(&mut request.ctx, peer, starts);
                if tasks.is_empty() {
                    tokens.clear();
                }
                let token = CancellationToken::new();
                tokens.insert(request.id, token.clone());
                tasks.spawn(answer(Arc::clone(&server), request, Arc::clone(&writer), token));
            }
            Err((failure, Recovery::Close)) => {
                refuse(&writer, 0, failure).await;
                break;
            }
            Err((failure, Recovery::GoOn { id })) => refuse(&writer, id, failure).await,
        }
    }
}

/// Whether a connection is of use after a line that was no request.
enum Recovery {
    Close,
    GoOn { id: u64 },
}

/// The next line; `None` when the client has closed its end.
async fn read_line(reader: &mut BufReader<OwnedReadHalf>) -> Option<Result<Vec<u8>, (Failure, Recovery)>> {
    let mut line = Vec::new();
    let read = reader.take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line).await;
    match read {
        Ok(_) if line.ends_with(b"\n") => Some(Ok(line)),
        Ok(_) if line.len() > MAX_LINE => {
            let failure = Failure::usage(format!("a request may have at most {MAX_LINE} bytes"));
            Some(Err((failure, Recovery::Close)))
        }
        // The end, or a line torn by a client that died over it.
        Ok(_) | Err(_) => None,
    }
}

fn read_request(line: &[u8]) -> Result<Request, (Failure, Recovery)> {
    #[derive(Deserialize)]
    struct Numbered {
        id: u64,
    }
    serde_json::from_slice(line).map_err(|error| {
        let id = serde_json::from_slice::<Numbered>(line).map_or(0, |numbered| numbered.id);
        let failure = Failure::usage("the line is not a request")
            .cause(error)
            .hint(r#"a request looks like {"v":1,"id":1,"cmd":"status","args":{},"ctx":{"cwd":"/"}}, on one line"#);
        (failure, Recovery::GoOn { id })
    })
}

async fn refuse(writer: &Writer, id: u64, failure: Failure) {
    log::warn(format!("bad request: {failure}"));
    write(writer, &Line::Final(Final { id, answer: Answer::new(Err(failure)) })).await;
}

/// Writes one line with one call. A client that is gone is noticed by the reader.
async fn write(writer: &Writer, line: &Line) {
    write_bytes(writer, encode(line)).await;
}

async fn write_bytes(writer: &Writer, mut bytes: Vec<u8>) {
    bytes.push(b'\n');
    let _ = writer.lock().await.write_all(&bytes).await;
}

fn encode(line: &Line) -> Vec<u8> {
    let failure = match serde_json::to_vec(line) {
        Ok(bytes) if bytes.len() <= MAX_LINE => return bytes,
        Ok(bytes) => Failure::refused(format!("the answer has {} bytes, more than a client reads", bytes.len()))
            .hint("ask for less: fewer items, less depth, a range"),
        Err(error) => Failure::internal(format!("an answer can't be written: {error}")),
    };
    let id = match line {
        Line::Progress { id, .. } | Line::Event { id, .. } | Line::Final(Final { id, .. }) => *id,
    };
    let instead = match line {
        Line::Final(_) => Line::Final(Final { id, answer: Answer::new(Err(failure)) }),
        _ => Line::Progress { id, text: failure.message, passing: false },
    };
    serde_json::to_vec(&instead).unwrap_or_default()
}

async fn answer(server: Arc<Server>, request: Request, writer: Writer, cancelled: CancellationToken) {
    let _counted = Counted::new(&server.requests);
    let started = Instant::now();
    let (id, name, who) = (request.id, request.cmd.clone(), request.ctx.who.clone());
    log::payload(|| format!("{who} #{id} {name} {}", request.args));
    let mut told = None;
    let mut asked = None;
    let answer = match name.as_str() {
        "hello" => Answer::new(Ok(hello(&server))),
        "lease" => {
            let who = request.args["who"].as_str().unwrap_or_default().to_string();
            let _lease = Lease::new(Arc::clone(&server.hub), who);
            std::future::pending().await
        }
        "records" => Answer::new(Ok(records(&server, &request).await)),
        "shutdown" => Answer::new(match server.hub.may_end_all(&request.ctx) {
            Ok(()) => shutdown(&server, &request.args, &mut told).await,
            Err(failure) => Err(failure),
        }),
        _ if request.v != PROTOCOL => Answer::new(Err(mismatch(request.v))),
        _ => carry_out(&server, request, &writer, cancelled, &mut asked).await,
    };
    if name != "hello" {
        let outcome = answer.error.as_ref().map_or("ok".to_string(), |failure| format!("{:?}", failure.kind));
        log::info(format!("{who} #{id} {name}: {outcome}, {} ms", started.elapsed().as_millis()));
    }
    log::payload(|| format!("{who} #{id} {name} -> {}", serde_json::to_string(&answer).unwrap_or_default()));
    let line = Line::Final(Final { id, answer });
    let bytes = encode(&line);
    if let (Some(asked), Line::Final(Final { answer, .. })) = (asked, line) {
        // What was answered has happened: it is in the records before anybody reads the answer.
        asked.answered(answer);
        asked.settled().await;
    }
    write_bytes(&writer, bytes).await;
    if let Some(told) = told {
        let _ = told.send(());
    }
}

/// Held while the connection lives that it was asked for on.
struct Lease {
    hub: Arc<Hub>,
    who: String,
}

impl Lease {
    fn new(hub: Arc<Hub>, who: String) -> Self {
        hub.lease(&who, 1);
        Self { hub, who }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let gone = self.hub.lease(&self.who, -1) == 0;
        if !gone || self.hub.config.mcp_on_close() == "keep" || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (hub, who) = (Arc::clone(&self.hub), std::mem::take(&mut self.who));
        tokio::spawn(async move {
            tokio::time::sleep(hub.config.mcp_grace()).await;
            if hub.lease(&who, 0) > 0 {
                return;
            }
            for live in hub.sessions().into_iter().filter(|live| owns(&who, &live.owner)) {
                log::info(format!("{} is ended: {who} has gone", live.alias));
                live.note(&format!("ended, because {who} has gone"));
                hub.end(&live, false).await;
            }
        });
    }
}

/// The records of the sessions this daemon has, and which of them the caller's commands are about; all that happened
/// so far is in them.
async fn records(server: &Server, request: &Request) -> Value {
    server.hub.flush().await;
    let meant = server.hub.meant(&request.ctx).ok();
    let live = meant.as_ref().is_some_and(|live| live.state().is_live());
    let meant = meant.and_then(|live| live.record.clone());
    let all: Vec<String> = server.hub.sessions().iter().filter_map(|live| live.record.clone()).collect();
    json!({ "meant": meant, "live": live, "all": all, "state": server.hub.paths.state })
}

/// Who this daemon is; answered whatever protocol the client speaks.
fn hello(server: &Server) -> Value {
    json!({
        "protocol": PROTOCOL,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "sessions": server.hub.live_sessions(),
        "state": server.hub.paths.state,
    })
}

fn mismatch(theirs: u32) -> Failure {
    Failure::refused(format!("the daemon speaks protocol {PROTOCOL}, the client {theirs}"))
        .hint("`bugeye daemon stop` ends the daemon and its sessions; the next command starts one that fits")
}

/// Ends the sessions and, once this is answered, the daemon.
async fn shutdown(server: &Server, args: &Value, told: &mut Option<oneshot::Sender<()>>) -> Result<Value, Failure> {
    let sessions = server.hub.live_sessions();
    if sessions > 0 && args["if_idle"] == Value::Bool(true) {
        return Err(Failure::wrong_state(format!("the daemon has {sessions} live sessions"))
            .hint("`bugeye daemon stop` ends them"));
    }
    let (ended, wait) = oneshot::channel();
    let (sender, answered) = oneshot::channel();
    let already = || Failure::wrong_state("the daemon is ending already");
    server.endings.try_send(Ending { ended, answered }).map_err(|_| already())?;
    *told = Some(sender);
    let sessions = wait.await.map_err(|_| already())?;
    Ok(json!({ "pid": std::process::id(), "sessions": sessions }))
}

async fn carry_out(
    server: &Server,
    request: Request,
    writer: &Writer,
    cancelled: CancellationToken,
    told: &mut Option<Arc<Asked>>,
) -> Answer {
    let found = (server.find)(&request.cmd).map(|entry| (entry, entry.run));
    let Some((entry, Run::Daemon(run))) = found else {
        return Answer::new(Err(Failure::usage(format!("the daemon has no command \"{}\"", request.cmd))
            .hint("a daemon of another version may be running: `bugeye daemon stop`")));
    };
    refresh(server);
    let (stream, mut parts) = mpsc::channel(PARTS);
    let about = Arc::default();
    let hub = Arc::clone(&server.hub);
    let asked = Arc::new(Asked::new(&request));
    let context =
        Context { hub, caller: request.ctx, stream, about: Arc::clone(&about), cancelled, asked: Arc::clone(&asked) };
    let refused = control::check(&context, entry, &request.args).err();
    let mut running = std::pin::pin!(match refused {
        Some(failure) => guarded(Box::pin(std::future::ready(Err(failure)))),
        None => guarded(run(request.args, context)),
    });
    let mut open = true;
    let result = loop {
        tokio::select! {
            biased;
            part = parts.recv(), if open => match part {
                Some(part) => write(writer, &to_line(request.id, part)).await,
                None => open = false,
            },
            result = &mut running => break result,
        }
    };
    while let Ok(part) = parts.try_recv() {
        write(writer, &to_line(request.id, part)).await;
    }
    let mut answer = Answer::new(result);
    *told = Some(asked);
    (answer.session, answer.via) = about.lock().unwrap_or_else(PoisonError::into_inner).clone();
    answer
}

/// Reads the settings again, where they have changed.
pub(super) fn refresh(server: &Server) {
    match server.hub.config.refresh() {
        Ok(true) => server.hub.config.register_adapters(),
        Ok(false) => {}
        Err(failure) => log::warn(format!("the settings stay as they were: {failure}")),
    }
}

fn to_line(id: u64, part: Part) -> Line {
    match part {
        Part::Progress(text) => Line::Progress { id, text, passing: false },
        Part::Passing(text) => Line::Progress { id, text, passing: true },
        Part::Event(data) => Line::Event { id, data },
    }
}

/// A defect in one command ends that command, not everybody's sessions.
pub(super) async fn guarded(mut running: Running) -> Result<Value, Failure> {
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx))) {
        Ok(poll) => poll,
        Err(_) => Poll::Ready(Err(Failure::internal("the command met a defect of Bugeye")
            .hint("`bugeye daemon log` shows where; please report it"))),
    })
    .await
}

#[cfg(test)]
mod tests;
