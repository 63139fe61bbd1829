//! Values of every language as a reader wants them: contents, never addresses.

use serde_json::Value;

use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, lacks, variable};

/// Stops a fixture at a mark and answers the text and the JSON of its locals.
fn locals(bug: &Bug, fixture: &str, mark: &str) -> (String, Value) {
    let stop = bug.ok(&["run", &program(fixture), "--break", &at(fixture, mark)]);
    has(&stop, &["stopped: breakpoint 1 (hit 1)"]);
    (bug.ok(&["locals"]), bug.json(&["locals"])["variables"].take())
}

/// The texts of a value's children.
fn children(value: &Value) -> Vec<&str> {
    value["children"].as_array().unwrap().iter().map(|child| child["text"].as_str().unwrap()).collect()
}

#[test]
fn values_of_c() {
    let bug = Bug::new("c");
    let (text, json) = locals(&bug, "c/values.c", "values");
    let of = |name: &str| variable(&json, name)["text"].as_str().unwrap();
    for (name, expected) in [
        ("text", "\"hello\""),
        ("buffer", "\"in buffer\""),
        ("corner", "{x:3, y:-7}"),
        ("here", "&{x:10, y:20}"),
        ("nothing", "NULL"),
        ("colour", "BLUE"),
        ("ratio", "2.5"),
        ("half", "0.5"),
        ("yes", "true"),
        ("no", "false"),
        ("negative", "-123"),
        ("big", "4000000000"),
        ("huge", "-9000000000000000000"),
        ("letter", "'A'"),
        ("quote", "\"tab\\tquote\\\"end\""),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    has(&text, &["1, -2, 3, -4, 5", "big: unsigned int = 4000000000"]);
    has(&bug.ok(&["print", "shape->name"]), &["\"square\""]);
    has(&bug.ok(&["print", "grid", "--depth", "2"]), &["1, 2, 3", "4, 5, 6"]);
    has(&bug.ok(&["print", "global_counter"]), &["global_counter = 42"]);
    has(&bug.ok(&["print", "negative", "--format", "hex"]), &["negative = 0xffffff85"]);
    lacks(&bug.ok(&["context"]), &["0x0"]);
}

#[test]
fn containers_of_cpp_show_their_content() {
    let bug = Bug::new("cpp");
    let (text, json) = locals(&bug, "cpp/containers.cpp", "values");
    assert_eq!(variable(&json, "text")["text"], "\"hello, world\"");
    assert_eq!(children(variable(&json, "numbers")), ["3", "1", "4", "1", "5"]);
    has(&text, &["[3, 1, 4, 1, 5]", "\"ada\"", "36", "\"bob\"", "41"]);
    let flat = |expression: &str| bug.ok(&["print", expression]);
    has(&flat("some"), &["7"]);
    lacks(&flat("some"), &["Has Value"]);
    lacks(&flat("none"), &["Has Value"]);
    has(&flat("owned"), &["99"]);
    has(&flat("empty"), &["nullptr"]);
    has(&bug.ok(&["print", "basket", "--depth", "3"]), &["\"tea\"", "price:4", "\"milk\"", "price:2"]);
    // Nowhere does a reader get an address for an answer.
    lacks(&text, &["0x", " @ "]);
    lacks(&bug.ok(&["context"]), &["0x", "Has Value"]);
}

#[test]
fn a_method_and_a_template_are_places() {
    let bug = Bug::new("cpp");
    let report = bug.json(&["run", &program("cpp/containers.cpp"), "--break", "shop::Basket::total"]);
    assert_eq!(report["state"], "stopped", "{report}");
    has(report["stop"]["frames"][0]["function"].as_str().unwrap(), &["shop::Basket::total"]);
    has(&bug.ok(&["args"]), &["discount"]);
    has(&bug.ok(&["print", "this->items_"]), &["\"tea\"", "\"milk\""]);
    has(&bug.ok(&["break", &at("cpp/containers.cpp", "template")]), &["verified"]);
    has(&bug.ok(&["continue"]), &["largest", "best=5"]);
}

#[test]
fn values_of_rust_by_the_toolchains_formatters() {
    let bug = Bug::new("rust");
    let (text, json) = locals(&bug, "rust/values.rs", "values");
    let of = |name: &str| variable(&json, name)["text"].as_str().unwrap();
    for (name, expected) in [
        ("owned", "\"grün 漢字\""),
        ("borrowed", "\"borrowed\""),
        ("some", "Some(5)"),
        ("none", "None"),
        ("good", "Ok(1)"),
        ("bad", "Err(\"broken\")"),
        ("point", "{x:3, y:-4}"),
        ("pair", "(7, \"seven\")"),
        ("flag", "true"),
        ("letter", "'ß'"),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    assert_eq!(children(variable(&json, "numbers")), ["10", "20", "30"]);
    assert_eq!(children(variable(&json, "slice")), ["20", "30"]);
    assert_eq!(children(variable(&json, "names")), ["\"one\"", "\"two\""]);
    assert_eq!(children(variable(&json, "ages")), ["(\"ada\", 36)"]);
    has(of("boxed"), &["{x:1, y:2}"]);
    has(&text, &["Circle", "2"]);
    lacks(&text, &["$variants$", "$discr$", "0x"]);
    // Functions are named as in the source, without the compiler's hash.
    let context = bug.ok(&["context"]);
    has(&context, &["in values::inspect values.rs:", "values::main values.rs:"]);
}

#[test]
fn values_of_python() {
    let bug = Bug::new("python");
    let (text, json) = locals(&bug, "python/values.py", "values");
    let of = |name: &str| variable(&json, name)["text"].as_str().unwrap();
    for (name, expected) in [
        ("mapping", "{'one': 1, 'two': [2, 22], 3: None}"),
        ("items", "[1, 'two', 3.5, None, True]"),
        ("point", "Point(x=3, y=-4)"),
        ("text", "'grün 漢字 😀'"),
        ("nothing", "None"),
        ("unique", "{7}"),
        ("pair", "(1, 'two')"),
        ("raw", "b'bytes\\x00\\xff'"),
        ("big", "1267650600228229401496703205376"),
        ("ratio", "0.1"),
        ("flag", "False"),
        ("options", "{'key': 'value'}"),
        ("rest", "(1, 2)"),
    ] {
        assert_eq!(of(name), expected, "{name}");
    }
    // Neither colours nor bidi marks of the program reach the reader.
    lacks(&text, &["\u{1b}", "\u{202e}", "special variables", "function variables"]);
    assert_eq!(bug.ok(&["args"]).lines().count(), 4);
    has(&bug.ok(&["print", "nested[\"list\"][0][\"deep\"]"]), &["{'deeper': [1, 2, 3]}"]);
    has(&bug.ok(&["print", "COUNTER"]), &["COUNTER = 42"]);
    has(&bug.ok(&["print", "len(many)"]), &["1000"]);
    let page = bug.ok(&["print", "many", "--from", "20"]);
    has(&page, &["[20, 21, "]);
    has(&bug.ok(&["print", "many", "--depth", "2"]), &["… 980 more: --from 20"]);
    has(&bug.ok(&["print", "many", "--from", "990"]), &["[990, 991, ", "999]"]);
    lacks(&page, &["characters more"]);
    // A text that can't be had is not the end of the others.
    has(&bug.ok(&["context"]), &["broken=", "Broken", "unique={7}"]);
}
