//! What our plugin inside OpenCode says (`launch/opencode.js`), and what it is told to do: `throw`, `args`, `output`,
//! `add`, `abort`. The plugin decides nothing.

use serde_json::{Map, Value as Json, json};

use super::{Asked, Heard, asks, injected, member, message as said, note, only, plain, question, text, words};
use crate::agent::gate::{Conversation, Point, Powers, Verdict};

const HELD: Powers = Powers { hold: true, abort: true, ..Powers::NONE };

pub fn read(input: &Json) -> Vec<Heard> {
    let on = words(input, "thread").unwrap_or_else(|| "main".into());
    let span = words(input, "callID");
    let about = |kind: &str, names: &[&str]| note(kind, on.clone(), span.clone(), only(input, names));
    let ask = |point, value, powers| {
        let mut ask = question(point, on.clone(), value, powers);
        ask.span.clone_from(&span);
        ask.name = words(input, "tool");
        ask
    };
    match text(input, "event").unwrap_or_default() {
        "start" => {
            let mut known = only(input, &["cwd", "version"]);
            known["agent"] = json!("opencode");
            vec![Heard::Attached(known), about("session.start", &["cwd", "version"])]
        }
        "chat.message" => {
            let said = json!({"text": member(input, "prompt"), "source": "user"});
            let powers = Powers { edit: true, deny: true, inject: true, ..HELD };
            vec![
                note("input.user", on.clone(), None, said),
                asks(ask(Point::BeforePrompt, member(input, "prompt"), powers)),
            ]
        }
        "messages.transform" => {
            let messages = member(input, "messages");
            let powers = Powers { inject: true, ..HELD };
            let mut ask = ask(Point::BeforeModel, messages.clone(), powers);
            ask.conversation = Some(Conversation {
                model: words(input, "model"),
                messages: messages.as_array().into_iter().flatten().map(message).collect(),
                ..Conversation::default()
            });
            vec![asks(ask)]
        }
        "tool.execute.before" => {
            let powers = Powers { edit: true, deny: true, ..HELD };
            vec![asks(ask(Point::BeforeTool, member(input, "args"), powers))]
        }
        "tool.execute.after" => {
            let powers = Powers { edit: true, inject: true, ..HELD };
            let mut ask = ask(Point::AfterTool, member(input, "output"), powers);
            (ask.ok, ask.input) = (Some(true), input.get("args").cloned());
            vec![asks(ask)]
        }
        "permission.asked" => vec![about("permission.request", &["title", "metadata", "permission"])],
        "session.created" => {
            let mut about = only(input, &["parent", "title"]);
            // `Find it (@explore subagent)`
            let kind = text(input, "title").and_then(|title| title.rsplit_once("(@")?.1.strip_suffix(" subagent)"));
            if let Some(kind) = kind {
                about["type"] = json!(kind);
            }
            vec![note("agent.spawn", on, span, about)]
        }
        "session.idle" if on == "main" => Vec::new(),
        "session.idle" => vec![about("agent.exit", &[])],
        "session.compacted" => vec![about("context.compact", &[])],
        "session.error" => {
            vec![note("model.error", on, span, json!({"message": said(&member(input, "error"))}))]
        }
        "dispose" => vec![about("session.end", &[])],
        _ => Vec::new(),
    }
}

/// One of its messages: `{info: {role}, parts: [{type, text}, {type: "tool", callID, tool, state}]}`.
fn message(told: &Json) -> Json {
    let parts = told.get("parts").and_then(Json::as_array).into_iter().flatten();
    let part = |part: &Json| match text(part, "type") {
        Some("text") => vec![json!({"type": "text", "text": member(part, "text")})],
        Some("tool") => {
            let (id, state) = (member(part, "callID"), member(part, "state"));
            let call =
                json!({"type": "tool_call", "id": id, "name": member(part, "tool"), "input": member(&state, "input")});
            let failed = text(&state, "status") == Some("error");
            let output = member(&state, if failed { "error" } else { "output" });
            if output.is_null() {
                return vec![call];
            }
            vec![call, json!({"type": "tool_result", "id": id, "output": output, "error": failed})]
        }
        _ => vec![part.clone()],
    };
    let role = told.get("info").map_or(Json::Null, |info| member(info, "role"));
    json!({"role": role, "content": parts.flat_map(part).collect::<Vec<_>>()})
}

pub fn write(_input: &Json, (ask, answer): &Asked) -> Json {
    let mut said = Map::new();
    match &answer.verdict {
        Verdict::Abort { reason } => {
            said.insert("abort".into(), json!(true));
            said.insert("throw".into(), json!(reason));
        }
        Verdict::Deny { reason } => {
            said.insert("throw".into(), json!(reason));
        }
        Verdict::Edit { value } => {
            let name = if ask.point == Point::BeforeTool { "args" } else { "output" };
            let value = if ask.point == Point::BeforeTool { value.clone() } else { json!(plain(value)) };
            said.insert(name.into(), value);
        }
        Verdict::Proceed | Verdict::Synthesize { .. } => {}
    }
    if let Some(message) = injected(answer) {
        said.insert("add".into(), json!(message));
    }
    Json::Object(said)
}
