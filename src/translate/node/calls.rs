//! Calls of functions: each one that is meant pauses where it begins and where it returns, which is told, and goes on.
//!
//! Where functions begin is known from their script before it runs; where they return the engine is asked for when one is
//! first entered. A call that was left by an exception is noticed when the next one is told, by the depth of the stack.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::breakpoints::{Placed, Site, Unit};
use super::looking::parameters;
use super::sourcemap::Spot;
use super::syntax::{Code, Function, Lines};
use super::target::{Frame, Pause, Target, is_package};
use super::trace::Trace;
use super::{Bridge, values};
use crate::glob::is_like;
use crate::render::quoted;

/// The wish that stands for all calls.
pub const WISH: i64 = -1;

/// Which calls are told.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Wanted {
    globs: Vec<String>,
    most: u64,
}

/// The calls of one thread.
#[derive(Debug, Default)]
pub struct Calls {
    open: RefCell<Vec<Call>>,
    /// Calls of asynchronous functions and generators that wait.
    waiting: RefCell<Vec<Call>>,
    /// Functions whose returns are known, by script and place.
    known: RefCell<BTreeSet<(String, Spot)>>,
    /// The inspector's breakpoints where functions return.
    returns: RefCell<BTreeSet<String>>,
    /// What was thrown last, since a call was told.
    pub thrown: RefCell<Option<String>>,
}

#[derive(Debug)]
struct Call {
    number: u64,
    /// Frames on the stack, its own included.
    depth: usize,
    function: (String, Spot),
    /// It may be left and come back.
    waits: bool,
}

/// Told calls of all threads.
#[derive(Debug, Default)]
pub struct Count(Cell<u64>);

impl Calls {
    /// Answers the breakpoints that are left at the inspector.
    fn forget(&self) -> BTreeSet<String> {
        self.open.borrow_mut().clear();
        self.waiting.borrow_mut().clear();
        self.known.borrow_mut().clear();
        self.thrown.borrow_mut().take();
        std::mem::take(&mut *self.returns.borrow_mut())
    }
}

impl Wanted {
    /// Whether a glob reaches into packages: it names more than a function, and does not begin with anything at all.
    pub fn reach_packages(&self) -> bool {
        self.globs.iter().any(|glob| names_module(glob))
    }

    pub fn means(&self, url: &str, function: &Function) -> bool {
        let owned = function.owner.as_ref().map(|owner| format!("{owner}.{}", function.name));
        let file = url.rsplit('/').next().unwrap_or(url);
        let stem = file.split('.').next().unwrap_or(file);
        let package = url.rsplit_once("/node_modules/").map(|(_, rest)| rest.split('/').next().unwrap_or(rest));
        self.globs.iter().filter(|glob| !is_package(url) || names_module(glob)).any(|glob| {
            let names = [Some(&function.name), owned.as_ref()];
            let mut names = names.into_iter().flatten().filter(|_| !is_package(url));
            let of = |module: &str| {
                is_like(glob, &format!("{module}.{}", function.name))
                    || owned.as_ref().is_some_and(|owned| is_like(glob, &format!("{module}.{owned}")))
            };
            names.any(|name| is_like(glob, name)) || of(stem) || package.is_some_and(of)
        })
    }
}

fn names_module(glob: &str) -> bool {
    glob.contains('.') && !glob.starts_with('*')
}

impl Bridge {
    /// From now on calls are told, after a trace has begun.
    pub async fn begin_calls(self: &Rc<Self>, words: &str) -> Result<Value, String> {
        let wanted: Wanted = serde_json::from_str(words).map_err(|error| error.to_string())?;
        self.wishes.borrow_mut().want_calls(Some(wanted));
        self.in_all(|bridge, target| async move { bridge.sync(&target).await }).await;
        Ok(json!({ "result": "ok" }))
    }

    /// Calls of a thread are no longer told: nothing of it is left there.
    pub async fn forget_calls(&self, target: &Target) {
        self.sync(target).await;
        let returns = target.calls.forget();
        let removed: Vec<_> = returns
            .into_iter()
            .map(|id| target.wire.call("Debugger.removeBreakpoint", json!({ "breakpointId": id })))
            .collect();
        for removal in removed {
            let _ = removal.await;
        }
    }

    /// A thread paused: where that is the beginning or the end of a call, it is told.
    pub async fn take_calls(self: &Rc<Self>, target: &Rc<Target>, pause: &Pause, ids: &[&str], params: &Value) {
        let (trace, wanted) = (self.trace.borrow().clone(), self.wishes.borrow().calls());
        let (Some(trace), Some(wanted), Some(frame)) = (trace, wanted, pause.frames.first()) else { return };
        let Some(function) = identity(frame) else { return };
        if ids.iter().any(|id| target.calls.returns.borrow().contains(*id)) {
            let value = params.pointer("/callFrames/0/returnValue").cloned();
            return self.left(target, &trace, pause.frames.len(), &function, value).await;
        }
        let site = {
            let placed = target.placed.borrow();
            let is_it = |(_, placed): &(&Site, &Placed)| placed.is_for(ids, WISH);
            placed.iter().find(is_it).map(|(site, _)| site.clone())
        };
        if let Some(site) = site {
            self.entered_call(target, &trace, pause, &site, function.clone()).await;
            // A function without a statement returns where it begins.
            if let Some(value) = params.pointer("/callFrames/0/returnValue") {
                self.left(target, &trace, pause.frames.len(), &function, Some(value.clone())).await;
            }
            if trace.calls.0.get() >= wanted.most {
                // It tells no more than this; breakpoints for the rest are in the way.
                self.wishes.borrow_mut().want_calls(None);
                let others = self.all_targets().into_iter().filter(|other| other.thread != target.thread);
                for other in others {
                    // Not waited for: it may itself wait for this thread.
                    let bridge = self.clone();
                    tokio::task::spawn_local(async move { bridge.forget_calls(&other).await });
                }
                self.forget_calls(target).await;
            }
        }
    }

    async fn entered_call(
        &self,
        target: &Rc<Target>,
        trace: &Trace,
        pause: &Pause,
        site: &Site,
        function: (String, Spot),
    ) {
        let Some(frame) = pause.frames.first() else { return };
        let depth = pause.frames.len();
        let source = match &frame.script {
            Some(script) => script.source(&target.wire).await,
            None => None,
        };
        let (loops, waits) = source.as_ref().map_or((false, false), |source| {
            let mut lines = Lines::new(source);
            let (start, body) = (lines.byte(function.1), lines.byte(site.spot));
            let code = Code::new(source);
            let loops = ["while", "do", "for"].iter().any(|word| source[body..].starts_with(word));
            (loops, code.is_async(start) || code.is_generator(start))
        });
        let again = |call: &Call| call.depth == depth && call.function == function;
        let nothing_thrown = target.calls.thrown.borrow().is_none();
        if loops && nothing_thrown && target.calls.open.borrow().last().is_some_and(again) {
            return;
        }
        self.unwind(target, trace, depth);
        if target.calls.known.borrow_mut().insert(function.clone()) {
            self.find_returns(target, frame).await;
        }
        let mut arguments = Vec::new();
        for name in parameters(target, frame).await.unwrap_or_default() {
            let value = self.read(target, &name).await;
            arguments.push(json!([name, value]));
        }
        let number = trace.calls.0.get() + 1;
        if self.wishes.borrow().calls().is_none_or(|wanted| number > wanted.most) {
            // Another thread's was the last one, meanwhile.
            return;
        }
        trace.calls.0.set(number);
        let owner = target.units.borrow().get(&site.url).and_then(|unit| {
            let of_spot = unit.functions.iter().filter(|(_, spot)| *spot == site.spot);
            of_spot.map(|(function, _)| function.clone()).find(|function| function.owner.is_some())
        });
        let name = match owner {
            Some(Function { owner: Some(owner), name, .. }) if name == frame.function => format!("{owner}.{name}"),
            _ => frame.function.clone(),
        };
        let place = frame.script.as_ref().map_or_else(|| frame.place.clone(), |script| script.place(function.1));
        let file = place.path.as_ref().map_or_else(|| place.url.clone(), |path| path.to_string_lossy().into_owned());
        let told = target.calls.open.borrow().len();
        let record =
            json!(["c", number, trace.micros(), target.thread, told, [quoted(&name), file, place.line], arguments]);
        trace.write(&format!("{record}\n"));
        target.calls.open.borrow_mut().push(Call { number, depth, function, waits });
    }

    /// Calls that are no longer on the stack were left without a return: by an exception, or to wait.
    fn unwind(&self, target: &Target, trace: &Trace, depth: usize) {
        let thrown = target.calls.thrown.borrow_mut().take();
        let mut open = target.calls.open.borrow_mut();
        while open.last().is_some_and(|call| call.depth >= depth) {
            let Some(call) = open.pop() else { return };
            if call.waits {
                target.calls.waiting.borrow_mut().push(call);
                continue;
            }
            let why = thrown.as_ref().map_or_else(|| "raised an exception".into(), |words| format!("raised {words}"));
            trace.write(&format!("{}\n", json!(["r", call.number, trace.micros(), [why]])));
        }
    }

    /// Something was thrown: calls are left as far as nothing catches it.
    pub async fn calls_thrown_through(&self, target: &Rc<Target>, pause: &Pause, exception: &Value) {
        let Some(trace) = self.trace.borrow().clone() else { return };
        if target.calls.open.borrow().is_empty() {
            return;
        }
        let words = words_of(exception);
        *target.calls.thrown.borrow_mut() = Some(words.clone());
        for (index, frame) in pause.frames.iter().enumerate() {
            if self.catches(target, frame, false).await {
                return;
            }
            let depth = pause.frames.len() - index;
            if let Some(call) = target.calls.open.borrow_mut().pop_if(|call| call.depth == depth) {
                let why = format!("raised {words}");
                trace.write(&format!("{}\n", json!(["r", call.number, trace.micros(), [why]])));
            }
            // The promise of an asynchronous function keeps it.
            if self.catches(target, frame, true).await {
                return;
            }
        }
    }

    async fn left(
        &self,
        target: &Rc<Target>,
        trace: &Trace,
        depth: usize,
        function: &(String, Spot),
        value: Option<Value>,
    ) {
        self.unwind(target, trace, depth + 1);
        let is_it = |call: &Call| call.depth == depth && call.function == *function;
        let here = target.calls.open.borrow_mut().pop_if(|call| is_it(call));
        let call = here.or_else(|| {
            let mut waiting = target.calls.waiting.borrow_mut();
            let mut of_function = (0..waiting.len()).filter(|at| waiting[*at].function == *function);
            // Which of several it is can't be told.
            let only = of_function.next().filter(|_| of_function.next().is_none())?;
            Some(waiting.remove(only))
        });
        let Some(call) = call else { return };
        let value = match value {
            Some(value) if value.get("type").and_then(Value::as_str) == Some("undefined") => Value::Null,
            Some(value) => {
                let shown = self.with_preview(target, value).await;
                super::trace::shown(&values::describe(&target.wire, &shown, &Cell::new(1)).await)
            }
            None => Value::Null,
        };
        trace.write(&format!("{}\n", json!(["r", call.number, trace.micros(), value])));
    }

    /// The inspector tells a returned value without a glimpse of its parts.
    async fn with_preview(&self, target: &Target, value: Value) -> Value {
        let Some(id) = value.get("objectId").filter(|_| value.get("preview").is_none()) else { return value };
        let params = json!({
            "objectId": id, "functionDeclaration": "function() { return this; }", "generatePreview": true, "silent": true,
            "objectGroup": super::GROUP,
        });
        let answer = target.wire.call("Runtime.callFunctionOn", params).await.unwrap_or_default();
        answer.get("result").cloned().unwrap_or(value)
    }

    async fn find_returns(&self, target: &Target, frame: &Frame) {
        let (Some(script), Some(start)) = (&frame.script, frame.function_spot) else { return };
        let start = json!({ "scriptId": script.id, "lineNumber": start.0, "columnNumber": start.1 });
        let params = json!({ "start": start, "restrictToFunction": true });
        let answer = target.wire.call("Debugger.getPossibleBreakpoints", params).await.unwrap_or_default();
        let locations = answer.get("locations").and_then(Value::as_array).cloned().unwrap_or_default();
        let asked: Vec<_> = locations
            .into_iter()
            .filter(|location| location.get("type").and_then(Value::as_str) == Some("return"))
            .map(|mut location| {
                location.as_object_mut().map(|fields| fields.remove("type"));
                target.wire.call("Debugger.setBreakpoint", json!({ "location": location }))
            })
            .collect();
        for answer in asked {
            let answer = answer.await.unwrap_or_default();
            if let Some(id) = answer.get("breakpointId").and_then(Value::as_str) {
                target.calls.returns.borrow_mut().insert(id.to_string());
            }
        }
    }
}

/// What was thrown, in few words.
fn words_of(exception: &Value) -> String {
    if exception.get("subtype").and_then(Value::as_str) != Some("error") {
        return values::glimpse(exception);
    }
    let (kind, message) = super::pauses::error_words(exception);
    if message.is_empty() { kind } else { format!("{kind}: {message}") }
}

/// Which function a frame is of.
fn identity(frame: &Frame) -> Option<(String, Spot)> {
    Some((frame.script.as_ref()?.id.clone(), frame.function_spot?))
}

/// Where the functions that are meant begin.
pub fn sites(wanted: &Wanted, units: &BTreeMap<String, Rc<Unit>>) -> Vec<Site> {
    let of_unit = |(url, unit): (&String, &Rc<Unit>)| {
        let meant = unit.functions.iter().filter(|(function, _)| wanted.means(url, function));
        meant.map(|(_, spot)| Site { url: url.clone(), is_pattern: false, spot: *spot }).collect::<Vec<_>>()
    };
    units.iter().flat_map(of_unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_mean_functions_by_name_owner_and_module() {
        let means = |glob: &str, url: &str, owner: Option<&str>, name: &str| {
            let function = Function { name: name.into(), owner: owner.map(Into::into), body: 0 };
            Wanted { globs: vec![glob.into()], most: 1 }.means(url, &function)
        };
        let (own, package) = ("file:///p/shop.js", "file:///p/node_modules/lodash/array.js");
        assert!(means("total", own, None, "total") && means("tot*", own, Some("Cart"), "total"));
        assert!(means("Cart.*", own, Some("Cart"), "total") && means("shop.total", own, None, "total"));
        assert!(means("*", own, None, "total") && means("t?tal", own, None, "total"));
        assert!(!means("Cart.*", own, None, "total") && !means("tot", own, None, "total"));
        assert!(means("lodash.*", package, None, "chunk") && means("array.chunk", package, None, "chunk"));
        assert!(!means("*", package, None, "chunk") && !means("chunk", package, None, "chunk"));
    }
}
