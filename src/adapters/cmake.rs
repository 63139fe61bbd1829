//! CMake's own debugger, for its scripts: `cmake -S . -B build`, `cmake -P script.cmake`.

use serde_json::{Map, Value, json};

use super::{Adapter, Find, Install, Least, Natives, Quirks, Stdio, Way, script};
use crate::model::Launch;

pub const CMAKE: Adapter = Adapter {
    id: "cmake",
    aliases: &[],
    languages: &["cmake"],
    find: Find {
        // The one from PyPI lies below its module.
        programs: &["cmake/data/bin/cmake", "cmake"],
        least: Some(Least { version: &[3, 27], lacks: "has no debugger of its scripts" }),
        ..Find::programs(&[])
    },
    install: Install {
        setup_name: "cmake",
        pip: Some("cmake==4.4.4"),
        brew: Some("cmake"),
        instead: &["get a newer one beside it: bugeye setup cmake"],
        ..Install::NONE
    },
    way: Way::Translated("cmake"),
    command: script::command,
    adapter_env: |_, _| Vec::new(),
    adapter_id: "cmake",
    launch,
    attach: |_, _| Value::Null,
    remote: None,
    core: None,
    quirks: Quirks {
        eval_context: "watch",
        catch_words: &[("throw", "FATAL_ERROR"), ("uncaught", "FATAL_ERROR"), ("panic", "FATAL_ERROR")],
        exit_signal: script::exit_signal,
        no_attach: Some("CMake is debugged from its start"),
        ..Quirks::PLAIN
    },
    natives: Natives::NONE,
};

fn launch(launch: &Launch, _: &Stdio) -> Value {
    let env: Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    json!({ "program": launch.program, "argv": launch.args, "cwd": launch.cwd, "env": env, "stopOnEntry": launch.stop_on_entry })
}
