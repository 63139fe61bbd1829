//! The broker: judges what taps ask, keeps what waits, and tells the debugger. It does no I/O; its owner feeds it and
//! carries out its [`Effect`]s.
//!
//! While the agent is stopped nothing passes a gate: what comes then waits behind the one that is shown. Between gates
//! an agent can't be held, so a pause takes hold at the next one.

mod acts;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde_json::{Map, Value as Json, json};

use super::breaks::{Break, On};
use super::gate::{Answer, Ask, Message, Note, Point, Tap, Usage, Verdict};
use super::path::Path;
use super::state::State;

/// Answers that are kept for questions whose connection was lost while they were held.
const MAX_DECIDED: usize = 64;
/// What marks a text as the debugger's.
pub const MARK: &str = "[debugger] ";

/// What the owner has to do, in order.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// An event of the debug protocol.
    Event(&'static str, Json),
    /// Answers the question of this number.
    Answer(u64, Answer),
}

/// What is to stop the agent beside breakpoints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Plan {
    #[default]
    Run,
    /// At the next gate.
    Pause,
    /// At the next model call of this thread, or the end of its turn.
    Iteration(String),
    /// At the end of this thread's turn.
    Finish(String),
}

/// A gate that waits.
#[derive(Debug)]
pub struct Gate {
    id: u64,
    tap: Tap,
    pub ask: Ask,
    pub thread: usize,
    /// Somebody waits for the answer.
    connected: bool,
    verdict: Verdict,
}

/// A message that waits for a place in the conversation.
#[derive(Debug)]
struct Waiting {
    message: Message,
    actor: String,
}

#[derive(Debug, Default)]
pub struct Broker {
    pub state: State,
    pub breaks: Vec<Break>,
    /// Kinds of trouble that stop the agent (`catch error`).
    pub catch: Vec<String>,
    /// In the order they came; the first is the one that is shown while `stopped`.
    gates: VecDeque<Gate>,
    stopped: bool,
    plan: Plan,
    /// Trouble that was told where nothing can be held: it stops the agent at the next gate.
    trouble: Option<(String, Vec<i64>)>,
    inject: VecDeque<Waiting>,
    /// Answers to questions that may be put again.
    decided: VecDeque<(String, Answer)>,
    /// Model calls are held by the model tap, not by hooks: it was met, or it is expected and nothing says otherwise.
    has_model_tap: bool,
    met_model_tap: bool,
    /// Nothing is held any more.
    open: bool,
    /// What could be refused is, since nobody is there to ask.
    shut: bool,
    out: Vec<Effect>,
    /// Values that were shown at this stop, by their references.
    pub(super) shown: Vec<Json>,
}

impl Broker {
    /// What came of what it was fed.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.out)
    }

    pub fn attached(&mut self, tap: Tap, about: &Json) {
        self.has_model_tap |= tap == Tap::Model;
        self.met_model_tap |= tap == Tap::Model;
        self.learn(about);
        self.record("tap.attached", None, json!({ "tap": tap, "about": about }));
    }

    /// The agent was given a model tap; whether it makes use of it is to be seen.
    pub fn expect_model_tap(&mut self) {
        self.has_model_tap = true;
    }

    fn learn(&mut self, about: &Json) {
        for (name, value) in about.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.state.about.insert(name.clone(), value.clone());
            }
        }
    }

    /// A tap asks.
    pub fn ask(&mut self, id: u64, tap: Tap, ask: Ask) {
        if let Some(key) = &ask.key {
            if let Some(gate) = self.gates.iter_mut().find(|gate| gate.ask.key.as_ref() == Some(key)) {
                gate.id = id;
                gate.connected = true;
                return;
            }
            if let Some(at) = self.decided.iter().position(|(known, _)| known == key)
                && let Some((_, answer)) = self.decided.remove(at)
            {
                return self.out.push(Effect::Answer(id, answer));
            }
        }
        let thread = self.state.index(&ask.thread);
        let counts = self.learn_gate(tap, thread, &ask);
        let gate = Gate { id, tap, ask, thread, connected: true, verdict: Verdict::Proceed };
        if self.open || !gate.ask.powers.hold || gate.ask.aside || !counts {
            return self.release(gate);
        }
        if self.stopped {
            return self.gates.push_back(gate);
        }
        self.judge(gate);
    }

    /// Learns from a gate, and records it. False where it is not one to hold at: another tap holds there.
    fn learn_gate(&mut self, tap: Tap, thread: usize, ask: &Ask) -> bool {
        let name = ask.name.clone().unwrap_or_default();
        let about = &mut self.state.threads[thread];
        match ask.point {
            Point::BeforePrompt => {
                if std::mem::take(&mut about.announced) {
                    return true;
                }
                about.turn += 1;
                about.prompt = Some(super::path::plain(&ask.value));
                about.heard("user", ask.value.clone());
                let turn = about.turn;
                self.record("input.user", Some(thread), json!({ "text": ask.value, "turn": turn }));
            }
            Point::BeforeModel => {
                if ask.aside || (tap == Tap::Hook && self.has_model_tap) {
                    return false;
                }
                about.iteration += 1;
                about.turn = about.turn.max(1);
                let iteration = about.iteration;
                if let Some(conversation) = &ask.conversation {
                    about.exact = tap != Tap::Hook;
                    about.conversation = conversation.clone();
                }
                if tap != Tap::Model {
                    let n = about.conversation.messages.len();
                    let data = json!({ "model": about.conversation.model, "n_messages": n, "iteration": iteration });
                    self.record("model.request", Some(thread), data);
                }
            }
            Point::BeforeTool => {
                // A tool is called because a model said so: its calls go another way.
                self.has_model_tap = self.met_model_tap;
                about.calls(ask.span.clone(), name.clone(), ask.value.clone());
                let block = json!([{ "type": "tool_call", "id": ask.span, "name": name, "input": ask.value }]);
                about.heard("assistant", block);
                let data = json!({ "name": name, "id": ask.span, "input": ask.value, "iteration": about.iteration });
                self.record("tool.call", Some(thread), data);
            }
            Point::AfterTool => {
                let same = |call: &(Option<String>, String, Json)| match &ask.span {
                    Some(span) => call.0.as_ref() == Some(span),
                    None => call.1 == name,
                };
                if let Some(at) = about.calls.iter().position(same) {
                    about.calls.remove(at);
                }
                let block = json!([{ "type": "tool_result", "id": ask.span, "output": ask.value }]);
                about.heard("user", block);
                let data = json!({
                    "name": name, "id": ask.span, "ok": ask.ok, "output": ask.value, "ms": ask.ms,
                    "iteration": about.iteration,
                });
                self.record("tool.end", Some(thread), data);
            }
            Point::BeforeStop => {
                let data = json!({ "turn": about.turn, "iteration": about.iteration, "text": ask.value });
                self.record("turn.end", Some(thread), data);
            }
        }
        true
    }

    /// Stops the agent at a gate, or lets it pass.
    fn judge(&mut self, gate: Gate) {
        let Some((reason, ids, text)) = self.reason(&gate) else { return self.release(gate) };
        self.plan = Plan::Run;
        self.trouble = None;
        self.stopped = true;
        let thread = gate.thread + 1;
        self.gates.push_front(gate);
        self.shown.clear();
        let mut body = json!({
            "reason": reason, "threadId": thread, "allThreadsStopped": true, "hitBreakpointIds": ids,
        });
        if let Some(text) = text {
            body["text"] = json!(text);
            body["description"] = json!(text);
        }
        self.out.push(Effect::Event("stopped", body));
    }

    /// Why the agent is to stop at a gate.
    fn reason(&mut self, gate: &Gate) -> Option<(&'static str, Vec<i64>, Option<String>)> {
        let iteration = self.state.threads[gate.thread].iteration;
        let (tokens, cost) = (self.state.total_tokens(), self.state.cost);
        let mut ids = Vec::new();
        let mut breaks = std::mem::take(&mut self.breaks);
        for one in &mut breaks {
            let passed = match one.on {
                On::Cost(limit) => cost.is_some_and(|cost| cost >= limit),
                On::Tokens(limit) => tokens >= limit,
                _ => false,
            };
            let hit = one.on.matches(&gate.ask, iteration) || (passed && !one.said);
            let holds = hit
                && one.condition.as_ref().is_none_or(|condition| {
                    condition.holds(|path: &Path| self.state.value(path, gate.thread, Some(&gate.ask)))
                });
            if !holds {
                continue;
            }
            one.said = passed;
            one.hits += 1;
            if one.hits >= one.from {
                ids.push(one.id);
            }
        }
        self.breaks = breaks;
        if let Some((text, more)) = self.trouble.take() {
            ids.extend(more);
            return Some(("exception", ids, Some(text)));
        }
        if gate.ask.point == Point::AfterTool && gate.ask.ok == Some(false) && self.catches("error") {
            return Some(("exception", ids, Some(format!("{} failed", gate.ask.name.as_deref().unwrap_or("a tool")))));
        }
        if !ids.is_empty() {
            return Some(("function breakpoint", ids, None));
        }
        let key = &self.state.threads[gate.thread].key;
        let point = gate.ask.point;
        match &self.plan {
            Plan::Run => None,
            Plan::Pause => Some(("pause", ids, None)),
            Plan::Iteration(thread) if thread == key => {
                matches!(point, Point::BeforeModel | Point::BeforeStop).then_some(("step", ids, None))
            }
            Plan::Finish(thread) if thread == key => (point == Point::BeforeStop).then_some(("step", ids, None)),
            Plan::Iteration(_) | Plan::Finish(_) => None,
        }
    }

    fn catches(&self, word: &str) -> bool {
        self.catch.iter().any(|caught| caught == word)
    }

    /// Lets a gate's question be answered.
    fn release(&mut self, mut gate: Gate) {
        let powers = gate.ask.powers;
        let acts = matches!(gate.ask.point, Point::BeforeTool | Point::BeforePrompt);
        if self.shut && acts && powers.deny {
            gate.verdict =
                Verdict::Deny { reason: format!("{MARK}the debugger is gone, and was not to be done without") };
        }
        let verdict = std::mem::take(&mut gate.verdict);
        let mut answer = Answer { verdict, inject: Vec::new() };
        let goes_on = matches!(answer.verdict, Verdict::Proceed | Verdict::Edit { .. });
        if powers.inject && goes_on && !gate.ask.aside {
            for waiting in std::mem::take(&mut self.inject) {
                let data = json!({
                    "role": waiting.message.role, "text": waiting.message.text, "where": gate.ask.point.name(),
                    "tap": gate.tap, "actor": waiting.actor,
                });
                self.record("injected", Some(gate.thread), data);
                self.state.threads[gate.thread].heard(&waiting.message.role, json!(waiting.message.text));
                answer.inject.push(waiting.message);
            }
        }
        let point = gate.ask.point;
        match &answer.verdict {
            Verdict::Deny { reason } | Verdict::Abort { reason } => {
                let mut data = json!({
                    "name": gate.ask.name, "id": gate.ask.span, "by": "debugger", "reason": reason,
                    "where": point.name(),
                });
                if matches!(answer.verdict, Verdict::Abort { .. }) {
                    data["run"] = json!(true);
                }
                self.is_over(&gate);
                self.record("tool.denied", Some(gate.thread), data);
            }
            Verdict::Synthesize { value } => {
                let target = match point {
                    Point::BeforeModel => "model_response",
                    _ => "tool_output",
                };
                let data = json!({ "target": target, "value": value, "name": gate.ask.name, "id": gate.ask.span });
                self.is_over(&gate);
                self.record("edited", Some(gate.thread), data);
            }
            Verdict::Proceed | Verdict::Edit { .. } => {}
        }
        match &gate.ask.key {
            Some(key) if !gate.connected => {
                if self.decided.len() >= MAX_DECIDED {
                    self.decided.pop_front();
                }
                self.decided.push_back((key.clone(), answer));
            }
            _ => self.out.push(Effect::Answer(gate.id, answer)),
        }
    }

    /// A tool that is not run is not under way either.
    fn is_over(&mut self, gate: &Gate) {
        let (span, name) = (&gate.ask.span, gate.ask.name.as_deref().unwrap_or_default());
        let calls = &mut self.state.threads[gate.thread].calls;
        if gate.ask.point == Point::BeforeTool
            && let Some(at) = calls.iter().rposition(|call| call.0 == *span && call.1 == name)
        {
            calls.remove(at);
        }
    }

    /// Nobody waits for an answer any more. A question that may be put again keeps its place.
    pub fn withdrawn(&mut self, id: u64) {
        let Some(at) = self.gates.iter().position(|gate| gate.id == id && gate.connected) else { return };
        if let Some(gate) = self.gates.get_mut(at).filter(|gate| gate.ask.key.is_some()) {
            gate.connected = false;
            return;
        }
        self.gates.remove(at);
        if at == 0 && self.stopped {
            let data = json!({ "message": "what the agent was held at is gone: it did not wait" });
            self.record("log", None, data);
            self.out.push(Effect::Event("continued", json!({ "threadId": 1, "allThreadsContinued": true })));
            self.stopped = false;
            self.go(Plan::Run);
        }
    }

    /// A tap tells.
    pub fn note(&mut self, tap: Tap, note: Note) {
        let Note { kind, thread: key, span, mut data } = note;
        let thread = self.state.index(&key);
        let text = |name: &str| data.get(name).and_then(Json::as_str).map(ToString::to_string);
        match kind.as_str() {
            "session.start" => self.learn(&data),
            "input.user" => {
                let said = text("text").unwrap_or_default();
                let about = &mut self.state.threads[thread];
                about.turn += 1;
                about.prompt = Some(said.clone());
                about.announced = tap == Tap::Hook;
                about.heard("user", json!(said));
                let turn = about.turn;
                put(&mut data, "turn", json!(turn));
            }
            "model.request" => {
                let about = &mut self.state.threads[thread];
                // The model tap tells before it asks.
                let counted = tap == Tap::Model;
                if !counted {
                    about.iteration += 1;
                }
                put(&mut data, "iteration", json!(about.iteration + u64::from(counted)));
            }
            "model.response" => {
                let usage: Usage =
                    data.get("usage").cloned().and_then(|u| serde_json::from_value(u).ok()).unwrap_or_default();
                let total = &mut self.state.usage;
                total.input = total.input.saturating_add(usage.input);
                total.output = total.output.saturating_add(usage.output);
                total.cache_read = total.cache_read.saturating_add(usage.cache_read);
                total.cache_write = total.cache_write.saturating_add(usage.cache_write);
                if let Some(cost) = data.get("usd").and_then(Json::as_f64) {
                    self.state.cost = Some(self.state.cost.unwrap_or(0.0) + cost);
                }
                let said = text("text").filter(|text| !text.is_empty());
                let about = &mut self.state.threads[thread];
                about.last_usage = Some(usage);
                if let Some(said) = said {
                    about.heard("assistant", json!(said));
                }
                put(&mut data, "iteration", json!(about.iteration));
            }
            "tool.call" => {
                let name = text("name").unwrap_or_default();
                let input = data.get("input").cloned().unwrap_or_default();
                self.state.threads[thread].calls(span.clone(), name, input);
            }
            "tool.end" => self.state.threads[thread].calls.retain(|call| call.0 != span),
            "agent.spawn" => {
                let (kind, parent) = (text("type"), text("parent"));
                let about = &mut self.state.threads[thread];
                about.kind = kind;
                about.prompt = text("prompt").or(about.prompt.take());
                about.parent = parent.or(about.parent.take());
                self.out.push(Effect::Event("thread", json!({ "reason": "started", "threadId": thread + 1 })));
                self.troubled(|on| matches!(on, On::Subagent), "a sub-agent begins", false);
            }
            "agent.exit" => {
                let about = &mut self.state.threads[thread];
                about.ended = true;
                let parent = about.parent.clone().unwrap_or_else(|| "main".into());
                // A step out of its last turn ends in the one that it was for.
                match &mut self.plan {
                    Plan::Iteration(key) | Plan::Finish(key) if *key == about.key => *key = parent,
                    _ => {}
                }
                self.out.push(Effect::Event("thread", json!({ "reason": "exited", "threadId": thread + 1 })));
            }
            "model.error" | "error" => {
                let said = text("message").unwrap_or_else(|| "an error".into());
                let caught = self.catches("error");
                self.troubled(|on| matches!(on, On::Error), &said, caught);
            }
            "tool.denied" => {
                let said = format!("{} was not let run", text("name").unwrap_or_else(|| "a tool".into()));
                let caught = self.catches("denied");
                self.troubled(|on| matches!(on, On::Denied), &said, caught);
            }
            "rerun.diverged" => {
                let said = text("what").unwrap_or_else(|| "it differs from the recording".into());
                self.troubled(|_| false, &said, true);
            }
            _ => {}
        }
        if let Some(span) = span {
            put(&mut data, "id", json!(span));
        }
        self.record(&kind, Some(thread), data);
    }

    /// Something went wrong where nothing can be held: the next gate is where it stops, if somebody wants that.
    fn troubled(&mut self, wanted: impl Fn(&On) -> bool, text: &str, caught: bool) {
        let mut ids = Vec::new();
        for one in self.breaks.iter_mut().filter(|one| wanted(&one.on)) {
            one.hits += 1;
            if one.hits >= one.from {
                ids.push(one.id);
            }
        }
        if caught || !ids.is_empty() {
            self.trouble = Some((text.into(), ids));
        }
    }

    pub fn ended(&mut self, code: i32) {
        self.stopped = false;
        self.gates.clear();
        self.out.push(Effect::Event("exited", json!({ "exitCode": code })));
        self.out.push(Effect::Event("terminated", json!({})));
    }

    /// Says something in the record.
    pub fn record(&mut self, kind: &str, thread: Option<usize>, data: Json) {
        let thread = thread.map(|thread| thread + 1);
        let mut body = json!({ "type": kind, "thread": thread });
        body["data"] = data;
        self.out.push(Effect::Event("bugeye/record", body));
    }

    /// Whether nothing is held any more.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.open
    }

    #[must_use]
    pub const fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The gate that is shown.
    #[must_use]
    pub fn gate(&self) -> Option<&Gate> {
        self.gates.front().filter(|_| self.stopped)
    }

    /// Those that wait behind the one that is shown.
    pub fn waiting(&self) -> impl Iterator<Item = &Gate> {
        self.gates.iter().skip(usize::from(self.stopped))
    }

    pub fn pause(&mut self) {
        if !self.stopped {
            self.plan = Plan::Pause;
        }
    }

    /// Goes on, to the next model call of a thread or the end of its turn.
    pub fn step(&mut self, thread: usize) {
        let key = self.key(thread);
        self.go(Plan::Iteration(key));
    }

    /// Goes on to the end of a thread's turn.
    pub fn finish(&mut self, thread: usize) {
        let key = self.key(thread);
        self.go(Plan::Finish(key));
    }

    pub fn resume(&mut self) {
        self.go(Plan::Run);
    }

    fn key(&self, thread: usize) -> String {
        self.state.threads.get(thread).map_or_else(|| "main".into(), |thread| thread.key.clone())
    }

    /// Lets the gate that is shown be answered, then judges those behind it in their order.
    fn go(&mut self, plan: Plan) {
        self.plan = plan;
        self.shown.clear();
        if self.stopped {
            self.stopped = false;
            if let Some(gate) = self.gates.pop_front() {
                self.release(gate);
            }
        }
        while !self.stopped
            && let Some(gate) = self.gates.pop_front()
        {
            self.judge(gate);
        }
    }

    /// Refuses from now on what can be refused before it happens.
    pub fn shut(&mut self) {
        self.shut = true;
    }

    /// The debugger leaves, or is gone: nothing is held from now on.
    pub fn leave(&mut self) {
        self.open = true;
        self.breaks.clear();
        self.catch.clear();
        self.trouble = None;
        for gate in std::mem::take(&mut self.gates) {
            self.release(gate);
        }
        self.stopped = false;
    }
}

fn put(data: &mut Json, name: &str, value: Json) {
    if !data.is_object() {
        *data = Json::Object(Map::new());
    }
    data[name] = value;
}
