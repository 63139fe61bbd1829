//! Running a program for what is seen at places: arm, let go, listen, until it ends or enough was seen.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Context, Live, Part};
use crate::adapters::Hook;
use crate::failure::Failure;
use crate::model::{Binding, Hit, Point, Stop, View};
use crate::session::{Answer, Op, Outcome, Resume, Wait};
use crate::trace::{Collector, Seen, sink};

/// How often a hook's file is looked at.
const LOOKING: Duration = Duration::from_millis(25);
/// How often somebody who waits is told how it goes.
const TELLING: Duration = Duration::from_secs(1);

/// How long a trace may take, and where it ends.
#[derive(Debug, Clone)]
pub struct Limits {
    /// From its beginning.
    pub whole: Duration,
    /// To the first hit.
    pub first: Duration,
    /// From the last hit to the program's end.
    pub exit: Duration,
    /// Hits; 0 for all.
    pub most: u64,
}

/// What to trace.
#[derive(Debug, Clone)]
pub struct Plan {
    pub points: Vec<Point>,
    pub frames: u32,
    /// A hook may be used where there is one.
    pub hooks: bool,
    pub limits: Limits,
    /// The session was started for this trace alone: what stops it otherwise is told, and it goes on.
    pub alone: bool,
}

/// How a trace came out.
#[derive(Debug)]
pub struct Course {
    pub collector: Collector,
    pub bindings: BTreeMap<u32, Binding>,
    pub way: &'static str,
    pub outcome: Outcome,
    /// Stops that were no hits, such as a crash, on the way to the end.
    pub stops: Vec<Stop>,
    /// The limit that ended it.
    pub limit: Option<String>,
    pub took: Duration,
    /// Where a hook has written all hits.
    pub file: Option<PathBuf>,
    pub unreadable: u64,
}

/// Traces in a session that is held or stopped. Each hit is told to `tell` as it comes.
pub async fn trace(
    cx: &Context,
    live: &Arc<Live>,
    plan: Plan,
    tell: &mut (dyn FnMut(&Seen) + Send),
) -> Result<Course, Failure> {
    let (hits, mut told) = mpsc::unbounded_channel();
    live.handle.collect(hits);
    let sink =
        cx.hub.paths.state.join("sessions").join(live.record.as_deref().unwrap_or(&live.alias)).join("hits.jsonl");
    let hook = Hook {
        allowed: plan.hooks,
        sink: sink.to_string_lossy().into_owned(),
        most: plan.limits.most,
        frames: plan.frames,
        calls: Vec::new(),
        most_calls: 0,
    };
    let armed = live.handle.ask(Op::Trace { points: plan.points.clone(), hook }).await?;
    let Answer::Traced { way, .. } = armed else { return Err(Failure::internal("a trace was not armed")) };
    let mut file = Tail { path: sink, file: None, reader: sink::Reader::new(&live.adapter.quirks) };
    let mut collector = Collector::new(plan.points.clone());
    let began = Instant::now();
    let mut last = began;
    let mut stops = Vec::new();
    let mut limit = None;
    let view = View::default();
    let outcome = 'run: loop {
        let wait = Wait { limit: plan.limits.whole.saturating_sub(began.elapsed()), view };
        let resume = live.handle.ask(Op::Resume { how: Resume::Continue, thread: None, wait });
        tokio::pin!(resume);
        let mut look = tokio::time::interval(LOOKING);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut progress = tokio::time::interval_at(Instant::now() + TELLING, TELLING);
        let answer = loop {
            let patience = if collector.total == 0 { plan.limits.first } else { plan.limits.exit };
            tokio::select! {
                answer = &mut resume => break answer?,
                Some(hit) = told.recv() => {
                    last = Instant::now();
                    tell(&collector.take(hit));
                }
                _ = look.tick() => {
                    let before = collector.total;
                    file.read(|hit| tell(&collector.take(hit))).await;
                    if collector.total > before {
                        last = Instant::now();
                    }
                }
                _ = progress.tick() => {
                    let seconds = began.elapsed().as_secs_f64();
                    let rate = collector.total as f64 / seconds;
                    let text = format!("{} hits, {rate:.0}/s, {seconds:.0} s", collector.total);
                    let _ = cx.stream.try_send(Part::Progress(text));
                }
                () = tokio::time::sleep_until(last + patience) => {
                    let what = if collector.total == 0 { "no hit" } else { "no further hit, and no end," };
                    limit = Some(format!("{what} in {} s", patience.as_secs_f64()));
                    break 'run Outcome::Running;
                }
            }
        };
        match answer {
            Answer::Outcome(Outcome::Stopped(stop)) => {
                while let Ok(hit) = told.try_recv() {
                    tell(&collector.take(hit));
                }
                file.read(|hit| tell(&collector.take(hit))).await;
                let full = plan.limits.most > 0 && collector.total >= plan.limits.most;
                if full {
                    limit = Some(format!("{} hits were asked for", plan.limits.most));
                }
                if full || !plan.alone || stops.len() >= 10 {
                    break Outcome::Stopped(stop);
                }
                stops.push(*stop);
            }
            Answer::Outcome(Outcome::Running) => {
                limit = Some(format!("{} s were over", plan.limits.whole.as_secs_f64()));
                break Outcome::Running;
            }
            Answer::Outcome(outcome) => break outcome,
            _ => return Err(Failure::internal("a resume was not answered with where the program is")),
        }
    };
    let took = began.elapsed();
    while let Ok(hit) = told.try_recv() {
        tell(&collector.take(hit));
    }
    file.read(|hit| tell(&collector.take(hit))).await;
    let bindings = live.handle.snapshot.borrow().traced.clone();
    let kept = file.file.is_some().then(|| file.path.clone());
    let unreadable = file.reader.unreadable;
    Ok(Course { collector, bindings, way, outcome, stops, limit, took, file: kept, unreadable })
}

/// A hook's file, read as it grows.
struct Tail {
    path: PathBuf,
    file: Option<tokio::fs::File>,
    reader: sink::Reader,
}

impl Tail {
    async fn read(&mut self, mut tell: impl FnMut(Hit)) {
        if self.file.is_none() {
            self.file = tokio::fs::File::open(&self.path).await.ok();
        }
        let Some(file) = &mut self.file else { return };
        let mut buffer = vec![0; 256 * 1024];
        while let Ok(read) = file.read(&mut buffer).await {
            if read == 0 {
                return;
            }
            self.reader.feed(&buffer[..read], &mut tell);
        }
    }
}
