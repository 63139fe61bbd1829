//! The model tap, between agents and models that the tests script themselves: what passes through is the same byte for
//! byte, what is held waits, what is changed is changed as asked, and what was recorded can be run again.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

#[path = "../agents/dialects.rs"]
#[allow(dead_code, reason = "each test crate uses its own part")]
mod dialects;
#[path = "../agents/model.rs"]
#[allow(dead_code, reason = "each test crate uses its own part")]
mod model;
#[path = "../support/mod.rs"]
mod support;

mod bench;
mod canned;
mod gate;
mod inject;
mod pass;
mod real;
mod record;
mod rerun;
mod secure;
mod world;
