//! What is known of an agent: its threads, where each is in its loop, what the model saw, what it cost.

use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};

use super::gate::{Answer, Ask, Conversation, Point, Usage};
use super::path::{self, Path, plain};

/// The most threads that are told apart, and the longest name of one; what is beyond is the last one's.
const MAX_THREADS: usize = 1000;
const MAX_KEY: usize = 200;
/// The most tools that are known to run, of a thread.
const MAX_CALLS: usize = 1000;
/// The most files that are remembered, of a thread.
const MAX_FILES: usize = 20;
/// The most messages that are kept where no tap tells the whole conversation.
const MAX_HEARD: usize = 1000;

/// Conversations of the agent itself that are told apart from those of others.
const MAX_SESSIONS: usize = 100;

/// The agent itself, or one that it has started.
#[derive(Debug, Default)]
pub struct Thread {
    /// `main`, or the sub-agent's id.
    pub key: String,
    /// What kind of sub-agent it is.
    pub kind: Option<String>,
    /// The key of the thread that started it.
    pub parent: Option<String>,
    pub turn: u64,
    pub prompt: Option<String>,
    /// The prompt was told of before its gate.
    pub announced: bool,
    /// Model calls so far.
    pub iteration: u64,
    /// The key of the last one, until it is answered, and how it was let go: the same again is no new one.
    pub asked: Option<(String, Answer)>,
    /// Tools that run: id, name and input.
    pub calls: Vec<(Option<String>, String, Json)>,
    /// What the model called the tools of its last answer, by the ids of its calls: hooks may have other names for them.
    pub names: HashMap<String, String>,
    /// The files that its tools were given last, the newest at the end.
    pub files: Vec<String>,
    pub conversation: Conversation,
    /// The agent itself asks before its model calls: what another tap sees of them are the same.
    pub own_calls: bool,
    /// The conversation is what a model call carried, not what was overheard.
    pub exact: bool,
    pub last_usage: Option<Usage>,
    /// A rerun that has asked something else than the record.
    pub diverged: bool,
    pub ended: bool,
}

impl Thread {
    #[must_use]
    pub fn new(key: &str) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// As `threads` names it.
    #[must_use]
    pub fn label(&self) -> String {
        match &self.kind {
            Some(kind) => format!("{kind} {}", self.key),
            None => self.key.clone(),
        }
    }

    /// A tool that is about to run.
    pub fn calls(&mut self, span: Option<String>, name: String, input: Json) {
        if self.calls.len() >= MAX_CALLS {
            self.calls.remove(0);
        }
        for file in super::breaks::files(&input) {
            self.files.retain(|known| *known != file);
            if self.files.len() >= MAX_FILES {
                self.files.remove(0);
            }
            self.files.push(file);
        }
        self.calls.push((span, name, input));
    }

    /// A message that was overheard; where the whole conversation is told, it is not needed.
    pub fn heard(&mut self, role: &str, content: Json) {
        if !self.exact {
            self.said(role, content);
        }
    }

    /// A message that the next model call is going to carry.
    pub fn said(&mut self, role: &str, content: Json) {
        let messages = &mut self.conversation.messages;
        if messages.len() >= MAX_HEARD {
            messages.remove(0);
        }
        let mut message = json!({ "role": role });
        message["content"] = content;
        messages.push(message);
    }
}

/// The whole run.
#[derive(Debug)]
pub struct State {
    /// What the taps told of it: `agent`, `version`, `model`, `cwd`, `pid`, `session`.
    pub about: Map<String, Json>,
    /// The first is the agent itself.
    pub threads: Vec<Thread>,
    /// What the agent calls its own conversations, one after the other: its model calls may go by them.
    sessions: Vec<String>,
    pub usage: Usage,
    /// In USD; None where nothing is known of prices.
    pub cost: Option<f64>,
    /// A model that has answered, and whose cost is not known; whether the model tap saw it, and so has no price for it.
    pub unpriced: Option<(String, bool)>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            about: Map::new(),
            threads: vec![Thread::new("main")],
            sessions: Vec::new(),
            usage: Usage::default(),
            cost: None,
            unpriced: None,
        }
    }
}

/// The names that an expression may begin with.
pub const ROOTS: [&str; 22] = [
    "point",
    "tool_name",
    "tool_input",
    "tool_output",
    "tool_use_id",
    "ok",
    "ms",
    "files",
    "prompt",
    "last_message",
    "messages",
    "system",
    "tools",
    "model",
    "request",
    "usage",
    "cost",
    "iteration",
    "turn",
    "thread",
    "agent",
    "context",
];

impl State {
    /// The place of a thread. A new one is the agent's that nobody announced; for a question beside the loop there is none.
    pub fn index(&mut self, key: &str, aside: bool) -> usize {
        let is_main = key.is_empty() || self.sessions.iter().any(|session| session == key);
        let key = if is_main { "main" } else { crate::render::cut(key, MAX_KEY).0 };
        match self.threads.iter().position(|thread| thread.key == key) {
            Some(index) => index,
            None if aside => 0,
            None if self.threads.len() >= MAX_THREADS => self.threads.len() - 1,
            None => {
                let thread = Thread { parent: Some("main".into()), ..Thread::new(key) };
                self.threads.push(thread);
                self.threads.len() - 1
            }
        }
    }

    /// The agent itself begins a conversation; after another one it begins anew.
    pub fn begins(&mut self, session: String) {
        if self.sessions.last() == Some(&session) {
            return;
        }
        if !self.sessions.is_empty() {
            let main = &mut self.threads[0];
            (main.conversation.messages, main.exact) = (Vec::new(), false);
        }
        self.sessions.retain(|known| *known != session);
        if self.sessions.len() >= MAX_SESSIONS {
            self.sessions.remove(0);
        }
        self.sessions.push(session);
    }

    pub fn thread(&mut self, key: &str) -> &mut Thread {
        let index = self.index(key, false);
        &mut self.threads[index]
    }

    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        let Usage { input, output, cache_read, cache_write } = self.usage;
        input.saturating_add(output).saturating_add(cache_read).saturating_add(cache_write)
    }

    /// What the run took, in a line.
    #[must_use]
    pub fn spent(&self) -> String {
        let calls: u64 = self.threads.iter().map(|thread| thread.iteration).sum();
        let Usage { input, output, cache_read, cache_write } = self.usage;
        let cached = if cache_read + cache_write > 0 {
            format!(", cache {cache_read} read, {cache_write} written")
        } else {
            String::new()
        };
        let cost = self.cost.map(|cost| format!(", {cost:.4} USD")).unwrap_or_default();
        format!("{calls} model call{}: {input} + {output} tokens{cached}{cost}", if calls == 1 { "" } else { "s" })
    }

    /// What a name stands for at a gate, or between gates.
    ///
    /// # Errors
    /// Where there is nothing of that name here.
    pub fn root(&self, name: &str, thread: usize, ask: Option<&Ask>) -> Result<Json, String> {
        let Some(thread) = self.threads.get(thread) else { return Err("there is no such thread".into()) };
        let at = |points: &[Point]| ask.filter(|ask| points.contains(&ask.point));
        let tool = at(&[Point::BeforeTool, Point::AfterTool]);
        let found = match name {
            "point" => ask.map(|ask| json!(ask.point.name())),
            "tool_name" | "name" => tool.map(|ask| json!(ask.name)),
            "tool_input" | "input" => tool.map(input_of).or_else(|| Some(thread.calls.last()?.2.clone())),
            "tool_output" | "output" => at(&[Point::AfterTool]).map(|ask| ask.value.clone()),
            "tool_use_id" => tool.map(|ask| json!(ask.span)),
            "ok" => at(&[Point::AfterTool]).map(|ask| json!(ask.ok)),
            "ms" => at(&[Point::AfterTool]).map(|ask| json!(ask.ms)),
            "files" => tool.map(|ask| json!(super::breaks::files(&input_of(ask)))),
            "prompt" => match at(&[Point::BeforePrompt]) {
                Some(ask) => Some(ask.value.clone()),
                None => thread.prompt.as_ref().map(|prompt| json!(prompt)),
            },
            // Not every agent tells it there.
            "last_message" => match at(&[Point::BeforeStop]).filter(|ask| !ask.value.is_null()) {
                Some(ask) => Some(ask.value.clone()),
                None => thread.conversation.messages.last().cloned(),
            },
            "messages" => Some(json!(thread.conversation.messages)),
            "system" => thread.conversation.system.as_ref().map(|system| json!(system)),
            "tools" => Some(json!(thread.conversation.tools)),
            "model" => thread
                .conversation
                .model
                .as_ref()
                .map(|model| json!(model))
                .or_else(|| self.about.get("model").cloned()),
            "request" => at(&[Point::BeforeModel]).map(|ask| ask.value.clone()),
            "usage" => Some(self.usage_value(thread)),
            "cost" => self.cost.map(|cost| json!(cost)),
            "iteration" => Some(json!(thread.iteration)),
            "turn" => Some(json!(thread.turn)),
            "thread" => Some(json!(thread.key)),
            "agent" => Some(Json::Object(self.about.clone())),
            "context" => Some(self.context(thread)),
            _ => return Err(format!("there is no `{name}`; there are: {}", ROOTS.join(", "))),
        };
        found.ok_or_else(|| match name {
            "cost" => "nothing is known of what it costs: no answer yet, or no price for its model; prices are set in config.toml: [agent.prices]".into(),
            _ => format!("there is no `{name}` here; what there is: bugeye locals"),
        })
    }

    /// The value of a path.
    ///
    /// # Errors
    /// Where it leads nowhere.
    pub fn value(&self, path: &Path, thread: usize, ask: Option<&Ask>) -> Result<Json, String> {
        path::walk(&self.root(&path.root, thread, ask)?, &path.steps)
    }

    fn usage_value(&self, thread: &Thread) -> Json {
        let mut usage = json!({ "total": self.usage, "tokens": self.total_tokens() });
        if let Some(last) = thread.last_usage {
            usage["last"] = json!(last);
        }
        if let Some(cost) = self.cost {
            usage["usd"] = json!(cost);
        }
        usage
    }

    fn context(&self, thread: &Thread) -> Json {
        let conversation = &thread.conversation;
        let bytes: usize = conversation.messages.iter().map(|message| message.to_string().len()).sum();
        let system = conversation.system.as_ref().map_or(0, String::len);
        let tools: usize = conversation.tools.iter().map(|tool| tool.to_string().len()).sum();
        json!({
            "model": conversation.model,
            "messages": conversation.messages.len(),
            "message_bytes": bytes,
            "system_bytes": system,
            "tools": conversation.tools.len(),
            "tool_bytes": tools,
            "tokens_estimated": (bytes + system + tools) / 4,
            "tokens_last": thread.last_usage.map(|usage| usage.input + usage.cache_read + usage.cache_write),
            "exact": thread.exact,
        })
    }

    /// A bounded picture: what `inspect` answers.
    ///
    /// # Errors
    /// Where there is no such thing.
    pub fn snapshot(&self, what: &str, thread: usize, ask: Option<&Ask>, last: usize) -> Result<Json, String> {
        let Some(about) = self.threads.get(thread) else { return Err("there is no such thread".into()) };
        let conversation = &about.conversation;
        let messages = || {
            let from = conversation.messages.len().saturating_sub(last);
            let mut roles: Map<String, Json> = Map::new();
            for message in &conversation.messages {
                let role = message.get("role").and_then(Json::as_str).unwrap_or("other");
                let count = roles.get(role).and_then(Json::as_u64).unwrap_or(0) + 1;
                roles.insert(role.into(), json!(count));
            }
            let recent: Vec<Json> = conversation.messages[from..]
                .iter()
                .enumerate()
                .map(|(at, message)| json!({ "index": from + at, "role": message["role"], "text": preview(message) }))
                .collect();
            json!({ "count": conversation.messages.len(), "roles": roles, "recent": recent, "exact": about.exact })
        };
        let tools = || {
            let names: Vec<&str> = conversation.tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
            json!({ "count": names.len(), "names": names })
        };
        let gate = || {
            ask.map(|ask| {
                let name = ask.name.as_deref();
                json!({ "point": ask.point.name(), "tool": name, "id": ask.span, "value": cut(&ask.value, 2000) })
            })
        };
        Ok(match what {
            "messages" => messages(),
            "context" => self.context(about),
            "tools" => tools(),
            "usage" => self.usage_value(about),
            "system" => cut(&json!(conversation.system), 4000),
            "all" | "" => json!({
                "agent": self.about,
                "thread": about.label(),
                "turn": about.turn,
                "iteration": about.iteration,
                "prompt": about.prompt.as_deref().map(|prompt| cut(&json!(prompt), 500)),
                "gate": gate(),
                "files": about.files,
                "messages": messages(),
                "context": self.context(about),
                "tools": tools(),
                "usage": self.usage_value(about),
            }),
            other => {
                return Err(format!(
                    "`{other}` can't be inspected; there are: messages, context, tools, usage, system, all"
                ));
            }
        })
    }
}

/// A tool's input, before it ran and after.
fn input_of(ask: &Ask) -> Json {
    match ask.point {
        Point::AfterTool => ask.input.clone().unwrap_or_default(),
        _ => ask.value.clone(),
    }
}

/// What a message says, in a line.
#[must_use]
pub fn preview(message: &Json) -> Json {
    let content = message.get("content").unwrap_or(message);
    let block = |block: &Json| match block.get("type").and_then(Json::as_str) {
        Some("text") => plain(&block["text"]),
        Some("tool_call") => format!("[calls {} {}]", plain(&block["name"]), block["input"]),
        Some("tool_result") => format!("[result {}]", plain(&block["output"])),
        Some(other) => format!("[{other}]"),
        None => plain(block),
    };
    let text = match content {
        Json::Array(blocks) => blocks.iter().map(block).collect::<Vec<_>>().join(" "),
        other => plain(other),
    };
    cut(&json!(text), 200)
}

/// A value with no more than so many bytes of text; what was left out is counted.
#[must_use]
pub fn cut(value: &Json, most: usize) -> Json {
    let text = plain(value);
    if text.len() <= most {
        return value.clone();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    json!(format!("{}… (+{} bytes)", &text[..end], text.len() - end))
}
