//! `break`: set a breakpoint.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::breakpoint_line;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::{Context, places};
use crate::model::{Breakpoint, BreakpointReport, Place};
use crate::render::{Page, Render};

/// Set a breakpoint
///
/// It is kept for the project across sessions, and found again when its line moves in an edit. Answers verified, moved
/// (to which line) or pending (why).
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Break {
    /// file:line, a function, module!function or *0xADDR.
    #[arg(value_name = "PLACE", required_unless_present_any = Doing::FLAGS.into_iter().chain(["function"]))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// A function's name.
    #[arg(short = 'f', long, value_name = "NAME", conflicts_with = "place")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub doing: Doing,
    /// Stop only when this is true.
    #[arg(long = "if", visible_alias = "condition", value_name = "EXPR")]
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// Stop at the Nth pass and every later one.
    #[arg(long, visible_alias = "hit-count", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u32>,
    /// Write this message instead of stopping; {expr} is replaced by its value.
    #[arg(long, value_name = "MESSAGE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Stop only in this thread.
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<i64>,
    /// Remove it when it has stopped the program once.
    #[arg(long)]
    #[serde(default)]
    pub once: bool,
}

/// What an agent does, in place of a place; each is short for one (`tool:NAME`, `iteration:N`, …).
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[group(multiple = false)]
pub struct Doing {
    /// Before an agent runs this tool (`*` for any).
    #[arg(long, value_name = "NAME", help_heading = "On agents", conflicts_with_all = ["place", "function"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Before an agent's Nth model call.
    #[arg(long, value_name = "N", help_heading = "On agents", conflicts_with_all = ["place", "function"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Before a tool whose input matches.
    #[arg(long, value_name = "REGEX", help_heading = "On agents", conflicts_with_all = ["place", "function"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Before a tool that names such a file.
    #[arg(long, value_name = "PATH", help_heading = "On agents", conflicts_with_all = ["place", "function"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// When an agent has cost this much.
    #[arg(long, value_name = "USD", help_heading = "On agents", conflicts_with_all = ["place", "function"])]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Before a model is asked.
    #[arg(long, help_heading = "On agents", conflicts_with_all = ["place", "function"])]
    #[serde(default)]
    pub model: bool,
    /// When a tool or a model call of an agent has failed.
    #[arg(long, help_heading = "On agents", conflicts_with_all = ["place", "function"])]
    #[serde(default)]
    pub error: bool,
}

impl Doing {
    const FLAGS: [&'static str; 7] = ["tool", "iteration", "pattern", "file", "cost", "model", "error"];

    /// The place that a flag is short for.
    fn place(self) -> Option<String> {
        self.tool
            .map(|name| format!("tool:{name}"))
            .or_else(|| self.iteration.map(|n| format!("iteration:{n}")))
            .or_else(|| self.pattern.map(|pattern| format!("pattern:{pattern}")))
            .or_else(|| self.file.map(|file| format!("file:{file}")))
            .or_else(|| self.cost.map(|usd| format!("cost:{usd}")))
            .or_else(|| self.model.then(|| "model:*".into()))
            .or_else(|| self.error.then(|| "error".into()))
    }
}

/// One breakpoint and what became of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct BreakSet {
    pub breakpoint: BreakpointReport,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Render for BreakSet {
    fn render(&self, page: &mut Page) {
        let line = breakpoint_line(&self.breakpoint, page);
        page.line(line);
        if let Some(note) = &self.note {
            page.line(format!("note: {note}"));
        }
    }
}

impl Command for Break {
    const NAME: &'static str = "break";
    const ALIASES: &'static [&'static str] = &["b", "breakpoint add"];
    const GROUP: Group = Group::Breakpoints;
    type Output = BreakSet;

    async fn run(self, cx: Context) -> Result<BreakSet, Failure> {
        let asked = self
            .place
            .or(self.function)
            .or_else(|| self.doing.place())
            .ok_or_else(|| Failure::usage("no place was named"))?;
        let resolved = places::resolve(&asked, &cx.caller.cwd)?;
        let (project, session) = (cx.project(), cx.maybe_session());
        let agent = session.as_ref().is_some_and(|live| live.adapter.quirks.agents);
        let is_line = matches!(resolved.place, Place::Line { .. } | Place::Address(_));
        if (agent && !is_line) || resolved.place.is_for_agents() {
            places::for_agent(&resolved.place, self.condition.as_deref())?;
        }
        let (once, condition, hits, log, thread) = (self.once, self.condition, self.hits, self.log, self.thread);
        let owner = session.as_ref().filter(|_| once).map(|live| live.alias.clone());
        let (wish, known) = cx.hub.edit_wishes(&project, |table| {
            let mut wish = Breakpoint {
                condition,
                hits,
                log,
                once,
                thread,
                session: owner,
                line_text: resolved.line_text,
                ..Breakpoint::new(0, resolved.place, asked)
            };
            // The same place again changes what is there; two breakpoints on one line would count twice.
            match table.breakpoints.iter_mut().find(|known| known.place == wish.place && known.session == wish.session)
            {
                Some(known) => {
                    wish.id = known.id;
                    *known = wish.clone();
                    (wish, true)
                }
                None => {
                    wish.id = table.next_id();
                    table.breakpoints.push(wish.clone());
                    (wish, false)
                }
            }
        })?;
        let bindings = match cx.hub.send_wishes(&project, session.as_deref()).await {
            Ok(bindings) => bindings,
            Err(failure) => {
                forget(&cx, &project, wish.id).await;
                return Err(failure);
            }
        };
        let binding = bindings.into_iter().find(|(id, _)| *id == wish.id).map(|(_, binding)| binding);
        let binding = binding.or_else(|| session.as_ref()?.binding(&wish));
        let bad =
            binding.as_ref().and_then(|binding| binding.why.as_deref()).filter(|why| why.contains("can't be parsed"));
        if let Some(why) = bad.map(ToString::to_string) {
            forget(&cx, &project, wish.id).await;
            return Err(Failure::refused(why).hint("nothing was set; correct the condition and set it again"));
        }
        let note = resolved.note.filter(|_| binding.as_ref().is_none_or(|binding| binding.why.is_some()));
        let note = note.or_else(|| known.then(|| "this place had a breakpoint: it was changed".to_string()));
        Ok(BreakSet { breakpoint: BreakpointReport { wish, binding }, note })
    }
}

async fn forget(cx: &Context, project: &std::path::Path, id: u32) {
    let _ = cx.hub.edit_wishes(project, |table| table.breakpoints.retain(|wish| wish.id != id));
    let _ = cx.hub.send_wishes(project, None).await;
}
