//! The command itself, in a home and a project of its own.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const EVERY: [&str; 7] = ["claude", "codex", "gemini", "cursor", "copilot", "opencode", "agents-md"];

/// A home, a project, and a PATH that has `bugeye`.
struct Place {
    folder: tempfile::TempDir,
    variables: Vec<(&'static str, PathBuf)>,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "bin", "project/.git", "project/src"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        symlink(env!("CARGO_BIN_EXE_bugeye"), folder.path().join("bin/bugeye")).unwrap();
        Self { folder, variables: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bugeye"));
        command.arg("init").args(words).current_dir(self.path("project/src")).env_clear();
        command.env("HOME", self.path("home")).env("BUGEYE_HOME", self.path("bugeye")).env("PATH", self.path("bin"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let Output { status, stdout, stderr } = self.command(words).output().unwrap();
        (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    #[track_caller]
    fn ok(&self, words: &[&str]) -> String {
        let (code, stdout, stderr) = self.run(words);
        assert_eq!((code, stderr.as_str()), (0, ""), "{words:?}: {stdout}");
        stdout
    }

    #[track_caller]
    fn fails(&self, words: &[&str], with: i32, parts: &[&str]) {
        let (code, stdout, stderr) = self.run(words);
        assert_eq!((code, stdout.as_str()), (with, ""), "{words:?}: {stderr}");
        for part in parts {
            assert!(stderr.contains(part), "no {part:?} in {stderr}");
        }
    }

    /// Every file with its text and mode, every link with its aim, every folder.
    fn tree(&self) -> BTreeMap<PathBuf, String> {
        fn walk(folder: &Path, root: &Path, into: &mut BTreeMap<PathBuf, String>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let data = fs::symlink_metadata(&path).unwrap();
                let what = if data.is_symlink() {
                    format!("link to {}", fs::read_link(&path).unwrap().display())
                } else if data.is_dir() {
                    walk(&path, root, into);
                    "folder".into()
                } else {
                    format!("{:o} {:?}", data.permissions().mode(), fs::read(&path).unwrap())
                };
                into.insert(path.strip_prefix(root).unwrap().to_path_buf(), what);
            }
        }
        let mut tree = BTreeMap::new();
        for name in ["home", "project"] {
            walk(&self.path(name), self.folder.path(), &mut tree);
        }
        tree
    }

    /// The files there are, by name.
    fn files(&self) -> Vec<String> {
        let files = self.tree().into_iter().filter(|(_, what)| what != "folder");
        let mut names: Vec<String> = files.map(|(path, _)| path.display().to_string()).collect();
        names.sort();
        names
    }
}

fn entry(text: &str, key: &str) -> Value {
    bugeye::launch_config::jsonc::parse(text).unwrap()[key]["bugeye"].clone()
}

#[test]
fn each_agent_in_a_project_has_its_files_and_gives_them_back() {
    let plain = json!({ "command": "bugeye", "args": ["mcp"] });
    let stdio = json!({ "type": "stdio", "command": "bugeye", "args": ["mcp"] });
    let tools = json!({ "type": "stdio", "command": "bugeye", "args": ["mcp"], "tools": ["*"] });
    let local = json!({ "type": "local", "command": ["bugeye", "mcp"], "enabled": true });
    let agents: [(&str, &[(&str, &str, &Value)], &str); 5] = [
        ("claude", &[(".mcp.json", "mcpServers", &plain)], ".claude"),
        ("gemini", &[(".gemini/settings.json", "mcpServers", &plain)], ".gemini"),
        ("cursor", &[(".cursor/mcp.json", "mcpServers", &plain)], ".cursor"),
        ("copilot", &[(".github/mcp.json", "mcpServers", &tools), (".vscode/mcp.json", "servers", &stdio)], ".github"),
        ("opencode", &[("opencode.json", "mcp", &local)], ".opencode"),
    ];
    for (agent, configs, skills) in agents {
        let place = Place::new();
        let before = place.tree();
        let said = place.ok(&[agent]);
        assert!(said.contains(&format!("{agent}: set up in this project")), "{said}");
        let mut wanted: Vec<String> = configs.iter().map(|(name, _, _)| format!("project/{name}")).collect();
        for (name, key, value) in configs {
            assert_eq!(entry(&place.read(&format!("project/{name}")), key), **value, "{name}");
            assert!(said.contains(&format!("+++ {}", place.path("project").join(name).display())), "{said}");
        }
        for (name, _) in bugeye::init::skill::FILES {
            wanted.push(format!("project/{skills}/skills/bugeye/{name}"));
        }
        wanted.sort();
        assert_eq!(place.files(), wanted);
        there_again_and_back(&place, &[agent], &before);
    }
}

/// A second time nothing changes; then all is as it was, and once more nothing changes.
#[track_caller]
fn there_again_and_back(place: &Place, words: &[&str], before: &BTreeMap<PathBuf, String>) {
    let after = place.tree();
    let said = place.ok(words);
    assert!(said.lines().all(|line| line.contains(": already there")), "{said}");
    assert_eq!(place.tree(), after);
    let words: Vec<&str> = words.iter().copied().chain(["--uninstall"]).collect();
    let said = place.ok(&words);
    assert!(said.contains(": taken out of"), "{said}");
    assert_eq!(&place.tree(), before, "{said}");
    let said = place.ok(&words);
    assert!(said.lines().all(|line| line.contains(": nothing to take out")), "{said}");
    assert_eq!(&place.tree(), before);
}

#[test]
fn codex_and_agents_md_in_a_project() {
    let place = Place::new();
    let before = place.tree();
    place.ok(&["codex", "agents-md"]);
    assert_eq!(
        place.read("project/.codex/config.toml"),
        "[mcp_servers.bugeye]\ncommand = \"bugeye\"\nargs = [\"mcp\"]\n"
    );
    assert!(place.read("project/.agents/skills/bugeye/SKILL.md").starts_with("---\nname: bugeye\n"));
    let text = place.read("project/AGENTS.md");
    assert!(text.starts_with("<!-- bugeye:begin -->\n") && text.ends_with("\n<!-- bugeye:end -->\n"), "{text}");
    there_again_and_back(&place, &["codex", "agents-md"], &before);
}

#[test]
fn each_agent_has_its_files_for_the_user() {
    let place = Place::new();
    let before = place.tree();
    let agents = &EVERY[..6];
    let words: Vec<&str> = agents.iter().copied().chain(["--user"]).collect();
    place.ok(&words);
    let skills = [".agents", ".claude", ".config/opencode", ".copilot", ".cursor", ".gemini"];
    let skills = skills
        .iter()
        .flat_map(|folder| bugeye::init::skill::FILES.map(|(name, _)| format!("home/{folder}/skills/bugeye/{name}")));
    let configs = [
        ".claude.json",
        ".codex/config.toml",
        ".config/opencode/opencode.json",
        ".copilot/mcp-config.json",
        ".cursor/mcp.json",
        ".gemini/settings.json",
    ];
    let mut wanted: Vec<String> = configs.iter().map(|name| format!("home/{name}")).chain(skills).collect();
    wanted.sort();
    assert_eq!(place.files(), wanted);
    there_again_and_back(&place, &words, &before);
    place.fails(&["agents-md", "--user"], 2, &["AGENTS.md is a project's file"]);
}

#[test]
fn the_agents_own_variables_are_followed() {
    let mut place = Place::new();
    let names = ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME"];
    place.variables = names.iter().map(|name| (*name, place.path(&format!("home/{name}")))).collect();
    let before = place.tree();
    let words = ["claude", "codex", "copilot", "opencode", "--user"];
    place.ok(&words);
    for name in [
        "CLAUDE_CONFIG_DIR/.claude.json",
        "CLAUDE_CONFIG_DIR/skills/bugeye/SKILL.md",
        "CODEX_HOME/config.toml",
        ".agents/skills/bugeye/SKILL.md",
        "COPILOT_HOME/mcp-config.json",
        "COPILOT_HOME/skills/bugeye/SKILL.md",
        "XDG_CONFIG_HOME/opencode/opencode.json",
    ] {
        assert!(place.path("home").join(name).is_file(), "{name} in {:?}", place.files());
    }
    there_again_and_back(&place, &words, &before);
}

#[test]
fn outside_of_a_project_it_is_for_the_user() {
    let place = Place::new();
    fs::remove_dir(place.path("project/.git")).unwrap();
    assert!(place.ok(&["cursor"]).contains("cursor: set up for you"));
    assert!(place.path("home/.cursor/mcp.json").is_file());
    // Unless it is said otherwise: then it is for the folder.
    place.ok(&["cursor", "--project"]);
    assert!(place.path("project/src/.cursor/mcp.json").is_file());
}

#[test]
fn what_was_there_stays_as_it_is() {
    let place = Place::new();
    place
        .write("project/.mcp.json", "\u{feff}{\r\n\t\"mcpServers\" : {\r\n\t\t\"x\": {\"command\": \"y\"}\r\n\t}\r\n}");
    place.write("project/.codex/config.toml", "# mine\nmodel = \"m\"\n\n[mcp_servers.x]\ncommand = \"y\" # why");
    place.write("project/.gemini/settings.json", "{}");
    place.write("project/.cursor/mcp.json", "");
    place.write("project/.vscode/mcp.json", "{\n  // servers\n  \"inputs\": [],\n  \"servers\": {},\n}\n");
    place.write("project/opencode.jsonc", "{ \"$schema\": \"https://opencode.ai/config.json\", /* x */ }\n");
    place.write("project/AGENTS.md", "# Rules\r\n\r\n- be kind");
    fs::create_dir_all(place.path("project/.claude/skills")).unwrap();
    fs::set_permissions(place.path("project/.mcp.json"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = place.tree();
    place.ok(&EVERY);
    assert!(!place.path("project/opencode.json").exists(), "the file that is in use is the one to change");
    assert_eq!(fs::metadata(place.path("project/.mcp.json")).unwrap().permissions().mode() & 0o777, 0o640);
    let new =
        "{\r\n\t\"mcpServers\" : {\r\n\t\t\"bugeye\": { \"command\": \"bugeye\", \"args\": [\"mcp\"] },\r\n\t\t\"x\":";
    assert!(place.read("project/.mcp.json").contains(new), "{}", place.read("project/.mcp.json"));
    there_again_and_back(&place, &EVERY, &before);
}

#[test]
fn what_others_add_meanwhile_stays() {
    let place = Place::new();
    place.ok(&["claude"]);
    place.write("project/.claude/skills/bugeye/notes.md", "mine");
    place.write("project/.claude/settings.json", "{}");
    let text = place.read("project/.mcp.json");
    place.write("project/.mcp.json", &text.replace("] }\n", "] },\n    \"x\": {}\n"));
    place.ok(&["claude", "--uninstall"]);
    let files = ["project/.claude/settings.json", "project/.claude/skills/bugeye/notes.md", "project/.mcp.json"];
    assert_eq!(place.files(), files);
    assert_eq!(place.read("project/.mcp.json"), "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n");
}

#[test]
fn an_entry_and_a_skill_of_the_user_are_kept_unless_forced() {
    let place = Place::new();
    place.write(
        "project/.mcp.json",
        "{\"mcpServers\": {\"bugeye\": {\"command\": \"bugeye\", \"args\": [\"mcp\", \"-v\"]}}}",
    );
    for (name, _) in bugeye::init::skill::FILES {
        place.write(&format!("project/.claude/skills/bugeye/{name}"), "my own");
    }
    let before = place.tree();
    for words in [&["claude"][..], &["claude", "--uninstall"]] {
        let said = place.ok(words);
        assert!(said.contains("kept: ") && said.contains("--force") && said.contains("claude: nothing was"), "{said}");
        assert_eq!(place.tree(), before);
    }
    let said = place.ok(&["claude", "--force"]);
    assert!(said.contains("-{\"mcpServers\"") || said.contains("-…"), "{said}");
    let wanted = json!({ "command": "bugeye", "args": ["mcp"] });
    assert_eq!(entry(&place.read("project/.mcp.json"), "mcpServers"), wanted);
    assert!(place.read("project/.claude/skills/bugeye/SKILL.md").starts_with("---\nname: bugeye"));
    // A skill that was edited afterwards is the user's again.
    let edited = place.read("project/.claude/skills/bugeye/SKILL.md").replace("guessing", "hoping");
    place.write("project/.claude/skills/bugeye/SKILL.md", &edited);
    assert!(place.ok(&["claude"]).contains("kept: "));
    place.ok(&["claude", "--uninstall"]);
    assert_eq!(place.read("project/.claude/skills/bugeye/SKILL.md"), edited);
    place.ok(&["claude", "--uninstall", "--force"]);
    assert!(!place.path("project/.claude/skills/bugeye/SKILL.md").exists());
}

#[test]
fn what_an_older_version_wrote_is_brought_up_to_date() {
    let place = Place::new();
    let before = place.tree();
    place.ok(&["gemini"]);
    let text = place.read("project/.gemini/settings.json").replace("\"bugeye\",", "\"/old/bugeye\",");
    place.write("project/.gemini/settings.json", &text);
    let skill = "project/.gemini/skills/bugeye";
    let made = bugeye::init::skill::read(&place.read(&format!("{skill}/SKILL.md"))).unwrap().1;
    assert_eq!(made, [".gemini"]);
    place.write(&format!("{skill}/SKILL.md"), &bugeye::init::skill::marked("older\n", &made));
    place.write(&format!("{skill}/references/dropped.md"), &bugeye::init::skill::marked("older\n", &[]));
    let said = place.ok(&["gemini"]);
    assert!(
        said.contains("changed file: ") && said.contains("removed file: ") && said.contains("-    \"bugeye\""),
        "{said}"
    );
    assert_eq!(entry(&place.read("project/.gemini/settings.json"), "mcpServers")["command"], "bugeye");
    there_again_and_back(&place, &["gemini"], &before);
}

#[test]
fn a_file_that_is_not_understood_stops_its_agent_alone() {
    let place = Place::new();
    place.write("project/.mcp.json", "{\n  \"mcpServers\": {\n    \"x\" 1\n  }\n}\n");
    let before = place.tree();
    place.fails(&["claude"], 1, &[".mcp.json can't be changed: ", "at line 3", "nothing was written"]);
    assert_eq!(place.tree(), before, "not even the skill");
    let (code, said, _) = place.run(&["claude", "cursor"]);
    assert_eq!(code, 1);
    assert!(said.contains("cursor: set up") && said.contains("claude: ") && said.contains("at line 3"), "{said}");
    assert!(place.path("project/.cursor/mcp.json").is_file() && !place.path("project/.claude").exists());
    place.write("project/.codex/config.toml", "a = 1\n\n[b\n");
    place.fails(&["codex"], 1, &["config.toml can't be changed: ", "at line 3"]);
    fs::write(place.path("project/opencode.json"), b"{\"a\": \"\xff\"}").unwrap();
    place.fails(&["opencode"], 1, &["not UTF-8"]);
    fs::create_dir_all(place.path("project/.gemini/settings.json")).unwrap();
    place.fails(&["gemini"], 1, &["settings.json is no file"]);
}

#[test]
fn links_are_followed_but_not_out_of_a_project() {
    let place = Place::new();
    // Within: the real file is changed, and the link stays.
    place.write("project/config/mcp.json", "{}\n");
    symlink("config/mcp.json", place.path("project/.mcp.json")).unwrap();
    let before = place.tree();
    place.ok(&["claude"]);
    assert_eq!(entry(&place.read("project/config/mcp.json"), "mcpServers")["command"], "bugeye");
    assert!(fs::symlink_metadata(place.path("project/.mcp.json")).unwrap().is_symlink());
    there_again_and_back(&place, &["claude"], &before);
    // Out of it: refused, by a file and by a folder.
    place.write("outside/settings.json", "{}");
    fs::create_dir_all(place.path("project/.cursor")).unwrap();
    symlink(place.path("outside/settings.json"), place.path("project/.cursor/mcp.json")).unwrap();
    symlink(place.path("outside"), place.path("project/.gemini")).unwrap();
    symlink("nowhere", place.path("project/opencode.json")).unwrap();
    let before = place.tree();
    place.fails(&["cursor"], 1, &["leads out of the project, to "]);
    place.fails(&["gemini"], 1, &["leads out of the project, to "]);
    place.fails(&["opencode"], 1, &["could not follow "]);
    assert_eq!(place.tree(), before);
    assert_eq!(place.read("outside/settings.json"), "{}");
    // In the home folder links lead wherever the user has put things.
    place.write("dotfiles/claude.json", "{\"n\": 1}");
    symlink("../dotfiles/claude.json", place.path("home/.claude.json")).unwrap();
    place.ok(&["claude", "--user"]);
    assert_eq!(entry(&place.read("dotfiles/claude.json"), "mcpServers")["command"], "bugeye");
    place.ok(&["claude", "--user", "--uninstall"]);
    assert_eq!(place.read("dotfiles/claude.json"), "{\"n\": 1}");
    assert!(fs::symlink_metadata(place.path("home/.claude.json")).unwrap().is_symlink());
}

/// Agents write their own files at any time.
#[test]
fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    use bugeye::init::files;
    let place = Place::new();
    place.write("project/a.json", "{}");
    let found = files::read(&place.path("project/a.json"), None).unwrap();
    place.write("project/a.json", "{ \"new\": 1 }");
    let failure = files::write(&found, "{ \"ours\": 1 }").unwrap_err();
    assert!(failure.message.contains("changed by another program"), "{failure}");
    assert!(files::remove(&found).is_err());
    assert_eq!(place.read("project/a.json"), "{ \"new\": 1 }");
    assert_eq!(place.files(), ["project/a.json"], "nothing is left beside it");
}

#[test]
fn a_dry_run_shows_all_and_changes_nothing() {
    let place = Place::new();
    place.write("project/.mcp.json", "{\n  \"a\": 1\n}\n");
    let before = place.tree();
    let said = place.ok(&["claude", "--dry-run"]);
    let file = place.path("project/.mcp.json").display().to_string();
    let diff = [
        &format!("--- {file}"),
        &format!("+++ {file}"),
        "@@ -1,3 +1,6 @@",
        " {",
        "+  \"mcpServers\": {",
        "+    \"bugeye\": { \"command\": \"bugeye\", \"args\": [\"mcp\"] }",
        "+  },",
        "   \"a\": 1",
        " }",
        "--- /dev/null",
    ];
    assert!(said.starts_with(&diff.join("\n")), "{said}");
    assert!(
        said.contains("\n+name: bugeye\n") && said.contains("\nclaude: would be set up in this project\n"),
        "{said}"
    );
    assert_eq!(place.tree(), before);
}

#[test]
fn the_changes_are_there_as_data() {
    let place = Place::new();
    let (code, said, _) = place.run(&["claude", "agents-md", "--json"]);
    assert_eq!(code, 0);
    let report = serde_json::from_str::<Value>(&said).unwrap()["result"].take();
    assert_eq!(report["scope"], "project");
    assert_eq!(report["command"], "bugeye");
    let agents = report["agents"].as_array().unwrap();
    assert_eq!((&agents[0]["agent"], &agents[1]["agent"]), (&json!("claude"), &json!("agents-md")));
    let file = &agents[0]["files"][0];
    assert_eq!(file["path"], place.path("project/.mcp.json").to_str().unwrap());
    assert_eq!(file["action"], "created");
    assert!(file["diff"].as_str().unwrap().contains("+    \"bugeye\": {"), "{file}");
    assert_eq!(agents[0]["files"][1]["action"], "created");
    let (_, said, _) = place.run(&["claude", "--json"]);
    let report = serde_json::from_str::<Value>(&said).unwrap()["result"].take();
    let actions: Vec<&Value> =
        report["agents"][0]["files"].as_array().unwrap().iter().map(|file| &file["action"]).collect();
    assert_eq!(actions, ["unchanged"; 1 + bugeye::init::skill::FILES.len()]);
}

#[test]
fn secrets_beside_the_entry_are_not_shown() {
    let place = Place::new();
    let lines = "{\n  \"oauthToken\": \"hush1\",\n  \"mcpServers\": {\n    \"x\": {\"env\": {\"API_KEY\": \"hush2\"}}\n  }\n}\n";
    place.write("home/.claude.json", lines);
    place.write("home/.cursor/mcp.json", &lines.replace('\n', ""));
    place.write("home/.codex/config.toml", "[mcp_servers.x.env]\nAPI_KEY = \"hush3\"\nPLAIN = 'hush4'\n");
    let listed = "{\n  \"mcpServers\": {\n    \"x\": {\n      \"args\": [\"--pat\",\n \"hush5\"]\n    }\n  }\n}\n";
    place.write("home/.gemini/settings.json", listed);
    for extra in [&[][..], &["--uninstall"]] {
        let words: Vec<&str> = ["claude", "cursor", "codex", "gemini", "--user"].iter().chain(extra).copied().collect();
        let said = place.ok(&words);
        assert!(!said.contains("hush"), "{said}");
        assert_eq!(said.matches("bugeye\": { \"command\"").count(), 3, "{said}");
        assert!(said.contains("\"args\": [\"…\",") && said.contains("API_KEY = \"…\""), "{said}");
    }
    assert_eq!(place.read("home/.claude.json"), lines);
}

#[test]
fn without_a_name_it_tells_which_agents_are_here() {
    let place = Place::new();
    place.fails(&[], 2, &["no agent was found here", "there are: claude, codex, gemini,"]);
    place.write("project/.cursor/rules/a.mdc", "");
    fs::create_dir_all(place.path("home/.gemini")).unwrap();
    symlink("/bin/true", place.path("bin/codex")).unwrap();
    let before = place.tree();
    let found =
        format!("codex ({}), gemini (~/.gemini), cursor (.cursor in this project)", place.path("bin/codex").display());
    place.fails(&[], 2, &["which agent?", &found, "bugeye init codex gemini cursor", "bugeye init --all"]);
    assert_eq!(place.tree(), before);
    let said = place.ok(&["--all"]);
    for name in ["codex", "gemini", "cursor"] {
        assert!(said.contains(&format!("{name}: set up in this project")), "{said}");
    }
    assert!(!said.contains("claude:"), "{said}");
}

#[test]
fn a_program_that_is_not_on_the_path_is_named_in_full() {
    let place = Place::new();
    fs::remove_file(place.path("bin/bugeye")).unwrap();
    let own = env!("CARGO_BIN_EXE_bugeye");
    let said = place.ok(&["cursor"]);
    assert!(said.contains("note: `bugeye` is not on the PATH") && said.contains(own), "{said}");
    assert_eq!(entry(&place.read("project/.cursor/mcp.json"), "mcpServers")["command"], own);
    symlink("/bin/true", place.path("bin/bugeye")).unwrap();
    assert!(place.ok(&["gemini"]).contains("on the PATH is another program"));
    // Installed properly, the entry is brought up to date.
    fs::remove_file(place.path("bin/bugeye")).unwrap();
    symlink(own, place.path("bin/bugeye")).unwrap();
    place.ok(&["cursor"]);
    assert_eq!(entry(&place.read("project/.cursor/mcp.json"), "mcpServers")["command"], "bugeye");
}

/// The command on a terminal of its own: Python has one to lend.
fn on_a_terminal(place: &Place, words: &[&str], answer: &str) -> String {
    const SCRIPT: &str = "import os, pty, sys\n\
        answer = sys.argv[1].encode()\n\
        def typed(fd):\n    return os.read(fd, 1024)\n\
        r, w = os.pipe(); os.write(w, answer); os.dup2(r, 0)\n\
        code = pty.spawn(sys.argv[2:], stdin_read=typed)\n\
        sys.exit(os.waitstatus_to_exitcode(code))\n";
    let command = place.command(words);
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT, answer]).arg(command.get_program()).args(command.get_args());
    python.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        if name != "PATH" {
            python.env(name, value.unwrap_or_default());
        }
    }
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let Output { stdout, stderr, .. } = python.env("PATH", path).output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr))
}

#[test]
fn on_a_terminal_it_asks() {
    let place = Place::new();
    let before = place.tree();
    let said = on_a_terminal(&place, &["claude"], "n\n");
    assert!(said.contains("+    \"bugeye\": {") && said.contains("Go ahead? [y/N]"), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(place.tree(), before);
    let said = on_a_terminal(&place, &["claude", "--yes"], "");
    assert!(!said.contains("Go ahead?") && said.contains("claude: set up"), "{said}");
    let said = on_a_terminal(&place, &["claude", "--uninstall"], "y\n");
    assert!(said.contains("Go ahead? [y/N]") && said.contains("claude: taken out of this project"), "{said}");
    assert_eq!(said.matches("-    \"bugeye\": {").count(), 1, "shown once: {said}");
    assert_eq!(place.tree(), before);
    place.write("project/CLAUDE.md", "x");
    let said = on_a_terminal(&place, &["--yes"], "claude\n");
    assert!(said.contains("found: claude (CLAUDE.md in this project)") && said.contains("claude: set up"), "{said}");
}

/// All of the skill is in the program: a reference that is added must be added to its list.
#[test]
fn the_whole_skill_is_written() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugin/skills/bugeye");
    let mut names: Vec<String> = bugeye::init::skill::present(&source)
        .iter()
        .map(|path| path.strip_prefix(&source).unwrap().display().to_string())
        .collect();
    names.sort();
    let mut known: Vec<&str> = bugeye::init::skill::FILES.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    for (name, content) in bugeye::init::skill::FILES {
        assert_eq!(content, fs::read_to_string(source.join(name)).unwrap());
        assert!(content.ends_with('\n'), "{name}");
        assert_eq!(bugeye::init::skill::read(&bugeye::init::skill::marked(content, &[])), Some((content, Vec::new())));
    }
}
