//! Traces on real programs: one call, every hit.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

#[path = "../support/mod.rs"]
mod support;

mod forms;
mod go;
mod limits;
mod live;
mod native;
mod node;
mod python;
