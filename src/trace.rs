//! Tracing: every time a place was reached, what was seen there, kept within limits.
//!
//! The session or a hook tells of hits; a [`Collector`] numbers and keeps them. All that is asked of a trace later comes
//! from what it kept: the first hits, the newest, and per expression a course of samples and the hits that stand out.

pub mod calls;
mod collector;
mod library;
pub mod picture;
pub mod shape;
pub mod sink;
pub mod told;

pub use collector::{Collector, Course, Seen};
pub use library::{Observed, Options, RuntimeFeedback, WatchPoint, runtime_feedback, runtime_feedback_async};
