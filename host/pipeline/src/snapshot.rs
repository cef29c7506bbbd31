//! What was there before the stream, copied into the emptied destination.
//!
//! Every attempt has an epoch of its own; a lost one is never continued: a pause, a poisoned row and a lost view end it, and
//! the next session begins a new one. The next rows are read while the last ones are stored.

use std::pin::pin;
use std::sync::Arc;

use tidegate_api::{Batch, BatchOrigin, Chunk, CommitPosition, Result, Snapshot, SnapshotEpoch};

use crate::ending::{Ending, Step};
use crate::failpoints;
use crate::prepare::Prepared;
use crate::session::Session;
use crate::state::Event;

/// What is tried again after a view was lost.
pub(crate) const SNAPSHOT: &str = "take snapshot";

impl Session<'_> {
    /// Takes a snapshot under a new epoch, and goes on behind it.
    pub(crate) async fn snapshot(&mut self) -> Step<()> {
        self.worker.enter(Event::SnapshotBegan);
        let epoch = SnapshotEpoch(uuid::Uuid::now_v7().to_string());
        let source = Arc::clone(&self.worker.parts.source);
        let tables = self.worker.parts.settings.tables.clone();
        let mut view = match source.snapshots() {
            None => None,
            Some(snapshots) => Some(self.unless_asked(snapshots.begin(&tables)).await?.map_err(Ending::of_view)?),
        };
        let estimate = view.as_ref().and_then(|view| view.estimated_rows());
        self.begin_snapshot(&epoch, estimate).await?;
        // Without a view the log begins with everything.
        let boundary = view.as_ref().map_or(CommitPosition::ZERO, |view| view.boundary());
        if let Some(view) = view.as_mut() {
            self.copy(&mut **view, &epoch).await?;
        }
        self.complete_snapshot(&epoch, boundary).await?;
        self.go_on_behind(boundary)
    }

    async fn begin_snapshot(&mut self, epoch: &SnapshotEpoch, estimate: Option<u64>) -> Step<()> {
        let (destination, owner) = (self.destination(), self.owner.clone());
        self.retried("begin snapshot", || destination.begin_snapshot(&owner, epoch)).await?;
        self.worker.fresh = false;
        self.worker.status.send_modify(|status| {
            status.snapshot_estimate = estimate;
            status.snapshot_epoch = Some(epoch.clone());
            status.position = None;
        });
        tracing::info!(event = "snapshot-began", pipeline = self.name(), epoch = %epoch, estimated_rows = estimate, "a snapshot began");
        Ok(())
    }

    async fn complete_snapshot(&mut self, epoch: &SnapshotEpoch, boundary: CommitPosition) -> Step<()> {
        let (destination, owner) = (self.destination(), self.owner.clone());
        self.retried("complete snapshot", || destination.complete_snapshot(&owner, epoch, boundary)).await?;
        self.worker.recovered(SNAPSHOT);
        let rows = self.worker.status.borrow().snapshot_rows;
        tracing::info!(event = "snapshot-completed", pipeline = self.name(), epoch = %epoch, rows, boundary = %boundary, "a snapshot is complete");
        Ok(())
    }

    async fn copy(&mut self, view: &mut dyn Snapshot, epoch: &SnapshotEpoch) -> Step<()> {
        let mut sequence = 0;
        let mut next = self.unless_asked(view.next()).await?;
        while let Some(chunk) = next.map_err(Ending::of_view)? {
            self.unless_asked(std::future::ready(())).await?;
            let origin = BatchOrigin::Snapshot { epoch: epoch.clone(), sequence };
            let batch = match self.worker.preparer().rows(origin, &chunk).await? {
                Prepared::Batch(batch) => batch,
                Prepared::Poison(report) => return Err(Ending::Poison(report)),
            };
            sequence += 1;
            next = self.store_while_reading(epoch, &batch, chunk.len() as u64, view).await?;
        }
        Ok(())
    }

    /// Stores rows; gives what the view says next. A view that hangs keeps nobody from pausing.
    async fn store_while_reading(
        &mut self,
        epoch: &SnapshotEpoch,
        batch: &Batch,
        rows: u64,
        view: &mut dyn Snapshot,
    ) -> Step<Result<Option<Chunk>>> {
        let mut reading = view.next();
        let mut read = None;
        {
            let mut storing = pin!(self.store(epoch, batch, rows));
            loop {
                tokio::select! {
                    stored = &mut storing => break stored?,
                    next = &mut reading, if read.is_none() => read = Some(next),
                }
            }
        }
        match read {
            Some(next) => Ok(next),
            None => self.unless_asked(reading).await,
        }
    }

    /// Stores what became of so many rows.
    async fn store(&mut self, epoch: &SnapshotEpoch, batch: &Batch, rows: u64) -> Step<()> {
        let (destination, owner) = (self.destination(), self.owner.clone());
        self.retried("store snapshot rows", || destination.apply_snapshot(&owner, epoch, batch)).await?;
        self.worker.status.send_modify(|status| status.snapshot_rows += rows);
        self.worker.recovered(SNAPSHOT);
        failpoints::snapshot_chunk();
        Ok(())
    }
}
