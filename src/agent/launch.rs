//! The launcher: a coding agent's command line, with both taps set for this run only.
//!
//! An agent is known by the name of its program. Its hooks and its base URL are given by flags, by variables and by files
//! in the session's private folder; nothing of the user's is written. What the user's own flags, variables and settings
//! say is kept: a base URL of theirs is where the model tap passes calls on to. What can't be had is said in a note.

mod claude;
mod codex;
mod copilot;
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
    /// `claude`, `codex`, `copilot`, `gemini`, `opencode`, or `sdk`: one that is to speak to us by itself.
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

const AGENTS: [Agent; 5] = [
    Agent { name: "claude", package: "@anthropic-ai/claude-code", prepare: claude::prepare },
    Agent { name: "codex", package: "@openai/codex", prepare: codex::prepare },
    Agent { name: "copilot", package: "@github/copilot", prepare: copilot::prepare },
    Agent { name: "gemini", package: "@google/gemini-cli", prepare: gemini::prepare },
    Agent { name: "opencode", package: "opencode-ai", prepare: opencode::prepare },
];

/// Programs that run others: their options that take the next word, and how many words of their own come before the command.
const RUNNERS: [(&str, &[&str], usize); 9] = [
    ("timeout", &["-k", "--kill-after", "-s", "--signal"], 1),
    ("nice", &["-n", "--adjustment"], 0),
    ("nohup", &[], 0),
    ("npx", &["-p", "--package"], 0),
    ("bunx", &["-p", "--package"], 0),
    ("pnpx", &["-p", "--package"], 0),
    ("node", &[], 0),
    ("bun", &[], 0),
    ("deno", &[], 0),
];

/// The command line and environment of an agent with both taps.
pub fn prepare(wish: &Wish) -> Result<Prepared, Failure> {
    let (words, set) = without_env(wish.words);
    let env = [wish.env, &set].concat();
    let wish = &Wish { words: &words, env: &env, ..wish.clone() };
    let mut prepared = Prepared { agent: "sdk", words: words.clone(), ..Prepared::default() };
    prepared.env.extend(set);
    prepared.env.insert("BUGEYE_AGENT_SOCKET".into(), wish.socket.display().to_string());
    prepared.env.insert("BUGEYE_AGENT_TOKEN".into(), wish.token.into());
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
        None => {
            if let Some(Agent { name, .. }) = mentioned(wish.words) {
                prepared.notes.push(format!(
                    "`{name}` is not what is started here: its tools are not held if this program runs it; start it by itself: bugeye start --agent -- {name} …"
                ));
            }
            any(wish, &mut prepared);
        }
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
    find(&without_env(words).0).is_some()
}

/// The agent that a word names.
fn named(word: &str) -> Option<&'static Agent> {
    AGENTS.iter().find(|agent| {
        let package = word.strip_prefix(agent.package);
        stem(word) == agent.name || package.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    })
}

/// Which agent the words start, and where among them its own begin.
fn find(words: &[String]) -> Option<(&'static Agent, usize)> {
    let mut at = 0;
    loop {
        if let Some(agent) = named(words.get(at)?) {
            return Some((agent, at + 1));
        }
        at = inner(words, at)?;
    }
}

/// Where the command begins that the one at `at` runs, if that is one that runs others, and it is plain which.
fn inner(words: &[String], at: usize) -> Option<usize> {
    let program = stem(&words[at]);
    let (_, valued, own) = RUNNERS.iter().find(|(name, ..)| *name == program)?;
    // `bun run`, `deno run`, `bun x`
    let has_verb = ["bun", "deno"].contains(&program.as_str())
        && words.get(at + 1).is_some_and(|word| word == "run" || word == "x");
    let own = own + usize::from(has_verb);
    let (mut next, mut own) = (at + 1, own);
    loop {
        match words.get(next)?.as_str() {
            word if valued.contains(&word) => next += 2,
            word if word.starts_with('-') => next += 1,
            _ if own > 0 => (next, own) = (next + 1, own - 1),
            _ => return Some(next),
        }
    }
}

/// The words without `env`, and what that was to set: ours goes on top of it. One with options is left as it is.
fn without_env(words: &[String]) -> (Vec<String>, Vec<(String, String)>) {
    let (mut words, mut set) = (words.to_vec(), Vec::new());
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if stem(word) == "env" {
            let pairs: Vec<(String, String)> = words[at + 1..]
                .iter()
                .map_while(|word| word.split_once('='))
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect();
            if words.get(at + 1 + pairs.len()).is_none_or(|next| next.starts_with('-')) {
                break;
            }
            words.drain(at..=at + pairs.len());
            set.extend(pairs);
            continue;
        }
        match inner(&words, at) {
            Some(next) => at = next,
            None => break,
        }
    }
    (words, set)
}

/// An agent that is named where it is not what is started: it may be held by nobody.
fn mentioned(words: &[String]) -> Option<&'static Agent> {
    let is_shell = ["sh", "bash", "dash", "zsh", "fish"].contains(&stem(words.first()?).as_str());
    let parts = |word: &'_ String| -> Vec<String> {
        if is_shell { word.split_whitespace().map(Into::into).collect() } else { vec![word.clone()] }
    };
    words.iter().skip(1).flat_map(parts).find_map(|word| named(&word))
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
        // Many programs read such a file, and leave alone what is set already.
        let mut files = wish.cwd.ancestors().map(|folder| folder.join(".env"));
        let sets = |file: &Path| dotenv(file).is_some_and(|set| names.iter().any(|name| set.contains_key(*name)));
        if wish.model.is_some()
            && theirs.is_none()
            && let Some(file) = files.find(|file| sets(file))
        {
            let (name, file) = (names[0], file.display());
            let how = format!(
                "whether this program heeds `{name}` in {file} is not known: calls to {provider} are not seen; set it in the environment"
            );
            prepared.notes.push(how);
            continue;
        }
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
        self.var(name).is_some_and(is_yes)
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

/// A variable that switches something on.
fn is_yes(value: &str) -> bool {
    !["", "0", "false", "no", "off"].contains(&value.to_ascii_lowercase().as_str())
}

/// A word that a shell leaves as it is.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The values of a flag in either form, with the places of their words.
fn flags<'a>(words: &'a [String], names: &[&str]) -> Vec<(std::ops::Range<usize>, &'a str)> {
    let ours = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let mut found = Vec::new();
    let mut at = 0;
    while at < ours {
        let word = &words[at];
        let joined = names.iter().find_map(|name| word.strip_prefix(name)?.strip_prefix('='));
        let value = words[..ours].get(at + 1).filter(|_| names.contains(&word.as_str()));
        let (length, value) = joined.map_or((2, value.map(String::as_str)), |value| (1, Some(value)));
        match value {
            Some(value) => {
                found.push((at..at + length, value));
                at += length;
            }
            None => at += 1,
        }
    }
    found
}

/// The one that counts: the last.
fn flag<'a>(words: &'a [String], names: &[&str]) -> Option<&'a str> {
    flags(words, names).pop().map(|(_, value)| value)
}

fn has_flag(words: &[String], name: &str) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == name)
}

/// A file of settings that is one.
fn read(path: &Path) -> Option<String> {
    let known = fs::metadata(path).ok()?;
    if !known.is_file() || known.len() > LARGEST_FILE {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// What a file of variables sets, line by line.
fn dotenv(path: &Path) -> Option<BTreeMap<String, String>> {
    let text = read(path)?;
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.trim().trim_start_matches("export ").split_once('=')?;
        let value = value.trim();
        let value = match value.chars().next().filter(|quote| "\"'`".contains(*quote)) {
            Some(quote) => value[1..].split(quote).next().unwrap_or_default(),
            None => value.split(" #").next().unwrap_or_default().trim_end(),
        };
        Some((name.trim().to_string(), value.to_string()))
    });
    Some(pairs.filter(|(name, value)| !name.starts_with('#') && !value.is_empty()).collect())
}

/// A settings file, comments and all. None if it isn't there, or is none.
fn settings(path: &Path) -> Option<Map<String, Json>> {
    match crate::launch_config::jsonc::parse(&read(path)?).ok()? {
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
