//! The launcher: a coding agent's command line, with both taps set for this run only.
//!
//! An agent is known by the name of its program. Its hooks and its base URL are given by flags, by variables and by files
//! in the session's private folder; nothing of the user's is written. What the user's own flags, variables and settings
//! say is kept: a base URL of theirs is where the model tap passes calls on to. What can't be had is said in a note.

mod claude;
mod codex;
mod gemini;
mod opencode;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};

use crate::failure::Failure;

/// How long a hook may take, in seconds: who debugs may think for a day.
const LONGEST_HOLD: u64 = 86_400;

/// A settings file of an agent's is small.
const LARGEST_FILE: u64 = 4 << 20;

/// What is to be started, and what it is to be given.
#[derive(Debug, Clone)]
pub struct Wish<'a> {
    /// The program and its arguments.
    pub words: &'a [String],
    /// The environment it would have.
    pub env: &'a [(String, String)],
    pub cwd: &'a Path,
    /// This program, for hooks to call.
    pub exe: &'a Path,
    pub socket: &'a Path,
    pub token: &'a str,
    /// A folder of this session's alone, for files that the agent is to read.
    pub folder: &'a Path,
    /// Where the model tap listens (`http://127.0.0.1:PORT/s/TOKEN`); each provider is a path below it.
    pub model: Option<&'a str>,
}

/// What is started instead.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prepared {
    /// `claude`, `codex`, `gemini`, `opencode`, or `sdk`: one that is to speak to us by itself.
    pub agent: &'static str,
    pub words: Vec<String>,
    /// To be set on top of the environment it would have.
    pub env: BTreeMap<String, String>,
    /// For each provider below the model tap's address: the base URL that it stands for.
    pub upstreams: BTreeMap<String, String>,
    /// What the user should know: a power that is missing, a setting of theirs that stands in the way.
    pub notes: Vec<String>,
}

/// One agent that is known.
struct Agent {
    name: &'static str,
    /// The package that `npx` and the like are told.
    package: &'static str,
    prepare: fn(&Wish, &mut Prepared) -> Result<(), Failure>,
}

const AGENTS: [Agent; 4] = [
    Agent { name: "claude", package: "@anthropic-ai/claude-code", prepare: claude::prepare },
    Agent { name: "codex", package: "@openai/codex", prepare: codex::prepare },
    Agent { name: "gemini", package: "@google/gemini-cli", prepare: gemini::prepare },
    Agent { name: "opencode", package: "opencode-ai", prepare: opencode::prepare },
];

/// Programs that run a package: what they run is the first of their words that names an agent.
const RUNNERS: [&str; 6] = ["npx", "bunx", "pnpx", "node", "bun", "deno"];

/// The command line and environment of an agent with both taps.
pub fn prepare(wish: &Wish) -> Result<Prepared, Failure> {
    let mut prepared = Prepared { agent: "sdk", words: wish.words.to_vec(), ..Prepared::default() };
    let text = |path: &Path| path.display().to_string();
    prepared.env.insert("BUGEYE_AGENT_SOCKET".into(), text(wish.socket));
    prepared.env.insert("BUGEYE_AGENT_TOKEN".into(), wish.token.into());
    prepared.env.insert("BUGEYE_AGENT_DIR".into(), text(wish.folder));
    // A token in the address is no good to a proxy.
    if wish.model.is_some() {
        for name in ["NO_PROXY", "no_proxy"] {
            prepared.env.insert(name.into(), past_proxies(wish.var(name)));
        }
    }
    match find(wish.words) {
        Some((agent, _)) => {
            prepared.agent = agent.name;
            (agent.prepare)(wish, &mut prepared)?;
        }
        None => any(wish, &mut prepared),
    }
    Ok(prepared)
}

/// The loopback address is reached without a proxy.
fn past_proxies(now: Option<&str>) -> String {
    match now {
        Some(hosts) if hosts == "*" || hosts.split(',').any(|host| host.trim() == "127.0.0.1") => hosts.into(),
        Some(hosts) if !hosts.is_empty() => format!("{hosts},127.0.0.1"),
        _ => "127.0.0.1".into(),
    }
}

/// Whether these words start one of the agents that are known, as they are.
#[must_use]
pub fn is_known(words: &[String]) -> bool {
    find(words).is_some()
}

/// Which agent the words start, and where among them its own begin.
fn find(words: &[String]) -> Option<(&'static Agent, usize)> {
    let program = stem(words.first()?);
    let named = |word: &str| {
        AGENTS.iter().find(|agent| {
            let package = word.strip_prefix(agent.package);
            stem(word) == agent.name || package.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
        })
    };
    if let Some(agent) = AGENTS.iter().find(|agent| agent.name == program) {
        return Some((agent, 1));
    }
    if !RUNNERS.contains(&program.as_str()) {
        return None;
    }
    let at = 1 + words.iter().skip(1).take(4).position(|word| !word.starts_with('-') && named(word).is_some())?;
    Some((named(&words[at])?, at + 1))
}

/// `claude` of `/usr/bin/claude` or `claude.js`.
fn stem(word: &str) -> String {
    let name = Path::new(word).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    ["js", "mjs", "cjs", "cmd", "exe"]
        .iter()
        .find_map(|ending| name.strip_suffix(&format!(".{ending}")).map(Into::into))
        .unwrap_or(name)
}

/// A program of whatever kind: its clients of the usual APIs find the model tap by the variables that they all read.
fn any(wish: &Wish, prepared: &mut Prepared) {
    for (provider, names, url) in [
        ("anthropic", &["ANTHROPIC_BASE_URL"][..], "https://api.anthropic.com"),
        ("openai", &["OPENAI_BASE_URL", "OPENAI_API_BASE"], "https://api.openai.com/v1"),
        ("gemini", &["GOOGLE_GEMINI_BASE_URL"], "https://generativelanguage.googleapis.com"),
    ] {
        let theirs = names.iter().find_map(|name| wish.var(name));
        if let Some(tap) = wish.tap(provider, theirs.unwrap_or(url), prepared) {
            prepared.env.extend(names.iter().map(|name| ((*name).to_string(), tap.clone())));
        }
    }
}

impl Wish<'_> {
    /// A variable that is set to something.
    fn var(&self, name: &str) -> Option<&str> {
        let found = self.env.iter().rev().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    fn is_on(&self, name: &str) -> bool {
        self.var(name).is_some_and(|value| !["0", "false", "no", "off"].contains(&value.to_ascii_lowercase().as_str()))
    }

    /// Where the agent begins among the words; what it is given by us goes there.
    fn at(&self) -> usize {
        find(self.words).map_or(1, |(_, at)| at)
    }

    /// The agent's own words.
    fn arguments(&self) -> &[String] {
        self.words.get(self.at()..).unwrap_or_default()
    }

    /// The user's home, as the agent sees it.
    fn home(&self) -> PathBuf {
        self.var("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from)
    }

    /// The address at which a provider is tapped, if models are; calls there go on to `url`.
    fn tap(&self, provider: &str, url: &str, prepared: &mut Prepared) -> Option<String> {
        let base = self.model?;
        prepared.upstreams.insert(provider.into(), url.trim_end_matches('/').into());
        Some(format!("{}/{provider}", base.trim_end_matches('/')))
    }

    /// The hook's command, for a shell.
    fn hook(&self, agent: &str) -> String {
        format!("{} hook {agent}", shell_word(&self.exe.display().to_string()))
    }

    /// Writes a file for the agent to read.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.folder.join(name);
        let failed = |error| Failure::io(format!("write {}", path.display()), &error);
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(path)
    }
}

/// A word that a shell leaves as it is.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The value of a flag in either form, with the place of its words. The last one counts.
fn flag<'a>(words: &'a [String], names: &[&str]) -> Option<(std::ops::Range<usize>, &'a str)> {
    let ours = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut found = None;
    for (at, word) in words[..ours].iter().enumerate() {
        for name in names {
            if word == name {
                found = words[..ours].get(at + 1).map(|value| (at..at + 2, value.as_str()));
            } else if let Some(value) = word.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                found = Some((at..at + 1, value));
            }
        }
    }
    found
}

fn has_flag(words: &[String], name: &str) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == name)
}

/// A settings file, comments and all. None if it isn't there, or is none.
fn settings(path: &Path) -> Option<Map<String, Json>> {
    let known = fs::metadata(path).ok()?;
    if !known.is_file() || known.len() > LARGEST_FILE {
        return None;
    }
    match crate::launch_config::jsonc::parse(&fs::read_to_string(path).ok()?).ok()? {
        Json::Object(members) => Some(members),
        _ => None,
    }
}

/// A member of members, as `env.NAME`.
fn within<'a>(members: &'a Map<String, Json>, path: &[&str]) -> Option<&'a Json> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(members.get(*first)?, |value, name| value.get(name))
}

/// Puts a value at a path, where what is on the way is an object or nothing.
fn put(members: &mut Map<String, Json>, path: &[&str], value: Json) {
    let Some((first, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        members.insert((*first).into(), value);
        return;
    }
    let inner = members.entry(*first).or_insert_with(|| Json::Object(Map::new()));
    if !inner.is_object() {
        *inner = Json::Object(Map::new());
    }
    if let Json::Object(inner) = inner {
        put(inner, rest, value);
    }
}

/// Adds to a list, which is made where there is none.
fn push(members: &mut Map<String, Json>, path: &[&str], value: Json) {
    let mut list = within(members, path).and_then(Json::as_array).cloned().unwrap_or_default();
    list.push(value);
    put(members, path, Json::Array(list));
}

#[cfg(test)]
mod tests;
