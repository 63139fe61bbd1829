//! The registry of debug adapters: one line each.
//!
//! An adapter is a constant of [`Adapter`] in its own file. What differs between adapters is data there, or a function
//! there that the constant names; nothing outside compares adapter names.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::model::{Frame, Launch, Reason};

/// Everything Bugeye knows about one debug adapter.
#[derive(Debug)]
pub struct Adapter {
    /// The name users write (`--adapter lldb-dap`), and other names for it.
    pub id: &'static str,
    pub aliases: &'static [&'static str],
    pub languages: &'static [&'static str],
    pub find: Find,
    pub install: Install,
    /// The command line that speaks the protocol over its standard streams.
    pub command: fn(&Found) -> Vec<String>,
    /// Changes to the client's environment for the adapter's own process: (name, value), an empty value removes.
    pub adapter_env: fn(&Found, empty_home: &str) -> Vec<(String, String)>,
    /// `adapterID` of `initialize`.
    pub adapter_id: &'static str,
    pub launch: fn(&Launch, &Stdio) -> Value,
    pub attach: fn(pid: u32, program: Option<&str>) -> Value,
    pub quirks: Quirks,
}

/// How an adapter is looked for: config path, then the private folder, then these, in order.
#[derive(Debug)]
pub struct Find {
    /// Executables on PATH; `{v}` stands for a version number, highest first.
    pub programs: &'static [&'static str],
    /// The versions that `{v}` may be.
    pub versions: std::ops::RangeInclusive<u32>,
    /// Ask `xcrun --find` for this name on macOS.
    pub xcrun: Option<&'static str>,
    /// A Python module that the interpreter must be able to import, run as `python -m MODULE`.
    pub python_module: Option<&'static str>,
    /// Arguments that print a version, and nothing else.
    pub version_args: &'static [&'static str],
}

/// How an adapter is installed.
#[derive(Debug)]
pub struct Install {
    /// The command a user runs (`bugeye setup lldb`).
    pub setup_name: &'static str,
    /// Debian packages, best first.
    pub apt: &'static [&'static str],
    pub brew: Option<&'static str>,
    pub dnf: Option<&'static str>,
    /// A PyPI requirement, installed into the private folder; needs no root.
    pub pip: Option<&'static str>,
}

/// An adapter on this machine.
#[derive(Debug, Clone)]
pub struct Found {
    pub adapter: &'static Adapter,
    /// The executable; for a Python module, the interpreter.
    pub program: PathBuf,
    /// Extra arguments from the configuration.
    pub args: Vec<String>,
    /// The folder a Python module was found in, where it is not the interpreter's own.
    pub module_path: Option<PathBuf>,
    pub version: Option<String>,
}

/// The debuggee's three streams, as paths.
#[derive(Debug, Clone)]
pub struct Stdio {
    pub stdin: String,
    pub stdout: String,
    pub stderr: String,
}

/// Named differences, as data.
#[derive(Debug)]
pub struct Quirks {
    /// Contexts `print` may use, in order; the second is used only when the expression is seen to be free of effects.
    pub print_contexts: &'static [&'static str],
    /// The context of `eval`.
    pub eval_context: &'static str,
    /// `raw` text → the expression for `evaluate` in context `repl`.
    pub raw: fn(&str) -> String,
    /// The hit condition that stops at pass N and every later one.
    pub hit_condition: fn(u32) -> String,
    /// Requests sent when the adapter is ready for configuration, before breakpoints.
    pub prelude: &'static [(&'static str, &'static str)],
    /// An `evaluate` (context `repl`) sent at the first stop, for its effect on the adapter.
    pub first_stop: Option<&'static str>,
    /// What a `stopped` event means here; None leaves it to the common reading.
    pub reason: fn(&crate::dap::types::StoppedBody, asked_to_pause: bool) -> Option<Reason>,
    /// Exceptions that are no stop: the program goes on by itself.
    pub ignored_exceptions: &'static [&'static str],
    /// The expression that fails when a condition can't be parsed, evaluated while the program is held.
    pub check_condition: Option<fn(&str) -> String>,
    /// The assignment that `set` evaluates where there is no `setExpression`.
    pub assignment: fn(&str, &str) -> String,
    /// The expression whose result names the arguments of a frame, and how to read them from its text.
    pub arguments: Option<(fn(&Frame, same_below: usize) -> String, fn(&str) -> Vec<String>)>,
    /// `catch` words that are function breakpoints here: (word, function).
    pub catch_functions: &'static [(&'static str, &'static str)],
    /// `catch` words and the filters they mean here.
    pub catch_words: &'static [(&'static str, &'static [&'static str])],
    /// Names and values of variables that are the adapter's own furniture, not the program's.
    pub is_furniture: fn(name: &str, value: &str) -> bool,
    /// How an exit code reads when the kernel's own word is not to be had: the signal it means.
    pub exit_signal: fn(code: i64, last_signal: Option<&str>) -> Option<String>,
    /// A disconnect that should leave the program running may be answered late, or never.
    pub detach_grace: Duration,
}

/// Every adapter, in the order they are preferred.
pub const ADAPTERS: &[&Adapter] = &[];
