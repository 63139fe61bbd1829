//! Each process of a session is killed while a tool is held, or runs: the agent goes on where it may, nothing is left, and
//! every record opens.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use bugeye::platform::Table;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Bug, has, signal, until};
use crate::{agent, bash, bug, read, script, words};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Daemon,
    Translator,
    Supervisor,
    Agent,
    Detach,
    Stop,
}

/// The processes of a session.
struct Session {
    daemon: i32,
    supervisor: i32,
    translator: i32,
    agent: i32,
    record: String,
}

const CASES: [End; 6] = [End::Daemon, End::Translator, End::Detach, End::Stop, End::Supervisor, End::Agent];

fn only_child(pid: i32) -> i32 {
    let table = Table::read();
    let mut found: Vec<u32> = table.iter().filter(|one| one.parent == pid.unsigned_abs()).map(|one| one.pid).collect();
    assert_eq!(found.len(), 1, "children of {pid}");
    i32::try_from(found.remove(0)).unwrap()
}

/// Runs an agent to where its first tool is held; or, with `runs`, to where that tool waits for the file `go`.
fn held(bug: &Bug, transport: &str, runs: bool, flags: &[&str]) -> Session {
    for file in ["first", "last", "go", "requests"] {
        let _ = fs::remove_file(bug.cwd.join(file));
    }
    let first = if runs { bash("echo > first; while [ ! -e go ]; do sleep 0.01; done") } else { bash("echo > first") };
    let script = script("p", &[("t", &[first]), ("u", &[bash("echo > last")])]);
    let mut agent = agent(&script).to_vec();
    agent.extend(["--transport", transport, "--requests", "requests"].map(String::from));
    let mut start = vec!["run"];
    start.extend(flags);
    if runs {
        start.extend(["--wait", "0"]);
    } else {
        start.extend(["--break", "tool:bash"]);
    }
    let reply = bug.json(&words(&start, &agent));
    if runs {
        until("the tool runs", || read(bug, "first").map(|_| ()).ok_or_else(|| "not yet".into()));
    } else {
        assert_eq!(reply["state"], "stopped", "{reply}");
    }
    let status = bug.json(&["status"]);
    let pid = |value: &Value| i32::try_from(value.as_i64().unwrap()).unwrap();
    let daemon = pid(&bug.json(&["daemon", "status"])["pid"]);
    let supervisor = only_child(daemon);
    let translator = only_child(supervisor);
    let session = Session {
        daemon,
        supervisor,
        translator,
        agent: pid(&status["pid"]),
        record: status["recording"].as_str().unwrap().into(),
    };
    assert_eq!(only_child(translator), session.agent);
    session
}

fn pids(bug: &Bug) -> BTreeSet<i32> {
    bug.processes().into_iter().map(|(pid, _)| pid).collect()
}

/// Waits until none but these is left.
#[track_caller]
fn only(bug: &Bug, kept: &[i32], what: &str) {
    until(&format!("{what}: nothing is left"), || {
        let left: Vec<_> = bug.processes().into_iter().filter(|(pid, _)| !kept.contains(pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
}

/// How a record ended, and that it can be read from its first event to its last.
#[track_caller]
fn ending(bug: &Bug, record: &str, what: &str) -> Value {
    // The one that looks after it may not have noticed yet.
    until(&format!("{what}: its record ends"), || {
        let text = bug.run(&["events", "-s", record, "--json", "-f", "session.end"]);
        if text.stdout.is_empty() { Err(text.to_string()) } else { Ok(()) }
    });
    let text = bug.run(&["events", "-s", record, "--json"]);
    assert_eq!(text.code, 0, "{what}: {text}");
    let events: Vec<Value> = text.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{what}");
    let mut ends: Vec<&Value> = events.iter().filter(|event| event["type"] == "session.end").collect();
    assert_eq!(ends.len(), 1, "{what}: {ends:?}");
    ends.remove(0)["data"].clone()
}

/// One death, and all that must be so after it; answers how long the agent's next tool took to run.
fn die(bug: &Bug, end: End, transport: &str, runs: bool) -> Option<Duration> {
    let what = format!("{end:?} by {transport}, the tool {}", if runs { "runs" } else { "is held" });
    let session = held(bug, transport, runs, &[]);
    let began = Instant::now();
    match end {
        End::Daemon => signal(session.daemon, Signal::KILL),
        End::Translator => signal(session.translator, Signal::KILL),
        End::Supervisor => signal(session.supervisor, Signal::KILL),
        End::Agent => signal(session.agent, Signal::KILL),
        End::Detach => {
            has(&bug.ok(&["detach"]), &["let go"]);
            assert!(began.elapsed() < Duration::from_millis(1500), "{what}: {:?}", began.elapsed());
        }
        End::Stop => has(&bug.ok(&["stop"]), &["ended"]),
    }
    let goes_on = matches!(end, End::Daemon | End::Translator | End::Detach);
    let kept: Vec<i32> = if end == End::Daemon { Vec::new() } else { vec![session.daemon] };
    let mut took = None;
    if goes_on {
        fs::write(bug.cwd.join("go"), "").unwrap();
        until(&format!("{what}: the agent goes on"), || read(bug, "last").map(|_| ()).ok_or_else(|| "no last".into()));
        assert!(read(bug, "first").is_some(), "{what}");
        took = Some(began.elapsed());
    }
    only(bug, &kept, &what);
    // Between a supervisor's death and the daemon's look an agent that nobody holds may get far.
    if matches!(end, End::Agent | End::Stop) {
        assert!(read(bug, "last").is_none(), "{what}: it did not go on");
    }
    if end == End::Stop && !runs {
        assert!(read(bug, "first").is_none(), "{what}: what was held did not happen");
    }
    if end == End::Daemon {
        bug.ok(&["daemon", "start"]);
    }
    let ended = ending(bug, &session.record, &what);
    let kind = &ended["ending"]["kind"];
    match end {
        End::Daemon => assert_eq!((kind, &ended["crashed"]), (&json!("lost"), &json!(true)), "{what}: {ended}"),
        End::Translator | End::Supervisor => assert_eq!(kind, "lost", "{what}: {ended}"),
        End::Detach => assert_eq!(kind, "detached", "{what}: {ended}"),
        End::Stop => assert_eq!(kind, "stopped", "{what}: {ended}"),
        End::Agent => assert_eq!(ended["ending"]["signal"], "SIGKILL", "{what}: {ended}"),
    }
    if end == End::Translator {
        let said = bug.run(&["continue"]);
        said.fails(5, "is gone (killed by SIGKILL)");
        has(&said.stderr, &["the agent goes on without the debugger"]);
    }
    took
}

#[test]
fn whatever_dies_nothing_is_left_and_every_record_opens() {
    let count: usize = std::env::var("BUGEYE_AGENT_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
    let bug = bug();
    let mut took = Vec::new();
    for number in 0..count {
        let end = CASES[number % CASES.len()];
        let transport = if (number / CASES.len()).is_multiple_of(2) { "socket" } else { "files" };
        took.extend(die(&bug, end, transport, number / (2 * CASES.len()) % 2 == 1));
    }
    // The next daemon knows how each ended.
    let all = bug.json(&["sessions", "--all", "--limit", "100000"]);
    let recordings = all["recordings"].as_array().unwrap();
    let sessions = all["sessions"].as_array().unwrap();
    assert_eq!(recordings.len() + sessions.len(), count, "{all}");
    assert!(recordings.iter().all(|one| one["state"] != "live"), "{recordings:?}");
    bug.ok(&["daemon", "stop"]);
    bug.no_process_left();
    let runtime = fs::read_dir(bug.home().join("runtime/sessions")).unwrap().flatten();
    let folders = runtime.flat_map(|session| fs::read_dir(session.path()).unwrap().flatten());
    let engines: Vec<_> =
        folders.map(|entry| entry.file_name()).filter(|name| name.to_string_lossy().starts_with("engine")).collect();
    assert!(engines.is_empty(), "{engines:?}");
    took.sort();
    let at = |index: usize| took.get(index).map_or(0, Duration::as_millis);
    eprintln!(
        "agents: {count} deaths; the agent went on after {} ms (median), {} ms (longest)",
        at(took.len() / 2),
        at(took.len().saturating_sub(1))
    );
}

/// One that does not hear SIGTERM, and would go on as soon as nobody holds it.
#[test]
fn a_stop_lets_nothing_happen_that_was_held() {
    let bug = bug();
    for round in 0..3 {
        let agent = agent(&script("p", &[("t", &[bash("echo > first")])]));
        let line = format!("trap '' TERM; exec python3 '{}' '{}'", agent[1], agent[2]);
        let agent = ["sh".to_string(), "-c".into(), line];
        bug.ok(&words(&["run", "--break", "tool:bash"], &agent));
        let daemon = i32::try_from(bug.json(&["daemon", "status"])["pid"].as_i64().unwrap()).unwrap();
        let stop = bug.run(&["stop"]);
        assert!(stop.code == 0 && stop.took < Duration::from_secs(5), "{stop}");
        only(&bug, &[daemon], &format!("round {round}"));
        assert!(read(&bug, "first").is_none(), "round {round}: the tool ran");
    }
}

/// All that an agent started goes with it.
#[test]
fn a_stop_ends_all_that_an_agent_started() {
    let bug = bug();
    let tools =
        [bash("(setsid sleep 300 & sh -c 'sleep 301 &'); echo > first; while [ ! -e go ]; do sleep 0.01; done")];
    let agent = agent(&script("p", &[("t", &tools)]));
    bug.ok(&words(&["run", "--wait", "0"], &agent));
    until("the tool runs", || read(&bug, "first").map(|_| ()).ok_or_else(|| "not yet".into()));
    assert!(pids(&bug).len() >= 6, "{:?}", bug.processes());
    bug.ok(&["stop"]);
    let daemon = i32::try_from(bug.json(&["daemon", "status"])["pid"].as_i64().unwrap()).unwrap();
    only(&bug, &[daemon], "stop");
}

/// With `--fail-closed` nothing happens that nobody was asked about.
#[test]
fn an_agent_that_fails_closed_does_nothing_without_its_debugger() {
    for transport in ["socket", "files"] {
        for end in [End::Daemon, End::Translator] {
            let bug = bug();
            let what = format!("{end:?} by {transport}");
            let session = held(&bug, transport, false, &["--fail-closed"]);
            signal(if end == End::Daemon { session.daemon } else { session.translator }, Signal::KILL);
            let kept: Vec<i32> = if end == End::Daemon { Vec::new() } else { vec![session.daemon] };
            only(&bug, &kept, &what);
            assert!(read(&bug, "first").is_none() && read(&bug, "last").is_none(), "{what}: a tool ran");
            has(&read(&bug, "requests").unwrap(), &["the debugger is gone"]);
        }
    }
    // To be let go is an answer.
    let bug = bug();
    let session = held(&bug, "socket", false, &["--fail-closed"]);
    bug.ok(&["detach"]);
    only(&bug, &[session.daemon], "detach");
    assert!(read(&bug, "last").is_some());
}
