//! CMake's own scripts: a project that is configured, or a script by `-P`.

use super::{Asked, Plan, Program, check_file, find_word};
use crate::failure::Failure;

/// What `cmake` does beside running scripts.
const OTHER: [&str; 8] =
    ["--build", "--install", "--open", "--find-package", "--workflow", "-E", "--version", "--help"];

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    if asked.name() != "cmake" {
        return Ok(None);
    }
    if let Some(word) = asked.args().iter().find(|word| OTHER.contains(&word.as_str())) {
        return Err(Failure::unsupported(format!("cmake {word} runs no script that could be debugged"))
            .hint("a configuration can: bugeye run -- cmake -S . -B build")
            .hint("or the program that is built: bugeye run -- ./build/PROGRAM"));
    }
    let path = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
    check_file(&path)?;
    let program = Program { language: "cmake", program: path, args: asked.args().to_vec(), ..Program::default() };
    Ok(Some(Plan::Debug(program)))
}
