//! Codex: hooks and provider by `-c`, which is for one run. Hooks run only if they are trusted; ours are trusted by their
//! hash, so that others that nobody has looked at stay off.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};
use toml::{Table, Value};

use super::{LONGEST_HOLD, Prepared, Wish, flag, read};
use crate::agent::hook::CODEX_EVENTS;
use crate::failure::Failure;

/// Where it believes hooks of the command line to be.
const FLAGS: &str = "/<session-flags>/config.toml";

/// What counts for all users of a machine.
const SYSTEM: &str = "/etc/codex/config.toml";

pub fn prepare(wish: &Wish, prepared: &mut Prepared) -> Result<(), Failure> {
    let config = config(wish);
    let mut settings = hooks(wish, &config, prepared);
    provider(wish, &config, &mut settings, prepared);
    let words = settings.into_iter().flat_map(|setting| ["-c".to_string(), setting]);
    let at = wish.at();
    prepared.words.splice(at..at, words);
    Ok(())
}

/// A text as TOML has it; for what has no odd control characters that is as JSON has it.
fn quoted(text: &str) -> String {
    json!(text).to_string()
}

fn hooks(wish: &Wish, config: &Table, prepared: &mut Prepared) -> Vec<String> {
    let command = wish.hook("codex");
    let mut settings = Vec::new();
    let mut trusted = String::new();
    for event in CODEX_EVENTS {
        // It waits no longer at its end.
        let seconds = if event == "SessionEnd" { 3 } else { LONGEST_HOLD };
        settings.push(format!(
            "hooks.{event}=[{{hooks=[{{type=\"command\",command={},timeout={seconds}}}]}}]",
            quoted(&command)
        ));
        let (name, hash) = trust(event, &command, seconds);
        let _ = write!(trusted, "{}={{trusted_hash={}}},", quoted(&format!("{FLAGS}:{name}:0:0")), quoted(&hash));
    }
    settings.push(format!("hooks.state={{{}}}", trusted.trim_end_matches(',')));
    if config.get("features").and_then(|features| features.get("hooks")).and_then(Value::as_bool) == Some(false) {
        prepared.notes.push("`features.hooks = false` switches Codex's hooks off: tools are not held".into());
    }
    if overrides(wish).any(|setting| setting.starts_with("hooks.")) {
        prepared.notes.push("hooks given with `-c` take the place of the debugger's for the same event".into());
    }
    settings
}

/// The event as it writes it, and the hash of a hook that it takes as seen and allowed.
pub fn trust(event: &str, command: &str, seconds: u64) -> (String, String) {
    let mut name = String::new();
    for c in event.chars() {
        if c.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(c.to_lowercase());
    }
    // Members in order of their names.
    let hook = json!({"async": false, "command": command, "timeout": seconds, "type": "command"});
    let identity = json!({"event_name": name, "hooks": [hook]}).to_string();
    let hash = Sha256::digest(identity.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    (name, format!("sha256:{hash}"))
}

/// What `-c` sets.
fn overrides<'a>(wish: &'a Wish) -> impl Iterator<Item = &'a str> {
    let words = wish.arguments();
    words.iter().enumerate().filter_map(|(at, word)| match word.as_str() {
        "-c" | "--config" => words.get(at + 1).map(String::as_str),
        _ => word.strip_prefix("--config=").or_else(|| word.strip_prefix("-c").filter(|rest| rest.contains('='))),
    })
}

fn home(wish: &Wish) -> PathBuf {
    wish.var("CODEX_HOME").map_or_else(|| wish.home().join(".codex"), Into::into)
}

/// The configuration of the machine, of the user, of the profile, and of the command line, each on top of the one before.
/// A project's can't name a provider or an address.
fn config(wish: &Wish) -> Table {
    let mut config = Table::new();
    let profile = flag(wish.arguments(), &["--profile", "-p"]).map(|name| format!("{name}.config.toml"));
    let files =
        [Some(PathBuf::from(SYSTEM)), Some(home(wish).join("config.toml")), profile.map(|name| home(wish).join(name))];
    for text in files.into_iter().flatten().filter_map(|path| read(&path)) {
        merge(&mut config, text.parse().unwrap_or_default());
    }
    for (key, value) in overrides(wish).filter_map(|setting| setting.split_once('=')) {
        // What is no value is a text without its quotes.
        let set = format!("{key}={value}").parse().or_else(|_| format!("{key}={}", quoted(value.trim())).parse());
        merge(&mut config, set.unwrap_or_default());
    }
    config
}

fn merge(config: &mut Table, more: Table) {
    for (name, value) in more {
        match (config.get_mut(&name), value) {
            (Some(Value::Table(inner)), Value::Table(value)) => merge(inner, value),
            (_, value) => drop(config.insert(name, value)),
        }
    }
}

/// Which provider is asked, and at what address; it is told ours in its place.
fn provider(wish: &Wish, config: &Table, settings: &mut Vec<String>, prepared: &mut Prepared) {
    let Some(base) = wish.model else { return };
    let said = |name: &str| config.get(name)?.as_str().map(ToString::to_string);
    let id = said("model_provider").unwrap_or_else(|| "openai".into());
    if wish.arguments().iter().any(|word| word == "--oss") || ["oss", "ollama", "lmstudio"].contains(&id.as_str()) {
        prepared.notes.push("Codex asks a model of this machine, past the model tap: model calls are not seen".into());
        return;
    }
    let theirs = config.get("model_providers").and_then(|all| all.get(&id)?.get("base_url")?.as_str());
    let mut set = |name: &str, value: String| settings.push(format!("{name}={value}"));
    let silence = (LONGEST_HOLD * 1000).to_string();
    match theirs {
        Some(url) if id.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c)) => {
            let Some(tap) = wish.tap(&id, url, prepared) else { return };
            set(&format!("model_providers.{id}.base_url"), quoted(&tap));
            set(&format!("model_providers.{id}.supports_websockets"), "false".into());
            set(&format!("model_providers.{id}.stream_idle_timeout_ms"), silence);
        }
        None if id == "openai" => {
            let url = match said("openai_base_url") {
                Some(url) => url,
                None if said("cli_auth_credentials_store").is_some_and(|store| store != "file") => {
                    prepared
                        .notes
                        .push("how Codex is logged in is kept where it can't be read: model calls are not seen".into());
                    return;
                }
                None => (if by_login(wish) { LOGIN } else { KEY }).into(),
            };
            if wish.tap("openai", &url, prepared).is_none() {
                return;
            }
            // A brother of its own provider: that one can't be told to do without web sockets.
            let tap = quoted(&format!("{}/openai", base.trim_end_matches('/')));
            set("model_provider", quoted("bugeye"));
            set(
                "model_providers.bugeye",
                format!(
                    "{{name=\"OpenAI\",base_url={tap},wire_api=\"responses\",requires_openai_auth=true,\
                     supports_websockets=false,stream_idle_timeout_ms={silence}}}"
                ),
            );
            set("features.enable_request_compression", "false".into());
        }
        _ => prepared
            .notes
            .push(format!("Codex's provider `{id}` has no address that is known: model calls are not seen")),
    }
}

/// Where it asks with a key, and where with a login.
const KEY: &str = "https://api.openai.com/v1";
const LOGIN: &str = "https://chatgpt.com/backend-api/codex";

fn by_login(wish: &Wish) -> bool {
    let text = std::fs::read_to_string(home(wish).join("auth.json")).unwrap_or_default();
    let auth: Json = serde_json::from_str(&text).unwrap_or_default();
    let has = |name: &str| auth.get(name).is_some_and(|value| !value.is_null());
    match auth.get("auth_mode").and_then(Json::as_str) {
        Some(mode) => mode.to_ascii_lowercase().starts_with("chatgpt"),
        None => has("tokens") && !has("OPENAI_API_KEY"),
    }
}
