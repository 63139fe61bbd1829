//! `follow`: events beside a prompt, on a real terminal and without one.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};

use rustix::termios::{LocalModes, tcgetattr};

use serde_json::json;

use support::fixtures::at;
use support::scripted::{Language, program};
use support::terminal::Terminal;
use support::{Bug, has, lacks, until};

/// A person at a terminal.
struct Person(Terminal);

impl Person {
    fn new(bug: &Bug, words: &[&str]) -> Self {
        Self(Terminal::new(bug.command(words), Some(120)))
    }

    fn types(&mut self, keys: &str) {
        self.0.types(keys);
    }

    fn screen(&self) -> String {
        show(&self.0.screen())
    }

    #[track_caller]
    fn sees(&self, part: &str) {
        until(part, || if self.screen().contains(part) { Ok(()) } else { Err(self.screen()) });
    }

    fn is_raw(&self) -> bool {
        !tcgetattr(&self.0.device).unwrap().local_modes.contains(LocalModes::ICANON)
    }

    #[track_caller]
    fn ends(&mut self) -> Option<i32> {
        self.0.ends()
    }
}

/// What a terminal shows after these bytes, as far as this program uses one: each row, however often it was redrawn.
fn show(bytes: &str) -> String {
    let (mut rows, mut row, mut column): (Vec<String>, Vec<char>, usize) = (Vec::new(), Vec::new(), 0);
    let mut saved = 0;
    let mut chars = bytes.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' => column = 0,
            '\n' => {
                rows.push(row.drain(..).collect());
                column = 0;
            }
            '\x1b' => match chars.next() {
                Some('[') => match chars.next() {
                    Some('K') => row.truncate(column),
                    other => panic!("an unknown sequence {other:?}"),
                },
                Some('7') => saved = column,
                Some('8') => column = saved,
                other => panic!("an unknown sequence {other:?}"),
            },
            c => {
                row.resize(row.len().max(column + 1), ' ');
                row[column] = c;
                column += 1;
            }
        }
    }
    rows.push(row.into_iter().collect());
    rows.join("\n")
}

#[test]
fn a_person_watches_and_types() {
    let bug = Bug::new("python");
    let mut person = Person::new(&bug, &["follow"]);
    person.sees("waiting for a session to start\nbugeye> ");
    assert!(person.is_raw());
    bug.ok(&["run", "--break", &at("python/loop.py", "body"), "--", "python3", "loop.py"]);
    person.sees("following s1 (");
    person.sees("s1 stopped: breakpoint 1 (hit 1) in work loop.py:7, thread 1: i=0, n=5, total=0");
    person.types("print i + 4");
    person.sees("\ns1> print i + 4");
    // What happens meanwhile scrolls above what is being typed.
    bug.ok(&["continue"]);
    person.sees("s1 stopped: breakpoint 1 (hit 2)");
    person.sees("\ns1> print i + 4");
    person.types("0\r");
    person.sees("\ns1> print i + 40\n");
    person.sees("\ni + 40 = 41\n");
    // Up, and the last character again.
    person.types("\x1b[A\x7f1\r");
    person.sees("\ns1> print i + 41\n");
    person.sees("\ni + 41 = 42\n");
    person.types("nonsense\r");
    person.sees("error: no command is called \"nonsense\"");
    person.types("help\r");
    person.sees("\nRunning\n");
    person.types("print 'x");
    person.types("\r");
    person.sees("a quote ' is not closed");
    person.types("breaks; print n\r");
    person.sees("n = 5\n");
    let screen = person.screen();
    // What was typed here is not told again.
    has(&screen, &["s1 command: cli:", "$ bugeye continue"]);
    lacks(&screen, &["$ bugeye print"]);
    person.types("half a line\x03");
    assert_eq!(person.ends(), Some(0));
    assert!(!person.is_raw());
    // The session is left alone.
    assert_eq!(bug.ok(&["print", "i"]), "i = 1\n");
}

#[test]
fn a_program_that_runs_is_stopped_from_the_prompt() {
    let bug = Bug::new("python");
    bug.ok(&["run", "--name", "spin", "--wait", "0", "--", "python3", "hang.py"]);
    let mut person = Person::new(&bug, &["follow", "spin"]);
    person.sees("following spin (");
    person.types("await\rpause\r");
    person.sees("spin stopped: pause in");
    person.types("stop\r");
    person.sees("s1 ended");
    // It was named, so there is nothing more to come.
    person.sees("spin has ended; its events: bugeye events -s ");
    assert_eq!(person.ends(), Some(0));
}

/// What a person can do with an agent, typed below what it is about to do.
#[test]
fn an_agent_is_answered_where_it_is_held() {
    let work = tempfile::tempdir().unwrap();
    let mut bug = Bug::new("python");
    bug.cwd = work.path().to_path_buf();
    let file = |name: &str| std::fs::read_to_string(work.path().join(name)).ok();
    let bash = |name: &str| json!({ "tools": [{ "name": "bash", "input": { "command": format!("echo > {name}") } }] });
    let steps = json!({ "turns": [{ "prompt": "do it", "steps": [bash("one"), bash("two"), bash("three")] }] });
    let (agent, script) = (program(Language::Python), steps.to_string());
    let agent = agent.iter().chain([&script]).map(String::as_str);
    bug.ok(&["run", "--agent", "--break", "tool:bash", "--"].into_iter().chain(agent).collect::<Vec<_>>());
    let mut person = Person::new(&bug, &["follow"]);
    // Where it stands is told, though that was before.
    person.sees("s1 stopped: breakpoint 1 (hit 1) in before tool bash");
    person.sees("\n  held; type one of: continue, cancel --reason TEXT, set tool_input.NAME VALUE, answer VALUE");
    person.types("set tool_input.command 'echo changed > one'\r");
    person.sees(r#"s1 edited: tool_input of bash is now command="echo changed > one""#);
    assert_eq!(file("one"), None);
    person.types("inject user mind the gap\r");
    person.sees("\nit is put in when the agent goes on\n");
    person.types("continue\r");
    person.sees("s1 tool.end: bash ok in ");
    person.sees("s1 injected: \"[debugger] mind the gap\" as user, by follow:");
    // What can be typed is the last that is said, below the report.
    person.sees("stack: before tool bash < iteration 2 < turn 1: do it\n  held; type one of: continue, ");
    assert_eq!((file("one").as_deref(), file("two")), (Some("changed\n"), None));
    person.types("cancel --reason 'not that'\r");
    person.sees("s1 tool.denied: bash by debugger: [debugger] not that");
    person.sees("note: cancelled: bash\n  held; type one of: ");
    person.types("answer 'made up'\r");
    person.sees("s1 edited: bash was not asked, the debugger answered: made up");
    person.sees("s1 session.end: exited: code 0");
    assert_eq!((file("two"), file("three")), (None, None));
    lacks(&person.screen(), &["state: running", "state: stopped", "s1 eval:"]);
    person.types("quit\r");
    assert_eq!(person.ends(), Some(0));
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let bug = Bug::new("python");
    let mut person = Person::new(&bug, &["follow"]);
    person.sees("waiting for a session to start");
    assert!(person.is_raw());
    support::signal(i32::try_from(person.0.child.id()).unwrap(), rustix::process::Signal::TERM);
    assert_eq!(person.ends(), Some(143));
    assert!(!person.is_raw());
    let mut person = Person::new(&bug, &["follow"]);
    person.sees("waiting for a session to start");
    person.types("\x04");
    assert_eq!(person.ends(), Some(0));
    // A daemon, for the end of the test to stop.
    bug.run(&["status"]);
}

/// Whoever presses Ctrl-C at a command that waits is told what it did not end.
#[test]
fn an_interrupted_wait_says_that_the_program_goes_on() {
    let bug = Bug::new("python");
    let mut waits = Terminal::new(bug.command(&["run", "--wait", "60s", "--", "python3", "hang.py"]), None);
    until("it runs", || {
        let run = bug.run(&["status"]);
        if run.stdout.contains("running") { Ok(()) } else { Err(run.to_string()) }
    });
    support::signal(i32::try_from(waits.child.id()).unwrap(), rustix::process::Signal::INT);
    assert_eq!(waits.ends(), Some(130));
    waits.sees("the program goes on");
    waits.sees("bugeye stop");
    has(&bug.ok(&["status"]), &["running"]);
    has(&bug.ok(&["stop"]), &["ended"]);
}

/// Somebody who writes lines to it.
fn piped(bug: &Bug, words: &[&str]) -> (Child, ChildStdin, Arc<Mutex<String>>) {
    let mut child =
        bug.command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let said = Arc::new(Mutex::new(String::new()));
    let to = said.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            to.lock().unwrap().push_str(&format!("{}\n", line.unwrap()));
        }
    });
    (child, stdin, said)
}

fn finish(mut child: Child) -> (i32, String) {
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (child.wait().unwrap().code().unwrap(), stderr)
}

#[test]
fn lines_of_a_pipe_are_commands_in_order() {
    let bug = Bug::new("python");
    bug.ok(&["run", "--break", &at("python/loop.py", "body"), "--", "python3", "loop.py"]);
    let (child, mut stdin, said) = piped(&bug, &["follow", "s1"]);
    stdin.write_all(b"continue; print i\nbugeye print 'i + 1'\nprint nope\nprint n").unwrap();
    drop(stdin);
    let (code, stderr) = finish(child);
    assert_eq!(code, 0, "{stderr}");
    has(&stderr, &["following s1 (", "error: ", "nope"]);
    let said = said.lock().unwrap().clone();
    has(&said, &["s1 stopped: breakpoint 1 (hit 2)", "i = 1\n", "i + 1 = 2\n", "n = 5\n"]);
    let order =
        ["stopped: breakpoint 1 (hit 2) in work loop.py:7, thread 1 MainThread", "i = 1\n", "i + 1 = 2\n", "n = 5"];
    let places: Vec<usize> =
        order.iter().map(|part| said.find(part).unwrap_or_else(|| panic!("{part}: {said}"))).collect();
    assert!(places.is_sorted(), "{places:?} in {said}");
    // Nothing moved but by what was asked.
    assert_eq!(bug.ok(&["print", "i"]), "i = 1\n");
    // Leaving is said as at a terminal, after what was asked before.
    let (child, mut stdin, said) = piped(&bug, &["follow", "s1"]);
    stdin.write_all(b"print i\nquit\nprint n\n").unwrap();
    let (code, stderr) = finish(child);
    assert_eq!((code, stderr.lines().count()), (0, 1), "{stderr}");
    let said = said.lock().unwrap().clone();
    has(&said, &["i = 1\n"]);
    lacks(&said, &["n = 5"]);
}

#[test]
fn commands_of_a_pipe_wait_for_their_session() {
    let bug = Bug::new("python");
    let (child, mut stdin, said) = piped(&bug, &["follow", "--json"]);
    stdin.write_all(b"await; print i\n").unwrap();
    bug.ok(&["run", "--break", &at("python/loop.py", "body"), "--", "python3", "loop.py"]);
    until("it is answered", || {
        let said = said.lock().unwrap().clone();
        if said.lines().filter(|line| line.starts_with("{\"ok\":true")).count() == 2 { Ok(()) } else { Err(said) }
    });
    drop(stdin);
    let (code, stderr) = finish(child);
    assert_eq!(code, 0, "{stderr}");
    has(&stderr, &["waiting for a session to start\nfollowing s1 ("]);
    let said = said.lock().unwrap().clone();
    let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().find(|line| line["type"] == "session.start").unwrap()["seq"], 1);
    assert!(lines.iter().any(|line| line["type"] == "stopped"));
}

#[test]
fn what_there_is_not_can_not_be_followed() {
    let bug = Bug::new("python");
    bug.run(&["follow", "nothing"]).fails(3, "there is no session and no record `nothing`");
    bug.run(&["follow", "--filter", "stoped"]).fails(2, "did you mean `stopped`?");
    bug.run(&["status"]);
}

#[test]
fn the_terminal_of_these_tests_shows_what_a_real_one_would() {
    assert_eq!(show("ab\rc\nxyz\r\x1b[Kq\x1b7rs\x1b8t"), "cb\nqts");
}
