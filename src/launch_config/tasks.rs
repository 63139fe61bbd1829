//! Tasks: what a configuration has run before it.

use serde_json::Value;

use super::{for_this_system, text};
use crate::failure::Failure;

/// How deep tasks may depend on others.
const DEEPEST: usize = 32;

/// One task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub label: String,
    /// The command line; a shell's is `sh -c LINE`. Empty where a task is only a list of others.
    pub argv: Vec<String>,
    pub cwd: Option<String>,
    pub env: Vec<(String, String)>,
    pub before: Vec<String>,
    pub is_default_build: bool,
    /// It never ends by itself.
    pub in_background: bool,
    /// Why it can't be run here.
    pub problem: Option<String>,
}

impl Task {
    /// Its command line for a reader.
    #[must_use]
    pub fn shown(&self) -> String {
        match &self.problem {
            Some(problem) => format!("`{}`: {problem}", self.label),
            None => self.argv.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        }
    }
}

/// One word of a shell's line.
fn quoted(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./=:,+@%{}$".contains(&byte);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Adds a task and those it depends on, which come first.
pub fn collect<'a>(tasks: &'a [Task], name: &str, found: &mut Vec<&'a Task>) -> Result<(), Failure> {
    let mut open = Vec::new();
    visit(tasks, name, found, &mut open)
}

fn visit<'a>(tasks: &'a [Task], name: &str, found: &mut Vec<&'a Task>, open: &mut Vec<String>) -> Result<(), Failure> {
    let task = tasks.iter().find(|task| task.label == name).ok_or_else(|| {
        let known: Vec<&str> = tasks.iter().map(|task| task.label.as_str()).collect();
        Failure::refused(format!("there is no task `{name}`")).hint(match known.is_empty() {
            true => "there is no .vscode/tasks.json".to_string(),
            false => format!("known: {}", known.join(", ")),
        })
    })?;
    if open.iter().any(|label| label == name) || open.len() > DEEPEST {
        return Err(Failure::refused(format!("the task `{name}` depends on itself")));
    }
    open.push(name.into());
    for before in &task.before {
        visit(tasks, before, found, open)?;
    }
    open.pop();
    if !task.argv.is_empty() && !found.iter().any(|known| known.label == task.label) {
        found.push(task);
    }
    Ok(())
}

/// Reads `tasks.json`.
pub fn read(value: &Value) -> Vec<Task> {
    let list = value.get("tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(task).collect()
}

fn task(value: &Value) -> Option<Task> {
    let fields = for_this_system(value.as_object()?);
    let label = text(fields.get("label")).or_else(|| text(fields.get("taskName")))?;
    let kind = text(fields.get("type")).unwrap_or_else(|| "shell".into());
    let command = fields.get("command").and_then(word);
    let args: Vec<String> =
        fields.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(word).collect();
    let options = fields.get("options");
    let option = |name: &str| options.and_then(|options| options.get(name));
    let env = option("env").and_then(Value::as_object).into_iter().flatten();
    let mut problem = None;
    let script = text(fields.get("script"));
    let argv = match (kind.as_str(), command, script) {
        ("npm", _, Some(script)) => vec!["npm".into(), "run".into(), script],
        ("shell", Some(command), _) => {
            let words = args.iter().map(|word| quoted(word));
            let line = std::iter::once(command).chain(words).collect::<Vec<_>>().join(" ");
            vec!["sh".into(), "-c".into(), line]
        }
        // An extension's task that has a command line is run as that.
        (_, Some(command), _) => std::iter::once(command).chain(args).collect(),
        (_, None, _) if fields.contains_key("dependsOn") => Vec::new(),
        _ => {
            problem = Some(format!("tasks of type `{kind}` are the editor's own"));
            vec![label.clone()]
        }
    };
    let before = match fields.get("dependsOn") {
        Some(Value::String(name)) => vec![name.clone()],
        Some(Value::Array(names)) => names.iter().filter_map(|name| text(Some(name))).collect(),
        _ => Vec::new(),
    };
    let group = fields.get("group");
    let in_group = |name: &str| group.and_then(|group| group.get(name));
    Some(Task {
        label,
        argv,
        cwd: text(option("cwd")),
        env: env.filter_map(|(name, value)| Some((name.clone(), text(Some(value))?))).collect(),
        before,
        is_default_build: in_group("kind").and_then(Value::as_str) == Some("build")
            && in_group("isDefault").is_some_and(|value| value != &Value::Bool(false)),
        in_background: fields.get("isBackground") == Some(&Value::Bool(true)),
        problem,
    })
}

/// A word, or one with a way to quote it.
fn word(value: &Value) -> Option<String> {
    text(Some(value)).or_else(|| match value.get("value") {
        Some(Value::Array(parts)) => Some(parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
        value => text(value),
    })
}

/// Reads Zed's `tasks.json`.
pub fn read_zed(value: &Value) -> Vec<Task> {
    value.as_array().into_iter().flatten().filter_map(zed_task).collect()
}

/// A task of Zed's: its command is a shell's line.
pub fn zed_task(value: &Value) -> Option<Task> {
    let command = text(value.get("command"))?;
    let args = super::texts(value.get("args"));
    let plain = command.split_whitespace().count() == 1;
    let argv = match plain {
        true => std::iter::once(command.clone()).chain(args).collect(),
        false => {
            let words = args.iter().map(|word| quoted(word));
            let line = std::iter::once(command.clone()).chain(words).collect::<Vec<_>>().join(" ");
            vec!["sh".into(), "-c".into(), line]
        }
    };
    let env = value.get("env").and_then(Value::as_object).into_iter().flatten();
    Some(Task {
        label: text(value.get("label")).unwrap_or(command),
        argv,
        cwd: text(value.get("cwd")),
        env: env.filter_map(|(name, value)| Some((name.clone(), text(Some(value))?))).collect(),
        before: Vec::new(),
        is_default_build: false,
        in_background: false,
        problem: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tasks_become_command_lines() {
        let tasks = read(&json!({ "tasks": [
            { "label": "a", "type": "shell", "command": "echo $X", "args": ["b c", { "value": "d'e", "quoting": "strong" }] },
            { "label": "b", "type": "process", "command": "make", "args": ["-j", "2"], "options": { "cwd": "x", "env": { "A": "1" } } },
            { "label": "c", "type": "npm", "script": "build" },
            { "label": "d", "dependsOn": ["a", "b"] },
            { "label": "e", "type": "gulp" },
        ] }));
        let lines: Vec<String> = tasks.iter().map(Task::shown).collect();
        assert_eq!(lines[0], r"sh -c 'echo $X '\''b c'\'' '\''d'\''\'\'''\''e'\'''");
        assert_eq!(tasks[0].argv[2], r"echo $X 'b c' 'd'\''e'");
        assert_eq!((lines[1].as_str(), tasks[1].cwd.as_deref()), ("make -j 2", Some("x")));
        assert_eq!(lines[2], "npm run build");
        assert!(lines[4].contains("the editor's own"));
        let mut found = Vec::new();
        collect(&tasks, "d", &mut found).unwrap();
        assert_eq!(found.iter().map(|task| task.label.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn a_circle_is_noticed() {
        let tasks = read(&json!({ "tasks": [
            { "label": "a", "command": "x", "dependsOn": "b" }, { "label": "b", "command": "y", "dependsOn": "a" },
        ] }));
        assert!(collect(&tasks, "a", &mut Vec::new()).unwrap_err().message.contains("depends on itself"));
        assert!(collect(&tasks, "z", &mut Vec::new()).unwrap_err().hints[0].contains("a, b"));
    }
}
