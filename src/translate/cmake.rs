//! CMake, which debugs the scripts it runs since 3.27. It speaks the protocol on a socket, but has to be started with its
//! own command line, and leaves some of the protocol out: what can be put right is put right here, the rest is said.
//!
//! - A frame has the name of the command it is about to run: the function it stands in is the next frame's.
//! - The variables are one level too deep, among all that CMake defines itself.
//! - An unknown variable is an empty one, an expression is nothing, and a frame that is gone ends the connection.
//! - It has no counts, ignores conditions, and waits at its end for the client to leave.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};
use tokio_util::codec::{Decoder as _, Encoder as _};

use super::{Asked, Client, Streams, child};
use crate::dap::{Codec, Message};

/// How long CMake may take to open its socket, and to answer.
const OPENING: Duration = Duration::from_secs(20);
const ANSWERING: Duration = Duration::from_secs(20);
/// Lines that CMake prints about its debugger, before those of the program.
const CHATTER: [&str; 3] =
    ["Running with debugger on.", "Waiting for debugger client to connect...", "Debugger client connected."];

enum Happening {
    Asked(Message),
    Left,
    Said(Message),
    Silent,
    Ended(i32),
}

struct Translator<'a> {
    asked: &'a Asked,
    client: Client,
    happenings: Receiver<Happening>,
    happen: Sender<Happening>,
    later: VecDeque<Happening>,
    cmake: Option<(UnixStream, Codec)>,
    folder: Option<PathBuf>,
    pid: Option<Pid>,
    sent: i64,
    entering: bool,
    /// Requests that were passed on: CMake's number, then the client's and its command.
    passed: HashMap<i64, (i64, String)>,
    frames: HashSet<i64>,
    /// References whose variables are the script's among CMake's own.
    locals: HashSet<i64>,
    /// Passes that are counted: the breakpoint's number at CMake, how many are wanted, how many were seen.
    counts: HashMap<i64, (u64, u64)>,
    files: HashMap<String, Vec<i64>>,
    done: bool,
}

/// The translator.
pub fn cmake(asked: &Asked) -> u8 {
    let (happen, happenings) = channel();
    let client = Client::among(happen.clone(), Happening::Asked, Happening::Left);
    let mut translator = Translator {
        asked,
        client,
        happenings,
        happen,
        later: VecDeque::new(),
        cmake: None,
        folder: None,
        pid: None,
        sent: 0,
        entering: false,
        passed: HashMap::new(),
        frames: HashSet::new(),
        locals: HashSet::new(),
        counts: HashMap::new(),
        files: HashMap::new(),
        done: false,
    };
    while !translator.done {
        let next = translator.later.pop_front().map_or_else(|| translator.happenings.recv().ok(), Some);
        match next {
            Some(happening) => translator.on(happening),
            None => break,
        }
    }
    if let Some(folder) = &translator.folder {
        let _ = std::fs::remove_dir_all(folder);
    }
    0
}

impl Translator<'_> {
    fn on(&mut self, happening: Happening) {
        match happening {
            Happening::Asked(Message::Request { seq, command, arguments }) => self.serve(seq, &command, &arguments),
            Happening::Said(Message::Event { event, body }) => self.told(&event, body),
            Happening::Said(Message::Response { request_seq, success, message, body, .. }) => {
                if let Some((seq, command)) = self.passed.remove(&request_seq) {
                    let failed = || Message::error_text(message.as_deref(), &body);
                    let result = if success { Ok(body.clone()) } else { Err(failed()) };
                    self.client.answer(seq, &command, result);
                }
            }
            Happening::Asked(_) | Happening::Said(_) => {}
            Happening::Silent => self.cmake = None,
            Happening::Left => {
                self.end();
                self.done = true;
            }
            Happening::Ended(code) => {
                self.pid = None;
                self.client.event("exited", json!({ "exitCode": code }));
                self.client.event("terminated", json!({}));
            }
        }
    }

    fn serve(&mut self, seq: i64, command: &str, arguments: &Json) {
        let result = match command {
            "initialize" => Ok(capabilities()),
            "launch" => return self.launch(seq, arguments),
            "setBreakpoints" => self.set_breakpoints(arguments),
            "configurationDone" => {
                if self.entering {
                    let _ = self.ask("pause", &json!({ "threadId": 1 }));
                }
                return self.pass(seq, command, arguments);
            }
            "stackTrace" => self.stack(arguments),
            "scopes" => self.scopes(arguments),
            "variables" => self.variables(arguments),
            "evaluate" => self.evaluate(arguments),
            "continue" | "next" | "stepIn" | "stepOut" => {
                self.frames.clear();
                self.locals.clear();
                return self.pass(seq, command, arguments);
            }
            "setExceptionBreakpoints" | "threads" | "pause" | "exceptionInfo" => {
                return self.pass(seq, command, arguments);
            }
            "disconnect" | "terminate" => return self.disconnect(seq, command, arguments),
            other => Err(format!("{other} is not done here")),
        };
        self.client.answer(seq, command, result);
    }

    fn launch(&mut self, seq: i64, arguments: &Json) {
        match self.start(arguments) {
            Ok(pid) => {
                self.client.event("process", json!({ "systemProcessId": pid, "startMethod": "launch" }));
                self.client.answer(seq, "launch", Ok(json!({})));
                self.client.event("initialized", json!({}));
            }
            Err(message) => self.client.answer(seq, "launch", Err(message)),
        }
    }

    fn start(&mut self, arguments: &Json) -> Result<u32, String> {
        self.entering = arguments.get("stopOnEntry").and_then(Json::as_bool).unwrap_or(false);
        let folder = child::private_folder(self.asked)?;
        self.folder = Some(folder.clone());
        let socket = folder.join("cmake");
        let program = self.asked.command.first().ok_or("no cmake was named")?;
        let own = arguments.get("program").and_then(Json::as_str).unwrap_or(program);
        if std::fs::canonicalize(own).ok() != std::fs::canonicalize(program).ok() {
            let note = format!("{own} can't be debugged: {program} runs in its place\n");
            self.client.event("output", json!({ "category": "console", "output": note }));
        }
        let mut command = child::command(program, arguments, self.asked)?;
        command.arg("--debugger").arg("--debugger-pipe").arg(&socket).args(child::words(arguments));
        command.stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{program} can't be started: {error}"))?;
        let pid = child.id();
        self.pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let copied = child.stdout.take().zip(self.asked.streams.clone());
        let copier = copied.map(|(from, streams)| std::thread::spawn(move || copy_output(from, &streams)));
        let deadline = Instant::now() + OPENING;
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(_) if matches!(child.try_wait(), Ok(Some(_))) => {
                    if let Some(copier) = copier {
                        let _ = copier.join();
                    }
                    return Err("it ended before its debugger was there".into());
                }
                Err(error) if Instant::now() > deadline => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("its debugger can't be reached: {error}"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let tell = self.happen.clone();
        std::thread::spawn(move || {
            let code = child::exit_code(child.wait());
            // All that it printed is passed on first.
            if let Some(copier) = copier {
                let _ = copier.join();
            }
            let _ = tell.send(Happening::Ended(code));
        });
        let reader = stream.try_clone().map_err(|error| error.to_string())?;
        let tell = self.happen.clone();
        std::thread::spawn(move || listen(reader, &tell));
        self.cmake = Some((stream, Codec::default()));
        self.ask("initialize", &json!({ "adapterID": "cmake", "linesStartAt1": true, "columnsStartAt1": true }))?;
        self.ask("launch", &json!({}))?;
        Ok(pid)
    }

    fn send(&mut self, command: &str, arguments: &Json) -> Result<i64, String> {
        let (stream, codec) = self.cmake.as_mut().ok_or("cmake has ended")?;
        self.sent += 1;
        let mut bytes = BytesMut::new();
        let request = Message::Request { seq: self.sent, command: command.into(), arguments: arguments.clone() };
        codec.encode(request, &mut bytes).map_err(|error| error.to_string())?;
        stream.write_all(&bytes).map_err(|error| error.to_string())?;
        Ok(self.sent)
    }

    /// The answer goes to the client as it is.
    fn pass(&mut self, seq: i64, command: &str, arguments: &Json) {
        match self.send(command, arguments) {
            Ok(sent) => {
                self.passed.insert(sent, (seq, command.to_string()));
            }
            Err(message) => self.client.answer(seq, command, Err(message)),
        }
    }

    /// Waits for the answer; what else comes is for later.
    fn ask(&mut self, command: &str, arguments: &Json) -> Result<Json, String> {
        let sent = self.send(command, arguments)?;
        let deadline = Instant::now() + ANSWERING;
        loop {
            match self.happenings.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Happening::Said(Message::Response { request_seq, success, message, body, .. }))
                    if request_seq == sent =>
                {
                    return if success { Ok(body) } else { Err(Message::error_text(message.as_deref(), &body)) };
                }
                Ok(Happening::Asked(Message::Request { seq, command, arguments })) if command == "disconnect" => {
                    self.disconnect(seq, &command, &arguments);
                    return Err("it is being ended".into());
                }
                Ok(end @ (Happening::Left | Happening::Silent | Happening::Ended(_))) => {
                    self.later.push_back(end);
                    return Err("cmake has ended".into());
                }
                Ok(other) => self.later.push_back(other),
                Err(_) => return Err("no answer in time".into()),
            }
        }
    }

    fn told(&mut self, event: &str, mut body: Json) {
        match event {
            // Told once we are ready for it, and when it has really ended.
            "initialized" | "exited" => {}
            "terminated" => {
                let _ = self.send("disconnect", &json!({}));
            }
            "stopped" => {
                if self.is_early(&body) {
                    let _ = self.send("continue", &json!({ "threadId": 1 }));
                    return;
                }
                if std::mem::take(&mut self.entering) && body["reason"] == "pause" {
                    body["reason"] = json!("entry");
                }
                if body["reason"] == "exception" {
                    body["description"] = body["text"].take();
                }
                self.client.event(event, body);
            }
            _ => self.client.event(event, body),
        }
    }

    /// Counts a pass; true while all breakpoints of the stop wait for a later one.
    fn is_early(&mut self, body: &Json) -> bool {
        let hit = body.get("hitBreakpointIds").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_i64);
        let mut early = None;
        for id in hit {
            let waits = self.counts.get_mut(&id).is_some_and(|(wanted, seen)| {
                *seen += 1;
                *seen < *wanted
            });
            early = Some(early.unwrap_or(true) && waits);
        }
        early.unwrap_or(false)
    }

    fn set_breakpoints(&mut self, arguments: &Json) -> Result<Json, String> {
        let asked = arguments.get("breakpoints").and_then(Json::as_array).cloned().unwrap_or_default();
        let text = |one: &Json, name: &str| one.get(name).and_then(Json::as_str).map(ToString::to_string);
        let plain: Vec<&Json> = asked.iter().filter(|one| text(one, "condition").is_none()).collect();
        let lines: Vec<Json> = plain.iter().map(|one| json!({ "line": one["line"] })).collect();
        let body = self.ask("setBreakpoints", &json!({ "source": arguments["source"], "breakpoints": lines }))?;
        let set = body.get("breakpoints").and_then(Json::as_array).cloned().unwrap_or_default();
        let path = arguments.pointer("/source/path").and_then(Json::as_str).unwrap_or_default().to_string();
        for old in self.files.remove(&path).into_iter().flatten() {
            self.counts.remove(&old);
        }
        let mut set = set.into_iter();
        let mut told = Vec::new();
        for one in &asked {
            if text(one, "condition").is_some() {
                told.push(json!({ "verified": false, "message": "CMake has no conditions on breakpoints" }));
                continue;
            }
            let made = set.next().unwrap_or_default();
            let hits = text(one, "hitCondition").and_then(|text| text.trim_start_matches(['>', '=', ' ']).parse().ok());
            if let (Some(id), Some(hits)) = (made.get("id").and_then(Json::as_i64), hits) {
                self.counts.insert(id, (hits, 0));
            }
            self.files.entry(path.clone()).or_default().extend(made.get("id").and_then(Json::as_i64));
            told.push(made);
        }
        Ok(json!({ "breakpoints": told }))
    }

    fn stack(&mut self, arguments: &Json) -> Result<Json, String> {
        let body = self.ask("stackTrace", &json!({ "threadId": 1 }))?;
        let mut frames = body.get("stackFrames").and_then(Json::as_array).cloned().unwrap_or_default();
        let names: Vec<Json> = frames.iter().map(|frame| frame["name"].clone()).collect();
        let count = frames.len();
        for (index, frame) in frames.iter_mut().enumerate() {
            self.frames.extend(frame.get("id").and_then(Json::as_i64));
            let path = frame.pointer("/source/path").and_then(Json::as_str).unwrap_or_default();
            let file = path.rsplit('/').next().unwrap_or(path).to_string();
            frame["source"]["name"] = json!(file.clone());
            frame["name"] = names.get(index + 1).cloned().unwrap_or_else(|| json!(file));
        }
        let number = |name: &str| arguments.get(name).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
        let levels = number("levels").filter(|levels| *levels > 0).unwrap_or(usize::MAX);
        let shown: Vec<Json> = frames.into_iter().skip(number("startFrame").unwrap_or(0)).take(levels).collect();
        Ok(json!({ "stackFrames": shown, "totalFrames": count }))
    }

    fn known_frame(&self, arguments: &Json) -> Result<i64, String> {
        let id = arguments.get("frameId").and_then(Json::as_i64);
        id.filter(|id| self.frames.contains(id)).ok_or_else(|| "there is no such frame".into())
    }

    fn scopes(&mut self, arguments: &Json) -> Result<Json, String> {
        let frame = self.known_frame(arguments)?;
        let body = self.ask("scopes", &json!({ "frameId": frame }))?;
        let mut scopes = Vec::new();
        let references: Vec<i64> =
            list(&body, "scopes").iter().filter_map(|scope| scope["variablesReference"].as_i64()).collect();
        for reference in references {
            let body = self.ask("variables", &json!({ "variablesReference": reference }))?;
            for group in list(&body, "variables") {
                let inner = group["variablesReference"].as_i64().unwrap_or(0);
                let (name, hint) = match group["name"].as_str() {
                    Some("Locals") => {
                        self.locals.insert(inner);
                        ("Locals", "locals")
                    }
                    Some("CacheVariables") => ("Globals (cache)", ""),
                    Some("Directories") => ("Directories", ""),
                    _ => continue,
                };
                let scope = json!({ "name": name, "presentationHint": hint, "variablesReference": inner, "expensive": hint.is_empty() });
                scopes.push(scope);
            }
        }
        scopes.sort_by_key(|scope| scope["name"] != "Locals");
        Ok(json!({ "scopes": scopes }))
    }

    fn variables(&mut self, arguments: &Json) -> Result<Json, String> {
        let reference = arguments.get("variablesReference").and_then(Json::as_i64).unwrap_or(0);
        let body = self.ask("variables", &json!({ "variablesReference": reference }))?;
        let mut variables = list(&body, "variables");
        if self.locals.contains(&reference) {
            variables.retain(|variable| variable["name"].as_str().is_some_and(is_of_script));
        }
        let number = |name: &str| arguments.get(name).and_then(Json::as_u64).and_then(|n| usize::try_from(n).ok());
        let count = number("count").filter(|count| *count > 0).unwrap_or(usize::MAX);
        let shown: Vec<Json> = variables.into_iter().skip(number("start").unwrap_or(0)).take(count).collect();
        Ok(json!({ "variables": shown }))
    }

    fn evaluate(&mut self, arguments: &Json) -> Result<Json, String> {
        let expression = arguments.get("expression").and_then(Json::as_str).unwrap_or_default().trim();
        let name = expression.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).unwrap_or(expression);
        if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || "_-./+".contains(c)) {
            let what = "CMake evaluates the names of variables, and nothing else; one of them: bugeye print NAME";
            return Err(format!("unsupported: {what}"));
        }
        let frame = self.known_frame(arguments)?;
        let asked = json!({ "expression": name, "frameId": frame, "context": "watch" });
        let body = self.ask("evaluate", &asked)?;
        if body.get("type").is_none() {
            return Err(format!("there is no variable {name} here"));
        }
        Ok(body)
    }

    fn disconnect(&mut self, seq: i64, command: &str, arguments: &Json) {
        if arguments.get("terminateDebuggee").and_then(Json::as_bool).unwrap_or(true) {
            self.end();
        } else {
            let _ = self.send("disconnect", &json!({}));
        }
        self.client.answer(seq, command, Ok(json!({})));
        self.done = true;
    }

    fn end(&mut self) {
        let Some(pid) = self.pid.take() else { return };
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn list(body: &Json, name: &str) -> Vec<Json> {
    body.get(name).and_then(Json::as_array).cloned().unwrap_or_default()
}

/// What CMake defines for itself would hide what the script defines.
fn is_of_script(name: &str) -> bool {
    const OWN: [&str; 6] = ["UNIX", "LINUX", "APPLE", "WIN32", "RUN_CONFIGURE", "_INCLUDED_SYSTEM_INFO_FILE"];
    let starts = ["CMAKE_", "_CMAKE_", "PROJECT_", "__", "_FUNCTION_ARG"];
    let ends = ["_COMPAT_VERSION", "_DESCRIPTION", "_HOMEPAGE_URL", "_SPDX_LICENSE", "_IS_TOP_LEVEL"];
    !OWN.contains(&name)
        && !starts.iter().any(|start| name.starts_with(start))
        && !ends.iter().any(|end| name.ends_with(end))
}

/// What the script prints, without what CMake says about its debugger first.
fn copy_output(from: ChildStdout, streams: &Streams) {
    let Ok(mut to) = std::fs::OpenOptions::new().append(true).open(&streams.stdout) else { return };
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut chatter = CHATTER.iter().peekable();
    while let Some(expected) = chatter.peek() {
        line.clear();
        match from.read_until(b'\n', &mut line) {
            Ok(read) if read > 0 => {}
            _ => return,
        }
        if String::from_utf8_lossy(&line).trim_end() == **expected {
            chatter.next();
        } else if to.write_all(&line).is_err() {
            return;
        }
    }
    let mut buffer = [0u8; 64 * 1024];
    while let Ok(read) = from.read(&mut buffer) {
        if read == 0 || to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

fn listen(mut reader: UnixStream, tell: &Sender<Happening>) {
    let (mut codec, mut bytes) = (Codec::default(), BytesMut::new());
    let mut buffer = [0u8; 64 * 1024];
    loop {
        match codec.decode(&mut bytes) {
            Ok(Some(message)) => {
                if tell.send(Happening::Said(message)).is_err() {
                    return;
                }
            }
            Ok(None) => match reader.read(&mut buffer) {
                Ok(read) if read > 0 => bytes.extend_from_slice(&buffer[..read]),
                _ => break,
            },
            Err(_) => break,
        }
    }
    let _ = tell.send(Happening::Silent);
}

/// CMake's own, as far as they are true, and what is done here.
fn capabilities() -> Json {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsExceptionInfoRequest": true,
        "exceptionBreakpointFilters": [
            { "filter": "FATAL_ERROR", "label": "Fatal error", "default": true },
            { "filter": "INTERNAL_ERROR", "label": "Internal error", "default": true },
            { "filter": "WARNING", "label": "Warning", "default": false },
            { "filter": "MESSAGE", "label": "Other messages", "default": false },
            { "filter": "LOG", "label": "Debug log", "default": false },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::is_of_script;

    #[test]
    fn the_script_s_own_variables_are_told_from_cmake_s() {
        for own in ["total", "ARGV0", "SOURCES", "MY_UNIX", "out"] {
            assert!(is_of_script(own), "{own}");
        }
        for other in ["CMAKE_C_COMPILER", "_CMAKE_INSTALL_DIR", "PROJECT_NAME", "UNIX", "every_DESCRIPTION"] {
            assert!(!is_of_script(other), "{other}");
        }
    }
}
