//! Copilot's command line: a plugin of ours for this run, and the address of a provider of the user's own as a variable.

use std::fs;

use serde_json::{Map, Value as Json, json};

use super::{LONGEST_HOLD, Prepared, Wish};
use crate::agent::hook::{COPILOT_ERRORS, COPILOT_EVENTS};
use crate::failure::Failure;

const ADDRESS: &str = "COPILOT_PROVIDER_BASE_URL";

pub fn prepare(wish: &Wish, prepared: &mut Prepared) -> Result<(), Failure> {
    let is_tapped = tap(wish, prepared);
    let errors = (!is_tapped).then_some(COPILOT_ERRORS);
    let hook = |event: &str| {
        let command = format!("{} {event}", wish.hook("copilot"));
        // In a folder that stays: where it is gone, a hook fails, and with it the tool.
        json!([{"type": "command", "bash": command, "cwd": "/", "timeoutSec": LONGEST_HOLD}])
    };
    let hooks: Map<String, Json> =
        COPILOT_EVENTS.into_iter().chain(errors).map(|event| (event.to_string(), hook(event))).collect();
    let folder = wish.folder.join("copilot-plugin");
    fs::create_dir_all(&folder).map_err(|error| Failure::io(format!("make {}", folder.display()), &error))?;
    let about = json!({"name": "bugeye-debugger", "version": env!("CARGO_PKG_VERSION"), "hooks": "hooks.json"});
    wish.write("copilot-plugin/plugin.json", &about.to_string())?;
    wish.write("copilot-plugin/hooks.json", &json!({"version": 1, "hooks": hooks}).to_string())?;
    let at = wish.at();
    prepared.words.splice(at..at, ["--plugin-dir".to_string(), folder.display().to_string()]);
    Ok(())
}

/// Only a provider that is named has an address that is known: that of GitHub's models comes with the login.
fn tap(wish: &Wish, prepared: &mut Prepared) -> bool {
    // With this one, the provider is the server's to say.
    let theirs = wish.var(ADDRESS).filter(|_| wish.var("COPILOT_PROVIDER_GHES_HOST").is_none());
    let Some(theirs) = theirs else {
        if wish.model.is_some() {
            let how = format!(
                "Copilot asks GitHub's models past the model tap: model calls are not seen, only its hooks; those of a provider of your own are, if {ADDRESS} names it"
            );
            prepared.notes.push(how);
        }
        return false;
    };
    let mut url = theirs.trim_end_matches('/');
    if wish.var("COPILOT_PROVIDER_TYPE") == Some("azure") {
        // It adds these by itself where they are not.
        url = url.strip_suffix("/v1").filter(|url| url.ends_with("/openai")).unwrap_or(url);
        url = url.strip_suffix("/openai").unwrap_or(url);
    }
    let Some(tap) = wish.tap("copilot", url, prepared) else { return false };
    prepared.env.insert(ADDRESS.into(), tap);
    // Web sockets go past the tap.
    prepared.env.insert("COPILOT_PROVIDER_TRANSPORT".into(), "http".into());
    true
}
