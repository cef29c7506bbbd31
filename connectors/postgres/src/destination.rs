//! PostgreSQL as a destination: documents and checkpoint move in one transaction.
//!
//! **Guarantee**: [`Guarantee::AtomicCheckpoint`]. A run of source transactions is one transaction here: the pipeline's row is
//! locked, fence, source, fingerprint and checkpoint are compared, folded documents are written in multi-row statements, the
//! checkpoint moves, and the commit is waited for with `synchronous_commit = on`.
//!
//! **What recovery finds**: after a crash of either side, at any moment, exactly the transactions up to the checkpoint. A run whose
//! answer was lost is there whole (and answered "already applied") or not at all.
//!
//! **Limits**: a document of 256 MiB that is UTF-8 without zero bytes (JSON always is: a zero character is written `\u0000`);
//! keys and partition keys without a zero character; pipeline, collection and key together 2,600 bytes; a database in UTF8.
//! A pooler in between must pool whole sessions.
//!
//! The tables are specified in [`format`](mod@format). They may be read at any time:
//!
//! ```sql
//! SELECT key, document::jsonb ->> 'status' FROM tidegate.documents WHERE pipeline = 'all' AND collection = 'public.orders';
//! ```
//!
//! # Example
//!
//! ```no_run
//! use tidegate_api::Destination;
//! use tidegate_postgres::destination::{Config, PostgresDestination};
//!
//! # async fn example() -> tidegate_api::Result<()> {
//! let url = "postgres://tidegate@127.0.0.1:5432/reports".to_owned();
//! let destination = PostgresDestination::new(Config { url, schema: "tidegate".to_owned() })?;
//! for finding in destination.preflight().await? {
//!     println!("{}: {}", finding.subject, finding.detail);
//! }
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use tidegate_api::{
    Applied, Batch, BoxFuture, CommitPosition, Destination, Error, Finding, Guarantee, Ownership, PipelineRecord, Provisioned, Result,
    SnapshotEpoch, code,
};
use tokio::sync::Mutex;

mod check;
mod client;
mod config;
mod encode;
mod error;
pub mod format;
mod preflight;
mod setup;
mod write;

use client::Session;
pub use config::Config;

use crate::connect::{Role, Settings};

/// A schema of a PostgreSQL database that holds documents and checkpoints.
///
/// It keeps one session. A session that met an error, or whose call was given up, is dropped, and with it what it had not
/// committed; the next call makes another.
pub struct PostgresDestination {
    settings: Settings,
    schema: String,
    session: Mutex<Option<Session>>,
}

impl PostgresDestination {
    /// A destination; the server is reached by the first call.
    ///
    /// # Errors
    /// [`code::DESTINATION_SETTING`] for a wrong url or schema name.
    pub fn new(config: Config) -> Result<Self> {
        config.validate()?;
        let settings = Settings::parse(&config.url, Role::Destination)?;
        Ok(Self { settings, schema: config.schema, session: Mutex::new(None) })
    }

    /// The session from before, or a new one. Whoever takes it puts it back when all went well.
    async fn session(&self, slot: &mut Option<Session>, operation: &'static str) -> Result<Session> {
        if let Some(session) = slot.take().filter(Session::is_open) {
            return Ok(session);
        }
        let mut session = Session::open(&self.settings, &self.schema, operation).await?;
        setup::expect(&session, &self.schema, operation).await?;
        session.prepare(operation).await?;
        Ok(session)
    }

    async fn provision_pipeline(&self, owner: &Ownership) -> Result<Provisioned> {
        let mut slot = self.session.lock().await;
        *slot = None;
        let mut session = Session::open(&self.settings, &self.schema, "provision").await?;
        setup::ensure(&session, &self.schema).await?;
        session.prepare("provision").await?;
        session.begin("provision").await?;
        session.claim(&owner.pipeline).await?;
        let (answer, record) = PipelineRecord::provision(session.record(&owner.pipeline).await?, owner)?;
        if let Some(record) = record {
            session.put_record(&owner.pipeline, &record).await?;
        }
        session.commit().await?;
        *slot = Some(session);
        Ok(answer)
    }

    async fn begin(&self, owner: &Ownership, epoch: &SnapshotEpoch) -> Result<()> {
        let mut slot = self.session.lock().await;
        let mut session = self.session(&mut slot, "begin snapshot").await?;
        session.begin("begin snapshot").await?;
        session.claim(&owner.pipeline).await?;
        let stored = session.record(&owner.pipeline).await?;
        let record = PipelineRecord::begin_snapshot(stored.as_ref(), owner, epoch)?;
        session.empty(&owner.pipeline).await?;
        session.put_record(&owner.pipeline, &record).await?;
        session.commit().await?;
        *slot = Some(session);
        Ok(())
    }

    async fn rows(&self, owner: &Ownership, epoch: &SnapshotEpoch, batch: &Batch) -> Result<()> {
        let run = Arc::from([batch.clone()]);
        check::run(owner, &run).await?;
        let mut slot = self.session.lock().await;
        for copying in [true, false] {
            let mut session = self.session(&mut slot, "apply snapshot").await?;
            let stored = session.begin_with_record("apply snapshot", &owner.pipeline).await?;
            PipelineRecord::apply_snapshot(stored.as_ref(), owner, epoch)?;
            let written = if copying {
                write::copy(&session, &owner.pipeline, &run).await?
            } else {
                write::merge(&session, &owner.pipeline, &run, None).await?;
                true
            };
            if written {
                *slot = Some(session);
                return Ok(());
            }
        }
        Ok(())
    }

    async fn complete(&self, owner: &Ownership, epoch: &SnapshotEpoch, boundary: CommitPosition) -> Result<()> {
        let mut slot = self.session.lock().await;
        let mut session = self.session(&mut slot, "complete snapshot").await?;
        let stored = session.begin_with_record("complete snapshot", &owner.pipeline).await?;
        let record = PipelineRecord::complete_snapshot(stored.as_ref(), owner, epoch, boundary)?;
        session.put_record(&owner.pipeline, &record).await?;
        session.commit().await?;
        *slot = Some(session);
        Ok(())
    }

    async fn run(&self, owner: &Ownership, run: &[Batch]) -> Result<Vec<Applied>> {
        let run: Arc<[Batch]> = Arc::from(run);
        check::run(owner, &run).await?;
        let mut slot = self.session.lock().await;
        let mut session = self.session(&mut slot, "apply").await?;
        let stored = session.begin_with_record("apply", &owner.pipeline).await?;
        let (already, record) = PipelineRecord::apply(stored.as_ref(), owner, &run)?;
        let (old, new) = run.split_at_checked(already).unwrap_or_default();
        if new.is_empty() {
            session.commit().await?;
        } else {
            let new = if old.is_empty() { run.clone() } else { Arc::from(new) };
            write::merge(&session, &owner.pipeline, &new, Some(&record)).await?;
        }
        *slot = Some(session);
        let old = old.iter().filter_map(Batch::position).map(Applied::AlreadyApplied);
        Ok(old.chain(new.iter().filter_map(Batch::position).map(Applied::Applied)).collect())
    }
}

impl Destination for PostgresDestination {
    fn guarantee(&self) -> Guarantee {
        Guarantee::AtomicCheckpoint
    }

    fn preflight(&self) -> BoxFuture<'_, Result<Vec<Finding>>> {
        Box::pin(preflight::look(&self.settings, &self.schema))
    }

    fn provision<'a>(&'a self, owner: &'a Ownership) -> BoxFuture<'a, Result<Provisioned>> {
        Box::pin(self.provision_pipeline(owner))
    }

    fn begin_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.begin(owner, epoch))
    }

    fn apply_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch, batch: &'a Batch) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.rows(owner, epoch, batch))
    }

    fn complete_snapshot<'a>(
        &'a self,
        owner: &'a Ownership,
        epoch: &'a SnapshotEpoch,
        boundary: CommitPosition,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.complete(owner, epoch, boundary))
    }

    fn apply<'a>(&'a self, owner: &'a Ownership, run: &'a [Batch]) -> BoxFuture<'a, Result<Vec<Applied>>> {
        Box::pin(self.run(owner, run))
    }
}

/// The error for a blocking task that ended by itself.
fn broken(operation: &'static str, why: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::new(&code::INTERNAL, operation).because(why)
}
