//! OpenAI Chat Completions.

use serde_json::{Value as Json, json};

use super::{Event, error_text, list, number, parsed, some_word, text_of, word};
use crate::agent::gate::{Conversation, Message};
use crate::agent::model::reply::{Building, Call, Reply};

pub fn conversation(body: &Json) -> Conversation {
    let is_system = |message: &&Json| message["role"] == "system" || message["role"] == "developer";
    let system: Vec<String> =
        list(&body["messages"]).filter(is_system).map(|message| text_of(&message["content"])).collect();
    let tools = list(&body["tools"]).map(|tool| {
        let function = &tool["function"];
        json!({"name": function["name"], "description": function["description"], "schema": function["parameters"]})
    });
    Conversation {
        model: some_word(&body["model"]),
        messages: list(&body["messages"]).filter(|message| !is_system(message)).map(message).collect(),
        system: (!system.is_empty()).then(|| system.join("\n")),
        tools: tools.collect(),
    }
}

fn message(message: &Json) -> Json {
    if message["role"] == "tool" {
        let output = text_of(&message["content"]);
        let block = json!({"type": "tool_result", "id": message["tool_call_id"], "output": output, "error": false});
        return json!({"role": "tool", "content": [block]});
    }
    let calls: Vec<Call> = list(&message["tool_calls"]).map(called).collect();
    if calls.is_empty() {
        return json!({"role": message["role"], "content": message["content"]});
    }
    let said = text_of(&message["content"]);
    let text = (!said.is_empty()).then(|| json!({"type": "text", "text": said}));
    let calls = calls
        .into_iter()
        .map(|call| json!({"type": "tool_call", "id": call.id, "name": call.name, "input": call.input}));
    json!({"role": message["role"], "content": text.into_iter().chain(calls).collect::<Vec<_>>()})
}

fn called(call: &Json) -> Call {
    let function = &call["function"];
    Call { id: word(&call["id"]), name: word(&function["name"]), input: parsed(&function["arguments"]) }
}

pub fn said_by(message: &Message) -> Json {
    json!({"role": message.role, "content": message.text})
}

pub fn read_event(into: &mut Building, data: &Json) {
    if !data["error"].is_null() {
        into.reply.error = Some(error_text(&data["error"]));
    }
    into.reply.model = some_word(&data["model"]).or(into.reply.model.take());
    usage(into, &data["usage"]);
    // Only the first of several answers is the agent's.
    for choice in list(&data["choices"]).filter(|choice| number(&choice["index"]) == 0) {
        let delta = &choice["delta"];
        into.text(delta["content"].as_str());
        into.thinking(delta["reasoning_content"].as_str().or_else(|| delta["reasoning"].as_str()));
        for (at, call) in list(&delta["tool_calls"]).enumerate() {
            let index = call["index"].as_u64().unwrap_or(at as u64);
            let function = &call["function"];
            if call["id"].is_string() || function["name"].is_string() {
                into.open(index, word(&call["id"]), word(&function["name"]));
            }
            into.input(index, function["arguments"].as_str());
        }
        into.reply.stop_reason = some_word(&choice["finish_reason"]).or(into.reply.stop_reason.take());
    }
    into.reply.ended = into.reply.stop_reason.is_some();
}

fn usage(into: &mut Building, usage: &Json) {
    if usage.is_object() {
        let cached = number(&usage["prompt_tokens_details"]["cached_tokens"]);
        into.reply.usage.input = number(&usage["prompt_tokens"]).saturating_sub(cached);
        into.reply.usage.cache_read = cached;
        into.reply.usage.output = number(&usage["completion_tokens"]);
    }
}

pub fn read_whole(into: &mut Building, body: &Json) {
    into.reply.model = some_word(&body["model"]);
    usage(into, &body["usage"]);
    let Some(choice) = list(&body["choices"]).next() else { return };
    into.text(choice["message"]["content"].as_str());
    into.thinking(choice["message"]["reasoning_content"].as_str());
    list(&choice["message"]["tool_calls"]).for_each(|call| into.call(called(call)));
    into.reply.stop_reason = some_word(&choice["finish_reason"]);
}

/// What the assistant says, and why it stopped.
fn said(reply: &Reply) -> (Json, &str) {
    let content = if reply.text.is_empty() { Json::Null } else { json!(reply.text) };
    let mut message = json!({"role": "assistant", "content": content});
    if reply.tool_calls.is_empty() {
        return (message, reply.stop_reason.as_deref().unwrap_or("stop"));
    }
    let calls = reply.tool_calls.iter().enumerate().map(|(index, call)| {
        let function = json!({"name": call.name, "arguments": call.input.to_string()});
        json!({"index": index, "id": call.id, "type": "function", "function": function})
    });
    message["tool_calls"] = calls.collect();
    (message, reply.stop_reason.as_deref().unwrap_or("tool_calls"))
}

fn counted(reply: &Reply) -> Json {
    let usage = &reply.usage;
    let prompt = usage.input + usage.cache_read;
    json!({"prompt_tokens": prompt, "completion_tokens": usage.output, "total_tokens": prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read}})
}

pub fn whole(reply: &Reply, id: &str) -> Json {
    let (message, reason) = said(reply);
    json!({"id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": 0, "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}], "usage": counted(reply)})
}

pub fn events(reply: &Reply, id: &str) -> Vec<Event> {
    let (message, reason) = said(reply);
    let chunk = |delta: Json, reason: Option<&str>| {
        json!({"id": format!("chatcmpl-{id}"), "object": "chat.completion.chunk", "created": 0, "model": reply.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let mut last = chunk(json!({}), Some(reason));
    last["usage"] = counted(reply);
    vec![("", chunk(message, None)), ("", last)]
}
