//! How a test drives each of the real agents: its words, its shell, and what its user has set.

use std::fs;

use serde_json::{Value, json};

use crate::model::Model;
use crate::{SETTINGS_OF_CODEX, World};

/// How a test drives one of them.
pub struct Agent {
    pub name: &'static str,
    /// Its shell, and what that takes.
    pub shell: &'static str,
    pub input: fn(&str) -> Value,
    pub words: &'static [&'static str],
    pub env: &'static [(&'static str, &'static str)],
    /// What the user has set, in the home and in the project.
    pub settings: fn(&World, &Model),
}

pub const CLAUDE: Agent = Agent {
    name: "claude",
    shell: "Bash",
    input: |command| json!({"command": command, "description": "a test"}),
    words: &["-p", "Say hello.", "--allowedTools", "Bash"],
    env: &[
        ("ANTHROPIC_API_KEY", "none"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ],
    settings: |_, _| {},
};

pub const CODEX: Agent = Agent {
    name: "codex",
    shell: "exec_command",
    input: |command| json!({"cmd": command}),
    words: &["exec", "--skip-git-repo-check", "Say hello."],
    env: &[("TEST_KEY", "none")],
    settings: |world, model| {
        let text = SETTINGS_OF_CODEX.replace("URL", &model.url()).replace("read-only", "danger-full-access");
        fs::create_dir_all(world.home.join(".codex")).unwrap();
        fs::write(world.home.join(".codex/config.toml"), text).unwrap();
    },
};

pub const COPILOT: Agent = Agent {
    name: "copilot",
    shell: "bash",
    input: |command| json!({"command": command, "description": "a test"}),
    words: &["-p", "Say hello.", "--allow-all-tools"],
    env: &[("COPILOT_MODEL", "none"), ("COPILOT_PROVIDER_API_KEY", "none"), ("COPILOT_OFFLINE", "true")],
    settings: |world, _| {
        let mine = format!("touch {}", world.project.join("mine.txt").display());
        let hooks = json!({"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": mine}]}});
        fs::create_dir_all(world.home.join(".copilot/hooks")).unwrap();
        fs::write(world.home.join(".copilot/hooks/mine.json"), hooks.to_string()).unwrap();
        fs::write(world.home.join(".copilot/settings.json"), r#"{"banner": "never"}"#).unwrap();
    },
};

pub const GEMINI: Agent = Agent {
    name: "gemini",
    shell: "run_shell_command",
    input: |command| json!({"command": command, "description": "a test"}),
    words: &["-p", "Say hello.", "-m", "gemini-2.5-pro", "--approval-mode", "yolo"],
    env: &[("GEMINI_API_KEY", "none"), ("GEMINI_CLI_TRUST_WORKSPACE", "true")],
    settings: |world, _| {
        let settings = json!({"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}});
        fs::create_dir_all(world.home.join(".gemini")).unwrap();
        fs::write(world.home.join(".gemini/settings.json"), settings.to_string()).unwrap();
    },
};

pub const OPENCODE: Agent = Agent {
    name: "opencode",
    shell: "bash",
    input: |command| json!({"command": command, "description": "a test"}),
    words: &["run", "--model", "test/none", "Say hello."],
    env: &[
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        // With plugins it waits for packages that it fetches beside, and goes on without them.
        ("npm_config_offline", "true"),
    ],
    settings: |world, model| {
        let options = json!({"baseURL": format!("{}/v1", model.url()), "apiKey": "none"});
        let test = json!({"npm": "@ai-sdk/openai-compatible", "name": "Test", "options": options,
            "models": {"none": {"name": "none", "tool_call": true}}});
        // OpenCode adds the schema where it is not named.
        let config = json!({"$schema": "https://opencode.ai/config.json", "provider": {"test": test}, "permission": {"bash": "allow"}, "share": "disabled",
            "plugin": ["./mine.js"]});
        let mine = "import fs from 'node:fs'\nexport const Mine = async () => { fs.writeFileSync('mine.txt', ''); return {} }\n";
        fs::write(world.project.join("mine.js"), mine).unwrap();
        fs::write(world.project.join("opencode.json"), config.to_string()).unwrap();
    },
};
