//! Bugeye: one debugger for every language, made for coding agents and the people who work with them.

pub mod adapters;
pub mod cli;
pub mod client;
pub mod commands;
pub mod config;
pub mod daemon;
pub mod dap;
pub mod docs;
pub mod failure;
pub mod find;
pub mod greet;
pub mod hub;
pub mod log;
pub mod model;
pub mod nearest;
pub mod output;
pub mod paths;
pub mod platform;
pub mod process;
pub mod render;
pub mod runner;
pub mod session;
pub mod setup;
pub mod store;
pub mod supervise;
pub mod wire;

pub use failure::Failure;
