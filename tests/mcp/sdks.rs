//! The same walk with each client: tools listed, a program run to a breakpoint and on, a value, a mistake, the end.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::pipe::{NEW_ERA, Pipe};
use crate::support::fixtures::at;
use crate::support::{Bug, has};

/// Where a client is that `scripts/clients` installed.
pub fn client(name: &str) -> &'static Path {
    static CLIENTS: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    let clients = CLIENTS.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/clients");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        let done = Command::new(script).env("CARGO_TARGET_DIR", target).output().unwrap();
        assert!(done.status.success(), "no clients: {}", String::from_utf8_lossy(&done.stderr));
        let list = String::from_utf8(done.stdout).unwrap();
        let pairs = list.lines().map(|line| line.split_once(' ').unwrap());
        pairs.map(|(name, path)| (name.to_string(), PathBuf::from(path))).collect()
    });
    clients.get(name).unwrap_or_else(|| panic!("scripts/clients has no {name}"))
}

/// A file beside this one.
pub fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp").join(name)
}

/// A client's output. It gets the surroundings that a command of this test gets, and a home of its own.
#[track_caller]
pub fn output(bug: &Bug, program: &Path, words: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(words).current_dir(&bug.cwd).stdin(Stdio::null());
    for (name, value) in bug.command(&[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let done = command.env("HOME", bug.home()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(done.stdout).unwrap(), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{} {words:?}: {}\n{stdout}{stderr}", program.display(), done.status);
    stdout
}

pub const NAMES: [&str; 11] = [
    "debug_run",
    "debug_trace",
    "debug_break",
    "debug_continue",
    "debug_inspect",
    "debug_print",
    "debug_eval",
    "debug_input",
    "debug_sessions",
    "debug_do",
    "debug_setup",
];

pub fn walked(report: &str, version: &str, named: bool) {
    let report: Value = serde_json::from_str(report).unwrap();
    assert_eq!(report["version"], version, "{report}");
    // A client that is told the version beforehand asks for no greeting, and so hears no name.
    assert_eq!(report["server"], if named { json!("bugeye") } else { Value::Null }, "{report}");
    assert_eq!(report["tools"], json!(NAMES), "{report}");
    let text = |name: &str| {
        assert_eq!(report[name]["error"], name == "unknown", "{name}: {report}");
        report[name]["text"].as_str().unwrap()
    };
    has(
        text("stop"),
        &["stopped: breakpoint 1 (hit 1) in work loop.py:7", "> 7         total += i", "i=0  n=5  total=0"],
    );
    has(text("next"), &["stopped: breakpoint 1 (hit 2) in work loop.py:7", "changed: i=1 (was 0)"]);
    assert_eq!(text("eval"), "total * 100 + i = 1");
    has(text("unknown"), &["there is no tool debug_walk", "debug_run"]);
    assert_eq!(text("end"), "s1 ended");
    has(text("left"), &["no sessions"]);
}

fn walk_in_python(generation: &str, mode: &str, version: &str, named: bool) {
    let bug = Bug::new("python");
    let (file, place) = (script("client.py"), at("python/loop.py", "body"));
    let words = [file.to_str().unwrap(), mode, env!("CARGO_BIN_EXE_bugeye"), &place];
    walked(&output(&bug, client(generation), &words), version, named);
}

fn walk_in_typescript(mode: &str, version: &str) {
    let bug = Bug::new("python");
    let (file, place) = (script("client.mjs"), at("python/loop.py", "body"));
    let folder = client("typescript").to_str().unwrap();
    let words = [file.to_str().unwrap(), folder, mode, env!("CARGO_BIN_EXE_bugeye"), &place];
    walked(&output(&bug, Path::new("node"), &words), version, true);
}

#[test]
fn python_asks_which_era_it_is() {
    walk_in_python("python", "auto", NEW_ERA, true);
}

#[test]
fn python_with_a_handshake() {
    walk_in_python("python", "legacy", "2025-11-25", true);
}

#[test]
fn python_without_any_greeting() {
    walk_in_python("python", NEW_ERA, NEW_ERA, false);
}

#[test]
fn python_of_the_generation_before() {
    walk_in_python("python-v1", "v1", "2025-11-25", true);
}

#[test]
fn typescript_asks_which_era_it_is() {
    walk_in_typescript("auto", NEW_ERA);
}

#[test]
fn typescript_that_takes_nothing_but_the_new_era() {
    walk_in_typescript(NEW_ERA, NEW_ERA);
}

#[test]
fn typescript_with_a_handshake() {
    walk_in_typescript("legacy", "2025-11-25");
}

#[test]
fn typescript_of_the_generation_before() {
    walk_in_typescript("v1", "2025-11-25");
}

/// `--strict` fails if a schema is one that some model's API would refuse.
#[test]
fn the_inspector_lists_and_calls() {
    let bug = Bug::new("python");
    let inspect = |words: &[&str]| {
        let server = ["--cli", env!("CARGO_BIN_EXE_bugeye"), "mcp"];
        let home = format!("BUGEYE_HOME={}", bug.home().display());
        let words: Vec<&str> = server.iter().copied().chain(["-e", &home]).chain(words.iter().copied()).collect();
        serde_json::from_str::<Value>(&output(&bug, client("inspector"), &words)).unwrap()
    };
    let list = inspect(&["--method", "tools/list", "--strict"]);
    let names: Vec<&str> =
        list["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, NAMES);
    let place = format!("at=[\"{}: i, total\"]", at("python/loop.py", "body"));
    let call = ["--method", "tools/call", "--tool-name", "debug_trace", "--tool-arg"];
    let call: Vec<&str> = call.into_iter().chain([r#"command=["python3","loop.py"]"#, &place]).collect();
    let answer = inspect(&call);
    assert_eq!(answer["isError"], false, "{answer}");
    has(
        answer["content"][0]["text"].as_str().unwrap(),
        &["5 hits", "5 i=4 total=6", "exited: code 0", "output: sum=10"],
    );
}

#[test]
fn both_eras_over_a_plain_pipe() {
    let bug = Bug::new("python");
    let mut pipe = Pipe::stateless(&bug);
    let answer = pipe.ask("server/discover", json!({}));
    let result = &answer["result"];
    let versions = result["supportedVersions"].as_array().unwrap_or_else(|| panic!("no versions: {answer}"));
    assert!(versions.contains(&json!(NEW_ERA)) && versions.contains(&json!("2025-06-18")), "{answer}");
    assert_eq!(result["resultType"], "complete", "{answer}");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "bugeye", "{answer}");
    assert!(result["instructions"].as_str().is_some_and(|text| text.contains("debug_trace")), "{answer}");
    let list = pipe.ask("tools/list", json!({}))["result"].take();
    assert!(list["ttlMs"].is_u64() && list["cacheScope"].is_string() && list["resultType"] == "complete", "{list}");
    has(&pipe.ok("debug_sessions", json!({})), &["no sessions"]);

    // A version that does not exist is told with those that do; the connection goes on.
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "1999-01-01" });
    let answer = pipe.ask("tools/list", json!({ "_meta": meta }));
    assert_eq!(answer["error"]["code"], -32022, "{answer}");
    assert!(answer["error"]["data"]["supported"].as_array().unwrap().contains(&json!(NEW_ERA)), "{answer}");
    has(&pipe.ok("debug_sessions", json!({})), &["no sessions"]);

    // An older handshake is answered with its own version, one that is unknown with one that there is.
    for (asked, agreed) in [("2024-11-05", "2024-11-05"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25")] {
        let mut pipe = Pipe::bare(&bug, &bug.cwd);
        let hello = json!({
            "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "pipe", "version": "1" }
        });
        let answer = pipe.ask("initialize", hello);
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{answer}");
    }
}
