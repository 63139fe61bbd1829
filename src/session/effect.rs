//! Evaluating for effect where an adapter has ways of its own: calls asked for as such, variables set by their names.

use serde_json::{Value as Json, json};

use super::inspect::Purposeful;
use super::look::Look;
use super::{Answer, OpId, Pending, Session};
use crate::dap::types::{self, read};

/// A variable to be set by its name, and the scopes that may have it, the first one last.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SetIn {
    name: String,
    value: String,
    scopes: Vec<i64>,
}

impl Session {
    /// The answer to `eval`, or the question put in another way.
    pub(super) fn on_effect_of(&mut self, op: OpId, expression: &str, frame: i64, result: Result<Json, String>) {
        let again = match &result {
            Err(message) => (self.adapter.quirks.eval_again)(expression, message),
            Ok(_) => None,
        };
        match again {
            // Not a second time.
            Some(again) if again != expression => {
                let context = self.adapter.quirks.eval_context;
                let arguments = json!({ "expression": again, "frameId": frame, "context": context });
                self.request("evaluate", arguments, Pending::Effect(op, again, frame), self.limits.request);
            }
            _ => self.on_effect(op, result),
        }
    }

    pub(super) fn disassemble(&mut self, op: OpId, address: Option<String>, count: u32, look: &Look) {
        if !self.capabilities.has("supportsDisassembleRequest") {
            let failure = self.unsupported("showing machine code", "source: bugeye source --function");
            return self.answer(op, Err(failure));
        }
        match self.check_stopped(look.thread) {
            Ok(()) => self.with_frame(op, look, Purposeful::Code { address, count }),
            Err(failure) => self.answer(op, Err(failure)),
        }
    }

    pub(super) fn ask_code(&mut self, op: OpId, from: Option<String>, count: u32) {
        let Some(from) = from else {
            let failure = self.unsupported("telling where a frame's code is", "name an address");
            return self.answer(op, Err(failure));
        };
        let arguments = json!({ "memoryReference": from, "instructionOffset": 0, "instructionCount": count });
        self.request("disassemble", arguments, Pending::Request(op, "it can't be shown"), self.limits.inspect);
    }

    /// Whether a function of the program is being called, which may stop on its way.
    pub(super) fn is_calling(&self) -> bool {
        self.adapter.quirks.calls_stop
            && self.pending.values().any(|pending| matches!(pending, Pending::Effect(..) | Pending::Raw(_)))
    }

    pub(super) fn on_assigned(&mut self, op: OpId, target: &str, frame: i64, result: Result<Json, String>) {
        let says_nothing = |body: &Json| read::<types::EvaluateBody>(body).result.is_empty();
        if !self.adapter.quirks.assigns_in_top || !result.as_ref().is_ok_and(says_nothing) {
            return self.on_effect(op, result);
        }
        let context = self.adapter.quirks.print_contexts.last().copied().unwrap_or("watch");
        let arguments = json!({ "expression": target, "frameId": frame, "context": context });
        self.request("evaluate", arguments, Pending::Effect(op, target.into(), frame), self.limits.inspect);
    }

    /// Sets a variable of an outer frame, where assignments are not for it.
    pub(super) fn set_by_name(&mut self, op: OpId, frame: i64, name: String, value: String) {
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_name {
            let what = "setting a part of a value outside of the innermost frame";
            let failure = self.unsupported(what, "set it where it stops in that function: bugeye finish");
            return self.answer(op, Err(failure));
        }
        let set = SetIn { name, value, scopes: Vec::new() };
        self.request("scopes", json!({ "frameId": frame }), Pending::SetIn(op, set), self.limits.inspect);
    }

    pub(super) fn on_set_scopes(&mut self, op: OpId, mut set: SetIn, result: Result<Json, String>) {
        let scopes = result.map(|body| read::<types::ScopesBody>(&body).scopes).unwrap_or_default();
        set.scopes = scopes.iter().rev().map(|scope| scope.variables_reference).collect();
        self.set_next(op, set, "there are none");
    }

    /// Tries the next scope: the innermost that has the name is the one.
    fn set_next(&mut self, op: OpId, mut set: SetIn, message: &str) {
        let Some(scope) = set.scopes.pop() else {
            let failure = self.adapter_failure("it can't be set", message).hint("what there is: bugeye locals");
            return self.answer(op, Err(failure));
        };
        let arguments = json!({ "variablesReference": scope, "name": set.name, "value": set.value });
        self.request("setVariable", arguments, Pending::SetDone(op, set), self.limits.request);
    }

    pub(super) fn on_set_done(&mut self, op: OpId, set: SetIn, result: Result<Json, String>) {
        match result {
            Ok(body) => {
                let text = body.get("value").and_then(Json::as_str).unwrap_or_default().to_string();
                self.answer(op, Ok(Answer::Text(text)));
            }
            Err(message) => self.set_next(op, set, &message),
        }
    }
}
