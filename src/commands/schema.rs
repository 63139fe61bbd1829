//! `schema`: every command and reply as JSON Schema.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Bare, CATALOGUE, Group};
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
        let mut commands = Map::new();
        for entry in CATALOGUE.iter().filter(|entry| wanted.is_none_or(|name| name == entry.name)) {
            let schema = json!({ "arguments": (entry.argument_schema)(), "result": (entry.result_schema)() });
            commands.insert(entry.name.into(), schema);
        }
        let all = json!({ "version": env!("CARGO_PKG_VERSION"), "protocol": crate::wire::PROTOCOL, "commands": Value::Object(commands) });
        print(&format!("{all}\n"))?;
        Ok(0)
    }
}
