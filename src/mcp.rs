//! The MCP server: the same daemon and the same sessions as the command line, for agents that speak MCP.
//!
//! Each call of a tool is a command line (`mcp/tools.rs`), carried out as the typed one is; its text is the answer. State
//! is the daemon's alone: what a client has to remember are session ids, so both eras of the protocol are served alike.

mod check;
mod http;
mod input;
mod patient;
mod tools;

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam,
    ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServerInitializeError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use tokio::fs::File;
use tokio::runtime::Runtime;
use tokio::sync::{Mutex as Turn, mpsc};

use crate::cli::{Barred, Stopper, Typist};
use crate::client::{self, Connection};
use crate::commands::events;
use crate::config::Config;
use crate::failure::Failure;
use crate::paths::Paths;
use crate::render::quoted_lines;
pub use http::serve as serve_http;
use input::Input;
use patient::Patient;
use tools::{Arguments, TOOLS};

/// How often somebody who waits is told that it goes on.
const TELLING: Duration = Duration::from_secs(5);
/// How long the end of input may take to end everything.
const LEAVING: Duration = Duration::from_millis(500);
/// How long, before that, calls may still be answered.
const LAST_WORDS: Duration = Duration::from_millis(750);
/// The longest message that is read; a longer one is dropped.
const MAX_MESSAGE: usize = 4 * 1024 * 1024;
/// How long a call waits that would wait longer by itself, in seconds: many clients give up after sixty.
const PATIENCE: f64 = 45.0;
/// How long a call waits for those before it.
const IN_TURN: Duration = Duration::from_secs(3);
/// Commands for a program that runs, while another call waits for its stop.
const AT_ONCE: [&str; 8] = ["pause", "stop", "detach", "sessions", "status", "output", "input", "use"];
/// How long a list of tools holds good: as long as this program does.
const LASTING_MS: u64 = 24 * 60 * 60 * 1000;

const INSTRUCTIONS: &str = "A real debugger. Reach for it when a value is wrong, a program crashes or hangs, or a fix did not \
    work: look instead of guessing. debug_trace answers most questions in one call; debug_run stops at a place with source, \
    locals and stack. Hints in replies name commands: give them to debug_do. What you started ends when you leave.";

/// What an agent may not do by itself.
const BARRED: &[Barred] = &[
    Barred {
        command: "trust",
        switch: None,
        instead: "whether a project's tasks may run is the user's to say: bugeye trust",
    },
    Barred { command: "daemon", switch: None, instead: "other clients have sessions there too; end yours: stop --all" },
    Barred { command: "init", switch: None, instead: "the user says where Bugeye is to be registered: bugeye init" },
    Barred {
        command: "setup",
        switch: Some("yes"),
        instead: "what needs root is the user's to allow; the rest goes without it",
    },
];

/// Serves MCP on standard input and output until the input ends.
pub fn serve(paths: &Paths, structured: bool) -> Result<(), Failure> {
    if std::io::stdin().is_terminal() {
        eprintln!(
            "an MCP client is awaited on standard input; `bugeye init` registers this with an agent; Ctrl-D ends it"
        );
    }
    let (input, output) = take_streams().map_err(|error| Failure::io("take standard input and output", &error))?;
    log_events(paths);
    let server = Server::new(paths, structured);
    let runtime = runtime()?;
    let served = runtime.block_on(async {
        let (input, ended) = Input::new(input, MAX_MESSAGE);
        let transport = AsyncRwTransport::new_server(input, File::from_std(output));
        let running = server.serve(Patient::new(transport.with_max_line_length(MAX_MESSAGE))).await;
        match running {
            Ok(running) => {
                let left = async {
                    ended.cancelled().await;
                    tokio::time::sleep(LAST_WORDS).await;
                };
                tokio::select! {
                    served = running.waiting() => served.map(drop).map_err(|error| error.to_string()),
                    () = left => Ok(()),
                }
            }
            // A client that leaves before its first word has no complaint.
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
                Err("its first request was neither `initialize` nor `server/discover`".into())
            }
            Err(error) => Err(error.to_string()),
        }
    });
    // A call that still waits must not hold up the end; its connection closes with the process.
    runtime.shutdown_timeout(LEAVING);
    served.map_err(|text| Failure::refused(format!("the MCP client could not be served: {text}")))
}

/// The process's own input and output, taken out of everyone else's reach: a stray word on them would break the protocol.
fn take_streams() -> std::io::Result<(std::fs::File, std::fs::File)> {
    let (input, output) = (rustix::io::dup(std::io::stdin())?, rustix::io::dup(std::io::stdout())?);
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok((input.into(), output.into()))
}

fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start a runtime", &error))
}

/// One client's server.
#[derive(Debug, Clone)]
struct Server {
    shared: Arc<Shared>,
    /// What a client has that came with a session of the protocol; it goes with that.
    own: Arc<Presence>,
}

#[derive(Debug)]
struct Shared {
    paths: Paths,
    cwd: PathBuf,
    /// Results are answered as data, too.
    structured: bool,
    /// What all others have together: it goes with this process.
    presence: Presence,
}

/// How a client is there.
#[derive(Debug, Default)]
struct Presence {
    /// By it the daemon sees that whoever started sessions is still there.
    lease: Mutex<Option<Connection>>,
    /// Calls are carried out one after the other, as far as nobody has to wait long for it.
    turn: Turn<()>,
}

impl Server {
    fn new(paths: &Paths, structured: bool) -> Self {
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let shared = Shared { paths: paths.clone(), cwd, structured, presence: Presence::default() };
        Self { shared: Arc::new(shared), own: Arc::default() }
    }

    /// Who calls: the process, or the session of the protocol that a call by HTTP belongs to.
    fn caller(context: &RequestContext<RoleServer>) -> Caller {
        let parts = context.extensions.get::<hyper::http::request::Parts>();
        let session = parts.and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok());
        match session {
            Some(session) => Caller { who: format!("{}.{session}", holder()), apart: true },
            None => Caller { who: holder(), apart: false },
        }
    }

    fn presence(&self, caller: &Caller) -> &Presence {
        if caller.apart { &self.own } else { &self.shared.presence }
    }

    /// Sees to it that the daemon notices the client's end. Nothing is started before the first call.
    fn hold_lease(&self, caller: &Caller) -> Result<(), Failure> {
        let mut lease = self.presence(caller).lease.lock().unwrap_or_else(PoisonError::into_inner);
        if !lease.as_ref().is_some_and(Connection::holds) {
            *lease = Some(client::connect_or_start(&self.shared.paths)?.lease(&caller.who)?);
        }
        Ok(())
    }
}

/// Who calls.
#[derive(Debug, Clone)]
struct Caller {
    who: String,
    /// It is a client of its own among several of this process.
    apart: bool,
}

/// Has what happens in this client's sessions written to standard error, where the user wants it.
fn log_events(paths: &Paths) {
    if Config::logs_events(None) {
        let state = paths.state.clone();
        // Ends with the process.
        std::thread::spawn(move || events::tell(&state, &holder()));
    }
}

/// This process, as the daemon knows it.
fn holder() -> String {
    format!("mcp:{}", std::process::id())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("bugeye", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.into());
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = TOOLS.iter().map(described).collect();
        Ok(ListToolsResult::with_all_items(tools).with_ttl_ms(LASTING_MS).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let reply = match understood(&request.name, &arguments) {
            Ok(call) => self.carry_out(call, Self::caller(&context), &context).await,
            Err(mistake) => Reply { text: mistake, failed: true, results: Vec::new() },
        };
        let content = vec![ContentBlock::text(reply.text)];
        let mut result = if reply.failed { CallToolResult::error(content) } else { CallToolResult::success(content) };
        if self.shared.structured && !reply.results.is_empty() {
            result.structured_content = Some(json!({ "results": reply.results }));
        }
        Ok(result.into())
    }

    /// A call of a tool that is none by its form comes here.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != "tools/call" {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        let text = "tools/call needs the `name` of a tool, a text, and its `arguments`, an object";
        Ok(CustomResult::new(json!({
            "content": [{ "type": "text", "text": text }], "isError": true, "resultType": "complete"
        })))
    }
}

/// A call, as commands.
#[derive(Debug)]
struct Call {
    commands: Vec<Vec<String>>,
    session: Option<String>,
    /// The folder in which they are typed.
    cwd: Option<PathBuf>,
}

/// What came of a call.
#[derive(Debug)]
struct Reply {
    text: String,
    failed: bool,
    /// Each command's answer, as `--json` has it.
    results: Vec<Value>,
}

/// The commands that a call stands for; or what is wrong with it.
fn understood(name: &str, arguments: &JsonObject) -> Result<Call, String> {
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        return Err(format!("there is no tool {name}; there are: {}", names.join(", ")));
    };
    check::check(name, &properties(tool), arguments)?;
    let arguments = Arguments::new(arguments);
    let commands = (tool.words)(&arguments)?;
    let cwd = arguments.text("cwd")?.map(PathBuf::from);
    let session = arguments.text("session")?;
    match arguments.idle() {
        Some(idle) => Err(format!("`{idle}` does nothing in this call, which was not made: leave it out")),
        None => Ok(Call { commands, session, cwd }),
    }
}

impl Server {
    async fn carry_out(&self, call: Call, caller: Caller, context: &RequestContext<RoleServer>) -> Reply {
        // Several calls at once are meant in their order; one that waits for a stop holds up nobody for long, and what
        // looks at a running program or stops it is not held up at all.
        let first = call.commands.first().and_then(|words| words.first());
        let waits = first.is_none_or(|word| !AT_ONCE.contains(&word.as_str()));
        let turn = self.presence(&caller).turn.lock();
        let _turn = if waits { tokio::time::timeout(IN_TURN, turn).await.ok() } else { None };
        let (progress, mut told_of) = mpsc::unbounded_channel();
        let stopper = Stopper::default();
        let (server, stop, who) = (self.clone(), stopper.clone(), caller.clone());
        let mut work = tokio::task::spawn_blocking(move || {
            server.type_all(call, &who, stop, &mut |text| drop(progress.send(text)))
        });
        let token = context.meta.get_progress_token();
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TELLING, TELLING);
        let (mut count, mut message) = (0.0, "still waiting".to_string());
        let failed = |text| Reply { text, failed: true, results: Vec::new() };
        loop {
            tokio::select! {
                done = &mut work => return done.unwrap_or_else(|error| failed(format!("error: a defect of Bugeye: {error}"))),
                // The wait ends; a program that was started before goes on.
                () = context.ct.cancelled() => {
                    stopper.stop();
                    return failed("cancelled".into());
                }
                Some(text) = told_of.recv() => message = text,
                _ = ticks.tick() => if let Some(token) = &token {
                    count += 1.0;
                    let news = ProgressNotificationParam::new(token.clone(), count).with_message(message.clone());
                    let _ = context.peer.notify_progress(news).await;
                },
            }
        }
    }

    /// Types the commands one after the other, up to the first that fails.
    fn type_all(&self, call: Call, caller: &Caller, stopper: Stopper, progress: &mut dyn FnMut(String)) -> Reply {
        let (mut texts, mut results, mut failed) = (Vec::new(), Vec::new(), false);
        let cwd = call.cwd.map_or_else(|| self.shared.cwd.clone(), |cwd| self.shared.cwd.join(cwd));
        let mut typist = Typist::new(&self.shared.paths, &cwd).whom(&caller.who).obeying();
        typist = typist.waiting(PATIENCE).stopped_by(stopper).barring(BARRED);
        typist.session = call.session;
        for words in call.commands {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let answer = self.hold_lease(caller).and_then(|()| typist.ask_with(&words, progress));
            match answer {
                Ok((result, text)) => {
                    texts.push(text.trim_end().to_string());
                    results.push(json!({ "ok": true, "result": result, "session": typist.session, "via": typist.via }));
                }
                Err(failure) => {
                    texts.push(told(&failure));
                    results.push(json!({ "ok": false, "error": failure }));
                    failed = true;
                    break;
                }
            }
        }
        Reply { text: texts.join("\n"), failed, results }
    }
}

/// A failure as the command line tells it.
fn told(failure: &Failure) -> String {
    let mut text = format!("error: {}", quoted_lines(&failure.message));
    for hint in &failure.hints {
        text.push_str(&format!("\n  hint: {}", quoted_lines(hint)));
    }
    text
}

fn properties(tool: &tools::Tool) -> JsonObject {
    let mut properties: JsonObject = serde_json::from_str(tool.properties).unwrap_or_default();
    if tool.name != "debug_setup" {
        properties.extend(serde_json::from_str::<JsonObject>(tools::SESSION).unwrap_or_default());
    }
    properties
}

fn described(tool: &tools::Tool) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Value::Object(properties(tool)));
    if !tool.required.is_empty() {
        schema.insert("required".into(), json!(tool.required));
    }
    let mut notes = ToolAnnotations::new();
    notes.read_only_hint = Some(tool.reads);
    if !tool.reads {
        notes.destructive_hint = Some(tool.destroys);
    }
    notes.open_world_hint = Some(false);
    Tool::new(Cow::Borrowed(tool.name), Cow::Borrowed(tool.description), Arc::new(schema)).with_annotations(notes)
}
