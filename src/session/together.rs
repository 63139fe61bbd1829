//! Threads that hit a breakpoint at one moment, on an adapter that tells of one alone: the others are looked for before
//! anyone is told, and shown one after the other.

use serde_json::{Value as Json, json};

use super::{Pending, Session};
use crate::dap::types::{self, StoppedBody, read};

/// Threads that are looked at.
const MAX_THREADS: usize = 64;

/// A stop whose companions are looked for.
#[derive(Debug)]
pub(super) struct Together {
    body: StoppedBody,
    /// Where the thread of the event stands.
    instruction: Option<String>,
    others: Vec<i64>,
    open: usize,
    /// A hit of a trace is being looked at meanwhile.
    traced: bool,
}

/// Which question an answer belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    /// Whether there can be others at all.
    Alone,
    /// An address by which that is told from now on.
    Address,
    Threads,
    Place,
    Other(i64),
    /// Whether the condition of the breakpoint is true for that thread.
    Condition(i64),
}

impl Session {
    /// True when there may be others, and they are being looked for.
    pub(super) fn look_for_others(&mut self, body: &StoppedBody) -> bool {
        let by_breakpoint = !self.hit_wishes(body).is_empty();
        let Some(thread) = body.thread_id.filter(|_| by_breakpoint && self.together.is_none()) else { return false };
        if self.adapter.quirks.tells_one_hit.is_none() {
            return false;
        }
        let traced = self.is_stop_of_trace(body);
        if traced {
            self.arrive_now(body.clone());
        }
        let open = if traced { 1 } else { 2 };
        self.together = Some(Together { body: body.clone(), instruction: None, others: Vec::new(), open, traced });
        let frame = self.adapter.quirks.top_frame;
        let (command, arguments, ask) = match self.alone_expression().filter(|_| traced) {
            Some(expression) => {
                ("evaluate", json!({ "expression": expression, "frameId": frame, "context": "repl" }), Ask::Alone)
            }
            None => ("threads", Json::Null, Ask::Threads),
        };
        self.request(command, arguments, Pending::Together(ask), self.limits.inspect);
        if let (true, Some((addresses, _))) = (traced && ask == Ask::Threads, self.adapter.quirks.hit_alone) {
            self.ask_addresses(addresses);
        }
        if !traced {
            self.ask_place(thread, Ask::Place);
        }
        true
    }

    /// Once for a trace.
    fn ask_addresses(&mut self, expressions: [&str; 2]) {
        let Some(together) = &mut self.together else { return };
        if self.addresses.is_some() {
            return;
        }
        together.open += expressions.len();
        self.addresses = Some(Vec::new());
        for expression in expressions {
            let arguments = json!({ "expression": expression, "context": "repl" });
            self.request("evaluate", arguments, Pending::Together(Ask::Address), self.limits.inspect);
        }
    }

    fn alone_expression(&self) -> Option<String> {
        let (_, expression) = self.adapter.quirks.hit_alone?;
        match self.addresses.as_deref()? {
            [first, second] => Some(expression(*first, *second)),
            _ => None,
        }
    }

    fn ask_place(&mut self, thread: i64, ask: Ask) {
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": 1 });
        self.request("stackTrace", arguments, Pending::Together(ask), self.limits.inspect);
    }

    /// Whether others are looked for that hit a traced place at the same moment.
    pub(super) fn is_looking_for_others(&self) -> bool {
        self.together.is_some()
    }

    pub(super) fn on_together(&mut self, ask: Ask, result: Result<Json, String>) {
        let Some(together) = &mut self.together else { return };
        together.open -= 1;
        match ask {
            Ask::Alone => {
                let value: types::EvaluateBody = result.map(|body| read(&body)).unwrap_or_default();
                if value.result != "true" {
                    together.open += 1;
                    self.request("threads", Json::Null, Pending::Together(Ask::Threads), self.limits.inspect);
                }
            }
            Ask::Address => {
                let value: types::EvaluateBody = result.map(|body| read(&body)).unwrap_or_default();
                let number: Option<u64> = value.result.split_whitespace().next().and_then(|number| number.parse().ok());
                if let Some(addresses) = &mut self.addresses {
                    addresses.extend(number);
                }
            }
            Ask::Threads => {
                let may = self.adapter.quirks.tells_one_hit.unwrap_or(|_| false);
                let threads = result.map(|body| read::<types::ThreadsBody>(&body).threads).unwrap_or_default();
                let own = together.body.thread_id;
                let others = threads.iter().filter(|thread| Some(thread.id) != own && may(&thread.name));
                together.others = others.map(|thread| thread.id).take(MAX_THREADS).collect();
            }
            Ask::Place => together.instruction = top(result).and_then(|frame| frame.instruction_pointer_reference),
            Ask::Other(thread) => {
                let frame = top(result);
                let here = frame.as_ref().and_then(|frame| frame.instruction_pointer_reference.as_ref());
                if here.is_some() && here == together.instruction.as_ref() {
                    return self.found(thread, frame.map_or(0, |frame| frame.id));
                }
            }
            Ask::Condition(thread) => {
                let value: types::EvaluateBody = result.map(|body| read(&body)).unwrap_or_default();
                if value.result == "true" {
                    self.hit_too(thread);
                }
            }
        }
        self.go_on_together();
    }

    /// Another thread stands at the same instruction.
    fn found(&mut self, thread: i64, frame: i64) {
        let Some(together) = &self.together else { return };
        let ids = self.hit_wishes(&together.body);
        let traced = self.trace_wishes();
        let hit = self.wishes.iter().chain(&traced).find(|wish| ids.contains(&wish.id));
        match hit.and_then(|wish| wish.condition.clone()) {
            Some(condition) => {
                let context = self.adapter.quirks.print_contexts.last().copied().unwrap_or("watch");
                let arguments = json!({ "expression": condition, "frameId": frame, "context": context });
                if let Some(together) = &mut self.together {
                    together.open += 1;
                }
                self.request("evaluate", arguments, Pending::Together(Ask::Condition(thread)), self.limits.inspect);
            }
            None => self.hit_too(thread),
        }
        self.go_on_together();
    }

    fn hit_too(&mut self, thread: i64) {
        if let Some(together) = &self.together {
            self.queue.push_back(StoppedBody { thread_id: Some(thread), ..together.body.clone() });
        }
    }

    /// All is known of this step: the next, or the stop itself.
    fn go_on_together(&mut self) {
        let Some(together) = &mut self.together else { return };
        if together.open > 0 {
            return;
        }
        let others = std::mem::take(&mut together.others);
        // Of a hit it is not known yet: the answer comes before those about the others.
        let place = together.body.thread_id.filter(|_| together.traced && together.instruction.is_none());
        if !others.is_empty() && (together.instruction.is_some() || place.is_some()) {
            together.open = others.len() + usize::from(place.is_some());
            if let Some(thread) = place {
                self.ask_place(thread, Ask::Place);
            }
            for thread in others {
                self.ask_place(thread, Ask::Other(thread));
            }
            return;
        }
        match self.together.take() {
            Some(together) if together.traced => self.finish_waiting_hit(),
            Some(together) => self.arrive_now(together.body),
            None => {}
        }
    }
}

fn top(result: Result<Json, String>) -> Option<types::StackFrame> {
    read::<types::StackTraceBody>(&result.ok()?).stack_frames.into_iter().next()
}
