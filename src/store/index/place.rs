//! What the index says of one place: which hits are meant, what their values went through, and how often each came.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::Path;
use std::time::Duration;

use super::ask::{Limits, Rows};
use super::expression::{Names, translate};
use super::schema::{SHIFT, column, range};
use super::{Cell, Index, Trouble};
use crate::failure::Failure;
use crate::model::UNAVAILABLE;
use crate::nearest::nearest;
use crate::trace::Course;

/// Hits up to this many are put in the order of time; of more, those of each trace stay together.
const SORTED: u64 = 50_000;
/// Texts of one name that are counted.
const TEXTS: usize = 100;
/// Names of values that are read.
const NAMES: usize = 60;
/// Places that are offered when the one asked for is not there.
const OFFERED: usize = 8;

/// What a hit has beside its values, with the SQL of it.
const COLUMNS: [(&str, &str); 11] = [
    ("session", "e.id"),
    ("seq", "coalesce(h.seq, s.seq)"),
    ("hit", "h.hit"),
    ("ts", "coalesce(h.ts, s.ts)"),
    ("micros", "h.micros"),
    ("thread", "h.thread"),
    ("place", "s.place"),
    ("asked", "s.asked"),
    ("function", "s.function"),
    ("path", "(SELECT path FROM _way WHERE _way.key = h.way)"),
    ("reason", "h.reason"),
];

/// The sessions that are asked about.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Of this project alone.
    pub project: Option<String>,
    /// One session, by its id.
    pub session: Option<String>,
}

impl Scope {
    fn sql(&self) -> String {
        match (&self.session, &self.project) {
            (Some(id), _) => format!("e.id = {}", literal(id)),
            (None, Some(project)) => format!("e.project = {}", literal(project)),
            (None, None) => "1".into(),
        }
    }
}

/// The same place in one session.
#[derive(Debug, Clone)]
struct Spot {
    key: i64,
    session: String,
    place: String,
    /// The place with all of its path.
    whole: String,
    asked: Option<String>,
    function: String,
    layout: i64,
    hits: u64,
    started: i64,
    seq: i64,
}

/// Hits that are meant.
#[derive(Debug)]
pub struct Chosen {
    spots: Vec<Spot>,
    /// In the order of the first layout, then of the others.
    pub names: Vec<String>,
    /// Where each layout has a name.
    positions: HashMap<String, Vec<(i64, i64)>>,
}

/// How a value went over the hits.
#[derive(Debug, Clone, Default)]
pub struct Went {
    pub course: Course,
    pub sum: f64,
    pub first: Option<f64>,
    pub last: Option<f64>,
    /// Texts that are no numbers, with how often each came.
    pub texts: BTreeMap<String, u64>,
    /// There were more texts than are counted.
    pub more: bool,
}

/// All hits that were meant, on the whole.
#[derive(Debug, Default)]
pub struct Overall {
    pub total: u64,
    pub sessions: u64,
    pub went: Vec<Went>,
    first: Vec<i64>,
    last: VecDeque<i64>,
}

/// A text within SQL.
#[must_use]
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\0', "").replace('\'', "''"))
}

impl Names for Chosen {
    fn sql(&self, name: &str) -> Option<String> {
        // What could not be read is nothing, and no text.
        let value = self.value(name, 'v').map(|sql| format!("nullif({sql}, {})", literal(UNAVAILABLE)));
        value.or_else(|| COLUMNS.iter().find(|(known, _)| *known == name).map(|(_, sql)| (*sql).to_string()))
    }

    fn number(&self, name: &str) -> Option<String> {
        let value = self.value(name, 'v').map(|sql| format!("CASE WHEN {sql} < '' THEN {sql} END"));
        value.or_else(|| self.sql(name))
    }

    fn all(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.positions.keys().map(String::as_str).collect();
        all.extend(COLUMNS.iter().map(|(name, _)| *name));
        all.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
        all
    }
}

impl Chosen {
    /// The value (`v`) of a name, or its text beside it (`t`), wherever a hit has it.
    fn value(&self, name: &str, kind: char) -> Option<String> {
        let positions = self.positions.get(name)?;
        let (_, first) = positions.first()?;
        let layouts = self.spots.iter().all(|spot| positions.iter().any(|(layout, _)| *layout == spot.layout));
        if layouts && positions.iter().all(|(_, position)| position == first) {
            return Some(column(*first, kind));
        }
        let each = |(layout, position): &(i64, i64)| format!(" WHEN {layout} THEN {}", column(*position, kind));
        Some(format!("CASE s.layout{} END", positions.iter().map(each).collect::<String>()))
    }

    fn text(&self, name: &str) -> String {
        match (self.value(name, 't'), self.value(name, 'v')) {
            (Some(text), Some(value)) => format!("CAST(coalesce({text}, {value}) AS TEXT)"),
            _ => "NULL".into(),
        }
    }

    /// A condition as SQL; without one all hits are meant.
    pub fn filter(&self, text: Option<&str>) -> Result<String, Failure> {
        text.map_or_else(|| Ok("1".into()), |text| translate(text, self).map(|sql| format!("({sql})")))
    }

    /// A name that is known here, as it is shown.
    pub fn named(&self, name: &str) -> Result<String, Failure> {
        if self.positions.contains_key(name) {
            return Ok(self.text(name));
        }
        translate(&format!("\"{}\"", name.replace('"', "\"\"")), self)
    }

    /// Where it is, as the records call it.
    #[must_use]
    pub fn places(&self) -> Vec<(String, String)> {
        let mut places: Vec<(String, String)> = Vec::new();
        for spot in &self.spots {
            let place = (spot.place.clone(), spot.function.clone());
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    fn from(&self, spots: &[Spot]) -> String {
        let keys: Vec<String> = spots.iter().map(|spot| spot.key.to_string()).collect();
        let range = range("s", "h");
        format!(
            "FROM _spot s CROSS JOIN _session e ON e.key = s.session CROSS JOIN _hit h ON {range} WHERE s.key IN ({})",
            keys.join(", ")
        )
    }
}

impl Index {
    /// The places that were reached, those with the newest sessions first.
    pub fn places(&self, scope: &Scope, most: usize) -> Result<Rows, Trouble> {
        let scope = scope.sql();
        let sql = format!(
            "SELECT s.place AS place, min(s.function) AS function, sum(s.hits) AS hits, count(DISTINCT s.session) AS sessions,
             max(e.id) AS newest FROM _spot s JOIN _session e ON e.key = s.session WHERE {scope} AND s.hits > 0
             GROUP BY s.place ORDER BY max(e.started) DESC, 3 DESC, 1"
        );
        self.ask(&sql, Limits { rows: most, ..Limits::default() })
    }

    /// The hits of a place: by its key, as it was asked for, by the end of its path, or by its function. `keys` are
    /// what the place may be called in the project.
    pub fn chosen(&self, scope: &Scope, asked: &str, keys: &[String]) -> Result<Chosen, Trouble> {
        let within = scope.sql();
        let sql = format!(
            "SELECT s.key, e.id, s.place, s.asked, s.function, s.layout, s.hits, e.started, coalesce(s.seq, 0),
             e.project FROM _spot s JOIN _session e ON e.key = s.session WHERE {within} AND s.hits > 0 ORDER BY e.started, e.id, s.seq, s.key"
        );
        let mut all = Vec::new();
        self.each(&[sql], Duration::from_secs(5), |row| {
            let [key, session, place, asked, function, layout, hits, started, seq, project] = row else { return false };
            all.push(Spot {
                key: key.whole(),
                session: session.text().into(),
                place: place.text().into(),
                whole: Path::new(project.text()).join(place.text()).to_string_lossy().into_owned(),
                asked: (*asked != Cell::Null).then(|| asked.text().into()),
                function: function.text().into(),
                layout: layout.whole(),
                hits: hits.whole().cast_unsigned(),
                started: started.whole(),
                seq: seq.whole(),
            });
            true
        })?;
        let spots = pick(all, asked, keys)?;
        let mut layouts: Vec<i64> = Vec::new();
        for spot in &spots {
            if !layouts.contains(&spot.layout) {
                layouts.push(spot.layout);
            }
        }
        let list: Vec<String> = layouts.iter().map(ToString::to_string).collect();
        let sql = format!("SELECT layout, position, name FROM _name WHERE layout IN ({})", list.join(", "));
        let mut found: Vec<(i64, i64, String)> = Vec::new();
        self.each(&[sql], Duration::from_secs(5), |row| {
            found.push((row[0].whole(), row[1].whole(), row[2].text().into()));
            true
        })?;
        found.sort_by_key(|(layout, position, _)| (layouts.iter().position(|known| known == layout), *position));
        let mut chosen = Chosen { spots, names: Vec::new(), positions: HashMap::new() };
        for (layout, position, name) in found {
            let places = chosen.positions.entry(name.clone()).or_default();
            if places.is_empty() {
                chosen.names.push(name);
            }
            if !places.iter().any(|(known, _)| *known == layout) {
                places.push((layout, position));
            }
        }
        chosen.names.truncate(NAMES);
        Ok(chosen)
    }

    /// Reads all hits that are meant, in order; the first and the last so many are kept.
    pub fn read(
        &self,
        chosen: &Chosen,
        filter: &str,
        ends: (usize, usize),
        time: Duration,
    ) -> Result<Overall, Trouble> {
        let values: String =
            chosen.names.iter().filter_map(|name| chosen.value(name, 'v')).map(|sql| format!(", {sql}")).collect();
        let select = |spots: &[Spot]| format!("SELECT h.id{values} {} AND {filter}", chosen.from(spots));
        let hits: u64 = chosen.spots.iter().map(|spot| spot.hits).sum();
        let questions: Vec<String> = if hits <= SORTED {
            vec![format!("{} ORDER BY e.started, e.id, coalesce(h.seq, s.seq), h.hit", select(&chosen.spots))]
        } else {
            let mut spots = chosen.spots.clone();
            spots.sort_by(|a, b| (a.started, &a.session, a.seq, a.key).cmp(&(b.started, &b.session, b.seq, b.key)));
            spots.chunks(1).map(select).collect()
        };
        let mut over =
            Overall { went: chosen.names.iter().map(|name| Went::new(name)).collect(), ..Overall::default() };
        let mut seen: HashSet<&str> = HashSet::new();
        let session: HashMap<i64, &str> = chosen.spots.iter().map(|spot| (spot.key, spot.session.as_str())).collect();
        let mut before = 0;
        self.each(&questions, time, |row| {
            let id = row[0].whole();
            over.total += 1;
            if id >> SHIFT != before {
                before = id >> SHIFT;
                seen.extend(session.get(&before));
            }
            if over.first.len() < ends.0 {
                over.first.push(id);
            } else {
                if over.last.len() == ends.1 {
                    over.last.pop_front();
                }
                over.last.push_back(id);
            }
            for (went, cell) in over.went.iter_mut().zip(&row[1..]) {
                went.take(*cell);
            }
            true
        })?;
        over.sessions = seen.len() as u64;
        Ok(over)
    }

    /// The hits at both ends of what was read, in order, with the texts of their values.
    pub fn ends(&self, chosen: &Chosen, over: &Overall) -> Result<Rows, Trouble> {
        let ids: Vec<i64> = over.first.iter().chain(&over.last).copied().collect();
        let list: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let sql = format!("{} AND h.id IN ({})", rows(chosen), list.join(", "));
        let limits = Limits { rows: ids.len(), time: Duration::from_secs(30), ..Limits::default() };
        let mut found = self.ask(&sql, limits)?;
        let at = |row: &Vec<serde_json::Value>| ids.iter().position(|id| row[0].as_i64() == Some(*id));
        found.rows.sort_by_key(at);
        Ok(found)
    }

    /// All hits that are meant, in order, as far as the limits go.
    pub fn rows(&self, chosen: &Chosen, filter: &str, limits: Limits) -> Result<Rows, Trouble> {
        let order = "ORDER BY e.started, e.id, coalesce(h.seq, s.seq), h.hit";
        self.ask(&format!("{} AND {filter} {order} LIMIT {}", rows(chosen), limits.rows + 1), limits)
    }

    /// How often each value of a name came, by the value or by how often.
    pub fn groups(&self, chosen: &Chosen, filter: &str, by: (&str, bool), limits: Limits) -> Result<Rows, Trouble> {
        let (name, most_first) = by;
        let text = chosen.named(name)?;
        let value = chosen.sql(name).unwrap_or_else(|| text.clone());
        let order = if most_first { "2 DESC, min(sorted)" } else { "min(sorted), 1" };
        let from = chosen.from(&chosen.spots);
        let sql = format!(
            "SELECT shown AS {}, count(*) AS hits, count(DISTINCT session) AS sessions FROM
             (SELECT {text} AS shown, {value} AS sorted, s.session AS session {from} AND {filter}) GROUP BY 1 ORDER BY {order}",
            quoted(name)
        );
        self.ask(&sql, limits)
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\0', "").replace('"', "\"\""))
}

/// Hits with what they have, and the texts of their values.
fn rows(chosen: &Chosen) -> String {
    let columns: String = COLUMNS.iter().map(|(name, sql)| format!(", {sql} AS {name}")).collect();
    let values: String =
        chosen.names.iter().map(|name| format!(", {} AS {}", chosen.text(name), quoted(name))).collect();
    format!("SELECT h.id AS id{columns}{values} {}", chosen.from(&chosen.spots))
}

/// How many of a row's columns are not values.
pub const BESIDE: usize = COLUMNS.len() + 1;

impl Went {
    fn new(name: &str) -> Self {
        Self { course: Course::new(name), ..Self::default() }
    }

    fn take(&mut self, cell: Cell<'_>) {
        let number = match cell {
            Cell::Null => return,
            Cell::Whole(number) => number as f64,
            Cell::Real(number) => number,
            Cell::Text(text) => {
                if let Some(count) = self.texts.get_mut(text) {
                    *count += 1;
                } else if self.texts.len() < TEXTS {
                    self.texts.insert(text.into(), 1);
                } else {
                    self.more = true;
                }
                return;
            }
        };
        self.course.number(number);
        self.sum += number;
        self.first = self.first.or(Some(number));
        self.last = Some(number);
    }
}

/// The spots that a place means.
fn pick(all: Vec<Spot>, asked: &str, keys: &[String]) -> Result<Vec<Spot>, Failure> {
    let end = format!("/{asked}");
    let tail = |function: &str| function.rsplit(['.', ':']).next() == Some(asked);
    let is_asked = |spot: &Spot| spot.asked.as_deref() == Some(asked);
    let ways: [&dyn Fn(&Spot) -> bool; 4] = [
        &|spot| spot.place == asked || keys.contains(&spot.place) || keys.contains(&spot.whole),
        &is_asked,
        &|spot| spot.whole.ends_with(&end),
        &|spot| spot.function == asked || tail(&spot.function),
    ];
    for (number, way) in ways.iter().enumerate() {
        let mut places: Vec<&str> = all.iter().filter(|spot| way(spot)).map(|spot| spot.place.as_str()).collect();
        places.sort_unstable();
        places.dedup();
        if places.len() > 1 && number == 2 {
            let failure = Failure::usage(format!("`{asked}` may be any of {} places", places.len()));
            return Err(places.iter().take(OFFERED).fold(failure, |failure, place| failure.hint(*place)));
        }
        if places.is_empty() {
            continue;
        }
        // A function is many lines: only those hits that are in it.
        let places: Vec<String> = if number == 3 { Vec::new() } else { places.into_iter().map(String::from).collect() };
        return Ok(all
            .into_iter()
            .filter(|spot| way(spot) || is_asked(spot) || places.contains(&spot.place))
            .collect());
    }
    let mut known: Vec<&str> = all.iter().flat_map(|spot| [spot.place.as_str(), spot.function.as_str()]).collect();
    known.sort_unstable();
    known.dedup();
    let failure = Failure::not_found(format!("nothing was recorded at `{asked}`"));
    let near = nearest(asked, known).map(|near| format!("did you mean `{near}`?"));
    let failure = near.into_iter().fold(failure, Failure::hint);
    let failure = failure.hint("where something was: bugeye hits");
    Err(if all.is_empty() { failure.hint("of all projects: --all-projects") } else { failure })
}
