//! What is kept of model calls: all of it, once.

use bugeye::agent::model::serve;
use bugeye::store::blobs;
use serde_json::{Value, json};

use crate::canned::{self, all};
use crate::world::{Desk, Say, Upstream, config, files, post, with_upstreams};

/// The size of a record: its events, and its blobs.
fn sizes(folder: &std::path::Path) -> (u64, u64) {
    let size = |in_blobs: bool| {
        files(folder)
            .iter()
            .filter(|(path, _)| path.parent().unwrap().ends_with("blobs") == in_blobs)
            .map(|(_, content)| content.len() as u64)
            .sum()
    };
    (size(false), size(true))
}

#[tokio::test]
async fn a_conversation_of_50_calls_is_kept_once_and_not_50_times() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let record = tempfile::tempdir().unwrap();
    let (line, desk) = Desk::judging(Some(record.path()), |_| Some(Default::default()));
    let mut config = with_upstreams(config(), &upstream.url);
    config.record = Some(record.path().into());
    let served = serve(line, config).await.unwrap();
    let mut body = canned.question.clone();
    // As large as a real agent's.
    body["system"] = json!([
        {"type": "text", "text": "x-anthropic-billing-header: cch=0"},
        {"type": "text", "text": "s".repeat(28_000), "cache_control": {"type": "ephemeral"}}]);
    body["tools"] = (0..12)
        .map(|at| json!({"name": format!("T{at}"), "description": "d".repeat(4000), "input_schema": {}}))
        .collect();
    let (mut sent, mut last) = (0, 0);
    for call in 0..50 {
        body["system"][0]["text"] = json!(format!("x-anthropic-billing-header: cch={call}"));
        // The mark stands at the last message, as Claude Code has it.
        let mut marked = body.clone();
        let at = marked["messages"].as_array().unwrap().len() - 1;
        if marked["messages"][at]["content"].is_array() {
            marked["messages"][at]["content"][0]["cache_control"] = json!({"type": "ephemeral"});
        }
        post(&served, canned.path, &marked).await;
        last = marked.to_string().len();
        sent += last;
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": format!("t{call}"), "name": "T1", "input": {"n": call}}]}));
        let output = format!("{call} {}", "o".repeat(2000));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("t{call}"), "content": output}]}));
    }
    desk.note("model.response", 49).await;
    let (events, blobs) = sizes(record.path());
    println!("50 calls: {sent} bytes sent, the last {last}; kept: blobs {blobs}, events {events}");
    // The last request has all that there was; the answers are the same each time.
    assert!(blobs < last as u64 + canned.stream.len() as u64 + 4000, "{blobs} of {last}");
    assert!(events < 50 * 3000, "{events}");
    assert!(sent as u64 > 30 * (events + blobs) / 2, "{sent} {events} {blobs}");

    // All of the last request can be put together again.
    let spans: Vec<Value> = desk.notes("model.request").into_iter().map(|note| note.data).collect();
    let mut parts: std::collections::HashMap<String, Vec<Value>> = std::collections::HashMap::new();
    for data in &spans {
        let said = &data["parts"];
        let mut list: Vec<Value> = said["after"].as_str().map(|span| parts[span].clone()).unwrap_or_default();
        list.truncate(said["keep"].as_u64().unwrap_or(0) as usize);
        list.extend(said["list"].as_array().unwrap().iter().cloned());
        parts.insert(data["span"].as_str().unwrap().into(), list);
    }
    let whole = &parts[spans[49]["span"].as_str().unwrap()];
    let messages: Vec<Value> = whole
        .iter()
        .filter(|part| part["part"] == "message")
        .map(|part| {
            serde_json::from_slice(&blobs::load(record.path(), part["ref"]["sha256"].as_str().unwrap()).unwrap())
                .unwrap()
        })
        .collect();
    assert_eq!(messages.len(), 99);
    assert_eq!(messages[..], body["messages"].as_array().unwrap()[..99]);
}

#[tokio::test]
async fn an_answer_is_kept_byte_for_byte() {
    for canned in all() {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let record = tempfile::tempdir().unwrap();
        let (line, desk) = Desk::judging(Some(record.path()), |_| Some(Default::default()));
        let mut config = with_upstreams(config(), &upstream.url);
        config.record = Some(record.path().into());
        let served = serve(line, config).await.unwrap();
        post(&served, canned.path, &canned.question).await;
        let body = desk.note("model.response", 0).await["body"].clone();
        assert_eq!((&body["exact"], &body["type"]), (&json!(true), &json!("text/event-stream")));
        let kept = blobs::load(record.path(), body["ref"]["sha256"].as_str().unwrap()).unwrap();
        assert_eq!(String::from_utf8(kept).unwrap(), canned.stream);
        use std::os::unix::fs::PermissionsExt as _;
        for (path, _) in files(&record.path().join("blobs")) {
            assert_eq!(std::fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}

#[tokio::test]
async fn secrets_are_not_kept_neither_of_questions_nor_of_answers() {
    const SECRET: &str = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    let mut canned = canned::messages();
    // In the answer it comes in pieces.
    canned.stream = canned.stream.replace("Grüße, 世", &SECRET[..15]).replace("界 🌍", &SECRET[15..]);
    canned.stream = canned.stream.replace("and\\\":\\\"ls", &format!("and\\\":\\\"echo {SECRET}"));
    canned.question["messages"][0]["content"] = json!(format!("My password=hunter22 and {SECRET}."));
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let record = tempfile::tempdir().unwrap();
    let (line, desk) = Desk::open();
    let mut config = with_upstreams(config(), &upstream.url);
    config.record = Some(record.path().into());
    let served = serve(line, config).await.unwrap();
    let got = post(&served, canned.path, &canned.question).await;
    assert_eq!(got.text(), canned.stream, "what passes through is never changed");
    let body = desk.note("model.response", 0).await["body"].clone();
    assert_eq!(body["exact"], false);
    let kept = String::from_utf8(blobs::load(record.path(), body["ref"]["sha256"].as_str().unwrap()).unwrap()).unwrap();
    assert!(kept.contains("echo <redacted>") && kept.contains("toolu_1"), "{kept}");
    for (path, content) in files(record.path()) {
        let text = String::from_utf8_lossy(&content).into_owned();
        for secret in [SECRET, &SECRET[15..], "hunter22"] {
            assert!(!text.contains(secret), "{secret} in {}", path.display());
        }
    }
}

#[tokio::test]
async fn a_record_that_can_t_be_written_is_told_once_and_the_agent_goes_on() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (line, desk) = Desk::open();
    let mut config = with_upstreams(config(), &upstream.url);
    config.record = Some(file);
    let served = serve(line, config).await.unwrap();
    for _ in 0..3 {
        assert_eq!(post(&served, canned.path, &canned.question).await.text(), canned.stream);
    }
    desk.note("model.response", 2).await;
    assert_eq!(desk.notes("model.unkept").len(), 1);
}
