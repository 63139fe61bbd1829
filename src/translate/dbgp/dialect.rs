//! What differs between engines that speak DBGp: Xdebug, which is PHP's own, and the small ones of ours for languages that
//! have none.

use std::path::Path;
use std::process::{Command, Stdio};

use super::xml::Element;

/// One engine.
#[derive(Debug)]
pub struct Dialect {
    pub language: &'static str,
    /// The file of an engine of ours, and its text; `{socket}` in it is where it connects to.
    pub agent: Option<(&'static str, &'static str)>,
    /// Whether the engine can be had; answers its version, or what to do.
    pub check: fn(interpreter: &str) -> Result<String, String>,
    /// Options of the interpreter with which it loads the engine: asked of each interpreter.
    pub options: fn(interpreter: &str) -> Result<Vec<String>, String>,
    /// Commands are heard while the program runs; elsewhere it is stopped for a moment.
    pub hears: bool,
    /// There is one breakpoint on a line at most, and those on functions have no conditions.
    pub simple: bool,
    /// The program may have several threads.
    pub threads: bool,
    /// The name of a scope, its kind, and the engine's number of it.
    pub scopes: &'static [(&'static str, &'static str, &'static str)],
    /// An expression as code that gives a failure as its value.
    pub code: fn(&str) -> String,
    /// The failure in such a value.
    pub failure: fn(&Element) -> Option<String>,
    /// A condition as code that is true when it fails.
    pub condition: fn(&str) -> String,
    /// Code that tells whether there is a function of that name; None where the engine tells.
    pub is_function: Option<fn(&str) -> String>,
    /// A variable, or a path into one, which is read without evaluating it.
    pub is_path: fn(&str) -> bool,
    /// Code that runs once, before the program does.
    pub prelude: Option<&'static str>,
    /// Code that tells whether an exception is caught nowhere: its class, and the stack as (file, line).
    pub uncaught: Option<fn(class: &str, stack: &[(String, i64)]) -> String>,
    /// Code whose value is the list of the program's files, in lines; None where the engine has a command for that.
    pub files: Option<&'static str>,
    /// The text of a value.
    pub text: fn(&Element) -> String,
}

/// Stands first in a list that is a failure.
const MARK: &str = "bugeye: it failed";

pub const PHP: Dialect = Dialect {
    language: "PHP",
    agent: None,
    check: xdebug_version,
    options: xdebug_options,
    hears: false,
    simple: true,
    threads: false,
    scopes: &[("Locals", "locals", "0"), ("Superglobals", "", "1"), ("Constants", "", "2")],
    code: |expression| {
        php_code(expression, &format!("return [\"{MARK}\", get_class($bugeye), $bugeye->getMessage()];"))
    },
    failure: php_failure,
    condition: |condition| php_code(condition, "return true;"),
    is_function: Some(php_is_function),
    is_path: php_is_path,
    prelude: Some(PHP_PRELUDE),
    uncaught: Some(php_uncaught),
    files: Some("implode(\"\\n\", get_included_files())"),
    text: php_text,
};

pub const RUBY: Dialect = Dialect {
    language: "Ruby",
    agent: Some(("bugeye.rb", include_str!("../agents/ruby.rb"))),
    check: |interpreter| version(interpreter, &["--disable=gems", "-e", "print RUBY_VERSION"]),
    options: |_| Ok(Vec::new()),
    hears: true,
    simple: false,
    threads: true,
    scopes: &[("Locals", "locals", "0"), ("Instance variables", "", "1"), ("Globals", "", "2")],
    code: str::to_string,
    failure: |_| None,
    condition: str::to_string,
    is_function: None,
    is_path: |_| false,
    prelude: None,
    uncaught: None,
    files: None,
    text: Element::content,
};

pub const PERL: Dialect = Dialect {
    language: "Perl",
    agent: Some(("Devel/Bugeye.pm", include_str!("../agents/perl.pm"))),
    check: |interpreter| version(interpreter, &["-e", "print substr($^V, 1)"]),
    scopes: &[("Locals", "locals", "0"), ("Globals", "", "2")],
    hears: false,
    threads: false,
    ..RUBY
};

/// What a program prints; its errors are the reason where it prints nothing.
fn version(program: &str, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null());
    let done = command.output().map_err(|error| format!("{program} can't be run: {error}"))?;
    let said = String::from_utf8_lossy(&done.stdout).trim().to_string();
    if done.status.success() && !said.is_empty() {
        return Ok(said);
    }
    let complaint = String::from_utf8_lossy(&done.stderr).trim().to_string();
    Err(if complaint.is_empty() { format!("{program} does not say its version") } else { complaint })
}

const XDEBUG: [&str; 2] = ["-r", "print(phpversion('xdebug') ?: '');"];

fn xdebug_version(php: &str) -> Result<String, String> {
    let options = xdebug_options(php)?;
    let words: Vec<&str> = options.iter().map(String::as_str).chain(XDEBUG).collect();
    version(php, &words)
}

/// Loaded twice, Xdebug complains; not loaded, the program would run without it.
fn xdebug_options(php: &str) -> Result<Vec<String>, String> {
    if version(php, &XDEBUG).is_ok() {
        return Ok(Vec::new());
    }
    let load = "-dzend_extension=xdebug";
    if version(php, &[load, XDEBUG[0], XDEBUG[1]]).is_ok_and(|said| said.starts_with(|c: char| c.is_ascii_digit())) {
        return Ok(vec![load.to_string()]);
    }
    let name = Path::new(php).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Err(format!("{name} has no Xdebug, its debugger; get it: bugeye setup php"))
}

/// A signal that does nothing by itself stops the program wherever it is.
const PHP_PRELUDE: &str = "function_exists('pcntl_async_signals') && pcntl_async_signals(true) !== null \
     && pcntl_signal(SIGURG, function () { xdebug_break(); })";

/// A single-quoted literal of any text.
fn php_literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn php_code(expression: &str, otherwise: &str) -> String {
    let inner = php_literal(&format!("return {expression};"));
    php_eval(&format!(
        "try {{ return eval({inner}); }} catch (\\Throwable $bugeye) {{ {otherwise} }} finally {{ unset($bugeye); }}"
    ))
}

fn php_eval(statements: &str) -> String {
    format!("eval({})", php_literal(statements))
}

fn php_failure(value: &Element) -> Option<String> {
    let mut parts = value.properties();
    let is_failure = parts.next().is_some_and(|mark| mark.content() == MARK);
    let class = parts.next().filter(|_| is_failure)?.content();
    let message = parts.next().map(Element::content).unwrap_or_default();
    Some(format!("{class}: {message}"))
}

fn php_is_function(name: &str) -> String {
    match name.split_once("::").or_else(|| name.split_once("->")) {
        Some((class, method)) => format!("method_exists({}, {})", php_literal(class), php_literal(method)),
        None => format!("function_exists({})", php_literal(name)),
    }
}

/// `$a`, `$a->b`, `$a['b'][3]`.
fn php_is_path(expression: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    let Some(mut rest) = expression.strip_prefix('$').map(|rest| rest.trim_start_matches(is_letter)) else {
        return false;
    };
    if rest.len() + 1 == expression.len() {
        return false;
    }
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("->") {
            rest = after.trim_start_matches(is_letter);
            if rest.len() == after.len() {
                return false;
            }
        } else if let Some((key, after)) = rest.strip_prefix('[').and_then(|after| after.split_once(']')) {
            let quoted = |quote: char| key.len() > 1 && key.starts_with(quote) && key.ends_with(quote);
            let plain = |key: &str| !key.contains(['\'', '"', '\\', '[']);
            let number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
            if !number && !((quoted('\'') || quoted('"')) && plain(&key[1..key.len() - 1])) {
                return false;
            }
            rest = after;
        } else {
            return false;
        }
    }
    true
}

fn php_uncaught(class: &str, stack: &[(String, i64)]) -> String {
    let places: Vec<String> = stack.iter().map(|(file, line)| format!("[{}, {line}]", php_literal(file))).collect();
    let code = include_str!("../agents/uncaught.php").trim_start_matches("<?php").trim().trim_end_matches(';');
    format!("({code})({}, [{}])", php_literal(class), places.join(", "))
}

fn php_text(value: &Element) -> String {
    let content = value.content();
    match value.attribute("type").unwrap_or_default() {
        "bool" => (if content == "1" { "true" } else { "false" }).to_string(),
        "null" => "null".to_string(),
        "uninitialized" => "uninitialized".to_string(),
        "string" => php_string(&content, value.number("size").unwrap_or(0)),
        "array" => {
            let is_list =
                value.properties().enumerate().all(|(at, child)| child.number("name") == i64::try_from(at).ok());
            let item = |child: &Element| {
                let name = child.part("name").unwrap_or_default();
                let key = if name.parse::<i64>().is_ok() { name } else { php_string(&name, 0) };
                if is_list { php_text(child) } else { format!("{key} => {}", php_text(child)) }
            };
            format!("[{}]", php_items(value, item))
        }
        "object" => {
            let class = value.attribute("classname").unwrap_or("object");
            let item = |child: &Element| format!("{}: {}", child.part("name").unwrap_or_default(), php_text(child));
            format!("{class} {{{}}}", php_items(value, item))
        }
        _ => content,
    }
}

fn php_items(value: &Element, item: impl Fn(&Element) -> String) -> String {
    let mut items: Vec<String> = value.properties().map(item).collect();
    let shown = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if value.number("numchildren").unwrap_or(0) > shown {
        items.push("…".into());
    }
    items.join(", ")
}

fn php_string(text: &str, size: i64) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '$' => out.push_str("\\$"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    if size > i64::try_from(text.len()).unwrap_or(i64::MAX) {
        out.push('…');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::xml::parse;
    use super::*;

    #[test]
    fn paths_are_told_from_expressions() {
        for path in ["$a", "$a->b", "$a['b'][3]", "$thing[\"inner\"]->x"] {
            assert!(php_is_path(path), "{path}");
        }
        for other in ["$", "a", "$a + 1", "$a->b()", "$a[$b]", "$a['b", "$a->", "$a[]", "$a['x'y']", "$a[1 + 2]"] {
            assert!(!php_is_path(other), "{other}");
        }
    }

    #[test]
    fn values_read_as_they_are_written() {
        let text = "<property type='array' numchildren='3'><property name='name' type='string' size='5'>thing</property>\
                    <property name='list' type='array' numchildren='2'><property name='0' type='int'>1</property>\
                    <property name='1' type='bool'>0</property></property></property>";
        assert_eq!(php_text(&parse(text).unwrap()), "[\"name\" => \"thing\", \"list\" => [1, false], …]");
        let text = "<property type='object' classname='P' numchildren='1'><property name='x' type='null'/></property>";
        assert_eq!(php_text(&parse(text).unwrap()), "P {x: null}");
        assert_eq!(php_text(&parse("<property type='array' numchildren='0'/>").unwrap()), "[]");
    }

    #[test]
    fn any_expression_is_one_literal() {
        assert_eq!(php_literal(r"a'b\c"), r"'a\'b\\c'");
    }
}
