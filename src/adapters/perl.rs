//! Perl, debugged by an engine of ours that `perl -d` loads: there is nothing to install.

use serde_json::Value;

use super::{Adapter, Find, Found, Install, Natives, Quirks, Stdio, Way, script};
use crate::model::Launch;

pub const PERL: Adapter = Adapter {
    id: "perl",
    aliases: &["pl"],
    languages: &["perl"],
    find: Find::programs(&["perl"]),
    install: Install {
        setup_name: "perl",
        apt: &["perl"],
        brew: Some("perl"),
        dnf: Some("perl"),
        note: Some("any Perl from 5.14 on is debugged as it is"),
        ..Install::NONE
    },
    way: Way::Translated("perl"),
    command: script::command,
    adapter_env: |_: &Found, _| Vec::new(),
    adapter_id: "perl",
    launch: |launch: &Launch, _: &Stdio| script::launch(launch, &["-I{folder}", "-d:Bugeye"]),
    attach: |_, _| Value::Null,
    remote: None,
    core: None,
    quirks: Quirks {
        // A function is called with a list; the engine looks for the names it gives to what is in there.
        arguments: (
            |frame, _| format!("DB::parameters('{}')", frame.function.replace(['\'', '\\'], "")),
            |answer| answer.trim_matches('"').split(' ').map(Into::into).collect(),
        ),
        catch_words: script::CATCH_WORDS,
        check_condition: Some(|condition| format!("sub {{ ({condition}\n) }}")),
        function_name: |name| name.strip_prefix("main::").unwrap_or(name).to_string(),
        exit_signal: script::exit_signal,
        no_attach: Some("a Perl program is debugged from its start"),
        ..Quirks::PLAIN
    },
    natives: Natives::NONE,
};
