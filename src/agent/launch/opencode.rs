//! OpenCode: a plugin of ours and the providers' addresses, in the configuration that a variable holds.

use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};

use super::{Prepared, Wish, flag, has_flag, push, put, settings, within};
use crate::failure::Failure;

/// Speaks to the socket from inside.
const PLUGIN: &str = include_str!("opencode.js");

/// Providers that it knows by itself, the variable that says where they are asked, and where that is without it.
const PROVIDERS: [(&str, &str, &str); 4] = [
    ("anthropic", "ANTHROPIC_BASE_URL", "https://api.anthropic.com/v1"),
    ("openai", "OPENAI_BASE_URL", "https://api.openai.com/v1"),
    ("google", "", "https://generativelanguage.googleapis.com/v1beta"),
    ("openrouter", "", "https://openrouter.ai/api/v1"),
];

const CONTENT: &str = "OPENCODE_CONFIG_CONTENT";

pub fn prepare(wish: &Wish, prepared: &mut Prepared) -> Result<(), Failure> {
    let mut ours = match wish.var(CONTENT).map(crate::launch_config::jsonc::parse) {
        None => Map::new(),
        Some(Ok(Json::Object(members))) => members,
        Some(_) => {
            prepared.notes.push(format!("{CONTENT} can't be read: it is left out"));
            Map::new()
        }
    };
    let plugin = wish.write("opencode-bugeye.js", PLUGIN)?;
    let files = files(wish);
    // Its lists are joined with those of the user's files.
    push(&mut ours, &["plugin"], json!(format!("file://{}", plugin.display())));
    if wish.model.is_some() {
        providers(wish, &files, &mut ours, prepared);
    }
    prepared.env.insert(CONTENT.into(), Json::Object(ours).to_string());
    if has_flag(wish.arguments(), "--pure") || wish.is_on("OPENCODE_PURE") {
        prepared.notes.push("`--pure` keeps plugins out of OpenCode: tools are not held; leave it out".into());
    }
    if has_flag(wish.arguments(), "--attach") {
        prepared.notes.push("`--attach` uses a server that runs already: nothing of it is seen or held".into());
    }
    Ok(())
}

/// Its configuration files, the one that counts most first.
fn files(wish: &Wish) -> Vec<Map<String, Json>> {
    let config =
        wish.var("XDG_CONFIG_HOME").map_or_else(|| wish.home().join(".config"), PathBuf::from).join("opencode");
    let mut project = Vec::new();
    for folder in wish.cwd.ancestors().filter(|_| !wish.is_on("OPENCODE_DISABLE_PROJECT_CONFIG")) {
        project.push(folder.to_path_buf());
        if folder.join(".git").exists() {
            break;
        }
    }
    let both = |folder: &PathBuf| ["opencode.jsonc", "opencode.json"].map(|name| folder.join(name));
    let mut first: Vec<PathBuf> = wish.var("OPENCODE_CONFIG_DIR").map(PathBuf::from).into_iter().collect();
    first.push(wish.home().join(".opencode"));
    first.extend(project.iter().map(|folder| folder.join(".opencode")));
    let mut paths: Vec<PathBuf> = first.iter().chain(&project).flat_map(both).collect();
    paths.extend(wish.var("OPENCODE_CONFIG").map(PathBuf::from));
    paths.extend(both(&config));
    paths.push(config.join("config.json"));
    paths.iter().filter_map(|path| settings(path)).collect()
}

/// How it is logged in, by provider: `oauth`, `api`, or `wellknown` for an address that more configuration comes from.
fn logins(wish: &Wish) -> Vec<(String, String)> {
    let data = wish.var("XDG_DATA_HOME").map_or_else(|| wish.home().join(".local/share"), PathBuf::from);
    let known = settings(&data.join("opencode/auth.json")).unwrap_or_default();
    let kind = |login: &Json| login.get("type").and_then(Json::as_str).unwrap_or_default().to_string();
    known.iter().map(|(id, login)| (id.clone(), kind(login))).collect()
}

fn providers(wish: &Wish, files: &[Map<String, Json>], ours: &mut Map<String, Json>, prepared: &mut Prepared) {
    let before = ours.clone();
    let all: Vec<&Map<String, Json>> = std::iter::once(&before).chain(files).collect();
    let logins = logins(wish);
    // Addresses from there are not known here.
    let is_remote = logins.iter().any(|(_, kind)| kind == "wellknown");
    let own = |id: &str| {
        let (_, variable, url) = PROVIDERS.iter().find(|(name, ..)| *name == id && !is_remote)?;
        let url = wish.var(variable).unwrap_or(url);
        // As its client for Anthropic reads it.
        Some(if url == "https://api.anthropic.com" { "https://api.anthropic.com/v1" } else { url })
    };
    let address = |id: &str| {
        let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && !id.starts_with('.');
        // A login of this kind has an address of its own.
        let by_login = logins.iter().any(|(name, kind)| name == id && kind == "oauth");
        let theirs = all.iter().find_map(|members| within(members, &["provider", id, "options", "baseURL"]));
        // What it puts together by itself, `{env:NAME}`, is not known here.
        let url = theirs.map_or_else(|| own(id), |url| url.as_str().filter(|url| !url.contains('{')));
        url.filter(|url| is_plain && !by_login && url.starts_with("http")).map(ToString::to_string)
    };
    let mut ids: Vec<&str> = PROVIDERS.iter().map(|(id, ..)| *id).collect();
    for members in &all {
        ids.extend(members.get("provider").and_then(Json::as_object).into_iter().flatten().map(|(id, _)| id.as_str()));
    }
    ids.sort_unstable();
    ids.dedup();
    let chosen = flag(wish.arguments(), &["--model", "-m"])
        .or_else(|| all.iter().find_map(|members| members.get("model")?.as_str()))
        .and_then(|model| Some(model.split_once('/')?.0));
    if let Some(id) = chosen.filter(|id| !ids.contains(id) || address(id).is_none()) {
        let how = format!(
            "OpenCode asks `{id}`, whose address is not known, past the model tap: model calls are seen by the plugin alone"
        );
        prepared.notes.push(how);
        return;
    }
    let mut unknown = Vec::new();
    for id in ids {
        match address(id) {
            Some(url) => {
                if let Some(tap) = wish.tap(id, &url, prepared) {
                    put(ours, &["provider", id, "options", "baseURL"], json!(tap));
                }
            }
            None => unknown.push(id),
        }
    }
    let also = if unknown.is_empty() { String::new() } else { format!(" (here: {})", unknown.join(", ")) };
    prepared.notes.push(format!(
        "OpenCode's model calls are seen for anthropic, openai, google, openrouter and providers with a `baseURL`; others go past the model tap{also}"
    ));
}
