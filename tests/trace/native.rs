//! Traces of native programs by the hooks inside gdb, LLDB and CodeLLDB, and by stops where there is no hook: exact values,
//! as `print` shows them, whatever way the program takes to a place.

use serde_json::{Value, json};

use crate::forms::values;
use crate::support::fixtures::{at, folder, program};
use crate::support::sides::{CODELLDB, GDB, LLDB_14, LLDB_19, LLDB_22, Side};
use crate::support::{Bug, has};

/// Those with a hook.
const HOOKED: [Side; 4] = [LLDB_19, LLDB_22, GDB, CODELLDB];
const HOOK: &str = "in the debugger";
const PASSES: &str = "c/passes.c";

/// Surroundings of a side, in the folder of a language.
fn bug(side: &Side, language: &str) -> Bug {
    let mut bug = side.bug();
    bug.cwd = folder(language);
    bug
}

/// A trace of a fixture's mark.
fn trace(bug: &Bug, options: &[&str], fixture: &str, mark: &str, texts: &str, arguments: &[&str]) -> Value {
    let (place, program) = (format!("{}: {texts}", at(fixture, mark)), program(fixture));
    let words = ["trace"].iter().chain(options).copied();
    let words: Vec<&str> = words.chain(["--at", &place, "--", &program]).chain(arguments.iter().copied()).collect();
    bug.json(&words)
}

/// Rows of numbers as `values` has them.
fn rows<const N: usize>(rows: &[[i64; N]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(ToString::to_string).collect()).collect()
}

fn functions(hit: &Value) -> Vec<&str> {
    hit["frames"].as_array().unwrap().iter().map(|frame| frame["function"].as_str().unwrap()).collect()
}

#[test]
fn loops_have_their_values_on_every_version() {
    for side in HOOKED.iter().chain([&LLDB_14]) {
        let bug = bug(side, "c");
        let way = if side.name == "lldb 14" { "stops" } else { HOOK };
        let body = trace(&bug, &[], "c/loop_basic.c", "body", "i, sum", &[]);
        assert_eq!(values(&body, &["i", "sum"]), rows(&[[0, 0], [1, 0], [2, 1], [3, 3], [4, 6]]), "{}", side.name);
        assert_eq!((&body["way"], &body["total"], &body["exit"]["code"]), (&json!(way), &json!(5), &json!(0)));
        assert_eq!(functions(&body["hits"][0]), ["work_basic", "main"], "{}", side.name);
        let after = trace(&bug, &["--no-paths"], "c/loop_basic.c", "after", "i, sum", &[]);
        assert_eq!(values(&after, &["i", "sum"]), rows(&[[0, 0], [1, 1], [2, 3], [3, 6], [4, 10]]), "{}", side.name);
        let input = bug.write("four", "4\n");
        let body = trace(&bug, &["--stdin", &input], "c/loop_stdin.c", "body", "i, acc", &[]);
        assert_eq!(values(&body, &["i", "acc"]), rows(&[[1, 1], [2, 1], [3, 2], [4, 6]]), "{}", side.name);
        let after = trace(&bug, &["--stdin", &input], "c/loop_stdin.c", "after", "acc", &[]);
        assert_eq!(values(&after, &["acc"]), rows(&[[1], [2], [6], [24]]), "{}", side.name);
    }
}

#[test]
fn rust_has_the_same_loop() {
    for side in &HOOKED {
        let bug = bug(side, "rust");
        let body = trace(&bug, &[], "rust/loop_basic.rs", "body", "i, sum", &[]);
        assert_eq!(values(&body, &["i", "sum"]), rows(&[[0, 0], [1, 0], [2, 1], [3, 3], [4, 6]]), "{}", side.name);
        assert_eq!(functions(&body["hits"][4]), ["loop_basic::work_basic", "loop_basic::main"], "{}", side.name);
        assert_eq!(body["way"], HOOK);
    }
}

/// What a hook tells is what a look at a stop shows. Adapters cut short what takes them more than a moment: a machine that
/// is busy may need a second look.
#[track_caller]
fn same_as_stops(bug: &Bug, name: &str, fixture: &str, mark: &str, texts: &str) {
    let told = |result: &Value| {
        let hits = result["hits"].as_array().unwrap().iter();
        let told = hits.map(|hit| json!([hit["values"], hit["unavailable"], hit["frames"], hit["place"]]));
        told.collect::<Vec<Value>>()
    };
    let hook = trace(bug, &[], fixture, mark, texts, &[]);
    assert_eq!(hook["way"], HOOK, "{name}");
    let mut stops = Vec::new();
    for _ in 0..5 {
        let result = trace(bug, &["--stops"], fixture, mark, texts, &[]);
        assert_eq!(result["way"], "stops", "{name}");
        stops = told(&result);
        if stops == told(&hook) {
            return;
        }
    }
    assert_eq!(told(&hook), stops, "{name}");
}

#[test]
fn values_are_as_a_stop_shows_them() {
    let c = "text, buffer, numbers, grid, corner, here, nothing, colour, number, ratio, half, yes, no, negative, big, huge, \
             letter, quote, shape, *shape, shape->origin, shape->name, numbers[1], grid[1], &corner, nosuch, global_counter, \
             &numbers, *here, shape->origin.x, numbers[colour - 6], negative * 2";
    let rust = "shape, names, numbers, owned, borrowed, some, none, good, bad, point, pair, slice, boxed, flag, letter, ages, \
                count, point.x, nosuch";
    for side in &HOOKED {
        same_as_stops(&bug(side, "c"), side.name, "c/values.c", "values", c);
        let bug = bug(side, "cpp");
        let method = "this, sum, item, items_, counts_, discount, this->items_, item.name, *this";
        same_as_stops(&bug, side.name, "cpp/containers.cpp", "method", method);
        same_as_stops(&bug, side.name, "cpp/containers.cpp", "template", "values, best");
        let bug = crate::native::bug(side, "rust");
        same_as_stops(&bug, side.name, "rust/values.rs", "values", rust);
    }
}

#[test]
fn containers_grow_from_hit_to_hit() {
    for side in &HOOKED {
        let bug = bug(side, "cpp");
        let result = trace(&bug, &[], "cpp/containers.cpp", "method", "item.name, sum, items_", &[]);
        let all = match side.adapter {
            "gdb" => r#"[{name = "tea", price = 4}, {name = "milk", price = 2}]"#,
            _ => r#"size=2 [{name:"tea", price:4}, {name:"milk", price:2}]"#,
        };
        let expected = [["\"tea\"", "0", all], ["\"milk\"", "4", all]];
        assert_eq!(values(&result, &["item.name", "sum", "items_"]), expected, "{}", side.name);
        let frames = functions(&result["hits"][0]);
        assert!(frames[0].starts_with("shop::Basket::total") && frames[1] == "main", "{frames:?}");
    }
}

#[test]
fn threads_keep_their_order_and_none_is_lost() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let result = trace(&bug, &[], PASSES, "step", "who, i, product", &["threads"]);
        assert_eq!(result["total"], 200, "{}", side.name);
        let all = values(&result, &["who", "i", "product"]);
        for who in 1..=4 {
            let mine = |row: &&Vec<String>| row[0] == who.to_string();
            let own: Vec<Vec<String>> = all.iter().filter(mine).cloned().collect();
            let expected: Vec<[i64; 3]> = (0..50).map(|i| [who, i, who * i]).collect();
            assert_eq!(own, rows(&expected), "{} {who}", side.name);
        }
        // Each thread has a number of its own.
        let hits = result["hits"].as_array().unwrap();
        let pairs = hits.iter().map(|hit| (hit["thread"]["id"].as_i64().unwrap(), hit["values"]["who"].to_string()));
        assert_eq!(pairs.collect::<std::collections::BTreeSet<_>>().len(), 4, "{}", side.name);
    }
}

#[test]
fn unusual_ways_lead_to_hits_too() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let seen = |arguments: &[&str]| trace(&bug, &[], PASSES, "step", "who, i", arguments);
        let recursion = seen(&["recurse", "2"]);
        assert_eq!(values(&recursion, &["i"]), rows(&[[2], [1], [0]]), "{}", side.name);
        assert_eq!(functions(&recursion["hits"][2]), ["step", "recurse", "recurse", "recurse", "main"]);
        let signal = seen(&["signal", "1"]);
        assert_eq!(values(&signal, &["who", "i"]), rows(&[[1, 0], [9, 1], [2, 2]]), "{}", side.name);
        assert_eq!(functions(&signal["hits"][1])[..2], ["step", "handler"], "{}", side.name);
        // A process that is forked off is no part of the trace, and is not harmed by it.
        let fork = seen(&["fork", "1"]);
        assert_eq!(values(&fork, &["who", "i"]), rows(&[[1, 0], [2, 0]]), "{}", side.name);
        // One that becomes another program is.
        let exec = seen(&["exec", "1"]);
        assert_eq!(values(&exec, &["who", "i"]), rows(&[[1, 0], [1, 0], [1, 1]]), "{}", side.name);
        assert_eq!(exec["exit"]["code"], 0, "{}", side.name);
        let rename = seen(&["rename", "1"]);
        let names: Vec<&Value> = rename["hits"].as_array().unwrap().iter().map(|hit| &hit["thread"]["name"]).collect();
        assert_eq!(names, ["c-passes", "renamed"], "{}", side.name);
        let early = seen(&["exit", "2"]);
        assert_eq!((values(&early, &["i"]), &early["exit"]["code"]), (rows(&[[0], [1]]), &json!(3)), "{}", side.name);
        let never = seen(&["never"]);
        assert_eq!((&never["total"], &never["exit"]["code"]), (&json!(0), &json!(0)), "{}", side.name);
    }
}

#[test]
fn a_crash_at_hit_500_loses_none() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let result = trace(&bug, &[], PASSES, "step", "i", &["crash", "500"]);
        let expected: Vec<[i64; 1]> = (0..500).map(|i| [i]).collect();
        assert_eq!(values(&result, &["i"]), rows(&expected), "{}", side.name);
        let stop = &result["stops"][0];
        has(&stop["reason"].to_string(), &["SIGSEGV"]);
        assert_eq!(stop["line"], crate::support::fixtures::line(PASSES, "crash"), "{}", side.name);
        has(&result["exit"].to_string(), &["SIGSEGV"]);
    }
}

#[test]
fn conditions_counts_and_limits_are_exact() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let seen = |options: &[&str]| trace(&bug, options, PASSES, "step", "i", &["plain", "100"]);
        assert_eq!(values(&seen(&["--when", "i > 96"]), &["i"]), rows(&[[97], [98], [99]]), "{}", side.name);
        assert_eq!(values(&seen(&["--every", "40"]), &["i"]), rows(&[[39], [79]]), "{}", side.name);
        let some = seen(&["--when", "i % 2 == 1", "--every", "20"]);
        assert_eq!(values(&some, &["i"]), rows(&[[39], [79]]), "{}", side.name);
        let most = seen(&["--max-hits", "7"]);
        assert_eq!(values(&most, &["i"]), rows(&[[0], [1], [2], [3], [4], [5], [6]]), "{}", side.name);
        assert_eq!((&most["total"], &most["limit"]), (&json!(7), &json!("7 hits were asked for")), "{}", side.name);
    }
}

#[test]
fn what_cant_be_read_says_why() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let result = trace(&bug, &[], "c/loop_basic.c", "body", "i, nosuch", &[]);
        assert_eq!(values(&result, &["i", "nosuch"])[4], ["4", "<unavailable>"], "{}", side.name);
        has(result["hits"][0]["unavailable"]["nosuch"].as_str().unwrap(), &["nosuch"]);
        // An expression that would change the program is not evaluated.
        let result = trace(&bug, &[], "c/loop_basic.c", "body", "i, i++, sum = 7", &[]);
        let expected = [["0", "<unavailable>", "<unavailable>"], ["1", "<unavailable>", "<unavailable>"]];
        assert_eq!(values(&result, &["i", "i++", "sum = 7"])[..2], expected, "{}", side.name);
        has(&result["output"].to_string(), &["sum=10"]);
    }
}

#[test]
fn a_pass_whose_condition_fails_is_no_hit() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        // The first and the last have nothing next.
        let seen = |options: &[&str]| trace(&bug, options, PASSES, "node", "i, p->v", &["list"]);
        let failed = |result: &Value| {
            let notes: Vec<&str> = result["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            notes.into_iter().filter(|note| note.contains("could not be evaluated, which is no hit")).count()
        };
        let some = seen(&["--when", "p->next->v > 3"]);
        assert_eq!(values(&some, &["i", "p->v"]), rows(&[[2, 1], [3, 8]]), "{}", side.name);
        assert_eq!((failed(&some), &some["exit"]["code"]), (1, &json!(0)), "{}: {some}", side.name);
        // It does not count as a pass either.
        let second = seen(&["--when", "p->next->v > 3", "--every", "2"]);
        assert_eq!(values(&second, &["i", "p->v"]), rows(&[[3, 8]]), "{}", side.name);
        let none = seen(&["--when", "nosuch > 1"]);
        assert_eq!((&none["total"], failed(&none), &none["exit"]["code"]), (&json!(0), 1, &json!(0)), "{none}");
        has(&none["notes"].to_string(), &["nosuch"]);
        let fine = seen(&["--when", "i % 2 == 1 && squares[1] == 4"]);
        assert_eq!((values(&fine, &["i", "p->v"]), failed(&fine)), (rows(&[[1, 9], [3, 8]]), 0), "{}", side.name);
        // One that calls is evaluated once at each pass: `step` leaves what it returns in `last`.
        let once = trace(&bug, &["--when", "step(2, last + 1) > 4"], PASSES, "node", "i, last", &["list"]);
        assert_eq!(values(&once, &["i", "last"]), rows(&[[1, 6], [2, 20], [4, 18]]), "{}: {once}", side.name);
    }
}

#[test]
fn one_trace_after_another_in_a_session() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let (bottom, unwind) = (at("c/recursion.c", "bottom"), at("c/recursion.c", "unwind"));
        bug.ok(&["run", "--break", &at("c/recursion.c", "call"), "--", &program("c/recursion.c")]);
        bug.ok(&["unbreak", "--all"]);
        bug.ok(&["break", "--once", &bottom]);
        let entered = |result: &Value| calls(result).len();
        let first = bug.json(&["trace", "--calls", "fact*"]);
        assert_eq!((entered(&first), &first["state"]), (5, &json!("stopped")), "{}", side.name);
        // What is entered already is not told again, and the first trace tells nothing any more.
        bug.ok(&["break", "--once", &unwind]);
        let second = bug.json(&["trace", "--calls", "fact*"]);
        assert_eq!((entered(&second), &second["state"]), (0, &json!("stopped")), "{}", side.name);
        has(&bug.ok(&["print", "n"]), &["= 2"]);
        let third = bug.json(&["trace", "--max-hits", "1", "--at", &format!("{unwind}: n, below")]);
        assert_eq!(values(&third, &["n", "below"]), rows(&[[3, 2]]), "{}", side.name);
        let fourth = bug.json(&["trace", "--max-hits", "1", "--at", &format!("{unwind}: n, below")]);
        assert_eq!(values(&fourth, &["n", "below"]), rows(&[[4, 6]]), "{}", side.name);
        has(&bug.ok(&["next"]), &["stopped: step"]);
        let list = if side.adapter == "gdb" { "maint info breakpoints" } else { "breakpoint list" };
        let left = bug.ok(&["raw", list]);
        assert!(!left.contains("recursion.c:"), "{}: {left}", side.name);
        let text = bug.ok(&["continue"]);
        has(&text, &["exited", "factorial=120"]);
        bug.close();
    }
}

#[test]
fn a_trace_that_was_never_taken_away_disturbs_no_other() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let place = at("c/loop_basic.c", "body");
        bug.ok(&["run", "--break", &place, "--", &program("c/loop_basic.c")]);
        bug.ok(&["unbreak", "--all"]);
        let one = bug.json(&["trace", "--max-hits", "1", "--at", &format!("{place}: i")]);
        assert_eq!(values(&one, &["i"]), rows(&[[1]]), "{}", side.name);
        // A breakpoint that calls what is no more, and one of a hook that nobody removes.
        let line = crate::support::fixtures::line("c/loop_basic.c", "after");
        let stray = match side.adapter {
            "gdb" => format!(
                "python bugeye_hook.ready('/dev/null', 0, 0); bugeye_hook.add(1, {{'source': 'loop_basic.c', 'line': {line}}}, None, 1, [])"
            ),
            _ => {
                "script import lldb; lldb.debugger.GetSelectedTarget().BreakpointCreateByLocation('loop_basic.c', LINE)\
                  .SetScriptCallbackFunction('bugeye_hook.hit')"
                    .replace("LINE", &line.to_string())
            }
        };
        bug.ok(&["raw", &stray]);
        let rest = bug.json(&["trace", "--at", &format!("{place}: i, sum")]);
        assert_eq!(values(&rest, &["i", "sum"]), rows(&[[2, 1], [3, 3], [4, 6]]), "{}", side.name);
        assert_eq!((&rest["exit"]["code"], &rest["stops"]), (&json!(0), &json!(null)), "{}: {rest}", side.name);
        bug.close();
    }
}

#[test]
fn places_are_lines_functions_and_addresses() {
    for side in &HOOKED {
        let bug = bug(side, "c");
        let (body, program) = (at("c/loop_basic.c", "body"), program("c/loop_basic.c"));
        let (by_line, by_function) = (format!("{body}: i"), "work_basic: n");
        let result = bug.json(&["trace", "--at", by_function, "--at", &by_line, "--at", "nosuch: n", "--", &program]);
        let points: Vec<&Value> = result["hits"].as_array().unwrap().iter().map(|hit| &hit["point"]).collect();
        assert_eq!(points, [1, 2, 2, 2, 2, 2], "{}", side.name);
        assert_eq!(result["hits"][0]["values"]["n"], "5", "{}", side.name);
        assert_eq!(result["places"][2]["hits"], 0);
        has(result["places"][2]["why"].as_str().unwrap(), &["no code of this program comes from there"]);
        // The end of the loop's block has no code of its own.
        let line = crate::support::fixtures::line("c/loop_basic.c", "after") + 1;
        let result = bug.json(&["trace", "--at", &format!("loop_basic.c:{line}: sum"), "--", &program]);
        assert_eq!((values(&result, &["sum"]), &result["places"][0]["moved_to"]), (rows(&[[10]]), &json!(line + 1)));
        // In a session, from where it stands.
        bug.ok(&["run", "--break", &body, "--", &program]);
        let command = if side.adapter == "gdb" { "info registers rip" } else { "register read rip" };
        let registers = bug.ok(&["raw", command]);
        let address = registers.split_whitespace().find(|word| word.starts_with("0x")).unwrap();
        bug.ok(&["unbreak", "--all"]);
        let result = bug.json(&["trace", "--at", &format!("*{address}: i, sum")]);
        let expected = rows(&[[1, 0], [2, 1], [3, 3], [4, 6]]);
        assert_eq!(values(&result, &["i", "sum"]), expected, "{}", side.name);
        assert_eq!(result["way"], HOOK, "{}", side.name);
    }
}

/// Each call as `depth function(arguments) -> value`, or `!` and why there is none.
fn calls(result: &Value) -> Vec<String> {
    let list = result["calls"].as_array().unwrap_or_else(|| panic!("{result}"));
    let call = |call: &Value| {
        let pairs = call["arguments"].as_array().unwrap().iter();
        let pairs: Vec<String> =
            pairs.map(|pair| format!("{}={}", pair[0].as_str().unwrap(), pair[1].as_str().unwrap())).collect();
        let (function, depth) = (call["function"].as_str().unwrap(), &call["depth"]);
        let end = match (call["returned"].as_str(), call["why"].as_str()) {
            (Some(value), _) => format!(" -> {value}"),
            (None, Some(why)) => format!(" ! {why}"),
            (None, None) => String::new(),
        };
        format!("{depth} {function}({}){end}", pairs.join(", "))
    };
    list.iter().map(call).collect()
}

#[test]
fn calls_are_told_with_arguments_values_and_depth() {
    let (gone, whole) =
        (" ! it was left by an exception or a jump", " ! a value of type Triple is not read where it is returned");
    for side in &HOOKED {
        let bug = bug(side, "c");
        let result = bug.json(&["trace", "--calls", "fact*", "--", &program("c/recursion.c")]);
        let expected = [
            "0 factorial(n=5) -> 120",
            "1 factorial(n=4) -> 24",
            "2 factorial(n=3) -> 6",
            "3 factorial(n=2) -> 2",
            "4 factorial(n=1) -> 1",
        ];
        assert_eq!(calls(&result), expected, "{}", side.name);
        let result = bug.json(&["trace", "--calls", "fact*", "--max-hits", "2", "--", &program("c/recursion.c")]);
        assert_eq!(calls(&result).len(), 2, "{}", side.name);
        let result = bug.json(&["trace", "--calls", "*", "--", &program("cpp/leaves.cpp")]);
        let expected = [
            "0 main() -> 0".to_string(),
            "1 handler(number=14)".into(),
            "2 odd(n=1) -> true".into(),
            format!("1 jumps(n=1){gone}"),
            format!("2 jumps(n=0){gone}"),
            "1 catches(n=1) -> -1".into(),
            format!("2 throws(n=1){gone}"),
            format!("3 throws(n=0){gone}"),
            format!("1 triple(n=5){whole}"),
            "1 name(letter='x') -> \"x\"".into(),
            "1 odd(n=4) -> false".into(),
            "1 half(x=3) -> 1.5".into(),
        ];
        assert_eq!(calls(&result), expected, "{}", side.name);
        let result =
            bug.json(&["trace", "--calls", "*::area", "--calls", "values::insp*", "--", &program("rust/values.rs")]);
        let told = calls(&result);
        let ends: Vec<&str> = told.iter().map(|call| call.rsplit(" -> ").next().unwrap()).collect();
        assert_eq!(ends, ["0", "12", "12", "28"], "{told:?}");
        assert!(told[..3].iter().all(|call| call.starts_with("0 values::Shape::area(self=")), "{told:?}");
        bug.run(&["trace", "--calls", "nosuch*", "--", &program("c/recursion.c")])
            .fails(3, "no function of this program is called like that");
    }
    let bug = bug(&LLDB_14, "c");
    bug.run(&["trace", "--calls", "fact*", "--", &program("c/recursion.c")]).fails(6, "can't tell of calls");
}

/// The folders below /usr that people build in are theirs.
#[test]
fn own_code_is_what_no_system_brings() {
    let mut script = include_str!("../../src/adapters/hooks/common.py").to_string();
    script.push_str("os.path.isfile = lambda file: True\n");
    let own = [
        "/usr/src/app/a.c",
        "/usr/local/app/a.c",
        "/usr/local/src/a.c",
        "/home/u/lib/a.c",
        "/app/a.c",
        "/work/cargo/a.rs",
    ];
    let foreign = [
        "/usr/include/c++/12/vector",
        "/usr/lib/gcc/x86_64-linux-gnu/12/include/mmintrin.h",
        "/usr/local/include/boost/any.hpp",
        "/usr/src/debug/glibc/malloc.c",
        "/rustc/90c5/library/core/src/fmt.rs",
        "/usr/local/cargo/registry/src/index/serde/lib.rs",
        "/home/u/.cargo/registry/src/index/serde/lib.rs",
        "/root/.rustup/toolchains/stable/lib/rustlib/src/rust/library/std/src/rt.rs",
    ];
    script.push_str(&format!("assert all(map(is_own, {own:?})) and not any(map(is_own, {foreign:?}))\n"));
    script.push_str("assert [bare('a::f<int>(int)'), last('a::b<c::d>::f'), bare('m::g::h0123456789abcdef')] == ['a::f<int>', 'f', 'm::g']\n");
    let done = std::process::Command::new("python3").args(["-c", &script]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
