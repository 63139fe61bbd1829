//! The forms a trace is told in: feedback maps, CSV, a spark line, a plot.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

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

fn field(text: &str) -> String {
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

/// Values over hits, one line for each expression with numbers, as an SVG picture.
#[must_use]
pub fn plot(places: &[PlaceLine]) -> String {
    const COLOURS: [&str; 6] = ["#3465a4", "#cc0000", "#4e9a06", "#75507b", "#c17d11", "#06989a"];
    let (width, height, left, top) = (800.0, 120.0, 60.0, 24.0);
    let courses: Vec<(&str, &Course)> = places
        .iter()
        .flat_map(|place| place.courses.iter().map(|course| (place.place.as_str(), course)))
        .filter(|(_, course)| !course.samples.is_empty())
        .collect();
    let total = (height + 40.0) * courses.len().max(1) as f64 + 10.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{total}\" font-family=\"monospace\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        width + left + 20.0
    );
    for (index, (place, course)) in courses.iter().enumerate() {
        let base = top + (height + 40.0) * index as f64;
        let (least, most) = (course.least.unwrap_or_default(), course.most.unwrap_or_default());
        let span = if most > least { most - least } else { 1.0 };
        let step = width / (course.samples.len().max(2) - 1) as f64;
        let points: Vec<String> = course
            .samples
            .iter()
            .enumerate()
            .map(|(at, value)| {
                format!("{:.1},{:.1}", left + at as f64 * step, base + height - (value - least) / span * height)
            })
            .collect();
        let _ = write!(
            out,
            "<text x=\"{left}\" y=\"{:.0}\">{} at {}</text>\n<text x=\"4\" y=\"{:.0}\">{most}</text>\n<text x=\"4\" y=\"{:.0}\">{least}</text>\n\
             <rect x=\"{left}\" y=\"{base}\" width=\"{width}\" height=\"{height}\" fill=\"none\" stroke=\"#ddd\"/>\n\
             <polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.5\" points=\"{}\"/>\n",
            base - 6.0,
            xml(&course.expression),
            xml(place),
            base + 10.0,
            base + height,
            COLOURS[index % COLOURS.len()],
            points.join(" ")
        );
    }
    out.push_str("</svg>\n");
    out
}

fn xml(text: &str) -> String {
    quoted(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
