//! The two pages that explain Bugeye as a whole: a short one and the list of everything. Made for reading by people and
//! models, so: few lines, one idea each.

use std::fmt::Write as _;

use super::{EXIT_CODES, GROUPS};
use crate::commands::{CATALOGUE, Entry, find};

const SENTENCE: &str =
    "Bugeye: one debugger for every language, made for coding agents and the people who work with them.";

/// The commands to know first, with an example of each.
const FIRST: [(&str, &str, &str); 5] = [
    ("run", "bugeye run --break src/main.c:42 -- ./a.out 3", "start a program or test, stop at the line"),
    ("continue", "bugeye continue", "go on to the next stop; the reply shows it whole"),
    ("step", "bugeye step", "one line; `next` steps over calls, `finish` out of them"),
    ("print", "bugeye print 'xs[2].name'", "the value of an expression"),
    ("stop", "bugeye stop", "end the program and everything it started"),
];

/// What `bugeye` alone prints.
pub fn overview() -> String {
    let mut text = format!("{SENTENCE}\n\n");
    for (name, example, meaning) in FIRST {
        if find(name).is_some() {
            let _ = writeln!(text, "  {example:<48} {meaning}");
        }
    }
    text.push_str("\n`bugeye --help` lists every command, `bugeye COMMAND --help` explains one.\n");
    text
}

/// What `bugeye --help` prints.
pub fn full() -> String {
    let mut text = format!("{SENTENCE}\n\nUsage: bugeye [-s ID] [--json] [--color WHEN] COMMAND [ARGUMENTS]\n");
    for (group, heading) in GROUPS {
        let mut entries = CATALOGUE.iter().filter(|entry| entry.group == *group).peekable();
        if entries.peek().is_some() {
            let _ = write!(text, "\n{heading}\n");
            entries.for_each(|entry| line(&mut text, entry));
        }
    }
    text.push_str(
        "\nOptions\n  -s, --session ID     the session to talk to, or a record; without it the last one started from here\n  \
             --at MOMENT          answer from the record: an event's number, stop:N, first, last or end\n  \
             --json               one line of JSON on stdout, also for failures\n  \
             --color WHEN         auto, always or never\n  \
         -h, --help           this; after a command, what it takes\n  \
         -V, --version        the version\n\nExit codes\n",
    );
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(text, "  {code}  {meaning}");
    }
    text.push_str("\n`bugeye COMMAND --help` explains a command.\n");
    text
}

fn line(text: &mut String, entry: &Entry) {
    let command = (entry.arguments)(clap::Command::new(entry.name));
    if command.is_hide_set() {
        return;
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let short: Vec<&str> = entry.aliases.iter().copied().filter(|alias| !alias.contains(' ')).collect();
    let names =
        if short.is_empty() { entry.name.to_string() } else { format!("{} ({})", entry.name, short.join(", ")) };
    let _ = writeln!(text, "  {names:<20} {}", about.lines().next().unwrap_or_default());
}
