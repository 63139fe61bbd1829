//! `init` for each agent: what is written where, that nothing else is touched, and that it all comes out again.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod agents;
mod texts;
