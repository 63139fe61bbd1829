//! One connection over a socket pair, with commands made for it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

use super::*;
use crate::commands::{CATALOGUE, Entry, Run};
use crate::config::Config;
use crate::hub::Hub;
use crate::paths::Paths;

const fn entry(name: &'static str, run: fn(Value, Context) -> Running) -> Entry {
    Entry { name, run: Run::Daemon(run), ..CATALOGUE[0] }
}

const TABLE: &[Entry] = &[
    entry("echo", |args, _| Box::pin(async move { Ok(args) })),
    entry("wait", |_, _| Box::pin(std::future::pending())),
    entry("panic", |_, _| Box::pin(async { panic!("as asked") })),
    entry("stream", |_, cx| {
        Box::pin(async move {
            for number in 0..200 {
                let _ = cx.stream.send(Part::Event(json!(number))).await;
            }
            let _ = cx.stream.send(Part::Progress("nearly".to_string())).await;
            *cx.about.lock().unwrap() = (Some("s1".to_string()), Some("fake 1".to_string()));
            Err(Failure::refused("no"))
        })
    }),
    entry("huge", |_, _| Box::pin(async { Ok(json!("x".repeat(MAX_LINE))) })),
];

fn server() -> (Arc<Server>, mpsc::Receiver<Ending>) {
    let nowhere = || "/nonexistent".into();
    let paths = Paths { runtime: nowhere(), state: nowhere(), data: nowhere(), config: nowhere() };
    let (endings, asked) = mpsc::channel(1);
    let server = Server {
        hub: Hub::new(paths, Config::default()),
        find: |name| TABLE.iter().find(|entry| entry.name == name),
        connections: AtomicUsize::new(0),
        requests: AtomicUsize::new(0),
        endings,
    };
    (Arc::new(server), asked)
}

struct Client {
    server: Arc<Server>,
    asked: mpsc::Receiver<Ending>,
    stream: BufReader<UnixStream>,
}

impl Client {
    fn new() -> Self {
        let (server, asked) = server();
        let (ours, theirs) = UnixStream::pair().unwrap();
        tokio::spawn(serve(Arc::clone(&server), theirs));
        Self { server, asked, stream: BufReader::new(ours) }
    }

    async fn say(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(Duration::from_secs(10), self.stream.read_line(&mut line)).await;
        assert!(read.unwrap().unwrap() > 0, "the connection is closed");
        serde_json::from_str(&line).unwrap()
    }

    async fn ask(&mut self, line: &str) -> Value {
        self.say(line).await;
        self.hear().await["final"].clone()
    }
}

#[tokio::test]
async fn hello_is_answered_whatever_the_protocol() {
    let mut client = Client::new();
    for protocol in [0, PROTOCOL, 99] {
        let answer = client.ask(&format!(r#"{{"v":{protocol},"id":3,"cmd":"hello"}}"#)).await;
        assert_eq!(answer["id"], 3);
        assert_eq!(answer["result"]["protocol"], PROTOCOL);
        assert_eq!(answer["result"]["pid"], std::process::id());
        assert_eq!(answer["result"]["sessions"], 0);
    }
}

#[tokio::test]
async fn another_protocol_is_refused_with_both_numbers() {
    let mut client = Client::new();
    let answer = client.ask(r#"{"v":99,"id":3,"cmd":"echo"}"#).await;
    assert_eq!(answer["error"]["kind"], "refused");
    assert_eq!(answer["error"]["message"], "the daemon speaks protocol 1, the client 99");
    assert!(answer["error"]["hints"][0].as_str().unwrap().contains("bugeye daemon stop"));
}

#[tokio::test]
async fn a_line_that_is_no_request_is_answered_and_the_connection_lives() {
    let mut client = Client::new();
    let deep = format!(r#"{{"v":1,"id":8,"cmd":"echo","args":{}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    for (line, id) in [
        ("", 0),
        ("nonsense", 0),
        ("{\"v\":1", 0),
        ("[]", 0),
        ("\u{0}\u{1}", 0),
        (r#"{"id":7}"#, 7),
        (r#"{"v":1,"id":-1,"cmd":"echo"}"#, 0),
        (&deep, 8),
    ] {
        let answer = client.ask(line).await;
        assert_eq!(answer["error"]["kind"], "usage", "{line}");
        assert_eq!(answer["id"], id, "{line}");
    }
    client.stream.write_all(b"\xff\xfe\n").await.unwrap();
    assert_eq!(client.hear().await["final"]["error"]["kind"], "usage");
    assert_eq!(client.ask(r#"{"v":1,"id":9,"cmd":"echo","args":{"a":1}}"#).await["result"], json!({"a": 1}));
}

#[tokio::test]
async fn a_line_without_end_is_cut_off() {
    let mut client = Client::new();
    let (reader, mut writer) = client.stream.into_inner().into_split();
    let sending = tokio::spawn(async move {
        let chunk = vec![b'x'; 1 << 20];
        while writer.write_all(&chunk).await.is_ok() {}
    });
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).await.unwrap();
    assert!(line.contains("at most 16777216 bytes"), "{line}");
    tokio::time::timeout(Duration::from_secs(10), sending).await.unwrap().unwrap();
    client.asked.close();
}

#[tokio::test]
async fn several_requests_are_under_way_at_once() {
    let mut client = Client::new();
    client.say(r#"{"v":1,"id":1,"cmd":"wait"}"#).await;
    assert_eq!(client.ask(r#"{"v":1,"id":2,"cmd":"echo","args":5}"#).await["id"], 2);
    assert_eq!(client.server.requests.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_wait_dies_with_its_client() {
    let mut client = Client::new();
    client.say(r#"{"v":1,"id":1,"cmd":"wait"}"#).await;
    client.ask(r#"{"v":1,"id":2,"cmd":"echo"}"#).await;
    let Client { server, stream, .. } = client;
    drop(stream);
    let gone = async {
        while server.requests.load(Ordering::Relaxed) + server.connections.load(Ordering::Relaxed) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), gone).await.unwrap();
}

#[tokio::test]
async fn parts_come_in_order_before_the_end() {
    let mut client = Client::new();
    client.say(r#"{"v":1,"id":4,"cmd":"stream"}"#).await;
    for number in 0..200 {
        assert_eq!(client.hear().await["event"], json!({"id": 4, "data": number}));
    }
    assert_eq!(client.hear().await["progress"], json!({"id": 4, "text": "nearly"}));
    let last = client.hear().await["final"].clone();
    assert_eq!(last["error"]["message"], "no");
    assert_eq!((last["session"].as_str(), last["via"].as_str()), (Some("s1"), Some("fake 1")));
}

#[tokio::test]
async fn a_defect_ends_one_command_only() {
    let mut client = Client::new();
    let answer = client.ask(r#"{"v":1,"id":1,"cmd":"panic"}"#).await;
    assert_eq!(answer["error"]["kind"], "internal");
    assert_eq!(client.ask(r#"{"v":1,"id":2,"cmd":"echo","args":1}"#).await["result"], 1);
}

#[tokio::test]
async fn an_answer_too_long_to_read_is_said() {
    let mut client = Client::new();
    let answer = client.ask(r#"{"v":1,"id":1,"cmd":"huge"}"#).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("more than a client reads"));
}

#[tokio::test]
async fn an_unknown_command_is_said() {
    let mut client = Client::new();
    let answer = client.ask(r#"{"v":1,"id":1,"cmd":"fly"}"#).await;
    assert_eq!(answer["error"]["kind"], "usage");
}

#[tokio::test]
async fn shutdown_is_answered_when_the_sessions_are_gone() {
    let mut client = Client::new();
    client.say(r#"{"v":99,"id":1,"cmd":"shutdown"}"#).await;
    let ending = client.asked.recv().await.unwrap();
    ending.ended.send(3).unwrap();
    assert_eq!(client.hear().await["final"]["result"]["sessions"], 3);
    ending.answered.await.unwrap();
}
