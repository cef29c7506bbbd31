//! Writing what became of a document.

use std::convert::Infallible;

use crate::overlay::{NONE, Overlay, Text, Texts, Value};
use crate::plan::Plan;
use crate::scan;

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

    /// Takes a piece of text, which may be empty.
    fn push(&mut self, texts: Texts<'_>, piece: Text);
    /// The last byte of the last piece.
    fn last(&self, texts: Texts<'_>) -> Option<u8>;
    /// Takes that byte away.
    fn pop(&mut self);
    /// Takes an object that was changed.
    fn object(&mut self, edited: Edited<'_>, object: u32) -> Result<(), Self::Full>;
}

impl Edited<'_> {
    #[inline]
    pub(crate) fn write<S: Sink>(self, value: Value, out: &mut S) -> Result<(), S::Full> {
        match value {
            Value::Gone => {}
            Value::Text(text) => out.push(self.texts, text),
            Value::Object(number) => {
                let object = &self.overlay.objects[number];
                if object.changed {
                    return out.object(self, number);
                }
                out.push(self.texts, object.text);
            }
        }
        Ok(())
    }

    /// Writes an object that was changed: its text, with each change in its place, and what was added at its end.
    pub(crate) fn write_object<S: Sink>(self, number: u32, out: &mut S) -> Result<(), S::Full> {
        let object = &self.overlay.objects[number];
        let Text { source, start, end } = object.text;
        let piece = |start, end| Text { source, start, end };
        // Up to here the text is written, or is not wanted.
        let mut at = start;
        let mut next = object.first;
        while next != NONE {
            let member = &self.overlay.members[next];
            next = member.next;
            let gone = matches!(member.value, Value::Gone);
            if member.at == NONE {
                if gone {
                    continue;
                }
                out.push(self.texts, piece(at, end - 1));
                at = end - 1;
                let opening = self.plan.opening(member.name);
                let comma = u32::from(out.last(self.texts) == Some(b'{'));
                out.push(self.texts, Text { start: opening.start + comma, ..opening });
                self.write(member.value, out)?;
            } else if gone {
                out.push(self.texts, piece(at, member.at));
                at = member.end;
                // One comma goes too: the one behind, or before the end the one in front.
                if scan::byte(self.texts.of(source), at as usize) == b',' {
                    at += 1;
                } else if out.last(self.texts) == Some(b',') {
                    out.pop();
                }
            } else if member.replaced || self.is_changed(member.value) {
                out.push(self.texts, piece(at, member.start));
                self.write(member.value, out)?;
                at = member.end;
            }
        }
        out.push(self.texts, piece(at, end));
        Ok(())
    }

    #[inline(always)]
    fn is_changed(self, value: Value) -> bool {
        matches!(value, Value::Object(object) if self.overlay.objects[object].changed)
    }
}

/// Writes to the end of a buffer. Calls itself as deep as the output is: only for a document that is known to be within its
/// limit.
///
/// The buffer is made longer first, so that short pieces are written as whole chunks: what is written too much lies behind the
/// end, where the next piece comes.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// One past the last byte that is written.
    at: usize,
    /// Is not written yet: the next piece may go on where it ends.
    piece: Text,
}

/// Few bytes are copied without a call.
const SHORT: usize = 128;
const CHUNK: usize = 16;

impl<'a> Writer<'a> {
    /// For about `bytes`; more are taken too.
    pub(crate) fn new(out: &'a mut Vec<u8>, bytes: usize) -> Self {
        let at = out.len();
        out.resize(at + bytes + CHUNK, 0);
        Self { out, at, piece: Text::EMPTY }
    }

    /// The buffer ends with the last byte now.
    pub(crate) fn finish(mut self, texts: Texts<'_>) {
        self.flush(texts);
        self.out.truncate(self.at);
    }

    #[inline(always)]
    fn flush(&mut self, texts: Texts<'_>) {
        self.copy(texts, self.piece);
    }

    /// Writes a piece that comes directly behind what is written, and is not empty.
    #[inline(always)]
    pub(crate) fn copy(&mut self, texts: Texts<'_>, piece: Text) {
        let text = texts.of(piece.source);
        let (start, length) = (piece.start as usize, piece.len());
        let count = length.div_ceil(CHUNK);
        let (from, _) = text.get(start..).unwrap_or_default().as_chunks::<CHUNK>();
        let (to, _) = self.out.get_mut(self.at..).unwrap_or_default().as_chunks_mut::<CHUNK>();
        match (from.get(..count), to.get_mut(..count)) {
            (Some(from), Some(to)) if length <= SHORT => {
                for (to, from) in to.iter_mut().zip(from) {
                    *to = *from;
                }
                self.at += length;
            }
            _ => self.copy_any(texts.get(piece)),
        }
    }

    /// The same for a piece that is long, or near the end of its text, or for which there is not enough room.
    #[inline(never)]
    fn copy_any(&mut self, bytes: &[u8]) {
        let behind = self.at + bytes.len();
        if self.out.len() < behind + CHUNK {
            self.out.resize(behind + CHUNK, 0);
        }
        if let Some(to) = self.out.get_mut(self.at..behind) {
            to.copy_from_slice(bytes);
        }
        self.at = behind;
    }
}

impl Sink for Writer<'_> {
    type Full = Infallible;

    #[inline(always)]
    fn push(&mut self, texts: Texts<'_>, piece: Text) {
        if piece.start == self.piece.end && piece.source == self.piece.source {
            self.piece.end = piece.end;
        } else if piece.start < piece.end {
            self.flush(texts);
            self.piece = piece;
        }
    }

    #[inline(always)]
    fn last(&self, texts: Texts<'_>) -> Option<u8> {
        texts.of(self.piece.source).get((self.piece.end as usize).wrapping_sub(1)).copied()
    }

    fn pop(&mut self) {
        self.piece.end -= 1;
    }

    fn object(&mut self, edited: Edited<'_>, object: u32) -> Result<(), Infallible> {
        edited.write_object(object, self)
    }
}
