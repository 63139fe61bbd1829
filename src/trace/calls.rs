//! Calls of functions, put together from what was told of entering and leaving them.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{Crossing, HitFrame, Reading};

/// One call. Names, values and files are debuggee text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// Counts the calls from 1, in the order they were entered.
    pub seq: u64,
    pub thread: i64,
    /// Told calls around it.
    pub depth: u32,
    #[serde(flatten)]
    pub function: HitFrame,
    /// In the order of the function's parameters.
    pub arguments: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returned: Option<String>,
    /// Why no value is told: it raised, or the debugger can't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether it was left while the trace was made.
    pub left: bool,
    pub ms: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<f64>,
}

/// Calls in the order they were entered.
#[derive(Debug, Default)]
pub struct Calls {
    pub list: Vec<Call>,
    /// Those that were not left yet: the hook's number → place in the list.
    open: HashMap<u64, usize>,
}

impl Calls {
    pub fn take(&mut self, crossing: Crossing) {
        match crossing {
            Crossing::Entered { call, micros, thread, depth, function, arguments } => {
                self.open.insert(call, self.list.len());
                self.list.push(Call {
                    seq: self.list.len() as u64 + 1,
                    thread,
                    depth,
                    function,
                    arguments: arguments.into_iter().map(|(name, value)| (name, value.text)).collect(),
                    returned: None,
                    why: None,
                    left: false,
                    ms: micros as f64 / 1000.0,
                    took_ms: None,
                });
            }
            Crossing::Left { call, micros, value } => {
                let Some(call) = self.open.remove(&call).and_then(|index| self.list.get_mut(index)) else { return };
                call.left = true;
                call.took_ms = Some((micros as f64 / 1000.0 - call.ms).max(0.0));
                match value {
                    Some(Reading { why: Some(why), .. }) => call.why = Some(why),
                    Some(Reading { text, .. }) => call.returned = Some(text),
                    None => {}
                }
            }
        }
    }
}

/// One line of a tree of calls.
#[derive(Debug, PartialEq)]
pub enum Branch<'a> {
    Call(&'a Call),
    /// Calls that are left out here, the most frequent functions first, and how deep the first of them stands.
    More {
        depth: u32,
        count: usize,
        functions: Vec<(&'a str, usize)>,
    },
}

/// Chooses at most `most` lines: outer calls before inner ones, and of each function under one caller the first few and
/// the last.
#[must_use]
pub fn tree(calls: &[Call], most: usize) -> Vec<Branch<'_>> {
    let mut shown = vec![true; calls.len()];
    // Fewer repetitions, then less depth, until it fits.
    'fit: for (depth, repeats) in [(u32::MAX, 5), (u32::MAX, 2), (8, 2), (4, 2), (2, 2), (1, 1), (0, 1)] {
        shown = choose(calls, depth, repeats);
        if lines(&shown) <= most {
            break 'fit;
        }
    }
    let mut out = Vec::new();
    let mut hidden: Vec<&Call> = Vec::new();
    for (call, shown) in calls.iter().zip(shown) {
        if !shown {
            hidden.push(call);
            continue;
        }
        more(&mut out, &mut hidden);
        out.push(Branch::Call(call));
    }
    more(&mut out, &mut hidden);
    if out.len() > most && most > 1 {
        // A long flat course: its beginning and its end.
        let tail = out.split_off(out.len() - most / 2);
        let left = out.split_off(most - most / 2 - 1);
        let count = left.iter().map(|branch| if let Branch::More { count, .. } = branch { *count } else { 1 }).sum();
        out.push(Branch::More { depth: 0, count, functions: Vec::new() });
        out.extend(tail);
    }
    out
}

fn choose(calls: &[Call], deepest: u32, repeats: usize) -> Vec<bool> {
    let mut shown = Vec::with_capacity(calls.len());
    // For each thread the calls around, with how often each function was called from there.
    let mut around: HashMap<i64, Vec<HashMap<&str, usize>>> = HashMap::new();
    let mut visible: HashMap<i64, Vec<bool>> = HashMap::new();
    for call in calls {
        let depth = call.depth as usize;
        let counts = around.entry(call.thread).or_default();
        counts.resize_with(depth + 1, HashMap::new);
        counts.push(HashMap::new());
        let count = counts[depth].entry(call.function.function.as_str()).or_default();
        *count += 1;
        let seen = visible.entry(call.thread).or_default();
        let parent = depth.checked_sub(1).and_then(|above| seen.get(above)).copied().unwrap_or(true);
        let is = parent && *count <= repeats && call.depth <= deepest;
        seen.resize(depth, true);
        seen.push(is);
        shown.push(is);
    }
    shown
}

fn lines(shown: &[bool]) -> usize {
    shown.iter().enumerate().filter(|(at, is)| **is || *at == 0 || shown[at - 1]).count()
}

fn more<'a>(out: &mut Vec<Branch<'a>>, hidden: &mut Vec<&'a Call>) {
    let Some(depth) = hidden.iter().map(|call| call.depth).min() else { return };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for call in hidden.iter() {
        *counts.entry(call.function.function.as_str()).or_default() += 1;
    }
    let mut functions: Vec<(&str, usize)> = counts.into_iter().collect();
    functions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    functions.truncate(3);
    out.push(Branch::More { depth, count: hidden.len(), functions });
    hidden.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(calls: &mut Calls, call: u64, depth: u32, name: &str) {
        let function = HitFrame { function: name.into(), ..HitFrame::default() };
        calls.take(Crossing::Entered { call, micros: call * 1000, thread: 1, depth, function, arguments: Vec::new() });
    }

    fn leave(calls: &mut Calls, call: u64, micros: u64, value: &str) {
        let value = Some(Reading { text: value.into(), why: None });
        calls.take(Crossing::Left { call, micros, value });
    }

    #[test]
    fn a_call_is_put_together_from_its_two_ends() {
        let mut calls = Calls::default();
        enter(&mut calls, 1, 0, "work");
        enter(&mut calls, 2, 1, "add");
        leave(&mut calls, 2, 2500, "3");
        calls.take(Crossing::Left { call: 1, micros: 4000, value: Some(Reading::unavailable("raised E: no")) });
        leave(&mut calls, 9, 5000, "of nobody");
        let [work, add] = calls.list.as_slice() else { panic!("{calls:?}") };
        assert_eq!(
            (work.why.as_deref(), work.returned.as_deref(), work.took_ms),
            (Some("raised E: no"), None, Some(3.0))
        );
        assert_eq!((add.seq, add.returned.as_deref(), add.took_ms, add.left), (2, Some("3"), Some(0.5), true));
    }

    #[test]
    fn a_tree_of_many_calls_stays_short_and_counts_what_it_leaves_out() {
        let mut calls = Calls::default();
        enter(&mut calls, 1, 0, "work");
        for call in 2..1002 {
            enter(&mut calls, call, 1, "add");
        }
        enter(&mut calls, 1002, 0, "end");
        let tree = tree(&calls.list, 40);
        let names: Vec<String> = tree
            .iter()
            .map(|branch| match branch {
                Branch::Call(call) => call.function.function.clone(),
                Branch::More { count, functions, depth } => format!("{depth}:{count} {functions:?}"),
            })
            .collect();
        assert_eq!(names, ["work", "add", "add", "add", "add", "add", "1:995 [(\"add\", 995)]", "end"]);
        let mut flat = Calls::default();
        for call in 0..500 {
            enter(&mut flat, call, 0, &format!("f{call}"));
        }
        let short = super::tree(&flat.list, 20);
        let told: usize = short.iter().map(|b| if let Branch::More { count, .. } = b { *count } else { 1 }).sum();
        assert_eq!((short.len(), told), (20, 500));
    }
}
