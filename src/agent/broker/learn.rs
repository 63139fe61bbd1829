//! What is learned from what taps ask and tell: where each thread is in its loop, what it heard, what it cost.

use serde_json::{Map, Value as Json, json};

use super::{Broker, Effect, Plan};
use crate::agent::breaks::On;
use crate::agent::gate::{Answer, Ask, Conversation, Note, Point, Tap, Usage};
use crate::agent::path::{self, Path};
use crate::render::cut;

impl Broker {
    pub(super) fn learn(&mut self, about: &Json) {
        for (name, value) in about.as_object().into_iter().flatten() {
            if !value.is_null() {
                self.state.about.insert(name.clone(), value.clone());
            }
        }
    }

    /// Learns from a gate, and records it. False where it is not one to hold at: another tap holds there.
    pub(super) fn learn_gate(&mut self, tap: Tap, thread: usize, ask: &Ask) -> bool {
        let name = ask.name.clone().unwrap_or_default();
        let about = &mut self.state.threads[thread];
        if ask.point != Point::BeforeModel {
            about.asked = None;
        }
        match ask.point {
            Point::BeforePrompt => {
                if std::mem::take(&mut about.announced) {
                    return true;
                }
                about.turn += 1;
                about.prompt = Some(path::plain(&ask.value));
                about.heard("user", ask.value.clone());
                let turn = about.turn;
                self.record("input.user", Some(thread), json!({ "text": ask.value, "turn": turn }));
            }
            Point::BeforeModel => {
                if ask.aside || (tap == Tap::Hook && self.has_model_tap) || (tap == Tap::Model && about.own_calls) {
                    return false;
                }
                about.own_calls = tap == Tap::Sdk;
                about.iteration += 1;
                about.asked = ask.key.clone().map(|key| (key, Answer::default()));
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

    /// A tap tells.
    pub fn note(&mut self, tap: Tap, note: Note) {
        let Note { kind, thread: key, span, mut data } = note;
        let thread = self.state.index(&key, is_aside(&data));
        let text = |name: &str| data.get(name).and_then(Json::as_str).map(ToString::to_string);
        match kind.as_str() {
            "session.start" => {
                self.learn(&data);
                // Hooks of others are inherited by agents that they start.
                let agent = self.state.about.get("agent").and_then(Json::as_str);
                let own = tap == Tap::Hook && thread == 0 && matches!(agent, Some("claude" | "codex"));
                if let Some(session) = text("session_id").filter(|_| own) {
                    self.state.begins(session);
                }
            }
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
            "model.request" if is_aside(&data) => {}
            "model.request" => {
                let about = &mut self.state.threads[thread];
                // The model tap tells before it asks.
                let counts = tap == Tap::Model && !about.own_calls;
                if tap != Tap::Model && !self.met_model_tap {
                    about.iteration += 1;
                }
                put(&mut data, "iteration", json!(about.iteration + u64::from(counts)));
            }
            // Told ahead of the answer's end, and again with it: no event of its own.
            "model.calls" if tap == Tap::Model => return self.state.threads[thread].names.extend(names(&data)),
            "model.response" => {
                let usage: Usage =
                    data.get("usage").cloned().and_then(|u| serde_json::from_value(u).ok()).unwrap_or_default();
                // Where two taps tell of it, it has cost what the model tap says; an answer from a record costs nothing.
                let recorded = data.get("by").and_then(Json::as_str) == Some("recording");
                if (tap == Tap::Model || !self.met_model_tap) && !recorded {
                    let total = &mut self.state.usage;
                    total.input = total.input.saturating_add(usage.input);
                    total.output = total.output.saturating_add(usage.output);
                    total.cache_read = total.cache_read.saturating_add(usage.cache_read);
                    total.cache_write = total.cache_write.saturating_add(usage.cache_write);
                    let asked = self.state.threads[thread].conversation.model.clone();
                    match data.get("usd").and_then(Json::as_f64) {
                        Some(cost) => self.state.cost = Some(self.state.cost.unwrap_or(0.0) + cost),
                        None if usage == Usage::default() => {}
                        None => {
                            let model = text("model").or(asked).unwrap_or_else(|| "its model".into());
                            self.state.unpriced = Some((model, tap == Tap::Model));
                            if let Some(said) = self.says_without_price() {
                                self.say(&said);
                            }
                        }
                    }
                }
                if !is_aside(&data) {
                    let said = text("text").filter(|text| !text.is_empty());
                    let calls = data.get("tool_calls").and_then(Json::as_array).cloned().unwrap_or_default();
                    let about = &mut self.state.threads[thread];
                    about.names = names(&data).collect();
                    about.last_usage = Some(usage);
                    if data.get("cut").is_none() {
                        about.asked = None;
                    }
                    if tap == Tap::Model {
                        let text = said.map(|text| json!({ "type": "text", "text": text }));
                        let call = |call: Json| json!({ "type": "tool_call", "id": call["id"], "name": call["name"], "input": call["input"] });
                        about.said("assistant", text.into_iter().chain(calls.into_iter().map(call)).collect());
                    } else if let Some(said) = said {
                        about.heard("assistant", json!(said));
                    }
                    put(&mut data, "iteration", json!(about.iteration));
                }
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
                self.troubled(|on| matches!(on, On::Subagent), thread, "a sub-agent begins", false);
            }
            "agent.exit" => {
                let about = &mut self.state.threads[thread];
                about.ended = true;
                about.conversation = Conversation::default();
                let parent = about.parent.clone().unwrap_or_else(|| "main".into());
                // A step out of its last turn ends in the one that it was for.
                match &mut self.plan {
                    Plan::Iteration(key) | Plan::Finish(key) if *key == about.key => *key = parent,
                    _ => {}
                }
                self.out.push(Effect::Event("thread", json!({ "reason": "exited", "threadId": thread + 1 })));
                for waiting in self.inject.iter_mut().filter(|waiting| waiting.thread == thread) {
                    waiting.thread = 0;
                }
            }
            // What fails beside the loop, or was ended by the debugger, is no trouble of the agent's.
            "model.error" if is_aside(&data) || text("by").as_deref() == Some("debugger") => {}
            "model.error" | "error" => {
                let said = text("message").unwrap_or_else(|| "an error".into());
                let status = data.get("status").and_then(Json::as_u64);
                let said = status.map_or(said.clone(), |status| format!("{status}: {said}"));
                let caught = self.catches("error");
                self.troubled(|on| matches!(on, On::Error), thread, &said, caught);
            }
            "tool.denied" => {
                let said = format!("{} was not let run", text("name").unwrap_or_else(|| "a tool".into()));
                let caught = self.catches("denied");
                if span.is_some() {
                    self.state.threads[thread].calls.retain(|call| call.0 != span);
                }
                self.troubled(|on| matches!(on, On::Denied), thread, &said, caught);
            }
            // What differs once differs in all that follows.
            "rerun.diverged" if !self.state.threads[thread].diverged => {
                self.state.threads[thread].diverged = true;
                let part =
                    |name| text(name).map_or_else(|| "nothing".into(), |text| json!(cut(&text, 200).0).to_string());
                let said = format!(
                    "another question than the one recorded: {} was {} and is {}; `continue` answers as recorded",
                    text("what").unwrap_or_default(),
                    part("recorded"),
                    part("now")
                );
                self.troubled(|_| false, thread, &said, true);
            }
            _ => {}
        }
        if let Some(span) = span {
            put(&mut data, "id", json!(span));
        }
        self.record(&kind, Some(thread), data);
    }

    /// Something went wrong where nothing can be held: the next gate is where it stops, if somebody wants that.
    fn troubled(&mut self, wanted: impl Fn(&On) -> bool, thread: usize, text: &str, caught: bool) {
        let mut ids = Vec::new();
        for one in self.breaks.iter_mut().filter(|one| wanted(&one.on)) {
            let value = |path: &Path| self.state.value(path, thread, None);
            if one.condition.as_ref().is_some_and(|condition| !condition.holds(value)) {
                continue;
            }
            one.hits += 1;
            if one.hits >= one.from {
                ids.push(one.id);
            }
        }
        if caught || !ids.is_empty() {
            ids.extend(self.trouble.take().into_iter().flat_map(|(_, before)| before));
            ids.sort_unstable();
            ids.dedup();
            self.trouble = Some((text.into(), ids));
        }
    }
}

/// Told of a question beside the loop.
fn is_aside(data: &Json) -> bool {
    data.get("aside").and_then(Json::as_bool) == Some(true)
}

/// What the model calls the tools of its answer, by the ids of its calls.
fn names(data: &Json) -> impl Iterator<Item = (String, String)> {
    let calls = data.get("tool_calls").and_then(Json::as_array).into_iter().flatten();
    calls.filter_map(|call| Some((call["id"].as_str()?.to_string(), call["name"].as_str()?.to_string())))
}

fn put(data: &mut Json, name: &str, value: Json) {
    if !data.is_object() {
        *data = Json::Object(Map::new());
    }
    data[name] = value;
}
