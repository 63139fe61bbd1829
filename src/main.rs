//! Parse, run, exit code; nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.len() == 2 && arguments[0] == "daemon" && arguments[1] == "run" {
        return ExitCode::from(bugeye::daemon::main());
    }
    ExitCode::from(bugeye::cli::main(&arguments))
}
