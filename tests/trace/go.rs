//! Traces of Go: plain values by log breakpoints, everything else by stops, with the goroutine that was there.

use serde_json::{Value, json};

use crate::support::fixtures::{at, program};
use crate::support::has;
use crate::support::sides::DELVE;

const BASIC: &str = "go/loop_basic.go";
const STDIN: &str = "go/loop_stdin.go";
const MANY: &str = "go/many.go";

fn rows(result: &Value, names: &[&str]) -> Vec<Vec<String>> {
    super::forms::values(result, names)
}

#[test]
fn a_loop_has_its_values_before_and_after_with_paths_and_without() {
    let bug = DELVE.bug();
    for (flags, way) in [(&[][..], "stops"), (&["--no-paths"], "logpoints"), (&["--no-paths", "--stops"], "stops")] {
        let (body, after) = (format!("{}: i, sum", at(BASIC, "body")), format!("{}: sum", at(BASIC, "after")));
        let words: Vec<&str> = ["trace", "--at", &body, "--at", &after]
            .iter()
            .chain(flags)
            .copied()
            .chain(["--", program(BASIC).leak() as &str])
            .collect();
        let result = bug.json(&words);
        assert_eq!((&result["way"], &result["total"]), (&json!(way), &json!(10)), "{result}");
        let of = |point: u64, name: &str| -> Vec<String> {
            let hits = result["hits"].as_array().unwrap().iter().filter(|hit| hit["point"] == point);
            hits.map(|hit| hit["values"][name].as_str().unwrap().to_string()).collect()
        };
        assert_eq!(of(1, "i"), ["0", "1", "2", "3", "4"], "{flags:?}");
        assert_eq!(of(1, "sum"), ["0", "0", "1", "3", "6"], "{flags:?}");
        assert_eq!(of(2, "sum"), ["0", "1", "3", "6", "10"], "{flags:?}");
        for hit in result["hits"].as_array().unwrap() {
            assert_eq!(hit["thread"]["id"], 1, "{hit}");
            if flags.is_empty() {
                let names: Vec<&Value> =
                    hit["frames"].as_array().unwrap().iter().map(|frame| &frame["function"]).collect();
                assert_eq!(names, ["main.work_basic", "main.main"]);
            }
        }
        assert_eq!(result["output"]["stdout"], "sum=10\n");
        assert_eq!(result["exit"], json!({ "kind": "exited", "code": 0 }));
    }
}

#[test]
fn what_it_reads_reaches_it() {
    let bug = DELVE.bug();
    let input = bug.write("input", "4\n");
    for flags in [&[][..], &["--no-paths"]] {
        let traced = |mark: &str, names: &[&str]| {
            let place = format!("{}: {}", at(STDIN, mark), names.join(", "));
            let program = program(STDIN);
            let words: Vec<&str> = ["trace", "--stdin", &input, "--at", &place]
                .iter()
                .chain(flags)
                .chain(&["--", &program])
                .copied()
                .collect();
            rows(&bug.json(&words), names)
        };
        assert_eq!(traced("body", &["i", "acc"]), [["1", "1"], ["2", "1"], ["3", "2"], ["4", "6"]]);
        assert_eq!(traced("after", &["acc"]), [["1"], ["2"], ["6"], ["24"]]);
    }
}

#[test]
fn goroutines_that_hit_at_one_moment_are_all_told_once() {
    let bug = DELVE.bug();
    let place = format!("{}: number", at(MANY, "hit"));
    let program = program(MANY);
    for flags in [&[][..], &["--no-paths"]] {
        let words: Vec<&str> =
            ["trace", "--at", &place].iter().chain(flags).chain(&["--", &program, "crowd"]).copied().collect();
        let result = bug.json(&words);
        let mut numbers: Vec<u32> = rows(&result, &["number"]).iter().map(|row| row[0].parse().unwrap()).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..40).collect::<Vec<u32>>(), "{flags:?}");
        let mut threads: Vec<i64> =
            result["hits"].as_array().unwrap().iter().map(|hit| hit["thread"]["id"].as_i64().unwrap()).collect();
        threads.sort_unstable();
        threads.dedup();
        assert_eq!(threads.len(), 40, "{flags:?}");
        // Only those whose condition is true are hits, also of those that are found beside another.
        let words: Vec<&str> = ["trace", "--when", "number % 2 == 0", "--at", &place]
            .iter()
            .chain(flags)
            .chain(&["--", &program, "crowd"])
            .copied()
            .collect();
        let mut even: Vec<u32> =
            rows(&bug.json(&words), &["number"]).iter().map(|row| row[0].parse().unwrap()).collect();
        even.sort_unstable();
        assert_eq!(even, (0..40).step_by(2).collect::<Vec<u32>>(), "{flags:?}");
    }
}

#[test]
fn values_that_are_not_plain_are_read_at_stops() {
    let bug = DELVE.bug();
    let program = program(MANY);
    let names = ["small", "nothing", "ages", "item", "err", "missing", "len(many)"];
    let place = format!("{}: {}", at(MANY, "values"), names.join(", "));
    let trace = |flags: &[&str]| {
        let words: Vec<&str> =
            ["trace", "--at", &place].iter().chain(flags).chain(&["--", &program, "values"]).copied().collect();
        bug.json(&words)
    };
    let (plain, stops) = (trace(&["--no-paths"]), trace(&["--stops"]));
    assert_eq!(plain["way"], "stops");
    assert_eq!(plain["hits"][0]["values"], stops["hits"][0]["values"]);
    let values = &plain["hits"][0]["values"];
    assert_eq!((&values["small"], &values["len(many)"]), (&json!("200"), &json!("500")));
    assert_eq!(values["missing"], "<unavailable>");
    has(plain["hits"][0]["unavailable"]["missing"].as_str().unwrap(), &["missing"]);
}

#[test]
fn conditions_steps_and_limits_choose_hits() {
    let bug = DELVE.bug();
    let program = program(BASIC);
    let chosen = |flags: &[&str]| -> (String, Vec<String>) {
        let place = format!("{}: i", at(BASIC, "body"));
        let words: Vec<&str> =
            ["trace", "--at", &place].iter().chain(flags).chain(&["--", &program]).copied().collect();
        let result = bug.json(&words);
        (result["way"].as_str().unwrap().into(), rows(&result, &["i"]).into_iter().flatten().collect())
    };
    for paths in [&[][..], &["--no-paths"]] {
        let with = |flags: &[&'static str]| chosen(&[paths, flags].concat()).1;
        assert_eq!(with(&["--when", "i % 2 == 1"]), ["1", "3"]);
        assert_eq!(with(&["--every", "2"]), ["1", "3"]);
        assert_eq!(with(&["--max-hits", "3"]), ["0", "1", "2"]);
        assert!(with(&["--when", "i > 100"]).is_empty());
    }
    // The last hit has to stop the program: no message does.
    assert_eq!(chosen(&["--no-paths", "--max-hits", "3"]).0, "stops");
}

#[test]
fn texts_with_anything_in_them_are_told_whole() {
    let bug = DELVE.bug();
    let source = bug.write(
        "texts.go",
        "package main\n\nfunc see(text string, yes bool, part float64) int {\n\treturn len(text)\n}\n\nfunc main() {\n\
         \tfor _, text := range []string{\"a, b\", \"\\\"q\\\"\", \"two\\nlines\\x1f\\x1e\", \"{x} %d é\", \"\"} {\n\
         \t\tsee(text, text == \"\", float64(len(text))/4)\n\t}\n}\n",
    );
    let binary = bug.path("texts");
    let built = std::process::Command::new("go")
        .args(["build", "-gcflags=all=-N -l", "-o", &binary, &source])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let place = format!("{source}:4: text, yes, part");
    let logged = bug.json(&["trace", "--no-paths", "--at", &place, "--", &binary]);
    let stops = bug.json(&["trace", "--stops", "--no-paths", "--at", &place, "--", &binary]);
    assert_eq!((&logged["way"], &logged["total"]), (&json!("logpoints"), &json!(5)));
    let names = ["text", "yes", "part"];
    assert_eq!(rows(&logged, &names), rows(&stops, &names));
    assert_eq!(rows(&logged, &names)[2][0], r#""two\nlines\x1f\x1e""#);
}
