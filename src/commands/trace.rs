//! `trace`: run a program once and tell every time a place was reached, with the values there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::report::{Printed, ending_line, parse_seconds, printed, reason_line};
use super::start::LaunchArgs;
use super::{Command, Group};
use crate::failure::Failure;
use crate::hub::trace::{Course as Run, Limits, Plan, trace};
use crate::hub::{Context, Live, Part, places};
use crate::model::{BindingState, Ending, HitFrame, Point, Reason, SessionState, ThreadInfo};
use crate::render::{Page, Render, quoted, quoted_json};
use crate::session::Outcome;
use crate::trace::{Course, Seen, shape};

/// Frames of the way to a hit.
const FRAMES: u32 = 8;
/// Hits in one reply; all of them are in the file that it names.
const MOST_TOLD: usize = 10_000;
/// Lines of hits in the text form.
const LINES: usize = 24;

/// Run a program once and tell what was seen each time a place was reached
///
/// The program does not stop at each hit where its debugger can collect by itself. Without a command to run, the trace
/// is made in the current session, from where it stands to its next stop.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Where, and what to see there: `FILE:LINE: EXPR, EXPR` or `FUNCTION: EXPR`; may be given several times.
    #[arg(long = "at", short = 'a', value_name = "PLACE[: EXPR, …]", required = true)]
    pub at: Vec<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub launch: LaunchArgs,
    /// Only where this is true.
    #[arg(long, value_name = "EXPR")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Only every Nth time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<u32>,
    /// Stop when so many hits were seen.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hits: Option<u64>,
    /// End it after this time (default 60s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// How long the first hit may take (default 30s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_timeout: Option<f64>,
    /// How long the program may run on after its last hit (default 30s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_timeout: Option<f64>,
    /// Leave out the way to each hit: values only, which may be faster.
    #[arg(long)]
    #[serde(default)]
    pub no_paths: bool,
    /// Stop at every hit, as any debugger can, instead of a hook.
    #[arg(long)]
    #[serde(default)]
    pub stops: bool,
    /// Print exactly two maps: values and call paths by place.
    #[arg(long, conflicts_with_all = ["csv", "jsonl"])]
    #[serde(default)]
    pub feedback: bool,
    /// Print a table with a column for each expression.
    #[arg(long, conflicts_with = "jsonl")]
    #[serde(default)]
    pub csv: bool,
    /// Print each hit as a line of JSON while the program runs.
    #[arg(long)]
    #[serde(default)]
    pub jsonl: bool,
    /// Draw the values over the hits into this file (SVG).
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plot: Option<String>,
}

/// What was seen.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Traced {
    pub hits: Vec<HitLine>,
    /// All hits, also those that are not told here.
    pub total: u64,
    pub places: Vec<PlaceLine>,
    /// How the program ended; none where it stands or runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<Ending>,
    pub state: SessionState,
    /// What stopped it otherwise: a crash, an exception, a breakpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stops: Vec<StopLine>,
    /// The limit that ended the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Printed>,
    /// How hits were collected.
    pub way: String,
    pub seconds: f64,
    /// Where all hits are, one JSON array a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The form that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// A limit of time ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

/// One hit. Values, functions and files are debuggee text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HitLine {
    pub seq: u64,
    /// The place as it was asked for.
    pub place: String,
    pub point: u32,
    pub thread: ThreadInfo,
    /// Since the trace began, or the collector's clock.
    pub ms: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<HitFrame>,
    pub values: BTreeMap<String, String>,
    /// Why values are `<unavailable>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notable: Option<String>,
}

/// One place, and how its values went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PlaceLine {
    pub point: u32,
    pub place: String,
    pub hits: u64,
    /// The line that it was moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<u32>,
    /// Why it was never set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    pub courses: Vec<Course>,
}

/// Where something other than a hit stopped the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopLine {
    pub reason: Reason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Trace {
    fn points(&self, cx: &Context) -> Result<(Vec<Point>, Vec<String>), Failure> {
        let mut notes = Vec::new();
        let mut points = Vec::new();
        for (index, text) in self.at.iter().enumerate() {
            let (place, expressions) = split(text);
            let resolved = places::resolve(place, &cx.caller.cwd)?;
            notes.extend(resolved.note);
            points.push(Point {
                id: u32::try_from(index + 1).unwrap_or(u32::MAX),
                place: resolved.place,
                asked: place.to_string(),
                expressions,
                when: self.when.clone(),
                every: self.every.unwrap_or(1),
            });
        }
        if points.len() > 500 {
            return Err(Failure::usage("at most 500 places can be traced at once"));
        }
        Ok((points, notes))
    }

    fn limits(&self, cx: &Context) -> Limits {
        let env = cx.caller.env.as_deref().unwrap_or_default();
        let seconds = |flag: Option<f64>, name: &str, default: f64| {
            let set = || crate::hub::launch::variable(env, name).and_then(|text| parse_seconds(&text).ok());
            Duration::from_secs_f64(flag.or_else(set).unwrap_or(default).clamp(0.0, 86_400.0))
        };
        Limits {
            whole: seconds(self.timeout, "BUGEYE_TRACE_SECS", 60.0),
            first: seconds(self.first_timeout, "BUGEYE_TRACE_FIRST_SECS", 30.0),
            exit: seconds(self.exit_timeout, "BUGEYE_TRACE_EXIT_SECS", 30.0),
            most: self.max_hits.unwrap_or(0),
        }
    }

    fn form(&self) -> Option<String> {
        let forms = [(self.feedback, "feedback"), (self.csv, "csv"), (self.jsonl, "jsonl")];
        forms.into_iter().find(|(asked, _)| *asked).map(|(_, name)| name.to_string())
    }
}

/// `FILE:LINE: a, b` → the place and the expressions: split at the first colon followed by a space, then at commas that
/// stand in no brackets.
fn split(text: &str) -> (&str, Vec<String>) {
    let (place, list) = match text.split_once(": ") {
        Some((place, list)) => (place.trim(), list),
        None => (text.trim().trim_end_matches(':'), ""),
    };
    let mut expressions = vec![String::new()];
    let (mut depth, mut quote) = (0, None);
    for c in list.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('"' | '\'', None) => quote = Some(c),
            ('(' | '[' | '{', None) => depth += 1,
            (')' | ']' | '}', None) => depth -= 1,
            (',', None) if depth == 0 => {
                expressions.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = expressions.last_mut() {
            last.push(c);
        }
    }
    let expressions = expressions.iter().map(|text| text.trim().to_string()).filter(|text| !text.is_empty()).collect();
    (place, expressions)
}

fn line(seen: &Seen, points: &[Point]) -> HitLine {
    let point = points.iter().find(|point| point.id == seen.hit.point);
    let names = point.map(|point| point.expressions.as_slice()).unwrap_or_default();
    let pairs = || names.iter().zip(&seen.hit.values);
    HitLine {
        seq: seen.seq,
        place: point.map(|point| point.asked.clone()).unwrap_or_default(),
        point: seen.hit.point,
        thread: ThreadInfo { id: seen.hit.thread, name: seen.hit.thread_name.clone() },
        ms: seen.hit.micros as f64 / 1000.0,
        frames: seen.hit.frames.clone(),
        values: pairs().map(|(name, value)| (name.clone(), value.text.clone())).collect(),
        unavailable: pairs().filter_map(|(name, value)| Some((name.clone(), value.why.clone()?))).collect(),
        notable: seen.notable.map(Into::into),
    }
}

impl Command for Trace {
    const NAME: &'static str = "trace";
    const GROUP: Group = Group::Running;
    const SPAWNS: bool = true;
    type Output = Traced;

    async fn run(self, cx: Context) -> Result<Traced, Failure> {
        let (points, notes) = self.points(&cx)?;
        let (limits, form, jsonl) = (self.limits(&cx), self.form(), self.jsonl);
        let alone = self.launch.program.is_some() || !self.launch.args.is_empty();
        let plan = Plan {
            points: points.clone(),
            frames: if self.no_paths { 0 } else { FRAMES },
            hooks: !self.stops,
            limits,
            alone,
        };
        let live = if alone {
            let mut blueprint = self.launch.blueprint(&cx)?;
            blueprint.alone = true;
            cx.hub.launch(&cx, blueprint, None).await?.0
        } else {
            cx.session()?
        };
        // A program that was started for this ends with it, also when nobody waits any more.
        let ender = alone.then(|| Ender { cx: cx.clone(), live: live.clone() });
        let (stream, shown) = (cx.stream.clone(), points.clone());
        let mut tell = move |seen: &Seen| {
            if jsonl {
                let _ = stream.try_send(Part::Event(json!(line(seen, &shown))));
            }
        };
        let run = trace(&cx, &live, plan, &mut tell).await;
        let result = run.map(|run| told(&cx, &live, run, notes, form));
        if let Some(ender) = ender {
            ender.end().await;
        } else {
            let _ = live.handle.ask(crate::session::Op::Untrace).await;
        }
        let mut traced = result?;
        let unset = |place: &PlaceLine| place.hits == 0 && place.why.is_some();
        if traced.total == 0 && !traced.places.is_empty() && traced.places.iter().all(unset) {
            let place = &traced.places[0];
            let why = place.why.clone().unwrap_or_default();
            return Err(Failure::refused(format!("{} can't be traced: {why}", place.place))
                .hint(format!("look at the lines: bugeye source {}", place.place)));
        }
        if let Some(file) = &self.plot {
            let path = cx.caller.cwd.join(file);
            std::fs::write(&path, shape::plot(&traced))
                .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
            traced.notes.push(format!("plotted in {file}"));
        }
        Ok(traced)
    }

    fn render_event(data: &Value, page: &mut Page) {
        page.line(quoted_json(&data.to_string()));
    }
}

/// Ends a session when it is dropped, or when told to.
struct Ender {
    cx: Context,
    live: Arc<Live>,
}

impl Ender {
    async fn end(self) {
        self.cx.hub.end(&self.live, true).await;
    }
}

impl Drop for Ender {
    fn drop(&mut self) {
        let (hub, live) = (self.cx.hub.clone(), self.live.clone());
        tokio::spawn(async move { hub.end(&live, true).await });
    }
}

fn told(cx: &Context, live: &Arc<Live>, run: Run, mut notes: Vec<String>, form: Option<String>) -> Traced {
    let points = run.collector.points().to_vec();
    let kept = &run.collector.kept;
    let mut hits: Vec<HitLine> =
        kept.first.iter().chain(kept.notable.values()).chain(&kept.newest).map(|seen| line(seen, &points)).collect();
    hits.dedup_by_key(|hit| hit.seq);
    if hits.len() > MOST_TOLD + 1000 {
        hits.truncate(MOST_TOLD);
    }
    if !run.collector.is_whole() {
        notes.push(format!("{} of {} hits are told here", hits.len(), run.collector.total));
    }
    if run.unreadable > 0 {
        notes.push(format!("{} records of the hook could not be read", run.unreadable));
    }
    let places = points
        .iter()
        .map(|point| {
            let (hits, courses) = run.collector.courses.get(&point.id).cloned().unwrap_or_default();
            let binding = run.bindings.get(&point.id);
            PlaceLine {
                point: point.id,
                place: point.asked.clone(),
                hits,
                moved_to: binding
                    .filter(|binding| binding.state == BindingState::Moved)
                    .and_then(|binding| binding.line),
                why: binding
                    .filter(|binding| binding.state == BindingState::Pending && hits == 0)
                    .and_then(|binding| binding.why.clone()),
                courses,
            }
        })
        .collect();
    let stop_line = |stop: &crate::model::Stop| {
        let frame = stop.frames.iter().find(|frame| frame.index == stop.frame);
        StopLine {
            reason: stop.reason.clone(),
            function: frame.map(|frame| frame.function.clone()),
            file: frame.and_then(|frame| frame.file.clone()),
            line: frame.and_then(|frame| frame.line),
        }
    };
    let mut stops: Vec<StopLine> = run.stops.iter().map(stop_line).collect();
    let (exit, state) = match &run.outcome {
        Outcome::Ended(ending) => (Some(ending.clone()), SessionState::Exited),
        Outcome::Stopped(stop) => {
            if run.limit.is_none() {
                stops.push(stop_line(stop));
            }
            (None, SessionState::Stopped)
        }
        Outcome::Running => (None, SessionState::Running),
    };
    let timed_out = matches!(run.outcome, Outcome::Running);
    Traced {
        hits,
        total: run.collector.total,
        places,
        exit,
        state,
        stops,
        limit: run.limit,
        output: printed(&live.unread(&cx.caller)),
        way: run.way.into(),
        seconds: run.took.as_secs_f64(),
        file: run
            .file
            .filter(|_| run.collector.total as usize > MOST_TOLD)
            .map(|path| path.to_string_lossy().into_owned()),
        notes,
        form,
        timed_out,
    }
}

impl Render for Traced {
    fn render(&self, page: &mut Page) {
        match self.form.as_deref() {
            Some("feedback") => return page.line(quoted_json(&shape::feedback(self).to_string())),
            Some("csv") => return page.line(shape::csv(self).trim_end()),
            Some("jsonl") => {
                let mut rest = json!(self);
                if let Some(object) = rest.as_object_mut() {
                    object.retain(|name, _| name != "hits" && name != "form");
                    let mut last = Map::new();
                    last.insert("end".into(), Value::Object(std::mem::take(object)));
                    return page.line(quoted_json(&Value::Object(last).to_string()));
                }
            }
            _ => self.text(page),
        }
    }

    fn exit_code(&self) -> u8 {
        if self.timed_out { 4 } else { 0 }
    }
}

impl Traced {
    fn text(&self, page: &mut Page) {
        let plural = if self.total == 1 { "" } else { "s" };
        let via = page.via.clone().map(|via| format!(", {via}")).unwrap_or_default();
        page.line(format!("{} hit{plural} in {:.2} s ({}{via})", self.total, self.seconds, self.way));
        for place in &self.places {
            let moved = place.moved_to.map(|line| format!(", moved to line {line}")).unwrap_or_default();
            let why = place.why.as_deref().map(|why| format!(", never set: {}", quoted(why))).unwrap_or_default();
            let many = self.places.len() > 1 || place.hits != self.total || !moved.is_empty() || !why.is_empty();
            if many {
                page.line(format!("{}: {} hits{moved}{why}", quoted(&place.place), place.hits));
            }
            for course in &place.courses {
                let spark = shape::spark(course, 40);
                if let (Some(least), Some(most), false) = (course.least, course.most, spark.is_empty()) {
                    page.line(format!("  {} {spark} {least}..{most}", quoted(&course.expression)));
                }
            }
        }
        self.table(page);
        for stop in &self.stops {
            let at = match (&stop.file, stop.line) {
                (Some(file), Some(line)) => format!(" {}:{line}", page.path(file)),
                _ => String::new(),
            };
            let function = stop.function.as_deref().map(|name| format!(" in {}", quoted(name))).unwrap_or_default();
            page.line(format!("stopped: {}{function}{at}", reason_line(&stop.reason)));
        }
        match (&self.exit, &self.limit) {
            (Some(ending), _) => page.line(ending_line(ending)),
            (None, Some(limit)) => page.line(format!("ended early: {limit}")),
            (None, None) => page.line(self.state),
        }
        if let Some(output) = &self.output {
            output.render(page);
        }
        if let Some(file) = &self.file {
            page.line(format!("all hits: {}", quoted(file)));
        }
        for note in &self.notes {
            page.line(format!("note: {note}"));
        }
    }

    /// The first hits, those that stand out, and the last.
    fn table(&self, page: &mut Page) {
        let several = self.places.len() > 1;
        let threads = self.hits.iter().any(|hit| hit.thread.id != self.hits[0].thread.id);
        let shown = chosen(&self.hits);
        let mut before: Option<(u64, &[HitFrame])> = None;
        for hit in shown {
            if let Some((seq, _)) = before
                && hit.seq > seq + 1
            {
                page.line(format!("  … {} more", hit.seq - seq - 1));
            }
            let mut text = format!("{:>5}", hit.seq);
            if several {
                text.push_str(&format!(" {}", quoted(&hit.place)));
            }
            if threads {
                let name = hit.thread.name.clone().unwrap_or_else(|| hit.thread.id.to_string());
                text.push_str(&format!(" [{}]", quoted(&name)));
            }
            let place = self.places.iter().find(|place| place.point == hit.point);
            for course in place.map(|place| place.courses.as_slice()).unwrap_or_default() {
                let value = hit.values.get(&course.expression).map(String::as_str).unwrap_or_default();
                text.push_str(&format!(" {}={}", quoted(&course.expression), crate::render::cut(&quoted(value), 80).0));
            }
            if before.is_none_or(|(_, frames)| frames != hit.frames.as_slice()) && !hit.frames.is_empty() {
                let names: Vec<String> = hit.frames.iter().take(4).map(|frame| quoted(&frame.function)).collect();
                text.push_str(&format!("  ({})", names.join(" < ")));
            }
            if let Some(notable) = hit.notable.as_deref().filter(|_| self.hits.len() > LINES) {
                text.push_str(&format!("  {notable}"));
            }
            page.line(text);
            before = Some((hit.seq, &hit.frames));
        }
    }
}

/// At most so many lines of hits as are read: the first ten, the last six, and between them what stands out.
fn chosen(hits: &[HitLine]) -> Vec<&HitLine> {
    if hits.len() <= LINES {
        return hits.iter().collect();
    }
    let (first, last) = (10, hits.len() - 6);
    let notable: Vec<&HitLine> = hits[first..last].iter().rev().filter(|hit| hit.notable.is_some()).take(8).collect();
    hits[..first].iter().chain(notable.into_iter().rev()).chain(&hits[last..]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_and_its_expressions_are_taken_apart() {
        let cases: [(&str, &str, &[&str]); 6] = [
            ("a.c:6: i, sum", "a.c:6", &["i", "sum"]),
            ("a.c:6", "a.c:6", &[]),
            ("parse: argv[1]", "parse", &["argv[1]"]),
            ("ns::f: m[{1, 2}], g(a, b), \"x, y\"", "ns::f", &["m[{1, 2}]", "g(a, b)", "\"x, y\""]),
            ("a.py:3: d['k: v'], x", "a.py:3", &["d['k: v']", "x"]),
            ("work:", "work", &[]),
        ];
        for (text, place, expressions) in cases {
            let (found, list) = split(text);
            assert_eq!(found, place);
            assert_eq!(list, expressions, "{text}");
        }
    }
}
