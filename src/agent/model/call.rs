//! A call of the model, at its gate: what is asked, how it is held, and what becomes of it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;

use super::body::Out;
use super::copy::About;
use super::dialect::{Dialect, SSE, event};
use super::parts::{self, Hash, Kind, Part, hex};
use super::reply::Reply;
use super::rerun::Found;
use super::tap::{Asked, Last, Tap, failure};
use super::upstream::Sent;
use super::who;
use crate::agent::gate::{Answer, Ask, Point, Powers, Verdict};

/// How much of an error is told to an agent that was told before that all is well.
const LONGEST_ERROR: usize = 64 * 1024;

type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// One of them.
pub struct Call {
    tap: Arc<Tap>,
    asked: Asked,
    dialect: Dialect,
    /// What goes to the model if nothing is changed: the agent's own bytes, or those with what was injected before.
    sent: Bytes,
    thread: String,
    span: String,
    /// Counts the calls of the loop; one that is put again keeps its number.
    number: Option<u32>,
    again: bool,
    hash: String,
    model: Option<String>,
    streams: bool,
    aside: bool,
    parts: Vec<Part>,
    params: Map<String, Json>,
    counts: (usize, usize),
    bytes: usize,
    /// What was changed: `edit`, `inject`.
    changed: Vec<&'static str>,
    ask: Option<Box<Ask>>,
    /// The answer from the record, in a rerun that has not forked.
    found: Option<Found>,
}

impl Call {
    /// `read`: the content of the request, and its parts.
    pub fn new(
        tap: Arc<Tap>,
        asked: Asked,
        dialect: Dialect,
        raw: Bytes,
        read: (Json, Vec<Part>),
        thread: String,
    ) -> Self {
        let (mut body, parts) = read;
        let query = asked.query.as_deref().unwrap_or_default();
        let streams = dialect.streams(&asked.path, query, &body);
        let params = parts::params(dialect, &body);
        let bytes = raw.len();
        let mut sent = raw;
        let mut changed = Vec::new();
        let applied = tap.state().injections.apply(&thread, dialect, &mut body, &history(&parts));
        if applied > 0 {
            sent = body.to_string().into();
            changed.push("inject");
        }
        let conversation = dialect.conversation(&asked.path, &body);
        let hash = hex(&parts::hash(&parts, conversation.model.as_deref()));
        let key = hex(&Sha256::digest(format!("{thread}\n{}\n{hash}", asked.provider)));
        let aside = who::is_aside(&asked.headers, dialect, &body, &conversation);
        let (number, again) = if aside { (None, false) } else { numbered(&tap, &thread, &key) };
        let counts = (conversation.messages.len(), conversation.tools.len());
        let (model, span) = (conversation.model.clone(), tap.span());
        let powers = if aside { Powers::NONE } else { Powers { deny: false, ..Powers::ALL } };
        let ask = Ask {
            thread: thread.clone(),
            span: Some(span.clone()),
            value: body,
            conversation: Some(conversation),
            aside,
            key: Some(key),
            powers,
            ..Ask::new(Point::BeforeModel)
        };
        let ask = Some(Box::new(ask));
        Self {
            tap,
            asked,
            dialect,
            sent,
            thread,
            span,
            number,
            again,
            hash,
            model,
            streams,
            aside,
            parts,
            params,
            counts,
            bytes,
            changed,
            ask,
            found: None,
        }
    }

    /// Asks at the gate, waits there, and goes on as it was answered.
    pub async fn run(mut self) -> Response<Out> {
        self.tell();
        // Some clients put once more what they were refused: that is no new question.
        let refused = self.tap.state().last.get(&self.thread).and_then(|last| last.refused.clone());
        if let Some(why) = refused.filter(|_| self.again) {
            return self.refuse(&why);
        }
        self.look_up();
        let Some(ask) = self.ask.take() else {
            return failure(Some(self.dialect), StatusCode::BAD_GATEWAY, "asked twice");
        };
        let line = self.tap.line.clone();
        let mut asking: Asking = Box::pin(async move { line.ask(*ask).await });
        // An agent of this kind gives up on silence, and waits as long as it hears something.
        if self.streams && self.dialect == Dialect::Messages {
            return match tokio::time::timeout(self.tap.ping, &mut asking).await {
                Ok(answer) => self.go_on(answer).await,
                Err(_) => self.hold(asking),
            };
        }
        let answer = asking.await;
        self.go_on(answer).await
    }

    /// Looks for the answer in the record, and tells where the question is another than it was.
    fn look_up(&mut self) {
        let tap = Arc::clone(&self.tap);
        let mut state = tap.state();
        let state = &mut *state;
        let Some(recording) = &mut state.recording else { return };
        let Some(number) = self.number else {
            if !recording.is_live(state.calls + 1) {
                let path = self.asked.told();
                self.found = Some(recording.aside(&path, &self.hash).map_or(Found::Over(0), Found::Call));
            }
            return;
        };
        if recording.is_live(number) {
            return;
        }
        let found = recording.next(&self.thread, &self.hash);
        if let Found::Call(recorded) = &found {
            let known = self.parts.iter().filter_map(|part| Some((part, state.keeper.clean(part).ok()?.sha256)));
            let now: Vec<(&Part, String)> = known.collect();
            if let Some(difference) = recording.difference(recorded, &now) {
                let mut data = json!(difference);
                data["call"] = json!(number);
                data["recorded_call"] = json!(recorded.call);
                data["thread"] = json!(self.thread);
                tap.note("rerun.diverged", &self.thread, &self.span, data);
            }
        }
        self.found = Some(found);
    }

    /// Holds the agent with an answer that has begun, and says nothing yet.
    fn hold(self, mut asking: Asking) -> Response<Out> {
        let (to, pieces) = mpsc::channel::<io::Result<Bytes>>(16);
        let every = self.tap.ping;
        tokio::spawn(async move {
            let ping = Bytes::from(event("ping", r#"{"type": "ping"}"#));
            let answer = loop {
                if to.send(Ok(ping.clone())).await.is_err() {
                    return;
                }
                tokio::select! {
                    answer = &mut asking => break answer,
                    () = tokio::time::sleep(every) => {}
                    // Its question is withdrawn; when it asks again, it joins the gate.
                    () = to.closed() => return,
                }
            };
            tokio::select! {
                () = async { pump(self.go_on(answer).await, &to).await } => {}
                () = to.closed() => {}
            }
        });
        let mut response = Response::new(Out::Pieces(pieces));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }

    /// Does as it was answered.
    async fn go_on(mut self, answer: Answer) -> Response<Out> {
        match answer.verdict {
            Verdict::Proceed => {}
            Verdict::Edit { value } if value.is_object() => {
                self.sent = value.to_string().into();
                self.changed.push("edit");
            }
            Verdict::Edit { .. } => {
                let why = "[debugger] the request to the model must be an object; nothing was sent";
                return self.refuse(why);
            }
            Verdict::Synthesize { value } => return self.synthesize(&value),
            Verdict::Deny { reason } | Verdict::Abort { reason } => {
                return self.refuse(&format!("[debugger] {}", reason.trim_start_matches("[debugger] ")));
            }
        }
        if !answer.inject.is_empty() {
            self.inject(&answer.inject);
        }
        let about = self.about(if self.found.is_some() { "recording" } else { "upstream" });
        match self.found.take() {
            Some(Found::Call(recorded)) => Arc::clone(&self.tap).recorded(Some(recorded), Some(self.dialect), about),
            Some(Found::Over(calls)) => {
                let why = if self.aside {
                    "[debugger] the recording has no answer to this question".to_string()
                } else {
                    format!(
                        "[debugger] the recording is over: {} had {calls} calls; --fork-at asks the model itself",
                        self.thread
                    )
                };
                let status = self.dialect.refusal();
                super::copy::Copy::new(Arc::clone(&self.tap), about).failed(status.as_u16(), &why);
                failure(Some(self.dialect), status, &why)
            }
            None => Arc::clone(&self.tap).send(&self.asked, Sent::Whole(Some(self.sent)), about).await,
        }
    }

    /// Puts messages at the end of the conversation, for this call and all that follow.
    fn inject(&mut self, messages: &[crate::agent::gate::Message]) {
        let Ok(mut body) = serde_json::from_slice::<Json>(&self.sent) else { return };
        let last = body[self.dialect.history()].as_array().map_or(0, |items| items.len().saturating_sub(1));
        self.dialect.put(&mut body, last, &messages.iter().collect::<Vec<_>>());
        self.sent = body.to_string().into();
        self.changed.push("inject");
        // Put again with the edit that it failed with, it brings along what is remembered already.
        if !self.again {
            self.tap.state().injections.add(&self.thread, &history(&self.parts), messages);
        }
    }

    /// An answer that the model did not give.
    fn synthesize(self, value: &Json) -> Response<Out> {
        let id = format!("bugeye_{}", self.span.trim_start_matches("model-"));
        let reply = Reply::made_of(value, self.model.clone(), &id);
        let request = serde_json::from_slice(&self.sent).unwrap_or_default();
        let (kind, bytes) = self.dialect.say(&request, &reply, &id, self.streams);
        let about = self.about("debugger");
        Arc::clone(&self.tap).say(StatusCode::OK, kind, bytes, about)
    }

    /// An error that ends the run. Should the client ask again all the same, it is told the same.
    fn refuse(self, why: &str) -> Response<Out> {
        if let Some(last) = self.tap.state().last.get_mut(&self.thread) {
            last.refused = Some(why.to_string());
        }
        let about = self.about("debugger");
        let status = self.dialect.refusal();
        super::copy::Copy::new(Arc::clone(&self.tap), about).failed(status.as_u16(), why);
        failure(Some(self.dialect), status, why)
    }

    /// Tells what the model is to be asked.
    fn tell(&self) {
        let kept = self.tap.state().keeper.request(&self.thread, &self.span, &self.parts);
        let kept = kept.unwrap_or_else(|error| self.tap.unkept(&error));
        let mut data = json!({
            "provider": self.asked.provider, "dialect": self.dialect.name(), "path": self.asked.told(),
            "model": self.model, "n_messages": self.counts.0, "n_tools": self.counts.1, "params": self.params,
            "bytes": self.bytes, "hash": self.hash, "span": self.span, "thread": self.thread, "stream": self.streams,
        });
        if !kept.is_null() {
            data["parts"] = kept;
        }
        if let Some(number) = self.number {
            data["call"] = json!(number);
        }
        if self.aside {
            data["aside"] = json!(true);
        }
        if !self.changed.is_empty() {
            data["changed"] = json!(self.changed);
        }
        let kind = if self.again { "model.retry" } else { "model.request" };
        self.tap.note(kind, &self.thread, &self.span, data);
    }

    fn about(&self, by: &'static str) -> About {
        About {
            provider: self.asked.provider.clone(),
            dialect: Some(self.dialect),
            span: self.span.clone(),
            thread: self.thread.clone(),
            call: self.number,
            aside: self.aside,
            model: self.model.clone(),
            path: self.asked.told(),
            by,
            changed: self.changed.clone(),
        }
    }
}

/// The number of a call of the loop, and whether it was put before.
fn numbered(tap: &Tap, thread: &str, key: &str) -> (Option<u32>, bool) {
    let mut state = tap.state();
    if let Some(last) = state.last.get(thread).filter(|last| last.key == key) {
        return (Some(last.number), true);
    }
    state.calls += 1;
    let number = state.calls;
    state.last.insert(thread.to_string(), Last { key: key.to_string(), number, refused: None });
    (Some(number), false)
}

/// The hashes of a conversation's items.
fn history(parts: &[Part]) -> Vec<Hash> {
    parts.iter().filter(|part| part.kind == Kind::Message).map(|part| part.hash).collect()
}

/// Passes an answer on into one that has begun. One that is no stream of events is an error by then: as an event.
async fn pump(response: Response<Out>, to: &mpsc::Sender<io::Result<Bytes>>) {
    let text = |response: &Response<Out>| {
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        kind.unwrap_or_default().to_string()
    };
    let is_stream = response.status().is_success() && text(&response).starts_with(SSE);
    let mut body = response.into_body();
    let mut error = Vec::new();
    while let Some(frame) = body.frame().await {
        match frame.map(hyper::body::Frame::into_data) {
            Ok(Ok(bytes)) if is_stream => {
                if to.send(Ok(bytes)).await.is_err() {
                    return;
                }
            }
            Ok(Ok(bytes)) if error.len() + bytes.len() <= LONGEST_ERROR => error.extend_from_slice(&bytes),
            Ok(_) => {}
            Err(broken) => {
                let _ = to.send(Err(broken)).await;
                return;
            }
        }
    }
    if !is_stream {
        let said = serde_json::from_slice::<Json>(&error).ok().filter(|said| said["error"].is_object());
        let data = said.unwrap_or_else(
            || json!({"type": "error", "error": {"type": "api_error", "message": String::from_utf8_lossy(&error)}}),
        );
        let _ = to.send(Ok(event("error", &data.to_string()).into())).await;
    }
}
