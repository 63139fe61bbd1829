//! What is held waits; what is decided is done.

use std::time::Duration;

use bugeye::agent::gate::{Answer, Point, Verdict};
use bugeye::agent::model::dialect::Dialect;
use bugeye::agent::model::reply::Reader;
use bugeye::agent::model::serve;
use serde_json::{Value, json};

use crate::canned::{self, Canned, all};
use crate::world::{Desk, Say, Upstream, config, post, post_with, send, tap, until, with_upstreams};

fn verdict(verdict: Verdict) -> Answer {
    Answer { verdict, inject: Vec::new() }
}

async fn asked(served: &bugeye::agent::model::Served, canned: &Canned) -> crate::world::Waiting {
    send(served, &format!("POST {}", canned.path), &[], canned.question.to_string().as_bytes()).await
}

#[tokio::test]
async fn the_broker_is_asked_with_all_that_the_model_is_to_see() {
    for canned in all() {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let (line, desk) = Desk::open();
        let served = tap(line, &upstream.url).await;
        post(&served, canned.path, &canned.question).await;
        let ask = desk.asks().remove(0);
        assert_eq!((ask.point, ask.thread.as_str(), ask.aside), (Point::BeforeModel, "main", false));
        assert_eq!(ask.value, canned.question);
        assert!(ask.powers.hold && ask.powers.edit && ask.powers.synthesize && ask.powers.abort && ask.powers.inject);
        let conversation = ask.conversation.unwrap();
        assert_eq!(conversation.system.as_deref(), Some("You help."));
        assert_eq!(conversation.tools[0]["name"], canned.told.2);
        assert_eq!(conversation.messages[0]["role"], "user");
        let said = &conversation.messages[0]["content"];
        assert_eq!(said.as_str().or_else(|| said[0]["text"].as_str()), Some("List the files."));
        // The question is told before it is asked about.
        assert_eq!(desk.all_notes()[0].kind, "model.request");
        assert_eq!(desk.all_notes()[0].span, ask.span);
    }
}

#[tokio::test]
async fn calls_and_results_of_tools_have_one_form() {
    let call = json!({"type": "tool_call", "id": "t1", "name": "Bash", "input": {"command": "ls"}});
    let result = json!({"type": "tool_result", "id": "t1", "output": "a.txt", "error": false});
    let seen = |dialect: Dialect, body: Value| dialect.conversation("", &body).messages;
    let messages = seen(
        Dialect::Messages,
        json!({"messages": [
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "a.txt"}]}]}]}),
    );
    assert_eq!((&messages[0]["content"][1], &messages[1]["content"][0]), (&call, &result));
    let messages = seen(
        Dialect::Responses,
        json!({"input": [
        {"type": "function_call", "call_id": "t1", "name": "Bash", "arguments": "{\"command\":\"ls\"}"},
        {"type": "function_call_output", "call_id": "t1", "output": "a.txt"}]}),
    );
    assert_eq!((&messages[0]["content"][0], &messages[1]["content"][0]), (&call, &result));
    let messages = seen(
        Dialect::Chat,
        json!({"messages": [
        {"role": "assistant", "tool_calls": [{"id": "t1", "function": {"name": "Bash", "arguments": "{\"command\":\"ls\"}"}}]},
        {"role": "tool", "tool_call_id": "t1", "content": "a.txt"}]}),
    );
    assert_eq!((&messages[0]["content"][0], &messages[1]["content"][0]), (&call, &result));
    let messages = seen(
        Dialect::Gemini,
        json!({"contents": [
        {"role": "model", "parts": [{"functionCall": {"id": "t1", "name": "Bash", "args": {"command": "ls"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "t1", "name": "Bash", "response": {"output": "a.txt"}}}]}]}),
    );
    assert_eq!((&messages[0]["content"][0], &messages[1]["content"][0]), (&call, &result));
}

#[tokio::test]
async fn an_agent_is_held_until_it_is_let_go_and_gets_the_same_bytes() {
    for canned in all() {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let (line, desk) = Desk::judging(None, |_| None);
        let served = tap(line, &upstream.url).await;
        let waiting = asked(&served, &canned).await;
        until("it is held", || (desk.held() == 1).then_some(())).await;
        assert!(upstream.seen().is_empty());
        desk.answer(Answer::default()).await;
        let got = waiting.got().await;
        assert_eq!((got.status, got.text()), (200, canned.stream.clone()));
    }
}

#[tokio::test]
async fn only_one_that_gives_up_on_silence_hears_pings_while_it_is_held() {
    let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
    for canned in all() {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let (line, desk) = Desk::judging(None, |_| None);
        let mut config = with_upstreams(config(), &upstream.url);
        config.ping = Duration::from_millis(30);
        let served = serve(line, config).await.unwrap();
        let waiting = asked(&served, &canned).await;
        until("it is held", || (desk.held() == 1).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        desk.answer(Answer::default()).await;
        let got = waiting.got().await;
        let text = got.text();
        let rest = text.trim_start_matches(ping);
        assert_eq!((got.status, rest), (200, canned.stream.as_str()));
        let pings = (text.len() - rest.len()) / ping.len();
        assert!(
            if canned.path.starts_with("/anthropic") { pings >= 2 } else { pings == 0 },
            "{}: {pings}",
            canned.path
        );
        assert!(got.header("content-type").unwrap().starts_with("text/event-stream"));
    }
    // Nor one that wants no stream.
    let canned = canned::messages();
    let upstream = Upstream::always(Say::json(&canned.whole)).await;
    let (line, desk) = Desk::judging(None, |_| None);
    let mut config = with_upstreams(config(), &upstream.url);
    config.ping = Duration::from_millis(30);
    let served = serve(line, config).await.unwrap();
    let mut question = canned.question.clone();
    question["stream"] = json!(false);
    let waiting = send(&served, &format!("POST {}", canned.path), &[], question.to_string().as_bytes()).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    desk.answer(Answer::default()).await;
    assert_eq!(waiting.got().await.json(), canned.whole);
}

#[tokio::test]
async fn an_error_after_pings_is_an_event() {
    let canned = canned::messages();
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}});
    let answers = [
        (Answer::default(), error.clone()),
        (
            verdict(Verdict::Abort { reason: "enough".into() }),
            json!({"type": "error", "error": {"type": "permission_error", "message": "[debugger] enough"}}),
        ),
    ];
    for (answer, wanted) in answers {
        let upstream = Upstream::always(Say::error(529, &error)).await;
        let (line, desk) = Desk::judging(None, |_| None);
        let mut config = with_upstreams(config(), &upstream.url);
        config.ping = Duration::from_millis(20);
        let served = serve(line, config).await.unwrap();
        let waiting = asked(&served, &canned).await;
        until("it is held", || (desk.held() == 1).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(60)).await;
        desk.answer(answer).await;
        let text = waiting.got().await.text();
        assert!(text.ends_with(&format!("event: error\ndata: {wanted}\n\n")), "{text}");
        assert_eq!(desk.note("model.error", 0).await["message"].as_str(), wanted["error"]["message"].as_str());
    }
}

#[tokio::test]
async fn a_client_that_goes_withdraws_its_question_and_its_retry_has_the_same_key() {
    for canned in all() {
        for pings in [10_u64, 10_000] {
            let upstream = Upstream::always(Say::sse(&canned.stream)).await;
            let (line, desk) = Desk::judging(None, |_| None);
            let mut config = with_upstreams(config(), &upstream.url);
            config.ping = Duration::from_millis(pings);
            let served = serve(line, config).await.unwrap();
            let waiting = asked(&served, &canned).await;
            until("it is held", || (desk.held() == 1).then_some(())).await;
            tokio::time::sleep(Duration::from_millis(40)).await;
            drop(waiting);
            until("it is withdrawn", || (desk.withdrawn() == 1).then_some(())).await;
            // It asks again, with what is new in each request.
            let mut again = canned.question.clone();
            again["metadata"] = json!({"user_id": "u2"});
            let words = ["content-type: application/json", "x-stainless-retry-count: 1"];
            let waiting = send(&served, &format!("POST {}", canned.path), &words, again.to_string().as_bytes()).await;
            until("it is held again", || (desk.held() == 2).then_some(())).await;
            let asks = desk.asks();
            assert_eq!(asks[0].key, asks[1].key);
            assert_eq!(desk.note("model.retry", 0).await["call"], 1);
            // The broker knows it by its key, and answers the one who waits.
            desk.forget();
            desk.answer(Answer::default()).await;
            assert_eq!(
                waiting.got().await.text().trim_start_matches("event: ping\ndata: {\"type\": \"ping\"}\n\n"),
                canned.stream
            );
            assert_eq!(upstream.seen().len(), 1);
        }
    }
}

#[tokio::test]
async fn another_question_another_thread_and_another_call_have_keys_of_their_own() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    let mut other = canned.question.clone();
    other["messages"][0]["content"] = json!("List the folders.");
    post(&served, canned.path, &canned.question).await;
    post(&served, canned.path, &other).await;
    post_with(&served, canned.path, &["x-claude-code-agent-id: a1"], &canned.question).await;
    let asks = desk.asks();
    let mut keys: Vec<_> = asks.iter().map(|ask| ask.key.clone().unwrap()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 3);
    assert_eq!(asks[2].thread, "a1");
    let calls: Vec<_> = desk.notes("model.request").iter().map(|note| note.data["call"].clone()).collect();
    assert_eq!(calls, [json!(1), json!(2), json!(3)]);
}

#[tokio::test]
async fn an_edited_request_is_what_the_model_gets() {
    for canned in all() {
        let upstream = Upstream::always(Say::sse(&canned.stream)).await;
        let (line, desk) = Desk::judging(None, |ask| {
            let mut value = ask.value.clone();
            value["edited"] = json!(true);
            Some(verdict(Verdict::Edit { value }))
        });
        let served = tap(line, &upstream.url).await;
        assert_eq!(post(&served, canned.path, &canned.question).await.text(), canned.stream);
        let mut wanted = canned.question.clone();
        wanted["edited"] = json!(true);
        assert_eq!(upstream.seen()[0].json(), wanted);
        assert_eq!(desk.note("model.response", 0).await["changed"], json!(["edit"]));
    }
    // What is no request goes nowhere.
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, _desk) = Desk::judging(None, |_| Some(verdict(Verdict::Edit { value: json!("text") })));
    let served = tap(line, &upstream.url).await;
    assert_eq!(post(&served, canned.path, &canned.question).await.status, 403);
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn an_answer_of_the_debugger_s_has_the_vendor_s_shape_and_nobody_is_asked() {
    let value = json!({"text": "Done already.", "tool_calls": [{"name": "Bash", "input": {"command": "pwd"}}, {"id": "own", "name": "Read", "input": {}}]});
    for canned in all() {
        for streams in [true, false] {
            let upstream = Upstream::always(Say::sse(&canned.stream)).await;
            let said = value.clone();
            let (line, desk) = Desk::judging(None, move |_| Some(verdict(Verdict::Synthesize { value: said.clone() })));
            let served = tap(line, &upstream.url).await;
            let mut question = canned.question.clone();
            if question["stream"] == true {
                question["stream"] = json!(streams);
            }
            let path = if streams { canned.path } else { canned.whole_path };
            let got = post(&served, path, &question).await;
            assert_eq!((got.status, upstream.seen().len()), (200, 0));
            let kind = if streams { "text/event-stream" } else { "application/json" };
            assert_eq!(got.header("content-type"), Some(kind));
            let dialect = Dialect::of(path[1..].split('?').next().unwrap()).unwrap();
            let mut reader = Reader::new(dialect, streams);
            reader.push(&got.body());
            let reply = reader.done(true);
            assert_eq!(
                (reply.text.as_str(), reply.cut, reply.tool_calls.len()),
                ("Done already.", false, 2),
                "{}",
                got.text()
            );
            assert_eq!(
                (reply.tool_calls[0].name.as_str(), &reply.tool_calls[0].input),
                ("Bash", &json!({"command": "pwd"}))
            );
            assert_eq!(reply.tool_calls[1].id, "own");
            assert!(!reply.tool_calls[0].id.is_empty());
            let told = desk.note("model.response", 0).await;
            assert_eq!((&told["by"], &told["text"]), (&json!("debugger"), &json!("Done already.")));
        }
    }
}

#[tokio::test]
async fn what_is_aborted_or_denied_is_an_error_that_is_not_tried_again() {
    for canned in all() {
        for decided in [Verdict::Abort { reason: "enough".into() }, Verdict::Deny { reason: "enough".into() }] {
            let upstream = Upstream::always(Say::sse(&canned.stream)).await;
            let (line, desk) = Desk::judging(None, move |_| Some(verdict(decided.clone())));
            let served = tap(line, &upstream.url).await;
            let got = post(&served, canned.path, &canned.question).await;
            let status = if canned.path.starts_with("/anthropic") { 403 } else { 400 };
            assert_eq!((got.status, got.header("x-should-retry")), (status, Some("false")));
            assert_eq!(got.json()["error"]["message"], "[debugger] enough");
            assert!(upstream.seen().is_empty());
            assert_eq!(desk.note("model.error", 0).await["by"], "debugger");
            // Claude Code asks once more all the same: it is told the same, and nobody is asked again.
            let mut again = canned.question.clone();
            again["thinking"] = json!({"type": "adaptive"});
            assert_eq!(post(&served, canned.path, &again).await.status, status);
            assert_eq!(desk.asks().len(), 1);
            let mut other = canned.question.clone();
            other["tools"][0]["new"] = json!("other");
            post(&served, canned.path, &other).await;
            assert_eq!(desk.asks().len(), 2);
        }
    }
}

#[tokio::test]
async fn without_a_broker_the_agent_goes_on() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, told) = bugeye::agent::gate::Line::new(bugeye::agent::gate::Tap::Model);
    drop(told);
    let served = tap(line, &upstream.url).await;
    assert_eq!(post(&served, canned.path, &canned.question).await.text(), canned.stream);
}
