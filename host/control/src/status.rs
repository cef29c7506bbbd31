//! What is told about pipelines and sources. Additions only: scripts read these.

use serde::{Deserialize, Serialize};

use crate::Failure;

/// Everything about a daemon.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The release of the daemon.
    pub version: String,
    /// Whether everything that had to be looked at before the first row was.
    pub started: bool,
    /// Whether it is about to end.
    pub stopping: bool,
    /// The pipelines, by name.
    pub pipelines: Vec<Pipeline>,
    /// The sources, by name.
    pub sources: Vec<Source>,
    /// Pipelines that are not configured any more, and that the relay still holds transactions for.
    #[serde(default)]
    pub removed: Vec<Removed>,
}

/// A pipeline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// Its source's name.
    pub source: String,
    /// `provisioning`, `snapshotting`, `catching-up`, `running`, `paused`, `rebuilding`, `faulted`, `stopped`.
    pub state: String,
    /// The last source position that is durable at the destination; before the pipeline was there in this process: as the
    /// relay remembers it.
    pub position: Option<String>,
    /// How much the relay holds for it that is not at the destination yet.
    pub lag_bytes: u64,
    /// How long ago the newest transaction at the destination was committed, while more is waiting; 0 when nothing waits.
    pub lag_seconds: f64,
    /// Changes written since the daemon started, snapshots not counted.
    pub rows: u64,
    /// Rows that snapshots wrote since the daemon started.
    pub snapshot_rows: u64,
    /// An estimate of all rows of the snapshot that runs; null where unknown.
    pub snapshot_estimate: Option<u64>,
    /// Source transactions written since the daemon started.
    pub transactions: u64,
    /// Attempts that had to be made again since the daemon started.
    pub retries: u64,
    /// The fingerprint of what makes its documents; empty before it could begin.
    pub fingerprint: String,
    /// The pinned module of its transform; null where documents pass unchanged.
    pub module: Option<String>,
    /// What stopped it, or what it is trying again for.
    pub error: Option<Failure>,
    /// The refused change that it is paused in front of.
    pub poison: Option<PoisonReport>,
}

/// What is left of a pipeline that is not configured any more.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Removed {
    /// Its name.
    pub name: String,
    /// The source that it read.
    pub source: String,
    /// What the relay holds behind this position is held for it.
    pub position: String,
    /// How much that is; null where the source is not configured any more, either.
    pub relay_bytes: Option<u64>,
}

/// Everything that helps to find a refused row, and nothing of what it holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoisonReport {
    /// The stable name of the reason.
    pub kind: String,
    /// The rule that was broken, with the path where there is one.
    pub reason: String,
    /// The row's table; empty where the transaction as a whole is at fault.
    pub relation: String,
    /// The first 16 hexadecimal digits of SHA-256 over the row's key text.
    pub key_hash: String,
    /// The transaction's commit-end position.
    pub position: String,
    /// The transaction's id at its source.
    pub xid: u32,
    /// The change's number within it.
    pub ordinal: Option<u32>,
    /// How large the document is.
    pub size_bytes: u64,
}

/// A source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// `starting`, `capturing`, `waiting` (tries again), `faulted` (waits for the operator), `stopped`.
    pub state: String,
    /// Whose positions the relay holds.
    pub identity: Option<String>,
    /// The last position that the relay holds durably.
    pub position: Option<String>,
    /// The end of the source's log, as far as it was asked.
    pub head: Option<String>,
    /// Bytes of log that the server keeps for the slot.
    pub retained_bytes: Option<u64>,
    /// The slot's state in the server's words.
    pub slot_state: Option<String>,
    /// Bytes that the relay holds of this source.
    pub relay_bytes: u64,
    /// What it is waiting for, or what stopped it.
    pub error: Option<Failure>,
}
