//! Traces of Python: the hook in the program itself sees what the debugger would, in every process and thread, whatever
//! becomes of the program.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::fixtures::at;
use crate::support::{Bug, has, until};

const BASIC: &str = "python/loop_basic.py";
const STDIN: &str = "python/loop_stdin.py";
const FAMILY: &str = "python/family.py";

/// Traces a program of the test's own; `BREAK:mark` is the place.
fn trace(bug: &Bug, name: &str, code: &str, expressions: &str, flags: &[&str]) -> Value {
    let file = bug.write(name, code);
    let line = code.lines().position(|line| line.contains("# BREAK:")).unwrap() + 1;
    let place = format!("{file}:{line}: {expressions}");
    let words: Vec<&str> =
        ["trace", "--at", &place].iter().chain(flags).chain(&["--", "python3", &file]).copied().collect();
    bug.json(&words)
}

fn rows(result: &Value, names: &[&str]) -> Vec<Vec<String>> {
    super::forms::values(result, names)
}

fn functions(hit: &Value) -> Vec<&str> {
    hit["frames"].as_array().unwrap().iter().map(|frame| frame["function"].as_str().unwrap()).collect()
}

#[test]
fn a_loop_has_its_values_before_and_after_by_hook_and_by_stops() {
    let bug = Bug::new("python");
    for (flags, way) in [(&[][..], "in process"), (&["--no-paths"], "in process"), (&["--stops"], "stops")] {
        let (body, after) = (format!("{}: i, sum", at(BASIC, "body")), format!("{}: sum", at(BASIC, "after")));
        let words: Vec<&str> = ["trace", "--at", &body, "--at", &after]
            .iter()
            .chain(flags)
            .chain(&["--", "python3", "loop_basic.py"])
            .copied()
            .collect();
        let result = bug.json(&words);
        assert_eq!((&result["way"], &result["total"]), (&json!(way), &json!(10)), "{result}");
        let of = |point: u64, name: &str| -> Vec<String> {
            let hits = result["hits"].as_array().unwrap().iter().filter(|hit| hit["point"] == point);
            hits.map(|hit| hit["values"][name].as_str().unwrap().to_string()).collect()
        };
        assert_eq!(of(1, "i"), ["0", "1", "2", "3", "4"]);
        assert_eq!(of(1, "sum"), ["0", "0", "1", "3", "6"]);
        assert_eq!(of(2, "sum"), ["0", "1", "3", "6", "10"]);
        let hit = &result["hits"][0];
        assert_eq!(hit["thread"], json!({ "id": 1, "name": "MainThread" }), "{hit}");
        if flags != ["--no-paths"] {
            assert_eq!(functions(hit), ["work_basic", "main", "<module>"]);
        }
        assert_eq!(result["output"]["stdout"], "sum=10\n");
        assert_eq!(result["exit"], json!({ "kind": "exited", "code": 0 }));
    }
}

#[test]
fn what_it_reads_reaches_it() {
    let bug = Bug::new("python");
    let input = bug.write("input", "4\n");
    let place = format!("{}: i, acc", at(STDIN, "body"));
    let after = format!("{}: acc", at(STDIN, "after"));
    let words = ["trace", "--stdin", &input, "--at", &place, "--", "python3", "loop_stdin.py"];
    assert_eq!(rows(&bug.json(&words), &["i", "acc"]), [["1", "1"], ["2", "1"], ["3", "2"], ["4", "6"]]);
    let words = ["trace", "--stdin", &input, "--at", &after, "--", "python3", "loop_stdin.py"];
    assert_eq!(rows(&bug.json(&words), &["acc"]), [["1"], ["2"], ["6"], ["24"]]);
}

const VALUES: &str = r#"import collections, dataclasses, enum

@dataclasses.dataclass
class Point:
    x: int
    y: float = 1.5

class Plain:
    def __init__(self, n):
        self.n, self.name, self.__own = n, "p%d" % n, 4

class Bad:
    def __repr__(self):
        raise ValueError("no repr")

class Lines:
    def __repr__(self):
        return "one\ntwo \x1b[31m é"

class Color(enum.Enum):
    RED = 1

def work():
    i, neg, big, f, nan, flag, none = 42, -7, 10**40, 1.5, float("nan"), True, None
    s, long, b, c = "it's \"q\"\n\té\u202e", "x" * 500, b"\x00\xffab", 1 + 2j
    lst, many, tup, d, st = [1, "a", None, [1, [2, [3]]]], list(range(1000)), (1,), {"k": [1, 2], 3: {4: 5}}, {3, 1}
    dq, nt = collections.deque([1, 2]), collections.namedtuple("NT", "a b")(1, 2)
    pt, pl, nest, bad, lines, color = Point(1), Plain(1), [Plain(2), Plain(3)], Bad(), Lines(), Color.RED
    g, limit, huge = (k for k in lst), 2, 10**5000
    return i  # BREAK:here

work()
"#;

#[test]
fn values_are_as_print_shows_them() {
    let bug = Bug::new("python");
    let all: [&[&str]; 4] = [
        &["i", "neg", "big", "f", "nan", "flag", "none", "s", "long", "b", "c", "huge"],
        &["lst", "many", "tup", "d", "st", "dq", "nt", "pt", "pl", "nest", "bad", "lines", "color"],
        &[
            "i + neg",
            "lst[0]",
            "len(lst)",
            "d['k']",
            "pl.n",
            "pl.__own",
            "pl.nope",
            "undefined",
            "1 / 0",
            "lst[9]",
            "i +",
        ],
        &[
            "[v for v in lst if v != limit]",
            "sum(n for n in range(limit))",
            "(lambda: limit)()",
            "f'{i}:{f}'",
            "g is g",
            "isinstance(i, int)",
            "Color",
            "__name__",
            "sorted(st)",
        ],
    ];
    let told = |result: &Value| (result["hits"][0]["values"].clone(), result["hits"][0]["unavailable"].clone());
    for expressions in all {
        let list = expressions.join(", ");
        let hook = trace(&bug, "values.py", VALUES, &list, &[]);
        assert_eq!(hook["way"], "in process");
        // Each hit is then looked at as `print` does.
        let stops = trace(&bug, "values.py", VALUES, &list, &["--stops"]);
        assert_eq!(stops["way"], "stops");
        let (hook, stops) = (told(&hook), told(&stops));
        for name in expressions {
            let address = |text: &Value| {
                let text = text.as_str().unwrap_or_default().to_string();
                text.split(" at 0x")
                    .map(|part| part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
                    .collect::<String>()
            };
            assert_eq!(address(&hook.0[*name]), address(&stops.0[*name]), "{name}");
            assert_eq!(hook.1[*name], stops.1[*name], "{name}");
        }
    }
    let result = trace(&bug, "values.py", VALUES, "big, nan, s, pl, nest, pl.__own, lines, 1 / 0, nope", &[]);
    let hit = &result["hits"][0];
    let values = &hit["values"];
    assert_eq!(values["big"], format!("1{}", "0".repeat(40)));
    assert_eq!(values["nan"], "nan");
    assert_eq!(values["s"], r#"'it\'s "q"\n\té\u202e'"#);
    assert_eq!(values["pl"], "Plain {n: 1, name: 'p1', _Plain__own: 4}");
    assert_eq!(values["pl.__own"], "4");
    assert_eq!(values["lines"], r"one\ntwo \u{1b}[31m é");
    assert_eq!(hit["unavailable"]["1 / 0"], "ZeroDivisionError: division by zero");
    assert_eq!(hit["unavailable"]["nope"], "NameError: name 'nope' is not defined");
}

#[test]
fn every_kind_of_scope_is_read() {
    let bug = Bug::new("python");
    let cases = [
        (
            "closure",
            "def outer(c):\n    free = 'f' + c\n    def inner(k):\n        return k, free  # BREAK:x\n    return inner(2)\nouter('!')\n",
            "k, free",
            &[&["2", "'f!'"][..]][..],
        ),
        ("class body", "class Body:\n    attr = 5\n    other = attr + 1  # BREAK:x\n", "attr", &[&["5"]]),
        (
            "async",
            "import asyncio\nasync def co(n):\n    await asyncio.sleep(0)\n    return n  # BREAK:x\nasyncio.run(co(4))\n",
            "n",
            &[&["4"]],
        ),
        ("global", "count = 3\ndef f():\n    return count  # BREAK:x\nf()\n", "count, f.__name__", &[&["3", "'f'"]]),
        (
            "lambda",
            "double = lambda q: q * 2  # BREAK:x\nfor n in range(3):\n    double(n)\n",
            "n",
            &[&["<unavailable>"], &["0"], &["1"], &["2"]],
        ),
        (
            "generator",
            "def gen(n):\n    for k in range(n):\n        yield k  # BREAK:x\nlist(gen(3))\n",
            "k, n",
            &[&["0", "3"], &["1", "3"], &["2", "3"]],
        ),
    ];
    for (what, code, expressions, expected) in cases {
        let result = trace(&bug, "scope.py", code, expressions, &[]);
        let names: Vec<&str> = expressions.split(", ").collect();
        assert_eq!(result["way"], "in process", "{what}");
        assert_eq!(rows(&result, &names), expected, "{what}");
    }
}

#[test]
fn children_are_traced_too_and_told_apart() {
    let bug = Bug::new("python");
    let place = format!("{}: number, i, total", at(FAMILY, "work"));
    let three =
        |n: i64| (0..3).map(move |i| vec![n.to_string(), i.to_string(), if i == 2 { n } else { 0 }.to_string()]);
    let cases: [(&[&str], Vec<Vec<String>>); 6] = [
        (&["fork"], three(7).collect()),
        (&["subprocess"], three(5).collect()),
        (&["exec"], three(9).collect()),
        (&["nested"], three(5).collect()),
        (&["processes", "fork", "3"], three(1).chain(three(2)).chain(three(3)).collect()),
        (&["processes", "spawn", "2"], three(1).chain(three(2)).collect()),
    ];
    for (how, expected) in cases {
        let words: Vec<&str> =
            ["trace", "--at", &place, "--", "python3", "family.py"].iter().chain(how).copied().collect();
        let result = bug.json(&words);
        assert_eq!(result["way"], "in process");
        let mut found = rows(&result, &["number", "i", "total"]);
        // Processes at one time come in any order, each in its own.
        found.sort_by_key(|row| row[0].clone());
        assert_eq!(found, expected, "{how:?}: {result}");
        let hits = result["hits"].as_array().unwrap();
        for hit in hits {
            assert_eq!(functions(hit)[..2], ["work", "child"], "{how:?}: {hit}");
            let same = |other: &&Value| other["values"]["number"] == hit["values"]["number"];
            assert!(hits.iter().filter(same).all(|other| other["thread"] == hit["thread"]), "{how:?}");
            let others = hits.iter().filter(|other| !same(other));
            assert!(others.clone().all(|other| other["thread"]["id"] != hit["thread"]["id"]), "{how:?}");
            if how[0] != "exec" {
                has(hit["thread"]["name"].as_str().unwrap(), &["MainThread (pid "]);
            }
        }
        assert_eq!(result.get("notes"), None, "{result}");
    }
}

const THREADS: &str = "import threading
def work(name, n):
    for i in range(n):
        mark = (name, i)
        pass  # BREAK:x
threads = [threading.Thread(target=work, args=(k, 500), name=f'worker-{k}') for k in range(4)]
for t in threads: t.start()
for t in threads: t.join()
";

#[test]
fn threads_lose_and_double_nothing_and_the_limit_is_exact() {
    let bug = Bug::new("python");
    let result = trace(&bug, "threads.py", THREADS, "name, i", &[]);
    assert_eq!(result["total"], 2000);
    let hits = result["hits"].as_array().unwrap();
    for worker in ["0", "1", "2", "3"] {
        let own: Vec<&Value> = hits.iter().filter(|hit| hit["values"]["name"] == worker).collect();
        let expected: Vec<String> = (0..500).map(|i| i.to_string()).collect();
        assert_eq!(own.iter().map(|hit| hit["values"]["i"].as_str().unwrap()).collect::<Vec<_>>(), expected);
        assert!(own.iter().all(|hit| hit["thread"]["name"] == format!("worker-{worker}")), "{}", own[0]);
        assert!(own.iter().all(|hit| hit["thread"]["id"] == own[0]["thread"]["id"]));
    }
    for most in ["1", "777"] {
        let result = trace(&bug, "threads.py", THREADS, "name, i", &["--max-hits", most]);
        assert_eq!(result["total"].to_string(), most, "{result}");
        has(result["limit"].as_str().unwrap(), &["asked for"]);
    }
    // The limit is for all processes together.
    let place = format!("{}: number, i", at(FAMILY, "work"));
    let words = ["trace", "--max-hits", "4", "--at", &place, "--", "python3", "family.py", "processes", "fork", "3"];
    assert_eq!(bug.json(&words)["total"], 4);
}

#[test]
fn recursion_has_a_way_for_each_depth() {
    let bug = Bug::new("python");
    let code = "def fact(n):\n    return 1 if n < 2 else n * fact(n - 1)  # BREAK:x\nfact(4)\n";
    let result = trace(&bug, "fact.py", code, "n", &[]);
    assert_eq!(rows(&result, &["n"]), [["4"], ["3"], ["2"], ["1"]]);
    let depths: Vec<usize> = result["hits"].as_array().unwrap().iter().map(|hit| functions(hit).len()).collect();
    assert_eq!(depths, [2, 3, 4, 5]);
}

#[test]
fn nothing_is_lost_however_the_program_ends() {
    let bug = Bug::new("python");
    let endings = [
        ("os._exit(3)", json!({ "kind": "exited", "code": 3 })),
        ("raise ValueError('at 500')", json!({ "kind": "exited", "code": 1 })),
        ("ctypes.string_at(0)", json!({ "kind": "signalled", "signal": "SIGSEGV" })),
        ("os.kill(os.getpid(), 9)", json!({ "kind": "signalled", "signal": "SIGKILL" })),
    ];
    for (ending, exit) in endings {
        let code = format!(
            "import ctypes, os\nfor i in range(1000):\n    x = i * 2  # BREAK:x\n    if i == 499:\n        {ending}\n"
        );
        let result = trace(&bug, "ends.py", &code, "i", &[]);
        assert_eq!(result["total"], 500, "{ending}: {result}");
        assert_eq!(result["hits"][499]["values"]["i"], "499", "{ending}");
        let kind = &result["exit"]["kind"];
        assert_eq!(kind, &exit["kind"], "{ending}: {}", result["exit"]);
        if kind == "exited" {
            assert_eq!(result["exit"]["code"], exit["code"], "{ending}");
        }
        assert_eq!(result.get("notes"), None, "{ending}");
    }
}

#[test]
fn a_signal_in_the_middle_of_a_hit_does_no_harm() {
    let bug = Bug::new("python");
    let code = "import signal\nseen = 0\ndef handler(*_):\n    global seen\n    seen += 1\nsignal.signal(signal.SIGALRM, handler)\n\
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)\nfor i in range(20000):\n    pass  # BREAK:x\n\
        signal.setitimer(signal.ITIMER_REAL, 0)\nprint('handled', seen > 10)\n";
    for flags in [&[][..], &["--max-hits", "19999"]] {
        let result = trace(&bug, "signal.py", code, "i, seen", flags);
        assert_eq!(result["total"], if flags.is_empty() { 20_000 } else { 19_999 }, "{}", result["limit"]);
        if flags.is_empty() {
            assert_eq!(result["output"]["stdout"], "handled True\n");
        }
    }
}

#[test]
fn conditions_and_steps_choose_hits() {
    let bug = Bug::new("python");
    let code = "for i in range(10):\n    pass  # BREAK:x\n";
    let chosen = |flags: &[&str]| -> Vec<String> {
        rows(&trace(&bug, "when.py", code, "i", flags), &["i"]).into_iter().flatten().collect()
    };
    assert_eq!(chosen(&["--when", "i % 3 == 0"]), ["0", "3", "6", "9"]);
    assert_eq!(chosen(&["--every", "4"]), ["3", "7"]);
    assert_eq!(chosen(&["--every", "2", "--when", "i > 3"]), ["5", "7", "9"]);
    assert!(chosen(&["--when", "i > 100"]).is_empty());
    assert_eq!(trace(&bug, "zero.py", "def f(n):\n    return n  # BREAK:x\n", "n", &[])["total"], 0);
    // A condition that fails is no hit, and is told once, by stops as a breakpoint's is; the program goes on.
    for flags in [&["--when", "6 // (i - 1) > 0"][..], &["--stops", "--when", "6 // (i - 1) > 0"]] {
        let result = trace(&bug, "when.py", code, "i", flags);
        assert_eq!(rows(&result, &["i"]), [["2"], ["3"], ["4"], ["5"], ["6"], ["7"]], "{flags:?}");
        let told = if flags.len() > 2 { &result["stops"][0]["condition_failed"] } else { &result["notes"][0] };
        has(told.as_str().unwrap_or_else(|| panic!("{result}")), &["ZeroDivisionError"]);
    }
}

#[test]
fn what_takes_its_time_or_fails_to_be_shown_is_still_told() {
    let bug = Bug::new("python");
    let code = "import time\nclass Slow:\n    def __repr__(self):\n        time.sleep(0.01)\n        return 'slow'\n\
        class Bad:\n    def __repr__(self):\n        raise RuntimeError('no')\n\
        slow, bad = Slow(), Bad()\nfor i in range(5):\n    pass  # BREAK:x\n";
    let result = trace(&bug, "slow.py", code, "slow, bad, i", &[]);
    assert_eq!(result["total"], 5);
    for (index, hit) in result["hits"].as_array().unwrap().iter().enumerate() {
        assert_eq!((&hit["values"]["slow"], &hit["values"]["i"]), (&json!("slow"), &json!(index.to_string())));
        has(hit["values"]["bad"].as_str().unwrap(), &["Bad"]);
    }
}

/// The daemon's memory that no file backs, in megabytes.
fn memory(bug: &Bug) -> u64 {
    let is_daemon = |(_, words): &&(i32, String)| words.contains(" daemon") || words.starts_with("bugeye-daemon");
    let processes = bug.processes();
    let (pid, _) = processes.iter().find(is_daemon).unwrap_or_else(|| panic!("{processes:?}"));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    peak.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
fn a_million_hits_need_little_memory_and_hold_up_nobody() {
    let bug = Bug::new("python");
    let file = bug.write(
        "million.py",
        "def work(n):\n    total = 0\n    for i in range(n):\n        total += i\nwork(1000000)\n",
    );
    let place = format!("{file}:4: i, total");
    let mut asked = bug.spawn(&["--json", "trace", "--at", &place, "--", "python3", &file]);
    until("it is under way", || {
        let text = bug.ok(&["sessions"]);
        if text.contains("running") { Ok(()) } else { Err(text) }
    });
    let mut slowest = Duration::ZERO;
    while asked.is_running() {
        let began = Instant::now();
        bug.ok(&["sessions"]);
        slowest = slowest.max(began.elapsed());
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let result = asked.wait().json()["result"].take();
    assert_eq!(result["total"], 1_000_000);
    let hits = result["hits"].as_array().unwrap();
    assert!(hits.len() < 11_000, "{}", hits.len());
    assert_eq!(hits.last().unwrap()["values"], json!({ "i": "999999", "total": "499998500001" }));
    let course = &result["places"][0]["courses"][0];
    assert_eq!((&course["numbers"], &course["most"]), (&json!(1_000_000), &json!(999_999.0)));
    let all = fs::File::open(result["file"].as_str().unwrap()).unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(all));
    assert_eq!(lines.filter(|line| line.as_ref().unwrap().starts_with("[1,")).count(), 1_000_000);
    let peak = memory(&bug);
    assert!(peak < 200, "{peak} MB");
}

#[test]
fn a_session_is_traced_in_the_middle_with_its_children_to_come() {
    let bug = Bug::new("python");
    let parent = at(FAMILY, "parent");
    bug.ok(&["run", "family.py", "--stop-on-entry", "--break", &parent, "--", "subprocess"]);
    let place = format!("{}: number, i", at(FAMILY, "work"));
    let result = bug.json(&["trace", "--at", &place]);
    assert_eq!((&result["way"], &result["total"]), (&json!("in process"), &json!(3)), "{result}");
    assert_eq!(rows(&result, &["number", "i"]), [["5", "0"], ["5", "1"], ["5", "2"]]);
    has(&bug.ok(&["print", "codes"]), &["codes = 0"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

const CALLS: &str = "import asyncio, json, threading
class Shop:
    def price(self, item, *rest, tax=1.5, **more):
        if item == 'bad':
            raise KeyError(item)
        return len(item) * tax
def total(items):
    shop, sum = Shop(), 0
    for item in items:
        try:
            sum += shop.price(item, 1, z=2)
        except KeyError:
            pass
    return sum
def gen(n):
    for k in range(n):
        yield k
async def leaf(x):
    await asyncio.sleep(0)
    return x + 1
async def root():
    return [await leaf(1), await leaf(2)]
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)
def main():
    total(['ab', 'bad'])
    list(gen(2))
    asyncio.run(root())
    thread = threading.Thread(target=fact, args=(2,))
    thread.start()
    thread.join()
    json.dumps([1])
main()
";

#[test]
fn calls_are_told_with_arguments_and_what_came_of_them() {
    let bug = Bug::new("python");
    let file = bug.write("calls.py", CALLS);
    let calls = |flags: &[&str]| -> Value {
        let words: Vec<&str> = ["trace"].iter().chain(flags).chain(&["--", "python3", &file]).copied().collect();
        bug.json(&words)
    };
    let result = calls(&["--calls", "*"]);
    let told: Vec<(u64, String, String)> = result["calls"]
        .as_array()
        .unwrap_or_else(|| panic!("{result}"))
        .iter()
        .map(|call| {
            let last = call["function"].as_str().unwrap().rsplit('.').next().unwrap().to_string();
            let came = call["returned"].as_str().or(call["why"].as_str()).unwrap_or_default().to_string();
            (call["depth"].as_u64().unwrap(), last, came)
        })
        .collect();
    let expected = [
        (0, "main", "None"),
        (1, "total", "3.0"),
        (2, "price", "3.0"),
        (2, "price", "raised KeyError: 'bad'"),
        (1, "gen", "None"),
        (1, "root", "[2, 3]"),
        (2, "leaf", "2"),
        (2, "leaf", "3"),
        (0, "fact", "2"),
        (1, "fact", "1"),
    ];
    assert_eq!(told, expected.map(|(depth, name, came)| (depth, name.to_string(), came.to_string())));
    let price = &result["calls"][2];
    let arguments = json!([
        ["self", price["arguments"][0][1]],
        ["item", "'ab'"],
        ["tax", "1.5"],
        ["rest", "(1,)"],
        ["more", "{'z': 2}"]
    ]);
    assert_eq!(price["arguments"], arguments);
    assert_ne!(result["calls"][8]["thread"], result["calls"][0]["thread"]);
    let names = |result: &Value| -> Vec<String> {
        let list = result["calls"].as_array().unwrap().iter();
        list.map(|call| call["function"].as_str().unwrap().to_string()).collect()
    };
    assert_eq!(names(&calls(&["--calls", "f*"])), ["__main__.fact", "__main__.fact"]);
    // The library is told where it is named, and only what the program itself calls there.
    assert_eq!(names(&calls(&["--calls", "json.dumps"])), ["json.dumps"]);
    assert_eq!(names(&calls(&["--calls", "*", "--max-hits", "3"])).len(), 3);
}
