//! A few lines about Bugeye in AGENTS.md, between two marks.

use std::ops::Range;

use super::{Edit, append};

const BEGIN: &str = "<!-- bugeye:begin -->";
const END: &str = "<!-- bugeye:end -->";

const TEXT: &str = "## Debugging

`bugeye` is a debugger for the shell: one command, one answer, nothing hangs. Use it instead of guessing when a value is
wrong, a fix did not work, a test fails for an unclear reason, or a program crashes or hangs. Put the usual command behind `--`.

- `bugeye trace --at 'FILE:LINE: a, b' -- COMMAND`: these values each time the line is reached.
- `bugeye trace --calls 'name*' -- COMMAND`: what was called with what, and what came back.
- `bugeye run --break FILE:LINE -- COMMAND`: stop there, or at a crash, with source, locals and stack. `bugeye test NAME` for a test.
- `bugeye print -e a -e 'b[0]'`, `bugeye backtrace --locals`: look around.
- `bugeye next`, `bugeye continue`, `bugeye stop --all`: go on, or be done. More: `bugeye help`.";

fn block() -> String {
    format!("{BEGIN}\n{TEXT}\n{END}")
}

/// Where our block is, with its marks.
fn find(text: &str) -> Result<Option<Range<usize>>, String> {
    match (text.matches(BEGIN).count(), text.matches(END).count(), text.find(BEGIN), text.find(END)) {
        (0, 0, ..) => Ok(None),
        (1, 1, Some(start), Some(end)) if start < end => Ok(Some(start..end + END.len())),
        _ => Err(format!("`{BEGIN}` and `{END}` are not there once each, in this order")),
    }
}

/// The text with our block, as it is today.
pub fn add(old: Option<&str>) -> Result<Edit, String> {
    let Some(text) = old else { return Ok(Edit::Text(append::add(None, &block()))) };
    let Some(range) = find(text)? else {
        let new = append::add(Some(text), &block());
        return if remove(&new)? == Edit::Text(text.to_string()) {
            Ok(Edit::Text(new))
        } else {
            Err("the block could not be taken out again without a trace".into())
        };
    };
    let now = append::with_line_ends(&block(), append::line_end(&text[range.clone()]));
    if text[range.clone()] == now {
        return Ok(Edit::Same);
    }
    Ok(Edit::Text([&text[..range.start], &now, &text[range.end..]].concat()))
}

/// The text without our block.
pub fn remove(text: &str) -> Result<Edit, String> {
    let Some(range) = find(text)? else { return Ok(Edit::Same) };
    let end = append::line_end(&text[range.clone()]);
    Ok(append::remove(text, range, end).map_or(Edit::Gone, Edit::Text))
}
