//! What is told of hits and places.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Course, Seen};
use crate::model::{HitFrame, Point, ThreadInfo};

/// One hit. Values, functions and files are debuggee text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HitLine {
    pub seq: u64,
    /// The place as it was asked for.
    pub place: String,
    pub point: u32,
    pub thread: ThreadInfo,
    /// Since the trace began.
    pub ms: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<HitFrame>,
    pub values: BTreeMap<String, String>,
    /// Why values are `<unavailable>`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<String, String>,
    /// What it stands out for among many.
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

impl HitLine {
    #[must_use]
    pub fn new(seen: &Seen, points: &[Point], notable: Option<String>) -> Self {
        let point = points.iter().find(|point| point.id == seen.hit.point);
        let names = point.map(|point| point.expressions.as_slice()).unwrap_or_default();
        let pairs = || names.iter().zip(&seen.hit.values);
        Self {
            seq: seen.seq,
            place: point.map(|point| point.asked.clone()).unwrap_or_default(),
            point: seen.hit.point,
            thread: ThreadInfo { id: seen.hit.thread, name: seen.hit.thread_name.clone() },
            ms: seen.hit.micros as f64 / 1000.0,
            frames: seen.hit.frames.to_vec(),
            values: pairs().map(|(name, value)| (name.clone(), value.text.clone())).collect(),
            unavailable: pairs().filter_map(|(name, value)| Some((name.clone(), value.why.clone()?))).collect(),
            notable,
        }
    }
}
