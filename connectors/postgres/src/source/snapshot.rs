//! The rows that were there before the stream: `COPY` as text in an exported snapshot, through the stream's own encoder.
//!
//! A snapshot cannot be exported from a slot that exists already, so each has a temporary one of its own: its consistent
//! point is the boundary. The exporter's session stays open until the reader has imported the snapshot; the reader's
//! transaction keeps it from then on.

mod copy_text;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};

use tidegate_api::table::quote;
use tidegate_api::{BoxFuture, Change, Chunk, ChunkBuilder, CommitPosition, Error, Operation, Result, Snapshot, TableName, code};

use super::catalogue::Facts;
use super::pgoutput::Cell;
use super::relation::Relation;
use super::wire::{Mode, Wire, literal, malformed, refusal};
use super::{Inner, Unchanged, catalogue, checks, publication, shape, slot};
use crate::connect::Role;

const OPERATION: &str = "read snapshot";

/// What a row takes in a chunk beside its texts, at most.
const ROW_OVERHEAD: usize = 64;

/// Opens a view of the tables as they are at one moment.
pub(crate) async fn begin(inner: &Inner, tables: &[TableName]) -> Result<Box<dyn Snapshot>> {
    let mut reader = Wire::open(&inner.settings, Mode::Ordinary).await?;
    let mut exporter = Wire::open(&inner.settings, Mode::Replication).await?;
    let name = temporary_name(&inner.slot);
    let sql = format!("CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL pgoutput (SNAPSHOT 'export')", quote(&name));
    let created = slot::run_create(&mut reader, &mut exporter, &sql, &name).await?;
    if reader.version >= 170_000 {
        reader.query("SET transaction_timeout = 0", OPERATION).await?;
    }
    reader.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", OPERATION).await?;
    reader.query(&format!("SET TRANSACTION SNAPSHOT {}", literal(&created.snapshot)), OPERATION).await.map_err(lost)?;
    exporter.close().await;

    let facts = catalogue::tables(&mut reader, &inner.publication, tables).await?;
    let role = checks::role(&mut reader).await?;
    checks::refuse(&checks::tables(tables, &facts, &inner.policies, &role, reader.version))?;
    let types: Vec<_> = facts.values().flat_map(|facts| &facts.columns).map(|column| column.type_oid).collect();
    let types: Vec<_> = types.into_iter().filter(|oid| shape::built_in(*oid).is_none()).collect();
    let described = catalogue::describe(&mut reader, &types).await?;
    let mut waiting = VecDeque::new();
    let mut rows = Some(0);
    for name in tables {
        let facts = facts.get(name).filter(|facts| facts.published).ok_or_else(|| unpublished(inner, name))?;
        rows = rows.zip(facts.rows).map(|(rows, more)| rows + more);
        let columns: Vec<_> = facts.columns.iter().map(|column| (column.name.clone(), column.type_oid)).collect();
        let relation = Relation::new(name.clone(), &columns, &facts.key, &described, Unchanged::Refuse)?;
        waiting.push_back((copy_sql(name, facts), relation));
    }
    let boundary = created.consistent_point;
    let (current, chunk, line) = (None, ChunkBuilder::default(), copy_text::Line::default());
    Ok(Box::new(PostgresSnapshot { reader, boundary, rows, waiting, current, chunk, line, document: Vec::new(), key: Vec::new() }))
}

fn unpublished(inner: &Inner, name: &TableName) -> Error {
    let error = Error::new(&code::PUBLICATION_TABLES, OPERATION).with("publication", &inner.publication).with("table", name);
    error.fix(publication::add_sql(&inner.publication, std::slice::from_ref(name)))
}

/// A name that no other snapshot has, of this daemon or another.
fn temporary_name(slot: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_micros();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let slot: String = slot.chars().take(20).collect();
    format!("{slot}_snapshot_{:x}_{:x}_{count:x}", std::process::id(), now & 0xff_ffff_ffff)
}

/// The published columns and rows of one table; of an ordinary table without those of its children.
fn copy_sql(name: &TableName, facts: &Facts) -> String {
    let columns: Vec<_> = facts.columns.iter().map(|column| quote(&column.name)).collect();
    let rows = facts.filter.as_ref().map_or_else(String::new, |filter| format!(" WHERE {filter}"));
    format!("COPY (SELECT {} FROM ONLY {}{rows}) TO STDOUT", columns.join(", "), name.quoted())
}

struct PostgresSnapshot {
    reader: Wire,
    boundary: CommitPosition,
    rows: Option<u64>,
    waiting: VecDeque<(String, Relation)>,
    /// The table whose rows are coming.
    current: Option<Relation>,
    chunk: ChunkBuilder,
    line: copy_text::Line,
    document: Vec<u8>,
    key: Vec<u8>,
}

impl Snapshot for PostgresSnapshot {
    fn boundary(&self) -> CommitPosition {
        self.boundary
    }

    fn estimated_rows(&self) -> Option<u64> {
        self.rows
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Option<Chunk>>> {
        Box::pin(async { self.read().await.map_err(lost) })
    }
}

impl PostgresSnapshot {
    /// Reads until a chunk is full.
    async fn read(&mut self) -> Result<Option<Chunk>> {
        loop {
            if self.current.is_none() {
                let Some((sql, relation)) = self.waiting.pop_front() else {
                    return Ok((!self.chunk.is_empty()).then(|| self.chunk.finish()));
                };
                self.current = Some(relation);
                let started = self.reader.start_copy(&sql, OPERATION).await?;
                started.map_err(|refusal| refusal.into_error(Role::Source, OPERATION))?;
            }
            let frame = self.reader.message(OPERATION).await?;
            match frame.tag {
                b'd' => {
                    let full = self.row(frame)?;
                    if let Some(chunk) = full {
                        // The row that did not fit is still the next message.
                        return Ok(Some(chunk));
                    }
                }
                b'E' => return Err(refusal(self.reader.body(frame)).into_error(Role::Source, OPERATION)),
                b'Z' => self.current = None,
                b'c' | b'C' => {}
                tag => return Err(malformed(OPERATION, tag)),
            }
            self.reader.consume(frame);
        }
    }

    /// Adds a row; gives the chunk before it where it does not fit into that any more.
    fn row(&mut self, frame: super::wire::Frame) -> Result<Option<Chunk>> {
        let Some(relation) = &self.current else { return Err(malformed(OPERATION, frame.tag)) };
        let row = self.reader.body(frame);
        self.line.split(row).ok_or_else(|| malformed(OPERATION, frame.tag))?;
        let cells: Vec<Cell<'_>> = self.line.cells().collect();
        self.document.clear();
        self.key.clear();
        relation.document(&cells, &[], &mut self.document)?;
        relation.key_text(&cells, &[], &mut self.key)?;
        if self.chunk.is_full_for(self.document.len() + self.key.len() + relation.collection.len() + ROW_OVERHEAD) {
            return Ok(Some(self.chunk.finish()));
        }
        let key = std::str::from_utf8(&self.key).map_err(|error| Error::new(&code::PROTOCOL, OPERATION).because(error))?;
        let ordinal = u32::try_from(self.chunk.len()).unwrap_or(u32::MAX);
        let (partition_key, old, content_type, unavailable) = (None, None, None, None);
        let (relation, new) = (relation.collection.as_str(), Some(self.document.as_slice()));
        let operation = Operation::Row;
        self.chunk.push(&Change { ordinal, relation, operation, key, partition_key, old, new, content_type, unavailable });
        Ok(None)
    }
}

/// A lost connection ends the view: another epoch begins by itself.
fn lost(error: Error) -> Error {
    if error.code() == &code::SOURCE_UNREACHABLE { Error::new(&code::SNAPSHOT_LOST, OPERATION).because(error).transient() } else { error }
}
