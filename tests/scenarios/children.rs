//! Programs that start others: the child runs, and `stop` leaves none.

use std::time::Duration;

use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, until};

#[test]
fn a_fork_goes_on_beside_the_debugger() {
    let bug = Bug::new("c");
    has(&bug.ok(&["run", &program("c/fork.c"), "--", "50"]), &["exited: code 0", "child exited with 7"]);
    // A breakpoint in the code of both stops the parent only.
    let text = bug.ok(&["run", &program("c/fork.c"), "--break", &at("c/fork.c", "parent"), "--", "50"]);
    has(&text, &["stopped: breakpoint", "main fork.c:"]);
    has(&bug.ok(&["continue"]), &["child exited with 7"]);
}

#[test]
fn a_subprocess_of_python_goes_on_beside_the_debugger() {
    let bug = Bug::new("python");
    let text = bug.ok(&["run", "child.py", "--break", &at("python/child.py", "end")]);
    has(&text, &["stopped: breakpoint 1"]);
    has(&bug.ok(&["print", "done.returncode"]), &["done.returncode = 3"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "child said 'in child' and exited with 3"]);
}

/// A child that has left the group and ignores SIGTERM, as its parent does.
fn a_stubborn_family(language: &str, fixture: &str) {
    let bug = Bug::new(language);
    has(&bug.ok(&["run", &program(fixture), "--wait", "0.2s"]), &["running"]);
    let mut child = 0;
    until("the child is there", || {
        let text = bug.ok(&["output", "--all"]);
        let number = text.lines().find_map(|line| line.strip_prefix("child ")?.parse().ok());
        child = number.ok_or(text)?;
        Ok(())
    });
    assert!(bug.processes().iter().any(|(pid, _)| *pid == child));
    let stopped = bug.run(&["stop"]);
    assert_eq!(stopped.code, 0, "{stopped}");
    assert!(stopped.took < Duration::from_secs(5), "{:?}", stopped.took);
    let left = bug.processes();
    assert!(left.len() == 1 && left[0].1.contains("daemon"), "`stop` left {left:?}");
}

#[test]
fn stop_leaves_no_child_of_c() {
    a_stubborn_family("c", "c/ignore_term.c");
}

#[test]
fn stop_leaves_no_child_of_python() {
    a_stubborn_family("python", "python/ignore_term.py");
}

/// A child that sleeps far longer than anyone waits.
#[test]
fn stop_ends_a_sleeping_fork() {
    let bug = Bug::new("c");
    has(&bug.ok(&["run", &program("c/fork.c"), "--wait", "0.5s", "--", "600000"]), &["running"]);
    has(&bug.ok(&["pause"]), &["stopped: pause"]);
    let stopped = bug.run(&["kill"]);
    assert!(stopped.code == 0 && stopped.took < Duration::from_secs(5), "{stopped} {:?}", stopped.took);
    assert_eq!(bug.processes().len(), 1, "{:?}", bug.processes());
}
