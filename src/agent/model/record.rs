//! What the record keeps of model calls: the parts of requests and the bytes of answers, as files named by their content.
//!
//! A part is written once, however many calls carry it, and an event names only those that the call before it had not:
//! `{"after": SPAN, "keep": 12, "list": [...]}` is the first twelve parts of that call and these.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::dialect::{Dialect, SSE};
use super::parts::{Hash, Part, hex};
use super::reply::Reply;
use crate::store::blobs::{self, Blob};
use crate::store::redact;
use crate::wire::MAX_LINE;

/// The longest answer that is kept.
pub const LONGEST: usize = MAX_LINE;
/// How many parts are remembered.
const MOST: usize = 200_000;

/// Keeps the parts of a session's model calls.
#[derive(Debug, Default)]
pub struct Keeper {
    folder: Option<PathBuf>,
    /// What each part is without its secrets.
    known: HashMap<Hash, Blob>,
    /// The last call of each thread: its span and its parts.
    last: HashMap<String, (String, Vec<Hash>)>,
}

impl Keeper {
    #[must_use]
    pub fn new(folder: Option<PathBuf>) -> Self {
        Self { folder, ..Self::default() }
    }

    #[must_use]
    pub fn keeps(&self) -> bool {
        self.folder.is_some()
    }

    /// What an event says of a request's parts; nothing where nothing is kept.
    pub fn request(&mut self, thread: &str, span: &str, parts: &[Part]) -> io::Result<Json> {
        if self.folder.is_none() {
            return Ok(Json::Null);
        }
        let hashes: Vec<Hash> = parts.iter().map(|part| part.hash).collect();
        let before = self.last.get(thread);
        let same = before.map_or(0, |(_, before)| before.iter().zip(&hashes).take_while(|(a, b)| a == b).count());
        let after = before.filter(|_| same > 0).map(|(span, _)| span.clone());
        let mut list = Vec::new();
        for part in &parts[same..] {
            let blob = self.clean(part)?;
            list.push(json!({"part": part.kind.name(), "ref": {"sha256": blob.sha256, "bytes": blob.bytes}}));
        }
        self.last.insert(thread.to_string(), (span.to_string(), hashes));
        Ok(match after {
            Some(after) => json!({"after": after, "keep": same, "list": list}),
            None => json!({"list": list}),
        })
    }

    /// The name of a part without its secrets, which is written where it is new.
    pub fn clean(&mut self, part: &Part) -> io::Result<Blob> {
        if let Some(blob) = self.known.get(&part.hash) {
            return Ok(blob.clone());
        }
        let clean = without_secrets(&part.bytes());
        let blob = match &self.folder {
            Some(folder) => blobs::store(folder, &clean)?.0,
            None => Blob { sha256: hex(&Sha256::digest(&clean)), bytes: clean.len() as u64 },
        };
        if self.known.len() < MOST {
            self.known.insert(part.hash, blob.clone());
        }
        Ok(blob)
    }

    /// What an event says of an answer's bytes. Where a secret was in them, they are those of an answer without it.
    pub fn answer(&self, dialect: Option<Dialect>, kind: &str, raw: &[u8], reply: &Reply) -> io::Result<Json> {
        let Some(folder) = &self.folder else { return Ok(Json::Null) };
        let other = dialect.map_or_else(|| as_text(raw), |dialect| made_anew(dialect, kind, raw, reply));
        let exact = other.is_none();
        let (blob, _) = blobs::store(folder, other.as_deref().unwrap_or(raw))?;
        Ok(json!({"ref": {"sha256": blob.sha256, "bytes": blob.bytes}, "type": kind, "exact": exact}))
    }
}

/// A part's content as the record may have it.
#[must_use]
pub fn without_secrets(bytes: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Json>(bytes) else { return Vec::new() };
    let before = value.clone();
    redact::value(&mut value);
    if value == before { bytes.to_vec() } else { value.to_string().into_bytes() }
}

/// Where an answer has a secret in it, another without. What a model writes is code as often as not: a secret is told by
/// its shape there, not by the name before it. In a stream it comes in pieces: so the whole is looked at.
fn made_anew(dialect: Dialect, kind: &str, raw: &[u8], reply: &Reply) -> Option<Vec<u8>> {
    let has = |text: &str| matches!(redact::source(text), std::borrow::Cow::Owned(_));
    let in_calls = reply.tool_calls.iter().any(|call| has(&call.input.to_string()));
    if !in_calls && !has(&reply.text) && !has(&reply.thinking) && !has(&String::from_utf8_lossy(raw)) {
        return None;
    }
    let mut clean = reply.clone();
    clean.text = redact::source(&reply.text).into_owned();
    for call in &mut clean.tool_calls {
        hide(&mut call.input);
    }
    let nothing = Json::Null;
    Some(dialect.say(&nothing, &clean, "redacted", kind.starts_with(SSE)).1)
}

fn hide(value: &mut Json) {
    match value {
        Json::String(text) => *text = redact::source(text).into_owned(),
        Json::Array(items) => items.iter_mut().for_each(hide),
        Json::Object(members) => members.values_mut().for_each(hide),
        _ => {}
    }
}

fn as_text(raw: &[u8]) -> Option<Vec<u8>> {
    match redact::source(&String::from_utf8_lossy(raw)) {
        std::borrow::Cow::Owned(clean) => Some(clean.into_bytes()),
        std::borrow::Cow::Borrowed(_) => None,
    }
}
