//! A connection to the file: opened, checked and set up; one transaction at a time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Transaction, TransactionBehavior, params};
use tidegate_api::{Batch, Error, MutationKind, PipelineRecord, Result, code, fold, hash};

use crate::encode::{self, APPLICATION_ID, Document, FORMAT};
use crate::error::of_sqlite;
use crate::file::{self, Found, Identity};

/// Another connection's transaction is waited for this long; then the error is transient.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Statements that one transaction uses.
const STATEMENTS: usize = 16;

/// Set on every connection. The page cache stays at 16 MiB however large a transaction is: what does not fit goes to the WAL,
/// whose file is cut back to 64 MiB afterwards.
const SESSION: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -16384; \
                       PRAGMA journal_size_limit = 67108864; PRAGMA foreign_keys = OFF;";

pub(crate) struct Client {
    connection: Connection,
    path: PathBuf,
    identity: Identity,
}

impl Client {
    /// Opens a database that is there and ours.
    ///
    /// # Errors
    /// [`code::DESTINATION_UNUSABLE`] for a missing or foreign file, [`code::DESTINATION_FORMAT`] for a newer format; the file
    /// is left as it is.
    pub(crate) fn open(path: &Path, operation: &'static str) -> Result<Self> {
        if file::look(path, operation)? == Found::Nothing {
            return Err(Error::new(&code::DESTINATION_UNUSABLE, operation).with("path", path.display()).because("the file is missing"));
        }
        Self::connect(path, operation)
    }

    /// Opens the database, creating it where there is none.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub(crate) fn open_or_create(path: &Path, operation: &'static str) -> Result<Self> {
        if file::look(path, operation)? == Found::Nothing {
            create(path).map_err(|error| of_sqlite(operation, &error).with("path", path.display()))?;
        }
        Self::connect(path, operation)
    }

    fn connect(path: &Path, operation: &'static str) -> Result<Self> {
        let told = |error: rusqlite::Error| of_sqlite(operation, &error).with("path", path.display());
        let connection = open_connection(path, OpenFlags::empty()).map_err(told)?;
        let identity = Identity::of(path, operation)?;
        let found: String = connection.query_row("SELECT value FROM metadata WHERE name = 'format'", [], |row| row.get(0)).map_err(told)?;
        if found.parse() != Ok(FORMAT) {
            let error = Error::new(&code::DESTINATION_FORMAT, operation).with("path", path.display());
            return Err(error.with("found", found).with("known", FORMAT));
        }
        connection.execute_batch(SESSION).map_err(told)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(Self { connection, path: path.to_owned(), identity })
    }

    /// Runs `work` in one transaction that holds the write lock from the start, and makes it durable.
    ///
    /// # Errors
    /// Whatever `work` gives: nothing of it is kept then.
    pub(crate) fn transaction<T>(&mut self, operation: &'static str, work: impl FnOnce(&mut Writing<'_>) -> Result<T>) -> Result<T> {
        self.identity.check(&self.path, operation)?;
        let told = |error: rusqlite::Error| of_sqlite(operation, &error);
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(told)?;
        let mut writing = Writing { transaction, operation };
        let value = work(&mut writing)?;
        writing.transaction.commit().map_err(told)?;
        self.identity.check(&self.path, operation)?;
        Ok(value)
    }
}

/// An open transaction.
pub(crate) struct Writing<'c> {
    transaction: Transaction<'c>,
    operation: &'static str,
}

impl Writing<'_> {
    /// The pipeline's record.
    pub(crate) fn record(&self, pipeline: &str) -> Result<Option<PipelineRecord>> {
        let statement = self.transaction.prepare_cached(include_str!("../queries/read_record.sql"));
        let read = statement.and_then(|mut statement| statement.query_row([pipeline], encode::read_record).optional());
        read.map_err(|error| of_sqlite(self.operation, &error))
    }

    /// Stores the pipeline's record.
    pub(crate) fn put_record(&mut self, pipeline: &str, record: &PipelineRecord) -> Result<()> {
        let PipelineRecord { source, fingerprint, fence, checkpoint, epoch, complete } = record;
        self.execute(
            include_str!("../queries/write_record.sql"),
            params![
                pipeline,
                source.system,
                source.timeline,
                source.database,
                source.epoch,
                fingerprint.to_string(),
                fence.to_string(),
                checkpoint.map(|position| position.to_string()),
                epoch.as_ref().map(|epoch| &epoch.0),
                complete
            ],
        )
    }

    /// Removes the pipeline's documents.
    pub(crate) fn empty(&mut self, pipeline: &str) -> Result<()> {
        self.execute(include_str!("../queries/delete_pipeline.sql"), [pipeline])
    }

    /// Writes the effects of a run, group by group.
    pub(crate) fn write(&mut self, pipeline: &str, run: &[Batch]) -> Result<()> {
        for group in fold::groups(run) {
            let group = group?;
            let folded = group.folded();
            for collection in &folded.emptied {
                self.execute(include_str!("../queries/delete_collection.sql"), params![pipeline, collection])?;
            }
            for (batch, mutation) in &folded.last {
                let MutationKind::Upsert { document, .. } = mutation.kind else {
                    self.execute(include_str!("../queries/delete.sql"), params![pipeline, mutation.collection, mutation.key])?;
                    continue;
                };
                let (content_hash, change_id) = (hash::content_hash(document), batch.change_id(mutation));
                let (collection, key, partition_key) = (mutation.collection, mutation.key, mutation.partition_key);
                self.execute(
                    include_str!("../queries/upsert.sql"),
                    params![pipeline, collection, key, partition_key, Document(document), content_hash, change_id],
                )?;
            }
        }
        Ok(())
    }

    fn execute(&mut self, sql: &str, values: impl rusqlite::Params) -> Result<()> {
        let done = self.transaction.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        done.map(|_| ()).map_err(|error| of_sqlite(self.operation, &error))
    }
}

fn open_connection(path: &Path, more: OpenFlags) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    Ok(connection)
}

/// Makes the tables in a rollback-journal transaction, which leaves the header in the file itself and not in a WAL beside it:
/// [`file::look`] reads it there. Two that create at once take turns.
fn create(path: &Path) -> rusqlite::Result<()> {
    let mut connection = open_connection(path, OpenFlags::SQLITE_OPEN_CREATE)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    let tables: u32 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        transaction.execute_batch(include_str!("../queries/create.sql"))?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    transaction.commit()
}
