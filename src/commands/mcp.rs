//! `mcp`: serve agents that speak the Model Context Protocol.

use std::net::SocketAddr;

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
/// gone; `[mcp] on_close` and `grace_secs` in the configuration say otherwise. `bugeye init` registers it with an agent.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Mcp {
    /// Serve by HTTP at this address of the machine itself (`127.0.0.1:8930`; port 0: any), for whoever has the token.
    ///
    /// The address and a token are printed. `BUGEYE_MCP_TOKEN` sets the token.
    #[arg(long, value_name = "ADDRESS")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<String>,
    /// Answer results as data too (`structuredContent`), for programs; a model would read both.
    #[arg(long)]
    #[serde(default)]
    pub structured: bool,
}

impl Bare for Mcp {
    const NAME: &'static str = "mcp";
    const GROUP: Group = Group::Around;

    fn run(self, cx: &LocalContext) -> Result<u8, Failure> {
        cx.paths.prepare()?;
        match &self.http {
            Some(text) => mcp::serve_http(&cx.paths, self.structured, address(text)?)?,
            None => mcp::serve(&cx.paths, self.structured)?,
        }
        Ok(0)
    }

    fn prints() -> schemars::Schema {
        super::plain_text("messages of the Model Context Protocol; with --http the address and the token")
    }
}

/// An address of this machine's own; others could be reached by strangers, who would start programs with the user's rights.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", text));
    let host = if host.is_empty() || host == "localhost" { "127.0.0.1" } else { host };
    let address: SocketAddr = format!("{host}:{port}").parse().map_err(|_| {
        Failure::usage(format!("`{text}` is no address")).hint("bugeye mcp --http 127.0.0.1:8930, or --http 8930")
    })?;
    if !address.ip().is_loopback() {
        return Err(Failure::refused(format!("{address} can be reached from other machines"))
            .hint("serve at 127.0.0.1, and reach it from afar by `ssh -L 8930:127.0.0.1:8930 HOST`"));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Kind;

    #[test]
    fn only_addresses_of_this_machine_are_served() {
        let good = |text: &str| address(text).unwrap().to_string();
        assert_eq!(good("127.0.0.1:8930"), "127.0.0.1:8930");
        assert_eq!(good("8930"), "127.0.0.1:8930");
        assert_eq!(good(":0"), "127.0.0.1:0");
        assert_eq!(good("localhost:1"), "127.0.0.1:1");
        assert_eq!(good("[::1]:7"), "[::1]:7");
        for (text, kind) in [("0.0.0.0:1", Kind::Refused), ("10.0.0.1:1", Kind::Refused), ("there:1", Kind::Usage)] {
            assert_eq!(address(text).unwrap_err().kind, kind, "{text}");
        }
        assert_eq!(address("127.0.0.1:70000").unwrap_err().kind, Kind::Usage);
    }
}
