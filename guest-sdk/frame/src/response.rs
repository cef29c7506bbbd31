//! What a guest answers: an outcome for each record, or poison.

use crate::read::{Reader, encode_length, put_bytes};
use crate::{FrameError, MAX_KIND_BYTES, MAX_REASON_BYTES, Spent, VERSION};

const OUTCOMES: u8 = 1;
const POISON: u8 = 2;

const KEEP: u8 = 1;
const DELETE: u8 = 2;
const DROP: u8 = 3;

const HAS_DOCUMENT: u8 = 1;
const HAS_PARTITION_KEY: u8 = 2;
const HAS_COLLECTION: u8 = 4;

const NO_INDEX: u32 = u32::MAX;

/// `version verdict count operations batch_bytes`.
const HEADER_BYTES: usize = 22;

/// `kind present length`, in front of an item's document.
const ITEM_BYTES: usize = 6;

/// Where a record that goes on is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place<'a> {
    /// What to place the document by; `None`: as it came.
    pub partition_key: Option<&'a str>,
    /// The collection, one of those that the pipeline declares; `None`: the table's own.
    pub collection: Option<&'a str>,
}

impl Place<'_> {
    #[inline]
    fn present(&self) -> u8 {
        u8::from(self.partition_key.is_some()) * HAS_PARTITION_KEY + u8::from(self.collection.is_some()) * HAS_COLLECTION
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        for text in [self.partition_key, self.collection].into_iter().flatten() {
            put_bytes(out, text.as_bytes());
        }
    }
}

/// Builds the outcomes of a response.
#[derive(Debug)]
pub struct ResponseWriter {
    bytes: Vec<u8>,
    count: u32,
}

impl ResponseWriter {
    /// Starts a response that will take about `capacity` bytes.
    pub fn new(capacity: usize) -> Self {
        let mut bytes = Vec::with_capacity(capacity.max(HEADER_BYTES));
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes, count: 0 }
    }

    /// Starts the next outcome, which is a drop until it is said otherwise.
    #[inline]
    pub fn item(&mut self) -> Item<'_> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; ITEM_BYTES]);
        Item { writer: self, start }
    }

    /// Outcomes so far.
    #[inline]
    pub fn len(&self) -> u32 {
        self.count
    }

    /// Whether there are none so far.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes so far.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The frame.
    pub fn finish(mut self, spent: Spent) -> Vec<u8> {
        if let Some(header) = self.bytes.first_chunk_mut::<HEADER_BYTES>() {
            let mut rest = header.as_mut_slice();
            for part in
                [&[VERSION, OUTCOMES][..], &self.count.to_le_bytes(), &spent.operations.to_le_bytes(), &spent.batch_bytes.to_le_bytes()]
            {
                let (place, behind) = rest.split_at_mut(part.len());
                place.copy_from_slice(part);
                rest = behind;
            }
        }
        self.bytes
    }
}

/// One outcome while it is written; made by [`ResponseWriter::item`].
///
/// Documents are written where they will be read: nothing is copied.
#[derive(Debug)]
pub struct Item<'a> {
    writer: &'a mut ResponseWriter,
    start: usize,
}

impl Item<'_> {
    /// The buffer to append the document to. Nothing that was there before may be changed.
    #[inline]
    pub fn document(&mut self) -> &mut Vec<u8> {
        &mut self.writer.bytes
    }

    /// The record goes on with what was appended, even where that is nothing: an upsert.
    #[inline]
    pub fn keep_document(self, place: Place<'_>) {
        let bytes = &mut self.writer.bytes;
        let length = encode_length(bytes.len().saturating_sub(self.start + ITEM_BYTES));
        let present = HAS_DOCUMENT + place.present();
        if let Some(place) = bytes.get_mut(self.start..self.start + ITEM_BYTES) {
            let [a, b, c, d] = length;
            place.copy_from_slice(&[KEEP, present, a, b, c, d]);
        }
        place.put(bytes);
        self.writer.count += 1;
    }

    /// The record goes on without a document: a delete.
    pub fn keep(mut self, place: Place<'_>) {
        self.plain(KEEP, place.present());
        place.put(&mut self.writer.bytes);
    }

    /// The row is deleted at the destination.
    pub fn delete(mut self) {
        self.plain(DELETE, 0);
    }

    /// The row is not for this destination.
    pub fn drop_row(mut self) {
        self.plain(DROP, 0);
    }

    /// Takes back what was appended and writes an outcome without a document.
    fn plain(&mut self, kind: u8, present: u8) {
        self.writer.bytes.truncate(self.start);
        self.writer.bytes.extend_from_slice(&[kind, present]);
        self.writer.count += 1;
    }
}

/// A response that refuses the transaction. Kind and reason are cut where they are too long.
pub fn write_poison(index: Option<u32>, kind: &str, reason: &str) -> Vec<u8> {
    let mut bytes = vec![VERSION, POISON];
    bytes.extend_from_slice(&index.unwrap_or(NO_INDEX).to_le_bytes());
    put_bytes(&mut bytes, cut(kind, MAX_KIND_BYTES).as_bytes());
    put_bytes(&mut bytes, cut(reason, MAX_REASON_BYTES).as_bytes());
    bytes
}

fn cut(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or_default()
}

/// A response that was read as far as its header.
#[derive(Clone, Copy, Debug)]
pub enum Response<'a> {
    /// Outcomes of the first records of the request, at least of one.
    Outcomes(Outcomes<'a>),
    /// The transaction is refused.
    Poison(PoisonFrame<'a>),
}

/// Why a guest refused a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoisonFrame<'a> {
    /// The guilty record of the request; `None` where no single one is.
    pub index: Option<u32>,
    /// The stable name of the reason.
    pub kind: &'a str,
    /// For people.
    pub reason: &'a str,
}

impl<'a> Response<'a> {
    /// Reads a response to a request of `records` records. Outcomes are read, and checked, one by one.
    ///
    /// # Errors
    /// When the bytes are no response of this version, or answer more records than were asked.
    pub fn parse(frame: &'a [u8], records: u32) -> Result<Self, FrameError> {
        let mut reader = Reader(frame);
        reader.version()?;
        match reader.byte()? {
            OUTCOMES => {
                let count = reader.count()?;
                if count > records {
                    return Err(reader.error("it answers more records than were asked"));
                }
                let spent = Spent { operations: reader.u64()?, batch_bytes: reader.u64()? };
                Ok(Self::Outcomes(Outcomes { spent, total: count, left: count, length: frame.len(), reader }))
            }
            POISON => poison(&mut reader, records).map(Self::Poison),
            _ => Err(reader.error("it is neither outcomes nor poison")),
        }
    }
}

fn poison<'a>(reader: &mut Reader<'a>, records: u32) -> Result<PoisonFrame<'a>, FrameError> {
    let index = Some(reader.u32()?).filter(|index| *index != NO_INDEX);
    if index.is_some_and(|index| index >= records) {
        return Err(reader.error("the guilty record is none of the request"));
    }
    let kind = reader.text()?;
    let letters = kind.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    if kind.is_empty() || kind.len() > MAX_KIND_BYTES || !letters {
        return Err(reader.error("the kind of the poison is not a name"));
    }
    let reason = reader.text()?;
    if reason.len() > MAX_REASON_BYTES {
        return Err(reader.error("the reason of the poison is too long"));
    }
    reader.end()?;
    Ok(PoisonFrame { index, kind, reason })
}

/// What becomes of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'a> {
    /// It goes on.
    Keep {
        /// The document to store, and where it begins in the frame.
        document: Option<(usize, &'a [u8])>,
        /// Where to place it, and where that text begins in the frame; `None`: as it came.
        partition_key: Option<(usize, &'a str)>,
        /// The collection, and where that text begins in the frame; `None`: the table's own.
        collection: Option<(usize, &'a str)>,
    },
    /// The row is deleted at the destination.
    Delete,
    /// The row is not for this destination.
    Drop,
}

/// Iterator over the outcomes of a response. Ends after the first error.
#[derive(Clone, Copy, Debug)]
pub struct Outcomes<'a> {
    /// What the transaction has used now.
    pub spent: Spent,
    total: u32,
    left: u32,
    length: usize,
    reader: Reader<'a>,
}

impl<'a> Iterator for Outcomes<'a> {
    type Item = Result<Outcome<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let outcome = self.outcome();
        if outcome.is_err() {
            self.left = 0;
        }
        Some(outcome)
    }
}

impl<'a> Outcomes<'a> {
    /// How many outcomes the header promises.
    pub fn len(&self) -> u32 {
        self.total
    }

    /// Never: a response holds at least one outcome.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    fn outcome(&mut self) -> Result<Outcome<'a>, FrameError> {
        let length = self.length;
        let reader = &mut self.reader;
        let kind = reader.byte()?;
        let present = reader.byte()?;
        let known = match kind {
            KEEP => HAS_DOCUMENT | HAS_PARTITION_KEY | HAS_COLLECTION,
            DELETE | DROP => 0,
            _ => return Err(reader.error("an outcome has an unknown kind")),
        };
        if present & !known != 0 {
            return Err(reader.error("an outcome has an unknown field"));
        }
        let outcome = match kind {
            KEEP => {
                let document = if present & HAS_DOCUMENT != 0 { Some(reader.bytes()?) } else { None };
                let document = document.map(|bytes| (length - reader.0.len() - bytes.len(), bytes));
                let mut text = |bit| -> Result<_, FrameError> {
                    let text = if present & bit != 0 { Some(reader.text()?) } else { None };
                    Ok(text.map(|text| (length - reader.0.len() - text.len(), text)))
                };
                Outcome::Keep { document, partition_key: text(HAS_PARTITION_KEY)?, collection: text(HAS_COLLECTION)? }
            }
            DELETE => Outcome::Delete,
            _ => Outcome::Drop,
        };
        if self.left == 0 {
            reader.end()?;
        }
        Ok(outcome)
    }
}
