//! What may go, and when there is no room for more.
//!
//! A segment goes when every group's written checkpoint has passed it and it is old enough. It never goes before: a relay
//! that has reached its limit stops the capture and says so, it does not take anything from a group. Without groups nothing
//! is consumed: segments go only when the limit is reached.

use std::time::Duration;

use tidegate_api::{Captured, CommitPosition, Error, Result, code};

use crate::log::Shared;

/// About what a record takes beside its chunk.
const OVERHEAD: u64 = 80;

impl Shared {
    /// Removes consumed segments that were closed `keep` ago or earlier. With `until`, only as many as bring the log down
    /// to that many bytes, and without groups too.
    pub(crate) fn retain(&self, keep: Duration, until: Option<u64>) -> Result<()> {
        let segments = self.segments();
        let passed = match (self.groups.lowest(), until) {
            (Some(lowest), _) => lowest.min(segments.head()),
            (None, Some(_)) => segments.head(),
            (None, None) => CommitPosition::ZERO,
        };
        let oldest_kept = self.options.now_us().saturating_sub(i64::try_from(keep.as_micros()).unwrap_or(i64::MAX));
        for (sequence, closed_us) in segments.consumed(passed) {
            if closed_us > oldest_kept || until.is_some_and(|until| segments.bytes() <= until) {
                break;
            }
            segments.forget_through(sequence);
            segments.remove(sequence)?;
            segments.sync_folder()?; // one by one: a power cut leaves no gap between those that come back
        }
        Ok(())
    }

    /// Sees to it that a group fits below the limit.
    pub(crate) fn make_room(&self, captured: &[Captured]) -> Result<()> {
        let chunk = |item: &Captured| match item {
            Captured::Part(chunk) | Captured::Commit { chunk, .. } => chunk.bytes().len() as u64,
            Captured::Idle { .. } => 0,
        };
        let needed: u64 = captured.iter().map(|item| chunk(item) + OVERHEAD).sum();
        let limit = self.options.max_bytes;
        if self.segments().bytes() + needed <= limit {
            return Ok(());
        }
        self.groups.flush()?;
        self.retain(Duration::ZERO, Some(limit.saturating_sub(needed)))?;
        let bytes = self.segments().bytes();
        if bytes + needed <= limit {
            return Ok(());
        }
        let mut error =
            Error::new(&code::RELAY_FULL, "append to relay").with("bytes", bytes).with("needed", needed).with("max_bytes", limit);
        if let Some(slowest) = self.groups.status().into_iter().min_by_key(|group| group.checkpoint) {
            error = error.with("slowest_group", slowest.name).with("at", slowest.checkpoint);
        }
        Err(error.transient())
    }
}
