//! SIGKILL to each process of a session in turn, under real adapters: nothing is left, nobody waits in vain, and no
//! reply says anything but what happened.
//!
//! `BUGEYE_KILL_RUNS` is the number of kills in all (50); `scripts/torture kill N` sets it and shows the figures.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, Instant};

use bugeye::platform::{self, Table};
use rustix::process::Signal;
use serde_json::Value;
use support::{Asked, Bug, Run, fixtures};

/// How soon everything a session owned must be gone.
const GONE: Duration = Duration::from_secs(3);
/// How soon the next command must have answered.
const NEXT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    C,
    Python,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Held,
    Stopped,
    Running,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Daemon,
    Adapter,
    Supervisor,
    Debuggee,
}

const CASES: [(Language, State); 6] = [
    (Language::C, State::Held),
    (Language::Python, State::Running),
    (Language::C, State::Stopped),
    (Language::Python, State::Held),
    (Language::C, State::Running),
    (Language::Python, State::Stopped),
];

/// One of the four tests' share of the kills.
fn runs(victim: Victim) -> usize {
    let all: usize = std::env::var("BUGEYE_KILL_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(50);
    all / 4 + usize::from((victim as usize) < all % 4)
}

impl Bug {
    #[track_caller]
    fn success(&self, words: &[&str]) -> Run {
        let run = self.run(words);
        assert_eq!(run.code, 0, "{run}");
        run
    }

    fn daemon(&self) -> u32 {
        number(&self.json(&["daemon", "status"])["pid"])
    }

    fn status(&self, session: &str) -> Value {
        self.json(&["-s", session, "status"])
    }

    fn pids(&self) -> BTreeSet<u32> {
        self.processes().into_iter().map(|(pid, _)| pid.unsigned_abs()).collect()
    }

    /// Waits until only these are left; answers how long that took.
    #[track_caller]
    fn only(&self, kept: &BTreeSet<u32>, what: &str) -> Duration {
        let began = Instant::now();
        loop {
            let left: Vec<u32> = self.pids().difference(kept).copied().collect();
            if left.is_empty() {
                return began.elapsed();
            }
            let described: Vec<String> = left.iter().map(|pid| describe(*pid)).collect();
            assert!(began.elapsed() < GONE, "{what}: left after {GONE:?}: {described:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// `file:line` of a mark, from anywhere.
fn place(fixture: &str, mark: &str) -> String {
    format!("{}:{}", path(fixture), fixtures::line(fixture, mark))
}

fn path(fixture: &str) -> String {
    let (language, file) = fixture.split_once('/').unwrap();
    fixtures::folder(language).join(file).display().to_string()
}

fn number(value: &Value) -> u32 {
    u32::try_from(value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))).unwrap()
}

fn signal(pid: u32, signal: Signal) {
    support::signal(i32::try_from(pid).unwrap(), signal);
}

fn words(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

fn describe(pid: u32) -> String {
    format!("{:?} {:.100}", platform::process(pid), words(pid))
}

#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    support::until(what, || if condition() { Ok(()) } else { Err(String::new()) });
}

/// debugpy's launcher is named by a path through the adapter's folder.
fn is_adapter(words: &str) -> bool {
    words.contains("lldb-dap") || (words.contains("debugpy/adapter") && !words.contains("debugpy/launcher"))
}

/// A session and the processes it is made of.
struct Subject {
    id: String,
    supervisor: u32,
    adapter: u32,
    debuggee: u32,
}

impl Bug {
    fn subject(&self, language: Language, state: State) -> Subject {
        let before = self.pids();
        let c = fixtures::program("c/family.c");
        let script = path("python/ignore_term.py");
        let (place, command) = match language {
            Language::C => (place("c/family.c", "ready"), vec![c.as_str()]),
            Language::Python => (place("python/ignore_term.py", "stay"), vec!["python3", script.as_str()]),
        };
        let mut arguments = match state {
            State::Held => vec!["start", "--json", "--"],
            State::Stopped => vec!["run", "--json", "--break", &place, "--"],
            State::Running => vec!["run", "--json", "--wait", "0", "--"],
        };
        arguments.extend(command);
        let reply = self.success(&arguments).json();
        let id = reply["session"].as_str().unwrap().to_string();
        let expected = match state {
            State::Held => "held",
            State::Stopped => "stopped",
            State::Running => "running",
        };
        assert_eq!(reply["result"]["state"], expected, "{reply}");
        if state == State::Running {
            until("the program is up", || {
                let output = self.run(&["-s", &id, "output", "--all"]).stdout;
                output.contains("ready") || output.contains("child")
            });
        }
        let daemon = self.daemon();
        let table = Table::read();
        let below = |pid: u32, wanted: &dyn Fn(u32) -> bool| {
            let all = table.below(pid);
            all.iter().map(|process| process.pid).find(|pid| !before.contains(pid) && wanted(*pid))
        };
        let supervisor = below(daemon, &|pid| platform::name(pid).as_deref() == Some("bugeye-session"));
        let supervisor = supervisor.expect("a supervisor below the daemon");
        let adapter = below(supervisor, &|pid| is_adapter(&words(pid)));
        let debuggee = match self.status(&id)["pid"].as_u64() {
            Some(pid) => Some(u32::try_from(pid).unwrap()),
            // debugpy tells the pid only once the program was let go.
            None => below(supervisor, &|pid| words(pid).contains("--connect") && words(pid).contains(&script)),
        };
        let (adapter, debuggee) = (adapter.expect("an adapter"), debuggee.expect("a debuggee"));
        Subject { id, supervisor, adapter, debuggee }
    }

    /// One kill, and what every reply must say about it.
    fn kill(&self, victim: Victim, language: Language, state: State) -> Duration {
        let what = format!("{victim:?} of {language:?} {state:?}");
        let before = self.pids();
        let subject = self.subject(language, state);
        let waiting = (state == State::Running).then(|| {
            let waiting = self.spawn(&["-s", &subject.id, "await", "--json"]);
            // It waits once the session has written down that it was asked.
            until("the client waits", || self.asked_to_wait(&subject.id));
            waiting
        });
        let pid = match victim {
            Victim::Daemon => self.daemon(),
            Victim::Adapter => subject.adapter,
            Victim::Supervisor => subject.supervisor,
            Victim::Debuggee => subject.debuggee,
        };
        let kept = if victim == Victim::Daemon { BTreeSet::new() } else { before };
        let began = Instant::now();
        signal(pid, Signal::KILL);
        let reply = match waiting {
            Some(waiting) => waiting.wait(),
            // Nobody has noticed yet when this one comes, or everybody has.
            None => self.run(&["-s", &subject.id, "continue", "--json"]),
        };
        assert!(began.elapsed() < NEXT, "{what}: {reply}");
        check(&what, victim, &reply);
        if victim == Victim::Daemon {
            // A successor may serve already.
            self.success(&["daemon", "stop"]);
            let gone = self.only(&kept, &what);
            let reply = self.run(&["status", "--json"]);
            assert!(reply.took < NEXT, "{what}: {reply}");
            assert_eq!(reply.code, 3, "{what}: {reply}");
            assert_eq!(reply.json()["error"]["message"], "there is no session", "{what}: {reply}");
            self.success(&["daemon", "stop"]);
            return gone;
        }
        let gone = self.only(&kept, &what);
        let state = self.status(&subject.id);
        let expected = if victim == Victim::Debuggee { "exited" } else { "lost" };
        assert_eq!(state["state"], expected, "{what}: {state}");
        if victim == Victim::Debuggee {
            assert_eq!(state["ending"]["kind"], "signalled", "{what}: {state}");
            assert_eq!(state["ending"]["signal"], "SIGKILL", "{what}: {state}");
        }
        let next = self.run(&["-s", &subject.id, "continue", "--json"]);
        assert!(next.took < NEXT, "{what}: {next}");
        let error = &next.json()["error"];
        let hints = error["hints"].as_array().is_some_and(|hints| !hints.is_empty());
        let (kind, code) = if victim == Victim::Debuggee { ("wrong_state", 3) } else { ("lost", 5) };
        assert_eq!((error["kind"].as_str(), next.code, hints), (Some(kind), code, true), "{what}: {next}");
        if victim == Victim::Debuggee {
            assert!(error["message"].as_str().unwrap().contains("SIGKILL"), "{what}: {next}");
        }
        gone
    }

    fn asked_to_wait(&self, id: &str) -> bool {
        let recording = self.status(id)["recording"].as_str().unwrap().to_string();
        let events = fs::read_to_string(self.home().join("state/sessions").join(recording).join("events.jsonl"));
        events.unwrap_or_default().contains("\"await\"")
    }
}

/// What the client that was there, or came at that moment, is told.
fn check(what: &str, victim: Victim, reply: &Run) {
    let json = reply.json();
    if victim == Victim::Daemon && reply.code == 3 {
        // It came late: there is a new daemon.
        assert_eq!(json["error"]["kind"], "not_found", "{what}: {reply}");
        return;
    }
    if victim == Victim::Debuggee && reply.code == 3 {
        assert!(json["error"]["message"].as_str().unwrap().contains("SIGKILL"), "{what}: {reply}");
        return;
    }
    if victim == Victim::Debuggee {
        assert_eq!(reply.code, 0, "{what}: {reply}");
        let ending = &json["result"]["ending"];
        assert_eq!((&ending["kind"], &ending["signal"]), (&"signalled".into(), &"SIGKILL".into()), "{what}: {reply}");
        return;
    }
    assert_eq!((reply.code, json["error"]["kind"].as_str()), (5, Some("lost")), "{what}: {reply}");
    assert!(json["error"]["hints"].as_array().is_some_and(|hints| !hints.is_empty()), "{what}: {reply}");
}

/// Kills as often as asked, beside a session that must not notice.
fn torture(victim: Victim) {
    let count = runs(victim);
    let home = Bug::new("c");
    let bystander = (victim != Victim::Daemon).then(|| {
        let place = place("c/loop_basic.c", "after");
        let loops = fixtures::program("c/loop_basic.c");
        home.success(&["run", "--name", "bystander", "--break", &place, "--", &loops]);
    });
    let mut took: Vec<Duration> = Vec::new();
    for index in 0..count {
        let (language, state) = CASES[index % CASES.len()];
        took.push(home.kill(victim, language, state));
    }
    if bystander.is_some() {
        let value = home.success(&["-s", "bystander", "print", "sum"]);
        assert_eq!(value.stdout, "sum = 0\n");
        let report = home.success(&["-s", "bystander", "continue", "--json"]).json();
        assert_eq!(report["result"]["state"], "stopped", "{report}");
    }
    took.sort();
    let figure = |at: usize| took.get(at).map_or(0, Duration::as_millis);
    eprintln!(
        "kill {victim:?}: {count} runs, all gone after {} ms (median), {} ms (longest)",
        figure(count / 2),
        figure(count.saturating_sub(1))
    );
}

#[test]
fn a_killed_daemon_takes_everything_with_it() {
    torture(Victim::Daemon);
}

#[test]
fn a_killed_adapter_is_lost_and_nothing_else_is() {
    torture(Victim::Adapter);
}

#[test]
fn a_killed_supervisor_is_a_lost_session() {
    torture(Victim::Supervisor);
}

#[test]
fn a_killed_program_was_ended_by_that_signal() {
    torture(Victim::Debuggee);
}

#[test]
fn a_client_that_dies_in_a_wait_takes_nothing_with_it() {
    let home = Bug::new("c");
    let subject = home.subject(Language::C, State::Running);
    for _ in 0..5 {
        let waiting: Asked = home.spawn(&["-s", &subject.id, "await"]);
        until("the client waits", || home.asked_to_wait(&subject.id));
        // Ends the client's process.
        drop(waiting);
        let status = home.success(&["-s", &subject.id, "status", "--json"]);
        assert!(status.took < Duration::from_millis(500), "{status}");
        assert_eq!(status.json()["result"]["state"], "running");
    }
    home.success(&["-s", &subject.id, "pause"]);
    home.success(&["-s", &subject.id, "continue", "--wait", "0"]);
}

/// A program deaf to SIGTERM with children of every kind, and an adapter that does not answer: `stop` ends both in time.
#[test]
fn stop_ends_what_does_not_want_to_end() {
    let home = Bug::new("c");
    home.success(&["daemon", "start"]);
    let before = home.pids();
    for language in [Language::C, Language::Python] {
        for silent in [false, true] {
            for state in [State::Running, State::Stopped] {
                let what = format!("{language:?} {state:?}, silent adapter: {silent}");
                let subject = home.subject(language, state);
                if silent {
                    signal(subject.adapter, Signal::STOP);
                    let status = home.success(&["status"]);
                    assert!(status.took < Duration::from_millis(500), "{what}: {status}");
                }
                let stop = home.success(&["stop"]);
                assert!(stop.took < Duration::from_secs(5), "{what}: {stop}");
                let left: Vec<u32> = home.pids().difference(&before).copied().collect();
                assert!(left.is_empty(), "{what}: {:?}", left.iter().map(|pid| describe(*pid)).collect::<Vec<_>>());
            }
        }
    }
}
