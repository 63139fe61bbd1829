//! The only error that crosses a border: what went wrong, in words a user can act on.
//!
//! Apart from the modules that fail, so that the command line, the wire and every face of the product agree on kinds,
//! exit codes and the shape of an error.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What sort of failure it is; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The words of the command are off.
    Usage,
    /// No such session, breakpoint, thread, frame or file.
    NotFound,
    /// The session is not in a state in which this makes sense.
    WrongState,
    /// It was understood and could not be done.
    Refused,
    /// This adapter can't do it.
    Unsupported,
    /// An adapter or the daemon did not answer in time.
    TimedOut,
    /// The adapter or the daemon is gone.
    Lost,
    /// A defect of Bugeye itself.
    Internal,
}

impl Kind {
    /// The process exit code for a failure of this kind.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 2,
            Self::NotFound | Self::WrongState => 3,
            Self::TimedOut => 4,
            Self::Lost => 5,
            Self::Unsupported => 6,
            Self::Refused | Self::Internal => 1,
        }
    }
}

/// A failure with advice: `message` says what and why, each hint says what to try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
    /// What lay beneath, nearest first: adapter messages, operating system errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

impl Failure {
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), causes: Vec::new() }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Kind::NotFound, message)
    }

    pub fn wrong_state(message: impl Into<String>) -> Self {
        Self::new(Kind::WrongState, message)
    }

    pub fn refused(message: impl Into<String>) -> Self {
        Self::new(Kind::Refused, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    pub fn timed_out(message: impl Into<String>) -> Self {
        Self::new(Kind::TimedOut, message)
    }

    pub fn lost(message: impl Into<String>) -> Self {
        Self::new(Kind::Lost, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    #[must_use]
    pub fn cause(mut self, cause: impl fmt::Display) -> Self {
        self.causes.push(cause.to_string());
        self
    }

    /// The same in as many words as a reply has room for: an adapter's complaint, or what was typed, can be of any
    /// length.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        shorten(&mut self.message, 4000);
        for list in [&mut self.hints, &mut self.causes] {
            list.truncate(8);
            list.iter_mut().for_each(|text| shorten(text, 1000));
        }
        self
    }

    /// A failed system call: `doing` is what was tried ("open x.log").
    pub fn io(doing: impl fmt::Display, error: &std::io::Error) -> Self {
        Self::refused(format!("could not {doing}: {error}"))
    }
}

fn shorten(text: &mut String, limit: usize) {
    if let Some((at, _)) = text.char_indices().nth(limit) {
        let more = text[at..].chars().count();
        text.truncate(at);
        text.push_str(&format!("… ({more} characters more)"));
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for cause in &self.causes {
            write!(f, ": {cause}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_any_length_fits_a_reply() {
        let long = "é".repeat(100_000);
        let mut failure = Failure::refused(long.clone());
        for _ in 0..50 {
            failure = failure.hint(long.clone()).cause(&long);
        }
        let failure = failure.bounded();
        assert!(failure.message.ends_with("… (96000 characters more)"), "{}", failure.message);
        assert_eq!((failure.hints.len(), failure.causes.len()), (8, 8));
        assert_eq!(Failure::lost("short").bounded().message, "short");
    }

    #[test]
    fn each_kind_has_the_documented_exit_code() {
        let codes = [
            (Kind::Usage, 2),
            (Kind::NotFound, 3),
            (Kind::WrongState, 3),
            (Kind::Refused, 1),
            (Kind::Unsupported, 6),
            (Kind::TimedOut, 4),
            (Kind::Lost, 5),
            (Kind::Internal, 1),
        ];
        for (kind, code) in codes {
            assert_eq!(kind.exit_code(), code, "{kind:?}");
        }
    }

    #[test]
    fn empty_lists_do_not_travel() {
        let text = serde_json::to_string(&Failure::refused("no")).unwrap();
        assert_eq!(text, r#"{"kind":"refused","message":"no"}"#);
    }
}
