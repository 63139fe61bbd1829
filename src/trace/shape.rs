//! The forms a trace is told in: feedback maps, CSV, a spark line, a picture.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::picture::{Mark, Picture};
use super::told::{HitLine, PlaceLine};
use super::{Course, Seen};
use crate::model::Point;
use crate::render::quoted;

/// Functions of a call path in the feedback form.
const PATH: usize = 3;

/// Exactly two maps: values per watched place, call paths per place.
#[must_use]
pub fn feedback(places: &[PlaceLine], hits: &[HitLine]) -> Value {
    let mut watchpoints = Map::new();
    let mut breakpoints = Map::new();
    for place in places {
        let of_place = || hits.iter().filter(|hit| hit.point == place.point);
        let paths = of_place().map(|hit| Value::String(path(hit, &place.place)));
        append(&mut breakpoints, &place.place, paths);
        if !place.courses.is_empty() {
            let entries = of_place().flat_map(|hit| {
                place.courses.iter().map(|course| {
                    let value = hit.values.get(&course.expression).map_or(crate::model::UNAVAILABLE, String::as_str);
                    json!({ "var": course.expression, "value": value })
                })
            });
            append(&mut watchpoints, &place.place, entries);
        }
    }
    json!({ "watchpoints": watchpoints, "breakpoints": breakpoints })
}

/// A place may have been asked for twice.
fn append(map: &mut Map<String, Value>, place: &str, entries: impl Iterator<Item = Value>) {
    let list = map.entry(place).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.extend(entries);
    }
}

/// `work_basic() -> main() @ fixtures/loop_basic.c:6`.
fn path(hit: &HitLine, place: &str) -> String {
    let names: Vec<String> =
        hit.frames.iter().take(PATH).map(|frame| format!("{}()", quoted(&frame.function))).collect();
    format!("{} @ {place}", names.join(" -> "))
}

/// The head of a table with a column for each expression of any place.
#[must_use]
pub fn csv_head(points: &[Point]) -> String {
    let mut out = String::from("seq,place,thread,ms");
    for name in columns(points) {
        let _ = write!(out, ",{}", field(name));
    }
    out
}

/// One line of it.
#[must_use]
pub fn csv(seen: &Seen, points: &[Point]) -> Value {
    let hit = HitLine::new(seen, points, None);
    let mut out = format!("{},{},{},{:.3}", hit.seq, field(&hit.place), hit.thread.id, hit.ms);
    for name in columns(points) {
        let _ = write!(out, ",{}", hit.values.get(name).map(|value| field(value)).unwrap_or_default());
    }
    Value::String(out)
}

fn columns(points: &[Point]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for text in points.iter().flat_map(|point| &point.expressions) {
        if !names.contains(&text.as_str()) {
            names.push(text);
        }
    }
    names
}

/// A text as a field of comma-separated values, on one line.
#[must_use]
pub fn field(text: &str) -> String {
    let text = quoted(text);
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// Eight heights of a bar, for a course of numbers; empty where there are too few.
#[must_use]
pub fn spark(course: &Course, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (Some(least), Some(most)) = (course.least, course.most) else { return String::new() };
    if course.samples.len() < 4 || width == 0 {
        return String::new();
    }
    let width = width.min(course.samples.len());
    (0..width)
        .map(|column| {
            let at = column * (course.samples.len() - 1) / (width - 1).max(1);
            let part = if most > least { (course.samples[at] - least) / (most - least) } else { 0.0 };
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of 0 to 1 of seven")]
            let height = (part * 7.0).round() as usize;
            BARS[height.min(7)]
        })
        .collect()
}

/// Values over hits, one line for each expression with numbers.
#[must_use]
pub fn picture(places: &[PlaceLine]) -> Picture {
    let (width, height, left, top) = (800.0, 120.0, 60.0, 24.0);
    let courses: Vec<(&str, &Course)> = places
        .iter()
        .flat_map(|place| place.courses.iter().map(|course| (place.place.as_str(), course)))
        .filter(|(_, course)| !course.samples.is_empty())
        .collect();
    let mut marks = Vec::new();
    for (index, (place, course)) in courses.iter().enumerate() {
        let base = top + (height + 40.0) * index as f64;
        let (least, most) = (course.least.unwrap_or_default(), course.most.unwrap_or_default());
        let span = if most > least { most - least } else { 1.0 };
        let step = width / (course.samples.len().max(2) - 1) as f64;
        let point =
            |(at, value): (usize, &f64)| (left + at as f64 * step, base + height - (value - least) / span * height);
        let text = |x: f64, y: f64, text: String| Mark::Text { x, y, text };
        marks.push(text(left, base - 6.0, format!("{} at {place}", course.expression)));
        marks.push(text(4.0, base + 10.0, most.to_string()));
        marks.push(text(4.0, base + height, least.to_string()));
        marks.push(Mark::Frame { x: left, y: base, width, height });
        marks.push(Mark::Line { colour: index, points: course.samples.iter().enumerate().map(point).collect() });
    }
    let total = (height + 40.0) * courses.len().max(1) as f64 + 10.0;
    Picture { width: width + left + 20.0, height: total, marks }
}
