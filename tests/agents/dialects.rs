//! How each vendor's API spells a conversation: what the agent offers and answers, and what the model says.

use std::fmt;

use serde_json::{Map, Value, json};

use crate::model::{Answered, Call, Request, Turn};

/// One API. To add one is a constant here.
pub struct Dialect {
    pub name: &'static str,
    /// Whether a POST to this path is one.
    pub takes: fn(&str) -> bool,
    /// Whether it wants events rather than a whole answer.
    pub streams: fn(&Request) -> bool,
    /// The tools that the model may ask for, with the schema of what they take.
    pub tools: fn(&Value) -> Vec<(String, Value)>,
    /// What tools have answered so far.
    pub answers: fn(&Value) -> Vec<Answered>,
    /// The turn as events: name (may be empty) and data.
    pub events: fn(&Request, &Turn) -> Vec<(&'static str, Value)>,
    /// The turn in one piece.
    pub whole: fn(&Request, &Turn) -> Value,
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

pub const DIALECTS: &[Dialect] = &[
    Dialect {
        name: "Anthropic Messages",
        takes: |path| path.ends_with("/messages"),
        streams: |request| request.body["stream"] == true,
        tools: messages_tools,
        answers: messages_answers,
        events: messages_events,
        whole: messages_whole,
    },
    Dialect {
        name: "OpenAI Responses",
        takes: |path| path.ends_with("/responses"),
        streams: |request| request.body["stream"] == true,
        tools: responses_tools,
        answers: responses_answers,
        events: responses_events,
        whole: responses_whole,
    },
    Dialect {
        name: "OpenAI Chat Completions",
        takes: |path| path.ends_with("/chat/completions"),
        streams: |request| request.body["stream"] == true,
        tools: chat_tools,
        answers: chat_answers,
        events: chat_events,
        whole: chat_whole,
    },
    Dialect {
        name: "Gemini",
        takes: |path| path.ends_with(":streamGenerateContent") || path.ends_with(":generateContent"),
        streams: |request| request.path.contains(":streamGenerateContent"),
        tools: gemini_tools,
        answers: gemini_answers,
        events: |request, turn| vec![("", gemini_whole(request, turn))],
        whole: gemini_whole,
    },
];

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_string()
}

/// A text, or a list of parts of which some have a text.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        parts => list(parts).filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
    }
}

fn calls(turn: &Turn) -> &[Call] {
    if let Turn::Calls(calls) = turn { calls } else { &[] }
}

fn messages_tools(body: &Value) -> Vec<(String, Value)> {
    list(&body["tools"]).map(|tool| (word(&tool["name"]), tool["input_schema"].clone())).collect()
}

fn messages_answers(body: &Value) -> Vec<Answered> {
    let parts = list(&body["messages"]).flat_map(|message| list(&message["content"]));
    let results = parts.filter(|part| part["type"] == "tool_result");
    results
        .map(|part| Answered {
            call: word(&part["tool_use_id"]),
            text: text_of(&part["content"]),
            is_error: part["is_error"] == true,
        })
        .collect()
}

/// The parts of the model's message, and why it ended.
fn messages_content(request: &Request, turn: &Turn) -> (Vec<Value>, &'static str) {
    match turn {
        Turn::Text(text) => (vec![json!({"type": "text", "text": text})], "end_turn"),
        Turn::Calls(calls) => {
            let uses = calls.iter().enumerate().map(|(index, call)| {
                let id = format!("toolu_{:03}_{index}", request.number);
                json!({"type": "tool_use", "id": id, "name": call.tool, "input": call.input})
            });
            (uses.collect(), "tool_use")
        }
    }
}

fn messages_whole(request: &Request, turn: &Turn) -> Value {
    let (content, reason) = messages_content(request, turn);
    json!({
        "id": format!("msg_{:03}", request.number), "type": "message", "role": "assistant", "model": request.body["model"],
        "content": content, "stop_reason": reason, "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    })
}

fn messages_events(request: &Request, turn: &Turn) -> Vec<(&'static str, Value)> {
    let (content, reason) = messages_content(request, turn);
    let mut message = messages_whole(request, turn);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let mut events = vec![("message_start", json!({"message": message}))];
    for (index, mut block) in content.into_iter().enumerate() {
        let delta = match &block["text"] {
            Value::String(text) => json!({"type": "text_delta", "text": text}),
            _ => json!({"type": "input_json_delta", "partial_json": block["input"].to_string()}),
        };
        // It begins empty, and the rest follows.
        let (member, empty) = if block["text"].is_string() { ("text", json!("")) } else { ("input", json!({})) };
        block[member] = empty;
        events.push(("content_block_start", json!({"index": index, "content_block": block})));
        events.push(("content_block_delta", json!({"index": index, "delta": delta})));
        events.push(("content_block_stop", json!({"index": index})));
    }
    let delta = json!({"stop_reason": reason, "stop_sequence": null});
    events.push(("message_delta", json!({"delta": delta, "usage": {"output_tokens": 5}})));
    events.push(("message_stop", json!({})));
    events.into_iter().map(typed).collect()
}

/// Both name an event in its data too.
fn typed((name, data): (&'static str, Value)) -> (&'static str, Value) {
    let mut members = Map::new();
    members.insert("type".into(), json!(name));
    members.extend(data.as_object().cloned().unwrap_or_default());
    (name, Value::Object(members))
}

/// Tools of a namespace are told as `NAMESPACE__TOOL`.
fn responses_tools(body: &Value) -> Vec<(String, Value)> {
    let mut tools = Vec::new();
    for tool in list(&body["tools"]) {
        if tool["type"] == "namespace" {
            for inner in list(&tool["tools"]) {
                let name = format!("{}__{}", word(&tool["name"]), word(&inner["name"]));
                tools.push((name, inner["parameters"].clone()));
            }
        } else {
            let name = if tool["name"].is_string() { &tool["name"] } else { &tool["type"] };
            tools.push((word(name), tool["parameters"].clone()));
        }
    }
    tools
}

fn responses_answers(body: &Value) -> Vec<Answered> {
    let outputs = list(&body["input"]).filter(|item| word(&item["type"]).ends_with("_call_output"));
    // An error is told in the text alone.
    outputs
        .map(|item| Answered { call: word(&item["call_id"]), text: text_of(&item["output"]), is_error: false })
        .collect()
}

fn responses_items(request: &Request, turn: &Turn) -> Vec<Value> {
    if let Turn::Text(text) = turn {
        let content = json!([{"type": "output_text", "text": text, "annotations": []}]);
        let id = format!("msg_{:03}", request.number);
        return vec![json!({"type": "message", "id": id, "role": "assistant", "content": content})];
    }
    let item = |(index, call): (usize, &Call)| {
        let (id, call_id) =
            (format!("fc_{:03}_{index}", request.number), format!("call_{:03}_{index}", request.number));
        let mut item = json!({"type": "function_call", "id": id, "call_id": call_id, "name": call.tool});
        item["arguments"] = json!(call.input.to_string());
        let spaces = list(&request.body["tools"]).filter(|tool| tool["type"] == "namespace");
        for space in spaces.map(|space| word(&space["name"])) {
            if let Some(name) = call.tool.strip_prefix(&format!("{space}__")) {
                item["name"] = json!(name);
                item["namespace"] = json!(space);
            }
        }
        item
    };
    calls(turn).iter().enumerate().map(item).collect()
}

fn responses_whole(request: &Request, turn: &Turn) -> Value {
    let usage = json!({"input_tokens": 10, "input_tokens_details": null, "output_tokens": 5, "output_tokens_details": null,
        "total_tokens": 15});
    let id = format!("resp_{:03}", request.number);
    json!({"id": id, "object": "response", "status": "completed", "output": responses_items(request, turn), "usage": usage})
}

fn responses_events(request: &Request, turn: &Turn) -> Vec<(&'static str, Value)> {
    let whole = responses_whole(request, turn);
    let mut events = vec![("response.created", json!({"response": {"id": whole["id"]}}))];
    for (index, item) in list(&whole["output"]).enumerate() {
        for name in ["response.output_item.added", "response.output_item.done"] {
            events.push((name, json!({"output_index": index, "item": item})));
        }
    }
    events.push(("response.completed", json!({"response": whole})));
    events.into_iter().map(typed).collect()
}

fn chat_tools(body: &Value) -> Vec<(String, Value)> {
    let functions = list(&body["tools"]).map(|tool| &tool["function"]);
    functions.map(|function| (word(&function["name"]), function["parameters"].clone())).collect()
}

fn chat_answers(body: &Value) -> Vec<Answered> {
    let results = list(&body["messages"]).filter(|message| message["role"] == "tool");
    // An error is told in the text alone.
    results
        .map(|message| Answered {
            call: word(&message["tool_call_id"]),
            text: text_of(&message["content"]),
            is_error: false,
        })
        .collect()
}

/// The model's message, and why it ended.
fn chat_message(request: &Request, turn: &Turn) -> (Value, &'static str) {
    if let Turn::Text(text) = turn {
        return (json!({"role": "assistant", "content": text}), "stop");
    }
    let call = |(index, call): (usize, &Call)| {
        let function = json!({"name": call.tool, "arguments": call.input.to_string()});
        let id = format!("call_{:03}_{index}", request.number);
        json!({"index": index, "id": id, "type": "function", "function": function})
    };
    let calls: Vec<Value> = calls(turn).iter().enumerate().map(call).collect();
    (json!({"role": "assistant", "content": null, "tool_calls": calls}), "tool_calls")
}

fn chat_of(request: &Request, object: &str, choice: &Value) -> Value {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let id = format!("chatcmpl_{:03}", request.number);
    json!({"id": id, "object": object, "created": 1, "model": request.body["model"], "choices": [choice], "usage": usage})
}

fn chat_whole(request: &Request, turn: &Turn) -> Value {
    let (message, reason) = chat_message(request, turn);
    chat_of(request, "chat.completion", &json!({"index": 0, "message": message, "finish_reason": reason}))
}

fn chat_events(request: &Request, turn: &Turn) -> Vec<(&'static str, Value)> {
    let (message, reason) = chat_message(request, turn);
    let deltas = [(message, Value::Null), (json!({}), json!(reason))];
    let chunk = |(delta, reason): (Value, Value)| {
        chat_of(request, "chat.completion.chunk", &json!({"index": 0, "delta": delta, "finish_reason": reason}))
    };
    deltas.map(|delta| ("", chunk(delta))).into()
}

fn gemini_tools(body: &Value) -> Vec<(String, Value)> {
    let functions = list(&body["tools"]).flat_map(|tool| list(&tool["functionDeclarations"]));
    let schema = |function: &Value| match &function["parametersJsonSchema"] {
        Value::Null => function["parameters"].clone(),
        schema => schema.clone(),
    };
    functions.map(|function| (word(&function["name"]), schema(function))).collect()
}

fn gemini_answers(body: &Value) -> Vec<Answered> {
    let parts = list(&body["contents"]).flat_map(|content| list(&content["parts"]));
    let responses = parts.map(|part| &part["functionResponse"]).filter(|response| response.is_object());
    responses
        .map(|answer| Answered {
            call: word(&answer["id"]),
            text: match &answer["response"]["error"] {
                Value::Null => word(&answer["response"]["output"]),
                error => word(error),
            },
            is_error: !answer["response"]["error"].is_null(),
        })
        .collect()
}

fn gemini_whole(request: &Request, turn: &Turn) -> Value {
    let parts = match turn {
        Turn::Text(text) => vec![json!({"text": text})],
        Turn::Calls(calls) => {
            let part = |call: &Call| json!({"functionCall": {"name": call.tool, "args": call.input}});
            calls.iter().map(part).collect()
        }
    };
    let candidate = json!({"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0});
    let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
    let id = format!("gem_{:03}", request.number);
    json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "none", "responseId": id})
}
