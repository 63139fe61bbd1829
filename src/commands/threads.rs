//! `threads`: the threads there are.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::past;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{SessionState, ThreadInfo};
use crate::render::{Page, Render};
use crate::session::{Answer, Op};
use crate::store::replay::Moment;

/// List the threads: id, name, state, place
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Threads {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ThreadList {
    pub threads: Vec<ThreadEntry>,
    /// What is not known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ThreadEntry {
    #[serde(flatten)]
    pub thread: ThreadInfo,
    pub state: SessionState,
    pub selected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Render for ThreadList {
    fn render(&self, page: &mut Page) {
        for entry in &self.threads {
            let mark = if entry.selected { '>' } else { ' ' };
            let name = entry.thread.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
            let place = match (&entry.function, &entry.file, entry.line) {
                (Some(function), Some(file), Some(line)) => format!(" {function} {}:{line}", page.path(file)),
                (Some(function), ..) => format!(" {function}"),
                _ => String::new(),
            };
            page.line(format!("{mark}{}{name} {}{place}", entry.thread.id, entry.state));
        }
        for gap in &self.gaps {
            page.line(format!("not read: {gap}"));
        }
    }
}

impl Command for Threads {
    const NAME: &'static str = "threads";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = ThreadList;

    async fn run(self, cx: Context) -> Result<ThreadList, Failure> {
        match cx.ask(Op::Threads).await? {
            Answer::Threads(lines) => Ok(ThreadList {
                threads: lines
                    .into_iter()
                    .map(|line| ThreadEntry {
                        thread: line.thread,
                        state: line.state,
                        selected: line.selected,
                        function: line.function,
                        file: line.file,
                        line: line.line,
                    })
                    .collect(),
                gaps: Vec::new(),
            }),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }

    fn recorded(self, moment: &Moment) -> Result<ThreadList, Failure> {
        let stop = past::standing(moment)?;
        let known = moment.stood.as_ref().map(|stood| stood.threads.as_slice()).unwrap_or_default();
        if known.is_empty() {
            return Err(past::missing(moment, Self::NAME));
        }
        let selected = moment.selection().map(|(thread, _)| thread);
        let entry = |thread: &ThreadInfo| {
            let top = stop.frames.first().filter(|_| thread.id == stop.thread.id);
            ThreadEntry {
                thread: thread.clone(),
                state: SessionState::Stopped,
                selected: selected == Some(thread.id),
                function: top.map(|frame| frame.function.clone()),
                file: top.and_then(|frame| frame.file.clone()),
                line: top.and_then(|frame| frame.line),
            }
        };
        let threads: Vec<ThreadEntry> = known.iter().map(entry).collect();
        let gaps =
            if threads.len() == 1 { vec![] } else { vec!["where the other threads stood: it was not asked".into()] };
        Ok(ThreadList { threads, gaps })
    }
}
