//! Hooks of Copilot's command line, as its documentation has them. They name their event only where they were told to
//! speak as Claude Code does; else it shows in what they say, or is the word after `bugeye hook copilot`.

use serde_json::{Map, Value as Json, json};

use super::{Asked, Heard, asks, claude, injected, member, message, note, only, plain, question, text, words};
use crate::agent::gate::{Point, Powers, Verdict};

const HELD: Powers = Powers { hold: true, ..Powers::NONE };

/// Their own names begin small, those of Claude's form do not.
fn event(input: &Json) -> &str {
    if let Some(name) = text(input, "hook_event_name") {
        return name;
    }
    let has = |name: &str| input.get(name).is_some();
    if has("toolResult") {
        "postToolUse"
    } else if has("toolName") && has("error") {
        "postToolUseFailure"
    } else if has("toolName") {
        "preToolUse"
    } else if has("prompt") {
        "userPromptSubmitted"
    } else if has("stopReason") {
        "agentStop"
    } else if has("source") {
        "sessionStart"
    } else if has("reason") {
        "sessionEnd"
    } else {
        ""
    }
}

/// The command line tells them as a text, the SDK as they are.
fn arguments(input: &Json) -> Json {
    let told = member(input, "toolArgs");
    told.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(told)
}

pub fn read(input: &Json) -> Vec<Heard> {
    let on = || "main".to_string();
    let about = |kind: &str, names: &[&str]| note(kind, on(), None, only(input, names));
    let ask = |point, value, powers| {
        let mut ask = question(point, on(), value, powers);
        ask.name = words(input, "toolName");
        ask.span = words(input, "toolCallId");
        ask
    };
    match event(input) {
        "sessionStart" => {
            let mut known = only(input, &["cwd"]);
            known["agent"] = json!("copilot");
            known["session"] = member(input, "sessionId");
            vec![Heard::Attached(known), about("session.start", &["sessionId", "source", "cwd", "initialPrompt"])]
        }
        "sessionEnd" => vec![about("session.end", &["reason"])],
        "userPromptSubmitted" => {
            let said = json!({"text": member(input, "prompt"), "source": "user"});
            vec![note("input.user", on(), None, said), asks(ask(Point::BeforePrompt, member(input, "prompt"), HELD))]
        }
        "preToolUse" => {
            let powers = Powers { edit: true, deny: true, inject: true, ..HELD };
            vec![asks(ask(Point::BeforeTool, arguments(input), powers))]
        }
        "postToolUse" => {
            let powers = Powers { edit: true, inject: true, ..HELD };
            let result = member(input, "toolResult");
            let ok = text(&result, "resultType").is_none_or(|kind| kind == "success");
            let mut ask = ask(Point::AfterTool, result, powers);
            (ask.ok, ask.input) = (Some(ok), Some(arguments(input)));
            vec![asks(ask)]
        }
        "postToolUseFailure" => {
            let mut ask = ask(Point::AfterTool, member(input, "error"), Powers { inject: true, ..HELD });
            (ask.ok, ask.input) = (Some(false), Some(arguments(input)));
            vec![asks(ask)]
        }
        "agentStop" | "subagentStop" => {
            let powers = Powers { deny: true, inject: true, ..HELD };
            vec![asks(ask(Point::BeforeStop, member(input, "stopReason"), powers))]
        }
        "errorOccurred" => {
            let said = json!({"message": message(&member(input, "error"))});
            vec![note("model.error", on(), None, said)]
        }
        "preCompact" => vec![about("context.compact", &["trigger"])],
        name if name.starts_with(char::is_uppercase) => {
            let powers = |point: Point, failed: bool| match point {
                Point::BeforeTool => Powers { edit: true, deny: true, inject: true, ..HELD },
                Point::AfterTool => Powers { inject: !failed, ..HELD },
                Point::BeforeStop => Powers { deny: true, inject: true, ..HELD },
                Point::BeforePrompt | Point::BeforeModel => HELD,
            };
            claude::read_as("copilot", input, powers)
        }
        _ => Vec::new(),
    }
}

pub fn write(input: &Json, asked: &Asked) -> Json {
    if event(input).starts_with(char::is_uppercase) {
        return claude::write(input, asked);
    }
    let (ask, answer) = asked;
    let mut said = Map::new();
    match &answer.verdict {
        Verdict::Deny { reason } if ask.point == Point::BeforeTool => {
            said.insert("permissionDecision".into(), json!("deny"));
            said.insert("permissionDecisionReason".into(), json!(reason));
        }
        Verdict::Deny { reason } => claude::block(&mut said, reason),
        Verdict::Edit { value } if ask.point == Point::BeforeTool => {
            said.insert("modifiedArgs".into(), value.clone());
        }
        Verdict::Edit { value } => {
            let result = if value.is_object() {
                value.clone()
            } else {
                json!({"resultType": "success", "textResultForLlm": plain(value)})
            };
            said.insert("modifiedResult".into(), result);
        }
        _ => {}
    }
    let mut context = Map::new();
    claude::add_context(ask, injected(answer), &mut said, &mut context);
    said.extend(context);
    Json::Object(said)
}
