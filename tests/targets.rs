//! Targets that are not started here, with the real debuggers' servers: processes by name, addresses, core files; and
//! adapters of the user's own.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use support::fixtures::{at, debugpy, program};
use support::{Bug, has, until};

/// A process of the test itself, ended with it.
struct Own(Child);

impl Own {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until something listens, without being its client.
fn until_it_listens(port: u16) {
    let (local, listens) = (format!(":{port:04X}"), Some("0A"));
    until("it listens", || {
        let table =
            ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap_or_default()).concat();
        let found = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).any(|line| {
            line.get(1).is_some_and(|address| address.ends_with(&local)) && line.get(3).copied() == listens
        });
        if found { Ok(()) } else { Err(format!("nothing at {port}")) }
    });
}

/// A copy of the program that spins, under a name that nothing else on this machine has.
fn spinner(bug: &Bug, name: &str) -> String {
    let path = bug.path(name);
    fs::copy(program("c/hang.c"), &path).unwrap();
    path
}

#[test]
fn attach_by_name() {
    let bug = Bug::new("c");
    let (one, other) = (spinner(&bug, "bug-spins-a"), spinner(&bug, "bug-spins-b"));
    let first = Own::start(&mut Command::new(&one));
    bug.run(&["attach", "bug-spins-c"]).fails(3, "no process of yours is called `bug-spins-c`");
    has(&bug.ok(&["attach", "bug-spins-a"]), &["stopped: attached", "hang.c:"]);
    has(&bug.ok(&["stop"]), &[&format!("process {} goes on", first.pid())]);
    let second = Own::start(Command::new(&one).arg("--second"));
    let several = bug.run(&["attach", "bug-spins-a"]);
    several.fails(1, "2 processes are called `bug-spins-a`");
    several.fails(1, &format!("bugeye attach {}: {one} --second", second.pid()));
    // What is on one command line alone is enough.
    has(&bug.ok(&["attach", "bug-spins-a --second"]), &["stopped: attached"]);
    has(&bug.ok(&["stop"]), &[&format!("process {} goes on", second.pid())]);
    // One that is not there yet; the old ones are not meant.
    bug.run(&["attach", "--wait-for", "bug-spins-b", "--wait", "300ms"]).fails(4, "bug-spins-b");
    let waiting = bug.spawn(&["attach", "--wait-for", "bug-spins-b"]);
    std::thread::sleep(Duration::from_millis(300));
    let third = Own::start(&mut Command::new(&other));
    let attached = waiting.wait();
    assert_eq!(attached.code, 0, "{attached}");
    has(&attached.stdout, &["stopped: attached", &third.pid()]);
    has(&bug.ok(&["restart"]), &["stopped: attached", &third.pid()]);
}

#[test]
fn attach_to_servers_of_gdb_s_protocol() {
    let bug = Bug::new("c");
    let hang = program("c/hang.c");
    for server in [&["gdbserver", "--once"][..], &["lldb-server-19", "gdbserver"]] {
        let port = free_port();
        let mut command = Command::new(server[0]);
        command.args(&server[1..]).arg(format!("127.0.0.1:{port}"));
        if server[0].starts_with("lldb") {
            command.arg("--");
        }
        let server = Own::start(command.arg(&hang));
        until_it_listens(port);
        let place = at("c/hang.c", "spin");
        let address = format!("localhost:{port}");
        has(&bug.ok(&["attach", &address]), &["stopped: attached", "via lldb-dap"]);
        has(&bug.ok(&["break", &place]), &["verified"]);
        has(&bug.ok(&["continue"]), &["stopped: breakpoint", "spin", "hang.c:"]);
        has(&bug.ok(&["print", "counter"]), &["counter = 0"]);
        bug.ok(&["unbreak", "--all"]);
        bug.ok(&["stop", "--kill"]);
        drop(server);
    }
}

#[test]
fn attach_to_a_python_program_that_listens() {
    let bug = Bug::new("python");
    let text = "import sys, time\nopen(sys.argv[1], 'w').close()\ncount = 0\nwhile True:\n    count += 1\n    time.sleep(0.005)\n";
    let (script, sign) = (bug.write("spins.py", text), bug.path("it-runs"));
    let port = free_port();
    let mut command = Command::new("python3");
    command
        .args(["-m", "debugpy", "--listen", &format!("127.0.0.1:{port}"), &script, &sign])
        .env("PYTHONPATH", debugpy());
    let _server = Own::start(&mut command);
    until("it runs", || fs::metadata(&sign).map(drop).map_err(|error| error.to_string()));
    let address = format!("127.0.0.1:{port}");
    has(&bug.ok(&["attach", &address]), &["stopped: ", "spins.py", "via debugpy"]);
    has(&bug.ok(&["break", &format!("{script}:5")]), &["verified"]);
    has(&bug.ok(&["continue"]), &["stopped: breakpoint 1"]);
    has(&bug.ok(&["print", "count >= 0"]), &["True"]);
    has(&bug.ok(&["detach"]), &[&format!("left to the server at {address}")]);
    // It listens on, for the next one.
    has(&bug.ok(&["attach", &address]), &["stopped: "]);
    has(&bug.ok(&["stop"]), &[&format!("left to the server at {address}")]);
}

#[test]
fn an_address_where_no_debugger_waits() {
    let bug = Bug::new("c");
    let port = free_port();
    bug.run(&["attach", &format!("localhost:{port}")]).fails(3, "nothing listens");
    let own = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = own.local_addr().unwrap().port();
    own.set_nonblocking(true).unwrap();
    bug.run(&["attach", &format!("127.0.0.1:{port}")]).fails(2, "no debugger that is known");
    assert!(own.accept().is_err(), "it must not be connected to");
    bug.run(&["attach", "192.0.2.1:5678"]).fails(2, "--adapter");
    bug.run(&["attach", "host:99999"]).fails(2, "65535");
    bug.run(&["attach"]).fails(2, "TARGET");
}

/// Where the kernel put the core file of a program that crashed in `folder`.
fn core_file(folder: &std::path::Path) -> String {
    let entries = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let is_core = |path: &std::path::PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with("core");
    let found = { entries }.find(is_core);
    found.expect("a core file").to_str().unwrap().to_string()
}

#[test]
fn a_core_file_is_looked_at() {
    let bug = Bug::new("c");
    bug.run(&["start", "--core", "no-such-core"]).fails(3, "no-such-core");
    bug.run(&["start", "--core", &program("c/crash.c")]).fails(1, "is no core file");
    let Some(core) = crashed(&bug, &[&program("c/crash.c")]) else { return };
    let crash = at("c/crash.c", "crash");
    has(&bug.ok(&["start", "--core", &core]), &["signal SIGSEGV", "third_value", &crash, "third=NULL"]);
    has(&bug.ok(&["backtrace"]), &["third_value", "main"]);
    has(&bug.ok(&["print", "first->value"]), &["first->value = 10"]);
    has(&bug.ok(&["locals", "--frame", "1"]), &["second"]);
    has(&bug.ok(&["up"]), &["main"]);
    for command in ["continue", "next", "step", "finish", "pause", "detach"] {
        bug.run(&[command]).fails(6, "a core file can't run");
    }
    has(&bug.ok(&["break", &at("c/crash.c", "crash")]), &["pending", "a core file can't run"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["status"]), &["stopped (signal SIGSEGV"]);
    has(&bug.ok(&["stop"]), &["ended"]);
    has(&bug.ok(&["run", &program("c/crash.c"), "--core", &core]), &["signal SIGSEGV", &crash]);
    bug.ok(&["stop"]);
    has(&bug.ok(&["run", &program("c/hang.c"), "--core", &core]), &["says that it is of", "what is shown is wrong"]);
    bug.run(&["start", "--core", &core, "--adapter", "debugpy"]).fails(6, "these can: lldb-dap");
    bug.run(&["start", "--core", &core, "--", "x"]).fails(2, "--core");
}

/// The core file of a program that crashed, in a folder of its own; none where the system puts them elsewhere.
fn crashed(bug: &Bug, command: &[&str]) -> Option<String> {
    let pattern = fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if !pattern.starts_with("core") {
        eprintln!("core files go elsewhere here: {pattern}");
        return None;
    }
    let folder = bug.home().join("crash");
    fs::create_dir(&folder).unwrap();
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited; exec \"$0\" \"$@\""]).args(command).current_dir(&folder);
    shell.env("GOTRACEBACK", "crash").stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    Some(core_file(&folder))
}

#[test]
fn go_at_an_address_and_in_a_core_file() {
    let bug = Bug::new("go");
    let every = program("go/every.go");
    let port = free_port();
    // The one that the adapter is, wherever it was found.
    let checks = bug.json(&["doctor"]);
    let delve = checks["adapters"].as_array().unwrap().iter().find(|check| check["adapter"] == "delve").unwrap();
    let mut command = Command::new(delve["path"].as_str().unwrap());
    let listen = format!("--listen=127.0.0.1:{port}");
    let _server = Own::start(command.args(["exec", &every, "--headless", &listen, "--", "loop"]));
    until_it_listens(port);
    has(&bug.ok(&["attach", &format!("localhost:{port}")]), &["stopped: attached", "via delve"]);
    has(&bug.ok(&["break", &at("go/every.go", "body")]), &["verified"]);
    has(&bug.ok(&["continue"]), &["stopped: breakpoint", "main.work", &at("go/every.go", "body")]);
    has(&bug.ok(&["print", "total"]), &["total = 0"]);
    bug.ok(&["unbreak", "--all"]);
    bug.ok(&["stop", "--kill"]);
    let Some(core) = crashed(&bug, &[&every, "throw"]) else { return };
    let place = at("go/every.go", "throw");
    has(&bug.ok(&["start", "--core", &core]), &["stopped: its core file was made in main.fail", &place, "via delve"]);
    has(&bug.ok(&["print", "why"]), &["boom"]);
    bug.run(&["continue"]).fails(6, "a core file can't run");
    bug.ok(&["stop"]);
}

/// debugpy, as somebody would describe it who has an adapter that is not known here: in three ways to speak.
fn described(bug: &Bug) {
    let adapter = debugpy().join("debugpy/adapter");
    let adapter = adapter.display();
    let text = format!(
        r#"
        [adapters.snake]
        command = ["python3", "{adapter}"]
        adapter_id = "debugpy"
        languages = ["python"]
        extensions = ["snake"]
        runs_in_terminal = true
        attach_runs = true
        ignored_exceptions = ["SystemExit"]
        catch = {{ raised = "raised", uncaught = "uncaught" }}
        [adapters.snake.launch]
        program = "{{program}}"
        args = "{{args}}"
        cwd = "{{cwd}}"
        env = "{{env}}"
        stopOnEntry = "{{stop_on_entry}}"
        console = "integratedTerminal"
        [adapters.snake.attach]
        processId = "{{pid}}"

        [adapters.snake-events]
        command = "python3"
        args = ["{adapter}"]
        languages = ["python"]
        launch = {{ program = "{{program}}", args = "{{args}}", cwd = "{{cwd}}", console = "internalConsole" }}

        [adapters.snake-socket]
        command = ["python3", "{adapter}", "--port", "{{port}}"]
        way = "listens"
        languages = ["python"]
        launch = {{ program = "{{program}}", args = "{{args}}", cwd = "{{cwd}}", console = "internalConsole" }}

        [adapters.nowhere]
        command = "no-such-adapter"
        languages = ["nothing"]
        launch = {{}}
        "#
    );
    fs::create_dir_all(bug.home().join("config")).unwrap();
    fs::write(bug.home().join("config/config.toml"), text).unwrap();
}

#[test]
fn an_adapter_of_one_s_own() {
    let bug = Bug::new("python");
    described(&bug);
    let text = "import sys\ndef add(a, b):\n    return a + b\nprint('sum', add(1, int(sys.argv[1])))\n\
                print('bad', file=sys.stderr)\nsys.exit(3)\n";
    let (script, plain) = (bug.write("add.snake", text), bug.write("add.py", text));
    // By the file's ending, as it is or behind its interpreter; a built-in adapter keeps its own endings.
    has(&bug.ok(&["run", &script, "--break", &format!("{script}:3"), "--", "41"]), &["add", "b=41", "via snake"]);
    has(&bug.ok(&["print", "a + b"]), &["a + b = 42"]);
    has(&bug.ok(&["set", "b", "1"]), &["b = 1"]);
    has(&bug.ok(&["continue"]), &["exited: code 3", "sum 2", "bad"]);
    bug.ok(&["stop"]);
    has(&bug.ok(&["run", "--stop-on-entry", "--", "python3", &script, "1"]), &["add.snake:1", "via snake"]);
    bug.ok(&["stop"]);
    has(&bug.ok(&["run", &plain, "--break", &format!("{plain}:3"), "--", "1"]), &["via debugpy"]);
    bug.ok(&["stop"]);
    for name in ["snake", "snake-events", "snake-socket"] {
        let words = ["run", &plain, "--adapter", name, "--break", &format!("{plain}:3"), "--", "2"];
        has(&bug.ok(&words), &["stopped: breakpoint", "b=2", &format!("via {name}")]);
        has(&bug.ok(&["finish"]), &["add.py:4"]);
        has(&bug.ok(&["eval", "add(3, 4)"]), &["7"]);
        bug.ok(&["unbreak", "--all"]);
        let end = bug.ok(&["continue"]);
        has(&end, &["sum 3"]);
        bug.ok(&["stop"]);
    }
    let spins = bug
        .write("spins.snake", "import sys, time\nopen(sys.argv[1], 'w').close()\nwhile True:\n    time.sleep(0.01)\n");
    let sign = bug.path("it-runs");
    let own = Own::start(Command::new("python3").args([&spins, &sign]));
    until("it runs", || fs::metadata(&sign).map(drop).map_err(|error| error.to_string()));
    has(&bug.ok(&["attach", &own.pid(), "--adapter", "snake"]), &["stopped: ", "via snake"]);
    bug.ok(&["stop"]);
    // What its table lacks is said.
    bug.run(&["attach", &own.pid(), "--adapter", "snake-events"]).fails(6, "has no `attach`");
    bug.run(&["start", &plain, "--adapter", "nowhere"]).fails(1, "PATH has no program `no-such-adapter`");
    let doctor = bug.run(&["doctor"]);
    has(&doctor.stdout, &["snake-socket", "nowhere"]);
    // An edit takes effect while the daemon runs; a mistake is told with its line.
    fs::write(
        bug.home().join("config/config.toml"),
        "[adapters.cow]\ncommand = \"moo\"\nlaunch = { p = \"{progam}\" }\n",
    )
    .unwrap();
    bug.run(&["start", &plain]).fails(2, "config.toml:3: there is no placeholder `{progam}`");
}

/// The tables of `docs/own-adapters.md`, in their order.
fn documented() -> Vec<String> {
    let page = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/own-adapters.md")).unwrap();
    page.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_string()).collect()
}

#[test]
fn the_documented_adapters_are_ones_that_can_be_read_and_the_first_two_run() {
    let mut bug = Bug::new("c");
    fs::create_dir_all(bug.home().join("config")).unwrap();
    let file = bug.home().join("config/config.toml");
    let tables = documented();
    assert!(tables.len() > 7, "{}", tables.len());
    for table in &tables {
        fs::write(&file, table).unwrap();
        bug.ok(&["config"]);
    }
    fs::write(&file, format!("{}\n{}", tables[0], tables[1])).unwrap();
    bug.env.push(("PYTHONPATH".into(), debugpy().to_str().unwrap().into()));
    let script = bug.write("add.snake", "def add(a, b):\n    return a + b\nprint(add(1, 2))\n");
    has(&bug.ok(&["run", &script, "--break", &format!("{script}:2")]), &["a=1  b=2", "via snake"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "output: 3"]);
    bug.ok(&["stop"]);
    let copy = bug.path("echo.bin");
    fs::copy(program("c/loop_stdin.c"), &copy).unwrap();
    let place = at("c/loop_stdin.c", "body");
    bug.ok(&["start", &copy, "--break", &place]);
    bug.ok(&["input", "3"]);
    bug.ok(&["input", "--eof"]);
    has(&bug.ok(&["continue"]), &["stopped: breakpoint", &place, "via my-lldb"]);
    has(&bug.ok(&["print", "acc"]), &["acc = 1"]);
    bug.ok(&["unbreak", "--all"]);
    has(&bug.ok(&["continue"]), &["exited: code 0", "output: "]);
}
