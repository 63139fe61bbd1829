//! What is mistyped, or can't be done, is said before it is too late; what is shown is what matters.

use crate::support::{has, lacks};
use crate::{agent, bash, bug, events, read, script, words};

#[test]
fn a_mistyped_breakpoint_starts_nothing() {
    let bug = bug();
    let agent = agent(&script("p", &[("t", &[bash("echo > ran")])]));
    for (place, why) in [
        ("tol:Bash", "an agent has no place `tol:Bash`; there are: tool:…"),
        ("pattern:[", "`[` is no regular expression"),
        ("iteration:abc", "`abc` is not the number of a model call"),
        ("tokens:abc", "`abc` is not a number of tokens"),
        ("app.py:3", "an agent has no lines; there are: tool:…"),
    ] {
        for word in ["run", "start"] {
            bug.run(&words(&[word, "--break", place], &agent)).fails(2, why);
        }
    }
    assert_eq!(read(&bug, "ran"), None);
    // What is kept for the project's programs is no mistake.
    for place in ["app.py:3", "main"] {
        bug.ok(&["break", place]);
    }
    has(&bug.ok(&words(&["run", "--break", "tool:bash"], &agent)), &["stopped: breakpoint 3 (hit 1)"]);
    for (place, why) in
        [("tol:Bash", "no place `tol:Bash`"), ("pattern:[", "no regular expression"), ("main2", "no place `main2`")]
    {
        bug.run(&["break", place]).fails(2, why);
    }
    for (condition, why) in [
        ("tool_inpt.command ~ \"rm\"", "there is no `tool_inpt`; there are: point, tool_name, tool_input"),
        ("command ~ \"rm\"", "there is no `command`; there are"),
        ("iteration >", "a value is missing"),
    ] {
        bug.run(&["break", "tool:bash", "--if", condition]).fails(2, why);
    }
    has(&bug.ok(&["break", "tool:bash", "--if", "input.command ~ \"rm\""]), &["verified"]);
    bug.ok(&["stop"]);
}

#[test]
fn a_mistyped_step_lets_nothing_go_on() {
    let bug = bug();
    let agent = agent(&script("p", &[("t", &[bash("echo > ran")])]));
    bug.ok(&words(&["run", "--break", "tool:bash"], &agent));
    for typed in [&["step", "--into", "tol"][..], &["until", "foo"], &["until", "tol:Bash"]] {
        bug.run(typed).fails(2, "an agent has no place `");
    }
    bug.write("work/x.py", "a\nb\nc\n");
    bug.run(&["until", "x.py:3"]).fails(2, "an agent has no lines; there are: tool:…");
    has(&bug.ok(&["status"]), &["s1: stopped"]);
    assert_eq!(read(&bug, "ran"), None);
    has(&bug.ok(&["until", "stop"]), &["in before the turn ends"]);
    assert!(read(&bug, "ran").is_some());
    bug.ok(&["stop"]);
}
