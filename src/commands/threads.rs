//! `threads`: the threads there are.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{SessionState, ThreadInfo};
use crate::render::{Page, Render};
use crate::session::{Answer, Op};

/// List the threads: id, name, state, place
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Threads {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ThreadList {
    pub threads: Vec<ThreadEntry>,
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
    }
}

impl Command for Threads {
    const NAME: &'static str = "threads";
    const GROUP: Group = Group::Looking;
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
            }),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }
}
