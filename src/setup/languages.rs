//! Which languages this machine has: their compilers and interpreters. An adapter for one that is not there would have
//! nothing to debug.

use std::path::PathBuf;

use crate::find::on_path;

/// The programs of which one shows that a language is there.
const TOOLS: &[(&str, &[&str])] = &[
    ("c", &["cc", "gcc", "clang"]),
    ("c++", &["c++", "g++", "clang++"]),
    ("rust", &["rustc", "cargo"]),
    ("native", &["cc", "gcc", "clang", "rustc"]),
    ("python", &["python3", "python"]),
    ("go", &["go"]),
    ("javascript", &["node", "nodejs"]),
    ("typescript", &["node", "nodejs"]),
    ("java", &["java", "javac"]),
    ("kotlin", &["kotlinc", "kotlin"]),
    ("scala", &["scala", "scalac"]),
    ("ruby", &["ruby"]),
    ("php", &["php"]),
    ("perl", &["perl"]),
    ("cmake", &["cmake"]),
    ("bash", &["bash"]),
    ("lua", &["lua", "luajit"]),
    ("dart", &["dart"]),
    ("csharp", &["dotnet"]),
    ("c#", &["dotnet"]),
    ("f#", &["dotnet"]),
    ("elixir", &["elixir"]),
    ("haskell", &["ghc"]),
    ("ocaml", &["ocaml"]),
    ("swift", &["swift"]),
    ("zig", &["zig"]),
    ("r", &["Rscript"]),
];

/// A language whose tools are nowhere on PATH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Absent {
    /// What was looked for.
    pub tools: &'static [&'static str],
}

/// Where a language's compiler or interpreter is.
///
/// # Errors
/// What was looked for in vain; nothing, for a language that nothing is known about.
pub fn tool_of(language: &str, env_path: &str) -> Result<PathBuf, Absent> {
    let tools = TOOLS.iter().find(|(known, _)| *known == language).map_or(&[][..], |(_, tools)| tools);
    tools.iter().find_map(|tool| on_path(tool, env_path)).ok_or(Absent { tools })
}
