//! What somebody at the debugger does with what is held: changes it, cancels it, answers in its place, says something.

use serde_json::{Value as Json, json};

use super::{Broker, MARK, Waiting};
use crate::agent::gate::{Message, Point, Tap, Verdict};
use crate::agent::path::{self, Path};

impl Broker {
    /// Puts another value in the place of a part of what is held.
    ///
    /// # Errors
    /// Where it can't be changed, and what could.
    pub fn set(&mut self, path: &Path, new: Json) -> Result<Json, String> {
        let Some(gate) = self.gates.front_mut().filter(|_| self.stopped) else {
            return Err("the agent is running; hold it first: bugeye pause".into());
        };
        let point = gate.ask.point;
        let editable = match (path.root.as_str(), point) {
            ("tool_input" | "input", Point::BeforeTool)
            | ("tool_output" | "output", Point::AfterTool)
            | ("prompt", Point::BeforePrompt)
            | ("request", Point::BeforeModel) => true,
            ("model", Point::BeforeModel) => gate.ask.value.get("model").is_some(),
            _ => false,
        };
        if !editable {
            let what = match point {
                Point::BeforeTool => "tool_input",
                Point::AfterTool => "tool_output",
                Point::BeforePrompt => "prompt",
                Point::BeforeModel => "request",
                Point::BeforeStop => "nothing",
            };
            return Err(format!("`{}` can't be changed {}; {what} can", path.root, point.name().replace('_', " ")));
        }
        if !gate.ask.powers.edit {
            return Err(format!(
                "unsupported: this agent lets nothing be changed {}; cancel it: bugeye cancel",
                point.name().replace('_', " ")
            ));
        }
        let mut steps = path.steps.clone();
        if path.root == "model" {
            steps.insert(0, path::Step::Name("model".into()));
        }
        let mut value = gate.ask.value.clone();
        // Another name would be one that the tool does not know.
        if point == Point::BeforeTool
            && let Err(message) = path::walk(&value, &steps)
        {
            return Err(format!("{message}; one that is new is set with the whole: bugeye set {} '{{…}}'", path.root));
        }
        path::put(&mut value, &steps, new)?;
        if let Some(model) = value["model"].as_str().filter(|_| point == Point::BeforeModel) {
            self.state.threads[gate.thread].conversation.model = Some(model.into());
        }
        let had = std::mem::replace(&mut gate.ask.value, value.clone());
        gate.verdict = Verdict::Edit { value: value.clone() };
        let before = gate.before.get_or_insert_with(|| had.clone());
        let target = match path.root.as_str() {
            "input" => "tool_input",
            "output" => "tool_output",
            root => root,
        };
        let mut data = json!({ "target": target, "value": value });
        if point != Point::BeforeModel {
            data["before"] = before.clone();
        }
        if let Some(name) = &gate.ask.name {
            data["name"] = json!(name);
            data["id"] = json!(gate.ask.span);
        }
        let about = &mut self.state.threads[gate.thread];
        let same = |call: &&mut (Option<String>, String, Json)| {
            // Calls without ids are told apart by what they are given.
            call.0 == gate.ask.span && Some(&call.1) == gate.ask.name.as_ref() && (call.0.is_some() || call.2 == had)
        };
        if point == Point::BeforeTool
            && let Some(call) = about.calls.iter_mut().rev().find(same)
        {
            call.2.clone_from(&value);
        }
        let thread = gate.thread;
        self.shown.clear();
        self.record("edited", Some(thread), data);
        path::walk(&value, &steps)
    }

    /// Does not let the tool that is held run, and goes on. `whole` ends the run.
    ///
    /// One that waits behind the one that is shown is answered at once (`stays`): the agent stays where it is shown.
    ///
    /// # Errors
    /// Where nothing is held that could be cancelled.
    pub fn cancel(&mut self, id: Option<&str>, reason: &str, whole: bool) -> Result<Json, String> {
        let reason = format!("{MARK}{reason}");
        let stopped = self.stopped;
        let at = match id {
            Some(id) => self.gates.iter().position(|gate| gate.ask.span.as_deref() == Some(id)),
            None => Some(0),
        };
        let Some((at, gate)) = at.and_then(|at| Some((at, self.gates.get_mut(at).filter(|_| stopped)?))) else {
            return Err(match id {
                Some(id) => format!("no tool call {id} is held"),
                None => "nothing is held; hold the agent first: bugeye pause, or bugeye break tool".into(),
            });
        };
        let (point, powers) = (gate.ask.point, gate.ask.powers);
        if whole {
            if !powers.abort {
                return Err(format!(
                    "unsupported: this agent can't be told {} to end its run; end it with the session: bugeye stop",
                    point.name().replace('_', " ")
                ));
            }
            gate.verdict = Verdict::Abort { reason };
        } else if powers.deny {
            gate.verdict = Verdict::Deny { reason };
        } else {
            return Err(format!(
                "unsupported: there is nothing to cancel {}; a tool can be cancelled before it runs: bugeye break tool",
                point.name().replace('_', " ")
            ));
        }
        let told = json!({ "tool": gate.ask.name, "id": gate.ask.span, "point": point.name(), "stays": at > 0 });
        if at > 0
            && let Some(gate) = self.gates.remove(at)
        {
            self.release(gate);
        }
        Ok(told)
    }

    /// Answers the gate that is shown in the tool's or the model's place.
    ///
    /// # Errors
    /// Where that can't be done here.
    pub fn synthesize(&mut self, value: Json) -> Result<(), String> {
        let Some(gate) = self.gates.front_mut().filter(|_| self.stopped) else {
            return Err("nothing is held; hold the agent first: bugeye pause".into());
        };
        if !gate.ask.powers.synthesize {
            let why = match gate.ask.point {
                Point::BeforeTool => {
                    "this agent takes no answer in a tool's place; cancel it, and its model reads why: \
                     bugeye cancel --reason TEXT"
                }
                Point::AfterTool => "the tool has answered already; change its answer: bugeye set tool_output VALUE",
                Point::BeforeModel => {
                    "this agent takes no answer in its model's place here; say something to both: bugeye inject user TEXT"
                }
                Point::BeforePrompt | Point::BeforeStop => {
                    "nothing is asked here that could be answered; hold it where something is: bugeye break model"
                }
            };
            return Err(format!("unsupported: {why}"));
        }
        gate.verdict = Verdict::Synthesize { value };
        Ok(())
    }

    /// Takes a message for the conversation, for the next place where one may stand.
    ///
    /// # Errors
    /// Where the role is none that can be spoken in.
    pub fn inject(&mut self, role: &str, text: &str, actor: &str) -> Result<Json, String> {
        if !matches!(role, "user" | "assistant") {
            return Err(format!("nobody speaks as `{role}`; there are: user, assistant"));
        }
        let message = Message { role: role.into(), text: format!("{MARK}{text}") };
        let gate = self.gate();
        let thread = gate.map_or(0, |gate| gate.thread);
        let now =
            gate.is_some_and(|gate| gate.ask.powers.inject && !gate.again && (gate.tap != Tap::Hook || role == "user"));
        self.inject.push_back(Waiting { message, actor: actor.into(), thread });
        let when =
            if now { "when the agent goes on" } else { "at the next place in the conversation where one may stand" };
        Ok(json!({ "when": when, "waiting": self.inject.len() }))
    }
}
