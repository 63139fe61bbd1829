//! Where breakpoints are wished for, and where they are at the inspector.
//!
//! A line of a plain file is a breakpoint on the file's address, there before the script is. Code that was generated has
//! its own places, known from its source map; a function is where its name stands in a script. Those are found when a
//! script is about to run (`scripts.rs`), and are breakpoints on places in that script.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Value, json};

use super::calls::{self, Wanted};
use super::sourcemap::{SourceMap, Spot};
use super::syntax::{Code, Function, Lines};
use super::target::{Target, is_package};
use super::trace::Trace;
use super::{Bridge, trace, urls};

/// How long threads may take to have their breakpoints.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// A breakpoint as the client wants it.
#[derive(Debug)]
pub struct Wish {
    pub id: i64,
    pub at: At,
    pub condition: Option<String>,
    /// The pass to stop at, and at every later one.
    least: u64,
    passes: Cell<u64>,
    /// Where it is, once the inspector has told.
    bound: RefCell<Option<(PathBuf, u32)>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// The file as it was named, the same with links followed, and the line from 1.
    Line {
        file: PathBuf,
        real: PathBuf,
        line: u32,
    },
    Function(String),
    /// The beginnings of functions whose calls are told.
    Calls(Wanted),
}

/// A breakpoint at the inspector: which scripts, and where in them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// An address, or a pattern of addresses.
    pub url: String,
    pub is_pattern: bool,
    pub spot: Spot,
}

#[derive(Debug)]
pub struct Placed {
    id: String,
    condition: String,
    /// Of the condition, as the engine counts.
    length: u64,
    wishes: Vec<i64>,
}

/// A script with more places for breakpoints than its address tells.
#[derive(Debug)]
pub struct Unit {
    pub map: Option<Rc<SourceMap>>,
    pub functions: Vec<(Function, Spot)>,
    /// Its functions were looked for.
    pub scanned: bool,
}

impl Unit {
    pub fn new(map: Option<Rc<SourceMap>>, source: Option<&str>) -> Self {
        let functions = source.map_or_else(Vec::new, |source| {
            let mut lines = Lines::new(source);
            let found = Code::new(source).functions().into_iter();
            found
                .map(|function| (lines.spot(function.body), function))
                .map(|(spot, function)| (function, spot))
                .collect()
        });
        Self { map, functions, scanned: source.is_some() }
    }
}

impl Placed {
    /// Whether a script without an address is its condition, which is one at each pass.
    pub fn is_condition(&self, length: u64) -> bool {
        self.length == length && length > 0
    }

    /// The traced places whose condition can't be parsed where it is: the inspector says so, and nobody else would.
    pub fn points(&self, wishes: &Wishes) -> Vec<u32> {
        wishes.list.iter().filter(|wish| self.wishes.contains(&wish.id)).filter_map(|wish| wish.point()).collect()
    }

    /// Whether it is one of these, and there for this wish.
    pub fn is_for(&self, ids: &[&str], wish: i64) -> bool {
        ids.contains(&self.id.as_str()) && self.wishes.contains(&wish)
    }
}

impl Wish {
    /// The traced place that it stands for.
    pub fn point(&self) -> Option<u32> {
        trace::point_of(self.condition.as_deref())
    }
}

/// Every wish of the client.
#[derive(Debug, Default)]
pub struct Wishes {
    pub list: Vec<Rc<Wish>>,
    last: i64,
}

impl Wishes {
    fn replace(&mut self, is_replaced: impl Fn(&At) -> bool, wanted: &[(At, &Value)]) -> Vec<Rc<Wish>> {
        let (mut old, kept): (Vec<_>, Vec<_>) = self.list.drain(..).partition(|wish| is_replaced(&wish.at));
        self.list = kept;
        let mut made = Vec::new();
        for (at, asked) in wanted {
            let text = |name: &str| asked.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            let condition = text("condition").map(ToString::to_string);
            let least = text("hitCondition").and_then(least).unwrap_or(1);
            // One that has not changed goes on counting.
            let same = old.iter().position(|wish| wish.at == *at && wish.condition == condition && wish.least == least);
            let wish = match same {
                Some(index) => old.swap_remove(index),
                None => {
                    self.last += 1;
                    let (id, at) = (self.last, at.clone());
                    Rc::new(Wish { id, at, condition, least, passes: Cell::new(0), bound: RefCell::default() })
                }
            };
            self.list.push(wish.clone());
            made.push(wish);
        }
        made
    }

    pub fn has_functions(&self) -> bool {
        self.list.iter().any(|wish| matches!(wish.at, At::Function(_) | At::Calls(_)))
    }

    /// Whether any is in a package: scripts there are looked at only then.
    pub fn reach_packages(&self) -> bool {
        self.list.iter().any(|wish| match &wish.at {
            At::Line { real, .. } => is_package(&real.to_string_lossy()),
            At::Function(_) => false,
            At::Calls(wanted) => wanted.reach_packages(),
        })
    }

    /// From now on these calls are told.
    pub fn want_calls(&mut self, wanted: Option<Wanted>) {
        self.list.retain(|wish| !matches!(wish.at, At::Calls(_)));
        self.list.extend(wanted.map(|wanted| {
            let (id, at) = (calls::WISH, At::Calls(wanted));
            Rc::new(Wish { id, at, condition: None, least: 1, passes: Cell::new(0), bound: RefCell::default() })
        }));
    }

    /// Nothing of a trace is wished for any more.
    pub fn forget_trace(&mut self) {
        self.list.retain(|wish| wish.point().is_none() && !matches!(wish.at, At::Calls(_)));
    }

    /// The calls that are told.
    pub fn calls(&self) -> Option<Wanted> {
        self.list.iter().find_map(|wish| match &wish.at {
            At::Calls(wanted) => Some(wanted.clone()),
            _ => None,
        })
    }

    /// Whether a map has a file that a wish is in.
    pub fn are_in(&self, map: &SourceMap) -> bool {
        self.list.iter().any(|wish| matches!(&wish.at, At::Line { real, .. } if map.has(real)))
    }
}

/// `>=3`, `3`.
fn least(text: &str) -> Option<u64> {
    text.trim().trim_start_matches(['>', '=']).trim().parse().ok()
}

impl Bridge {
    pub async fn set_breakpoints(self: &Rc<Self>, arguments: &Value) -> Value {
        let file = arguments.pointer("/source/path").and_then(Value::as_str).unwrap_or_default();
        let (file, real) = (PathBuf::from(file), urls::real(Path::new(file)));
        let asked = arguments.get("breakpoints").and_then(Value::as_array).cloned().unwrap_or_default();
        let wanted: Vec<(At, &Value)> = asked
            .iter()
            .map(|asked| {
                let line = asked.get("line").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
                (At::Line { file: file.clone(), real: real.clone(), line: line.unwrap_or_default() }, asked)
            })
            .collect();
        let of_file = |at: &At| matches!(at, At::Line { real: known, .. } if *known == real);
        let made = self.wishes.borrow_mut().replace(of_file, &wanted);
        self.place_all(made).await
    }

    pub async fn set_function_breakpoints(self: &Rc<Self>, arguments: &Value) -> Value {
        let asked = arguments.get("breakpoints").and_then(Value::as_array).cloned().unwrap_or_default();
        let name = |asked: &Value| asked.get("name").and_then(Value::as_str).unwrap_or_default().to_string();
        let wanted: Vec<(At, &Value)> = asked.iter().map(|asked| (At::Function(name(asked)), asked)).collect();
        let made = self.wishes.borrow_mut().replace(|at| matches!(at, At::Function(_)), &wanted);
        self.place_all(made).await
    }

    async fn place_all(self: &Rc<Self>, made: Vec<Rc<Wish>>) -> Value {
        self.in_all(|bridge, target| async move { bridge.sync(&target).await }).await;
        json!({ "breakpoints": made.iter().map(|wish| self.told(wish)).collect::<Vec<_>>() })
    }

    /// Does something in every thread at once, and waits for those that answer.
    pub async fn in_all<F: Future<Output = ()> + 'static>(self: &Rc<Self>, task: impl Fn(Rc<Self>, Rc<Target>) -> F) {
        let targets = self.all_targets().into_iter();
        let tasks: Vec<_> = targets.map(|target| tokio::task::spawn_local(task(self.clone(), target))).collect();
        // A thread that waits for another process answers when that is done, which may want this very breakpoint.
        let deadline = tokio::time::Instant::now() + PATIENCE;
        for task in tasks {
            let _ = tokio::time::timeout_at(deadline, task).await;
        }
    }

    /// Brings an inspector in line with the wishes.
    pub async fn sync(&self, target: &Target) {
        let _alone = target.syncing.lock().await;
        self.learn(target).await;
        let desired = self.desired(target);
        let mut removed = Vec::new();
        target.placed.borrow_mut().retain(|site, placed| {
            let stays = desired.get(site).is_some_and(|(_, condition)| *condition == placed.condition);
            if !stays {
                removed.push(target.wire.call("Debugger.removeBreakpoint", json!({ "breakpointId": placed.id })));
            }
            stays
        });
        let mut added = Vec::new();
        for (site, (wishes, condition)) in desired {
            if let Some(placed) = target.placed.borrow_mut().get_mut(&site) {
                placed.wishes = wishes;
                continue;
            }
            let scripts = if site.is_pattern { "urlRegex" } else { "url" };
            let params = json!({
                scripts: site.url, "lineNumber": site.spot.0, "columnNumber": site.spot.1, "condition": condition,
            });
            added.push((site, wishes, condition, target.wire.call("Debugger.setBreakpointByUrl", params)));
        }
        for removal in removed {
            let _ = removal.await;
        }
        for (site, wishes, condition, answer) in added {
            let Ok(answer) = answer.await else { continue };
            let id = answer.get("breakpointId").and_then(Value::as_str).unwrap_or_default().to_string();
            for location in answer.get("locations").and_then(Value::as_array).into_iter().flatten() {
                self.bind(target, &wishes, location, site.is_pattern);
            }
            let length = u64::try_from(condition.encode_utf16().count()).unwrap_or_default();
            target.placed.borrow_mut().insert(site, Placed { id, condition, length, wishes });
        }
        self.arm(target).await;
    }

    /// Where breakpoints are to be in a target: the wishes at each place, and the condition for the inspector.
    fn desired(&self, target: &Target) -> BTreeMap<Site, (Vec<i64>, String)> {
        let wishes = self.wishes.borrow();
        let units = target.units.borrow();
        let mut sites: BTreeMap<Site, Vec<&Rc<Wish>>> = BTreeMap::new();
        for wish in &wishes.list {
            match &wish.at {
                At::Line { real, line, .. } => {
                    let line = line.saturating_sub(1);
                    let mut own_place = true;
                    for (url, unit) in units.iter() {
                        let Some(map) = unit.map.as_ref().filter(|map| map.has(real)) else { continue };
                        // The script of this very file is generated code: its lines are not the file's.
                        own_place &= urls::path_of(url).is_none_or(|path| path != *real);
                        if let Some((spot, _)) = map.generated(real, line) {
                            sites.entry(Site { url: url.clone(), is_pattern: false, spot }).or_default().push(wish);
                        }
                    }
                    if own_place {
                        let site = Site { url: urls::pattern_of(real), is_pattern: true, spot: (line, 0) };
                        sites.entry(site).or_default().push(wish);
                    }
                }
                At::Calls(wanted) => {
                    for site in calls::sites(wanted, &units) {
                        sites.entry(site).or_default().push(wish);
                    }
                }
                At::Function(name) => {
                    let (owner, name) = name.rsplit_once('.').map_or((None, name.as_str()), |(o, n)| (Some(o), n));
                    for (url, unit) in units.iter() {
                        let is_meant = |function: &Function| {
                            function.name == name && owner.is_none_or(|owner| function.owner.as_deref() == Some(owner))
                        };
                        for (_, spot) in unit.functions.iter().filter(|(function, _)| is_meant(function)) {
                            let site = Site { url: url.clone(), is_pattern: false, spot: *spot };
                            sites.entry(site).or_default().push(wish);
                        }
                    }
                }
            }
        }
        let trace = self.trace.borrow();
        let made = |(site, wishes): (Site, Vec<&Rc<Wish>>)| {
            (site, (wishes.iter().map(|wish| wish.id).collect(), condition(&wishes, trace.as_deref())))
        };
        sites.into_iter().map(made).collect()
    }

    /// The inspector found the place of a breakpoint in a script.
    pub fn on_resolved(&self, target: &Target, params: &Value) {
        let id = params.get("breakpointId").and_then(Value::as_str).unwrap_or_default();
        let found = {
            let placed = target.placed.borrow();
            let of_id = placed.iter().find(|(_, placed)| placed.id == id);
            of_id.map(|(site, placed)| (site.is_pattern, placed.wishes.clone()))
        };
        if let (Some((by_address, wishes)), Some(location)) = (found, params.get("location")) {
            self.bind(target, &wishes, location, by_address);
        }
    }

    /// `by_address` says that the breakpoint is on the lines of the file itself.
    fn bind(&self, target: &Target, wishes: &[i64], location: &Value, by_address: bool) {
        let number = |name: &str| {
            location.get(name).and_then(Value::as_u64).and_then(|number| u32::try_from(number).ok()).unwrap_or_default()
        };
        let id = location.get("scriptId").and_then(Value::as_str).unwrap_or_default();
        let Some(script) = target.script(id) else { return };
        let place = script.place((number("lineNumber"), number("columnNumber")));
        let Some(path) = place.path else { return };
        for id in wishes {
            let wish = self.wishes.borrow().list.iter().find(|wish| wish.id == *id).cloned();
            let Some(wish) = wish else { continue };
            // Not yet known to be generated code: it will be looked at before it runs.
            let generated = |real: &Path| script.map().is_some_and(|map| map.has(real));
            if by_address && matches!(&wish.at, At::Line { real, .. } if generated(real)) {
                continue;
            }
            if matches!(wish.at, At::Calls(_)) {
                continue;
            }
            let bound = Some((path.clone(), place.line));
            if wish.bound.replace(bound.clone()) != bound {
                let told = self.told(&wish);
                self.event("breakpoint", json!({ "reason": "changed", "breakpoint": told }));
            }
        }
    }

    /// What is known of a wish, for the client.
    fn told(&self, wish: &Wish) -> Value {
        let bound = wish.bound.borrow().clone();
        let (verified, line, file, message) = match (&wish.at, bound) {
            (At::Line { file, .. }, Some((_, line))) => (true, Some(line), Some(file.clone()), None),
            (At::Function(_), Some((file, line))) => (true, Some(line), Some(file), None),
            (At::Line { file, line, .. }, None) => match self.foresee_line(file, *line) {
                Ok(line) => (true, Some(line), Some(file.clone()), None),
                Err(message) => (false, None, Some(file.clone()), Some(message)),
            },
            (At::Calls(_), _) => (true, None, None, None),
            (At::Function(name), None) => match self.foresee_function(name) {
                Some((file, line)) => (true, Some(line), Some(file), None),
                None => (false, None, None, Some("no script with a function of that name is loaded yet".to_string())),
            },
        };
        let mut told = json!({ "id": wish.id, "verified": verified });
        if let Some(line) = line {
            told["line"] = json!(line);
        }
        if let Some(file) = file {
            told["source"] = json!({ "path": file });
        }
        if let Some(message) = message {
            told["message"] = json!(message);
        }
        told
    }

    /// The line where a breakpoint will be once its file is run.
    fn foresee_line(&self, file: &Path, line: u32) -> Result<u32, String> {
        let text = std::fs::read_to_string(file).map_err(|error| format!("the file can't be read: {error}"))?;
        let found = Code::new(&text).line_with_code(line.saturating_sub(1));
        found.map(|line| line + 1).ok_or_else(|| "there is no code at that line or after it".into())
    }

    /// The function in the program's own file, which is not run yet.
    fn foresee_function(&self, name: &str) -> Option<(PathBuf, u32)> {
        let file = self.program.borrow().clone()?;
        let text = std::fs::read_to_string(&file).ok().filter(|text| text.len() < 4 << 20)?;
        let name = name.rsplit('.').next().unwrap_or(name);
        let function = Code::new(&text).functions().into_iter().find(|function| function.name == name)?;
        Some((file, Lines::new(&text).spot(function.body).0 + 1))
    }

    /// The wishes that a pause of the inspector is a hit of; passes that don't count yet are counted. Answers what was
    /// wrong with a condition, too.
    pub async fn hits(&self, target: &Target, ids: &[&str], frame: &str) -> (Vec<i64>, Option<String>) {
        let wishes = self.wishes_at(target, ids);
        let mut hits = Vec::new();
        let mut failed = None;
        let several = wishes.len() > 1;
        let asked = |wish: &Rc<Wish>| wish.point().is_none() && !matches!(wish.at, At::Calls(_));
        for wish in wishes.into_iter().filter(asked) {
            if let Some(text) = &wish.condition {
                if several && !self.is_true(target, text, frame).await {
                    continue;
                }
                failed = failed.or(self.failure(target, frame).await);
            }
            wish.passes.set(wish.passes.get() + 1);
            if wish.passes.get() >= wish.least {
                hits.push(wish.id);
            }
        }
        (hits, failed)
    }

    /// The wishes that breakpoints of the inspector stand for.
    pub fn wishes_at(&self, target: &Target, ids: &[&str]) -> Vec<Rc<Wish>> {
        let placed = target.placed.borrow();
        let hit = placed.values().filter(|placed| ids.contains(&placed.id.as_str()));
        let wanted: Vec<i64> = hit.flat_map(|placed| placed.wishes.iter().copied()).collect();
        self.wishes.borrow().list.iter().filter(|wish| wanted.contains(&wish.id)).cloned().collect()
    }

    /// Counts a pass that is too early to stop at, where that is all that a pause is: there may be very many.
    pub fn is_early(&self, target: &Target, params: &Value) -> bool {
        let is_plain = params.get("reason").and_then(Value::as_str) == Some("other");
        let ids = params.get("hitBreakpoints").and_then(Value::as_array).filter(|ids| is_plain && !ids.is_empty());
        let Some(ids) = ids else { return false };
        let placed = target.placed.borrow();
        let wishes = self.wishes.borrow();
        let early = |id: &Value| {
            let placed = placed.values().find(|placed| Some(placed.id.as_str()) == id.as_str())?;
            // The condition of one wish was seen to by the inspector.
            let [only] = placed.wishes[..] else { return None };
            wishes.list.iter().find(|wish| wish.id == only && wish.passes.get() + 1 < wish.least)
        };
        let Some(early) = ids.iter().map(early).collect::<Option<Vec<_>>>() else { return false };
        early.iter().for_each(|wish| wish.passes.set(wish.passes.get() + 1));
        true
    }

    pub async fn is_true(&self, target: &Target, condition: &str, frame: &str) -> bool {
        let params = json!({ "callFrameId": frame, "expression": guarded(condition), "silent": true });
        let answer = target.wire.call("Debugger.evaluateOnCallFrame", params).await.unwrap_or_default();
        answer.pointer("/result/value").and_then(Value::as_bool).unwrap_or(true)
    }

    /// What the condition that was just evaluated threw.
    async fn failure(&self, target: &Target, frame: &str) -> Option<String> {
        let expression = format!(
            "(key => {{ const thrown = globalThis[key]; delete globalThis[key]; \
             return thrown ? String(thrown[0]) : '' }})({FAILED})"
        );
        let params = json!({ "callFrameId": frame, "expression": expression, "silent": true });
        let answer = target.wire.call("Debugger.evaluateOnCallFrame", params).await.ok()?;
        answer.pointer("/result/value")?.as_str().filter(|text| !text.is_empty()).map(ToString::to_string)
    }
}

/// Where a condition that throws leaves what it threw.
const FAILED: &str = "Symbol.for('bugeye.condition')";

/// A condition that throws stops, and leaves a note: it must not be a silent miss.
fn guarded(condition: &str) -> String {
    format!(
        "(() => {{ try {{ return !!({condition}\n) }} catch (e) {{ globalThis[{FAILED}] = [e]; return true }} }})()"
    )
}

/// The condition of all wishes at one place. Those that are traced see every pass, whatever the others say.
fn condition(wishes: &[&Rc<Wish>], trace: Option<&Trace>) -> String {
    let (traced, others): (Vec<&Rc<Wish>>, Vec<&Rc<Wish>>) = wishes.iter().partition(|wish| wish.point().is_some());
    let conditions: Vec<String> = others.iter().filter_map(|wish| wish.condition.as_deref()).map(guarded).collect();
    let always = conditions.len() < others.len();
    let asked = traced.iter().filter_map(|wish| wish.point());
    let is_only = wishes.len() == 1;
    let mut parts: Vec<String> =
        asked.map(|point| trace.map_or("false", |trace| trace.condition(point, is_only)).to_string()).collect();
    match (parts.as_slice(), is_only) {
        ([], _) => return if always { String::new() } else { conditions.join(" || ") },
        ([only], true) => return only.clone(),
        _ => {}
    }
    parts.push(if always { "true".into() } else { conditions.join(" || ") });
    let parts: Vec<String> = parts.iter().filter(|part| !part.is_empty()).map(|part| format!("({part})")).collect();
    format!("!!({})", parts.join("|"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_that_has_not_changed_goes_on_counting() {
        let mut wishes = Wishes::default();
        let at = |line| At::Line { file: "/a.js".into(), real: "/a.js".into(), line };
        let (plain, fourth) = (json!({}), json!({ "hitCondition": ">=4" }));
        let first = wishes.replace(|_| true, &[(at(1), &plain), (at(2), &fourth)]);
        first[1].passes.set(2);
        let again = wishes.replace(|_| true, &[(at(2), &fourth), (at(3), &plain)]);
        assert_eq!((again[0].id, again[0].passes.get(), again[0].least), (first[1].id, 2, 4));
        assert_eq!((again[1].id, wishes.list.len()), (3, 2));
    }

    #[test]
    fn one_wish_without_a_condition_makes_a_place_unconditional() {
        let mut wishes = Wishes::default();
        let at = At::Function("f".into());
        let (plain, conditional) = (json!({}), json!({ "condition": "x > 1" }));
        let made = wishes.replace(|_| true, &[(at.clone(), &conditional), (at, &plain)]);
        assert!(condition(&[&made[0]], None).contains("x > 1"));
        assert_eq!(condition(&[&made[0], &made[1]], None), "");
    }
}
