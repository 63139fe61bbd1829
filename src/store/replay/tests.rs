//! The fold on small records made by hand.

use serde_json::json;

use super::*;

/// Only `set` changes, `up` selects; the rest reads.
fn classify(name: &str, _: &Json) -> Past {
    match name {
        "set" => Past::Changes,
        "up" | "frame" => Past::Selects,
        "continue" => Past::Beside,
        _ => Past::Reads,
    }
}

fn stop(number: u64, frames: u32) -> Json {
    let frame = |index: u32| json!({ "index": index, "function": format!("f{index}") });
    json!({
        "number": number, "reason": { "breakpoint": { "ids": [1], "hit": number } }, "thread": { "id": 1 }, "frame": 0,
        "frames": (0..frames).map(frame).collect::<Vec<_>>(), "locals": [{ "name": "i", "text": number.to_string() }],
    })
}

/// A record of these events, numbered from 1.
fn record(events: &[(&str, Json)]) -> (tempfile::TempDir, Head) {
    let folder = tempfile::tempdir().unwrap();
    let line = |(at, (kind, data)): (usize, &(&str, Json))| {
        let event = json!({ "v": 1, "seq": at + 1, "ts": at, "session": "x", "thread": 1, "type": kind, "data": data });
        format!("{event}\n")
    };
    let text: String = events.iter().enumerate().map(line).collect();
    std::fs::write(folder.path().join("events.jsonl"), text).unwrap();
    let head = Head { id: "x".into(), folder: folder.path().into(), ..Head::default() };
    (folder, head)
}

fn asked(name: &str) -> (&str, Json) {
    ("command", json!({ "name": name, "args": {} }))
}

fn answered(of: u64, result: &Json) -> (&'static str, Json) {
    ("command.result", json!({ "command": of, "ok": true, "result": result }))
}

fn at(head: &Head, when: When) -> Moment {
    Moment::load(head.clone(), when, classify).unwrap()
}

fn names(moment: &Moment) -> Vec<&str> {
    moment.answers.iter().map(|answer| answer.name.as_str()).collect()
}

#[test]
fn moments_are_read_as_people_write_them() {
    let when = |text: &str| text.parse::<When>().ok();
    assert_eq!(when("120"), Some(When::Seq(120)));
    assert_eq!(when("stop:3"), Some(When::Stop(3)));
    assert_eq!([when("first"), when("last"), when("end")], [Some(When::First), Some(When::Last), Some(When::End)]);
    for text in ["", "0", "-1", "stop:0", "stop:", "stop:x", "soon", "1.5"] {
        assert_eq!(when(text), None, "{text}");
    }
}

#[test]
fn what_is_asked_later_at_a_stop_counts_until_it_moves_or_changes() {
    let up = json!({ "thread": { "id": 1 }, "frame": { "index": 1, "function": "f1" }, "locals": [] });
    let (_folder, head) = record(&[
        ("state", json!({ "state": "stopped", "pid": 7 })), // 1
        ("stopped", stop(1, 2)),                            // 2
        ("output", json!({ "stream": "stdout", "text": "late\n" })),
        asked("locals"), // 4
        answered(4, &json!(1)),
        asked("up"), // 6
        answered(6, &up),
        asked("locals"), // 8
        answered(8, &json!(2)),
        asked("set"), // 10
        ("command.result", json!({ "command": 10, "ok": true })),
        asked("args"), // 12
        answered(12, &json!(3)),
        asked("continue"), // 14
        ("state", json!({ "state": "running" })),
        ("output", json!({ "stream": "stdout", "text": "more\n" })),
        ("session.end", json!({ "ending": { "kind": "exited", "code": 0 } })), // 17
    ]);
    let moment = at(&head, When::Last);
    assert_eq!((moment.seq, names(&moment)), (2, vec!["locals", "up"]));
    assert_eq!(moment.answers[0].outcome, Ok(json!(1)), "not that of the other frame");
    assert_eq!(moment.output.since(0).chunks[0].text, "late\n", "it was printed before the stop");
    assert_eq!((moment.pid, moment.selection(), moment.stops), (Some(7), Some((1, 0)), 1));
    assert_eq!(at(&head, When::Seq(1)).stood, moment.stood, "the stop is told a moment later");
    let moment = at(&head, When::Seq(7));
    assert_eq!((moment.selection(), names(&moment)), (Some((1, 1)), vec!["locals"]));
    assert_eq!(moment.answers[0].outcome, Ok(json!(2)));
    assert_eq!(moment.looked.len(), 1);
    let moment = at(&head, When::Seq(11));
    assert_eq!((moment.changed, moment.answers.len()), (Some((10, "set".into())), 1));
    let moment = at(&head, When::Seq(15));
    assert_eq!((moment.state, moment.stood, moment.answers.len()), (SessionState::Running, None, 0));
    let moment = at(&head, When::End);
    assert_eq!((moment.seq, moment.state), (17, SessionState::Exited));
    assert_eq!(moment.output.since(0).chunks[0].text, "late\nmore\n");
    let failure = Moment::load(head.clone(), When::Seq(18), classify).unwrap_err();
    assert!(failure.message.contains("it ends at 17"), "{failure}");
    assert_eq!(extent(&head).unwrap(), Extent { end: 17, stops: 1, first: Some(2), last: Some(2) });
}

#[test]
fn hits_are_counted_by_the_stops_they_make() {
    let wish = json!({
        "id": 1, "place": { "line": { "file": "/a", "line": 3 } }, "asked": "a:3", "enabled": true,
        "binding": { "state": "verified", "hits": 0 },
    });
    let (_folder, head) = record(&[
        ("breakpoint", wish),
        ("stopped", stop(1, 1)),
        ("continued", json!({})),
        ("stopped", stop(2, 1)),
        ("breakpoint", json!({ "id": 1, "removed": true })),
    ]);
    let hits = |when| at(&head, when).breakpoints.get(&1).and_then(|report| report.binding.clone()).map(|b| b.hits);
    assert_eq!([hits(When::First), hits(When::Stop(2)), hits(When::End)], [Some(1), Some(2), None]);
}

#[test]
fn nothing_stands_for_what_is_missing() {
    let (_folder, head) = record(&[]);
    for when in [When::Seq(1), When::End] {
        let failure = Moment::load(head.clone(), when, classify).unwrap_err();
        assert!(failure.message.contains("has no events"), "{failure}");
    }
    let (_folder, head) = record(&[("stopped", json!([])), ("command", json!(3)), ("eval", json!({ "frame": "x" }))]);
    let moment = at(&head, When::End);
    assert_eq!((moment.stood, moment.state, moment.asked.len()), (None, SessionState::Stopped, 0));
    assert!(Moment::load(head, When::Stop(4), classify).unwrap_err().message.contains("no stop 4"));
}

#[test]
fn a_record_may_say_anything() {
    let thread = json!({ "id": 1 });
    let (_folder, head) = record(&[
        ("stopped", stop(u64::MAX, 1)),
        ("stopped", json!({ "thread": "no stop" })),
        ("stopped", stop(1, 0)),
        asked("frame"),
        answered(4, &json!({ "thread": thread, "frame": { "index": u32::MAX, "function": "f" } })),
    ]);
    assert_eq!(at(&head, When::Seq(1)).stops, u64::MAX);
    let none = at(&head, When::Seq(2));
    assert_eq!((none.stops, none.stood.is_none()), (u64::MAX, true));
    assert_eq!(at(&head, When::Seq(5)).selection(), Some((1, u32::MAX)));
}
