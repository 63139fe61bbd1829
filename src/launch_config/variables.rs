//! `${variables}` of launch configurations.

use std::path::Path;

use serde_json::Value;

use super::Input;
use crate::failure::Failure;

/// What variables may be filled with.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    pub folder: &'a Path,
    pub cwd: &'a Path,
    pub env: &'a [(String, String)],
    /// `--var NAME=VALUE`.
    pub vars: &'a [(String, String)],
    pub inputs: &'a [Input],
}

impl Scope<'_> {
    /// The same value with every variable filled in.
    pub fn fill(&self, value: &Value) -> Result<Value, Failure> {
        Ok(match value {
            Value::String(text) => Value::String(self.fill_text(text)?),
            Value::Array(items) => Value::Array(items.iter().map(|item| self.fill(item)).collect::<Result<_, _>>()?),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| Ok((name.clone(), self.fill(value)?)));
                Value::Object(fields.collect::<Result<_, Failure>>()?)
            }
            other => other.clone(),
        })
    }

    pub fn fill_text(&self, text: &str) -> Result<String, Failure> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            if let Some((name, tail)) = after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                out.push_str(&self.value_of(name)?);
                rest = tail;
                continue;
            }
            let length = after.bytes().take_while(|byte| byte.is_ascii_uppercase() || *byte == b'_').count();
            if after.starts_with("ZED_") {
                out.push_str(&self.value_of(&after[..length])?);
                rest = &after[length..];
            } else {
                out.push('$');
                rest = after;
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn value_of(&self, name: &str) -> Result<String, Failure> {
        let (kind, what) = name.split_once(':').unwrap_or((name, ""));
        let given =
            |name: &str| self.vars.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        // A file is made absolute below.
        let is_file = |name: &str| ["file", "ZED_FILE"].contains(&name);
        let value = given(name).filter(|_| !is_file(name)).or_else(|| given(what).filter(|_| !what.is_empty()));
        if let Some(value) = value {
            return Ok(value);
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let base = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let say = |name: &str| format!("say it: --var {name}=VALUE");
        match kind {
            "workspaceFolder" | "workspaceRoot" | "ZED_WORKTREE_ROOT" => return Ok(text(self.folder)),
            "workspaceFolderBasename" => return Ok(base(self.folder)),
            "cwd" => return Ok(text(self.cwd)),
            "pathSeparator" | "/" => return Ok("/".into()),
            "userHome" => return self.variable("HOME").ok_or_else(|| Failure::refused("HOME is not set")),
            // As the editor has it: one that is not set is empty.
            "env" => return Ok(self.variable(what).unwrap_or_default()),
            "input" => return self.input(what),
            "config" => {
                return Err(Failure::unsupported(format!("${{{name}}} is a setting of the editor")).hint(say(what)));
            }
            "command" => {
                return Err(Failure::unsupported(format!("${{{name}}} is a command of the editor")).hint(say(what)));
            }
            _ => {}
        }
        self.of_file(kind, given("file").or_else(|| given("ZED_FILE"))).ok_or_else(|| {
            let about_file = FILES.iter().any(|(known, _)| *known == kind);
            let asked = if about_file { "file" } else { name };
            let what = if about_file { ": it is about the file that is open in the editor" } else { "" };
            Failure::usage(format!("the configuration has a variable ${{{name}}}{what}")).hint(say(asked))
        })
    }

    /// Those that are about the file in the editor.
    fn of_file(&self, kind: &str, file: Option<String>) -> Option<String> {
        let file = std::path::absolute(self.cwd.join(file?)).ok()?;
        let (_, part) = FILES.iter().find(|(known, _)| *known == kind)?;
        part(&file, self.folder)
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.env.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn input(&self, id: &str) -> Result<String, Failure> {
        let input = self.inputs.iter().find(|input| input.id == id);
        if let Some(default) = input.and_then(|input| input.default.clone()) {
            return self.fill_text(&default);
        }
        let failure = Failure::usage(format!("the configuration asks for `{id}`")).hint(format!("--var {id}=VALUE"));
        Err(match input.map(|input| (input.description.as_deref(), &input.options[..])) {
            Some((Some(description), [])) => failure.hint(description.to_string()),
            Some((_, options)) if !options.is_empty() => failure.hint(format!("one of {}", options.join(", "))),
            _ => failure,
        })
    }
}

/// A part of a file's path, given the file and the workspace.
type Part = fn(&Path, &Path) -> Option<String>;

const FILES: [(&str, Part); 15] = [
    ("file", |file, _| text_of(Some(file))),
    ("relativeFile", |file, folder| text_of(file.strip_prefix(folder).ok())),
    ("relativeFileDirname", |file, folder| text_of(file.parent()?.strip_prefix(folder).ok())),
    ("fileBasename", |file, _| text_of(file.file_name().map(Path::new))),
    ("fileBasenameNoExtension", |file, _| text_of(file.file_stem().map(Path::new))),
    ("fileExtname", |file, _| file.extension().map(|ending| format!(".{}", ending.to_string_lossy()))),
    ("fileDirname", |file, _| text_of(file.parent())),
    ("fileDirnameBasename", |file, _| text_of(file.parent()?.file_name().map(Path::new))),
    ("fileWorkspaceFolder", |_, folder| text_of(Some(folder))),
    ("ZED_FILE", |file, _| text_of(Some(file))),
    ("ZED_RELATIVE_FILE", |file, folder| text_of(file.strip_prefix(folder).ok())),
    ("ZED_FILENAME", |file, _| text_of(file.file_name().map(Path::new))),
    ("ZED_STEM", |file, _| text_of(file.file_stem().map(Path::new))),
    ("ZED_DIRNAME", |file, _| text_of(file.parent())),
    ("ZED_RELATIVE_DIR", |file, folder| text_of(file.parent()?.strip_prefix(folder).ok())),
];

fn text_of(path: Option<&Path>) -> Option<String> {
    path.map(|path| path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_or_asked_for() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let input = |id: &str, default: Option<&str>, options: &[&str]| Input {
            id: id.into(),
            default: default.map(Into::into),
            description: Some("Which one?".into()),
            options: options.iter().map(ToString::to_string).collect(),
        };
        let (env, vars) = ([pair("HOME", "/h"), pair("X", "x")], [pair("file", "src/a.b.py"), pair("port", "7")]);
        let inputs =
            [input("port", Some("1"), &[]), input("mode", Some("${env:X}"), &[]), input("who", None, &["a", "b"])];
        let scope =
            Scope { folder: Path::new("/w"), cwd: Path::new("/w/sub"), env: &env, vars: &vars, inputs: &inputs };
        let cases = [
            ("${workspaceFolder}/a ${workspaceFolderBasename}", "/w/a w"),
            ("${env:X}${env:NONE}${/}${userHome}", "x//h"),
            ("${file} ${relativeFile}", "/w/sub/src/a.b.py sub/src/a.b.py"),
            ("${fileBasenameNoExtension}${fileExtname} ${fileDirname}", "a.b.py /w/sub/src"),
            ("${input:port} ${input:mode}", "7 x"),
            ("$ZED_WORKTREE_ROOT/t ${ZED_STEM}", "/w/t a.b"),
            ("costs $5 ${", "costs $5 ${"),
        ];
        for (text, expected) in cases {
            assert_eq!(scope.fill_text(text).unwrap(), expected, "{text}");
        }
        let said = |text: &str| {
            let failure = scope.fill_text(text).unwrap_err();
            format!("{} | {}", failure.message, failure.hints.join(" | "))
        };
        assert!(said("${config:python.path}").contains("--var python.path=VALUE"));
        assert!(said("${command:pickProcess}").contains("--var pickProcess=VALUE"));
        assert!(said("${input:who}").contains("--var who=VALUE | one of a, b"));
        assert!(said("${lineNumber}").contains("--var lineNumber=VALUE"));
        let none = Scope { vars: &[], ..scope };
        assert!(none.fill_text("${fileBasename}").unwrap_err().hints[0].contains("--var file=VALUE"));
    }
}
