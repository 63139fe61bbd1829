//! From a configuration's fields to what is started: a command line, a process, an address or a core file.
//!
//! The editor's words for debuggers are in [`KINDS`]: which fields tell the command line, and whether the other fields
//! are the ones that the adapter here understands too.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::{Config, Scope, text, texts};
use crate::failure::Failure;
use crate::model::Aim;

/// How long a configuration that waits for a process waits.
const WAITING: Duration = Duration::from_secs(25);

/// What to start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    pub words: Vec<String>,
    pub aim: Aim,
    pub symbols: Option<PathBuf>,
    /// The adapter's name, where the configuration is plainly for one.
    pub adapter: Option<String>,
    pub cwd: Option<PathBuf>,
    /// Set on top of the caller's; None removes.
    pub env: Vec<(String, Option<String>)>,
    pub env_file: Option<PathBuf>,
    pub stop_on_entry: bool,
    /// Fields for the adapter itself.
    pub extra: Map<String, Value>,
    pub notes: Vec<String>,
}

/// How a kind of configuration names its program.
type Words = fn(&Fields) -> Result<Vec<String>, Failure>;

/// One word of the editor's for a debugger.
struct Kind {
    names: &'static [&'static str],
    words: Words,
    /// Its other fields are understood by the adapter that serves it here.
    passes: bool,
    /// The name is an adapter's own, not a language's.
    is_adapter: bool,
}

const KINDS: [Kind; 9] = [
    Kind { names: &["cppdbg", "cppvsdbg", "lldb", "codelldb"], words: native, passes: false, is_adapter: false },
    Kind { names: &["lldb-dap", "gdb"], words: native, passes: true, is_adapter: true },
    Kind { names: &["python", "debugpy"], words: python, passes: true, is_adapter: false },
    Kind { names: &["go", "delve"], words: go, passes: true, is_adapter: false },
    Kind { names: &["node", "pwa-node", "node2", "javascript"], words: node, passes: true, is_adapter: false },
    Kind { names: &["java"], words: java, passes: false, is_adapter: false },
    Kind { names: &["ruby_lsp", "rdbg", "ruby"], words: ruby, passes: false, is_adapter: false },
    Kind { names: &["php"], words: php, passes: false, is_adapter: false },
    Kind { names: &["perl", "perlsp"], words: native, passes: false, is_adapter: false },
];

/// Whatever is not in the list is an adapter's name: one of the user's own.
const OTHER: Kind = Kind { names: &[], words: native, passes: true, is_adapter: true };

fn kind_of(config: &Config) -> &'static Kind {
    KINDS.iter().find(|kind| kind.names.contains(&config.kind.as_str())).unwrap_or(&OTHER)
}

/// Fields that are read here, or belong to the editor, or are about streams that are ours.
const TAKEN: [&str; 59] = [
    "name",
    "type",
    "request",
    "label",
    "adapter",
    "build",
    "program",
    "args",
    "cwd",
    "env",
    "environment",
    "envFile",
    "stopOnEntry",
    "stopAtEntry",
    "preLaunchTask",
    "postDebugTask",
    "presentation",
    "internalConsoleOptions",
    "debugServer",
    "serverReadyAction",
    "console",
    "externalConsole",
    "terminal",
    "runInTerminal",
    "redirectOutput",
    "integratedTerminal",
    "stdio",
    "order",
    "$schema",
    "tcp_connection",
    "suppressMultipleSessionWarning",
    "module",
    "code",
    "python",
    "pythonPath",
    "pythonArgs",
    "processId",
    "pid",
    "connect",
    "listen",
    "host",
    "hostName",
    "port",
    "address",
    "mode",
    "remotePath",
    "coreFilePath",
    "coreFile",
    "coreDumpPath",
    "waitFor",
    "runtimeExecutable",
    "runtimeArgs",
    "runtimeVersion",
    "buildFlags",
    "output",
    "attachSimplePort",
    "MIMode",
    "miDebuggerServerAddress",
    "gdb-remote-port",
];

/// Fields that only say how things are shown or found.
const HARMLESS: [&str; 34] = [
    "justMyCode",
    "subProcess",
    "showReturnValue",
    "django",
    "flask",
    "jinja",
    "pyramid",
    "gevent",
    "pathMappings",
    "variablePresentation",
    "autoReload",
    "sourceMap",
    "sourceMaps",
    "sourceMapPathOverrides",
    "outFiles",
    "skipFiles",
    "resolveSourceMapLocations",
    "smartStep",
    "substitutePath",
    "showGlobalVariables",
    "showRegisters",
    "showPprofLabels",
    "stackTraceDepth",
    "hideSystemGoroutines",
    "goroutineFilters",
    "followCalls",
    "sourcePath",
    "debuggerRoot",
    "timeout",
    "stopAtBeginningOfMainSubprogram",
    "enableAutoVariableSummaries",
    "enableSyntheticChildDebugging",
    "displayExtendedBacktrace",
    "disableASLR",
];

/// The fields that may hold commands of the debugger: passed on only where they are trusted.
pub(super) fn risky_fields(config: &Config) -> Vec<String> {
    if !kind_of(config).passes {
        return Vec::new();
    }
    let known = |name: &str| TAKEN.contains(&name) || HARMLESS.contains(&name);
    config.fields.keys().filter(|name| !known(name)).cloned().collect()
}

/// A configuration's fields, filled in.
struct Fields(Map<String, Value>);

impl Fields {
    fn text(&self, name: &str) -> Option<String> {
        text(self.0.get(name)).filter(|text| !text.is_empty())
    }

    fn text_or(&self, name: &str, otherwise: &str) -> String {
        self.text(name).unwrap_or_else(|| otherwise.to_string())
    }

    /// A list of words, or a line that is split into them.
    fn words(&self, name: &str) -> Result<Vec<String>, Failure> {
        match self.0.get(name) {
            Some(Value::String(line)) => split(line)
                .ok_or_else(|| Failure::refused(format!("`{name}` of the configuration has an open quote: {line}"))),
            list => Ok(texts(list)),
        }
    }

    fn number(&self, name: &str) -> Option<u32> {
        match self.0.get(name)? {
            Value::String(text) => text.trim().parse().ok(),
            other => u32::try_from(other.as_u64()?).ok(),
        }
    }

    fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    fn program(&self) -> Result<String, Failure> {
        self.text("program").ok_or_else(|| Failure::refused("the configuration names no `program`"))
    }
}

/// The words of a line, with quotes as a shell has them and nothing else.
fn split(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(chars.next()),
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('\'' | '"', None) => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Finds out what a configuration starts. Fields that need trust are passed on only with it.
pub fn plan(config: &Config, scope: &Scope, trusted: bool) -> Result<Plan, Failure> {
    let kind = kind_of(config);
    let relevant = |name: &str| !["preLaunchTask", "postDebugTask", "build", "setupCommands"].contains(&name);
    let fields = config.fields.iter().filter(|(name, _)| relevant(name));
    let fields = fields.map(|(name, value)| Ok((name.clone(), scope.fill(value)?)));
    let fields = Fields(fields.collect::<Result<_, Failure>>()?);
    let mut plan = Plan {
        adapter: kind.is_adapter.then(|| config.kind.clone()).filter(|name| !name.is_empty()),
        cwd: fields.text("cwd").map(|cwd| scope.folder.join(cwd)),
        env: environment(&fields),
        env_file: fields.text("envFile").map(|file| scope.folder.join(file)),
        stop_on_entry: fields.is_set("stopOnEntry") || fields.is_set("stopAtEntry"),
        ..Plan::default()
    };
    plan.cwd.get_or_insert_with(|| scope.folder.to_path_buf());
    if kind.passes {
        let risky = risky_fields(config);
        let passed = |name: &str| HARMLESS.contains(&name) || (trusted && risky.iter().any(|risky| risky == name));
        plan.extra = fields
            .0
            .iter()
            .filter(|(name, _)| passed(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        if !trusted && !risky.is_empty() {
            let names = risky.join(", ");
            plan.notes.push(format!("left out, since it may run commands: {names} (to allow it: bugeye trust)"));
        }
    }
    if config.fields.contains_key("postDebugTask") {
        plan.notes.push("its postDebugTask is not run".into());
    }
    plan.symbols = fields.text("program").map(|program| scope.folder.join(program));
    plan.aim = aim(config, &fields, scope)?;
    if plan.aim == Aim::Program {
        plan.symbols = None;
        plan.words = (kind.words)(&fields)?;
    }
    Ok(plan)
}

fn environment(fields: &Fields) -> Vec<(String, Option<String>)> {
    let map = fields.0.get("env").and_then(Value::as_object).into_iter().flatten();
    let value_of = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    let of_map = map.map(|(name, value)| (name.clone(), value_of(value)));
    // Native configurations have a list of pairs.
    let list = fields.0.get("environment").and_then(Value::as_array).into_iter().flatten();
    let of_list = list.filter_map(|pair| Some((text(pair.get("name"))?, pair.get("value").and_then(value_of))));
    of_map.chain(of_list).collect()
}

/// A target that is not started here, or [`Aim::Program`].
fn aim(config: &Config, fields: &Fields, scope: &Scope) -> Result<Aim, Failure> {
    let core = ["coreFile", "coreDumpPath", "coreFilePath"].iter().find_map(|name| fields.text(name));
    if let Some(core) = core {
        return Ok(Aim::Core(scope.folder.join(core)));
    }
    if let Some(address) = fields.text("miDebuggerServerAddress") {
        return Aim::parse(&address);
    }
    if config.request != "attach" {
        return Ok(Aim::Program);
    }
    if let Some(pid) = fields.number("processId").or_else(|| fields.number("pid")) {
        return Ok(Aim::Process(pid));
    }
    if fields.is_set("waitFor") {
        let program = fields.program()?;
        let name = program.rsplit('/').next().unwrap_or(&program).to_string();
        return Ok(Aim::WaitFor { name, limit: WAITING });
    }
    let place = |fields: &Fields| {
        let port = ["port", "gdb-remote-port"].iter().find_map(|name| fields.number(name))?;
        let host = ["host", "hostName", "address", "gdb-remote-hostname"].iter().find_map(|name| fields.text(name));
        Some(Aim::Address { host: host.unwrap_or_else(|| "127.0.0.1".into()), port: u16::try_from(port).ok()? })
    };
    let within =
        ["connect", "tcp_connection"].iter().find_map(|name| place(&Fields(fields.0.get(*name)?.as_object()?.clone())));
    if let Some(aim) = within.or_else(|| place(fields)) {
        return Ok(aim);
    }
    // A program's name is a process's, too.
    match fields.text("program") {
        Some(program) => Ok(Aim::Named(program.rsplit('/').next().unwrap_or(&program).to_string())),
        None => Err(Failure::refused(format!("`{}` does not say what to attach to", config.name))
            .hint("attach to it by hand: bugeye attach PID")),
    }
}

fn joined(parts: [Vec<String>; 4]) -> Vec<String> {
    parts.into_iter().flatten().collect()
}

fn native(fields: &Fields) -> Result<Vec<String>, Failure> {
    let args = fields.words("args")?;
    // CodeLLDB builds by cargo, and takes the program from it.
    if let Some(cargo) = fields.0.get("cargo") {
        let mut words = texts(cargo.get("args"));
        words.retain(|word| word != "--no-run");
        if let Some(first) = words.first_mut().filter(|first| *first == "build") {
            *first = "run".into();
        }
        return Ok(joined([vec!["cargo".into()], words, vec!["--".into()], args]));
    }
    Ok(joined([vec![fields.program()?], args, Vec::new(), Vec::new()]))
}

fn python(fields: &Fields) -> Result<Vec<String>, Failure> {
    let named = match fields.0.get("python") {
        Some(Value::Array(_)) => texts(fields.0.get("python")),
        _ => fields.text("python").or_else(|| fields.text("pythonPath")).into_iter().collect(),
    };
    let options = fields.words("pythonArgs")?;
    let what = match (fields.text("module"), fields.text("program")) {
        (Some(module), _) => vec!["-m".into(), module],
        (None, Some(program)) => vec![program],
        (None, None) => return Err(Failure::refused("the configuration names neither `program` nor `module`")),
    };
    let plain = named.is_empty() && options.is_empty() && what.len() == 1;
    let interpreter = if named.is_empty() && !plain { vec!["python3".into()] } else { named };
    Ok(joined([interpreter, options, what, fields.words("args")?]))
}

fn go(fields: &Fields) -> Result<Vec<String>, Failure> {
    let flags = fields.words("buildFlags")?;
    let args = fields.words("args")?;
    let program = fields.text_or("program", ".");
    let is_test = program.ends_with("_test.go");
    Ok(match fields.text("mode").as_deref() {
        Some("exec") => joined([vec![program], args, Vec::new(), Vec::new()]),
        Some("test") => joined([vec!["go".into(), "test".into()], flags, vec![program], args]),
        Some("auto") | None if is_test => joined([vec!["go".into(), "test".into()], flags, vec![program], args]),
        Some("debug" | "auto") | None => joined([vec!["go".into(), "run".into()], flags, vec![program], args]),
        Some(other) => return Err(Failure::unsupported(format!("Go's mode `{other}` is not started here"))),
    })
}

fn node(fields: &Fields) -> Result<Vec<String>, Failure> {
    let runtime = fields.text_or("runtimeExecutable", "node");
    let options = fields.words("runtimeArgs")?;
    let program: Vec<String> = fields.text("program").into_iter().collect();
    if program.is_empty() && options.is_empty() {
        return Err(Failure::refused("the configuration names neither `program` nor `runtimeArgs`"));
    }
    Ok(joined([vec![runtime], options, program, fields.words("args")?]))
}

fn java(fields: &Fields) -> Result<Vec<String>, Failure> {
    let main = fields.text("mainClass").ok_or_else(|| Failure::refused("the configuration names no `mainClass`"))?;
    let mut words = vec![fields.text_or("javaExec", "java")];
    words.extend(fields.words("vmArgs")?);
    let places: Vec<String> =
        texts(fields.0.get("classPaths")).into_iter().filter(|place| !place.starts_with('$')).collect();
    if !places.is_empty() {
        words.extend(["-cp".into(), places.join(":")]);
    }
    Ok(joined([words, vec![main], fields.words("args")?, Vec::new()]))
}

fn ruby(fields: &Fields) -> Result<Vec<String>, Failure> {
    // One has a whole command line for a program, the other a script.
    if let Some(script) = fields.text("script") {
        let command = if fields.0.contains_key("command") { fields.words("command")? } else { vec!["ruby".into()] };
        return Ok(joined([command, vec![script], fields.words("args")?, Vec::new()]));
    }
    let mut words = fields.words("program")?;
    if words.is_empty() {
        return Err(Failure::refused("the configuration names neither `program` nor `script`"));
    }
    words.extend(fields.words("args")?);
    Ok(words)
}

fn php(fields: &Fields) -> Result<Vec<String>, Failure> {
    let Some(program) = fields.text("program") else {
        return Err(Failure::unsupported("this configuration only waits for a web server's requests")
            .hint("start the script itself: bugeye run -- php FILE.php"));
    };
    let runtime = fields.text_or("runtimeExecutable", "php");
    Ok(joined([vec![runtime], fields.words("runtimeArgs")?, vec![program], fields.words("args")?]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::path::Path;

    fn config(fields: &Value) -> Config {
        let fields = fields.as_object().unwrap().clone();
        let word = |name: &str| text(fields.get(name));
        Config {
            name: "it".into(),
            kind: word("type").unwrap_or_default(),
            request: word("request").unwrap_or_else(|| "launch".into()),
            task: None,
            fields,
        }
    }

    fn planned(fields: &Value, trusted: bool) -> Result<Plan, Failure> {
        let scope = Scope { folder: Path::new("/w"), cwd: Path::new("/w"), env: &[], vars: &[], inputs: &[] };
        plan(&config(fields), &scope, trusted)
    }

    #[test]
    fn command_lines_of_every_kind() {
        let cases = [
            (json!({ "type": "cppdbg", "program": "${workspaceFolder}/a", "args": ["x y"] }), "/w/a|x y"),
            (
                json!({ "type": "lldb", "cargo": { "args": ["test", "--no-run", "--lib"] }, "args": ["t"] }),
                "cargo|test|--lib|--|t",
            ),
            (json!({ "type": "lldb", "cargo": { "args": ["build"] } }), "cargo|run|--"),
            (json!({ "type": "python", "program": "a.py", "args": "x 'y z'" }), "a.py|x|y z"),
            (json!({ "type": "debugpy", "module": "flask", "args": ["run"] }), "python3|-m|flask|run"),
            (json!({ "type": "debugpy", "python": "/v/bin/python", "program": "a.py" }), "/v/bin/python|a.py"),
            (json!({ "type": "go", "program": "./cmd", "buildFlags": "-tags x" }), "go|run|-tags|x|./cmd"),
            (json!({ "type": "go", "mode": "test", "program": "./p", "args": ["-run", "T"] }), "go|test|./p|-run|T"),
            (json!({ "type": "go", "mode": "exec", "program": "./bin" }), "./bin"),
            (json!({ "type": "node", "program": "a.js", "runtimeArgs": ["-r", "x"] }), "node|-r|x|a.js"),
            (json!({ "type": "pwa-node", "runtimeExecutable": "npm", "runtimeArgs": ["run", "s"] }), "npm|run|s"),
            (
                json!({ "type": "java", "mainClass": "p.Main", "classPaths": ["a", "b.jar"], "vmArgs": "-Xmx1g" }),
                "java|-Xmx1g|-cp|a:b.jar|p.Main",
            ),
            (json!({ "type": "rdbg", "script": "a.rb", "command": "bundle exec ruby" }), "bundle|exec|ruby|a.rb"),
            (json!({ "type": "ruby_lsp", "program": "ruby a.rb x" }), "ruby|a.rb|x"),
            (json!({ "type": "php", "program": "a.php" }), "php|a.php"),
            (json!({ "type": "my-own", "program": "a.moo" }), "a.moo"),
        ];
        for (fields, expected) in cases {
            assert_eq!(planned(&fields, false).unwrap().words.join("|"), expected, "{fields}");
        }
        for bad in [json!({ "type": "php", "port": 9003 }), json!({ "type": "python" }), json!({ "type": "node" })] {
            assert!(planned(&bad, false).is_err(), "{bad}");
        }
        assert!(planned(&json!({ "type": "python", "program": "a", "args": "'x" }), false).is_err());
    }

    #[test]
    fn other_targets() {
        let address = |host: &str, port| Aim::Address { host: host.into(), port };
        let cases = [
            (
                json!({ "type": "debugpy", "request": "attach", "connect": { "port": 5678 } }),
                address("127.0.0.1", 5678),
            ),
            (
                json!({ "type": "go", "request": "attach", "mode": "remote", "host": "h", "port": "2345" }),
                address("h", 2345),
            ),
            (json!({ "type": "java", "request": "attach", "hostName": "h", "port": 8000 }), address("h", 8000)),
            (
                json!({ "type": "cppdbg", "request": "launch", "program": "a", "miDebuggerServerAddress": "h:1" }),
                address("h", 1),
            ),
            (json!({ "type": "lldb", "request": "attach", "pid": "12" }), Aim::Process(12)),
            (json!({ "type": "cppdbg", "request": "attach", "processId": 12 }), Aim::Process(12)),
            (json!({ "type": "lldb", "request": "attach", "program": "/w/app" }), Aim::Named("app".into())),
            (
                json!({ "type": "lldb-dap", "request": "attach", "program": "app", "waitFor": true }),
                Aim::WaitFor { name: "app".into(), limit: WAITING },
            ),
            (json!({ "type": "cppdbg", "program": "a", "coreDumpPath": "core" }), Aim::Core("/w/core".into())),
        ];
        for (fields, expected) in cases {
            assert_eq!(planned(&fields, false).unwrap().aim, expected, "{fields}");
        }
        let picked =
            planned(&json!({ "type": "cppdbg", "request": "attach", "processId": "${command:pickProcess}" }), false);
        assert!(picked.unwrap_err().hints[0].contains("--var pickProcess="));
    }

    #[test]
    fn fields_of_the_adapter_are_passed_and_commands_only_when_trusted() {
        let fields = json!({ "type": "lldb-dap", "program": "a", "sourceMap": [["x", "y"]], "stopOnEntry": true,
            "env": { "A": "1", "B": null, "C": 3 }, "cwd": "sub", "initCommands": ["platform shell id"], "runInTerminal": true });
        let careful = planned(&fields, false).unwrap();
        assert_eq!(Value::Object(careful.extra), json!({ "sourceMap": [["x", "y"]] }));
        assert!(careful.notes[0].contains("initCommands"));
        assert_eq!(careful.env, [("A".into(), Some("1".into())), ("B".into(), None), ("C".into(), Some("3".into()))]);
        assert_eq!((careful.cwd, careful.stop_on_entry), (Some("/w/sub".into()), true));
        let trusting = planned(&fields, true).unwrap();
        assert_eq!(
            Value::Object(trusting.extra),
            json!({ "sourceMap": [["x", "y"]], "initCommands": ["platform shell id"] })
        );
        assert_eq!(trusting.adapter.as_deref(), Some("lldb-dap"));
        let foreign = json!({ "type": "cppdbg", "program": "a", "setupCommands": [{ "text": "x" }], "sourceFileMap": {},
            "environment": [{ "name": "A", "value": "b" }] });
        let foreign = planned(&foreign, true).unwrap();
        assert!(foreign.extra.is_empty() && foreign.adapter.is_none());
        assert_eq!(foreign.env, [("A".into(), Some("b".into()))]);
    }
}
