//! The same lines by two files in a folder: an agent appends to `events.jsonl`, and is answered in `commands.jsonl`.
//!
//! For agents that can't open a socket, and for whoever wants to read along with `tail -f`. Each line is taken once: what
//! was there before the debugger came is passed over, a line that is not whole waits for its end, and an agent that is
//! started again in the same folder says `hello` again, which withdraws what its last life had asked. `debugger.json`
//! tells agents whether a debugger is there at all: its process, and when that began.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::OFlags;
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;

use super::talk::{ANSWERS, Talk};
use super::wire::{self, MAX_LINE, Said, VERSION};
use super::{gate, private};
use crate::bell::Bell;
use crate::platform;

/// How much is read at once.
const PIECE: u64 = 64 * 1024;
/// How often an agent that waits is looked at, whether it is still there.
const LOOKING: Duration = Duration::from_millis(200);
/// The most processes that write to one file. A new one takes the place of one that has ended, or of any.
const AGENTS: usize = 64;

/// A folder that agents are served by. Dropping it says that no debugger is there.
#[derive(Debug)]
pub struct Files {
    events: Reader,
    commands: File,
    here: PathBuf,
    session: Arc<str>,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.here);
    }
}

/// One process that writes, and what it waits for.
#[derive(Debug)]
struct Agent {
    talk: Talk,
    process: Option<platform::Watched>,
}

impl Files {
    /// Makes the folder and its files where they are missing. What agents write from now on is taken.
    pub fn open(folder: &Path, session: &str) -> io::Result<Self> {
        private::folder(folder)?;
        let commands = append_to(&folder.join("commands.jsonl"))?;
        let events = Reader::at_the_end(folder.join("events.jsonl"))?;
        let here = folder.join("debugger.json");
        let pid = std::process::id();
        let said = json!({ "v": VERSION, "pid": pid, "start": platform::start_time(pid), "session": session });
        let draft = folder.join("debugger.json.new");
        let _ = std::fs::remove_file(&draft);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)?
            .write_all(format!("{said}\n").as_bytes())?;
        std::fs::rename(&draft, &here)?;
        Ok(Self { events, commands, here, session: session.into() })
    }

    /// Serves whoever writes, as long as it is polled; dropped, it withdraws all they had asked.
    pub async fn serve(mut self, line: gate::Line) {
        let (answers, answered) = mpsc::channel(ANSWERS);
        let Ok(commands) = self.commands.try_clone() else { return };
        tokio::select! {
            () = self.listen(&line, answers) => {}
            () = write(commands, answered) => {}
        }
    }

    async fn listen(&mut self, line: &gate::Line, answers: mpsc::Sender<Json>) {
        let bell = Bell::start();
        let mut wait = bell.wait();
        let mut agents: HashMap<Option<u32>, Agent> = HashMap::new();
        loop {
            let rings = bell.add(&self.events.path);
            loop {
                match self.events.next() {
                    Ok(Some(text)) if text.trim_ascii().is_empty() => {}
                    Ok(Some(text)) => self.take(&text, &mut agents, line, &answers).await,
                    Ok(None) => break,
                    Err(error) => {
                        eprintln!("{}: {error}", self.events.path.display());
                        break;
                    }
                }
            }
            agents.retain(|_, agent| agent.process.as_ref().is_none_or(|process| !process.has_ended()));
            let waits = agents.values_mut().any(|agent| agent.process.is_some() && !agent.talk.is_idle());
            tokio::select! {
                () = wait.rung(rings) => {}
                () = tokio::time::sleep(LOOKING), if waits => {}
            }
        }
    }

    async fn take(
        &self,
        text: &[u8],
        agents: &mut HashMap<Option<u32>, Agent>,
        line: &gate::Line,
        answers: &mpsc::Sender<Json>,
    ) {
        let read = wire::read(text);
        let anew = matches!(read.said, Ok(Said::Hello { .. }));
        if anew && read.v != Some(VERSION) {
            let message = format!("another version: this debugger speaks version {VERSION}");
            let _ = answers.send(json!({ "type": "error", "message": message })).await;
            return;
        }
        if anew || !agents.contains_key(&read.pid) {
            if agents.len() >= AGENTS
                && let Some(any) = agents.keys().next().copied()
            {
                agents.remove(&any);
            }
            // What the one before with this number had asked goes with it.
            let talk = Talk::new(line, &self.session, answers.clone());
            agents.insert(read.pid, Agent { talk, process: read.pid.and_then(platform::watch) });
        }
        if let Some(agent) = agents.get_mut(&read.pid) {
            agent.talk.take(read.said).await;
        }
    }
}

/// A file of ours, to append to; made where it is missing.
fn append_to(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(unfollowed()).open(path)?;
    check(&file)?;
    Ok(file)
}

/// A link is not followed, and a FIFO is not waited for.
fn unfollowed() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed()
}

fn check(file: &File) -> io::Result<()> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("it belongs to user {}", found.uid())));
    }
    Ok(())
}

/// One line, one call: whoever reads along sees whole lines.
async fn write(mut commands: File, mut answers: mpsc::Receiver<Json>) {
    while let Some(answer) = answers.recv().await {
        if let Err(error) = commands.write_all(format!("{answer}\n").as_bytes()) {
            eprintln!("an answer can't be written: {error}");
        }
    }
}

/// Reads whole lines of a file as it grows.
#[derive(Debug)]
struct Reader {
    path: PathBuf,
    file: Option<File>,
    inode: u64,
    /// How far it is read, and what of that is no whole line yet.
    at: u64,
    held: Vec<u8>,
    /// The line that is read now is too long, and is passed over.
    passing: bool,
}

impl Reader {
    fn at_the_end(path: PathBuf) -> io::Result<Self> {
        // A line that was torn by its writer's end is ended, so that the next one begins.
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(unfollowed())
            .open(&path)?;
        check(&file)?;
        let size = file.seek(SeekFrom::End(0))?;
        if size > 0 {
            let mut last = [0];
            file.seek(SeekFrom::Start(size - 1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
            }
        }
        let at = file.seek(SeekFrom::End(0))?;
        let inode = file.metadata()?.ino();
        Ok(Self { path, file: Some(file), inode, at, held: Vec::new(), passing: false })
    }

    /// Sees that the file is the one that is read. One that was replaced or cut is read from its beginning.
    fn look(&mut self) -> io::Result<()> {
        let found = match self.path.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                append_to(&self.path)?;
                self.path.symlink_metadata()?
            }
            Err(error) => return Err(error),
        };
        if self.file.is_some() && found.ino() == self.inode && found.len() >= self.at {
            return Ok(());
        }
        self.file = None;
        let file = OpenOptions::new().read(true).custom_flags(unfollowed()).open(&self.path)?;
        check(&file)?;
        (self.inode, self.at, self.passing) = (file.metadata()?.ino(), 0, false);
        self.held.clear();
        self.file = Some(file);
        Ok(())
    }

    /// The next whole line, without its newline.
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut searched = 0;
        loop {
            if let Some(found) = self.held[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(searched + found + 1);
                let mut line = std::mem::replace(&mut self.held, rest);
                line.pop();
                searched = 0;
                if std::mem::take(&mut self.passing) {
                    continue;
                }
                return Ok(Some(line));
            }
            if self.held.len() > MAX_LINE {
                eprintln!("{}: a line of more than {MAX_LINE} bytes is passed over", self.path.display());
                self.passing = true;
            }
            if self.passing {
                self.held.clear();
            }
            // What was held is forgotten where the file is another one now.
            self.look()?;
            searched = self.held.len();
            let Some(file) = &mut self.file else { return Ok(None) };
            let read = file.take(PIECE).read_to_end(&mut self.held)?;
            if read == 0 {
                return Ok(None);
            }
            self.at += read as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("events.jsonl");
        (base, path)
    }

    fn append(path: &Path, text: &[u8]) {
        OpenOptions::new().append(true).create(true).open(path).unwrap().write_all(text).unwrap();
    }

    #[track_caller]
    fn reads(reader: &mut Reader, lines: &[&str]) {
        for line in lines {
            assert_eq!(reader.next().unwrap().as_deref(), Some(line.as_bytes()));
        }
        assert_eq!(reader.next().unwrap(), None);
    }

    #[test]
    fn a_line_is_read_once_and_whole() {
        let (_base, path) = folder();
        append(&path, b"old\ntorn");
        let mut reader = Reader::at_the_end(path.clone()).unwrap();
        reads(&mut reader, &[]);
        append(&path, b"one\ntw");
        reads(&mut reader, &["one"]);
        append(&path, "o \u{e9}".as_bytes());
        reads(&mut reader, &[]);
        append(&path, b"\n\nthree\n");
        reads(&mut reader, &["two \u{e9}", "", "three"]);
    }

    #[test]
    fn a_file_that_is_replaced_or_cut_is_read_anew() {
        let (base, path) = folder();
        let mut reader = Reader::at_the_end(path.clone()).unwrap();
        append(&path, b"one\nhalf");
        reads(&mut reader, &["one"]);
        std::fs::write(&path, "two\n").unwrap();
        reads(&mut reader, &["two"]);
        append(&base.path().join("new"), b"three\n");
        std::fs::rename(base.path().join("new"), &path).unwrap();
        reads(&mut reader, &["three"]);
        std::fs::remove_file(&path).unwrap();
        reads(&mut reader, &[]);
        append(&path, b"four\n");
        reads(&mut reader, &["four"]);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(reader.next().is_err());
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let (_base, path) = folder();
        let mut reader = Reader::at_the_end(path.clone()).unwrap();
        append(&path, &vec![b'x'; MAX_LINE + 2 * PIECE as usize]);
        reads(&mut reader, &[]);
        assert!(reader.held.is_empty());
        append(&path, b"xxx\nnext\n");
        reads(&mut reader, &["next"]);
    }
}
