//! What a variable or expression held, cut to a view.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value with as many of its children as the view allowed. All texts are debuggee text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// One-line form, as the debugger's formatters show it.
    pub text: String,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<Variable>,
    /// Children that exist and are not shown, where the adapter says how many there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub hidden: u64,
    /// The text was cut; this many characters are missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
    /// There are children, and the view did not go down to them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deeper: bool,
}

/// A named value.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Variable {
    pub name: String,
    #[serde(flatten)]
    pub value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// How a variable differs from the last stop in the same function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    New,
    /// The text it had before.
    From(String),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature serde asks for")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
