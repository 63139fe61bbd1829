//! Questions to the index: read-only whatever they say, and bounded in rows, bytes, memory and time.

use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{Cell, Index, Trouble, schema};
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::render::cut;

/// Bytes that one value may have on the way, and in an answer.
const VALUE: i32 = 8 * 1024 * 1024;
const CELL: usize = 16 * 1024;
/// Memory of all that a question needs.
const MEMORY: i64 = 512 * 1024 * 1024;
/// How many steps of SQLite's machine are made between two looks at the clock.
const STEPS: i32 = 10_000;

/// How much a question may cost.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub rows: usize,
    pub bytes: usize,
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 200, bytes: 1024 * 1024, time: Duration::from_secs(5) }
    }
}

/// What was found. Texts may be debuggee text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rows {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Json>>,
    /// There are more rows than these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

impl Index {
    /// A connection that can't change anything.
    fn reader(&self, time: Duration) -> Result<Connection, Trouble> {
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(time.min(Duration::from_secs(5)))?;
        // Much is sorted faster in small pieces, which the size of the cache decides.
        connection.execute_batch(&format!(
            "PRAGMA query_only = 1; PRAGMA trusted_schema = 0; PRAGMA cache_size = -2000;
             PRAGMA mmap_size = 1073741824; PRAGMA hard_heap_limit = {MEMORY};"
        ))?;
        for (limit, most) in [
            (Limit::SQLITE_LIMIT_LENGTH, VALUE),
            (Limit::SQLITE_LIMIT_SQL_LENGTH, 1_000_000),
            (Limit::SQLITE_LIMIT_ATTACHED, 0),
            (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200),
            (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
        ] {
            connection.set_limit(limit, most)?;
        }
        connection.authorizer(Some(|context: AuthContext<'_>| allowed(&context.action)))?;
        let deadline = Instant::now() + time;
        connection.progress_handler(STEPS, Some(move || Instant::now() > deadline))?;
        Ok(connection)
    }

    /// Asks one question.
    pub fn ask(&self, sql: &str, limits: Limits) -> Result<Rows, Trouble> {
        let connection = self.reader(limits.time)?;
        answer(&connection, sql, limits).map_err(|error| complaint(&connection, error, limits))
    }

    /// Asks several, and hands on each row, however many there are; ends when `take` answers false.
    pub fn each(
        &self,
        questions: &[String],
        time: Duration,
        mut take: impl FnMut(&[Cell<'_>]) -> bool,
    ) -> Result<(), Trouble> {
        let connection = self.reader(time)?;
        let mut go = || {
            for sql in questions {
                let mut statement = connection.prepare(sql)?;
                let count = statement.column_count();
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    let mut cells = Vec::with_capacity(count);
                    for at in 0..count {
                        cells.push(match row.get_ref(at)? {
                            ValueRef::Integer(number) => Cell::Whole(number),
                            ValueRef::Real(number) => Cell::Real(number),
                            ValueRef::Text(bytes) => std::str::from_utf8(bytes).map_or(Cell::Null, Cell::Text),
                            ValueRef::Null | ValueRef::Blob(_) => Cell::Null,
                        });
                    }
                    if !take(&cells) {
                        return Ok(());
                    }
                }
            }
            Ok(())
        };
        go().map_err(|error| complaint(&connection, error, Limits { time, ..Limits::default() }))
    }
}

fn answer(connection: &Connection, sql: &str, limits: Limits) -> rusqlite::Result<Rows> {
    let mut statement = connection.prepare(sql)?;
    let columns: Vec<String> = statement.column_names().iter().map(|name| cut(name, 200).0.to_string()).collect();
    let mut found = Rows { columns, ..Rows::default() };
    let count = found.columns.len();
    let mut bytes = 0;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if found.rows.len() == limits.rows {
            found.more = true;
            break;
        }
        let cells = (0..count).map(|at| row.get_ref(at).map(cell)).collect::<rusqlite::Result<Vec<Json>>>()?;
        bytes += cells.iter().map(size).sum::<usize>();
        if bytes > limits.bytes {
            found.more = true;
            break;
        }
        found.rows.push(cells);
    }
    Ok(found)
}

fn cell(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => serde_json::Number::from_f64(number).map_or(Json::Null, Json::Number),
        ValueRef::Text(bytes) => shortened(&String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => {
            let hex: String = bytes.iter().take(CELL / 2).map(|byte| format!("{byte:02x}")).collect();
            shortened(&format!("x'{hex}'"))
        }
    }
}

fn shortened(text: &str) -> Json {
    match cut(text, CELL) {
        (text, 0) => text.into(),
        (head, more) => format!("{head}… ({more} more)").into(),
    }
}

fn size(value: &Json) -> usize {
    value.as_str().map_or(8, |text| text.len() + 2)
}

/// Reading, and nothing else.
fn allowed(action: &AuthAction<'_>) -> Authorization {
    match action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => Authorization::Allow,
        AuthAction::Function { function_name }
            if !["load_extension", "fts3_tokenizer", "edit", "readfile", "writefile"].contains(function_name) =>
        {
            Authorization::Allow
        }
        // Those that tell columns; with a value for a name they set nothing.
        AuthAction::Pragma { pragma_name, .. } if ["table_info", "table_xinfo", "table_list"].contains(pragma_name) => {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

/// What went wrong with a question, in words that help to put it right.
fn complaint(connection: &Connection, error: rusqlite::Error, limits: Limits) -> Trouble {
    let message = match &error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => {
            let seconds = limits.time.as_secs_f64();
            return Failure::timed_out(format!("the question took longer than {seconds} s"))
                .hint("ask for less (WHERE, LIMIT), or give it more time: --timeout 60s")
                .into();
        }
        Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => {
            return Failure::refused(format!("the index can only be read: {message}"))
                .hint("write a SELECT; what there is: bugeye query --schema")
                .into();
        }
        _ if message.starts_with("not authorized") || message.starts_with("cannot modify") => {
            return Failure::refused(format!("the index can only be read: {message}"))
                .hint("what there is: bugeye query --schema")
                .into();
        }
        Some(ErrorCode::OutOfMemory | ErrorCode::TooBig) => {
            return Failure::refused(format!("the question needs too much memory: {message}"))
                .hint("ask for less: WHERE, LIMIT, fewer groups")
                .into();
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => return error.into(),
        _ => {}
    }
    let failure = match &error {
        rusqlite::Error::MultipleStatement => Failure::usage("one question at a time"),
        _ => Failure::usage(format!("SQLite says: {message}")),
    };
    hinted(connection, failure, &message).into()
}

fn hinted(connection: &Connection, failure: Failure, message: &str) -> Failure {
    let names = schema::TABLES.map(|table| table.name);
    if let Some(name) = message.strip_prefix("no such table: ") {
        let near = nearest(name, names).map(|near| format!("did you mean `{near}`?"));
        let failure = near.into_iter().fold(failure, Failure::hint);
        return failure.hint(format!("tables: {}; their columns: bugeye query --schema", names.join(", ")));
    }
    if let Some(name) = message.strip_prefix("no such column: ") {
        let name = name.split(" - ").next().unwrap_or(name);
        let name = name.rsplit('.').next().unwrap_or(name);
        let columns = schema::TABLES.iter().flat_map(|table| table.columns.iter().map(|(column, _)| *column));
        let near = nearest(name, columns).map(|near| format!("did you mean `{near}`?"));
        let mut failure = near.into_iter().fold(failure, Failure::hint);
        let find = "SELECT 1 FROM _name WHERE name = ?1 LIMIT 1";
        if connection.query_row(find, [name], |_| Ok(())).is_ok() {
            failure = failure.hint(format!(
                "`{name}` is a value: SELECT number FROM \"values\" WHERE name = '{name}', or bugeye hits PLACE --where '{name} > 0'"
            ));
        }
        for table in schema::TABLES {
            let columns: Vec<&str> = table.columns.iter().map(|(column, _)| *column).collect();
            failure = failure.hint(format!("{}: {}", table.name, columns.join(", ")));
        }
        return failure;
    }
    if message.contains("near \"values\"") || message.contains("near \"VALUES\"") {
        return failure.hint("write \"values\" in double quotes: it is a word of SQL");
    }
    failure.hint("what there is: bugeye query --schema")
}
