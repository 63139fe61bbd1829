//! What the tests need around a tap: a broker that judges as a test wants, an upstream that says what a test wants in the
//! pieces it wants, and a client that sees each piece.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bugeye::agent::gate::{Answer, Ask, Line, Note, Tap, Told};
use bugeye::agent::model::{Config, Served, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub const TOKEN: &str = "0123456789abcdef0123456789abcdef";
/// Nothing in a test takes longer.
const LIMIT: Duration = Duration::from_secs(30);

/// Waits for a condition.
pub async fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let waited = async {
        loop {
            if let Some(found) = found() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LIMIT, waited).await.unwrap_or_else(|_| panic!("never: {what}"))
}

/// What a judge says of a question; None holds it.
type Judge = Box<dyn FnMut(&Ask) -> Option<Answer> + Send>;

/// A broker that does as a test says.
#[derive(Clone, Default)]
pub struct Desk {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    notes: Vec<Note>,
    asks: Vec<Ask>,
    held: VecDeque<(u64, oneshot::Sender<Answer>)>,
    withdrawn: Vec<u64>,
    attached: Vec<Value>,
}

impl Desk {
    /// All questions are answered by going on.
    pub fn open() -> (Line, Self) {
        Self::judging(None, |_| Some(Answer::default()))
    }

    /// `record`: where events are written as a session writes them.
    pub fn judging(record: Option<&Path>, judge: impl FnMut(&Ask) -> Option<Answer> + Send + 'static) -> (Line, Self) {
        let (line, mut told) = Line::new(Tap::Model);
        let desk = Self::default();
        let ours = desk.clone();
        let mut judge: Judge = Box::new(judge);
        let events = record.map(|folder| folder.join("events.jsonl"));
        tokio::spawn(async move {
            while let Some(told) = told.recv().await {
                let mut shared = ours.shared.lock().unwrap();
                match told {
                    Told::Ask { id, ask, reply, .. } => {
                        match judge(&ask) {
                            Some(answer) => drop(reply.send(answer)),
                            None => shared.held.push_back((id, reply)),
                        }
                        shared.asks.push(*ask);
                    }
                    Told::Withdrawn { id } => shared.withdrawn.push(id),
                    Told::Note { note, .. } => {
                        shared.notes.push(note.clone());
                        if let Some(events) = &events {
                            append(events, &note, shared.notes.len());
                        }
                    }
                    Told::Attached { about, .. } => shared.attached.push(about),
                    Told::Ended { .. } => {}
                }
            }
        });
        (line, desk)
    }

    /// What was told, of one type.
    pub fn notes(&self, kind: &str) -> Vec<Note> {
        self.shared.lock().unwrap().notes.iter().filter(|note| note.kind == kind).cloned().collect()
    }

    pub fn all_notes(&self) -> Vec<Note> {
        self.shared.lock().unwrap().notes.clone()
    }

    pub async fn note(&self, kind: &str, at: usize) -> Value {
        until(kind, || self.notes(kind).get(at).map(|note| note.data.clone())).await
    }

    pub fn asks(&self) -> Vec<Ask> {
        self.shared.lock().unwrap().asks.clone()
    }

    pub fn attached(&self) -> Vec<Value> {
        self.shared.lock().unwrap().attached.clone()
    }

    pub fn withdrawn(&self) -> usize {
        self.shared.lock().unwrap().withdrawn.len()
    }

    pub fn held(&self) -> usize {
        self.shared.lock().unwrap().held.len()
    }

    /// Forgets the question that is held longest.
    pub fn forget(&self) {
        self.shared.lock().unwrap().held.pop_front();
    }

    /// Answers the question that is held longest.
    pub async fn answer(&self, answer: Answer) {
        let reply = until("a question is held", || self.shared.lock().unwrap().held.pop_front()).await.1;
        reply.send(answer).expect("somebody waits for the answer");
    }
}

/// A line of a record.
fn append(path: &Path, note: &Note, number: usize) {
    let mut data = note.data.clone();
    data["id"] = json!(note.span);
    let event = json!({"v": 1, "seq": number, "ts": 0, "session": "s", "thread": 1, "type": note.kind, "data": data});
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{event}\n").as_bytes()).unwrap();
}

pub fn config() -> Config {
    Config::new(TOKEN.into())
}

/// A tap before this upstream, which goes by all providers' names.
pub async fn tap(line: Line, url: &str) -> Served {
    serve(line, with_upstreams(config(), url)).await.unwrap()
}

pub fn with_upstreams(config: Config, url: &str) -> Config {
    ["anthropic", "openai", "gemini"].iter().fold(config, |config, name| config.upstream(name, url))
}

/// A request that reached the upstream.
#[derive(Debug, Clone)]
pub struct Seen {
    /// `POST /v1/messages`
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// What an upstream does with a request.
#[derive(Debug, Clone)]
pub enum Say {
    Whole {
        status: u16,
        kind: &'static str,
        more: &'static str,
        body: Vec<u8>,
    },
    /// In chunks as they are, each sent by itself.
    Pieces {
        kind: &'static str,
        pieces: Vec<Vec<u8>>,
    },
    /// The same piece, until nobody reads any more.
    Endless(Vec<u8>),
    /// Some pieces, and the connection breaks.
    Broken(Vec<Vec<u8>>),
}

impl Say {
    pub fn json(body: &Value) -> Self {
        Self::Whole { status: 200, kind: "application/json", more: "", body: body.to_string().into_bytes() }
    }

    pub fn error(status: u16, body: &Value) -> Self {
        Self::Whole {
            status,
            kind: "application/json",
            more: "retry-after: 7\r\n",
            body: body.to_string().into_bytes(),
        }
    }

    pub fn sse(text: &str) -> Self {
        Self::Pieces { kind: "text/event-stream", pieces: vec![text.as_bytes().to_vec()] }
    }
}

/// An upstream. Dropping it ends it.
pub struct Upstream {
    pub url: String,
    pub seen: Arc<Mutex<Vec<Seen>>>,
    listening: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Upstream {
    /// Says the same to everybody.
    pub async fn always(say: Say) -> Self {
        Self::start(move |_, _| say.clone()).await
    }

    /// The second argument counts requests from 0.
    pub async fn start(script: impl Fn(&Seen, usize) -> Say + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (ours, script) = (Arc::clone(&seen), Arc::new(script));
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (ours, script) = (Arc::clone(&ours), Arc::clone(&script));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Some(request) = read_request(&mut stream).await {
                        let number = {
                            let mut seen = ours.lock().unwrap();
                            seen.push(request.clone());
                            seen.len() - 1
                        };
                        if say(stream.get_mut(), script(&request, number)).await.is_none() {
                            return;
                        }
                    }
                });
            }
        });
        Self { url, seen, listening }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn say(stream: &mut TcpStream, say: Say) -> Option<()> {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: ";
    stream.set_nodelay(true).unwrap();
    match say {
        Say::Whole { status, kind, more, body } => {
            let head = format!(
                "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\n{more}content-length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.ok()?;
            stream.write_all(&body).await.ok()
        }
        Say::Pieces { kind, pieces } => {
            stream.write_all(format!("{chunked}{kind}\r\n\r\n").as_bytes()).await.ok()?;
            for piece in &pieces {
                chunk(stream, piece).await?;
                // So that each comes by itself.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            stream.write_all(b"0\r\n\r\n").await.ok()
        }
        Say::Endless(piece) => {
            stream.write_all(format!("{chunked}text/event-stream\r\n\r\n").as_bytes()).await.ok()?;
            loop {
                chunk(stream, &piece).await?;
            }
        }
        Say::Broken(pieces) => {
            stream.write_all(format!("{chunked}text/event-stream\r\n\r\n").as_bytes()).await.ok()?;
            for piece in &pieces {
                chunk(stream, piece).await?;
            }
            None
        }
    }
}

async fn chunk(stream: &mut TcpStream, piece: &[u8]) -> Option<()> {
    let mut whole = format!("{:x}\r\n", piece.len()).into_bytes();
    whole.extend_from_slice(piece);
    whole.extend_from_slice(b"\r\n");
    stream.write_all(&whole).await.ok()
}

type Headers = Vec<(String, String)>;

async fn read_head(stream: &mut BufReader<TcpStream>) -> Option<(String, Headers)> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok().filter(|read| *read > 0)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_string())),
            None => return Some((first.trim_end().to_string(), headers)),
        }
    }
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let (first, headers) = read_head(stream).await?;
    let line = first.trim_end_matches(" HTTP/1.1").to_string();
    let mut seen = Seen { line, headers, body: Vec::new() };
    if seen.header("transfer-encoding") == Some("chunked") {
        while let Some(piece) = read_chunk(stream).await? {
            seen.body.extend(piece);
        }
    } else if let Some(length) = seen.header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        seen.body.resize(length, 0);
        stream.read_exact(&mut seen.body).await.ok()?;
    }
    Some(seen)
}

/// The next chunk; None inside at the end, None outside where the connection broke.
async fn read_chunk(stream: &mut BufReader<TcpStream>) -> Option<Option<Vec<u8>>> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
    let length = usize::from_str_radix(line.trim(), 16).ok()?;
    let mut piece = vec![0; length + 2];
    stream.read_exact(&mut piece).await.ok()?;
    piece.truncate(length);
    Some((length > 0).then_some(piece))
}

/// What a client got.
#[derive(Debug, Clone)]
pub struct Got {
    pub status: u16,
    pub headers: Headers,
    /// As they came, where they came in chunks.
    pub pieces: Vec<Vec<u8>>,
    /// Whether it ended as it should.
    pub whole: bool,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn body(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body()).unwrap()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body()).unwrap()
    }
}

/// A client's connection with a request under way.
pub struct Waiting {
    stream: BufReader<TcpStream>,
}

impl Waiting {
    pub async fn got(mut self) -> Got {
        tokio::time::timeout(LIMIT, self.read()).await.expect("an answer in time")
    }

    async fn read(&mut self) -> Got {
        let (first, headers) = read_head(&mut self.stream).await.expect("an answer");
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let mut got = Got { status, headers, pieces: Vec::new(), whole: true };
        if got.header("transfer-encoding") == Some("chunked") {
            loop {
                match read_chunk(&mut self.stream).await {
                    Some(Some(piece)) => got.pieces.push(piece),
                    Some(None) => return got,
                    None => {
                        got.whole = false;
                        return got;
                    }
                }
            }
        }
        let length = got.header("content-length").and_then(|length| length.parse::<usize>().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        got.pieces.push(body);
        got
    }

    /// The status and so many bytes of the answer; then the connection is dropped.
    pub async fn only(mut self, bytes: usize) -> u16 {
        let (first, _) = read_head(&mut self.stream).await.expect("an answer");
        let mut left = bytes;
        while left > 0 {
            let piece = read_chunk(&mut self.stream).await.unwrap().unwrap();
            left = left.saturating_sub(piece.len());
        }
        first.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

/// Sends a request, and does not wait for its answer. `words`: lines of headers.
pub async fn send(served: &Served, first: &str, words: &[&str], body: &[u8]) -> Waiting {
    let mut stream = TcpStream::connect(("127.0.0.1", served.port)).await.unwrap();
    let (method, path) = first.split_once(' ').unwrap();
    let host = format!("host: 127.0.0.1:{}", served.port);
    let mut lines = vec![format!("{method} /s/{TOKEN}{path} HTTP/1.1")];
    if !words.iter().any(|word| word.starts_with("host:")) {
        lines.push(host);
    }
    lines.extend(words.iter().map(ToString::to_string));
    lines.push(format!("content-length: {}", body.len()));
    stream.write_all(format!("{}\r\n\r\n", lines.join("\r\n")).as_bytes()).await.unwrap();
    // The other end may have said no before it read all.
    let _ = stream.write_all(body).await;
    Waiting { stream: BufReader::new(stream) }
}

pub async fn post(served: &Served, path: &str, body: &Value) -> Got {
    post_with(served, path, &[], body).await
}

pub async fn post_with(served: &Served, path: &str, words: &[&str], body: &Value) -> Got {
    let words: Vec<&str> = words.iter().copied().chain(["content-type: application/json"]).collect();
    send(served, &format!("POST {path}"), &words, body.to_string().as_bytes()).await.got().await
}

/// All files below a folder, with their contents.
pub fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files(&entry.path()));
        } else {
            found.push((entry.path(), std::fs::read(entry.path()).unwrap()));
        }
    }
    found
}
