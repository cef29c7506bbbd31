//! Reads committed transactions in order, from any position on, in bounded memory.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_api::{Chunk, CommitPosition, Error, Result, code};

use crate::error::corrupt;
use crate::record::{Body, Commit, Place};
use crate::record_file::RecordFile;
use crate::segment::HEADER_LEN;
use crate::segments::{Segment, Segments};

/// Between two records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    pub(crate) place: Place,
    /// The crc of the record before, or of the segment's header; `None` right behind a damaged record.
    crc: Option<u32>,
    /// Something damaged was passed over since the last position: what it was is not known.
    gap: bool,
    /// The last position before it.
    position: CommitPosition,
}

/// A transaction that was found.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) commit: Commit,
    /// Its last chunk, as stored.
    pub(crate) chunk: Bytes,
    /// Where its commit stands.
    pub(crate) place: Place,
    /// Behind it.
    pub(crate) after: Cursor,
}

/// Reads what is behind one position. Where it fails it stays: the next call fails in the same way.
#[derive(Debug)]
pub(crate) struct Reader {
    segments: Arc<Segments>,
    /// Transactions up to here are passed over.
    from: CommitPosition,
    cursor: Option<Cursor>,
    open: Option<(u64, RecordFile)>,
}

impl Reader {
    pub(crate) fn new(segments: Arc<Segments>, from: CommitPosition) -> Self {
        Self { segments, from, cursor: None, open: None }
    }

    /// Goes back to where an entry ended.
    pub(crate) fn rewind(&mut self, from: CommitPosition, cursor: Option<Cursor>) {
        self.from = from;
        self.cursor = cursor;
    }

    pub(crate) fn cursor(&self) -> Option<Cursor> {
        self.cursor
    }

    /// Goes back within what was read.
    pub(crate) fn rewind_to(&mut self, cursor: Option<Cursor>) {
        self.cursor = cursor;
    }

    /// Durable bytes that were not read yet.
    pub(crate) fn bytes_behind(&self, cursor: Option<Cursor>, position: CommitPosition) -> u64 {
        if position >= self.segments.head() {
            return 0;
        }
        let place = cursor.map(|cursor| cursor.place).or_else(|| {
            let segment = self.segments.start_for(position).ok().flatten()?;
            Some(Place { sequence: segment.sequence, offset: HEADER_LEN })
        });
        place.map_or(0, |place| self.segments.bytes_behind(place.sequence, place.offset))
    }

    /// The next durable transaction; `None` where there is none yet.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>> {
        let Some(mut cursor) = self.start()? else { return Ok(None) };
        // Behind the head there may be parts whose commit is not here: the writer may take them back.
        while cursor.position < self.segments.head() {
            let Some((segment, following)) = self.segments.with_following(cursor.place.sequence) else { return Err(self.behind()) };
            if segment.damaged {
                return Err(corrupt("read relay", cursor.position, cursor.place, "a segment without a header"));
            }
            if cursor.place.offset >= segment.end {
                match following {
                    Some(next) => cursor = step_into(&cursor, &next)?,
                    None => return Ok(None),
                }
                continue;
            }
            match self.read_at(&segment, &cursor)? {
                Read::Passed(after) => {
                    if after.position > cursor.position {
                        self.cursor = Some(after);
                    }
                    cursor = after;
                }
                Read::Entry(entry) => {
                    self.cursor = Some(entry.after);
                    return Ok(Some(entry));
                }
            }
        }
        Ok(None)
    }

    fn start(&self) -> Result<Option<Cursor>> {
        if self.cursor.is_some() {
            return Ok(self.cursor);
        }
        let Ok(found) = self.segments.start_for(self.from) else { return Err(self.behind()) };
        Ok(found.map(|segment| Cursor {
            place: Place { sequence: segment.sequence, offset: HEADER_LEN },
            crc: Some(segment.crc),
            gap: false,
            position: segment.base,
        }))
    }

    fn read_at(&mut self, segment: &Segment, cursor: &Cursor) -> Result<Read> {
        let Place { sequence, offset } = cursor.place;
        let from = self.from;
        let file = open(&mut self.open, &self.segments, sequence)?;
        let failed = |error| self.segments.read_failed(sequence, error);
        let record = file.record(offset, segment.end).map_err(failed)?;
        let whole = record.filter(|(record, _)| {
            cursor.crc.is_none_or(|crc| crc == record.previous) && record.body.position().is_none_or(|at| at > cursor.position)
        });
        let Some((record, bytes)) = whole else {
            // What is damaged matters only to those who still need it.
            let next = file.next_whole(offset, 0, segment.end).map_err(failed)?;
            let damage = || corrupt("read relay", cursor.position, cursor.place, "a damaged record");
            let next = next.filter(|_| cursor.position < from).ok_or_else(damage)?;
            return Ok(Read::Passed(Cursor { place: Place { sequence, offset: next }, crc: None, gap: true, ..*cursor }));
        };
        let position = record.body.position();
        if cursor.gap && position.is_some_and(|position| position > from) {
            return Err(corrupt("read relay", cursor.position, cursor.place, "a damaged record before this one"));
        }
        let after = Cursor {
            place: Place { sequence, offset: offset + bytes.len() as u64 },
            crc: Some(record.crc),
            gap: cursor.gap && position.is_none(),
            position: position.unwrap_or(cursor.position),
        };
        match record.body {
            Body::Commit(commit) if commit.position > from => {
                Ok(Read::Entry(Entry { commit, chunk: bytes.slice(record.chunk), place: cursor.place, after }))
            }
            _ => Ok(Read::Passed(after)),
        }
    }

    fn behind(&self) -> Error {
        behind(&self.segments, self.from)
    }
}

enum Read {
    Passed(Cursor),
    Entry(Entry),
}

/// The relay does not hold any more what is behind `position`.
pub(crate) fn behind(segments: &Segments, position: CommitPosition) -> Error {
    let error = Error::new(&code::RELAY_BEHIND, "read relay").with("position", position);
    match segments.start_for(position) {
        Err(oldest) => error.with("oldest", oldest),
        Ok(_) => error,
    }
}

fn step_into(cursor: &Cursor, next: &Segment) -> Result<Cursor> {
    let place = Place { sequence: next.sequence, offset: HEADER_LEN };
    if !next.damaged && next.previous.sequence != cursor.place.sequence {
        return Err(corrupt("read relay", cursor.position, cursor.place, "a missing segment behind this one"));
    }
    if !next.damaged && cursor.crc.is_some_and(|crc| crc != next.previous.crc) {
        return Err(corrupt("read relay", cursor.position, place, "a segment that does not continue the one before"));
    }
    Ok(Cursor { place, crc: Some(next.crc), gap: cursor.gap, position: cursor.position.max(next.base) })
}

fn open<'a>(open: &'a mut Option<(u64, RecordFile)>, segments: &Segments, sequence: u64) -> Result<&'a mut RecordFile> {
    let file = match open.take() {
        Some((number, file)) if number == sequence => file,
        _ => RecordFile::new(segments.open(sequence).map_err(|error| open_failed(segments, sequence, error))?),
    };
    Ok(&mut open.insert((sequence, file)).1)
}

fn open_failed(segments: &Segments, sequence: u64, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        let place = Place { sequence, offset: 0 };
        return corrupt("read relay", CommitPosition::ZERO, place, "a segment file that is gone");
    }
    segments.read_failed(sequence, error)
}

/// Reads the chunks of one transaction, one at a time.
#[derive(Debug)]
pub(crate) struct Chunks<'a> {
    segments: &'a Segments,
    commit: &'a Commit,
    at: Place,
    last: Place,
    parts: u32,
    open: Option<(u64, RecordFile)>,
    done: bool,
}

impl<'a> Chunks<'a> {
    /// The chunks of the transaction whose commit stands at `last`.
    pub(crate) fn new(segments: &'a Segments, commit: &'a Commit, last: Place) -> Self {
        let at = if commit.parts == 0 { last } else { commit.first };
        Self { segments, commit, at, last, parts: 0, open: None, done: false }
    }

    fn read(&mut self) -> Result<Option<Chunk>> {
        while !self.done {
            let segment = self.segments.get(self.at.sequence).ok_or_else(|| behind(self.segments, self.commit.position))?;
            if self.at.offset >= segment.end {
                let (_, following) = self.segments.with_following(segment.sequence).unzip();
                let next = following.flatten().ok_or_else(|| self.damaged("a transaction without its end"))?;
                self.at = Place { sequence: next.sequence, offset: HEADER_LEN };
                continue;
            }
            let file = open(&mut self.open, self.segments, segment.sequence)?;
            let record = file.record(self.at.offset, segment.end).map_err(|error| self.segments.read_failed(segment.sequence, error))?;
            let (record, bytes) = record.ok_or_else(|| self.damaged("a damaged record within the transaction"))?;
            let place = self.at;
            self.at.offset += bytes.len() as u64;
            match record.body {
                Body::Part { first, .. } if first == self.commit.first => self.parts += 1,
                Body::Commit(_) if place == self.last && self.parts == self.commit.parts => self.done = true,
                _ if place >= self.last => return Err(self.damaged("a transaction without some of its parts")),
                _ => continue,
            }
            return Chunk::parse(bytes.slice(record.chunk)).map(Some);
        }
        Ok(None)
    }

    fn damaged(&self, what: &'static str) -> Error {
        corrupt("read relay", self.commit.position, self.at, what).with("transaction", self.commit.position)
    }
}

impl Iterator for Chunks<'_> {
    type Item = Result<Chunk>;

    fn next(&mut self) -> Option<Result<Chunk>> {
        let read = self.read();
        self.done |= read.is_err();
        read.transpose()
    }
}
