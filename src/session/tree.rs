//! Values as they were read, and as much of them as a view has room for.
//!
//! Apart from the walk that reads them: what is left out is decided once all is there.

use crate::adapters::Quirks;
use crate::model::{Value, Variable, View};
use crate::render::{cut, quoted};

/// A value that a hook has read, in the debugger's own words, with the parts that a look would have asked for.
#[derive(Debug, Default)]
pub struct Told {
    pub text: String,
    pub kind: Option<String>,
    /// How many parts there are, where that is known.
    pub total: Option<u64>,
    /// Told where the text says little without them.
    pub parts: Option<Vec<(String, Self)>>,
}

impl Told {
    /// As a look with the plain view would have shown it.
    #[must_use]
    pub fn value(&self, quirks: &Quirks) -> Value {
        let view = View::default();
        let mut nodes = Vec::new();
        let node = self.plant(String::new(), quirks, view, &mut nodes);
        Budget::new(view).value(&nodes, node)
    }

    fn plant(&self, name: String, quirks: &Quirks, view: View, nodes: &mut Vec<Node>) -> usize {
        let items = usize::try_from(view.items).unwrap_or(usize::MAX);
        let parts = self.parts.as_deref().unwrap_or_default();
        let children = parts.iter().take(items);
        let children = children.map(|(name, part)| part.plant(name.clone(), quirks, view, nodes)).collect();
        let (text, kind) = (self.text.trim(), self.kind.as_deref());
        let counted = (quirks.count)(text, kind).filter(|_| quirks.pages_exactly || self.total.is_none());
        nodes.push(Node {
            name,
            text: (quirks.tidy)(text, kind),
            cut: 0,
            kind: kind.map(quirks.type_name),
            reference: 0,
            total: self.total.filter(|total| *total > 0).max(counted),
            depth: 0,
            children,
            expanded: self.parts.is_some(),
            opaque: self.parts.is_some(),
            from: 0,
            more: parts.len() > items,
        });
        nodes.len() - 1
    }
}

/// One value of the program, with its place in the tree.
#[derive(Debug)]
pub(super) struct Node {
    pub name: String,
    pub text: String,
    /// Characters of it that the adapter left out.
    pub cut: u64,
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

/// Names and types longer than this are cut, whatever the view.
const LONGEST_WORD: usize = 500;
/// What a value takes in a reply beside its name, its text and its type.
const FRAMING: usize = 40;

/// Turns nodes into values until the view's bytes are used up.
pub(super) struct Budget {
    pub chars: u32,
    /// Of text, as it is read.
    pub bytes: i64,
    /// Of the reply, framing and escapes included.
    pub room: usize,
    pub left_out: usize,
}

impl Budget {
    pub fn new(view: View) -> Self {
        // The rest of 32 KB, or of 100 KB with `--full`, is for all that is no value.
        let room = match view.bytes {
            0..=32_768 => 26 * 1024,
            32_769..=102_400 => 88 * 1024,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(4),
        };
        Self { chars: view.chars, bytes: i64::from(view.bytes), room, left_out: 0 }
    }

    /// Gives one of so many values that are still to come its share of the room; what it leaves is for the others, so
    /// that a huge one does not hide those after it.
    pub fn share<T>(&mut self, values: usize, make: impl FnOnce(&mut Self) -> T) -> T {
        let share = self.room / values.max(1);
        let kept = self.room - share;
        self.room = share;
        let made = make(self);
        self.room += kept;
        made
    }

    pub fn variable(&mut self, nodes: &[Node], index: usize) -> Option<Variable> {
        if self.bytes <= 0 || self.room == 0 {
            self.left_out += 1;
            return None;
        }
        let name = word(&nodes.get(index)?.name);
        Some(Variable { name, value: self.value(nodes, index), change: None })
    }

    pub fn value(&mut self, nodes: &[Node], index: usize) -> Value {
        let Some(node) = nodes.get(index) else { return Value::default() };
        // The text is of the whole, where only a part was asked for.
        let hollow = (node.opaque || node.from > 0) && !node.children.is_empty() && !node.text.starts_with("size=");
        let quoted_text = if hollow { String::new() } else { quoted(&node.text) };
        let kind = node.kind.as_deref().map(word);
        // A character takes up to two bytes of a reply, or four outside ASCII.
        let fits = self.room / if quoted_text.is_ascii() { 2 } else { 4 };
        let (text, cut) = cut(&quoted_text, usize::try_from(self.chars).unwrap_or(usize::MAX).min(fits));
        let cut = match kind.as_deref() {
            // Counted as they can be asked for.
            Some("text") if cut > 0 => letters(&quoted_text).saturating_sub(letters(text)),
            _ => cut,
        };
        let words = node.name.len().min(LONGEST_WORD * 4) + kind.as_ref().map_or(0, String::len);
        self.room = self.room.saturating_sub(in_json(text) + words + FRAMING);
        self.bytes -= i64::try_from(text.len() + node.name.len() + 4).unwrap_or(i64::MAX);
        let children: Vec<Variable> = node.children.iter().filter_map(|child| self.variable(nodes, *child)).collect();
        let shown = u64::try_from(children.len()).unwrap_or(0);
        let after = |total: u64| total.saturating_sub(shown + u64::from(node.from));
        let hidden = if node.expanded { node.total.map_or(0, after) } else { 0 };
        Value {
            text: text.to_string(),
            kind,
            more: node.more && hidden == 0,
            hidden,
            cut: u64::try_from(cut).unwrap_or(0).saturating_add(if hollow { 0 } else { node.cut }),
            deeper: node.reference > 0 && !node.expanded,
            children,
        }
    }
}

/// The letters that a quoted text stands for: an escape is one of them, half an escape is none.
fn letters(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        count += match (letter, letter == '\\' && rest.as_str().starts_with('u')) {
            ('"', _) => 0,
            (_, true) if rest.as_str().starts_with("u{") => usize::from(rest.any(|letter| letter == '}')),
            (_, true) => usize::from(rest.nth(4).is_some()),
            ('\\', false) => usize::from(rest.next().is_some()),
            _ => 1,
        };
    }
    count
}

fn word(text: &str) -> String {
    let (shown, left_out) = cut(text, LONGEST_WORD);
    let shown = quoted(shown);
    if left_out > 0 { format!("{shown}…") } else { shown }
}

/// Bytes of a text in JSON.
fn in_json(text: &str) -> usize {
    text.len() + text.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted_as_they_were() {
        assert_eq!(letters(r#""a\"b\\n\n\u00e9\u{202e}ü""#), 9);
        for half in [r#""ab"#, r#""ab\"#, r#""ab\u00"#, r#""ab\u{20"#] {
            assert_eq!(letters(half), 2, "{half}");
        }
    }
}
