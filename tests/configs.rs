//! Launch configurations of editors, with the real adapters: listed, started, and kept from running anything that the
//! user has not allowed.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::path::Path;

use support::{Bug, has};

const LAUNCH: &str = r#"{
    // The editor's own notes are passed over.
    "version": "0.2.0",
    "configurations": [
        {
            "name": "script", "type": "debugpy", "request": "launch", "program": "${workspaceFolder}/app.py",
            "args": ["${input:first}", "${env:SECOND}"], "env": { "GREETING": "hello", "REMOVED": null },
            "console": "internalConsole", "justMyCode": true, "cwd": "${workspaceFolder}/sub",
        },
        { "name": "current file", "type": "python", "request": "launch", "program": "${file}", "stopOnEntry": true },
        {
            "name": "built", "type": "cppdbg", "request": "launch", "program": "${workspaceFolder}/built/app",
            "args": ["one"], "environment": [{ "name": "COLOUR", "value": "red" }], "cwd": "${workspaceFolder}",
            "MIMode": "gdb", "setupCommands": [{ "text": "-enable-pretty-printing" }], "preLaunchTask": "build",
            "envFile": "${workspaceFolder}/settings.env", "stopAtEntry": false,
            "linux": { "args": ["linux"] }, "osx": { "args": ["linux"] }, "windows": { "args": ["windows"] },
        },
        {
            "name": "commands", "type": "lldb-dap", "request": "launch", "program": "${workspaceFolder}/built/app",
            "initCommands": ["platform shell touch ${workspaceFolder}/ran-by-debugger"],
        },
        { "name": "odd", "type": "chrome", "request": "launch", "program": "x" },
        { "name": "picked", "type": "cppdbg", "request": "attach", "processId": "${command:pickProcess}" },
        { "name": "setting", "type": "python", "request": "launch", "program": "${config:app.file}" },
    ],
    "compounds": [{ "name": "both", "configurations": ["script", "current file"] }],
    "inputs": [{ "id": "first", "type": "promptString", "default": "1", "description": "The first number" }],
}"#;

const TASKS: &str = r#"{
    "version": "2.0.0",
    "tasks": [
        { "label": "folder", "type": "shell", "command": "mkdir -p built && echo made >> ${workspaceFolder}/ran" },
        {
            "label": "build", "type": "process", "command": "cc", "args": ["-g", "-o", "built/app", "app.c"],
            "dependsOn": ["folder"],
        },
    ],
}"#;

const PROGRAM: &str = "import os, sys\nprint(sys.argv[1:], os.environ.get('GREETING'), os.environ.get('REMOVED'), os.path.basename(os.getcwd()))\n";

const NATIVE: &str = "#include <stdio.h>\n#include <stdlib.h>\nint main(int argc, char **argv) {\n    int count = argc;\n    \
    printf(\"%s %s %s %d\\n\", argv[1], getenv(\"COLOUR\"), getenv(\"FROM_FILE\"), count);\n    return 0;\n}\n";

fn workspace(bug: &Bug) -> String {
    let root = bug.home().join("project");
    for folder in [".vscode", "sub", ".zed"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
    write(".vscode/launch.json", LAUNCH);
    write(".vscode/tasks.json", TASKS);
    write(
        ".zed/debug.json",
        r#"[{ "label": "zed", "adapter": "Debugpy", "program": "$ZED_WORKTREE_ROOT/app.py", "args": ["z"] }]"#,
    );
    write("app.py", PROGRAM);
    write("app.c", NATIVE);
    write("settings.env", "# colours\nFROM_FILE=\"a file\"\n");
    root.to_str().unwrap().to_string()
}

#[test]
fn configurations_are_listed_and_started() {
    let mut bug = Bug::new("python");
    let root = workspace(&bug);
    bug.run(&["configs"]).fails(3, "no launch configurations");
    bug.cwd = Path::new(&root).join("sub");
    bug.env = vec![("SECOND".into(), "two".into()), ("REMOVED".into(), "still there".into())];
    let list = bug.ok(&["configs"]);
    has(&list, &["script: debugpy launch ${workspaceFolder}/app.py", "both: compound launch script, current file"]);
    has(&list, &["needs trust: runs: cc -g -o built/app app.c", "needs trust: reads: ${workspaceFolder}/settings.env"]);
    has(&list, &["zed: debugpy launch", "not trusted"]);
    has(&bug.ok(&["run", "--config", "script"]), &["['1', 'two'] hello None sub", "exited: code 0"]);
    bug.ok(&["stop"]);
    let words = ["run", "--config", "script", "--var", "first=9", "--env", "GREETING=hi", "--", "more"];
    has(&bug.ok(&words), &["['9', 'two', 'more'] hi"]);
    bug.ok(&["stop"]);
    has(&bug.ok(&["run", "--config", "zed"]), &["['z']"]);
    bug.ok(&["stop"]);
    // About the file in the editor: the user says which.
    bug.run(&["run", "--config", "current file"]).fails(2, "--var file=VALUE");
    has(&bug.ok(&["run", "--config", "current file", "--var", "file=../app.py"]), &["app.py:1"]);
    bug.ok(&["stop"]);
    bug.run(&["start", "--config", "scrpt"]).fails(3, "did you mean `script`");
    bug.run(&["start", "--config", "odd"]).fails(2, "no adapter `chrome`");
    bug.run(&["start", "--config", "picked"]).fails(6, "--var pickProcess=VALUE");
    bug.run(&["start", "--config", "picked", "--var", "pickProcess=999999"]).fails(3, "there is no process 999999");
    bug.run(&["start", "--config", "setting"]).fails(6, "--var app.file=VALUE");
    bug.run(&["start", "--config", "script", "x.py"]).fails(2, "--config");
    bug.run(&["start", "x.py", "--var", "a=b"]).fails(2, "--config");
}

#[test]
fn a_compound_starts_all_its_parts() {
    let mut bug = Bug::new("python");
    bug.cwd = workspace(&bug).into();
    let started = bug.ok(&["start", "--config", "both", "--var", "file=app.py"]);
    has(&started, &["s2", "started too: s1"]);
    has(&bug.ok(&["sessions"]), &["s1: held", "s2: "]);
    bug.ok(&["stop", "--all"]);
}

#[test]
fn nothing_is_run_before_it_is_trusted() {
    let mut bug = Bug::new("c");
    let root = workspace(&bug);
    bug.cwd = root.clone().into();
    let there = |name: &str| Path::new(&root).join(name).exists();
    let refused = bug.run(&["run", "--config", "built"]);
    refused.fails(1, "not trusted");
    refused.fails(1, "it runs: cc -g -o built/app app.c");
    refused.fails(1, "it reads: ${workspaceFolder}/settings.env");
    assert!(!there("ran") && !there("built"));
    has(&bug.ok(&["trust"]), &["runs: sh -c", "is not trusted", "bugeye trust --yes"]);
    bug.run(&["run", "--config", "built"]).fails(1, "not trusted");
    has(&bug.ok(&["trust", "--yes"]), &["is trusted with that"]);
    has(&bug.ok(&["trust", "--list"]), &[&root]);
    let place = format!("{root}/app.c:5");
    has(&bug.ok(&["run", "--config", "built", "--break", &place]), &["main", "app.c:5", "count=2"]);
    has(&bug.ok(&["continue"]), &["linux red a file 2", "exited: code 0"]);
    assert!(there("ran"));
    bug.ok(&["stop"]);
    // A build that fails says so, and nothing is started.
    fs::write(Path::new(&root).join("app.c"), "int main(void) { return x; }\n").unwrap();
    bug.run(&["run", "--config", "built"]).fails(1, "undeclared");
    fs::write(Path::new(&root).join("app.c"), NATIVE).unwrap();
    // One byte more, and it is trusted no longer.
    fs::write(Path::new(&root).join(".vscode/tasks.json"), format!("{TASKS} ")).unwrap();
    bug.run(&["run", "--config", "built"]).fails(1, "changed since");
    has(&bug.ok(&["configs"]), &["changed since it was trusted"]);
    has(&bug.ok(&["trust"]), &["has changed"]);
    // What tells the debugger something is left out, and said.
    has(&bug.ok(&["start", "--config", "commands"]), &["left out", "initCommands"]);
    bug.ok(&["stop"]);
    assert!(!there("ran-by-debugger"));
    bug.ok(&["trust", "--yes"]);
    bug.ok(&["start", "--config", "commands"]);
    bug.ok(&["stop"]);
    assert!(there("ran-by-debugger"), "it was allowed");
    has(&bug.ok(&["trust", "--remove"]), &["trusted no more"]);
    bug.run(&["trust", "--remove"]).fails(3, "is not trusted");
    bug.run(&["run", "--config", "built"]).fails(1, "not trusted");
}
