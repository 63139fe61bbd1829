//! The tools' arguments as words of commands, and the documentation of both.

use serde_json::json;

use super::*;
use crate::cli;

fn words(tool: &str, arguments: &Value) -> Result<Vec<String>, String> {
    let tool = TOOLS.iter().find(|known| known.name == tool).unwrap();
    let commands = (tool.words)(&Arguments(arguments.as_object().unwrap()))?;
    Ok(commands.iter().map(|words| words.join(" ")).collect())
}

fn good(tool: &str, arguments: &Value) -> Vec<String> {
    words(tool, arguments).unwrap()
}

/// What an argument may be, by its schema.
fn samples(schema: &Value) -> Vec<Value> {
    if let Some(known) = schema["enum"].as_array() {
        return known.clone();
    }
    vec![match schema["type"].as_str().unwrap() {
        "string" => json!("x7"),
        "integer" | "number" => json!(3),
        "boolean" => json!(true),
        "array" if schema["items"]["type"] == "integer" => json!([1, 2]),
        "array" => json!(["a b", "--c"]),
        other => panic!("no sample of {other}"),
    }]
}

/// The least that makes a call of a tool whole.
fn least(tool: &str) -> Value {
    match tool {
        "debug_run" => json!({ "command": ["./a"] }),
        "debug_trace" => json!({ "at": ["a.c:3: x"], "command": ["./a"] }),
        "debug_break" => json!({ "at": ["a.c:3"] }),
        "debug_print" | "debug_eval" => json!({ "expressions": ["x"] }),
        "debug_input" => json!({ "text": "x" }),
        "debug_do" => json!({ "commands": ["print x"] }),
        "debug_continue" | "debug_inspect" => json!({ "place": "a.c:7" }),
        "debug_sessions" => json!({ "session": "s1" }),
        _ => json!({}),
    }
}

#[test]
fn whatever_a_schema_allows_is_a_command_that_exists() {
    for tool in TOOLS {
        let properties: Map<String, Value> = serde_json::from_str(tool.properties).unwrap();
        for (name, schema) in &properties {
            for sample in samples(schema) {
                let mut arguments = if name == "config" { json!({}) } else { least(tool.name) };
                arguments[name] = match (tool.name, name.as_str()) {
                    ("debug_do", _) | ("debug_break", "catch") => json!(["raw x", "catch throw E"][..1]),
                    ("debug_run" | "debug_trace", "env") => json!(["K=V"]),
                    ("debug_trace", "at") => json!(["a.c:3: x"]),
                    _ => sample,
                };
                let commands = (tool.words)(&Arguments(arguments.as_object().unwrap()))
                    .unwrap_or_else(|error| panic!("{} {arguments}: {error}", tool.name));
                assert!(!commands.is_empty());
                for words in commands {
                    let read = cli::command()
                        .try_get_matches_from(std::iter::once("bugeye").chain(words.iter().map(String::as_str)));
                    assert!(read.is_ok(), "{} {arguments}: {words:?}: {}", tool.name, read.unwrap_err());
                }
            }
        }
    }
}

#[test]
fn the_documentation_names_every_tool_and_argument() {
    let page = include_str!("../../../docs/mcp.md");
    for tool in TOOLS {
        let line = page.lines().find(|line| line.starts_with(&format!("| `{}`", tool.name))).unwrap_or(tool.name);
        let told: Vec<&str> = line.rsplit(" | ").next().unwrap().split('`').skip(1).step_by(2).collect();
        let properties: Map<String, Value> = serde_json::from_str(tool.properties).unwrap();
        let mut known: Vec<&str> = properties.keys().map(String::as_str).collect();
        let mut told = told.clone();
        known.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, known, "{}", tool.name);
    }
}

#[test]
fn calls_are_the_words_that_a_user_would_type() {
    let run = json!({ "command": "python3 'my app.py' 3", "break": ["app.py:7"], "wait": 5 });
    assert_eq!(good("debug_run", &run), ["run --break=app.py:7 --wait=5 -- python3 my app.py 3"]);
    assert_eq!(good("debug_run", &json!({ "attach": "4711" })), ["attach -- 4711"]);
    assert_eq!(good("debug_run", &json!({ "test": "test_a" })), ["test -- test_a"]);
    assert_eq!(good("debug_run", &json!({ "core": "core.1" })), ["start --core=core.1"]);
    assert_eq!(good("debug_break", &json!({})), ["breaks"]);
    assert_eq!(
        good("debug_break", &json!({ "at": "f", "if": "x > 1", "remove": [3, 4] })),
        ["unbreak 3 4", "break --if=x > 1 -- f"]
    );
    assert_eq!(good("debug_break", &json!({ "catch": ["throw ValueError"] })), ["catch throw ValueError"]);
    assert_eq!(good("debug_break", &json!({ "watch": "n", "access": "both" })), ["watch --access -- n"]);
    assert_eq!(good("debug_continue", &json!({})), ["continue"]);
    assert_eq!(good("debug_continue", &json!({ "how": "await" })), ["await --timeout=45"]);
    assert_eq!(good("debug_print", &json!({ "expressions": ["a", "-b"] })), ["print --expr=a --expr=-b"]);
    assert_eq!(good("debug_eval", &json!({ "set": "x = 3", "expressions": ["x"] })), ["set -- x = 3", "eval -- x"]);
    assert_eq!(
        good("debug_do", &json!({ "commands": ["break a:1; continue", "bugeye print x"] })),
        ["break a:1", "continue", "print x"]
    );
    assert_eq!(good("debug_sessions", &json!({ "action": "use", "session": "s2" })), ["use -- s2"]);
}

#[test]
fn mistakes_are_told_with_the_way_out() {
    let bad = |tool, arguments: Value| words(tool, &arguments).unwrap_err();
    assert!(bad("debug_continue", json!({ "how": "hop" })).contains("finish"));
    assert!(bad("debug_continue", json!({ "how": "until" })).contains("`place`"));
    assert!(bad("debug_inspect", json!({ "what": "stack" })).contains("backtrace"));
    assert!(bad("debug_sessions", json!({ "action": "use" })).contains("`session`"));
    assert!(bad("debug_run", json!({ "command": ["a"], "stdin": "-" })).contains("debug_input"));
    assert!(bad("debug_run", json!({ "command": "a 'b" })).contains("not closed"));
    assert!(bad("debug_eval", json!({})).contains("debug_print"));
    assert!(bad("debug_print", json!({})).contains("debug_inspect"));
    assert!(bad("debug_print", json!({ "expressions": [{}] })).contains("list of texts"));
    assert!(bad("debug_input", json!({})).contains("`eof`"));
    assert!(bad("debug_do", json!({ "commands": [] })).contains("for instance"));
    assert!(bad("debug_run", json!({ "command": ["a"], "hold": "yes" })).contains("true or false"));
}
