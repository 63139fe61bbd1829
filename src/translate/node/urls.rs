//! Files and the addresses that scripts have.

use std::path::{Component, Path, PathBuf};

/// The file that an address or an absolute path means; None where it is none.
pub fn path_of(url: &str) -> Option<PathBuf> {
    if url.starts_with('/') {
        return Some(tidy(Path::new(url)));
    }
    let rest = url.strip_prefix("file://")?;
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let path = String::from_utf8(unescaped(rest)).ok()?;
    path.starts_with('/').then(|| tidy(Path::new(&path)))
}

/// The address that Node gives a script in this file.
pub fn url_of(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'%' | b'\\' | b'"' | b'#' | b'<' | b'>' | b'?' | b'`' | b'{' | b'}' | b'^' | b'|' | 0..=32 | 127..=255 => {
                url.push_str(&format!("%{byte:02X}"));
            }
            plain => url.push(char::from(plain)),
        }
    }
    url
}

/// A pattern for the addresses of scripts in this file: with a query, as loaders add them, or without.
pub fn pattern_of(path: &Path) -> String {
    let mut pattern = String::from("^");
    for c in url_of(path).chars() {
        if "\\^$.*+?()[]{}|/".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push_str("(\\?.*)?$");
    // Node escapes these or not, by version.
    pattern.replace("%5E", "(%5E|\\^)").replace("%7C", "(%7C|\\|)")
}

/// Without `.` and `..`; links are not followed.
pub fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            other => tidied.push(other),
        }
    }
    tidied
}

/// The path with its links followed, which is how Node names its modules.
pub fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| tidy(path))
}

/// The bytes of a text with `%` escapes.
pub fn unescaped(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        if let (b'%', Some(high), Some(low)) = (bytes[at], hex(at + 1), hex(at + 2)) {
            out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_addresses_are_told_from_each_other() {
        let path = Path::new("/a b/ü/x#1.js");
        assert_eq!(url_of(path), "file:///a%20b/%C3%BC/x%231.js");
        assert_eq!(path_of(&url_of(path)).as_deref(), Some(path));
        assert_eq!(path_of("file:///a/x.mjs?t=1"), Some("/a/x.mjs".into()));
        assert_eq!(path_of("/a/./b/../c.js"), Some("/a/c.js".into()));
        assert_eq!(path_of("node:fs"), None);
        assert_eq!(path_of("webpack://app/x.js"), None);
        assert_eq!(pattern_of(Path::new("/a.js")), "^file:\\/\\/\\/a\\.js(\\?.*)?$");
    }
}
