//! One agent's side of a conversation: its lines in the order they came, each question a task of its own, answered when
//! the broker says so. Dropping it withdraws what is not answered.
//!
//! The way the lines came by, a socket or files, is not known here.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use serde_json::Value as Json;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::gate::{self, Tap};
use super::hook;
use super::wire::{self, Id, Said, Trouble};

/// The most questions of one agent that wait at once.
const MOST: usize = 1024;

/// Where answers go; whoever writes them down ends with the way they go by.
pub type Answers = mpsc::Sender<Json>;
/// How many answers wait for an agent that does not read them, before it is no longer listened to.
pub const ANSWERS: usize = 64;

/// What is under way with one agent.
#[derive(Debug)]
pub struct Talk {
    line: gate::Line,
    session: Arc<str>,
    answers: Answers,
    waiting: JoinSet<Id>,
    handles: HashMap<Id, AbortHandle>,
}

impl Talk {
    #[must_use]
    pub fn new(line: &gate::Line, session: &Arc<str>, answers: Answers) -> Self {
        let (line, session) = (line.clone(), Arc::clone(session));
        Self { line, session, answers, waiting: JoinSet::new(), handles: HashMap::new() }
    }

    /// Takes what a line says. When this is done the broker has it.
    pub async fn take(&mut self, said: Result<Said, Trouble>) {
        self.settle();
        match said {
            Ok(Said::Hello { about }) => {
                self.line.of(Tap::Sdk).attached(about);
                self.say(wire::hello(&self.session)).await;
            }
            Ok(Said::Start { about }) => self.line.of(Tap::Sdk).attached(about),
            Ok(Said::Event(note)) => self.line.of(Tap::Sdk).note(note),
            Ok(Said::Withdraw { id }) => {
                if let Some(handle) = self.handles.remove(&id) {
                    handle.abort();
                }
            }
            Ok(Said::Gate { id, ask }) => {
                let (line, of) = (self.line.of(Tap::Sdk), id.clone());
                self.begin(Some(id), async move { wire::answer(&of, &line.ask(*ask).await) }).await;
            }
            Ok(Said::Hook { id, agent, input }) => {
                let (line, of) = (self.line.of(Tap::Hook), id.clone());
                let answer = async move { wire::hooked(of.as_ref(), &hook::handle(&line, &agent, input).await) };
                self.begin(id, answer).await;
            }
            Err(trouble) => self.say(trouble.line()).await,
        }
    }

    /// Asks before anything that comes after it is taken: what is only spawned would be asked later than that.
    async fn begin(&mut self, id: Option<Id>, answer: impl Future<Output = Json> + Send + 'static) {
        let id = id.unwrap_or_else(Id::none);
        if self.handles.contains_key(&id) {
            return self.say(Trouble { id: Some(id), message: "this id waits already".into() }.line()).await;
        }
        if self.waiting.len() >= MOST {
            let message = format!("more than {MOST} questions wait at once");
            return self.say(Trouble { id: Some(id), message }.line()).await;
        }
        let mut answer: Pin<Box<dyn Future<Output = Json> + Send>> = Box::pin(answer);
        match poll_fn(|context| Poll::Ready(answer.as_mut().poll(context))).await {
            Poll::Ready(answer) => self.say(answer).await,
            Poll::Pending => {
                let (answers, of) = (self.answers.clone(), id.clone());
                let handle = self.waiting.spawn(async move {
                    let _ = answers.send(answer.await).await;
                    of
                });
                self.handles.insert(id, handle);
            }
        }
    }

    /// Forgets what is answered.
    fn settle(&mut self) {
        while let Some(done) = self.waiting.try_join_next() {
            if let Ok(id) = done {
                self.handles.remove(&id);
            }
        }
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_idle(&mut self) -> bool {
        self.settle();
        self.waiting.is_empty()
    }

    async fn say(&self, line: Json) {
        let _ = self.answers.send(line).await;
    }
}
