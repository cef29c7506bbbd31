//! The segments that are known, how far each may be read, and where they are. Shared by the one writer and all readers.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tidegate_api::{CommitPosition, Result};

use crate::disk::{Disk, DiskFile};
use crate::error::{read_failed, write_failed};
use crate::segment::{End, HEADER_LEN, Header, file_name};

/// One segment, as readers see it.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) sequence: u64,
    /// Every position in it is greater.
    pub(crate) base: CommitPosition,
    /// The crc of its header.
    pub(crate) crc: u32,
    /// What it follows.
    pub(crate) previous: End,
    /// The first parts of its first transaction are in an earlier segment.
    pub(crate) unfinished: bool,
    pub(crate) created_us: i64,
    /// It may be read so far: everything below is durable.
    pub(crate) end: u64,
    /// Its header is not whole: nothing can be read.
    pub(crate) damaged: bool,
}

impl Segment {
    pub(crate) fn new(header: &Header, crc: u32, end: u64) -> Self {
        Self {
            sequence: header.sequence,
            base: header.base,
            crc,
            previous: header.previous,
            unfinished: header.unfinished,
            created_us: header.created_us,
            end,
            damaged: false,
        }
    }

    /// A file whose header cannot be read, behind a segment that ends at `base`.
    pub(crate) fn damaged(sequence: u64, base: CommitPosition, end: u64) -> Self {
        Self { sequence, base, crc: 0, previous: End::default(), unfinished: false, created_us: i64::MAX, end, damaged: true }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Segments {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) folder: PathBuf,
    pub(crate) incarnation: u64,
    known: RwLock<Known>,
}

#[derive(Debug)]
struct Known {
    /// By sequence. The last may be growing.
    list: Vec<Segment>,
    head: CommitPosition,
    /// Bytes of the growing segment that are written and not durable.
    staged: u64,
}

impl Segments {
    pub(crate) fn new(disk: Arc<dyn Disk>, folder: PathBuf, incarnation: u64, list: Vec<Segment>, head: CommitPosition) -> Self {
        Self { disk, folder, incarnation, known: RwLock::new(Known { list, head, staged: 0 }) }
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last durable position.
    pub(crate) fn head(&self) -> CommitPosition {
        self.read().head
    }

    /// Bytes on disk.
    pub(crate) fn bytes(&self) -> u64 {
        let known = self.read();
        known.staged + known.list.iter().map(|segment| segment.end).sum::<u64>()
    }

    /// Durable bytes at and behind a place.
    pub(crate) fn bytes_behind(&self, sequence: u64, offset: u64) -> u64 {
        let known = self.read();
        let behind = known.list.iter().filter(|segment| segment.sequence >= sequence);
        behind.map(|segment| if segment.sequence == sequence { segment.end.saturating_sub(offset) } else { segment.end }).sum()
    }

    /// A new segment: durable, without records so far.
    pub(crate) fn begin(&self, segment: Segment) {
        let mut known = self.write();
        known.staged = 0;
        known.list.push(segment);
    }

    /// The growing segment is durable up to `end`, and everything up to `head` with it.
    pub(crate) fn advance(&self, end: u64, head: CommitPosition) {
        let mut known = self.write();
        known.staged = 0;
        known.head = known.head.max(head);
        if let Some(last) = known.list.last_mut() {
            last.end = end;
        }
    }

    /// So many bytes behind the durable ones are written.
    pub(crate) fn stage(&self, bytes: u64) {
        self.write().staged = bytes;
    }

    pub(crate) fn get(&self, sequence: u64) -> Option<Segment> {
        let known = self.read();
        let index = known.list.binary_search_by_key(&sequence, |segment| segment.sequence).ok()?;
        known.list.get(index).cloned()
    }

    /// A segment and the one behind it: once there is one, the first does not grow any more.
    pub(crate) fn with_following(&self, sequence: u64) -> Option<(Segment, Option<Segment>)> {
        let known = self.read();
        let index = known.list.binary_search_by_key(&sequence, |segment| segment.sequence).ok()?;
        Some((known.list.get(index)?.clone(), known.list.get(index + 1).cloned()))
    }

    /// The segment to start in for what is behind `position`: the one that holds the position itself, because the parts of
    /// the transaction behind it may follow there. `Err` tells the oldest position that can still be started from.
    pub(crate) fn start_for(&self, position: CommitPosition) -> Result<Option<Segment>, CommitPosition> {
        let known = self.read();
        let Some(first) = known.list.first() else { return Ok(None) };
        let holding = known.list.partition_point(|segment| segment.base < position);
        match holding.checked_sub(1) {
            Some(index) => Ok(known.list.get(index).cloned()),
            None if position == first.base && !first.unfinished => Ok(Some(first.clone())),
            None => Err(first.base),
        }
    }

    /// Segments of which nothing is needed for what is behind `position`, oldest first, each with the time at which the
    /// next one was begun.
    pub(crate) fn consumed(&self, position: CommitPosition) -> Vec<(u64, i64)> {
        let known = self.read();
        let followers = known.list.iter().skip(1);
        let pairs = known.list.iter().zip(followers);
        pairs.take_while(|(_, next)| next.base < position).map(|(segment, next)| (segment.sequence, next.created_us)).collect()
    }

    /// Forgets the segments up to this one.
    pub(crate) fn forget_through(&self, sequence: u64) {
        self.write().list.retain(|segment| segment.sequence > sequence);
    }

    /// Forgets what is behind this place: nothing with a position is. Gives the sequences that are gone.
    pub(crate) fn shorten(&self, sequence: u64, end: u64) -> Vec<u64> {
        let mut known = self.write();
        known.staged = 0;
        let left = known.list.partition_point(|segment| segment.sequence <= sequence);
        let gone = known.list.split_off(left).iter().map(|segment| segment.sequence).collect();
        if let Some(last) = known.list.last_mut().filter(|last| last.sequence == sequence) {
            last.end = last.end.min(end);
        }
        gone
    }

    pub(crate) fn sequences(&self) -> Vec<u64> {
        self.read().list.iter().map(|segment| segment.sequence).collect()
    }

    pub(crate) fn name(&self, sequence: u64) -> String {
        file_name(self.incarnation, sequence)
    }

    /// Opens a segment's file.
    pub(crate) fn open(&self, sequence: u64) -> io::Result<Box<dyn DiskFile>> {
        self.disk.open(&self.folder.join(self.name(sequence)))
    }

    pub(crate) fn remove(&self, sequence: u64) -> Result<()> {
        let name = self.name(sequence);
        match self.disk.remove(&self.folder.join(&name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(write_failed("remove segment", &name, error)),
            _ => Ok(()),
        }
    }

    pub(crate) fn sync_folder(&self) -> Result<()> {
        self.disk.sync_folder(&self.folder).map_err(|error| write_failed("sync relay folder", &self.folder.display().to_string(), error))
    }

    /// Makes a segment's file with its header, both durable.
    pub(crate) fn create(&self, header: &Header) -> Result<(Box<dyn DiskFile>, u32)> {
        let name = self.name(header.sequence);
        let (bytes, crc) = header.encode();
        let made = || -> io::Result<Box<dyn DiskFile>> {
            let file = self.disk.create(&self.folder.join(&name))?;
            file.write_at(&bytes, 0)?;
            file.sync()?;
            self.disk.sync_folder(&self.folder)?;
            Ok(file)
        };
        let file = made().map_err(|error| {
            let _ = self.disk.remove(&self.folder.join(&name)); // what is left of it is no segment
            write_failed("begin segment", &name, error)
        })?;
        debug_assert_eq!(bytes.len() as u64, HEADER_LEN);
        Ok((file, crc))
    }

    pub(crate) fn read_failed(&self, sequence: u64, error: io::Error) -> tidegate_api::Error {
        read_failed("read relay", &self.name(sequence), error)
    }
}
