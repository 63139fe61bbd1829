//! JavaScript and TypeScript beyond what every language has: runners of tests, scripts of packages, generated code, other
//! processes, modules of both kinds.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use support::fixtures::{copy_project, line, node_modules};
use support::{Bug, functions, has, lacks, local};

/// A copy of the project, with what it depends on.
fn project() -> Bug {
    let mut bug = Bug::new("js");
    let folder = PathBuf::from(bug.path("project"));
    copy_project("js", &folder);
    symlink(node_modules(), folder.join("node_modules")).unwrap();
    bug.cwd = folder;
    bug.env.push(("NO_COLOR".into(), "1".into()));
    bug
}

/// A folder with these files.
fn files(files: &[(&str, &str)]) -> Bug {
    let mut bug = Bug::new("js");
    bug.cwd = PathBuf::from(bug.path("work"));
    for (name, text) in files {
        let path = bug.cwd.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    bug
}

fn at(file: &str, mark: &str) -> String {
    format!("{file}:{}", line(&format!("projects/js/{file}"), mark))
}

/// The file and line of a report's selected frame.
#[track_caller]
fn place(report: &Value) -> String {
    let stop = &report["stop"];
    let index = usize::try_from(stop["frame"].as_u64().unwrap_or(0)).unwrap();
    let frame = &stop["frames"][index];
    let file = frame["file"].as_str().unwrap_or_else(|| panic!("{report}"));
    format!("{}:{}", Path::new(file).file_name().unwrap().to_str().unwrap(), frame["line"])
}

fn name_of(place: &str) -> &str {
    place.rsplit('/').next().unwrap()
}

/// One call, from the command as a user types it to a stop at this place.
#[track_caller]
fn stops_at(bug: &Bug, place_: &str, command: &[&str]) -> Value {
    let words: Vec<&str> = ["run", "--break", place_, "--"].iter().chain(command).copied().collect();
    let report = bug.json(&words);
    assert_eq!(place(&report), name_of(place_), "{report}");
    report
}

#[test]
fn jest_is_debugged_in_one_call() {
    let bug = project();
    for command in [&["npx", "jest"][..], &["npm", "test"], &["npm", "run", "test", "--", "src/shop.test.js"]] {
        let report = stops_at(&bug, &at("src/shop.js", "sum"), command);
        assert_eq!((local(&report, "price"), local(&report, "sum")), ("1".into(), "0".into()), "{command:?}");
        assert_eq!(report["stop"]["frames"][0]["function"], "total");
        bug.ok(&["stop"]);
        bug.ok(&["unbreak", "--all"]);
    }
}

#[test]
fn vitest_is_debugged_in_one_call() {
    let bug = project();
    let report = stops_at(&bug, &at("src/till.ts", "item"), &["npx", "vitest", "run"]);
    has(&variable_text(&report, "item"), &["tea"]);
    assert_eq!(local(&report, "sum"), "0");
    lacks(&bug.ok(&["breaks"]), &["moved"]);
    bug.ok(&["next"]);
    bug.ok(&["unbreak", "--all"]);
    // It stops where a test fails, too, in the test.
    let report = bug.json(&["continue"]);
    assert_eq!(place(&report), name_of(&at("src/till.spec.ts", "rounds")), "{report}");
    assert_eq!(local(&report, "paid"), "'2.5 EUR'");
    let end = bug.json(&["continue"]);
    assert_eq!(end["ending"]["code"], 1, "{end}");
}

fn variable_text(report: &Value, name: &str) -> String {
    support::variable(&report["stop"]["locals"], name).to_string()
}

#[test]
fn a_test_of_each_runner_stops_where_it_fails() {
    let bug = project();
    let discount = at("src/shop.test.js", "discount");
    let report = bug.json(&["test", "gives a discount (10 %)"]);
    assert_eq!(place(&report), name_of(&discount), "{report}");
    assert_eq!(local(&report, "paid"), "100");
    has(&report["stop"]["reason"].to_string(), &["Expected: 90"]);
    let end = bug.json(&["continue"]);
    assert_eq!(end["ending"]["code"], 1, "it fails once: {end}");
    has(&bug.run(&["test", "nosuch"]).stderr, &["nosuch"]);
    for command in [&["npx", "mocha", "test/shop.cjs"][..], &["node", "--test", "test/shop.cjs"]] {
        let words: Vec<&str> = ["run", "--"].iter().chain(command).copied().collect();
        let report = bug.json(&words);
        assert_eq!(place(&report), name_of(&at("test/shop.cjs", "left")), "{report}");
        assert_eq!(local(&report, "left"), "4", "{command:?}");
        has(&report["stop"]["reason"].to_string(), &["AssertionError"]);
        bug.ok(&["stop"]);
    }
}

#[test]
fn scripts_of_a_package_are_debugged() {
    let bug = project();
    let sum = at("src/shop.js", "sum");
    let report = stops_at(&bug, &sum, &["npm", "start"]);
    assert_eq!(local(&report, "price"), "2");
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["total=5", "exited: code 0"]);
    // One that needs a shell is run by the package manager: the breakpoint is in a process that it started.
    let report = stops_at(&bug, &sum, &["npm", "run", "all"]);
    assert_ne!(report["stop"]["thread"]["id"], 1, "{report}");
    has(&bug.ok(&["threads"]), &["main running", "process "]);
    bug.run(&["run", "--", "npm", "run", "nosuch"]).fails(3, "no script `nosuch`");
    bug.ok(&["stop", "--all"]);
}

#[test]
fn tsx_is_debugged_by_its_own_command() {
    let bug = project();
    fs::write(
        bug.cwd.join("go.ts"),
        "import { sum } from './src/till';\nconsole.log(sum([{ name: 'a', price: 7 }]));\n",
    )
    .unwrap();
    for command in [&["npx", "tsx", "go.ts"][..], &["go.ts"]] {
        let report = stops_at(&bug, &at("src/till.ts", "item"), command);
        has(&variable_text(&report, "item"), &["price", "7"]);
        bug.ok(&["unbreak", "--all"]);
        has(&bug.ok(&["continue"]), &["7 EUR", "exited: code 0"]);
    }
}

/// Generated code beside its map: three lines of the source stand two lines higher in what runs.
#[test]
fn a_map_in_a_file_leads_to_the_source() {
    let source = "type A = number;\ntype B = number;\nlet x: A = 1;\nx += 2;\nconsole.log('x', x);\n";
    let map = r#"{"version":3,"sources":["../src/a.ts"],"names":[],"mappings":"AAEA;AACA;AACA"}"#;
    let code = "let x = 1;\nx += 2;\nconsole.log('x', x);\n//# sourceMappingURL=a.js.map\n";
    let bug = files(&[("src/a.ts", source), ("dist/a.js", code), ("dist/a.js.map", map)]);
    let report = stops_at(&bug, "src/a.ts:4", &["node", "dist/a.js"]);
    assert_eq!(local(&report, "x"), "1");
    has(&bug.ok(&["next"]), &["src/a.ts:5", "x=3"]);
    has(&bug.ok(&["continue"]), &["x 3", "exited: code 0"]);
}

#[test]
fn children_are_threads_of_the_session() {
    let parent = "const { fork } = require('child_process');\n\
                  const child = fork('./child.js', ['3']);\n\
                  child.on('message', (said) => {\n  console.log('said', said);\n});\n";
    let child = "function triple(n) {\n  const result = n * 3;\n  return result;\n}\n\
                 process.send(triple(Number(process.argv[2])));\nprocess.disconnect();\n";
    let bug = files(&[("parent.js", parent), ("child.js", child)]);
    bug.ok(&["break", "parent.js:4"]);
    let report = stops_at(&bug, "child.js:3", &["node", "parent.js"]);
    assert_eq!(local(&report, "result"), "9");
    assert_eq!(bug.json(&["threads"])["threads"].as_array().unwrap().len(), 2);
    let report = bug.json(&["continue"]);
    assert_eq!((place(&report).as_str(), local(&report, "said").as_str()), ("parent.js:4", "9"));
    let end = bug.json(&["continue"]);
    assert_eq!(end["output"]["stdout"], "said 9\n", "{end}");
    assert!(end["output"].get("stderr").is_none(), "{end}");
}

#[test]
fn what_a_module_of_the_newer_kind_throws_is_uncaught() {
    let text = "import { readFileSync } from 'node:fs';\n\
                try { readFileSync('/nosuch'); } catch {}\n\
                class Odd extends Error {}\n\
                function read(name) {\n  const where = `/nosuch/${name}`;\n  return readFileSync(where);\n}\n\
                try { throw new Odd('caught'); } catch {}\n\
                await null;\nread('it');\n";
    let bug = files(&[("a.mjs", text)]);
    let report = bug.json(&["run", "a.mjs"]);
    assert_eq!(place(&report), "a.mjs:6", "{report}");
    has(&report["stop"]["reason"].to_string(), &["Error", "ENOENT"]);
    assert_eq!(local(&report, "where"), "'/nosuch/it'");
    has(&bug.ok(&["exception"]), &["ENOENT"]);
    let end = bug.json(&["continue"]);
    assert_eq!(end["ending"]["code"], 1, "{end}");
    bug.ok(&["catch", "throw", "Odd"]);
    assert_eq!(place(&bug.json(&["run", "a.mjs"])), "a.mjs:8");
}

#[test]
fn functions_are_found_wherever_they_are() {
    let shapes = "export class Shape {\n  area(w, h) {\n    return w * h;\n  }\n  static unit = () => new Shape().area(1, 1);\n}\n\
                  export const area = (r) => {\n  return 3 * r * r;\n};\n";
    let main = "import { Shape, area } from './shapes.mjs';\nconsole.log(area(1), Shape.unit());\n";
    let bug = files(&[("shapes.mjs", shapes), ("main.mjs", main)]);
    let report = bug.json(&["run", "main.mjs", "--break", "Shape.area"]);
    assert_eq!(place(&report), "shapes.mjs:3", "{report}");
    has(&bug.ok(&["args"]), &["w: number = 1", "h: number = 1"]);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["stop"]);
    let report = bug.json(&["run", "main.mjs", "--break", "area"]);
    assert_eq!(place(&report), "shapes.mjs:8", "{report}");
    assert_eq!(place(&bug.json(&["continue"])), "shapes.mjs:3");
}

#[test]
fn looking_changes_nothing() {
    let text = "let count = 0;\nfunction next() {\n  return ++count;\n}\nconst list = Array.from({ length: 5000 }, (_, i) => i);\n\
                const map = new Map([['a', { b: [1, { c: 2 }] }]]);\n\
                class Box { get trap() { count += 100; return 1; } #hidden = 7; shown = 8n; }\n\
                const box = new Box();\nnext();\nconsole.log(count, list.length, map.size, box);\n";
    let bug = files(&[("a.js", text)]);
    stops_at(&bug, "a.js:10", &["node", "a.js"]);
    bug.run(&["print", "next()"]).fails(1, "eval");
    has(&bug.ok(&["eval", "next()"]), &["2"]);
    has(&bug.ok(&["print", "map"]), &["Map(1)", "'a'"]);
    has(&bug.ok(&["print", "map", "--depth", "4"]), &["'a'", "c"]);
    has(&bug.ok(&["print", "box"]), &["Box", "shown: 8n", "#hidden: 7"]);
    has(&bug.ok(&["print", "list", "--from", "4000"]), &["4000", "4001"]);
    has(&bug.ok(&["print", "list.length"]), &["5000"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["2 5000 1"]);
}

#[test]
fn a_condition_that_fails_stops_and_says_so() {
    let bug = files(&[("a.js", "let x = { y: 1 };\nfor (let i = 0; i < 3; i++) {\n  x = i;\n}\n")]);
    bug.ok(&["break", "a.js:3", "--if", "nosuch.y > 3"]);
    has(&bug.ok(&["run", "a.js"]), &["stopped: breakpoint", "condition", "nosuch is not defined"]);
    bug.ok(&["stop"]);
    // One with an effect is evaluated once for each pass.
    bug.ok(&["break", "a.js:3", "--if", "(globalThis.passes = (globalThis.passes ?? 0) + 1) > 2"]);
    let report = bug.json(&["run", "a.js"]);
    assert_eq!((local(&report, "i"), &report["stop"]["condition_failed"]), ("2".into(), &Value::Null), "{report}");
    has(&bug.ok(&["print", "globalThis.passes"]), &["3"]);
}

#[test]
fn a_program_that_waits_is_paused_and_let_go() {
    let text = "setInterval(() => {}, 3600e3);\nconsole.log('waiting');\n";
    let bug = files(&[("a.js", text)]);
    let mut command = Command::new("node");
    let mut child =
        command.arg("a.js").current_dir(&bug.cwd).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    let pid = child.id().to_string();
    let taken = bug.run(&["attach", &pid]);
    assert_eq!(taken.code, 0, "{taken}");
    has(&taken.stdout, &["via node"]);
    has(&bug.ok(&["eval", "1 + 1"]), &["2"]);
    bug.ok(&["continue", "--wait", "0.2s"]);
    has(&bug.ok(&["pause"]), &["stopped: pause"]);
    has(&bug.ok(&["detach"]), &["runs on"]);
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A step out of a callback that Node called does not lead into Node.
#[test]
fn steps_stay_in_the_program() {
    let text = "const { EventEmitter } = require('events');\nconst bus = new EventEmitter();\n\
                bus.on('x', (n) => {\n  console.log('got', n);\n});\nfunction first() {\n  bus.emit('x', 1);\n}\n\
                setTimeout(first, 1);\nsetTimeout(() => {\n  console.log('second');\n}, 30);\n";
    let bug = files(&[("a.js", text)]);
    let report = stops_at(&bug, "a.js:4", &["node", "a.js"]);
    assert_eq!(functions(&report["stop"]["frames"])[1], "first", "{report}");
    for expected in ["a.js:5", "a.js:8"] {
        let report = bug.json(&["next"]);
        assert_eq!(place(&report), expected, "{report}");
    }
    has(&bug.ok(&["next"]), &["second", "exited: code 0"]);
    // Into what Node only passes on; not into what is all Node's.
    bug.ok(&["unbreak", "--all"]);
    stops_at(&bug, "a.js:7", &["node", "a.js"]);
    assert_eq!(place(&bug.json(&["step"])), "a.js:4");
    assert_eq!(place(&bug.json(&["step"])), "a.js:5");
}
