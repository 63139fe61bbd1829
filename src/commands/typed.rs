//! What was typed for one command, read as its arguments; and clap's complaints as failures of our own.

use clap::error::{ContextKind, ContextValue};
use serde_json::Value;

use super::Entry;
use crate::failure::Failure;

/// Commands for a program that runs: where commands come one after the other, they wait for none before them, which may
/// wait for what they do.
pub const ANY_TIME: [&str; 7] = ["pause", "stop", "detach", "input", "output", "status", "sessions"];

/// Reads the words after a command's name, without the flags that all commands share.
pub fn read(entry: &Entry, words: &[String]) -> Result<Value, Failure> {
    let command = (entry.arguments)(clap::Command::new(entry.name)).no_binary_name(true).disable_help_flag(true);
    let matches = command.try_get_matches_from(words).map_err(|error| usage(&error))?;
    (entry.parse)(&matches).map_err(|error| usage(&error))
}

/// clap's complaint as a failure: its sentence, and its suggestions and usage as hints.
#[must_use]
pub fn usage(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let mut failure = Failure::usage(message.split_whitespace().collect::<Vec<_>>().join(" "));
    for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedValue, ContextKind::SuggestedSubcommand] {
        match error.get(kind) {
            Some(ContextValue::String(word)) => failure = failure.hint(format!("did you mean `{word}`?")),
            Some(ContextValue::Strings(words)) if !words.is_empty() => {
                failure = failure.hint(format!("did you mean `{}`?", words.join("` or `")));
            }
            _ => {}
        }
    }
    if let Some(usage) = text.lines().find_map(|line| line.strip_prefix("Usage: ")) {
        failure = failure.hint(format!("usage: {usage}"));
    }
    failure
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::find;

    fn words(list: &[&str]) -> Vec<String> {
        list.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn words_become_what_the_wire_has() {
        let entry = find("break").unwrap();
        let args = read(entry, &words(&["x.py:7", "--if", "i>3"])).unwrap();
        assert_eq!((&args["place"], &args["if"]), (&json!("x.py:7"), &json!("i>3")));
        let failure = read(entry, &words(&["x.py:7", "--iff", "i"])).unwrap_err();
        assert!(failure.message.contains("unexpected argument '--iff'"), "{failure:?}");
        assert!(read(entry, &words(&["-s", "s1", "f"])).is_err());
    }
}
