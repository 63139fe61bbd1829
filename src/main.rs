use std::process::ExitCode;

fn main() -> ExitCode {
    // Before anything else is set up: a supervisor starts with every session and stays as small as it can.
    if std::env::args_os().nth(1).is_some_and(|word| word == "supervise") {
        return ExitCode::from(bugeye::supervise::main());
    }
    ExitCode::SUCCESS
}
