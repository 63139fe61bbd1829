//! Bugeye: one debugger for every language, made for coding agents and the people who work with them.

pub mod adapters;
pub mod cli;
pub mod commands;
pub mod config;
pub mod dap;
pub mod failure;
pub mod find;
pub mod greet;
pub mod hub;
pub mod model;
pub mod paths;
pub mod render;
pub mod session;
pub mod setup;
pub mod wire;

pub use failure::Failure;
