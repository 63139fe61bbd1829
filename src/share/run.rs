//! What an agent did, as a table of a page: its prompts, model calls and tools in their order, and what was done to it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value as Json;

use super::page::{Ends, NAME, html};
use crate::commands::doing_line::told;
use crate::model::Event;
use crate::render::cut;

/// Rows at each end of the run, and characters of a text.
const ROWS: usize = 500;
const TEXT: usize = 400;

/// The rows so far, and what those that follow need.
#[derive(Debug)]
pub struct Run {
    rows: Ends<String>,
    /// The turn and the model call that each thread is in.
    places: HashMap<i64, (u64, u64)>,
    /// Who gave the last command of each kind that changes something.
    actors: HashMap<&'static str, String>,
}

impl Default for Run {
    fn default() -> Self {
        Self { rows: Ends::new(ROWS), places: HashMap::new(), actors: HashMap::new() }
    }
}

impl Run {
    /// Takes an event, if it is one of what an agent did or of what was done to it.
    pub fn take(&mut self, event: &Event, when: &str) {
        let data = &event.data;
        if event.kind == "command" {
            if let Some(act) = text(data, "name").and_then(act) {
                self.actors.insert(act, text(data, "who").unwrap_or_default().to_string());
            }
            return;
        }
        let Some(what) = what(event) else { return };
        let number = |name: &str| data.get(name).and_then(Json::as_u64);
        let thread = event.thread.unwrap_or(1);
        let place = self.places.entry(thread).or_default();
        *place = (number("turn").unwrap_or(place.0), number("iteration").unwrap_or(place.1));
        let (turn, call) = *place;
        let Some(line) = line(event) else { return };
        let line = if thread > 1 { format!("[thread {thread}] {line}") } else { line };
        let actor = match event.kind.as_str() {
            "injected" => text(data, "actor"),
            "edited" if data.get("before").is_some() => self.actor("set"),
            // Of a request to the model it is not told what it was before.
            "edited" => self.actor(if data.get("id").is_some() { "answer" } else { "set" }),
            "tool.denied" if text(data, "by") == Some("debugger") => self.actor("cancel"),
            _ => None,
        };
        let failed = matches!(event.kind.as_str(), "model.error" | "tool.denied")
            || data.get("ok").and_then(Json::as_bool) == Some(false);
        let count = |number: u64| if number > 0 { number.to_string() } else { String::new() };
        let took = number("ms").map(|ms| format!("{ms} ms")).unwrap_or_default();
        let mut row = format!(
            "<tr{}><td class=\"key\"><time>{}</time></td>",
            if failed { " class=\"bad\"" } else { "" },
            html(when)
        );
        for cell in [count(turn), count(call), what.into()] {
            let _ = write!(row, "<td class=\"key\">{cell}</td>");
        }
        let _ = write!(row, "<td><code>{}</code></td>", html(&line));
        for cell in [tokens(data), cost(data), took, actor.unwrap_or_default().into()] {
            let _ = write!(row, "<td class=\"key\">{}</td>", html(cut(&cell, NAME).0));
        }
        row.push_str("</tr>\n");
        self.rows.push(row);
    }

    fn actor(&self, act: &str) -> Option<&str> {
        self.actors.get(act).map(String::as_str)
    }

    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.rows.count == 0 {
            return Ok(());
        }
        out.write_all(b"<h2>Run</h2>\n<table>\n<tr>")?;
        for name in ["when", "turn", "call", "what", "", "tokens", "cost", "took", "by"] {
            write!(out, "<th>{name}</th>")?;
        }
        out.write_all(b"</tr>\n")?;
        let mut written = Ok(());
        self.rows.each(|row| {
            if written.is_ok() {
                written = match row {
                    Ok(row) => out.write_all(row.as_bytes()),
                    Err(left) => writeln!(out, "<tr><td colspan=\"9\">… {left} more rows …</td></tr>"),
                };
            }
        });
        written?;
        out.write_all(b"</table>\n")
    }
}

fn text<'a>(data: &'a Json, name: &str) -> Option<&'a str> {
    data.get(name).and_then(Json::as_str)
}

/// What a command does to an agent that is held.
fn act(command: &str) -> Option<&'static str> {
    match command {
        "set" | "eval" | "raw" => Some("set"),
        "cancel" => Some("cancel"),
        "answer" => Some("answer"),
        _ => None,
    }
}

/// What an event is called in the table; None where it is not in it.
fn what(event: &Event) -> Option<&'static str> {
    let data = &event.data;
    Some(match event.kind.as_str() {
        "agent.start" => "starts",
        "agent.end" => "ends",
        "input.user" => "prompt",
        "model.retry" => "asks again",
        "model.response" => "model call",
        "model.error" => "model error",
        "model.unread" => "unread call",
        "tool.call" => "tool",
        "tool.end" => "result",
        "tool.denied" if text(data, "by") == Some("debugger") => "cancel",
        "tool.denied" => "denied",
        "permission.request" => "permission",
        "turn.end" => "end of turn",
        "agent.spawn" => "sub-agent",
        "agent.exit" => "sub-agent ends",
        "context.compact" => "compact",
        "injected" => "inject",
        "edited" if data.get("id").is_some() && data.get("before").is_none() => "answer",
        "edited" => "edit",
        "rerun.diverged" => "differs",
        // What the debugger says, and log breakpoints.
        "output" if text(data, "stream") == Some("log") => "note",
        _ => return None,
    })
}

/// What there is to say of it, without what has a column of its own.
fn line(event: &Event) -> Option<String> {
    let mut data = event.data.clone();
    for name in ["ms", "usage", "usd"] {
        if let Some(fields) = data.as_object_mut() {
            fields.remove(name);
        }
    }
    let said = |name: &str| text(&data, name).map(|text| cut(text, TEXT).0);
    match event.kind.as_str() {
        "output" => said("text").map(|text| text.trim_end().into()),
        "injected" => Some(format!("\"{}\" as {}", said("text")?, said("role")?)),
        "model.response" => {
            let model = said("model").map(|model| format!("{model}: ")).unwrap_or_default();
            Some(format!("{model}{}", told(&event.kind, &data, TEXT)?))
        }
        kind => told(kind, &data, TEXT),
    }
}

/// `12 + 5, cache 300 read, 20 written`
fn tokens(data: &Json) -> String {
    let Some(usage) = data.get("usage").filter(|usage| usage.is_object()) else { return String::new() };
    let number = |name: &str| usage.get(name).and_then(Json::as_u64).unwrap_or(0);
    let (read, written) = (number("cache_read"), number("cache_write"));
    let cached =
        if read > 0 || written > 0 { format!(", cache {read} read, {written} written") } else { String::new() };
    format!("{} + {}{cached}", number("input"), number("output"))
}

fn cost(data: &Json) -> String {
    match data.get("usd").and_then(Json::as_f64) {
        Some(usd) => format!("${usd:.4}"),
        None if data.get("unpriced").is_some() => "no price".into(),
        None => String::new(),
    }
}
