//! The index of all records, `hits` and `query`: real sessions counted and asked across, nothing that can be changed by
//! asking, and an index that is made again whatever became of it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs::{self, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use support::fixtures::{at, program};
use support::{Bug, has, lacks};

/// A question's rows.
fn rows(bug: &Bug, sql: &str) -> Value {
    bug.json(&["query", sql])["rows"].take()
}

/// What was new in the records.
fn indexed(bug: &Bug) -> Value {
    bug.json(&["query", "SELECT 1"])["indexed"].take()
}

fn index(bug: &Bug) -> PathBuf {
    bug.home().join("state/index.sqlite")
}

/// A record that is written by hand, as a session would write it.
struct Record {
    folder: PathBuf,
}

impl Record {
    fn new(bug: &Bug, id: &str) -> Self {
        let folder = bug.home().join("state/sessions").join(id);
        fs::create_dir_all(&folder).unwrap();
        let about = json!({ "v": 1, "id": id, "alias": "s1", "words": ["run", "x.py"], "cwd": "/p", "project": "/p",
            "who": "cli:1", "adapter": "debugpy", "started": 1000 });
        fs::write(folder.join("session.json"), format!("{about}\n")).unwrap();
        Self { folder }
    }

    /// Appends to one of its files; answers how many bytes.
    fn add(&self, file: &str, text: &str) -> u64 {
        let mut file = OpenOptions::new().create(true).append(true).open(self.folder.join(file)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        text.len() as u64
    }

    fn event(&self, seq: u64, kind: &str, data: &Value) -> u64 {
        self.add("events.jsonl", &event(seq, kind, data))
    }

    /// A trace of `a` and `b` at `x.py:3`.
    fn trace(&self, seq: u64, file: &str) {
        let point = json!({ "id": 1, "place": place(), "asked": "x.py:3", "expressions": ["a", "b"], "when": null, "every": 1 });
        self.event(seq, "trace", &json!({ "file": file, "points": [point] }));
    }
}

/// A place as the record has it.
fn place() -> Value {
    serde_json::to_value(bugeye::model::Place::Line { file: "/p/x.py".into(), line: 3 }).unwrap()
}

fn event(seq: u64, kind: &str, data: &Value) -> String {
    let event =
        json!({ "v": 1, "seq": seq, "ts": 5000 + seq, "session": "x", "thread": 1, "type": kind, "data": data });
    format!("{event}\n")
}

/// A trace, and a session that stops three times at the same line.
fn sessions(bug: &Bug, fixture: &str) {
    let body = at(fixture, "body");
    bug.ok(&["trace", "--at", &format!("{body}: i, sum"), &program(fixture)]);
    bug.ok(&["run", &program(fixture), "--break", &body]);
    bug.ok(&["continue"]);
    bug.ok(&["continue"]);
}

fn across_sessions(language: &str, fixture: &str) {
    let bug = Bug::new(language);
    sessions(&bug, fixture);
    let body = at(fixture, "body");
    let key = format!("tests/fixtures/{language}/{body}");

    // The second session is live: what it has done so far counts.
    let seen = bug.json(&["hits", &body]);
    assert_eq!((&seen["hits"], &seen["sessions"]), (&json!(8), &json!(2)), "{seen}");
    assert_eq!(seen["places"], json!([[key, "work_basic"]]));
    let value = |name: &str| {
        let values = seen["values"].as_array().unwrap();
        values.iter().find(|value| value["expression"] == name).unwrap_or_else(|| panic!("no {name} in {seen}")).clone()
    };
    // The trace saw sums of 0, 0, 1, 3, 6 and the stops 0, 0, 1.
    let sum = value("sum");
    assert_eq!((&sum["numbers"], &sum["least"], &sum["most"]), (&json!(8), &json!(0.0), &json!(6.0)));
    assert_eq!(sum["samples"], json!([0.0, 0.0, 1.0, 3.0, 6.0, 0.0, 0.0, 1.0]));
    assert_eq!(sum["mean"], json!(11.0 / 8.0));
    assert_eq!(value("n")["numbers"], 3, "only stops have it");
    let text = bug.ok(&["hits", &body]);
    has(
        &text,
        &[&format!("{key} (work_basic): 8 hits, 2 sessions\n"), "  sum ▁▁▂▅█▁▁▂ 0..6, mean 1.375\n", "    5 i=4 sum=6"],
    );
    has(&text, &["n=5", "  n: always 5\n", "breakpoint"]);

    // By every name that it has, from wherever.
    let whole = bug.cwd.join(&body);
    for place in [key.as_str(), "work_basic", whole.to_str().unwrap()] {
        assert_eq!(bug.json(&["hits", place])["hits"], 8, "{place}");
    }
    let elsewhere = ["--json", "hits", "--all-projects", whole.to_str().unwrap()];
    let elsewhere = bug.command(&elsewhere).current_dir("/").output().unwrap();
    has(&String::from_utf8(elsewhere.stdout).unwrap(), &["\"hits\":8,"]);
    for (name, count) in [("s2", 3), ("last", 3), ("last~1", 5)] {
        assert_eq!(bug.json(&["hits", &body, "-s", name])["hits"], count, "{name}");
    }

    // Chosen by values.
    for (expression, count) in [
        ("sum > 2", 2),
        ("sum = 0 AND i = 1", 2),
        ("n IS NULL", 5),
        ("i IN (0, 4) OR sum == 3", 4),
        ("session IS NOT NULL && reason LIKE 'break%'", 3),
    ] {
        let seen = bug.json(&["hits", &body, "--where", expression]);
        assert_eq!(seen["hits"], count, "{expression}: {seen}");
    }
    let groups = bug.json(&["hits", &body, "--group-by", "i"]);
    assert_eq!(groups["table"]["rows"], json!([["0", 2, 2], ["1", 2, 2], ["2", 2, 2], ["3", 1, 1], ["4", 1, 1]]));
    let counts = bug.json(&["hits", &body, "--count-by", "sum", "--top", "2"]);
    assert_eq!(counts["table"]["rows"], json!([["0", 4, 2], ["1", 2, 2]]));
    assert_eq!(counts["table"]["more"], true);
    let reasons = bug.json(&["hits", &body, "--group-by", "reason"]);
    assert_eq!(reasons["table"]["rows"], json!([[null, 5, 1], ["breakpoint", 3, 1]]));
    has(
        &bug.ok(&["hits", &body, "--where", "sum > 2", "--group-by", "sum"]),
        &["sum  hits  sessions\n3       1         1\n6       1         1\n"],
    );
    has(&bug.ok(&["hits", &body, "--trend", "sum"]), &["  sum ▁▁▂▅█▁▁▂ 0..6, mean 1.375\n  first 0, last 1\n"]);
    let csv = bug.ok(&["hits", &body, "--where", "sum = 6", "--csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains(",reason,i,sum,") && lines[1].contains(",4,6,"), "{csv}");

    // Where something was seen, and what is not there.
    let places = bug.json(&["hits"]);
    assert_eq!(
        places["table"]["rows"][0].as_array().unwrap()[..4],
        [json!(key), json!("work_basic"), json!(8), json!(2)]
    );
    let run = bug.run(&["hits", &body, "--where", "summ > 2"]);
    run.fails(3, "there is no `summ` at this place");
    has(&run.stderr, &["did you mean `sum`?"]);
    bug.run(&["hits", "nowhere.c:1"]).fails(3, "nothing was recorded at `nowhere.c:1`");
    bug.run(&["hits", &body, "--where", "i = (SELECT 1)"]).fails(3, "there is no `SELECT`");
    bug.run(&["hits", &body, "--where", "1) OR (1"]).fails(2, "a `)` too many");
    bug.run(&["hits", &body, "--where", "sum > 2; DELETE FROM _hit"]).fails(2, "`;` is no part of an expression");

    // What goes on is seen.
    bug.ok(&["continue"]);
    assert_eq!(bug.json(&["hits", &body])["hits"], 9);
    bug.ok(&["stop"]);
}

#[test]
fn hits_across_sessions_of_c() {
    across_sessions("c", "c/loop_basic.c");
}

#[test]
fn hits_across_sessions_of_python() {
    across_sessions("python", "python/loop_basic.py");
}

/// SQLite has every text behind every number; whoever asks for what is greater than 3 wants numbers.
#[test]
fn a_text_is_no_number() {
    let bug = Bug::new("python");
    let record = Record::new(&bug, "20260101-000000-otter");
    record.trace(1, "hits.jsonl");
    let values = [("1", "'x'"), ("5", "True"), ("<unavailable>", "2"), ("'z'", "<unavailable>")];
    for (at, (a, b)) in values.iter().enumerate() {
        record.add("hits.jsonl", &format!("{}\n", json!([1, at, 1, 0, [a, b]])));
    }
    let hits = |expression: &str| {
        let seen = bug.json(&["hits", "/p/x.py:3", "--all-projects", "--where", expression]);
        seen["table"]["rows"].as_array().unwrap().iter().map(|row| row[3].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(hits("a > 3"), [2]);
    assert_eq!(hits("3 < a AND a <= 5"), [2]);
    assert_eq!(hits("a BETWEEN 0 AND 9"), [1, 2]);
    assert_eq!(hits("a + 1 > 0"), [1, 2]);
    assert_eq!(hits("b >= -1"), [2, 3]);
    assert_eq!(hits("a > b"), [2], "what can't be read is neither more nor less");
    assert_eq!(hits("a IS NULL"), [3]);
    assert_eq!(hits("a > '''a'"), [4]);
    assert_eq!(hits("a != 5"), [1, 4]);
    has(&bug.ok(&["hits", "-s", "otter", "x.py:3", "--where", "a = 5", "--trend", "b"]), &["  b: always True\n"]);
}

#[test]
fn every_table_answers() {
    let bug = Bug::new("python");
    sessions(&bug, "python/loop_basic.py");
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["continue"]);
    let key = format!("tests/fixtures/python/{}", at("python/loop_basic.py", "body"));
    let sessions = rows(
        &bug,
        "SELECT alias, command, adapter, ending, code, hits, started <= ended FROM sessions ORDER BY started",
    );
    let script = bug.cwd.join("loop_basic.py");
    assert_eq!(sessions[1], json!(["s2", script, "debugpy", "exited", 0, 3, 1]));
    assert_eq!(sessions[0][5], 5);
    let hits = rows(
        &bug,
        "SELECT place, function, path, reason, count(*), max(hit) FROM hits GROUP BY reason ORDER BY reason",
    );
    assert_eq!(hits[0], json!([key, "work_basic", "work_basic < main < <module>", null, 5, 5]));
    assert_eq!(hits[1], json!([key, "work_basic", "work_basic < main < <module>", "breakpoint", 3, 0]));
    let values = rows(&bug, "SELECT hit, value, number FROM \"values\" WHERE name = 'sum' AND hit > 0 ORDER BY hit");
    assert_eq!(values, json!([[1, "0", 0], [2, "0", 0], [3, "1", 1], [4, "3", 3], [5, "6", 6]]));
    let both = "SELECT a.hit FROM \"values\" a JOIN \"values\" b USING (id) WHERE a.name = 'i' AND b.name = 'sum' AND b.number > a.number";
    assert_eq!(rows(&bug, both), json!([[5]]));
    assert_eq!(rows(&bug, "SELECT vals FROM hits WHERE hit = 4"), json!([[r#"{"i":"3","sum":"3"}"#]]));
    let events =
        rows(&bug, "SELECT type, count(*) FROM events WHERE type IN ('stopped', 'trace', 'session.end') GROUP BY type");
    assert_eq!(events, json!([["session.end", 2], ["stopped", 3], ["trace", 1]]));
    let reason = "SELECT DISTINCT data ->> '$.reason.breakpoint.hit' FROM events WHERE type = 'stopped'";
    assert_eq!(rows(&bug, reason), json!([[1], [2], [3]]));
    let output = "SELECT stream, group_concat(text, '') FROM (SELECT o.* FROM output o JOIN sessions s ON s.id = o.session \
                  WHERE s.alias = 's2' ORDER BY o.seq) GROUP BY stream";
    let output = rows(&bug, output);
    assert!(output.as_array().unwrap().contains(&json!(["stdout", "sum=10\n"])), "{output}");

    // The forms of an answer.
    let text = bug.ok(&["query", "SELECT hit, value FROM \"values\" WHERE name = 'sum' AND hit > 2 ORDER BY hit"]);
    assert_eq!(text, "hit  value\n  3  1\n  4  3\n  5  6\n3 rows\n");
    let csv = bug.ok(&["query", "--csv", "SELECT 1 AS a, 'x,\"y' AS b, NULL AS c"]);
    assert_eq!(csv, "a,b,c\n1,\"x,\"\"y\",\n");
    let cut = bug.ok(&["query", "--max-rows", "2", "SELECT hit FROM hits ORDER BY hit"]);
    has(&cut, &["2 rows, and there are more"]);
    assert_eq!(bug.json(&["query", "--max-rows", "2", "SELECT 1 FROM hits"])["more"], true);
    let long = bug.json(&["query", "--max-rows", "100000", "SELECT printf('%.10000c', 'x') FROM events a, events b"]);
    assert!(long["more"] == true && long.to_string().len() < 3_000_000, "bounded in bytes too");
    has(
        &bug.ok(&["query", "--schema"]),
        &["sessions: ", "hits: ", "\"values\": ", "events: ", "output: ", "examples:"],
    );

    // What is asked wrongly is answered with what there is.
    let run = bug.run(&["query", "SELECT plase FROM hits"]);
    run.fails(2, "no such column: plase");
    has(&run.stderr, &["did you mean `place`?", "hits: id, session, seq"]);
    has(&bug.run(&["query", "SELECT sum FROM hits"]).stderr, &["`sum` is a value"]);
    has(&bug.run(&["query", "SELECT * FROM hit"]).stderr, &["did you mean `hits`?"]);
    has(&bug.run(&["query", "SELECT * FROM values"]).stderr, &["double quotes"]);
    bug.run(&["query", "SELECT 1; SELECT 2"]).fails(2, "one question at a time");
    bug.run(&["query", " "]).fails(2, "there is no question");
}

/// Nothing that is asked changes anything, here or elsewhere, or goes on for ever.
#[test]
fn asking_changes_nothing() {
    let bug = Bug::new("python");
    let record = Record::new(&bug, "20260101-000000-otter");
    record.trace(1, "hits.jsonl");
    record.add("hits.jsonl", "[1,10,1,0,[\"1\",\"x\"]]\n[1,11,1,0,[\"2\",\"y\"]]\n");
    assert_eq!(rows(&bug, "SELECT count(*) FROM hits"), json!([[2]]));
    let before = fs::read(index(&bug)).unwrap();
    let elsewhere = bug.path("elsewhere.db");
    let refused = [
        "DELETE FROM _hit",
        "UPDATE _hit SET v1 = 5",
        "INSERT INTO _way(path) VALUES ('x')",
        "DROP TABLE _hit",
        "CREATE TABLE x(a)",
        "CREATE TEMP TABLE x(a)",
        "CREATE VIEW x AS SELECT 1",
        "REPLACE INTO _session(id) VALUES (1)",
        &format!("ATTACH '{elsewhere}' AS e"),
        &format!("VACUUM INTO '{elsewhere}'"),
        "DETACH main",
        "VACUUM",
        "REINDEX",
        "ANALYZE",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT x",
        "PRAGMA writable_schema = 1",
        "PRAGMA query_only = 0",
        "PRAGMA user_version = 9",
        "PRAGMA journal_mode = DELETE",
        "PRAGMA trusted_schema = 1",
        "PRAGMA hard_heap_limit = 0",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "SELECT * FROM pragma_journal_mode",
        "SELECT load_extension('./x')",
        "EXPLAIN DELETE FROM _hit",
        "WITH x AS (SELECT 1) DELETE FROM _hit",
        "SELECT 1; DELETE FROM _hit",
        "CREATE VIRTUAL TABLE x USING fts5(a)",
    ];
    for sql in refused {
        let run = bug.run(&["query", sql]);
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run}");
        assert!(run.stderr.contains("the index can only be read"), "{run}");
    }
    assert!(fs::read(index(&bug)).unwrap() == before, "not one byte of the index has changed");
    assert!(!fs::exists(elsewhere).unwrap());

    // Without end, in time and in memory.
    for endless in [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION SELECT x + 1 FROM c) SELECT max(x) FROM c",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c WHERE x < 0",
    ] {
        let run = bug.run(&["query", "--timeout", "300ms", endless]);
        run.fails(4, "longer than 0.3 s");
        assert!(run.took < Duration::from_secs(10), "{:?}", run.took);
    }
    let many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    assert_eq!(bug.json(&["query", many])["rows"].as_array().unwrap().len(), 200);
    for large in [
        "SELECT zeroblob(900000000)",
        "SELECT length(printf('%.900000000c', 'x'))",
        "SELECT replace(hex(zeroblob(4000000)), '0', '0123456789')",
    ] {
        bug.run(&["query", large]).fails(1, "too much memory");
    }
    assert_eq!(rows(&bug, "SELECT count(*) FROM hits"), json!([[2]]));
    // What is known of columns may be read as SQLite tells it.
    assert_eq!(rows(&bug, "SELECT name FROM pragma_table_info('output') LIMIT 1"), json!([["session"]]));
}

/// Whatever became of the file, the next question has it made again, and answers.
#[test]
fn an_index_that_is_gone_broken_or_of_another_version_is_made_again() {
    let bug = Bug::new("python");
    let record = Record::new(&bug, "20260101-000000-otter");
    record.trace(1, "hits.jsonl");
    let hits: String = (0..20_000).map(|n| format!("[1,{n},1,0,[\"{n}\",\"text {n}\"]]\n")).collect();
    record.add("hits.jsonl", &hits);
    let count = "SELECT count(*), sum(number) FROM \"values\" WHERE name = 'a'";
    let right = json!([[20_000, 199_990_000]]);
    assert_eq!(rows(&bug, count), right);
    assert_eq!(fs::metadata(index(&bug)).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(indexed(&bug)["bytes"], 0);

    let again = |what: &str, why: &str| {
        let answer = bug.json(&["query", count]);
        assert_eq!(answer["rows"], right, "{what}");
        assert_eq!(answer["indexed"]["hits"], 20_000, "{what}: {}", answer["indexed"]);
        let told = answer["indexed"]["rebuilt"].as_str().unwrap_or_default();
        assert!(told.contains(why) && why.is_empty() == told.is_empty(), "{what}: {told:?}");
        assert_eq!(fs::metadata(index(&bug)).unwrap().permissions().mode() & 0o777, 0o600, "{what}");
        assert_eq!(indexed(&bug)["bytes"], 0, "{what}: once");
    };
    fs::remove_file(index(&bug)).unwrap();
    again("gone", "");
    fs::write(index(&bug), "garbage, and no database at all\n".repeat(1000)).unwrap();
    again("garbage", "not a database");
    fs::write(index(&bug), "x").unwrap();
    // SQLite takes what is shorter than its head for empty.
    again("one byte", "");
    fs::write(index(&bug), "").unwrap();
    again("empty", "");
    // The head is right, and the middle is not.
    let size = fs::metadata(index(&bug)).unwrap().len();
    let mut file = OpenOptions::new().write(true).open(index(&bug)).unwrap();
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&vec![0xa5; usize::try_from(size - 4096).unwrap()]).unwrap();
    drop(file);
    again("broken inside", "malformed");
    // The version is a number in the head of the file.
    let mut file = OpenOptions::new().write(true).open(index(&bug)).unwrap();
    file.seek(SeekFrom::Start(60)).unwrap();
    file.write_all(&99_u32.to_be_bytes()).unwrap();
    drop(file);
    again("of another version", "version 99");
    has(&bug.ok(&["query", count]), &["1 row\n"]);
    fs::write(index(&bug), "garbage").unwrap();
    has(&bug.ok(&["query", count]), &["note: the index was made anew: "]);
}

#[test]
fn several_processes_ask_at_once() {
    let bug = Bug::new("python");
    for number in 0..6 {
        let record = Record::new(&bug, &format!("20260101-00000{number}-otter"));
        record.trace(1, "hits.jsonl");
        let hits: String = (0..5_000).map(|n| format!("[1,{n},1,0,[\"{n}\",\"x\"]]\n")).collect();
        record.add("hits.jsonl", &hits);
    }
    for (round, broken) in [false, true, false, false, false].into_iter().enumerate() {
        if round > 2 {
            fs::remove_file(index(&bug)).unwrap();
        }
        if broken {
            fs::write(index(&bug), "garbage").unwrap();
        }
        let words = [
            "--json",
            "query",
            "SELECT count(*), count(DISTINCT session), sum(number) FROM \"values\" WHERE name = 'a'",
        ];
        let asked: Vec<_> = (0..6).map(|_| bug.spawn(&words)).collect();
        let mut read = 0;
        for asked in asked {
            let run = asked.wait();
            assert_eq!(run.code, 0, "{run}");
            let answer = run.json();
            assert_eq!(answer["result"]["rows"], json!([[30_000, 6, 74_985_000]]), "{answer}");
            read += answer["result"]["indexed"]["hits"].as_u64().unwrap();
        }
        if !broken {
            assert!(read == 30_000 || read == 0, "each hit is read once: {read}");
        }
    }
}

/// A line that is not whole waits; what was read is not read again.
#[test]
fn only_what_is_new_is_read_and_whole_lines_alone() {
    let bug = Bug::new("python");
    let record = Record::new(&bug, "20260101-000000-otter");
    let first = record.event(1, "log", &json!({ "message": "one" }));
    let second = event(2, "output", &json!({ "stream": "stdout", "text": "two\n" }));
    record.add("events.jsonl", &second[..30]);
    let news = indexed(&bug);
    assert_eq!((&news["events"], &news["bytes"]), (&json!(1), &json!(first)), "{news}");
    assert_eq!((&indexed(&bug)["events"], &indexed(&bug)["bytes"]), (&json!(0), &json!(0)));
    record.add("events.jsonl", &second[30..]);
    let news = indexed(&bug);
    assert_eq!(
        (&news["events"], &news["bytes"], &news["sessions"]),
        (&json!(1), &json!(second.len()), &json!(1)),
        "{news}"
    );
    assert_eq!(rows(&bug, "SELECT seq, type, thread FROM events"), json!([[1, "log", 1], [2, "output", 1]]));
    assert_eq!(rows(&bug, "SELECT seq, text FROM output"), json!([[2, "two\n"]]));

    // The same for hits; threads and ways that were told before are still known.
    record.trace(3, "hits.jsonl");
    let told = concat!(
        "[\"t\",7,\"main\"]\n",
        "[\"s\",1,[[\"work\",\"/p/x.py\",3],[\"main\",\"/p/x.py\",9]]]\n",
        "[1,10,7,1,[\"1\",\"'a'\"]]\n"
    );
    let line = "[1,20,7,1,[\"2\",\"'b'\"]]\n";
    record.add("hits.jsonl", &format!("{told}{}", &line[..9]));
    let news = indexed(&bug);
    assert_eq!((&news["events"], &news["hits"]), (&json!(1), &json!(1)), "{news}");
    record.add("hits.jsonl", &line[9..]);
    let news = indexed(&bug);
    assert_eq!((&news["hits"], &news["bytes"]), (&json!(1), &json!(line.len())), "{news}");
    let hits = "SELECT seq, hit, micros, thread, place, asked, function, path, vals FROM hits ORDER BY hit";
    let expected = json!([
        [3, 1, 10, 7, "x.py:3", "x.py:3", "work", "work < main", r#"{"a":"1","b":"'a'"}"#],
        [3, 2, 20, 7, "x.py:3", "x.py:3", "work", "work < main", r#"{"a":"2","b":"'b'"}"#],
    ]);
    assert_eq!(rows(&bug, hits), expected);
    // A second trace of the session, and a line that is none.
    record.trace(4, "hits-2.jsonl");
    record.add("hits-2.jsonl", "nonsense\n[1,5,1,0,[\"9\",\"9\"]]\n");
    assert_eq!(indexed(&bug)["hits"], 1);
    assert_eq!(rows(&bug, "SELECT seq, hit FROM hits ORDER BY seq, hit"), json!([[3, 1], [3, 2], [4, 1]]));
    fs::remove_file(index(&bug)).unwrap();
    assert_eq!(rows(&bug, "SELECT count(*) FROM hits"), json!([[3]]));

    // A record of the same name that is another one, and one that was removed.
    fs::remove_dir_all(&record.folder).unwrap();
    let other = Record::new(&bug, "20260101-000000-otter");
    other.event(1, "log", &json!({}));
    Record::new(&bug, "20260102-000000-lynx").event(1, "log", &json!({}));
    assert_eq!(
        rows(
            &bug,
            "SELECT (SELECT count(*) FROM hits), (SELECT count(*) FROM events), (SELECT count(*) FROM sessions)"
        ),
        json!([[0, 2, 2]])
    );
    fs::remove_dir_all(&other.folder).unwrap();
    assert_eq!(rows(&bug, "SELECT id FROM sessions"), json!([["20260102-000000-lynx"]]));
    assert_eq!(rows(&bug, "SELECT session FROM events"), json!([["20260102-000000-lynx"]]));
}

/// What a record says is text of a program: it is bounded, and shown harmless.
#[test]
fn a_hostile_record_is_read_as_text() {
    let mut bug = Bug::new("python");
    bug.cwd = bug.home().to_path_buf();
    let record = Record::new(&bug, "20260101-000000-otter");
    let mark = "\u{1b}[31m\u{202e}'; DROP TABLE _hit; --";
    record.event(1, "unheard.of", &json!({ "deep": [[[[1]]]], "text": "x".repeat(100_000) }));
    record.add("events.jsonl", "not an event\n{}\n\n");
    let point =
        json!({ "id": 1, "place": place(), "asked": mark, "expressions": [mark, "b"], "when": null, "every": 1 });
    record.event(2, "trace", &json!({ "file": "../../../etc/passwd", "points": [point] }));
    record.event(3, "trace", &json!({ "file": "hits.jsonl", "points": [point] }));
    record.add("hits.jsonl", &format!("{}\n", json!([1, 5, 1, 0, [mark, "y".repeat(50_000)]])));
    record.event(4, "trace", &json!({ "points": "none" }));
    record.event(5, "session.end", &json!({ "ending": { "kind": "vanished" } }));
    assert_eq!(rows(&bug, "SELECT count(*), max(length(value)) < 3000 FROM \"values\""), json!([[2, 1]]));
    assert_eq!(rows(&bug, "SELECT count(*), max(length(data)) < 5000 FROM events"), json!([[5, 1]]));
    assert_eq!(rows(&bug, "SELECT ended, ending FROM sessions"), json!([[5005, null]]));
    let shown = bug.ok(&["hits", mark, "--all-projects"]);
    has(&shown, &["x.py:3: 1 hit, 1 session\n", "\\u{1b}[31m\\u{202e}'; DROP TABLE _hit; --="]);
    lacks(&shown, &["\u{1b}", "\u{202e}"]);
    let groups = bug.ok(&["hits", mark, "--all-projects", "--group-by", mark]);
    lacks(&groups, &["\u{1b}", "\u{202e}"]);
    lacks(&bug.ok(&["query", "SELECT * FROM \"values\""]), &["\u{1b}", "\u{202e}"]);
    lacks(&bug.ok(&["query", "--csv", "SELECT * FROM \"values\""]), &["\u{1b}", "\u{202e}"]);
    assert_eq!(bug.json(&["hits", mark, "--all-projects", "--where", "b LIKE 'y%'"])["hits"], 1);
    // Another project's records are not this one's.
    has(&bug.ok(&["hits"]), &["nothing was recorded in ", "--all-projects"]);
    has(&bug.ok(&["hits", "--all-projects"]), &["x.py:3"]);
}

#[test]
fn values_over_hits_are_drawn() {
    let mut bug = Bug::new("python");
    bug.cwd = bug.home().to_path_buf();
    let record = Record::new(&bug, "20260101-000000-otter");
    record.trace(1, "hits.jsonl");
    let hits: String = (0..50).map(|n| format!("[1,{n},1,0,[\"{n}\",\"'text'\"]]\n")).collect();
    record.add("hits.jsonl", &hits);
    has(&bug.ok(&["hits", "x.py:3", "--all-projects", "--plot", "a.svg"]), &["plotted in a.svg"]);
    let svg = fs::read_to_string(bug.path("a.svg")).unwrap();
    has(&svg, &["<svg ", "a at x.py:3</text>", ">49</text>", ">0</text>", "<polyline "]);
    assert_eq!(svg.matches("<polyline ").count(), 1, "a text has no line");
    bug.ok(&["hits", "x.py:3", "--all-projects", "--trend", "a", "--plot", "a.png"]);
    let look = "
import struct, sys, zlib
data = open(sys.argv[1], 'rb').read()
assert data[:8] == b'\\x89PNG\\r\\n\\x1a\\n'
at, parts = 8, {}
while at < len(data):
    size, kind = struct.unpack('>I4s', data[at:at + 8])
    body = data[at + 8:at + 8 + size]
    assert zlib.crc32(kind + body) == struct.unpack('>I', data[at + 8 + size:at + 12 + size])[0], kind
    parts[kind] = body
    at += 12 + size
assert list(parts) == [b'IHDR', b'PLTE', b'IDAT', b'IEND']
width, height, depth, colour = struct.unpack('>IIBB', parts[b'IHDR'][:10])
rows = zlib.decompress(parts[b'IDAT'])
assert len(rows) == height * (1 + (width + 1) // 2)
pixels = [[byte >> 4 & 15 if x % 2 == 0 else byte & 15 for byte, x in ((rows[y * (1 + (width + 1) // 2) + 1 + x // 2], x) for x in range(width))] for y in range(height)]
blue = [(x, y) for y in range(height) for x in range(width) if pixels[y][x] == 3]
print(width, height, min(x for x, _ in blue), max(x for x, _ in blue), min(blue)[1] > max(blue)[1])
";
    let seen = Command::new("python3").args(["-c", look, &bug.path("a.png")]).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&seen.stdout),
        "880 170 60 860 True\n",
        "{}",
        String::from_utf8_lossy(&seen.stderr)
    );
    bug.run(&["hits", "x.py:3", "--all-projects", "--plot", "a.jpg"]).fails(2, ".svg or .png");
    bug.run(&["hits", "x.py:3", "--all-projects", "--trend", "b", "--plot", "b.svg"]).fails(1, "nothing to draw");
}
