//! Looking back: a record answers as the live session did, at every moment of it.

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
use std::path::Path;
use std::time::{Duration, Instant};

use bugeye::commands::{CATALOGUE, Entry, Group, Past};
use bugeye::store::occurrences::occurrences;
use bugeye::store::read::{Head, heads};
use serde_json::{Value, json};

use pipe::Pipe;
use support::fixtures::{at, folder, program};
use support::{Bug, Run, has, lacks, until, words};

/// One language's common program, stopped in its loop.
struct Side {
    language: &'static str,
    fixture: &'static str,
    /// The running sum.
    total: &'static str,
    /// Arguments are told by the source.
    tells_arguments: bool,
}

const C: Side = Side { language: "c", fixture: "c/every.c", total: "total", tells_arguments: false };
const PYTHON: Side = Side { language: "python", fixture: "python/every.py", total: "total", tells_arguments: false };
const GO: Side = Side { language: "go", fixture: "go/every.go", total: "total", tells_arguments: true };

/// Every reading command, as it is typically asked; those that move the selection are last.
const READING: &[&str] = &[
    "context",
    "context --context 1",
    "source",
    "source --function",
    "source --context 2 --frame 1",
    "backtrace",
    "backtrace 2",
    "backtrace --all",
    "backtrace --locals",
    "backtrace --full",
    "threads",
    "locals",
    "locals --full",
    "locals --frame 1",
    "args",
    "print i",
    "print n --format hex",
    "print i --type",
    "print n + 1",
    "print -e i -e n",
    "print i --frame 1",
    "print no_such_name",
    "eval n + 2",
    "registers",
    "memory read &n --count 8",
    "disassemble --count 3",
    "modules",
    "exception",
    "output --all",
    "output --tail 1 --stderr",
    "status",
    "breaks",
    "thread",
    "frame",
    "down",
    "up",
    "frame 1",
    "frame 0",
];

impl Side {
    /// Runs to the second time around the loop.
    fn run(&self) -> Bug {
        let bug = Bug::new(self.language);
        bug.ok(&["run", "--break", &at(self.fixture, "body"), "--", &program(self.fixture), "loop"]);
        bug
    }

    fn ask_all(&self, bug: &Bug) -> Vec<(String, Run)> {
        READING.iter().map(|line| ((*line).to_string(), bug.run(&words(line)))).collect()
    }
}

/// The id of the only record.
fn record(bug: &Bug) -> String {
    let heads = heads(&bug.home().join("state"));
    assert_eq!(heads.len(), 1);
    heads[0].id.clone()
}

/// Asks the record of what was asked of the session.
fn ask(bug: &Bug, id: &str, moment: &str, line: &str) -> Run {
    let asked = words(line);
    let all: Vec<&str> = ["-s", id, "--at", moment].into_iter().chain(asked).collect();
    bug.run(&all)
}

/// What a reader sees of an answer: all but that it comes from a record.
fn seen(run: &Run) -> (i32, &str, &str) {
    let stderr = if run.code == 0 { "" } else { &run.stderr };
    (run.code, &run.stdout, stderr)
}

/// Without what differs between two equal runs: ids of processes and threads, and how long ago it began.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for (digits, piece) in text
        .chars()
        .collect::<Vec<_>>()
        .chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit())
        .map(|piece| (piece[0].is_ascii_digit(), piece.iter().collect::<String>()))
    {
        let varies = digits && (piece.len() > 3 || out.ends_with("started "));
        out.push_str(if varies { "N" } else { &piece });
    }
    out
}

/// Whatever was asked live is answered the same from the record, at the stop where it was asked, without a daemon.
fn answers_as_live(side: &Side) {
    let bug = side.run();
    let first = side.ask_all(&bug);
    bug.ok(&["continue"]);
    let second = side.ask_all(&bug);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["continue"]);
    let whole = bug.ok(&["output", "--all"]);
    has(&whole, &["sum=10"]);
    bug.close();
    let id = record(&bug);
    assert_ne!(first[0].1.stdout, second[0].1.stdout, "the stops differ");
    for (moment, asked) in [("stop:1", &first), ("last", &second)] {
        for (line, live) in asked {
            let past = ask(&bug, &id, moment, line);
            assert_eq!(seen(&past), seen(live), "{} --at {moment} {line}\n{past}\n--- live\n{live}", side.language);
            if past.code == 0 {
                has(&past.stderr, &[&format!("from the record {id} at "), " (stop "]);
            }
        }
    }
    assert_eq!(ask(&bug, &id, "end", "output").stdout, whole);
    bug.no_process_left();
}

/// What was never asked is told from the stop, as a live session would have told it; what can't be is said.
fn tells_what_was_not_asked(side: &Side) {
    let live = side.run();
    let bug = side.run();
    bug.close();
    let id = record(&bug);
    let derived = [
        "context",
        "context --context 1",
        "source",
        "source --function",
        "source --context 2 --frame 1",
        "backtrace",
        "backtrace 2",
        "backtrace --full",
        "locals",
        "locals --full",
        "print i",
        "print n --format hex",
        "print i --type",
        "print -e i -e n",
        "output --all",
        "status",
        "breaks",
        "thread",
        "frame",
        "down",
        "frame 1000",
        "thread 1000",
        "exception",
        "threads",
        "backtrace --all",
    ];
    let more: &[&str] = if side.tells_arguments { &["args"] } else { &[] };
    for line in derived.iter().chain(more) {
        let (now, then) = (live.run(&words(line)), ask(&bug, &id, "last", line));
        let (seen_now, seen_then) = (seen(&now), seen(&then));
        let both = [seen_now, seen_then].map(|(code, out, complaint)| (code, plain(out), plain(complaint)));
        assert_eq!(both[0], both[1], "{}: {line}\n{then}\n--- live\n{now}", side.language);
    }
    // What can't be told, and what is said.
    let total = side.total;
    let mut table = vec![
        ("locals --frame 1".to_string(), 3, "has no `locals of frame 1` at"),
        (format!("print {total} + i"), 3, "recorded at every stop: context"),
        ("print i --frame 1".into(), 3, "has no `print i` at"),
        ("backtrace --locals".into(), 3, "has no `backtrace --locals` at"),
        ("locals --scope globals".into(), 3, "has no `locals --scope` at"),
        ("registers".into(), 3, "nothing else was asked there"),
        ("memory read &n".into(), 3, "has no `memory` at"),
        ("memory write &n 00".into(), 1, "it can't be continued"),
        ("disassemble".into(), 3, "has no `disassemble` at"),
        ("modules".into(), 3, "has no `modules` at"),
        ("continue".into(), 1, "start it again: bugeye run -- "),
        (format!("set {total} 3"), 1, "it can't be continued"),
        (format!("eval {total} = 3"), 1, "bugeye print EXPR"),
        ("break 3".into(), 1, "it can't be continued"),
        ("output --clear".into(), 1, "a record is not changed"),
    ];
    if !side.tells_arguments {
        table.push(("args".into(), 3, "has no `args` at"));
    }
    for (line, code, told) in table {
        ask(&bug, &id, "last", &line).fails(code, told);
    }
    has(&ask(&bug, &id, "last", "up").stdout, &["frame 1 ", "not read: locals of frame 1: the record has none"]);
    bug.no_process_left();
}

#[test]
fn a_record_answers_as_lldb_did() {
    answers_as_live(&C);
}

#[test]
fn a_record_answers_as_debugpy_did() {
    answers_as_live(&PYTHON);
}

#[test]
fn a_record_answers_as_delve_did() {
    answers_as_live(&GO);
}

#[test]
fn a_record_tells_what_lldb_was_not_asked() {
    tells_what_was_not_asked(&C);
}

#[test]
fn a_record_tells_what_debugpy_was_not_asked() {
    tells_what_was_not_asked(&PYTHON);
}

#[test]
fn a_record_tells_what_delve_was_not_asked() {
    tells_what_was_not_asked(&GO);
}

/// A command that reads and is not in the list would go untested.
#[test]
fn every_reading_command_is_asked() {
    let reads = |entry: &&Entry| matches!(entry.past, Past::Reads | Past::Told | Past::Selects);
    // What reads agents alone is asked of one in `agents_held`.
    for entry in CATALOGUE.iter().filter(reads).filter(|entry| entry.group != Group::Agents) {
        let asked = READING.iter().any(|line| line.split(' ').next() == Some(entry.name));
        assert!(asked, "{} is not in the list", entry.name);
    }
}

/// Parts of a value that were read with it; what was changed after the stop; the selection at a moment.
#[test]
fn each_moment_of_a_stop_is_told_as_it_was() {
    let bug = Bug::new("python");
    bug.ok(&["run", "--break", &at("python/every.py", "body"), "--", "every.py", "loop"]);
    bug.ok(&["print", "n + 1"]);
    bug.ok(&["up"]);
    bug.ok(&["locals"]);
    bug.ok(&["frame", "0"]);
    bug.ok(&["set", "total", "100"]);
    bug.ok(&["print", "total"]);
    bug.close();
    let id = record(&bug);
    let events = bug.ok(&["events", "--json", "-s", &id]);
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let number = |name: &str, kind: &str| {
        let event = events.iter().find(|event| event["type"] == kind && event["data"]["name"] == name);
        event.unwrap_or_else(|| panic!("no {kind} of {name}"))["seq"].to_string()
    };
    let text = |moment: &str, line: &str| {
        let run = ask(&bug, &id, moment, line);
        assert_eq!(run.code, 0, "{run}");
        run.stdout
    };
    assert_eq!(text("last", "print total"), "total = 0\n");
    assert_eq!(text("last", "print n + 1"), "n + 1 = 6\n", "asked after the stop, before anything moved");
    let up = number("up", "command.result");
    has(&text(&up, "frame"), &["frame 1 main"]);
    assert_eq!(text(&up, "locals"), text(&number("locals", "command.result"), "locals"));
    has(&text(&number("frame", "command.result"), "context"), &["work every.py:", "total=0"]);
    let set = number("set", "command.result");
    assert_eq!(text(&set, "print total"), "total = 100\n");
    ask(&bug, &id, &set, "locals").fails(3, "`set` at ");
    let before = number("set", "command").parse::<u64>().unwrap() - 1;
    ask(&bug, &id, &set, "context").fails(3, &format!("--at {before} context"));
    has(&text(&set, "backtrace"), &[">0 work every.py:"]);
    // Moments at which nothing stands, or that there are none of.
    ask(&bug, &id, "1", "locals").fails(3, "the program was being started");
    ask(&bug, &id, "end", "locals").fails(3, "the program had ended");
    has(&text("end", "status"), &["s1: ended by bugeye stop", "stops 1, hits 1"]);
    ask(&bug, &id, "99999", "status").fails(3, "it ends at ");
    ask(&bug, &id, "stop:2", "status").fails(3, "it has 1: --at stop:1");
    ask(&bug, &id, "0", "status").fails(2, "no moment");
    ask(&bug, &id, "soon", "status").fails(2, "stop:3");
    // By its name of then, and as the newest from here; without a moment, its last stop.
    let word = id.rsplit('-').next().unwrap();
    for asked in [
        &["-s", "s1", "print", "total"][..],
        &["--at", "last", "print", "total"],
        &["-s", &id, "p", "total"],
        &["-s", word, "p", "total"],
        &["-s", "last", "--at", "stop:1", "p", "total"],
    ] {
        let run = bug.run(asked);
        assert_eq!((run.code, run.stdout.as_str()), (0, "total = 0\n"), "{run}");
    }
    let run = bug.run(&["--json", "-s", &id, "print", "total"]);
    assert_eq!(
        (run.json()["from"]["record"].as_str(), &run.json()["from"]["stop"]),
        (Some(id.as_str()), &Value::from(1))
    );
    bug.no_process_left();
    bug.run(&["-s", "s9", "locals"]).fails(3, "there is no session `s9`");
}

/// A live session comes before a record of the same name, and its own past can be asked while it lives.
#[test]
fn a_live_session_is_asked_before_a_record() {
    let bug = Bug::new("python");
    let run = ["run", "--break", &at("python/every.py", "body"), "--", "every.py", "loop"];
    bug.ok(&run);
    bug.close();
    let old = record(&bug);
    bug.ok(&run);
    bug.ok(&["continue"]);
    bug.ok(&["continue"]);
    has(&bug.ok(&["-s", "s1", "print", "i"]), &["i = 2"]);
    has(&bug.run(&["-s", &old, "print", "i"]).stdout, &["i = 0"]);
    has(&bug.run(&["-s", "s1", "--at", "stop:2", "print", "i"]).stdout, &["i = 1"]);
    has(&bug.run(&["--at", "first", "print", "i"]).stdout, &["i = 0"]);
    // What has ended is over for the session, and not for its record.
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["continue"]);
    let over = bug.run(&["-s", "s1", "locals"]);
    over.fails(3, "the program has exited");
    has(&over.stderr, &["bugeye -s ", " --at last locals"]);
    has(&bug.run(&["-s", "s1", "--at", "last", "locals"]).stdout, &["i: int = 2"]);
    has(&bug.run(&["-s", &old, "do", "print i; print n"]).stdout, &["i = 0\n", "n = 5\n"]);
    // An agent's tools go the same way.
    let mut agent = Pipe::new(&bug);
    let text = agent.ok("debug_inspect", json!({ "session": old }));
    has(&text, &["stopped: breakpoint 1 (hit 1) in work every.py:", &format!("note: from the record {old} at ")]);
    let text =
        agent.ok("debug_do", json!({ "session": "s1", "commands": ["print i --at stop:2", "--at stop:3 print i"] }));
    has(&text, &["i = 1\n", "i = 2\n"]);
    let (text, failed) = agent.call("debug_continue", json!({ "session": old }));
    has(&text, &["only its record", "start it again"]);
    assert!(failed);
    agent.leave();
}

/// With several threads and a deep stack, what was not read is named.
#[test]
fn what_a_stop_was_not_read_for_is_named() {
    let bug = Bug::new("c");
    bug.ok(&["run", "--break", &at("c/every.c", "worker"), "--", &program("c/every.c"), "threads"]);
    bug.close();
    let id = record(&bug);
    has(
        &ask(&bug, &id, "last", "threads").stdout,
        &[">", " stopped worker every.c:", "not read: where the other threads stood"],
    );
    ask(&bug, &id, "last", "backtrace --all").fails(3, "has no `backtrace --all` at");
    ask(&bug, &id, "last", "locals --thread 1").fails(3, "there is no thread 1 ");
    let threads = ask(&bug, &id, "last", "threads --json").json()["result"]["threads"].take();
    let other = threads.as_array().unwrap().iter().find(|thread| thread["selected"] != true).unwrap()["id"].to_string();
    ask(&bug, &id, "last", &format!("locals --thread {other}")).fails(3, &format!("has no `thread {other}` at"));
    drop(bug);
    let bug = Bug::new("python");
    bug.ok(&["run", "--break", &at("python/every.py", "bottom"), "--", "every.py", "deep"]);
    let live = bug.ok(&["context"]);
    bug.close();
    let id = record(&bug);
    assert_eq!(ask(&bug, &id, "last", "context").stdout, live);
    let stack = ask(&bug, &id, "last", "backtrace").stdout;
    has(&stack, &[">0 down every.py:", "not read: the callers of frame 4: the record has 5 frames"]);
    ask(&bug, &id, "last", "frame 5").fails(3, "has no `frame 5` at");
    bug.no_process_left();
}

/// The source is shown as it was, whatever became of the file.
#[test]
fn the_source_is_as_it_was() {
    let mut bug = Bug::new("python");
    let text = fs::read_to_string(folder("python").join("loop.py")).unwrap();
    bug.cwd = bug.home().to_path_buf();
    bug.write("own.py", &text);
    let line = text.lines().position(|line| line.contains("BREAK:body")).unwrap() + 1;
    bug.ok(&["run", "--break", &format!("own.py:{line}"), "--", "own.py"]);
    let live = bug.ok(&["context"]);
    bug.close();
    let id = record(&bug);
    bug.write("own.py", "nothing\n");
    assert_eq!(ask(&bug, &id, "last", "context").stdout, live);
    has(&ask(&bug, &id, "last", "frame").stdout, &["total += i"]);
    has(&bug.ok(&["replay", &id]), &["total += i"]);
    // Without its copy, the file is shown, with a word about it.
    fs::remove_dir_all(bug.home().join("state/sessions").join(&id).join("blobs")).unwrap();
    bug.write("own.py", &text.replace("total += i", "total -= i"));
    has(&ask(&bug, &id, "last", "frame").stdout, &["total -= i", "note: the file has changed since"]);
    fs::remove_file(bug.path("own.py")).unwrap();
    lacks(&ask(&bug, &id, "last", "frame").stdout, &["total -=", "total +="]);
    ask(&bug, &id, "last", "source").fails(3, "the record has no copy of it");
    bug.no_process_left();
}

/// `replay` shows all of it with numbers, in full where it stopped, of the types and between the numbers asked for.
#[test]
fn a_record_is_shown_again() {
    let bug = Bug::new("python");
    bug.ok(&["run", "--break", &at("python/every.py", "body"), "--", "every.py", "loop"]);
    bug.ok(&["next"]);
    bug.close();
    let id = record(&bug);
    let all = bug.ok(&["replay", &id]);
    let events = bug.ok(&["events", "-s", &id]);
    // Each event's line is there, with its number; stops read as their report did.
    for (number, line) in events.lines().enumerate().filter(|(_, line)| !line.contains(" stopped: ")) {
        has(&all, &[&format!("#{} {line}\n", number + 1)]);
    }
    has(
        &all,
        &[" s1 stopped: breakpoint 1 (hit 1) in work every.py:", "\n  locals: ", "\n  changed: ", "\n  stack: work < "],
    );
    let numbers: Vec<u64> =
        all.lines().filter_map(|line| line.strip_prefix('#')?.split(' ').next()?.parse().ok()).collect();
    assert_eq!(numbers, (1..=events.lines().count() as u64).collect::<Vec<_>>());
    let stops = bug.ok(&["replay", &id, "-f", "stopped"]);
    assert_eq!(stops.lines().filter(|line| line.starts_with('#')).count(), 2, "{stops}");
    let part = bug.ok(&["replay", "s1", "--from", "3", "--to", "5"]);
    assert!(part.starts_with("#3 ") && part.lines().last().unwrap().starts_with("#5 "), "{part}");
    let file = bug.home().join("state/sessions").join(&id).join("events.jsonl");
    assert_eq!(bug.ok(&["replay", file.to_str().unwrap()]), all);
    assert_eq!(bug.ok(&["replay", file.parent().unwrap().to_str().unwrap()]), all);
    assert_eq!(bug.ok(&["replay", &id, "--json"]), fs::read_to_string(&file).unwrap());
    bug.run(&["replay", &id, "-f", "stoped"]).fails(2, "did you mean `stopped`?");
    bug.run(&["replay", "nothing"]).fails(3, "no record `nothing`");
    bug.run(&["replay", &id, "--speed", "fast"]).fails(2, "is no speed");
    bug.no_process_left();
}

/// In the pace of then, faster, with pauses cut; an interrupt ends it at once.
#[test]
fn a_record_is_shown_in_its_pace() {
    let bug = Bug::new("python");
    let event = |seq: u64, ts: u64| {
        format!(
            "{{\"v\":1,\"seq\":{seq},\"ts\":{ts},\"session\":\"x\",\"thread\":null,\"type\":\"log\",\"data\":{{\"message\":\"m{seq}\"}}}}\n"
        )
    };
    let record = bug.write("events.jsonl", &[event(1, 0), event(2, 600), event(3, 60_600), event(4, 61_200)].concat());
    let timed = |flags: &[&str]| {
        let words: Vec<&str> = ["replay", &record].into_iter().chain(flags.iter().copied()).collect();
        let run = bug.run(&words);
        assert_eq!((run.code, run.stdout.lines().count()), (0, 4), "{run}");
        run.took
    };
    let (once, pause) = (Duration::from_millis(1200), Duration::from_millis(300));
    let plain = timed(&[]);
    assert!(plain < once, "{plain:?}");
    let took = timed(&["--timed", "--max-gap", "300ms"]);
    assert!(took >= pause * 3, "{took:?}");
    let took = timed(&["--timed"]);
    assert!(took >= once + Duration::from_secs(2) && took < Duration::from_secs(50), "{took:?}");
    let took = timed(&["--speed", "4x"]);
    assert!(took >= (once + Duration::from_secs(2)) / 4, "{took:?}");
    let mut asked = bug.spawn(&["replay", &record, "--speed", "0.01x"]);
    std::thread::sleep(Duration::from_millis(200));
    assert!(asked.is_running());
    let began = Instant::now();
    asked.interrupt();
    until("it has ended", || if asked.is_running() { Err("it runs".into()) } else { Ok(()) });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(asked.wait().code, 0);
}

/// A record may have been written by anybody: what is in it is quoted, and what is not as it should be is passed over.
#[test]
fn a_hostile_record_does_no_harm() {
    let bug = Bug::new("python");
    let folder = bug.home().join("state/sessions/20260101-000000-otter");
    fs::create_dir_all(&folder).unwrap();
    let head =
        r#"{"v":1,"alias":"s\u001b[31m","words":["\u001b]0;x\u0007"],"adapter":"debugpy","cwd":"/","project":"/"}"#;
    fs::write(folder.join("session.json"), head).unwrap();
    let mut seq = 0;
    let mut event = |kind: &str, data: &str| {
        seq += 1;
        format!(
            "{{\"v\":1,\"seq\":{seq},\"ts\":0,\"session\":\"x\",\"thread\":1,\"type\":\"{kind}\",\"data\":{data}}}\n"
        )
    };
    let frame = r#"{"index":0,"function":"f\u001b[2J","file":"/etc/passwd\u0000","line":1}"#;
    let stop = format!(
        r#"{{"number":1,"reason":"step","thread":{{"id":1,"name":"\u001b[1m"}},"frame":0,"frames":[{frame}],"locals":[{{"name":"i\u001b[5m","text":"\u009b31m","type":"\u202e"}}]}}"#
    );
    let text = [
        event("session.start", "[]"),
        event("from.the.future", r#"{"a":1}"#),
        event("stopped", &stop),
        event("command", r#"{"name":"threads","args":{},"who":"x"}"#),
        event("command.result", r#"{"command":4,"result":{"threads":"none"},"ok":true}"#),
        event("command", r#"{"name":"modules","args":{},"who":"x"}"#),
        event(
            "command.result",
            r#"{"command":6,"ok":true,"result":{"ref":{"sha256":"../../session.json","bytes":1}}}"#,
        ),
        event("source", r#"{"file":"/etc/passwd","sha256":"../session.json","mtime":"x"}"#),
        event("command.result", r#"{"command":999}"#),
        "not json\n".into(),
        event("state", r#"{"state":"dancing"}"#),
    ]
    .concat();
    fs::write(folder.join("events.jsonl"), text).unwrap();
    for line in
        ["context", "locals", "backtrace", "frame", "status", "print i", "threads", "modules", "output", "source"]
    {
        for json in [false, true] {
            let asked = words(line);
            let flags: &[&str] = if json { &["--json"] } else { &[] };
            let all: Vec<&str> = ["-s", "20260101-000000-otter", "--at", "3"]
                .into_iter()
                .chain(flags.iter().copied())
                .chain(asked)
                .collect();
            let run = bug.run(&all);
            assert!([0, 1, 3].contains(&run.code), "{run}");
            for text in [&run.stdout, &run.stderr] {
                let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
                assert!(!text.contains(harmful), "{text:?}");
            }
        }
    }
    ask(&bug, "20260101-000000-otter", "3", "threads").fails(3, "has no `threads`");
    let run = bug.run(&["replay", "20260101-000000-otter"]);
    assert!(!run.stdout.contains('\u{1b}') && run.stderr.contains("no events"), "{run}");
    let head = head.replace("\"v\":1", "\"v\":9");
    fs::write(folder.join("session.json"), head).unwrap();
    ask(&bug, "20260101-000000-otter", "3", "locals").fails(6, "format 9");
    bug.no_process_left();
}

/// Recordings that earlier versions made can be read by this one, whatever else has changed.
#[test]
fn recordings_of_earlier_versions_are_read() {
    let databases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/databases");
    let made = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("record-");
    let all: Vec<_> = fs::read_dir(databases).unwrap().map(Result::unwrap).filter(made).collect();
    assert!(!all.is_empty());
    for folder in all {
        let bug = Bug::new("python");
        let from = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap();
        let id = from.file_name().into_string().unwrap();
        copy(&from.path(), &bug.home().join("state/sessions").join(&id));

        let events = bug.ok(&["events", "--json", "-s", &id]);
        let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        assert_eq!((count("stopped"), count("trace"), count("hit"), count("session.end")), (3, 1, 4, 1));
        has(&bug.ok(&["events", "-s", "sample"]), &[" sample session.end: exited: code 0\n", "hits in hits.jsonl"]);
        let shown = bug.ok(&["replay", &id, "-f", "stopped"]);
        has(
            &shown,
            &[
                "sample stopped: breakpoint 1 (hit 1) in work /project/loop.py:7, thread 1 MainThread\n",
                "  > 7         total += i  # BREAK:body\n",
                "  locals: i=0  n=5  total=0\n",
                "sample stopped: step in work /project/loop.py:8",
                "sample stopped: breakpoint 2 (hit 1) in main /project/loop.py:14",
            ],
        );
        let text = |moment: &str, line: &str| {
            let run = ask(&bug, &id, moment, line);
            assert_eq!(run.code, 0, "{run}");
            run.stdout
        };
        has(
            &text("stop:1", "context"),
            &[
                "stopped: breakpoint 1 (hit 1) in work /project/loop.py:7",
                "[s1 via debugpy 1.8.22]",
                "locals: i=0  n=5  total=0\n",
                "stack: work < main /project/loop.py:13 < <module>",
            ],
        );
        assert_eq!(text("first", "print n + 1"), "n + 1 = 6\n");
        assert_eq!(text("stop:2", "eval total * 2"), "total * 2 = 0\n");
        assert_eq!(text("last", "locals"), "result: int = 10\n");
        has(&text("stop:2", "breaks"), &["breakpoint 1 loop.py:7: verified, hits 1"]);
        has(&text("end", "status"), &["s1: exited: code 0, stops 3, hits 1"]);
        assert_eq!(text("last", "output"), "nothing new\n");
        assert_eq!(text("end", "output"), "sum=10\n");

        // Its stops and hits, as whoever counts or compares them sees them.
        let head = Head::load(&bug.home().join("state/sessions").join(&id)).unwrap();
        let mut seen = Vec::new();
        occurrences(&head, &mut |occurrence| {
            seen.push(format!(
                "{} {}",
                occurrence.place,
                occurrence.values.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
            ));
            true
        })
        .unwrap();
        let expected = [
            "loop.py:7 i=0 n=5 total=0",
            "loop.py:8 i=0 n=5 total=0",
            "loop.py:8 i=1 total=1",
            "loop.py:8 i=2 total=3",
            "loop.py:8 i=3 total=6",
            "loop.py:8 i=4 total=10",
            "loop.py:14 result=10",
        ];
        assert_eq!(seen, expected);
        bug.no_process_left();
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
