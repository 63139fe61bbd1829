//! What comes of comparing two records or two steps, and how it reads: a few lines, not a wall.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::report::ending_line;
use crate::diff::{Counts, Different, Fired, Kind, Moment, Parting, PathDiff, Rules, ValueDiff, Wishes, compare};
use crate::failure::Failure;
use crate::model::Ending;
use crate::render::{Page, Render, cut, quoted};
use crate::store::occurrences::RETURNED;
use crate::store::read::Head;
use crate::store::steps::{Manner, Role, Steps, Survey, roles};

/// Threads of a record that are compared.
const MOST_THREADS: usize = 64;
/// The version of events that is understood.
const VERSION: u32 = 1;
/// Characters of a value in text, and values on a line.
const VALUE: usize = 100;
const VALUES: usize = 5;

/// Two records or two steps, side by side.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Compared {
    Runs(Box<Runs>),
    Beside(Box<Beside>),
}

/// Where two runs part.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    pub a: RunLine,
    pub b: RunLine,
    /// Nothing differs, as far as it was recorded.
    pub equal: bool,
    pub last_equal: Option<Moment>,
    pub first_value_diff: Option<ValueDiff>,
    pub first_path_diff: Option<PathDiff>,
    /// How each ended; null where no end is recorded.
    pub ending: Endings,
    /// The first line of output that differs; told where nothing else does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputDiff>,
    pub counts: Counts,
    /// What was taken for equal: rules, and how often.
    pub suppressed: BTreeMap<String, u64>,
    /// The same with an example each.
    pub rules: Vec<Fired>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// A difference is told by the exit code too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit_code: bool,
}

/// Which record it is. Words are debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    pub id: String,
    pub words: Vec<String>,
    /// Steps that were recorded.
    pub steps: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Endings {
    pub a: Option<Ending>,
    pub b: Option<Ending>,
}

/// A line of output that differs. Debuggee text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputDiff {
    pub stream: String,
    /// From 1.
    pub line: usize,
    /// None where there is no such line.
    pub a: Option<String>,
    pub b: Option<String>,
}

/// Two steps, value by value.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    pub a: Moment,
    pub b: Moment,
    pub different: Vec<Different>,
    pub same: Vec<(String, String)>,
    /// The callers that differ first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callers: Option<(String, String)>,
    pub suppressed: BTreeMap<String, u64>,
    pub rules: Vec<Fired>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit_code: bool,
}

impl Beside {
    const fn differs(&self) -> bool {
        !self.different.is_empty() || self.callers.is_some()
    }
}

/// Rules by name, and how often each was used.
#[must_use]
pub fn counted(rules: &[Fired]) -> BTreeMap<String, u64> {
    rules.iter().map(|fired| (fired.rule.clone(), fired.times)).collect()
}

/// Compares two records.
pub fn runs(a: &Head, b: &Head, wishes: Wishes, manner: Manner) -> Result<Runs, Failure> {
    let survey = |head: &Head| Survey::new(head).map_err(|error| unreadable(&head.folder, &error));
    let (one, other) = (survey(a)?, survey(b)?);
    for (head, survey) in [(a, &one), (b, &other)] {
        if survey.version > VERSION {
            let version = survey.version;
            return Err(Failure::unsupported(format!("{} is of version {version}, newer than this Bugeye", head.id))
                .hint(format!("this one reads records of version {VERSION}: use the newer one")));
        }
    }
    let empty = |head: &Head, survey: &Survey| (survey.steps() == 0).then(|| nothing(head));
    if let Some(failure) = empty(a, &one).or_else(|| empty(b, &other)) {
        return Err(failure);
    }
    let mut rules = Rules::new(one.run.clone(), other.run.clone(), wishes);
    let roles = roles(&one, &other);
    let mut found = Parting::default();
    let mut notes = Vec::new();
    for (index, role) in roles.iter().take(MOST_THREADS).enumerate() {
        let parting = thread(a, b, role, roles.len() > 1, manner, &mut rules)?;
        found = if index == 0 { parting } else { found.or_earlier(parting) };
    }
    if roles.len() > MOST_THREADS {
        notes.push(format!("{} of {} threads were compared", MOST_THREADS, roles.len()));
    }
    if found.counts.equal + found.counts.different == 0 {
        notes.push("no place was reached by both: were they recorded in the same way?".into());
    } else if found.apart && found.value.is_none() {
        notes.push(
            "after their paths parted they were not seen together again: values were compared up to there".into(),
        );
    }
    let uncompared = rules.uncompared();
    if !uncompared.is_empty() {
        let names = uncompared.iter().map(|name| quoted(cut(name, 60).0)).collect::<Vec<_>>().join(", ");
        notes.push(format!("seen in one of them alone, so not compared: {names}"));
    }
    let output = if found.is_equal() { first_line(&one, &other, &mut rules) } else { None };
    let equal = found.is_equal() && output.is_none() && one.ending == other.ending;
    let line = |head: &Head, survey: &Survey| RunLine {
        id: head.id.clone(),
        words: head.words.clone(),
        steps: survey.steps(),
    };
    let fired = rules.fired();
    Ok(Runs {
        a: line(a, &one),
        b: line(b, &other),
        equal,
        last_equal: found.last_equal,
        first_value_diff: found.value,
        first_path_diff: found.path,
        ending: Endings { a: one.ending, b: other.ending },
        output,
        counts: found.counts,
        suppressed: counted(&fired),
        rules: fired,
        notes,
        exit_code: false,
    })
}

/// Compares one thread of each.
fn thread(a: &Head, b: &Head, role: &Role, named: bool, manner: Manner, rules: &mut Rules) -> Result<Parting, Failure> {
    let (mut one, mut other) = (Steps::new(a, role.a, manner), Steps::new(b, role.b, manner));
    let mut parting = compare(&mut one, &mut other, rules);
    for (head, steps) in [(a, &one), (b, &other)] {
        if let Some(error) = &steps.failed {
            return Err(unreadable(&head.folder, error));
        }
    }
    if named {
        parting.name_thread(&role.name);
    }
    Ok(parting)
}

pub fn unreadable(folder: &Path, error: &std::io::Error) -> Failure {
    Failure::io(format!("read the record {}", folder.display()), error)
}

fn nothing(head: &Head) -> Failure {
    Failure::not_found(format!("{} has no stops and no hits, so there is nothing to compare", head.id))
        .hint("record places: bugeye trace --at 'FILE:LINE: EXPR, EXPR' -- COMMAND")
        .hint("record calls with their arguments and values: bugeye trace --calls '*' -- COMMAND")
}

/// The first line of output that differs.
fn first_line(a: &Survey, b: &Survey, rules: &mut Rules) -> Option<OutputDiff> {
    for stream in ["stdout", "stderr"] {
        let text = |survey: &Survey| survey.output.get(stream).cloned().unwrap_or_default();
        let (one, other) = (text(a), text(b));
        let (mut one, mut other) = (one.lines(), other.lines());
        for line in 1.. {
            match (one.next(), other.next()) {
                (None, None) => break,
                (Some(a), Some(b)) if rules.are_equal_lines(a, b) => {}
                (a, b) => {
                    let bounded = |text: &str| cut(text, 1000).0.to_string();
                    return Some(OutputDiff { stream: stream.into(), line, a: a.map(bounded), b: b.map(bounded) });
                }
            }
        }
    }
    None
}

/// A value as it is read in a line.
fn value(text: Option<&str>) -> String {
    let Some(text) = text else { return "(not there)".into() };
    let text = quoted(text);
    match cut(&text, VALUE) {
        (_, 0) => text,
        (head, _) => format!("{head}…"),
    }
}

/// `hit 7 of a.c:5`
fn named(moment: &Moment) -> String {
    let (place, number) = (quoted(&moment.place), moment.number);
    let function = || {
        let name = quoted(&moment.function);
        if name == place { name } else { format!("{name} ({place})") }
    };
    let thread = moment.thread.as_deref().map(|name| format!(" in thread {}", quoted(name))).unwrap_or_default();
    match moment.kind {
        Kind::Hit => format!("hit {number} of {place}{thread}"),
        Kind::Stop => format!("the stop at {place}{thread}"),
        Kind::Call => format!("call {number} of {}{thread}", function()),
        Kind::Return => format!("return {number} of {}{thread}", function()),
    }
}

/// `total = 21 and 22, i = 3 and 4`
fn pairs(values: &[Different], more: usize) -> String {
    let pair = |different: &Different| {
        let both = format!("{} and {}", value(different.a.as_deref()), value(different.b.as_deref()));
        if different.name == RETURNED { both } else { format!("{} = {both}", quoted(&different.name)) }
    };
    let mut list: Vec<String> = values.iter().take(VALUES).map(pair).collect();
    let left = more + values.len().saturating_sub(VALUES);
    if left > 0 {
        list.push(format!("{left} more"));
    }
    list.join(", ")
}

impl Runs {
    fn value_lines(&self, page: &mut Page) {
        let Some(diff) = &self.first_value_diff else { return };
        let elsewhere =
            if diff.a.number == diff.b.number { String::new() } else { format!(" (in B {})", named(&diff.b)) };
        let after = if diff.after_path { "after that, " } else { "" };
        page.line(format!(
            "first different value: {after}{}{elsewhere}: {}",
            named(&diff.a),
            pairs(&diff.values, diff.more)
        ));
        // One line for those that were last seen together.
        let mut places: Vec<(&Moment, Vec<String>)> = Vec::new();
        for different in diff.values.iter().take(VALUES) {
            let Some(origin) = &different.last_equal else { continue };
            let text = value(Some(&origin.value));
            let text = if different.name == RETURNED { text } else { format!("{} = {text}", quoted(&different.name)) };
            match places.iter_mut().find(|(at, _)| **at == origin.at) {
                Some((_, list)) => list.push(text),
                None => places.push((&origin.at, vec![text])),
            }
        }
        for (at, list) in places {
            page.line(format!("  last equal at {}: {}", named(at), list.join(", ")));
        }
    }

    fn path_lines(&self, page: &mut Page) {
        let Some(diff) = &self.first_path_diff else { return };
        let after = diff.after.as_ref().map(|after| format!("after {} ", named(after))).unwrap_or_default();
        // The thread is said once.
        let at = |moment: &Option<Moment>| {
            let mut moment = moment.clone()?;
            moment.thread = moment.thread.filter(|_| diff.after.is_none() || diff.callers.is_some());
            Some(named(&moment))
        };
        let text = match (at(&diff.a), at(&diff.b), &diff.callers) {
            (Some(a), _, Some((one, other))) => {
                format!("{a} is called from {} in A and from {} in B", quoted(one), quoted(other))
            }
            (Some(a), Some(b), None) => format!("{after}A goes to {a}, B to {b}"),
            (Some(a), None, _) => format!("{after}A goes to {a}, and B has no more"),
            (None, Some(b), _) => format!("{after}B goes to {b}, and A has no more"),
            (None, None, _) => return,
        };
        page.line(format!("first different path: {text}"));
    }

    /// What differs, without the head.
    pub fn explain(&self, page: &mut Page) {
        let steps = self.counts.equal;
        let count = format!("{steps} step{}", if steps == 1 { "" } else { "s" });
        let parted = self.first_value_diff.is_some() || self.first_path_diff.is_some();
        match &self.last_equal {
            _ if self.equal => page.line(format!("no difference: {count} each")),
            _ if !parted => page.line(format!("no step differs: {count} each")),
            Some(last) => page.line(format!("last equal: {}", named(last))),
            None => page.line("last equal: none, they differ from the first step on"),
        }
        let path_first = self.first_value_diff.as_ref().is_some_and(|diff| diff.after_path);
        if path_first {
            self.path_lines(page);
            self.value_lines(page);
        } else {
            self.value_lines(page);
            self.path_lines(page);
        }
        let ended = |ending: &Option<Ending>| ending.as_ref().map_or("has no recorded end".into(), ending_line);
        let (a, b) = (quoted(&ended(&self.ending.a)), quoted(&ended(&self.ending.b)));
        page.line(match self.ending {
            Endings { a: None, b: None } => "neither has a recorded end".into(),
            _ if a == b => format!("both {a}"),
            _ => format!("A {a}, B {b}"),
        });
        if let Some(output) = &self.output {
            let (a, b) = (value(output.a.as_deref()), value(output.b.as_deref()));
            page.line(format!("first different line of {}: {}: {a} and {b}", output.stream, output.line));
        }
        render_rules(&self.rules, page);
        for note in &self.notes {
            page.line(format!("note: {}", quoted(note)));
        }
    }
}

fn render_rules(rules: &[Fired], page: &mut Page) {
    let tolerated = rules.iter().find(|fired| fired.rule == "tolerance").map_or(0, |fired| fired.times);
    let rules = || rules.iter().filter(|fired| fired.rule != "tolerance");
    let asked = |fired: &&Fired| fired.rule.starts_with("ignore ");
    let rule = |fired: &Fired| {
        let name = fired.rule.strip_prefix("ignore ").unwrap_or(&fired.rule);
        format!("{} {}", fired.times, quoted(name))
    };
    let own: Vec<String> = rules().filter(|fired| !asked(fired)).map(rule).collect();
    if !own.is_empty() {
        page.line(format!("taken for equal: {} (--exact compares them)", own.join(", ")));
    }
    let asked: Vec<String> = rules().filter(asked).map(rule).collect();
    if !asked.is_empty() {
        page.line(format!("left out as asked: {}", asked.join(", ")));
    }
    if tolerated > 0 {
        page.line(format!("within --tolerance: {tolerated}"));
    }
}

impl Render for Runs {
    fn render(&self, page: &mut Page) {
        for (name, run) in [("A", &self.a), ("B", &self.b)] {
            page.line(format!("{name} {}: {}", run.id, cut(&quoted(&run.words.join(" ")), 100).0));
        }
        self.explain(page);
    }
}

impl Render for Beside {
    fn render(&self, page: &mut Page) {
        page.line(format!("{} and {}", named(&self.a), named(&self.b)));
        let wide = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0).min(40);
        let rows: Vec<(String, String, String)> = self
            .different
            .iter()
            .map(|row| (quoted(&row.name), value(row.a.as_deref()), value(row.b.as_deref())))
            .collect();
        let first = wide(&mut rows.iter().map(|row| row.0.chars().count()));
        let second = wide(&mut rows.iter().map(|row| row.1.chars().count()));
        for (name, a, b) in &rows {
            page.line(format!("  {name:<first$}  {a:<second$}  {b}"));
        }
        if rows.is_empty() {
            page.line("no value differs");
        }
        if !self.same.is_empty() {
            let pair = |(name, text): &(String, String)| format!("{}={}", quoted(name), value(Some(text)));
            page.line(format!("same: {}", self.same.iter().map(pair).collect::<Vec<_>>().join("  ")));
        }
        if let Some((a, b)) = &self.callers {
            page.line(format!("called from {} and from {}", quoted(a), quoted(b)));
        }
        render_rules(&self.rules, page);
    }
}

impl Render for Compared {
    fn render(&self, page: &mut Page) {
        match self {
            Self::Runs(runs) => runs.render(page),
            Self::Beside(beside) => beside.render(page),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Runs(runs) => u8::from(runs.exit_code && !runs.equal),
            Self::Beside(beside) => u8::from(beside.exit_code && beside.differs()),
        }
    }
}
