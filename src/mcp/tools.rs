//! The tools: the commands of the catalogue in a dozen groups, each call a command line.
//!
//! A tool's arguments become the words that a user would type, so that a tool can do nothing that the command line can't,
//! and mistakes are told in the same sentences.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::commands::do_;

/// One tool.
#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    /// The arguments, as a JSON Schema's `properties`.
    pub properties: &'static str,
    pub required: &'static [&'static str],
    /// It changes neither the program nor the sessions.
    pub reads: bool,
    /// It may change or end what can't be had back.
    pub destroys: bool,
    /// The commands that a call stands for.
    pub words: fn(&Arguments) -> Result<Vec<Vec<String>>, String>,
}

/// The arguments of a call, and which of them were looked at: one that was not does nothing.
#[derive(Debug)]
pub struct Arguments<'a> {
    given: &'a Map<String, Value>,
    seen: RefCell<BTreeSet<String>>,
}

/// What a call needs beside its own arguments.
pub const SESSION: &str =
    r#"{"session":{"type":"string","description":"id or name; default: the newest started from cwd"}}"#;

pub const TOOLS: &[Tool] = &[
    Tool {
        name: "debug_run",
        description: "Start a program under its debugger and run to the first stop: a breakpoint, a crash, an exception, or its \
                      end. Put the command you would type (python app.py, cargo test x, go run ., ./a.out) into `command`; it \
                      is built if need be. Answers place, source, locals and stack. The session lives until debug_sessions \
                      ends it.",
        properties: r#"{"command":{"type":"array","items":{"type":"string"},"description":"program and arguments"},"break":{"type":"array","items":{"type":"string"},"description":"file:line or function"},"test":{"type":"string","description":"instead of command: run this one test, stop where it fails"},"attach":{"type":"string","description":"instead: pid, process name or host:port"},"core":{"type":"string","description":"instead: a core file"},"config":{"type":"string","description":"instead: a launch.json configuration"},"hold":{"type":"boolean","description":"hold it before it begins"},"record":{"type":"boolean","description":"to go back later (gdb; slow)"},"stop_on_entry":{"type":"boolean"},"cwd":{"type":"string","description":"folder that this call is made in"},"env":{"type":"array","items":{"type":"string"},"description":"K=V"},"stdin":{"type":"string","description":"file"},"adapter":{"type":"string"},"name":{"type":"string"},"wait":{"type":"number","description":"s, default 25; then: running"}}"#,
        required: &[],
        reads: false,
        destroys: false,
        words: run,
    },
    Tool {
        name: "debug_trace",
        description: "Run a program once and tell what expressions were each time a place was reached, without stopping. The \
                      first choice for 'which value goes wrong, and when'. Without a command: from where the session stands \
                      to its next stop.",
        properties: r#"{"at":{"type":"array","items":{"type":"string"},"description":"'file:line: expr, expr' or 'function: expr'"},"calls":{"type":"array","items":{"type":"string"},"description":"function globs: tells arguments, value, depth of each call"},"watch":{"type":"array","items":{"type":"string"},"description":"variables: tells each write"},"command":{"type":"array","items":{"type":"string"}},"when":{"type":"string","description":"only where this is true"},"every":{"type":"integer"},"max_hits":{"type":"integer"},"timeout":{"type":"number","description":"s, default 45"},"cwd":{"type":"string"},"env":{"type":"array","items":{"type":"string"}},"stdin":{"type":"string"},"adapter":{"type":"string"}}"#,
        required: &[],
        reads: false,
        destroys: false,
        words: trace,
    },
    Tool {
        name: "debug_break",
        description: "Set, list or change breakpoints; they are kept for later runs. Without arguments: list.",
        properties: r#"{"at":{"type":"array","items":{"type":"string"},"description":"file:line or function"},"if":{"type":"string","description":"condition"},"log":{"type":"string","description":"print 'x={x}' instead of stopping"},"hits":{"type":"integer","description":"stop from the Nth hit"},"once":{"type":"boolean"},"watch":{"type":"string","description":"stop when this variable is written"},"access":{"type":"string","enum":["write","read","both"],"description":"with watch"},"catch":{"type":"array","items":{"type":"string"},"description":"stop at exceptions: raised, uncaught, throw, panic, none"},"thread":{"type":"integer"},"remove":{"type":"array","items":{"type":"integer"}},"enable":{"type":"array","items":{"type":"integer"}},"disable":{"type":"array","items":{"type":"integer"}}}"#,
        required: &[],
        reads: false,
        destroys: false,
        words: breaks,
    },
    Tool {
        name: "debug_continue",
        description: "Let the program run on and answer where it stops next. `until` and `jump` need a place.",
        properties: r#"{"how":{"type":"string","enum":["continue","next","step","finish","until","pause","await","jump","back","reverse-continue","restart"]},"place":{"type":"string"},"count":{"type":"integer","description":"steps"},"into":{"type":"string","description":"with step: this function"},"wait":{"type":"number","description":"s, default 25; then: running"}}"#,
        required: &[],
        reads: false,
        destroys: false,
        words: resume,
    },
    Tool {
        name: "debug_inspect",
        description: "Look at the stopped program: source, locals and stack around the current place (context), the whole stack, \
                      threads, what it printed, the exception it stopped on.",
        properties: r#"{"what":{"type":"string","enum":["context","backtrace","threads","locals","args","source","exception","output","status","modules","memory","registers","disassemble"]},"place":{"type":"string","description":"with source: file:line or function; memory, disassemble: address or &x; registers: names"},"count":{"type":"integer","description":"frames, lines, bytes or instructions"},"all":{"type":"boolean","description":"every thread's stack; globals too; all output"},"frame":{"type":"integer"},"thread":{"type":"integer"},"depth":{"type":"integer","description":"of values; with backtrace: locals too"},"full":{"type":"boolean","description":"cut nothing"}}"#,
        required: &[],
        reads: true,
        destroys: false,
        words: inspect,
    },
    Tool {
        name: "debug_print",
        description: "Show expressions in the selected frame, without side effects.",
        properties: r#"{"expressions":{"type":"array","items":{"type":"string"}},"frame":{"type":"integer"},"thread":{"type":"integer"},"depth":{"type":"integer"},"from":{"type":"integer","description":"first item of a long list"},"format":{"type":"string","enum":["hex","bin","dec","addr","str"]},"full":{"type":"boolean"}}"#,
        required: &["expressions"],
        reads: true,
        destroys: false,
        words: print,
    },
    Tool {
        name: "debug_eval",
        description: "Change a variable (`set`), or evaluate what may call functions and change the program.",
        properties: r#"{"expressions":{"type":"array","items":{"type":"string"}},"set":{"type":"string","description":"'x = 3'"},"frame":{"type":"integer"},"thread":{"type":"integer"}}"#,
        required: &[],
        reads: false,
        destroys: true,
        words: eval,
    },
    Tool {
        name: "debug_input",
        description: "Write a line to the program's standard input.",
        properties: r#"{"text":{"type":"string"},"eof":{"type":"boolean","description":"end the input"}}"#,
        required: &[],
        reads: false,
        destroys: false,
        words: input,
    },
    Tool {
        name: "debug_sessions",
        description: "List the sessions, choose the one that later calls are about (`use`), or end them: `stop` ends the program \
                      and all it started, `detach` lets it go on.",
        properties: r#"{"action":{"type":"string","enum":["list","use","stop","stop_all","detach"]}}"#,
        required: &[],
        reads: false,
        destroys: true,
        words: sessions,
    },
    Tool {
        name: "debug_do",
        description: "Give any Bugeye commands in order, as on its command line, in one call: 'break app.py:7', 'continue', \
                      'print x', 'memory read &x', 'raw COMMAND' (the debugger's own). 'help' lists all.",
        properties: r#"{"commands":{"type":"array","items":{"type":"string"}}}"#,
        required: &["commands"],
        reads: false,
        destroys: true,
        words: several,
    },
    Tool {
        name: "debug_setup",
        description: "Which debuggers are here (doctor), or install one: debugpy, lldb, delve, node, java, ruby, php, perl, gdb.",
        properties: r#"{"install":{"type":"string"}}"#,
        required: &[],
        reads: false,
        destroys: false,
        words: setup,
    },
];

impl<'a> Arguments<'a> {
    pub fn new(given: &'a Map<String, Value>) -> Self {
        Self { given, seen: RefCell::default() }
    }

    /// An argument that was given, and that nobody asked for.
    pub fn idle(&self) -> Option<&'a str> {
        let seen = self.seen.borrow();
        let mut given = self.given.iter().filter(|(_, value)| !value.is_null() && **value != Value::Bool(false));
        given.find(|(name, _)| !seen.contains(*name)).map(|(name, _)| name.as_str())
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.seen.borrow_mut().insert(name.to_string());
        self.given.get(name)
    }

    pub fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(format!("`{name}` is to be a text, not {other}")),
        }
    }

    /// A list, or one text that stands for a list of one.
    fn list(&self, name: &str) -> Result<Vec<String>, String> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text.clone()),
                    Value::Number(number) => Ok(number.to_string()),
                    other => Err(format!("`{name}` is to be a list of texts, and has {other}")),
                })
                .collect(),
            _ => Ok(self.text(name)?.into_iter().collect()),
        }
    }

    fn is(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(is)) => Ok(*is),
            Some(other) => Err(format!("`{name}` is to be true or false, not {other}")),
        }
    }
}

/// The words of one command.
struct Words<'a> {
    from: &'a Arguments<'a>,
    words: Vec<String>,
}

impl<'a> Words<'a> {
    fn new(from: &'a Arguments<'a>, command: &str) -> Self {
        Self { from, words: vec![command.to_string()] }
    }

    fn word(mut self, word: impl Into<String>) -> Self {
        self.words.push(word.into());
        self
    }

    /// `--flag VALUE`, where the argument is given. Written as one word, so that no value can be taken for a flag.
    fn flag(mut self, argument: &str, flag: &str) -> Result<Self, String> {
        if let Some(value) = self.from.text(argument)? {
            self.words.push(format!("--{flag}={value}"));
        }
        Ok(self)
    }

    fn flags(mut self, argument: &str, flag: &str) -> Result<Self, String> {
        for value in self.from.list(argument)? {
            self.words.push(format!("--{flag}={value}"));
        }
        Ok(self)
    }

    fn switch(mut self, argument: &str, flag: &str) -> Result<Self, String> {
        if self.from.is(argument)? {
            self.words.push(format!("--{flag}"));
        }
        Ok(self)
    }

    /// A file. What stands for standard input elsewhere would be the protocol's own.
    fn file(self, argument: &str, flag: &str) -> Result<Self, String> {
        match self.from.text(argument)?.as_deref() {
            Some("-") => Err(format!("`{argument}` is to be a file; debug_input writes to a program that runs")),
            _ => self.flag(argument, flag),
        }
    }

    fn place_of_frame(self) -> Result<Self, String> {
        self.flag("frame", "frame")?.flag("thread", "thread")
    }

    /// The program; a single text is parted into words as a shell does it.
    fn command_line(mut self) -> Result<Self, String> {
        let command = match self.from.get("command") {
            Some(Value::String(line)) => one_command(line)?,
            _ => self.from.list("command")?,
        };
        if !command.is_empty() {
            self.words.push("--".into());
            self.words.extend(command);
        }
        Ok(self)
    }

    fn done(self) -> Vec<Vec<String>> {
        vec![self.words]
    }
}

/// Commands in a text, as `do` takes them.
fn split(text: &str) -> Result<Vec<Vec<String>>, String> {
    do_::split(text).map_err(|failure| failure.message)
}

/// The words of one command line. There is no shell here to do more with it.
fn one_command(line: &str) -> Result<Vec<String>, String> {
    let operator = |word: &String| ["|", "||", "&", "&&", ">", ">>", "<", "2>", "2>&1"].contains(&word.as_str());
    match split(line)?.as_slice() {
        [words] if !line.contains('\n') && !words.iter().any(operator) => Ok(words.clone()),
        [] => Ok(Vec::new()),
        _ => Err(
            "`command` is one program with its arguments, and no shell reads it: give a list of words; a script of a \
                  shell is [\"sh\", \"-c\", \"…\"]"
                .into(),
        ),
    }
}

fn run(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    if let Some(target) = arguments.text("attach")? {
        let words =
            Words::new(arguments, "attach").flag("adapter", "adapter")?.flag("name", "name")?.flag("wait", "wait")?;
        return Ok(words.word("--").word(target).done());
    }
    if let Some(test) = arguments.text("test")? {
        let words = Words::new(arguments, "test")
            .flags("break", "break")?
            .flags("env", "env")?
            .flag("adapter", "adapter")?
            .flag("name", "name")?
            .flag("wait", "wait")?;
        return Ok(words.word("--").word(test).done());
    }
    if arguments.text("core")?.is_some() {
        let words =
            Words::new(arguments, "start").flag("core", "core")?.flag("adapter", "adapter")?.flag("name", "name")?;
        // The program that it is of, if the file does not tell.
        return Ok(match arguments.list("command")?.into_iter().next() {
            Some(program) if program.starts_with('-') => return Err(format!("`{program}` is no program")),
            Some(program) => words.word(program).done(),
            None => words.done(),
        });
    }
    let held = arguments.is("hold")?;
    let words = Words::new(arguments, if held { "start" } else { "run" })
        .flags("break", "break")?
        .flag("config", "config")?
        .flags("env", "env")?
        .file("stdin", "stdin")?
        .flag("adapter", "adapter")?
        .flag("name", "name")?
        .switch("record", "record")?
        .switch("stop_on_entry", "stop-on-entry")?;
    let words = if held { words } else { words.flag("wait", "wait")? };
    Ok(words.command_line()?.done())
}

fn trace(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let words = Words::new(arguments, "trace")
        .flags("at", "at")?
        .flags("calls", "calls")?
        .flags("watch", "watch")?
        .flag("when", "when")?
        .flag("every", "every")?
        .flag("max_hits", "max-hits")?
        .flag("timeout", "timeout")?
        .flags("env", "env")?
        .file("stdin", "stdin")?
        .flag("adapter", "adapter")?;
    Ok(words.command_line()?.done())
}

fn breaks(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let mut commands = Vec::new();
    for (argument, command) in [("remove", "unbreak"), ("enable", "enable"), ("disable", "disable")] {
        let ids = arguments.list(argument)?;
        if !ids.is_empty() {
            commands.push(std::iter::once(command.to_string()).chain(ids).collect());
        }
    }
    for place in arguments.list("at")? {
        let words = Words::new(arguments, "break")
            .flag("if", "if")?
            .flag("log", "log")?
            .flag("hits", "hit-count")?
            .flag("thread", "thread")?
            .switch("once", "once")?;
        commands.extend(words.word("--").word(place).done());
    }
    if let Some(variable) = arguments.text("watch")? {
        let words = Words::new(arguments, "watch").flag("if", "condition")?.flag("thread", "thread")?;
        let words = match arguments.text("access")?.as_deref() {
            None | Some("write") => words,
            Some("read") => words.word("--read"),
            Some("both") => words.word("--access"),
            Some(other) => return Err(format!("`access` is write, read or both, not {other}")),
        };
        commands.extend(words.word("--").word(variable).done());
    }
    for what in arguments.list("catch")? {
        commands.push(["catch", "--"].into_iter().chain(what.split_whitespace()).map(str::to_string).collect());
    }
    if commands.is_empty() {
        commands.push(vec!["breaks".into()]);
    }
    Ok(commands)
}

fn resume(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let how = arguments.text("how")?.unwrap_or_else(|| "continue".into());
    let words = Words::new(arguments, &how);
    let words = match how.as_str() {
        "continue" | "next" | "finish" | "back" => words.flag("count", "count")?.flag("wait", "wait")?,
        "step" => words.flag("count", "count")?.flag("into", "into")?.flag("wait", "wait")?,
        "until" | "reverse-continue" => words.flag("wait", "wait")?,
        "restart" => words.word("--run").flag("wait", "wait")?,
        "await" => words.flag("wait", "timeout")?,
        "pause" | "jump" => words,
        other => return Err(unknown("how", other)),
    };
    if !["until", "jump"].contains(&how.as_str()) {
        return Ok(words.done());
    }
    match arguments.text("place")? {
        Some(place) => Ok(words.word("--").word(place).done()),
        None => Err(format!("`{how}` needs a `place`: file:line")),
    }
}

/// A word that is none of those an argument may have; the schema lists them.
fn unknown(argument: &str, given: &str) -> String {
    let known = TOOLS.iter().find_map(|tool| {
        let properties: Map<String, Value> = serde_json::from_str(tool.properties).ok()?;
        let words: Vec<String> = serde_json::from_value(properties.get(argument)?.get("enum")?.clone()).ok()?;
        Some(words.join(", "))
    });
    format!("`{argument}` is none of {}: {given}", known.unwrap_or_default())
}

fn inspect(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let what = arguments.text("what")?.unwrap_or_else(|| "context".into());
    let words = Words::new(arguments, &what);
    let words = match what.as_str() {
        "context" => words.flag("count", "context")?.place_of_frame()?,
        "locals" => {
            let words = if arguments.is("all")? { words.word("--scope=all") } else { words };
            words.place_of_frame()?.flag("depth", "depth")?.switch("full", "full")?
        }
        "args" => words.place_of_frame()?.flag("depth", "depth")?.switch("full", "full")?,
        "backtrace" => {
            let words = words.flag("count", "limit")?.switch("all", "all")?.switch("full", "full")?;
            let words = if arguments.text("depth")?.is_some() { words.word("--locals") } else { words };
            words.flag("depth", "depth")?.flag("thread", "thread")?
        }
        "memory" => words.word("read").flag("count", "count")?.place_of_frame()?,
        "disassemble" => words.flag("count", "count")?.place_of_frame()?,
        "registers" => words.place_of_frame()?,
        "source" => words.flag("count", "context")?,
        "output" => words.flag("count", "tail")?.switch("all", "all")?,
        "threads" | "exception" | "status" | "modules" => words,
        other => return Err(unknown("what", other)),
    };
    if !["memory", "disassemble", "source", "registers"].contains(&what.as_str()) {
        return Ok(words.done());
    }
    match arguments.text("place")? {
        Some(names) if what == "registers" => Ok(names.split_whitespace().fold(words.word("--"), Words::word).done()),
        Some(place) => Ok(words.word("--").word(place).done()),
        None if what == "memory" => Err("`memory` needs a `place`: an address, or &x".into()),
        None => Ok(words.done()),
    }
}

fn print(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    if arguments.list("expressions")?.is_empty() {
        return Err("nothing to show: give `expressions`; all locals: debug_inspect".into());
    }
    let words = Words::new(arguments, "print")
        .place_of_frame()?
        .flag("depth", "depth")?
        .flag("from", "from")?
        .flag("format", "format")?
        .switch("full", "full")?;
    Ok(words.flags("expressions", "expr")?.done())
}

fn eval(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let mut commands = Vec::new();
    if let Some(change) = arguments.text("set")? {
        commands.extend(Words::new(arguments, "set").place_of_frame()?.word("--").word(change).done());
    }
    for expression in arguments.list("expressions")? {
        commands.extend(Words::new(arguments, "eval").place_of_frame()?.word("--").word(expression).done());
    }
    if commands.is_empty() {
        return Err("nothing to evaluate: give `expressions`, or `set`; to only read: debug_print".into());
    }
    Ok(commands)
}

fn input(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let words = Words::new(arguments, "input").switch("eof", "eof")?;
    match arguments.text("text")? {
        Some(text) => Ok(words.word("--").word(text).done()),
        None if arguments.is("eof")? => Ok(words.done()),
        None => Err("give a `text`, or `eof`".into()),
    }
}

fn sessions(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let words = |command| Words::new(arguments, command);
    Ok(match arguments.text("action")?.as_deref() {
        None | Some("list") => words("sessions").done(),
        Some("use") => match arguments.text("session")? {
            Some(session) => words("use").word("--").word(session).done(),
            None => return Err("`use` needs a `session`".into()),
        },
        Some("stop") => words("stop").done(),
        Some("stop_all") => words("stop").word("--all").done(),
        Some("detach") => words("detach").done(),
        Some(other) => return Err(unknown("action", other)),
    })
}

fn several(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let commands = split(&arguments.list("commands")?.join("\n"))?;
    if commands.is_empty() {
        return Err("`commands` is empty; for instance: [\"break app.py:7\", \"continue\", \"print x\"]".into());
    }
    // A user's habit: the program's own name comes first.
    let bare = |words: Vec<String>| match words.split_first() {
        Some((first, rest)) if first == "bugeye" && !rest.is_empty() => rest.to_vec(),
        _ => words,
    };
    Ok(commands.into_iter().map(bare).collect())
}

fn setup(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    Ok(vec![match arguments.text("install")? {
        Some(name) => vec!["setup".into(), "--".into(), name],
        None => vec!["doctor".into()],
    }])
}

#[cfg(test)]
mod tests;
