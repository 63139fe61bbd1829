//! Node's own inspector, for JavaScript and TypeScript; `bugeye adapter node` speaks the protocol for it.

use serde_json::{Map, Value, json};

use super::{Adapter, Arm, Find, Found, Hook, Install, Natives, Quirks, Reach, Tracing, Way};
use crate::model::{Launch, Point, Remote};

pub const NODE: Adapter = Adapter {
    id: "node",
    aliases: &["nodejs", "javascript"],
    languages: &["javascript", "typescript"],
    find: Find::programs(&["node", "nodejs"]),
    install: Install {
        setup_name: "node",
        apt: &["nodejs"],
        brew: Some("node"),
        dnf: Some("nodejs"),
        note: Some("Node debugs itself: there is nothing to install but Node 18 or newer"),
        ..Install::NONE
    },
    way: Way::Translated("node"),
    command: |found: &Found| vec![found.program.to_string_lossy().into_owned()],
    adapter_env: |_, _| Vec::new(),
    adapter_id: "node",
    launch,
    attach: |pid, _| json!({ "processId": pid }),
    remote: Some(Reach::Through(|remote: &Remote| json!({ "host": remote.host, "port": remote.port }))),
    core: None,
    quirks: Quirks {
        raw,
        check_condition: Some(|condition| format!("bugeye:compile {condition}")),
        tells_condition_errors: true,
        condition_error: |stopped| stopped.condition_error.clone(),
        is_impure: |message| message.contains("Possible side-effect in debug-evaluate"),
        arguments: (|_, _| "bugeye:arguments".into(), argument_names),
        catch_words: &[("throw", "raised"), ("panic", "uncaught")],
        is_runtime: |_, file| file.is_some_and(|file| file.starts_with("node:")),
        is_library: |file| file.starts_with("node:"),
        thread_name: |name| name.split_once("] ").map_or(name, |(_, own)| own).to_string(),
        exit_signal: |code, _| signal_of(code),
        attach_runs: true,
        stderr_noise: &["Debugger attached.\n", "Waiting for the debugger to disconnect...\n"],
        ..Quirks::PLAIN
    },
    natives: Natives {
        thrown_type: Some(("bugeye:thrown", |names, wanted| {
            names.split(' ').any(|name| name.trim_matches('\'') == wanted)
        })),
        trace: Some(Tracing {
            name: "in process",
            beside: None,
            disarm: Some("bugeye:untrace"),
            prepare: |hook, points| vec![trace(hook, points)],
            arm: Arm::Condition(|point| format!("bugeye:point {}", point.id)),
            // What the hook does not read, the translator does, while the thread pauses for a moment.
            reads: |_| true,
            calls: Some(|hook| {
                vec![format!("bugeye:calls {}", json!({ "globs": hook.calls, "most": hook.most_calls }))]
            }),
        }),
        ..Natives::NONE
    },
};

fn launch(launch: &Launch, _: &super::Stdio) -> Value {
    let env: Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    json!({
        "program": launch.program,
        "interpreter": launch.interpreter,
        "args": launch.args,
        "cwd": launch.cwd,
        "env": env,
        "stopOnEntry": launch.stop_on_entry,
    })
}

/// The translator puts the hook into every thread, and knows the points by their numbers.
fn trace(hook: &Hook, points: &[Point]) -> String {
    let point = |point: &Point| json!({ "id": point.id, "expressions": point.expressions, "when": point.when, "every": point.every });
    let points: Vec<Value> = points.iter().map(point).collect();
    let asked = json!({ "sink": hook.sink, "most": hook.most, "frames": hook.frames, "points": points });
    format!("bugeye:trace {asked}")
}

/// `Domain.method {…}` goes to the inspector as it is; anything else is an expression.
fn raw(text: &str) -> String {
    let method = text.split(' ').next().unwrap_or_default();
    let is_method = method.split_once('.').is_some_and(|(domain, name)| {
        domain.starts_with(|c: char| c.is_ascii_uppercase())
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && method.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
    });
    let rest = text[method.len()..].trim();
    if is_method && (rest.is_empty() || rest.starts_with('{')) {
        format!("bugeye:cdp {text}")
    } else {
        text.to_string()
    }
}

/// Reads `['n', 'p']`.
fn argument_names(answer: &str) -> Vec<String> {
    answer.split('\'').skip(1).step_by(2).map(Into::into).collect()
}

/// The translator tells a signal as a negative number.
fn signal_of(code: i64) -> Option<String> {
    let name = match -code {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
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
    fn methods_of_the_inspector_are_told_from_expressions() {
        assert_eq!(
            raw("Runtime.evaluate {\"expression\":\"1\"}"),
            "bugeye:cdp Runtime.evaluate {\"expression\":\"1\"}"
        );
        assert_eq!(raw("Debugger.pause"), "bugeye:cdp Debugger.pause");
        assert_eq!(raw("Math.max(1, 2)"), "Math.max(1, 2)");
        assert_eq!(raw("n + 1"), "n + 1");
        assert_eq!(raw("Math.abs + 1"), "Math.abs + 1");
    }
}
