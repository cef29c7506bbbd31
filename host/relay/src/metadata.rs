//! What is not in the segments: a small SQLite file beside them.
//!
//! # Format 1 (`PRAGMA user_version`)
//!
//! ```text
//! sources(name, state, incarnation, identity)   state: new | creating | ready; identity: JSON, null until it is ready
//! groups(source, name, checkpoint, generation, fence, owner)
//! ```
//!
//! A checkpoint is the 64 bits of a position, as a signed integer. Every statement is durable when it returns
//! (`synchronous = FULL`). A checkpoint moves only by compare-and-set on fence and generation (Invariant 3).

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, Transaction, params};
use tidegate_api::{CommitPosition, Error, Result, SourceIdentity, code};

use crate::error::metadata;

const FORMAT: i64 = 1;

const TABLES: &str = "
create table sources (
    name text primary key,
    state text not null check (state in ('new', 'creating', 'ready')),
    incarnation integer not null,
    identity text
) strict;
create table groups (
    source text not null references sources (name),
    name text not null,
    checkpoint integer not null,
    generation integer not null,
    fence integer not null,
    owner text not null,
    primary key (source, name)
) strict;
";

/// How far a source's creation has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    New,
    Creating,
    Ready(SourceIdentity),
}

/// A group, as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct StoredGroup {
    pub(crate) name: String,
    pub(crate) checkpoint: CommitPosition,
    pub(crate) generation: u64,
    pub(crate) fence: u64,
}

/// A checkpoint to be written, and what must still hold then.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) name: String,
    pub(crate) checkpoint: CommitPosition,
    pub(crate) generation: u64,
    pub(crate) fence: u64,
}

/// The open file.
#[derive(Debug)]
pub(crate) struct Metadata(Mutex<Connection>);

impl Metadata {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let failed = metadata("open relay metadata");
        let connection = Connection::open(path).map_err(&failed)?;
        let prepare = || -> rusqlite::Result<i64> {
            connection.busy_timeout(std::time::Duration::from_secs(5))?;
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        match prepare().map_err(&failed)? {
            0 => {
                let tables = format!("begin immediate; {TABLES} pragma user_version = {FORMAT}; commit;");
                connection.execute_batch(&tables).map_err(&failed)?;
            }
            FORMAT => {}
            other => return Err(Error::new(&code::RELAY_FORMAT, "open relay metadata").with("format", other)),
        }
        Ok(Self(Mutex::new(connection)))
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in one transaction.
    fn write<T>(&self, operation: &'static str, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> Result<T> {
        let mut connection = self.connection();
        let run = || {
            let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
            let value = work(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        run().map_err(metadata(operation))
    }

    /// A source's state and incarnation; it is added where it is new.
    pub(crate) fn source(&self, source: &str) -> Result<(State, u64)> {
        let (state, incarnation, identity) = self.write("open source in relay", |transaction| {
            transaction.execute("insert into sources values (?1, 'new', 1, null) on conflict do nothing", [source])?;
            transaction.query_row("select state, incarnation, identity from sources where name = ?1", [source], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<String>>(2)?))
            })
        })?;
        let state = match (state.as_str(), identity) {
            ("ready", Some(identity)) => State::Ready(
                serde_json::from_str(&identity)
                    .map_err(|error| Error::new(&code::RELAY_METADATA, "read source identity").because(error))?,
            ),
            ("creating", _) => State::Creating,
            _ => State::New,
        };
        Ok((state, incarnation.cast_unsigned()))
    }

    pub(crate) fn set_creating(&self, source: &str) -> Result<()> {
        self.write("begin creation of source", |transaction| {
            transaction.execute("update sources set state = 'creating' where name = ?1 and state <> 'ready'", [source])
        })
        .map(|_| ())
    }

    pub(crate) fn set_ready(&self, source: &str, identity: &SourceIdentity) -> Result<()> {
        let json = serde_json::to_string(identity).map_err(|error| Error::new(&code::INTERNAL, "store source identity").because(error))?;
        self.write("store source identity", |transaction| {
            transaction.execute("update sources set state = 'ready', identity = ?2 where name = ?1", [source, &json])
        })
        .map(|_| ())
    }

    /// Makes the source new again: the next incarnation, groups at zero. Fences stay grown, and grow, so that no lease
    /// from before is worth anything.
    pub(crate) fn forget(&self, source: &str) -> Result<()> {
        self.write("reset source in relay", |transaction| {
            let new = "update sources set state = 'new', identity = null, incarnation = incarnation + 1 where name = ?1";
            transaction.execute(new, [source])?;
            let zero = "update groups set checkpoint = 0, generation = generation + 1, fence = fence + 1 where source = ?1";
            transaction.execute(zero, [source])
        })
        .map(|_| ())
    }

    pub(crate) fn groups(&self, source: &str) -> Result<Vec<StoredGroup>> {
        let groups = self.read_groups("select source, name, checkpoint, generation, fence from groups where source = ?1", [source])?;
        Ok(groups.into_iter().map(|(_, group)| group).collect())
    }

    /// The groups of every source, with its name, in order.
    pub(crate) fn all_groups(&self) -> Result<Vec<(String, StoredGroup)>> {
        self.read_groups("select source, name, checkpoint, generation, fence from groups order by source, name", [])
    }

    fn read_groups(&self, query: &str, values: impl rusqlite::Params) -> Result<Vec<(String, StoredGroup)>> {
        let read = || -> rusqlite::Result<Vec<(String, StoredGroup)>> {
            let connection = self.connection();
            let mut statement = connection.prepare(query)?;
            let rows = statement.query_map(values, |row| {
                let group = StoredGroup {
                    name: row.get(1)?,
                    checkpoint: CommitPosition::new(row.get::<_, i64>(2)?.cast_unsigned()),
                    generation: row.get::<_, i64>(3)?.cast_unsigned(),
                    fence: row.get::<_, i64>(4)?.cast_unsigned(),
                };
                Ok((row.get(0)?, group))
            })?;
            rows.collect()
        };
        read().map_err(metadata("read groups"))
    }

    pub(crate) fn add_group(&self, source: &str, name: &str, checkpoint: CommitPosition) -> Result<()> {
        let insert = "insert into groups values (?1, ?2, ?3, 0, 0, '')";
        self.write("add group", |transaction| transaction.execute(insert, params![source, name, checkpoint.offset().cast_signed()]))
            .map(|_| ())
    }

    pub(crate) fn remove_group(&self, source: &str, name: &str) -> Result<()> {
        self.write("remove group", |transaction| transaction.execute("delete from groups where source = ?1 and name = ?2", [source, name]))
            .map(|_| ())
    }

    /// Raises a group's fence from what the caller knows; `false` where somebody else has raised it.
    pub(crate) fn raise_fence(&self, source: &str, group: &str, known: u64, fence: u64, owner: &str) -> Result<bool> {
        let update = "update groups set fence = ?4, owner = ?5 where source = ?1 and name = ?2 and fence = ?3";
        let values = params![source, group, known.cast_signed(), fence.cast_signed(), owner];
        self.write("acquire group", |transaction| transaction.execute(update, values)).map(|rows| rows == 1)
    }

    /// Moves checkpoints, each by compare-and-set; says which of them moved.
    pub(crate) fn move_checkpoints(&self, source: &str, moves: &[Move]) -> Result<Vec<bool>> {
        // Invariant 3
        let update = "update groups set checkpoint = ?3, generation = generation + 1
                      where source = ?1 and name = ?2 and generation = ?4 and fence = ?5";
        self.write("write checkpoint", |transaction| {
            let mut statement = transaction.prepare_cached(update)?;
            let mut moved = Vec::with_capacity(moves.len());
            for to in moves {
                let (checkpoint, generation) = (to.checkpoint.offset().cast_signed(), to.generation.cast_signed());
                moved.push(statement.execute(params![source, to.name, checkpoint, generation, to.fence.cast_signed()])? == 1);
            }
            Ok(moved)
        })
    }
}
