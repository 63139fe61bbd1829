//! Every adapter that tests run on: one entry each. What differs between languages is data here; the scenarios are the
//! same for all.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::Bug;
use super::fixtures;

/// An adapter in one version, and the program it is tried on: `tests/fixtures/LANGUAGE/every.*`.
pub struct Side {
    /// As the page and the tests call it.
    pub name: &'static str,
    pub adapter: &'static str,
    /// What `scripts/adapters` is asked for, and the name at the head of its answer; None for what `bugeye setup`
    /// installs or the language brings.
    pub fetched: Option<(&'static str, &'static str)>,
    pub language: &'static str,
    pub fixture: &'static str,
    /// Where functions are: `main.` for Go.
    pub scope: &'static str,
    /// What names of variables begin with: `$` for PHP.
    pub sigil: &'static str,
    /// The function that calls `work`.
    pub main: &'static str,
    /// What the end of mode `throw` is called, where it stops by itself.
    pub boom: &'static str,
    /// A path into `thing` of mode `nested`: its `inner.x` and second item of `list`.
    pub paths: [&'static str; 2],
    /// The type of a whole number.
    pub int: &'static str,
    /// A name that `modules` shows, and one among the globals.
    pub module: &'static str,
    pub globals: &'static str,
    /// A native command, and what its answer has.
    pub raw: (&'static str, &'static str),
    /// Threads have the names that the program gives them.
    pub names_threads: bool,
    /// A breakpoint on a function is known to be right before the program runs.
    pub checks_functions: bool,
    /// What this adapter can't do: the scenario, and why.
    pub holes: &'static [(&'static str, Hole)],
}

/// Why a scenario does not run on a side.
#[derive(Debug, Clone, Copy)]
pub enum Hole {
    /// The command itself answers so, with exit code 6: the scenario checks it.
    Says(&'static str),
    /// There is no such thing in the language.
    Nothing(&'static str),
}

const NATIVE: Side = Side {
    name: "lldb 19",
    adapter: "lldb-dap",
    fetched: None,
    language: "c",
    fixture: "c/every.c",
    scope: "",
    sigil: "",
    main: "main",
    boom: "SIGSEGV",
    paths: ["thing.inner.x", "thing.list[1]"],
    int: "int",
    module: "libc",
    globals: "ready",
    raw: ("frame variable n", "(int) n = 5"),
    names_threads: true,
    checks_functions: true,
    holes: &[],
};

pub const LLDB_19: Side = NATIVE;
pub const LLDB_14: Side = Side { name: "lldb 14", fetched: Some(("14", "lldb-14")), ..NATIVE };
pub const LLDB_22: Side = Side { name: "lldb 22", fetched: Some(("22", "lldb-22")), ..NATIVE };

pub const GDB: Side =
    Side { name: "gdb 16", adapter: "gdb", fetched: Some(("gdb", "gdb-16")), raw: ("output n", "5"), ..NATIVE };

pub const CODELLDB: Side =
    Side { name: "codelldb", adapter: "codelldb", fetched: Some(("codelldb", "codelldb")), ..NATIVE };

pub const DEBUGPY: Side = Side {
    name: "debugpy",
    adapter: "debugpy",
    language: "python",
    fixture: "python/every.py",
    main: "main",
    boom: "ValueError",
    paths: ["thing['inner']['x']", "thing['list'][1]"],
    module: "__main__",
    raw: ("n + 1", "6"),
    checks_functions: false,
    holes: &[("watch", Hole::Says("no data breakpoints"))],
    ..NATIVE
};

pub const NODE: Side = Side {
    name: "node",
    adapter: "node",
    language: "js",
    fixture: "js/every.js",
    boom: "Error: boom",
    int: "number",
    module: "every.js",
    raw: ("Runtime.evaluate {\"expression\":\"6*7\"}", "\"value\": 42"),
    holes: &[("watch", Hole::Says("no data breakpoints"))],
    ..NATIVE
};

pub const TSX: Side = Side {
    name: "node, tsx",
    language: "ts",
    fixture: "ts/every.ts",
    module: "every.ts",
    holes: &[
        ("watch", Hole::Says("no data breakpoints")),
        ("threads", Hole::Nothing("tsx runs no TypeScript in workers")),
    ],
    ..NODE
};

pub const JAVA: Side = Side {
    name: "java",
    adapter: "java",
    language: "java",
    fixture: "java/Every.java",
    scope: "Every.",
    main: "Every.main",
    boom: "IllegalStateException",
    module: "java-Every.jar",
    raw: ("classes Every", "Every"),
    ..NATIVE
};

pub const DELVE: Side = Side {
    name: "delve",
    adapter: "delve",
    language: "go",
    fixture: "go/every.go",
    scope: "main.",
    main: "main.main",
    boom: "panic: boom",
    raw: ("config -list showRegisters", "true"),
    ..NATIVE
};

pub const RUBY: Side = Side {
    name: "ruby",
    adapter: "ruby",
    language: "ruby",
    fixture: "ruby/every.rb",
    boom: "ArgumentError",
    paths: ["thing[:inner][:x]", "thing[:list][1]"],
    int: "Integer",
    module: "every.rb",
    globals: "$PROGRAM_NAME",
    raw: ("n + 1", "6"),
    holes: &[
        ("watch", Hole::Says("no data breakpoints")),
        ("attach", Hole::Says("a Ruby program is debugged from its start")),
    ],
    ..NATIVE
};

pub const XDEBUG: Side = Side {
    name: "xdebug",
    adapter: "xdebug",
    language: "php",
    fixture: "php/every.php",
    sigil: "$",
    boom: "RuntimeException",
    paths: ["$thing['inner']['x']", "$thing['list'][1]"],
    module: "every.php",
    globals: "$_SERVER",
    raw: ("$n + 1", "6"),
    holes: &[
        ("watch", Hole::Says("no data breakpoints")),
        ("threads", Hole::Nothing("PHP has no threads")),
        ("attach", Hole::Says("Xdebug is there from a program's start, or not at all")),
    ],
    ..NATIVE
};

pub const PERL: Side = Side {
    name: "perl",
    adapter: "perl",
    language: "perl",
    fixture: "perl/every.pl",
    sigil: "$",
    boom: "boom",
    paths: ["$thing->{inner}{x}", "$thing->{list}[1]"],
    int: "number",
    module: "every.pl",
    globals: "%ENV",
    raw: ("$n + 1", "6"),
    holes: &[
        ("watch", Hole::Says("no data breakpoints")),
        ("threads", Hole::Nothing("Perl programs here have one thread")),
        ("attach", Hole::Says("a Perl program is debugged from its start")),
    ],
    ..NATIVE
};

impl Side {
    pub fn bug(&self) -> Bug {
        let mut bug = Bug::new(self.language);
        bug.env.push(("BUGEYE_ADAPTER".into(), self.adapter.into()));
        if self.language == "ts" {
            let path = std::env::var("PATH").unwrap();
            bug.env.push(("PATH".into(), format!("{}:{path}", fixtures::node_modules().join(".bin").display())));
        }
        if self.language == "java" {
            std::os::unix::fs::symlink(fixtures::java(), bug.home().join("data/adapters/java")).unwrap();
        }
        if let Some((asked, name)) = self.fetched {
            let path = fetched(asked, name);
            std::fs::create_dir_all(bug.home().join("config")).unwrap();
            bug.write("config/config.toml", &format!("[adapters.{}]\npath = \"{}\"\n", self.adapter, path.display()));
        }
        bug
    }

    pub fn program(&self) -> String {
        fixtures::program(self.fixture)
    }

    /// `every.c:24`.
    pub fn at(&self, mark: &str) -> String {
        fixtures::at(self.fixture, mark)
    }

    pub fn line(&self, mark: &str) -> u32 {
        fixtures::line(self.fixture, mark)
    }

    /// A function's name as frames show it.
    pub fn function(&self, name: &str) -> String {
        format!("{}{name}", self.scope)
    }

    /// A variable's name.
    pub fn var(&self, name: &str) -> String {
        format!("{}{name}", self.sigil)
    }

    pub fn hole(&self, scenario: &str) -> Option<Hole> {
        self.holes.iter().find(|(name, _)| *name == scenario).map(|(_, hole)| *hole)
    }

    /// The command line that runs the program outside of any debugger.
    pub fn outside(&self, mode: &str) -> Vec<String> {
        let program = self.program();
        let file = fixtures::folder(self.language).join(&program).display().to_string();
        if self.language == "ts" {
            let loader = fixtures::node_modules().join("tsx/dist/loader.mjs").display().to_string();
            return ["node", "--import", &loader, &file, mode].map(ToString::to_string).to_vec();
        }
        if self.language == "java" {
            let agent = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,quiet=y,address=127.0.0.1:0";
            return ["java", agent, "-jar", &file, mode].map(Into::into).to_vec();
        }
        let interpreter = match self.language {
            "python" => Some("python3"),
            "js" => Some("node"),
            "ruby" => Some("ruby"),
            "php" => Some("php"),
            "perl" => Some("perl"),
            _ => None,
        };
        interpreter.map(Into::into).into_iter().chain([file, mode.into()]).collect()
    }
}

/// The program of a version that `scripts/adapters` fetched into the build folder.
pub fn fetched(asked: &str, name: &str) -> PathBuf {
    static FETCHED: OnceLock<std::sync::Mutex<String>> = OnceLock::new();
    let list = FETCHED.get_or_init(Default::default);
    let mut list = list.lock().unwrap();
    let head = format!("{name} ");
    let line = |list: &str| list.lines().find_map(|line| line.strip_prefix(&head).map(PathBuf::from));
    if let Some(path) = line(&list) {
        return path;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("adapters");
    let done = Command::new(root.join("scripts/adapters")).arg(folder).arg(asked).output().unwrap();
    assert!(done.status.success(), "{asked} can't be fetched: {}", String::from_utf8_lossy(&done.stderr));
    list.push_str(&String::from_utf8(done.stdout).unwrap());
    line(&list).unwrap_or_else(|| panic!("no {name} in {list}"))
}
