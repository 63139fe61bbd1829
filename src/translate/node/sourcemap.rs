//! Source maps: which place in which file a place in generated code comes from, and back.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::urls;

/// A line and a column, both from 0; columns in UTF-16 units.
pub type Spot = (u32, u32);

/// A place in generated code and the place it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    generated: Spot,
    /// None where the code is the generator's own.
    original: Option<(usize, Spot)>,
}

/// A map whose sources are files.
#[derive(Debug)]
pub struct SourceMap {
    /// None where a source is no file.
    sources: Vec<Option<PathBuf>>,
    /// By place in generated code.
    mappings: Vec<Mapping>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Raw {
    source_root: Option<String>,
    sources: Vec<Option<String>>,
    mappings: String,
    sections: Vec<Section>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Section {
    offset: Offset,
    map: Raw,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Offset {
    line: u32,
    column: u32,
}

impl SourceMap {
    /// Reads the map that a script of this address names; files are read, nothing is fetched.
    pub fn load(script: &str, map_url: &str) -> Option<Self> {
        let script = urls::path_of(script)?;
        let (text, base) = if let Some(data) = map_url.strip_prefix("data:") {
            let (kind, payload) = data.split_once(',')?;
            (if kind.ends_with(";base64") { base64(payload) } else { urls::unescaped(payload) }, script)
        } else {
            let path = match urls::path_of(map_url) {
                Some(path) => path,
                None => script.parent()?.join(String::from_utf8(urls::unescaped(map_url)).ok()?),
            };
            (std::fs::read(&path).ok()?, path)
        };
        Self::parse(&text, base.parent()?)
    }

    /// Reads a map; relative sources are below `folder`.
    fn parse(text: &[u8], folder: &Path) -> Option<Self> {
        let raw: Raw = serde_json::from_slice(text).ok()?;
        let mut map = Self { sources: Vec::new(), mappings: Vec::new() };
        map.add(&raw, folder, (0, 0));
        for section in &raw.sections {
            map.add(&section.map, folder, (section.offset.line, section.offset.column));
        }
        map.mappings.sort_by_key(|mapping| mapping.generated);
        (!map.mappings.is_empty()).then_some(map)
    }

    fn add(&mut self, raw: &Raw, folder: &Path, offset: Spot) {
        let first = self.sources.len();
        let root = raw.source_root.as_deref().unwrap_or_default().trim_end_matches('/');
        self.sources.extend(raw.sources.iter().map(|source| {
            let source = source.as_deref()?;
            let named = if root.is_empty() { source.to_string() } else { format!("{root}/{source}") };
            match urls::path_of(&named) {
                Some(path) => Some(path),
                None if named.contains("://") || named.starts_with("node:") => None,
                None => Some(urls::tidy(&folder.join(named))),
            }
        }));
        // Source, line and column go on from segment to segment; the generated column begins anew in every line.
        let mut carried = [0i64; 3];
        for (line, segments) in (0u32..).zip(raw.mappings.split(';')) {
            let mut column = 0i64;
            for segment in segments.split(',').filter(|segment| !segment.is_empty()) {
                let numbers = numbers(segment);
                column += numbers.first().copied().unwrap_or_default();
                let shift = if line == 0 { offset.1 } else { 0 };
                let generated = (line.saturating_add(offset.0), small(column).saturating_add(shift));
                let mut original = None;
                if let [_, source, line, column, ..] = numbers[..] {
                    carried = [carried[0] + source, carried[1] + line, carried[2] + column];
                    let source = usize::try_from(carried[0]).unwrap_or(usize::MAX).saturating_add(first);
                    original = Some((source, (small(carried[1]), small(carried[2]))));
                }
                self.mappings.push(Mapping { generated, original });
            }
        }
    }

    /// Whether anything comes from this file.
    pub fn has(&self, file: &Path) -> bool {
        self.sources.iter().flatten().any(|source| is_same(source, file))
    }

    /// Where a place in generated code comes from.
    pub fn original(&self, spot: Spot) -> Option<(&Path, Spot)> {
        let after = self.mappings.partition_point(|mapping| mapping.generated <= spot);
        let mapping = self.mappings[..after].last().filter(|mapping| mapping.generated.0 == spot.0)?;
        let (source, original) = mapping.original?;
        Some((self.sources.get(source)?.as_deref()?, original))
    }

    /// Where the first code of a line is, or of the next line that has any; and which line that is.
    pub fn generated(&self, file: &Path, line: u32) -> Option<(Spot, u32)> {
        let is_wanted: Vec<bool> =
            self.sources.iter().map(|source| source.as_deref().is_some_and(|source| is_same(source, file))).collect();
        let of_file = |mapping: &Mapping| {
            let (source, original) = mapping.original?;
            (is_wanted.get(source) == Some(&true) && original.0 >= line).then_some((original, mapping.generated))
        };
        let nearest = self.mappings.iter().filter_map(of_file).map(|(original, _)| original.0).min()?;
        let on_line = self.mappings.iter().filter_map(of_file).filter(|(original, _)| original.0 == nearest);
        // Generated code may have the line in several places; the one that stands first in the line is its beginning.
        let (_, generated) = on_line.min_by_key(|(original, generated)| (original.1, *generated))?;
        Some((generated, nearest))
    }
}

/// The same file, where one may be named through a link.
fn is_same(source: &Path, file: &Path) -> bool {
    source == file || (source.file_name() == file.file_name() && urls::real(source) == urls::real(file))
}

fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or_default()
}

/// The numbers of a segment: base 64, five bits a digit, the lowest first, the sign in the last bit.
fn numbers(segment: &str) -> Vec<i64> {
    let mut numbers = Vec::new();
    let (mut number, mut shift) = (0i64, 0);
    for digit in segment.bytes().filter_map(digit) {
        if shift < 60 {
            number |= i64::from(digit & 31) << shift;
        }
        shift += 5;
        if digit & 32 == 0 {
            numbers.push(if number & 1 == 1 { -(number >> 1) } else { number >> 1 });
            (number, shift) = (0, 0);
        }
    }
    numbers
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    }
}

/// Decodes base 64; what is no digit is passed over.
fn base64(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut held) = (0u32, 0);
    for digit in text.bytes().filter_map(digit) {
        bits = bits << 6 | u32::from(digit);
        held += 6;
        if held >= 8 {
            held -= 8;
            out.push(u8::try_from(bits >> held & 0xff).unwrap_or_default());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_make_numbers() {
        assert_eq!(numbers("AAgBC"), [0, 0, 16, 1]);
        assert_eq!(numbers("D"), [-1]);
        assert_eq!(numbers("2HwcqxB"), [123, 456, 789]);
        assert_eq!(base64("eyJhIjoxfQ=="), b"{\"a\":1}");
    }

    /// Two lines of one file in one line of code, then code of the generator's own, then the first line again.
    fn map() -> SourceMap {
        let text = r#"{"version":3,"sources":["src/a.ts","webpack://x/y.js"],"mappings":"AAAA,IACA,E;AADA"}"#;
        SourceMap::parse(text.as_bytes(), Path::new("/p")).unwrap()
    }

    #[test]
    fn places_are_found_both_ways() {
        let map = map();
        let a = Path::new("/p/src/a.ts");
        assert!(map.has(a) && !map.has(Path::new("/p/a.ts")));
        assert_eq!(map.original((0, 2)), Some((a, (0, 0))));
        assert_eq!(map.original((0, 5)), Some((a, (1, 0))));
        assert_eq!(map.original((0, 9)), None);
        assert_eq!(map.original((5, 0)), None);
        assert_eq!(map.generated(a, 1), Some(((0, 4), 1)));
        assert_eq!(map.generated(a, 0), Some(((0, 0), 0)));
        assert_eq!(map.generated(a, 2), None);
    }

    #[test]
    fn a_map_is_read_from_the_comment_itself() {
        let text = "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbIngudHMiXSwibWFwcGluZ3MiOiJBQUFBIn0=";
        let url = format!("data:application/json;charset=utf-8;base64,{text}");
        let map = SourceMap::load("file:///q/x.js", &url).unwrap();
        assert_eq!(map.original((0, 0)), Some((Path::new("/q/x.ts"), (0, 0))));
        assert!(SourceMap::load("file:///q/x.js", "data:application/json,nonsense").is_none());
    }
}
