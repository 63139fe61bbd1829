//! Escaping: nothing that acts on a terminal or hides from a reader comes through, and JSON still says the same.

#![no_main]

use bugeye::render::{cut_json, quoted, quoted_json, quoted_lines};
use libfuzzer_sys::fuzz_target;

fn is_harmful(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fuzz_target!(|text: &str| {
    assert!(!quoted(text).chars().any(is_harmful));
    assert!(!quoted_lines(text).chars().any(|c| is_harmful(c) && c != '\n' && c != '\t'));
    let value = serde_json::Value::from(text);
    let line = quoted_json(&value.to_string());
    assert!(!line.chars().any(is_harmful));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).expect("still JSON"), value);
    let (head, left_out) = cut_json(text, 100);
    assert!(quoted_json(&serde_json::Value::from(head).to_string()).len() <= 102);
    assert_eq!(head.chars().count() + left_out, text.chars().count());
});
