//! A debugger's end of the hooks' socket that does what a test says, and remembers what it was asked and told.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use bugeye::agent::gate::{Answer, Ask, Line, Message, Note, Point, Tap, Told, Verdict};
use bugeye::agent::hook;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

pub const TOKEN: &str = "a-token-of-this-run";

/// What is answered to each question.
type Script = Box<dyn Fn(&Ask) -> Answer + Send + Sync>;

/// Everything that reached it.
#[derive(Default)]
pub struct Heard {
    pub asks: Vec<Ask>,
    pub notes: Vec<Note>,
    pub attached: Vec<Value>,
    pub withdrawn: usize,
}

/// Dropping it ends it.
pub struct Hooks {
    pub socket: PathBuf,
    heard: Arc<Mutex<Heard>>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Hooks {
    pub fn start(folder: &Path, script: impl Fn(&Ask) -> Answer + Send + Sync + 'static) -> Self {
        let socket = folder.join("agent.sock");
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (end, ended) = oneshot::channel();
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let kept = Arc::clone(&heard);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async move {
                let (line, told) = Line::new(Tap::Hook);
                tokio::task::spawn_local(broker(told, Box::new(script), kept));
                tokio::select! {
                    () = listen(UnixListener::from_std(listener).unwrap(), line) => {}
                    _ = ended => {}
                }
            });
        });
        Self { socket, heard, end: Some(end), thread: Some(thread) }
    }

    pub fn heard(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap()
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn broker(mut told: tokio::sync::mpsc::UnboundedReceiver<Told>, script: Script, heard: Arc<Mutex<Heard>>) {
    while let Some(told) = told.recv().await {
        match told {
            Told::Ask { ask, reply, .. } => {
                let answer = script(&ask);
                heard.lock().unwrap().asks.push(*ask);
                let _ = reply.send(answer);
            }
            Told::Note { note, .. } => heard.lock().unwrap().notes.push(note),
            Told::Attached { about, .. } => heard.lock().unwrap().attached.push(about),
            Told::Withdrawn { .. } => heard.lock().unwrap().withdrawn += 1,
            Told::Ended { .. } => {}
        }
    }
}

async fn listen(listener: UnixListener, line: Line) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::task::spawn_local(serve(client, line.clone()));
    }
}

/// One line each way.
async fn serve(client: UnixStream, line: Line) {
    let (reading, mut writing) = client.into_split();
    let mut reading = BufReader::new(reading);
    let mut text = String::new();
    reading.read_line(&mut text).await.unwrap();
    let said: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&said["v"], &said["token"], &said["type"]), (&json!(1), &json!(TOKEN), &json!("hook")), "{said}");
    let agent = said["agent"].as_str().unwrap();
    let mut end = [0];
    tokio::select! {
        reply = hook::handle(&line, agent, said["input"].clone()) => {
            let reply = json!({"type": "hook", "stdout": reply.stdout, "stderr": reply.stderr, "code": reply.code});
            let _ = writing.write_all(format!("{reply}\n").as_bytes()).await;
        }
        _ = reading.read(&mut end) => {}
    }
}

pub fn edit(value: Value) -> Answer {
    Answer { verdict: Verdict::Edit { value }, inject: Vec::new() }
}

pub fn deny(reason: &str) -> Answer {
    Answer { verdict: Verdict::Deny { reason: reason.into() }, inject: Vec::new() }
}

pub fn abort(reason: &str) -> Answer {
    Answer { verdict: Verdict::Abort { reason: reason.into() }, inject: Vec::new() }
}

pub fn synthesize(value: Value) -> Answer {
    Answer { verdict: Verdict::Synthesize { value }, inject: Vec::new() }
}

pub fn inject(text: &str) -> Answer {
    Answer { verdict: Verdict::Proceed, inject: vec![Message { role: "user".into(), text: text.into() }] }
}

/// This at the first question of a kind; the others are let through.
pub fn once(point: Point, answer: Answer) -> impl Fn(&Ask) -> Answer + Send + Sync {
    let left = Mutex::new(Some(answer));
    move |ask| if ask.point == point { left.lock().unwrap().take().unwrap_or_default() } else { Answer::default() }
}
