//! Frames of a look: which one is the program's own, the variables of each, and what the function just left returned.

use serde_json::{Value as Json, json};

use super::gather::{Gather, Step, explain};
use super::look::{Locals, Scope, Seen};
use super::{Pending, Session};
use crate::dap::types::{self, DapVariable, read};
use crate::model::{Frame, Reason, Target, ThreadInfo};

/// Frames that are read at a stop that may be deep in a library.
pub(super) const LIBRARY_FRAMES: u32 = 24;

impl Session {
    pub(super) fn on_scopes(&mut self, id: u64, frame: usize, result: Result<Json, String>) {
        let scopes = match result {
            Ok(body) => read::<types::ScopesBody>(&body).scopes,
            Err(message) => {
                self.gap(id, format!("locals of frame {frame}: {}", explain(&message)));
                return self.walk_on(id, frame + 1);
            }
        };
        let Some(wanted) = self.gathers.get(&id).map(|gather| gather.look.scope) else { return };
        let mut references: Vec<i64> =
            scopes.iter().filter(|scope| wanted.takes(scope)).map(|scope| scope.variables_reference).collect();
        if references.is_empty() && wanted == Scope::Locals {
            let plain = |scope: &&types::Scope| !scope.expensive && !Scope::Registers.takes(scope);
            references.extend(scopes.iter().find(plain).map(|scope| scope.variables_reference));
        }
        if references.is_empty() && wanted != Scope::Locals {
            let names: Vec<&str> = scopes.iter().map(|scope| scope.name.as_str()).collect();
            self.gap(id, format!("no such scope here; there are: {}", names.join(", ")));
        }
        // Where all frames share their scopes' references, another look may have asked for another frame meanwhile: asked
        // again right before the variables, they are this frame's.
        let frame_id = self.gathers.get(&id).and_then(|gather| gather.frame_ids.get(frame).copied());
        if let (true, Some(frame_id)) = (self.adapter.quirks.shares_scopes && self.gathers.len() > 1, frame_id) {
            self.request("scopes", json!({ "frameId": frame_id }), Pending::Quiet, self.limits.inspect);
        }
        for reference in references.into_iter().filter(|reference| *reference > 0) {
            let mut arguments = json!({ "variablesReference": reference });
            if wanted == Scope::Registers && self.capabilities.has("supportsValueFormattingOptions") {
                arguments["format"] = json!({ "hex": true });
            }
            self.ask(id, "variables", arguments, Step::Scope { frame });
        }
        self.walk_on(id, frame + 1);
    }

    pub(super) fn on_returned(&mut self, id: u64, result: Result<Json, String>) {
        let node = self.returned(result).and_then(|variable| self.add_node(id, variable, 0));
        if let (Some(node), Some(gather)) = (node, self.gathers.get_mut(&id))
            && let Some(list) = gather.locals.get_mut(usize::try_from(gather.frame).unwrap_or(0))
        {
            list.insert(0, node);
        }
    }

    /// The scopes of one frame after the other: lldb-dap gives all frames' locals the same reference, which is good
    /// until the next frame's scopes are asked for.
    pub(super) fn walk_on(&mut self, id: u64, frame: usize) {
        let every = |gather: &&Gather| gather.look.locals == Locals::EveryFrame;
        if let Some(frame_id) = self.gathers.get(&id).filter(every).and_then(|gather| gather.frame_ids.get(frame)) {
            self.ask(id, "scopes", json!({ "frameId": frame_id }), Step::Scopes { frame });
        }
    }

    pub(super) fn on_scope(&mut self, id: u64, frame: usize, result: Result<Json, String>) {
        let variables = match result {
            Ok(body) => read::<types::VariablesBody>(&body).variables,
            Err(message) => return self.gap(id, format!("locals of frame {frame}: {}", explain(&message))),
        };
        for variable in variables {
            if (self.adapter.quirks.is_furniture)(&variable.name, &variable.value) {
                continue;
            }
            let node = self.add_node(id, variable, 0);
            if let (Some(node), Some(gather)) = (node, self.gathers.get_mut(&id))
                && let Some(list) = gather.locals.get_mut(frame)
            {
                list.push(node);
            }
        }
    }

    /// After a step out, what the function returned, where the adapter does not show it among the locals.
    pub(super) fn ask_returned(&mut self, id: u64) {
        let stepped = self.standing.as_ref().is_some_and(|standing| standing.reason == Reason::Step);
        if let (true, Some(_), Some((command, _))) = (stepped, &self.leaving, self.adapter.quirks.returned) {
            self.ask(id, "evaluate", json!({ "expression": command, "context": "repl" }), Step::Returned);
        }
    }

    fn returned(&mut self, result: Result<Json, String>) -> Option<DapVariable> {
        let function = self.leaving.take()?;
        let answer: types::EvaluateBody = read(&result.ok()?);
        let (kind, value) = (self.adapter.quirks.returned?.1)(&answer.result)?;
        Some(DapVariable { name: format!("(return) {function}"), value, kind: Some(kind), ..DapVariable::default() })
    }

    /// Whether the program may stand in a library it called, where its author has nothing to look at.
    pub(super) fn may_be_elsewhere(&self) -> bool {
        if matches!(self.target, Target::Core { .. }) {
            return true;
        }
        self.standing.as_ref().is_some_and(|standing| {
            matches!(
                standing.reason,
                Reason::Signal { .. } | Reason::Exception { .. } | Reason::Pause | Reason::Attached
            )
        })
    }

    /// The frame to select at a stop: the innermost of the program's own code, with a source that can be shown.
    pub(super) fn own_frame(&self, frames: &[Frame]) -> u32 {
        let own = |frame: &&Frame| {
            let shown = |file: &String| file.starts_with('/') && !file.starts_with("/rustc/");
            !frame.runtime && frame.line.is_some() && frame.file.as_ref().is_some_and(shown)
        };
        if self.may_be_elsewhere() { frames.iter().find(own).map_or(0, |frame| frame.index) } else { 0 }
    }

    /// The only child stands for its parent: its children are the parent's.
    pub(super) fn pass_through(&mut self, id: u64, parent: usize, child: &DapVariable) {
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        let items = gather.look.view.items;
        let Some(node) = gather.nodes.get_mut(parent) else { return };
        let numbered = child.indexed_variables.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        node.total = numbered;
        let mut arguments = json!({ "variablesReference": child.variables_reference });
        if let Some(total) = numbered.filter(|_| self.adapter.quirks.pages_indexed) {
            let left = u32::try_from(total).unwrap_or(u32::MAX).saturating_sub(node.from);
            arguments["filter"] = json!("indexed");
            arguments["start"] = json!(node.from);
            arguments["count"] = json!(items.saturating_add(1).min(left));
        }
        if child.variables_reference > 0 {
            self.ask(id, "variables", arguments, Step::Children { node: parent });
        }
    }

    /// Asks for what a pointer points at.
    pub(super) fn expand_pointer(&mut self, id: u64, node: usize) {
        let Some(node_of) = self.gathers.get_mut(&id).and_then(|gather| gather.nodes.get_mut(node)) else { return };
        if node_of.reference > 0 && !node_of.expanded && node_of.text.starts_with("0x") {
            (node_of.expanded, node_of.opaque) = (true, true);
            let arguments = json!({ "variablesReference": node_of.reference });
            self.ask(id, "variables", arguments, Step::Children { node });
        }
    }

    /// Whether no frame is of the program: its interpreter raised and caught something of its own.
    pub(super) fn is_foreign(&self, seen: &Seen) -> bool {
        let is_library = self.adapter.quirks.is_library;
        let foreign = |frame: &Frame| frame.file.as_deref().is_some_and(is_library);
        !seen.frames.is_empty() && !seen.more_frames && seen.frames.iter().all(foreign)
    }

    /// Whether a caught function is one of those that another stop tells better.
    pub(super) fn is_retold(&self, reason: &Reason, seen: &Seen) -> bool {
        let Reason::Exception { text } = reason else { return false };
        let functions: Vec<&str> = seen.frames.iter().map(|frame| frame.function.as_str()).collect();
        (self.adapter.quirks.is_retold)(text, &functions)
    }

    /// A report with nothing in it but where the program stopped, when not even the stack could be read.
    pub(super) fn bare_seen(&self, gaps: Vec<String>) -> Seen {
        let thread = self.standing.as_ref().map_or(1, |standing| standing.thread);
        Seen {
            thread: ThreadInfo { id: thread, name: self.thread_name(thread) },
            frame: 0,
            frames: Vec::new(),
            more_frames: false,
            locals: Vec::new(),
            values: Vec::new(),
            gaps,
        }
    }
}
