//! Values as they were read, and as much of them as a view has room for.
//!
//! Apart from the walk that reads them: what is left out is decided once all is there.

use crate::model::{Value, Variable};
use crate::render::{cut, quoted};

/// One value of the program, with its place in the tree.
#[derive(Debug)]
pub(super) struct Node {
    pub name: String,
    pub text: String,
    pub kind: Option<String>,
    pub reference: i64,
    pub total: Option<u64>,
    pub depth: u32,
    pub children: Vec<usize>,
    pub expanded: bool,
    /// The text says nothing that the children do not.
    pub opaque: bool,
    /// The first child that was asked for.
    pub from: u32,
    /// There were more children than asked for.
    pub more: bool,
}

/// Turns nodes into values until the view's bytes are used up.
pub(super) struct Budget {
    pub chars: u32,
    pub bytes: i64,
    pub left_out: usize,
}

impl Budget {
    pub fn variable(&mut self, nodes: &[Node], index: usize) -> Option<Variable> {
        if self.bytes <= 0 {
            self.left_out += 1;
            return None;
        }
        let name = quoted(&nodes.get(index)?.name);
        Some(Variable { name, value: self.value(nodes, index), change: None })
    }

    pub fn value(&mut self, nodes: &[Node], index: usize) -> Value {
        let Some(node) = nodes.get(index) else { return Value::default() };
        let hollow = node.opaque && !node.children.is_empty() && !node.text.starts_with("size=");
        let quoted_text = if hollow { String::new() } else { quoted(&node.text) };
        let (text, cut) = cut(&quoted_text, usize::try_from(self.chars).unwrap_or(usize::MAX));
        self.bytes -= i64::try_from(text.len() + node.name.len() + 4).unwrap_or(i64::MAX);
        let children: Vec<Variable> = node.children.iter().filter_map(|child| self.variable(nodes, *child)).collect();
        let shown = u64::try_from(children.len()).unwrap_or(0);
        let after = |total: u64| total.saturating_sub(shown + u64::from(node.from));
        let hidden = if node.expanded { node.total.map_or(0, after) } else { 0 };
        Value {
            text: text.to_string(),
            kind: node.kind.as_deref().map(quoted),
            more: node.more && hidden == 0,
            hidden,
            cut: u64::try_from(cut).unwrap_or(0),
            deeper: node.reference > 0 && !node.expanded,
            children,
        }
    }
}
