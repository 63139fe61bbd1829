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
                let Some(message) = read(&message) else { continue };
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

/// A message; strings of the program may hold halves of characters, which JSON has no words for.
fn read(message: &[u8]) -> Option<Value> {
    serde_json::from_slice(message).ok().or_else(|| serde_json::from_slice(&without_halves(message)).ok())
}

/// Puts the replacement character for each half of a pair of escapes that stands alone.
fn without_halves(message: &[u8]) -> Vec<u8> {
    let unit = |at: usize| {
        let digits = message.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut out = Vec::with_capacity(message.len());
    let mut at = 0;
    while at < message.len() {
        let taken = match (unit(at), unit(at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                out.extend_from_slice(b"\\ufffd");
                at += 6;
                continue;
            }
            _ if message[at] == b'\\' => 2,
            _ => 1,
        };
        let end = message.len().min(at + taken);
        out.extend_from_slice(&message[at..end]);
        at = end;
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_no_reason_to_lose_a_message() {
        let text = br#"{"a":"x\ud800y","b":"\ud83e\udd89","c":"\\\\ud800","d":"\udc00"}"#;
        let read = read(text).unwrap();
        assert_eq!(read, json!({ "a": "x\u{fffd}y", "b": "🦉", "c": "\\\\ud800", "d": "\u{fffd}" }));
    }
}
