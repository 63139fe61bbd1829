//! The file that commands come by, and how far it is done: `commands.jsonl` and `commands.done` of a record.
//!
//! A line counts as done before it is carried out, so that whatever ends its reader, nothing is carried out twice. Where
//! it is not sure what was done, nothing is: that is said, and only what is appended from then on counts.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::store::done::Done;

/// The longest line that is read.
pub const MAX_LINE: usize = 64 * 1024;
/// How much is read at once.
const PIECE: u64 = 64 * 1024;

/// What there is next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Line(Line),
    /// Something to say about the file; said once.
    Note(String),
    Nothing,
}

/// One whole line.
#[derive(Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it begins and ends in the file.
    pub at: u64,
    pub end: u64,
    /// Without its newline; None where it is too long.
    pub text: Option<Vec<u8>>,
}

/// From where a file is read.
#[derive(Debug)]
enum From {
    /// Nobody has read any yet.
    Start,
    /// Where an earlier reader left it.
    Kept(Done),
    /// It is not known what was done.
    End(&'static str),
}

/// The reader of one record's file.
#[derive(Debug)]
pub struct Inbox {
    folder: PathBuf,
    file: Option<File>,
    inode: u64,
    from: From,
    /// Where the line begins that is read now, and its beginning as far as it is there.
    at: u64,
    held: Vec<u8>,
    /// Bytes of a line that is too long, which are not held.
    passed: u64,
    /// Up to here it is done; the line that was read last may not be.
    done: u64,
    running: Vec<String>,
    complaint: Option<String>,
}

impl Inbox {
    /// Goes on where an earlier reader ended; answers also which commands that one had begun and not answered.
    #[must_use]
    pub fn open(folder: &Path) -> (Self, Vec<String>) {
        let (from, doubts) = match Done::load(folder) {
            Ok(Some(done)) => {
                let doubts = done.running.clone();
                (From::Kept(done), doubts)
            }
            Ok(None) => (From::Start, Vec::new()),
            Err(_) => (From::End("commands.done can't be read"), Vec::new()),
        };
        let inbox = Self {
            folder: folder.to_path_buf(),
            file: None,
            inode: 0,
            from,
            at: 0,
            held: Vec::new(),
            passed: 0,
            done: 0,
            running: Vec::new(),
            complaint: None,
        };
        (inbox, doubts)
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join("commands.jsonl")
    }

    /// The next whole line. One that is not whole yet waits for its end.
    pub fn next(&mut self) -> Next {
        let result = self.look().and_then(|note| match note {
            Some(note) => Ok(Next::Note(note)),
            None => self.read().map_err(|error| format!("commands.jsonl can't be read: {error}")),
        });
        match result {
            Ok(next) => {
                self.complaint = None;
                next
            }
            Err(complaint) if self.complaint.as_ref() == Some(&complaint) => Next::Nothing,
            Err(complaint) => {
                self.complaint = Some(complaint.clone());
                Next::Note(complaint)
            }
        }
    }

    /// Sees that the file is the one that is read, and one that only we write to; answers what is to be said.
    fn look(&mut self) -> Result<Option<String>, String> {
        let path = self.path();
        let found = match path.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Nobody can append to it any more: a new one takes its place.
                self.file = None;
                self.from = From::Start;
                let made = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
                made.map_err(|error| format!("commands.jsonl is gone: {error}"))?;
                return Ok(Some("commands.jsonl was gone; it is there again, empty".into()));
            }
            Err(error) => return Err(format!("commands.jsonl can't be looked at: {error}")),
        };
        let own = rustix::process::geteuid().as_raw();
        let refusal = if found.file_type().is_symlink() {
            Some("it is a symbolic link".to_string())
        } else if !found.is_file() {
            Some("it is not a file".into())
        } else if found.uid() != own {
            Some(format!("it belongs to user {}", found.uid()))
        } else if found.mode() & 0o022 != 0 {
            Some(format!("others may write to it (mode {:o})", found.mode() & 0o777))
        } else {
            None
        };
        if let Some(why) = refusal {
            // What was written meanwhile may be anybody's.
            if self.file.take().is_some() {
                self.from = From::End("it could not be trusted for a while");
            }
            return Err(format!("commands.jsonl is not read: {why}"));
        }
        if self.file.is_some() && found.ino() == self.inode {
            if found.len() >= self.at + self.held.len() as u64 + self.passed {
                return Ok(None);
            }
            self.from = From::End("it was cut");
        } else if self.file.is_some() {
            self.from = From::End("it was replaced");
        }
        self.start(&path)
    }

    /// Opens the file, and finds where to begin.
    fn start(&mut self, path: &Path) -> Result<Option<String>, String> {
        let failed = |error: io::Error| format!("commands.jsonl can't be opened: {error}");
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        let from = match std::mem::replace(&mut self.from, From::End("it was opened anew")) {
            From::Start => Ok(0),
            From::Kept(done) if done.inode != found.ino() => Err("it was replaced"),
            From::Kept(done) if done.offset > found.len() => Err("it was cut"),
            From::Kept(done) => Ok(done.offset),
            From::End(why) => Err(why),
        };
        let at = from.unwrap_or(found.len());
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        (self.file, self.inode, self.at, self.done, self.passed) = (Some(file), found.ino(), at, at, 0);
        self.held.clear();
        self.save().map_err(|error| {
            self.file = None;
            format!("commands.jsonl is not read, because commands.done can't be written: {error}")
        })?;
        let note =
            |why| format!("commands.jsonl: {why}; what was in it counts as done, what is appended is carried out");
        Ok(from.err().map(note))
    }

    fn read(&mut self) -> io::Result<Next> {
        let Some(file) = &mut self.file else { return Ok(Next::Nothing) };
        let mut searched = 0;
        loop {
            if let Some(found) = self.held[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(searched + found + 1);
                let mut text = std::mem::replace(&mut self.held, rest);
                let (at, size) = (self.at, std::mem::take(&mut self.passed) + text.len() as u64);
                text.pop();
                self.at += size;
                let text = (size <= MAX_LINE as u64 + 1).then_some(text);
                return Ok(Next::Line(Line { at, end: self.at, text }));
            }
            if self.held.len() > MAX_LINE {
                self.passed += self.held.len() as u64;
                self.held.clear();
            }
            searched = self.held.len();
            if io::Read::take(&mut *file, PIECE).read_to_end(&mut self.held)? == 0 {
                return Ok(Next::Nothing);
            }
        }
    }

    /// Counts a line as done; false where another reader has done so before.
    pub fn begin(&mut self, line: &Line, id: &str) -> io::Result<bool> {
        if Done::load(&self.folder)?.is_some_and(|done| done.inode == self.inode && done.offset >= line.end) {
            return Ok(false);
        }
        self.running.push(id.to_string());
        let before = std::mem::replace(&mut self.done, line.end);
        let kept = self.save();
        if kept.is_err() {
            self.running.pop();
            self.done = before;
        }
        kept.map(|()| true)
    }

    /// Its answer is given.
    pub fn end(&mut self, id: &str) {
        if let Some(at) = self.running.iter().position(|known| known == id) {
            self.running.remove(at);
        }
        // That it can't be written only leaves a doubt where there is none.
        let _ = self.save();
    }

    fn save(&self) -> io::Result<()> {
        let done = Done { v: 1, inode: self.inode, offset: self.done, running: self.running.clone() };
        done.save(&self.folder)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            folder.append("");
            folder
        }

        fn append(&self, text: &str) {
            let path = self.0.path().join("commands.jsonl");
            let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn open(&self) -> Inbox {
            let (inbox, doubts) = Inbox::open(self.0.path());
            assert_eq!(doubts, Vec::<String>::new());
            inbox
        }
    }

    /// All that there is: lines as they are, notes after a `!`. Each line is begun and ended.
    fn all(inbox: &mut Inbox) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            match inbox.next() {
                Next::Nothing => return found,
                Next::Note(note) => found.push(format!("! {note}")),
                Next::Line(line) => {
                    assert!(inbox.begin(&line, "x").unwrap());
                    inbox.end("x");
                    let text = line.text.map(|text| String::from_utf8(text).unwrap());
                    found.push(text.unwrap_or_else(|| format!("{} bytes", line.end - line.at)));
                }
            }
        }
    }

    #[test]
    fn whole_lines_come_in_order_and_a_half_one_waits() {
        let folder = Folder::new();
        let mut inbox = folder.open();
        assert!(all(&mut inbox).is_empty());
        folder.append("a\nb\nhal");
        assert_eq!(all(&mut inbox), ["a", "b"]);
        folder.append("f");
        assert!(all(&mut inbox).is_empty());
        folder.append("\nc\n");
        assert_eq!(all(&mut inbox), ["half", "c"]);
    }

    #[test]
    fn another_reader_goes_on_where_the_first_was_killed() {
        let folder = Folder::new();
        folder.append("a\nb\nc\nhal");
        let mut first = folder.open();
        let Next::Line(line) = first.next() else { panic!() };
        assert!(first.begin(&line, "1").unwrap());
        first.end("1");
        let Next::Line(line) = first.next() else { panic!() };
        assert!(first.begin(&line, "2").unwrap());
        // Read, and not begun: that counts for nothing.
        assert!(matches!(first.next(), Next::Line(_)));
        first.end("none");
        drop(first);
        let (mut second, doubts) = Inbox::open(folder.0.path());
        assert_eq!(doubts, ["2"]);
        folder.append("f\n");
        assert_eq!(all(&mut second), ["c", "half"]);
        // The doubt is told once.
        assert!(all(&mut folder.open()).is_empty());
    }

    #[test]
    fn two_readers_at_once_carry_out_nothing_twice() {
        let folder = Folder::new();
        folder.append("a\nb\n");
        let (mut one, mut two) = (folder.open(), folder.open());
        let (Next::Line(first), Next::Line(same)) = (one.next(), two.next()) else { panic!() };
        assert_eq!(first, same);
        assert!(one.begin(&first, "1").unwrap());
        assert!(!two.begin(&same, "1").unwrap());
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let folder = Folder::new();
        let mut inbox = folder.open();
        for size in [MAX_LINE, MAX_LINE + 1, 300_000] {
            folder.append(&"x".repeat(size));
            assert!(all(&mut inbox).is_empty());
            folder.append("\nafter\n");
            let told = if size > MAX_LINE { format!("{} bytes", size + 1) } else { "x".repeat(size) };
            assert_eq!(all(&mut inbox), [told.as_str(), "after"]);
        }
        assert!(inbox.held.capacity() < 400_000);
    }

    #[test]
    fn what_was_cut_or_replaced_counts_as_done() {
        let folder = Folder::new();
        let path = folder.0.path().join("commands.jsonl");
        let mut inbox = folder.open();
        folder.append("a\nb\n");
        assert_eq!(all(&mut inbox), ["a", "b"]);
        OpenOptions::new().write(true).open(&path).unwrap().set_len(2).unwrap();
        assert!(all(&mut inbox)[0].contains("it was cut"));
        folder.append("c\n");
        assert_eq!(all(&mut inbox), ["c"]);
        let other = folder.0.path().join("other");
        std::fs::write(&other, "a\nc\n").unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::rename(&other, &path).unwrap();
        assert!(all(&mut inbox)[0].contains("it was replaced"));
        folder.append("d\n");
        assert_eq!(all(&mut inbox), ["d"]);
        std::fs::remove_file(&path).unwrap();
        assert!(all(&mut inbox)[0].contains("it is there again"));
        folder.append("e\n");
        assert_eq!(all(&mut inbox), ["e"]);
        std::fs::write(folder.0.path().join("commands.done"), "nonsense").unwrap();
        assert!(all(&mut folder.open())[0].contains("commands.done can't be read"));
    }

    #[test]
    fn a_file_that_others_may_write_to_is_refused_once() {
        let folder = Folder::new();
        let path = folder.0.path().join("commands.jsonl");
        let mut inbox = folder.open();
        assert!(all(&mut inbox).is_empty());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o620)).unwrap();
        folder.append("a\n");
        assert_eq!(all(&mut inbox), ["! commands.jsonl is not read: others may write to it (mode 620)"]);
        assert!(all(&mut inbox).is_empty());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(all(&mut inbox)[0].contains("could not be trusted"));
        folder.append("b\n");
        assert_eq!(all(&mut inbox), ["b"]);
        std::fs::rename(&path, folder.0.path().join("real")).unwrap();
        std::os::unix::fs::symlink(folder.0.path().join("real"), &path).unwrap();
        assert_eq!(all(&mut inbox), ["! commands.jsonl is not read: it is a symbolic link"]);
    }
}
