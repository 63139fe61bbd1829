//! What a line of the inbox asks for: a command of the catalogue with its arguments, in either of two forms.
//!
//! `{"id","cmd","args"}` names a command as it is typed; `{"id","type","data"}`, or the same with the fields of `data` beside
//! `type`, has the words of a bridge to an agent. For a program those are carried out that mean something for one.

use serde_json::{Map, Value, json};

use super::reader::{self, MAX_LINE};
use crate::agent::alias;
use crate::commands::{Entry, Run, find, typed};
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::render::quoted;

/// What belongs to a line, not to what it asks for.
const ENVELOPE: [&str; 8] = ["v", "id", "type", "timestamp", "ts", "sessionId", "session", "actor"];
/// The longest id.
const MAX_ID: usize = 100;

/// What is asked.
#[derive(Debug)]
pub struct Asking {
    /// As given; else by its place in the file.
    pub id: String,
    /// As far as it could be read.
    pub name: String,
    pub command: Result<Command, Failure>,
}

#[derive(Debug)]
pub struct Command {
    pub entry: &'static Entry,
    pub args: Value,
    /// As it would be typed, where it was given in words.
    pub typed: Option<Vec<String>>,
}

impl Asking {
    /// Whether it may begin while others wait for the program.
    #[must_use]
    pub fn waits_for_none(&self) -> bool {
        self.command.as_ref().is_ok_and(|command| typed::ANY_TIME.contains(&command.entry.name))
    }
}

/// Understands a line about a program, or about an agent.
#[must_use]
pub fn understand(line: &reader::Line, agent: bool) -> Asking {
    let mut asking = Asking { id: format!("at-{}", line.at), name: "invalid".into(), command: Err(shape()) };
    let Some(text) = &line.text else {
        let size = line.end - line.at - 1;
        asking.command = Err(Failure::usage(format!("the line has {size} bytes, more than {MAX_LINE}")));
        return asking;
    };
    let mut fields = match serde_json::from_slice::<Value>(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return asking,
        Err(error) => {
            asking.command = Err(Failure::usage(format!("the line is no JSON: {error}")).hint(SHAPE));
            return asking;
        }
    };
    match fields.get("id") {
        None | Some(Value::Null) => {}
        Some(Value::String(id)) if !id.is_empty() && id.chars().count() <= MAX_ID => asking.id.clone_from(id),
        Some(Value::Number(id)) => asking.id = id.to_string(),
        Some(_) => {
            let failure = Failure::usage(format!("an id is a number, or a text of 1 to {MAX_ID} characters"));
            asking.command = Err(failure);
            return asking;
        }
    }
    let word = |name: &str| fields.get(name).and_then(Value::as_str).filter(|word| !word.is_empty());
    let named = match (word("cmd"), word("type")) {
        (Some(cmd), None) => Ok((cmd.to_string(), "args")),
        (None, Some(kind)) => Ok((kind.to_string(), "data")),
        _ => Err(shape()),
    };
    if let Ok((name, _)) = &named {
        asking.name = quoted(crate::render::cut(name, MAX_ID).0);
    }
    asking.command = named.and_then(|(name, rest)| {
        match fields.get("v").map(Value::as_u64) {
            None | Some(Some(1)) => {}
            Some(_) => return Err(Failure::refused("a line of another version; this one reads 1")),
        }
        let (name, args) = if rest == "args" {
            (name, fields.remove("args").unwrap_or(Value::Null))
        } else {
            translated(&name, data(&mut fields), agent)?
        };
        command(&name, args)
    });
    if let Ok(command) = &asking.command {
        asking.name = command.entry.name.to_string();
    }
    asking
}

/// What a line of the bridge says beside its type.
fn data(fields: &mut Map<String, Value>) -> Value {
    if let Some(data) = fields.remove("data").or_else(|| fields.remove("args")) {
        return data;
    }
    fields.retain(|name, _| !ENVELOPE.contains(&name.as_str()));
    if fields.is_empty() { Value::Null } else { Value::Object(std::mem::take(fields)) }
}

const SHAPE: &str = r#"a command looks like {"id":"1","cmd":"print","args":["i"]}, on one line"#;

fn shape() -> Failure {
    Failure::usage("the line is no command: it needs either `cmd` or `type`, a text").hint(SHAPE)
}

/// Finds the command and reads its arguments.
fn command(name: &str, args: Value) -> Result<Command, Failure> {
    let entry = find(name).ok_or_else(|| unknown(name))?;
    let (args, typed) = match args {
        Value::Null => (typed::read(entry, &[])?, Some(vec![entry.name.to_string()])),
        Value::Object(_) => (args, None),
        Value::Array(words) => {
            let words = words.iter().map(as_word).collect::<Result<Vec<_>, _>>()?;
            let args = typed::read(entry, &words)?;
            (args, Some(std::iter::once(entry.name.to_string()).chain(words).collect()))
        }
        _ => return Err(Failure::usage("the arguments are neither a list of words nor an object").hint(SHAPE)),
    };
    match refusal(entry, &args) {
        Some(failure) => Err(failure),
        None => Ok(Command { entry, args, typed }),
    }
}

/// A word, as somebody would type it.
fn as_word(value: &Value) -> Result<String, Failure> {
    match value {
        Value::String(word) => Ok(word.clone()),
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        _ => Err(Failure::usage("the words of a command are texts").hint(SHAPE)),
    }
}

fn unknown(name: &str) -> Failure {
    let failure = Failure::usage(format!("no command is called \"{}\"", quoted(name)));
    let names = crate::commands::CATALOGUE.iter().filter(|entry| matches!(entry.run, Run::Daemon(_)));
    match nearest(name, names.map(|entry| entry.name)) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`bugeye --help` lists the commands"),
    }
}

/// What is not done by a file: only this session is spoken of, and nothing is started.
fn refusal(entry: &Entry, args: &Value) -> Option<Failure> {
    let name = entry.name;
    if !matches!(entry.run, Run::Daemon(_)) {
        let failure = Failure::unsupported(format!("`{name}` is for the command line alone"));
        return Some(failure.hint(format!("type it in a shell: bugeye {name}")));
    }
    // A trace of this session starts nothing.
    let starts = |field: &str| match &args[field] {
        Value::Null => false,
        Value::Array(words) => !words.is_empty(),
        _ => true,
    };
    let traces_here = name == "trace" && !["program", "args", "core", "config"].iter().any(|field| starts(field));
    if name == "restart" || (entry.spawns && !traces_here) {
        let failure =
            Failure::refused(format!("`{name}` would start a program; commands by file are about this session"));
        return Some(failure.hint(format!("type it in a shell: bugeye {name}")));
    }
    let elsewhere = match name {
        "use" | "prune" => true,
        "stop" => args["all"] == true,
        "keep" => !args["id"].is_null(),
        _ => false,
    };
    if elsewhere {
        return Some(Failure::refused("commands by file are about this session alone"));
    }
    if args["follow"] == true {
        return Some(Failure::refused("output comes as events of the record").hint("bugeye events --follow"));
    }
    None
}

/// A word of the bridge, as a command and its arguments.
fn translated(kind: &str, data: Value, agent: bool) -> Result<(String, Value), Failure> {
    let plain = kind.replace(['.', '-'], "_");
    let empty = Map::new();
    let fields = data.as_object().unwrap_or(&empty);
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let (verb, action) = match plain.as_str() {
        "breakpoint" | "break" => ("breakpoint", text("action").unwrap_or("add")),
        other => match other.strip_prefix("breakpoint_").or_else(|| other.strip_prefix("break_")) {
            Some(action) => ("breakpoint", action),
            None => (other, ""),
        },
    };
    let named = |name: &str| Ok((name.to_string(), Value::Null));
    if let Some(words) = alias::command(verb, fields).filter(|_| agent) {
        let mut words = words.map_err(Failure::usage)?;
        return Ok((words.remove(0), json!(words)));
    }
    match verb {
        "resume" => Ok(("continue".into(), without(&data, &[]))),
        "step" if agent => match text("unit").unwrap_or("iteration") {
            "iteration" | "into" | "over" => Ok(("step".into(), without(&data, &["unit"]))),
            "turn" | "out" => Ok(("finish".into(), without(&data, &["unit"]))),
            unit @ ("tool" | "model") => Ok(("step".into(), json!({ "into": unit }))),
            unit => Err(Failure::unsupported(format!("an agent is not stepped by {}", quoted(unit)))
                .hint("by iteration, tool, model or turn")),
        },
        "step" => match text("unit").unwrap_or("into") {
            "into" => Ok(("step".into(), without(&data, &["unit"]))),
            "over" | "line" => Ok(("next".into(), without(&data, &["unit"]))),
            "out" => Ok(("finish".into(), without(&data, &["unit"]))),
            unit => Err(agents(&format!("a step by {}", quoted(unit)))),
        },
        "inspect" => match text("what").unwrap_or("all") {
            "all" | "context" => named("context"),
            "stack" => named("backtrace"),
            "locals" => named("locals"),
            "threads" => named("threads"),
            "breakpoints" => named("breaks"),
            what => Err(agents(&format!("`inspect` of {}", quoted(what)))),
        },
        "set_variable" | "set" if verb == "set_variable" || fields.contains_key("target") => {
            let key = text("key").or(text("target"));
            let key = key.ok_or_else(|| Failure::usage(format!("`{verb}` needs a `key`, a text")))?;
            let value = match fields.get("value") {
                Some(Value::String(text)) => text.clone(),
                Some(value) => value.to_string(),
                None => return Err(Failure::usage(format!("`{verb}` needs a `value`"))),
            };
            Ok(("set".into(), json!({ "words": [key, "=", value] })))
        }
        "until" if agent && fields.contains_key("on") => {
            Ok(("until".into(), json!({ "place": alias::breakpoint(fields).map_err(Failure::usage)? })))
        }
        "breakpoint" => breakpoint(&action.replace('-', "_"), &data, fields, agent),
        "decide" | "checkpoint" | "fork" | "rewind" if agent => {
            Err(Failure::unsupported(format!("`{plain}` is not done by file")))
        }
        "inject" | "inject_message" | "cancel_tool" | "cancel" | "decide" | "checkpoint" | "fork" | "rewind" => {
            Err(agents(&format!("`{plain}`")))
        }
        // Any command by its own name.
        _ => Ok((kind.to_string(), data)),
    }
}

fn agents(what: &str) -> Failure {
    Failure::unsupported(format!("{what} is for an agent; this session is of a program"))
}

/// The object without these fields; nothing for none.
fn without(data: &Value, left_out: &[&str]) -> Value {
    match data {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| !left_out.contains(&name.as_str()));
            Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        other => other.clone(),
    }
}

fn breakpoint(
    action: &str,
    data: &Value,
    fields: &Map<String, Value>,
    agent: bool,
) -> Result<(String, Value), Failure> {
    let ids = |name: &str| {
        let id = fields.get("id").or(fields.get("bp")).or(fields.get("breakpoint"));
        let text = |id: &Value| id.as_str()?.trim_start_matches("bp-").parse().ok();
        let number = id.and_then(|id| id.as_u64().or_else(|| text(id)));
        let number = number.ok_or_else(|| {
            Failure::usage(format!("`{action}` needs the `id` of a breakpoint")).hint("clear-all clears all")
        })?;
        Ok((name.to_string(), json!({ "ids": [number] })))
    };
    match action {
        "add" if agent && fields.contains_key("on") => {
            let place = alias::breakpoint(fields).map_err(Failure::usage)?;
            let mut args = json!({ "place": place, "if": alias::condition(fields) });
            for name in ["hits", "log", "once"] {
                if let Some(value) = fields.get(name) {
                    args[name] = value.clone();
                }
            }
            Ok(("break".into(), args))
        }
        "add" => {
            let what = fields.get("on").and_then(Value::as_str).unwrap_or("place");
            if !["place", "line", "function"].contains(&what) {
                return Err(agents(&format!("a breakpoint on {}", quoted(what))));
            }
            let mut args = without(data, &["action", "on", "file", "line", "name", "condition"]);
            let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
            if let (Some(file), Some(line)) = (field("file").and_then(Value::as_str), field("line")) {
                args["place"] = json!(format!("{file}:{line}"));
            } else if let Some(name) = field("name") {
                args["function"] = name.clone();
            }
            if let Some(condition) = field("condition") {
                args["if"] = condition.clone();
            }
            Ok(("break".into(), args))
        }
        "list" => Ok(("breaks".into(), Value::Null)),
        "clear_all" => Ok(("unbreak".into(), json!({ "all": true }))),
        "clear" | "remove" => ids("unbreak"),
        "enable" => ids("enable"),
        "disable" => ids("disable"),
        other => Err(Failure::usage(format!("no action on breakpoints is called \"{}\"", quoted(other)))
            .hint("add, list, clear, clear-all, enable, disable")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked_of(line: &str, agent: bool) -> Asking {
        let end = 7 + line.len() as u64 + 1;
        understand(&reader::Line { at: 7, end, text: Some(line.as_bytes().to_vec()) }, agent)
    }

    fn asked(line: &str) -> Asking {
        asked_of(line, false)
    }

    #[track_caller]
    fn command_of(line: &str) -> (&'static str, Value) {
        let command = asked(line).command.unwrap();
        (command.entry.name, command.args)
    }

    #[track_caller]
    fn refused(line: &str, kind: crate::failure::Kind, words: &str) {
        let failure = asked(line).command.unwrap_err();
        assert_eq!(failure.kind, kind, "{line}: {failure}");
        assert!(failure.message.contains(words), "{line}: {failure}");
    }

    #[test]
    fn words_and_objects_ask_for_the_same() {
        for line in [
            r#"{"id":"1","cmd":"break","args":["x.py:7","--if","i>3"]}"#,
            r#"{"id":"1","cmd":"b","args":{"place":"x.py:7","if":"i>3"}}"#,
            r#"{"id":"1","cmd":"breakpoint add","args":["x.py:7","--if","i>3"],"v":1,"more":[]}"#,
            r#"{"id":"1","type":"breakpoint","data":{"action":"add","file":"x.py","line":7,"condition":"i>3"}}"#,
            r#"{"id":"1","type":"breakpoint_add","data":{"place":"x.py:7","if":"i>3"}}"#,
            r#"{"id":"1","type":"break.add","data":{"on":"line","place":"x.py:7","if":"i>3"}}"#,
        ] {
            let (name, args) = command_of(line);
            assert_eq!((name, &args["place"], &args["if"]), ("break", &json!("x.py:7"), &json!("i>3")), "{line}");
            assert_eq!(asked(line).id, "1");
        }
    }

    #[test]
    fn words_of_the_bridge_are_commands() {
        for (line, name) in [
            (r#"{"type":"pause","data":{}}"#, "pause"),
            (r#"{"type":"resume","id":3,"timestamp":"x"}"#, "continue"),
            (r#"{"type":"step"}"#, "step"),
            (r#"{"type":"step","data":{"unit":"out"}}"#, "finish"),
            (r#"{"type":"inspect","data":{"what":"all"}}"#, "context"),
            (r#"{"type":"breakpoint","data":{"action":"list"}}"#, "breaks"),
            (r#"{"type":"set_variable","data":{"key":"i","value":3}}"#, "set"),
            (r#"{"type":"print","data":["i"]}"#, "print"),
        ] {
            assert_eq!(command_of(line).0, name, "{line}");
        }
        let (_, args) = command_of(r#"{"type":"breakpoint","data":{"action":"clear","id":"3"}}"#);
        assert_eq!(args, json!({ "ids": [3] }));
        assert_eq!(command_of(r#"{"type":"breakpoint","data":{"action":"clear-all"}}"#).1, json!({ "all": true }));
    }

    /// The words of bridges to agents, nested and flat.
    #[test]
    fn an_agent_is_spoken_of_in_its_own_words() {
        for (line, name, field, value) in [
            (r#"{"type":"pause","id":"test1","data":{}}"#, "pause", "", json!(null)),
            (r#"{"type":"resume","id":"test2"}"#, "continue", "", json!(null)),
            (r#"{"type":"step","data":{}}"#, "step", "", json!(null)),
            (r#"{"type":"step","unit":"turn"}"#, "finish", "", json!(null)),
            (r#"{"type":"step","data":{"unit":"tool"}}"#, "step", "into", json!("tool")),
            (r#"{"type":"until","data":{"on":"tool","name":"bash"}}"#, "until", "place", json!("tool:bash")),
            (r#"{"type":"inspect","data":{"what":"breakpoints"}}"#, "breaks", "", json!(null)),
            (
                r#"{"type":"set","data":{"target":"tool_output","value":[1]}}"#,
                "set",
                "words",
                json!(["tool_output", "=", "[1]"]),
            ),
            (
                r#"{"type":"break.add","args":{"on":"tool","name":"bash","input":"rm"}}"#,
                "break",
                "if",
                json!("tool_input ~ \"rm\""),
            ),
            (r#"{"type":"inspect","data":{"what":"messages"}}"#, "inspect", "what", json!("messages")),
            (r#"{"type":"inspect","what":"tools","timestamp":"x"}"#, "inspect", "what", json!("tools")),
            (r#"{"type":"inspect"}"#, "inspect", "what", json!("all")),
            (r#"{"type":"inject_message","data":{"role":"user","content":"-x y"}}"#, "inject", "text", json!(["-x y"])),
            (r#"{"type":"inject_message","role":"assistant","content":"y"}"#, "inject", "role", json!("assistant")),
            (r#"{"type":"cancel_tool","data":{"toolId":"t1"}}"#, "cancel", "id", json!("t1")),
            (r#"{"type":"cancel","data":{"reason":"no"}}"#, "cancel", "reason", json!("no")),
            (
                r#"{"type":"set_variable","data":{"key":"tool_input.command","value":"ls"}}"#,
                "set",
                "words",
                json!(["tool_input.command", "=", "ls"]),
            ),
            (
                r#"{"type":"breakpoint","data":{"action":"add","on":"tool","name":"write_file"}}"#,
                "break",
                "place",
                json!("tool:write_file"),
            ),
            (
                r#"{"type":"breakpoint","action":"add","on":"iteration","count":5}"#,
                "break",
                "place",
                json!("iteration:5"),
            ),
            (
                r#"{"type":"break.add","args":{"on":"pattern","regex":"rm -rf"}}"#,
                "break",
                "place",
                json!("pattern:rm -rf"),
            ),
            (r#"{"type":"breakpoint","data":{"action":"list"}}"#, "breaks", "", json!(null)),
            (r#"{"type":"breakpoint","data":{"action":"clear","id":"bp-3"}}"#, "unbreak", "ids", json!([3])),
            (r#"{"type":"breakpoint","action":"clear","bp":3}"#, "unbreak", "ids", json!([3])),
            (r#"{"type":"breakpoint","data":{"action":"clear-all"}}"#, "unbreak", "all", json!(true)),
        ] {
            let command = asked_of(line, true).command.unwrap_or_else(|failure| panic!("{line}: {failure}"));
            assert_eq!((command.entry.name, &command.args[field]), (name, &value), "{line}");
        }
        for (line, words) in [
            (r#"{"type":"inject_message","data":{"role":"user"}}"#, "needs a `content`"),
            (r#"{"type":"breakpoint","data":{"action":"add","on":"tool"}}"#, "needs a `name`"),
            (r#"{"type":"breakpoint","data":{"action":"add","on":"moon"}}"#, "no breakpoint on moon"),
            (r#"{"type":"step","data":{"unit":"moon"}}"#, "not stepped by moon"),
        ] {
            let failure = asked_of(line, true).command.unwrap_err();
            assert!(failure.message.contains(words), "{line}: {failure}");
        }
    }

    #[test]
    fn an_id_is_given_or_made() {
        assert_eq!(asked(r#"{"id":17,"cmd":"status"}"#).id, "17");
        assert_eq!(asked(r#"{"cmd":"status"}"#).id, "at-7");
        assert_eq!(asked("nonsense").id, "at-7");
        assert!(asked(r#"{"id":"","cmd":"status"}"#).command.is_err());
        assert!(asked(r#"{"id":["x"],"cmd":"status"}"#).command.is_err());
    }

    #[test]
    fn what_can_not_be_is_said() {
        use crate::failure::Kind::{Refused, Unsupported, Usage};
        refused("nonsense", Usage, "no JSON");
        refused("[]", Usage, "no command");
        refused("{}", Usage, "either `cmd` or `type`");
        refused(r#"{"cmd":"pause","type":"pause"}"#, Usage, "either `cmd` or `type`");
        refused(r#"{"cmd":"contineu"}"#, Usage, "no command is called \"contineu\"");
        refused(r#"{"cmd":"print","args":"i"}"#, Usage, "neither a list");
        refused(r#"{"cmd":"break","args":["-s","s2","f"]}"#, Usage, "unexpected argument");
        refused(r#"{"v":2,"cmd":"pause"}"#, Refused, "another version");
        refused(r#"{"cmd":"run","args":["--","./x"]}"#, Refused, "would start a program");
        refused(r#"{"cmd":"restart"}"#, Refused, "would start a program");
        refused(r#"{"cmd":"trace","args":["--at","f: i","--","./x"]}"#, Refused, "would start a program");
        refused(r#"{"cmd":"stop","args":["--all"]}"#, Refused, "this session alone");
        refused(r#"{"cmd":"prune","args":["--older-than","0s"]}"#, Refused, "this session alone");
        refused(r#"{"cmd":"keep","args":["otter"]}"#, Refused, "this session alone");
        refused(r#"{"cmd":"doctor"}"#, Unsupported, "command line alone");
        refused(r#"{"type":"inject_message","data":{"role":"user","content":"x"}}"#, Unsupported, "for an agent");
        refused(r#"{"type":"inspect","data":{"what":"messages"}}"#, Unsupported, "for an agent");
        refused(r#"{"type":"breakpoint","data":{"action":"add","on":"tool","name":"x"}}"#, Unsupported, "for an agent");
        assert_eq!(command_of(r#"{"cmd":"trace","args":["--at","f: i"]}"#).0, "trace");
        assert_eq!(command_of(r#"{"cmd":"keep"}"#).0, "keep");
        let long = reader::Line { at: 0, end: 70_001, text: None };
        let failure = understand(&long, false).command.unwrap_err();
        assert_eq!(failure.message, "the line has 70000 bytes, more than 65536");
    }
}
