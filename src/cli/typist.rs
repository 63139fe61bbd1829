//! Commands typed from within: parsed, sent and shown as those of the command line are, with the reply kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::words::{self, Meaning};
use super::{root, umask, with_name};
use crate::client;
use crate::commands::CATALOGUE;
use crate::failure::Failure;
use crate::paths::Paths;
use crate::render::Page;
use crate::wire::{Caller, PROTOCOL, Request};

/// Somebody who types in a folder.
#[derive(Debug)]
pub struct Typist<'a> {
    paths: &'a Paths,
    cwd: PathBuf,
    /// The session of the replies so far, which the next command is about.
    pub session: Option<String>,
    pub via: Option<String>,
}

impl<'a> Typist<'a> {
    #[must_use]
    pub fn new(paths: &'a Paths, cwd: &Path) -> Self {
        Self { paths, cwd: cwd.to_path_buf(), session: None, via: None }
    }

    /// Carries out a command of the daemon; answers its result and how that reads.
    pub fn ask(&mut self, typed: &[&str]) -> Result<(Value, String), Failure> {
        let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
        let Meaning::Command(entry, words) = words::understand(&typed, CATALOGUE)? else {
            return Err(Failure::internal("no command was typed"));
        };
        let misread = |error: clap::Error| Failure::usage(error.to_string());
        let matches = root(Some(entry)).try_get_matches_from(with_name(words)).map_err(misread)?;
        let Some((_, arguments)) = matches.subcommand() else {
            return Err(Failure::internal("no command was found in what was typed"));
        };
        let args = (entry.parse)(arguments).map_err(misread)?;
        let ctx = Caller {
            cwd: self.cwd.clone(),
            session: self.session.clone(),
            who: format!("cli:{}", std::process::id()),
            env: entry.spawns.then(environment),
            umask: entry.spawns.then(umask),
        };
        let request = Request { v: PROTOCOL, id: 1, cmd: entry.name.to_string(), args, ctx };
        let answer = client::connect_or_start(self.paths)?.ask(&request, &mut |_| {})?;
        self.session = answer.session.clone().or(self.session.take());
        self.via = answer.via.clone().or(self.via.take());
        if let Some(failure) = answer.error {
            return Err(failure);
        }
        let result = answer.result.unwrap_or_default();
        let mut page = Page::new(self.cwd.clone());
        (page.session, page.via) = (answer.session, answer.via);
        (entry.render)(result.clone(), &mut page)?;
        Ok((result, page.into_text()))
    }
}

/// This process's environment, without the adapter it asks for: what is typed here has made its choice.
fn environment() -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    std::env::vars_os().filter_map(text).filter(|(name, _)| name != "BUGEYE_ADAPTER").collect()
}

/// A command as a user would type it in a shell.
#[must_use]
pub fn typed(words: &[&str]) -> String {
    let plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=".contains(&byte));
    let quote = |word: &&str| if plain(word) { (*word).to_string() } else { format!("'{word}'") };
    let words: Vec<String> = words.iter().map(quote).collect();
    format!("bugeye {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_change_is_quoted() {
        assert_eq!(typed(&["run", "--break", "a.c:3", "--", "./a"]), "bugeye run --break a.c:3 -- ./a");
        assert_eq!(typed(&["print", "-e", "xs[n - 1]"]), "bugeye print -e 'xs[n - 1]'");
    }
}
