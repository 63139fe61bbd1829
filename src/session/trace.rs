//! Traced places: each hit is told with its values and the way there, and the program goes on.
//!
//! Where the adapter has a hook, the debugger or the program collects by itself and never stops; here the hook is only
//! armed. Else each hit is a stop that nobody is told of: a look, and on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::breakpoints::{TRACE_ID, is_internal, is_trace};
use super::gather::Purpose;
use super::look::{Look, Seen};
use super::{Answer, Effect, OpId, Pending, Session, Standing};
use crate::adapters::{Arm, Hook, Logs, Tracing as Means};
use crate::dap::types::StoppedBody;
use crate::failure::Failure;
use crate::model::{Binding, BindingState, Breakpoint, Hit, HitFrame, Point, Reading, Reason, SessionState, View};

/// A trace that is armed.
#[derive(Debug)]
pub(super) struct Tracing {
    pub(super) points: Vec<Point>,
    frames: u32,
    /// Hits that are still wanted; None for all.
    left: Option<u64>,
    pub(super) passes: BTreeMap<u32, u64>,
    /// The hook collects; none where each hit is a stop.
    means: Option<Means>,
    /// It tells of calls too, which nothing else does.
    calls: bool,
    /// Where hooks that set breakpoints of their own have set them.
    bound: BTreeMap<u32, Binding>,
    /// Steps of arming that are not answered yet, and who waits.
    arming: Option<(OpId, usize)>,
    failed: Option<String>,
    current: Option<Collecting>,
    /// A hit that is complete, while others of the same moment are looked for.
    waiting: Option<Seen>,
    /// Threads whose names were asked for.
    asked: BTreeSet<i64>,
    pub(super) logs: Option<Logs>,
    /// Points that are log breakpoints by now, with the types of their values.
    pub(super) logged: BTreeMap<u32, Vec<String>>,
}

/// A hit whose values are on their way.
#[derive(Debug)]
struct Collecting {
    body: StoppedBody,
    points: Vec<u32>,
    /// The user's own breakpoints that were hit at the same stop.
    rest: Vec<u32>,
}

/// Which answer of arming this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Prepare,
    /// The point of this id was set by a command.
    Set(u32),
}

/// What a stop is for that a hook makes when it has seen enough.
pub const FULL: &str = "all hits that were asked for were seen";
/// What hooks say where no function has a name that matches.
pub const NO_FUNCTION: &str = "no function of this program is called like that";

impl Session {
    /// Arms a trace; answered when every point is set, with where.
    pub(super) fn trace(&mut self, op: OpId, points: Vec<Point>, hook: &Hook) {
        if !matches!(self.state, SessionState::Held | SessionState::Stopped) {
            let failure = self.wrong_state();
            return self.answer(op, Err(failure));
        }
        let means = self.adapter.natives.trace.filter(|means| {
            let readable = points.iter().flat_map(|point| &point.expressions).all(|text| (means.reads)(text));
            readable && hook.allowed && self.may_command()
        });
        let means = means.filter(|means| hook.calls.is_empty() || means.calls.is_some());
        if means.is_none() && !hook.calls.is_empty() {
            return self.answer(op, Err(self.no_calls()));
        }
        let counts = |wish: &&Breakpoint| wish.enabled && (wish.log.is_some() || wish.hits.is_some());
        let at = |wish: &&Breakpoint| points.iter().any(|point| point.place == wish.place);
        if let (Some(_), Some(other)) =
            (means.and_then(|means| means.beside), self.wishes.iter().filter(counts).find(at))
        {
            let failure = Failure::refused(format!("breakpoint {} counts or logs at a place to be traced", other.id))
                .hint(format!("bugeye disable {}", other.id));
            return self.answer(op, Err(failure));
        }
        let left = (hook.most > 0).then_some(hook.most);
        self.addresses = None;
        let (means, logs) = match means {
            Some(Means { arm: Arm::Log(logs), .. }) => (None, Some(logs)),
            means => (means, None),
        };
        let logs = logs.filter(|_| self.may_log(&points, hook));
        self.tracing = Some(Tracing {
            logs,
            logged: BTreeMap::new(),
            points,
            frames: hook.frames,
            left,
            passes: BTreeMap::new(),
            means,
            calls: false,
            bound: BTreeMap::new(),
            arming: None,
            failed: None,
            current: None,
            waiting: None,
            asked: BTreeSet::new(),
        });
        match means {
            Some(means) => self.arm_hook(op, means, hook),
            None => self.arm_stops(op),
        }
    }

    fn no_calls(&self) -> Failure {
        Failure::unsupported(format!("{} can't tell of calls", self.via()))
            .hint("trace the functions by name: --at 'FUNCTION: ARGUMENT, …'")
    }

    /// Native commands may not reach an adapter before its program exists.
    fn may_command(&self) -> bool {
        self.state == SessionState::Stopped || !self.adapter.quirks.commands_need_a_program
    }

    fn arm_hook(&mut self, op: OpId, means: Means, hook: &Hook) {
        let Some(tracing) = &mut self.tracing else { return };
        let mut lines = (means.prepare)(hook, &tracing.points);
        if let Some(calls) = means.calls.filter(|_| !hook.calls.is_empty()) {
            lines.extend(calls(hook));
            tracing.calls = true;
        }
        tracing.arming = Some((op, lines.len()));
        for line in lines {
            self.trace_command(&line, Step::Prepare);
        }
    }

    fn trace_command(&mut self, line: &str, step: Step) {
        let expression = (self.adapter.quirks.raw)(line);
        // For the processes that the program will start too, where they are debugged.
        let arguments = json!({ "expression": expression, "context": "repl", "everywhere": true });
        self.request("evaluate", arguments, Pending::Trace(step), self.limits.request);
    }

    /// Each hit is to be a stop.
    fn arm_stops(&mut self, op: OpId) {
        if let Some(tracing) = &mut self.tracing {
            tracing.means = None;
            tracing.arming = None;
        }
        self.tracers.push(op);
        self.send_updates(op, false);
    }

    pub(super) fn on_trace_step(&mut self, step: Step, result: Result<Json, String>) {
        let failure = self.adapter.natives.failure;
        let result = result.and_then(|body| {
            let text = body.get("result").and_then(Json::as_str).unwrap_or_default().to_string();
            failure(&text).map_or(Ok(text), Err)
        });
        let Some(tracing) = &mut self.tracing else { return };
        let Some((op, left)) = &mut tracing.arming else { return };
        let (op, last) = (*op, *left <= 1);
        *left = left.saturating_sub(1);
        match (step, result) {
            (Step::Prepare, Ok(_)) => {}
            (Step::Prepare, Err(message)) => tracing.failed = Some(message),
            (Step::Set(id), result) => {
                let read = tracing.means.and_then(|means| match means.arm {
                    Arm::Command { read, .. } => Some(read),
                    Arm::Condition(_) | Arm::Log(_) => None,
                });
                let line = result.and_then(|text| read.map_or(Ok(None), |read| read(&text)));
                let asked = tracing.points.iter().find(|point| point.id == id).and_then(Point::line);
                tracing.bound.insert(id, binding(asked, line));
            }
        }
        if !last {
            return;
        }
        if let Some(message) = tracing.failed.take() {
            if tracing.calls {
                self.tracing = None;
                let failure = match message.contains(NO_FUNCTION) {
                    true => Failure::not_found(NO_FUNCTION),
                    false => self.no_calls().cause(message),
                };
                return self.answer(op, Err(failure));
            }
            // A debugger without the means to run a hook still stops.
            return self.arm_stops(op);
        }
        let Some(means) = tracing.means else { return };
        match (step, means.arm) {
            (Step::Prepare, Arm::Condition(_)) => {
                tracing.arming = None;
                self.tracers.push(op);
                self.send_updates(op, false);
            }
            (Step::Prepare, Arm::Command { set, .. }) => {
                let points = tracing.points.clone();
                let commands: Vec<(u32, Vec<String>)> = points.iter().map(|point| (point.id, set(point))).collect();
                let count: usize = commands.iter().map(|(_, lines)| lines.len()).sum();
                tracing.arming = Some((op, count));
                if count == 0 {
                    tracing.arming = None;
                    return self.answer_traced(op);
                }
                for (id, lines) in commands {
                    for line in lines {
                        self.trace_command(&line, Step::Set(id));
                    }
                }
            }
            (Step::Set(_), _) | (_, Arm::Log(_)) => {
                tracing.arming = None;
                self.answer_traced(op);
            }
        }
    }

    pub(super) fn answer_traced(&mut self, op: OpId) {
        let bindings = self.trace_bindings();
        let way = self.tracing.as_ref().and_then(|tracing| tracing.means).map_or("stops", |means| means.name);
        self.answer(op, Ok(Answer::Traced { bindings, way }));
    }

    /// Where each point is set.
    pub(super) fn trace_bindings(&self) -> BTreeMap<u32, Binding> {
        let Some(tracing) = &self.tracing else { return BTreeMap::new() };
        match tracing.means.map(|means| means.arm) {
            Some(Arm::Command { .. }) => tracing.bound.clone(),
            _ => {
                let found = |point: &Point| {
                    let wished = self.wishes.iter().filter(|wish| wish.place == point.place && wish.enabled);
                    let others = tracing.points.iter().filter(|other| other.place == point.place);
                    let ids = std::iter::once(TRACE_ID - point.id)
                        .chain(wished.map(|wish| wish.id))
                        .chain(others.map(|other| TRACE_ID - other.id));
                    let bound = ids.into_iter().find_map(|id| self.bound.get(&id))?;
                    Some((point.id, bound.binding.clone()))
                };
                tracing.points.iter().filter_map(found).collect()
            }
        }
    }

    /// The wishes that stand for traced points at the adapter.
    pub(super) fn trace_wishes(&self) -> Vec<Breakpoint> {
        let Some(tracing) = &self.tracing else { return Vec::new() };
        let condition = match tracing.means.map(|means| means.arm) {
            Some(Arm::Command { .. }) => return Vec::new(),
            Some(Arm::Condition(condition)) => Some(condition),
            Some(Arm::Log(_)) | None => None,
        };
        let log =
            |point: &Point| Some((tracing.logs.filter(|_| tracing.logged.contains_key(&point.id))?.message)(point));
        let wish = |point: &Point| Breakpoint {
            log: log(point),
            condition: condition.map_or_else(|| point.when.clone(), |condition| Some(condition(point))),
            ..Breakpoint::new(TRACE_ID - point.id, point.place.clone(), point.asked.clone())
        };
        tracing.points.iter().map(wish).collect()
    }

    /// The wishes as an adapter needs them that knows only one breakpoint of a line: a hook there becomes part of the
    /// other one's condition.
    pub(super) fn folded(&self, mut wishes: Vec<Breakpoint>) -> Vec<Breakpoint> {
        let means = self.tracing.as_ref().and_then(|tracing| tracing.means);
        let Some(beside) = means.and_then(|means| means.beside) else { return wishes };
        let (traced, mut others): (Vec<_>, Vec<_>) = wishes.drain(..).partition(|wish| is_trace(wish.id));
        for hook in traced {
            let beside_it =
                |other: &&mut Breakpoint| other.place == hook.place && (is_trace(other.id) || !is_internal(other.id));
            match others.iter_mut().find(beside_it) {
                Some(other) => {
                    let text = beside(hook.condition.as_deref().unwrap_or_default(), other.condition.as_deref());
                    other.condition = Some(text);
                }
                None => others.push(hook),
            }
        }
        others
    }

    /// Takes the trace away; answered when nothing of it is left at the adapter.
    pub(super) fn untrace(&mut self, op: OpId) {
        let Some(tracing) = self.tracing.take() else { return self.answer(op, Ok(Answer::Done)) };
        self.bound.retain(|id, _| !is_trace(*id));
        let means = tracing.means.filter(|_| self.state.is_live());
        match means.and_then(|means| means.disarm) {
            Some(disarm) => {
                let expression = (self.adapter.quirks.raw)(disarm);
                let arguments =
                    json!({ "expression": expression, "context": "repl", "everywhere": true, "last": true });
                self.request("evaluate", arguments, Pending::Disarm(op), self.limits.request);
            }
            None => self.send_updates(op, false),
        }
    }

    /// A stop at traced points: their values are asked for. Answers whether it was taken.
    pub(super) fn take_for_trace(&mut self, body: &StoppedBody, ids: &[u32]) -> bool {
        if (self.adapter.quirks.condition_error)(body).is_some() {
            return false;
        }
        let Some(tracing) = &mut self.tracing else { return false };
        let (traced, rest): (Vec<u32>, Vec<u32>) = ids.iter().partition(|id| is_trace(**id));
        if tracing.means.is_some() {
            // A hook stops the program only when it has seen enough, or where its condition could not be evaluated.
            let own = rest.is_empty() && body.reason == "breakpoint" && tracing.left.is_some();
            let full = !traced.is_empty() || own;
            if full {
                let conditions = tracing.conditions(&traced);
                self.trace_is_full(body);
                for (id, condition) in conditions {
                    self.check_condition_here(id, condition);
                }
            }
            return full;
        }
        let mut points = Vec::new();
        for id in traced.iter().map(|id| TRACE_ID - id) {
            let pass = tracing.passes.entry(id).or_default();
            *pass += 1;
            let every = tracing.points.iter().find(|point| point.id == id).map_or(1, |point| point.every.max(1));
            if *pass % u64::from(every) == 0 {
                points.push(id);
            }
        }
        if traced.is_empty() || (points.is_empty() && !rest.is_empty()) {
            return false;
        }
        if points.is_empty() {
            self.go_on(body.thread_id);
            return true;
        }
        let wanted = |id: &u32| tracing.points.iter().find(|point| point.id == *id);
        let mut expressions: Vec<String> =
            points.iter().filter_map(wanted).flat_map(|point| point.expressions.clone()).collect();
        if !self.adapter.quirks.tells_condition_errors {
            // A condition that fails stops too: such a stop is no hit.
            expressions.extend(tracing.conditions(&traced).into_iter().map(|(_, condition)| condition));
        }
        let look = Look { frames: tracing.frames.max(1), expressions, view: View::default(), ..Look::default() };
        tracing.current = Some(Collecting { body: body.clone(), points, rest });
        let thread = body.thread_id.unwrap_or(1);
        let reason = Reason::Breakpoint { ids: Vec::new(), hit: 0 };
        let number = self.stops;
        self.standing =
            Some(Standing { number, reason, thread, frame: 0, condition_failed: None, stood: None, report: None });
        self.gather(Purpose::Trace, look);
        true
    }

    /// A hit is complete: it is told, and the program goes on unless somebody else wants it stopped here.
    pub(super) fn finish_hit(&mut self, seen: Seen) {
        if let (true, Some(tracing)) = (self.is_looking_for_others(), &mut self.tracing) {
            tracing.waiting = Some(seen);
            return;
        }
        self.standing = None;
        let Some(tracing) = &mut self.tracing else { return self.go_on(Some(seen.thread.id)) };
        let Some(collecting) = tracing.current.take() else { return };
        let kinds: Vec<Option<String>> =
            seen.values.iter().map(|(_, value)| value.as_ref().ok().and_then(|value| value.kind.clone())).collect();
        let values = seen.values.into_iter().map(|(_, value)| match value {
            Ok(value) => Reading { text: value.flat(), why: None },
            Err(why) => Reading::unavailable(why.trim_start_matches('\0')),
        });
        let frames: Arc<[HitFrame]> = seen
            .frames
            .into_iter()
            .filter(|frame| tracing.frames > 0 && !frame.runtime)
            .map(|frame| HitFrame { function: frame.function, file: frame.file, line: frame.line })
            .collect();
        let asked =
            |id: &u32| tracing.points.iter().find(|point| point.id == *id).map_or(0, |point| point.expressions.len());
        let mut values: Vec<Reading> = values.collect();
        let conditions = values.split_off(values.len().min(collecting.points.iter().map(asked).sum()));
        if let Some(why) = conditions.into_iter().find_map(|reading| reading.why) {
            self.make_standing(collecting.body.thread_id, Reason::Breakpoint { ids: Vec::new(), hit: 0 });
            if let Some(standing) = &mut self.standing {
                standing.condition_failed = Some(why);
            }
            return;
        }
        let mut values = values.into_iter();
        let points = collecting.points;
        for id in points.iter().copied() {
            let Some(point) = tracing.points.iter().find(|point| point.id == id) else { continue };
            let hit = Hit {
                point: id,
                thread: seen.thread.id,
                thread_name: seen.thread.name.clone(),
                micros: 0,
                values: values.by_ref().take(point.expressions.len()).collect(),
                frames: frames.clone(),
            };
            if tracing.left != Some(0) {
                self.out.push(Effect::Hit(hit));
            }
            tracing.left = tracing.left.map(|left| left.saturating_sub(1));
        }
        let full = tracing.left == Some(0);
        let logs = tracing.logs.filter(|_| points.len() == 1 && collecting.rest.is_empty());
        if let (Some(logs), [id]) = (logs, &points[..]) {
            self.log_from_now_on(*id, &kinds, logs);
        }
        if !collecting.rest.is_empty() {
            self.arrive_at(collecting.body, collecting.rest);
        } else if full {
            self.trace_is_full(&collecting.body);
        } else if self.asked_to_pause {
            self.make_standing(Some(seen.thread.id), Reason::Pause);
        } else {
            self.go_on(Some(seen.thread.id));
        }
    }

    /// All that hit a place at this moment are known.
    pub(super) fn finish_waiting_hit(&mut self) {
        if let Some(seen) = self.tracing.as_mut().and_then(|tracing| tracing.waiting.take()) {
            self.finish_hit(seen);
        }
    }

    /// Whether a stop is a hit of a traced place, to be looked at and left.
    pub(super) fn is_stop_of_trace(&self, body: &StoppedBody) -> bool {
        let is_each = |tracing: &Tracing| tracing.points.iter().all(|point| point.every <= 1);
        let by_stops = self.tracing.as_ref().is_some_and(|tracing| tracing.means.is_none() && is_each(tracing));
        by_stops && !self.entering && self.hit_wishes(body).into_iter().all(is_trace)
    }

    /// All hits that were asked for were seen: the program stops here.
    fn trace_is_full(&mut self, body: &StoppedBody) {
        let reason = Reason::Other { text: FULL.into() };
        self.make_standing(body.thread_id, reason);
    }

    /// Whether a thread's name is not known, and was not asked for yet.
    pub(super) fn is_nameless(&mut self, thread: i64) -> bool {
        let named = self.thread_name(thread).is_some();
        !named && self.tracing.as_mut().is_some_and(|tracing| tracing.asked.insert(thread))
    }

    /// Whether a hit is being looked at.
    pub(super) fn is_collecting(&self) -> bool {
        self.tracing.as_ref().is_some_and(|tracing| tracing.current.is_some())
    }

    /// The thread whose hit is being looked at.
    pub(super) fn collecting_thread(&self) -> Option<i64> {
        self.tracing.as_ref()?.current.as_ref()?.body.thread_id
    }
}

impl Tracing {
    /// The conditions of these points, by their wishes' ids.
    fn conditions(&self, wishes: &[u32]) -> Vec<(u32, String)> {
        let of = |id: &u32| self.points.iter().find(|point| TRACE_ID - point.id == *id);
        wishes.iter().filter_map(|id| Some((*id, of(id)?.when.clone()?))).collect()
    }
}

impl Point {
    const fn line(&self) -> Option<u32> {
        match self.place {
            crate::model::Place::Line { line, .. } => Some(line),
            _ => None,
        }
    }
}

/// What a hook's own breakpoint came to: the line, where it is known.
fn binding(asked: Option<u32>, line: Result<Option<u32>, String>) -> Binding {
    let (state, line, why) = match line {
        Ok(line) if asked.is_some() && line.is_some() && line != asked => (BindingState::Moved, line, None),
        Ok(line) => (BindingState::Verified, line, None),
        Err(why) => (BindingState::Pending, None, Some(why)),
    };
    Binding { state, line, file: None, why, hits: 0 }
}
