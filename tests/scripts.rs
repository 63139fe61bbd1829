//! Ruby, PHP and Perl: what their interpreters do beside the scenarios that every language has, on small real projects.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::path::PathBuf;

use serde_json::Value;
use support::fixtures::{self, copy_project, line};
use support::{Bug, functions, has, lacks, local, until};

/// A copy of a project, from whose folder commands are given.
fn project(name: &str) -> Bug {
    let mut bug = Bug::new("c");
    let folder = PathBuf::from(bug.path("project"));
    copy_project(name, &folder);
    bug.cwd = folder;
    bug
}

fn at(project: &str, file: &str, mark: &str) -> String {
    format!("{file}:{}", line(&format!("projects/{project}/{file}"), mark))
}

/// Function, line and reason of a report's selected frame.
#[track_caller]
fn stopped(report: &Value) -> (String, u64, String) {
    let stop = &report["stop"];
    let frame = &stop["frames"][usize::try_from(stop["frame"].as_u64().unwrap_or_else(|| panic!("{report}"))).unwrap()];
    (frame["function"].as_str().unwrap().into(), frame["line"].as_u64().unwrap(), stop["reason"].to_string())
}

fn mark(project: &str, file: &str, mark: &str) -> u64 {
    line(&format!("projects/{project}/{file}"), mark).into()
}

/// A program that was let go runs to its end.
fn runs_on(name: &str, words: &[&str], place: &str) {
    let bug = project(name);
    let file = bug.path("written");
    let words: Vec<&str> = ["run", "--break", place, "--"].iter().chain(words).chain(&["-", &file]).copied().collect();
    has(&bug.ok(&words), &["stopped: breakpoint"]);
    has(&bug.ok(&["detach"]), &["let go"]);
    until("it runs to its end", || {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text == "done" { Ok(()) } else { Err(text) }
    });
}

#[test]
fn ruby_in_one_call() {
    let bug = project("minitest");
    let report = bug.json(&["run", "--break", &at("minitest", "lib/shop.rb", "add"), "--", "ruby", "-W0", "main.rb"]);
    assert_eq!(stopped(&report).0, "add", "{report}");
    assert_eq!((local(&report, "name"), local(&report, "price")), ("\"tea\"".into(), "3".into()));
    assert_eq!(functions(&report["stop"]["frames"])[1], "block in <main>");
    // Every frame has its variables, and can be evaluated in.
    has(&bug.ok(&["print", "s.items.size + 40", "--frame", "1"]), &["= 40"]);
    has(&bug.ok(&["args"]), &["name", "tea", "price"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["number -1", "total 4", "exited: code 0"]);
}

#[test]
fn ruby_methods_are_told_apart() {
    let bug = project("minitest");
    let report = bug.json(&["run", "--break", "Shop.open", "main.rb"]);
    assert_eq!(stopped(&report).1, mark("minitest", "lib/shop.rb", "open"), "{report}");
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["break", "Shop#total", "--if", "items.size == 2"]);
    let report = bug.json(&["continue"]);
    assert_eq!(stopped(&report).1, mark("minitest", "lib/shop.rb", "total"), "{report}");
    bug.ok(&["break", "Other#total"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn ruby_stops_at_what_is_caught_only_when_asked() {
    let bug = project("minitest");
    has(&bug.ok(&["run", "./main.rb"]), &["exited: code 0"]);
    bug.ok(&["catch", "throw", "ArgumentError"]);
    let report = bug.json(&["run", "./main.rb"]);
    assert_eq!(stopped(&report).0, "number", "{report}");
    has(&bug.ok(&["exception"]), &["ArgumentError", "invalid value for Integer()"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    bug.ok(&["catch", "default"]);
    let report = bug.json(&["run", "main.rb", "--", "thread"]);
    assert!(stopped(&report).2.contains("KeyError: lost"), "{report}");
    assert_eq!(stopped(&report).1, mark("minitest", "main.rb", "thread"));
    let threads = bug.json(&["threads"]);
    assert_eq!(threads["threads"].as_array().unwrap().len(), 2, "{threads}");
}

#[test]
fn a_test_of_minitest_stops_where_it_fails() {
    let bug = project("minitest");
    let report = bug.json(&["test", "test_wrong"]);
    assert_eq!(stopped(&report).1, mark("minitest", "test/shop_test.rb", "wrong"), "{report}");
    assert!(stopped(&report).2.contains("Expected: 5"), "{report}");
    assert_eq!(local(&report, "wanted"), "5");
    let report = bug.json(&["test", "ShopTest#test_no_price"]);
    assert_eq!(stopped(&report).1, mark("minitest", "lib/shop.rb", "total"), "{report}");
    for passes in ["test_total", "test_expected"] {
        has(&bug.ok(&["test", passes]), &["exited: code 0", "1 runs"]);
    }
    bug.run(&["test", "test_nothing"]).fails(3, "test_nothing");
}

#[test]
fn a_program_that_is_let_go_runs_on() {
    runs_on("minitest", &["ruby", "main.rb"], &at("minitest", "lib/shop.rb", "add"));
    runs_on("php", &["php", "main.php"], &at("php", "src/Shop.php", "add"));
    runs_on("perl", &["perl", "main.pl"], &at("perl", "main.pl", "call"));
}

#[test]
fn php_in_one_call() {
    let bug = project("php");
    let report = bug.json(&["run", "--break", &at("php", "src/Shop.php", "sum"), "--", "php", "main.php"]);
    assert_eq!(stopped(&report).0, "App\\Shop->total", "{report}");
    assert_eq!((local(&report, "$name"), local(&report, "$price")), ("\"tea\"".into(), "3".into()));
    assert_eq!(local(&report, "$this"), "App\\Shop {items: [\"tea\" => 3, \"salt\" => 1]}");
    // Xdebug evaluates in the innermost frame; names and expressions of the others are read all the same.
    has(&bug.ok(&["print", "$note", "--frame", "1"]), &["all"]);
    has(&bug.ok(&["print", "strlen($note) + 40", "--frame", "1"]), &["= 43"]);
    bug.ok(&["set", "$note", "\"other\"", "--frame", "1"]);
    has(&bug.ok(&["print", "$note", "--frame", "1"]), &["other"]);
    bug.run(&["print", "nothing($note)", "--frame", "1"]).fails(1, "undefined function nothing()");
    has(&bug.ok(&["args", "--frame", "1"]), &["$shop", "$note"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["total 4", "total -1", "exited: code 0"]);
}

/// Xdebug has one breakpoint on a line at most; here it is a condition's and that of `until`.
#[test]
fn several_breakpoints_share_a_line_of_php() {
    let bug = project("php");
    let place = at("php", "src/Shop.php", "sum");
    bug.ok(&["break", &place, "--if", "$name === 'salt'"]);
    let report = bug.json(&["run", "./main.php", "--break", "App\\Shop::total"]);
    assert_eq!(stopped(&report).0, "App\\Shop->total", "{report}");
    let report = bug.json(&["until", &place]);
    assert_eq!((stopped(&report).2.as_str(), local(&report, "$name").as_str()), ("\"reached\"", "\"tea\""), "{report}");
    let report = bug.json(&["continue"]);
    assert_eq!(report["stop"]["reason"]["breakpoint"]["ids"], serde_json::json!([1]), "{report}");
    assert_eq!(local(&report, "$name"), "\"salt\"");
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn php_stops_at_what_is_caught_only_when_asked() {
    let bug = project("php");
    let report = bug.json(&["run", "main.php", "--", "fail"]);
    let (function, line, reason) = stopped(&report);
    assert_eq!((function.as_str(), line), ("App\\Shop->total", mark("php", "src/Shop.php", "throw")), "{report}");
    assert!(reason.contains("App\\\\NoPrice: no price for gold"), "{reason}");
    assert_eq!(functions(&report["stop"]["frames"]), ["App\\Shop->total", "{main}"], "it was the second one: {report}");
    let end = bug.json(&["continue"]);
    assert_eq!(end["ending"]["code"], 255, "{end}");
    bug.ok(&["catch", "throw", "App\\NoPrice"]);
    let report = bug.json(&["run", "main.php"]);
    assert_eq!(functions(&report["stop"]["frames"])[1], "total", "{report}");
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn a_program_that_can_not_be_read_says_why() {
    let bug = project("php");
    std::fs::write(bug.cwd.join("bad.php"), "<?php\n$a = ;\n").unwrap();
    bug.run(&["run", "bad.php"]).fails(1, "PHP Parse error");
    std::fs::write(bug.cwd.join("bad.rb"), "def a\n").unwrap();
    has(&bug.ok(&["run", "bad.rb"]), &["exited: code 1", "syntax error"]);
    std::fs::write(bug.cwd.join("bad.pl"), "my $a = ;\n").unwrap();
    has(&bug.ok(&["run", "bad.pl"]), &["exited: code 255", "syntax error"]);
}

#[test]
fn perl_in_one_call() {
    let bug = project("perl");
    let report = bug.json(&["run", "--break", &at("perl", "lib/Shop.pm", "sum"), "--", "perl", "-w", "main.pl"]);
    assert_eq!(stopped(&report).0, "Shop::total", "{report}");
    assert_eq!((local(&report, "$name"), local(&report, "$price")), ("\"salt\"".into(), "1".into()));
    assert_eq!(local(&report, "$self"), "Shop {prices => {salt => 1, tea => 3}}");
    has(&bug.ok(&["locals", "--frame", "1"]), &["$note", "\"all\"", "(1, \"two\", undef)", "(tea => 3)"]);
    has(&bug.ok(&["print", "length($note) + $seen[0] + 40", "--frame", "1"]), &["= 44"]);
    bug.ok(&["set", "$known{tea}", "7", "--frame", "1"]);
    has(&bug.ok(&["print", "$known{tea}", "--frame", "1"]), &["7"]);
    bug.run(&["print", "$nothing"]).fails(1, "$nothing");
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["break", &at("perl", "main.pl", "closure")]);
    let report = bug.json(&["continue"]);
    assert_eq!((local(&report, "$n"), stopped(&report).0), ("40".into(), "__ANON__".into()), "{report}");
    has(&bug.ok(&["print", "$n + $shops"]), &["42"]);
    has(&bug.ok(&["continue"]), &["later 42", "exited: code 0"]);
}

#[test]
fn perl_stops_at_what_is_caught_only_when_asked() {
    let bug = project("perl");
    let report = bug.json(&["run", "./main.pl", "--", "fail"]);
    let (function, line, reason) = stopped(&report);
    assert_eq!((function.as_str(), line), ("Shop::total", mark("perl", "lib/Shop.pm", "throw")), "{report}");
    assert!(reason.contains("Shop::NoPrice"), "{reason}");
    assert_eq!(functions(&report["stop"]["frames"])[1], "<main>", "it was the second one: {report}");
    assert_ne!(bug.json(&["continue"])["ending"]["code"], 0);
    bug.ok(&["catch", "throw", "Shop::NoPrice"]);
    let report = bug.json(&["run", "./main.pl"]);
    assert_eq!(functions(&report["stop"]["frames"])[1..3], ["total", "(eval)"], "{report}");
    bug.ok(&["catch", "default"]);
    let report = bug.json(&["run", "main.pl", "--break", "Shop::new"]);
    assert_eq!(local(&report, "$class"), "\"Shop\"", "{report}");
}

#[test]
fn a_test_of_perl_is_a_file() {
    let bug = project("perl");
    let report = bug.json(&["test", "shop", "--break", &at("perl", "t/shop.t", "test")]);
    assert_eq!(stopped(&report).1, mark("perl", "t/shop.t", "test"), "{report}");
    has(&bug.ok(&["continue"]), &["ok 1", "exited: code 0"]);
}

/// The program sees nothing of its debugger.
#[test]
fn a_program_has_its_own_surroundings() {
    let mut bug = project("perl");
    bug.env.push(("OWN".into(), "value".into()));
    let cases = [
        (
            "a.rb",
            "puts ENV.to_h.size, ENV['OWN'], ENV['RUBYOPT'].inspect, $0, ARGV.inspect, defined?(JSON).inspect\n",
            "ruby",
        ),
        ("a.php", "<?php echo count(getenv()), getenv('OWN'), implode(',', $argv), php_ini_loaded_file();\n", "php"),
        (
            "a.pl",
            "print join ',', scalar(keys %ENV), $ENV{OWN}, $0, @ARGV, \"@INC\", exists $INC{'Devel/Bugeye.pm'} ? 1 : 0;\n",
            "perl",
        ),
    ];
    for (name, text, interpreter) in cases {
        let file = bug.cwd.join(name);
        std::fs::write(&file, text).unwrap();
        let file = file.to_str().unwrap();
        let with = bug.json(&["run", "--", interpreter, file, "x y", "z"]);
        let mut plain = std::process::Command::new(interpreter);
        plain.args([file, "x y", "z"]).current_dir(&bug.cwd).env("OWN", "value").env("BUGEYE_HOME", bug.home());
        for hidden in ["BUGEYE_LOG", "BUGEYE_ADAPTER", "RUST_BACKTRACE", "CODEX_STDIN_FILE"] {
            plain.env_remove(hidden);
        }
        let plain = String::from_utf8(plain.output().unwrap().stdout).unwrap();
        assert_eq!(with["output"]["stdout"].as_str().unwrap(), plain, "{name}");
        lacks(&plain, &["engine-"]);
    }
}

fn cmake() -> Bug {
    let bug = project("cmake");
    let adapters = bug.home().join("data/adapters");
    std::os::unix::fs::symlink(fixtures::installed("cmake", "cmake/data/bin/cmake"), adapters.join("cmake")).unwrap();
    bug
}

#[test]
fn cmake_scripts_are_debugged() {
    let bug = cmake();
    let place = at("cmake", "CMakeLists.txt", "body");
    let report = bug.json(&["run", "--break", &place, "--", "cmake", "-S", ".", "-B", "build"]);
    assert_eq!(
        (stopped(&report).0.as_str(), stopped(&report).1),
        ("work", mark("cmake", "CMakeLists.txt", "body")),
        "{report}"
    );
    assert_eq!((local(&report, "i"), local(&report, "total")), ("0".into(), "0".into()));
    assert_eq!(functions(&report["stop"]["frames"]), ["work", "CMakeLists.txt"]);
    has(&bug.ok(&["print", "${n}"]), &["5"]);
    bug.run(&["print", "nothing"]).fails(1, "no variable nothing");
    bug.run(&["print", "i + 1"]).fails(6, "names of variables");
    bug.run(&["set", "total", "5"]).fails(6, "names of variables");
    let into = bug.json(&["step"]);
    assert_eq!((stopped(&into).0.as_str(), local(&into, "b")), ("add", "0".into()), "{into}");
    let out = bug.json(&["finish"]);
    assert_eq!(stopped(&out).1, mark("cmake", "CMakeLists.txt", "after"), "{out}");
    bug.ok(&["unbreak", "--all"]);
    let end = bug.json(&["continue"]);
    assert_eq!(end["ending"]["code"], 0, "{end}");
    assert!(end["output"]["stdout"].as_str().unwrap().starts_with("-- sum=10\n"), "{end}");
}

#[test]
fn cmake_stops_at_errors_and_counts() {
    let bug = cmake();
    bug.ok(&["break", &at("cmake", "CMakeLists.txt", "body"), "--hits", "4"]);
    bug.ok(&["break", &at("cmake", "CMakeLists.txt", "after"), "--log", "seen {total}"]);
    let configure = ["cmake", "-S", ".", "-B", "build", "-DMODE=fail"];
    let report = bug.json(&[&["run", "--"], &configure[..]].concat());
    assert_eq!(local(&report, "i"), "3", "{report}");
    bug.ok(&["unbreak", "1"]);
    let report = bug.json(&["continue"]);
    assert_eq!(stopped(&report).1, mark("cmake", "CMakeLists.txt", "fail"), "{report}");
    assert!(stopped(&report).2.contains("boom"), "{report}");
    assert_eq!(bug.json(&["continue"])["ending"]["code"], 1);
    has(&bug.ok(&["output", "--all"]), &["seen 0", "seen 10"]);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["break", &at("cmake", "CMakeLists.txt", "body"), "--if", "i EQUAL 3"]);
    has(&bug.ok(&[&["start", "--stop-on-entry", "--"], &configure[..]].concat()), &["stopped: entry"]);
    has(&bug.ok(&["breaks"]), &["CMake has no conditions"]);
    bug.run(&["run", "--", "cmake", "--build", "build"]).fails(6, "runs no script");
}
