//! A program gets the surroundings of the client that started it, never the daemon's.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use super::{NATIVE, PYTHON, Side};
use crate::support::fixtures::program;
use crate::support::{Bug, has, lacks};

/// What the fixture printed about its surroundings.
fn printed(bug: &Bug, words: &[&str]) -> String {
    let words: Vec<&str> = ["--json", "run"].iter().copied().chain(words.iter().copied()).collect();
    let run = bug.run(&words);
    assert_eq!(run.code, 0, "{run}");
    run.json()["result"]["output"]["stdout"].as_str().unwrap_or_else(|| panic!("{run}")).to_string()
}

fn surroundings(side: &Side, fixture: &str) {
    let mut bug = side.bug();
    // The daemon is started with other surroundings than the commands have later.
    bug.env = vec![("BUGEYE_FIXTURE".into(), "the daemon's".into()), ("HOME".into(), "/nonexistent".into())];
    bug.ok(&["daemon", "start"]);
    bug.env = vec![("HOME".into(), "/tmp".into())];
    let program = program(fixture);
    let text = printed(&bug, &[&program, "--", "a b", "--json", "-x", ""]);
    has(&text, &["BUGEYE_FIXTURE=(unset)\n", "HOME=/tmp\n", "argv[1]=a b\n", "argv[2]=--json\n", "argv[3]=-x\n"]);
    has(&text, &[&format!("cwd={}\n", bug.cwd.display())]);

    let folder = fs::canonicalize(bug.home()).unwrap();
    let text = printed(
        &bug,
        &[&program, "--env", "BUGEYE_FIXTURE=x=y z", "--env", "HOME=/elsewhere", "--cwd", folder.to_str().unwrap()],
    );
    has(&text, &["BUGEYE_FIXTURE=x=y z\n", "HOME=/elsewhere\n", &format!("cwd={}\n", folder.display())]);
    bug.env = vec![("BUGEYE_FIXTURE".into(), "the client's".into())];
    has(&printed(&bug, &[&program]), &["BUGEYE_FIXTURE=the client's\n"]);

    // The mask of the client, through a shell that has it.
    for mask in ["027", "077"] {
        let words = format!("umask {mask}; exec \"$0\" --json run \"$1\"");
        let mut command = Command::new("sh");
        command.args(["-c", &words, env!("CARGO_BIN_EXE_bugeye"), &program]);
        let output = command.current_dir(&bug.cwd).env("BUGEYE_HOME", bug.home()).output().unwrap();
        has(&String::from_utf8(output.stdout).unwrap(), &[&format!("umask={mask}\\n")]);
    }
    // A restart is started the way it was started.
    bug.ok(&["start", &program, "--env", "BUGEYE_FIXTURE=kept"]);
    bug.env.clear();
    has(&bug.ok(&["restart", "--run"]), &["BUGEYE_FIXTURE=kept"]);
}

#[test]
fn surroundings_under_lldb() {
    surroundings(&NATIVE, "c/env.c");
}

#[test]
fn surroundings_under_debugpy() {
    surroundings(&PYTHON, "python/env.py");
}

/// A program is found on the client's PATH, and so is an interpreter.
#[test]
fn the_path_is_the_clients() {
    let mut bug = Bug::new("c");
    bug.ok(&["daemon", "start"]);
    let bin = bug.home().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy(program("c/env.c"), bin.join("my-own-program")).unwrap();
    bug.run(&["run", "--", "my-own-program"]).fails(3, "my-own-program");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    bug.env = vec![("PATH".into(), path)];
    has(&bug.ok(&["run", "--", "my-own-program", "one"]), &["argv[1]=one"]);
    // A Python of the client's own choice, told by what it calls itself.
    let python = bin.join("python3");
    fs::write(&python, "#!/bin/sh\nCHOSEN=yes exec /usr/bin/env -u PYTHONHOME \"$REAL\" \"$@\"\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let real = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().unwrap();
    bug.env.push(("REAL".into(), String::from_utf8(real.stdout).unwrap().trim().to_string()));
    let script = bug.write("which.py", "import os\nprint('chosen', os.environ.get('CHOSEN'))\n");
    let text = bug.ok(&["run", "--", "python3", &script]);
    has(&text, &["chosen yes"]);
    lacks(&text, &["chosen None"]);
}
