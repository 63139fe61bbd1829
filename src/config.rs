//! The user's `config.toml`.
//!
//! A [`Config`] is a handle: its clones share one set of values, and [`Config::refresh`] reads the file again when it
//! has changed, so an edit takes effect in a running daemon. A file with a mistake in it is reported and never used in
//! part: what was in force stays.

mod own;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::adapters::own::{Definition, register};
use crate::agent::model::price::{self, Price};
use crate::failure::Failure;
use crate::nearest::nearest;
use crate::paths::Paths;

/// Settings with their defaults filled in.
#[derive(Debug, Clone, Default)]
pub struct Config {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    values: RwLock<Values>,
    file: PathBuf,
    /// What the file looked like when it was last read.
    seen: Mutex<Option<Stamp>>,
}

type Stamp = (SystemTime, u64);

/// What the user says about one adapter.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AdapterSettings {
    pub path: Option<PathBuf>,
    pub args: Vec<String>,
    /// All there is to know about an adapter of the user's own; None for a built-in one.
    pub own: Option<Definition>,
}

#[derive(Debug, Clone, PartialEq)]
struct Values {
    initialize: Duration,
    launch: Duration,
    request: Duration,
    inspect: Duration,
    wait: Duration,
    build: Duration,
    idle: Option<Duration>,
    max_events: usize,
    max_bytes: usize,
    adapters: Vec<(String, AdapterSettings)>,
    default_adapter: Option<String>,
    mcp_on_close: String,
    mcp_grace: Duration,
    diff_ignore: Vec<String>,
    redact: bool,
    max_age: Option<Duration>,
    max_size: Option<u64>,
    prices: Vec<(String, Price)>,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            initialize: Duration::from_secs(10),
            launch: Duration::from_secs(60),
            request: Duration::from_secs(30),
            inspect: Duration::from_secs(5),
            wait: Duration::from_secs(300),
            build: Duration::from_secs(570),
            idle: Some(Duration::from_secs(30 * 60)),
            max_events: 10_000,
            max_bytes: 10 * 1024 * 1024,
            adapters: Vec::new(),
            default_adapter: None,
            mcp_on_close: "end".to_string(),
            mcp_grace: Duration::from_secs(30),
            diff_ignore: Vec::new(),
            redact: true,
            max_age: Some(Duration::from_secs(30 * 86_400)),
            max_size: Some(4096 << 20),
            prices: Vec::new(),
        }
    }
}

impl Config {
    /// Reads `config.toml`; a missing file means the defaults.
    pub fn load(paths: &Paths) -> Result<Self, Failure> {
        let file = paths.config_file();
        let stamp = stamp(&file);
        let values = read(&file)?;
        Ok(Self { shared: Arc::new(Shared { values: RwLock::new(values), file, seen: Mutex::new(stamp) }) })
    }

    /// Reads the file again if it has changed, and says whether it had. A file with a mistake in it is a failure and
    /// changes nothing.
    pub fn refresh(&self) -> Result<bool, Failure> {
        let now = stamp(&self.shared.file);
        let mut seen = self.shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen == now {
            return Ok(false);
        }
        let values = read(&self.shared.file)?;
        *seen = now;
        *self.shared.values.write().unwrap_or_else(PoisonError::into_inner) = values;
        Ok(true)
    }

    fn get<T>(&self, pick: impl FnOnce(&Values) -> T) -> T {
        pick(&self.shared.values.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The limit of an adapter's answer to `initialize`.
    #[must_use]
    pub fn initialize(&self) -> Duration {
        self.get(|values| values.initialize)
    }

    /// The limit of an adapter's answer to `launch` or `attach`.
    #[must_use]
    pub fn launch(&self) -> Duration {
        self.get(|values| values.launch)
    }

    /// The limit of any other request; `BUGEYE_REQUEST_TIMEOUT_MS` replaces it.
    pub fn request(&self) -> Result<Duration, Failure> {
        self.request_for(None)
    }

    /// As [`Config::request`], for a caller whose environment is known.
    pub fn request_for(&self, caller: Option<&[(String, String)]>) -> Result<Duration, Failure> {
        let own = || std::env::var(REQUEST_VARIABLE).ok();
        let asked = caller.map_or_else(own, |environment| variable(environment, REQUEST_VARIABLE));
        let Some(text) = asked.filter(|text| !text.trim().is_empty()) else {
            return Ok(self.get(|values| values.request));
        };
        match text.trim().parse() {
            Ok(milliseconds) if milliseconds > 0 => Ok(Duration::from_millis(milliseconds)),
            _ => Err(Failure::usage(format!("{REQUEST_VARIABLE} is to be a number of milliseconds, not `{text}`"))),
        }
    }

    /// The limit of a request that looks at a stopped program.
    #[must_use]
    pub fn inspect(&self) -> Duration {
        self.get(|values| values.inspect)
    }

    /// The longest a command waits for a stop when it was not told how long.
    #[must_use]
    pub fn await_limit(&self) -> Duration {
        self.get(|values| values.wait)
    }

    /// The limit of what has to be built before a program can be debugged.
    #[must_use]
    pub fn build(&self) -> Duration {
        self.get(|values| values.build)
    }

    /// How long the daemon stays with nothing to do; `None` (written as 0) means for ever.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.get(|values| values.idle)
    }

    #[must_use]
    pub fn max_events(&self) -> usize {
        self.get(|values| values.max_events)
    }

    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.get(|values| values.max_bytes)
    }

    /// What is said about an adapter, under any of the names it goes by.
    #[must_use]
    pub fn adapter(&self, names: &[&str]) -> Option<AdapterSettings> {
        self.get(|values| {
            values
                .adapters
                .iter()
                .find(|(name, _)| names.contains(&name.as_str()))
                .map(|(_, settings)| settings.clone())
        })
    }

    /// Makes the user's own adapters known to this process.
    pub fn register_adapters(&self) {
        register(self.adapters().into_iter().filter_map(|(_, settings)| settings.own).collect());
    }

    /// Every adapter the file names, with what it says.
    #[must_use]
    pub fn adapters(&self) -> Vec<(String, AdapterSettings)> {
        self.get(|values| values.adapters.clone())
    }

    /// `[defaults] adapter`: only for the languages it serves.
    #[must_use]
    pub fn default_adapter(&self) -> Option<String> {
        self.get(|values| values.default_adapter.clone())
    }

    /// `BUGEYE_ADAPTER` of the asking process, which comes before [`Config::default_adapter`].
    #[must_use]
    pub fn asked_adapter(caller: Option<&[(String, String)]>) -> Option<String> {
        let own = || std::env::var("BUGEYE_ADAPTER").ok();
        caller.map_or_else(own, |environment| variable(environment, "BUGEYE_ADAPTER")).filter(|name| !name.is_empty())
    }

    /// `BUGEYE_LOG_EVENTS` of the asking process: what happens in its sessions goes to the log too.
    #[must_use]
    pub fn logs_events(caller: Option<&[(String, String)]>) -> bool {
        let own = || std::env::var(EVENTS_VARIABLE).ok();
        let asked = caller.map_or_else(own, |environment| variable(environment, EVENTS_VARIABLE));
        asked.is_some_and(|value| !["", "0", "false", "no", "off"].contains(&value.trim().to_lowercase().as_str()))
    }

    /// What becomes of a session when the MCP client that started it goes: `end` or `keep`.
    #[must_use]
    pub fn mcp_on_close(&self) -> String {
        self.get(|values| values.mcp_on_close.clone())
    }

    /// Variables and functions that `diff` does not compare.
    #[must_use]
    pub fn diff_ignore(&self) -> Vec<String> {
        self.get(|values| values.diff_ignore.clone())
    }

    #[must_use]
    pub fn mcp_grace(&self) -> Duration {
        self.get(|values| values.mcp_grace)
    }

    /// Whether what looks secret is left out of records.
    #[must_use]
    pub fn redact(&self) -> bool {
        self.get(|values| values.redact)
    }

    /// How long a record is kept after it was last written to; None (written as 0) for ever.
    #[must_use]
    pub fn max_age(&self) -> Option<Duration> {
        self.get(|values| values.max_age)
    }

    /// How many bytes all records may have; None (written as 0) for any number.
    #[must_use]
    pub fn max_size(&self) -> Option<u64> {
        self.get(|values| values.max_size)
    }

    /// `[agent.prices]`: what models cost, before what their vendors ask.
    #[must_use]
    pub fn prices(&self) -> Vec<(String, Price)> {
        self.get(|values| values.prices.clone())
    }
}

const REQUEST_VARIABLE: &str = "BUGEYE_REQUEST_TIMEOUT_MS";
const EVENTS_VARIABLE: &str = "BUGEYE_LOG_EVENTS";

fn variable(environment: &[(String, String)], name: &str) -> Option<String> {
    environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

fn stamp(file: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(file).ok()?;
    Some((found.modified().ok()?, found.len()))
}

fn read(file: &Path) -> Result<Values, Failure> {
    match std::fs::read_to_string(file) {
        Ok(text) => parse(file, &text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Values::default()),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Err(Failure::usage(format!("{}: not UTF-8 text", file.display())))
        }
        Err(error) => Err(Failure::io(format!("read {}", file.display()), &error)),
    }
}

/// Puts one value where it belongs; `None` when it has the wrong type or is out of range.
type Setter = fn(&mut Values, &DeValue<'_>) -> Option<()>;

/// Every setting: section, key, what the value must be, and where it goes.
const SETTINGS: &[(&str, &str, &str, Setter)] = &[
    ("timeouts", "initialize_secs", SECONDS, |to, value| put(&mut to.initialize, seconds(value))),
    ("timeouts", "dap_initialize_secs", SECONDS, |to, value| put(&mut to.initialize, seconds(value))),
    ("timeouts", "launch_secs", SECONDS, |to, value| put(&mut to.launch, seconds(value))),
    ("timeouts", "request_secs", SECONDS, |to, value| put(&mut to.request, seconds(value))),
    ("timeouts", "dap_request_secs", SECONDS, |to, value| put(&mut to.request, seconds(value))),
    ("timeouts", "inspect_secs", SECONDS, |to, value| put(&mut to.inspect, seconds(value))),
    ("timeouts", "await_secs", SECONDS, |to, value| put(&mut to.wait, seconds(value))),
    ("timeouts", "await_default_secs", SECONDS, |to, value| put(&mut to.wait, seconds(value))),
    ("timeouts", "build_secs", SECONDS, |to, value| put(&mut to.build, seconds(value))),
    ("daemon", "idle_timeout_minutes", "a number of minutes, 0 for no limit", |to, value| {
        let minutes = number(value)?;
        put(&mut to.idle, Some((minutes > 0.0).then_some(Duration::try_from_secs_f64(minutes * 60.0).ok()?)))
    }),
    ("output", "max_events", "a whole number", |to, value| put(&mut to.max_events, whole(value))),
    ("output", "max_bytes_mb", "a whole number of megabytes", |to, value| {
        put(&mut to.max_bytes, whole(value)?.checked_mul(1024 * 1024))
    }),
    ("defaults", "adapter", "an adapter's name, in quotes", |to, value| {
        put(&mut to.default_adapter, Some(Some(value.as_str()?.to_string())))
    }),
    ("mcp", "on_close", "\"end\" or \"keep\"", |to, value| {
        put(&mut to.mcp_on_close, value.as_str().filter(|word| ["end", "keep"].contains(word)).map(str::to_string))
    }),
    ("mcp", "grace_secs", SECONDS, |to, value| put(&mut to.mcp_grace, seconds(value))),
    ("diff", "ignore", "a list of names, in quotes", |to, value| {
        let names = value.as_array()?.iter().map(|name| Some(name.get_ref().as_str()?.to_string()));
        put(&mut to.diff_ignore, names.collect())
    }),
    ("record", "redact", "true or false", |to, value| put(&mut to.redact, value.as_bool())),
    ("record", "max_age_days", "a number of days, 0 for no limit", |to, value| {
        let days = number(value)?;
        put(&mut to.max_age, Some((days > 0.0).then_some(Duration::try_from_secs_f64(days * 86_400.0).ok()?)))
    }),
    ("record", "max_size_mb", "a whole number of megabytes, 0 for no limit", |to, value| {
        let bytes = u64::try_from(whole(value)?).ok()?.checked_mul(1024 * 1024)?;
        put(&mut to.max_size, Some(Some(bytes).filter(|bytes| *bytes > 0)))
    }),
];

const SECONDS: &str = "a number of seconds";
const ADAPTERS: &str = "adapters";
const AGENT: &str = "agent";

fn put<T>(place: &mut T, value: Option<T>) -> Option<()> {
    *place = value?;
    Some(())
}

fn whole(value: &DeValue<'_>) -> Option<usize> {
    let integer = value.as_integer()?;
    usize::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    let number = match value {
        DeValue::Float(float) => float.as_str().parse().ok()?,
        // Limits beyond 2^32 are as good as none, and only there would a float lose a digit.
        other => f64::from(u32::try_from(whole(other)?).ok()?),
    };
    (number >= 0.0 && number.is_finite()).then_some(number)
}

fn seconds(value: &DeValue<'_>) -> Option<Duration> {
    Duration::try_from_secs_f64(number(value)?).ok()
}

/// A mistake is told with the place it is at.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn mistake(&self, at: usize, what: impl std::fmt::Display) -> Failure {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        Failure::usage(format!("{}:{line}: {what}", self.file.display()))
    }

    fn unknown<'a>(&self, at: usize, what: &str, typed: &str, known: impl Iterator<Item = &'a str> + Clone) -> Failure {
        let failure = self.mistake(at, format!("no {what} is called \"{typed}\""));
        match nearest(typed, known.clone()) {
            Some(word) => failure.hint(format!("did you mean `{word}`?")),
            None => failure.hint(format!("known here: {}", known.collect::<Vec<_>>().join(", "))),
        }
    }

    fn table<'a, 'i>(&self, value: &'a Spanned<DeValue<'i>>, name: &str) -> Result<&'a DeTable<'i>, Failure> {
        value.get_ref().as_table().ok_or_else(|| {
            self.mistake(value.span().start, format!("`{name}` must be a section"))
                .hint(format!("write `[{name}]` on a line of its own, its settings below"))
        })
    }
}

fn parse(file: &Path, text: &str) -> Result<Values, Failure> {
    let source = Source { file, text };
    let document = DeTable::parse(text).map_err(|error| {
        source.mistake(error.span().map_or(text.len(), |span| span.start), error.message().replace('\n', ", "))
    })?;
    let mut values = Values::default();
    let mut sections: Vec<&str> = SETTINGS.iter().map(|(section, ..)| *section).chain([ADAPTERS, AGENT]).collect();
    sections.dedup();
    for (name, value) in document.get_ref() {
        let section: &str = name.get_ref();
        if section == ADAPTERS {
            for (name, value) in source.table(value, section)? {
                let table = source.table(value, &format!("adapters.{}", name.get_ref()))?;
                let settings = own::adapter(&source, name, table)?;
                values.adapters.push((name.get_ref().to_string(), settings));
            }
            continue;
        }
        if section == AGENT {
            values.prices = prices(&source, source.table(value, section)?)?;
            continue;
        }
        if !sections.contains(&section) {
            let at = name.span().start;
            let owner = SETTINGS.iter().find(|(_, key, ..)| *key == section);
            return Err(match owner {
                Some((owner, key, ..)) => source
                    .mistake(at, format!("`{key}` stands outside its section"))
                    .hint(format!("put it below a line `[{owner}]`")),
                None => source.unknown(at, "section", section, sections.iter().copied()),
            });
        }
        for (key, value) in source.table(value, section)? {
            set(&source, &mut values, section, key, value)?;
        }
    }
    Ok(values)
}

/// Reads `[agent]`, which has only prices.
fn prices(source: &Source<'_>, table: &DeTable<'_>) -> Result<Vec<(String, Price)>, Failure> {
    const PRICES: &str = "prices";
    let mut prices = Vec::new();
    for (key, value) in table {
        if key.get_ref() != PRICES {
            return Err(source.unknown(key.span().start, "setting of [agent]", key.get_ref(), [PRICES].into_iter()));
        }
        for (model, entry) in source.table(value, "agent.prices")? {
            let price = price::read(&own::json(entry)).map_err(|why| {
                source.mistake(entry.span().start, format!("the price of `{}`: {why}", model.get_ref()))
            })?;
            prices.push((model.get_ref().to_string(), price));
        }
    }
    Ok(prices)
}

fn set(
    source: &Source<'_>,
    values: &mut Values,
    section: &str,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: &Spanned<DeValue<'_>>,
) -> Result<(), Failure> {
    let typed: &str = key.get_ref();
    let here = SETTINGS.iter().filter(|(owner, ..)| *owner == section);
    let Some((_, _, wanted, setter)) = here.clone().find(|(_, name, ..)| *name == typed) else {
        let what = format!("setting of [{section}]");
        return Err(source.unknown(key.span().start, &what, typed, here.map(|(_, name, ..)| *name)));
    };
    setter(values, value.get_ref())
        .ok_or_else(|| source.mistake(value.span().start, format!("`{typed}` must be {wanted}")))
}

/// `~/x` below the user's home directory.
fn at_home(path: &str) -> PathBuf {
    match (path.strip_prefix('~'), std::env::home_dir()) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests;
