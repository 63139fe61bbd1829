//! Removing records: by age and by size, oldest first, never one that is written or that somebody keeps.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lifecycle;
use super::named::named;
use super::read::{self, Head};
use crate::failure::Failure;
use crate::log;

/// A folder without a head is a record in the making for a moment, and nothing later.
const MAKING: Duration = Duration::from_secs(3600);
/// What a folder is called while it is removed.
const GOING: &str = ".going-";

/// What may stay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Not written to for longer than this.
    pub age: Option<Duration>,
    /// Bytes of all records.
    pub size: Option<u64>,
}

/// A record that was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub command: Vec<String>,
    pub bytes: u64,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    pub removed: Vec<Removed>,
    pub freed: u64,
    /// Records that are left, and their bytes.
    pub left: usize,
    pub left_bytes: u64,
    /// Those of them that go by no limit: live, or kept.
    pub spared: usize,
}

/// A record, as far as it matters here.
struct Found {
    folder: PathBuf,
    head: Option<Head>,
    bytes: u64,
    age: Duration,
}

impl Found {
    fn of(folder: PathBuf) -> Self {
        let head = Head::load(&folder);
        let newest = ["events.jsonl", "session.json", "."].iter().find_map(|name| {
            let found = std::fs::metadata(folder.join(name)).ok()?;
            found.modified().ok()
        });
        let age = newest.and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default();
        Self { bytes: size(&folder), head, age, folder }
    }

    fn is_spared(&self) -> bool {
        let written = match &self.head {
            Some(head) => head.is_written(),
            None => lifecycle::is_held(&self.folder).unwrap_or(self.age < MAKING),
        };
        written || is_kept(&self.folder)
    }

    fn removed(&self) -> Removed {
        Removed {
            id: self.folder.file_name().map(|id| id.to_string_lossy().into_owned()).unwrap_or_default(),
            name: self.head.as_ref().and_then(|head| head.name.clone()),
            command: self.head.as_ref().map(|head| head.words.clone()).unwrap_or_default(),
            bytes: self.bytes,
        }
    }
}

/// Removes what is beyond the limits; with `dry`, only says what that would be.
#[must_use]
pub fn prune(state: &Path, limits: Limits, dry: bool) -> Outcome {
    clear(state);
    let mut outcome = Outcome::default();
    let all: Vec<Found> = read::folders(state).into_iter().map(Found::of).collect();
    let mut bytes: u64 = all.iter().map(|found| found.bytes).sum();
    let mut left = all.len();
    for found in all {
        let old = limits.age.is_some_and(|limit| found.age > limit);
        let beyond = limits.size.is_some_and(|limit| bytes > limit);
        if found.is_spared() {
            outcome.spared += 1;
            continue;
        }
        if !(old || beyond) {
            continue;
        }
        match if dry { Ok(true) } else { remove(&found.folder) } {
            Ok(true) => {
                bytes -= found.bytes;
                left -= 1;
                outcome.freed += found.bytes;
                outcome.removed.push(found.removed());
            }
            Ok(false) => outcome.spared += 1,
            Err(error) => log::warn(format!("{} can't be removed: {error}", found.folder.display())),
        }
    }
    (outcome.left, outcome.left_bytes) = (left, bytes);
    settle(state, &outcome, dry);
    outcome
}

/// Removes records by their names, all or none of them.
pub fn remove_named(state: &Path, names: &[String], cwd: &Path, dry: bool) -> Result<Outcome, Failure> {
    let mut chosen: Vec<Found> = Vec::new();
    for name in names {
        let head = named(state, name, cwd)?;
        let found = Found::of(head.folder.clone());
        if head.is_written() {
            return Err(Failure::wrong_state(format!("{} is a session that the daemon still has", head.id))
                .hint(format!("let it go first: bugeye -s {} stop", head.id)));
        }
        if is_kept(&head.folder) {
            return Err(Failure::wrong_state(format!("{} is kept", head.id))
                .hint(format!("let it go first: bugeye keep --off {}", head.id)));
        }
        if chosen.iter().all(|known| known.folder != found.folder) {
            chosen.push(found);
        }
    }
    let mut outcome = Outcome::default();
    for found in chosen {
        let gone = dry
            || remove(&found.folder)
                .map_err(|error| Failure::io(format!("remove {}", found.folder.display()), &error))?;
        if gone {
            outcome.freed += found.bytes;
            outcome.removed.push(found.removed());
        }
    }
    let left: Vec<PathBuf> = read::folders(state);
    outcome.left = left.len();
    outcome.left_bytes = left.iter().map(|folder| size(folder)).sum();
    if dry {
        outcome.left = outcome.left.saturating_sub(outcome.removed.len());
        outcome.left_bytes = outcome.left_bytes.saturating_sub(outcome.freed);
    }
    settle(state, &outcome, dry);
    Ok(outcome)
}

/// `current` leads to a record that is there.
fn settle(state: &Path, outcome: &Outcome, dry: bool) {
    let current = read::root(state).join("current");
    if !dry && !outcome.removed.is_empty() && !current.exists() {
        let _ = lifecycle::point_at_newest(state);
    }
}

/// Removes a record; false where it is written, or kept since it was looked at.
fn remove(folder: &Path) -> io::Result<bool> {
    let Some(_lock) = lifecycle::take(folder)? else { return Ok(false) };
    if is_kept(folder) {
        return Ok(false);
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let going = folder.with_file_name(format!("{GOING}{name}"));
    // From here on it is no record: whoever dies over this leaves nothing that looks like one.
    std::fs::rename(folder, &going)?;
    std::fs::remove_dir_all(&going)?;
    Ok(true)
}

/// Removes what somebody died over.
fn clear(state: &Path) {
    for entry in std::fs::read_dir(read::root(state)).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(GOING) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Bytes of all files of a record.
#[must_use]
pub fn size(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let found = std::fs::symlink_metadata(entry.path()).ok()?;
            Some(if found.is_dir() { size(&entry.path()) } else { found.len() })
        })
        .sum()
}

/// Whether somebody wants a record to stay.
#[must_use]
pub fn is_kept(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join("keep")).is_ok()
}

/// Whether a record is not complete: something could not be written.
#[must_use]
pub fn is_truncated(folder: &Path) -> bool {
    std::fs::symlink_metadata(folder.join("truncated")).is_ok()
}

/// Has a record stay, or leaves it to the limits again.
pub fn keep(folder: &Path, on: bool) -> io::Result<()> {
    let path = folder.join("keep");
    let done: io::Result<()> = if on {
        File::options().create_new(true).write(true).mode(0o600).open(path).map(drop)
    } else {
        std::fs::remove_file(path)
    };
    match done {
        Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound) => Ok(()),
        done => done,
    }
}

/// `14d`, `12h`, `30m`, `2w`.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let seconds = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "" | "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(format!("no time has the unit `{unit}`: s, m, h, d, w")),
    };
    Duration::try_from_secs_f64(number * f64::from(seconds)).map_err(|error| error.to_string())
}

/// `1G`, `500M`, `20K`; a number alone is bytes.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let shift = match unit.trim_end_matches(['b', 'B']).trim_end_matches('i') {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return Err(format!("no size has the unit `{unit}`: K, M, G, T")),
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a byte more or less does not matter")]
    Ok((number * (1u64 << shift) as f64) as u64)
}

fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.parse().map_err(|_| format!("`{text}` does not begin with a number"))?;
    Ok((number, unit.trim()))
}

/// `1.2 MiB`
#[must_use]
pub fn in_words(bytes: u64) -> String {
    let mut amount = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if amount < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{amount:.1} {unit}") };
        }
        amount /= 1024.0;
    }
    format!("{amount:.1} TiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that was last written so many days ago.
    fn record(state: &Path, id: &str, days: u64, bytes: usize) -> PathBuf {
        let folder = read::root(state).join(id);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("session.json"), "{\"words\":[\"./a\"]}").unwrap();
        std::fs::write(folder.join("events.jsonl"), "x".repeat(bytes)).unwrap();
        let at = SystemTime::now() - Duration::from_secs(days * 86_400);
        for name in ["session.json", "events.jsonl"] {
            File::options().write(true).open(folder.join(name)).unwrap().set_modified(at).unwrap();
        }
        folder
    }

    fn ids(outcome: &Outcome) -> Vec<&str> {
        outcome.removed.iter().map(|removed| removed.id.as_str()).collect()
    }

    #[test]
    fn the_oldest_go_first_and_never_a_live_or_a_kept_one() {
        let state = tempfile::tempdir().unwrap();
        let kept = record(state.path(), "1-kept", 40, 1000);
        let live = record(state.path(), "2-live", 30, 1000);
        record(state.path(), "3-old", 20, 1000);
        record(state.path(), "4-newer", 10, 1000);
        record(state.path(), "5-newest", 1, 1000);
        keep(&kept, true).unwrap();
        let lock = lifecycle::hold(&live).unwrap();
        lifecycle::point_at(&read::root(state.path()), "3-old").unwrap();
        let age = Limits { age: Some(Duration::from_secs(15 * 86_400)), size: None };
        let planned = prune(state.path(), age, true);
        assert_eq!((ids(&planned), read::folders(state.path()).len()), (vec!["3-old"], 5));
        let done = prune(state.path(), age, false);
        assert_eq!(ids(&done), ["3-old"]);
        assert_eq!((done.left, done.spared, done.freed), (4, 2, planned.freed));
        let current = std::fs::read_link(read::root(state.path()).join("current")).unwrap();
        assert_eq!(current.to_str(), Some("5-newest"));
        let size = |bytes| Limits { age: None, size: Some(bytes) };
        assert_eq!(ids(&prune(state.path(), size(3500), false)), ["4-newer"]);
        assert_eq!(ids(&prune(state.path(), size(1), false)), ["5-newest"]);
        assert_eq!(prune(state.path(), size(1), false).left, 2);
        keep(&kept, false).unwrap();
        drop(lock);
        assert_eq!(ids(&prune(state.path(), size(1), false)), ["1-kept", "2-live"]);
        assert_eq!(std::fs::read_dir(read::root(state.path())).unwrap().count(), 0);
    }

    #[test]
    fn what_is_named_goes_all_or_none() {
        let state = tempfile::tempdir().unwrap();
        let kept = record(state.path(), "1-a", 0, 10);
        record(state.path(), "2-b", 0, 10);
        let live = record(state.path(), "3-c", 0, 10);
        let _lock = lifecycle::hold(&live).unwrap();
        keep(&kept, true).unwrap();
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_string()).collect::<Vec<_>>();
        for (list, why) in [(["2-b", "1-a"], "is kept"), (["2-b", "3-c"], "still has"), (["2-b", "x"], "no record")] {
            let failure = remove_named(state.path(), &names(&list), Path::new("/"), false).unwrap_err();
            assert!(failure.message.contains(why), "{failure}");
        }
        assert_eq!(read::folders(state.path()).len(), 3);
        let outcome = remove_named(state.path(), &names(&["2-b"]), Path::new("/"), false).unwrap();
        assert_eq!((ids(&outcome), outcome.left), (vec!["2-b"], 2));
    }

    #[test]
    fn what_somebody_died_over_is_cleared() {
        let state = tempfile::tempdir().unwrap();
        let folder = record(state.path(), "1-a", 0, 10);
        std::fs::rename(&folder, folder.with_file_name(".going-1-a")).unwrap();
        assert!(read::heads(state.path()).is_empty());
        let _ = prune(state.path(), Limits::default(), false);
        assert!(!folder.with_file_name(".going-1-a").exists());
    }

    #[test]
    fn ages_and_sizes_are_read() {
        assert_eq!(parse_age("14d"), Ok(Duration::from_secs(14 * 86_400)));
        assert_eq!(parse_age("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_age("0"), Ok(Duration::ZERO));
        assert_eq!((parse_size("1G"), parse_size("1.5 KiB"), parse_size("7")), (Ok(1 << 30), Ok(1536), Ok(7)));
        for bad in ["", "d", "3x", "-1d"] {
            assert!(parse_age(bad).is_err() && parse_size(bad).is_err(), "{bad}");
        }
        assert_eq!((in_words(12).as_str(), in_words(1536).as_str()), ("12 B", "1.5 KiB"));
    }
}
