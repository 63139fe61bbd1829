//! `sessions`: those that are live, and with `--all` every one that was recorded.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ending_line;
use super::status::{SessionLine, command_line};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::log::date;
use crate::render::{Page, Render, quoted};
use crate::store::list::{Entry, State};
use crate::store::{prune, read};

/// Recordings that are told of when nobody says how many.
const SHOWN: usize = 50;

/// List the sessions: the live ones, and with `--all` every recorded one
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Sessions {
    /// Ended ones and recordings of earlier ones too, newest first.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// The most recordings to tell of [default: 50].
    #[arg(long, value_name = "N", requires = "all")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionList {
    /// Those that the daemon has.
    pub sessions: Vec<SessionLine>,
    /// Recordings of others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<RecordLine>,
    /// Recordings that are not told of.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// One recording.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RecordLine {
    #[serde(flatten)]
    pub entry: Entry,
    pub bytes: u64,
    /// Somebody wants it to stay: `bugeye keep`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Something could not be written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

impl RecordLine {
    fn text(&self) -> String {
        let entry = &self.entry;
        let name = entry.name.as_deref().map(|name| format!(" \"{}\"", quoted(name))).unwrap_or_default();
        let state = match (entry.state, &entry.ending) {
            (State::Live, _) => "live in another daemon".into(),
            (State::Crashed, _) => "crashed: the daemon died in the middle of it".into(),
            (State::Ended, Some(ending)) => ending_line(ending),
            (State::Ended, None) => "ended".into(),
        };
        let command = command_line(&entry.command, &entry.adapter);
        let mut parts = vec![
            format!("{}{name}: {}", quoted(&entry.id), quoted(&state)),
            format!("started {}", moment(entry.started)),
            quoted(&command),
            prune::in_words(self.bytes),
        ];
        parts.extend(self.kept.then(|| "kept".to_string()));
        parts.extend(self.truncated.then(|| "not complete".to_string()));
        format!("{} [via {}]", parts.join(", "), quoted(&entry.adapter))
    }
}

/// `2026-11-15 21:41:31Z`
fn moment(ms: u64) -> String {
    let seconds = ms / 1000;
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}Z")
}

impl Render for SessionList {
    fn render(&self, page: &mut Page) {
        if self.sessions.is_empty() && self.recordings.is_empty() {
            page.line("no sessions; start one: bugeye start ./program");
        }
        for session in &self.sessions {
            session.render(page);
        }
        for record in &self.recordings {
            page.line(record.text());
        }
        if self.more > 0 {
            page.line(format!("{} older recordings; all: bugeye sessions --all --limit 0", self.more));
        }
    }
}

impl Command for Sessions {
    const NAME: &'static str = "sessions";
    const GROUP: Group = Group::Sessions;
    const PAST: Past = Past::Apart;
    type Output = SessionList;

    async fn run(self, cx: Context) -> Result<SessionList, Failure> {
        let all = cx.hub.sessions();
        let wanted = all.iter().filter(|live| self.all || live.state().is_live());
        let mut list = SessionList {
            sessions: wanted.map(|live| SessionLine::of(live)).collect(),
            recordings: Vec::new(),
            more: 0,
        };
        if !self.all {
            return Ok(list);
        }
        list.sessions.reverse();
        let own: Vec<String> = all.iter().filter_map(|live| live.record.clone()).collect();
        let limit = match self.limit.unwrap_or(SHOWN) {
            0 => usize::MAX,
            limit => limit,
        };
        let found = cx.hub.with_records(move |recorder| {
            recorder.recover();
            let mut entries = recorder.sessions();
            entries.retain(|entry| !own.contains(&entry.id));
            let more = entries.len().saturating_sub(limit);
            entries.truncate(limit);
            let root = read::root(recorder.state());
            let line = |entry: Entry| {
                let folder = root.join(&entry.id);
                let (kept, truncated) = (prune::is_kept(&folder), prune::is_truncated(&folder));
                RecordLine { bytes: prune::size(&folder), kept, truncated, entry }
            };
            (entries.into_iter().map(line).collect(), more)
        });
        // Where nothing is recorded there are no recordings.
        (list.recordings, list.more) = found.await.unwrap_or_default();
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Ending;

    #[test]
    fn an_agent_goes_by_its_name() {
        let words = ["/long/node_modules/.bin/claude", "-p", "Do it."].map(String::from);
        assert_eq!(command_line(&words, "agent"), "claude -p 'Do it.'");
        assert_eq!(command_line(&words, "debugpy"), "/long/node_modules/.bin/claude -p Do it.");
    }

    #[test]
    fn a_recording_is_one_line() {
        let entry = Entry {
            id: "20261115-214131-otter".into(),
            name: Some("n".into()),
            state: State::Ended,
            started: 1_794_778_891_000,
            adapter: "debugpy".into(),
            command: vec!["python3".into(), "a\u{1b}.py".into()],
            ending: Some(Ending::Exited { code: Some(3) }),
            ..Entry::default()
        };
        let line = RecordLine { entry, bytes: 2048, kept: true, truncated: false };
        let expected = "20261115-214131-otter \"n\": exited: code 3, started 2026-11-15 21:41:31Z, \
                        python3 a\\u{1b}.py, 2.0 KiB, kept [via debugpy]";
        assert_eq!(line.text(), expected);
    }
}
