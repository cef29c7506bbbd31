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
    /// The last source position that is durable at the destination.
    pub position: Option<String>,
    /// How much the relay holds for it that is not at the destination yet.
    pub lag_bytes: u64,
    /// How old the oldest transaction is that is not at the destination yet.
    pub lag_seconds: Option<f64>,
    /// Rows written since the daemon started, a snapshot's included.
    pub rows: u64,
    /// Source transactions written since the daemon started.
    pub transactions: u64,
    /// Attempts that had to be made again since the daemon started.
    pub retries: u64,
    /// The fingerprint of what makes its documents.
    pub fingerprint: String,
    /// The pinned module of its transform; null where documents pass unchanged.
    pub module: Option<String>,
    /// What stopped it, or what it is trying again for.
    pub error: Option<Failure>,
    /// The refused change that it is paused in front of.
    pub poison: Option<PoisonReport>,
}

/// Everything that helps to find a refused row, and nothing of what it holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PoisonReport {
    /// The stable name of the reason.
    pub kind: String,
    /// What was refused and by which rule.
    pub reason: String,
    /// The row's table.
    pub relation: Option<String>,
    /// SHA-256 of the row's key text, in hexadecimal digits.
    pub key_hash: Option<String>,
    /// The transaction.
    pub position: Option<String>,
    /// The change's number within it.
    pub ordinal: Option<u32>,
    /// The path in the program or the document that is at fault.
    pub path: Option<String>,
    /// How large the document is.
    pub size_bytes: Option<u64>,
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
