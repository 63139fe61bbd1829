//! The body of an answer on its way to the agent: passed on in the pieces it comes in, with a copy read on the side.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;

use super::copy::Copy;

/// What the agent is sent.
pub enum Out {
    /// All at once.
    Whole(Option<Bytes>),
    /// Piece by piece, from a task of ours.
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
    /// As the model sends it.
    Passed { body: Incoming, copy: Option<Box<Copy>> },
}

impl std::fmt::Debug for Out {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Pieces(_) => "Pieces",
            Self::Passed { .. } => "Passed",
        })
    }
}

impl Out {
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes: Bytes = bytes.into();
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        // Nobody asks for what comes after the end.
        if let Self::Passed { body, copy } = self
            && let Some(copy) = copy.take()
        {
            copy.done(body.is_end_stream());
        }
    }
}

impl Body for Out {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Pieces(pieces) => pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data))),
            Self::Passed { body, copy } => {
                let Poll::Ready(frame) = Pin::new(body).poll_frame(context) else { return Poll::Pending };
                match &frame {
                    Some(Ok(frame)) => {
                        if let (Some(copy), Some(bytes)) = (copy, frame.data_ref()) {
                            copy.push(bytes);
                        }
                    }
                    Some(Err(_)) => {
                        if let Some(copy) = copy.take() {
                            copy.done(false);
                        }
                    }
                    None => {
                        if let Some(copy) = copy.take() {
                            copy.done(true);
                        }
                    }
                }
                Poll::Ready(frame.map(|frame| frame.map_err(io::Error::other)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Pieces(_) => false,
            Self::Passed { body, .. } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Pieces(_) => SizeHint::default(),
            Self::Passed { body, .. } => body.size_hint(),
        }
    }
}
