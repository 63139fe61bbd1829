//! Traced places: a hook in each thread of the program writes down what it sees, and the thread goes on.
//!
//! The hook (`hook.js`) is called by the condition of a breakpoint. It lets the thread pause where it needs a look from
//! here: at a way to a hit that is new, whose frames are named as everywhere else, and at values that can't be read in
//! the program without running its code. Then the record is written here, and the thread goes on.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Bridge;
use super::breakpoints::Wish;
use super::plain;
use super::target::{Frame, OWN, Pause, Target, is_package};
use crate::render::{cut, quoted};

const HOOK: &str = include_str!("hook.js");
/// What the condition of a traced place is called by the client.
const POINT: &str = "bugeye:point ";
/// Characters of a value, as everywhere.
const LONGEST: usize = 200;

/// What is asked for.
#[derive(Debug, Clone, Deserialize)]
struct Asked {
    sink: String,
    most: u64,
    frames: usize,
    points: Vec<Point>,
}

#[derive(Debug, Clone, Deserialize)]
struct Point {
    id: u32,
    expressions: Vec<String>,
    when: Option<String>,
    every: u32,
}

/// A trace under way.
#[derive(Debug)]
pub struct Trace {
    asked: Asked,
    /// Milliseconds since the epoch: the clock of all hooks begins here.
    began: f64,
    sink: RefCell<File>,
    /// The conditions of its points.
    conditions: BTreeMap<u32, String>,
    /// Ways to hits that no hook has seen.
    ways: RefCell<HashMap<Vec<Value>, u64>>,
}

/// What a hook leaves to the debugger.
#[derive(Debug, Deserialize)]
struct Pending {
    point: u32,
    /// The beginning of the record.
    head: Option<String>,
    /// The whole record, where its values could be read.
    line: Option<String>,
    /// The number of the way, where that is new.
    way: Option<u64>,
    /// Enough was seen.
    #[serde(default)]
    full: bool,
}

/// The traced place that a condition stands for.
pub fn point_of(condition: Option<&str>) -> Option<u32> {
    condition?.strip_prefix(POINT)?.parse().ok()
}

impl Trace {
    /// The condition for the inspector.
    pub fn condition(&self, point: u32) -> &str {
        self.conditions.get(&point).map_or("false", String::as_str)
    }

    fn point(&self, id: u32) -> Option<&Point> {
        self.asked.points.iter().find(|point| point.id == id)
    }

    /// Several records at once, so that nothing comes between them.
    fn write(&self, text: &str) {
        let _ = self.sink.borrow_mut().write_all(text.as_bytes());
    }
}

impl Point {
    /// None where the debugger has to read the values.
    fn functions(&self) -> Option<Vec<String>> {
        self.expressions.iter().map(|text| plain::function(text)).collect()
    }

    fn condition(&self) -> String {
        let mut words = vec![self.id.to_string()];
        words.push(self.when.as_ref().map_or_else(|| "0".into(), |when| format!("()=>({when}\n)")));
        words.extend(self.functions().unwrap_or_default());
        format!("typeof __bugeye__!=='function'||__bugeye__({})", words.join(","))
    }
}

impl Bridge {
    /// Begins a trace: from now on its conditions are known, and every thread has the hook.
    pub async fn begin_trace(&self, words: &str) -> Result<Value, String> {
        let asked: Asked = serde_json::from_str(words).map_err(|error| error.to_string())?;
        for when in asked.points.iter().filter_map(|point| point.when.as_deref()) {
            self.compile(when).await?;
        }
        let sink = OpenOptions::new().append(true).create(true).mode(0o600).open(&asked.sink);
        let sink = sink.map_err(|error| format!("{} can't be written: {error}", asked.sink))?;
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0;
        let conditions = asked.points.iter().map(|point| (point.id, point.condition())).collect();
        let (sink, ways) = (RefCell::new(sink), RefCell::default());
        *self.trace.borrow_mut() = Some(Rc::new(Trace { asked, began, sink, conditions, ways }));
        for target in self.all_targets() {
            self.install(&target).await;
        }
        Ok(json!({ "result": "ok" }))
    }

    /// Gives a thread the hook. Where that can't be, each hit is a pause.
    pub async fn install(&self, target: &Target) {
        let Some(trace) = self.trace.borrow().clone() else { return };
        let name = target.name.split_once("] ").map_or(target.name.as_str(), |(_, own)| own);
        trace.write(&format!("{}\n", json!(["t", target.thread, quoted(name)])));
        let point =
            |point: &Point| json!({ "id": point.id, "every": point.every.max(1), "hard": point.functions().is_none() });
        let config = json!({
            "sink": trace.asked.sink,
            "most": trace.asked.most,
            "frames": trace.asked.frames,
            "began": trace.began,
            "thread": target.thread,
            "points": trace.asked.points.iter().map(point).collect::<Vec<_>>(),
        });
        let expression = format!(
            "void ({})({config}, typeof require === 'function' ? require : process.getBuiltinModule)\n//# sourceURL={OWN}hook",
            HOOK.trim_end()
        );
        let params = json!({ "expression": expression, "includeCommandLineAPI": true, "silent": true });
        let answer = target.wire.call("Runtime.evaluate", params).await;
        if let Some(details) = answer.ok().as_ref().and_then(|answer| answer.get("exceptionDetails")) {
            let output = format!("{} is traced by pauses: {}\n", target.name, super::looking::complaint(details));
            self.event("output", json!({ "category": "console", "output": output }));
        }
    }

    /// A thread paused at traced places: what the hook left to do is done. Answers the wishes that have seen enough.
    pub async fn take_traced(&self, target: &Rc<Target>, pause: &Pause, ids: &[&str]) -> Vec<i64> {
        let Some(trace) = self.trace.borrow().clone() else { return Vec::new() };
        let wishes: Vec<Rc<Wish>> =
            self.wishes_at(target, ids).into_iter().filter(|wish| wish.point().is_some()).collect();
        let Some(frame) = pause.frames.first().filter(|_| !wishes.is_empty()) else { return Vec::new() };
        let expression = "typeof __bugeye__==='function'?__bugeye__.take():''";
        let params =
            json!({ "callFrameId": frame.id, "expression": expression, "returnByValue": true, "silent": true });
        let answer = target.wire.call("Debugger.evaluateOnCallFrame", params).await.unwrap_or_default();
        let said = answer.pointer("/result/value").and_then(Value::as_str).unwrap_or_default();
        let mut pending: Vec<Pending> = serde_json::from_str(said).unwrap_or_default();
        if said.is_empty() {
            for point in wishes.iter().filter_map(|wish| wish.point()) {
                pending.extend(self.count_outside(target, &trace, point, &frame.id).await);
            }
        }
        let mut full = Vec::new();
        for left in pending {
            if let Some(head) = &left.head {
                self.tell_hit(target, pause, &trace, &left, head).await;
            }
            let of_point = wishes.iter().find(|wish| wish.point() == Some(left.point));
            full.extend(of_point.filter(|_| left.full).map(|wish| wish.id));
        }
        full
    }

    /// A hit in a realm that has no hook: that of the thread's own realm counts it.
    async fn count_outside(&self, target: &Target, trace: &Trace, point: u32, frame: &str) -> Vec<Pending> {
        let Some(asked) = trace.point(point) else { return Vec::new() };
        if let Some(when) = &asked.when
            && !self.is_true(target, when, frame).await
        {
            return Vec::new();
        }
        let params =
            json!({ "expression": format!("__bugeye__.outside({point})"), "returnByValue": true, "silent": true });
        let answer = target.wire.call("Runtime.evaluate", params).await.unwrap_or_default();
        if let Some(said) = answer.pointer("/result/value").and_then(Value::as_str) {
            return serde_json::from_str(said).unwrap_or_default();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0;
        let head = format!("[{point},{:.0},{},0,[", (now - trace.began).max(0.0) * 1000.0, target.thread);
        vec![Pending { point, head: Some(head), line: None, way: None, full: false }]
    }

    async fn tell_hit(&self, target: &Rc<Target>, pause: &Pause, trace: &Trace, left: &Pending, head: &str) {
        let frames = if trace.asked.frames > 0 { way(pause, trace.asked.frames) } else { Vec::new() };
        let mut text = String::new();
        let mut head = head.to_string();
        if let Some(way) = left.way {
            text = format!("{}\n", json!(["s", way, frames]));
        } else if let (Some(before), false) = (head.strip_suffix(",0,["), frames.is_empty()) {
            let known = trace.ways.borrow().get(&frames).copied();
            let way = known.unwrap_or_else(|| {
                let way = u64::try_from(trace.ways.borrow().len()).unwrap_or_default() + 1;
                text = format!("{}\n", json!(["s", way, frames]));
                trace.ways.borrow_mut().insert(frames.clone(), way);
                way
            });
            head = format!("{before},{way},[");
        }
        match &left.line {
            Some(line) => text.push_str(line),
            None => {
                let mut values = Vec::new();
                let expressions = trace.point(left.point).map(|point| point.expressions.as_slice()).unwrap_or_default();
                for expression in expressions {
                    values.push(self.read(target, expression).await.to_string());
                }
                text.push_str(&format!("{head}{}]]\n", values.join(",")));
            }
        }
        trace.write(&text);
    }

    /// A value as a record has it.
    async fn read(&self, target: &Rc<Target>, expression: &str) -> Value {
        let read = self.print(target, expression).await;
        match read {
            Ok(text) => {
                let text = quoted(text.trim());
                let (shown, left_out) = cut(&text, LONGEST);
                if left_out > 0 { json!(format!("{shown}…")) } else { json!(text) }
            }
            Err(why) if why.contains("Possible side-effect in debug-evaluate") => {
                json!(["it may change the program, and was not evaluated"])
            }
            Err(why) => json!([why]),
        }
    }
}

/// The frames that lead to a pause, as a reader sees them.
fn way(pause: &Pause, most: usize) -> Vec<Value> {
    let hides_packages = pause.frames.first().is_some_and(Frame::is_own);
    let is_shown = |frame: &&Frame| {
        let url = &frame.place.url;
        !(url.starts_with("node:") || url.starts_with(OWN) || (hides_packages && is_package(url)))
    };
    let shown = pause.frames.iter().filter(is_shown).take(most);
    shown
        .map(|frame| {
            let path = frame.place.path.as_ref().map(|path| path.to_string_lossy().into_owned());
            let file = path.unwrap_or_else(|| frame.place.url.clone());
            json!([quoted(&frame.function), file, frame.place.line])
        })
        .collect()
}
