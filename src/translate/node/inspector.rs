//! Speaking with inspectors: one link for each process, one target for each thread of JavaScript in it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::Input;
use super::websocket::{self, Writer};

/// The connection to one process.
#[derive(Debug)]
pub struct Link {
    /// The process at its other end.
    pub pid: Cell<Option<u32>>,
    writer: RefCell<Writer>,
    next: Cell<u64>,
    pending: RefCell<HashMap<u64, oneshot::Sender<Result<Value, String>>>>,
}

const GONE: &str = "the inspector is gone";

impl Link {
    /// Connects; what comes from there is told to `inputs`.
    pub fn open(id: u32, url: &str, inputs: &mpsc::UnboundedSender<Input>) -> Result<Rc<Self>, String> {
        let (mut reader, writer) =
            websocket::connect(url).map_err(|error| format!("no inspector at {url}: {error}"))?;
        let inputs = inputs.clone();
        std::thread::spawn(move || {
            while let Ok(Some(message)) = reader.next() {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if inputs.send(Input::Inspector(id, message)).is_err() {
                    return;
                }
            }
            let _ = inputs.send(Input::Closed(id));
        });
        Ok(Rc::new(Self {
            pid: Cell::new(None),
            writer: RefCell::new(writer),
            next: Cell::new(1),
            pending: RefCell::default(),
        }))
    }

    fn number(&self) -> u64 {
        self.next.replace(self.next.get() + 1)
    }

    fn send(&self, message: &Value) -> Result<(), String> {
        self.writer.borrow_mut().send(&message.to_string()).map_err(|_| GONE.to_string())
    }

    /// Hands an answer to whoever waits for it.
    pub fn answer(&self, message: &Value) {
        let number = message.get("id").and_then(Value::as_u64).unwrap_or_default();
        let Some(waiting) = self.pending.borrow_mut().remove(&number) else { return };
        let result = match message.get("error") {
            Some(error) => Err(error.get("message").and_then(Value::as_str).unwrap_or("no reason given").to_string()),
            None => Ok(message.get("result").cloned().unwrap_or_default()),
        };
        let _ = waiting.send(result);
    }

    /// Nobody will answer any more.
    pub fn fail_all(&self) {
        self.pending.borrow_mut().clear();
    }

    pub fn close(&self) {
        self.writer.borrow_mut().close();
    }
}

/// Whom a message is for: the main thread of a process, or one of its workers.
#[derive(Debug, Clone)]
pub struct Wire {
    pub link: Rc<Link>,
    /// The worker's session, which its messages are wrapped for.
    pub worker: Option<String>,
}

impl Wire {
    /// Sends a request at once; the answer can be waited for later.
    pub fn call(&self, method: &str, params: Value) -> impl Future<Output = Result<Value, String>> + use<> {
        let number = self.link.number();
        let (answer, answered) = oneshot::channel();
        self.link.pending.borrow_mut().insert(number, answer);
        let mut request = json!({ "id": number, "method": method });
        request["params"] = params;
        let sent = match &self.worker {
            None => self.link.send(&request),
            Some(session) => self.link.send(&json!({
                "id": self.link.number(),
                "method": "NodeWorker.sendMessageToWorker",
                "params": { "sessionId": session, "message": request.to_string() },
            })),
        };
        async move {
            sent?;
            answered.await.unwrap_or_else(|_| Err(GONE.into()))
        }
    }

    /// As [`Self::call`], where nobody wants the answer.
    pub fn tell(&self, method: &str, params: Value) {
        drop(self.call(method, params));
    }
}
