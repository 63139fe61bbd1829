//! Parse, run, exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    let typed: Vec<_> = std::env::args_os().skip(1).collect();
    // A supervisor starts with every session and stays as small as it can: nothing is set up before it.
    if typed.first().is_some_and(|word| word == "supervise") {
        return ExitCode::from(bugeye::supervise::main());
    }
    // An agent waits for its hook at every step.
    if let Some(code) = bugeye::commands::hook::main(&typed) {
        return ExitCode::from(code);
    }
    if typed.len() == 2 && typed[0] == "daemon" && typed[1] == "run" {
        return ExitCode::from(bugeye::daemon::main());
    }
    if typed.first().is_some_and(|word| word == "adapter") {
        return ExitCode::from(bugeye::translate::main(&typed[1..]));
    }
    if let Some(code) = bugeye::translate::startup::main(&typed) {
        return ExitCode::from(code);
    }
    ExitCode::from(bugeye::cli::main(&typed))
}
