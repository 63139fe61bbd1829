//! The record: a folder per session with an append-only stream of events.

pub mod read;
pub mod write;

pub use write::{Journal, Recorder};
