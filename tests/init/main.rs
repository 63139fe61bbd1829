//! `init` for each agent: what is written where, that nothing else is touched, and that it all comes out again.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod agents;
mod texts;
