//! A model API that says what a test wants: agents are pointed at it, and what reaches the "model" is recorded.
//!
//! A small HTTP server on loopback, in the test's own process. A test gives a list of turns, or a function that makes a turn
//! of each request; one that waits before it answers holds the agent. Each agent gets a model of its own, so that several
//! may run at once. How the turns are spelled is a [`Dialect`] (`dialects.rs`): to add one is a constant.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dialects::{DIALECTS, Dialect};

/// A client that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);

/// What the model says next.
#[derive(Debug, Clone)]
pub enum Turn {
    /// Asks for tools; more than one at once if there are several.
    Calls(Vec<Call>),
    /// Says something, and is done.
    Text(String),
}

/// A call of a tool that the model asks for.
#[derive(Debug, Clone)]
pub struct Call {
    /// As the agent lists it: `Bash`, `mcp__SERVER__TOOL`.
    pub tool: String,
    pub input: Value,
}

impl Turn {
    pub fn call(tool: impl Into<String>, input: Value) -> Self {
        Self::Calls(vec![Call { tool: tool.into(), input }])
    }

    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }
}

/// What the agent sent.
#[derive(Debug, Clone)]
pub struct Request {
    /// Counts from 1, in the order they came.
    pub number: usize,
    /// Without what was asked of it.
    pub path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub body: Value,
    pub dialect: &'static Dialect,
}

/// What a tool answered, as the model gets to read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The id of the call that it answers.
    pub call: String,
    pub text: String,
    pub is_error: bool,
}

impl Request {
    /// A header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }

    /// The tools that the model may ask for, with what they take.
    pub fn tools(&self) -> Vec<(String, Value)> {
        (self.dialect.tools)(&self.body)
    }

    /// What tools have answered so far, oldest first.
    pub fn answers(&self) -> Vec<Answered> {
        (self.dialect.answers)(&self.body)
    }

    /// All of it as one text, to look for words in.
    pub fn text(&self) -> String {
        let mut texts = Vec::new();
        gather(&self.body, &mut texts);
        texts.join("\n")
    }
}

/// Every text in a value, in order.
fn gather(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
        Value::Object(members) => members.values().for_each(|member| gather(member, into)),
        _ => {}
    }
}

type Script = Box<dyn Fn(&Request) -> Turn + Send + Sync>;

struct Shared {
    script: Script,
    requests: Mutex<Vec<Request>>,
    /// Requests that are no model's: method and path.
    others: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

/// The server. Dropping it ends it.
pub struct Model {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

impl Model {
    /// One turn after the other; what comes after the last is told that it is over.
    pub fn scripted(turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns = Mutex::new(turns.into_iter().collect::<VecDeque<_>>());
        let over = || Turn::text("The script is over.");
        Self::start(Box::new(move |_| turns.lock().unwrap().pop_front().unwrap_or_else(over)))
    }

    /// A turn for each request that offers tools. Requests that come at once are asked about at once.
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script,
            requests: Mutex::default(),
            others: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let ours = Arc::clone(&shared);
        let listening = std::thread::spawn(move || {
            for client in listener.incoming() {
                if ours.is_over.load(Ordering::SeqCst) {
                    return;
                }
                let ours = Arc::clone(&ours);
                // An agent that hangs up in mid-answer is free to.
                std::thread::spawn(move || client.and_then(|client| serve(&client, &ours)).ok());
            }
        });
        Self { address, shared, listening: Some(listening) }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What reached the model so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Requests that were for no model, as `GET /path`.
    pub fn others(&self) -> Vec<String> {
        self.shared.others.lock().unwrap().clone()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // Wakes the one that waits for clients.
        drop(TcpStream::connect(self.address));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

/// One request, one answer, and the connection ends.
fn serve(client: &TcpStream, shared: &Shared) -> io::Result<()> {
    client.set_read_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(client);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut words = first.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(()) };
    let headers = read_headers(&mut reader)?;
    let body = read_body(&mut reader, &headers)?;
    let route = path.split('?').next().unwrap_or_default();
    let dialect = DIALECTS.iter().find(|dialect| method == "POST" && (dialect.takes)(route));
    let (Some(dialect), Ok(body)) = (dialect, serde_json::from_slice::<Value>(&body)) else {
        shared.others.lock().unwrap().push(format!("{method} {path}"));
        // Enough for whoever lists models or counts tokens.
        return whole(client, &json!({"data": [], "models": [], "input_tokens": 1}));
    };
    let request = {
        let mut requests = shared.requests.lock().unwrap();
        let number = requests.len() + 1;
        requests.push(Request { number, path: route.to_string(), headers, body, dialect });
        requests[number - 1].clone()
    };
    // A question aside (a title for the conversation, say) is no turn of it.
    let turn = if request.tools().is_empty() { Turn::text("Fine.") } else { (shared.script)(&request) };
    if (dialect.streams)(&request) {
        stream(client, &request, &turn)
    } else {
        whole(client, &(dialect.whole)(&request, &turn))
    }
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_string())),
            None => return Ok(headers),
        }
    }
}

fn header<'a>(headers: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
}

/// As long as it says, or in chunks.
fn read_body(reader: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if header(headers, "transfer-encoding") != Some("chunked") {
        let length = header(headers, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        reader.take(length).read_to_end(&mut body)?;
        return Ok(body);
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let length = u64::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        reader.take(length).read_to_end(&mut body)?;
        reader.read_line(&mut line)?;
        if length == 0 {
            return Ok(body);
        }
    }
}

fn whole(mut client: &TcpStream, answer: &Value) -> io::Result<()> {
    let answer = answer.to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ";
    client.write_all(format!("{head}{}\r\n\r\n{answer}", answer.len()).as_bytes())
}

/// Server-sent events, up to the end of the connection.
fn stream(mut client: &TcpStream, request: &Request, turn: &Turn) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")?;
    for (name, data) in (request.dialect.events)(request, turn) {
        let name = if name.is_empty() { String::new() } else { format!("event: {name}\n") };
        client.write_all(format!("{name}data: {data}\n\n").as_bytes())?;
    }
    client.flush()
}
