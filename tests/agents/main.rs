//! Real coding agents from npm call Bugeye's tools: what the debugger says reaches the model.
//!
//! The model is the test's own (`model.rs`), on loopback; the agents get a new home, a key that is none, and no other way
//! out. Nothing of them is left afterwards.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

#[path = "../support/mod.rs"]
mod support;

mod carrier;
mod debugged;
mod dialects;
mod drivers;
mod hooks;
mod model;
mod tap;

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use model::{Model, Request, Turn};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use support::{Bug, agents, has, lacks, until};

/// An agent that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(90);

const PROGRAM: &str = include_str!("../fixtures/skill/average.py");

const SKILL: &str = include_str!("../../plugin/skills/bugeye/SKILL.md");

/// The tools that `bugeye mcp` has.
const TOOLS: [&str; 11] =
    ["run", "trace", "break", "continue", "inspect", "print", "eval", "input", "sessions", "do", "setup"];

/// Its model is ours; it asks nobody for plugins, updates or a person's leave, and tells nobody.
const SETTINGS_OF_CODEX: &str = r#"
model = "none"
model_provider = "test"
approval_policy = "never"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[features]
plugins = false
apps = false

[analytics]
enabled = false

[model_providers.test]
name = "test"
base_url = "URL/v1"
wire_api = "responses"
supports_websockets = false
env_key = "TEST_KEY"

"#;

/// A new home for an agent, with a project in it.
struct World {
    bug: Bug,
    home: PathBuf,
    project: PathBuf,
}

/// How an agent went.
struct Went {
    code: Option<i32>,
    output: String,
    took: Duration,
}

impl World {
    fn new() -> Self {
        let bug = Bug::new("python");
        let (home, project) = (bug.home().join("agent"), bug.home().join("project"));
        for folder in [home.join("codex"), project.clone(), bug.home().join("config")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(project.join("average.py"), PROGRAM).unwrap();
        fs::write(bug.home().join("config/config.toml"), "[mcp]\ngrace_secs = 0\n").unwrap();
        Self { bug, home, project }
    }

    fn home_of_bugeye(&self) -> &str {
        self.bug.home().to_str().unwrap()
    }

    /// An agent in the project, with nothing of the caller's but the PATH, on which `bugeye` is.
    fn agent(&self, name: &str, model: &Model) -> Command {
        let bugeye = Path::new(env!("CARGO_BIN_EXE_bugeye")).parent().unwrap();
        let path = format!("{}:{}", bugeye.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new(agents::program(name));
        command.current_dir(&self.project).env_clear().env("PATH", path).env("HOME", &self.home);
        command.env("BUGEYE_HOME", self.bug.home()).env("TMPDIR", &self.home);
        // Copilot unpacks itself where it finds nothing: 235 MB, once for all tests.
        command.env("COPILOT_PKG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("copilot"));
        // Whatever it has to say to others than the model, it says to the model.
        for proxy in ["HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"] {
            command.env(proxy, model.url()).env("NO_PROXY", "127.0.0.1");
        }
        command
    }

    fn claude(&self, model: &Model, words: &[&str]) -> Went {
        let mut command = self.agent("claude", model);
        command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "none");
        command.env("CLAUDE_CONFIG_DIR", self.home.join("claude"));
        command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
        if !words.contains(&"--strict-mcp-config") {
            // Told in full rather than by name.
            command.env("ENABLE_TOOL_SEARCH", "false");
        }
        command.args(["-p", "Why is the average wrong?"]).args(words);
        went(command)
    }

    /// Codex gives servers few variables of its own; what is in `config` is the user's.
    fn codex(&self, model: &Model, config: &str) -> Went {
        let settings = SETTINGS_OF_CODEX.replace("URL", &model.url()) + config;
        fs::write(self.home.join("codex/config.toml"), settings).unwrap();
        let mut command = self.agent("codex", model);
        command.env("CODEX_HOME", self.home.join("codex")).env("TEST_KEY", "none");
        command.args(["exec", "--skip-git-repo-check", "Why is the average wrong?"]);
        went(command)
    }

    /// Sessions went with their client; no process of the agent, its server or a debugger is there, but the daemon.
    fn nothing_is_left(&self) {
        until("only the daemon is left", || {
            let left = self.bug.processes();
            if left.len() == 1 && left[0].1.contains("daemon") { Ok(()) } else { Err(format!("{left:?}")) }
        });
        lacks(&self.bug.ok(&["sessions"]), &["average"]);
    }
}

/// Runs an agent to its end, or ends it and all of its group.
fn went(mut command: Command) -> Went {
    let started = Instant::now();
    let output = tempfile::tempfile().unwrap();
    command.stdin(Stdio::null()).stdout(output.try_clone().unwrap()).stderr(output.try_clone().unwrap());
    let mut child = command.process_group(0).spawn().unwrap();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if started.elapsed() > LIMIT {
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            let _ = child.wait();
            break None;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let text = read_all(output);
    Went { code: status.and_then(|status| status.code()), output: text, took: started.elapsed() }
}

fn read_all(mut file: fs::File) -> String {
    use std::io::{Read as _, Seek as _};
    let mut text = String::new();
    file.rewind().unwrap();
    file.read_to_string(&mut text).unwrap();
    text
}

/// What the model does: stops before the average is returned, and looks at what is missing.
fn debugging(prefix: &str) -> [Turn; 3] {
    let run = json!({"command": ["python3", "average.py"], "break": ["average.py:5"]});
    let eval = json!({"expressions": ["total", "values[count - 1]"]});
    [
        Turn::call(format!("{prefix}debug_run"), run),
        Turn::call(format!("{prefix}debug_print"), eval),
        Turn::text("The last value is not in the sum."),
    ]
}

/// The requests of a run that went well: the turns' own, and each had the answer to the one before.
#[track_caller]
fn debugged(went: &Went, model: &Model, turns: usize) -> Vec<Request> {
    let requests = model.requests();
    let last = requests.last().map(|request| format!("{:?}", request.answers())).unwrap_or_default();
    assert_eq!(went.code, Some(0), "{}\nthe model knew: {last}", went.output);
    has(&went.output, &["The last value is not in the sum."]);
    assert_eq!(requests.len(), turns, "the model knew: {last}");
    let sessions =
        requests.iter().map(|request| request.header("x-claude-code-session-id").or(request.header("session-id")));
    let sessions: Vec<&str> = sessions.map(|session| session.expect("a request names its session")).collect();
    assert!(sessions.iter().all(|session| *session == sessions[0]), "{sessions:?}");
    assert!(model.others().is_empty(), "it would speak to others: {:?}", model.others());
    let answers = requests[turns - 1].answers();
    let [stop, values] = &answers[answers.len() - 2..] else { panic!("{answers:?}") };
    assert_eq!(&requests[turns - 2].answers()[answers.len() - 2], stop, "the stop came at once");
    assert!(!stop.is_error && !values.is_error, "{answers:?}");
    has(&stop.text, &["stopped: breakpoint", " in average average.py:5", ">5     return total / count"]);
    has(&stop.text, &["locals: count=4  i=2  total=12  values=[2, 4, 6, 8]", "stack: average < <module> average.py:8"]);
    has(&values.text, &["total = 12\nvalues[count - 1] = 8"]);
    eprintln!("{} requests in {:?}", requests.len(), went.took);
    requests
}

/// Each tool of `bugeye mcp` is offered, with what it takes.
#[track_caller]
fn offers_all(request: &Request, prefix: &str) {
    let tools = request.tools();
    for name in TOOLS {
        let name = format!("{prefix}debug_{name}");
        let tool = tools.iter().find(|(tool, _)| *tool == name);
        let (_, schema) = tool.unwrap_or_else(|| panic!("no {name} in {:?}", tools.iter().map(|tool| &tool.0)));
        assert!(schema["properties"].as_object().is_some_and(|given| !given.is_empty()), "{name}: {schema}");
    }
}

/// The MCP entry, as most agents have it.
fn entry(world: &World) -> Value {
    let env = json!({"BUGEYE_HOME": world.home_of_bugeye()});
    json!({"mcpServers": {"bugeye": {"command": env!("CARGO_BIN_EXE_bugeye"), "args": ["mcp"], "env": env}}})
}

#[test]
fn claude_code_debugs_with_an_entry_on_its_command_line() {
    let world = World::new();
    let file = world.bug.write("mcp.json", &entry(&world).to_string());
    // It tells the model names only; what a tool takes is asked for.
    let search = json!({"query": "select:mcp__bugeye__debug_run,mcp__bugeye__debug_print", "max_results": 5});
    let turns = std::iter::once(Turn::call("ToolSearch", search)).chain(debugging("mcp__bugeye__"));
    let model = Model::scripted(turns);
    let words = ["--mcp-config", &file, "--strict-mcp-config", "--allowedTools", "mcp__bugeye"];
    let went = world.claude(&model, &words);
    let requests = debugged(&went, &model, 4);
    let names = TOOLS.map(|name| format!("\nmcp__bugeye__debug_{name}\n"));
    has(&requests[0].text(), &names.each_ref().map(String::as_str));
    has(&requests[0].text(), &["## bugeye\nA real debugger."]);
    world.nothing_is_left();
}

/// The user has said yes to the project's server, as Claude Code asks when it is first seen.
const YES_OF_CLAUDE: &str = r#"{"enabledMcpjsonServers": ["bugeye"]}"#;

/// What is the user's to say of the server: where Bugeye is at home, in this test. Codex asks a person only about tools
/// that may destroy something, and none of those is needed to look.
fn allowed_by_codex(world: &World) -> String {
    let env = format!("env = {{ BUGEYE_HOME = {:?} }}", world.home_of_bugeye());
    format!("[mcp_servers.bugeye]\n{env}\n")
}

/// Sets Bugeye up in the project for an agent.
fn init(world: &World, agent: &str) {
    let mut command = world.bug.command(&["init", agent, "--project", "--yes"]);
    let bugeye = Path::new(env!("CARGO_BIN_EXE_bugeye")).parent().unwrap();
    let path = format!("{}:{}", bugeye.display(), std::env::var("PATH").unwrap());
    let done = command.current_dir(&world.project).env("PATH", path).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// What is said of the skill, so that a model knows when to read it.
fn skill_s_description() -> &'static str {
    SKILL.lines().find_map(|line| line.strip_prefix("description: ")).unwrap()
}

#[test]
fn claude_code_debugs_in_a_project_that_has_the_entry_and_the_skill() {
    let world = World::new();
    init(&world, "claude");
    let settings = world.bug.write("settings.json", YES_OF_CLAUDE);
    let model = Model::scripted(debugging("mcp__bugeye__"));
    let went = world.claude(&model, &["--settings", &settings, "--allowedTools", "mcp__bugeye"]);
    let requests = debugged(&went, &model, 3);
    offers_all(&requests[0], "mcp__bugeye__");
    has(&requests[0].text(), &["- bugeye: ", skill_s_description()]);
    world.nothing_is_left();
}

#[test]
fn claude_code_debugs_with_the_plugin() {
    let world = World::new();
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin");
    let model = Model::scripted(debugging("mcp__plugin_bugeye_bugeye__"));
    let words = ["--plugin-dir", plugin.to_str().unwrap(), "--allowedTools", "mcp__plugin_bugeye_bugeye"];
    let went = world.claude(&model, &words);
    let requests = debugged(&went, &model, 3);
    offers_all(&requests[0], "mcp__plugin_bugeye_bugeye__");
    has(&requests[0].text(), &["- bugeye:bugeye: ", skill_s_description()]);
    world.nothing_is_left();
}

#[test]
fn codex_debugs_with_an_entry_of_the_user_s() {
    let world = World::new();
    let bugeye = env!("CARGO_BIN_EXE_bugeye");
    let config = format!("{}command = {bugeye:?}\nargs = [\"mcp\"]\n", allowed_by_codex(&world));
    let model = Model::scripted(debugging("mcp__bugeye__"));
    let went = world.codex(&model, &config);
    let requests = debugged(&went, &model, 3);
    offers_all(&requests[0], "mcp__bugeye__");
    world.nothing_is_left();
}

#[test]
fn codex_debugs_in_a_project_that_has_the_entry_and_the_skill() {
    let world = World::new();
    init(&world, "codex");
    // The user trusts the project, or its configuration is not read.
    let trusted = format!("[projects.{:?}]\ntrust_level = \"trusted\"\n", world.project);
    let config = trusted + &allowed_by_codex(&world);
    let model = Model::scripted(debugging("mcp__bugeye__"));
    let went = world.codex(&model, &config);
    let requests = debugged(&went, &model, 3);
    offers_all(&requests[0], "mcp__bugeye__");
    has(&requests[0].text(), &["- bugeye: ", skill_s_description()]);
    world.nothing_is_left();
}
