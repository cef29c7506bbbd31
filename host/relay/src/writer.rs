//! Appends records, a group at a time: one write, one sync.

use tidegate_api::{Captured, Chunk, CommitPosition, Error, Result, TransactionMeta, code};

use crate::disk::DiskFile;
use crate::error::{corrupt, internal, write_failed};
use crate::failpoints;
use crate::record::{self, Body, Commit, MAX_CHUNK_LEN, Place};
use crate::recovery::{Tail, scan};
use crate::segment::{HEADER_LEN, Header};
use crate::segments::{Segment, Segments};

/// Encoded records are handed to the system when they are this many bytes: a group that is larger takes several writes.
const BUFFER: usize = 8 << 20;

/// The one writer of a source's segments.
#[derive(Debug)]
pub(crate) struct Writer {
    identity: [u8; 32],
    segment_bytes: u64,
    active: Option<Active>,
    /// The end of the last segment that nobody writes to any more.
    tail: Option<Tail>,
    pending: Option<Pending>,
    buffer: Vec<u8>,
}

/// The segment that grows.
#[derive(Debug)]
struct Active {
    file: Box<dyn DiskFile>,
    sequence: u64,
    /// Written so far; the last record's crc there.
    written: u64,
    crc: u32,
    /// Durable so far; the last record's crc there.
    synced: u64,
    synced_crc: u32,
    /// A write or a sync is under way, or has failed: nothing is known of what is behind the durable bytes.
    doubtful: bool,
}

/// A transaction whose commit is not here yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    first: Place,
    parts: u32,
    changes: u64,
    bytes: u64,
}

impl Writer {
    pub(crate) fn new(identity: [u8; 32], segment_bytes: u64, tail: Option<Tail>) -> Self {
        Self { identity, segment_bytes, active: None, tail, pending: None, buffer: Vec::new() }
    }

    /// Forgets the parts of a transaction whose source connection was lost: it will come again from its beginning.
    pub(crate) fn abandon(&mut self) {
        self.pending = None;
    }

    /// Makes a group durable and tells the readers. What is at or below the head came before and is left out.
    ///
    /// After an error nothing of the group counts, and the segment is not written to again.
    pub(crate) fn append(&mut self, segments: &Segments, captured: &[Captured], now_us: i64) -> Result<()> {
        let outcome = self.write_group(segments, captured, now_us);
        if outcome.is_err() {
            self.pending = None;
            self.give_up(segments);
        }
        outcome
    }

    fn write_group(&mut self, segments: &Segments, captured: &[Captured], now_us: i64) -> Result<()> {
        if self.active.as_ref().is_some_and(|active| active.doubtful) {
            self.give_up(segments); // the thread that wrote has died in the middle of it
        }
        if self.active.as_ref().is_some_and(|active| active.written >= self.segment_bytes) {
            self.roll(segments)?;
        }
        let mut head = segments.head();
        self.buffer.clear();
        for item in captured {
            match item {
                Captured::Part(chunk) => self.part(segments, chunk, head, now_us)?,
                Captured::Commit { meta, chunk } if meta.position > head => {
                    self.commit(segments, meta, chunk, head, now_us)?;
                    head = meta.position;
                }
                Captured::Commit { .. } => self.pending = None, // redelivered: its parts stay without a commit
                Captured::Idle { position } if *position > head => {
                    self.put(segments, &Body::Watermark(*position), &[], head, now_us)?;
                    head = *position;
                }
                Captured::Idle { .. } => {}
            }
        }
        self.flush(segments)?;
        if head > segments.head() { self.sync(segments, head) } else { Ok(()) }
    }

    fn part(&mut self, segments: &Segments, chunk: &Chunk, head: CommitPosition, now_us: i64) -> Result<()> {
        let place = self.place(segments, head, now_us)?;
        let pending = self.pending.get_or_insert(Pending { first: place, parts: 0, changes: 0, bytes: 0 });
        pending.parts = pending.parts.checked_add(1).ok_or_else(|| internal("append to relay", "a transaction has at most 2^32 parts"))?;
        pending.changes += chunk.len() as u64;
        pending.bytes += chunk.bytes().len() as u64;
        let body = Body::Part { first: pending.first, changes: chunk.len() as u32 };
        self.put(segments, &body, chunk.bytes(), head, now_us)
    }

    fn commit(&mut self, segments: &Segments, meta: &TransactionMeta, chunk: &Chunk, head: CommitPosition, now_us: i64) -> Result<()> {
        let before = self.pending.take().unwrap_or(Pending { first: Place::default(), parts: 0, changes: 0, bytes: 0 });
        let changes = before.changes + chunk.len() as u64;
        if changes != meta.changes {
            return Err(Error::new(&code::PROTOCOL, "append to relay")
                .with("position", meta.position)
                .with("changes_announced", meta.changes)
                .with("changes_received", changes));
        }
        let commit = Commit {
            first: before.first,
            parts: before.parts,
            xid: meta.xid,
            position: meta.position,
            commit_time_us: meta.commit_time_us,
            changes,
            bytes: before.bytes + chunk.bytes().len() as u64,
        };
        self.put(segments, &Body::Commit(commit), chunk.bytes(), head, now_us)
    }

    /// Where the next record will stand; begins a segment if there is none.
    fn place(&mut self, segments: &Segments, base: CommitPosition, now_us: i64) -> Result<Place> {
        let offset = self.buffer.len() as u64;
        let active = self.active(segments, base, now_us)?;
        Ok(Place { sequence: active.sequence, offset: active.written + offset })
    }

    fn put(&mut self, segments: &Segments, body: &Body, chunk: &[u8], head: CommitPosition, now_us: i64) -> Result<()> {
        if chunk.len() > MAX_CHUNK_LEN {
            return Err(Error::new(&code::CHUNK_MALFORMED, "append to relay").with("bytes", chunk.len()).with("largest", MAX_CHUNK_LEN));
        }
        let active = self.active(segments, head, now_us)?;
        let (previous, synced) = (active.crc, active.synced);
        let crc = record::put(&mut self.buffer, previous, synced, body, chunk);
        if let Some(active) = &mut self.active {
            active.crc = crc;
        }
        if self.buffer.len() >= BUFFER { self.flush(segments) } else { Ok(()) }
    }

    fn active(&mut self, segments: &Segments, base: CommitPosition, now_us: i64) -> Result<&mut Active> {
        let active = match self.active.take() {
            Some(active) => active,
            None => self.begin(segments, base, now_us)?,
        };
        Ok(self.active.insert(active))
    }

    fn begin(&mut self, segments: &Segments, base: CommitPosition, now_us: i64) -> Result<Active> {
        let tail = self.tail.unwrap_or_default();
        if tail.torn {
            self.cut(segments, tail)?;
        }
        let header = Header {
            sequence: tail.sequence + 1,
            identity: self.identity,
            base,
            created_us: now_us,
            unfinished: self.pending.is_some(),
            previous_end: tail.end,
            previous_crc: tail.crc,
        };
        let (file, crc) = segments.create(&header)?;
        segments.begin(Segment::new(&header, crc, HEADER_LEN));
        let (written, synced) = (HEADER_LEN, HEADER_LEN);
        Ok(Active { file, sequence: header.sequence, written, crc, synced, synced_crc: crc, doubtful: false })
    }

    /// Reads the segment before again, and cuts what does not count. The cut gives space back and need not last: the next
    /// header says where the segment ends.
    fn cut(&mut self, segments: &Segments, tail: Tail) -> Result<()> {
        if let Some(segment) = segments.get(tail.sequence).filter(|segment| !segment.damaged) {
            let scanned = scan(segments, segment.sequence, segment.crc, segment.base, tail.end)?;
            if (scanned.end, scanned.crc) != (tail.end, tail.crc) {
                let place = Place { sequence: tail.sequence, offset: scanned.end };
                return Err(corrupt("verify segment", scanned.head, place, "bytes that were durable are gone"));
            }
        }
        if let Err(error) = segments.open(tail.sequence).and_then(|file| file.cut(tail.end)) {
            tracing::warn!(segment = segments.name(tail.sequence), %error, "the torn end of a segment cannot be cut");
        }
        self.tail = Some(Tail { torn: false, ..tail });
        Ok(())
    }

    fn flush(&mut self, segments: &Segments) -> Result<()> {
        let Some(active) = self.active.as_mut().filter(|_| !self.buffer.is_empty()) else { return Ok(()) };
        active.doubtful = true;
        let written = active.file.write_at(&self.buffer, active.written);
        written.map_err(|error| write_failed("append to relay", &segments.name(active.sequence), error))?;
        active.written += self.buffer.len() as u64;
        active.doubtful = false;
        segments.stage(active.written - active.synced);
        self.buffer.clear();
        if self.buffer.capacity() > BUFFER {
            self.buffer.shrink_to(BUFFER);
        }
        Ok(())
    }

    fn sync(&mut self, segments: &Segments, head: CommitPosition) -> Result<()> {
        let Some(active) = &mut self.active else { return Ok(()) };
        active.doubtful = true;
        failpoints::before_fsync();
        active.file.sync().map_err(|error| write_failed("sync relay", &segments.name(active.sequence), error))?;
        failpoints::after_fsync();
        active.doubtful = false;
        active.synced = active.written;
        active.synced_crc = active.crc;
        segments.advance(active.synced, head); // Invariant 1: the head moves only here, behind the sync
        Ok(())
    }

    /// Ends the segment at its full length. Parts in it may not be durable yet.
    fn roll(&mut self, segments: &Segments) -> Result<()> {
        if self.active.as_ref().is_some_and(|active| active.written > active.synced) {
            self.sync(segments, segments.head())?;
        }
        if let Some(active) = self.active.take() {
            self.tail = Some(Tail { sequence: active.sequence, end: active.synced, crc: active.synced_crc, torn: false });
        }
        Ok(())
    }

    /// Ends the segment at its durable length. One that holds no durable record is begun again.
    fn give_up(&mut self, segments: &Segments) {
        segments.stage(0);
        let Some(active) = self.active.take() else { return };
        if active.synced > HEADER_LEN {
            self.tail = Some(Tail { sequence: active.sequence, end: active.synced, crc: active.synced_crc, torn: true });
        }
        // Gives the space back at once, which is what a full disk needs; see `cut`.
        let _ = active.file.cut(active.synced);
    }
}
