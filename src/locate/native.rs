//! Programs: whatever the system itself can run.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Asked, Plan, Program, check_file, find_word, head_of, shebang};
use crate::elf;
use crate::failure::Failure;

/// The note of a program without lines and variables.
pub const NO_DEBUG_INFO: &str = "no debug information: lines and variables can't be shown; build it with -g";

pub fn locate(asked: &Asked) -> Result<Option<Plan>, Failure> {
    let path = find_word(&asked.words[0], asked.cwd, asked.env_path)?;
    check_file(&path)?;
    let head = head_of(&path).map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
    if let Some(words) = shebang(&head) {
        return Err(Failure::unsupported(format!(
            "{} is a script for {}, which no adapter here debugs",
            path.display(),
            words.join(" ")
        )));
    }
    check_executable(&path)?;
    program(path, &head, asked.args()).map(|program| Some(Plan::Debug(program)))
}

fn program(path: PathBuf, head: &[u8], args: &[String]) -> Result<Program, Failure> {
    let mut notes = Vec::new();
    let mut language = "c";
    if head.starts_with(b"\x7fELF") {
        let elf = elf::sections(&path).map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
        if !elf.has_debug_info {
            notes.push(NO_DEBUG_INFO.into());
        }
        language = elf.language;
    } else if !is_foreign_executable(head) {
        return Err(Failure::refused(format!("{} is neither a program nor a script with a #! line", path.display()))
            .hint("name the program that runs it: bugeye start -- INTERPRETER FILE"));
    }
    Ok(Program { language, program: path, args: args.to_vec(), notes, ..Program::default() })
}

/// Mach-O and PE, which are looked at no further.
fn is_foreign_executable(head: &[u8]) -> bool {
    const MAGIC: [&[u8]; 4] = [b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xce\xfa\xed\xfe", b"MZ"];
    MAGIC.iter().any(|magic| head.starts_with(magic))
}

/// How a source file becomes a program, by its extension.
fn build_command(extension: &str) -> Option<&'static str> {
    match extension {
        "c" => Some("cc -g -O0 -o program FILE.c"),
        "cc" | "cpp" | "cxx" => Some("c++ -g -O0 -o program FILE.cpp"),
        "rs" => Some("cargo build, or rustc -g FILE.rs"),
        _ => None,
    }
}

fn check_executable(path: &Path) -> Result<(), Failure> {
    let executable = path.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
    if executable {
        return Ok(());
    }
    let shown = path.display();
    if let Some(build) = path.extension().and_then(|extension| extension.to_str()).and_then(build_command) {
        return Err(Failure::refused(format!("{shown} is source code, not a program"))
            .hint(format!("build it with debug information first: {build}")));
    }
    Err(Failure::refused(format!("{shown} is not executable")).hint(format!("chmod +x {shown}")))
}
