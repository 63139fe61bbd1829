//! Drives one session: adapter bytes become inputs, effects become I/O.
//!
//! One task owns the [`Session`] and everything it touches. It blocks only on its own `select!`: commands, adapter
//! frames, the adapter's error stream, the program's streams and the nearest deadline. A second task writes to the
//! adapter, so that an adapter that does not read can't hold the session up. Both end with the session's handle.

mod handle;
mod notes;
mod pipes;

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::dap::{Codec, FrameError, Message};
use crate::failure::Failure;
use crate::log;
use crate::model::{Binding, Hit, SessionState};
use crate::output::Ring;
use crate::platform;
use crate::process::{Streams, Supervised};
use crate::session::{Answer, Effect, Input, KernelExit, Op, OpId, Session, Snapshot, Stream, Timer};
use crate::store::Journal;
use handle::Control;
pub use handle::Handle;
use pipes::{Tap, end_of, ended, readable, sleep_until, writable};

/// How much of the adapter's error stream is kept for a failure's cause.
const STDERR_TAIL: usize = 2000;
/// How long an adapter may take to leave by itself once it was told to.
const LEAVING: Duration = Duration::from_millis(400);
/// How long an adapter whose stream ended is waited for, to tell how it ended.
const TELLING: Duration = Duration::from_secs(1);
/// The same for an adapter that must let go of somebody else's process first.
const LETTING_GO: Duration = Duration::from_secs(4);

/// How long an adapter may take to notice that its program has ended.
const NOTICING: Duration = Duration::from_secs(1);

/// What a runner is started with.
#[derive(Debug)]
pub struct Parts {
    pub session: Session,
    pub supervised: Supervised,
    pub streams: Streams,
    pub journal: Option<Journal>,
    pub output: Ring,
    /// The client's environment, for children that the adapter asks for.
    pub env: Vec<(String, String)>,
    pub attached: bool,
    /// What is no part of the program's standard error.
    pub stderr_noise: &'static [&'static str],
    /// Told when a breakpoint that was to stop once has done so.
    pub spent: mpsc::UnboundedSender<u32>,
}

/// Starts the session's task.
#[must_use]
pub fn start(parts: Parts) -> Handle {
    let (control, commands) = mpsc::unbounded_channel();
    let (publish, snapshot) = watch::channel(parts.session.snapshot());
    let (announce, printed) = watch::channel(0);
    let (finish, finished) = watch::channel(false);
    let output = Arc::new(Mutex::new(parts.output));
    let (to_adapter, outgoing) = mpsc::unbounded_channel();
    tokio::spawn(write_to_adapter(parts.streams.adapter_in, outgoing));
    let supervisor = parts.supervised.pid();
    let runner = Runner {
        session: parts.session,
        supervised: Arc::new(parts.supervised),
        commands,
        to_adapter: Some(to_adapter),
        adapter_out: Some(parts.streams.adapter_out),
        adapter_err: Some(parts.streams.adapter_err),
        stdin: parts.streams.stdin,
        stdout: Tap::new(parts.streams.stdout, Stream::Stdout, &[]),
        stderr: Tap::new(parts.streams.stderr, Stream::Stderr, parts.stderr_noise),
        to_stdin: Vec::new(),
        close_stdin: false,
        frames: BytesMut::with_capacity(64 * 1024),
        codec: Codec::default(),
        stderr_tail: String::new(),
        waiting: HashMap::new(),
        deadlines: BTreeMap::new(),
        late: Vec::new(),
        end: None,
        noticing: None,
        watched: None,
        journal: parts.journal,
        asked: HashMap::new(),
        told: BTreeMap::new(),
        env: parts.env,
        attached: parts.attached,
        spent: parts.spent,
        hits: None,
        began: Instant::now(),
        output: output.clone(),
        announce,
        publish,
        finishing: None,
        terminals: tokio::task::JoinSet::new(),
    };
    tokio::spawn(runner.run(finish));
    Handle { control, snapshot, output, printed, finished, supervisor, next: 1.into() }
}

struct Runner {
    session: Session,
    supervised: Arc<Supervised>,
    commands: mpsc::UnboundedReceiver<Control>,
    to_adapter: Option<mpsc::UnboundedSender<Message>>,
    adapter_out: Option<Receiver>,
    adapter_err: Option<Receiver>,
    stdin: Option<Sender>,
    stdout: Tap,
    stderr: Tap,
    to_stdin: Vec<u8>,
    close_stdin: bool,
    frames: BytesMut,
    codec: Codec,
    stderr_tail: String,
    waiting: HashMap<OpId, oneshot::Sender<Result<Answer, Failure>>>,
    deadlines: BTreeMap<Timer, Instant>,
    /// Operations that came when the program had ended and its adapter had not noticed.
    late: Vec<(OpId, Op)>,
    /// Readable when the program has ended; taken then.
    end: Option<AsyncFd<OwnedFd>>,
    /// Until when the adapter may notice that.
    noticing: Option<Instant>,
    watched: Option<platform::Watched>,
    journal: Option<Journal>,
    /// Operations that ask for values, for the record.
    asked: HashMap<OpId, notes::Asked>,
    /// Breakpoints as the record has them.
    told: BTreeMap<u32, Binding>,
    env: Vec<(String, String)>,
    attached: bool,
    spent: mpsc::UnboundedSender<u32>,
    hits: Option<mpsc::UnboundedSender<Hit>>,
    began: Instant,
    output: Arc<Mutex<Ring>>,
    announce: watch::Sender<u64>,
    publish: watch::Sender<Snapshot>,
    /// The program is gone, or to be spared.
    finishing: Option<bool>,
    terminals: tokio::task::JoinSet<(i64, Result<u32, Failure>)>,
}

impl Runner {
    async fn run(mut self, finished: watch::Sender<bool>) {
        while self.finishing.is_none() {
            self.step().await;
        }
        self.finish().await;
        let _ = finished.send(true);
        // The journal is closed: nothing more happens. Later questions are answered from what is known.
        self.journal = None;
        while let Some(control) = self.commands.recv().await {
            self.on_control(control);
        }
    }

    /// Waits for one thing and handles it.
    async fn step(&mut self) {
        let mut buffer = [0u8; 16 * 1024];
        let deadline = self.deadlines.values().copied().chain(self.noticing).min();
        tokio::select! {
            control = self.commands.recv() => match control {
                Some(control) => self.on_control(control),
                // Nobody can ask any more: the session ends.
                None => self.finishing = Some(self.attached),
            },
            () = readable(self.adapter_out.as_ref()) => self.read_adapter().await,
            () = readable(self.adapter_err.as_ref()) => self.read_adapter_errors(&mut buffer),
            () = self.stdout.readable() => self.read_output(&mut buffer, false),
            () = self.stderr.readable() => self.read_output(&mut buffer, true),
            () = writable(self.stdin.as_ref(), !self.to_stdin.is_empty()) => self.write_stdin(),
            Some(done) = self.terminals.join_next() => {
                if let Ok((request, pid)) = done {
                    let pid = pid.map_err(|failure| failure.to_string());
                    self.feed(Input::InTerminal { request, pid });
                }
            }
            () = ended(self.end.as_ref()) => {
                self.end = None;
                self.noticing = Some(Instant::now() + NOTICING);
            }
            () = sleep_until(deadline) => self.on_deadline(),
        }
    }

    fn feed(&mut self, input: Input) {
        let effects = self.session.handle(input);
        self.carry_out(effects);
        let snapshot = self.session.snapshot();
        if let Some(journal) = &self.journal
            && snapshot.hits != self.told
        {
            for news in notes::breakpoints(&mut self.told, self.session.wishes(), &snapshot.hits) {
                journal.append("breakpoint", None, news);
            }
        }
        self.publish.send_if_modified(|old| {
            let changed = *old != snapshot;
            if changed {
                *old = snapshot;
            }
            changed
        });
        if !self.late.is_empty() && !self.session.snapshot().state.is_live() {
            self.hand_over_late();
        }
    }

    /// The program has ended and its adapter has not noticed: what is asked of it now could end the adapter too, and the
    /// answer would be that it was lost. Or the supervisor has, and all below it is about to. The news is on its way.
    fn must_wait_for_the_end(&self, op: &Op) -> bool {
        let state = self.session.snapshot().state;
        let still = matches!(state, SessionState::Held | SessionState::Stopped);
        let ended = still && self.watched.as_ref().is_some_and(platform::Watched::has_ended);
        !matches!(op, Op::Stop { .. }) && (ended || (state.is_live() && self.supervised.has_died()))
    }

    fn hand_over_late(&mut self) {
        for (id, op) in std::mem::take(&mut self.late) {
            self.feed(Input::Op(id, op));
        }
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(message) => {
                    if let Some(to_adapter) = &self.to_adapter {
                        log::payload(|| format!("> {}", without_environment(&message)));
                        let _ = to_adapter.send(message);
                    }
                }
                Effect::Answer(op, answer) => {
                    if let (Some(asked), Some(journal)) = (self.asked.remove(&op), &self.journal) {
                        for (thread, data) in asked.answered(&answer) {
                            journal.append("eval", thread, data);
                        }
                    }
                    if let Some(waiting) = self.waiting.remove(&op) {
                        let _ = waiting.send(answer);
                    }
                }
                Effect::Arm(timer, after) => {
                    self.deadlines.insert(timer, Instant::now() + after);
                }
                Effect::Disarm(timer) => {
                    self.deadlines.remove(&timer);
                }
                Effect::Drain => self.drain(),
                Effect::Output { stream, text } => self.print(stream, &text),
                Effect::Watch { pid } => {
                    self.watched = platform::watch(pid);
                    self.end = self.watched.as_ref().and_then(end_of);
                }
                Effect::AskExit => {
                    let exit = self.watched.as_ref().and_then(platform::Watched::exit).and_then(|exit| {
                        match (exit.code, exit.signal) {
                            (_, Some(signal)) => Some(KernelExit::Signal(platform::signal_name(signal))),
                            (Some(code), _) => Some(KernelExit::Code(i64::from(code))),
                            _ => None,
                        }
                    });
                    let effects = self.session.handle(Input::Exit(exit));
                    self.carry_out(effects);
                }
                Effect::RunInTerminal { request, argv, env, cwd } => self.run_in_terminal(request, argv, env, cwd),
                Effect::Record { kind, thread, data } => {
                    if let Some(journal) = &self.journal {
                        if let Some(file) = notes::shown_file(kind, &data) {
                            journal.source(file);
                        }
                        journal.append(kind, thread, data);
                    }
                }
                Effect::Hit(mut hit) => {
                    hit.micros = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
                    if let Some(hits) = &self.hits {
                        let _ = hits.send(hit);
                    }
                }
                Effect::Spent(id) => {
                    let _ = self.spent.send(id);
                }
                Effect::Finish { spare } => self.finishing = Some(spare),
            }
        }
    }

    fn on_control(&mut self, control: Control) {
        match control {
            Control::Op(id, op, answer) => {
                self.waiting.insert(id, answer);
                self.asked.extend(notes::Asked::of(&op).map(|asked| (id, asked)));
                if self.must_wait_for_the_end(&op) {
                    self.late.push((id, *op));
                } else {
                    self.feed(Input::Op(id, *op));
                }
            }
            Control::Forget(id) => {
                self.waiting.remove(&id);
                self.asked.remove(&id);
                self.late.retain(|(late, _)| *late != id);
                self.feed(Input::Forget(id));
            }
            Control::Input(bytes, done) => {
                let result = match &self.stdin {
                    Some(_) if !self.close_stdin => {
                        self.to_stdin.extend_from_slice(&bytes);
                        self.write_stdin();
                        Ok(())
                    }
                    _ => Err(no_stdin(self.attached, self.close_stdin)),
                };
                let _ = done.send(result);
            }
            Control::Collect(hits) => {
                self.hits = Some(hits);
                self.began = Instant::now();
            }
            Control::EndInput(done) => {
                let result = if self.stdin.is_some() { Ok(()) } else { Err(no_stdin(self.attached, self.close_stdin)) };
                self.close_stdin = true;
                self.end_stdin_when_written();
                let _ = done.send(result);
            }
        }
    }

    fn write_stdin(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        while !self.to_stdin.is_empty() {
            match stdin.try_write(&self.to_stdin) {
                Ok(written) => {
                    self.to_stdin.drain(..written);
                }
                Err(_) => break,
            }
        }
        self.end_stdin_when_written();
    }

    /// The end of input is told when all before it is read in, and only once the program has opened its side: a FIFO
    /// nobody holds open would block the program's start.
    fn end_stdin_when_written(&mut self) {
        let started = self.session.snapshot().pid.is_some();
        if self.close_stdin && self.to_stdin.is_empty() && started && self.stdin.take().is_some() {
            self.supervised.close_stdin();
        }
    }

    async fn read_adapter(&mut self) {
        let Some(pipe) = &self.adapter_out else { return };
        self.frames.reserve(16 * 1024);
        match pipe.try_read_buf(&mut self.frames) {
            Ok(0) => return self.adapter_gone(None).await,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
            Err(error) => return self.adapter_gone(Some(error.into())).await,
        }
        loop {
            match self.codec.decode(&mut self.frames) {
                Ok(Some(message)) => {
                    log::payload(|| format!("< {}", message.to_json(0)));
                    self.feed(Input::Adapter(message));
                    if self.close_stdin {
                        self.end_stdin_when_written();
                    }
                }
                Ok(None) => return,
                Err(error) => return self.adapter_gone(Some(error)).await,
            }
        }
    }

    /// The adapter's stream ended, or can't be read on.
    async fn adapter_gone(&mut self, error: Option<FrameError>) {
        self.adapter_out = None;
        let exit = match error {
            Some(error) => Some(error.to_string()),
            None => tokio::time::timeout(TELLING, self.supervised.adapter_exit()).await.ok().flatten(),
        };
        let mut buffer = [0u8; 4096];
        self.read_adapter_errors(&mut buffer);
        let stderr_tail = std::mem::take(&mut self.stderr_tail);
        // It died of its program's end, and how that ended is known.
        let of_the_end = exit.as_deref().is_some_and(|exit| exit.contains("SIGPIPE"));
        if of_the_end && self.watched.as_ref().is_some_and(platform::Watched::has_ended) {
            self.feed(Input::Unnoticed);
        }
        self.feed(Input::Gone { adapter_exit: exit, stderr_tail });
    }

    fn read_adapter_errors(&mut self, buffer: &mut [u8]) {
        let Some(pipe) = &self.adapter_err else { return };
        match pipe.try_read(buffer) {
            Ok(0) => self.adapter_err = None,
            Ok(read) => {
                let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
                log::payload(|| format!("adapter: {text}"));
                self.stderr_tail.push_str(&text);
                if self.stderr_tail.len() > STDERR_TAIL {
                    let cut = self.stderr_tail.len() - STDERR_TAIL;
                    let cut = (cut..).find(|at| self.stderr_tail.is_char_boundary(*at)).unwrap_or(0);
                    self.stderr_tail.drain(..cut);
                }
            }
            Err(_) => {}
        }
    }

    fn read_output(&mut self, buffer: &mut [u8], errors: bool) {
        let tap = if errors { &mut self.stderr } else { &mut self.stdout };
        let stream = tap.stream;
        if let Some(text) = tap.read(buffer) {
            self.print(stream, &text);
        }
    }

    /// Reads what the pipes hold now. Bounded, since a program may print as fast as it is read.
    fn drain(&mut self) {
        let mut buffer = [0u8; 64 * 1024];
        for errors in [false, true] {
            for _ in 0..32 {
                let tap = if errors { &mut self.stderr } else { &mut self.stdout };
                let stream = tap.stream;
                match tap.read(&mut buffer) {
                    Some(text) => self.print(stream, &text),
                    None => break,
                }
            }
        }
    }

    fn print(&mut self, stream: Stream, text: &str) {
        let end = {
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            output.push(stream, text);
            output.end()
        };
        self.announce.send_replace(end);
        if let Some(journal) = &self.journal {
            journal.output(stream, text);
        }
    }

    fn run_in_terminal(
        &mut self,
        request: i64,
        argv: Vec<String>,
        changes: Vec<(String, Option<String>)>,
        cwd: String,
    ) {
        let mut env = self.env.clone();
        for (name, value) in changes {
            env.retain(|(known, _)| *known != name);
            env.extend(value.map(|value| (name, value)));
        }
        let supervised = self.supervised.clone();
        self.terminals.spawn(async move { (request, supervised.spawn_child(argv, env, PathBuf::from(cwd)).await) });
    }

    fn on_deadline(&mut self) {
        let now = Instant::now();
        let due: Vec<Timer> = self.deadlines.iter().filter(|(_, at)| **at <= now).map(|(timer, _)| *timer).collect();
        for timer in due {
            self.deadlines.remove(&timer);
            self.feed(Input::Timer(timer));
        }
        if self.noticing.is_some_and(|until| until <= now) {
            self.noticing = None;
            self.feed(Input::Unnoticed);
        }
    }

    /// Ends the adapter and, unless it is to be spared, the program and all it started.
    async fn finish(&mut self) {
        let spare = self.finishing.unwrap_or(false);
        let pid = self.session.snapshot().pid;
        self.deadlines.clear();
        if !(spare && self.session.is_left_abruptly()) {
            // The writer sends what is queued, such as a last `disconnect`, then closes.
            self.to_adapter = None;
        }
        if let (true, false, Some(pid)) = (spare, self.attached, pid) {
            return self.supervised.let_go(pid).await;
        }
        let patience = if self.attached { LETTING_GO } else { LEAVING };
        if self.adapter_out.is_some() {
            let _ = tokio::time::timeout(patience, self.drain_adapter()).await;
        }
        self.supervised.end(Duration::from_millis(300)).await;
        if let (false, true, Some(program)) = (spare, self.session.has_process(), &self.watched) {
            // An adapter may have asked it to end, and no more.
            program.kill();
        }
        self.drain();
    }

    /// Reads the adapter to its end, answering questions meanwhile.
    async fn drain_adapter(&mut self) {
        let mut buffer = [0u8; 4096];
        loop {
            tokio::select! {
                () = readable(self.adapter_out.as_ref()) => {
                    if matches!(self.adapter_out.as_ref().map(|pipe| pipe.try_read(&mut buffer)), Some(Ok(0)) | None) {
                        self.adapter_out = None;
                        return;
                    }
                }
                control = self.commands.recv() => match control {
                    Some(control) => self.on_control(control),
                    None => return,
                },
                _ = self.supervised.adapter_exit() => return,
            }
        }
    }
}

fn no_stdin(attached: bool, closed: bool) -> Failure {
    if closed {
        Failure::wrong_state("the program's input was ended already")
    } else if attached {
        Failure::unsupported("an attached program keeps its own standard input")
    } else {
        Failure::wrong_state("the program reads its input from a file").hint("start it without --stdin")
    }
}

/// A message for the log: a program's environment may hold secrets, and is never written down.
fn without_environment(message: &Message) -> serde_json::Value {
    let mut json = message.to_json(0);
    if let Some(env) = json.pointer_mut("/arguments/env") {
        *env = json!("left out");
    }
    json
}

/// Writes frames in order, each in one write. Ends when the session drops its sender or the adapter its stream.
async fn write_to_adapter(mut pipe: Sender, mut messages: mpsc::UnboundedReceiver<Message>) {
    let mut codec = Codec::default();
    let mut bytes = BytesMut::new();
    while let Some(message) = messages.recv().await {
        if let Err(error) = codec.encode(message, &mut bytes) {
            log::warn(format!("a message was not sent: {error}"));
            continue;
        }
        while let Ok(message) = messages.try_recv() {
            if codec.encode(message, &mut bytes).is_err() {
                break;
            }
        }
        if pipe.write_all(&bytes).await.is_err() {
            return;
        }
        bytes.clear();
    }
}
