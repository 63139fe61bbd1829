//! CTest, which knows how each test of a `CMake` project is run.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::Failure;
use crate::locate::{Asked, Build, Kept, Plan, scan};

/// Options that say where the tests are and how they were built; with their values.
const PLACES: [&str; 4] = ["--test-dir", "-C", "--build-config", "--preset"];

/// `ctest -R NAME`: what it tests is built, so that what is debugged is what the sources say.
pub fn locate(asked: &Asked) -> Result<Plan, Failure> {
    let mut places: Vec<String> = Vec::new();
    let mut folder = asked.cwd.to_path_buf();
    let mut config = None;
    let mut words = asked.args().iter();
    while let Some(word) = words.next() {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_string())),
            None => (word.as_str(), None),
        };
        if PLACES.contains(&name) {
            let value = value.or_else(|| words.next().cloned()).unwrap_or_default();
            match name {
                "--test-dir" => folder = folder.join(&value),
                "-C" | "--build-config" => config = Some(value.clone()),
                _ => {}
            }
            places.extend([name.to_string(), value]);
        }
    }
    let kept = asked.keep();
    let list = move || {
        let mut argv = kept.words.clone();
        argv.push("--show-only=json-v1".into());
        let cwd = kept.cwd.clone();
        Plan::Build(Build { argv, cwd, env: Vec::new(), then: Box::new(move |output| choose(output, places, kept)) })
    };
    if !folder.join("CMakeCache.txt").is_file() {
        return Ok(list());
    }
    let mut argv: Vec<String> = ["cmake", "--build"].map(Into::into).into();
    argv.push(folder.to_string_lossy().into_owned());
    argv.extend(config.into_iter().flat_map(|config| ["--config".to_string(), config]));
    let then = Box::new(move |_: &str| Ok(list()));
    Ok(Plan::Build(Build { argv, cwd: asked.cwd.to_path_buf(), env: Vec::new(), then }))
}

/// The command line for one test of a project that has been configured.
pub fn test(project: &Path, name: &str) -> Result<Option<Vec<String>>, Failure> {
    if !project.join("CMakeLists.txt").is_file() {
        return Ok(None);
    }
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(project).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    folders.push(project.to_path_buf());
    folders.retain(|folder| folder.join("CTestTestfile.cmake").is_file());
    folders.sort();
    let Some(folder) = folders.first() else {
        return Err(Failure::refused(format!("{} is not configured, or has no tests", project.display())).hint(
            "configure it: cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug (and enable_testing() in CMakeLists.txt)",
        ));
    };
    let folder = folder.to_string_lossy().into_owned();
    Ok(Some(["ctest", "--test-dir", &folder, "-R", &format!("^{}$", literal(name))].map(Into::into).into()))
}

/// A regular expression for exactly this text.
fn literal(name: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-:/ ".contains(c);
    name.chars().flat_map(|c| (!is_plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

fn tests_of(output: &str) -> Vec<Value> {
    let mut told: Value = serde_json::from_str(output).unwrap_or_default();
    match told["tests"].take() {
        Value::Array(tests) => tests,
        _ => Vec::new(),
    }
}

fn name_of(test: &Value) -> &str {
    test["name"].as_str().unwrap_or_default()
}

fn choose(output: &str, places: Vec<String>, kept: Kept) -> Result<Plan, Failure> {
    let tests = tests_of(output);
    match tests.as_slice() {
        [only] => debug(only, kept),
        [] => {
            let mut argv: Vec<String> = kept.words.first().cloned().into_iter().chain(places).collect();
            argv.push("--show-only=json-v1".into());
            let cwd = kept.cwd.clone();
            let then = Box::new(move |output: &str| Err(none(&tests_of(output), &kept.words)));
            Ok(Plan::Build(Build { argv, cwd, env: Vec::new(), then }))
        }
        several => {
            let failure = Failure::usage(format!("ctest would run {} tests; choose one", several.len()));
            let hint = |test: &Value| format!("-R '^{}$'", literal(name_of(test)));
            Err(several.iter().take(7).fold(failure, |failure, test| failure.hint(hint(test))))
        }
    }
}

fn none(tests: &[Value], words: &[String]) -> Failure {
    let wanted = words.iter().skip_while(|word| *word != "-R").nth(1).map(String::as_str);
    let wanted = wanted.unwrap_or_default().trim_matches(['^', '$']).replace('\\', "");
    scan::no_such_test(&wanted, tests.iter().map(name_of))
}

/// Starts a test as CTest would; one by `GoogleTest` stops where it fails.
fn debug(test: &Value, mut kept: Kept) -> Result<Plan, Failure> {
    let words: Vec<String> =
        test["command"].as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect();
    if words.is_empty() {
        return Err(Failure::refused(format!("the test `{}` has no program; is it built?", name_of(test))));
    }
    let property = |name: &str| {
        let properties = test["properties"].as_array().into_iter().flatten();
        properties.clone().find(|property| property["name"] == name).map(|property| property["value"].clone())
    };
    let folder = property("WORKING_DIRECTORY").and_then(|value| value.as_str().map(PathBuf::from));
    let mut env: Vec<(String, String)> =
        vec![("GTEST_BREAK_ON_FAILURE".into(), "1".into()), ("GTEST_CATCH_EXCEPTIONS".into(), "0".into())];
    for setting in property("ENVIRONMENT").iter().filter_map(Value::as_array).flatten().filter_map(Value::as_str) {
        env.extend(setting.split_once('=').map(|(name, value)| (name.to_string(), value.to_string())));
    }
    kept.words = words;
    if let Some(folder) = &folder {
        kept.cwd.clone_from(folder);
    }
    let folder = kept.cwd.clone();
    Ok(super::super::locate(&kept.asked())?.with_env(env).in_folder(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_started_in_its_folder_with_its_variables() {
        let exe = std::env::current_exe().unwrap();
        let output = serde_json::json!({ "tests": [{ "name": "adds", "command": [exe, "1"], "properties": [
            { "name": "ENVIRONMENT", "value": ["A=1", "B=x=y"] },
            { "name": "WORKING_DIRECTORY", "value": "/tmp" },
        ] }] });
        let kept = Kept { words: vec!["ctest".into()], cwd: "/".into(), env: Vec::new(), env_path: String::new() };
        let Plan::Debug(program) = choose(&output.to_string(), Vec::new(), kept).unwrap() else { panic!() };
        assert_eq!((program.args, program.cwd), (vec!["1".to_string()], Some("/tmp".into())));
        assert!(program.env.contains(&("B".into(), "x=y".into())), "{:?}", program.env);
        assert_eq!(literal("a.b c(1)"), r"a\.b c\(1\)");
    }
}
