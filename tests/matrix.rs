//! Every command, alias and flag on every adapter version: `docs/adapters.md` is the table this makes.
//!
//! `BUGEYE_UPDATE=1 cargo test --test matrix` writes the page anew.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use support::sides::{self, Side};
use support::{Bug, Run, words};

/// Every side of the page, in its order.
const SIDES: [&Side; 12] = [
    &sides::LLDB_14,
    &sides::LLDB_19,
    &sides::LLDB_22,
    &sides::GDB,
    &sides::CODELLDB,
    &sides::DEBUGPY,
    &sides::JAVA,
    &sides::DELVE,
    &sides::NODE,
    &sides::RUBY,
    &sides::XDEBUG,
    &sides::PERL,
];

/// What an adapter can't do: the row, the variants, and why. Each must say so, with exit code 6.
const HOLES: &[(&str, &[&str], &str)] = &[
    ("continue --thread", TOGETHER, "all threads go on together"),
    ("watch NAME", SCRIPTS, "no data breakpoints"),
    ("watch NAME --read", SCRIPTS, "no data breakpoints"),
    ("watch NAME --access", SCRIPTS, "no data breakpoints"),
    ("watch NAME --read", &["delve"], "variables on the stack are watched for writes alone"),
    ("watch NAME --access", &["delve"], "variables on the stack are watched for writes alone"),
    ("watch NAME --condition EXPR", SCRIPTS, "no data breakpoints"),
    ("watch NAME --read", &["java"], "reads are seen of fields, not of local variables"),
    ("watch NAME --access", &["java"], "reads are seen of fields, not of local variables"),
    ("memory read ADDR --count N", HIGH, "the language shows no memory"),
    ("memory read &NAME --format hex", HIGH, "the language shows no memory"),
    ("memory write ADDR BYTES", HIGH, "the language shows no memory"),
    ("registers", HIGH, "the language has no registers"),
    ("registers NAME", HIGH, "the language has no registers"),
    ("disassemble", HIGH, "no machine code"),
    ("disassemble --count N", HIGH, "no machine code"),
    ("disassemble --source", HIGH, "no machine code"),
    ("print NAME --format address", HIGH, "a name has no address"),
    ("jump FILE:LINE", &["java", "node", "ruby", "xdebug", "perl"], "the interpreter can't go on from another line"),
    ("modules", &["delve"], "a Go program is one file"),
    ("jump FILE:LINE", &["delve"], "Go can't go on from another line"),
    ("trace --calls GLOB", NO_CALLS, "the debugger can't tell of calls"),
    ("trace --calls GLOB", &["lldb 14"], "this build of LLDB has no Python"),
    ("back", NO_GDB, "no recording to go back in"),
    ("reverse-continue", NO_GDB, "no recording to go back in"),
];

/// All but gdb.
const NO_GDB: &[&str] =
    &["lldb 14", "lldb 19", "lldb 22", "codelldb", "debugpy", "java", "delve", "node", "ruby", "xdebug", "perl"];

/// Where no hook tells of calls.
const NO_CALLS: &[&str] = &["java", "delve", "ruby", "xdebug", "perl"];

/// Where all threads stop and go on at once.
const TOGETHER: &[&str] =
    &["lldb 14", "lldb 19", "lldb 22", "codelldb", "debugpy", "java", "delve", "ruby", "xdebug", "perl"];

/// Languages without machine code of their own.
const HIGH: &[&str] = &["debugpy", "java", "node", "ruby", "xdebug", "perl"];

/// Of these, the ones whose debuggers watch no data.
const SCRIPTS: &[&str] = &["debugpy", "node", "ruby", "xdebug", "perl"];

/// A row of the page (none for a step that only leads on), the command, and what its answer has to have.
type Step = (&'static str, &'static str, &'static [&'static str]);

/// One session after the other, in the order of the words a user learns.
const SCRIPT: &[Step] = &[
    ("break FILE:LINE", "break {body}", &["breakpoint 1", "pending"]),
    ("breakpoint list", "breakpoint list", &["breakpoint 1"]),
    ("breaks", "breaks", &["breakpoint 1"]),
    ("breakpoint disable ID", "breakpoint disable 1", &["disabled"]),
    ("breakpoint enable ID", "breakpoint enable 1", &["breakpoint 1"]),
    ("start PROGRAM", "start {program}", &["held", "breakpoint 1", "verified"]),
    ("status", "status", &["held"]),
    ("sessions", "sessions --all", &["s1"]),
    ("continue", "continue", &["breakpoint 1 (hit 1)", "{i}=0"]),
    ("c, resume", "c", &["(hit 2)", "{i}=1"]),
    ("context", "context", &["{function}", "{i}=1"]),
    ("where --context N", "where --context 1", &["{function}"]),
    ("source", "source", &[">"]),
    ("source FILE:LINE --context N", "source {return} --context 1", &["return"]),
    ("list FILE:LINE", "list {return}", &["return"]),
    ("source --function", "source --function", &["work"]),
    ("backtrace", "backtrace", &["0 {function}", "{main}"]),
    ("bt --limit N", "bt --limit 1", &["0 {function}"]),
    ("stack N", "stack 2", &["{function}"]),
    ("backtrace --locals", "backtrace --locals", &["{i} = 1"]),
    ("backtrace --all", "backtrace --all", &["{function}"]),
    ("up", "up", &["frame 1"]),
    ("down", "down", &["frame 0"]),
    ("frame N", "frame 1", &["frame 1"]),
    ("frame", "frame", &["frame 1"]),
    ("", "frame 0", &["frame 0"]),
    ("threads", "threads", &["stopped"]),
    ("thread", "thread", &["thread"]),
    ("locals", "locals", &["{i}: {int} = 1"]),
    ("locals --scope globals", "locals --scope globals", &["{globals}"]),
    ("locals --frame N", "locals --frame 0", &["{i}: {int} = 1"]),
    ("args", "args", &["{n}: {int} = 5"]),
    ("print EXPR", "print {i}", &["{i} = 1"]),
    ("p EXPR", "p {i}", &["{i} = 1"]),
    ("print 'i + 1'", "print '{i} + 1'", &["= 2"]),
    ("print -e A -e B", "print -e {i} -e {n}", &["{i} = 1", "{n} = 5"]),
    ("print NAME --type", "print {i} --type", &["{i}: {int} = 1"]),
    ("print NAME --format hex", "print {n} --format hex", &["0x5"]),
    ("print NAME --format binary", "print {n} --format binary", &["0b101"]),
    ("print NAME --format address", "print {i} --format address", &["0x"]),
    ("eval EXPR", "eval '{n} + 10'", &["15"]),
    ("set NAME VALUE", "set {total} 100", &["100"]),
    ("set 'NAME = VALUE'", "set '{total} = 200'", &["200"]),
    ("raw COMMAND", "raw {raw}", &["{rawed}"]),
    ("memory read ADDR --count N", "memory read &{i} --count 4", &["01 00 00 00"]),
    ("memory read &NAME --format hex", "memory read &{i} --format hex --count 1", &["01"]),
    ("memory write ADDR BYTES", "memory write &{i} 01000000", &["wrote 4"]),
    ("registers", "registers", &["="]),
    ("registers NAME", "registers rip", &["rip = 0x"]),
    ("disassemble", "disassemble", &["->"]),
    ("disassemble --count N", "disassemble --count 2", &["->"]),
    ("disassemble --source", "disassemble --count 4 --source", &["->"]),
    ("modules", "modules", &["{module}"]),
    ("do 'A; B'", "do 'print {i}; print {n}'", &["{i} = 1", "{n} = 5"]),
    ("watch NAME", "watch {total}", &["watch 1"]),
    ("watch list", "watch list", &["{watches}"]),
    ("watch NAME --read", "watch {n} --read", &["read"]),
    ("watch NAME --access", "watch {i} --access", &["read or written"]),
    ("", "do '{unwatch}'", &[]),
    ("watch NAME --condition EXPR", "watch {i} --condition '{i} > 3'", &["if {i} > 3"]),
    ("", "do '{unwatch_last}'", &[]),
    ("continue --thread", "continue --thread", &[]),
    ("", "do '{record}'", &[]),
    ("back", "back", &["{body}"]),
    ("reverse-continue", "reverse-continue", &["{body}"]),
    ("", "do '{unrecord}'", &[]),
    ("next", "next", &["stopped: step", "{after}"]),
    ("n", "n", &["stopped: "]),
    ("step", "step", &["stopped: "]),
    ("s --count N", "s --count 2", &["stopped: "]),
    ("", "continue", &["{body}"]),
    ("unbreak ID", "unbreak 1", &["no breakpoints"]),
    ("until FILE:LINE", "until {return}", &["stopped: reached", "{return}"]),
    ("finish", "finish", &["stopped: step", "{main}"]),
    ("restart", "restart", &["held"]),
    ("stop", "stop", &["ended"]),
    ("break -f NAME", "break -f work", &["work"]),
    ("run PROGRAM", "run {program}", &["in {function}"]),
    ("out", "out", &["{main}"]),
    ("breakpoint remove --all", "breakpoint remove --all", &["no breakpoints"]),
    ("kill", "kill", &["ended"]),
    ("run --break PLACE", "run {program} --break {body}", &["{i}=0"]),
    ("jump FILE:LINE", "jump {return}", &["{return}"]),
    ("", "stop", &["ended"]),
    ("break --condition EXPR", "break {body} --condition '{i} == 3'", &["if {i} == 3"]),
    ("", "run {program}", &["{i}=3"]),
    ("", "stop", &[]),
    ("break --hit-count N", "break {body} --hit-count 4", &["from hit 4"]),
    ("", "run {program}", &["(hit 4)", "{i}=3"]),
    ("", "stop", &[]),
    ("break --log MESSAGE", "break {body} --log 'i is {{i}}'", &["logs"]),
    ("", "run {program}", &["i is 0", "i is 4", "exited: code 0"]),
    ("output", "output --all", &["i is 0"]),
    ("output --tail N", "output --tail 1", &["sum"]),
    ("output --clear", "output --clear", &[]),
    ("", "stop", &[]),
    ("", "unbreak --all", &[]),
    ("break --once", "break {body} --once", &["once"]),
    ("", "run {program}", &["{i}=0"]),
    ("", "breaks", &["no breakpoints"]),
    ("", "stop", &[]),
    ("start --stop-on-entry", "start --stop-on-entry {program}", &["stopped: entry"]),
    ("", "stop", &["ended"]),
    ("step --into NAME", "run {program} --break {call}", &["{call}"]),
    ("", "step --into work", &["in {function}"]),
    ("detach", "detach", &["let go"]),
    ("catch WORD", "catch throw", &["catch 1: throw"]),
    ("catch list", "catch list", &["catch 1: throw"]),
    ("catch remove ID", "catch remove 1", &["by itself"]),
    ("catch throw TYPE", "catch throw ValueError", &["ValueError"]),
    ("catch none", "catch none", &["nothing"]),
    ("", "catch default", &[]),
    ("pause", "run {program} --wait 1s -- spin", &["running"]),
    ("", "pause", &["stopped: pause"]),
    ("await --timeout S", "await --timeout 1", &["stopped: pause"]),
    ("use ID", "use {last}", &["are about"]),
    ("", "stop --all", &["ended"]),
    (
        "trace --at FILE:LINE: EXPR",
        "trace {program} --at '{body}: {i}, {total}'",
        &["5 hits", "4 {i}=3 {total}=3", "exited"],
    ),
    ("trace --at NAME: EXPR", "trace {program} --at 'work: {n}'", &["1 hit", "{n}=5", "{function}"]),
    (
        "trace --stops --no-paths",
        "trace {program} --stops --no-paths --at '{body}: {i}'",
        &["5 hits", "(stops", "{i}=4"],
    ),
    (
        "trace --when EXPR --max-hits N",
        "trace {program} --when '{i} > 1' --max-hits 2 --at '{body}: {i}'",
        &["2 hits", "2 {i}=3"],
    ),
    ("trace --calls GLOB", "trace {program} --calls 'work*'", &["1 call", "{n}=5", "-> 10"]),
    ("", "run {program} --break {body}", &["{i}=0"]),
    ("trace in a session", "trace --at '{after}: {i}, {total}'", &["1 hit", "{i}=0 {total}=0", "stopped: breakpoint"]),
    ("", "stop --all", &["ended"]),
    ("config", "config", &["request_secs"]),
    ("completions SHELL", "completions bash", &["bugeye"]),
];

/// A side, as the script goes through it.
struct Variant(&'static Side);

impl Variant {
    /// A table's words with this variant's names in them.
    fn fill(&self, text: &str, bug: &Bug) -> String {
        let side = self.0;
        let watches = side.hole("watch").is_none();
        let watching = |words: &str, instead: &str| if watches { words } else { instead }.to_string();
        let records = !NO_GDB.contains(&side.name);
        let recording = |words: &str| if records { words } else { "status" }.to_string();
        let reads = !HOLES.iter().any(|(row, names, _)| *row == "watch NAME --read" && names.contains(&side.name));
        let all = if reads { "watch remove 1; watch remove 2; watch remove 3" } else { "watch remove 1" };
        let last = if reads { "watch remove 4" } else { "watch remove 2" };
        let mut filled = text
            .replace("{record}", &recording("raw record full; next"))
            .replace("{unrecord}", &recording("raw record stop"))
            .replace("{program}", &side.program())
            .replace("{function}", &side.function("work"))
            .replace("{main}", side.main)
            .replace("{int}", side.int)
            .replace("{module}", side.module)
            .replace("{raw}", &format!("'{}'", side.raw.0))
            .replace("{rawed}", side.raw.1)
            .replace("{globals}", side.globals)
            .replace("{watches}", &watching("watch 1", "no watches"))
            .replace("{unwatch}", &watching(all, "status"))
            .replace("{unwatch_last}", &watching(last, "status"));
        for name in ["i", "n", "total"] {
            filled = filled.replace(&format!("{{{name}}}"), &side.var(name));
        }
        for mark in ["body", "after", "return", "call"] {
            let name = format!("{{{mark}}}");
            if filled.contains(&name) {
                filled = filled.replace(&name, &side.at(mark));
            }
        }
        if filled.contains("{last}") {
            let sessions = bug.json(&["sessions"]);
            filled = filled.replace("{last}", sessions["sessions"][0]["id"].as_str().unwrap());
        }
        filled
    }

    /// Goes through the script; answers what each row came to.
    fn try_all(&self) -> BTreeMap<&'static str, &'static str> {
        let bug = self.0.bug();
        let mut rows = BTreeMap::new();
        for (row, command, parts) in SCRIPT {
            let filled = self.fill(command, &bug);
            let run = bug.run(&words(&filled));
            let hole = HOLES.iter().find(|(name, variants, _)| name == row && variants.contains(&self.0.name));
            if let Some((_, _, why)) = hole {
                self.must_refuse(&run, why);
                rows.insert(*row, *why);
                continue;
            }
            assert_eq!(run.code, 0, "{}: {run}", self.0.name);
            for part in *parts {
                let part = self.fill(part, &bug);
                assert!(run.stdout.contains(&part), "{}: no {part:?} in {run}", self.0.name);
            }
            if !row.is_empty() {
                rows.insert(*row, "");
            }
        }
        rows
    }

    fn must_refuse(&self, run: &Run, why: &str) {
        assert_eq!(run.code, 6, "{}: unsupported because {why}, yet {run}", self.0.name);
        assert!(run.stderr.contains("hint: "), "{run}");
    }
}

fn page(results: &[BTreeMap<&'static str, &'static str>]) -> String {
    let mut page = String::from(
        "# Adapters\n\nWhat works on which adapter. This page is made by `tests/matrix.rs`, which gives every command below to the \
         real adapter\nand checks its answer; `BUGEYE_UPDATE=1 cargo test --test matrix` writes it anew. *Yes* is a command that \
         worked, the\nrest says why it can't: the command answers so itself, with exit code 6.\n\n",
    );
    let names: Vec<&str> = SIDES.iter().map(|side| side.name).collect();
    let _ = writeln!(page, "| command | {} |", names.join(" | "));
    let _ = writeln!(page, "|---|{}", "---|".repeat(names.len()));
    let rows = SCRIPT.iter().map(|(row, ..)| *row).filter(|row| !row.is_empty());
    for row in rows {
        let cells: Vec<&str> = results
            .iter()
            .map(|result| result.get(row).copied().map_or("?", |why| if why.is_empty() { "yes" } else { why }))
            .collect();
        let _ = writeln!(page, "| `{}` | {} |", row.replace('|', "\\|"), cells.join(" | "));
    }
    page
}

#[test]
fn every_command_works_on_every_adapter_or_says_why_not() {
    let results: Vec<_> = std::thread::scope(|scope| {
        let tries: Vec<_> = SIDES.iter().map(|side| scope.spawn(|| Variant(side).try_all())).collect();
        tries.into_iter().map(|result| result.join().unwrap()).collect()
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/adapters.md");
    let page = page(&results);
    if std::env::var_os("BUGEYE_UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == page, "docs/adapters.md is not what the adapters do: BUGEYE_UPDATE=1 cargo test --test matrix");
}
