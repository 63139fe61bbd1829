//! What adapters have in common whose interpreter carries its own debugger: the translator starts the program.

use serde_json::{Map, Value, json};

use super::Found;
use crate::model::Launch;

/// What the words of other languages mean here.
pub(super) const CATCH_WORDS: &[(&str, &str)] = &[("throw", "raised"), ("panic", "uncaught")];

/// The translator is told which interpreter there is.
pub(super) fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned()];
    argv.extend(found.args.iter().cloned());
    argv
}

/// The interpreter's command line with options of ours first; `own` tells how many words are ours.
pub(super) fn launch(launch: &Launch, options: &[&str]) -> Value {
    let env: Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    let mut argv: Vec<String> = launch.interpreter.iter().take(1).cloned().collect();
    argv.extend(options.iter().map(ToString::to_string));
    argv.extend(launch.interpreter.iter().skip(1).cloned());
    argv.push(launch.program.to_string_lossy().into_owned());
    argv.extend(launch.args.iter().cloned());
    json!({ "argv": argv, "own": options.len(), "cwd": launch.cwd, "env": env, "stopOnEntry": launch.stop_on_entry })
}

/// The translator tells an end by a signal as a negative number.
pub(super) fn exit_signal(code: i64, _: Option<&str>) -> Option<String> {
    const SIGNALS: [(i64, &str); 12] = [
        (1, "SIGHUP"),
        (2, "SIGINT"),
        (3, "SIGQUIT"),
        (4, "SIGILL"),
        (6, "SIGABRT"),
        (7, "SIGBUS"),
        (8, "SIGFPE"),
        (9, "SIGKILL"),
        (11, "SIGSEGV"),
        (13, "SIGPIPE"),
        (14, "SIGALRM"),
        (15, "SIGTERM"),
    ];
    let known = SIGNALS.iter().find(|(number, _)| -number == code).map(|(_, name)| (*name).to_string());
    known.or_else(|| (code < 0).then(|| format!("signal {}", -code)))
}
