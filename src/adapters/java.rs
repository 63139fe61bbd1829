//! Bugeye's own adapter for Java, on the debug interface that every JDK brings: nothing has to be fetched.
//!
//! It is written in Java (`src/translate/java/`), compiled once with the user's own compiler and run by the translator
//! `java`. It reads values from fields and runs nothing of the program unless `eval` asks for a call.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{Access, Adapter, Find, Found, Install, Natives, Quirks, Reach, Stdio, Watching, Way};
use crate::dap::types::StoppedBody;
use crate::model::{Launch, Remote};

pub const JAVA: Adapter = Adapter {
    id: "java",
    aliases: &["jdi", "jdwp"],
    languages: &["java"],
    find: Find::programs(&["java"]),
    install: Install {
        setup_name: "java",
        apt: &["default-jdk-headless"],
        brew: Some("openjdk"),
        dnf: Some("java-latest-openjdk-devel"),
        note: Some("it needs a JDK, 11 or later, and nothing else"),
        ..Install::NONE
    },
    way: Way::Translated("java"),
    command,
    adapter_env,
    adapter_id: "java",
    launch,
    attach: |pid, _| json!({ "processId": pid }),
    remote: Some(Reach::Through(remote)),
    core: None,
    quirks: Quirks {
        raw: |text| format!(":{text}"),
        check_condition: Some(|condition| format!(":parse {condition}")),
        arguments: (|_, _| ":arguments".into(), argument_names),
        catch_words: &[("throw", "raised"), ("panic", "uncaught")],
        function_name,
        is_opaque,
        exit_signal: |code, _| signal_of(code),
        returned: Some((":returned", returned)),
        attach_runs: true,
        entry_function: Some("main"),
        first_answer: Duration::from_secs(60),
        ..Quirks::PLAIN
    },
    natives: Natives {
        watch: Some(Watching {
            set: |expression, access| {
                let access = match access {
                    Access::Write => "write",
                    Access::Read => "read",
                    Access::Either => "either",
                };
                format!("watch {access} {expression}")
            },
            number: |answer| answer.split('\t').next()?.trim().parse().ok(),
            condition: |number, condition| format!("watch-if {number} {condition}"),
            remove: |number| format!("unwatch {number}"),
            list: "watches",
            values,
            gone,
            stopped: |stopped: &StoppedBody| stopped.text.as_deref()?.strip_prefix("watch ")?.parse().ok(),
        }),
        ..Natives::NONE
    },
};

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned()];
    argv.extend(found.args.iter().cloned());
    argv
}

/// The adapter must not be changed by what is meant for the program, and must be able to name any file.
fn adapter_env(_: &Found, _: &str) -> Vec<(String, String)> {
    let unset = ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVAC_OPTIONS", "CLASSPATH"];
    let mut changes: Vec<(String, String)> = unset.iter().map(|name| ((*name).into(), String::new())).collect();
    changes.push(("LC_ALL".into(), "C.UTF-8".into()));
    changes
}

/// The program's streams are given to the adapter's own process.
fn launch(launch: &Launch, _: &Stdio) -> Value {
    let env: Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    let mut command = launch.interpreter.clone();
    command.push(launch.program.to_string_lossy().into_owned());
    command.extend(launch.args.iter().cloned());
    json!({ "command": command, "cwd": launch.cwd, "env": env })
}

fn remote(remote: &Remote) -> Value {
    json!({ "hostName": remote.host, "port": remote.port })
}

fn argument_names(answer: &str) -> Vec<String> {
    answer.split(',').filter(|name| !name.is_empty()).map(Into::into).collect()
}

/// `com.example.Shop$Item.price` → `Shop$Item.price`: the package is in the file's path.
fn function_name(name: &str) -> String {
    let (class, method) = name.rsplit_once('.').unwrap_or(("", name));
    match class.rsplit_once('.') {
        Some((_, class)) => format!("{class}.{method}"),
        None => name.to_string(),
    }
}

/// `Point@57` says nothing that its fields do not, `size=3` not what its items are; the platform's own objects are not
/// gone into unasked.
fn is_opaque(value: &str, kind: Option<&str>) -> bool {
    let platform = |kind: &str| ["java.", "javax.", "jdk.", "sun."].iter().any(|start| kind.starts_with(start));
    if value.starts_with("size=") {
        return true;
    }
    let number = value.rsplit_once('@').map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        && !value.starts_with('"')
        && !kind.is_some_and(platform)
}

/// Reads `int⇥5`.
fn returned(answer: &str) -> Option<(String, String)> {
    let (kind, value) = answer.split_once('\t')?;
    Some((kind.into(), value.into()))
}

/// Reads lines of `number⇥before⇥now`.
fn values(answer: &str) -> Vec<(u32, Option<String>, Option<String>)> {
    let read = |line: &str| {
        let mut parts = line.split('\t');
        let number = parts.next()?.trim().parse().ok()?;
        let mut value = || parts.next().filter(|text| !text.is_empty()).map(Into::into);
        Some((number, value(), value()))
    };
    answer.lines().filter_map(read).collect()
}

/// Reads lines of `number⇥gone`.
fn gone(answer: &str) -> Vec<u32> {
    answer.lines().filter_map(|line| line.strip_suffix("\tgone")?.parse().ok()).collect()
}

/// A death by a signal is told as 128 and the signal's number; of these, the ones that no program chooses for itself. The
/// others may be exit codes, as the virtual machine's own after SIGTERM is.
fn signal_of(code: i64) -> Option<String> {
    let name = match code {
        132 => "SIGILL",
        134 => "SIGABRT",
        135 => "SIGBUS",
        136 => "SIGFPE",
        137 => "SIGKILL",
        139 => "SIGSEGV",
        _ => return None,
    };
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_left_out_of_names() {
        assert_eq!(function_name("com.example.Shop$Item.price"), "Shop$Item.price");
        assert_eq!(function_name("Every.work"), "Every.work");
        assert_eq!(function_name("work"), "work");
    }

    #[test]
    fn only_the_programs_own_objects_are_opaque() {
        assert!(is_opaque("Point@57", Some("shop.Point")));
        assert!(!is_opaque("Thread@57", Some("java.lang.Thread")));
        assert!(!is_opaque("\"me@57", Some("java.lang.String")));
        assert!(!is_opaque("[1, 2]", Some("java.util.ArrayList")));
    }

    #[test]
    fn watches_and_returned_values_are_read() {
        assert_eq!(
            values("1\t3\t6\n2\t\t\"a\"\n"),
            [(1, Some("3".into()), Some("6".into())), (2, None, Some("\"a\"".into()))]
        );
        assert_eq!(returned("int\t5"), Some(("int".into(), "5".into())));
        assert_eq!(returned(""), None);
    }
}
