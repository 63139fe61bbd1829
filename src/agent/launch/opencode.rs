//! OpenCode: a plugin of ours and the providers' addresses, in the configuration that a variable holds.

use std::path::PathBuf;

use serde_json::{Map, Value as Json, json};

use super::{Prepared, Wish, has_flag, push, put, settings, within};
use crate::failure::Failure;

/// Speaks to the socket from inside.
const PLUGIN: &str = include_str!("opencode.js");

/// Providers that it knows by itself, and where they are asked.
const PROVIDERS: [(&str, &str); 4] = [
    ("anthropic", "https://api.anthropic.com/v1"),
    ("openai", "https://api.openai.com/v1"),
    ("google", "https://generativelanguage.googleapis.com/v1beta"),
    ("openrouter", "https://openrouter.ai/api/v1"),
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
    let config = wish.var("XDG_CONFIG_HOME").map_or_else(|| wish.home().join(".config"), PathBuf::from);
    let mut folders: Vec<PathBuf> = wish.var("OPENCODE_CONFIG_DIR").map(PathBuf::from).into_iter().collect();
    for folder in wish.cwd.ancestors() {
        folders.push(folder.to_path_buf());
        if folder.join(".git").exists() {
            break;
        }
    }
    folders.push(config.join("opencode"));
    let in_folders =
        folders.iter().flat_map(|folder| ["opencode.jsonc", "opencode.json"].map(|name| folder.join(name)));
    let named = wish.var("OPENCODE_CONFIG").map(PathBuf::from);
    named.into_iter().chain(in_folders).filter_map(|path| settings(&path)).collect()
}

fn providers(wish: &Wish, files: &[Map<String, Json>], ours: &mut Map<String, Json>, prepared: &mut Prepared) {
    let before = ours.clone();
    let all: Vec<&Map<String, Json>> = std::iter::once(&before).chain(files).collect();
    let theirs = |id: &str| {
        let url = all.iter().find_map(|members| within(members, &["provider", id, "options", "baseURL"])?.as_str());
        url.filter(|url| url.starts_with("http")).map(Into::into)
    };
    let mut ids: Vec<String> = PROVIDERS.iter().map(|(id, _)| (*id).to_string()).collect();
    for members in &all {
        ids.extend(members.get("provider").and_then(Json::as_object).into_iter().flat_map(|all| all.keys().cloned()));
    }
    ids.sort();
    ids.dedup();
    let mut unknown = Vec::new();
    for id in ids {
        let own = PROVIDERS.iter().find(|(name, _)| *name == id).map(|(_, url)| (*url).to_string());
        let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)) && !id.starts_with('.');
        match theirs(&id).or(own).filter(|_| is_plain) {
            Some(url) => {
                if let Some(tap) = wish.tap(&id, &url, prepared) {
                    put(ours, &["provider", &id, "options", "baseURL"], json!(tap));
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
