//! Bugeye: one debugger for every language, made for coding agents and the people who work with them.

/// The registry of debug adapters: one constant each, and what differs between them.
pub mod adapters;
/// Coding agents as debuggees: taps that ask, and the broker that answers.
pub mod agent;
/// Who rings when a file was written to.
pub mod bell;
/// The command line: what was typed becomes a request, an answer becomes text or JSON and an exit code.
pub mod cli;
/// The way from a command to the daemon: connect, start one if there is none, ask.
pub mod client;
/// The catalogue: every command, one file and one line each.
pub mod commands;
/// The user's `config.toml`.
pub mod config;
/// The process that stays and keeps debug sessions alive between commands.
pub mod daemon;
/// The Debug Adapter Protocol as real adapters speak it: messages, types and frames.
pub mod dap;
/// Where two runs of a program part.
pub mod diff;
/// `docs/commands.md`, written from the catalogue.
pub mod docs;
/// What the headers of a program or a core file tell.
pub mod elf;
/// The only error that crosses a border: kind, message, hints, causes.
pub mod failure;
/// Where an adapter is on this machine.
pub mod find;
/// Patterns with `*` and `?`, as names are chosen by.
pub mod glob;
/// A first word with an adapter, to see that it works.
pub mod greet;
/// Live sessions, the breakpoint table and the recorder: what commands call.
pub mod hub;
/// Setting up Bugeye in an agent: its configuration and its skills, edited in place and given back.
pub mod init;
/// Launch configurations of editors, read as data.
pub mod launch_config;
/// What a command line is: which language, what has to be built first, which program is the one to debug.
pub mod locate;
/// The daemon's own log, which turns over.
pub mod log;
/// The MCP server, for agents.
pub mod mcp;
/// The nouns: plain data that every layer shares.
pub mod model;
/// The known word that a mistyped one is nearest to.
pub mod nearest;
/// What a program printed, kept within limits.
pub mod output;
/// Where things are kept, and the proof that nobody else can reach into it.
pub mod paths;
/// What differs between operating systems about processes.
pub mod platform;
/// The daemon's side of supervision: start a session's processes, end the whole tree.
pub mod process;
/// A line that is typed while other things are shown.
pub mod prompt;
/// Text for readers: pages, quoting, and the trait that turns results into text.
pub mod render;
/// Drives one session: adapter bytes become inputs, effects become I/O.
pub mod runner;
/// The pure state machine of one debuggee.
pub mod session;
/// Installing adapters.
pub mod setup;
/// A record in one file, given away and taken in; and as a page to read.
pub mod share;
/// The record: a folder per session with an append-only stream of events.
pub mod store;
/// The supervisor: one small process per session that owns whatever the session starts.
pub mod supervise;
/// Secrets that let somebody in.
pub mod token;
/// Every time a place was reached, and what was seen there.
pub mod trace;
/// Adapters that don't speak the protocol on their standard streams, made to.
pub mod translate;
/// What travels between a client and the daemon.
pub mod wire;

/// The editor's files of a workspace, and whether the user trusts them.
pub mod workspace;

pub use failure::Failure;
