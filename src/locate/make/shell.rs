//! One command of a makefile's recipe, as far as it can be understood without a shell.

use std::path::{Path, PathBuf};

use crate::locate::{head_of, shebang};

/// A command that starts one program: `cd sub && NAME=value ./program words`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simple {
    pub words: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Where it runs.
    pub folder: PathBuf,
    /// What the same line does before it, each part as it stands.
    pub before: Vec<String>,
}

impl Simple {
    /// None where only a shell can tell what it does.
    pub fn read(command: &str, folder: &Path) -> Option<Self> {
        let parts = split(command)?;
        let (last, first) = parts.split_last()?;
        let mut simple =
            Self { words: last.clone(), env: Vec::new(), folder: folder.to_path_buf(), before: Vec::new() };
        for part in first {
            match part.as_slice() {
                [cd, to] if cd == "cd" => simple.folder = simple.folder.join(to),
                words => {
                    let place = quoted(&simple.folder.to_string_lossy());
                    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                    simple.before.push(format!("cd {place} && {}", words.join(" ")));
                }
            }
        }
        loop {
            let word = simple.words.first()?;
            let name = word.split_once('=').filter(|(name, _)| is_name(name));
            if let Some((name, value)) = name {
                simple.env.push((name.into(), value.into()));
            } else if !["env", "exec", "time", "command", "nice"].contains(&word.as_str()) {
                return Some(simple);
            }
            simple.words.remove(0);
        }
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The words of each part between `&&`. None where there is anything that only a shell understands.
fn split(command: &str) -> Option<Vec<Vec<String>>> {
    let mut parts = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut letters = command.trim().chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' => parts.last_mut()?.extend(word.take()),
            '\\' => match letters.next()? {
                '\n' => {}
                other => word.get_or_insert_default().push(other),
            },
            '\'' => loop {
                let word = word.get_or_insert_default();
                match letters.next()? {
                    '\'' => break,
                    other => word.push(other),
                }
            },
            '"' => loop {
                let word = word.get_or_insert_default();
                match letters.next()? {
                    '"' => break,
                    '\\' if letters.peek().is_some_and(|next| "\"\\$`".contains(*next)) => word.push(letters.next()?),
                    '$' | '`' => return None,
                    other => word.push(other),
                }
            },
            '&' if letters.peek() == Some(&'&') => {
                letters.next();
                parts.last_mut()?.extend(word.take());
                parts.push(Vec::new());
            }
            '#' if word.is_none() => break,
            letter if ";|&<>$`(){}*?~".contains(letter) => return None,
            other => word.get_or_insert_default().push(other),
        }
    }
    parts.last_mut()?.extend(word);
    parts.iter().all(|part| !part.is_empty()).then_some(parts)
}

/// Whether a command starts something of the project: a file of it, be it yet to be made, or a tool that does so.
pub fn is_of_project(words: &[String], folder: &Path) -> bool {
    const TOOLS: [&str; 14] = [
        "make", "gmake", "cargo", "ctest", "go", "node", "npm", "npx", "pytest", "ruby", "bundle", "java", "php", "uv",
    ];
    let Some(first) = words.first() else { return false };
    let name = first.rsplit('/').next().unwrap_or(first);
    if TOOLS.contains(&name) || (name.starts_with("python") && words.len() > 1) {
        return true;
    }
    // What is found by its name alone is the system's; so is what lies with it, unless the project does, too.
    const SYSTEM: [&str; 5] = ["/bin", "/sbin", "/usr", "/lib", "/opt"];
    let Some(path) = first.contains('/').then(|| folder.join(first)) else { return false };
    let is_system = SYSTEM.iter().any(|root| path.starts_with(root)) && !path.starts_with(folder);
    let is_shell = |words: Vec<String>| words.iter().any(|word| word.ends_with("sh"));
    !is_system && !path.is_dir() && !head_of(&path).ok().and_then(|head| shebang(&head)).is_some_and(is_shell)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_commands_are_understood_and_others_are_not() {
        let read = |command| Simple::read(command, Path::new("/p"));
        let simple =
            read("cd sub && mkdir -p 'a b' && LANG=C env X=\"1 2\" ./app one\\ word 'two' \\\n three").unwrap();
        assert_eq!(simple.words, ["./app", "one word", "two", "three"]);
        assert_eq!(simple.env, [("LANG".into(), "C".into()), ("X".into(), "1 2".into())]);
        assert_eq!((simple.folder, simple.before), ("/p/sub".into(), vec!["cd '/p/sub' && 'mkdir' '-p' 'a b'".into()]));
        for command in ["./app > out", "./app | cat", "for i in 1 2; do ./app; done", "./app $$HOME", "a &&", ""] {
            assert_eq!(read(command), None, "{command}");
        }
    }
}
