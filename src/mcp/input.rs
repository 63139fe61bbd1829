//! Standard input, with word of its end: who serves it must know of that before the calls that still wait are done. And
//! a word to standard error, which clients keep as the server's log, where a message is too long to be read.

use std::io::Write as _;
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
    /// How long the line is that comes in now, and how long one may be.
    line: usize,
    longest: usize,
}

impl Input {
    /// The input, and what is cancelled at its end.
    pub fn new(file: std::fs::File, longest: usize) -> (Self, CancellationToken) {
        let ended = CancellationToken::new();
        (Self { file: File::from_std(file), ended: ended.clone(), line: 0, longest }, ended)
    }

    /// Whether a line passes its limit with these bytes.
    fn passes_limit(&mut self, bytes: &[u8]) -> bool {
        let mut passes = false;
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let before = self.line;
            self.line += piece.len();
            passes |= before <= self.longest && self.line > self.longest;
            if piece.ends_with(b"\n") {
                self.line = 0;
            }
        }
        passes
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
        let fresh = buffer.filled().get(before..).unwrap_or_default();
        if read.is_err() || (fresh.is_empty() && buffer.remaining() > 0) {
            self.ended.cancel();
        } else if self.passes_limit(fresh) {
            let limit = self.longest;
            let _ = writeln!(std::io::stderr(), "warning: a message of more than {limit} bytes was dropped");
        }
        Poll::Ready(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_told_of_once() {
        let (mut input, _) = Input::new(tempfile::tempfile().unwrap(), 4);
        let told: Vec<bool> =
            [&b"abc\n"[..], b"abc", b"d", b"e\n", b"abcd\nabcd\n", b"abcde", b"fgh", b"\nabc\n", b"\n\nabcde\n"]
                .map(|bytes| input.passes_limit(bytes))
                .to_vec();
        assert_eq!(told, [false, false, false, true, true, true, false, false, true]);
    }
}
