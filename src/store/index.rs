//! The index: what all records say, as tables that can be asked in SQL.
//!
//! It is derived, and never the only place of anything: whoever needs it brings it up to date first, from where each
//! record was read to the last time, and one that is missing, broken or of another version is made anew. SQLite is used
//! below this module alone.

pub mod ask;
pub mod expression;
mod fill;
pub mod place;
pub mod schema;
mod spots;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql};
use rustix::fs::{FlockOperation, flock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// How long another process is waited for that brings it up to date, or makes it anew.
const WAIT: Duration = Duration::from_secs(5);
/// The file of the index, in the state directory.
const NAME: &str = "index.sqlite";

/// What was read to bring the index up to date.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Caught {
    /// Records that had news.
    pub sessions: u64,
    pub events: u64,
    pub hits: u64,
    /// Bytes of their files.
    pub bytes: u64,
    pub seconds: f64,
    /// It had to be made anew, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rebuilt: Option<String>,
    /// Another process was at it for so long that what it had not reached is missing here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub behind: bool,
}

/// What can go wrong with the index.
#[derive(Debug)]
pub enum Trouble {
    /// It can't be used as it is: it is made anew.
    Broken(String),
    Told(Failure),
    Sql(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Broken(error.to_string()),
            _ => Self::Sql(error),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Told(failure)
    }
}

impl Trouble {
    /// Of a statement of our own: what is wrong with it is wrong with the file.
    fn own(error: rusqlite::Error) -> Self {
        let environment = [
            ErrorCode::DatabaseBusy,
            ErrorCode::DatabaseLocked,
            ErrorCode::DiskFull,
            ErrorCode::ReadOnly,
            ErrorCode::CannotOpen,
            ErrorCode::SystemIoFailure,
            ErrorCode::OutOfMemory,
            ErrorCode::PermissionDenied,
            ErrorCode::OperationInterrupted,
        ];
        match error.sqlite_error_code() {
            Some(code) if environment.contains(&code) => Self::Sql(error),
            _ => Self::Broken(error.to_string()),
        }
    }

    fn told(self, path: &Path) -> Failure {
        let about = format!("the index {} can't be used", path.display());
        match self {
            Self::Told(failure) => failure,
            Self::Broken(why) => {
                Failure::refused(format!("{about}: {why}")).hint("it can be removed: it is made anew from the records")
            }
            Self::Sql(error) => Failure::refused(format!("{about}: {error}")),
        }
    }
}

/// A value as a column has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    Null,
    Whole(i64),
    Real(f64),
    Text(&'a str),
}

impl<'a> Cell<'a> {
    const fn whole(self) -> i64 {
        if let Self::Whole(number) = self { number } else { 0 }
    }

    const fn text(self) -> &'a str {
        if let Self::Text(text) = self { text } else { "" }
    }
}

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Whole(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

/// The index of a state directory.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    path: PathBuf,
}

/// Brings the index up to date and asks it something; where it turns out to be broken it is made anew, once.
pub fn asked<T>(state: &Path, ask: impl Fn(&Index) -> Result<T, Trouble>) -> Result<(T, Caught), Failure> {
    let path = state.join(NAME);
    let lock = Lock::take(state)?;
    let mut rebuilt = None;
    loop {
        let inode = fs::metadata(&path).map(|data| data.ino()).ok();
        let result = Index::opened(&path).and_then(|mut index| {
            let caught = index.catch_up(state)?;
            Ok((ask(&index)?, caught))
        });
        match result {
            Err(Trouble::Broken(why)) if rebuilt.is_none() => {
                lock.remove(&path, inode)?;
                rebuilt = Some(why);
            }
            Ok((answer, caught)) => return Ok((answer, Caught { rebuilt, ..caught })),
            Err(trouble) => return Err(trouble.told(&path)),
        }
    }
}

impl Index {
    /// Opens it; another process may be making it at this moment, which SQLite does not always wait for.
    fn opened(path: &Path) -> Result<Self, Trouble> {
        let deadline = Instant::now() + WAIT;
        loop {
            match Self::open(path) {
                Err(Trouble::Sql(error)) if is_busy(&error) && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                other => return other,
            }
        }
    }

    fn open(path: &Path) -> Result<Self, Trouble> {
        let failed = |error: io::Error| Failure::io(format!("open the index {}", path.display()), &error);
        // SQLite gives the files beside it the mode of this one.
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).map_err(failed)?;
        file.set_permissions(fs::Permissions::from_mode(0o600)).map_err(failed)?;
        drop(file);
        let flags =
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(WAIT)?;
        connection
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -65536;")?;
        let index = Self { connection, path: path.to_path_buf() };
        match index.version()? {
            0 => index.create()?,
            schema::VERSION => {}
            other => return Err(Trouble::Broken(format!("it is of version {other}, not {}", schema::VERSION))),
        }
        Ok(index)
    }

    fn version(&self) -> Result<i64, Trouble> {
        Ok(self.connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
    }

    fn create(&self) -> Result<(), Trouble> {
        self.connection.execute_batch("BEGIN IMMEDIATE")?;
        // Another may have been faster.
        if self.version()? == 0 {
            self.connection.execute_batch(&schema::create()).map_err(Trouble::own)?;
        }
        self.connection.execute_batch("COMMIT")?;
        Ok(())
    }

    /// Reads what is new in the records.
    fn catch_up(&mut self, state: &Path) -> Result<Caught, Trouble> {
        let began = Instant::now();
        let mut caught = Caught::default();
        match fill::fill(&self.connection, state, &mut caught) {
            Err(error) if is_busy(&error) => caught.behind = true,
            other => other.map_err(Trouble::own)?,
        }
        caught.seconds = began.elapsed().as_secs_f64();
        Ok(caught)
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
}

/// Held by whoever uses the index, alone by whoever removes it: a file of SQLite must not go while it is in use.
#[derive(Debug)]
struct Lock(File);

impl Lock {
    fn take(state: &Path) -> Result<Self, Failure> {
        let path = state.join("index.lock");
        let mut options = OpenOptions::new();
        let opened = options.write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = Self(opened.map_err(|error| Failure::io(format!("open {}", path.display()), &error))?);
        lock.wait(FlockOperation::NonBlockingLockShared)?;
        Ok(lock)
    }

    fn wait(&self, operation: FlockOperation) -> Result<(), Failure> {
        let deadline = Instant::now() + WAIT;
        while let Err(error) = flock(&self.0, operation) {
            if Instant::now() > deadline {
                return Err(Failure::timed_out("another process keeps the index").cause(error).hint("try again"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Removes the index, if it is still the one that was found wanting.
    fn remove(&self, path: &Path, inode: Option<u64>) -> Result<(), Failure> {
        self.wait(FlockOperation::NonBlockingLockExclusive)?;
        if fs::metadata(path).map(|data| data.ino()).ok() == inode {
            for end in ["", "-wal", "-shm", "-journal"] {
                let file = path.with_file_name(format!("{NAME}{end}"));
                match fs::remove_file(&file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Failure::io(format!("remove {}", file.display()), &error));
                    }
                    _ => {}
                }
            }
        }
        self.wait(FlockOperation::NonBlockingLockShared)
    }
}
