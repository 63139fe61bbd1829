//! Anthropic Messages.

use serde_json::{Value as Json, json};

use super::{Event, by_user, error_text, insert, list, number, some_word, text_of, word};
use crate::agent::gate::{Conversation, Message};
use crate::agent::model::reply::{Building, Call, Reply};

pub fn conversation(body: &Json) -> Conversation {
    let messages = list(&body["messages"]).map(|message| {
        let content = match &message["content"] {
            Json::Array(blocks) => Json::Array(blocks.iter().map(block).collect()),
            other => other.clone(),
        };
        json!({"role": message["role"], "content": content})
    });
    let tools = list(&body["tools"])
        .map(|tool| json!({"name": tool["name"], "description": tool["description"], "schema": tool["input_schema"]}));
    let system = text_of(&body["system"]);
    Conversation {
        model: some_word(&body["model"]),
        messages: messages.collect(),
        system: (!system.is_empty()).then_some(system),
        tools: tools.collect(),
    }
}

fn block(block: &Json) -> Json {
    match block["type"].as_str() {
        Some("text") => json!({"type": "text", "text": block["text"]}),
        Some("tool_use") => {
            json!({"type": "tool_call", "id": block["id"], "name": block["name"], "input": block["input"]})
        }
        Some("tool_result") => json!({
            "type": "tool_result", "id": block["tool_use_id"], "output": text_of(&block["content"]),
            "error": block["is_error"] == true,
        }),
        _ => block.clone(),
    }
}

/// At the end of the user's message, after what tools answered. This API knows no other place: what the assistant said is
/// signed, and two of its messages in a row would be one.
pub fn put(items: &mut Vec<Json>, at: usize, messages: &[&Message]) {
    let added = messages.iter().map(|message| json!({"type": "text", "text": by_user(message)}));
    match items.get_mut(at) {
        Some(last) if last["role"] == "user" => {
            let mut blocks = match last["content"].take() {
                Json::Array(blocks) => blocks,
                Json::String(said) => vec![json!({"type": "text", "text": said})],
                _ => Vec::new(),
            };
            blocks.extend(added);
            last["content"] = Json::Array(blocks);
        }
        _ => insert(items, at, std::iter::once(json!({"role": "user", "content": added.collect::<Vec<_>>()}))),
    }
}

pub fn read_event(into: &mut Building, data: &Json) {
    match data["type"].as_str().unwrap_or_default() {
        "message_start" => {
            into.reply.model = some_word(&data["message"]["model"]);
            usage(into, &data["message"]["usage"]);
        }
        "content_block_start" => {
            let block = &data["content_block"];
            into.text(block["text"].as_str());
            into.thinking(block["thinking"].as_str());
            if block["type"] == "tool_use" {
                into.open(number(&data["index"]), word(&block["id"]), word(&block["name"]));
                if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                    into.input(number(&data["index"]), Some(&block["input"].to_string()));
                }
            }
        }
        "content_block_delta" => {
            let delta = &data["delta"];
            into.text(delta["text"].as_str());
            into.thinking(delta["thinking"].as_str());
            into.input(number(&data["index"]), delta["partial_json"].as_str());
        }
        "message_delta" => {
            into.reply.stop_reason = some_word(&data["delta"]["stop_reason"]).or(into.reply.stop_reason.take());
            usage(into, &data["usage"]);
        }
        "message_stop" => into.reply.ended = true,
        "error" => into.reply.error = Some(error_text(&data["error"])),
        _ => {}
    }
}

/// Later counts take the place of earlier ones.
fn usage(into: &mut Building, usage: &Json) {
    let counts = &mut into.reply.usage;
    for (member, count) in [
        ("input_tokens", &mut counts.input),
        ("output_tokens", &mut counts.output),
        ("cache_read_input_tokens", &mut counts.cache_read),
        ("cache_creation_input_tokens", &mut counts.cache_write),
    ] {
        if let Some(said) = usage[member].as_u64() {
            *count = said;
        }
    }
}

pub fn read_whole(into: &mut Building, body: &Json) {
    into.reply.model = some_word(&body["model"]);
    into.reply.stop_reason = some_word(&body["stop_reason"]);
    usage(into, &body["usage"]);
    for block in list(&body["content"]) {
        into.text(block["text"].as_str());
        into.thinking(block["thinking"].as_str());
        if block["type"] == "tool_use" {
            into.call(Call { id: word(&block["id"]), name: word(&block["name"]), input: block["input"].clone() });
        }
    }
}

fn content(reply: &Reply) -> Vec<Json> {
    let text =
        (!reply.text.is_empty() || reply.tool_calls.is_empty()).then(|| json!({"type": "text", "text": reply.text}));
    let calls = reply
        .tool_calls
        .iter()
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}));
    text.into_iter().chain(calls).collect()
}

fn reason(reply: &Reply) -> &str {
    let made = if reply.tool_calls.is_empty() { "end_turn" } else { "tool_use" };
    reply.stop_reason.as_deref().unwrap_or(made)
}

pub fn whole(reply: &Reply, id: &str) -> Json {
    let usage = &reply.usage;
    json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": reply.model,
        "content": content(reply), "stop_reason": reason(reply), "stop_sequence": null,
        "usage": {"input_tokens": usage.input, "output_tokens": usage.output,
            "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_write},
    })
}

pub fn events(reply: &Reply, id: &str) -> Vec<Event> {
    let mut message = whole(reply, id);
    message["content"] = json!([]);
    message["stop_reason"] = Json::Null;
    let mut events = vec![("message_start", json!({"type": "message_start", "message": message}))];
    for (index, mut block) in content(reply).into_iter().enumerate() {
        let (member, delta) = if block["type"] == "text" {
            ("text", json!({"type": "text_delta", "text": block["text"]}))
        } else {
            ("input", json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}))
        };
        // It begins empty, and the rest follows.
        block[member] = if member == "text" { json!("") } else { json!({}) };
        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.push(("content_block_start", start));
        events.push(("content_block_delta", delta));
        events.push(("content_block_stop", json!({"type": "content_block_stop", "index": index})));
    }
    let delta = json!({"stop_reason": reason(reply), "stop_sequence": null});
    let usage = json!({"output_tokens": reply.usage.output});
    events.push(("message_delta", json!({"type": "message_delta", "delta": delta, "usage": usage})));
    events.push(("message_stop", json!({"type": "message_stop"})));
    events
}
