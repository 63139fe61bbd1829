//! Every order in which taps may speak and somebody may answer.

mod acts;
mod again;

use serde_json::{Value as Json, json};

use super::{Broker, Effect};
use crate::agent::gate::{Answer, Ask, Conversation, Note, Point, Powers, Tap, Verdict};
use crate::agent::path::Path;

/// A broker, and all that came of what it was fed.
#[derive(Default)]
struct Desk {
    broker: Broker,
    next: u64,
    answers: Vec<(u64, Answer)>,
    events: Vec<(&'static str, Json)>,
}

fn blank(point: Point) -> Ask {
    Ask { powers: Powers::ALL, ..Ask::new(point) }
}

fn tool(name: &str, span: &str) -> Ask {
    let value = json!({ "command": format!("run {span}") });
    Ask { name: Some(name.into()), span: Some(span.into()), value, ..blank(Point::BeforeTool) }
}

fn after(name: &str, span: &str, ok: bool) -> Ask {
    let input = Some(json!({ "command": "x" }));
    Ask { value: json!("out"), input, ok: Some(ok), ms: Some(3), point: Point::AfterTool, ..tool(name, span) }
}

fn model() -> Ask {
    let messages = vec![json!({ "role": "user", "content": "hi" })];
    let conversation = Conversation { model: Some("m-1".into()), messages, ..Conversation::default() };
    Ask { value: json!({ "model": "m-1" }), conversation: Some(conversation), ..blank(Point::BeforeModel) }
}

fn of(thread: &str, ask: Ask) -> Ask {
    Ask { thread: thread.into(), ..ask }
}

fn proceed() -> Answer {
    Answer::default()
}

impl Desk {
    /// With these breakpoints, each `place` or `place if condition` or `place @ hits`.
    fn with(places: &[&str]) -> Self {
        let mut desk = Self::default();
        desk.breaks(places);
        desk
    }

    #[track_caller]
    fn breaks(&mut self, places: &[&str]) {
        let each = |text: &&str| {
            let (text, hits) = text.split_once(" @ ").map_or((*text, None), |(text, hits)| (text, Some(hits)));
            let (name, condition) = text.split_once(" if ").map_or((text, None), |(name, rest)| (name, Some(rest)));
            json!({ "name": name, "condition": condition, "hitCondition": hits })
        };
        let breakpoints: Vec<Json> = places.iter().map(each).collect();
        let told = self.serve("setFunctionBreakpoints", json!({ "breakpoints": breakpoints })).unwrap();
        assert!(told["breakpoints"].as_array().unwrap().iter().all(|one| one["verified"] == true), "{told}");
    }

    #[expect(clippy::needless_pass_by_value, reason = "it is written where it is used")]
    fn serve(&mut self, command: &str, arguments: Json) -> Result<Json, String> {
        let result = self.broker.serve(command, &arguments).expect("a request that is served");
        self.take();
        result
    }

    fn take(&mut self) {
        for effect in self.broker.take_effects() {
            match effect {
                Effect::Answer(id, answer) => self.answers.push((id, answer)),
                Effect::Event(event, body) => self.events.push((event, body)),
            }
        }
    }

    fn ask(&mut self, ask: Ask) -> u64 {
        self.ask_by(Tap::Sdk, ask)
    }

    fn ask_by(&mut self, tap: Tap, ask: Ask) -> u64 {
        self.next += 1;
        self.broker.ask(self.next, tap, ask);
        self.take();
        self.next
    }

    fn note(&mut self, kind: &str, thread: &str, data: Json) {
        let note = Note { kind: kind.into(), thread: thread.into(), span: None, data };
        self.broker.note(Tap::Sdk, note);
        self.take();
    }

    fn withdraw(&mut self, id: u64) {
        self.broker.withdrawn(id);
        self.take();
    }

    fn answer(&self, id: u64) -> Option<&Answer> {
        let all: Vec<&Answer> =
            self.answers.iter().filter(|(known, _)| *known == id).map(|(_, answer)| answer).collect();
        assert!(all.len() < 2, "answered twice: {all:?}");
        all.first().copied()
    }

    /// Why and where it stopped since the last look, in order; `go` where it went on by itself.
    fn stops(&mut self) -> Vec<String> {
        let told = std::mem::take(&mut self.events);
        let each = |(event, body): (&str, Json)| match event {
            "stopped" => Some(format!("{} {}", body["reason"].as_str().unwrap(), body["threadId"])),
            "continued" => Some("go".into()),
            _ => None,
        };
        told.into_iter().filter_map(each).collect()
    }

    fn recorded(&self, kind: &str) -> Vec<&Json> {
        let records = self.events.iter().filter(|(event, _)| *event == "bugeye/record").map(|(_, body)| body);
        records.filter(|body| body["type"] == kind).map(|body| &body["data"]).collect()
    }

    /// The frames of a thread.
    fn stack(&mut self, thread: usize) -> Vec<String> {
        let stack = self.serve("stackTrace", json!({ "threadId": thread })).unwrap();
        let frames = stack["stackFrames"].as_array().unwrap().iter();
        frames.map(|frame| frame["name"].as_str().unwrap().to_string()).collect()
    }

    fn value(&mut self, expression: &str) -> String {
        let result = self.serve("evaluate", json!({ "expression": expression })).unwrap();
        result["result"].as_str().unwrap().to_string()
    }

    fn go(&mut self) {
        self.serve("continue", json!({ "threadId": 1 })).unwrap();
    }
}

/// `/clear`: the model's calls go by another session, and the conversation begins anew.
#[test]
fn an_agent_that_begins_anew_stays_the_same_thread() {
    let mut desk = Desk::with(&["tool:Bash"]);
    let begins = |desk: &mut Desk, session: &str, source: &str| {
        let data = json!({ "session_id": session, "source": source });
        let note = Note { kind: "session.start".into(), thread: "main".into(), span: None, data };
        desk.broker.note(Tap::Hook, note);
    };
    desk.broker.attached(Tap::Hook, &json!({ "agent": "claude" }));
    begins(&mut desk, "one", "startup");
    desk.ask_by(Tap::Model, model());
    assert_eq!(desk.broker.state.threads[0].conversation.messages.len(), 1);
    begins(&mut desk, "two", "clear");
    assert!(desk.broker.state.threads[0].conversation.messages.is_empty());
    desk.ask_by(Tap::Model, of("two", model()));
    assert_eq!(desk.broker.state.threads.len(), 1);
    assert_eq!((desk.broker.state.threads[0].iteration, desk.broker.state.threads[0].exact), (2, true));
    // One that it has started by a tool has no hooks of ours.
    desk.ask_by(Tap::Model, of("three", model()));
    assert_eq!(desk.broker.state.threads.len(), 2);
}

#[test]
fn what_nobody_waits_for_passes() {
    let mut desk = Desk::with(&["tool:write_file"]);
    for ask in
        [blank(Point::BeforePrompt), model(), tool("bash", "c1"), after("bash", "c1", true), blank(Point::BeforeStop)]
    {
        let id = desk.ask(ask);
        assert_eq!(desk.answer(id), Some(&proceed()));
    }
    assert!(desk.stops().is_empty());
}

#[test]
fn tools_that_are_called_at_once_are_shown_one_after_another() {
    let mut desk = Desk::with(&["tool"]);
    let ids = ["c1", "c2", "c3"].map(|span| desk.ask(tool("bash", span)));
    assert_eq!(desk.stops(), ["function breakpoint 1"], "one stop, however many wait");
    assert_eq!(desk.value("tool_use_id"), r#""c1""#);
    let locals = desk.serve("scopes", json!({ "frameId": 16 })).unwrap();
    let reference = locals["scopes"][0]["variablesReference"].clone();
    let locals = desk.serve("variables", json!({ "variablesReference": reference })).unwrap();
    let names: Vec<&Json> = locals["variables"].as_array().unwrap().iter().map(|local| &local["name"]).collect();
    assert!(names.contains(&&json!("waiting_too")), "{names:?}");
    desk.go();
    assert_eq!((desk.answer(ids[0]), desk.answer(ids[1])), (Some(&proceed()), None));
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    assert_eq!(desk.value("tool_use_id"), r#""c2""#);
    desk.go();
    desk.go();
    assert!(ids.iter().all(|id| desk.answer(*id).is_some()));
    assert!(!desk.broker.is_stopped());
}

#[test]
fn a_gate_that_waited_passes_if_nothing_stops_there() {
    let mut desk = Desk::with(&["tool:bash"]);
    let first = desk.ask(tool("bash", "c1"));
    let second = desk.ask(tool("read_file", "c2"));
    assert_eq!((desk.answer(first), desk.answer(second)), (None, None), "nothing passes while it is stopped");
    desk.go();
    assert!(desk.answer(first).is_some() && desk.answer(second).is_some());
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
}

#[test]
fn gates_of_several_threads_wait_behind_the_one_that_is_shown() {
    let mut desk = Desk::with(&["tool"]);
    desk.note("agent.spawn", "t1", json!({ "type": "explore", "parent": "main", "prompt": "look around" }));
    desk.ask(of("main", tool("bash", "c1")));
    desk.ask(of("t1", tool("read_file", "c2")));
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    let threads = desk.serve("threads", json!({})).unwrap();
    assert_eq!(threads["threads"], json!([{ "id": 1, "name": "main" }, { "id": 2, "name": "explore t1" }]));
    assert_eq!(desk.stack(1), ["before tool bash", "turn 0"]);
    assert_eq!(desk.stack(2), ["before tool read_file", "turn 0: look around", "started by main"], "each has its own");
    assert!(desk.stack(3).is_empty());
    desk.go();
    assert_eq!(desk.stops(), ["function breakpoint 2"], "then the other's");
    desk.go();
    desk.note("agent.exit", "t1", json!({}));
    let threads = desk.serve("threads", json!({})).unwrap();
    assert_eq!(threads["threads"].as_array().unwrap().len(), 1);
}

#[test]
fn the_one_that_is_shown_may_leave() {
    let mut desk = Desk::with(&["tool"]);
    let first = desk.ask(tool("bash", "c1"));
    let second = desk.ask(tool("bash", "c2"));
    desk.stops();
    desk.withdraw(first);
    assert_eq!(desk.stops(), ["go", "function breakpoint 1"], "the next one is judged, not let pass");
    assert_eq!((desk.answer(first), desk.answer(second)), (None, None));
    assert_eq!(desk.value("tool_use_id"), r#""c2""#);
    desk.withdraw(second);
    assert_eq!(desk.stops(), ["go"]);
    assert!(!desk.broker.is_stopped());
    desk.withdraw(99);
    assert!(desk.stops().is_empty());
}

#[test]
fn one_that_waits_may_leave_without_a_word() {
    let mut desk = Desk::with(&["tool"]);
    let first = desk.ask(tool("bash", "c1"));
    let second = desk.ask(tool("bash", "c2"));
    desk.withdraw(second);
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    desk.go();
    assert!(desk.answer(first).is_some() && desk.answer(second).is_none() && !desk.broker.is_stopped());
}

fn keyed(key: &str) -> Ask {
    Ask { key: Some(key.into()), ..model() }
}

#[test]
fn a_question_that_is_put_again_takes_the_first_ones_place() {
    let mut desk = Desk::with(&["model"]);
    let first = desk.ask_by(Tap::Model, keyed("k"));
    desk.withdraw(first);
    assert!(desk.broker.is_stopped(), "the agent's side gave up waiting and will come again");
    let again = desk.ask_by(Tap::Model, keyed("k"));
    assert_eq!(desk.stops(), ["function breakpoint 1"], "it is the same stop");
    assert_eq!(desk.value("iteration"), "1", "and the same call");
    desk.go();
    assert_eq!((desk.answer(first), desk.answer(again)), (None, Some(&proceed())));
}

#[test]
fn a_question_that_was_decided_meanwhile_is_answered_when_it_comes_again() {
    let mut desk = Desk::with(&["model"]);
    let first = desk.ask_by(Tap::Model, keyed("k"));
    desk.withdraw(first);
    desk.broker.set(&Path::parse("request.model").unwrap(), json!("other")).unwrap();
    desk.go();
    assert!(desk.answer(first).is_none());
    let again = desk.ask_by(Tap::Model, keyed("k"));
    let edited = Answer { verdict: Verdict::Edit { value: json!({ "model": "other" }) }, inject: Vec::new() };
    assert_eq!(desk.answer(again), Some(&edited));
    let third = desk.ask_by(Tap::Model, keyed("k"));
    assert_eq!(desk.answer(third), Some(&edited), "it has failed, and is put again");
    desk.note("model.response", "main", json!({ "text": "yes" }));
    let fourth = desk.ask_by(Tap::Model, keyed("k"));
    assert_eq!(desk.answer(fourth), None, "the same body once more is a call of its own");
    assert_eq!(desk.stops(), ["function breakpoint 1", "function breakpoint 1"]);
}

#[test]
fn a_tool_goes_by_the_model_s_name_before_the_answer_has_ended() {
    let mut desk = Desk::with(&["tool:exec_command"]);
    let data = json!({ "tool_calls": [{ "id": "c1", "name": "exec_command" }] });
    desk.broker.note(Tap::Model, Note { kind: "model.calls".into(), thread: "main".into(), span: None, data });
    assert!(desk.broker.take_effects().is_empty(), "it is no event");
    desk.ask_by(Tap::Hook, tool("Bash", "c1"));
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
}

#[test]
fn answers_that_nobody_fetches_are_not_kept_for_ever() {
    let mut desk = Desk::with(&["model"]);
    for number in 0..200 {
        let id = desk.ask_by(Tap::Model, keyed(&format!("k{number}")));
        desk.withdraw(id);
        desk.go();
    }
    assert_eq!(desk.broker.decided.len(), super::MAX_DECIDED);
}

#[test]
fn a_step_goes_to_the_next_model_call_of_its_thread() {
    let mut desk = Desk::with(&["iteration:1"]);
    desk.ask(model());
    desk.serve("next", json!({ "threadId": 1 })).unwrap();
    desk.ask(tool("bash", "c1"));
    desk.ask(after("bash", "c1", true));
    desk.ask(of("t1", model()));
    assert_eq!(desk.stops(), ["function breakpoint 1", "function breakpoint 2"], "another's first call has its own");
    desk.serve("next", json!({ "threadId": 1 })).unwrap();
    desk.ask(of("t1", model()));
    assert!(desk.stops().is_empty(), "another's call is not this one's");
    desk.ask(model());
    assert_eq!(desk.stops(), ["step 1"]);
    desk.serve("stepIn", json!({ "threadId": 1 })).unwrap();
    desk.ask(blank(Point::BeforeStop));
    assert_eq!(desk.stops(), ["step 1"], "or to the end of its turn");
}

#[test]
fn finish_goes_to_the_end_of_the_turn_and_a_step_beyond_a_sub_agent_to_its_parent() {
    let mut desk = Desk::with(&["tool:bash"]);
    desk.ask(tool("bash", "c1"));
    desk.serve("stepOut", json!({ "threadId": 1 })).unwrap();
    desk.ask(model());
    desk.ask(model());
    desk.ask(blank(Point::BeforeStop));
    assert_eq!(desk.stops(), ["function breakpoint 1", "step 1"]);
    desk.go();
    desk.note("agent.spawn", "t1", json!({ "parent": "main" }));
    desk.ask(of("t1", tool("bash", "c2")));
    desk.serve("next", json!({ "threadId": 2 })).unwrap();
    desk.note("agent.exit", "t1", json!({}));
    desk.ask(model());
    assert_eq!(desk.stops(), ["function breakpoint 2", "step 1"]);
}

#[test]
fn a_breakpoint_on_the_way_ends_a_step() {
    let mut desk = Desk::with(&["tool"]);
    desk.ask(tool("bash", "c1"));
    desk.serve("next", json!({ "threadId": 1 })).unwrap();
    desk.ask(tool("bash", "c2"));
    desk.go();
    desk.ask(model());
    assert_eq!(desk.stops(), ["function breakpoint 1", "function breakpoint 1"], "the step is over with it");
}

#[test]
fn a_pause_takes_hold_at_the_next_gate_that_can_be_held() {
    let mut desk = Desk::default();
    desk.serve("pause", json!({ "threadId": 1 })).unwrap();
    let aside = desk.ask(Ask { aside: true, ..model() });
    let told = desk.ask(Ask { powers: Powers::NONE, ..tool("bash", "c1") });
    assert!(desk.answer(aside).is_some() && desk.answer(told).is_some());
    let held = desk.ask(after("bash", "c1", true));
    assert_eq!((desk.stops(), desk.answer(held)), (vec!["pause 1".to_string()], None));
    desk.serve("pause", json!({ "threadId": 1 })).unwrap();
    desk.go();
    desk.ask(model());
    assert!(desk.stops().is_empty(), "a pause while it is stopped is none for later");
}

#[test]
fn limits_of_cost_and_tokens_stop_once() {
    let mut desk = Desk::with(&["cost:0.5", "tokens:100"]);
    let spend = |desk: &mut Desk, input: u64, usd: f64| {
        desk.note(
            "model.response",
            "main",
            json!({ "text": "t", "usage": { "input": input, "output": 1 }, "usd": usd }),
        );
    };
    spend(&mut desk, 50, 0.1);
    desk.ask(tool("bash", "c1"));
    assert!(desk.stops().is_empty());
    spend(&mut desk, 60, 0.1);
    desk.ask(tool("bash", "c2"));
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    assert_eq!(desk.value("usage.tokens"), "112");
    desk.go();
    spend(&mut desk, 1, 0.1);
    desk.ask(tool("bash", "c3"));
    assert!(desk.stops().is_empty(), "it has been said");
    spend(&mut desk, 1, 0.3);
    desk.ask(model());
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    assert_eq!(desk.value("cost").parse::<f64>().map(|usd| (usd * 10.0).round()), Ok(6.0));
    desk.go();
    desk.ask(model());
    assert!(desk.stops().is_empty());
}

#[test]
fn conditions_and_counts_are_judged_together() {
    let mut desk = Desk::with(&["tool if tool_input.command =~ c2", "tool:bash @ >= 3"]);
    let hit = |desk: &mut Desk, span: &str| {
        desk.ask(tool("bash", span));
        let ids =
            desk.events.iter().find(|(event, _)| *event == "stopped").map(|(_, body)| body["hitBreakpointIds"].clone());
        desk.stops();
        desk.go();
        ids
    };
    assert_eq!(hit(&mut desk, "c1"), None);
    assert_eq!(hit(&mut desk, "c2"), Some(json!([1])));
    assert_eq!(hit(&mut desk, "c3"), Some(json!([2])), "the third pass");
    assert_eq!(hit(&mut desk, "c4"), Some(json!([2])), "and every later one");
    assert_eq!(hit(&mut desk, "c2"), Some(json!([1, 2])));
    // Set again, one that was there keeps its count.
    desk.breaks(&["tool:bash @ >= 7"]);
    assert_eq!(hit(&mut desk, "c1"), None);
    assert_eq!(hit(&mut desk, "c1"), Some(json!([2])));
    desk.breaks(&[]);
    assert_eq!(hit(&mut desk, "c1"), None, "removed");
}

#[test]
fn what_can_not_be_a_condition_is_said_when_it_is_set() {
    let mut desk = Desk::default();
    let told = desk
        .serve(
            "setFunctionBreakpoints",
            json!({ "breakpoints": [{ "name": "tool", "condition": "(" }, { "name": "fly:1" }] }),
        )
        .unwrap();
    for one in told["breakpoints"].as_array().unwrap() {
        assert!(one["verified"] == false && !one["message"].as_str().unwrap().is_empty(), "{one}");
    }
    let told = desk.serve("setBreakpoints", json!({ "breakpoints": [{ "line": 3 }] })).unwrap();
    assert_eq!(told["breakpoints"][0]["verified"], false);
}

#[test]
fn trouble_that_can_not_be_held_stops_at_the_next_gate() {
    let mut desk = Desk::with(&["error", "subagent"]);
    desk.note("model.error", "main", json!({ "message": "overloaded", "status": 529 }));
    assert!(desk.stops().is_empty());
    desk.ask(model());
    assert_eq!(desk.recorded("log")[0]["message"], "529: overloaded");
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    desk.go();
    desk.ask(after("bash", "c1", false));
    assert_eq!(desk.stops(), ["function breakpoint 1"], "a tool that failed can be held right there");
    desk.go();
    desk.note("agent.spawn", "t1", json!({ "type": "task" }));
    desk.ask(of("t1", model()));
    assert_eq!(desk.stops(), ["function breakpoint 2"]);
    desk.go();
    desk.breaks(&[]);
    desk.serve("setExceptionBreakpoints", json!({ "filters": ["error", "denied"] })).unwrap();
    desk.note("tool.denied", "main", json!({ "name": "rm" }));
    desk.ask(model());
    assert_eq!(desk.stops(), ["exception 1"]);
    desk.go();
    desk.ask(after("bash", "c2", false));
    assert_eq!(desk.stops(), ["exception 1"]);
}

#[test]
fn an_agent_that_is_let_go_is_held_no_more() {
    let mut desk = Desk::with(&["tool"]);
    let ids = ["c1", "c2"].map(|span| desk.ask(tool("bash", span)));
    desk.broker.leave();
    desk.take();
    assert!(ids.iter().all(|id| desk.answer(*id) == Some(&proceed())), "all that waited go on");
    let later = desk.ask(tool("bash", "c3"));
    assert_eq!(desk.answer(later), Some(&proceed()));
    assert!(desk.broker.is_open() && !desk.broker.is_stopped());
}

#[test]
fn an_agent_that_is_not_to_be_without_a_debugger_is_refused() {
    let mut desk = Desk::with(&["tool"]);
    let held = desk.ask(tool("bash", "c1"));
    desk.broker.shut();
    desk.broker.leave();
    desk.take();
    let later = desk.ask(tool("bash", "c2"));
    for id in [held, later] {
        assert!(matches!(desk.answer(id).unwrap().verdict, Verdict::Deny { .. }));
    }
    let told = [model(), after("bash", "c3", true), Ask { powers: Powers::NONE, ..tool("bash", "c4") }];
    for ask in told {
        let id = desk.ask(ask);
        assert_eq!(desk.answer(id), Some(&proceed()));
    }
}

#[test]
fn an_agent_that_ends_while_it_is_held_has_ended() {
    let mut desk = Desk::with(&["tool"]);
    desk.ask(tool("bash", "c1"));
    desk.broker.ended(3);
    desk.take();
    let told: Vec<&str> =
        desk.events.iter().map(|(event, _)| *event).filter(|event| *event != "bugeye/record").collect();
    assert_eq!(told, ["stopped", "exited", "terminated"]);
    assert!(!desk.broker.is_stopped());
}

#[test]
fn a_hook_before_the_model_leaves_it_to_the_tap_that_sees_more() {
    let mut desk = Desk::with(&["model"]);
    desk.broker.attached(Tap::Model, &json!({}));
    let mut held = 0;
    for _ in 0..3 {
        let hook = desk.ask_by(Tap::Hook, model());
        held += usize::from(desk.answer(hook).is_none());
        if desk.broker.is_stopped() {
            desk.go();
        }
        desk.ask_by(Tap::Model, keyed("k"));
        if desk.broker.is_stopped() {
            desk.go();
        }
        desk.ask(tool("bash", "c"));
    }
    assert!(held <= 1, "held twice for one call: {held}");
}

#[test]
fn what_an_agent_makes_up_is_bounded() {
    let mut desk = Desk::default();
    for number in 0..3000 {
        desk.note("note", &format!("{number}{}", "x".repeat(1000)), json!({}));
        desk.note("tool.call", "main", json!({ "name": "bash", "input": {} }));
        desk.events.clear();
    }
    assert_eq!(desk.broker.state.threads.len(), 1000);
    assert!(desk.broker.state.threads.iter().all(|thread| thread.key.len() <= 200 && thread.calls.len() <= 1000));
}
