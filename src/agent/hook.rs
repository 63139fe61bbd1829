//! The hook tap: what an agent's own hooks say, put to the broker, and its answer in words that agent understands.
//!
//! An agent calls `bugeye hook NAME` (see `commands/hook.rs`) at each point of its loop, with the event as JSON. A dialect
//! per agent reads the event as questions and notes, and writes the answers; both are pure functions. Formats drift, so
//! they are read leniently: what is missing has a default, and an event that nobody knows is let pass.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod opencode;

use serde_json::{Map, Value as Json, json};

pub use claude::EVENTS as CLAUDE_EVENTS;
pub use codex::EVENTS as CODEX_EVENTS;
pub use copilot::{ERRORS as COPILOT_ERRORS, EVENTS as COPILOT_EVENTS};
pub use gemini::EVENTS as GEMINI_EVENTS;

use super::gate::{Answer, Ask, Line, Note, Point, Powers, Verdict};
use super::path::plain;

/// The agents whose hooks are understood.
pub const AGENTS: [&str; 6] = ["claude", "codex", "gemini", "cursor", "copilot", "opencode"];

/// What the hook's process says to its agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub stdout: String,
    pub stderr: String,
    pub code: u8,
}

impl Reply {
    fn json(value: &Json) -> Self {
        Self { stdout: value.to_string(), ..Self::default() }
    }

    /// The agent goes on as if there were no hook.
    fn pass() -> Self {
        Self::json(&json!({}))
    }
}

/// One thing that an event says or asks.
#[derive(Debug)]
enum Heard {
    /// A tap has come: what is known of the agent.
    Attached(Json),
    /// Told before the questions that follow it; after a question only if that one was let through.
    Note(Note),
    Ask(Box<Ask>),
}

/// A question and what came of it.
type Asked = (Ask, Answer);

/// How one agent speaks.
struct Dialect {
    read: fn(&Json) -> Vec<Heard>,
    /// Called only where something is to be said.
    write: fn(&Json, &Asked) -> Json,
}

fn dialect(agent: &str) -> Option<Dialect> {
    Some(match agent {
        "claude" => Dialect { read: claude::read, write: claude::write },
        "codex" => Dialect { read: codex::read, write: codex::write },
        "gemini" => Dialect { read: gemini::read, write: gemini::write },
        "cursor" => Dialect { read: cursor::read, write: cursor::write },
        "copilot" => Dialect { read: copilot::read, write: copilot::write },
        "opencode" => Dialect { read: opencode::read, write: opencode::write },
        _ => return None,
    })
}

/// Puts an event of an agent's to the broker, and waits until the agent may go on. Dropped, what it asked is withdrawn.
pub async fn handle(line: &Line, agent: &str, input: Json) -> Reply {
    let Some(dialect) = dialect(agent) else { return Reply::pass() };
    let mut said: Option<Asked> = None;
    for heard in (dialect.read)(&input) {
        match heard {
            Heard::Attached(about) => line.attached(about),
            Heard::Note(note) => line.note(note),
            Heard::Ask(ask) => {
                let answer = within(ask.powers, line.ask((*ask).clone()).await);
                let goes_on = matches!(answer.verdict, Verdict::Proceed | Verdict::Edit { .. });
                // A stop that is answered with a message does not happen.
                let goes_on = goes_on && (ask.point != Point::BeforeStop || answer.inject.is_empty());
                said = Some(joined(said, (*ask, answer)));
                if !goes_on {
                    break;
                }
            }
        }
    }
    match said {
        Some(asked) if asked.1 != Answer::default() => Reply::json(&(dialect.write)(&input, &asked)),
        _ => Reply::pass(),
    }
}

/// An event that asks twice (of the prompt, then of the model) is answered once: with the last verdict, and all messages.
fn joined(first: Option<Asked>, second: Asked) -> Asked {
    let Some((ask, answer)) = first else { return second };
    let (later, mut last) = second;
    let mut inject = answer.inject;
    inject.append(&mut last.inject);
    if last.verdict == Verdict::Proceed {
        return (ask, Answer { verdict: answer.verdict, inject });
    }
    (later, Answer { verdict: last.verdict, inject })
}

/// What the agent could not carry out is not said to it, but for a refusal: where that can't be, its run ends if it can.
fn within(powers: Powers, answer: Answer) -> Answer {
    let verdict = match answer.verdict {
        Verdict::Edit { .. } if !powers.edit => Verdict::Proceed,
        Verdict::Synthesize { .. } if !powers.synthesize => Verdict::Proceed,
        Verdict::Deny { reason } if !powers.deny && powers.abort => Verdict::Abort { reason },
        Verdict::Abort { reason } if !powers.abort && powers.deny => Verdict::Deny { reason },
        Verdict::Deny { .. } if !powers.deny => Verdict::Proceed,
        Verdict::Abort { .. } if !powers.abort => Verdict::Proceed,
        verdict => verdict,
    };
    let inject = if powers.inject { answer.inject } else { Vec::new() };
    Answer { verdict, inject }
}

/// What reading needs of an event, whatever the spelling.
fn text<'a>(input: &'a Json, name: &str) -> Option<&'a str> {
    input.get(name).and_then(Json::as_str).filter(|text| !text.is_empty())
}

fn words(input: &Json, name: &str) -> Option<String> {
    text(input, name).map(bounded)
}

/// An id or a name: no agent has longer ones.
fn bounded(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

fn member(input: &Json, name: &str) -> Json {
    input.get(name).cloned().unwrap_or(Json::Null)
}

/// Of a sub-agent, or of the agent itself.
fn thread(input: &Json) -> String {
    words(input, "agent_id").unwrap_or_else(|| "main".into())
}

/// These members, where they are there.
fn only(input: &Json, names: &[&str]) -> Json {
    let members = names.iter().filter_map(|name| Some(((*name).to_string(), input.get(*name)?.clone())));
    Json::Object(members.collect::<Map<_, _>>())
}

/// The same, each of the agent's names with the one that it has in a record.
fn called(input: &Json, names: &[(&str, &str)]) -> Json {
    let members = names.iter().filter_map(|(theirs, ours)| Some(((*ours).to_string(), input.get(*theirs)?.clone())));
    Json::Object(members.collect::<Map<_, _>>())
}

/// What an error says, where it is more than a text.
fn message(error: &Json) -> Json {
    let said = ["/message", "/data/message", "/name"].iter().find_map(|path| error.pointer(path)?.as_str());
    said.map_or_else(|| json!(plain(error)), Into::into)
}

fn note(kind: &str, thread: String, span: Option<String>, data: Json) -> Heard {
    Heard::Note(Note { kind: kind.into(), thread, span, data })
}

fn question(point: Point, thread: String, value: Json, powers: Powers) -> Ask {
    Ask { thread, value, powers, ..Ask::new(point) }
}

fn asks(ask: Ask) -> Heard {
    Heard::Ask(Box::new(ask))
}

/// The messages as one text, where an agent takes one.
fn injected(answer: &Answer) -> Option<String> {
    let texts: Vec<&str> = answer.inject.iter().map(|message| message.text.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

#[cfg(test)]
mod tests;
