//! Whoever is not meant to be let in, and whoever is and writes nonsense.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use bugeye::agent::gate::{Answer, Point, Tap, Verdict};
use bugeye::agent::socket::Socket;
use bugeye::agent::wire::MAX_LINE;
use serde_json::{Value, json};

use crate::desk::{Desk, Heard, TOKEN};
use crate::support::{has, until};

struct Peer(UnixStream, BufReader<UnixStream>);

impl Peer {
    fn new(desk: &Desk) -> Self {
        let stream = UnixStream::connect(desk.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream.try_clone().unwrap(), BufReader::new(stream))
    }

    fn greeted(desk: &Desk) -> Self {
        let mut peer = Self::new(desk);
        peer.say(&json!({ "v": 1, "token": TOKEN, "type": "hello", "tap": "sdk", "agent": "x", "version": "1" }));
        assert_eq!(peer.hear(), json!({ "type": "hello", "v": 1, "session": "test" }));
        peer
    }

    fn say(&mut self, line: &Value) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// A peer that has closed its end may be written to in vain.
    fn write(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes);
    }

    #[track_caller]
    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.1.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    #[track_caller]
    fn is_closed(&mut self) {
        let mut rest = Vec::new();
        // Where it had not read all we wrote, the end is a reset.
        let read = self.1.read_to_end(&mut rest);
        assert!(read.is_ok() || read.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset));
        assert_eq!(String::from_utf8_lossy(&rest), "");
    }
}

fn gate(id: &str) -> Value {
    json!({ "type": "gate", "id": id, "point": "before_tool", "name": "bash", "value": {}, "powers": { "hold": true } })
}

#[test]
fn only_the_token_lets_in() {
    let desk = Desk::open();
    let hello = json!({ "v": 1, "type": "hello", "agent": "x" });
    let with = |token: Value| {
        let mut line = hello.clone();
        line["token"] = token;
        line
    };
    let long = format!("{TOKEN}0");
    let lines = [hello.clone(), with(json!("")), with(json!(&TOKEN[1..])), with(json!(long)), with(json!([TOKEN]))];
    for line in lines.iter().chain([&gate("g"), &json!([]), &json!("nonsense")]) {
        let mut peer = Peer::new(&desk);
        peer.say(line);
        has(peer.hear()["message"].as_str().unwrap(), &["the token is not the one of this session"]);
        peer.is_closed();
    }
    let mut peer = Peer::new(&desk);
    peer.say(&json!({ "v": 2, "token": TOKEN, "type": "hello" }));
    has(peer.hear()["message"].as_str().unwrap(), &["this debugger speaks version 1"]);
    peer.is_closed();
    assert!(desk.heard().is_empty(), "{:?}", desk.heard());
}

#[test]
fn the_socket_is_the_users_own() {
    let desk = Desk::open();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&desk.folder()), mode(&desk.socket())), (0o700, 0o600));
    for name in ["events.jsonl", "commands.jsonl", "debugger.json"] {
        assert_eq!(mode(&desk.folder().join(name)), 0o600, "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let refused = Socket::open(folder.path(), TOKEN).unwrap_err().to_string();
    has(&refused, &["others can reach into it (mode 755)"]);
}

/// Even where the folder were open to all, another user is turned away.
#[test]
fn another_user_is_turned_away() {
    if !rustix::process::geteuid().is_root() {
        return println!("only root can be another user; the socket's mode is checked above");
    }
    let desk = Desk::open();
    // The folder of the test itself is closed too.
    fs::set_permissions(desk.folder().parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(desk.folder(), Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(desk.socket(), Permissions::from_mode(0o666)).unwrap();
    let program = r#"
import os, socket, sys
os.setgid(65534); os.setuid(int(sys.argv[3]))
client = socket.socket(socket.AF_UNIX); client.settimeout(20); client.connect(sys.argv[1])
try:
    client.sendall(sys.argv[2].encode() + b"\n")
    print("heard", client.recv(1000))
except ConnectionError:
    print("heard b''")
"#;
    let hello = json!({ "v": 1, "token": TOKEN, "type": "hello", "agent": "x" }).to_string();
    let speak = |user: &str| {
        let done =
            Command::new("python3").args(["-c", program]).arg(desk.socket()).args([&hello, user]).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
    };
    assert_eq!(speak("65534"), "heard b''\n");
    assert!(desk.heard().is_empty());
    has(&speak("0"), &["session"]);
}

#[test]
fn nonsense_is_answered_and_does_no_harm() {
    let desk = Desk::open();
    let mut peer = Peer::greeted(&desk);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (bytes, words) in [
        (&b"nonsense"[..], "no JSON"),
        (b"\xff\xfe{}", "no JSON"),
        (b"[1]", "no object"),
        (deep.as_bytes(), "no JSON"),
        (br#"{"type":7}"#, "no `type`"),
        (br#"{"type":"gate","id":"g","point":"elsewhere"}"#, "can't be understood"),
        (br#"{"type":"gate","point":"before_tool"}"#, "needs an `id`"),
        (br#"{"type":"gate","id":"g","point":"before_tool","thread":7}"#, "can't be understood"),
    ] {
        peer.write(bytes);
        peer.write(b"\n");
        let answer = peer.hear();
        assert_eq!(answer["type"], "error");
        has(answer["message"].as_str().unwrap(), &[words]);
    }
    peer.say(&gate("g"));
    assert_eq!(peer.hear(), json!({ "type": "answer", "id": "g", "verdict": "proceed" }));
}

#[test]
fn a_line_that_is_too_long_ends_the_connection() {
    let desk = Desk::open();
    let mut peer = Peer::greeted(&desk);
    // As long as one may be.
    let line = json!({ "type": "event", "event": "log", "data": "" }).to_string();
    let fill = "x".repeat(MAX_LINE - line.len());
    peer.say(&json!({ "type": "event", "event": "log", "data": fill }));
    peer.say(&gate("g"));
    assert_eq!(peer.hear()["id"], "g");
    peer.write(&vec![b'x'; MAX_LINE + 2]);
    has(peer.hear()["message"].as_str().unwrap(), &["a line may have at most 16777216 bytes"]);
    peer.is_closed();
    Peer::greeted(&desk);
}

#[test]
fn half_a_line_is_nothing_and_a_closed_end_withdraws() {
    let desk = Desk::new(|_| None);
    let mut peer = Peer::greeted(&desk);
    peer.say(&gate("whole"));
    peer.write(br#"{"type":"gate","id":"half","point":"before_tool""#);
    desk.holds(1);
    drop(peer);
    desk.holds(0);
    assert_eq!(desk.asked().len(), 1);
    // The same by word.
    let mut peer = Peer::greeted(&desk);
    peer.say(&gate("one"));
    peer.say(&gate("two"));
    desk.holds(2);
    peer.say(&gate("two"));
    has(peer.hear()["message"].as_str().unwrap(), &["this id waits already"]);
    peer.say(&json!({ "type": "withdraw", "id": "one" }));
    peer.say(&json!({ "type": "withdraw", "id": "never" }));
    desk.holds(1);
    desk.release(&Verdict::Deny { reason: "no".into() });
    assert_eq!(peer.hear(), json!({ "type": "answer", "id": "two", "verdict": "deny", "reason": "no" }));
    // An id may be used again once it is answered.
    peer.say(&gate("two"));
    desk.holds(1);
}

/// Whatever comes in one piece is taken in its order.
#[test]
fn questions_and_events_keep_their_order() {
    let desk = Desk::new(|_| None);
    let mut peer = Peer::greeted(&desk);
    let event = json!({ "type": "event", "event": "log", "data": {} });
    let lines: String = (0..50).map(|at| format!("{}\n{event}\n", gate(&at.to_string()))).collect();
    peer.write(lines.as_bytes());
    desk.holds(50);
    until("all is heard", || if desk.heard().len() == 101 { Ok(()) } else { Err(format!("{}", desk.heard().len())) });
    for pair in desk.heard()[1..].chunks(2) {
        assert!(matches!(pair, [Heard::Asked(..), Heard::Told(..)]), "{pair:?}");
    }
}

/// More than can wait at once are told so, and go on.
#[test]
fn there_is_an_end_to_what_waits() {
    let desk = Desk::new(|_| None);
    let mut peer = Peer::greeted(&desk);
    for at in 0..1030 {
        peer.say(&gate(&at.to_string()));
    }
    let answer = peer.hear();
    has(answer["message"].as_str().unwrap(), &["more than 1024 questions wait"]);
    assert_eq!(answer["id"], "1024");
    desk.holds(1024);
    let peers: Vec<Peer> = (0..300).map(|_| Peer::new(&desk)).collect();
    drop(peers);
    drop(peer);
    desk.holds(0);
    until("one is let in again", || {
        let mut peer = Peer::new(&desk);
        peer.say(&json!({ "v": 1, "token": TOKEN, "type": "hello", "agent": "x" }));
        let mut line = String::new();
        let _ = peer.1.read_line(&mut line);
        if line.contains("session") { Ok(()) } else { Err(line) }
    });
}

#[test]
fn a_hook_is_answered_on_its_own_connection() {
    let desk = Desk::open();
    let mut peer = Peer::new(&desk);
    let input = json!({ "hook_event_name": "Nothing" });
    peer.say(&json!({ "v": 1, "token": TOKEN, "type": "hook", "agent": "nobody", "input": input }));
    let answer = peer.hear();
    assert_eq!((&answer["type"], &answer["code"]), (&json!("hook"), &json!(0)), "{answer}");
    assert!(answer["stdout"].is_string() && answer["stderr"].is_string(), "{answer}");
}

/// A shell is enough to tell what happens, in the words of other bridges too.
#[test]
fn lines_by_hand_are_understood() {
    let desk = Desk::new(|ask| {
        let verdict =
            if ask.point == Point::BeforeTool { Verdict::Deny { reason: "no".into() } } else { Verdict::Proceed };
        Some(Answer { verdict, inject: Vec::new() })
    });
    let shell = r#"cd "$0"
echo '{"type":"session_start","timestamp":"2026-01-23T13:10:00Z","sessionId":"x","data":{"provider":"p","model":"m"}}' >> events.jsonl
echo '{"type":"user_input","data":{"input":"do it"}}' >> events.jsonl
printf '{"type":"tool_call_start","data":' >> events.jsonl
sleep 0.3
echo '{"name":"bash","input":{},"toolId":"t1"}}' >> events.jsonl
echo nonsense >> events.jsonl
echo '{"type":"gate","id":1,"point":"before_tool","name":"bash","value":{}}' >> events.jsonl
for i in $(seq 500); do grep -q '"id":1,' commands.jsonl && break; sleep 0.02; done
tail -n 1 commands.jsonl"#;
    let done = Command::new("sh").args(["-c", shell]).arg(desk.folder()).output().unwrap();
    let answer = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(answer, "{\"type\":\"answer\",\"id\":1,\"verdict\":\"deny\",\"reason\":\"no\"}\n");
    has(&fs::read_to_string(desk.folder().join("commands.jsonl")).unwrap(), &["the line is no JSON"]);
    let heard = desk.heard();
    assert!(matches!(&heard[0], Heard::Attached(Tap::Sdk, about) if about["model"] == "m"), "{heard:?}");
    assert!(matches!(&heard[1], Heard::Told(_, kind, ..) if kind == "input.user"), "{heard:?}");
    let Heard::Told(Tap::Sdk, kind, thread, span, data) = &heard[2] else { panic!("{heard:?}") };
    assert_eq!((kind.as_str(), thread.as_str(), span.as_deref()), ("tool.call", "main", Some("t1")));
    assert_eq!(data["name"], "bash");
}
