//! Hooks of Copilot's command line. What they say does not name the event: it is the word after `bugeye hook copilot`. A
//! tool call has no id there.

use serde_json::{Map, Value as Json, json};

use super::{Asked, Heard, asks, called, claude, injected, member, message, note, only, plain, question, text, words};
use crate::agent::broker::MARK;
use crate::agent::gate::{Point, Powers, Verdict};

const HELD: Powers = Powers { hold: true, inject: true, ..Powers::NONE };

/// The events to register. Its `permissionRequest` comes whether anybody is asked or not; its `notification` only then.
pub const EVENTS: [&str; 11] = [
    "sessionStart",
    "userPromptSubmitted",
    "preToolUse",
    "postToolUse",
    "postToolUseFailure",
    "agentStop",
    "subagentStart",
    "subagentStop",
    "preCompact",
    "notification",
    "sessionEnd",
];

/// Where its model calls are tapped, what goes wrong with them is known already.
pub const ERRORS: &str = "errorOccurred";

pub fn read(input: &Json) -> Vec<Heard> {
    let on = words(input, "agentId").unwrap_or_else(|| "main".into());
    let about = |kind: &str, names: &[&str]| note(kind, on.clone(), None, only(input, names));
    let named = |kind: &str, names: &[(&str, &str)]| note(kind, on.clone(), None, called(input, names));
    let ask = |point, value, powers| question(point, on.clone(), value, powers);
    let tool = |point, value, powers| {
        let mut ask = ask(point, value, powers);
        ask.name = words(input, "toolName");
        ask
    };
    let ran = |value, ok, powers| {
        let mut ask = tool(Point::AfterTool, value, powers);
        (ask.ok, ask.input) = (Some(ok), input.get("toolArgs").cloned());
        asks(ask)
    };
    match text(input, "hook_event_name").unwrap_or_default() {
        "sessionStart" => {
            let mut known = only(input, &["cwd"]);
            known["agent"] = json!("copilot");
            known["session"] = member(input, "sessionId");
            let names = [("sessionId", "session_id"), ("source", "source"), ("cwd", "cwd")];
            vec![Heard::Attached(known), named("session.start", &names)]
        }
        "sessionEnd" => vec![about("session.end", &["reason"])],
        // A turn that goes on with a message of the debugger's comes here with that as its prompt.
        "userPromptSubmitted" if text(input, "prompt").is_some_and(|prompt| prompt.starts_with(MARK)) => Vec::new(),
        "userPromptSubmitted" => {
            let prompt = member(input, "prompt");
            let said = json!({"text": prompt, "source": "user"});
            let powers = Powers { edit: true, deny: true, abort: true, ..HELD };
            vec![note("input.user", on.clone(), None, said), asks(ask(Point::BeforePrompt, prompt, powers))]
        }
        "preToolUse" => {
            let powers = Powers { edit: true, deny: true, ..HELD };
            vec![asks(tool(Point::BeforeTool, member(input, "toolArgs"), powers))]
        }
        "postToolUse" => vec![ran(member(input, "toolResult"), true, Powers { edit: true, ..HELD })],
        "postToolUseFailure" => vec![ran(member(input, "error"), false, HELD)],
        // A sub-agent says so with the next event, and what it has to tell.
        "agentStop" if on != "main" => Vec::new(),
        "agentStop" => vec![asks(ask(Point::BeforeStop, Json::Null, HELD))],
        "subagentStart" => vec![named("agent.spawn", &[("agentType", "type")])],
        "subagentStop" => vec![
            asks(ask(Point::BeforeStop, member(input, "response"), HELD)),
            named("agent.exit", &[("agentType", "type"), ("response", "text")]),
        ],
        ERRORS => {
            let kind = if text(input, "errorContext") == Some("model_call") { "model.error" } else { "error" };
            vec![note(kind, on.clone(), None, json!({"message": message(&member(input, "error"))}))]
        }
        "preCompact" => vec![about("context.compact", &["trigger"])],
        // The one event that names itself.
        "Notification" if text(input, "notification_type") == Some("permission_prompt") => {
            vec![about("permission.request", &["message", "title"])]
        }
        "Notification" => vec![about("log", &["notification_type", "message", "title"])],
        _ => Vec::new(),
    }
}

pub fn write(_input: &Json, (ask, answer): &Asked) -> Json {
    let mut said = Map::new();
    match &answer.verdict {
        Verdict::Deny { reason } if ask.point == Point::BeforeTool => {
            said.insert("permissionDecision".into(), json!("deny"));
            said.insert("permissionDecisionReason".into(), json!(reason));
        }
        // Without its prompt the run is over.
        Verdict::Deny { reason } | Verdict::Abort { reason } => claude::block(&mut said, reason),
        Verdict::Edit { value } => {
            let (name, value) = match ask.point {
                Point::BeforePrompt => ("modifiedPrompt", json!(plain(value))),
                Point::AfterTool => ("modifiedResult", result(value)),
                _ => ("modifiedArgs", value.clone()),
            };
            said.insert(name.into(), value);
        }
        Verdict::Proceed | Verdict::Synthesize { .. } => {}
    }
    let mut context = Map::new();
    claude::add_context(ask, injected(answer), &mut said, &mut context);
    said.extend(context);
    Json::Object(said)
}

/// A result as a tool gives one; a text is what the model reads of it.
fn result(value: &Json) -> Json {
    match value {
        Json::Object(_) => value.clone(),
        other => json!({"resultType": "success", "textResultForLlm": plain(other)}),
    }
}
