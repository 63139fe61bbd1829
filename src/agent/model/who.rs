//! Who asks: the agent's main loop or a sub-agent, and whether the question is one of the loop at all.
//!
//! Agents tell it in headers of their own; what is not told there is told by the request's shape.

use std::sync::OnceLock;

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

/// How agents that are known call themselves.
const AGENTS: [&str; 4] = ["claude-cli", "codex", "geminicli", "opencode"];

/// Clients that many programs use: they are not who asks.
const CLIENTS: [&str; 2] = ["OpenAI", "Anthropic"];

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|value| !value.is_empty())
}

/// The session that a request names.
fn session(headers: &HeaderMap) -> Option<&str> {
    ["x-claude-code-session-id", "session-id", "x-session-id"].iter().find_map(|name| header(headers, name))
}

/// `main`, or the id of the sub-agent that asks. `first`: the first session that was seen. Another one is a new conversation of
/// the agent's, as its hooks tell, or of an agent that it has started, which has inherited its base URL. OpenCode's plugin is
/// inherited too, and says `main` for both.
#[must_use]
pub fn thread(headers: &HeaderMap, first: &OnceLock<String>) -> String {
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
    let named = || ["x-claude-code-session-id", "session-id"].iter().find_map(|name| header(headers, name));
    let other = || named().filter(|session| first.get_or_init(|| (*session).to_string()) != session);
    let found = header(headers, "x-claude-code-agent-id").or_else(codex).or_else(opencode).or_else(other);
    let found = found.unwrap_or("main");
    found.chars().filter(char::is_ascii_graphic).take(LONGEST).collect()
}

/// Whether an agent asks whose questions beside its loop are known.
fn is_known(headers: &HeaderMap) -> bool {
    let agent = header(headers, "user-agent").unwrap_or_default().to_ascii_lowercase();
    AGENTS.iter().any(|name| agent.starts_with(name))
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
    // What a program of the user's own asks is what it does, however short.
    if !conversation.tools.is_empty() || !is_known(headers) {
        return false;
    }
    let formatted =
        ["responseSchema", "responseJsonSchema"].iter().any(|name| !body["generationConfig"][*name].is_null())
            || !body["response_format"].is_null()
            || !body["output_config"]["format"].is_null()
            || body["text"]["format"]["type"] == "json_schema";
    let system = conversation.system.as_deref().unwrap_or_default().as_bytes();
    let beginning = String::from_utf8_lossy(&system[..system.len().min(400)]).to_ascii_lowercase();
    formatted || beginning.contains("title") || dialect.most_tokens(body).is_some_and(|most| most <= TINY)
}

/// What is known of the agent itself.
#[must_use]
pub fn about(headers: &HeaderMap) -> Json {
    let agent = header(headers, "user-agent").and_then(|agent| agent.split([' ', '(']).next());
    let agent = agent.filter(|agent| !CLIENTS.iter().any(|client| agent.starts_with(client)));
    let (name, version) = agent.map_or((None, None), |agent| match agent.split_once('/') {
        Some((name, version)) => (Some(name), Some(version)),
        None => (Some(agent), None),
    });
    serde_json::json!({"agent": name, "version": version, "session": session(headers)})
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
        let of = |pairs: &[(&'static str, &'static str)]| thread(&headers(pairs), &OnceLock::new());
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
    fn an_agent_is_not_called_as_the_client_that_it_uses() {
        let of = |agent: &'static str| about(&headers(&[("user-agent", agent)]));
        assert_eq!(of("codex_exec/0.166.0 (x)"), json!({"agent": "codex_exec", "version": "0.166.0", "session": null}));
        assert_eq!(of("OpenAI/JS 5.20.1"), json!({"agent": null, "version": null, "session": null}));
    }

    #[test]
    fn an_agent_that_the_agent_starts_is_a_thread_of_its_own() {
        let first = OnceLock::new();
        let of = |pairs: &[(&'static str, &'static str)]| thread(&headers(pairs), &first);
        for name in ["x-claude-code-session-id", "session-id"] {
            assert_eq!(of(&[(name, "one")]), "main");
            assert_eq!(of(&[(name, "two")]), "two");
        }
        assert_eq!(of(&[("x-claude-code-session-id", "two"), ("x-claude-code-agent-id", "a1")]), "a1");
        assert_eq!((of(&[]), of(&[("x-session-id", "two")])), ("main".into(), "main".into()));
    }

    #[test]
    fn questions_beside_the_loop_are_known() {
        let aside = |pairs: &[(&'static str, &'static str)], body: &Json| {
            let dialect = Dialect::Messages;
            is_aside(&headers(pairs), dialect, body, &dialect.conversation("", body))
        };
        let tools = json!([{"name": "Bash"}]);
        let short = json!({"max_tokens": 1, "messages": [{"role": "user", "content": "quota"}]});
        let title = json!({"max_tokens": 32000, "system": "Generate a Title for this conversation."});
        let formatted = json!({"response_format": {"type": "json_schema"}});
        let title_of_codex = json!({"text": {"format": {"type": "json_schema"}}});
        for agent in
            ["claude-cli/2.1.325 (external, sdk-cli)", "codex_exec/0.166.0", "GeminiCLI/0.61.0/x", "opencode/1"]
        {
            let agent = [("user-agent", agent)];
            assert!(aside(&agent, &short) && aside(&agent, &title) && aside(&agent, &formatted));
            assert!(aside(&agent, &title_of_codex) && !aside(&agent, &json!({"text": {"format": {"type": "text"}}})));
            assert!(!aside(&agent, &json!({"max_tokens": 1, "tools": tools})));
            assert!(!aside(&agent, &json!({"max_tokens": 32000, "system": "You are an agent."})));
        }
        // A program of the user's own has no such questions: all are its work.
        for agent in [&[][..], &[("user-agent", "Anthropic/Python 0.75.0")]] {
            assert!(!aside(agent, &short) && !aside(agent, &title) && !aside(agent, &formatted));
        }
        assert!(aside(&[("x-claude-code-request-class", "auxiliary")], &json!({"max_tokens": 32000, "tools": tools})));
        assert!(!aside(&[("x-claude-code-request-class", "main")], &json!({"max_tokens": 1})));
    }
}
