//! The scripted agent in three languages, each with the client of that language.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Python,
    TypeScript,
    Rust,
}

pub const LANGUAGES: [Language; 3] = [Language::Python, Language::TypeScript, Language::Rust];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command) -> String {
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {text}");
    text
}

/// What runs the agent of a language.
pub fn program(language: Language) -> Vec<String> {
    match language {
        Language::Python => {
            vec!["python3".into(), root().join("tests/fixtures/agents/scripted_agent.py").to_str().unwrap().into()]
        }
        Language::TypeScript => vec!["node".into(), typescript().to_str().unwrap().into()],
        Language::Rust => vec![rust().to_str().unwrap().into()],
    }
}

/// Compiles and runs a program in TypeScript that imports the client.
pub fn run_typescript(text: &str, variables: &[(String, String)]) -> String {
    let folder = compile("page", &[("agent.ts", text.to_string())]);
    let mut command = Command::new("node");
    run(command.arg(folder.join("agent.js")).envs(variables.iter().map(|(name, value)| (name, value))))
}

/// The agent in TypeScript, checked and compiled once a run of the tests.
fn typescript() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let agent = fs::read_to_string(root().join("tests/fixtures/agents/scripted_agent.ts")).unwrap();
        compile("scripted", &[("scripted_agent.ts", agent)]).join("scripted_agent.js")
    })
}

/// A folder with programs, and the client beside them.
fn compile(name: &str, programs: &[(&str, String)]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let said = run(Command::new(root().join("scripts/clients")).arg("tsc").env("CARGO_TARGET_DIR", target));
    let tools = PathBuf::from(said.lines().find_map(|line| line.strip_prefix("tsc ")).expect("a path"));
    let client = fs::read_to_string(root().join("clients/typescript/bugeye_agent.ts")).unwrap();
    let mut hasher = DefaultHasher::new();
    (FLAGS, programs, &client).hash(&mut hasher);
    // Types are looked for from where it stands: beside the compiler. What is the same is compiled once.
    let made = tools.join(format!("{name}-{:016x}", hasher.finish()));
    if made.exists() {
        return made;
    }
    let folder = tempfile::tempdir_in(&tools).unwrap();
    fs::write(folder.path().join("package.json"), r#"{"type":"module"}"#).unwrap();
    fs::write(folder.path().join("bugeye_agent.ts"), client).unwrap();
    let mut command = Command::new("node");
    command.arg(tools.join("node_modules/typescript/bin/tsc")).args(FLAGS.split_whitespace()).current_dir(&folder);
    for (name, text) in programs {
        fs::write(folder.path().join(name), text).unwrap();
        command.arg(name);
    }
    run(&mut command);
    // Another process may have been faster.
    if fs::rename(folder.path(), &made).is_ok() {
        let _ = folder.keep();
    }
    made
}

/// As strict as it goes, and nothing that can't be stripped.
const FLAGS: &str = "--strict --noUncheckedIndexedAccess --erasableSyntaxOnly --noUnusedLocals --noUnusedParameters \
                     --target es2022 --module nodenext bugeye_agent.ts";

/// The agent in Rust, built once.
fn rust() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("agents");
        run(Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--manifest-path"])
            .arg(root().join("tests/fixtures/agents/Cargo.toml"))
            .env("CARGO_TARGET_DIR", &target));
        target.join("debug/scripted_agent")
    })
}
