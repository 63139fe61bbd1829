//! Breakpoints on what an agent does: `tool:Bash`, `iteration:5`, `pattern:rm -rf`.

use regex_lite::Regex;
use serde_json::Value as Json;

use super::gate::{Ask, Point};
use super::path::{Condition, pattern_of};
use super::state::ROOTS;
use crate::model::Place;

/// What a breakpoint waits for.
#[derive(Debug, Clone)]
pub enum On {
    /// A tool is about to run; `*` in its name stands for anything.
    Tool(String),
    /// A tool has run, and the agent has not seen what came of it.
    After(String),
    /// The model is asked for the Nth time.
    Iteration(u64),
    /// The input of a tool matches.
    Pattern(Regex),
    /// A tool is about to touch such a file.
    File(String),
    /// A model is about to be asked.
    Model(String),
    /// A tool or a model call has failed.
    Error,
    /// Something was not let happen.
    Denied,
    /// A sub-agent begins.
    Subagent,
    /// The run has cost this much, in USD.
    Cost(f64),
    /// The run has taken so many tokens.
    Tokens(u64),
    /// A turn is about to end, or to begin.
    Stop,
    Prompt,
}

/// The words that breakpoints on agents begin with; those with `:` take something.
pub const WORDS: [&str; 13] = [
    "tool:",
    "after:",
    "iteration:",
    "pattern:",
    "file:",
    "model",
    "error",
    "denied",
    "subagent",
    "cost:",
    "tokens:",
    "stop",
    "prompt",
];

/// One breakpoint, as the protocol sets it.
#[derive(Debug)]
pub struct Break {
    pub id: i64,
    pub name: String,
    pub on: On,
    pub condition: Option<Condition>,
    /// Stop at this pass and every later one.
    pub from: u64,
    pub hits: u64,
    /// It is about a limit that was passed, and has said so.
    pub said: bool,
}

fn words() -> String {
    WORDS.map(|word| word.replace(':', ":…")).join(", ")
}

/// What is said of a line, or of an address.
#[must_use]
pub fn no_lines() -> String {
    format!("an agent has no lines; there are: {}", words())
}

/// Reads a breakpoint on an agent as it was typed, before anything comes of it.
///
/// # Errors
/// What is wrong with its place, or with its condition.
pub fn check(place: &Place, condition: Option<&str>) -> Result<(), String> {
    match place {
        Place::Line { .. } | Place::Address(_) => return Err(no_lines()),
        Place::Function { .. } => On::parse(&place.to_string())?,
    };
    condition.map(condition_of).transpose().map(drop)
}

/// Reads the condition of a breakpoint.
///
/// # Errors
/// What is wrong with it, or that it is about something that no agent has.
pub fn condition_of(text: &str) -> Result<Condition, String> {
    let condition = Condition::parse(text)?;
    let known = |root: &&str| ROOTS.contains(root) || matches!(*root, "name" | "input" | "output");
    if let Some(root) = condition.roots().find(|root| !known(root)) {
        return Err(format!("there is no `{root}`; there are: {}", ROOTS.join(", ")));
    }
    Ok(condition)
}

impl On {
    /// Reads `tool:Bash` and its like.
    ///
    /// # Errors
    /// What is wrong with it, and what there is.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (word, rest) = match text.split_once(':') {
            Some((word, rest)) => (word.trim(), Some(rest.trim()).filter(|rest| !rest.is_empty())),
            None => (text.trim(), None),
        };
        let number = |what: &str| {
            let rest = rest.ok_or_else(|| format!("`{word}` needs {what}: {word}:5"))?;
            rest.parse::<u64>().ok().filter(|n| *n > 0).ok_or_else(|| format!("`{rest}` is not {what}"))
        };
        let any = || rest.unwrap_or("*").to_string();
        Ok(match word {
            "tool" => Self::Tool(any()),
            "after" => Self::After(any()),
            "iteration" => Self::Iteration(number("the number of a model call")?),
            "pattern" => Self::Pattern(pattern_of(rest.unwrap_or_default())?),
            "file" => Self::File(rest.ok_or("`file` needs a path: file:src/**")?.into()),
            "model" => Self::Model(any()),
            "error" => Self::Error,
            "denied" => Self::Denied,
            "subagent" => Self::Subagent,
            "cost" => {
                let usd = rest.unwrap_or_default();
                let usd = usd.strip_prefix('$').unwrap_or(usd).parse::<f64>().ok().filter(|usd| *usd > 0.0);
                Self::Cost(usd.ok_or("`cost` needs an amount in USD: cost:2.50")?)
            }
            "tokens" => Self::Tokens(number("a number of tokens")?),
            "stop" => Self::Stop,
            "prompt" => Self::Prompt,
            _ => return Err(format!("an agent has no place `{text}`; there are: {}", words())),
        })
    }

    /// Whether a gate is what it waits for, as far as the gate itself tells. `called` is the tool's name as the model has
    /// it, `iteration` that of its thread.
    #[must_use]
    pub fn matches(&self, ask: &Ask, called: Option<&str>, iteration: u64) -> bool {
        let name = ask.name.as_deref().unwrap_or_default();
        match (self, ask.point) {
            (Self::Tool(wanted), Point::BeforeTool) | (Self::After(wanted), Point::AfterTool) => {
                like(wanted, name) || called.is_some_and(|called| like(wanted, called))
            }
            (Self::Pattern(pattern), Point::BeforeTool) => {
                texts(&ask.value).any(|text| pattern.is_match(text)) || { pattern.is_match(&ask.value.to_string()) }
            }
            (Self::File(wanted), Point::BeforeTool) => files(&ask.value).iter().any(|file| is_file(wanted, file)),
            (Self::Error, Point::AfterTool) => ask.ok == Some(false),
            (Self::Iteration(wanted), Point::BeforeModel) => *wanted == iteration,
            (Self::Model(wanted), Point::BeforeModel) => {
                let model = ask.conversation.as_ref().and_then(|conversation| conversation.model.as_deref());
                wanted == "*" || model.is_some_and(|model| like(wanted, model))
            }
            (Self::Stop, Point::BeforeStop) | (Self::Prompt, Point::BeforePrompt) => true,
            _ => false,
        }
    }
}

/// Whether a name fits a pattern with `*`; letters' case does not count.
fn like(pattern: &str, name: &str) -> bool {
    crate::glob::is_like(&pattern.to_lowercase(), &name.to_lowercase())
}

/// All texts in a value, at any depth.
fn texts(value: &Json) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Json::String(text) => Box::new(std::iter::once(text.as_str())),
        Json::Array(items) => Box::new(items.iter().flat_map(texts)),
        Json::Object(map) => Box::new(map.values().flat_map(texts)),
        _ => Box::new(std::iter::empty()),
    }
}

/// The files that a tool's input names: by fields that are paths, and in patches.
#[must_use]
pub fn files(input: &Json) -> Vec<String> {
    const FIELDS: [&str; 9] = [
        "file_path",
        "filePath",
        "path",
        "absolute_path",
        "notebook_path",
        "filename",
        "file",
        "target_file",
        "dir_path",
    ];
    let mut found = Vec::new();
    if let Some(map) = input.as_object() {
        found.extend(FIELDS.iter().filter_map(|field| map.get(*field)?.as_str()).map(Into::into));
    }
    const MARKS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
    for text in texts(input).filter(|text| text.contains("*** ")) {
        let lines = text.lines().filter_map(|line| MARKS.iter().find_map(|mark| line.strip_prefix(mark)));
        found.extend(lines.map(|file| file.trim().to_string()));
    }
    found
}

/// Whether a file is one of those meant: its whole path, or the end of it.
fn is_file(pattern: &str, file: &str) -> bool {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    let file = file.strip_prefix("./").unwrap_or(file);
    crate::glob::is_like(pattern, file) || crate::glob::is_like(&format!("*/{pattern}"), file)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(point: Point, name: &str, value: Json) -> Ask {
        Ask { name: Some(name.into()), value, ..Ask::new(point) }
    }

    #[test]
    fn each_kind_waits_for_its_own_moment() {
        let bash = ask(Point::BeforeTool, "Bash", json!({ "command": "rm -rf build" }));
        let edit = ask(Point::BeforeTool, "Edit", json!({ "file_path": "/w/src/main.rs", "old": "a\"b" }));
        let patch =
            ask(Point::BeforeTool, "apply_patch", json!({ "input": "*** Begin Patch\n*** Update File: src/x.rs\n" }));
        let model = ask(Point::BeforeModel, "", json!({}));
        let cases = [
            ("tool:Bash", &bash, true),
            ("tool:bash", &bash, true),
            ("tool:B*", &bash, true),
            ("tool", &edit, true),
            ("tool:Edit", &bash, false),
            ("after:Bash", &bash, false),
            ("pattern:rm +-rf", &bash, true),
            ("pattern:^rm", &bash, true),
            ("pattern:a\"b", &edit, true),
            ("pattern:nothing", &bash, false),
            ("file:src/*.rs", &edit, true),
            ("file:src/*.rs", &patch, true),
            ("file:main.rs", &edit, true),
            ("file:*.py", &edit, false),
            ("model", &model, true),
            ("iteration:3", &model, true),
            ("iteration:2", &model, false),
            ("stop", &model, false),
        ];
        for (text, ask, hit) in cases {
            assert_eq!(On::parse(text).unwrap().matches(ask, None, 3), hit, "{text} {:?}", ask.name);
        }
    }

    #[test]
    fn what_is_no_breakpoint_is_said() {
        for (text, why) in [
            ("iteration:0", "is not the number"),
            ("iteration", "iteration:5"),
            ("pattern:(", "regular expression"),
            ("pattern:", "empty"),
            ("cost:much", "USD"),
            ("main.rs", "there are: tool:…"),
        ] {
            let said = On::parse(text).unwrap_err();
            assert!(said.contains(why), "{text}: {said}");
        }
        for (text, condition, why) in [
            ("tol:Bash", "ok", "an agent has no place `tol:Bash`"),
            ("app.py:3", "ok", "an agent has no lines; there are: tool:…"),
            (
                "tool:Bash",
                "tool_inpt.command ~ 'rm'",
                "there is no `tool_inpt`; there are: point, tool_name, tool_input",
            ),
            ("tool:Bash", "ok || tool_name == Bash", "there is no `Bash`"),
            ("tool:Bash", "iteration >", "a value is missing"),
        ] {
            let said = check(&Place::parse(text).unwrap(), Some(condition)).unwrap_err();
            assert!(said.contains(why), "{text} {condition}: {said}");
        }
        check(&Place::parse("tool").unwrap(), Some("input.command ~ 'rm' && name == 'Bash' or !ok")).unwrap();
    }
}
