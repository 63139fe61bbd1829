//! The user's own adapters: tables of `config.toml` that fill the same struct as the constants beside this file.
//!
//! What a built-in adapter does with a function, an own one does with a template: the arguments of `launch` and `attach`
//! with `{placeholders}`. A filled template goes into the target's `extra`, so no code elsewhere knows the difference.

use std::sync::{PoisonError, RwLock};

use serde_json::{Map, Value, json};

use super::{Adapter, Find, Found, Install, Natives, Quirks, Reach, Stdio, Way};
use crate::model::{Launch, Stdin, Target};

/// What a table says. Everything that is not said is as the protocol has it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub name: String,
    /// A program on PATH; one with a folder is given by the configuration itself.
    pub program: String,
    pub way: Way,
    pub languages: Vec<String>,
    /// Endings of the files it debugs, without the dot.
    pub extensions: Vec<String>,
    pub adapter_id: Option<String>,
    pub launch: Option<Map<String, Value>>,
    pub attach: Option<Map<String, Value>>,
    pub remote: Option<Map<String, Value>>,
    pub runs_in_terminal: bool,
    pub attach_runs: bool,
    pub output_events: Option<bool>,
    pub entry_function: Option<String>,
    pub eval_context: Option<String>,
    pub print_contexts: Option<Vec<String>>,
    pub hit_condition: HitCondition,
    /// `catch` words and the adapter's filters they mean.
    pub catch: Vec<(String, String)>,
    pub ignored_exceptions: Vec<String>,
}

/// How pass N and every later one is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HitCondition {
    /// `>=N`
    #[default]
    AtLeast,
    /// `N`
    Number,
    /// `N-1`: so many are passed over.
    PassedOver,
}

/// Placeholders that stand for one text each, and may be part of a longer one.
pub const TEXTS: [&str; 8] = ["program", "cwd", "stdin", "stdout", "stderr", "host", "pid", "port"];
/// Placeholders that stand for something else, and must be alone: lists, maps, yes or no.
pub const WHOLES: [&str; 5] = ["args", "interpreter", "env", "env_list", "stop_on_entry"];

/// One that is registered: the struct, and what it was made of.
#[derive(Debug)]
pub struct Own {
    pub adapter: Adapter,
    pub definition: Definition,
}

static REGISTERED: RwLock<Vec<&'static Own>> = RwLock::new(Vec::new());

/// Takes these as the user's adapters, in place of those before. One that did not change stays the same; sessions keep
/// the one they have.
pub fn register(definitions: Vec<Definition>) {
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    let known = std::mem::take(&mut *registered);
    for definition in definitions {
        let same = known.iter().copied().find(|own| own.definition == definition);
        registered.push(same.unwrap_or_else(|| made(definition)));
    }
}

/// The user's adapters, by name.
#[must_use]
pub fn all() -> Vec<&'static Own> {
    REGISTERED.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The definition of an adapter that is the user's own.
#[must_use]
pub fn of(adapter: &Adapter) -> Option<&'static Definition> {
    all().into_iter().find(|own| std::ptr::eq(&raw const own.adapter, adapter)).map(|own| &own.definition)
}

/// The user's adapter for files like this one.
#[must_use]
pub fn for_file(name: &str) -> Option<&'static Adapter> {
    let (stem, ending) = name.rsplit('/').next()?.rsplit_once('.')?;
    let serves = |own: &&Own| !stem.is_empty() && own.definition.extensions.iter().any(|known| known == ending);
    all().into_iter().find(serves).map(|own| &own.adapter)
}

/// Lives as long as the process: an adapter is known by its address, as the built-in ones are. The file is edited by a
/// person, so these are few.
fn made(definition: Definition) -> &'static Own {
    let plain = &Quirks::PLAIN;
    // The program's streams are ours where the adapter hands its own on, or is told of them.
    let named = definition.launch.as_ref().is_some_and(|launch| names(launch, "stdout"));
    let inherited = matches!(definition.way, Way::Dials | Way::Listens);
    let adapter = Adapter {
        id: text(&definition.name),
        aliases: &[],
        languages: texts(&definition.languages),
        find: Find { version_args: &[], ..Find::programs(texts(std::slice::from_ref(&definition.program))) },
        install: Install { note: Some("it is your own: see its table in config.toml"), ..Install::NONE },
        way: definition.way,
        command,
        adapter_env: |_, _| Vec::new(),
        adapter_id: text(definition.adapter_id.as_ref().unwrap_or(&definition.name)),
        launch: |_, _| json!({}),
        attach: |_, _| json!({}),
        remote: definition.remote.is_some().then_some(Reach::Through(|_| json!({}))),
        core: None,
        quirks: Quirks {
            runs_in_terminal: definition.runs_in_terminal,
            attach_runs: definition.attach_runs,
            output_events: definition.output_events.unwrap_or(!named && !inherited && !definition.runs_in_terminal),
            entry_function: definition.entry_function.as_deref().map(text),
            eval_context: definition.eval_context.as_deref().map_or(plain.eval_context, text),
            print_contexts: definition.print_contexts.as_deref().map_or(plain.print_contexts, texts),
            hit_condition: match definition.hit_condition {
                HitCondition::AtLeast => |n| format!(">={n}"),
                HitCondition::Number => |n| n.to_string(),
                HitCondition::PassedOver => |n| n.saturating_sub(1).to_string(),
            },
            catch_words: Box::leak(definition.catch.iter().map(|(word, filter)| (text(word), text(filter))).collect()),
            ignored_exceptions: texts(&definition.ignored_exceptions),
            ..Quirks::PLAIN
        },
        natives: Natives::NONE,
    };
    Box::leak(Box::new(Own { adapter, definition }))
}

fn text(text: &str) -> &'static str {
    Box::leak(text.to_string().into_boxed_str())
}

fn texts(list: &[String]) -> &'static [&'static str] {
    Box::leak(list.iter().map(|word| text(word)).collect())
}

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned()];
    argv.extend(found.args.iter().cloned());
    argv
}

fn names(template: &Map<String, Value>, placeholder: &str) -> bool {
    let wanted = format!("{{{placeholder}}}");
    template.values().any(|value| value.to_string().contains(&wanted))
}

/// Fills the templates of an own adapter into the target; a built-in one has none. What a launch configuration says on
/// top stays on top. Fails with what the adapter's table lacks.
pub fn fill(adapter: &Adapter, target: &mut Target, stdio: &Stdio) -> Result<(), &'static str> {
    let Some(definition) = of(adapter) else { return Ok(()) };
    match target {
        Target::Launch(launch) => {
            let template = definition.launch.as_ref().ok_or("launch")?;
            let filled = filled(template, &|name| of_launch(name, launch, stdio));
            lay_below(&mut launch.extra, filled);
        }
        Target::Attach { pid, program, extra } => {
            let template = definition.attach.as_ref().ok_or("attach")?;
            let filled = filled(template, &|name| match name {
                "pid" => json!(pid),
                "program" => json!(program),
                _ => Value::Null,
            });
            lay_below(extra, filled);
        }
        Target::Remote(remote) => {
            let template = definition.remote.as_ref().ok_or("remote")?;
            let filled = filled(template, &|name| match name {
                "host" => json!(remote.host),
                "port" => json!(remote.port),
                "program" => json!(remote.program),
                _ => Value::Null,
            });
            lay_below(&mut remote.extra, filled);
        }
        Target::Core { .. } => {}
    }
    Ok(())
}

fn of_launch(name: &str, launch: &Launch, stdio: &Stdio) -> Value {
    match name {
        "program" => json!(launch.program),
        "args" => json!(launch.args),
        "interpreter" => json!(launch.interpreter),
        "cwd" => json!(launch.cwd),
        "env" => Value::Object(launch.env.iter().map(|(name, value)| (name.clone(), json!(value))).collect()),
        "env_list" => launch.env.iter().map(|(name, value)| format!("{name}={value}")).collect(),
        "stop_on_entry" => json!(launch.stop_on_entry),
        "stdin" => match &launch.stdin {
            Stdin::File(file) => json!(file),
            Stdin::Interactive => json!(stdio.stdin),
        },
        "stdout" => json!(stdio.stdout),
        "stderr" => json!(stdio.stderr),
        _ => Value::Null,
    }
}

fn lay_below(upper: &mut Map<String, Value>, mut lower: Map<String, Value>) {
    lower.append(upper);
    *upper = lower;
}

/// A field whose whole value is a placeholder for something that is not there is left out.
fn filled(template: &Map<String, Value>, value_of: &dyn Fn(&str) -> Value) -> Map<String, Value> {
    let fields = template.iter().filter_map(|(name, value)| {
        let value = filled_value(value, value_of);
        (!value.is_null()).then(|| (name.clone(), value))
    });
    fields.collect()
}

fn filled_value(value: &Value, value_of: &dyn Fn(&str) -> Value) -> Value {
    match value {
        Value::String(text) => filled_text(text, value_of),
        Value::Array(items) => items.iter().map(|item| filled_value(item, value_of)).collect(),
        Value::Object(fields) => Value::Object(filled(fields, value_of)),
        other => other.clone(),
    }
}

fn filled_text(text: &str, value_of: &dyn Fn(&str) -> Value) -> Value {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = next_placeholder(rest) {
        if before.is_empty() && after.is_empty() && rest.len() == text.len() {
            return value_of(name);
        }
        out.push_str(before);
        match value_of(name) {
            Value::String(text) => out.push_str(&text),
            Value::Null => {}
            other => out.push_str(&other.to_string()),
        }
        rest = after;
    }
    out.push_str(rest);
    Value::String(out)
}

/// What is before the next `{name}`, its name, and what is after it.
fn next_placeholder(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    while let Some(open) = text[from..].find('{').map(|at| from + at) {
        let inner = &text[open + 1..];
        let length = inner.bytes().take_while(|byte| byte.is_ascii_lowercase() || *byte == b'_').count();
        if length > 0 && inner[length..].starts_with('}') {
            return Some((&text[..open], &inner[..length], &inner[length + 1..]));
        }
        from = open + 1;
    }
    None
}

/// The first placeholder of a template that is not known, or is part of a text and can't be.
#[must_use]
pub fn wrong_placeholder(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let mut rest = text.as_str();
            while let Some((_, name, after)) = next_placeholder(rest) {
                let alone = text.len() == name.len() + 2;
                let known = TEXTS.contains(&name) || (alone && WHOLES.contains(&name));
                if !known {
                    return Some(name.to_string());
                }
                rest = after;
            }
            None
        }
        Value::Array(items) => items.iter().find_map(wrong_placeholder),
        Value::Object(fields) => fields.values().find_map(wrong_placeholder),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(name: &str) -> Definition {
        Definition {
            name: name.into(),
            program: "adapter".into(),
            way: Way::Streams,
            languages: vec!["moo".into()],
            extensions: vec!["moo".into()],
            adapter_id: None,
            launch: json!({ "program": "{program}", "args": "{args}", "where": ["in {cwd}"], "env": "{env_list}",
                            "stop": "{stop_on_entry}", "kind": "own", "pid": "{pid}" })
            .as_object()
            .cloned(),
            attach: json!({ "id": "{pid}", "text": "pid {pid}", "file": "{program}" }).as_object().cloned(),
            remote: None,
            runs_in_terminal: false,
            attach_runs: false,
            output_events: None,
            entry_function: None,
            eval_context: None,
            print_contexts: None,
            hit_condition: HitCondition::Number,
            catch: vec![("uncaught".into(), "unhandled".into())],
            ignored_exceptions: Vec::new(),
        }
    }

    #[test]
    fn templates_are_filled_with_their_types() {
        let own = made(definition("filled"));
        REGISTERED.write().unwrap().push(own);
        let stdio = Stdio { stdin: "/i".into(), stdout: "/o".into(), stderr: "/e".into() };
        let launch = Launch {
            program: "/p/a.moo".into(),
            interpreter: Vec::new(),
            helper: None,
            args: vec!["1".into(), "{program}".into()],
            cwd: "/p".into(),
            env: vec![("A".into(), "b=c".into())],
            umask: None,
            stdin: Stdin::Interactive,
            stop_on_entry: true,
            record: false,
            formatters: None,
            entry_in_source: false,
            catch: Vec::new(),
            extra: json!({ "kind": "on top" }).as_object().cloned().unwrap(),
        };
        let mut target = Target::Launch(launch);
        fill(&own.adapter, &mut target, &stdio).unwrap();
        let Target::Launch(launch) = target else { unreachable!() };
        let expected = json!({ "program": "/p/a.moo", "args": ["1", "{program}"], "where": ["in /p"],
                               "env": ["A=b=c"], "stop": true, "kind": "on top" });
        assert_eq!(Value::Object(launch.extra), expected);
        let mut target = Target::Attach { pid: 7, program: None, extra: Map::new() };
        fill(&own.adapter, &mut target, &stdio).unwrap();
        let Target::Attach { extra, .. } = target else { unreachable!() };
        assert_eq!(Value::Object(extra), json!({ "id": 7, "text": "pid 7" }));
        let mut target = Target::Remote(crate::model::Remote {
            host: "h".into(),
            port: 1,
            socket: "/s".into(),
            program: None,
            extra: Map::new(),
        });
        assert_eq!(fill(&own.adapter, &mut target, &stdio), Err("remote"));
        assert_eq!((own.adapter.quirks.hit_condition)(3), "3");
        assert_eq!(own.adapter.quirks.catch_words, [("uncaught", "unhandled")]);
        assert!(std::ptr::eq(for_file("/x/y.moo").unwrap(), &raw const own.adapter));
        assert!(for_file("moo").is_none() && for_file(".moo").is_none());
    }

    #[test]
    fn a_placeholder_that_is_none_is_found() {
        assert_eq!(wrong_placeholder(&json!({ "a": ["{program} {cwd}", "{args}"] })), None);
        assert_eq!(wrong_placeholder(&json!({ "a": ["x {args}"] })), Some("args".into()));
        assert_eq!(wrong_placeholder(&json!({ "a": { "b": "{progam}" } })), Some("progam".into()));
        assert_eq!(wrong_placeholder(&json!("{ a } {} {\"x\": 1}")), None);
    }
}
