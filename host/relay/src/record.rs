//! The records of a segment.
//!
//! # Format 1
//!
//! Records stand behind each other, from the end of the segment's [header](crate::segment) on. All integers are
//! little-endian.
//!
//! ```text
//!  0 crc      u32, CRC32C of everything behind it in this record
//!  4 length   u32, the bytes behind this field
//!  8 previous u32, the crc of the record before, or of the header: the chain
//! 12 synced   u64, so many bytes of this file were durable before this record was written
//! 20 kind     u8: 1 part, 2 commit, 3 watermark
//! 21 part:      first sequence u64, first offset u64, changes u32, chunk
//!    commit:    first sequence u64, first offset u64, parts u32, xid u32, position u64, commit time i64, changes u64,
//!               bytes u64, chunk
//!    watermark: position u64
//! ```
//!
//! * `chunk` is a [`Chunk`](tidegate_api::Chunk) in its stored form, up to the record's end.
//! * A transaction is any number of parts, then a commit with its last chunk. All of them carry the place (segment and
//!   offset) of its first part, which is also what tells them from parts whose commit never came; a commit without parts
//!   has zeros there. `parts` counts the parts, `changes` and `bytes` are of all its chunks.
//! * A watermark is a position up to which there was nothing to store.
//! * Positions of commits and watermarks grow.
//!
//! A record proves itself by its crc, and the one before it by `previous`. By `synced` it proves that a damaged record at a
//! lower offset was durable once, and is a fault: without such a witness the damage is the torn end of the last write.

use std::ops::Range;

use tidegate_api::CommitPosition;

use crate::segment::Fields;

/// The length of what stands before a record's kind: crc, length, previous, synced; and the kind.
pub(crate) const PREFIX_LEN: usize = 21;

/// `length` counts what is behind it: this much stands before.
const BEFORE_LENGTH: usize = 8;

const PART: u8 = 1;
const COMMIT: u8 = 2;
const WATERMARK: u8 = 3;

/// A record's chunk is at most this many bytes.
pub(crate) const MAX_CHUNK_LEN: usize = u32::MAX as usize - 1024;

/// Where a record stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) sequence: u64,
    pub(crate) offset: u64,
}

/// The end of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) first: Place,
    pub(crate) parts: u32,
    pub(crate) xid: u32,
    pub(crate) position: CommitPosition,
    pub(crate) commit_time_us: i64,
    pub(crate) changes: u64,
    pub(crate) bytes: u64,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Part { first: Place, changes: u32 },
    Commit(Commit),
    Watermark(CommitPosition),
}

impl Body {
    /// The position that is durable once this record is; parts have none.
    pub(crate) fn position(&self) -> Option<CommitPosition> {
        match self {
            Self::Part { .. } => None,
            Self::Commit(commit) => Some(commit.position),
            Self::Watermark(position) => Some(*position),
        }
    }
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) crc: u32,
    pub(crate) previous: u32,
    pub(crate) synced: u64,
    pub(crate) body: Body,
    /// Where its chunk stands, within its bytes.
    pub(crate) chunk: Range<usize>,
}

/// Appends a record to `out` and gives its crc.
pub(crate) fn put(out: &mut Vec<u8>, previous: u32, synced: u64, body: &Body, chunk: &[u8]) -> u32 {
    let start = out.len();
    out.extend_from_slice(&[0; BEFORE_LENGTH]);
    out.extend_from_slice(&previous.to_le_bytes());
    out.extend_from_slice(&synced.to_le_bytes());
    match body {
        Body::Part { first, changes } => {
            out.push(PART);
            put_place(out, first);
            out.extend_from_slice(&changes.to_le_bytes());
        }
        Body::Commit(commit) => {
            out.push(COMMIT);
            put_place(out, &commit.first);
            out.extend_from_slice(&commit.parts.to_le_bytes());
            out.extend_from_slice(&commit.xid.to_le_bytes());
            out.extend_from_slice(&commit.position.offset().to_le_bytes());
            out.extend_from_slice(&commit.commit_time_us.to_le_bytes());
            out.extend_from_slice(&commit.changes.to_le_bytes());
            out.extend_from_slice(&commit.bytes.to_le_bytes());
        }
        Body::Watermark(position) => {
            out.push(WATERMARK);
            out.extend_from_slice(&position.offset().to_le_bytes());
        }
    }
    out.extend_from_slice(chunk);
    let length = (out.len() - start - BEFORE_LENGTH) as u32;
    if let Some(place) = out.get_mut(start + 4..start + 8) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    let crc = crc32c::crc32c(out.get(start + 4..).unwrap_or_default());
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&crc.to_le_bytes());
    }
    crc
}

fn put_place(out: &mut Vec<u8>, place: &Place) {
    out.extend_from_slice(&place.sequence.to_le_bytes());
    out.extend_from_slice(&place.offset.to_le_bytes());
}

/// The length of the record that begins with these bytes, if they are as many as a prefix and look like one.
pub(crate) fn length(bytes: &[u8]) -> Option<u64> {
    let prefix = bytes.get(..PREFIX_LEN)?;
    let mut fields = Fields(prefix.get(4..)?);
    let length = fields.u32()?;
    let known = matches!(prefix.last(), Some(&(PART | COMMIT | WATERMARK)));
    (known && length as usize >= PREFIX_LEN - BEFORE_LENGTH).then_some(u64::from(length) + BEFORE_LENGTH as u64)
}

/// Reads exactly one record; `None` where the bytes are not one.
pub(crate) fn decode(bytes: &[u8]) -> Option<Record> {
    if length(bytes)? != bytes.len() as u64 {
        return None;
    }
    let mut fields = Fields(bytes);
    let (crc, _length, previous, synced) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u64()?);
    if crc != crc32c::crc32c(bytes.get(4..)?) {
        return None;
    }
    let [kind] = fields.array()?;
    let body = match kind {
        PART => Body::Part { first: place(&mut fields)?, changes: fields.u32()? },
        COMMIT => Body::Commit(Commit {
            first: place(&mut fields)?,
            parts: fields.u32()?,
            xid: fields.u32()?,
            position: CommitPosition::new(fields.u64()?),
            commit_time_us: fields.u64()?.cast_signed(),
            changes: fields.u64()?,
            bytes: fields.u64()?,
        }),
        _ => Body::Watermark(CommitPosition::new(fields.u64()?)),
    };
    Some(Record { crc, previous, synced, body, chunk: bytes.len() - fields.0.len()..bytes.len() })
}

fn place(fields: &mut Fields<'_>) -> Option<Place> {
    Some(Place { sequence: fields.u64()?, offset: fields.u64()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bodies() -> [Body; 3] {
        let first = Place { sequence: 2, offset: 96 };
        let position = CommitPosition::new(u64::MAX);
        let commit = Commit { first, parts: 1, xid: 7, position, commit_time_us: -1, changes: 3, bytes: 12 };
        [Body::Part { first, changes: 2 }, Body::Commit(commit), Body::Watermark(CommitPosition::new(9))]
    }

    #[test]
    fn a_record_comes_back_as_it_went_and_any_flipped_bit_is_noticed() {
        for body in bodies() {
            let chunk: &[u8] = if matches!(body, Body::Watermark(_)) { b"" } else { b"some bytes" };
            let mut bytes = Vec::new();
            let crc = put(&mut bytes, 5, 96, &body, chunk);
            let record = decode(&bytes).unwrap();
            assert_eq!((record.crc, record.previous, record.synced, &record.body), (crc, 5, 96, &body));
            assert_eq!(&bytes[record.chunk], chunk);
            for place in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[place] ^= 1;
                assert_eq!(decode(&bad), None, "byte {place}");
                assert_eq!(decode(&bytes[..place]), None);
            }
        }
    }
}
