//! `status`: what a session is doing, read without asking anyone.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::{ending_line, reason_line};
use super::{Command, Group, Past};
use crate::adapters::agent::AGENT;
use crate::failure::Failure;
use crate::hub::{Context, Live};
use crate::model::{Ending, Reason, SessionState};
use crate::platform;
use crate::render::{MAX_COMMAND, Page, Render, beginning, command, command_within, quoted};
use crate::store::replay::Moment;
use crate::store::write::now_ms;

/// Show the state of the session: never waits behind another command
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Status {}

/// One session as it is now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionLine {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub state: SessionState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub command: Vec<String>,
    pub cwd: String,
    pub adapter: String,
    /// Milliseconds since 1970.
    pub started: u64,
    /// The time of this answer.
    #[serde(default)]
    pub now: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i64>,
    /// Stops so far.
    pub stops: u64,
    /// Hits of breakpoints so far.
    pub hits: u64,
    /// The program is running and reads its standard input.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waiting_for_input: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// Who controls it, where it is an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<Controller>,
    /// What the recording lacks, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording_trouble: Option<String>,
}

/// Who controls an agent's session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Controller {
    /// As commands in the record have it.
    pub who: String,
    /// Somebody at a terminal; else an agent.
    pub person: bool,
    /// Seconds since they used it.
    pub idle_secs: u64,
}

impl Controller {
    fn of(live: &Live) -> Option<Self> {
        let holder = live.holder()?;
        Some(Self { idle_secs: holder.idle(), who: holder.who, person: holder.person })
    }

    fn text(&self) -> String {
        let what = if self.person { "a person" } else { "an agent" };
        format!("controlled by {what} ({}) {} s ago", quoted(&self.who), self.idle_secs)
    }
}

/// What was started, in a line: an agent by its name, wherever it is.
pub(super) fn command_line(words: &[String], adapter: &str) -> String {
    let mut words = words.to_vec();
    if adapter != AGENT.id {
        return command(&words);
    }
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or(program).to_string();
    }
    let words = command_within(&words, MAX_COMMAND);
    let line = crate::cli::typed(&words.iter().map(String::as_str).collect::<Vec<_>>());
    beginning(line.strip_prefix("bugeye ").unwrap_or(&line), MAX_COMMAND)
}

impl SessionLine {
    #[must_use]
    pub fn of(live: &Live) -> Self {
        let snapshot = live.handle.snapshot.borrow().clone();
        let waiting = match (snapshot.state, snapshot.pid, &live.stdin) {
            (SessionState::Running, Some(pid), Some(stdin)) => platform::waiting_for_input(pid, stdin),
            _ => false,
        };
        Self {
            id: live.alias.clone(),
            name: live.name.clone(),
            state: snapshot.state,
            pid: snapshot.pid,
            command: live.blueprint.words.clone(),
            cwd: live.blueprint.cwd.to_string_lossy().into_owned(),
            adapter: live.via(),
            started: live.started,
            now: now_ms(),
            reason: snapshot.reason,
            function: snapshot.function,
            file: snapshot.file,
            line: snapshot.line,
            thread: snapshot.thread,
            stops: snapshot.stops,
            hits: snapshot.hits.values().map(|binding| binding.hits).sum(),
            waiting_for_input: waiting,
            ending: snapshot.ending,
            recording: live.record.clone(),
            controller: Controller::of(live),
            recording_trouble: live.journal.as_ref().and_then(crate::store::Journal::trouble),
        }
    }

    /// As it was at a moment of its record.
    #[must_use]
    pub fn at(moment: &Moment) -> Self {
        let head = &moment.head;
        let stop = moment.stood.as_ref().map(|stood| &stood.stop);
        let top = stop.and_then(|stop| stop.frames.iter().find(|frame| frame.index == stop.frame));
        let hits = moment.breakpoints.values().filter_map(|report| report.binding.as_ref());
        Self {
            // A record that was given has none of this machine.
            id: if head.alias.is_empty() { head.id.clone() } else { head.alias.clone() },
            name: head.name.clone(),
            state: moment.state,
            pid: moment.pid,
            command: head.words.clone(),
            cwd: head.cwd.to_string_lossy().into_owned(),
            adapter: moment.via.clone().unwrap_or_else(|| head.adapter.clone()),
            started: head.started,
            now: moment.ts,
            reason: stop.map(|stop| stop.reason.clone()),
            function: top.map(|frame| frame.function.clone()),
            file: top.and_then(|frame| frame.file.clone()),
            line: top.and_then(|frame| frame.line),
            thread: stop.map(|stop| stop.thread.id),
            stops: moment.stops,
            hits: hits.map(|binding| binding.hits).sum(),
            waiting_for_input: false,
            ending: moment.ending.clone(),
            recording: Some(head.id.clone()),
            controller: None,
            recording_trouble: None,
        }
    }

    fn text(&self, page: &Page) -> String {
        let mut parts = vec![format!("{}: {}", self.id, self.state)];
        if let Some(ending) = self.ending.as_ref().filter(|_| !self.state.is_live()) {
            parts[0] = format!("{}: {}", self.id, ending_line(ending));
        }
        if let Some(reason) = &self.reason {
            parts[0].push_str(&format!(" ({})", reason_line(reason)));
        }
        if let (Some(file), Some(line)) = (&self.file, self.line) {
            let function = self.function.as_deref().unwrap_or("?");
            parts.push(format!("{function} {}:{line}", page.path(file)));
        } else if let Some(function) = &self.function {
            parts.push(function.clone());
        }
        if self.waiting_for_input {
            parts.push("waiting for input (bugeye input TEXT)".into());
        }
        if let (Some(pid), true) = (self.pid, self.state.is_live()) {
            parts.push(format!("pid {pid}"));
        }
        parts.push(format!("stops {}, hits {}", self.stops, self.hits));
        parts.extend(self.controller.as_ref().map(Controller::text));
        let age = self.now.saturating_sub(self.started) / 1000;
        parts.push(format!("started {age} s ago"));
        parts.push(quoted(&command_line(&self.command, &self.adapter)));
        let name = self.name.as_deref().map(|name| format!(" \"{}\"", quoted(name))).unwrap_or_default();
        format!("{}{name} [via {}]", parts.join(", "), self.adapter)
    }
}

impl Render for SessionLine {
    fn render(&self, page: &mut Page) {
        let text = self.text(page);
        page.line(text);
        if let Some(trouble) = &self.recording_trouble {
            page.line(format!("note: {}", quoted(trouble)));
        }
    }
}

impl Command for Status {
    const NAME: &'static str = "status";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Reads;
    const AT_END: bool = true;
    type Output = SessionLine;

    async fn run(self, cx: Context) -> Result<SessionLine, Failure> {
        Ok(SessionLine::of(&*cx.session()?))
    }

    fn recorded(self, moment: &Moment) -> Result<SessionLine, Failure> {
        Ok(SessionLine::at(moment))
    }
}
