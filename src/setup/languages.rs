//! Which languages this machine has: their compilers and interpreters. An adapter for one that is not there would have
//! nothing to debug.

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

/// What was looked for in vain; None where there is a compiler or interpreter, and for a language that nothing is known
/// about.
#[must_use]
pub fn absent(language: &str, env_path: &str) -> Option<Absent> {
    let (_, tools) = TOOLS.iter().find(|(known, _)| *known == language)?;
    tools.iter().all(|tool| on_path(tool, env_path).is_none()).then_some(Absent { tools })
}
