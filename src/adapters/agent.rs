//! Coding agents: the broker in this same program stands between the debug protocol and what an agent offers to be held by.

use serde_json::{Map, Value, json};

use super::{Adapter, Find, Install, Natives, Quirks, Stdio, Way, script};
use crate::model::Launch;

pub const AGENT: Adapter = Adapter {
    id: "agent",
    aliases: &[],
    languages: &[],
    find: Find::programs(&[]),
    install: Install { note: Some("it is part of Bugeye"), ..Install::NONE },
    way: Way::Translated("agent"),
    command: |_| Vec::new(),
    adapter_env: |_, _| Vec::new(),
    adapter_id: "agent",
    launch,
    attach: |_, _| Value::Null,
    remote: None,
    core: None,
    quirks: Quirks {
        eval_context: "repl",
        exit_signal: script::exit_signal,
        starts_late: true,
        no_attach: Some("an agent is debugged from its start: bugeye start --agent -- COMMAND"),
        agents: true,
        ..Quirks::PLAIN
    },
    natives: Natives::NONE,
};

fn launch(launch: &Launch, _: &Stdio) -> Value {
    let env: Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    json!({ "program": launch.program, "argv": launch.args, "cwd": launch.cwd, "env": env, "stopOnEntry": launch.stop_on_entry })
}
