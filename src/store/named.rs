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
    let heads = newest_first(state);
    let Some(back) = counted_back(name).filter(|_| !heads.iter().any(|head| head.is_called(name))) else {
        return called(&heads, name).cloned().ok_or_else(|| {
            let with: Vec<Head> = heads.iter().filter(|head| has_word(head, name)).cloned().collect();
            match with.len() {
                0 => offered(Failure::not_found(format!("there is no session and no record `{name}`")), &heads),
                several => offered(Failure::usage(format!("`{name}` may be any of {several} records")), &with),
            }
        });
    };
    let here: Vec<Head> = heads.into_iter().filter(|head| is_from(head, cwd)).collect();
    here.get(back).cloned().ok_or_else(|| {
        let records = if here.len() == 1 { "record" } else { "records" };
        Failure::not_found(format!("there is no `{name}`: this folder has {} {records}", here.len()))
            .hint("a record is made by every session: bugeye trace, bugeye run")
    })
}

/// The newest record from this folder or its project.
pub fn newest(state: &Path, cwd: &Path) -> Result<Head, Failure> {
    let heads = newest_first(state);
    let failure =
        || Failure::not_found("no session was ever started from here").hint("what comes: bugeye events --follow");
    heads.iter().find(|head| is_from(head, cwd)).cloned().ok_or_else(|| offered(failure(), &heads))
}

/// The first of these that has the name: its id, or what it was called while it was live. The word of an id is enough
/// where no other has it.
#[must_use]
pub fn called<'a>(heads: &'a [Head], name: &str) -> Option<&'a Head> {
    heads.iter().find(|head| head.is_called(name)).or_else(|| {
        let mut with = heads.iter().filter(|head| has_word(head, name));
        with.next().filter(|_| with.next().is_none())
    })
}

/// Every record, newest first.
#[must_use]
pub fn newest_first(state: &Path) -> Vec<Head> {
    let mut heads = read::heads(state);
    heads.reverse();
    heads
}

/// `otter` of `20261115-214131-otter`.
fn has_word(head: &Head, name: &str) -> bool {
    head.id.splitn(3, '-').nth(2) == Some(name)
}

fn is_from(head: &Head, cwd: &Path) -> bool {
    cwd.starts_with(&head.project) || head.cwd.starts_with(cwd)
}

fn offered(failure: Failure, heads: &[Head]) -> Failure {
    heads.iter().take(OFFERED).fold(failure, |failure, head| {
        failure.hint(format!("{}: {}", quoted(&head.id), quoted(cut(&head.words.join(" "), 60).0)))
    })
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
        assert_eq!(newest(state.path(), Path::new("/p/src")).unwrap().id, "20260102-000000-lynx");
        let failure = found("lynx").unwrap_err();
        assert_eq!(failure.message, "`lynx` may be any of 2 records");
        assert_eq!(failure.hints, ["20260103-000000-lynx: x", "20260102-000000-lynx: x"]);
        assert_eq!(found("wolf").unwrap_err().hints.len(), 3);
    }
}
