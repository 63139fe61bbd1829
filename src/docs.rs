//! `docs/commands.md` and the skill's short list, written from the catalogue so that they can't fall behind.

use std::fmt::Write as _;

use crate::cli::{EXIT_CODES, GROUPS};
use crate::commands::{CATALOGUE, Entry};

/// The whole page.
#[must_use]
pub fn commands_page() -> String {
    let mut page = String::from(
        "# Commands\n\nWritten from the program itself. Every command also takes `-s, --session ID`, `--json` and \
         `--color auto|always|never`; those that look take `--at MOMENT` to [answer from a record](record.md).\n\n## Exit codes\n\n| code | meaning |\n|---|---|\n",
    );
    for (code, meaning) in EXIT_CODES {
        let _ = writeln!(page, "| {code} | {meaning} |");
    }
    for (group, heading) in GROUPS {
        let mut entries = CATALOGUE.iter().filter(|entry| entry.group == *group).peekable();
        if entries.peek().is_some() {
            let _ = write!(page, "\n## {heading}\n");
            entries.for_each(|entry| command(&mut page, entry));
        }
    }
    page
}

/// Every command on one line, for an agent that wants to know what there is.
#[must_use]
pub fn commands_card() -> String {
    let mut page = String::from(
        "# Commands\n\nWritten from the program itself: each command with its flags. `bugeye COMMAND --help` explains one. \
         All take `-s ID` (a session, or a record) and `--json`; those that look take `--at stop:N` to answer from a record.\n",
    );
    for (group, heading) in GROUPS {
        let mut lines = CATALOGUE.iter().filter(|entry| entry.group == *group).filter_map(card_line).peekable();
        if lines.peek().is_some() {
            let _ = write!(page, "\n## {heading}\n\n");
            lines.for_each(|line| page.push_str(&line));
        }
    }
    page
}

/// None for a command that is hidden.
fn card_line(entry: &Entry) -> Option<String> {
    let command = built(entry);
    if command.is_hide_set() {
        return None;
    }
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let about = about.lines().next().unwrap_or_default().trim_end_matches('.');
    let words = arguments(&command).into_iter().map(|argument| match argument.get_long() {
        Some(long) if argument.get_action().takes_values() => format!("--{long} {}", value_names(argument).join(" ")),
        Some(long) => format!("--{long}"),
        None if argument.is_last_set() => format!("-- {}", value_names(argument).join(" ")),
        None => value_names(argument).join(" "),
    });
    let words: Vec<String> = std::iter::once(entry.name.to_string()).chain(words).collect();
    Some(format!("- `{}`: {about}\n", words.join(" ")))
}

fn built(entry: &Entry) -> clap::Command {
    let mut command = (entry.arguments)(clap::Command::new(entry.name)).bin_name(format!("bugeye {}", entry.name));
    command.build();
    command
}

fn arguments(command: &clap::Command) -> Vec<&clap::Arg> {
    command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str()))
        .collect()
}

fn value_names(argument: &clap::Arg) -> Vec<String> {
    let takes = argument.get_num_args().is_none_or(|count| count.takes_values());
    let names = argument.get_value_names().filter(|_| takes).unwrap_or_default();
    names.iter().map(ToString::to_string).collect()
}

fn command(page: &mut String, entry: &Entry) {
    let mut command = built(entry);
    let _ = write!(page, "\n### `{}`\n", entry.name);
    if let Some(about) = command.get_long_about().or_else(|| command.get_about()) {
        let _ = write!(page, "\n{}\n", about.to_string().trim_end());
    }
    if !entry.aliases.is_empty() {
        let names: Vec<String> = entry.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let _ = write!(page, "\nAlso: {}.\n", names.join(", "));
    }
    let usage = command.render_usage().to_string();
    let _ = write!(page, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim());
    let arguments = arguments(&command);
    if !arguments.is_empty() {
        page.push_str("\n| argument | meaning |\n|---|---|\n");
    }
    for argument in arguments {
        let help =
            argument.get_long_help().or_else(|| argument.get_help()).map(ToString::to_string).unwrap_or_default();
        let mut help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        if !defaults.is_empty() && argument.get_action().takes_values() {
            let _ = write!(help, " (default `{}`)", defaults.join(" "));
        }
        let values: Vec<String> = argument
            .get_possible_values()
            .iter()
            .filter(|value| !value.is_hide_set() && argument.get_action().takes_values())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        if !values.is_empty() {
            let _ = write!(help, " One of {}.", values.join(", "));
        }
        let _ = writeln!(page, "| `{}` | {} |", spelling(argument), help.replace('|', "\\|"));
    }
}

/// `-n, --lines <LINES>`, or `<ACTION>`.
fn spelling(argument: &clap::Arg) -> String {
    let flags: Vec<String> = argument
        .get_short()
        .map(|short| format!("-{short}"))
        .into_iter()
        .chain(argument.get_long().map(|long| format!("--{long}")))
        .collect();
    let values: Vec<String> = if argument.get_action().takes_values() {
        let names = value_names(argument).into_iter();
        names.map(|name| if argument.is_positional() { name } else { format!("<{name}>") }).collect()
    } else {
        Vec::new()
    };
    [flags.join(", "), values.join(" ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_on_the_page() {
        let page = commands_page();
        for entry in CATALOGUE {
            assert!(page.contains(&format!("\n### `{}`\n", entry.name)), "{}", entry.name);
        }
        assert!(page.contains("| `-n, --lines <LINES>` | How many lines `log` shows (default `40`) |"), "{page}");
        assert!(page.contains("One of `start`, `stop`, `status`, `log`."), "{page}");
        assert!(page.contains("| 4 | timed out"), "{page}");
    }

    #[test]
    fn every_command_has_its_line_on_the_card() {
        let card = commands_card();
        assert!(card.contains("\n- `status`: Show the state of the session: never waits"), "{card}");
        assert!(card.contains("\n- `unbreak ID --all`: Remove breakpoints\n"), "{card}");
        let lines = card.lines().filter(|line| line.starts_with("- `")).count();
        let shown = CATALOGUE.iter().filter(|entry| !built(entry).is_hide_set()).count();
        assert_eq!(lines, shown);
    }
}
