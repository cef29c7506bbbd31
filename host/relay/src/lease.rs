//! The right to read for a group, under a fencing token.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_api::{CommitPosition, Error, Result, code};

use crate::delivery::Delivery;
use crate::error::internal;
use crate::log::{Log, blocking};
use crate::reader::{Cursor, Entry, Reader, behind};
use crate::segments::Segments;

/// See [`Group::acquire`](crate::Group::acquire).
#[derive(Debug)]
pub struct Lease(Arc<Lender>);

/// What a lease shares with the deliveries that it has lent.
#[derive(Debug)]
pub(crate) struct Lender {
    log: Arc<Log>,
    group: String,
    fence: u64,
    pub(crate) segments: Arc<Segments>,
    loans: Mutex<Loans>,
}

#[derive(Debug)]
struct Loans {
    reader: Reader,
    /// The last acknowledged position, and the place behind it where it is known.
    acknowledged: (CommitPosition, Option<Cursor>),
    /// Read, not lent yet: what a caller that went away did not take.
    ready: VecDeque<Entry>,
    /// Lent, in order.
    lent: VecDeque<Loan>,
    last_number: u64,
}

#[derive(Debug)]
struct Loan {
    number: u64,
    position: CommitPosition,
    after: Cursor,
    released: bool,
}

impl Loans {
    /// Everything that is not acknowledged will be read again.
    fn restart(&mut self, position: CommitPosition, cursor: Option<Cursor>) {
        self.ready.clear();
        self.lent.clear();
        self.acknowledged = (position, cursor);
        self.reader.rewind(position, cursor);
    }

    /// Takes a released loan back, and with it those behind it: they would have to wait for it anyway.
    fn take_back(&mut self) {
        let Some(first) = self.lent.iter().position(|loan| loan.released) else { return };
        self.ready.clear();
        self.lent.truncate(first);
        let last = self.lent.back().map(|loan| (loan.position, Some(loan.after)));
        let (position, cursor) = last.unwrap_or(self.acknowledged);
        self.reader.rewind(position, cursor);
    }

    /// Reads a run, unless one is ready.
    fn fill(&mut self, max_batches: usize, max_bytes: u64) -> Result<()> {
        self.take_back();
        if !self.ready.is_empty() {
            return Ok(());
        }
        let mut bytes = 0u64;
        while self.ready.len() < max_batches.max(1) {
            let before = self.reader.cursor();
            match self.reader.next() {
                Ok(Some(entry)) => {
                    bytes = bytes.saturating_add(entry.commit.bytes);
                    if bytes > max_bytes && !self.ready.is_empty() {
                        self.reader.rewind_to(before);
                        break;
                    }
                    self.ready.push_back(entry);
                }
                Ok(None) => {
                    if self.ready.is_empty() && self.lent.is_empty() {
                        self.acknowledged.1 = self.reader.cursor();
                    }
                    break;
                }
                // What is whole before it is lent first; the next call meets it again.
                Err(_) if !self.ready.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Lease {
    pub(crate) fn new(log: Arc<Log>, group: String, fence: u64, checkpoint: CommitPosition) -> Self {
        let segments = log.shared.segments();
        let reader = Reader::new(Arc::clone(&segments), checkpoint);
        let acknowledged = (checkpoint, None);
        let loans = Mutex::new(Loans { reader, acknowledged, ready: VecDeque::new(), lent: VecDeque::new(), last_number: 0 });
        Self(Arc::new(Lender { log, group, fence, segments, loans }))
    }

    /// The fencing token: greater than that of every lease before, also after the folder was lost.
    pub fn fence(&self) -> u64 {
        self.0.fence
    }

    /// The last acknowledged position (or where [`seek`](Self::seek) went).
    pub fn checkpoint(&self) -> CommitPosition {
        self.0.loans().acknowledged.0
    }

    /// Durable bytes of the log behind the last acknowledged transaction.
    pub fn lag_bytes(&self) -> u64 {
        let loans = self.0.loans();
        let (position, cursor) = loans.acknowledged;
        loans.reader.bytes_behind(cursor, position)
    }

    /// Waits for the next transaction, then lends it together with those behind it that are there already: at most
    /// `max_batches` of at most `max_bytes` in all, but always one. A dropped delivery is lent again, with all behind it.
    ///
    /// Safe to drop and call again.
    ///
    /// # Errors
    /// [`RELAY_FENCED`](code::RELAY_FENCED) once another lease was acquired, [`RELAY_RESET`](code::RELAY_RESET) once the log
    /// was forgotten, [`RELAY_CORRUPT`](code::RELAY_CORRUPT) at a
    /// damaged record (everything before it was lent), [`RELAY_BEHIND`](code::RELAY_BEHIND) where the log begins later.
    pub async fn next_run(&mut self, max_batches: usize, max_bytes: u64) -> Result<Vec<Delivery>> {
        let mut news = self.0.log.shared.news();
        loop {
            self.0.check("read relay")?;
            let lender = Arc::clone(&self.0);
            let filled = blocking("read relay", move || lender.loans().fill(max_batches, max_bytes)).await;
            filled.map_err(|error| self.0.judged(error))?;
            let run = self.0.lend(max_batches);
            if !run.is_empty() {
                return Ok(run);
            }
            if news.changed().await.is_err() {
                return Err(internal("read relay", "the log outlives its leases"));
            }
        }
    }

    /// Goes on behind `position`, durably: forwards (a snapshot holds everything up to there), or back as long as the log
    /// still holds it (the destination has lost what it had). Deliveries that are out are worth nothing any more.
    ///
    /// # Errors
    /// [`RELAY_BEHIND`](code::RELAY_BEHIND) where the log begins later, [`RELAY_FENCED`](code::RELAY_FENCED); the metadata
    /// cannot be written.
    pub fn seek(&mut self, position: CommitPosition) -> Result<()> {
        let lender = &self.0;
        let mut loans = lender.loans();
        lender.check("seek")?;
        if position < loans.acknowledged.0 && lender.segments.start_for(position).is_err() {
            return Err(behind(&lender.segments, position));
        }
        if position != loans.acknowledged.0 {
            lender.log.shared.groups.place(&lender.group, lender.fence, position)?;
        }
        loans.restart(position, None);
        Ok(())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Err(error) = self.0.log.shared.groups.flush() {
            tracing::warn!(group = self.0.group, %error, "the checkpoint could not be written: transactions will be read again");
        }
    }
}

impl Lender {
    fn loans(&self) -> MutexGuard<'_, Loans> {
        self.loans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, operation: &'static str) -> Result<()> {
        let shared = &self.log.shared;
        shared.groups.check(&self.group, self.fence, operation).map_err(|fenced| {
            if shared.incarnation() == self.segments.incarnation {
                return fenced;
            }
            Error::new(&code::RELAY_RESET, operation).with("source", &shared.source).with("group", &self.group)
        })
    }

    /// What an error of a read means: where the lease is over meanwhile, what it read from may be gone.
    pub(crate) fn judged(&self, error: Error) -> Error {
        self.check("read relay").err().unwrap_or(error)
    }

    fn lend(self: &Arc<Self>, max_batches: usize) -> Vec<Delivery> {
        let mut loans = self.loans();
        let count = loans.ready.len().min(max_batches.max(1));
        let entries: Vec<Entry> = loans.ready.drain(..count).collect();
        let mut lend = |entry: Entry| {
            loans.last_number += 1;
            let number = loans.last_number;
            loans.lent.push_back(Loan { number, position: entry.commit.position, after: entry.after, released: false });
            Delivery::new(Arc::clone(self), number, entry)
        };
        entries.into_iter().map(&mut lend).collect()
    }

    /// Settles a loan: the first one that is out, at exactly its own position (Invariant 2).
    pub(crate) fn settle(&self, number: u64, durable: CommitPosition) -> Result<()> {
        let mut loans = self.loans();
        self.check("acknowledge")?;
        let Some(loan) = loans.lent.front().filter(|loan| loan.number == number) else {
            return Err(internal("acknowledge", "deliveries are acknowledged in order, and not after the lease was moved"));
        };
        // Invariant 2
        if loan.position != durable {
            let error = Error::new(&code::POSITION_MISMATCH, "acknowledge");
            return Err(error.with("delivered", loan.position).with("confirmed", durable));
        }
        let after = loan.after;
        let first_to_write = self.log.shared.groups.acknowledge(&self.group, self.fence, durable)?;
        loans.lent.pop_front();
        loans.acknowledged = (durable, Some(after));
        if first_to_write {
            self.log.keeper.wake();
        }
        Ok(())
    }

    /// Gives a loan back unsettled.
    pub(crate) fn release(&self, number: u64) {
        if let Some(loan) = self.loans().lent.iter_mut().find(|loan| loan.number == number) {
            loan.released = true;
        }
    }
}
