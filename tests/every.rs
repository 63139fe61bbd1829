//! One scenario file, run over every adapter: the same questions, the same answers, in every language.
//!
//! An adapter is an entry of `support/sides.rs` and a line at the end of this file. What it can't do is said there, with
//! the reason, and checked here.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use support::sides::{self, Hole, Side};
use support::{Bug, functions, has, local, until};

/// Stopped at the first pass of the loop's body.
fn at_body(side: &Side) -> Bug {
    let bug = side.bug();
    let report = bug.json(&["run", &side.program(), "--break", &side.at("body"), "--", "loop"]);
    assert_eq!(report["stop"]["frames"][0]["line"], side.line("body"), "{report}");
    bug
}

/// The whole of a run in mode `loop` that is let go.
fn ends(side: &Side, bug: &Bug, sum: &str) {
    bug.ok(&["unbreak", "--all"]);
    let report = bug.json(&["continue"]);
    assert_eq!(report["ending"]["kind"], "exited", "{} {report}", side.name);
    assert_eq!(report["ending"]["code"], 0, "{report}");
    assert_eq!(report["output"]["stdout"], format!("sum={sum}\n"), "{report}");
}

/// Started and held, then every pass of a loop with its values, what changed, and the end.
fn held_then_each_pass(side: &Side) {
    let bug = side.bug();
    let place = side.at("body");
    let held = bug.ok(&["start", &side.program(), "--break", &place, "--", "loop"]);
    has(&held, &["held", &format!("breakpoint 1 {place}"), "bugeye continue"]);
    bug.run(&["locals"]).fails(3, "not started");
    has(&bug.ok(&["status"]), &["held"]);
    let passes = [("0", "0"), ("1", "0"), ("2", "1"), ("3", "3"), ("4", "6")];
    for (pass, (i, total)) in passes.iter().enumerate() {
        let report = bug.json(&["continue"]);
        let stop = &report["stop"];
        assert_eq!(stop["reason"]["breakpoint"]["hit"], pass + 1, "{report}");
        assert_eq!(local(&report, &side.var("i")), *i, "{report}");
        assert_eq!(local(&report, &side.var("total")), *total, "{report}");
        assert_eq!(stop["frames"][0]["line"], side.line("body"));
        assert_eq!(functions(&stop["frames"])[..2], [side.function("work"), side.main.into()], "{report}");
        assert_eq!(report["source"]["current"], side.line("body"));
        if pass > 0 {
            let i = support::variable(&stop["locals"], &side.var("i"));
            assert!(i["change"].to_string().contains(passes[pass - 1].0), "{report}");
        }
    }
    let report = bug.json(&["continue"]);
    assert_eq!(report["ending"]["code"], 0, "{report}");
    assert_eq!(report["output"]["stdout"], "sum=10\n", "{report}");
    has(&bug.ok(&["status"]), &["exited: code 0", "stops 5, hits 5"]);
}

fn function_breakpoint(side: &Side) {
    let bug = side.bug();
    let text = bug.ok(&["start", &side.program(), "--break", "work", "--", "loop"]);
    if side.checks_functions {
        has(&text, &["verified"]);
    }
    let report = bug.json(&["continue"]);
    assert_eq!(functions(&report["stop"]["frames"])[0], side.function("work"), "{report}");
    assert_eq!(report["stop"]["reason"]["breakpoint"]["hit"], 1, "{report}");
    has(&bug.ok(&["args"]), &[&side.var("n"), "5"]);
    ends(side, &bug, "10");
}

fn condition(side: &Side) {
    let bug = side.bug();
    let condition = format!("{} == 3", side.var("i"));
    bug.ok(&["break", &side.at("body"), "--if", &condition]);
    let report = bug.json(&["run", &side.program(), "--", "loop"]);
    assert_eq!((local(&report, &side.var("i")), local(&report, &side.var("total"))), ("3".into(), "3".into()));
    ends(side, &bug, "10");
}

/// A condition that makes no sense is never a silent miss.
fn bad_condition(side: &Side) {
    let bug = side.bug();
    let set = bug.run(&["break", &side.at("body"), "--if", "((("]);
    let run = bug.run(&["run", &side.program(), "--", "loop"]);
    let said = format!("{}{}{}{}", set.stdout, set.stderr, run.stdout, run.stderr);
    assert!(said.contains("condition"), "nothing is said of a condition that can't be read:\n{said}");
}

fn hit_count(side: &Side) {
    let bug = side.bug();
    bug.ok(&["break", &side.at("body"), "--hits", "4"]);
    let report = bug.json(&["run", &side.program(), "--", "loop"]);
    assert_eq!((local(&report, &side.var("i")), local(&report, &side.var("total"))), ("3".into(), "3".into()));
    let report = bug.json(&["continue"]);
    assert_eq!(local(&report, &side.var("i")), "4", "every later pass stops too: {report}");
    ends(side, &bug, "10");
}

fn logpoint(side: &Side) {
    let bug = side.bug();
    let message = format!("i is {{{}}}", side.var("i"));
    bug.ok(&["break", &side.at("body"), "--log", &message]);
    let text = bug.ok(&["run", &side.program(), "--", "loop"]);
    has(&text, &["i is 0", "i is 1", "i is 2", "i is 3", "i is 4", "exited: code 0", "sum=10"]);
}

fn once(side: &Side) {
    let bug = side.bug();
    bug.ok(&["break", &side.at("body"), "--once"]);
    let report = bug.json(&["run", &side.program(), "--", "loop"]);
    assert_eq!(local(&report, &side.var("i")), "0");
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

fn watch(side: &Side) {
    let bug = at_body(side);
    has(&bug.ok(&["watch", &side.var("total")]), &["watch 1"]);
    bug.ok(&["unbreak", "--all"]);
    // The first write is 0 over 0; a debugger that only tells of changes passes over it.
    let mut seen = Vec::new();
    loop {
        let report = bug.json(&["continue"]);
        let Some(reason) = report["stop"]["reason"].get("watch") else { break };
        assert_eq!(functions(&report["stop"]["frames"])[0], side.function("work"), "{report}");
        seen.push(reason["new"].as_str().unwrap().to_string());
        if seen.len() == 6 {
            break;
        }
        if seen.last().is_some_and(|value| value == "10") {
            break;
        }
    }
    seen.dedup();
    seen.retain(|value| value != "0");
    assert_eq!(seen, ["1", "3", "6", "10"]);
}

fn steps(side: &Side) {
    let bug = at_body(side);
    let line = |report: &Value| report["stop"]["frames"][0]["line"].as_u64().unwrap();
    let function = |report: &Value| functions(&report["stop"]["frames"])[0].to_string();
    let over = bug.json(&["next"]);
    assert_eq!((line(&over), function(&over)), (side.line("after").into(), side.function("work")), "{over}");
    assert_eq!(over["stop"]["reason"], "step");
    bug.json(&["continue"]);
    let into = bug.json(&["step"]);
    assert_eq!(function(&into), side.function("add"), "{into}");
    has(&bug.ok(&["print", &side.var("b")]), &["1"]);
    let out = bug.json(&["finish"]);
    assert_eq!(function(&out), side.function("work"), "{out}");
    bug.ok(&["unbreak", "--all"]);
    let until = bug.json(&["until", &side.at("return")]);
    assert_eq!(until["stop"]["reason"], "reached", "{until}");
    assert_eq!(local(&until, &side.var("total")), "10");
    let out = bug.json(&["finish"]);
    assert_eq!(function(&out), side.main, "{out}");
    has(&bug.ok(&["continue"]), &["exited: code 0", "sum=10"]);
}

/// What is only logged ends no step, and loses none: neither where the step ends nor in what it calls.
fn logged_steps(side: &Side) {
    let bug = at_body(side);
    bug.ok(&["break", "add", "--log", "in add"]);
    bug.ok(&["break", &side.at("after"), "--log", "after"]);
    let place = |report: &Value| {
        let top = &report["stop"]["frames"][0];
        (report["stop"]["reason"].clone(), top["line"].as_u64(), functions(&report["stop"]["frames"])[0].to_string())
    };
    let step = serde_json::json!("step");
    for _ in 0..2 {
        let over = bug.json(&["next"]);
        assert_eq!(place(&over), (step.clone(), Some(side.line("after").into()), side.function("work")), "{over}");
        has(&over["output"]["log"].to_string(), &["in add"]);
        let body = bug.json(&["continue"]);
        assert_eq!(body["stop"]["frames"][0]["line"], side.line("body"), "{body}");
    }
    bug.ok(&["unbreak", "1"]);
    let out = bug.json(&["finish"]);
    assert_eq!(functions(&out["stop"]["frames"])[0], side.main, "{out}");
    has(&bug.ok(&["continue"]), &["exited: code 0", "sum=10"]);
}

fn pause(side: &Side) {
    let bug = side.bug();
    has(&bug.ok(&["run", &side.program(), "--wait", "1s", "--", "spin"]), &["running"]);
    until("it says that it spins", || {
        let text = bug.ok(&["output", "--all"]);
        if text.contains("spinning") { Ok(()) } else { Err(text) }
    });
    bug.run(&["locals"]).fails(3, "the program is running");
    has(&bug.ok(&["pause"]), &["stopped: pause"]);
    let stack = bug.json(&["backtrace", "--full"]);
    let frames = stack["stacks"][0]["frames"].as_array().unwrap();
    let spin = side.function("spin");
    assert!(frames.iter().any(|frame| frame["function"] == *spin), "{stack}");
    has(&bug.ok(&["continue", "--wait", "0.3s"]), &["running"]);
    // A breakpoint set while it runs.
    bug.ok(&["break", &side.at("spin")]);
    let report = bug.json(&["await", "--timeout", "20"]);
    assert_eq!(functions(&report["stop"]["frames"])[0], spin, "{report}");
    let first: u64 = local(&report, &side.var("counter")).parse().unwrap();
    let second: u64 = local(&bug.json(&["continue"]), &side.var("counter")).parse().unwrap();
    assert_eq!(second, first + 1);
    has(&bug.ok(&["stop"]), &["ended"]);
}

/// A crash or an uncaught exception stops where it happened.
fn crash(side: &Side) {
    let bug = side.bug();
    let report = bug.json(&["run", &side.program(), "--", "throw"]);
    assert_eq!(report["state"], "stopped", "{report}");
    let reason = report["stop"]["reason"].to_string();
    assert!(reason.contains(side.boom), "no {} in {reason}", side.boom);
    let fail = side.function("fail");
    assert!(functions(&report["stop"]["frames"]).contains(&fail.as_str()), "{report}");
    has(&bug.ok(&["context"]), &[&side.at("throw")]);
    let end = bug.json(&["continue"]);
    assert_eq!(end["state"], "exited", "{end}");
    assert_ne!(end["ending"]["code"], 0, "{end}");
    has(&bug.ok(&["output", "--all"]), &["boom"]);
}

fn threads(side: &Side) {
    let bug = side.bug();
    let report = bug.json(&["run", &side.program(), "--break", &side.at("worker"), "--", "threads"]);
    assert_eq!(functions(&report["stop"]["frames"])[0], side.function("worker"), "{report}");
    let list = bug.json(&["threads"]);
    let threads = list["threads"].as_array().unwrap();
    assert!(threads.len() >= 2, "{list}");
    if side.names_threads {
        assert!(report["stop"]["thread"]["name"].as_str().unwrap().starts_with("worker-"), "{report}");
    }
    let selected = threads.iter().filter(|thread| thread["selected"] == true).count();
    assert_eq!(selected, 1, "{list}");
    has(&bug.ok(&["backtrace", "--all"]), &[&side.function("worker")]);
    // Each worker passes once, whichever is first.
    let mut numbers = vec![local(&report, &side.var("number"))];
    for _ in 0..2 {
        numbers.push(local(&bug.json(&["continue"]), &side.var("number")));
    }
    numbers.sort();
    assert_eq!(numbers, ["1", "2", "3"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "done"]);
}

fn frames(side: &Side) {
    let bug = side.bug();
    let n = side.var("n");
    bug.ok(&["run", &side.program(), "--break", &side.at("bottom"), "--", "deep"]);
    let stack = bug.json(&["backtrace"]);
    let names = functions(&stack["stacks"][0]["frames"]);
    assert!(names[..5].iter().all(|name| *name == side.function("down")), "{stack}");
    assert_eq!(names[5], side.main, "{stack}");
    let value = |words: &[&str]| {
        let words: Vec<&str> = ["print", n.as_str()].iter().chain(words).copied().collect();
        bug.json(&words)["values"][0]["value"]["text"].as_str().unwrap().to_string()
    };
    assert_eq!(value(&[]), "0");
    assert_eq!(value(&["--frame", "2"]), "2");
    has(&bug.ok(&["up"]), &["frame 1", &side.function("down")]);
    assert_eq!(value(&[]), "1");
    has(&bug.ok(&["frame", "4"]), &["frame 4"]);
    assert_eq!(value(&[]), "4");
    bug.ok(&["down"]);
    assert_eq!(value(&[]), "3");
    has(&bug.ok(&["backtrace", "--locals"]), &[&n]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "deep"]);
}

fn values(side: &Side) {
    let bug = side.bug();
    bug.ok(&["run", &side.program(), "--break", &side.at("nested"), "--", "nested"]);
    let thing = side.var("thing");
    let text = bug.ok(&["print", &thing, "--depth", "3"]);
    has(&text, &["thing", "3", "4", "1", "2"]);
    for (path, value) in side.paths.iter().zip(["3", "2"]) {
        let printed = bug.json(&["print", path]);
        assert_eq!(printed["values"][0]["value"]["text"], value, "{printed}");
    }
    let locals = bug.ok(&["locals"]);
    has(&locals, &[&thing, &side.var("words"), "alpha"]);
    bug.run(&["print", "no_such_name"]).fails(1, "no_such_name");
    has(&bug.ok(&["continue"]), &["exited: code 0", "nested"]);
}

fn set_and_eval(side: &Side) {
    let bug = at_body(side);
    let total = side.var("total");
    bug.ok(&["set", &total, "100"]);
    has(&bug.ok(&["print", &total]), &["100"]);
    has(&bug.ok(&["eval", &format!("{total} + 5")]), &["105"]);
    has(&bug.ok(&["print", &format!("{total} + 5")]), &["105"]);
    ends(side, &bug, "110");
}

fn stdin(side: &Side) {
    let bug = side.bug();
    let file = bug.write("lines", "one\ntwo\n");
    let report = bug.json(&["run", &side.program(), "--stdin", &file, "--", "stdin"]);
    assert_eq!(report["output"]["stdout"], "got one\ngot two\n", "{report}");
    assert_eq!(report["ending"]["code"], 0, "{report}");
    bug.ok(&["start", &side.program(), "--", "stdin"]);
    bug.ok(&["input", "three"]);
    bug.ok(&["input", "four", "--eof"]);
    has(&bug.ok(&["continue"]), &["got three", "got four", "exited: code 0"]);
}

fn output_and_exit_code(side: &Side) {
    let bug = side.bug();
    let report = bug.json(&["run", &side.program(), "--", "exit"]);
    assert_eq!(report["ending"]["code"], 3, "{report}");
    assert_eq!(report["output"]["stdout"], "leaving\n", "{report}");
    assert_eq!(report["output"]["stderr"], "complaint\n", "{report}");
    has(&bug.ok(&["output", "--all"]), &["leaving", "complaint"]);
}

fn restart(side: &Side) {
    let bug = at_body(side);
    bug.ok(&["continue"]);
    let report = bug.json(&["restart", "--run"]);
    assert_eq!(local(&report, &side.var("i")), "0", "{report}");
    assert_eq!(report["stop"]["reason"]["breakpoint"]["hit"], 1, "{report}");
    ends(side, &bug, "10");
}

fn entry(side: &Side) {
    let bug = side.bug();
    has(&bug.ok(&["start", "--stop-on-entry", &side.program(), "--", "loop"]), &["stopped: entry"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "sum=10"]);
}

fn detach(side: &Side) {
    let bug = at_body(side);
    has(&bug.ok(&["detach"]), &["let go"]);
    bug.run(&["continue"]).fails(3, "let go");
}

/// A program that was there before, ended with this value.
struct Outside(Child);

impl Outside {
    fn spinning(side: &Side) -> Self {
        let words = side.outside("spin");
        let mut child = Command::new(&words[0]).args(&words[1..]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "spinning\n");
        Self(child)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attach(side: &Side) {
    let bug = side.bug();
    let mut outside = Outside::spinning(side);
    let pid = outside.0.id().to_string();
    let taken = bug.run(&["attach", &pid, "--adapter", side.adapter]);
    assert_eq!(taken.code, 0, "{taken}");
    has(&taken.stdout, &["stopped: "]);
    bug.ok(&["break", &side.at("spin")]);
    let report = bug.json(&["continue"]);
    assert_eq!(functions(&report["stop"]["frames"])[0], side.function("spin"), "{report}");
    let first: u64 = local(&report, &side.var("counter")).parse().unwrap();
    assert!(first > 0);
    has(&bug.ok(&["detach"]), &["runs on"]);
    assert!(outside.0.try_wait().unwrap().is_none(), "it ended with the debugger");
}

/// Runs a scenario on a side, or checks that the hole is one.
fn on(side: &Side, scenario: &str, run: fn(&Side)) {
    match side.hole(scenario) {
        None => run(side),
        Some(Hole::Nothing(why)) => eprintln!("{scenario} on {}: {why}", side.name),
        Some(Hole::Says(why)) => {
            let words = match scenario {
                "watch" => vec!["watch".to_string(), side.var("total")],
                "attach" => {
                    let outside = Outside::spinning(side);
                    let bug = side.bug();
                    let run = bug.run(&["attach", &outside.0.id().to_string(), "--adapter", side.adapter]);
                    assert_eq!(run.code, 6, "unsupported because {why}, yet {run}");
                    return;
                }
                "detach" => vec!["detach".to_string()],
                "set_and_eval" => vec!["set".to_string(), side.var("total"), "100".into()],
                other => panic!("no way to see that {other} is unsupported"),
            };
            let bug = at_body(side);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let run = bug.run(&words);
            assert_eq!(run.code, 6, "unsupported because {why}, yet {run}");
            assert!(run.stderr.contains("hint: "), "{run}");
        }
    }
}

macro_rules! scenarios {
    ($module:ident, $side:expr, [$($name:ident),*]) => {
        mod $module {
            $(#[test]
            fn $name() {
                super::on(&$side, stringify!($name), super::$name);
            })*
        }
    };
}

macro_rules! every {
    ($($module:ident: $side:expr;)*) => {
        $(scenarios!($module, $side, [
            held_then_each_pass, function_breakpoint, condition, bad_condition, hit_count, logpoint, once, watch, steps,
            logged_steps, pause, crash, threads, frames, values, set_and_eval, stdin, output_and_exit_code, restart, entry, detach,
            attach
        ]);)*
    };
}

every! {
    lldb_14: crate::sides::LLDB_14;
    lldb_19: crate::sides::LLDB_19;
    lldb_22: crate::sides::LLDB_22;
    gdb: crate::sides::GDB;
    codelldb: crate::sides::CODELLDB;
    debugpy: crate::sides::DEBUGPY;
    node: crate::sides::NODE;
    tsx: crate::sides::TSX;
    delve: crate::sides::DELVE;
    ruby: crate::sides::RUBY;
    xdebug: crate::sides::XDEBUG;
    perl: crate::sides::PERL;
    java: crate::sides::JAVA;
}
