//! Writing what became of a document.

use std::convert::Infallible;

use crate::overlay::{NONE, Overlay, Texts, Value};
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

    fn push(&mut self, bytes: &[u8]);
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
            Value::Text(text) => out.push(self.texts.get(text)),
            Value::Object(number) => {
                let object = &self.overlay.objects[number];
                if object.changed {
                    return out.object(self, number);
                }
                out.push(self.texts.get(object.text));
            }
        }
        Ok(())
    }

    /// Writes an object that was changed: its text, with each change in its place, and what was added at its end.
    pub(crate) fn write_object<S: Sink>(self, number: u32, out: &mut S) -> Result<(), S::Full> {
        let object = &self.overlay.objects[number];
        let text = self.texts.of(object.text.source);
        let piece = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
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
                out.push(piece(at, end - 1));
                at = end - 1;
                if out.last() != Some(b'{') {
                    out.push(b",");
                }
                out.push(self.texts.get(self.plan.opening(member.name)));
                self.write(member.value, out)?;
            } else if gone {
                out.push(piece(at, member.at as usize));
                at = member.end as usize;
                // One comma goes too: the one behind, or before the end the one in front.
                if text.get(at) == Some(&b',') {
                    at += 1;
                } else if out.last() == Some(b',') {
                    out.pop();
                }
            } else if member.replaced || self.is_changed(member.value) {
                out.push(piece(at, member.start as usize));
                self.write(member.value, out)?;
                at = member.end as usize;
            }
        }
        out.push(piece(at, end));
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

    /// Few bytes without a call.
    #[inline(always)]
    fn push(&mut self, bytes: &[u8]) {
        if bytes.len() > 64 {
            return self.extend_from_slice(bytes);
        }
        let (chunks, rest) = bytes.as_chunks::<16>();
        for chunk in chunks {
            self.extend_from_slice(chunk);
        }
        let (chunks, rest) = rest.as_chunks::<4>();
        for chunk in chunks {
            self.extend_from_slice(chunk);
        }
        for byte in rest {
            Self::push(self, *byte);
        }
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
