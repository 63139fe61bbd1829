//! Threads, and functions that call themselves.

use serde_json::Value;

use crate::support::fixtures::{at, line, program};
use crate::support::{Bug, functions, has, variable};

fn named<'a>(threads: &'a Value, name: &str) -> &'a Value {
    variable(&threads["threads"], name)
}

/// Three workers and the main thread: each can be listed, selected and looked at.
fn threads(language: &str, fixture: &str, argument: &str, main: &str) {
    let bug = Bug::new(language);
    let place = at(fixture, "worker");
    let report = bug.json(&["run", &program(fixture), "--break", &place]);
    let stopped = report["stop"]["thread"]["name"].as_str().unwrap().to_string();
    assert!(stopped.starts_with("worker-"), "{stopped}");
    assert_eq!(functions(&report["stop"]["frames"]), ["worker", "entry"]);
    let number = stopped.trim_start_matches("worker-");
    assert_eq!(crate::support::local(&report, argument), number);

    let list = bug.json(&["threads"]);
    assert_eq!(list["threads"].as_array().unwrap().len(), 4, "{list}");
    for name in ["worker-1", "worker-2", "worker-3", main] {
        let thread = named(&list, name);
        assert_eq!(thread["state"], "stopped");
        assert_eq!(thread["selected"], name == stopped);
    }
    let text = bug.ok(&["threads"]);
    assert_eq!(text.lines().filter(|line| line.starts_with('>')).count(), 1, "{text}");
    has(&text, &[&format!("{stopped} stopped worker {place}")]);

    // Another thread, for one call and then for good.
    let main_id = named(&list, main)["id"].to_string();
    let stack = bug.json(&["backtrace", "--thread", &main_id, "--full"]);
    assert_eq!(stack["stacks"][0]["threads"][0]["name"], main);
    has(&bug.ok(&["thread"]), &[&stopped]);
    has(&bug.ok(&["thread", &main_id]), &[&format!("thread {main_id} {main}")]);
    has(&bug.ok(&["threads"]), &[&format!(">{main_id} {main}")]);
    bug.run(&["thread", "987654"]).fails(3, "there is no thread 987654");

    let all = bug.json(&["backtrace", "--all", "--full"]);
    let shown: usize =
        all["stacks"].as_array().unwrap().iter().map(|stack| stack["threads"].as_array().unwrap().len()).sum();
    assert_eq!(shown, 4, "{all}");
    has(&bug.ok(&["backtrace", "--all"]), &["worker-1", "worker-2", "worker-3", main, "worker"]);

    // All three pass, then the joined results.
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "results=2,6,12"]);
}

#[test]
fn threads_of_c() {
    threads("c", "c/threads.c", "id", "c-threads");
}

#[test]
fn threads_of_python() {
    threads("python", "python/threads.py", "number", "MainThread");
}

/// A factorial at its bottom: five frames of one function, each with its own `n`.
fn recursion(language: &str, fixture: &str, outermost: &str) {
    let bug = Bug::new(language);
    let n = |words: &[&str]| {
        let words: Vec<&str> = ["print", "n"].iter().chain(words).copied().collect();
        bug.ok(&words).trim().to_string()
    };
    bug.ok(&["run", &program(fixture), "--break", &at(fixture, "bottom")]);
    let stack = bug.json(&["backtrace"]);
    let names = functions(&stack["stacks"][0]["frames"]);
    assert_eq!(names[..5], ["factorial"; 5]);
    assert_eq!(names[5], outermost);
    assert_eq!(stack["stacks"][0]["selected"], 0);
    let place = at(fixture, "bottom");
    has(&bug.ok(&["backtrace"]), &[&format!(">0 factorial {place}"), &format!(" 5 {outermost} ")]);
    let limited = bug.ok(&["stack", "2"]);
    has(&limited, &[" 1 factorial", "more: bugeye backtrace --limit"]);
    assert!(!limited.contains(" 2 factorial"), "{limited}");
    assert_eq!(bug.json(&["bt", "--limit", "3"])["stacks"][0]["frames"].as_array().unwrap().len(), 3);
    let with_locals = bug.ok(&["backtrace", "--locals"]);
    has(&with_locals, &["n = 1", "n = 2", "n = 3", "n = 4", "n = 5"]);

    assert_eq!(n(&[]), "n = 1");
    assert_eq!(n(&["--frame", "2"]), "n = 3");
    assert_eq!(n(&[]), "n = 1", "a look at another frame selected it");
    has(&bug.ok(&["up"]), &["frame 1 factorial", "n=2"]);
    has(&bug.ok(&["up"]), &["frame 2 factorial", "n=3"]);
    has(&bug.ok(&["down"]), &["frame 1 factorial", "n=2"]);
    has(&bug.ok(&["frame", "4"]), &["frame 4 factorial", "n=5"]);
    assert_eq!(n(&[]), "n = 5");
    has(&bug.ok(&["frame"]), &["frame 4 factorial"]);
    bug.run(&["frame", "99"]).fails(3, "there is no frame 99");
    bug.ok(&["frame", "0"]);
    bug.run(&["down"]).fails(1, "innermost");

    // Back in the caller, with what the function returned.
    for (returned, n) in [("1", "2"), ("2", "3"), ("6", "4")] {
        let report = bug.json(&["finish"]);
        assert_eq!(report["stop"]["reason"], "step");
        assert_eq!(report["stop"]["frames"][0]["line"], line(fixture, "unwind") - 1);
        assert_eq!(crate::support::local(&report, "n"), n);
        assert_eq!(crate::support::local(&report, "(return) factorial"), returned);
    }
    has(&bug.ok(&["out"]), &["(return) factorial=24"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "factorial=120"]);
}

#[test]
fn recursion_in_c() {
    recursion("c", "c/recursion.c", "main");
}

#[test]
fn recursion_in_python() {
    recursion("python", "python/recursion.py", "<module>");
}
