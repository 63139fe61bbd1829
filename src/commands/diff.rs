//! `diff`: where two recorded runs part. The client reads the records itself, so no daemon is needed.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compared::{Beside, Compared, counted, runs, unreadable};
use super::hits::keys;
use super::{Group, Local};
use crate::cli::LocalContext;
use crate::diff::{Moment, Rules, Step, Wishes, beside};
use crate::failure::Failure;
use crate::render::quoted;
use crate::store::named::named;
use crate::store::occurrences::{Crossed, Occurrence, stop, with_calls};
use crate::store::read::{Head, Tail};
use crate::store::steps::{Maker, Manner, Survey};

/// Compare two recorded runs: the last step they share, the first value and the first path that differ
///
/// A and B are records: an id, a name, `s1`, `last`, `last~1`. What was recorded is compared: hits and calls of `trace`,
/// stops with their locals. Addresses, process ids, times and the like are different in every run: they pass for equal,
/// and the reply counts them. Two stops are compared by the numbers of their events (`last@12 last@30`), two hits of one
/// place by `--hits`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// A record, or a stop of one: `RECORD@SEQ`.
    #[arg(value_name = "A")]
    pub a: String,
    /// The other; not with `--hits`.
    #[arg(value_name = "B", required_unless_present = "hits", conflicts_with = "hits")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<String>,
    /// Two hits of a place of A, or two calls of a function, side by side: `--hits 'a.c:6' 3 9`.
    #[arg(long, num_args = 3, value_names = ["PLACE", "N", "M"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hits: Vec<String>,
    /// Don't compare these variables (`tmp_*`), or the steps of these functions (`'log_*()'`); `[diff] ignore` of
    /// `config.toml` has more.
    #[arg(long, value_name = "NAME")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// Take numbers for equal that differ by no more than this, in proportion where they are greater than 1 (`1e-9`).
    #[arg(long, value_name = "NUMBER")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// Compare addresses, process ids, times and the like too.
    #[arg(long)]
    #[serde(default)]
    pub exact: bool,
    /// For two versions of a program: lines are the same where their function and text are, whatever their numbers.
    #[arg(long)]
    #[serde(default)]
    pub ignore_lines: bool,
    /// Answer with exit code 1 when there is a difference.
    #[arg(long)]
    #[serde(default)]
    pub exit_code: bool,
}

impl Diff {
    fn wishes(&self, cx: &LocalContext) -> Result<Wishes, Failure> {
        if self.tolerance.is_some_and(|tolerance| !(tolerance.is_finite() && tolerance >= 0.0)) {
            return Err(Failure::usage("--tolerance must be a number that is not negative, such as 1e-9"));
        }
        let ignore = cx.config.diff_ignore().into_iter().chain(self.ignore.iter().cloned()).collect();
        Ok(Wishes { ignore, tolerance: self.tolerance, exact: self.exact })
    }

    const fn manner(&self) -> Manner {
        Manner { without_lines: self.ignore_lines }
    }

    /// Two steps, of one record or two.
    fn steps(&self, cx: &LocalContext, a: (Head, Found), b: (Head, Found)) -> Result<Compared, Failure> {
        let survey = |head: &Head| Survey::new(head).map_err(|error| unreadable(&head.folder, &error));
        let mut rules = Rules::new(survey(&a.0)?.run, survey(&b.0)?.run, self.wishes(cx)?);
        let step = |head: &Head, found: Found| -> (Step, Moment) {
            let step = Maker::new(head, self.manner()).step(found.seen);
            let moment = Moment::of(&step, found.number);
            (step, moment)
        };
        let ((one, a), (other, b)) = (step(&a.0, a.1), step(&b.0, b.1));
        let (different, same, callers) = beside(&one, &other, &mut rules);
        let fired = rules.fired();
        let (suppressed, exit_code) = (counted(&fired), self.exit_code);
        let found = Beside { a, b, different, same, callers, suppressed, rules: fired, exit_code };
        Ok(Compared::Beside(Box::new(found)))
    }
}

/// A step of a record, and how often its place had been reached.
struct Found {
    seen: Occurrence,
    number: u64,
}

impl Local for Diff {
    const NAME: &'static str = "diff";
    const GROUP: Group = Group::Around;
    type Output = Compared;

    fn run(self, cx: &LocalContext) -> Result<Compared, Failure> {
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let state = super::events::settled(cx)?;
        let record = |name: &str| named(&state, name, &cwd);
        if let [place, first, second] = self.hits.as_slice() {
            let number = |text: &String| {
                let number = text.parse().ok().filter(|number: &u64| *number > 0);
                number.ok_or_else(|| Failure::usage(format!("`{text}` is no number of a hit; they count from 1")))
            };
            let head = record(&self.a)?;
            let place = Asked { place, keys: keys(place, &cwd, &head.project) };
            let (one, other) = hits(&head, &place, number(first)?, number(second)?)?;
            return self.steps(cx, (head.clone(), one), (head, other));
        }
        let Some(b) = &self.b else { return Err(Failure::usage("a second record is missing: bugeye diff A B")) };
        match (at(&self.a), at(b)) {
            (Some((a, seq_a)), Some((b, seq_b))) => {
                let (a, b) = (record(a)?, record(b)?);
                let (one, other) = (moment(&a, seq_a)?, moment(&b, seq_b)?);
                self.steps(cx, (a, one), (b, other))
            }
            (None, None) => {
                let (a, b) = (record(&self.a)?, record(b)?);
                let mut compared = runs(&a, &b, self.wishes(cx)?, self.manner())?;
                compared.exit_code = self.exit_code;
                Ok(Compared::Runs(Box::new(compared)))
            }
            _ => Err(Failure::usage("a run can't be compared with a stop")
                .hint("two runs: bugeye diff A B; two stops: bugeye diff A@SEQ B@SEQ")),
        }
    }
}

/// `REC@12` → the record and the number.
fn at(text: &str) -> Option<(&str, u64)> {
    let (record, seq) = text.rsplit_once('@')?;
    Some((record, seq.parse().ok()?))
}

/// A place or a function as it was typed, and what such a place may be called in the project.
struct Asked<'a> {
    place: &'a str,
    keys: Vec<String>,
}

impl Asked<'_> {
    fn is(&self, seen: &Occurrence) -> bool {
        let place = self.place;
        if seen.crossed.is_some() {
            let last = seen.function.rsplit(['.', ':']).next();
            return *seen.function == *place || last == Some(place);
        }
        let below = seen.place.strip_suffix(place).is_some_and(|rest| rest.ends_with('/'));
        let known = self.keys.iter().any(|key| *seen.place == **key);
        known || *seen.place == *place || seen.asked.as_deref() == Some(place) || below || *seen.function == *place
    }
}

/// Two hits of a place, by their numbers.
fn hits(head: &Head, asked: &Asked<'_>, first: u64, second: u64) -> Result<(Found, Found), Failure> {
    let place = quoted(asked.place);
    let (mut one, mut other, mut count) = (None, None, 0);
    let read = with_calls(head, &mut |seen| {
        if seen.crossed == Some(Crossed::Left) || !asked.is(&seen) {
            return true;
        }
        count += 1;
        if count == second {
            other = Some(Found { seen: seen.clone(), number: count });
        }
        if count == first {
            one = Some(Found { seen, number: count });
        }
        one.is_none() || other.is_none()
    });
    read.map_err(|error| unreadable(&head.folder, &error))?;
    match (one, other) {
        (Some(one), Some(other)) => Ok((one, other)),
        (..) if count == 0 => Err(Failure::not_found(format!("{} has no hit of {place}", head.id))
            .hint(format!("what it has: bugeye events -s {}", head.id))),
        (one, _) => {
            let hits = if count == 1 { "hit" } else { "hits" };
            let missing = if one.is_none() { first } else { second };
            Err(Failure::not_found(format!("{} has {count} {hits} of {place}, and no hit {missing}", head.id)))
        }
    }
}

/// The stop, or the hit, that an event of a record tells.
fn moment(head: &Head, seq: u64) -> Result<Found, Failure> {
    let unreadable = |error: std::io::Error| unreadable(&head.folder, &error);
    let mut tail = Tail::new(&head.folder);
    let mut trace = 0;
    while let Some(events) = tail.read().map_err(unreadable)? {
        for (event, _) in events {
            if event.kind == "trace" {
                trace = event.seq;
            }
            if event.seq != seq {
                continue;
            }
            let found = match event.kind.as_str() {
                "stopped" => stop(head, &event).map(|seen| (seen.seq, seen.hit)),
                // One of a log breakpoint has no values.
                "hit" if event.data.get("point").is_some() => event.data["hit"].as_u64().map(|hit| (trace, hit)),
                _ => None,
            };
            let Some((seq, hit)) = found else {
                let what = match event.kind.as_str() {
                    "hit" => "is of a log breakpoint, which has no values".to_string(),
                    kind => format!("is no stop but `{}`", quoted(kind)),
                };
                return Err(Failure::usage(format!("event {} of {} {what}", event.seq, head.id))
                    .hint(format!("its stops: bugeye events -s {} -f stopped,hit", head.id)));
            };
            return numbered(head, seq, hit).map_err(unreadable)?.ok_or_else(|| gone(head, event.seq));
        }
    }
    Err(gone(head, seq).hint(format!("its stops: bugeye events -s {} -f stopped,hit", head.id)))
}

fn gone(head: &Head, seq: u64) -> Failure {
    Failure::not_found(format!("{} has no event {seq}", head.id))
}

/// A stop or a hit, and how often its place had been reached.
fn numbered(head: &Head, seq: u64, hit: u64) -> std::io::Result<Option<Found>> {
    let mut counts = std::collections::HashMap::new();
    let mut found = None;
    with_calls(head, &mut |seen| {
        if seen.crossed.is_some() {
            return true;
        }
        let count = counts.entry(seen.place.clone()).or_insert(0_u64);
        *count += 1;
        if (seen.seq, seen.hit) == (seq, hit) {
            found = Some(Found { number: *count, seen });
        }
        found.is_none()
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_named_by_its_event() {
        assert_eq!(at("last~1@12"), Some(("last~1", 12)));
        assert_eq!(at("a@b@3"), Some(("a@b", 3)));
        assert_eq!(at("last"), None);
        assert_eq!(at("me@home"), None);
    }
}
