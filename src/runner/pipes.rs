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
}

impl Tap {
    pub fn new(pipe: Option<Receiver>, stream: Stream) -> Self {
        Self { pipe, stream, decoder: Decoder::default() }
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
        Some(self.decoder.decode(&buffer[..read]))
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
