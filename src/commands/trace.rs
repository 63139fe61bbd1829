//! `trace`: run a program once and tell every time a place was reached, with the values there.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::report::parse_seconds;
use super::start::LaunchArgs;
use super::traced::{Form, Traced};
use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::launch::variable;
use crate::hub::trace::{Limits, Plan, trace};
use crate::hub::{Context, Live, Part, places};
use crate::model::{Place, Point, View};
use crate::render::{Page, quoted_json};
use crate::session::{MAX_POINTS, Op, Wait};
use crate::trace::told::HitLine;
use crate::trace::{Seen, picture, shape};

/// Frames of the way to a hit.
const FRAMES: u32 = 8;
/// Calls that are told where nobody says how many, and at most.
const CALLS: u64 = 1000;
const MOST_CALLS: u64 = 100_000;

/// Run a program once and tell what was seen each time a place was reached
///
/// The program does not stop at each hit where its debugger can collect by itself. Without a command to run, the trace
/// is made in the current session, from where it stands to its next stop.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// Where, and what to see there: `FILE:LINE: EXPR, EXPR` or `FUNCTION: EXPR`; may be given several times.
    #[arg(long = "at", short = 'a', value_name = "PLACE[: EXPR, …]", required_unless_present_any = ["calls", "watch"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at: Vec<String>,
    /// Tell each call of the functions whose names match: arguments, value, depth (`'module.*'`, `'ns::*'`, `'parse*'`).
    #[arg(long, value_name = "GLOB")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Tell each change of a variable, by a data breakpoint.
    #[arg(long, value_name = "EXPR")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<String>,
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
    /// Stop when so many hits, or calls (default 1000), were seen.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_hits: Option<u64>,
    /// Tell no more calls than this (default 1000).
    #[arg(long, value_name = "N", requires = "calls")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// When so many calls were told, let the program go on to its end.
    #[arg(long)]
    #[serde(default)]
    pub to_end: bool,
    /// End it after this time (default 60s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// How long the program may take to be launched, once it is built (default 10s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_timeout: Option<f64>,
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
    /// Keep debugger and program on one core while it runs: up to three times faster with native debuggers. The program's
    /// threads take turns then, and it sees one core.
    #[arg(long)]
    #[serde(default)]
    pub pin: bool,
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
    /// Draw the values over the hits into this file (.svg or .png).
    #[arg(long, value_name = "FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plot: Option<String>,
}

impl Trace {
    fn points(&self, cx: &Context) -> Result<(Vec<Point>, Vec<String>), Failure> {
        let mut notes = Vec::new();
        let mut points = Vec::new();
        for text in &self.at {
            let (place, expressions) = split(text);
            if let Some((place, rest)) = place.split_once(char::is_whitespace)
                && place.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok())
            {
                return Err(Failure::usage(format!("`{text}` has no colon after its place"))
                    .hint(format!("write --at '{place}: {}'", rest.trim())));
            }
            let resolved = places::resolve(place, &cx.caller.cwd)?;
            notes.extend(resolved.note);
            points.push(Point { expressions, ..self.point(points.len(), resolved.place, place) });
        }
        if points.len() + self.watch.len() > MAX_POINTS as usize {
            return Err(Failure::usage(format!("at most {MAX_POINTS} places can be traced at once")));
        }
        Ok((points, notes))
    }

    fn watched(&self, before: usize) -> Vec<Point> {
        let point = |(index, text): (usize, &String)| {
            let place = Place::Function { module: None, name: text.clone() };
            Point { expressions: vec![text.clone()], ..self.point(before + index, place, text) }
        };
        self.watch.iter().enumerate().map(point).collect()
    }

    fn point(&self, before: usize, place: Place, asked: &str) -> Point {
        Point {
            id: u32::try_from(before + 1).unwrap_or(u32::MAX),
            place,
            asked: asked.to_string(),
            expressions: Vec::new(),
            when: self.when.clone(),
            every: self.every.unwrap_or(1),
        }
    }

    fn limit(&self, cx: &Context, flag: Option<f64>, name: &str, default: f64) -> Result<Duration, Failure> {
        let env = cx.caller.env.as_deref().unwrap_or_default();
        let seconds = match (flag, variable(env, name)) {
            (Some(seconds), _) => seconds,
            (None, Some(text)) => {
                parse_seconds(&text).map_err(|why| Failure::usage(format!("{name} is no time: {why}")))?
            }
            (None, None) => default,
        };
        Ok(Duration::from_secs_f64(seconds.clamp(0.0, 86_400.0)))
    }

    fn limits(&self, cx: &Context) -> Result<Limits, Failure> {
        Ok(Limits {
            whole: self.limit(cx, self.timeout, "BUGEYE_TRACE_SECS", 60.0)?,
            first: self.limit(cx, self.first_timeout, "BUGEYE_TRACE_FIRST_SECS", 30.0)?,
            exit: self.limit(cx, self.exit_timeout, "BUGEYE_TRACE_EXIT_SECS", 30.0)?,
            most: self.max_hits.unwrap_or(0),
        })
    }

    const fn form(&self) -> Form {
        match (self.feedback, self.csv, self.jsonl) {
            (true, ..) => Form::Feedback,
            (_, true, _) => Form::Csv,
            (_, _, true) => Form::Jsonl,
            _ => Form::Text,
        }
    }

    /// All of it, to the end: whatever was started or armed is gone afterwards.
    async fn work(self, cx: Context) -> Result<Traced, Failure> {
        let (points, notes) = self.points(&cx)?;
        let watched = self.watched(points.len());
        let form = self.form();
        let alone = self.is_alone()?;
        let plan = Plan {
            frames: if self.no_paths { 0 } else { FRAMES },
            hooks: !self.stops,
            pinned: self.pin,
            limits: self.limits(&cx)?,
            alone,
            calls: self.calls.clone(),
            most_calls: match self.calls.is_empty() {
                true => 0,
                false => self.max_calls.or(self.max_hits).unwrap_or(CALLS).clamp(1, MOST_CALLS),
            },
            to_end: self.to_end,
            stream: match form {
                Form::Csv => Some(shape::csv),
                Form::Jsonl => Some(jsonl),
                Form::Text | Form::Feedback => None,
            },
            points,
            watched,
        };
        let live = if alone { self.start(&cx).await? } else { cx.session()? };
        if form == Form::Csv {
            let points: Vec<Point> = plan.points.iter().chain(&plan.watched).cloned().collect();
            let _ = cx.stream.send(Part::Event(Value::String(shape::csv_head(&points)))).await;
        }
        let run = trace(&cx, &live, plan).await;
        let result = run.map(|run| Traced::new(&cx, &live, run, notes, form));
        match alone {
            true => cx.hub.end(&live, true).await,
            false => drop(live.handle.ask(Op::Untrace).await),
        }
        let mut traced = result?;
        traced.check()?;
        if let Some(file) = &self.plot {
            let path = cx.caller.cwd.join(file);
            let draw = picture::form(file).unwrap_or(|picture| picture::svg(picture).into_bytes());
            std::fs::write(&path, draw(&shape::picture(&traced.places)))
                .map_err(|error| Failure::io(format!("write {}", path.display()), &error))?;
            traced.notes.push(format!("plotted in {file}"));
        }
        if form != Form::Text {
            for note in traced.notes.iter().chain(&traced.limit) {
                let _ = cx.stream.send(Part::Progress(note.clone())).await;
            }
        }
        Ok(traced)
    }

    /// Whether a program is to be started for it.
    fn is_alone(&self) -> Result<bool, Failure> {
        let launch = &self.launch;
        if launch.core.is_some() {
            return Err(Failure::usage("a core file can't run, so there is nothing to trace"));
        }
        if launch.terminal.is_some() {
            return Err(Failure::usage("--terminal is for `run` and `start`"));
        }
        let alone = launch.program.is_some() || !launch.args.is_empty() || launch.config.is_some();
        if !alone && (launch.stdin.is_some() || launch.cwd.is_some() || !launch.env.is_empty()) {
            return Err(Failure::usage("--stdin, --cwd and --env are for a program that is started: name it"));
        }
        if !self.calls.is_empty() && !self.watch.is_empty() {
            return Err(Failure::usage("--calls and --watch can't be had in one trace"));
        }
        Ok(alone)
    }

    /// Starts the program that is to be traced, to where a trace can be armed.
    async fn start(&self, cx: &Context) -> Result<Arc<Live>, Failure> {
        let mut blueprints = self.launch.clone().blueprints(cx).await?.into_iter();
        let (Some((mut blueprint, _)), None) = (blueprints.next(), blueprints.next()) else {
            return Err(Failure::usage("a compound configuration can't be traced; name one of its configurations"));
        };
        blueprint.alone = true;
        blueprint.launch_limit = Some(self.limit(cx, self.launch_timeout, "BUGEYE_TRACE_LAUNCH_SECS", 10.0)?);
        if self.watch.is_empty() {
            return Ok(cx.hub.launch(cx, blueprint, None).await?.0);
        }
        // Only a program that has begun has variables.
        blueprint.stop_on_entry = true;
        let limit = self.limit(cx, self.first_timeout, "BUGEYE_TRACE_FIRST_SECS", 30.0)?;
        Ok(cx.hub.launch(cx, blueprint, Some(Wait { limit, view: View::default() })).await?.0)
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
    let (mut depth, mut quote, mut escaped) = (0, None, false);
    for c in list.chars() {
        match (c, quote) {
            _ if escaped => escaped = false,
            ('\\', Some(_)) => escaped = true,
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

fn jsonl(seen: &Seen, points: &[Point]) -> Value {
    json!(HitLine::new(seen, points, None))
}

impl Command for Trace {
    const NAME: &'static str = "trace";
    const GROUP: Group = Group::Running;
    const PAST: Past = Past::Apart;
    const SPAWNS: bool = true;
    const CANCELS: bool = true;
    type Output = Traced;

    async fn run(self, cx: Context) -> Result<Traced, Failure> {
        let mut context = cx.clone();
        context.cancelled = cx.cancelled.child_token();
        // A call that is given up is an interrupted one: the trace cleans up after itself in either case.
        let _given_up = context.cancelled.clone().drop_guard();
        let work = tokio::spawn(async move { self.work(context).await });
        work.await.unwrap_or_else(|_| Err(Failure::internal("the trace met a defect of Bugeye")))
    }

    fn render_event(data: &Value, page: &mut Page) {
        match data {
            Value::String(line) => page.line(line),
            data => page.line(quoted_json(&data.to_string())),
        }
    }

    fn part_schema() -> Option<schemars::Schema> {
        Some(schemars::schema_for!(Streamed))
    }
}

/// What is told of a hit while the program runs.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape is used")]
enum Streamed {
    /// With `--jsonl`.
    Hit(HitLine),
    /// The last with `--jsonl`: the result without its hits, when the program has ended.
    End { end: Value },
    /// With `--csv`: the head, then a row each.
    Row(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_and_its_expressions_are_taken_apart() {
        let cases: [(&str, &str, &[&str]); 7] = [
            ("a.c:6: i, sum", "a.c:6", &["i", "sum"]),
            ("a.c:6", "a.c:6", &[]),
            ("parse: argv[1]", "parse", &["argv[1]"]),
            ("ns::f: m[{1, 2}], g(a, b), \"x, y\"", "ns::f", &["m[{1, 2}]", "g(a, b)", "\"x, y\""]),
            ("a.py:3: d['k: v'], x", "a.py:3", &["d['k: v']", "x"]),
            ("work:", "work", &[]),
            ("a.c:6: s == \"a\\\"\", x", "a.c:6", &["s == \"a\\\"\"", "x"]),
        ];
        for (text, place, expressions) in cases {
            let (found, list) = split(text);
            assert_eq!(found, place);
            assert_eq!(list, expressions, "{text}");
        }
    }
}
