//! Which record is meant: of a session that the daemon has, else the newest of that name.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::Failure;
use crate::paths::Paths;
use crate::store::named::{named, newest_from};
use crate::store::read::{self, Head};
use crate::wire::{Caller, PROTOCOL, Request};

/// What the daemon tells of its records.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Known {
    /// The one that a command from here is about.
    pub meant: Option<String>,
    /// Whether its session still has a program.
    pub live: bool,
    pub all: Vec<String>,
    state: Option<PathBuf>,
}

impl Known {
    /// Asks the daemon, if there is one. All that happened until then is in the records.
    #[must_use]
    pub fn ask(paths: &Paths, session: Option<&str>, cwd: &Path) -> Self {
        let ctx = Caller {
            cwd: cwd.to_path_buf(),
            session: session.map(Into::into),
            who: "events".into(),
            ..Caller::default()
        };
        let request = Request { v: PROTOCOL, id: 1, cmd: "records".into(), args: serde_json::Value::Null, ctx };
        let connection = super::connect(paths).ok().flatten();
        // Records of the past can be read whatever the daemon is up to.
        let answer = connection.and_then(|mut connection| connection.ask(&request, &mut |_| {}).ok());
        answer.and_then(|answer| serde_json::from_value(answer.result?).ok()).unwrap_or_default()
    }

    /// The state directory of the daemon that writes, which may have been started with another.
    #[must_use]
    pub fn state<'a>(&'a self, paths: &'a Paths) -> &'a Path {
        self.state.as_deref().unwrap_or(&paths.state)
    }

    /// The record that is meant: of a session that is known, else the newest of that name, else the newest from here.
    pub fn chosen(&self, paths: &Paths, session: Option<&str>, cwd: &Path) -> Result<Head, Failure> {
        let state = self.state(paths);
        if let Some(head) = self.meant.as_ref().and_then(|id| Head::load(&read::root(state).join(id))) {
            return Ok(head);
        }
        match session {
            Some(name) => named(state, name, cwd),
            None => newest_from(state, cwd),
        }
    }
}
