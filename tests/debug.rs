//! The real binary on real programs under real adapters: ten scenarios with their exact values, and every command on
//! every adapter. An adapter that is missing is a failed test, not a skipped one.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod commands;
mod scenarios;
mod support;
