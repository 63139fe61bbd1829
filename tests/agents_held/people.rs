//! A person beside an agent.

use crate::support::terminal::Terminal;
use crate::support::{has, until};
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
