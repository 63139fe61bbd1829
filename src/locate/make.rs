//! C and C++ projects: `make TARGET` and `ctest`.
//!
//! Make is asked what it would do. What a target needs is built, and of what the target itself does, the last command that
//! starts a program of the project is the one to debug.

mod ctest;
mod shell;

use std::path::{Path, PathBuf};

use self::shell::Simple;
use super::{Asked, Build, Kept, Plan, scan};
use crate::failure::Failure;

/// Options that take the next word as their value.
const VALUED: [&str; 12] = [
    "-C",
    "--directory",
    "-f",
    "--file",
    "--makefile",
    "-I",
    "--include-dir",
    "-o",
    "--old-file",
    "-W",
    "--what-if",
    "--eval",
];

/// Names of makefiles, in the order they are looked for.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];

/// A target that leads to another is followed this far.
const MAX_STEPS: usize = 8;

/// `make` and its options, its variables, and what it is to make.
#[derive(Debug, Clone, Default)]
struct Line {
    make: Vec<String>,
    targets: Vec<String>,
    /// Where it works.
    folder: PathBuf,
}

impl Line {
    fn read(words: &[String], cwd: &Path) -> Self {
        let mut line = Self { folder: cwd.to_path_buf(), ..Self::default() };
        let mut words = words.iter();
        line.make.extend(words.next().cloned());
        while let Some(word) = words.next() {
            if !word.starts_with('-') && !word.contains('=') {
                line.targets.push(word.clone());
                continue;
            }
            line.make.push(word.clone());
            let mut folder = word.strip_prefix("--directory=").or_else(|| word.strip_prefix("-C")).map(str::to_string);
            if VALUED.contains(&word.as_str()) {
                folder = words.next().cloned();
                line.make.extend(folder.clone());
            }
            if let Some(folder) = folder.filter(|_| word.starts_with("-C") || word.starts_with("--directory")) {
                line.folder = line.folder.join(folder);
            }
        }
        line
    }

    fn command(&self, more: &[&str], targets: &[String]) -> Vec<String> {
        let (make, options) = self.make.split_first().map_or((None, &[][..]), |(make, options)| (Some(make), options));
        let more = more.iter().map(ToString::to_string);
        make.cloned().into_iter().chain(more).chain(options.iter().cloned()).chain(targets.iter().cloned()).collect()
    }
}

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    match asked.name() {
        "make" | "gmake" => {
            let line = Line::read(asked.words, asked.cwd);
            match line.targets.as_slice() {
                [target] => Ok(Some(question(line.clone(), target.clone(), asked.keep(), 0))),
                [] => Err(Failure::usage("make without a target only builds; name the one that starts a program")
                    .hint("bugeye run -- make run")),
                _ => Err(Failure::usage("several targets; name the one that starts a program")),
            }
        }
        "ctest" => ctest::locate(asked).map(Some),
        _ => Ok(None),
    }
}

/// A test of CTest, or a target of the makefile that is called so.
pub fn test(project: &Path, name: &str, _: &Asked) -> Result<Option<Vec<String>>, Failure> {
    if let Some(words) = ctest::test(project, name)? {
        return Ok(Some(words));
    }
    let Some(makefile) = MAKEFILES.iter().map(|file| project.join(file)).find(|file| file.is_file()) else {
        return Ok(None);
    };
    let is_target = scan::text(&makefile).lines().any(|line| {
        line.split_once(':').is_some_and(|(names, rest)| {
            !rest.starts_with('=')
                && !names.starts_with(['\t', '#'])
                && names.split_whitespace().any(|word| word == name)
        })
    });
    Ok(is_target.then(|| vec!["make".into(), name.into()]))
}

/// Messages are read, so they must not be translated.
fn plain() -> Vec<(String, String)> {
    vec![("LC_ALL".into(), "C".into())]
}

/// Asks make for its rules, and builds what the target needs.
fn question(line: Line, target: String, kept: Kept, steps: usize) -> Plan {
    let argv = line.command(&["-n", "-p"], std::slice::from_ref(&target));
    let cwd = kept.cwd.clone();
    let then = move |output: &str| {
        let rule = Rule::read(output, &target);
        let (needed, followed) = match rule {
            // The target only leads to another, which does the work.
            Rule { mut needs, has_recipe: false } if steps < MAX_STEPS => match needs.pop() {
                Some(last) => (needs, Some(last)),
                None => (Vec::new(), None),
            },
            Rule { needs, .. } => (needs, None),
        };
        let next: Box<dyn FnOnce() -> Result<Plan, Failure> + Send> = match followed {
            Some(last) => {
                let (line, kept) = (line.clone(), kept.clone());
                Box::new(move || Ok(question(line, last, kept, steps + 1)))
            }
            None => {
                let (line, kept, needed) = (line.clone(), kept.clone(), needed.clone());
                Box::new(move || Ok(recipe(line, target, &needed, kept)))
            }
        };
        if needed.is_empty() {
            return next();
        }
        let argv = line.command(&[], &needed);
        Ok(Plan::Build(Build { argv, cwd: kept.cwd.clone(), env: Vec::new(), then: Box::new(move |_| next()) }))
    };
    Plan::Build(Build { argv, cwd, env: plain(), then: Box::new(then) })
}

/// What make's own list of rules says about a target.
#[derive(Debug, Default, PartialEq, Eq)]
struct Rule {
    needs: Vec<String>,
    has_recipe: bool,
}

impl Rule {
    fn read(output: &str, target: &str) -> Self {
        let mut rule = Self::default();
        let mut lines = output.lines().skip_while(|line| *line != "# Files").peekable();
        while let Some(line) = lines.next() {
            let needs = line.strip_prefix(target).and_then(|rest| rest.strip_prefix(':'));
            let Some(needs) = needs.filter(|needs| !needs.starts_with('=')) else { continue };
            let needs = needs.trim_start_matches(':').split_whitespace().filter(|word| *word != "|");
            rule.needs.extend(needs.map(Into::into));
            while let Some(line) = lines.next_if(|line| line.starts_with('#') || line.starts_with('\t')) {
                rule.has_recipe |= line.starts_with('\t');
            }
        }
        rule
    }
}

/// What is needed is there. Asks what the target itself does, beside what it needs.
fn recipe(line: Line, target: String, needed: &[String], kept: Kept) -> Plan {
    let before = line.command(&["-n"], needed);
    let whole = line.command(&["-n"], std::slice::from_ref(&target));
    let cwd = kept.cwd.clone();
    let ask = move |known: Vec<String>| {
        let cwd = kept.cwd.clone();
        let then = move |output: &str| {
            let mut commands = commands(output);
            // What is needed is made anew each time where it is no file.
            if commands.starts_with(&known) {
                commands.drain(..known.len());
            }
            choose(&commands, &line, &target, &kept)
        };
        Plan::Build(Build { argv: whole, cwd, env: plain(), then: Box::new(then) })
    };
    if needed.is_empty() {
        return ask(Vec::new());
    }
    let then = move |output: &str| Ok(ask(commands(output)));
    Plan::Build(Build { argv: before, cwd, env: plain(), then: Box::new(then) })
}

/// The commands of `make -n`, one each. Those of a make within are left out: its own command line is there.
fn commands(output: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut depth = 0;
    let mut goes_on = false;
    for line in output.lines() {
        let own = line.starts_with("make[") || line.starts_with("gmake[");
        if own && line.contains(": Entering directory") {
            depth += 1;
        } else if own && line.contains(": Leaving directory") {
            depth -= 1;
        } else if depth == 0 && !own && !line.starts_with("make: ") {
            match commands.last_mut().filter(|_| goes_on) {
                Some(last) => *last = format!("{last}\n{line}"),
                None => commands.push(line.to_string()),
            }
            goes_on = line.ends_with('\\');
        }
    }
    commands.retain(|command| !command.trim().is_empty());
    commands
}

/// The last command that starts a program of the project; what comes before it is run, what comes after it is not.
fn choose(commands: &[String], line: &Line, target: &str, kept: &Kept) -> Result<Plan, Failure> {
    for (index, command) in commands.iter().enumerate().rev() {
        let Some(Simple { words, env, folder, before }) = Simple::read(command, &line.folder) else { continue };
        if !shell::is_of_project(&words, &folder) {
            continue;
        }
        let kept = Kept { words, cwd: folder.clone(), ..kept.clone() };
        let mut first: Vec<String> = commands[..index].to_vec();
        first.extend(before);
        let after = commands[index + 1..].to_vec();
        let debug = move || {
            let plan = super::locate(&kept.asked())?.with_env(env).in_folder(folder);
            Ok(plan.with_note(match after.as_slice() {
                [] => None,
                after => Some(format!("not run after it: {}", after.join("; "))),
            }))
        };
        return if first.is_empty() { debug() } else { Ok(run_first(first, &line.folder, debug)) };
    }
    let failure = Failure::refused(format!("`make {target}` starts no program of this project"));
    Err(match commands.last() {
        Some(last) => {
            failure.hint(format!("its last command: {last}")).hint("name the program: bugeye run -- ./program")
        }
        None => failure.hint("it only builds; name the program: bugeye run -- ./program"),
    })
}

/// Runs the commands before the program's, each in a shell of its own as make does.
fn run_first(
    commands: Vec<String>,
    folder: &Path,
    then: impl FnOnce() -> Result<Plan, Failure> + Send + 'static,
) -> Plan {
    let mut commands = commands.into_iter();
    let Some(first) = commands.next() else {
        return Plan::Build(Build {
            argv: vec!["true".into()],
            cwd: folder.to_path_buf(),
            env: Vec::new(),
            then: Box::new(move |_| then()),
        });
    };
    let rest: Vec<String> = commands.collect();
    let place = folder.to_path_buf();
    let next = move |_: &str| if rest.is_empty() { then() } else { Ok(run_first(rest, &place, then)) };
    let argv = vec!["/bin/sh".into(), "-c".into(), first];
    Plan::Build(Build { argv, cwd: folder.to_path_buf(), env: Vec::new(), then: Box::new(next) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_from_make_s_own_list() {
        let list = "# make data base\nrun: not this\n\n# Files\n\n# Not a target:\nMakefile:\n#  x\n\nall: run\n\nrun: app | out\n#  Phony target\n#  recipe to execute (from 'Makefile', line 5):\n\t./app 1\n\nrunner: x\n";
        let needs = vec!["app".to_string(), "out".into()];
        assert_eq!(Rule::read(list, "run"), Rule { needs, has_recipe: true });
        assert_eq!(Rule::read(list, "all"), Rule { needs: vec!["run".into()], has_recipe: false });
    }

    #[test]
    fn commands_of_a_make_within_are_its_own() {
        let output = "mkdir -p out\nmake -C sub run\nmake[1]: Entering directory '/p/sub'\ncc x.c\n./app\nmake[1]: Leaving directory '/p/sub'\n./a \\\n  b\nmake: Nothing to be done for 'all'.\n";
        assert_eq!(commands(output), ["mkdir -p out", "make -C sub run", "./a \\\n  b"]);
    }

    #[test]
    fn the_folder_of_a_makefile_is_followed() {
        let words: Vec<String> = "make -j4 -C sub V=1 run".split(' ').map(Into::into).collect();
        let line = Line::read(&words, Path::new("/p"));
        assert_eq!((line.folder, line.targets), (PathBuf::from("/p/sub"), vec!["run".to_string()]));
        assert_eq!(line.make.join(" "), "make -j4 -C sub V=1");
    }
}
