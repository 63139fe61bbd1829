use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().skip(1).collect();
    // Before anything else is set up: a supervisor starts with every session and stays as small as it can.
    if typed.first().is_some_and(|word| word == "supervise") {
        return ExitCode::from(bugeye::supervise::main());
    }
    ExitCode::from(bugeye::cli::main(&typed))
}
