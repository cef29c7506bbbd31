//! Where changes come from.

use std::fmt;

use crate::{BoxFuture, Chunk, CommitPosition, Error, Finding, Lsn, Result, SourceIdentity, TableName, TransactionMeta};

/// What the relay remembers of a source when it opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Nothing: the source is new. Whatever it needs (publication, slot) is created.
    New,
    /// An earlier [`Source::open`] was begun and never finished: what it made carries nothing that anybody has seen, and
    /// may be removed and made again.
    Interrupted,
    /// Transactions of this identity up to this position are durable.
    At {
        /// Whose positions these are.
        identity: SourceIdentity,
        /// The last durable position, a watermark's included.
        durable: CommitPosition,
    },
}

/// A system whose committed changes are read. Bound to its settings; the same value can be opened again after an error.
pub trait Source: Send + Sync {
    /// Looks at everything that must hold before changes of `tables` can be captured, without changing anything.
    ///
    /// # Errors
    /// When the source cannot be asked at all.
    fn preflight<'a>(&'a self, tables: &'a [TableName]) -> BoxFuture<'a, Result<Vec<Finding>>>;

    /// Starts capturing the changes of `tables` behind what `resume` says.
    ///
    /// A table without a usable key is refused before anything is created. Order of creation: publication, slot, capture.
    ///
    /// # Errors
    /// Transient ones (the server is away, the slot is in use) are tried again by the caller; a position that the source
    /// has confirmed beyond `durable` is [`SOURCE_AHEAD_OF_RELAY`](crate::code::SOURCE_AHEAD_OF_RELAY), another identity is
    /// [`SOURCE_IDENTITY`](crate::code::SOURCE_IDENTITY): neither is resumed without the operator.
    fn open<'a>(&'a self, resume: &'a Resume, tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Capture>>>;

    /// Removes what [`open`](Self::open) created (slot, publication if it was ours). Nothing is lost that is in the relay.
    ///
    /// # Errors
    /// When the source cannot be reached, or the slot is in use.
    fn remove(&self) -> BoxFuture<'_, Result<()>>;

    /// How the source is doing: asked by `status` and by metrics, every few seconds at most.
    ///
    /// # Errors
    /// When the source cannot be asked.
    fn status(&self) -> BoxFuture<'_, Result<SourceStatus>>;

    /// The way to read what was there before the first change; `None` where the log itself begins with everything.
    fn snapshots(&self) -> Option<&dyn SnapshotSource>;
}

/// How a source is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStatus {
    /// The end of its log now.
    pub head: Option<Lsn>,
    /// Bytes of log that the server keeps for us.
    pub retained_bytes: Option<u64>,
    /// The slot's state in the server's words (`reserved`, `extended`, `unreserved`, `lost`).
    pub slot_state: Option<String>,
}

/// One capture in progress. Dropping it ends it.
pub trait Capture: Send {
    /// Whose positions it hands over.
    fn identity(&self) -> &SourceIdentity;

    /// Waits until something is there, then hands over everything that is already waiting, in order, up to a bound of
    /// bytes of the source's own: the caller makes it durable in one go.
    ///
    /// Safe to drop and call again (nothing is lost).
    ///
    /// # Errors
    /// After an error the capture is over: drop it and [`open`](Source::open) again.
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Captured>>>;

    /// Tells the source that everything up to `position` is durable (Invariant 1). Never blocks; positions grow.
    fn confirm(&mut self, position: CommitPosition);
}

/// What a capture hands over. Transactions do not interleave: parts belong to the next commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Captured {
    /// A piece of a transaction whose end is not here yet.
    Part(Chunk),
    /// The last piece of a transaction, and its commit. `meta.changes` counts all its pieces.
    Commit {
        /// The transaction.
        meta: TransactionMeta,
        /// Its last (often only) piece; may be empty.
        chunk: Chunk,
    },
    /// Nothing of interest happened up to this position.
    Idle {
        /// Everything up to here was looked at.
        position: CommitPosition,
    },
}

/// Reads the rows that were there before the stream.
pub trait SnapshotSource: Send + Sync {
    /// Opens a consistent view of `tables`.
    ///
    /// # Errors
    /// Transient ones are tried again by the caller with a new epoch.
    fn begin<'a>(&'a self, tables: &'a [TableName]) -> BoxFuture<'a, Result<Box<dyn Snapshot>>>;
}

/// One consistent view, being read. Dropping it ends it.
pub trait Snapshot: Send {
    /// Transactions whose commit end is at or before this position are in the view; later ones are streamed.
    fn boundary(&self) -> CommitPosition;

    /// An estimate of all rows, for progress; `None` where unknown.
    fn estimated_rows(&self) -> Option<u64>;

    /// The next rows ([`Operation::Row`](crate::Operation::Row)); a source that is a log itself replays its changes instead.
    /// `None` when every table was read. Ordinals start at 0 in each chunk.
    ///
    /// # Errors
    /// After an error the view is over: a new epoch must be begun.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<Chunk>>>;
}

impl fmt::Debug for dyn Capture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "capture of {}", self.identity())
    }
}

/// Decides what may be tried again, in place of the connector's own judgement.
pub trait RetryClassifier: Send + Sync {
    /// Whether this error may pass by itself.
    fn is_transient(&self, error: &Error) -> bool;
}
