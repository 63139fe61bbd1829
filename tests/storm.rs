//! Load: clients that die in a wait, a program that prints as fast as it can, many clients, many sessions. The daemon
//! stays small, answers at once, and counts what it drops to the byte.
//!
//! `BUGEYE_STORM_DEATHS` (50), `BUGEYE_STORM_SECONDS` (3), `BUGEYE_STORM_CLIENTS` (200) and `BUGEYE_STORM_SESSIONS` (6) are
//! the sizes; `scripts/torture` sets them for the long forms and shows the figures.

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
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use support::fixtures::{at, program};
use support::{Bug, has, signal, until};

const MEGABYTE: u64 = 1024 * 1024;

fn size(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The share of a sorted list that is below.
fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

fn daemon(bug: &Bug) -> u64 {
    bug.json(&["daemon", "status"])["pid"].as_u64().unwrap()
}

/// A field of the kernel's page about a process (`VmRSS`, `VmHWM`), in bytes.
fn memory(pid: u64, field: &str) -> u64 {
    let page = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = page.lines().find(|line| line.starts_with(field)).unwrap_or_else(|| panic!("no {field}: {page}"));
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Processor time a process has used, in clock ticks.
fn ticks(pid: u64) -> u64 {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = line.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn count_of(recording: &std::path::Path, what: &str) -> usize {
    fs::read_to_string(recording.join("events.jsonl")).unwrap_or_default().matches(what).count()
}

#[test]
fn a_client_that_dies_in_continue_holds_nobody_up() {
    let deaths = size("BUGEYE_STORM_DEATHS", 50);
    let bug = Bug::new("c");
    bug.ok(&["run", "--break", "main", &program("c/hang.c")]);
    let status = bug.json(&["status"]);
    let recording = bug.home().join("state/sessions").join(status["recording"].as_str().unwrap());
    let debuggee = status["pid"].as_u64().unwrap();
    let mut took = Vec::new();
    for index in 0..deaths {
        let mut client = bug.command(&["continue", "--wait", "30s"]);
        let mut client = client.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("the client waits", || {
            let asked = count_of(&recording, r#""how":"continue""#);
            let running = bug.json(&["status"])["state"] == "running";
            if asked > index && running { Ok(()) } else { Err(format!("{asked} asked")) }
        });
        client.kill().unwrap();
        client.wait().unwrap();
        let next = bug.run(&["status", "--json"]);
        assert_eq!(next.json()["result"]["state"], "running", "{next}");
        assert!(next.took < Duration::from_secs(2), "{:?}: {next}", next.took);
        took.push(next.took);
        let before = ticks(debuggee);
        until("the program still runs", || if ticks(debuggee) > before { Ok(()) } else { Err(String::new()) });
        has(&bug.ok(&["pause"]), &["stopped"]);
    }
    took.sort();
    eprintln!(
        "client dies in continue: {deaths} deaths, next command {:?} (median), {:?} (p99), {:?} (longest)",
        percentile(&took, 50),
        percentile(&took, 99),
        percentile(&took, 100)
    );
    bug.ok(&["stop"]);
}

/// The most the daemon held while `work` went on, sampled, and how long `status` took meanwhile.
fn watched(bug: &Bug, pid: u64, is_over: &mut dyn FnMut() -> bool) -> (u64, Vec<Duration>) {
    let (mut most, mut took) = (0, Vec::new());
    loop {
        let over = is_over();
        let run = bug.run(&["status", "--json"]);
        assert_eq!(run.code, 0, "{run}");
        took.push(run.took);
        most = most.max(memory(pid, "VmRSS"));
        if over {
            took.sort();
            return (most, took);
        }
    }
}

/// Everything from a byte on: bytes dropped, bytes kept, and how many of those are the debugger's own.
fn accounted(bug: &Bug, from: u64) -> (u64, u64, u64) {
    let ask = |words: &[&str]| {
        let got = bug.json(&[&["output", "--since", &from.to_string()], words].concat());
        let shown: u64 =
            got["chunks"].as_array().unwrap().iter().map(|c| c["text"].as_str().unwrap().len() as u64).sum();
        (got["dropped"].as_u64().unwrap(), shown + got["left_out"].as_u64().unwrap(), got["end"].as_u64().unwrap())
    };
    let (dropped, kept, end) = ask(&["--console"]);
    let (also_dropped, own, _) = ask(&[]);
    assert_eq!((dropped, dropped + kept), (also_dropped, end - from), "every byte is shown, left out or dropped");
    (dropped, kept, kept - own)
}

#[test]
fn a_flood_of_output_is_counted_to_the_byte_and_holds_nobody_up() {
    let seconds = size("BUGEYE_STORM_SECONDS", 3);
    let bug = Bug::new("c");
    // Stopped first, so that what a daemon and a session need anyway is not counted.
    let (begin, end) = (at("c/flood_for.c", "begin"), at("c/flood_for.c", "end"));
    let binary = program("c/flood_for.c");
    bug.ok(&["run", "--break", &begin, "--break", &end, &binary, "--", &seconds.to_string()]);
    let pid = daemon(&bug);
    let before = memory(pid, "VmRSS");
    let before_it = bug.json(&["output", "--tail", "1"])["end"].as_u64().unwrap();
    bug.ok(&["continue", "--wait", "0"]);
    let started = Instant::now();
    let limit = Duration::from_secs(seconds as u64 + 30);
    let (most, took) = watched(&bug, pid, &mut || {
        assert!(started.elapsed() < limit, "the flood does not end");
        bug.json(&["status"])["state"] == "stopped"
    });
    let elapsed = started.elapsed();
    // The program knows what it printed, before its last word.
    let printed: u64 = bug.json(&["print", "printed"])["values"][0]["value"]["text"].as_str().unwrap().parse().unwrap();
    let mut end = 0;
    until("all of it was read", || {
        end = bug.json(&["output", "--tail", "1"])["end"].as_u64().unwrap();
        // The debugger's own few words about a stop are counted too; they are told apart below.
        if end >= before_it + printed { Ok(()) } else { Err(format!("{end} of {printed}")) }
    });
    let (dropped, kept, from_debugger) = accounted(&bug, before_it);
    assert_eq!(dropped + kept, printed + from_debugger, "{dropped} dropped, {kept} kept, {from_debugger} not its own");
    let grown = most.saturating_sub(before);
    eprintln!(
        "output flood: {} MB in {elapsed:?}, daemon +{} MB at most, dropped {dropped} of {printed} bytes (exact), \
         status {:?} (p50) {:?} (p99) of {}",
        printed / MEGABYTE,
        grown / MEGABYTE,
        percentile(&took, 50),
        percentile(&took, 99),
        took.len()
    );
    assert!(grown <= 64 * MEGABYTE, "the daemon grew by {} MB", grown / MEGABYTE);
    assert!(percentile(&took, 99) < Duration::from_secs(1), "{took:?}");
    assert!(printed > MEGABYTE * seconds as u64, "only {printed} bytes: no flood");
    bug.ok(&["stop"]);
}

/// One client: a connection, and ten questions on it, one after the other.
fn client(bug: &Bug) -> Vec<Duration> {
    let mut stream = UnixStream::connect(bug.home().join("runtime/daemon.sock")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut took = Vec::new();
    for id in 0..10 {
        let (cmd, args) = [("hello", json!({})), ("sessions", json!({})), ("status", json!({}))][id % 3].clone();
        let request = json!({ "v": 1, "id": id, "cmd": cmd, "args": args, "ctx": { "cwd": bug.cwd, "session": "s1" } });
        let started = Instant::now();
        stream.write_all(format!("{request}\n").as_bytes()).unwrap();
        let line = lines.next().expect("an answer").unwrap();
        took.push(started.elapsed());
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&answer["final"]["id"], &answer["final"]["ok"]), (&json!(id), &json!(true)), "{line}");
    }
    took
}

#[test]
fn many_clients_at_once_are_all_answered() {
    let clients = size("BUGEYE_STORM_CLIENTS", 200);
    let bug = Bug::new("c");
    bug.ok(&["start", &program("c/loop_basic.c")]);
    let pid = daemon(&bug);
    let mut took: Vec<Duration> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..clients).map(|_| scope.spawn(|| client(&bug))).collect();
        all.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    took.sort();
    assert_eq!(took.len(), clients * 10);
    eprintln!(
        "clients: {clients} x 10 requests, no error, {:?} (median), {:?} (p99), {:?} (longest), daemon {} MB at most",
        percentile(&took, 50),
        percentile(&took, 99),
        percentile(&took, 100),
        memory(pid, "VmHWM") / MEGABYTE
    );
    assert!(percentile(&took, 99) < Duration::from_secs(5));
    bug.ok(&["stop"]);
}

#[test]
fn many_sessions_at_once_all_stop() {
    let sessions = size("BUGEYE_STORM_SESSIONS", 6);
    let bug = Bug::new("python");
    bug.ok(&["daemon", "start"]);
    let pid = daemon(&bug);
    let place = at("python/loop.py", "body");
    let started = Instant::now();
    // A machine with few processors starts them in turns; they all live at once in the end.
    let names: Vec<String> = (0..sessions).map(|n| format!("many{n}")).collect();
    for some in names.chunks(4) {
        let asked: Vec<_> = some
            .iter()
            .map(|name| bug.spawn(&["run", "--json", "--name", name, "--wait", "50s", "--break", &place, "loop.py"]))
            .collect();
        for asked in asked {
            let run = asked.wait();
            assert_eq!(run.json()["result"]["state"], "stopped", "{run}");
        }
    }
    for name in &names {
        let value = bug.json(&["-s", name, "print", "n"]);
        assert_eq!(value["values"][0]["value"]["text"], "5", "{value}");
    }
    let held = memory(pid, "VmRSS") / MEGABYTE;
    eprintln!("sessions: {sessions} of {sessions} stopped after {:?}, daemon {held} MB", started.elapsed());
    assert!(held <= 150, "the daemon holds {held} MB");
    let stop = bug.run(&["stop", "--all"]);
    assert_eq!(stop.code, 0, "{stop}");
}

/// A program that is killed from outside while it prints loses nothing that it had written.
#[test]
fn what_was_printed_before_a_kill_is_all_there() {
    let bug = Bug::new("c");
    bug.ok(&["run", "--wait", "0", &program("c/flood_for.c"), "--", "60"]);
    until("it prints", || {
        let end = bug.json(&["output", "--all"])["end"].as_u64().unwrap();
        if end > 4 * MEGABYTE { Ok(()) } else { Err(format!("{end} bytes")) }
    });
    let debuggee = bug.json(&["status"])["pid"].as_i64().unwrap();
    signal(i32::try_from(debuggee).unwrap(), Signal::KILL);
    let run = bug.run(&["await", "--timeout", "10", "--json"]);
    assert_eq!(run.json()["result"]["ending"]["signal"], "SIGKILL", "{run}");
    let (dropped, kept, from_debugger) = accounted(&bug, 0);
    assert_eq!((dropped + kept - from_debugger) % 64, 0, "whole lines: the pipe is read to its end");
}
