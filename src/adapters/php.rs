//! Xdebug, for PHP. It speaks DBGp from inside the interpreter, so the program is started by the translator.

use serde_json::Value;

use super::{Adapter, Find, Found, Install, Natives, Quirks, Stdio, Way, script};
use crate::model::{Frame, Launch};

pub const PHP: Adapter = Adapter {
    id: "xdebug",
    aliases: &["php"],
    languages: &["php"],
    find: Find::programs(&["php"]),
    install: Install {
        setup_name: "php",
        apt: &["php-xdebug"],
        dnf: Some("php-pecl-xdebug3"),
        note: Some("Xdebug is loaded by the PHP it is installed for: pecl install xdebug"),
        ..Install::NONE
    },
    way: Way::Translated("php"),
    command: script::command,
    adapter_env: |_: &Found, _| Vec::new(),
    adapter_id: "xdebug",
    launch,
    attach: |_, _| Value::Null,
    remote: None,
    core: None,
    quirks: Quirks {
        arguments: (arguments_of, argument_names),
        catch_words: script::CATCH_WORDS,
        check_condition: Some(|condition| format!("function () {{ return ({condition}); }}")),
        error_text: |message| message.trim_start_matches("Error: ").to_string(),
        is_furniture: |_, value| value == "uninitialized",
        is_runtime: |_, file| file.is_some_and(is_runner),
        exit_signal: script::exit_signal,
        no_attach: Some("Xdebug is there from a program's start, or not at all"),
        ..Quirks::PLAIN
    },
    natives: Natives::NONE,
};

fn launch(launch: &Launch, _: &Stdio) -> Value {
    let options = [
        "-dxdebug.mode=debug",
        "-dxdebug.start_with_request=yes",
        "-dxdebug.client_host=unix://{socket}",
        "-dxdebug.log_level=0",
    ];
    let mut arguments = script::launch(launch, &options);
    // These would have the last word over the options.
    if let Some(env) = arguments.get_mut("env").and_then(Value::as_object_mut) {
        env.remove("XDEBUG_CONFIG");
        if env.contains_key("XDEBUG_MODE") {
            env.insert("XDEBUG_MODE".into(), Value::String("debug".into()));
        }
    }
    arguments
}

/// What runs tests stands above and below them, code of our own where it was evaluated.
fn is_runner(file: &str) -> bool {
    ["/phpunit/phpunit/", "/PHPUnit/", "/bin/phpunit"].iter().any(|part| file.contains(part))
        || file.starts_with("dbgp:")
}

/// The parameters of a function or method, by its name: `work`, `Shop->sell`, `Shop::open`.
fn arguments_of(frame: &Frame, _: usize) -> String {
    let name = frame.function.replace('\\', "\\\\").replace('\'', "\\'");
    let reflection = match name.split_once("->").or_else(|| name.split_once("::")) {
        Some((class, method)) => format!("new \\ReflectionMethod('{class}', '{method}')"),
        None if name.starts_with('{') => return "[]".into(),
        None => format!("new \\ReflectionFunction('{name}')"),
    };
    format!("array_map(fn($parameter) => $parameter->name, ({reflection})->getParameters())")
}

/// Reads `["n", "rest"]`.
fn argument_names(answer: &str) -> Vec<String> {
    answer.split('"').skip(1).step_by(2).map(|name| format!("${name}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_names_are_read_from_a_list() {
        assert_eq!(argument_names("[\"n\", \"rest\"]"), ["$n", "$rest"]);
        assert!(argument_names("[]").is_empty());
    }
}
