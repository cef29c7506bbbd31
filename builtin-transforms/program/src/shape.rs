//! What documents of one shape have in common: the text between their values, and where values of one kind stand.
//!
//! Rows of a table look alike: the same names in the same order. A document that has the shape of an earlier one is read by
//! comparing it with what must stand between its values: no name is looked up.

use crate::lanes::{self, Lane};
use crate::overlay::{Source, Text};
use crate::scan::{self, Around};

/// A shape has room for so many values, and for so many chunks of the text between them.
const MAX_VALUES: usize = 64;
const MAX_CHUNKS: usize = 128;

/// In place of a kind: it may be any.
pub(crate) const ANY: u8 = 0;

const CHUNK: usize = 16;
const ONES: [u8; CHUNK] = [0xff; CHUNK];

/// A place in a document: so many bytes behind the end of a value. Number 0 is the beginning, number n the n-th value.
#[derive(Clone, Copy)]
pub(crate) struct Anchor {
    pub(crate) value: u32,
    pub(crate) behind: u32,
}

impl Anchor {
    /// So many bytes behind the beginning.
    pub(crate) fn beginning(behind: u32) -> Self {
        Self { value: 0, behind }
    }
}

/// A piece of the pool (then its anchors are at the beginning), or of any document of the shape.
#[derive(Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) source: Source,
    pub(crate) from: Anchor,
    pub(crate) to: Anchor,
}

/// A value, and the text that must stand between the one before and it.
pub(crate) struct Slot {
    pub(crate) chunks: u32,
    pub(crate) length: u32,
    /// Containers around it.
    pub(crate) depth: u32,
    /// Its place in the outline.
    pub(crate) place: u32,
    /// See [`kind`]; [`ANY`] where no path leads.
    pub(crate) kind: u8,
}

/// 16 bytes of text, and which of them count.
#[derive(Clone, Copy)]
struct Chunk {
    text: Lane,
    mask: Lane,
}

/// Room is made once: a document that would need more gives no shape.
pub(crate) struct Shape {
    slots: Vec<Slot>,
    /// The text before each value and behind the last one.
    chunks: Vec<Chunk>,
    /// Of the document that was read last: where each value ends, after a zero for the beginning.
    ends: Vec<u32>,
    /// The length of the text behind the last value.
    tail: u32,
}

impl Shape {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::with_capacity(MAX_VALUES),
            chunks: Vec::with_capacity(MAX_CHUNKS),
            ends: Vec::with_capacity(MAX_VALUES + 1),
            tail: 0,
        }
    }

    /// Makes it one of no values.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.chunks.clear();
        self.ends.clear();
        self.ends.push(0);
    }

    /// Adds a value that ends at `end`, behind the text `before`.
    pub(crate) fn add(&mut self, before: &[u8], slot: Slot, end: usize) -> Option<()> {
        let chunks = self.text(before)?;
        if self.slots.len() == MAX_VALUES {
            return None;
        }
        self.slots.push(Slot { chunks, length: before.len() as u32, ..slot });
        self.ends.push(end as u32);
        Some(())
    }

    /// Adds the text behind the last value.
    pub(crate) fn end(&mut self, tail: &[u8]) -> Option<()> {
        self.text(tail)?;
        self.tail = tail.len() as u32;
        Some(())
    }

    fn text(&mut self, text: &[u8]) -> Option<u32> {
        let (before, chunks) = (self.chunks.len(), text.len().div_ceil(CHUNK));
        if before + chunks > MAX_CHUNKS {
            return None;
        }
        self.chunks.extend(
            text.chunks(CHUNK)
                .map(|chunk| Chunk { text: lanes::lane(chunk, 0), mask: lanes::lane(ONES.get(..chunk.len()).unwrap_or_default(), 0) }),
        );
        Some(chunks as u32)
    }

    /// What stands at a place of the document that was read last, for every document. None where that is inside of a value.
    pub(crate) fn anchor(&self, at: u32) -> Option<Anchor> {
        let value = self.ends.partition_point(|end| *end <= at).checked_sub(1)?;
        let behind = at - self.ends.get(value)?;
        let text = self.slots.get(value).map_or(self.tail, |slot| slot.length);
        (behind <= text).then_some(Anchor { value: value as u32, behind })
    }

    /// Reads a document. None: it has another shape, or a fault.
    #[inline(always)]
    pub(crate) fn read(&mut self, text: &[u8], limit: usize, around: &mut Around) -> Option<()> {
        around.foreign = false;
        let mut at = 0;
        let mut chunks = self.chunks.as_slice();
        for (slot, end) in self.slots.iter().zip(self.ends.iter_mut().skip(1)) {
            let (before, behind) = chunks.split_at_checked(slot.chunks as usize)?;
            stand(before, text, at)?;
            chunks = behind;
            at += slot.length as usize;
            if slot.kind != ANY && kind(scan::byte(text, at)) != slot.kind {
                return None;
            }
            at = scan::value(text, at, slot.depth as usize, limit, around, slot.place).ok()?;
            *end = at as u32;
        }
        stand(chunks, text, at)?;
        (at + self.tail as usize == text.len()).then_some(())
    }

    fn place(&self, anchor: Anchor) -> u32 {
        self.ends.get(anchor.value as usize).map_or(0, |end| end + anchor.behind)
    }

    /// The piece in the document that was read last.
    #[inline(always)]
    pub(crate) fn piece(&self, piece: Piece) -> Text {
        Text { source: piece.source, start: self.place(piece.from), end: self.place(piece.to) }
    }
}

/// The first byte of a value, the same for all numbers.
#[inline(always)]
pub(crate) fn kind(first: u8) -> u8 {
    match first {
        b'-' | b'0'..=b'9' => b'0',
        other => other,
    }
}

/// Whether the chunks stand one behind the other from `at` on.
#[inline(always)]
fn stand(chunks: &[Chunk], text: &[u8], mut at: usize) -> Option<()> {
    for chunk in chunks {
        if !lanes::same(lanes::lane(text, at), chunk.text, chunk.mask) {
            return None;
        }
        at += CHUNK;
    }
    Some(())
}
