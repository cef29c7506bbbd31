//! From changes to outcomes.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{BoxFuture, Chunk, Code, CommitPosition, Result};

/// What a dropped row does at a destination that holds state. Part of the fingerprint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDrop {
    /// An earlier version of the row is deleted, with the same change id: destination = transform(source).
    #[default]
    Delete,
    /// An earlier version stays. Such a pipeline can be neither reconciled by content nor rebuilt with verification.
    Retain,
}

/// A transform: deterministic, capability-free. Same input, module and limits give the same bytes (Invariant 5).
pub trait Transform: Send + Sync {
    /// Its canonical definition as JSON text: every stage's kind, name, version, configuration, limits and module hash.
    /// Part of the fingerprint (Invariant 6).
    fn definition(&self) -> &str;

    /// Starts one transaction (or one snapshot batch) of `changes` changes: budgets are counted over all its chunks.
    fn begin(&self, changes: u64, of: Origin) -> Box<dyn TransformRun>;
}

/// What a transform may know of where changes come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The end of the transaction's commit record; `None` for rows of a snapshot.
    pub position: Option<CommitPosition>,
    /// When it was committed, in microseconds since 1970-01-01 00:00:00 UTC; `None` for rows of a snapshot.
    pub commit_time_us: Option<i64>,
}

/// One transaction on its way through a transform. Dropping it cancels what runs.
pub trait TransformRun: Send {
    /// Transforms the next chunk.
    ///
    /// # Errors
    /// When the transform could not run at all. What the transform itself refuses is [`Transformed::Poison`], not an error.
    fn chunk<'a>(&'a mut self, chunk: &'a Chunk) -> BoxFuture<'a, Result<Transformed>>;
}

/// What came of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transformed {
    /// One outcome for each change, in order.
    Outcomes(Outcomes),
    /// The transaction as a whole is refused.
    Poison(Poison),
}

/// Outcomes of one chunk: ranges into one buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcomes {
    /// What the spans point into.
    pub bytes: Bytes,
    /// One for each change of the chunk, in order.
    pub items: Vec<Outcome>,
}

/// A range of [`Outcomes::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// How many bytes.
    pub len: u32,
}

/// What becomes of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on. `document` is set for inserts, updates and snapshot rows, and absent for deletes and truncates.
    Keep {
        /// The document to store.
        document: Option<Span>,
        /// UTF-8; where to place it. `None`: where the change itself says.
        partition_key: Option<Span>,
        /// UTF-8; the collection that it goes to, one of those that the pipeline declares. `None`: the table's own.
        collection: Option<Span>,
    },
    /// The row is deleted at the destination.
    Delete,
    /// The row is not for this destination; see [`OnDrop`].
    Drop,
}

impl Outcomes {
    /// The bytes of a span; `None` when it does not lie inside.
    pub fn get(&self, span: Span) -> Option<&[u8]> {
        let start = usize::try_from(span.start).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(span.len).ok()?)?)
    }
}

/// Why a transform refused a transaction. Never holds a value of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poison {
    /// The stable name of the reason: `invalid-json`, `limit-depth`, `required-value-differs` …
    pub kind: String,
    /// The ordinal of the guilty change; `None` where the transaction as a whole is at fault.
    pub ordinal: Option<u32>,
    /// What was refused and by which rule, for people: names paths, limits and sizes, never values.
    pub reason: String,
}

impl Poison {
    /// The code that all poison carries.
    pub fn code(&self) -> &'static Code {
        &crate::code::POISON
    }
}
