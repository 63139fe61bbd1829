//! Our table in a TOML file of somebody else, put at its end and taken out again as text.

use std::ops::Range;

use ::toml::{Table, Value};

use super::{Edit, NAME, append};

const SERVERS: &str = "mcp_servers";

/// The table as it is written, without a line end at its end.
fn block(command: &str) -> String {
    let command = Value::String(command.into());
    format!("[{SERVERS}.{NAME}]\ncommand = {command}\nargs = [\"mcp\"]")
}

/// The command of an entry that says no more than ours would.
fn command_of(entry: &Value) -> Option<&str> {
    let entry = entry.as_table()?;
    let command = entry.get("command")?.as_str()?;
    let args = entry.get("args")?.as_array()?;
    let is_ours = std::path::Path::new(command).file_name().is_some_and(|name| name == NAME);
    let says_mcp = matches!(&args[..], [Value::String(word)] if word == "mcp");
    (is_ours && says_mcp && entry.len() == 2).then_some(command)
}

fn parse(text: &str) -> Result<Table, String> {
    let plain = text.strip_prefix('\u{feff}').unwrap_or(text);
    plain.parse::<Table>().map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(plain.len());
        let line = plain.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        format!("{} at line {line}", error.message())
    })
}

/// The same data. A value that is not equal to itself (`nan`) is compared as it is written.
fn is_same(one: &Table, other: &Table) -> bool {
    one == other || format!("{one:?}") == format!("{other:?}")
}

fn entry(data: &Table) -> Option<&Value> {
    data.get(SERVERS)?.get(NAME)
}

/// The file's text with our table in it.
pub fn add(old: Option<&str>, command: &str, force: bool) -> Result<Edit, String> {
    let block = block(command);
    let Some(text) = old else { return Ok(Edit::Text(append::add(None, &block))) };
    let data = parse(text)?;
    let mut wanted = data.clone();
    let ours = block.parse::<Table>().map_err(|error| error.message().to_string())?;
    let servers = wanted.entry(SERVERS).or_insert_with(|| Value::Table(Table::new()));
    let Some(servers) = servers.as_table_mut() else { return Err(format!("its `{SERVERS}` is no table")) };
    servers.extend(entry(&ours).map(|entry| (NAME.to_string(), entry.clone())));
    let new = match entry(&data).map(command_of) {
        None => append::add(Some(text), &block),
        Some(Some(there)) if there == command => return Ok(Edit::Same),
        Some(None) if !force => return Ok(Edit::Kept),
        Some(_) => {
            let sections = sections_of_entry(text)?;
            let end = append::line_end(text);
            let mut new = text.to_string();
            for (index, section) in sections.iter().enumerate().rev() {
                let with = if index == 0 { append::with_line_ends(&block, end) } else { String::new() };
                new.replace_range(section.clone(), &with);
            }
            new
        }
    };
    match parse(&new) {
        Ok(there) if is_same(&there, &wanted) => {}
        Ok(_) => return Err("the entry would change other things in it".into()),
        Err(error) => return Err(format!("the entry does not fit into it: {error}")),
    }
    if entry(&data).is_none() && remove(&new, false)? != Edit::Text(text.to_string()) {
        return Err("the entry could not be taken out again without a trace".into());
    }
    Ok(Edit::Text(new))
}

/// The file's text without our table.
pub fn remove(text: &str, force: bool) -> Result<Edit, String> {
    let data = parse(text)?;
    let Some(found) = entry(&data) else { return Ok(Edit::Same) };
    let command = command_of(found);
    if command.is_none() && !force {
        return Ok(Edit::Kept);
    }
    let sections = sections_of_entry(text)?;
    let exact = command.zip(sections.first()).and_then(|(command, section)| {
        let is_there = |end: &&str| text[section.start..].starts_with(&append::with_line_ends(&block(command), end));
        let end = ["\n", "\r\n"].into_iter().find(is_there)?;
        Some((section.start..section.start + append::with_line_ends(&block(command), end).len(), end))
    });
    let new = match exact {
        Some((range, end)) => match append::remove(text, range, end) {
            Some(new) => new,
            None => return Ok(Edit::Gone),
        },
        None => {
            let mut new = text.to_string();
            sections.iter().rev().for_each(|section| new.replace_range(section.clone(), ""));
            new
        }
    };
    let mut wanted = data;
    let servers = wanted.get_mut(SERVERS).and_then(Value::as_table_mut);
    let is_empty = servers.is_some_and(|servers| {
        servers.remove(NAME);
        servers.is_empty()
    });
    let mut bare = wanted.clone();
    if is_empty {
        bare.remove(SERVERS);
    }
    match parse(&new) {
        Ok(there) if is_same(&there, &wanted) || is_same(&there, &bare) => Ok(Edit::Text(new)),
        _ => Err("the entry can't be taken out without a change to something else".into()),
    }
}

/// Where the tables of our entry are, each from its header to the end of its last line that says something.
fn sections_of_entry(text: &str) -> Result<Vec<Range<usize>>, String> {
    let headers = headers(text);
    let ends = headers.iter().skip(1).copied().chain([text.len()]);
    let sections = headers.iter().copied().zip(ends).filter(|(start, _)| is_of_entry(&text[*start..]));
    let trimmed = sections.map(|(start, end)| start..start + said(&text[start..end]));
    let found: Vec<_> = trimmed.collect();
    if found.is_empty() { Err("the entry is not in a table of its own; take it out by hand".into()) } else { Ok(found) }
}

/// Whether a header names our entry's table, or one within it.
fn is_of_entry(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    line.parse::<Table>().is_ok_and(|header| entry(&header).is_some())
}

/// How long a section is without the blank lines and comments at its end.
fn said(section: &str) -> usize {
    let mut length = 0;
    let mut at = 0;
    for line in section.split_inclusive('\n') {
        at += line.len();
        let words = line.trim();
        if !words.is_empty() && !words.starts_with('#') {
            length = at - (line.len() - line.trim_end_matches(['\r', '\n']).len());
        }
    }
    length
}

/// Where the lines with table headers begin.
fn headers(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut depth = 0_usize;
    let mut is_line_start = true;
    while let Some(byte) = bytes.get(at) {
        let was_line_start = std::mem::replace(&mut is_line_start, false);
        match byte {
            b'#' => at += text[at..].find('\n').unwrap_or(text.len() - at),
            b'\n' => {
                is_line_start = true;
                at += 1;
            }
            b'"' | b'\'' => at += string_length(&text[at..]),
            b'[' | b'{' => {
                if *byte == b'[' && depth == 0 && was_line_start {
                    found.push(at);
                }
                depth += 1;
                at += 1;
            }
            b']' | b'}' => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            b' ' | b'\t' => {
                is_line_start = was_line_start;
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// How long the string is that begins here.
fn string_length(text: &str) -> usize {
    let quote = &text[..1];
    let long = quote.repeat(3);
    let delimiter = if text.starts_with(&long) { &long } else { quote };
    let bytes = text.as_bytes();
    let mut at = delimiter.len();
    while at < text.len() {
        if quote == "\"" && bytes[at] == b'\\' {
            at += 2;
        } else if bytes[at..].starts_with(delimiter.as_bytes()) {
            at += delimiter.len();
            // One or two quotes may stand before the three that end it.
            while delimiter.len() == 3 && bytes[at..].starts_with(quote.as_bytes()) {
                at += 1;
            }
            return at;
        } else {
            at += 1;
        }
    }
    text.len()
}
