//! One look at a stopped program: a bounded walk over the adapter's tree of frames, scopes and values.
//!
//! Every looking command and every stop report is a [`Look`], answered by a [`Seen`]. The walk sends all it can at once
//! and never more than its budget allows; what it could not read is named in `gaps`.

use serde_json::{Value as Json, json};

use super::look::{Locals, Look, Seen};
use super::tree::{Budget, Node};
use super::{Answer, OpId, Pending, Session};
use crate::dap::types::{self, DapVariable, EvaluateBody, read};
use crate::failure::Failure;
use crate::model::{Frame, ThreadInfo, Variable, is_pure};
use crate::render::quoted;

/// Requests one look may send: enough for any view, and no flood whatever the program holds.
const MAX_REQUESTS: usize = 400;
/// Requests for children that nobody asked for, made because a value says little without them.
const MAX_UNASKED: usize = 40;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Stop,
    /// A traced place was reached.
    Trace,
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
    Returned,
}

/// A look under way.
#[derive(Debug)]
pub(super) struct Gather {
    purpose: Purpose,
    pub(super) look: Look,
    epoch: u64,
    thread: i64,
    pub(super) frame: u32,
    frames: Vec<Frame>,
    pub(super) frame_ids: Vec<i64>,
    more_frames: bool,
    pub(super) nodes: Vec<Node>,
    /// The locals of each frame, as nodes.
    pub(super) locals: Vec<Vec<usize>>,
    values: Vec<Option<Result<usize, String>>>,
    gaps: Vec<String>,
    open: usize,
    sent: usize,
    unasked: usize,
    /// Its thread and frame become the selected ones, if they are there.
    pub selects: bool,
    /// Conditions to evaluate in the top frame, to see whether they can be.
    pub also_check: Vec<(u32, String)>,
    /// The threads were asked for a second time.
    asked_again: bool,
    /// The frame that the values were asked for before it was known.
    guessed: Option<i64>,
}

/// The stack that a stop was reported with. Its frames' ids hold until the program moves.
#[derive(Debug)]
pub(super) struct Stack {
    epoch: u64,
    thread: i64,
    body: Json,
}

impl Gather {
    pub(super) const fn op(&self) -> Option<OpId> {
        match self.purpose {
            Purpose::Op(op) => Some(op),
            Purpose::Stop | Purpose::Trace => None,
        }
    }

    pub(super) fn is_stop(&self) -> bool {
        self.purpose == Purpose::Stop
    }
}

impl Session {
    /// Begins a look; its answer goes where `purpose` says.
    pub(super) fn gather(&mut self, purpose: Purpose, look: Look) {
        let first = self.threads.first().map_or(1, |thread| thread.id);
        let (home, at) = self.standing.as_ref().map_or((first, 0), |standing| (standing.thread, standing.frame));
        let thread = look.thread.unwrap_or(home);
        let frame = look.frame.unwrap_or(if thread == home { at } else { 0 });
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
                asked_again: false,
                guessed: None,
            },
        );
        let nameless = purpose == Purpose::Trace && self.is_nameless(thread);
        if purpose == Purpose::Stop || nameless {
            self.ask(id, "threads", Json::Null, Step::Threads);
        } else if let Some(body) = self.known_stack(id) {
            if let Some(gather) = self.gathers.get_mut(&id) {
                gather.open += 1;
            }
            return self.on_gathered(id, &Step::Stack, Ok(body));
        }
        let arguments = json!({ "threadId": thread, "startFrame": 0, "levels": levels });
        self.ask(id, "stackTrace", arguments, Step::Stack);
        // One round trip saved for every hit, where the frame's id is as it always is.
        if let (Purpose::Trace, Some(frame_id)) = (purpose, self.adapter.quirks.top_frame) {
            if let Some(gather) = self.gathers.get_mut(&id) {
                gather.guessed = Some(frame_id);
            }
            self.ask_values(id, frame_id);
        }
    }

    fn ask_values(&mut self, id: u64, frame_id: i64) {
        let Some(gather) = self.gathers.get(&id) else { return };
        for (index, expression) in gather.look.expressions.clone().iter().enumerate() {
            if (self.adapter.quirks.is_nonsense)(expression) {
                self.put_value(id, index, Err("that is no expression".into()));
                continue;
            }
            if self.adapter.quirks.prints_only_pure && !is_pure(expression) {
                self.put_value(id, index, Err(IMPURE.into()));
                continue;
            }
            self.ask_value(id, index, 0, expression, frame_id);
        }
    }

    /// The stack as it was read at this stop, where a look needs no more than a frame of it: a round trip saved for every
    /// `print`.
    fn known_stack(&self, id: u64) -> Option<Json> {
        let gather = self.gathers.get(&id).filter(|gather| gather.look.frames == 0)?;
        let known = self.stack.as_ref()?;
        let frames = known.body.get("stackFrames").and_then(Json::as_array).map_or(0, Vec::len);
        let covers = usize::try_from(gather.frame).is_ok_and(|frame| frame < frames);
        (known.epoch == self.epoch && known.thread == gather.thread && covers).then(|| known.body.clone())
    }

    pub(super) fn ask(&mut self, id: u64, command: &str, arguments: Json, step: Step) {
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
            Step::Threads => self.on_thread_names(id, result),
            Step::Stack => self.on_stack(id, result),
            Step::Scopes { frame } => self.on_scopes(id, frame, result),
            Step::Scope { frame } => self.on_scope(id, frame, result),
            Step::Children { node } => self.on_children(id, node, result),
            Step::Evaluate { index, attempt } => self.on_value(id, index, attempt, result),
            Step::Condition { wish } => self.on_condition(wish, result),
            Step::Returned => self.on_returned(id, result),
        }
        if self.gathers.get(&id).is_some_and(|gather| gather.open == 0) {
            self.finish_gather(id);
        }
    }

    fn on_stack(&mut self, id: u64, result: Result<Json, String>) {
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        let body = match result {
            Ok(body) => {
                let stack = read::<types::StackTraceBody>(&body);
                if gather.is_stop() {
                    if let Some(standing) = &mut self.standing {
                        let asked = gather.look.frames.max(gather.frame.saturating_add(1)).saturating_add(1);
                        let asked = usize::try_from(asked).unwrap_or(usize::MAX);
                        standing.stood = super::logpoints::Stood::new(gather.thread, &stack, asked);
                    }
                    self.stack = Some(Stack { epoch: gather.epoch, thread: gather.thread, body });
                }
                stack
            }
            Err(message) => {
                gather.gaps.push(format!("the stack can't be read: {}", explain(&message)));
                return;
            }
        };
        let (is_runtime, function_name) = (self.adapter.quirks.is_runtime, self.adapter.quirks.function_name);
        let asked = usize::try_from(gather.look.frames.max(gather.frame.saturating_add(1))).unwrap_or(usize::MAX);
        let total = body.stack_frames.len().min(asked);
        for (index, frame) in body.stack_frames.iter().take(total).enumerate() {
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
        if gather.purpose == Purpose::Stop {
            let frames = std::mem::take(&mut gather.frames);
            let own = self.own_frame(&frames);
            let Some(gather) = self.gathers.get_mut(&id) else { return };
            (gather.frames, gather.frame) = (frames, own);
            self.ask_returned(id);
        }
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        let frame = usize::try_from(gather.frame).unwrap_or(usize::MAX);
        let Some(frame_id) = gather.frame_ids.get(frame).copied() else {
            if total > 0 || gather.frame > 0 {
                gather.gaps.push(format!("there is no frame {}: the stack has {total}", gather.frame));
            }
            return;
        };
        let (locals, is_asked) = (gather.look.locals, gather.guessed == Some(frame_id));
        if let (true, Some(command)) =
            (locals != Locals::No, (self.adapter.quirks.scope_command)(gather.look.scope.word()))
        {
            let arguments = json!({ "expression": command, "context": "repl" });
            self.request("evaluate", arguments, Pending::Quiet, self.limits.inspect);
        }
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        let checks = std::mem::take(&mut gather.also_check);
        match locals {
            Locals::No => {}
            Locals::Selected => self.ask(id, "scopes", json!({ "frameId": frame_id }), Step::Scopes { frame }),
            Locals::EveryFrame => self.walk_on(id, 0),
        }
        if !is_asked {
            self.ask_values(id, frame_id);
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

    fn on_children(&mut self, id: u64, parent: usize, result: Result<Json, String>) {
        let Ok(body) = result else { return };
        let variables = read::<types::VariablesBody>(&body).variables;
        let Some(gather) = self.gathers.get(&id) else { return };
        let view = gather.look.view;
        let Some(depth) = gather.nodes.get(parent).map(|node| node.depth + 1) else { return };
        let skip = if self.adapter.quirks.pages { 0 } else { gather.nodes.get(parent).map_or(0, |node| node.from) };
        let items = usize::try_from(view.items).unwrap_or(usize::MAX);
        let furniture = self.adapter.quirks.is_furniture;
        let length = self.adapter.quirks.length;
        let length = variables.iter().find(|variable| Some(variable.name.as_str()) == length);
        let length: Option<u64> = length.and_then(|variable| variable.value.parse().ok());
        let all: Vec<DapVariable> =
            variables.into_iter().filter(|variable| !furniture(&variable.name, &variable.value)).collect();
        if let ([only], Some(node)) = (&all[..], gather.nodes.get(parent))
            && (self.adapter.quirks.passes_through)(node.kind.as_deref(), &only.name)
        {
            return self.pass_through(id, parent, only);
        }
        let count = all.len();
        let skip = usize::try_from(skip).unwrap_or(0);
        let mut nodes = Vec::new();
        let is_address = |text: &str| text.starts_with("0x");
        let hides = gather.nodes.get(parent).is_some_and(|node| node.opaque && is_address(&node.text));
        for variable in all.into_iter().skip(skip).take(items) {
            let node = self.add_node(id, variable, depth);
            // A pointer that is all there is to a value says nothing itself.
            if let Some(node) = node.filter(|_| hides) {
                self.expand_pointer(id, node);
            }
            nodes.extend(node);
        }
        if let Some(node) = self.gathers.get_mut(&id).and_then(|gather| gather.nodes.get_mut(parent)) {
            node.more = count > skip.saturating_add(items);
            node.total = node.total.or(length);
            if node.total.is_none() && !self.adapter.quirks.pages {
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
                    cut: body.cut,
                    ..DapVariable::default()
                };
                let node = self.add_node(id, variable, 0);
                self.put_value(id, index, node.ok_or_else(|| "too much to show".into()));
            }
            Err(message) if (self.adapter.quirks.is_impure)(&message) => self.put_value(id, index, Err(IMPURE.into())),
            Err(message) => {
                let Some(gather) = self.gathers.get(&id) else { return };
                let expression = gather.look.expressions[index].clone();
                let frame = usize::try_from(gather.frame).ok().and_then(|frame| gather.frame_ids.get(frame).copied());
                // An adapter that is silent is not waited for twice.
                let silent = message == super::SILENT;
                let more = !silent && attempt + 1 < self.adapter.quirks.print_contexts.len();
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
    pub(super) fn add_node(&mut self, id: u64, variable: DapVariable, depth: u32) -> Option<usize> {
        let quirks = &self.adapter.quirks;
        let gather = self.gathers.get_mut(&id)?;
        let view = gather.look.view;
        let value = variable.value.trim();
        let opaque = (quirks.is_opaque)(value, variable.kind.as_deref());
        let text = (quirks.tidy)(value, variable.kind.as_deref());
        let count = variable.indexed_variables.or(variable.named_variables).and_then(|count| u64::try_from(count).ok());
        // An adapter may give fewer than it says there are.
        let told =
            || (quirks.count)(value, variable.kind.as_deref()).filter(|_| quirks.pages_exactly || count.is_none());
        let total = count.filter(|count| *count > 0).max(told());
        let from = if depth == 0 { view.from } else { 0 };
        let reference = variable.variables_reference;
        // A value asked for is gone down into as the view says; others only where their text says little.
        let wanted = view.depth > 1 && depth < view.depth;
        let needed = opaque && depth <= view.depth && gather.unasked < MAX_UNASKED;
        let paged = view.from > 0 && depth == 0 && !gather.look.expressions.is_empty();
        let numbered = variable.indexed_variables.is_some_and(|count| count > 0);
        let exactly = quirks.pages_exactly || (quirks.pages_indexed && numbered);
        let left = count.map(|count| count.saturating_sub(from.into())).filter(|_| exactly);
        let expand = reference > 0 && (wanted || needed || paged) && left != Some(0);
        if expand && !wanted {
            gather.unasked += 1;
        }
        gather.nodes.push(Node {
            name: variable.name,
            text,
            cut: variable.cut,
            kind: variable.kind.as_deref().map(quirks.type_name),
            reference,
            total,
            depth,
            children: Vec::new(),
            expanded: expand,
            opaque,
            from,
            more: false,
        });
        let node = gather.nodes.len() - 1;
        if expand {
            let mut arguments = json!({ "variablesReference": reference });
            if quirks.pages && (numbered || !quirks.pages_indexed) {
                // One more than is shown tells whether there are more.
                let one_more = u64::from(view.items.saturating_add(1));
                arguments["start"] = json!(from);
                arguments["count"] = json!(left.map_or(one_more, |left| one_more.min(left)));
            }
            if quirks.pages_indexed && numbered {
                arguments["filter"] = json!("indexed");
            }
            self.ask(id, "variables", arguments, Step::Children { node });
        }
        Some(node)
    }

    pub(super) fn gap(&mut self, id: u64, text: String) {
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
            (Purpose::Trace, seen) => self.finish_hit(seen),
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
        let mut budget = Budget::new(view);
        if self.adapter.quirks.agents {
            // What an agent is about to do is what it is held for.
            budget.chars = budget.chars.max(1000);
        }
        let mut frames = gather.frames.clone();
        let selected = usize::try_from(gather.frame).unwrap_or(usize::MAX);
        let values = gather
            .look
            .expressions
            .iter()
            .zip(&gather.values)
            .enumerate()
            .map(|(index, (expression, value))| {
                let values_left = gather.values.len().saturating_sub(index);
                let value = match value {
                    Some(Ok(node)) => Ok(budget.share(values_left, |budget| budget.value(&gather.nodes, *node))),
                    Some(Err(message)) => Err(message.clone()),
                    None => Err("it could not be read in time".into()),
                };
                (expression.clone(), value)
            })
            .collect();
        let mut locals = Vec::new();
        for (index, list) in gather.locals.iter().enumerate() {
            let variables: Vec<Variable> = list
                .iter()
                .enumerate()
                .filter_map(|(at, node)| budget.share(list.len() - at, |own| own.variable(&gather.nodes, *node)))
                .collect();
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

    /// An adapter's first list may be from before the program ran: the thread that stopped is in the next one.
    fn on_thread_names(&mut self, id: u64, result: Result<Json, String>) {
        let Ok(body) = result else { return };
        self.threads = read::<types::ThreadsBody>(&body).threads;
        let Some(gather) = self.gathers.get_mut(&id) else { return };
        let stale = !self.threads.is_empty() && !self.threads.iter().any(|thread| thread.id == gather.thread);
        if stale && !std::mem::replace(&mut gather.asked_again, true) {
            self.ask(id, "threads", Json::Null, Step::Threads);
        }
    }

    pub(super) fn thread_name(&self, id: i64) -> Option<String> {
        self.threads
            .iter()
            .find(|thread| thread.id == id)
            .map(|thread| quoted(&(self.adapter.quirks.thread_name)(&thread.name)))
            .filter(|name| !name.is_empty())
    }
}

/// Why `print` did not evaluate.
pub const IMPURE: &str = "\u{0}impure";

pub(super) fn explain(message: &str) -> String {
    if message == super::SILENT { "no answer in time".into() } else { super::first_lines(message) }
}
