//! An adapter's table of `config.toml`: where a built-in one is, or all there is to know about one of the user's own.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{AdapterSettings, Source, at_home};
use crate::adapters::own::{Definition, HitCondition, TEXTS, WHOLES, wrong_placeholder};
use crate::adapters::{ADAPTERS, Way};
use crate::failure::Failure;
use crate::nearest::nearest;

/// What may be said about a built-in adapter.
const PLACE_KEYS: [&str; 2] = ["path", "args"];
/// What only an own adapter's table has.
const OWN_KEYS: [&str; 17] = [
    "command",
    "way",
    "languages",
    "extensions",
    "adapter_id",
    "launch",
    "attach",
    "remote",
    "runs_in_terminal",
    "attach_runs",
    "output_events",
    "entry_function",
    "eval_context",
    "print_contexts",
    "hit_condition",
    "catch",
    "ignored_exceptions",
];

type Key<'i> = Spanned<std::borrow::Cow<'i, str>>;

/// One value, with what is said when it is not what it must be.
struct Field<'a, 'i> {
    source: &'a Source<'a>,
    name: &'a str,
    value: &'a Spanned<DeValue<'i>>,
}

impl Field<'_, '_> {
    fn wrong(&self, wanted: &str) -> Failure {
        self.source.mistake(self.value.span().start, format!("`{}` must be {wanted}", self.name))
    }

    fn text(&self, wanted: &str) -> Result<String, Failure> {
        self.value.get_ref().as_str().map(str::to_string).ok_or_else(|| self.wrong(wanted))
    }

    fn yes_or_no(&self) -> Result<bool, Failure> {
        self.value.get_ref().as_bool().ok_or_else(|| self.wrong("true or false"))
    }

    fn words(&self) -> Result<Vec<String>, Failure> {
        let words = self.value.get_ref().as_array().ok_or_else(|| self.wrong("a list of words"))?;
        let words = words.iter().map(|word| word.get_ref().as_str().map(str::to_string));
        words.collect::<Option<_>>().ok_or_else(|| self.wrong("a list of words, each in quotes"))
    }

    fn one_of<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Failure> {
        let known = || choices.iter().map(|(name, _)| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
        let typed = self.value.get_ref().as_str();
        let found = choices.iter().find(|(name, _)| Some(*name) == typed).map(|(_, choice)| *choice);
        found.ok_or_else(|| self.wrong(&format!("one of {}", known())))
    }

    /// A table of arguments with placeholders.
    fn template(&self) -> Result<Map<String, Value>, Failure> {
        let table = self.value.get_ref().as_table().ok_or_else(|| self.wrong("a table of arguments"))?;
        let fields =
            Value::Object(table.iter().map(|(name, value)| (name.get_ref().to_string(), json(value))).collect());
        if let Some(placeholder) = wrong_placeholder(&fields) {
            let at = self.value.span().start;
            if WHOLES.contains(&placeholder.as_str()) {
                let what = format!("`{{{placeholder}}}` is no text: it must be the whole value");
                return Err(self.source.mistake(at, what));
            }
            let known = || TEXTS.into_iter().chain(WHOLES);
            let failure = self.source.mistake(at, format!("there is no placeholder `{{{placeholder}}}`"));
            return Err(match nearest(&placeholder, known()) {
                Some(word) => failure.hint(format!("did you mean `{{{word}}}`?")),
                None => failure.hint(format!("known: {}", known().collect::<Vec<_>>().join(", "))),
            });
        }
        Ok(fields.as_object().cloned().unwrap_or_default())
    }

    fn pairs(&self) -> Result<Vec<(String, String)>, Failure> {
        let wrong = || self.wrong("a table of words, each with the adapter's own name for it");
        let table = self.value.get_ref().as_table().ok_or_else(wrong)?;
        let pairs = table.iter().map(|(word, filter)| {
            filter.get_ref().as_str().map(|filter| (word.get_ref().to_string(), filter.to_string()))
        });
        pairs.collect::<Option<_>>().ok_or_else(wrong)
    }
}

/// Reads `[adapters.NAME]`.
pub(super) fn adapter(source: &Source<'_>, name: &Key<'_>, table: &DeTable<'_>) -> Result<AdapterSettings, Failure> {
    let typed: &str = name.get_ref();
    let built_in = ADAPTERS.iter().any(|adapter| adapter.id == typed || adapter.aliases.contains(&typed));
    let mut settings = AdapterSettings::default();
    let mut own = empty(typed);
    let mut first_own = None;
    let mut command = Vec::new();
    for (key, value) in table {
        let key_name: &str = key.get_ref();
        let field = Field { source, name: key_name, value };
        if OWN_KEYS.contains(&key_name) {
            first_own.get_or_insert((key.span().start, key_name.to_string()));
        }
        match key_name {
            "path" => settings.path = Some(at_home(&field.text("a path, in quotes")?)),
            "args" => settings.args = field.words()?,
            "command" => {
                command = match field.value.get_ref().as_str() {
                    Some(word) => vec![word.to_string()],
                    None => field.words()?,
                }
            }
            "way" => {
                let ways = [("streams", Way::Streams), ("dials", Way::Dials), ("listens", Way::Listens)];
                own.way = field.one_of(&ways)?;
            }
            "languages" => own.languages = field.words()?,
            "extensions" => {
                let endings = field.words()?;
                own.extensions = endings.iter().map(|ending| ending.trim_start_matches('.').to_string()).collect();
            }
            "adapter_id" => own.adapter_id = Some(field.text("a word, in quotes")?),
            "launch" => own.launch = Some(field.template()?),
            "attach" => own.attach = Some(field.template()?),
            "remote" => own.remote = Some(field.template()?),
            "runs_in_terminal" => own.runs_in_terminal = field.yes_or_no()?,
            "attach_runs" => own.attach_runs = field.yes_or_no()?,
            "output_events" => own.output_events = Some(field.yes_or_no()?),
            "entry_function" => own.entry_function = Some(field.text("a function's name, in quotes")?),
            "eval_context" => own.eval_context = Some(field.text("a word, in quotes")?),
            "print_contexts" => own.print_contexts = Some(field.words()?),
            "hit_condition" => {
                let forms =
                    [(">=N", HitCondition::AtLeast), ("N", HitCondition::Number), ("N-1", HitCondition::PassedOver)];
                own.hit_condition = field.one_of(&forms)?;
            }
            "catch" => own.catch = field.pairs()?,
            "ignored_exceptions" => own.ignored_exceptions = field.words()?,
            other => {
                let known = PLACE_KEYS.into_iter().chain(OWN_KEYS);
                return Err(source.unknown(key.span().start, "setting of an adapter", other, known));
            }
        }
    }
    let Some((at, key)) = first_own else { return Ok(settings) };
    if built_in {
        return Err(source
            .mistake(at, format!("`{key}` can't be set: {typed} is built in"))
            .hint("only `path` and `args` are the user's; an adapter of your own needs another name"));
    }
    complete(source, name, &mut settings, &mut own, command)?;
    settings.own = Some(own);
    Ok(settings)
}

/// Puts the command line together, and says what is missing.
fn complete(
    source: &Source<'_>,
    name: &Key<'_>,
    settings: &mut AdapterSettings,
    own: &mut Definition,
    command: Vec<String>,
) -> Result<(), Failure> {
    let lacks = |what: &str, hint: &str| {
        source.mistake(name.span().start, format!("the adapter `{}` has no {what}", own.name)).hint(hint)
    };
    let mut words = command.into_iter();
    let program = words.next().filter(|word| !word.is_empty());
    if program.is_none() && settings.path.is_none() {
        return Err(lacks("`command`", "command = [\"program\", \"--argument\"]"));
    }
    if own.launch.is_none() && own.attach.is_none() && own.remote.is_none() {
        return Err(lacks("`launch`", "launch = { program = \"{program}\", args = \"{args}\" }"));
    }
    if own.languages.is_empty() && own.extensions.is_empty() {
        return Err(lacks("`languages` or `extensions`", "extensions = [\"lua\"]"));
    }
    if own.languages.is_empty() {
        own.languages.clone_from(&own.extensions);
    }
    settings.args.splice(0..0, words);
    if let Some(program) = program {
        let path = at_home(&program);
        if path.is_absolute() {
            settings.path.get_or_insert(path);
        } else if program.contains('/') {
            return Err(lacks("usable `command`", "write a name that is on PATH, or a path from / or ~"));
        }
        own.program = program;
    }
    if own.program.is_empty() {
        own.program = file_name(settings.path.as_deref());
    }
    let wanted = match own.way {
        Way::Dials => Some(&["{address}"][..]),
        Way::Listens => Some(&["{port}", "{socket}"][..]),
        _ => None,
    };
    if let Some(wanted) = wanted
        && !settings.args.iter().any(|word| wanted.iter().any(|name| word.contains(name)))
    {
        let names = wanted.join(" or ");
        return Err(lacks(&format!("{names} in its command line"), "the adapter has to be told where to meet"));
    }
    Ok(())
}

fn file_name(path: Option<&Path>) -> String {
    let path = path.map_or_else(PathBuf::new, PathBuf::from);
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn empty(name: &str) -> Definition {
    Definition {
        name: name.to_string(),
        program: String::new(),
        way: Way::Streams,
        languages: Vec::new(),
        extensions: Vec::new(),
        adapter_id: None,
        launch: None,
        attach: None,
        remote: None,
        runs_in_terminal: false,
        attach_runs: false,
        output_events: None,
        entry_function: None,
        eval_context: None,
        print_contexts: None,
        hit_condition: HitCondition::default(),
        catch: Vec::new(),
        ignored_exceptions: Vec::new(),
    }
}

/// A value of the file as an adapter gets it.
pub(super) fn json(value: &Spanned<DeValue<'_>>) -> Value {
    match value.get_ref() {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            i64::from_str_radix(number.as_str(), number.radix()).map_or(Value::Null, Value::from)
        }
        DeValue::Float(number) => number.as_str().parse::<f64>().map_or(Value::Null, Value::from),
        DeValue::Boolean(yes) => Value::Bool(*yes),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => items.iter().map(json).collect(),
        DeValue::Table(table) => {
            Value::Object(table.iter().map(|(name, value)| (name.get_ref().to_string(), json(value))).collect())
        }
    }
}
