//! Interpreters that are given a file: `ruby -w app.rb ARGS`, `app.php`, a script that names its interpreter itself.

use std::path::{Path, PathBuf};

use super::{Asked, Program, check_file, find_word, interpreter_of, shebang};
use crate::failure::Failure;
use crate::find;

/// One interpreter.
#[derive(Debug, Clone, Copy)]
pub struct Interpreter {
    pub language: &'static str,
    /// Its program, which may have a version behind it.
    pub name: &'static str,
    pub extension: &'static str,
    /// Options that take the next word.
    pub valued: &'static [&'static str],
    /// Options that bring the program with them.
    pub code: &'static [&'static str],
}

impl Interpreter {
    /// The program of a command line that is for this interpreter.
    pub fn locate(&self, asked: &Asked) -> Result<Option<Program>, Failure> {
        if self.is(asked.name()) {
            return self.command(asked).map(Some);
        }
        let Some((path, head)) = asked.file() else { return Ok(None) };
        let named = shebang(&head).filter(|words| words.iter().any(|word| self.is(word)));
        let interpreter = match named.and_then(|words| interpreter_of(&words, asked.env_path)) {
            Some(words) => words,
            None if path.extension().is_some_and(|extension| extension == self.extension) => {
                vec![self.default(asked.env_path)?]
            }
            None => return Ok(None),
        };
        Ok(Some(self.program(interpreter, path, asked.args().to_vec())))
    }

    /// `ruby`, `ruby3.1`, `/usr/bin/php8.2`.
    pub fn is(&self, word: &str) -> bool {
        let name = word.rsplit('/').next().unwrap_or(word);
        let rest = name.strip_prefix(self.name);
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    }

    pub fn default(&self, env_path: &str) -> Result<String, Failure> {
        let found = find::on_path(self.name, env_path).map(|path| path.to_string_lossy().into_owned());
        found.ok_or_else(|| {
            Failure::refused(format!("no {} is on the PATH", self.name))
                .hint(format!("get one: bugeye setup {}", self.language))
                .hint(format!("or name one: bugeye run -- /path/to/{} FILE", self.name))
        })
    }

    pub fn program(&self, interpreter: Vec<String>, program: PathBuf, args: Vec<String>) -> Program {
        Program { language: self.language, interpreter, program, args, ..Program::default() }
    }

    fn command(&self, asked: &Asked) -> Result<Program, Failure> {
        let name = self.name;
        let found = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
        check_file(&found)?;
        let mut words = vec![found.to_string_lossy().into_owned()];
        let mut rest = asked.args().iter();
        while let Some(word) = rest.next() {
            let option = word.as_str();
            if option == "-f" && self.valued.contains(&option) {
                continue;
            }
            if self.code.contains(&option) {
                return Err(Failure::usage(format!("{name} {option} has no file to set breakpoints in"))
                    .hint("put the code into a file"));
            }
            if self.valued.contains(&option) {
                words.push(word.clone());
                words.extend(rest.next().cloned());
            } else if option.starts_with('-') && option.len() > 1 {
                if option != "--" {
                    words.push(word.clone());
                }
            } else {
                let path = self.file(option, asked, &words)?;
                return Ok(self.program(words, path, rest.cloned().collect()));
            }
        }
        Err(Failure::usage(format!("{name} without a file to run can't be debugged"))
            .hint(format!("bugeye run -- {name} FILE")))
    }

    /// The script itself; with `-S` it is looked for on the PATH.
    fn file(&self, word: &str, asked: &Asked, options: &[String]) -> Result<PathBuf, Failure> {
        let path = if options.iter().any(|option| option == "-S") {
            find_word(word, asked.cwd, asked.env_path)?
        } else {
            let here = asked.cwd.join(word);
            std::path::absolute(&here).unwrap_or(here)
        };
        check_file(&path)?;
        Ok(path)
    }
}

/// Whether one of these is in a folder.
pub fn has(folder: &Path, names: &[&str]) -> bool {
    names.iter().any(|name| folder.join(name).exists())
}
