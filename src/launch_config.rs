//! Launch configurations of editors: `.vscode/launch.json` with its tasks, and `.zed/debug.json`.
//!
//! They are read as data. What they would run beside the program, or read into its environment, is kept apart as
//! [`Needs`]: it is done only in a workspace that the user trusts.

pub mod jsonc;
mod plan;
pub mod tasks;
mod variables;

use serde_json::{Map, Value};

pub use plan::{Plan, plan};
pub use tasks::Task;
pub use variables::Scope;

use crate::failure::Failure;
use crate::nearest::nearest;

/// The files of a workspace, relative to its folder, and how each is read.
pub const FILES: [(&str, Reader); 4] = [
    (".vscode/launch.json", read_launch),
    (".vscode/tasks.json", |workspace, value| workspace.tasks.extend(tasks::read(value))),
    (".zed/debug.json", read_zed),
    (".zed/tasks.json", |workspace, value| workspace.tasks.extend(tasks::read_zed(value))),
];

/// Adds what a file says.
pub type Reader = fn(&mut Workspace, &Value);

/// Everything that a workspace's files say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Workspace {
    pub configs: Vec<Config>,
    pub compounds: Vec<Compound>,
    pub inputs: Vec<Input>,
    pub tasks: Vec<Task>,
}

/// One configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    pub name: String,
    /// `cppdbg`, `python`: the editor's word for the debugger.
    pub kind: String,
    /// `launch` or `attach`.
    pub request: String,
    /// All its fields, with those for this system laid over the rest.
    pub fields: Map<String, Value>,
    /// The task to run before it.
    pub task: Option<TaskChoice>,
}

/// The task that a configuration names.
#[derive(Debug, Clone, PartialEq)]
pub enum TaskChoice {
    Named(String),
    /// The workspace's default build.
    DefaultBuild,
    Own(Task),
}

/// Several configurations that are started together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compound {
    pub name: String,
    pub configs: Vec<String>,
    pub task: Option<String>,
}

/// Something that the editor would ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub id: String,
    pub default: Option<String>,
    pub description: Option<String>,
    pub options: Vec<String>,
}

/// What a configuration does only where it is trusted, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Command lines that would be run before it.
    pub commands: Vec<String>,
    /// A file of variables for the program.
    pub env_file: Option<String>,
    /// Fields with commands of the debugger.
    pub fields: Vec<String>,
}

impl Needs {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.env_file.is_none() && self.fields.is_empty()
    }
}

impl Workspace {
    /// Reads the files that are there: (path below the folder, text).
    pub fn read(files: &[(String, String)]) -> Result<Self, Failure> {
        let mut workspace = Self::default();
        for (name, text) in files {
            let value =
                jsonc::parse(text).map_err(|error| Failure::refused(format!("{name} can't be read: {error}")))?;
            if let Some((_, read)) = FILES.iter().find(|(known, _)| known == name) {
                read(&mut workspace, &value);
            }
        }
        Ok(workspace)
    }

    /// The configurations of a name: one, or all of a compound.
    pub fn named(&self, name: &str) -> Result<Vec<&Config>, Failure> {
        if let Some(config) = self.configs.iter().find(|config| config.name == name) {
            return Ok(vec![config]);
        }
        let Some(compound) = self.compounds.iter().find(|compound| compound.name == name) else {
            let names: Vec<&str> = self.names();
            let failure = Failure::not_found(format!("there is no launch configuration `{name}`"));
            return Err(match nearest(name, names.iter().copied()) {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure.hint(format!("known: {}", names.join(", "))),
            });
        };
        let find = |name: &String| {
            self.configs.iter().find(|config| config.name == *name).ok_or_else(|| {
                Failure::refused(format!("`{}` has a part `{name}`, which is no configuration", compound.name))
            })
        };
        compound.configs.iter().map(find).collect()
    }

    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let compounds = self.compounds.iter().map(|compound| compound.name.as_str());
        self.configs.iter().map(|config| config.name.as_str()).chain(compounds).collect()
    }

    /// The tasks to run before a configuration, in order.
    pub fn tasks_of(&self, config: &Config) -> Result<Vec<&Task>, Failure> {
        let mut found = Vec::new();
        match &config.task {
            None => {}
            Some(TaskChoice::Own(_)) => {}
            Some(TaskChoice::Named(name)) => tasks::collect(&self.tasks, name, &mut found)?,
            Some(TaskChoice::DefaultBuild) => {
                let task = self.tasks.iter().find(|task| task.is_default_build).ok_or_else(|| {
                    Failure::refused(format!("`{}` wants the default build task, and there is none", config.name))
                })?;
                tasks::collect(&self.tasks, &task.label, &mut found)?;
            }
        }
        Ok(found)
    }

    /// What a configuration does only where it is trusted.
    #[must_use]
    pub fn needs(&self, config: &Config) -> Needs {
        let commands = match (&config.task, self.tasks_of(config)) {
            (Some(TaskChoice::Own(task)), _) => vec![task.shown()],
            (_, Ok(tasks)) => tasks.into_iter().map(Task::shown).collect(),
            (Some(TaskChoice::Named(name)), Err(_)) => vec![format!("the task `{name}`, which is not there")],
            (_, Err(failure)) => vec![failure.message],
        };
        Needs {
            commands,
            env_file: config.fields.get("envFile").and_then(Value::as_str).map(Into::into),
            fields: plan::risky_fields(config),
        }
    }
}

/// The block of the system that this is built for.
const SYSTEM: &str = if cfg!(target_os = "macos") { "osx" } else { "linux" };

/// Lays the fields for this system over the rest.
fn for_this_system(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = fields.clone();
    let own = fields.get(SYSTEM).and_then(Value::as_object).cloned();
    for system in ["linux", "osx", "windows"] {
        fields.remove(system);
    }
    fields.extend(own.unwrap_or_default());
    fields
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(Into::into)
}

/// A list of texts; what is no text is passed over.
fn texts(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(|item| item.as_str().map(Into::into)).collect()
}

fn read_launch(workspace: &mut Workspace, value: &Value) {
    let list = |name: &str| value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for fields in list("configurations").iter().filter_map(Value::as_object) {
        let fields = for_this_system(fields);
        let Some(name) = text(fields.get("name")) else { continue };
        let task = text(fields.get("preLaunchTask")).map(|task| match task.as_str() {
            "${defaultBuildTask}" => TaskChoice::DefaultBuild,
            _ => TaskChoice::Named(task),
        });
        workspace.configs.push(Config {
            name,
            kind: text(fields.get("type")).unwrap_or_default(),
            request: text(fields.get("request")).unwrap_or_else(|| "launch".into()),
            fields,
            task,
        });
    }
    for fields in list("compounds") {
        let Some(name) = text(fields.get("name")) else { continue };
        let parts = fields.get("configurations").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        // A part is a name, or a name with the folder it is of.
        let part = |part: &Value| text(Some(part)).or_else(|| text(part.get("name")));
        let configs = parts.iter().filter_map(part).collect();
        workspace.compounds.push(Compound { name, configs, task: text(fields.get("preLaunchTask")) });
    }
    for fields in list("inputs") {
        let Some(id) = text(fields.get("id")) else { continue };
        let options = fields.get("options").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let option = |option: &Value| text(Some(option)).or_else(|| text(option.get("value")));
        workspace.inputs.push(Input {
            id,
            default: text(fields.get("default")),
            description: text(fields.get("description")),
            options: options.iter().filter_map(option).collect(),
        });
    }
}

fn read_zed(workspace: &mut Workspace, value: &Value) {
    let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
    for fields in list.iter().filter_map(Value::as_object) {
        let Some(name) = text(fields.get("label")) else { continue };
        let task = fields.get("build").and_then(|build| match build.as_str() {
            Some(name) => Some(TaskChoice::Named(name.into())),
            None => tasks::zed_task(build).map(TaskChoice::Own),
        });
        workspace.configs.push(Config {
            name,
            kind: text(fields.get("adapter")).unwrap_or_default().to_lowercase(),
            request: text(fields.get("request")).unwrap_or_else(|| "launch".into()),
            fields: fields.clone(),
            task,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCH: &str = r#"{
        // what the editor offers
        "version": "0.2.0",
        "configurations": [
            { "name": "app", "type": "cppdbg", "request": "launch", "program": "${workspaceFolder}/app",
              "preLaunchTask": "build", "linux": { "args": ["l"] }, "osx": { "args": ["l"] }, "windows": { "args": ["w"] } },
            { "name": "web", "type": "debugpy", "request": "attach", "connect": { "port": 5678 }, "envFile": ".env" },
            { "type": "python" },
        ],
        "compounds": [
            { "name": "both", "configurations": ["app", { "name": "web", "folder": "x" }] },
            { "name": "broken", "configurations": ["gone"] },
        ],
        "inputs": [{ "id": "who", "type": "pickString", "options": ["a", { "label": "B", "value": "b" }] }],
    }"#;

    const TASKS: &str = r#"{ "tasks": [
        { "label": "build", "type": "process", "command": "make", "args": ["app"], "dependsOn": "clean",
          "group": { "kind": "build", "isDefault": true } },
        { "label": "clean", "type": "shell", "command": "rm -f *.o" },
    ] }"#;

    fn workspace() -> Workspace {
        let file = |name: &str, text: &str| (name.to_string(), text.to_string());
        Workspace::read(&[file(".vscode/launch.json", LAUNCH), file(".vscode/tasks.json", TASKS)]).unwrap()
    }

    #[test]
    fn a_file_is_read_with_what_it_would_run() {
        let workspace = workspace();
        assert_eq!(workspace.names(), ["app", "web", "both", "broken"]);
        let app = workspace.named("app").unwrap()[0];
        assert_eq!((app.kind.as_str(), texts(app.fields.get("args"))), ("cppdbg", vec!["l".into()]));
        assert_eq!(workspace.needs(app).commands, ["sh -c 'rm -f *.o'", "make app"]);
        let web = workspace.named("web").unwrap()[0];
        assert_eq!(workspace.needs(web).env_file.as_deref(), Some(".env"));
        let both: Vec<&str> = workspace.named("both").unwrap().iter().map(|config| config.name.as_str()).collect();
        assert_eq!(both, ["app", "web"]);
        assert!(workspace.named("broken").unwrap_err().message.contains("`gone`"));
        assert_eq!(workspace.named("ap").unwrap_err().hints, ["did you mean `app`?"]);
        assert_eq!(workspace.inputs[0].options, ["a", "b"]);
    }

    #[test]
    fn zed_s_file_is_read_too() {
        let text = r#"[ { "label": "run it", "adapter": "CodeLLDB", "request": "launch", "program": "$ZED_WORKTREE_ROOT/app",
                          "build": { "command": "cargo", "args": ["build"] } }, ]"#;
        let workspace = Workspace::read(&[(".zed/debug.json".into(), text.into())]).unwrap();
        let config = workspace.named("run it").unwrap()[0];
        assert_eq!(config.kind, "codelldb");
        assert_eq!(workspace.needs(config).commands, ["cargo build"]);
    }

    #[test]
    fn what_is_no_such_file_is_said_or_empty() {
        let read = |text: &str| Workspace::read(&[(".vscode/launch.json".into(), text.into())]);
        assert!(read("{").unwrap_err().message.starts_with(".vscode/launch.json can't be read"));
        for odd in ["[]", "3", "{\"configurations\": 3}", "{\"configurations\": [1, {\"name\": 2}]}"] {
            assert_eq!(read(odd).unwrap(), Workspace::default(), "{odd}");
        }
    }
}
