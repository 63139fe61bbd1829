//! `replay`: a record shown again, as fast as it can be read or as fast as it happened.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::events::{on_interrupt, patterns};
use super::lines::{around, context_of};
use super::report::{Report, parse_seconds};
use super::{Bare, Group, event_line};
use crate::agent::alias;
use crate::cli::LocalContext;
use crate::client::records::Known;
use crate::failure::Failure;
use crate::model::{Event, SessionState, Stop, View};
use crate::render::{Page, Render as _, quoted_json, quoted_lines};
use crate::store::blobs;
use crate::store::read::{Head, Tail};
use crate::store::replay::{FORMAT, Stood};
use crate::store::sources::Sources;

/// How long a pause may be that is shown as it was.
const MAX_GAP: f64 = 2.0;
/// How often a wait looks whether anybody still reads.
const LOOKING: Duration = Duration::from_millis(50);

/// Show a record again: what happened, each event with its number, each stop in full
///
/// At any of those numbers the record can be asked as a live session would be: `bugeye -s ID --at 120 locals`.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Replay {
    /// A record by its id or name, or a file of events; without it, the last one from here.
    #[arg(value_name = "ID|FILE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// In the pace in which it happened.
    #[arg(long)]
    #[serde(default)]
    pub timed: bool,
    /// So much faster (2x) or slower (0.5x); implies --timed.
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// With --timed: cut pauses to this (default 2s).
    #[arg(long, value_name = "TIME", value_parser = parse_seconds)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_gap: Option<f64>,
    /// Begin with the event of this number.
    #[arg(long, value_name = "SEQ")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// End with the event of this number.
    #[arg(long, value_name = "SEQ")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Only events of these types: a comma list, `*` and `?` stand for others (`stopped,out*`).
    #[arg(long, short = 'f', value_name = "TYPES", value_delimiter = ',')]
    #[serde(default)]
    pub filter: Vec<String>,
}

/// Reads `2x`, `2`, `0.5x`.
fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    speed
        .filter(|speed| (0.001..=1000.0).contains(speed))
        .ok_or_else(|| format!("`{text}` is no speed; write 2x or 0.5x (0.001x to 1000x)"))
}

impl Bare for Replay {
    const NAME: &'static str = "replay";
    const GROUP: Group = Group::Around;

    fn run(self, cx: &LocalContext) -> Result<u8, Failure> {
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let patterns = patterns(&self.filter)?;
        let (head, mut tail) = self.record(cx, &cwd)?;
        if head.v > FORMAT {
            let _ = writeln!(io::stderr(), "{} is a record of format {}; this version knows {FORMAT}", head.id, head.v);
        }
        let pace = (self.timed || self.speed.is_some()).then(|| Pace {
            speed: self.speed.unwrap_or(1.0),
            max_gap: self.max_gap.unwrap_or(MAX_GAP),
            shown: Instant::now(),
            last: None,
            stopped: on_interrupt(),
        });
        let sources = Sources::new(&head);
        let mut shown = Shown { replay: &self, patterns, head, sources, json: cx.json, pace, cwd };
        match shown.all(&mut tail) {
            // Whoever read has had enough.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("show the record", &error)),
            _ => {
                if tail.unreadable > 0 {
                    let _ = writeln!(io::stderr(), "{} lines of it are no events", tail.unreadable);
                }
                Ok(0)
            }
        }
    }

    fn prints() -> schemars::Schema {
        schemars::schema_for!(Event)
    }
}

impl Replay {
    /// What is to be shown: a file that is there, else a record of that name.
    fn record(&self, cx: &LocalContext, cwd: &Path) -> Result<(Head, Tail), Failure> {
        let name = self.record.as_deref().or(cx.session.as_deref());
        if let Some(path) = name.map(Path::new).filter(|path| path.is_file() || path.join("events.jsonl").is_file()) {
            let folder = std::path::absolute(if path.is_file() { path.parent().unwrap_or(path) } else { path });
            let folder = folder.map_err(|error| Failure::io("find the file", &error))?;
            let id = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let head = Head::load(&folder).unwrap_or_else(|| Head { id, folder, ..Head::default() });
            let tail = if path.is_file() { Tail::of_file(path) } else { Tail::new(path) };
            return Ok((head, tail));
        }
        let head = Known::ask(&cx.paths, name, cwd).chosen(&cx.paths, name, cwd)?;
        let tail = Tail::new(&head.folder);
        Ok((head, tail))
    }
}

/// What is shown, and how.
struct Shown<'a> {
    replay: &'a Replay,
    patterns: Vec<String>,
    head: Head,
    sources: Sources,
    json: bool,
    pace: Option<Pace>,
    cwd: std::path::PathBuf,
}

impl Shown<'_> {
    fn all(&mut self, tail: &mut Tail) -> io::Result<()> {
        while let Some(events) = tail.read()? {
            let mut text = String::new();
            for (event, line) in events {
                if event.kind == "source" {
                    self.sources.take(&event);
                }
                if self.replay.to.is_some_and(|to| event.seq > to) {
                    return write(&text);
                }
                if !self.wants(&event) {
                    continue;
                }
                if let Some(pace) = &mut self.pace {
                    write(&text)?;
                    text.clear();
                    if !pace.wait(event.ts) {
                        return Ok(());
                    }
                }
                self.show(event, &line, &mut text);
            }
            write(&text)?;
        }
        Ok(())
    }

    fn wants(&self, event: &Event) -> bool {
        let typed = self.patterns.is_empty() || self.patterns.iter().any(|pattern| alias::is_asked(pattern, event));
        typed && self.replay.from.is_none_or(|from| event.seq >= from)
    }

    fn show(&self, mut event: Event, line: &str, to: &mut String) {
        if self.json {
            to.push_str(&quoted_json(line));
            to.push('\n');
            return;
        }
        let mut page = Page::new(self.cwd.clone());
        event_line::render(&event, self.head.label(), &mut page);
        let text = page.into_text();
        let ts = event.ts;
        if event.kind == "stopped" {
            blobs::restore(&self.head.folder, &mut event.data);
            if let Ok(stood) = Stood::deserialize(&event.data) {
                let (when, _) = text.split_once(" stopped: ").unwrap_or_default();
                to.push_str(&format!("#{} {when} {}", event.seq, self.report(stood.stop, ts)));
                return;
            }
        }
        to.push_str(&format!("#{} {text}", event.seq));
    }

    /// A stop as it was told when it happened.
    fn report(&self, mut stop: Stop, ts: u64) -> String {
        let view = View::default();
        let context = context_of(&stop, view);
        let top = stop.frames.iter().find(|frame| frame.index == stop.frame);
        let source = top.and_then(|frame| {
            let (file, line) = (frame.file.as_ref()?, frame.line?);
            let text = self.sources.text(file, ts).ok()?;
            let mut source = around(file, &text.text, line, context)?;
            source.note = text.note;
            Some(source)
        });
        let shown = usize::try_from(stop.frame.saturating_add(view.frames)).unwrap_or(usize::MAX);
        stop.more_frames |= stop.frames.len() > shown;
        stop.frames.truncate(shown);
        let report = Report { source, stop: Some(stop), ..Report::in_state(SessionState::Stopped) };
        let mut page = Page::new(self.cwd.clone());
        report.render(&mut page);
        let text = quoted_lines(page.text());
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default().to_string();
        lines.fold(first, |text, line| format!("{text}\n  {line}")) + "\n"
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The pace in which events are shown.
#[derive(Debug)]
struct Pace {
    speed: f64,
    max_gap: f64,
    /// When the last event was due.
    shown: Instant,
    /// Its time in the record.
    last: Option<u64>,
    /// An interrupt has come.
    stopped: Arc<AtomicBool>,
}

impl Pace {
    /// How long after the one before it an event of this time is shown.
    fn gap(&self, ts: u64) -> Duration {
        let passed = self.last.map_or(0, |last| ts.saturating_sub(last));
        let seconds = Duration::from_millis(passed).as_secs_f64().min(self.max_gap) / self.speed;
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// Waits until an event is due; false when there is no sense in going on.
    fn wait(&mut self, ts: u64) -> bool {
        // From when it was due, not from when it was shown: small delays must not add up.
        let due = self.shown + self.gap(ts);
        (self.shown, self.last) = (due, Some(ts));
        loop {
            let left = due.saturating_duration_since(Instant::now()).min(LOOKING);
            let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
            let stdout = io::stdout();
            // Nothing is asked for: what is told all the same is that the other end has closed.
            let closed =
                poll(&mut [PollFd::new(&stdout, PollFlags::empty())], Some(&limit)).is_ok_and(|ready| ready > 0);
            if closed || self.stopped.load(Ordering::Relaxed) {
                return false;
            }
            if left < LOOKING && Instant::now() >= due {
                return true;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_as_people_write_them() {
        assert_eq!(parse_speed("2x"), Ok(2.0));
        assert_eq!(parse_speed("0.5"), Ok(0.5));
        for text in ["fast", "0", "-1x", "inf", "NaNx", ""] {
            assert!(parse_speed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pauses_are_cut_then_hastened() {
        let mut pace = Pace { speed: 2.0, max_gap: 2.0, shown: Instant::now(), last: None, stopped: Arc::default() };
        assert_eq!(pace.gap(1000), Duration::ZERO, "the first is shown at once");
        pace.last = Some(1000);
        assert_eq!(pace.gap(1500), Duration::from_millis(250));
        assert_eq!(pace.gap(90_000), Duration::from_secs(1));
        assert_eq!(pace.gap(0), Duration::ZERO, "a clock that was set back");
    }
}
