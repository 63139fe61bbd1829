//! Which record is meant: by its id, by what it was called while it was live, or counted back from the last.

use std::path::Path;

use super::read::{self, Head};
use crate::failure::Failure;
use crate::render::{cut, quoted};

/// Records that are offered when the one asked for is not there.
const OFFERED: usize = 5;

/// The record that goes by a name; of several, the newest. `last` is the newest from this folder or its project, `last~1`
/// the one before it.
pub fn named(state: &Path, name: &str, cwd: &Path) -> Result<Head, Failure> {
    let mut heads = read::heads(state);
    heads.reverse();
    if let Some(back) = counted_back(name) {
        let here = |head: &Head| cwd.starts_with(&head.project) || head.cwd.starts_with(cwd);
        let count = heads.iter().filter(|head| here(head)).count();
        if let Some(head) = heads.into_iter().filter(here).nth(back) {
            return Ok(head);
        }
        let records = if count == 1 { "record" } else { "records" };
        return Err(Failure::not_found(format!("there is no `{name}`: this folder has {count} {records}"))
            .hint("a record is made by every session: bugeye trace, bugeye run"));
    }
    let found = heads.iter().position(|head| head.is_called(name));
    // The word of an id is enough where no other record has it.
    let by_word = || {
        let has = |head: &&Head| head.id.rsplit('-').next() == Some(name);
        let mut with = heads.iter().filter(has);
        let only = with.next().filter(|_| with.next().is_none())?;
        heads.iter().position(|head| head.id == only.id)
    };
    if let Some(at) = found.or_else(by_word) {
        return Ok(heads.swap_remove(at));
    }
    let offer = |failure: Failure, head: &Head| {
        failure.hint(format!("{}: {}", head.id, quoted(cut(&head.words.join(" "), 60).0)))
    };
    Err(heads.iter().take(OFFERED).fold(Failure::not_found(format!("there is no record `{name}`")), offer))
}

/// `last` → 0, `last~2` → 2.
fn counted_back(name: &str) -> Option<usize> {
    let rest = name.strip_prefix("last")?;
    if rest.is_empty() { Some(0) } else { rest.strip_prefix('~')?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn records_are_found_by_name_by_word_and_counted_back() {
        let state = tempfile::tempdir().unwrap();
        for (id, alias, name, project) in [
            ("20260101-000000-otter", "s1", None, "/p"),
            ("20260102-000000-lynx", "s2", Some("good"), "/p"),
            ("20260103-000000-lynx", "s1", None, "/other"),
        ] {
            let folder = read::root(state.path()).join(id);
            std::fs::create_dir_all(&folder).unwrap();
            let head = json!({ "alias": alias, "name": name, "project": project, "cwd": project, "words": ["x"] });
            std::fs::write(folder.join("session.json"), head.to_string()).unwrap();
        }
        let found = |name: &str| named(state.path(), name, Path::new("/p/src")).map(|head| head.id);
        assert_eq!(found("good").unwrap(), "20260102-000000-lynx");
        assert_eq!(found("s1").unwrap(), "20260103-000000-lynx");
        assert_eq!(found("otter").unwrap(), "20260101-000000-otter");
        assert_eq!(found("20260101-000000-otter").unwrap(), "20260101-000000-otter");
        assert_eq!(found("last").unwrap(), "20260102-000000-lynx");
        assert_eq!(found("last~1").unwrap(), "20260101-000000-otter");
        assert!(found("last~2").unwrap_err().message.contains("this folder has 2 records"));
        let failure = found("lynx").unwrap_err();
        assert_eq!(failure.hints[0], "20260103-000000-lynx: x");
    }
}
