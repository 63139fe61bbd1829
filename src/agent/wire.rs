//! The lines between a tap and its agent, one JSON object each: what hooks and agents say, and what they are answered.
//!
//! `docs/agent-bridge.md` is the contract. Everything here was written by an agent, or by what it was made to run: sizes
//! are bounded, and what can't be understood is answered with why, never taken for something else.

use serde_json::{Map, Value as Json, json};

use super::alias;
use super::gate::{Answer, Ask, Note};
use super::hook::Reply;
use crate::render::{cut, quoted};

/// The version of this protocol.
pub const VERSION: u64 = 1;
/// The longest line. A tool's output is in it.
pub const MAX_LINE: usize = 16 * 1024 * 1024;
/// The longest name, id, thread, type.
const MAX_WORD: usize = 200;
/// What a tap tells about its agent when it is there.
const ABOUT: [&str; 6] = ["agent", "version", "model", "cwd", "pid", "session"];

/// What a line says.
#[derive(Debug)]
pub enum Said {
    /// An agent is there.
    Hello { about: Json },
    /// The same, told by the way: nobody waits to be greeted.
    Start { about: Json },
    /// A hook of an agent was run, and waits.
    Hook { id: Option<Id>, agent: String, input: Json },
    /// The agent waits to be let on.
    Gate { id: Id, ask: Box<Ask> },
    /// It no longer does.
    Withdraw { id: Id },
    /// Something has happened.
    Event(Note),
}

/// The id of a question: what its answer carries. A text or a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Json);

impl Id {
    /// Of a hook that is alone on its connection.
    #[must_use]
    pub const fn none() -> Self {
        Self(Json::Null)
    }

    fn of(fields: &Map<String, Json>) -> Option<Self> {
        match fields.get("id")? {
            Json::String(id) if id.is_empty() || id.chars().count() > MAX_WORD => None,
            id @ (Json::String(_) | Json::Number(_)) => Some(Self(id.clone())),
            _ => None,
        }
    }
}

/// A line that was read.
#[derive(Debug)]
pub struct Line {
    pub v: Option<u64>,
    pub token: Option<String>,
    /// Whose line it is, where several write to one file.
    pub pid: Option<u32>,
    pub said: Result<Said, Trouble>,
}

/// Why a line is not understood, and the question it was, if it was one.
#[derive(Debug, PartialEq, Eq)]
pub struct Trouble {
    pub id: Option<Id>,
    pub message: String,
}

impl Trouble {
    fn new(message: impl Into<String>) -> Self {
        Self { id: None, message: message.into() }
    }

    /// Whoever asked goes on.
    #[must_use]
    pub fn line(&self) -> Json {
        let mut line = json!({ "type": "error", "message": self.message });
        if let Some(id) = self.id.as_ref().filter(|id| **id != Id::none()) {
            line["id"] = id.0.clone();
        }
        line
    }
}

/// Reads a line.
#[must_use]
pub fn read(text: &[u8]) -> Line {
    let nothing = |message: String| Line { v: None, token: None, pid: None, said: Err(Trouble::new(message)) };
    let mut fields = match serde_json::from_slice(text) {
        Ok(Json::Object(fields)) => fields,
        Ok(_) => return nothing("the line is no object".into()),
        Err(error) => return nothing(format!("the line is no JSON: {error}")),
    };
    let v = fields.remove("v").and_then(|v| v.as_u64());
    let token = match fields.remove("token") {
        Some(Json::String(token)) => Some(token),
        _ => None,
    };
    let pid = fields.get("pid").and_then(Json::as_u64).and_then(|pid| u32::try_from(pid).ok());
    let id = Id::of(&fields);
    let said = understand(fields).map_err(|message| Trouble { id, message });
    Line { v, token, pid, said }
}

fn understand(mut fields: Map<String, Json>) -> Result<Said, String> {
    let kind = match fields.remove("type") {
        Some(Json::String(kind)) if !kind.is_empty() => kind,
        _ => return Err("the line has no `type`".into()),
    };
    let id =
        || Id::of(&fields).ok_or_else(|| format!("`{kind}` needs an `id`: a number, or a text of up to {MAX_WORD}"));
    match kind.as_str() {
        "hello" => Ok(Said::Hello { about: about(&fields) }),
        "hook" => {
            let agent = fields.get("agent").and_then(Json::as_str).unwrap_or_default();
            let (agent, id) = (word(agent), Id::of(&fields));
            Ok(Said::Hook { id, agent, input: fields.remove("input").unwrap_or_default() })
        }
        "withdraw" => Ok(Said::Withdraw { id: id()? }),
        "gate" => {
            let id = id()?;
            let mut ask: Ask = serde_json::from_value(Json::Object(fields))
                .map_err(|error| format!("the gate can't be understood: {error}"))?;
            ask.thread = word(&ask.thread);
            ask.name = ask.name.as_deref().map(word);
            ask.span = ask.span.as_deref().map(word);
            ask.key = ask.key.as_deref().map(word);
            Ok(Said::Gate { id, ask: Box::new(ask) })
        }
        "event" => {
            let note = serde_json::from_value(Json::Object(fields))
                .map_err(|error| format!("the event can't be understood: {error}"))?;
            event(note)
        }
        _ => match alias::event(&kind, &mut fields) {
            Some(Note { kind, data: Json::Object(data), .. }) if kind == "session.start" => {
                Ok(Said::Start { about: about(&data) })
            }
            Some(note) => event(note),
            None => Err(format!("no line is of type \"{}\"", quoted(cut(&kind, MAX_WORD).0))),
        },
    }
}

/// An event may also be told by an older name.
fn event(mut note: Note) -> Result<Said, String> {
    if let Some(kind) = alias::kind(&note.kind) {
        note.kind = kind.into();
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if note.kind.is_empty() || note.kind.len() > MAX_WORD || !note.kind.bytes().all(plain) {
        return Err("the type of an event is made of letters, digits, `.`, `_` and `-`".into());
    }
    note.thread = word(&note.thread);
    note.span = note.span.as_deref().map(word);
    Ok(Said::Event(note))
}

fn about(fields: &Map<String, Json>) -> Json {
    let known = ABOUT.iter().filter_map(|name| {
        let value = match fields.get(*name)? {
            Json::String(text) => json!(cut(text, MAX_WORD * 20).0),
            number @ Json::Number(_) => number.clone(),
            _ => return None,
        };
        Some(((*name).to_string(), value))
    });
    Json::Object(known.collect())
}

fn word(text: &str) -> String {
    cut(text, MAX_WORD).0.to_string()
}

/// The answer to `hello`.
#[must_use]
pub fn hello(session: &str) -> Json {
    json!({ "type": "hello", "v": VERSION, "session": session })
}

/// The answer at a gate.
#[must_use]
pub fn answer(id: &Id, answer: &Answer) -> Json {
    let mut line = json!({ "type": "answer", "id": id.0 });
    if let (Json::Object(line), Ok(Json::Object(fields))) = (&mut line, serde_json::to_value(answer)) {
        line.extend(fields);
    }
    line
}

/// The answer to a hook.
#[must_use]
pub fn hooked(id: Option<&Id>, reply: &Reply) -> Json {
    let mut line = json!({ "type": "hook", "stdout": reply.stdout, "stderr": reply.stderr, "code": reply.code });
    if let Some(id) = id {
        line["id"] = id.0.clone();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::gate::{Message, Point, Powers, Verdict};

    fn said(line: &str) -> Said {
        read(line.as_bytes()).said.unwrap()
    }

    #[track_caller]
    fn refused(line: &str, words: &str) -> Option<Id> {
        let trouble = read(line.as_bytes()).said.unwrap_err();
        assert!(trouble.message.contains(words), "{line}: {}", trouble.message);
        trouble.id
    }

    #[test]
    fn a_gate_has_the_fields_of_a_question() {
        let line = r#"{"v":1,"token":"t","type":"gate","id":"g1","point":"before_tool","name":"bash","span":"c1",
            "value":{"command":"ls"},"powers":{"hold":true,"edit":true},"more":1}"#;
        let line = read(line.as_bytes());
        assert_eq!((line.v, line.token.as_deref()), (Some(1), Some("t")));
        let Ok(Said::Gate { id, ask }) = line.said else { panic!("{line:?}") };
        assert_eq!((id.0, ask.point, ask.thread.as_str()), (json!("g1"), Point::BeforeTool, "main"));
        assert_eq!(ask.powers, Powers { hold: true, edit: true, ..Powers::NONE });
        assert_eq!(ask.value["command"], "ls");
    }

    #[test]
    fn what_is_answered_reads_as_it_was_meant() {
        let id = Id(json!("g1"));
        assert_eq!(answer(&id, &Answer::default()).to_string(), r#"{"type":"answer","id":"g1","verdict":"proceed"}"#);
        let more = Answer {
            verdict: Verdict::Deny { reason: "no".into() },
            inject: vec![Message { role: "user".into(), text: "[debugger] x".into() }],
        };
        let expected = r#"{"type":"answer","id":"g1","verdict":"deny","reason":"no","inject":[{"role":"user","text":"[debugger] x"}]}"#;
        assert_eq!(answer(&id, &more).to_string(), expected);
        let reply = Reply { stdout: "{}".into(), ..Reply::default() };
        assert_eq!(hooked(None, &reply).to_string(), r#"{"type":"hook","stdout":"{}","stderr":"","code":0}"#);
    }

    #[test]
    fn events_come_by_any_of_their_names() {
        for line in [
            r#"{"type":"event","event":"tool.call","span":"c1","data":{"name":"bash"}}"#,
            r#"{"type":"event","event":"tool_call_start","span":"c1","data":{"name":"bash"}}"#,
            r#"{"type":"tool_call_start","timestamp":"2026-01-23T13:10:00Z","sessionId":"x","data":{"name":"bash","toolId":"c1"}}"#,
        ] {
            let Said::Event(note) = said(line) else { panic!("{line}") };
            assert_eq!((note.kind.as_str(), note.span.as_deref()), ("tool.call", Some("c1")), "{line}");
            assert_eq!(note.data["name"], "bash", "{line}");
        }
    }

    #[test]
    fn what_an_agent_says_of_itself_is_bounded() {
        let long = "x".repeat(1_000_000);
        let line = format!(r#"{{"type":"hello","agent":"{long}","pid":7,"powers":[1],"cwd":{{}}}}"#);
        let Said::Hello { about } = said(&line) else { panic!() };
        assert_eq!(about["agent"].as_str().unwrap().len(), 4000);
        assert_eq!((about["pid"].as_u64(), about.as_object().unwrap().len()), (Some(7), 2));
    }

    #[test]
    fn what_can_not_be_understood_is_said() {
        refused("", "no JSON");
        refused("[]", "no object");
        refused("{}", "no `type`");
        refused(&format!("{}1{}", "[".repeat(5000), "]".repeat(5000)), "no JSON");
        refused(r#"{"type":"nonsense"}"#, "no line is of type \"nonsense\"");
        refused(r#"{"type":"gate","point":"before_tool"}"#, "needs an `id`");
        refused(r#"{"type":"gate","id":["x"],"point":"before_tool"}"#, "needs an `id`");
        assert_eq!(
            refused(r#"{"type":"gate","id":"g","point":"nowhere"}"#, "can't be understood"),
            Some(Id(json!("g")))
        );
        refused(r#"{"type":"event","data":{}}"#, "can't be understood");
        refused(r#"{"type":"event","event":"a\nb"}"#, "made of letters");
    }
}
