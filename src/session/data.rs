//! Data breakpoints by the protocol, where the debugger has no commands of its own for them.
//!
//! The protocol tells neither values nor, on some adapters, which one was hit: the value of each is read when it is set and
//! at every stop that one makes.

use serde_json::{Value as Json, json};

use super::watch::{Step, Watched};
use super::{OpId, Pending, Session, WatchLine};
use crate::adapters::Access;
use crate::dap::types::{self, EvaluateBody, read};
use crate::failure::Failure;
use crate::model::Reason;

/// Frames in which the function that a watch was set in is looked for.
const FRAMES: u32 = 24;

/// What the protocol needs to know of a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Data {
    id: String,
    /// The function it was set in, where its expression means what it meant.
    function: String,
    kind: String,
    /// The expression for the same place in any frame.
    anywhere: Option<String>,
}

impl Session {
    /// Whether data breakpoints are set by requests.
    pub(super) fn watches_by_request(&self) -> bool {
        self.adapter.natives.watch.is_none() && self.capabilities.has("supportsDataBreakpoints")
    }

    /// The adapter is asked whether it can be watched; `function` is the frame's.
    pub(super) fn ask_data(&mut self, op: OpId, frame: i64, function: String, step: &Step) {
        let Step::Set { expression, access, condition } = step else { return };
        let step = Step::Info {
            expression: expression.clone(),
            access: *access,
            condition: condition.clone(),
            frame,
            function,
        };
        let arguments = json!({ "name": expression, "frameId": frame });
        self.request("dataBreakpointInfo", arguments, Pending::Watch(op, step), self.limits.inspect);
    }

    pub(super) fn on_data_step(&mut self, op: OpId, step: Step, result: Result<Json, String>) {
        let body = match result {
            Ok(body) => body,
            Err(message) => {
                if matches!(step, Step::Placed { .. }) {
                    self.forget_last();
                }
                let failure = self.adapter_failure("it can't be watched", &message);
                return self.answer(op, Err(failure));
            }
        };
        match step {
            Step::Info { expression, access, condition, frame, function } => {
                let Some(data) = body.get("dataId").and_then(Json::as_str) else {
                    let why = body.get("description").and_then(Json::as_str).unwrap_or("the adapter gives no reason");
                    let failure = Failure::refused(format!("it can't be watched: {}", super::first_lines(why)));
                    return self.answer(op, Err(failure));
                };
                let data = Data { id: data.to_string(), function, ..Data::default() };
                let line = WatchLine { id: self.next_watch, expression, access, condition, hits: 0, value: None };
                self.next_watch += 1;
                self.watches.push(Watched::by_request(line, data));
                self.send_data(op, Step::Placed { frame });
            }
            Step::Placed { frame } => self.on_placed(op, frame, &body),
            Step::Value { frame } => {
                let value: EvaluateBody = read(&body);
                let text = (self.adapter.quirks.tidy)(&value.result, value.kind.as_deref());
                if let Some(watch) = self.watches.last_mut() {
                    watch.line.value = Some(text);
                    watch.data_mut().kind = value.kind.unwrap_or_default();
                }
                self.ask_address(op, frame);
            }
            Step::Address => {
                let value: EvaluateBody = read(&body);
                let address = (self.adapter.quirks.tidy)(&value.result, value.kind.as_deref());
                if let (Some(watch), Some(at)) = (self.watches.last_mut(), self.adapter.natives.at_address) {
                    let data = watch.data_mut();
                    data.anywhere = Some(at(&address, &data.kind));
                }
                self.list_watches(op);
            }
            Step::Remove { id } => {
                self.watches.retain(|watch| watch.line.id != id);
                self.forget_dead(&read::<types::BreakpointsBody>(&body).breakpoints);
                self.list_watches(op);
            }
            _ => self.list_watches(op),
        }
    }

    /// The last one is new: it was placed, or nothing is left of it.
    fn on_placed(&mut self, op: OpId, frame: i64, body: &Json) {
        let answers = read::<types::BreakpointsBody>(body).breakpoints;
        let verified = answers.last().is_some_and(|answer| answer.verified);
        if !verified {
            let why = answers.last().and_then(|answer| answer.message.clone()).unwrap_or_default();
            let why = format!("it can't be watched: {}", super::first_lines(&why));
            // Some watch what is written, and not what is read.
            let reads = self.watches.last().is_some_and(|watch| watch.line.access != Access::Write);
            let failure = if reads {
                Failure::unsupported(why).hint("stop where it is written: bugeye watch NAME")
            } else {
                Failure::refused(why)
            };
            self.forget_last();
            let failure = failure.hint("stop where it may change: bugeye break PLACE --if 'EXPR'");
            return self.answer(op, Err(failure));
        }
        self.forget_dead(&answers);
        let Some(expression) = self.watches.last().map(|watch| watch.line.expression.clone()) else { return };
        self.evaluate_data(&expression, frame, Pending::Watch(op, Step::Value { frame }));
    }

    /// A watch whose variable is gone was removed by the adapter, which has now set it anew, on whatever has that name
    /// here: it is known by its number, and is no more.
    fn forget_dead(&mut self, answers: &[types::AdapterBreakpoint]) {
        let mut dead = Vec::new();
        for (watch, answer) in self.watches.iter_mut().zip(answers) {
            let number = answer.id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
            if watch.number != 0 && watch.number != number {
                dead.push(watch.line.id);
            }
            watch.number = number;
        }
        if !dead.is_empty() {
            self.watches.retain(|watch| !dead.contains(&watch.line.id));
            let arguments = self.data_arguments(None);
            self.request("setDataBreakpoints", arguments, Pending::Quiet, self.limits.request);
        }
    }

    /// What could not be placed never was.
    fn forget_last(&mut self) {
        self.watches.pop();
        self.next_watch -= 1;
    }

    fn ask_address(&mut self, op: OpId, frame: i64) {
        let expression = self.watches.last().map(|watch| watch.line.expression.clone());
        match (expression, self.adapter.natives.at_address) {
            (Some(expression), Some(_)) => {
                let address = (self.adapter.natives.address_of)(&format!("&({expression})"));
                self.evaluate_data(&address, frame, Pending::Watch(op, Step::Address));
            }
            _ => self.list_watches(op),
        }
    }

    fn evaluate_data(&mut self, expression: &str, frame: i64, why: Pending) {
        let context = self.adapter.quirks.print_contexts.last().copied().unwrap_or("watch");
        let arguments = json!({ "expression": expression, "frameId": frame, "context": context });
        self.request("evaluate", arguments, why, self.limits.inspect);
    }

    /// Brings the adapter in line with the watches.
    pub(super) fn send_data(&mut self, op: OpId, step: Step) {
        let leaves = match &step {
            Step::Remove { id } => Some(*id),
            _ => None,
        };
        let arguments = self.data_arguments(leaves);
        self.request("setDataBreakpoints", arguments, Pending::Watch(op, step), self.limits.request);
    }

    /// All that are to be there, without the one that leaves.
    fn data_arguments(&self, leaves: Option<u32>) -> Json {
        let breakpoints: Vec<Json> = self
            .watches
            .iter()
            .filter(|watch| Some(watch.line.id) != leaves)
            .map(|watch| {
                let access = match watch.line.access {
                    Access::Write => "write",
                    Access::Read => "read",
                    Access::Either => "readWrite",
                };
                let mut breakpoint = json!({ "dataId": watch.data().id, "accessType": access });
                if let Some(condition) = &watch.line.condition {
                    breakpoint["condition"] = json!(condition);
                }
                breakpoint
            })
            .collect();
        json!({ "breakpoints": breakpoints })
    }

    /// The one that made a stop, where the event or the number of them tells.
    pub(super) fn data_reason(&self, body: &types::StoppedBody) -> Option<Reason> {
        if body.reason != "data breakpoint" || self.watches.is_empty() {
            return None;
        }
        let told = |watch: &&Watched| body.hit_breakpoint_ids.contains(&i64::from(watch.number));
        let only = (self.watches.len() == 1).then(|| self.watches.first()).flatten();
        let watch = self.watches.iter().find(told).or(only);
        let (id, expression) = watch.map_or((0, String::new()), |watch| (watch.line.id, watch.line.expression.clone()));
        Some(Reason::Watch { id, expression, old: None, new: None })
    }

    /// Asks for the frames at a stop that a watch made: the values are read where their names have their meaning.
    pub(super) fn ask_data_values(&mut self) {
        let Some(thread) = self.standing.as_ref().map(|standing| standing.thread) else { return };
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": FRAMES });
        self.request("stackTrace", arguments, Pending::DataFrames(self.epoch), self.limits.inspect);
    }

    pub(super) fn on_data_frames(&mut self, epoch: u64, result: Result<Json, String>) {
        let Ok(body) = result else { return };
        if epoch != self.epoch {
            return;
        }
        let frames = read::<types::StackTraceBody>(&body).stack_frames;
        let Some(top) = frames.first().map(|frame| frame.id) else { return };
        let own = |watch: &Watched| {
            let frame = frames.iter().find(|frame| frame.name == watch.data().function)?;
            Some((watch.line.id, watch.line.expression.clone(), frame.id))
        };
        let wanted: Vec<(u32, Option<(u32, String, i64)>)> =
            self.watches.iter().map(|watch| (watch.line.id, own(watch))).collect();
        for (id, own) in wanted {
            match own {
                Some((id, expression, frame)) => {
                    self.evaluate_data(&expression, frame, Pending::DataValue(id, epoch, Some(top)));
                }
                None => self.evaluate_anywhere(id, epoch, top),
            }
        }
    }

    /// Where its name means nothing, it is read by its address.
    fn evaluate_anywhere(&mut self, id: u32, epoch: u64, top: i64) {
        let watch = self.watches.iter().find(|watch| watch.line.id == id);
        if let Some(expression) = watch.and_then(|watch| watch.data().anywhere.clone()) {
            self.evaluate_data(&expression, top, Pending::DataValue(id, epoch, None));
        }
    }

    pub(super) fn on_data_value(&mut self, id: u32, epoch: u64, top: Option<i64>, result: Result<Json, String>) {
        if epoch != self.epoch {
            return;
        }
        let body = match (result, top) {
            (Ok(body), _) => body,
            (Err(_), Some(top)) => return self.evaluate_anywhere(id, epoch, top),
            (Err(_), None) => return,
        };
        let value: EvaluateBody = read(&body);
        let now = (self.adapter.quirks.tidy)(&value.result, value.kind.as_deref());
        let (Some(watch), Some(standing)) =
            (self.watches.iter_mut().find(|watch| watch.line.id == id), &mut self.standing)
        else {
            return;
        };
        let before = watch.line.value.replace(now.clone());
        let Reason::Watch { id: hit, expression, old, new } = &mut standing.reason else { return };
        if *hit == id || (*hit == 0 && before.as_ref() != Some(&now)) {
            watch.line.hits += 1;
            *hit = id;
            expression.clone_from(&watch.line.expression);
            *old = before;
            *new = Some(now);
        }
    }
}
