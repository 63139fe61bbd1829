//! Looking at a thread that stands still: its frames, variables and values, and changing them.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use serde_json::{Value, json};

use super::syntax::{Code, Lines};
use super::target::{Frame, Pause, Target, is_package};
use super::values::{self, Part};
use super::{Bridge, GROUP, pauses};

/// Requests that one answer may make for the text of nested values.
const MOST_REQUESTS: u32 = 40;

/// What a reference of the client stands for.
#[derive(Debug, Clone)]
pub enum Handle {
    Scope { frame: usize, kind: Kind },
    Object(Value),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Locals,
    Closure,
    Globals,
}

/// References given to the client; each is good until its thread goes on.
#[derive(Debug, Default)]
pub struct Handles {
    last: i64,
    known: BTreeMap<i64, (i64, Handle)>,
}

impl Handles {
    fn add(&mut self, thread: i64, handle: Handle) -> i64 {
        self.last += 1;
        self.known.insert(self.last, (thread, handle));
        self.last
    }

    pub fn forget(&mut self, thread: i64) {
        self.known.retain(|_, (of, _)| *of != thread);
    }
}

/// Frames have numbers of their own: the thread's and the frame's in one.
const FRAMES: i64 = 1 << 20;

/// What Node wraps a module in.
const FURNITURE: [&str; 5] = ["exports", "require", "module", "__filename", "__dirname"];

impl Bridge {
    pub fn stack(&self, arguments: &Value) -> Result<Value, String> {
        let target = self.target(arguments)?;
        let pause = target.pause().ok_or("the thread is running")?;
        let number =
            |name: &str| arguments.get(name).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
        let (start, levels) = (number("startFrame").unwrap_or(0), number("levels").filter(|levels| *levels > 0));
        // Packages are of interest where the thread stands in one by itself.
        let hides_packages = pause.exception.is_some() || pause.frames.first().is_some_and(Frame::is_own);
        let frames = pause.frames.iter().enumerate().skip(start).take(levels.unwrap_or(usize::MAX));
        let shown = frames.map(|(index, frame)| {
            let id = target.thread * FRAMES + i64::try_from(index).unwrap_or_default();
            if pause.is_idle && index == 0 {
                return json!({ "id": id, "name": "(idle)", "line": 0, "column": 0, "presentationHint": "subtle" });
            }
            let name = frame
                .place
                .path
                .as_ref()
                .map_or_else(|| frame.place.url.clone(), |path| path.to_string_lossy().into_owned());
            let short = name.rsplit('/').next().unwrap_or(&name);
            let mut source = json!({ "name": short, "path": name });
            if let (None, Some(script)) = (&frame.place.path, &frame.script) {
                source["sourceReference"] = json!(script.id.parse::<i64>().unwrap_or_default());
            }
            let place = &frame.place;
            let mut shown = json!({
                "id": id, "name": frame.function, "source": source, "line": place.line, "column": place.column,
            });
            if hides_packages && is_package(&place.url) {
                shown["presentationHint"] = json!("subtle");
            }
            shown
        });
        Ok(json!({ "stackFrames": shown.collect::<Vec<_>>(), "totalFrames": pause.frames.len() }))
    }

    /// The thread and the frame of a frame's number.
    fn frame(&self, id: i64) -> Result<(Rc<Target>, Rc<Pause>, usize), String> {
        let target = self.targets.borrow().get(&(id / FRAMES)).cloned().ok_or("there is no such frame")?;
        let pause = target.pause().ok_or("the thread is running")?;
        let index = usize::try_from(id % FRAMES).unwrap_or_default();
        if index >= pause.frames.len() {
            return Err("there is no such frame".into());
        }
        Ok((target, pause, index))
    }

    pub fn scopes(&self, arguments: &Value) -> Result<Value, String> {
        let id = arguments.get("frameId").and_then(Value::as_i64).unwrap_or_default();
        let (target, pause, frame) = self.frame(id)?;
        let mut handles = self.handles.borrow_mut();
        let mut scope = |name: &str, kind: Kind, hint: Option<&str>| {
            let reference = handles.add(target.thread, Handle::Scope { frame, kind });
            json!({ "name": name, "presentationHint": hint, "variablesReference": reference, "expensive": kind == Kind::Globals })
        };
        let mut scopes = vec![scope("Locals", Kind::Locals, Some("locals"))];
        if !objects(&pause.frames[frame], Kind::Closure).is_empty() {
            scopes.push(scope("Closure", Kind::Closure, None));
        }
        scopes.push(scope("Globals", Kind::Globals, None));
        Ok(json!({ "scopes": scopes }))
    }

    pub async fn variables(&self, arguments: &Value) -> Result<Value, String> {
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
        let reference = arguments.get("variablesReference").and_then(Value::as_i64).unwrap_or_default();
        let known = self.handles.borrow().known.get(&reference).cloned();
        let (thread, handle) = known.ok_or("that value is from an earlier stop")?;
        let target = self.targets.borrow().get(&thread).cloned().ok_or("the thread has ended")?;
        let (start, count) =
            (number("start").unwrap_or(0), number("count").filter(|count| *count > 0).unwrap_or(u64::MAX));
        let parts = match handle {
            Handle::Scope { frame, kind } => {
                let pause = target.pause().ok_or("the thread is running")?;
                scope_parts(&target, &pause, frame, kind).await?
            }
            Handle::Object(object) => children(&target, &object, start, count).await?,
        };
        let requests = Cell::new(MOST_REQUESTS);
        let mut variables = Vec::new();
        for part in parts {
            variables.push(self.variable(&target, &part, &requests).await);
        }
        Ok(json!({ "variables": variables }))
    }

    async fn variable(&self, target: &Target, part: &Part, requests: &Cell<u32>) -> Value {
        let mut shown = self.value(target, &part.value, requests).await;
        shown["name"] = json!(part.name);
        shown["value"] = shown["result"].take();
        shown
    }

    /// A value as an answer to `evaluate` has it.
    async fn value(&self, target: &Target, object: &Value, requests: &Cell<u32>) -> Value {
        let text = values::describe(&target.wire, object, requests).await;
        let mut shown = json!({ "result": text, "type": values::kind(object), "variablesReference": 0 });
        let is_plain = object.get("type").and_then(Value::as_str) == Some("function");
        if object.get("objectId").is_some() && !is_plain {
            let reference = self.handles.borrow_mut().add(target.thread, Handle::Object(object.clone()));
            shown["variablesReference"] = json!(reference);
            if let Some(length) = values::length(object) {
                shown["indexedVariables"] = json!(length);
            }
        }
        shown
    }

    pub async fn evaluate(self: &Rc<Self>, arguments: &Value) -> Result<Value, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let (expression, context) = (text("expression"), text("context"));
        let frame = arguments.get("frameId").and_then(Value::as_i64);
        if let Some(words) = expression.strip_prefix(super::target::OWN) {
            return self.own_question(words, frame).await;
        }
        let pure = context != "repl";
        let (target, object) = self.run(expression, frame, pure).await?;
        let mut shown = self.value(&target, &object, &Cell::new(MOST_REQUESTS)).await;
        if context == "repl" && object.get("type").and_then(Value::as_str) == Some("undefined") {
            shown["result"] = json!("undefined");
        }
        Ok(shown)
    }

    /// Evaluates in a frame, or in the program at large.
    async fn run(&self, expression: &str, frame: Option<i64>, pure: bool) -> Result<(Rc<Target>, Value), String> {
        let mut params = json!({
            "expression": expression,
            "objectGroup": GROUP,
            "includeCommandLineAPI": !pure,
            "silent": true,
            "generatePreview": true,
            "throwOnSideEffect": pure,
        });
        let (target, answer) = match frame {
            Some(id) => {
                let (target, pause, index) = self.frame(id)?;
                params["callFrameId"] = json!(pause.frames[index].id);
                let answer = target.wire.call("Debugger.evaluateOnCallFrame", params).await?;
                (target, answer)
            }
            None => {
                let target = self.first_target().ok_or("the program has not begun")?;
                let answer = target.wire.call("Runtime.evaluate", params).await?;
                (target, answer)
            }
        };
        if let Some(details) = answer.get("exceptionDetails") {
            return Err(complaint(details));
        }
        Ok((target, answer.get("result").cloned().unwrap_or_default()))
    }

    /// Whether an expression can be parsed.
    pub async fn compile(&self, expression: &str) -> Result<(), String> {
        let target = self.first_target().ok_or("the program has not begun")?;
        // A function that is never called: only its syntax is looked at.
        let params = json!({ "expression": format!("void (() => ({expression}\n))"), "silent": true });
        let answer = target.wire.call("Runtime.evaluate", params).await?;
        answer.get("exceptionDetails").map_or(Ok(()), |details| Err(complaint(details)))
    }

    /// The text of an expression's value in a thread's innermost frame, as `print` has it.
    pub async fn print(&self, target: &Rc<Target>, expression: &str) -> Result<String, String> {
        let (_, object) = self.run(expression, Some(target.thread * FRAMES), true).await?;
        Ok(values::describe(&target.wire, &object, &Cell::new(MOST_REQUESTS)).await)
    }

    /// Questions that the adapter's own file asks in place of an expression.
    async fn own_question(self: &Rc<Self>, words: &str, frame: Option<i64>) -> Result<Value, String> {
        let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
        match word {
            "compile" => {
                self.compile(rest).await?;
                Ok(json!({ "result": "ok" }))
            }
            "trace" => self.begin_trace(rest).await,
            "calls" => self.begin_calls(rest).await,
            "untrace" => Ok(self.end_trace().await),
            "arguments" => {
                let (target, pause, index) = self.frame(frame.unwrap_or_default())?;
                let names = parameters(&target, &pause.frames[index]).await.unwrap_or_default();
                let names: Vec<String> = names.iter().map(|name| values::quoted(name)).collect();
                Ok(json!({ "result": format!("[{}]", names.join(", ")) }))
            }
            "thrown" => {
                let (target, pause, _) = self.frame(frame.unwrap_or_default())?;
                let exception = pause.exception.as_ref().ok_or("nothing was thrown")?;
                Ok(json!({ "result": ancestors(&target, exception).await }))
            }
            "cdp" => {
                let (method, params) = rest.split_once(' ').unwrap_or((rest, "{}"));
                let params =
                    serde_json::from_str(params).map_err(|error| format!("its parameters are no JSON: {error}"))?;
                let target = match frame {
                    Some(id) => self.frame(id)?.0,
                    None => self.first_target().ok_or("the program has not begun")?,
                };
                let answer = target.wire.call(method, params).await?;
                Ok(json!({ "result": serde_json::to_string_pretty(&answer).unwrap_or_default() }))
            }
            _ => Err(format!("there is no question `{word}`")),
        }
    }

    /// `setExpression`, and `setVariable` by way of it.
    pub async fn assign(&self, arguments: &Value) -> Result<Value, String> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let frame = arguments.get("frameId").and_then(Value::as_i64);
        let expression = format!("{} = ({}\n)", text("expression"), text("value"));
        let (target, object) = self.run(&expression, frame, false).await?;
        let mut shown = self.value(&target, &object, &Cell::new(MOST_REQUESTS)).await;
        shown["value"] = shown["result"].take();
        Ok(shown)
    }

    pub async fn set_variable(&self, arguments: &Value) -> Result<Value, String> {
        let reference = arguments.get("variablesReference").and_then(Value::as_i64).unwrap_or_default();
        let (name, value) = (arguments.get("name").and_then(Value::as_str).unwrap_or_default(), &arguments["value"]);
        let known = self.handles.borrow().known.get(&reference).cloned();
        let (thread, handle) = known.ok_or("that value is from an earlier stop")?;
        match handle {
            Handle::Scope { frame, .. } => {
                let id = thread * FRAMES + i64::try_from(frame).unwrap_or_default();
                self.assign(&json!({ "expression": name, "value": value, "frameId": id })).await
            }
            Handle::Object(object) => {
                let target = self.targets.borrow().get(&thread).cloned().ok_or("the thread has ended")?;
                let top = target.thread * FRAMES;
                let (_, value) = self.run(value.as_str().unwrap_or_default(), Some(top), false).await?;
                let argument = match value.get("objectId") {
                    Some(id) => json!({ "objectId": id }),
                    None => {
                        json!({ "value": value.get("value"), "unserializableValue": value.get("unserializableValue") })
                    }
                };
                let params = json!({
                    "objectId": object["objectId"],
                    "functionDeclaration": "function(name, value) { this[name] = value; }",
                    "arguments": [{ "value": name }, without_nulls(argument)],
                });
                target.wire.call("Runtime.callFunctionOn", params).await?;
                let mut shown = self.value(&target, &value, &Cell::new(MOST_REQUESTS)).await;
                shown["value"] = shown["result"].take();
                Ok(shown)
            }
        }
    }

    pub async fn exception_info(&self, arguments: &Value) -> Result<Value, String> {
        let target = self.target(arguments)?;
        let pause = target.pause().ok_or("the thread is running")?;
        let exception = pause.exception.as_ref().ok_or("the thread did not stop at an exception")?;
        let uncaught = exception.get("uncaught").and_then(Value::as_bool).unwrap_or_default();
        let details = details(&target, exception, 4).await;
        Ok(json!({
            "exceptionId": details["typeName"],
            "description": details["message"],
            "breakMode": if uncaught { "unhandled" } else { "always" },
            "details": details,
        }))
    }

    /// The text of a script that is in no file.
    pub async fn source(&self, arguments: &Value) -> Result<Value, String> {
        let reference = arguments.get("sourceReference").or_else(|| arguments.pointer("/source/sourceReference"));
        let id = reference.and_then(Value::as_i64).unwrap_or_default().to_string();
        for target in self.all_targets() {
            if let Some(script) = target.script(&id) {
                let content = script.source(&target.wire).await.ok_or("its source can't be read")?;
                return Ok(json!({ "content": *content, "mimeType": "text/javascript" }));
            }
        }
        Err("there is no such script".into())
    }

    /// Scripts that are loaded, but for Node's own.
    pub fn modules(&self) -> Value {
        let mut seen = HashSet::new();
        let mut modules = Vec::new();
        for target in self.all_targets() {
            for script in target.scripts.borrow().values() {
                if let (Some(path), false) = (&script.path, script.is_internal())
                    && seen.insert(path.clone())
                {
                    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
                    modules.push(json!({ "id": script.url, "name": name, "path": path }));
                }
            }
        }
        modules.sort_by_key(|module| module["path"].to_string());
        json!({ "modules": modules, "totalModules": modules.len() })
    }
}

fn without_nulls(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, field| !field.is_null());
    }
    value
}

/// What went wrong with an expression.
pub fn complaint(details: &Value) -> String {
    let exception = details.get("exception").unwrap_or(&Value::Null);
    let description = exception.get("description").and_then(Value::as_str);
    match description {
        Some(text) if exception.get("subtype").and_then(Value::as_str) == Some("error") => {
            text.split_once("\n    at ").map_or(text, |(words, _)| words).to_string()
        }
        _ if exception.is_object() => format!("{} was thrown", values::glimpse(exception)),
        _ => details.get("text").and_then(Value::as_str).unwrap_or("it can't be evaluated").to_string(),
    }
}

/// The scopes of a frame that are of a kind, innermost first.
fn objects(frame: &Frame, kind: Kind) -> Vec<String> {
    let of = |scope: &Value| scope.get("type").and_then(Value::as_str).unwrap_or_default().to_string();
    let types: Vec<String> = frame.scopes.iter().map(of).collect();
    // The function's own variables end with its own scope; at the top of a module they are the module's.
    let own = types.iter().position(|kind| kind == "local");
    let own = own.or_else(|| types.iter().position(|kind| kind == "module" || kind == "script"));
    let own = own.map_or_else(|| types.iter().take_while(|kind| *kind != "global").count(), |at| at + 1);
    // Of the older kind of module, the outermost function is the module.
    let outermost = types.iter().rposition(|kind| kind == "closure").filter(|at| *at >= own);
    let is_wanted = |index: usize| {
        let is_modules = matches!(types[index].as_str(), "module" | "script") || Some(index) == outermost;
        match kind {
            Kind::Locals => index < own && types[index] != "global",
            Kind::Closure => index >= own && !is_modules && types[index] != "global",
            Kind::Globals => index >= own && (is_modules || types[index] == "global"),
        }
    };
    let id = |scope: &Value| scope.pointer("/object/objectId").and_then(Value::as_str).map(ToString::to_string);
    (0..types.len()).filter(|index| is_wanted(*index)).filter_map(|index| id(&frame.scopes[index])).collect()
}

/// The variables of a kind; what is hidden by an inner one of the same name is left out.
async fn scope_parts(target: &Target, pause: &Pause, frame: usize, kind: Kind) -> Result<Vec<Part>, String> {
    let frame = &pause.frames[frame];
    let mut ids = objects(frame, kind);
    // A function sees no more of its module than it or another function uses; the module's own frame has the rest.
    let of_module = |other: &&Frame| other.is_module && other.place.url == frame.place.url;
    if let (Kind::Globals, Some(module)) = (kind, pause.frames.iter().find(of_module).filter(|_| !frame.is_module)) {
        ids.extend(objects(module, Kind::Locals));
    }
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for id in ids {
        for part in values::parts(&target.wire, &id).await? {
            let is_function = part.value.get("type").and_then(Value::as_str) == Some("function");
            let furniture = FURNITURE.contains(&part.name.as_str()) && (frame.is_module || kind == Kind::Globals);
            let declared = is_function && (kind == Kind::Globals || frame.is_module);
            let standard = kind == Kind::Globals && is_standard(&part);
            if !furniture && !declared && !standard && seen.insert(part.name.clone()) {
                found.push(part);
            }
        }
    }
    let this = &frame.this;
    let class = this.get("className").and_then(Value::as_str).unwrap_or_default();
    if kind == Kind::Locals
        && this.get("objectId").is_some()
        && !frame.is_module
        && !matches!(class, "global" | "Window")
    {
        found.push(Part { name: "this".into(), value: this.clone() });
    }
    Ok(found)
}

/// What the language and Node put among the globals.
fn is_standard(part: &Part) -> bool {
    const NAMES: [&str; 12] = [
        "global",
        "globalThis",
        "process",
        "performance",
        "navigator",
        "crypto",
        "console",
        "Buffer",
        "WebAssembly",
        "localStorage",
        "sessionStorage",
        "[[Scopes]]",
    ];
    NAMES.contains(&part.name.as_str()) || part.value.get("type").and_then(Value::as_str) == Some("symbol")
}

/// The parts of a value, from one on, as many as are wanted.
async fn children(target: &Target, object: &Value, start: u64, count: u64) -> Result<Vec<Part>, String> {
    let id = object.get("objectId").and_then(Value::as_str).ok_or("it has no parts")?;
    if count < u64::MAX && values::length(object).is_some_and(|length| length > 100) {
        return values::items(&target.wire, id, start, count).await;
    }
    let (skip, take) = (usize::try_from(start).unwrap_or(usize::MAX), usize::try_from(count).unwrap_or(usize::MAX));
    let parts = values::parts(&target.wire, id).await?;
    if matches!(object.get("subtype").and_then(Value::as_str), Some("map" | "set")) {
        return values::entries(&target.wire, &parts, skip, take).await;
    }
    let is_promise = object.get("subtype").and_then(Value::as_str) == Some("promise");
    let own = parts.into_iter().filter(|part| is_promise || !part.name.starts_with("[["));
    Ok(own.skip(skip).take(take).collect())
}

pub async fn parameters(target: &Target, frame: &Frame) -> Option<Vec<String>> {
    if frame.is_module {
        return None;
    }
    let source = frame.script.as_ref()?.source(&target.wire).await?;
    let at = Lines::new(&source).byte(frame.function_spot?);
    Some(Code::new(&source).parameters(at))
}

/// The names of what was thrown: its class, and those it comes from.
async fn ancestors(target: &Target, exception: &Value) -> String {
    let Some(id) = exception.get("objectId") else { return values::kind(exception) };
    let function = "function() { const names = []; \
                    for (let at = this; at; at = Object.getPrototypeOf(at)) \
                    if (Object.hasOwn(at, 'constructor') && at.constructor) names.push(at.constructor.name); \
                    if (typeof this.name === 'string') names.push(this.name); return names.join(' '); }";
    let params = json!({ "objectId": id, "functionDeclaration": function, "silent": true });
    let answer = target.wire.call("Runtime.callFunctionOn", params).await.unwrap_or_default();
    let names = answer.pointer("/result/value").and_then(Value::as_str).map(ToString::to_string);
    names.unwrap_or_else(|| values::kind(exception))
}

/// An error with what caused it, and what caused that.
async fn details(target: &Target, exception: &Value, depth: u32) -> Value {
    let is_error = exception.get("subtype").and_then(Value::as_str) == Some("error");
    if !is_error {
        return json!({ "typeName": values::kind(exception), "message": values::glimpse(exception) });
    }
    let (kind, message) = pauses::error_words(exception);
    let mut details = json!({ "typeName": kind, "message": message, "stackTrace": exception.get("description") });
    let id = exception.get("objectId").and_then(Value::as_str).filter(|_| depth > 0);
    if let Some(id) = id
        && let Ok(parts) = values::parts(&target.wire, id).await
        && let Some(cause) = parts.into_iter().find(|part| part.name == "cause")
    {
        details["innerException"] = json!([Box::pin(self::details(target, &cause.value, depth - 1)).await]);
    }
    details
}
