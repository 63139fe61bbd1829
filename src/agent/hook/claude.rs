//! Claude Code's hooks; others speak nearly the same, and use what is here.

use serde_json::{Map, Value as Json, json};

use super::{Asked, Heard, asks, called, injected, member, note, only, plain, question, text, thread, words};
use crate::agent::gate::{Ask, Point, Powers, Verdict};

const HELD: Powers = Powers { hold: true, abort: true, inject: true, ..Powers::NONE };

/// The events to register: these can hold, or say what is to be recorded.
pub const EVENTS: [&str; 15] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PermissionRequest",
    "PermissionDenied",
    "Notification",
    "SessionEnd",
];

pub fn read(input: &Json) -> Vec<Heard> {
    let powers = |point: Point, failed: bool| match point {
        Point::BeforeTool => Powers { edit: true, deny: true, ..HELD },
        Point::AfterTool if failed => HELD,
        Point::AfterTool => Powers { edit: true, ..HELD },
        Point::BeforePrompt | Point::BeforeStop => Powers { deny: true, ..HELD },
        Point::BeforeModel => HELD,
    };
    read_as("claude", input, powers)
}

/// `powers` says what this agent's contract allows at a point; its second argument, whether the tool failed.
pub fn read_as(agent: &str, input: &Json, powers: impl Fn(Point, bool) -> Powers) -> Vec<Heard> {
    let on = thread(input);
    let span = words(input, "tool_use_id");
    let about = |kind: &str, names: &[&str]| note(kind, on.clone(), span.clone(), only(input, names));
    let named = |kind: &str, names: &[(&str, &str)]| note(kind, on.clone(), span.clone(), called(input, names));
    let ask = |point, value| question(point, on.clone(), value, powers(point, false));
    match text(input, "hook_event_name").unwrap_or_default() {
        "SessionStart" => {
            let mut known = only(input, &["model", "cwd"]);
            known["agent"] = json!(agent);
            known["session"] = member(input, "session_id");
            vec![
                Heard::Attached(known),
                about("session.start", &["session_id", "source", "model", "cwd", "transcript_path"]),
            ]
        }
        "SessionEnd" => vec![about("session.end", &["reason"])],
        "UserPromptSubmit" => {
            let said = json!({"text": member(input, "prompt"), "source": "user"});
            vec![
                note("input.user", on.clone(), None, said),
                asks(ask(Point::BeforePrompt, member(input, "prompt"))),
                asks(ask(Point::BeforeModel, Json::Null)),
            ]
        }
        "PreToolUse" => vec![asks(tool(input, ask(Point::BeforeTool, member(input, "tool_input"))))],
        "PostToolUse" => {
            let mut done = tool(input, ask(Point::AfterTool, member(input, "tool_response")));
            (done.ok, done.input) = (Some(true), input.get("tool_input").cloned());
            vec![asks(done)]
        }
        "PostToolUseFailure" => {
            let mut done = tool(input, ask(Point::AfterTool, member(input, "error")));
            (done.ok, done.input) = (Some(false), input.get("tool_input").cloned());
            done.powers = powers(Point::AfterTool, true);
            vec![asks(done)]
        }
        "PostToolBatch" => vec![asks(ask(Point::BeforeModel, Json::Null))],
        "Stop" => vec![asks(ask(Point::BeforeStop, member(input, "last_assistant_message")))],
        "SubagentStart" => vec![named("agent.spawn", &[("agent_type", "type")])],
        "SubagentStop" => vec![
            asks(ask(Point::BeforeStop, member(input, "last_assistant_message"))),
            named("agent.exit", &[("agent_type", "type"), ("last_assistant_message", "text")]),
        ],
        "PreCompact" | "PostCompact" => {
            vec![about("context.compact", &["hook_event_name", "trigger", "custom_instructions", "compact_summary"])]
        }
        "PermissionRequest" => {
            let names = [("tool_name", "name"), ("tool_input", "input"), ("permission_suggestions", "options")];
            vec![named("permission.request", &names)]
        }
        "PermissionDenied" => {
            let names = [("tool_name", "name"), ("tool_input", "input"), ("reason", "reason")];
            vec![named("tool.denied", &names)]
        }
        "Notification" => vec![about("log", &["notification_type", "message", "title"])],
        _ => Vec::new(),
    }
}

fn tool(input: &Json, mut ask: Ask) -> Ask {
    ask.name = words(input, "tool_name");
    ask.span = words(input, "tool_use_id");
    ask.ms = input.get("duration_ms").and_then(Json::as_u64);
    ask
}

pub fn write(input: &Json, (ask, answer): &Asked) -> Json {
    let mut said = Map::new();
    let mut of_event = Map::new();
    match &answer.verdict {
        Verdict::Abort { reason } => {
            // The run ends after the tool, unless that is refused.
            let mut said = halt(reason);
            if ask.point == Point::BeforeTool {
                said["hookSpecificOutput"] = json!({"hookEventName": member(input, "hook_event_name"),
                    "permissionDecision": "deny", "permissionDecisionReason": reason});
            }
            return said;
        }
        Verdict::Edit { value } if ask.point == Point::BeforeTool => {
            // No word of permission: whether the tool may run is still the user's to say.
            of_event.insert("updatedInput".into(), value.clone());
        }
        Verdict::Edit { value } => {
            of_event.insert("updatedToolOutput".into(), shaped(&ask.value, value));
        }
        Verdict::Deny { reason } if ask.point == Point::BeforeTool => {
            of_event.insert("permissionDecision".into(), json!("deny"));
            of_event.insert("permissionDecisionReason".into(), json!(reason));
        }
        Verdict::Deny { reason } => block(&mut said, reason),
        Verdict::Proceed | Verdict::Synthesize { .. } => {}
    }
    add_context(ask, injected(answer), &mut said, &mut of_event);
    whole(input, said, of_event)
}

/// The whole run ends.
pub fn halt(reason: &str) -> Json {
    json!({"continue": false, "stopReason": reason})
}

pub fn block(said: &mut Map<String, Json>, reason: &str) {
    said.insert("decision".into(), json!("block"));
    said.insert("reason".into(), json!(reason));
}

/// A message goes in where there is a place for it: as the reason not to stop, else as context.
pub fn add_context(ask: &Ask, message: Option<String>, said: &mut Map<String, Json>, of_event: &mut Map<String, Json>) {
    let Some(message) = message else { return };
    if ask.point != Point::BeforeStop {
        of_event.insert("additionalContext".into(), json!(message));
        return;
    }
    let reason = text(&Json::Object(said.clone()), "reason").map(|reason| format!("{reason}\n{message}"));
    block(said, &reason.unwrap_or(message));
}

pub fn whole(input: &Json, mut said: Map<String, Json>, mut of_event: Map<String, Json>) -> Json {
    if !of_event.is_empty() {
        of_event.insert("hookEventName".into(), member(input, "hook_event_name"));
        said.insert("hookSpecificOutput".into(), Json::Object(of_event));
    }
    Json::Object(said)
}

/// An output must keep its shape: a text that is given for one with streams is what it printed.
fn shaped(was: &Json, now: &Json) -> Json {
    match (was, now) {
        (Json::Object(members), Json::String(_)) if members.contains_key("stdout") => {
            let mut members = members.clone();
            members.insert("stdout".into(), now.clone());
            Json::Object(members)
        }
        (Json::String(_), other) => json!(plain(other)),
        (_, other) => other.clone(),
    }
}
