//! The literals of a program.

use crate::canonical;
use crate::tree::Tree;

/// A value that a program sets or compares with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    /// Members are sorted at every level.
    pub(crate) value: Tree,
    /// The canonical text: what `set` writes.
    pub(crate) text: String,
    /// Containers that are open at once at its deepest place; 0 for a scalar.
    pub(crate) height: usize,
}

impl Literal {
    pub(crate) fn new(mut value: Tree) -> Self {
        canonical::sort(&mut value);
        let mut text = String::new();
        canonical::push_value(&mut text, &value);
        let height = height(&value);
        Self { value, text, height }
    }
}

fn height(value: &Tree) -> usize {
    match value {
        Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::Text(_) => 0,
        Tree::Array(elements) => 1 + elements.iter().map(height).max().unwrap_or(0),
        Tree::Object(members) => 1 + members.iter().map(|(_, value)| height(value)).max().unwrap_or(0),
    }
}
