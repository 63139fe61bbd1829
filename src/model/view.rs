//! How much to collect and show: the limits that keep a reply small.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on one look at the program. The default is made for a model that pays per token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct View {
    /// Frames of the stack.
    pub frames: u32,
    /// Levels of children below a value.
    pub depth: u32,
    /// Children per value.
    pub items: u32,
    /// The first child shown.
    pub from: u32,
    /// Characters per value.
    pub chars: u32,
    /// Bytes per reply, children included.
    pub bytes: u32,
    /// Source lines on each side of the current one.
    pub context: u32,
}

impl Default for View {
    fn default() -> Self {
        Self { frames: 5, depth: 1, items: 20, from: 0, chars: 200, bytes: 8 * 1024, context: 4 }
    }
}

impl View {
    /// The view of `--full`: still bounded, so that a reply never floods its reader.
    #[must_use]
    pub const fn full() -> Self {
        Self { frames: 200, depth: 3, items: 1000, from: 0, chars: 20_000, bytes: 100 * 1024, context: 4 }
    }

    /// The view of `--full` where a value may be a file or a conversation: about a megabyte of it.
    #[must_use]
    pub const fn whole() -> Self {
        Self { chars: 1_500_000, bytes: 1_500_000, ..Self::full() }
    }
}
