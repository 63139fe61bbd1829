//! The user's `config.toml`.

/// Settings with their defaults filled in.
#[derive(Debug, Clone, Default)]
pub struct Config {}
