//! Gemini's `generateContent`.

use serde_json::{Value as Json, json};

use super::{by_user, list, number, some_word, text_of};
use crate::agent::gate::{Conversation, Message};
use crate::agent::model::reply::{Building, Call, Reply};

pub fn conversation(path: &str, body: &Json) -> Conversation {
    // `/v1beta/models/NAME:generateContent`
    let model = path.rsplit('/').next().and_then(|last| last.split(':').next());
    let messages = list(&body["contents"]).map(|content| {
        let role = if content["role"] == "model" { json!("assistant") } else { content["role"].clone() };
        json!({"role": role, "content": list(&content["parts"]).map(part).collect::<Vec<_>>()})
    });
    let declared = list(&body["tools"]).flat_map(|tool| list(&tool["functionDeclarations"]));
    let tools = declared.map(|tool| {
        let schema = if tool["parameters"].is_null() { &tool["parametersJsonSchema"] } else { &tool["parameters"] };
        json!({"name": tool["name"], "description": tool["description"], "schema": schema})
    });
    let system = text_of(&body["systemInstruction"]["parts"]);
    Conversation {
        model: model.map(str::to_string),
        messages: messages.collect(),
        system: (!system.is_empty()).then_some(system),
        tools: tools.collect(),
    }
}

fn part(part: &Json) -> Json {
    if let Some(call) = called(part) {
        return json!({"type": "tool_call", "id": call.id, "name": call.name, "input": call.input});
    }
    let answer = &part["functionResponse"];
    if answer.is_object() {
        let response = &answer["response"];
        let output = ["output", "error", "result"].iter().find_map(|member| response[*member].as_str());
        let output = output.map_or_else(|| response.to_string(), str::to_string);
        let id = if answer["id"].is_string() { &answer["id"] } else { &answer["name"] };
        return json!({"type": "tool_result", "id": id, "output": output, "error": !response["error"].is_null()});
    }
    match part["text"].as_str() {
        Some(text) if part["thought"] != true => json!({"type": "text", "text": text}),
        _ => part.clone(),
    }
}

/// A call need not have an id here: then it goes by its name.
fn called(part: &Json) -> Option<Call> {
    let call = &part["functionCall"];
    let name = call["name"].as_str()?;
    let id = call["id"].as_str().unwrap_or(name);
    Some(Call { id: id.to_string(), name: name.to_string(), input: call["args"].clone() })
}

/// A content of its own: results of functions stay alone, as their number is counted.
pub fn content(message: &Message) -> Json {
    json!({"role": "user", "parts": [{"text": by_user(message)}]})
}

pub fn read_event(into: &mut Building, data: &Json) {
    if !data["error"].is_null() {
        into.reply.error = Some(super::error_text(&data["error"]));
    }
    into.reply.model = some_word(&data["modelVersion"]).or(into.reply.model.take());
    if let Some(candidate) = list(&data["candidates"]).next() {
        for part in list(&candidate["content"]["parts"]) {
            if part["thought"] == true {
                into.thinking(part["text"].as_str());
            } else {
                into.text(part["text"].as_str());
            }
            if let Some(call) = called(part) {
                into.call(call);
            }
        }
        into.reply.stop_reason = some_word(&candidate["finishReason"]).or(into.reply.stop_reason.take());
        into.reply.ended = into.reply.stop_reason.is_some();
    }
    let usage = &data["usageMetadata"];
    if usage.is_object() {
        let cached = number(&usage["cachedContentTokenCount"]);
        let prompt = number(&usage["promptTokenCount"]) + number(&usage["toolUsePromptTokenCount"]);
        into.reply.usage.input = prompt.saturating_sub(cached);
        into.reply.usage.cache_read = cached;
        into.reply.usage.output = number(&usage["candidatesTokenCount"]) + number(&usage["thoughtsTokenCount"]);
    }
}

/// A stream that is not of events is a list of the same.
pub fn read_whole(into: &mut Building, body: &Json) {
    match body {
        Json::Array(chunks) => chunks.iter().for_each(|chunk| read_event(into, chunk)),
        whole => read_event(into, whole),
    }
}

pub fn whole(reply: &Reply, id: &str) -> Json {
    let text = (!reply.text.is_empty() || reply.tool_calls.is_empty()).then(|| json!({"text": reply.text}));
    let calls = reply.tool_calls.iter().map(|call| {
        let mut function = json!({"name": call.name, "args": call.input});
        if call.id != call.name {
            function["id"] = json!(call.id);
        }
        json!({"functionCall": function})
    });
    let parts: Vec<Json> = text.into_iter().chain(calls).collect();
    let usage = &reply.usage;
    let prompt = usage.input + usage.cache_read;
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "index": 0,
            "finishReason": reply.stop_reason.as_deref().unwrap_or("STOP")}],
        "usageMetadata": {"promptTokenCount": prompt, "candidatesTokenCount": usage.output,
            "cachedContentTokenCount": usage.cache_read, "totalTokenCount": prompt + usage.output},
        "modelVersion": reply.model.as_deref().unwrap_or("unknown"), "responseId": id,
    })
}
