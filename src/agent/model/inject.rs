//! Messages that the debugger put into a conversation, and puts into each later request of it: the agent itself knows
//! nothing of them.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::dialect::Dialect;
use super::parts::Hash;
use crate::agent::gate::Message;

/// A message, and where it was put.
#[derive(Debug)]
struct Injected {
    message: Message,
    /// The item of the history that was the last then: where it was, and what.
    at: usize,
    anchor: Option<Hash>,
    /// What the conversation begins with.
    first: Option<Hash>,
}

/// All of them, by thread.
#[derive(Debug, Default)]
pub struct Injections {
    threads: HashMap<String, Vec<Injected>>,
}

impl Injections {
    /// Remembers messages that were put at the end of this history.
    pub fn add(&mut self, thread: &str, history: &[Hash], messages: &[Message]) {
        let known = self.threads.entry(thread.to_string()).or_default();
        known.extend(messages.iter().map(|message| Injected {
            message: message.clone(),
            at: history.len().saturating_sub(1),
            anchor: history.last().copied(),
            first: history.first().copied(),
        }));
    }

    /// Puts into a request what earlier ones of its conversation were given; answers how many. Where the item that they
    /// followed is gone (a history is compacted), they come last; where the conversation is another, they are forgotten.
    pub fn apply(&mut self, thread: &str, dialect: Dialect, body: &mut Json, history: &[Hash]) -> usize {
        let Some(known) = self.threads.get_mut(thread) else { return 0 };
        // The vendor keeps this conversation, with what was put into it.
        if body["previous_response_id"].is_string() {
            return 0;
        }
        known.retain(|injected| {
            injected.first == history.first().copied() || history.iter().any(|item| Some(*item) == injected.anchor)
        });
        let mut places: Vec<(usize, &Message)> = Vec::new();
        for injected in known.iter() {
            let still = history.get(injected.at).copied() == injected.anchor;
            let moved = || history.iter().position(|item| Some(*item) == injected.anchor);
            let last = history.len().saturating_sub(1);
            let at = if still { injected.at } else { moved().unwrap_or(last) };
            places.push((at, &injected.message));
        }
        // From the end on, so that the places before stay where they are.
        let mut ends: Vec<usize> = places.iter().map(|(at, _)| *at).collect();
        ends.sort_unstable();
        ends.dedup();
        for end in ends.iter().rev() {
            let here: Vec<&Message> = places.iter().filter(|(at, _)| at == end).map(|(_, message)| *message).collect();
            dialect.put(body, *end, &here);
        }
        places.len()
    }
}
