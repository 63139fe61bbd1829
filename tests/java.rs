//! What is Java's alone: every way to start it, values of its library, expressions, fields that are watched, exceptions,
//! tests under Maven, and programs that were there before.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use support::sides::JAVA;
use support::{Bug, fixtures, functions, has, lacks, local};

fn at(mark: &str) -> String {
    fixtures::at("java/Values.java", mark)
}

/// The fixture, stopped at a mark.
fn stopped_at(mark: &str) -> Bug {
    let bug = JAVA.bug();
    let report = bug.json(&["run", &fixtures::program("java/Values.java"), "--break", &at(mark)]);
    assert_eq!(report["stop"]["frames"][0]["line"], fixtures::line("java/Values.java", mark), "{report}");
    bug
}

fn value(bug: &Bug, expression: &str) -> String {
    let printed = bug.json(&["print", expression]);
    printed["values"][0]["value"]["text"].as_str().unwrap_or_else(|| panic!("{printed}")).to_string()
}

#[test]
fn every_way_to_start_java_is_one_call() {
    let bug = JAVA.bug();
    let jar = JAVA.program();
    let classes = Path::new(&jar).with_extension("classes").display().to_string();
    let place = JAVA.at("body");
    let ways: [&[&str]; 5] = [
        &["java", "-jar", &jar, "loop"],
        &["java", "-ea", "-cp", &classes, "Every", "loop"],
        &["java", "Every.java", "loop"],
        &["Every.java", "loop"],
        &[&jar, "loop"],
    ];
    for way in ways {
        let words: Vec<&str> = ["run", "--break", &place, "--"].iter().chain(way).copied().collect();
        let report = bug.json(&words);
        assert_eq!((local(&report, "i"), local(&report, "n")), ("0".into(), "5".into()), "{way:?} {report}");
        bug.ok(&["stop"]);
    }
}

#[test]
fn a_file_that_does_not_compile_says_what_the_compiler_says() {
    let bug = JAVA.bug();
    let file = bug.write("Broken.java", "class Broken {\n  void main() { int x = ; }\n}\n");
    let run = bug.run(&["run", "--", "java", &file]);
    run.fails(1, "illegal start of expression");
}

#[test]
fn places_are_known_before_their_classes_are_loaded() {
    let bug = JAVA.bug();
    let line = JAVA.line("return") + 2;
    let below = format!("Every.java:{line}");
    let held =
        bug.ok(&["start", &JAVA.program(), "--break", &JAVA.at("body"), "--break", &below, "--break", "Every.add"]);
    has(&held, &["verified", &format!("{below}: moved to line")]);
    lacks(&held, &["pending"]);
    let lines = std::fs::read_to_string(fixtures::folder("java").join("Every.java")).unwrap().lines().count();
    has(&bug.ok(&["break", &format!("Every.java:{lines}")]), &["pending", "no code comes from that line"]);
}

#[test]
fn values_are_shown_as_their_authors_write_them() {
    let bug = stopped_at("shown");
    let expected = [
        ("yes", "true"),
        ("small", "-3"),
        ("letter", "'x'"),
        ("big", "1099511627776"),
        ("third", "0.5"),
        ("half", "1.25"),
        ("text", "\"a \\\"quoted\\\"\\nline\""),
        ("none", "null"),
        ("boxed", "12"),
        ("colour", "GREEN"),
        ("grid", "size=2"),
        ("list", "[4, 5, 6]"),
        ("copy", "[\"one\", \"two\", \"three\"]"),
        ("linked", "[\"l1\", \"l2\"]"),
        ("map", "{\"k\"=1}"),
        ("ordered", "{\"first\"=1, \"second\"=2}"),
        ("tree", "{1=\"a\", 2=\"b\", 3=\"c\"}"),
        ("set", "[\"only\"]"),
        ("deque", "[8, 9]"),
        ("maybe", "Optional[\"here\"]"),
        ("atomic", "3"),
        ("builder", "\"built\""),
        ("error", "IllegalStateException: told"),
        ("mixed", "size=3"),
    ];
    for (name, text) in expected {
        assert_eq!(value(&bug, name), text, "{name}");
    }
    has(&bug.ok(&["print", "shape"]), &["side", "2.5"]);
    has(&bug.ok(&["print", "grid"]), &["grid = size=2 [[1, 2], [3]]"]);
    has(&bug.ok(&["print", "many", "--from", "998"]), &["[0, 5]"]);
    has(&bug.ok(&["print", "list", "--from", "1"]), &["[5, 6]"]);
    has(&bug.ok(&["print", "mixed"]), &["1, \"two\", [3]"]);
}

#[test]
fn expressions_are_paths_literals_comparisons_and_more() {
    let bug = stopped_at("shown");
    let expected = [
        ("grid[0][1]", "2"),
        ("grid.length", "2"),
        ("list[2]", "6"),
        ("ordered[\"second\"]", "2"),
        ("tree[3]", "\"c\""),
        ("copy.size() == 3 && !copy.isEmpty()", "true"),
        ("text.startsWith(\"a\")", "true"),
        ("boxed + 1", "13"),
        ("big / 3 * 2.0", "7.3300775185E11"),
        ("letter + 1", "121"),
        ("letter == 'x'", "true"),
        ("\"n=\" + boxed", "\"n=12\""),
        ("none == null", "true"),
        ("linked[0] == \"l1\"", "true"),
        ("shape instanceof Square", "true"),
        ("shape instanceof Shape", "true"),
        ("shared * 2", "14"),
        ("Values.shared", "7"),
        ("Colour.RED", "RED"),
        ("colour == Colour.GREEN", "true"),
        ("java.lang.Integer.MAX_VALUE", "2147483647"),
        ("(int) half", "1"),
        ("half > 1 ? 1 : 2", "1"),
        ("0xff & 15 | 16", "31"),
        ("(-small) >> 1", "1"),
        ("7 % 4 - 10", "-7"),
    ];
    for (expression, text) in expected {
        assert_eq!(value(&bug, expression), text, "{expression}");
    }
    // What runs code of the program is for `eval` alone.
    bug.run(&["print", "shape.area()"]).fails(1, "bugeye eval");
    bug.run(&["print", "boxed = 3"]).fails(1, "bugeye set");
    for (expression, text) in [
        ("shape.area()", "6.25"),
        ("Math.max(boxed, 3)", "12"),
        ("text.length() + list.indexOf(5)", "16"),
        ("builder.append(\"!\").toString()", "\"built!\""),
        ("colour.name().toLowerCase()", "\"green\""),
    ] {
        has(&bug.ok(&["eval", expression]), &[&format!("= {text}")]);
    }
    bug.run(&["eval", "list.get(7)"]).fails(1, "there is no item 7");
    bug.run(&["eval", "Integer.parseInt(\"x\")"]).fails(1, "NumberFormatException");
    for unsupported in ["new Square()", "() -> 1", "boxed++"] {
        let run = bug.run(&["print", unsupported]);
        run.fails(6, "in an expression");
        has(&run.stderr, &["hint: paths, literals, comparisons"]);
    }
    bug.run(&["print", "nothing"]).fails(1, "there is no `nothing` here");
    bug.run(&["print", "none.size"]).fails(1, "null");
}

#[test]
fn variables_fields_and_elements_are_set() {
    let bug = stopped_at("shown");
    for (target, new, text) in [
        ("small", "100", "100"),
        ("half", "3", "3.0"),
        ("text", "\"new\"", "\"new\""),
        ("grid[1][0]", "9", "9"),
        ("many[3]", "many[999] + 1", "6"),
        ("shared", "8", "8"),
        ("boxed", "99", "99"),
        ("none", "text", "\"new\""),
        ("colour", "Colour.RED", "RED"),
    ] {
        bug.ok(&["set", target, new]);
        assert_eq!(value(&bug, target), text, "{target}");
    }
    bug.run(&["set", "small", "1000"]).fails(1, "1000 is no byte");
    bug.run(&["set", "yes", "3"]).fails(1, "neither true nor false");
    bug.run(&["set", "colour", "text"]).fails(1, "Colour");
}

#[test]
fn fields_are_watched() {
    let bug = stopped_at("count");
    has(&bug.ok(&["watch", "values.counter"]), &["watch 1 values.counter = 0"]);
    for (old, new) in [("0", "10"), ("10", "20"), ("20", "30")] {
        let report = bug.json(&["continue"]);
        let watch = &report["stop"]["reason"]["watch"];
        assert_eq!((&watch["old"], &watch["new"]), (&old.into(), &new.into()), "{report}");
        assert_eq!(functions(&report["stop"]["frames"])[0], "Values.count", "{report}");
        assert_eq!(value(&bug, "counter"), new, "the write is made");
    }
    bug.ok(&["watch", "remove", "1"]);
    bug.ok(&["watch", "values.counter", "--frame", "1", "--read"]);
    let report = bug.json(&["continue"]);
    assert_eq!(report["stop"]["frames"][0]["line"], fixtures::line("java/Values.java", "counted"), "{report}");
    bug.run(&["watch", "this", "--read"]).fails(1, "watch");
}

#[test]
fn a_watch_on_a_local_variable_ends_with_its_function() {
    let bug = JAVA.bug();
    bug.ok(&["run", &JAVA.program(), "--break", &JAVA.at("return")]);
    bug.ok(&["watch", "total"]);
    let text = bug.ok(&["continue"]);
    has(&text, &["watch 1 total is over: its function has returned", "Every.main"]);
    has(&bug.ok(&["watch", "list"]), &["no watches"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
}

#[test]
fn the_reads_of_a_local_variable_can_not_be_watched() {
    let bug = stopped_at("count");
    let run = bug.run(&["watch", "args", "--read"]);
    run.fails(6, "reads of a local variable");
    has(&run.stderr, &["hint: "]);
}

#[test]
fn classes_inside_others_and_lambdas_are_seen_from_inside() {
    let bug = stopped_at("inner");
    assert_eq!(
        (value(&bug, "own"), value(&bug, "outer"), value(&bug, "shared")),
        ("1".into(), "40".into(), "7".into())
    );
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["break", &at("lambda")]);
    let report = bug.json(&["continue"]);
    assert_eq!(local(&report, "inside"), "37", "{report}");
    assert_eq!(value(&bug, "values.counter"), "30");
}

#[test]
fn exceptions_are_caught_by_kind_and_by_type() {
    let bug = JAVA.bug();
    let program = fixtures::program("java/Values.java");
    // Nothing is uncaught.
    has(&bug.ok(&["run", &program]), &["exited: code 0"]);
    bug.ok(&["catch", "raised"]);
    let report = bug.json(&["run", &program]);
    assert!(report["stop"]["reason"].to_string().contains("NumberFormatException"), "{report}");
    // It was thrown inside the library: what is shown is the program's own line.
    let frame = usize::try_from(report["stop"]["frame"].as_u64().unwrap()).unwrap();
    assert_eq!(report["stop"]["frames"][frame]["function"], "Values.handled", "{report}");
    has(&bug.ok(&["exception"]), &["java.lang.NumberFormatException", "no number", "Values.handled(Values.java:"]);
    has(&bug.ok(&["continue"]), &["exited: code 0"]);
    bug.ok(&["catch", "none"]);
    bug.ok(&["catch", "raised", "IOException"]);
    has(&bug.ok(&["run", &program]), &["exited: code 0"]);
    bug.ok(&["catch", "none"]);
    bug.ok(&["catch", "raised", "IllegalArgumentException"]);
    let report = bug.json(&["run", &program]);
    assert!(report["stop"]["reason"].to_string().contains("NumberFormatException"), "a subclass: {report}");
}

#[test]
fn what_a_function_returns_is_told() {
    let bug = JAVA.bug();
    bug.ok(&["run", &JAVA.program(), "--break", "Every.add"]);
    let report = bug.json(&["finish"]);
    assert_eq!(local(&report, "(return) Every.add"), "0", "{report}");
}

#[test]
fn a_class_without_names_of_variables_says_so() {
    let bug = JAVA.bug();
    let classes = bug.path("plain");
    let source = fixtures::folder("java").join("Every.java");
    let done = Command::new("javac").args(["-d", &classes]).arg(source).status().unwrap();
    assert!(done.success());
    let report = bug.json(&["run", "--break", &JAVA.at("body"), "--", "java", "-cp", &classes, "Every"]);
    assert_eq!(local(&report, "arg0"), "5", "{report}");
    bug.run(&["print", "total"]).fails(1, "compiled without -g");
}

/// The project, in a folder of the test's own, with all that Maven fetches for it fetched.
fn project(bug: &Bug) -> String {
    let to = bug.path("project");
    fixtures::copy_project("java", Path::new(&to));
    let mut command = Command::new("mvn");
    command.args(["-q", "-B", "test", "-Dtest=CartTest#totals"]).current_dir(&to);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    to
}

#[test]
fn a_test_under_maven_stops_where_it_fails() {
    let mut bug = JAVA.bug();
    bug.cwd = project(&bug).into();
    let line = |file: &str, mark: &str| fixtures::line(&format!("projects/java/src/{file}"), mark);
    let report = bug.json(&["test", "discounts"]);
    let stop = &report["stop"];
    assert!(stop["reason"].to_string().contains("expected: <390> but was: <400>"), "{report}");
    let frame = &stop["frames"][usize::try_from(stop["frame"].as_u64().unwrap()).unwrap()];
    assert_eq!(frame["line"], line("test/java/shop/CartTest.java", "fails"), "{report}");
    assert_eq!(local(&report, "total"), "400", "{report}");
    let end = bug.json(&["continue"]);
    assert_eq!(end["ending"]["code"], 1, "{end}");
    // A breakpoint in the code under test; what a test expects to be thrown is no failure.
    let sum = format!("src/main/java/shop/Cart.java:{}", line("main/java/shop/Cart.java", "sum"));
    let words = ["run", "--break", &sum, "--", "mvn", "-q", "test", "-Dtest=CartTest#totals+refusesWhatIsNotThere"];
    let report = bug.json(&words);
    assert_eq!(local(&report, "price"), "300", "{report}");
    bug.ok(&["unbreak", "--all"]);
    assert_eq!(bug.json(&["continue"])["ending"]["code"], 0);
}

/// A program that was there before, ended with this value.
struct Outside(Child);

impl Outside {
    fn start(agent: Option<&str>) -> Self {
        let mut command = Command::new("java");
        command.args(agent).args(["-jar", &JAVA.program(), "spin"]).stdout(Stdio::piped()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// One that listens, and its address. With port 0 it would take another one each time.
    fn listening(suspend: &str) -> (Self, String) {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let agent = format!("-agentlib:jdwp=transport=dt_socket,server=y,suspend={suspend},address={address}");
        let mut outside = Self::start(Some(&agent));
        let mut line = String::new();
        BufReader::new(outside.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("Listening for transport"), "{line}");
        (outside, address)
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_program_is_reached_at_its_address() {
    let bug = JAVA.bug();
    let (mut outside, address) = Outside::listening("n");
    has(&bug.ok(&["attach", &address]), &["stopped: attached"]);
    bug.ok(&["break", &JAVA.at("spin")]);
    let report = bug.json(&["continue"]);
    assert_eq!(functions(&report["stop"]["frames"])[0], "Every.spin", "{report}");
    has(&bug.ok(&["detach"]), &["let go"]);
    // It can be attached to again, and nothing was left in it.
    bug.ok(&["unbreak", "--all"]);
    support::until("it listens again", || {
        let run = bug.run(&["attach", &address]);
        if run.code == 0 { Ok(()) } else { Err(run.stderr) }
    });
    has(&bug.ok(&["continue", "--wait", "0.5s"]), &["running"]);
    bug.ok(&["detach"]);
    assert!(outside.0.try_wait().unwrap().is_none(), "it ended with the debugger");
}

#[test]
fn a_program_that_waits_before_its_beginning_is_taken_from_there() {
    let bug = JAVA.bug();
    let (_outside, address) = Outside::listening("y");
    has(&bug.ok(&["attach", &address]), &["stopped: attached"]);
    bug.ok(&["break", "Every.spin"]);
    let report = bug.json(&["continue"]);
    assert_eq!(functions(&report["stop"]["frames"])[..2], ["Every.spin", "Every.main"], "{report}");
    has(&bug.ok(&["kill"]), &["ended"]);
}

#[test]
fn a_program_that_does_not_listen_is_told_how_to() {
    let bug = JAVA.bug();
    let outside = Outside::start(None);
    let pid = outside.0.id().to_string();
    support::until("it is up", || {
        let run = bug.run(&["attach", &pid]);
        assert_ne!(run.code, 0, "{run}");
        if run.stderr.contains("does not listen for a debugger") { Ok(()) } else { Err(run.stderr) }
    });
    has(&bug.run(&["attach", &pid]).stderr, &["-agentlib:jdwp=transport=dt_socket,server=y"]);
}
