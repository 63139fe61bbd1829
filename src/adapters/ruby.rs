//! Ruby, debugged by an engine of ours that the interpreter loads: there is nothing to install.

use serde_json::Value;

use super::{Adapter, Find, Found, Install, Natives, Quirks, Stdio, Way, script};
use crate::model::Launch;

pub const RUBY: Adapter = Adapter {
    id: "ruby",
    aliases: &["rb"],
    languages: &["ruby"],
    find: Find::programs(&["ruby"]),
    install: Install {
        setup_name: "ruby",
        apt: &["ruby"],
        brew: Some("ruby"),
        dnf: Some("ruby"),
        note: Some("any Ruby from 2.7 on is debugged as it is"),
        ..Install::NONE
    },
    way: Way::Translated("ruby"),
    command: script::command,
    adapter_env: |_: &Found, _| Vec::new(),
    adapter_id: "ruby",
    launch: |launch: &Launch, _: &Stdio| script::launch(launch, &["-r", "{agent}"]),
    attach: |_, _| Value::Null,
    remote: None,
    core: None,
    quirks: Quirks {
        arguments: (
            |_, _| "__method__ ? method(__method__).parameters.map { |parameter| parameter[1] }.compact : []".into(),
            |answer| {
                let names = answer.split([',', '[', ']', ' ']).filter_map(|word| word.strip_prefix(':'));
                names.map(Into::into).collect()
            },
        ),
        catch_words: script::CATCH_WORDS,
        check_condition: Some(|condition| format!("proc {{ ({condition}\n) }}")),
        is_runtime: |_, file| file.is_none_or(is_runner),
        is_library: |file| file.starts_with("<internal:"),
        exit_signal: script::exit_signal,
        no_attach: Some("a Ruby program is debugged from its start"),
        ..Quirks::PLAIN
    },
    natives: Natives::NONE,
};

/// What runs tests stands above and below them; it is not what is looked for.
fn is_runner(file: &str) -> bool {
    const RUNNERS: [&str; 7] = [
        "<internal:",
        "/lib/minitest",
        "/rspec-core",
        "/rspec-expectations",
        "/rspec-support",
        "/test-unit-",
        "/lib/test/unit/",
    ];
    RUNNERS.iter().any(|part| file.contains(part))
}
