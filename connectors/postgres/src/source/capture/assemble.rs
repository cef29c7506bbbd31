//! From messages to what the relay takes: changes are rendered into chunks, chunks belong to commits.

use std::collections::HashMap;

use tidegate_api::{Captured, Change, ChunkBuilder, CommitPosition, Error, Operation, Result, TableName, TransactionMeta, code};

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

/// Values that were not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    pub(crate) table: TableName,
    /// The key: columns and texts.
    pub(crate) key: Vec<(String, String)>,
    /// The columns to read: names and places.
    pub(crate) columns: Vec<(String, usize)>,
}

/// What came of reading them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// The row's values now, in the order of [`Missing::columns`].
    Values(Vec<(usize, Option<Vec<u8>>)>),
    /// There is no such row any more: a later change in the stream takes it away.
    Gone,
    /// They cannot be read: the change goes on without its document, and says what is missing.
    Unreadable,
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
    scratch: Scratch,
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

/// Buffers that are used again for every change.
#[derive(Default)]
struct Scratch {
    cells: Vec<Cell<'static>>,
    before: Vec<Cell<'static>>,
    document: Vec<u8>,
    old_document: Vec<u8>,
    key: Vec<u8>,
    old_key: Vec<u8>,
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
            scratch: Scratch::default(),
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
        let change = bare(&relation.collection, Operation::Truncate, "");
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
        let mut cells = recycle(std::mem::take(&mut self.scratch.cells));
        let mut before = recycle(std::mem::take(&mut self.scratch.before));
        cells.extend(new.iter().flat_map(Tuple::cells));
        before.extend(old.iter().flat_map(|old| old.tuple.cells().map(|cell| known(cell, old.full))));
        let rows = Rows { relation, operation, cells: &mut cells, before: &before, full: old.is_some_and(|old| old.full), fill };
        let step = rows.render(&mut self.scratch).and_then(|rendered| match rendered {
            Rendered::Missing(missing) => Ok(Step::Reselect(missing)),
            Rendered::Row { document, moved, missing } => {
                emit(&self.scratch, relation, operation, document, moved, missing.as_deref(), open, &mut self.chunk, out)?;
                Ok(Step::Taken)
            }
        });
        self.scratch.cells = recycle(cells);
        self.scratch.before = recycle(before);
        step
    }
}

/// One change about to be rendered.
struct Rows<'r, 'a> {
    relation: &'r Relation,
    operation: Operation,
    cells: &'r mut Vec<Cell<'a>>,
    before: &'r [Cell<'a>],
    full: bool,
    fill: Option<&'a Fill>,
}

enum Rendered {
    /// Values must be read from the table first.
    Missing(Missing),
    /// The texts are in the scratch buffers.
    Row {
        /// Whether there is a document of the row after the change.
        document: bool,
        /// Whether the key before it is another.
        moved: bool,
        /// The columns that are missing in the document.
        missing: Option<String>,
    },
}

impl Rows<'_, '_> {
    fn render(self, scratch: &mut Scratch) -> Result<Rendered> {
        scratch.document.clear();
        scratch.old_document.clear();
        scratch.key.clear();
        scratch.old_key.clear();
        let relation = self.relation;
        if self.full {
            let whole = relation.document(self.before, &[], &mut scratch.old_document)?;
            if !whole {
                scratch.old_document.clear();
            }
        }
        if self.operation == Operation::Delete {
            relation.key_text(self.before, &[], &mut scratch.key)?;
            return Ok(Rendered::Row { document: false, moved: false, missing: None });
        }
        relation.key_text(self.cells, self.before, &mut scratch.key)?;
        let mut moved = false;
        if !self.before.is_empty() {
            relation.key_text(self.before, &[], &mut scratch.old_key)?;
            moved = scratch.old_key != scratch.key;
        }
        match self.fill {
            Some(Fill::Values(values)) => {
                for (place, value) in values {
                    if let Some(cell) = self.cells.get_mut(*place) {
                        *cell = value.as_deref().map_or(Cell::Null, Cell::Text);
                    }
                }
            }
            Some(Fill::Gone) => return Ok(Rendered::Row { document: false, moved, missing: None }),
            Some(Fill::Unreadable) | None => {}
        }
        if relation.document(self.cells, self.before, &mut scratch.document)? {
            return Ok(Rendered::Row { document: true, moved, missing: None });
        }
        let missing = relation.missing(self.cells, self.before);
        let name = |place: &usize| relation.columns.get(*place).map(|column| column.name.clone()).unwrap_or_default();
        if relation.unchanged == Unchanged::Reselect && self.fill.is_none() {
            let text = |place: &usize| match self.cells.get(*place) {
                Some(Cell::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                _ => match self.before.get(*place) {
                    Some(Cell::Text(text)) => String::from_utf8_lossy(text).into_owned(),
                    _ => String::new(),
                },
            };
            return Ok(Rendered::Missing(Missing {
                table: relation.table.clone(),
                key: relation.key.iter().map(|place| (name(place), text(place))).collect(),
                columns: missing.iter().map(|place| (name(place), *place)).collect(),
            }));
        }
        let names: Vec<_> = missing.iter().map(name).collect();
        Ok(Rendered::Row { document: false, moved, missing: Some(names.join(", ")) })
    }
}

/// Puts what was rendered into the chunk: one change, or two where the key moved.
#[expect(clippy::too_many_arguments, reason = "the parts of the assembler, borrowed one by one")]
fn emit(
    scratch: &Scratch,
    relation: &Relation,
    operation: Operation,
    document: bool,
    moved: bool,
    missing: Option<&str>,
    open: &mut Open,
    chunk: &mut ChunkBuilder,
    out: &mut Vec<Captured>,
) -> Result<()> {
    let key = std::str::from_utf8(&scratch.key).map_err(|_| protocol("a key that is no utf-8"))?;
    let old = (!scratch.old_document.is_empty()).then_some(scratch.old_document.as_slice());
    let mut change = bare(&relation.collection, operation, key);
    if moved {
        let old_key = std::str::from_utf8(&scratch.old_key).map_err(|_| protocol("a key that is no utf-8"))?;
        let gone = Change { old, ..bare(&relation.collection, Operation::Delete, old_key) };
        push(chunk, open, gone, out)?;
        change.operation = Operation::Insert;
    } else {
        change.old = old;
    }
    if document {
        change.new = Some(&scratch.document);
    } else if missing.is_some() {
        change.unavailable = missing;
    } else {
        // Deleted, or gone before it could be read again.
        change.operation = Operation::Delete;
    }
    push(chunk, open, change, out)
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

fn bare<'a>(relation: &'a str, operation: Operation, key: &'a str) -> Change<'a> {
    let (partition_key, old, new, content_type, unavailable) = (None, None, None, None, None);
    Change { ordinal: 0, relation, operation, key, partition_key, old, new, content_type, unavailable }
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
