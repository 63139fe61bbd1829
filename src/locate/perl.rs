//! Perl: scripts, and tests that are scripts.

use std::path::Path;

use super::script::{Interpreter, has};
use super::{Asked, Plan};
use crate::failure::Failure;

const PERL: Interpreter = Interpreter {
    language: "perl",
    name: "perl",
    extension: "pl",
    valued: &["-I", "-M", "-m"],
    code: &["-e", "-E", "-ne", "-pe", "-n", "-p"],
};

/// A test of Perl's own harness is a script with another ending.
const TEST: Interpreter = Interpreter { extension: "t", ..PERL };

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    let program = match PERL.locate(asked)? {
        Some(program) => Some(program),
        None => TEST.locate(asked)?,
    };
    Ok(program.map(Plan::Debug))
}

/// A test is a file of `t/`.
pub fn test(project: &Path, name: &str, _: &Asked) -> Result<Option<Vec<String>>, Failure> {
    if !has(project, &["Makefile.PL", "Build.PL", "cpanfile", "dist.ini"]) && !project.join("t").is_dir() {
        return Ok(None);
    }
    let candidates = [project.join(name), project.join("t").join(name), project.join("t").join(format!("{name}.t"))];
    let Some(file) = candidates.into_iter().find(|path| path.is_file()) else {
        return Err(Failure::not_found(format!("there is no test {name} in t/")).hint("name a file of t/"));
    };
    let words = ["perl".to_string(), "-Ilib".into(), "-Iblib/lib".into(), file.to_string_lossy().into_owned()];
    Ok(Some(words.to_vec()))
}
