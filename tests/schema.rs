//! What the program says of itself is so: every command and reply has a schema, real replies fit theirs and have
//! nothing beside, and each shell's completion script is one that shell reads.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use bugeye::commands::{CATALOGUE, Run};
use support::fixtures::{at, program};
use support::{Bug, has};

/// A schema with the definitions it refers to.
struct Schema<'a> {
    root: &'a Value,
}

/// The keys of an object that a schema says something about; none for all of them.
type Told = Option<BTreeSet<String>>;

impl Schema<'_> {
    /// Why a value does not fit, or has something that the schema does not tell of.
    fn complaint(&self, value: &Value) -> Option<String> {
        self.closed(self.root, value, "").err()
    }

    /// As [`Schema::fits`], for a whole value: what is not told of may not be there.
    fn closed(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let told = self.fits(schema, value, at)?;
        if let (Some(fields), Some(told)) = (value.as_object(), told)
            && let Some(key) = fields.keys().find(|key| !told.contains(*key))
        {
            return Err(format!("{at}: `{key}` is not in the schema"));
        }
        Ok(())
    }

    fn fits(&self, schema: &Value, value: &Value, at: &str) -> Result<Told, String> {
        let fields = match schema {
            Value::Bool(true) => return Ok(None),
            Value::Object(fields) => fields,
            other => panic!("{other} is no schema"),
        };
        let fail = |what: &str| Err(format!("{at}: {value} {what}"));
        let mut told: Told = Some(BTreeSet::new());
        let mut says = false;
        let mut join = |more: Told| match (&mut told, more) {
            (Some(told), Some(more)) => told.extend(more),
            (told, None) => *told = None,
            (None, _) => {}
        };
        for (word, rule) in fields {
            says |= !["$schema", "$defs", "title", "description", "default", "format"].contains(&word.as_str());
            match word.as_str() {
                "$schema" | "$defs" | "title" | "description" | "default" | "format" => {}
                "$ref" => {
                    let name = rule.as_str().unwrap().strip_prefix('#').unwrap();
                    let target = self.root.pointer(name).unwrap_or_else(|| panic!("{rule} leads nowhere"));
                    join(self.fits(target, value, at)?);
                }
                "type" => {
                    let kinds: Vec<&str> = match rule {
                        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap()).collect(),
                        kind => vec![kind.as_str().unwrap()],
                    };
                    let is = |kind: &&str| match *kind {
                        "object" => value.is_object(),
                        "array" => value.is_array(),
                        "string" => value.is_string(),
                        "boolean" => value.is_boolean(),
                        "integer" => value.is_i64() || value.is_u64(),
                        "number" => value.is_number(),
                        "null" => value.is_null(),
                        other => panic!("the type {other}"),
                    };
                    if !kinds.iter().any(is) {
                        return fail(&format!("is not of type {rule}"));
                    }
                }
                "properties" => {
                    let rules = rule.as_object().unwrap();
                    for (key, rule) in rules {
                        if let Some(part) = value.get(key) {
                            self.closed(rule, part, &format!("{at}/{key}"))?;
                        }
                    }
                    join(Some(rules.keys().cloned().collect()));
                }
                "required" => {
                    let missing =
                        rule.as_array().unwrap().iter().find(|key| value.get(key.as_str().unwrap()).is_none());
                    if let Some(key) = missing {
                        return fail(&format!("has no {key}"));
                    }
                }
                "additionalProperties" => {
                    let known = fields.get("properties").and_then(Value::as_object);
                    for (key, part) in value.as_object().into_iter().flatten() {
                        if known.is_none_or(|known| !known.contains_key(key)) {
                            if rule == false {
                                return fail(&format!("may not have {key}"));
                            }
                            self.closed(rule, part, &format!("{at}/{key}"))?;
                        }
                    }
                    join(None);
                }
                "items" => {
                    let skipped = fields.get("prefixItems").and_then(Value::as_array).map_or(0, Vec::len);
                    for (index, item) in value.as_array().into_iter().flatten().enumerate().skip(skipped) {
                        self.closed(rule, item, &format!("{at}/{index}"))?;
                    }
                }
                "prefixItems" => {
                    for (index, (rule, item)) in
                        rule.as_array().unwrap().iter().zip(value.as_array().unwrap()).enumerate()
                    {
                        self.closed(rule, item, &format!("{at}/{index}"))?;
                    }
                }
                "minItems" | "maxItems" => {
                    let (count, limit) = (value.as_array().map_or(0, Vec::len) as u64, rule.as_u64().unwrap());
                    if (word == "minItems" && count < limit) || (word == "maxItems" && count > limit) {
                        return fail(&format!("has {count} items, {word} is {limit}"));
                    }
                }
                "minimum" | "maximum" => {
                    let (number, limit) = (value.as_f64().unwrap_or_default(), rule.as_f64().unwrap());
                    if (word == "minimum" && number < limit) || (word == "maximum" && number > limit) {
                        return fail(&format!("is beyond the {word} {limit}"));
                    }
                }
                "enum" if !rule.as_array().unwrap().contains(value) => return fail(&format!("is none of {rule}")),
                "const" if rule != value => return fail(&format!("is not {rule}")),
                "enum" | "const" => {}
                "allOf" => {
                    for rule in rule.as_array().unwrap() {
                        join(self.fits(rule, value, at)?);
                    }
                }
                "anyOf" | "oneOf" => {
                    // Of those that fit, one that tells of all that is there.
                    let tried: Vec<Result<Told, String>> =
                        rule.as_array().unwrap().iter().map(|rule| self.fits(rule, value, at)).collect();
                    let mut fitting = tried.iter().filter_map(|tried| tried.as_ref().ok()).peekable();
                    if fitting.peek().is_none() {
                        let why: Vec<&String> = tried.iter().filter_map(|tried| tried.as_ref().err()).collect();
                        return fail(&format!("fits none of {word}: {why:?}"));
                    }
                    fitting.for_each(|told| join(told.clone()));
                }
                other => panic!("this test does not know the word `{other}` of a schema"),
            }
        }
        // A schema that says nothing allows everything.
        Ok(if says { told } else { None })
    }
}

#[track_caller]
fn fits(schema: &Value, value: &Value, what: &str) {
    let complaint = Schema { root: schema }.complaint(value);
    assert!(complaint.is_none(), "{what}: {}", complaint.unwrap());
}

#[test]
fn the_test_would_notice() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" }, "b": { "$ref": "#/$defs/b" } },
        "required": ["a"], "$defs": { "b": { "anyOf": [{ "type": "null" }, { "const": "x" }] } } });
    let complaint = |value: Value| Schema { root: &schema }.complaint(&value);
    assert_eq!(complaint(json!({ "a": 1, "b": null })), None);
    assert_eq!(complaint(json!({ "a": 1, "b": "x" })), None);
    for wrong in
        [json!({ "b": "x" }), json!({ "a": "1" }), json!({ "a": 1, "b": "y" }), json!({ "a": 1, "c": 1 }), json!(1)]
    {
        assert!(complaint(wrong.clone()).is_some(), "{wrong}");
    }
}

#[test]
fn every_command_has_its_schema() {
    let bug = Bug::new("python");
    let all: Value = serde_json::from_str(&bug.ok(&["schema"])).unwrap();
    let names: BTreeSet<&str> = all["commands"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, CATALOGUE.iter().map(|entry| entry.name).collect());
    for entry in CATALOGUE {
        let own = &all["commands"][entry.name];
        assert_eq!(own["arguments"]["type"], "object", "{}", entry.name);
        let told = if matches!(entry.run, Run::Bare(_)) { "prints" } else { "result" };
        let schema = &own[told];
        let says = ["type", "oneOf", "anyOf", "$ref"].iter().any(|word| !schema[*word].is_null());
        assert!(says && schema["type"] != "null", "{}: {schema}", entry.name);
    }
    // It fits its own, and of one command it is that one alone.
    fits(&all["commands"]["schema"]["prints"], &all, "schema");
    let one: Value = serde_json::from_str(&bug.ok(&["schema", "p"])).unwrap();
    assert_eq!(one["commands"].as_object().unwrap().keys().collect::<Vec<_>>(), ["print"]);
    assert_eq!(one["commands"]["print"], all["commands"]["print"]);
}

/// Gives commands and holds each reply against its schema.
struct Checked<'a> {
    bug: &'a Bug,
    all: Value,
}

impl Checked<'_> {
    #[track_caller]
    fn replies(&self, words: &[&str]) -> Value {
        let typed: Vec<&str> = std::iter::once("--json").chain(words.iter().copied()).collect();
        let run = self.bug.run(&typed);
        let reply = run.json();
        fits(&self.all["reply"], &reply, &run.words);
        if reply["ok"] == true {
            let name = bugeye::commands::find(words[0]).unwrap().name;
            fits(&self.all["commands"][name]["result"], &reply["result"], &run.words);
        }
        reply
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) {
        let reply = self.replies(words);
        assert_eq!(reply["ok"], true, "{words:?}: {reply}");
    }
}

fn real_replies_fit(language: &str, fixture: &str) {
    let bug = Bug::new(language);
    let all: Value = serde_json::from_str(&bug.ok(&["schema"])).unwrap();
    let checked = Checked { bug: &bug, all };
    let (program, body) = (program(fixture), at(fixture, "body"));
    checked.ok(&["break", &body, "--if", "i > 1"]);
    checked.ok(&["start", &program, "--name", "one"]);
    for words in [
        &["continue"][..],
        &["status"],
        &["sessions"],
        &["breaks"],
        &["context"],
        &["backtrace"],
        &["locals"],
        &["args"],
        &["threads"],
        &["print", "-e", "i", "-e", "nonsense"],
        &["print", "i", "--type"],
        &["eval", "i + 1"],
        &["set", "i", "3"],
        &["source"],
        &["modules"],
        &["up"],
        &["down"],
        &["next"],
        &["catch"],
        &["watch"],
        &["unbreak", "--all"],
        &["output", "--all"],
        &["raw", "i"],
    ] {
        let reply = checked.replies(words);
        assert!(
            reply["ok"] == true || reply["error"]["kind"] == "unsupported" || words[0] == "raw",
            "{words:?}: {reply}"
        );
    }
    checked.ok(&["continue"]);
    assert_eq!(checked.replies(&["next"])["error"]["kind"], "wrong_state");
    assert_eq!(checked.replies(&["status", "-s", "none"])["error"]["kind"], "not_found");
    checked.ok(&["trace", "--at", &format!("{body}: i"), "--", &program]);
    for words in [
        &["configs"][..],
        &["config"],
        &["daemon", "status"],
        &["completions", "bash"],
        &["doctor"],
        &["trust", "--list"],
    ] {
        checked.replies(words);
    }
    // Lines without an envelope, and parts of a stream.
    let lines = |text: &str| text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).collect::<Vec<_>>();
    let of = |name: &str, what: &str| checked.all["commands"][name][what].clone();
    let events = lines(&bug.ok(&["events", "--json"]));
    assert!(events.len() > 20);
    events.iter().for_each(|event| fits(&of("events", "prints"), event, "events"));
    let hits = lines(&bug.ok(&["trace", "--jsonl", "--at", &format!("{body}: i"), "--", &program]));
    assert_eq!((hits.len(), &hits[5]["end"]["total"]), (6, &json!(5)));
    hits.iter().for_each(|hit| fits(&of("trace", "part"), hit, "trace --jsonl"));
    let replies = lines(&bug.ok(&["--json", "do", "status; sessions"]));
    assert_eq!(replies.len(), 2);
    replies.iter().for_each(|reply| fits(&of("do", "prints"), reply, "do"));
    bug.ok(&["start", &program]);
    let follower = bug.spawn(&["--json", "output", "--follow"]);
    bug.ok(&["continue"]);
    let followed = lines(&follower.wait().stdout);
    let (last, parts) = followed.split_last().unwrap();
    fits(&checked.all["reply"], last, "output --follow");
    parts.iter().for_each(|part| fits(&of("output", "part"), part, "output --follow"));
}

#[test]
fn replies_under_debugpy_fit_their_schema() {
    real_replies_fit("python", "python/loop.py");
}

#[test]
fn replies_under_lldb_fit_their_schema() {
    real_replies_fit("c", "c/loop_basic.c");
}

/// nu, fetched once from npm.
fn nushell() -> PathBuf {
    const VERSION: &str = "0.115.1";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("nushell-{VERSION}"));
    let nu = folder.join("node_modules/.bin/nu");
    if !folder.join("done").exists() {
        let done = Command::new("npm")
            .args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"])
            .arg(&folder)
            .arg(format!("nushell@{VERSION}"))
            .output()
            .unwrap();
        assert!(done.status.success() && nu.exists(), "nushell: {}", String::from_utf8_lossy(&done.stderr));
        std::fs::write(folder.join("done"), "").unwrap();
    }
    nu
}

/// How a shell is asked whether it can read a file, without running it.
fn reads(shell: &str, file: &str) -> Option<Command> {
    let there = |name: &str| {
        let path = std::env::var_os("PATH").unwrap();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    };
    let with = |name: &str, args: &[&str]| {
        let mut command = Command::new(name);
        command.args(args).arg(file);
        command
    };
    Some(match shell {
        // Every machine that builds this has it.
        "bash" => with("bash", &["-n"]),
        "nushell" => {
            let mut command = Command::new(nushell());
            command.args(["--no-config-file", "--no-history", "-c", &format!("source {file}; print read")]);
            command
        }
        "zsh" if there("zsh") => with("zsh", &["-n"]),
        "fish" if there("fish") => with("fish", &["--no-execute"]),
        "elvish" if there("elvish") => with("elvish", &["-norc", "-compileonly"]),
        _ => return None,
    })
}

#[test]
fn every_shell_has_its_completions() {
    let bug = Bug::new("python");
    for shell in ["bash", "zsh", "fish", "powershell", "elvish", "nushell"] {
        let script = bug.ok(&["completions", shell]);
        assert!(script.lines().count() > 100, "{shell}: {script}");
        for entry in CATALOGUE {
            assert!(script.contains(entry.name), "{shell} knows no {}", entry.name);
        }
        let file = bug.write(&format!("completions.{shell}.nu"), &script);
        if let Some(mut command) = reads(shell, &file) {
            let done = command.output().unwrap();
            let said = [done.stdout, done.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            assert!(done.status.success() && !said.contains("rror"), "{shell}: {said}");
        }
    }
    assert_eq!(bug.ok(&["completions", "nu"]), bug.ok(&["completions", "nushell"]));
    // A script that is none would be noticed.
    let broken = bug.write("broken.nu", "( { [\n");
    for shell in ["bash", "nushell"] {
        let done = reads(shell, &broken).unwrap().output().unwrap();
        assert!(!done.status.success(), "{shell} reads anything");
    }
}

#[test]
fn the_manual_has_every_command() {
    let page = Bug::new("python").ok(&["man"]);
    has(&page, &[".TH bugeye 1", "\\-\\-session"]);
    for entry in CATALOGUE {
        assert!(page.contains(&entry.name.replace('-', "\\-")), "{}", entry.name);
    }
}
