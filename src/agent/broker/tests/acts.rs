//! What somebody does with what is held.

use super::*;

#[test]
fn messages_are_put_in_where_they_may_stand() {
    let mut desk = Desk::default();
    let told = desk.serve("bugeye/inject", json!({ "role": "user", "text": "be brief", "actor": "cli:1" })).unwrap();
    assert!(told["when"].as_str().unwrap().starts_with("at the next place"), "{told}");
    let no = Powers { inject: false, ..Powers::ALL };
    let first = desk.ask(Ask { powers: no, ..tool("bash", "c1") });
    assert!(desk.answer(first).unwrap().inject.is_empty());
    let second = desk.ask(Ask { aside: true, ..model() });
    assert!(desk.answer(second).unwrap().inject.is_empty(), "not into a question beside the loop");
    let third = desk.ask(model());
    let said = &desk.answer(third).unwrap().inject;
    assert_eq!((said[0].role.as_str(), said[0].text.as_str()), ("user", "[debugger] be brief"));
    let record = desk.recorded("injected")[0];
    assert_eq!((&record["actor"], &record["where"]), (&json!("cli:1"), &json!("before_model")));
    let fourth = desk.ask(model());
    assert!(desk.answer(fourth).unwrap().inject.is_empty(), "once");
    let said = desk.serve("bugeye/inject", json!({ "role": "system", "text": "x" })).unwrap_err();
    assert!(said.contains("user, assistant"), "{said}");
}

#[test]
fn a_message_waits_while_what_is_held_does_not_happen() {
    let mut desk = Desk::with(&["tool"]);
    let denied = desk.ask(tool("bash", "c1"));
    let told = desk.serve("bugeye/inject", json!({ "role": "user", "text": "x" })).unwrap();
    assert_eq!(told["when"], "when the agent goes on");
    desk.serve("bugeye/cancel", json!({ "reason": "no" })).unwrap();
    desk.go();
    assert!(desk.answer(denied).unwrap().inject.is_empty());
    let next = desk.ask(model());
    assert_eq!(desk.answer(next).unwrap().inject.len(), 1);
}

#[test]
fn what_is_held_can_be_changed_and_nothing_else() {
    let mut desk = Desk::with(&["tool", "after:bash", "prompt", "stop"]);
    let said = desk.broker.set(&Path::parse("tool_input").unwrap(), json!({})).unwrap_err();
    assert!(said.contains("bugeye pause"), "{said}");
    let id = desk.ask(tool("bash", "c1"));
    let said = desk.serve("setExpression", json!({ "expression": "tool_input.command", "value": "\"ls\"" })).unwrap();
    assert_eq!(said["value"], r#""ls""#);
    assert_eq!(desk.value("tool_input.command"), r#""ls""#, "it is seen at once");
    let said = desk.serve("setExpression", json!({ "expression": "prompt", "value": "x" })).unwrap_err();
    assert!(said.contains("tool_input can"), "{said}");
    desk.go();
    assert_eq!(desk.answer(id).unwrap().verdict, Verdict::Edit { value: json!({ "command": "ls" }) });
    assert_eq!(desk.recorded("edited")[0]["target"], "tool_input");
    let id = desk.ask(after("bash", "c1", true));
    desk.serve("setVariable", json!({ "name": "tool_output", "value": "nothing" })).unwrap();
    desk.go();
    assert_eq!(desk.answer(id).unwrap().verdict, Verdict::Edit { value: json!("nothing") });
    let id = desk.ask(Ask { value: json!("fix it"), ..blank(Point::BeforePrompt) });
    desk.serve("evaluate", json!({ "expression": "prompt = \"leave it\"", "context": "repl" })).unwrap();
    desk.go();
    assert_eq!(desk.answer(id).unwrap().verdict, Verdict::Edit { value: json!("leave it") });
    desk.ask(blank(Point::BeforeStop));
    assert!(desk.serve("setExpression", json!({ "expression": "last_message", "value": "x" })).is_err());
    desk.go();
    let id = desk.ask(Ask { powers: Powers { edit: false, ..Powers::ALL }, ..tool("bash", "c2") });
    let said = desk.serve("setExpression", json!({ "expression": "tool_input.command", "value": "x" })).unwrap_err();
    assert!(said.starts_with("unsupported: "), "{said}");
    desk.go();
    assert_eq!(desk.answer(id), Some(&proceed()));
}

#[test]
fn a_call_that_waits_is_cancelled_by_its_id_and_the_shown_one_stays() {
    let mut desk = Desk::with(&["tool"]);
    let ids = ["c1", "c2", "c3"].map(|span| desk.ask(tool("bash", span)));
    let told = desk.serve("bugeye/cancel", json!({ "id": "c2", "reason": "not that" })).unwrap();
    assert_eq!((&told["id"], &told["stays"]), (&json!("c2"), &json!(true)));
    let denied = Verdict::Deny { reason: "[debugger] not that".into() };
    assert_eq!(desk.answer(ids[1]).map(|answer| &answer.verdict), Some(&denied));
    assert!(desk.broker.is_stopped() && desk.answer(ids[0]).is_none(), "the shown one was not let go");
    assert_eq!(desk.value("tool_use_id"), r#""c1""#);
    let told = desk.serve("bugeye/cancel", json!({ "id": "c1" })).unwrap();
    assert_eq!(told["stays"], false);
    desk.go();
    assert!(matches!(desk.answer(ids[0]).unwrap().verdict, Verdict::Deny { .. }));
    assert_eq!(desk.value("tool_use_id"), r#""c3""#);
    assert!(desk.serve("bugeye/cancel", json!({ "id": "c9" })).unwrap_err().contains("no tool call c9"));
    desk.serve("bugeye/cancel", json!({ "whole": true, "reason": "enough" })).unwrap();
    desk.go();
    assert!(matches!(desk.answer(ids[2]).unwrap().verdict, Verdict::Abort { .. }));
    let denied: Vec<&Json> = desk.recorded("tool.denied");
    assert_eq!(denied.len(), 3);
    assert_eq!((&denied[2]["run"], &denied[2]["where"]), (&json!(true), &json!("before_tool")));
    assert!(desk.broker.state.threads[0].calls.is_empty(), "none of them runs");
    assert!(desk.serve("bugeye/cancel", json!({})).unwrap_err().contains("nothing is held"));
}

#[test]
fn what_an_agent_cant_do_is_said() {
    let mut desk = Desk::with(&["tool", "stop"]);
    desk.ask(Ask { powers: Powers { hold: true, ..Powers::NONE }, ..tool("bash", "c1") });
    for (command, arguments) in [
        ("bugeye/cancel", json!({})),
        ("bugeye/cancel", json!({ "whole": true })),
        ("bugeye/answer", json!({ "value": 1 })),
    ] {
        let said = desk.serve(command, arguments).unwrap_err();
        assert!(said.starts_with("unsupported: ") && said.contains("; "), "{command}: {said}");
    }
    assert!(desk.broker.is_stopped());
}

#[test]
fn a_tool_can_be_answered_for() {
    let mut desk = Desk::with(&["tool"]);
    let id = desk.ask(tool("bash", "c1"));
    desk.serve("bugeye/answer", json!({ "value": "42" })).unwrap();
    desk.go();
    assert_eq!(desk.answer(id).unwrap().verdict, Verdict::Synthesize { value: json!("42") });
    assert_eq!(desk.recorded("edited")[0]["target"], "tool_output");
}

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
