//! A run once more, with the answers of its record.

use std::path::Path;

use bugeye::agent::gate::{Answer, Verdict};
use bugeye::agent::model::{Config, Rerun, serve};
use serde_json::{Value, json};

use crate::canned::{Canned, all, messages};
use crate::world::{Desk, Say, Upstream, config, post, post_with, with_upstreams};

/// The n-th answer of the model: each is another.
fn answer(canned: &Canned, number: usize) -> String {
    canned.stream.replace("Grüße", &format!("Answer {number}")).replace("_1\"", &format!("_{number}\""))
}

/// The n-th question: all before, and the answer.
fn question(canned: &Canned, number: usize, said: &str) -> Value {
    let mut body = canned.question.clone();
    let member = ["messages", "input", "contents"].into_iter().find(|member| body[*member].is_array()).unwrap();
    for round in 1..number {
        let text = format!("{said} {round}");
        let item = if member == "contents" {
            json!({"role": "user", "parts": [{"text": text}]})
        } else {
            json!({"role": "user", "content": text})
        };
        body[member].as_array_mut().unwrap().push(item);
    }
    body
}

/// Records a run of three calls, with a question aside and a list of models.
async fn record(canned: &Canned, folder: &Path) -> Vec<String> {
    let shared = Canned {
        question: canned.question.clone(),
        whole: canned.whole.clone(),
        stream: canned.stream.clone(),
        ..*canned
    };
    let upstream = Upstream::start(move |seen, _| {
        if !seen.line.starts_with("POST") {
            return Say::json(&json!({"models": ["recorded"]}));
        }
        let items = ["messages", "input", "contents"]
            .iter()
            .find_map(|member| seen.json()[*member].as_array().map(Vec::len))
            .unwrap();
        let first = ["messages", "input", "contents"]
            .iter()
            .find_map(|member| shared.question[*member].as_array().map(Vec::len))
            .unwrap();
        Say::sse(&answer(&shared, items - first + 1))
    })
    .await;
    let (line, desk) = Desk::judging(Some(folder), |_| Some(Answer::default()));
    let mut config = with_upstreams(config(), &upstream.url);
    config.record = Some(folder.into());
    let served = serve(line, config).await.unwrap();
    let mut answers = Vec::new();
    for number in 1..=3 {
        answers.push(post(&served, canned.path, &question(canned, number, "Go on")).await.text());
    }
    crate::world::send(&served, "GET /openai/models", &[], b"").await.got().await;
    desk.note("model.response", 2).await;
    desk.note("model.other", 0).await;
    answers
}

fn again(folder: &Path, fork_at: Option<u32>) -> Config {
    let mut config = config();
    config.replay = Some(Rerun { folder: folder.into(), fork_at });
    config
}

#[tokio::test]
async fn a_run_is_repeated_byte_for_byte_and_nobody_is_asked() {
    for canned in all() {
        let folder = tempfile::tempdir().unwrap();
        let answers = record(&canned, folder.path()).await;
        assert_eq!(answers.len(), 3);
        let live = Upstream::always(Say::sse("live")).await;
        let (line, desk) = Desk::open();
        let served = serve(line, with_upstreams(again(folder.path(), None), &live.url)).await.unwrap();
        for number in 1..=3 {
            let got = post(&served, canned.path, &question(&canned, number, "Go on")).await;
            assert_eq!((got.status, got.text()), (200, answers[number - 1].clone()));
            assert_eq!(got.header("content-type"), Some("text/event-stream"));
        }
        let models = crate::world::send(&served, "GET /openai/models", &[], b"").await.got().await;
        assert_eq!(models.json(), json!({"models": ["recorded"]}));
        assert!(live.seen().is_empty());
        assert!(desk.notes("rerun.diverged").is_empty(), "{:?}", desk.notes("rerun.diverged"));
        // Breakpoints work as ever.
        assert_eq!(desk.asks().len(), 3);
        let told = desk.note("model.response", 2).await;
        assert_eq!((&told["by"], &told["call"], &told["usd"]), (&json!("recording"), &json!(3), &json!(null)));
        // It has no fourth.
        let got = post(&served, canned.path, &question(&canned, 4, "Go on")).await;
        let status = if canned.path.starts_with("/anthropic") { 403 } else { 400 };
        assert_eq!((got.status, got.header("x-should-retry")), (status, Some("false")));
        let why = got.json()["error"]["message"].as_str().unwrap().to_string();
        assert!(why.contains("the recording is over: main had 3 calls"), "{why}");
        assert!(live.seen().is_empty());
    }
}

#[tokio::test]
async fn a_question_that_differs_is_told_before_the_gate_and_answered_all_the_same() {
    for canned in all() {
        let folder = tempfile::tempdir().unwrap();
        let answers = record(&canned, folder.path()).await;
        let live = Upstream::always(Say::sse("live")).await;
        let (line, desk) = Desk::judging(None, |_| Some(Answer::default()));
        let served = serve(line, with_upstreams(again(folder.path(), None), &live.url)).await.unwrap();
        post(&served, canned.path, &question(&canned, 1, "Go on")).await;
        let got = post(&served, canned.path, &question(&canned, 2, "Go back")).await;
        assert_eq!(got.text(), answers[1]);
        let told = desk.note("rerun.diverged", 0).await;
        assert_eq!(
            (&told["call"], &told["recorded"], &told["now"]),
            (&json!(2), &json!("Go on 1"), &json!("Go back 1"))
        );
        let at = if canned.path.ends_with("completions") { 2 } else { 1 };
        assert_eq!(told["what"], format!("message[{at}]"));
        let kinds: Vec<String> = desk.all_notes().into_iter().map(|note| note.kind).collect();
        let (first, second) = (["model.request", "model.calls", "model.response"], ["model.calls", "model.response"]);
        assert_eq!(kinds, [&first[..], &["model.request", "rerun.diverged"], &second].concat());
        assert_eq!(desk.asks().len(), 2);
    }
}

#[tokio::test]
async fn what_every_call_carries_differs_once_and_what_is_new_in_every_run_never() {
    let mut canned = messages();
    canned.question["system"][0]["text"] = json!("You help.\nToday is 2026-11-16.\nFolder: /tmp/run-aX12/project");
    let folder = tempfile::tempdir().unwrap();
    record(&canned, folder.path()).await;
    let (line, desk) = Desk::open();
    let served = serve(line, with_upstreams(again(folder.path(), None), "http://127.0.0.1:1")).await.unwrap();
    canned.question["system"][0]["text"] = json!("You help.\nToday is 2027-02-03.\nFolder: /tmp/run-q9Zb/project");
    post(&served, canned.path, &question(&canned, 1, "Go on")).await;
    assert!(desk.notes("rerun.diverged").is_empty(), "{:?}", desk.notes("rerun.diverged"));
    canned.question["tools"][0]["description"] = json!("runs no more");
    post(&served, canned.path, &question(&canned, 2, "Go on")).await;
    post(&served, canned.path, &question(&canned, 3, "Go on")).await;
    let told = desk.notes("rerun.diverged");
    assert_eq!(told.len(), 1);
    assert_eq!((&told[0].data["what"], &told[0].data["now"]), (&json!("tool[0]"), &json!("runs no more")));
}

#[tokio::test]
async fn from_the_fork_on_the_model_is_asked() {
    let canned = messages();
    let folder = tempfile::tempdir().unwrap();
    let answers = record(&canned, folder.path()).await;
    let live = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, desk) = Desk::open();
    let served = serve(line, with_upstreams(again(folder.path(), Some(2)), &live.url)).await.unwrap();
    assert_eq!(post(&served, canned.path, &question(&canned, 1, "Go on")).await.text(), answers[0]);
    assert!(live.seen().is_empty());
    assert_eq!(post(&served, canned.path, &question(&canned, 2, "Go another way")).await.text(), canned.stream);
    assert_eq!(live.seen().len(), 1);
    assert_eq!(live.seen()[0].json(), question(&canned, 2, "Go another way"));
    assert!(desk.notes("rerun.diverged").is_empty(), "what goes another way on purpose differs from nothing");
    assert_eq!(desk.note("model.response", 1).await["by"], "upstream");
}

#[tokio::test]
async fn a_question_put_again_is_answered_again_and_a_failure_that_was_tried_again_is_left_out() {
    let canned = messages();
    let folder = tempfile::tempdir().unwrap();
    let shared = messages();
    let upstream = Upstream::start(move |_, number| {
        if number == 0 {
            Say::error(529, &json!({"type": "error", "error": {"message": "busy"}}))
        } else {
            Say::sse(&answer(&shared, number))
        }
    })
    .await;
    let (line, desk) = Desk::judging(Some(folder.path()), |_| Some(Answer::default()));
    let mut recording = with_upstreams(config(), &upstream.url);
    recording.record = Some(folder.path().into());
    let served = serve(line, recording).await.unwrap();
    assert_eq!(post(&served, canned.path, &question(&canned, 1, "Go on")).await.status, 529);
    let first = post(&served, canned.path, &question(&canned, 1, "Go on")).await.text();
    let second = post(&served, canned.path, &question(&canned, 2, "Go on")).await.text();
    desk.note("model.response", 1).await;

    let (line, _desk) = Desk::open();
    let served = serve(line, with_upstreams(again(folder.path(), None), "http://127.0.0.1:1")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(post(&served, canned.path, &question(&canned, 1, "Go on")).await.text(), first);
    }
    assert_eq!(post(&served, canned.path, &question(&canned, 2, "Go on")).await.text(), second);
}

#[tokio::test]
async fn sub_agents_have_answers_of_their_own_whatever_they_are_called() {
    let canned = messages();
    let folder = tempfile::tempdir().unwrap();
    let shared = messages();
    let upstream = Upstream::start(move |_, number| Say::sse(&answer(&shared, number))).await;
    let (line, desk) = Desk::judging(Some(folder.path()), |_| Some(Answer::default()));
    let mut recording = with_upstreams(config(), &upstream.url);
    recording.record = Some(folder.path().into());
    let served = serve(line, recording).await.unwrap();
    let of = |words: &str| {
        let mut body = canned.question.clone();
        body["messages"][0]["content"] = json!(words);
        body
    };
    let main = post(&served, canned.path, &of("main")).await.text();
    let one = post_with(&served, canned.path, &["x-claude-code-agent-id: one"], &of("find")).await.text();
    let two = post_with(&served, canned.path, &["x-claude-code-agent-id: two"], &of("look")).await.text();
    desk.note("model.response", 2).await;

    let (line, desk) = Desk::open();
    let served = serve(line, with_upstreams(again(folder.path(), None), "http://127.0.0.1:1")).await.unwrap();
    // In another order, with other names.
    assert_eq!(post_with(&served, canned.path, &["x-claude-code-agent-id: x"], &of("look")).await.text(), two);
    assert_eq!(post(&served, canned.path, &of("main")).await.text(), main);
    assert_eq!(post_with(&served, canned.path, &["x-claude-code-agent-id: y"], &of("find")).await.text(), one);
    assert!(desk.notes("rerun.diverged").is_empty());
}

#[tokio::test]
async fn a_rerun_can_be_held_changed_and_recorded_itself() {
    let canned = messages();
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let answers = record(&canned, first.path()).await;
    let (line, desk) = Desk::judging(Some(second.path()), |ask| {
        let messages = ask.conversation.as_ref().unwrap().messages.len();
        let value = json!("Made up.");
        Some(if messages == 2 {
            Answer { verdict: Verdict::Synthesize { value }, ..Answer::default() }
        } else {
            Answer::default()
        })
    });
    let mut config = with_upstreams(again(first.path(), None), "http://127.0.0.1:1");
    config.record = Some(second.path().into());
    let served = serve(line, config).await.unwrap();
    let mut got = Vec::new();
    for number in 1..=3 {
        got.push(post(&served, canned.path, &question(&canned, number, "Go on")).await.text());
    }
    assert_eq!((&got[0], &got[2]), (&answers[0], &answers[2]));
    assert!(got[1].contains("Made up."));
    desk.note("model.response", 2).await;
    // A rerun of the rerun says the same.
    let (line, _desk) = Desk::open();
    let served = serve(line, with_upstreams(again(second.path(), None), "http://127.0.0.1:1")).await.unwrap();
    for number in 1..=3 {
        assert_eq!(post(&served, canned.path, &question(&canned, number, "Go on")).await.text(), got[number - 1]);
    }
}

#[tokio::test]
async fn a_record_without_model_calls_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (line, _desk) = Desk::open();
    let error = serve(line, again(folder.path(), None)).await.unwrap_err();
    assert!(error.to_string().contains("events.jsonl"), "{error}");
    std::fs::write(folder.path().join("events.jsonl"), "{\"type\":\"output\",\"data\":{}}\nnonsense\n").unwrap();
    let (line, _desk) = Desk::open();
    let error = serve(line, again(folder.path(), None)).await.unwrap_err();
    assert!(error.to_string().contains("no model calls"), "{error}");
    // Calls that went past the tap are told of by hooks, and what was answered is not known. One that was never answered
    // is no better.
    let told = [
        json!({"type": "model.request", "data": {"model": null, "n_messages": 0, "iteration": 1}}),
        json!({"type": "model.request", "data": {"span": "model-1", "thread": "main", "call": 1, "hash": "x"}}),
    ];
    for count in 1..=2 {
        let lines: String = told[..count].iter().map(|event| format!("{event}\n")).collect();
        std::fs::write(folder.path().join("events.jsonl"), lines).unwrap();
        let (line, _desk) = Desk::open();
        let again = with_upstreams(again(folder.path(), None), "http://127.0.0.1:1");
        let error = serve(line, again).await.unwrap_err();
        assert!(error.to_string().contains("no model calls"), "{error}");
    }
}

#[tokio::test]
async fn requests_that_hooks_told_of_do_not_stand_in_the_way_and_an_agent_without_a_tap_is_refused() {
    let canned = messages();
    let folder = tempfile::tempdir().unwrap();
    let events = folder.path().join("events.jsonl");
    let hooked = json!({"type": "model.request", "data": {"n_messages": 0, "iteration": 1, "thread": "main"}});
    std::fs::write(&events, format!("{hooked}\n")).unwrap();
    let answers = record(&canned, folder.path()).await;
    let (line, _desk) = Desk::open();
    let served = serve(line, with_upstreams(again(folder.path(), None), "http://127.0.0.1:1")).await.unwrap();
    assert_eq!(post(&served, canned.path, &question(&canned, 1, "Go on")).await.text(), answers[0]);
    // Nothing of its model comes here: it would ask the real one.
    let (line, _desk) = Desk::open();
    let error = serve(line, again(folder.path(), None)).await.unwrap_err();
    assert!(error.to_string().contains("past the model tap"), "{error}");
}
