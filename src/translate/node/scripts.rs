//! Being there before a script runs, to put breakpoints where only its source or its map tells.
//!
//! Modules of the older kind are compiled by one function of Node, which is given their source: a breakpoint on it sees
//! each of them first. Other scripts are announced by the engine right before they run. Both cost a pause, so they are set
//! only while there is something to look for, and only for what may have it.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Value, json};

use super::breakpoints::Unit;
use super::sourcemap::SourceMap;
use super::target::{Doing, Pause, Script, Step, Target, is_package};
use super::{Bridge, urls};

/// The script that the program's first statement is found with.
const ENTRY: &str = "bugeye:entry";
/// What a module of the older kind is wrapped in.
const WRAPPER: &str = "(function (exports, require, module, __filename, __dirname) { ";

impl Bridge {
    /// Sets the traps that are needed now, and takes away the others.
    pub async fn arm(&self, target: &Target) {
        let (everything, anything, packages) = {
            let wishes = self.wishes.borrow();
            let everything = wishes.has_functions() || self.entry.borrow().is_some();
            (everything, everything || !wishes.list.is_empty(), wishes.reach_packages())
        };
        let mut condition = String::from("typeof arguments[0] === 'string'");
        if !everything {
            condition.push_str(" && arguments[0].includes('sourceMappingURL=')");
        }
        if !packages {
            condition.push_str(" && !String(arguments[1]).includes('/node_modules/')");
        }
        self.trap_compiler(target, anything.then_some(condition)).await;
        let script = match (everything, anything) {
            (true, _) => Some("beforeScriptExecution"),
            (_, true) => Some("beforeScriptWithSourceMapExecution"),
            _ => None,
        };
        let old = target.traps.borrow().script.clone();
        if old.as_ref().map(|(_, kind)| *kind) == script {
            return;
        }
        if let Some((id, _)) = old {
            let _ = target.wire.call("Debugger.removeBreakpoint", json!({ "breakpointId": id })).await;
        }
        target.traps.borrow_mut().script = None;
        if let Some(kind) = script {
            let params = json!({ "instrumentation": kind });
            if let Ok(id) = breakpoint_id(target.wire.call("Debugger.setInstrumentationBreakpoint", params).await) {
                target.traps.borrow_mut().script = Some((id, kind));
            }
        }
    }

    async fn trap_compiler(&self, target: &Target, condition: Option<String>) {
        let old = target.traps.borrow().compile.clone();
        if old.as_ref().map(|(_, condition)| condition) == condition.as_ref() {
            return;
        }
        if let Some((id, _)) = old {
            let _ = target.wire.call("Debugger.removeBreakpoint", json!({ "breakpointId": id })).await;
        }
        target.traps.borrow_mut().compile = None;
        let Some(condition) = condition else { return };
        let expression = "require('module').prototype._compile";
        let params = json!({ "expression": expression, "includeCommandLineAPI": true, "silent": true, "objectGroup": "bugeye-own" });
        let Ok(answer) = target.wire.call("Runtime.evaluate", params).await else { return };
        let Some(object) = answer.pointer("/result/objectId") else { return };
        let params = json!({ "objectId": object, "condition": condition });
        if let Ok(id) = breakpoint_id(target.wire.call("Debugger.setBreakpointOnFunctionCall", params).await) {
            target.traps.borrow_mut().compile = Some((id, condition));
        }
    }

    /// Node is about to compile a module: its source is an argument.
    pub async fn before_compiling(&self, target: &Target, pause: &Pause) {
        let Some(frame) = pause.frames.first() else { return };
        let wants_source = self.wishes.borrow().has_functions() || self.entry.borrow().is_some();
        let source = if wants_source { "arguments[0]" } else { "''" };
        let expression = format!(
            "[String(arguments[1]), (text => {{ const at = text.lastIndexOf('//# sourceMappingURL='); \
             return at < 0 ? '' : text.slice(at + 21) }})(arguments[0]), {source}]"
        );
        let params =
            json!({ "callFrameId": frame.id, "expression": expression, "returnByValue": true, "silent": true });
        let Ok(answer) = target.wire.call("Debugger.evaluateOnCallFrame", params).await else { return };
        let text = |index: usize| {
            answer.pointer(&format!("/result/value/{index}")).and_then(Value::as_str).unwrap_or_default()
        };
        let (file, map_url, source) = (PathBuf::from(text(0)), text(1).trim(), text(2));
        let url = urls::url_of(&file);
        let map = if map_url.is_empty() { None } else { SourceMap::load(&url, map_url).map(Rc::new) };
        if self.is_entry(&file) {
            let first = match beginning(map.as_deref(), &file) {
                Some(first) => Some(first),
                None => self.first_statement(target, source).await,
            };
            self.enter_at(target, &url, first.unwrap_or((0, 0))).await;
        }
        self.add_unit(target, &url, map, Some(source).filter(|source| !source.is_empty()));
        self.sync(target).await;
    }

    /// A script is about to run.
    pub async fn before_running(&self, target: &Target, script: &Script, pause: &Pause) -> bool {
        let reaches_packages = self.wishes.borrow().reach_packages();
        if script.is_internal() || (is_package(&script.url) && !reaches_packages) {
            return false;
        }
        let wants_source = self.wishes.borrow().has_functions();
        let source = if wants_source { script.source(&target.wire).await } else { None };
        self.add_unit(target, &script.url, script.map().cloned(), source.as_deref());
        let mut is_here = false;
        if script.path.as_deref().is_some_and(|path| self.is_entry(path)) {
            let start = json!({ "scriptId": script.id, "lineNumber": 0, "columnNumber": 0 });
            let params = json!({ "start": start, "restrictToFunction": true });
            let answer = target.wire.call("Debugger.getPossibleBreakpoints", params).await.unwrap_or_default();
            let mapped = script.path.as_deref().and_then(|path| beginning(script.map().map(Rc::as_ref), path));
            let first = mapped.or_else(|| first_location(&answer)).unwrap_or((0, 0));
            is_here = pause.frames.first().is_some_and(|frame| frame.spot == first);
            if is_here {
                *self.entry.borrow_mut() = None;
            } else {
                self.enter_at(target, &script.url, first).await;
            }
        }
        self.sync(target).await;
        is_here
    }

    /// Keeps what a script tells of places, if a breakpoint may be there.
    fn add_unit(&self, target: &Target, url: &str, map: Option<Rc<SourceMap>>, source: Option<&str>) {
        let map = map.filter(|map| self.wishes.borrow().are_in(map));
        if map.is_some() || source.is_some() {
            target.units.borrow_mut().insert(url.to_string(), Rc::new(Unit::new(map, source)));
        }
    }

    /// Looks at scripts that are there already for new wishes.
    pub async fn learn(&self, target: &Target) {
        let (functions, packages, any) = {
            let wishes = self.wishes.borrow();
            (wishes.has_functions(), wishes.reach_packages(), !wishes.list.is_empty())
        };
        if !any {
            return;
        }
        let scripts: Vec<Rc<Script>> = target.scripts.borrow().values().cloned().collect();
        for script in scripts {
            if script.path.is_none() || script.is_internal() || (is_package(&script.url) && !packages) {
                continue;
            }
            let known = target.units.borrow().get(&script.url).cloned();
            let scanned = known.as_ref().is_some_and(|unit| unit.scanned);
            let mapped = known.as_ref().is_some_and(|unit| unit.map.is_some());
            let map = script.map().filter(|map| !mapped && self.wishes.borrow().are_in(map)).cloned();
            let wants_source = functions && !scanned && script.is_own();
            if map.is_none() && !wants_source {
                continue;
            }
            let source = if functions { script.source(&target.wire).await } else { None };
            let map = map.or_else(|| known.and_then(|unit| unit.map.clone()));
            target.units.borrow_mut().insert(script.url.clone(), Rc::new(Unit::new(map, source.as_deref())));
        }
    }

    /// Whether the program begins in this file: the one that was named, or, where that is a package's, the first that
    /// is not.
    fn is_entry(&self, file: &Path) -> bool {
        match &*self.entry.borrow() {
            None => false,
            Some(program) if is_package(&program.to_string_lossy()) => !is_package(&file.to_string_lossy()),
            Some(program) => file == program || urls::real(file) == *program,
        }
    }

    async fn enter_at(&self, target: &Target, url: &str, spot: (u32, u32)) {
        *self.entry.borrow_mut() = None;
        let params = json!({ "url": url, "lineNumber": spot.0, "columnNumber": spot.1 });
        if let Ok(id) = breakpoint_id(target.wire.call("Debugger.setBreakpointByUrl", params).await) {
            target.traps.borrow_mut().entry = Some(id);
        }
    }

    /// Where the first statement of a module's own code is: the engine is asked, with the same code.
    async fn first_statement(&self, target: &Target, source: &str) -> Option<(u32, u32)> {
        let expression = format!("{WRAPPER}{source}\n}})\n//# sourceURL={ENTRY}");
        let params = json!({ "expression": expression, "silent": true, "objectGroup": super::GROUP });
        target.wire.call("Runtime.evaluate", params).await.ok()?;
        let scripts: Vec<Rc<Script>> =
            target.scripts.borrow().values().filter(|script| script.url == ENTRY).cloned().collect();
        let id = &scripts.first()?.id;
        let shift = u32::try_from(WRAPPER.len()).unwrap_or_default();
        let start = json!({ "scriptId": id, "lineNumber": 0, "columnNumber": shift });
        let params = json!({ "start": start, "restrictToFunction": true });
        let answer = target.wire.call("Debugger.getPossibleBreakpoints", params).await.ok()?;
        let (line, column) = first_location(&answer)?;
        Some((line, if line == 0 { column.saturating_sub(shift) } else { column }))
    }

    /// The trap on the first line was reached.
    pub async fn entered(&self, target: &Target, pause: &Pause) -> Option<Step> {
        let id = target.traps.borrow_mut().entry.take()?;
        let _ = target.wire.call("Debugger.removeBreakpoint", json!({ "breakpointId": id })).await;
        self.arm(target).await;
        // Code of the generator's own comes before the program's.
        let top = pause.frames.first().filter(|frame| frame.place.unmapped)?;
        let step = Step {
            method: "Debugger.stepOver",
            depth: pause.frames.len(),
            place: top.place.clone(),
            again: 0,
            is_entry: true,
        };
        *target.doing.borrow_mut() = Doing::Stepping(step.clone());
        Some(step)
    }
}

/// Where the first code of a file is in what was generated from it; before it is code of the generator's own.
fn beginning(map: Option<&SourceMap>, file: &Path) -> Option<(u32, u32)> {
    map?.generated(file, 0).map(|(spot, _)| spot)
}

fn breakpoint_id(answer: Result<Value, String>) -> Result<String, String> {
    let answer = answer?;
    answer.get("breakpointId").and_then(Value::as_str).map(ToString::to_string).ok_or_else(|| "no id".into())
}

fn first_location(answer: &Value) -> Option<(u32, u32)> {
    let location = answer.get("locations")?.as_array()?.first()?;
    let number = |name: &str| u32::try_from(location.get(name)?.as_u64()?).ok();
    Some((number("lineNumber")?, number("columnNumber").unwrap_or_default()))
}
