//! Who asks: the agent's main loop or a sub-agent, and whether the question is one of the loop at all.
//!
//! Agents tell it in headers of their own; what is not told there is told by the request's shape.

use hyper::HeaderMap;
use serde_json::Value as Json;

use super::dialect::Dialect;
use crate::agent::gate::Conversation;

/// The longest name of a thread.
const LONGEST: usize = 128;
/// Nobody works with answers as short as this.
const TINY: u64 = 512;
/// Classes of requests, as Claude Code calls them, that are no turn of the loop.
const ASIDES: [&str; 3] = ["auxiliary", "side_reply", "compaction"];

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
}

/// `main`, or the id of the sub-agent that asks.
#[must_use]
pub fn thread(headers: &HeaderMap) -> String {
    let codex = || {
        let told: Option<Json> =
            header(headers, "x-codex-turn-metadata").and_then(|text| serde_json::from_str(text).ok());
        let name = told.as_ref().and_then(|told| told["agent_name"].as_str());
        let is_sub = header(headers, "x-codex-parent-thread-id").is_some()
            || header(headers, "x-openai-subagent").is_some()
            || name.is_some_and(|name| name != "/root");
        is_sub.then(|| header(headers, "thread-id")).flatten()
    };
    let opencode = || header(headers, "x-parent-session-id").and_then(|_| header(headers, "x-session-id"));
    let found = header(headers, "x-claude-code-agent-id").or_else(codex).or_else(opencode).unwrap_or("main");
    found.chars().filter(char::is_ascii_graphic).take(LONGEST).collect()
}

/// Whether this is a question beside the loop: a title, a check of the quota, a summary. It is never held.
#[must_use]
pub fn is_aside(headers: &HeaderMap, dialect: Dialect, body: &Json, conversation: &Conversation) -> bool {
    if let Some(class) = header(headers, "x-claude-code-request-class") {
        return ASIDES.contains(&class);
    }
    if header(headers, "x-openai-subagent") == Some("compact") {
        return true;
    }
    if !conversation.tools.is_empty() {
        return false;
    }
    let formatted =
        ["responseSchema", "responseJsonSchema"].iter().any(|name| !body["generationConfig"][*name].is_null())
            || !body["response_format"].is_null()
            || !body["output_config"]["format"].is_null();
    let system = conversation.system.as_deref().unwrap_or_default().as_bytes();
    let beginning = String::from_utf8_lossy(&system[..system.len().min(400)]).to_ascii_lowercase();
    formatted || beginning.contains("title") || dialect.most_tokens(body).is_some_and(|most| most <= TINY)
}

/// What is known of the agent itself.
#[must_use]
pub fn about(headers: &HeaderMap) -> Json {
    let agent = header(headers, "user-agent").and_then(|agent| agent.split([' ', '(']).next());
    let (name, version) = agent.map_or((None, None), |agent| match agent.split_once('/') {
        Some((name, version)) => (Some(name), Some(version)),
        None => (Some(agent), None),
    });
    let session =
        ["x-claude-code-session-id", "session-id", "x-session-id"].iter().find_map(|name| header(headers, name));
    serde_json::json!({"agent": name, "version": version, "session": session})
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn sub_agents_are_told_by_headers() {
        let of = |pairs: &[(&'static str, &'static str)]| thread(&headers(pairs));
        assert_eq!(of(&[]), "main");
        assert_eq!(of(&[("x-claude-code-session-id", "s")]), "main");
        assert_eq!(of(&[("x-claude-code-agent-id", "a1")]), "a1");
        assert_eq!(of(&[("thread-id", "t"), ("x-codex-turn-metadata", r#"{"agent_name":"/root"}"#)]), "main");
        assert_eq!(of(&[("thread-id", "t"), ("x-codex-turn-metadata", r#"{"agent_name":"/helper"}"#)]), "t");
        assert_eq!(of(&[("thread-id", "t"), ("x-codex-parent-thread-id", "p")]), "t");
        assert_eq!(of(&[("x-session-id", "s")]), "main");
        assert_eq!(of(&[("x-session-id", "s"), ("x-parent-session-id", "p")]), "s");
    }

    #[test]
    fn questions_beside_the_loop_are_known() {
        let aside = |pairs: &[(&'static str, &'static str)], body: &Json| {
            let dialect = Dialect::Messages;
            is_aside(&headers(pairs), dialect, body, &dialect.conversation("", body))
        };
        let tools = json!([{"name": "Bash"}]);
        assert!(aside(&[], &json!({"max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]})));
        assert!(aside(&[], &json!({"max_tokens": 32000, "system": "Generate a Title for this conversation."})));
        assert!(aside(&[("x-claude-code-request-class", "auxiliary")], &json!({"max_tokens": 32000, "tools": tools})));
        assert!(!aside(&[("x-claude-code-request-class", "main")], &json!({"max_tokens": 1})));
        assert!(!aside(&[], &json!({"max_tokens": 1, "tools": tools})));
        assert!(!aside(&[], &json!({"max_tokens": 32000, "system": "You are an agent."})));
    }
}
