//! Reads records out of one segment's file, in blocks.

use std::io;

use bytes::Bytes;

use crate::disk::{DiskFile, fill};
use crate::record::{self, PREFIX_LEN, Record};
use crate::segment::{Fields, HEADER_LEN};

/// So much is read at once, unless a record is larger.
const BLOCK: u64 = 256 << 10;

/// No segment is this long.
const LARGEST: u64 = 1 << 40;

/// An open file and the block that was read last.
#[derive(Debug)]
pub(crate) struct RecordFile {
    file: Box<dyn DiskFile>,
    block: Bytes,
    start: u64,
}

impl RecordFile {
    pub(crate) fn new(file: Box<dyn DiskFile>) -> Self {
        Self { file, block: Bytes::new(), start: 0 }
    }

    /// The bytes of one range; `None` where the file, or `limit`, ends before them.
    pub(crate) fn bytes(&mut self, offset: u64, length: u64, limit: u64) -> io::Result<Option<Bytes>> {
        if offset.checked_add(length).is_none_or(|end| end > limit) {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(io::Error::other)?;
        let kept = match usize::try_from(offset.wrapping_sub(self.start)) {
            Ok(from) if offset >= self.start && from <= self.block.len() => self.block.slice(from..),
            _ => Bytes::new(),
        };
        if kept.len() >= length {
            return Ok(Some(kept.slice(..length)));
        }
        let mut read = vec![0; (length as u64).max(BLOCK.min(limit - offset)) as usize];
        let (known, rest) = read.split_at_mut(kept.len());
        known.copy_from_slice(&kept);
        let filled = kept.len() + fill(self.file.as_ref(), offset + kept.len() as u64, rest)?;
        read.truncate(filled);
        self.block = Bytes::from(read);
        self.start = offset;
        Ok((self.block.len() >= length).then(|| self.block.slice(..length)))
    }

    /// The record at `offset`, and its bytes; `None` where there is no whole one.
    pub(crate) fn record(&mut self, offset: u64, limit: u64) -> io::Result<Option<(Record, Bytes)>> {
        let Some(prefix) = self.bytes(offset, PREFIX_LEN as u64, limit)? else { return Ok(None) };
        let Some(length) = record::length(&prefix) else { return Ok(None) };
        let Some(bytes) = self.bytes(offset, length, limit)? else { return Ok(None) };
        Ok(record::decode(&bytes).map(|record| (record, bytes)))
    }

    /// The next place behind `bad` at which a whole record stands that was written when more than `durable` bytes of the
    /// file were durable.
    pub(crate) fn next_whole(&mut self, bad: u64, durable: u64, limit: u64) -> io::Result<Option<u64>> {
        let mut from = bad + 1;
        while let Some(block) = self.bytes(from, BLOCK.min(limit.saturating_sub(from)), limit)?
            && block.len() >= PREFIX_LEN
        {
            for (index, window) in block.windows(PREFIX_LEN).enumerate() {
                let offset = from + index as u64;
                let synced = Fields(window.get(12..).unwrap_or_default()).u64().unwrap_or(0);
                // A handful of comparisons rules nearly every place out before a crc is computed. Where bytes are missing,
                // what follows stands below its old place: `synced` may be beyond it.
                let plausible = synced >= HEADER_LEN && synced > durable && synced < LARGEST;
                let fits = plausible && record::length(window).is_some_and(|length| offset + length <= limit);
                if fits && self.record(offset, limit)?.is_some() {
                    return Ok(Some(offset));
                }
            }
            from += (block.len() - PREFIX_LEN + 1) as u64;
        }
        Ok(None)
    }
}
