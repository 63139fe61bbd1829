//! `follow`: what happens in a session, with a prompt for commands beside it.
//!
//! One loop reads the record, the keys and the replies, and waits on the keys; each command is a thread of its own, so
//! that one that waits for the program holds up neither the events nor the one that would stop it.

mod sources;
mod terminal;

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::doing_line::{choices, is_said_twice};
use super::events::{known, patterns};
use super::{Bare, Group, do_, event_line, find, typed};
use crate::agent::alias;
use crate::cli::{Barred, LocalContext, Typist, complaint};
use crate::failure::Failure;
use crate::model::Event;
use crate::paths::Paths;
use crate::render::{Page, quoted, quoted_json};
use crate::store::read::Head;
use crate::wire::Answer;
use sources::Source;
use terminal::{Heard, Screen};

/// The most commands that are under way at once.
const MOST: usize = 8;

/// What a prompt beside a session is not for.
const BARRED: &[Barred] = &[
    Barred { command: "setup", switch: None, instead: "type it in a shell: bugeye setup" },
    Barred { command: "demo", switch: None, instead: "type it in a shell: bugeye demo" },
    Barred { command: "init", switch: None, instead: "type it in a shell: bugeye init" },
];

/// Watch a session as it goes, with a prompt for commands
///
/// For a person beside an agent: events scroll, and what is typed below them is a command about that session, as on the
/// command line. Without an ID it is the session from here, else the next that starts, and after its end the next one.
/// Ctrl-C or Ctrl-D leaves; the session goes on. Not on a terminal, lines of standard input are the commands.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Follow {
    /// The session, by its id or name.
    #[arg(value_name = "ID")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Only events of these types: a comma list, `*` and `?` stand for others (`stopped,out*`).
    #[arg(long, short = 'f', value_name = "TYPES", value_delimiter = ',')]
    #[serde(default)]
    pub filter: Vec<String>,
}

impl Bare for Follow {
    const NAME: &'static str = "follow";
    const GROUP: Group = Group::Around;

    fn run(self, cx: &LocalContext) -> Result<u8, Failure> {
        let mut cx = cx.clone();
        cx.session = self.id.or(cx.session);
        let source = Source::find(&cx)?;
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let who = format!("follow:{}", std::process::id());
        let (patterns, commands) = (patterns(&self.filter)?, Commands::new(&cx, &cwd, &who));
        let screen = Screen::new().map_err(|error| Failure::io("read what is typed", &error))?;
        let mut following = Following { cx, patterns, cwd, who, source, commands, screen, choices: None };
        match following.go() {
            // Whoever read has had enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("show the events", &error)),
            _ => Ok(0),
        }
    }

    fn prints() -> schemars::Schema {
        schemars::schema_for!(Said)
    }
}

/// One line of `--json`: what happened, or what came of a command.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its shape is of use")]
enum Said {
    Event(Event),
    Answer(Answer),
}

struct Following {
    cx: LocalContext,
    patterns: Vec<String>,
    cwd: PathBuf,
    /// Whose commands are ours.
    who: String,
    source: Source,
    commands: Commands,
    screen: Screen,
    /// What can be answered where an agent is held, until it is said.
    choices: Option<String>,
}

impl Following {
    fn go(&mut self) -> io::Result<()> {
        self.greet()?;
        // A person who comes to one that stands sees where.
        if self.screen.is_terminal()
            && let (Some(head), Some((event, line))) = (self.source.head().cloned(), self.source.stopped().cloned())
        {
            let mut text = String::new();
            self.show(&head, &event, &line, &mut text);
            self.screen.show(&text)?;
        }
        loop {
            self.tell()?;
            self.answer()?;
            // Last, below what a command has answered.
            if self.commands.is_idle()
                && let Some(choices) = self.choices.take()
            {
                self.screen.show(&choices)?;
            }
            if let Some(goodbye) = self.source.is_over(self.commands.is_idle()) {
                self.screen.note(&goodbye)?;
                if self.source.is_named() {
                    return Ok(());
                }
                self.source.wait_for_next();
                self.greet()?;
            }
            // Without a terminal, commands wait for the session they are about.
            let ready = self.screen.is_terminal() || self.source.head().is_some();
            self.commands.begin(self.source.head().map(|head| head.id.as_str()), ready);
            if self.screen.is_over() && self.commands.is_idle() {
                // What the last command brought about is shown too.
                drop(known(&self.cx));
                return self.tell();
            }
            for heard in self.screen.listen(!self.commands.is_idle())? {
                match heard {
                    Heard::Line(line) => self.take(&line)?,
                    Heard::End => return Ok(()),
                }
            }
        }
    }

    fn greet(&mut self) -> io::Result<()> {
        match self.source.head() {
            Some(head) => {
                let (label, words) = (head.label().to_string(), head.words.join(" "));
                let note = format!("following {} ({}): {}", quoted(&label), head.id, quoted(&words));
                self.screen.label(&label);
                self.screen.note(&note)
            }
            None => {
                self.screen.label("bugeye");
                self.screen.note("waiting for a session to start")
            }
        }
    }

    /// Shows what has happened.
    fn tell(&mut self) -> io::Result<()> {
        if self.source.head().is_none() && self.source.look() {
            self.greet()?;
        }
        while let Some((head, events)) = self.source.read()? {
            let mut text = String::new();
            for (event, line) in &events {
                self.show(&head, event, line, &mut text);
            }
            self.screen.show(&text)?;
        }
        Ok(())
    }

    fn show(&mut self, head: &Head, event: &Event, line: &str, to: &mut String) {
        let wanted = match self.patterns.as_slice() {
            [] => self.cx.json || !is_said_twice(head, event),
            patterns => patterns.iter().any(|pattern| alias::is_asked(pattern, event)),
        };
        // What was typed here is seen here.
        let own = event.kind.starts_with("command") && event.data["who"] == self.who.as_str();
        if event.kind == "continued" {
            self.choices = None;
        }
        if !wanted || own {
            return;
        }
        if self.cx.json {
            to.push_str(&quoted_json(line));
            to.push('\n');
        } else {
            let mut page = Page::new(self.cwd.clone());
            event_line::render(event, head.label(), &mut page);
            to.push_str(page.text());
            self.choices = choices(head, event).map(|choices| choices + "\n").or(self.choices.take());
        }
    }

    /// Shows what came of commands.
    fn answer(&mut self) -> io::Result<()> {
        while let Some(reply) = self.commands.reply() {
            match reply {
                Reply::Progress(text) => self.screen.note(&text)?,
                Reply::Final(result) if self.cx.json => {
                    let answer = Answer::new(result.map(|(value, _)| value));
                    let line = serde_json::to_string(&answer).unwrap_or_default();
                    self.screen.show(&format!("{}\n", quoted_json(&line)))?;
                }
                Reply::Final(Ok((_, text))) => self.screen.show(&text)?,
                Reply::Final(Err(failure)) => self.screen.complain(&complaint(&failure, None))?,
            }
        }
        Ok(())
    }

    /// Takes a line that was typed: commands, as a script has them.
    fn take(&mut self, line: &str) -> io::Result<()> {
        match do_::split(line) {
            Ok(commands) => {
                for mut words in commands {
                    if words.len() > 1 && words[0] == "bugeye" {
                        words.remove(0);
                    }
                    self.commands.queue.push_back(words);
                }
                Ok(())
            }
            Err(failure) => self.screen.complain(&complaint(&failure, None)),
        }
    }
}

/// What came of a command, or comes.
enum Reply {
    Progress(String),
    Final(Result<(serde_json::Value, String), Failure>),
}

/// Commands that are to be carried out, and those that are.
struct Commands {
    paths: Paths,
    cwd: PathBuf,
    who: String,
    queue: VecDeque<Vec<String>>,
    running: usize,
    to: mpsc::Sender<Reply>,
    from: mpsc::Receiver<Reply>,
}

impl Commands {
    fn new(cx: &LocalContext, cwd: &std::path::Path, who: &str) -> Self {
        let (to, from) = mpsc::channel();
        let (paths, cwd, who) = (cx.paths.clone(), cwd.to_path_buf(), who.to_string());
        Self { paths, cwd, who, queue: VecDeque::new(), running: 0, to, from }
    }

    fn is_idle(&self) -> bool {
        self.running == 0 && self.queue.is_empty()
    }

    fn reply(&mut self) -> Option<Reply> {
        let reply = self.from.try_recv().ok()?;
        if matches!(reply, Reply::Final(_)) {
            self.running -= 1;
        }
        Some(reply)
    }

    /// Begins what may: one after the other, but for those that are for a program that runs.
    fn begin(&mut self, session: Option<&str>, ready: bool) {
        while let Some(words) = self.queue.front() {
            let entry = words.first().and_then(|word| find(word));
            let any_time = entry.is_some_and(|entry| typed::ANY_TIME.contains(&entry.name));
            let starts = entry.is_some_and(|entry| entry.spawns);
            let most = if any_time { MOST } else { 1 };
            if self.running >= most || !(ready || starts) {
                return;
            }
            let Some(words) = self.queue.pop_front() else { return };
            self.running += 1;
            let (paths, cwd, who, to) = (self.paths.clone(), self.cwd.clone(), self.who.clone(), self.to.clone());
            let session = session.map(str::to_string);
            // Ends with its answer, or with the process.
            std::thread::spawn(move || {
                let mut typist = Typist::new(&paths, &cwd).whom(&who).for_a_person().barring(BARRED);
                typist.session = session;
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let progress = to.clone();
                let result = typist.ask_with(&words, &mut |text| drop(progress.send(Reply::Progress(text))));
                let _ = to.send(Reply::Final(result));
            });
        }
    }
}
