//! PHP: scripts, and PHPUnit.

use std::path::Path;

use super::script::{Interpreter, has};
use super::{Asked, Plan};
use crate::failure::Failure;
use crate::find;

const PHP: Interpreter = Interpreter {
    language: "php",
    name: "php",
    extension: "php",
    valued: &["-f", "-d", "-c", "-z"],
    code: &["-r", "-R", "-B", "-E", "-F", "-a", "-S"],
};

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    PHP.locate(asked).map(|program| program.map(Plan::Debug))
}

/// A project of PHPUnit runs one test by a filter that is its whole name.
pub fn test(project: &Path, name: &str, asked: &Asked) -> Result<Option<Vec<String>>, Failure> {
    if !has(project, &["phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", "vendor/bin/phpunit"]) {
        return Ok(None);
    }
    let own = Some(project.join("vendor/bin/phpunit")).filter(|runner| runner.is_file());
    let Some(runner) = own.or_else(|| find::on_path("phpunit", asked.env_path)) else {
        return Err(Failure::refused("this project's PHPUnit is not installed").hint("composer install"));
    };
    let method = name.rsplit("::").next().unwrap_or(name);
    let exact = match name.rsplit_once("::") {
        Some((class, _)) => format!("/(^|\\\\){}::{method}( .*)?$/", class.replace('\\', "\\\\")),
        None => format!("/::{method}( .*)?$/"),
    };
    Ok(Some(vec!["php".into(), runner.to_string_lossy().into_owned(), "--filter".into(), exact]))
}
