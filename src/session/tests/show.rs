//! How effects read in a script: short, and complete in what matters. Deadlines of single requests are left out.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::dap::Message;
use crate::failure::Failure;
use crate::model::{Binding, BindingState, Change, Ending, Frame, Reason, SessionState, Stop, Value, Variable};
use crate::session::{Answer, Effect, Outcome, Seen, Timer};

/// One line for an effect; None for one that is of no interest.
pub(super) fn effect(effect: &Effect) -> Option<String> {
    let text = match effect {
        Effect::Send(message) => sent(message),
        Effect::Answer(op, Ok(given)) => format!("answer {op}: {}", answer(given)),
        Effect::Answer(op, Err(failure)) => format!("answer {op}: {}", failed(failure)),
        Effect::Arm(Timer::Request(_), _) | Effect::Disarm(_) => return None,
        Effect::Arm(timer, after) => format!("arm {} {} ms", timer_name(*timer), after.as_millis()),
        Effect::Drain => "drain".into(),
        Effect::Output { stream, text } => format!("output {stream:?} {text:?}"),
        Effect::Watch { pid } => format!("watch {pid}"),
        Effect::AskExit => "ask for the exit".into(),
        Effect::RunInTerminal { argv, cwd, env, .. } => format!("run {argv:?} in {cwd} with {env:?}"),
        Effect::Record { kind: "state", data, .. } => format!("state {}", data["state"].as_str().unwrap_or_default()),
        Effect::Record { kind: kind @ ("breakpoint" | "hit" | "thread" | "error" | "eval"), data, .. } => {
            format!("record {kind} {data}")
        }
        Effect::Record { .. } => return None,
        Effect::Hit(hit) => {
            let values: Vec<&str> = hit.values.iter().map(|value| value.text.as_str()).collect();
            format!("hit {} {}", hit.point, values.join(" "))
        }
        Effect::Spent(id) => format!("spent {id}"),
        Effect::Finish { spare: true } => "finish, the program lives".into(),
        Effect::Finish { spare: false } => "finish".into(),
    };
    Some(text)
}

fn timer_name(timer: Timer) -> String {
    match timer {
        Timer::Request(seq) => format!("request {seq}"),
        Timer::Wait(op) => format!("wait {op}"),
        Timer::Ending => "ending".into(),
        Timer::Settle => "settle".into(),
        Timer::Detach(op) => format!("detach {op}"),
    }
}

fn sent(message: &Message) -> String {
    match message {
        // Long, and the same everywhere; the adapters' own tests look at them.
        Message::Request { command, .. } if ["initialize", "launch", "attach"].contains(&command.as_str()) => {
            format!("send {command}")
        }
        Message::Request { command, arguments, .. } if command == "setBreakpoints" => {
            let list = arguments["breakpoints"].as_array().map(|list| list.iter().map(Json::to_string).collect());
            let list: Vec<String> = list.unwrap_or_default();
            format!("send setBreakpoints {} [{}]", arguments["source"]["path"].as_str().unwrap_or("?"), list.join(" "))
        }
        Message::Request { command, arguments, .. } if arguments.is_null() => format!("send {command}"),
        Message::Request { command, arguments, .. } => format!("send {command} {arguments}"),
        Message::Response { command, success, message, body, .. } => {
            let what = if *success { body.to_string() } else { message.clone().unwrap_or_default() };
            format!("reply {command} {success} {what}")
        }
        Message::Event { event, .. } => format!("send event {event}"),
    }
}

fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Held { bindings: list } => format!("held{}", bindings(list)),
        Answer::Bindings(list) => format!("bindings{}", bindings(list)),
        Answer::Outcome(Outcome::Stopped(report)) => stop(report),
        Answer::Outcome(Outcome::Running) => "running".into(),
        Answer::Outcome(Outcome::Ended(how)) => format!("ended, {}", ending(how)),
        Answer::Seen(seen) => saw(seen),
        Answer::Threads(lines) => {
            let lines: Vec<String> = lines
                .iter()
                .map(|line| {
                    let mark = if line.selected { "*" } else { "" };
                    let name = line.thread.name.as_deref().unwrap_or("-");
                    let state = if line.state == SessionState::Stopped { "" } else { " running" };
                    let place = line.function.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
                    format!("{mark}{} {name}{state}{place}", line.thread.id)
                })
                .collect();
            format!("threads {}", lines.join(", "))
        }
        Answer::Text(text) => format!("text {text:?}"),
        Answer::Exception(report) => {
            format!("exception {} {:?} cause {:?}", report.kind, report.message, report.cause)
        }
        Answer::Names(names) => format!("names {names:?}"),
        Answer::Body(body) => format!("body {body}"),
        Answer::Watches(lines) => {
            let lines: Vec<String> = lines.iter().map(|line| format!("{} {}", line.id, line.expression)).collect();
            format!("watches {}", lines.join(", "))
        }
        Answer::Traced { bindings: list, way } => format!("traced by {way}{}", bindings(list)),
        Answer::Done => "done".into(),
    }
}

fn bindings(list: &BTreeMap<u32, Binding>) -> String {
    list.iter()
        .map(|(id, binding)| {
            let state = match binding.state {
                BindingState::Verified => "verified".to_string(),
                BindingState::Moved => format!("moved to {}", binding.line.unwrap_or_default()),
                BindingState::Pending => format!("pending ({})", binding.why.as_deref().unwrap_or_default()),
                BindingState::Disabled => "disabled".into(),
            };
            let hits = if binding.hits > 0 { format!(" hits {}", binding.hits) } else { String::new() };
            format!(" {id}:{state}{hits}")
        })
        .collect()
}

fn failed(failure: &Failure) -> String {
    let mut text = format!("{:?}: {:?}", failure.kind, failure.message);
    for cause in &failure.causes {
        text.push_str(&format!(" cause {cause:?}"));
    }
    for hint in &failure.hints {
        text.push_str(&format!(" hint {hint:?}"));
    }
    text
}

pub(super) fn ending(ending: &Ending) -> String {
    match ending {
        Ending::Exited { code: Some(code) } => format!("code {code}"),
        Ending::Exited { code: None } => "code unknown".into(),
        Ending::Signalled { signal } => signal.clone(),
        Ending::Detached => "detached".into(),
        Ending::Stopped => "stopped".into(),
        Ending::Lost { adapter_exit, stderr_tail } => format!("lost {adapter_exit:?} {stderr_tail:?}"),
    }
}

pub(super) fn stop(stop: &Stop) -> String {
    let reason = match &stop.reason {
        Reason::Breakpoint { ids, hit } => format!("breakpoint {ids:?} hit {hit}"),
        Reason::Exception { text } => format!("exception {text:?}"),
        Reason::Signal { name, detail } => format!("{name} {}", detail.as_deref().unwrap_or_default()).trim().into(),
        Reason::Other { text } => format!("other {text:?}"),
        simple => format!("{simple:?}").to_lowercase(),
    };
    let mut text = format!("stop {} {reason} thread {}", stop.number, stop.thread.id);
    text.push_str(&rest(&stop.frames, stop.more_frames, &stop.locals, &stop.gaps));
    if let Some(why) = &stop.condition_failed {
        text.push_str(&format!(", condition failed {why:?}"));
    }
    text
}

fn saw(seen: &Seen) -> String {
    let mut text = format!("seen thread {} frame {}", seen.thread.id, seen.frame);
    text.push_str(&rest(&seen.frames, seen.more_frames, &seen.locals, &seen.gaps));
    for (expression, value) in &seen.values {
        match value {
            Ok(value) => text.push_str(&format!(", {expression} = {}", flat(value))),
            Err(why) => text.push_str(&format!(", {expression}: {why:?}")),
        }
    }
    text
}

fn rest(frames: &[Frame], more: bool, locals: &[Variable], gaps: &[String]) -> String {
    let mut text = String::new();
    let places: Vec<String> = frames
        .iter()
        .map(|frame| match (&frame.file, frame.line) {
            (Some(file), Some(line)) => format!("{} {file}:{line}", frame.function),
            _ => frame.function.clone(),
        })
        .collect();
    if !places.is_empty() {
        text.push_str(&format!(", {}", places.join(" < ")));
    }
    if more {
        text.push_str(" < …");
    }
    if !locals.is_empty() {
        let list: Vec<String> = locals.iter().map(local).collect();
        text.push_str(&format!(" | {}", list.join(" ")));
    }
    for gap in gaps {
        text.push_str(&format!(", gap {gap:?}"));
    }
    text
}

fn local(variable: &Variable) -> String {
    let change = match &variable.change {
        Some(Change::New) => " (new)".to_string(),
        Some(Change::From(before)) => format!(" (was {before})"),
        None => String::new(),
    };
    format!("{}={}{change}", variable.name, flat(&variable.value))
}

fn flat(value: &Value) -> String {
    let deeper = if value.deeper { "+" } else { "" };
    format!("{}{deeper}", value.flat())
}
