//! One thing that is told or asked more than once: by two taps, by a client that tries again, by several at once.

use super::*;

/// A call that failed and is put again is the same one: it is not counted, and stops nobody who has let it go.
#[test]
fn a_model_call_that_is_put_again_is_no_new_one() {
    let keyed = |key: &str| Ask { key: Some(key.into()), ..model() };
    let mut desk = Desk::with(&["model"]);
    let first = desk.ask_by(Tap::Model, keyed("k1"));
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    desk.serve("next", json!({ "threadId": 1 })).unwrap();
    assert_eq!(desk.answer(first), Some(&proceed()));
    let again = desk.ask_by(Tap::Model, keyed("k1"));
    assert_eq!(desk.stops(), Vec::<String>::new(), "neither breakpoint nor step takes it for a new one");
    assert_eq!(desk.answer(again), Some(&proceed()));
    assert_eq!(desk.broker.state.threads[0].iteration, 1);
    // It can be paused there, and trouble shows there.
    desk.serve("pause", json!({})).unwrap();
    let third = desk.ask_by(Tap::Model, keyed("k1"));
    assert_eq!(desk.stops(), ["pause 1"]);
    assert_eq!(desk.answer(third), None);
    desk.go();
    desk.ask_by(Tap::Model, keyed("k2"));
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    assert_eq!(desk.broker.state.threads[0].iteration, 2);
}

/// A title is asked for beside the loop: it costs, and belongs to no conversation.
#[test]
fn what_is_asked_beside_the_loop_is_not_the_conversation_s() {
    let mut desk = Desk::default();
    let usage = json!({ "input": 3, "output": 2 });
    desk.note("model.request", "main", json!({ "aside": true }));
    desk.note("model.response", "main", json!({ "aside": true, "text": "A title", "usage": usage }));
    let state = &desk.broker.state;
    assert_eq!((state.threads[0].iteration, state.total_tokens()), (0, 5));
    assert!(state.threads[0].conversation.messages.is_empty() && state.threads[0].last_usage.is_none());
    desk.note("model.response", "main", json!({ "text": "Hello", "usage": usage }));
    assert_eq!(desk.broker.state.threads[0].conversation.messages.len(), 1);
}

/// It is sent as it was changed, with what was put in; and an edit of one call is not another's.
#[test]
fn what_was_changed_is_changed_again_when_it_is_put_again() {
    let keyed = |key: &str| Ask { key: Some(key.into()), ..model() };
    let mut desk = Desk::with(&["model"]);
    let first = desk.ask_by(Tap::Model, keyed("a"));
    let second = desk.ask_by(Tap::Model, keyed("b"));
    desk.broker.set(&Path::parse("request.model").unwrap(), json!("other")).unwrap();
    desk.go();
    desk.broker.set(&Path::parse("request.model").unwrap(), json!("third")).unwrap();
    desk.broker.inject("user", "hm", "cli:1").unwrap();
    desk.go();
    let sent = desk.answer(second).unwrap().clone();
    assert_eq!(desk.answer(first).unwrap().verdict, Verdict::Edit { value: json!({ "model": "other" }) });
    assert_eq!((&sent.verdict, sent.inject.len()), (&Verdict::Edit { value: json!({ "model": "third" }) }, 1));
    let again = desk.ask_by(Tap::Model, keyed("b"));
    assert_eq!(desk.answer(again), Some(&sent));
    assert_eq!(desk.recorded("injected").len(), 1);
}

#[test]
fn the_same_question_of_several_at_once_is_answered_to_all() {
    let keyed = || Ask { key: Some("k".into()), ..model() };
    let mut desk = Desk::with(&["model"]);
    let ids = [desk.ask_by(Tap::Model, keyed()), desk.ask_by(Tap::Model, keyed()), desk.ask_by(Tap::Model, keyed())];
    desk.withdraw(ids[1]);
    desk.go();
    assert_eq!(ids.map(|id| desk.answer(id).is_some()), [true, false, true]);
}

/// An agent may ask before its model calls, and make them through the model tap.
#[test]
fn a_model_call_that_two_taps_tell_of_counts_once() {
    let usage = json!({ "input": 3, "output": 2 });
    let said = json!({ "text": "hi", "usage": usage, "usd": 0.5 });
    let mut desk = Desk::with(&["model"]);
    for iteration in 1..3 {
        let own = desk.ask(model());
        desk.go();
        assert!(desk.answer(own).is_some());
        desk.broker.attached(Tap::Model, &json!({}));
        desk.broker.note(
            Tap::Model,
            Note { kind: "model.request".into(), thread: "main".into(), span: None, data: json!({}) },
        );
        let seen = desk.ask_by(Tap::Model, Ask { key: Some(iteration.to_string()), ..model() });
        assert_eq!(desk.answer(seen), Some(&proceed()), "it was let go before");
        desk.broker.note(
            Tap::Model,
            Note { kind: "model.response".into(), thread: "main".into(), span: None, data: said.clone() },
        );
        desk.note("model.response", "main", said.clone());
        assert_eq!(desk.broker.state.threads[0].iteration, iteration);
        assert_eq!(desk.recorded("model.request").last().unwrap()["iteration"], iteration);
    }
    assert_eq!((desk.broker.state.total_tokens(), desk.broker.state.cost), (10, Some(1.0)));
}

/// What is told of counts where its condition holds, and if it is trouble of the loop.
#[test]
fn trouble_that_is_told_has_conditions_too() {
    let mut desk = Desk::with(&["error if iteration > 1", "denied"]);
    desk.note("model.error", "main", json!({ "message": "overloaded" }));
    desk.ask(model());
    desk.note("model.error", "main", json!({ "message": "no title", "aside": true }));
    desk.note("model.error", "main", json!({ "message": "ended", "by": "debugger" }));
    desk.ask(model());
    assert_eq!(desk.stops(), Vec::<String>::new());
    desk.note("model.error", "main", json!({ "message": "overloaded" }));
    desk.note("tool.denied", "main", json!({ "name": "bash" }));
    desk.ask(model());
    let ids = desk.events.iter().find(|(event, _)| *event == "stopped").unwrap().1["hitBreakpointIds"].clone();
    assert_eq!(ids, json!([1, 2]), "neither is lost");
}

/// A stop that nobody is told of, as at a breakpoint that only logs, ends no step and no pause.
#[test]
fn who_passes_a_breakpoint_goes_on_as_before() {
    let pass = |desk: &mut Desk| desk.serve("continue", json!({ "threadId": 1, "silent": true })).unwrap();
    let mut desk = Desk::with(&["tool:bash", "model", "prompt"]);
    desk.ask(blank(Point::BeforePrompt));
    desk.serve("next", json!({ "threadId": 1 })).unwrap();
    desk.stops();
    // The step ends where the breakpoint is passed.
    desk.ask(model());
    pass(&mut desk);
    assert_eq!(desk.stops(), ["function breakpoint 1", "step 1"]);
    desk.serve("next", json!({ "threadId": 1 })).unwrap();
    desk.ask(tool("bash", "c1"));
    pass(&mut desk);
    desk.ask(model());
    pass(&mut desk);
    assert_eq!(desk.stops(), ["function breakpoint 1", "function breakpoint 1", "step 1"]);
    // A pause that comes meanwhile holds.
    desk.go();
    desk.ask(tool("bash", "c2"));
    desk.serve("pause", json!({})).unwrap();
    pass(&mut desk);
    assert_eq!(desk.stops(), ["function breakpoint 1", "pause 1"]);
    desk.go();
    let last = desk.ask(tool("other", "c3"));
    assert!(desk.answer(last).is_some(), "what was interrupted is over with the next command");
}

/// Hooks may have another name for a tool than the model that called it.
#[test]
fn a_tool_is_held_by_either_of_its_names() {
    let mut desk = Desk::with(&["tool:exec_command"]);
    desk.ask_by(Tap::Model, model());
    let call = json!({ "id": "c1", "name": "exec_command", "input": {} });
    let said = Note {
        kind: "model.response".into(),
        thread: "main".into(),
        span: None,
        data: json!({ "text": "I look.", "tool_calls": [call] }),
    };
    desk.broker.note(Tap::Model, said);
    desk.ask_by(Tap::Hook, tool("Bash", "c1"));
    assert_eq!(desk.stops(), ["function breakpoint 1"]);
    assert_eq!(desk.value("last_message.content[0].text"), "\"I look.\"");
    assert_eq!(desk.value("last_message.content[1].name"), "\"exec_command\"");
}
