//! A debugger of a test's own: the socket and the files, and somebody behind them who answers as the test says.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bugeye::agent::files::Files;
use bugeye::agent::gate::{Answer, Ask, Line, Tap, Told, Verdict};
use bugeye::agent::socket::Socket;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::support::until;

/// What came to the debugger.
#[derive(Debug, Clone)]
pub enum Heard {
    Attached(Tap, Value),
    Asked(u64, Box<Ask>),
    Withdrawn(u64),
    Told(Tap, String, String, Option<String>, Value),
}

/// Answers a question; none holds it.
type Judge = Box<dyn FnMut(&Ask) -> Option<Answer> + Send>;

#[derive(Default)]
struct Shared {
    heard: Vec<Heard>,
    held: HashMap<u64, oneshot::Sender<Answer>>,
}

pub struct Desk {
    folder: tempfile::TempDir,
    shared: Arc<Mutex<Shared>>,
    leave: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";

impl Desk {
    pub fn new(mut judge: impl FnMut(&Ask) -> Option<Answer> + Send + 'static) -> Self {
        Self::at(tempfile::tempdir().unwrap(), Box::new(move |ask| judge(ask)))
    }

    /// Lets everything pass.
    pub fn open() -> Self {
        Self::new(|_| Some(Answer::default()))
    }

    fn at(folder: tempfile::TempDir, mut judge: Judge) -> Self {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (leave, left) = oneshot::channel();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let (path, of) = (folder.path().join("agent"), Arc::clone(&shared));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let (line, mut told) = Line::new(Tap::Sdk);
                let socket = Socket::open(&path, TOKEN).unwrap();
                let files = Files::open(&path, "test").unwrap();
                ready.send(()).unwrap();
                let broker = async {
                    while let Some(told) = told.recv().await {
                        take(&of, told, &mut judge);
                    }
                };
                tokio::select! {
                    () = socket.serve(line.clone(), "test") => {}
                    () = files.serve(line.clone()) => {}
                    () = broker => {}
                    _ = left => {}
                }
            });
        });
        is_ready.recv().unwrap();
        Self { folder, shared, leave: Some(leave), thread: Some(thread) }
    }

    pub fn folder(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    pub fn socket(&self) -> PathBuf {
        self.folder().join("agent.sock")
    }

    /// The variables that an agent is started with.
    pub fn variables(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_str().unwrap().to_string();
        vec![
            ("BUGEYE_AGENT_SOCKET".into(), text(&self.socket())),
            ("BUGEYE_AGENT_TOKEN".into(), TOKEN.into()),
            ("BUGEYE_AGENT_DIR".into(), text(&self.folder())),
        ]
    }

    pub fn heard(&self) -> Vec<Heard> {
        self.shared.lock().unwrap().heard.clone()
    }

    /// All questions so far.
    pub fn asked(&self) -> Vec<Ask> {
        let asked = |heard| if let Heard::Asked(_, ask) = heard { Some(*ask) } else { None };
        self.heard().into_iter().filter_map(asked).collect()
    }

    /// All events so far.
    pub fn told(&self) -> Vec<String> {
        let told = |heard| if let Heard::Told(_, kind, ..) = heard { Some(kind) } else { None };
        self.heard().into_iter().filter_map(told).collect()
    }

    /// Waits until so many are held.
    #[track_caller]
    pub fn holds(&self, count: usize) {
        until(&format!("{count} are held"), || {
            let held = self.shared.lock().unwrap().held.len();
            if held == count { Ok(()) } else { Err(format!("{held}; {:?}", self.heard())) }
        });
    }

    /// Answers all that are held.
    pub fn release(&self, verdict: &Verdict) {
        for (_, reply) in self.shared.lock().unwrap().held.drain() {
            let _ = reply.send(Answer { verdict: verdict.clone(), inject: Vec::new() });
        }
    }

    /// The debugger is gone.
    pub fn leave(&mut self) {
        if let Some(leave) = self.leave.take() {
            let _ = leave.send(());
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.leave();
            assert!(!self.socket().exists(), "the socket is left");
            assert!(!self.folder().join("debugger.json").exists(), "the debugger still seems to be there");
        }
    }
}

fn take(shared: &Mutex<Shared>, told: Told, judge: &mut Judge) {
    let mut shared = shared.lock().unwrap();
    match told {
        Told::Attached { tap, about } => shared.heard.push(Heard::Attached(tap, about)),
        Told::Ask { id, ask, reply, .. } => {
            let answer = judge(&ask);
            shared.heard.push(Heard::Asked(id, ask));
            match answer {
                Some(answer) => drop(reply.send(answer)),
                None => drop(shared.held.insert(id, reply)),
            }
        }
        Told::Withdrawn { id } => {
            shared.held.remove(&id);
            shared.heard.push(Heard::Withdrawn(id));
        }
        Told::Note { tap, note } => {
            shared.heard.push(Heard::Told(tap, note.kind, note.thread, note.span, note.data));
        }
        Told::Ended { .. } => {}
    }
}
