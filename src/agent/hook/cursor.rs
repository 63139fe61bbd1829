//! Cursor's hooks, as its documentation has them.

use serde_json::{Map, Value as Json, json};

use super::{Asked, Heard, asks, called, injected, member, note, only, plain, question, text, words};
use crate::agent::gate::{Point, Powers, Verdict};

const HELD: Powers = Powers { hold: true, ..Powers::NONE };

pub fn read(input: &Json) -> Vec<Heard> {
    let on = words(input, "subagent_id").unwrap_or_else(|| "main".into());
    let span = words(input, "tool_use_id").or_else(|| words(input, "tool_call_id"));
    let about = |kind: &str, names: &[&str]| note(kind, on.clone(), span.clone(), only(input, names));
    let named = |kind: &str, names: &[(&str, &str)]| note(kind, on.clone(), span.clone(), called(input, names));
    let ask = |point, value, powers| {
        let mut ask = question(point, on.clone(), value, powers);
        ask.span.clone_from(&span);
        ask.name = words(input, "tool_name");
        ask.ms = input.get("duration").and_then(Json::as_u64);
        ask
    };
    let followed = Powers { deny: true, inject: true, ..HELD };
    match text(input, "hook_event_name").unwrap_or_default() {
        "sessionStart" => {
            let mut known = only(input, &["model"]);
            known["agent"] = json!("cursor");
            known["version"] = member(input, "cursor_version");
            known["session"] = member(input, "conversation_id");
            let names = ["conversation_id", "session_id", "workspace_roots", "model"];
            vec![Heard::Attached(known), about("session.start", &names)]
        }
        "sessionEnd" => vec![about("session.end", &["reason"])],
        "beforeSubmitPrompt" => {
            let said = json!({"text": member(input, "prompt"), "source": "user"});
            let powers = Powers { deny: true, ..HELD };
            vec![
                note("input.user", on.clone(), None, said),
                asks(ask(Point::BeforePrompt, member(input, "prompt"), powers)),
            ]
        }
        "preToolUse" => {
            let powers = Powers { edit: true, deny: true, ..HELD };
            vec![asks(ask(Point::BeforeTool, member(input, "tool_input"), powers))]
        }
        event @ ("postToolUse" | "postToolUseFailure") => {
            let is_mcp = text(input, "tool_name").is_some_and(|name| name.starts_with("MCP"));
            let failed = event == "postToolUseFailure";
            let powers = Powers { edit: is_mcp && !failed, inject: !failed, ..HELD };
            let value = member(input, if failed { "error_message" } else { "tool_output" });
            let mut ask = ask(Point::AfterTool, value, powers);
            (ask.ok, ask.input) = (Some(!failed), input.get("tool_input").cloned());
            vec![asks(ask)]
        }
        "stop" => vec![asks(ask(Point::BeforeStop, member(input, "status"), followed))],
        "subagentStart" => vec![named("agent.spawn", &[("subagent_type", "type"), ("task", "prompt")])],
        "subagentStop" => vec![
            asks(ask(Point::BeforeStop, member(input, "result"), followed)),
            named("agent.exit", &[("subagent_type", "type"), ("status", "reason")]),
        ],
        "preCompact" => vec![about("context.compact", &["trigger"])],
        _ => Vec::new(),
    }
}

pub fn write(_input: &Json, (ask, answer): &Asked) -> Json {
    let mut said = Map::new();
    let mut say = |name: &str, value: Json| {
        said.insert(name.into(), value);
    };
    let message = injected(answer);
    match (&answer.verdict, ask.point) {
        (Verdict::Deny { reason }, Point::BeforeTool) => {
            say("permission", json!("deny"));
            say("user_message", json!(reason));
            say("agent_message", json!(reason));
        }
        (Verdict::Deny { reason }, Point::BeforePrompt) => {
            say("continue", json!(false));
            say("user_message", json!(reason));
        }
        (Verdict::Deny { reason }, Point::BeforeStop) => {
            let text = message.as_ref().map_or_else(|| reason.clone(), |message| format!("{reason}\n{message}"));
            say("followup_message", json!(text));
            return Json::Object(said);
        }
        (Verdict::Edit { value }, Point::BeforeTool) => {
            say("permission", json!("allow"));
            say("updated_input", value.clone());
        }
        (Verdict::Edit { value }, _) => say("updated_mcp_tool_output", json!(plain(value))),
        _ => {}
    }
    if let Some(message) = message {
        let name = if ask.point == Point::BeforeStop { "followup_message" } else { "additional_context" };
        say(name, json!(message));
    }
    Json::Object(said)
}
