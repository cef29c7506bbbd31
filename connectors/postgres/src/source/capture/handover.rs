//! Between the capture's thread and whoever makes its transactions durable: a queue that is bounded by bytes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_api::{Captured, Chunk, CommitPosition, Error, Result, code};
use tokio::sync::Notify;

/// While this much is waiting, nothing more is read from the server.
pub(crate) const BUDGET_BYTES: usize = 4 << 20;

/// What a handed-over item takes beside its chunk.
const ITEM_BYTES: usize = 128;

/// The two ends of the hand-over.
#[derive(Default)]
pub(crate) struct Handover {
    waiting: Mutex<Waiting>,
    filled: Notify,
    freed: Notify,
    confirmed: AtomicU64,
    confirmation: Notify,
    asked: AtomicBool,
    ask: Notify,
    stopped: AtomicBool,
    stop: Notify,
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Captured>,
    bytes: usize,
    /// Why there will be no more; told once, after everything before it.
    end: Option<Error>,
}

impl Handover {
    /// Adds items, whatever they take: the caller looks at [`has_room`](Self::has_room) before it makes more.
    pub(crate) fn put(&self, items: &mut Vec<Captured>) {
        if items.is_empty() {
            return;
        }
        let mut waiting = self.lock();
        for item in items.drain(..) {
            if let (Captured::Idle { .. }, Some(last @ Captured::Idle { .. })) = (&item, waiting.items.back_mut()) {
                *last = item;
                continue;
            }
            waiting.bytes += size(&item);
            waiting.items.push_back(item);
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// Whether the queue is below its budget.
    pub(crate) fn has_room(&self) -> bool {
        // Invariant 11
        self.lock().bytes < BUDGET_BYTES
    }

    /// Waits until the other end has taken something.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Says why there will be no more.
    pub(crate) fn end(&self, error: Error) {
        self.lock().end.get_or_insert(error);
        self.filled.notify_one();
    }

    /// Waits until something is there and takes all of it. Safe to drop and call again.
    pub(crate) async fn take(&self) -> Result<Vec<Captured>> {
        self.asked.store(true, Ordering::SeqCst);
        self.ask.notify_one();
        loop {
            {
                let mut waiting = self.lock();
                if !waiting.items.is_empty() {
                    waiting.bytes = 0;
                    let items = Vec::from(std::mem::take(&mut waiting.items));
                    drop(waiting);
                    self.freed.notify_one();
                    return Ok(items);
                }
                if let Some(error) = waiting.end.take() {
                    waiting.end = Some(Error::new(&code::SOURCE_FAILED, "capture").because("the capture is over").transient());
                    return Err(error);
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits until the other end has asked for something.
    pub(crate) async fn wanted(&self) {
        while !self.asked.load(Ordering::SeqCst) {
            self.ask.notified().await;
        }
    }

    /// Takes note of what is durable; never goes back.
    pub(crate) fn confirm(&self, position: CommitPosition) {
        self.confirmed.fetch_max(position.offset(), Ordering::SeqCst);
        self.confirmation.notify_one();
    }

    /// What is durable.
    pub(crate) fn confirmed(&self) -> CommitPosition {
        CommitPosition::new(self.confirmed.load(Ordering::SeqCst))
    }

    /// Waits until something was confirmed since the last time.
    pub(crate) async fn confirmation(&self) {
        self.confirmation.notified().await;
    }

    /// Ends the capture.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.stop.notify_one();
    }

    /// Waits until the capture is to end.
    pub(crate) async fn stopped(&self) {
        while !self.stopped.load(Ordering::SeqCst) {
            self.stop.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn size(item: &Captured) -> usize {
    let chunk = |chunk: &Chunk| chunk.bytes().len() + ITEM_BYTES;
    match item {
        Captured::Part(part) | Captured::Commit { chunk: part, .. } => chunk(part),
        Captured::Idle { .. } => ITEM_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(offset: u64) -> Captured {
        Captured::Idle { position: CommitPosition::new(offset) }
    }

    #[tokio::test]
    async fn idle_moments_that_nobody_has_taken_yet_become_one() {
        let handover = Handover::default();
        handover.put(&mut vec![idle(1), idle(2)]);
        handover.put(&mut vec![idle(3), Captured::Part(Chunk::empty()), idle(4)]);
        assert_eq!(handover.take().await.unwrap(), [idle(3), Captured::Part(Chunk::empty()), idle(4)]);
    }

    #[tokio::test]
    async fn the_end_comes_after_everything_before_it() {
        let handover = Handover::default();
        handover.put(&mut vec![idle(1)]);
        handover.end(Error::new(&code::SLOT_LOST, "capture"));
        handover.end(Error::new(&code::INTERNAL, "capture"));
        assert_eq!(handover.take().await.unwrap(), [idle(1)]);
        assert_eq!(handover.take().await.unwrap_err().code(), &code::SLOT_LOST);
        assert!(handover.take().await.unwrap_err().is_transient());
    }

    #[test]
    fn a_confirmation_never_goes_back() {
        let handover = Handover::default();
        handover.confirm(CommitPosition::new(7));
        handover.confirm(CommitPosition::new(5));
        assert_eq!(handover.confirmed(), CommitPosition::new(7));
    }
}
