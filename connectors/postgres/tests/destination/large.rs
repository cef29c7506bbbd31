//! Transactions and documents of a size that matters.

use std::fs;
use std::sync::Arc;

use tidegate_api::batch::BatchChunks;
use tidegate_api::{
    Applied, Batch, BatchOrigin, CommitPosition, Destination as _, Mutation, MutationChunk, MutationChunkBuilder, Result, SnapshotEpoch,
    TransactionMeta,
};
use tidegate_conformance::batches::{snapshot, transaction, upsert};
use tidegate_testkit::Version;
use tidegate_testkit::process::alone::alone;

use super::harness::{Server, owner};

const ROWS: u32 = 1_000_000;
const CHUNK: u32 = 4096;

/// Makes its chunks when they are read, as a spool file would: the batch itself takes no memory.
#[derive(Debug)]
struct Made;

impl BatchChunks for Made {
    fn count(&self) -> usize {
        ROWS.div_ceil(CHUNK) as usize
    }

    fn read(&self, index: usize) -> Result<MutationChunk> {
        let mut builder = MutationChunkBuilder::default();
        let first = index as u32 * CHUNK;
        for ordinal in first..ROWS.min(first + CHUNK) {
            let document = format!(r#"{{"id":{ordinal},"filler":"{ordinal:0100}"}}"#);
            builder.push(&Mutation { ordinal, ..upsert("public.a", &ordinal.to_string(), &document) });
        }
        Ok(builder.finish())
    }
}

fn resident_kib(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_million_rows_in_one_transaction_take_bounded_memory() {
    if !alone("destination::large::a_million_rows_in_one_transaction_take_bounded_memory") {
        return;
    }
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let position = CommitPosition::new(105);
    let meta = TransactionMeta { xid: 7, position, commit_time_us: 0, changes: u64::from(ROWS) };
    let batch = Batch::new(BatchOrigin::Transaction(meta), u64::from(ROWS), 140 << 20, Arc::new(Made));
    let before = resident_kib("VmRSS");
    let answers = destination.apply(&owner(1), &[batch]).await.unwrap();
    assert_eq!(answers, [Applied::Applied(position)]);
    let grown = resident_kib("VmHWM").saturating_sub(before);
    assert!(grown < 192 << 10, "{grown} KiB more");
    assert_eq!(server.value("SELECT count(*) || ' by ' || count(DISTINCT xmin::text) FROM tidegate.documents").await, "1000000 by 1");
}

#[tokio::test]
async fn a_document_of_many_megabytes_comes_by_snapshot_and_by_stream() {
    let server = Server::shared(Version::V15).await;
    let destination = server.destination();
    destination.provision(&owner(1)).await.unwrap();
    let epoch = SnapshotEpoch("e".into());
    destination.begin_snapshot(&owner(1), &epoch).await.unwrap();
    let document = format!(r#"{{"text":"{}"}}"#, "x".repeat(48 << 20));
    destination.apply_snapshot(&owner(1), &epoch, &snapshot(&epoch, 0, &[upsert("public.a", "1", &document)])).await.unwrap();
    destination.complete_snapshot(&owner(1), &epoch, CommitPosition::new(100)).await.unwrap();
    destination.apply(&owner(1), &[transaction(105, &[upsert("public.a", "2", &document)])]).await.unwrap();
    let sizes = "SELECT string_agg(octet_length(document)::text, ' ') FROM tidegate.documents";
    assert_eq!(server.value(sizes).await, format!("{0} {0}", document.len()));
}
