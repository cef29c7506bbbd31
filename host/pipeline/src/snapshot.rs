//! What was there before the stream, copied into the emptied destination.
//!
//! Every attempt has an epoch of its own; a lost one is never continued. The next rows are read while the last ones are
//! stored.

use tidegate_api::{Batch, BatchOrigin, CommitPosition, Error, Result, Snapshot, SnapshotEpoch};

use crate::failpoints;
use crate::prepare::Prepared;
use crate::retry::Backoff;
use crate::session::{Ending, Session};
use crate::state::Event;

impl Session<'_> {
    /// Takes a snapshot, again with a new epoch as long as its source fails in a way that may pass.
    pub(crate) async fn snapshot(&mut self) -> std::result::Result<(), Ending> {
        self.worker.enter(Event::SnapshotBegan);
        let policy = self.worker.parts.settings.retry;
        let mut backoff = Backoff::new(&policy);
        loop {
            let epoch = SnapshotEpoch(uuid::Uuid::now_v7().to_string());
            let lost = match self.attempt(&epoch).await {
                Ok(boundary) => {
                    self.worker.recovered();
                    return self.go_on_behind(boundary);
                }
                Err(Ending::Failed(error)) if error.is_transient() => error,
                Err(ending) => return Err(ending),
            };
            let pause = backoff.pause();
            self.worker.waiting("take snapshot", &lost, pause);
            tokio::select! {
                () = self.worker.commands.arrived() => return Err(Ending::Command),
                () = tokio::time::sleep(pause) => (),
            }
        }
    }

    async fn attempt(&mut self, epoch: &SnapshotEpoch) -> std::result::Result<CommitPosition, Ending> {
        let source = std::sync::Arc::clone(&self.worker.parts.source);
        let tables = self.worker.parts.settings.tables.clone();
        let mut view = match source.snapshots() {
            None => None,
            Some(snapshots) => tokio::select! {
                () = self.worker.commands.arrived() => return Err(Ending::Command),
                view = snapshots.begin(&tables) => Some(view?),
            },
        };
        let (destination, owner) = (self.destination(), self.owner.clone());
        self.retried("begin snapshot", || destination.begin_snapshot(&owner, epoch)).await?;
        self.worker.fresh = false;
        let estimate = view.as_ref().map_or(0, |view| view.estimated_rows());
        self.worker.status.send_modify(|status| {
            status.snapshot_rows = 0;
            status.snapshot_estimate = estimate;
            status.snapshot_epoch = Some(epoch.clone());
            status.position = None;
        });
        tracing::info!(event = "snapshot-began", pipeline = self.name(), epoch = %epoch, estimated_rows = estimate, "a snapshot began");
        // Without a view the log begins with everything.
        let boundary = view.as_ref().map_or(CommitPosition::ZERO, |view| view.boundary());
        if let Some(view) = view.as_mut() {
            self.copy(&mut **view, epoch).await?;
        }
        self.retried("complete snapshot", || destination.complete_snapshot(&owner, epoch, boundary)).await?;
        let rows = self.worker.status.borrow().snapshot_rows;
        tracing::info!(event = "snapshot-completed", pipeline = self.name(), epoch = %epoch, rows, boundary = %boundary, "a snapshot is complete");
        Ok(boundary)
    }

    async fn copy(&mut self, view: &mut dyn Snapshot, epoch: &SnapshotEpoch) -> std::result::Result<(), Ending> {
        let mut sequence = 0;
        let mut next = view.next().await?;
        while let Some(chunk) = next {
            if self.worker.commands.is_waiting() {
                return Err(Ending::Command);
            }
            let origin = BatchOrigin::Snapshot { epoch: epoch.clone(), sequence };
            let batch = match self.worker.preparer().rows(origin, &chunk).await? {
                Prepared::Batch(batch) => batch,
                Prepared::Poison(report) => return Err(Ending::Poison(report)),
            };
            sequence += 1;
            let (stored, read): (std::result::Result<(), Ending>, Result<Option<tidegate_api::Chunk>, Error>) =
                tokio::join!(self.store(epoch, &batch), view.next());
            stored?;
            let rows = chunk.len() as u64;
            self.worker.status.send_modify(|status| status.snapshot_rows += rows);
            failpoints::snapshot_chunk();
            next = read?;
        }
        Ok(())
    }

    async fn store(&mut self, epoch: &SnapshotEpoch, batch: &Batch) -> std::result::Result<(), Ending> {
        let (destination, owner) = (self.destination(), self.owner.clone());
        self.retried("store snapshot rows", || destination.apply_snapshot(&owner, epoch, batch)).await
    }
}
