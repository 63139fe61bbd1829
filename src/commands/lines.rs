//! Source lines around a place, as reports and `source` show them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Frame, Stop, View};
use crate::render::{Page, Render, quoted_lines};

/// Lines around a place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Source {
    pub file: String,
    /// The line the arrow points at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<u32>,
    pub first: u32,
    pub lines: Vec<String>,
    /// What a reader must know about them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The lines around the frame a stop is shown at. A stop in the same function again needs fewer.
pub(super) fn source_of(stop: &Stop, view: View) -> Option<Source> {
    let frame = stop.frames.iter().find(|frame| frame.index == stop.frame)?;
    source_at(frame, context_of(stop, view))
}

/// How many lines a stop is shown with on each side.
pub(super) fn context_of(stop: &Stop, view: View) -> u32 {
    if stop.same_function && view.context == View::default().context { 1 } else { view.context }
}

#[must_use]
pub fn source_at(frame: &Frame, context: u32) -> Option<Source> {
    let (file, line) = (frame.file.as_ref()?, frame.line?);
    let text = std::fs::read(file).ok()?;
    around(file, &String::from_utf8_lossy(&text), line, context)
}

/// Lines on each side of one of a text.
#[must_use]
pub fn around(file: &str, text: &str, line: u32, context: u32) -> Option<Source> {
    let first = line.saturating_sub(context).max(1);
    window(file, text, first, line.saturating_add(context), Some(line))
}

/// Lines `first..=last` of a text.
#[must_use]
pub fn window(file: &str, text: &str, first: u32, last: u32, current: Option<u32>) -> Option<Source> {
    let skip = usize::try_from(first).ok()?.checked_sub(1)?;
    let count = usize::try_from(last.checked_sub(first)?).ok()? + 1;
    let lines: Vec<String> = text.lines().skip(skip).take(count).map(Into::into).collect();
    (!lines.is_empty()).then(|| Source { file: file.into(), current, first, lines, note: None })
}

impl Render for Source {
    fn render(&self, page: &mut Page) {
        let last = (self.first as usize + self.lines.len()).saturating_sub(1);
        let width = last.to_string().len();
        for (offset, line) in self.lines.iter().enumerate() {
            let number = self.first as usize + offset;
            let arrow = if self.current.is_some_and(|current| current as usize == number) { '>' } else { ' ' };
            let text = quoted_lines(line.trim_end());
            let (text, cut) = crate::render::cut(&text, 160);
            let dots = if cut > 0 { "…" } else { "" };
            page.line(format!("{arrow}{number:>width$} {text}{dots}").trim_end());
        }
        if let Some(note) = &self.note {
            page.line(format!("note: {}", quoted_lines(note)));
        }
    }
}
