//! One transaction on loan to one worker.

use std::sync::Arc;

use tidegate_api::{Chunk, CommitPosition, Error, Result, TransactionMeta};

use crate::lease::Lender;
use crate::reader::{Chunks, Entry};

/// A transaction that was lent. Dropping it gives it back: it will be lent again.
#[must_use = "a delivery that is dropped is lent again"]
#[derive(Debug)]
pub struct Delivery {
    lender: Arc<Lender>,
    number: u64,
    meta: TransactionMeta,
    entry: Entry,
    settled: bool,
}

impl Delivery {
    pub(crate) fn new(lender: Arc<Lender>, number: u64, entry: Entry) -> Self {
        let commit = &entry.commit;
        let meta =
            TransactionMeta { xid: commit.xid, position: commit.position, commit_time_us: commit.commit_time_us, changes: commit.changes };
        Self { lender, number, meta, entry, settled: false }
    }

    /// What is known of the transaction.
    pub fn meta(&self) -> &TransactionMeta {
        &self.meta
    }

    /// The bytes of all its chunks.
    pub fn bytes(&self) -> u64 {
        self.entry.commit.bytes
    }

    /// The chunks, in order, the same every time. A transaction of several is read from the disk as the iterator goes on
    /// (the calling thread waits for it): it is never in memory as a whole.
    pub fn chunks(&self) -> impl Iterator<Item = Result<Chunk>> + '_ {
        let single = self.entry.commit.parts == 0;
        let only = single.then(|| Chunk::parse(self.entry.chunk.clone()));
        let stored = (!single).then(|| Chunks::new(&self.lender.segments, &self.entry.commit, self.entry.place));
        only.into_iter().chain(stored.into_iter().flatten()).map(|chunk| chunk.map_err(|error| self.lender.judged(error)))
    }

    /// Says that the transaction is durable at the destination: the group never sees it again. Deliveries are acknowledged
    /// in the order in which they were lent.
    ///
    /// # Errors
    /// The delivery comes back, still on loan: `durable` is not exactly its own position
    /// ([`POSITION_MISMATCH`](tidegate_api::code::POSITION_MISMATCH)), an earlier one is not acknowledged yet, or another
    /// worker has taken the group over ([`RELAY_FENCED`](tidegate_api::code::RELAY_FENCED)).
    #[expect(clippy::result_large_err, reason = "the delivery is not lost with the error")]
    pub fn ack(mut self, durable: CommitPosition) -> Result<(), (Self, Error)> {
        match self.lender.settle(self.number, durable) {
            Ok(()) => {
                self.settled = true;
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if !self.settled {
            self.lender.release(self.number);
        }
    }
}
