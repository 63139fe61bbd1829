//! Commands typed from within: parsed, sent and shown as those of the command line are, with the reply kept.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::error::ErrorKind;
use serde_json::Value;

use super::words::{self, Meaning};
use super::{LocalContext, SESSION, help, past, root, umask, usage, with_name};
use crate::client;
use crate::commands::{CATALOGUE, Entry, Run};
use crate::config::Config;
use crate::failure::Failure;
use crate::paths::Paths;
use crate::render::{Page, quoted_lines};
use crate::wire::{Answer, Caller, Line, PROTOCOL, Request};

/// Ends the wait of somebody who types, from another thread.
#[derive(Clone, Default)]
pub struct Stopper(Arc<Mutex<Waits>>);

#[derive(Default)]
struct Waits {
    stopped: bool,
    close: Option<Box<dyn Fn() + Send>>,
}

impl std::fmt::Debug for Stopper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stopper")
    }
}

impl Stopper {
    /// Gives up the wait, and what is typed after it.
    pub fn stop(&self) {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.stopped = true;
        if let Some(close) = waits.close.take() {
            close();
        }
    }

    fn guards(&self, close: impl Fn() + Send + 'static) -> Result<(), Failure> {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waits.stopped {
            return Err(Failure::refused("cancelled"));
        }
        waits.close = Some(Box::new(close));
        Ok(())
    }
}

/// A command that is not carried out.
#[derive(Debug)]
pub struct Barred {
    pub command: &'static str,
    /// Only with this switch.
    pub switch: Option<&'static str>,
    /// What to do instead.
    pub instead: &'static str,
}

/// Commands that wait longer than most, by their `timeout`.
const WAITS: [&str; 2] = ["await", "trace"];

/// Somebody who types in a folder.
#[derive(Debug)]
pub struct Typist<'a> {
    paths: &'a Paths,
    cwd: PathBuf,
    who: String,
    /// Somebody at a terminal says what to type.
    person: bool,
    stopper: Stopper,
    barred: &'static [Barred],
    /// How long a command may wait that has a long limit of its own, in seconds.
    patience: Option<f64>,
    /// The adapter that the environment asks for is what the user wants here.
    obeys: bool,
    /// The session of the replies so far, which the next command is about.
    pub session: Option<String>,
    pub via: Option<String>,
}

impl<'a> Typist<'a> {
    #[must_use]
    pub fn new(paths: &'a Paths, cwd: &Path) -> Self {
        let who = format!("cli:{}", std::process::id());
        Self {
            paths,
            cwd: cwd.to_path_buf(),
            who,
            person: false,
            stopper: Stopper::default(),
            barred: &[],
            patience: None,
            obeys: false,
            session: None,
            via: None,
        }
    }

    /// Uses the adapter that the environment asks for; else what is typed has made its choice.
    #[must_use]
    pub const fn obeying(mut self) -> Self {
        self.obeys = true;
        self
    }

    /// Has no patience for the long limits of commands, where no other is typed.
    #[must_use]
    pub const fn waiting(mut self, seconds: f64) -> Self {
        self.patience = Some(seconds);
        self
    }

    /// Types for somebody else.
    #[must_use]
    pub fn whom(mut self, who: &str) -> Self {
        self.who = who.to_string();
        self
    }

    /// Types for somebody at a terminal, where there is one.
    #[must_use]
    pub fn for_a_person(mut self) -> Self {
        self.person = super::is_person();
        self
    }

    #[must_use]
    pub fn stopped_by(mut self, stopper: Stopper) -> Self {
        self.stopper = stopper;
        self
    }

    /// Carries out none of these.
    #[must_use]
    pub const fn barring(mut self, barred: &'static [Barred]) -> Self {
        self.barred = barred;
        self
    }

    /// Carries out a command; answers its result and how that reads.
    pub fn ask(&mut self, typed: &[&str]) -> Result<(Value, String), Failure> {
        self.ask_with(typed, &mut |_| {})
    }

    /// As [`Typist::ask`]; what is told on the way goes to `progress`.
    pub fn ask_with(&mut self, typed: &[&str], progress: &mut dyn FnMut(String)) -> Result<(Value, String), Failure> {
        let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
        let Meaning::Command(entry, words) = words::understand(&typed, CATALOGUE)? else {
            return Ok((Value::Null, help::full()));
        };
        let matches = match root(Some(entry)).try_get_matches_from(with_name(words)) {
            Ok(matches) => matches,
            Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok((Value::Null, error.to_string())),
            Err(error) => return Err(usage(&error)),
        };
        let Some((_, arguments)) = matches.subcommand() else {
            return Err(Failure::internal("no command was found in what was typed"));
        };
        let mut args = (entry.parse)(arguments).map_err(|error| usage(&error))?;
        if let Some(seconds) = self.patience.filter(|_| WAITS.contains(&entry.name) && args["timeout"].is_null()) {
            args["timeout"] = seconds.into();
        }
        let is_barred = |barred: &&Barred| {
            barred.command == entry.name && barred.switch.is_none_or(|switch| args[switch] == Value::Bool(true))
        };
        if let Some(barred) = self.barred.iter().find(is_barred) {
            let switch = barred.switch.map(|switch| format!(" --{switch}")).unwrap_or_default();
            let failure = Failure::refused(format!("`{}{switch}` is for the command line alone", entry.name));
            return Err(failure.hint(barred.instead));
        }
        if let Some(session) = arguments.get_one::<String>(SESSION) {
            self.session = Some(session.clone());
        }
        let typed = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let (session, cwd) = (self.session.clone(), self.cwd.clone());
        let when = past::moment(arguments, entry)?;
        let known = past::Asked { entry, args: &args, session: session.as_deref(), when, paths: self.paths, cwd: &cwd };
        let answer = match entry.run {
            Run::Daemon(_) => match known.first()? {
                Some(answer) => answer,
                None => known.instead_of(self.send(entry, args.clone(), typed, progress)?),
            },
            Run::Local(run) => {
                let config = Config::load(self.paths)?;
                config.register_adapters();
                let context =
                    LocalContext { paths: self.paths.clone(), config, json: false, session: self.session.clone() };
                Answer::new(run(args, &context))
            }
            Run::Bare(_) => {
                return Err(Failure::unsupported(format!("`{}` is for the command line alone", entry.name))
                    .hint(format!("type it in a shell: bugeye {}", entry.name)));
            }
        };
        let record = answer.from.as_ref().map(|from| from.record.clone());
        self.session = record.or(answer.session.clone()).or(self.session.take());
        self.via = answer.via.clone().or(self.via.take());
        if let Some(failure) = answer.error {
            return Err(failure);
        }
        let result = answer.result.unwrap_or_default();
        let mut page = Page::new(self.cwd.clone());
        (page.session, page.via) = (answer.session, answer.via);
        (entry.render)(result.clone(), &mut page)?;
        if let Some(from) = &answer.from {
            page.line(format!("note: {}", from.line()));
        }
        Ok((result, past::harmless(page.text(), answer.from.is_some())))
    }

    /// Has the daemon carry out a command.
    fn send(
        &self,
        entry: &Entry,
        args: Value,
        typed: Vec<String>,
        progress: &mut dyn FnMut(String),
    ) -> Result<Answer, Failure> {
        let ctx = Caller {
            cwd: self.cwd.clone(),
            session: self.session.clone(),
            who: self.who.clone(),
            env: entry.spawns.then(|| environment(self.obeys)),
            umask: entry.spawns.then(umask),
            typed: Some(typed),
            person: self.person,
            ..Caller::default()
        };
        let request = Request { v: PROTOCOL, id: 1, cmd: entry.name.to_string(), args, ctx };
        let mut connection = client::connect_or_start(self.paths)?;
        self.stopper.guards(connection.closer()?)?;
        connection.ask(&request, &mut |part| {
            if let Line::Progress { text, .. } = part {
                progress(quoted_lines(&text));
            }
        })
    }
}

/// This process's environment, with the adapter it asks for or without.
fn environment(obeys: bool) -> Vec<(String, String)> {
    let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    let wanted = |name: &str| match name {
        "BUGEYE_ADAPTER" => obeys,
        // Whoever has it can start programs here.
        "BUGEYE_MCP_TOKEN" => false,
        _ => true,
    };
    std::env::vars_os().filter_map(text).filter(|(name, _)| wanted(name)).collect()
}

/// A command as a user would type it in a shell.
#[must_use]
pub fn typed(words: &[&str]) -> String {
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./:=…".contains(letter))
    };
    let quote =
        |word: &&str| if plain(word) { (*word).to_string() } else { format!("'{}'", word.replace('\'', r"'\''")) };
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
        assert_eq!(typed(&["input", "it's", ""]), r"bugeye input 'it'\''s' ''");
    }
}
