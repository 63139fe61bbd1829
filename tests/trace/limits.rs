//! Where a trace ends before its program does, and what can't be traced.

use serde_json::json;

use crate::forms::values;
use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, until};

const FOREVER: &str = "import time\ni = 0\nwhile True:\n    i += 1\n    time.sleep(0.001)\n";

#[test]
fn a_limit_of_hits_is_exact_and_ends_the_program() {
    let bug = Bug::new("python");
    let file = bug.write("forever.py", FOREVER);
    let result = bug.json(&["trace", "--max-hits", "7", "--at", &format!("{file}:4: i"), "--", "python3", &file]);
    let expected: Vec<Vec<String>> = (0..7).map(|i| vec![i.to_string()]).collect();
    assert_eq!(values(&result, &["i"]), expected);
    assert_eq!((&result["total"], &result["limit"]), (&json!(7), &json!("7 hits were asked for")));
    assert_eq!(bug.json(&["sessions"])["sessions"], json!([]));
    bug.close();
}

#[test]
fn a_limit_of_time_tells_what_was_seen() {
    let bug = Bug::new("python");
    let file = bug.write("forever.py", FOREVER);
    let run = bug.run(&["--json", "trace", "--timeout", "4", "--at", &format!("{file}:4: i"), "--", "python3", &file]);
    assert_eq!(run.code, 4, "{run}");
    let result = run.json()["result"].take();
    assert!(result["total"].as_u64().unwrap() > 10, "{result}");
    assert_eq!(result["hits"][9]["values"]["i"], "9");
    assert_eq!(result["limit"], "4 s were over");
    bug.close();
}

#[test]
fn a_place_that_is_not_reached_in_time_says_so() {
    let bug = Bug::new("python");
    let file = bug.write("late.py", "import time\ntime.sleep(60)\nx = 1\n");
    let run = bug.run(&["trace", "--first-timeout", "1", "--at", &format!("{file}:3: x"), "--", "python3", &file]);
    assert_eq!(run.code, 4, "{run}");
    has(&run.stdout, &["0 hits", "ended early: no hit in 1 s"]);
    let file = bug.write("lingers.py", "import time\nx = 1\ntime.sleep(60)\n");
    let run = bug.run(&["trace", "--exit-timeout", "1", "--at", &format!("{file}:2: file"), "--", "python3", &file]);
    assert_eq!(run.code, 4, "{run}");
    has(&run.stdout, &["1 hit", "no further hit, and no end, in 1 s"]);
    bug.close();
}

/// Waits until a hook has told of some hits.
pub fn hits_are_written(bug: &Bug) {
    until("hits are written", || {
        let sessions = std::fs::read_dir(bug.home().join("state/sessions")).map_err(|error| error.to_string())?;
        let sizes = sessions.filter_map(|entry| std::fs::metadata(entry.ok()?.path().join("hits.jsonl")).ok());
        if sizes.map(|found| found.len()).sum::<u64>() > 2000 { Ok(()) } else { Err("none yet".into()) }
    });
}

#[test]
fn an_interrupt_ends_the_program_and_tells_what_was_seen() {
    let bug = Bug::new("python");
    let file = bug.write("forever.py", FOREVER);
    let asked = bug.spawn(&["--json", "trace", "--at", &format!("{file}:4: i"), "--", "python3", &file]);
    hits_are_written(&bug);
    asked.interrupt();
    let run = asked.wait();
    assert_eq!(run.code, 0, "{run}");
    let result = run.json()["result"].take();
    assert_eq!(result["limit"], "interrupted");
    assert!(result["total"].as_u64().unwrap() > 10, "{result}");
    assert_eq!(result["hits"][0]["values"]["i"], "0");
    bug.close();
}

#[test]
fn what_can_t_be_set_is_an_error_with_advice() {
    let bug = Bug::new("c");
    let run = bug.run(&["trace", "--at", "nowhere.c:6: i", "--", &program("c/loop_basic.c")]);
    run.fails(1, "nowhere.c:6 can't be traced");
    let run = bug.run(&["trace", "--at", "no_such_function: i", "--", &program("c/loop_basic.c")]);
    run.fails(1, "no_such_function can't be traced");
    has(&run.stderr, &["hint: "]);
    let run = bug.run(&["trace", "--at", "loop_basic.c:6 i", "--", &program("c/loop_basic.c")]);
    run.fails(2, "--at 'loop_basic.c:6: i'");
    let run = bug.run(&["trace", "--", &program("c/loop_basic.c")]);
    run.fails(2, "--at");
    let run = bug.run(&["trace", "--at", "loop_basic.c:6: i"]);
    run.fails(3, "no session");
    bug.close();
}

#[test]
fn a_line_without_code_is_said_to_be_moved() {
    let bug = Bug::new("c");
    let text = bug.ok(&["trace", "--at", "loop_basic.c:11", "--", &program("c/loop_basic.c")]);
    has(&text, &["1 hit", "moved to line 13\n"]);
}

#[test]
fn when_and_every_choose_among_the_passes() {
    for (language, file) in [("c", "c/loop_basic.c"), ("python", "python/loop.py")] {
        let bug = Bug::new(language);
        let name = if language == "c" { "sum" } else { "total" };
        let at = format!("{}: i, {name}", at(file, "body"));
        let program = if language == "c" { program(file) } else { "loop.py".into() };
        let result = bug.json(&["trace", "--when", "i > 2", "--at", &at, "--", &program]);
        assert_eq!(values(&result, &["i"]), [["3"], ["4"]], "{language}");
        let result = bug.json(&["trace", "--every", "2", "--at", &at, "--", &program]);
        assert_eq!(values(&result, &["i"]), [["1"], ["3"]], "{language}");
        let stops = bug.json(&["trace", "--stops", "--every", "2", "--at", &at, "--", &program]);
        assert_eq!((values(&stops, &["i"]), &stops["way"]), (values(&result, &["i"]), &json!("stops")), "{language}");
    }
}

#[test]
fn each_write_of_a_variable_is_told() {
    let bug = Bug::new("c");
    let source = bug.write(
        "w.c",
        "int g;\nint main(void) {\n    for (int i = 1; i < 5; i++)\n        g += i * i;\n    return 0;\n}\n",
    );
    let program = bug.path("w");
    let built = std::process::Command::new("cc").args(["-g", "-O0", "-o", &program, &source]).status().unwrap();
    assert!(built.success());
    let result = bug.json(&["trace", "--watch", "g", "--", &program]);
    assert_eq!(values(&result, &["g"]), [["1"], ["5"], ["14"], ["30"]]);
    assert_eq!(result["exit"]["code"], 0);
    let result = bug.json(&["trace", "--watch", "g", "--max-hits", "2", "--", &program]);
    assert_eq!(values(&result, &["g"]), [["1"], ["5"]]);
    bug.run(&["trace", "--watch", "nothing_of_the_kind", "--", &program]).fails(1, "nothing_of_the_kind");
    bug.close();
}

#[test]
fn a_condition_that_fails_is_no_hit_and_is_told() {
    for (language, file) in [("c", "c/loop_basic.c"), ("python", "python/loop.py")] {
        let bug = Bug::new(language);
        let program = if language == "c" { program(file) } else { "loop.py".into() };
        let words = ["trace", "--when", "nosuch > 1", "--at", &format!("{}: i", at(file, "body")), "--", &program];
        let result = bug.json(&words);
        assert_eq!(result["total"], 0, "{language}: {result}");
        let notes = result["notes"].to_string();
        assert!(notes.contains("could not be evaluated") && notes.contains("nosuch"), "{language}: {result}");
        assert_eq!(result["exit"]["code"], 0, "{language}: {result}");
    }
}

#[test]
fn what_does_not_go_together_is_said() {
    let bug = Bug::new("c");
    let program = program("c/loop_basic.c");
    bug.run(&["trace", "--calls", "*", "--watch", "g", "--", &program]).fails(2, "can't be had in one trace");
    bug.run(&["trace", "--core", "core", "--at", "main"]).fails(2, "a core file can't run");
    bug.run(&["trace", "--env", "A=1", "--at", "main"]).fails(2, "name it");
}
