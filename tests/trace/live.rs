//! A trace in the middle of a session: from where it stands to its next stop.

use serde_json::json;

use crate::forms::values;
use crate::limits::hits_are_written;
use crate::support::fixtures::{at, program};
use crate::support::{Bug, has};

#[test]
fn hits_on_the_way_to_the_next_stop_are_told() {
    for (language, file, name) in [("c", "c/loop_basic.c", "sum"), ("python", "python/loop.py", "total")] {
        let bug = Bug::new(language);
        let body = at(file, "body");
        let program = if language == "c" { program(file) } else { "loop.py".into() };
        let end = at(file, "return");
        bug.ok(&["break", &end]);
        bug.ok(&["break", "--once", &body]);
        bug.ok(&["run", &program]);
        let result = bug.json(&["trace", "--at", &format!("{body}: i, {name}")]);
        assert_eq!(values(&result, &["i", name]), [["1", "0"], ["2", "1"], ["3", "3"], ["4", "6"]], "{language}");
        assert_eq!((&result["state"], &result["exit"]), (&json!("stopped"), &json!(null)));
        // The session is as it was, and nothing of the trace is left in it.
        has(&bug.ok(&["print", name]), &["= 10"]);
        has(&bug.ok(&["status"]), &["stopped (breakpoint"]);
        let text = bug.ok(&["continue"]);
        has(&text, &["exited"]);
        bug.close();
    }
}

#[test]
fn a_breakpoint_at_the_traced_line_stops_and_is_a_hit_too() {
    for language in ["c", "python"] {
        let bug = Bug::new(language);
        let file = if language == "c" { "c/loop_basic.c" } else { "python/loop.py" };
        let body = at(file, "body");
        let program = if language == "c" { program(file) } else { "loop.py".into() };
        bug.ok(&["start", &program]);
        bug.ok(&["break", &body, "--if", "i == 3"]);
        let result = bug.json(&["trace", "--at", &format!("{body}: i")]);
        assert_eq!(values(&result, &["i"]), [["0"], ["1"], ["2"], ["3"]], "{language}");
        assert_eq!(result["state"], "stopped", "{language}");
        has(&bug.ok(&["print", "i"]), &["= 3"]);
        bug.close();
    }
}

#[test]
fn enough_hits_stop_the_session_where_it_can_be_looked_at() {
    let bug = Bug::new("python");
    bug.ok(&["start", "loop.py"]);
    let body = at("python/loop.py", "body");
    let result = bug.json(&["trace", "--max-hits", "2", "--at", &format!("{body}: i")]);
    assert_eq!(values(&result, &["i"]), [["0"], ["1"]]);
    has(&bug.ok(&["print", "i"]), &["= 1"]);
    let rest = bug.json(&["trace", "--at", &format!("{body}: i")]);
    assert_eq!(values(&rest, &["i"]), [["2"], ["3"], ["4"]]);
    assert_eq!(rest["exit"], json!({ "kind": "exited", "code": 0 }));
    bug.close();
}

#[test]
fn a_limit_of_time_leaves_the_session_stopped() {
    let bug = Bug::new("python");
    let file = bug.write("forever.py", "import time\ni = 0\nwhile True:\n    i += 1\n    time.sleep(0.001)\n");
    bug.ok(&["start", &file]);
    let run = bug.run(&["--json", "trace", "--timeout", "1.5", "--at", &format!("{file}:4: i")]);
    assert_eq!(run.code, 4, "{run}");
    let result = run.json()["result"].take();
    assert_eq!(result["state"], "stopped", "{result}");
    has(&bug.ok(&["status"]), &["stopped"]);
    has(&bug.ok(&["print", "i > 5"]), &["True"]);
    bug.close();
}

#[test]
fn a_limit_while_each_hit_is_a_stop_leaves_the_session_stopped() {
    let bug = Bug::new("python");
    let file = bug.write("forever.py", "i = 0\nwhile True:\n    i += 1\n");
    bug.ok(&["start", &file]);
    let run = bug.run(&["--json", "trace", "--stops", "--timeout", "1.5", "--at", &format!("{file}:3: i")]);
    assert_eq!(run.code, 4, "{run}");
    assert_eq!(run.json()["result"]["state"], "stopped", "{run}");
    has(&bug.ok(&["status"]), &["stopped"]);
    bug.close();
}

#[test]
fn nothing_of_a_trace_is_left_in_the_session() {
    for (language, file) in [("c", "c/loop_basic.c"), ("python", "python/loop.py")] {
        let bug = Bug::new(language);
        let program = if language == "c" { program(file) } else { "loop.py".into() };
        let work = if language == "c" { "work_basic" } else { "work" };
        bug.ok(&["start", &program]);
        bug.ok(&["break", &at(file, "body")]);
        // Calls are told to the first stop, and nothing of it disturbs a step after it.
        let calls = bug.json(&["trace", "--calls", work]);
        assert_eq!(calls["calls"].as_array().map(Vec::len), Some(1), "{calls}");
        assert_eq!(calls["calls"][0]["left"], false, "{calls}");
        let again = bug.json(&["trace", "--calls", work]);
        assert_eq!(again["calls"], json!([]), "{language}");
        has(&bug.ok(&["next"]), &["stopped: step"]);
        let hits = bug.json(&["trace", "--at", &format!("{}: i", at(file, "return"))]);
        assert_eq!(hits["total"], 0, "the breakpoint comes before it: {hits}");
        bug.ok(&["unbreak", "--all"]);
        has(&bug.ok(&["continue"]), &["exited"]);
        bug.close();
    }
}

#[test]
fn a_watched_variable_is_not_watched_afterwards() {
    let bug = Bug::new("c");
    bug.ok(&["run", "--break", &at("c/loop_basic.c", "body"), &program("c/loop_basic.c")]);
    bug.ok(&["unbreak", "--all"]);
    let result = bug.json(&["trace", "--watch", "sum", "--max-hits", "2"]);
    assert_eq!(values(&result, &["sum"]).len(), 2, "{result}");
    has(&bug.ok(&["watch"]), &["no watches"]);
    has(&bug.ok(&["continue"]), &["exited"]);
    bug.close();
}

#[test]
fn a_client_that_dies_leaves_the_session_without_a_trace() {
    let bug = Bug::new("python");
    let file = bug.write("forever.py", "import time\ni = 0\nwhile True:\n    i += 1\n    time.sleep(0.001)\n");
    bug.ok(&["start", &file]);
    let asked = bug.spawn(&["trace", "--at", &format!("{file}:4: i")]);
    hits_are_written(&bug);
    drop(asked);
    crate::support::until("it is stopped", || match bug.ok(&["status"]) {
        status if status.contains("stopped") => Ok(()),
        status => Err(status),
    });
    has(&bug.ok(&["print", "i >= 0"]), &["True"]);
    has(&bug.ok(&["next"]), &["stopped: step"]);
    bug.close();
}
