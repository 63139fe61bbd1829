//! Claude Code: `--settings` with our hooks beside the user's own, and the base URL as a variable.

use serde_json::{Map, Value as Json, json};

use super::{LONGEST_HOLD, Prepared, Wish, flags, has_flag, is_yes, push, put, settings, within};
use crate::agent::hook::CLAUDE_EVENTS;
use crate::failure::Failure;

/// It counts in milliseconds. The last two are cut to 30 minutes by itself.
const TIMES: [&str; 3] = ["API_TIMEOUT_MS", "CLAUDE_STREAM_FIRST_BYTE_TIMEOUT_MS", "CLAUDE_STREAM_IDLE_TIMEOUT_MS"];

/// With these the model is asked elsewhere than at the base URL.
const ELSEWHERE: [(&str, &str); 6] = [
    ("CLAUDE_CODE_USE_BEDROCK", "Bedrock"),
    ("CLAUDE_CODE_USE_VERTEX", "Vertex AI"),
    ("CLAUDE_CODE_USE_FOUNDRY", "Foundry"),
    ("CLAUDE_CODE_USE_MANTLE", "Bedrock"),
    ("CLAUDE_CODE_USE_ANTHROPIC_AWS", "AWS"),
    ("CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "Google Cloud"),
];

pub fn prepare(wish: &Wish, prepared: &mut Prepared) -> Result<(), Failure> {
    let arguments = wish.arguments();
    // The last one counts with it too.
    let given = flags(arguments, &["--settings"]);
    let mut ours = Map::new();
    if let Some((_, value)) = given.last() {
        match theirs(wish, value) {
            Some(members) => ours = members,
            None => prepared.notes.push(format!("`--settings {value}` can't be read as settings; it is left out")),
        }
    }
    let files = files(wish);
    let all: Vec<&Map<String, Json>> = std::iter::once(&ours).chain(&files).collect();
    warn(wish, &all, prepared);
    let elsewhere = elsewhere(wish, &all);
    let theirs_of = |name: &str| all.iter().find_map(|members| within(members, &["env", name])?.as_str());
    let upstream = theirs_of("ANTHROPIC_BASE_URL").or_else(|| wish.var("ANTHROPIC_BASE_URL"));
    let upstream = upstream.unwrap_or("https://api.anthropic.com").to_string();
    let set_times: Vec<&str> =
        TIMES.into_iter().filter(|name| theirs_of(name).is_none() && wish.var(name).is_none()).collect();
    drop(all);

    for event in CLAUDE_EVENTS {
        // It waits for the last of them a second and a half, whatever is said here.
        let hook = json!({"type": "command", "command": wish.hook("claude"), "timeout": LONGEST_HOLD});
        push(&mut ours, &["hooks", event], json!({"hooks": [hook]}));
    }
    if let Some(name) = elsewhere {
        if wish.model.is_some() {
            let how = format!("Claude Code asks its model at {name}, past the model tap: model calls are not seen");
            prepared.notes.push(how);
        }
    } else if let Some(tap) = wish.tap("anthropic", &upstream, prepared) {
        // Here too: the variables of a settings file of the user's come before those of the process.
        put(&mut ours, &["env", "ANTHROPIC_BASE_URL"], json!(tap));
        prepared.env.insert("ANTHROPIC_BASE_URL".into(), tap);
        for name in set_times {
            prepared.env.insert(name.into(), (LONGEST_HOLD * 1000).to_string());
        }
    }
    let file = wish.write("claude-settings.json", &Json::Object(ours).to_string())?;
    let mut words = arguments.to_vec();
    for (place, _) in given.into_iter().rev() {
        words.drain(place);
    }
    words.splice(0..0, ["--settings".to_string(), file.display().to_string()]);
    prepared.words.truncate(wish.at());
    prepared.words.extend(words);
    Ok(())
}

/// What the user gave: JSON, or the path of a file of it.
fn theirs(wish: &Wish, value: &str) -> Option<Map<String, Json>> {
    if value.trim_start().starts_with('{') {
        return serde_json::from_str(value).ok();
    }
    settings(&wish.cwd.join(value))
}

/// Its settings files, the one that counts most first.
fn files(wish: &Wish) -> Vec<Map<String, Json>> {
    let user = wish.var("CLAUDE_CONFIG_DIR").map_or_else(|| wish.home().join(".claude"), Into::into);
    let project = wish.cwd.join(".claude");
    let paths = [project.join("settings.local.json"), project.join("settings.json"), user.join("settings.json")];
    paths.iter().filter_map(|path| settings(path)).collect()
}

fn warn(wish: &Wish, all: &[&Map<String, Json>], prepared: &mut Prepared) {
    let mut note = |text: String| prepared.notes.push(text);
    let off = all.iter().find_map(|members| members.get("disableAllHooks").and_then(Json::as_bool));
    if has_flag(wish.arguments(), "--bare") || wish.is_on("CLAUDE_CODE_SIMPLE") {
        note("`--bare` switches Claude Code's hooks off: tools are not held; leave it out".into());
    } else if off == Some(true) {
        note("`disableAllHooks` in Claude Code's settings switches hooks off: tools are not held".into());
    }
}

/// Who is asked in the place of the base URL. A settings file's word goes before that of the process.
fn elsewhere(wish: &Wish, all: &[&Map<String, Json>]) -> Option<&'static str> {
    let said = |name: &str| all.iter().find_map(|members| within(members, &["env", name])?.as_str());
    let is_on = |name: &str| said(name).map_or_else(|| wish.is_on(name), is_yes);
    ELSEWHERE.iter().find(|(name, _)| is_on(name)).map(|(_, name)| *name)
}
