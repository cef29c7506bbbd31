//! Writing what became of a document.

use std::convert::Infallible;

use crate::overlay::{NONE, Overlay, Text, Texts, Value};
use crate::plan::Plan;

/// A document whose instructions have run.
#[derive(Clone, Copy)]
pub(crate) struct Edited<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) texts: Texts<'a>,
    pub(crate) overlay: &'a Overlay,
}

/// Where a document is written to.
pub(crate) trait Sink {
    /// Why it takes no more.
    type Full;

    /// Takes the bytes of `text` from `start` to `end`.
    fn push(&mut self, text: &[u8], start: usize, end: usize);
    fn comma(&mut self);
    /// The last byte.
    fn last(&self) -> Option<u8>;
    /// Takes the last byte away.
    fn pop(&mut self);
    /// Takes an object that was changed.
    fn object(&mut self, edited: Edited<'_>, object: u32) -> Result<(), Self::Full>;
}

impl Edited<'_> {
    #[inline]
    pub(crate) fn write<S: Sink>(self, value: Value, out: &mut S) -> Result<(), S::Full> {
        match value {
            Value::Gone => {}
            Value::Text(text) => self.text(text, out),
            Value::Object(number) => {
                let object = &self.overlay.objects[number];
                if object.changed {
                    return out.object(self, number);
                }
                self.text(object.text, out);
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn text<S: Sink>(self, text: Text, out: &mut S) {
        out.push(self.texts.of(text.source), text.start as usize, text.end as usize);
    }

    /// Writes an object that was changed: its text, with each change in its place, and what was added at its end.
    pub(crate) fn write_object<S: Sink>(self, number: u32, out: &mut S) -> Result<(), S::Full> {
        let object = &self.overlay.objects[number];
        let text = self.texts.of(object.text.source);
        let end = object.text.end as usize;
        // Up to here the text is written, or is not wanted.
        let mut at = object.text.start as usize;
        let mut next = object.first;
        while next != NONE {
            let member = &self.overlay.members[next];
            next = member.next;
            let gone = matches!(member.value, Value::Gone);
            if member.at == NONE {
                if gone {
                    continue;
                }
                out.push(text, at, end - 1);
                at = end - 1;
                if out.last() != Some(b'{') {
                    out.comma();
                }
                self.text(self.plan.opening(member.name), out);
                self.write(member.value, out)?;
            } else if gone {
                out.push(text, at, member.at as usize);
                at = member.end as usize;
                // One comma goes too: the one behind, or before the end the one in front.
                if text.get(at) == Some(&b',') {
                    at += 1;
                } else if out.last() == Some(b',') {
                    out.pop();
                }
            } else if member.replaced || self.is_changed(member.value) {
                out.push(text, at, member.start as usize);
                self.write(member.value, out)?;
                at = member.end as usize;
            }
        }
        out.push(text, at, end);
        Ok(())
    }

    #[inline(always)]
    fn is_changed(self, value: Value) -> bool {
        matches!(value, Value::Object(object) if self.overlay.objects[object].changed)
    }
}

/// Calls itself as deep as the output is: only for a document that is known to be within its limit.
impl Sink for Vec<u8> {
    type Full = Infallible;

    #[inline(always)]
    fn push(&mut self, text: &[u8], start: usize, end: usize) {
        let length = end.wrapping_sub(start);
        let (chunks, _) = text.get(start..).unwrap_or_default().as_chunks::<CHUNK>();
        match chunks.get(..length.div_ceil(CHUNK)) {
            Some(chunks) if length <= SHORT => {
                // More than is wanted, where there is more: whole chunks need neither a call nor a count.
                let wanted = self.len().wrapping_add(length);
                for chunk in chunks {
                    self.extend_from_slice(chunk);
                }
                self.truncate(wanted);
            }
            _ => self.extend_from_slice(text.get(start..end).unwrap_or_default()),
        }
    }

    #[inline(always)]
    fn comma(&mut self) {
        Self::push(self, b',');
    }

    #[inline(always)]
    fn last(&self) -> Option<u8> {
        <[u8]>::last(self).copied()
    }

    fn pop(&mut self) {
        Self::pop(self);
    }

    fn object(&mut self, edited: Edited<'_>, object: u32) -> Result<(), Infallible> {
        edited.write_object(object, self)
    }
}

/// Few bytes are copied without a call.
const SHORT: usize = 128;
const CHUNK: usize = 16;
