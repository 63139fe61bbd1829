//! The record: a folder per session with an append-only stream of events.

pub mod blobs;
pub mod doings;
pub mod done;
pub mod index;
mod keeper;
pub mod lifecycle;
pub mod list;
pub mod named;
pub mod occurrences;
pub mod prune;
pub mod read;
pub mod redact;
pub mod replay;
pub mod sources;
pub mod steps;
pub mod write;
mod writer;

pub use write::{Journal, Recorder};
