//! What a trace is told as: text, JSON, feedback, CSV, a stream, a plot; and by the library.

use serde_json::{Value, json};

use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, lacks, until};

const BASIC: &str = "c/loop_basic.c";

fn place(mark: &str, expressions: &str) -> String {
    format!("{}: {expressions}", at(BASIC, mark))
}

/// What each hit has for these expressions, in order.
pub fn values(result: &Value, names: &[&str]) -> Vec<Vec<String>> {
    let text = |hit: &Value, name: &str| hit["values"][name].as_str().unwrap_or_else(|| panic!("{hit}")).to_string();
    let hits = result["hits"].as_array().unwrap_or_else(|| panic!("{result}"));
    hits.iter().map(|hit| names.iter().map(|name| text(hit, name)).collect()).collect()
}

#[test]
fn text_has_every_hit_of_a_short_run_and_a_spark_line() {
    let bug = Bug::new("c");
    let text = bug.ok(&["trace", "--at", &place("body", "i, sum"), "--", &program(BASIC)]);
    has(
        &text,
        &[
            "5 hits in ",
            "  i ▁",
            " 0..4\n",
            "    1 i=0 sum=0  (work_basic < main)\n",
            "    5 i=4 sum=6\n",
            "exited: code 0",
        ],
    );
    has(&text, &["output: sum=10"]);
    lacks(&text, &["…", "note:"]);
}

#[test]
fn json_has_place_thread_frames_values_and_the_end() {
    let bug = Bug::new("c");
    let result = bug.json(&["trace", "--at", &place("body", "i, sum, missing"), "--", &program(BASIC)]);
    let rows = [["0", "0"], ["1", "0"], ["2", "1"], ["3", "3"], ["4", "6"]];
    assert_eq!(values(&result, &["i", "sum"]), rows);
    let hit = &result["hits"][0];
    assert_eq!((&hit["seq"], &hit["place"]), (&json!(1), &json!(at(BASIC, "body"))));
    assert_eq!(hit["values"]["missing"], "<unavailable>");
    assert!(hit["unavailable"]["missing"].as_str().is_some_and(|why| !why.is_empty()), "{hit}");
    let functions: Vec<&str> =
        hit["frames"].as_array().unwrap().iter().map(|f| f["function"].as_str().unwrap()).collect();
    assert_eq!(functions, ["work_basic", "main"]);
    assert!(hit["thread"]["id"].as_i64().is_some_and(|id| id > 0), "{hit}");
    assert_eq!(result["exit"], json!({ "kind": "exited", "code": 0 }));
    assert_eq!(result["output"]["stdout"], "sum=10\n");
    let times: Vec<f64> = result["hits"].as_array().unwrap().iter().map(|hit| hit["ms"].as_f64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn feedback_is_exactly_two_maps() {
    let bug = Bug::new("c");
    let (body, end) = (at(BASIC, "body"), at(BASIC, "end"));
    let run = bug.run(&["trace", "--feedback", "--at", &place("body", "i, nope"), "--at", &end, "--", &program(BASIC)]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run}");
    let watched: Vec<Value> = (0..5)
        .flat_map(|i| {
            [json!({ "var": "i", "value": i.to_string() }), json!({ "var": "nope", "value": "<unavailable>" })]
        })
        .collect();
    let path = |place: &str| format!("work_basic() -> main() @ {place}");
    let expected = json!({
        "watchpoints": { body.as_str(): watched },
        "breakpoints": { body.as_str(): vec![path(&body); 5], end.as_str(): [path(&end)] },
    });
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), expected);
}

#[test]
fn a_place_that_is_never_reached_has_an_empty_list() {
    let bug = Bug::new("python");
    bug.write("never.py", "def unused(n):\n    return n\n\nprint('done')\n");
    let place = format!("{}:2", bug.path("never.py"));
    let words = ["trace", "--feedback", "--at", &format!("{place}: n"), "--", "python3", &bug.path("never.py")];
    let run = bug.run(&words);
    assert_eq!(run.code, 0, "{run}");
    let expected = json!({ "watchpoints": { place.as_str(): [] }, "breakpoints": { place.as_str(): [] } });
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), expected);
    // Nor is a function a mistake that is not called.
    let result = bug.json(&["trace", "--at", "unused: n", "--", "python3", &bug.path("never.py")]);
    assert_eq!((&result["total"], &result["exit"]["code"]), (&json!(0), &json!(0)));
}

#[test]
fn csv_and_json_lines_come_as_they_happen_and_whole() {
    let bug = Bug::new("python");
    let file = bug.write("long.py", "total = 0\nfor i in range(12000):\n    total += i\n");
    let at = format!("{file}:3: i, total");
    let run = bug.run(&["trace", "--csv", "--at", &at, "--", "python3", &file]);
    assert_eq!(run.code, 0, "{run}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!((lines.len(), lines[0]), (12_001, "seq,place,thread,ms,i,total"));
    let last: Vec<&str> = lines[12_000].split(',').collect();
    assert_eq!((last[0], last[4], last[5]), ("12000", "11999", "71982001"));
    let run = bug.run(&["trace", "--jsonl", "--at", &at, "--", "python3", &file]);
    assert_eq!(run.code, 0, "{run}");
    let lines: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 12_001);
    for (index, line) in lines[..12_000].iter().enumerate() {
        assert_eq!(line["seq"], index + 1);
        assert_eq!(line["values"]["i"], index.to_string());
    }
    assert_eq!(lines[12_000]["end"]["total"], 12_000);
}

#[test]
fn many_hits_are_summed_up_and_the_file_has_all() {
    let bug = Bug::new("python");
    let code = "x = 0\nfor i in range(12000):\n    x = -5 if i == 10500 else i % 100\n    y = str(x) if i != 11000 else None\n    del y\n";
    let file = bug.write("many.py", code);
    let text = bug.ok(&["trace", "--at", &format!("{file}:5: x, y"), "--", "python3", &file]);
    has(&text, &["12000 hits in ", " -5..99\n", "x least", "x changed sign", "12000 x=99 y='99'", " more\n"]);
    assert!(text.len() < 4000, "{} bytes: {text}", text.len());
    let note = text.lines().find(|line| line.starts_with("note: ")).unwrap_or_else(|| panic!("{text}"));
    let path = note.rsplit(' ').next().unwrap();
    let all = std::fs::read_to_string(path).unwrap();
    assert_eq!(all.lines().filter(|line| line.starts_with("[1,")).count(), 12_000);
}

#[test]
fn a_plot_is_a_picture_with_a_line_for_each_expression() {
    let bug = Bug::new("c");
    let svg = bug.path("plot.svg");
    let text = bug.ok(&["trace", "--plot", &svg, "--at", &place("body", "i, sum"), "--", &program(BASIC)]);
    has(&text, &["plotted in "]);
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert_eq!(picture.matches("<polyline").count(), 2, "{picture}");
    has(&picture, &["<svg ", "</svg>", ">i at ", ">sum at "]);
}

#[test]
fn what_standard_input_has_reaches_the_program() {
    use std::io::Write as _;
    let bug = Bug::new("c");
    let at = format!("{}: i, acc", at("c/loop_stdin.c", "body"));
    let words = ["--json", "trace", "--stdin", "-", "--at", &at, "--", &program("c/loop_stdin.c")];
    let mut child =
        bug.command(&words).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"4\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let result = serde_json::from_slice::<Value>(&output.stdout).unwrap()["result"].take();
    assert_eq!(values(&result, &["i", "acc"]), [["1", "1"], ["2", "1"], ["3", "2"], ["4", "6"]]);
    // What was kept for the program is gone with it.
    let spool = bug.home().join("runtime/spool");
    until("it is removed", || match std::fs::read_dir(&spool).unwrap().count() {
        0 => Ok(()),
        count => Err(format!("{count} files")),
    });
}

#[test]
fn the_library_answers_the_same_blocking_or_not() {
    use bugeye::trace::{Options, WatchPoint, runtime_feedback, runtime_feedback_async};
    let bug = Bug::new("c");
    let (body, end) = (at("c/loop_stdin.c", "body"), at("c/loop_stdin.c", "end"));
    let options = Options {
        cwd: Some(bug.cwd.clone()),
        env: vec![("BUGEYE_HOME".into(), bug.home().to_str().unwrap().into())],
        bugeye: Some(env!("CARGO_BIN_EXE_bugeye").into()),
        ..Options::default()
    };
    let points = [WatchPoint::new("i", &body), WatchPoint::new("acc", &body)];
    let command = [program("c/loop_stdin.c")];
    let seen = runtime_feedback(&command, Some(b"4\n"), &points, &[&end], &options).unwrap();
    let pairs: Vec<(&str, &str)> =
        seen.watchpoints[&body].iter().map(|seen| (seen.var.as_str(), seen.value.as_str())).collect();
    let expected =
        [("i", "1"), ("acc", "1"), ("i", "2"), ("acc", "1"), ("i", "3"), ("acc", "2"), ("i", "4"), ("acc", "6")];
    assert_eq!(pairs, expected);
    assert_eq!(seen.breakpoints[&end], [format!("work_stdin() -> main() @ {end}")]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let again = runtime.block_on(runtime_feedback_async(&command, Some(b"4\n"), &points, &[&end], &options)).unwrap();
    assert_eq!(again, seen);
    let failure = runtime_feedback(&command, None, &[], &["nowhere.c:1"], &options).unwrap_err();
    assert!(failure.to_string().contains("nowhere.c"), "{failure}");
}

#[test]
fn several_places_at_one_line_are_all_hit() {
    for (language, file, name) in [("c", "c/loop_basic.c", "sum"), ("python", "python/loop.py", "total")] {
        let bug = Bug::new(language);
        let body = at(file, "body");
        let program = if language == "c" { program(file) } else { "loop.py".into() };
        let (first, second) = (format!("{body}: i"), format!("{body}: {name}"));
        let result = bug.json(&["trace", "--at", &first, "--at", &second, "--", &program]);
        let hits: Vec<u64> =
            result["places"].as_array().unwrap().iter().map(|place| place["hits"].as_u64().unwrap()).collect();
        assert_eq!(hits, [5, 5], "{language}: {result}");
    }
}

#[test]
fn more_than_a_reply_can_carry_is_cut_in_the_middle() {
    let bug = Bug::new("python");
    let code = "def deep(n, text):\n    if n:\n        return deep(n - 1, text)\n    return text\n\nfor i in range(9000):\n    \
                deep(8, 'x' * 180)\n";
    let file = bug.write("wide.py", code);
    let at = format!("{file}:4: text, text + 'a', text + 'b', text + 'c', text + 'd'");
    let result = bug.json(&["trace", "--timeout", "300", "--at", &at, "--", "python3", &file]);
    assert_eq!(result["total"], 9000);
    let seqs: Vec<u64> = result["hits"].as_array().unwrap().iter().map(|hit| hit["seq"].as_u64().unwrap()).collect();
    assert!(seqs.len() < 9000 && seqs.first() == Some(&1) && seqs.last() == Some(&9000), "{}", seqs.len());
    let path = result["file"].as_str().unwrap_or_else(|| panic!("{}", result["notes"]));
    let all = std::fs::read_to_string(path).unwrap();
    assert_eq!(all.lines().filter(|line| line.starts_with("[1,")).count(), 9000);
}
