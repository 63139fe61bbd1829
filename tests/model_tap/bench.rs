//! What a call through the tap costs, beside the same call made directly and through a proxy that only copies, in the same
//! run: `scripts/bench agent` runs this with the figures of a release; as a test it is short, and its bound generous.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bugeye::agent::broker::{Broker, Effect};
use bugeye::agent::gate::{Line, Tap, Told};
use bugeye::agent::model::serve;
use serde_json::{Value, json};

use crate::canned;
use crate::world::{TOKEN, config, with_upstreams};

/// An upstream on a thread of its own that answers at once.
fn upstream(answer: &str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let whole = format!("{head}{:x}\r\n{answer}\r\n0\r\n\r\n", answer.len()).into_bytes();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, whole) = (stream.unwrap(), whole.clone());
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let mut reader = BufReader::new(&stream);
                while let Some(length) = head_of(&mut reader) {
                    let mut body = vec![0; length];
                    reader.read_exact(&mut body).unwrap();
                    (&stream).write_all(&whole).unwrap();
                }
            });
        }
    });
    port
}

/// A proxy that reads a whole request, sends it on, and sends the answer back as it comes: the least that one can do.
fn copying(upstream: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let client = client.unwrap();
            std::thread::spawn(move || {
                let server = TcpStream::connect(("127.0.0.1", upstream)).unwrap();
                let (mut asks, mut answers) = (BufReader::new(&client), BufReader::new(&server));
                for stream in [&client, &server] {
                    stream.set_nodelay(true).unwrap();
                }
                while let Some(length) = head_of(&mut asks) {
                    let mut body = vec![0; length];
                    asks.read_exact(&mut body).unwrap();
                    let head =
                        format!("POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\n\r\n");
                    (&server).write_all(head.as_bytes()).unwrap();
                    (&server).write_all(&body).unwrap();
                    let mut answer = Vec::new();
                    while !answer.ends_with(b"0\r\n\r\n") {
                        let piece = answers.fill_buf().unwrap();
                        answer.extend_from_slice(piece);
                        let length = piece.len();
                        (&client).write_all(&answer[answer.len() - length..]).unwrap();
                        answers.consume(length);
                    }
                }
            });
        }
    });
    port
}

/// The length of the body that follows a head; None at the end.
fn head_of(reader: &mut impl std::io::BufRead) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            return Some(length);
        }
        if let Some(said) = line.strip_prefix("content-length: ") {
            length = said.parse().unwrap();
        }
    }
}

/// A client with a connection that stays.
struct Client {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
    /// Where in it the number of the call is.
    numbers: Vec<usize>,
}

impl Client {
    /// `anew`: no part of a request is that of the one before, as in a first one. Else only the last message is another.
    fn new(port: u16, path: &str, body: &str, anew: bool) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {}\r\n\r\n", body.len());
        let request = format!("{head}{body}");
        let numbers =
            request.rmatch_indices(NUMBER).map(|(at, _)| at).take(if anew { usize::MAX } else { 1 }).collect();
        Self { stream: BufReader::new(stream), request: request.into_bytes(), numbers }
    }

    /// One call, from its first byte to the last of its answer.
    fn call(&mut self, round: usize, wanted: &str) -> Duration {
        for at in &self.numbers {
            self.request[*at..][..NUMBER.len()].copy_from_slice(format!("{round:06}").as_bytes());
        }
        let started = Instant::now();
        self.stream.get_mut().write_all(&self.request).unwrap();
        head_of(&mut self.stream).expect("an answer");
        let mut got = Vec::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut piece = vec![0; length + 2];
            self.stream.read_exact(&mut piece).unwrap();
            if length == 0 {
                break;
            }
            got.extend_from_slice(&piece[..length]);
        }
        let took = started.elapsed();
        assert_eq!(got, wanted.as_bytes());
        took
    }
}

/// The real broker, which holds nothing; what it has to say to the debugger is dropped.
fn broker() -> Line {
    let (line, mut told) = Line::new(Tap::Model);
    tokio::spawn(async move {
        let (mut broker, mut replies) = (Broker::default(), HashMap::new());
        while let Some(told) = told.recv().await {
            match told {
                Told::Ask { id, tap, ask, reply } => {
                    replies.insert(id, reply);
                    broker.ask(id, tap, *ask);
                }
                Told::Note { tap, note } => broker.note(tap, note),
                Told::Attached { tap, about } => broker.attached(tap, &about),
                Told::Withdrawn { .. } | Told::Ended { .. } => {}
            }
            for effect in broker.take_effects() {
                if let Effect::Answer(id, answer) = effect {
                    let _ = replies.remove(&id).unwrap().send(answer);
                }
            }
        }
    });
    line
}

fn quantile(times: &mut [Duration], part: f64) -> f64 {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0
}

/// What stands for the number of a call.
const NUMBER: &str = "@@@@@@";
/// What tools answer with: source, and, for the worst of cases, nothing but line ends (each is two letters, and read as one).
const SOURCE: &str = "    let value = some.call(of_this, or_that);\n";
const ENDS: &str = "o\n";
/// How calls are made: with a record, or each as the first of its conversation.
const RECORDED: &str = ", recorded";
const ANEW: &str = ", all new";

/// A request of about so many bytes, as agents' are: instructions, tools, and a history.
fn question(bytes: usize, said: &str) -> Value {
    let mut body = canned::messages().question;
    body["system"] = json!([{"type": "text", "text": format!("{NUMBER}{}", "s".repeat(bytes / 3))}]);
    body["tools"] = (0..12)
        .map(|at| json!({"name": format!("T{at}"), "description": format!("{NUMBER}{}", "d".repeat(bytes / 36)), "input_schema": {}}))
        .collect();
    let messages: Vec<Value> = (0..20)
        .flat_map(|at| {
            let call = json!({"type": "tool_use", "id": format!("t{at}"), "name": "T1", "input": {"n": at}});
            let output = format!("{at} {}{NUMBER}", said.repeat(bytes / 60 / said.len()));
            let result = json!({"type": "tool_result", "tool_use_id": format!("t{at}"), "content": output});
            [json!({"role": "assistant", "content": [call]}), json!({"role": "user", "content": [result]})]
        })
        .collect();
    body["messages"].as_array_mut().unwrap().extend(messages);
    body
}

#[test]
fn a_call_through_the_tap_costs() {
    let rounds = if cfg!(debug_assertions) { 10 } else { 500 };
    let answer = canned::messages().stream;
    let port = upstream(&answer);
    let copier = copying(port);
    println!("a call of the model: medians of {rounds} calls each, one after the other in turn, in ms");
    println!(
        "{:<22}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>12}{:>10}",
        "request", "direct", "p95", "copied", "p95", "tap", "p95", "tap - copy", "tap/copy"
    );
    let mut missed = Vec::new();
    let cases = [
        (2_000, SOURCE, ""),
        (85_000, SOURCE, ""),
        (85_000, SOURCE, RECORDED),
        (1_000_000, SOURCE, ""),
        (1_000_000, SOURCE, RECORDED),
        (1_000_000, SOURCE, ANEW),
        (1_000_000, ENDS, ", line ends"),
    ];
    for (bytes, said, how) in cases {
        let record = tempfile::tempdir().unwrap();
        let folder = (how == RECORDED).then(|| record.path().to_path_buf());
        let (to, ready) = std::sync::mpsc::channel();
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        // The tap in a thread and a runtime of its own, as in the adapter's process.
        let tap = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
                let line = broker();
                let mut config = with_upstreams(config(), &format!("http://127.0.0.1:{port}"));
                config.record = folder;
                let served = serve(line, config).await.unwrap();
                to.send(served.port).unwrap();
                let _ = ended.await;
            });
        });
        let body = question(bytes, said).to_string();
        let path = format!("/s/{TOKEN}/anthropic/v1/messages");
        let mut clients = [(port, "/v1/messages"), (copier, "/v1/messages"), (ready.recv().unwrap(), path.as_str())]
            .map(|(port, path)| Client::new(port, path, &body, how == ANEW));
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..rounds + 10 {
            for (client, times) in clients.iter_mut().zip(&mut times) {
                let took = client.call(round, &answer);
                // The first ones warm up.
                if round >= 10 {
                    times.push(took);
                }
            }
        }
        let [a, b, c] = times.each_mut().map(|times| quantile(times, 0.5));
        let [a95, b95, c95] = times.each_mut().map(|times| quantile(times, 0.95));
        let name = format!("{} kB{how}", body.len() / 1000);
        let more = c - b;
        println!("{name:<22}{a:>9.3}{a95:>9.3}{b:>9.3}{b95:>9.3}{c:>9.3}{c95:>9.3}{more:>12.3}{:>10.1}", c / b);
        if more > 1.0 {
            missed.push(name.clone());
        }
        assert!(c <= 10_000.0, "{name}: a call took {c} ms");
        drop(clients);
        let _ = end.send(());
        tap.join().unwrap();
    }
    let missed = if missed.is_empty() { "met".into() } else { format!("missed at {}", missed.join("; ")) };
    println!("goal for the tap: <= 1 ms more than a copying proxy: {missed}");
}
