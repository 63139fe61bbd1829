//! The file of all hits: read as a hook makes it grow, or written here.
//!
//! Hooks write what they see, and the file stays in the record. So where a name tells that a secret will be seen, the hook
//! writes to a file that goes with the trace, and the record gets a copy without the secrets.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::{PIECE, Plan};
use crate::hub::{Context, Live};
use crate::model::{Hit, Point};
use crate::paths::create_private;
use crate::store::redact;
use crate::trace::sink::{self, Record};

/// What all hits come through.
pub(super) struct Tail {
    /// In the record.
    pub path: PathBuf,
    /// Where the hook writes instead, when the record must not have it as it is.
    apart: Option<PathBuf>,
    file: Option<tokio::fs::File>,
    own: Option<(File, sink::Writer)>,
    /// Hits come by stops, and are written here.
    told: bool,
    /// The points whose values are looked at for secrets; None where they are not wanted out.
    secrets: Option<Vec<Point>>,
    /// A line that is not complete yet.
    rest: Vec<u8>,
    pub reader: sink::Reader,
}

impl Tail {
    pub fn new(cx: &Context, live: &Live, plan: &Plan, path: PathBuf) -> Self {
        let redacts = cx.hub.config.redact();
        let points: Vec<Point> = plan.points.iter().chain(&plan.watched).cloned().collect();
        let named = |point: &Point| names(point).iter().any(|name| redact::is_secret(name));
        // The arguments of calls are known when they are seen.
        let apart = redacts && (points.iter().any(named) || !plan.calls.is_empty());
        let folder = cx.hub.paths.spool();
        let name = format!("{}-{}", live.alias, path.file_name().unwrap_or_default().to_string_lossy());
        Self {
            apart: (apart && create_private(&folder).is_ok()).then(|| folder.join(name)),
            path,
            file: None,
            own: None,
            told: false,
            secrets: redacts.then_some(points),
            rest: Vec::new(),
            reader: sink::Reader::new(&live.adapter.quirks),
        }
    }

    /// Where a hook writes.
    pub fn sink(&self) -> &Path {
        self.apart.as_deref().unwrap_or(&self.path)
    }

    /// The next records; none at the end of what is written so far.
    pub async fn read(&mut self) -> Option<Vec<Record>> {
        if self.told {
            return None;
        }
        if self.file.is_none() {
            self.file = tokio::fs::File::open(self.sink()).await.ok();
        }
        let file = self.file.as_mut()?;
        let mut buffer = vec![0; PIECE];
        let read = file.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        let piece = buffer.get(..read)?;
        if self.apart.is_some() {
            self.copy(piece);
        }
        let mut records = Vec::new();
        self.reader.feed(piece, |record| records.push(record));
        Some(records)
    }

    /// Writes down a hit that no hook has.
    pub fn write(&mut self, hit: &Hit) {
        self.told = true;
        let point = self.secrets.iter().flatten().find(|point| point.id == hit.point);
        let mut hit = hit.clone();
        for (name, value) in point.map(names).unwrap_or_default().iter().zip(&mut hit.values) {
            value.text = redact::held(name, &value.text).into_owned();
        }
        if let Some((file, writer)) = self.own() {
            // A disk that is full costs the file, not the trace.
            let _ = file.write_all(writer.lines(&hit).as_bytes());
        }
    }

    fn own(&mut self) -> Option<&mut (File, sink::Writer)> {
        if self.own.is_none() {
            let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path);
            self.own = file.ok().map(|file| (file, sink::Writer::default()));
        }
        self.own.as_mut()
    }

    /// Copies what a hook has written into the record, without secrets.
    fn copy(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else { return };
        let whole: Vec<u8> = self.rest.drain(..=end).collect();
        let mut text = String::with_capacity(whole.len());
        for line in String::from_utf8_lossy(&whole).lines() {
            match serde_json::from_str(line) {
                Ok(mut record) => {
                    clean(&mut record, self.secrets.as_deref().unwrap_or_default());
                    text.push_str(&record.to_string());
                }
                // Nobody can read it: neither is it kept.
                Err(_) => text.push_str(if line.is_empty() { "" } else { "null" }),
            }
            text.push('\n');
        }
        if let Some((file, _)) = self.own() {
            let _ = file.write_all(text.as_bytes());
        }
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        if let Some(apart) = &self.apart {
            let _ = std::fs::remove_file(apart);
        }
    }
}

/// What the values of a point are of. What was watched is its own expression.
fn names(point: &Point) -> &[String] {
    match point.expressions.as_slice() {
        [] => std::slice::from_ref(&point.asked),
        expressions => expressions,
    }
}

/// Takes the secrets out of a line of a hook.
fn clean(record: &mut Value, points: &[Point]) {
    match record.as_array_mut().map(Vec::as_mut_slice) {
        Some([Value::Number(id), _, _, _, Value::Array(values)]) => {
            let point = points.iter().find(|point| Some(u64::from(point.id)) == id.as_u64());
            for (name, value) in point.map(names).unwrap_or_default().iter().zip(values) {
                hide(name, value);
            }
        }
        Some([Value::String(kind), _, _, _, _, _, Value::Array(arguments)]) if kind == "c" => {
            for argument in arguments {
                if let Some([Value::String(name), value]) = argument.as_array_mut().map(Vec::as_mut_slice) {
                    hide(&name.clone(), value);
                }
            }
        }
        Some([Value::String(kind), _, _, value]) if kind == "r" => redact::value(value),
        _ => {}
    }
}

/// A value of a hook: a text, why there is none, or a text with a type and parts.
fn hide(name: &str, value: &mut Value) {
    match value {
        Value::String(text) => *text = redact::held(name, text).into_owned(),
        Value::Array(fields) if fields.len() > 1 => {
            if redact::is_secret(name) {
                *value = json!(redact::REDACTED);
                return;
            }
            if let Some(Value::String(text)) = fields.first_mut() {
                *text = redact::text(text).into_owned();
            }
            for part in fields.get_mut(3).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some([Value::String(name), value]) = part.as_array_mut().map(Vec::as_mut_slice) {
                    hide(&name.clone(), value);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Place;

    #[test]
    fn the_lines_of_hooks_lose_their_secrets_and_nothing_else() {
        let point = |id, expressions: &[&str]| Point {
            id,
            place: Place::Line { file: "/a.py".into(), line: 3 },
            asked: "a.py:3".into(),
            expressions: expressions.iter().map(|text| (*text).to_string()).collect(),
            when: None,
            every: 1,
        };
        let points = [point(1, &["user", "self.password"]), point(2, &["i"])];
        let cases = [
            (json!([1, 5, 7, 1, ["'bob'", "'x1'"]]), json!([1, 5, 7, 1, ["'bob'", "<redacted>"]])),
            (json!([2, 5, 7, 1, ["3"]]), json!([2, 5, 7, 1, ["3"]])),
            (json!([1, 5, 7, 1, ["'b'", ["x1", "str"]]]), json!([1, 5, 7, 1, ["'b'", "<redacted>"]])),
            (
                json!([2, 5, 7, 1, [["", "User", 2, [["name", "'b'"], ["api_key", "'x1'"]]]]]),
                json!([2, 5, 7, 1, [["", "User", 2, [["name", "'b'"], ["api_key", "<redacted>"]]]]]),
            ),
            (
                json!(["c", 1, 5, 7, 0, ["f", "/a.py", 1], [["n", "1"], ["password", "'x1'"]]]),
                json!(["c", 1, 5, 7, 0, ["f", "/a.py", 1], [["n", "1"], ["password", "<redacted>"]]]),
            ),
            (json!(["r", 1, 9, "{'secret': 'x1'}"]), json!(["r", 1, 9, "{'secret': '<redacted>'}"])),
            (json!(["t", 7, "main"]), json!(["t", 7, "main"])),
        ];
        for (mut line, kept) in cases {
            clean(&mut line, &points);
            assert_eq!(line, kept);
        }
    }
}
