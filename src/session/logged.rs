//! Traced places whose hits an adapter logs by itself, without a stop that anybody would have to end.
//!
//! The first hit of each is a stop: it shows what the values are. Where all are plain, the place becomes a log breakpoint.

use super::{Effect, Session, Told};
use crate::adapters::{Hook, Logs};
use crate::model::{Hit, Place, Point, Reading};

impl Session {
    /// Messages have no way to the hit and stop nobody; a place of somebody's own breakpoint would lose one of the two.
    pub(super) fn may_log(&self, points: &[Point], hook: &Hook) -> bool {
        let is_own = |point: &Point| !self.wishes.iter().any(|wish| wish.enabled && wish.place == point.place);
        let is_line = |point: &Point| matches!(point.place, Place::Line { .. });
        let single = |point: &&Point| points.iter().filter(|other| other.place == point.place).count() == 1;
        let fit = points.iter().all(|point| is_line(point) && is_own(point) && single(&point));
        fit && hook.frames == 0 && hook.most == 0 && self.capabilities.has("supportsLogPoints")
    }

    /// A point was hit with values of these types; the program still stands there.
    pub(super) fn log_from_now_on(&mut self, point: u32, kinds: &[Option<String>], logs: Logs) {
        let Some(tracing) = &mut self.tracing else { return };
        let known: Option<Vec<String>> = kinds.iter().cloned().collect();
        let Some(kinds) = known.filter(|kinds| kinds.iter().all(|kind| (logs.is_plain)(kind))) else { return };
        if tracing.logged.insert(point, kinds).is_none() {
            self.refresh_breakpoints();
        }
    }

    /// Whether what an adapter says is a hit of a logged point; if so it is told.
    pub(super) fn take_logged(&mut self, output: &str) -> bool {
        let quirks = &self.adapter.quirks;
        let Some(tracing) = &mut self.tracing else { return false };
        let Some((thread, point, values)) = tracing.logs.and_then(|logs| (logs.read)(output)) else { return false };
        let every = tracing.points.iter().find(|known| known.id == point).map_or(1, |point| point.every.max(1));
        let pass = tracing.passes.entry(point).or_default();
        *pass += 1;
        if *pass % u64::from(every) > 0 {
            return true;
        }
        let kinds = tracing.logged.get(&point).map(Vec::as_slice).unwrap_or_default();
        let shown = |(value, kind): (Reading, Option<&String>)| match value.why {
            Some(why) => Reading::unavailable((quirks.error_text)(&why)),
            None => Reading {
                text: Told { text: value.text, kind: kind.cloned(), ..Told::default() }.value(quirks).flat(),
                why: None,
            },
        };
        let kinds = kinds.iter().map(Some).chain(std::iter::repeat(None));
        let values = values.into_iter().zip(kinds).map(shown).collect();
        let thread_name = self.thread_name(thread);
        let hit = Hit { point, thread, thread_name, values, ..Hit::default() };
        self.out.push(Effect::Hit(hit));
        true
    }

    /// Whether traced places are log breakpoints by now.
    pub(super) fn is_logged(&self) -> bool {
        self.tracing.as_ref().is_some_and(|tracing| !tracing.logged.is_empty())
    }
}
