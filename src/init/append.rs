//! A block of lines at the end of a text, put there and taken away again.
//!
//! What was before the block can be told from what is around it: after a text that ends with a line end come an empty
//! line and the block with a line end; after any other text come an empty line and the block without one. A block at
//! the very beginning is a file of ours.

use std::ops::Range;

/// The line end that a text uses.
#[must_use]
pub fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// A block (without a line end at its end) with the line ends of a text.
#[must_use]
pub fn with_line_ends(block: &str, end: &str) -> String {
    block.replace('\n', end)
}

/// The text with a block at its end; without a text, the block alone.
#[must_use]
pub fn add(old: Option<&str>, block: &str) -> String {
    let Some(old) = old else { return format!("{block}\n") };
    let end = line_end(old);
    let block = with_line_ends(block, end);
    if old.ends_with('\n') { format!("{old}{end}{block}{end}") } else { format!("{old}{end}{end}{block}") }
}

/// The text without the block that is there, which has these line ends; nothing, when it was all there ever was.
#[must_use]
pub fn remove(text: &str, block: Range<usize>, end: &str) -> Option<String> {
    let (before, after) = (&text[..block.start], &text[block.end..]);
    let (before, after) = match after.strip_prefix(end) {
        Some(after) => (before.strip_suffix(end).unwrap_or(before), after),
        None if after.is_empty() => {
            let one = before.strip_suffix(end).unwrap_or(before);
            (one.strip_suffix(end).unwrap_or(one), after)
        }
        None => (before, after),
    };
    let is_ours = block.start == 0 && after.is_empty();
    (!is_ours).then(|| [before, after].concat())
}
