//! Gemini CLI: a home of its own below the session's folder, in which all is the user's but for the hooks.
//!
//! It takes system settings only from files that belong to root, so those are no way. What it would find in the user's
//! `.gemini` it finds there by links; only `settings.json` is another, with our hooks added.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::{LONGEST_HOLD, Prepared, Wish, dotenv, push, put, settings, within};
use crate::agent::hook::GEMINI_EVENTS;
use crate::failure::Failure;

const SETTINGS: &str = "settings.json";

/// Where its settings say how it logs in.
const CHOSEN: [&str; 3] = ["security", "auth", "selectedType"];

pub fn prepare(wish: &Wish, prepared: &mut Prepared) -> Result<(), Failure> {
    let home = wish.var("GEMINI_CLI_HOME").map_or_else(|| wish.home(), PathBuf::from);
    let theirs = home.join(".gemini");
    let mut ours = settings(&theirs.join(SETTINGS)).unwrap_or_default();
    if theirs.join(SETTINGS).exists() && ours.is_empty() {
        prepared.notes.push(format!("{} can't be read, or is empty: it is left out", theirs.join(SETTINGS).display()));
    }
    let workspace = settings(&wish.cwd.join(".gemini").join(SETTINGS)).unwrap_or_default();
    warn(&ours, &workspace, prepared);
    tap(wish, &home, &mut ours, &workspace, prepared);
    // Where variables are kept from hooks by their names, these are told to ours beside them.
    let told = [("BUGEYE_AGENT_SOCKET", wish.socket.display().to_string()), ("BUGEYE_AGENT_TOKEN", wish.token.into())];
    let env: Map<String, Json> = told.into_iter().map(|(name, value)| (name.to_string(), json!(value))).collect();
    for event in GEMINI_EVENTS {
        let hook = json!({"type": "command", "name": "bugeye", "command": wish.hook("gemini"), "timeout": LONGEST_HOLD * 1000, "env": env});
        push(&mut ours, &["hooks", event], json!({"matcher": "*", "hooks": [hook]}));
    }
    let mirror = wish.folder.join("gemini-home");
    fill(&home, &mirror).map_err(|error| Failure::io(format!("make {}", mirror.display()), &error))?;
    wish.write("gemini-home/.gemini/settings.json", &Json::Object(ours).to_string())?;
    prepared.env.insert("GEMINI_CLI_HOME".into(), mirror.display().to_string());
    Ok(())
}

/// Files of variables that it may read. Which of them it reads, and what it takes of that, hangs on whether it trusts the
/// folder.
fn files(wish: &Wish, home: &Path) -> Vec<(PathBuf, BTreeMap<String, String>)> {
    let folders = wish.cwd.ancestors().chain([home]);
    let paths = folders.flat_map(|folder| [folder.join(".gemini/.env"), folder.join(".env")]);
    paths.filter_map(|path| Some((path.clone(), dotenv(&path)?))).collect()
}

/// Links to all that it may look for in its home, but for the settings.
fn fill(home: &Path, mirror: &Path) -> std::io::Result<()> {
    let theirs = home.join(".gemini");
    fs::create_dir_all(mirror.join(".gemini"))?;
    for name in [".agents", ".env"] {
        if home.join(name).exists() {
            link(&home.join(name), &mirror.join(name))?;
        }
    }
    let Ok(entries) = fs::read_dir(&theirs) else { return Ok(()) };
    for entry in entries.flatten().filter(|entry| entry.file_name() != SETTINGS) {
        link(&entry.path(), &mirror.join(".gemini").join(entry.file_name()))?;
    }
    Ok(())
}

fn link(to: &Path, at: &Path) -> std::io::Result<()> {
    match symlink(to, at) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

fn warn(ours: &Map<String, Json>, workspace: &Map<String, Json>, prepared: &mut Prepared) {
    let says = |path: &[&str]| within(workspace, path).or_else(|| within(ours, path)).and_then(Json::as_bool);
    if says(&["hooksConfig", "enabled"]) == Some(false) || says(&["hooks", "enabled"]) == Some(false) {
        prepared.notes.push("Gemini CLI's settings switch hooks off: tools are not held".into());
    }
    prepared.notes.push(
        "Gemini CLI runs hooks only in a folder that it trusts; settings that it changes in this run are not kept"
            .into(),
    );
}

/// Variables that say where its model is.
const PLACES: [&str; 4] =
    ["GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"];

/// Which address its model has, by how it has been told to log in.
fn tap(wish: &Wish, home: &Path, ours: &mut Map<String, Json>, workspace: &Map<String, Json>, prepared: &mut Prepared) {
    let files = files(wish, home);
    let in_a_file = |name: &str| files.iter().find(|(_, set)| wish.var(name).is_none() && set.contains_key(name));
    if let Some((name, path)) = PLACES.iter().find_map(|name| Some((name, &in_a_file(name)?.0)))
        && wish.model.is_some()
    {
        let file = path.display();
        let how = format!(
            "whether Gemini CLI heeds `{name}` in {file} is not known: model calls are seen by hooks alone; set it in the environment"
        );
        prepared.notes.push(how);
        return;
    }
    let chosen = within(workspace, &CHOSEN).or_else(|| within(ours, &CHOSEN));
    let chosen = chosen.and_then(Json::as_str).map(ToString::to_string);
    let has = |name: &str| wish.var(name).is_some() || in_a_file(name).is_some();
    let by_env = if wish.is_on("GOOGLE_GENAI_USE_GCA") {
        "oauth-personal"
    } else if wish.is_on("GOOGLE_GENAI_USE_VERTEXAI") {
        "vertex-ai"
    } else if has("GEMINI_API_KEY") || has("GOOGLE_GEMINI_BASE_URL") {
        "gemini-api-key"
    } else {
        ""
    };
    let (provider, name, url) = match chosen.as_deref().unwrap_or(by_env) {
        "gemini-api-key" | "gateway" => {
            ("gemini", "GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com".to_string())
        }
        "vertex-ai" => {
            let place = in_a_file("GOOGLE_CLOUD_LOCATION").map(|(_, set)| set["GOOGLE_CLOUD_LOCATION"].as_str());
            let place = wish.var("GOOGLE_CLOUD_LOCATION").or(place).unwrap_or("global");
            let host = if place == "global" { String::new() } else { format!("{place}-") };
            ("vertex", "GOOGLE_VERTEX_BASE_URL", format!("https://{host}aiplatform.googleapis.com"))
        }
        _ if wish.model.is_none() => return,
        _ => {
            let how = "with a login of Google's Gemini CLI asks its model past the model tap: model calls are seen by hooks alone";
            prepared.notes.push(how.into());
            return;
        }
    };
    let theirs = wish.var(name).map_or(url, Into::into);
    if let Some(tap) = wish.tap(provider, &theirs, prepared) {
        prepared.env.insert(name.into(), tap);
        // An address without this word is a way to log in that it then refuses.
        if chosen.is_none() {
            put(ours, &CHOSEN, json!(by_env));
        }
    }
}
