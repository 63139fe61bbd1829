//! `mcp`: serve agents that speak the Model Context Protocol.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Bare, Group};
use crate::cli::LocalContext;
use crate::failure::Failure;
use crate::mcp;

/// Serve agents by the Model Context Protocol, on standard input and output
///
/// The same daemon and the same sessions as the command line. What is started here ends some time after the client has
/// gone; `[mcp] on_close` and `grace_secs` say otherwise.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Mcp {}

impl Bare for Mcp {
    const NAME: &'static str = "mcp";
    const GROUP: Group = Group::Around;

    fn run(self, cx: &LocalContext) -> Result<u8, Failure> {
        mcp::serve(&cx.paths)?;
        Ok(0)
    }
}
