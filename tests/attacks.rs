//! Runtime directories laid out by somebody else: links, foreign owners, modes that let others in, things that are no
//! socket and no lock. Each is refused in words, or set right without touching what it leads to; never followed, never
//! waited for.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use support::{Bug, Run};

/// How soon an answer must come: what a machine adds included.
const SOON: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Refused,
    Healed,
}
use Wanted::{Healed, Refused};

/// What somebody else laid out; `victim` is a file that must stay as it is.
struct Layout {
    what: &'static str,
    wanted: Wanted,
    make: fn(&Place),
}

struct Place {
    home: PathBuf,
}

impl Place {
    fn runtime(&self) -> PathBuf {
        self.home.join("runtime")
    }
    fn socket(&self) -> PathBuf {
        self.home.join("runtime/daemon.sock")
    }
    fn lock(&self) -> PathBuf {
        self.home.join("runtime/daemon.lock")
    }
    fn victim(&self) -> PathBuf {
        self.home.join("victim")
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

fn replace(path: &Path, with: fn(&Path)) {
    fs::remove_dir(path).unwrap();
    with(path);
}

const LAYOUTS: [Layout; 24] = [
    Layout { what: "mode 0777", wanted: Refused, make: |at| mode(&at.runtime(), 0o777) },
    Layout { what: "mode 0755", wanted: Refused, make: |at| mode(&at.runtime(), 0o755) },
    Layout { what: "mode 0770", wanted: Refused, make: |at| mode(&at.runtime(), 0o770) },
    Layout { what: "mode 0701", wanted: Refused, make: |at| mode(&at.runtime(), 0o701) },
    Layout { what: "mode 1777", wanted: Refused, make: |at| mode(&at.runtime(), 0o1777) },
    Layout { what: "a foreign owner", wanted: Refused, make: |at| chown(at.runtime(), Some(65534), None).unwrap() },
    Layout {
        what: "a link to a good directory",
        wanted: Refused,
        make: |at| {
            fs::rename(at.runtime(), at.home.join("real")).unwrap();
            symlink(at.home.join("real"), at.runtime()).unwrap();
        },
    },
    Layout {
        what: "a dangling link",
        wanted: Refused,
        make: |at| replace(&at.runtime(), |path| symlink("nowhere", path).unwrap()),
    },
    Layout {
        what: "a link to itself",
        wanted: Refused,
        make: |at| replace(&at.runtime(), |path| symlink("runtime", path).unwrap()),
    },
    Layout {
        what: "a file for a directory",
        wanted: Refused,
        make: |at| replace(&at.runtime(), |path| fs::write(path, "").unwrap()),
    },
    Layout { what: "a FIFO for a directory", wanted: Refused, make: |at| replace(&at.runtime(), fifo) },
    Layout {
        what: "a socket for a directory",
        wanted: Refused,
        make: |at| replace(&at.runtime(), |path| drop(UnixListener::bind(path).unwrap())),
    },
    Layout { what: "a parent anybody may write to", wanted: Refused, make: |at| mode(&at.home, 0o777) },
    Layout {
        what: "a parent of another user",
        wanted: Refused,
        make: |at| chown(&at.home, Some(65534), None).unwrap(),
    },
    Layout { what: "a link for a socket", wanted: Refused, make: |at| symlink(at.victim(), at.socket()).unwrap() },
    Layout {
        what: "a dangling link for a socket",
        wanted: Refused,
        make: |at| symlink("nowhere", at.socket()).unwrap(),
    },
    Layout { what: "a file for a socket", wanted: Refused, make: |at| fs::write(at.socket(), "keep").unwrap() },
    Layout { what: "a FIFO for a socket", wanted: Refused, make: |at| fifo(&at.socket()) },
    Layout { what: "a directory for a socket", wanted: Refused, make: |at| fs::create_dir(at.socket()).unwrap() },
    Layout { what: "a dead socket", wanted: Healed, make: |at| drop(UnixListener::bind(at.socket()).unwrap()) },
    Layout { what: "a link for a lock", wanted: Refused, make: |at| symlink(at.victim(), at.lock()).unwrap() },
    Layout {
        what: "a dangling link for a lock",
        wanted: Refused,
        make: |at| symlink(at.home.join("made"), at.lock()).unwrap(),
    },
    Layout { what: "a FIFO for a lock", wanted: Refused, make: |at| fifo(&at.lock()) },
    Layout { what: "a directory for a lock", wanted: Refused, make: |at| fs::create_dir(at.lock()).unwrap() },
];

/// A refusal that can be acted on.
fn is_typed(run: &Run) -> bool {
    let answer = run.json();
    let error = &answer["error"];
    answer["ok"] == false
        && error["kind"] == "refused"
        && !error["message"].as_str().unwrap_or_default().is_empty()
        && error["hints"].as_array().is_some_and(|hints| !hints.is_empty())
}

#[test]
fn no_layout_of_somebody_elses_is_trusted() {
    let root = rustix::process::geteuid().is_root();
    let mut complaints = Vec::new();
    let mut tried = 0;
    for Layout { what, wanted, make } in LAYOUTS {
        let bug = Bug::new("c");
        let place = Place { home: bug.home().to_path_buf() };
        if (what.contains("owner") || what.contains("another user")) && !root {
            eprintln!("skipped: only root can give {what}");
            continue;
        }
        tried += 1;
        fs::write(place.victim(), "victim").unwrap();
        mode(&place.victim(), 0o640);
        fs::create_dir(place.runtime()).unwrap();
        mode(&place.runtime(), 0o700);
        make(&place);
        for words in [&["--json", "daemon", "start"][..], &["--json", "status"]] {
            let run = bug.run(words);
            let good = match wanted {
                Refused => is_typed(&run),
                Healed => run.code == 0 || run.json()["error"]["kind"] == "not_found",
            };
            if !good || run.took > SOON {
                complaints.push(format!("{what}: {:?}: {run}", run.took));
            }
        }
        let victim = fs::symlink_metadata(place.victim()).unwrap();
        if fs::read(place.victim()).unwrap() != b"victim" || victim.mode() & 0o7777 != 0o640 {
            complaints.push(format!("{what}: the file it leads to was touched"));
        }
        if place.home.join("made").exists() {
            complaints.push(format!("{what}: a file was made where the link leads"));
        }
        let left = bug.processes();
        if wanted == Refused && !left.is_empty() {
            complaints.push(format!("{what}: left running: {left:?}"));
            for (pid, _) in left {
                support::signal(pid, rustix::process::Signal::KILL);
            }
        }
        clean(&place, wanted, &bug);
    }
    let layouts = LAYOUTS.len();
    eprintln!("runtime directory: {tried} of {layouts} layouts tried, {} complaints", complaints.len());
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Out of the way again, so that the home can be closed and removed; and what was refused works once it is gone.
fn clean(place: &Place, wanted: Wanted, bug: &Bug) {
    if wanted == Healed {
        return;
    }
    let uid = rustix::process::geteuid().as_raw();
    let _ = chown(&place.home, Some(uid), None);
    mode(&place.home, 0o700);
    match fs::symlink_metadata(place.runtime()) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(place.runtime()).unwrap(),
        Ok(_) => fs::remove_file(place.runtime()).unwrap(),
        Err(_) => {}
    }
    bug.ok(&["daemon", "start"]);
}
