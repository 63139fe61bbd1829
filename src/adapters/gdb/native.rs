//! gdb's own commands, for what its side of the protocol lacks.

use crate::adapters::{Access, Arm, Hook, Natives, Reverse, Tracing, Watching};
use crate::model::{Place, Point, Reason, Target};

pub const NATIVES: Natives = Natives {
    memory_read: Some(|address, count| format!("x/{count}xb {address}")),
    memory_bytes,
    memory_write: Some(|address, bytes| {
        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
        format!("python gdb.selected_inferior().write_memory({address}, bytes([{}]))", bytes.join(","))
    }),
    address_of: |expression| format!("(unsigned long)({expression})"),
    disassemble: Some(|address, count, mixed| {
        let mode = if mixed { "/s" } else { "" };
        let command = match (address, count) {
            (address, Some(count)) if !mixed => format!("x/{count}i {}", address.unwrap_or("$pc")),
            // Four bytes an instruction are a fair guess where lines of source are to stand between them.
            (Some(address), Some(count)) => format!("disassemble {mode} {address},+{}", count.saturating_mul(4)),
            (None, Some(count)) => format!("disassemble {mode} $pc,+{}", count.saturating_mul(4)),
            (Some(address), None) => format!("disassemble {mode} {address}"),
            (None, None) => format!("disassemble {mode}"),
        };
        format!("python bugeye.code({})", literal(&command))
    }),
    jump: Some(|file, line| format!("python bugeye.jump({}, {line})", literal(file))),
    watch: Some(Watching {
        set: |expression, access| {
            let command = match access {
                Access::Write => "watch",
                Access::Read => "rwatch",
                Access::Either => "awatch",
            };
            format!("{command} {expression}")
        },
        number: |answer| {
            let (head, _) = answer.lines().find(|line| line.contains("atchpoint "))?.split_once(':')?;
            head.rsplit(' ').next()?.parse().ok()
        },
        condition: |number, condition| format!("condition {number} {condition}"),
        remove: |number| format!("delete {number}"),
        list: "python bugeye.watched()",
        values,
        gone,
        // Several may be named, with others that did not stop it.
        stopped: |_| None,
    }),
    thrown_type: Some(("$_bugeye_thrown()", |value, wanted| {
        let name = |text: &str| text.trim_matches('"').replace(' ', "");
        name(value) == name(wanted)
    })),
    prepare,
    settled,
    why: Some(("python bugeye.why()", why)),
    version: Some("python print(gdb.VERSION)"),
    reverse: Some(Reverse {
        record: "record full",
        back: "python bugeye.back('reverse-next &')",
        to_breakpoint: "python bugeye.back('reverse-continue &')",
        not_recorded: "does not support this command",
        env: RECORDABLE,
    }),
    go: Some("python bugeye.go('continue &')"),
    trace: Some(Tracing {
        name: "in the debugger",
        prepare: prepare_hook,
        arm: Arm::Command { set: set_point, read: bound_line },
        // What would call or assign is refused by gdb itself, and told so.
        reads: |_| true,
        beside: None,
        disarm: Some("python bugeye_hook.remove()"),
        calls: Some(|hook| {
            let globs: Vec<String> = hook.calls.iter().map(|glob| literal(glob)).collect();
            vec![format!("python bugeye_hook.calls([{}], {})", globs.join(", "), hook.most_calls)]
        }),
    }),
    ..Natives::NONE
};

/// What writes down hits, run by gdb's own Python.
const HOOK: &str = concat!(include_str!("../hooks/common.py"), include_str!("hook.py"));

fn prepare_hook(hook: &Hook, _: &[Point]) -> Vec<String> {
    vec![
        format!("python exec({}, {{}})", literal(HOOK)),
        format!("python bugeye_hook.ready({}, {}, {})", literal(&hook.sink), hook.most, hook.frames),
    ]
}

fn set_point(point: &Point) -> Vec<String> {
    let place = match &point.place {
        Place::Line { file, line } => format!("{{\"source\": {}, \"line\": {line}}}", literal(file)),
        Place::Function { name, .. } => format!("{{\"function\": {}}}", literal(name)),
        Place::Address(address) => format!("{{\"spec\": {}}}", literal(&format!("*{address}"))),
    };
    let when = point.when.as_deref().map_or_else(|| "None".into(), literal);
    let texts: Vec<String> = point.expressions.iter().map(|text| literal(text)).collect();
    let texts = texts.join(", ");
    vec![format!("python bugeye_hook.add({}, {place}, {when}, {}, [{texts}])", point.id, point.every)]
}

/// Reads `at LINE`, with 0 where there is none, or `no` and why; gdb may say something before.
fn bound_line(answer: &str) -> Result<Option<u32>, String> {
    match answer.trim().lines().last().and_then(|line| line.split_once(' ')) {
        Some(("at", line)) => Ok(line.parse().ok().filter(|line| *line > 0)),
        Some((_, why)) => Err(why.trim_end_matches('.').to_string()),
        None => Err("gdb did not say where it is".into()),
    }
}

/// gdb can't record the newest instructions of a processor: the C library is told to do without them, and to bind its
/// functions before the recording begins.
const RECORDABLE: &[(&str, &str)] = &[
    ("LD_BIND_NOW", "1"),
    (
        "GLIBC_TUNABLES",
        "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-AVX,-AVX_Fast_Unaligned_Load,-BMI2,-ERMS,-XSAVEC,-XSAVE",
    ),
];

/// The symbols are read before the breakpoints are set, so that each can be answered for.
fn prepare(target: &Target) -> Vec<String> {
    let file = |program: &std::path::Path| format!("file {}", word(&program.to_string_lossy()));
    match target {
        Target::Launch(launch) => {
            let mut commands = vec![file(&launch.program)];
            if let Some(folder) = &launch.formatters {
                let script = folder.join("gdb_load_rust_pretty_printers.py");
                commands.push(format!("source {}", script.display()));
            }
            commands
        }
        Target::Attach { .. } => Vec::new(),
        Target::Remote(remote) => remote.program.iter().map(|program| file(program)).collect(),
        Target::Core { program, .. } => program.iter().map(|program| file(program)).collect(),
    }
}

/// gdb says that it has attached even where it has not.
fn settled(target: &Target) -> Option<String> {
    let command = match target {
        Target::Attach { pid, .. } => format!("attach {pid}"),
        Target::Remote(remote) => format!("target remote {}:{}", remote.host, remote.port),
        Target::Core { core, .. } => {
            return Some(format!("python bugeye.core({})", literal(&word(&core.to_string_lossy()))));
        }
        Target::Launch(_) => return None,
    };
    Some(format!("python bugeye.present({})", literal(&command)))
}

/// One word of a command line of gdb.
fn word(text: &str) -> String {
    let mut word = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || matches!(c, '\\' | '\'' | '"') {
            word.push('\\');
        }
        word.push(c);
    }
    word
}

/// A text as Python writes it.
fn literal(text: &str) -> String {
    serde_json::Value::String(text.into()).to_string()
}

/// Reads `signal SIGSEGV: address 0x0`, `exception std::runtime_error: boom` and `other …`.
fn why(answer: &str) -> Option<Reason> {
    let (kind, text) = answer.trim().split_once(' ')?;
    match kind {
        "signal" => {
            let (name, detail) = text.split_once(": ").unwrap_or((text, ""));
            let name = name.trim_end_matches(':').to_string();
            Some(Reason::Signal { name, detail: Some(detail.to_string()).filter(|detail| !detail.is_empty()) })
        }
        "exception" => Some(Reason::Exception { text: text.into() }),
        _ => Some(Reason::Other { text: text.into() }),
    }
}

/// Reads `0x7fffffffe4ec: 0x00 0x10 …` lines; a name may stand behind the address.
fn memory_bytes(answer: &str) -> Option<(u64, Vec<u8>)> {
    let mut start = None;
    let mut bytes = Vec::new();
    for line in answer.lines() {
        let Some((head, rest)) = line.split_once(":\t") else { continue };
        let address = head.split_whitespace().next().and_then(|address| address.strip_prefix("0x"))?;
        start = start.or_else(|| u64::from_str_radix(address, 16).ok());
        for word in rest.split_whitespace() {
            bytes.push(u8::from_str_radix(word.strip_prefix("0x")?, 16).ok()?);
        }
    }
    start.map(|start| (start, bytes))
}

/// Reads `number, before, now`, apart by tabs.
fn values(answer: &str) -> Vec<(u32, Option<String>, Option<String>)> {
    let value = |text: Option<&str>| text.filter(|text| !text.is_empty()).map(Into::into);
    answer
        .lines()
        .filter_map(|line| {
            let mut parts = line.split('\t');
            let number = parts.next()?.parse().ok()?;
            let (before, now) = (parts.next()?, parts.next()?);
            Some((number, value(Some(before)), value(Some(now))))
        })
        .collect()
}

/// Reads `number, gone`.
fn gone(answer: &str) -> Vec<u32> {
    answer.lines().filter_map(|line| line.strip_suffix("\tgone")?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_native_answer() {
        let answer = "0x7fffffffe4ec:\t0x00\t0x01\n0x7fffffffe4ee <name+2>:\t0xff\n";
        assert_eq!(memory_bytes(answer), Some((0x7fff_ffff_e4ec, vec![0, 1, 255])));
        assert_eq!(memory_bytes("Cannot access memory at address 0x0\n"), None);
    }

    #[test]
    fn watchpoints_have_numbers_and_values() {
        let watching = NATIVES.watch.unwrap();
        for (answer, number) in [
            ("Hardware watchpoint 2: total\n", Some(2)),
            ("Hardware read watchpoint 13: n\n", Some(13)),
            ("Hardware access (read/write) watchpoint 4: a[1]\n", Some(4)),
            ("Watchpoint 5: a::b\n", Some(5)),
            ("nothing", None),
        ] {
            assert_eq!((watching.number)(answer), number, "{answer}");
        }
        assert_eq!(values("2\t0\t1\n"), [(2, Some("0".into()), Some("1".into()))]);
        assert_eq!(values("2\t\t1\n"), [(2, None, Some("1".into()))]);
        assert_eq!((gone("3\tgone\n4\tgone\n"), gone("3\t0\t1\n")), (vec![3, 4], vec![]));
    }

    #[test]
    fn reasons_are_told_apart() {
        let signal = Reason::Signal { name: "SIGSEGV".into(), detail: Some("address 0x0".into()) };
        assert_eq!(why("signal SIGSEGV: address 0x0\n"), Some(signal));
        assert_eq!(why("signal SIGUSR1: "), Some(Reason::Signal { name: "SIGUSR1".into(), detail: None }));
        assert_eq!(why("exception E: boom"), Some(Reason::Exception { text: "E: boom".into() }));
    }

    #[test]
    fn a_point_is_set_by_one_command_that_tells_its_line() {
        let point = Point {
            id: 2,
            place: Place::Line { file: "/a \"b\".c".into(), line: 6 },
            asked: "b.c:6".into(),
            expressions: vec!["i".into(), "p->x".into()],
            when: Some("i > 1".into()),
            every: 3,
        };
        let expected = r#"python bugeye_hook.add(2, {"source": "/a \"b\".c", "line": 6}, "i > 1", 3, ["i", "p->x"])"#;
        assert_eq!(set_point(&point), [expected]);
        assert_eq!((bound_line("at 6\n"), bound_line("at 0\n")), (Ok(Some(6)), Ok(None)));
        assert_eq!(bound_line("No compiled code.\nno code is there.\n"), Err("code is there".into()));
    }

    #[test]
    fn a_path_with_spaces_stays_one_word() {
        assert_eq!(word(r#"/a b/"c"\d"#), r#"/a\ b/\"c\"\\d"#);
    }
}
