//! The messages of the plugin pgoutput, protocol versions 1 to 4, borrowed from the bytes that came.
//!
//! Between `StreamStart` and `StreamStop` (version 2 and later) every change carries the xid of its subtransaction; the
//! [`Decoder`] keeps that state. Nothing here panics, whatever the bytes are.

use tidegate_api::Lsn;

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// A transaction begins; its changes follow, then its [`Commit`](Self::Commit).
    Begin {
        /// Where its commit record begins.
        final_lsn: Lsn,
        /// Microseconds since 2000-01-01 00:00:00 UTC.
        commit_time: i64,
        /// Its number.
        xid: u32,
    },
    /// The transaction that was begun is over.
    Commit {
        /// Where its commit record begins.
        commit_lsn: Lsn,
        /// Where its commit record ends.
        end_lsn: Lsn,
        /// Microseconds since 2000-01-01 00:00:00 UTC.
        commit_time: i64,
    },
    /// The transaction came from elsewhere.
    Origin {
        /// The name of that place.
        name: &'a [u8],
    },
    /// A table as the following changes of it have it.
    Relation(Relation<'a>),
    /// A type that is not built in.
    Type {
        /// Its number.
        oid: u32,
    },
    /// A new row.
    Insert {
        /// Its table.
        relation: u32,
        /// The row.
        new: Tuple<'a>,
    },
    /// A changed row.
    Update {
        /// Its table.
        relation: u32,
        /// The row before, as far as the replica identity has it.
        old: Option<Old<'a>>,
        /// The row after.
        new: Tuple<'a>,
    },
    /// A deleted row.
    Delete {
        /// Its table.
        relation: u32,
        /// The row, as far as the replica identity has it.
        old: Old<'a>,
    },
    /// Emptied tables.
    Truncate {
        /// Their numbers, four bytes each, big-endian.
        relations: &'a [u8],
    },
    /// `pg_logical_emit_message`.
    Logical,
    /// A piece of a transaction in progress begins.
    StreamStart {
        /// The transaction.
        xid: u32,
        /// Whether it is its first piece.
        first: bool,
    },
    /// The piece is over.
    StreamStop,
    /// A transaction that came in pieces is over.
    StreamCommit {
        /// The transaction.
        xid: u32,
        /// Where its commit record ends.
        end_lsn: Lsn,
        /// Microseconds since 2000-01-01 00:00:00 UTC.
        commit_time: i64,
    },
    /// A transaction that came in pieces, or a part of it, is taken back.
    StreamAbort {
        /// The transaction.
        xid: u32,
        /// What is taken back: the transaction itself or one of its savepoints.
        subxid: u32,
    },
    /// A transaction that will be prepared begins.
    BeginPrepare,
    /// It is prepared.
    Prepare,
    /// A prepared transaction is committed.
    CommitPrepared,
    /// A prepared transaction is taken back.
    RollbackPrepared,
    /// A transaction that came in pieces is prepared.
    StreamPrepare,
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relation<'a> {
    /// Its number.
    pub oid: u32,
    /// Its schema; empty for `pg_catalog`.
    pub schema: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Its replica identity: `d`, `n`, `f` or `i`.
    pub identity: u8,
    count: u16,
    columns: &'a [u8],
}

/// A column of a [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelationColumn<'a> {
    /// Whether it belongs to the replica identity.
    pub key: bool,
    /// Its name.
    pub name: &'a [u8],
    /// The number of its type.
    pub type_oid: u32,
}

impl<'a> Relation<'a> {
    /// The columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = RelationColumn<'a>> + use<'a> {
        let mut reader = Reader(self.columns);
        (0..self.count).map_while(move |_| reader.relation_column())
    }
}

/// The row before a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Old<'a> {
    /// Whether the whole row is there (`REPLICA IDENTITY FULL`), or only the columns of the key.
    pub full: bool,
    /// The row.
    pub tuple: Tuple<'a>,
}

/// A row, checked to be whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple<'a> {
    count: u16,
    cells: &'a [u8],
}

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// A large value that the change did not touch, and that was not sent.
    Unchanged,
    /// The value as its type writes it.
    Text(&'a [u8]),
    /// The value in binary form: never asked for.
    Binary(&'a [u8]),
}

impl<'a> Tuple<'a> {
    /// How many values there are.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The values, in column order.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'a>> + use<'a> {
        let mut reader = Reader(self.cells);
        (0..self.count).map_while(move |_| reader.cell())
    }
}

/// Decodes messages one after the other.
#[derive(Debug, Default)]
pub struct Decoder {
    in_stream: bool,
}

impl Decoder {
    /// Reads one message; `None` where the bytes are none.
    pub fn decode<'a>(&mut self, bytes: &'a [u8]) -> Option<Message<'a>> {
        let mut reader = Reader(bytes);
        let tag = reader.byte()?;
        if self.in_stream && matches!(tag, b'R' | b'Y' | b'I' | b'U' | b'D' | b'T' | b'M') {
            reader.u32()?;
        }
        let message = match tag {
            b'B' => Message::Begin { final_lsn: reader.lsn()?, commit_time: reader.i64()?, xid: reader.u32()? },
            b'C' => {
                reader.byte()?;
                Message::Commit { commit_lsn: reader.lsn()?, end_lsn: reader.lsn()?, commit_time: reader.i64()? }
            }
            b'O' => {
                reader.lsn()?;
                Message::Origin { name: reader.text()? }
            }
            b'R' => Message::Relation(reader.relation()?),
            b'Y' => {
                let oid = reader.u32()?;
                reader.text()?;
                reader.text()?;
                Message::Type { oid }
            }
            b'I' => {
                let relation = reader.u32()?;
                (reader.byte()? == b'N').then_some(())?;
                Message::Insert { relation, new: reader.tuple()? }
            }
            b'U' => {
                let relation = reader.u32()?;
                let mut kind = reader.byte()?;
                let old = if kind == b'N' {
                    None
                } else {
                    let old = reader.old(kind)?;
                    kind = reader.byte()?;
                    Some(old)
                };
                (kind == b'N').then_some(())?;
                Message::Update { relation, old, new: reader.tuple()? }
            }
            b'D' => {
                let relation = reader.u32()?;
                let kind = reader.byte()?;
                Message::Delete { relation, old: reader.old(kind)? }
            }
            b'T' => {
                let count = reader.u32()?;
                reader.byte()?;
                Message::Truncate { relations: reader.take(usize::try_from(count).ok()?.checked_mul(4)?)? }
            }
            b'M' => return Some(Message::Logical),
            b'S' => {
                self.in_stream = true;
                Message::StreamStart { xid: reader.u32()?, first: reader.byte()? == 1 }
            }
            b'E' => {
                self.in_stream = false;
                Message::StreamStop
            }
            b'c' => {
                let xid = reader.u32()?;
                reader.byte()?;
                reader.lsn()?;
                Message::StreamCommit { xid, end_lsn: reader.lsn()?, commit_time: reader.i64()? }
            }
            b'A' => {
                let message = Message::StreamAbort { xid: reader.u32()?, subxid: reader.u32()? };
                // Version 4 with parallel streaming adds where and when.
                if !reader.0.is_empty() {
                    reader.take(16)?;
                }
                message
            }
            b'b' => return Some(Message::BeginPrepare),
            b'P' => return Some(Message::Prepare),
            b'K' => return Some(Message::CommitPrepared),
            b'r' => return Some(Message::RollbackPrepared),
            b'p' => return Some(Message::StreamPrepare),
            _ => return None,
        };
        reader.0.is_empty().then_some(message)
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    fn lsn(&mut self) -> Option<Lsn> {
        self.array().map(|bytes| Lsn(u64::from_be_bytes(bytes)))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.byte()?;
        Some(text)
    }

    fn relation(&mut self) -> Option<Relation<'a>> {
        let (oid, schema, name, identity, count) = (self.u32()?, self.text()?, self.text()?, self.byte()?, self.u16()?);
        let columns = self.0;
        for _ in 0..count {
            self.relation_column()?;
        }
        Some(Relation { oid, schema, name, identity, count, columns: columns.get(..columns.len() - self.0.len())? })
    }

    fn relation_column(&mut self) -> Option<RelationColumn<'a>> {
        let key = self.byte()? & 1 == 1;
        let column = RelationColumn { key, name: self.text()?, type_oid: self.u32()? };
        self.u32()?;
        Some(column)
    }

    fn old(&mut self, kind: u8) -> Option<Old<'a>> {
        let full = match kind {
            b'O' => true,
            b'K' => false,
            _ => return None,
        };
        Some(Old { full, tuple: self.tuple()? })
    }

    fn tuple(&mut self) -> Option<Tuple<'a>> {
        let count = self.u16()?;
        let cells = self.0;
        for _ in 0..count {
            self.cell()?;
        }
        Some(Tuple { count, cells: cells.get(..cells.len() - self.0.len())? })
    }

    fn cell(&mut self) -> Option<Cell<'a>> {
        Some(match self.byte()? {
            b'n' => Cell::Null,
            b'u' => Cell::Unchanged,
            b't' => Cell::Text(self.sized()?),
            b'b' => Cell::Binary(self.sized()?),
            _ => return None,
        })
    }

    fn sized(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(usize::try_from(length).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tuple(cells: &[&[u8]]) -> Vec<u8> {
        let mut bytes = (cells.len() as u16).to_be_bytes().to_vec();
        for cell in cells {
            bytes.push(b't');
            bytes.extend((cell.len() as u32).to_be_bytes());
            bytes.extend(*cell);
        }
        bytes
    }

    fn samples() -> Vec<Vec<u8>> {
        let row = tuple(&[b"1", b"two"]);
        let relation =
            [b"\0\0\0\x07public\0orders\0d\0\x02".as_slice(), b"\x01id\0\0\0\0\x17\xff\xff\xff\xff", b"\0t\0\0\0\0\x19\xff\xff\xff\xff"]
                .concat();
        [
            [b"B".as_slice(), &[0; 20]].concat(),
            [b"C".as_slice(), &[0; 25]].concat(),
            [b"O".as_slice(), &[0; 8], b"node\0"].concat(),
            [b"R".as_slice(), &relation].concat(),
            b"Y\0\0\0\x09public\0mood\0".to_vec(),
            [b"I\0\0\0\x07N".as_slice(), &row].concat(),
            [b"U\0\0\0\x07K".as_slice(), &row, b"N", &row].concat(),
            [b"U\0\0\0\x07N".as_slice(), b"\0\x02nu"].concat(),
            [b"D\0\0\0\x07O".as_slice(), &row].concat(),
            b"T\0\0\0\x02\0\0\0\0\x07\0\0\0\x08".to_vec(),
            b"S\0\0\0\x01\x01".to_vec(),
            b"E".to_vec(),
            [b"c".as_slice(), &[0; 29]].concat(),
            [b"A".as_slice(), &[0; 8]].concat(),
            [b"A".as_slice(), &[0; 24]].concat(),
        ]
        .to_vec()
    }

    #[test]
    fn a_row_is_given_back_value_by_value() {
        let bytes = [b"U\0\0\0\x07K".as_slice(), &tuple(&[b"1"]), b"N\0\x03nut\0\0\0\x02ok"].concat();
        let Some(Message::Update { relation: 7, old: Some(old), new }) = Decoder::default().decode(&bytes) else { panic!("no update") };
        assert!(!old.full);
        assert_eq!(new.cells().collect::<Vec<_>>(), [Cell::Null, Cell::Unchanged, Cell::Text(b"ok")]);
    }

    #[test]
    fn inside_a_streamed_piece_changes_carry_the_xid_of_their_subtransaction() {
        let mut decoder = Decoder::default();
        decoder.decode(b"S\0\0\0\x01\x01").unwrap();
        let bytes = [b"I\0\0\0\x02\0\0\0\x07N".as_slice(), &tuple(&[b"1"])].concat();
        assert!(matches!(decoder.decode(&bytes), Some(Message::Insert { relation: 7, .. })));
        decoder.decode(b"E").unwrap();
        assert!(decoder.decode(&bytes).is_none());
    }

    #[test]
    fn messages_that_end_early_or_late_are_none() {
        for sample in samples() {
            assert!(Decoder::default().decode(&sample).is_some(), "{sample:?}");
            for end in 0..sample.len() {
                let cut = Decoder::default().decode(&sample[..end]);
                assert!(cut.is_none() || sample[0] == b'A', "{sample:?} cut at {end}");
            }
            if sample[0] != b'A' {
                assert!(Decoder::default().decode(&[sample.as_slice(), b"x"].concat()).is_none(), "{sample:?}");
            }
        }
    }

    #[test]
    fn mutated_messages_never_panic() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        for sample in samples() {
            for _ in 0..5_000 {
                let mut bytes = sample.clone();
                for _ in 0..1 + random() % 4 {
                    let place = random() % bytes.len();
                    bytes[place] = random() as u8;
                }
                bytes.truncate(1 + random() % (bytes.len() + 8));
                let mut decoder = Decoder { in_stream: random() % 2 == 0 };
                match decoder.decode(&bytes) {
                    Some(Message::Relation(relation)) => assert!(relation.columns().count() <= usize::from(u16::MAX)),
                    Some(Message::Insert { new, .. } | Message::Update { new, .. }) => assert_eq!(new.cells().count(), new.len()),
                    _ => {}
                }
            }
        }
    }
}
