//! A program that a translator starts itself: with its streams, its surroundings, and a folder of our own for the socket
//! between the two.

use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value as Json;

use super::Asked;

/// A folder of ours alone, with a path short enough for a socket in it.
pub fn private_folder(asked: &Asked) -> Result<PathBuf, String> {
    let name = format!("engine-{}", std::process::id());
    let beside = asked.streams.as_ref().and_then(|streams| streams.stdout.parent().map(PathBuf::from));
    let short = |path: &PathBuf| path.as_os_str().len() < 60;
    let folder = beside.map(|parent| parent.join(&name)).filter(short);
    let folder = folder.unwrap_or_else(|| std::env::temp_dir().join(format!("bugeye-{name}")));
    let made = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    made.map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(folder)
}

/// The words of `argv` in the arguments of `launch`.
pub fn words(arguments: &Json) -> Vec<String> {
    let words = arguments.get("argv").and_then(Json::as_array).into_iter().flatten();
    words.filter_map(Json::as_str).map(Into::into).collect()
}

/// A command with the directory, the environment and the streams that `launch` asks for, and nothing else.
pub fn command(program: &str, arguments: &Json, asked: &Asked) -> Result<Command, String> {
    let mut command = Command::new(program);
    command.env_clear();
    for (name, value) in arguments.get("env").and_then(Json::as_object).into_iter().flatten() {
        if let Some(value) = value.as_str() {
            command.env(name, value);
        }
    }
    if let Some(cwd) = arguments.get("cwd").and_then(Json::as_str) {
        command.current_dir(cwd);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(streams) = &asked.streams {
        streams.give_to(&mut command).map_err(|error| format!("the program's streams: {error}"))?;
    }
    Ok(command)
}

/// The exit code; an end by a signal is its negative number.
pub fn exit_code(status: std::io::Result<ExitStatus>) -> i32 {
    let code = |status: ExitStatus| status.code().or_else(|| status.signal().map(|signal| -signal)).unwrap_or(1);
    status.map_or(1, code)
}
