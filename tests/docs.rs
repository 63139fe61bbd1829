//! What the documentation says is so: the reference is the program's own, and every command shown is one it takes.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

const PAGES: [&str; 17] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "docs/commands.md",
    "docs/wire.md",
    "docs/environment.md",
    "docs/events.md",
    "docs/record.md",
    "docs/own-adapters.md",
    "docs/targets.md",
    "docs/trace.md",
    "docs/agents.md",
    "docs/agent-bridge.md",
    "plugin/skills/bugeye/SKILL.md",
    "plugin/skills/bugeye/references/commands.md",
    "plugin/skills/bugeye/references/mcp.md",
    "plugin/skills/bugeye/references/recipes.md",
];

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| format!("{path}: {error}"))
}

#[test]
fn the_reference_and_the_skill_s_list_are_the_program_s_own() {
    let pages = [
        ("docs/commands.md", bugeye::docs::commands_page()),
        ("plugin/skills/bugeye/references/commands.md", bugeye::docs::commands_card()),
    ];
    for (name, page) in pages {
        let path = root().join(name);
        if std::env::var_os("BUGEYE_UPDATE").is_some() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, page).unwrap();
            continue;
        }
        let same = fs::read_to_string(&path).is_ok_and(|known| known == page);
        assert!(same, "{name} is not what the program says; write it: BUGEYE_UPDATE=1 cargo test --test docs");
    }
}

/// The words of a shell's line, without its comment; none when it has more than one command.
fn shell_words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let inner: String = chars.by_ref().take_while(|inner| *inner != c).collect();
                word.get_or_insert_default().push_str(&inner);
            }
            '#' if word.is_none() => break,
            '|' | ';' | '&' | '<' | '>' if word.is_none() => return None,
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

/// Every command that a page shows: lines of code blocks, and code within a sentence.
fn shown(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            found.extend(line.starts_with("bugeye ").then(|| line.to_string()));
            let from_source = line.strip_prefix("cargo run --release -- ");
            found.extend(from_source.map(|rest| format!("bugeye {rest}")));
        } else {
            found.extend(line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("bugeye ")).map(Into::into));
        }
    }
    found
}

/// What clap says against a command, if anything. Capital words stand for something else, and are not read.
fn complaint(line: &str) -> Option<String> {
    let words = shell_words(line)?;
    let is_stand_in = |word: &String| word.len() > 1 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    if words.get(1).is_none_or(is_stand_in) || line.contains('…') {
        return None;
    }
    match bugeye::cli::command().try_get_matches_from(words) {
        Ok(_) => None,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => None,
        Err(error) => Some(format!("{line}\n  {}", error.to_string().lines().next().unwrap_or_default())),
    }
}

#[test]
fn every_command_shown_is_one_the_program_takes() {
    let mut complaints = Vec::new();
    let mut seen = 0;
    for page in PAGES {
        // Usage lines of the reference have stand-ins for every word, and come from clap itself.
        let text = read(page);
        let text = if page == "docs/commands.md" { text.replace("```text\nbugeye", "```text\n") } else { text };
        let commands = shown(&text);
        seen += commands.len();
        complaints.extend(commands.iter().filter_map(|line| complaint(line)).map(|text| format!("{page}: {text}")));
    }
    assert!(seen > 30, "only {seen} commands were found: is the reading right?");
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn a_wrong_command_would_be_noticed() {
    assert!(complaint("bugeye run --brake x.c:3 -- ./a").is_some());
    assert!(complaint("bugeye fly").is_some());
    assert!(complaint("bugeye print -e 'a b' # a comment").is_none());
    assert_eq!(shown("text `bugeye up` more\n```sh\n$ bugeye next\nother\n```\n"), ["bugeye up", "bugeye next"]);
}

#[test]
fn every_type_of_event_is_described() {
    let page = read("docs/record.md");
    for kind in bugeye::model::EVENT_TYPES.into_iter().chain(bugeye::model::AGENT_EVENT_TYPES) {
        assert!(page.contains(&format!("\n| `{kind}` |")), "{kind} in docs/record.md");
    }
}

#[test]
fn every_module_has_its_sentence_on_the_map() {
    let map = read("src/lib.rs");
    let lines: Vec<&str> = map.lines().collect();
    for pair in lines.windows(2).filter(|pair| pair[1].starts_with("pub mod ")) {
        assert!(pair[0].starts_with("/// "), "{} has no sentence in src/lib.rs", pair[1]);
    }
}

/// The name that a heading is linked to by.
fn slug(heading: &str) -> String {
    let kept = heading.to_lowercase().replace(' ', "-");
    kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_')).collect()
}

#[test]
fn links_between_pages_lead_somewhere() {
    for page in PAGES {
        let folder = root().join(page);
        let folder = folder.parent().unwrap_or(Path::new("/"));
        for target in read(page).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let is_file = !target.contains("://") && !file.is_empty();
            assert!(!is_file || folder.join(file).exists(), "{page} links to {target}, which is not there");
            if is_file && !heading.is_empty() {
                let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
                let is_meant = |line: &str| slug(line.trim_start_matches('#').trim()) == heading;
                let found = text.lines().any(|line| line.starts_with('#') && is_meant(line));
                assert!(found, "{page} links to {target}, and there is no such heading");
            }
        }
    }
}

#[test]
fn the_map_of_the_code_stays_short() {
    assert!(read("ARCHITECTURE.md").lines().count() <= 150);
}

#[test]
fn exit_codes_are_told_the_same_everywhere() {
    let readme = read("README.md");
    for (code, meaning) in bugeye::cli::EXIT_CODES {
        assert!(readme.contains(&format!("| {code} | {meaning} |")), "{code} in README.md");
    }
}
