//! OpenAI Responses.

use serde_json::{Value as Json, json};

use super::{Event, error_text, list, number, parsed, some_word, text_of, word};
use crate::agent::gate::{Conversation, Message};
use crate::agent::model::reply::{Building, Call, Reply};

pub fn conversation(body: &Json) -> Conversation {
    let messages = match &body["input"] {
        Json::String(text) => vec![json!({"role": "user", "content": text})],
        items => list(items).map(item).collect(),
    };
    Conversation {
        model: some_word(&body["model"]),
        messages,
        system: some_word(&body["instructions"]),
        tools: list(&body["tools"]).flat_map(tools).collect(),
    }
}

fn item(item: &Json) -> Json {
    let kind = item["type"].as_str().unwrap_or("message");
    if kind == "message" {
        let content = match &item["content"] {
            Json::Array(parts) => Json::Array(parts.iter().map(part).collect()),
            other => other.clone(),
        };
        return json!({"role": item["role"], "content": content});
    }
    if kind.ends_with("_output") {
        let output = if item["output"].is_object() { item["output"].to_string() } else { text_of(&item["output"]) };
        let block = json!({"type": "tool_result", "id": item["call_id"], "output": output, "error": false});
        return json!({"role": "tool", "content": [block]});
    }
    match called(item) {
        Some(call) => {
            let block = json!({"type": "tool_call", "id": call.id, "name": call.name, "input": call.input});
            json!({"role": "assistant", "content": [block]})
        }
        None => json!({"role": "assistant", "content": [item]}),
    }
}

fn part(part: &Json) -> Json {
    match part["type"].as_str() {
        Some("input_text" | "output_text") => json!({"type": "text", "text": part["text"]}),
        _ => part.clone(),
    }
}

/// Tools of a namespace are told as `NAMESPACE__TOOL`.
fn tools(tool: &Json) -> Vec<Json> {
    let one = |tool: &Json, name: String| json!({"name": name, "description": tool["description"], "schema": tool["parameters"]});
    if tool["type"] == "namespace" {
        let inner = list(&tool["tools"]);
        return inner.map(|inner| one(inner, format!("{}__{}", word(&tool["name"]), word(&inner["name"])))).collect();
    }
    let name = if tool["name"].is_string() { &tool["name"] } else { &tool["type"] };
    vec![one(tool, word(name))]
}

/// The call of a tool that an item is.
fn called(item: &Json) -> Option<Call> {
    let kind = item["type"].as_str()?;
    if !kind.ends_with("_call") {
        return None;
    }
    let name = match (item["namespace"].as_str(), item["name"].as_str()) {
        (Some(space), Some(name)) => format!("{space}__{name}"),
        (None, Some(name)) => name.to_string(),
        // A tool of the API's own: `local_shell_call`.
        _ => kind.trim_end_matches("_call").to_string(),
    };
    let input = ["arguments", "input", "action"].iter().map(|member| &item[*member]).find(|value| !value.is_null());
    let id = if item["call_id"].is_string() { &item["call_id"] } else { &item["id"] };
    Some(Call { id: word(id), name, input: input.map(parsed).unwrap_or_default() })
}

/// An item of its own; this API takes either role anywhere that is not between a call and its output.
pub fn message(message: &Message) -> Json {
    let (role, kind) = if message.role == "assistant" { ("assistant", "output_text") } else { ("user", "input_text") };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": message.text}]})
}

pub fn read_event(into: &mut Building, data: &Json) {
    match data["type"].as_str().unwrap_or_default() {
        "response.output_item.done" => read_item(into, &data["item"]),
        "response.created" => into.reply.model = some_word(&data["response"]["model"]),
        "response.completed" | "response.incomplete" | "response.failed" => {
            into.reply.ended = true;
            read_end(into, &data["response"]);
        }
        "error" => into.reply.error = Some(error_text(if data["error"].is_null() { data } else { &data["error"] })),
        _ => {}
    }
}

fn read_item(into: &mut Building, item: &Json) {
    match item["type"].as_str() {
        Some("message") => into.text(Some(&text_of(&item["content"]))),
        Some("reasoning") => into.thinking(Some(&text_of(&item["summary"]))),
        _ => {
            if let Some(call) = called(item) {
                into.call(call);
            }
        }
    }
}

fn read_end(into: &mut Building, response: &Json) {
    let usage = &response["usage"];
    let cached = number(&usage["input_tokens_details"]["cached_tokens"]);
    into.reply.usage.input = number(&usage["input_tokens"]).saturating_sub(cached);
    into.reply.usage.cache_read = cached;
    into.reply.usage.output = number(&usage["output_tokens"]);
    into.reply.model = some_word(&response["model"]).or(into.reply.model.take());
    let reason = some_word(&response["incomplete_details"]["reason"]);
    into.reply.stop_reason = reason.or_else(|| some_word(&response["status"]));
    if !response["error"].is_null() {
        into.reply.error = Some(error_text(&response["error"]));
    }
}

pub fn read_whole(into: &mut Building, body: &Json) {
    list(&body["output"]).for_each(|item| read_item(into, item));
    read_end(into, body);
}

fn items(request: &Json, reply: &Reply, id: &str) -> Vec<Json> {
    let mut items = Vec::new();
    if !reply.text.is_empty() || reply.tool_calls.is_empty() {
        let content = json!([{"type": "output_text", "text": reply.text, "annotations": []}]);
        items.push(json!({"type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed", "content": content}));
    }
    let calls = reply.tool_calls.iter().enumerate();
    items.extend(calls.map(|(at, call)| call_item(request, call, &format!("fc_{id}_{at}"))));
    items
}

/// A call as this client offered the tool: of a namespace, with free text, or plain.
fn call_item(request: &Json, call: &Call, id: &str) -> Json {
    let custom = list(&request["tools"]).any(|tool| tool["type"] == "custom" && tool["name"] == call.name.as_str());
    if custom {
        let input = call.input.as_str().map_or_else(|| call.input.to_string(), str::to_string);
        return json!({"type": "custom_tool_call", "id": id, "call_id": call.id, "name": call.name, "input": input});
    }
    let mut item = json!({"type": "function_call", "id": id, "call_id": call.id, "name": call.name,
        "arguments": call.input.to_string(), "status": "completed"});
    let spaces = list(&request["tools"]).filter(|tool| tool["type"] == "namespace");
    for space in spaces.map(|space| word(&space["name"])) {
        if let Some(name) = call.name.strip_prefix(&format!("{space}__")) {
            item["name"] = json!(name);
            item["namespace"] = json!(space);
        }
    }
    item
}

pub fn whole(request: &Json, reply: &Reply, id: &str) -> Json {
    let usage = &reply.usage;
    let input = usage.input + usage.cache_read;
    let usage = json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output,
    });
    json!({"id": format!("resp_{id}"), "object": "response", "status": "completed", "model": reply.model,
        "output": items(request, reply, id), "usage": usage})
}

pub fn events(request: &Json, reply: &Reply, id: &str) -> Vec<Event> {
    let whole = whole(request, reply, id);
    let begun = json!({"id": whole["id"], "object": "response", "status": "in_progress", "output": []});
    let mut events = vec![("response.created", json!({"type": "response.created", "response": begun}))];
    for (index, item) in list(&whole["output"]).enumerate() {
        for name in ["response.output_item.added", "response.output_item.done"] {
            events.push((name, json!({"type": name, "output_index": index, "item": item})));
        }
    }
    events.push(("response.completed", json!({"type": "response.completed", "response": whole})));
    events
}
