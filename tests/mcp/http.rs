//! By HTTP: the same walk with the token, and nothing without it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::pipe::NEW_ERA;
use crate::sdks::{client, output, script, walked};
use crate::support::fixtures::at;
use crate::support::{Bug, has, until};

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

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;

/// A call without a session of the protocol, or in one.
fn call(served: &Served, within: Option<&str>, tool: &str, arguments: &Value) -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": NEW_ERA,
        "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut params = json!({ "name": tool, "arguments": arguments });
    let bearer = format!("Bearer {TOKEN}");
    let mut headers = vec![("Host", served.address.as_str()), ("Authorization", bearer.as_str())];
    match within {
        Some(id) => headers.extend([("Mcp-Session-Id", id), ("MCP-Protocol-Version", "2025-06-18")]),
        None => {
            params["_meta"] = meta;
            headers.extend([("MCP-Protocol-Version", NEW_ERA), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)]);
        }
    }
    let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }).to_string();
    let (number, answer) = served.ask("/mcp", &headers, &body);
    assert_eq!(number, 200, "{answer}");
    answer
}

#[test]
fn without_sessions_of_the_protocol_all_are_one_client() {
    let bug = Bug::new("python");
    let served = Served::new(&bug);
    let place = at("python/loop.py", "body");
    bug.ok(&["run", "--break", &place, "--", "python3", "loop.py"]);
    let run = json!({ "command": ["python3", "loop.py"], "break": [place] });
    has(&call(&served, None, "debug_run", &run), &["stopped: breakpoint", "[s2 via"]);
    // A person's session is not taken for its own.
    has(&call(&served, None, "debug_continue", &json!({})), &["[s2 via"]);
    has(&call(&served, None, "debug_sessions", &json!({ "action": "stop_all" })), &["ended 1 session"]);
    has(&bug.ok(&["status"]), &["s1: stopped"]);
}

#[test]
fn the_sessions_of_a_client_go_when_its_session_of_the_protocol_ends() {
    let bug = Bug::new("python");
    std::fs::create_dir_all(bug.home().join("config")).unwrap();
    std::fs::write(bug.home().join("config/config.toml"), "[mcp]\ngrace_secs = 0\n").unwrap();
    let served = Served::new(&bug);
    let bearer = format!("Bearer {TOKEN}");
    let (number, answer) = served.ask("/mcp", &[("Host", &served.address), ("Authorization", &bearer)], INITIALIZE);
    assert_eq!(number, 200, "{answer}");
    let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim().to_string();
    let run = json!({ "command": ["python3", "loop.py"], "break": [at("python/loop.py", "body")] });
    has(&call(&served, Some(&id), "debug_run", &run), &["stopped: breakpoint", "[s1 via"]);
    has(&call(&served, Some(&id), "debug_print", &json!({ "expressions": ["i"] })), &["i = 0"]);
    let mut stream = TcpStream::connect(&served.address).unwrap();
    let ending = format!(
        "DELETE /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nMcp-Session-Id: {id}\r\nConnection: close\r\n\r\n",
        served.address
    );
    stream.write_all(ending.as_bytes()).unwrap();
    stream.read_to_end(&mut Vec::new()).unwrap();
    until("its session is gone", || {
        let list = bug.ok(&["sessions"]);
        if list.contains("no sessions") { Ok(()) } else { Err(list) }
    });
}
