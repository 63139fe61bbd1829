//! The way to a session from outside its task.

use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot, watch};

use crate::failure::Failure;
use crate::model::Hit;
use crate::output::Ring;
use crate::session::{Answer, Op, OpId, Snapshot};

/// The way to a session from outside its task.
#[derive(Debug)]
pub struct Handle {
    pub(super) control: mpsc::UnboundedSender<Control>,
    pub snapshot: watch::Receiver<Snapshot>,
    pub output: Arc<Mutex<Ring>>,
    /// Grows with each piece of output, for those who follow it.
    pub printed: watch::Receiver<u64>,
    /// True when the adapter and all below it are gone.
    pub finished: watch::Receiver<bool>,
    /// The process whose descendants are the adapter and the program.
    pub supervisor: u32,
    pub(super) next: std::sync::atomic::AtomicU64,
}

#[derive(Debug)]
pub(super) enum Control {
    Op(OpId, Box<Op>, oneshot::Sender<Result<Answer, Failure>>),
    Forget(OpId),
    Input(Vec<u8>, oneshot::Sender<Result<(), Failure>>),
    EndInput(oneshot::Sender<Result<(), Failure>>),
    /// Hits go there from now on.
    Collect(mpsc::UnboundedSender<Hit>),
}

/// Forgets an operation when whoever asked is gone.
#[derive(Debug)]
struct Interest<'a> {
    op: OpId,
    control: &'a mpsc::UnboundedSender<Control>,
}

impl Drop for Interest<'_> {
    fn drop(&mut self) {
        let _ = self.control.send(Control::Forget(self.op));
    }
}

impl Handle {
    /// Hands the session an operation and waits for its answer. Dropping the future ends the wait, not the program.
    pub async fn ask(&self, op: Op) -> Result<Answer, Failure> {
        let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let lost = || Failure::internal("the session's task is gone").hint("start again: bugeye restart");
        self.control.send(Control::Op(id, Box::new(op), answer)).map_err(|_| lost())?;
        let interest = Interest { op: id, control: &self.control };
        let result = answered.await.map_err(|_| lost())?;
        drop(interest);
        result
    }

    /// Writes to the program's standard input.
    pub async fn input(&self, bytes: Vec<u8>) -> Result<(), Failure> {
        let (done, answered) = oneshot::channel();
        self.control.send(Control::Input(bytes, done)).map_err(|_| Failure::internal("the session's task is gone"))?;
        answered.await.map_err(|_| Failure::internal("the session's task is gone"))?
    }

    /// Has hits of traced places told, each as it happens.
    pub fn collect(&self, hits: mpsc::UnboundedSender<Hit>) {
        let _ = self.control.send(Control::Collect(hits));
    }

    /// Ends the program's standard input.
    pub async fn end_input(&self) -> Result<(), Failure> {
        let (done, answered) = oneshot::channel();
        self.control.send(Control::EndInput(done)).map_err(|_| Failure::internal("the session's task is gone"))?;
        answered.await.map_err(|_| Failure::internal("the session's task is gone"))?
    }
}
