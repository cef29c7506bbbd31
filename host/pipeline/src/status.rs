//! What a pipeline tells about itself. Never a value of a row.

use serde::Serialize;
use tidegate_api::{CommitPosition, Error, Fingerprint, SnapshotEpoch};

use crate::state::State;

/// A snapshot of a pipeline's condition.
#[derive(Clone, Debug)]
pub struct Status {
    /// What it is doing.
    pub state: State,
    /// What its documents are made by.
    pub fingerprint: Fingerprint,
    /// The last position that the destination holds; before it was asked in this process: the group's checkpoint.
    pub position: Option<CommitPosition>,
    /// Bytes of the relay that are not applied yet.
    pub lag_bytes: u64,
    /// How long ago the newest applied transaction was committed while more is waiting; 0 when nothing waits.
    pub lag_seconds: f64,
    /// Changes applied since the start of the process, snapshot rows not counted.
    pub rows: u64,
    /// Transactions applied since the start of the process.
    pub transactions: u64,
    /// Rows copied by snapshots since the start of the process.
    pub snapshot_rows: u64,
    /// An estimate of all rows of the snapshot that runs; `None` where unknown.
    pub snapshot_estimate: Option<u64>,
    /// The snapshot that runs, or ran last in this process.
    pub snapshot_epoch: Option<SnapshotEpoch>,
    /// Repeated attempts since the start of the process.
    pub retries: u64,
    /// Why it does not go on, or what it is trying again.
    pub error: Option<Problem>,
    /// The change that the transform refused.
    pub poison: Option<PoisonReport>,
}

/// An error as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// `TG0504`.
    pub code: String,
    /// What happened, with its causes.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        Self { code: error.code().to_string(), message: error.message(), fix: error.advice().to_owned() }
    }
}

/// Where a refused change is, so that its author finds the row; never what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoisonReport {
    /// The table; empty where the transaction as a whole is at fault.
    pub relation: String,
    /// The first 8 bytes of SHA-256 of the key's text, in hexadecimal: `left(encode(sha256(convert_to(id::text, 'UTF8')), 'hex'), 16)`.
    pub key_hash: String,
    /// The transaction's commit-end position.
    pub position: String,
    /// The transaction's id.
    pub xid: u32,
    /// The change's number within it.
    pub ordinal: Option<u32>,
    /// The kind of poison: `required-value-differs`, `limit-depth` …
    pub kind: String,
    /// The rule that was broken, with the path where there is one.
    pub reason: String,
    /// The size of the document in bytes.
    pub size_bytes: u64,
}
