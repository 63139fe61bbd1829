//! LLDB's own commands, for what its adapter lacks in one version or another: the same command works in all of them.

use super::{has_two_words, without_echo};
use crate::adapters::{Access, Arm, Hook, Natives, Tracing, Watching};
use crate::dap::types::StoppedBody;
use crate::model::{Place, Point, is_pure};

pub const NATIVES: Natives = Natives {
    failure,
    memory_read: Some(|address, count| format!("memory read --force -f x -s 1 -c {count} {address}")),
    memory_bytes,
    memory_write: Some(|address, bytes| {
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
        format!("memory write -s 1 {address} {}", bytes.join(" "))
    }),
    memory_writes: None,
    address_of: |expression| format!("(unsigned long)({expression})"),
    at_address: None,
    disassemble: Some(|address, count, mixed| {
        let place = match (address, count) {
            (Some(address), _) => format!("-s {address}"),
            (None, Some(_)) => "--pc".into(),
            (None, None) => "--frame".into(),
        };
        let count = count.map(|count| format!(" -c {count}")).unwrap_or_default();
        format!("disassemble {place}{count}{}", if mixed { " --mixed" } else { "" })
    }),
    jump: Some(|file, line| format!("thread jump --file \"{}\" --line {line}", file.replace('"', "\\\""))),
    watch: Some(Watching {
        set: |expression, access| {
            let access = match access {
                // Later versions would else stop only at a change.
                Access::Write => "-w write ",
                Access::Read => "-w read ",
                Access::Either => "-w read_write ",
            };
            format!("watchpoint set variable {access}{expression}")
        },
        number: |answer| number_after(answer, "Watchpoint created: Watchpoint "),
        condition: |number, condition| format!("watchpoint modify -c '{}' {number}", condition.replace('\'', "\"")),
        remove: |number| format!("watchpoint delete {number}"),
        list: "watchpoint list",
        values,
        gone: |_| Vec::new(),
        stopped: |stopped: &StoppedBody| number_after(stopped.description.as_deref()?, "watchpoint "),
    }),
    // The second argument of __cxa_throw is the type's description, whose second word points to the mangled name.
    thrown_type: Some(("*(char **)((unsigned long)$arg2 + 8)", |value, wanted| {
        value.trim_matches('"').trim_start_matches('*') == mangled(wanted)
    })),
    trace: Some(Tracing {
        name: "in the debugger",
        prepare: |hook, _| prepare(hook, true),
        arm: Arm::Command { set, read: bound_line },
        reads: |text| is_pure(text) && !has_two_words(text),
        beside: None,
        disarm: Some("script import bugeye_hook; bugeye_hook.remove()"),
        calls: Some(|hook| {
            let globs: Vec<String> = hook.calls.iter().map(|glob| python(glob)).collect();
            let globs = globs.join(", ");
            let calls = format!("script import bugeye_hook; bugeye_hook.calls([{globs}], {})", hook.most_calls);
            // The hook's own command fails where no function is called like that, or too many are.
            vec![calls, "bugeye-calls".into()]
        }),
    }),
    ..Natives::NONE
};

/// What writes down hits, run by LLDB's own Python.
const HOOK: &str = concat!(include_str!("../hooks/common.py"), include_str!("hook.py"));

/// `plain` where values are to be told as LLDB's own adapter does.
pub fn prepare(hook: &Hook, plain: bool) -> Vec<String> {
    let (path, plain) = (python(&hook.sink), if plain { "True" } else { "False" });
    let make = format!("({path}, {}, {}, {plain})", hook.most, hook.frames);
    vec![format!("script names = {{}}; exec({}, names); names[\"make\"]{make}", python(HOOK))]
}

pub fn set(point: &Point) -> Vec<String> {
    let place = match &point.place {
        Place::Line { file, line } => format!("{}, {line}, None, None", python(file)),
        Place::Function { name, .. } => format!("None, 0, {}, None", python(name)),
        Place::Address(address) => format!("None, 0, None, {address}"),
    };
    // What may change the program is evaluated once at a pass, by the hook alone.
    let when = point.when.as_deref().map_or_else(
        || "None, False".into(),
        |when| format!("{}, {}", python(when), if is_pure(when) { "True" } else { "False" }),
    );
    let texts: Vec<String> = point.expressions.iter().map(|text| python(text)).collect();
    let add = format!(
        "script import bugeye_hook; bugeye_hook.add({}, {place}, {when}, {}, [{}])",
        point.id,
        point.every,
        texts.join(", ")
    );
    // What a script prints goes elsewhere; the list is answered.
    vec![add, format!("breakpoint list bugeye_{}", point.id)]
}

/// Reads `4.1: where = program`work + 20 at loop.c:6:9, address = …` from a list of breakpoints.
pub fn bound_line(answer: &str) -> Result<Option<u32>, String> {
    let text = without_echo(answer);
    let Some((_, place)) = text.lines().find_map(|line| line.split_once(": where = ")) else {
        return Err("no code of this program comes from there".into());
    };
    let place = place.split(", address").next().and_then(|place| place.rsplit_once(" at "));
    Ok(place.and_then(|(_, place)| place.split(':').nth(1)).and_then(|line| line.parse().ok()))
}

/// A Python string literal of any text, in one line and without a quote that LLDB's command line would read.
fn python(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\x22"),
            '`' => out.push_str("\\x60"),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// LLDB reports a failed command as text that begins with `error:`.
fn failure(answer: &str) -> Option<String> {
    let text = without_echo(answer);
    text.lines().find_map(|line| line.trim().strip_prefix("error: ")).map(Into::into)
}

/// Reads `0x7fffffffe4ec: 0x00 0x10 …` lines.
fn memory_bytes(answer: &str) -> Option<(u64, Vec<u8>)> {
    let mut start = None;
    let mut bytes = Vec::new();
    for line in without_echo(answer).lines() {
        let Some((address, rest)) = line.trim().strip_prefix("0x").and_then(|line| line.split_once(": ")) else {
            continue;
        };
        start = start.or_else(|| u64::from_str_radix(address, 16).ok());
        for word in rest.split_whitespace() {
            bytes.push(u8::from_str_radix(word.strip_prefix("0x")?, 16).ok()?);
        }
    }
    start.map(|start| (start, bytes))
}

fn number_after(text: &str, head: &str) -> Option<u32> {
    let rest = &text[text.find(head)? + head.len()..];
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Reads `watchpoint list`: each watchpoint's `old value:` and `new value:` follow its heading.
pub fn values(answer: &str) -> Vec<(u32, Option<String>, Option<String>)> {
    let mut out: Vec<(u32, Option<String>, Option<String>)> = Vec::new();
    for line in answer.lines() {
        let line = line.trim();
        if line.starts_with("Watchpoint ") && line.contains(": addr = ") {
            out.extend(number_after(line, "Watchpoint ").map(|number| (number, None, None)));
        } else if let (Some(last), Some(value)) = (out.last_mut(), line.strip_prefix("old value: ")) {
            last.1 = Some(value.into());
        } else if let (Some(last), Some(value)) = (out.last_mut(), line.strip_prefix("new value: ")) {
            last.2 = Some(value.into());
        }
    }
    out
}

/// The C++ ABI's name of a plain or nested type: `std::runtime_error` → `St13runtime_error`, `a::B` → `N1a1BE`.
fn mangled(name: &str) -> String {
    let parts: Vec<&str> = name.split("::").map(str::trim).filter(|part| !part.is_empty()).collect();
    let spelled = |parts: &[&str]| parts.iter().map(|part| format!("{}{part}", part.len())).collect::<String>();
    match parts.as_slice() {
        ["std", one] => format!("St{}", spelled(&[one])),
        ["std", rest @ ..] => format!("NSt{}E", spelled(rest)),
        [one] => match *one {
            "int" => "i".into(),
            "char" => "c".into(),
            "bool" => "b".into(),
            "double" => "d".into(),
            "float" => "f".into(),
            "long" => "l".into(),
            "unsigned" | "unsigned int" => "j".into(),
            "const char *" | "const char*" => "PKc".into(),
            one => spelled(&[one]),
        },
        parts => format!("N{}E", spelled(parts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_native_answer() {
        let answer = "(lldb) memory read\n0x7fffffffe4ec: 0x00 0x01\n0x7fffffffe4ee: 0xff\n";
        assert_eq!(memory_bytes(answer), Some((0x7fff_ffff_e4ec, vec![0, 1, 255])));
        assert_eq!(
            failure("(lldb) x\nerror: memory read failed for 0x0\n").as_deref(),
            Some("memory read failed for 0x0")
        );
        assert_eq!(failure("(lldb) x\nfine\n"), None);
    }

    #[test]
    fn watchpoints_are_read_from_both_forms_of_the_list() {
        let new = "Watchpoint 1: addr = 0x7f size = 4\n  watchpoint resources:\nWatchpoint 1 hit:\n    old value: 0\nnew value: 5\n";
        let old = "Watchpoint 2: addr = 0x7f size = 4\n    new value: 0\n";
        assert_eq!(values(new), [(1, Some("0".into()), Some("5".into()))]);
        assert_eq!(values(old), [(2, None, Some("0".into()))]);
        let set = "Watchpoint created: Watchpoint 12: addr = 0x7f";
        assert_eq!((NATIVES.watch.unwrap().number)(set), Some(12));
    }

    #[test]
    fn any_text_is_one_line_of_python() {
        assert_eq!(
            python("a\r\n\t\u{85}\0 \"b\" `c` \\ é"),
            r#""a\u000d\u000a\u0009\u0085\u0000 \x22b\x22 \x60c\x60 \\ é""#
        );
    }

    #[test]
    fn types_are_named_as_the_abi_does() {
        let cases = [
            ("std::runtime_error", "St13runtime_error"),
            ("MyError", "7MyError"),
            ("a::b::C", "N1a1b1CE"),
            ("int", "i"),
            ("std::filesystem::filesystem_error", "NSt10filesystem16filesystem_errorE"),
        ];
        for (name, expected) in cases {
            assert_eq!(mangled(name), expected, "{name}");
        }
    }
}
