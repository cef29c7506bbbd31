//! From messages to what the relay takes: changes are rendered into chunks, chunks belong to commits.

use std::collections::HashMap;

use tidegate_api::{Captured, Change, ChunkBuilder, CommitPosition, Error, Operation, Result, TableName, TransactionMeta, code};

use super::row::{self, Fill, Missing, Rendered, Row, Texts};
use crate::source::pgoutput::{Cell, Decoder, Message, Old, Tuple};
use crate::source::relation::Relation;
use crate::source::{Unchanged, pgoutput};

const OPERATION: &str = "decode";

/// Microseconds from 1970-01-01 to 2000-01-01.
const POSTGRES_EPOCH_US: i64 = 946_684_800_000_000;

/// What a change takes in a chunk beside its texts, at most.
const CHANGE_OVERHEAD: usize = 64;

/// What must be had before a message can be taken; the message is then given again.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It was taken.
    Taken,
    /// The table must be looked up in the catalogue.
    Describe(RelationMessage),
    /// Values that were not sent must be read from the table.
    Reselect(Missing),
}

/// A table as the stream announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelationMessage {
    pub(crate) oid: u32,
    pub(crate) table: TableName,
    pub(crate) identity: u8,
    /// Names and types.
    pub(crate) columns: Vec<(String, u32)>,
    /// The names of those that belong to the replica identity.
    pub(crate) identity_columns: Vec<String>,
}

/// Takes messages one after the other.
pub(crate) struct Assembler {
    decoder: Decoder,
    /// The tables that were announced; `None` for those that nobody reads.
    relations: HashMap<u32, Option<Announced>>,
    wanted: HashMap<TableName, Unchanged>,
    /// Transactions that end at or before it were durable when this capture began.
    durable: CommitPosition,
    open: Option<Open>,
    chunk: ChunkBuilder,
    // Used again for every change.
    cells: Vec<Cell<'static>>,
    before: Vec<Cell<'static>>,
    texts: Texts,
}

/// A table that somebody reads: what the stream said, and what the catalogue made of it.
struct Announced {
    message: RelationMessage,
    relation: Relation,
}

/// The transaction that is being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    xid: u32,
    ordinal: u32,
    changes: u64,
    /// Whether it was durable already.
    known: bool,
}

impl Assembler {
    pub(crate) fn new(wanted: HashMap<TableName, Unchanged>, durable: CommitPosition) -> Self {
        Self {
            decoder: Decoder::default(),
            relations: HashMap::new(),
            wanted,
            durable,
            open: None,
            chunk: ChunkBuilder::default(),
            cells: Vec::new(),
            before: Vec::new(),
            texts: Texts::default(),
        }
    }

    /// Whether no transaction is being read: a position that the server names then has nothing before it that is still
    /// to come.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_none()
    }

    /// Takes the answer to [`Step::Describe`].
    pub(crate) fn describe(&mut self, message: RelationMessage, relation: Relation) {
        self.relations.insert(message.oid, Some(Announced { message, relation }));
    }

    /// How the table of this change was announced. Types may be altered without a new announcement: where a value does
    /// not fit, the table is to be looked up again before that is a fault.
    pub(crate) fn announced(&self, change: &[u8]) -> Option<RelationMessage> {
        let (oid, _) = change.get(1..)?.split_first_chunk::<4>()?;
        let announced = self.relations.get(&u32::from_be_bytes(*oid))?.as_ref()?;
        Some(announced.message.clone())
    }

    /// Takes one message of the plugin. `fill` answers the [`Step::Reselect`] that the same message gave before.
    ///
    /// # Errors
    /// Bytes that the protocol does not allow, and values that do not fit their types.
    pub(crate) fn take(&mut self, bytes: &[u8], fill: Option<&Fill>, out: &mut Vec<Captured>) -> Result<Step> {
        let message = self.decoder.decode(bytes);
        match message.ok_or_else(|| protocol("malformed message").with("tag", bytes.first().copied().unwrap_or(0)))? {
            Message::Begin { final_lsn, xid, .. } => {
                if self.open.is_some() {
                    return Err(protocol("a transaction within a transaction"));
                }
                // A durable position is the end of a record: a commit record that begins before it ends at or before it.
                let known = final_lsn < self.durable.0;
                self.open = Some(Open { xid, ordinal: 0, changes: 0, known });
            }
            Message::Commit { end_lsn, commit_time, .. } => {
                let open = self.open.take().ok_or_else(|| protocol("a commit without its begin"))?;
                let position = CommitPosition(end_lsn);
                if open.known {
                    if position > self.durable {
                        return Err(protocol("a commit that ends behind the durable position it began before"));
                    }
                } else if open.changes == 0 {
                    out.push(Captured::Idle { position });
                } else {
                    let commit_time_us = commit_time.saturating_add(POSTGRES_EPOCH_US);
                    let meta = TransactionMeta { xid: open.xid, position, commit_time_us, changes: open.changes };
                    out.push(Captured::Commit { meta, chunk: self.chunk.finish() });
                }
            }
            Message::Relation(relation) => {
                let described = relation_message(&relation)?;
                if self.wanted.contains_key(&described.table) {
                    return Ok(Step::Describe(described));
                }
                self.relations.insert(relation.oid, None);
            }
            Message::Insert { relation, new } => return self.row(relation, Operation::Insert, None, Some(new), fill, out),
            Message::Update { relation, old, new } => return self.row(relation, Operation::Update, old, Some(new), fill, out),
            Message::Delete { relation, old } => return self.row(relation, Operation::Delete, Some(old), None, fill, out),
            Message::Truncate { relations } => {
                for oid in relations.as_chunks::<4>().0 {
                    self.truncate(u32::from_be_bytes(*oid), out)?;
                }
            }
            Message::Type { .. } | Message::Origin { .. } | Message::Logical => {}
            Message::StreamStart { .. }
            | Message::StreamStop
            | Message::StreamCommit { .. }
            | Message::StreamAbort { .. }
            | Message::BeginPrepare
            | Message::Prepare
            | Message::CommitPrepared
            | Message::RollbackPrepared
            | Message::StreamPrepare => return Err(protocol("a message of a mode that was not asked for")),
        }
        Ok(Step::Taken)
    }

    fn truncate(&mut self, oid: u32, out: &mut Vec<Captured>) -> Result<()> {
        let open = self.open.as_mut().ok_or_else(|| protocol("a change outside of a transaction"))?;
        // A table that was not announced is none of ours: the server announces before it truncates.
        let Some(Some(Announced { relation, .. })) = self.relations.get(&oid) else { return Ok(()) };
        let change = row::bare(&relation.collection, Operation::Truncate, "");
        push(&mut self.chunk, open, change, out)
    }

    fn row(
        &mut self,
        oid: u32,
        operation: Operation,
        old: Option<Old<'_>>,
        new: Option<Tuple<'_>>,
        fill: Option<&Fill>,
        out: &mut Vec<Captured>,
    ) -> Result<Step> {
        let open = self.open.as_mut().ok_or_else(|| protocol("a change outside of a transaction"))?;
        let relation = self.relations.get(&oid).ok_or_else(|| protocol("a change of a table that was not announced"))?;
        let Some(Announced { relation, .. }) = relation else { return Ok(Step::Taken) };
        if open.known {
            return Ok(Step::Taken);
        }
        let mut cells = recycle(std::mem::take(&mut self.cells));
        let mut before = recycle(std::mem::take(&mut self.before));
        cells.extend(new.iter().flat_map(Tuple::cells));
        before.extend(old.iter().flat_map(|old| old.tuple.cells().map(|cell| known(cell, old.full))));
        let row = Row { relation, operation, before: &before, full: old.is_some_and(|old| old.full), fill };
        let step = row.render(&mut cells, &mut self.texts).and_then(|rendered| match rendered {
            Rendered::Missing(missing) => Ok(Step::Reselect(missing)),
            Rendered::Whole(outcome) => {
                for change in row.changes(&outcome, &self.texts)?.into_iter().flatten() {
                    push(&mut self.chunk, open, change, out)?;
                }
                Ok(Step::Taken)
            }
        });
        self.cells = recycle(cells);
        self.before = recycle(before);
        step
    }
}

fn push(chunk: &mut ChunkBuilder, open: &mut Open, change: Change<'_>, out: &mut Vec<Captured>) -> Result<()> {
    if open.known {
        return Ok(());
    }
    let texts = [change.new, change.old, change.unavailable.map(str::as_bytes)];
    let bytes: usize = texts.iter().flatten().map(|text| text.len()).sum();
    if chunk.is_full_for(bytes + change.key.len() + change.relation.len() + CHANGE_OVERHEAD) {
        out.push(Captured::Part(chunk.finish()));
    }
    chunk.push(&Change { ordinal: open.ordinal, ..change });
    open.ordinal = open.ordinal.checked_add(1).ok_or_else(|| protocol("a transaction of more than 4 billion changes"))?;
    open.changes += 1;
    Ok(())
}

/// A key image holds NULL in place of everything that is no key, and key columns are never null.
fn known(cell: Cell<'_>, full: bool) -> Cell<'_> {
    if !full && cell == Cell::Null { Cell::Unchanged } else { cell }
}

fn relation_message(relation: &pgoutput::Relation<'_>) -> Result<RelationMessage> {
    let name = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).map_err(|_| protocol("a name that is no utf-8"));
    let schema = if relation.schema.is_empty() { "pg_catalog".to_owned() } else { name(relation.schema)? };
    let mut columns = Vec::new();
    let mut identity_columns = Vec::new();
    for column in relation.columns() {
        let text = name(column.name)?;
        if column.key {
            identity_columns.push(text.clone());
        }
        columns.push((text, column.type_oid));
    }
    let table = TableName::new(schema, name(relation.name)?);
    Ok(RelationMessage { oid: relation.oid, table, identity: relation.identity, columns, identity_columns })
}

/// The same allocation for cells of another life: an iterator that maps in place keeps it.
fn recycle<'b>(mut cells: Vec<Cell<'_>>) -> Vec<Cell<'b>> {
    cells.clear();
    cells.into_iter().map(|_| Cell::Null).collect()
}

fn protocol(what: &'static str) -> Error {
    Error::new(&code::PROTOCOL, OPERATION).because(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Vec<u8> {
        [b"t".as_slice(), &(value.len() as u32).to_be_bytes(), value.as_bytes()].concat()
    }

    fn begin(final_lsn: u64) -> Vec<u8> {
        [b"B".as_slice(), &final_lsn.to_be_bytes(), &[0; 8], &7u32.to_be_bytes()].concat()
    }

    fn commit(end: u64) -> Vec<u8> {
        [b"C\0".as_slice(), &(end - 8).to_be_bytes(), &end.to_be_bytes(), &[0; 8]].concat()
    }

    fn insert(id: &str) -> Vec<u8> {
        [b"I\0\0\0\x07N\0\x02".as_slice(), &text(id), &text("x")].concat()
    }

    fn update(old: &str, new: &str) -> Vec<u8> {
        [b"U\0\0\0\x07K\0\x02".as_slice(), &text(old), b"nN\0\x02", &text(new), b"u"].concat()
    }

    /// An assembler that knows one table `t (id int, t text)`, behind position 1000.
    fn assembler(unchanged: Unchanged) -> Assembler {
        let table = TableName::new("public", "t");
        let mut assembler = Assembler::new(HashMap::from([(table.clone(), unchanged)]), CommitPosition::new(1000));
        let columns = vec![("id".to_owned(), 23), ("t".to_owned(), 25)];
        let key = ["id".to_owned()];
        let relation = Relation::new(table.clone(), &columns, &key, &HashMap::new(), unchanged).unwrap();
        assembler.describe(RelationMessage { oid: 7, table, identity: b'd', columns, identity_columns: key.to_vec() }, relation);
        assembler
    }

    #[test]
    fn what_ends_at_or_before_the_durable_position_is_passed_over_and_nothing_else() {
        let mut assembler = assembler(Unchanged::Refuse);
        let mut out = Vec::new();
        for message in [begin(992), insert("1"), commit(1000), begin(1000), insert("2"), commit(1008), begin(1008), commit(1016)] {
            assert_eq!(assembler.take(&message, None, &mut out).unwrap(), Step::Taken);
        }
        let [Captured::Commit { meta, chunk }, Captured::Idle { position }] = out.as_slice() else { panic!("{out:?}") };
        assert_eq!((meta.position.offset(), meta.changes, position.offset()), (1008, 1, 1016));
        assert_eq!(chunk.changes().map(|change| change.key.to_owned()).collect::<Vec<_>>(), ["2"]);
        assembler.take(&begin(992), None, &mut out).unwrap();
        assert!(assembler.take(&commit(1024), None, &mut out).is_err(), "a durable transaction cannot end behind the durable position");
    }

    #[test]
    fn values_that_were_not_sent_are_asked_for_by_the_new_key() {
        let mut assembler = assembler(Unchanged::Reselect);
        let mut out = Vec::new();
        assembler.take(&begin(1000), None, &mut out).unwrap();
        let step = assembler.take(&update("1", "2"), None, &mut out).unwrap();
        let missing = Missing {
            table: TableName::new("public", "t"),
            key: vec![("id".to_owned(), "2".to_owned())],
            columns: vec![("t".to_owned(), 1)],
        };
        assert_eq!(step, Step::Reselect(missing));
        let fill = Fill::Values(vec![(1, Some(b"now".to_vec()))]);
        assert_eq!(assembler.take(&update("1", "2"), Some(&fill), &mut out).unwrap(), Step::Taken);
        assembler.take(&commit(1008), None, &mut out).unwrap();
        let [Captured::Commit { chunk, .. }] = out.as_slice() else { panic!("{out:?}") };
        let changes: Vec<_> = chunk.changes().map(|change| (change.operation, change.key, change.new)).collect();
        let document = br#"{"id":2,"t":"now"}"#.as_slice();
        assert_eq!(changes, [(Operation::Delete, "1", None), (Operation::Insert, "2", Some(document))]);
    }

    #[test]
    fn messages_in_any_order_and_mutated_never_panic() {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        for _ in 0..300 {
            let mut assembler = assembler(if random() % 2 == 0 { Unchanged::Refuse } else { Unchanged::Reselect });
            let mut out = Vec::new();
            for _ in 0..60 {
                let samples = [
                    begin(1000),
                    insert("1"),
                    update("1", "2"),
                    commit(1008),
                    b"T\0\0\0\x01\0\0\0\0\x07".to_vec(),
                    b"S\0\0\0\x01\x01".to_vec(),
                ];
                let mut message = samples[random() % samples.len()].clone();
                if random() % 3 == 0 {
                    let place = random() % message.len();
                    message[place] = random() as u8;
                }
                if random() % 8 == 0 {
                    message.truncate(random() % message.len());
                }
                let _ = assembler.take(&message, None, &mut out);
            }
        }
    }
}
