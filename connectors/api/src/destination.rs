//! Where documents go.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::source::RetryClassifier;
use crate::{Batch, BoxFuture, CommitPosition, Finding, Fingerprint, Result, SourceIdentity};

/// A run holds at most this many batches,
pub const MAX_RUN_BATCHES: usize = 256;

/// and, unless a single batch is larger, at most this many bytes.
pub const MAX_RUN_BYTES: u64 = 2 << 20;

/// Pipeline, collection and key together are at most this many bytes; checked before anything is written.
pub const MAX_KEY_BYTES: usize = 2600;

/// What recovery finds at a destination after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// State and checkpoint move in one transaction: every source transaction is applied exactly once.
    AtomicCheckpoint,
    /// Effects may be there before the checkpoint; applying again gives the same state.
    ReplaySafe,
    /// Published at least once under a stable identity.
    StableIdentity,
}

/// Who writes, and on whose behalf. Compared by the destination inside the transaction that writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The pipeline: documents and checkpoint are kept by it.
    pub pipeline: String,
    /// Whose positions the checkpoint holds (Invariant 7).
    pub source: SourceIdentity,
    /// What the documents are made by (Invariant 6).
    pub fingerprint: Fingerprint,
    /// The fencing token of the worker; a destination refuses a lower one than it has seen (Invariant 3).
    pub fence: u64,
}

/// The name of one snapshot attempt: a UUID in text form. A lost attempt is never continued under its old name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SnapshotEpoch(pub String);

impl fmt::Display for SnapshotEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a destination's snapshot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotState {
    /// None was begun.
    Absent,
    /// One was begun and not completed: it must begin anew.
    Incomplete,
    /// It is complete; the checkpoint was set to its boundary then.
    Complete,
}

/// The answer to [`Destination::provision`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Provisioned {
    /// The pipeline may write.
    Ready {
        /// The last position whose effects are durable here.
        checkpoint: Option<CommitPosition>,
        /// How far the snapshot is.
        snapshot: SnapshotState,
    },
    /// The documents here were made by another transform. Nothing was changed.
    RebuildRequired {
        /// That transform's fingerprint.
        found: Fingerprint,
    },
    /// The documents here came from another source. Nothing was changed.
    OtherSource {
        /// That source.
        found: SourceIdentity,
    },
}

/// What became of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applied {
    /// Its effects are durable now, at exactly this position: the batch's own.
    Applied(CommitPosition),
    /// The checkpoint had already reached it; nothing was changed. The batch's own position.
    AlreadyApplied(CommitPosition),
}

impl Applied {
    /// The position that is durable.
    pub fn position(self) -> CommitPosition {
        match self {
            Self::Applied(position) | Self::AlreadyApplied(position) => position,
        }
    }
}

/// A system that holds materialised state and its own checkpoint.
///
/// Every call carries the [`Ownership`]; a destination refuses a lower fence than it has seen
/// ([`DESTINATION_FENCED`](crate::code::DESTINATION_FENCED)), another source
/// ([`DESTINATION_OWNED`](crate::code::DESTINATION_OWNED)) and another fingerprint
/// ([`REBUILD_REQUIRED`](crate::code::REBUILD_REQUIRED)) inside the transaction that writes. Errors are permanent unless
/// the connector marks them transient. Calls of one pipeline never overlap.
pub trait Destination: Send + Sync {
    /// What recovery finds.
    fn guarantee(&self) -> Guarantee;

    /// The most batches that [`apply`](Self::apply) takes in one run, from 1 to [`MAX_RUN_BATCHES`].
    fn max_run(&self) -> usize {
        MAX_RUN_BATCHES
    }

    /// Looks at whether the destination can be reached and written, without leaving anything behind.
    ///
    /// # Errors
    /// When it cannot be asked at all.
    fn preflight(&self) -> BoxFuture<'_, Result<Vec<Finding>>>;

    /// Creates what is missing and takes the pipeline over under `owner.fence`. Idempotent.
    ///
    /// # Errors
    /// When the destination cannot be reached or written, holds a newer format, or has seen a higher fence.
    fn provision<'a>(&'a self, owner: &'a Ownership) -> BoxFuture<'a, Result<Provisioned>>;

    /// Removes this pipeline's documents and checkpoint, takes over `owner`'s source and fingerprint, and opens a snapshot.
    ///
    /// This is the only call that a foreign fingerprint or source does not stop.
    ///
    /// # Errors
    /// As for [`provision`](Self::provision).
    fn begin_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch) -> BoxFuture<'a, Result<()>>;

    /// Stores rows of the open snapshot. The same batch twice gives the same state.
    ///
    /// # Errors
    /// [`SNAPSHOT_REFUSED`](crate::code::SNAPSHOT_REFUSED) when `epoch` is not the open snapshot.
    fn apply_snapshot<'a>(&'a self, owner: &'a Ownership, epoch: &'a SnapshotEpoch, batch: &'a Batch) -> BoxFuture<'a, Result<()>>;

    /// Completes the snapshot and sets the checkpoint to its boundary. Idempotent.
    ///
    /// # Errors
    /// [`SNAPSHOT_REFUSED`](crate::code::SNAPSHOT_REFUSED) when `epoch` is neither the open snapshot nor the completed one.
    fn complete_snapshot<'a>(
        &'a self,
        owner: &'a Ownership,
        epoch: &'a SnapshotEpoch,
        boundary: CommitPosition,
    ) -> BoxFuture<'a, Result<()>>;

    /// Applies a run of consecutive transactions in one transaction of the destination: each whole, in order, the checkpoint
    /// at the last. `Ok` means durable, and holds one answer for each batch, in order. Batches at or below the checkpoint are
    /// [`AlreadyApplied`](Applied::AlreadyApplied) whatever they hold.
    ///
    /// # Errors
    /// Nothing of the run was applied, or (after a lost answer) all of it.
    fn apply<'a>(&'a self, owner: &'a Ownership, run: &'a [Batch]) -> BoxFuture<'a, Result<Vec<Applied>>>;

    /// A judgement of errors that goes beyond what the connector marks by itself.
    fn retry_classifier(&self) -> Option<&dyn RetryClassifier> {
        None
    }
}
