//! Following the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_api::{BoxFuture, Capture, Captured, ChunkBuilder, CommitPosition, Result, SourceIdentity, TransactionMeta};

use crate::line::Transaction;
use crate::lines::Lines;

/// How often the end of the file is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// About so many bytes are handed over at once.
const MAX_HAND_OVER_BYTES: usize = 4 << 20;

pub(crate) struct FileCapture {
    pub(crate) identity: SourceIdentity,
    pub(crate) lines: Lines,
    /// Transactions up to here are durable: they are passed over.
    pub(crate) durable: CommitPosition,
    pub(crate) wanted: Vec<String>,
    /// Where the source's status finds how far the file was read.
    pub(crate) head: Arc<AtomicU64>,
}

impl Capture for FileCapture {
    fn identity(&self) -> &SourceIdentity {
        &self.identity
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Captured>>> {
        Box::pin(async {
            loop {
                let ready = self.waiting()?;
                if !ready.is_empty() {
                    return Ok(ready);
                }
                tokio::time::sleep(POLL).await;
            }
        })
    }

    /// Nobody keeps a file for us.
    fn confirm(&mut self, _position: CommitPosition) {}
}

impl FileCapture {
    /// What is there already.
    fn waiting(&mut self) -> Result<Vec<Captured>> {
        let mut ready = Vec::new();
        let mut bytes = 0;
        let (durable, wanted) = (self.durable, &self.wanted);
        while bytes < MAX_HAND_OVER_BYTES {
            let took = self.lines.next(
                |transaction, position| {
                    if position > durable { captured(transaction, position, wanted, &mut ready) } else { 0 }
                },
            )?;
            let Some(took) = took else { break };
            bytes += took;
        }
        self.head.store(self.lines.last().offset(), Ordering::Relaxed);
        Ok(ready)
    }
}

/// Adds a transaction in pieces; gives its bytes.
fn captured(transaction: &Transaction<'_>, position: CommitPosition, wanted: &[String], ready: &mut Vec<Captured>) -> usize {
    let mut builder = ChunkBuilder::default();
    let (mut changes, mut bytes) = (0, 0);
    transaction.changes(wanted, |change| {
        let size = change.key.len() + change.old.map_or(0, <[u8]>::len) + change.new.map_or(0, <[u8]>::len);
        if builder.is_full_for(size) {
            bytes += builder.byte_len();
            ready.push(Captured::Part(builder.finish()));
        }
        builder.push(&change);
        changes += 1;
    });
    if changes == 0 {
        ready.push(Captured::Idle { position });
        return 0;
    }
    bytes += builder.byte_len();
    let commit_time_us = transaction.commit_time_us().unwrap_or_default();
    let meta = TransactionMeta { xid: transaction.xid, position, commit_time_us, changes };
    ready.push(Captured::Commit { meta, chunk: builder.finish() });
    bytes
}
