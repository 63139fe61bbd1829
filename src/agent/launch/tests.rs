//! Command lines and environments, with what users may have set themselves.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

/// A user with a home, a project and a session's folder.
struct World {
    root: tempfile::TempDir,
    env: Vec<(String, String)>,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["home", "project", "private"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        let home = root.path().join("home").display().to_string();
        Self { root, env: vec![("HOME".into(), home)] }
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    fn file(self, path: &str, text: &str) -> Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn prepare_with(&self, words: &[&str], model: Option<&str>) -> Prepared {
        let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
        let wish = Wish {
            words: &words,
            env: &self.env,
            cwd: &self.root.path().join("project"),
            exe: Path::new("/opt/my tools/bugeye"),
            socket: Path::new("/run/agent.sock"),
            token: "secret",
            folder: &self.root.path().join("private"),
            model,
        };
        prepare(&wish).unwrap()
    }

    fn prepare(&self, words: &[&str]) -> Prepared {
        self.prepare_with(words, Some("http://127.0.0.1:7/s/t"))
    }

    fn written(&self, name: &str) -> Json {
        let text = fs::read_to_string(self.root.path().join("private").join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

#[test]
fn an_agent_is_known_by_the_name_of_its_program() {
    let agent = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
        find(&words).map(|(agent, at)| (agent.name, at))
    };
    assert_eq!(agent(&["claude", "-p", "x"]), Some(("claude", 1)));
    assert_eq!(agent(&["/usr/bin/codex"]), Some(("codex", 1)));
    assert_eq!(agent(&["npx", "-y", "@google/gemini-cli@0.61.0", "-p", "x"]), Some(("gemini", 3)));
    assert_eq!(agent(&["node", "/x/node_modules/.bin/opencode", "run"]), Some(("opencode", 2)));
    assert_eq!(agent(&["npx", "@github/copilot", "-p", "x"]), Some(("copilot", 2)));
    assert_eq!(agent(&["python3", "claude.py"]), None);
    assert_eq!(agent(&["node", "agent.js", "claude-like"]), None);
    // A word for another program is no agent.
    assert_eq!(agent(&["node", "bench.js", "claude"]), None);
    assert_eq!(agent(&["bun", "run", "x.ts", "gemini"]), None);
    assert_eq!(agent(&["npx", "-y", "tool", "claude"]), None);
    assert_eq!(agent(&["bun", "x", "opencode-ai@1", "run"]), Some(("opencode", 3)));
    assert_eq!(agent(&["npx", "-p", "@openai/codex", "codex", "exec"]), Some(("codex", 4)));
    // One that only runs another is seen through.
    assert_eq!(agent(&["timeout", "-k", "5", "--foreground", "600", "claude", "-p"]), Some(("claude", 6)));
    assert_eq!(agent(&["nice", "-n", "10", "nohup", "npx", "@openai/codex"]), Some(("codex", 6)));
    assert_eq!(agent(&["timeout", "5"]), None);
    assert_eq!(agent(&[]), None);
}

#[test]
fn what_env_sets_comes_before_what_we_set() {
    let world = World::new();
    let words = ["timeout", "9", "env", "X=1", "ANTHROPIC_BASE_URL=http://mine.test", "claude", "-p", "x"];
    let prepared = world.prepare(&words);
    let file = world.root.path().join("private/claude-settings.json").display().to_string();
    assert_eq!(prepared.words, ["timeout", "9", "claude", "--settings", &file, "-p", "x"]);
    assert_eq!((prepared.env["X"].as_str(), prepared.agent), ("1", "claude"));
    assert_eq!(prepared.upstreams["anthropic"], "http://mine.test");
    assert_eq!(prepared.env["ANTHROPIC_BASE_URL"], "http://127.0.0.1:7/s/t/anthropic");
    // One that does more is left alone, and what it runs is named.
    let prepared = world.prepare(&["env", "-i", "claude"]);
    assert_eq!((prepared.words.len(), prepared.agent), (3, "sdk"));
    assert!(prepared.notes[0].contains("`claude` is not what is started here"), "{:?}", prepared.notes);
    let prepared = world.prepare(&["sh", "-c", "cd x && claude -p y"]);
    assert!(prepared.notes[0].contains("`claude` is not what is started here"), "{:?}", prepared.notes);
    assert!(world.prepare(&["python3", "ask.py", "ask claude"]).notes.is_empty());
}

#[test]
fn an_address_that_can_not_be_known_is_not_replaced() {
    let unknown = |world: World, words: &[&str], text: &str| {
        let prepared = world.prepare(words);
        assert!(prepared.upstreams.is_empty(), "{words:?}: {:?}", prepared.upstreams);
        assert!(prepared.notes.iter().any(|note| note.contains(text)), "{words:?}: {:?}", prepared.notes);
        prepared
    };
    // The model is asked elsewhere.
    for name in ["BEDROCK", "VERTEX", "FOUNDRY", "MANTLE", "ANTHROPIC_AWS", "ANTHROPIC_GOOGLE_CLOUD"] {
        let world = World::new().set(&format!("CLAUDE_CODE_USE_{name}"), "1");
        let prepared = unknown(world, &["claude"], "past the model tap");
        assert!(!prepared.env.contains_key("ANTHROPIC_BASE_URL"));
    }
    let settings = r#"{"env": {"CLAUDE_CODE_USE_BEDROCK": "0"}}"#;
    let world = World::new().set("CLAUDE_CODE_USE_BEDROCK", "1").file("home/.claude/settings.json", settings);
    assert_eq!(world.prepare(&["claude"]).upstreams.len(), 1);
    // Which login there is can't be read.
    let world = World::new().file("home/.codex/config.toml", "cli_auth_credentials_store = \"keyring\"");
    unknown(world, &["codex"], "can't be read");
    // A file of variables may count or not.
    let named = "# mine\nexport GOOGLE_GEMINI_BASE_URL = \"http://mine.test\" # x\n";
    for path in ["project/.env", "project/.gemini/.env", "home/.gemini/.env"] {
        let world = World::new().set("GEMINI_API_KEY", "k").file(path, named);
        unknown(world, &["gemini"], "`GOOGLE_GEMINI_BASE_URL` in ");
    }
    let world = World::new().file("project/.env", "GEMINI_API_KEY='k'\n");
    assert_eq!(world.prepare(&["gemini"]).upstreams["gemini"], "https://generativelanguage.googleapis.com");
    let world = World::new().file("project/.env", "OPENAI_BASE_URL=http://mine.test\n");
    let prepared = world.prepare(&["python3", "agent.py"]);
    assert!(!prepared.upstreams.contains_key("openai") && !prepared.env.contains_key("OPENAI_BASE_URL"));
    assert!(prepared.notes[0].contains("calls to openai are not seen"), "{:?}", prepared.notes);
    assert_eq!(world.set("OPENAI_API_BASE", "http://two.test").prepare(&["x"]).upstreams["openai"], "http://two.test");
}

#[test]
fn any_other_program_finds_the_taps_in_its_environment() {
    let world = World::new().set("OPENAI_BASE_URL", "http://proxy.test/v1/").set("NO_PROXY", "localhost");
    let prepared = world.prepare(&["python3", "agent.py"]);
    assert_eq!((prepared.agent, prepared.words.len()), ("sdk", 2));
    assert_eq!(prepared.env["BUGEYE_AGENT_SOCKET"], "/run/agent.sock");
    assert_eq!(prepared.env["BUGEYE_AGENT_TOKEN"], "secret");
    assert_eq!(prepared.env["OPENAI_API_BASE"], "http://127.0.0.1:7/s/t/openai");
    assert_eq!(prepared.env["NO_PROXY"], "localhost,127.0.0.1");
    assert_eq!(prepared.upstreams["openai"], "http://proxy.test/v1");
    assert_eq!(prepared.upstreams["anthropic"], "https://api.anthropic.com");
    let prepared = world.prepare_with(&["python3", "agent.py"], None);
    let set: BTreeSet<&str> = prepared.env.keys().map(String::as_str).collect();
    assert_eq!(set, BTreeSet::from(["BUGEYE_AGENT_SOCKET", "BUGEYE_AGENT_TOKEN"]));
}

#[test]
fn claude_gets_settings_that_have_the_user_s_own() {
    let world = World::new().set("API_TIMEOUT_MS", "5");
    let theirs = r#"{"model": "opus", "hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}}"#;
    let prepared = world.prepare(&["claude", "-p", "x", &format!("--settings={theirs}"), "--verbose"]);
    let file = world.root.path().join("private/claude-settings.json").display().to_string();
    assert_eq!(prepared.words, ["claude", "--settings", &file, "-p", "x", "--verbose"]);
    let written = world.written("claude-settings.json");
    assert_eq!(written["model"], "opus");
    assert_eq!(written["hooks"]["PreToolUse"][0]["hooks"][0]["command"], "mine");
    let ours = &written["hooks"]["PreToolUse"][1]["hooks"][0];
    assert_eq!(ours, &json!({"type": "command", "command": "'/opt/my tools/bugeye' hook claude", "timeout": 86400}));
    assert_eq!(written["env"]["ANTHROPIC_BASE_URL"], "http://127.0.0.1:7/s/t/anthropic");
    assert_eq!(prepared.upstreams["anthropic"], "https://api.anthropic.com");
    assert!(!prepared.env.contains_key("API_TIMEOUT_MS"), "theirs stays");
    assert_eq!(prepared.env["CLAUDE_STREAM_IDLE_TIMEOUT_MS"], "86400000");
    assert!(!fs::read_to_string(&file).unwrap().contains("secret"));
    // The last of several counts, as with Claude Code itself, and none is left to take the place of ours.
    let words = ["claude", "--settings", r#"{"model": "one"}"#, "-p", "x", r#"--settings={"model": "two"}"#];
    let prepared = world.prepare(&words);
    assert_eq!(prepared.words, ["claude", "--settings", &file, "-p", "x"]);
    assert_eq!(world.written("claude-settings.json")["model"], "two");
    // What follows `--` is the prompt.
    assert_eq!(world.prepare(&["claude", "-p", "--", "--settings"]).words[3..], ["-p", "--", "--settings"]);
}

#[test]
fn claude_s_upstream_is_where_the_user_s_settings_say() {
    let env = |url: &str| json!({"env": {"ANTHROPIC_BASE_URL": url}}).to_string();
    let world = World::new().set("ANTHROPIC_BASE_URL", "http://one.test");
    assert_eq!(world.prepare(&["claude"]).upstreams["anthropic"], "http://one.test");
    let world = world.file("home/.claude/settings.json", &env("http://two.test"));
    assert_eq!(world.prepare(&["claude"]).upstreams["anthropic"], "http://two.test");
    let world = world.file("project/.claude/settings.json", &env("http://three.test"));
    assert_eq!(world.prepare(&["claude"]).upstreams["anthropic"], "http://three.test");
    assert_eq!(
        world.prepare(&["claude", "--settings", &env("http://four.test")]).upstreams["anthropic"],
        "http://four.test"
    );
    assert!(world.prepare_with(&["claude"], None).upstreams.is_empty());
    assert!(world.written("claude-settings.json").get("env").is_none());
}

#[test]
fn what_can_not_be_had_is_said() {
    let noted = |world: World, words: &[&str], text: &str| {
        let notes = world.prepare(words).notes;
        assert!(notes.iter().any(|note| note.contains(text)), "{words:?}: {notes:?}");
    };
    noted(World::new(), &["claude", "--bare", "-p", "x"], "`--bare` switches");
    noted(
        World::new().file("home/.claude/settings.json", r#"{"disableAllHooks": true}"#),
        &["claude"],
        "disableAllHooks",
    );
    noted(World::new().set("CLAUDE_CODE_USE_BEDROCK", "1"), &["claude"], "Bedrock");
    noted(World::new(), &["claude", "--settings", "gone.json"], "can't be read");
    noted(World::new(), &["codex", "-c", "features.hooks=false"], "features.hooks");
    noted(World::new(), &["codex", "--oss"], "past the model tap");
    noted(World::new(), &["gemini"], "login of Google's");
    noted(World::new(), &["opencode", "run", "--pure"], "--pure");
    noted(World::new().set("OPENCODE_CONFIG_CONTENT", "{"), &["opencode"], "can't be read");
    assert!(World::new().prepare(&["claude", "-p", "--", "--bare"]).notes.is_empty());
}

/// As Codex 0.166.0 counts it.
#[test]
fn codex_s_hooks_are_trusted_by_their_hash() {
    let (name, hash) = codex::trust("PreToolUse", "/x/bugeye hook codex", 86_400);
    assert_eq!(name, "pre_tool_use");
    assert_eq!(hash, "sha256:94e2c5e5a8ebc0d54bd8b58e1fc7b0ab7abd57bed1298508f57e258dfa393509");
    let (name, hash) = codex::trust("Stop", "/x/bugeye hook codex", 86_400);
    assert_eq!(name, "stop");
    assert_eq!(hash, "sha256:5a40ba0a19858c3757b4dee629911272591a887313c72c08a1f61a4760066bd6");
}

#[test]
fn codex_asks_the_provider_that_the_user_has_chosen() {
    let set = |prepared: &Prepared, setting: &str| {
        let words = &prepared.words;
        words.windows(2).any(|pair| pair[0] == "-c" && pair[1] == setting)
    };
    let world = World::new().file(
        "home/.codex/config.toml",
        "model_provider = \"mine\"\n[model_providers.mine]\nbase_url = \"http://mine.test/v1\"\n[model_providers.two]\nbase_url = \"http://two.test/v1\"\n",
    );
    let prepared = world.prepare(&["codex", "exec", "x"]);
    assert_eq!(prepared.words[prepared.words.len() - 2..], ["exec", "x"]);
    assert_eq!(prepared.upstreams, BTreeMap::from([("mine".into(), "http://mine.test/v1".into())]));
    assert!(set(&prepared, "model_providers.mine.base_url=\"http://127.0.0.1:7/s/t/mine\""), "{:?}", prepared.words);
    assert!(set(&prepared, "model_providers.mine.supports_websockets=false"));
    // However it is said on the command line.
    for said in [&["-c", "model_provider=\"two\""][..], &["-cmodel_provider=two"], &["--config=model_provider=two"]] {
        let prepared = world.prepare(&[&["codex"], said, &["exec", "x"]].concat());
        assert_eq!(prepared.upstreams, BTreeMap::from([("two".into(), "http://two.test/v1".into())]), "{said:?}");
    }
    let three = "model_providers.three={name=\"x\", base_url=\"http://three.test/v1\"}";
    let prepared = world.prepare(&["codex", "-c", three, "-c", "model_provider=three"]);
    assert_eq!(prepared.upstreams["three"], "http://three.test/v1");
    let world = world.file("home/.codex/work.config.toml", "model_provider = \"two\"");
    assert_eq!(world.prepare(&["codex", "exec", "--profile", "work", "x"]).upstreams["two"], "http://two.test/v1");
    // A project's file can't say it.
    let world = world.file("project/.codex/config.toml", "model_provider = \"two\"");
    assert_eq!(world.prepare(&["codex"]).upstreams["mine"], "http://mine.test/v1");

    // It does not heed this variable.
    let world = World::new().set("OPENAI_BASE_URL", "http://other.test/v1");
    let prepared = world.prepare(&["codex"]);
    assert_eq!(prepared.upstreams["openai"], "https://api.openai.com/v1");
    assert!(set(&prepared, "model_provider=\"bugeye\""));
    let world = world.file("home/.codex/auth.json", r#"{"OPENAI_API_KEY": null, "tokens": {"id_token": "x"}}"#);
    assert_eq!(world.prepare(&["codex"]).upstreams["openai"], "https://chatgpt.com/backend-api/codex");
    assert!(!world.prepare_with(&["codex"], None).words.iter().any(|word| word.contains("model_provider")));
}

#[test]
fn gemini_s_home_has_all_of_the_user_s_but_the_settings() {
    let world = World::new()
        .set("GEMINI_API_KEY", "k")
        .file("home/.gemini/settings.json", "{\"model\": {\"name\": \"m\"}, // mine\n \"hooks\": {\"AfterTool\": [1]}}")
        .file("home/.gemini/oauth_creds.json", "creds");
    let prepared = world.prepare(&["gemini", "-p", "x"]);
    assert_eq!(prepared.words, ["gemini", "-p", "x"]);
    let home = PathBuf::from(&prepared.env["GEMINI_CLI_HOME"]);
    assert_eq!(fs::read_to_string(home.join(".gemini/oauth_creds.json")).unwrap(), "creds");
    let written = world.written("gemini-home/.gemini/settings.json");
    assert_eq!(written["model"]["name"], "m");
    assert_eq!(
        (&written["hooks"]["AfterTool"][0], written["hooks"]["AfterTool"].as_array().unwrap().len()),
        (&json!(1), 2)
    );
    let ours = &written["hooks"]["BeforeTool"][0]["hooks"][0];
    assert_eq!((&ours["timeout"], &ours["env"]["BUGEYE_AGENT_TOKEN"]), (&json!(86_400_000), &json!("secret")));
    assert_eq!(written["security"]["auth"]["selectedType"], "gemini-api-key");
    assert_eq!(prepared.env["GOOGLE_GEMINI_BASE_URL"], "http://127.0.0.1:7/s/t/gemini");
    assert_eq!(prepared.upstreams["gemini"], "https://generativelanguage.googleapis.com");
    let theirs = fs::read_to_string(world.root.path().join("home/.gemini/settings.json")).unwrap();
    assert!(theirs.contains("// mine"), "theirs is as it was");
    // A second run in the same folder is no failure.
    world.prepare(&["gemini"]);
}

#[test]
fn opencode_gets_a_plugin_and_the_providers_that_are_known() {
    let config = r#"{"provider": {"mine": {"options": {"baseURL": "http://mine.test/v1"}}, "odd": {}}}"#;
    let world = World::new()
        .file("project/opencode.json", config)
        .set("OPENCODE_CONFIG_CONTENT", r#"{"plugin": ["one"], "theme": "dark"}"#);
    let prepared = world.prepare(&["opencode", "run", "x"]);
    let content: Json = serde_json::from_str(&prepared.env["OPENCODE_CONFIG_CONTENT"]).unwrap();
    let plugin = format!("file://{}", world.root.path().join("private/opencode-bugeye.js").display());
    assert_eq!((&content["plugin"], &content["theme"]), (&json!(["one", plugin]), &json!("dark")));
    assert_eq!(content["provider"]["mine"]["options"]["baseURL"], "http://127.0.0.1:7/s/t/mine");
    assert_eq!(prepared.upstreams["mine"], "http://mine.test/v1");
    assert_eq!(prepared.upstreams["anthropic"], "https://api.anthropic.com/v1");
    assert!(!prepared.upstreams.contains_key("odd"));
    assert!(prepared.notes.iter().any(|note| note.contains("(here: odd)")), "{:?}", prepared.notes);
}

#[test]
fn opencode_s_upstream_is_where_the_user_s_settings_say() {
    let config = |url: &str| json!({"provider": {"anthropic": {"options": {"baseURL": url}}}}).to_string();
    let upstream = |world: &World| world.prepare(&["opencode", "run", "x"]).upstreams.get("anthropic").cloned();
    let world = World::new().set("ANTHROPIC_BASE_URL", "https://api.anthropic.com");
    assert_eq!(upstream(&world).as_deref(), Some("https://api.anthropic.com/v1"));
    let world = world.set("ANTHROPIC_BASE_URL", "http://zero.test");
    assert_eq!(upstream(&world).as_deref(), Some("http://zero.test"));
    let other = world.root.path().join("other.json").display().to_string();
    let world = world.set("OPENCODE_CONFIG", &other);
    let files =
        ["home/.config/opencode/config.json", "other.json", "project/opencode.json", "project/.opencode/opencode.json"];
    let world = files.iter().enumerate().fold(world, |world, (at, path)| {
        let url = format!("http://{at}.test/v1");
        let world = world.file(path, &config(&url));
        assert_eq!(upstream(&world), Some(url));
        world
    });
    // What only OpenCode can put together stays as it is.
    let world = world.file("project/.opencode/opencode.json", &config("{env:MY_GATEWAY}"));
    let prepared = world.prepare(&["opencode", "run", "x"]);
    assert!(!prepared.upstreams.contains_key("anthropic") && prepared.upstreams.contains_key("openai"));
    assert!(!prepared.env["OPENCODE_CONFIG_CONTENT"].contains("/s/t/anthropic"));
    assert!(prepared.notes.iter().any(|note| note.contains("(here: anthropic)")), "{:?}", prepared.notes);
    // Where that is the one that is asked, nothing is tapped.
    for words in [&["opencode", "-m", "anthropic/x"][..], &["opencode", "--model=other/x"]] {
        let prepared = world.prepare(words);
        assert!(prepared.upstreams.is_empty(), "{:?}", prepared.upstreams);
        assert!(prepared.notes.iter().any(|note| note.contains("past the model tap")), "{:?}", prepared.notes);
    }
    assert!(world.prepare(&["opencode", "-m", "openai/x"]).upstreams.contains_key("openai"));
    // Logins that go elsewhere, and configuration from elsewhere.
    let logins = r#"{"openai": {"type": "oauth"}, "google": {"type": "api"}}"#;
    let world = world.file("home/.local/share/opencode/auth.json", logins);
    let upstreams = world.prepare(&["opencode"]).upstreams;
    assert_eq!(upstreams.keys().collect::<Vec<_>>(), ["google", "openrouter"]);
    let world = world.file("home/.local/share/opencode/auth.json", r#"{"https://x.test": {"type": "wellknown"}}"#);
    assert!(world.prepare(&["opencode"]).upstreams.is_empty());
}

#[test]
fn words_for_a_shell_stay_words() {
    assert_eq!(shell_word("/usr/bin/bugeye"), "/usr/bin/bugeye");
    assert_eq!(shell_word("/a b/it's"), r"'/a b/it'\''s'");
    assert_eq!(shell_word(""), "''");
}

#[test]
fn copilot_gets_a_plugin_and_the_address_of_a_provider_of_the_user_s() {
    let address = "COPILOT_PROVIDER_BASE_URL";
    let world = World::new().set(address, "http://mine.test/v1/").set("COPILOT_PROVIDER_TRANSPORT", "websockets");
    let prepared = world.prepare(&["copilot", "-p", "x"]);
    let folder = world.root.path().join("private/copilot-plugin").display().to_string();
    assert_eq!(prepared.words, ["copilot", "--plugin-dir", &folder, "-p", "x"]);
    assert_eq!(prepared.upstreams["copilot"], "http://mine.test/v1");
    assert_eq!(prepared.env[address], "http://127.0.0.1:7/s/t/copilot");
    assert_eq!(prepared.env["COPILOT_PROVIDER_TRANSPORT"], "http");
    assert!(prepared.notes.is_empty(), "{:?}", prepared.notes);
    assert_eq!(world.written("copilot-plugin/plugin.json")["hooks"], "hooks.json");
    let hooks = world.written("copilot-plugin/hooks.json")["hooks"].clone();
    let command = "'/opt/my tools/bugeye' hook copilot preToolUse";
    let hook = json!([{"type": "command", "bash": command, "cwd": "/", "timeoutSec": 86_400}]);
    assert_eq!(hooks["preToolUse"], hook);
    // What goes wrong with a model call is told once.
    assert!(hooks.get("errorOccurred").is_none());
    // With a login of GitHub's.
    for world in [World::new(), World::new().set(address, "http://mine.test").set("COPILOT_PROVIDER_GHES_HOST", "h")] {
        let prepared = world.prepare(&["copilot"]);
        assert!(prepared.notes[0].contains("past the model tap"), "{:?}", prepared.notes);
        assert!(prepared.upstreams.is_empty() && !prepared.env.contains_key(address));
        assert!(world.written("copilot-plugin/hooks.json")["hooks"].get("errorOccurred").is_some());
        assert!(world.prepare_with(&["copilot"], None).notes.is_empty());
    }
    for url in ["http://a.test", "http://a.test/openai", "http://a.test/openai/v1"] {
        let world = World::new().set(address, url).set("COPILOT_PROVIDER_TYPE", "azure");
        assert_eq!(world.prepare(&["copilot"]).upstreams["copilot"], "http://a.test", "{url}");
    }
}
