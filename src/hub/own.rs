//! Programs for the user's own adapters, which no locator knows: the file is named, and that is all there is to find out.

use std::path::{Path, PathBuf};

use super::launch::Blueprint;
use crate::adapters::{Adapter, own};
use crate::failure::Failure;
use crate::find;

/// A command line for one of the user's adapters.
#[derive(Debug)]
pub struct Program {
    pub adapter: &'static Adapter,
    pub interpreter: Vec<String>,
    pub program: PathBuf,
    pub args: Vec<String>,
}

/// The program, where the user's own adapter is asked for by name, or the file's ending is one that it serves:
/// `FILE ARGS` or `INTERPRETER OPTIONS FILE ARGS`.
pub fn program(
    blueprint: &Blueprint,
    asked: Option<&'static Adapter>,
    env_path: &str,
) -> Result<Option<Program>, Failure> {
    if asked.is_some_and(|adapter| own::of(adapter).is_none()) {
        return Ok(None);
    }
    let words = &blueprint.words;
    // Options of an interpreter may stand before the file.
    let options = words.iter().skip(1).take_while(|word| word.starts_with('-')).count();
    let serves = |index: usize| {
        let adapter = own::for_file(words.get(index)?)?;
        asked.is_none_or(|asked| std::ptr::eq(asked, adapter)).then_some((index, adapter))
    };
    let found = serves(0).or_else(|| serves(1 + options)).or_else(|| asked.map(|adapter| (0, adapter)));
    let Some((index, adapter)) = found.filter(|(index, _)| *index < words.len()) else { return Ok(None) };
    let program = file(&words[index], &blueprint.cwd, env_path)?;
    let mut interpreter = words[..index].to_vec();
    if let Some(first) = interpreter.first_mut() {
        *first = file(first, &blueprint.cwd, env_path)?.to_string_lossy().into_owned();
    }
    Ok(Some(Program { adapter, interpreter, program, args: words[index + 1..].to_vec() }))
}

/// The file that a word of a command line means, from a folder or on the PATH.
pub fn file(word: &str, cwd: &Path, env_path: &str) -> Result<PathBuf, Failure> {
    let here = std::path::absolute(cwd.join(word)).unwrap_or_else(|_| cwd.join(word));
    if here.is_file() {
        return Ok(here);
    }
    let elsewhere = (!word.contains('/')).then(|| find::on_path(word, env_path)).flatten();
    elsewhere.ok_or_else(|| {
        Failure::not_found(format!("there is no {}", here.display()))
            .hint("paths are relative to the current directory")
    })
}
