//! Brings the index up to date: reads each record from where it was read to, as far as it is written.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Result, Statement, params};
use serde_json::{Value as Json, json};

use super::Caught;
use super::schema::{COLUMNS, SHIFT};
use super::spots::Spots;
use crate::adapters;
use crate::model::{Ending, Event};
use crate::render::cut;
use crate::store::doings::{self, Edit};
use crate::store::occurrences::{self, Hits, Occurrence};
use crate::store::read::{self, Head, Tail};
use crate::wire::MAX_LINE;

/// How much of a file of hits is read at once.
const PIECE: usize = 1024 * 1024;
/// Rows after which what was read is kept, whatever comes later.
const BATCH: u64 = 50_000;
/// Characters of a name and of a text.
pub(super) const NAME: usize = 200;
pub(super) const TEXT: usize = 2000;
/// Bytes of an event's data that are kept whole, and of a field of a longer one.
const DATA: usize = 4000;
const FIELD: usize = 300;

/// Reads what is new. Other processes wait meanwhile, or read what was there before.
pub fn fill(connection: &Connection, state: &Path, caught: &mut Caught) -> Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let filled = fill_all(connection, state, caught);
    let end = if filled.is_ok() { "COMMIT" } else { "ROLLBACK" };
    let ended = if connection.is_autocommit() { Ok(()) } else { connection.execute_batch(end) };
    filled.and(ended)
}

fn fill_all(connection: &Connection, state: &Path, caught: &mut Caught) -> Result<()> {
    let mut pen = Pen::new(connection)?;
    let mut seen = HashSet::new();
    let mut kept = 0;
    for folder in read::folders(state) {
        let Some(id) = folder.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        let before = caught.bytes;
        let there = record(&mut pen, &folder, &id, caught)?;
        if there {
            seen.insert(id);
        }
        caught.sessions += u64::from(caught.bytes > before);
        if caught.events + caught.hits > kept + BATCH {
            kept = caught.events + caught.hits;
            connection.execute_batch("COMMIT; BEGIN IMMEDIATE")?;
        }
    }
    let mut gone = Vec::new();
    let mut known = connection.prepare("SELECT key, id FROM _session")?;
    let mut rows = known.query([])?;
    while let Some(row) = rows.next()? {
        if !seen.contains(row.get_ref(1)?.as_str().unwrap_or_default()) {
            gone.push(row.get(0)?);
        }
    }
    for key in gone {
        forget(connection, key)?;
    }
    Ok(())
}

/// How far a record is known.
struct Known {
    key: i64,
    inode: i64,
    /// When its head was written.
    head: i64,
    bytes: u64,
}

/// Reads what is new in one record; answers whether there is one.
fn record(pen: &mut Pen<'_>, folder: &Path, id: &str, caught: &mut Caught) -> Result<bool> {
    let Ok(about) = fs::metadata(folder.join("session.json")) else { return Ok(false) };
    let written = about.mtime().wrapping_mul(1_000_000_000).wrapping_add(about.mtime_nsec());
    let (inode, size) =
        fs::metadata(folder.join("events.jsonl")).map_or((0, 0), |data| (data.ino().cast_signed(), data.len()));
    let mut known = pen.known(id)?;
    if let Some(other) = known.take_if(|known| (known.inode != inode && known.inode != 0) || known.bytes > size) {
        // Another record of that name.
        forget(pen.connection, other.key)?;
    }
    // Most records are as they were: one look at each of their files is all they cost.
    let mut head = None;
    if known.as_ref().is_none_or(|known| known.head != written || known.inode != inode) {
        let Some(read) = Head::load(folder) else { return Ok(false) };
        let key = pen.head(&read, id, inode, written)?;
        known = Some(Known { key, inode, head: written, bytes: known.map_or(0, |known| known.bytes) });
        head = Some(read);
    }
    let Some(known) = known else { return Ok(false) };
    let mut reading = Reading { pen, folder, head, key: known.key, spots: Spots::default() };
    if size > known.bytes {
        reading.events(known.bytes, caught)?;
    }
    reading.traces(caught)?;
    Ok(true)
}

/// Takes a record out of the index.
fn forget(connection: &Connection, key: i64) -> Result<()> {
    let last = (1_i64 << SHIFT) - 1;
    for table in ["_hit", "_more"] {
        let mut each = connection.prepare(&format!("DELETE FROM {table} WHERE id BETWEEN ?1 AND ?2"))?;
        let mut spots = connection.prepare("SELECT key FROM _spot WHERE session = ?1")?;
        let mut rows = spots.query([key])?;
        while let Some(row) = rows.next()? {
            let first = row.get::<_, i64>(0)? << SHIFT;
            each.execute([first, first + last])?;
        }
    }
    for table in ["_spot", "_trace", "_told", "_event", "_output"] {
        connection.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [key])?;
    }
    connection.execute("DELETE FROM _session WHERE key = ?1", [key])?;
    Ok(())
}

/// The statements that are used again and again.
pub(super) struct Pen<'c> {
    pub connection: &'c Connection,
    known: Statement<'c>,
    traces: Statement<'c>,
    pub hit: Statement<'c>,
    pub more: Statement<'c>,
    event: Statement<'c>,
    output: Statement<'c>,
    told: Statement<'c>,
}

impl<'c> Pen<'c> {
    fn new(connection: &'c Connection) -> Result<Self> {
        let marks: String = (0..2 * COLUMNS).map(|_| ", ?").collect();
        Ok(Self {
            connection,
            known: connection.prepare("SELECT key, inode, head, bytes FROM _session WHERE id = ?1")?,
            traces: connection.prepare("SELECT seq, ts, data, file, bytes, hits FROM _trace WHERE session = ?1")?,
            hit: connection.prepare(&format!("INSERT INTO _hit VALUES (?, ?, ?, ?, ?, ?, ?, ?{marks})"))?,
            more: connection.prepare("INSERT INTO _more VALUES (?, ?, ?, ?)")?,
            // A number that comes twice is a defect of its writer; the first one stays.
            event: connection.prepare("INSERT OR IGNORE INTO _event VALUES (?, ?, ?, ?, ?, ?)")?,
            output: connection.prepare("INSERT OR IGNORE INTO _output VALUES (?, ?, ?, ?)")?,
            told: connection.prepare("INSERT OR IGNORE INTO _told VALUES (?, ?, ?, ?)")?,
        })
    }

    fn known(&mut self, id: &str) -> Result<Option<Known>> {
        let row = |row: &rusqlite::Row<'_>| {
            let bytes: i64 = row.get(3)?;
            Ok(Known { key: row.get(0)?, inode: row.get(1)?, head: row.get(2)?, bytes: bytes.cast_unsigned() })
        };
        self.known.query_row([id], row).optional()
    }

    /// Writes down what a record is about; answers its key.
    fn head(&self, head: &Head, id: &str, inode: i64, written: i64) -> Result<i64> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        self.connection.query_row(
            "INSERT INTO _session(id, alias, name, command, cwd, project, adapter, who, started, inode, head, bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0)
             ON CONFLICT(id) DO UPDATE SET alias = ?2, name = ?3, command = ?4, cwd = ?5, project = ?6, adapter = ?7,
             who = ?8, started = ?9, inode = ?10, head = ?11 RETURNING key",
            params![
                id,
                head.alias,
                head.name,
                cut(&head.words.join(" "), TEXT).0,
                text(&head.cwd),
                text(&head.project),
                head.adapter,
                head.who,
                head.started.cast_signed(),
                inode,
                written
            ],
            |row| row.get(0),
        )
    }
}

/// A record that is being read.
struct Reading<'r, 'c> {
    pen: &'r mut Pen<'c>,
    folder: &'r Path,
    /// Read when it is needed.
    head: Option<Head>,
    key: i64,
    spots: Spots,
}

impl Reading<'_, '_> {
    fn head(&mut self) -> Option<Head> {
        self.head.take().or_else(|| Head::load(self.folder))
    }

    fn events(&mut self, from: u64, caught: &mut Caught) -> Result<()> {
        let Some(head) = self.head() else { return Ok(()) };
        let mut tail = Tail::beyond(self.folder, from);
        // What can't be read now may be the next time.
        while let Ok(Some(events)) = tail.read() {
            for (event, _) in events {
                caught.events += 1;
                self.event(&head, &event, caught)?;
            }
        }
        let bytes = tail.bytes();
        caught.bytes += bytes - from;
        let set = "UPDATE _session SET bytes = ?2 WHERE key = ?1";
        self.pen.connection.execute(set, params![self.key, bytes.cast_signed()])?;
        self.spots.keep(self.pen.connection)?;
        self.head = Some(head);
        Ok(())
    }

    fn event(&mut self, head: &Head, event: &Event, caught: &mut Caught) -> Result<()> {
        let (key, seq, ts) = (self.key, event.seq.cast_signed(), event.ts.cast_signed());
        let data = shortened(&event.kind, &event.data);
        self.pen.event.execute(params![key, seq, ts, cut(&event.kind, NAME).0, event.thread, data])?;
        match event.kind.as_str() {
            // What another version means by it is not guessed at.
            _ if event.v != 1 => {}
            "output" => {
                let text = |name: &str| event.data[name].as_str().unwrap_or_default();
                self.pen.output.execute(params![key, seq, text("stream"), text("text")])?;
            }
            "session.end" => {
                let (ending, code, signal) = ending(&event.data["ending"]);
                let set = "UPDATE _session SET ended = ?2, ending = ?3, code = ?4, signal = ?5 WHERE key = ?1";
                self.pen.connection.execute(set, params![key, ts, ending, code, signal])?;
            }
            // Where an agent was held is its debugger's doing.
            _ if is_agents(head) => {
                if let Some(done) = doings::doing(event, None) {
                    caught.hits += 1;
                    let done = Occurrence { asked: doings::as_asked(event), frames: Arc::default(), ..done };
                    self.spots.take(self.pen, key, &done)?;
                }
                if let Some(edit) = Edit::of(event) {
                    self.edited(event.thread, edit)?;
                }
            }
            "stopped" => {
                if let Some(stop) = occurrences::stop(head, event) {
                    caught.hits += 1;
                    self.spots.take(self.pen, key, &stop)?;
                }
            }
            "trace" => {
                if let Some((_, file)) = Hits::new(head, event.seq, event.ts, &event.data) {
                    let new = "INSERT OR IGNORE INTO _trace VALUES (?, ?, ?, ?, ?, 0, 0)";
                    self.pen.connection.execute(new, params![key, seq, ts, event.data.to_string(), file])?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// What was changed before it happened is told as it was done.
    fn edited(&mut self, thread: Option<i64>, edit: Edit<'_>) -> Result<()> {
        let find = "SELECT seq, ts, data FROM _event WHERE session = ?1 AND type = ?2 AND thread IS ?3
            AND json_extract(data, '$.name') IS ?4 AND json_extract(data, '$.id') IS ?5 ORDER BY seq DESC LIMIT 20";
        let asked = params![self.key, edit.kind, thread, edit.name, edit.id];
        let row = |row: &rusqlite::Row<'_>| {
            let data: Json = serde_json::from_str(&row.get::<_, String>(2)?).unwrap_or_default();
            Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, data))
        };
        let mut found = self.pen.connection.prepare(find)?;
        let mut found: Vec<(i64, i64, Json)> = found.query_map(asked, row)?.collect::<Result<_>>()?;
        let at = found.iter().position(|(_, _, data)| edit.is_of(data)).unwrap_or(0);
        if found.is_empty() {
            return Ok(());
        }
        let (seq, ts, data) = found.swap_remove(at);
        let event = Event {
            v: 1,
            seq: seq.cast_unsigned(),
            ts: ts.cast_unsigned(),
            session: String::new(),
            thread,
            kind: edit.kind.into(),
            data,
        };
        let Some(mut done) = doings::doing(&event, Some(edit.value)) else { return Ok(()) };
        done.values.extend(edit.was());
        let done = Occurrence { asked: doings::as_asked(&event), frames: Arc::default(), ..done };
        if self.spots.forget(self.pen.connection, self.key, &done)? {
            self.spots.take(self.pen, self.key, &done)?;
        }
        Ok(())
    }

    /// The traces whose files have grown.
    fn traces(&mut self, caught: &mut Caught) -> Result<()> {
        let mut grown = Vec::new();
        let mut rows = self.pen.traces.query([self.key])?;
        while let Some(row) = rows.next()? {
            let (name, bytes): (String, i64) = (row.get(3)?, row.get(4)?);
            let path = self.folder.join(name);
            if fs::metadata(&path).is_ok_and(|data| data.len() > bytes.cast_unsigned()) {
                let (seq, ts, data): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
                let hits: i64 = row.get(5)?;
                grown.push(Trace { seq, ts, data, path, bytes: bytes.cast_unsigned(), hits: hits.cast_unsigned() });
            }
        }
        drop(rows);
        for trace in grown {
            self.trace(&trace, caught)?;
        }
        Ok(())
    }

    fn trace(&mut self, trace: &Trace, caught: &mut Caught) -> Result<()> {
        let Some(head) = self.head() else { return Ok(()) };
        let data: Json = serde_json::from_str(&trace.data).unwrap_or_default();
        let known = Hits::new(&head, trace.seq.cast_unsigned(), trace.ts.cast_unsigned(), &data);
        let (Some((mut hits, _)), Ok(mut file)) = (known, File::open(&trace.path)) else { return Ok(()) };
        hits.count = trace.hits;
        let (key, seq) = (self.key, trace.seq);
        let before = "SELECT line FROM _told WHERE session = ?1 AND seq = ?2 ORDER BY bytes";
        let mut before = self.pen.connection.prepare(before)?;
        let mut rows = before.query([key, seq])?;
        while let Some(row) = rows.next()? {
            hits.feed(&head, format!("{}\n", row.get_ref(0)?.as_str()?).as_bytes(), &mut |_| true);
        }
        let mut lines = Lines { bytes: trace.bytes, rest: Vec::new() };
        let sought = file.seek(SeekFrom::Start(lines.bytes)).is_ok();
        while sought && let Ok(true) = lines.read(&mut file) {
            let whole = lines.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let mut at = lines.bytes;
            for line in lines.rest[..whole].split_inclusive(|byte| *byte == b'\n') {
                // Hits name threads and ways by numbers that were told before.
                if line.starts_with(b"[\"")
                    && matches!(line.get(2), Some(b's' | b't'))
                    && let Ok(text) = std::str::from_utf8(line)
                {
                    self.pen.told.execute(params![key, seq, at.cast_signed(), text.trim_end()])?;
                }
                at += line.len() as u64;
            }
            let mut failed = None;
            let (pen, spots) = (&mut *self.pen, &mut self.spots);
            hits.feed(&head, &lines.rest[..whole], &mut |hit| {
                failed = spots.take(pen, key, &hit).err();
                failed.is_none()
            });
            if let Some(error) = failed {
                return Err(error);
            }
            lines.pass(whole);
        }
        caught.hits += hits.count - trace.hits;
        caught.bytes += lines.bytes - trace.bytes;
        let set = "UPDATE _trace SET bytes = ?3, hits = ?4 WHERE session = ?1 AND seq = ?2";
        let (bytes, count) = (lines.bytes.cast_signed(), hits.count.cast_signed());
        self.pen.connection.execute(set, params![key, seq, bytes, count])?;
        self.spots.keep(self.pen.connection)?;
        self.head = Some(head);
        Ok(())
    }
}

fn is_agents(head: &Head) -> bool {
    adapters::by_name(&head.adapter).is_some_and(|adapter| adapter.quirks.agents)
}

/// A trace whose file has grown.
struct Trace {
    seq: i64,
    ts: i64,
    data: String,
    path: std::path::PathBuf,
    bytes: u64,
    hits: u64,
}

/// A file of lines, of which the last may not be whole yet.
struct Lines {
    /// Where `rest` begins.
    bytes: u64,
    rest: Vec<u8>,
}

impl Lines {
    /// Reads more; false at the end of what is written.
    fn read(&mut self, file: &mut File) -> io::Result<bool> {
        Ok(file.take(PIECE as u64).read_to_end(&mut self.rest)? > 0)
    }

    /// Passes over what was taken, and over a line too long to be one.
    fn pass(&mut self, whole: usize) {
        self.bytes += whole as u64;
        self.rest.drain(..whole);
        if self.rest.len() > MAX_LINE {
            self.bytes += self.rest.len() as u64;
            self.rest.clear();
        }
    }
}

/// An event's data as far as it is short.
fn shortened(kind: &str, data: &Json) -> String {
    if kind == "output" {
        let bytes = data["text"].as_str().map_or(0, str::len);
        return json!({ "stream": data["stream"], "bytes": bytes }).to_string();
    }
    let whole = data.to_string();
    if whole.len() <= DATA {
        return whole;
    }
    let (mut kept, mut left_out) = (serde_json::Map::new(), Vec::new());
    for (name, value) in data.as_object().into_iter().flatten() {
        let size = name.len() + value.to_string().len();
        if size <= FIELD && kept.len() < 20 {
            kept.insert(name.clone(), value.clone());
        } else if left_out.len() < 20 {
            left_out.push(cut(name, NAME).0);
        }
    }
    kept.insert("cut".into(), json!(left_out));
    Json::Object(kept).to_string()
}

fn ending(data: &Json) -> (Option<&'static str>, Option<i64>, Option<String>) {
    match serde_json::from_value(data.clone()) {
        Ok(Ending::Exited { code }) => (Some("exited"), code, None),
        Ok(Ending::Signalled { signal }) => (Some("signalled"), None, Some(signal)),
        Ok(Ending::Detached) => (Some("detached"), None, None),
        Ok(Ending::Stopped) => (Some("stopped"), None, None),
        Ok(Ending::Lost { .. }) => (Some("lost"), None, None),
        Err(_) => (None, None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_data_keeps_its_short_fields() {
        let data = json!({ "reason": "step", "locals": vec!["x"; 2000], "number": 3 });
        let kept: Json = serde_json::from_str(&shortened("stopped", &data)).unwrap();
        assert_eq!(kept, json!({ "reason": "step", "number": 3, "cut": ["locals"] }));
        let output = shortened("output", &json!({ "stream": "stdout", "text": "abc" }));
        assert_eq!(output, r#"{"stream":"stdout","bytes":3}"#);
    }
}
