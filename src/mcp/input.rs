//! Standard input, with word of its end: who serves it must know of that before the calls that still wait are done.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::fs::File;
use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::CancellationToken;

/// A file that says when there is no more of it.
#[derive(Debug)]
pub struct Input {
    file: File,
    ended: CancellationToken,
}

impl Input {
    /// The input, and what is cancelled at its end.
    pub fn new(file: std::fs::File) -> (Self, CancellationToken) {
        let ended = CancellationToken::new();
        (Self { file: File::from_std(file), ended: ended.clone() }, ended)
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = ready!(Pin::new(&mut self.file).poll_read(cx, buffer));
        if read.is_err() || (buffer.filled().len() == before && buffer.remaining() > 0) {
            self.ended.cancel();
        }
        Poll::Ready(read)
    }
}
