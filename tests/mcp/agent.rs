//! A scripted agent finds a planted mistake in a program of each language, through MCP alone, in few calls and tokens.

use serde_json::{Value, json};

use crate::sdks::{client, output, script};
use crate::support::Bug;
use crate::support::fixtures::{at, program};

const MOST_CALLS: u64 = 6;
const MOST_TOKENS: u64 = 2500;
/// What the list of tools may cost, which every conversation pays.
const MOST_LISTED: u64 = 2500;

fn search(language: &str, place: &str, command: &[&str]) -> Value {
    let bug = Bug::new(language);
    let file = script("agent.py");
    let words = [file.to_str().unwrap(), env!("CARGO_BIN_EXE_bugeye"), language, place];
    let words: Vec<&str> = words.iter().chain(command).copied().collect();
    let report: Value = serde_json::from_str(&output(&bug, client("python"), &words)).unwrap();
    let (calls, tokens) = (report["calls"].as_u64().unwrap(), report["tokens"].as_u64().unwrap());
    let (listed, trail) = (report["list_tokens"].as_u64().unwrap(), &report["trail"]);
    println!(
        "{language}: {calls} calls, {tokens} tokens, {} s; tools/list {listed} tokens; {trail}",
        report["seconds"]
    );
    assert!(calls <= MOST_CALLS && tokens <= MOST_TOKENS && listed < MOST_LISTED, "{report}");
    report
}

#[test]
fn a_loop_of_c_that_goes_one_too_far() {
    let report = search("c", &at("c/scores.c", "add"), &[&program("c/scores.c")]);
    assert_eq!(report["found"], json!({ "i": "8" }), "{report}");
    assert_eq!((&report["variable"], &report["value"]), (&json!("score"), &json!("1000")), "{report}");
    assert_eq!(report["why"], json!(["count = 8", "table->limit = 1000"]));
}

/// More passes than a reply shows: the agent has to narrow it down.
#[test]
fn a_row_that_python_books_the_wrong_way() {
    let report = search("python", &at("python/ledger.py", "booked"), &["python3", "ledger.py"]);
    assert_eq!(report["found"], json!({ "number": "27" }), "{report}");
    assert_eq!((&report["variable"], &report["value"]), (&json!("kind"), &json!("'Refund'")), "{report}");
    assert_eq!(report["why"], json!(["kind == 'refund' = False", "rows[number] = ('Refund', 18)"]));
}

#[test]
fn a_byte_of_go_that_wraps_around() {
    let report = search("go", &at("go/stock.go", "taken"), &["go", "run", "stock.go"]);
    assert_eq!(report["found"], json!({ "i": "6" }), "{report}");
    assert_eq!((&report["variable"], &report["value"]), (&json!("stock"), &json!("251")), "{report}");
    assert_eq!(report["why"], json!(["order > before = true"]));
}
