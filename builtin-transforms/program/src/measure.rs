//! How large and how deep a document has become, before it is written.
//!
//! A copy costs nothing until it is written, and copies of copies double: so the size must be known first. Every object is
//! counted once, however often it will be written.

use crate::overlay::{Text, Texts, Value};
use crate::scan;
use crate::write::{Edited, Sink};

/// What something takes when it is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) bytes: u64,
    /// Containers that are open at once.
    pub(crate) depth: usize,
}

/// More containers are open at once than may be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooDeep;

/// Measures a document.
pub(crate) fn measure(edited: Edited<'_>, root: u32, limit: usize) -> Result<Extent, TooDeep> {
    let mut known = vec![None; edited.overlay.objects.len()];
    let mut counter = Counter { known: &mut known, outside: 0, limit, open: 0, deepest: 0, bytes: 0, last: None };
    edited.write(Value::Object(root), &mut counter)?;
    counter.end()
}

/// Takes a document, or an object of it, and keeps only its extent.
struct Counter<'a> {
    /// The extents of objects.
    known: &'a mut [Option<Extent>],
    /// Containers that are open around it.
    outside: usize,
    limit: usize,
    /// Containers that are open in it.
    open: usize,
    deepest: usize,
    bytes: u64,
    last: Option<u8>,
}

impl Counter<'_> {
    fn end(self) -> Result<Extent, TooDeep> {
        if self.outside + self.deepest > self.limit { Err(TooDeep) } else { Ok(Extent { bytes: self.bytes, depth: self.deepest }) }
    }

    /// Measures an object inside of `outside` others. Calls itself no deeper than the limit.
    fn extent(&mut self, edited: Edited<'_>, object: u32, outside: usize) -> Result<Extent, TooDeep> {
        if outside >= self.limit {
            return Err(TooDeep);
        }
        if let Some(extent) = self.known.get(object as usize).copied().flatten() {
            return if outside + extent.depth > self.limit { Err(TooDeep) } else { Ok(extent) };
        }
        let known = &mut *self.known;
        let mut inner = Counter { known, outside, limit: self.limit, open: 0, deepest: 0, bytes: 0, last: None };
        edited.write_object(object, &mut inner)?;
        let extent = inner.end()?;
        if let Some(known) = self.known.get_mut(object as usize) {
            *known = Some(extent);
        }
        Ok(extent)
    }
}

impl Sink for Counter<'_> {
    type Full = TooDeep;

    fn push(&mut self, texts: Texts<'_>, piece: Text) {
        let bytes = texts.get(piece);
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        self.last = bytes.last().copied().or(self.last);
        (self.open, self.deepest) = scan::depth(bytes, self.open, self.deepest);
    }

    fn last(&self, _: Texts<'_>) -> Option<u8> {
        self.last
    }

    fn pop(&mut self) {
        // Only ever a comma.
        self.bytes = self.bytes.saturating_sub(1);
        self.last = None;
    }

    fn object(&mut self, edited: Edited<'_>, object: u32) -> Result<(), TooDeep> {
        let extent = self.extent(edited, object, self.outside + self.open)?;
        self.bytes = self.bytes.saturating_add(extent.bytes);
        self.deepest = self.deepest.max(self.open + extent.depth);
        self.last = Some(b'}');
        Ok(())
    }
}
