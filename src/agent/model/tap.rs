//! One request of the agent, from its arrival to its answer.
//!
//! A request to a model is read, asked about at the gate, and goes on as the answer says; its answer is passed through with
//! a copy read on the side. All else passes through unread.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use serde_json::{Value as Json, json};

use super::body::Out;
use super::call::Call;
use super::copy::{About, Copy};
use super::dialect::{Dialect, JSON};
use super::inject::Injections;
use super::parts::{self, Part};
use super::price::Price;
use super::record::Keeper;
use super::reply::Reply;
use super::rerun::Recording;
use super::upstream::{Sent, Upstream, Ways};
use super::{guard, who};
use crate::agent::gate::{Line, Note, Usage};

/// The longest request that is read; a longer one passes through.
pub const LONGEST: usize = 32 * 1024 * 1024;
/// Headers that are about one connection, not about what it carries.
const OF_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// All that requests share.
#[derive(Debug)]
pub struct Tap {
    pub line: Line,
    pub token: String,
    pub port: u16,
    pub upstreams: Vec<(String, Arc<Upstream>)>,
    pub ways: Ways,
    /// How often an agent that is held hears that it is not forgotten.
    pub ping: Duration,
    pub prices: Vec<(String, Price)>,
    pub state: Mutex<State>,
    /// An agent has been seen.
    pub met: AtomicBool,
    /// The first session that was named.
    pub first: OnceLock<String>,
    pub spans: AtomicU64,
}

/// What changes from call to call.
#[derive(Debug, Default)]
pub struct State {
    pub keeper: Keeper,
    /// What could not be kept has been told.
    pub unkept: bool,
    pub injections: Injections,
    pub recording: Option<Recording>,
    /// Calls of the loop so far, and the last of each thread.
    pub calls: u32,
    pub last: HashMap<String, Last>,
    /// The parts of each thread's last request.
    pub parts: HashMap<String, Vec<Part>>,
    /// What all calls took together; those of models without a price are counted.
    pub usage: Usage,
    pub cost: f64,
    pub unpriced: u64,
}

/// The last call of a thread.
#[derive(Debug)]
pub struct Last {
    pub key: String,
    pub number: u32,
    /// Why it was ended by the debugger: put again, it is told the same.
    pub refused: Option<String>,
}

/// A request on its way to its upstream.
#[derive(Debug)]
pub struct Asked {
    pub provider: String,
    pub upstream: Arc<Upstream>,
    pub method: Method,
    pub path: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
}

impl Asked {
    /// `POST /v1/messages`: a query may have a key in it.
    #[must_use]
    pub fn told(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// How many threads' last requests are remembered.
const REMEMBERED: usize = 16;

impl State {
    /// Reads a thread's request; its parts are remembered for the next. None: it can't be read.
    pub fn read(&mut self, thread: &str, dialect: Dialect, raw: &Bytes) -> Option<(Json, Vec<Part>)> {
        let (body, parts) = parts::read(dialect, raw, self.parts.get(thread).map_or(&[], Vec::as_slice))?;
        if self.parts.len() >= REMEMBERED && !self.parts.contains_key(thread) {
            self.parts.clear();
        }
        self.parts.insert(thread.to_string(), parts.clone());
        Some((body, parts))
    }
}

impl Tap {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn keeps(&self) -> bool {
        self.state().keeper.keeps()
    }

    /// A name for a request that no other has.
    pub fn span(&self) -> String {
        format!("model-{}", self.spans.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub fn note(&self, kind: &str, thread: &str, span: &str, data: Json) {
        self.line.note(Note { kind: kind.into(), thread: thread.into(), span: Some(span.into()), data });
    }

    /// Answers one request.
    pub async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Out> {
        let (head, body) = request.into_parts();
        let way = match guard::way(head.uri.path(), &head.headers, &self.token, self.port) {
            Ok(way) => way,
            Err((status, why)) => return refusal(status, why),
        };
        let Some((_, upstream)) = self.upstreams.iter().find(|(name, _)| name == way.provider) else {
            return refusal(StatusCode::NOT_FOUND, "no upstream has this name\n");
        };
        if head.headers.contains_key(header::UPGRADE) {
            // Agents that would rather speak by a socket of another kind have HTTP as their second choice.
            return refusal(StatusCode::UPGRADE_REQUIRED, "only HTTP goes through here\n");
        }
        if !self.met.swap(true, Ordering::Relaxed) {
            self.line.attached(who::about(&head.headers));
        }
        let (dialect, sender) = (Dialect::of(way.path), who::thread(&head.headers, &self.first));
        let asked = Asked {
            provider: way.provider.to_string(),
            upstream: Arc::clone(upstream),
            method: head.method,
            path: way.path.to_string(),
            query: head.uri.query().map(str::to_string),
            headers: head.headers,
        };
        match dialect.filter(|_| asked.method == Method::POST) {
            Some(dialect) => self.model_call(asked, dialect, body, &sender).await,
            None => self.pass(asked, Sent::Passed { read: None, rest: body }).await,
        }
    }

    async fn model_call(
        self: Arc<Self>,
        asked: Asked,
        dialect: Dialect,
        body: Incoming,
        thread: &str,
    ) -> Response<Out> {
        let encoding = asked.headers.get(header::CONTENT_ENCODING).and_then(|encoding| encoding.to_str().ok());
        if let Some(encoding) = encoding.filter(|encoding| *encoding != "identity") {
            let why = format!("the request is packed ({encoding})");
            return self.unread(asked, dialect, &why, Sent::Passed { read: None, rest: body }).await;
        }
        let raw = match read(body).await {
            Ok(Read::Whole(raw)) => raw,
            Ok(Read::Long(read, rest)) => {
                let why = format!("the request is longer than {LONGEST} bytes");
                return self.unread(asked, dialect, &why, Sent::Passed { read: Some(read), rest }).await;
            }
            // Nobody is there to be told.
            Err(_) => return refusal(StatusCode::BAD_REQUEST, "the request broke off\n"),
        };
        let known = self.state().read(thread, dialect, &raw);
        match known {
            Some(read) => Call::new(self, asked, dialect, raw, read, thread.to_string()).run().await,
            None => {
                self.unread(asked, dialect, "the request is not the JSON of a model call", Sent::Whole(Some(raw))).await
            }
        }
    }

    /// Passes on a model call that can't be read, and says so.
    async fn unread(self: Arc<Self>, asked: Asked, dialect: Dialect, why: &str, body: Sent) -> Response<Out> {
        let data = json!({"provider": asked.provider, "path": asked.told(), "why": why, "dialect": dialect.name()});
        self.note("model.unread", "main", &self.span(), data);
        self.pass(asked, body).await
    }

    /// Passes on what is no question to a model, or can't be read.
    async fn pass(self: Arc<Self>, asked: Asked, body: Sent) -> Response<Out> {
        let about = About {
            provider: asked.provider.clone(),
            dialect: None,
            span: self.span(),
            thread: "main".into(),
            call: None,
            aside: true,
            model: None,
            path: asked.told(),
            by: "upstream",
            changed: Vec::new(),
        };
        let recorded = {
            let mut state = self.state();
            let calls = state.calls;
            let recording = state.recording.as_mut().filter(|recording| !recording.is_live(calls + 1));
            recording.map(|recording| recording.aside(&about.path, ""))
        };
        match recorded {
            Some(found) => self.recorded(found, None, About { by: "recording", ..about }),
            None => self.send(&asked, body, about).await,
        }
    }

    /// Sends a request on, and passes its answer back with a copy on the side.
    pub async fn send(self: Arc<Self>, asked: &Asked, body: Sent, about: About) -> Response<Out> {
        let dialect = about.dialect;
        let mut copy = Copy::new(Arc::clone(&self), about);
        let response = match self.request(asked, body) {
            Ok(request) => asked.upstream.send(&self.ways, request).await,
            Err(error) => Err(std::io::Error::other(error)),
        };
        let (mut head, body) = match response {
            Ok(response) => response.into_parts(),
            Err(error) => {
                let why = format!("bugeye can't reach {}: {error}", asked.upstream.authority());
                copy.failed(StatusCode::BAD_GATEWAY.as_u16(), &why);
                return failure(dialect, StatusCode::BAD_GATEWAY, &why);
            }
        };
        strip(&mut head.headers);
        let text = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let packed = !["", "identity"].contains(&text(header::CONTENT_ENCODING));
        copy.begin(head.status.as_u16(), text(header::CONTENT_TYPE), !packed);
        let mut response = Response::new(Out::Passed { body, copy: Some(copy) });
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        response
    }

    /// The request as the upstream gets it: with all that the agent sent, but what was about its connection to us.
    fn request(&self, asked: &Asked, body: Sent) -> hyper::http::Result<Request<Sent>> {
        let mut request = Request::new(body);
        *request.method_mut() = asked.method.clone();
        *request.uri_mut() = asked.upstream.path(&asked.path, asked.query.as_deref()).parse()?;
        *request.headers_mut() = asked.headers.clone();
        let headers = request.headers_mut();
        strip(headers);
        // How long it is follows from the body, and whether it is wanted was between the agent and us.
        headers.remove(header::CONTENT_LENGTH);
        headers.remove(header::EXPECT);
        headers.insert(header::HOST, HeaderValue::try_from(asked.upstream.authority())?);
        // So that the copy can be read.
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        Ok(request)
    }

    /// Answers from the record.
    pub fn recorded(
        self: Arc<Self>,
        found: Option<super::rerun::Recorded>,
        dialect: Option<Dialect>,
        about: About,
    ) -> Response<Out> {
        let missing = |why: &str| {
            Copy::new(Arc::clone(&self), about.clone()).failed(StatusCode::BAD_REQUEST.as_u16(), why);
            failure(dialect, StatusCode::BAD_REQUEST, why)
        };
        let Some(answer) = found.and_then(|call| call.answer) else {
            return missing(&format!("[debugger] the recording has no answer to {}", about.path));
        };
        let bytes = self.state().recording.as_ref().map(|recording| recording.bytes(&answer));
        match bytes {
            Some(Ok(bytes)) => {
                let (status, kind) = (answer.status, answer.content_type);
                self.say(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), &kind, bytes, about)
            }
            Some(Err(error)) => missing(&format!("[debugger] the recorded answer can't be read: {error}")),
            None => missing("[debugger] there is no recording"),
        }
    }

    /// Sends an answer of our own.
    pub fn say(self: Arc<Self>, status: StatusCode, kind: &str, bytes: Vec<u8>, about: About) -> Response<Out> {
        let mut copy = Copy::new(self, about);
        copy.begin(status.as_u16(), kind, true);
        copy.push(&bytes);
        copy.done(true);
        said(status, kind, bytes)
    }

    /// What an event says of an answer's bytes.
    pub fn keep_answer(&self, dialect: Option<Dialect>, kind: &str, raw: &[u8], reply: &Reply) -> Json {
        let kept = self.state().keeper.answer(dialect, kind, raw, reply);
        kept.unwrap_or_else(|error| self.unkept(&error))
    }

    /// What can't be kept is told once, and the agent goes on.
    pub fn unkept(&self, error: &std::io::Error) -> Json {
        if !std::mem::replace(&mut self.state().unkept, true) {
            let why = format!("model calls can't be kept: {error}; the agent goes on without");
            self.note("model.unkept", "main", "model", json!({"why": why}));
        }
        Json::Null
    }

    /// Adds to what all calls took, and tells the sum.
    pub fn sum(&self, usage: &Usage, cost: Option<f64>) -> Json {
        let mut state = self.state();
        state.usage.input += usage.input;
        state.usage.output += usage.output;
        state.usage.cache_read += usage.cache_read;
        state.usage.cache_write += usage.cache_write;
        match cost {
            Some(cost) => state.cost += cost,
            None => state.unpriced += 1,
        }
        json!({"usage": state.usage, "usd": state.cost, "unpriced": state.unpriced})
    }
}

/// A request's body, or what was read of one that is too long, and the rest.
enum Read {
    Whole(Bytes),
    Long(Bytes, Incoming),
}

async fn read(mut body: Incoming) -> Result<Read, hyper::Error> {
    use http_body_util::BodyExt as _;
    let said = body.size_hint().exact().unwrap_or(0);
    if said > LONGEST as u64 {
        return Ok(Read::Long(Bytes::new(), body));
    }
    let mut read = Vec::with_capacity(usize::try_from(said).unwrap_or(0).min(LONGEST));
    while let Some(frame) = body.frame().await {
        if let Some(bytes) = frame?.data_ref() {
            read.extend_from_slice(bytes);
        }
        if read.len() > LONGEST {
            return Ok(Read::Long(read.into(), body));
        }
    }
    Ok(Read::Whole(read.into()))
}

/// Takes out what is about a connection, with what its `Connection` header names.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in OF_CONNECTION.iter().chain(&named) {
        headers.remove(name);
    }
}

/// An answer in one piece.
pub fn said(status: StatusCode, kind: &str, bytes: Vec<u8>) -> Response<Out> {
    let mut response = Response::new(Out::whole(bytes));
    *response.status_mut() = status;
    if let Ok(kind) = HeaderValue::from_str(kind) {
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}

fn refusal(status: StatusCode, why: &'static str) -> Response<Out> {
    said(status, "text/plain", why.as_bytes().to_vec())
}

/// An error as this client knows them. Ours are told again only where that may help.
pub fn failure(dialect: Option<Dialect>, status: StatusCode, why: &str) -> Response<Out> {
    let error =
        dialect.map_or_else(|| json!({"error": {"message": why}}), |dialect| dialect.error(status.as_u16(), why));
    let mut response = said(status, JSON, error.to_string().into_bytes());
    if status.is_client_error() {
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
    }
    response
}
