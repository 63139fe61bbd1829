//! Delve, for Go.

use serde_json::{Map, Value, json};

use super::{Adapter, Find, Found, Install, Natives, Quirks, Reach, Stdio, Way};
use crate::model::Launch;

pub const DELVE: Adapter = Adapter {
    id: "delve",
    aliases: &["dlv", "go"],
    languages: &["go"],
    find: Find { version_args: &["version"], ..Find::programs(&["dlv"]) },
    install: Install {
        setup_name: "delve",
        brew: Some("delve"),
        go: Some("github.com/go-delve/delve/cmd/dlv@v1.27.2"),
        ..Install::NONE
    },
    way: Way::Dials,
    command,
    adapter_env: |_, _| Vec::new(),
    adapter_id: "go",
    launch,
    attach,
    remote: Some(Reach::Direct(|_| with_settings(json!({ "mode": "remote" })))),
    core: Some(|core, program| {
        ("launch", with_settings(json!({ "mode": "core", "coreFilePath": core, "program": program })))
    }),
    quirks: Quirks {
        print_contexts: &["repl"],
        raw: |text| format!("dlv {text}"),
        entry_function: Some("main.main"),
        has_addresses: true,
        exit_signal: |_, _| None,
        ..Quirks::PLAIN
    },
    natives: Natives { ..Natives::NONE },
};

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned(), "dap".into(), "--client-addr={address}".into()];
    argv.extend(found.args.iter().cloned());
    argv
}

fn launch(launch: &Launch, _: &Stdio) -> Value {
    let env: Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    with_settings(json!({
        "mode": "exec",
        "program": launch.program,
        "args": launch.args,
        "cwd": launch.cwd,
        "env": env,
    }))
}

fn attach(pid: u32, _: Option<&str>) -> Value {
    with_settings(json!({ "mode": "local", "processId": pid, "stopOnEntry": true }))
}

/// What every start has in common.
fn with_settings(mut arguments: Value) -> Value {
    let settings = json!({
        "hideSystemGoroutines": true,
        "showPprofLabels": ["*"],
        "showRegisters": true,
        "stackTraceDepth": 50,
    });
    if let (Some(arguments), Value::Object(settings)) = (arguments.as_object_mut(), settings) {
        arguments.extend(settings);
    }
    arguments
}
