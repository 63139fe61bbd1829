//! The catalogue: every command the product has, one line each.
//!
//! A command is one file under `commands/`: its arguments, its result, what it does and how its result reads. The line
//! here gives it a subcommand, a wire message, help, documentation and completion.

pub mod attach;
pub mod await_;
pub mod back;
pub mod backtrace;
pub mod break_;
pub mod breaks;
pub mod catch;
pub mod compared;
pub mod completions;
pub mod config;
pub mod configs;
pub mod context;
pub mod continue_;
pub mod daemon;
pub mod demo;
pub mod detach;
pub mod diff;
pub mod disassemble;
pub mod do_;
pub mod doctor;
pub mod doing_line;
pub mod down;
pub mod eval;
pub mod event_line;
pub mod events;
pub mod exception;
pub mod export;
pub mod finish;
pub mod flake;
pub mod follow;
pub mod frame;
pub mod hits;
pub mod hook;
pub mod import;
pub mod init;
pub mod inject;
pub mod input;
pub mod inspect;
pub mod jump;
pub mod lines;
pub mod locals;
pub mod looking;
pub mod man;
pub mod mcp;
pub mod memory;
pub mod modules;
pub mod next;
pub mod output;
pub mod past;
pub mod pause;
pub mod print;
pub mod prune;
pub mod query;
pub mod raw;
pub mod registers;
pub mod replay;
pub mod report;
pub mod rerun;
pub mod restart;
pub mod run;
pub mod schema;
pub mod sessions;
pub mod set;
pub mod setup;
pub mod source;
pub mod start;
pub mod status;
pub mod step;
pub mod stop;
pub mod test;
pub mod thread;
pub mod threads;
pub mod trace;
pub mod traced;
pub mod trust;
pub mod typed;
pub mod unbreak;
pub mod until;
pub mod up;
pub mod use_session;
pub mod watch;

use std::future::Future;
use std::pin::Pin;

use clap::{ArgMatches, Args};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::render::{Page, Render};
use crate::store::replay::Moment;
pub use crate::store::replay::Past;

/// What a command is for; the headings of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Sessions,
    Breakpoints,
    Running,
    Looking,
    Agents,
    Around,
}

/// A command that the daemon carries out.
pub trait Command: Args + Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    /// Other names. One with a space (`breakpoint add`) is two words of the command line.
    const ALIASES: &'static [&'static str] = &[];
    const GROUP: Group;
    /// It starts programs, so the caller's environment travels with it.
    const SPAWNS: bool = false;
    /// An interrupt has it answer with what there is, instead of ending it.
    const CANCELS: bool = false;
    type Output: Serialize + DeserializeOwned + JsonSchema + Render + Send;

    fn run(self, cx: crate::hub::Context) -> impl Future<Output = Result<Self::Output, Failure>> + Send;

    /// Shows one part of a stream (`--follow`).
    fn render_event(_data: &Value, _page: &mut Page) {}

    /// What it is to a record; most can't be done there, and those around sessions are not about one.
    const PAST: Past = if matches!(Self::GROUP, Group::Around) { Past::Apart } else { Past::Beside };
    /// Of a record it is asked for its end, where no moment is named; else for the last stop.
    const AT_END: bool = false;

    /// What this one is to a record, where that hangs on its arguments.
    fn past(&self) -> Past {
        Self::PAST
    }

    /// Answers from a record, where the very same was not asked at that moment.
    fn recorded(self, moment: &Moment) -> Result<Self::Output, Failure> {
        Err(past::unanswered(moment, Self::NAME, self.past()))
    }

    /// What a part of its stream is, where it has one.
    fn part_schema() -> Option<schemars::Schema> {
        None
    }
}

/// A command that the client's own process carries out.
pub trait Local: Args + Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const ALIASES: &'static [&'static str] = &[];
    const GROUP: Group;
    type Output: Serialize + DeserializeOwned + JsonSchema + Render + Send;

    fn run(self, cx: &crate::cli::LocalContext) -> Result<Self::Output, Failure>;
}

/// A command that writes its own output, bare: no envelope is put around it.
pub trait Bare: Args + Serialize + DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    const GROUP: Group;

    /// Answers the exit code.
    fn run(self, cx: &crate::cli::LocalContext) -> Result<u8, Failure>;

    /// What it writes, or each line of it.
    fn prints() -> schemars::Schema;
}

/// A boxed future, the shape the catalogue's table holds.
pub type Running = Pin<Box<dyn Future<Output = Result<Value, Failure>> + Send>>;

/// Where a command is carried out.
#[derive(Clone, Copy)]
pub enum Run {
    Daemon(fn(Value, crate::hub::Context) -> Running),
    Local(fn(Value, &crate::cli::LocalContext) -> Result<Value, Failure>),
    Bare(fn(Value, &crate::cli::LocalContext) -> Result<u8, Failure>),
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Daemon(_) => "Daemon",
            Self::Local(_) => "Local",
            Self::Bare(_) => "Bare",
        })
    }
}

/// One command, with its types erased.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub group: Group,
    pub spawns: bool,
    pub cancels: bool,
    pub run: Run,
    /// What it is to a record.
    pub past: Past,
    /// The end of a record is what it is asked for, where no moment is named.
    pub at_end: bool,
    /// What it is to a record with these arguments.
    pub past_of: fn(Value) -> Past,
    /// Answers from a record.
    pub recall: fn(Value, &Moment) -> Result<Value, Failure>,
    /// Adds the arguments and help to a subcommand.
    pub arguments: fn(clap::Command) -> clap::Command,
    /// What was typed, as the wire carries it.
    pub parse: fn(&ArgMatches) -> Result<Value, clap::Error>,
    /// Writes a result; answers the exit code.
    pub render: fn(Value, &mut Page) -> Result<u8, Failure>,
    pub render_event: fn(&Value, &mut Page),
    pub argument_schema: fn() -> schemars::Schema,
    /// Of its result; for a bare command, of what it writes.
    pub result_schema: fn() -> schemars::Schema,
    pub part_schema: fn() -> Option<schemars::Schema>,
}

const fn served<C: Command>() -> Entry {
    Entry {
        name: C::NAME,
        aliases: C::ALIASES,
        group: C::GROUP,
        spawns: C::SPAWNS,
        cancels: C::CANCELS,
        run: Run::Daemon(|args, cx| Box::pin(async move { to_value(read_args::<C>(args)?.run(cx).await?) })),
        past: C::PAST,
        at_end: C::AT_END,
        past_of: |args| read_args::<C>(args).map_or(C::PAST, |command| command.past()),
        recall: |args, moment| past::recall::<C>(args, moment),
        arguments: |command| C::augment_args(command),
        parse: |matches| parse_args::<C>(matches),
        render: |value, page| render_as::<C::Output>(value, page),
        render_event: |data, page| C::render_event(data, page),
        argument_schema: || schemars::schema_for!(C),
        result_schema: || schemars::schema_for!(C::Output),
        part_schema: C::part_schema,
    }
}

const fn local<C: Local>() -> Entry {
    Entry {
        name: C::NAME,
        aliases: C::ALIASES,
        group: C::GROUP,
        spawns: false,
        cancels: false,
        run: Run::Local(|args, cx| to_value(read_args::<C>(args)?.run(cx)?)),
        past: Past::Apart,
        at_end: false,
        past_of: |_| Past::Apart,
        recall: |_, _| Err(Failure::internal("a record has no answer to this")),
        arguments: |command| C::augment_args(command),
        parse: |matches| parse_args::<C>(matches),
        render: |value, page| render_as::<C::Output>(value, page),
        render_event: |_, _| {},
        argument_schema: || schemars::schema_for!(C),
        result_schema: || schemars::schema_for!(C::Output),
        part_schema: || None,
    }
}

const fn bare<C: Bare>() -> Entry {
    Entry {
        name: C::NAME,
        aliases: &[],
        group: C::GROUP,
        spawns: false,
        cancels: false,
        run: Run::Bare(|args, cx| read_args::<C>(args)?.run(cx)),
        past: Past::Apart,
        at_end: false,
        past_of: |_| Past::Apart,
        recall: |_, _| Err(Failure::internal("a record has no answer to this")),
        arguments: |command| C::augment_args(command),
        parse: |matches| parse_args::<C>(matches),
        render: |_, _| Ok(0),
        render_event: |_, _| {},
        argument_schema: || schemars::schema_for!(C),
        result_schema: C::prints,
        part_schema: || None,
    }
}

fn read_args<C: DeserializeOwned>(args: Value) -> Result<C, Failure> {
    let args = if args.is_null() { Value::Object(serde_json::Map::new()) } else { args };
    serde_json::from_value(args).map_err(|error| Failure::usage(format!("the arguments do not fit: {error}")))
}

fn parse_args<C: Args + Serialize>(matches: &ArgMatches) -> Result<Value, clap::Error> {
    let args = C::from_arg_matches(matches)?;
    serde_json::to_value(args).map_err(|error| clap::Error::raw(clap::error::ErrorKind::Io, error))
}

fn to_value(output: impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(output).map_err(|error| Failure::internal(format!("a result can't be written: {error}")))
}

fn render_as<O: DeserializeOwned + Render>(value: Value, page: &mut Page) -> Result<u8, Failure> {
    let output: O = serde_json::from_value(value)
        .map_err(|error| Failure::internal(format!("the daemon's answer can't be read: {error}")))?;
    output.render(page);
    Ok(output.exit_code())
}

/// What a command of a record is to it. One of another version may have changed anything.
#[must_use]
pub fn past_of(name: &str, args: &Value) -> Past {
    find(name).map_or(Past::Changes, |entry| (entry.past_of)(args.clone()))
}

/// Finds a command by its name or a one-word alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
}

/// Every command, in the order of the documentation.
pub const CATALOGUE: &[Entry] = &[
    served::<start::Start>(),
    served::<run::Run>(),
    served::<test::Test>(),
    served::<attach::Attach>(),
    served::<detach::Detach>(),
    served::<stop::Stop>(),
    served::<restart::Restart>(),
    served::<status::Status>(),
    served::<sessions::Sessions>(),
    served::<use_session::Use>(),
    local::<configs::Configs>(),
    served::<break_::Break>(),
    served::<breaks::Breaks>(),
    served::<unbreak::Unbreak>(),
    served::<unbreak::Enable>(),
    served::<unbreak::Disable>(),
    served::<watch::Watch>(),
    served::<catch::Catch>(),
    served::<continue_::Continue>(),
    served::<next::Next>(),
    served::<step::Step>(),
    served::<finish::Finish>(),
    served::<until::Until>(),
    served::<jump::Jump>(),
    served::<back::Back>(),
    served::<back::ReverseContinue>(),
    served::<pause::Pause>(),
    served::<await_::Await>(),
    served::<trace::Trace>(),
    local::<flake::Flake>(),
    served::<context::Context>(),
    served::<source::Source>(),
    served::<backtrace::Backtrace>(),
    served::<frame::Frame>(),
    served::<up::Up>(),
    served::<down::Down>(),
    served::<threads::Threads>(),
    served::<thread::Thread>(),
    served::<locals::Locals>(),
    served::<locals::Arguments>(),
    served::<print::Print>(),
    served::<eval::Eval>(),
    served::<set::Set>(),
    served::<memory::Memory>(),
    served::<registers::Registers>(),
    served::<disassemble::Disassemble>(),
    served::<modules::Modules>(),
    served::<exception::Exception>(),
    served::<output::Output>(),
    served::<input::Input>(),
    served::<raw::Raw>(),
    served::<inspect::Inspect>(),
    served::<inject::Inject>(),
    served::<inject::Cancel>(),
    served::<inject::AnswerFor>(),
    served::<rerun::Rerun>(),
    bare::<events::Events>(),
    bare::<replay::Replay>(),
    local::<diff::Diff>(),
    served::<prune::Prune>(),
    served::<prune::Keep>(),
    bare::<follow::Follow>(),
    bare::<export::Export>(),
    local::<import::Import>(),
    local::<hits::Hits>(),
    local::<query::Query>(),
    bare::<do_::Do>(),
    local::<setup::Setup>(),
    local::<doctor::Doctor>(),
    local::<init::Init>(),
    local::<demo::Demo>(),
    local::<daemon::Daemon>(),
    local::<trust::Trust>(),
    local::<config::Config>(),
    local::<completions::Completions>(),
    bare::<man::Man>(),
    bare::<mcp::Mcp>(),
    bare::<hook::Hook>(),
    bare::<schema::Schema>(),
];

/// The schema of text that is no data.
pub(crate) fn plain_text(what: &str) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "description": what })
}

/// A result that only says that it happened.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    pub message: String,
}

impl Done {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl Render for Done {
    fn render(&self, page: &mut Page) {
        page.line(&self.message);
    }
}
