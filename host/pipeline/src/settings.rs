//! What an operator chooses about a pipeline.

use std::path::PathBuf;
use std::time::Duration;

use tidegate_api::{OnDrop, TableName};

/// What an operator chooses about a pipeline.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name: of its relay group, and of its rows at the destination.
    pub name: String,
    /// The tables that it reads; each is the collection of the same name.
    pub tables: Vec<TableName>,
    /// The collections, beside the tables' own, that its transform may place rows in.
    pub collections: Vec<String>,
    /// What a dropped row does.
    pub on_drop: OnDrop,
    /// How often a failed attempt is repeated.
    pub retry: RetryPolicy,
    /// The largest transaction that is taken.
    pub max_transaction: MaxTransaction,
    /// A folder for batches that are too large for memory; its files are removed when they are not needed any more.
    pub spool: PathBuf,
}

/// The largest transaction that a pipeline takes; a larger one pauses it. What counts is what it holds of the pipeline's
/// tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaxTransaction {
    /// Changes.
    pub rows: u64,
    /// Bytes of them, as the relay holds them.
    pub bytes: u64,
}

impl Default for MaxTransaction {
    fn default() -> Self {
        Self { rows: 10_000_000, bytes: 4 << 30 }
    }
}

/// Bounded exponential backoff with jitter.
///
/// It holds for errors that may pass while the destination answers. A destination that cannot be reached at all is tried
/// for ever, at the longest pause: giving up would not make it come back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, the first included; 1 to 100.
    pub attempts: u32,
    /// The pause before the second attempt.
    pub base: Duration,
    /// No pause is longer.
    pub max: Duration,
    /// Each pause is so many times the one before; at least 1.
    pub factor: f64,
    /// A pause is multiplied by a random factor between 1 − jitter and 1 + jitter, then bounded by `max`; 0 to 1.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 5, base: Duration::from_millis(100), max: Duration::from_secs(10), factor: 2.0, jitter: 0.2 }
    }
}
