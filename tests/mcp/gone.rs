//! Clients that leave: politely, by force, in the middle of a call. What they started goes with them, as configured.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::pipe::{Pipe, session_of};
use crate::support::fixtures::program;
use crate::support::{Bug, has, signal, until};

/// What the end of input may take.
const ENDS: Duration = Duration::from_secs(2);

fn configured(language: &str, lines: &str) -> Bug {
    let bug = Bug::new(language);
    fs::create_dir_all(bug.home().join("config")).unwrap();
    let file = bug.home().join("config/config.toml");
    let before = fs::read_to_string(&file).unwrap_or_default();
    fs::write(file, format!("{before}[mcp]\n{lines}\n")).unwrap();
    bug
}

fn is_alive(pid: i32) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    state.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

/// Every process below the daemon: supervisors, adapters, programs and what those started.
fn owned(bug: &Bug) -> Vec<i32> {
    // Nobody has given a command yet, perhaps: then there is none.
    let Some(daemon) = bug.json(&["daemon", "status"])["pid"].as_i64() else { return Vec::new() };
    let daemon = i32::try_from(daemon).unwrap();
    let parent = |pid: i32| -> Option<i32> {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        line.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
    };
    let all: Vec<i32> = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| is_alive(*pid))
        .collect();
    let below = |pid: &i32| {
        let mut at = *pid;
        while let Some(up) = parent(at).filter(|up| *up > 1) {
            if up == daemon {
                return true;
            }
            at = up;
        }
        false
    };
    all.into_iter().filter(below).collect()
}

/// The first session of `sessions`.
fn only_session(bug: &Bug) -> Value {
    let list = bug.json(&["sessions"]);
    let sessions = list["sessions"].as_array().unwrap_or_else(|| panic!("no list: {list}"));
    assert_eq!(sessions.len(), 1, "{list}");
    sessions[0].clone()
}

/// A client in the middle of `continue`, and the pids of all that its session has.
fn in_mid_continue(bug: &Bug, command: &[&str]) -> (Pipe, Vec<i32>) {
    let mut client = Pipe::new(bug);
    let text = client.ok("debug_run", json!({ "command": command, "stop_on_entry": true }));
    assert_eq!(session_of(&text), "s1");
    client.begin_call("debug_continue", json!({ "wait": 40 }));
    until("the program runs", || {
        let session = only_session(bug);
        if session["state"] == "running" { Ok(()) } else { Err(session.to_string()) }
    });
    let session = only_session(bug);
    let program = i32::try_from(session["pid"].as_i64().unwrap_or_else(|| panic!("no pid: {session}"))).unwrap();
    let pids = owned(bug);
    assert!(pids.contains(&program), "{program} is not in {pids:?}");
    assert!(pids.len() >= 3, "supervisor, adapter and program are three: {pids:?}");
    (client, pids)
}

/// A shell on the same daemon is answered at once, whatever the client that left waited for.
fn shell_is_answered(bug: &Bug) {
    let run = bug.run(&["sessions"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.took < Duration::from_secs(2), "{:?}: {run}", run.took);
}

fn nothing_is_left(bug: &Bug, pids: &[i32]) {
    until("its processes are gone", || {
        let left: Vec<i32> = pids.iter().copied().filter(|pid| is_alive(*pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    until("its session is gone", || {
        let list = bug.json(&["sessions"]);
        if list["sessions"] == json!([]) { Ok(()) } else { Err(list.to_string()) }
    });
    assert_eq!(owned(bug), Vec::<i32>::new());
}

fn killed(language: &str, command: &[&str]) {
    let bug = configured(language, "grace_secs = 3");
    let (client, pids) = in_mid_continue(&bug, command);
    signal(client.pid(), Signal::KILL);
    let since = Instant::now();
    client.ended(since);
    shell_is_answered(&bug);
    // Whoever comes back within the grace time finds the session.
    has(&bug.ok(&["status"]), &["s1", "running"]);
    nothing_is_left(&bug, &pids);
    assert!(since.elapsed() >= Duration::from_secs(3), "before the grace time: {:?}", since.elapsed());
}

#[test]
fn a_client_of_a_c_program_is_killed_in_mid_continue() {
    killed("c", &[&program("c/hang.c")]);
}

#[test]
fn a_client_of_a_python_program_is_killed_in_mid_continue() {
    killed("python", &["python3", "hang.py"]);
}

#[test]
fn the_end_of_input_ends_it_in_mid_continue() {
    let bug = configured("c", "grace_secs = 0");
    let (client, pids) = in_mid_continue(&bug, &[&program("c/hang.c")]);
    let (took, code, complaint) = client.leave();
    assert!(took < ENDS, "{took:?}");
    assert_eq!((code, complaint.as_str()), (Some(0), ""));
    shell_is_answered(&bug);
    nothing_is_left(&bug, &pids);
}

/// The program is being built or launched: what is on its way ends too.
#[test]
fn the_end_of_input_ends_what_only_begins() {
    let bug = configured("python", "grace_secs = 0");
    let mut client = Pipe::new(&bug);
    let id = client.begin_call("debug_run", json!({ "command": ["python3", "hang.py"], "wait": 40 }));
    until("a supervisor is there", || if owned(&bug).is_empty() { Err("none".into()) } else { Ok(()) });
    let pids = owned(&bug);
    let (took, code, complaint) = client.leave();
    assert!(took < ENDS, "request {id}: {took:?}");
    assert_eq!((code, complaint.as_str()), (Some(0), ""));
    shell_is_answered(&bug);
    nothing_is_left(&bug, &pids);
}

#[test]
fn the_end_of_input_with_nothing_to_wait_for() {
    let bug = Bug::new("c");
    for before in ["", "{\"jsonrpc\":\"2.0\",\"id\":1,\"meth"] {
        let mut client = Pipe::bare(&bug, &bug.cwd);
        client.write(before.as_bytes()).unwrap();
        let (took, code, complaint) = client.leave();
        assert!(took < ENDS, "{took:?}");
        assert_eq!((code, complaint.as_str()), (Some(0), ""), "after {before:?}");
    }
    let (took, code, complaint) = Pipe::new(&bug).leave();
    assert!(took < ENDS, "{took:?}");
    assert_eq!((code, complaint.as_str()), (Some(0), ""));
}

/// Kept, the session is the shell's to go on with, and the program did not notice.
#[test]
fn what_is_to_be_kept_is_kept() {
    let bug = configured("c", "on_close = \"keep\"\ngrace_secs = 0");
    let (client, pids) = in_mid_continue(&bug, &[&program("c/hang.c")]);
    signal(client.pid(), Signal::KILL);
    client.ended(Instant::now());
    has(&bug.ok(&["pause"]), &["stopped: pause", "[s1 via"]);
    assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    has(&bug.ok(&["print", "counter > 0"]), &["= true"]);

    // Another client finds it, too, by its name, and it is not that client's to lose.
    let mut other = Pipe::new(&bug);
    has(&other.ok("debug_inspect", json!({ "what": "status", "session": "s1" })), &["s1", "stopped"]);
    let (took, ..) = other.leave();
    assert!(took < ENDS, "{took:?}");
    has(&bug.ok(&["status"]), &["s1", "stopped"]);
    bug.ok(&["stop"]);
    nothing_is_left(&bug, &pids);
}

/// A shell's session outlives the clients that looked at it, and so does another client's.
#[test]
fn only_its_own_sessions_end_with_a_client() {
    let bug = configured("c", "grace_secs = 0");
    let hang = program("c/hang.c");
    bug.ok(&["start", &hang]);
    let (mut one, mut two) = (Pipe::new(&bug), Pipe::new(&bug));
    for (client, alias) in [(&mut one, "s2"), (&mut two, "s3")] {
        let text = client.ok("debug_run", json!({ "command": [hang], "stop_on_entry": true }));
        assert_eq!(session_of(&text), alias);
        has(&client.ok("debug_inspect", json!({ "what": "status", "session": "s1" })), &["s1"]);
    }
    one.leave();
    until("s2 is gone", || {
        let list = bug.ok(&["sessions"]);
        if list.contains("s2:") { Err(list) } else { Ok(()) }
    });
    has(&two.ok("debug_sessions", json!({})), &["s1: held", "s3: stopped"]);
    has(&bug.ok(&["status"]), &["s1"]);
    two.ok("debug_sessions", json!({ "action": "stop" }));
    bug.ok(&["stop"]);
}
