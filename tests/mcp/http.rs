//! By HTTP: the same walk with the token, and nothing without it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::pipe::NEW_ERA;
use crate::sdks::{client, output, script, walked};
use crate::support::Bug;
use crate::support::fixtures::at;

const TOKEN: &str = "a-token-of-more-than-thirty-two-letters";

/// `bugeye mcp --http` at a port of its own.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn new(bug: &Bug) -> Self {
        let mut command = bug.command(&["mcp", "--http", "127.0.0.1:0"]);
        let mut child = command.env("BUGEYE_MCP_TOKEN", TOKEN).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let address = line.strip_prefix("listening: http://").unwrap().strip_suffix("/mcp").unwrap().to_string();
        assert_eq!(lines.next().unwrap().unwrap(), "token: BUGEYE_MCP_TOKEN");
        Self { child, address }
    }

    /// What a request with these headers is answered: the number and the rest.
    fn ask(&self, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut request = format!("POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n");
        request.push_str("Accept: application/json, text/event-stream\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        let mut answer = Vec::new();
        // An answer may come before the whole question was read, which then is cut off.
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let number = answer.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {answer}")).parse().unwrap();
        (number, answer)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn walk(mode: &str, version: &str) {
    let bug = Bug::new("python");
    let served = Served::new(&bug);
    let (file, place) = (script("client.py"), at("python/loop.py", "body"));
    let url = format!("http://{}/mcp", served.address);
    let words = [file.to_str().unwrap(), mode, &url, &place];
    let python = client("python").to_str().unwrap();
    let env = [format!("BUGEYE_MCP_TOKEN={TOKEN}"), python.to_string()];
    let words: Vec<&str> = env.iter().map(String::as_str).chain(words).collect();
    walked(&output(&bug, Path::new("env"), &words), version, true);
}

#[test]
fn the_walk_by_http() {
    walk("auto", NEW_ERA);
}

#[test]
fn the_walk_by_http_with_a_handshake() {
    walk("legacy", "2025-11-25");
}

#[test]
fn only_who_has_the_token_and_names_this_server_is_served() {
    let bug = Bug::new("python");
    let served = Served::new(&bug);
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    let host = served.address.as_str();
    let bearer = format!("Bearer {TOKEN}");
    let good: [(&str, &str); 2] = [("Host", host), ("Authorization", &bearer)];
    let (number, text) = served.ask("/mcp", &good, list);
    assert_eq!(number, 200, "{text}");
    assert!(text.contains("\"name\":\"bugeye\""), "{text}");
    assert_eq!(served.ask("/", &good, list).0, 404);
    assert_eq!(served.ask("/mcp", &good[..1], list).0, 401);
    assert_eq!(served.ask("/mcp", &[("Host", host), ("Authorization", "Bearer no")], list).0, 401);
    assert_eq!(served.ask("/mcp", &[("Host", "evil.example"), good[1]], list).0, 403);
    assert_eq!(served.ask("/mcp", &[good[0], good[1], ("Origin", "http://evil.example")], list).0, 403);
    let own = format!("http://{host}");
    assert_eq!(served.ask("/mcp", &[good[0], good[1], ("Origin", &own)], list).0, 200);
    let long = format!("[{}]", "1,".repeat(4 * 1024 * 1024));
    assert_eq!(served.ask("/mcp", &good, &long).0, 413);
    assert_eq!(served.ask("/mcp", &good, list).0, 200, "it goes on serving");
}

#[test]
fn an_interrupt_ends_it() {
    let bug = Bug::new("python");
    let mut served = Served::new(&bug);
    let pid = rustix::process::Pid::from_raw(served.child.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let status = loop {
        if let Some(status) = served.child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline, "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
}
