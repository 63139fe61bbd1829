//! What the headers of an ELF file tell without a debugger: the language of a program, the program of a core file.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Tables beyond this are not read: a file may say anything.
const LARGEST: u64 = 1 << 20;

/// What the sections of a program tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sections {
    pub has_debug_info: bool,
    /// `go`, `rust`, or `c` for whatever is native and not known better.
    pub language: &'static str,
}

/// Reads the section table of a 64-bit file; others are taken as having what is needed.
pub fn sections(path: &Path) -> std::io::Result<Sections> {
    let mut found = Sections { has_debug_info: true, language: "c" };
    let mut file = File::open(path)?;
    let Some(head) = header(&mut file)? else { return Ok(found) };
    let (size, count, names) = (word(&head, 58, 2), word(&head, 60, 2), word(&head, 62, 2));
    if size < 64 || count == 0 || size * count > LARGEST {
        return Ok(found);
    }
    let table = read_at(&mut file, word(&head, 40, 8), size * count)?;
    let section = |index: u64, field: usize, length: usize| word(&table, as_index(index * size) + field, length);
    let strings = read_at(&mut file, section(names, 24, 8), section(names, 32, 8).min(1 << 16))?;
    found.has_debug_info = false;
    for index in 0..count {
        let start = as_index(section(index, 0, 4));
        let name = strings.get(start..).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        match name {
            b".debug_info" | b".zdebug_info" | b".gnu_debuglink" | b".debug_line" => found.has_debug_info = true,
            b".go.buildinfo" | b".note.go.buildid" => found.language = "go",
            b".comment" => {
                let text = read_at(&mut file, section(index, 24, 8), section(index, 32, 8).min(1 << 16))?;
                if text.windows(14).any(|window| window == b"rustc version ") {
                    found.language = "rust";
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// What a core file says about the program it is of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Core {
    /// The executable, as it was called then.
    pub program: Option<PathBuf>,
    /// The command line, as far as the kernel keeps it.
    pub command: Option<String>,
}

const NOTE: u64 = 4;
const PROCESS_INFO: u64 = 3;
const AUXILIARY: u64 = 6;
const FILES: u64 = 0x4649_4c45;
/// The auxiliary vector's entry that has the program's first address.
const ENTRY: u64 = 9;

/// Reads the notes of a core file; None when it is none.
pub fn core(path: &Path) -> std::io::Result<Option<Core>> {
    let mut file = File::open(path)?;
    let Some(head) = header(&mut file)?.filter(|head| word(head, 16, 2) == 4) else { return Ok(None) };
    let (size, count) = (word(&head, 54, 2), word(&head, 56, 2));
    if size < 56 || size * count > 4 * LARGEST {
        return Ok(Some(Core::default()));
    }
    let table = read_at(&mut file, word(&head, 32, 8), size * count)?;
    let mut core = Core::default();
    for index in 0..count {
        let at = as_index(index * size);
        if word(&table, at, 4) != NOTE {
            continue;
        }
        let notes = read_at(&mut file, word(&table, at + 8, 8), word(&table, at + 32, 8).min(16 * LARGEST))?;
        read_notes(&notes, &mut core);
    }
    Ok(Some(core))
}

fn read_notes(notes: &[u8], core: &mut Core) {
    let (mut at, mut entry, mut files) = (0, None, Vec::new());
    while at + 12 <= notes.len() {
        let (name, length, kind) = (word(notes, at, 4), word(notes, at + 4, 4), word(notes, at + 8, 4));
        let start = (at + 12).saturating_add(as_index(name.next_multiple_of(4)));
        let body = notes.get(start..start.saturating_add(as_index(length))).unwrap_or_default();
        match kind {
            PROCESS_INFO => core.command = body.get(56..136).map(text).filter(|text| !text.is_empty()),
            AUXILIARY => {
                let pairs = body.chunks_exact(16).map(|pair| (word(pair, 0, 8), word(pair, 8, 8)));
                entry = pairs.clone().find(|(key, _)| *key == ENTRY).map(|(_, value)| value);
            }
            FILES => files = mapped(body),
            _ => {}
        }
        at = start.saturating_add(as_index(length.next_multiple_of(4)));
    }
    let holds = |(start, end, _): &&(u64, u64, String)| entry.is_some_and(|entry| (*start..*end).contains(&entry));
    let program = files.iter().find(holds).or_else(|| files.first());
    core.program = program.map(|(_, _, name)| PathBuf::from(name)).or(core.program.take());
}

/// The files that were mapped: from, to, name.
fn mapped(body: &[u8]) -> Vec<(u64, u64, String)> {
    let count = as_index(word(body, 0, 8)).min(body.len() / 24);
    let names = body.get(16 + 24 * count..).unwrap_or_default().split(|byte| *byte == 0);
    (0..count)
        .zip(names)
        .map(|(index, name)| {
            let at = 16 + 24 * index;
            (word(body, at, 8), word(body, at + 8, 8), String::from_utf8_lossy(name).into_owned())
        })
        .collect()
}

/// The header of a 64-bit little-endian file.
fn header(file: &mut File) -> std::io::Result<Option<[u8; 64]>> {
    let mut head = [0u8; 64];
    let read = file.read(&mut head)?;
    Ok((read == 64 && head.starts_with(b"\x7fELF") && head[4] == 2 && head[5] == 1).then_some(head))
}

fn word(bytes: &[u8], at: usize, length: usize) -> u64 {
    let word = at.checked_add(length).and_then(|end| bytes.get(at..end)).unwrap_or_default();
    word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn as_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX / 4)
}

fn text(bytes: &[u8]) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).trim().to_string()
}

fn read_at(file: &mut File, at: u64, length: u64) -> std::io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_a_rust_program_and_no_core() {
        let exe = std::env::current_exe().unwrap();
        assert_eq!(sections(&exe).unwrap(), Sections { has_debug_info: true, language: "rust" });
        assert_eq!(core(&exe).unwrap(), None);
    }

    #[test]
    fn the_program_of_a_core_is_where_it_began() {
        let word = |number: u64| number.to_le_bytes();
        let mut files = [word(2), word(4096)].concat();
        files.extend([word(0x1000), word(0x2000), word(0), word(0x5000), word(0x6000), word(0)].concat());
        files.extend(b"/lib/ld.so\0/p/app\0");
        let note = |kind: u64, body: &[u8]| {
            let mut note =
                [5u32, u32::try_from(body.len()).unwrap(), u32::try_from(kind).unwrap()].map(u32::to_le_bytes).concat();
            note.extend(b"CORE\0\0\0\0");
            note.extend(body);
            note.resize(note.len().next_multiple_of(4), 0);
            note
        };
        let mut info = vec![0; 136];
        info[56..65].copy_from_slice(b"./app 1 2");
        let vector = [word(ENTRY), word(0x5040), word(0), word(0)].concat();
        let notes = [note(PROCESS_INFO, &info), note(AUXILIARY, &vector), note(FILES, &files)].concat();
        let mut core = Core::default();
        read_notes(&notes, &mut core);
        assert_eq!(core, Core { program: Some("/p/app".into()), command: Some("./app 1 2".into()) });
        // Whatever is cut off or made up is survived.
        for end in 0..notes.len() {
            read_notes(&notes[..end], &mut Core::default());
        }
        read_notes(&[0xff; 400], &mut Core::default());
    }
}
