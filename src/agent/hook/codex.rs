//! Codex's hooks: Claude's contract, less what it does not have.

use serde_json::{Map, Value as Json, json};

use super::{Asked, Heard, asks, claude, injected, plain, question, text, thread};
use crate::agent::gate::{Point, Powers, Verdict};

const HELD: Powers = Powers { hold: true, inject: true, ..Powers::NONE };

/// The events to register. That before a model call is in no documentation: it holds, and what is said there is not heard.
pub const EVENTS: [&str; 12] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreModelRequest",
    "PreToolUse",
    "PostToolUse",
    "PermissionRequest",
    "PreCompact",
    "PostCompact",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionEnd",
];

pub fn read(input: &Json) -> Vec<Heard> {
    // Once a turn has begun a hook can't end it: where it would, a tool is refused instead.
    let powers = |point: Point, _| match point {
        Point::BeforeTool => Powers { edit: true, deny: true, ..HELD },
        Point::AfterTool => Powers { edit: true, ..HELD },
        Point::BeforePrompt | Point::BeforeStop => Powers { deny: true, abort: true, ..HELD },
        Point::BeforeModel => Powers { hold: true, ..Powers::NONE },
    };
    if text(input, "hook_event_name") == Some("PreModelRequest") {
        return vec![asks(question(Point::BeforeModel, thread(input), Json::Null, powers(Point::BeforeModel, false)))];
    }
    let mut heard = claude::read_as("codex", input, powers);
    // That comes as an event of its own.
    heard.retain(|heard| !matches!(heard, Heard::Ask(ask) if ask.point == Point::BeforeModel));
    heard
}

pub fn write(input: &Json, (ask, answer): &Asked) -> Json {
    let mut said = Map::new();
    let mut of_event = Map::new();
    match &answer.verdict {
        Verdict::Abort { reason } => return claude::halt(reason),
        Verdict::Edit { value } if ask.point == Point::BeforeTool => {
            // It takes no other input without this word; its own rules on what may run come after hooks.
            of_event.insert("permissionDecision".into(), json!("allow"));
            of_event.insert("updatedInput".into(), value.clone());
        }
        // The text takes the place of the output.
        Verdict::Edit { value } => claude::block(&mut said, &plain(value)),
        Verdict::Deny { reason } if ask.point == Point::BeforeTool => {
            of_event.insert("permissionDecision".into(), json!("deny"));
            of_event.insert("permissionDecisionReason".into(), json!(reason));
        }
        Verdict::Deny { reason } => claude::block(&mut said, reason),
        Verdict::Proceed | Verdict::Synthesize { .. } => {}
    }
    claude::add_context(ask, injected(answer), &mut said, &mut of_event);
    claude::whole(input, said, of_event)
}
