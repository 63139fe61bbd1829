//! JavaScript and TypeScript: files, Node's own command line, scripts of a package, and what runs tests.

mod one;

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Asked, Plan, Program, check_file, find_word, head_of, interpreter_of, shebang};
use crate::failure::Failure;
use crate::find;

pub use one::test;

/// What Node is called.
const NODES: [&str; 2] = ["node", "nodejs"];

/// Node's options whose value is the next word.
const WITH_VALUE: [&str; 20] = [
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-C",
    "--conditions",
    "--env-file",
    "--env-file-if-exists",
    "--input-type",
    "--title",
    "--icu-data-dir",
    "--watch-path",
    "--test-name-pattern",
    "--test-skip-pattern",
    "--test-reporter",
    "--test-reporter-destination",
    "--test-concurrency",
    "--unhandled-rejections",
    "--disable-warning",
];

/// What runs tests: its name, what keeps it in one process and its clock from running out while the program stands still,
/// each with the words that say the user has seen to that.
const RUNNERS: &[(&str, &[(&str, &[&str])])] = &[
    (
        "jest",
        &[
            ("--runInBand", &["-i", "--runInBand", "-w", "--maxWorkers"]),
            ("--testTimeout=86400000", &["--testTimeout"]),
        ],
    ),
    (
        "vitest",
        &[
            ("--no-file-parallelism", &["--no-file-parallelism", "--fileParallelism", "--poolOptions"]),
            ("--test-timeout=0", &["--test-timeout", "--testTimeout"]),
            ("--hook-timeout=0", &["--hook-timeout", "--hookTimeout"]),
        ],
    ),
    (
        "mocha",
        &[
            ("--no-parallel", &["-p", "--parallel", "--no-parallel"]),
            ("--no-timeout", &["-t", "--timeout", "--no-timeout"]),
        ],
    ),
];

/// Subcommands of package managers that run a script of the package by its own name.
const OWN_SCRIPTS: [&str; 6] = ["test", "t", "tst", "start", "stop", "restart"];

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    let program = match asked.name() {
        name if is_node(name) => Some(node_command(asked)?),
        "npx" => npx(asked)?,
        "npm" | "pnpm" | "yarn" => package_script(asked)?,
        _ => None,
    };
    let program = match program {
        Some(program) => Some(program),
        None => tool_or_file(asked)?,
    };
    Ok(program.map(Plan::Debug))
}

/// A tool of the project, or a file that is a script.
fn tool_or_file(asked: &Asked) -> Result<Option<Program>, Failure> {
    let word = asked.words.first().map_or("", String::as_str);
    let is_name = !word.contains('/') && !asked.cwd.join(word).is_file();
    if let Some(file) = tool(word, asked.cwd).filter(|_| is_name) {
        return tool_command(word, file, asked.args(), asked).map(Some);
    }
    let Some((path, head)) = asked.file() else { return Ok(None) };
    let words = shebang(&head).filter(|words| words.iter().any(|word| is_node(word)));
    if let Some(words) = words {
        let interpreter = interpreter_of(&words, asked.env_path).map_or_else(|| Ok(vec![node(asked)?]), Ok)?;
        let real = std::fs::canonicalize(&path).unwrap_or(path);
        let name = asked.name().to_string();
        if RUNNERS.iter().any(|(known, _)| *known == name) {
            return tool_command(&name, real, asked.args(), asked).map(Some);
        }
        return Ok(Some(script(interpreter, real, asked.args())));
    }
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("js" | "cjs" | "mjs") => Ok(Some(script(vec![node(asked)?], path, asked.args()))),
        Some("ts" | "mts" | "cts" | "tsx") => typescript(path, asked.args(), asked).map(Some),
        _ => Ok(None),
    }
}

fn is_node(word: &str) -> bool {
    word.rsplit('/').next().is_some_and(|name| NODES.contains(&name))
}

/// The Node that a user of this PATH gets.
fn node(asked: &Asked) -> Result<String, Failure> {
    let found = NODES.iter().find_map(|name| find::on_path(name, asked.env_path));
    found
        .map(|path| path.to_string_lossy().into_owned())
        .ok_or_else(|| Failure::refused("no node is on the PATH").hint("name one: bugeye run -- /path/to/node FILE"))
}

fn script(interpreter: Vec<String>, program: PathBuf, args: &[String]) -> Program {
    let is_typed =
        program.extension().is_some_and(|extension| matches!(extension.to_str(), Some("ts" | "mts" | "cts" | "tsx")));
    let language = if is_typed { "typescript" } else { "javascript" };
    Program { language, interpreter, program, args: args.to_vec(), ..Program::default() }
}

/// `node [options] FILE ARGS`, or `node --test` and its like without a file.
fn node_command(asked: &Asked) -> Result<Program, Failure> {
    let interpreter = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
    check_file(&interpreter)?;
    let mut words = vec![interpreter.to_string_lossy().into_owned()];
    let mut rest = asked.args().iter();
    let (mut runs_by_itself, mut runs_tests) = (false, false);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-e" | "--eval" | "-p" | "--print" | "-pe" => {
                return Err(Failure::usage(format!("node {word} has no file to set breakpoints in"))
                    .hint("put the code into a file"));
            }
            "--" => {}
            option if WITH_VALUE.contains(&option) => {
                runs_tests |= option.starts_with("--test");
                words.push(word.clone());
                words.extend(rest.next().cloned());
            }
            option if option.starts_with('-') && option.len() > 1 => {
                runs_by_itself |= matches!(option, "--test" | "--run") || option.starts_with("--run=");
                runs_tests |= option.starts_with("--test");
                // A debugger of another kind; this one opens its own.
                if !option.starts_with("--inspect") {
                    words.push(word.clone());
                }
            }
            file => {
                let args: Vec<String> = rest.cloned().collect();
                if runs_by_itself {
                    let all = std::iter::once(word.clone()).chain(args);
                    return Ok(with_catch(script(words, PathBuf::new(), &all.collect::<Vec<_>>())));
                }
                let program = script(words, module_file(&asked.cwd.join(file))?, &args);
                return Ok(if runs_tests { with_catch(program) } else { program });
            }
        }
    }
    if runs_by_itself {
        return Ok(with_catch(script(words, PathBuf::new(), &[])));
    }
    Err(Failure::usage("node without a file to run can't be debugged").hint("bugeye run -- node app.js"))
}

/// The file that Node runs for a name: it may lack its extension, or be a folder.
fn module_file(path: &Path) -> Result<PathBuf, Failure> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if path.is_file() {
        return Ok(path);
    }
    for extension in ["js", "json", "cjs", "mjs"] {
        let mut name = path.clone().into_os_string();
        name.push(format!(".{extension}"));
        if Path::new(&name).is_file() {
            return Ok(name.into());
        }
    }
    if path.is_dir() {
        let main = manifest(&path).and_then(|(_, manifest)| Some(path.join(manifest.get("main")?.as_str()?)));
        let found =
            main.filter(|main| main.is_file()).or_else(|| Some(path.join("index.js")).filter(|file| file.is_file()));
        if let Some(found) = found {
            return Ok(found);
        }
    }
    check_file(&path).map(|()| path)
}

/// TypeScript, through `tsx` where the project or the PATH has it; newer versions of Node run it by themselves.
fn typescript(file: PathBuf, args: &[String], asked: &Asked) -> Result<Program, Failure> {
    let folder = file.parent().unwrap_or(asked.cwd);
    let runner = tool("tsx", folder).or_else(|| tool("tsx", asked.cwd));
    let runner = runner.or_else(|| std::fs::canonicalize(find::on_path("tsx", asked.env_path)?).ok());
    if let Some(runner) = runner {
        return with_tsx(&runner, vec![node(asked)?], file, args);
    }
    let mut program = script(vec![node(asked)?], file, args);
    program.notes.push("Node runs TypeScript by itself from 22.18 on; for others: npm install --save-dev tsx".into());
    Ok(program)
}

/// `tsx FILE` in one process: what it would start another for is given as options.
fn with_tsx(runner: &Path, mut interpreter: Vec<String>, file: PathBuf, args: &[String]) -> Result<Program, Failure> {
    let folder = runner.parent().unwrap_or(Path::new("/"));
    let (preflight, loader) = (folder.join("preflight.cjs"), folder.join("loader.mjs"));
    if preflight.is_file() && loader.is_file() {
        interpreter.extend(["--require".into(), preflight.to_string_lossy().into_owned()]);
        interpreter.extend(["--import".into(), format!("file://{}", loader.display())]);
        return Ok(script(interpreter, file, args));
    }
    let args: Vec<String> = std::iter::once(file.to_string_lossy().into_owned()).chain(args.iter().cloned()).collect();
    Ok(Program { language: "typescript", ..script(interpreter, runner.to_path_buf(), &args) })
}

/// The script behind a command of the project's packages: `node_modules/.bin/NAME`, here or in a folder above.
fn tool(name: &str, from: &Path) -> Option<PathBuf> {
    from.ancestors().find_map(|folder| {
        let modules = folder.join("node_modules");
        let link = modules.join(".bin").join(name);
        let file = std::fs::canonicalize(&link).ok()?;
        if is_script(&file) {
            return Some(file);
        }
        // A wrapper for a shell, as some package managers write it: the package itself says where the script is.
        let package = modules.join(name);
        let (_, manifest) = manifest(&package)?;
        let bin = manifest.get("bin")?;
        let path = bin.as_str().or_else(|| bin.get(name)?.as_str())?;
        std::fs::canonicalize(package.join(path)).ok().filter(|file| is_script(file))
    })
}

fn is_script(file: &Path) -> bool {
    let by_name = file.extension().is_some_and(|extension| matches!(extension.to_str(), Some("js" | "cjs" | "mjs")));
    by_name
        || head_of(file)
            .ok()
            .and_then(|head| shebang(&head))
            .is_some_and(|words| words.iter().any(|word| is_node(word)))
}

/// A tool with the user's arguments; those that run tests are kept in one process.
fn tool_command(name: &str, file: PathBuf, args: &[String], asked: &Asked) -> Result<Program, Failure> {
    if name == "tsx"
        && let Some((first, rest)) = args.split_first()
        && asked.cwd.join(first).is_file()
    {
        return with_tsx(&file, vec![node(asked)?], asked.cwd.join(first), rest);
    }
    let mut args = args.to_vec();
    let runner = RUNNERS.iter().find(|(known, _)| *known == name);
    for (option, instead) in runner.into_iter().flat_map(|(_, options)| *options) {
        let is_seen = |word: &String| {
            instead.iter().any(|known| word.split('=').next() == Some(known) || word.starts_with(&format!("{known}.")))
        };
        if !args.iter().any(is_seen) {
            args.push((*option).to_string());
        }
    }
    let program = script(vec![node(asked)?], file, &args);
    Ok(if runner.is_some() { with_catch(program) } else { program })
}

/// Stops where a test fails, too.
fn with_catch(program: Program) -> Program {
    Program { catch: vec!["failing".into()], ..program }
}

/// `npx TOOL ARGS`: the tool itself, where the project has it.
fn npx(asked: &Asked) -> Result<Option<Program>, Failure> {
    let mut words = asked.args().iter().enumerate();
    let first = words.find(|(_, word)| !word.starts_with('-'));
    let Some((at, name)) = first else { return Ok(None) };
    let options = &asked.args()[..at];
    // An option that names a package, or a command for a shell, is npx's own affair.
    if !options
        .iter()
        .all(|option| matches!(option.as_str(), "-y" | "--yes" | "--no" | "--no-install" | "-q" | "--quiet"))
    {
        return Ok(None);
    }
    let Some(file) = tool(name, asked.cwd) else { return Ok(None) };
    tool_command(name, file, &asked.args()[at + 1..], asked).map(Some)
}

/// The nearest `package.json`, with its folder.
fn package(from: &Path) -> Option<(PathBuf, Value)> {
    from.ancestors().find_map(manifest)
}

fn manifest(folder: &Path) -> Option<(PathBuf, Value)> {
    let text = std::fs::read_to_string(folder.join("package.json")).ok()?;
    Some((folder.to_path_buf(), serde_json::from_str(&text).ok()?))
}

/// `npm test`, `npm run NAME`, `yarn NAME`: the command of the script itself, where that is one plain command. Others are
/// run by the package manager, under the debugger with all they start.
fn package_script(asked: &Asked) -> Result<Option<Program>, Failure> {
    let Some((folder, manifest)) = package(asked.cwd) else { return Ok(None) };
    let args = asked.args();
    let Some(at) = args.iter().position(|word| !word.starts_with('-')) else { return Ok(None) };
    let has = |name: &str| manifest.pointer("/scripts").and_then(|scripts| scripts.get(name)).and_then(Value::as_str);
    let (name, rest) = match args[at].as_str() {
        "run" | "run-script" => match args.get(at + 1) {
            Some(name) => (name.as_str(), &args[at + 2..]),
            None => return Ok(None),
        },
        "exec" | "x" => {
            let words: Vec<String> = args[at + 1..].iter().filter(|word| *word != "--").cloned().collect();
            return tool_or_file(&Asked { words: &words, ..*asked });
        }
        word if OWN_SCRIPTS.contains(&word) => {
            (if matches!(word, "t" | "tst") { "test" } else { word }, &args[at + 1..])
        }
        word if asked.name() != "npm" => (word, &args[at + 1..]),
        _ => return Ok(None),
    };
    let Some(command) = has(name) else {
        if asked.name() != "npm" {
            return Ok(None);
        }
        let known = manifest.get("scripts").and_then(Value::as_object);
        let names: Vec<&str> = known.into_iter().flat_map(|scripts| scripts.keys().map(String::as_str)).collect();
        return Err(Failure::not_found(format!("{} has no script `{name}`", folder.join("package.json").display()))
            .hint(format!("it has: {}", names.join(", "))));
    };
    let around = [format!("pre{name}"), format!("post{name}")].iter().any(|name| has(name).is_some());
    let (Some((env, mut words)), false) = (plain_words(command), around) else {
        // The package manager runs it in a shell.
        let runs_tests = name.contains("test") || RUNNERS.iter().any(|(runner, _)| command.contains(runner));
        let program = tool_or_file(asked)?;
        return Ok(if runs_tests { program.map(with_catch) } else { program });
    };
    words.extend(rest.iter().skip(usize::from(rest.first().is_some_and(|word| word == "--"))).cloned());
    let bin = folder.join("node_modules/.bin");
    let path = format!("{}:{}", bin.display(), asked.env_path);
    let inner = Asked { words: &words, cwd: &folder, env: asked.env, env_path: &path };
    let Some(Plan::Debug(mut program)) = locate(&inner)? else { return Ok(None) };
    program.env.extend([("PATH".into(), path.clone()), ("npm_lifecycle_event".into(), name.to_string())]);
    program.env.extend(env);
    program.cwd = Some(program.cwd.unwrap_or(folder));
    Ok(Some(program))
}

/// The variables and words of a command that needs no shell; None for one that does.
fn plain_words(command: &str) -> Option<(Vec<(String, String)>, Vec<String>)> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut is_word = false;
    for c in command.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (Some('"'), '$' | '`' | '\\') => return None,
            (Some(_), c) => word.push(c),
            (None, '"' | '\'') => (quote, is_word) = (Some(c), true),
            (None, c) if c.is_whitespace() => {
                if is_word {
                    words.push(std::mem::take(&mut word));
                }
                is_word = false;
            }
            (
                None,
                '&' | '|' | ';' | '<' | '>' | '$' | '`' | '\\' | '(' | ')' | '*' | '?' | '[' | '{' | '~' | '#' | '!',
            ) => {
                return None;
            }
            (None, c) => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if quote.is_some() {
        return None;
    }
    if is_word {
        words.push(word);
    }
    let is_variable = |word: &&String| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    let count = words.iter().take_while(is_variable).count();
    let variables =
        words.drain(..count).filter_map(|word| word.split_once('=').map(|(n, v)| (n.to_string(), v.to_string())));
    let variables = variables.collect();
    (!words.is_empty()).then_some((variables, words))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.as_bytes()[0].is_ascii_digit()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(Into::into).collect()
    }

    fn located(line: &str, cwd: &Path) -> Result<Program, Failure> {
        let path = std::env::var("PATH").unwrap();
        let words = words(line);
        match locate(&Asked { words: &words, cwd, env: &[], env_path: &path })? {
            Some(Plan::Debug(program)) => Ok(program),
            other => panic!("{line}: {other:?}"),
        }
    }

    /// A package with tools that are files, a tool behind a shell's wrapper, and scripts.
    fn package() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let scripts =
            r#"{"test":"jest","unit":"A=1 vitest run 'x y'","both":"jest && vitest","lint":"jest","prelint":"x"}"#;
        write("package.json", &format!(r#"{{"scripts":{scripts},"devDependencies":{{"jest":"1"}},"main":"app.js"}}"#));
        write("app.js", "");
        write("src/sum.test.js", "test('adds (two) numbers', () => {})");
        write("node_modules/jest/bin/jest.js", "#!/usr/bin/env node\n");
        write("node_modules/vitest/package.json", r#"{"bin":{"vitest":"vitest.mjs"}}"#);
        write("node_modules/vitest/vitest.mjs", "");
        write("node_modules/.bin/vitest", "#!/bin/sh\n");
        std::os::unix::fs::symlink("../jest/bin/jest.js", folder.path().join("node_modules/.bin/jest")).unwrap();
        folder
    }

    #[test]
    fn command_lines_of_node_are_taken_apart() {
        let folder = package();
        let cwd = folder.path();
        let program = located("node --require ./x.js --inspect-brk --enable-source-maps app 1 --two", cwd).unwrap();
        assert_eq!(program.interpreter[1..], words("--require ./x.js --enable-source-maps"));
        assert_eq!((program.program, program.args), (cwd.join("app.js"), words("1 --two")));
        assert_eq!(located("node .", cwd).unwrap().program, cwd.join("app.js"));
        assert_eq!(located("app.js x", cwd).unwrap().args, ["x"]);
        let test = located("node --test src/sum.test.js", cwd).unwrap();
        assert_eq!((test.program, test.args), (PathBuf::new(), words("src/sum.test.js")));
        assert!(located("node -e 1", cwd).unwrap_err().message.contains("no file"));
        assert!(located("node nosuch.js", cwd).is_err());
    }

    #[test]
    fn tools_of_a_package_are_run_in_one_process() {
        let folder = package();
        let cwd = folder.path();
        let jest = std::fs::canonicalize(cwd.join("node_modules/jest/bin/jest.js")).unwrap();
        for line in
            ["npx jest a.js", "jest a.js", "npm test a.js", "npm t -- a.js", "yarn test a.js", "npm exec jest a.js"]
        {
            let program = located(line, cwd).unwrap();
            assert_eq!(program.program, jest, "{line}");
            assert_eq!(program.args, ["a.js", "--runInBand", "--testTimeout=86400000"], "{line}");
        }
        assert_eq!(located("npx jest -i --testTimeout 5", cwd).unwrap().args, ["-i", "--testTimeout", "5"]);
        let unit = located("npm run unit", &cwd.join("src")).unwrap();
        assert!(unit.program.ends_with("vitest/vitest.mjs"), "{unit:?}");
        assert_eq!(unit.args[..2], ["run", "x y"]);
        assert!(unit.env.contains(&("A".into(), "1".into())) && unit.cwd.as_deref() == Some(cwd), "{unit:?}");
        let failure = located("npm run nosuch", cwd).unwrap_err();
        assert!(failure.hints[0].contains("unit"), "{failure:?}");
    }

    #[test]
    fn commands_for_a_shell_are_left_to_it() {
        assert!(plain_words("a && b").is_none());
        assert!(plain_words("a \"$HOME\"").is_none());
        assert_eq!(
            plain_words("A=1 b 'c d' \"e\""),
            Some((vec![("A".into(), "1".into())], vec!["b".into(), "c d".into(), "e".into()]))
        );
    }

    #[test]
    fn one_test_is_found_by_its_name() {
        let folder = package();
        let words = words("");
        let asked = Asked { words: &words, cwd: folder.path(), env: &[], env_path: "" };
        let found = test(folder.path(), "adds (two) numbers", &asked).unwrap().unwrap();
        assert_eq!(found, ["npx", "jest", "-t", r"(^| )adds \(two\) numbers$", "src/sum.test.js"]);
        assert!(test(folder.path(), "nosuch", &asked).is_err());
        assert!(test(&folder.path().join("src"), "x", &asked).unwrap().is_none());
    }
}
