//! Where the hits of one record are written: a spot for each place, with what its hits share.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _, Result, params};
use serde_json::json;

use super::Cell;
use super::fill::{NAME, Pen, TEXT};
use super::schema::{COLUMNS, SHIFT, range};
use crate::model::{HitFrame, Number, Reason};
use crate::render::cut;
use crate::store::occurrences::Occurrence;

/// Values of one hit.
const VALUES: usize = 100;
/// Functions of a path, and its characters.
const FRAMES: usize = 8;
const PATH: usize = 500;

/// Places with what is known of them, of one record.
#[derive(Default)]
pub(super) struct Spots {
    list: Vec<Spot>,
    /// By the trace, place, place as asked, function and names.
    known: HashMap<(u64, [String; 4]), usize>,
    recent: Vec<Recent>,
    /// Paths by where their frames are kept in memory.
    ways: HashMap<usize, (Arc<[HitFrame]>, i64)>,
}

struct Spot {
    key: i64,
    hits: i64,
}

/// A spot as the last hits had it, by its very texts.
struct Recent {
    place: Arc<str>,
    function: Arc<str>,
    names: Vec<Arc<str>>,
    spot: usize,
}

impl Recent {
    fn is_of(&self, hit: &Occurrence) -> bool {
        Arc::ptr_eq(&self.place, &hit.place)
            && Arc::ptr_eq(&self.function, &hit.function)
            && self.names.len() == hit.values.len()
            && self.names.iter().zip(&hit.values).all(|(known, (name, _))| Arc::ptr_eq(known, name))
    }
}

impl Spots {
    /// Writes one hit.
    pub fn take(&mut self, pen: &mut Pen<'_>, session: i64, hit: &Occurrence) -> Result<()> {
        let spot = match self.recent.iter().find(|recent| recent.is_of(hit)) {
            Some(recent) => recent.spot,
            None => self.find(pen.connection, session, hit)?,
        };
        let way = self.way(pen.connection, &hit.frames)?;
        let spot = &mut self.list[spot];
        spot.hits += 1;
        let id = (spot.key << SHIFT) + spot.hits;
        let plain = hit.hit > 0;
        let insert = &mut pen.hit;
        insert.raw_bind_parameter(1, id)?;
        insert.raw_bind_parameter(2, hit.hit.cast_signed())?;
        insert.raw_bind_parameter(3, hit.micros.cast_signed())?;
        insert.raw_bind_parameter(4, hit.thread)?;
        insert.raw_bind_parameter(5, way)?;
        insert.raw_bind_parameter(6, (!plain).then_some(hit.seq.cast_signed()))?;
        insert.raw_bind_parameter(7, (!plain).then_some(hit.ts.cast_signed()))?;
        insert.raw_bind_parameter(8, hit.reason.as_ref().map(reason))?;
        for at in 0..COLUMNS {
            let (value, text) = hit.values.get(at).map_or((Cell::Null, Cell::Null), |(_, text)| cells(text));
            insert.raw_bind_parameter(9 + at, value)?;
            insert.raw_bind_parameter(9 + COLUMNS + at, text)?;
        }
        insert.raw_execute()?;
        for (at, (_, text)) in hit.values.iter().enumerate().take(VALUES).skip(COLUMNS) {
            let (value, text) = cells(text);
            pen.more.execute(params![id, at as i64 + 1, value, text])?;
        }
        Ok(())
    }

    /// Takes out the hit that an event told, wherever it is written; false where there is none. Those after it move up.
    pub fn forget(&mut self, connection: &Connection, session: i64, hit: &Occurrence) -> Result<bool> {
        let find = format!(
            "SELECT h.id, s.key FROM _spot s JOIN _hit h ON {} WHERE s.session = ?1 AND s.place = ?2 AND h.seq = ?3",
            range("s", "h")
        );
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?));
        let asked = params![session, cut(&hit.place, TEXT).0, hit.seq.cast_signed()];
        let Some((id, key)) = connection.query_row(&find, asked, row).optional()? else { return Ok(false) };
        let last = (key << SHIFT) + (1 << SHIFT) - 1;
        for table in ["_hit", "_more"] {
            connection.execute(&format!("DELETE FROM {table} WHERE id = ?1"), [id])?;
            connection.execute(&format!("UPDATE {table} SET id = id - 1 WHERE id > ?1 AND id <= ?2"), [id, last])?;
        }
        connection.execute("UPDATE _spot SET hits = hits - 1 WHERE key = ?1", [key])?;
        if let Some(spot) = self.list.iter_mut().find(|spot| spot.key == key) {
            spot.hits -= 1;
        }
        Ok(true)
    }

    fn find(&mut self, connection: &Connection, session: i64, hit: &Occurrence) -> Result<usize> {
        let names: Vec<&str> = hit.values.iter().take(VALUES).map(|(name, _)| cut(name, NAME).0).collect();
        let layout = json!(names).to_string();
        let asked = hit.asked.as_deref().map(|asked| cut(asked, TEXT).0);
        let (place, function) = (cut(&hit.place, TEXT).0, cut(&hit.function, TEXT).0);
        let traced = if hit.hit > 0 { hit.seq } else { 0 };
        let known = (traced, [place, asked.unwrap_or_default(), function, &layout].map(String::from));
        let spot = match self.known.get(&known) {
            Some(spot) => *spot,
            None => {
                let layout = layout_key(connection, &layout, &names)?;
                let (seq, ts) = match traced {
                    0 => (None, None),
                    _ => (Some(hit.seq.cast_signed()), Some(hit.ts.cast_signed())),
                };
                let find = "SELECT key, hits FROM _spot WHERE session = ?1 AND seq IS ?2 AND place = ?3 AND asked IS ?4
                    AND function = ?5 AND layout = ?6";
                let new = "INSERT INTO _spot(session, seq, place, asked, function, layout, ts, hits)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0) RETURNING key, hits";
                let row = |row: &rusqlite::Row<'_>| Ok(Spot { key: row.get(0)?, hits: row.get(1)? });
                let found = params![session, seq, place, asked, function, layout];
                let spot = match connection.query_row(find, found, row).optional()? {
                    Some(spot) => spot,
                    None => {
                        let all = params![session, seq, place, asked, function, layout, ts];
                        connection.query_row(new, all, row)?
                    }
                };
                self.list.push(spot);
                self.known.insert(known, self.list.len() - 1);
                self.list.len() - 1
            }
        };
        if traced > 0 {
            if self.recent.len() == 32 {
                self.recent.clear();
            }
            let names = hit.values.iter().map(|(name, _)| Arc::clone(name)).collect();
            let (place, function) = (Arc::clone(&hit.place), Arc::clone(&hit.function));
            self.recent.push(Recent { place, function, names, spot });
        }
        Ok(spot)
    }

    fn way(&mut self, connection: &Connection, frames: &Arc<[HitFrame]>) -> Result<Option<i64>> {
        if frames.is_empty() {
            return Ok(None);
        }
        let at = frames.as_ptr() as usize;
        if let Some((known, way)) = self.ways.get(&at)
            && Arc::ptr_eq(known, frames)
        {
            return Ok(Some(*way));
        }
        let names: Vec<&str> = frames.iter().take(FRAMES).map(|frame| frame.function.as_str()).collect();
        let path = names.join(" < ");
        let path = cut(&path, PATH).0;
        connection.execute("INSERT OR IGNORE INTO _way(path) VALUES (?1)", [path])?;
        let way = connection.query_row("SELECT key FROM _way WHERE path = ?1", [path], |row| row.get(0))?;
        if self.ways.len() == 1000 {
            self.ways.clear();
        }
        self.ways.insert(at, (Arc::clone(frames), way));
        Ok(Some(way))
    }

    /// Writes down how many hits each has.
    pub fn keep(&self, connection: &Connection) -> Result<()> {
        let mut set = connection.prepare("UPDATE _spot SET hits = ?2 WHERE key = ?1")?;
        for spot in &self.list {
            set.execute([spot.key, spot.hits])?;
        }
        Ok(())
    }
}

fn layout_key(connection: &Connection, layout: &str, names: &[&str]) -> Result<i64> {
    let key = |row: &rusqlite::Row<'_>| row.get(0);
    let find = "SELECT key FROM _layout WHERE names = ?1";
    if let Some(key) = connection.query_row(find, [layout], key).optional()? {
        return Ok(key);
    }
    let key = connection.query_row("INSERT INTO _layout(names) VALUES (?1) RETURNING key", [layout], key)?;
    for (name, position) in names.iter().zip(1_i64..) {
        connection.execute("INSERT INTO _name VALUES (?1, ?2, ?3)", params![key, position, name])?;
    }
    Ok(key)
}

/// What a value is worth, and its text where SQLite would write that another way.
fn cells(text: &str) -> (Cell<'_>, Cell<'_>) {
    let beside = |same: bool| if same { Cell::Null } else { Cell::Text(cut(text, TEXT).0) };
    match Number::of(text) {
        Some(Number::Whole(number)) => (Cell::Whole(number), beside(is_plain_whole(text))),
        Some(Number::Real(number)) => (Cell::Real(number), beside(is_plain_real(text))),
        None => (Cell::Text(cut(text, TEXT).0), Cell::Null),
    }
}

fn is_plain_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    digits.iter().all(u8::is_ascii_digit) && (digits[0] != b'0' || text == "0")
}

/// SQLite writes as many digits as there are up to a dozen for certain, and a power of ten for what is very small.
fn is_plain_real(text: &str) -> bool {
    let Some((whole, part)) = text.strip_prefix('-').unwrap_or(text).split_once('.') else { return false };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits(whole)
        && digits(part)
        && whole.len() + part.len() <= 12
        && (whole == "0" || !whole.starts_with('0'))
        && (part == "0" || !part.ends_with('0'))
        && (whole != "0" || (!part.starts_with("000") && part != "0"))
}

/// Why a program stopped, in a word or a few.
fn reason(reason: &Reason) -> String {
    let told = match reason {
        Reason::Breakpoint { .. } => return "breakpoint".into(),
        Reason::Step => return "step".into(),
        Reason::Pause => return "pause".into(),
        Reason::Entry => return "entry".into(),
        Reason::Attached => return "attached".into(),
        Reason::Reached => return "reached".into(),
        Reason::Exception { text } => format!("exception: {text}"),
        Reason::Watch { expression, .. } => format!("watch: {expression}"),
        Reason::Signal { name, .. } => format!("signal: {name}"),
        Reason::Other { text } => text.clone(),
    };
    cut(&told, NAME).0.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is kept tells the text again, as SQLite itself makes it.
    #[test]
    fn the_text_of_a_value_is_never_lost() {
        let connection = Connection::open_in_memory().unwrap();
        let texts = [
            "0",
            "-1",
            "007",
            "+5",
            "-0",
            "0x10",
            "97 'a'",
            "True",
            "1.5",
            "0.1",
            "-0.0",
            "0.0",
            "1.0",
            "1.50",
            "0.0001",
            "0.00001",
            "100000.25",
            "0.30000000000000004",
            "1e5",
            "123456789012.123",
            "1234567890123456.5",
            "9223372036854775808",
            "'a'",
            "[1, 2]",
            "",
            "3.",
            ".5",
            "0.001",
            "10.0",
            "99999999999999.9",
            "<unavailable>",
        ];
        for text in texts {
            let (value, beside) = cells(text);
            let made: String = connection
                .query_row("SELECT CAST(coalesce(?2, ?1) AS TEXT)", params![value, beside], |row| row.get(0))
                .unwrap();
            assert_eq!(made, text, "{value:?} {beside:?}");
        }
        // As many digits as are left to SQLite, wherever the point stands.
        let mut number = 1_u64;
        let mut statement = connection.prepare("SELECT CAST(coalesce(?2, ?1) AS TEXT)").unwrap();
        for _ in 0..20_000 {
            number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let digits = format!("{:012}", (number >> 20) % 1_000_000_000_000);
            let point = 1 + usize::try_from(number >> 60).unwrap() % 11;
            let text = format!("{}.{}", &digits[..point], &digits[point..]);
            let (value, beside) = cells(&text);
            let made: String = statement.query_row(params![value, beside], |row| row.get(0)).unwrap();
            assert_eq!(made, text, "{value:?} {beside:?}");
        }
        assert_eq!(cells("123.456789012").1, Cell::Null);
        assert_eq!(cells("12"), (Cell::Whole(12), Cell::Null));
        assert_eq!(cells("0.5"), (Cell::Real(0.5), Cell::Null));
        assert_eq!(cells("97 'a'"), (Cell::Whole(97), Cell::Text("97 'a'")));
    }
}
