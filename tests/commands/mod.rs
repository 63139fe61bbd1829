//! Every command on every adapter: that it works, or that it says it can't, with the reason written here.

mod breakpoints;
mod looking;
mod running;
mod sessions;
mod surroundings;

use crate::support::fixtures::{at, line, program};
use crate::support::{Bug, words};

/// The same loop in a language of each adapter.
pub struct Side {
    pub adapter: &'static str,
    pub language: &'static str,
    pub fixture: &'static str,
    pub function: &'static str,
    pub total: &'static str,
}

pub const NATIVE: Side =
    Side { adapter: "lldb-dap", language: "c", fixture: "c/loop_basic.c", function: "work_basic", total: "sum" };

pub const PYTHON: Side =
    Side { adapter: "debugpy", language: "python", fixture: "python/loop.py", function: "work", total: "total" };

/// What an adapter can't do: the command, the adapter, and why. Each must answer as unsupported, with exit code 6.
pub const UNSUPPORTED: &[(&str, &str, &str)] = &[
    ("continue --thread", "lldb-dap", "19 lets all threads run; it has no singleThread"),
    ("continue --thread", "debugpy", "pydevd resumes all threads or none"),
    ("print i --format address", "debugpy", "a Python name has no address"),
];

impl Side {
    pub fn bug(&self) -> Bug {
        Bug::new(self.language)
    }

    pub fn program(&self) -> String {
        program(self.fixture)
    }

    pub fn at(&self, mark: &str) -> String {
        at(self.fixture, mark)
    }

    pub fn line(&self, mark: &str) -> u32 {
        line(self.fixture, mark)
    }

    pub fn file(&self) -> &str {
        self.fixture.split_once('/').unwrap().1
    }

    /// Stopped at the first pass of the loop body.
    pub fn at_body(&self) -> Bug {
        let bug = self.bug();
        bug.ok(&["run", &self.program(), "--break", &self.at("body")]);
        bug
    }

    /// `{file}`, `{function}`, `{total}`, `{bound}`, `{body}`, `{after}`, `{end}` in a table's words.
    pub fn fill(&self, text: &str) -> String {
        text.replace("{file}", self.file())
            .replace("{function}", self.function)
            .replace("{total}", self.total)
            // A function's name can't be checked in Python before it is called.
            .replace("{bound}", if self.language == "python" { "pending (debugpy takes any name" } else { "verified" })
            .replace("{body}", &self.at("body"))
            .replace("{after}", &self.at("after"))
            .replace("{end}", &self.at("end"))
    }

    /// Gives each command of a table in turn: its exit code and what its text has to have.
    pub fn table(&self, bug: &Bug, rows: &[(&str, i32, &[&str])]) {
        for (command, code, parts) in rows {
            let reason = UNSUPPORTED.iter().find(|(name, adapter, _)| name == command && *adapter == self.adapter);
            let filled = self.fill(command);
            let run = bug.run(&words(&filled));
            if let Some((_, _, why)) = reason {
                assert_eq!(run.code, 6, "unsupported because {why}, yet {run}");
                assert!(run.stderr.contains("does not support") && run.stderr.contains("hint: "), "{run}");
                continue;
            }
            assert_eq!(run.code, *code, "{run}");
            let text = if *code == 0 { &run.stdout } else { &run.stderr };
            for part in *parts {
                let part = self.fill(part);
                assert!(text.contains(&part), "no {part:?} in {run}");
            }
        }
    }
}
