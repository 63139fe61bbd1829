//! Other names for the same: the events and commands of agents that have a debug bridge of their own, in ours.
//!
//! Such an agent writes `{"type":"tool_call_start","data":{"name","input"}}` where ours is `tool.call`, and its users type
//! `--filter paused` where the record has `stopped`.

use serde_json::{Map, Value as Json, json};

use super::breaks::WORDS;
use super::gate::Note;
use crate::glob::is_like;
use crate::model::Event;
use crate::render::quoted;

/// Names of events elsewhere, and ours.
const EVENTS: [(&str, &str); 22] = [
    ("session_start", "session.start"),
    ("session_end", "session.end"),
    ("user_input", "input.user"),
    ("api_request", "model.request"),
    ("api_response", "model.response"),
    ("assistant_text", "model.response"),
    ("error", "model.error"),
    ("api_error", "model.error"),
    ("tool_call_start", "tool.call"),
    ("tool_call_end", "tool.end"),
    ("tool_result", "tool.end"),
    ("context_compaction", "context.compact"),
    ("paused", "stopped"),
    ("breakpoint_hit", "stopped"),
    ("step_complete", "stopped"),
    ("resumed", "continued"),
    ("command_response", "command.result"),
    ("command_executed", "command.result"),
    ("state_snapshot", "state.snapshot"),
    ("branch_created", "fork"),
    ("branch_switched", "fork"),
    ("checkpoint_created", "checkpoint"),
];

/// Fields of their data elsewhere, and ours.
const FIELDS: [(&str, &str); 16] = [
    ("durationMs", "ms"),
    ("duration_ms", "ms"),
    ("duration", "ms"),
    ("stopReason", "stop_reason"),
    ("messageCount", "n_messages"),
    ("message_count", "n_messages"),
    ("toolCount", "n_tools"),
    ("tool_count", "n_tools"),
    ("toolName", "name"),
    ("tool_name", "name"),
    ("toolInput", "input"),
    ("tool_input", "input"),
    ("inputTokens", "input"),
    ("outputTokens", "output"),
    ("result", "output"),
    ("content", "text"),
];

/// Where elsewhere the id of a tool call is.
const SPANS: [&str; 6] = ["toolId", "tool_id", "toolUseId", "tool_use_id", "callId", "call_id"];

/// Our type of an event that is called so elsewhere.
#[must_use]
pub fn kind(name: &str) -> Option<&'static str> {
    EVENTS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// The type of the events in a record that are called so elsewhere.
#[must_use]
pub fn recorded_as(name: &str) -> Option<&'static str> {
    match name {
        // Less than a type: see below.
        "breakpoint_hit" => Some("breakpoint_hit"),
        "step_complete" => Some("step_complete"),
        "state_snapshot" => Some("state_snapshot"),
        "checkpoint_created" | "branch_created" | "branch_switched" => None,
        _ => kind(name),
    }
}

/// Whether an event of a record is one that is asked for, by a type with `*` and `?`, or by a name from elsewhere that
/// stands for some events of a type.
#[must_use]
pub fn is_asked(name: &str, event: &Event) -> bool {
    let (kind, data) = (event.kind.as_str(), &event.data);
    match name {
        "breakpoint_hit" => kind == "stopped" && data["reason"]["breakpoint"].is_object(),
        "step_complete" => kind == "stopped" && (data["reason"] == "step" || data["reason"] == "reached"),
        "state_snapshot" => kind == "command.result" && data["name"] == "inspect",
        _ => is_like(name, kind),
    }
}

/// An event in the form that it has elsewhere: its name as the type of the line, and what there is to say in `data`.
pub fn event(name: &str, fields: &mut Map<String, Json>) -> Option<Note> {
    let ours = kind(name)?;
    let mut span = text_of(fields, &["span"]);
    let thread = text_of(fields, &["thread", "agentId", "agent_id"]).unwrap_or_else(|| "main".into());
    let data = match fields.remove("data") {
        Some(Json::Object(mut data)) => {
            let named = text_of(&mut data, &SPANS);
            // In an event about a tool, an id without another name is the call's.
            let bare = if ours.starts_with("tool.") { text_of(&mut data, &["id"]) } else { None };
            span = span.or(named).or(bare);
            Json::Object(data.into_iter().map(|(name, value)| field(ours, name, value)).collect())
        }
        Some(other) => other,
        None => Json::Null,
    };
    Some(Note { kind: ours.into(), thread, span, data })
}

fn text_of(fields: &mut Map<String, Json>, names: &[&str]) -> Option<String> {
    let name = names.iter().find(|name| fields.get(**name).is_some_and(Json::is_string))?;
    match fields.shift_remove(*name) {
        Some(Json::String(text)) => Some(text),
        _ => None,
    }
}

fn field(kind: &str, name: String, value: Json) -> (String, Json) {
    if let ("isError" | "is_error", Some(error)) = (name.as_str(), value.as_bool()) {
        return ("ok".into(), json!(!error));
    }
    let value = match (name.as_str(), value) {
        ("usage", Json::Object(usage)) => {
            Json::Object(usage.into_iter().map(|(name, value)| field("usage", name, value)).collect())
        }
        (_, value) => value,
    };
    // What a tool gave is its output; what somebody wrote is text.
    let ours = match (kind, name.as_str()) {
        ("tool.end", "content") => Some("output"),
        ("input.user", "input" | "message") | ("model.response", "message") => Some("text"),
        ("usage", "input_tokens") => Some("input"),
        ("usage", "output_tokens") => Some("output"),
        (_, name) => FIELDS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours),
    };
    (ours.map_or(name, Into::into), value)
}

/// A command about an agent, as its words are typed here: `inject_message` with its fields is `inject user TEXT`. None for
/// one that means the same for every debuggee.
pub fn command(verb: &str, fields: &Map<String, Json>) -> Option<Result<Vec<String>, String>> {
    let text = |names: &[&str]| {
        let found = names.iter().find_map(|name| fields.get(*name));
        found.and_then(|value| match value {
            Json::String(text) => Some(text.clone()),
            Json::Number(number) => Some(number.to_string()),
            _ => None,
        })
    };
    Some(match verb {
        "inspect" => Ok(match text(&["what"]).as_deref() {
            Some("stack") => vec!["backtrace".into()],
            Some("threads") => vec!["threads".into()],
            Some("breakpoints") => vec!["breaks".into()],
            what => {
                let mut words = vec!["inspect".to_string(), what.unwrap_or("all").into()];
                words.extend(text(&["last"]).map(|last| format!("--last={last}")));
                words
            }
        }),
        "inject" | "inject_message" => match text(&["content", "text", "message"]) {
            // What follows is text, whatever it begins with.
            Some(said) => {
                Ok(vec!["inject".into(), text(&["role"]).unwrap_or_else(|| "user".into()), "--".into(), said])
            }
            None => Err(format!("`{verb}` needs a `content`, a text")),
        },
        "cancel" | "cancel_tool" => {
            let mut words = vec!["cancel".to_string()];
            words.extend(text(&["reason"]).map(|reason| format!("--reason={reason}")));
            if let Some(id) = text(&["toolId", "tool_id", "tool", "toolUseId", "tool_use_id"]) {
                words.extend(["--".into(), id]);
            }
            Ok(words)
        }
        _ => return None,
    })
}

/// A breakpoint in an agent, as its place is typed here: `tool:write_file`, `iteration:5`, `pattern:rm -rf`.
pub fn breakpoint(fields: &Map<String, Json>) -> Result<String, String> {
    let on = fields.get("on").and_then(Json::as_str).unwrap_or_default();
    let (names, needed): (&[&str], bool) = match on {
        "tool" | "after" => (&["name", "tool", "condition"], true),
        "iteration" => (&["count", "iteration", "n", "condition"], true),
        "pattern" => (&["regex", "pattern", "condition"], true),
        "file" => (&["path", "file", "condition"], true),
        "cost" => (&["usd", "cost", "condition"], true),
        "tokens" => (&["tokens", "count", "condition"], true),
        "model" | "error" | "denied" | "subagent" | "stop" | "prompt" => (&["name"], false),
        _ => {
            let kinds: Vec<&str> = WORDS.iter().map(|word| word.trim_end_matches(':')).collect();
            return Err(format!("an agent has no breakpoint on {}; there are: {}", quoted(on), kinds.join(", ")));
        }
    };
    let value = names.iter().find_map(|name| match fields.get(*name)? {
        Json::String(text) if !text.is_empty() => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    });
    match value {
        Some(value) => Ok(format!("{on}:{value}")),
        None if needed => Err(format!("a breakpoint on `{on}` needs a `{}`", names[0])),
        None => Ok(on.to_string()),
    }
}

/// When such a breakpoint holds, where that is not always: `input` is a pattern for the tool's input, `thread` whose it is.
#[must_use]
pub fn condition(fields: &Map<String, Json>) -> Option<String> {
    let text = |name: &str| fields.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    let own = text("if").map(str::to_string);
    let input = text("input").map(|pattern| format!("tool_input ~ {}", json!(pattern)));
    let thread = text("thread").filter(|thread| *thread != "*").map(|thread| format!("thread == {}", json!(thread)));
    let all: Vec<String> = [own, input, thread].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" && "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(value: &Json) -> Map<String, Json> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn what_an_event_says_is_found_under_our_names() {
        for (name, given, kind, span, expected) in [
            (
                "tool_call_start",
                json!({ "name": "bash", "input": { "command": "ls" }, "toolId": "c1" }),
                "tool.call",
                Some("c1"),
                json!({ "name": "bash", "input": { "command": "ls" } }),
            ),
            (
                "tool_call_end",
                json!({ "name": "bash", "durationMs": 12, "isError": true }),
                "tool.end",
                None,
                json!({ "name": "bash", "ms": 12, "ok": false }),
            ),
            ("tool_result", json!({ "id": "c1", "result": "x" }), "tool.end", Some("c1"), json!({ "output": "x" })),
            (
                "api_request",
                json!({ "messageCount": 3, "model": "m" }),
                "model.request",
                None,
                json!({ "n_messages": 3, "model": "m" }),
            ),
            (
                "api_response",
                json!({ "stopReason": "end_turn", "usage": { "inputTokens": 7, "outputTokens": 2 } }),
                "model.response",
                None,
                json!({ "stop_reason": "end_turn", "usage": { "input": 7, "output": 2 } }),
            ),
            ("user_input", json!({ "input": "do it" }), "input.user", None, json!({ "text": "do it" })),
            ("assistant_text", json!({ "content": "done" }), "model.response", None, json!({ "text": "done" })),
            ("error", json!({ "message": "no" }), "model.error", None, json!({ "message": "no" })),
        ] {
            let note = event(name, &mut fields(&json!({ "data": given, "timestamp": "x" }))).unwrap();
            assert_eq!((note.kind.as_str(), note.span.as_deref()), (kind, span), "{name}");
            assert_eq!(note.data, expected, "{name}");
        }
        assert!(event("nonsense", &mut Map::new()).is_none());
        assert_eq!(event("paused", &mut Map::new()).unwrap().kind, "stopped");
    }

    #[test]
    fn names_from_elsewhere_choose_events() {
        let event = |kind: &str, data: Json| Event {
            v: 1,
            seq: 1,
            ts: 0,
            session: "x".into(),
            thread: None,
            kind: kind.into(),
            data,
        };
        let step = event("stopped", json!({ "reason": "step" }));
        let hit = event("stopped", json!({ "reason": { "breakpoint": { "ids": [1], "hit": 1 } } }));
        let inspected = event("command.result", json!({ "name": "inspect" }));
        let set = event("command.result", json!({ "name": "set" }));
        let all = [&step, &hit, &inspected, &set];
        for (name, expected) in [
            ("paused", [true, true, false, false]),
            ("step_complete", [true, false, false, false]),
            ("breakpoint_hit", [false, true, false, false]),
            ("command_response", [false, false, true, true]),
            ("state_snapshot", [false, false, true, false]),
        ] {
            let asked = recorded_as(name).unwrap();
            assert_eq!(all.map(|event| is_asked(asked, event)), expected, "{name}");
        }
    }

    #[test]
    fn commands_are_words() {
        let words = |verb: &str, data: Json| command(verb, &fields(&data)).unwrap().map(|words| words.join(" "));
        assert_eq!(words("inspect", json!({ "what": "messages" })).unwrap(), "inspect messages");
        assert_eq!(words("inspect", json!({})).unwrap(), "inspect all");
        assert_eq!(words("inspect", json!({ "what": "messages", "last": 9 })).unwrap(), "inspect messages --last=9");
        assert_eq!(words("inspect", json!({ "what": "stack" })).unwrap(), "backtrace");
        let inject = words("inject_message", json!({ "role": "user", "content": "--x y" }));
        assert_eq!(inject.unwrap(), "inject user -- --x y");
        assert_eq!(
            words("cancel_tool", json!({ "toolId": "t1", "reason": "no" })).unwrap(),
            "cancel --reason=no -- t1"
        );
        assert_eq!(words("cancel", json!({})).unwrap(), "cancel");
        assert!(words("inject_message", json!({})).unwrap_err().contains("`content`"));
        assert!(command("pause", &Map::new()).is_none());
    }

    #[test]
    fn breakpoints_are_places() {
        for (data, place) in [
            (json!({ "on": "tool", "name": "write_file" }), "tool:write_file"),
            (json!({ "on": "iteration", "count": 5 }), "iteration:5"),
            (json!({ "on": "pattern", "regex": "rm -rf" }), "pattern:rm -rf"),
            (json!({ "on": "file", "path": "src/**", "op": "write" }), "file:src/**"),
            (json!({ "on": "cost", "usd": 2.5 }), "cost:2.5"),
            (json!({ "on": "tokens", "count": 1000 }), "tokens:1000"),
            (json!({ "on": "error" }), "error"),
        ] {
            assert_eq!(breakpoint(&fields(&data)).unwrap(), place);
        }
        assert!(breakpoint(&fields(&json!({ "on": "tool" }))).unwrap_err().contains("`name`"));
        let unknown = breakpoint(&fields(&json!({ "on": "moon" }))).unwrap_err();
        assert!(unknown.contains("no breakpoint on moon; there are: tool, after, iteration"), "{unknown}");
        // Each that is told of can be set.
        for word in WORDS {
            let on = word.trim_end_matches(':');
            let data = json!({ "on": on, "name": "x", "count": 5, "regex": "x", "path": "x", "usd": 1 });
            let place = breakpoint(&fields(&data)).unwrap();
            crate::agent::breaks::On::parse(&place).unwrap();
        }
    }

    #[test]
    fn a_breakpoint_may_have_conditions() {
        assert_eq!(condition(&fields(&json!({ "name": "bash", "thread": "*" }))), None);
        let all =
            condition(&fields(&json!({ "if": "iteration > 2", "input": "a\"b && c", "thread": "main" }))).unwrap();
        assert_eq!(all, r#"iteration > 2 && tool_input ~ "a\"b && c" && thread == "main""#);
        crate::agent::path::Condition::parse(&all).unwrap();
    }
}
