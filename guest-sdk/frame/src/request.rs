//! What the host sends: the records of a piece of a transaction.

use crate::read::{Reader, put_bytes};
use crate::{FrameError, Spent, VERSION};

const HAS_POSITION: u8 = 1;
const HAS_COMMIT_TIME: u8 = 2;

const HAS_DOCUMENT: u8 = 1;
const HAS_PARTITION_KEY: u8 = 2;
const HAS_CONTENT_TYPE: u8 = 4;
const HAS_RELATION: u8 = 8;
const HAS_KEY: u8 = 16;
const HAS_OLD: u8 = 32;

/// Where the count stands in a request.
const COUNT_AT: std::ops::Range<usize> = 2..6;

/// What is known of the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// What earlier calls of the same transaction have used.
    pub spent: Spent,
    /// The end of its commit record, where the host tells it.
    pub position: Option<u64>,
    /// When it was committed, in microseconds since 1970-01-01 00:00:00 UTC, where the host tells it.
    pub commit_time: Option<i64>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// There is a document now.
    Upsert,
    /// The row is gone.
    Delete,
    /// Every row of the collection is gone.
    DeleteCollection,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// What happened.
    pub kind: RecordKind,
    /// The document; an upsert always has one.
    pub document: Option<&'a [u8]>,
    /// Where the change itself places the document.
    pub partition_key: Option<&'a str>,
    /// The document's content type; `None` is `application/json`.
    pub content_type: Option<&'a str>,
    /// The table, where the host tells it.
    pub relation: Option<&'a str>,
    /// The row's key, where the host tells it.
    pub key: Option<&'a str>,
    /// The document before the change, where the host has it and tells it.
    pub old: Option<&'a [u8]>,
}

/// Builds a request.
#[derive(Debug)]
pub struct RequestWriter {
    bytes: Vec<u8>,
    count: u32,
}

impl RequestWriter {
    /// Starts a request in `buffer`, whose content is given up and whose memory is used again.
    pub fn new(mut buffer: Vec<u8>, header: &RequestHeader) -> Self {
        buffer.clear();
        let present = u8::from(header.position.is_some()) * HAS_POSITION + u8::from(header.commit_time.is_some()) * HAS_COMMIT_TIME;
        buffer.extend_from_slice(&[VERSION, present, 0, 0, 0, 0]);
        buffer.extend_from_slice(&header.spent.operations.to_le_bytes());
        buffer.extend_from_slice(&header.spent.batch_bytes.to_le_bytes());
        if let Some(position) = header.position {
            buffer.extend_from_slice(&position.to_le_bytes());
        }
        if let Some(commit_time) = header.commit_time {
            buffer.extend_from_slice(&commit_time.to_le_bytes());
        }
        Self { bytes: buffer, count: 0 }
    }

    /// Appends a record.
    pub fn push(&mut self, record: &Record<'_>) {
        let kind = match record.kind {
            RecordKind::Upsert => 1,
            RecordKind::Delete => 2,
            RecordKind::DeleteCollection => 3,
        };
        let present = u8::from(record.document.is_some()) * HAS_DOCUMENT
            + u8::from(record.partition_key.is_some()) * HAS_PARTITION_KEY
            + u8::from(record.content_type.is_some()) * HAS_CONTENT_TYPE
            + u8::from(record.relation.is_some()) * HAS_RELATION
            + u8::from(record.key.is_some()) * HAS_KEY
            + u8::from(record.old.is_some()) * HAS_OLD;
        self.bytes.extend_from_slice(&[kind, present]);
        let mut put = |field: Option<&[u8]>| {
            if let Some(field) = field {
                put_bytes(&mut self.bytes, field);
            }
        };
        put(record.document);
        put(record.partition_key.map(str::as_bytes));
        put(record.content_type.map(str::as_bytes));
        put(record.relation.map(str::as_bytes));
        put(record.key.map(str::as_bytes));
        put(record.old);
        self.count += 1;
    }

    /// Records so far.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes so far.
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The frame.
    pub fn finish(mut self) -> Vec<u8> {
        if let Some(place) = self.bytes.get_mut(COUNT_AT) {
            place.copy_from_slice(&self.count.to_le_bytes());
        }
        self.bytes
    }
}

/// A request whose header was read.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What is known of the transaction.
    pub header: RequestHeader,
    count: u32,
    records: Reader<'a>,
}

impl<'a> Request<'a> {
    /// Reads the header. Records are read, and checked, one by one.
    ///
    /// # Errors
    /// When the bytes do not begin with a header of this version.
    pub fn parse(frame: &'a [u8]) -> Result<Self, FrameError> {
        let mut reader = Reader(frame);
        reader.version()?;
        let present = reader.byte()?;
        if present > HAS_POSITION | HAS_COMMIT_TIME {
            return Err(reader.error("the header has an unknown field"));
        }
        let count = reader.count()?;
        let spent = Spent { operations: reader.u64()?, batch_bytes: reader.u64()? };
        let position = if present & HAS_POSITION != 0 { Some(reader.u64()?) } else { None };
        let commit_time = if present & HAS_COMMIT_TIME != 0 { Some(reader.u64()?.cast_signed()) } else { None };
        Ok(Self { header: RequestHeader { spent, position, commit_time }, count, records: reader })
    }

    /// How many records the header promises.
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Never: a request holds at least one record.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The records, in order. Ends after the first error.
    pub fn records(&self) -> Records<'a> {
        Records { left: self.count, reader: self.records }
    }
}

/// Iterator over a request's records; made by [`Request::records`].
#[derive(Clone, Debug)]
pub struct Records<'a> {
    left: u32,
    reader: Reader<'a>,
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let record = self.record();
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}

impl<'a> Records<'a> {
    #[inline]
    fn record(&mut self) -> Result<Record<'a>, FrameError> {
        let reader = &mut self.reader;
        let kind = match reader.byte()? {
            1 => RecordKind::Upsert,
            2 => RecordKind::Delete,
            3 => RecordKind::DeleteCollection,
            _ => return Err(reader.error("a record has an unknown kind")),
        };
        let present = reader.byte()?;
        if present >= 2 * HAS_OLD {
            return Err(reader.error("a record has an unknown field"));
        }
        if (kind == RecordKind::Upsert) != (present & HAS_DOCUMENT != 0) {
            return Err(reader.error("an upsert without a document, or a delete with one"));
        }
        let document = if present & HAS_DOCUMENT != 0 { Some(reader.bytes()?) } else { None };
        let partition_key = if present & HAS_PARTITION_KEY != 0 { Some(reader.text()?) } else { None };
        let content_type = if present & HAS_CONTENT_TYPE != 0 { Some(reader.text()?) } else { None };
        let relation = if present & HAS_RELATION != 0 { Some(reader.text()?) } else { None };
        let key = if present & HAS_KEY != 0 { Some(reader.text()?) } else { None };
        let old = if present & HAS_OLD != 0 { Some(reader.bytes()?) } else { None };
        if self.left == 0 {
            reader.end()?;
        }
        Ok(Record { kind, document, partition_key, content_type, relation, key, old })
    }
}
