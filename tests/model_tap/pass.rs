//! What passes through: the same byte for byte, whatever it is.

use std::time::Duration;

use bugeye::agent::gate::Answer;
use bugeye::agent::model::serve;
use serde_json::json;

use crate::canned::{self, all};
use crate::world::{Desk, Say, Upstream, config, post, post_with, send, tap, until, with_upstreams};

/// Cut where no reader would cut: in the middle of words, characters and line ends.
fn odd(text: &str) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    let (mut rest, mut length) = (text.as_bytes(), 1);
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(length.min(rest.len()));
        pieces.push(piece.to_vec());
        rest = more;
        length = (length * 5 + 3) % 61 + 1;
    }
    pieces
}

#[tokio::test]
async fn a_stream_passes_byte_for_byte_in_the_pieces_it_came_in() {
    for canned in all() {
        let pieces = odd(&canned.stream);
        let upstream = Upstream::always(Say::Pieces { kind: "text/event-stream", pieces: pieces.clone() }).await;
        let (line, desk) = Desk::open();
        let served = tap(line, &format!("{}/base", upstream.url)).await;
        let words = [
            "authorization: Bearer hush",
            "x-custom: kept",
            "accept-encoding: gzip, br",
            "connection: x-hop",
            "x-hop: 1",
        ];
        let got = post_with(&served, canned.path, &words, &canned.question).await;
        assert_eq!((got.status, got.header("content-type")), (200, Some("text/event-stream")));
        assert!(got.whole);
        assert_eq!(got.text(), canned.stream);
        // A piece may join its neighbour on the way; none is held back or cut.
        assert!(got.pieces.len() * 2 > pieces.len(), "{} of {}", got.pieces.len(), pieces.len());

        let seen = upstream.seen().remove(0);
        let path = &canned.path[1..];
        assert_eq!(seen.line, format!("POST /base{}", &path[path.find('/').unwrap()..]));
        assert_eq!(seen.body, canned.question.to_string().into_bytes());
        assert_eq!(seen.header("authorization"), Some("Bearer hush"));
        assert_eq!(seen.header("x-custom"), Some("kept"));
        assert_eq!(seen.header("x-hop"), None);
        assert_eq!(seen.header("host"), upstream.url.strip_prefix("http://"));
        assert_eq!(seen.header("accept-encoding"), Some("identity"));

        let told = desk.note("model.response", 0).await;
        let (text, id, name, reason, [input, output, cached]) = canned.told;
        assert_eq!(told["text"], text, "{told}");
        assert_eq!(told["tool_calls"], json!([{"id": id, "name": name, "input": {"command": "ls"}}]));
        assert_eq!(told["stop_reason"], reason);
        let usage = &told["usage"];
        assert_eq!(
            (&usage["input"], &usage["output"], &usage["cache_read"]),
            (&json!(input), &json!(output), &json!(cached))
        );
        assert_eq!((&told["status"], &told["cut"]), (&json!(200), &json!(null)));
        let request = desk.note("model.request", 0).await;
        assert_eq!((&request["n_messages"], &request["n_tools"], &request["call"]), (&json!(1), &json!(1), &json!(1)));
        assert_eq!(request["bytes"], canned.question.to_string().len());
        assert_eq!(told["request"], request["span"]);
    }
}

#[tokio::test]
async fn an_answer_in_one_piece_passes_as_it_is() {
    for canned in all() {
        let upstream = Upstream::always(Say::json(&canned.whole)).await;
        let (line, desk) = Desk::open();
        let served = tap(line, &upstream.url).await;
        let mut question = canned.question.clone();
        question.as_object_mut().unwrap().remove("stream");
        let got = post(&served, canned.whole_path, &question).await;
        assert_eq!((got.status, got.body()), (200, canned.whole.to_string().into_bytes()));
        let length = canned.whole.to_string().len().to_string();
        assert_eq!(got.header("content-length"), Some(length.as_str()));
        let told = desk.note("model.response", 0).await;
        assert_eq!(told["text"], canned.told.0);
        assert_eq!(
            told["tool_calls"],
            json!([{"id": canned.told.1, "name": canned.told.2, "input": {"command": "ls"}}])
        );
        assert_eq!(told["usage"]["input"], canned.told.4[0]);
    }
}

#[tokio::test]
async fn what_it_costs_is_told_and_summed() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    for _ in 0..2 {
        post(&served, canned.path, &canned.question).await;
    }
    let told = desk.note("model.response", 1).await;
    // 11 in, 9 out, 7 read from the cache and 3 written to it, at 3, 15, 0.3 and 3.75 dollars a million.
    let one = (11.0 * 3.0 + 9.0 * 15.0 + 7.0 * 0.3 + 3.0 * 3.75) / 1e6;
    let close = |found: &serde_json::Value, wanted: f64| (found.as_f64().unwrap() - wanted).abs() < 1e-12;
    assert!(close(&told["usd"], one) && close(&told["total"]["usd"], 2.0 * one), "{told}");
    assert_eq!(told["total"]["usage"]["output"], 18);

    let mut unknown = canned.question.clone();
    unknown["model"] = json!("nobody-1");
    let whole = json!({"type": "message", "model": "nobody-1", "content": [], "usage": {"input_tokens": 5}});
    let upstream = Upstream::always(Say::json(&whole)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    post(&served, canned.path, &unknown).await;
    let told = desk.note("model.response", 0).await;
    assert_eq!((&told["usd"], &told["unpriced"]), (&json!(null), &json!("no price is known for nobody-1")));
    assert_eq!(told["total"]["unpriced"], 1);
}

#[tokio::test]
async fn errors_of_the_vendor_pass_with_their_headers() {
    for canned in all() {
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "too busy"}});
        let upstream = Upstream::always(Say::error(529, &error)).await;
        let (line, desk) = Desk::open();
        let served = tap(line, &upstream.url).await;
        let got = post(&served, canned.path, &canned.question).await;
        assert_eq!((got.status, got.json(), got.header("retry-after")), (529, error, Some("7")));
        let told = desk.note("model.error", 0).await;
        assert_eq!((&told["status"], &told["message"]), (&json!(529), &json!("too busy")));
    }
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_an_error_of_the_client_s_kind() {
    let nobody = Upstream::always(Say::sse("")).await;
    let url = nobody.url.clone();
    drop(nobody);
    for canned in all() {
        let (line, desk) = Desk::open();
        let served = tap(line, &url).await;
        let got = until_refused(&served, &canned).await;
        assert!(
            got.json()["error"]["message"].as_str().unwrap().starts_with("bugeye can't reach 127.0.0.1"),
            "{got:?}"
        );
        assert!(desk.note("model.error", 0).await["message"].as_str().unwrap().contains("can't reach"));
    }
}

/// The listener of the one that is gone may take a moment to go.
async fn until_refused(served: &bugeye::agent::model::Served, canned: &canned::Canned) -> crate::world::Got {
    let got = post(served, canned.path, &canned.question).await;
    assert_eq!(got.status, 502, "{got:?}");
    got
}

#[tokio::test]
async fn what_can_t_be_read_passes_unchanged_and_that_is_told() {
    let canned = canned::messages();
    let page = Say::Whole { status: 200, kind: "text/html", more: "", body: b"<html>\xff\x00</html>".to_vec() };
    let upstream = Upstream::always(page).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    let bodies: [(&[&str], &[u8], &str); 5] = [
        (&[], b"{\"model\": ", "not the JSON"),
        (&[], b"\"text\"", "not the JSON"),
        (&[], b"", "not the JSON"),
        (&["content-encoding: zstd"], b"\x28\xb5\x2f\xfd\x00", "packed (zstd)"),
        (&["content-encoding: gzip"], b"\x1f\x8b", "packed (gzip)"),
    ];
    for (at, (words, body, why)) in bodies.into_iter().enumerate() {
        let got = send(&served, &format!("POST {}", canned.path), words, body).await.got().await;
        assert_eq!((got.status, got.body()), (200, b"<html>\xff\x00</html>".to_vec()));
        assert_eq!(upstream.seen()[at].body, body);
        let told = desk.note("model.unread", at).await;
        assert!(told["why"].as_str().unwrap().contains(why), "{told}");
    }
    // One that can be read is asked about; what comes back is no answer of a model, and passes.
    let got = post(&served, canned.path, &canned.question).await;
    assert_eq!(got.body(), b"<html>\xff\x00</html>");
    assert_eq!(desk.note("model.response", 0).await["text"], "");
    assert_eq!(desk.asks().len(), 1);
}

#[tokio::test]
async fn a_request_of_64_megabytes_passes_unread() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::json(&canned.whole)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    let mut question = canned.question.clone();
    question["messages"][0]["content"] = json!("x".repeat(64 << 20));
    let got = post(&served, canned.path, &question).await;
    assert_eq!(got.json(), canned.whole);
    assert_eq!(upstream.seen()[0].body, question.to_string().into_bytes());
    let why = desk.note("model.unread", 0).await["why"].clone();
    assert!(why.as_str().unwrap().contains("longer than"), "{why}");
    assert!(desk.asks().is_empty());
}

#[tokio::test]
async fn a_stream_without_end_costs_no_more_than_its_beginning_and_ends_with_the_client() {
    let canned = canned::messages();
    let data =
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x".repeat(4000)}});
    let piece = format!("event: content_block_delta\ndata: {data}\n\n").into_bytes();
    let upstream = Upstream::always(Say::Endless(piece)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    let waiting = send(&served, &format!("POST {}", canned.path), &[], canned.question.to_string().as_bytes()).await;
    assert_eq!(waiting.only(40 << 20).await, 200);
    let told = desk.note("model.response", 0).await;
    assert_eq!(told["cut"], true);
    let kept = told["text"].as_str().unwrap().len();
    assert!(kept > 100_000 && kept <= 1 << 20, "{kept}");
    assert!(told["bytes"].as_u64().unwrap() >= 40 << 20);

    // One line without an end.
    let upstream = Upstream::always(Say::Endless(vec![b'x'; 1 << 16])).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    let waiting = send(&served, &format!("POST {}", canned.path), &[], canned.question.to_string().as_bytes()).await;
    assert_eq!(waiting.only(40 << 20).await, 200);
    assert_eq!(desk.note("model.response", 0).await["cut"], true);
}

#[tokio::test]
async fn a_stream_that_breaks_off_breaks_off_for_the_client_too() {
    let canned = canned::messages();
    let half = canned.stream.as_bytes()[..canned.stream.len() / 2].to_vec();
    let upstream = Upstream::always(Say::Broken(vec![half.clone()])).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    let waiting = send(&served, &format!("POST {}", canned.path), &[], canned.question.to_string().as_bytes()).await;
    let got = waiting.got().await;
    assert_eq!((got.whole, got.body()), (false, half));
    assert_eq!(desk.note("model.response", 0).await["cut"], true);
}

#[tokio::test]
async fn a_client_that_goes_when_it_has_all_has_had_all() {
    for canned in all() {
        // After the last event the connection stays open.
        let mut pieces = vec![canned.stream.clone().into_bytes()];
        pieces.extend(vec![b": still here\n\n".to_vec(); 2000]);
        let upstream = Upstream::always(Say::Pieces { kind: "text/event-stream", pieces }).await;
        let record = tempfile::tempdir().unwrap();
        let (line, desk) = Desk::open();
        let mut config = with_upstreams(config(), &upstream.url);
        config.record = Some(record.path().into());
        let served = serve(line, config).await.unwrap();
        let path = format!("POST {}", canned.path);
        let waiting = send(&served, &path, &[], canned.question.to_string().as_bytes()).await;
        waiting.only(canned.stream.len()).await;
        let told = desk.note("model.response", 0).await;
        assert_eq!((&told["cut"], &told["text"]), (&json!(null), &json!(canned.told.0)), "{}: {told}", canned.path);
        let kept = bugeye::store::blobs::load(record.path(), told["body"]["ref"]["sha256"].as_str().unwrap()).unwrap();
        assert!(kept.starts_with(canned.stream.as_bytes()));
    }
}

#[tokio::test]
async fn questions_aside_are_told_as_such_and_other_requests_pass() {
    let canned = canned::messages();
    let upstream = Upstream::start(|seen, _| {
        let whole = json!({"input_tokens": 5}).to_string();
        let body = if seen.line.starts_with("HEAD") { Vec::new() } else { whole.into_bytes() };
        Say::Whole { status: 200, kind: "application/json", more: "", body }
    })
    .await;
    let (line, desk) = Desk::judging(None, |ask| ask.aside.then(Default::default));
    let served = tap(line, &upstream.url).await;
    let got = post(&served, "/anthropic/v1/messages/count_tokens?beta=true", &canned.question).await;
    assert_eq!(got.json(), json!({"input_tokens": 5}));
    let told = desk.note("model.other", 0).await;
    assert_eq!((&told["path"], &told["aside"]), (&json!("POST /v1/messages/count_tokens"), &json!(true)));
    assert_eq!(upstream.seen()[0].line, "POST /v1/messages/count_tokens?beta=true");
    assert!(desk.asks().is_empty());

    let title = json!({"model": "m", "max_tokens": 20, "messages": [{"role": "user", "content": "quota"}]});
    post_with(&served, canned.path, &["user-agent: claude-cli/2.1.325"], &title).await;
    let asked = desk.asks().remove(0);
    assert!(asked.aside && !asked.powers.hold && !asked.powers.edit);
    assert_eq!(desk.note("model.request", 0).await["aside"], true);
    assert_eq!(desk.note("model.request", 0).await["call"], json!(null));

    let got = send(&served, "HEAD /anthropic", &[], b"").await.got().await;
    assert_eq!((got.status, upstream.seen()[2].line.as_str()), (200, "HEAD /"));
    let got = send(&served, "GET /openai/models?key=hush", &["upgrade: websocket", "connection: upgrade"], b"").await;
    assert_eq!(got.got().await.status, 426);
    assert_eq!(desk.attached().len(), 1);
}

#[tokio::test]
async fn a_program_of_the_user_s_own_is_held_however_short_its_questions() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::json(&canned.whole)).await;
    let (line, desk) = Desk::judging(None, |_| None);
    let served = tap(line, &upstream.url).await;
    let short = json!({"model": "m", "max_tokens": 20, "system": "You make titles.", "messages": [{"role": "user", "content": "x"}]});
    let waiting = send(
        &served,
        &format!("POST {}", canned.path),
        &["user-agent: Anthropic/Python 0.75.0"],
        short.to_string().as_bytes(),
    )
    .await;
    desk.answer(Answer::default()).await;
    assert_eq!(waiting.got().await.json(), canned.whole);
    assert!(!desk.asks()[0].aside && desk.asks()[0].powers.hold);
}

#[tokio::test]
async fn an_agent_that_the_agent_starts_is_a_thread_of_its_own() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::json(&canned.whole)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    for session in ["one", "one", "two", "one"] {
        let session = format!("x-claude-code-session-id: {session}");
        post_with(&served, canned.path, &[&session], &canned.question).await;
    }
    let threads: Vec<String> = desk.asks().into_iter().map(|ask| ask.thread).collect();
    assert_eq!(threads, ["main", "main", "two", "main"]);
}

#[tokio::test]
async fn connections_to_the_upstream_are_kept_and_a_stale_one_is_replaced() {
    let canned = canned::messages();
    let upstream = Upstream::always(Say::sse(&canned.stream)).await;
    let (line, desk) = Desk::open();
    let served = tap(line, &upstream.url).await;
    // Several at once, each with an answer of its own.
    let path = format!("POST {}", canned.path);
    let body = canned.question.to_string();
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(send(&served, &path, &[], body.as_bytes()).await);
    }
    for waiting in waiting {
        assert_eq!(waiting.got().await.text(), canned.stream);
    }
    for _ in 0..20 {
        assert_eq!(post(&served, canned.path, &canned.question).await.text(), canned.stream);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    until("all are told", || (desk.notes("model.response").len() == 28).then_some(())).await;
}
