//! A person beside an agent.

use rustix::process::Signal;

use crate::support::terminal::Terminal;
use crate::support::{has, lacks, signal, until};
use crate::{agent, bash, bug, read, script, words};

#[test]
fn who_follows_sees_what_can_be_answered_and_answers() {
    let bug = bug();
    let tools = [bash("echo > one"), bash("echo > two"), bash("echo > three")];
    let agent = agent(&script("tidy up", &[("I write.", &tools)]));
    bug.ok(&words(&["start", "--break", "tool:bash", "--break", "prompt", "--break", "stop"], &agent));
    let mut follow = Terminal::new(bug.command(&["follow", "s1"]), None);
    follow.sees("following s1");
    follow.types("continue\r");
    follow.sees("held; type one of: continue, cancel --reason TEXT, set prompt TEXT, inject user TEXT, step");
    follow.types("continue\r");
    follow.sees("tool.call: bash command=\"echo > one\"");
    follow.sees("held; type one of: continue, cancel --reason TEXT, set tool_input.NAME VALUE, answer VALUE, inject user TEXT, step");
    follow.types("cancel --reason 'not that'\r");
    follow.sees("tool.denied: bash by debugger: [debugger] not that");
    follow.sees("tool.call: bash command=\"echo > two\"");
    assert_eq!(bug.json(&["status"])["controller"]["person"], true);
    bug.run(&["continue"]).fails(1, "controlled by a person (follow:");
    follow.types("set tool_input.command 'echo > four'\r");
    follow.sees("edited: tool_input of bash is now command=\"echo > four\"");
    follow.types("continue\r");
    follow.sees("tool.call: bash command=\"echo > three\"");
    follow.types("unbreak 1; step\r");
    follow.sees("held; type one of: continue, inject user TEXT, answer TEXT, inspect messages, step");
    follow.types("continue\r");
    follow.sees("held; type one of: continue, inject user TEXT (it goes on with that), step");
    follow.types("continue\r");
    follow.sees("session.end: exited: code 0");
    assert_eq!(follow.ends(), Some(0));
    let there = ["one", "two", "three", "four"].map(|file| read(&bug, file).is_some());
    assert_eq!(there, [false, false, true, true]);
}

#[test]
fn events_of_agents_can_be_watched() {
    let bug = bug();
    let agent = agent(&script("p", &[("I look.", &[bash("echo hello")])]));
    bug.ok(&words(&["start", "--break", "tool:bash"], &agent));
    let mut watch = Terminal::new(bug.command(&["events", "--follow", "--from-start", "-s", "s1"]), None);
    bug.ok(&["continue"]);
    watch.sees("stopped: breakpoint 1 (hit 1) in before tool bash, thread 1");
    bug.ok(&["continue"]);
    assert_eq!(watch.ends(), Some(0));
    until("all is told", || if watch.screen().contains("session.end") { Ok(()) } else { Err(watch.screen()) });
    let seen = watch.screen();
    has(
        &seen,
        &["input.user: \"p\"", "model.response: \"I look.\", 10 + 5 tokens", "tool.end: bash ok in ", "ms: hello"],
    );
}

/// Says which signals come, and what is typed; ends when told to.
const SITTER: &str = "import os, signal, sys, time
for name in ('SIGWINCH', 'SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGCONT'):
    signal.signal(getattr(signal, name), lambda number, _: os.write(1, ('<%s>' % signal.Signals(number).name).encode()))
os.write(1, b'<ready %d>' % os.isatty(0))
while True:
    line = sys.stdin.readline().strip()
    os.write(1, ('<%s>' % line.upper()).encode())
    if line == 'end':
        sys.exit(3)
    if line == 'sleep':
        os.kill(os.getpid(), signal.SIGSTOP)
";

#[test]
fn a_terminal_is_lent_and_what_it_says_is_passed_on() {
    let bug = bug();
    let file = bug.write("sitter.py", SITTER);
    let sit = |more: &[&str]| {
        let words = [&["run", "--agent", "--terminal"], more, &["--", "python3", &file]].concat();
        Terminal::new(bug.command(&words), Some(80))
    };
    let mut terminal = sit(&["--propagate"]);
    terminal.sees("this terminal is the agent's until it ends; debug it from another one: bugeye follow");
    terminal.sees("<ready 1>");
    // Who sits before it does not control it: an agent may.
    let status = bug.json(&["status"]);
    assert_eq!((status["state"].as_str(), &status["controller"]), (Some("running"), &serde_json::Value::Null));
    let client = i32::try_from(terminal.child.id()).unwrap();
    until("its size is passed on", || {
        signal(client, Signal::WINCH);
        if terminal.screen().contains("<SIGWINCH>") { Ok(()) } else { Err(terminal.screen()) }
    });
    for (sent, name) in [(Signal::INT, "<SIGINT>"), (Signal::QUIT, "<SIGQUIT>"), (Signal::TERM, "<SIGTERM>")] {
        signal(client, sent);
        terminal.sees(name);
    }
    terminal.types("hello\r");
    terminal.sees("<HELLO>");
    bug.run(&["restart"]).fails(1, "it has the terminal that it was started from");
    // It suspends itself; so does who waits for it, and both come back.
    terminal.types("sleep\r");
    let state = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    until("it is suspended", || if state(client).contains(") T ") { Ok(()) } else { Err(state(client)) });
    signal(client, Signal::CONT);
    terminal.sees("<SIGCONT>");
    terminal.types("end\r");
    assert_eq!(terminal.ends(), Some(3), "{}", terminal.screen());
    terminal.sees("exited: code 3 [s1 via agent]");
    // Its debugger lets it go, or is lost: it keeps the terminal to its end.
    let mut terminal = sit(&[]);
    terminal.sees("<ready 1>");
    bug.ok(&["detach"]);
    terminal.types("hello\r");
    terminal.sees("<HELLO>");
    terminal.types("end\r");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.screen());
    let mut terminal = sit(&[]);
    terminal.sees("<ready 1>");
    let daemon = bug.json(&["daemon", "status"])["pid"].as_i64().unwrap();
    signal(i32::try_from(daemon).unwrap(), Signal::KILL);
    terminal.types("hello\r");
    terminal.sees("<HELLO>");
    terminal.types("end\r");
    assert_eq!(terminal.ends(), Some(5), "{}", terminal.screen());
    // Before it begins an interrupt is the user's no.
    let mut terminal = Terminal::new(bug.command(&["start", "--agent", "--terminal", "--", "python3", &file]), None);
    until("it is held", || {
        let text = bug.ok(&["sessions"]);
        if text.contains("held") { Ok(()) } else { Err(text) }
    });
    signal(i32::try_from(terminal.child.id()).unwrap(), Signal::INT);
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.screen());
    terminal.sees("ended by bugeye stop");
    lacks(&terminal.screen(), &["<ready"]);
    bug.run(&["run", "--agent", "--terminal", "--", "python3", &file]).fails(2, "standard input is none");
}
