//! Node's own inspector, for JavaScript and TypeScript.
//!
//! On one side the debug adapter protocol, on the other one inspector for each process of the program: it is a thread of
//! the session, and so is each of its workers. Everything runs in one thread of this process; what comes from clients,
//! inspectors and processes arrives as an [`Input`], and each request is a task that asks inspectors and then answers.

mod breakpoints;
mod calls;
mod inspector;
mod launch;
mod looking;
mod pauses;
mod plain;
mod scripts;
mod sourcemap;
mod syntax;
mod target;
mod trace;
mod urls;
mod values;
mod websocket;

pub(crate) use urls::unescaped;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use self::breakpoints::Wishes;
use self::inspector::{Link, Wire};
use self::launch::{Announcement, Started};
use self::looking::Handles;
use self::target::{Doing, Script, Target};
use self::trace::Trace;
use super::{Asked, Client, Streams};
use crate::dap::Message;

/// What evaluations leave at the inspector until the thread goes on.
const GROUP: &str = "bugeye";
/// How long a program may take to be a Node process that waits for the debugger.
const STARTING: Duration = Duration::from_secs(30);

/// What this process is told.
#[derive(Debug)]
enum Input {
    Client(Message),
    /// The client is gone.
    Alone,
    Inspector(u32, Value),
    Closed(u32),
    Announced(Announcement),
    /// The program's exit code; negative for a signal.
    Exited(i64),
}

/// Between the client and the inspectors.
#[derive(Debug)]
struct Bridge {
    client: RefCell<Client>,
    inputs: mpsc::UnboundedSender<Input>,
    /// The interpreter to use where the client names none.
    node: String,
    streams: Option<Streams>,
    links: RefCell<BTreeMap<u32, Rc<Link>>>,
    targets: RefCell<BTreeMap<i64, Rc<Target>>>,
    last: Cell<i64>,
    wishes: RefCell<Wishes>,
    trace: RefCell<Option<Rc<Trace>>>,
    filters: RefCell<Vec<String>>,
    handles: RefCell<Handles>,
    started: RefCell<Option<Started>>,
    /// The file that the program begins in.
    program: RefCell<Option<PathBuf>>,
    /// The same, while it is to stop there.
    entry: RefCell<Option<PathBuf>>,
    /// Who waits for the first process to be ready.
    first: RefCell<Option<oneshot::Sender<Result<(), String>>>>,
    /// Held by what changes breakpoints and what lets threads go on, each in the order it was asked for.
    order: tokio::sync::Mutex<()>,
    /// The client has configured everything.
    is_configured: Cell<bool>,
    is_over: Cell<bool>,
}

/// Runs until the client is gone or disconnects.
pub fn node(asked: &Asked) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("could not begin: {error}");
            return 1;
        }
    };
    let (client, mut asks) = Client::on_standard_streams();
    let (inputs, mut input) = mpsc::unbounded_channel();
    let bridge = Rc::new(Bridge {
        client: RefCell::new(client),
        inputs: inputs.clone(),
        node: asked.command.first().cloned().unwrap_or_else(|| "node".into()),
        streams: asked.streams.clone(),
        links: RefCell::default(),
        targets: RefCell::default(),
        last: Cell::new(0),
        wishes: RefCell::default(),
        trace: RefCell::default(),
        filters: RefCell::default(),
        handles: RefCell::default(),
        started: RefCell::default(),
        program: RefCell::default(),
        entry: RefCell::default(),
        first: RefCell::default(),
        order: tokio::sync::Mutex::default(),
        is_configured: Cell::new(false),
        is_over: Cell::new(false),
    });
    tokio::task::LocalSet::new().block_on(&runtime, async move {
        tokio::task::spawn_local(async move {
            while let Some(message) = asks.recv().await {
                let _ = inputs.send(Input::Client(message));
            }
            let _ = inputs.send(Input::Alone);
        });
        while let Some(input) = input.recv().await {
            match input {
                Input::Client(Message::Request { seq, command, arguments }) => {
                    bridge.clone().on_request(seq, command, arguments);
                }
                Input::Client(_) => {}
                Input::Alone => break,
                Input::Inspector(link, message) => bridge.on_message(link, &message),
                Input::Closed(link) => bridge.on_closed(link),
                Input::Announced(announcement) => {
                    tokio::task::spawn_local(bridge.clone().on_announced(announcement));
                }
                Input::Exited(code) => bridge.on_exited(code),
            }
            if bridge.is_over.get() {
                break;
            }
        }
        bridge.clean_up();
    });
    0
}

impl Bridge {
    fn event(&self, event: &str, body: Value) {
        self.client.borrow_mut().event(event, body);
    }

    fn all_targets(&self) -> Vec<Rc<Target>> {
        self.targets.borrow().values().cloned().collect()
    }

    fn first_target(&self) -> Option<Rc<Target>> {
        self.targets.borrow().values().next().cloned()
    }

    fn target(&self, arguments: &Value) -> Result<Rc<Target>, String> {
        let id = arguments.get("threadId").and_then(Value::as_i64).unwrap_or(1);
        self.targets.borrow().get(&id).cloned().ok_or_else(|| format!("there is no thread {id}"))
    }

    /// Each request is a task of its own; those that change what runs, and where it stops, are done one by one.
    fn on_request(self: Rc<Self>, seq: i64, command: String, arguments: Value) {
        if matches!(command.as_str(), "disconnect" | "terminate") {
            return self.disconnect(seq, &command, &arguments);
        }
        tokio::task::spawn_local(async move {
            let in_order = matches!(
                command.as_str(),
                "setBreakpoints"
                    | "setFunctionBreakpoints"
                    | "setExceptionBreakpoints"
                    | "configurationDone"
                    | "continue"
                    | "next"
                    | "stepIn"
                    | "stepOut"
            );
            let order = if in_order { Some(self.order.lock().await) } else { None };
            let result = self.answer(&command, &arguments).await;
            self.client.borrow_mut().answer(seq, &command, result);
            drop(order);
            if command == "initialize" || self.is_over.get() {
                return;
            }
            if matches!(command.as_str(), "launch" | "attach") && self.first_target().is_some() {
                self.event("initialized", json!({}));
            }
        });
    }

    async fn answer(self: &Rc<Self>, command: &str, arguments: &Value) -> Result<Value, String> {
        match command {
            "initialize" => Ok(capabilities()),
            "launch" => self.launch(arguments).await,
            "attach" => self.attach(arguments).await,
            "setBreakpoints" => Ok(self.set_breakpoints(arguments).await),
            "setFunctionBreakpoints" => Ok(self.set_function_breakpoints(arguments).await),
            "setExceptionBreakpoints" => {
                let filters = arguments.get("filters").and_then(Value::as_array).into_iter().flatten();
                *self.filters.borrow_mut() = filters.filter_map(Value::as_str).map(ToString::to_string).collect();
                for target in self.all_targets() {
                    target.passed.set(0);
                    self.set_catching(&target);
                }
                Ok(Value::Null)
            }
            "configurationDone" => {
                self.is_configured.set(true);
                self.all_targets().iter().for_each(|target| release(target));
                Ok(Value::Null)
            }
            "threads" => {
                let targets = self.targets.borrow();
                let threads = targets.values().map(|target| json!({ "id": target.thread, "name": target.name }));
                Ok(json!({ "threads": threads.collect::<Vec<_>>() }))
            }
            "stackTrace" => self.stack(arguments),
            "scopes" => self.scopes(arguments),
            "variables" => self.variables(arguments).await,
            "evaluate" => self.evaluate(arguments).await,
            "setVariable" => self.set_variable(arguments).await,
            "setExpression" => self.assign(arguments).await,
            "continue" | "next" | "stepIn" | "stepOut" => self.let_go(&self.target(arguments)?, command),
            "pause" => self.pause_thread(&self.target(arguments)?).await,
            "exceptionInfo" => self.exception_info(arguments).await,
            "source" => self.source(arguments).await,
            "modules" => Ok(self.modules()),
            other => Err(format!("Node's inspector has no `{other}`")),
        }
    }

    async fn launch(self: &Rc<Self>, arguments: &Value) -> Result<Value, String> {
        let program = arguments.get("program").and_then(Value::as_str).filter(|program| !program.is_empty());
        let program = program.map(|program| urls::real(Path::new(program)));
        *self.program.borrow_mut() = program.clone();
        if arguments.get("stopOnEntry").and_then(Value::as_bool).unwrap_or_default() {
            *self.entry.borrow_mut() = Some(program.unwrap_or_default());
        }
        let (ready, is_ready) = oneshot::channel();
        *self.first.borrow_mut() = Some(ready);
        let started = launch::start(arguments, &self.node, self.streams.as_ref(), &self.inputs)?;
        let name = arguments.get("program").cloned().unwrap_or_default();
        self.event("process", json!({ "name": name, "systemProcessId": started.pid, "startMethod": "launch" }));
        *self.started.borrow_mut() = Some(started);
        match tokio::time::timeout(STARTING, is_ready).await {
            Ok(Ok(result)) => result.map(|()| Value::Null),
            Ok(Err(_)) => Err("the program ended before it could be debugged".into()),
            Err(_) => Err("no Node process of the program came up to be debugged".into()),
        }
    }

    async fn attach(self: &Rc<Self>, arguments: &Value) -> Result<Value, String> {
        let pid = arguments.get("processId").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok());
        let host = arguments.get("host").and_then(Value::as_str).unwrap_or("127.0.0.1");
        let port = arguments.get("port").and_then(Value::as_u64).unwrap_or(9229);
        let address = format!("{host}:{port}");
        let find = move || match pid {
            Some(pid) => launch::inspector_of(pid),
            None => launch::listed(&address).ok_or_else(|| format!("no inspector of Node listens at {address}")),
        };
        let url = tokio::task::spawn_blocking(find).await.map_err(|error| error.to_string())??;
        let target = self.add_process(&url, "main")?;
        target.wire.link.pid.set(pid);
        self.prepare(&target).await?;
        if let Some(pid) = pid {
            self.event("process", json!({ "systemProcessId": pid, "startMethod": "attach" }));
        }
        Ok(Value::Null)
    }

    /// A process of the program waits for the debugger.
    async fn on_announced(self: Rc<Self>, announcement: Announcement) {
        let is_main = self.targets.borrow().is_empty();
        let name = if is_main { "main".to_string() } else { format!("process {}", announcement.pid) };
        let result = match self.add_process(&announcement.url, &name) {
            Ok(target) => {
                target.wire.link.pid.set(Some(announcement.pid));
                let prepared = self.prepare(&target).await;
                if self.is_configured.get() {
                    release(&target);
                }
                prepared
            }
            Err(error) => Err(error),
        };
        let first = self.first.borrow_mut().take();
        if let Some(first) = first {
            let _ = first.send(result);
        } else if let Err(error) = result {
            let output = format!("a process of the program is not debugged: {error}\n");
            self.event("output", json!({ "category": "console", "output": output }));
        }
    }

    fn add_process(&self, url: &str, name: &str) -> Result<Rc<Target>, String> {
        let number = u32::try_from(self.last.get()).unwrap_or_default() + 1;
        let link = Link::open(number, url, &self.inputs)?;
        self.links.borrow_mut().insert(number, link.clone());
        Ok(self.add_target(name.to_string(), Wire { link, worker: None }))
    }

    fn add_target(&self, name: String, wire: Wire) -> Rc<Target> {
        let thread = self.last.get() + 1;
        self.last.set(thread);
        let target = Rc::new(Target::new(thread, name, wire));
        self.targets.borrow_mut().insert(thread, target.clone());
        self.event("thread", json!({ "reason": "started", "threadId": thread }));
        target
    }

    /// Makes an inspector ready: its scripts are known, its breakpoints set.
    async fn prepare(&self, target: &Rc<Target>) -> Result<(), String> {
        let wire = &target.wire;
        let enabled = wire.call("Debugger.enable", json!({}));
        if wire.worker.is_none() {
            wire.tell("NodeWorker.enable", json!({ "waitForDebuggerOnStart": true }));
            wire.tell("NodeRuntime.notifyWhenWaitingForDisconnect", json!({ "enabled": true }));
        }
        self.set_catching(target);
        enabled.await?;
        self.install(target).await;
        self.sync(target).await;
        Ok(())
    }

    fn on_message(self: &Rc<Self>, link: u32, message: &Value) {
        let Some(link) = self.links.borrow().get(&link).cloned() else { return };
        if message.get("id").is_some() {
            return link.answer(message);
        }
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        let params = message.get("params").unwrap_or(&Value::Null);
        let session = params.get("sessionId").and_then(Value::as_str);
        match method {
            "NodeWorker.receivedMessageFromWorker" => {
                let inner = params.get("message").and_then(Value::as_str).unwrap_or_default();
                let Ok(inner) = serde_json::from_str::<Value>(inner) else { return };
                if inner.get("id").is_some() {
                    return link.answer(&inner);
                }
                if let Some(target) = self.find(&link, session) {
                    let method = inner.get("method").and_then(Value::as_str).unwrap_or_default();
                    self.on_event(&target, method, inner.get("params").unwrap_or(&Value::Null));
                }
            }
            "NodeWorker.attachedToWorker" => {
                let title = params.pointer("/workerInfo/title").and_then(Value::as_str).unwrap_or("worker");
                let wire = Wire { link, worker: session.map(ToString::to_string) };
                let target = self.add_target(title.to_string(), wire);
                let bridge = self.clone();
                tokio::task::spawn_local(async move {
                    let _ = bridge.prepare(&target).await;
                    release(&target);
                });
            }
            "NodeWorker.detachedFromWorker" => {
                if let Some(target) = self.find(&link, session) {
                    self.remove(&target);
                }
            }
            // The program is done and waits for nobody but us.
            "NodeRuntime.waitingForDisconnect" => link.close(),
            _ => {
                if let Some(target) = self.find(&link, None) {
                    self.on_event(&target, method, params);
                }
            }
        }
    }

    fn find(&self, link: &Rc<Link>, worker: Option<&str>) -> Option<Rc<Target>> {
        let is_it =
            |target: &&Rc<Target>| Rc::ptr_eq(&target.wire.link, link) && target.wire.worker.as_deref() == worker;
        self.targets.borrow().values().find(is_it).cloned()
    }

    fn on_event(self: &Rc<Self>, target: &Rc<Target>, method: &str, params: &Value) {
        match method {
            "Debugger.scriptParsed" if target.conditions(params).is_empty() => {
                let script = Script::new(params);
                target.scripts.borrow_mut().insert(script.id.clone(), Rc::new(script));
            }
            "Debugger.scriptFailedToParse" => self.on_unparsed(target, params),
            "Debugger.breakpointResolved" => self.on_resolved(target, params),
            "Debugger.paused" if *target.doing.borrow() == Doing::Running && self.is_early(target, params) => {
                target.wire.tell("Debugger.resume", json!({}));
            }
            "Debugger.paused" => {
                tokio::task::spawn_local(self.clone().on_paused(target.clone(), params.clone()));
            }
            _ => {}
        }
    }

    fn remove(&self, target: &Rc<Target>) {
        self.targets.borrow_mut().remove(&target.thread);
        self.handles.borrow_mut().forget(target.thread);
        self.event("thread", json!({ "reason": "exited", "threadId": target.thread }));
    }

    /// An inspector is gone, and its process with it.
    fn on_closed(&self, link: u32) {
        let Some(link) = self.links.borrow_mut().remove(&link) else { return };
        link.fail_all();
        let gone: Vec<_> =
            self.all_targets().into_iter().filter(|target| Rc::ptr_eq(&target.wire.link, &link)).collect();
        gone.iter().for_each(|target| self.remove(target));
        if self.started.borrow().is_none() && self.targets.borrow().is_empty() {
            self.event("terminated", json!({}));
        }
    }

    fn on_exited(&self, code: i64) {
        // Whoever waits for the first process waits in vain.
        *self.first.borrow_mut() = None;
        self.event("exited", json!({ "exitCode": code }));
        self.event("terminated", json!({}));
    }

    /// Ends the program, or lets it go on without us.
    fn disconnect(&self, seq: i64, command: &str, arguments: &Value) {
        let launched = self.started.borrow().is_some();
        let ends =
            arguments.get("terminateDebuggee").and_then(Value::as_bool).unwrap_or(launched) || command == "terminate";
        if ends {
            let pids = self.links.borrow().values().filter_map(|link| link.pid.get()).collect::<Vec<_>>();
            let started = self.started.borrow().as_ref().map(|started| started.pid);
            for pid in pids.into_iter().chain(started) {
                if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
        } else {
            self.all_targets().iter().for_each(|target| release(target));
        }
        self.clean_up();
        self.client.borrow_mut().answer(seq, command, Ok(Value::Null));
        self.is_over.set(true);
    }

    /// Takes back what was put into the world for the debugger.
    fn clean_up(&self) {
        if let Some(started) = &*self.started.borrow() {
            started.close();
        }
        // An inspector that loses its client takes its breakpoints out, and lets the thread go on.
        self.links.borrow().values().for_each(|link| link.close());
    }
}

/// Lets a process that waits for the debugger begin.
fn release(target: &Target) {
    if !target.released.replace(true) {
        target.wire.tell("Runtime.runIfWaitingForDebugger", json!({}));
    }
}

fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsEvaluateForHovers": true,
        "supportsSetVariable": true,
        "supportsSetExpression": true,
        "supportsExceptionInfoRequest": true,
        "supportsModulesRequest": true,
        "supportsSingleThreadExecutionRequests": true,
        "supportTerminateDebuggee": true,
        "supportsTerminateRequest": true,
        "exceptionBreakpointFilters": [
            { "filter": "raised", "label": "Everything that is thrown", "default": false },
            { "filter": "failing", "label": "What falls out of the program's own code and fails a test", "default": false },
            { "filter": "uncaught", "label": "What nothing catches", "default": true },
        ],
    })
}
