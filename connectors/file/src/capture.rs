//! Following the file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_api::{BoxFuture, Capture, Captured, ChunkBuilder, CommitPosition, Error, Result, SourceIdentity, TransactionMeta};
use tokio::task::yield_now;

use crate::line::Transaction;
use crate::lines::Lines;

/// How often the end of the file is looked at.
pub(crate) const POLL: Duration = Duration::from_millis(20);

/// About so many bytes of the file are handed over at once.
const MAX_HAND_OVER_BYTES: u64 = 4 << 20;

pub(crate) struct FileCapture {
    pub(crate) identity: SourceIdentity,
    /// Behind everything that is durable.
    pub(crate) lines: Lines,
    pub(crate) wanted: Vec<String>,
    /// Where the source's status finds how far the file was read.
    pub(crate) head: Arc<AtomicU64>,
    /// What stopped the reading, once what came before it was handed over.
    pub(crate) ended: Option<Error>,
}

impl Capture for FileCapture {
    fn identity(&self) -> &SourceIdentity {
        &self.identity
    }

    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Captured>>> {
        Box::pin(async {
            loop {
                // Nothing is in hand while somebody else has the turn: the future may be dropped here.
                yield_now().await;
                if let Some(error) = self.ended.take() {
                    return Err(error);
                }
                let ready = self.waiting();
                if !ready.is_empty() {
                    return Ok(ready);
                }
                if self.ended.is_none() {
                    tokio::time::sleep(POLL).await;
                }
            }
        })
    }

    /// Nobody keeps a file for us.
    fn confirm(&mut self, _position: CommitPosition) {}
}

impl FileCapture {
    /// What is there already, up to a bound or to what is wrong.
    fn waiting(&mut self) -> Vec<Captured> {
        let mut ready = Vec::new();
        let from = self.lines.offset();
        while self.lines.offset() - from < MAX_HAND_OVER_BYTES {
            let wanted = &self.wanted;
            match self.lines.next(|transaction, position| captured(transaction, position, wanted, &mut ready)) {
                Ok(Some(())) => (),
                Ok(None) => break,
                Err(error) => {
                    self.ended = Some(error);
                    break;
                }
            }
        }
        self.head.store(self.lines.last().offset(), Ordering::Relaxed);
        ready
    }
}

/// Adds a transaction in pieces, or the position of one without anything of interest.
fn captured(transaction: &Transaction<'_>, position: CommitPosition, wanted: &[String], ready: &mut Vec<Captured>) {
    let mut builder = ChunkBuilder::default();
    let mut changes = 0;
    transaction.changes(wanted, |change| {
        let size = change.key.len() + change.old.map_or(0, <[u8]>::len) + change.new.map_or(0, <[u8]>::len);
        if builder.is_full_for(size) {
            ready.push(Captured::Part(builder.finish()));
        }
        builder.push(&change);
        changes += 1;
    });
    if changes == 0 {
        // The last one says it all.
        if let Some(Captured::Idle { .. }) = ready.last() {
            ready.pop();
        }
        ready.push(Captured::Idle { position });
        return;
    }
    let commit_time_us = transaction.commit_time_us().unwrap_or_default();
    let meta = TransactionMeta { xid: transaction.xid, position, commit_time_us, changes };
    ready.push(Captured::Commit { meta, chunk: builder.finish() });
}
