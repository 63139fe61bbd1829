//! What a tap asks and tells, and what it is answered: the one vocabulary between taps and broker.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tokio::sync::{mpsc, oneshot};

/// Where in its loop an agent waits to be let on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// A prompt of the user is about to begin a turn.
    BeforePrompt,
    /// The model is about to be asked.
    BeforeModel,
    /// A tool is about to be run.
    BeforeTool,
    /// A tool has run; the agent has not seen what came of it.
    AfterTool,
    /// The turn is about to end.
    BeforeStop,
}

impl Point {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BeforePrompt => "before_prompt",
            Self::BeforeModel => "before_model",
            Self::BeforeTool => "before_tool",
            Self::AfterTool => "after_tool",
            Self::BeforeStop => "before_stop",
        }
    }
}

/// Through what an agent is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tap {
    /// Its own hooks, each a process `bugeye hook`, or a plugin of ours inside it.
    Hook,
    /// Its calls to the model, which go through us.
    Model,
    /// The agent speaks our protocol itself.
    Sdk,
}

/// What a tap can do with an answer at this gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Powers {
    /// Hold the agent here at all.
    pub hold: bool,
    /// Put another value in the place of [`Ask::value`].
    pub edit: bool,
    /// Not let it happen, with a reason that the model sees.
    pub deny: bool,
    /// Give an answer in its place: of the tool, of the model.
    pub synthesize: bool,
    /// End the whole run.
    pub abort: bool,
    /// Put a message into the conversation.
    pub inject: bool,
}

impl Powers {
    pub const NONE: Self =
        Self { hold: false, edit: false, deny: false, synthesize: false, abort: false, inject: false };
    pub const ALL: Self = Self { hold: true, edit: true, deny: true, synthesize: true, abort: true, inject: true };

    /// Those of them that mean something at a point: an agent that says it can do all is not asked for more.
    #[must_use]
    pub const fn at(self, point: Point) -> Self {
        let acts = matches!(point, Point::BeforePrompt | Point::BeforeTool);
        let makes = matches!(point, Point::BeforeModel | Point::BeforeTool);
        let edits = !matches!(point, Point::BeforeStop);
        Self { edit: self.edit && edits, deny: self.deny && acts, synthesize: self.synthesize && makes, ..self }
    }
}

/// What a conversation looks like to the model, in one form for all of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conversation {
    pub model: Option<String>,
    /// Each `{"role", "content"}`, where content is a text or a list of blocks: `{"type":"text","text"}`,
    /// `{"type":"tool_call","id","name","input"}`, `{"type":"tool_result","id","output","error"}`, others as they came.
    pub messages: Vec<Json>,
    pub system: Option<String>,
    /// Each `{"name", "description", "schema"}`.
    pub tools: Vec<Json>,
}

/// What a model call cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// A tap asks whether the agent may go on.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    pub point: Point,
    /// `main`, or a sub-agent's id.
    #[serde(default = "main_thread")]
    pub thread: String,
    /// Joins what different taps say about one thing: the id of a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    /// The tool, at its gates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it is about, and what an edit replaces: the tool's input, the tool's output, the request to the model as it is
    /// sent, the prompt, the last message.
    #[serde(default)]
    pub value: Json,
    /// After a tool: its input, whether it succeeded, how long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ok: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// Before a model call: what the model is going to see.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// A question of the agent's own beside its loop (a title, a count of tokens): never held, no iteration.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
    /// The same question put again has the same key: it takes the place of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default)]
    pub powers: Powers,
}

impl Ask {
    /// Of the agent itself, with nothing but its point: the rest is added.
    #[must_use]
    pub fn new(point: Point) -> Self {
        Self {
            point,
            thread: main_thread(),
            span: None,
            name: None,
            value: Json::Null,
            input: None,
            ok: None,
            ms: None,
            conversation: None,
            aside: false,
            key: None,
            powers: Powers::NONE,
        }
    }
}

fn main_thread() -> String {
    "main".into()
}

/// A tap tells what it saw. `kind` is an event's type, as `docs/agents.md` has them; the broker learns from those it
/// knows, and records all but `model.calls`, which goes ahead of a `model.response`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Note {
    #[serde(rename = "event")]
    pub kind: String,
    #[serde(default = "main_thread")]
    pub thread: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<String>,
    #[serde(default)]
    pub data: Json,
}

/// What is to become of what was asked about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    #[default]
    Proceed,
    /// With this in its place.
    Edit {
        value: Json,
    },
    Deny {
        reason: String,
    },
    /// It is not done; this came of it.
    Synthesize {
        value: Json,
    },
    /// The whole run ends.
    Abort {
        reason: String,
    },
}

/// A message for the conversation, as it is to be written there: it carries its mark already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `user` or `assistant`.
    pub role: String,
    pub text: String,
}

/// The answer to an [`Ask`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    #[serde(flatten)]
    pub verdict: Verdict,
    /// Messages to put in here; only where the tap has the power.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inject: Vec<Message>,
}

/// What comes to the broker from a tap.
#[derive(Debug)]
pub enum Told {
    /// A tap is there; `about` has what it knows: `agent`, `version`, `model`, `cwd`, `pid`, `session`.
    Attached {
        tap: Tap,
        about: Json,
    },
    Ask {
        id: u64,
        tap: Tap,
        ask: Box<Ask>,
        reply: oneshot::Sender<Answer>,
    },
    /// Nobody waits for the answer any more.
    Withdrawn {
        id: u64,
    },
    Note {
        tap: Tap,
        note: Note,
    },
    /// The agent has ended, with its exit code, or as by a signal 128 and more.
    Ended {
        code: i32,
    },
}

/// A tap's way to the broker. Each ask is answered, at the latest when the broker goes: with [`Verdict::Proceed`].
#[derive(Debug, Clone)]
pub struct Line {
    pub tap: Tap,
    to: mpsc::UnboundedSender<Told>,
    next: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

/// Tells the broker that nobody waits any more, where the one who asked has gone.
struct Waiting {
    to: mpsc::UnboundedSender<Told>,
    id: u64,
    answered: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.answered {
            let _ = self.to.send(Told::Withdrawn { id: self.id });
        }
    }
}

impl Line {
    /// The first of them, and the broker's end.
    #[must_use]
    pub fn new(tap: Tap) -> (Self, mpsc::UnboundedReceiver<Told>) {
        let (to, told) = mpsc::unbounded_channel();
        (Self { tap, to, next: std::sync::Arc::default() }, told)
    }

    /// One for another tap of the same broker.
    #[must_use]
    pub fn of(&self, tap: Tap) -> Self {
        Self { tap, ..self.clone() }
    }

    pub fn attached(&self, about: Json) {
        let _ = self.to.send(Told::Attached { tap: self.tap, about });
    }

    pub fn note(&self, note: Note) {
        let _ = self.to.send(Told::Note { tap: self.tap, note });
    }

    pub fn ended(&self, code: i32) {
        let _ = self.to.send(Told::Ended { code });
    }

    /// Waits for the answer, however long that takes. Dropped before it came, the question is withdrawn.
    pub async fn ask(&self, ask: Ask) -> Answer {
        let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        if self.to.send(Told::Ask { id, tap: self.tap, ask: Box::new(ask), reply }).is_err() {
            return Answer::default();
        }
        let mut waiting = Waiting { to: self.to.clone(), id, answered: false };
        let answer = answer.await.unwrap_or_default();
        waiting.answered = true;
        answer
    }
}
