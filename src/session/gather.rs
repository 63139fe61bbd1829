//! One look at a stopped program: a bounded walk over the adapter's tree of frames, scopes and values.
//!
//! Every looking command and every stop report is a [`Look`], answered by a [`Seen`]. The walk sends all it can at once
//! and never more than its budget allows; what it could not read is named in `gaps`.

use serde_json::{Value as Json, json};

use super::expression::is_pure;
use super::{Answer, OpId, Pending, Session};
use crate::dap::types::{self, DapVariable, EvaluateBody, read};
use crate::failure::Failure;
use crate::model::{Frame, ThreadInfo, Value, Variable, View};
use crate::render::{cut, quoted};

/// Requests one look may send: enough for any view, and no flood whatever the program holds.
const MAX_REQUESTS: usize = 400;
/// Requests for children that nobody asked for, made because a value says little without them.
const MAX_UNASKED: usize = 40;

/// What to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// The selected thread and frame, where none are named.
    pub thread: Option<i64>,
    pub frame: Option<u32>,
    /// Frames to show; 0 for no more than the frame that is looked at.
    pub frames: u32,
    pub locals: Locals,
    pub expressions: Vec<String>,
    pub view: View,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locals {
    No,
    Selected,
    EveryFrame,
}

impl Default for Look {
    fn default() -> Self {
        Self {
            thread: None,
            frame: None,
            frames: 0,
            locals: Locals::No,
            expressions: Vec::new(),
            view: View::default(),
        }
    }
}

/// What was seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub thread: ThreadInfo,
    pub frame: u32,
    pub frames: Vec<Frame>,
    pub more_frames: bool,
    pub locals: Vec<Variable>,
    /// Each expression with its value, or why there is none.
    pub values: Vec<(String, Result<Value, String>)>,
    pub gaps: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Stop,
    Op(OpId),
}

/// Which part of the walk an answer belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Threads,
    Stack,
    Scopes {
        frame: usize,
    },
    Scope {
        frame: usize,
    },
    Children {
        node: usize,
    },
    Evaluate {
        index: usize,
        attempt: usize,
    },
    /// A condition evaluated again, to see whether it can be.
    Condition {
        wish: u32,
    },
}

/// A look under way.
#[derive(Debug)]
pub(super) struct Gather {
    purpose: Purpose,
    look: Look,
    epoch: u64,
    thread: i64,
    frame: u32,
    frames: Vec<Frame>,
    frame_ids: Vec<i64>,
    more_frames: bool,
    nodes: Vec<Node>,
    /// The locals of each frame, as nodes.
    locals: Vec<Vec<usize>>,
    values: Vec<Option<Result<usize, String>>>,
    gaps: Vec<String>,
    open: usize,
    sent: usize,
    unasked: usize,
    /// Its thread and frame become the selected ones, if they are there.
    pub selects: bool,
    /// Conditions to evaluate in the top frame, to see whether they can be.
    pub also_check: Vec<(u32, String)>,
}

#[derive(Debug)]
struct Node {
    name: String,
    text: String,
    kind: Option<String>,
    reference: i64,
    total: Option<u64>,
    depth: u32,
    children: Vec<usize>,
    expanded: bool,
    /// The text says nothing that the children do not.
    opaque: bool,
}

impl Gather {
    pub(super) const fn op(&self) -> Option<OpId> {
        match self.purpose {
            Purpose::Op(op) => Some(op),
            Purpose::Stop => None,
        }
    }

    pub(super) fn is_stop(&self) -> bool {
        self.purpose == Purpose::Stop
    }
}

impl Session {
    /// Begins a look; its answer goes where `purpose` says.
    pub(super) fn gather(&mut self, purpose: Purpose, look: Look) {
        let Some(standing) = &self.standing else { return };
        let thread = look.thread.unwrap_or(standing.thread);
        let same_thread = thread == standing.thread;
        let frame = look.frame.unwrap_or(if same_thread { standing.frame } else { 0 });
        let id = self.next_gather;
        self.next_gather += 1;
        let values = vec![None; look.expressions.len()];
        // One more than is shown tells whether there are more; `totalFrames` is an estimate on some adapters.
        let levels = look.frames.max(frame.saturating_add(1)).saturating_add(1);
        self.gathers.insert(
            id,
            Gather {
                purpose,
                look,
                epoch: self.epoch,
                thread,
                frame,
                frames: Vec::new(),
                frame_ids: Vec::new(),
                more_frames: false,
                nodes: Vec::new(),
                locals: Vec::new(),
                values,
                gaps: Vec::new(),
                open: 0,
                sent: 0,
                unasked: 0,
                selects: false,
                also_check: Vec::new(),
            },
        );
        if purpose == Purpose::Stop {
            self.ask(id, "threads", Json::Null, Step::Threads);
        }
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": levels });
        self.ask(id, "stackTrace", arguments, Step::Stack);
    }

    fn ask(&mut self, id: u64, command: &str, arguments: Json, step: Step) {
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        if gather.sent >= MAX_REQUESTS {
            return;
        }
        gather.sent += 1;
        gather.open += 1;
        self.request(command, arguments, Pending::Gather(id, step), self.limits.inspect);
    }

    pub(super) fn on_gathered(&mut self, id: u64, step: &Step, result: Result<Json, String>) {
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        gather.open -= 1;
        if gather.epoch != self.epoch {
            // The program went on while it was looked at.
            if let Some(Gather { purpose: Purpose::Op(op), .. }) = self.gathers.remove(&id) {
                let failure = Failure::wrong_state("the program went on while it was looked at").hint("bugeye status");
                self.answer(op, Err(failure));
            }
            return;
        }
        match *step {
            Step::Threads => {
                if let Ok(body) = result {
                    self.threads = read::<types::ThreadsBody>(&body).threads;
                }
            }
            Step::Stack => self.on_stack(id, result),
            Step::Scopes { frame } => self.on_scopes(id, frame, result),
            Step::Scope { frame } => self.on_scope(id, frame, result),
            Step::Children { node } => self.on_children(id, node, result),
            Step::Evaluate { index, attempt } => self.on_value(id, index, attempt, result),
            Step::Condition { wish } => self.on_condition(wish, result),
        }
        if self.gathers.get(&id).is_some_and(|gather| gather.open == 0) {
            self.finish_gather(id);
        }
    }

    fn on_stack(&mut self, id: u64, result: Result<Json, String>) {
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        let body = match result {
            Ok(body) => read::<types::StackTraceBody>(&body),
            Err(message) => {
                gather.gaps.push(format!("the stack can't be read: {}", explain(&message)));
                return;
            }
        };
        let (is_runtime, function_name) = (self.adapter.quirks.is_runtime, self.adapter.quirks.function_name);
        let asked = usize::try_from(gather.look.frames.max(gather.frame.saturating_add(1))).unwrap_or(usize::MAX);
        let total = body.stack_frames.len().min(asked);
        for (index, frame) in body.stack_frames.iter().take(asked).enumerate() {
            let file = frame.source.as_ref().and_then(|source| source.path.clone().or_else(|| source.name.clone()));
            let subtle = frame.presentation_hint.as_deref() == Some("subtle");
            gather.frame_ids.push(frame.id);
            gather.frames.push(Frame {
                index: u32::try_from(index).unwrap_or(u32::MAX),
                runtime: subtle || is_runtime(&frame.name, file.as_deref()),
                function: quoted(&function_name(&frame.name)),
                line: frame.line.and_then(|line| u32::try_from(line).ok()).filter(|line| *line > 0),
                file,
                module: None,
                locals: None,
            });
        }
        gather.more_frames = body.stack_frames.len() > total;
        gather.locals = vec![Vec::new(); total];
        let frame = usize::try_from(gather.frame).unwrap_or(usize::MAX);
        let Some(frame_id) = gather.frame_ids.get(frame).copied() else {
            if total > 0 || gather.frame > 0 {
                gather.gaps.push(format!("there is no frame {}: the stack has {total}", gather.frame));
            }
            return;
        };
        let (locals, expressions) = (gather.look.locals, gather.look.expressions.clone());
        let checks = std::mem::take(&mut gather.also_check);
        let frame_ids = gather.frame_ids.clone();
        match locals {
            Locals::No => {}
            Locals::Selected => self.ask(id, "scopes", json!({ "frameId": frame_id }), Step::Scopes { frame }),
            Locals::EveryFrame => {
                for (frame, frame_id) in frame_ids.into_iter().enumerate() {
                    self.ask(id, "scopes", json!({ "frameId": frame_id }), Step::Scopes { frame });
                }
            }
        }
        for (index, expression) in expressions.iter().enumerate() {
            if (self.adapter.quirks.is_nonsense)(expression) {
                self.put_value(id, index, Err("that is no expression".into()));
                continue;
            }
            self.ask_value(id, index, 0, expression, frame_id);
        }
        let context = self.adapter.quirks.print_contexts.last().copied().unwrap_or("watch");
        for (wish, condition) in checks {
            let arguments = json!({ "expression": condition, "frameId": frame_id, "context": context });
            self.ask(id, "evaluate", arguments, Step::Condition { wish });
        }
    }

    fn ask_value(&mut self, id: u64, index: usize, attempt: usize, expression: &str, frame_id: i64) {
        let context = self.adapter.quirks.print_contexts.get(attempt).copied().unwrap_or("watch");
        let arguments = json!({ "expression": expression, "frameId": frame_id, "context": context });
        self.ask(id, "evaluate", arguments, Step::Evaluate { index, attempt });
    }

    fn on_scopes(&mut self, id: u64, frame: usize, result: Result<Json, String>) {
        let scopes = match result {
            Ok(body) => read::<types::ScopesBody>(&body).scopes,
            Err(message) => return self.gap(id, format!("locals of frame {frame}: {}", explain(&message))),
        };
        let local = |scope: &types::Scope| {
            matches!(scope.presentation_hint.as_deref(), Some("locals" | "arguments"))
                || matches!(scope.name.as_str(), "Locals" | "Arguments" | "Local")
        };
        let mut references: Vec<i64> =
            scopes.iter().filter(|scope| local(scope)).map(|scope| scope.variables_reference).collect();
        if references.is_empty() {
            references.extend(scopes.iter().find(|scope| !scope.expensive).map(|scope| scope.variables_reference));
        }
        for reference in references.into_iter().filter(|reference| *reference > 0) {
            self.ask(id, "variables", json!({ "variablesReference": reference }), Step::Scope { frame });
        }
    }

    fn on_scope(&mut self, id: u64, frame: usize, result: Result<Json, String>) {
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

    fn on_children(&mut self, id: u64, parent: usize, result: Result<Json, String>) {
        let Ok(body) = result else { return };
        let variables = read::<types::VariablesBody>(&body).variables;
        let Some(gather) = self.gathers.get(&id) else { return };
        let view = gather.look.view;
        let Some(depth) = gather.nodes.get(parent).map(|node| node.depth + 1) else { return };
        let asked = if parent_pages(&gather.nodes, parent) { 0 } else { view.from };
        let items = usize::try_from(view.items).unwrap_or(usize::MAX);
        let furniture = self.adapter.quirks.is_furniture;
        let all: Vec<DapVariable> =
            variables.into_iter().filter(|variable| !furniture(&variable.name, &variable.value)).collect();
        let count = all.len();
        let skip = usize::try_from(asked).unwrap_or(0);
        let mut nodes = Vec::new();
        for variable in all.into_iter().skip(skip).take(items) {
            nodes.extend(self.add_node(id, variable, depth));
        }
        if let Some(node) = self.gathers.get_mut(&id).and_then(|gather| gather.nodes.get_mut(parent)) {
            if node.total.is_none() {
                node.total = u64::try_from(count).ok();
            }
            node.children = nodes;
        }
    }

    fn on_value(&mut self, id: u64, index: usize, attempt: usize, result: Result<Json, String>) {
        match result {
            Ok(body) => {
                let body: EvaluateBody = read(&body);
                let variable = DapVariable {
                    value: body.result,
                    kind: body.kind,
                    variables_reference: body.variables_reference,
                    named_variables: body.named_variables,
                    indexed_variables: body.indexed_variables,
                    ..DapVariable::default()
                };
                let node = self.add_node(id, variable, 0);
                self.put_value(id, index, node.ok_or_else(|| "too much to show".into()));
            }
            Err(message) => {
                let Some(gather) = self.gathers.get(&id) else { return };
                let expression = gather.look.expressions[index].clone();
                let frame = usize::try_from(gather.frame).ok().and_then(|frame| gather.frame_ids.get(frame).copied());
                let more = attempt + 1 < self.adapter.quirks.print_contexts.len();
                match frame {
                    Some(frame) if more && is_pure(&expression) => {
                        self.ask_value(id, index, attempt + 1, &expression, frame);
                    }
                    _ if more => self.put_value(id, index, Err(IMPURE.into())),
                    _ => self.put_value(id, index, Err((self.adapter.quirks.error_text)(&explain(&message)))),
                }
            }
        }
    }

    fn put_value(&mut self, id: u64, index: usize, value: Result<usize, String>) {
        if let Some(slot) = self.gathers.get_mut(&id).and_then(|gather| gather.values.get_mut(index)) {
            *slot = Some(value);
        }
    }

    /// Takes a value into the tree, and goes down where the view or the reader needs it.
    fn add_node(&mut self, id: u64, variable: DapVariable, depth: u32) -> Option<usize> {
        let quirks = &self.adapter.quirks;
        let gather = self.gathers.get_mut(&id)?;
        let view = gather.look.view;
        let opaque = (quirks.is_opaque)(&variable.value, variable.kind.as_deref());
        let text = (quirks.tidy)(&variable.value, variable.kind.as_deref());
        let count = variable.indexed_variables.or(variable.named_variables);
        let total = count.and_then(|count| u64::try_from(count).ok()).filter(|count| *count > 0);
        let reference = variable.variables_reference;
        // A value asked for is gone down into as the view says; others only where their text says little.
        let wanted = view.depth > 1 && depth < view.depth;
        let needed = opaque && depth <= view.depth && gather.unasked < MAX_UNASKED;
        let paged = view.from > 0 && depth == 0 && !gather.look.expressions.is_empty();
        let expand = reference > 0 && (wanted || needed || paged);
        if expand && !wanted {
            gather.unasked += 1;
        }
        gather.nodes.push(Node {
            name: variable.name,
            text,
            kind: variable.kind,
            reference,
            total,
            depth,
            children: Vec::new(),
            expanded: expand,
            opaque,
        });
        let node = gather.nodes.len() - 1;
        if expand {
            let mut arguments = json!({ "variablesReference": reference });
            if variable.indexed_variables.is_some_and(|count| count > 0) {
                arguments["start"] = json!(view.from);
                arguments["count"] = json!(view.items);
            }
            self.ask(id, "variables", arguments, Step::Children { node });
        }
        Some(node)
    }

    fn gap(&mut self, id: u64, text: String) {
        if let Some(gather) = self.gathers.get_mut(&id) {
            gather.gaps.push(text);
        }
    }

    /// The walk is over, or over time: what it has is the answer.
    fn finish_gather(&mut self, id: u64) {
        let Some(mut gather) = self.gathers.remove(&id) else { return };
        if gather.open > 0 {
            gather.gaps.push("not everything could be read in time".into());
        }
        let missing = usize::try_from(gather.frame).unwrap_or(0) >= gather.frames.len();
        if let (Purpose::Op(op), true) = (gather.purpose, missing) {
            let failure = match gather.gaps.first() {
                Some(gap) if gap.starts_with("there is no frame") => {
                    Failure::not_found(gap.clone()).hint("list them: bugeye backtrace")
                }
                Some(gap) => Failure::refused(gap.clone()),
                None if self.threads.iter().any(|thread| thread.id == gather.thread) => {
                    Failure::refused(format!("thread {} has no frames to look at", gather.thread))
                }
                None => Failure::not_found(format!("there is no thread {}", gather.thread))
                    .hint("list them: bugeye threads"),
            };
            return self.answer(op, Err(failure));
        }
        if let (true, Some(standing)) = (gather.selects, &mut self.standing) {
            standing.thread = gather.thread;
            standing.frame = gather.frame;
        }
        let seen = self.seen(gather);
        match seen {
            (Purpose::Stop, seen) => self.finish_report(seen),
            (Purpose::Op(op), seen) => self.answer(op, Ok(Answer::Seen(seen))),
        }
    }

    /// A wait ran out while the stop was looked at.
    pub(super) fn finish_stop_early(&mut self) {
        match self.gathers.iter().find(|(_, gather)| gather.is_stop()).map(|(id, _)| *id) {
            Some(id) => self.finish_gather(id),
            None => {
                let seen = self.bare_seen(vec!["the stack could not be read in time".into()]);
                self.finish_report(seen);
            }
        }
    }

    fn seen(&self, gather: Gather) -> (Purpose, Seen) {
        let view = gather.look.view;
        let mut budget = Budget { chars: view.chars, bytes: i64::from(view.bytes), left_out: 0 };
        let mut frames = gather.frames.clone();
        let selected = usize::try_from(gather.frame).unwrap_or(usize::MAX);
        let values = gather
            .look
            .expressions
            .iter()
            .zip(&gather.values)
            .map(|(expression, value)| {
                let value = match value {
                    Some(Ok(node)) => Ok(budget.value(&gather.nodes, *node)),
                    Some(Err(message)) => Err(message.clone()),
                    None => Err("it could not be read in time".into()),
                };
                (expression.clone(), value)
            })
            .collect();
        let mut locals = Vec::new();
        for (index, list) in gather.locals.iter().enumerate() {
            let variables: Vec<Variable> =
                list.iter().filter_map(|node| budget.variable(&gather.nodes, *node)).collect();
            if index == selected {
                locals.clone_from(&variables);
            }
            if gather.look.locals == Locals::EveryFrame
                && let Some(frame) = frames.get_mut(index)
            {
                frame.locals = Some(variables);
            }
        }
        let mut gaps = gather.gaps;
        if budget.left_out > 0 {
            gaps.push(format!(
                "{} more values; `bugeye locals --full` shows all, `bugeye print NAME` one",
                budget.left_out
            ));
        }
        if gather.look.frames == 0 {
            frames.retain(|frame| frame.index == gather.frame);
        }
        let seen = Seen {
            thread: ThreadInfo { id: gather.thread, name: self.thread_name(gather.thread) },
            frame: gather.frame,
            frames,
            more_frames: gather.more_frames,
            locals,
            values,
            gaps,
        };
        (gather.purpose, seen)
    }

    pub(super) fn thread_name(&self, id: i64) -> Option<String> {
        self.threads
            .iter()
            .find(|thread| thread.id == id)
            .map(|thread| quoted(&thread.name))
            .filter(|name| !name.is_empty())
    }
}

/// Why `print` did not evaluate.
pub const IMPURE: &str = "\u{0}impure";

/// Whether the children were asked for from the view's first on, so that none need be skipped here.
fn parent_pages(nodes: &[Node], parent: usize) -> bool {
    nodes.get(parent).is_some_and(|node| node.total.is_some() && node.reference > 0)
}

pub(super) fn explain(message: &str) -> String {
    if message == super::SILENT { "no answer in time".into() } else { super::first_lines(message) }
}

/// Turns nodes into values until the view's bytes are used up.
struct Budget {
    chars: u32,
    bytes: i64,
    left_out: usize,
}

impl Budget {
    fn variable(&mut self, nodes: &[Node], index: usize) -> Option<Variable> {
        if self.bytes <= 0 {
            self.left_out += 1;
            return None;
        }
        let name = quoted(&nodes.get(index)?.name);
        Some(Variable { name, value: self.value(nodes, index), change: None })
    }

    fn value(&mut self, nodes: &[Node], index: usize) -> Value {
        let Some(node) = nodes.get(index) else { return Value::default() };
        let hollow = node.opaque && !node.children.is_empty() && !node.text.starts_with("size=");
        let quoted_text = if hollow { String::new() } else { quoted(&node.text) };
        let (text, cut) = cut(&quoted_text, usize::try_from(self.chars).unwrap_or(usize::MAX));
        self.bytes -= i64::try_from(text.len() + node.name.len() + 4).unwrap_or(i64::MAX);
        let children: Vec<Variable> = node.children.iter().filter_map(|child| self.variable(nodes, *child)).collect();
        let shown = u64::try_from(children.len()).unwrap_or(0);
        Value {
            text: text.to_string(),
            kind: node.kind.as_deref().map(quoted),
            hidden: if node.expanded { node.total.unwrap_or(0).saturating_sub(shown) } else { 0 },
            cut: u64::try_from(cut).unwrap_or(0),
            deeper: node.reference > 0 && !node.expanded,
            children,
        }
    }
}
