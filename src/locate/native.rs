//! Programs: whatever the system itself can run.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Asked, Plan, Program, check_file, find_word, head_of, shebang};
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
        let elf = Elf::read(&path).map_err(|error| Failure::io(format!("read {}", path.display()), &error))?;
        if !elf.has_debug_info {
            notes.push(NO_DEBUG_INFO.into());
        }
        if elf.is_rust {
            language = "rust";
        }
        if elf.is_go {
            language = "go";
        }
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

/// What the section names of an ELF file tell.
struct Elf {
    has_debug_info: bool,
    is_rust: bool,
    is_go: bool,
}

impl Elf {
    /// Reads the section table of a 64-bit file; others are taken as having what is needed.
    fn read(path: &Path) -> std::io::Result<Self> {
        let unknown = Self { has_debug_info: true, is_rust: false, is_go: false };
        let mut file = File::open(path)?;
        let mut head = [0u8; 64];
        if file.read(&mut head)? < 64 || head[4] != 2 || head[5] != 1 {
            return Ok(unknown);
        }
        let table = word(&head, 40, 8);
        let (size, count, names) = (word(&head, 58, 2), word(&head, 60, 2), word(&head, 62, 2));
        if size < 64 || count == 0 || size * count > 1 << 20 {
            return Ok(unknown);
        }
        let sections = read_at(&mut file, table, size * count)?;
        let section = |index: u64, field: usize| {
            let start = usize::try_from(index * size).unwrap_or(usize::MAX).saturating_add(field);
            sections.get(start..).map_or(0, |bytes| word(bytes, 0, if field == 0 { 4 } else { 8 }))
        };
        let strings = read_at(&mut file, section(names, 24), section(names, 32).min(1 << 16))?;
        let mut elf = Self { has_debug_info: false, is_rust: false, is_go: false };
        for index in 0..count {
            let start = usize::try_from(section(index, 0)).unwrap_or(usize::MAX);
            let name = strings.get(start..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
            match name {
                b".debug_info" | b".zdebug_info" | b".gnu_debuglink" | b".debug_line" => elf.has_debug_info = true,
                b".go.buildinfo" | b".note.go.buildid" => elf.is_go = true,
                b".comment" => {
                    let text = read_at(&mut file, section(index, 24), section(index, 32).min(1 << 16))?;
                    elf.is_rust = text.windows(14).any(|window| window == b"rustc version ");
                }
                _ => {}
            }
        }
        Ok(elf)
    }
}

fn word(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes.get(at..at + length).unwrap_or_default().iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn read_at(file: &mut File, at: u64, length: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
