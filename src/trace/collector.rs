//! Keeps hits within limits: the first, the newest, and what stands out.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Hit, Point};

/// Hits that are kept from the beginning.
const FIRST: usize = 9000;
/// The newest hits that are kept beyond those.
const NEWEST: usize = 1000;
/// Samples of a course; when there are more, every second is dropped.
const SAMPLES: usize = 512;
/// Times one kind of thing that may happen again and again is marked.
const MARKS: u32 = 4;

/// A hit with its number in the trace, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub seq: u64,
    pub hit: Hit,
}

/// How the values of one expression went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Course {
    pub expression: String,
    pub numbers: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// Every `stride`th number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub samples: Vec<f64>,
    pub stride: u64,
    /// Times it could not be read.
    #[serde(default)]
    pub unavailable: u64,
    /// Times it differed from the hit before.
    #[serde(default)]
    pub changes: u64,
    #[serde(skip)]
    last: Option<String>,
    #[serde(skip)]
    was_negative: bool,
    #[serde(skip)]
    signs: u32,
}

/// What a hit stands out for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mark {
    Unavailable,
    Most,
    Least,
    /// The nth time.
    Sign(u32),
    Change(u32),
}

/// Takes hits in the order they happened.
#[derive(Debug)]
pub struct Collector {
    points: Vec<Point>,
    pub total: u64,
    /// Hits of each point, and the courses of its expressions.
    pub courses: BTreeMap<u32, (u64, Vec<Course>)>,
    first: Vec<Seen>,
    newest: VecDeque<Seen>,
    /// By point, expression and what it is.
    marked: BTreeMap<(u32, usize, Mark), Seen>,
}

impl Collector {
    #[must_use]
    pub fn new(points: Vec<Point>) -> Self {
        let course = |text: &String| Course::new(text);
        let of = |point: &Point| (point.id, (0, point.expressions.iter().map(course).collect()));
        let courses = points.iter().map(of).collect();
        Self { points, total: 0, courses, first: Vec::new(), newest: VecDeque::new(), marked: BTreeMap::new() }
    }

    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Takes one hit and numbers it.
    pub fn take(&mut self, hit: Hit) {
        self.total += 1;
        let seen = Seen { seq: self.total, hit };
        if let Some((count, courses)) = self.courses.get_mut(&seen.hit.point) {
            *count += 1;
            for (index, (course, value)) in courses.iter_mut().zip(&seen.hit.values).enumerate() {
                for mark in course.take(&value.text, value.why.is_some()).into_iter().flatten() {
                    self.marked.insert((seen.hit.point, index, mark), seen.clone());
                }
            }
        }
        if self.first.len() < FIRST {
            return self.first.push(seen);
        }
        if self.newest.len() == NEWEST {
            self.newest.pop_front();
        }
        self.newest.push_back(seen);
    }

    /// The hit that was taken last.
    #[must_use]
    pub fn latest(&self) -> Option<&Seen> {
        self.newest.back().or(self.first.last())
    }

    /// Whether all hits are kept.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.total as usize == self.first.len() + self.newest.len()
    }

    /// What is kept, in order, each with what it stands out for.
    #[must_use]
    pub fn kept(&self) -> Vec<(&Seen, Option<String>)> {
        let mut notes: BTreeMap<u64, (&Seen, Vec<String>)> = BTreeMap::new();
        for ((point, index, mark), seen) in &self.marked {
            let course = self.courses.get(point).and_then(|(_, courses)| courses.get(*index));
            let Some(course) = course else { continue };
            let note = match mark {
                Mark::Unavailable => "first not readable",
                Mark::Most | Mark::Least if course.most == course.least => continue,
                Mark::Most => "most",
                Mark::Least => "least",
                Mark::Sign(_) => "changed sign",
                // What changes each time stands out by not doing so.
                Mark::Change(_) if course.changes > self.total / 4 => continue,
                Mark::Change(_) => "changed",
            };
            let (_, list) = notes.entry(seen.seq).or_insert_with(|| (seen, Vec::new()));
            list.push(format!("{} {note}", course.expression));
        }
        for seen in self.first.iter().chain(&self.newest) {
            notes.entry(seen.seq).or_insert_with(|| (seen, Vec::new()));
        }
        notes.into_values().map(|(seen, list)| (seen, (!list.is_empty()).then(|| list.join(", ")))).collect()
    }
}

impl Course {
    #[must_use]
    pub fn new(expression: &str) -> Self {
        Self { expression: expression.into(), stride: 1, ..Self::default() }
    }

    /// Takes the next value; answers what it stands out for.
    fn take(&mut self, text: &str, missing: bool) -> [Option<Mark>; 2] {
        if missing {
            self.unavailable += 1;
            return [(self.unavailable == 1).then_some(Mark::Unavailable), None];
        }
        let changed = self.last.as_deref().is_some_and(|last| last != text);
        if changed || self.last.is_none() {
            self.changes += u64::from(changed);
            self.last = Some(text.to_string());
        }
        let Some(number) = text.parse().ok().filter(|number: &f64| number.is_finite()) else {
            let nth = u32::try_from(self.changes).unwrap_or(u32::MAX);
            return [(changed && nth <= MARKS).then_some(Mark::Change(nth)), None];
        };
        let extreme = match (self.least, self.most) {
            (Some(least), _) if number < least => Some(Mark::Least),
            (_, Some(most)) if number > most => Some(Mark::Most),
            _ => None,
        };
        self.number(number);
        let negative = number < 0.0;
        let turned = self.numbers > 1 && negative != self.was_negative;
        self.was_negative = negative;
        self.signs += u32::from(turned);
        [extreme, (turned && self.signs <= MARKS).then_some(Mark::Sign(self.signs))]
    }

    /// Takes the next number.
    pub fn number(&mut self, number: f64) {
        self.sample(number);
        self.least = Some(self.least.map_or(number, |least| least.min(number)));
        self.most = Some(self.most.map_or(number, |most| most.max(number)));
    }

    fn sample(&mut self, number: f64) {
        if self.numbers.is_multiple_of(self.stride) {
            if self.samples.len() == SAMPLES {
                let mut index = 0;
                self.samples.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride *= 2;
            }
            if self.numbers.is_multiple_of(self.stride) {
                self.samples.push(number);
            }
        }
        self.numbers += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Place, Reading};

    fn collect(values: &[&str]) -> Collector {
        let point = Point {
            id: 1,
            place: Place::Function { module: None, name: "work".into() },
            asked: "work".into(),
            expressions: vec!["x".into()],
            when: None,
            every: 1,
        };
        let mut collector = Collector::new(vec![point]);
        for text in values {
            let value = match *text {
                "?" => Reading::unavailable("gone"),
                text => Reading { text: text.into(), why: None },
            };
            collector.take(Hit { point: 1, values: vec![value], ..Hit::default() });
        }
        collector
    }

    fn notes(collector: &Collector) -> Vec<(u64, String)> {
        collector.kept().into_iter().filter_map(|(seen, note)| Some((seen.seq, note?))).collect()
    }

    #[test]
    fn what_stands_out_is_marked_once() {
        let collector = collect(&["1", "5", "-3", "-4", "2", "9", "?", "?", "3"]);
        let expected =
            [(3, "x changed sign"), (4, "x least"), (5, "x changed sign"), (6, "x most"), (7, "x first not readable")];
        assert_eq!(notes(&collector), expected.map(|(seq, note)| (seq, note.to_string())));
        let words = collect(&["a"; 3].into_iter().chain(["b"; 5]).chain(["a"; 4]).collect::<Vec<_>>());
        assert_eq!(notes(&words), [(4, "x changed".to_string()), (9, "x changed".to_string())]);
        assert_eq!(words.courses[&1].1[0].changes, 2);
    }

    #[test]
    fn a_long_course_is_kept_at_both_ends_with_its_extremes() {
        let texts: Vec<String> = (0..50_000).map(|i: i64| if i == 20_000 { -7 } else { i }.to_string()).collect();
        let collector = collect(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!collector.is_whole());
        let kept = collector.kept();
        let seqs: Vec<u64> = kept.iter().map(|(seen, _)| seen.seq).collect();
        assert!(seqs.is_sorted() && seqs.len() == FIRST + NEWEST + 2, "{}", seqs.len());
        assert!(seqs.contains(&20_001) && seqs.last() == Some(&50_000));
        let course = &collector.courses[&1].1[0];
        assert_eq!((course.least, course.most, course.numbers), (Some(-7.0), Some(49_999.0), 50_000));
        assert!(
            course.samples.len() <= SAMPLES
                && course.samples.len() * course.stride as usize >= 50_000 - course.stride as usize
        );
        assert_eq!(collector.latest().map(|seen| seen.seq), Some(50_000));
    }
}
