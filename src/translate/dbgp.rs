//! PHP, Ruby and Perl: the program's own interpreter debugs it, by an engine in its process that speaks DBGp.
//!
//! The program is started at `launch` with that engine loaded, which connects to a socket of ours. While the program stands
//! still, each command is answered before the next is sent; what the client asks meanwhile waits its turn, except for
//! the wish to end it all.

mod dialect;
mod spots;
mod stops;
mod values;
mod wire;
mod xml;

pub(crate) use wire::base64;

use std::collections::VecDeque;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use super::{Asked, Client, child};
use crate::dap::Message;
use dialect::Dialect;
use spots::Spots;
use stops::Run;
use wire::{Answers, Commands};
use xml::Element;

/// How long an engine may take to connect.
const OPENING: Duration = Duration::from_secs(20);
/// How long an engine may take to answer while the program stands still.
const ANSWERING: Duration = Duration::from_secs(30);
/// How long a program may take to end once it was asked to.
const LEAVING: Duration = Duration::from_millis(500);
/// Bytes of a text that are asked for.
const LONGEST_TEXT: &str = "20000";

pub fn php(asked: &Asked) -> u8 {
    Translator::run(asked, &dialect::PHP)
}

pub fn ruby(asked: &Asked) -> u8 {
    Translator::run(asked, &dialect::RUBY)
}

pub fn perl(asked: &Asked) -> u8 {
    Translator::run(asked, &dialect::PERL)
}

/// What comes from one of three sides.
enum Happening {
    Asked(Message),
    /// The client is gone.
    Left,
    Said(Element),
    /// The engine is gone.
    Silent,
    /// The program is gone: its exit code, or a signal as a negative number.
    Ended(i32),
}

struct Translator<'a> {
    asked: &'a Asked,
    dialect: &'static Dialect,
    client: Client,
    happenings: Receiver<Happening>,
    happen: Sender<Happening>,
    /// What came while an answer was waited for.
    later: VecDeque<Happening>,
    commands: Option<Commands>,
    /// The folder of the socket and the engine's file; removed at the end.
    folder: Option<PathBuf>,
    pid: Option<Pid>,
    stop_on_entry: bool,
    run: Option<Run>,
    pausing: bool,
    /// A stop that nobody waits for any more is on its way.
    stray: bool,
    spots: Spots,
    /// The frames that were told since the last stop: thread and level.
    frames: Vec<(i64, i64)>,
    kept: Vec<values::Kept>,
    /// The class and the message of what was thrown.
    thrown: Option<(String, String)>,
    /// The thread that stopped last.
    thread: i64,
    /// Whether `eval` looks at its frame; asked when it first matters.
    evaluates_anywhere: Option<bool>,
    done: bool,
}

impl<'a> Translator<'a> {
    fn run(asked: &'a Asked, dialect: &'static Dialect) -> u8 {
        let (happen, happenings) = channel();
        let client = Client::among(happen.clone(), Happening::Asked, Happening::Left);
        let mut translator = Self {
            asked,
            dialect,
            client,
            happenings,
            happen,
            later: VecDeque::new(),
            commands: None,
            folder: None,
            pid: None,
            stop_on_entry: false,
            run: None,
            pausing: false,
            stray: false,
            spots: Spots::new(dialect.simple),
            frames: Vec::new(),
            kept: Vec::new(),
            thrown: None,
            thread: 1,
            evaluates_anywhere: None,
            done: false,
        };
        while !translator.done {
            let next = match translator.later.pop_front() {
                Some(happening) => Ok(happening),
                None => translator.happenings.recv(),
            };
            match next {
                Ok(happening) => translator.on(happening),
                Err(_) => break,
            }
        }
        if let Some(folder) = &translator.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
        0
    }

    fn on(&mut self, happening: Happening) {
        match happening {
            Happening::Asked(Message::Request { seq, command, arguments }) => self.serve(seq, &command, &arguments),
            Happening::Asked(_) => {}
            Happening::Left => {
                self.end();
                self.done = true;
            }
            Happening::Said(element) => self.said(&element),
            // The program may go on without its engine, or is about to end.
            Happening::Silent => self.commands = None,
            Happening::Ended(code) => {
                self.pid = None;
                self.client.event("exited", json!({ "exitCode": code }));
                self.client.event("terminated", json!({}));
            }
        }
    }

    fn serve(&mut self, seq: i64, command: &str, arguments: &Json) {
        let result = match command {
            "initialize" => self.initialize(),
            "launch" => return self.launch(seq, arguments),
            "attach" => Err(format!("a running {} program can't be attached to", self.dialect.language)),
            "setBreakpoints" => self.while_still(|this| this.set_lines(arguments)),
            "setFunctionBreakpoints" => self.while_still(|this| this.set_functions(arguments)),
            "setExceptionBreakpoints" => self.while_still(|this| this.set_exceptions(arguments)),
            "configurationDone" => {
                self.client.answer(seq, command, Ok(json!({})));
                return self.set_off();
            }
            "threads" => self.threads(),
            "modules" => self.while_still(Self::modules),
            "stackTrace" => self.stack(arguments),
            "scopes" => self.scopes(arguments),
            "variables" => self.variables(arguments),
            "evaluate" => self.evaluate(arguments),
            "setExpression" => self.set_expression(arguments),
            "exceptionInfo" => self.exception_info(),
            "continue" | "next" | "stepIn" | "stepOut" => return self.resume(seq, command, arguments),
            "pause" => self.pause(),
            "disconnect" | "terminate" => return self.disconnect(seq, command, arguments),
            other => Err(format!("{other} is not done here")),
        };
        self.client.answer(seq, command, result);
    }

    fn initialize(&mut self) -> Result<Json, String> {
        // Who only asks what there is, is told. A program that is started shows it soon enough.
        if self.asked.streams.is_none() {
            let interpreter = self.asked.command.first().map(String::as_str).unwrap_or_default();
            let _version = (self.dialect.check)(interpreter)?;
        }
        Ok(json!({
            "supportsConfigurationDoneRequest": true,
            "supportsConditionalBreakpoints": true,
            "supportsHitConditionalBreakpoints": true,
            "supportsFunctionBreakpoints": true,
            "supportsExceptionInfoRequest": true,
            "supportsExceptionOptions": true,
            "supportsModulesRequest": true,
            "supportsSetExpression": true,
            "supportsEvaluateForHovers": true,
            "supportTerminateDebuggee": true,
            "exceptionBreakpointFilters": [
                { "filter": "raised", "label": "Everything that is thrown", "default": false },
                { "filter": "uncaught", "label": "What is caught nowhere", "default": true },
            ],
        }))
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

    /// Starts the program and waits until its engine is there.
    fn start(&mut self, arguments: &Json) -> Result<u32, String> {
        self.stop_on_entry = arguments.get("stopOnEntry").and_then(Json::as_bool).unwrap_or(false);
        let folder = child::private_folder(self.asked)?;
        self.folder = Some(folder.clone());
        let socket = folder.join("engine");
        let listener = UnixListener::bind(&socket).map_err(|error| format!("{}: {error}", socket.display()))?;
        let mut agent = folder.clone();
        if let Some((name, text)) = self.dialect.agent {
            agent = folder.join(name);
            let text = text.replace("{socket}", &socket.to_string_lossy());
            let written = agent
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&agent))
                .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
            written.map_err(|error| format!("{}: {error}", agent.display()))?;
        }
        let child = self.spawn(arguments, &folder, &agent, &socket)?;
        let pid = child.id();
        self.pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let stream = self.accept(&listener, child)?;
        let reader = stream.try_clone().map_err(|error| error.to_string())?;
        let tell = self.happen.clone();
        std::thread::spawn(move || {
            let mut answers = Answers::new(reader);
            while let Some(element) = answers.next() {
                if tell.send(Happening::Said(element)).is_err() {
                    return;
                }
            }
            let _ = tell.send(Happening::Silent);
        });
        self.commands = Some(Commands::new(stream));
        self.greet()?;
        Ok(pid)
    }

    fn spawn(&self, arguments: &Json, folder: &Path, agent: &Path, socket: &Path) -> Result<Child, String> {
        let words = child::words(arguments);
        let (interpreter, rest) = words.split_first().ok_or("no program was named")?;
        let options = (self.dialect.options)(interpreter)?;
        let fill = |word: &String| {
            word.replace("{socket}", &socket.to_string_lossy())
                .replace("{agent}", &agent.to_string_lossy())
                .replace("{folder}", &folder.to_string_lossy())
        };
        // Only what the adapter put before the program is filled in.
        let own = usize::try_from(arguments.get("own").and_then(Json::as_u64).unwrap_or(0)).unwrap_or(0);
        let mut command = child::command(interpreter, arguments, self.asked)?;
        command.args(options).args(rest.iter().take(own).map(fill)).args(rest.iter().skip(own));
        command.spawn().map_err(|error| format!("{interpreter} can't be started: {error}"))
    }

    /// Waits for the engine; from then on the program is watched.
    fn accept(&self, listener: &UnixListener, mut child: Child) -> Result<UnixStream, String> {
        let _ = listener.set_nonblocking(true);
        let deadline = Instant::now() + OPENING;
        let stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(_) if matches!(child.try_wait(), Ok(Some(_))) => {
                    return Err("it ended before its debugger was there".into());
                }
                Err(error) if Instant::now() > deadline => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(format!("its debugger did not report: {error}"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let _ = stream.set_nonblocking(false);
        let tell = self.happen.clone();
        std::thread::spawn(move || {
            let _ = tell.send(Happening::Ended(child::exit_code(child.wait())));
        });
        Ok(stream)
    }

    /// Hears the engine's first words and tells it what we understand.
    fn greet(&mut self) -> Result<(), String> {
        self.hear(|element| element.name == "init")?;
        let wanted = [
            ("breakpoint_details", "1"),
            ("resolved_breakpoints", "1"),
            ("notify_ok", "1"),
            ("extended_properties", "1"),
            ("max_depth", "2"),
            ("max_children", "100"),
            ("max_data", LONGEST_TEXT),
        ];
        for (name, value) in wanted {
            // An engine that does not know one does without.
            let _ = self.ask("feature_set", &[('n', name), ('v', value)], None)?;
        }
        if let Some(code) = self.dialect.prelude {
            let _ = self.ask("eval", &[], Some(code))?;
        }
        Ok(())
    }

    /// Sends a command and waits for its answer, whatever else comes. The inner failure is the engine's own.
    fn ask(&mut self, command: &str, options: &[(char, &str)], data: Option<&str>) -> Result<Element, String> {
        let commands = self.commands.as_mut().ok_or("the program has ended")?;
        let id = commands.send(command, options, data).map_err(|error| error.to_string())?;
        self.hear(|element| element.attribute("transaction_id") == Some(&id))
    }

    /// As [`Self::ask`]; what the engine refuses is a failure, too.
    fn demand(&mut self, command: &str, options: &[(char, &str)], data: Option<&str>) -> Result<Element, String> {
        let answer = self.ask(command, options, data)?;
        match answer.first("error") {
            Some(error) => Err(error.first("message").map(Element::content).unwrap_or_default()),
            None => Ok(answer),
        }
    }

    fn hear(&mut self, is_it: impl Fn(&Element) -> bool) -> Result<Element, String> {
        let deadline = Instant::now() + ANSWERING;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.happenings.recv_timeout(left) {
                Ok(Happening::Said(element)) if is_it(&element) => return Ok(element),
                Ok(Happening::Said(element)) if element.name == "notify" => self.notified(&element),
                Ok(Happening::Asked(Message::Request { seq, command, arguments })) if command == "disconnect" => {
                    self.disconnect(seq, &command, &arguments);
                    return Err("it is being ended".into());
                }
                Ok(end @ (Happening::Left | Happening::Silent | Happening::Ended(_))) => {
                    self.later.push_back(end);
                    return Err("the program has ended".into());
                }
                Ok(other) => self.later.push_back(other),
                Err(RecvTimeoutError::Timeout) => return Err("no answer in time".into()),
                Err(RecvTimeoutError::Disconnected) => return Err("the program has ended".into()),
            }
        }
    }

    fn disconnect(&mut self, seq: i64, command: &str, arguments: &Json) {
        if arguments.get("terminateDebuggee").and_then(Json::as_bool).unwrap_or(true) {
            self.end();
        } else {
            self.let_go();
        }
        self.client.answer(seq, command, Ok(json!({})));
        self.done = true;
    }

    /// The program goes on without us.
    fn let_go(&mut self) {
        if self.run.is_some() && !self.dialect.hears {
            let _ = self.interrupt();
        }
        if let Some(commands) = &mut self.commands {
            let _ = commands.send("detach", &[], None);
            // An engine takes the end of the socket for a wish to go on, too.
            std::thread::sleep(Duration::from_millis(20));
            commands.close();
        }
        self.commands = None;
    }

    fn end(&mut self) {
        let Some(pid) = self.pid.take() else { return };
        let _ = kill_process(pid, Signal::TERM);
        let deadline = Instant::now() + LEAVING;
        while let Ok(happening) = self.happenings.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            if matches!(happening, Happening::Ended(_)) {
                return;
            }
        }
        let _ = kill_process(pid, Signal::KILL);
    }
}
