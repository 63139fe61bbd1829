//! A record as one page: no script, nothing from elsewhere, every text of the record escaped, its size bounded.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value as Json;

use super::run::Run;
use super::spark::Spark;
use super::stops::{self, Sources, bounded};
use crate::cli::typed;
use crate::commands::doing_line::is_agent;
use crate::commands::report::ending_line;
use crate::log;
use crate::model::{Ending, Event};
use crate::render::{Page, cut, quoted, quoted_lines};
use crate::store::occurrences::{Crossed, Occurrence, with_calls};
use crate::store::read::{Head, Tail};

/// Stops at each end of the record, commands, and hits of each place.
const STOPS: usize = 200;
const COMMANDS: usize = 250;
const HITS: usize = 50;
/// Places whose hits are shown, and values of each.
const PLACES: usize = 50;
const VALUES: usize = 12;
/// Characters of output at each end.
const OUTPUT: usize = 100_000;

/// Characters of a name, which stays on one line.
pub const NAME: usize = 60;

const UNANSWERED: &str = "<td class=\"dim\">not answered</td></tr>\n";

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222;\
background:#fff}code,pre,td,time{font-family:ui-monospace,monospace;font-size:13px}h1{font-size:1.4em;overflow-wrap:anywhere}h1 code{font-size:1em}p>code{display:inline-block;min-width:8em}h2{margin-top:2em;\
font-size:1.15em;border-bottom:1px solid #ddd}summary{cursor:pointer;padding:.15em 0;overflow-wrap:anywhere}\
details[open]{background:#fafafa;border-left:3px solid #88a;padding-left:.8em;margin:.3em 0}summary i{color:#666}\
pre{background:#f4f4f4;padding:.6em;overflow:auto;max-height:40em}mark{background:#ffe9a8}table{border-collapse:\
collapse;margin:.5em 0}td,th{border:1px solid #ddd;padding:.1em .5em;text-align:left;vertical-align:top;\
overflow-wrap:anywhere}th,.key{white-space:nowrap}.new td{background:#fff4d6}.bad{color:#a00}.dim,time{color:#777}svg{vertical-align:middle;\
background:#f4f4f4}polyline{fill:none;stroke:#357;stroke-width:1.2}dt{float:left;width:8em;color:#777}dd{margin-left:8em;\
overflow-wrap:anywhere}.err{color:#a00}@media(prefers-color-scheme:dark){body{background:#16181c;color:#ddd}pre,svg{\
background:#22252b}details[open]{background:#1c1f24}.new td{background:#3a3320}mark{background:#5a4a10;color:#fff}\
td,th{border-color:#444}h2{border-color:#444}polyline{stroke:#8bd}summary i{color:#999}.bad,.err{color:#f88}.dim,time,\
dt{color:#999}}";

/// A text of the record on one line, harmless in a page.
pub fn html(text: &str) -> String {
    escaped(&quoted(text))
}

/// The same with its lines.
pub fn lines(text: &str) -> String {
    escaped(&quoted_lines(text))
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The first and the last of many, and how many there were.
#[derive(Debug)]
pub struct Ends<T> {
    most: usize,
    first: Vec<T>,
    last: VecDeque<T>,
    pub count: usize,
}

impl<T> Ends<T> {
    pub fn new(most: usize) -> Self {
        Self { most, first: Vec::new(), last: VecDeque::new(), count: 0 }
    }

    pub fn push(&mut self, item: T) {
        self.count += 1;
        if self.first.len() < self.most {
            self.first.push(item);
            return;
        }
        if self.last.len() >= self.most {
            self.last.pop_front();
        }
        self.last.push_back(item);
    }

    fn left_out(&self) -> usize {
        self.count - self.first.len() - self.last.len()
    }

    /// Tells them in their order, and between the ends how many are missing.
    pub fn each(&self, mut tell: impl FnMut(Result<&T, usize>)) {
        self.first.iter().for_each(|item| tell(Ok(item)));
        if self.left_out() > 0 {
            tell(Err(self.left_out()));
        }
        self.last.iter().for_each(|item| tell(Ok(item)));
    }
}

/// What a page tells, gathered in one pass.
struct Gathered {
    /// What an agent did.
    run: Option<Run>,
    stops: Ends<String>,
    commands: Ends<String>,
    /// Commands that are not answered yet.
    open: BTreeMap<u64, String>,
    output: Output,
    ending: Option<String>,
    began: Option<u64>,
    events: u64,
}

/// Writes the page.
pub fn write(head: &Head, out: &mut dyn Write) -> io::Result<()> {
    let found = gather(head)?;
    let words = html(cut(&head.words.join(" "), 300).0);
    write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{words}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1><code>{words}</code></h1>\n"
    )?;
    write_about(head, &found, out)?;
    if let Some(run) = &found.run {
        run.write(out)?;
    }
    if found.stops.count > 0 {
        writeln!(out, "<h2>Stops ({})</h2>", found.stops.count)?;
    }
    write_all(&found.stops, "stops", out)?;
    found.output.write(out)?;
    writeln!(out, "<h2>Commands ({})</h2>\n<table>", found.commands.count + found.open.len())?;
    out.write_all(b"<tr><th>when</th><th>who</th><th>command</th><th>answer</th></tr>\n")?;
    let mut written = Ok(());
    found.commands.each(|row| {
        let row =
            row.cloned().unwrap_or_else(|left| format!("<tr><td colspan=\"4\">… {left} more commands …</td></tr>\n"));
        if written.is_ok() {
            written = out.write_all(row.as_bytes());
        }
    });
    written?;
    for row in found.open.values() {
        write!(out, "{row}{UNANSWERED}")?;
    }
    out.write_all(b"</table>\n")?;
    write_hits(head, out)?;
    writeln!(out, "<p class=\"dim\">Written by Bugeye {}.</p>\n</body>\n</html>", env!("CARGO_PKG_VERSION"))
}

fn write_all(parts: &Ends<String>, what: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut written = Ok(());
    parts.each(|part| {
        if written.is_ok() {
            written = match part {
                Ok(part) => out.write_all(part.as_bytes()),
                Err(left) => writeln!(out, "<p class=\"dim\">… {left} more {what} …</p>"),
            };
        }
    });
    written
}

fn write_about(head: &Head, found: &Gathered, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"<dl>\n")?;
    let ending = found.ending.clone().unwrap_or_else(|| "no end is recorded".into());
    for (name, text) in [
        ("record", head.id.as_str()),
        ("started", &moment(head.started)),
        ("in", &head.cwd.to_string_lossy()),
        ("by", &head.who),
        ("via", &head.adapter),
        ("end", &ending),
        ("events", &found.events.to_string()),
    ] {
        writeln!(out, "<dt>{name}</dt><dd>{}</dd>", html(cut(text, 400).0))?;
    }
    out.write_all(b"</dl>\n")
}

/// `2026-11-15 21:41:31 UTC`
fn moment(ms: u64) -> String {
    let seconds = ms / 1000;
    // What is beyond any calendar is as good as not known.
    let (year, month, day) = log::date((seconds / 86_400).min(3_000_000));
    let rest = seconds % 86_400;
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3600, rest / 60 % 60, rest % 60)
}

/// `+12.345 s` since the first event.
fn since(began: Option<u64>, ts: u64) -> String {
    let ms = ts.saturating_sub(began.unwrap_or(ts));
    format!("+{}.{:03} s", ms / 1000, ms % 1000)
}

fn gather(head: &Head) -> io::Result<Gathered> {
    let mut found = Gathered {
        run: is_agent(head).then(Run::default),
        stops: Ends::new(STOPS),
        commands: Ends::new(COMMANDS),
        open: BTreeMap::new(),
        output: Output::default(),
        ending: None,
        began: None,
        events: 0,
    };
    let mut sources = Sources::default();
    let page = Page::new(head.project.clone());
    let mut tail = Tail::new(&head.folder);
    while let Some(events) = tail.read()? {
        for (event, _) in events {
            found.events += 1;
            found.began = found.began.or(Some(event.ts));
            let when = since(found.began, event.ts);
            if let Some(run) = &mut found.run {
                run.take(&event, &when);
            }
            match event.kind.as_str() {
                "source" => sources.note(&event.data),
                "stopped" => {
                    if let Some(part) = stops::part(&event, &when, &page, &head.folder, &mut sources) {
                        found.stops.push(part);
                    }
                }
                "output" => found.output.add(&event.data),
                "session.end" => {
                    let ending: Option<Ending> = serde_json::from_value(event.data["ending"].clone()).ok();
                    found.ending = ending.map(|ending| ending_line(&ending)).or(found.ending);
                }
                "command" => {
                    found.open.insert(event.seq, asked(&event, &when));
                    if found.open.len() > COMMANDS
                        && let Some((_, row)) = found.open.pop_first()
                    {
                        found.commands.push(format!("{row}{UNANSWERED}"));
                    }
                }
                "command.result" => answered(&event, &when, &mut found),
                _ => {}
            }
        }
    }
    Ok(found)
}

fn asked(event: &Event, when: &str) -> String {
    let words = |words: &Vec<Json>| typed(&words.iter().filter_map(Json::as_str).collect::<Vec<_>>());
    let typed = event.data["typed"].as_array().map(words);
    let what = typed.unwrap_or_else(|| format!("{} {}", text(&event.data, "name"), event.data["args"]));
    row(when, text(&event.data, "who"), &what)
}

fn row(when: &str, who: &str, what: &str) -> String {
    format!(
        "<tr><td class=\"key\"><time>{}</time></td><td class=\"key\">{}</td><td><code>{}</code></td>",
        html(when),
        html(cut(who, 40).0),
        html(&bounded(what))
    )
}

fn answered(event: &Event, when: &str, found: &mut Gathered) {
    let data = &event.data;
    let begun = data["command"].as_u64().and_then(|seq| found.open.remove(&seq));
    let begun = begun.unwrap_or_else(|| row(when, text(data, "who"), text(data, "name")));
    let ms = data["ms"].as_u64().unwrap_or_default();
    let answer = match data.get("error") {
        None => format!("<td>ok, {ms} ms</td></tr>\n"),
        Some(error) => format!("<td class=\"bad\">{}</td></tr>\n", html(&bounded(text(error, "message")))),
    };
    found.commands.push(format!("{begun}{answer}"));
}

fn text<'a>(data: &'a Json, name: &str) -> &'a str {
    data.get(name).and_then(Json::as_str).unwrap_or_default()
}

/// What was printed: its beginning and its end.
#[derive(Debug, Default)]
struct Output {
    first: Vec<(bool, String)>,
    last: VecDeque<(bool, String)>,
    /// Characters of each, and of all.
    held: (usize, usize),
    all: usize,
}

impl Output {
    fn add(&mut self, data: &Json) {
        let (error, mut printed) = match text(data, "stream") {
            "stdout" => (false, text(data, "text")),
            "stderr" => (true, text(data, "text")),
            _ => return,
        };
        self.all += printed.chars().count();
        if self.held.0 < OUTPUT && !printed.is_empty() {
            let (kept, _) = cut(printed, OUTPUT - self.held.0);
            self.held.0 += kept.chars().count();
            self.first.push((error, kept.to_string()));
            printed = &printed[kept.len()..];
        }
        if printed.is_empty() {
            return;
        }
        let count = printed.chars().count();
        let from = printed.char_indices().nth(count.saturating_sub(OUTPUT)).map_or(0, |(at, _)| at);
        self.held.1 += count.min(OUTPUT);
        self.last.push_back((error, printed[from..].to_string()));
        while self.last.len() > 1 && self.held.1 > 2 * OUTPUT {
            if let Some((_, gone)) = self.last.pop_front() {
                self.held.1 -= gone.chars().count();
            }
        }
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.all == 0 {
            return Ok(());
        }
        writeln!(out, "<h2>Output ({} characters)</h2>\n<pre>", self.all)?;
        let piece = |(error, text): &(bool, String)| {
            if *error { format!("<span class=\"err\">{}</span>", lines(text)) } else { lines(text) }
        };
        for printed in &self.first {
            out.write_all(piece(printed).as_bytes())?;
        }
        let left = self.all - self.held.0 - self.held.1;
        if left > 0 {
            write!(out, "</pre>\n<p class=\"dim\">… {left} more characters …</p>\n<pre>")?;
        }
        for printed in &self.last {
            out.write_all(piece(printed).as_bytes())?;
        }
        out.write_all(b"</pre>\n")
    }
}

/// The hits of one place of a trace.
struct Place {
    asked: String,
    names: Vec<String>,
    sparks: Vec<Spark>,
    rows: Ends<String>,
}

fn write_hits(head: &Head, out: &mut dyn Write) -> io::Result<()> {
    let mut places: Vec<Place> = Vec::new();
    let mut known: HashMap<(u64, String), usize> = HashMap::new();
    let (mut more, mut calls) = (0, 0);
    let mut take = |seen: Occurrence| {
        if let Some(crossed) = seen.crossed {
            calls += u64::from(crossed != Crossed::Left);
            return true;
        }
        let Some(asked) = seen.asked.as_ref().filter(|_| seen.hit > 0) else { return true };
        let key = (seen.seq, asked.to_string());
        let at = match known.get(&key) {
            Some(at) => *at,
            None if places.len() >= PLACES => {
                more += 1;
                return true;
            }
            None => {
                let names: Vec<String> = seen.values.iter().take(VALUES).map(|(name, _)| name.to_string()).collect();
                let sparks = names.iter().map(|_| Spark::default()).collect();
                places.push(Place { asked: asked.to_string(), names, sparks, rows: Ends::new(HITS) });
                known.insert(key, places.len() - 1);
                places.len() - 1
            }
        };
        places[at].take(&seen);
        true
    };
    with_calls(head, &mut take)?;
    if !places.is_empty() {
        writeln!(out, "<h2>Hits</h2>")?;
    }
    for place in &places {
        place.write(out)?;
    }
    if more > 0 {
        writeln!(out, "<p class=\"dim\">{more} hits of more places</p>")?;
    }
    if calls > 0 {
        writeln!(out, "<p class=\"dim\">Calls that were traced, and are not on this page: {calls}</p>")?;
    }
    Ok(())
}

impl Place {
    fn take(&mut self, seen: &Occurrence) {
        for ((_, value), spark) in seen.values.iter().zip(&mut self.sparks) {
            spark.add(value);
        }
        let function = html(cut(&seen.function, NAME).0);
        let mut row = format!("<tr><td>{}</td><td class=\"key\"><code>{function}</code></td>", seen.hit);
        for (_, value) in seen.values.iter().take(VALUES) {
            let _ = write!(row, "<td><code>{}</code></td>", html(&bounded(value)));
        }
        self.rows.push(format!("{row}</tr>\n"));
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let (asked, count) = (html(&bounded(&self.asked)), self.rows.count);
        writeln!(out, "<h3><code>{asked}</code> ({count} {})</h3>", if count == 1 { "hit" } else { "hits" })?;
        for (name, spark) in self.names.iter().zip(&self.sparks) {
            let drawn = spark.svg();
            if !drawn.is_empty() {
                writeln!(out, "<p><code>{}</code> {drawn}</p>", html(cut(name, NAME).0))?;
            }
        }
        out.write_all(b"<details><summary>values</summary>\n<table><tr><th>hit</th><th>in</th>")?;
        for name in &self.names {
            write!(out, "<th>{}</th>", html(cut(name, NAME).0))?;
        }
        out.write_all(b"</tr>\n")?;
        let mut written = Ok(());
        self.rows.each(|row| {
            let row =
                row.cloned().unwrap_or_else(|left| format!("<tr><td colspan=\"20\">… {left} more hits …</td></tr>\n"));
            if written.is_ok() {
                written = out.write_all(row.as_bytes());
            }
        });
        written?;
        out.write_all(b"</table></details>\n")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_can_do_nothing_in_a_page() {
        assert_eq!(html("<a href=\"x\">&'\n\u{1b}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\\n\\u{1b}");
        assert_eq!(lines("a\n\t<b>"), "a\n\t&lt;b&gt;");
    }

    #[test]
    fn the_ends_of_many_are_kept_and_the_rest_counted() {
        let mut ends = Ends::new(2);
        let mut told = Vec::new();
        (1..=7).for_each(|number| ends.push(number));
        ends.each(|item| told.push(item.copied()));
        assert_eq!(told, [Ok(1), Ok(2), Err(3), Ok(6), Ok(7)]);
    }

    #[test]
    fn long_output_loses_its_middle() {
        let mut output = Output::default();
        for number in 0..4000 {
            output.add(&json!({ "stream": "stdout", "text": format!("{number:099}\n") }));
        }
        output.add(&json!({ "stream": "console", "text": "chatter" }));
        let mut page = Vec::new();
        output.write(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.contains("(400000 characters)") && page.contains("more characters"), "{}", &page[..200]);
        assert!(page.len() < 320_000 && page.contains(&format!("{:099}", 3999)) && !page.contains("chatter"));
        let pieces: Vec<&str> = page.split("more characters").collect();
        let left: usize = pieces[0].rsplit("… ").next().unwrap().trim().parse().unwrap();
        let shown = page.matches('\n').count() - 5;
        assert_eq!(left + shown * 100, 400_000);
    }

    #[test]
    fn moments_are_told_in_words() {
        assert_eq!(moment(1_794_778_891_000), "2026-11-15 21:41:31 UTC");
        assert_eq!(since(Some(1000), 13_345), "+12.345 s");
        assert_eq!(since(Some(1000), 1), "+0.000 s");
        assert!(moment(u64::MAX).ends_with("UTC"));
    }
}
