//! Running a program for what is seen at places: arm, let go, listen, until it ends or enough was seen.

mod tail;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{Context, Live, Part};
use crate::adapters::{Access, Hook};
use crate::failure::Failure;
use crate::model::{Binding, Hit, HitFrame, Point, Reading, Reason, Stop, View};
use crate::platform::Table;
use crate::session::{Answer, Look, Op, Outcome, Resume, Wait};
use crate::store::Journal;
use crate::trace::calls::Calls;
use crate::trace::sink::Record;
use crate::trace::{Collector, Seen};
use tail::Tail;

/// How often a hook's file is looked at.
const LOOKING: Duration = Duration::from_millis(25);
/// How often somebody who waits is told how it goes.
const TELLING: Duration = Duration::from_millis(500);
/// How long a program in somebody's session may take to stop when a limit is reached.
const PAUSING: Duration = Duration::from_secs(5);
/// Bytes of a hook's file that are read before anybody else is served, and before anything else is looked at.
const PIECE: usize = 64 * 1024;
const PIECES: usize = 64;
/// How long a program may take to stop by itself after the last hit that was asked for: a hook counts for one process.
const SETTLING: Duration = Duration::from_millis(500);
/// Stops of a program's own, such as exceptions, after which it is not let go on again.
const MOST_STOPS: usize = 10;
/// Hits of a trace that are events of the record; all of them are in its file.
const MOST_RECORDED: u64 = 100;

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
    /// Expressions whose changes are hits too: the place is the expression. Their ids follow those of the points.
    pub watched: Vec<Point>,
    /// Globs over functions whose calls are told, and how many calls at most.
    pub calls: Vec<String>,
    pub most_calls: u64,
    /// The program goes on when these were told.
    pub to_end: bool,
    pub frames: u32,
    /// A hook may be used where there is one.
    pub hooks: bool,
    pub limits: Limits,
    /// The session was started for this trace alone: what stops it otherwise is told, and it goes on.
    pub alone: bool,
    /// Keep the debugger and the program on one core.
    pub pinned: bool,
    /// What each hit is told as while the program runs.
    pub stream: Option<fn(&Seen, &[Point]) -> Value>,
}

/// Why a trace ended before the program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As many hits or calls as were asked for.
    Enough(String),
    /// A limit of time.
    Time(String),
    /// Whoever asked wants no more.
    Interrupted,
}

/// How a trace came out.
#[derive(Debug)]
pub struct Course {
    pub collector: Collector,
    pub calls: Calls,
    /// Calls were asked for.
    pub called: bool,
    /// Why the condition of a point could not be evaluated, at passes that are no hits.
    pub failed: BTreeMap<u32, String>,
    pub bindings: BTreeMap<u32, Binding>,
    pub way: &'static str,
    pub outcome: Outcome,
    /// Stops that were no hits, such as a crash, on the way to the end.
    pub stops: Vec<Stop>,
    pub end: Option<End>,
    /// It was a program's own session, which ends with it.
    pub alone: bool,
    pub took: Duration,
    /// Where all hits are, in the form of [`crate::trace::sink`].
    pub file: PathBuf,
    pub unreadable: u64,
}

/// What has come in so far.
struct Intake<'a> {
    cx: &'a Context,
    plan: &'a Plan,
    collector: Collector,
    calls: Calls,
    /// Hits that come by stops, as they come.
    told: mpsc::UnboundedReceiver<Hit>,
    tail: Tail,
    last: Instant,
    began: Instant,
    /// Why the condition of a point could not be evaluated.
    failed: BTreeMap<u32, String>,
    /// Writes of each watched expression.
    writes: BTreeMap<u32, u64>,
    journal: Option<&'a Journal>,
}

/// Traces in a session that is held or stopped.
pub async fn trace(cx: &Context, live: &Arc<Live>, plan: Plan) -> Result<Course, Failure> {
    let (hits, told) = mpsc::unbounded_channel();
    live.handle.collect(hits);
    let folder = cx.hub.paths.state.join("sessions").join(live.record.as_deref().unwrap_or(&live.alias));
    let path = unused(&folder);
    let tail = Tail::new(cx, live, &plan, path.clone());
    let hook = Hook {
        // Changes come by stops; what a hook writes meanwhile could not be put in order with them.
        allowed: plan.hooks && plan.watched.is_empty(),
        sink: tail.sink().to_string_lossy().into_owned(),
        most: plan.limits.most,
        frames: plan.frames,
        calls: plan.calls.clone(),
        most_calls: plan.most_calls,
    };
    let way = if plan.points.is_empty() && plan.calls.is_empty() {
        "stops"
    } else {
        let armed = live.handle.ask(Op::Trace { points: plan.points.clone(), hook }).await?;
        let Answer::Traced { way, .. } = armed else { return Err(Failure::internal("a trace was not armed")) };
        way
    };
    let watches = set_watches(live, &plan).await?;
    if let Some(journal) = &live.journal {
        let points: Vec<&Point> = plan.points.iter().chain(&plan.watched).collect();
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        journal.append("trace", None, json!({ "file": file, "points": points, "calls": plan.calls, "way": way }));
    }
    let collector = Collector::new(plan.points.iter().chain(&plan.watched).cloned().collect());
    let now = Instant::now();
    let mut intake = Intake {
        cx,
        plan: &plan,
        collector,
        calls: Calls::default(),
        told,
        tail,
        last: now,
        began: now,
        failed: BTreeMap::new(),
        writes: BTreeMap::new(),
        journal: live.journal.as_ref(),
    };
    let mut stops = Vec::new();
    let (mut outcome, mut end) = loop {
        match intake.run(live).await? {
            Err(end) => break (Outcome::Running, Some(end)),
            Ok(Outcome::Stopped(stop)) => {
                let changed = intake.take_change(&stop).await;
                if intake.is_full() {
                    let enough = enough(plan.limits.most);
                    break (Outcome::Stopped(stop), Some(enough));
                }
                if changed {
                    continue;
                }
                if !plan.alone || stops.len() >= MOST_STOPS {
                    break (Outcome::Stopped(stop), None);
                }
                stops.push(reworded(*stop));
            }
            Ok(outcome) => break (outcome, None),
        }
    };
    let took = intake.began.elapsed();
    if !plan.alone && matches!(outcome, Outcome::Running) {
        // The session is somebody's: it is left where it can be looked at.
        let wait = Wait { limit: PAUSING, view: View::default() };
        if let Ok(Answer::Outcome(stopped)) = live.handle.ask(Op::Pause(wait)).await {
            outcome = stopped;
        }
    }
    intake.take_all().await;
    end = end.or_else(|| intake.is_full().then(|| enough(plan.limits.most))).or_else(|| intake.enough_calls());
    if !plan.alone {
        for watch in watches {
            // A session that has ended has none.
            let _ = live.handle.ask(Op::Unwatch(watch)).await;
        }
    }
    let (bindings, logged) = {
        let snapshot = live.handle.snapshot.borrow();
        (snapshot.traced.clone(), snapshot.logged)
    };
    let way = if logged { "logpoints" } else { way };
    let unreadable = intake.tail.reader.unreadable;
    let Intake { collector, calls, failed, .. } = intake;
    let (alone, called) = (plan.alone, !plan.calls.is_empty());
    let file = path;
    Ok(Course { collector, calls, called, failed, alone, bindings, way, outcome, stops, end, took, file, unreadable })
}

/// What the record has of a hit.
fn recorded(seen: &Seen, points: &[Point]) -> Value {
    let hit = &seen.hit;
    let point = points.iter().find(|point| point.id == hit.point);
    // What was watched is its own place, and its own expression.
    let expressions = point.map(|point| match point.expressions.as_slice() {
        [] => std::slice::from_ref(&point.asked),
        expressions => expressions,
    });
    let values = expressions.unwrap_or_default().iter().zip(&hit.values).map(|(expression, value)| {
        let mut told = json!(value);
        told["expression"] = json!(expression);
        told
    });
    json!({
        "point": hit.point,
        "asked": point.map(|point| &point.asked),
        "place": point.map(|point| &point.place),
        "hit": seen.seq,
        "micros": hit.micros,
        "values": values.collect::<Vec<_>>(),
        "frames": &hit.frames[..],
    })
}

/// A session may be traced several times.
fn unused(folder: &std::path::Path) -> PathBuf {
    let numbered = (2..=u32::MAX).map(|number| folder.join(format!("hits-{number}.jsonl")));
    std::iter::once(folder.join("hits.jsonl")).chain(numbered).find(|path| !path.exists()).unwrap_or_default()
}

/// Sets the data breakpoints; answers their numbers.
async fn set_watches(live: &Live, plan: &Plan) -> Result<Vec<u32>, Failure> {
    let mut watches: Vec<u32> = Vec::new();
    for point in &plan.watched {
        let watch = Op::Watch {
            expression: point.asked.clone(),
            access: Access::Write,
            condition: point.when.clone(),
            look: Look::default(),
        };
        match live.handle.ask(watch).await {
            Ok(Answer::Watches(lines)) => watches.extend(lines.iter().map(|line| line.id).max()),
            Ok(_) => {}
            Err(failure) => {
                for watch in watches {
                    let _ = live.handle.ask(Op::Unwatch(watch)).await;
                }
                return Err(failure.hint(
                    "a global is watched from the beginning; a local from where it exists: run to there, then \
                     `bugeye trace --watch` in that session",
                ));
            }
        }
    }
    Ok(watches)
}

/// A stop that was taken for the end of the hits, and is not.
fn reworded(mut stop: Stop) -> Stop {
    if matches!(&stop.reason, Reason::Other { text } if text == crate::session::FULL) {
        stop.reason = Reason::Other { text: "a breakpoint of the program's own".into() };
    }
    stop
}

impl Intake<'_> {
    /// Lets the program go, and takes what comes until it stops or the trace is to end.
    async fn run(&mut self, live: &Live) -> Result<Result<Outcome, End>, Failure> {
        let limits = &self.plan.limits;
        let wait = Wait { limit: limits.whole.saturating_sub(self.began.elapsed()), view: View::default() };
        let resume = live.handle.ask(Op::Resume { how: Resume::Continue, thread: None, wait });
        tokio::pin!(resume);
        let cancelled = self.cx.cancelled.clone();
        let mut look = tokio::time::interval(LOOKING);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut progress = tokio::time::interval_at(Instant::now() + TELLING, TELLING);
        let answer = loop {
            let patience = if self.seen() == 0 { limits.first } else { limits.exit };
            tokio::select! {
                answer = &mut resume => break answer?,
                Some(hit) = self.told.recv() => {
                    self.tail.write(&hit);
                    self.take(hit).await;
                }
                _ = look.tick() => {
                    if self.plan.pinned {
                        pin(live.handle.supervisor);
                    }
                    self.read(PIECES).await;
                    if self.is_full() && self.last.elapsed() > SETTLING {
                        return Ok(Err(enough(limits.most)));
                    }
                    if let Some(enough) = self.enough_calls() {
                        return Ok(Err(enough));
                    }
                }
                _ = progress.tick() => {
                    let seconds = self.began.elapsed().as_secs_f64();
                    let what = if self.plan.points.is_empty() && !self.plan.calls.is_empty() { "calls" } else { "hits" };
                    let text = format!("{} {what}, {:.0}/s, {seconds:.1} s", self.seen(), self.seen() as f64 / seconds);
                    let _ = self.cx.stream.try_send(Part::Passing(text));
                }
                () = tokio::time::sleep_until(self.last + patience) => {
                    let what = if self.seen() == 0 { "no hit" } else { "no further hit, and no end," };
                    return Ok(Err(End::Time(format!("{what} in {} s", patience.as_secs_f64()))));
                }
                () = cancelled.cancelled() => return Ok(Err(End::Interrupted)),
            }
        };
        self.take_all().await;
        match answer {
            Answer::Outcome(Outcome::Running) => {
                Ok(Err(End::Time(format!("{} s were over", limits.whole.as_secs_f64()))))
            }
            Answer::Outcome(outcome) => Ok(Ok(outcome)),
            _ => Err(Failure::internal("a resume was not answered with where the program is")),
        }
    }

    fn seen(&self) -> u64 {
        self.collector.total + self.calls.list.len() as u64
    }

    fn is_full(&self) -> bool {
        self.plan.limits.most > 0 && self.collector.total >= self.plan.limits.most
    }

    fn enough_calls(&self) -> Option<End> {
        let most = if self.plan.to_end { 0 } else { self.plan.most_calls };
        (most > 0 && self.calls.list.len() as u64 >= most)
            .then(|| End::Enough(format!("{most} {} seen", if most == 1 { "call was" } else { "calls were" })))
    }

    async fn take(&mut self, hit: Hit) {
        if let Some(event) = self.keep(hit) {
            // Whoever reads slowly holds up the telling, not the program.
            let _ = self.cx.stream.send(Part::Event(event)).await;
        }
    }

    /// Takes a hit; answers what is told of it at once.
    fn keep(&mut self, hit: Hit) -> Option<Value> {
        if self.is_full() {
            return None;
        }
        self.last = Instant::now();
        self.collector.take(hit);
        let (seen, points) = (self.collector.latest()?, self.collector.points());
        if let Some(journal) = self.journal.filter(|_| seen.seq <= MOST_RECORDED) {
            journal.append("hit", Some(seen.hit.thread), recorded(seen, points));
            if seen.seq == MOST_RECORDED {
                let file = self.tail.path.file_name().unwrap_or_default().to_string_lossy();
                let message = format!("further hits are in {file} alone");
                journal.append("log", None, json!({ "message": message, "file": file }));
            }
        }
        Some((self.plan.stream?)(seen, points))
    }

    async fn take_all(&mut self) {
        while let Ok(hit) = self.told.try_recv() {
            self.tail.write(&hit);
            self.take(hit).await;
        }
        self.read(usize::MAX).await;
    }

    /// Takes what the hook has written since, in so many pieces at most.
    async fn read(&mut self, pieces: usize) {
        for _ in 0..pieces {
            let Some(records) = self.tail.read().await else { return };
            for record in records {
                match record {
                    Record::Hit(hit) => {
                        if let Some(event) = self.keep(hit) {
                            let _ = self.cx.stream.send(Part::Event(event)).await;
                        }
                    }
                    Record::Crossing(crossing) => {
                        self.last = Instant::now();
                        self.calls.take(crossing);
                    }
                    Record::Failed { point, why } => {
                        self.failed.entry(point).or_insert(why);
                    }
                }
            }
        }
    }

    /// A stop because a watched expression changed is a hit. Answers whether it was one.
    async fn take_change(&mut self, stop: &Stop) -> bool {
        let Reason::Watch { expression, new, .. } = &stop.reason else { return false };
        let Some(point) = self.plan.watched.iter().find(|point| point.asked == *expression) else { return false };
        let write = self.writes.entry(point.id).or_default();
        *write += 1;
        if !write.is_multiple_of(u64::from(point.every.max(1))) {
            return true;
        }
        let frame = |frame: &crate::model::Frame| HitFrame {
            function: frame.function.clone(),
            file: frame.file.clone(),
            line: frame.line,
        };
        let frames = stop.frames.iter().filter(|frame| !frame.runtime).take(self.plan.frames as usize).map(frame);
        let value = new.as_ref().map_or_else(
            || Reading::unavailable("the debugger does not tell the value"),
            |new| Reading { text: new.clone(), why: None },
        );
        let hit = Hit {
            point: point.id,
            thread: stop.thread.id,
            thread_name: stop.thread.name.clone(),
            micros: u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            values: vec![value],
            frames: frames.collect(),
        };
        self.tail.write(&hit);
        self.take(hit).await;
        true
    }
}

/// Puts every thread below a process on one core, those that came since the last time too: a program and its debugger take
/// turns, and waking up on another core costs each of them more than the work does.
fn pin(supervisor: u32) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let Some(core) = (0..CpuSet::MAX_CPU).rev().find(|core| allowed.is_set(*core)) else { return };
    let mut one = CpuSet::new();
    one.set(core);
    for process in Table::read().below(supervisor) {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid)).into_iter().flatten();
        let ids = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        for thread in ids.filter_map(rustix::process::Pid::from_raw) {
            // One that has ended, or is not ours to move, stays where it is.
            let _ = sched_setaffinity(Some(thread), &one);
        }
    }
}

fn enough(most: u64) -> End {
    End::Enough(format!("{most} {} asked for", if most == 1 { "hit was" } else { "hits were" }))
}
