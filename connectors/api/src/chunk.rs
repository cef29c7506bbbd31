//! A piece of a transaction: rendered changes in one flat buffer.
//!
//! # Format 1
//!
//! A chunk is a sequence of items without a header; the relay stores it as it is. `varint` is LEB128 (at most 10 bytes),
//! `bytes` is a varint length and that many bytes, `text` is `bytes` that are UTF-8.
//!
//! ```text
//! item     = relation | change
//! relation = 0x01 name:text                 defines the next relation number, from 0; stands before its first use
//! change   = operation flags ordinal relation key:text [partition_key:text] [old:bytes] [new:bytes]
//!            [content_type:text] [unavailable:text]
//! operation= 0x10 insert | 0x11 update | 0x12 delete | 0x13 truncate | 0x14 row
//! flags    = one byte: 1 partition key, 2 old, 4 new, 8 content type, 16 unavailable; the others are 0
//! ordinal  = varint, the difference to the previous change's ordinal of this chunk (the first: to 0)
//! relation = varint, a relation number
//! ```

use std::ops::ControlFlow;

use bytes::Bytes;

use crate::code;
use crate::wire::{Reader, put_bytes, put_varint};
use crate::{Change, Error, Operation, Result};

/// The version of the chunk format, kept by whoever stores chunks.
pub const CHUNK_FORMAT: u32 = 1;

/// The version of how rows are rendered into documents (see the crate `tidegate-postgres`). In the fingerprint.
pub const DOCUMENT_FORMAT: u32 = 1;

/// A chunk is closed when it holds this many changes,
pub const MAX_CHUNK_CHANGES: usize = 4096;

/// or before it would grow beyond this many bytes. A single change may be larger: then it is alone in its chunk.
pub const MAX_CHUNK_BYTES: usize = 1 << 20;

const RELATION: u8 = 0x01;
const INSERT: u8 = 0x10;
const UPDATE: u8 = 0x11;
const DELETE: u8 = 0x12;
const TRUNCATE: u8 = 0x13;
const ROW: u8 = 0x14;

const HAS_PARTITION_KEY: u8 = 1;
const HAS_OLD: u8 = 2;
const HAS_NEW: u8 = 4;
const HAS_CONTENT_TYPE: u8 = 8;
const HAS_UNAVAILABLE: u8 = 16;

/// Changes of one transaction (or rows of one snapshot) in order. Cheap to clone; the bytes are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    bytes: Bytes,
    changes: usize,
}

impl Chunk {
    /// A chunk without changes: what is left of a transaction whose tables nobody reads.
    pub fn empty() -> Self {
        Self { bytes: Bytes::new(), changes: 0 }
    }

    /// Takes stored bytes back, after checking that every item fits the format.
    ///
    /// # Errors
    /// [`code::CHUNK_MALFORMED`] when they do not.
    pub fn parse(bytes: Bytes) -> Result<Self> {
        let mut changes = 0;
        let end = walk(&bytes, |_| {
            changes += 1;
            ControlFlow::Continue(())
        });
        match end {
            Some(()) => Ok(Self { bytes, changes }),
            None => Err(Error::new(&code::CHUNK_MALFORMED, "read chunk").with("bytes", bytes.len())),
        }
    }

    /// The stored form.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How many changes it holds.
    pub fn len(&self) -> usize {
        self.changes
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// The changes, in order.
    pub fn changes(&self) -> Changes<'_> {
        Changes { reader: Reader(&self.bytes), relations: Vec::new(), ordinal: 0 }
    }

    /// The changes of the relations that `wanted` accepts. Asked once for each relation; ordinals stay.
    pub fn retain(&self, mut wanted: impl FnMut(&str) -> bool) -> Self {
        let mut verdicts: Vec<(&str, bool)> = Vec::new();
        let mut kept = ChunkBuilder::default();
        for change in self.changes() {
            let known = verdicts.iter().find(|(name, _)| *name == change.relation).map(|(_, verdict)| *verdict);
            let verdict = known.unwrap_or_else(|| {
                let verdict = wanted(change.relation);
                verdicts.push((change.relation, verdict));
                verdict
            });
            if verdict {
                kept.push(&change);
            }
        }
        if kept.changes == self.changes { self.clone() } else { kept.finish() }
    }
}

/// Iterator over a chunk's changes; made by [`Chunk::changes`].
pub struct Changes<'a> {
    reader: Reader<'a>,
    relations: Vec<&'a str>,
    ordinal: u32,
}

impl<'a> Iterator for Changes<'a> {
    type Item = Change<'a>;

    fn next(&mut self) -> Option<Change<'a>> {
        loop {
            let tag = self.reader.byte()?;
            if tag == RELATION {
                self.relations.push(self.reader.text()?);
                continue;
            }
            return self.change(tag);
        }
    }
}

impl<'a> Changes<'a> {
    fn change(&mut self, tag: u8) -> Option<Change<'a>> {
        let operation = match tag {
            INSERT => Operation::Insert,
            UPDATE => Operation::Update,
            DELETE => Operation::Delete,
            TRUNCATE => Operation::Truncate,
            ROW => Operation::Row,
            _ => return None,
        };
        let reader = &mut self.reader;
        let flags = reader.byte()?;
        if flags >= 2 * HAS_UNAVAILABLE {
            return None;
        }
        let delta = u32::try_from(reader.varint()?).ok()?;
        self.ordinal = self.ordinal.checked_add(delta)?;
        let relation = self.relations.get(usize::try_from(reader.varint()?).ok()?).copied()?;
        let key = reader.text()?;
        let partition_key = if flags & HAS_PARTITION_KEY != 0 { Some(reader.text()?) } else { None };
        let old = if flags & HAS_OLD != 0 { Some(reader.bytes()?) } else { None };
        let new = if flags & HAS_NEW != 0 { Some(reader.bytes()?) } else { None };
        let content_type = if flags & HAS_CONTENT_TYPE != 0 { Some(reader.text()?) } else { None };
        let unavailable = if flags & HAS_UNAVAILABLE != 0 { Some(reader.text()?) } else { None };
        Some(Change { ordinal: self.ordinal, relation, operation, key, partition_key, old, new, content_type, unavailable })
    }
}

/// Visits every change; `None` when an item does not fit the format.
fn walk<'a>(bytes: &'a [u8], mut visit: impl FnMut(&Change<'a>) -> ControlFlow<()>) -> Option<()> {
    let mut changes = Changes { reader: Reader(bytes), relations: Vec::new(), ordinal: 0 };
    while !changes.reader.0.is_empty() {
        match changes.next() {
            Some(change) => {
                if visit(&change).is_break() {
                    break;
                }
            }
            None => {
                // `next` ends also behind relations that no change follows: those are allowed.
                return changes.reader.0.is_empty().then_some(());
            }
        }
    }
    Some(())
}

/// Builds a [`Chunk`]. Ordinals must grow from one change to the next.
#[derive(Debug, Default)]
pub struct ChunkBuilder {
    bytes: Vec<u8>,
    relations: Vec<String>,
    changes: usize,
    ordinal: u32,
}

impl ChunkBuilder {
    /// Appends a change.
    pub fn push(&mut self, change: &Change<'_>) {
        let relation = self.relation(change.relation);
        let flag = |present: bool, bit: u8| if present { bit } else { 0 };
        let flags = flag(change.partition_key.is_some(), HAS_PARTITION_KEY)
            | flag(change.old.is_some(), HAS_OLD)
            | flag(change.new.is_some(), HAS_NEW)
            | flag(change.content_type.is_some(), HAS_CONTENT_TYPE)
            | flag(change.unavailable.is_some(), HAS_UNAVAILABLE);
        let out = &mut self.bytes;
        out.push(match change.operation {
            Operation::Insert => INSERT,
            Operation::Update => UPDATE,
            Operation::Delete => DELETE,
            Operation::Truncate => TRUNCATE,
            Operation::Row => ROW,
        });
        out.push(flags);
        debug_assert!(change.ordinal >= self.ordinal, "ordinals grow");
        put_varint(out, u64::from(change.ordinal.wrapping_sub(self.ordinal)));
        put_varint(out, relation as u64);
        put_bytes(out, change.key.as_bytes());
        let texts = [change.partition_key.map(str::as_bytes), change.old, change.new];
        let more = [change.content_type.map(str::as_bytes), change.unavailable.map(str::as_bytes)];
        for part in texts.into_iter().chain(more).flatten() {
            put_bytes(out, part);
        }
        self.ordinal = change.ordinal;
        self.changes += 1;
    }

    /// Whether a further change of about `bytes` belongs into the next chunk, by the fixed rule.
    pub fn is_full_for(&self, bytes: usize) -> bool {
        self.changes >= MAX_CHUNK_CHANGES || (self.changes > 0 && self.bytes.len() + bytes > MAX_CHUNK_BYTES)
    }

    /// Bytes so far.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Changes so far.
    pub fn len(&self) -> usize {
        self.changes
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// The chunk; the builder is empty afterwards and can be used again.
    pub fn finish(&mut self) -> Chunk {
        let built = std::mem::take(self);
        Chunk { bytes: Bytes::from(built.bytes), changes: built.changes }
    }

    fn relation(&mut self, name: &str) -> usize {
        // Nearly always the relation of the change before: look from the end.
        if let Some(index) = self.relations.iter().rposition(|known| known == name) {
            return index;
        }
        self.bytes.push(RELATION);
        put_bytes(&mut self.bytes, name.as_bytes());
        self.relations.push(name.to_owned());
        self.relations.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change<'a>(ordinal: u32, relation: &'a str, key: &'a str) -> Change<'a> {
        Change {
            ordinal,
            relation,
            operation: Operation::Insert,
            key,
            partition_key: None,
            old: None,
            new: Some(b"{\"id\":1}"),
            content_type: None,
            unavailable: None,
        }
    }

    #[test]
    fn a_chunk_gives_back_what_was_put_in() {
        let mut builder = ChunkBuilder::default();
        let full = Change {
            operation: Operation::Update,
            partition_key: Some("acme"),
            old: Some(b"{}"),
            content_type: Some("text/plain"),
            unavailable: Some("big"),
            ..change(7, "public.a", "k")
        };
        let truncate = Change { operation: Operation::Truncate, key: "", new: None, ..change(9, "public.b", "") };
        let all = [change(0, "public.a", "1"), full, truncate];
        all.iter().for_each(|c| builder.push(c));
        let chunk = builder.finish();
        assert_eq!(Chunk::parse(chunk.bytes().clone()).unwrap(), chunk);
        assert_eq!(chunk.changes().collect::<Vec<_>>(), all);
        let kept = chunk.retain(|name| name == "public.b");
        assert_eq!(kept.changes().collect::<Vec<_>>(), [truncate]);
    }

    #[test]
    fn the_bytes_of_format_1_stay_what_they_are() {
        let mut builder = ChunkBuilder::default();
        builder.push(&change(0, "public.a", "1"));
        builder.push(&Change { operation: Operation::Delete, new: None, ..change(300, "public.a", "2") });
        assert_eq!(
            hex::encode(builder.finish().bytes()),
            "01087075626c69632e6110040000013108".to_owned() + "7b226964223a317d" + "1200ac02000132"
        );
    }

    #[test]
    fn damaged_bytes_are_refused_and_never_panic() {
        let mut builder = ChunkBuilder::default();
        builder.push(&change(0, "public.a", "1"));
        let good = builder.finish().bytes().to_vec();
        for cut in 1..good.len() {
            let parsed = Chunk::parse(Bytes::copy_from_slice(&good[..cut]));
            assert!(parsed.is_err() || parsed.unwrap().is_empty());
        }
        for place in 0..good.len() {
            for flip in [1, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[place] ^= flip;
                let _ = Chunk::parse(Bytes::from(bad));
            }
        }
    }
}
