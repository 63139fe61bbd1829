//! The record's own promises: a folder for each session, nothing acknowledged is lost however the daemon ends, no secret in
//! any file, a full disk that is said and survived, and what goes and what stays.
//!
//! `BUGEYE_RECORD_KILLS` is the number of kills (50); `scripts/torture record N` sets it and shows the figures.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bugeye::store::Recorder;
use bugeye::store::read::Head;
use rustix::process::Signal;
use serde_json::{Value, json};
use support::fixtures::{at, folder, program};
use support::{Bug, has, lacks, signal, until};

/// A home whose C programs are debugged by an adapter that stops as often as it is let go, and prints a lot before.
fn storm() -> Bug {
    let mut bug = Bug::new("python");
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/adapter.py");
    fs::create_dir_all(bug.home().join("config")).unwrap();
    bug.write("config/config.toml", &format!("[adapters.lldb-dap]\npath = \"{}\"\n", adapter.display()));
    let script = json!({ "stops": 1_000_000, "faults": [{ "at": "continue", "nth": 0, "do": "flood", "count": 30 }] });
    let script = bug.write("script.json", &script.to_string());
    bug.env.push(("FAKE_SCRIPT".into(), script));
    bug
}

fn records(bug: &Bug) -> PathBuf {
    bug.home().join("state/sessions")
}

/// The whole lines of a record, and the bytes after the last of them.
fn lines(record: &Path) -> (Vec<Value>, String) {
    let text = fs::read_to_string(record.join("events.jsonl")).unwrap();
    let (whole, torn) = text.rsplit_once('\n').unwrap_or(("", &text));
    let events = whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
    (events.collect(), torn.to_string())
}

/// What a client was told.
#[derive(Debug, PartialEq)]
enum Told {
    Stop(u64),
    Value(String),
}

/// Continues a session and asks for values for as long as there is an answer; answers what it was told.
fn press(socket: &Path, session: &str, cwd: &Path, count: &AtomicUsize) -> Vec<Told> {
    let mut told = Vec::new();
    let Ok(mut stream) = UnixStream::connect(socket) else { return told };
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    for id in 1u64.. {
        let unique = format!("{id} + 1");
        let (cmd, args) =
            if id.is_multiple_of(2) { ("continue", json!({})) } else { ("eval", json!({ "words": [unique] })) };
        let ctx = json!({ "cwd": cwd, "session": session, "who": format!("cli:{session}") });
        let request = json!({ "v": 1, "id": id, "cmd": cmd, "args": args, "ctx": ctx });
        if stream.write_all(format!("{request}\n").as_bytes()).is_err() {
            break;
        }
        // The last line may be torn: then nothing was acknowledged.
        let Some(Ok(line)) = lines.next() else { break };
        let Ok(answer) = serde_json::from_str::<Value>(&line) else { break };
        let answer = &answer["final"];
        assert_eq!(answer["ok"], true, "{line}");
        told.push(match answer["result"]["stop"]["number"].as_u64() {
            Some(number) => Told::Stop(number),
            None => Told::Value(unique),
        });
        count.fetch_add(1, Ordering::Relaxed);
    }
    told
}

/// Nothing that a client was told is missing from the record, and its numbers have no gap.
fn complete(events: &[Value], told: &[Told], what: &str) {
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index + 1, "{what}");
    }
    let answered = events.iter().filter(|event| event["type"] == "command.result" && event["data"]["ok"] == true);
    // One more for `run`.
    assert!(answered.count() > told.len(), "{what}: an answer of {} is not recorded", told.len());
    for told in told {
        let is_it = |event: &&Value| match told {
            Told::Stop(number) => event["type"] == "stopped" && event["data"]["number"] == *number,
            Told::Value(unique) => event["type"] == "eval" && event["data"]["expression"] == unique.as_str(),
        };
        assert!(events.iter().any(|event| is_it(&event)), "{what}: {told:?} was acknowledged and is lost");
    }
}

#[derive(Default)]
struct Figures {
    kills: usize,
    told: usize,
    events: usize,
    torn: usize,
}

/// One kill of a daemon that writes two records at once.
fn kill(bug: &Bug, round: usize, figures: &mut Figures) {
    let mut ids = Vec::new();
    for name in ["a", "b"] {
        // The real adapter of a real program every fifth time.
        let name = format!("{name}{round}");
        let mut words = vec!["--json", "run", "--name", &name];
        let (place, fake) = (at("python/storm.py", "mark"), program("c/exit_code.c"));
        if round.is_multiple_of(5) && name.starts_with('b') {
            words.extend(["--break", &place, "--", "python3", "storm.py"]);
        } else {
            words.extend(["--break", "main", &fake]);
        }
        let run = bug.run(&words);
        assert_eq!(run.code, 0, "{run}");
        ids.push(name);
    }
    let listed = bug.json(&["sessions"]);
    let record = |name: &str| {
        let found = listed["sessions"].as_array().unwrap().iter().find(|one| one["name"] == name);
        records(bug).join(found.unwrap_or_else(|| panic!("no {name} in {listed}"))["recording"].as_str().unwrap())
    };
    let folders: Vec<PathBuf> = ids.iter().map(|name| record(name)).collect();
    assert_ne!(folders[0], folders[1]);
    let daemon = i32::try_from(bug.json(&["daemon", "status"])["pid"].as_u64().unwrap()).unwrap();
    let socket = bug.home().join("runtime/daemon.sock");
    let count = Arc::new(AtomicUsize::new(0));
    let pressing: Vec<_> = ids
        .iter()
        .map(|name| {
            let (socket, name, cwd, count) = (socket.clone(), name.clone(), bug.cwd.clone(), Arc::clone(&count));
            std::thread::spawn(move || press(&socket, &name, &cwd, &count))
        })
        .collect();
    let deadline = Instant::now() + Duration::from_secs(30);
    while count.load(Ordering::Relaxed) < 5 + round % 17 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_micros(100));
    }
    // Not a wait for anything: the moment of the kill, another one each round.
    std::thread::sleep(Duration::from_micros((round as u64 * 7919) % 3000));
    signal(daemon, Signal::KILL);
    let told: Vec<Vec<Told>> = pressing.into_iter().map(|one| one.join().unwrap()).collect();
    let mut before = Vec::new();
    for (folder, told) in folders.iter().zip(&told) {
        let what = format!("round {round}, {}", folder.display());
        let head = Head::load(folder).unwrap();
        until("the daemon's lock is free", || if head.is_written() { Err(what.clone()) } else { Ok(()) });
        let (events, torn) = lines(folder);
        complete(&events, told, &what);
        figures.told += told.len();
        figures.events += events.len();
        before.push((events, torn));
    }
    // What a loss of power leaves, which a kill hardly ever does: half a line.
    if round.is_multiple_of(3) && before[0].1.is_empty() {
        let mut file = fs::File::options().append(true).open(folders[0].join("events.jsonl")).unwrap();
        before[0].1 = format!("{{\"v\":1,\"seq\":{}", before[0].0.len() + 1);
        file.write_all(before[0].1.as_bytes()).unwrap();
    }
    figures.torn += before.iter().filter(|(_, torn)| !torn.is_empty()).count();
    figures.kills += 1;
    // The next daemon ends them, once, and every record opens.
    let listed = bug.json(&["sessions", "--all"]);
    for (folder, (events, torn)) in folders.iter().zip(&before) {
        let id = folder.file_name().unwrap().to_str().unwrap();
        let entry = listed["recordings"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
        assert_eq!((&entry["state"], &entry["ending"]["kind"]), (&json!("crashed"), &json!("lost")), "{entry}");
        let (after, rest) = lines(folder);
        assert_eq!((after.len(), rest.as_str()), (events.len() + 2, ""));
        assert_eq!(after[..events.len()], events[..]);
        let [log, end] = &after[events.len()..] else { unreachable!() };
        assert_eq!((&log["type"], &log["data"]["recovered"]), (&json!("log"), &json!(true)));
        assert_eq!(log["data"]["dropped_bytes"], torn.len());
        assert_eq!((&end["type"], &end["data"]["crashed"]), (&json!("session.end"), &json!(true)));
        assert_eq!(end["seq"], after.len());
    }
    if round.is_multiple_of(10) {
        let shown = bug.ok(&["events", "-s", &ids[0]]);
        assert_eq!(shown.lines().count(), before[0].0.len() + 2);
    }
}

#[test]
fn a_killed_daemon_loses_nothing_that_was_acknowledged() {
    let kills = std::env::var("BUGEYE_RECORD_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
    let began = Instant::now();
    let bug = storm();
    let mut figures = Figures::default();
    for round in 0..kills {
        kill(&bug, round, &mut figures);
    }
    let Figures { kills, told, events, torn } = figures;
    assert!(told > kills * 4, "only {told} answers in {kills} kills: nothing was under way");
    eprintln!(
        "record: {kills} kills of a daemon with two sessions, {told} answers acknowledged, 0 of them lost; \
         {events} events read, {torn} torn lines taken away; {:.0} s",
        began.elapsed().as_secs_f64()
    );
}

/// Files below a folder that hold these bytes.
fn holding(folder: &Path, secret: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(holding(&path, secret));
        } else if kind.is_file() && String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(secret) {
            found.push(path);
        }
    }
    found
}

#[test]
fn secrets_are_told_and_not_written_down() {
    let bug = Bug::new("python");
    let secret = "hunter2-and-more";
    let key = "sk-0123456789abcdef0123456789abcdef";
    let reversed: String = secret.chars().rev().collect();
    let place = at("python/secrets.py", "signed");
    let words = ["run", "--break", &place, "--", "python3", "secrets.py", "--password", secret];
    let stop = bug.ok(&words);
    has(&stop, &[secret, &reversed, key]);
    has(&bug.ok(&["print", "password"]), &[secret]);
    has(&bug.ok(&["print", "{'token': password}"]), &[secret]);
    bug.ok(&["continue"]);
    has(&bug.ok(&["output", "--all"]), &[secret, key]);
    let state = bug.home().join("state/sessions");
    let traced = format!("{place}: user, password");
    let told = bug.run(&["trace", "--at", &traced, "--", "python3", "secrets.py", "--password", secret]);
    has(&told.stdout, &[secret, "bob"]);
    bug.json(&["sessions", "--all"]);
    for secret in [secret, &reversed, key] {
        assert_eq!(holding(&state, secret), Vec::<PathBuf>::new(), "{secret}");
    }
    let shown = bug.ok(&["events", "-s", "s1"]);
    has(&shown, &["password=<redacted>", "user='bob'", "api_key=<redacted>", "and <redacted>"]);
    let hits: Vec<PathBuf> = holding(&state, "<redacted>");
    assert!(hits.iter().any(|path| path.file_name().is_some_and(|name| name == "hits.jsonl")), "{hits:?}");
    assert!(fs::read_dir(bug.home().join("runtime/spool")).map_or(0, Iterator::count) == 0);
    // Whoever wants them can have them.
    fs::create_dir_all(bug.home().join("config")).unwrap();
    bug.write("config/config.toml", "[record]\nredact = false\n");
    bug.ok(&words);
    bug.ok(&["stop"]);
    assert!(!holding(&state, secret).is_empty());
}

/// A file system of one megabyte, for as long as this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn new(folder: &Path) -> Result<Self, String> {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m,mode=700", "none"]).arg(folder).output();
        let done = mount.map_err(|error| error.to_string())?;
        if done.status.success() { Ok(Self(folder.into())) } else { Err(String::from_utf8_lossy(&done.stderr).into()) }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// A home whose state directory is there.
fn with_state() -> (Bug, PathBuf) {
    let bug = Bug::new("python");
    let state = bug.home().join("state");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    (bug, state)
}

/// Debugs a program that prints more than there is room for; answers its record.
fn fill(bug: &Bug, state: &Path) -> PathBuf {
    let text = "import sys\nfor i in range(3):\n    sys.stdout.write('y' * 400_000 + '\\n')\n    sys.stdout.flush()\n    last = i\n";
    let script = bug.home().join("talks.py");
    fs::write(&script, text).unwrap();
    let (script, place) = (script.display().to_string(), format!("{}:5", script.display()));
    let mut said = bug.ok(&["run", "--break", &place, "--", "python3", &script]);
    for i in 0..3 {
        assert_eq!(bug.ok(&["print", "i"]), format!("i = {i}\n"));
        if i < 2 {
            said.push_str(&bug.ok(&["continue"]));
        }
    }
    assert_eq!(said.matches("note: not everything is recorded: ").count(), 1, "{said}");
    let status = bug.json(&["status"]);
    has(status["recording_trouble"].as_str().unwrap(), &["not everything is recorded"]);
    let record = state.join("sessions").join(status["recording"].as_str().unwrap());
    let log = fs::read_to_string(state.join("daemon.log")).unwrap();
    assert_eq!(log.matches("is not complete").count(), 1, "{log}");
    let (events, torn) = lines(&record);
    assert_eq!(torn, "", "half a line is taken back");
    assert!(events.iter().all(|event| event["type"] != "session.end"));
    record
}

/// Ends everything; the recording is told to be incomplete.
fn incomplete(bug: &Bug, record: &Path) {
    bug.ok(&["stop", "--all"]);
    let listed = bug.json(&["sessions", "--all"]);
    let id = record.file_name().unwrap().to_str().unwrap();
    let entry = listed["recordings"].as_array().unwrap().iter().find(|one| one["id"] == id).unwrap();
    assert_eq!(entry["truncated"], true, "{entry}");
    bug.close();
}

#[test]
fn a_full_disk_is_said_once_and_debugging_goes_on() {
    let (bug, state) = with_state();
    let mounted = match Mounted::new(&state) {
        Ok(mounted) => mounted,
        Err(why) => {
            eprintln!("no small file system here, only the limit of the next test: {why}");
            return;
        }
    };
    let filler = state.join("filler");
    fs::write(&filler, vec![0; 900_000]).unwrap();
    let record = fill(&bug, &state);
    fs::remove_file(&filler).unwrap();
    bug.ok(&["continue"]);
    let (events, _) = lines(&record);
    let lost = events.iter().find(|event| event["data"]["truncated"] == true).expect("an event about what is lost");
    has(lost["data"]["message"].as_str().unwrap(), &["could not be recorded", "No space left"]);
    let from = lost["data"]["from"].as_u64().unwrap();
    assert_eq!(lost["seq"].as_u64().unwrap() - from + 1, lost["data"]["lost"].as_u64().unwrap());
    assert!(events.iter().any(|event| event["type"] == "session.end"), "it goes on");
    let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted());
    incomplete(&bug, &record);
    drop(mounted);
}

#[test]
fn so_is_a_file_that_may_not_grow() {
    let (bug, state) = with_state();
    // `ulimit -f` counts in blocks of 512 bytes or more; the signal that comes with it is not wanted.
    let script = "trap '' XFSZ; ulimit -f 128; exec \"$@\"";
    let command = bug.command(&["daemon", "run"]);
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).arg(command.get_program()).args(command.get_args());
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(&bug.cwd);
    let mut daemon = shell.stdin(std::process::Stdio::null()).spawn().unwrap();
    until("the daemon is up", || {
        let run = bug.run(&["daemon", "status"]);
        if run.stdout.contains("running") { Ok(()) } else { Err(run.to_string()) }
    });
    let record = fill(&bug, &state);
    let limit = fs::metadata(record.join("events.jsonl")).unwrap().len();
    assert!(limit <= 128 * 1024, "{limit} bytes: there was no limit");
    incomplete(&bug, &record);
    assert!(daemon.wait().unwrap().success());
}

/// A stop as a program of some size makes it: 12 frames, 40 locals.
fn stop() -> Value {
    let frame = |index: u32| json!({ "index": index, "function": format!("module.function_{index}"), "file": "/home/user/project/src/module/file.py", "line": 100 + index });
    let local = |index: u32| json!({ "name": format!("variable_{index}"), "text": format!("'the value of number {index}'"), "type": "str" });
    json!({
        "number": 1,
        "reason": { "breakpoint": { "ids": [1], "hit": 7 } },
        "thread": { "id": 1, "name": "MainThread" },
        "frame": 0,
        "frames": (0..12).map(frame).collect::<Vec<_>>(),
        "locals": (0..40).map(local).collect::<Vec<_>>(),
    })
}

#[test]
fn recording_costs_a_command_little() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(folder.path()).unwrap();
    let journal = recorder.create(&json!({ "words": ["./a"] }), false).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (mut appended, mut waited) = (Vec::new(), Vec::new());
    for _ in 0..2000 {
        let data = stop();
        let began = Instant::now();
        let seq = journal.append("stopped", Some(1), data);
        appended.push(began.elapsed());
        runtime.block_on(journal.written(seq));
        waited.push(began.elapsed());
        // Commands come one by one.
        std::thread::sleep(Duration::from_micros(200));
    }
    appended.sort();
    waited.sort();
    let text = "plain text of a program, with a name=value and a time: 12:30, again and again\n".repeat(20_000);
    let began = Instant::now();
    assert!(matches!(bugeye::store::redact::text(&text), std::borrow::Cow::Borrowed(_)));
    let speed = text.len() as f64 / began.elapsed().as_secs_f64() / 1e6;
    let micros = |times: &[Duration], percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e6;
    eprintln!(
        "record: a stop of {} bytes costs the daemon's thread {:.1} µs (median), {:.1} µs (99 of 100); it is written \
         {:.0} µs (median), {:.0} µs (99 of 100) later, while the reply is made; secrets are looked for at {speed:.0} MB/s",
        stop().to_string().len(),
        micros(&appended, 50),
        micros(&appended, 99),
        micros(&waited, 50),
        micros(&waited, 99),
    );
    // Of a build that is not optimised, on a machine that may be busy.
    assert!(micros(&appended, 50) < 500.0 && micros(&waited, 50) < 20_000.0);
}

#[test]
fn recordings_are_listed_kept_and_removed() {
    let bug = Bug::new("python");
    let script = folder("python").join("exit.py").display().to_string();
    for name in ["one", "two", "three"] {
        bug.ok(&["run", "--name", name, "--", "python3", &script]);
    }
    let ids: Vec<String> = bug.json(&["sessions", "--all"])["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["recording"].as_str().unwrap().to_string())
        .collect();
    assert_eq!(ids.len(), 3);
    let current = fs::read_link(records(&bug).join("current")).unwrap();
    assert_eq!(current.to_str(), Some(ids[0].as_str()), "newest first");
    for file in ["index.json", &format!("{}/events.jsonl", ids[0]), &format!("{}/lock", ids[0])] {
        until(file, || {
            let found = fs::metadata(records(&bug).join(file)).map_err(|error| error.to_string())?;
            assert_eq!(found.permissions().mode() & 0o777, 0o600);
            Ok(())
        });
    }
    bug.run(&["prune", "one"]).fails(3, "the daemon still has");
    let spared = "nothing to remove; 3 recordings left, ";
    has(&bug.ok(&["prune", "--older-than", "0s"]), &[spared, "3 of them kept, or of sessions that the daemon has"]);
    // Another daemon has none of them live.
    bug.ok(&["daemon", "stop"]);
    fs::remove_file(records(&bug).join("index.json")).unwrap();
    let listed = bug.ok(&["sessions", "--all"]);
    let expected: Vec<String> =
        ["three", "two", "one"].iter().map(|name| format!("\"{name}\": exited: code ")).collect();
    assert_eq!(listed.lines().count(), 3, "{listed}");
    for (line, expected) in listed.lines().zip(&expected) {
        has(line, &[expected, "started 20", "exit.py", " KiB", "[via debugpy]"]);
    }
    let short = bug.ok(&["sessions", "--all", "--limit", "1"]);
    has(&short, &["\"three\"", "2 older recordings; all: bugeye sessions --all --limit 0"]);
    lacks(&short, &["\"two\""]);
    until("the list is written anew", || {
        let text = fs::read_to_string(records(&bug).join("index.json")).map_err(|error| error.to_string())?;
        if ids.iter().all(|id| text.contains(id)) { Ok(()) } else { Err(text) }
    });
    // By its name, by the word of its id, or counted back, as everywhere.
    let word = ids[1].rsplit('-').next().unwrap();
    for name in ["two", word, "last~1", &ids[1]] {
        if name == word && ids.iter().filter(|id| id.ends_with(word)).count() > 1 {
            continue;
        }
        assert_eq!(bug.ok(&["keep", name]), format!("{} is kept\n", ids[1]));
        has(&bug.ok(&["events", "-s", name, "-f", "session.start"]), &["two session.start"]);
    }
    has(&bug.ok(&["sessions", "--all"]), &[", kept [via"]);
    has(&bug.ok(&["prune"]), &["nothing to remove; 3 recordings left"]);
    has(&bug.ok(&["prune", "--older-than", "0d", "--dry-run"]), &["2 recordings would be removed", "1 recording left"]);
    assert!(records(&bug).join(&ids[0]).exists());
    bug.run(&["prune", "two"]).fails(3, "is kept");
    has(&bug.ok(&["-s", "three", "prune"]), &["1 recording removed", "2 recordings left"]);
    let current = fs::read_link(records(&bug).join("current")).unwrap();
    assert_eq!(current.to_str(), Some(ids[1].as_str()), "it never leads nowhere");
    let pruned = bug.json(&["prune", "--keep-size", "1"]);
    assert_eq!(pruned["removed"].as_array().unwrap().len(), 1, "{pruned}");
    assert_eq!((&pruned["removed"][0]["id"], &pruned["left"]), (&json!(ids[2]), &json!(1)));
    assert!(pruned["freed"].as_u64().unwrap() > 500, "{pruned}");
    bug.ok(&["keep", "--off", "two"]);
    has(&bug.ok(&["prune", "--older-than", "0s"]), &["1 recording removed", "0 recordings left, 0 B"]);
    bug.run(&["prune", "two"]).fails(3, "no record `two`");
    bug.run(&["prune", "--older-than", "x"]).fails(2, "does not begin with a number");
}

#[test]
fn the_daemon_removes_what_is_beyond_the_limits_when_it_starts() {
    let bug = Bug::new("python");
    let script = folder("python").join("exit.py").display().to_string();
    for name in ["old", "new"] {
        bug.ok(&["run", "--name", name, "--", "python3", &script]);
    }
    bug.ok(&["daemon", "stop"]);
    let old = Command::new("sh").arg("-c").arg("ls -d state/sessions/2*").current_dir(bug.home()).output().unwrap();
    let old = bug.home().join(String::from_utf8(old.stdout).unwrap().lines().next().unwrap());
    let month = std::time::SystemTime::now() - Duration::from_secs(31 * 86_400);
    for name in ["events.jsonl", "session.json"] {
        fs::File::options().write(true).open(old.join(name)).unwrap().set_modified(month).unwrap();
    }
    bug.ok(&["daemon", "start"]);
    until("it is removed", || if old.exists() { Err(old.display().to_string()) } else { Ok(()) });
    until("it is said", || {
        let log = fs::read_to_string(bug.path("state/daemon.log")).unwrap();
        if log.contains("recordings removed that were beyond the limits: 1, ") { Ok(()) } else { Err(log) }
    });
    let left = bug.json(&["sessions", "--all"]);
    assert_eq!(left["recordings"][0]["name"], "new", "{left}");
}
