//! The MCP server: the same daemon and the same sessions as the command line, for agents that speak MCP.
//!
//! Each call of a tool is a command line (`mcp/tools.rs`), carried out as the typed one is; its text is the answer. State
//! is the daemon's alone: what a client has to remember are session ids, so both eras of the protocol are served alike.

mod tools;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::cli::{Stopper, Typist};
use crate::client;
use crate::commands::do_;
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::paths::Paths;
use crate::render::quoted_lines;
use tools::{Arguments, TOOLS};

/// How often somebody who waits is told that it goes on.
const TELLING: Duration = Duration::from_secs(5);
/// How long the end of input may take to end everything.
const LEAVING: Duration = Duration::from_millis(1500);

const INSTRUCTIONS: &str = "A real debugger. Reach for it when a value is wrong, a program crashes or hangs, or a fix did not \
    work: look instead of guessing. debug_trace answers most questions in one call; debug_run stops at a place with source, \
    locals and stack.";

/// Serves MCP on standard input and output until the input ends.
pub fn serve(paths: &Paths) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::io("start a runtime", &error))?;
    let server = Server::new(paths.clone());
    // Sessions that were started here are this client's: the daemon sees by the lease when it is gone.
    let _lease = client::connect_or_start(paths)?.lease(&server.who)?;
    let served = runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await.map_err(|error| error.to_string())?;
        running.waiting().await.map(|_| ()).map_err(|error| error.to_string())
    });
    // A call that still waits must not hold up the end; its connection closes with the process.
    runtime.shutdown_timeout(LEAVING);
    match served {
        // A client that leaves before its first word has no complaint.
        Err(text) if !text.contains("connection closed") => {
            Err(Failure::internal(format!("the MCP server ended: {text}")))
        }
        _ => Ok(()),
    }
}

/// One client's server.
#[derive(Debug, Clone)]
struct Server {
    paths: Paths,
    /// Tells this client from others.
    who: String,
    cwd: PathBuf,
}

impl Server {
    fn new(paths: Paths) -> Self {
        let cwd = std::env::current_dir().unwrap_or_else(|_| "/".into());
        Self { paths, who: format!("mcp:{}", std::process::id()), cwd }
    }
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
        Ok(ListToolsResult::with_all_items(TOOLS.iter().map(described).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let answer = match understood(&request.name, &arguments) {
            Ok((commands, session)) => self.carry_out(commands, session, &context).await,
            Err(failure) => Err(failure),
        };
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
        };
        Ok(result.into())
    }
}

type Commands = Vec<Vec<String>>;

/// The commands that a call stands for, and the session it is about; or what is wrong with it.
fn understood(name: &str, arguments: &JsonObject) -> Result<(Commands, Option<String>), String> {
    let Some(tool) = TOOLS.iter().find(|tool| tool.name == name) else {
        let names: Vec<&str> = TOOLS.iter().map(|tool| tool.name).collect();
        return Err(format!("there is no tool {name}; there are: {}", names.join(", ")));
    };
    let schema = properties(tool);
    for given in arguments.keys() {
        if !schema.contains_key(given) {
            let near = nearest(given, schema.keys().map(String::as_str));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(format!("{name} has no argument `{given}`{near}"));
        }
    }
    let commands = (tool.words)(&Arguments(arguments))?;
    let commands = match commands.as_slice() {
        [words] if words.first().is_some_and(|word| word == "do") => {
            do_::split(&words[1..].join("\n")).map_err(|failure| told(&failure))?
        }
        _ => commands,
    };
    let session = arguments.get("session").and_then(Value::as_str).map(ToString::to_string);
    Ok((commands, session))
}

impl Server {
    async fn carry_out(
        &self,
        commands: Commands,
        session: Option<String>,
        context: &RequestContext<RoleServer>,
    ) -> Result<String, String> {
        let (progress, mut told_of) = mpsc::unbounded_channel();
        let stopper = Stopper::default();
        let (server, stop) = (self.clone(), stopper.clone());
        let mut work = tokio::task::spawn_blocking(move || {
            let mut typist = Typist::new(&server.paths, &server.cwd).whom(&server.who).stopped_by(stop);
            typist.session = session;
            let mut texts: Vec<String> = Vec::new();
            for words in commands {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let answer = typist.ask_with(&words, &mut |text| drop(progress.send(text)));
                match answer {
                    Ok((_, text)) => texts.push(text.trim_end().to_string()),
                    Err(failure) => {
                        texts.push(told(&failure));
                        return Err(texts.join("\n"));
                    }
                }
            }
            Ok(texts.join("\n"))
        });
        let token = context.meta.get_progress_token();
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + TELLING, TELLING);
        let (mut count, mut message) = (0.0, "still waiting".to_string());
        loop {
            tokio::select! {
                done = &mut work => return done.unwrap_or_else(|error| Err(format!("the call met a defect of Bugeye: {error}"))),
                // The wait ends; the program goes on.
                () = context.ct.cancelled() => {
                    stopper.stop();
                    return Err("cancelled; the program goes on".into());
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
