//! Ruby: scripts, commands of gems, minitest and RSpec.

use std::path::{Path, PathBuf};

use super::script::{Interpreter, has};
use super::{Asked, Plan, Program, check_file, find_word};
use crate::failure::Failure;

const RUBY: Interpreter = Interpreter {
    language: "ruby",
    name: "ruby",
    extension: "rb",
    valued: &["-I", "-r", "-C", "-E", "-W"],
    code: &["-e", "-n", "-p", "-ne", "-pe"],
};

/// Commands that are Ruby programs even where a script of another language starts them.
const COMMANDS: [&str; 5] = ["bundle", "rspec", "rake", "rails", "minitest"];

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    if let Some(mut program) = RUBY.locate(asked)? {
        note_children(asked, &mut program);
        return Ok(Some(Plan::Debug(program)));
    }
    if !COMMANDS.contains(&asked.name()) {
        return Ok(None);
    }
    let path = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
    check_file(&path)?;
    let mut program = RUBY.program(vec![RUBY.default(asked.env_path)?], path, asked.args().to_vec());
    note_children(asked, &mut program);
    Ok(Some(Plan::Debug(program)))
}

/// Rake runs tests in a process of their own.
fn note_children(asked: &Asked, program: &mut Program) {
    let words = asked.words.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
    if words.clone().any(|word| word == "rake") && words.clone().any(|word| word == "test" || word == "spec") {
        program.notes.push(
            "rake runs tests in a process of their own, which is not debugged; run the file: ruby -Itest FILE".into(),
        );
    }
}

/// RSpec by an example's description or place, minitest by a test's name.
pub fn test(project: &Path, name: &str, asked: &Asked) -> Result<Option<Vec<String>>, Failure> {
    if project.join("spec").is_dir() && has(project, &[".rspec", "Gemfile", "spec/spec_helper.rb"]) {
        return Ok(Some(rspec(project, name, asked)));
    }
    if !project.join("test").is_dir() || !has(project, &["Gemfile", "Rakefile", "test/test_helper.rb"]) {
        // A folder of tests alone may be any language's.
        let found = files(&project.join("test"), "rb");
        if found.is_empty() {
            return Ok(None);
        }
    }
    let Some((file, test)) = minitest(project, name) else {
        return Err(Failure::not_found(format!("there is no test {name} in test/"))
            .hint("a method of a test class: test_something"));
    };
    let words = ["ruby".to_string(), "-Itest".into(), "-Ilib".into(), file.to_string_lossy().into_owned()];
    Ok(Some(words.into_iter().chain(["-n".into(), test]).collect()))
}

fn rspec(project: &Path, name: &str, asked: &Asked) -> Vec<String> {
    let bundled = project.join("Gemfile").is_file() && crate::find::on_path("bundle", asked.env_path).is_some();
    let mut words: Vec<String> = if bundled { vec!["bundle".into(), "exec".into()] } else { Vec::new() };
    words.push("rspec".into());
    let file = name.split(':').next().unwrap_or(name);
    if project.join(file).is_file() {
        words.push(name.into());
    } else {
        words.extend(["-e".into(), name.into()]);
    }
    words
}

/// The file that defines a test, and the name its runner knows it by.
fn minitest(project: &Path, name: &str) -> Option<(PathBuf, String)> {
    let (class, test) = name.split_once('#').map_or((None, name), |(class, test)| (Some(class), test));
    // `test "adds numbers"` of Rails is the method `test_adds_numbers`.
    let method = if test.starts_with("test_") { test.to_string() } else { format!("test_{}", test.replace(' ', "_")) };
    let written = [format!("def {method}"), format!("test \"{test}\""), format!("test '{test}'")];
    let ends = |text: &str, what: &str| {
        text.match_indices(what).any(|(at, _)| {
            let next = text[at + what.len()..].chars().next();
            next.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '?' && c != '!')
        })
    };
    files(&project.join("test"), "rb").into_iter().find_map(|file| {
        let text = std::fs::read_to_string(&file).ok()?;
        let classed = class.is_none_or(|class| ends(&text, &format!("class {class}")));
        (classed && written.iter().any(|what| ends(&text, what))).then(|| (file, method.clone()))
    })
}

/// Files of an ending below a folder, in order, no more than a few thousand.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type();
            if kind.as_ref().is_ok_and(std::fs::FileType::is_dir) {
                folders.push(path);
            } else if path.extension().is_some_and(|known| known == extension) {
                found.push(path);
            }
        }
        if found.len() > 5000 {
            break;
        }
    }
    found.sort();
    found
}
