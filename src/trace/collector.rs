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
/// Hits of one kind that stand out.
const NOTABLE: usize = 8;

/// A hit with its number in the trace, from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub seq: u64,
    pub hit: Hit,
    /// What it stands out for.
    pub notable: Option<&'static str>,
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
}

/// What is kept of a trace.
#[derive(Debug, Default)]
pub struct Kept {
    pub first: Vec<Seen>,
    pub newest: VecDeque<Seen>,
    /// Hits between those that stand out, by number.
    pub notable: BTreeMap<u64, Seen>,
}

/// Takes hits in the order they happened.
#[derive(Debug)]
pub struct Collector {
    points: Vec<Point>,
    pub total: u64,
    /// Hits of each point, and the courses of its expressions.
    pub courses: BTreeMap<u32, (u64, Vec<Course>)>,
    pub kept: Kept,
    counted: BTreeMap<&'static str, usize>,
}

impl Collector {
    #[must_use]
    pub fn new(points: Vec<Point>) -> Self {
        let course = |text: &String| Course { expression: text.clone(), stride: 1, ..Course::default() };
        let of = |point: &Point| (point.id, (0, point.expressions.iter().map(course).collect()));
        let courses = points.iter().map(of).collect();
        Self { points, total: 0, courses, kept: Kept::default(), counted: BTreeMap::new() }
    }

    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Takes one hit; answers it with its number.
    pub fn take(&mut self, hit: Hit) -> Seen {
        self.total += 1;
        let mut notable = None;
        if let Some((count, courses)) = self.courses.get_mut(&hit.point) {
            *count += 1;
            for (course, value) in courses.iter_mut().zip(&hit.values) {
                let news = course.take(&value.text, value.why.is_some());
                notable = notable.or(news);
            }
        }
        let seen = Seen { seq: self.total, hit, notable };
        if self.kept.first.len() < FIRST {
            self.kept.first.push(seen.clone());
            return seen;
        }
        if let Some(kind) = notable {
            let counted = self.counted.entry(kind).or_default();
            *counted += 1;
            // Of a kind that keeps coming only the newest stay: a new maximum makes the one before it nothing.
            if *counted > NOTABLE
                && let Some(oldest) =
                    self.kept.notable.iter().find(|(_, seen)| seen.notable == notable).map(|(n, _)| *n)
            {
                self.kept.notable.remove(&oldest);
            }
            self.kept.notable.insert(seen.seq, seen.clone());
        }
        self.kept.newest.push_back(seen.clone());
        if self.kept.newest.len() > NEWEST {
            self.kept.newest.pop_front();
        }
        seen
    }

    /// Whether all hits are kept.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.total as usize == self.kept.first.len() + self.kept.newest.len()
    }
}

impl Course {
    /// Takes the next value; answers what it stands out for.
    fn take(&mut self, text: &str, missing: bool) -> Option<&'static str> {
        if missing {
            self.unavailable += 1;
            return (self.unavailable == 1).then_some("first that can't be read");
        }
        if self.last.as_deref() != Some(text) {
            self.changes += u64::from(self.last.is_some());
            self.last = Some(text.to_string());
        }
        let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        let before = self.samples.last().copied();
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
        let news = match (self.least, self.most, before) {
            (Some(least), _, _) if number < least => Some("least so far"),
            (_, Some(most), _) if number > most => Some("most so far"),
            (_, _, Some(before)) if (before < 0.0) != (number < 0.0) => Some("sign changed"),
            _ => None,
        };
        self.least = Some(self.least.map_or(number, |least| least.min(number)));
        self.most = Some(self.most.map_or(number, |most| most.max(number)));
        news
    }
}
