//! Canonical JSON: without white space, texts with only the escapes that they need, members sorted by the UTF-8 bytes of
//! their names, digits as written.

use std::fmt::Write as _;

use crate::tree::Tree;

/// Appends a text in quotes: only `"`, `\` and control characters are escaped, those with a short form in it.
pub(crate) fn push_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Appends a value whose members are sorted already.
pub(crate) fn push_value(out: &mut String, value: &Tree) {
    match value {
        Tree::Null => out.push_str("null"),
        Tree::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Tree::Number(digits) => out.push_str(digits),
        Tree::Text(text) => push_text(out, text),
        Tree::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_value(out, element);
            }
            out.push(']');
        }
        Tree::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_text(out, name);
                out.push(':');
                push_value(out, value);
            }
            out.push('}');
        }
    }
}

/// Sorts members at every level.
pub(crate) fn sort(value: &mut Tree) {
    match value {
        Tree::Array(elements) => elements.iter_mut().for_each(sort),
        Tree::Object(members) => {
            members.iter_mut().for_each(|(_, value)| sort(value));
            members.sort_by(|a, b| a.0.cmp(&b.0));
        }
        Tree::Null | Tree::Bool(_) | Tree::Number(_) | Tree::Text(_) => {}
    }
}
