//! The record of a session and `events`: complete, in order, readable while it happens and long after.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

#[path = "mcp/pipe.rs"]
#[allow(dead_code, reason = "each test crate uses its own part")]
mod pipe;
mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use pipe::Pipe;
use support::fixtures::{at, line, program};
use support::{Bug, has, lacks, signal, until, variable};

/// The events of a session, without the debugger's own chatter and the adapter's news of threads. What was printed in
/// several pieces is one.
fn events(bug: &Bug, words: &[&str]) -> Vec<Value> {
    let words: Vec<&str> = ["events", "--json"].into_iter().chain(words.iter().copied()).collect();
    let mut events: Vec<Value> = Vec::new();
    for line in bug.ok(&words).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["data"]["stream"] == "console" || event["type"] == "thread" {
            continue;
        }
        match events.last_mut().filter(|last| last["type"] == "output" && event["type"] == "output") {
            Some(last) => {
                let text = [&last["data"]["text"], &event["data"]["text"]].map(|text| text.as_str().unwrap()).concat();
                last["data"]["text"] = json!(text);
            }
            None => events.push(event),
        }
    }
    events
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// One event of a type, the first.
fn first<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().find(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {events:#?}"))
}

/// A command that runs on, and what it has said so far.
struct Follower {
    child: Child,
    said: Arc<Mutex<String>>,
    /// On standard error.
    told: Arc<Mutex<String>>,
}

fn kept(from: impl std::io::Read + Send + 'static) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    let to = text.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            to.lock().unwrap().push_str(&format!("{}\n", line.unwrap()));
        }
    });
    text
}

impl Follower {
    /// It follows when this returns.
    fn new(bug: &Bug, words: &[&str]) -> Self {
        let mut child = bug.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (said, told) = (kept(child.stdout.take().unwrap()), kept(child.stderr.take().unwrap()));
        let follower = Self { child, said, told };
        until("it follows", || match follower.told.lock().unwrap().as_str() {
            text if text.starts_with("following ") => Ok(()),
            text => Err(text.into()),
        });
        follower
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    fn until(&self, part: &str) {
        until(part, || if self.said().contains(part) { Ok(()) } else { Err(self.said()) });
    }

    /// Its exit code, once it has ended.
    fn ends(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(15);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it goes on: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A small session tells everything, in this order, with all that a stop report has.
fn tells_all(language: &str, fixture: &str, function: &str, sum: &str) {
    let bug = Bug::new(language);
    let body = at(fixture, "body");
    bug.ok(&["run", &program(fixture), "--break", &body]);
    let report = bug.json(&["context"]);
    bug.ok(&["print", "i"]);
    assert_eq!(bug.run(&["print", "nonsense"]).code, 1);
    bug.ok(&["set", "i", "3"]);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["continue"]);
    assert_eq!(bug.run(&["next"]).code, 3);

    let all = events(&bug, &[]);
    let expected = [
        ["session.start", "command", "breakpoint", "state", "state", "continued"].as_slice(),
        &["state", "source", "stopped", "command.result"],
        &["command", "command.result"],
        &["command", "eval", "command.result"],
        &["command", "eval", "command.result"],
        &["command", "eval", "command.result"],
        &["command", "breakpoint", "command.result"],
        &["command", "state", "continued", "output", "state", "session.end", "command.result"],
        &["command", "command.result"],
    ]
    .concat();
    assert_eq!(types(&all), expected);
    let whole = bug.ok(&["events", "--json"]);
    let numbers: Vec<Value> = whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (event, seq) in numbers.iter().zip(1..) {
        let keys: Vec<&String> = event.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["v", "seq", "ts", "session", "thread", "type", "data"]);
        assert_eq!((&event["v"], &event["seq"]), (&json!(1), &json!(seq)));
        assert_eq!(event["session"], all[0]["session"]);
    }

    let start = &all[0]["data"];
    assert_eq!(start["alias"], "s1");
    assert!(start["target"]["program"].as_str().unwrap().ends_with(&program(fixture)), "{start}");
    assert!(start["who"].as_str().unwrap().starts_with("cli:"), "{start}");
    let command = &all[1]["data"];
    assert_eq!(command["typed"], json!(["run", program(fixture), "--break", body]));
    assert_eq!((&command["name"], &command["args"]["breaks"]), (&json!("run"), &json!([body])));
    assert_eq!(command["who"], start["who"]);
    let breakpoint = &all[2]["data"];
    assert_eq!((&breakpoint["asked"], &breakpoint["binding"]["state"]), (&json!(body), &json!("verified")));
    let states: Vec<&str> =
        all.iter().filter(|e| e["type"] == "state").map(|e| e["data"]["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["held", "running", "stopped", "running", "exited"]);
    let stop = first(&all, "stopped");
    let data = &stop["data"];
    assert_eq!(data["reason"], json!({ "breakpoint": { "ids": [1], "hit": 1 } }));
    assert_eq!(
        (&data["frames"][0]["function"], &data["frames"][0]["line"]),
        (&json!(function), &json!(line(fixture, "body")))
    );
    assert_eq!((&stop["thread"], variable(&data["locals"], "i")["text"].as_str()), (&data["thread"]["id"], Some("0")));
    assert_eq!(data["frames"], report["stop"]["frames"], "as a report has them");
    let asked: Vec<&Value> = all.iter().filter(|event| event["type"] == "eval").map(|event| &event["data"]).collect();
    assert_eq!((&asked[0]["expression"], &asked[0]["value"]["text"]), (&json!("i"), &json!("0")));
    assert_eq!(asked[1]["expression"], "nonsense");
    assert!(asked[1]["error"].is_string() && asked[1]["value"].is_null(), "{}", asked[1]);
    assert_eq!(
        (&asked[2]["expression"], &asked[2]["set"], &asked[2]["value"]["text"]),
        (&json!("i"), &json!("3"), &json!("3"))
    );
    assert_eq!(first(&all, "output")["data"], json!({ "stream": "stdout", "text": format!("sum={sum}\n") }));
    assert_eq!(first(&all, "session.end")["data"]["ending"], json!({ "kind": "exited", "code": 0 }));
    let results: Vec<&Value> = all.iter().filter(|event| event["type"] == "command.result").collect();
    let outcomes: Vec<(&str, bool)> = results
        .iter()
        .map(|event| (event["data"]["name"].as_str().unwrap(), event["data"]["ok"].as_bool().unwrap()))
        .collect();
    let good = [("run", true), ("context", true), ("print", true), ("print", false), ("set", true), ("unbreak", true)];
    assert_eq!(outcomes, [good.as_slice(), &[("continue", true), ("next", false)]].concat());
    assert_eq!(results[7]["data"]["error"]["kind"], "wrong_state");
    for result in results {
        let of = all.iter().find(|event| event["seq"] == result["data"]["command"]).unwrap();
        assert_eq!((&of["type"], &of["data"]["name"]), (&json!("command"), &result["data"]["name"]));
        assert!(result["data"]["ms"].is_u64());
    }

    // What a reader sees: a line each, only of the types asked for, only after a number.
    let text = bug.ok(&["events"]);
    assert_eq!(text.lines().count(), whole.lines().count());
    has(
        &text,
        &[
            &format!(" s1 stopped: breakpoint 1 (hit 1) in {function} {body}, thread "),
            " $ bugeye print i\n",
            " eval: i = 0\n",
            &format!(" output: stdout \"sum={sum}"),
            " session.end: exited: code 0\n",
            " next: wrong_state, the program has exited",
        ],
    );
    assert_eq!(types(&events(&bug, &["-f", "stopped,session.*"])), ["session.start", "stopped", "session.end"]);
    assert_eq!(types(&events(&bug, &["--filter", "sto*", "-f", "out*"])), ["stopped", "output"]);
    let (since, third) = (all[2]["seq"].to_string(), all[3].clone());
    assert_eq!(events(&bug, &["--since", &since])[0], third);
    bug.run(&["events", "-f", "stoped"]).fails(2, "did you mean `stopped`?");

    // The record is there when the daemon is not, by its id, its name of then, or as the newest from here.
    let id = all[0]["session"].as_str().unwrap();
    bug.close();
    for words in [&[][..], &["-s", id], &["-s", "s1"]] {
        assert_eq!(events(&bug, words), all, "{words:?}");
    }
    bug.run(&["events", "-s", "s9"]).fails(3, &format!("hint: {id}: "));
    bug.no_process_left();
}

#[test]
fn a_session_under_debugpy_is_recorded_whole() {
    tells_all("python", "python/loop.py", "work", "13");
}

#[test]
fn a_session_under_lldb_is_recorded_whole() {
    tells_all("c", "c/loop_basic.c", "work_basic", "7");
}

/// `--follow` before anything is started shows what an agent and a person do, each by name.
#[test]
fn a_person_can_watch_an_agent() {
    let bug = Bug::new("python");
    let mut follower = Follower::new(&bug, &["events", "--follow"]);
    let mut only = Follower::new(&bug, &["events", "--follow", "--json", "-f", "stopped,command"]);
    let mut agent = Pipe::new(&bug);
    let text = agent.ok("debug_run", json!({ "command": ["loop.py"], "break": [at("python/loop.py", "body")] }));
    has(&text, &["stopped: breakpoint 1"]);
    let mcp = format!("mcp:{}", agent.pid());
    follower.until(&format!("{mcp} run: ok"));
    let said = follower.said();
    has(
        &said,
        &[
            " s1 session.start: ",
            &format!("by {mcp} [via debugpy"),
            &format!(" s1 command: {mcp} $ bugeye run "),
            " s1 stopped: breakpoint 1 (hit 1) in work loop.py:",
        ],
    );
    bug.ok(&["print", "n"]);
    bug.ok(&["run", "loop.py", "--break", &at("python/loop.py", "body"), "--name", "other"]);
    let cli = format!("cli:{}", std::process::id());
    follower.until(&format!("other command.result: {cli} run: ok"));
    has(
        &follower.said(),
        &[&format!(" s1 command: {cli} $ bugeye print n\n"), " s1 eval: n = 5\n", " other stopped: "],
    );

    // What is asked for of a type is all that comes, as the record has it.
    until("both stops are shown", || if only.said().lines().count() >= 5 { Ok(()) } else { Err(only.said()) });
    let lines: Vec<Value> = only.said().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(types(&lines), ["command", "stopped", "command", "command", "stopped"]);
    assert_eq!(lines[0]["data"]["who"], mcp);

    bug.ok(&["-s", "other", "stop"]);
    agent.ok("debug_sessions", json!({ "action": "stop" }));
    follower.until(&format!(" s1 command.result: {mcp} stop: ok"));
    has(&follower.said(), &[" other session.end: ended by bugeye stop\n", " s1 session.end: ended by bugeye stop\n"]);
    assert_eq!(agent.leave().1, Some(0));
    // Sessions come and go: it stays until it is interrupted.
    signal(i32::try_from(follower.child.id()).unwrap(), Signal::INT);
    assert_eq!(follower.ends(), Some(0));
    signal(i32::try_from(only.child.id()).unwrap(), Signal::INT);
    assert_eq!(only.ends(), Some(0));
}

/// Of one session: from now on or from its beginning, until it ends.
#[test]
fn one_session_is_followed_to_its_end() {
    let bug = Bug::new("c");
    let fixture = "c/loop_basic.c";
    bug.ok(&["run", &program(fixture), "--break", &at(fixture, "body")]);
    let mut now = Follower::new(&bug, &["events", "--follow", "-s", "s1"]);
    let mut whole = Follower::new(&bug, &["events", "--follow", "-s", "s1", "--from-start"]);
    let mut since = Follower::new(&bug, &["events", "--follow", "-s", "s1", "--since", "1", "-f", "command"]);
    whole.until("run: ok");
    since.until("bugeye run");
    assert_eq!(now.said(), "", "what was before is not shown");
    bug.ok(&["print", "sum"]);
    now.until("eval: sum = 0");
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["continue"]);
    for follower in [&mut now, &mut whole, &mut since] {
        assert_eq!(follower.ends(), Some(0));
    }
    lacks(&now.said(), &["session.start", "bugeye run"]);
    // The answer of the command that ended it comes after the end, and is shown.
    now.until("continue: ok");
    assert!(now.said().lines().last().unwrap().contains("command.result: "), "{}", now.said());
    until("all is said", || {
        let (shown, all) = (whole.said(), bug.ok(&["events", "-s", "s1"]));
        if shown == all { Ok(()) } else { Err(format!("{shown}\n--- is not\n{all}")) }
    });
    until("the command is said", || {
        let lines = since.said().lines().count();
        if lines == 4 { Ok(()) } else { Err(since.said()) }
    });
    // One that has ended has nothing to come.
    let run = bug.run(&["events", "--follow", "-s", "s1"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run}");
    has(&run.stderr, &["has ended", "bugeye events -s "]);
    bug.run(&["events", "--follow", "--since", "3"]).fails(2, "-s ID");
}

/// A reader that closes its end, one that does not read, and a daemon that is killed.
#[test]
fn a_follower_ends_with_its_reader_and_its_daemon() {
    let bug = Bug::new("python");
    bug.ok(&["start", "loop.py"]);
    let mut closed = bug.command(&["events", "--follow", "-s", "s1"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(closed.stdout.take());
    until("it ends with its reader", || match closed.try_wait().unwrap() {
        Some(status) if status.success() => Ok(()),
        status => Err(format!("{status:?}")),
    });
    let mut follower = Follower::new(&bug, &["events", "--follow", "-s", "s1", "--from-start"]);
    follower.until("state: held");
    let daemon = bug.json(&["daemon", "status"])["pid"].as_i64().unwrap();
    signal(i32::try_from(daemon).unwrap(), Signal::KILL);
    assert_eq!(follower.ends(), Some(0));
    until("it says why", || match follower.told.lock().unwrap().as_str() {
        text if text.contains("ends here: its daemon is gone") => Ok(()),
        text => Err(text.into()),
    });
    // What it had written is a record like any other.
    has(&bug.ok(&["events", "-s", "s1"]), &["session.start", "state: held", "command.result"]);
    bug.no_process_left();
}

/// A line is shown when it is whole, whoever wrote it; what is no event is passed over and counted.
#[test]
fn a_torn_line_is_not_shown() {
    let bug = Bug::new("python");
    let folder = bug.home().join("state/sessions/20260101-000000-otter");
    fs::create_dir_all(&folder).unwrap();
    let head = json!({ "v": 1, "name": "old", "words": ["x"], "cwd": bug.cwd, "project": bug.cwd });
    fs::write(folder.join("session.json"), head.to_string()).unwrap();
    let event = |seq: u64, text: &str| {
        let data = json!({ "stream": "stdout", "text": text });
        json!({ "v": 1, "seq": seq, "ts": 0, "session": "x", "thread": null, "type": "output", "data": data })
            .to_string()
    };
    let (one, two) = (event(1, "\u{1b}[31mgrün\n"), event(2, "two"));
    fs::write(folder.join("events.jsonl"), format!("{one}\n{}", &two[..two.len() - 1])).unwrap();
    assert_eq!(bug.ok(&["events"]), "00:00:00.000Z old output: stdout \"\\u{1b}[31mgrün\\n\"\n");
    assert_eq!(bug.ok(&["events", "--json"]), format!("{one}\n"));
    fs::write(folder.join("events.jsonl"), format!("{one}\nnonsense\n{two}\n")).unwrap();
    let run = bug.run(&["events", "-s", "old"]);
    assert_eq!((run.code, run.stdout.lines().count()), (0, 2), "{run}");
    has(&run.stderr, &["1 line is no event in ", "20260101-000000-otter"]);
}

/// Hits of traces and log breakpoints are events, what ends a session from outside is said, and secrets are not.
#[test]
fn what_else_happens_is_told() {
    let fixture = "c/loop_basic.c";
    let bug = Bug::new("c");
    bug.ok(&["trace", "--at", &format!("{}: i, sum", at(fixture, "body")), "--", &program(fixture)]);
    let all = events(&bug, &["-s", "s1", "-f", "hit"]);
    let values: Vec<String> = all
        .iter()
        .map(|event| {
            let values = event["data"]["values"].as_array().unwrap().iter();
            let pairs = values.map(|value| format!("{}={}", value["expression"], value["text"]).replace('"', ""));
            pairs.collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(values, ["i=0 sum=0", "i=1 sum=0", "i=2 sum=1", "i=3 sum=3", "i=4 sum=6"]);
    assert_eq!(all[2]["data"]["frames"][0]["function"], "work_basic");
    assert_eq!((&all[2]["data"]["hit"], &all[2]["data"]["asked"]), (&json!(3), &json!(at(fixture, "body"))));
    has(&bug.ok(&["events", "-s", "s1", "-f", "hit"]), &[" hit: 3 in work_basic loop_basic.c:6: i=2, sum=1\n"]);

    bug.ok(&["break", &at(fixture, "body"), "--log", "i is {i}"]);
    bug.ok(&["run", &program(fixture), "--name", "logging", "--env", "TOKEN=hidden"]);
    let logged = events(&bug, &["-s", "logging", "-f", "hit"]);
    let texts: Vec<&str> = logged.iter().map(|event| event["data"]["log"].as_str().unwrap()).collect();
    assert_eq!(texts, ["i is 0", "i is 1", "i is 2", "i is 3", "i is 4"]);
    let whole = bug.ok(&["events", "--json", "-s", "logging"]);
    lacks(&whole, &["hidden"]);
    has(&whole, &["\"--env\",\"TOKEN=…\"", "\"env\":[\"TOKEN=…\"]"]);
    bug.ok(&["unbreak", "--all"]);

    bug.ok(&["start", &program(fixture), "--name", "left"]);
    bug.ok(&["daemon", "stop"]);
    let left = events(&bug, &["-s", "left"]);
    let last: Vec<&str> = types(&left).into_iter().rev().take(3).collect();
    assert_eq!(last, ["session.end", "state", "log"]);
    assert_eq!(first(&left, "log")["data"]["message"], "the daemon ends");
}

/// A command whose client went away is answered in the record all the same.
#[test]
fn a_client_that_goes_away_is_told() {
    let bug = Bug::new("python");
    bug.ok(&["start", &program("python/hang.py")]);
    let waiting = bug.spawn(&["continue"]);
    until("it runs", || match bug.ok(&["status"]) {
        text if text.contains("running") => Ok(()),
        text => Err(text),
    });
    drop(waiting);
    until("it is told", || {
        let all = events(&bug, &["-f", "command.result"]);
        let gone = all.iter().find(|event| event["data"]["name"] == "continue");
        match gone {
            Some(event) if event["data"]["error"]["message"] == "whoever asked went away before the answer" => Ok(()),
            _ => Err(format!("{all:?}")),
        }
    });
    has(&bug.ok(&["status"]), &["running"]);
}
