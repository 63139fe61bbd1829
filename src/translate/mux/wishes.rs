//! Breakpoints for every process: kept for children to come, given to those there are, and answered by the program.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::joined::{Act, Answer, Joined, Process, ROOT, Why};

/// The breakpoints of one file, or all of one kind, as the client wants them now.
#[derive(Debug)]
pub(super) struct Wish {
    /// The request, and the file for those that have one.
    pub key: String,
    pub command: String,
    pub arguments: Value,
    /// What each process made of them, in the client's order; the program's is the one the client knows.
    told: BTreeMap<usize, Vec<Told>>,
}

#[derive(Debug, Clone)]
struct Told {
    id: Option<i64>,
    verified: bool,
    breakpoint: Value,
}

impl Wish {
    pub fn forget(&mut self, process: usize) {
        self.told.remove(&process);
    }
}

impl Joined {
    /// The client sets breakpoints: the program's answer is the client's, and every child gets them too.
    pub(super) fn on_wish(&mut self, seq: i64, command: String, arguments: Value) {
        let source = arguments.pointer("/source/path").or_else(|| arguments.pointer("/source/name"));
        let key = format!("{command} {}", source.and_then(Value::as_str).unwrap_or_default());
        self.wishes.retain(|wish| wish.key != key);
        let wish = Wish { key: key.clone(), command, arguments, told: BTreeMap::new() };
        let (command, arguments) = (wish.command.clone(), wish.arguments.clone());
        self.wishes.push(wish);
        self.pending.insert((ROOT, seq), Why::Wish(key.clone()));
        self.ask_for_client(ROOT, seq, command.clone(), arguments.clone());
        for process in self.ready_children() {
            self.ask(process, &command, arguments.clone(), Why::Wish(key.clone()));
        }
    }

    pub(super) fn on_wish_answered(&mut self, process: usize, key: &str, seq: i64, answer: Answer) {
        let told = answer.body.get("breakpoints").and_then(Value::as_array).map(|told| {
            let read = |breakpoint: &Value| Told {
                id: breakpoint.get("id").and_then(Value::as_i64),
                verified: breakpoint.get("verified").and_then(Value::as_bool).unwrap_or(false),
                breakpoint: breakpoint.clone(),
            };
            told.iter().map(read).collect::<Vec<_>>()
        });
        if process == ROOT {
            self.out.push(Act::Client(answer.for_client(seq)));
        }
        if let Some(wish) = self.wishes.iter_mut().find(|wish| wish.key == key)
            && let Some(told) = told
        {
            wish.told.insert(process, told);
        }
        self.tell_better(key);
    }

    /// A breakpoint that a child could set and the program could not is set.
    fn tell_better(&mut self, key: &str) {
        let Some(wish) = self.wishes.iter_mut().find(|wish| wish.key == key) else { return };
        let Some(mut known) = wish.told.remove(&ROOT) else { return };
        let mut better = Vec::new();
        for (index, told) in known.iter_mut().enumerate().filter(|(_, told)| !told.verified) {
            let in_child = wish.told.values().filter_map(|list| list.get(index)).find(|other| other.verified);
            if let (Some(id), Some(other)) = (told.id, in_child) {
                told.verified = true;
                let mut breakpoint = other.breakpoint.clone();
                breakpoint["id"] = Value::from(id);
                better.push(breakpoint);
            }
        }
        wish.told.insert(ROOT, known);
        for breakpoint in better {
            self.tell("breakpoint", json!({ "reason": "changed", "breakpoint": breakpoint }));
        }
    }

    /// A child tells more of a breakpoint: only news if it can be set there.
    pub(super) fn on_child_breakpoint(&mut self, process: usize, body: &Value) {
        let breakpoint = body.get("breakpoint").cloned().unwrap_or_default();
        let verified = breakpoint.get("verified").and_then(Value::as_bool).unwrap_or(false);
        let id = breakpoint.get("id").and_then(Value::as_i64);
        let mut changed = None;
        for wish in &mut self.wishes {
            let mut list = wish.told.get_mut(&process).into_iter().flatten();
            if let Some(told) = list.find(|told| told.id.is_some() && told.id == id) {
                *told = Told { id, verified, breakpoint: breakpoint.clone() };
                changed = Some(wish.key.clone());
            }
        }
        if let Some(key) = changed {
            self.tell_better(&key);
        }
    }

    /// The client's ids of the breakpoints that a child names.
    pub(super) fn client_breakpoints(&self, process: usize, body: &mut Value) {
        let Some(ids) = body.get_mut("hitBreakpointIds").and_then(Value::as_array_mut) else { return };
        let known = |id: &Value| {
            self.wishes.iter().find_map(|wish| {
                let index =
                    wish.told.get(&process)?.iter().position(|told| told.id.is_some() && told.id == id.as_i64())?;
                wish.told.get(&ROOT)?.get(index)?.id
            })
        };
        *ids = ids.iter().filter_map(known).map(Value::from).collect();
    }
}

impl Process {
    /// A process that was never started can't be asked to go on.
    pub(super) fn stands_unseen(&self) -> bool {
        self.stop.is_some() && !self.shown
    }
}
