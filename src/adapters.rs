//! The registry of debug adapters: one line each.
//!
//! An adapter is a constant of [`Adapter`] in its own file. What differs between adapters is data there, or a function
//! there that the constant names; nothing outside compares adapter names. The user's own adapters are such structs too.

pub mod agent;
pub mod cmake;
pub mod codelldb;
pub mod debugpy;
pub mod delve;
pub mod gdb;
pub mod java;
pub mod lldb;
pub mod node;
pub mod own;
pub mod perl;
pub mod php;
mod plain;
pub mod ruby;
mod script;
mod tracing;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;

use crate::model::{Frame, Launch, Reason, Remote, Stdin, Target};
pub use tracing::{Arm, Hook, Logs, Tracing};

/// Everything Bugeye knows about one debug adapter.
#[derive(Debug)]
pub struct Adapter {
    /// The name users write (`--adapter lldb-dap`), and other names for it.
    pub id: &'static str,
    pub aliases: &'static [&'static str],
    pub languages: &'static [&'static str],
    pub find: Find,
    pub install: Install,
    /// How it is spoken to.
    pub way: Way,
    /// Its command line, as `way` needs it.
    pub command: fn(&Found) -> Vec<String>,
    /// Changes to the client's environment for the adapter's own process: (name, value), an empty value removes.
    pub adapter_env: fn(&Found, empty_home: &str) -> Vec<(String, String)>,
    /// `adapterID` of `initialize`.
    pub adapter_id: &'static str,
    pub launch: fn(&Launch, &Stdio) -> Value,
    pub attach: fn(pid: u32, program: Option<&str>) -> Value,
    /// A program that waits at an address for a debugger; None where the adapter can't reach one.
    pub remote: Option<Reach>,
    /// The request (`launch` or `attach`) that opens a core file, and its arguments; None where the adapter can't.
    pub core: Option<fn(core: &str, program: Option<&str>) -> (&'static str, Value)>,
    pub quirks: Quirks,
    pub natives: Natives,
}

/// How an adapter is spoken to. Whatever it is, the session has the protocol on two streams: what does not speak it there
/// by itself is run by `bugeye adapter`, which does (see `translate.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over its standard streams.
    Streams,
    /// It connects to the address that stands for `{address}` in its command line.
    Dials,
    /// It listens: `{port}` in its command line is a free port, `{socket}` the path of a socket to be.
    Listens,
    /// It speaks another protocol, or has to be started with the program: this translator is run with its command line.
    Translated(&'static str),
}

/// How a program that waits at an address is reached; all give the arguments of `attach`.
#[derive(Debug, Clone, Copy)]
pub enum Reach {
    /// The adapter connects there.
    Through(fn(&Remote) -> Value),
    /// What listens there speaks the protocol itself: no adapter is started.
    Direct(fn(&Remote) -> Value),
    /// The adapter connects to a socket of ours, which leads to a server of gdb's protocol there (`translate/bridge.rs`).
    Bridged(fn(&Remote) -> Value),
}

/// Commands of the underlying debugger, for what the protocol or the adapter lacks: how each is written, and how its
/// answer is read. None where there is no such command.
#[derive(Debug)]
pub struct Natives {
    /// The message of a command that failed, though the adapter calls it a success.
    pub failure: fn(&str) -> Option<String>,
    pub memory_read: Option<fn(address: &str, count: u32) -> String>,
    pub memory_bytes: fn(&str) -> Option<(u64, Vec<u8>)>,
    pub memory_write: Option<fn(address: &str, bytes: &[u8]) -> String>,
    /// The same, where one command does not write them all.
    pub memory_writes: Option<fn(address: u64, bytes: &[u8]) -> Vec<String>>,
    /// The expression whose value is an address as a plain number.
    pub address_of: fn(&str) -> String,
    /// The expression for what is at an address, good in any frame.
    pub at_address: Option<fn(address: &str, kind: &str) -> String>,
    /// At an address, or of the current function; so many instructions; with source lines between them.
    pub disassemble: Option<fn(address: Option<&str>, count: Option<u32>, mixed: bool) -> String>,
    pub jump: Option<fn(file: &str, line: u32) -> String>,
    pub watch: Option<Watching>,
    /// The expression, in the frame of a throw, whose value names the thrown type, and whether that is the one meant.
    pub thrown_type: Option<(&'static str, fn(value: &str, wanted: &str) -> bool)>,
    /// Given before the breakpoints are set; where one fails, the start does.
    pub prepare: fn(&Target) -> Vec<String>,
    /// Given when the adapter says that the target is there: it fails where that is not so.
    pub settled: fn(&Target) -> Option<String>,
    /// How it is asked what a stop was for where its event does not say, and how that is read.
    pub why: Option<(&'static str, fn(&str) -> Option<Reason>)>,
    /// Answers with the debugger's version, where the protocol does not tell it.
    pub version: Option<&'static str>,
    pub reverse: Option<Reverse>,
    /// How it is asked which threads stopped at the same moment, where only one is told of, and how their stops are read.
    pub also_stopped: Option<(&'static str, fn(&str) -> Vec<crate::dap::types::StoppedBody>)>,
    /// Lets the program go where the request would not say that it can't; answers at once.
    pub go: Option<&'static str>,
    /// How hits are collected where they happen, without a stop.
    pub trace: Option<Tracing>,
}

/// Going back in a recording by native commands. Those that move the program answer at once; a stop follows.
#[derive(Debug, Clone, Copy)]
pub struct Reverse {
    /// Begins a recording where the program stands.
    pub record: &'static str,
    pub back: &'static str,
    pub to_breakpoint: &'static str,
    /// Part of the message where there is no recording.
    pub not_recorded: &'static str,
    /// Variables of the environment without which the recording would end early.
    pub env: &'static [(&'static str, &'static str)],
}

/// Data breakpoints by native commands.
#[derive(Debug, Clone, Copy)]
pub struct Watching {
    pub set: fn(expression: &str, access: Access) -> String,
    /// The debugger's own number of the one just set.
    pub number: fn(&str) -> Option<u32>,
    pub condition: fn(number: u32, condition: &str) -> String,
    pub remove: fn(number: u32) -> String,
    pub list: &'static str,
    /// Each number with its value before and now.
    pub values: fn(&str) -> Vec<(u32, Option<String>, Option<String>)>,
    /// Those whose variables are gone, and which went with them.
    pub gone: fn(&str) -> Vec<u32>,
    /// The number in a `stopped` event.
    pub stopped: fn(&crate::dap::types::StoppedBody) -> Option<u32>,
}

/// What a data breakpoint stops on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    Write,
    Read,
    Either,
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
    /// A file that the program is to run, below the private folder: a script (`node_modules/x/main.js`) or a jar. Where
    /// one is named, `programs` are those that can run it.
    pub file: Option<&'static str>,
    /// Where editors keep the file, or else the program: below their folders of extensions, or `~/…`. A `*` is a version,
    /// highest first (`someone.x-*/adapter/x`).
    pub extensions: &'static [&'static str],
    /// The oldest version that works.
    pub least: Option<Least>,
}

/// The oldest version of an adapter that can be used.
#[derive(Debug, Clone, Copy)]
pub struct Least {
    pub version: &'static [u32],
    /// What older ones lack (`has no DAP`).
    pub lacks: &'static str,
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
    /// An npm package with its version, installed into the private folder.
    pub npm: Option<&'static str>,
    /// A Go module's command with its version (`example.org/cmd/x@v1.2.3`), built into the private folder's `bin`.
    pub go: Option<&'static str>,
    /// A crate with its version (`x@1.2.3`), built into the private folder's `bin`.
    pub cargo: Option<&'static str>,
    /// Maven artifacts (`group:name:version`), fetched with all they need into the private folder.
    pub maven: &'static [&'static str],
    /// What works where a version that can be had is too old.
    pub instead: &'static [&'static str],
    /// Why it needs no installation beyond the language itself, or can't be installed: what the user is told.
    pub note: Option<&'static str>,
}

impl Install {
    /// Nothing is installed; the base for those that name a few ways.
    pub const NONE: Self = Self {
        setup_name: "",
        apt: &[],
        brew: None,
        dnf: None,
        pip: None,
        npm: None,
        go: None,
        cargo: None,
        maven: &[],
        instead: &[],
        note: None,
    };
}

impl Find {
    /// One or more programs on PATH; the base for others.
    pub const fn programs(programs: &'static [&'static str]) -> Self {
        Self {
            programs,
            versions: 0..=0,
            xcrun: None,
            python_module: None,
            version_args: &["--version"],
            file: None,
            extensions: &[],
            least: None,
        }
    }
}

/// An adapter on this machine.
#[derive(Debug, Clone)]
pub struct Found {
    pub adapter: &'static Adapter,
    /// The executable; for a Python module, a script or a jar, what runs it.
    pub program: PathBuf,
    /// Extra arguments from the configuration.
    pub args: Vec<String>,
    /// The folder a Python module was found in, where it is not the interpreter's own.
    pub module_path: Option<PathBuf>,
    /// The script or jar that `program` runs, where [`Find::file`] names one.
    pub file: Option<PathBuf>,
    pub version: Option<String>,
}

impl Found {
    /// A program, and nothing more known about it.
    #[must_use]
    pub const fn program(adapter: &'static Adapter, program: PathBuf) -> Self {
        Self { adapter, program, args: Vec::new(), module_path: None, file: None, version: None }
    }
}

/// The debuggee's three streams, as paths.
#[derive(Debug, Clone)]
pub struct Stdio {
    pub stdin: String,
    pub stdout: String,
    pub stderr: String,
}

impl Stdio {
    /// Where the program's standard input comes from.
    #[must_use]
    pub fn input(&self, launch: &Launch) -> String {
        match &launch.stdin {
            Stdin::Interactive => self.stdin.clone(),
            Stdin::File(path) => path.to_string_lossy().into_owned(),
        }
    }
}

/// How the names of a frame's arguments are asked for, and how they are read from the answer.
pub type Arguments = (fn(frame: &Frame, above: usize) -> String, fn(&str) -> Vec<String>);

/// See [`Quirks::hit_alone`].
pub type Alone = ([&'static str; 2], fn(u64, u64) -> String);

/// Named differences, as data.
#[derive(Debug)]
pub struct Quirks {
    /// Contexts `print` may use, in order; a later one is used only when the expression is seen to be free of effects.
    pub print_contexts: &'static [&'static str],
    /// `print` evaluates nothing that looks like a call or an assignment: there is no context without effects.
    pub prints_only_pure: bool,
    /// The context of `eval`.
    pub eval_context: &'static str,
    /// `raw` text → the expression for `evaluate` in context `repl`.
    pub raw: fn(&str) -> String,
    /// What a `raw` answer says, without the adapter's echo of the question.
    pub raw_answer: fn(&str) -> String,
    /// Passes are counted before the condition is looked at; elsewhere only those where it is true.
    pub counts_before_condition: bool,
    /// The hit condition that stops at pass N and every later one.
    pub hit_condition: fn(u32) -> String,
    /// The condition that is true at pass N and every later one, where hit conditions do not count as they should.
    pub hits_in_condition: Option<fn(id: u32, hits: u32, condition: Option<&str>) -> String>,
    /// Requests sent when the adapter is ready for configuration, before breakpoints: (command, arguments as JSON).
    pub prelude: &'static [(&'static str, &'static str)],
    /// The adapter's ids of the breakpoints that a stop was made by.
    pub hit_ids: fn(&crate::dap::types::StoppedBody) -> Vec<i64>,
    /// Exceptions that are no stop: the program goes on by itself.
    pub ignored_exceptions: &'static [&'static str],
    /// Exceptions by which a test says that it is skipped: no stop where only its failures are wanted.
    pub skip_exceptions: &'static [&'static str],
    /// The expression that is `True` where an exception that is said to leave the program's code was handled in it after
    /// all; asked where only the failures of tests are wanted.
    pub handled: Option<&'static str>,
    /// The expression that fails when a condition can't be parsed, evaluated while the program is held.
    pub check_condition: Option<fn(&str) -> String>,
    /// A stop tells by itself whether its condition failed (`conditionError`); elsewhere the condition is evaluated again.
    pub tells_condition_errors: bool,
    /// An error that says: the expression would have changed the program, and was not evaluated.
    pub is_impure: fn(message: &str) -> bool,
    /// What the language's runtime writes to standard error because it is debugged: no part of the program's output.
    pub stderr_noise: &'static [&'static str],
    /// Why a condition could not be evaluated, where such a stop is told as an exception.
    pub condition_error: fn(&crate::dap::types::StoppedBody) -> Option<String>,
    /// Whether what was said of a breakpoint is about its condition, not its place.
    pub is_about_condition: fn(message: &str) -> bool,
    /// The assignment that `set` evaluates where there is no `setExpression`.
    pub assignment: fn(&str, &str) -> String,
    /// Assignments are for the innermost frame alone; in others a variable is set by its name.
    pub assigns_in_top: bool,
    /// The id that the innermost frame gets when a stack is asked for first after a stop.
    pub top_frame: Option<i64>,
    /// Stacks can be read while the program runs.
    pub stacks_while_running: bool,
    /// A function that `eval` calls may run into a breakpoint, and stays there.
    pub calls_stop: bool,
    /// How `eval` asks again, for what was refused with this message the first time.
    pub eval_again: fn(expression: &str, message: &str) -> Option<String>,
    /// How the names of a frame's arguments are asked for (context `repl`), and read from the answer. `above` counts
    /// the inner frames that stand at the same function and line.
    pub arguments: Arguments,
    /// The names of the arguments of the function around a line, read from its source where the adapter can't tell.
    pub source_arguments: Option<fn(source: &str, line: u32) -> Vec<String>>,
    /// What an exception says, where the event tells it in a way of its own.
    pub exception_text: fn(&crate::dap::types::StoppedBody) -> Option<String>,
    /// `catch` words that are function breakpoints here: (word, function); a word may have several.
    pub catch_functions: &'static [(&'static str, &'static str)],
    /// Whether such a function breakpoint tells what another stop tells, or has told, better; by the frames' functions.
    pub is_retold: fn(word: &str, functions: &[&str]) -> bool,
    /// `catch` words and the adapter's filters they mean.
    pub catch_words: &'static [(&'static str, &'static str)],
    /// Variables that are the adapter's own furniture, not the program's.
    pub is_furniture: fn(name: &str, value: &str) -> bool,
    /// The furniture that tells how many items a value has.
    pub length: Option<&'static str>,
    /// Frames of the language's runtime, below the program's own.
    pub is_runtime: fn(function: &str, file: Option<&str>) -> bool,
    /// Files of the language's own library: an exception with nothing else on the stack is not the program's.
    pub is_library: fn(file: &str) -> bool,
    /// A function's name as its author would say it.
    pub function_name: fn(&str) -> String,
    /// A thread's own name, without what the adapter puts before it.
    pub thread_name: fn(&str) -> String,
    /// What an error message says, without the adapter's own decoration.
    pub error_text: fn(&str) -> String,
    /// A value's text without padding: what the reader wants to see.
    pub tidy: fn(value: &str, kind: Option<&str>) -> String,
    /// A type's name as its author would say it.
    pub type_name: fn(&str) -> String,
    /// A value whose text says little without its children.
    pub is_opaque: fn(value: &str, kind: Option<&str>) -> bool,
    /// The scopes of all frames have the same references, good for the frame asked for last.
    pub shares_scopes: bool,
    /// The name to try for a function that was not found by the one the user wrote, or by too many of that name.
    pub function_again: fn(name: &str, message: &str) -> Option<String>,
    /// An `evaluate` (context `repl`) after which a frame has a scope of this name (`globals`), which it has not before.
    pub scope_command: fn(scope: &str) -> Option<&'static str>,
    /// Why a function's name can't be checked before it is called; a breakpoint on one is pending until then.
    pub any_function: Option<&'static str>,
    /// Children are given from `start` on and no more than `count`.
    pub pages: bool,
    /// Only numbered children are paged, and only where they alone are asked for.
    pub pages_indexed: bool,
    /// A child that stands for its parent: what a pointer points at, what an interface holds.
    pub passes_through: fn(parent: Option<&str>, child: &str) -> bool,
    /// To ask for more children than there are is an error.
    pub pages_exactly: bool,
    /// How many children a value has, where its text or type tells.
    pub count: fn(value: &str, kind: Option<&str>) -> Option<u64>,
    /// The expression for a part of a sequence, where children can't be paged.
    pub slice: Option<fn(expression: &str, from: u32, count: u32) -> String>,
    /// The signal that an exit code means, where the kernel's own word is not to be had.
    pub exit_signal: fn(code: i64, last_signal: Option<&str>) -> Option<String>,
    /// How long a disconnect that leaves the program running may take before it is taken as done.
    pub detach_grace: Duration,
    /// An `evaluate` (context `repl`) that detaches faster than the request does.
    pub detach_command: Option<&'static str>,
    /// A disconnect ends a program that the adapter started: to be let go, it is let run, and the adapter is ended.
    pub left_abruptly: bool,
    /// A server for one client ends its program when that leaves, and says so by not offering `supportTerminateDebuggee`;
    /// one for many leaves it as it stands, and it is let run first.
    pub serves_many: bool,
    /// A step that another thread's breakpoint interrupted is finished by the next `continue`, and by nothing else.
    pub keeps_step: bool,
    /// Threads that hit a breakpoint at one moment: only one is told of. Those that may have, by their names.
    pub tells_one_hit: Option<fn(thread: &str) -> bool>,
    /// Expressions for addresses, and the one made of their numbers that is `true` where no other thread can have hit
    /// anything at this moment: those that may have need not be looked for.
    pub hit_alone: Option<Alone>,
    /// A disconnect ends the program whatever it says; only the command lets it go, which wants it to stand still.
    pub disconnect_kills: bool,
    /// The message of a request that is refused because the program runs.
    pub not_stopped: Option<&'static str>,
    /// A held program is not started yet.
    pub starts_late: bool,
    /// The adapter's own choice of exceptions is taken where the user made none.
    pub catches_by_default: bool,
    /// A throw that is caught is told as a breakpoint that nobody set.
    pub throws_as_breakpoints: bool,
    /// The program's number in what the adapter says on its console, where no event has it.
    pub pid_in_output: fn(&str) -> Option<u32>,
    /// The reason of a stop that ends a call made by an expression: the program stands where it stood before.
    pub call_reason: Option<&'static str>,
    /// An `evaluate` (context `repl`) that makes the adapter forget a step that a breakpoint interrupted; without it the
    /// next `continue` would end where the step would have.
    pub forget_step: Option<&'static str>,
    /// Values have addresses, and `&(x)` is one.
    pub has_addresses: bool,
    /// How what a function returned is asked for after a step out of it (context `repl`), and read from the answer as
    /// type and value; None where it is among the locals.
    pub returned: Option<(&'static str, fn(&str) -> Option<(String, String)>)>,
    /// What can't be an expression, though the adapter would answer it with something.
    pub is_nonsense: fn(&str) -> bool,
    /// Commands of the debugger work only once there is a program, not while it is held.
    pub commands_need_a_program: bool,
    /// The program's streams are ours only through a `runInTerminal` request.
    pub runs_in_terminal: bool,
    /// An attached program runs on until it is paused.
    pub attach_runs: bool,
    /// Why a process that runs already can't be attached to.
    pub no_attach: Option<&'static str>,
    /// The function where a program begins, for adapters whose own stop on entry is in the loader.
    pub entry_function: Option<&'static str>,
    /// What the adapter's first answer may take at least, whatever the configured limit: its first start may have to
    /// compile it.
    pub first_answer: Duration,
    /// What the program prints comes as `output` events: its streams are the adapter's own.
    pub output_events: bool,
    /// The program is a coding agent: any command is one, breakpoints are on what it does, it tells of itself what is to
    /// be recorded, can be held only between its doings, and goes on when its debugger is gone.
    pub agents: bool,
}

/// Every built-in adapter, in the order they are preferred.
pub const ADAPTERS: &[&Adapter] = &[
    &lldb::LLDB,
    &gdb::GDB,
    &codelldb::CODELLDB,
    &debugpy::DEBUGPY,
    &delve::DELVE,
    &java::JAVA,
    &node::NODE,
    &ruby::RUBY,
    &php::PHP,
    &perl::PERL,
    &cmake::CMAKE,
];

/// Every adapter: the built-in ones, then the user's own.
#[must_use]
pub fn all() -> Vec<&'static Adapter> {
    ADAPTERS.iter().copied().chain(own::all().into_iter().map(|own| &own.adapter)).collect()
}

/// Finds an adapter by its id or another name for it; also the one for agents, which no language leads to.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Adapter> {
    all().into_iter().chain([&agent::AGENT]).find(|adapter| adapter.id == name || adapter.aliases.contains(&name))
}

/// The adapter preferred for a language.
#[must_use]
pub fn for_language(language: &str) -> Option<&'static Adapter> {
    all().into_iter().find(|adapter| adapter.languages.contains(&language))
}
