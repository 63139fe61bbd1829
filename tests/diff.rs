//! `diff` and `flake`: where a good and a bad run part, named by one command, with real adapters.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use support::fixtures::{self, at, cargo_target, copy_project, program};
use support::sides::{GDB, LLDB_19, Side};
use support::{Bug, has, lacks};

const PYTHON: &str = "python/seventh.py";
const C: &str = "c/seventh.c";

/// The place of a mark as a record has it: relative to the project.
fn place(name: &str, mark: &str) -> String {
    let (language, _) = name.split_once('/').unwrap();
    format!("tests/fixtures/{language}/{}", at(name, mark))
}

/// What `diff` says below the two records.
fn explained(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("A 20") && lines[1].starts_with("B 20"), "{text}");
    lines[2..].join("\n")
}

/// Surroundings with a debugger of native code, in the folder of C.
fn native(side: &Side) -> Bug {
    let mut bug = side.bug();
    bug.cwd = fixtures::folder("c");
    bug
}

/// The words that run a program of a language.
fn command(name: &str) -> Vec<String> {
    match name.starts_with("python/") {
        true => vec!["python3".into(), program(name)],
        false => vec![program(name)],
    }
}

fn words<'a>(before: &[&'a str], command: &'a [String], after: &[&'a str]) -> Vec<&'a str> {
    let words = before.iter().copied().chain(["--"]).chain(command.iter().map(String::as_str));
    words.chain(after.iter().copied()).collect()
}

/// The scripted bug, traced: iteration 7 and the variables are named.
#[test]
fn a_value_that_goes_wrong_is_found_by_its_hit_in_traces() {
    for (name, bug) in [(PYTHON, Bug::new("python")), (C, native(&LLDB_19)), (C, native(&GDB))] {
        let (command, seen) = (command(name), format!("{}: i, value, total", at(name, "body")));
        for (run, after) in [("good", &[][..]), ("bad", &["bad"][..])] {
            let traced = bug.ok(&words(&["trace", "--name", run, "--at", &seen], &command, after));
            has(&traced, &["20 hits", "exited: code 0"]);
        }
        let at = place(name, "body");
        let expected = format!(
            "last equal: hit 6 of {at}\n\
             first different value: hit 7 of {at}: value = 7 and 8, total = 28 and 29\n\
             \x20 last equal at hit 6 of {at}: value = 6, total = 21\n\
             both exited: code 0"
        );
        assert_eq!(explained(&bug.ok(&["diff", "good", "bad"])), expected);
        assert_eq!(explained(&bug.ok(&["diff", "last~1", "last"])), expected);
        let told = bug.json(&["diff", "good", "bad"]);
        assert_eq!((&told["last_equal"]["number"], &told["last_equal"]["place"]), (&json!(6), &json!(at)));
        assert_eq!(told["first_value_diff"]["a"]["number"], 7);
        let names: Vec<&Value> =
            told["first_value_diff"]["values"].as_array().unwrap().iter().map(|v| &v["name"]).collect();
        assert_eq!(names, ["value", "total"]);
        assert_eq!((&told["first_path_diff"], &told["equal"]), (&json!(null), &json!(false)));
        assert_eq!(told["ending"]["b"], json!({ "kind": "exited", "code": 0 }));
        // The two of one run, side by side.
        let here = self::at(name, "body");
        let beside = format!("hit 3 of {at} and hit 9 of {at}\n  i      3  9\n  value  3  9\n  total  6  45\n");
        let whole = bug.cwd.join(&here);
        for here in [here.as_str(), &format!("./{here}"), whole.to_str().unwrap()] {
            assert_eq!(bug.ok(&["diff", "good", "--hits", here, "3", "9"]), beside);
        }
        bug.run(&["diff", "good", "--hits", &here, "3", "21"]).fails(3, "has 20 hits of");
        // A difference is no failure, unless it is asked for.
        let run = bug.run(&["diff", "--exit-code", "good", "bad"]);
        assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run}");
        assert_eq!(bug.run(&["diff", "--exit-code", "good", "good"]).code, 0);
    }
}

/// The same by breakpoints and `continue`, with whatever the locals are.
#[test]
fn a_value_that_goes_wrong_is_found_by_its_hit_in_stops() {
    for name in [PYTHON, C] {
        let bug = Bug::new(name.split('/').next().unwrap());
        let (command, here) = (command(name), at(name, "body"));
        for (run, after) in [("good", &[][..]), ("bad", &["bad"][..])] {
            bug.ok(&words(&["run", "--name", run, "--break", &here], &command, after));
            for _ in 0..19 {
                has(&bug.ok(&["-s", run, "continue"]), &["stopped: breakpoint"]);
            }
            has(&bug.ok(&["-s", run, "continue"]), &["exited: code 0"]);
        }
        let at = place(name, "body");
        let text = explained(&bug.ok(&["diff", "good", "bad"]));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some(format!("last equal: hit 6 of {at}").as_str()));
        let value = lines.next().unwrap();
        assert!(value.starts_with(&format!("first different value: hit 7 of {at}: ")), "{text}");
        has(value, &["value = 7 and 8", "total = 28 and 29"]);
        lacks(value, &["count", "i ="]);
        assert!(lines.next().unwrap().starts_with(&format!("  last equal at hit 6 of {at}: ")), "{text}");
        assert_eq!(lines.next(), Some("both exited: code 0"), "{text}");
        // Two stops, by their events.
        let stops: Vec<u64> = bug
            .ok(&["events", "--json", "-s", "good", "-f", "stopped"])
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["seq"].as_u64().unwrap())
            .collect();
        assert_eq!(stops.len(), 20);
        let (third, ninth) = (format!("good@{}", stops[2]), format!("good@{}", stops[8]));
        let text = bug.ok(&["diff", &third, &ninth]);
        has(&text, &[&format!("hit 3 of {at} and hit 9 of {at}\n"), "  total  6  45\n", "same: count=20"]);
    }
}

#[test]
fn calls_are_compared_with_their_arguments_and_values() {
    for (name, bug) in [(PYTHON, Bug::new("python")), (C, native(&LLDB_19)), (C, native(&GDB))] {
        let command = command(name);
        for (run, after) in [("good", &[][..]), ("bad", &["bad"][..])] {
            let words = words(&["trace", "--name", run, "--calls", "amount", "--calls", "add_up"], &command, after);
            has(&bug.ok(&words), &["21 calls"]);
        }
        let told = bug.json(&["diff", "good", "bad"]);
        let value = &told["first_value_diff"];
        assert_eq!((&value["a"]["kind"], &value["a"]["number"]), (&json!("return"), &json!(7)), "{told}");
        assert!(value["a"]["function"].as_str().unwrap().ends_with("amount"), "{value}");
        assert_eq!((&value["values"][0]["a"], &value["values"][0]["b"]), (&json!("7"), &json!("8")));
        assert_eq!(told["last_equal"]["kind"], "call");
        let text = bug.ok(&["diff", "good", "bad"]);
        has(
            &text,
            &[
                "first different value: return 7 of ",
                "amount (tests/fixtures/",
                "): 7 and 8\n  last equal at return 6 of ",
            ],
        );
    }
}

#[test]
fn what_is_different_in_every_run_passes_for_equal_and_is_said() {
    let bug = Bug::new("python");
    let seen = format!("{}: n, pid, now, text, folder, name, words, stamp", at("python/volatile.py", "look"));
    for _ in 0..2 {
        bug.ok(&["trace", "--at", &seen, "--", "python3", "volatile.py"]);
    }
    let told = bug.json(&["diff", "last~1", "last"]);
    assert_eq!((&told["equal"], &told["counts"]["equal"]), (&json!(true), &json!(3)), "{told}");
    for rule in ["pid", "time", "object", "temporary", "uuid"] {
        assert!(told["suppressed"][rule].as_u64().unwrap() >= 1, "{rule}: {told}");
    }
    let text = explained(&bug.ok(&["diff", "last~1", "last"]));
    assert!(text.starts_with("no difference: 3 steps each\nboth exited: code 0\ntaken for equal: "), "{text}");
    let exact = bug.json(&["diff", "--exact", "last~1", "last"]);
    assert_eq!((&exact["equal"], &exact["first_value_diff"]["a"]["number"]), (&json!(false), &json!(1)), "{exact}");
    // What the user says is noise: by flag and in the settings.
    let flag = bug.json(&["diff", "--exact", "--ignore", "[!n]*", "--ignore", "*", "last~1", "last"]);
    assert_eq!(flag["first_value_diff"], json!(null), "{flag}");
    fs::create_dir_all(bug.home().join("config")).unwrap();
    fs::write(bug.home().join("config/config.toml"), "[diff]\nignore = [\"*\"]\n").unwrap();
    let set = bug.json(&["diff", "--exact", "last~1", "last"]);
    assert_eq!(set["first_value_diff"], json!(null), "{set}");
    assert!(set["suppressed"]["ignore *"].as_u64().unwrap() > 10, "{set}");
}

#[test]
fn threads_are_compared_each_with_its_own_whatever_their_turns() {
    let bug = Bug::new("python");
    let seen = format!("{}: step, value", at("python/turns.py", "work"));
    let run = |name: &str, order: &[&str]| {
        let words = ["trace", "--name", name, "--at", &seen, "--", "python3", "turns.py"];
        has(&bug.ok(&words.into_iter().chain(order.iter().copied()).collect::<Vec<_>>()), &["12 hits"]);
    };
    run("one", &["red", "green", "blue"]);
    run("other", &["blue", "red", "green"]);
    run("wrong", &["blue", "red", "!green"]);
    let text = explained(&bug.ok(&["diff", "one", "other"]));
    assert_eq!(text, "no difference: 12 steps each\nboth exited: code 0");
    let at = place("python/turns.py", "work");
    let text = explained(&bug.ok(&["diff", "one", "wrong"]));
    let expected = format!(
        "last equal: hit 2 of {at} in thread green\n\
         first different value: hit 3 of {at} in thread green: value = 52 and 53\n\
         \x20 last equal at hit 2 of {at} in thread green: value = 51\n\
         both exited: code 0"
    );
    assert_eq!(text, expected);
}

/// Runs that take other ways, and end otherwise.
#[test]
fn the_first_different_path_and_the_end_are_told() {
    let bug = Bug::new("python");
    let code = "import sys\n\ndef even(n):\n    return n\n\ndef odd(n):\n    return n\n\nwrong = len(sys.argv) > 1\nfor n in range(6):\n    (odd if n % 2 or (wrong and n == 4) else even)(0)\nsys.exit(3 if wrong else 0)\n";
    let file = bug.write("ways.py", code);
    for (name, after) in [("good", &[][..]), ("bad", &["x"][..])] {
        let before = ["trace", "--name", name, "--at", &format!("{file}:4: n"), "--at", &format!("{file}:7: n")];
        bug.ok(&words(&before, &["python3".into(), file.clone()], after));
    }
    let expected = format!(
        "last equal: hit 2 of {file}:7\n\
         first different path: after hit 2 of {file}:7 A goes to hit 3 of {file}:4, B to hit 3 of {file}:7\n\
         A exited: code 0, B exited: code 3"
    );
    assert_eq!(explained(&bug.ok(&["diff", "good", "bad"])), expected);
    // Only what was printed differs.
    let file = bug
        .write("prints.py", "import sys\n\ndef f(n):\n    return n\n\nf(1)\nprint('a')\nprint('b', *sys.argv[1:])\n");
    for (name, after) in [("plain", &[][..]), ("more", &["x"][..])] {
        let before = ["trace", "--name", name, "--at", &format!("{file}:4: n")];
        bug.ok(&words(&before, &["python3".into(), file.clone()], after));
    }
    let expected = "no step differs: 1 step each\nboth exited: code 0\nfirst different line of stdout: 2: b and b x";
    assert_eq!(explained(&bug.ok(&["diff", "plain", "more"])), expected);
}

/// What was not compared is said, and so is what has no end; nothing of it is called equal.
#[test]
fn what_is_not_known_is_not_called_equal() {
    let bug = Bug::new("python");
    let here = at(PYTHON, "body");
    for (name, seen) in [("more", "i, value"), ("less", "i")] {
        bug.ok(&["trace", "--name", name, "--at", &format!("{here}: {seen}"), "--", "python3", &program(PYTHON)]);
    }
    let text = explained(&bug.ok(&["diff", "more", "less"]));
    let note = "note: seen in one of them alone, so not compared: value";
    assert_eq!(text, format!("no difference: 20 steps each\nboth exited: code 0\n{note}"));
    has(&bug.ok(&["diff", "less", "more"]), &[note]);
    lacks(&bug.ok(&["diff", "less", "more", "--ignore", "value"]), &["note:"]);
    let text = explained(&bug.ok(&["diff", "more", "more", "--tolerance", "1e-9"]));
    assert_eq!(text, "no difference: 20 steps each\nboth exited: code 0");
    // A session that goes on; and a hit that has no values.
    bug.ok(&["run", "--name", "live", "--break", &here, "--", "python3", &program(PYTHON)]);
    bug.ok(&["break", "seventh.py:16", "--log", "i={i}"]);
    has(&bug.ok(&["diff", "live", "live"]), &["\nneither has a recorded end\n"]);
    has(&bug.ok(&["diff", "live", "more"]), &["\nA has no recorded end, B exited: code 0\n"]);
    bug.ok(&["-s", "live", "continue"]);
    let hits = bug.ok(&["events", "--json", "-s", "live", "-f", "hit"]);
    let hit: Value = serde_json::from_str(hits.lines().next().unwrap()).unwrap();
    let hit = format!("live@{}", hit["seq"]);
    bug.run(&["diff", &hit, &hit]).fails(2, "is of a log breakpoint, which has no values");
}

#[test]
fn two_versions_of_a_program_are_compared_by_the_text_of_their_lines() {
    let bug = Bug::new("python");
    let old = "def f(n):\n    double = n * 2\n    return double\n\nfor n in range(3):\n    f(n)\n";
    let new = "# A line above.\ndef f(n):\n    double = n * 2 + (n == 2)\n    return double\n\nfor n in range(3):\n    f(n)\n";
    for (name, code, line) in [("old", old, 3), ("new", new, 4)] {
        let file = bug.write(&format!("{name}.py"), code);
        bug.ok(&["trace", "--name", name, "--at", &format!("{file}:{line}: n, double"), "--", "python3", &file]);
    }
    assert_eq!(bug.json(&["diff", "old", "new"])["counts"]["equal"], 0);
    let told = bug.json(&["diff", "--ignore-lines", "old", "new"]);
    let value = &told["first_value_diff"];
    assert_eq!((&value["a"]["number"], &value["values"][0]["name"]), (&json!(3), &json!("double")), "{told}");
}

#[test]
fn what_can_t_be_compared_is_said_with_the_way_out() {
    let bug = Bug::new("c");
    bug.ok(&["run", "--name", "bare", "--", &program(C)]);
    let run = bug.run(&["diff", "bare", "bare"]);
    run.fails(3, "has no stops and no hits, so there is nothing to compare");
    has(&run.stderr, &["hint: record places: bugeye trace --at", "bugeye trace --calls '*' -- COMMAND"]);
    let run = bug.run(&["diff", "bare", "nosuch"]);
    run.fails(3, "there is no session and no record `nosuch`");
    has(&run.stderr, &[&format!(": {}", program(C))]);
    bug.run(&["diff", "last~7", "last"]).fails(3, "there is no `last~7`: this folder has 1 record");
    bug.run(&["diff", "bare@1", "bare"]).fails(2, "a run can't be compared with a stop");
    bug.run(&["diff", "bare@1", "bare@1"]).fails(2, "is no stop but `session.start`");
    bug.run(&["diff", "bare@999", "bare@1"]).fails(3, "has no event 999");
    bug.run(&["diff", "bare", "--hits", "a.c:3", "1", "2"]).fails(3, "has no hit of a.c:3");
    bug.run(&["diff", "bare", "--hits", "a.c:3", "0", "2"]).fails(2, "they count from 1");
    record(&bug, "20260101-000000-otter", 3, false);
    let events = bug.home().join("state/sessions/20260101-000000-otter/events.jsonl");
    fs::write(&events, fs::read_to_string(&events).unwrap().replace("\"v\":1", "\"v\":9")).unwrap();
    bug.run(&["diff", "otter", "otter"]).fails(6, "20260101-000000-otter is of version 9, newer than this Bugeye");
    bug.run(&["diff", "--tolerance", "-1", "bare", "bare"]).fails(2, "");
}

/// A record as a trace leaves it, with as many hits as wanted; the last tenth begins with a wrong one.
fn record(bug: &Bug, id: &str, hits: u64, wrong: bool) {
    let folder = bug.home().join("state/sessions").join(id);
    fs::create_dir_all(&folder).unwrap();
    let head =
        json!({ "v": 1, "id": id, "alias": "s1", "words": ["x"], "cwd": "/p", "project": "/p", "adapter": "debugpy" });
    fs::write(folder.join("session.json"), head.to_string()).unwrap();
    let point = json!({ "id": 1, "place": { "line": { "file": "/p/a.py", "line": 5 } }, "asked": "a.py:5",
        "expressions": ["i", "total"], "when": null, "every": 1 });
    let event = |seq: u64, kind: &str, data: Value| {
        let event = json!({ "v": 1, "seq": seq, "ts": 1, "session": id, "thread": null, "type": kind, "data": data });
        format!("{event}\n")
    };
    let traced = event(1, "trace", json!({ "file": "hits.jsonl", "points": [point] }));
    let ended = event(2, "session.end", json!({ "ending": { "kind": "exited", "code": 0 } }));
    fs::write(folder.join("events.jsonl"), traced + &ended).unwrap();
    let mut file = std::io::BufWriter::new(fs::File::create(folder.join("hits.jsonl")).unwrap());
    writeln!(file, "[\"t\",1,\"main\"]\n[\"s\",1,[[\"f\",\"/p/a.py\",5],[\"g\",\"/p/a.py\",9]]]").unwrap();
    for hit in 0..hits {
        let total = hit * 3 + u64::from(wrong && hit == hits / 10 * 9);
        writeln!(file, "[1,{hit},1,1,[\"{hit}\",\"{total}\"]]").unwrap();
    }
}

/// Long records are compared as they are read: what it takes does not grow with them. `BUGEYE_TEST_HITS` asks for more.
#[test]
fn long_records_take_no_more_memory_than_short_ones() {
    let bug = Bug::new("python");
    let hits: u64 = std::env::var("BUGEYE_TEST_HITS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    record(&bug, "20260101-000000-otter", hits, false);
    record(&bug, "20260101-000001-lynx", hits, true);
    let mut child =
        bug.command(&["--json", "diff", "otter", "lynx"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(peak.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let value = &answer["result"]["first_value_diff"];
    assert_eq!((&value["a"]["number"], &value["values"][0]["name"]), (&json!(hits / 10 * 9 + 1), &json!("total")));
    assert_eq!(value["values"][0]["last_equal"]["number"], hits / 10 * 9);
    eprintln!("{hits} hits: {most} kB at most");
    assert!(most > 0 && most < 64 * 1024, "{most} kB");
}

/// The text of a `flake` that may take many runs, and then says how it goes.
fn flaked(bug: &Bug, words: &[&str]) -> String {
    let run = bug.run(words);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stderr.lines().all(|line| line.starts_with("run ")), "{run}");
    run.stdout
}

fn project(name: &str) -> Bug {
    let mut bug = Bug::new("c");
    let folder = PathBuf::from(bug.path("project"));
    copy_project(name, &folder);
    bug.cwd = folder;
    bug
}

#[test]
fn a_flaky_pytest_is_explained() {
    let mut bug = project("flaky-pytest");
    let path = std::env::var("PATH").unwrap();
    bug.env.push(("PATH".into(), format!("{}:{path}", fixtures::pytest().join("bin").display())));
    bug.env.push(("PYTHONDONTWRITEBYTECODE".into(), "1".into()));
    let file = "test_order.py";
    // Seeds 1 to 4 put `close` before `open`, 5 does not.
    let told = bug.json(&["flake", "--seed-env", "SEED", "--", "pytest", "-q", file]);
    assert_eq!((&told["passed"], &told["failed"]), (&json!(1), &json!(4)), "{told}");
    assert_eq!((&told["pass"]["seed"], &told["fail"]["seed"]), (&json!("SEED=5"), &json!("SEED=4")));
    let value = &told["diff"]["first_value_diff"];
    assert_eq!((&value["a"]["kind"], &value["a"]["function"]), (&json!("return"), &json!("test_order.seed")), "{told}");
    assert_eq!((&value["values"][0]["a"], &value["values"][0]["b"]), (&json!("5"), &json!("4")));
    // Without the seed itself: where the order is made of it.
    let (pass, fail) = (told["pass"]["record"].as_str().unwrap(), told["fail"]["record"].as_str().unwrap());
    let text = bug.ok(&["diff", pass, fail, "--ignore", "seed", "--ignore", "seed()"]);
    has(
        &text,
        &[
            "last equal: call 1 of test_order.shuffled (test_order.py:",
            "first different value: return 1 of test_order.shuffled (test_order.py:",
            "): ['open', 'write', 'close'] and ['close', 'write', 'open']\n",
            "A exited: code 0, B exited: code 1",
        ],
    );
}

#[test]
fn a_flaky_cargo_test_is_explained() {
    let mut bug = project("flaky-cargo");
    bug.env.push(("CARGO_TARGET_DIR".into(), cargo_target().to_str().unwrap().into()));
    // Seed 1 overdraws, 2 does not.
    let run = bug.run(&["--json", "flake", "--seed-env", "SEED", "--", "cargo", "test", "never_overdrawn"]);
    assert_eq!(run.code, 0, "{run}");
    let told = &run.json()["result"];
    assert_eq!((&told["pass"]["seed"], &told["fail"]["seed"]), (&json!("SEED=2"), &json!("SEED=1")), "{told}");
    // Read from the environment in the test's own thread.
    let value = &told["diff"]["first_value_diff"];
    let moment = json!({ "kind": "call", "place": "src/lib.rs:27", "function": "flaky::tests::seed::{{closure}}",
        "number": 1, "thread": "tests::never_ov", "seq": value["a"]["seq"], "hit": value["a"]["hit"] });
    assert_eq!(value["a"], moment, "{told}");
    assert_eq!(value["values"], json!([{ "name": "text", "a": "\"2\"", "b": "\"1\"" }]));
    let (pass, fail) = (told["pass"]["record"].as_str().unwrap(), told["fail"]["record"].as_str().unwrap());
    let text = bug.ok(&[
        "diff", pass, fail, "--ignore", "seed", "--ignore", "state", "--ignore", "*seed*()", "--ignore", "next()",
    ]);
    has(
        &text,
        &[
            "first different value: call 1 of ",
            "withdraw (src/lib.rs:18) in thread tests::never_ov: amount = 2 and 5\n",
        ],
    );
}

#[test]
fn a_flaky_program_is_explained() {
    for side in [&LLDB_19, &GDB] {
        let bug = native(side);
        let flaky = program("c/flaky.c");
        let text = bug.ok(&["flake", "--seed-env", "SEED", "--", &flaky]);
        let at = "tests/fixtures/c/flaky.c";
        has(
            &text,
            &[
                "2 runs: 1 passed, 1 failed, in ",
                " (SEED=1), exited: code 0\nB failed: 20",
                " (SEED=2), exited: code 1\nlast equal: call 1 of seed (",
                &format!(
                    "first different value: return 1 of seed ({at}:9): 1 and 2\nA exited: code 0, B exited: code 1\n"
                ),
                &format!("next: the failure: bugeye run --env SEED=2 -- {flaky}"),
            ],
        );
        // Its places, and whatever the time and its number make of it.
        let seen = format!("{}: left", self::at("c/flaky.c", "end"));
        let text = flaked(&bug, &["flake", "--at", &seen, "--", &flaky]);
        has(
            &text,
            &["A passed: 20", "B failed: 20", "first different value: hit 1 of tests/fixtures/c/flaky.c:30: left = "],
        );
        lacks(&text, &["no difference"]);
    }
}

/// The order of a set, which changes with the seed of Python's hashes, is seen by what is done in that order.
#[test]
fn an_order_that_hashes_make_is_explained() {
    let bug = Bug::new("python");
    let code = "def use(name, first):\n    return not (first and name == 'c')\n\nused = [use(name, n == 0) for n, name in enumerate({'a', 'b', 'c'})]\nraise SystemExit(not all(used))\n";
    let file = bug.write("hashes.py", code);
    let told = bug.json(&["flake", "--seed-env", "PYTHONHASHSEED", "--", "python3", &file]);
    let value = &told["diff"]["first_value_diff"];
    assert_eq!((&value["a"]["kind"], &value["a"]["number"]), (&json!("call"), &json!(1)), "{told}");
    assert_eq!((&value["values"][0]["name"], &value["values"][0]["b"]), (&json!("name"), &json!("'c'")));
    assert!(told["fail"]["seed"].as_str().unwrap().starts_with("PYTHONHASHSEED="));
}

#[test]
fn a_command_that_is_not_flaky_is_said_to_be_so() {
    let bug = Bug::new("python");
    let always = bug.write("always.py", "def f():\n    return 1\n\nf()\n");
    let run = bug.run(&["flake", "--runs", "5", "--", "python3", &always]);
    assert_eq!((run.code, run.stderr.as_str()), (0, "run 5: 5 passed, 0 failed\n"), "{run}");
    has(
        &run.stdout,
        &["5 runs: 5 passed, 0 failed, in ", "the last passed: 20", "next: more runs: bugeye flake --runs 50 -- "],
    );
    let never = bug.write("never.py", "def f():\n    return 1\n\nf()\nraise SystemExit(2)\n");
    let text = bug.ok(&[
        "flake",
        "--timeout",
        "0.001",
        "--",
        "python3",
        &bug.write("slow.py", "def f():\n    import time\n    time.sleep(60)\n\nf()\n"),
    ]);
    has(&text, &["0 runs: ", "note: 0.001 s were over\nnext: more time: bugeye flake --timeout 1h -- "]);
    lacks(&text, &["more runs"]);
    let text = bug.ok(&["flake", "--runs", "2", "--", "python3", &never]);
    has(
        &text,
        &["2 runs: 0 passed, 2 failed", "exited: code 2", "next: it fails every time, so look at one: bugeye run -- "],
    );
    bug.run(&["flake", "--stdin", "-", "--", "python3", &never]).fails(2, "--stdin must be a file here");
    let run = bug.run(&["flake", "--", "true"]);
    run.fails(3, "nothing is known of this program's own functions");
    has(&run.stderr, &["bugeye flake --at 'FILE:LINE: EXPR' -- COMMAND"]);
}

/// What does not end has failed; a call limit does not end a run, and is said.
#[test]
fn a_run_without_end_has_failed_and_a_long_one_is_recorded_in_part() {
    let bug = Bug::new("python");
    let code = "import os, time\n\ndef f(n):\n    return n\n\nfor n in range(30):\n    f(n)\nif os.environ['SEED'] == '2':\n    time.sleep(100)\n";
    let file = bug.write("hangs.py", code);
    let words = ["flake", "--seed-env", "SEED", "--max-calls", "5", "--run-timeout", "12", "--", "python3", &file];
    let text = bug.ok(&words);
    has(
        &text,
        &[
            "2 runs: 1 passed, 1 failed",
            "(SEED=2), it did not end in time",
            "no step differs: 10 steps each",
            "note: only the first 5 calls of a run are recorded",
            "next: what was recorded is the same; see more: bugeye flake --at",
        ],
    );
}

/// A run that is over before anything is seen is still a pass or a failure.
#[test]
fn a_run_of_which_nothing_is_recorded_is_told() {
    let bug = Bug::new("python");
    let code = "import os, sys\nif os.environ['SEED'] == '1':\n    sys.exit(4)\n\ndef f():\n    return 1\n\nf()\n";
    let file = bug.write("early.py", code);
    let text = bug.ok(&["flake", "--seed-env", "SEED", "--", "python3", &file]);
    has(&text, &["2 runs: 1 passed, 1 failed", "(SEED=1), exited: code 4\nnote: 20", " has no stops and no hits"]);
}

/// What others installed is not the program's own, wherever it is.
#[test]
fn calls_of_installed_packages_are_not_the_program_s_own() {
    let mut bug = Bug::new("python");
    let packages = bug.home().join("lib/site-packages");
    fs::create_dir_all(&packages).unwrap();
    fs::write(packages.join("theirs.py"), "def theirs():\n    return 1\n").unwrap();
    bug.env.push(("PYTHONPATH".into(), packages.to_str().unwrap().into()));
    let file = bug.write("mine.py", "import theirs\n\ndef mine():\n    return theirs.theirs()\n\nmine()\n");
    let told = bug.json(&["trace", "--calls", "*", "--", "python3", &file]);
    let calls: Vec<&str> =
        told["calls"].as_array().unwrap().iter().map(|call| call["function"].as_str().unwrap()).collect();
    assert_eq!(calls, ["__main__.mine"]);
}
