//! `output`: what the program printed.

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Command, Group, Past};
use crate::failure::Failure;
use crate::hub::{Context, Live, Part, lock};
use crate::output::{self, Chunk};
use crate::render::{Page, Render, quoted_lines};
use crate::session::Stream;
use crate::store::replay::Moment;

/// The most a reply carries.
const MAX_REPLY: usize = 32 * 1024;

/// Show what the program printed since you last asked
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// Show new output as it comes, until the program ends.
    #[arg(long)]
    #[serde(default)]
    pub follow: bool,
    /// Only the last N lines of all that is kept.
    #[arg(long, value_name = "N")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<usize>,
    /// All that is kept.
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// From this byte on.
    #[arg(long, value_name = "BYTE")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
    /// Forget what is kept.
    #[arg(long)]
    #[serde(default)]
    pub clear: bool,
    /// Only what went to standard error.
    #[arg(long)]
    #[serde(default)]
    pub stderr: bool,
    /// The debugger's own messages too.
    #[arg(long)]
    #[serde(default)]
    pub console: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Text {
    pub chunks: Vec<Chunk>,
    /// Bytes in this range that are no longer kept.
    pub dropped: u64,
    /// Bytes in this range that this reply leaves out.
    pub left_out: u64,
    /// Where the next output begins.
    pub end: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cleared: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub followed: bool,
    /// More was printed than the record has.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

impl Render for Text {
    fn render(&self, page: &mut Page) {
        if self.dropped > 0 {
            page.line(format!("… {} bytes are no longer kept", self.dropped));
        }
        if self.left_out > 0 {
            page.line(format!("… {} bytes before this: bugeye output --since BYTE, or --tail N", self.left_out));
        }
        let text: String = self.chunks.iter().map(|chunk| chunk.text.as_str()).collect();
        if !text.is_empty() {
            page.line(quoted_lines(text.trim_end_matches('\n')));
        } else if self.cleared {
            page.line("forgotten");
        } else if !self.followed {
            page.line("nothing new");
        }
        if self.incomplete {
            page.line("… more was printed than is recorded");
        }
    }
}

impl Output {
    fn wants(&self, stream: Stream) -> bool {
        match stream {
            Stream::Stderr => true,
            Stream::Console => self.console,
            _ => !self.stderr,
        }
    }

    fn text(&self, part: output::Part) -> Text {
        let mut chunks: Vec<Chunk> = part.chunks.into_iter().filter(|chunk| self.wants(chunk.stream)).collect();
        if let Some(lines) = self.tail {
            chunks = tail(chunks, lines);
        }
        let total: usize = chunks.iter().map(|chunk| chunk.text.len()).sum();
        let mut skip = total.saturating_sub(MAX_REPLY);
        chunks.retain_mut(|chunk| {
            let cut = skip.min(chunk.text.len());
            skip -= cut;
            let cut = (cut..=chunk.text.len()).find(|at| chunk.text.is_char_boundary(*at)).unwrap_or(0);
            chunk.text.drain(..cut);
            chunk.at += cut as u64;
            !chunk.text.is_empty()
        });
        // Counted from what stayed: a cut inside a character moves on to its end.
        let shown: usize = chunks.iter().map(|chunk| chunk.text.len()).sum();
        let left_out = (total - shown) as u64;
        Text {
            chunks,
            dropped: part.dropped,
            left_out,
            end: part.end,
            cleared: false,
            followed: false,
            incomplete: false,
        }
    }

    async fn follow(&self, cx: &Context, live: &Live) -> Result<Text, Failure> {
        let mut at = lock(&live.handle.output).end();
        let (mut printed, mut finished) = (live.handle.printed.clone(), live.handle.finished.clone());
        loop {
            let over = *finished.borrow();
            let part = lock(&live.handle.output).since(at);
            at = part.end;
            let text = self.text(part);
            if !text.chunks.is_empty() {
                let data = serde_json::to_value(&text).unwrap_or(Value::Null);
                if cx.stream.send(Part::Event(data)).await.is_err() {
                    break;
                }
            }
            if over {
                break;
            }
            tokio::select! {
                _ = printed.changed() => {}
                _ = finished.wait_for(|done| *done) => {}
            }
        }
        live.mark_read(&cx.caller);
        Ok(Text {
            chunks: Vec::new(),
            dropped: 0,
            left_out: 0,
            end: at,
            cleared: false,
            followed: true,
            incomplete: false,
        })
    }
}

/// The last lines of a stream of chunks.
fn tail(chunks: Vec<Chunk>, lines: usize) -> Vec<Chunk> {
    let mut left = lines;
    let mut out = Vec::new();
    let mut last = true;
    for mut chunk in chunks.into_iter().rev() {
        if left == 0 {
            break;
        }
        let text = chunk.text.as_str();
        let body = if last { text.strip_suffix('\n').unwrap_or(text) } else { text };
        last = false;
        let breaks: Vec<usize> = body.match_indices('\n').map(|(at, _)| at + 1).collect();
        if breaks.len() >= left {
            let cut = breaks[breaks.len() - left];
            chunk.text.drain(..cut);
            chunk.at += cut as u64;
            out.push(chunk);
            break;
        }
        left -= breaks.len();
        out.push(chunk);
    }
    out.reverse();
    out
}

impl Command for Output {
    const NAME: &'static str = "output";
    const GROUP: Group = Group::Looking;
    const PAST: Past = Past::Told;
    const AT_END: bool = true;
    type Output = Text;

    async fn run(self, cx: Context) -> Result<Text, Failure> {
        let live = cx.session()?;
        if self.follow {
            return self.follow(&cx, &live).await;
        }
        let part = match (self.since, self.all || self.tail.is_some()) {
            (Some(from), _) => lock(&live.handle.output).since(from),
            (None, true) => lock(&live.handle.output).since(0),
            (None, false) => live.unread(&cx.caller),
        };
        let mut text = self.text(part);
        if self.clear {
            lock(&live.handle.output).clear();
            live.mark_read(&cx.caller);
            text.cleared = true;
        }
        Ok(text)
    }

    fn recorded(self, moment: &Moment) -> Result<Text, Failure> {
        if self.clear {
            return Err(Failure::refused("a record is not changed: its output stays"));
        }
        // Whoever reads a record has seen none of it.
        let mut text = self.text(moment.output.since(self.since.unwrap_or(0)));
        text.incomplete = moment.output_ends;
        Ok(text)
    }

    fn render_event(data: &Value, page: &mut Page) {
        if let Ok(text) = serde_json::from_value::<Text>(data.clone()) {
            text.render(page);
        }
    }

    fn part_schema() -> Option<schemars::Schema> {
        Some(schemars::schema_for!(Text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(at: u64, text: &str) -> Chunk {
        Chunk { at, stream: Stream::Stdout, text: text.into() }
    }

    #[test]
    fn the_tail_is_counted_in_lines_across_chunks() {
        let chunks = vec![chunk(0, "one\ntwo\nth"), chunk(10, "ree\nfour\n")];
        let text = |lines| tail(chunks.clone(), lines).iter().map(|chunk| chunk.text.clone()).collect::<String>();
        assert_eq!(text(1), "four\n");
        assert_eq!(text(2), "three\nfour\n");
        assert_eq!(text(9), "one\ntwo\nthree\nfour\n");
    }
}
