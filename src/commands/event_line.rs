//! How an event of a record reads: one line, with what matters about it.

use serde::Deserialize;
use serde_json::Value as Json;

use super::doing_line::doing;
use super::report::{breakpoint_line, ending_line, frame_place, reason_line};
use crate::cli::typed;
use crate::model::{BreakpointReport, Ending, Event, HitFrame, Stop, Value, Variable};
use crate::render::{Page, cut, quoted};

/// The longest part that is shown of a program's text, and of all locals.
const MAX_TEXT: usize = 160;
/// The longest value among locals.
const MAX_VALUE: usize = 40;
/// The longest of what an agent's tool is about to be given.
const MAX_INPUT: usize = 1000;

/// The line of an event in a session that goes by `label`.
pub fn render(event: &Event, label: &str, page: &mut Page) {
    let what = what(event, page).unwrap_or_else(|| short(&event.data.to_string(), MAX_TEXT));
    let line = format!("{} {label} {}: {what}", clock(event.ts), event.kind);
    // A record may have been written by anybody.
    page.line(quoted(line.trim_end_matches([' ', ':'])));
}

/// `08:05:09.123Z`
fn clock(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{:02}:{:02}:{:02}.{:03}Z", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60, ms % 1000)
}

fn short(text: &str, limit: usize) -> String {
    match cut(text, limit) {
        (kept, 0) => kept.to_string(),
        (kept, _) => format!("{kept}…"),
    }
}

fn read<T: for<'a> Deserialize<'a>>(data: &Json) -> Option<T> {
    T::deserialize(data).ok()
}

fn text<'a>(data: &'a Json, name: &str) -> Option<&'a str> {
    data.get(name)?.as_str()
}

/// What happened, where its data is as expected.
fn what(event: &Event, page: &Page) -> Option<String> {
    let data = &event.data;
    Some(match event.kind.as_str() {
        "session.start" => {
            let words: Vec<String> = read(data.get("words")?)?;
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (who, via, cwd) = (text(data, "who")?, text(data, "via")?, text(data, "cwd")?);
            format!(
                "{} in {cwd}, by {who} [via {via}], recorded as {}",
                short(&words.join(" "), MAX_TEXT),
                event.session
            )
        }
        "session.end" => ending_line(&read::<Ending>(data.get("ending")?)?),
        "state" => match data.get("pid").and_then(Json::as_u64) {
            Some(pid) => format!("{}, pid {pid}", text(data, "state")?),
            None => text(data, "state")?.to_string(),
        },
        "stopped" => stopped(&read(data)?, page),
        "continued" => text(data, "how")?.to_string(),
        "output" => format!("{} \"{}\"", text(data, "stream")?, quoted(&short(text(data, "text")?, MAX_TEXT))),
        "breakpoint" if data.get("removed").is_some() => format!("{} removed", data.get("id")?),
        "breakpoint" => {
            let line = breakpoint_line(&read::<BreakpointReport>(data)?, page);
            line.strip_prefix("breakpoint ").unwrap_or(&line).to_string()
        }
        "thread" => format!("{} {}", event.thread?, text(data, "what")?),
        "trace" => trace(data)?,
        "hit" => hit(data, page)?,
        "source" => match text(data, "left_out") {
            Some(why) => format!("{} is left out: {}", text(data, "file")?, short(why, MAX_TEXT)),
            None => page.path(text(data, "file")?),
        },
        "eval" => eval(data)?,
        "command" => {
            let who = text(data, "who")?;
            let words: Option<Vec<String>> = data.get("typed").and_then(read);
            match words {
                Some(words) => {
                    let words: Vec<&str> = words.iter().map(String::as_str).collect();
                    format!("{who} $ {}", short(&typed(&words), MAX_TEXT))
                }
                None => format!("{who} {} {}", text(data, "name")?, short(&data.get("args")?.to_string(), MAX_TEXT)),
            }
        }
        "command.result" => {
            let (who, name, ms) = (text(data, "who")?, text(data, "name")?, data.get("ms")?);
            match data.get("error") {
                None => format!("{who} {name}: ok, {ms} ms"),
                Some(error) => {
                    let (kind, message) = (text(error, "kind")?, text(error, "message")?);
                    format!("{who} {name}: {kind}, {}, {ms} ms", short(message, MAX_TEXT))
                }
            }
        }
        "error" | "log" => short(text(data, "message")?, MAX_TEXT),
        _ => doing(event)?,
    })
}

fn stopped(stop: &Stop, page: &Page) -> String {
    let top = stop.frames.iter().find(|frame| frame.index == stop.frame);
    let place = top.map_or_else(|| "an unknown place".into(), |frame| frame_place(frame, page));
    let line = format!("{} in {place}, thread {}", reason_line(&stop.reason), stop.thread.id);
    // An agent is held before a tool for what that is given: this is not cut to a few words.
    let tool = top.is_some_and(|frame| frame.file.is_none() && frame.function.starts_with("before tool "));
    let is_input = |local: &&Variable| tool && local.name == "tool_input";
    let others = stop.locals.iter().filter(|local| !is_input(local));
    let others = pairs(others.map(|local| (local.name.as_str(), local.value.flat())));
    let input = stop.locals.iter().find(is_input).map(|local| {
        let (kept, left) = cut(&local.value.text, MAX_INPUT);
        let left = left as u64 + local.value.cut;
        let more = if left > 0 {
            format!("… ({left} characters more: bugeye print --full tool_input)")
        } else {
            String::new()
        };
        format!("{} tool_input={kept}{more}", if others.is_empty() { ":" } else { "," })
    });
    format!("{line}{others}{}", input.unwrap_or_default())
}

/// `: i=1, sum=0`
fn pairs<'a>(values: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut line = String::new();
    for (name, value) in values {
        let before = if line.is_empty() { ": " } else { ", " };
        line.push_str(&format!("{before}{name}={}", short(&value, MAX_VALUE)));
        if line.chars().count() > MAX_TEXT {
            return format!("{line}, …");
        }
    }
    line
}

fn trace(data: &Json) -> Option<String> {
    let points = data.get("points")?.as_array()?.iter().filter_map(|point| text(point, "asked"));
    let calls = data.get("calls")?.as_array()?.iter().filter_map(Json::as_str);
    let places: Vec<String> = points.chain(calls).map(|place| short(place, MAX_VALUE)).collect();
    Some(format!("{}, hits in {}", places.join(", "), text(data, "file")?))
}

fn hit(data: &Json, page: &Page) -> Option<String> {
    let number = data.get("hit")?;
    if let Some(id) = data.get("breakpoint") {
        return Some(format!("{number} of breakpoint {id}, logs \"{}\"", short(text(data, "log")?, MAX_TEXT)));
    }
    let frames: Vec<HitFrame> = read(data.get("frames")?)?;
    let place = match frames.first() {
        Some(HitFrame { function, file: Some(file), line: Some(line) }) => {
            format!("{function} {}:{line}", page.path(file))
        }
        Some(frame) => frame.function.clone(),
        None => text(data, "asked")?.to_string(),
    };
    let values = data.get("values")?.as_array()?.iter();
    let values = values.filter_map(|value| Some((text(value, "expression")?, text(value, "text")?.to_string())));
    Some(format!("{number} in {place}{}", pairs(values)))
}

fn eval(data: &Json) -> Option<String> {
    let asked = match (text(data, "raw"), text(data, "expression"), text(data, "set")) {
        (Some(raw), ..) => format!("raw {}", short(raw, MAX_TEXT)),
        (_, Some(expression), Some(value)) => format!("set {expression} {value}"),
        (_, Some(expression), None) => expression.to_string(),
        _ => return None,
    };
    let answer = match (data.get("value").and_then(read::<Value>), text(data, "error")) {
        (Some(value), _) => format!(" = {}", short(&value.flat(), MAX_TEXT)),
        (None, Some(error)) => format!(": {}", short(error, MAX_TEXT)),
        (None, None) => String::new(),
    };
    Some(format!("{asked}{answer}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(kind: &str, thread: Option<i64>, data: Json) -> String {
        let (session, kind) = ("20260101-000000-otter".to_string(), kind.to_string());
        let mut page = Page::new("/src".into());
        render(&Event { v: 1, seq: 1, ts: 29_109_123, session, thread, kind, data }, "s1", &mut page);
        let text = page.into_text();
        assert_eq!(text.lines().count(), 1, "{text}");
        text.strip_prefix("08:05:09.123Z s1 ").unwrap().trim_end().to_string()
    }

    #[test]
    fn each_event_is_a_line_that_says_what_matters() {
        let stop = json!({
            "number": 2, "reason": { "breakpoint": { "ids": [1], "hit": 2 } }, "thread": { "id": 7 }, "frame": 0,
            "frames": [{ "index": 0, "function": "work", "file": "/src/a.c", "line": 6 }],
            "locals": [{ "name": "i", "text": "1" }, { "name": "s", "text": "x".repeat(50) }],
        });
        let cut = "x".repeat(40);
        let told = format!("stopped: breakpoint 1 (hit 2) in work a.c:6, thread 7: i=1, s={cut}…");
        assert_eq!(shown("stopped", Some(7), stop), told);
        let typed = json!({ "who": "mcp:4", "name": "print", "typed": ["print", "a b"], "args": {} });
        assert_eq!(shown("command", None, typed), "command: mcp:4 $ bugeye print 'a b'");
        let untyped = json!({ "who": "x", "name": "print", "args": { "words": ["i"] } });
        assert_eq!(shown("command", None, untyped), "command: x print {\"words\":[\"i\"]}");
        let failed = json!({ "command": 1, "name": "next", "who": "cli:1", "ok": false, "ms": 3,
            "error": { "kind": "wrong_state", "message": "it runs" } });
        assert_eq!(shown("command.result", None, failed), "command.result: cli:1 next: wrong_state, it runs, 3 ms");
        assert_eq!(shown("thread", Some(3), json!({ "what": "started" })), "thread: 3 started");
        assert_eq!(shown("state", None, json!({ "state": "running", "pid": 5 })), "state: running, pid 5");
        let ending = json!({ "ending": { "kind": "exited", "code": 3 } });
        assert_eq!(shown("session.end", None, ending), "session.end: exited: code 3");
        let log = json!({ "breakpoint": 2, "hit": 1, "log": "i=4" });
        assert_eq!(shown("hit", Some(1), log), "hit: 1 of breakpoint 2, logs \"i=4\"");
        let hit = json!({ "point": 1, "asked": "a.c:6", "hit": 4, "frames": [],
            "values": [{ "expression": "i", "text": "3" }] });
        assert_eq!(shown("hit", Some(1), hit), "hit: 4 in a.c:6: i=3");
        assert_eq!(shown("eval", None, json!({ "raw": "bt", "error": "no" })), "eval: raw bt: no");
        let set = json!({ "expression": "i", "set": "4", "value": { "text": "4" } });
        assert_eq!(shown("eval", None, set), "eval: set i 4 = 4");
        assert_eq!(shown("breakpoint", None, json!({ "id": 3, "removed": true })), "breakpoint: 3 removed");
    }

    #[test]
    fn what_a_program_says_can_do_no_harm() {
        let output = json!({ "stream": "stdout", "text": "\u{1b}[31mred\u{202e}\n" });
        assert_eq!(shown("output", None, output), "output: stdout \"\\u{1b}[31mred\\u{202e}\\n\"");
        assert_eq!(shown("log", None, json!({ "message": "a\u{7}b" })), "log: a\\u{7}b");
        assert_eq!(shown("x\u{1b}", None, json!({ "a": "\u{9b}" })), "x\\u{1b}: {\"a\":\"\\u{9b}\"}");
    }

    #[test]
    fn what_is_not_as_expected_is_shown_as_it_is() {
        assert_eq!(shown("stopped", None, json!({ "odd": 1 })), "stopped: {\"odd\":1}");
        assert_eq!(shown("new.type", None, json!([1])), "new.type: [1]");
        assert!(shown("log", None, json!("x".repeat(1000))).chars().count() < 200);
    }
}
