//! Python: scripts, modules, and what runs tests.

mod suite;

use std::path::PathBuf;

use serde_json::Value;

use super::{Asked, Build, Plan, Program, check_file, find_word, interpreter_of, shebang};
use crate::failure::Failure;
use crate::find;

pub use suite::test;

/// A test runner catches what its tests raise: a failure is what leaves the project's own code.
const FAILURE: &str = "userUnhandled";

/// Tools that run a command in an environment of their own: the tool, and its options that take a value.
const WRAPPERS: [(&str, &[&str]); 6] = [
    (
        "uv",
        &[
            "--with",
            "--with-editable",
            "--extra",
            "--group",
            "--only-group",
            "--no-group",
            "-p",
            "--python",
            "--env-file",
        ],
    ),
    ("poetry", &[]),
    ("pipenv", &[]),
    ("pdm", &["-p", "--project"]),
    ("hatch", &[]),
    ("rye", &[]),
];

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    if is_python(asked.name()) {
        return command(asked).map(|program| Some(Plan::Debug(program)));
    }
    if let Some((_, valued)) = WRAPPERS.iter().find(|(tool, _)| *tool == asked.name()) {
        return wrapped(asked, valued);
    }
    let Some((path, head)) = asked.file() else { return Ok(None) };
    let interpreter = shebang(&head).filter(|words| words.iter().any(|word| is_python(word)));
    let is_pytest = ["pytest", "py.test"].contains(&asked.name());
    let program = match interpreter {
        Some(words) => {
            let interpreter = match interpreter_of(&words, asked.env_path) {
                Some(words) => words,
                None => vec![default_python(asked.env_path)?],
            };
            python(interpreter, path, asked.args())
        }
        None if path.extension().is_some_and(|extension| extension == "py") => {
            python(vec![default_python(asked.env_path)?], path, asked.args())
        }
        // A stand-in that looks for the real one each time: its Python lies beside it.
        None if is_pytest => {
            let beside = path.parent().and_then(|folder| find::interpreter(&folder.to_string_lossy()));
            let interpreter = match beside {
                Some(python) => python.to_string_lossy().into_owned(),
                None => default_python(asked.env_path)?,
            };
            python(vec![interpreter], "-m pytest".into(), asked.args())
        }
        None => return Ok(None),
    };
    Ok(Some(Plan::Debug(if is_pytest { pytest(program, asked) } else { tested(program, asked) })))
}

fn python(interpreter: Vec<String>, program: PathBuf, args: &[String]) -> Program {
    Program { language: "python", interpreter, program, args: args.to_vec(), ..Program::default() }
}

/// What runs tests stops where they fail.
fn tested(mut program: Program, asked: &Asked) -> Program {
    let is_manage = program.program.ends_with("manage.py") && program.args.first().is_some_and(|word| word == "test");
    match program.program.to_str() {
        Some("-m pytest" | "-m py.test") => return pytest(program, asked),
        Some("-m unittest") => program.catch.push(FAILURE.into()),
        _ if is_manage => program.catch.push(FAILURE.into()),
        _ => {}
    }
    program
}

/// Tests run in the process that is debugged, and nothing else traces it.
fn pytest(mut program: Program, asked: &Asked) -> Program {
    program.catch.push(FAILURE.into());
    let added = asked.env.iter().rev().find(|(name, _)| name == "PYTEST_ADDOPTS").map(|(_, value)| value.as_str());
    let mut words: Vec<String> = added.unwrap_or_default().split_whitespace().map(Into::into).collect();
    words.extend(suite::configured(asked.cwd));
    words.extend(program.args.iter().cloned());
    let any = |starts: &[&str]| words.iter().any(|word| starts.iter().any(|start| word.starts_with(start)));
    if any(&["-n", "--numprocesses", "--dist"]) {
        program.args.push("-n0".into());
        program.notes.push("tests run in one process (-n0), so that they can be debugged".into());
    }
    if any(&["--cov"]) {
        program.args.push("--no-cov".into());
        program.notes.push("coverage is off (--no-cov): it would take the place of the debugger".into());
    }
    program
}

/// `python`, `python3`, `python3.12`, with or without a folder.
fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    name.strip_prefix("python").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// `python [options] FILE ARGS` or `python -m MODULE ARGS`.
fn command(asked: &Asked) -> Result<Program, Failure> {
    let interpreter = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
    check_file(&interpreter)?;
    let mut words = vec![interpreter.to_string_lossy().into_owned()];
    let mut rest = asked.args().iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-m" => {
                let module = rest.next().ok_or_else(|| Failure::usage("python -m names no module"))?;
                let args: Vec<String> = rest.cloned().collect();
                return Ok(tested(python(words, PathBuf::from(format!("-m {module}")), &args), asked));
            }
            "-c" => {
                return Err(
                    Failure::usage("python -c has no file to set breakpoints in").hint("put the code into a file")
                );
            }
            "-X" | "-W" => {
                words.push(word.clone());
                words.extend(rest.next().cloned());
            }
            option if option.starts_with('-') && option.len() > 1 => words.push(word.clone()),
            file => {
                let path = asked.cwd.join(file);
                check_file(&path)?;
                let args: Vec<String> = rest.cloned().collect();
                return Ok(tested(python(words, path, &args), asked));
            }
        }
    }
    Err(Failure::usage("python without a file to run can't be debugged").hint("bugeye run -- python app.py"))
}

fn default_python(env_path: &str) -> Result<String, Failure> {
    find::interpreter(env_path).map(|path| path.to_string_lossy().into_owned()).ok_or_else(|| {
        Failure::refused("no python3 is on the PATH").hint("name one: bugeye run -- /path/to/python3 FILE")
    })
}

/// `uv run COMMAND` and its like: the tool is asked once for its environment, and the command is looked at in that.
fn wrapped(asked: &Asked, valued: &[&str]) -> Result<Option<Plan>, Failure> {
    const REPORT: &str = "import json, os; print(json.dumps([os.environ.get('PATH'), os.environ.get('VIRTUAL_ENV')]))";
    let Some(("run", after)) = asked.args().split_first().map(|(word, rest)| (word.as_str(), rest)) else {
        return Ok(None);
    };
    let mut count = 0;
    while let Some(word) =
        after.get(count).filter(|word| word.starts_with('-') && !["-m", "--module"].contains(&word.as_str()))
    {
        count += if valued.contains(&word.as_str()) { 2 } else { 1 };
        if word == "--" {
            break;
        }
    }
    let (options, command) = after.split_at(count.min(after.len()));
    let mut words: Vec<String> = command.to_vec();
    match words.first().map(String::as_str) {
        None => return Err(Failure::usage(format!("`{} run` names nothing to run", asked.name()))),
        Some("-m" | "--module") => words[0] = "-m".into(),
        _ => {}
    }
    let is_script = words[0] == "-m" || words[0].ends_with(".py");
    if is_script {
        words.insert(0, "python".into());
    }
    let mut argv: Vec<String> = asked.words[..2].to_vec();
    argv.extend(options.iter().cloned());
    argv.extend(["python", "-c", REPORT].map(Into::into));
    let mut kept = asked.keep();
    let then = move |output: &str| {
        let told: Value = output.lines().last().and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        let pairs = [("PATH", &told[0]), ("VIRTUAL_ENV", &told[1])];
        let env: Vec<(String, String)> =
            pairs.iter().filter_map(|(name, value)| Some(((*name).into(), value.as_str()?.into()))).collect();
        for (name, value) in &env {
            if name == "PATH" {
                kept.env_path.clone_from(value);
            }
            kept.env.retain(|(known, _)| known != name);
            kept.env.push((name.clone(), value.clone()));
        }
        kept.words = words;
        let plan = super::locate(&kept.asked())?;
        Ok(plan.with_env(env))
    };
    Ok(Some(Plan::Build(Build { argv, cwd: asked.cwd.to_path_buf(), env: Vec::new(), then: Box::new(then) })))
}
