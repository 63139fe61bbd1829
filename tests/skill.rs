//! What the skill shows is so: every command on its pages is run, in order, on programs that are there, and answers what the
//! page says. Claude Code itself accepts the plugin.
//!
//! On a page, a block of `sh` must succeed; one of `console` has commands after `$ ` with their answers, in which `…` stands
//! for anything, and `# exit N` after a command for another code than 0; one of `mcp` has a call of a tool on each line. A
//! command in any other block fails the test.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't go on has failed; clippy.toml's leave for tests does not reach their helpers"
)]

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use support::{Bug, agents, fixtures, has};

/// A block that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The pages, each with a test of its own.
const PAGES: [&str; 4] = ["SKILL.md", "references/commands.md", "references/mcp.md", "references/recipes.md"];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn skill() -> PathBuf {
    root().join("plugin/skills/bugeye")
}

fn page(name: &str) -> String {
    fs::read_to_string(skill().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A block of code on a page.
struct Block {
    language: String,
    line: usize,
    lines: Vec<String>,
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in text.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(language)) => {
                open = Some(Block { language: language.trim().to_string(), line: index + 1, lines: Vec::new() });
            }
            (Some(block), None) => block.lines.push(line.to_string()),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// A folder with the programs that the pages name, and a home for Bugeye.
struct World {
    bug: Bug,
    folder: PathBuf,
}

impl World {
    fn new() -> Self {
        let bug = Bug::new("python");
        let folder = bug.home().join("project");
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(fixtures::folder("skill")).unwrap() {
            let (from, name) = entry.map(|entry| (entry.path(), entry.file_name().into_string().unwrap())).unwrap();
            fs::copy(from, folder.join(&name)).unwrap();
            if let Some(stem) = name.strip_suffix(".c") {
                let mut command = Command::new("cc");
                command.args(["-g", "-O0", "-pthread", "-Wall", "-o", stem, &name]).current_dir(&folder);
                assert!(command.status().unwrap().success(), "{name} can't be compiled");
            }
        }
        Self { bug, folder }
    }

    /// A command in that folder, with `bugeye` and `pytest` on its PATH.
    fn command(&self, program: &str) -> Command {
        let bugeye = Path::new(env!("CARGO_BIN_EXE_bugeye")).parent().unwrap();
        let (python, path) = (fixtures::pytest().join("bin"), std::env::var("PATH").unwrap());
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("BUGEYE_HOME", self.bug.home()).env_remove("BUGEYE_ADAPTER");
        command.env("PATH", format!("{}:{}:{path}", bugeye.display(), python.display()));
        command
    }

    /// What a piece of shell prints. It must end with this code.
    fn shell(&self, script: &str, code: i32) -> String {
        let path = self.bug.home().join("output");
        let output = fs::File::create(&path).unwrap();
        let mut command = self.command("bash");
        command.args(["-eu", "-o", "pipefail", "-c", script]).stdin(Stdio::null());
        command.stdout(output.try_clone().unwrap()).stderr(output).process_group(0);
        let (mut child, started) = (command.spawn().unwrap(), Instant::now());
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > LIMIT {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                panic!("took longer than {LIMIT:?}:\n{script}");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let text = fs::read_to_string(path).unwrap();
        assert_eq!(status.code(), Some(code), "{script}\n{text}");
        text
    }

    /// Runs every block of a page; answers how many commands there were.
    fn run(&self, name: &str) -> usize {
        let mut count = 0;
        let mut server = None;
        for block in blocks(&page(name)) {
            let place = format!("{name}:{}", block.line);
            match block.language.as_str() {
                "sh" => {
                    self.shell(&block.lines.join("\n"), 0);
                    count += block.lines.iter().filter(|line| line.contains("bugeye ")).count();
                }
                "console" => {
                    for piece in block.lines.join("\n").split("$ bugeye ").skip(1) {
                        let (words, expected) = piece.split_once('\n').unwrap_or((piece, ""));
                        let code = words.split_once("# exit ").map_or(0, |(_, code)| code.trim().parse().unwrap());
                        let text = self.shell(&format!("bugeye {words}"), code);
                        assert!(matches(expected.trim_end(), text.trim_end()), "{place}: bugeye {words}\n{text}");
                        count += 1;
                    }
                }
                "mcp" => {
                    for line in &block.lines {
                        let (tool, arguments) = line.split_once(' ').unwrap();
                        let server = server.get_or_insert_with(|| Server::start(self));
                        let result = server.call(tool, &serde_json::from_str(arguments).unwrap());
                        assert_ne!(result["isError"], true, "{place}: {line}\n{result}");
                        count += 1;
                    }
                }
                other => {
                    let shown = block.lines.iter().any(|line| line.contains("bugeye ") || line.contains("debug_"));
                    assert!(!shown, "{place}: a command in a block of {other:?}, which is not run");
                }
            }
        }
        count
    }
}

/// Whether a text is the expected one; `…` stands for anything within a line, or for any lines where it stands alone.
fn matches(expected: &str, text: &str) -> bool {
    let Some((first, rest)) = expected.split_once('…') else { return expected == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    let alone = first.is_empty() || first.ends_with('\n');
    let alone = alone && (rest.is_empty() || rest.starts_with('\n'));
    let end = if alone { text.len() } else { text.find('\n').unwrap_or(text.len()) };
    let cuts = text.char_indices().map(|(at, _)| at).chain([text.len()]).take_while(|at| *at <= end);
    cuts.into_iter().any(|at| matches(rest, &text[at..]))
}

/// `bugeye mcp`, spoken to line by line.
struct Server {
    child: Child,
    lines: Receiver<String>,
    calls: u64,
}

impl Server {
    fn start(world: &World) -> Self {
        let mut command = world.command(env!("CARGO_BIN_EXE_bugeye"));
        let mut child = command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let mut server = Self { child, lines, calls: 0 };
        let client = json!({"name": "test", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.ask("initialize", &hello);
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        server
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.recv_timeout(LIMIT).unwrap_or_else(|error| panic!("{method} {params}: {error}"));
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(result.is_object(), "{tool} is no tool");
        result
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_skill_s_own_commands_answer_as_it_says() {
    assert!(World::new().run("SKILL.md") >= 7);
}

#[test]
fn the_recipes_work() {
    assert!(World::new().run("references/recipes.md") >= 40);
}

#[test]
fn the_calls_of_tools_work() {
    assert!(World::new().run("references/mcp.md") >= 11);
}

#[test]
fn the_list_of_commands_has_nothing_to_run() {
    assert!(blocks(&page("references/commands.md")).is_empty());
}

#[test]
fn no_page_is_without_a_test_and_every_one_is_led_to() {
    let mut found = vec!["SKILL.md".to_string()];
    for entry in fs::read_dir(skill().join("references")).unwrap() {
        found.push(format!("references/{}", entry.unwrap().file_name().into_string().unwrap()));
    }
    found.sort();
    assert_eq!(found, PAGES);
    let text = page("SKILL.md");
    for page in &PAGES[1..] {
        has(&text, &[&format!("]({page})")]);
    }
}

#[test]
fn the_skill_is_short_and_says_what_it_is_for() {
    let text = page("SKILL.md");
    assert!(text.lines().count() <= 110, "{} lines", text.lines().count());
    assert!(text.len() / 4 < 2000, "{} tokens, about", text.len() / 4);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("---"));
    let head: Vec<(&str, &str)> = lines.map_while(|line| line.split_once(": ")).collect();
    let field = |wanted: &str| head.iter().find(|(name, _)| *name == wanted).expect("a field").1;
    assert_eq!(field("name"), "bugeye", "the folder's name");
    assert!(field("description").len() <= 1024 && !field("description").contains(": "));
    assert_eq!(head.len(), 2, "{head:?}");
}

/// What `claude plugin …` says, in a home of its own.
fn plugin(home: &Path, words: &[&str]) -> String {
    let mut command = Command::new(agents::program("claude"));
    command.arg("plugin").args(words).env("HOME", home).env("CLAUDE_CONFIG_DIR", home).stdin(Stdio::null());
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    let done = command.output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "claude plugin {}\n{text}", words.join(" "));
    text
}

#[test]
fn claude_code_accepts_the_plugin_and_installs_it_from_here() {
    let (home, root) = (tempfile::tempdir().unwrap(), root());
    for folder in [root.join("plugin"), root.clone()] {
        has(&plugin(home.path(), &["validate", "--strict", folder.to_str().unwrap()]), &["Validation passed"]);
    }
    plugin(home.path(), &["marketplace", "add", root.to_str().unwrap()]);
    plugin(home.path(), &["install", "bugeye@bugeye"]);
    let version = format!("bugeye {}", env!("CARGO_PKG_VERSION"));
    let parts = ["Skills (1)  bugeye", "MCP servers (1)  bugeye", &version];
    has(&plugin(home.path(), &["details", "bugeye@bugeye"]), &parts);
}

#[test]
fn an_answer_that_differs_is_noticed() {
    assert!(matches("a … c\nd", "a b c\nd") && matches("a\n…\nd", "a\nb\nc\nd") && matches("a…", "abc"));
    assert!(!matches("a … c\nd", "a b c\ne") && !matches("a … d", "a b c\nd d") && !matches("a", "a\nb"));
    assert_eq!(blocks("x\n```sh\na\nb\n```\n").first().map(|block| block.lines.len()), Some(2));
}
