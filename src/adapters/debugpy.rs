//! debugpy, for Python.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Adapter, Arm, Find, Found, Hook, Install, Natives, Quirks, Reach, Stdio, Tracing, Way};
use crate::model::{Frame, Launch, Point};

/// debugpy writes header and body in two sends on a socket with Nagle's algorithm on; each request then waits 44 ms for
/// a delayed acknowledgement. This switches it off from inside the debuggee, where the socket is.
const NO_DELAY: &str =
    r#"{"expression":"__import__('pydevd').get_global_debugger().writer.sock.setsockopt(6,1,1)","context":"repl"}"#;

/// A condition that fails would otherwise never stop and never say so.
const STOP_ON_BAD_CONDITION: &str =
    r#"{"skipSuspendOnBreakpointException":[],"skipPrintBreakpointException":["BaseException"]}"#;

/// Before Python 3.12 a function that handled an exception with a `with` block (`pytest.raises`) and then returns is taken for
/// one that the exception leaves. Its last instruction tells them apart.
const HANDLED: &str = concat!(
    "(lambda walk: (lambda f: f is not None and __import__('dis').opname[f.f_code.co_code[f.f_lasti]].startswith('RETURN_'))",
    "(walk(walk, __import__('sys')._getframe())))(lambda walk, f: f if f is None or not ('/pydevd' in f.f_code.co_filename ",
    "or '/_pydev' in f.f_code.co_filename or f.f_code.co_filename.startswith('<')) else walk(walk, f.f_back))",
);

pub const DEBUGPY: Adapter = Adapter {
    id: "debugpy",
    aliases: &["python", "pydevd"],
    languages: &["python"],
    find: Find { python_module: Some("debugpy"), version_args: &[], ..Find::programs(&["python3", "python"]) },
    install: Install { setup_name: "debugpy", pip: Some("debugpy==1.8.22"), ..Install::NONE },
    way: Way::Translated("mux"),
    command,
    adapter_env,
    adapter_id: "debugpy",
    launch,
    attach,
    // The server of `debugpy --listen` is an adapter itself.
    remote: Some(Reach::Direct(|_| attach_arguments())),
    core: None,
    quirks: Quirks {
        print_contexts: &["watch"],
        eval_context: "repl",
        stacks_while_running: true,
        raw: str::to_string,
        raw_answer: str::to_string,
        counts_before_condition: true,
        hit_condition: |n| format!(">={n}"),
        prelude: &[("evaluate", NO_DELAY), ("setDebuggerProperty", STOP_ON_BAD_CONDITION)],
        hit_ids: |stopped| stopped.hit_breakpoint_ids.clone(),
        ignored_exceptions: &["SystemExit"],
        skip_exceptions: &["Skipped", "SkipTest"],
        handled: Some(HANDLED),
        check_condition: Some(|condition| format!("compile({}, 'condition', 'eval')", literal(condition))),
        assignment: |lhs, value| format!("{lhs} = {value}"),
        arguments: (arguments_of, argument_names),
        catch_functions: &[],
        catch_words: &[("throw", "raised"), ("panic", "uncaught")],
        is_furniture,
        length: Some("len()"),
        is_runtime,
        is_library,
        // The frame that an exception is leaving.
        function_name: |name| name.strip_suffix(" (Current frame)").unwrap_or(name).to_string(),
        thread_name: str::to_string,
        error_text: str::to_string,
        tidy: |value, _| value.to_string(),
        is_opaque: |value, _| value.contains(" object at 0x"),
        shares_scopes: false,
        any_function: Some("debugpy takes any name: it stops when a function of that name is called"),
        pages: false,
        count: |_, _| None,
        slice: Some(slice),
        exit_signal: |code, _| signal_of(code),
        detach_grace: Duration::from_millis(700),
        detach_command: None,
        forget_step: None,
        has_addresses: false,
        returned: None,
        is_nonsense: |_| false,
        commands_need_a_program: false,
        runs_in_terminal: true,
        attach_runs: true,
        no_attach: None,
        entry_function: None,
        ..Quirks::PLAIN
    },
    natives: Natives {
        failure: |_| None,
        memory_read: None,
        memory_bytes: |_| None,
        memory_write: None,
        memory_writes: None,
        address_of: |expression| format!("id({expression})"),
        at_address: None,
        disassemble: None,
        jump: None,
        watch: None,
        thrown_type: None,
        trace: Some(Tracing {
            name: "in process",
            prepare,
            arm: Arm::Condition(hook_condition),
            reads: |_| true,
            disarm: Some("__bugeye__.stop()"),
            beside: Some(|hook, condition| {
                format!("{hook} | ({}\n)", condition.map_or_else(|| "True".into(), |text| format!("bool({text}\n)")))
            }),
            calls: Some(|hook| {
                let globs: Vec<String> = hook.calls.iter().map(|glob| literal(glob)).collect();
                vec![format!("__bugeye__.calls([{}], {})", globs.join(", "), hook.most_calls)]
            }),
        }),
        ..Natives::NONE
    },
};

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned()];
    match &found.module_path {
        Some(folder) => argv.push(folder.join("debugpy/adapter").to_string_lossy().into_owned()),
        None => argv.extend(["-m".into(), "debugpy.adapter".into()]),
    }
    argv.extend(found.args.iter().cloned());
    argv
}

/// The adapter must not be changed by what is meant for the program.
fn adapter_env(_: &Found, _: &str) -> Vec<(String, String)> {
    ["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONINSPECT"]
        .into_iter()
        .map(|name| (name.to_string(), String::new()))
        .collect()
}

fn launch(launch: &Launch, _: &Stdio) -> Value {
    let mut env: Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    // Python's own modules are frozen in the children of a program, about which they would complain on its stderr.
    env.entry("PYDEVD_DISABLE_FILE_VALIDATION").or_insert_with(|| Value::String("1".into()));
    let mut arguments = json!({
        "args": launch.args,
        "python": launch.interpreter,
        "cwd": launch.cwd,
        "env": env,
        "stopOnEntry": launch.stop_on_entry,
        // The program's streams are then ours, not the adapter's.
        "console": "integratedTerminal",
        "justMyCode": false,
        "showReturnValue": true,
        "subProcess": true,
        "variablePresentation": { "special": "hide", "function": "hide", "class": "hide", "protected": "inline" },
    });
    if let Some(helper) = &launch.helper {
        arguments["debugLauncherPython"] = json!(helper);
    }
    // A program of the form `-m NAME` is a module.
    match launch.program.to_str().and_then(|program| program.strip_prefix("-m ")) {
        Some(module) => arguments["module"] = Value::String(module.into()),
        None => arguments["program"] = json!(launch.program),
    }
    arguments
}

fn attach(pid: u32, _: Option<&str>) -> Value {
    let mut arguments = attach_arguments();
    arguments["processId"] = json!(pid);
    arguments
}

fn attach_arguments() -> Value {
    json!({
        "justMyCode": false,
        "showReturnValue": true,
        // The adapter tells of no children of a process that it was not there to start, and they would wait for ever.
        "subProcess": false,
        "variablePresentation": { "special": "hide", "function": "hide", "class": "hide", "protected": "inline" },
    })
}

/// A Python string literal of any text.
fn literal(text: &str) -> String {
    let mut out = String::from("'");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\'' => out.push_str("\\'"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A part of any iterable; of a dictionary with its values.
fn slice(expression: &str, from: u32, count: u32) -> String {
    let to = from.saturating_add(count);
    format!(
        "(lambda value, cut: dict(cut(value.items(), {from}, {to})) if isinstance(value, dict) \
         else list(cut(value, {from}, {to})))(({expression}), __import__('itertools').islice)"
    )
}

/// What writes down hits, in the program's own process.
const HOOK: &str = include_str!("debugpy/hook.py");

/// The hook is kept where every frame finds it.
fn prepare(hook: &Hook, points: &[Point]) -> Vec<String> {
    let names = "__import__('builtins').__dict__";
    let mut lines = vec![
        format!("exec({}, {names}.setdefault('__bugeye_names__', {{}}))", literal(HOOK)),
        format!(
            "{names}.__setitem__('__bugeye__', __bugeye_names__['make']({}, {}, {}))",
            literal(&hook.sink),
            hook.most,
            hook.frames
        ),
    ];
    for point in points {
        let when = point.when.as_deref().map_or_else(|| "None".into(), literal);
        let expressions: Vec<String> = point.expressions.iter().map(|text| literal(text)).collect();
        lines.push(format!("__bugeye__.point({}, {when}, {}, [{}])", point.id, point.every, expressions.join(", ")));
    }
    lines
}

fn hook_condition(point: &Point) -> String {
    format!("__bugeye__({})", point.id)
}

/// Evaluation happens in the stopped thread, above the program's own frames: the frame is found by walking out to its
/// file, line and function, past `above` others that look the same.
fn arguments_of(frame: &Frame, above: usize) -> String {
    let file = literal(frame.file.as_deref().unwrap_or_default());
    let name = literal(frame.function.rsplit('.').next().unwrap_or_default());
    let line = frame.line.unwrap_or_default();
    format!(
        "(lambda walk, frame: walk(walk, frame, {above}))(lambda walk, f, left: [] if f is None else (\
         walk(walk, f.f_back, left) if not (f.f_lineno == {line} and f.f_code.co_filename == {file} and f.f_code.co_name == {name}) else \
         walk(walk, f.f_back, left - 1) if left else \
         list(f.f_code.co_varnames[:f.f_code.co_argcount + f.f_code.co_kwonlyargcount + bool(f.f_code.co_flags & 4) + bool(f.f_code.co_flags & 8)])), \
         __import__('sys')._getframe())"
    )
}

/// Reads `['n', 'p']`.
fn argument_names(answer: &str) -> Vec<String> {
    answer.split('\'').skip(1).step_by(2).map(Into::into).collect()
}

fn is_furniture(name: &str, value: &str) -> bool {
    const GROUPS: [&str; 5] =
        ["special variables", "function variables", "class variables", "protected variables", "len()"];
    // pytest rewrites assertions, with variables that no program can name.
    GROUPS.contains(&name)
        || name.starts_with("@py_")
        || (["setup", "script_dir"].contains(&name)
            && value.contains("adapter_access_token") | value.contains("/debugpy/"))
        || ["<function ", "<class '", "<module '", "<built-in function "].iter().any(|start| value.starts_with(start))
}

fn is_runtime(_: &str, file: Option<&str>) -> bool {
    file.is_some_and(|file| file.ends_with("/runpy.py") || file.starts_with("<frozen ") || file.contains("/debugpy/"))
}

/// The standard library, and what is made of no file; packages that were installed beside it are the program's.
fn is_library(file: &str) -> bool {
    file.starts_with('<')
        || file.contains("/debugpy/")
        || (file.contains("/lib/python3") && !file.contains("-packages/"))
}

/// The launcher passes on what Python's `subprocess` gives: a negative signal number, cut to a byte.
fn signal_of(code: i64) -> Option<String> {
    let number = if code < 0 { -code } else { 256 - code };
    let name = match number {
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        15 => "SIGTERM",
        _ => return None,
    };
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_a_python_literal() {
        assert_eq!(literal("a'b\\c\nd"), r"'a\'b\\c\nd'");
    }

    #[test]
    fn argument_names_are_read_from_a_list() {
        assert_eq!(argument_names("['n', 'p', 'rest']"), ["n", "p", "rest"]);
        assert!(argument_names("[]").is_empty());
    }

    #[test]
    fn signals_come_as_bytes_or_negative_numbers() {
        assert_eq!(signal_of(245), Some("SIGSEGV".into()));
        assert_eq!(signal_of(-6), Some("SIGABRT".into()));
        assert_eq!(signal_of(3), None);
    }
}
