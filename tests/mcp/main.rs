//! `bugeye mcp` with the clients that agents use: the official SDKs for Python and TypeScript in both generations, the
//! Inspector's command line, and a plain pipe where a client would be too polite.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

#[path = "../support/mod.rs"]
mod support;

mod agent;
mod gone;
mod http;
mod mistakes;
mod pipe;
mod sdks;
mod together;
mod waits;
