//! The destination, in the order of the data: provision, snapshot, apply.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_api::{
    Applied, Batch, BoxFuture, CommitPosition, Destination, Error, Finding, Guarantee, Ownership, PipelineRecord, Provisioned, Result,
    SnapshotEpoch, bounds, code,
};

use crate::client::Client;
use crate::{Config, preflight};

/// The largest document that is stored.
const MAX_DOCUMENT_BYTES: u64 = 256 << 20;

/// A SQLite file that holds documents and checkpoints.
///
/// SQLite's calls block, so each of ours runs on tokio's blocking threads. A call whose future is dropped still runs to its
/// end; the next one waits for it.
#[derive(Clone)]
pub struct SqliteDestination {
    path: PathBuf,
    client: Arc<Mutex<Option<Client>>>,
}

impl SqliteDestination {
    /// A destination; the file is opened by the first call.
    ///
    /// # Errors
    /// What [`Config::validate`] refuses.
    pub fn new(config: Config) -> Result<Self> {
        config.validate()?;
        Ok(Self { path: config.path, client: Arc::new(Mutex::new(None)) })
    }

    /// Runs `work` on the connection, opened by `open` where there is none. A connection that met an error is not used again.
    fn blocking<'a, T: Send + 'static>(
        &'a self,
        operation: &'static str,
        open: fn(&std::path::Path, &'static str) -> Result<Client>,
        work: impl FnOnce(&mut Client) -> Result<T> + Send + 'static,
    ) -> BoxFuture<'a, Result<T>> {
        let (path, slot) = (self.path.clone(), self.client.clone());
        let blocking = move || {
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            let mut client = match slot.take() {
                Some(client) => client,
                None => open(&path, operation)?,
            };
            let value = work(&mut client)?;
            *slot = Some(client);
            Ok(value)
        };
        Box::pin(async move {
            let joined = tokio::task::spawn_blocking(blocking).await;
            joined.unwrap_or_else(|error| Err(Error::new(&code::INTERNAL, operation).because(error)))
        })
    }
}

impl Destination for SqliteDestination {
    fn guarantee(&self) -> Guarantee {
        Guarantee::AtomicCheckpoint
    }

    fn preflight(&self) -> BoxFuture<'_, Result<Vec<Finding>>> {
        let path = self.path.clone();
        Box::pin(async move {
            let looked = tokio::task::spawn_blocking(move || preflight::look(&path)).await;
            looked.map_err(|error| Error::new(&code::INTERNAL, "preflight").because(error))
        })
    }

    fn provision<'a>(&'a self, owner: &'a Ownership) -> BoxFuture<'a, Result<Provisioned>> {
        let owner = owner.clone();
        self.blocking("provision", Client::open_or_create, move |client| {
            client.transaction("provision", |writing| {
                let (answer, record) = PipelineRecord::provision(writing.record(&owner.pipeline)?, &owner)?;
                if let Some(record) = record {
                    writing.put_record(&owner.pipeline, &record)?;
                }
                Ok(answer)
            })
        })
    }

    fn begin_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch) -> BoxFuture<'a, Result<()>> {
        let (owner, epoch) = (owner.clone(), epoch.clone());
        self.blocking("begin snapshot", Client::open_or_create, move |client| {
            client.transaction("begin snapshot", |writing| {
                let stored = writing.record(&owner.pipeline)?;
                let record = PipelineRecord::begin_snapshot(stored.as_ref(), &owner, &epoch)?;
                writing.empty(&owner.pipeline)?;
                writing.put_record(&owner.pipeline, &record)
            })
        })
    }

    fn apply_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch, batch: &'a Batch) -> BoxFuture<'a, Result<()>> {
        let (owner, epoch, batch) = (owner.clone(), epoch.clone(), batch.clone());
        self.blocking("apply snapshot", Client::open, move |client| {
            check(&owner, std::slice::from_ref(&batch))?;
            client.transaction("apply snapshot", |writing| {
                PipelineRecord::apply_snapshot(writing.record(&owner.pipeline)?.as_ref(), &owner, &epoch)?;
                writing.write(&owner.pipeline, std::slice::from_ref(&batch))
            })
        })
    }

    fn complete_snapshot<'a>(
        &'a self,
        owner: &'a Ownership,
        epoch: &'a SnapshotEpoch,
        boundary: CommitPosition,
    ) -> BoxFuture<'a, Result<()>> {
        let (owner, epoch) = (owner.clone(), epoch.clone());
        self.blocking("complete snapshot", Client::open, move |client| {
            client.transaction("complete snapshot", |writing| {
                let stored = writing.record(&owner.pipeline)?;
                let record = PipelineRecord::complete_snapshot(stored.as_ref(), &owner, &epoch, boundary)?;
                writing.put_record(&owner.pipeline, &record)
            })
        })
    }

    fn apply<'a>(&'a self, owner: &'a Ownership, run: &'a [Batch]) -> BoxFuture<'a, Result<Vec<Applied>>> {
        let (owner, run) = (owner.clone(), run.to_vec());
        self.blocking("apply", Client::open, move |client| {
            check(&owner, &run)?;
            client.transaction("apply", |writing| {
                let (already, record) = PipelineRecord::apply(writing.record(&owner.pipeline)?.as_ref(), &owner, &run)?;
                let (old, new) = run.split_at(already);
                if !new.is_empty() {
                    writing.write(&owner.pipeline, new)?;
                    writing.put_record(&owner.pipeline, &record)?;
                }
                let old = old.iter().filter_map(Batch::position).map(Applied::AlreadyApplied);
                Ok(old.chain(new.iter().filter_map(Batch::position).map(Applied::Applied)).collect())
            })
        })
    }
}

/// What is refused before a transaction is opened.
fn check(owner: &Ownership, run: &[Batch]) -> Result<()> {
    for batch in run {
        for chunk in batch.chunks() {
            for mutation in chunk?.mutations() {
                bounds::check(&owner.pipeline, batch, &mutation, MAX_DOCUMENT_BYTES)?;
            }
        }
    }
    Ok(())
}
