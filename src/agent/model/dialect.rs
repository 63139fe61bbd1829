//! How each vendor's API spells a conversation: one file per dialect, and what they have in common.
//!
//! Which one a request speaks is told by its path, not by the provider: many vendors speak another's. All of this is data
//! in, data out.

mod chat;
mod gemini;
mod messages;
mod responses;

use hyper::StatusCode;
use serde_json::{Value as Json, json};

use super::reply::{Building, Reply};
use crate::agent::gate::{Conversation, Message};

/// How a request to a model is spelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic Messages.
    Messages,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which many others speak too.
    Chat,
    /// Gemini's `generateContent`.
    Gemini,
}

/// An event of a stream: its name, which may be empty, and its data.
pub type Event = (&'static str, Json);

impl Dialect {
    /// That of a POST to this path, which is without its query.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        if path.ends_with("/messages") {
            Some(Self::Messages)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Messages, Self::Responses, Self::Chat, Self::Gemini].into_iter().find(|dialect| dialect.name() == name)
    }

    /// The member with the conversation, a list of which each next request has more.
    #[must_use]
    pub const fn history(self) -> &'static str {
        match self {
            Self::Messages | Self::Chat => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }

    /// The member with the system's instructions, where it is one of its own.
    #[must_use]
    pub const fn system(self) -> Option<&'static str> {
        match self {
            Self::Messages => Some("system"),
            Self::Responses => Some("instructions"),
            Self::Chat => None,
            Self::Gemini => Some("systemInstruction"),
        }
    }

    /// Whether the client wants the answer as events.
    #[must_use]
    pub fn streams(self, path: &str, query: &str, body: &Json) -> bool {
        match self {
            Self::Gemini => path.ends_with(":streamGenerateContent") && query.contains("alt=sse"),
            _ => body["stream"] == true,
        }
    }

    /// What the model is going to see.
    #[must_use]
    pub fn conversation(self, path: &str, body: &Json) -> Conversation {
        match self {
            Self::Messages => messages::conversation(body),
            Self::Responses => responses::conversation(body),
            Self::Chat => chat::conversation(body),
            Self::Gemini => gemini::conversation(path, body),
        }
    }

    /// The most that the model may answer, in tokens.
    #[must_use]
    pub fn most_tokens(self, body: &Json) -> Option<u64> {
        let most = match self {
            Self::Gemini => &body["generationConfig"]["maxOutputTokens"],
            Self::Responses => &body["max_output_tokens"],
            Self::Messages => &body["max_tokens"],
            Self::Chat if body["max_completion_tokens"].is_u64() => &body["max_completion_tokens"],
            Self::Chat => &body["max_tokens"],
        };
        most.as_u64()
    }

    /// Puts messages after the item `at` of the history, which was the last one when they were given: what stands there was
    /// for the model to answer, so that they never come between a call and its result.
    pub fn put(self, body: &mut Json, at: usize, messages: &[&Message]) {
        change_history(body, self.history(), |items| match self {
            Self::Messages => messages::put(items, at, messages),
            Self::Responses => insert(items, at, messages.iter().map(|message| responses::message(message))),
            Self::Chat => insert(items, at, messages.iter().map(|message| chat::said_by(message))),
            Self::Gemini => insert(items, at, messages.iter().map(|message| gemini::content(message))),
        });
    }

    /// Reads an event of a streamed answer.
    pub fn read_event(self, into: &mut Building, data: &Json) {
        match self {
            Self::Messages => messages::read_event(into, data),
            Self::Responses => responses::read_event(into, data),
            Self::Chat => chat::read_event(into, data),
            Self::Gemini => gemini::read_event(into, data),
        }
    }

    /// Reads an answer in one piece.
    pub fn read_whole(self, into: &mut Building, body: &Json) {
        if !body["error"].is_null() {
            into.reply.error = Some(error_text(&body["error"]));
            return;
        }
        match self {
            Self::Messages => messages::read_whole(into, body),
            Self::Responses => responses::read_whole(into, body),
            Self::Chat => chat::read_whole(into, body),
            Self::Gemini => gemini::read_whole(into, body),
        }
    }

    /// An answer of ours, as this client wants it: content type and content. `id` is new for each.
    #[must_use]
    pub fn say(self, request: &Json, reply: &Reply, id: &str, streams: bool) -> (&'static str, Vec<u8>) {
        if !streams {
            let whole = match self {
                Self::Messages => messages::whole(reply, id),
                Self::Responses => responses::whole(request, reply, id),
                Self::Chat => chat::whole(reply, id),
                Self::Gemini => gemini::whole(reply, id),
            };
            return (JSON, whole.to_string().into_bytes());
        }
        let events = match self {
            Self::Messages => messages::events(reply, id),
            Self::Responses => responses::events(request, reply, id),
            Self::Chat => chat::events(reply, id),
            Self::Gemini => vec![("", gemini::whole(reply, id))],
        };
        let mut text: String = events.iter().map(|(name, data)| event(name, &data.to_string())).collect();
        if self == Self::Chat {
            text.push_str(&event("", "[DONE]"));
        }
        (SSE, text.into_bytes())
    }

    /// The status of an error that clients don't answer by asking again. Claude Code takes 400 for a hint to ask with less.
    #[must_use]
    pub const fn refusal(self) -> StatusCode {
        match self {
            Self::Messages => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// An error in the shape that this client knows.
    #[must_use]
    pub fn error(self, status: u16, message: &str) -> Json {
        match self {
            Self::Messages => {
                let kind = match status {
                    403 => "permission_error",
                    400..500 => "invalid_request_error",
                    _ => "api_error",
                };
                json!({"type": "error", "error": {"type": kind, "message": message}})
            }
            Self::Responses | Self::Chat => {
                let kind = if status < 500 { "invalid_request_error" } else { "server_error" };
                json!({"error": {"message": message, "type": kind, "param": null, "code": "debugger"}})
            }
            Self::Gemini => {
                let kind = if status < 500 { "INVALID_ARGUMENT" } else { "UNAVAILABLE" };
                json!({"error": {"code": status, "message": message, "status": kind}})
            }
        }
    }
}

pub const JSON: &str = "application/json";
pub const SSE: &str = "text/event-stream";

/// One event of a stream, as it is sent.
#[must_use]
pub fn event(name: &str, data: &str) -> String {
    if name.is_empty() { format!("data: {data}\n\n") } else { format!("event: {name}\ndata: {data}\n\n") }
}

fn list(value: &Json) -> impl Iterator<Item = &Json> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_string()
}

fn some_word(value: &Json) -> Option<String> {
    value.as_str().map(str::to_string)
}

fn number(value: &Json) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// A text, or a list of parts of which some have a text.
fn text_of(content: &Json) -> String {
    match content {
        Json::String(text) => text.clone(),
        Json::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or_else(|| part["text"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        Json::Object(_) => content["text"].as_str().unwrap_or_default().to_string(),
        _ => String::new(),
    }
}

/// What a vendor says went wrong.
#[must_use]
pub fn error_text(error: &Json) -> String {
    let text = error["message"].as_str().or_else(|| error.as_str());
    text.map_or_else(|| error.to_string(), str::to_string)
}

/// A text that holds data, as some vendors write a call's input; the text itself where it does not.
fn parsed(text: &Json) -> Json {
    match text {
        Json::String(text) if text.is_empty() => json!({}),
        Json::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        other => other.clone(),
    }
}

/// Changes the history, as a list: one text is a list of one message.
fn change_history(body: &mut Json, member: &str, change: impl FnOnce(&mut Vec<Json>)) {
    let Some(members) = body.as_object_mut() else { return };
    let mut items = match members.get_mut(member).map(Json::take) {
        Some(Json::Array(items)) => items,
        Some(Json::String(text)) => vec![json!({"role": "user", "content": text})],
        _ => Vec::new(),
    };
    change(&mut items);
    members.insert(member.to_string(), Json::Array(items));
}

/// Puts items after another.
fn insert(items: &mut Vec<Json>, at: usize, new: impl Iterator<Item = Json>) {
    let at = (at + 1).min(items.len());
    items.splice(at..at, new);
}

/// A message's text for an API that takes nothing from the assistant but what it said itself.
fn by_user(message: &Message) -> String {
    if message.role == "assistant" {
        format!("(to be read as said by the assistant) {}", message.text)
    } else {
        message.text.clone()
    }
}
