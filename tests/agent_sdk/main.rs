//! Agents that speak the bridge themselves: the clients, in each language and by each transport, against the real socket
//! and the real files, with a debugger of the test's own behind them; and what hostile or broken clients may do.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod agents;
mod clients;
mod desk;
mod hostile;
/// It is run as a program of its own; here it is looked at by the lints.
#[path = "../fixtures/agents/scripted_agent.rs"]
#[allow(dead_code, reason = "its `main` is called by nobody here")]
mod rust_agent;
#[path = "../support/mod.rs"]
mod support;
