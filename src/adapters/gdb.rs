//! gdb's own adapter, for C, C++ and Rust. It has one from version 14 on.
//!
//! It starts programs through a shell; ours stands in for that (`translate/startup.rs`), so that the program gets the
//! session's streams and no string is ever parsed by a real one.

mod native;

use std::time::Duration;

use serde_json::{Value, json};

use super::{Adapter, Find, Found, Install, Least, Quirks, Reach, Stdio, Way};
use crate::model::Launch;

pub const GDB: Adapter = Adapter {
    id: "gdb",
    aliases: &["gdb-dap"],
    languages: &["c", "c++", "rust", "native"],
    find: Find { least: Some(Least { version: &[14], lacks: "has no DAP" }), ..Find::programs(&["gdb"]) },
    install: Install {
        setup_name: "gdb",
        apt: &["gdb"],
        brew: Some("gdb"),
        dnf: Some("gdb"),
        instead: &[
            "lldb does all of it: bugeye setup lldb",
            "or install a newer gdb, and name it in config.toml: [adapters.gdb] path = \"/opt/gdb/bin/gdb\"",
        ],
        ..Install::NONE
    },
    way: Way::Translated("startup"),
    command,
    adapter_env,
    adapter_id: "gdb",
    launch,
    attach: |pid, _| json!({ "pid": pid }),
    remote: Some(Reach::Through(|remote| json!({ "target": format!("{}:{}", remote.host, remote.port) }))),
    // The protocol has no word for it here: nothing is attached to, and a command opens the file after that.
    core: Some(|_, _| ("attach", json!({ "target": "" }))),
    quirks: Quirks {
        print_contexts: &["hover"],
        prints_only_pure: true,
        eval_context: "watch",
        hits_in_condition: Some(|id, hits, condition| {
            let passes = format!("$_bugeye_pass({id}) >= {hits}");
            condition.map_or_else(|| passes.clone(), |condition| format!("({condition}) && {passes}"))
        }),
        arguments: (|_, _| "info args".into(), argument_names),
        catch_functions: &[
            ("panic", "rust_panic"),
            ("panic", "std::panicking::rust_panic"),
            ("panic", "__rustc::rust_panic"),
        ],
        catch_words: &[("raised", "throw")],
        is_runtime: super::lldb::is_runtime,
        function_name: |name| super::lldb::without_hash(name).to_string(),
        is_about_condition: |_| true,
        error_text,
        tidy,
        type_name,
        is_opaque,
        pages_exactly: true,
        count,
        detach_command: Some("detach"),
        disconnect_kills: true,
        starts_late: true,
        not_stopped: Some("notStopped"),
        call_reason: Some("function call"),
        has_addresses: true,
        returned: Some(("python bugeye.returned()", returned)),
        entry_function: Some("main"),
        detach_grace: Duration::from_secs(4),
        ..Quirks::PLAIN
    },
    natives: native::NATIVES,
};

/// The variable by which our shell is told the program's streams.
pub const STREAMS: &str = "BUGEYE_STREAMS";

/// What gdb itself does before anything else: nothing of the user's, the project's or the network's.
const SETTINGS: [&str; 11] = [
    "set auto-load off",
    "set debuginfod enabled off",
    "set confirm off",
    "set width 0",
    "set style enabled off",
    "set host-charset UTF-8",
    "set target-charset UTF-8",
    "set print thread-events off",
    "set backtrace past-main on",
    "set tcp connect-timeout 3",
    "set record full stop-at-limit off",
];

fn command(found: &Found) -> Vec<String> {
    let mut argv = vec![found.program.to_string_lossy().into_owned(), "-nx".into(), "-q".into()];
    for setting in SETTINGS {
        argv.extend(["-iex".into(), setting.into()]);
    }
    argv.extend(["-iex".into(), format!("python\n{}", include_str!("gdb/helper.py"))]);
    argv.extend(found.args.iter().cloned());
    argv.push("--interpreter=dap".into());
    argv
}

/// Without the user's `.gdbinit` or `.lldbinit`; Python inside a debugger would import what the user's own does.
pub(super) fn adapter_env(_: &Found, empty_home: &str) -> Vec<(String, String)> {
    let mut env = vec![("HOME".to_string(), empty_home.to_string())];
    env.extend(["PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP"].map(|name| (name.to_string(), String::new())));
    env
}

/// The program itself is named by a command before this, so that its symbols are there when breakpoints are set.
fn launch(launch: &Launch, stdio: &Stdio) -> Value {
    let stdin = stdio.input(launch);
    let mut env: serde_json::Map<String, Value> =
        launch.env.iter().map(|(name, value)| (name.clone(), Value::String(value.clone()))).collect();
    env.insert(STREAMS.into(), Value::String(format!("{stdin}\n{}\n{}", stdio.stdout, stdio.stderr)));
    json!({ "args": launch.args, "cwd": launch.cwd, "env": env })
}

/// What a command said, without where it was carried out.
fn error_text(message: &str) -> String {
    let message = message.trim().trim_start_matches("Error occurred in Python: ");
    message.trim_start_matches("warning: ").trim_end_matches('.').to_string()
}

/// Reads `n = 5` lines; continuation lines of a value are indented.
fn argument_names(answer: &str) -> Vec<String> {
    let names = answer.lines().filter(|line| !line.starts_with(char::is_whitespace));
    names.filter_map(|line| line.split_once(" = ").map(|(name, _)| name.to_string())).collect()
}

/// A pointer to a text is the text, a character loses its number, the null pointer has a name.
fn tidy(value: &str, kind: Option<&str>) -> String {
    let value = value.trim();
    let is_pointer = kind.is_some_and(|kind| kind.contains('*') || kind.contains('&'));
    if is_pointer && value == "0x0" {
        return "NULL".into();
    }
    if let Some((address, text)) = value.split_once(' ')
        && is_pointer
        && address.starts_with("0x")
        && !text.starts_with('<')
    {
        return if text.starts_with('"') { text.to_string() } else { format!("&{text}") };
    }
    if let Some((number, letter)) = value.split_once(' ')
        && kind.is_some_and(|kind| kind.contains("char"))
        && letter.starts_with('\'')
        && number.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit())
    {
        return unescaped(letter).filter(|_| kind == Some("char")).unwrap_or_else(|| letter.to_string());
    }
    without_zeros(value)
}

/// Rust's `'\xdf'` and `'\u{6f22}'`.
fn unescaped(value: &str) -> Option<String> {
    let inner = value.strip_prefix("'\\")?.strip_suffix('\'')?;
    let digits = inner.strip_prefix('x').or_else(|| inner.strip_prefix("u{")?.strip_suffix('}'))?;
    let letter = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).filter(|c| !c.is_control())?;
    Some(format!("'{letter}'"))
}

/// An array of characters is a text; what stands behind its end is none of it.
fn without_zeros(value: &str) -> String {
    let Some(text) = value.strip_prefix('"') else { return value.to_string() };
    let text = match text.split_once("\", '\\000' <repeats ") {
        Some((text, rest)) if !rest.contains('"') => text,
        _ => text.strip_suffix('"').unwrap_or(text),
    };
    format!("\"{}\"", text.trim_end_matches("\\000"))
}

fn is_opaque(value: &str, kind: Option<&str>) -> bool {
    value.is_empty()
        || value.contains("{...}")
        || value.ends_with("...}")
        || (value.starts_with("std::") && (value.contains(" of length ") || value.contains(" with ")))
        || value.contains("(size=")
        || value.starts_with("std::unique_ptr<")
        || value.starts_with("std::shared_ptr<")
        || kind.is_some_and(|kind| value == kind)
}

/// Templates of the C++ library without the arguments that nobody writes.
fn type_name(name: &str) -> String {
    const UNSAID: [&str; 8] = [
        ", std::allocator<",
        ", std::less<",
        ", std::default_delete<",
        ", std::char_traits<",
        ", std::hash<",
        ", std::equal_to<",
        ", alloc::alloc::Global",
        ", std::hash::random::RandomState",
    ];
    let mut name = name.replace("std::__cxx11::", "std::");
    while let Some((start, unsaid)) = UNSAID.iter().filter_map(|unsaid| name.find(unsaid).zip(Some(unsaid))).min() {
        if !unsaid.ends_with('<') {
            name.replace_range(start..start + unsaid.len(), "");
            continue;
        }
        let mut depth = 0;
        let ends = |c: char| {
            depth += i32::from(c == '<') - i32::from(c == '>');
            c == '>' && depth == 0
        };
        let Some(end) = name[start..].find(ends) else { break };
        name.replace_range(start..=start + end, "");
    }
    let name = name.replace(" >", ">").replace("std::basic_string<char>", "std::string");
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    // `core::option::Option<i32>` is `Option<i32>`; a name of C++ has no capital at its end.
    name.split_inclusive(|c| !is_part(c))
        .map(|piece| {
            let own = ["core::", "alloc::", "std::"].iter().any(|start| piece.starts_with(start));
            let last = piece.rfind("::").map_or(piece, |at| &piece[at + 2..]);
            if own && last.starts_with(char::is_uppercase) { last } else { piece }
        })
        .collect()
}

/// `std::vector of length 3, capacity 4`, `std::map with 2 elements`.
fn count(value: &str, _: Option<&str>) -> Option<u64> {
    let heads = [" of length ", " with ", "(size="];
    let (_, rest) = heads.iter().find_map(|head| value.split_once(head))?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

/// Reads the type and the value that the function returned, apart by a tab.
fn returned(answer: &str) -> Option<(String, String)> {
    let (kind, value) = answer.trim_end().split_once('\t')?;
    Some((kind.to_string(), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_well() {
        let cases = [
            ("0x555555556004 \"zz\"", Some("const char *"), "\"zz\""),
            ("0x0", Some("P *"), "NULL"),
            ("0x0", Some("int"), "0x0"),
            ("97 'a'", Some("char"), "'a'"),
            ("-1 '\\377'", Some("signed char"), "'\\377'"),
            ("\"in buffer\\000\\000\"", Some("char [11]"), "\"in buffer\""),
            ("\"ab\", '\\000' <repeats 13 times>", Some("char [16]"), "\"ab\""),
            ("\"ab\\000cd\"", Some("char [6]"), "\"ab\\000cd\""),
            (r"223 '\xdf'", Some("char"), "'ß'"),
            (r"28450 '\u{6f22}'", Some("char"), "'漢'"),
            (r"7 '\x07'", Some("char"), r"'\x07'"),
            ("0x7ffe {x = 1}", Some("P *"), "&{x = 1}"),
        ];
        for (value, kind, expected) in cases {
            assert_eq!(tidy(value, kind), expected, "{value}");
        }
    }

    #[test]
    fn types_are_as_people_write_them() {
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        assert_eq!(type_name(string), "std::string");
        let map =
            format!("std::map<{string}, int, std::less<{string} >, std::allocator<std::pair<{string} const, int> > >");
        assert_eq!(type_name(&map), "std::map<std::string, int>");
        assert_eq!(type_name("P *"), "P *");
        let rust = "std::collections::hash::map::HashMap<alloc::string::String, u32, std::hash::random::RandomState, alloc::alloc::Global>";
        assert_eq!(type_name(rust), "HashMap<String, u32>");
        assert_eq!(type_name("&[core::option::Option<values::Point>]"), "&[Option<values::Point>]");
        assert_eq!(type_name("a<, std::less<"), "a<, std::less<");
    }

    #[test]
    fn passes_are_counted_where_the_condition_is_true() {
        let hits = GDB.quirks.hits_in_condition.unwrap();
        assert_eq!(hits(7, 4, None), "$_bugeye_pass(7) >= 4");
        assert_eq!(hits(7, 4, Some("i > 1")), "(i > 1) && $_bugeye_pass(7) >= 4");
    }

    #[test]
    fn argument_names_are_read_from_the_native_command() {
        assert_eq!(argument_names("n = 5\np = {x = 1,\n  y = 2}\n"), ["n", "p"]);
        assert_eq!(argument_names("No arguments.\n"), Vec::<String>::new());
    }
}
