//! Commands by file: appended by anything that can write a line, carried out in order and once, answered by events.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use support::fixtures::at;
use support::{Bug, has, signal, until};

/// The record of the only session.
fn record(bug: &Bug) -> PathBuf {
    let folders: Vec<PathBuf> = fs::read_dir(bug.home().join("state/sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir() && !path.is_symlink())
        .collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].clone()
}

fn append(bug: &Bug, text: &str) {
    let mut file = OpenOptions::new().append(true).open(record(bug).join("commands.jsonl")).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn say(bug: &Bug, line: &Value) {
    append(bug, &format!("{line}\n"));
}

fn events(bug: &Bug) -> Vec<Value> {
    let text = fs::read_to_string(record(bug).join("events.jsonl")).unwrap();
    let whole = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    whole.collect()
}

/// The answers so far, as they came.
fn answers(bug: &Bug) -> Vec<Value> {
    let results = events(bug).into_iter().filter(|event| event["type"] == "command.result");
    results.map(|mut event| event["data"].take()).filter(|data| data["id"].is_string()).collect()
}

#[track_caller]
fn answer(bug: &Bug, id: &str) -> Value {
    let mut found = None;
    until(&format!("{id} is answered"), || {
        found = answers(bug).into_iter().find(|data| data["id"] == id);
        if found.is_some() { Ok(()) } else { Err(format!("{:#?}", answers(bug))) }
    });
    found.unwrap()
}

#[track_caller]
fn text(bug: &Bug, id: &str) -> String {
    let answer = answer(bug, id);
    assert_eq!(answer["ok"], true, "{answer}");
    answer["text"].as_str().unwrap().to_string()
}

#[track_caller]
fn fails(bug: &Bug, id: &str, kind: &str, words: &str) {
    let answer = answer(bug, id);
    assert_eq!((&answer["ok"], &answer["error"]["kind"]), (&json!(false), &json!(kind)), "{answer}");
    has(answer["error"]["message"].as_str().unwrap(), &[words]);
}

fn stopped_in_loop() -> Bug {
    let bug = Bug::new("python");
    bug.ok(&["run", "--break", &at("python/loop.py", "body"), "--", "python3", "loop.py"]);
    bug
}

#[test]
fn lines_of_both_forms_are_carried_out_in_order() {
    let bug = stopped_in_loop();
    for name in ["commands.jsonl", "commands.done"] {
        until(name, || {
            let found = fs::metadata(record(&bug).join(name)).map_err(|error| error.to_string())?;
            assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
            Ok(())
        });
    }
    // A shell is enough.
    let path = record(&bug).join("commands.jsonl");
    let shell = r#"echo '{"id":"1","cmd":"continue"}' >> "$0"; echo '{"id":"2","cmd":"print","args":["i"]}' >> "$0""#;
    assert!(Command::new("sh").args(["-c", shell]).arg(&path).status().unwrap().success());
    assert_eq!(text(&bug, "2"), "i = 1\n");
    has(&text(&bug, "1"), &["stopped: breakpoint 1 (hit 2) in work loop.py:7", "changed: i=1 (was 0)"]);
    let lines = [
        json!({ "id": "3", "type": "resume", "data": {} }),
        json!({ "id": 4, "cmd": "print", "args": { "words": ["i"] } }),
        json!({ "id": "5", "type": "breakpoint", "data": { "action": "add", "place": at("python/loop.py", "after"), "if": "i == 3" } }),
        json!({ "id": "6", "cmd": "c" }),
        json!({ "id": "7", "type": "set_variable", "data": { "key": "total", "value": 100 } }),
        json!({ "id": "8", "type": "step", "data": { "unit": "over" } }),
        json!({ "id": "9", "type": "inspect", "data": { "what": "locals" } }),
        json!({ "id": "10", "type": "breakpoint", "data": { "action": "list" } }),
    ];
    append(&bug, &lines.map(|line| format!("{line}\n")).concat());
    has(&text(&bug, "10"), &["breakpoint 1", "breakpoint 2", "if i == 3"]);
    assert_eq!(text(&bug, "4"), "i = 2\n");
    has(&text(&bug, "5"), &["breakpoint 2 loop.py:8: verified, if i == 3"]);
    has(&text(&bug, "6"), &["breakpoint 1 (hit 4)", "i=3"]);
    has(&text(&bug, "9"), &["i: int = 3", "total: int = 103"]);
    let ids: Vec<String> = answers(&bug).iter().map(|data| data["id"].as_str().unwrap().to_string()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"]);
    // The record tells who asked, and the answer names its question.
    let events = events(&bug);
    let asked = events.iter().find(|event| event["type"] == "command" && event["data"]["id"] == "2").unwrap();
    assert_eq!((&asked["data"]["who"], &asked["data"]["typed"]), (&json!("inbox:2"), &json!(["print", "i"])));
    assert_eq!(answer(&bug, "2")["command"], asked["seq"]);
}

#[test]
fn a_half_line_waits_and_what_is_no_command_is_answered() {
    let bug = stopped_in_loop();
    let half = r#"{"id":"half","cmd":"pri"#;
    append(&bug, &format!("nonsense\n\n[1]\n{half}"));
    fails(&bug, "at-0", "usage", "the line is no JSON");
    fails(&bug, "at-10", "usage", "the line is no command");
    // It must not be taken before its end comes, however much else is looked at meanwhile.
    bug.ok(&["print", "i"]);
    assert_eq!(answers(&bug).len(), 2);
    append(&bug, "nt\",\"args\":[\"i\"]}\n");
    assert_eq!(text(&bug, "half"), "i = 0\n");
    let before = fs::metadata(record(&bug).join("commands.jsonl")).unwrap().len();
    append(&bug, &format!("{}\n", "x".repeat(100_000)));
    fails(&bug, &format!("at-{before}"), "usage", "the line has 100000 bytes, more than 65536");
    for (id, line, kind, words) in [
        ("a", json!({ "id": "a", "cmd": "run", "args": ["--", "./x"] }), "refused", "would start a program"),
        ("b", json!({ "id": "b", "cmd": "stop", "args": ["--all"] }), "refused", "this session alone"),
        ("c", json!({ "id": "c", "type": "inject_message", "data": {} }), "unsupported", "for an agent"),
        ("d", json!({ "id": "d", "cmd": "print", "args": ["nope"] }), "refused", "nope"),
        ("e", json!({ "id": "e", "cmd": "print", "args": ["-s", "s1", "i"] }), "usage", "unexpected argument"),
        ("f", json!({ "id": "f", "cmd": "events" }), "unsupported", "command line alone"),
    ] {
        say(&bug, &line);
        fails(&bug, id, kind, words);
    }
    say(&bug, &json!({ "id": "last", "cmd": "print", "args": ["i"] }));
    assert_eq!(text(&bug, "last"), "i = 0\n");
}

#[test]
fn a_program_that_runs_is_paused_and_stopped() {
    let bug = Bug::new("python");
    bug.ok(&["run", "--wait", "0", "--", "python3", "hang.py"]);
    // The wait for a stop holds up nobody who would end it.
    say(&bug, &json!({ "id": "wait", "cmd": "await" }));
    say(&bug, &json!({ "id": "pause", "type": "pause", "data": {} }));
    has(&text(&bug, "pause"), &["stopped: pause"]);
    has(&text(&bug, "wait"), &["stopped: pause"]);
    say(&bug, &json!({ "id": "end", "cmd": "stop" }));
    has(&text(&bug, "end"), &["s1 ended"]);
    // Nobody reads it any more, or there is nothing to ask.
    say(&bug, &json!({ "id": "late", "cmd": "print", "args": ["counter"] }));
    bug.run(&["status"]);
    assert!(answers(&bug).iter().all(|data| data["id"] != "late" || data["ok"] == false));
}

#[test]
fn a_file_that_may_be_anybodys_is_refused() {
    let bug = stopped_in_loop();
    let notes = || -> Vec<String> {
        let notes = events(&bug).into_iter().filter(|event| event["type"] == "log");
        notes.map(|event| event["data"]["message"].as_str().unwrap_or_default().to_string()).collect()
    };
    let said = |words: &str| {
        until(words, || if notes().iter().any(|note| note.contains(words)) { Ok(()) } else { Err(notes().join("\n")) });
    };
    let path = record(&bug).join("commands.jsonl");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o602)).unwrap();
    say(&bug, &json!({ "id": "open", "cmd": "print", "args": ["i"] }));
    said("others may write to it (mode 602)");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    said("what was in it counts as done");
    say(&bug, &json!({ "id": "again", "cmd": "print", "args": ["i"] }));
    assert_eq!(text(&bug, "again"), "i = 0\n");
    let other = bug.home().join("other.jsonl");
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&other).unwrap();
    fs::remove_file(&path).unwrap();
    said("it is there again, empty");
    let link = bug.home().join("link");
    std::os::unix::fs::symlink(&other, &link).unwrap();
    fs::rename(&link, &path).unwrap();
    said("it is a symbolic link");
    fs::write(&other, "{\"id\":\"link\",\"cmd\":\"print\",\"args\":[\"i\"]}\n").unwrap();
    fs::remove_file(&path).unwrap();
    until("the file is there again", || if path.exists() { Ok(()) } else { Err("no".into()) });
    say(&bug, &json!({ "id": "third", "cmd": "print", "args": ["i"] }));
    assert_eq!(text(&bug, "third"), "i = 0\n");
    let ids: Vec<Value> = answers(&bug).into_iter().map(|mut data| data["id"].take()).collect();
    assert_eq!(ids, ["again", "third"]);
}

#[test]
fn nothing_is_carried_out_twice_when_the_reader_is_killed() {
    let bug = stopped_in_loop();
    let told = bug.path("told");
    let lines = (0..300).map(|number| {
        let expression = format!("open({told:?}, 'a').write('{number}\\n')");
        format!("{}\n", json!({ "id": number, "cmd": "eval", "args": [expression] }))
    });
    // Asked first: it takes a while, and they are soon done.
    let daemon = bug.json(&["daemon", "status"])["pid"].as_i64().unwrap();
    append(&bug, &lines.collect::<String>());
    until("some are carried out", || if answers(&bug).len() > 40 { Ok(()) } else { Err("few".into()) });
    signal(i32::try_from(daemon).unwrap(), Signal::KILL);
    until("the daemon is gone", || {
        if PathBuf::from(format!("/proc/{daemon}")).exists() { Err("it is there".into()) } else { Ok(()) }
    });
    let done = |answers: &[Value]| answers.iter().filter(|data| data["ok"] == true).count();
    let before = done(&answers(&bug));
    // A new daemon, and a new session beside the old record.
    bug.run(&["status"]);
    let old = record(&bug);
    bug.ok(&["run", "--break", &at("python/loop.py", "body"), "--", "python3", "loop.py"]);
    let text = fs::read_to_string(&told).unwrap();
    let numbers: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
    let expected: Vec<usize> = (0..numbers.len()).collect();
    assert_eq!(numbers, expected, "in order, each once");
    assert!(numbers.len() < 300, "the reader was killed too late to tell");
    // What was answered was done; one may have been under way.
    assert!((before..=before + 1).contains(&numbers.len()), "{before} answered, {} done", numbers.len());
    // Of what was begun and not answered, that is said.
    let text = fs::read_to_string(old.join("events.jsonl")).unwrap();
    let results: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["type"] == "command.result" && event["data"]["id"].is_string())
        .map(|mut event| event["data"].take())
        .collect();
    let ids: Vec<String> = results.iter().map(|data| data["id"].as_str().unwrap().to_string()).collect();
    assert_eq!(ids, (0..ids.len()).map(|number| number.to_string()).collect::<Vec<_>>(), "each is answered once");
    let doubted = results.iter().filter(|data| data["ok"] == false).count();
    assert_eq!(ids.len(), before + doubted);
    assert!(doubted <= 1 && results[before..].iter().all(|data| data["error"]["kind"] == "lost"), "{results:?}");
    let kept: Value = serde_json::from_slice(&fs::read(old.join("commands.done")).unwrap()).unwrap();
    let inbox = fs::read_to_string(old.join("commands.jsonl")).unwrap();
    let offset = usize::try_from(kept["offset"].as_u64().unwrap()).unwrap();
    let counted = inbox[..offset].lines().count();
    assert!((numbers.len()..=numbers.len() + 1).contains(&counted), "{counted} count as done, {}", numbers.len());
}

#[test]
fn a_thousand_lines_of_four_processes_are_answered_once_each() {
    let bug = stopped_in_loop();
    let path = record(&bug).join("commands.jsonl");
    let script = r#"i=0; while [ $i -lt 250 ]; do
        echo "{\"id\":\"$1-$i\",\"cmd\":\"print\",\"args\":[\"$i + 0\"]}" >> "$0"; i=$((i+1)); done"#;
    let writers: Vec<_> = ["a", "b", "c", "d"]
        .map(|name| Command::new("sh").args(["-c", script]).arg(&path).arg(name).spawn().unwrap())
        .into_iter()
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let mut last = 0;
    // As long as there is progress there is hope.
    while last < 1000 {
        until(&format!("more than {last} answers"), || {
            let now = answers(&bug).len();
            if now > last {
                last = now;
                return Ok(());
            }
            Err(format!("{now}"))
        });
    }
    let answers = answers(&bug);
    assert_eq!(answers.len(), 1000);
    for name in ["a", "b", "c", "d"] {
        let own: Vec<&Value> =
            answers.iter().filter(|data| data["id"].as_str().unwrap().starts_with(&format!("{name}-"))).collect();
        let ids: Vec<String> = own.iter().map(|data| data["id"].as_str().unwrap().to_string()).collect();
        assert_eq!(ids, (0..250).map(|number| format!("{name}-{number}")).collect::<Vec<_>>());
        for (number, data) in own.iter().enumerate() {
            assert_eq!(data["text"], format!("{number} + 0 = {number}\n"), "{data}");
        }
    }
}
