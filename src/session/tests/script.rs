//! The script language: a scenario's lines become inputs, and its effects are written below them.
//!
//! ```text
//! # title of the scenario
//! = lldb attach            adapter (lldb, plain, python), then options: attach, entry
//! > 1 start b=1@a.c:6      operation 1; see `operation`
//! < ok initialize @lldb    the answer to the oldest open request of that name, with a body (JSON, or a name from BODIES)
//! < fail launch no such    a refusal with that message; `fail launch {…}` refuses with that body and no message
//! < event stopped {…}      an event
//! < show work a.c:6 i=0    answers all that is asked about the stop, until nothing is open
//! ! timer wait 1           a deadline; also: timer request COMMAND, timer ending, timer settle, timer detach 1
//! ! exit signal SIGSEGV    the kernel's word; also: exit code 3, exit unknown
//! ! gone signal SIGKILL    the adapter's streams closed
//! ! forget 1
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::show;
use crate::adapters::lldb::LLDB;
use crate::adapters::{Access, Adapter, Quirks, Stdio, by_name};
use crate::dap::Message;
use crate::model::{Breakpoint, Launch, Place, Stdin, Target, View};
use crate::session::{
    Effect, FrameChoice, Input, KernelExit, Limits, Locals, Look, Op, Resume, Session, Timer, UNTIL_ID, Wait,
};

/// An adapter with none of LLDB's habits that change what is sent.
static PLAIN: Adapter = Adapter {
    id: "plain",
    quirks: Quirks { forget_step: None, detach_command: None, entry_function: None, ..LLDB.quirks },
    ..LLDB
};

const BODIES: [(&str, &str); 5] = [
    (
        "@lldb",
        r#"{"__lldb":{"version":"lldb version 19.1.7"},"supportsConfigurationDoneRequest":true,
            "supportsFunctionBreakpoints":true,"supportsConditionalBreakpoints":true,
            "supportsExceptionInfoRequest":true,
            "exceptionBreakpointFilters":[{"filter":"cpp_throw","default":false},{"filter":"cpp_catch","default":false}]}"#,
    ),
    (
        "@python",
        r#"{"supportsConfigurationDoneRequest":true,"supportsFunctionBreakpoints":true,"supportsSetExpression":true,
            "supportsExceptionInfoRequest":true,
            "exceptionBreakpointFilters":[{"filter":"raised","default":false},{"filter":"uncaught","default":true},
            {"filter":"userUnhandled","default":false}]}"#,
    ),
    ("@bare", r#"{"supportsConfigurationDoneRequest":true}"#),
    ("@threads", r#"{"supportsConfigurationDoneRequest":true,"supportsSingleThreadExecutionRequests":true}"#),
    ("@empty", "{}"),
];

/// Plays a file of scenarios and fails unless it comes out as it is written.
pub(super) fn check(name: &str, text: &str) {
    let mut out = String::new();
    let mut play: Option<Play> = None;
    for line in text.lines() {
        match line.split_at_checked(1) {
            Some((">" | "<" | "!", rest)) => {
                let play = play.as_mut().expect("a scenario begins with `=`");
                let effects = match play.line(&line[..1], rest.trim()) {
                    Ok(effects) => effects.iter().filter_map(show::effect).collect(),
                    // Written where it happened: a script never ends half-way.
                    Err(wrong) => vec![format!("?? {wrong}")],
                };
                out.push_str(line);
                out.push('\n');
                for effect in effects {
                    out.push_str("    ");
                    out.push_str(&effect);
                    out.push('\n');
                }
            }
            Some(("=", options)) => {
                play = Some(Play::new(options.trim()));
                out.push_str(line);
                out.push('\n');
            }
            // Effects are written anew.
            Some((" ", _)) => {}
            _ => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    if out != text {
        let at = out.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
        let was = text.lines().nth(at).unwrap_or("(end)");
        let now = out.lines().nth(at).unwrap_or("(end)");
        panic!("{name}, line {}\n  written: {was}\n  came:    {now}\n==BEGIN {name}==\n{out}==END {name}==", at + 1);
    }
}

/// One session being played.
pub(super) struct Play {
    pub session: Session,
    /// Requests that are not answered, oldest first.
    open: Vec<(i64, String)>,
}

fn limits() -> Limits {
    Limits {
        initialize: Duration::from_secs(10),
        launch: Duration::from_secs(60),
        request: Duration::from_secs(30),
        inspect: Duration::from_secs(5),
    }
}

fn launch_target(adapter: &Adapter, stop_on_entry: bool) -> Target {
    let (program, interpreter) = match adapter.languages.first() {
        Some(&"python") => ("/p/loop.py", vec!["/usr/bin/python3".to_string()]),
        _ => ("/p/app", Vec::new()),
    };
    Target::Launch(Launch {
        program: PathBuf::from(program),
        interpreter,
        helper: None,
        args: Vec::new(),
        cwd: PathBuf::from("/p"),
        env: Vec::new(),
        umask: None,
        stdin: Stdin::Interactive,
        stop_on_entry,
        record: false,
        formatters: None,
        entry_in_source: false,
        catch: Vec::new(),
        extra: serde_json::Map::new(),
    })
}

fn stdio() -> Stdio {
    Stdio { stdin: "/r/stdin".into(), stdout: "/r/stdout".into(), stderr: "/r/stderr".into() }
}

impl Play {
    pub(super) fn new(options: &str) -> Self {
        let mut adapter: &'static Adapter = by_name("lldb").unwrap();
        let (mut attach, mut core, mut entry, mut tests) = (false, false, false, false);
        for word in options.split_whitespace() {
            match word {
                "plain" => adapter = &PLAIN,
                "attach" => attach = true,
                "core" => core = true,
                "entry" => entry = true,
                "tests" => tests = true,
                name => adapter = by_name(name).expect("an adapter"),
            }
        }
        let target = if attach {
            Target::Attach { pid: 77, program: Some(PathBuf::from("/p/app")), extra: serde_json::Map::new() }
        } else if core {
            Target::Core { core: PathBuf::from("/p/core"), program: Some(PathBuf::from("/p/app")) }
        } else {
            launch_target(adapter, entry)
        };
        let target = match target {
            Target::Launch(launch) if tests => Target::Launch(Launch { catch: vec!["userUnhandled".into()], ..launch }),
            other => other,
        };
        Self { session: Session::new(adapter, target, stdio(), limits()), open: Vec::new() }
    }

    /// Feeds one input and keeps book of what is asked.
    pub(super) fn feed(&mut self, input: Input) -> Vec<Effect> {
        let effects = self.session.handle(input);
        for effect in &effects {
            if let Effect::Send(Message::Request { seq, command, .. }) = effect {
                self.open.push((*seq, command.clone()));
            }
        }
        effects
    }

    pub(super) fn line(&mut self, kind: &str, text: &str) -> Result<Vec<Effect>, String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let effects = match (kind, word) {
            (">", id) => {
                let op = operation(rest);
                self.feed(Input::Op(id.parse().expect("the number of an operation"), op))
            }
            ("<", "ok" | "fail") => {
                let (command, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                let seq = self.take(command)?;
                self.answer(seq, command, word == "ok", rest)
            }
            ("<", "event") => {
                let (event, body) = rest.split_once(' ').unwrap_or((rest, ""));
                self.feed(Input::Adapter(Message::Event { event: event.into(), body: body_of(body) }))
            }
            ("<", "ask") => {
                let (command, arguments) = rest.split_once(' ').unwrap_or((rest, ""));
                let arguments = body_of(arguments);
                self.feed(Input::Adapter(Message::Request { seq: 900, command: command.into(), arguments }))
            }
            ("<", "show") => self.show(rest),
            ("!", "forget") => self.feed(Input::Forget(rest.parse().unwrap())),
            ("!", "timer") => {
                let (name, of) = rest.split_once(' ').unwrap_or((rest, ""));
                let timer = match name {
                    "request" => Timer::Request(self.take(of)?),
                    "wait" => Timer::Wait(of.parse().unwrap()),
                    "ending" => Timer::Ending,
                    "settle" => Timer::Settle,
                    "detach" => Timer::Detach(of.parse().unwrap()),
                    other => return Err(format!("no timer {other}")),
                };
                self.feed(Input::Timer(timer))
            }
            ("!", "exit") => {
                let exit = match rest.split_once(' ') {
                    Some(("code", code)) => Some(KernelExit::Code(code.parse().unwrap())),
                    Some(("signal", name)) => Some(KernelExit::Signal(name.into())),
                    _ => None,
                };
                self.feed(Input::Exit(exit))
            }
            ("!", "gone") => {
                let (exit, tail) = rest.split_once(" / ").unwrap_or((rest, ""));
                let adapter_exit = Some(exit.to_string()).filter(|exit| !exit.is_empty());
                self.feed(Input::Gone { adapter_exit, stderr_tail: tail.into() })
            }
            ("!", "terminal") => {
                let pid = rest.parse().map_err(|_| rest.to_string());
                self.feed(Input::InTerminal { request: 900, pid })
            }
            _ => return Err(format!("not understood: {kind} {text}")),
        };
        Ok(effects)
    }

    /// The oldest open request of a name, or the one of a number (`#7`), open or not.
    fn take(&mut self, command: &str) -> Result<i64, String> {
        if let Some(number) = command.strip_prefix('#') {
            return number.parse().map_err(|_| format!("no number: {number}"));
        }
        let at = self.open.iter().position(|(_, open)| open == command);
        at.map(|at| self.open.remove(at).0).ok_or_else(|| format!("no {command} is open"))
    }

    fn answer(&mut self, seq: i64, command: &str, success: bool, rest: &str) -> Vec<Effect> {
        let plain = !success && !rest.starts_with('{');
        let message = plain.then(|| rest.to_string());
        let body = if plain { Json::Null } else { body_of(rest) };
        self.feed(Input::Adapter(Message::Response {
            request_seq: seq,
            command: command.into(),
            success,
            message,
            body,
        }))
    }

    /// Answers what is asked about a stop: `FUNCTION FILE:LINE [NAME=VALUE…]`; callers follow after `<`.
    fn show(&mut self, text: &str) -> Vec<Effect> {
        let (stack, locals) = text.split_once(" | ").unwrap_or((text, ""));
        let frames: Vec<Json> = stack
            .split(" < ")
            .enumerate()
            .map(|(index, frame)| {
                let (function, place) = frame.split_once(' ').unwrap_or((frame, ""));
                let (file, line) = place.split_once(':').unwrap_or(("", "0"));
                json!({ "id": 1000 + index, "name": function, "line": line.parse::<i64>().unwrap(),
                        "source": { "path": file } })
            })
            .collect();
        let variables: Vec<Json> = locals
            .split_whitespace()
            .map(|word| {
                let (name, value) = word.split_once('=').unwrap();
                json!({ "name": name, "value": value, "type": "int", "variablesReference": 0 })
            })
            .collect();
        let mut effects = Vec::new();
        let mut names = BTreeMap::from([
            ("threads", json!({ "threads": [{ "id": 1, "name": "main" }, { "id": 2, "name": "other" }] })),
            ("stackTrace", json!({ "stackFrames": frames, "totalFrames": frames.len() })),
            ("scopes", json!({ "scopes": [{ "name": "Locals", "variablesReference": 7 }] })),
            ("variables", json!({ "variables": variables })),
        ]);
        names.retain(|_, body| !body.is_null());
        while let Some(at) = self.open.iter().position(|(_, command)| names.contains_key(command.as_str())) {
            let (seq, command) = self.open.remove(at);
            let body = names[command.as_str()].clone();
            let message = Message::Response { request_seq: seq, command, success: true, message: None, body };
            effects.extend(self.feed(Input::Adapter(message)));
        }
        // What it asked on the way is told by what it shows.
        effects.retain(|effect| {
            !matches!(effect, Effect::Send(Message::Request { command, .. })
            if command == "scopes" || command == "variables")
        });
        effects
    }
}

fn body_of(text: &str) -> Json {
    if text.is_empty() {
        return Json::Null;
    }
    let text = BODIES.iter().find(|(name, _)| *name == text).map_or(text, |(_, body)| body);
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Reads an operation: its name, then `key=value` words, then for some a text to the end of the line after ` : `.
fn operation(text: &str) -> Op {
    let (head, tail) = text.split_once(" : ").unwrap_or((text, ""));
    let mut words = head.split_whitespace();
    let name = words.next().unwrap_or_default();
    let words: Vec<&str> = words.collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let has = |word: &str| words.contains(&word);
    let wait = Wait {
        limit: Duration::from_secs(value("wait").map_or(25, |text| text.parse().unwrap())),
        view: View { frames: value("frames").map_or(3, |text| text.parse().unwrap()), ..View::default() },
    };
    let thread = value("thread").map(|text| text.parse().unwrap());
    let look = Look {
        thread,
        frame: value("frame").and_then(|text| text.parse().ok()),
        frames: value("frames").map_or(0, |text| text.parse().unwrap()),
        locals: if has("all") {
            Locals::EveryFrame
        } else if has("locals") {
            Locals::Selected
        } else {
            Locals::No
        },
        scope: Look::default().scope,
        expressions: if tail.is_empty() { Vec::new() } else { tail.split(" ; ").map(Into::into).collect() },
        view: View::default(),
    };
    let resume = |how| Op::Resume { how, thread, wait };
    match name {
        "start" => Op::Start {
            wishes: wishes(&words),
            catch: value("catch").map(|text| text.split(',').map(Into::into).collect()).unwrap_or_default(),
            run: has("run").then_some(wait),
        },
        "break" => Op::Breakpoints(wishes(&words)),
        "catch" => Op::Catch(words.iter().map(|word| (*word).to_string()).collect()),
        "continue" => resume(Resume::Continue),
        "next" => resume(Resume::Next),
        "step" => resume(Resume::Step),
        "finish" => resume(Resume::Finish),
        "until" => resume(Resume::Until(wish(&format!("{UNTIL_ID}@{}", words[0])))),
        "into" => resume(Resume::Into(wish(&format!("{UNTIL_ID}@{}", words[0])))),
        "back" => resume(Resume::Back),
        "reverse" => resume(Resume::ReverseContinue),
        "jump" => {
            let (file, line) = words[0].split_once(':').unwrap();
            Op::Jump { file: file.into(), line: line.parse().unwrap(), view: View::default() }
        }
        "watch" => Op::Watch {
            expression: tail.into(),
            access: Access::Write,
            condition: None,
            look: Look { expressions: Vec::new(), ..look },
        },
        "unwatch" => Op::Unwatch(words[0].parse().unwrap()),
        "watches" => Op::Watches,
        "request" => Op::Request {
            command: "modules",
            arguments: json!({}),
            capability: "supportsModulesRequest",
            what: "listing modules",
        },
        "pause" => Op::Pause(wait),
        "await" => Op::Await(wait),
        "look" => Op::Look(look),
        "select" => {
            let frame = value("frame").map(|text| match text {
                "up" => FrameChoice::Up,
                "down" => FrameChoice::Down,
                number => FrameChoice::Number(number.parse().unwrap()),
            });
            Op::Select { thread, frame, look: Look { locals: Locals::Selected, ..Look::default() } }
        }
        "threads" => Op::Threads,
        "eval" => Op::Evaluate { expression: tail.into(), look: Look { expressions: Vec::new(), ..look } },
        "set" => {
            let (target, value) = tail.split_once(" = ").unwrap();
            Op::Set { target: target.into(), value: value.into(), look: Look::default() }
        }
        "args" => Op::Arguments(look),
        "raw" => Op::Raw(tail.into()),
        "exception" => Op::Exception,
        "detach" => Op::Detach,
        "stop" => Op::Stop { kill: has("kill") },
        other => panic!("no operation {other}"),
    }
}

/// Every `b=` word.
fn wishes(words: &[&str]) -> Vec<Breakpoint> {
    words.iter().filter_map(|word| word.strip_prefix("b=")).map(wish).collect()
}

/// Reads `ID@PLACE`, with `,if:…`, `,hits:N`, `,log:…`, `,once`, `,off` behind it; `_` stands for a space.
fn wish(text: &str) -> Breakpoint {
    let (id, rest) = text.split_once('@').expect("a breakpoint is ID@PLACE");
    let mut parts = rest.split(',');
    let place = parts.next().unwrap();
    let mut wish = Breakpoint {
        id: id.parse().unwrap(),
        place: Place::parse(place).unwrap(),
        asked: place.into(),
        condition: None,
        hits: None,
        log: None,
        once: false,
        enabled: true,
        session: None,
        line_text: None,
        thread: None,
    };
    for part in parts {
        let part = part.replace('_', " ");
        match part.split_once(':') {
            Some(("if", condition)) => wish.condition = Some(condition.into()),
            Some(("hits", hits)) => wish.hits = Some(hits.parse().unwrap()),
            Some(("log", message)) => wish.log = Some(message.into()),
            None if part == "once" => wish.once = true,
            None if part == "off" => wish.enabled = false,
            _ => panic!("no such part of a breakpoint: {part}"),
        }
    }
    wish
}
