//! Traced places: a hook in each thread of the program writes down what it sees, and the thread goes on.
//!
//! The hook (`hook.js`) is called by the condition of a breakpoint. It lets the thread pause where it needs a look from
//! here: at a way to a hit that is new, whose frames are named as everywhere else, and at values that can't be read in
//! the program without running its code. Then the record is written here, and the thread goes on.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use serde_json::{Value, json};

use super::Bridge;
use super::breakpoints::Wish;
use super::calls::Count;
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
    /// What the hook calls to read the values; none where the debugger has to read them.
    #[serde(skip)]
    functions: Option<Vec<String>>,
    /// The same without functions.
    #[serde(skip)]
    values: Vec<String>,
}

/// A trace under way.
#[derive(Debug)]
pub struct Trace {
    asked: Asked,
    /// Milliseconds since the epoch: the clock of all hooks begins here.
    began: f64,
    sink: RefCell<File>,
    /// The conditions of its points.
    conditions: BTreeMap<u32, (String, String)>,
    /// Points whose condition could not be evaluated, which was told.
    failed: RefCell<BTreeSet<u32>>,
    /// Ways to hits that no hook has seen.
    ways: RefCell<HashMap<Vec<Value>, u64>>,
    pub calls: Count,
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
    /// Nothing was counted yet, and its condition not asked: the stack had no room for it.
    #[serde(default)]
    outside: bool,
}

/// The traced place that a condition stands for.
pub fn point_of(condition: Option<&str>) -> Option<u32> {
    condition?.strip_prefix(POINT)?.parse().ok()
}

impl Trace {
    /// The condition for the inspector: an expression, or, where it is the only one of a place, a statement.
    pub fn condition(&self, point: u32, is_only: bool) -> &str {
        let of_point = self.conditions.get(&point);
        of_point.map_or("false", |(expression, statement)| if is_only { statement } else { expression })
    }

    fn point(&self, id: u32) -> Option<&Point> {
        self.asked.points.iter().find(|point| point.id == id)
    }

    /// Since it began.
    pub fn micros(&self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        u64::try_from(now).unwrap_or_default().saturating_sub((self.began * 1000.0) as u64)
    }

    /// A condition that could not be evaluated is told once for each point.
    fn tell_failed(&self, point: u32, why: &str) {
        if self.failed.borrow_mut().insert(point) {
            self.write(&format!("{}\n", json!(["w", point, why])));
        }
    }

    /// Several records at once, so that nothing comes between them.
    pub fn write(&self, text: &str) {
        let _ = self.sink.borrow_mut().write_all(text.as_bytes());
    }
}

impl Point {
    /// As an expression and as a statement. Each pass compiles it anew, functions above all: the statement has none that
    /// run, unless something can't be read.
    fn condition(&self) -> (String, String) {
        let expression = self.expression();
        let is_plain = self.when.is_none() && self.functions.is_some();
        let statement = if is_plain {
            let words: Vec<String> = [self.id.to_string()].into_iter().chain(self.values.clone()).collect();
            format!("try{{__bugeye__.now({})}}catch{{{expression}}}", words.join(","))
        } else {
            expression.clone()
        };
        (expression, statement)
    }

    fn expression(&self) -> String {
        let mut words = vec![self.id.to_string()];
        words.push(self.when.as_ref().map_or_else(|| "0".into(), |when| format!("()=>({when}\n)")));
        words.extend(self.functions.clone().unwrap_or_default());
        format!("typeof __bugeye__!=='function'||__bugeye__({})", words.join(","))
    }
}

impl Bridge {
    /// Begins a trace: from now on its conditions are known, and every thread has the hook.
    pub async fn begin_trace(self: &Rc<Self>, words: &str) -> Result<Value, String> {
        let mut asked: Asked = serde_json::from_str(words).map_err(|error| error.to_string())?;
        let mut unparsed = Vec::new();
        for point in &mut asked.points {
            // A condition that can't be parsed would be no hit, and nobody would know.
            if let Some(when) = &point.when
                && let Err(why) = self.compile(when).await
                && self.compile(&in_a_class(when)).await.is_err()
            {
                unparsed.push((point.id, why));
                point.when = Some("false".into());
            }
            let functions: Option<Vec<String>> = point.expressions.iter().map(|text| plain::function(text)).collect();
            point.functions = match functions {
                Some(functions) if self.compile(&format!("[{}]", functions.join(","))).await.is_ok() => Some(functions),
                _ => None,
            };
            point.values = point.expressions.iter().filter_map(|text| plain::value(text)).collect();
        }
        // Whatever became of the last one.
        self.end_trace().await;
        let sink = OpenOptions::new().append(true).create(true).mode(0o600).open(&asked.sink);
        let sink = sink.map_err(|error| format!("{} can't be written: {error}", asked.sink))?;
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0;
        let conditions = asked.points.iter().map(|point| (point.id, point.condition())).collect();
        let (sink, failed, ways) = (RefCell::new(sink), RefCell::default(), RefCell::default());
        let trace = Trace { asked, began, sink, conditions, failed, ways, calls: Count::default() };
        for (point, why) in unparsed {
            trace.tell_failed(point, &why);
        }
        *self.trace.borrow_mut() = Some(Rc::new(trace));
        self.in_all(|bridge, target| async move { bridge.install(&target).await }).await;
        Ok(json!({ "result": "ok" }))
    }

    /// Ends a trace: nothing of it is left in any thread, as soon as that can answer.
    pub async fn end_trace(self: &Rc<Self>) -> Value {
        if self.trace.borrow_mut().take().is_some() {
            self.wishes.borrow_mut().forget_trace();
            self.in_all(|bridge, target| async move {
                // Breakpoints first: a condition without its hook would pause.
                bridge.forget_calls(&target).await;
                bridge.uninstall(&target).await;
            })
            .await;
        }
        json!({ "result": "ok" })
    }

    async fn uninstall(&self, target: &Target) {
        let _alone = target.syncing.lock().await;
        if self.trace.borrow().is_some() {
            // The next one has come already, and its hook takes the place of this.
            return;
        }
        let expression = format!("typeof __bugeye__==='function'&&__bugeye__.end?.()\n//# sourceURL={OWN}unhook");
        let params = json!({ "expression": expression, "silent": true });
        let _ = target.wire.call("Runtime.evaluate", params).await;
    }

    /// Gives a thread the hook. Where that can't be, each hit is a pause.
    pub async fn install(&self, target: &Target) {
        let _alone = target.syncing.lock().await;
        let Some(trace) = self.trace.borrow().clone() else { return };
        let name = target.name.split_once("] ").map_or(target.name.as_str(), |(_, own)| own);
        trace.write(&format!("{}\n", json!(["t", target.thread, quoted(name)])));
        let point =
            |point: &Point| json!({ "id": point.id, "every": point.every.max(1), "hard": point.functions.is_none() });
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
        let mut unsure: Vec<u32> = Vec::new();
        pending.retain(|left| {
            unsure.extend(Some(left.point).filter(|_| left.outside));
            !left.outside
        });
        for point in unsure {
            pending.extend(self.count_outside(target, &trace, point, &frame.id).await);
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
            && !self.is_met(target, trace, point, when, frame).await
        {
            return Vec::new();
        }
        let params =
            json!({ "expression": format!("__bugeye__.outside({point})"), "returnByValue": true, "silent": true });
        let answer = target.wire.call("Runtime.evaluate", params).await.unwrap_or_default();
        if let Some(said) = answer.pointer("/result/value").and_then(Value::as_str) {
            return serde_json::from_str(said).unwrap_or_default();
        }
        let head = format!("[{point},{},{},0,[", trace.micros(), target.thread);
        vec![Pending { point, head: Some(head), line: None, way: None, full: false, outside: false }]
    }

    /// Whether a condition is true at a pass; where it can't be evaluated it is not, which is told.
    async fn is_met(&self, target: &Target, trace: &Trace, point: u32, when: &str, frame: &str) -> bool {
        let params = json!({ "callFrameId": frame, "expression": format!("!!({when}\n)"), "silent": true });
        let answer = match target.wire.call("Debugger.evaluateOnCallFrame", params).await {
            Ok(answer) => answer,
            Err(why) => {
                trace.tell_failed(point, &why);
                return false;
            }
        };
        if let Some(details) = answer.get("exceptionDetails") {
            trace.tell_failed(point, &super::looking::complaint(details));
            return false;
        }
        answer.pointer("/result/value").and_then(Value::as_bool).unwrap_or_default()
    }

    /// The inspector could not parse a script: the condition of a traced place may be one that only fails where it is.
    pub fn on_unparsed(&self, target: &Target, params: &Value) {
        let Some(trace) = self.trace.borrow().clone() else { return };
        let placed = target.placed.borrow();
        let points = target
            .conditions(params)
            .iter()
            .filter_map(|site| placed.get(site))
            .flat_map(|placed| placed.points(&self.wishes.borrow()))
            .collect::<Vec<_>>();
        for point in points {
            trace.tell_failed(point, "it can't be parsed there");
        }
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
    pub async fn read(&self, target: &Rc<Target>, expression: &str) -> Value {
        let read = self.print(target, expression).await;
        match read {
            Ok(text) => shown(&text),
            Err(why) if why.contains("Possible side-effect in debug-evaluate") => {
                json!(["it may change the program, and was not evaluated"])
            }
            Err(why) => json!([why]),
        }
    }
}

/// The same where a class has all the private names that it uses.
fn in_a_class(expression: &str) -> String {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let name = |text: &str| text[..text.find(|c| !is_part(c)).unwrap_or(text.len())].to_string();
    let names: BTreeSet<String> = expression.split('#').skip(1).map(name).filter(|name| !name.is_empty()).collect();
    let fields: String = names.iter().map(|name| format!("#{name};")).collect();
    format!("class extends Object {{ {fields} of() {{ return ({expression}\n) }} }}")
}

/// A value's text as a record has it.
pub fn shown(text: &str) -> Value {
    let text = quoted(text.trim());
    let (shown, left_out) = cut(&text, LONGEST);
    if left_out > 0 { json!(format!("{shown}…")) } else { json!(text) }
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
