//! How what an agent did reads, in a line, and what can be done where it is held.

use serde_json::Value as Json;

use crate::adapters;
use crate::agent::launch;
use crate::model::{Event, Stop};
use crate::render::{cut, quoted};
use crate::store::read::Head;

/// The longest part that is shown of a text, and of all fields of an input, in a line; of a field among several half of it.
const MAX_TEXT: usize = 160;

fn short(text: &str, limit: usize) -> String {
    match cut(text, limit) {
        (kept, 0) => kept.to_string(),
        (kept, _) => format!("{kept}…"),
    }
}

fn text<'a>(data: &'a Json, name: &str) -> Option<&'a str> {
    data.get(name)?.as_str()
}

/// A text as it is, without the end of its last line; anything else as JSON.
fn plain(value: &Json, limit: usize) -> String {
    match value {
        Json::String(text) => short(&quoted(text.trim_end()), limit),
        other => short(&other.to_string(), limit),
    }
}

/// `command="ls -l", timeout=3`; what is no object as it is.
fn fields(value: &Json, most: usize) -> String {
    let Some(map) = value.as_object() else { return plain(value, most) };
    let mut line = String::new();
    for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        let before = if line.is_empty() { "" } else { ", " };
        if line.chars().count() > most {
            return format!("{line}, …");
        }
        line.push_str(&format!(
            "{before}{}={}",
            quoted(name),
            short(&value.to_string(), if map.len() > 1 { most / 2 } else { most })
        ));
    }
    line
}

/// What an agent did; None where it is none of that, or not as expected.
#[must_use]
pub fn doing(event: &Event) -> Option<String> {
    let line = told(&event.kind, &event.data, MAX_TEXT)?;
    Some(match event.thread {
        // The agent itself is the first.
        Some(thread) if thread > 1 => format!("[thread {thread}] {line}"),
        _ => line,
    })
}

/// The same of a type and its data, with so many characters of each text.
#[must_use]
pub fn told(kind: &str, data: &Json, most: usize) -> Option<String> {
    let fields = |value: &Json| fields(value, most);
    let shown = |name: &str| data.get(name).filter(|value| !value.is_null()).map(|value| plain(value, most));
    let said = |name: &str| shown(name).filter(|text| !text.is_empty()).map(|text| format!("\"{text}\""));
    let count = |name: &str| data.get(name).and_then(Json::as_u64);
    let joined = |parts: Vec<Option<String>>| parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let is = |name: &str| data.get(name).and_then(Json::as_bool) == Some(true);
    let name = || text(data, "name").filter(|name| !name.is_empty()).map(quoted);
    let point = || text(data, "where").map(|point| point.replace('_', " "));
    let aside = || is("aside").then(|| "aside".to_string());
    Some(match kind {
        "tap.attached" => {
            let about = data.get("about").unwrap_or(data);
            joined(vec![shown("tap"), text(about, "agent").map(quoted), text(about, "version").map(quoted)])
        }
        "agent.start" => joined(vec![shown("agent"), shown("version"), shown("model"), shown("source")]),
        "agent.end" => shown("reason").unwrap_or_default(),
        "input.user" => said("text")?,
        "tool.call" => format!("{} {}", name()?, data.get("input").map(fields).unwrap_or_default()),
        "tool.end" => {
            let took = count("ms").map_or_else(String::new, |ms| format!(" in {ms} ms"));
            let how = match data.get("ok").and_then(Json::as_bool) {
                Some(true) => "ok",
                Some(false) => "failed",
                None => "done",
            };
            let output = shown("output").filter(|text| !text.is_empty()).map(|text| format!(": {text}"));
            // Where the output comes in an event of its own, the call's id says whose it is.
            let name = name().or_else(|| text(data, "id").map(quoted))?;
            format!("{name} {how}{took}{}", output.unwrap_or_default())
        }
        "tool.denied" => {
            let what = if is("run") { "the run".into() } else { name().or_else(point)? };
            let by = shown("by").map(|by| format!(" by {by}")).unwrap_or_default();
            let reason = shown("reason").map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{what}{by}{reason}")
        }
        "permission.request" => {
            let name = name().or_else(|| text(data, "tool").map(quoted))?;
            [Some(name), data.get("input").map(fields)].into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        "model.request" | "model.retry" => joined(vec![
            aside(),
            count("iteration").filter(|_| !is("aside")).map(|n| format!("iteration {n}")),
            shown("model"),
            count("n_messages").map(|n| format!("{n} message{}", if n == 1 { "" } else { "s" })),
        ]),
        "model.response" => {
            let usage = data.get("usage");
            let tokens = |name: &str| usage.and_then(|usage| usage.get(name)).and_then(Json::as_u64);
            let calls = data.get("tool_calls").and_then(Json::as_array).into_iter().flatten();
            let calls: Vec<&str> = calls.filter_map(|call| text(call, "name")).collect();
            let tokens = match (tokens("input"), tokens("output")) {
                (None, None) => None,
                (input, output) => Some(format!("{} + {} tokens", input.unwrap_or(0), output.unwrap_or(0))),
            };
            joined(vec![
                aside(),
                said("text"),
                (!calls.is_empty()).then(|| format!("calls {}", quoted(&calls.join(", ")))),
                shown("stop_reason"),
                tokens,
                data.get("usd").and_then(Json::as_f64).map(|usd| format!("${usd:.4}")),
                count("ms").map(|ms| format!("{ms} ms")),
            ])
        }
        "model.unread" | "model.unkept" => joined(vec![shown("path"), shown("why")]),
        "model.error" => joined(vec![shown("status"), shown("message")]),
        "turn.end" => format!("turn {}: {}", count("turn")?, said("text").unwrap_or_default()),
        "injected" => {
            let place = point().map(|point| format!(", {point}")).unwrap_or_default();
            format!("{} as {}, by {}{place}", said("text")?, shown("role")?, shown("actor")?)
        }
        // Who was answered for is named by the call's id; what was changed was something before.
        "edited" if data.get("id").is_some() && data.get("before").is_none() => {
            let who = name().unwrap_or_else(|| "the model".into());
            format!("{who} was not asked, the debugger answered: {}", plain(data.get("value")?, most))
        }
        "edited" => {
            let name = name().map(|name| format!(" of {name}")).unwrap_or_default();
            let before = data.get("before").map(|before| format!(", was {}", fields(before))).unwrap_or_default();
            format!("{}{name} is now {}{before}", shown("target")?, data.get("value").map(fields)?)
        }
        "agent.spawn" => joined(vec![shown("type"), said("prompt")]),
        "agent.exit" => shown("reason").unwrap_or_else(|| "done".into()),
        "context.compact" => joined(vec![
            shown("trigger"),
            count("before").map(|n| format!("{n} before")),
            count("after").map(|n| format!("{n} after")),
        ]),
        "rerun.diverged" => shown("what")?,
        _ => return None,
    })
}

/// Whether a record is an agent's.
#[must_use]
pub fn is_agent(head: &Head) -> bool {
    adapters::by_name(&head.adapter).is_some_and(|adapter| adapter.quirks.agents)
}

/// Whether another event says the same of an agent, for whoever watches it live: that it runs or stands is said by
/// `continued` and `stopped`, that something was set by `edited`.
#[must_use]
pub fn is_said_twice(head: &Head, event: &Event) -> bool {
    let state = || matches!(text(&event.data, "state"), Some("running" | "stopped"));
    let twice = match event.kind.as_str() {
        "state" => state(),
        "eval" => event.data.get("set").is_some(),
        _ => false,
    };
    twice && is_agent(head)
}

/// What can be answered where an agent is held, for whoever watches; none for other events.
#[must_use]
pub fn choices(head: &Head, event: &Event) -> Option<String> {
    if event.kind != "stopped" || !is_agent(head) {
        return None;
    }
    let stop: Stop = serde_json::from_value(event.data.clone()).ok()?;
    let gate = stop.frames.first()?.function.as_str();
    let can = match gate {
        // Hooks give no answer in a tool's place.
        _ if gate.starts_with("before tool ") && launch::is_known(&head.words) => {
            "continue, cancel --reason TEXT, set tool_input.NAME VALUE, inject user TEXT, step"
        }
        _ if gate.starts_with("before tool ") => {
            "continue, cancel --reason TEXT, set tool_input.NAME VALUE, answer VALUE, inject user TEXT, step"
        }
        _ if gate.starts_with("after tool ") => "continue, set tool_output VALUE, inject user TEXT, step",
        "before model call" => "continue, inject user TEXT, answer TEXT, inspect messages, step",
        "before prompt" => "continue, cancel --reason TEXT, set prompt TEXT, inject user TEXT, step",
        "before the turn ends" => "continue, inject user TEXT (it goes on with that), step",
        _ => return None,
    };
    Some(format!("  held; type one of: {can}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, thread: Option<i64>, data: Json) -> Event {
        Event { v: 1, seq: 1, ts: 0, session: "x".into(), thread, kind: kind.into(), data }
    }

    #[test]
    fn each_doing_is_a_line_that_says_what_matters() {
        let long = "x".repeat(500);
        let cases = [
            ("tap.attached", json!({ "tap": "sdk", "about": { "agent": "a", "version": "1" } }), "sdk, a, 1"),
            ("agent.start", json!({ "agent": "claude", "model": "m" }), "claude, m"),
            ("input.user", json!({ "text": "fix it\n" }), "\"fix it\""),
            (
                "tool.call",
                json!({ "name": "Bash", "input": { "command": "ls \"x\"", "timeout": 3 } }),
                r#"Bash command="ls \"x\"", timeout=3"#,
            ),
            ("tool.call", json!({ "name": "apply", "input": "*** Begin\n" }), "apply *** Begin"),
            (
                "tool.end",
                json!({ "name": "Bash", "ok": true, "ms": 12, "output": "a\nb\n" }),
                r"Bash ok in 12 ms: a\nb",
            ),
            ("tool.end", json!({ "name": "Bash", "ok": false, "output": { "code": 1 } }), r#"Bash failed: {"code":1}"#),
            ("tool.end", json!({ "name": "Bash", "output": "" }), "Bash done"),
            ("tool.end", json!({ "output": "x", "id": "t1" }), "t1 done: x"),
            (
                "tool.denied",
                json!({ "name": "Bash", "by": "debugger", "reason": "[debugger] no" }),
                "Bash by debugger: [debugger] no",
            ),
            (
                "tool.denied",
                json!({ "name": null, "by": "debugger", "where": "before_prompt" }),
                "before prompt by debugger",
            ),
            (
                "tool.denied",
                json!({ "name": "Bash", "by": "debugger", "reason": "x", "run": true }),
                "the run by debugger: x",
            ),
            (
                "model.request",
                json!({ "iteration": 2, "model": "m-1", "n_messages": 1 }),
                "iteration 2, m-1, 1 message",
            ),
            ("model.request", json!({ "aside": true, "iteration": 2, "n_messages": 3 }), "aside, 3 messages"),
            (
                "model.response",
                json!({ "text": "I look.", "stop_reason": "tool_use", "ms": 900, "usd": 0.0123,
                    "usage": { "input": 10, "output": 5 }, "tool_calls": [{ "name": "Bash" }, { "name": "Read" }] }),
                "\"I look.\", calls Bash, Read, tool_use, 10 + 5 tokens, $0.0123, 900 ms",
            ),
            ("model.error", json!({ "status": 529, "message": "overloaded" }), "529, overloaded"),
            ("turn.end", json!({ "turn": 1, "text": "done" }), "turn 1: \"done\""),
            (
                "injected",
                json!({ "actor": "cli:7", "role": "user", "where": "after_tool", "text": "[debugger] stop" }),
                "\"[debugger] stop\" as user, by cli:7, after tool",
            ),
            (
                "edited",
                json!({ "target": "tool_input", "value": { "command": "ls" } }),
                "tool_input is now command=\"ls\"",
            ),
            (
                "edited",
                json!({ "target": "tool_output", "value": "42", "name": "Bash", "id": "c1" }),
                "Bash was not asked, the debugger answered: 42",
            ),
            (
                "edited",
                json!({ "target": "model_response", "value": "hi", "name": null, "id": null }),
                "the model was not asked, the debugger answered: hi",
            ),
            (
                "edited",
                json!({ "target": "tool_output", "value": "42", "name": "Bash" }),
                "tool_output of Bash is now 42",
            ),
            (
                "edited",
                json!({ "target": "tool_input", "before": { "command": "rm" }, "value": { "command": "ls" },
                    "name": "Bash", "id": "c1" }),
                "tool_input of Bash is now command=\"ls\", was command=\"rm\"",
            ),
            ("agent.spawn", json!({ "type": "explore", "prompt": "look" }), "explore, \"look\""),
            ("agent.exit", json!({}), "done"),
            ("permission.request", json!({ "tool": "Bash", "options": [] }), "Bash"),
            ("context.compact", json!({ "trigger": "auto", "before": 90, "after": 8 }), "auto, 90 before, 8 after"),
            ("rerun.diverged", json!({ "what": "the prompt differs" }), "the prompt differs"),
        ];
        for (kind, data, line) in cases {
            assert_eq!(doing(&event(kind, Some(1), data.clone())).as_deref(), Some(line), "{kind} {data}");
        }
        let line = doing(&event(
            "tool.call",
            Some(3),
            json!({ "name": "Write", "input": { "a": long, "b": long, "c": long } }),
        ));
        let line = line.unwrap();
        assert!(line.starts_with("[thread 3] Write a=\"xxx") && line.ends_with(", …") && line.len() < 400, "{line}");
    }

    #[test]
    fn an_answer_in_a_tools_place_is_offered_to_those_who_can_take_one() {
        let head = |words: &[&str]| Head {
            adapter: "agent".into(),
            words: words.iter().map(ToString::to_string).collect(),
            ..Head::default()
        };
        let frame = json!({ "index": 0, "function": "before tool Bash" });
        let stop = json!({ "number": 1, "reason": "pause", "thread": { "id": 1 }, "frame": 0, "frames": [frame], "locals": [] });
        let stop = event("stopped", Some(1), stop);
        let said = choices(&head(&["claude", "-p", "x"]), &stop).unwrap();
        assert!(said.contains("cancel --reason TEXT") && !said.contains("answer"), "{said}");
        assert!(choices(&head(&["./mine"]), &stop).unwrap().contains("answer VALUE"));
    }

    #[test]
    fn what_an_agent_says_can_do_no_harm() {
        let bad = json!({ "name": "a\u{1b}[1m", "input": { "k\u{202e}": "\u{7}" }, "output": "\u{9b}1m" });
        for kind in ["tool.call", "tool.end"] {
            let line = doing(&event(kind, None, bad.clone())).unwrap();
            assert!(!quoted(&line).contains(['\u{1b}', '\u{202e}', '\u{9b}', '\u{7}']), "{line:?}");
        }
        for kind in ["tool.call", "input.user", "edited", "turn.end", "note", "unheard"] {
            assert_eq!(doing(&event(kind, None, json!([1]))), None, "{kind}: shown as it is");
        }
    }
}
