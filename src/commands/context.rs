//! `context`: the stop report again.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{At, look};
use super::past::Spot;
use super::report::Report;
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context as Surroundings;
use crate::model::{SessionState, Stop, View};
use crate::session::{Locals, Look, Op, Outcome};
use crate::store::replay::Moment;

/// Show where the program is: source, locals, stack
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Context {
    /// Source lines on each side.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    pub at: At,
}

impl Command for Context {
    const NAME: &'static str = "context";
    const ALIASES: &'static [&'static str] = &["where"];
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = Report;

    async fn run(self, cx: Surroundings) -> Result<Report, Failure> {
        let mut view = View::default();
        view.context = self.context.unwrap_or(view.context).min(200);
        let live = cx.session()?;
        let look_at = Look { frames: view.frames, locals: Locals::Selected, ..self.at.look(view) };
        let seen = look(&cx, Op::Look(look_at)).await?;
        let snapshot = live.handle.snapshot.borrow().clone();
        let reason = snapshot.reason.filter(|_| snapshot.state == SessionState::Stopped);
        let stop = Stop {
            number: snapshot.stops,
            reason: reason.ok_or_else(|| Failure::wrong_state("the program went on").hint("bugeye status"))?,
            thread: seen.thread,
            frame: seen.frame,
            frames: seen.frames,
            more_frames: seen.more_frames,
            locals: seen.locals,
            same_function: false,
            condition_failed: None,
            gaps: seen.gaps,
        };
        Ok(Report::from_outcome(&cx, &live, Outcome::Stopped(Box::new(stop)), view))
    }

    fn recorded(self, moment: &Moment) -> Result<Report, Failure> {
        let mut view = View::default();
        view.context = self.context.unwrap_or(view.context).min(200);
        let spot = Spot::of(moment, &self.at)?;
        let locals = spot.locals(moment, Self::NAME)?;
        let shown = usize::try_from(view.frames.max(spot.frame.index.saturating_add(1))).unwrap_or(usize::MAX);
        let all = &spot.stop.frames;
        let mut report = Report { pid: moment.pid, ..Report::in_state(SessionState::Stopped) };
        report.source = spot.source(moment, view.context);
        report.stop = Some(Stop {
            number: moment.stops,
            reason: spot.stop.reason.clone(),
            thread: spot.thread.clone(),
            frame: spot.frame.index,
            frames: all.iter().take(shown).cloned().collect(),
            more_frames: spot.stop.more_frames || all.len() > shown,
            locals,
            same_function: false,
            condition_failed: None,
            gaps: spot.gaps.to_vec(),
        });
        Ok(report)
    }
}
