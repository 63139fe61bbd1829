//! Where two runs of a program part: the last step they share, the first value that differs, the first place that only
//! one of them comes to.
//!
//! Pure: steps come in as iterators, and are looked at one by one, so that a million of them take no more room than a
//! window. [`rules`] says what counts as equal, [`align`] where courses that parted meet again.

pub mod align;
pub mod rules;
pub mod tokens;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::glob::is_like;
use crate::model::HitFrame;
use crate::render::cut;
pub use rules::{Fired, Rules, Run, Wishes};

/// Steps of each run that are looked at for where they meet again.
const WINDOW: usize = 1000;
/// Times that courses may part and meet before the rest counts as another course.
const MOST_MEETINGS: u32 = 200;
/// Places whose last equal step is kept.
const MOST_PLACES: usize = 10_000;
/// Characters of a value, a place or a function that are told.
const LONGEST: usize = 2000;
/// Different values that are told of one step.
const MOST_VALUES: usize = 20;

/// One step of a run, as far as it was recorded. Texts are debuggee text.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Steps with the same key are at the same place.
    pub key: Arc<str>,
    pub kind: Kind,
    /// `file:line`.
    pub place: Arc<str>,
    pub function: Arc<str>,
    pub values: Vec<(Arc<str>, String)>,
    /// All values of the place are here: one that the other run alone has is a difference.
    pub whole: bool,
    /// Innermost first, files relative to the project.
    pub frames: Arc<[HitFrame]>,
    /// Counts the steps of the whole record.
    pub order: u64,
    /// The event that tells it, and the number of the hit or call in its trace.
    pub seq: u64,
    pub hit: u64,
}

/// What a step is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A place was reached, in a trace or by a stop.
    #[default]
    Hit,
    /// A stop that nobody asked for: an exception, a signal.
    Stop,
    Call,
    Return,
}

/// A step as it is told. Texts are debuggee text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moment {
    pub kind: Kind,
    pub place: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub function: String,
    /// How often its thread has been there, from 1.
    pub number: u64,
    /// The thread, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The event of the record that tells it.
    pub seq: u64,
    /// The number of the hit or the call in its trace; 0 for a stop.
    #[serde(default)]
    pub hit: u64,
    #[serde(skip)]
    order: u64,
}

impl Moment {
    /// A step by itself.
    #[must_use]
    pub fn of(step: &Step, number: u64) -> Self {
        Self::from(&Mark::new(step, number))
    }
}

/// A variable with what it was in both runs. Texts are debuggee text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Different {
    pub name: String,
    /// None where it was not there.
    pub a: Option<String>,
    pub b: Option<String>,
    /// Where it was last the same in both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_equal: Option<Origin>,
}

/// Where a variable was last the same, and what it was there, in the first run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Origin {
    #[serde(flatten)]
    pub at: Moment,
    pub value: String,
}

/// The first step that both runs come to with different values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ValueDiff {
    pub a: Moment,
    pub b: Moment,
    pub values: Vec<Different>,
    /// Further values that differ there.
    #[serde(default)]
    pub more: usize,
    /// The runs had gone different ways before, and met again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub after_path: bool,
}

/// The first place that the runs go to differently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathDiff {
    /// The last step that both came to.
    pub after: Option<Moment>,
    /// Where each goes; None where nothing more is recorded of it.
    pub a: Option<Moment>,
    pub b: Option<Moment>,
    /// Both go to the same place, by different callers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callers: Option<(String, String)>,
}

/// How many steps were compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// At the same place with equal values.
    pub equal: u64,
    /// At the same place with different values.
    pub different: u64,
    pub only_a: u64,
    pub only_b: u64,
}

/// What came of comparing two courses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parting {
    pub last_equal: Option<Moment>,
    pub value: Option<ValueDiff>,
    pub path: Option<PathDiff>,
    pub counts: Counts,
    /// After their paths parted they were not seen together again.
    pub apart: bool,
}

impl Parting {
    #[must_use]
    pub const fn is_equal(&self) -> bool {
        self.value.is_none() && self.path.is_none()
    }

    /// Where it parts first, in the order of the first run; nowhere is last.
    fn first(&self) -> u64 {
        self.value_at().min(self.path_at())
    }

    fn value_at(&self) -> u64 {
        self.value.as_ref().map_or(u64::MAX, |value| value.a.order)
    }

    fn path_at(&self) -> u64 {
        let path = |path: &PathDiff| {
            let next = path.a.as_ref().map(|a| a.order).or_else(|| Some(path.after.as_ref()?.order + 1));
            // What only the second run has is told by its own order.
            next.or_else(|| path.b.as_ref().map(|b| b.order)).unwrap_or(0)
        };
        self.path.as_ref().map_or(u64::MAX, path)
    }

    /// Says which thread it is about.
    pub fn name_thread(&mut self, name: &str) {
        let value = self.value.iter_mut().flat_map(|value| {
            let origins =
                value.values.iter_mut().filter_map(|value| value.last_equal.as_mut()).map(|origin| &mut origin.at);
            [&mut value.a, &mut value.b].into_iter().chain(origins)
        });
        let path =
            self.path.iter_mut().flat_map(|path| [&mut path.after, &mut path.a, &mut path.b].into_iter().flatten());
        for moment in value.chain(path).chain(&mut self.last_equal) {
            moment.thread = Some(name.to_string());
        }
    }

    /// Of two threads, what is first in the order of the first run.
    #[must_use]
    pub fn or_earlier(self, other: Self) -> Self {
        let counts = Counts {
            equal: self.counts.equal + other.counts.equal,
            different: self.counts.different + other.counts.different,
            only_a: self.counts.only_a + other.counts.only_a,
            only_b: self.counts.only_b + other.counts.only_b,
        };
        let (value, path) = (self.value_at() <= other.value_at(), self.path_at() <= other.path_at());
        let apart = self.apart || other.apart;
        let last_equal = match (self.is_equal(), other.is_equal()) {
            // Nothing differs in either: the later one.
            (true, true) => self.last_equal.max_by_order(other.last_equal),
            _ if self.first() <= other.first() => self.last_equal,
            _ => other.last_equal,
        };
        Self {
            last_equal,
            value: if value { self.value } else { other.value },
            path: if path { self.path } else { other.path },
            counts,
            apart,
        }
    }
}

trait Later {
    fn max_by_order(self, other: Self) -> Self;
}

impl Later for Option<Moment> {
    fn max_by_order(self, other: Self) -> Self {
        match (self, other) {
            (Some(one), Some(other)) => Some(if one.order >= other.order { one } else { other }),
            (one, other) => one.or(other),
        }
    }
}

/// The steps of one run that are still to come.
#[derive(Default)]
struct Side<'a> {
    steps: Option<&'a mut dyn Iterator<Item = Step>>,
    ahead: VecDeque<Step>,
    numbers: HashMap<Arc<str>, u64>,
    /// Functions that are passed over, each with an example and how often.
    left_out: Vec<(String, String, u64)>,
}

impl<'a> Side<'a> {
    fn new(steps: &'a mut dyn Iterator<Item = Step>, rules: &Rules) -> Self {
        let left_out = rules.functions().map(|glob| (glob.to_string(), String::new(), 0)).collect();
        Self { steps: Some(steps), left_out, ..Self::default() }
    }

    fn pull(&mut self) -> Option<Step> {
        loop {
            let step = self.steps.as_mut()?.next()?;
            let named = |(glob, ..): &&mut (String, String, u64)| is_function(glob, &step.function);
            let Some((_, example, times)) = self.left_out.iter_mut().find(named) else { return Some(step) };
            *times += 1;
            if example.is_empty() {
                *example = step.function.to_string();
            }
        }
    }

    /// Looks ahead by so many steps; fewer where the run ends before.
    fn look(&mut self, count: usize) -> &VecDeque<Step> {
        while self.ahead.len() < count {
            match self.pull() {
                Some(step) => self.ahead.push_back(step),
                None => break,
            }
        }
        &self.ahead
    }

    /// The next step, with how often its place was reached.
    fn take(&mut self) -> Option<(Step, Mark)> {
        self.look(1);
        let step = self.ahead.pop_front()?;
        let number = match self.numbers.get_mut(&step.key) {
            Some(number) => {
                *number += 1;
                *number
            }
            None => {
                self.numbers.insert(Arc::clone(&step.key), 1);
                1
            }
        };
        let mark = Mark::new(&step, number);
        Some((step, mark))
    }

    /// The next step as it would be told.
    fn coming(&mut self) -> Option<Moment> {
        self.look(1);
        let step = self.ahead.front()?;
        let number = self.numbers.get(&step.key).copied().unwrap_or(0) + 1;
        Some(Moment::from(&Mark::new(step, number)))
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.take();
        }
    }

    /// How many steps are left.
    fn drain(&mut self) -> u64 {
        let mut left = self.ahead.len() as u64;
        self.ahead.clear();
        while self.pull().is_some() {
            left += 1;
        }
        left
    }
}

fn bounded(text: &str) -> String {
    match cut(text, LONGEST) {
        (_, 0) => text.to_string(),
        (head, _) => format!("{head}…"),
    }
}

/// Whether a function is one of those that a pattern names: by its whole name or the last part of it.
fn is_function(glob: &str, function: &str) -> bool {
    let last = function.rsplit(['.', ':']).next().unwrap_or(function);
    is_like(glob, function) || is_like(glob, last)
}

/// Compares two courses of steps, of one thread each.
pub fn compare(a: &mut dyn Iterator<Item = Step>, b: &mut dyn Iterator<Item = Step>, rules: &mut Rules) -> Parting {
    let mut pair = Pair { a: Side::new(a, rules), b: Side::new(b, rules), ..Pair::default() };
    while pair.found.value.is_none() || pair.found.path.is_none() {
        if !pair.go_on(rules) {
            break;
        }
    }
    let Pair { mut found, last_equal, a, b, .. } = pair;
    found.last_equal = last_equal.as_ref().map(Moment::from);
    for (glob, example, times) in a.left_out.into_iter().chain(b.left_out) {
        rules.left_out(&glob, &example, times);
    }
    found
}

/// Two courses, as far as they were compared.
#[derive(Default)]
struct Pair<'a> {
    a: Side<'a>,
    b: Side<'a>,
    found: Parting,
    last_equal: Option<Mark>,
    /// The last step that both came to.
    together: Option<Mark>,
    /// Of each place, the last step that was equal.
    seen: HashMap<Arc<str>, (Step, Mark)>,
    ways: Ways,
    meetings: u32,
}

impl Pair<'_> {
    /// Takes the next step of both, or what it takes until both are at the same place; false when there is no more to see.
    fn go_on(&mut self, rules: &mut Rules) -> bool {
        match (self.a.look(1).front(), self.b.look(1).front()) {
            (None, None) => false,
            (Some(one), Some(other)) if one.key == other.key => self.compare_step(rules),
            (one, other) => {
                let ended = one.is_none() || other.is_none();
                if self.found.path.is_none() {
                    let (after, a, b) = (self.together.as_ref().map(Moment::from), self.a.coming(), self.b.coming());
                    self.found.path = Some(PathDiff { after, a, b, callers: None });
                }
                if ended {
                    self.found.counts.only_a += self.a.drain();
                    self.found.counts.only_b += self.b.drain();
                    return false;
                }
                self.meet()
            }
        }
    }

    /// Passes over the steps that only one of them has.
    fn meet(&mut self) -> bool {
        if self.found.value.is_some() {
            return false;
        }
        self.meetings += 1;
        let mut numbers: HashMap<Arc<str>, u32> = HashMap::new();
        let mut number = |side: &mut Side<'_>| -> Vec<u32> {
            let steps = side.look(WINDOW).iter().take(WINDOW);
            let mut of = |step: &Step| {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                *numbers.entry(Arc::clone(&step.key)).or_insert(next)
            };
            steps.map(&mut of).collect()
        };
        let (one, other) = (number(&mut self.a), number(&mut self.b));
        let met = if self.meetings > MOST_MEETINGS { None } else { align::meeting(&one, &other) };
        let Some((skip_a, skip_b)) = met else {
            self.found.apart = true;
            return false;
        };
        self.found.counts.only_a += skip_a as u64;
        self.found.counts.only_b += skip_b as u64;
        self.a.skip(skip_a);
        self.b.skip(skip_b);
        true
    }

    /// Compares the next step of both, which are at the same place.
    fn compare_step(&mut self, rules: &mut Rules) -> bool {
        let (Some((one, mark)), Some((other, mark_b))) = (self.a.take(), self.b.take()) else { return false };
        if self.found.path.is_none()
            && let Some(callers) = self.ways.part(&one, &other)
        {
            let (after, callers) = (self.together.as_ref().map(Moment::from), Some(callers));
            let (a, b) = (Some(Moment::from(&mark)), Some(Moment::from(&mark_b)));
            self.found.path = Some(PathDiff { after, a, b, callers });
        }
        let different = differences(&one, &other, rules);
        if different.is_empty() {
            self.found.counts.equal += 1;
            if self.found.is_equal() {
                self.last_equal = Some(mark.clone());
            }
        } else {
            self.found.counts.different += 1;
            if self.found.value.is_none() {
                let (a, b) = (Moment::from(&mark), Moment::from(&mark_b));
                self.found.value = Some(self.told(&one.function, a, b, different));
            }
        }
        self.together = Some(mark.clone());
        if self.found.value.is_none() && (self.seen.len() < MOST_PLACES || self.seen.contains_key(&one.key)) {
            self.seen.insert(Arc::clone(&one.key), (one, mark));
        }
        true
    }

    fn told(&self, function: &str, a: Moment, b: Moment, mut values: Vec<Different>) -> ValueDiff {
        let more = values.len().saturating_sub(MOST_VALUES);
        values.truncate(MOST_VALUES);
        for value in &mut values {
            let held = |(step, mark): &'_ (Step, Mark)| {
                let (_, text) = step.values.iter().find(|(name, _)| **name == *value.name)?;
                (*step.function == *function)
                    .then(|| (mark.order, Origin { at: Moment::from(mark), value: bounded(text) }))
            };
            value.last_equal =
                self.seen.values().filter_map(held).max_by_key(|(order, _)| *order).map(|(_, origin)| origin);
        }
        ValueDiff {
            a,
            b,
            values,
            more,
            after_path: self.found.path.as_ref().is_some_and(|path| path.callers.is_none()),
        }
    }
}

/// The values that differ, in the order of the first step.
fn differences(one: &Step, other: &Step, rules: &mut Rules) -> Vec<Different> {
    let mut found = Vec::new();
    let mut tell = |name: &str, a: Option<&String>, b: Option<&String>| {
        let (a, b) = (a.map(|a| bounded(a)), b.map(|b| bounded(b)));
        found.push(Different { name: bounded(name), a, b, last_equal: None });
    };
    let find = |step: &Step, at: usize, name: &str| -> Option<usize> {
        // Nearly always at the same index; a name may be there twice.
        match step.values.get(at) {
            Some((known, _)) if **known == *name => Some(at),
            _ => step.values.iter().position(|(known, _)| **known == *name),
        }
    };
    let whole = one.whole && other.whole;
    for (at, (name, a)) in one.values.iter().enumerate() {
        match find(other, at, name).map(|at| &other.values[at].1) {
            Some(b) if rules.are_equal(name, a, b) => {}
            None if rules.ignores(name) => {}
            None if !whole => rules.leave_uncompared(name),
            b => tell(name, Some(a), b),
        }
    }
    for (at, (name, b)) in other.values.iter().enumerate() {
        if find(one, at, name).is_some() || rules.ignores(name) {
            continue;
        }
        if whole {
            tell(name, None, Some(b));
        } else {
            rules.leave_uncompared(name);
        }
    }
    found
}

/// Two steps side by side, wherever they are: what differs, what does not, and the callers that differ first.
pub fn beside(one: &Step, other: &Step, rules: &mut Rules) -> (Vec<Different>, Pairs, Option<(String, String)>) {
    let different = differences(one, other, rules);
    let is_same = |(name, _): &&(Arc<str>, String)| {
        different.iter().all(|value| *value.name != **name) && other.values.iter().any(|(known, _)| known == name)
    };
    let same = one.values.iter().filter(is_same).map(|(name, value)| (bounded(name), bounded(value))).collect();
    (different, same, Ways::default().part(one, other))
}

/// Names with values. Debuggee text.
pub type Pairs = Vec<(String, String)>;

/// The ways that were found to be the same last: most steps come by few.
#[derive(Default)]
struct Ways {
    same: Option<(Arc<[HitFrame]>, Arc<[HitFrame]>)>,
}

impl Ways {
    /// The callers that differ first; None where the ways are the same or not known.
    fn part(&mut self, one: &Step, other: &Step) -> Option<(String, String)> {
        let (a, b) = (&one.frames, &other.frames);
        if a.is_empty() || b.is_empty() {
            return None;
        }
        if let Some((known_a, known_b)) = &self.same
            && Arc::ptr_eq(known_a, a)
            && Arc::ptr_eq(known_b, b)
        {
            return None;
        }
        let text = |frame: Option<&HitFrame>| match frame {
            Some(HitFrame { function, file: Some(file), line: Some(line) }) => format!("{function} {file}:{line}"),
            Some(frame) => frame.function.clone(),
            None => "nobody".into(),
        };
        // The first is the place itself.
        for at in 1..a.len().max(b.len()) {
            if a.get(at) != b.get(at) {
                return Some((text(a.get(at)), text(b.get(at))));
            }
        }
        self.same = Some((Arc::clone(a), Arc::clone(b)));
        None
    }
}

/// A step that was passed, without its values.
#[derive(Debug, Clone)]
struct Mark {
    kind: Kind,
    place: Arc<str>,
    function: Arc<str>,
    number: u64,
    seq: u64,
    hit: u64,
    order: u64,
}

impl Mark {
    fn new(step: &Step, number: u64) -> Self {
        let (place, function) = (Arc::clone(&step.place), Arc::clone(&step.function));
        Self { kind: step.kind, place, function, number, seq: step.seq, hit: step.hit, order: step.order }
    }
}

impl From<&Mark> for Moment {
    fn from(mark: &Mark) -> Self {
        Self {
            kind: mark.kind,
            place: bounded(&mark.place),
            function: bounded(&mark.function),
            number: mark.number,
            thread: None,
            seq: mark.seq,
            hit: mark.hit,
            order: mark.order,
        }
    }
}

#[cfg(test)]
mod tests;
