//! Delve, for Go.

mod log;
mod source;
mod text;

use serde_json::{Map, Value, json};

use super::{Adapter, Arm, Find, Found, Install, Least, Logs, Natives, Quirks, Reach, Stdio, Tracing, Way};
use crate::dap::types::StoppedBody;
use crate::model::Launch;

pub const DELVE: Adapter = Adapter {
    id: "delve",
    aliases: &["dlv", "go"],
    languages: &["go"],
    find: Find {
        version_args: &["version"],
        least: Some(Least { version: &[1, 24, 2], lacks: "does not tell which process it has started" }),
        ..Find::programs(&["dlv"])
    },
    install: Install {
        setup_name: "delve",
        brew: Some("delve"),
        go: Some("github.com/go-delve/delve/cmd/dlv@v1.27.2"),
        instead: &["install a newer one: bugeye setup delve"],
        ..Install::NONE
    },
    way: Way::Dials,
    command,
    adapter_env: |_, _| Vec::new(),
    adapter_id: "go",
    launch,
    attach,
    remote: Some(Reach::Direct(|_| with_settings(json!({ "mode": "remote", "stopOnEntry": true })))),
    core: Some(|core, program| {
        (
            "launch",
            with_settings(json!({ "mode": "core", "coreFilePath": core, "program": program, "stopOnEntry": true })),
        )
    }),
    quirks: Quirks {
        // Without `call` before it, nothing that is evaluated changes the program.
        print_contexts: &["repl"],
        is_nonsense: |expression| is_command(expression),
        raw: |text| if is_command(text) { text.to_string() } else { format!("dlv {text}") },
        top_frame: Some(1000),
        calls_stop: true,
        eval_again: |expression, message| {
            let called = message.contains("without using 'call'");
            let assigned = message.contains("expected '==', found '='");
            (called || assigned).then(|| format!("call {expression}"))
        },
        condition_error: |stopped| {
            let text = stopped.text.as_deref()?;
            text.strip_prefix("error evaluating expression: ").map(Into::into)
        },
        is_about_condition: text::is_syntax_error,
        assignment: |lhs, value| format!("call {lhs} = {value}"),
        assigns_in_top: true,
        source_arguments: Some(source::arguments),
        exception_text,
        catch_functions: &[
            ("throw", "runtime.gopanic"),
            ("raised", "runtime.gopanic"),
            ("fail", "testing.(*common).Fail"),
        ],
        is_retold,
        catch_words: &[
            ("panic", "unrecovered-panic"),
            ("uncaught", "unrecovered-panic"),
            ("fatal", "runtime-fatal-throw"),
        ],
        // Results that have no name, and the runtime's own.
        is_furniture: |name, _| name.starts_with(['~', '.']) || name == "len()",
        is_runtime: text::is_runtime,
        is_library: |file| text::is_runtime("", Some(file)),
        thread_name: text::thread_name,
        error_text: text::error_text,
        tidy: text::tidy,
        // Items cut short, or not read so deep.
        is_opaque: |value, kind| {
            let has_items = kind.is_some_and(|kind| kind.starts_with('[') || kind.starts_with("map["));
            has_items && (value.ends_with("...") || value.contains(")(0x"))
        },
        pages_indexed: true,
        passes_through: text::passes_through,
        function_again: text::function_again,
        exit_signal: |code, _| signal_of(code),
        // Reading all of a package's variables at every stop would take too long.
        scope_command: |scope| {
            (scope == "globals" || scope == "statics").then_some("dlv config showGlobalVariables true")
        },
        left_abruptly: true,
        serves_many: true,
        keeps_step: true,
        tells_one_hit: Some(|thread| thread.contains(" (Thread ")),
        // Whoever runs Go code holds one of the runtime's processors. To find a variable by its name takes long.
        hit_alone: Some((["uintptr(&runtime.gomaxprocs)", "uintptr(&runtime.sched.npidle.value)"], |all, idle| {
            format!("*(*int32)({all}) - *(*int32)({idle}) == 1")
        })),
        has_addresses: true,
        entry_function: Some("main.main"),
        ..Quirks::PLAIN
    },
    natives: Natives {
        memory_read: Some(|address, count| format!("x -fmt hex -size 1 -count {} {address}", count.min(MOST_BYTES))),
        memory_bytes: text::memory_bytes,
        memory_writes: Some(|address, bytes| {
            let places = address..;
            places.zip(bytes).map(|(place, byte)| format!("call *(*uint8)({place:#x}) = {byte}")).collect()
        }),
        address_of: |expression| format!("uintptr({expression})"),
        at_address: Some(|address, kind| format!("*(*{kind:?})({address})")),
        trace: Some(Tracing {
            name: "logpoints",
            prepare: |_, _| Vec::new(),
            arm: Arm::Log(Logs { message: log::message, read: log::read, is_plain: log::is_plain }),
            reads: log::reads,
            beside: None,
            disarm: None,
            calls: None,
        }),
        ..Natives::NONE
    },
};

/// Bytes that Delve reads at once.
const MOST_BYTES: u32 = 1000;

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned(), "dap".into(), "--client-addr={address}".into()];
    argv.extend(found.args.iter().cloned());
    argv
}

/// The program's streams are Delve's own, which it prints nothing to.
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
    });
    if let (Some(arguments), Value::Object(settings)) = (arguments.as_object_mut(), settings) {
        arguments.extend(settings);
    }
    arguments
}

/// What Delve reads as an order of its own, and not as an expression.
fn is_command(text: &str) -> bool {
    ["call ", "dlv "].iter().any(|word| text.trim_start().starts_with(word))
}

/// `panic` with a text, or `fatal error` with one.
fn exception_text(stopped: &StoppedBody) -> Option<String> {
    let kind = stopped.description.as_deref().filter(|kind| !kind.is_empty())?;
    Some(match stopped.text.as_deref().map(text::unquoted).filter(|text| !text.is_empty()) {
        Some(text) => format!("{kind}: {text}"),
        None => kind.to_string(),
    })
}

/// A test that panics is marked as failed before the panic goes on, and one that fails marks those around it.
fn is_retold(word: &str, functions: &[&str]) -> bool {
    let fails = functions.iter().take_while(|function| **function == "testing.(*common).Fail").count();
    word == "fail" && (fails > 1 || functions.iter().any(|function| function.starts_with("testing.tRunner.func1")))
}

/// An end by a signal is told as a negative number.
fn signal_of(code: i64) -> Option<String> {
    let name = match -code {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    };
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_its_text() {
        let stopped = |description: &str, text: &str| StoppedBody {
            reason: "exception".into(),
            description: Some(description.into()),
            text: Some(text.into()),
            ..StoppedBody::default()
        };
        assert_eq!(exception_text(&stopped("panic", "\"boom\"")), Some("panic: boom".into()));
        assert_eq!(exception_text(&stopped("panic", "")), Some("panic".into()));
        assert_eq!(exception_text(&stopped("", "x")), None);
    }

    #[test]
    fn a_failed_test_is_told_once() {
        let fail = "testing.(*common).Fail";
        assert!(!is_retold("fail", &[fail, "testing.(*common).Errorf", "calc.TestMean", "testing.tRunner"]));
        assert!(is_retold("fail", &[fail, fail, "testing.(*common).FailNow", "calc.TestMean"]));
        assert!(is_retold("fail", &[fail, "testing.tRunner.func1.2", "testing.tRunner.func1", "runtime.gopanic"]));
    }

    #[test]
    fn a_call_is_asked_for_as_such() {
        let again = DELVE.quirks.eval_again;
        assert_eq!(again("f(1)", "function calls not allowed without using 'call'"), Some("call f(1)".into()));
        assert_eq!(again("x = 3", "1:3: expected '==', found '='"), Some("call x = 3".into()));
        assert_eq!(again("nope", "could not find symbol value for nope"), None);
    }
}
