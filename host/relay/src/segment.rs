//! A segment file: its name and its header.
//!
//! # Format 1
//!
//! A relay's log of one source is a folder of segment files named `<incarnation>-<sequence>.segment`, both numbers as 16
//! hexadecimal digits. The incarnation grows when the operator resets the source: files of another one are rubbish.
//! Sequences grow; a segment names the one before it, and files between the two are rubbish. All integers are little-endian.
//!
//! ```text
//!  0 magic           8 bytes "TIDERLAY"
//!  8 version         u32, 1
//! 12 chunk format    u32, of every chunk in the file
//! 16 document format u32, of every document that this release wrote; told apart only by readers that care
//! 20 flags           u32, 1: a transaction was unfinished when the segment was begun, its first parts are in an earlier one
//! 24 sequence        u64, as in the name
//! 32 identity        32 bytes, the digest of the source's identity
//! 64 base            u64, the last position before this segment: every position in it is greater
//! 72 created         i64, microseconds since 1970-01-01 UTC
//! 80 previous        u64, the sequence of the segment before this one; 0 for the first
//! 88 previous end    u64, how many bytes of that segment count: what stands behind them is rubbish
//! 96 previous crc    u32, the crc of the last record that counts there, or of its header where it has none
//! 100 crc            u32, CRC32C of the 100 bytes above
//! ```
//!
//! Records follow (see [`record`](crate::record)). A segment is written by one process only, and only until something
//! fails: whatever comes then begins a new one, whose header says how much of the old one counts. So nothing is ever
//! appended behind bytes that nobody has proved.
//!
//! A file that is not longer than a header and holds no
//! valid one was about to be created when the power went: it is no segment.

use tidegate_api::CommitPosition;
use tidegate_api::chunk::{CHUNK_FORMAT, DOCUMENT_FORMAT};

/// The length of the header.
pub(crate) const HEADER_LEN: u64 = 104;

const MAGIC: &[u8; 8] = b"TIDERLAY";
const VERSION: u32 = 1;
const UNFINISHED: u32 = 1;

/// What a segment's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) sequence: u64,
    pub(crate) identity: [u8; 32],
    pub(crate) base: CommitPosition,
    pub(crate) created_us: i64,
    pub(crate) unfinished: bool,
    pub(crate) previous: End,
}

/// How far a segment counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) sequence: u64,
    pub(crate) offset: u64,
    /// The crc of the last record before, or of the header.
    pub(crate) crc: u32,
}

/// Why bytes are no header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// They are damaged, or not all there.
    Damaged,
    /// They are whole, of another format.
    Format { version: u32, chunks: u32 },
}

impl Header {
    /// The stored form, and its crc: what the first record is chained to.
    pub(crate) fn encode(&self) -> (Vec<u8>, u32) {
        let mut out = Vec::with_capacity(HEADER_LEN as usize);
        out.extend_from_slice(MAGIC);
        for number in [VERSION, CHUNK_FORMAT, DOCUMENT_FORMAT, if self.unfinished { UNFINISHED } else { 0 }] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.identity);
        out.extend_from_slice(&self.base.offset().to_le_bytes());
        out.extend_from_slice(&self.created_us.to_le_bytes());
        out.extend_from_slice(&self.previous.sequence.to_le_bytes());
        out.extend_from_slice(&self.previous.offset.to_le_bytes());
        out.extend_from_slice(&self.previous.crc.to_le_bytes());
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        (out, crc)
    }

    /// Reads the stored form back, with its crc.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, u32), BadHeader> {
        Self::read(bytes).unwrap_or(Err(BadHeader::Damaged))
    }

    fn read(bytes: &[u8]) -> Option<Result<(Self, u32), BadHeader>> {
        let mut fields = Fields(bytes.get(..HEADER_LEN as usize)?);
        let covered = fields.0.get(..HEADER_LEN as usize - 4)?;
        if fields.array()? != *MAGIC {
            return None;
        }
        let (version, chunks, _documents, flags) = (fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?);
        let header = Self {
            sequence: fields.u64()?,
            identity: fields.array()?,
            base: CommitPosition::new(fields.u64()?),
            created_us: fields.u64()?.cast_signed(),
            unfinished: flags & UNFINISHED != 0,
            previous: End { sequence: fields.u64()?, offset: fields.u64()?, crc: fields.u32()? },
        };
        let crc = fields.u32()?;
        if crc != crc32c::crc32c(covered) {
            return None;
        }
        if (version, chunks) != (VERSION, CHUNK_FORMAT) {
            return Some(Err(BadHeader::Format { version, chunks }));
        }
        Some(Ok((header, crc)))
    }
}

/// Reads little-endian integers from the front of a slice; `None` where it is too short.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

/// The name of a segment's file.
pub(crate) fn file_name(incarnation: u64, sequence: u64) -> String {
    format!("{incarnation:016x}-{sequence:016x}.segment")
}

/// Incarnation and sequence that a file's name stands for; `None` where it is no segment's.
pub(crate) fn parse_file_name(name: &str) -> Option<(u64, u64)> {
    let (incarnation, sequence) = name.strip_suffix(".segment")?.split_once('-')?;
    let number = |digits: &str| if digits.len() == 16 { u64::from_str_radix(digits, 16).ok() } else { None };
    let parts = (number(incarnation)?, number(sequence)?);
    (file_name(parts.0, parts.1) == name).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let base = CommitPosition::new(41);
        let previous = End { sequence: 1, offset: 4096, crc: 9 };
        Header { sequence: 3, identity: [7; 32], base, created_us: -5, unfinished: true, previous }
    }

    #[test]
    fn a_header_comes_back_as_it_went_and_any_flipped_bit_is_noticed() {
        let (bytes, crc) = header().encode();
        assert_eq!(bytes.len() as u64, HEADER_LEN);
        assert_eq!(Header::decode(&bytes), Ok((header(), crc)));
        for place in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[place] ^= 0x10;
            assert_eq!(Header::decode(&bad), Err(BadHeader::Damaged), "byte {place}");
            assert_eq!(Header::decode(&bytes[..place]), Err(BadHeader::Damaged));
        }
    }

    #[test]
    fn only_the_exact_form_of_a_name_is_a_segment() {
        assert_eq!(parse_file_name(&file_name(1, 0x2a)), Some((1, 0x2a)));
        for other in ["relay.db", "1-2.segment", "000000000000000A-0000000000000001.segment", "+00000000000000a-0000000000000001.segment"] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }
}
