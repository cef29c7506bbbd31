//! Batches for tests, in a few words.

use std::sync::Arc;

use tidegate_api::batch::BatchChunks;
use tidegate_api::mutation::JSON;
use tidegate_api::{
    Batch, BatchOrigin, CommitPosition, Error, Mutation, MutationChunk, MutationChunkBuilder, MutationKind, Result, SnapshotEpoch,
    TransactionMeta, code,
};

/// Puts `document` in the key's place.
pub fn upsert<'a>(collection: &'a str, key: &'a str, document: &'a str) -> Mutation<'a> {
    let kind = MutationKind::Upsert { document: document.as_bytes(), content_type: JSON };
    Mutation { ordinal: 0, collection, key, partition_key: None, kind }
}

/// Removes the key's document.
pub fn delete<'a>(collection: &'a str, key: &'a str) -> Mutation<'a> {
    Mutation { ordinal: 0, collection, key, partition_key: None, kind: MutationKind::Delete }
}

/// Removes every document of the collection.
pub fn delete_collection(collection: &str) -> Mutation<'_> {
    Mutation { ordinal: 0, collection, key: "", partition_key: None, kind: MutationKind::DeleteCollection }
}

/// One transaction, its mutations numbered from 0, in one chunk.
pub fn transaction(position: u64, mutations: &[Mutation<'_>]) -> Batch {
    transaction_in_chunks(position, &[mutations])
}

/// One transaction in these chunks.
pub fn transaction_in_chunks(position: u64, chunks: &[&[Mutation<'_>]]) -> Batch {
    let chunks = number(chunks);
    Batch::in_memory(origin(position, &chunks), chunks)
}

/// A transaction whose last chunk cannot be read.
pub fn transaction_with_a_broken_end(position: u64, mutations: &[Mutation<'_>]) -> Batch {
    let chunks = number(&[mutations]);
    let bytes = chunks.iter().map(|chunk| chunk.bytes().len() as u64).sum();
    Batch::new(origin(position, &chunks), mutations.len() as u64 + 1, bytes, Arc::new(BrokenEnd(chunks)))
}

/// Rows of a snapshot.
pub fn snapshot(epoch: &SnapshotEpoch, sequence: u64, rows: &[Mutation<'_>]) -> Batch {
    Batch::in_memory(BatchOrigin::Snapshot { epoch: epoch.clone(), sequence }, number(&[rows]))
}

fn origin(position: u64, chunks: &[MutationChunk]) -> BatchOrigin {
    let changes = chunks.iter().map(|chunk| chunk.len() as u64).sum();
    BatchOrigin::Transaction(TransactionMeta { xid: 7, position: CommitPosition::new(position), commit_time_us: 0, changes })
}

fn number(chunks: &[&[Mutation<'_>]]) -> Vec<MutationChunk> {
    let mut ordinal = 0;
    let mut built = Vec::new();
    for mutations in chunks {
        let mut builder = MutationChunkBuilder::default();
        for mutation in *mutations {
            builder.push(&Mutation { ordinal, ..*mutation });
            ordinal += 1;
        }
        built.push(builder.finish());
    }
    built
}

#[derive(Debug)]
struct BrokenEnd(Vec<MutationChunk>);

impl BatchChunks for BrokenEnd {
    fn count(&self) -> usize {
        self.0.len() + 1
    }

    fn read(&self, index: usize) -> Result<MutationChunk> {
        self.0.get(index).cloned().ok_or_else(|| Error::new(&code::SPOOL_FAILED, "read batch"))
    }
}
