//! How far the commands by file of a record are done: its `commands.done`.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::read::{Head, Tail};

/// More than this is not ours.
const MAX: u64 = 64 * 1024;

/// How far a file is done, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub v: u32,
    /// The file it is about.
    pub inode: u64,
    pub offset: u64,
    /// Commands that are counted as done and not answered yet.
    #[serde(default)]
    pub running: Vec<String>,
}

impl Done {
    /// What is kept; none where nobody has read yet.
    pub fn load(folder: &Path) -> io::Result<Option<Self>> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(folder.join("commands.done")) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        file.take(MAX).read_to_string(&mut text)?;
        let done: Self = serde_json::from_str(&text)?;
        if done.v != 1 {
            return Err(io::Error::other("another version wrote it"));
        }
        Ok(Some(done))
    }

    /// Replaces what is kept, in one step.
    pub fn save(&self, folder: &Path) -> io::Result<()> {
        let draft = folder.join("commands.done.new");
        let _ = std::fs::remove_file(&draft);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(format!("{}\n", serde_json::to_string(self)?).as_bytes())?;
        std::fs::rename(&draft, folder.join("commands.done"))
    }
}

/// Commands by file that were begun, and whose answer is not in the record.
#[must_use]
pub fn unanswered(head: &Head) -> Vec<String> {
    let mut begun = match Done::load(&head.folder) {
        Ok(Some(done)) if !done.running.is_empty() => done.running,
        _ => return Vec::new(),
    };
    let mut answered = HashSet::new();
    let mut tail = Tail::new(&head.folder);
    while let Ok(Some(events)) = tail.read() {
        let results = events.into_iter().filter(|(event, _)| event.kind == "command.result");
        answered.extend(results.filter_map(|(event, _)| Some(event.data.get("id")?.as_str()?.to_string())));
    }
    begun.retain(|id| !answered.contains(id));
    begun
}
