//! Waiting on what may not be there: a session's pipes and deadlines, each for ever where there is none.

use std::os::fd::{AsFd as _, OwnedFd};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::time::Instant;

use crate::output::Decoder;
use crate::platform::Watched;
use crate::session::Stream;

/// One stream of the program.
#[derive(Debug)]
pub(super) struct Tap {
    pipe: Option<Receiver>,
    pub stream: Stream,
    decoder: Decoder,
    sieve: Sieve,
}

impl Tap {
    /// `noise` is what is no part of the program's own output.
    pub fn new(pipe: Option<Receiver>, stream: Stream, noise: &'static [&'static str]) -> Self {
        Self { pipe, stream, decoder: Decoder::default(), sieve: Sieve { noise, held: String::new() } }
    }

    /// Waits until there is something to read; for ever where there is no pipe.
    pub async fn readable(&self) {
        match &self.pipe {
            Some(pipe) if pipe.readable().await.is_ok() => {}
            _ => std::future::pending().await,
        }
    }

    /// Reads once without waiting; None when nothing is there.
    pub fn read(&mut self, buffer: &mut [u8]) -> Option<String> {
        let pipe = self.pipe.as_ref()?;
        // What came since the runtime last looked is not known to it yet: the pipe itself is asked.
        let read = pipe.try_read(buffer).or_else(|_| rustix::io::read(pipe, &mut *buffer));
        let read = read.ok().filter(|count| *count > 0)?;
        let text = self.decoder.decode(&buffer[..read]);
        Some(self.sieve.pass(text, read == buffer.len()))
    }
}

/// Takes out of a stream what is no part of it.
#[derive(Debug)]
struct Sieve {
    noise: &'static [&'static str],
    /// The end of what was read, where it may be the beginning of noise.
    held: String,
}

impl Sieve {
    /// `cut` says that the text ends where the buffer did; noise itself is written in one piece.
    fn pass(&mut self, text: String, cut: bool) -> String {
        if self.noise.is_empty() {
            return text;
        }
        let mut text = std::mem::take(&mut self.held) + &text;
        for noise in self.noise {
            text = text.replace(noise, "");
        }
        let begins = |start: usize| {
            let rest = text.get(start..).unwrap_or_default();
            !rest.is_empty() && self.noise.iter().any(|noise| noise.starts_with(rest))
        };
        let longest = self.noise.iter().map(|noise| noise.len()).max().unwrap_or(0);
        let from = text.len().saturating_sub(longest);
        if let Some(start) = (from..text.len()).find(|start| begins(*start)).filter(|_| cut) {
            self.held = text.split_off(start);
        }
        text
    }
}

/// Something that can be waited on until the watched process has ended.
pub(super) fn end_of(watched: &Watched) -> Option<AsyncFd<OwnedFd>> {
    let descriptor = watched.as_fd().try_clone_to_owned().ok()?;
    #[expect(
        deprecated,
        reason = "an owned descriptor stays valid for as long as this holds it; its successor is unsafe"
    )]
    AsyncFd::with_interest(descriptor, Interest::READABLE).ok()
}

pub(super) async fn ended(end: Option<&AsyncFd<OwnedFd>>) {
    match end {
        Some(end) if end.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

pub(super) async fn readable(pipe: Option<&Receiver>) {
    match pipe {
        Some(pipe) if pipe.readable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

pub(super) async fn writable(pipe: Option<&Sender>, wanted: bool) {
    match pipe {
        Some(pipe) if wanted && pipe.writable().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

pub(super) async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_taken_out_wherever_it_is_cut() {
        let mut sieve = Sieve { noise: &["Debugger attached.\n", "Waiting.\n"], held: String::new() };
        assert_eq!(sieve.pass("aDebugger attached.\nb\n".into(), false), "ab\n");
        assert_eq!(sieve.pass("cDebug".into(), true), "c");
        assert_eq!(sieve.pass("ger attached.\nd".into(), false), "d");
        assert_eq!(sieve.pass("eWait".into(), true), "e");
        assert_eq!(sieve.pass("!".into(), false), "Wait!");
        assert_eq!(sieve.pass("Wait".into(), false), "Wait");
    }
}
