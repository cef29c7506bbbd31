//! A session: how it is set up, its prepared statements, and one transaction at a time.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, try_join};
use tidegate_api::table::quote;
use tidegate_api::{Error, PipelineRecord, Result};
use tokio::sync::mpsc;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::PgLsn;
use tokio_postgres::{Client, Statement};

use super::encode::{Arrays, COPY_HEADER, COPY_TRAILER, Removals};
use super::{error, format};
use crate::connect::{self, Role, Settings};

/// An answer to one statement is waited for this long,
const PATIENCE: Duration = Duration::from_secs(300);

/// and this long where it empties a collection or a pipeline.
const LONG_PATIENCE: Duration = Duration::from_secs(3600);

/// Set at the start of every session.
///
/// A session that was cut off gives its locks back before its successor, which waits for them, gives up. Sequential scans,
/// hash and merge joins are off and plans generic: a plan made while the table was empty must still use the index later.
const SESSION: &[(&str, &str)] = &[
    ("synchronous_commit", "on"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("lock_timeout", "15s"),
    ("tcp_keepalives_idle", "15"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];

/// Said in each transaction too: a pooler may hand over a session that began otherwise.
const BEGIN: &str = "BEGIN; SET LOCAL synchronous_commit TO on";

pub(super) struct Session {
    pub(super) client: Client,
    statements: Option<Statements>,
    operation: &'static str,
}

struct Statements {
    read_record: Statement,
    write_record: Statement,
    upsert: Statement,
    copy: Statement,
    delete: Statement,
    delete_collections: Statement,
    delete_pipeline: Statement,
}

impl Session {
    /// Connects; names without a schema mean the destination's own.
    pub(super) async fn open(settings: &Settings, schema: &str, operation: &'static str) -> Result<Self> {
        let search_path = quote(schema);
        let more: Vec<(&str, &str)> = SESSION.iter().copied().chain([("search_path", search_path.as_str())]).collect();
        let client = connect::connect(settings, Role::Destination, &more).await?;
        Ok(Self { client, statements: None, operation })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.client.is_closed()
    }

    /// Prepares every statement, in one round trip. The tables must be there.
    pub(super) async fn prepare(&mut self, operation: &'static str) -> Result<()> {
        self.operation = operation;
        let client = &self.client;
        let prepared = self.answered(PATIENCE, async {
            let (read_record, write_record, upsert, copy, delete, delete_collections, delete_pipeline) = try_join!(
                client.prepare(include_str!("../../queries/read_record.sql")),
                client.prepare(include_str!("../../queries/write_record.sql")),
                client.prepare(include_str!("../../queries/upsert.sql")),
                client.prepare(include_str!("../../queries/copy.sql")),
                client.prepare(include_str!("../../queries/delete.sql")),
                client.prepare(include_str!("../../queries/delete_collections.sql")),
                client.prepare(include_str!("../../queries/delete_pipeline.sql")),
            )?;
            Ok(Statements { read_record, write_record, upsert, copy, delete, delete_collections, delete_pipeline })
        });
        self.statements = Some(prepared.await?);
        Ok(())
    }

    /// Opens a transaction.
    pub(super) async fn begin(&mut self, operation: &'static str) -> Result<()> {
        self.operation = operation;
        self.answered(PATIENCE, self.client.batch_execute(BEGIN)).await
    }

    /// Holds whatever makes or replaces this pipeline's row until the transaction ends, also while there is none to lock.
    pub(super) async fn claim(&self, pipeline: &str) -> Result<()> {
        let claim = "SELECT pg_advisory_xact_lock(hashtextextended('tidegate ' || current_schema || ' ' || $1, 0))";
        self.answered(PATIENCE, self.client.query(claim, &[&pipeline])).await.map(drop)
    }

    /// The pipeline's row, locked.
    pub(super) async fn record(&self, pipeline: &str) -> Result<Option<PipelineRecord>> {
        let read = &self.statements()?.read_record;
        let row = self.answered(PATIENCE, self.client.query_opt(read, &[&pipeline])).await?;
        row.as_ref().map(format::read_record).transpose()
    }

    /// [`begin`](Self::begin) and [`record`](Self::record) in one round trip.
    pub(super) async fn begin_with_record(&mut self, operation: &'static str, pipeline: &str) -> Result<Option<PipelineRecord>> {
        self.operation = operation;
        let (client, read) = (&self.client, &self.statements()?.read_record);
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 1] = [&pipeline];
        let both = async { try_join!(client.batch_execute(BEGIN), client.query_opt(read, &parameters)) };
        let ((), row) = self.answered(PATIENCE, both).await?;
        row.as_ref().map(format::read_record).transpose()
    }

    /// Stores the pipeline's row.
    pub(super) async fn put_record(&self, pipeline: &str, record: &PipelineRecord) -> Result<()> {
        let statements = self.statements()?;
        self.answered(PATIENCE, put_record(&self.client, statements, pipeline, record)).await
    }

    /// Removes the pipeline's documents: the table as a whole where no other pipeline is in it and nobody reads it just now,
    /// which takes no time and leaves no dead rows, else row by row.
    pub(super) async fn empty(&self, pipeline: &str) -> Result<()> {
        if self.answered(PATIENCE, truncate(&self.client, pipeline)).await? {
            return Ok(());
        }
        let delete = &self.statements()?.delete_pipeline;
        self.answered(LONG_PATIENCE, self.client.execute(delete, &[&pipeline])).await.map(drop)
    }

    /// Writes a group.
    pub(super) async fn write(&self, pipeline: &str, group: &Arrays) -> Result<()> {
        let statements = self.statements()?;
        let patience = if group.removals.empties() { LONG_PATIENCE } else { PATIENCE };
        self.answered(patience, write(&self.client, statements, pipeline, group)).await
    }

    /// Writes the last group and the row, and commits, in one round trip. Where one of them fails, the commit behind it is a
    /// rollback.
    pub(super) async fn finish(&self, pipeline: &str, group: Option<&Arrays>, record: Option<&PipelineRecord>) -> Result<()> {
        let statements = self.statements()?;
        let client = &self.client;
        let all = async {
            let last = async {
                match group {
                    Some(group) => write(client, statements, pipeline, group).await,
                    None => Ok(()),
                }
            };
            let row = async {
                match record {
                    Some(record) => put_record(client, statements, pipeline, record).await,
                    None => Ok(()),
                }
            };
            try_join!(last, row, client.batch_execute("COMMIT")).map(drop)
        };
        let patience = if group.is_some_and(|group| group.removals.empties()) { LONG_PATIENCE } else { PATIENCE };
        self.answered(patience, all).await
    }

    /// Copies encoded rows into the table as they come. `false` when a key is there already: the transaction is spoiled then.
    pub(super) async fn copy(&self, mut pieces: mpsc::Receiver<Bytes>) -> Result<bool> {
        let copy = &self.statements()?.copy;
        let copied = async {
            let sink = self.client.copy_in(copy).await?;
            let mut sink = std::pin::pin!(sink);
            sink.feed(Bytes::from_static(COPY_HEADER)).await?;
            while let Some(piece) = pieces.recv().await {
                sink.feed(piece).await?;
            }
            sink.feed(Bytes::from_static(COPY_TRAILER)).await?;
            sink.finish().await.map(|_| true)
        };
        // The server says so at any moment, not only at the end.
        let known = async {
            match copied.await {
                Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(false),
                copied => copied,
            }
        };
        self.answered(PATIENCE, known).await
    }

    /// Removes keys and commits, in one round trip.
    pub(super) async fn finish_copy(&self, pipeline: &str, removals: &Removals) -> Result<()> {
        let statements = self.statements()?;
        let both = async { try_join!(remove(&self.client, statements, pipeline, removals), self.client.batch_execute("COMMIT")) };
        self.answered(PATIENCE, both).await.map(drop)
    }

    /// Makes the transaction durable.
    pub(super) async fn commit(&self) -> Result<()> {
        self.answered(PATIENCE, self.client.batch_execute("COMMIT")).await
    }

    /// Waits for an answer, within a bound.
    pub(super) async fn answered<T>(&self, patience: Duration, asked: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T> {
        match tokio::time::timeout(patience, asked).await {
            Ok(answer) => answer.map_err(|told| error::of_client(self.operation, told)),
            Err(_) => Err(error::silent(self.operation, patience.as_secs())),
        }
    }

    /// [`answered`](Self::answered) within the usual bound.
    pub(super) async fn ask<T>(&self, asked: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T> {
        self.answered(PATIENCE, asked).await
    }

    fn statements(&self) -> Result<&Statements> {
        let unprepared = || Error::new(&tidegate_api::code::INTERNAL, self.operation).because("the statements are not prepared");
        self.statements.as_ref().ok_or_else(unprepared)
    }
}

/// Sends the statements of a group one behind the other, without waiting in between.
async fn write(client: &Client, statements: &Statements, pipeline: &str, group: &Arrays) -> Result<(), tokio_postgres::Error> {
    let upserted = async {
        if !group.writes() {
            return Ok(0);
        }
        let Arrays { collection, key, partition_key, document, content_hash, change_id, .. } = group;
        client.execute(&statements.upsert, &[&pipeline, collection, key, partition_key, document, content_hash, change_id]).await
    };
    try_join!(remove(client, statements, pipeline, &group.removals), upserted).map(drop)
}

async fn remove(client: &Client, statements: &Statements, pipeline: &str, removals: &Removals) -> Result<(), tokio_postgres::Error> {
    let emptied = async {
        if !removals.empties() {
            return Ok(0);
        }
        client.execute(&statements.delete_collections, &[&pipeline, &removals.emptied]).await
    };
    let removed = async {
        if !removals.removes() {
            return Ok(0);
        }
        client.execute(&statements.delete, &[&pipeline, &removals.collection, &removals.key]).await
    };
    try_join!(emptied, removed).map(drop)
}

async fn put_record(
    client: &Client,
    statements: &Statements,
    pipeline: &str,
    record: &PipelineRecord,
) -> Result<(), tokio_postgres::Error> {
    let PipelineRecord { source, fingerprint, fence, checkpoint, epoch, complete } = record;
    let (timeline, fingerprint, fence) = (i64::from(source.timeline), fingerprint.to_string(), fence.to_string());
    let checkpoint = checkpoint.map(|position| PgLsn::from(position.offset()));
    let epoch = epoch.as_ref().map(|epoch| &epoch.0);
    client
        .execute(
            &statements.write_record,
            &[&pipeline, &source.system, &timeline, &source.database, &source.epoch, &fingerprint, &fence, &checkpoint, &epoch, complete],
        )
        .await
        .map(drop)
}

/// Empties the documents table, where that touches this pipeline only and needs no waiting; whether it did. The lock keeps
/// other pipelines from beginning until the transaction ends; a role that may not truncate, or a reader, is a no.
async fn truncate(client: &Client, pipeline: &str) -> std::result::Result<bool, tokio_postgres::Error> {
    let alone = async || client.query_one(include_str!("../../queries/alone.sql"), &[&pipeline]).await?.try_get::<_, bool>(0);
    if !alone().await? {
        return Ok(false);
    }
    client.batch_execute("SAVEPOINT emptied; SET LOCAL lock_timeout = '1s'").await?;
    let emptied = async {
        client.batch_execute("LOCK TABLE pipelines IN SHARE ROW EXCLUSIVE MODE").await?;
        if !alone().await? {
            return Ok(false);
        }
        client.batch_execute("TRUNCATE documents").await.map(|()| true)
    };
    match emptied.await {
        Ok(true) => Ok(true),
        Err(error) if error.as_db_error().is_none() => Err(error),
        Ok(false) | Err(_) => client.batch_execute("ROLLBACK TO SAVEPOINT emptied").await.map(|()| false),
    }
}
