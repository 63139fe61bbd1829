//! Adapters that are missing, are no adapters, or are lost.

use rustix::process::Signal;

use crate::support::fixtures::{at, program};
use crate::support::{Bug, has, signal, until};
use crate::{next_command_works, refused, within};

fn configure(bug: &Bug, path: &str) {
    std::fs::create_dir_all(bug.home().join("config")).unwrap();
    bug.write(
        "config/config.toml",
        &format!("[adapters.lldb-dap]\npath = \"{path}\"\n[timeouts]\ninitialize_secs = 2\n"),
    );
}

#[test]
fn an_adapter_that_is_not_where_it_is_said_to_be() {
    let bug = Bug::new("c");
    let path = bug.path("nosuch-adapter");
    configure(&bug, &path);
    let run = refused(&bug, &["start", &program("c/exit_code.c")], 1, "nosuch-adapter");
    has(&run.stderr, &["lldb-dap"]);
    let text = bug.write("text", "hello");
    configure(&bug, &text);
    refused(&bug, &["start", &program("c/exit_code.c")], 1, "not an executable");
    configure(&bug, bug.home().to_str().unwrap());
    refused(&bug, &["start", &program("c/exit_code.c")], 1, "");
    std::fs::remove_file(bug.path("config/config.toml")).unwrap();
    next_command_works(&bug);
}

#[test]
fn an_adapter_that_is_installed_nowhere_is_named_with_the_way_to_get_it() {
    let mut bug = Bug::new("python");
    let adapters = bug.home().join("data/adapters");
    std::fs::remove_file(adapters.join("debugpy")).unwrap();
    let run = refused(&bug, &["start", "loop.py"], 1, "debugpy");
    has(&run.stderr, &["bugeye setup debugpy"]);
    bug.env.push(("PATH".into(), bug.path("empty")));
    let run = bug.run(&["start", "loop.py"]);
    assert!([1, 3].contains(&run.code), "{run}");
    has(&run.stderr, &["hint: "]);
    bug.env.clear();
    let run = bug.run(&["status"]);
    assert_eq!(run.code, 3, "{run}");
}

#[test]
fn what_is_no_adapter_is_found_out_at_once() {
    let bug = Bug::new("c");
    let printer = bug.write("printer", "#!/bin/sh\necho 'usage: printer FILE'\necho oh dear >&2\nsleep 30\n");
    let failing = bug.write("failing", "#!/bin/sh\necho 'error while loading shared libraries' >&2\nexit 127\n");
    for path in [&printer, &failing] {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    for (path, code, complaint) in [
        ("/bin/true", 5, "lldb-dap is gone"),
        ("/bin/false", 5, "exit code 1"),
        (&failing, 5, "error while loading shared libraries"),
        (&printer, 5, "usage: printer FILE"),
    ] {
        configure(&bug, path);
        let run = bug.run(&["start", &program("c/exit_code.c")]);
        run.fails(code, complaint);
        has(&run.stderr, &["hint: "]);
        within(&run, 3000);
    }
    // It hands back what it was sent: a request that is not done here, then our own refusal of it.
    configure(&bug, "/bin/cat");
    let run = bug.run(&["start", &program("c/exit_code.c")]);
    assert!([1, 4, 5].contains(&run.code), "{run}");
    has(&run.stderr, &["hint: "]);
    within(&run, 4000);
    std::fs::remove_file(bug.path("config/config.toml")).unwrap();
    next_command_works(&bug);
}

fn adapter_pid(bug: &Bug) -> i32 {
    let found = bug.processes().into_iter().find(|(_, line)| {
        line.split(' ').next().is_some_and(|word| word.contains("lldb-dap")) || line.contains("debugpy/adapter")
    });
    found.unwrap_or_else(|| panic!("no adapter: {:?}", bug.processes())).0
}

#[test]
fn an_adapter_that_is_killed_is_a_loss_and_is_called_one() {
    for (language, name, mark) in [("c", "c/loop_basic.c", "body"), ("python", "python/loop.py", "body")] {
        let bug = Bug::new(language);
        bug.ok(&["run", "--break", &at(name, mark), &program(name)]);
        signal(adapter_pid(&bug), Signal::KILL);
        until("the session is lost", || {
            let status = bug.run(&["status"]);
            if status.stdout.contains("lost") { Ok(()) } else { Err(status.to_string()) }
        });
        let run = refused(&bug, &["continue"], 5, "ended unexpectedly");
        has(&run.stderr, &["SIGKILL", "bugeye restart"]);
        refused(&bug, &["locals"], 5, "ended unexpectedly");
        has(&bug.ok(&["restart"]), &["held"]);
        bug.ok(&["stop", "--all"]);
    }
}

#[test]
fn an_adapter_that_is_killed_under_a_wait_answers_it() {
    let bug = Bug::new("c");
    bug.ok(&["run", "--wait", "0", &program("c/hang.c")]);
    let waiting = bug.spawn(&["await", "--timeout", "40"]);
    let also = bug.spawn(&["await", "--timeout", "40"]);
    until("both wait", || {
        let log = std::fs::read_to_string(bug.path("state/daemon.log")).unwrap_or_default();
        // Commands are written when they are over; a look at the state is enough to know that the daemon is awake.
        if log.is_empty() { Err("no log".into()) } else { Ok(()) }
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal(adapter_pid(&bug), Signal::KILL);
    for run in [waiting.wait(), also.wait()] {
        run.fails(5, "ended unexpectedly");
        within(&run, 5000);
    }
    next_command_works(&bug);
}
