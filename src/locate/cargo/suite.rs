//! The tests of a Rust project: which executable has the one that was named.

use super::Line;
use super::built::{Artifact, Built, describe};
use crate::failure::Failure;
use crate::locate::scan::no_such_test as no_such_test_of;
use crate::locate::{Build, Kept, Plan, Program};

/// Options of the test harness that take the next word as their value.
const VALUED: [&str; 7] = ["--skip", "--test-threads", "--logfile", "--format", "--color", "--shuffle-seed", "-Z"];

/// What the harness is asked to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Wanted {
    names: Vec<String>,
    /// Names are whole, not parts.
    exact: bool,
    skipped: Vec<String>,
    /// Everything else that is passed on.
    options: Vec<String>,
}

impl Wanted {
    fn read(plain: &[String], rest: &[String]) -> Self {
        let mut wanted = Self { names: plain.to_vec(), ..Self::default() };
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--exact" => wanted.exact = true,
                "--skip" => wanted.skipped.extend(words.next().cloned()),
                option if VALUED.contains(&option) => {
                    wanted.options.push(word.clone());
                    wanted.options.extend(words.next().cloned());
                }
                option if option.starts_with("--skip=") => wanted.skipped.push(option[7..].into()),
                option if option.starts_with('-') => wanted.options.push(word.clone()),
                _ => wanted.names.push(word.clone()),
            }
        }
        wanted
    }

    /// The tests of an executable that it would run.
    fn matching<'a>(&self, tests: &'a [String]) -> Vec<&'a String> {
        let fits = |test: &str, name: &String| if self.exact { test == name } else { test.contains(name.as_str()) };
        let skipped = |test: &str| self.skipped.iter().any(|name| fits(test, name));
        let named = |test: &str| self.names.is_empty() || self.names.iter().any(|name| fits(test, name));
        tests.iter().filter(|test| named(test) && !skipped(test)).collect()
    }

    /// The words of the command that starts it, so that it runs in one thread and prints as it goes.
    fn args(&self) -> Vec<String> {
        let mut args = self.names.clone();
        if self.exact {
            args.push("--exact".into());
        }
        args.extend(self.skipped.iter().flat_map(|name| ["--skip".to_string(), name.clone()]));
        args.extend(self.options.iter().cloned());
        if !self.options.iter().any(|word| word.starts_with("--test-threads")) {
            args.push("--test-threads=1".into());
        }
        if !self.options.iter().any(|word| ["--nocapture", "--no-capture", "--show-output"].contains(&word.as_str())) {
            args.push("--nocapture".into());
        }
        args
    }
}

/// `cargo test`: what it would run is built, then each executable is asked for its tests.
pub fn plan(mut line: Line, kept: Kept) -> Result<Plan, Failure> {
    if line.remove(&["--doc"]).is_some() {
        return Err(Failure::unsupported(
            "documentation tests can't be debugged: rustdoc compiles and runs them itself",
        )
        .hint("put the code into a test of its own: #[test] fn name() { … }"));
    }
    for option in ["--message-format", "--no-run", "--no-fail-fast"] {
        line.remove(&[option]);
    }
    let wanted = Wanted::read(&line.plain, &line.rest);
    Ok(build(line, wanted, Vec::new(), kept))
}

/// `cargo nextest run`: the same executables, started as nextest starts them.
pub fn nextest(mut line: Line, kept: Kept) -> Result<Plan, Failure> {
    if line.remove(&["-E", "--filterset", "--filter-expr"]).is_some() {
        return Err(Failure::unsupported("nextest's filter expressions are not read here")
            .hint("name the test: bugeye run -- cargo nextest run NAME"));
    }
    let ignored = line.remove(&["--run-ignored"]);
    let own = ["--profile", "-P", "--retries", "--partition", "--no-capture", "--nocapture", "--no-fail-fast"];
    let more =
        ["--fail-fast", "--message-format", "--no-run", "--status-level", "--final-status-level", "--test-threads"];
    for option in own.iter().chain(&more) {
        line.remove(&[option]);
    }
    if let Some(profile) = line.remove(&["--cargo-profile"]) {
        line.options.extend(["--profile".into(), profile]);
    }
    let mut wanted = Wanted::read(&line.plain, &line.rest);
    match ignored.as_deref() {
        Some("all") => wanted.options.push("--include-ignored".into()),
        Some(_) => wanted.options.push("--ignored".into()),
        None => {}
    }
    let env = [("NEXTEST", "1"), ("NEXTEST_EXECUTION_MODE", "process-per-test")];
    Ok(build(line, wanted, env.map(|(name, value)| (name.into(), value.into())).into(), kept))
}

fn build(line: Line, wanted: Wanted, env: Vec<(String, String)>, kept: Kept) -> Plan {
    let argv = line.command(&["test", "--no-run", "--message-format=json-render-diagnostics"], &line.options);
    let cwd = kept.cwd.clone();
    let then = move |output: &str| {
        let built = Built::read(output);
        let suites: Vec<Artifact> = built.suites().cloned().collect();
        let Some(first) = suites.first().cloned() else {
            return Err(Failure::not_found("cargo built no tests"));
        };
        let place = kept.cwd.clone();
        let about = built.clone();
        Ok(describe(&line.cargo, &first, &about, &place, move |package| {
            let suites = suites
                .into_iter()
                .map(|artifact| {
                    let mut variables = built.environment(&artifact, package, &kept);
                    variables.extend(env.iter().cloned());
                    Suite { artifact, env: variables, tests: Vec::new() }
                })
                .collect();
            list(suites, wanted)
        }))
    };
    Plan::Build(Build { argv, cwd, env: Vec::new(), then: Box::new(then) })
}

/// One executable and its tests.
struct Suite {
    artifact: Artifact,
    env: Vec<(String, String)>,
    tests: Vec<String>,
}

/// Executables that were asked for their tests, and those that were not yet.
struct Search {
    left: Vec<Suite>,
    done: Vec<Suite>,
    wanted: Wanted,
}

/// Asks one executable after the other for its tests.
fn list(suites: Vec<Suite>, wanted: Wanted) -> Result<Plan, Failure> {
    // One without the usual harness may take the question for an order to run.
    let (mut left, mut others): (Vec<Suite>, Vec<Suite>) =
        suites.into_iter().partition(|suite| has_harness(&suite.artifact));
    if let (true, Some(only), true) = (left.is_empty(), others.pop(), others.is_empty()) {
        return Ok(only.debug(&wanted, Vec::new()));
    }
    left.reverse();
    ask_next(Search { left, done: Vec::new(), wanted })
}

fn ask_next(mut search: Search) -> Result<Plan, Failure> {
    let Some(mut suite) = search.left.pop() else { return decide(&search.done, search.wanted) };
    let argv = vec![suite.artifact.executable.to_string_lossy().into_owned(), "--list".into(), "--format=terse".into()];
    let (cwd, env) = (suite.artifact.root().to_path_buf(), suite.env.clone());
    let then = move |output: &str| {
        suite.tests = output.lines().filter_map(|line| line.strip_suffix(": test")).map(Into::into).collect();
        search.done.push(suite);
        ask_next(search)
    };
    Ok(Plan::Build(Build { argv, cwd, env, then: Box::new(then) }))
}

/// The executable that has what is wanted.
fn decide(suites: &[Suite], mut wanted: Wanted) -> Result<Plan, Failure> {
    let mut notes = Vec::new();
    let asked = wanted.names.clone();
    let called = |test: &str| asked.iter().any(|name| is_called(test, name));
    if wanted.exact && suites.iter().all(|suite| wanted.matching(&suite.tests).is_empty()) {
        // The name alone, without the modules around it.
        let of = |suite| move |test| (suite, test);
        let found: Vec<(&Suite, &String)> =
            suites.iter().flat_map(|suite| suite.tests.iter().filter(|test| called(test)).map(of(suite))).collect();
        match found.as_slice() {
            [] => {}
            [(_, only)] => {
                notes.push(format!("the test is {only}"));
                wanted.names = vec![(*only).clone()];
            }
            several => return Err(ambiguous(several, &wanted)),
        }
    }
    let first = |suite, whole: bool| {
        let suite: &Suite = suite;
        let fits = |test: &&String| !whole || wanted.names.iter().any(|name| is_called(test, name));
        wanted.matching(&suite.tests).into_iter().find(fits).map(|test| (suite, test))
    };
    // A whole name comes before a part of another.
    let whole: Vec<(&Suite, &String)> = suites.iter().filter_map(|suite| first(suite, true)).collect();
    let any: Vec<(&Suite, &String)> = suites.iter().filter_map(|suite| first(suite, false)).collect();
    match (whole.as_slice(), any.as_slice()) {
        ([(only, test)], _) | (_, [(only, test)]) => {
            let others = suites.iter().flat_map(|suite| &suite.tests).filter(|other| called(other) && other != test);
            if wanted.exact {
                notes.extend(others.map(|other| format!("another is called so: {other}")));
            }
            Ok(only.debug(&wanted, notes))
        }
        (_, []) => Err(no_such_test(suites, &wanted)),
        ([], several) | (several, _) => Err(ambiguous(several, &wanted)),
    }
}

/// Whether a test is called so, with or without the modules around it.
fn is_called(test: &str, name: &str) -> bool {
    test == name || test.strip_suffix(name).is_some_and(|modules| modules.ends_with("::"))
}

fn ambiguous(found: &[(&Suite, &String)], wanted: &Wanted) -> Failure {
    let failure = match wanted.names.as_slice() {
        [] => Failure::usage("several executables have tests; say which one, or name a test"),
        names => Failure::usage(format!("`{}` is in several places; say which one", names.join("`, `"))),
    };
    let packages = found.iter().any(|(suite, _)| suite.artifact.package_id != found[0].0.artifact.package_id);
    found.iter().take(7).fold(failure, |failure, (suite, test)| {
        let package = if packages { format!("-p {} ", suite.artifact.package()) } else { String::new() };
        let name = if wanted.names.is_empty() { String::new() } else { format!(" {test} -- --exact") };
        failure.hint(format!("bugeye run -- cargo test {package}{}{name}", suite.artifact.flags()))
    })
}

fn no_such_test(suites: &[Suite], wanted: &Wanted) -> Failure {
    let known = suites.iter().flat_map(|suite| suite.tests.iter().map(String::as_str));
    if wanted.names.is_empty() && known.clone().next().is_some() {
        return Failure::not_found("every test is skipped");
    }
    let failure = no_such_test_of(&wanted.names.join("`, `"), known);
    failure.hint("list them: cargo test -- --list")
}

impl Suite {
    fn debug(&self, wanted: &Wanted, notes: Vec<String>) -> Plan {
        Plan::Debug(Program {
            language: "rust",
            program: self.artifact.executable.clone(),
            args: wanted.args(),
            env: self.env.clone(),
            cwd: Some(self.artifact.root().to_path_buf()),
            catch: vec!["panic".into()],
            notes,
            ..Program::default()
        })
    }
}

/// Whether a target is run by Rust's own test harness, as its package says.
fn has_harness(artifact: &Artifact) -> bool {
    let text = std::fs::read_to_string(&artifact.manifest).unwrap_or_default();
    let Ok(manifest) = text.parse::<toml::Table>() else { return true };
    let is_without = |target: &toml::Value| target.get("harness").and_then(toml::Value::as_bool) == Some(false);
    let is_named = |target: &toml::Value| target.get("name").and_then(toml::Value::as_str) == Some(&artifact.name);
    match manifest.get(&artifact.kind) {
        Some(toml::Value::Array(targets)) => !targets.iter().any(|target| is_named(target) && is_without(target)),
        Some(target) => !is_without(target),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(Into::into).collect()
    }

    fn suite(kind: &str, name: &str, tests: &str) -> Suite {
        let artifact = Artifact {
            name: name.into(),
            kind: kind.into(),
            manifest: "/p/Cargo.toml".into(),
            executable: format!("/p/target/debug/deps/{name}").into(),
            is_test: true,
            ..Artifact::default()
        };
        Suite { artifact, env: Vec::new(), tests: words(tests) }
    }

    fn chosen(line: &str) -> Result<(String, String), Failure> {
        let suites =
            [suite("lib", "app", "tests::adds tests::adds_more a::same b::same"), suite("test", "it", "adds other")];
        let (plain, rest) = line.split_once("--").unwrap_or((line, ""));
        let plan = decide(&suites, Wanted::read(&words(plain), &words(rest)))?;
        let Plan::Debug(program) = plan else { panic!("{plan:?}") };
        let file = program.program.file_name().unwrap().to_string_lossy().into_owned();
        Ok((file, program.args.join(" ")))
    }

    #[test]
    fn the_executable_with_the_test_is_chosen() {
        let end = "--test-threads=1 --nocapture";
        assert_eq!(chosen("other").unwrap(), ("it".into(), format!("other {end}")));
        // A part of a name fits many.
        assert_eq!(chosen("adds_").unwrap(), ("app".into(), format!("adds_ {end}")));
        assert_eq!(chosen("same").unwrap().0, "app");
        assert_eq!(chosen("-- --exact tests::adds").unwrap(), ("app".into(), format!("tests::adds --exact {end}")));
        // The name without its modules is enough.
        assert_eq!(chosen("-- --exact adds_more").unwrap().1, format!("tests::adds_more --exact {end}"));
        assert_eq!(chosen("-- --exact adds").unwrap().0, "it", "a whole path comes first");
    }

    #[test]
    fn what_is_in_several_places_has_to_be_chosen() {
        let failure = chosen("adds").unwrap_err();
        assert_eq!(failure.hints[0], "bugeye run -- cargo test --lib tests::adds -- --exact");
        assert_eq!(failure.hints[1], "bugeye run -- cargo test --test it adds -- --exact");
        assert_eq!(chosen("-- --exact same").unwrap_err().hints.len(), 2);
        assert_eq!(chosen("").unwrap_err().hints[1], "bugeye run -- cargo test --test it");
    }

    #[test]
    fn what_is_nowhere_is_told_with_the_nearest() {
        let failure = chosen("-- --exact ads_more").unwrap_err();
        assert_eq!(failure.message, "no test is called `ads_more`; there are 6 tests");
        assert_eq!(failure.hints[0], "did you mean tests::adds_more?");
    }

    #[test]
    fn words_for_the_harness_are_passed_on() {
        let wanted = Wanted::read(&words("a"), &words("--skip b --test-threads 3 --nocapture --ignored c"));
        assert_eq!(wanted.args(), words("a c --skip b --test-threads 3 --nocapture --ignored"));
        assert!(wanted.matching(&words("xay")).len() == 1 && wanted.matching(&words("ab")).is_empty());
    }
}
