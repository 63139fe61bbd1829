//! `backtrace`: how the program got here.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{At, Extent, look};
use super::past::{self, Spot};
use super::report::frame_place;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{Frame, SessionState, ThreadInfo};
use crate::render::{Page, Render};
use crate::session::{Answer, Locals, Look, Op};
use crate::store::replay::Moment;

/// What the frames of a reply may take: the rest of 32 KB, or of 100 KB with `--full`, is for threads and words.
const REPLY: usize = 28 * 1024;
const FULL_REPLY: usize = 92 * 1024;

/// Show the stack of a thread, or of all threads
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Backtrace {
    /// Show at most this many frames (default 20).
    #[arg(value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// Show at most this many frames.
    #[arg(long, value_name = "N", conflicts_with = "count")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Show the locals of each frame.
    #[arg(long)]
    #[serde(default)]
    pub locals: bool,
    /// All threads; equal stacks are shown once.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
    #[command(flatten)]
    #[serde(flatten)]
    pub extent: Extent,
}

/// Stacks, each with the threads that have it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Stacks {
    pub stacks: Vec<Stack>,
    pub full: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    pub threads: Vec<ThreadInfo>,
    /// The selected frame of the selected thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected: Option<u32>,
    pub frames: Vec<Frame>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

impl Render for Stacks {
    fn render(&self, page: &mut Page) {
        for stack in &self.stacks {
            let names: Vec<String> = stack
                .threads
                .iter()
                .map(|thread| match &thread.name {
                    Some(name) => format!("{} {name}", thread.id),
                    None => thread.id.to_string(),
                })
                .collect();
            let plural = if names.len() == 1 { "thread" } else { "threads" };
            page.line(format!("{plural} {}", names.join(", ")));
            let shown = |frame: &&Frame| self.full || !frame.runtime || Some(frame.index) == stack.selected;
            for frame in stack.frames.iter().filter(shown) {
                let mark = if stack.selected == Some(frame.index) { '>' } else { ' ' };
                page.line(format!("{mark}{} {}", frame.index, frame_place(frame, page)));
                for variable in frame.locals.iter().flatten() {
                    page.line(format!("    {} = {}", variable.name, variable.value.flat()));
                }
            }
            let hidden = stack.frames.iter().filter(|frame| !shown(frame)).count();
            if hidden > 0 {
                page.line(format!(" ({hidden} of the runtime: --full)"));
            }
            if stack.more {
                page.line(format!(" … more: bugeye backtrace --limit {}", stack.frames.len() * 4));
            }
            for gap in &stack.gaps {
                page.line(format!("not read: {gap}"));
            }
        }
    }
}

impl Command for Backtrace {
    const NAME: &'static str = "backtrace";
    const ALIASES: &'static [&'static str] = &["bt", "stack"];
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = Stacks;

    async fn run(self, cx: Context) -> Result<Stacks, Failure> {
        let mut view = self.extent.view();
        let frames = self.frames();
        view.frames = frames;
        let locals = if self.locals { Locals::EveryFrame } else { Locals::No };
        let look_at = Look { frames, locals, ..self.at.look(view) };
        let mut stacks: Vec<Stack> = Vec::new();
        let threads = if self.all { threads(&cx).await? } else { vec![(self.at.thread, true)] };
        for (thread, selected) in threads {
            let seen = look(&cx, Op::Look(Look { thread, ..look_at.clone() })).await?;
            let stack = Stack {
                threads: vec![seen.thread],
                selected: selected.then_some(seen.frame),
                frames: seen.frames,
                more: seen.more_frames,
                gaps: seen.gaps,
            };
            match stacks.iter_mut().find(|known| known.frames == stack.frames) {
                Some(known) => {
                    known.threads.extend(stack.threads);
                    known.selected = known.selected.or(stack.selected);
                }
                None => stacks.push(stack),
            }
        }
        fit(&mut stacks, if self.extent.full { FULL_REPLY } else { REPLY });
        Ok(Stacks { stacks, full: self.extent.full })
    }

    fn recorded(self, moment: &Moment) -> Result<Stacks, Failure> {
        let spot = Spot::of(moment, &self.at)?;
        let alone = moment.stood.as_ref().is_some_and(|stood| stood.threads.len() == 1);
        if self.locals || (self.all && !alone) || spot.thread.id != spot.stop.thread.id {
            let flag = if self.locals {
                " --locals"
            } else if self.all {
                " --all"
            } else {
                ""
            };
            return Err(past::missing(moment, &format!("{}{flag}", Self::NAME)));
        }
        let shown = usize::try_from(self.frames().max(spot.frame.index.saturating_add(1))).unwrap_or(usize::MAX);
        let all = &spot.stop.frames;
        let mut stack = Stack {
            threads: vec![spot.thread.clone()],
            selected: Some(spot.frame.index),
            frames: all.iter().take(shown).cloned().collect(),
            more: all.len() > shown,
            gaps: Vec::new(),
        };
        if spot.stop.more_frames && all.len() <= shown {
            let last = all.last().map_or(0, |frame| frame.index);
            stack.gaps.push(format!("the callers of frame {last}: the record has {} frames", all.len()));
        }
        let mut stacks = [stack];
        fit(&mut stacks, if self.extent.full { FULL_REPLY } else { REPLY });
        Ok(Stacks { stacks: stacks.into(), full: self.extent.full })
    }
}

impl Backtrace {
    fn frames(&self) -> u32 {
        self.limit.or(self.count).unwrap_or(if self.extent.full { 200 } else { 20 }).clamp(1, 10_000)
    }
}

/// Leaves out the outer frames that would make the reply longer than it may be, and says so.
fn fit(stacks: &mut [Stack], mut left: usize) {
    for stack in stacks {
        let fits = stack.frames.iter().take_while(|frame| {
            let size = serde_json::to_string(frame).map_or(0, |text| text.len() + 1);
            let fits = size <= left;
            left = if fits { left - size } else { 0 };
            fits
        });
        let (fits, all) = (fits.count(), stack.frames.len());
        if fits < all {
            stack.frames.truncate(fits);
            stack.more = false;
            stack
                .gaps
                .push(format!("frames {fits} to {}: too many for one reply; one of them: bugeye frame N", all - 1));
        }
    }
}

async fn threads(cx: &Context) -> Result<Vec<(Option<i64>, bool)>, Failure> {
    match cx.ask(Op::Threads).await? {
        // Where none stands still, it is the adapter's to say whether their stacks can be read.
        Answer::Threads(lines) => Ok(lines
            .iter()
            .filter(|line| {
                line.state == SessionState::Stopped || lines.iter().all(|line| line.state != SessionState::Stopped)
            })
            .map(|line| (Some(line.thread.id), line.selected))
            .collect()),
        other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
    }
}
