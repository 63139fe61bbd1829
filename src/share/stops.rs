//! One stop as a part of the page: where it stands, its source as it was recorded, its locals and what changed, its stack.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use super::page::{NAME, html, lines};
use crate::commands::report::{frame_place, reason_line};
use crate::model::{Change, Event, Frame, Stop, Variable};
use crate::render::{Page, cut};
use crate::store::blobs;

/// Lines of source around the one it stands at.
const AROUND: usize = 4;
/// The longest line of source, and the longest value.
const MAX_LINE: usize = 200;
const MAX_VALUE: usize = 400;
const MAX_LOCALS: usize = 60;
const MAX_FRAMES: usize = 30;
/// Source files that are held at once.
const MAX_SOURCES: usize = 16;

/// The source files of a record, as they were when the program stood in them. Never those of this machine: a record may
/// name any file.
#[derive(Debug, Default)]
pub struct Sources {
    /// The content that a file has now, by its name in the record.
    names: HashMap<String, String>,
    texts: HashMap<String, Option<Arc<str>>>,
}

impl Sources {
    /// Takes note of a file as the record has it from now on.
    pub fn note(&mut self, data: &Json) {
        let text = |name: &str| data.get(name).and_then(Json::as_str);
        let Some(file) = text("file") else { return };
        match text("sha256") {
            Some(sha256) => drop(self.names.insert(file.to_string(), sha256.to_string())),
            None => drop(self.names.remove(file)),
        }
    }

    fn text(&mut self, folder: &Path, file: &str) -> Option<Arc<str>> {
        let name = self.names.get(file)?;
        if let Some(text) = self.texts.get(name) {
            return text.clone();
        }
        if self.texts.len() >= MAX_SOURCES {
            self.texts.clear();
        }
        let text = blobs::load(folder, name).ok().map(|bytes| Arc::from(String::from_utf8_lossy(&bytes)));
        self.texts.insert(name.clone(), text.clone());
        text
    }
}

/// The part of a stop; none where the event can't be read.
pub fn part(event: &Event, since: &str, page: &Page, folder: &Path, sources: &mut Sources) -> Option<String> {
    let stop: Stop = serde_json::from_value(event.data.clone()).ok()?;
    let top = stop.frames.iter().find(|frame| frame.index == stop.frame).or(stop.frames.first());
    let place = top.map_or_else(|| "an unknown place".into(), |frame| frame_place(frame, page));
    let changed = stop.locals.iter().filter(|local| local.change.is_some()).take(MAX_LOCALS);
    let changed: Vec<String> = changed.map(short).collect();
    let mut out = format!(
        "<details><summary><b>{}</b> <time>{}</time> {} in <code>{}</code> <i>{}</i></summary>\n",
        stop.number,
        html(since),
        html(&bounded(&reason_line(&stop.reason))),
        html(&bounded(&place)),
        html(&bounded(&changed.join(", "))),
    );
    if let Some(source) = top.and_then(|frame| window(frame, folder, sources)) {
        out.push_str(&source);
    }
    if !stop.locals.is_empty() {
        out.push_str("<table><tr><th>local</th><th>value</th><th>before</th></tr>\n");
        for local in stop.locals.iter().take(MAX_LOCALS) {
            row(local, &mut out);
        }
        out.push_str("</table>\n");
        left_out(stop.locals.len(), MAX_LOCALS, "locals", &mut out);
    }
    out.push_str("<ol start=\"0\">\n");
    for frame in stop.frames.iter().take(MAX_FRAMES) {
        let class = if frame.runtime { " class=\"dim\"" } else { "" };
        let _ = writeln!(out, "<li{class}><code>{}</code></li>", html(&bounded(&frame_place(frame, page))));
    }
    out.push_str("</ol>\n");
    left_out(stop.frames.len(), MAX_FRAMES, "frames", &mut out);
    for gap in stop.gaps.iter().chain(stop.condition_failed.as_ref()).take(MAX_LOCALS) {
        let _ = writeln!(out, "<p class=\"dim\">{}</p>", html(cut(gap, MAX_VALUE).0));
    }
    out.push_str("</details>\n");
    Some(out)
}

pub fn left_out(count: usize, shown: usize, what: &str, out: &mut String) {
    if count > shown {
        let _ = writeln!(out, "<p class=\"dim\">{} more {what}</p>", count - shown);
    }
}

fn short(local: &Variable) -> String {
    format!("{}={}", cut(&local.name, NAME).0, cut(&local.value.flat(), 40).0)
}

fn row(local: &Variable, out: &mut String) {
    let (class, before) = match &local.change {
        None => ("", String::new()),
        Some(Change::New) => (" class=\"new\"", "new".into()),
        Some(Change::From(text)) => (" class=\"new\"", cut(text, MAX_VALUE).0.to_string()),
    };
    let _ = writeln!(
        out,
        "<tr{class}><td class=\"key\"><code>{}</code></td><td><code>{}</code></td><td><code>{}</code></td></tr>",
        html(cut(&local.name, NAME).0),
        html(&bounded(&local.value.flat())),
        html(&before),
    );
}

pub fn bounded(text: &str) -> String {
    match cut(text, MAX_VALUE) {
        (text, 0) => text.to_string(),
        (kept, left) => format!("{kept}… ({left} characters more)"),
    }
}

/// The lines around a place, from the source as it was recorded.
fn window(frame: &Frame, folder: &Path, sources: &mut Sources) -> Option<String> {
    let text = sources.text(folder, frame.file.as_deref()?)?;
    let line = usize::try_from(frame.line?).ok()?.checked_sub(1)?;
    let first = line.saturating_sub(AROUND);
    let mut out = String::from("<pre class=\"source\">");
    for (number, code) in text.lines().enumerate().skip(first).take(line + AROUND + 1 - first) {
        let (open, close) = if number == line { ("<mark>", "</mark>") } else { ("", "") };
        let _ = writeln!(out, "{open}{:>5} {}{close}", number + 1, lines(cut(code, MAX_LINE).0));
    }
    out.push_str("</pre>\n");
    Some(out)
}
