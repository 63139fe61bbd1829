//! A conversation in each dialect, as vendors spell it: a question with a tool, and an answer that says something and
//! calls the tool.

use serde_json::{Value, json};

/// One dialect's.
pub struct Canned {
    /// The provider and the path of the question.
    pub path: &'static str,
    /// The same for an answer in one piece.
    pub whole_path: &'static str,
    pub question: Value,
    /// The answer as a stream of events.
    pub stream: String,
    pub whole: Value,
    /// What the model answered: text, the call's id and name, why it stopped, and tokens: in, out, from the cache.
    pub told: (&'static str, &'static str, &'static str, &'static str, [u64; 3]),
}

pub const SAID: &str = "Grüße, 世界 🌍";

fn named(events: &[(&str, Value)]) -> String {
    events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect()
}

pub fn messages() -> Canned {
    let question = json!({"model": "claude-sonnet-4-5-20250929", "max_tokens": 32000, "stream": true, "metadata": {"user_id": "u1"},
        "system": [{"type": "text", "text": "You help.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": "List the files."}]});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 11, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 3, "output_tokens": 1}});
    let stream = named(&[
        ("message_start", json!({"type": "message_start", "message": message})),
        ("ping", json!({"type": "ping"})),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße, 世"}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "界 🌍"}}),
        ),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 0})),
        (
            "content_block_start",
            json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"comm"}}),
        ),
        (
            "content_block_delta",
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "and\":\"ls\"}"}}),
        ),
        ("content_block_stop", json!({"type": "content_block_stop", "index": 1})),
        (
            "message_delta",
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        ),
        ("message_stop", json!({"type": "message_stop"})),
    ]);
    let mut whole = message;
    whole["content"] = json!([{"type": "text", "text": SAID}, {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]);
    whole["stop_reason"] = json!("tool_use");
    whole["usage"]["output_tokens"] = json!(9);
    let path = "/anthropic/v1/messages";
    Canned { path, whole_path: path, question, stream, whole, told: (SAID, "toolu_1", "Bash", "tool_use", [11, 9, 7]) }
}

pub fn responses() -> Canned {
    let question = json!({"model": "gpt-5.1-codex", "instructions": "You help.", "stream": true,
        "tools": [{"type": "function", "name": "shell", "parameters": {"type": "object"}}],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "List the files."}]}]});
    let items = [
        json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": SAID, "annotations": []}]}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "shell", "arguments": "{\"command\":\"ls\"}"}),
    ];
    let usage = json!({"input_tokens": 18, "input_tokens_details": {"cached_tokens": 7}, "output_tokens": 9, "total_tokens": 27});
    let whole = json!({"id": "resp_1", "object": "response", "status": "completed", "model": "gpt-5.1-codex", "output": items, "usage": usage});
    let stream = named(&[
        (
            "response.created",
            json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt-5.1-codex"}}),
        ),
        ("response.output_text.delta", json!({"type": "response.output_text.delta", "delta": SAID})),
        (
            "response.output_item.done",
            json!({"type": "response.output_item.done", "output_index": 0, "item": items[0]}),
        ),
        (
            "response.output_item.done",
            json!({"type": "response.output_item.done", "output_index": 1, "item": items[1]}),
        ),
        ("response.completed", json!({"type": "response.completed", "response": whole})),
    ]);
    let path = "/openai/responses";
    Canned { path, whole_path: path, question, stream, whole, told: (SAID, "call_1", "shell", "completed", [11, 9, 7]) }
}

pub fn chat() -> Canned {
    let question = json!({"model": "gpt-4.1", "stream": true,
        "tools": [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}],
        "messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": "List the files."}]});
    let chunk = |delta: Value, reason: Value| {
        json!({"id": "c1", "object": "chat.completion.chunk", "model": "gpt-4.1",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let call =
        json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "bash", "arguments": "{\"comm"}});
    let more = json!({"index": 0, "function": {"arguments": "and\":\"ls\"}"}});
    let usage = json!({"prompt_tokens": 18, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 7}});
    let events = [
        chunk(json!({"role": "assistant", "content": "Grüße, "}), Value::Null),
        chunk(json!({"content": "世界 🌍"}), Value::Null),
        chunk(json!({"tool_calls": [call]}), Value::Null),
        chunk(json!({"tool_calls": [more]}), Value::Null),
        chunk(json!({}), json!("tool_calls")),
        json!({"id": "c1", "object": "chat.completion.chunk", "model": "gpt-4.1", "choices": [], "usage": usage}),
    ];
    let stream = events.iter().map(|data| format!("data: {data}\r\n\r\n")).collect::<String>() + "data: [DONE]\r\n\r\n";
    let function = json!({"name": "bash", "arguments": "{\"command\":\"ls\"}"});
    let message = json!({"role": "assistant", "content": SAID, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]});
    let whole = json!({"id": "c1", "object": "chat.completion", "model": "gpt-4.1",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": usage});
    let path = "/openai/chat/completions";
    Canned { path, whole_path: path, question, stream, whole, told: (SAID, "call_1", "bash", "tool_calls", [11, 9, 7]) }
}

pub fn gemini() -> Canned {
    let question = json!({"systemInstruction": {"parts": [{"text": "You help."}]},
        "tools": [{"functionDeclarations": [{"name": "run", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [{"role": "user", "parts": [{"text": "List the files."}]}]});
    let part = |parts: Value| json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}], "modelVersion": "gemini-2.5-pro"});
    let usage = json!({"promptTokenCount": 18, "cachedContentTokenCount": 7, "candidatesTokenCount": 5, "thoughtsTokenCount": 4});
    let call = json!({"functionCall": {"name": "run", "args": {"command": "ls"}}});
    let mut last = part(json!([call]));
    last["candidates"][0]["finishReason"] = json!("STOP");
    last["usageMetadata"] = usage.clone();
    let events = [
        part(json!([{"text": "hm", "thought": true}])),
        part(json!([{"text": "Grüße, "}])),
        part(json!([{"text": "世界 🌍"}])),
        last,
    ];
    let stream = events.iter().map(|data| format!("data: {data}\r\n\r\n")).collect();
    let mut whole = part(json!([{"text": SAID}, call]));
    whole["candidates"][0]["finishReason"] = json!("STOP");
    whole["usageMetadata"] = usage;
    Canned {
        path: "/gemini/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        whole_path: "/gemini/v1beta/models/gemini-2.5-pro:generateContent",
        question,
        stream,
        whole,
        told: (SAID, "run", "run", "STOP", [11, 9, 7]),
    }
}

pub fn all() -> [Canned; 4] {
    [messages(), responses(), chat(), gemini()]
}
