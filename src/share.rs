//! A record in one file, to be given to somebody: as it is, to be taken in elsewhere, or as a page to be read.
//!
//! The file is a plain tar archive, so that any tool can look into it. What is taken in is as hostile as what comes from a
//! program: only names that records have, only sizes that fit, and nothing of it is seen before all of it is there.

pub mod bundle;
pub mod import;
pub mod page;
mod run;
mod spark;
mod stops;
mod tar;

/// The first file of an archive, which says what it is.
const LABEL: &str = "bugeye.json";
/// The version of the archive.
const VERSION: u64 = 1;

/// Whether this is a file that records have and that is given away. Commands by file and locks are not.
fn is_known(name: &str) -> bool {
    let hits = |name: &str| {
        let number = name.strip_prefix("hits").and_then(|rest| rest.strip_suffix(".jsonl"));
        let counted = |rest: &str| {
            let number = rest.strip_prefix('-').unwrap_or_default();
            !number.is_empty() && number.len() <= 6 && number.bytes().all(|byte| byte.is_ascii_digit())
        };
        number.is_some_and(|rest| rest.is_empty() || counted(rest))
    };
    match name {
        "session.json" | "events.jsonl" => true,
        name => name.strip_prefix("blobs/").map_or_else(|| hits(name), is_blob),
    }
}

/// Whether this is the name of a content.
fn is_blob(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_records_have_is_known() {
        let blob = format!("blobs/{}", "0a".repeat(32));
        for name in ["session.json", "events.jsonl", "hits.jsonl", "hits-2.jsonl", "hits-12.jsonl", &blob] {
            assert!(is_known(name), "{name}");
        }
        let up = format!("blobs/../{}", "0a".repeat(32));
        for name in [
            "",
            ".",
            "..",
            "commands.jsonl",
            "lock",
            "../session.json",
            "/session.json",
            "./session.json",
            "hits-.jsonl",
            "hits-x.jsonl",
            "hits2.jsonl",
            "hits-1/../../x.jsonl",
            "blobs",
            "blobs/",
            "blobs/x",
            &up,
            "session.json/",
        ] {
            assert!(!is_known(name), "{name}");
        }
    }
}
