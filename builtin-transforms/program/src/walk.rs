//! From member to member of an object.

use crate::overlay::{Member, NONE, Object, Overlay, Source, Text, Texts, Value};
use crate::plan::Plan;
use crate::scan;

/// A member as a walk meets it.
pub(crate) struct Met<'a> {
    /// The inside of the name's string, as written.
    pub(crate) name: &'a [u8],
    pub(crate) value: Value,
    /// Its number, where it is in the object's list.
    pub(crate) listed: Option<u32>,
    /// Where it begins in the text; [`NONE`] for one that was added.
    pub(crate) at: u32,
    /// Where its first value stands in the text.
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// Goes through the members of an object, those that are gone included: first those of its text, then those that were added.
pub(crate) struct Walk<'a> {
    texts: Texts<'a>,
    source: Source,
    /// Where the next member of the text begins; its closing brace ends them.
    at: usize,
    /// The next member of the list.
    next: u32,
}

impl<'a> Walk<'a> {
    pub(crate) fn object(texts: Texts<'a>, object: &Object) -> Self {
        Self { next: object.first, ..Self::text(texts, object.text) }
    }

    /// The object that is this text.
    pub(crate) fn text(texts: Texts<'a>, text: Text) -> Self {
        Self { texts, source: text.source, at: text.start as usize + 1, next: NONE }
    }

    pub(crate) fn next(&mut self, overlay: &Overlay, plan: &Plan) -> Option<Met<'a>> {
        let listed = (self.next != NONE).then(|| (self.next, overlay.members[self.next]));
        let text = self.texts.of(self.source);
        if scan::byte(text, self.at) == b'}' {
            let (number, Member { name, value, next, .. }) = listed?;
            self.next = next;
            // Of `,"name":`.
            let name = inside(self.texts.get(plan.opening(name)));
            return Some(Met { name, value, listed: Some(number), at: NONE, start: NONE, end: NONE });
        }
        let at = self.at;
        let (end, _) = scan::string(text, at + 1, &mut false).ok()?;
        let name = text.get(at + 1..end - 1)?;
        let start = end + 1;
        if let Some((number, member)) = listed.filter(|(_, member)| member.at as usize == at) {
            self.next = member.next;
            self.pass(text, member.end as usize);
            let Member { at, start, end, value, .. } = member;
            return Some(Met { name, value, listed: Some(number), at, start, end });
        }
        let end = scan::skip(text, start)?;
        self.pass(text, end);
        let value = Value::Text(Text { source: self.source, start: start as u32, end: end as u32 });
        Some(Met { name, value, listed: None, at: at as u32, start: start as u32, end: end as u32 })
    }

    fn pass(&mut self, text: &[u8], end: usize) {
        self.at = end + usize::from(scan::byte(text, end) == b',');
    }
}

/// The elements of an array, which nobody changes.
pub(crate) fn elements(texts: Texts<'_>, array: Text) -> impl Iterator<Item = Text> + Clone {
    let source = array.source;
    let text = texts.of(source);
    let mut at = array.start as usize + 1;
    std::iter::from_fn(move || {
        if scan::byte(text, at) == b']' {
            return None;
        }
        let end = scan::skip(text, at)?;
        let element = Text { source, start: at as u32, end: end as u32 };
        at = end + usize::from(scan::byte(text, end) == b',');
        Some(element)
    })
}

/// The inside of the name in `,"name":`.
fn inside(opening: &[u8]) -> &[u8] {
    opening.get(2..opening.len().saturating_sub(2)).unwrap_or_default()
}
