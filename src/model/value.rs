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
    /// There are more children than shown; how many is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
    /// The text was cut; this many characters are missing.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cut: u64,
    /// There are children, and the view did not go down to them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deeper: bool,
}

impl Value {
    /// Whether all of it is here: nothing was cut, left out or not gone down to.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let all = !self.more && !self.deeper && self.hidden == 0 && self.cut == 0;
        all && self.children.iter().all(|child| child.value.is_whole())
    }

    /// The value on one line, children included.
    #[must_use]
    pub fn flat(&self) -> String {
        let text = if self.cut > 0 { format!("{}…", self.text) } else { self.text.clone() };
        let counted = text.starts_with("size=");
        // A text of its own says it all; children speak where it is empty or only counts them.
        if self.children.is_empty() || !(text.is_empty() || counted) {
            return text;
        }
        let indexed = self.children.iter().all(|child| {
            let name = child.name.trim_matches(['[', ']']);
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
        });
        let mut parts: Vec<String> = self
            .children
            .iter()
            .map(|child| if indexed { child.value.flat() } else { format!("{}: {}", child.name, child.value.flat()) })
            .collect();
        if self.hidden > 0 {
            parts.push(format!("… {} more", self.hidden));
        } else if self.more {
            parts.push("…".into());
        }
        let body = parts.join(", ");
        let body = if indexed { format!("[{body}]") } else { format!("{{{body}}}") };
        match self.kind.as_deref() {
            _ if counted => format!("{text} {body}"),
            Some(kind) if !indexed => format!("{kind} {body}"),
            _ => body,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn child(name: &str, text: &str) -> Variable {
        Variable { name: name.into(), value: Value { text: text.into(), ..Value::default() }, change: None }
    }

    #[test]
    fn a_value_fits_one_line() {
        let list = Value {
            text: "size=3".into(),
            children: vec![child("[0]", "1"), child("[1]", "2")],
            hidden: 1,
            ..Value::default()
        };
        assert_eq!(list.flat(), "size=3 [1, 2, … 1 more]");
        let object =
            Value { kind: Some("Foo".into()), children: vec![child("a", "1"), child("b", "'x'")], ..Value::default() };
        assert_eq!(object.flat(), "Foo {a: 1, b: 'x'}");
        let told = Value { text: "Some(5)".into(), children: vec![child("0", "5")], ..Value::default() };
        assert_eq!(told.flat(), "Some(5)");
    }
}
