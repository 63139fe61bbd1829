//! How Delve writes values, threads, frames and errors, and what of it a reader wants to see.

/// Folders of Go's own sources, below its `src`.
const STANDARD: [&str; 56] = [
    "archive",
    "arena",
    "bufio",
    "builtin",
    "bytes",
    "cmd",
    "cmp",
    "compress",
    "container",
    "context",
    "crypto",
    "database",
    "debug",
    "embed",
    "encoding",
    "errors",
    "expvar",
    "flag",
    "fmt",
    "go",
    "hash",
    "html",
    "image",
    "index",
    "internal",
    "io",
    "iter",
    "log",
    "maps",
    "math",
    "mime",
    "net",
    "os",
    "path",
    "plugin",
    "reflect",
    "regexp",
    "runtime",
    "simd",
    "slices",
    "sort",
    "strconv",
    "strings",
    "structs",
    "sync",
    "syscall",
    "testing",
    "text",
    "time",
    "unicode",
    "unique",
    "unsafe",
    "uuid",
    "vendor",
    "weak",
    "C",
];

/// Frames of Go's own library, which is where its runtime and the machinery of tests are.
pub fn is_runtime(function: &str, file: Option<&str>) -> bool {
    let Some(file) = file else { return true };
    if function.starts_with("main.") {
        // What `go test` makes of the tests is no file that could be shown.
        return file == "_testmain.go";
    }
    let is_standard = |path: &str| path.split_once('/').is_some_and(|(folder, _)| STANDARD.contains(&folder));
    if !file.starts_with('/') {
        // As a build without paths writes it.
        return is_standard(file);
    }
    file.match_indices("/src/").any(|(at, _)| {
        let root = file[..at].rsplit('/').next().unwrap_or_default();
        let is_root = root.starts_with("go") || root == "libexec" || root.starts_with("toolchain@");
        is_root && is_standard(&file[at + "/src/".len()..])
    })
}

/// The labels that a program gave its goroutine (`[Go 7 name:worker-1] main.worker (Thread 9)`); one alone is its name.
pub fn thread_name(name: &str) -> String {
    let labels = name
        .split_once("[Go ")
        .and_then(|(_, rest)| rest.split_once(']'))
        .and_then(|(inside, _)| inside.split_once(' '))
        .map_or("", |(_, labels)| labels.trim());
    match labels.split_once(':') {
        Some((_, value)) if !labels.contains(' ') => value.to_string(),
        _ => labels.to_string(),
    }
}

/// Without what failed, which the reader knows.
pub fn error_text(message: &str) -> String {
    let text = match message.split_once(": ") {
        Some((what, rest)) if what.starts_with("Unable to ") || what.starts_with("Failed to ") => rest,
        _ => message,
    };
    if text.contains("without using 'call'") {
        return "it calls a function, which may change the program: bugeye eval".into();
    }
    if text.contains("Version of Delve is too old for Go version") {
        let (reason, _) = text.split_once(", suppress").unwrap_or((text, ""));
        return format!("{reason}); a newer one: bugeye setup delve --force");
    }
    if text == "no debugger found" {
        return "what listens there debugs nothing yet: start it with `dlv --headless`".into();
    }
    if text == "call stopped" {
        return "the function it calls stopped on its way; look: bugeye context".into();
    }
    text.to_string()
}

/// `1:4: expected operand, found 'EOF'`: what Go's parser says of an expression.
pub fn is_syntax_error(message: &str) -> bool {
    let mut parts = message.splitn(3, ':');
    let mut number =
        || parts.next().is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    number() && number()
}

/// A name that several packages have means the program's own. Delve names a few of them only.
pub fn function_again(name: &str, message: &str) -> Option<String> {
    (message.contains(" ambiguous: ") && !name.contains(['.', '/'])).then(|| format!("main.{name}"))
}

/// What a pointer points at has no name; what an interface holds is `data`.
pub fn passes_through(parent: Option<&str>, child: &str) -> bool {
    child.is_empty()
        || (child == "data" && parent.is_some_and(|kind| kind.ends_with(')') && !kind.starts_with("func(")))
}

/// A value without its type, which is told beside it; a pointer as Go prints it.
pub fn tidy(value: &str, kind: Option<&str>) -> String {
    let kind = kind.unwrap_or_default();
    let value = without_hexadecimal(value);
    let short = short_type(kind);
    let rest = [short.as_str(), kind].into_iter().filter(|kind| !kind.is_empty()).find_map(|kind| {
        let rest = value.strip_prefix(kind)?;
        rest.strip_prefix(' ').or_else(|| rest.starts_with('(').then_some(rest))
    });
    let pointer = kind.starts_with('*');
    let Some(rest) = rest else {
        return match value.strip_prefix('*') {
            Some(value) if pointer => format!("&{value}"),
            _ => value.to_string(),
        };
    };
    // A point in time, with its fields behind it.
    if let Some((inside, _)) = rest.strip_prefix('(').and_then(|rest| rest.split_once("){")) {
        return inside.to_string();
    }
    let rest = match rest.strip_prefix("len: ").and_then(|rest| rest.split_once(", cap: ")) {
        Some((_, rest)) => rest.split_once(", ").map_or(rest, |(_, items)| items),
        None => rest,
    };
    let rest = match (rest.strip_suffix(", ]"), rest.strip_suffix("...")) {
        (Some(rest), _) => format!("{rest}]"),
        (None, Some(rest)) => format!("{rest}…"),
        (None, None) => rest.to_string(),
    };
    match rest.strip_prefix('*') {
        Some(pointee) => format!("&{pointee}"),
        None if pointer && rest != "nil" && !rest.starts_with("(*") => format!("&{rest}"),
        None => rest,
    }
}

/// Whole numbers without a sign are told twice: `200 = 0xc8`.
fn without_hexadecimal(value: &str) -> &str {
    match value.rsplit_once(" = 0x") {
        Some((number, digits))
            if !value.starts_with('"') && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            number
        }
        _ => value,
    }
}

/// `map[string]*b.T` for `map[string]*example.org/a/b.T`.
fn short_type(kind: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    let ends_word = |c: char| matches!(c, '[' | ']' | '*' | '(' | ')' | '{' | '}' | ' ' | ',' | ';');
    for c in kind.chars() {
        if ends_word(c) {
            out.push_str(word.rsplit('/').next().unwrap_or_default());
            word.clear();
            out.push(c);
        } else {
            word.push(c);
        }
    }
    out.push_str(word.rsplit('/').next().unwrap_or_default());
    out
}

/// The text of a quoted string.
pub fn unquoted(text: &str) -> String {
    let Some(inside) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else { return text.to_string() };
    let mut out = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some(c) => out.push(c),
                None => {}
            },
            (c, false) => out.push(c),
        }
    }
    out
}

/// Reads `0xc000012345:   0x01   0x02 …` lines.
pub fn memory_bytes(answer: &str) -> Option<(u64, Vec<u8>)> {
    let number = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let mut start = None;
    let mut bytes = Vec::new();
    for line in answer.lines() {
        let Some((address, rest)) = line.trim().split_once(':') else { continue };
        start = start.or(number(address));
        bytes.extend(rest.split_whitespace().filter_map(number).filter_map(|byte| u8::try_from(byte).ok()));
    }
    start.filter(|_| !bytes.is_empty()).map(|start| (start, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_told_without_its_type() {
        let cases = [
            ("200 = 0xc8", "uint8", "200"),
            ("Int (2) = 0x2", "internal/abi.Kind", "Int (2)"),
            ("\"a = 0x1\"", "string", "\"a = 0x1\""),
            ("[]int len: 3, cap: 4, [1,2,3]", "[]int", "[1,2,3]"),
            ("[]int len: 0, cap: 0, nil", "[]int", "nil"),
            ("[3]int [1,2,3]", "[3]int", "[1,2,3]"),
            ("*main.P nil", "*main.P", "nil"),
            ("*main.P {x: 1, y: 2}", "*main.P", "&{x: 1, y: 2}"),
            ("*5", "*int", "&5"),
            ("main.P {x: 3, y: 4}", "main.P", "{x: 3, y: 4}"),
            ("*b.T {x: 1}", "*example.org/a/b.T", "&{x: 1}"),
            ("map[string]int [\"one\": 1, \"two\": 2, ]", "map[string]int", "[\"one\": 1, \"two\": 2]"),
            ("error(*errors.errorString) *{s: \"oops\"}", "error(*errors.errorString)", "&{s: \"oops\"}"),
            ("error nil", "error", "nil"),
            ("interface {}(int) 42", "interface {}(int)", "42"),
            ("time.Time(2026-11-16T00:34:53Z, +266676){wall: 1}", "time.Time", "2026-11-16T00:34:53Z, +266676"),
            ("main.Big {a: 1, b: ...", "main.Big", "{a: 1, b: …"),
            ("Blue (1)", "main.Color", "Blue (1)"),
            ("main.add", "func(int, int) int", "main.add"),
            ("-7", "int", "-7"),
        ];
        for (value, kind, expected) in cases {
            assert_eq!(tidy(value, Some(kind)), expected, "{value}");
        }
    }

    #[test]
    fn the_library_is_told_from_the_program() {
        let cases = [
            ("runtime.gopark", "/usr/local/go/src/runtime/proc.go", true),
            ("testing.(*common).Fail", "/usr/lib/go-1.26/src/testing/testing.go", true),
            (
                "fmt.Println",
                "/home/me/go/pkg/mod/golang.org/toolchain@v0.0.1-go1.24.0.linux-amd64/src/fmt/print.go",
                true,
            ),
            ("runtime.main", "runtime/proc.go", true),
            ("main.main", "_testmain.go", true),
            ("main.main", "/home/me/go/src/fmt/main.go", false),
            ("lib.Parse", "/home/me/go/src/example.org/lib/parse.go", false),
            ("lib.Parse", "/home/me/go/pkg/mod/example.org/lib@v1.0.0/parse.go", false),
            ("net.Dial", "/home/me/code/src/net/dial.go", false),
        ];
        for (function, file, expected) in cases {
            assert_eq!(is_runtime(function, Some(file)), expected, "{function} {file}");
        }
    }

    #[test]
    fn goroutines_have_the_names_their_labels_give_them() {
        assert_eq!(thread_name("* [Go 1] main.main (Thread 77)"), "");
        assert_eq!(thread_name("[Go 7 name:worker-1] main.worker"), "worker-1");
        assert_eq!(thread_name("[Go 7 a:1 b:2] main.worker"), "a:1 b:2");
        assert_eq!(thread_name("Current"), "");
    }

    #[test]
    fn the_programs_own_function_is_meant() {
        let message = "Location \"work\" ambiguous: other.work, main.work…";
        assert_eq!(function_again("work", message), Some("main.work".into()));
        assert_eq!(function_again("T.work", message), None);
        assert_eq!(function_again("work", "location \"work\" not found"), None);
    }

    #[test]
    fn errors_say_what_to_do() {
        let old = "Failed to launch: Version of Delve is too old for Go version go1.30 (maximum supported version 1.27, \
                   suppress this error with --check-go-version=false)";
        let said = "Version of Delve is too old for Go version go1.30 (maximum supported version 1.27); a newer one: \
                    bugeye setup delve --force";
        assert_eq!(error_text(old), said);
        assert_eq!(error_text("Unable to evaluate expression: no such thing"), "no such thing");
    }

    #[test]
    fn a_parsers_complaint_is_known() {
        assert!(is_syntax_error("1:4: expected operand, found 'EOF'"));
        assert!(!is_syntax_error("could not find file /a/b.go"));
        assert!(!is_syntax_error(""));
    }

    #[test]
    fn bytes_are_read() {
        let answer = "0xc000010000:   0x01   0xff   \n0xc000010002:   0x20   \n";
        assert_eq!(memory_bytes(answer), Some((0xc0_0001_0000, vec![1, 255, 32])));
        assert_eq!(memory_bytes("examine memory error: input/output error"), None);
    }

    #[test]
    fn quotes_are_taken_off() {
        assert_eq!(unquoted("\"a \\\"b\\\"\\nc\""), "a \"b\"\nc");
        assert_eq!(unquoted("plain"), "plain");
    }
}
