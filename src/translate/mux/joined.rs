//! Several processes, each with its own debug session, joined into one for a client: what goes where.
//!
//! Pure: a message or a timer in, acts out. The program itself is process 0, and as long as it has no children its
//! messages pass as they are. Which stop is shown when is in `stops.rs`, how a child is taken up in `children.rs`,
//! breakpoints for all of them in `wishes.rs`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde_json::{Value, json};

use super::children::Child;
use super::ids;
use super::stops::Resuming;
use super::wishes::Wish;
use crate::dap::Message;

/// The program's own number among the processes.
pub(super) const ROOT: usize = 0;
/// Requests of our own to the program's adapter are numbered from here on, above the client's.
const OWN_SEQ: i64 = 1_000_000_000;
/// How long the threads of all processes are waited for.
const THREADS_LIMIT: Duration = Duration::from_millis(700);

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Act {
    Client(Message),
    /// To a process's adapter.
    Process(usize, Message),
    /// Open a connection for a child; without an address, to where the program's own adapter listens.
    Connect(usize, Option<(String, u16)>),
    Arm(Timer, Duration),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// A step may take its time, while other processes wait to be shown.
    Grace(u64),
    /// The threads of some process are still not told.
    Threads(i64),
}

/// Why a process was asked something.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Why {
    /// The client asked, under this number.
    Client(i64),
    /// To take up a child.
    Initialize,
    Start,
    /// Breakpoints of this place in the list of wishes.
    Wish(String),
    /// The part of one process in the list of all threads, which the client asked for under this number.
    Threads(i64),
    Quiet,
}

/// One process.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// How far a child is taken up; None for the program itself.
    pub child: Option<Child>,
    pub pid: Option<i64>,
    /// The thread it stands in, by the process's own number.
    pub stop: Option<i64>,
    /// The client knows that it stands.
    pub shown: bool,
}

/// A list of threads that is being put together.
#[derive(Debug)]
struct Threads {
    /// Processes that have not answered.
    open: Vec<usize>,
    lists: BTreeMap<usize, Value>,
}

/// See above.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) processes: BTreeMap<usize, Process>,
    pub(super) next_process: usize,
    next_seq: i64,
    pub(super) pending: BTreeMap<(usize, i64), Why>,
    /// The client's `initialize`, for children.
    pub(super) initialize: Value,
    /// What the client asked while it configured the program, apart from breakpoints.
    pub(super) configuration: Vec<(String, Value)>,
    configured: bool,
    pub(super) wishes: Vec<Wish>,
    /// Children's threads: the number that the client knows, and the process with its own.
    threads: BTreeMap<i64, (usize, i64)>,
    lists: BTreeMap<i64, Threads>,
    /// The process whose stop the client is looking at.
    pub(super) standing: Option<usize>,
    /// Stops that were not shown yet.
    pub(super) queue: VecDeque<(usize, Value)>,
    pub(super) resuming: Option<Resuming>,
    /// A pause was asked for: the processes that may stop by it.
    pub(super) pausing: Vec<usize>,
    pub(super) grace: u64,
    pub(super) out: Vec<Act>,
}

impl Joined {
    pub fn new() -> Self {
        Self {
            processes: BTreeMap::from([(ROOT, Process::default())]),
            next_process: 1,
            next_seq: OWN_SEQ,
            pending: BTreeMap::new(),
            initialize: Value::Null,
            configuration: Vec::new(),
            configured: false,
            wishes: Vec::new(),
            threads: BTreeMap::new(),
            lists: BTreeMap::new(),
            standing: None,
            queue: VecDeque::new(),
            resuming: None,
            pausing: Vec::new(),
            grace: 0,
            out: Vec::new(),
        }
    }

    pub fn client_says(&mut self, message: Message) -> Vec<Act> {
        match message {
            Message::Request { seq, command, arguments } => self.on_client_request(seq, command, arguments),
            // The answer to something that the program's adapter asked.
            other => self.out.push(Act::Process(ROOT, other)),
        }
        std::mem::take(&mut self.out)
    }

    pub fn process_says(&mut self, process: usize, message: Message) -> Vec<Act> {
        if self.processes.contains_key(&process) {
            match message {
                Message::Request { seq, command, arguments } => {
                    self.on_reverse_request(process, seq, command, arguments);
                }
                Message::Response { request_seq, command, success, message, body } => {
                    let answer = Answer { command, success, message, body };
                    self.on_answer(process, request_seq, answer);
                }
                Message::Event { event, body } => self.on_event(process, event, body),
            }
        }
        std::mem::take(&mut self.out)
    }

    /// A child's connection is open.
    pub fn connected(&mut self, process: usize) -> Vec<Act> {
        self.on_connected(process);
        std::mem::take(&mut self.out)
    }

    /// A child's connection is closed, or could not be opened.
    pub fn gone(&mut self, process: usize) -> Vec<Act> {
        self.end_child(process);
        std::mem::take(&mut self.out)
    }

    pub fn timer(&mut self, timer: Timer) -> Vec<Act> {
        match timer {
            Timer::Grace(grace) if grace == self.grace => self.show_next(),
            Timer::Grace(_) => {}
            Timer::Threads(seq) => self.finish_threads(seq),
        }
        std::mem::take(&mut self.out)
    }

    fn on_client_request(&mut self, seq: i64, command: String, mut arguments: Value) {
        match command.as_str() {
            "initialize" => {
                arguments["supportsStartDebuggingRequest"] = Value::Bool(true);
                self.initialize = arguments.clone();
            }
            "setBreakpoints" | "setFunctionBreakpoints" | "setExceptionBreakpoints" => {
                return self.on_wish(seq, command, arguments);
            }
            "configurationDone" => self.configured = true,
            "launch" | "attach" => {}
            "threads" if self.has_children() => return self.list_threads(seq),
            "pause" => return self.pause(seq, arguments),
            "continue" | "next" | "stepIn" | "stepOut" | "stepBack" | "reverseContinue" | "goto" => {
                return self.resume(seq, command, arguments);
            }
            "disconnect" | "terminate" => self.leave_children(&command, &arguments),
            _ if !self.configured => self.configuration.push((command.clone(), arguments.clone())),
            "evaluate" if arguments.get("everywhere") == Some(&Value::Bool(true)) => self.on_everywhere(&arguments),
            _ => {}
        }
        let owner = self.owner(&command, &mut arguments);
        self.ask_for_client(owner, seq, command, arguments);
    }

    /// What is to be evaluated in every process: in children that are there, and in those to come before they run.
    fn on_everywhere(&mut self, arguments: &Value) {
        let asked = ("evaluate".to_string(), arguments.clone());
        if arguments.get("last") == Some(&Value::Bool(true)) {
            // What was evaluated before is over, for those to come too.
            self.configuration.retain(|(_, known)| known.get("everywhere") != Some(&Value::Bool(true)));
        } else if !self.configuration.contains(&asked) {
            self.configuration.push(asked);
        }
        for process in self.ready_children() {
            self.ask(process, "evaluate", arguments.clone(), Why::Quiet);
        }
    }

    pub(super) fn ready_children(&self) -> Vec<usize> {
        let ready = |(number, process): &(&usize, &Process)| **number != ROOT && process.is_ready();
        self.processes.iter().filter(ready).map(|(number, _)| *number).collect()
    }

    /// The process that a request is about; its ids become that process's own.
    pub(super) fn owner(&self, command: &str, arguments: &mut Value) -> usize {
        if let Some(process) = self.localise_thread(arguments) {
            return process;
        }
        let unowned = if command == "gotoTargets" { self.standing.unwrap_or(ROOT) } else { ROOT };
        ids::take_owner(arguments).unwrap_or(unowned)
    }

    fn localise_thread(&self, arguments: &mut Value) -> Option<usize> {
        let thread = arguments.get("threadId")?.as_i64()?;
        let (process, local) = self.threads.get(&thread).copied().unwrap_or((ROOT, thread));
        arguments["threadId"] = Value::from(local);
        Some(process)
    }

    /// Passes a client's request on. The program's adapter gets it under its own number.
    pub(super) fn ask_for_client(&mut self, process: usize, seq: i64, command: String, arguments: Value) {
        if process == ROOT {
            return self.out.push(Act::Process(ROOT, Message::Request { seq, command, arguments }));
        }
        if !self.processes.contains_key(&process) {
            return self.refuse(seq, command, "that process has ended");
        }
        self.ask(process, &command, arguments, Why::Client(seq));
    }

    /// Asks a process something of our own.
    pub(super) fn ask(&mut self, process: usize, command: &str, arguments: Value, why: Why) {
        self.next_seq += 1;
        let seq = self.next_seq;
        self.pending.insert((process, seq), why);
        self.out.push(Act::Process(process, Message::Request { seq, command: command.into(), arguments }));
    }

    fn refuse(&mut self, request_seq: i64, command: String, why: &str) {
        let message = Some(why.to_string());
        let answer = Message::Response { request_seq, command, success: false, message, body: Value::Null };
        self.out.push(Act::Client(answer));
    }

    fn on_answer(&mut self, process: usize, seq: i64, mut answer: Answer) {
        let why = match self.pending.remove(&(process, seq)) {
            Some(why) => why,
            None if process == ROOT && seq < OWN_SEQ => Why::Client(seq),
            None => return,
        };
        match why {
            Why::Client(client) => {
                ids::mark(&mut answer.body, process);
                let success = answer.success;
                self.out.push(Act::Client(answer.for_client(client)));
                self.on_resume_answered(client, success);
            }
            Why::Initialize => self.on_child_initialized(process, answer.success),
            Why::Start if !answer.success => self.end_child(process),
            Why::Wish(key) => self.on_wish_answered(process, &key, seq, answer),
            Why::Threads(client) => {
                if let Some(list) = self.lists.get_mut(&client) {
                    list.open.retain(|open| *open != process);
                    list.lists.insert(process, answer.body);
                    if list.open.is_empty() {
                        self.finish_threads(client);
                    }
                }
            }
            Why::Start | Why::Quiet => {}
        }
    }

    fn on_reverse_request(&mut self, process: usize, seq: i64, command: String, arguments: Value) {
        let answer = |success: bool, message: Option<String>| {
            let command = command.clone();
            Act::Process(process, Message::Response { request_seq: seq, command, success, message, body: Value::Null })
        };
        if command == "startDebugging" {
            self.out.push(answer(true, None));
            let request = arguments.get("request").and_then(Value::as_str).unwrap_or("attach").to_string();
            let configuration = arguments.get("configuration").cloned().unwrap_or_default();
            return self.take_up(request, configuration);
        }
        if process != ROOT {
            let why = format!("{command} is not done for a child");
            return self.out.push(answer(false, Some(why)));
        }
        self.out.push(Act::Client(Message::Request { seq, command, arguments }));
    }

    fn on_event(&mut self, process: usize, event: String, mut body: Value) {
        match event.as_str() {
            "stopped" => return self.on_stopped(process, body),
            "continued" => return self.on_continued(process, body),
            // A client that can't take up children is told of them so.
            "debugpyAttach" => return self.take_up("attach".into(), body),
            _ => {}
        }
        if process == ROOT {
            return self.out.push(Act::Client(Message::Event { event, body }));
        }
        match event.as_str() {
            "initialized" => self.configure_child(process),
            "thread" => {
                let thread = body.get("threadId").and_then(Value::as_i64).unwrap_or_default();
                let known = self.client_thread(process, thread);
                body["threadId"] = Value::from(known);
                if body.get("reason").and_then(Value::as_str) == Some("exited") {
                    self.threads.remove(&known);
                }
                self.tell(&event, body);
            }
            "process" => {
                let pid = body.get("systemProcessId").and_then(Value::as_i64);
                if let Some(process) = self.processes.get_mut(&process) {
                    process.pid = pid.or(process.pid);
                }
            }
            "output" if body.get("category").and_then(Value::as_str) != Some("telemetry") => {
                ids::mark(&mut body, process);
                self.tell(&event, body);
            }
            "breakpoint" => self.on_child_breakpoint(process, &body),
            "exited" | "terminated" => self.end_child(process),
            // What else a child says is about itself: its modules, its sockets, its abilities.
            _ => {}
        }
    }

    pub(super) fn tell(&mut self, event: &str, body: Value) {
        self.out.push(Act::Client(Message::Event { event: event.into(), body }));
    }

    fn has_children(&self) -> bool {
        self.processes.len() > 1
    }

    /// The number under which the client knows a process's thread: a child's begin with its own number.
    pub(super) fn client_thread(&mut self, process: usize, thread: i64) -> i64 {
        if process == ROOT {
            return thread;
        }
        if let Some((known, _)) = self.threads.iter().find(|(_, owned)| **owned == (process, thread)) {
            return *known;
        }
        let mut number = i64::try_from(process).unwrap_or_default() * 1000 + 1;
        while self.threads.contains_key(&number) {
            number += 1;
        }
        self.threads.insert(number, (process, thread));
        number
    }

    /// A child's threads are no more.
    pub(super) fn forget_threads(&mut self, process: usize) {
        let gone: Vec<i64> =
            self.threads.iter().filter(|(_, (owner, _))| *owner == process).map(|(number, _)| *number).collect();
        for thread in gone {
            self.threads.remove(&thread);
            self.tell("thread", json!({ "reason": "exited", "threadId": thread }));
        }
        let lists: Vec<i64> = self.lists.keys().copied().collect();
        for seq in lists {
            if let Some(list) = self.lists.get_mut(&seq) {
                list.open.retain(|open| *open != process);
                if list.open.is_empty() {
                    self.finish_threads(seq);
                }
            }
        }
    }

    /// Asks every process for its threads.
    fn list_threads(&mut self, seq: i64) {
        let ready: Vec<usize> =
            self.processes.iter().filter(|(_, process)| process.is_ready()).map(|(number, _)| *number).collect();
        for process in &ready {
            self.ask(*process, "threads", Value::Null, Why::Threads(seq));
        }
        self.lists.insert(seq, Threads { open: ready, lists: BTreeMap::new() });
        self.out.push(Act::Arm(Timer::Threads(seq), THREADS_LIMIT));
    }

    /// Answers with the threads of all processes that have told theirs.
    fn finish_threads(&mut self, seq: i64) {
        let Some(list) = self.lists.remove(&seq) else { return };
        let mut threads = Vec::new();
        for (process, body) in list.lists {
            let told = body.get("threads").and_then(Value::as_array).cloned().unwrap_or_default();
            let pid = self.processes.get(&process).and_then(|process| process.pid);
            let running = self.processes.get(&process).is_some_and(|process| process.stop.is_none());
            for mut thread in told {
                if process != ROOT && self.processes.contains_key(&process) {
                    let id = thread.get("id").and_then(Value::as_i64).unwrap_or_default();
                    thread["id"] = Value::from(self.client_thread(process, id));
                    let name = thread.get("name").and_then(Value::as_str).unwrap_or_default();
                    let owner = pid.map_or_else(|| format!("child {process}"), |pid| format!("pid {pid}"));
                    thread["name"] = Value::from(format!("{name} ({owner})"));
                }
                // The protocol has no word for a thread that goes on while the program stands.
                if running && self.standing.is_some() {
                    thread["running"] = Value::Bool(true);
                }
                threads.push(thread);
            }
        }
        let body = json!({ "threads": threads });
        let answer =
            Message::Response { request_seq: seq, command: "threads".into(), success: true, message: None, body };
        self.out.push(Act::Client(answer));
    }
}

impl Process {
    /// Whether it can be asked things.
    pub(super) fn is_ready(&self) -> bool {
        self.child.as_ref().is_none_or(Child::is_ready)
    }
}

/// A response, on its way.
#[derive(Debug)]
pub(super) struct Answer {
    pub command: String,
    pub success: bool,
    pub message: Option<String>,
    pub body: Value,
}

impl Answer {
    pub fn for_client(self, request_seq: i64) -> Message {
        let Self { command, success, message, body } = self;
        Message::Response { request_seq, command, success, message, body }
    }
}
