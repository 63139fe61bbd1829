//! The Debug Adapter Protocol as real adapters speak it: messages, the subset of types used here, and frames.
//!
//! Everything that comes from an adapter is foreign data: missing fields have defaults, unknown words are kept as they
//! are, and nothing here can panic on input.

pub mod codec;
pub mod message;
pub mod types;

pub use codec::{Codec, FrameError};
pub use message::Message;
