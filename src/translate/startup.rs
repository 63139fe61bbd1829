//! What gdb takes for a shell: it opens the program's streams and becomes the program.
//!
//! gdb starts every program as `$SHELL -c 'exec PROGRAM ARGS'`. A real shell would read its own files first and could not
//! be given paths without quoting them; this one knows a single command and expands nothing.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::{Asked, Streams};
use crate::adapters::gdb::STREAMS;

/// The translator: becomes the adapter, with this executable as its shell.
pub fn prepare(asked: &Asked) -> u8 {
    let Some((program, args)) = asked.command.split_first() else { return 2 };
    let mut command = Command::new(program);
    if let Some(own) = std::env::args_os().next() {
        command.args(args).env("SHELL", own);
    }
    let error = command.exec();
    eprintln!("{program} can't be started: {error}");
    127
}

/// The shell: `-c 'exec PROGRAM ARGS'`, in an environment that names the streams. None where this is no such call.
#[must_use]
pub fn main(words: &[OsString]) -> Option<u8> {
    let [flag, line] = words else { return None };
    let streams = std::env::var(STREAMS).ok()?;
    if flag != "-c" {
        return None;
    }
    let failed = |what: String| {
        eprintln!("bugeye: {what}");
        Some(127)
    };
    let line = line.to_string_lossy();
    let words = split(&line);
    let [exec, program, args @ ..] = words.as_slice() else { return failed(format!("`{line}` starts no program")) };
    if exec != "exec" {
        return failed(format!("`{exec}` is not carried out"));
    }
    let mut command = Command::new(program);
    command.args(args).env_remove(STREAMS);
    let mut paths = streams.splitn(3, '\n').map(Into::into);
    if let (Some(stdin), Some(stdout), Some(stderr)) = (paths.next(), paths.next(), paths.next())
        && let Err(error) = (Streams { stdin, stdout, stderr }).give_to(&mut command)
    {
        return failed(format!("the program's streams can't be opened: {error}"));
    }
    let error = command.exec();
    failed(format!("{program} can't be started: {error}"))
}

/// The words of a command line: quotes and backslashes keep characters together, nothing else has a meaning.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' => words.extend(word.take()),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match c {
                        '\\' => word.extend(chars.next()),
                        c => word.push(c),
                    }
                }
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_what_gdb_made_of_them() {
        let line = r#"exec /a\ b/prog two\ words '' \"quoted\" \$HOME \*'
'x "a \"b" plain"#;
        let words = ["exec", "/a b/prog", "two words", "", "\"quoted\"", "$HOME", "*\nx", "a \"b", "plain"];
        assert_eq!(split(line), words);
    }
}
