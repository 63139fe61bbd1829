//! Messages put into a conversation: at a legal place, and in every later request of it.

use std::sync::{Arc, Mutex};

use bugeye::agent::gate::{Answer, Message, Verdict};
use serde_json::{Value, json};

use crate::canned::{self, Canned, all};
use crate::world::{Desk, Say, Upstream, post, post_with, tap};

fn message(role: &str, text: &str) -> Message {
    Message { role: role.into(), text: text.into() }
}

/// Answers the n-th question with these messages.
fn at(
    wanted: usize,
    messages: Vec<Message>,
) -> impl FnMut(&bugeye::agent::gate::Ask) -> Option<Answer> + Send + 'static {
    let count = Arc::new(Mutex::new(0));
    move |ask| {
        let mut count = count.lock().unwrap();
        *count += 1;
        assert!(ask.powers.inject);
        let inject = if *count == wanted { messages.clone() } else { Vec::new() };
        Some(Answer { verdict: Verdict::Proceed, inject })
    }
}

/// The conversation goes on as the agent knows it: the model's answer, and what a tool said.
fn next(canned: &Canned, number: usize) -> Value {
    let mut body = canned.question.clone();
    for round in 1..number {
        let id = format!("t{round}");
        let (member, items) = match canned.path {
            path if path.starts_with("/anthropic") => (
                "messages",
                json!([
                {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"},
                    {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "a.txt"}]}]),
            ),
            path if path.ends_with("/responses") => (
                "input",
                json!([
                {"type": "reasoning", "id": format!("rs_{round}"), "encrypted_content": "x", "summary": []},
                {"type": "function_call", "call_id": id, "name": "shell", "arguments": "{}"},
                {"type": "function_call_output", "call_id": id, "output": "a.txt"}]),
            ),
            path if path.ends_with("/completions") => (
                "messages",
                json!([
                {"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": id, "content": "a.txt"}]),
            ),
            _ => (
                "contents",
                json!([
                {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {}}, "thoughtSignature": "c2lnbmVk"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"output": "a.txt"}}}]}]),
            ),
        };
        body[member].as_array_mut().unwrap().extend(items.as_array().unwrap().iter().cloned());
    }
    body
}

fn history(body: &Value) -> Vec<Value> {
    let member = ["messages", "input", "contents"].into_iter().find(|member| body[*member].is_array()).unwrap();
    body[member].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_message_stays_where_it_was_put_in_all_later_requests() {
    for canned in all() {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let (line, desk) =
            Desk::judging(None, at(2, vec![message("user", "[debugger] one"), message("user", "[debugger] two")]));
        let served = tap(line, &upstream.url).await;
        for number in 1..=4 {
            assert_eq!(post(&served, canned.path, &next(&canned, number)).await.text(), canned.stream);
        }
        let seen = upstream.seen();
        assert_eq!(seen[0].body, canned.question.to_string().into_bytes(), "before, nothing is changed");
        let second = history(&seen[1].json());
        for (number, request) in seen.iter().enumerate().skip(1) {
            let sent = history(&request.json());
            // What the model has seen once it sees again, in the same place: its cache stays good.
            assert_eq!(sent[..second.len()], second, "{} {number}", canned.path);
            let text = request.json().to_string();
            assert_eq!((text.matches("[debugger] one").count(), text.matches("[debugger] two").count()), (1, 1));
            assert!(text.find("[debugger] one") < text.find("[debugger] two"));
            // The agent's own messages are there, unaltered and in order.
            let own = history(&next(&canned, number + 1));
            let mut rest = sent.iter();
            for (at, wanted) in own.iter().enumerate() {
                let same = |found: &Value| {
                    found == wanted || (canned.path.starts_with("/anthropic") && at == 2 && begins(found, wanted))
                };
                assert!(rest.any(same), "{} {number}: {wanted} in {sent:?}", canned.path);
            }
        }
        let asked = desk.asks();
        assert!(serde_json::to_string(&asked[3].conversation).unwrap().contains("[debugger] one"), "the model sees it");
        assert_eq!(desk.note("model.request", 2).await["changed"], json!(["inject"]));
        assert_eq!(desk.note("model.response", 1).await["changed"], json!(["inject"]));
        assert_legal(&canned, &second);
    }
}

/// Whether a message has all blocks of another, and then more.
fn begins(found: &Value, wanted: &Value) -> bool {
    let (Some(found), Some(wanted)) = (found["content"].as_array(), wanted["content"].as_array()) else { return false };
    found.len() > wanted.len() && found[..wanted.len()] == wanted[..]
}

/// It came after the result of the tool, and nothing stands between a call and its result.
fn assert_legal(canned: &Canned, items: &[Value]) {
    let last = items.last().unwrap();
    match canned.path {
        path if path.starts_with("/anthropic") => {
            assert_eq!(items.len(), 3);
            let kinds: Vec<_> = last["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
            assert_eq!(kinds, ["tool_result", "text", "text"]);
        }
        path if path.ends_with("/responses") => {
            let kinds: Vec<_> = items.iter().map(|item| item["type"].as_str().unwrap()).collect();
            assert_eq!(kinds[1..], ["reasoning", "function_call", "function_call_output", "message", "message"]);
        }
        path if path.ends_with("/completions") => {
            let roles: Vec<_> = items.iter().map(|item| item["role"].as_str().unwrap()).collect();
            assert_eq!(roles, ["system", "user", "assistant", "tool", "user", "user"]);
        }
        _ => assert_eq!(last, &json!({"role": "user", "parts": [{"text": "[debugger] two"}]})),
    }
}

#[tokio::test]
async fn marks_of_the_cache_move_and_the_message_does_not() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, _desk) = Desk::judging(None, at(1, vec![message("user", "[debugger] one")]));
    let served = tap(line, &upstream.url).await;
    let marked = |mut body: Value| {
        let last = body["messages"].as_array().unwrap().len() - 1;
        let text = body["messages"][last]["content"].clone();
        if text.is_string() {
            body["messages"][last]["content"] =
                json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}]);
        } else {
            body["messages"][last]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        }
        body
    };
    let mut first = canned.question.clone();
    first["messages"][0]["content"] = json!([{"type": "text", "text": "List the files."}]);
    let canned = Canned { question: first, ..canned };
    post(&served, canned.path, &marked(next(&canned, 1))).await;
    post(&served, canned.path, &marked(next(&canned, 2))).await;
    let second = upstream.seen()[1].json();
    assert_eq!(second["messages"][0]["content"][1]["text"], "[debugger] one");
    assert_eq!(second["messages"][2]["content"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn it_survives_a_compacted_history_and_ends_with_the_conversation() {
    let canned = canned::chat();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, _desk) = Desk::judging(None, at(2, vec![message("user", "[debugger] one")]));
    let served = tap(line, &upstream.url).await;
    post(&served, canned.path, &next(&canned, 1)).await;
    post(&served, canned.path, &next(&canned, 2)).await;
    // What it followed is gone, the beginning is the same.
    let mut compacted = canned.question.clone();
    compacted["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "A summary."}));
    post(&served, canned.path, &compacted).await;
    let sent = upstream.seen()[2].json();
    assert_eq!(sent["messages"][3], json!({"role": "user", "content": "[debugger] one"}));
    // Another conversation, and another thread, know nothing of it.
    let other =
        json!({"model": "m", "tools": canned.question["tools"], "messages": [{"role": "user", "content": "New."}]});
    post(&served, canned.path, &other).await;
    assert_eq!(upstream.seen()[3].json(), other);
    post_with(&served, canned.path, &["x-session-id: s", "x-parent-session-id: p"], &next(&canned, 2)).await;
    assert_eq!(upstream.seen()[4].json(), next(&canned, 2));
}

#[tokio::test]
async fn what_the_assistant_is_to_have_said_is_put_as_each_api_allows() {
    let wanted = [
        json!({"role": "user", "content": [{"type": "text", "text": "List the files."},
            {"type": "text", "text": "(to be read as said by the assistant) [debugger] hm"}]}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "[debugger] hm"}]}),
        json!({"role": "assistant", "content": "[debugger] hm"}),
        json!({"role": "user", "parts": [{"text": "(to be read as said by the assistant) [debugger] hm"}]}),
    ];
    for (canned, wanted) in all().iter().zip(wanted) {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let (line, _desk) = Desk::judging(None, at(1, vec![message("assistant", "[debugger] hm")]));
        let served = tap(line, &upstream.url).await;
        post(&served, canned.path, &canned.question).await;
        assert_eq!(history(&upstream.seen()[0].json()).last(), Some(&wanted));
    }
}

#[tokio::test]
async fn an_edited_request_takes_a_message_too() {
    let canned = canned::responses();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, _desk) = Desk::judging(None, |ask| {
        let mut value = ask.value.clone();
        value["input"] = json!("Only this.");
        Some(Answer { verdict: Verdict::Edit { value }, inject: vec![message("user", "[debugger] one")] })
    });
    let served = tap(line, &upstream.url).await;
    post(&served, canned.path, &canned.question).await;
    let sent = upstream.seen()[0].json();
    assert_eq!(
        sent["input"],
        json!([{"role": "user", "content": "Only this."},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "[debugger] one"}]}])
    );
}
