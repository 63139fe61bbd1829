//! Arguments and answers that the looking commands share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::past::{self, Spot};
use super::report::{Source, frame_place, source_at};
use crate::failure::Failure;
use crate::hub::Context;
use crate::model::{Frame, ThreadInfo, Value, Variable, View};
use crate::render::{Page, Render};
use crate::session::{Answer, FrameChoice, Locals, Look, Op, Seen};
use crate::store::replay::Moment;

/// Which thread and frame, for this call alone.
#[derive(Debug, Clone, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
pub struct At {
    /// Look at this thread, for this call alone.
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i64>,
    /// Look at this frame (0 is the innermost), for this call alone.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<u32>,
}

/// How much of a value to show.
#[derive(Debug, Clone, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
pub struct Extent {
    /// Levels of children to show.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Show as much as a reply may hold.
    #[arg(long)]
    #[serde(default)]
    pub full: bool,
}

impl Extent {
    #[must_use]
    pub fn view(&self) -> View {
        let mut view = if self.full { View::full() } else { View::default() };
        if let Some(depth) = self.depth {
            view.depth = depth.min(10);
        }
        view
    }
}

impl At {
    /// Whether it names no other than the selected ones.
    #[must_use]
    pub const fn is_selected(&self) -> bool {
        self.thread.is_none() && self.frame.is_none()
    }

    #[must_use]
    pub fn look(&self, view: View) -> Look {
        Look { thread: self.thread, frame: self.frame, view, ..Look::default() }
    }
}

/// Asks for a look and takes the answer apart.
pub async fn look(cx: &Context, op: Op) -> Result<Seen, Failure> {
    match cx.ask(op).await? {
        Answer::Seen(seen) => Ok(seen),
        other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
    }
}

/// A frame and what is in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FrameView {
    pub thread: ThreadInfo,
    pub frame: Frame,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub locals: Vec<Variable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

impl FrameView {
    /// Moves the selection and shows where it is now.
    pub async fn select(cx: &Context, thread: Option<i64>, frame: Option<FrameChoice>) -> Result<Self, Failure> {
        let look_at = Look { locals: Locals::Selected, ..Look::default() };
        let seen = look(cx, Op::Select { thread, frame, look: look_at }).await?;
        let frame = seen.frames.first().cloned().ok_or_else(|| Failure::refused("the frame can't be read"))?;
        let source = source_at(&frame, 2);
        Ok(Self { thread: seen.thread, frame, source, locals: seen.locals, gaps: seen.gaps })
    }

    /// The same from a record: a selection for this call alone.
    pub fn recorded(moment: &Moment, thread: Option<i64>, choice: Option<FrameChoice>) -> Result<Self, Failure> {
        let stop = past::standing(moment)?;
        let (selected, current) = moment.selection().unwrap_or((stop.thread.id, stop.frame));
        let current = if thread.is_none_or(|id| id == selected) { current } else { 0 };
        let number = match choice {
            Some(FrameChoice::Number(number)) => number,
            Some(FrameChoice::Up) => current.saturating_add(1),
            Some(FrameChoice::Down) if current == 0 => {
                return Err(Failure::refused("frame 0 is the innermost").hint("outwards: bugeye up"));
            }
            Some(FrameChoice::Down) => current - 1,
            None => current,
        };
        let spot = Spot::at(moment, stop, thread.unwrap_or(selected), number)?;
        let mut gaps = spot.gaps.to_vec();
        let locals = spot.locals(moment, "locals").unwrap_or_else(|_| {
            gaps.push(format!("locals of frame {number}: the record has none"));
            Vec::new()
        });
        let source = spot.source(moment, 2);
        Ok(Self { thread: spot.thread.clone(), frame: spot.frame.clone(), source, locals, gaps })
    }
}

impl Render for FrameView {
    fn render(&self, page: &mut Page) {
        let name = self.thread.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        page.line(format!(
            "frame {} {}, thread {}{name}",
            self.frame.index,
            frame_place(&self.frame, page),
            self.thread.id
        ));
        if let Some(source) = &self.source {
            source.render(page);
        }
        super::report::render_locals(&self.locals, false, page);
        for gap in &self.gaps {
            page.line(format!("not read: {gap}"));
        }
    }
}

/// Named values.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Variables {
    pub function: String,
    pub variables: Vec<Variable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<String>,
}

impl Render for Variables {
    fn render(&self, page: &mut Page) {
        if self.variables.is_empty() && self.gaps.is_empty() {
            page.line(format!("none in {}", self.function));
        }
        for variable in &self.variables {
            render_value(&variable.name, &variable.value, true, page);
        }
        for gap in &self.gaps {
            page.line(format!("not read: {gap}"));
        }
    }
}

/// A value under a name: on one line where it fits, else as a tree.
pub fn render_value(name: &str, value: &Value, with_type: bool, page: &mut Page) {
    render_part(name, value, with_type, "--full", page);
}

/// The same, with what to type for what is missing.
pub fn render_part(name: &str, value: &Value, with_type: bool, rest: &str, page: &mut Page) {
    tree(name, value, with_type, 0, page);
    if value.cut > 0 {
        page.line(format!("  … {} characters more: {rest}", value.cut));
    }
}

fn tree(name: &str, value: &Value, with_type: bool, depth: usize, page: &mut Page) {
    let indent = "  ".repeat(depth);
    let kind = value.kind.as_deref().filter(|_| with_type).map(|kind| format!(": {kind}")).unwrap_or_default();
    let mut flat = value.flat();
    if depth > 0 && value.cut > 0 {
        flat.push_str(&format!(" ({} characters more)", value.cut));
    }
    let nested = value.children.iter().any(|child| !child.value.children.is_empty());
    if value.children.is_empty() || (!nested && flat.len() + name.len() < 100) {
        return page.line(format!("{indent}{name}{kind} = {flat}"));
    }
    let text = if value.text.is_empty() { String::new() } else { format!(" = {}", value.text) };
    page.line(format!("{indent}{name}{kind}{text}"));
    for child in &value.children {
        tree(&child.name, &child.value, false, depth + 1, page);
    }
    if value.hidden > 0 || value.more {
        let last = value.children.last().map_or("", |child| child.name.trim_matches(['[', ']']));
        let next = last.parse::<usize>().map_or(value.children.len(), |last| last + 1);
        let count = if value.hidden > 0 { format!("{} ", value.hidden) } else { String::new() };
        page.line(format!("{indent}  … {count}more: --from {next}"));
    }
}
