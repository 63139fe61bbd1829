//! CodeLLDB, where an editor or the user has brought it, for C, C++ and Rust.
//!
//! It is LLDB behind another adapter: what LLDB's own adapter is read for is read the same way here. Native commands
//! answer into its console, out of reach; they are carried out by an expression of Python, whose value is their answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Adapter, Arm, Find, Found, Install, Natives, Quirks, Stdio, Tracing, Watching, Way, lldb};
use crate::dap::types::StoppedBody;
use crate::model::Launch;

/// The expression whose value is the answer of a command, in the frame that is asked about.
macro_rules! native {
    ($command:expr) => {
        concat!(
            "?/py (lambda r: (lldb.debugger.GetCommandInterpreter().HandleCommand(",
            $command,
            ", lldb.SBExecutionContext(lldb.frame or lldb.target.GetProcess().GetSelectedThread()), r), ",
            "(r.GetOutput() or '') + (r.GetError() or ''))[1])(lldb.SBCommandReturnObject())"
        )
    };
}

pub const CODELLDB: Adapter = Adapter {
    id: "codelldb",
    aliases: &["vscode-lldb"],
    languages: &["c", "c++", "rust", "native"],
    find: Find {
        version_args: &[],
        extensions: &[
            "vadimcn.vscode-lldb-*/adapter/codelldb",
            "~/.local/share/nvim/mason/packages/codelldb/extension/adapter/codelldb",
        ],
        ..Find::programs(&["codelldb"])
    },
    install: Install {
        setup_name: "codelldb",
        note: Some("an editor brings it: install its extension CodeLLDB, or use lldb: bugeye setup lldb"),
        ..Install::NONE
    },
    way: Way::Streams,
    command,
    adapter_env: super::gdb::adapter_env,
    adapter_id: "codelldb",
    launch,
    attach: |pid, _| json!({ "pid": pid, "stopOnEntry": true, "expressions": "native", "initCommands": SETTINGS }),
    remote: None,
    core: Some(|core, program| {
        let program = program.map(lldb::word).unwrap_or_default();
        let create = format!("target create --core {} {program}", lldb::word(core));
        let arguments = json!({
            "targetCreateCommands": [create], "processCreateCommands": [], "expressions": "native",
            "initCommands": SETTINGS,
        });
        ("launch", arguments)
    }),
    quirks: Quirks {
        print_contexts: &["hover"],
        prints_only_pure: true,
        eval_context: "watch",
        raw,
        raw_answer: unquoted,
        catches_by_default: false,
        throws_as_breakpoints: true,
        is_furniture: |name, _| name == "[raw]",
        tidy: |value, kind| if value == "<null>" { "NULL".into() } else { (lldb::LLDB.quirks.tidy)(value, kind) },
        arguments: (|_, _| raw("frame variable --no-locals"), |answer| lldb::argument_names(&unquoted(answer))),
        pages: false,
        shares_scopes: false,
        starts_late: true,
        thread_name,
        error_text,
        pid_in_output: |text| text.strip_prefix("Launched process ")?.split(' ').next()?.parse().ok(),
        hit_condition: |n| format!(">={n}"),
        detach_command: Some("process detach"),
        detach_grace: Duration::from_secs(4),
        forget_step: Some("thread plan discard 1"),
        returned: Some((native!("'thread info'"), |answer| lldb::returned(&unquoted(answer)))),
        ..lldb::LLDB.quirks
    },
    natives: Natives {
        failure: |answer| (lldb::NATIVES.failure)(&unquoted(answer)),
        watch: match lldb::NATIVES.watch {
            Some(watching) => Some(Watching { values: |answer| lldb::watch_values(&unquoted(answer)), ..watching }),
            None => None,
        },
        also_stopped: Some((native!("'thread list'"), stops)),
        trace: match lldb::NATIVES.trace {
            Some(tracing) => Some(Tracing {
                prepare: |hook, _| lldb::prepare_hook(hook, false),
                arm: match tracing.arm {
                    Arm::Command { set, .. } => {
                        Arm::Command { set, read: |answer| lldb::bound_line(&unquoted(answer)) }
                    }
                    other => other,
                },
                ..tracing
            }),
            None => None,
        },
        ..lldb::NATIVES
    },
};

/// Read by the adapter before anything is created: answers are not cut, symbols are read where something asks for them.
const SETTINGS: [&str; 2] =
    ["settings set target.max-string-summary-length 100000", "settings set target.preload-symbols false"];

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned()];
    argv.extend(found.args.iter().cloned());
    argv
}

fn launch(launch: &Launch, stdio: &Stdio) -> Value {
    let stdin = stdio.input(launch);
    let mut init = SETTINGS.map(String::from).to_vec();
    for (name, path) in [("input", &stdin), ("output", &stdio.stdout), ("error", &stdio.stderr)] {
        init.push(format!("settings set target.{name}-path {}", lldb::word(path)));
    }
    // Only what is in the map: the adapter would add its own surroundings.
    init.push("settings set target.inherit-env false".into());
    let env: serde_json::Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    init.extend(lldb::formatters(launch));
    json!({
        "program": launch.program,
        "args": launch.args,
        "cwd": launch.cwd,
        "env": env,
        "terminal": "console",
        "expressions": "native",
        "initCommands": init,
    })
}

fn raw(command: &str) -> String {
    native!("{}").replacen("{}", &Value::String(command.into()).to_string(), 1)
}

/// A text as LLDB shows it, without its quotes and escapes.
fn unquoted(answer: &str) -> String {
    let Some(inner) = answer.trim().strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
        return answer.to_string();
    };
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => text.push('\n'),
            ('\\', Some('t')) => text.push('\t'),
            ('\\', Some('r')) => text.push('\r'),
            ('\\', Some(other)) => text.push(other),
            (c, _) => text.push(c),
        }
    }
    text
}

/// Reads `thread #2: tid = 7, …, stop reason = breakpoint 1.1` of each thread at a breakpoint.
fn stops(answer: &str) -> Vec<StoppedBody> {
    let stop = |line: &str| {
        let (head, places) = line.split_once("stop reason = breakpoint ")?;
        let tid = head.split_once("tid = ")?.1.split(',').next()?.parse().ok()?;
        Some(StoppedBody {
            reason: "breakpoint".into(),
            description: Some(format!("breakpoint {}", places.trim())),
            thread_id: Some(tid),
            all_threads_stopped: Some(true),
            ..StoppedBody::default()
        })
    };
    unquoted(answer).lines().filter_map(stop).collect()
}

/// `1: tid=17065 "every"`.
fn thread_name(name: &str) -> String {
    let quoted = name.split_once('"').and_then(|(_, rest)| rest.strip_suffix('"'));
    quoted.map_or_else(|| name.to_string(), Into::into)
}

/// A trace of the adapter's own Python ends with what went wrong.
fn error_text(message: &str) -> String {
    if message.starts_with("Resolved locations") {
        return String::new();
    }
    let of_python = message.split_once("Exception: ").map_or(message, |(_, rest)| rest);
    lldb::error_text(of_python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_lose_their_quotes() {
        assert_eq!(unquoted(r#""(int) i = 2\n\"x\"\\""#), "(int) i = 2\n\"x\"\\");
        assert_eq!(unquoted("plain"), "plain");
    }

    #[test]
    fn threads_at_breakpoints_are_found() {
        let answer = "Process 5 stopped\\n* thread #1: tid = 7, 0x1 a`f at a.c:1, stop reason = breakpoint 1.1 2.1\\n  thread \
                      #2: tid = 8, 0x2 a`g, name = 'w'\\n";
        let found = stops(&format!("\"{answer}\""));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].thread_id, found[0].description.as_deref()), (Some(7), Some("breakpoint 1.1 2.1")));
    }

    #[test]
    fn a_command_is_one_literal() {
        assert!(raw(r#"frame variable "a""#).contains(r#"HandleCommand("frame variable \"a\"", lldb."#));
    }

    #[test]
    fn names_and_errors_lose_their_decoration() {
        assert_eq!(thread_name("2: tid=7 \"worker-1\""), "worker-1");
        let trace = "Traceback (most recent call last):\n  File \"x\"\nException: error: <user expression 2>:1:1: use of \
                     undeclared identifier 'zzz'\n    1 | zzz\n";
        assert_eq!(error_text(trace), "use of undeclared identifier 'zzz'");
        assert_eq!(error_text("Resolved locations: 0"), "");
        assert_eq!((CODELLDB.quirks.pid_in_output)("Launched process 17065 from '/a'\n"), Some(17065));
    }
}
