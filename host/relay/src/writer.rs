//! Appends records, a group at a time: one write, one sync.

use tidegate_api::{Captured, Chunk, CommitPosition, Error, Result, TransactionMeta, code};

use crate::disk::DiskFile;
use crate::error::{corrupt, internal, write_failed};
use crate::failpoints;
use crate::record::{self, Body, Commit, MAX_CHUNK_LEN, Place};
use crate::recovery::{Tail, scan};
use crate::segment::{End, HEADER_LEN, Header};
use crate::segments::{Segment, Segments};

/// Encoded records are handed to the system when they are this many bytes: a group that is larger takes several writes.
const BUFFER: usize = 2 << 20;

/// The one writer of a source's segments.
#[derive(Debug)]
pub(crate) struct Writer {
    identity: [u8; 32],
    segment_bytes: u64,
    active: Option<Active>,
    /// What the next segment follows.
    tail: Tail,
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
    /// Durable so far.
    synced: End,
    /// A write or a sync is under way, or has failed: nothing is known of what is behind the durable bytes.
    doubtful: bool,
}

/// A transaction whose commit is not here yet.
#[derive(Clone, Copy, Debug)]
struct Pending {
    first: Place,
    /// The crc of the record before it.
    before: u32,
    /// The head when it began.
    head: CommitPosition,
    parts: u32,
    changes: u64,
    bytes: u64,
}

impl Writer {
    pub(crate) fn new(identity: [u8; 32], segment_bytes: u64, tail: Tail) -> Self {
        Self { identity, segment_bytes, active: None, tail, pending: None, buffer: Vec::new() }
    }

    /// Forgets the parts of a transaction whose source connection was lost, and gives their space back: it will come again
    /// from its beginning.
    pub(crate) fn abandon(&mut self, segments: &Segments) {
        if self.pending.is_some() {
            self.fall_back(segments);
        }
    }

    /// Makes a group durable and tells the readers. What is at or below the head came before and is left out.
    ///
    /// After an error nothing of the group counts, and the segment is not written to again.
    pub(crate) fn append(&mut self, segments: &Segments, captured: &[Captured], now_us: i64) -> Result<()> {
        let outcome = self.write_group(segments, captured, now_us);
        if outcome.is_err() {
            self.fall_back(segments);
        }
        outcome
    }

    fn write_group(&mut self, segments: &Segments, captured: &[Captured], now_us: i64) -> Result<()> {
        if self.active.as_ref().is_some_and(|active| active.doubtful) {
            self.fall_back(segments); // the thread that wrote has died in the middle of it
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
        let written = self.buffer.len() as u64;
        let active = self.active(segments, head, now_us)?;
        let first = Place { sequence: active.sequence, offset: active.written + written };
        let new = Pending { first, before: active.crc, head, parts: 0, changes: 0, bytes: 0 };
        let pending = self.pending.get_or_insert(new);
        pending.parts = pending.parts.checked_add(1).ok_or_else(|| internal("append to relay", "a transaction has at most 2^32 parts"))?;
        pending.changes += chunk.len() as u64;
        pending.bytes += chunk.bytes().len() as u64;
        let body = Body::Part { first: pending.first, changes: chunk.len() as u32 };
        self.put(segments, &body, chunk.bytes(), head, now_us)
    }

    fn commit(&mut self, segments: &Segments, meta: &TransactionMeta, chunk: &Chunk, head: CommitPosition, now_us: i64) -> Result<()> {
        let (first, parts, before, bytes) = self
            .pending
            .as_ref()
            .map_or((Place::default(), 0, 0, 0), |pending| (pending.first, pending.parts, pending.changes, pending.bytes));
        let changes = before + chunk.len() as u64;
        if changes != meta.changes {
            return Err(Error::new(&code::PROTOCOL, "append to relay")
                .with("position", meta.position)
                .with("changes_announced", meta.changes)
                .with("changes_received", changes));
        }
        let commit = Commit {
            first,
            parts,
            xid: meta.xid,
            position: meta.position,
            commit_time_us: meta.commit_time_us,
            changes,
            bytes: bytes + chunk.bytes().len() as u64,
        };
        self.put(segments, &Body::Commit(commit), chunk.bytes(), head, now_us)?;
        self.pending = None;
        Ok(())
    }

    fn put(&mut self, segments: &Segments, body: &Body, chunk: &[u8], head: CommitPosition, now_us: i64) -> Result<()> {
        if chunk.len() > MAX_CHUNK_LEN {
            return Err(Error::new(&code::CHUNK_MALFORMED, "append to relay").with("bytes", chunk.len()).with("largest", MAX_CHUNK_LEN));
        }
        let active = self.active(segments, head, now_us)?;
        let (previous, synced) = (active.crc, active.synced.offset);
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
        if self.tail.torn {
            self.cut(segments)?;
        }
        self.tail.last_sequence += 1; // also after a failure: a name is never used twice
        let header = Header {
            sequence: self.tail.last_sequence,
            identity: self.identity,
            base,
            created_us: now_us,
            unfinished: self.pending.is_some(),
            previous: self.tail.end,
        };
        let (file, crc) = segments.create(&header)?;
        segments.begin(Segment::new(&header, crc, HEADER_LEN));
        let synced = End { sequence: header.sequence, offset: HEADER_LEN, crc };
        Ok(Active { file, sequence: header.sequence, written: HEADER_LEN, crc, synced, doubtful: false })
    }

    /// Reads the segment before again, and cuts what does not count. The cut gives space back and need not last: the next
    /// header says where the segment ends.
    fn cut(&mut self, segments: &Segments) -> Result<()> {
        let End { sequence, offset, crc } = self.tail.end;
        if let Some(segment) = segments.get(sequence).filter(|segment| !segment.damaged) {
            let scanned = scan(segments, sequence, segment.crc, segment.base, offset)?;
            if scanned.reached != (offset, crc) {
                let place = Place { sequence, offset: scanned.reached.0 };
                return Err(corrupt("verify segment", scanned.head, place, "bytes that were durable are gone"));
            }
        }
        if let Err(error) = segments.open(sequence).and_then(|file| file.cut(offset)) {
            tracing::warn!(segment = segments.name(sequence), %error, "the torn end of a segment cannot be cut");
        }
        self.tail.torn = false;
        Ok(())
    }

    fn flush(&mut self, segments: &Segments) -> Result<()> {
        let Some(active) = self.active.as_mut().filter(|_| !self.buffer.is_empty()) else { return Ok(()) };
        active.doubtful = true;
        let written = active.file.write_at(&self.buffer, active.written);
        written.map_err(|error| write_failed("append to relay", &segments.name(active.sequence), error))?;
        active.written += self.buffer.len() as u64;
        active.doubtful = false;
        segments.stage(active.written - active.synced.offset);
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
        active.synced = End { sequence: active.sequence, offset: active.written, crc: active.crc };
        segments.advance(active.written, head); // Invariant 1: the head moves only here, behind the sync
        Ok(())
    }

    /// Ends the segment at its full length. Parts in it may not be durable yet.
    fn roll(&mut self, segments: &Segments) -> Result<()> {
        if self.active.as_ref().is_some_and(|active| active.written > active.synced.offset) {
            self.sync(segments, segments.head())?;
        }
        if let Some(active) = self.active.take() {
            self.tail = Tail { end: active.synced, torn: false, ..self.tail };
        }
        Ok(())
    }

    /// Goes back to what is durable and whole: behind it are bytes that nobody has proved, or parts without a commit.
    fn fall_back(&mut self, segments: &Segments) {
        self.buffer.clear();
        let pending = self.pending.take().filter(|pending| pending.head == segments.head());
        let begun = pending.map(|Pending { first, before, .. }| End { sequence: first.sequence, offset: first.offset, crc: before });
        let synced = self.active.take().map(|active| active.synced);
        let ends = begun.into_iter().chain(synced);
        let Some(mut end) = ends.min_by_key(|end| (end.sequence, end.offset)) else { return };
        // A segment without a record that counts goes as a whole.
        if let Some(segment) = segments.get(end.sequence).filter(|_| end.offset <= HEADER_LEN) {
            end = segment.previous;
        }
        for sequence in segments.shorten(end.sequence, end.offset).into_iter().rev() {
            if let Err(error) = segments.remove(sequence) {
                tracing::warn!(%error, "a segment that does not count stays until the next start");
            }
        }
        // Gives the space back at once, which is what a full disk needs; see `cut`.
        let _ = segments.open(end.sequence).and_then(|file| file.cut(end.offset));
        self.tail = Tail { end, torn: end.sequence > 0, ..self.tail };
    }
}
