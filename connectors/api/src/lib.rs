//! What flows through tidegate, and the seams that touch it.
//!
//! This crate is the contract between the host and every connector. It has no clock, no network and no async runtime:
//! asynchronous seams return [`BoxFuture`]s, so that `&dyn` works and a connector chooses its own runtime needs.
//!
//! The way of the data, with the types that carry it:
//!
//! ```text
//! Source ──Captured──▶ relay ──Chunk──▶ Transform ──Outcome──▶ Batch ──▶ Destination
//!    ◀──────────────── CommitPosition, once durable ◀─────────────────────┘
//! ```
//!
//! * A [`Chunk`] holds the rendered changes of a transaction (or rows of a snapshot), at most 1 MiB or 4,096 of them.
//! * A [`Batch`] holds the mutations of exactly one transaction (or one snapshot chunk) and never changes once it is built.
//! * A [`CommitPosition`] is the only thing that travels backwards.

#![deny(missing_docs, unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

pub mod batch;
pub mod bounds;
pub mod canonical;
pub mod change;
pub mod chunk;
pub mod code;
pub mod destination;
pub mod error;
pub mod finding;
pub mod fold;
pub mod hash;
pub mod identity;
pub mod lsn;
pub mod mutation;
pub mod record;
pub mod source;
pub mod table;
pub mod transform;
mod wire;

pub use batch::{Batch, BatchChunks, BatchOrigin};
pub use change::{Change, ChangeId, Operation, TransactionMeta};
pub use chunk::{Chunk, ChunkBuilder};
pub use code::{Class, Code};
pub use destination::{Applied, Destination, Guarantee, Ownership, Provisioned, SnapshotEpoch, SnapshotState};
pub use error::{Error, Result, Transience};
pub use finding::{Finding, Severity};
pub use identity::{Fingerprint, SourceIdentity};
pub use lsn::{CommitPosition, Lsn};
pub use mutation::{Mutation, MutationChunk, MutationChunkBuilder, MutationKind};
pub use record::PipelineRecord;
pub use source::{Capture, Captured, Resume, Snapshot, SnapshotSource, Source, SourceStatus};
pub use table::TableName;
pub use transform::{OnDrop, Origin, Outcome, Outcomes, Poison, Transform, TransformRun, Transformed};

/// A boxed, sendable future: the return type of every asynchronous seam.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
