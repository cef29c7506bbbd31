//! How far a pipeline is behind. Looked at while it works, waits, tries again and rests, so that an outage shows.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_relay::Lease;

use crate::worker::Worker;

/// How often it is looked at.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(500);

impl Worker {
    /// Shows how far the lease is behind.
    pub(crate) fn observe(&self, lease: &Lease) {
        let bytes = lease.lag_bytes();
        let seconds = if bytes > 0 { seconds_behind(self.newest, now_us()) } else { 0.0 };
        self.status.send_if_modified(|status| {
            let changed = (status.lag_bytes, status.lag_seconds) != (bytes, seconds);
            (status.lag_bytes, status.lag_seconds) = (bytes, seconds);
            changed
        });
    }

    /// Shows the lag while nobody works. A pipeline that never began has none.
    pub(crate) fn observe_at_rest(&mut self) {
        let name = &self.parts.settings.name;
        let groups = self.parts.log.groups();
        let Some(group) = groups.iter().find(|group| group.name == *name) else { return };
        // After a start in a pause, and after a reset of the source, the lease is another's.
        if self.resting.as_ref().is_none_or(|lease| lease.fence() != group.fence) {
            self.resting = self.parts.log.group(name).and_then(|group| group.acquire(name)).ok();
        }
        if let Some(lease) = &self.resting {
            self.observe(lease);
        }
    }
}

/// A commit time; `None` where the source told none.
pub(crate) fn known(commit_time_us: i64) -> Option<i64> {
    Some(commit_time_us).filter(|time| *time != 0)
}

/// How long ago `newest` was committed; 0 where that is unknown, or the source's clock is ahead of ours.
fn seconds_behind(newest: Option<i64>, now_us: i64) -> f64 {
    newest.map_or(0.0, |newest| now_us.saturating_sub(newest).max(0) as f64 / 1e6)
}

/// The time of day, in microseconds since 1970. Only the lag is measured by it; no decision is.
fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_commit_time_is_no_lag_of_decades() {
        let now = 1_700_000_000_000_000;
        assert_eq!(seconds_behind(known(0), now), 0.0);
        assert_eq!(seconds_behind(None, now), 0.0);
        assert_eq!(seconds_behind(known(now - 2_500_000), now), 2.5);
        assert_eq!(seconds_behind(known(now + 1), now), 0.0);
    }
}
