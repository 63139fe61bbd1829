//! What gdb does beyond the scenarios that all adapters share: going back in a recording, and what its side of the
//! protocol leaves out or gets wrong.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::process::{Command, Stdio};

use support::fixtures::{at, program};
use support::sides::{GDB, Side};
use support::{Bug, functions, has, lacks, local, until};

fn on(language: &'static str) -> Bug {
    Side { language, ..GDB }.bug()
}

fn line(report: &serde_json::Value) -> u64 {
    report["stop"]["frames"][0]["line"].as_u64().unwrap()
}

#[test]
fn back_in_a_recording() {
    let bug = on("c");
    let (body, after) = (GDB.line("body").into(), GDB.line("after").into());
    let first = bug.json(&["run", &GDB.program(), "--record", "--break", &GDB.at("after"), "--", "loop"]);
    assert_eq!(line(&first), after, "{first}");
    let second = bug.json(&["continue"]);
    assert_eq!((local(&second, "i"), local(&second, "total")), ("1".into(), "1".into()), "{second}");
    // One line back, before the addition.
    let back = bug.json(&["back"]);
    assert_eq!((line(&back), local(&back, "total")), (body, "0".into()), "{back}");
    let earlier = bug.json(&["reverse-continue"]);
    assert_eq!((line(&earlier), local(&earlier, "i")), (after, "0".into()), "{earlier}");
    has(&bug.ok(&["reverse-continue"]), &["stopped: the recording begins here", "in main"]);
    bug.ok(&["unbreak", "--all"]);
    // Through what was recorded, then on to the program's own end, which can be gone back from.
    has(&bug.ok(&["continue"]), &["the recording ends here"]);
    has(&bug.ok(&["continue"]), &["the program is about to exit"]);
    bug.ok(&["break", &GDB.at("end")]);
    has(&bug.ok(&["reverse-continue"]), &["stopped: breakpoint", "sum=10"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["the program is about to exit"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn back_without_a_recording_says_how_to_begin_one() {
    let bug = on("c");
    bug.ok(&["run", &GDB.program(), "--break", &GDB.at("body"), "--", "loop"]);
    bug.run(&["back"]).fails(3, "bugeye restart --record");
    has(&bug.ok(&["raw", "record full"]), &[]);
    bug.ok(&["next"]);
    has(&bug.ok(&["back"]), &["stopped: ", &GDB.at("body")]);
    has(&bug.ok(&["restart", "--record"]), &["held"]);
    has(&bug.ok(&["continue"]), &["i=0"]);
    bug.ok(&["next"]);
    has(&bug.ok(&["back"]), &["stopped: ", &GDB.at("body")]);
    let lldb = Bug::new("c");
    lldb.run(&["run", &GDB.program(), "--adapter", "lldb", "--record"]).fails(6, "--adapter gdb");
}

/// gdb would count anew whenever the breakpoints of the file are sent again.
#[test]
fn passes_are_counted_once() {
    let bug = on("c");
    bug.ok(&["break", &GDB.at("body"), "--hits", "3"]);
    bug.ok(&["run", &GDB.program(), "--break", &GDB.at("call"), "--", "loop"]);
    let report = bug.json(&["continue"]);
    assert_eq!(local(&report, "i"), "2", "{report}");
    bug.ok(&["break", &GDB.at("return")]);
    let report = bug.json(&["continue"]);
    assert_eq!(local(&report, "i"), "3", "{report}");
    assert_eq!(report["stop"]["reason"]["breakpoint"]["hit"], 4, "{report}");
}

#[test]
fn print_runs_nothing() {
    let bug = on("c");
    bug.ok(&["run", &GDB.program(), "--break", &GDB.at("body"), "--", "loop"]);
    let sign = bug.path("it-ran");
    for expression in [format!("$_shell(\"touch {sign}\")"), "total = 5".into(), "add(1, 2)".into(), "i++".into()] {
        bug.run(&["print", &expression]).fails(1, "print only reads");
    }
    assert!(!std::path::Path::new(&sign).exists());
    // A call runs the program for a moment: it stands where it stood.
    has(&bug.ok(&["eval", "add(1, 2)"]), &["3"]);
    has(&bug.ok(&["context"]), &["stopped: breakpoint 1 (hit 1)", "i=0"]);
    has(&bug.ok(&["print", "total + 1"]), &["= 1"]);
}

#[test]
fn a_watch_ends_with_its_function() {
    let bug = on("c");
    bug.ok(&["run", &GDB.program(), "--break", &GDB.at("body"), "--", "loop"]);
    bug.ok(&["watch", "seen", "--read"]);
    bug.ok(&["watch", "total", "--if", "total > 5"]);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["watch", "remove", "1"]);
    has(&bug.ok(&["continue"]), &["watch 2 total: 3 -> 6"]);
    has(&bug.ok(&["continue"]), &["watch 2 total: 6 -> 10"]);
    has(&bug.ok(&["continue"]), &["watch 2 total is over", "in main"]);
    has(&bug.ok(&["watch", "list"]), &["no watches"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "sum=10"]);
}

#[test]
fn while_it_runs() {
    let bug = on("c");
    bug.ok(&["run", &GDB.program(), "--wait", "1s", "--", "spin"]);
    has(&bug.ok(&["threads"]), &["running"]);
    // gdb takes a line while the program runs, and a function when it stands.
    has(&bug.ok(&["break", "-f", "spin"]), &["pending", "next stop"]);
    bug.run(&["raw", "info threads"]).fails(3, "the program is running");
    bug.ok(&["pause"]);
    has(&bug.ok(&["breaks"]), &["spin: verified"]);
    bug.ok(&["continue", "--wait", "0.3s"]);
    // It is let go though it runs.
    has(&bug.ok(&["detach"]), &["runs on"]);
    let pid = bug.json(&["sessions", "--all"])["sessions"][0]["pid"].as_u64().unwrap().to_string();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    has(&status, &["TracerPid:\t0\n"]);
    assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
}

#[test]
fn words_and_surroundings_arrive_as_they_were_given() {
    let bug = on("c");
    let folder = bug.path("a b'c\"d");
    std::fs::create_dir(&folder).unwrap();
    let source = format!("{folder}/args.c");
    std::fs::write(
        &source,
        "#include <stdio.h>\n#include <stdlib.h>\nint main(int c, char **v) {\n    for (int i = 1; i < c; i++)\n        \
         printf(\"[%s]\\n\", v[i]);\n    printf(\"%s %s %s\\n\", getenv(\"ODD\"), getenv(\"BUGEYE_STREAMS\") ? \"left\" : \
         \"gone\", getenv(\"SHELL\"));\n    return 0;\n}\n",
    )
    .unwrap();
    let built = format!("{folder}/args");
    assert!(Command::new("cc").args(["-g", "-o", &built, &source]).status().unwrap().success());
    let words = ["a b", "", "\"q\"", "it's", "$HOME", "*", "new\nline", "`ls`", "grüße", "\\", "!", "-x"];
    let mut command = vec!["run", &built, "--env", "ODD=$HOME \"q\"", "--env", "SHELL=/bin/false", "--"];
    command.extend(words);
    let report = bug.json(&command);
    let expected: String = words.iter().map(|word| format!("[{word}]\n")).collect();
    assert_eq!(report["output"]["stdout"], expected + "$HOME \"q\" gone /bin/false\n", "{report}");
}

#[test]
fn exceptions_of_cpp_with_type_and_text() {
    let bug = on("cpp");
    bug.ok(&["catch", "throw"]);
    let report = bug.json(&["run", &program("cpp/throws.cpp"), "--", "uncaught"]);
    assert_eq!(report["stop"]["reason"]["exception"]["text"], "std::runtime_error: nothing to parse", "{report}");
    let thrown = bug.json(&["exception"]);
    assert_eq!((&thrown["type"], &thrown["message"]), (&"std::runtime_error".into(), &"nothing to parse".into()));
    has(&bug.ok(&["context"]), &[&at("cpp/throws.cpp", "throw")]);
    bug.ok(&["stop"]);
    bug.ok(&["catch", "none"]);
    bug.ok(&["catch", "throw", "std::logic_error"]);
    has(&bug.ok(&["run", &program("cpp/throws.cpp"), "--", "uncaught"]), &["signal SIGABRT", "caught: nothing"]);
    has(&bug.ok(&["continue"]), &["ended by SIGABRT"]);
}

#[test]
fn values_of_cpp() {
    let bug = on("cpp");
    bug.ok(&["run", &program("cpp/containers.cpp"), "--break", &at("cpp/containers.cpp", "values")]);
    let locals = bug.ok(&["locals"]);
    lacks(&locals, &["std::allocator", "__cxx11", "{...}"]);
    has(&locals, &["text: std::string = \"hello, world\"", "numbers: std::vector<int> = [3, 1, 4, 1, 5]"]);
    has(&locals, &["ages: std::map<std::string, int>", "{[\"ada\"]: 36, [\"bob\"]: 41}", "[{name = \"tea\""]);
}

#[test]
fn rust_panics_values_and_functions() {
    let bug = on("rust");
    let report = bug.json(&["run", &program("rust/panics.rs")]);
    assert_eq!(report["stop"]["reason"]["exception"]["text"], "panic", "{report}");
    has(&bug.ok(&["context"]), &[&at("rust/panics.rs", "panic")]);
    has(&bug.ok(&["continue"]), &["exited: code 101"]);
    let values = program("rust/values.rs");
    has(&bug.ok(&["start", "--stop-on-entry", &values]), &["stopped: entry in values::main "]);
    bug.ok(&["stop"]);
    let report = bug.json(&["run", &values, "--break", "inspect", "--break", &at("rust/values.rs", "values")]);
    assert_eq!(functions(&report["stop"]["frames"])[0], "values::inspect", "{report}");
    let text = bug.ok(&["continue"]);
    has(&text, &["some=Some(5)", "none=None", "good=Ok(1)", "bad=Err(\"broken\")", "letter='ß'"]);
    bug.ok(&["stop"]);
    has(&bug.ok(&["run", &values, "--break", "Shape::area"]), &["in values::Shape::area"]);
    has(&text, &["numbers=[10, 20, 30]", "owned=\"grün 漢字\"", "ages=HashMap<String, u32> {[\"ada\"]: 36}"]);
}

#[test]
fn a_core_file() {
    let bug = on("c");
    let folder = bug.path("crashed");
    std::fs::create_dir(&folder).unwrap();
    let shell = format!("ulimit -c unlimited; cd {folder}; exec {} throw", GDB.program());
    let _ = Command::new("sh").args(["-c", &shell]).stderr(Stdio::null()).status().unwrap();
    let entries = || std::fs::read_dir(&folder).unwrap().flatten().next().map(|entry| entry.path());
    let core = entries().expect("the kernel writes core files where programs run").display().to_string();
    let text = bug.ok(&["start", "--core", &core, &GDB.program()]);
    has(&text, &["stopped: signal SIGSEGV", &GDB.at("throw"), "why=\"boom\"", "via gdb"]);
    has(&bug.ok(&["backtrace"]), &["0 fail", "1 main"]);
    bug.run(&["continue"]).fails(6, "a core file can't run");
}

#[test]
fn a_program_at_an_address() {
    let bug = on("c");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let mut command = Command::new("gdbserver");
    command.args(["--once", &address, &GDB.program(), "loop"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut report = String::new();
    until("it can be attached to", || {
        let run = bug.run(&["attach", &address]);
        report.clone_from(&run.stdout);
        if run.code == 0 { Ok(()) } else { Err(run.to_string()) }
    });
    has(&report, &["stopped: attached", "via gdb"]);
    has(&bug.ok(&["break", &GDB.at("body")]), &["verified"]);
    has(&bug.ok(&["continue"]), &["stopped: breakpoint 1 (hit 1)", "i=0"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    let _ = server.wait();
}

#[test]
fn a_process_that_cannot_be_attached_to_is_told_at_once() {
    let bug = on("c");
    let report = bug.json(&["run", &GDB.program(), "--wait", "1s", "--", "spin"]);
    let pid = report["pid"].as_u64().unwrap().to_string();
    bug.run(&["attach", &pid]).fails(1, "already traced");
}

/// A gdb without the protocol is known before it is started.
#[test]
fn an_old_gdb_says_what_to_do_instead() {
    let bug = Bug::new("c");
    let old = bug.write("gdb", "#!/bin/sh\necho 'GNU gdb (Debian 13.1-3) 13.1'\n");
    assert!(Command::new("chmod").args(["+x", &old]).status().unwrap().success());
    std::fs::create_dir_all(bug.home().join("config")).unwrap();
    bug.write("config/config.toml", &format!("[adapters.gdb]\npath = \"{old}\"\n"));
    bug.run(&["run", &GDB.program(), "--adapter", "gdb"]).fails(6, "bugeye setup lldb");
}
