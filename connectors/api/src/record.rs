//! What a destination keeps of a pipeline, and what a call may do by it.
//!
//! A destination that keeps the record in its own tables reads it inside the transaction that writes, asks here, and writes
//! what comes back: the rules are the same everywhere.

use crate::{
    Batch, CommitPosition, Error, Fingerprint, Ownership, Provisioned, Result, SnapshotEpoch, SnapshotState, SourceIdentity, code,
};

/// One pipeline's row at a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipelineRecord {
    /// Whose positions [`checkpoint`](Self::checkpoint) holds.
    pub source: SourceIdentity,
    /// What the documents were made by.
    pub fingerprint: Fingerprint,
    /// The highest fencing token seen.
    pub fence: u64,
    /// The last position whose effects are durable.
    pub checkpoint: Option<CommitPosition>,
    /// The snapshot that was begun last.
    pub epoch: Option<SnapshotEpoch>,
    /// Whether that snapshot is complete.
    pub complete: bool,
}

impl PipelineRecord {
    /// A pipeline that has nothing here yet.
    pub fn new(owner: &Ownership) -> Self {
        Self {
            source: owner.source.clone(),
            fingerprint: owner.fingerprint,
            fence: owner.fence,
            checkpoint: None,
            epoch: None,
            complete: false,
        }
    }

    /// How far the snapshot is.
    pub fn snapshot(&self) -> SnapshotState {
        match (&self.epoch, self.complete) {
            (None, _) => SnapshotState::Absent,
            (Some(_), false) => SnapshotState::Incomplete,
            (Some(_), true) => SnapshotState::Complete,
        }
    }

    /// The answer to [`Destination::provision`](crate::Destination::provision), and the record to store where it changed.
    ///
    /// A pipeline that never began anything here is taken over whatever it was to hold.
    ///
    /// # Errors
    /// [`code::DESTINATION_FENCED`].
    pub fn provision(stored: Option<Self>, owner: &Ownership) -> Result<(Provisioned, Option<Self>)> {
        let untouched = |record: &Self| record.epoch.is_none() && record.checkpoint.is_none();
        let Some(record) = stored else {
            return Ok((Provisioned::Ready { checkpoint: None, snapshot: SnapshotState::Absent }, Some(Self::new(owner))));
        };
        record.fenced(owner, "provision")?;
        if untouched(&record) {
            return Ok((Provisioned::Ready { checkpoint: None, snapshot: SnapshotState::Absent }, Some(Self::new(owner))));
        }
        if record.source != owner.source {
            return Ok((Provisioned::OtherSource { found: record.source }, None)); // Invariant 7
        }
        if record.fingerprint != owner.fingerprint {
            return Ok((Provisioned::RebuildRequired { found: record.fingerprint }, None)); // Invariant 6
        }
        let answer = Provisioned::Ready { checkpoint: record.checkpoint, snapshot: record.snapshot() };
        Ok((answer, Some(Self { fence: owner.fence, ..record })))
    }

    /// The record after [`Destination::begin_snapshot`](crate::Destination::begin_snapshot); the documents are removed with it.
    ///
    /// # Errors
    /// [`code::DESTINATION_FENCED`].
    pub fn begin_snapshot(stored: Option<&Self>, owner: &Ownership, epoch: &SnapshotEpoch) -> Result<Self> {
        if let Some(record) = stored {
            record.fenced(owner, "begin snapshot")?;
        }
        Ok(Self { epoch: Some(epoch.clone()), ..Self::new(owner) })
    }

    /// Whether rows of this snapshot may be stored.
    ///
    /// # Errors
    /// [`code::SNAPSHOT_REFUSED`] unless `epoch` is the open snapshot, and what [`own`](Self::own) refuses.
    pub fn apply_snapshot(stored: Option<&Self>, owner: &Ownership, epoch: &SnapshotEpoch) -> Result<()> {
        let record = Self::own(stored, owner, "apply snapshot")?;
        if record.complete || record.epoch.as_ref() != Some(epoch) {
            return Err(record.refused("apply snapshot", epoch));
        }
        Ok(())
    }

    /// The record after [`Destination::complete_snapshot`](crate::Destination::complete_snapshot).
    ///
    /// A snapshot that is complete already stays as it is: its checkpoint may have moved on.
    ///
    /// # Errors
    /// [`code::SNAPSHOT_REFUSED`] when `epoch` is neither open nor complete, and what [`own`](Self::own) refuses.
    pub fn complete_snapshot(stored: Option<&Self>, owner: &Ownership, epoch: &SnapshotEpoch, boundary: CommitPosition) -> Result<Self> {
        let record = Self::own(stored, owner, "complete snapshot")?;
        if record.epoch.as_ref() != Some(epoch) {
            return Err(record.refused("complete snapshot", epoch));
        }
        let checkpoint = if record.complete { record.checkpoint } else { Some(boundary) };
        Ok(Self { fence: owner.fence, checkpoint, complete: true, ..record.clone() })
    }

    /// How many batches at the front of `run` are applied already, and the record after the rest of it.
    ///
    /// # Errors
    /// [`code::SNAPSHOT_REFUSED`] while a snapshot is open, [`code::INTERNAL`] for a run that is not consecutive transactions,
    /// and what [`own`](Self::own) refuses.
    pub fn apply(stored: Option<&Self>, owner: &Ownership, run: &[Batch]) -> Result<(usize, Self)> {
        let record = Self::own(stored, owner, "apply")?;
        if let (Some(epoch), false) = (&record.epoch, record.complete) {
            return Err(record.refused("apply", epoch));
        }
        let mut last = None;
        let mut already = 0;
        for batch in run {
            let position = batch.position().filter(|position| last.is_none_or(|last| last < *position));
            let position = position.ok_or_else(|| {
                Error::new(&code::INTERNAL, "apply").because("a run holds transactions whose positions grow from one to the next")
            })?;
            last = Some(position);
            // Invariant 3: a checkpoint only grows.
            already += usize::from(record.checkpoint.is_some_and(|checkpoint| position <= checkpoint));
        }
        let checkpoint = record.checkpoint.max(last);
        Ok((already, Self { fence: owner.fence, checkpoint, ..record.clone() }))
    }

    /// The stored record, where `owner` may write by it.
    ///
    /// # Errors
    /// [`code::DESTINATION_UNUSABLE`] where there is none, [`code::DESTINATION_FENCED`], [`code::DESTINATION_OWNED`],
    /// [`code::REBUILD_REQUIRED`].
    pub fn own<'a>(stored: Option<&'a Self>, owner: &Ownership, operation: &'static str) -> Result<&'a Self> {
        let Some(record) = stored else {
            return Err(Error::new(&code::DESTINATION_UNUSABLE, operation)
                .with("pipeline", &owner.pipeline)
                .because("the destination holds no record of this pipeline: it was emptied or replaced")
                .fix(format!("tidegate pipeline reset {}", owner.pipeline)));
        };
        record.fenced(owner, operation)?;
        if record.source != owner.source {
            // Invariant 7
            return Err(Error::new(&code::DESTINATION_OWNED, operation).with("pipeline", &owner.pipeline).with("found", &record.source));
        }
        if record.fingerprint != owner.fingerprint {
            // Invariant 6
            return Err(Error::new(&code::REBUILD_REQUIRED, operation).with("pipeline", &owner.pipeline).with("found", record.fingerprint));
        }
        Ok(record)
    }

    fn fenced(&self, owner: &Ownership, operation: &'static str) -> Result<()> {
        if owner.fence < self.fence {
            // Invariant 3
            return Err(Error::new(&code::DESTINATION_FENCED, operation)
                .with("pipeline", &owner.pipeline)
                .with("fence", owner.fence)
                .with("seen", self.fence));
        }
        Ok(())
    }

    fn refused(&self, operation: &'static str, epoch: &SnapshotEpoch) -> Error {
        let error = Error::new(&code::SNAPSHOT_REFUSED, operation).with("epoch", epoch);
        match &self.epoch {
            Some(found) => error.with("found", found).with("complete", self.complete),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchOrigin, TransactionMeta};

    fn owner(fence: u64) -> Ownership {
        let source = SourceIdentity { system: "7".into(), timeline: 1, database: "shop".into(), epoch: "0/10".into() };
        Ownership { pipeline: "all".into(), source, fingerprint: Fingerprint([1; 32]), fence }
    }

    fn batch(position: u64) -> Batch {
        let position = CommitPosition::new(position);
        Batch::in_memory(BatchOrigin::Transaction(TransactionMeta { xid: 1, position, commit_time_us: 0, changes: 0 }), Vec::new())
    }

    #[test]
    fn a_run_is_applied_behind_the_checkpoint_only_and_the_checkpoint_never_goes_back() {
        let stored = PipelineRecord { checkpoint: Some(CommitPosition::new(20)), ..PipelineRecord::new(&owner(1)) };
        let apply = |run: &[u64]| {
            let run: Vec<Batch> = run.iter().map(|position| batch(*position)).collect();
            PipelineRecord::apply(Some(&stored), &owner(2), &run).map(|(already, record)| (already, record.checkpoint.unwrap().offset()))
        };
        assert_eq!(apply(&[10, 20, 30]).unwrap(), (2, 30));
        assert_eq!(apply(&[10]).unwrap(), (1, 20));
        assert_eq!(apply(&[]).unwrap(), (0, 20));
        assert_eq!(apply(&[30, 30]).unwrap_err().code(), &code::INTERNAL);
    }

    #[test]
    fn a_lower_fence_and_another_owner_are_refused_and_only_an_untouched_record_is_taken_over() {
        let stored = PipelineRecord { checkpoint: Some(CommitPosition::new(20)), ..PipelineRecord::new(&owner(5)) };
        let refusal = |owner: &Ownership| PipelineRecord::apply(Some(&stored), owner, &[]).unwrap_err().code();
        assert_eq!(refusal(&owner(4)), &code::DESTINATION_FENCED);
        let mut other = owner(6);
        other.fingerprint = Fingerprint([2; 32]);
        assert_eq!(refusal(&other), &code::REBUILD_REQUIRED);
        assert_eq!(PipelineRecord::provision(Some(PipelineRecord::new(&owner(5))), &other).unwrap().1, Some(PipelineRecord::new(&other)));
        other.source.timeline = 2;
        assert_eq!(refusal(&other), &code::DESTINATION_OWNED);
        assert_eq!(PipelineRecord::apply(None, &other, &[]).unwrap_err().code(), &code::DESTINATION_UNUSABLE);
    }
}
