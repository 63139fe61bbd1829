//! Scripts of messages.
