//! `schema`: every command and reply as JSON Schema.

use std::collections::BTreeMap;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Bare, CATALOGUE, Entry, Group, Run};
use crate::cli::{LocalContext, print};
use crate::failure::Failure;

/// Print the JSON Schema of every command's arguments and result
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Schema {
    /// Only this command.
    #[arg(value_name = "COMMAND")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// All of it.
#[derive(Debug, Serialize, JsonSchema)]
struct Written {
    version: &'static str,
    /// The number of the daemon's protocol.
    protocol: u32,
    /// What `--json` prints: the envelope of every reply.
    reply: Value,
    commands: BTreeMap<&'static str, Described>,
}

/// One command, as JSON Schema.
#[derive(Debug, Serialize, JsonSchema)]
struct Described {
    /// As the wire carries them.
    arguments: Value,
    /// What the envelope's `result` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    /// What comes line by line before the reply, where the command was asked for a stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<Value>,
    /// What a command without an envelope writes; of several lines, each.
    #[serde(skip_serializing_if = "Option::is_none")]
    prints: Option<Value>,
}

impl Described {
    fn new(entry: &Entry) -> Self {
        let written = Value::from((entry.result_schema)());
        let (result, prints) = match entry.run {
            Run::Bare(_) => (None, Some(written)),
            Run::Daemon(_) | Run::Local(_) => (Some(written), None),
        };
        Self {
            arguments: (entry.argument_schema)().into(),
            result,
            part: (entry.part_schema)().map(Into::into),
            prints,
        }
    }
}

impl Bare for Schema {
    const NAME: &'static str = "schema";
    const GROUP: Group = Group::Around;

    fn run(self, _cx: &LocalContext) -> Result<u8, Failure> {
        let wanted = match &self.command {
            Some(name) => {
                Some(super::find(name).ok_or_else(|| Failure::not_found(format!("there is no command `{name}`")))?.name)
            }
            None => None,
        };
        let wanted = CATALOGUE.iter().filter(|entry| wanted.is_none_or(|name| name == entry.name));
        let all = Written {
            version: env!("CARGO_PKG_VERSION"),
            protocol: crate::wire::PROTOCOL,
            reply: schemars::schema_for!(crate::wire::Answer).into(),
            commands: wanted.map(|entry| (entry.name, Described::new(entry))).collect(),
        };
        let all = serde_json::to_string(&all)
            .map_err(|error| Failure::internal(format!("the schema can't be written: {error}")))?;
        print(&format!("{all}\n"))?;
        Ok(0)
    }

    fn prints() -> schemars::Schema {
        schemars::schema_for!(Written)
    }
}
