//! `modules`: what is loaded.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use serde_json::{Value, json};

use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::Context;
use crate::render::{Page, Render, quoted};
use crate::session::{Answer, Op};

/// List the loaded programs, libraries or modules, and whether they have symbols
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Modules {}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ModuleList {
    pub modules: Vec<Module>,
}

/// One module. All texts are debuggee text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Module {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl Render for ModuleList {
    fn render(&self, page: &mut Page) {
        for module in &self.modules {
            let path = module.path.as_deref().map(|path| format!(" {}", page.path(path))).unwrap_or_default();
            let symbols = module.symbols.as_deref().map(|text| format!(" ({})", quoted(text))).unwrap_or_default();
            page.line(format!("{}{path}{symbols}", quoted(&module.name)));
        }
    }
}

impl Command for Modules {
    const NAME: &'static str = "modules";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Reads;
    type Output = ModuleList;

    async fn run(self, cx: Context) -> Result<ModuleList, Failure> {
        let op = Op::Request {
            command: "modules",
            arguments: json!({ "startModule": 0, "moduleCount": 1000 }),
            capability: "supportsModulesRequest",
            what: "listing modules",
        };
        let body = match cx.ask(op).await? {
            Answer::Body(body) => body,
            other => return Err(Failure::internal(format!("an unexpected answer: {other:?}"))),
        };
        let text = |module: &Value, key: &str| module.get(key).and_then(Value::as_str).map(ToString::to_string);
        let modules = body.get("modules").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Ok(ModuleList {
            modules: modules
                .iter()
                .map(|module| Module {
                    name: text(module, "name").unwrap_or_default(),
                    path: text(module, "path"),
                    version: text(module, "version"),
                    symbols: text(module, "symbolStatus"),
                    address: text(module, "addressRange"),
                })
                .collect(),
        })
    }
}
