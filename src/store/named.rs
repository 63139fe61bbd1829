//! Which record is meant: by its id, by what it was called while it was live, or counted back from the last.

use std::path::Path;

use super::read::{self, Head};
use crate::failure::Failure;
use crate::render::{command, quoted};

/// Records that are offered when the one asked for is not there.
const OFFERED: usize = 5;

/// The record that goes by a name; of several, the newest. `last` is the newest from this folder or its project, `last~1`
/// the one before it.
pub fn named(state: &Path, name: &str, cwd: &Path) -> Result<Head, Failure> {
    let mut heads = newest_first(state);
    if let Some(at) = heads.iter().position(|head| head.is_called(name)) {
        return Ok(heads.swap_remove(at));
    }
    if let Some(back) = counted_back(name) {
        let count = heads.iter().filter(|head| is_from(head, cwd)).count();
        if let Some(head) = heads.into_iter().filter(|head| is_from(head, cwd)).nth(back) {
            return Ok(head);
        }
        let records = if count == 1 { "record" } else { "records" };
        return Err(Failure::not_found(format!("there is no `{name}`: this folder has {count} {records}"))
            .hint("a record is made by every session: bugeye trace, bugeye run"));
    }
    // The word of an id is enough where no other record has it.
    let with: Vec<&Head> = heads.iter().filter(|head| head.id.splitn(3, '-').nth(2) == Some(name)).collect();
    match with.as_slice() {
        [] => Err(offer(Failure::not_found(format!("there is no session and no record `{}`", quoted(name))), &heads)),
        [only] => Ok((*only).clone()),
        several => {
            let failure =
                Failure::not_found(format!("{} records are called `{}`: say which", several.len(), quoted(name)));
            Err(offer(failure, several.iter().copied()))
        }
    }
}

/// The newest record from a folder or its project.
pub fn newest_from(state: &Path, cwd: &Path) -> Result<Head, Failure> {
    let mut heads = newest_first(state);
    if let Some(at) = heads.iter().position(|head| is_from(head, cwd)) {
        return Ok(heads.swap_remove(at));
    }
    let failure =
        Failure::not_found("no session was ever started from here").hint("what comes: bugeye events --follow");
    Err(offer(failure, &heads))
}

/// Every record, the newest first; those that were made elsewhere take no name from those that were made here.
fn newest_first(state: &Path) -> Vec<Head> {
    let mut heads = read::heads(state);
    heads.reverse();
    heads.sort_by_key(|head| head.imported.is_some());
    heads
}

fn is_from(head: &Head, cwd: &Path) -> bool {
    cwd.starts_with(&head.project) || head.cwd.starts_with(cwd)
}

fn offer<'a>(failure: Failure, heads: impl IntoIterator<Item = &'a Head>) -> Failure {
    let line = |head: &Head| format!("{}: {}", head.id, quoted(&command(&head.words)));
    heads.into_iter().take(OFFERED).fold(failure, |failure, head| failure.hint(line(head)))
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
        assert_eq!(failure.message, "2 records are called `lynx`: say which");
        assert_eq!(failure.hints, ["20260103-000000-lynx: x", "20260102-000000-lynx: x"]);
        let failure = found("none").unwrap_err();
        assert_eq!((failure.message.as_str(), failure.hints.len()), ("there is no session and no record `none`", 3));
    }

    #[test]
    fn a_record_that_was_given_takes_no_name_from_one_that_was_made_here() {
        let state = tempfile::tempdir().unwrap();
        let imported = json!({ "at": 1, "from": "x" });
        for (id, imported) in [("20260101-000000-otter", None), ("20260102-000000-lynx", Some(imported))] {
            let folder = read::root(state.path()).join(id);
            std::fs::create_dir_all(&folder).unwrap();
            let head = json!({ "name": "good", "project": "/p", "cwd": "/p", "imported": imported });
            std::fs::write(folder.join("session.json"), head.to_string()).unwrap();
        }
        let found = |name: &str| named(state.path(), name, Path::new("/p")).unwrap().id;
        assert_eq!((found("good"), found("last")), ("20260101-000000-otter".into(), "20260101-000000-otter".into()));
        assert_eq!((found("lynx"), found("last~1")), ("20260102-000000-lynx".into(), "20260102-000000-lynx".into()));
        assert_eq!(newest_from(state.path(), Path::new("/p")).unwrap().id, "20260101-000000-otter");
    }
}
