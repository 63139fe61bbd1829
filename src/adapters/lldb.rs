//! LLDB's own adapter, for C, C++ and Rust.

mod native;

pub(super) use native::{NATIVES, bound_line, prepare as prepare_hook, values as watch_values};

use std::time::Duration;

use serde_json::{Value, json};

use super::{Adapter, Find, Found, Install, Quirks, Reach, Stdio, Way};
use crate::dap::types::StoppedBody;
use crate::model::{Launch, Remote};

pub const LLDB: Adapter = Adapter {
    id: "lldb-dap",
    aliases: &["lldb", "lldb-vscode"],
    languages: &["c", "c++", "rust", "native"],
    find: Find {
        versions: 14..=30,
        xcrun: Some("lldb-dap"),
        ..Find::programs(&["lldb-dap-{v}", "lldb-dap", "lldb-vscode-{v}", "lldb-vscode"])
    },
    install: Install {
        setup_name: "lldb",
        apt: &["lldb-19", "lldb-22", "lldb-21", "lldb-20", "lldb-18", "lldb"],
        brew: Some("llvm"),
        dnf: Some("lldb"),
        ..Install::NONE
    },
    way: Way::Streams,
    command,
    adapter_env,
    adapter_id: "lldb-dap",
    launch,
    attach,
    remote: Some(Reach::Bridged(remote)),
    core: Some(core),
    quirks: Quirks {
        print_contexts: &["hover", "watch"],
        eval_context: "watch",
        raw: |text| format!("`{text}"),
        raw_answer: without_echo,
        hit_condition: |n| n.to_string(),
        hit_ids,
        arguments: (|_, _| "`frame variable --no-locals".into(), argument_names),
        catch_functions: &[("panic", "rust_panic")],
        catch_words: &[("throw", "cpp_throw"), ("raised", "cpp_throw"), ("catch", "cpp_catch")],
        is_runtime,
        function_name: |name| without_hash(name).replace("_$u7b$", "{").replace("$u7b$", "{").replace("$u7d$", "}"),
        thread_name,
        error_text,
        tidy,
        is_opaque,
        shares_scopes: true,
        count,
        exit_signal: |code, last_signal| {
            // An exit by a signal is told as its number, which exit(11) is too: only a stop by that signal decides.
            last_signal.filter(|name| signal_number(name) == Some(code)).map(Into::into)
        },
        detach_grace: Duration::from_secs(4),
        detach_command: Some("`process detach"),
        forget_step: Some("`thread plan discard 1"),
        has_addresses: true,
        returned: Some(("`thread info", returned)),
        is_nonsense: has_two_words,
        entry_function: Some("main"),
        ..Quirks::PLAIN
    },
    natives: native::NATIVES,
};

/// LLDB names an enum's variants by the low 32 bits of their discriminants, and Rust's formatter looks for all 64: it
/// would show the wrong variant of every enum whose discriminant is kept in a niche, such as `Result<i32, String>`.
const WIDE_DISCRIMINANTS: &str = concat!(
    "script import lldb_providers; enum = lldb_providers.ClangEncodedEnumProvider; ",
    "enum._getCurrentVariantIndex = (lambda narrow: lambda self, variants: next((i for i in range(variants.GetNumChildren()) ",
    "for variant in [variants.GetChildAtIndex(i)] for discriminant in [variant.GetChildMemberWithName('$discr$')] ",
    "if discriminant.IsValid() and discriminant.GetValueAsUnsigned() >> 32 ",
    "and variant.GetName() == '$variant$%d' % (discriminant.GetValueAsUnsigned() & 0xffffffff)), ",
    "narrow(self, variants)))(enum._getCurrentVariantIndex)",
);

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned()];
    argv.extend(found.args.iter().cloned());
    argv
}

/// The adapter would run the user's and the project's `.lldbinit`: it gets a home with none. The debuggee gets the real
/// one back through `launch`.
fn adapter_env(_: &Found, empty_home: &str) -> Vec<(String, String)> {
    vec![("HOME".into(), empty_home.into())]
}

fn launch(launch: &Launch, stdio: &Stdio) -> Value {
    let stdin = stdio.input(launch);
    let mut init = vec![
        format!("settings set target.input-path {}", word(&stdin)),
        format!("settings set target.output-path {}", word(&stdio.stdout)),
        format!("settings set target.error-path {}", word(&stdio.stderr)),
        // Symbols are read where something asks for them, not of every library before the first stop.
        "settings set target.preload-symbols false".into(),
    ];
    init.extend(formatters(launch));
    // Only the list form is understood by every version; a map is silently ignored up to 19.
    let env: Vec<String> = launch.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    json!({
        "program": launch.program,
        "args": launch.args,
        "cwd": launch.cwd,
        "env": env,
        "stopOnEntry": launch.stop_on_entry,
        "initCommands": init,
        "enableAutoVariableSummaries": true,
    })
}

/// The commands that load a toolchain's own formatters.
pub(super) fn formatters(launch: &Launch) -> Vec<String> {
    let Some(folder) = &launch.formatters else { return Vec::new() };
    let folder = folder.to_string_lossy();
    vec![
        format!("command script import {}", word(&format!("{folder}/lldb_lookup.py"))),
        format!("command source -s 1 {}", word(&format!("{folder}/lldb_commands"))),
        WIDE_DISCRIMINANTS.into(),
    ]
}

fn attach(pid: u32, program: Option<&str>) -> Value {
    let mut arguments = json!({ "pid": pid, "enableAutoVariableSummaries": true, "stopOnEntry": true });
    if let Some(program) = program {
        arguments["program"] = Value::String(program.into());
    }
    arguments
}

/// The program is where a server of gdb's protocol has it.
fn remote(remote: &Remote) -> Value {
    let address = word(&format!("unix-connect://{}", remote.socket.display()));
    let mut arguments = json!({
        "attachCommands": [format!("process connect --plugin gdb-remote {address}")],
        "enableAutoVariableSummaries": true,
        "stopOnEntry": true,
    });
    if let Some(program) = &remote.program {
        arguments["program"] = json!(program);
    }
    arguments
}

fn core(core: &str, program: Option<&str>) -> (&'static str, Value) {
    let mut arguments = json!({ "coreFile": core, "enableAutoVariableSummaries": true, "stopOnEntry": true });
    if let Some(program) = program {
        arguments["program"] = Value::String(program.into());
    }
    ("attach", arguments)
}

/// One word of an LLDB command line.
pub(super) fn word(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('`', "\\`"))
}

/// The answer to a command, without the line that repeats the command.
fn without_echo(answer: &str) -> String {
    match answer.split_once('\n') {
        Some((first, rest)) if first.starts_with("(lldb) ") => rest.to_string(),
        _ => answer.to_string(),
    }
}

/// Reads `(int) n = 5` lines; continuation lines of a value are indented.
pub(super) fn argument_names(answer: &str) -> Vec<String> {
    without_echo(answer)
        .lines()
        .filter(|line| line.starts_with('('))
        .filter_map(|line| {
            let (head, _) = line.split_once(" = ").unwrap_or((line, ""));
            head.rsplit(' ').next().map(Into::into)
        })
        .collect()
}

pub(super) fn is_runtime(function: &str, file: Option<&str>) -> bool {
    // Libraries built elsewhere name their sources by relative paths or Rust's own root; code without sources has none,
    // or a name made of its module and function.
    if !file.is_some_and(|file| file.starts_with('/') && !file.starts_with("/rustc/") && !file.contains('`')) {
        return true;
    }
    const NAMES: [&str; 4] = ["_start", "start_thread", "clone3", "__clone3"];
    const STARTS: [&str; 11] = [
        "__libc_start",
        "__GI_",
        "std::rt::",
        "std::sys::",
        "std::panic",
        "std::thread",
        "core::ops::function::",
        "<core::panic",
        "<alloc::boxed::Box",
        "core::panicking::",
        "__rust",
    ];
    NAMES.contains(&function)
        || STARTS.iter().any(|start| function.starts_with(start))
        || function.starts_with("rust_")
        || function.contains("__rust_begin_short_backtrace")
}

/// Rust's names end in a hash (`values::main::h0123456789abcdef`).
pub(super) fn without_hash(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest,
        _ => name,
    }
}

/// `Thread #4 worker` of older versions.
fn thread_name(name: &str) -> String {
    let rest = name.strip_prefix("Thread #").map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.unwrap_or(name).trim_start().to_string()
}

/// Up to version 14 only the description tells: `breakpoint 1.1 2.1`.
fn hit_ids(stopped: &StoppedBody) -> Vec<i64> {
    if !stopped.hit_breakpoint_ids.is_empty() {
        return stopped.hit_breakpoint_ids.clone();
    }
    let places = stopped.description.as_deref().and_then(|text| text.strip_prefix("breakpoint ")).unwrap_or_default();
    places.split_whitespace().filter_map(|place| place.split('.').next()?.parse().ok()).collect()
}

/// `error: <user expression 0>:1:1: use of undeclared identifier 'x'` and a drawing: the sentence is enough.
pub(super) fn error_text(message: &str) -> String {
    let mut lines = message.lines().filter(|line| !line.trim().is_empty());
    let line =
        lines.clone().find(|line| line.contains("<user expression ")).or_else(|| lines.next()).unwrap_or(message);
    let line = line.trim().trim_start_matches("error: ");
    match line.split_once("<user expression ").and_then(|(_, rest)| rest.split_once(": ")) {
        Some((_, sentence)) => sentence.trim_start_matches("error: ").to_string(),
        None => line.to_string(),
    }
}

/// Addresses lose their padding, a pointer to something shown loses its address, a character its number.
fn tidy(value: &str, kind: Option<&str>) -> String {
    if kind == Some("char32_t")
        && let Some((_, letter)) = value.rsplit_once("U'")
    {
        return format!("'{letter}");
    }
    match value.trim() {
        "Has Value=false" => return "nullopt".into(),
        "Has Value=true" => return String::new(),
        _ => {}
    }
    let value = without_padding(&variant(value).unwrap_or_else(|| value.to_string()));
    // Older versions show what is behind the end of a string, too.
    if let Some(text) = value.strip_suffix('"').filter(|text| text.starts_with('"') && text.ends_with("\\0")) {
        return format!("{}\"", text.trim_end_matches("\\0"));
    }
    if value == "NULL" || value.starts_with("NULL ") {
        return "NULL".into();
    }
    let Some(rest) = value.strip_prefix("0x") else { return value };
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    let is_pointer = kind.is_none_or(|kind| kind.contains(['*', '&', '(']) || kind.starts_with("alloc::"));
    match rest[digits..].trim_start() {
        "" => value,
        _ if !is_pointer => value,
        text if text.starts_with('"') => text.to_string(),
        summary => format!("&{summary}"),
    }
}

/// `0x00007fffffffe4f0` → `0x7fffffffe4f0`, and the null pointer by its name.
fn without_padding(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find("0x") {
        out.push_str(&rest[..at]);
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let number = &rest[at + 2..at + 2 + digits];
        match number.trim_start_matches('0') {
            "" if digits == 16 => out.push_str("NULL"),
            short if digits == 16 => {
                out.push_str("0x");
                out.push_str(short);
            }
            _ => out.push_str(&rest[at..at + 2 + digits]),
        }
        rest = &rest[at + 2 + digits..];
    }
    out.push_str(rest);
    out
}

/// A Rust enum behind a pointer is told with all its variants: keeps the one that it is, with its fields where its
/// number is plain.
fn variant(text: &str) -> Option<String> {
    let (name, variants) = text.split_once("{$variants$:")?;
    let (_, after) = variants.split_once("$discr$:")?;
    let number: String = after.chars().take_while(char::is_ascii_digit).collect();
    let start = format!("$variant${number}:{{$discr$:{number}, value:");
    let fields = variants.split_once(&start).and_then(|(_, value)| {
        let mut depth = 0;
        let is_end = |c: char| {
            depth += i32::from(c == '{' || c == '(') - i32::from(c == '}' || c == ')');
            depth == 0
        };
        value.get(..=value.find(is_end)?)
    });
    Some(format!("{name}{}", fields.filter(|fields| *fields != "()").unwrap_or_default()))
}

/// Reads `Return value: (long) $0 = 1`.
pub(super) fn returned(answer: &str) -> Option<(String, String)> {
    let (_, rest) = answer.split_once("Return value: (")?;
    let (kind, rest) = rest.split_once(") $")?;
    let (_, value) = rest.split_once(" = ")?;
    let end = value.find("\nStop reason").unwrap_or(value.len());
    Some((kind.to_string(), value[..end].trim().to_string()))
}

/// `size=3` of a container, `int[10000]` of an array.
fn count(value: &str, kind: Option<&str>) -> Option<u64> {
    if let Some(rest) = value.strip_prefix("size=") {
        return rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    }
    let kind = kind?.strip_suffix(']')?;
    kind[kind.find('[')? + 1..].split(']').next()?.parse().ok()
}

/// Two names side by side, outside parentheses and strings: lldb's variable paths would read one and ignore the other.
fn has_two_words(expression: &str) -> bool {
    let mut depth = 0;
    let mut plain = String::new();
    let mut chars = expression.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '"' => {
                while let Some(inner) = chars.next() {
                    match inner {
                        '"' => break,
                        '\\' => {
                            chars.next();
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        plain.push(if depth > 0 || c == '"' { ';' } else { c });
    }
    let is_name = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let last = pair[0].rsplit(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).next().unwrap_or_default();
        let first: String = pair[1].chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == '$').collect();
        !last.is_empty() && !first.is_empty() && is_name(last) && !["sizeof", "new", "not", "and", "or"].contains(&last)
    })
}

fn is_opaque(value: &str, kind: Option<&str>) -> bool {
    if value.starts_with("0x0000000000000000") {
        return false;
    }
    value.is_empty()
        || value.starts_with("size=")
        || value.contains(":size=")
        || value.trim() == "Has Value=true"
        || (value.starts_with("0x")
            && kind.is_some_and(|kind| kind.contains("unique_ptr<") || kind.contains("shared_ptr<")))
        || value.ends_with("...}")
        || value.contains("{...}")
        || kind.is_some_and(|kind| value.starts_with(kind) && value.contains(" @ 0x"))
}

fn signal_number(name: &str) -> Option<i64> {
    const SIGNALS: [(&str, i64); 12] = [
        ("SIGHUP", 1),
        ("SIGINT", 2),
        ("SIGQUIT", 3),
        ("SIGILL", 4),
        ("SIGTRAP", 5),
        ("SIGABRT", 6),
        ("SIGBUS", 7),
        ("SIGFPE", 8),
        ("SIGKILL", 9),
        ("SIGSEGV", 11),
        ("SIGPIPE", 13),
        ("SIGTERM", 15),
    ];
    SIGNALS.iter().find(|(signal, _)| *signal == name).map(|(_, number)| *number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_read_well() {
        let pointer = Some("P *");
        let cases = [
            ("0x00007fffffffe4f0 {x:1, y:2}", pointer, "&{x:1, y:2}"),
            ("0x0000555555556004 \"zz\"", Some("const char *"), "\"zz\""),
            ("0x00007fffffffe4f0", pointer, "0x7fffffffe4f0"),
            ("0x0000000000000000", pointer, "NULL"),
            ("{x:1}", None, "{x:1}"),
            ("0x2a", Some("int"), "0x2a"),
            ("\"in buffer\\0\\0\"", Some("char[11]"), "\"in buffer\""),
            ("0x0000000000000000 {name:<error: parent is NULL>}", pointer, "NULL"),
            (
                "{value:10, next:0x00007fffffffe660, last:0x0000000000000000}",
                None,
                "{value:10, next:0x7fffffffe660, last:NULL}",
            ),
            ("U+0x000000df U+0x000000df U'ß'", Some("char32_t"), "'ß'"),
            (" Has Value=false ", Some("std::optional<int>"), "nullopt"),
        ];
        for (value, kind, expected) in cases {
            assert_eq!(tidy(value, kind), expected, "{value}");
        }
    }

    #[test]
    fn argument_names_are_read_from_the_native_command() {
        let answer = "(lldb) frame variable --no-locals\n(int) n = 5\n(P *) p = 0x00007fffffffe4f0\n(S) s = (a = 1)\n";
        assert_eq!(argument_names(answer), ["n", "p", "s"]);
    }

    #[test]
    fn names_and_errors_lose_their_decoration() {
        assert_eq!(without_hash("values::main::ha33e9f8eaede3f3e"), "values::main");
        assert_eq!(without_hash("a::hello"), "a::hello");
        assert_eq!(
            (thread_name("Thread #4 worker-3"), thread_name("worker-3")),
            ("worker-3".into(), "worker-3".into())
        );
        let message = "error: <user expression 0>:1:1: use of undeclared identifier 'x'\n    1 | x\n      | ^\n";
        assert_eq!(error_text(message), "use of undeclared identifier 'x'");
        assert_eq!(error_text("error: invalid value object"), "invalid value object");
    }

    #[test]
    fn an_enum_behind_a_pointer_is_the_variant_that_it_is() {
        let text = |number: u8| {
            format!(
                "0x00007fffffffe398 Circle{{$variants$:{{$variant$0:{{$discr$:{number}, value:()}}, \
                 $variant$1:{{$discr$:{number}, value:{{0:2}}}}}}}}"
            )
        };
        assert_eq!(tidy(&text(1), Some("Shape *")), "&Circle{0:2}");
        assert_eq!(tidy(&text(0), Some("Shape *")), "&Circle");
        assert_eq!(tidy(&text(9), Some("Shape *")), "&Circle");
    }

    #[test]
    fn what_a_function_returned_is_read_from_the_native_command() {
        let answer =
            "thread #1: tid = 7, 0x5e a`f(n=2) at a.c:7:18, stop reason = step out\nReturn value: (long) $0 = 1\n";
        assert_eq!(returned(answer), Some(("long".into(), "1".into())));
        assert_eq!(returned("thread #1: tid = 7, stop reason = step over"), None);
    }

    #[test]
    fn two_names_are_no_expression() {
        for nonsense in ["i sum", "a b c", "p.x q"] {
            assert!(has_two_words(nonsense), "{nonsense}");
        }
        for fine in ["i", "i + sum", "(unsigned int) x", "a [1]", "sizeof x", "\"a b\"", "x == y", "a->b"] {
            assert!(!has_two_words(fine), "{fine}");
        }
    }

    #[test]
    fn containers_and_arrays_tell_their_size() {
        assert_eq!(count("size=3", None), Some(3));
        assert_eq!(count("{1, 2}", Some("int[10000]")), Some(10_000));
        assert_eq!(count("", Some("int[2][3]")), Some(2));
        assert_eq!(count("{x:1}", Some("P")), None);
    }

    #[test]
    fn a_path_with_quotes_stays_one_word() {
        assert_eq!(word(r#"/a "b\c"#), r#""/a \"b\\c""#);
    }

    #[test]
    fn only_a_stop_by_that_signal_makes_an_exit_code_a_signal() {
        let signal = LLDB.quirks.exit_signal;
        assert_eq!(signal(11, Some("SIGSEGV")), Some("SIGSEGV".into()));
        assert_eq!(signal(11, None), None);
        assert_eq!(signal(3, Some("SIGSEGV")), None);
    }
}
