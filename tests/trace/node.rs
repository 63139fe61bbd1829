//! JavaScript and TypeScript: a hook in every thread of the program.

use serde_json::{Value, json};

use crate::support::fixtures::{at, line, node_modules, program};
use crate::support::{Bug, functions, has};

/// The values of some expressions, hit by hit.
#[track_caller]
fn values(result: &Value, names: &[&str]) -> Vec<Vec<String>> {
    let hits = result["hits"].as_array().unwrap_or_else(|| panic!("{result}"));
    let of = |hit: &Value, name: &&str| hit["values"][*name].as_str().unwrap_or("none").to_string();
    hits.iter().map(|hit| names.iter().map(|name| of(hit, name)).collect()).collect()
}

#[track_caller]
fn assert_hits(result: &Value, names: &[&str], expected: &[&[i64]]) {
    let expected: Vec<Vec<String>> = expected.iter().map(|hit| hit.iter().map(ToString::to_string).collect()).collect();
    assert_eq!(values(result, names), expected, "{result}");
    assert_eq!(result["way"], "in process", "{result}");
}

#[track_caller]
fn trace(bug: &Bug, words: &[&str], command: &[&str]) -> Value {
    let words: Vec<&str> = ["trace"].iter().chain(words).chain(&["--"]).chain(command).copied().collect();
    bug.json(&words)
}

/// Each of these files in a folder of its own.
fn written(files: &[(&str, &str)]) -> (Bug, Vec<String>) {
    let bug = Bug::new("js");
    let paths = files.iter().map(|(name, text)| bug.write(name, text)).collect();
    (bug, paths)
}

fn body(place: &str) -> String {
    format!("{place}: i, sum")
}

const BODY: [&[i64]; 5] = [&[0, 0], &[1, 0], &[2, 1], &[3, 3], &[4, 6]];
const AFTER: [&[i64]; 5] = [&[0, 0], &[1, 1], &[2, 3], &[3, 6], &[4, 10]];

#[test]
fn a_loop_is_told_hit_by_hit() {
    let bug = Bug::new("js");
    let file = program("js/loop_basic.js");
    let result = trace(&bug, &["--at", &body(&at("js/loop_basic.js", "body"))], &["node", &file]);
    assert_hits(&result, &["i", "sum"], &BODY);
    let hit = &result["hits"][0];
    assert_eq!(functions(&hit["frames"]), ["work_basic", "main", "(module)"]);
    assert_eq!(hit["frames"][1]["line"], line("js/loop_basic.js", "call"));
    assert_eq!(hit["frames"][1]["file"], bug.cwd.join(&file).to_string_lossy().as_ref());
    assert_eq!(hit["thread"], json!({ "id": 1, "name": "main" }));
    assert_eq!(result["exit"]["code"], 0, "{result}");
    let result = trace(&bug, &["--at", &body(&at("js/loop_basic.js", "after")), "--no-paths"], &["node", &file]);
    assert_hits(&result, &["i", "sum"], &AFTER);
    assert!(result["hits"][0].get("frames").is_none(), "{result}");
    bug.close();
}

#[test]
fn a_loop_over_standard_input_is_told_hit_by_hit() {
    let bug = Bug::new("js");
    let (file, input) = (program("js/loop_stdin.js"), bug.write("in", "4\n"));
    for (mark, acc) in [("body", [1, 1, 2, 6]), ("after", [1, 2, 6, 24])] {
        let place = format!("{}: i, acc", at("js/loop_stdin.js", mark));
        let result = trace(&bug, &["--stdin", &input, "--at", &place], &["node", &file]);
        let expected: Vec<Vec<i64>> = (1..=4).zip(acc).map(|(i, acc)| vec![i, acc]).collect();
        assert_hits(&result, &["i", "acc"], &expected.iter().map(Vec::as_slice).collect::<Vec<_>>());
    }
    bug.close();
}

#[test]
fn typescript_is_told_in_its_own_lines() {
    let bug = Bug::new("ts");
    let file = program("ts/loop_basic.ts");
    let tsx = node_modules().join(".bin/tsx").to_string_lossy().into_owned();
    for (mark, expected) in [("body", &BODY), ("after", &AFTER)] {
        let result = trace(&bug, &["--at", &body(&at("ts/loop_basic.ts", mark))], &[&tsx, &file]);
        assert_hits(&result, &["i", "sum"], expected);
        let frames = &result["hits"][0]["frames"];
        assert_eq!(functions(frames)[..3], ["work_basic", "main", "(module)"]);
        assert_eq!(frames[0]["line"], line("ts/loop_basic.ts", mark));
        assert_eq!(frames[1]["line"], line("ts/loop_basic.ts", "call"));
        assert_eq!(frames[1]["file"], bug.cwd.join(&file).to_string_lossy().as_ref());
        // The same as where each hit is a stop.
        let words = ["--stops", "--max-hits", "1", "--at", &body(&at("ts/loop_basic.ts", mark))];
        assert_eq!(*frames, trace(&bug, &words, &[&tsx, &file])["hits"][0]["frames"]);
    }
    bug.close();
}

/// What the hook reads in the program, and what it leaves to the debugger.
const PLAIN: &str = "point.x, map.size, list[5], list.length, bytes.length, text.length, parts[0], plain.nested.deep, \
    list[1] + whole, nosuch, nothing.x, missing.y.z, big + 1n, big + 1, this, whole > 3 ? text : no, plain['b c'], text[0], \
    pass, Math.PI, holes[1], klass.asked, error.message, caused.cause, bare.x, (plain).a, plain.a.b.c, set.size, symbol + 1";
const HARD: &str = "point.norm, point.next, getters.a, proxy.p, point + 1, pattern.flags, JSON.stringify(list), map.get('k'), \
    point?.x, whole = 3, {a: 1}, typeof list, list.map(x => x * 2), crypto, symbol.description";

#[test]
fn values_read_as_print_shows_them() {
    let bug = Bug::new("js");
    let (file, place) = (program("js/values.js"), at("js/values.js", "values"));
    let text = std::fs::read_to_string(bug.cwd.join(&file)).unwrap();
    let (_, list) = text.split_once("BREAK:values").unwrap();
    let names = list.split_once("].length").unwrap().0.replace('\n', " ");
    let mut told = serde_json::Map::new();
    for list in [names.trim().trim_end_matches(','), PLAIN, HARD] {
        let result = trace(&bug, &["--at", &format!("{place}: {list}"), "--no-paths"], &["node", &file]);
        assert_eq!(result["total"], 3, "{result}");
        told.extend(result["hits"][0]["values"].as_object().unwrap().clone());
    }
    bug.run(&["run", "--break", &place, "--", "node", &file]);
    // It stops where a promise is rejected, first.
    let stop = bug.json(&["continue"]);
    assert_eq!(stop["stop"]["frames"][0]["line"], line("js/values.js", "values"), "{stop}");
    assert!(told.len() > 100, "{told:?}");
    for (expression, value) in told {
        let print = bug.run(&["--json", "print", "--", &expression]);
        let shown = match print.json()["result"]["values"][0].get("value") {
            Some(shown) if shown.get("cut").is_some() => format!("{}…", shown["text"].as_str().unwrap()),
            Some(shown) => shown["text"].as_str().unwrap().to_string(),
            None => "<unavailable>".to_string(),
        };
        assert_eq!(value, shown, "{expression}");
    }
    bug.close();
}

#[test]
fn what_can_t_be_read_says_why_and_nothing_is_changed() {
    let bug = Bug::new("js");
    let place = format!("{}: nosuch, point.next, nothing.x, whole = 3, a +", at("js/values.js", "values"));
    let result = trace(&bug, &["--at", &place], &["node", &program("js/values.js")]);
    let hit = &result["hits"][2];
    assert!(hit["values"].as_object().unwrap().values().all(|value| value == "<unavailable>"), "{hit}");
    assert_eq!(hit["unavailable"]["nosuch"], "ReferenceError: nosuch is not defined");
    assert_eq!(hit["unavailable"]["nothing.x"], "TypeError: Cannot read properties of null (reading 'x')");
    has(hit["unavailable"]["point.next"].as_str().unwrap(), &["may change the program"]);
    has(hit["unavailable"]["a +"].as_str().unwrap(), &["SyntaxError"]);
    let place = format!("{}: klass.asked, this.#secret", at("js/values.js", "secret"));
    let place = place.replace("klass", "this.constructor");
    let result = trace(&bug, &["--at", &place], &["node", &program("js/values.js")]);
    assert_eq!(values(&result, &["this.constructor.asked", "this.#secret"]), [["0", "7"]], "{result}");
    bug.close();
}

#[test]
fn a_hundred_thousand_hits_are_all_there() {
    let text = "let sum = 0;\nfor (let i = 0; i < 100000; i++) {\n  sum += i;\n}\n";
    let (bug, files) = written(&[("many.js", text)]);
    let words = ["--no-paths", "--timeout", "300", "--at", &format!("{}:3: i, sum", files[0])];
    let result = trace(&bug, &words, &["node", &files[0]]);
    assert_eq!((&result["total"], &result["places"][0]["hits"]), (&json!(100_000), &json!(100_000)));
    let last = result["hits"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["seq"], &last["values"]["i"]), (&json!(100_000), &json!("99999")));
    assert_eq!(last["values"]["sum"], (99_998_u64 * 99_999 / 2).to_string());
    bug.close();
}

#[test]
fn limits_and_conditions_are_exact() {
    let text = "let n = 0;\nfor (let i = 0; i < 20; i++) {\n  n += i;\n}\nif (n < 0) never();\nfunction never() {\n  n = 1;\n}\n";
    let (bug, files) = written(&[("count.js", text)]);
    let place = format!("{}:3: i", files[0]);
    let told = |words: &[&str]| {
        let words: Vec<&str> = words.iter().chain(&["--at", &place]).copied().collect();
        let result = trace(&bug, &words, &["node", &files[0]]);
        let seen = values(&result, &["i"]).concat().iter().map(|i| i.parse().unwrap()).collect::<Vec<u32>>();
        assert_eq!(result["total"], seen.len(), "{result}");
        (seen, result)
    };
    let (seen, result) = told(&["--max-hits", "7"]);
    assert_eq!((seen, &result["limit"]), ((0..7).collect(), &json!("7 hits were asked for")));
    assert_eq!(told(&["--when", "i % 2 && n > 10"]).0, [7, 9, 11, 13, 15, 17, 19]);
    assert_eq!(told(&["--every", "6"]).0, [5, 11, 17]);
    assert_eq!(told(&["--every", "2", "--when", "i > 9", "--max-hits", "3"]).0, [11, 13, 15]);
    // A condition that fails is no hit, and no silent miss.
    let failing = |condition: &str, why: &str| {
        let (seen, result) = told(&["--when", condition]);
        has(&result["notes"].to_string(), &["could not be evaluated", why]);
        seen
    };
    assert_eq!(failing("i < 3 || (i < 18 ? false : nosuch)", "nosuch is not defined"), [0, 1, 2]);
    assert_eq!(failing("i < 18 ? false : (() => { throw { of: 5 } })()", "{of: 5} was thrown"), Vec::<u32>::new());
    let result = trace(&bug, &["--at", &format!("{}:7: n", files[0])], &["node", &files[0]]);
    assert_eq!((&result["total"], &result["exit"]["code"]), (&json!(0), &json!(0)));
    bug.close();
}

#[test]
fn a_condition_that_can_t_be_parsed_is_told() {
    let text = "class Box {\n  #size = 3;\n  grow(by) {\n    this.#size += by;\n  }\n}\n\
        function out(by) {\n  by++;\n}\nconst box = new Box();\nfor (let by = 0; by < 4; by++) {\n  box.grow(by);\n  out(by);\n}\n";
    let (bug, files) = written(&[("box.js", text)]);
    let told = |line: u32, condition: &str| {
        let words = ["--at", &format!("{}:{line}: by", files[0]), "--when", condition];
        let result = trace(&bug, &words, &["node", &files[0]]);
        assert_eq!(result["way"], "in process", "{result}");
        (values(&result, &["by"]).concat(), result["notes"].to_string())
    };
    let (seen, notes) = told(4, "this.#size > 3");
    assert_eq!((seen, notes.contains("evaluated")), (vec!["2".to_string(), "3".into()], false), "{notes}");
    // It is well-formed elsewhere.
    let (seen, notes) = told(8, "this.#size > 3");
    assert_eq!(seen, Vec::<String>::new());
    has(&notes, &["could not be evaluated", "can't be parsed there"]);
    let (seen, notes) = told(8, "by <");
    assert_eq!(seen, Vec::<String>::new());
    has(&notes, &["could not be evaluated", "SyntaxError"]);
    bug.close();
}

#[test]
fn a_condition_in_a_realm_of_its_own_fails_alike() {
    let text = "const vm = require('vm'), fs = require('fs');\nconst source = fs.readFileSync(__dirname + '/inner.js', 'utf8');\n\
        vm.runInNewContext(source, {}, { filename: __dirname + '/inner.js' });\n";
    let inner = "let total = 0;\nfor (let i = 0; i < 4; i++) {\n  total += i;\n}\n";
    let (bug, files) = written(&[("realm.js", text), ("inner.js", inner)]);
    let place = format!("{}:3: i", files[1]);
    let result = trace(&bug, &["--at", &place, "--when", "i < 2 || nosuch"], &["node", &files[0]]);
    assert_hits(&result, &["i"], &[&[0], &[1]]);
    has(&result["notes"].to_string(), &["could not be evaluated", "nosuch is not defined"]);
    bug.close();
}

#[test]
fn what_was_seen_is_there_however_the_program_ends() {
    let text = "for (let i = 0; i < 1000; i++) {\n  const square = i * i;\n  if (i === 499) end();\n}\n\
        function end() {\n  const how = process.argv[2];\n  if (how === 'throw') throw new RangeError('at 499');\n  \
        if (how === 'exit') process.exit(3);\n  process.kill(process.pid, how);\n  for (;;);\n}\n";
    let (bug, files) = written(&[("ends.js", text)]);
    for how in ["throw", "exit", "SIGKILL"] {
        let words = ["--at", &format!("{}:3: i, square", files[0])];
        let result = trace(&bug, &words, &["node", &files[0], how]);
        assert_eq!(result["total"], 500, "{how}: {result}");
        assert_eq!(values(&result, &["i", "square"])[499], ["499", "249001"]);
        let exit = &result["exit"];
        match how {
            "throw" => {
                has(&result["stops"][0]["reason"].to_string(), &["at 499"]);
                assert_eq!(exit["code"], 1, "{result}");
            }
            "exit" => assert_eq!(exit["code"], 3, "{result}"),
            _ => assert_eq!(exit["signal"], "SIGKILL", "{result}"),
        }
    }
    bug.close();
}

#[test]
fn recursion_has_a_way_for_each_depth() {
    let text = "function down(n) {\n  if (n === 0) return 0;\n  return n + down(n - 1);\n}\ndown(4);\n";
    let (bug, files) = written(&[("down.js", text)]);
    let result = trace(&bug, &["--at", "down: n"], &["node", &files[0]]);
    assert_hits(&result, &["n"], &[&[4], &[3], &[2], &[1], &[0]]);
    let hits = result["hits"].as_array().unwrap();
    for (depth, hit) in hits.iter().enumerate() {
        let expected: Vec<&str> = std::iter::repeat_n("down", depth + 1).chain(["(module)"]).collect();
        assert_eq!(functions(&hit["frames"]), expected);
    }
    assert_eq!(hits[4]["frames"][1]["line"], 3);
    bug.close();
}

#[test]
fn each_worker_and_process_is_a_thread_of_its_own() {
    let work =
        "function work(name) {\n  for (let i = 0; i < 3; i++) {\n    name += i;\n  }\n}\nmodule.exports = work;\n";
    let main = "const { Worker, isMainThread } = require('worker_threads');\nconst work = require('./work.js');\n\
        if (!isMainThread) work('w');\nelse if (process.argv[2]) work('c');\nelse {\n  work('m');\n  \
        new Worker(__filename).on('exit', () => {\n    \
        require('child_process').spawnSync(process.execPath, [__filename, 'child']);\n  });\n}\n";
    let (bug, files) = written(&[("work.js", work), ("main.js", main)]);
    let result = trace(&bug, &["--at", &format!("{}:3: name, i", files[0])], &["node", &files[1]]);
    let of = |name: &str| -> Vec<Vec<String>> {
        ["", "0", "01"].iter().zip(0..).map(|(so_far, i)| vec![format!("'{name}{so_far}'"), i.to_string()]).collect()
    };
    assert_eq!(values(&result, &["name", "i"]), [of("m"), of("w"), of("c")].concat(), "{result}");
    let threads: Vec<(u64, &str)> = result["hits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| (hit["thread"]["id"].as_u64().unwrap(), hit["thread"]["name"].as_str().unwrap()))
        .collect();
    assert_eq!((threads[0], threads[3].0, threads[6].0), ((1, "main"), 2, 3), "{threads:?}");
    assert!(threads[6].1.starts_with("process "), "{threads:?}");
    for (index, caller) in [(0, 6), (3, 3), (6, 4)] {
        assert_eq!(result["hits"][index]["frames"][1]["line"], caller, "{result}");
    }
    bug.close();
}

#[test]
fn modules_async_functions_and_generators_are_seen() {
    let text = "export async function later(n) {\n  await null;\n  const twice = n * 2;\n  return twice;\n}\n\
        function* count() {\n  for (let k = 0; k < 2; k++) {\n    yield k;\n  }\n}\n\
        const order = [];\nPromise.resolve().then(() => order.push('first'));\norder.push(await later(1));\n\
        order.push(...count());\nconsole.log(order.join());\n";
    let (bug, files) = written(&[("m.mjs", text)]);
    let (first, second) = (format!("{}:4: n, twice", files[0]), format!("{}:8: k", files[0]));
    let result = trace(&bug, &["--at", &first, "--at", &second], &["node", &files[0]]);
    assert_eq!(result["total"], 3, "{result}");
    assert_eq!(values(&result, &["twice", "k"]), [["2", "none"], ["none", "0"], ["none", "1"]]);
    assert_eq!(functions(&result["hits"][0]["frames"]), ["later"]);
    assert_eq!(functions(&result["hits"][1]["frames"]), ["count", "(module)"]);
    has(&result["output"].to_string(), &["first,2,0,1"]);
    bug.close();
}

#[test]
fn a_place_in_a_realm_of_its_own_is_seen_too() {
    let text = "const vm = require('vm'), fs = require('fs');\nconst source = fs.readFileSync(__dirname + '/inner.js', 'utf8');\n\
        vm.runInNewContext(source, {}, { filename: __dirname + '/inner.js' });\n";
    let inner = "let total = 0;\nfor (let i = 0; i < 4; i++) {\n  total += i;\n}\n";
    let (bug, files) = written(&[("realm.js", text), ("inner.js", inner)]);
    let result = trace(&bug, &["--max-hits", "3", "--at", &format!("{}:3: i, total", files[1])], &["node", &files[0]]);
    assert_hits(&result, &["i", "total"], &[&[0, 0], &[1, 0], &[2, 1]]);
    assert_eq!(result["limit"], "3 hits were asked for");
    bug.close();
}

#[test]
fn a_live_session_is_traced_to_its_next_stop() {
    let bug = Bug::new("js");
    let file = program("js/loop_basic.js");
    bug.ok(&[
        "run",
        "--break",
        &at("js/loop_basic.js", "call"),
        "--break",
        &at("js/loop_basic.js", "end"),
        "--",
        "node",
        &file,
    ]);
    // A breakpoint of the user's own on the same line keeps its say.
    bug.ok(&["break", &at("js/loop_basic.js", "body"), "--if", "i === 3"]);
    let place = body(&at("js/loop_basic.js", "body"));
    let result = bug.json(&["trace", "--at", &place]);
    assert_hits(&result, &["i", "sum"], &BODY[..4]);
    let result = bug.json(&["trace", "--at", &place]);
    assert_hits(&result, &["i", "sum"], &BODY[4..]);
    assert_eq!(bug.json(&["print", "sum"])["values"][0]["value"]["text"], "10");
    bug.close();
}

/// The line of a stop.
#[track_caller]
fn stands(result: &Value) -> u64 {
    result["stop"]["frames"][0]["line"].as_u64().unwrap_or_else(|| panic!("{result}"))
}

#[track_caller]
fn called(result: &Value) -> Vec<String> {
    let calls = result["calls"].as_array().unwrap_or_else(|| panic!("{result}"));
    let text = |call: &Value| {
        format!("{} {}", call["arguments"][0][1].as_str().unwrap(), call["returned"].as_str().unwrap_or("-"))
    };
    calls.iter().map(text).collect()
}

#[test]
fn nothing_of_a_trace_is_left_in_a_live_session() {
    let text = "'use strict';\nfunction inner(n) {\n  return n + 1;\n}\nfunction main() {\n  inner(1);\n  debugger;\n  \
        inner(2);\n  inner(3);\n  debugger;\n  inner(4);\n  inner(5);\n  debugger;\n  inner(6);\n  inner(7);\n}\nmain();\n";
    let (bug, files) = written(&[("live.js", text)]);
    bug.ok(&["run", "--break", &format!("{}:6", files[0]), "--", "node", &files[0]]);
    for (first, traced) in [(7, "1 2"), (10, "3 4")] {
        let result = bug.json(&["trace", "--calls", "inner"]);
        assert_eq!(called(&result), [traced], "{result}");
        assert_eq!(stands(&bug.json(&["next"])), first + 1);
        assert_eq!(stands(&bug.json(&["next"])), first + 2);
        assert_eq!(bug.json(&["print", "typeof __bugeye__"])["values"][0]["value"]["text"], "'undefined'");
    }
    // Places are traced as before.
    let result = bug.json(&["trace", "--at", &format!("{}:3: n", files[0])]);
    assert_hits(&result, &["n"], &[&[5]]);
    assert_eq!(stands(&bug.json(&["next"])), 14);
    assert_eq!(stands(&bug.json(&["next"])), 15);
    bug.close();
}

#[test]
fn nothing_of_a_trace_is_left_in_a_worker() {
    let text = "const { Worker, isMainThread, parentPort } = require('worker_threads');\nfunction tick(n) {\n  return n + 1;\n}\n\
        if (!isMainThread) {\n  parentPort.on('message', n => {\n    tick(n);\n    parentPort.postMessage(n);\n  });\n\
        } else {\n  const worker = new Worker(__filename);\n  worker.on('message', n => {\n    console.log(n);\n    \
        if (n < 4) worker.postMessage(n + 1);\n    else worker.terminate();\n  });\n  worker.postMessage(1);\n}\n";
    let (bug, files) = written(&[("both.js", text)]);
    bug.ok(&["run", "--break", &format!("{}:13", files[0]), "--", "node", &files[0]]);
    for traced in ["2 3", "3 4"] {
        let result = bug.json(&["trace", "--calls", "tick"]);
        assert_eq!(called(&result), [traced], "{result}");
    }
    bug.ok(&["break", &format!("{}:7", files[0])]);
    assert_eq!(stands(&bug.json(&["continue"])), 7);
    assert_eq!(bug.json(&["print", "typeof __bugeye__"])["values"][0]["value"]["text"], "'undefined'");
    assert_eq!(stands(&bug.json(&["next"])), 8);
    bug.close();
}

#[test]
fn calls_are_told_with_arguments_values_and_depth() {
    let text = "'use strict';\nclass Cart {\n  constructor(items) {\n    this.items = items;\n  }\n  total(rate = 2) {\n    \
        return this.items.map(price => taxed(price, rate)).reduce((a, b) => a + b, 0);\n  }\n}\n\
        function taxed(price, rate) {\n  if (price < 0) throw new RangeError('negative');\n  return price * rate;\n}\n\
        const nothing = () => {};\nfunction drain(n) {\n  while (n > 0) n--;\n}\n\
        async function later(x) {\n  await null;\n  return x;\n}\n\
        function main() {\n  new Cart([1, 2]).total();\n  try {\n    new Cart([-1]).total(3);\n  } catch {}\n  nothing();\n  \
        drain(3);\n  return later('a');\n}\nmain();\n";
    let (bug, files) = written(&[("shop.js", text)]);
    let told = |words: &[&str]| -> (Vec<String>, Value) {
        let result = trace(&bug, words, &["node", &files[0]]);
        let line = |call: &Value| {
            let pair = |pair: &Value| format!("{}={}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
            let arguments: Vec<String> = call["arguments"].as_array().unwrap().iter().map(pair).collect();
            let end = call["returned"].as_str().or(call["why"].as_str()).unwrap_or("-");
            assert_eq!(call["left"], true, "{call}");
            format!("{} {}({}) {end}", call["depth"], call["function"].as_str().unwrap(), arguments.join(", "))
        };
        (result["calls"].as_array().unwrap().iter().map(line).collect(), result)
    };
    let (calls, result) = told(&["--calls", "*"]);
    let expected = [
        "0 main() Promise {<pending>}",
        "1 Cart(items=[1, 2]) -",
        "1 Cart.total(rate=2) 6",
        "2 taxed(price=1, rate=2) 2",
        "2 taxed(price=2, rate=2) 4",
        "1 Cart(items=[-1]) -",
        "1 Cart.total(rate=3) raised RangeError: negative",
        "2 taxed(price=-1, rate=3) raised RangeError: negative",
        "1 nothing() -",
        "1 drain(n=3) -",
        "1 later(x='a') Promise {a}",
    ];
    assert_eq!(calls, expected, "{result}");
    assert_eq!(result["calls"][3]["line"], 10);
    assert_eq!(
        told(&["--calls", "Cart.t*"]).0,
        ["0 Cart.total(rate=2) 6", "0 Cart.total(rate=3) raised RangeError: negative"]
    );
    assert_eq!(told(&["--calls", "shop.dr*"]).0, ["0 drain(n=3) -"]);
    let result = trace(&bug, &["--calls", "t*", "--max-hits", "2"], &["node", &files[0]]);
    assert_eq!(result["calls"].as_array().unwrap().len(), 2, "{result}");
    bug.close();
}
