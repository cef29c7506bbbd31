//! Deep equality of a value in a document and a literal of the program.

use std::borrow::Cow;

use crate::decimal;
use crate::edit::said;
use crate::overlay::{Overlay, Text, Texts, Value};
use crate::plan::Plan;
use crate::scan::{self, has_escapes};
use crate::tree::Tree;
use crate::walk::Walk;

/// Why two values cannot be compared.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Incomparable {
    /// An object that is compared with an object has a name twice.
    Twice,
    /// A number that is compared with a number has an exponent of more than 18 digits.
    LongExponent,
}

#[derive(Clone, Copy)]
pub(crate) struct Comparison<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) texts: Texts<'a>,
    pub(crate) overlay: &'a Overlay,
}

impl Comparison<'_> {
    /// Whether the value equals the literal. Calls itself as deep as the literal is.
    pub(crate) fn equal(self, value: Value, literal: &Tree) -> Result<bool, Incomparable> {
        match value {
            Value::Gone => Ok(*literal == Tree::Null),
            Value::Text(text) => self.equal_text(text, literal),
            Value::Object(number) => match literal {
                Tree::Object(members) => {
                    let object = self.overlay.objects[number];
                    self.equal_members(|| Walk::object(self.texts, &object), members)
                }
                _ => Ok(false),
            },
        }
    }

    fn equal_text(self, text: Text, literal: &Tree) -> Result<bool, Incomparable> {
        let bytes = self.texts.get(text);
        match (bytes.first(), literal) {
            (Some(b'n'), Tree::Null) | (Some(b't'), Tree::Bool(true)) | (Some(b'f'), Tree::Bool(false)) => Ok(true),
            (Some(b'"'), Tree::Text(literal)) => Ok(equal_string(self.texts.of(text.source), text, literal)),
            (Some(b'-' | b'0'..=b'9'), Tree::Number(literal)) => {
                decimal::equal(bytes, literal.as_bytes()).map_err(|decimal::LongExponent| Incomparable::LongExponent)
            }
            (Some(b'['), Tree::Array(literal)) => self.equal_elements(text, literal),
            (Some(b'{'), Tree::Object(literal)) => self.equal_members(|| Walk::text(self.texts, text), literal),
            _ => Ok(false),
        }
    }

    fn equal_elements(self, array: Text, literal: &[Tree]) -> Result<bool, Incomparable> {
        let elements = crate::walk::elements(self.texts, array);
        if elements.clone().count() != literal.len() {
            return Ok(false);
        }
        for (element, literal) in elements.zip(literal) {
            if !self.equal_text(element, literal)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn equal_members<'b>(self, walk: impl Fn() -> Walk<'b>, literal: &[(String, Tree)]) -> Result<bool, Incomparable> {
        let mut names: Vec<Cow<'b, [u8]>> = Vec::with_capacity(literal.len());
        let mut members = walk();
        while let Some(met) = members.next(self.overlay, self.plan) {
            if !matches!(met.value, Value::Gone) {
                names.push(said(met.name));
            }
        }
        names.sort_unstable();
        if names.iter().zip(names.iter().skip(1)).any(|(name, next)| name == next) {
            return Err(Incomparable::Twice);
        }
        if names.len() != literal.len() {
            return Ok(false);
        }
        // In the document's order, up to the first difference.
        let mut members = walk();
        while let Some(met) = members.next(self.overlay, self.plan) {
            if matches!(met.value, Value::Gone) {
                continue;
            }
            let name = said(met.name);
            let place = literal.binary_search_by(|(other, _)| other.as_bytes().cmp(&name));
            let Some((_, literal)) = place.ok().and_then(|place| literal.get(place)) else { return Ok(false) };
            if !self.equal(met.value, literal)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether a value of the text is a string that says `literal`.
#[inline(always)]
pub(crate) fn equal_string(text: &[u8], value: Text, literal: &str) -> bool {
    let (start, end) = (value.start as usize, value.end as usize);
    // What a string says is never longer than its inside.
    if scan::byte(text, start) != b'"' || end - start < literal.len() + 2 {
        return false;
    }
    let inside = text.get(start + 1..end - 1).unwrap_or_default();
    if has_escapes(text, start) { *said(inside) == *literal.as_bytes() } else { inside == literal.as_bytes() }
}
