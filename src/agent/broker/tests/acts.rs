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

#[test]
fn a_message_goes_into_the_conversation_that_is_shown() {
    let mut desk = Desk::with(&["tool:bash"]);
    desk.note("agent.spawn", "sub", json!({ "type": "helper" }));
    desk.ask(of("sub", tool("bash", "c1")));
    let no = Powers { inject: false, ..Powers::ALL };
    desk.broker.inject("user", "for the sub-agent", "cli:1").unwrap();
    let main = desk.ask(Ask { powers: no, ..tool("other", "c2") });
    desk.go();
    assert_eq!(desk.answers[0].1.inject[0].text, "[debugger] for the sub-agent");
    assert!(desk.answer(main).unwrap().inject.is_empty());
    // Where nobody is held it is for the agent itself; what was for one that has ended is too.
    desk.ask(of("sub", tool("bash", "c3")));
    desk.broker.inject("user", "late", "cli:1").unwrap();
    desk.note("agent.exit", "sub", json!({}));
    desk.broker.cancel(None, "no", false).unwrap();
    desk.go();
    desk.broker.inject("user", "for all", "cli:1").unwrap();
    let other = desk.ask(of("another", model()));
    assert!(desk.answer(other).unwrap().inject.is_empty());
    let own = desk.ask(model());
    let texts: Vec<&str> = desk.answer(own).unwrap().inject.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(texts, ["[debugger] late", "[debugger] for all"]);
}

#[test]
fn the_files_that_tools_were_given_are_remembered() {
    let mut desk = Desk::default();
    for name in ["a.rs", "b.rs", "a.rs"] {
        desk.ask(Ask { value: json!({ "file_path": name }), ..tool("edit", name) });
    }
    assert_eq!(desk.serve("bugeye/inspect", json!({})).unwrap()["files"], json!(["b.rs", "a.rs"]));
}

#[test]
fn hooks_speak_for_the_user_alone() {
    let mut desk = Desk::default();
    desk.broker.inject("assistant", "I was wrong", "cli:1").unwrap();
    let hook = desk.ask_by(Tap::Hook, tool("bash", "c1"));
    assert!(desk.answer(hook).unwrap().inject.is_empty());
    let asked = desk.ask_by(Tap::Model, model());
    assert_eq!(desk.answer(asked).unwrap().inject[0].role, "assistant");
}

/// An agent that says it can do everything is not asked for what it would not do there.
#[test]
fn what_means_nothing_at_a_gate_is_refused_there() {
    let mut desk = Desk::with(&["after:bash", "model", "stop", "tool:bash"]);
    for (ask, cancels, answers) in [
        (after("bash", "c0", true), false, false),
        (model(), false, true),
        (blank(Point::BeforeStop), false, false),
        (tool("bash", "c1"), true, true),
    ] {
        let point = ask.point;
        desk.ask(ask);
        assert_eq!(desk.broker.cancel(None, "no", false).is_ok(), cancels, "{point:?}");
        assert_eq!(desk.broker.synthesize(json!("x")).is_ok(), answers, "{point:?}");
        desk.go();
    }
}

#[test]
fn a_text_stays_a_text_and_a_tool_that_never_ran_is_not_under_way() {
    let mut desk = Desk::with(&["tool:bash", "model"]);
    let held = desk.ask(tool("bash", "c1"));
    for (typed, wanted) in
        [("true", "true"), ("1.50", "1.50"), ("'my prog' -x 'y'", "'my prog' -x 'y'"), ("'ls -l'", "ls -l")]
    {
        desk.serve("setExpression", json!({ "expression": "tool_input.command", "value": typed })).unwrap();
        assert_eq!(desk.value("tool_input.command"), json!(wanted).to_string());
    }
    let new = desk.serve("setExpression", json!({ "expression": "tool_input.comand", "value": "x" })).unwrap_err();
    assert!(new.contains("there is no `comand`; there are: command"), "{new}");
    desk.withdraw(held);
    assert!(desk.broker.state.threads[0].calls.is_empty());
    desk.ask(model());
    desk.serve("setExpression", json!({ "expression": "model", "value": "m-2" })).unwrap();
    assert_eq!(desk.value("model"), "\"m-2\"");
}

/// Whoever looks again and again does not fill the memory.
#[test]
fn values_that_were_shown_are_forgotten_in_time() {
    let mut desk = Desk::with(&["tool:bash"]);
    let long = json!({ "command": "x".repeat(1 << 20) });
    desk.ask(Ask { value: long, ..tool("bash", "c1") });
    let ask = json!({ "expression": "tool_input" });
    let first = desk.serve("evaluate", ask.clone()).unwrap()["variablesReference"].clone();
    let mut last = Json::Null;
    for _ in 0..100 {
        last = desk.serve("evaluate", ask.clone()).unwrap()["variablesReference"].clone();
    }
    assert!(desk.serve("variables", json!({ "variablesReference": last })).is_ok());
    assert!(desk.serve("variables", json!({ "variablesReference": first })).unwrap_err().contains("ask for it again"));
}

#[test]
fn a_breakpoint_on_cost_that_can_never_stop_it_says_so_once() {
    let said =
        |desk: &Desk| desk.recorded("log").iter().filter(|log| log["message"].to_string().contains("costs")).count();
    let answered = |usd: Json| json!({ "usage": { "input": 10 }, "model": "house", "usd": usd });
    let set = |desk: &mut Desk| {
        let asked = json!({ "breakpoints": [{ "name": "cost:5" }, { "name": "tokens:9999" }] });
        desk.serve("setFunctionBreakpoints", asked).unwrap()["breakpoints"].clone()
    };
    // Nobody has asked, or it is known.
    let mut desk = Desk::default();
    desk.note("model.response", "main", answered(Json::Null));
    assert_eq!(said(&desk), 0);
    let told = set(&mut desk);
    assert!(told[0]["message"].as_str().unwrap().starts_with("nothing tells what house costs"), "{told}");
    assert!(told[1]["message"].is_null(), "{told}");
    desk.note("model.response", "main", answered(Json::Null));
    assert_eq!(said(&desk), 0, "it was said where it was set");
    let mut desk = Desk::default();
    assert!(set(&mut desk)[0]["message"].is_null(), "no model is known yet");
    desk.note("model.response", "main", answered(json!(0.5)));
    assert_eq!(said(&desk), 0);
    desk.note("model.response", "main", answered(Json::Null));
    desk.note("model.response", "main", answered(Json::Null));
    assert_eq!(said(&desk), 1);
}
