//! The daemon's own log: one small file that turns over, because a daemon that is left alone must not fill a disk.
//!
//! It names commands, ids, durations and kinds of failure. What was asked and answered can hold anything a debuggee
//! holds, so that is written only with `BUGEYE_LOG=payloads`.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

const MAX_BYTES: u64 = 1024 * 1024;
const OLD_FILES: u32 = 2;
/// One line never fills the file by itself.
const MAX_LINE: usize = 64 * 1024;

static LOG: OnceLock<Mutex<Log>> = OnceLock::new();

#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    payloads: bool,
}

/// Opens the log; before this, lines go nowhere. A log that can't be written is no reason to stop working.
pub fn open(path: &Path) {
    let payloads = std::env::var_os("BUGEYE_LOG").is_some_and(|value| value == "payloads");
    let _ = LOG.set(Mutex::new(Log::new(path, payloads)));
}

#[must_use]
pub fn is_open() -> bool {
    LOG.get().is_some()
}

pub fn info(text: impl AsRef<str>) {
    write("info", text.as_ref());
}

pub fn warn(text: impl AsRef<str>) {
    write("warn", text.as_ref());
}

/// What was asked or answered; `text` is only called when the user wants it written.
pub fn payload(text: impl FnOnce() -> String) {
    let wanted = LOG.get().is_some_and(|log| log.lock().unwrap_or_else(PoisonError::into_inner).payloads);
    if wanted {
        write("data", &text());
    }
}

/// The newest lines of the log, oldest first.
#[must_use]
pub fn tail(path: &Path, lines: usize) -> Vec<String> {
    let mut all = std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
    if all.lines().count() < lines
        && let Ok(older) = std::fs::read(old_name(path, 1))
    {
        all.insert_str(0, &String::from_utf8_lossy(&older));
    }
    let skipped = all.lines().count().saturating_sub(lines);
    all.lines().skip(skipped).map(str::to_string).collect()
}

fn write(level: &str, text: &str) {
    if let Some(log) = LOG.get() {
        log.lock().unwrap_or_else(PoisonError::into_inner).write(level, text);
    }
}

/// Opens the file the way every writer of it must: appending, and readable by its owner alone.
pub fn append_to(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o600).open(path)
}

impl Log {
    fn new(path: &Path, payloads: bool) -> Self {
        let file = append_to(path).ok();
        let written = file.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |found| found.len());
        Self { path: path.to_path_buf(), file, written, payloads }
    }

    fn write(&mut self, level: &str, text: &str) {
        let text = crate::render::quoted(crate::render::cut(text, MAX_LINE).0);
        let line = format!("{} {level} {text}\n", timestamp(SystemTime::now()));
        if self.written > 0 && self.written + line.len() as u64 > MAX_BYTES {
            self.turn_over();
        }
        if let Some(file) = &mut self.file
            && file.write_all(line.as_bytes()).is_ok()
        {
            self.written += line.len() as u64;
        }
    }

    fn turn_over(&mut self) {
        for number in (1..OLD_FILES).rev() {
            let _ = std::fs::rename(old_name(&self.path, number), old_name(&self.path, number + 1));
        }
        let _ = std::fs::rename(&self.path, old_name(&self.path, 1));
        self.file = append_to(&self.path).ok();
        self.written = 0;
    }
}

fn old_name(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// `2025-01-31T08:05:09.123Z`.
fn timestamp(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// The date of a day counted from 1970-01-01. Years are counted from March so that the leap day is a year's last.
pub(crate) fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_written_in_utc() {
        let at = |seconds: u64| timestamp(UNIX_EPOCH + Duration::from_millis(seconds * 1000 + 7));
        assert_eq!(at(0), "1970-01-01T00:00:00.007Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.007Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_735_689_599), "2024-12-31T23:59:59.007Z");
        assert_eq!(at(1_740_787_200), "2025-03-01T00:00:00.007Z");
    }

    #[test]
    fn it_turns_over_and_keeps_two_old_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        let mut log = Log::new(&path, false);
        let text = "x".repeat(60_000);
        for _ in 0..80 {
            log.write("info", &text);
        }
        let mut names: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["daemon.log", "daemon.log.1", "daemon.log.2"]);
        for name in names {
            assert!(std::fs::metadata(dir.path().join(name)).unwrap().len() <= MAX_BYTES);
        }
    }

    #[test]
    fn a_line_stays_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        Log::new(&path, false).write("info", "a\nb\x1b[0m");
        let lines = tail(&path, 10);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].ends_with("info a\\nb\\u{1b}[0m"), "{}", lines[0]);
    }

    #[test]
    fn the_tail_reaches_into_the_older_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        std::fs::write(old_name(&path, 1), "a\nb\n").unwrap();
        std::fs::write(&path, "c\n").unwrap();
        assert_eq!(tail(&path, 2), ["b", "c"]);
        assert!(tail(&dir.path().join("none"), 5).is_empty());
    }
}
