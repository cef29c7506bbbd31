//! What a folder of segments holds when it is opened again.
//!
//! Only the last segment is read: what counts of the others is in the header behind each, and readers prove their records
//! as they come to them. In the last one, whole records are kept up to the last position; what is behind is
//!
//! * the torn end of a write that was never reported durable: it does not count, and is cut when the next segment is begun
//!   (which happens only after the source has agreed to the position that is left), or
//! * damage, if a later record is a witness that it was durable once: the log goes on behind it, and readers stop there.
//!
//! Records without a witness may sit in the page cache only, and after an earlier failed sync the system may believe them
//! clean: they are written again and synced before anybody is told that they are durable (Invariant 1).

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_api::{CommitPosition, Error, Result, code};

use crate::disk::{Disk, fill};
use crate::error::{read_failed, write_failed};
use crate::record::Body;
use crate::record_file::RecordFile;
use crate::segment::{BadHeader, End, HEADER_LEN, Header, parse_file_name};
use crate::segments::{Segment, Segments};

/// What the next segment follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) end: End,
    /// Bytes behind the end may be there.
    pub(crate) torn: bool,
    /// No segment with a greater sequence was ever begun.
    pub(crate) last_sequence: u64,
}

/// A segment that was read through.
#[derive(Debug)]
pub(crate) struct Scanned {
    /// Behind the last record with a position.
    pub(crate) end: u64,
    pub(crate) crc: u32,
    pub(crate) head: CommitPosition,
    /// So much is known to be durable.
    pub(crate) proven: u64,
    /// Behind the last whole record, and its crc.
    pub(crate) reached: (u64, u32),
    /// The first damaged record.
    pub(crate) damage: Option<u64>,
}

/// Opens a source's segments. `identity` is whose they must be; `None` where there must not be any.
pub(crate) fn recover(disk: Arc<dyn Disk>, folder: PathBuf, incarnation: u64, identity: Option<[u8; 32]>) -> Result<(Segments, Tail)> {
    let shown = folder.display().to_string();
    disk.make_folder(&folder).map_err(|error| write_failed("make relay folder", &shown, error))?;
    let names = disk.list(&folder).map_err(|error| read_failed("list relay folder", &shown, error))?;
    let mut sequences = Vec::new();
    for (other, sequence, name) in names.iter().filter_map(|name| parse_file_name(name).map(|(i, s)| (i, s, name))) {
        if other == incarnation {
            sequences.push(sequence);
        } else if let Err(error) = disk.remove(&folder.join(name)) {
            tracing::warn!(file = name, %error, "a segment from before the last reset cannot be removed");
        }
    }
    sequences.sort_unstable();
    let mut found = Segments::new(disk, folder, incarnation, Vec::new(), CommitPosition::ZERO);
    let headers = sequences.iter().map(|sequence| read_header(&found, *sequence)).collect::<Result<Vec<_>>>()?;
    let Some(identity) = identity else {
        return match headers.iter().flatten().next() {
            Some(_) => Err(Error::new(&code::RELAY_METADATA, "open relay")
                .with("folder", shown)
                .with("found", "segments that the metadata does not know")
                .fix("restore the whole relay folder, or remove it and `tidegate pipeline reset` every pipeline of the source")),
            None => Ok((found, Tail::default())),
        };
    };
    let mut tail = Tail { last_sequence: sequences.last().copied().unwrap_or(0), ..Tail::default() };
    let mut list: Vec<Segment> = Vec::new();
    let mut head = CommitPosition::ZERO;
    let mut chain = chain(&found, sequences, headers).into_iter().peekable();
    while let Some((sequence, header)) = chain.next() {
        let Found::Whole(header, crc, size) = header else {
            tail.end = End { sequence, offset: HEADER_LEN, crc: 0 };
            list.push(Segment::damaged(sequence, head, HEADER_LEN));
            continue;
        };
        if header.identity != identity || header.sequence != sequence {
            let error = Error::new(&code::RELAY_CORRUPT, "open relay").with("segment", found.name(sequence));
            return Err(error.with("found", "a segment of another source"));
        }
        if let Some((_, Found::Whole(following, ..))) = chain.peek()
            && following.previous.sequence == sequence
        {
            head = following.base;
            list.push(Segment::new(&header, crc, following.previous.offset));
            continue;
        }
        let scanned = scan(&found, sequence, crc, header.base, size)?;
        if let Some(offset) = scanned.damage {
            tracing::error!(segment = found.name(sequence), offset, "the relay holds a damaged record: readers stop there");
        }
        if chain.peek().is_none() {
            prove(&found, sequence, scanned.proven, scanned.end)?;
        }
        head = scanned.head;
        tail = Tail { end: End { sequence, offset: scanned.end, crc: scanned.crc }, torn: scanned.end < size, ..tail };
        list.push(Segment::new(&header, crc, scanned.end));
    }
    found = Segments::new(found.disk, found.folder, incarnation, list, head);
    Ok((found, tail))
}

/// The segments that follow each other, oldest first. What none of them names is removed.
fn chain(segments: &Segments, sequences: Vec<u64>, headers: Vec<Option<Found>>) -> Vec<(u64, Found)> {
    let mut kept = Vec::new();
    let mut wanted = u64::MAX;
    for (sequence, header) in sequences.into_iter().zip(headers).rev() {
        match header {
            Some(found) if sequence <= wanted => {
                wanted = if let Found::Whole(header, ..) = &found { header.previous.sequence } else { sequence - 1 };
                kept.push((sequence, found));
            }
            _ => {
                if let Err(error) = segments.remove(sequence) {
                    tracing::warn!(%error, "a segment that does not count stays");
                }
            }
        }
    }
    kept.reverse();
    kept
}

enum Found {
    Whole(Header, u32, u64),
    Damaged,
}

/// `None` for a file that was about to become a segment when the power went.
fn read_header(segments: &Segments, sequence: u64) -> Result<Option<Found>> {
    let failed = |error| segments.read_failed(sequence, error);
    let file = segments.open(sequence).map_err(failed)?;
    let size = file.size().map_err(failed)?;
    let mut bytes = [0; HEADER_LEN as usize];
    let filled = fill(file.as_ref(), 0, &mut bytes).map_err(failed)?;
    match Header::decode(bytes.get(..filled).unwrap_or_default()) {
        Ok((header, crc)) => Ok(Some(Found::Whole(header, crc, size))),
        Err(BadHeader::Damaged) if size <= HEADER_LEN => Ok(None),
        Err(BadHeader::Damaged) => Ok(Some(Found::Damaged)),
        Err(BadHeader::Format { version, chunks }) => Err(Error::new(&code::RELAY_FORMAT, "open relay")
            .with("segment", segments.name(sequence))
            .with("format", version)
            .with("chunk_format", chunks)),
    }
}

/// Reads a segment through, up to `limit`.
pub(crate) fn scan(segments: &Segments, sequence: u64, header_crc: u32, base: CommitPosition, limit: u64) -> Result<Scanned> {
    let failed = |error| segments.read_failed(sequence, error);
    let mut file = RecordFile::new(segments.open(sequence).map_err(failed)?);
    let mut scanned =
        Scanned { end: HEADER_LEN, crc: header_crc, head: base, proven: HEADER_LEN, reached: (HEADER_LEN, header_crc), damage: None };
    let mut offset = HEADER_LEN;
    let mut chain = Some(header_crc);
    while offset < limit {
        let record = file.record(offset, limit).map_err(failed)?;
        let fits = |position: Option<CommitPosition>| position.is_none_or(|position| position > scanned.head);
        match record {
            Some((record, bytes)) if chain.is_none_or(|chain| chain == record.previous) && fits(record.body.position()) => {
                offset += bytes.len() as u64;
                chain = Some(record.crc);
                scanned.reached = (offset, record.crc);
                scanned.proven = scanned.proven.max(record.synced);
                if let Body::Commit(_) | Body::Watermark(_) = record.body {
                    scanned.end = offset;
                    scanned.crc = record.crc;
                    scanned.head = record.body.position().unwrap_or(scanned.head);
                }
            }
            _ => match file.next_whole(offset, offset, limit).map_err(failed)? {
                Some(witness) => {
                    scanned.damage = scanned.damage.or(Some(offset));
                    offset = witness;
                    chain = None;
                }
                None => break,
            },
        }
    }
    Ok(scanned)
}

/// Makes bytes durable that may be in the page cache only.
fn prove(segments: &Segments, sequence: u64, from: u64, end: u64) -> Result<()> {
    if from >= end {
        return Ok(());
    }
    let file = segments.open(sequence).map_err(|error| segments.read_failed(sequence, error))?;
    let mut buffer = vec![0; 1 << 20];
    let mut offset = from;
    while offset < end {
        let length = (end - offset).min(buffer.len() as u64) as usize;
        let part = buffer.get_mut(..length).unwrap_or_default();
        let filled = fill(file.as_ref(), offset, part).map_err(|error| segments.read_failed(sequence, error))?;
        let bytes = part.get(..filled).filter(|bytes| !bytes.is_empty());
        let bytes = bytes.ok_or_else(|| segments.read_failed(sequence, std::io::ErrorKind::UnexpectedEof.into()))?;
        file.write_at(bytes, offset).map_err(|error| write_failed("prove segment", &segments.name(sequence), error))?;
        offset += filled as u64;
    }
    file.sync().map_err(|error| write_failed("prove segment", &segments.name(sequence), error))
}
