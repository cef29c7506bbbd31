//! One transaction's mutations (or one snapshot chunk's), immutable: every attempt carries the same ids and bytes.

use std::fmt;
use std::sync::Arc;

use crate::{ChangeId, CommitPosition, Mutation, MutationChunk, Result, SnapshotEpoch, TransactionMeta};

/// Where a batch comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchOrigin {
    /// Exactly one source transaction.
    Transaction(TransactionMeta),
    /// Rows of a snapshot.
    Snapshot {
        /// The snapshot that they belong to.
        epoch: SnapshotEpoch,
        /// The number of this batch within it, from 0.
        sequence: u64,
    },
}

/// The place of a batch's chunks: memory, or a spool file. Reading a chunk twice gives the same bytes.
pub trait BatchChunks: Send + Sync + fmt::Debug {
    /// How many chunks there are.
    fn count(&self) -> usize;

    /// The chunk of this number, from 0.
    ///
    /// # Errors
    /// When a spool file cannot be read, or `index` is not below [`count`](Self::count).
    fn read(&self, index: usize) -> Result<MutationChunk>;
}

/// An immutable unit of work (Invariant 4). Cheap to clone.
#[derive(Clone, Debug)]
pub struct Batch {
    origin: BatchOrigin,
    mutations: u64,
    bytes: u64,
    chunks: Arc<dyn BatchChunks>,
}

impl Batch {
    /// A batch of `mutations` mutations in `bytes` bytes of chunks. It may be empty: it still moves the checkpoint.
    pub fn new(origin: BatchOrigin, mutations: u64, bytes: u64, chunks: Arc<dyn BatchChunks>) -> Self {
        Self { origin, mutations, bytes, chunks }
    }

    /// A batch that is held in memory.
    pub fn in_memory(origin: BatchOrigin, chunks: Vec<MutationChunk>) -> Self {
        let mutations = chunks.iter().map(|chunk| chunk.len() as u64).sum();
        let bytes = chunks.iter().map(|chunk| chunk.bytes().len() as u64).sum();
        Self::new(origin, mutations, bytes, Arc::new(MemoryChunks(chunks)))
    }

    /// Where it comes from.
    pub fn origin(&self) -> &BatchOrigin {
        &self.origin
    }

    /// The commit-end position of its transaction; `None` for a snapshot batch.
    pub fn position(&self) -> Option<CommitPosition> {
        match &self.origin {
            BatchOrigin::Transaction(meta) => Some(meta.position),
            BatchOrigin::Snapshot { .. } => None,
        }
    }

    /// How many mutations it holds.
    pub fn mutations(&self) -> u64 {
        self.mutations
    }

    /// How many bytes its chunks take.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The chunks, in order. Can be asked again; the bytes are the same every time.
    pub fn chunks(&self) -> impl Iterator<Item = Result<MutationChunk>> + '_ {
        (0..self.chunk_count()).map(|index| self.read_chunk(index))
    }

    pub(crate) fn chunk_count(&self) -> usize {
        self.chunks.count()
    }

    pub(crate) fn read_chunk(&self, index: usize) -> Result<MutationChunk> {
        self.chunks.read(index)
    }

    /// The text that identifies what caused a mutation: opaque, stable over every attempt and process.
    pub fn change_id(&self, mutation: &Mutation<'_>) -> String {
        match &self.origin {
            BatchOrigin::Transaction(meta) => ChangeId { position: meta.position, ordinal: mutation.ordinal }.to_string(),
            BatchOrigin::Snapshot { epoch, .. } => format!("snapshot:{}", epoch.0),
        }
    }
}

#[derive(Debug)]
struct MemoryChunks(Vec<MutationChunk>);

impl BatchChunks for MemoryChunks {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn read(&self, index: usize) -> Result<MutationChunk> {
        let missing = || crate::Error::new(&crate::code::CHUNK_MALFORMED, "read batch").with("chunk", index);
        self.0.get(index).cloned().ok_or_else(missing)
    }
}
