//! Blueprints from launch configurations: variables filled in, tasks run before them where that is allowed.

use std::path::Path;

use super::launch::Blueprint;
use super::{Context, build};
use crate::failure::Failure;
use crate::launch_config::{Config, Needs, Plan, Scope, Task, TaskChoice, Workspace, plan};
use crate::locate::{self, Build};
use crate::workspace::{Files, Standing, Trust};

/// What was asked beside the configuration's name; it comes before what the configuration says.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// `--var NAME=VALUE`.
    pub vars: Vec<(String, String)>,
    /// More arguments for the program.
    pub args: Vec<String>,
    /// `--env NAME=VALUE`.
    pub env: Vec<(String, String)>,
    pub has_cwd: bool,
}

/// The blueprints of a configuration, or of each part of a compound, with what is to be said about them. `base` is what
/// they have in common.
pub async fn blueprints(
    cx: &Context,
    name: &str,
    asked: &Asked,
    base: &Blueprint,
) -> Result<Vec<(Blueprint, Vec<String>)>, Failure> {
    let files = Files::find(&cx.caller.cwd)?;
    let workspace = files.workspace()?;
    let configs = workspace.named(name)?;
    let standing = Trust::load(&cx.hub.paths).standing(&files);
    let trusted = standing == Standing::Trusted;
    let scope = Scope {
        folder: &files.folder,
        cwd: &cx.caller.cwd,
        env: &base.env,
        vars: &asked.vars,
        inputs: &workspace.inputs,
    };
    // All are looked at before anything is run.
    let mut plans = Vec::new();
    for config in &configs {
        if !trusted {
            refuse_what_it_needs(config, &workspace.needs(config), standing)?;
        }
        plans.push(plan(config, &scope, trusted)?);
    }
    let compound = workspace.compounds.iter().find(|compound| compound.name == name);
    if let Some(task) = compound.filter(|_| configs.len() > 1).and_then(|compound| compound.task.as_ref()) {
        let whole = Config {
            name: name.into(),
            kind: String::new(),
            request: String::new(),
            fields: serde_json::Map::new(),
            task: Some(TaskChoice::Named(task.clone())),
        };
        if !trusted {
            refuse_what_it_needs(&whole, &workspace.needs(&whole), standing)?;
        }
        run_tasks(cx, &whole, &workspace, &scope, base).await?;
    }
    let mut found = Vec::new();
    for (config, plan) in configs.iter().zip(plans) {
        run_tasks(cx, config, &workspace, &scope, base).await?;
        found.push(blueprint(plan, config, asked, base)?);
    }
    Ok(found)
}

fn refuse_what_it_needs(config: &Config, needs: &Needs, standing: Standing) -> Result<(), Failure> {
    if needs.commands.is_empty() && needs.env_file.is_none() {
        return Ok(());
    }
    let why = match standing {
        Standing::Changed => "its files have changed since they were trusted",
        _ => "this workspace is not trusted",
    };
    let failure = Failure::refused(format!("`{}` does more than start a program, and {why}", config.name));
    let failure = needs.commands.iter().fold(failure, |failure, command| failure.hint(format!("it runs: {command}")));
    let failure = needs.env_file.iter().fold(failure, |failure, file| failure.hint(format!("it reads: {file}")));
    Err(failure.hint("look at it and allow it: bugeye trust"))
}

async fn run_tasks(
    cx: &Context,
    config: &Config,
    workspace: &Workspace,
    scope: &Scope<'_>,
    base: &Blueprint,
) -> Result<(), Failure> {
    let tasks = match &config.task {
        Some(TaskChoice::Own(task)) => vec![task],
        _ => workspace.tasks_of(config)?,
    };
    for task in tasks {
        let build = build_of(task, scope)?;
        build::run(cx, base, build, cx.hub.config.build()).await?;
    }
    Ok(())
}

fn build_of(task: &Task, scope: &Scope<'_>) -> Result<Build, Failure> {
    if let Some(problem) = &task.problem {
        return Err(Failure::unsupported(format!("the task `{}` can't be run here: {problem}", task.label)));
    }
    if task.in_background {
        return Err(Failure::unsupported(format!("the task `{}` runs in the background and never ends", task.label))
            .hint("start it by hand, and take `preLaunchTask` out"));
    }
    let argv = task.argv.iter().map(|word| scope.fill_text(word)).collect::<Result<_, _>>()?;
    let cwd = task.cwd.as_deref().map(|cwd| scope.fill_text(cwd)).transpose()?;
    let env = task.env.iter().map(|(name, value)| Ok((name.clone(), scope.fill_text(value)?)));
    Ok(Build {
        argv,
        cwd: cwd.map_or_else(|| scope.folder.to_path_buf(), |cwd| scope.folder.join(cwd)),
        env: env.collect::<Result<_, Failure>>()?,
        then: Box::new(|_| Ok(locate::Plan::Debug(locate::Program::default()))),
    })
}

fn blueprint(
    plan: Plan,
    config: &Config,
    asked: &Asked,
    base: &Blueprint,
) -> Result<(Blueprint, Vec<String>), Failure> {
    let mut notes = plan.notes;
    let mut env = base.env.clone();
    let mut set = |name: &str, value: Option<&str>| {
        env.retain(|(known, _)| known != name);
        env.extend(value.map(|value| (name.to_string(), value.to_string())));
    };
    if let Some(file) = &plan.env_file {
        env_file(file)?.iter().for_each(|(name, value)| set(name, Some(value)));
    }
    plan.env.iter().for_each(|(name, value)| set(name, value.as_deref()));
    asked.env.iter().for_each(|(name, value)| set(name, Some(value)));
    let cwd = plan.cwd.filter(|_| !asked.has_cwd).unwrap_or_else(|| base.cwd.clone());
    if env.iter().any(|(name, _)| name == "PWD") {
        env.retain(|(name, _)| name != "PWD");
        env.push(("PWD".into(), cwd.to_string_lossy().into_owned()));
    }
    let mut words = plan.words;
    if words.is_empty() {
        words.push(config.name.clone());
    } else {
        words.extend(asked.args.iter().cloned());
    }
    let mut extra = plan.extra;
    if base.adapter.is_some() && !extra.is_empty() {
        notes.push("another adapter was asked for: the fields for the configuration's own are left out".into());
        extra.clear();
    }
    let blueprint = Blueprint {
        words,
        aim: plan.aim,
        symbols: plan.symbols.filter(|file| file.is_file()),
        extra,
        adapter: base.adapter.clone().or(plan.adapter),
        cwd,
        env,
        stop_on_entry: base.stop_on_entry || plan.stop_on_entry,
        ..base.clone()
    };
    Ok((blueprint, notes))
}

/// Lines of `NAME=VALUE`; comments and `export` are passed over, quotes taken off.
fn env_file(path: &Path) -> Result<Vec<(String, String)>, Failure> {
    let text =
        std::fs::read_to_string(path).map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        let value = value.trim();
        let bare = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
        Some((name.trim().to_string(), bare.unwrap_or(value).to_string())).filter(|(name, _)| !name.is_empty())
    };
    Ok(lines.filter_map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_variables_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(".env");
        std::fs::write(&file, "# x\nA=1\n export B = \"two words\"\n\nC='=3'\nnonsense\n=4\n").unwrap();
        let pairs = env_file(&file).unwrap();
        let shown: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        assert_eq!(shown, ["A:1", "B:two words", "C:=3"]);
        assert!(env_file(&folder.path().join("gone")).is_err());
    }
}
