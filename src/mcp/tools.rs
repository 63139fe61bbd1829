//! The tools: the commands of the catalogue in a dozen groups, each call a command line.
//!
//! A tool's arguments become the words that a user would type, so that a tool can do nothing that the command line can't,
//! and mistakes are told in the same sentences.

use serde_json::{Map, Value};

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

/// The arguments of a call.
#[derive(Debug)]
pub struct Arguments<'a>(pub &'a Map<String, Value>);

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
        properties: r#"{"command":{"type":"array","items":{"type":"string"}},"break":{"type":"array","items":{"type":"string"},"description":"file:line or function"},"test":{"type":"string","description":"instead of command: run this one test, stop where it fails"},"attach":{"type":"string","description":"instead: pid, process name or host:port"},"core":{"type":"string","description":"instead: a core file"},"config":{"type":"string","description":"instead: a launch.json configuration"},"hold":{"type":"boolean","description":"hold it before it begins"},"stop_on_entry":{"type":"boolean"},"cwd":{"type":"string"},"env":{"type":"array","items":{"type":"string"},"description":"K=V"},"stdin":{"type":"string","description":"file"},"adapter":{"type":"string"},"name":{"type":"string"},"wait":{"type":"number","description":"s, default 25; then: running"}}"#,
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
        properties: r#"{"at":{"type":"array","items":{"type":"string"},"description":"'file:line: expr, expr' or 'function: expr'"},"calls":{"type":"array","items":{"type":"string"},"description":"function globs: tells arguments, value, depth of each call"},"watch":{"type":"array","items":{"type":"string"},"description":"variables: tells each write"},"command":{"type":"array","items":{"type":"string"}},"when":{"type":"string","description":"only where this is true"},"every":{"type":"integer"},"max_hits":{"type":"integer"},"timeout":{"type":"number"},"cwd":{"type":"string"},"env":{"type":"array","items":{"type":"string"}},"stdin":{"type":"string"},"adapter":{"type":"string"}}"#,
        required: &[],
        reads: false,
        destroys: false,
        words: trace,
    },
    Tool {
        name: "debug_break",
        description: "Set, list or change breakpoints; they are kept for later runs. Without arguments: list.",
        properties: r#"{"at":{"type":"array","items":{"type":"string"},"description":"file:line or function"},"if":{"type":"string","description":"condition"},"log":{"type":"string","description":"print 'x={x}' instead of stopping"},"hits":{"type":"integer","description":"stop from the Nth hit"},"once":{"type":"boolean"},"watch":{"type":"string","description":"stop when this variable is written"},"catch":{"type":"array","items":{"type":"string"},"description":"stop at exceptions: raised, uncaught, throw, panic, none"},"remove":{"type":"array","items":{"type":"integer"}},"enable":{"type":"array","items":{"type":"integer"}},"disable":{"type":"array","items":{"type":"integer"}}}"#,
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
        properties: r#"{"what":{"type":"string","enum":["context","backtrace","threads","locals","args","source","exception","output","status","modules","registers","disassemble"]},"place":{"type":"string","description":"with source"},"frame":{"type":"integer"},"thread":{"type":"integer"},"full":{"type":"boolean","description":"do not cut values"}}"#,
        required: &[],
        reads: true,
        destroys: false,
        words: inspect,
    },
    Tool {
        name: "debug_eval",
        description: "Show expressions in the selected frame, without side effects. With `set`: change a variable. With `effects`: \
                      evaluate what may call functions and change the program.",
        properties: r#"{"expressions":{"type":"array","items":{"type":"string"}},"set":{"type":"string","description":"'x = 3'"},"effects":{"type":"boolean"},"frame":{"type":"integer"},"thread":{"type":"integer"},"full":{"type":"boolean"}}"#,
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
        description: "List the sessions, or end them: `stop` ends the program and all it started, `detach` lets it go on.",
        properties: r#"{"action":{"type":"string","enum":["list","stop","stop_all","detach"]}}"#,
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

impl Arguments<'_> {
    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(format!("`{name}` is to be a text, not {other}")),
        }
    }

    /// A list, or one text that stands for a list of one.
    fn list(&self, name: &str) -> Result<Vec<String>, String> {
        match self.0.get(name) {
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
        match self.0.get(name) {
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

    fn place_of_frame(self) -> Result<Self, String> {
        self.flag("frame", "frame")?.flag("thread", "thread")
    }

    fn command_line(mut self) -> Result<Self, String> {
        let command = self.from.list("command")?;
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

fn run(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    if let Some(target) = arguments.text("attach")? {
        let words = Words::new(arguments, "attach").flag("adapter", "adapter")?.flag("name", "name")?;
        return Ok(words.word("--").word(target).done());
    }
    if let Some(test) = arguments.text("test")? {
        let words = Words::new(arguments, "test").flag("wait", "wait")?.flags("env", "env")?.flag("cwd", "cwd")?;
        return Ok(words.word("--").word(test).done());
    }
    let held = arguments.is("hold")? || arguments.text("core")?.is_some();
    let words = Words::new(arguments, if held { "start" } else { "run" })
        .flags("break", "break")?
        .flag("core", "core")?
        .flag("config", "config")?
        .flag("cwd", "cwd")?
        .flags("env", "env")?
        .flag("stdin", "stdin")?
        .flag("adapter", "adapter")?
        .flag("name", "name")?
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
        .flag("cwd", "cwd")?
        .flags("env", "env")?
        .flag("stdin", "stdin")?
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
            .switch("once", "once")?;
        commands.extend(words.word("--").word(place).done());
    }
    if let Some(variable) = arguments.text("watch")? {
        let words = Words::new(arguments, "watch").flag("if", "condition")?;
        commands.extend(words.word("--").word(variable).done());
    }
    for word in arguments.list("catch")? {
        commands.push(vec!["catch".into(), word]);
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
        "next" => words.flag("count", "count")?.flag("wait", "wait")?,
        "step" => words.flag("count", "count")?.flag("into", "into")?.flag("wait", "wait")?,
        "continue" | "finish" | "until" => words.flag("wait", "wait")?,
        "await" => words.flag("wait", "timeout")?,
        "pause" | "jump" | "back" | "reverse-continue" | "restart" => words,
        other => return Err(format!("`how` is none of those that there are: {other}")),
    };
    match (how.as_str(), arguments.text("place")?) {
        ("until" | "jump", Some(place)) => Ok(words.word("--").word(place).done()),
        ("until" | "jump", None) => Err(format!("`{how}` needs a `place`: file:line")),
        _ => Ok(words.done()),
    }
}

fn inspect(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let what = arguments.text("what")?.unwrap_or_else(|| "context".into());
    let words = Words::new(arguments, &what);
    let words = match what.as_str() {
        "context" | "locals" | "args" => words.place_of_frame()?.switch("full", "full")?,
        "backtrace" => words.flag("thread", "thread")?,
        "registers" | "disassemble" => words.place_of_frame()?,
        "source" => match arguments.text("place")? {
            Some(place) => words.word("--").word(place),
            None => words,
        },
        "output" => words,
        "threads" | "exception" | "status" | "modules" => words,
        other => return Err(format!("`what` is none of those that there are: {other}")),
    };
    Ok(words.done())
}

fn eval(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let mut commands = Vec::new();
    if let Some(change) = arguments.text("set")? {
        commands.extend(Words::new(arguments, "set").place_of_frame()?.word("--").word(change).done());
    }
    let expressions = arguments.list("expressions")?;
    if arguments.is("effects")? {
        for expression in expressions {
            commands.extend(Words::new(arguments, "eval").place_of_frame()?.word("--").word(expression).done());
        }
    } else if !expressions.is_empty() {
        let words = Words::new(arguments, "print").place_of_frame()?.switch("full", "full")?;
        commands.extend(words.flags("expressions", "expr")?.done());
    }
    if commands.is_empty() {
        return Err("nothing to evaluate: give `expressions`, or `set`".into());
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
    let words: &[&str] = match arguments.text("action")?.as_deref() {
        None | Some("list") => &["sessions"],
        Some("stop") => &["stop"],
        Some("stop_all") => &["stop", "--all"],
        Some("detach") => &["detach"],
        Some(other) => return Err(format!("`action` is none of those that there are: {other}")),
    };
    Ok(vec![words.iter().map(|word| (*word).to_string()).collect()])
}

fn several(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    let commands = arguments.list("commands")?;
    if commands.is_empty() {
        return Err("`commands` is empty".into());
    }
    Ok(vec![std::iter::once("do".to_string()).chain(commands).collect()])
}

fn setup(arguments: &Arguments) -> Result<Vec<Vec<String>>, String> {
    Ok(vec![match arguments.text("install")? {
        Some(name) => vec!["setup".into(), name],
        None => vec!["doctor".into()],
    }])
}
