//! The answer of every command that lets the program run: the stop, the end, or that it is still running.
//!
//! Apart from the commands, since a dozen of them answer with it. It is made for a reader who pays by the word: one
//! header line, a few source lines, what changed, the stack on a line, what was printed.

use std::fmt::Write as _;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lines::source_of;
pub use super::lines::{Source, source_at};
use crate::failure::Failure;
use crate::hub::{Context, Live};
use crate::model::{
    BindingState, BreakpointReport, Change, Ending, Frame, Place, Reason, SessionState, Stop, Variable, View,
};
use crate::output::Part;
use crate::render::{Page, Render, quoted, quoted_lines};
use crate::session::{Answer, Op, Outcome, Resume, Stream, Wait};

/// Output shown with a stop; the rest is a command away.
const MAX_OUTPUT: usize = 2000;

/// How long the program may run before the answer is `running`.
#[derive(Debug, Clone, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
pub struct WaitArgs {
    /// Wait this long for a stop, then answer `running` (5s, 500ms, 2m, 0; default 25s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<f64>,
}

/// How often to resume, and how long to wait each time.
#[derive(Debug, Clone, Default, clap::Args, Serialize, Deserialize, JsonSchema)]
pub struct StepArgs {
    /// Do it this many times, as long as nothing else stops the program.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    pub wait: WaitArgs,
}

/// The longest wait of the command line.
const MAX_WAIT: f64 = 570.0;
const DEFAULT_WAIT: f64 = 25.0;

impl WaitArgs {
    #[must_use]
    pub fn to_wait(&self, view: View) -> Wait {
        let seconds = self.wait.unwrap_or(DEFAULT_WAIT).clamp(0.0, MAX_WAIT);
        Wait { limit: Duration::from_secs_f64(seconds), view }
    }

    /// What to say about a wait that was cut.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        self.wait.filter(|wait| *wait > MAX_WAIT).map(|_| format!("the wait was cut to {MAX_WAIT} s"))
    }
}

/// Reads `5`, `5s`, `500ms`, `2m`.
pub fn parse_seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(format!("`{unit}` is no unit of time; write 5s, 500ms or 2m")),
    };
    match number.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number * factor),
        _ => Err(format!("`{text}` is no time; write 5s, 500ms or 2m")),
    }
}

/// Where the program is now, and what it did on the way.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub state: SessionState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Breakpoints of a session that was just started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub breakpoints: Vec<BreakpointReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Printed>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Hits of breakpoints so far, while the program runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// The exit code to pass on, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagate: Option<u8>,
}

/// Output since the last reply. Debuggee text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Printed {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// What log breakpoints wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
    /// Bytes before what is shown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Report {
    /// Hands the session an operation that runs the program, and tells what came of it.
    pub async fn of(cx: &Context, op: Op, view: View) -> Result<Self, Failure> {
        let live = cx.session()?;
        match cx.ask(op).await? {
            Answer::Outcome(outcome) => Ok(Self::from_outcome(cx, &live, outcome, view)),
            other => Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        }
    }

    /// Resumes several times, as long as each ends as a plain step.
    pub async fn repeated(cx: &Context, how: Resume, steps: &StepArgs) -> Result<Self, Failure> {
        let view = View::default();
        let mut report: Option<Self> = None;
        for _ in 0..steps.count.unwrap_or(1).max(1) {
            let op = Op::Resume { how: how.clone(), thread: None, wait: steps.wait.to_wait(view) };
            let mut next = Self::of(cx, op, view).await?;
            next.printed_before(report.and_then(|before| before.output));
            let goes_on = matches!(&next.stop, Some(stop) if stop.reason == Reason::Step);
            report = Some(next);
            if !goes_on {
                break;
            }
        }
        let mut report = report.ok_or_else(|| Failure::internal("no step was made"))?;
        report.notes.extend(steps.wait.note());
        Ok(report)
    }

    #[must_use]
    pub fn from_outcome(cx: &Context, live: &Live, outcome: Outcome, view: View) -> Self {
        let mut report = Self { output: printed(&live.unread(&cx.caller)), ..Self::held(live) };
        report.notes.extend(live.journal.as_ref().and_then(crate::store::Journal::take_trouble));
        match outcome {
            Outcome::Stopped(stop) => {
                report.state = SessionState::Stopped;
                report.source = source_of(&stop, view);
                report.stop = Some(*stop);
            }
            Outcome::Running => {
                report.state = SessionState::Running;
                let hits = live.handle.snapshot.borrow().hits.values().map(|binding| binding.hits).sum();
                report.hits = Some(hits).filter(|hits| *hits > 0);
            }
            Outcome::Ended(ending) => {
                report.state = SessionState::Exited;
                report.ending = Some(ending);
            }
        }
        report
    }

    /// Puts what was printed on the way, and not told yet, before what was printed last.
    pub fn printed_before(&mut self, earlier: Option<Printed>) {
        let Some(mut all) = earlier else { return };
        if let Some(last) = self.output.take() {
            all.stdout.push_str(&last.stdout);
            all.stderr.push_str(&last.stderr);
            all.log.push_str(&last.log);
            all.left_out += last.left_out;
        }
        for text in [&mut all.stdout, &mut all.stderr, &mut all.log] {
            let mut cut = text.len().saturating_sub(MAX_OUTPUT);
            while !text.is_char_boundary(cut) {
                cut += 1;
            }
            text.drain(..cut);
            all.left_out += cut as u64;
        }
        self.output = Some(all);
    }

    /// A program that is held before it begins.
    #[must_use]
    pub fn held(live: &Live) -> Self {
        let snapshot = live.handle.snapshot.borrow().clone();
        Self { pid: snapshot.pid, ..Self::in_state(snapshot.state) }
    }

    /// A program of which no more is known.
    #[must_use]
    pub fn in_state(state: SessionState) -> Self {
        Self {
            state,
            pid: None,
            stop: None,
            source: None,
            ending: None,
            breakpoints: Vec::new(),
            output: None,
            notes: Vec::new(),
            hits: None,
            propagate: None,
        }
    }

    /// Passes the program's own exit code on.
    pub fn propagate(&mut self) {
        self.propagate = match &self.ending {
            Some(Ending::Exited { code: Some(code) }) => u8::try_from(code & 0xff).ok(),
            Some(Ending::Signalled { .. }) => Some(128),
            _ => None,
        };
    }
}

/// Output as a reply carries it: its end, when there is much.
#[must_use]
pub fn printed(part: &Part) -> Option<Printed> {
    let mut all = Printed { left_out: part.dropped, ..Printed::default() };
    let wanted = |stream: Stream| stream != Stream::Console;
    let total: usize = part.chunks.iter().filter(|chunk| wanted(chunk.stream)).map(|chunk| chunk.text.len()).sum();
    let mut skip = total.saturating_sub(MAX_OUTPUT);
    all.left_out += skip as u64;
    for chunk in part.chunks.iter().filter(|chunk| wanted(chunk.stream)) {
        let mut cut = skip.min(chunk.text.len());
        skip -= cut;
        while !chunk.text.is_char_boundary(cut) {
            cut += 1;
        }
        let text = &chunk.text[cut..];
        match chunk.stream {
            Stream::Stdout => all.stdout.push_str(text),
            Stream::Stderr => all.stderr.push_str(text),
            Stream::Log => all.log.push_str(text),
            Stream::Console => {}
        }
    }
    (all != Printed::default()).then_some(all)
}

impl Render for Report {
    fn render(&self, page: &mut Page) {
        match (&self.stop, &self.ending) {
            (Some(stop), _) => render_stop(stop, self.source.as_ref(), page),
            (None, Some(ending)) => page.line(format!("{}{}", ending_line(ending), tag(page))),
            (None, None) => {
                let pid = self.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                let hits = self.hits.map(|hits| format!(", hits so far {hits}")).unwrap_or_default();
                page.line(format!("{}{pid}{hits}{}", self.state, tag(page)));
            }
        }
        for report in &self.breakpoints {
            page.line(breakpoint_line(report, page));
        }
        if let Some(output) = &self.output {
            output.render(page);
        }
        for note in &self.notes {
            page.line(format!("note: {note}"));
        }
        match self.state {
            SessionState::Running if self.stop.is_none() => {
                page.line("next: bugeye await (wait on), bugeye pause (stop it where it is)");
            }
            SessionState::Held => page.line("next: bugeye continue"),
            _ => {}
        }
    }

    fn exit_code(&self) -> u8 {
        self.propagate.unwrap_or(0)
    }
}

/// `[s1 via lldb-dap 19.1.7]`
fn tag(page: &Page) -> String {
    match (&page.session, &page.via) {
        (Some(session), Some(via)) => format!(" [{session} via {via}]"),
        (Some(session), None) => format!(" [{session}]"),
        _ => String::new(),
    }
}

/// How a program ended, in words.
#[must_use]
pub fn ending_line(ending: &Ending) -> String {
    match ending {
        Ending::Exited { code: Some(code) } => format!("exited: code {code}"),
        Ending::Exited { code: None } => "exited".into(),
        Ending::Signalled { signal } => format!("ended by {signal}"),
        Ending::Detached => "let go: the program runs on without the debugger".into(),
        Ending::Stopped => "ended by bugeye stop".into(),
        Ending::Lost { adapter_exit, .. } => {
            format!("lost: the adapter is gone ({})", adapter_exit.as_deref().unwrap_or("its streams closed"))
        }
    }
}

/// Why a program stopped, in words.
#[must_use]
pub fn reason_line(reason: &Reason) -> String {
    match reason {
        Reason::Breakpoint { ids, hit } if ids.is_empty() => {
            let _ = hit;
            "breakpoint".into()
        }
        Reason::Breakpoint { ids, hit } => {
            let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
            format!("breakpoint {} (hit {hit})", ids.join(", "))
        }
        Reason::Step => "step".into(),
        Reason::Pause => "pause".into(),
        Reason::Entry => "entry".into(),
        Reason::Attached => "attached".into(),
        Reason::Reached => "reached".into(),
        Reason::Watch { id, expression, old, new } => {
            let expression = quoted(expression);
            match (old, new) {
                (Some(old), Some(new)) if old != new => {
                    format!("watch {id} {expression}: {} -> {}", quoted(old), quoted(new))
                }
                (_, Some(value)) => format!("watch {id} {expression}: {}", quoted(value)),
                _ => format!("watch {id} {expression}"),
            }
        }
        Reason::Exception { text } => format!("exception {}", quoted(text)),
        Reason::Signal { name, detail: Some(detail) } => format!("signal {name} ({})", quoted(detail)),
        Reason::Signal { name, detail: None } => format!("signal {name}"),
        Reason::Other { text } => quoted(text),
    }
}

/// `work a.c:7`
#[must_use]
pub fn frame_place(frame: &Frame, page: &Page) -> String {
    match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{} {}:{line}", frame.function, page.path(file)),
        _ => frame.function.clone(),
    }
}

fn render_stop(stop: &Stop, source: Option<&Source>, page: &mut Page) {
    let top = stop.frames.iter().find(|frame| frame.index == stop.frame);
    let place = top.map_or_else(|| "an unknown place".into(), |frame| frame_place(frame, page));
    let name = stop.thread.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
    page.line(format!(
        "stopped: {} in {place}, thread {}{name}{}",
        reason_line(&stop.reason),
        stop.thread.id,
        tag(page)
    ));
    if let Some(failed) = &stop.condition_failed {
        page.line(format!("condition failed, stopped as if it were true: {}", quoted_lines(failed)));
    }
    if let Some(source) = source {
        source.render(page);
    }
    render_locals(&stop.locals, stop.same_function, page);
    let program: Vec<&Frame> = stop.frames.iter().filter(|frame| !frame.runtime).collect();
    if program.len() > 1 || (stop.frames.len() > 1 && program.is_empty()) {
        let frames = if program.is_empty() { stop.frames.iter().collect() } else { program };
        let mut line = String::from("stack: ");
        for (index, frame) in frames.iter().enumerate() {
            let separator = if index == 0 { "" } else { " < " };
            let text =
                if index == 0 && frame.index == stop.frame { frame.function.clone() } else { frame_place(frame, page) };
            let _ = write!(line, "{separator}{text}");
        }
        if stop.more_frames {
            line.push_str(" < …");
        }
        page.line(line);
    }
    for gap in &stop.gaps {
        page.line(format!("not read: {gap}"));
    }
}

/// Locals packed on lines; at a further stop in the same function what changed comes first.
pub fn render_locals(locals: &[Variable], compare: bool, page: &mut Page) {
    if locals.is_empty() {
        return;
    }
    let changed: Vec<&Variable> = locals.iter().filter(|variable| variable.change.is_some()).collect();
    if !compare {
        pack("locals: ", locals.iter().map(|variable| pair(variable, false)), page);
        return render_missing(locals, page);
    }
    if changed.is_empty() {
        page.line("changed: nothing");
    } else {
        pack("changed: ", changed.into_iter().map(|variable| pair(variable, true)), page);
    }
    let same = locals.iter().filter(|variable| variable.change.is_none());
    pack("same: ", same.map(short_pair), page);
    render_missing(locals, page);
}

/// Of what an agent is about to do nothing is left out in silence.
fn render_missing(locals: &[Variable], page: &mut Page) {
    let agent = page.via.as_deref() == Some(crate::adapters::agent::AGENT.id);
    for variable in locals.iter().filter(|variable| agent && variable.value.cut > 0) {
        let (name, cut) = (&variable.name, variable.value.cut);
        page.line(format!("{name} has {cut} characters more: bugeye print --full {name}"));
    }
}

fn pair(variable: &Variable, with_change: bool) -> String {
    let value = variable.value.flat();
    match &variable.change {
        Some(Change::From(old)) if with_change => {
            let (old, cut) = crate::render::cut(old, 40);
            format!("{}={value} (was {old}{})", variable.name, if cut > 0 { "…" } else { "" })
        }
        Some(Change::New) if with_change => format!("{}={value} (new)", variable.name),
        _ => format!("{}={value}", variable.name),
    }
}

/// What has not changed was shown before: long values are only named.
fn short_pair(variable: &Variable) -> String {
    let value = variable.value.flat();
    if value.len() > 24 { variable.name.clone() } else { format!("{}={value}", variable.name) }
}

/// Puts items on lines of the page's width.
fn pack(head: &str, items: impl Iterator<Item = String>, page: &mut Page) {
    let mut line = String::from(head);
    let mut empty = true;
    for item in items {
        if !empty && line.chars().count() + item.chars().count() + 2 > page.width.max(60) {
            page.line(line.trim_end());
            line = String::from("  ");
        } else if !empty {
            line.push_str("  ");
        }
        line.push_str(&item);
        empty = false;
    }
    if !empty {
        page.line(line.trim_end());
    }
}

impl Render for Printed {
    fn render(&self, page: &mut Page) {
        if self.left_out > 0 {
            page.line(format!("output: … {} bytes before this: bugeye output --all", self.left_out));
        }
        for (name, text) in [("output", &self.stdout), ("stderr", &self.stderr), ("log", &self.log)] {
            if text.is_empty() {
                continue;
            }
            let text = quoted_lines(text.trim_end_matches('\n'));
            if text.contains('\n') {
                page.line(format!("{name}:"));
                for line in text.lines() {
                    page.line(format!("| {line}"));
                }
            } else {
                page.line(format!("{name}: {text}"));
            }
        }
    }
}

/// One breakpoint on a line.
#[must_use]
pub fn breakpoint_line(report: &BreakpointReport, page: &Page) -> String {
    let wish = &report.wish;
    let mut line = format!("breakpoint {} {}", wish.id, quoted(&wish.asked));
    // It followed its line through an edit of the file.
    if let (Place::Line { line: now, .. }, Ok(Place::Line { line: asked, .. })) =
        (&wish.place, Place::parse(&wish.asked))
        && *now != asked
    {
        let _ = write!(line, " (now line {now})");
    }
    match &report.binding {
        _ if !wish.enabled => line.push_str(": disabled"),
        None => line.push_str(": pending (no session is live)"),
        Some(binding) => match binding.state {
            BindingState::Verified => {
                line.push_str(": verified");
                if let (Place::Function { .. }, Some(file), Some(at)) = (&wish.place, &binding.file, binding.line) {
                    let _ = write!(line, " at {}:{at}", page.path(file));
                }
                if let Some(why) = &binding.why {
                    let _ = write!(line, " ({})", quoted_lines(why));
                }
            }
            BindingState::Moved => {
                let _ = write!(line, ": moved to line {}", binding.line.unwrap_or(0));
            }
            BindingState::Pending => {
                let why = binding.why.as_deref().unwrap_or("not bound yet");
                let _ = write!(line, ": pending ({})", quoted_lines(why));
            }
            BindingState::Disabled => line.push_str(": disabled"),
        },
    }
    if let Some(condition) = &wish.condition {
        let _ = write!(line, ", if {}", quoted(condition));
    }
    if let Some(hits) = wish.hits {
        let _ = write!(line, ", from hit {hits} on");
    }
    if let Some(log) = &wish.log {
        let _ = write!(line, ", logs \"{}\"", quoted(log));
    }
    if let Some(thread) = wish.thread {
        let _ = write!(line, ", in thread {thread}");
    }
    if wish.once {
        line.push_str(", once");
    }
    if let Some(hits) = report.binding.as_ref().map(|binding| binding.hits).filter(|hits| *hits > 0) {
        let _ = write!(line, ", hits {hits}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Chunk;

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(parse_seconds("5"), Ok(5.0));
        assert_eq!(parse_seconds("500ms"), Ok(0.5));
        assert_eq!(parse_seconds("2m"), Ok(120.0));
        assert!(parse_seconds("soon").is_err() && parse_seconds("5x").is_err() && parse_seconds("-1").is_err());
    }

    #[test]
    fn of_much_output_the_end_is_shown_and_the_rest_counted() {
        let chunk = |text: String| Chunk { at: 0, stream: Stream::Stdout, text };
        let part = Part { chunks: vec![chunk("a".repeat(1500)), chunk("é".repeat(1000))], dropped: 7, end: 0 };
        let shown = printed(&part).unwrap();
        assert_eq!(shown.stdout.chars().filter(|c| *c == 'é').count(), 1000);
        assert_eq!(shown.left_out, 7 + 1500);
    }
}
