//! The broker: judges what taps ask, keeps what waits, and tells the debugger. It does no I/O; its owner feeds it and
//! carries out its [`Effect`]s.
//!
//! While the agent is stopped nothing passes a gate: what comes then waits behind the one that is shown. Between gates
//! an agent can't be held, so a pause takes hold at the next one.

mod acts;
mod learn;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use serde_json::{Value as Json, json};

use super::breaks::{Break, On};
use super::gate::{Answer, Ask, Message, Point, Tap, Verdict};
use super::model::price::{self, Price};
use super::path::Path;
use super::serve::Shown;
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
    /// Who waits for the answer: nobody, where a connection was lost; several, who ask the same at once.
    ids: Vec<u64>,
    tap: Tap,
    pub ask: Ask,
    pub thread: usize,
    /// A model call that was let go before and has failed: no new one to breakpoints and steps, and edited as it was.
    again: bool,
    verdict: Verdict,
    /// What the agent had there, where it was changed.
    before: Option<Json>,
    /// Messages that went with it the first time.
    inject: Vec<Message>,
}

/// A message that waits for a place in the conversation.
#[derive(Debug)]
struct Waiting {
    message: Message,
    actor: String,
    /// In whose conversation.
    thread: usize,
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
    /// What a breakpoint has interrupted, should nobody have wanted to stop there.
    interrupted: Plan,
    /// Trouble that was told where nothing can be held: it stops the agent at the next gate.
    trouble: Option<(String, Vec<i64>)>,
    inject: VecDeque<Waiting>,
    /// Answers to questions that may be put again.
    decided: VecDeque<(String, Answer)>,
    /// Model calls are held by the model tap, not by hooks: it was met, or it is expected and nothing says otherwise.
    has_model_tap: bool,
    met_model_tap: bool,
    /// The user's own prices.
    pub prices: Vec<(String, Price)>,
    /// It was said that what the agent costs is not known, where a breakpoint is about that.
    pub(super) told_unpriced: bool,
    /// Any tap was met.
    met: bool,
    /// Nothing is held any more.
    open: bool,
    /// What could be refused is, since nobody is there to ask.
    shut: bool,
    out: Vec<Effect>,
    /// Values that were shown at this stop, by their references.
    pub(super) shown: Shown,
}

impl Broker {
    /// What came of what it was fed.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.out)
    }

    pub fn attached(&mut self, tap: Tap, about: &Json) {
        self.has_model_tap |= tap == Tap::Model;
        self.met_model_tap |= tap == Tap::Model;
        self.met = true;
        self.learn(about);
        self.record("tap.attached", None, json!({ "tap": tap, "about": about }));
    }

    /// The agent was given a model tap; whether it makes use of it is to be seen.
    pub fn expect_model_tap(&mut self) {
        self.has_model_tap = true;
    }

    /// A tap asks.
    pub fn ask(&mut self, id: u64, tap: Tap, mut ask: Ask) {
        if tap == Tap::Sdk {
            ask.powers = ask.powers.at(ask.point);
        }
        if let Some(key) = &ask.key {
            if let Some(gate) = self.gates.iter_mut().find(|gate| gate.ask.key.as_ref() == Some(key)) {
                return gate.ids.push(id);
            }
            if let Some(at) = self.decided.iter().position(|(known, _)| known == key)
                && let Some((_, answer)) = self.decided.remove(at)
            {
                return self.out.push(Effect::Answer(id, answer));
            }
        }
        let thread = self.state.index(&ask.thread, ask.aside);
        let asked = self.state.threads[thread].asked.as_ref();
        let before = asked.filter(|(key, _)| ask.point == Point::BeforeModel && ask.key.as_ref() == Some(key));
        let (again, Answer { verdict, inject }) =
            before.map_or_else(Default::default, |(_, went)| (true, went.clone()));
        let counts = again || self.learn_gate(tap, thread, &ask);
        let gate = Gate { ids: vec![id], tap, ask, thread, again, verdict, before: None, inject };
        if self.open || !gate.ask.powers.hold || gate.ask.aside || !counts {
            return self.release(gate);
        }
        if self.stopped {
            return self.gates.push_back(gate);
        }
        self.judge(gate);
    }

    /// Stops the agent at a gate, or lets it pass.
    fn judge(&mut self, gate: Gate) {
        let Some((reason, ids, text)) = self.reason(&gate) else { return self.release(gate) };
        self.interrupted = std::mem::take(&mut self.plan);
        self.trouble = None;
        self.stopped = true;
        let thread = gate.thread;
        self.gates.push_front(gate);
        self.stop(thread, reason, &ids, text);
    }

    fn stop(&mut self, thread: usize, reason: &str, ids: &[i64], text: Option<String>) {
        let thread = thread + 1;
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

    /// What is said of a breakpoint on cost where the agent's model has no price, as far as that is known.
    pub(super) fn without_price(&self) -> Option<String> {
        let known = || {
            let main = &self.state.threads[0];
            let model = main.conversation.model.as_deref();
            let model = model.or_else(|| self.state.about.get("model").and_then(Json::as_str))?;
            // What an agent tells of its calls itself, it may price itself.
            (self.met_model_tap && price::of(model, &self.prices).is_none()).then(|| (model.to_string(), true))
        };
        let (model, tapped) = self.state.unpriced.clone().or_else(known)?;
        if self.state.cost.is_some() {
            return Some(format!(
                "no price is known for {model}: what it costs is not counted, what the others cost is"
            ));
        }
        let why = if tapped {
            format!(
                "no price is known for {model}, so what it costs is not counted and can't stop the agent; set its price in \
                 config.toml, [agent.prices], or "
            )
        } else {
            format!("nothing tells what {model} costs, so it is not counted and can't stop the agent; ")
        };
        Some(format!("{why}hold it by tokens: bugeye break tokens:100000"))
    }

    /// The same for whoever has set one, once.
    pub(super) fn says_without_price(&mut self) -> Option<String> {
        let about_cost = self.breaks.iter().any(|one| matches!(one.on, On::Cost(_)));
        let said = self.without_price().filter(|_| about_cost && !self.told_unpriced)?;
        self.told_unpriced = true;
        Some(said)
    }

    /// Why the agent is to stop at a gate.
    fn reason(&mut self, gate: &Gate) -> Option<(&'static str, Vec<i64>, Option<String>)> {
        let about = &self.state.threads[gate.thread];
        let iteration = about.iteration;
        let called = gate.ask.span.as_ref().and_then(|span| about.names.get(span)).map(String::as_str);
        let (tokens, cost) = (self.state.total_tokens(), self.state.cost);
        let mut ids = Vec::new();
        let mut breaks = std::mem::take(&mut self.breaks);
        for one in &mut breaks {
            let passed = match one.on {
                On::Cost(limit) => cost.is_some_and(|cost| cost >= limit),
                On::Tokens(limit) => tokens >= limit,
                _ => false,
            };
            let hit = (!gate.again && one.on.matches(&gate.ask, called, iteration)) || (passed && !one.said);
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
            if ids.is_empty() {
                return Some(("exception", ids, Some(text)));
            }
            self.say(&text);
            return Some(("function breakpoint", ids, None));
        }
        if gate.ask.point == Point::AfterTool && gate.ask.ok == Some(false) && self.catches("error") {
            return Some(("exception", ids, Some(format!("{} failed", gate.ask.name.as_deref().unwrap_or("a tool")))));
        }
        if !ids.is_empty() {
            return Some(("function breakpoint", ids, None));
        }
        self.planned(&self.plan, gate).map(|reason| (reason, ids, None))
    }

    /// Whether a gate is where a step or a pause ends.
    fn planned(&self, plan: &Plan, gate: &Gate) -> Option<&'static str> {
        let key = &self.state.threads[gate.thread].key;
        let point = gate.ask.point;
        match plan {
            Plan::Pause => Some("pause"),
            Plan::Iteration(thread) if thread == key && !gate.again => {
                matches!(point, Point::BeforeModel | Point::BeforeStop).then_some("step")
            }
            Plan::Finish(thread) if thread == key => (point == Point::BeforeStop).then_some("step"),
            Plan::Run | Plan::Iteration(_) | Plan::Finish(_) => None,
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
        let mut answer = Answer { verdict, inject: std::mem::take(&mut gate.inject) };
        let goes_on = matches!(answer.verdict, Verdict::Proceed | Verdict::Edit { .. });
        if powers.inject && goes_on && !gate.ask.aside && !gate.again {
            // A hook's message is the user's, whoever speaks.
            let fits = |waiting: &Waiting| {
                waiting.thread == gate.thread && (gate.tap != Tap::Hook || waiting.message.role == "user")
            };
            let (now, later) = std::mem::take(&mut self.inject).into_iter().partition::<VecDeque<_>, _>(fits);
            self.inject = later;
            for waiting in now {
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
            Verdict::Edit { value } if point == Point::BeforePrompt => {
                self.state.threads[gate.thread].prompt = Some(super::path::plain(value));
            }
            Verdict::Edit { .. } if point == Point::BeforeModel => {
                let asked = self.state.threads[gate.thread].asked.as_mut();
                if let Some((_, went)) = asked.filter(|(key, _)| gate.ask.key.as_ref() == Some(key)) {
                    went.clone_from(&answer);
                }
            }
            Verdict::Proceed | Verdict::Edit { .. } => {}
        }
        match &gate.ask.key {
            Some(key) if gate.ids.is_empty() => {
                if self.decided.len() >= MAX_DECIDED {
                    self.decided.pop_front();
                }
                self.decided.push_back((key.clone(), answer));
            }
            _ => self.out.extend(gate.ids.iter().map(|id| Effect::Answer(*id, answer.clone()))),
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
        let Some(at) = self.gates.iter().position(|gate| gate.ids.contains(&id)) else { return };
        if let Some(gate) = self.gates.get_mut(at).filter(|gate| gate.ask.key.is_some()) {
            return gate.ids.retain(|known| *known != id);
        }
        if let Some(gate) = self.gates.remove(at) {
            self.is_over(&gate);
        }
        if at == 0 && self.stopped {
            self.say("what the agent was held at is gone: it did not wait");
            self.out.push(Effect::Event("continued", json!({ "threadId": 1, "allThreadsContinued": true })));
            self.stopped = false;
            self.go(Plan::Run);
        }
    }

    pub fn ended(&mut self, code: i32) {
        self.stopped = false;
        self.gates.clear();
        if self.state.total_tokens() > 0 && !self.open {
            self.say(&self.state.spent());
        }
        if !self.met && !self.open {
            self.say("nothing in it has asked the debugger, so no breakpoint could count: it is no agent that is known, or its hooks are off");
        }
        self.out.push(Effect::Event("exited", json!({ "exitCode": code })));
        self.out.push(Effect::Event("terminated", json!({})));
    }

    /// Says something to whoever is at the debugger.
    pub fn say(&mut self, message: &str) {
        self.record("log", None, json!({ "message": message, "by": "debugger" }));
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
        if self.stopped {
            // It may be one that nobody is told of.
            self.interrupted = Plan::Pause;
        } else {
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

    /// Goes on from where nobody wanted to stop, as it went before.
    pub fn pass(&mut self) {
        let plan = std::mem::take(&mut self.interrupted);
        let ends = self.gate().and_then(|gate| Some((gate.thread, self.planned(&plan, gate)?)));
        match ends {
            Some((thread, reason)) => self.stop(thread, reason, &[], None),
            None => self.go(plan),
        }
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
