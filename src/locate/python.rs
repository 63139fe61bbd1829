//! Python: scripts, modules, and what runs tests.

use std::path::{Path, PathBuf};

use super::{Asked, Plan, Program, check_file, find_word, interpreter_of, shebang};
use crate::failure::Failure;
use crate::find;

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    if is_python(asked.name()) {
        return command(asked).map(|program| Some(Plan::Debug(program)));
    }
    let Some((path, head)) = asked.file() else { return Ok(None) };
    let interpreter = shebang(&head).filter(|words| words.iter().any(|word| is_python(word)));
    let interpreter = match interpreter {
        Some(words) => match interpreter_of(&words, asked.env_path) {
            Some(words) => words,
            None => vec![default_python(asked.env_path)?],
        },
        None if path.extension().is_some_and(|extension| extension == "py") => vec![default_python(asked.env_path)?],
        None => return Ok(None),
    };
    Ok(Some(Plan::Debug(python(interpreter, path, asked.args()))))
}

pub fn test(_: &Path, _: &str, _: &Asked) -> Result<Option<Vec<String>>, Failure> {
    Ok(None)
}

fn python(interpreter: Vec<String>, program: PathBuf, args: &[String]) -> Program {
    Program { language: "python", interpreter, program, args: args.to_vec(), ..Program::default() }
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
                return Ok(python(words, PathBuf::from(format!("-m {module}")), &args));
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
                return Ok(python(words, path, &args));
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
