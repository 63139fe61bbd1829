//! Gemini CLI's hooks. A tool call has no id there, and a model call is a point of its own.

use serde_json::{Map, Value as Json, json};

use super::{Asked, Heard, asks, injected, member, note, only, plain, question, text, words};
use crate::agent::gate::{Conversation, Point, Powers, Verdict};

const HELD: Powers = Powers { hold: true, abort: true, ..Powers::NONE };

/// The events to register. Its `AfterModel` comes with every piece of an answer, its `BeforeToolSelection` says what
/// `BeforeModel` has said, and its `PreCompress` comes before each model call, whether there is anything to compress or not.
pub const EVENTS: [&str; 8] = [
    "SessionStart",
    "BeforeAgent",
    "BeforeModel",
    "BeforeTool",
    "AfterTool",
    "AfterAgent",
    "Notification",
    "SessionEnd",
];

pub fn read(input: &Json) -> Vec<Heard> {
    let on = || "main".to_string();
    let about = |kind: &str, names: &[&str]| note(kind, on(), None, only(input, names));
    let ask = |point, value, powers| question(point, on(), value, powers);
    match text(input, "hook_event_name").unwrap_or_default() {
        "SessionStart" => {
            let mut known = only(input, &["cwd"]);
            known["agent"] = json!("gemini");
            known["session"] = member(input, "session_id");
            vec![Heard::Attached(known), about("session.start", &["session_id", "source", "cwd", "transcript_path"])]
        }
        "SessionEnd" => vec![about("session.end", &["reason"])],
        "BeforeAgent" => {
            let said = json!({"text": member(input, "prompt"), "source": "user"});
            let powers = Powers { deny: true, inject: true, ..HELD };
            vec![note("input.user", on(), None, said), asks(ask(Point::BeforePrompt, member(input, "prompt"), powers))]
        }
        "BeforeModel" => {
            let request = member(input, "llm_request");
            let powers = Powers { edit: true, synthesize: true, inject: true, ..HELD };
            let mut ask = ask(Point::BeforeModel, request.clone(), powers);
            ask.conversation = Some(conversation(&request));
            vec![asks(ask)]
        }
        "BeforeTool" => {
            let powers = Powers { edit: true, deny: true, ..HELD };
            let mut ask = ask(Point::BeforeTool, member(input, "tool_input"), powers);
            ask.name = words(input, "tool_name");
            vec![asks(ask)]
        }
        "AfterTool" => {
            let powers = Powers { edit: true, inject: true, ..HELD };
            let response = member(input, "tool_response");
            let mut ask = ask(Point::AfterTool, response.clone(), powers);
            ask.name = words(input, "tool_name");
            ask.input = input.get("tool_input").cloned();
            ask.ok = Some(response.get("error").is_none_or(Json::is_null));
            vec![asks(ask)]
        }
        "AfterAgent" => {
            let powers = Powers { deny: true, inject: true, ..HELD };
            vec![asks(ask(Point::BeforeStop, member(input, "prompt_response"), powers))]
        }
        "PreCompress" if text(input, "trigger") == Some("manual") => vec![about("context.compact", &["trigger"])],
        "Notification" if text(input, "notification_type") == Some("ToolPermission") => {
            vec![about("permission.request", &["message", "details"])]
        }
        "Notification" => vec![about("log", &["notification_type", "message"])],
        _ => Vec::new(),
    }
}

/// What it tells of a conversation: texts alone.
fn conversation(request: &Json) -> Conversation {
    let messages = request.get("messages").and_then(Json::as_array).into_iter().flatten();
    let message = |message: &Json| {
        let role = if text(message, "role") == Some("model") { json!("assistant") } else { member(message, "role") };
        json!({"role": role, "content": member(message, "content")})
    };
    Conversation {
        model: words(request, "model"),
        messages: messages.map(message).collect(),
        ..Conversation::default()
    }
}

pub fn write(_input: &Json, (ask, answer): &Asked) -> Json {
    let mut said = Map::new();
    let mut of_event = Map::new();
    let mut deny = |reason: &str| {
        said.insert("decision".into(), json!("deny"));
        said.insert("reason".into(), json!(reason));
    };
    let message = injected(answer);
    match &answer.verdict {
        // What it shows as the reason is `stopReason`, and elsewhere `reason`.
        Verdict::Abort { reason } => return json!({"continue": false, "stopReason": reason, "reason": reason}),
        Verdict::Edit { value } if ask.point == Point::BeforeTool => {
            of_event.insert("tool_input".into(), value.clone());
        }
        Verdict::Edit { value } if ask.point == Point::BeforeModel => {
            of_event.insert("llm_request".into(), request(value, None));
        }
        // A result is replaced by the reason not to show it.
        Verdict::Edit { value } => deny(&output(value)),
        Verdict::Synthesize { value } => {
            let candidate = json!({"content": {"role": "model", "parts": [plain(value)]}, "finishReason": "STOP"});
            of_event.insert("llm_response".into(), json!({"candidates": [candidate]}));
            deny("answered in the model's place");
        }
        Verdict::Deny { reason } => match &message {
            Some(message) if ask.point == Point::BeforeStop => deny(&format!("{reason}\n{message}")),
            _ => deny(reason),
        },
        Verdict::Proceed => {
            if let (Point::BeforeStop, Some(message)) = (ask.point, &message) {
                deny(message);
            }
        }
    }
    match (ask.point, message) {
        (_, None) | (Point::BeforeStop, _) => {}
        (Point::BeforeModel, Some(message)) => {
            let edited = of_event.get("llm_request").cloned();
            of_event.insert("llm_request".into(), request(&edited.unwrap_or_else(|| ask.value.clone()), Some(message)));
        }
        (_, Some(message)) => {
            of_event.insert("additionalContext".into(), json!(message));
        }
    }
    if !of_event.is_empty() {
        said.insert("hookSpecificOutput".into(), Json::Object(of_event));
    }
    Json::Object(said)
}

/// Only the model and the messages: settings that are named here would take the place of tools and instructions.
fn request(value: &Json, message: Option<String>) -> Json {
    let mut request = only(value, &["model", "messages"]);
    if let Some(message) = message {
        let mut messages = value.get("messages").and_then(Json::as_array).cloned().unwrap_or_default();
        messages.push(json!({"role": "user", "content": message}));
        request["messages"] = Json::Array(messages);
    }
    request
}

/// What the model is to read of a result.
fn output(value: &Json) -> String {
    plain(value.get("llmContent").unwrap_or(value))
}
