//! The tables of the index: what is stored, and the views that questions are put to.
//!
//! A hit is one row, its first values are columns of it. What all hits of a place in a session share is a spot, and the
//! upper half of a hit's id is its spot's: a place is a range of ids, and needs no index of its own. A value is kept as
//! the number that it is worth, if any, else as text; its text is kept beside a number only where it can't be made from
//! it again. Numbers come before texts, so `value < ''` tells them apart.

/// Values of a hit that are columns of its row; the rest are rows of their own.
pub const COLUMNS: usize = 6;

/// Kept in the file; one of another version is made anew.
pub const VERSION: i64 = 3;

/// Bits of a hit's id below its spot.
pub const SHIFT: u32 = 32;

/// A view that questions are put to.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    pub name: &'static str,
    pub about: &'static str,
    /// Names, each with what it is.
    pub columns: &'static [(&'static str, &'static str)],
}

/// What there is to ask.
pub const TABLES: [Table; 5] = [
    Table {
        name: "sessions",
        about: "a session each",
        columns: &[
            ("id", "the record's name"),
            ("alias", "s1, as it was called while it was live"),
            ("name", "as it was given"),
            ("command", "the program and its arguments"),
            ("cwd", "where"),
            ("project", "its root folder"),
            ("adapter", "which debugger"),
            ("who", "who started it"),
            ("started", "ms since 1970"),
            ("ended", "ms since 1970"),
            ("ending", "exited, signalled, detached, stopped, lost"),
            ("code", "exit code"),
            ("signal", "that ended it"),
            ("hits", "how many"),
        ],
    },
    Table {
        name: "hits",
        about: "a time that a place was reached, by a stop or in a trace",
        columns: &[
            ("id", "the same in \"values\""),
            ("session", "its id"),
            ("seq", "the event that tells it: the stop or the trace"),
            ("hit", "its number in the trace; 0 for a stop"),
            ("ts", "ms since 1970, of that event"),
            ("micros", "on a clock of the trace"),
            ("thread", "its number"),
            ("place", "file:line in the project"),
            ("asked", "the place as it was asked for"),
            ("function", "where it is"),
            ("path", "functions, innermost first"),
            ("reason", "why it stopped; null in a trace"),
            ("vals", "all its values as JSON (slow for very many)"),
        ],
    },
    Table {
        name: "values",
        about: "an expression or local of a hit each; the name is written in double quotes",
        columns: &[
            ("id", "of the hit"),
            ("session", "its id"),
            ("seq", "as in hits"),
            ("hit", "as in hits"),
            ("place", "file:line in the project"),
            ("function", "where it is"),
            ("name", "the expression"),
            ("value", "its text"),
            ("number", "what it is worth, if it is a number"),
        ],
    },
    Table {
        name: "events",
        about: "an event of a record each",
        columns: &[
            ("session", "its id"),
            ("seq", "counts from 1"),
            ("ts", "ms since 1970"),
            ("type", "as in `bugeye events`"),
            ("thread", "its number"),
            ("data", "JSON; what is long is left out and named in `cut`"),
        ],
    },
    Table {
        name: "output",
        about: "a piece of output each",
        columns: &[
            ("session", "its id"),
            ("seq", "of the event"),
            ("stream", "stdout, stderr, …"),
            ("text", "what was printed"),
        ],
    },
];

/// Questions to begin with.
pub const EXAMPLES: [&str; 2] = [
    r#"SELECT place, count(*), avg(number), max(number) FROM "values" WHERE name = 'sum' GROUP BY place"#,
    "SELECT id, command, ending, code, hits FROM sessions ORDER BY started DESC LIMIT 10",
];

/// About how large tables are, for whoever plans a question: many hits, few of all that they are found by. Counting them
/// would cost more than it tells.
const STATISTICS: &str = "DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1(tbl, idx, stat) VALUES ('_hit', NULL, '10000000'), ('_spot', '_spot_session', '200 4'),
    ('_session', 'sqlite_autoindex__session_1', '50 1'), ('_name', '_name', '40 4 1'),
    ('_layout', 'sqlite_autoindex__layout_1', '10 1'), ('_way', 'sqlite_autoindex__way_1', '100 1'),
    ('_event', '_event', '10000 100 1'), ('_output', '_output', '1000 20 1'), ('_trace', '_trace', '50 2 1'),
    ('_told', '_told', '100 2 2 1'), ('_more', '_more', '10000 2 1');";

/// Everything, for an empty file.
#[must_use]
pub fn create() -> String {
    let values: String = (1..=COLUMNS).map(|n| format!(", v{n}")).collect();
    let texts: String = (1..=COLUMNS).map(|n| format!(", t{n}")).collect();
    let (value, text) = (case("n.position", 'v'), case("n.position", 't'));
    let range = range("s", "h");
    format!(
        r#"
CREATE TABLE _session(key INTEGER PRIMARY KEY, id TEXT UNIQUE NOT NULL, alias TEXT, name TEXT, command TEXT, cwd TEXT,
    project TEXT, adapter TEXT, who TEXT, started INTEGER, ended INTEGER, ending TEXT, code INTEGER, signal TEXT,
    inode INTEGER, head INTEGER, bytes INTEGER NOT NULL);
CREATE TABLE _trace(session INTEGER, seq INTEGER, ts INTEGER, data TEXT, file TEXT, bytes INTEGER, hits INTEGER,
    PRIMARY KEY(session, seq)) WITHOUT ROWID;
CREATE TABLE _told(session INTEGER, seq INTEGER, bytes INTEGER, line TEXT, PRIMARY KEY(session, seq, bytes)) WITHOUT ROWID;
CREATE TABLE _layout(key INTEGER PRIMARY KEY, names TEXT UNIQUE NOT NULL);
CREATE TABLE _name(layout INTEGER, position INTEGER, name TEXT, PRIMARY KEY(layout, position)) WITHOUT ROWID;
CREATE TABLE _way(key INTEGER PRIMARY KEY, path TEXT UNIQUE NOT NULL);
CREATE TABLE _spot(key INTEGER PRIMARY KEY, session INTEGER, seq INTEGER, ts INTEGER, place TEXT, asked TEXT,
    function TEXT, layout INTEGER, hits INTEGER NOT NULL);
CREATE INDEX _spot_session ON _spot(session);
CREATE TABLE _hit(id INTEGER PRIMARY KEY, hit, micros, thread, way, seq, ts, reason{values}{texts});
CREATE TABLE _more(id INTEGER, position INTEGER, v, t, PRIMARY KEY(id, position)) WITHOUT ROWID;
CREATE TABLE _event(session INTEGER, seq INTEGER, ts INTEGER, type TEXT, thread INTEGER, data TEXT,
    PRIMARY KEY(session, seq)) WITHOUT ROWID;
CREATE TABLE _output(session INTEGER, seq INTEGER, stream TEXT, text TEXT, PRIMARY KEY(session, seq)) WITHOUT ROWID;

CREATE VIEW sessions AS SELECT id, alias, name, command, cwd, project, adapter, who, started, ended, ending, code, signal,
    (SELECT coalesce(sum(hits), 0) FROM _spot WHERE _spot.session = _session.key) AS hits FROM _session;
CREATE VIEW "values" AS SELECT h.id AS id, e.id AS session, coalesce(h.seq, s.seq) AS seq, h.hit AS hit,
    s.place AS place, s.function AS function, n.name AS name,
    CAST(coalesce({text}, {value}) AS TEXT) AS value,
    CASE WHEN {value} < '' THEN {value} END AS number
    FROM _name n JOIN _spot s ON s.layout = n.layout JOIN _session e ON e.key = s.session JOIN _hit h ON {range};
CREATE VIEW hits AS SELECT h.id AS id, e.id AS session, coalesce(h.seq, s.seq) AS seq, h.hit AS hit,
    coalesce(h.ts, s.ts) AS ts, h.micros AS micros, h.thread AS thread, s.place AS place, s.asked AS asked,
    s.function AS function, (SELECT path FROM _way WHERE _way.key = h.way) AS path, h.reason AS reason,
    (SELECT json_group_object(n.name, CAST(coalesce({text}, {value}) AS TEXT)) FROM _name n WHERE n.layout = s.layout) AS vals
    FROM _hit h JOIN _spot s ON {range} JOIN _session e ON e.key = s.session;
CREATE VIEW events AS SELECT s.id AS session, e.seq AS seq, e.ts AS ts, e.type AS type, e.thread AS thread, e.data AS data
    FROM _event e JOIN _session s ON s.key = e.session;
CREATE VIEW output AS SELECT s.id AS session, o.seq AS seq, o.stream AS stream, o.text AS text
    FROM _output o JOIN _session s ON s.key = o.session;
ANALYZE;
{STATISTICS}
PRAGMA user_version = {VERSION};
"#
    )
}

/// What ties a hit to its spot, from either side.
#[must_use]
pub fn range(spot: &str, hit: &str) -> String {
    format!(
        "{spot}.key = {hit}.id >> {SHIFT} AND {hit}.id BETWEEN {spot}.key << {SHIFT} AND ({spot}.key << {SHIFT}) + 4294967295"
    )
}

/// The value (`v`) or text (`t`) at a position of a hit `h`.
fn case(position: &str, kind: char) -> String {
    let columns: String = (1..=COLUMNS).map(|n| format!(" WHEN {n} THEN h.{kind}{n}")).collect();
    let more = format!("(SELECT {kind} FROM _more WHERE _more.id = h.id AND _more.position = {position})");
    format!("CASE {position}{columns} ELSE {more} END")
}

/// The value or text at a position that is known.
#[must_use]
pub fn column(position: i64, kind: char) -> String {
    match usize::try_from(position) {
        Ok(at) if (1..=COLUMNS).contains(&at) => format!("h.{kind}{at}"),
        _ => format!("(SELECT {kind} FROM _more WHERE _more.id = h.id AND _more.position = {position})"),
    }
}
