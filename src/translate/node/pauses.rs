//! What a pause of the inspector means: ours, to be passed over, or a stop to tell of; and how a thread goes on.

use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Bridge;
use super::syntax::{Code, Lines};
use super::target::{Doing, Frame, Pause, Step, Target, is_package};
use super::values;

/// How often one step may be prolonged, to get to another line.
const LONGEST_STEP: u32 = 120;
/// How far a step goes into Node itself, to see whether it only passes on a call to the program.
const INTO_NODE: u32 = 40;
/// Exceptions that are no stop, after which the inspector's own guess at what is uncaught has to do.
const PATIENT: u32 = 200;
/// How long a thread that is asked to pause may take before it is taken to wait for something.
const BUSY: Duration = Duration::from_millis(120);

/// Why the inspector paused, as it says.
struct Why {
    reasons: Vec<String>,
    exception: Option<Value>,
}

impl Why {
    fn read(params: &Value) -> Self {
        let text = |value: &Value| value.get("reason").and_then(Value::as_str).unwrap_or_default().to_string();
        let mut why = Self { reasons: vec![text(params)], exception: None };
        let mut parts = vec![params];
        // Several at once.
        let several = params.pointer("/data/reasons").and_then(Value::as_array);
        for reason in several.filter(|_| why.reasons[0] == "ambiguous").into_iter().flatten() {
            why.reasons.push(text(reason));
            parts.push(reason);
        }
        let thrown = |part: &&&Value| matches!(text(part).as_str(), "exception" | "promiseRejection");
        why.exception =
            parts.iter().find(thrown).and_then(|part| part.get("data").or_else(|| part.get("auxData"))).cloned();
        why
    }

    fn is(&self, reason: &str) -> bool {
        self.reasons.iter().any(|known| known == reason)
    }
}

impl Bridge {
    pub async fn on_paused(self: Rc<Self>, target: Rc<Target>, params: Value) {
        let why = Why::read(&params);
        let mut pause = target.read_pause(&params);
        pause.exception.clone_from(&why.exception);
        let pause = Rc::new(pause);
        *target.paused.borrow_mut() = Some(pause.clone());
        let ids: Vec<&str> = params
            .get("hitBreakpoints")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let compiler = target.traps.borrow().compile.clone();
        if compiler.is_some_and(|(id, _)| ids.contains(&id.as_str())) {
            self.before_compiling(&target, &pause).await;
            return self.go_on(&target);
        }
        if why.is("instrumentation") {
            let script = params.pointer("/data/scriptId").and_then(Value::as_str).and_then(|id| target.script(id));
            let is_entry = match script {
                Some(script) => self.before_running(&target, &script, &pause).await,
                None => false,
            };
            if is_entry {
                return self.stop(&target, "entry", json!({}));
            }
            return self.go_on(&target);
        }
        let at_entry = target.traps.borrow().entry.as_deref().is_some_and(|id| ids.contains(&id));
        let frame = pause.frames.first().map(|frame| frame.id.clone()).unwrap_or_default();
        let (mut hits, failed) =
            if ids.is_empty() { (Vec::new(), None) } else { self.hits(&target, &ids, &frame).await };
        hits.extend(self.take_traced(&target, &pause, &ids).await);
        if at_entry {
            if let (Some(step), true) = (self.entered(&target, &pause).await, hits.is_empty()) {
                return self.resume(&target, step.method);
            }
            if hits.is_empty() {
                return self.stop(&target, "entry", json!({}));
            }
        }
        if !hits.is_empty() {
            let mut more = json!({ "hitBreakpointIds": hits });
            if let Some(failed) = failed {
                more["conditionError"] = json!(failed);
            }
            return self.stop(&target, "breakpoint", more);
        }
        if let Some(exception) = &why.exception {
            if self.is_wanted(&target, &pause, exception).await {
                let more = thrown(exception);
                return self.stop(&target, "exception", more);
            }
            return self.go_on(&target);
        }
        let doing = target.doing.borrow().clone();
        match doing {
            Doing::Stepping(step) => self.stepped(&target, &pause, step),
            Doing::Pausing => self.stop(&target, "pause", json!({})),
            Doing::Running if !ids.is_empty() || why.is("Break on start") => self.go_on(&target),
            Doing::Running => self.stop(&target, "debugger statement", json!({})),
        }
    }

    /// A step ended somewhere: a reader wants another line of the program, not another word of the same.
    fn stepped(&self, target: &Rc<Target>, pause: &Pause, step: Step) {
        let Some(top) = pause.frames.first() else { return self.go_on(target) };
        let depth = pause.frames.len();
        let same_line = step.place.line == top.place.line && step.place.path == top.place.path && depth == step.depth;
        let inside = top.is_internal();
        let prolong = inside || top.place.unmapped || (same_line && step.method != "Debugger.stepOut");
        if !prolong || step.again >= LONGEST_STEP {
            let reason = if step.is_entry { "entry" } else { "step" };
            return self.stop(target, reason, json!({}));
        }
        let step = Step { again: step.again + 1, ..step };
        if inside && pause.frames.iter().all(Frame::is_internal) {
            // Back in Node itself, with nothing of the program below: the next stop is another's.
            *target.doing.borrow_mut() = Doing::Running;
            return self.resume(target, "Debugger.resume");
        }
        let looks_on = step.method == "Debugger.stepInto" && step.again < INTO_NODE;
        let method = if inside && !looks_on { "Debugger.stepOut" } else { step.method };
        *target.doing.borrow_mut() = Doing::Stepping(step);
        self.resume(target, method);
    }

    /// Tells the client of a stop.
    pub fn stop(&self, target: &Rc<Target>, reason: &str, more: Value) {
        *target.doing.borrow_mut() = Doing::Running;
        let alone = self.targets.borrow().len() == 1;
        let mut body = json!({ "reason": reason, "threadId": target.thread, "allThreadsStopped": alone });
        if let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) {
            body.extend(more);
        }
        self.event("stopped", body);
    }

    /// Lets a thread go on with what it did.
    fn go_on(&self, target: &Rc<Target>) {
        let doing = target.doing.borrow().clone();
        let depth = target.pause().map_or(0, |pause| pause.frames.len());
        match doing {
            // A pass that did not count lay in the way of a step.
            Doing::Stepping(step) if depth > step.depth => self.resume(target, "Debugger.stepOut"),
            Doing::Stepping(step) => self.resume(target, step.method),
            _ => self.resume(target, "Debugger.resume"),
        }
    }

    pub fn resume(&self, target: &Rc<Target>, method: &str) {
        *target.paused.borrow_mut() = None;
        self.handles.borrow_mut().forget(target.thread);
        // In this order: a worker may end as soon as it is let go, and Node dies of messages to one that just has.
        target.wire.tell("Runtime.releaseObjectGroup", json!({ "objectGroup": super::GROUP }));
        target.wire.tell(method, json!({}));
    }

    /// `continue`, `next`, `stepIn` and `stepOut`.
    pub fn let_go(&self, target: &Rc<Target>, command: &str) -> Result<Value, String> {
        let pause = target.pause().ok_or("the thread is running")?;
        let mut method = match command {
            "next" => "Debugger.stepOver",
            "stepIn" => "Debugger.stepInto",
            "stepOut" => "Debugger.stepOut",
            _ => "Debugger.resume",
        };
        // Out of the program's outermost code is Node itself, which is not shown: it goes on to the next stop.
        if method == "Debugger.stepOut" && pause.frames.iter().skip(1).all(Frame::is_internal) {
            method = "Debugger.resume";
        }
        let depth = pause.frames.len();
        let top = pause.frames.first().filter(|_| method != "Debugger.resume" && !pause.is_idle);
        let step = |top: &Frame| Step { method, depth, place: top.place.clone(), again: 0, is_entry: false };
        *target.doing.borrow_mut() = top.map_or(Doing::Running, |top| Doing::Stepping(step(top)));
        self.resume(target, if top.is_some() { method } else { "Debugger.resume" });
        Ok(json!({ "allThreadsContinued": self.targets.borrow().len() == 1 }))
    }

    pub async fn pause_thread(&self, target: &Rc<Target>) -> Result<Value, String> {
        if target.pause().is_some() {
            return Ok(Value::Null);
        }
        *target.doing.borrow_mut() = Doing::Pausing;
        target.wire.call("Debugger.pause", json!({})).await?;
        let target = target.clone();
        tokio::task::spawn_local(async move {
            tokio::time::sleep(BUSY).await;
            // Nothing runs that could be paused: a question is run, and paused at.
            if *target.doing.borrow() == Doing::Pausing && target.pause().is_none() {
                let params = json!({ "expression": "debugger\n//# sourceURL=bugeye:idle", "silent": true });
                target.wire.tell("Runtime.evaluate", params);
            }
        });
        Ok(Value::Null)
    }

    /// What the inspector is to pause at for the client's filters.
    pub fn set_catching(&self, target: &Target) {
        let filters = self.filters.borrow();
        let has = |name: &str| filters.iter().any(|filter| filter == name);
        // What a module throws looks caught to the engine, since Node's own loader catches and throws it again.
        let state = match (has("raised") || has("failing"), has("uncaught")) {
            (true, _) => "all",
            (_, true) if target.passed.get() < PATIENT => "all",
            (_, true) => "uncaught",
            _ => "none",
        };
        if target.catching.replace(state) != state {
            target.wire.tell("Debugger.setPauseOnExceptions", json!({ "state": state }));
        }
    }

    async fn is_wanted(&self, target: &Target, pause: &Pause, exception: &Value) -> bool {
        let (raised, failing, uncaught) = {
            let filters = self.filters.borrow();
            let has = |name: &str| filters.iter().any(|filter| filter == name);
            (has("raised"), has("failing"), has("uncaught"))
        };
        let is_inside = pause.frames.first().is_none_or(Frame::is_internal);
        if raised && (!is_inside || self.reaches_own(target, pause).await) {
            return true;
        }
        if failing && self.fails(target, pause).await {
            return true;
        }
        // What runs tests rejects promises of its own for what the program threw.
        let is_foreign = failing && pause.frames.first().is_none_or(|frame| !frame.is_own());
        if uncaught && !is_foreign {
            let said = exception.get("uncaught").and_then(Value::as_bool).unwrap_or_default();
            if said || self.falls_out(target, pause).await {
                return true;
            }
        }
        target.passed.set(target.passed.get() + 1);
        self.set_catching(target);
        false
    }

    /// Whether what is thrown falls through every frame down to the code of a module, and out of that.
    async fn falls_out(&self, target: &Target, pause: &Pause) -> bool {
        let Some(first) = pause.frames.iter().position(|frame| frame.is_module) else { return false };
        let bottom = first + pause.frames[first + 1..].iter().take_while(|frame| frame.is_module).count();
        let is_loaders = |frame: &Frame| frame.is_internal() || is_package(&frame.place.url);
        if !pause.frames[bottom + 1..].iter().all(is_loaders) {
            return false;
        }
        for frame in &pause.frames[..=bottom] {
            if self.catches(target, frame, true).await {
                return false;
            }
        }
        true
    }

    /// Whether what is thrown in Node itself comes to the program's own code.
    async fn reaches_own(&self, target: &Target, pause: &Pause) -> bool {
        let Some(first) = pause.frames.iter().position(Frame::is_own) else { return false };
        for frame in &pause.frames[..first] {
            if self.catches(target, frame, true).await {
                return false;
            }
        }
        true
    }

    /// Whether what is thrown falls out of the program's own code, which something else has called: a test fails.
    async fn fails(&self, target: &Target, pause: &Pause) -> bool {
        let Some(first) = pause.frames.iter().position(Frame::is_own) else { return false };
        let own = pause.frames[first..].iter().take_while(|frame| frame.is_own()).count();
        for frame in &pause.frames[..first + own] {
            if self.catches(target, frame, false).await {
                return false;
            }
        }
        true
    }

    /// Whether a frame catches what comes to it from the place where it stands. What an asynchronous function throws is
    /// caught by its promise.
    async fn catches(&self, target: &Target, frame: &Frame, by_promise: bool) -> bool {
        let Some(script) = &frame.script else { return true };
        let Some(source) = script.source(&target.wire).await else { return true };
        let code = Code::new(&source);
        let mut lines = Lines::new(&source);
        let start = frame.function_spot.map_or(0, |spot| lines.byte(spot));
        let at = lines.byte(frame.spot);
        code.is_caught(if frame.is_module { 0 } else { start }, at)
            || (by_promise && !frame.is_module && code.is_async(start))
    }
}

/// The words of a stop for what was thrown.
fn thrown(exception: &Value) -> Value {
    let text = |name: &str| exception.get(name).and_then(Value::as_str);
    if text("subtype") != Some("error") {
        return json!({ "description": format!("{} was thrown", values::glimpse(exception)) });
    }
    let (kind, message) = error_words(exception);
    if message.is_empty() {
        json!({ "text": kind, "description": kind })
    } else {
        json!({ "text": kind, "description": message })
    }
}

/// The type of an error and its message.
pub fn error_words(exception: &Value) -> (String, String) {
    let text = |name: &str| exception.get(name).and_then(Value::as_str).unwrap_or_default();
    let class = text("className");
    let description = text("description");
    // The message may have several lines; the stack begins with the first `at`.
    let words = description.split_once("\n    at ").map_or(description, |(words, _)| words);
    match words.split_once(": ") {
        // `AssertionError [ERR_ASSERTION]` has a code beside its name.
        Some((name, message)) if !name.split(" [").next().is_some_and(|name| name.contains(char::is_whitespace)) => {
            (name.split(" [").next().unwrap_or(name).to_string(), message.trim().to_string())
        }
        _ => (class.to_string(), if words == class { String::new() } else { words.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_taken_apart() {
        let words = |description: &str| error_words(&json!({ "className": "Error", "description": description }));
        let of = |kind: &str, message: &str| (kind.to_string(), message.to_string());
        assert_eq!(words("Error: boom\n    at f (x.js:1:2)"), of("Error", "boom"));
        assert_eq!(words("AssertionError [ERR_ASSERTION]: 3 !== 4"), of("AssertionError", "3 !== 4"));
        assert_eq!(words("Error\n    at f (x.js:1:2)"), of("Error", ""));
        assert_eq!(words("so it is: wrong"), of("Error", "so it is: wrong"));
    }
}
